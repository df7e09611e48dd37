//! What an audit keeps for the next one of the same session: edits and parts of the view that were right, as long as
//! nothing reaches them.

use std::collections::HashMap;
use std::sync::Arc;

use super::audit::Audit;
use crate::conversation::log::Position;
use crate::conversation::message::Message;
use crate::edits::edit::{Edit, EditId};
use crate::edits::ledger::reaches_beyond;
use crate::view::Source;

/// What earlier audits of a session found right and need not be looked at again.
#[derive(Debug, Clone, Default)]
pub struct Audited {
    /// Edits before this one were right, among each other too, and their originals were there.
    edits: EditId,
    /// Of them, those that replace runs and are inside no other.
    outermost: Outermost,
    /// How often edits had been made again then.
    redone: usize,
    /// How often anything else had changed what is shown.
    changes: usize,
    /// The first parts of the view, which were right: none of them can change but by an edit.
    parts: Vec<RightPart>,
    /// Ids of calls, with the part that each stands in.
    calls: HashMap<Box<str>, usize>,
}

/// Edits that replace runs, without those that another of them holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Outermost(Vec<Arc<Edit>>);

impl Outermost {
    pub(super) fn edits(&self) -> &[Arc<Edit>] {
        &self.0
    }

    /// The one that holds all runs of this edit, and has others too.
    pub(super) fn holder(&self, edit: &Edit) -> Option<&Arc<Edit>> {
        let holds = |outer: &&Arc<Edit>| {
            !reaches_beyond(&edit.kind, &outer.kind) && reaches_beyond(&outer.kind, &edit.kind)
        };
        self.0.iter().find(holds)
    }

    /// Takes in an edit that cuts across none of them.
    pub(super) fn add(&mut self, edit: &Arc<Edit>) {
        if self.holder(edit).is_none() {
            self.0.retain(|outer| reaches_beyond(&outer.kind, &edit.kind));
            self.0.push(edit.clone());
        }
    }

    fn extend<'a>(&mut self, edits: impl Iterator<Item = (&'a Arc<Edit>, bool)>) {
        let runs = edits.filter(|(edit, active)| *active && edit.kind.replaces_runs());
        runs.for_each(|(edit, _)| self.add(edit));
    }
}

/// A part of a view that was right.
#[derive(Debug, Clone)]
pub(super) struct RightPart {
    message: Arc<Message>,
    pub(super) source: Source,
    /// Where in the log begins what it stands for, by whole units, and where it ends.
    pub(super) start: Position,
    pub(super) end: Position,
}

impl Audited {
    /// Edits before this one were right.
    pub(super) fn edits(&self) -> EditId {
        self.edits
    }

    /// The outermost of them.
    pub(super) fn outermost(&self) -> &Outermost {
        &self.outermost
    }

    /// The first parts of the view, which were right.
    pub(super) fn parts(&self) -> &[RightPart] {
        &self.parts
    }

    /// Of them, those that stand for this place in the log or a later one.
    pub(super) fn parts_from(&self, start: Position) -> &[RightPart] {
        &self.parts[self.parts.partition_point(|part| part.start < start)..]
    }

    /// True if a call with this id stands in them.
    pub(super) fn has_call(&self, id: &str) -> bool {
        self.calls.get(id).is_some_and(|part| *part < self.parts.len())
    }

    /// What was right may be wrong after edits came back, or in another session.
    pub(super) fn follow(&mut self, audit: &Audit<'_>) {
        let ledger = audit.ledger;
        if self.redone != ledger.redone() || self.edits > ledger.next_id() {
            *self = Self { redone: ledger.redone(), ..Self::default() };
        }
        if self.changes != ledger.changes() {
            // An edit that was undone shows those that it held.
            self.outermost = Outermost::default();
            self.outermost.extend(ledger.edits().take_while(|(edit, _)| edit.id < self.edits));
        }
        if self.changes != ledger.changes() || audit.sources().has_hint_since(self.edits) {
            self.parts.clear();
        }
        self.changes = ledger.changes();
        if let Some(at) = audit.sources().first_reached(self.edits) {
            self.parts.truncate(self.parts.partition_point(|part| part.start < at));
        }
        let parts = audit.view.parts();
        let same = self.parts.iter().zip(parts).take_while(|(a, b)| Arc::ptr_eq(&a.message, &b.message));
        let same = same.count();
        self.forget_last_notes();
        // What stands before the history is looked at with it.
        let whole = same == self.parts.len() && parts[same..].iter().all(|part| audit.place(part).is_some());
        if !whole {
            self.parts.clear();
        }
        if self.parts.is_empty() {
            self.calls.clear();
        }
    }

    /// The audit found nothing wrong.
    pub(super) fn extend(&mut self, audit: &Audit<'_>) {
        self.outermost.extend(audit.ledger.edits_since(self.edits));
        self.edits = audit.ledger.next_id();
        let settled = audit.log.units()[..audit.log.settled_units()].last().map(|unit| unit.span.end);
        let settled = settled.unwrap_or(Position(0));
        for part in &audit.view.parts()[self.parts.len()..] {
            let (start, end) = match audit.place(part) {
                Some(place) => place,
                // Behind what stands there anyway.
                None => self.parts.last().map_or((Position(0), Position(0)), |last| (last.start, last.end)),
            };
            if end > settled {
                break;
            }
            let number = self.parts.len();
            self.calls.extend(part.message.calls().map(|call| (call.id.clone(), number)));
            self.parts.push(RightPart { message: part.message.clone(), source: part.source, start, end });
        }
        self.forget_last_notes();
    }

    /// Notes of the host are shown with the unit behind them: they are looked at with it.
    fn forget_last_notes(&mut self) {
        while self.parts.pop_if(|last| matches!(last.source, Source::HostNote(_))).is_some() {}
    }
}
