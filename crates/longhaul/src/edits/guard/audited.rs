//! What an audit keeps for the next one of the same session: edits and parts of the view that were right, as long as
//! nothing reaches them.

use std::collections::HashMap;
use std::sync::Arc;

use super::audit::Audit;
use crate::conversation::log::Position;
use crate::conversation::message::Message;
use crate::edits::edit::EditId;

/// What earlier audits of a session found right and need not be looked at again.
#[derive(Debug, Clone, Default)]
pub struct Audited {
    /// Edits before this one were right, among each other too, and their originals were there.
    edits: EditId,
    /// How often edits had been made again then.
    redone: usize,
    /// How often anything else had changed what is shown.
    changes: usize,
    /// The first parts of the view, which were right: none of them can change but by an edit.
    parts: Vec<RightPart>,
    /// Ids of calls, with the part that each stands in.
    calls: HashMap<Box<str>, usize>,
}

/// A part of a view that was right.
#[derive(Debug, Clone)]
pub(super) struct RightPart {
    message: Arc<Message>,
    /// Where in the log begins what it stands for, by whole units, and where it ends.
    pub(super) start: Position,
    pub(super) end: Position,
}

impl Audited {
    /// Edits before this one were right.
    pub(super) fn edits(&self) -> EditId {
        self.edits
    }

    /// The first parts of the view, which were right.
    pub(super) fn parts(&self) -> &[RightPart] {
        &self.parts
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
            self.parts.push(RightPart { message: part.message.clone(), start, end });
        }
    }
}
