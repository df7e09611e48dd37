//! Texts of messages as a page shows them, cut where they are long, counted as a browser counts.

use std::borrow::Cow;

use longhaul::conversation::made_by;
use longhaul::edits::LostWith;
use longhaul::{Block, Message, ToolCall};
use serde::Serialize;

/// The longest text that is sent with a list, in UTF-16 units.
pub(crate) const HEAD: usize = 2_000;
/// The longest text that is sent at all, in bytes.
pub(crate) const WHOLE: usize = 2 << 20;

/// `the thinking of 7 steps, 3,100 tokens`, if any goes.
pub fn lost_thinking(lost: LostWith) -> Option<String> {
    let steps = match lost.messages {
        1 => "1 step".to_owned(),
        steps => format!("{} steps", grouped(u64::from(steps))),
    };
    let tokens = grouped(lost.tokens.0);
    (!lost.is_nothing()).then(|| format!("the thinking of {steps}, {tokens} tokens"))
}

/// What a block says.
pub(crate) fn of_block(block: &Block) -> Cow<'_, str> {
    match block {
        Block::Text(text) => (&*text.text).into(),
        Block::Thinking(thinking) => (&*thinking.text).into(),
        Block::ToolCall(call) => call.arguments.as_str().into(),
        Block::ToolResult(result) => (&*result.text).into(),
        Block::Image(_) => "".into(),
        Block::Opaque(opaque) => opaque.value.as_str().into(),
    }
}

/// What a block says among others: a call with the name of its tool, a script after the calls in it.
fn said_by(block: &Block) -> Cow<'_, str> {
    match block {
        Block::ToolCall(call) => {
            let said = |call: &ToolCall| format!("{} {}", call.name, call.arguments.as_str());
            let made = made_by(call);
            let inside = made.calls().iter().filter(|_| made.is_script());
            inside.chain([call]).map(said).collect::<Vec<_>>().join("\n").into()
        }
        block => of_block(block),
    }
}

/// What a message says: its blocks apart by a newline.
pub(crate) fn of_message(message: &Message) -> Cow<'_, str> {
    match message.blocks() {
        [block] => said_by(block),
        blocks => blocks.iter().map(said_by).collect::<Vec<_>>().join("\n").into(),
    }
}

/// So many characters, as a browser counts.
pub(crate) fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The beginning of a text, of so many characters at most.
pub(crate) fn head(text: &str, most: usize) -> &str {
    let mut left = most;
    let end = text.char_indices().find(|(_, c)| match left.checked_sub(c.len_utf16()) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// The beginning of what a message says, and the length of all of it. Costs no copy of a long text.
pub(crate) fn head_of(message: &Message, most: usize) -> (String, usize) {
    let (mut shown, mut length) = (String::new(), 0);
    for (number, block) in message.blocks().iter().enumerate() {
        if number > 0 {
            shown.push_str(if length < most { "\n" } else { "" });
            length += 1;
        }
        let text = said_by(block);
        shown.push_str(head(&text, most.saturating_sub(length)));
        length += chars(&text);
    }
    (shown, length)
}

/// A text of at most so many bytes, and whether something of it was left out.
pub(crate) fn cut(text: Cow<'_, str>, most: usize) -> (String, bool) {
    match text.len() > most {
        false => (text.into_owned(), false),
        true => (text[..text.floor_char_boundary(most)].to_owned(), true),
    }
}

/// Some text around the first place that fits, and where it fits there, in UTF-16 units.
pub(crate) fn snippet(text: &str, wanted: &regex::Regex) -> Option<(String, Vec<(usize, usize)>)> {
    /// Bytes before the first place, and behind its beginning.
    const AROUND: (usize, usize) = (80, 240);
    let first = wanted.find(text)?;
    let start = text.floor_char_boundary(first.start().saturating_sub(AROUND.0));
    let end = text.ceil_char_boundary((first.start() + AROUND.1).max(first.end().min(first.start() + 2_000)));
    let shown = &text[start..end.min(text.len())];
    let units = |at: usize| chars(&shown[..at]);
    let found = wanted.find_iter(shown).take(50).map(|found| (units(found.start()), units(found.end())));
    Some((shown.to_owned(), found.collect()))
}

/// Lines of a text, counted from 1: `10-20`, `10-`, `10`.
pub fn lines(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number > 0);
    let (first, last) = text.split_once('-').map_or((text, text), |(first, last)| (first, last));
    let last = if last.trim().is_empty() { Some(usize::MAX) } else { number(last) };
    let range = number(first).zip(last).filter(|(first, last)| first <= last);
    range.ok_or_else(|| "not lines: give 10-20, 10- or 10; the first line is 1".to_owned())
}

/// `1234567` → `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A block of a message.
#[derive(Debug, Clone, Serialize)]
pub struct BlockRow {
    /// `text`, `thinking`, `tool_call`, `tool_result`, `image` or `opaque`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The tool that is called, or that gave the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The length of its text, as a browser counts.
    pub chars: usize,
    /// The tool failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Its text, where the whole message is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl BlockRow {
    /// `tool` gives the name of the tool that a result is of. `most` bytes of text go with it.
    pub(crate) fn of(
        block: &Block,
        tool: impl FnOnce(&longhaul::ToolResult) -> Option<String>,
        most: Option<usize>,
    ) -> Self {
        let text = of_block(block);
        let (kind, name, id, is_error) = match block {
            Block::Text(_) => ("text", None, None, false),
            Block::Thinking(_) => ("thinking", None, None, false),
            Block::ToolCall(call) => ("tool_call", Some(call.name.to_string()), Some(&call.id), false),
            Block::ToolResult(result) => ("tool_result", tool(result), Some(&result.id), result.is_error),
            Block::Image(_) => ("image", None, None, false),
            Block::Opaque(_) => ("opaque", None, None, false),
        };
        let (id, chars) = (id.map(ToString::to_string), chars(&text));
        Self { kind, name, id, chars, is_error, text: most.map(|most| cut(text, most).0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_cut_between_characters_and_counted_as_browsers_do() {
        assert_eq!(head("a😀b", 1), "a");
        assert_eq!(head("a😀b", 2), "a");
        assert_eq!(head("a😀b", 3), "a😀");
        assert_eq!(head("a😀b", 9), "a😀b");
        assert_eq!(chars("a😀b"), 4);
        let message = Message::user("xy").with_blocks(vec![Block::text("ab"), Block::text("cd")]);
        assert_eq!(head_of(&message, 4), ("ab\nc".to_owned(), 5));
        assert_eq!(of_message(&message), "ab\ncd");
        let source = longhaul::Json::new(r#"{"input":"tools.exec_command({cmd: 'ls'})"}"#).unwrap();
        let message = message.with_blocks(vec![Block::call("c", "exec", source)]);
        let said = "exec_command {\"cmd\":\"ls\"}\nexec {\"input\":\"tools.exec_command({cmd: 'ls'})\"}";
        assert_eq!((&*of_message(&message), head_of(&message, 12).0), (said, said[..12].to_owned()));
        assert_eq!(cut("aé".into(), 2), ("a".to_owned(), true));
    }
}
