//! Undo and redo by a person; answers by the host, in the place of a client.

use std::sync::Arc;

use super::Session;
use super::journal::Entry;
use super::state::LostText;
use crate::conversation::log::Position;
use crate::edits::archive::Original;
use crate::edits::edit::{Edit, EditId, EditKind, EditText, Why};
use crate::edits::guard::Refusal;
use crate::edits::ledger::LedgerError;
use crate::view::keep;

impl Session {
    /// Takes an edit back, and with it those that were made from it. All are named, and held: only
    /// the hard limit takes them again.
    pub fn undo(&mut self, edit: EditId) -> Result<Vec<EditId>, LedgerError> {
        let gone = self.ledger().dependents(edit)?;
        let is_unreadable = |edit: &Edit| matches!(edit.why, Why::Switched | Why::Refused);
        if let Some(edit) = gone.iter().find(|id| self.ledger().get(**id).is_some_and(|e| is_unreadable(e))) {
            return Err(LedgerError::Protected(*edit));
        }
        let entries: Vec<Entry> = gone.iter().map(|id| Entry::Undo { edit: *id, held: true }).collect();
        self.fetch_for(&entries)?;
        entries.into_iter().for_each(|entry| self.record(entry));
        self.mind_what_reappears();
        Ok(gone)
    }

    /// Takes back all edits but those of reasoning that the provider cannot read: the client's own messages are sent. None
    /// is held, so the next compaction may make them again.
    pub fn undo_all(&mut self) -> Result<(), LedgerError> {
        let may_go = |edit: &Edit| !matches!(edit.why, Why::Switched | Why::Refused);
        let active = self.ledger().edits().filter(|(edit, active)| *active && may_go(edit));
        let mut entries: Vec<Entry> =
            active.map(|(edit, _)| Entry::Undo { edit: edit.id, held: false }).collect();
        // The newest first: those that were made from others go before them.
        entries.reverse();
        self.fetch_for(&entries)?;
        entries.into_iter().for_each(|entry| self.record(entry));
        self.mind_what_reappears();
        Ok(())
    }

    /// Messages that reappear may hold reasoning that this model cannot read.
    fn mind_what_reappears(&mut self) {
        self.mind_seals();
        self.mind_refused();
    }

    /// Makes an edit again.
    pub fn redo(&mut self, edit: EditId) -> Result<(), LedgerError> {
        self.ledger().can_redo(edit)?;
        if let Some(known) = self.ledger().get(edit) {
            // What a switch dropped is no edit of a person: it comes and goes with the model.
            if !self.may_hold(known) || known.why == Why::Switched {
                return Err(LedgerError::Protected(edit));
            }
            if let Some(other) = keep::also_kept_by(known, self.ledger()) {
                return Err(LedgerError::InTheWay { edit, other });
            }
        }
        let redo = Entry::Redo { edit };
        self.fetch_for(std::slice::from_ref(&redo))?;
        self.record(redo);
        Ok(())
    }

    /// Gets the texts that these entries will bring into view, if they are with the store.
    pub(super) fn fetch_for(&mut self, entries: &[Entry]) -> Result<(), LedgerError> {
        let (mut ledger, end) = (self.ledger().clone(), self.log().end());
        entries.iter().for_each(|entry| ledger.apply(entry, end));
        let fetched = self.state.fetch(&ledger.texts_apart(), self.store.as_deref());
        fetched.map_err(|LostText { edit, handle }| LedgerError::Lost { edit, handle })
    }

    pub(super) fn may_hold(&self, edit: &Edit) -> bool {
        self.check(edit.why).may_hold(&edit.kind)
    }

    /// Shows a text in the place of what a tool result says: the host answers the call itself, where
    /// the client could not. The text may be longer than what it replaces.
    pub fn answer(
        &mut self,
        at: Position,
        block: usize,
        text: impl Into<Arc<str>>,
    ) -> Result<EditId, Refusal> {
        let message = self.log().get(at).cloned().ok_or(Refusal::Nothing("there is no such message"))?;
        let kind = EditKind::Answer { at, block, text: EditText::Here(text.into()) };
        self.edit_inside(kind, Original::Block(message, block), "host", Why::Host)
    }
}
