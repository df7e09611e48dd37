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
                self.inside(*at)?;
                match self.block(*at, *block)? {
                    Block::ToolCall(_) if !arguments.is_object() => {
                        return breaks(Rule::BondsWhole, "arguments must stay an object");
                    }
                    Block::ToolCall(call) if call.server => {
                        return breaks(Rule::BondsWhole, "a tool of the provider stays as it is");
                    }
                    Block::ToolCall(_) => {}
                    _ => return Err(Refusal::Nothing("the block is no call")),
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

    fn is_held(&self, kind: &EditKind) -> bool {
        let mut ats = kind.spans().into_iter().flat_map(|span| span.range());
        self.ledger.holds_any() && ats.any(|at| self.ledger.is_held(At(at as u32)))
    }

    /// Whole units, in order, none of which must stay.
    fn runs(&self, kind: &EditKind, spans: &[Span]) -> Result<(), Refusal> {
        if spans.is_empty() || spans.iter().any(|span| span.is_empty() || span.end > self.log.end()) {
            return Err(Refusal::Nothing("a run is empty or past the end"));
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
            let hits = |kept: &Span| span.start < kept.end && kept.start < span.end;
            if protected.iter().flatten().any(hits) {
                return breaks(Rule::CurrentInput, "the current input and the newest step stay");
            }
            for (outer, id) in self.ledger.overlapping(*span) {
                let other = self.ledger.get(id);
                if outer != *span && outer.start <= span.start && span.end <= outer.end {
                    return Err(Refusal::Nothing("the run is inside an edit already"));
                }
                if other.is_some_and(|other| !nests(kind, &other.kind)) {
                    return breaks(Rule::InOrder, "it cuts across another edit");
                }
            }
        }
        Ok(())
    }

    fn digest(&self, at: At, block: usize) -> Result<(), Refusal> {
        self.inside(at)?;
        let message = self.message(at)?;
        match self.block(at, block)? {
            Block::Text(_) | Block::ToolResult(_) => {}
            _ => return Err(Refusal::Nothing("the block has no text")),
        }
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
            let count = |message: &Message, calls| {
                message
                    .blocks()
                    .iter()
                    .filter(|b| {
                        matches!(b, Block::ToolCall(_)) == calls
                            && matches!(b, Block::ToolCall(_) | Block::ToolResult(_))
                    })
                    .count()
            };
            if shown.role() == Role::Assistant && count(shown, true) != count(came, true) {
                faults.push(format!("message {} lost a call", at.0));
            }
            if shown.calls().any(|call| !call.arguments.is_object())
                && came.calls().all(|call| call.arguments.is_object())
            {
                faults.push(format!("arguments of message {} are no object", at.0));
            }
        }
        faults
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
            let (now, then) = (seals(shown), seals(came));
            if !now.is_empty() && now != then {
                faults.push(format!("sealed reasoning of message {} was altered", at.0));
            }
            let foreign = self
                .ledger
                .inside(at)
                .iter()
                .filter_map(|id| self.ledger.get(*id))
                .any(|edit| edit.why == Why::Rule);
            if now.is_empty() && !then.is_empty() && running.is_some_and(|turn| turn.contains(at)) && !foreign
            {
                faults.push(format!("sealed reasoning of message {} in the running turn is gone", at.0));
            }
        }
        faults
    }

    /// Shown messages that differ from the log, with what came.
    fn edited_messages(&self) -> impl Iterator<Item = (At, &Message, &Message)> {
        self.view.parts().iter().filter_map(|part| {
            let Source::Message(at) = part.source else { return None };
            let came = self.log.get(at)?;
            let same = Arc::ptr_eq(&part.message, came) || self.ledger.inside(at).is_empty();
            (!same).then_some((at, &*part.message, &**came))
        })
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

/// The text of an item, or the start of it where it was cut.
fn contains(text: &str, item: &KeepItem) -> bool {
    let start = &item.text[..item.text.floor_char_boundary(200)];
    !text.is_empty() && text.contains(start)
}
