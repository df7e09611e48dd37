//! Which model wrote which messages. Sealed reasoning can be read by models of its own provider alone.

use super::journal::{Entry, Seals};
use crate::conversation::log::Position;
use crate::size::models::provider;

/// The models of a session, each from the message where it took over.
#[derive(Debug, Clone)]
pub(super) struct Authors {
    from: Vec<(Position, Box<str>)>,
    pub(super) seals: Seals,
}

impl Authors {
    pub(super) fn new(model: &str) -> Self {
        Self { from: vec![(Position(0), model.into())], seals: Seals::default() }
    }

    /// `end` is the number of messages before the entry.
    pub(super) fn apply(&mut self, entry: &Entry, end: Position) {
        if let Entry::Switched { model, seals } = entry {
            self.seals = *seals;
            if self.current() != &*model.name {
                self.from.push((end, model.name.clone()));
            }
        }
    }

    fn current(&self) -> &str {
        self.from.last().map_or("", |(_, name)| name)
    }

    /// True if no other model was ever here.
    pub(super) fn is_one(&self) -> bool {
        self.from.len() == 1
    }

    /// True if the message was written by a model of another provider than the one that is here now. What a model
    /// cannot read of its own provider's, that provider leaves out.
    pub(super) fn is_foreign(&self, at: Position) -> bool {
        let next = self.from.partition_point(|(from, _)| *from <= at);
        let author = next.checked_sub(1).and_then(|last| self.from.get(last));
        author.is_some_and(|(_, name)| provider(name) != provider(self.current()))
    }

    /// Messages from here on were written by the model that is here now.
    pub(super) fn own_from(&self) -> Position {
        self.from.last().map_or(Position(0), |(from, _)| *from)
    }
}
