//! Checkpoints: the state at a few late places of the journal, so that a fork near the end does not
//! replay all of it. A memo: without them a fork is the same, and slower.

use std::sync::Arc;

use super::journal::Cursor;
use super::state::State;

/// So many are kept: forks are mostly of what was said lately.
const KEPT: usize = 3;
/// They are so many entries apart, at least.
const NEAREST: usize = 64;
/// They are this part of the whole journal apart, at least: a sixteenth.
const PART: usize = 16;

/// Late states, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Checkpoints {
    states: Vec<(Cursor, Arc<State>)>,
}

impl Checkpoints {
    /// The state is this at the end of the journal.
    pub(super) fn pass(&mut self, end: Cursor, state: &State) {
        let last = self.states.last().map_or(0, |(cursor, _)| cursor.0);
        if end.0 - last < NEAREST.max(end.0 / PART) {
            return;
        }
        if self.states.len() == KEPT {
            self.states.remove(0);
        }
        self.states.push((end, Arc::new(state.clone())));
    }

    /// The last one that is not behind a place.
    pub(super) fn before(&self, end: Cursor) -> Option<(Cursor, State)> {
        let found = self.states.iter().rev().find(|(cursor, _)| *cursor <= end);
        found.map(|(cursor, state)| (*cursor, (**state).clone()))
    }

    /// Those that a fork at this place has in common.
    pub(super) fn upto(&self, end: Cursor) -> Self {
        Self { states: self.states.iter().filter(|(cursor, _)| *cursor <= end).cloned().collect() }
    }
}
