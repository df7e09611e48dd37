//! What is sent where the desk gives no decision: the request that was sent last with the new messages behind it, else a
//! fold of the request in hand alone. Neither waits for a conversation or for the store. What was sent is told to the
//! conversation, so that its next request extends that.

use std::sync::{Arc, MutexGuard};

use longhaul::{Models, Overflow, Ticket, Tokens};
use longhaul_store::SessionId;
use longhaul_wire::api::{Chain, Relay, Request};

use super::conversation::{Conversation, Refused, now, seals_of};
use super::finding::{self, is_side};
use super::last_sent::{GoingOn, LastSent, SentAlone};
use super::live::{Heard, Hint, Seat, Shared, Used};
use super::{At, Call, Desk, How, Incoming, KeptThinking, Reason, call};
use crate::ask_usage::Asking;

/// What goes out in the place of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rung {
    /// The request that was sent last of the conversation, and behind it the messages that are new, as they came.
    LastView,
    /// The request in hand, folded by itself.
    Stateless,
    /// The client's own bytes.
    Own,
}

impl Rung {
    /// A word for headers, logs and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::LastView => "last-view",
            Self::Stateless => "stateless",
            Self::Own => "own",
        }
    }
}

impl Reason {
    /// True if something of ours failed: then the client's own bytes may be too long for its provider.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::NoView | Self::Store | Self::Slow | Self::Panic)
    }
}

/// A call that does not need its conversation.
pub(super) struct Alone {
    last: Arc<LastSent>,
    told: Arc<SentAlone>,
    /// What it was made for; `None` from the time that the call is not sent again.
    pub(super) incoming: Option<Incoming>,
}

/// A conversation that begins with this call, until that is sent.
pub(super) struct Beginning {
    hints: Vec<Hint>,
    used: Used,
    /// Conversations that go no further than its request does: it goes on in their place.
    replaced: Vec<SessionId>,
}

impl Desk {
    /// What is sent where there was no decision, or where the client's own bytes were too long; `None` if that can only be
    /// the client's own bytes.
    pub fn fall_back(&self, incoming: &Incoming, overflow: Option<Overflow>) -> Option<Call> {
        if incoming.is_off() {
            return None;
        }
        self.last_view(incoming, overflow).or_else(|| self.stateless(incoming, overflow))
    }

    /// Whether the client's own bytes fit, as far as that can be told without reading them.
    pub fn fits(&self, incoming: &Incoming) -> bool {
        /// So few bytes of a body are a token of text.
        const LEAST_BYTES: u64 = 3;
        /// Most models have a larger window.
        const SMALL: Tokens = Tokens(100_000);
        let bytes = incoming.body.len();
        match self.live.last_sent(&incoming.hints()).iter().max_by_key(|last| last.read().messages().len()) {
            Some(last) => last.fits(bytes),
            None => bytes as u64 / LEAST_BYTES <= self.settings().window.unwrap_or(SMALL).0,
        }
    }

    /// A call is sent now: the next request of its conversation can go on from it.
    pub fn is_sent(&self, call: &Call) {
        let (last, told) = match (&call.alone, &call.at) {
            (Some(alone), _) => (&alone.last, Some(alone.told.clone())),
            (None, Some(At { last: Some(last), conversation, beginning, .. })) => {
                if let Some(Beginning { hints, used, replaced }) = beginning {
                    // Nobody else knows it yet.
                    conversation.try_lock().iter_mut().for_each(|begun| begun.was_sent());
                    replaced.iter().for_each(|id| self.live.supersede(*id));
                    self.live.used(conversation, hints, used.clone());
                }
                (last, None)
            }
            (None, _) => return,
        };
        self.live.sent(last.clone(), told);
    }

    /// The request that was sent last, and the messages that are new.
    fn last_view(&self, incoming: &Incoming, overflow: Option<Overflow>) -> Option<Call> {
        let (last, request) = self.goes_on_from(incoming)?;
        // Room for the answer, and for what the provider counts otherwise.
        let most = overflow.and_then(|overflow| overflow.believed_window());
        let most = most.map(|window| Tokens(window.0 / 10 * 9));
        let GoingOn { request, last, is_retry } = last.followed_by(request, most)?;
        let body = request.encode(incoming.api).body;
        if overflow.is_some() && body.is_clients() {
            // They were refused just now.
            return None;
        }
        let (view, full, edits) = last.figures();
        let told = Arc::new(last.told(request.frame().clone()));
        let mut call = Call::of_nobody(None, last.session, How::Extends, view, full);
        call.body = (!body.is_clients()).then(|| String::from(body).into());
        call.how = if is_retry { How::Retry } else { How::Extends };
        call.edits = edits;
        call.asking = Asking::of(&request.frame().settings);
        call.shorter_answer = last.shorter_answer();
        call.rung = Some(Rung::LastView);
        call.alone = Some(Box::new(Alone { last: Arc::new(last), told, incoming: Some(incoming.clone()) }));
        Some(call)
    }

    /// The longest request that was sent and that a request goes on from.
    fn goes_on_from(&self, incoming: &Incoming) -> Option<(Arc<LastSent>, Request)> {
        let read = |relay: Relay| {
            let request = relay.read(incoming.body.clone()).ok()?;
            Some(finding::with_betas(request, incoming))
        };
        let longest = |hints: &[Hint]| {
            let sent = self.live.last_sent(hints).into_iter();
            let going_on = sent.filter_map(|last| {
                let request = read(Relay::knowing(last.read()))?;
                let covered = last.covers(&request)?;
                let fits = !request.is_stateful_behind(covered) && self.follows(&last, &request, covered);
                fits.then_some((covered, last, request))
            });
            going_on.max_by_key(|(covered, ..)| *covered).map(|(_, last, request)| (last, request))
        };
        longest(&incoming.hints()).or_else(|| {
            // A client may begin its body otherwise each time: then it is found by what is said in it.
            let request = read(Relay::new(incoming.api))?;
            let identities = request.identities();
            let chains = Chain::start(&incoming.tenant, incoming.api).over(&identities);
            let hints: Vec<Hint> = chains.map(|chain| Hint(chain.bytes())).collect();
            longest(&hints)
        })
    }

    /// True if thinking in what is new was produced by the request that was sent last. A provider that binds thinking would
    /// refuse any other behind it.
    fn follows(&self, last: &LastSent, request: &Request, covered: usize) -> bool {
        let model = Models::builtin().find(request.frame().model.as_deref().unwrap_or_default());
        let new = &request.messages()[covered..];
        !model.binds || self.live.is_answer(last.session, new.iter().flat_map(|message| seals_of(message)))
    }

    /// A fold of the request in hand, by a conversation that begins with it. It becomes the client's conversation when it
    /// is sent.
    pub(super) fn stateless(&self, incoming: &Incoming, overflow: Option<Overflow>) -> Option<Call> {
        let hints = incoming.hints();
        let request = finding::read(&Relay::new(incoming.api), incoming).ok()?;
        if is_side(&request) {
            return None;
        }
        let made = self.begun_alone(incoming, request, &hints, overflow);
        made.inspect_err(|refused| tracing::debug!(%refused, "a request cannot be folded by itself")).ok()
    }

    fn begun_alone(
        &self,
        incoming: &Incoming,
        request: Request,
        hints: &[Hint],
        overflow: Option<Overflow>,
    ) -> Result<Call, Refused> {
        let model = request.frame().model.clone().unwrap_or_default();
        let settings = self.settings_for(&incoming.upstream, &model);
        if let Some(overflow) = overflow {
            self.learn(&incoming.upstream, &request, overflow);
        }
        let (about, store) = (self.about(incoming), self.store.clone());
        let mut begun = Conversation::begin(store, &settings, &about, incoming.api, &request);
        let request = begun.offering(request);
        let shared_window = self.upstream_limits.window(&incoming.upstream, &model, now());
        begun.speak_as(self.refusals.voice(&incoming.upstream, &model, now()));
        begun.take_in(&settings, &incoming.tenant, &request, shared_window)?;
        match self.live.thinking_outside(hints) {
            KeptThinking::All => {}
            KeptThinking::First(messages) => begun.keep_thinking(messages),
            // It may have been produced by a request of ours that nobody remembers.
            KeptThinking::Unknown => begun.keep_thinking(0),
        }
        let ticket = match overflow {
            // What was refused was not prepared here.
            Some(overflow) => begun.overflowed(Ticket(0), overflow)?,
            None => begun.prepare()?,
        };
        begun.came_with(incoming.account);
        let used = Used { bytes: begun.bytes(), outside: begun.thinking_outside(), end: begun.end() };
        let conversation = Seat::new(begun, incoming.tenant.clone());
        let mut locked = conversation.lock()?;
        let before = self.live.last_sent(hints).into_iter();
        let replaced =
            before.filter(|last| last.covers(&request).is_some()).map(|last| last.session).collect();
        let mut at = At::new(ticket, conversation.clone(), incoming.upstream.clone());
        at.beginning = Some(Beginning { hints: hints.to_vec(), used, replaced });
        let mut call = call(&self.books, &mut locked, request, How::New, at);
        call.rung = Some(Rung::Stateless);
        Ok(call)
    }

    /// The conversation for one request alone, with all that was sent without it.
    pub(super) fn lock<'a>(&self, shared: &'a Shared) -> Result<MutexGuard<'a, Conversation>, Refused> {
        let mut conversation = shared.lock()?;
        self.tell(shared, &mut conversation);
        Ok(conversation)
    }

    fn tell(&self, shared: &Shared, conversation: &mut Conversation) {
        let mut is_new = false;
        for sent in self.live.sent_alone(shared.id) {
            is_new |= conversation.catch_up(shared.tenant(), &sent);
        }
        if is_new && let Err(error) = conversation.caught_up() {
            tracing::warn!(session = %shared.id, %error, "what was sent without the conversation is not stored yet");
        }
    }

    /// The answer to a call that was sent without its conversation said this.
    pub(super) fn heard_alone(&self, alone: &Alone, heard: Heard) {
        let Heard { usage, seals, .. } = heard;
        self.live.answered_with(alone.told.session, &seals);
        if let Some((ticket, usage, seals)) = alone.told.hears(usage, seals)
            && let Some(shared) = self.live.get(alone.told.session)
        {
            shared.hears(Heard { ticket, usage, seals });
        }
    }

    /// A call that was sent without its conversation is over: it is told now if nobody works with it.
    pub(super) fn answered_alone(&self, alone: &Alone) {
        if let Some(shared) = self.live.get(alone.told.session)
            && let Some(mut conversation) = shared.try_lock()
        {
            self.tell(&shared, &mut conversation);
        }
    }

    /// A call that was sent without its conversation was refused: the conversation need not know.
    pub(super) fn refused_alone(&self, alone: &Alone) {
        self.live.was_refused(&alone.told);
    }

    /// A call that was sent without its conversation was too long. What to send instead.
    pub(super) fn overflowed_alone(&self, alone: &Alone, overflow: Overflow) -> Option<Call> {
        self.refused_alone(alone);
        self.stateless(alone.incoming.as_ref()?, Some(overflow))
    }
}
