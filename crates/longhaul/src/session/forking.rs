//! Forks: the session as it was before a message came, going its own way.

use std::sync::Arc;

use super::journal::{Cursor, Entry};
use super::state::State;
use super::{LoadError, Session};
use crate::conversation::log::{Position, Span};
use crate::edits::edit::{Edit, EditKind};
use crate::size::models::Model;

impl Session {
    /// A session of its own that shares everything that happened before the message at `end` came:
    /// the same as a new session that was told the same. Fails only if a store has lost a text.
    pub fn fork(&self, end: Position) -> Result<Self, LoadError> {
        let mut fork = self.parted(end)?;
        fork.inherit_refused(self.ledger(), end);
        fork.look();
        Ok(fork)
    }

    /// The same for a client that may have put another input in the place of its last one: nothing but that input is
    /// left behind. Edits of what is shared stay then, though they were made when that input had come: they stand in
    /// the prompt that the provider has cached.
    pub fn fork_with_edits(&self, end: Position) -> Result<Self, LoadError> {
        let mut fork = self.parted(end)?;
        self.edits_shared_with(&fork, end).into_iter().for_each(|edit| fork.record(Entry::Edit(edit)));
        fork.inherit_refused(self.ledger(), end);
        fork.look();
        Ok(fork)
    }

    /// The session as it was before that message came, whatever was refused since.
    fn parted(&self, end: Position) -> Result<Self, LoadError> {
        let cursor = self.journal.before(end);
        let whole = cursor == self.journal.end();
        let mut fork = if whole { self.clone() } else { self.replayed(cursor)? };
        fork.notices.clear();
        let end = end.min(self.log().end());
        fork.record(Entry::Forked { end, signed: self.signed_from(end) });
        fork.look();
        Ok(fork)
    }

    /// The edits that a fork has not seen, and that stay where nothing but the last input is left behind.
    fn edits_shared_with(&self, fork: &Self, end: Position) -> Vec<Arc<Edit>> {
        let log = self.log();
        let input = log.current_input().filter(|input| input.start <= end && input.end == log.end());
        // A turn that the input broke off runs again without it: what it needs was edited as what is old.
        let is_over = |input: Span| fork.log().running_turn().is_none_or(|turn| input.start <= turn.start);
        if !input.is_some_and(is_over) {
            return Vec::new();
        }
        let is_shared = |edit: &Edit| {
            // It was taken since a new turn began. What comes now may go on with the old one.
            let takes_reasoning = matches!(edit.kind, EditKind::DropThinking { .. });
            !takes_reasoning && edit.kind.spans().iter().all(|span| span.end <= end)
        };
        let later = self.ledger().edits_since(fork.ledger().next_id());
        // Stop at the first edit that goes: later ones would get another number.
        let shared = later.take_while(|(edit, active)| *active && is_shared(edit));
        shared.map(|(edit, _)| edit.clone()).collect()
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
