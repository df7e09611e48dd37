//! What messages and earlier summaries say, one after the other, and the entries that are made of it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::entry::{Candidate, DONE, Entry, NOTED, SHOWN, Speaker, indented};
use super::{Inherited, Wanted};
use crate::conversation::json::{Extra, Json};
use crate::conversation::log::Position;
use crate::conversation::message::{Block, Role, ToolCall};
use crate::conversation::script::{Made, made_by};
use crate::digest::{Failures, HUGE, ToolKind, is_digest, without_number};
use crate::summary::Material;
use crate::summary::failing::is_of_harness;
use crate::summary::value::Earlier;
use crate::summary::worth::LineKind;
use crate::text::cut::middle_by_bytes;
use crate::text::hash::Quick;

/// What a person said at once is kept up to this, in bytes.
const USER: usize = 1_500;
/// What is said of a call in one line.
const CALL: usize = 300;
/// A line that the model said under its first one is worth so much beside its names; a line that tells of a failure.
const SAID: f32 = 0.000_5;
const FAILED: f32 = 0.001;

/// What messages and earlier summaries say, one after the other. Holds the texts that do not
/// stand in a message as they are: arguments, unquoted.
pub(super) struct Utterances<'a> {
    all: Vec<(Option<Position>, Utterance<'a>)>,
}

enum Utterance<'a> {
    Earlier(&'a Earlier),
    /// A value of a slot of an earlier summary.
    Statement(String),
    Person(&'a str),
    Note(&'a str),
    Host(&'a str),
    Answer(&'a str),
    Thought(&'a str),
    Call {
        id: CallId<'a>,
        name: Cow<'a, str>,
        tool: ToolKind,
        arguments: Vec<Argument>,
    },
    Result {
        id: CallId<'a>,
        text: &'a str,
    },
    Picture,
}

/// The id of a call, and its number in the script that makes it.
type CallId<'a> = (&'a str, usize);

/// An argument of a call, a string as its text.
struct Argument {
    kind: LineKind,
    value: String,
}

impl<'a> Utterances<'a> {
    pub(super) fn of(material: &[&'a Material], wanted: Wanted<'_>) -> Self {
        let mut all = Vec::new();
        let mut scripts: HashMap<&str, Made<'_>, Quick> = HashMap::default();
        for material in material {
            let (at, message) = match material {
                Material::Summary(earlier) => {
                    if let Inherited::Everything(language) = wanted.inherited {
                        let said = earlier.slots().into_items();
                        all.extend(said.map(|item| {
                            (item.at, Utterance::Statement(item.statement.say(language).into_owned()))
                        }));
                    }
                    all.push((None, Utterance::Earlier(earlier)));
                    continue;
                }
                Material::Message(at, message) => (*at, message),
                Material::Asked(_) => continue,
            };
            for block in message.blocks() {
                let utterance = match (block, message.role()) {
                    (Block::Text(text), Role::User) if message.is_attachment() => {
                        let [start, end] = start_and_end(&text.text);
                        all.push((Some(at), Utterance::Host(start)));
                        Utterance::Host(end)
                    }
                    (Block::Text(text), Role::User) => {
                        let [before, behind] = text.of_host();
                        let [start, end] = start_and_end(before);
                        all.extend([start, end].map(|text| (Some(at), Utterance::Host(text))));
                        all.push((Some(at), Utterance::Person(text.words())));
                        let [start, end] = start_and_end(behind);
                        all.push((Some(at), Utterance::Host(start)));
                        Utterance::Host(end)
                    }
                    (Block::Text(text), Role::Tool) => Utterance::Result { id: ("", 0), text: &text.text },
                    (Block::Text(text), Role::Assistant) => Utterance::Answer(&text.text),
                    (Block::Text(text), Role::System | Role::Summary) => Utterance::Note(&text.text),
                    (Block::ToolCall(call), _) => {
                        let made = made_by(call);
                        let is_script = made.is_script();
                        for (number, made) in made.calls().iter().enumerate() {
                            let name =
                                if is_script { made.name.to_string().into() } else { (&*call.name).into() };
                            let tool = wanted.aliases.kind_of(made);
                            let mut arguments = arguments(made, tool);
                            if is_script {
                                arguments.splice(0..0, patched(made, tool));
                            }
                            let id = (&*call.id, number);
                            all.push((Some(at), Utterance::Call { id, name, tool, arguments }));
                        }
                        if is_script {
                            scripts.insert(&call.id, made);
                        }
                        continue;
                    }
                    (Block::ToolResult(result), _) => {
                        let made = scripts.get(&*result.id);
                        let outputs = made.map_or_else(Vec::new, |made| made.outputs(result));
                        let calls = made.map_or(0, |made| made.calls().len());
                        // Outputs that cannot be told apart are told under the last call.
                        let first = calls.saturating_sub(outputs.len());
                        let all_of_it = Range { start: 0, end: result.text.len() };
                        let outputs = if outputs.is_empty() { vec![all_of_it] } else { outputs };
                        for (number, output) in outputs.into_iter().enumerate() {
                            let id = (&*result.id, first + number);
                            let [start, end] = start_and_end(&result.text[output]);
                            all.push((Some(at), Utterance::Result { id, text: start }));
                            if !end.is_empty() {
                                all.push((Some(at), Utterance::Result { id, text: end }));
                            }
                        }
                        continue;
                    }
                    (Block::Image(_), _) => Utterance::Picture,
                    (Block::Thinking(thinking), _) => Utterance::Thought(&thinking.text),
                    (Block::Opaque(_), _) => continue,
                };
                all.push((Some(at), utterance));
            }
        }
        say_limits_once(&mut all);
        Self { all }
    }

    pub(super) fn entries(&'a self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut calls: HashMap<CallId<'_>, (usize, LineKind), Quick> = HashMap::default();
        let line = |text: &'a str, worth: f32, kind: LineKind| Candidate { text, worth, kind, kept: false };
        for (at, utterance) in &self.all {
            let at = *at;
            let entry = match utterance {
                Utterance::Earlier(earlier) => {
                    entries.extend(earlier.entries());
                    continue;
                }
                Utterance::Statement(said) => {
                    let speaker = Speaker::Summariser;
                    Entry::new(speaker, at, &indented(said), speaker.inherited_worth(), LineKind::Other)
                }
                Utterance::Person(text) => {
                    let said = shorten(text.trim(), USER);
                    if said.is_empty() {
                        continue;
                    }
                    let kind = LineKind::User;
                    let mut entry = Entry::new(Speaker::Person, at, &indented(&said), f32::INFINITY, kind);
                    // Of long words more lines may be worth keeping.
                    if said.len() < text.trim().len() {
                        let others = lines(text).filter(|line| !said.contains(line));
                        entry.add(at, text, others.map(|text| line(text, 0.0, kind)));
                    }
                    entry
                }
                Utterance::Note(text) => {
                    let said = indented(&shorten(text.trim(), CALL));
                    Entry::new(Speaker::Note, at, &said, NOTED, LineKind::Other)
                }
                // Its files are worth as much as those that a tool shows.
                Utterance::Host(text) => {
                    let Some((heading, said)) = headed(text) else { continue };
                    let kind = LineKind::User;
                    let mut entry = Entry::new(Speaker::Host, at, &heading, 0.0, kind);
                    entry.add(at, text, said.map(|text| line(text, 0.0, kind)));
                    entry
                }
                Utterance::Answer(text) => {
                    let Some((heading, said)) = headed(text) else { continue };
                    let kind = LineKind::Own;
                    let mut entry = Entry::new(Speaker::Assistant, at, &heading, DONE, kind);
                    let worth = |text: &str| if text.len() < 24 { 0.0 } else { SAID };
                    entry.add(at, text, said.map(|text| line(text, worth(text), kind)));
                    entry
                }
                Utterance::Thought(text) => {
                    let Some((heading, said)) = headed(text) else { continue };
                    let kind = LineKind::Thought;
                    let mut entry = Entry::new(Speaker::Assistant, at, &heading, 0.0, kind);
                    entry.add(at, text, said.map(|text| line(text, 0.0, kind)));
                    entry
                }
                Utterance::Call { id, name, tool, arguments } => {
                    // Short values say what was done; of long ones lines may be worth keeping.
                    let is_short =
                        |argument: &&Argument| argument.value.len() <= 120 && !argument.value.contains('\n');
                    let short: Vec<&str> =
                        arguments.iter().filter(is_short).map(|argument| &*argument.value).collect();
                    let called = format!("{name}: {}", shorten(&short.join(" · "), CALL));
                    let kind = match tool {
                        ToolKind::Bash => LineKind::Command,
                        ToolKind::Read | ToolKind::Edit | ToolKind::Write => LineKind::Path,
                        _ => LineKind::Argument,
                    };
                    let mut entry = Entry::new(Speaker::Call, at, &indented(&called), DONE, kind);
                    for Argument { kind, value } in arguments.iter().filter(|argument| !is_short(argument)) {
                        entry.add(at, value, lines(value).map(|text| line(text, 0.0, *kind)));
                    }
                    calls.insert(*id, (entries.len(), kind_of_result(*tool, name)));
                    entry
                }
                Utterance::Result { id, text } => {
                    let called = calls.get(id).copied();
                    let kind = called.map_or(LineKind::Other, |(_, kind)| kind);
                    let mut failures = Failures::of(text);
                    let found = text.split_inclusive('\n').filter_map(|whole| {
                        let worth = if failures.next_line(whole.len()) { FAILED } else { 0.0 };
                        let text = without_number(whole).trim();
                        // What did not enter is in the handle of the fold too.
                        let is_mark = text.starts_with('⟦') && is_digest(text);
                        (text.len() > 3 && !is_mark && !is_of_harness(text)).then(|| line(text, worth, kind))
                    });
                    if let Some(call) = called.and_then(|(number, _)| entries.get_mut(number)) {
                        call.add(at, text, found);
                        continue;
                    }
                    // Its call is not told: it was folded before, or there was none.
                    let mut entry = Entry::new(Speaker::Result, at, "", 0.0, kind);
                    entry.add(at, text, found);
                    if !id.0.is_empty() {
                        calls.insert(*id, (entries.len(), kind));
                    }
                    entry
                }
                Utterance::Picture => Entry::new(Speaker::Picture, at, "", SHOWN, LineKind::Other),
            };
            entries.push(entry);
        }
        entries
    }
}

/// Limits of time and output stand beside every command of some agents: the last call that has one says it.
fn say_limits_once(all: &mut [(Option<Position>, Utterance<'_>)]) {
    let mut later: HashSet<String> = HashSet::new();
    for (_, utterance) in all.iter_mut().rev() {
        if let Utterance::Call { tool: ToolKind::Bash, arguments, .. } = utterance {
            let is_number =
                |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            arguments.retain(|Argument { value, .. }| !is_number(value) || later.insert(value.clone()));
        }
    }
}

/// The lines of a text that say something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.len() > 3)
}

/// The first line of a text as a heading, and the lines under it: all but the first, or all if that is too
/// long for a heading.
fn headed(text: &str) -> Option<(String, impl Iterator<Item = &str>)> {
    /// So much of a long line tells what it is.
    const START: usize = 160;
    let first = lines(text).next()?;
    let fits = first.len() <= CALL;
    let heading = if fits { first.to_owned() } else { shorten(first, START) };
    Some((heading, lines(text).skip(usize::from(fits))))
}

/// What the lines of a result are, by the tool that was called.
fn kind_of_result(tool: ToolKind, name: &str) -> LineKind {
    match tool {
        ToolKind::Read => LineKind::Read,
        ToolKind::Edit | ToolKind::Write => LineKind::Changed,
        ToolKind::Bash => LineKind::Shell,
        ToolKind::Grep | ToolKind::Glob | ToolKind::Ls => LineKind::Search,
        ToolKind::Other if ["task", "agent"].iter().any(|agent| name.eq_ignore_ascii_case(agent)) => {
            LineKind::Agent
        }
        ToolKind::Todo | ToolKind::Recall | ToolKind::Other => LineKind::Other,
    }
}

/// What is looked at of a text: all of it, or the start and the end of a huge one.
fn start_and_end(text: &str) -> [&str; 2] {
    if text.len() <= HUGE {
        return [text, ""];
    }
    let (start, end) = (text.floor_char_boundary(HUGE / 2), text.ceil_char_boundary(text.len() - HUGE / 2));
    [&text[..start], &text[end..]]
}

/// The files that a patch changes, for the heading of a call that has no path: the patch is too long for it.
fn patched(call: &ToolCall, tool: ToolKind) -> Vec<Argument> {
    let subject = if tool == ToolKind::Edit { tool.subject(&call.arguments) } else { String::new() };
    if !subject.is_empty() || !matches!(tool, ToolKind::Edit | ToolKind::Bash) {
        return Vec::new();
    }
    let files = tool.files(&call.arguments).into_iter();
    files.map(|value| Argument { kind: LineKind::Argument, value }).collect()
}

/// The arguments of a call, strings as their text.
fn arguments(call: &ToolCall, tool: ToolKind) -> Vec<Argument> {
    let text = |json: &Json| {
        serde_json::from_str::<String>(json.as_str()).unwrap_or_else(|_| json.as_str().to_owned())
    };
    let kind = |name: &str| match name {
        "old_string" | "old_str" | "oldText" | "old_text" | "search" => LineKind::Old,
        "new_string" | "new_str" | "newText" | "content" | "file_text" => LineKind::New,
        _ if tool == ToolKind::Bash => LineKind::Command,
        _ => LineKind::Argument,
    };
    match serde_json::from_str::<Extra>(call.arguments.as_str()) {
        Ok(fields) => {
            // Where a shell runs a command is the same in most calls.
            let is_place = |name: &str| tool == ToolKind::Bash && matches!(name, "workdir" | "cwd");
            let said = fields.iter().filter(|(name, _)| !is_place(name));
            said.map(|(name, value)| Argument { kind: kind(name), value: text(value) }).collect()
        }
        Err(_) => {
            let kind = if tool == ToolKind::Edit { LineKind::New } else { kind("") };
            vec![Argument { kind, value: text(&call.arguments) }]
        }
    }
}

fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let middle = middle_by_bytes(text, most * 3 / 4, most / 4);
    format!("{} … {}", text[..middle.start].trim_end(), text[middle.end..].trim_start())
}
