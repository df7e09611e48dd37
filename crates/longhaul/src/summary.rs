//! Summaries without a model: a plain extract of what a run of messages said and did. It
//! never invents: every line is a line of the log, or says how much was left out. User words
//! and calls come first; of a result, lines that hold names the assistant used,
//! definitions, and errors.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::OnceLock;

use regex::Regex;

use crate::json::{Extra, Json};
use crate::message::{Block, Message, Role, ToolResult};

/// How much of each thing is kept at most, in bytes.
const USER: usize = 1_500;
const ANSWER: usize = 800;
const ARGUMENTS: usize = 600;
const RESULT: usize = 1_200;
/// A line longer than this is cut.
const LINE: usize = 300;

/// What the messages said and did, in at most about `limit` bytes. `earlier` is the summary
/// of what came before them, if that goes into this one.
pub(crate) fn extract(earlier: Option<&str>, messages: &[&Message], limit: usize) -> String {
    let names = used_names(messages);
    let mut entries: Vec<String> = messages.iter().map(|message| entry(message, &names)).collect();
    entries.retain(|entry| !entry.is_empty());
    // What is older may take up to half of the room.
    let earlier = earlier.map(|text| newest_lines(text, limit / 2)).unwrap_or_default();
    let room = limit.saturating_sub(earlier.len());
    thin(&mut entries, room);
    let mut text = earlier;
    for entry in entries {
        text.push_str(&entry);
    }
    text
}

/// Shortens entries, oldest first and each by its own measure, until they fit; then drops the
/// oldest.
fn thin(entries: &mut Vec<String>, room: usize) {
    let mut size: usize = entries.iter().map(String::len).sum();
    for most in [400, 120] {
        for entry in entries.iter_mut() {
            if size <= room {
                return;
            }
            if entry.len() > most {
                let short = first_lines(entry, most);
                size -= entry.len() - short.len().min(entry.len());
                *entry = short;
            }
        }
    }
    let mut gone = 0;
    while size > room && gone < entries.len() {
        size -= entries[gone].len();
        gone += 1;
    }
    if gone > 0 {
        entries.drain(..gone);
        entries.insert(0, format!("({gone} older entries left out)\n"));
    }
}

/// Whole lines from the start, up to a size.
fn first_lines(text: &str, most: usize) -> String {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if end + line.len() > most {
            break;
        }
        end += line.len();
    }
    if end == 0 {
        end = text.floor_char_boundary(most);
        return format!("{}…\n", text[..end].trim_end());
    }
    text[..end].to_owned()
}

/// Whole lines from the end, up to a size.
fn newest_lines(text: &str, most: usize) -> String {
    if text.len() <= most {
        return if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    }
    let start = text.ceil_char_boundary(text.len() - most);
    let start = text[start..].find('\n').map_or(text.len(), |at| start + at + 1);
    format!("(older entries left out)\n{}", &text[start..])
}

fn entry(message: &Message, names: &HashSet<&str>) -> String {
    let mut out = String::new();
    for block in message.blocks() {
        match block {
            Block::Text(text) => {
                let (who, most) = match message.role() {
                    Role::User | Role::Tool => ("User", USER),
                    Role::Assistant => ("Assistant", ANSWER),
                    Role::System | Role::Summary => ("Note", ANSWER),
                };
                let said = shorten(text.text.trim(), most);
                if !said.is_empty() {
                    _ = writeln!(out, "{who}: {said}");
                }
            }
            Block::ToolCall(call) => {
                _ = writeln!(
                    out,
                    "Call {}: {}",
                    call.name,
                    shorten(&argument_text(&call.arguments), ARGUMENTS)
                );
            }
            Block::ToolResult(result) => result_lines(result, names, &mut out),
            Block::Image(_) => out.push_str("(picture)\n"),
            Block::Thinking(_) | Block::Opaque(_) => {}
        }
    }
    out
}

fn argument_text(arguments: &Json) -> String {
    let text = |json: &Json| {
        serde_json::from_str::<String>(json.as_str()).unwrap_or_else(|_| json.as_str().to_owned())
    };
    match serde_json::from_str::<Extra>(arguments.as_str()) {
        Ok(fields) => {
            fields.iter().map(|(_, value)| shorten(&text(value), LINE)).collect::<Vec<_>>().join(" · ")
        }
        Err(_) => arguments.as_str().to_owned(),
    }
}

/// The lines of a result that the work may need again.
fn result_lines(result: &ToolResult, names: &HashSet<&str>, out: &mut String) {
    let start = out.len();
    if result.is_error {
        out.push_str("  failed:\n");
    }
    let mut left_out = 0;
    for line in result.text.lines() {
        let trimmed = line.trim();
        if trimmed.len() < 4 {
            continue;
        }
        let full = out.len() - start > RESULT;
        let wanted =
            |line| result.is_error || is_telling(line) || names_in(line).any(|name| names.contains(name));
        if full || !wanted(trimmed) {
            left_out += 1;
            continue;
        }
        out.push_str("  ");
        out.push_str(&shorten(trimmed, LINE));
        out.push('\n');
    }
    if left_out > 0 && out.len() > start {
        _ = writeln!(out, "  ({left_out} more lines)");
    }
}

/// An error, a failure or a definition.
fn is_telling(line: &str) -> bool {
    static SIGNS: OnceLock<Option<Regex>> = OnceLock::new();
    const PATTERN: &str =
        "error|Error|ERROR|FAIL|failed|panicked|fn |def |class |struct |interface |function |enum |impl ";
    // One pass for all signs; a constant pattern is always read.
    SIGNS.get_or_init(|| Regex::new(PATTERN).ok()).as_ref().is_some_and(|signs| signs.is_match(line))
}

/// Names that the assistant wrote itself: in its words and its calls.
fn used_names<'a>(messages: &[&'a Message]) -> HashSet<&'a str> {
    let own = messages.iter().filter(|message| message.role() == Role::Assistant);
    let texts = own.flat_map(|message| message.blocks()).filter_map(|block| match block {
        Block::Text(text) => Some(&*text.text),
        Block::ToolCall(call) => Some(call.arguments.as_str()),
        _ => None,
    });
    texts.flat_map(names_in).collect()
}

/// Words that nobody could guess: at least six characters, with an underscore, a digit or a
/// change of case inside, or sixteen characters long.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| {
        let bytes = word.as_bytes();
        let odd = |pair: &[u8]| {
            pair[1] == b'_'
                || pair[1].is_ascii_digit()
                || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        };
        bytes.len() >= 6 && (bytes.len() >= 16 || bytes.windows(2).any(odd))
    })
}

fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, tail) =
        (text.floor_char_boundary(most * 3 / 4), text.ceil_char_boundary(text.len() - most / 4));
    format!("{} … {}", text[..head].trim_end(), text[tail..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_and_done_in_order() {
        let call = Block::call("c", "Read", Json::new(r#"{"path":"src/parse.rs","from":10}"#).unwrap());
        let asked = Message::user("Fix parse_line, please.");
        let ask = Message::new(Role::Assistant, vec![Block::thinking("hm"), Block::text("I look."), call]);
        let answer = Message::result(
            "c",
            "// nothing here\npub fn parse_line(s: &str) {\n    call_parse_line();\n}\n",
        );
        assert_eq!(
            extract(None, &[&asked, &ask, &answer], 10_000),
            "User: Fix parse_line, please.\nAssistant: I look.\nCall Read: src/parse.rs · 10\n  pub fn parse_line(s: &str) {\n  (2 more lines)\n"
        );
    }

    #[test]
    fn it_fits_whatever_comes() {
        let long: Vec<Message> =
            (0..300).map(|n| Message::user(format!("message {n} {}", "字".repeat(n)))).collect();
        let long: Vec<&Message> = long.iter().collect();
        for limit in [0, 100, 1_000, 20_000] {
            let text = extract(Some(&"earlier line\n".repeat(500)), &long, limit);
            assert!(text.len() <= limit + 100, "{limit}: {}", text.len());
        }
    }
}
