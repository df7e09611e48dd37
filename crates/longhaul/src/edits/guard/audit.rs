//! The audit: all rules over a whole view. It shares no code with the check of an edit, so
//! that each can be tested against the other. Edits and originals never change: who audits view
//! after view keeps what was found right, and pays for what is new and for what an edit reached.

use std::collections::HashSet;
use std::sync::Arc;

use super::audited::Audited;
use super::{Rule, Violation};
use crate::conversation::bond::{BondKind, bonds};
use crate::conversation::log::{Log, Position};
use crate::conversation::message::{Block, Message, Role};
use crate::conversation::repair::Shown;
use crate::edits::archive::{Archive, Handle};
use crate::edits::edit::{Edit, EditId, EditKind, EditText, Limit, Placement, Why};
use crate::edits::ledger::{Ledger, nests};
use crate::edits::unbound;
use crate::size::budget::Budget;
use crate::size::meter::{Measure, Meter};
use crate::summary::Asked;
use crate::view::keep::{self, KeepItem, KeepKey};
use crate::view::{Part, Source, Sources, View};

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
    /// The first message whose signed thinking does not follow the prefix that produced it.
    pub(crate) stale: Option<Position>,
}

impl Audit<'_> {
    /// All rules that do not hold.
    pub(crate) fn run(&self, audited: &mut Audited) -> Vec<Violation> {
        audited.follow(self);
        let mut found = Vec::new();
        for rule in Rule::ALL {
            let faults = match rule {
                Rule::BondsWhole => self.bonds(audited),
                Rule::InOrder => self.order(audited),
                Rule::KeepSet => self.keep_set(audited),
                Rule::CurrentInput => self.current_input(),
                Rule::SealedReasoning => self.sealed(audited),
                Rule::Untouched => self.untouched(audited),
                Rule::NeverLarger => self.never_larger(audited.edits()),
                Rule::UnderLimit => self.under_limit(),
                Rule::Deterministic => self.deterministic(audited),
                Rule::Recallable => self.recallable(audited.edits()),
                Rule::AnswersTold => self.answers_told(),
                Rule::BoundThinking => self.bound_thinking(),
            };
            found.extend(faults.into_iter().map(|what| Violation { rule, what }));
        }
        // What was wrong stays wrong, and is said again.
        if found.is_empty() {
            audited.extend(self);
        }
        found
    }

    pub(super) fn sources(&self) -> Sources<'_> {
        Sources { log: self.log, ledger: self.ledger, meter: self.meter, sizes: self.sizes }
    }

    /// Parts that no audit found right yet.
    fn new_parts(&self, audited: &Audited) -> &[Part] {
        &self.view.parts()[audited.parts().len()..]
    }

    /// Folds and hides that stand in the view, each as often as it stands there; a fold of two parts stands there once. Where none covers anything, what was
    /// right before holds none.
    fn shown_edits(&self, audited: &Audited) -> impl Iterator<Item = EditId> {
        let parts = match self.covers_nothing() {
            true => self.new_parts(audited),
            false => self.view.parts(),
        };
        // A fold may have two parts.
        let mut last = None;
        parts.iter().filter_map(|part| part.source.edit()).filter(move |id| last.replace(*id) != Some(*id))
    }

    fn covers_nothing(&self) -> bool {
        self.ledger.outermost().next().is_none()
    }

    /// The messages that stand in new parts of the view, as they came or edited.
    fn new_messages(&self, audited: &Audited) -> HashSet<Position> {
        let messages = self.new_parts(audited).iter().filter_map(|part| match part.source {
            Source::Message(at) => Some(at),
            _ => None,
        });
        messages.collect()
    }

    /// True if a message stands in a part of the view that was right before.
    fn shown_before(&self, audited: &Audited, at: Position) -> bool {
        let start = self.log.unit_of(at).map_or(at, |unit| unit.span.start);
        let of_unit = audited.parts_from(start).iter().take_while(|part| part.start == start);
        of_unit.into_iter().any(|part| part.source == Source::Message(at))
    }

    /// Where in the log begins and ends what a part stands for. Nothing for what stands before the history.
    pub(super) fn place(&self, part: &Part) -> Option<(Position, Position)> {
        match part.source {
            Source::Message(at) => {
                let span = self.log.unit_of(at).map(|unit| unit.span);
                Some(span.map_or((at, Position(at.0 + 1)), |span| (span.start, span.end)))
            }
            Source::Edit(id) => match &self.ledger.get(id)?.kind {
                EditKind::Fold { placement: Placement::SystemHint, .. } => None,
                kind => kind.spans().first().map(|span| (span.start, span.end)),
            },
            Source::HostNote(number) => self.ledger.host_note(number).map(|note| (note.at, note.at)),
            Source::Note | Source::Rules | Source::Tail => None,
        }
    }

    fn bonds(&self, audited: &Audited) -> Vec<String> {
        let mut faults = Vec::new();
        let (mut open, mut ids): (HashSet<&str>, HashSet<&str>) = Default::default();
        for part in self.new_parts(audited) {
            let message = &part.message;
            let answers = message.role() != Role::Assistant && message.results().next().is_some();
            if !answers && !open.is_empty() {
                faults.push(format!("calls without a result: {open:?}"));
                open.clear();
            }
            for block in message.blocks() {
                match block {
                    Block::ToolCall(call) => {
                        if !ids.insert(&call.id) || audited.has_call(&call.id) {
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
        for (at, shown, came) in self.edited_messages(audited) {
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
        faults.extend(self.broken_far_bonds());
        for (span, id) in self.ledger.outermost() {
            let begins = self.log.unit_of(span.start).is_some_and(|unit| unit.span.start == span.start);
            let ends =
                self.log.unit_of(Position(span.end.0 - 1)).is_some_and(|unit| unit.span.end == span.end);
            if !(begins && ends) || self.log.waiting().is_some_and(|open| span.end > open) {
                faults.push(format!("edit {} cuts inside a unit", id.0));
            }
            if self.log.has_unfinished(span) {
                faults.push(format!("edit {} takes a call whose result may still come", id.0));
            }
        }
        faults
    }

    /// What was asked, and seems open: the edit that took the answer does not say that it is done. The
    /// first request stands somewhere in every view.
    fn answers_told(&self) -> Vec<String> {
        if self.covers_nothing() {
            return Vec::new();
        }
        let asked = self.view.parts().iter().filter(|part| part.message.role() == Role::User);
        let shown = asked.filter_map(|part| match part.source {
            Source::Message(at) => Some(at),
            _ => None,
        });
        let asked = shown.chain(self.log.goal_message());
        let open = asked.filter(|asked| {
            let answer = self.log.answer_to(*asked).and_then(|answer| self.ledger.covering(answer));
            let text = answer.and_then(|(_, id)| self.ledger.get(id)?.kind.text());
            let told =
                |text: &EditText| Asked::of(self.log, *asked).done().is_none_or(|done| text.contains(&done));
            text.is_some_and(|text| !matches!(text, EditText::Apart { .. }) && !told(text))
        });
        open.map(|asked| format!("message {} was answered and seems open", asked.0)).collect()
    }

    /// Bonds inside a message: what the provider ran itself is as it came, and encrypted
    /// reasoning goes only where no model can read it any more.
    fn broken_bonds(&self, at: Position, shown: &Message, came: &Message) -> Vec<String> {
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

    /// Bonds over several messages: a result that loads a tool is there as it came, and what the provider
    /// ran itself is there with its result, or both are gone.
    fn broken_far_bonds(&self) -> Vec<String> {
        let gone = |at: Position| self.ledger.covering(at).is_some();
        let cut = |at: Position, block: usize| self.ledger.shown(at, block).is_some();
        let mut faults = Vec::new();
        for at in self.log.tool_references() {
            let unit = self.log.unit_of(*at).map(|unit| unit.span.range()).unwrap_or_default();
            let blocks =
                unit.flat_map(|at| (0..self.log.messages()[at].blocks().len()).map(move |b| (at, b)));
            let mut blocks = blocks.map(|(at, block)| (Position(at as u32), block));
            if gone(*at)
                || blocks.any(|(at, block)| cut(at, block) && self.log.is_of_tool_reference(at, block))
            {
                faults.push(format!("the tool that message {} loads is lost", at.0));
            }
        }
        for late in self.log.late_answers() {
            let message = self.log.get(late.result).map(|message| message.blocks()).unwrap_or_default();
            let cites =
                |block: &usize| matches!(&message[*block], Block::Text(t) if t.extra.is_set("citations"));
            let cited = (late.block + 1..message.len()).filter(cites).any(|block| cut(late.result, block));
            if gone(late.call) != gone(late.result) || cut(late.result, late.block) || cited {
                faults.push(format!("a tool of the provider in message {} is broken", late.call.0));
            }
        }
        faults
    }

    /// The model changed: reasoning that only another can read went.
    fn is_foreign(&self, at: Position) -> bool {
        let edits = self.ledger.inside(at).iter().filter_map(|id| self.ledger.get(*id));
        edits.into_iter().any(|edit| matches!(edit.why, Why::Switched | Why::Refused))
    }

    fn bound_thinking(&self) -> Vec<String> {
        let stale =
            self.stale.map(|at| format!("thinking of message {} does not follow what produced it", at.0));
        let shown = self.view.parts().iter().filter_map(|part| match part.source {
            Source::Message(at) => Some((at, part)),
            _ => None,
        });
        let gone = shown.filter(|(at, _)| self.ledger.is_unbound(*at));
        let back = gone.filter(|(_, part)| unbound::signed(&part.message).next().is_some());
        let back = back.map(|(at, _)| format!("thinking of message {} is there again", at.0));
        stale.into_iter().chain(back).collect()
    }

    fn order(&self, audited: &Audited) -> Vec<String> {
        let first_new = audited.edits();
        let mut faults = Vec::new();
        let mut last = audited.parts().last().map(|part| part.start);
        for part in self.new_parts(audited) {
            let at = self.place(part).map(|(start, _)| start);
            if at.is_some() && at < last {
                faults.push(format!("{:?} stands after a later one", part.source));
            }
            last = at.or(last);
        }
        let shown: HashSet<EditId> = self.shown_edits(audited).collect();
        for (span, id) in self.ledger.outermost().filter(|(_, id)| !shown.contains(id)) {
            faults.push(format!("edit {} covers messages {}.. and is not shown", id.0, span.start.0));
        }
        let is_run = |(edit, active): &(&Arc<Edit>, bool)| *active && edit.kind.replaces_runs();
        let mut new = self.ledger.edits_since(first_new).filter(is_run).peekable();
        let mut outermost = new.peek().map(|_| audited.outermost().clone()).unwrap_or_default();
        for (edit, _) in new {
            if edit.kind.spans().windows(2).any(|pair| pair[0].end > pair[1].start) {
                faults.push(format!("runs of edit {} are not in order", edit.id.0));
            }
            let across = |other: &&Arc<Edit>| !nests(&other.kind, &edit.kind);
            // What cuts across an edit reaches out of those that hold it, or is inside one of them.
            let crossed: Vec<EditId> = match outermost.holder(edit) {
                None => outermost.edits().iter().filter(across).map(|other| other.id).collect(),
                Some(_) => {
                    let before =
                        self.ledger.edits().take_while(|(other, _)| other.id < edit.id).filter(is_run);
                    before.map(|(other, _)| other).filter(across).map(|other| other.id).collect()
                }
            };
            let across = |other: EditId| format!("edits {} and {} cut across each other", other.0, edit.id.0);
            faults.extend(crossed.into_iter().map(across));
            outermost.add(edit);
        }
        faults
    }

    fn keep_set(&self, audited: &Audited) -> Vec<String> {
        let mut faults = Vec::new();
        let new = self.new_messages(audited);
        let shows = |at: Position| new.contains(&at) || self.shown_before(audited, at);
        for at in self.log.system_messages() {
            let unit = self.log.unit_of(*at).map(std::slice::from_ref).unwrap_or_default();
            let blank = !self.log.show(unit).any(|shown| shown.at() == *at);
            if self.is_cut(*at) {
                faults.push(format!("system message {} is cut", at.0));
            }
            if !blank && !shows(*at) {
                faults.push(format!("system message {} is gone", at.0));
            }
        }
        let folds: Vec<_> = self.shown_edits(audited).filter_map(|id| self.ledger.get(id)).collect();
        let tail = self.view.tail().map(|tail| keep::text_of(&tail.message)).unwrap_or_default();
        for item in self.items {
            let kept = |kind: &EditKind| match kind {
                EditKind::Fold { kept, .. } => {
                    kept.iter().any(|kept| kept.key == item.key && kept.text == item.handle)
                }
                _ => false,
            };
            let in_folds = folds.iter().filter(|edit| kept(&edit.kind)).count();
            let stands = item.source.filter(|at| shows(*at));
            let in_place = stands.is_some_and(|at| !self.is_cut(at));
            let in_rules = matches!(item.key, KeepKey::Rules(_))
                && self.ledger.rules().is_some_and(|rules| keep::are_in(rules, item, self.log));
            let in_tail = contains(&tail, item);
            let places = in_folds + usize::from(in_place) + usize::from(in_rules) + usize::from(in_tail);
            // Of notes that state it the newest counts, and they stay where they stand.
            let places = if places == 0 { usize::from(keep::is_noted(item, self.ledger)) } else { places };
            let cut_in_place = stands.is_some_and(|at| self.is_cut(at));
            if places != 1 && !(places == 0 && cut_in_place) && !item.text.trim().is_empty() {
                faults.push(format!("{:?} is there {places} times", item.key));
            }
        }
        faults
    }

    fn is_cut(&self, at: Position) -> bool {
        !self.ledger.inside(at).is_empty()
    }

    fn current_input(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for span in self.log.protected() {
            for at in span.range().map(|at| Position(at as u32)) {
                if let Some((_, id)) = self.ledger.covering(at) {
                    faults.push(format!("message {} is inside edit {}", at.0, id.0));
                }
                for id in self.ledger.inside(at) {
                    let Some(edit) = self.ledger.get(*id) else { continue };
                    let of_others = matches!(edit.why, Why::Entry | Why::Host | Why::Switched | Why::Refused);
                    if !of_others && edit.why != Why::Forced(Limit::Hard) {
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

    fn sealed(&self, audited: &Audited) -> Vec<String> {
        let mut faults = Vec::new();
        let running = self.log.running_turn();
        // A message that was nothing else is not shown at all.
        for (edit, _) in self.ledger.edits_since(audited.edits()).filter(|(_, active)| *active) {
            let EditKind::DropThinking { at } = edit.kind else { continue };
            let sealed = |b: &Block| matches!(b, Block::Thinking(t) if t.seal.is_sealed());
            let had = self.log.get(at).is_some_and(|message| message.blocks().iter().any(sealed));
            let runs = running.is_some_and(|turn| turn.contains(at)) && self.ledger.covering(at).is_none();
            if had && runs && !matches!(edit.why, Why::Switched | Why::Refused) {
                faults.push(format!("edit {} drops sealed reasoning of the running turn", edit.id.0));
            }
        }
        for (at, shown, came) in self.edited_messages(audited) {
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
            let foreign = self.is_foreign(at) || self.ledger.is_unbound(at);
            if now.is_empty() && !then.is_empty() && running.is_some_and(|turn| turn.contains(at)) && !foreign
            {
                faults.push(format!("sealed reasoning of message {} in the running turn is gone", at.0));
            }
        }
        faults
    }

    /// Shown messages that an edit touched, with what they would be without it.
    fn edited_messages(&self, audited: &Audited) -> Vec<(Position, &Message, Arc<Message>)> {
        let edited = self.new_parts(audited).iter().filter_map(|part| match part.source {
            Source::Message(at) if !self.ledger.inside(at).is_empty() || self.ledger.is_unbound(at) => {
                Some((at, &*part.message))
            }
            _ => None,
        });
        // A placeholder or a note stems from a message without being it: roles tell.
        let unedited = |at: Position, role: Role| {
            let shown = self.log.show(std::slice::from_ref(self.log.unit_of(at)?)).collect::<Vec<_>>();
            shown.into_iter().find_map(|shown| match shown {
                Shown::AsIs(here) => self.log.get(here).filter(|_| here == at).cloned(),
                Shown::Made(here, message) => (here == at && message.role() == role).then_some(message),
            })
        };
        let pairs = edited.filter_map(|(at, shown)| Some((at, shown, unedited(at, shown.role())?)));
        pairs.filter(|(_, shown, came)| shown.role() == came.role()).collect()
    }

    fn untouched(&self, audited: &Audited) -> Vec<String> {
        let mut faults = Vec::new();
        let mut parts = self.new_parts(audited).iter().peekable();
        while let Some(part) = parts.next() {
            let Source::Message(at) = part.source else { continue };
            let Some(unit) = self.log.unit_of(at) else { continue };
            let is_edited = |at: Position| !self.ledger.inside(at).is_empty() || self.ledger.is_unbound(at);
            if unit.span.range().any(|at| is_edited(Position(at as u32))) {
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
                    Shown::AsIs(at) => self.log.get(*at).is_some_and(|came| Arc::ptr_eq(came, &part.message)),
                    Shown::Made(_, message) => *message == part.message,
                });
            if !same {
                faults.push(format!("unit at {} is not as it came", unit.span.start.0));
            }
        }
        faults
    }

    fn never_larger(&self, first_new: EditId) -> Vec<String> {
        let new = self.ledger.edits_since(first_new);
        let larger = new.filter(|(edit, active)| {
            *active && edit.after >= edit.before && !matches!(edit.kind, EditKind::Answer { .. })
        });
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

    fn deterministic(&self, audited: &Audited) -> Vec<String> {
        let anew = match audited.parts().last() {
            Some(last) => {
                let unit = self.log.units().partition_point(|unit| unit.span.start < last.end);
                View::walked_from(self.sources(), unit)
            }
            None => {
                let mut anew = View::default();
                anew.set_fixed(self.view.fixed());
                anew.follow(self.sources());
                anew.parts().to_vec()
            }
        };
        let parts = self.new_parts(audited);
        let same = anew.len() == parts.len()
            && anew.iter().zip(parts).all(|(a, b)| {
                a.source == b.source
                    && a.measure == b.measure
                    && (Arc::ptr_eq(&a.message, &b.message) || a.message == b.message)
            });
        if same { vec![] } else { vec!["the view made anew differs".to_owned()] }
    }

    fn recallable(&self, first_new: EditId) -> Vec<String> {
        let new = self.ledger.edits_since(first_new).filter(|(_, active)| *active);
        let lost = new.flat_map(|(edit, _)| edit.originals.iter().map(move |handle| (edit.id, *handle)));
        let lost = lost
            .filter(|(_, handle)| self.archive.get(*handle).is_none_or(|text| Handle::of(&text) != *handle));
        lost.map(|(id, handle)| format!("the original {handle} of edit {} cannot be recalled", id.0))
            .collect()
    }
}

/// True if the item stands in a text as it is shown.
fn contains(text: &str, item: &KeepItem) -> bool {
    text.contains(&keep::render(std::slice::from_ref(item)))
}
