//! Forms of our edits that an upstream refuses, by model. One conversation learns it when the provider refuses its
//! request and takes it in another form; new edits of all conversations go by it, also after a restart. After a week it
//! is forgotten: servers get other templates.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use longhaul::{Time, Voice};
use longhaul_store::{Store, StoreError, UpstreamRefusal};
use longhaul_wire::api::Request;

use super::conversation::otherwise::OtherForm;
use super::conversation::{Conversation, now};
use super::{At, Call, Desk};

/// Refusals kept at most: clients choose the names of models, so there is no end to them.
const MOST: usize = 1_000;

/// More of a provider's sentence is not kept, in characters.
const SENTENCE: usize = 300;

/// What of ours a provider may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Text in this voice.
    Text(Voice),
    /// The tool that recalls.
    Tool,
}

impl Form {
    const ALL: [Self; 3] = [Self::Text(Voice::System), Self::Text(Voice::User), Self::Tool];

    fn name(self) -> &'static str {
        match self {
            Self::Text(voice) => voice.name(),
            Self::Tool => "tool",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// What is done with a call that the provider refused for what stands in it.
pub enum AfterRefusal {
    /// This call is sent, which is the same in another form.
    Send(Call),
    /// The client gets the answer.
    Answer(Call),
}

/// A request that is sent once more, in another form.
#[derive(Debug)]
pub(super) struct Retry {
    pub(super) tried: OtherForm,
    /// What the provider takes back by answering it.
    pub(super) refused: Option<Form>,
    /// What the provider said of the first one.
    pub(super) says: Box<str>,
}

/// What upstreams are known to refuse.
#[derive(Debug)]
pub(super) struct UpstreamRefusals {
    store: Arc<dyn Store>,
    /// When each was learnt.
    known: RwLock<HashMap<Key, Time>>,
}

/// An upstream, a model and a form.
type Key = (Box<str>, Box<str>, Form);

impl UpstreamRefusals {
    /// The refusals in the store.
    pub(super) fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let stored = store.refusals()?.into_iter();
        // A store of a later version may hold a form that is not known here.
        let known = stored.filter_map(|UpstreamRefusal { upstream, model, form, learnt, .. }| {
            Some(((upstream, model, Form::from_name(&form)?), learnt))
        });
        let known = RwLock::new(known.collect());
        Ok(Self { store, known })
    }

    /// True if the upstream is known to refuse the form.
    pub(super) fn has(&self, upstream: &str, model: &str, form: Form, now: Time) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // Most upstreams refuse nothing.
        !known.is_empty()
            && known
                .get(&(upstream.into(), model.into(), form))
                .is_some_and(|learnt| UpstreamRefusal::counts(*learnt, now))
    }

    /// The voice that new texts must have, where the upstream refuses one of them.
    pub(super) fn voice(&self, upstream: &str, model: &str, now: Time) -> Option<Voice> {
        let refuses = |voice| self.has(upstream, model, Form::Text(voice), now);
        match (refuses(Voice::User), refuses(Voice::System)) {
            (true, false) => Some(Voice::System),
            (false, true) => Some(Voice::User),
            // Where both are refused, neither is better.
            _ => None,
        }
    }

    /// The upstream refused a form. A refusal that cannot be stored is known until the gateway stops.
    fn learn(&self, refusal: &UpstreamRefusal, form: Form) {
        {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let key = (refusal.upstream.clone(), refusal.model.clone(), form);
            if known.len() >= MOST && !known.contains_key(&key) {
                known.retain(|_, learnt| UpstreamRefusal::counts(*learnt, refusal.learnt));
                if known.len() >= MOST {
                    return;
                }
            }
            known.insert(key, refusal.learnt);
        }
        if let Err(error) = self.store.keep_refusal(refusal) {
            tracing::warn!(%error, "what an upstream refuses was not stored");
        }
    }
}

impl Call {
    /// True if it is a request that the provider refused, in another form.
    pub(crate) fn is_retry(&self) -> bool {
        self.retry.is_some()
    }

    /// The same, if the other form is not the client's own.
    pub(crate) fn is_in_a_form_of_ours(&self) -> bool {
        self.retry.as_ref().is_some_and(|retry| retry.tried != OtherForm::Own)
    }
}

impl Desk {
    /// The provider refused what stands in a call, in these words. What to send instead, if anything of it is ours; what
    /// was tried last is reverted first.
    pub fn refused_content(&self, mut call: Call, says: &str, is_too_long: bool) -> AfterRefusal {
        let retry = call.retry.take();
        let next = self.in_another_form(&call, retry, says, is_too_long);
        next.map_or(AfterRefusal::Answer(call), AfterRefusal::Send)
    }

    fn in_another_form(
        &self,
        call: &Call,
        retry: Option<Retry>,
        says: &str,
        is_too_long: bool,
    ) -> Option<Call> {
        let At { conversation: shared, upstream, request, .. } = call.at.as_ref()?;
        let request = request.as_ref()?;
        let mut conversation = shared.lock().ok()?;
        if conversation.new_from(request) != Some(request.messages().len()) {
            // Another request has gone on from here meanwhile.
            return None;
        }
        // What other calls have cost is not booked again when a form is taken back.
        conversation.settle(&self.books);
        let model = request.frame().model.clone().unwrap_or_default();
        let refuses = |form| self.refusals.has(upstream, &model, form, now());
        let (says, after) = match retry {
            Some(retry) => (retry.says, Some(retry.tried)),
            // What the client sent is for the client to put right.
            None if call.body.is_none() => return None,
            None => (says.into(), None),
        };
        let otherwise = match after {
            // The client's own bytes are refused too: it is nothing of ours.
            Some(OtherForm::Own) if !is_too_long => None,
            after => conversation.otherwise(request, after, refuses),
        };
        let Some(otherwise) = otherwise else {
            self.revert(&mut conversation, Some(request));
            return None;
        };
        self.live.keeps(shared.id, conversation.thinking_outside());
        let at = At::new(otherwise.ticket, shared.clone(), upstream.clone());
        let mut next = super::call(&self.books, &mut conversation, otherwise.request, call.how, at);
        if let Some(body) = otherwise.body {
            next.body = (!body.is_clients()).then(|| String::from(body).into());
        }
        next.retry = Some(Retry { tried: otherwise.tried, refused: otherwise.refused, says });
        Some(next)
    }

    /// A call that was sent in another form ends. Taken, it stays so, and its upstream is known to refuse the first form;
    /// otherwise the conversation is as it was before it.
    pub fn retried(&self, call: &mut Call, is_taken: bool) {
        let Some((at, retry)) = call.at.as_ref().zip(call.retry.take()) else { return };
        let Ok(mut conversation) = at.conversation.lock() else { return };
        if !is_taken {
            return self.revert(&mut conversation, at.request.as_ref());
        }
        conversation.keep_retry(retry.refused);
        let Some((form, request)) = retry.refused.zip(at.request.as_ref()) else { return };
        self.learn_refusal(at, request.frame().model.as_deref().unwrap_or_default(), form, &retry.says);
    }

    /// The conversation is as it was before the form that was tried, also for requests that go on without it.
    fn revert(&self, conversation: &mut Conversation, request: Option<&Request>) {
        if conversation.take_back_retry()
            && let Some(last) = request.and_then(|request| conversation.last_sent(request))
        {
            self.live.sent(Arc::new(last), None);
        }
    }

    fn learn_refusal(&self, at: &At, model: &str, form: Form, says: &str) {
        let says: String = says.split_whitespace().collect::<Vec<_>>().join(" ");
        let says: String = says.chars().take(SENTENCE).collect();
        // A provider may quote what somebody said.
        let kept = if self.settings().without_content { "" } else { &*says };
        tracing::warn!(upstream = %at.upstream, model, form = form.name(), "the provider refuses a form of our edits, and takes another: `longhaul doctor` shows its words");
        let refusal = UpstreamRefusal {
            upstream: (&*at.upstream).into(),
            model: model.into(),
            form: form.name().into(),
            says: kept.into(),
            learnt: now(),
        };
        self.refusals.learn(&refusal, form);
    }
}
