//! Editions of the system prompt: an agent that writes its system prompt again in the middle of a
//! conversation means it to take the place of the one at the head. Which message is such an edition
//! follows from the log alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::conversation::log::Position;
use crate::conversation::message::{Block, Message, Role};

/// A system message of fewer bytes is a note of its own, and stays where it stands.
const LARGE: usize = 1_000;

/// An edition begins as the prompt at the head does, with so many bytes at least.
const SAME_BEGINNING: usize = 100;

/// Which system messages in the middle are editions of those at the head.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editions {
    /// The newest edition of each message at the head that has one which says something else.
    newest: BTreeMap<Position, Position>,
    /// All editions in the middle: none is shown where it came.
    moved: BTreeSet<Position>,
    /// How often another text came to stand at the head.
    changes: usize,
}

impl Editions {
    /// Takes in a system message that stands behind the head; true if it is an edition of one of the
    /// `head`, which are the first messages of the log.
    pub(crate) fn take(
        &mut self,
        at: Position,
        message: &Message,
        log: &[Arc<Message>],
        head: usize,
    ) -> bool {
        if !is_prompt(message) {
            return false;
        }
        let text = text_of(message);
        let alike =
            log[..head].iter().enumerate().map(|(place, first)| (common(&text_of(first), &text), place));
        // Of several that begin alike it is the one with most in common, the first of these.
        let Some((_, place)) =
            alike.filter(|(same, _)| *same >= SAME_BEGINNING).rev().max_by_key(|(same, _)| *same)
        else {
            return false;
        };
        let place = Position(place as u32);
        self.moved.insert(at);
        let shown = self.newest.get(&place).copied().unwrap_or(place);
        if text_of(&log[shown.index()]) != text {
            self.newest.insert(place, at);
            self.changes += 1;
        }
        true
    }

    /// The edition that stands in the place of a message at the head, if it has one.
    pub(crate) fn newest(&self, place: Position) -> Option<Position> {
        self.newest.get(&place).copied()
    }

    /// True if the message is an edition: it is not shown where it came.
    pub(crate) fn is_moved(&self, at: Position) -> bool {
        self.moved.contains(&at)
    }

    /// How often another text came to stand at the head.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }
}

/// Large, of text that is not blank, and nothing that a client sent over an API: a client knows what it
/// wants where.
fn is_prompt(message: &Message) -> bool {
    let is_text = |block: &Block| matches!(block, Block::Text(text) if !text.text.trim_start().is_empty());
    message.role() == Role::System
        && !message.is_from_api()
        && message.blocks().iter().all(is_text)
        && message.texts().map(str::len).sum::<usize>() >= LARGE
}

fn text_of(message: &Message) -> String {
    message.texts().collect()
}

/// How many bytes both begin with.
fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::{Extra, Json};
    use crate::conversation::message::API_FIELD;

    fn prompt(head: &str, rest: &str) -> Message {
        Message::system(format!("{}{}", format!("You are {head}. ").repeat(10), rest.repeat(1_000)))
    }

    #[test]
    fn what_begins_alike_and_is_large_is_an_edition() {
        let log = [prompt("a", "x"), prompt("b", "y")].map(Arc::new);
        let mut editions = Editions::default();
        let mut take = |message: &Message| editions.take(Position(9), message, &log, 2);
        assert!(!take(&Message::system("You are b.")));
        assert!(!take(&prompt("c", "x")));
        let mut origin = Extra::NONE;
        origin.set(API_FIELD, Json::string("anthropic"));
        assert!(!take(&prompt("b", "z").with_wire_fields(origin)));
        assert!(take(&prompt("b", "y")));
        assert_eq!(editions.changes(), 0, "it says the same");
        assert!(editions.take(Position(12), &prompt("b", "z"), &log, 2));
        assert_eq!((editions.newest(Position(0)), editions.newest(Position(1))), (None, Some(Position(12))));
        assert!(editions.is_moved(Position(9)) && editions.changes() == 1);
    }
}
