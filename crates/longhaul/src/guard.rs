//! The guard: what must hold for every view, as ten named rules. An edit is checked before it
//! is made, at the cost of the edit; a whole view can be audited, at the cost of the view. An
//! edit that would break a rule is refused with the rule's name.

use std::collections::HashSet;
use std::sync::Arc;

use crate::archive::{Archive, Handle};
use crate::bond::{BondKind, bonds};
use crate::budget::Budget;
use crate::edit::{EditKind, Limit, Why};
use crate::keep::{KeepItem, KeepKey};
use crate::ledger::{Ledger, nests};
use crate::log::{At, Log, Span};
use crate::message::{Block, Message, Role, Seal};
use crate::meter::{Measure, Meter};
use crate::step::UnitKind;
use crate::tokens::Tokens;
use crate::view::{Source, Sources, View};

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
}

impl Rule {
    /// All rules, in their order.
    pub const ALL: [Self; 10] = [
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
            }
            EditKind::DropThinking { at } => self.thinking(*at)?,
        }
        if self.why != Why::Forced(Limit::Hard) && self.is_held(kind) {
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
        let protected = [self.log.current_input(), self.log.newest_step().map(|unit| unit.span)];
        let hits = |span: &Span| {
            protected.iter().flatten().any(|kept| span.start < kept.end && kept.start < span.end)
        };
        let forced = matches!(self.why, Why::Entry | Why::Rule | Why::Forced(Limit::Hard)) && !kind.is_fold();
        let spans = kind.spans();
        let open = self.log.waiting().filter(|_| kind.is_fold()).unwrap_or(self.log.end());
        spans.iter().all(|span| span.end <= open) && (forced || !spans.iter().any(hits))
    }

    fn is_held(&self, kind: &EditKind) -> bool {
        let mut ats = kind.spans().into_iter().flat_map(|span| span.range());
        self.ledger.holds_any() && ats.any(|at| self.ledger.is_held(At(at as u32)))
    }

    /// Whole units, in order, none of which must stay.
    fn runs(&self, kind: &EditKind, spans: &[Span]) -> Result<(), Refusal> {
        if spans.is_empty() || spans.iter().any(|span| span.is_empty() || span.end > self.log.end()) {
            return Err(Refusal::Nothing("a run is empty or past the end"));
        }
        let covered = |span: &Span| {
            let mut outer = self.ledger.overlapping(*span);
            outer.any(|(outer, _)| outer != *span && outer.start <= span.start && span.end <= outer.end)
        };
        if spans.iter().any(covered) {
            return Err(Refusal::Nothing("the run is inside an edit already"));
        }
        if spans.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return breaks(Rule::InOrder, "runs are not in order");
        }
        let protected = [self.log.current_input(), self.log.newest_step().map(|unit| unit.span)];
        for span in spans {
            let first =
                self.log.unit_index(span.start).filter(|at| self.log.units()[*at].span.start == span.start);
            let last = self
                .log
                .unit_index(At(span.end.0 - 1))
                .filter(|at| self.log.units()[*at].span.end == span.end);
            let (Some(first), Some(last)) = (first, last) else {
                return breaks(Rule::BondsWhole, "a run begins or ends inside a unit");
            };
            if self.log.units()[first..=last].iter().any(|unit| unit.kind == UnitKind::System) {
                return breaks(Rule::KeepSet, "a system message stays");
            }
            if self.log.waiting().is_some_and(|open| span.end > open) {
                return breaks(Rule::BondsWhole, "a result may still come for the step before");
            }
            let hits = |kept: &Span| span.start < kept.end && kept.start < span.end;
            if protected.iter().flatten().any(hits) {
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

    fn digest(&self, at: At, block: usize) -> Result<(), Refusal> {
        let message = self.message(at)?;
        match self.block(at, block)? {
            Block::Text(_) | Block::ToolResult(_) => {}
            _ => return Err(Refusal::Nothing("the block has no text")),
        }
        self.inside(at)?;
        let bonded = bonds(message)
            .into_iter()
            .any(|bond| bond.kind == BondKind::ServerTool && bond.blocks.contains(&block));
        if bonded {
            return breaks(Rule::BondsWhole, "a tool of the provider stays as it is");
        }
        Ok(())
    }

    /// An edit inside a message: it is visible, and may be touched.
    fn inside(&self, at: At) -> Result<(), Refusal> {
        let message = self.message(at)?;
        if message.role() == Role::System {
            return breaks(Rule::KeepSet, "a system message stays");
        }
        if self.ledger.covering(at).is_some() {
            return Err(Refusal::Nothing("the message is inside an edit already"));
        }
        let protected = [self.log.current_input(), self.log.newest_step().map(|unit| unit.span)];
        let whole = protected.iter().flatten().any(|span| span.contains(at));
        if whole && !matches!(self.why, Why::Entry | Why::Forced(Limit::Hard)) {
            return breaks(Rule::CurrentInput, "the current input and the newest step stay whole");
        }
        Ok(())
    }

    fn thinking(&self, at: At) -> Result<(), Refusal> {
        let message = self.message(at)?;
        if self.ledger.covering(at).is_some() {
            return Err(Refusal::Nothing("the message is inside an edit already"));
        }
        let mut thinking = message.blocks().iter().filter_map(|block| match block {
            Block::Thinking(thinking) => Some(&thinking.seal),
            _ => None,
        });
        let any = thinking.clone().next().is_some();
        if !any {
            return Err(Refusal::Nothing("the message has no thinking"));
        }
        // A foreign seal goes wherever it stands: no other model takes it.
        if self.why == Why::Rule {
            return Ok(());
        }
        if bonds(message).iter().any(|bond| bond.kind == BondKind::Reasoning) {
            return breaks(Rule::BondsWhole, "encrypted reasoning goes with the item after it");
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

    fn message(&self, at: At) -> Result<&Arc<Message>, Refusal> {
        self.log.get(at).ok_or(Refusal::Nothing("there is no such message"))
    }

    fn block(&self, at: At, block: usize) -> Result<&Block, Refusal> {
        self.message(at)?.blocks().get(block).ok_or(Refusal::Nothing("there is no such block"))
    }
}

fn breaks(rule: Rule, what: &'static str) -> Result<(), Refusal> {
    Err(Refusal::Breaks { rule, what })
}

/// A view and all that it is judged by.
pub(crate) struct Audit<'a> {
    pub(crate) log: &'a Log,
    pub(crate) ledger: &'a Ledger,
    pub(crate) meter: &'a Meter,
    pub(crate) sizes: &'a [Measure],
    pub(crate) view: &'a View,
    pub(crate) items: &'a [KeepItem],
    pub(crate) budget: &'a Budget,
    pub(crate) archive: &'a dyn Archive,
}

impl Audit<'_> {
    /// All rules that do not hold.
    pub(crate) fn run(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for rule in Rule::ALL {
            let faults = match rule {
                Rule::BondsWhole => self.bonds(),
                Rule::InOrder => self.order(),
                Rule::KeepSet => self.keep_set(),
                Rule::CurrentInput => self.current_input(),
                Rule::SealedReasoning => self.sealed(),
                Rule::Untouched => self.untouched(),
                Rule::NeverLarger => self.never_larger(),
                Rule::UnderLimit => self.under_limit(),
                Rule::Deterministic => self.deterministic(),
                Rule::Recallable => self.recallable(),
            };
            found.extend(faults.into_iter().map(|what| Violation { rule, what }));
        }
        found
    }

    fn bonds(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let (mut open, mut ids): (HashSet<&str>, HashSet<&str>) = Default::default();
        for part in self.view.parts() {
            let message = &part.message;
            let answers = message.role() != Role::Assistant && message.results().next().is_some();
            if !answers && !open.is_empty() {
                faults.push(format!("calls without a result: {open:?}"));
                open.clear();
            }
            for block in message.blocks() {
                match block {
                    Block::ToolCall(call) => {
                        if !ids.insert(&call.id) {
                            faults.push(format!("the id {} is used twice", call.id));
                        }
                        if !call.server {
                            open.insert(&call.id);
                        }
                    }
                    Block::ToolResult(result)
                        if !open.remove(&*result.id) && message.role() != Role::Assistant =>
                    {
                        faults.push(format!("no call for the result {}", result.id));
                    }
                    _ => {}
                }
            }
        }
        if !open.is_empty() {
            faults.push(format!("calls without a result at the end: {open:?}"));
        }
        for (at, shown, came) in self.edited_messages() {
            if shown.calls().count() != came.calls().count() {
                faults.push(format!("message {} lost a call", at.0));
            }
            let objects =
                |message: &Message| message.calls().filter(|call| call.arguments.is_object()).count();
            if objects(shown) < objects(&came) {
                faults.push(format!("arguments of message {} are no object", at.0));
            }
            faults.extend(self.broken_bonds(at, shown, &came));
        }
        for (span, id) in self.ledger.outermost() {
            let begins = self.log.unit_of(span.start).is_some_and(|unit| unit.span.start == span.start);
            let ends = self.log.unit_of(At(span.end.0 - 1)).is_some_and(|unit| unit.span.end == span.end);
            if !(begins && ends) || self.log.waiting().is_some_and(|open| span.end > open) {
                faults.push(format!("edit {} cuts inside a unit", id.0));
            }
        }
        faults
    }

    /// Bonds inside a message: what the provider ran itself is as it came, and encrypted
    /// reasoning goes only where no model can read it any more.
    fn broken_bonds(&self, at: At, shown: &Message, came: &Message) -> Vec<String> {
        let foreign = self.is_foreign(at);
        let broken = |kind: BondKind, blocks: &[usize]| match kind {
            BondKind::ServerTool => {
                blocks.iter().any(|block| !shown.blocks().contains(&came.blocks()[*block]))
            }
            BondKind::Reasoning => {
                !foreign
                    && blocks.iter().any(|block| !shown.blocks().contains(&came.blocks()[*block]))
                    && self.ledger.dropped_thinking(at)
            }
            BondKind::Thinking => false,
        };
        let bonds = bonds(came).into_iter().filter(|bond| broken(bond.kind, &bond.blocks));
        bonds.map(|bond| format!("a {:?} bond of message {} is broken", bond.kind, at.0)).collect()
    }

    /// The model changed: reasoning that only another can read went.
    fn is_foreign(&self, at: At) -> bool {
        let edits = self.ledger.inside(at).iter().filter_map(|id| self.ledger.get(*id));
        edits.into_iter().any(|edit| edit.why == Why::Rule)
    }

    fn order(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut last = None;
        for part in self.view.parts() {
            let at = match part.source {
                Source::Message(at) => Some(self.log.unit_of(at).map_or(at, |unit| unit.span.start)),
                Source::Edit(id) => self.ledger.get(id).and_then(|edit| match &edit.kind {
                    EditKind::Fold { placement: crate::edit::Placement::SystemHint, .. } => None,
                    kind => kind.spans().first().map(|span| span.start),
                }),
                Source::Rules | Source::Tail => None,
            };
            if at.is_some() && at < last {
                faults.push(format!("{:?} stands after a later one", part.source));
            }
            last = at.or(last);
        }
        let active: Vec<_> =
            self.ledger.edits().filter(|(_, active)| *active).map(|(edit, _)| edit).collect();
        let runs: Vec<_> = active.iter().filter(|edit| edit.kind.is_fold()).collect();
        for (n, a) in runs.iter().enumerate() {
            if a.kind.spans().windows(2).any(|pair| pair[0].end > pair[1].start) {
                faults.push(format!("runs of edit {} are not in order", a.id.0));
            }
            for b in &runs[n + 1..] {
                if !nests(&a.kind, &b.kind) {
                    faults.push(format!("edits {} and {} cut across each other", a.id.0, b.id.0));
                }
            }
        }
        faults
    }

    fn keep_set(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let shown: HashSet<At> = self
            .view
            .parts()
            .iter()
            .filter_map(|part| match part.source {
                Source::Message(at) => Some(at),
                _ => None,
            })
            .collect();
        for unit in self.log.units().iter().filter(|unit| unit.kind == UnitKind::System) {
            let blank = self.log.show(std::slice::from_ref(unit)).next().is_none();
            if self.is_cut(unit.span.start) {
                faults.push(format!("system message {} is cut", unit.span.start.0));
            }
            if !blank && !shown.contains(&unit.span.start) {
                faults.push(format!("system message {} is gone", unit.span.start.0));
            }
        }
        let folds: Vec<_> = self
            .view
            .parts()
            .iter()
            .filter_map(|part| match part.source {
                Source::Edit(id) => self.ledger.get(id),
                _ => None,
            })
            .collect();
        let tail = self.view.tail().map(|tail| crate::keep::text_of(&tail.message)).unwrap_or_default();
        for item in self.items {
            let kept = |kind: &EditKind| match kind {
                EditKind::Fold { kept, .. } => {
                    kept.iter().any(|kept| kept.key == item.key && kept.text == item.handle)
                }
                _ => false,
            };
            let in_folds = folds.iter().filter(|edit| kept(&edit.kind)).count();
            let in_place = item.source.is_some_and(|at| shown.contains(&at) && !self.is_cut(at));
            let in_rules = matches!(item.key, KeepKey::Rules(_))
                && self.ledger.rules().is_some_and(|rules| contains(rules, item));
            let in_tail = contains(&tail, item);
            let places = in_folds + usize::from(in_place) + usize::from(in_rules) + usize::from(in_tail);
            let cut_in_place = item.source.is_some_and(|at| shown.contains(&at) && self.is_cut(at));
            if places != 1 && !(places == 0 && cut_in_place) && !item.text.trim().is_empty() {
                faults.push(format!("{:?} is there {places} times", item.key));
            }
        }
        faults
    }

    fn is_cut(&self, at: At) -> bool {
        !self.ledger.inside(at).is_empty()
    }

    fn current_input(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let protected = [self.log.current_input(), self.log.newest_step().map(|unit| unit.span)];
        for span in protected.into_iter().flatten() {
            for at in span.range().map(|at| At(at as u32)) {
                if let Some((_, id)) = self.ledger.covering(at) {
                    faults.push(format!("message {} is inside edit {}", at.0, id.0));
                }
                for id in self.ledger.inside(at) {
                    let Some(edit) = self.ledger.get(*id) else { continue };
                    if !matches!(edit.why, Why::Entry | Why::Rule | Why::Forced(Limit::Hard)) {
                        faults.push(format!(
                            "message {} is cut by edit {} ({})",
                            at.0,
                            id.0,
                            edit.why.name()
                        ));
                    }
                }
            }
        }
        faults
    }

    fn sealed(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let running = self.log.running_turn();
        for (at, shown, came) in self.edited_messages() {
            let seals = |message: &Message| {
                message
                    .blocks()
                    .iter()
                    .filter(|b| matches!(b, Block::Thinking(t) if t.seal.is_sealed()))
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let (now, then) = (seals(shown), seals(&came));
            if !now.is_empty() && now != then {
                faults.push(format!("sealed reasoning of message {} was altered", at.0));
            }
            let foreign = self.is_foreign(at);
            if now.is_empty() && !then.is_empty() && running.is_some_and(|turn| turn.contains(at)) && !foreign
            {
                faults.push(format!("sealed reasoning of message {} in the running turn is gone", at.0));
            }
        }
        faults
    }

    /// Shown messages that an edit touched, with what they would be without it.
    fn edited_messages(&self) -> Vec<(At, &Message, Arc<Message>)> {
        let edited = self.view.parts().iter().filter_map(|part| match part.source {
            Source::Message(at) if !self.ledger.inside(at).is_empty() => Some((at, &*part.message)),
            _ => None,
        });
        // A placeholder or a note stems from a message without being it: roles tell.
        let unedited = |at: At, role: Role| {
            let shown = self.log.show(std::slice::from_ref(self.log.unit_of(at)?)).collect::<Vec<_>>();
            shown.into_iter().find_map(|shown| match shown {
                crate::repair::Shown::AsIs(here) => self.log.get(here).filter(|_| here == at).cloned(),
                crate::repair::Shown::Made(here, message) => {
                    (here == at && message.role() == role).then_some(message)
                }
            })
        };
        let pairs = edited.filter_map(|(at, shown)| Some((at, shown, unedited(at, shown.role())?)));
        pairs.filter(|(_, shown, came)| shown.role() == came.role()).collect()
    }

    fn untouched(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut parts = self.view.parts().iter().peekable();
        while let Some(part) = parts.next() {
            let Source::Message(at) = part.source else { continue };
            let Some(unit) = self.log.unit_of(at) else { continue };
            if unit.span.range().any(|at| !self.ledger.inside(At(at as u32)).is_empty()) {
                continue;
            }
            let mut shown = vec![part];
            while let Some(next) =
                parts.next_if(|next| matches!(next.source, Source::Message(at) if unit.span.contains(at)))
            {
                shown.push(next);
            }
            let expected: Vec<_> = self.log.show(std::slice::from_ref(unit)).collect();
            let same = expected.len() == shown.len()
                && expected.iter().zip(shown).all(|(expected, part)| match expected {
                    crate::repair::Shown::AsIs(at) => {
                        self.log.get(*at).is_some_and(|came| Arc::ptr_eq(came, &part.message))
                    }
                    crate::repair::Shown::Made(_, message) => *message == part.message,
                });
            if !same {
                faults.push(format!("unit at {} is not as it came", unit.span.start.0));
            }
        }
        faults
    }

    fn never_larger(&self) -> Vec<String> {
        let larger = self.ledger.edits().filter(|(edit, active)| *active && edit.after >= edit.before);
        larger
            .map(|(edit, _)| format!("edit {} replaces {} tokens by {}", edit.id.0, edit.before, edit.after))
            .collect()
    }

    fn under_limit(&self) -> Vec<String> {
        let size = self.meter.estimate(self.view.measure()).tokens;
        if size <= self.budget.hard {
            vec![]
        } else {
            vec![format!("{size} tokens, limit {}", self.budget.hard)]
        }
    }

    fn deterministic(&self) -> Vec<String> {
        let mut anew = View::default();
        anew.set_fixed(self.view.fixed());
        anew.follow(Sources { log: self.log, ledger: self.ledger, meter: self.meter, sizes: self.sizes });
        let same = anew.parts().len() == self.view.parts().len()
            && anew.parts().iter().zip(self.view.parts()).all(|(a, b)| {
                a.source == b.source
                    && a.measure == b.measure
                    && (Arc::ptr_eq(&a.message, &b.message) || a.message == b.message)
            });
        if same { vec![] } else { vec!["the view made anew differs".to_owned()] }
    }

    fn recallable(&self) -> Vec<String> {
        let active = self.ledger.edits().filter(|(_, active)| *active);
        let lost = active.flat_map(|(edit, _)| edit.originals.iter().map(move |handle| (edit.id, *handle)));
        let lost = lost
            .filter(|(_, handle)| self.archive.get(*handle).is_none_or(|text| Handle::of(&text) != *handle));
        lost.map(|(id, handle)| format!("the original {handle} of edit {} cannot be recalled", id.0))
            .collect()
    }
}

/// True if the item stands in a text as it is shown.
fn contains(text: &str, item: &KeepItem) -> bool {
    text.contains(&crate::keep::render(std::slice::from_ref(item)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::archive::Original;
    use crate::edit::{Edit, EditPrice, Placement};
    use crate::json::{Extra, Json};
    use crate::ledger::Event;
    use crate::message::{Thinking, ToolCall};
    use crate::models::Models;
    use crate::profile::Profile;
    use crate::session::{Prepared, Session};

    /// A conversation with every kind of thing an edit may not touch.
    fn log() -> impl Strategy<Value = Vec<Message>> {
        let round = (0..5u8, 1..4usize, any::<bool>()).prop_map(|(kind, calls, answered)| {
            let thinking = |seal| {
                Block::Thinking(Thinking { text: "thought ".repeat(20).into(), seal, extra: Extra::NONE })
            };
            let call = |server| {
                let arguments = Json::new(format!("{{\"text\":\"{}\"}}", "x".repeat(600))).unwrap();
                Block::ToolCall(ToolCall {
                    id: "c".into(),
                    name: "Write".into(),
                    arguments,
                    server,
                    extra: Extra::NONE,
                })
            };
            let mut blocks = match kind {
                0 => vec![thinking(Seal::Signed("s".into()))],
                1 => vec![thinking(Seal::Encrypted("e".into()))],
                2 => vec![thinking(Seal::Open)],
                3 => vec![call(true), Block::result("c", "hits ".repeat(200))],
                _ => vec![Block::text("words ".repeat(100))],
            };
            blocks.extend((0..calls - 1).map(|_| call(false)));
            let mut messages = vec![Message::new(Role::Assistant, blocks)];
            messages.extend((0..calls - 1).map(|_| Message::result("c", "line of a result\n".repeat(60))));
            if !answered {
                messages.pop();
            }
            messages
        });
        let other = prop_oneof![
            2 => Just(vec![Message::user("do this ".repeat(30))]),
            1 => Just(vec![Message::system("rule ".repeat(30))]),
        ];
        prop::collection::vec(prop_oneof![3 => round, 1 => other], 2..12).prop_map(|all| all.concat())
    }

    fn kind() -> impl Strategy<Value = EditKind> {
        let at = || (0..24u32).prop_map(At);
        let span = (0..20u32, 1..8u32).prop_map(|(start, len)| Span::new(start, start + len));
        let spans = prop::collection::vec(span, 1..3);
        let text = || prop_oneof![4 => Just("short"), 1 => Just("")].prop_map(Box::from);
        prop_oneof![
            (at(), 0..4usize, text()).prop_map(|(at, block, text)| EditKind::Digest { at, block, text }),
            (at(), 0..4usize, any::<bool>()).prop_map(|(at, block, object)| {
                let arguments = Json::new(if object { "{}" } else { "[]" }).unwrap();
                EditKind::DigestArgs { at, block, arguments }
            }),
            at().prop_map(|at| EditKind::DropThinking { at }),
            (spans.clone(), text()).prop_map(|(spans, text)| EditKind::Hide { spans, text }),
            (spans, text()).prop_map(|(spans, text)| EditKind::Fold {
                spans,
                placement: Placement::InPlace,
                kept: vec![],
                text
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// What the check lets through, the audit finds nothing wrong with; what it refuses by
        /// a rule, the audit finds once it is made all the same.
        #[test]
        fn the_check_of_an_edit_and_the_audit_of_the_view_agree(messages in log(), kinds in prop::collection::vec(kind(), 1..6)) {
            let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone()).with_window(Tokens(1 << 30));
            for message in messages {
                session.push(message);
            }
            prop_assert!(matches!(session.prepare(None), Ok(Prepared::Ready(_))));
            for kind in kinds {
                let (before, after) = (Tokens(100), Tokens(if matches!(&kind, EditKind::Hide { text, .. } if text.is_empty()) { 100 } else { 5 }));
                let why = Why::Asked;
                let verdict = session.check_edit(&kind, why, before, after);
                if matches!(verdict, Err(Refusal::Nothing(_) | Refusal::Held)) {
                    continue;
                }
                let mut trial = session.clone();
                let original = Original::Text("o".into());
                let handle = original.handle();
                trial.force(Event::Apply(Edit {
                    id: trial.ledger().next_id(), kind: kind.clone(), strategy: "test".into(), why, before, after,
                    price: EditPrice::default(), originals: vec![handle], depends: vec![],
                }), handle, original);
                let found = trial.audit();
                match verdict {
                    Ok(()) => {
                        prop_assert_eq!(&found, &[], "{:?}", kind);
                        session = trial;
                    }
                    Err(refusal) => prop_assert!(!found.is_empty(), "{:?} was refused ({}) and nothing is wrong", kind, refusal),
                }
            }
        }
    }
}
