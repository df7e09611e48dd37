//! An extract of what a run of messages said and did. It never invents: every line is a line of
//! the log, or says how much was left out.
//!
//! Which lines? The work needs names again (paths, identifiers, numbers), and of each name the
//! line that mentioned it last. So a line is worth the names that no later line mentions, and
//! more if the model itself has used them. What people said, and what was done, comes first.

use std::ops::Range;

use super::Told;
use crate::conversation::json::{Extra, Json};
use crate::conversation::message::{Block, Role};
use crate::digest::{Failures, HUGE};
use crate::text::names::{NameMap, names};

/// What a person said at once is kept up to this, in bytes.
const USER: usize = 1_500;
/// What is said of a call in one line.
const CALL: usize = 300;
/// A longer line is not kept: it is data, or it is prose that the next ones tell shorter.
const LINE: usize = 400;

/// A part of an extract: a heading, and lines under it.
struct Entry<'a> {
    heading: String,
    /// Worth of the heading alone, whether the model wrote it, and whether it is in.
    worth: f32,
    own: bool,
    kept: bool,
    lines: Vec<Line<'a>>,
    /// The texts that the lines are of, and how many lines there are up to the end of each.
    texts: Vec<(&'a str, usize)>,
}

impl<'a> Entry<'a> {
    fn new(heading: String, worth: f32, own: bool) -> Self {
        Self { heading, worth, own, kept: false, lines: Vec::new(), texts: Vec::new() }
    }

    /// Adds lines of a text, in their order.
    fn add(&mut self, text: &'a str, lines: impl Iterator<Item = Line<'a>>) {
        self.lines.extend(lines);
        self.texts.push((text, self.lines.len()));
    }
}

struct Line<'a> {
    text: &'a str,
    /// Worth before its names are counted.
    worth: f32,
    /// The model wrote it.
    own: bool,
    kept: bool,
}

/// What was said and done, in its order, in at most about `limit` bytes. `later` are names that
/// what follows mentions anyway.
pub(super) fn extract<'a>(
    told: &[&Told],
    limit: usize,
    focus: Option<&str>,
    later: impl Iterator<Item = &'a str>,
) -> String {
    let texts = Texts::of(told);
    let mut entries = texts.entries();
    if let Some(focus) = focus {
        prefer(&mut entries, focus);
    }
    let choices = worth_of_lines(&entries, later);
    let mut left = limit.saturating_sub(60);
    // What people said comes first, in half of the room; then the rest; then what people said again.
    let half = left / 2;
    left -= half - keep_people(&mut entries, half);
    left = keep_best(&mut entries, choices, left);
    keep_people(&mut entries, left);
    render(&entries)
}

/// The texts of messages that are not as they stand in them: arguments, unquoted.
struct Texts<'a> {
    parts: Vec<Part<'a>>,
}

enum Part<'a> {
    Summary(&'a str),
    User(&'a str),
    Note(&'a str),
    Answer(&'a str),
    Call { id: &'a str, name: &'a str, arguments: Vec<String> },
    Result { id: &'a str, text: &'a str },
    Picture,
}

impl<'a> Texts<'a> {
    fn of(told: &[&'a Told]) -> Self {
        let mut parts = Vec::new();
        for told in told {
            let message = match told {
                Told::Summary(text) => {
                    parts.push(Part::Summary(text));
                    continue;
                }
                Told::Message(message) => message,
                Told::Gap => continue,
            };
            for block in message.blocks() {
                let part = match (block, message.role()) {
                    (Block::Text(text), Role::User | Role::Tool) => Part::User(&text.text),
                    (Block::Text(text), Role::Assistant) => Part::Answer(&text.text),
                    (Block::Text(text), Role::System | Role::Summary) => Part::Note(&text.text),
                    (Block::ToolCall(call), _) => {
                        Part::Call { id: &call.id, name: &call.name, arguments: values(&call.arguments) }
                    }
                    // Of a huge one the start and the end are looked at.
                    (Block::ToolResult(result), _) if result.text.len() > HUGE => {
                        let start = &result.text[..result.text.floor_char_boundary(HUGE / 2)];
                        let end = result.text.ceil_char_boundary(result.text.len() - HUGE / 2);
                        parts.push(Part::Result { id: &result.id, text: start });
                        Part::Result { id: &result.id, text: &result.text[end..] }
                    }
                    (Block::ToolResult(result), _) => Part::Result { id: &result.id, text: &result.text },
                    (Block::Image(_), _) => Part::Picture,
                    (Block::Thinking(_) | Block::Opaque(_), _) => continue,
                };
                parts.push(part);
            }
        }
        Self { parts }
    }

    fn entries(&'a self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut calls: NameMap<'_, usize> = NameMap::default();
        let lines = |text: &'a str| text.lines().map(str::trim).filter(|line| line.len() > 3);
        let line = |text: &'a str, worth: f32, own: bool| Line { text, worth, own, kept: false };
        for part in &self.parts {
            let entry = match part {
                Part::Summary(text) => {
                    earlier(text, &mut entries);
                    continue;
                }
                Part::User(text) => {
                    let said = shorten(text.trim(), USER);
                    if said.is_empty() {
                        continue;
                    }
                    // Lines under a heading are indented, so that they are found again.
                    let heading = format!("{USER_SAID}{}", said.replace('\n', "\n  "));
                    Entry::new(heading, f32::INFINITY, false)
                }
                Part::Note(text) => Entry::new(format!("Note: {}", shorten(text.trim(), CALL)), 0.5, false),
                Part::Answer(text) => {
                    let mut said = lines(text);
                    let Some(first) = said.next() else { continue };
                    let mut entry = Entry::new(format!("Assistant: {}", shorten(first, CALL)), 2.0, true);
                    let worth = |text: &str| if text.len() < 24 { 0.0 } else { 0.5 };
                    entry.add(text, said.map(|text| line(text, worth(text), true)));
                    entry
                }
                Part::Call { id, name, arguments } => {
                    // Short values say what was done; of long ones lines may be worth keeping.
                    let is_short = |value: &&String| value.len() <= 120 && !value.contains('\n');
                    let short: Vec<&str> = arguments.iter().filter(is_short).map(String::as_str).collect();
                    let heading = format!("Call {name}: {}", shorten(&short.join(" · "), CALL));
                    let mut entry = Entry::new(heading, 2.0, true);
                    for value in arguments.iter().filter(|value| !is_short(value)) {
                        entry.add(value, lines(value).map(|text| line(text, 0.0, true)));
                    }
                    calls.insert(id, entries.len());
                    entry
                }
                Part::Result { id, text } => {
                    let mut failures = Failures::of(text);
                    let found = text.split_inclusive('\n').filter_map(|whole| {
                        let worth = if failures.next_line(whole.len()) { 2.0 } else { 0.0 };
                        Some(line(whole.trim(), worth, false)).filter(|line| line.text.len() > 3)
                    });
                    if let Some(call) = calls.get(id).and_then(|at| entries.get_mut(*at)) {
                        call.add(text, found);
                        continue;
                    }
                    let mut entry = Entry::new(String::new(), 0.0, false);
                    entry.add(text, found);
                    entry
                }
                Part::Picture => Entry::new("(picture)".to_owned(), 0.5, false),
            };
            entries.push(entry);
        }
        entries
    }
}

/// What people said begins so.
const USER_SAID: &str = "User: ";

/// The entries of an earlier summary: headings, and indented lines under them.
fn earlier<'a>(text: &'a str, entries: &mut Vec<Entry<'a>>) {
    let first = entries.len();
    for line in text.lines() {
        let under = line.strip_prefix("  ").filter(|_| entries.len() > first);
        match (under, entries.last_mut()) {
            (Some(under), Some(entry)) if entry.worth.is_infinite() => {
                entry.heading.push_str("\n  ");
                entry.heading.push_str(under);
            }
            (Some(under), Some(entry)) => {
                let line = Line { text: under, worth: 0.0, own: false, kept: false };
                entry.add(under, std::iter::once(line));
            }
            // How much was left out then is in the handle.
            _ if line.starts_with('(') && line.ends_with(" left out)") || line.trim().is_empty() => {}
            _ => {
                let worth = if line.starts_with(USER_SAID) { f32::INFINITY } else { 1.0 };
                entries.push(Entry::new(line.to_owned(), worth, false));
            }
        }
    }
}

/// The values of arguments, strings as their text.
fn values(arguments: &Json) -> Vec<String> {
    let text = |json: &Json| {
        serde_json::from_str::<String>(json.as_str()).unwrap_or_else(|_| json.as_str().to_owned())
    };
    match serde_json::from_str::<Extra>(arguments.as_str()) {
        Ok(fields) => fields.iter().map(|(_, value)| text(value)).collect(),
        Err(_) => vec![text(arguments)],
    }
}

/// Lines that speak of the focus are worth more.
fn prefer(entries: &mut [Entry<'_>], focus: &str) {
    /// More than any name.
    const WORTH: f32 = 8.0;
    let words = focus.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '/' | '.')));
    let words: Vec<String> = words.filter(|word| word.len() > 3).map(str::to_lowercase).collect();
    let speaks = |text: &str| {
        let text = text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    for entry in entries {
        entry.worth += if speaks(&entry.heading) { WORTH } else { 0.0 };
        for line in &mut entry.lines {
            line.worth += if speaks(line.text) { WORTH } else { 0.0 };
        }
    }
}

/// A line to choose: entry, line (0 is the heading), worth.
type Choice = (usize, usize, f32);

/// What is known of a name.
#[derive(Default, Clone, Copy)]
struct Known {
    /// How often the model wrote it.
    uses: u8,
    /// A later line mentions it.
    later: bool,
}

/// Names that were met, by number: each is looked up once where it stands, and never again.
struct Met<'a> {
    numbers: NameMap<'a, u32>,
    known: Vec<Known>,
    /// All that were found, in their order.
    found: Vec<u32>,
}

impl<'a> Met<'a> {
    fn add(&mut self, name: &'a str, own: bool) {
        let next = self.known.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.known.push(Known::default());
        }
        let uses = &mut self.known[number as usize].uses;
        *uses = uses.saturating_add(u8::from(own));
        self.found.push(number);
    }
}

/// The worth of each line: its own, and that of the names it mentions last.
fn worth_of_lines<'a>(entries: &[Entry<'_>], later: impl Iterator<Item = &'a str>) -> Vec<Choice> {
    let count = entries.iter().map(|entry| entry.lines.len() + 1).sum::<usize>();
    let mut met = Met {
        numbers: NameMap::with_capacity_and_hasher(count, Default::default()),
        known: Vec::with_capacity(count),
        found: Vec::with_capacity(2 * count),
    };
    // Per line that may be kept, in order: where it is, and where its names begin and end.
    let mut lines: Vec<(usize, usize, Range<usize>)> = Vec::with_capacity(count);
    for (at, entry) in entries.iter().enumerate() {
        let first = met.found.len();
        names(&entry.heading).for_each(|name| met.add(name, entry.own));
        lines.push((at, 0, first..met.found.len()));
        let mut number = 0;
        for (text, end) in &entry.texts {
            // Names are found in the whole text, which is faster than line by line.
            let mut names = names(text).peekable();
            for line in &entry.lines[number..*end] {
                number += 1;
                let Range { start, end } = line.text.as_bytes().as_ptr_range();
                while names.next_if(|name| name.as_ptr() < start).is_some() {}
                let first = met.found.len();
                while let Some(name) = names.next_if(|name| name.as_ptr() < end) {
                    met.add(name, line.own);
                }
                if line.worth > 0.0 || met.found.len() > first {
                    lines.push((at, number, first..met.found.len()));
                }
            }
        }
    }
    let Met { numbers, mut known, found } = met;
    for name in later {
        if let Some(number) = numbers.get(name) {
            known[*number as usize].later = true;
        }
    }
    let mut choices = Vec::with_capacity(count / 2);
    for (at, number, of_line) in lines.iter().rev() {
        let (mut worth, size) = match number.checked_sub(1).map(|number| &entries[*at].lines[number]) {
            Some(line) => (line.worth, line.text.len()),
            None => (entries[*at].worth, 0),
        };
        for name in &found[of_line.clone()] {
            let name = &mut known[*name as usize];
            if !std::mem::replace(&mut name.later, true) {
                worth += if name.uses == 0 { 0.3 } else { 1.0 + f32::from(name.uses.min(4)) };
            }
        }
        // What is newer is a little more likely to be needed.
        worth *= 0.7 + 0.3 * (*at as f32 / entries.len() as f32);
        if worth > 0.0 && size <= LINE {
            choices.push((*at, *number, worth));
        }
    }
    choices
}

/// Keeps what people said, the newest first. Gives what is left of the room.
fn keep_people(entries: &mut [Entry<'_>], mut room: usize) -> usize {
    for entry in entries.iter_mut().rev().filter(|entry| entry.worth.is_infinite() && !entry.kept) {
        let size = entry.heading.len() + 1;
        if size <= room {
            room -= size;
            entry.kept = true;
        }
    }
    room
}

/// Keeps the lines that are worth most for their length, until the room is full. Gives what is
/// left of it.
fn keep_best(entries: &mut [Entry<'_>], choices: Vec<Choice>, mut left: usize) -> usize {
    let size = |(at, number, _): &Choice, entries: &[Entry<'_>]| {
        let entry = &entries[*at];
        if *number == 0 { entry.heading.len() + 1 } else { entry.lines[*number - 1].text.len() + 3 }
    };
    let mut order: Vec<(f32, Choice)> = choices
        .into_iter()
        .filter(|(_, _, worth)| *worth > 0.0 && worth.is_finite())
        .map(|choice| (choice.2 / (size(&choice, entries) as f32 + 16.0), choice))
        .collect();
    // The order is the same wherever it is made: by worth, then by place.
    order.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| (x.0, x.1).cmp(&(y.0, y.1))));
    for (_, choice) in order {
        let (at, number, _) = choice;
        let mut cost = size(&choice, entries);
        // A line stands under its heading.
        if number > 0 && !entries[at].kept && !entries[at].heading.is_empty() {
            cost += entries[at].heading.len() + 1;
        }
        if number == 0 && entries[at].kept || cost > left {
            continue;
        }
        left -= cost;
        entries[at].kept = true;
        if number > 0 {
            entries[at].lines[number - 1].kept = true;
        }
    }
    left
}

fn render(entries: &[Entry<'_>]) -> String {
    let mut out = String::new();
    let (mut gone, mut all) = (0, 0);
    for entry in entries {
        let kept = entry.lines.iter().filter(|line| line.kept).count();
        let heading = usize::from(!entry.heading.is_empty());
        all += entry.lines.len() + heading;
        gone += entry.lines.len() - kept + if entry.kept { 0 } else { heading };
        if !entry.kept {
            continue;
        }
        if !entry.heading.is_empty() {
            out.push_str(&entry.heading);
            out.push('\n');
        }
        for line in entry.lines.iter().filter(|line| line.kept) {
            out.push_str("  ");
            out.push_str(line.text);
            out.push('\n');
        }
    }
    if gone == 0 { out } else { format!("({gone} of {all} lines left out)\n{out}") }
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
    use std::sync::Arc;

    use super::*;
    use crate::conversation::message::Message;

    fn told(message: Message) -> Told {
        Told::Message(Arc::new(message))
    }

    fn extracted(all: &[Told], limit: usize) -> String {
        extract(&all.iter().collect::<Vec<_>>(), limit, None, std::iter::empty())
    }

    #[test]
    fn what_people_said_goes_last() {
        let mut all = vec![told(Message::user("The port is 8473."))];
        all.extend((0..50).map(|n| told(Message::assistant(format!("word_{n} ").repeat(30)))));
        let text = extracted(&all, 1_000);
        assert!(text.contains("The port is 8473.") && text.contains("word_49"), "{text}");
    }

    #[test]
    fn what_was_said_and_done_in_order() {
        let call = Block::call("c", "Read", Json::new(r#"{"path":"src/parse.rs","from":10}"#).unwrap());
        let asked = Message::user("Fix parse_line, please.");
        let ask = Message::new(Role::Assistant, vec![Block::thinking("hm"), Block::text("I look."), call]);
        let answer = Message::result("c", "// nothing here\npub fn parse_line(s: &str) {\n    call();\n}\n");
        assert_eq!(
            extracted(&[told(asked), told(ask), told(answer)], 10_000),
            "(2 of 6 lines left out)\nUser: Fix parse_line, please.\nAssistant: I look.\nCall Read: src/parse.rs · 10\n  pub fn parse_line(s: &str) {\n"
        );
    }

    #[test]
    fn an_earlier_summary_keeps_its_form() {
        let earlier = "(5 of 9 lines left out)\nUser: Fix it.\n  And the docs.\nAssistant: I look.\nCall Read: src/parse.rs\n  fn parse_line(s: &str) {\n";
        let all = [Told::Summary(earlier.into()), told(Message::assistant("Now the store_index."))];
        let text = extracted(&all, 10_000);
        assert_eq!(text, format!("{}Assistant: Now the store_index.\n", earlier.split_once('\n').unwrap().1));
        // What people said stays to the last.
        let text = extracted(&all, 140);
        assert!(text.contains("User: Fix it.\n  And the docs.\n") && !text.contains("I look"), "{text}");
    }

    #[test]
    fn of_a_name_the_last_line_is_kept() {
        let call = |id: &str| Block::call(id, "Read", Json::new(r#"{"path":"src/parse.rs"}"#).unwrap());
        let ask = |id: &str| told(Message::new(Role::Assistant, vec![call(id)]));
        let all = [
            ask("a"),
            told(Message::result("a", "fn parse_line(old: u8) {}\nfn other_name() {}\n")),
            ask("b"),
            told(Message::result("b", "fn parse_line(new: u16) {}\n")),
        ];
        let text = extracted(&all, 10_000);
        assert!(
            text.contains("new: u16") && !text.contains("old: u8") && text.contains("other_name"),
            "{text}"
        );
        // What follows mentions it anyway.
        let text = extract(&all.iter().collect::<Vec<_>>(), 10_000, None, ["parse_line"].into_iter());
        assert!(!text.contains("new: u16") && text.contains("other_name"), "{text}");
    }

    #[test]
    fn it_fits_whatever_comes() {
        let long: Vec<Message> =
            (0..300).map(|n| Message::user(format!("message {n} {}", "字".repeat(n)))).collect();
        let mut all = vec![Told::Summary("earlier_line 1234\n".repeat(500).into())];
        all.extend(long.into_iter().map(told));
        for limit in [0, 100, 1_000, 20_000] {
            let text = extracted(&all, limit);
            assert!(text.len() <= limit + 100, "{limit}: {}", text.len());
        }
    }
}
