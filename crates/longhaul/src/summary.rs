//! Summaries without a model: a plain extract of what a run of messages said and did. It
//! never invents: every line is a line of the log, or says how much was left out. User words
//! and calls come first; of a result, lines that hold names the assistant used,
//! definitions, and errors.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

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

/// Something to be told: a message, or the summary of messages that were folded before.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Summary(Box<str>),
    Message(Arc<Message>),
}

/// A piece of an extract.
struct Entry {
    text: String,
    /// What a person said, or an earlier summary: the last to go.
    dear: bool,
}

/// What was said and done, in its order, in at most about `limit` bytes.
pub(crate) fn extract(told: &[&Told], limit: usize) -> String {
    let messages: Vec<&Message> = told
        .iter()
        .filter_map(|told| match told {
            Told::Message(message) => Some(&**message),
            Told::Summary(_) => None,
        })
        .collect();
    let names = used_names(&messages);
    let summaries = told.len() - messages.len();
    let mut entries: Vec<Entry> = told
        .iter()
        .map(|told| match told {
            Told::Message(message) => {
                Entry { text: entry(message, &names), dear: message.role() == Role::User }
            }
            // What is older may take up to half of the room.
            Told::Summary(text) => {
                Entry { text: newest_lines(text, limit / 2 / summaries.max(1)), dear: true }
            }
        })
        .collect();
    entries.retain(|entry| !entry.text.is_empty());
    thin(&mut entries, limit);
    entries.into_iter().map(|entry| entry.text).collect()
}

/// Shortens entries, oldest first, until they fit; then drops the oldest, what people said
/// last of all.
fn thin(entries: &mut Vec<Entry>, room: usize) {
    let mut size: usize = entries.iter().map(|entry| entry.text.len()).sum();
    for most in [400, 120] {
        for entry in entries.iter_mut().filter(|entry| !entry.dear) {
            if size <= room {
                return;
            }
            if entry.text.len() > most {
                let short = first_lines(&entry.text, most);
                size -= entry.text.len() - short.len().min(entry.text.len());
                entry.text = short;
            }
        }
    }
    let mut gone = 0;
    for dear in [false, true] {
        entries.retain(|entry| {
            let goes = size > room && entry.dear == dear;
            if goes {
                size -= entry.text.len();
                gone += 1;
            }
            !goes
        });
    }
    if gone > 0 {
        entries.insert(0, Entry { text: format!("({gone} older entries left out)\n"), dear: true });
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

    fn told(message: Message) -> Told {
        Told::Message(Arc::new(message))
    }

    #[test]
    fn what_people_said_goes_last() {
        let mut all = vec![told(Message::user("The port is 8473."))];
        all.extend((0..50).map(|n| told(Message::assistant(format!("word {n} ").repeat(30)))));
        let all: Vec<&Told> = all.iter().collect();
        let text = extract(&all, 1_000);
        assert!(text.contains("The port is 8473.") && text.contains("word 49"), "{text}");
    }

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
            extract(&[&told(asked), &told(ask), &told(answer)], 10_000),
            "User: Fix parse_line, please.\nAssistant: I look.\nCall Read: src/parse.rs · 10\n  pub fn parse_line(s: &str) {\n  (2 more lines)\n"
        );
    }

    #[test]
    fn it_fits_whatever_comes() {
        let long: Vec<Message> =
            (0..300).map(|n| Message::user(format!("message {n} {}", "字".repeat(n)))).collect();
        let mut all = vec![Told::Summary("earlier line\n".repeat(500).into())];
        all.extend(long.into_iter().map(told));
        let all: Vec<&Told> = all.iter().collect();
        for limit in [0, 100, 1_000, 20_000] {
            let text = extract(&all, limit);
            assert!(text.len() <= limit + 100, "{limit}: {}", text.len());
        }
    }
}
