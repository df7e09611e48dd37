//! Tools that answer in the user's place. Agents without tool calling have the model write a command or a code block, and
//! send what it printed as the next user message: `Observation: …`, `<output>…</output>`, a JSON object. No client says
//! so; the form does. User messages that follow a command are observations if at least three of them, and four in five,
//! share one machine frame. When in doubt it is the person.

use std::collections::{BTreeMap, HashSet};

use super::log::{Log, Position};
use super::message::{Block, Message, Role};

/// So many messages show a form.
const LEAST: usize = 3;
/// Of the messages after a command so many percent must have it.
const SHARE: usize = 80;

/// How a machine begins or ends what it prints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Frame {
    /// `<output>…</output>`: the tag that opens the text; a tag closes it.
    Tag(Box<str>),
    /// `Observation: …`, `Command ls returned: …`: the words of the label that name the machine.
    Label(Box<str>),
    /// A first or last line with an exit status.
    Status,
    /// A JSON object with these keys.
    Keys(Vec<Box<str>>),
}

/// The user messages that are observations, by the whole log.
pub(crate) fn observations(log: &Log) -> HashSet<Position> {
    let mut framed: BTreeMap<Frame, Vec<Position>> = BTreeMap::new();
    let mut after_commands = 0;
    for pair in log.messages().windows(2).enumerate() {
        let (at, [before, message]) = pair else { continue };
        if !is_spoken(message) || !has_command(before) {
            continue;
        }
        after_commands += 1;
        if let Some(frame) = frame_of(message) {
            framed.entry(frame).or_default().push(Position(at as u32 + 1));
        }
    }
    let is_form = |found: &Vec<Position>| found.len() >= LEAST && found.len() * 100 >= after_commands * SHARE;
    framed.into_values().filter(is_form).flatten().collect()
}

/// True for a message that has the form of an observation, whether others share it or not.
pub(crate) fn looks_observed(log: &Log, at: Position) -> bool {
    let before = at.0.checked_sub(1).and_then(|before| log.get(Position(before)));
    let message = log.get(at).filter(|message| is_spoken(message) && before.is_some_and(|b| has_command(b)));
    message.and_then(|message| frame_of(message)).is_some()
}

/// True if all that it says would be a person's words.
fn is_spoken(message: &Message) -> bool {
    message.role() == Role::User && message.words().next().is_some()
}

/// True for an answer of the model in whose text a command or a code block stands. One that calls tools has its answers in
/// results.
fn has_command(message: &Message) -> bool {
    const SIGNS: [&str; 12] = [
        "```",
        "~~~",
        "Action:",
        "ACTION",
        "Command:",
        "<execute",
        "<command>",
        "<bash>",
        "<tool_call>",
        "<function_calls>",
        "<function=",
        "\"command\"",
    ];
    let is_call = |block: &Block| matches!(block, Block::ToolCall(_));
    message.role() == Role::Assistant
        && !message.blocks().iter().any(is_call)
        && message.texts().any(|text| SIGNS.iter().any(|sign| text.contains(sign)) || is_xml_call(text))
}

/// `<read_file>…</read_file>` alone in its lines: a call of a tool in tags.
fn is_xml_call(text: &str) -> bool {
    let last = text.trim_end().lines().next_back().unwrap_or_default().trim();
    let name = last.strip_suffix('>').and_then(|last| last.rsplit_once("</")).map(|(_, name)| name);
    name.is_some_and(|name| is_name(name) && text.contains(&format!("<{name}>")))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn frame_of(message: &Message) -> Option<Frame> {
    let mut texts = message.words();
    let text = texts.next()?.trim();
    // Of several texts the first has the frame, and the last ends it.
    let end = texts.last().map_or(text, str::trim);
    keys(text).or_else(|| tag(text, end)).or_else(|| label(text)).or_else(|| status(text, end))
}

fn tag(text: &str, end: &str) -> Option<Frame> {
    let (name, _) = text.strip_prefix('<')?.split_once(['>', ' ', '\n'])?;
    let last = end.lines().next_back()?.trim();
    let closes = last.ends_with('>') && last.contains("</");
    (is_name(name) && closes).then(|| Frame::Tag(name.into()))
}

fn keys(text: &str) -> Option<Frame> {
    if !text.starts_with('{') || !text.ends_with('}') {
        return None;
    }
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    let mut keys: Vec<Box<str>> = object.keys().map(|key| key.as_str().into()).collect();
    keys.sort_unstable();
    (!keys.is_empty()).then_some(Frame::Keys(keys))
}

/// Words that name a machine or what it does, in labels.
const MACHINE: [&str; 19] = [
    "observation",
    "observations",
    "output",
    "outputs",
    "result",
    "results",
    "returned",
    "stdout",
    "stderr",
    "response",
    "executed",
    "execution",
    "exit",
    "status",
    "tool",
    "console",
    "terminal",
    "environment",
    "printed",
];

/// A label in front of all: `Observation: …`, `[ls] Result:`, `TOOL RESPONSE:`, `[Tool output]`. The name of a command in
/// it may differ from message to message.
fn label(text: &str) -> Option<Frame> {
    /// No label is longer.
    const LONGEST: usize = 160;
    let line = text.lines().next()?.trim();
    let in_brackets = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    let label = match (line.strip_suffix(':'), in_brackets) {
        (Some(label), _) | (None, Some(label)) => label,
        (None, None) => {
            let (label, _) = line.split_once(": ")?;
            label
        }
    };
    if label.len() > LONGEST {
        return None;
    }
    let words = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // A sentence of a person may have such a word too: a label has it first or last.
    let words: Vec<&str> = words.collect();
    // Of an environment for benchmarks.
    if words.starts_with(&["The", "output", "of"]) {
        return Some(Frame::Label("output".into()));
    }
    let is_one_of = |word: &str, known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(word));
    let is_machine = |word: &&&str| is_one_of(word, &MACHINE);
    let named = words.last().filter(is_machine).or(words.first().filter(is_machine))?;
    let speaks = ["I", "my", "me", "we", "you", "this", "that", "here", "the", "is", "was"];
    let is_spoken = words.iter().any(|word| is_one_of(word, &speaks));
    (!is_spoken).then(|| Frame::Label((*named).into()))
}

/// An exit status in the first or the last line, and nothing else in that line.
fn status(text: &str, end: &str) -> Option<Frame> {
    let is_status = |line: Option<&str>| {
        let line = line.unwrap_or_default().trim().trim_matches(|c| matches!(c, '[' | ']' | '(' | ')' | '.'));
        let number = line.rsplit([' ', ':', '=']).next().unwrap_or_default();
        let words = line[..line.len() - number.len()].to_ascii_lowercase();
        let words = words.trim_end_matches([' ', ':', '=']);
        const SIGNS: [&str; 7] =
            ["exit code", "exit status", "return code", "returncode", "exit_code", "return_code", "exitcode"];
        number.parse::<i32>().is_ok() && words.len() < 60 && SIGNS.iter().any(|sign| words.ends_with(sign))
    };
    (is_status(text.lines().next()) || is_status(end.lines().next_back())).then_some(Frame::Status)
}
