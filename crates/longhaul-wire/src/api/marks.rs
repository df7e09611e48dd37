//! Marks of the prompt cache (`cache_control`): how far a provider should remember a request. They
//! are of the request, never of a message: a client moves them at every call. Reading takes them out
//! of what it reads and lists them; writing sets them again.

use longhaul::End;

use super::write::Object;
use crate::fields::FieldError;
use crate::scan::{Scanner, Value};

/// The field of a mark.
pub(super) const MARK: &str = "cache_control";

/// More are refused.
pub(super) const MOST: usize = 4;

/// A mark that a client has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientMark {
    /// Where it stands.
    pub place: MarkPlace,
    /// For an hour, not for five minutes.
    pub hour: bool,
    /// As the client wrote it.
    pub(super) json: Box<str>,
}

/// Where a mark stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkPlace {
    /// On the request: its provider finds the place.
    Request,
    /// On a block of the system prompt.
    System(usize),
    /// On a tool.
    Tool(usize),
    /// On a block of a message. A mark on a message is taken for one on its last block.
    Block {
        /// The message, as [`messages`](super::Request::messages) counts.
        message: usize,
        /// Its block.
        block: usize,
    },
}

impl ClientMark {
    pub(super) fn new(place: MarkPlace, json: &str) -> Self {
        Self { place, hour: json.contains("\"1h\""), json: json.into() }
    }
}

/// A mark to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub end: End,
    pub hour: bool,
}

impl Mark {
    pub fn json(&self) -> &'static str {
        if self.hour { r#"{"type":"ephemeral","ttl":"1h"}"# } else { r#"{"type":"ephemeral"}"# }
    }
}

/// A mark in an element of the list.
pub(super) struct Found<'a> {
    /// The block of the content that has it, or that has a block inside which has it.
    pub block: Option<usize>,
    pub json: &'a str,
    /// What is cut out of the text.
    cut: (usize, usize),
}

impl Found<'_> {
    /// Whether it marks anything: some clients write `null` where they set none.
    pub fn is_set(&self) -> bool {
        self.json != "null"
    }
}

/// The marks of a message, on it or on its blocks or on blocks inside these.
pub(super) fn in_message(element: Value<'_>) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    on_object(element, None, &mut found);
    let Some(content) = element.get("content") else { return found };
    for (number, block) in content.elements().enumerate() {
        on_object(block, Some(number), &mut found);
        if let Some(inner) = block.get("content") {
            inner.elements().for_each(|inner| on_object(inner, Some(number), &mut found));
        }
    }
    found.sort_by_key(|found| found.cut);
    found
}

/// The marks of an object, and where to cut it so that it has none.
pub(super) fn on_object<'a>(object: Value<'a>, block: Option<usize>, found: &mut Vec<Found<'a>>) {
    if !object.fields().any(|(key, _)| key.is_text(MARK)) {
        return;
    }
    let fields: Vec<(Value<'_>, Value<'_>)> = object.fields().collect();
    let is_mark = |(key, _): &(Value<'_>, Value<'_>)| key.is_text(MARK);
    let last_other = fields.iter().rposition(|field| !is_mark(field));
    for (at, (key, value)) in fields.iter().enumerate().filter(|(_, field)| is_mark(field)) {
        // With the comma behind it; one that only marks follow, with the comma before it.
        let cut = match at {
            _ if last_other > Some(at) => (key.start(), fields[at + 1].0.start()),
            0 => (key.start(), value.end()),
            _ => (fields[at - 1].1.end(), value.end()),
        };
        found.push(Found { block, json: value.raw(), cut });
    }
}

/// The text of a value without these marks, which are in their order.
pub(super) fn without(value: Value<'_>, marks: &[Found<'_>]) -> String {
    let (raw, base) = (value.raw(), value.start());
    let mut text = String::with_capacity(raw.len());
    let mut from = 0;
    for mark in marks {
        text.push_str(raw.get(from..mark.cut.0 - base).unwrap_or_default());
        from = mark.cut.1 - base;
    }
    text.push_str(raw.get(from..).unwrap_or_default());
    text
}

/// A message as it is sent, with a mark on the block before `end` of its content, or on one before
/// that, if that block cannot have any. `None` if no block can.
pub(super) fn set(message: &str, end: usize, mark: &str) -> Option<String> {
    let scanned = || -> Result<_, FieldError> {
        let mut scanner = Scanner::new(message, 0)?;
        let note = scanner.value()?;
        Ok((scanner.tape, note))
    };
    let (tape, note) = scanned().ok()?;
    let content = tape.value(message, note).get("content")?;
    if content.is_string() {
        if content.text().is_none_or(|text| text.trim().is_empty()) {
            return None;
        }
        let block = Object::new().text("type", "text").json("text", content.raw()).json(MARK, mark).end();
        return Some([&message[..content.start()], "[", &block, "]", &message[content.end()..]].concat());
    }
    let blocks: Vec<Value<'_>> = content.elements().take(end).collect();
    let can_have = |block: &&Value<'_>| {
        let thinks =
            block.get("type").and_then(|kind| kind.text()).is_none_or(|kind| kind.contains("thinking"));
        let empty = block.get("text").and_then(|text| text.text()).is_some_and(|text| text.trim().is_empty());
        !thinks && !empty
    };
    let block = blocks.iter().rev().find(can_have)?;
    let mut found = Vec::new();
    on_object(*block, None, &mut found);
    let inner = block.get("content").into_iter().flat_map(|inner| inner.elements());
    inner.for_each(|inner| on_object(inner, None, &mut found));
    // What only speaks of marks has none.
    if found.iter().any(Found::is_set) {
        return None;
    }
    found.sort_by_key(|found| found.cut);
    let (before, behind) = (&message[..block.start()], &message[block.end()..]);
    let block = without(*block, &found);
    Some([before, block.strip_suffix('}')?, ",\"", MARK, "\":", mark, "}", behind].concat())
}
