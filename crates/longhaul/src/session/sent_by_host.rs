//! Requests that the host sent without asking the session: as it could not be asked. The session takes in what went out,
//! so that the next request extends that and not what the session would have sent.

use std::sync::Arc;

use super::Session;
use super::journal::{Cursor, Entry, Ticket};
use crate::conversation::log::Position;
use crate::conversation::message::{Message, Time};
use crate::edits::edit::{EditId, Why};

impl Session {
    /// Appends a message that was sent as it came: no result in it enters shorter, now or later.
    pub fn push_sent(&mut self, message: impl Into<Arc<Message>>) -> Position {
        let message = message.into();
        let at = self.log().end();
        self.record(Entry::Message(message.clone()));
        self.look_for_marks(at, &message);
        self.pin_task(at);
        self.look();
        at
    }

    /// Takes back the edits that were made since, as no request that showed them was sent. They may be made again. What
    /// leaves out reasoning that the provider cannot read stays.
    pub fn take_back_since(&mut self, cursor: Cursor) {
        let made = self.since(cursor).filter_map(|entry| match entry {
            Entry::Edit(edit) => Some(edit.id),
            _ => None,
        });
        let made: Vec<EditId> = made.collect();
        for id in made.into_iter().rev() {
            // Those that depend on it are newer.
            let gone = self.ledger().dependents(id).unwrap_or_default();
            let is_kept = |id: &EditId| {
                let edit = self.ledger().get(*id);
                edit.is_some_and(|edit| matches!(edit.why, Why::Switched | Why::Refused))
            };
            if gone.iter().any(is_kept) {
                continue;
            }
            let entries: Vec<Entry> =
                gone.into_iter().map(|edit| Entry::Undo { edit, held: false }).collect();
            if self.fetch_for(&entries).is_ok() {
                entries.into_iter().for_each(|entry| self.record(entry));
            }
        }
        self.mind_seals();
        self.mind_refused();
        self.look();
    }

    /// The host sent what the session shows now, whatever its size: what is reported on it is reported on this ticket.
    pub fn sent_by_host(&mut self, now: Option<Time>) -> Ticket {
        self.look();
        self.send(self.size().tokens, now)
    }
}
