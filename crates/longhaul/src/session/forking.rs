//! Forks: the session as it was before a message came, going its own way.

use std::sync::Arc;

use super::journal::{Cursor, Entry};
use super::state::State;
use super::{LoadError, Session};
use crate::conversation::log::Position;
use crate::edits::edit::{Edit, EditKind};
use crate::size::models::Model;

impl Session {
    /// A session of its own that shares everything that happened before the message at `end` came:
    /// the same as a new session that was told the same. Fails only if a store has lost a text.
    pub fn fork(&self, end: Position) -> Result<Self, LoadError> {
        let cursor = self.journal.before(end);
        let whole = cursor == self.journal.end();
        let mut fork = if whole { self.clone() } else { self.replayed(cursor)? };
        fork.notices.clear();
        fork.record(Entry::Forked { end: end.min(self.log().end()) });
        fork.look();
        Ok(fork)
    }

    /// The same for a client that has put another input in the place of its last one. Edits of what is shared stay,
    /// though they were made when the last input had come: they stand in the prompt that the provider has cached.
    /// Reasoning is never taken from the new input's turn: if an edit took some, all from there on are left out.
    pub fn fork_with_edits(&self, end: Position) -> Result<Self, LoadError> {
        let mut fork = self.fork(end)?;
        let is_shared = |edit: &Edit| {
            let takes_reasoning = matches!(edit.kind, EditKind::DropThinking { .. });
            !takes_reasoning && edit.kind.spans().iter().all(|span| span.end <= end)
        };
        let later: Vec<Arc<Edit>> = self
            .ledger()
            .edits_since(fork.ledger().next_id())
            // Those behind one that goes would get another number.
            .take_while(|(edit, active)| *active && is_shared(edit))
            .map(|(edit, _)| edit.clone())
            .collect();
        later.into_iter().for_each(|edit| fork.record(Entry::Edit(edit)));
        fork.look();
        Ok(fork)
    }

    /// The session as it was at a place of its journal. Each entry was made or checked here: nothing
    /// can be wrong with it but that the store has lost a text.
    pub(super) fn replayed(&self, end: Cursor) -> Result<Self, LoadError> {
        let journal = self.journal.prefix(end);
        let (from, mut state) = match self.checkpoints.before(end) {
            Some(checkpoint) => checkpoint,
            None => (Cursor(0), State::new(self.first_model(), self.snapshots())),
        };
        state.replay(journal.since(from), self.store.as_deref(), |_, _| Ok::<_, LoadError>(()))?;
        let (checkpoints, store) = (self.checkpoints.upto(end), self.store.clone());
        Ok(Self { checkpoints, store, ..Self::of(self.profile.clone(), journal, state) })
    }

    /// The model that the journal began with.
    pub(super) fn first_model(&self) -> Arc<Model> {
        match self.journal.get(Cursor(0)) {
            Some(Entry::Began { model, .. }) => model.clone(),
            // Every journal begins so.
            _ => self.state.limits.model.clone(),
        }
    }
}
