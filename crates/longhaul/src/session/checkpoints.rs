//! Checkpoints: the state at a few places of the journal, close together near its end, so that a fork
//! does not replay all of it. A memo: without them a fork is the same, and slower.

use std::sync::Arc;

use super::journal::Cursor;
use super::state::State;

/// So many are kept. What lies before the oldest is replayed from the start, which is short.
const KEPT: usize = 8;
/// They are so many entries apart, at least.
const NEAREST: usize = 256;
/// They are this part of the whole journal apart, at least: a sixteenth.
const PART: usize = 16;

/// One may go if the next older one is at four fifths of the next newer one, or later.
const FAR: (usize, usize) = (4, 5);

/// States, the oldest first.
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
        self.states.push((end, Arc::new(state.clone())));
        let place = |states: &[(Cursor, Arc<State>)], at: usize| states[at].0.0;
        for at in (1..self.states.len().saturating_sub(2)).rev() {
            let (older, newer) = (place(&self.states, at - 1), place(&self.states, at + 1));
            if older * FAR.1 >= newer * FAR.0 {
                self.states.remove(at);
            }
        }
        if self.states.len() > KEPT {
            self.states.remove(0);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::models::Models;

    #[test]
    fn a_fork_replays_little_of_a_long_journal() {
        let state = State::new(Arc::new(Models::builtin().find("gpt-4o").clone()), Vec::new());
        let mut checkpoints = Checkpoints::default();
        for end in 0..20_000 {
            checkpoints.pass(Cursor(end), &state);
            assert!(checkpoints.states.len() <= KEPT);
            if end > 4_000 && end % 997 == 0 {
                for place in (end * 2 / 5..=end).step_by(50) {
                    let (from, _) = checkpoints.before(Cursor(place)).unwrap();
                    assert!((place - from.0) * 4 < end, "{place} of {end} from {from:?}");
                }
                let (from, _) = checkpoints.before(Cursor(end)).unwrap();
                assert!((end - from.0) * 10 < end, "{end} from {from:?}");
            }
        }
    }
}
