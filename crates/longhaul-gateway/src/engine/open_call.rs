//! A call on its way to the provider, as the gateway holds it: what is sent, and how the desk is told of its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use longhaul::Tokens;
use longhaul::session::{Cramped, Overflow};
use longhaul_store::SessionId;

use super::{Engine, MOST_FOR_A_FOLD, asking_tools};
use crate::account::Costs;
use crate::another_form::FormVerdict;
use crate::ask_usage::Asking;
use crate::desk::{AfterRefusal, Break, Call, How, Reason, Rung};
use crate::reading::Heard;

/// What is said of a call in headers and logs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brief {
    pub(crate) session: SessionId,
    pub(crate) how: How,
    pub(crate) view: Tokens,
    pub(crate) full: Tokens,
    pub(crate) edits: usize,
    pub(crate) broke: Option<Break>,
    /// What the answer may have at most, where that is less than the client asks for.
    pub(crate) shorter_answer: Option<Tokens>,
    /// How little room there is for the next steps, when it is noticed.
    pub(crate) cramped: Option<Cramped>,
    /// The thinking of its answer would be refused if the client went on without Longhaul.
    pub(crate) is_tied: bool,
    /// What it is and why, where there was no decision.
    pub(crate) fallen: Option<(Rung, Reason)>,
    /// What the conversation has cost up to the call before, and what it would have cost otherwise.
    pub(crate) costs: Costs,
    /// The client's own bytes are sent, whatever was decided.
    pub(crate) is_observed: bool,
}

/// A call that is on its way. The desk hears of its end once, however it ends: also when this is dropped.
pub(crate) struct OpenCall {
    call: Option<Call>,
    engine: Engine,
    pub(crate) brief: Brief,
    /// The body to send; `None` if it is the client's own.
    pub(crate) body: Option<Bytes>,
    /// Whether usage is asked for where the client does not.
    pub(crate) asking: Asking,
}

impl OpenCall {
    pub(super) fn new(call: Call, engine: Engine) -> Self {
        let Call { session, how, view, full, edits, broke, asking, .. } = call;
        let Call { shorter_answer, cramped, is_tied, costs, is_observed, .. } = call;
        let brief = Brief {
            session,
            how,
            view,
            full,
            edits,
            broke,
            shorter_answer,
            cramped,
            is_tied,
            fallen: None,
            costs,
            is_observed,
        };
        let body = call.body.clone();
        Self { call: Some(call), engine, brief, body, asking }
    }

    /// A call that was made without a decision.
    pub(super) fn fallen(call: Call, engine: Engine, why: Reason) -> Self {
        let rung = call.rung;
        let mut open = Self::new(call, engine);
        open.brief.fallen = rung.map(|rung| (rung, why));
        open
    }

    /// The call is sent now.
    pub(crate) fn is_sent(&self) {
        let desk = &self.engine.queue.desk;
        // Without it the next request that is not decided goes on from an earlier one.
        self.call.iter().for_each(|call| _ = catch_unwind(AssertUnwindSafe(|| desk.is_sent(call))));
    }

    /// The call is not sent again: what it was made of goes, and what is needed for its end stays.
    pub(crate) fn settled(mut self) -> Self {
        self.body = None;
        self.call.iter_mut().for_each(Call::settle);
        self
    }

    /// The provider answered.
    pub(crate) fn answered(mut self, heard: Heard) {
        self.tell(heard);
    }

    /// The provider refused thinking in the call, from the block with this signature on if it named one. What to send
    /// instead.
    pub(crate) async fn refused_thinking(mut self, from: Option<String>) -> Option<Self> {
        const MOST: Duration = Duration::from_secs(10);
        let (call, engine) = (self.call.take()?, self.engine.clone());
        if let Some((_, why)) = self.brief.fallen {
            let sent = call.body.as_ref().map_or(0, Bytes::len);
            let next =
                self.engine.beside(MOST, sent, move |desk| desk.refused_thinking(call, from.as_deref()));
            return next.await.map(|call| Self::fallen(call, engine, why));
        }
        let next = self.engine.ask(MOST, move |desk| {
            desk.refused_thinking(call, from.as_deref()).map(|call| OpenCall::new(call, engine))
        });
        next.await.ok().flatten()
    }

    /// True if it is a request that the provider refused, in another form.
    pub(crate) fn is_retry(&self) -> bool {
        self.call.as_ref().is_some_and(Call::is_retry)
    }

    /// The same, if the other form is not the client's own.
    pub(crate) fn is_in_a_form_of_ours(&self) -> bool {
        self.call.as_ref().is_some_and(Call::is_in_a_form_of_ours)
    }

    /// The provider refused what stands in the call, in these words, or found it too long in the form that was tried last.
    pub(crate) async fn refused_content(mut self, says: Box<str>, is_too_long: bool) -> FormVerdict {
        const MOST: Duration = Duration::from_secs(10);
        let Some(call) = self.call.take() else { return FormVerdict::Answer(None) };
        let engine = self.engine.clone();
        let next = self.engine.ask(MOST, move |desk| match desk.refused_content(call, &says, is_too_long) {
            AfterRefusal::Send(call) => FormVerdict::Send(OpenCall::new(call, engine)),
            AfterRefusal::Answer(call) => FormVerdict::Answer(Some(OpenCall::new(call, engine))),
        });
        next.await.unwrap_or(FormVerdict::Answer(None))
    }

    /// The call was sent in another form, and the provider took it or not.
    pub(crate) async fn retried(mut self, is_taken: bool) -> Option<Self> {
        const MOST: Duration = Duration::from_secs(10);
        let (mut call, engine) = (self.call.take()?, self.engine.clone());
        let ended = self.engine.ask(MOST, move |desk| {
            desk.retried(&mut call, is_taken);
            OpenCall::new(call, engine)
        });
        ended.await.ok()
    }

    /// The provider refused the call as too long. What to send instead.
    pub(crate) async fn overflowed(mut self, overflow: Overflow) -> Option<Self> {
        let (call, engine) = (self.call.take()?, self.engine.clone());
        if let Some((_, why)) = self.brief.fallen {
            let next = self
                .engine
                .beside(MOST_FOR_A_FOLD, call.bytes(), move |desk| desk.overflowed(call, overflow));
            return next.await.map(|call| Self::fallen(call, engine, why));
        }
        let next = self.engine.ask(MOST_FOR_A_FOLD, move |desk| {
            desk.overflowed(call, overflow).map(|call| OpenCall::new(call, engine))
        });
        next.await.ok().flatten()
    }

    /// The provider refused the call as too long, and nothing is sent instead.
    pub(crate) fn refused(mut self, overflow: Overflow) {
        if let Some(call) = self.call.take() {
            self.engine.run(Box::new(move |desk| desk.refused(call, overflow)));
        }
    }

    fn tell(&mut self, heard: Heard) {
        /// What is stored behind an answer does not take the processor from the client that reads the answer.
        const WHILE_IT_IS_READ: Duration = Duration::from_micros(500);
        let Some(mut call) = self.call.take() else { return };
        let Heard { usage, seals, called } = heard;
        let desk = &self.engine.queue.desk;
        asking_tools::tell(&**desk, &call, called);
        _ = catch_unwind(AssertUnwindSafe(|| desk.heard(&mut call, usage.as_ref(), seals)));
        let waiting = self.engine.waiting.clone();
        self.engine.run(Box::new(move |desk| {
            if waiting.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(WHILE_IT_IS_READ);
            }
            desk.answered(call, usage.as_ref());
        }));
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.tell(Heard::default());
    }
}
