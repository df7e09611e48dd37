//! A request on its way to the provider, and where it belongs.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use longhaul::session::Cramped;
use longhaul::{Ticket, Tokens};
use longhaul_store::SessionId;
use longhaul_wire::api::Request;

use super::conversation::Conversation;
use super::falling_back::{Alone, Beginning, Rung};
use super::last_sent::LastSent;
use super::live::Shared;
use super::refusals::Retry;
use super::{Break, How};
use crate::account::Costs;
use crate::ask_usage::Asking;
use crate::books::Books;

/// A request of a known conversation on its way to the provider.
pub struct Call {
    /// The body to send; `None` if it is the client's own.
    pub body: Option<Bytes>,
    /// The stored session.
    pub session: SessionId,
    /// What it is to its conversation.
    pub how: How,
    /// Tokens that are sent.
    pub view: Tokens,
    /// Tokens of the whole conversation.
    pub full: Tokens,
    /// How many edits stand.
    pub edits: usize,
    /// Why it does not go on from what was sent before, if it does not.
    pub broke: Option<Break>,
    /// Whether usage is asked for where the client does not.
    pub(crate) asking: Asking,
    /// What the answer may have at most, where the provider refuses what the client asks for.
    pub(crate) shorter_answer: Option<Tokens>,
    /// How little room there is for the next steps, when it is noticed.
    pub(crate) cramped: Option<Cramped>,
    /// The thinking of its answer would be refused if the client went on without Longhaul.
    pub(crate) is_tied: bool,
    /// What the conversation has cost up to the call before, and what it would have cost otherwise.
    pub(crate) costs: Costs,
    /// The client's own bytes are sent, whatever was decided.
    pub(crate) is_observed: bool,
    /// What the answer said of its price was heard.
    pub(super) is_heard: bool,
    /// What it is, if there was no decision.
    pub(crate) rung: Option<Rung>,
    /// It is a request that the provider refused, in another form.
    pub(super) retry: Option<Retry>,
    /// Where it belongs; `None` for a call that no desk of ours made.
    pub(super) at: Option<At>,
    /// The same for a call that does not need its conversation.
    pub(super) alone: Option<Box<Alone>>,
}

/// Where a call belongs.
pub(super) struct At {
    pub(super) ticket: Ticket,
    pub(super) conversation: Shared,
    pub(super) upstream: Arc<str>,
    /// `None` from the time that the call is not sent again.
    pub(super) request: Option<Request>,
    /// What the next request can go on from, once it is sent.
    pub(super) last: Option<Arc<LastSent>>,
    /// It is not known yet: it begins with this call, without the store.
    pub(super) beginning: Option<Beginning>,
}

impl At {
    pub(super) fn new(ticket: Ticket, conversation: Shared, upstream: Arc<str>) -> Self {
        Self { ticket, conversation, upstream, request: None, last: None, beginning: None }
    }
}

impl Call {
    /// Bytes of a body that is not the client's own.
    pub(crate) fn bytes(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len)
    }

    /// The call is not sent again.
    pub(crate) fn settle(&mut self) {
        self.body = None;
        self.at.iter_mut().for_each(|at| (at.request, at.last) = (None, None));
        self.alone.iter_mut().for_each(|alone| alone.incoming = None);
    }

    /// A call of a desk that is not ours.
    #[doc(hidden)]
    pub fn of_nobody(body: Option<Bytes>, session: SessionId, how: How, view: Tokens, full: Tokens) -> Self {
        let asking = Asking::Unknown;
        Self {
            body,
            session,
            how,
            view,
            full,
            edits: 0,
            broke: None,
            asking,
            shorter_answer: None,
            cramped: None,
            is_tied: false,
            costs: Costs::default(),
            is_observed: false,
            is_heard: false,
            rung: None,
            retry: None,
            at: None,
            alone: None,
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing that anybody said.
        let Self { session, how, view, full, edits, .. } = self;
        write!(f, "Call {{ {session} {how:?}, {view} of {full}, {edits} edits }}")
    }
}

/// A call of a conversation that is ready.
pub(super) fn call(
    books: &Books,
    conversation: &mut Conversation,
    request: Request,
    how: How,
    at: At,
) -> Call {
    let body = (!conversation.is_observed()).then(|| conversation.body(&request));
    let body = body.filter(|body| !body.is_clients()).map(|body| Bytes::from(String::from(body)));
    let (view, full, edits) = conversation.figures();
    let asking = Asking::of(&request.frame().settings);
    let last = conversation.last_sent(&request).map(Arc::new);
    let at = At { request: Some(request), last, ..at };
    let session = conversation.id();
    // A conversation that begins has nothing before it.
    let broke = conversation.broke().filter(|_| !matches!(how, How::New | How::Forks));
    let shorter_answer = conversation.shorter_answer();
    Call {
        body,
        session,
        how,
        view,
        full,
        edits,
        broke,
        asking,
        shorter_answer,
        cramped: conversation.cramped(),
        is_tied: conversation.is_tied() && !conversation.is_observed(),
        costs: conversation.settle(books),
        is_observed: conversation.is_observed(),
        is_heard: false,
        rung: None,
        retry: None,
        at: Some(at),
        alone: None,
    }
}
