//! The guard: what must hold for every view, as twelve named rules. An edit is checked before it
//! is made, at the cost of the edit; a whole view can be audited, at the cost of the view. An
//! edit that would break a rule is refused with the rule's name.

mod audit;
mod audited;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::conversation::bond::{BondKind, bonds};
use crate::conversation::log::{Log, Position, Span, Stays};
use crate::conversation::message::{Block, Message, Role, Seal};
use crate::edits::edit::{EditKind, Limit, Why};
use crate::edits::ledger::{Ledger, nests, reaches_beyond};
use crate::edits::unbound::is_signed;
use crate::size::tokens::Tokens;
use crate::summary::Asked;

pub(crate) use audit::Audit;
pub use audited::Audited;

/// What must hold for every view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Every call has its results in the same step; what belongs together stays together.
    BondsWhole,
    /// What came first stands first; edits are nested or disjoint.
    InOrder,
    /// The keep set is there, each item once.
    KeepSet,
    /// The current input and the newest step of the running turn are there, whole unless the
    /// hard limit leaves no room.
    CurrentInput,
    /// Signed or encrypted reasoning is whole or gone, in the running turn only with its step.
    SealedReasoning,
    /// What no edit touched is as it came.
    Untouched,
    /// No edit makes the view larger.
    NeverLarger,
    /// The view is within the hard limit.
    UnderLimit,
    /// The same log and ledger give the same view.
    Deterministic,
    /// What was taken out can be recalled.
    Recallable,
    /// A request that was answered stands with its answer, or with a word that it is done.
    AnswersTold,
    /// For a model that binds thinking, every signed block follows the prefix that produced it, and what was left out
    /// does not come back.
    BoundThinking,
}

impl Rule {
    /// All rules, in their order.
    pub const ALL: [Self; 12] = [
        Self::BondsWhole,
        Self::InOrder,
        Self::KeepSet,
        Self::CurrentInput,
        Self::SealedReasoning,
        Self::Untouched,
        Self::NeverLarger,
        Self::UnderLimit,
        Self::Deterministic,
        Self::Recallable,
        Self::AnswersTold,
        Self::BoundThinking,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::BondsWhole => "bonds-whole",
            Self::InOrder => "in-order",
            Self::KeepSet => "keep-set",
            Self::CurrentInput => "current-input",
            Self::SealedReasoning => "sealed-reasoning",
            Self::Untouched => "untouched",
            Self::NeverLarger => "never-larger",
            Self::UnderLimit => "under-limit",
            Self::Deterministic => "deterministic",
            Self::Recallable => "recallable",
            Self::AnswersTold => "answers-told",
            Self::BoundThinking => "bound-thinking",
        }
    }
}

/// Why an edit is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It would break a rule.
    #[error("{}: {what}", rule.name())]
    Breaks {
        /// Which.
        rule: Rule,
        /// How.
        what: &'static str,
    },
    /// A person took it back and wants it so.
    #[error("held: a person took this edit back")]
    Held,
    /// It names something that is not there.
    #[error("nothing to edit: {0}")]
    Nothing(&'static str),
}

/// A rule that does not hold for a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// How.
    pub what: String,
}

/// What an edit is checked against.
pub(crate) struct Check<'a> {
    pub(crate) log: &'a Log,
    pub(crate) ledger: &'a Ledger,
    pub(crate) why: Why,
    /// The first message whose thinking is bound to what stands before it, if the model binds any.
    pub(crate) first_bound: Option<Position>,
}

impl Check<'_> {
    /// Checks an edit that would replace `before` by `after`.
    pub(crate) fn edit(&self, kind: &EditKind, before: Tokens, after: Tokens) -> Result<(), Refusal> {
        match kind {
            EditKind::Fold { spans, .. } | EditKind::Hide { spans, .. } => self.runs(kind, spans)?,
            EditKind::Digest { at, block, .. } => self.digest(*at, *block)?,
            EditKind::DigestArgs { at, block, arguments } => {
                let Block::ToolCall(call) = self.block(*at, *block)? else {
                    return Err(Refusal::Nothing("the block is no call"));
                };
                self.inside(*at)?;
                if !arguments.is_object() && call.arguments.is_object() {
                    return breaks(Rule::BondsWhole, "arguments must stay an object");
                }
                if call.server {
                    return breaks(Rule::BondsWhole, "a tool of the provider stays as it is");
                }
                if self.log.is_of_tool_reference(*at, *block) {
                    return breaks(Rule::BondsWhole, "the call of a result that loads a tool stays");
                }
            }
            EditKind::DropThinking { at } => self.thinking(*at)?,
            EditKind::Answer { at, block, .. } => {
                if !matches!(self.block(*at, *block)?, Block::ToolResult(_)) {
                    return Err(Refusal::Nothing("the block is no result"));
                }
                // It may be longer than what it replaces.
                return self.digest(*at, *block);
            }
        }
        if self.leaves_open(kind) {
            return breaks(Rule::AnswersTold, "a request that was answered would seem open");
        }
        // What the new model cannot read goes, whatever a person wants.
        let must_go = matches!(self.why, Why::Forced(Limit::Hard) | Why::Switched | Why::Refused);
        if !must_go && self.is_held(kind) {
            return Err(Refusal::Held);
        }
        if after >= before {
            return breaks(Rule::NeverLarger, "the replacement is not smaller");
        }
        Ok(())
    }

    /// True if an edit that was made before may hold now: all it covers is there, and nothing
    /// of it must stay whole.
    pub(crate) fn may_hold(&self, kind: &EditKind) -> bool {
        let protected = self.log.protected();
        let hits = |span: &Span| protected.clone().any(|kept| span.overlaps(kept));
        let of_others = matches!(self.why, Why::Entry | Why::Host | Why::Switched | Why::Refused);
        let forced = (of_others || self.why == Why::Forced(Limit::Hard)) && !kind.replaces_runs();
        let spans = kind.spans();
        let open = self.log.waiting().filter(|_| kind.replaces_runs()).unwrap_or(self.log.end());
        // Sealed reasoning may go with a finished turn; in the running one it stays.
        let running = self.log.running_turn();
        let sealed = |at: Position| {
            let blocks = self.log.get(at).map(|message| message.blocks()).unwrap_or_default();
            blocks.iter().any(|block| matches!(block, Block::Thinking(thinking) if thinking.seal.is_sealed()))
        };
        let unsealed = matches!(kind, EditKind::DropThinking { at } if !matches!(self.why, Why::Switched | Why::Refused)
            && running.is_some_and(|turn| turn.contains(*at)) && sealed(*at));
        spans.iter().all(|span| span.end <= open) && (forced || !spans.iter().any(hits)) && !unsealed
    }

    /// True if it takes the answer to a request that stands in the view, and does not say so.
    fn leaves_open(&self, kind: &EditKind) -> bool {
        let (EditKind::Fold { spans, text, .. } | EditKind::Hide { spans, text }) = kind else {
            return false;
        };
        let goal = self.log.goal_message();
        let stands = |at: &Position| goal == Some(*at) || self.ledger.covering(*at).is_none();
        let mut asked = self.log.answered_by(spans).into_iter().filter(stands);
        asked.any(|at| Asked::of(self.log, at).done().is_some_and(|done| !text.contains(&done)))
    }

    fn is_held(&self, kind: &EditKind) -> bool {
        self.ledger.holds_any() && kind.spans().into_iter().any(|span| self.ledger.holds(span))
    }

    /// Whole units, in order, none of which must stay.
    fn runs(&self, kind: &EditKind, spans: &[Span]) -> Result<(), Refusal> {
        if spans.is_empty() || spans.iter().any(|span| span.is_empty() || span.end > self.log.end()) {
            return Err(Refusal::Nothing("a run is empty or past the end"));
        }
        let covered = |span: &Span| {
            let mut outer = self.ledger.overlapping(*span);
            outer.any(|(outer, id)| match outer == *span {
                // One run of an edit that has others.
                true => self.ledger.get(id).is_some_and(|other| reaches_beyond(&other.kind, kind)),
                false => outer.start <= span.start && span.end <= outer.end,
            })
        };
        if spans.iter().any(covered) {
            return Err(Refusal::Nothing("the run is inside an edit already"));
        }
        if spans.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return breaks(Rule::InOrder, "runs are not in order");
        }
        let has = |at: Position| spans.iter().any(|span| span.contains(at));
        if self.log.late_answers().iter().any(|late| has(late.call) != has(late.result)) {
            return breaks(Rule::BondsWhole, "a tool of the provider goes with its result");
        }
        let protected = self.log.protected();
        for span in spans {
            let first =
                self.log.unit_index(span.start).filter(|at| self.log.units()[*at].span.start == span.start);
            let last = self
                .log
                .unit_index(Position(span.end.0 - 1))
                .filter(|at| self.log.units()[*at].span.end == span.end);
            if first.is_none() || last.is_none() {
                return breaks(Rule::BondsWhole, "a run begins or ends inside a unit");
            }
            match self.log.stays_in(*span) {
                Some(Stays::System) => return breaks(Rule::KeepSet, "a system message stays"),
                Some(Stays::ToolReference) => {
                    return breaks(Rule::BondsWhole, "a result that loads a tool stays");
                }
                Some(Stays::UnfinishedCall) => {
                    return breaks(Rule::BondsWhole, "a result may still come for a tool of the provider");
                }
                None => {}
            }
            if self.log.waiting().is_some_and(|open| span.end > open) {
                return breaks(Rule::BondsWhole, "a result may still come for the step before");
            }
            if protected.clone().any(|kept| span.overlaps(kept)) {
                return breaks(Rule::CurrentInput, "the current input and the newest step stay");
            }
            for (_, id) in self.ledger.overlapping(*span) {
                let other = self.ledger.get(id);
                if other.is_some_and(|other| !nests(kind, &other.kind)) {
                    return breaks(Rule::InOrder, "it cuts across another edit");
                }
            }
        }
        Ok(())
    }

    fn digest(&self, at: Position, block: usize) -> Result<(), Refusal> {
        let message = self.message(at)?;
        match self.block(at, block)? {
            Block::Text(_) | Block::ToolResult(_) => {}
            _ => return Err(Refusal::Nothing("the block has no text")),
        }
        self.inside(at)?;
        if self.log.is_of_tool_reference(at, block) {
            return breaks(Rule::BondsWhole, "a result that loads a tool stays");
        }
        let bonded = self
            .log
            .bonds(at, message)
            .into_iter()
            .any(|bond| bond.kind == BondKind::ServerTool && bond.blocks.contains(&block));
        if bonded {
            return breaks(Rule::BondsWhole, "a tool of the provider stays as it is");
        }
        Ok(())
    }

    /// An edit inside a message: it is visible, and may be touched.
    fn inside(&self, at: Position) -> Result<(), Refusal> {
        let message = self.message(at)?;
        if message.role() == Role::System {
            return breaks(Rule::KeepSet, "a system message stays");
        }
        if self.ledger.covering(at).is_some() {
            return Err(Refusal::Nothing("the message is inside an edit already"));
        }
        let whole = self.log.protected().any(|span| span.contains(at));
        if whole && !matches!(self.why, Why::Entry | Why::Host | Why::Forced(Limit::Hard)) {
            return breaks(Rule::CurrentInput, "the current input and the newest step stay whole");
        }
        Ok(())
    }

    fn thinking(&self, at: Position) -> Result<(), Refusal> {
        let message = self.message(at)?;
        if self.ledger.covering(at).is_some() {
            return Err(Refusal::Nothing("the message is inside an edit already"));
        }
        let is_unbound = self.ledger.is_unbound(at);
        let mut thinking = message.blocks().iter().filter_map(|block| match block {
            Block::Thinking(thinking) if is_unbound && is_signed(&thinking.seal) => None,
            Block::Thinking(thinking) => Some(&thinking.seal),
            _ => None,
        });
        if thinking.clone().next().is_none() {
            return Err(Refusal::Nothing("the message has no thinking"));
        }
        // A foreign seal goes wherever it stands: no other model takes it.
        if matches!(self.why, Why::Switched | Why::Refused) {
            return Ok(());
        }
        if self.first_bound.is_some_and(|first| first < at) {
            return breaks(
                Rule::BoundThinking,
                "thinking goes from the oldest on: a gap invalidates what follows it",
            );
        }
        if bonds(message).iter().any(|bond| bond.kind == BondKind::Reasoning) {
            return breaks(Rule::BondsWhole, "a reasoning item goes with the item after it");
        }
        let running = self.log.running_turn().is_some_and(|turn| turn.contains(at));
        if running && thinking.any(Seal::is_sealed) {
            return breaks(
                Rule::SealedReasoning,
                "sealed reasoning of the running turn goes only with its step",
            );
        }
        let protected = self.log.newest_step().is_some_and(|step| step.span.contains(at));
        if protected && self.why != Why::Forced(Limit::Hard) {
            return breaks(Rule::CurrentInput, "the newest step stays whole");
        }
        Ok(())
    }

    fn message(&self, at: Position) -> Result<&Arc<Message>, Refusal> {
        self.log.get(at).ok_or(Refusal::Nothing("there is no such message"))
    }

    fn block(&self, at: Position, block: usize) -> Result<&Block, Refusal> {
        self.message(at)?.blocks().get(block).ok_or(Refusal::Nothing("there is no such block"))
    }
}

fn breaks(rule: Rule, what: &'static str) -> Result<(), Refusal> {
    Err(Refusal::Breaks { rule, what })
}
