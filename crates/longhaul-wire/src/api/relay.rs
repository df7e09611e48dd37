//! A client that sends its conversation again and again. What a body has in common with the one
//! before it is not read again, and what was written for the provider is not written again.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul::{Frame, Message, Role};

use super::body::{Body, Read};
use super::format::Unit;
use super::{Api, Encoded, Identity, LeftOut, Request, RequestError, SharedText};

/// One conversation of a client with its provider, request by request.
///
/// What comes out is what [`Request::decode`] and [`Request::encode`] would give, sooner: a message
/// that is known is the same message (`Arc::ptr_eq`) in every request, whichever way the client writes
/// it this time.
///
/// ```
/// use longhaul_wire::api::{Api, Relay};
/// let mut relay = Relay::new(Api::Anthropic);
/// let first = relay.read(r#"{"messages":[{"role":"user","content":"One."}]}"#)?;
/// relay.write(&first);
/// let body = r#"{"messages":[{"role":"user","content":"One."},{"role":"assistant","content":"Two."}]}"#;
/// let second = relay.read(body)?;
/// assert!(std::sync::Arc::ptr_eq(&first.messages()[0], &second.messages()[0]));
/// assert_eq!(relay.write(&second).body, body);
/// # Ok::<(), longhaul_wire::api::RequestError>(())
/// ```
#[derive(Debug)]
pub struct Relay {
    api: Api,
    last: Option<Arc<Read>>,
    units: Units,
}

impl Relay {
    /// A conversation of which nothing is known.
    pub fn new(api: Api) -> Self {
        Self { api, last: None, units: Units::default() }
    }

    /// A conversation whose messages somebody has already, after a restart or a fork: where a request
    /// has the same messages, they are these.
    pub fn of(api: Api, messages: &[Arc<Message>]) -> Self {
        Self { last: Some(Arc::new(Read::of(api, messages.to_vec()))), ..Self::new(api) }
    }

    /// A conversation of which one request was read elsewhere.
    pub fn knowing(last: &LastRead) -> Self {
        Self { last: Some(last.0.clone()), ..Self::new(last.0.api) }
    }

    /// Reads a request with the help of the one before it. One that turns out to be of another
    /// conversation costs this one nothing: the one before is what was [kept](Self::keep) or written last.
    pub fn read(&self, body: impl Into<SharedText>) -> Result<Request, RequestError> {
        let body = Body::read(self.api, body.into(), self.last.as_deref())?;
        Ok(Request::read(Arc::new(body)))
    }

    /// A request is of this conversation: the next one is read with its help, and has the same messages.
    /// Whoever puts messages of a request into a session says so.
    pub fn keep(&mut self, request: &Request) {
        if let Some(read) = request.read_before() {
            self.last = Some(read);
        }
    }

    /// The same for a request that was read elsewhere.
    pub fn keep_read(&mut self, last: &LastRead) {
        self.last = Some(last.0.clone());
    }

    /// Writes a request of this conversation to the provider that the client speaks to.
    pub fn write(&mut self, request: &Request) -> Encoded {
        self.keep(request);
        request.encode_with(self.api, &mut self.units)
    }
}

/// What was read from a request, without the text that it was read from: the next request of the conversation can be
/// read with its help, by whoever has it. Clones share it.
#[derive(Debug, Clone)]
pub struct LastRead(pub(super) Arc<Read>);

impl LastRead {
    /// Model, system prompt, tools and settings, as the body has them.
    pub fn frame(&self) -> &Frame {
        &self.0.frame
    }

    /// The messages that the client sent.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.0.messages
    }

    /// Which messages these are.
    pub fn identities(&self) -> &[Identity] {
        self.0.identities()
    }
}

/// Texts that were written for messages that a client did not write.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// By the place in memory of their first message.
    known: HashMap<usize, Known>,
    /// How many bodies were written.
    round: u64,
    /// A text that is not kept.
    passing: Option<Unit>,
}

#[derive(Debug)]
struct Known {
    /// They are held, so that no other message takes their place in memory.
    messages: Vec<Arc<Message>>,
    unit: Unit,
    used: u64,
}

impl Units {
    /// The text of messages that go together: as it was written before, or written now.
    pub fn get(
        &mut self,
        api: Api,
        all: &[Arc<Message>],
        at: usize,
        together: usize,
        left_out: &mut LeftOut,
    ) -> &Unit {
        let messages = &all[at..at + together];
        let place = Arc::as_ptr(&messages[0]) as usize;
        let is_same = |known: &Known| {
            let pairs = known.messages.iter().zip(messages);
            known.messages.len() == messages.len() && { pairs }.all(|(one, other)| Arc::ptr_eq(one, other))
        };
        // Not an `if let`: the borrow checker would hold on to the map.
        if self.known.get(&place).is_some_and(is_same) {
            let round = self.round;
            return match self.known.get_mut(&place) {
                Some(known) => {
                    known.used = round;
                    &known.unit
                }
                None => self.passing.get_or_insert_default(),
            };
        }
        let mut said = LeftOut::default();
        let unit = api.format().write(all, at, together, &mut said);
        // Pictures in results of another API go where the last of these results is.
        let alone = |message: &Arc<Message>| message.role() != Role::Tool || super::is_own(message, api);
        let keeps = said.0.is_empty() && messages.iter().all(alone);
        said.0.into_iter().for_each(|what| left_out.add(what));
        if !keeps {
            return self.passing.insert(unit);
        }
        let known = Known { messages: messages.to_vec(), unit, used: self.round };
        &self.known.entry(place).insert_entry(known).into_mut().unit
    }

    /// Forgets texts of messages that are no longer sent. Called when a body is written.
    pub fn forget_unused(&mut self) {
        let round = self.round;
        self.known.retain(|_, known| known.used == round);
        self.round += 1;
    }
}
