//! What Longhaul would have done to a conversation that it only observes: the client's own bytes are sent, and the session
//! goes on as if its views were. What the views would have lost is known as far as the model asks for it again.

use std::sync::Arc;

use longhaul::edits::Audited;
use longhaul::{EditKind, Message, Position, Session, ToolCall};

/// What was seen of conversations that Longhaul only observes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observed {
    /// Requests that were decided, and sent as they came.
    pub calls: u64,
    /// Calls of tools that the model had made before in the same words, and whose results our view no longer had whole.
    pub asked_again: u64,
    /// Requests whose answer has thinking that would be refused once the client went on without Longhaul.
    pub tied: u64,
    /// Rules of the guard that a view would have broken.
    pub violations: u64,
}

impl std::ops::AddAssign for Observed {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.asked_again += other.asked_again;
        self.tied += other.tied;
        self.violations += other.violations;
    }
}

/// Observes one conversation.
#[derive(Debug, Default)]
pub(super) struct Observer {
    audited: Audited,
    /// What was seen and is in no books.
    new: Observed,
}

impl Observer {
    /// Messages have come, and are not in the session yet: the view is that of the request before.
    pub(super) fn came(&mut self, session: &Session, messages: &[Arc<Message>]) {
        let calls = messages.iter().flat_map(|message| message.calls());
        self.new.asked_again += calls.filter(|call| was_left_out(session, call)).count() as u64;
    }

    /// A view is ready in the place of the client's request.
    pub(super) fn prepared(&mut self, session: &Session, is_tied: bool) {
        self.new.calls += 1;
        self.new.tied += u64::from(is_tied);
        let violations = session.audit_again(&mut self.audited);
        for violation in &violations {
            tracing::warn!(rule = ?violation.rule, "a view would have broken a rule of the guard");
        }
        self.new.violations += violations.len() as u64;
    }

    /// What was seen since this was asked last.
    pub(super) fn take(&mut self) -> Observed {
        std::mem::take(&mut self.new)
    }
}

/// True if the model has made this call before, and the view does not have its newest result whole.
fn was_left_out(session: &Session, call: &ToolCall) -> bool {
    let messages = session.log().messages();
    let is_same = |before: &ToolCall| before.name == call.name && before.arguments == call.arguments;
    let before = messages.iter().rev().flat_map(|message| message.calls()).find(|before| is_same(before));
    let Some(before) = before else { return false };
    let has_result = |message: &Arc<Message>| message.results().any(|result| result.id == before.id);
    let at = messages.iter().rposition(has_result).and_then(|at| u32::try_from(at).ok());
    at.is_some_and(|at| {
        let (at, ledger) = (Position(at), session.ledger());
        let is_shorter =
            |kind: &EditKind| !matches!(kind, EditKind::Answer { .. } | EditKind::DropThinking { .. });
        let mut inside = ledger.inside(at).iter().filter_map(|id| ledger.get(*id));
        ledger.covering(at).is_some() || inside.any(|edit| is_shorter(&edit.kind))
    })
}
