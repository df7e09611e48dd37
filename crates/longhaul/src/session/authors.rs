//! Which model wrote which messages. Sealed reasoning can be read by models of its own provider alone.

use super::journal::{Entry, Seals};
use crate::conversation::log::Position;
use crate::size::models::{Model, UNKNOWN, provider};

/// The models of a session, each from the message where it took over.
#[derive(Debug, Clone)]
pub(super) struct Authors {
    from: Vec<(Position, Box<str>)>,
    /// The table has no row for the model that is here now: the frame says which it is.
    is_unknown: bool,
    /// The model of the newest frame.
    of_frame: Option<Box<str>>,
    pub(super) seals: Seals,
}

impl Authors {
    pub(super) fn new(model: &Model) -> Self {
        let from = vec![(Position(0), model.name.clone())];
        Self { from, is_unknown: model.is_unknown(), of_frame: None, seals: Seals::default() }
    }

    /// `end` is the number of messages before the entry.
    pub(super) fn apply(&mut self, entry: &Entry, end: Position) {
        match entry {
            Entry::Switched { model, seals } => {
                (self.seals, self.is_unknown) = (*seals, model.is_unknown());
                let of_frame = self.of_frame.as_ref().filter(|_| self.is_unknown);
                self.take_over(of_frame.unwrap_or(&model.name).clone(), end);
            }
            Entry::Frame(frame) => {
                self.of_frame = frame.model.clone();
                if let Some(name) = frame.model.clone().filter(|_| self.is_unknown) {
                    self.take_over(name, end);
                }
            }
            _ => {}
        }
    }

    fn take_over(&mut self, name: Box<str>, end: Position) {
        // Two models without a name may be two.
        if *name == *UNKNOWN || self.current() != &*name {
            self.from.retain(|(from, _)| *from < end);
            self.from.push((end, name));
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
        let later = self.from.partition_point(|(from, _)| *from <= at);
        let author = later.checked_sub(1).and_then(|last| self.from.get(last));
        // Nobody knows what a model without a name can read.
        let is_other = |name: &str| name == UNKNOWN || provider(name) != provider(self.current());
        later < self.from.len() && author.is_some_and(|(_, name)| is_other(name))
    }

    /// Messages from here on were written by the model that is here now.
    pub(super) fn own_from(&self) -> Position {
        self.from.last().map_or(Position(0), |(from, _)| *from)
    }
}
