//! An extract of what a run of messages said and did. It never invents: every line is a line of
//! the log, or says how much was left out.
//!
//! Which lines? The work needs names again (paths, identifiers, numbers), and of each name the
//! line that mentioned it last; and it needs lines that it is going to edit. So a line is worth the
//! chance of either (`worth`), by what the whole log says of its names (`uses`). Lines are kept for
//! their price, or until the room is full. What people said comes first.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::failing::is_of_harness;
use super::uses::{NameUse, Uses};
use super::value::{Earlier, Passage, SavedEntry, SavedLine};
use super::worth::{self, Editable, LineKind, NAME};
use super::{Language, Material};
use crate::conversation::json::{Extra, Json};
use crate::conversation::log::Position;
use crate::conversation::message::ToolCall;
use crate::conversation::message::{Block, Role};
use crate::digest::{Aliases, Failures, HUGE, ToolKind, is_digest, without_number};
use crate::text::cut::middle_by_bytes;
use crate::text::names::{NameMap, NameSet, names};

/// What a person said at once is kept up to this, in bytes.
const USER: usize = 1_500;
/// What is said of a call in one line.
const CALL: usize = 300;
/// A longer line is not kept: it is data, or it is prose that the next ones tell shorter.
const LINE: usize = 4_000;
/// A shorter line is no text to look for.
const TEXT: usize = 12;
/// So far from a line a name that the model wrote still speaks for it, in lines.
const NEAR: usize = 8;

/// What the model has just said, in a line, is worth so much; less as it grows older.
const JUST_SAID: f32 = 0.015;
/// What is worth something beside its names: what the model said and did, in a line; what else it said;
/// what others said; a line that tells of a failure; a picture.
const DONE: f32 = 0.002;
const SAID: f32 = 0.000_5;
const NOTED: f32 = 0.001;
const FAILED: f32 = 0.001;
const SHOWN: f32 = 0.01;

/// Who speaks in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Speaker {
    /// A person: it is kept as long as anything is.
    Person,
    /// The model.
    Assistant,
    /// The model, to a tool. Its lines are long arguments and what the tool answered.
    Call,
    /// The host, in a system message or an earlier summary of its own.
    Note,
    /// The host, in the person's place: reminders, rules, attached files.
    Host,
    /// A tool whose call is not among what is told.
    Result,
    /// A picture stood here.
    Picture,
    /// Who wrote an earlier summary: a model, in its own words.
    Summariser,
}

impl Speaker {
    const ALL: [Self; 8] = [
        Self::Person,
        Self::Assistant,
        Self::Call,
        Self::Note,
        Self::Host,
        Self::Result,
        Self::Picture,
        Self::Summariser,
    ];

    /// How its headings begin.
    fn label(self) -> &'static str {
        match self {
            Self::Person => "User: ",
            Self::Assistant => "Assistant: ",
            Self::Call => "Call ",
            Self::Note => "Note: ",
            Self::Host => "Host: ",
            Self::Picture => "(picture)",
            Self::Result => "Result:",
            Self::Summariser => "",
        }
    }

    /// What the heading of an inherited entry is worth, before its names are counted.
    fn inherited_worth(self) -> f32 {
        match self {
            Self::Person => f32::INFINITY,
            Self::Result => 0.0,
            Self::Picture => SHOWN,
            Self::Summariser => NOTED * 4.0,
            Self::Assistant | Self::Call => DONE,
            Self::Note | Self::Host => NOTED,
        }
    }
}

/// A part of an extract that is being made: a heading, and lines under it.
pub(crate) struct Entry<'a> {
    speaker: Speaker,
    /// The message that the heading came from.
    at: Option<Position>,
    /// As it is written: with the speaker's label, what goes on indented.
    heading: String,
    /// Worth of the heading before its names are counted, what it was, and whether it is in.
    worth: f32,
    kind: LineKind,
    kept: bool,
    lines: Vec<Candidate<'a>>,
    texts: Vec<LinesOf<'a>>,
}

/// A text that lines of an entry are of.
struct LinesOf<'a> {
    text: &'a str,
    /// The message that it came from.
    at: Option<Position>,
    /// How many lines the entry has up to the end of this text.
    end: usize,
}

/// A line that may be kept.
struct Candidate<'a> {
    text: &'a str,
    /// Worth before its names are counted.
    worth: f32,
    kind: LineKind,
    kept: bool,
}

impl<'a> Entry<'a> {
    fn new(speaker: Speaker, at: Option<Position>, said: &str, worth: f32, kind: LineKind) -> Self {
        let heading = format!("{}{said}", speaker.label());
        Self { speaker, at, heading, worth, kind, kept: false, lines: Vec::new(), texts: Vec::new() }
    }

    /// An entry of an earlier summary, of which this is the text. `None` if it is of another.
    pub(super) fn inherited(saved: &SavedEntry, text: &'a str) -> Option<Self> {
        let said = saved.heading.of(text)?;
        let worth = saved.speaker.inherited_worth();
        let mut kinds = saved.kinds.chars().map(LineKind::of);
        let mut kind = || kinds.next().unwrap_or(LineKind::Other);
        let mut entry = Self::new(saved.speaker, saved.at, said, worth, kind());
        for SavedLine(at, passage) in &saved.lines {
            entry.add_inherited(*at, passage.of(text)?, kind());
        }
        Some(entry)
    }

    /// Adds lines of a text, in their order.
    fn add(&mut self, at: Option<Position>, text: &'a str, lines: impl Iterator<Item = Candidate<'a>>) {
        self.lines.extend(lines);
        self.texts.push(LinesOf { text, at, end: self.lines.len() });
    }

    fn add_inherited(&mut self, at: Option<Position>, line: &'a str, kind: LineKind) {
        let candidate = Candidate { text: line, worth: 0.0, kind, kept: false };
        self.add(at, line, std::iter::once(candidate));
    }

    /// The file that its lines are of, if they are of one.
    fn file(&self) -> Option<&str> {
        let of_file =
            |kind| matches!(kind, LineKind::Read | LineKind::Changed | LineKind::New | LineKind::Old);
        let is_of_file = self.speaker == Speaker::Call && self.lines.iter().any(|line| of_file(line.kind));
        is_of_file.then(|| names(&self.heading).find(|name| name.contains('/'))).flatten()
    }
}

/// What was said and done, in its order.
#[derive(Debug, Default)]
pub(crate) struct Extract {
    pub(crate) text: String,
    /// What stands in the text.
    pub(crate) entries: Vec<SavedEntry>,
}

/// What of earlier summaries goes into an extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherited {
    /// Their extracts: the new summary has slots for the rest.
    Extracts,
    /// All that they say, in this language: the new summary has no slots.
    Everything(Language),
}

/// Which lines an extract keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Choose {
    /// The best ones, until the room is full.
    Fill,
    /// Those whose chance to be needed is worth their bytes, and no more than the room holds.
    Pay(LinePrice),
}

/// What lines must be worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinePrice {
    /// Of a byte: the chance of a need that pays for it.
    pub(crate) byte: f32,
    /// How much the chance counts that a line is edited.
    pub(crate) text: f32,
    /// What stands beside the lines has so many bytes.
    pub(crate) slots: usize,
    /// What people said has so many bytes of its own.
    pub(crate) people: usize,
}

/// What an extract is to be.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) inherited: Inherited,
    /// Bytes, about.
    pub(super) limit: usize,
    pub(super) choose: Choose,
    pub(super) focus: Option<&'a str>,
    pub(super) aliases: &'a Aliases,
    pub(super) uses: &'a Uses,
}

/// Makes an extract. `later` are names that what follows mentions anyway.
pub(super) fn extract<'a>(
    material: &[&Material],
    wanted: Wanted<'_>,
    later: impl Iterator<Item = &'a str>,
) -> Extract {
    let utterances = Utterances::of(material, wanted);
    let mut entries = utterances.entries();
    if let Some(focus) = wanted.focus {
        prefer(&mut entries, focus);
    }
    let text_weight = match wanted.choose {
        Choose::Fill => 0.0,
        Choose::Pay(price) => price.text,
    };
    let mut choices = worth_of_lines(&entries, wanted.uses, text_weight, later, |_| {});
    let mut left = wanted.limit.saturating_sub(60);
    // What people said comes first, in half of the room; then the rest; then what people said again.
    let of_people = match wanted.choose {
        Choose::Fill => left / 2,
        Choose::Pay(price) => price.people.min(left / 2),
    };
    left -= of_people - keep_people(&mut entries, of_people);
    if let Choose::Pay(price) = wanted.choose {
        choices = that_pay(&entries, choices, price.byte);
    }
    left = keep_best(&mut entries, choices, left);
    if wanted.choose == Choose::Fill {
        keep_people(&mut entries, left);
    }
    render(&entries)
}

/// Something whose chance to be needed is judged.
pub(super) enum Judged<'a> {
    /// A name, in the line that mentions it last.
    Name { name: &'a str, known: [f32; 8], kind: LineKind },
    /// A line, as text that may be edited.
    Text { line: &'a str, known: [f32; 9], kind: LineKind },
}

/// Judges all names and lines, and keeps none.
pub(super) fn judge<'a>(
    material: &[&Material],
    wanted: Wanted<'_>,
    later: impl Iterator<Item = &'a str>,
    judged: impl FnMut(Judged<'_>),
) {
    worth_of_lines(&Utterances::of(material, wanted).entries(), wanted.uses, 1.0, later, judged);
}

/// What a model wrote where an extract stands in its form, all of it.
pub(super) fn of_model(lines: Vec<&str>) -> Extract {
    let mut entries = read(lines, Labels::Words);
    for entry in &mut entries {
        entry.kept = true;
        entry.lines.iter_mut().for_each(|line| line.kept = true);
    }
    render(&entries)
}

/// What messages and earlier summaries say, one after the other. Holds the texts that do not
/// stand in a message as they are: arguments, unquoted.
struct Utterances<'a> {
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
        id: &'a str,
        name: &'a str,
        tool: ToolKind,
        arguments: Vec<Argument>,
    },
    Result {
        id: &'a str,
        text: &'a str,
    },
    Picture,
}

/// An argument of a call, a string as its text.
struct Argument {
    kind: LineKind,
    value: String,
}

impl<'a> Utterances<'a> {
    fn of(material: &[&'a Material], wanted: Wanted<'_>) -> Self {
        let mut all = Vec::new();
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
                    (Block::Text(text), Role::Tool) => Utterance::Result { id: "", text: &text.text },
                    (Block::Text(text), Role::Assistant) => Utterance::Answer(&text.text),
                    (Block::Text(text), Role::System | Role::Summary) => Utterance::Note(&text.text),
                    (Block::ToolCall(call), _) => {
                        let tool = wanted.aliases.kind_of(call);
                        let arguments = arguments(call, tool);
                        Utterance::Call { id: &call.id, name: &call.name, tool, arguments }
                    }
                    (Block::ToolResult(result), _) if result.text.len() > HUGE => {
                        let [start, end] = start_and_end(&result.text);
                        all.push((Some(at), Utterance::Result { id: &result.id, text: start }));
                        Utterance::Result { id: &result.id, text: end }
                    }
                    (Block::ToolResult(result), _) => {
                        Utterance::Result { id: &result.id, text: &result.text }
                    }
                    (Block::Image(_), _) => Utterance::Picture,
                    (Block::Thinking(thinking), _) => Utterance::Thought(&thinking.text),
                    (Block::Opaque(_), _) => continue,
                };
                all.push((Some(at), utterance));
            }
        }
        Self { all }
    }

    fn entries(&'a self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut calls: NameMap<'_, (usize, LineKind)> = NameMap::default();
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
                    calls.insert(id, (entries.len(), kind_of_result(*tool, name)));
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
                    if !id.is_empty() {
                        calls.insert(id, (entries.len(), kind));
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

/// Whether the labels of a text say who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Labels {
    /// Code wrote them.
    Trusted,
    /// A model wrote them: they are words like all others.
    Words,
}

/// Reads the lines of an extract that has no values: headings, and indented lines under them.
pub(super) fn read<'a>(lines: Vec<&'a str>, labels: Labels) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for line in lines {
        match (line.strip_prefix("  "), entries.last_mut()) {
            (Some(under), Some(entry)) if entry.speaker == Speaker::Person => {
                entry.heading.push_str("\n  ");
                entry.heading.push_str(under);
            }
            (Some(under), Some(entry)) => entry.add_inherited(None, under, LineKind::Other),
            // How much was left out then is in the handle.
            _ if line.starts_with('(') && line.ends_with(" left out)") || line.trim().is_empty() => {}
            _ => {
                let speaks = |speaker: &Speaker| {
                    labels == Labels::Trusted
                        && !speaker.label().is_empty()
                        && line.starts_with(speaker.label())
                };
                let speaker = Speaker::ALL.into_iter().find(speaks).unwrap_or(Speaker::Summariser);
                let said = line.strip_prefix(speaker.label()).unwrap_or(line);
                entries.push(Entry::new(speaker, None, said, speaker.inherited_worth(), LineKind::Other));
            }
        }
    }
    entries
}

/// What goes on under a heading stands further in: nothing that was said looks like a heading.
fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
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

/// Lines that speak of the focus are worth more.
fn prefer(entries: &mut [Entry<'_>], focus: &str) {
    /// More than any name.
    const WORTH: f32 = 1.0;
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

/// A name of the lines.
struct Named {
    known: NameUse,
    /// A later line mentions it.
    later: bool,
}

/// The names of all lines, by number: each is looked up once where it stands, and never again.
struct NameTable<'a> {
    numbers: NameMap<'a, u32>,
    /// By number.
    names: Vec<Named>,
    /// The numbers of all names that were found, in the order of the text.
    found: Vec<u32>,
}

impl<'a> NameTable<'a> {
    fn add(&mut self, name: &'a str, uses: &Uses) {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(Named { known: uses.name(name), later: false });
        }
        self.found.push(number);
    }
}

/// A line with its names.
struct NamedLine<'a> {
    /// Where it is: its entry, and its number; 0 is the heading.
    at: (usize, usize),
    text: &'a str,
    kind: LineKind,
    /// The message that it came from.
    message: Option<Position>,
    /// Its names, among all that were found.
    names: Range<usize>,
}

/// The worth of each line: its own, that of the names it mentions last, and `text_weight` times the chance
/// that it is edited.
fn worth_of_lines<'a>(
    entries: &[Entry<'_>],
    uses: &Uses,
    text_weight: f32,
    later: impl Iterator<Item = &'a str>,
    mut judged: impl FnMut(Judged<'_>),
) -> Vec<Choice> {
    let count = entries.iter().map(|entry| entry.lines.len() + 1).sum::<usize>();
    let mut table = NameTable {
        numbers: NameMap::with_capacity_and_hasher(count, Default::default()),
        names: Vec::with_capacity(count),
        found: Vec::with_capacity(2 * count),
    };
    let mut lines: Vec<NamedLine<'_>> = Vec::with_capacity(count);
    for (at, entry) in entries.iter().enumerate() {
        let first = table.found.len();
        names(&entry.heading).for_each(|name| table.add(name, uses));
        let (kind, message, names_of) = (entry.kind, entry.at, first..table.found.len());
        lines.push(NamedLine { at: (at, 0), text: &entry.heading, kind, message, names: names_of });
        let mut number = 0;
        for LinesOf { text, at: message, end } in &entry.texts {
            // Names are found in the whole text, which is faster than line by line.
            let mut names = names(text).peekable();
            for line in &entry.lines[number..*end] {
                number += 1;
                let Range { start, end } = line.text.as_bytes().as_ptr_range();
                while names.next_if(|name| name.as_ptr() < start).is_some() {}
                let first = table.found.len();
                while let Some(name) = names.next_if(|name| name.as_ptr() < end) {
                    table.add(name, uses);
                }
                let (text, kind, names) = (line.text, line.kind, first..table.found.len());
                lines.push(NamedLine { at: (at, number), text, kind, message: *message, names });
            }
        }
    }
    let NameTable { numbers, mut names, found } = table;
    for name in later {
        if let Some(number) = numbers.get(name) {
            names[*number as usize].later = true;
        }
    }
    let texts: Vec<&str> = numbers_in_order(numbers);
    // How many lines before each have a name that the model wrote.
    let mut written: Vec<u32> = Vec::with_capacity(lines.len() + 1);
    written.push(0);
    for line in &lines {
        let own = |number: &u32| {
            let known = &names[*number as usize].known;
            known.written || known.calls > 0
        };
        let so_far = written.last().copied().unwrap_or_default();
        written.push(so_far + u32::from(found[line.names.clone()].iter().any(own)));
    }
    let now = uses.step();
    let files: Vec<Option<_>> =
        entries.iter().map(|entry| entry.file().and_then(|path| uses.file(path))).collect();
    let mut seen: NameSet<'_> = NameSet::default();
    let mut choices = Vec::with_capacity(count / 2);
    for (index, line) in lines.iter().enumerate().rev() {
        let (at, number) = line.at;
        let entry = &entries[at];
        let mut worth = number.checked_sub(1).map_or(entry.worth, |number| entry.lines[number].worth);
        let step = line.message.map_or(0, |at| uses.step_of(at));
        let age = now.saturating_sub(step);
        if number == 0 && line.kind == LineKind::Own {
            // What it said last says best what it does next.
            worth += JUST_SAID / (1.0 + age as f32 / 20.0);
        }
        let mut called = false;
        for number in &found[line.names.clone()] {
            let name = &mut names[*number as usize];
            called |= name.known.calls > 0;
            if !std::mem::replace(&mut name.later, true) {
                let (name, kind) = (texts[*number as usize], line.kind);
                let known = worth::known_of_name(name, &names[*number as usize].known, now);
                judged(Judged::Name { name, known, kind });
                worth += NAME.chance(known, kind);
            }
        }
        if text_weight > 0.0 && number > 0 && line.text.len() >= TEXT && seen.insert(line.text) {
            let (first, last) = (index - number.min(NEAR), (index + NEAR).min(lines.len() - 1));
            let last = last.min(index - number + entry.lines.len());
            let editable = Editable {
                age,
                file: files[at],
                step,
                near_written: written[last + 1] > written[first],
                called,
                bytes: line.text.len(),
            };
            let (known, kind) = (worth::known_of_text(&editable, now), line.kind);
            judged(Judged::Text { line: line.text, known, kind });
            worth += text_weight * worth::TEXT.chance(known, kind);
        }
        if worth > 0.0 && (number == 0 || line.text.len() <= LINE) {
            choices.push((at, number, worth));
        }
    }
    choices
}

/// The names of a table, by their numbers.
fn numbers_in_order<'a>(numbers: NameMap<'a, u32>) -> Vec<&'a str> {
    let mut texts = vec![""; numbers.len()];
    for (name, number) in numbers {
        texts[number as usize] = name;
    }
    texts
}

/// What a line takes in an extract, in bytes.
fn size_of(entries: &[Entry<'_>], at: usize, number: usize) -> usize {
    let entry = &entries[at];
    if number == 0 { entry.heading.len() + 1 } else { entry.lines[number - 1].text.len() + 3 }
}

/// The choices that are worth their bytes; lines of an entry only if together they pay for its heading.
/// The choices of an entry stand together, its heading last.
fn that_pay(entries: &[Entry<'_>], choices: Vec<Choice>, byte: f32) -> Vec<Choice> {
    let gain = |&(at, number, worth): &Choice| worth - byte * size_of(entries, at, number) as f32;
    let mut paying = Vec::with_capacity(choices.len() / 2);
    for of_entry in choices.chunk_by(|a, b| a.0 == b.0) {
        let at = of_entry[0].0;
        let heading = of_entry.iter().find(|choice| choice.1 == 0).copied().unwrap_or((at, 0, 0.0));
        let lines = || of_entry.iter().filter(|choice| choice.1 > 0 && gain(choice) > 0.0);
        let of_lines: f32 = lines().map(gain).sum();
        let of_heading = if entries[at].heading.is_empty() { 0.0 } else { gain(&heading) };
        if of_lines + of_heading > 0.0 {
            paying.extend(lines());
            paying.extend(neighbours(&entries[at], of_entry, lines(), byte));
            if of_heading > 0.0 {
                paying.push(heading);
            }
        }
    }
    paying
}

/// Lines beside those that are kept, which are worth a share of them: what stands around a line says what it
/// means.
fn neighbours<'c>(
    entry: &Entry<'_>,
    of_entry: &[Choice],
    kept: impl Iterator<Item = &'c Choice>,
    byte: f32,
) -> Vec<Choice> {
    const SHARE: f32 = 0.03;
    // By number of the line, with an empty place at both ends.
    let (mut own, mut shared) = (vec![0.0; entry.lines.len() + 2], vec![0.0_f32; entry.lines.len() + 2]);
    of_entry.iter().for_each(|(_, number, worth)| own[*number] = *worth);
    let mut is_kept = vec![false; entry.lines.len() + 2];
    for (_, number, worth) in kept {
        is_kept[*number] = true;
        for beside in [number - 1, number + 1] {
            shared[beside] = shared[beside].max(SHARE * worth);
        }
    }
    let (at, mut beside) = (of_entry[0].0, Vec::new());
    for (number, line) in (1..).zip(&entry.lines) {
        let worth = own[number] + shared[number];
        let pays = worth > byte * (line.text.len() + 3) as f32;
        if shared[number] > 0.0 && pays && !is_kept[number] && line.text.len() <= LINE {
            beside.push((at, number, worth));
        }
    }
    beside
}

/// How many bytes of these entries would not be kept now: their names were mentioned again elsewhere since,
/// or have grown old.
pub(super) fn dead_bytes(entries: &[Entry<'_>], uses: &Uses, price: LinePrice) -> usize {
    let now = uses.step();
    let worth = |text: &str, kind: LineKind, at: Option<Position>| -> f32 {
        let last = |name: &&str| at.is_none_or(|at| uses.name(name).is_last_in(at));
        names(text).filter(last).map(|name| worth::of_name(name, &uses.name(name), kind, now)).sum()
    };
    let mut dead = 0;
    for entry in entries.iter().filter(|entry| entry.speaker != Speaker::Person) {
        let mut live = entry.worth + worth(&entry.heading, entry.kind, entry.at);
        live -= price.byte * (entry.heading.len() + 1) as f32;
        let (mut number, mut of_lines) = (0, 0);
        let file = entry.file().and_then(|path| uses.file(path));
        for LinesOf { at, end, .. } in &entry.texts {
            for line in &entry.lines[number..*end] {
                let size = line.text.len() + 3;
                let mut gain = worth(line.text, line.kind, *at) - price.byte * size as f32;
                let step = at.map_or(0, |at| uses.step_of(at));
                let bytes = line.text.len();
                let age = now.saturating_sub(step);
                let editable = Editable { age, file, step, near_written: true, called: false, bytes };
                gain += price.text * worth::of_text(&editable, line.kind, now);
                if gain > 0.0 {
                    live += gain;
                } else {
                    of_lines += size;
                }
            }
            number = *end;
        }
        dead += of_lines;
        if live <= 0.0 {
            dead += entry.heading.len() + 1;
        }
    }
    dead
}

/// Keeps what people said, the newest first. Gives what is left of the room.
fn keep_people(entries: &mut [Entry<'_>], mut room: usize) -> usize {
    for entry in entries.iter_mut().rev().filter(|entry| entry.speaker == Speaker::Person && !entry.kept) {
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
    let mut order: Vec<(f32, Choice)> = choices
        .into_iter()
        .filter(|(_, _, worth)| *worth > 0.0 && worth.is_finite())
        .map(|choice| (choice.2 / (size_of(entries, choice.0, choice.1) as f32 + 16.0), choice))
        .collect();
    // The order is the same wherever it is made: by worth, then by place.
    order.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| (x.0, x.1).cmp(&(y.0, y.1))));
    for (_, choice) in order {
        let (at, number, _) = choice;
        let mut cost = size_of(entries, at, number);
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

fn render(entries: &[Entry<'_>]) -> Extract {
    let (mut gone, mut all) = (0, 0);
    for entry in entries {
        let kept = entry.lines.iter().filter(|line| line.kept).count();
        let heading = usize::from(!entry.heading.is_empty());
        all += entry.lines.len() + heading;
        gone += entry.lines.len() - kept + if entry.kept { 0 } else { heading };
    }
    let mut text = if gone == 0 { String::new() } else { format!("({gone} of {all} lines left out)\n") };
    let mut saved = Vec::new();
    for entry in entries.iter().filter(|entry| entry.kept) {
        let start = text.len() + entry.speaker.label().len();
        text.push_str(&entry.heading);
        let heading = Passage::new(start, text.len());
        if !entry.heading.is_empty() {
            text.push('\n');
        }
        let mut lines = Vec::new();
        let mut kinds = String::from(entry.kind.letter());
        let mut first = 0;
        for LinesOf { at, end, .. } in &entry.texts {
            for line in entry.lines[first..*end].iter().filter(|line| line.kept) {
                text.push_str("  ");
                let start = text.len();
                text.push_str(line.text);
                lines.push(SavedLine(*at, Passage::new(start, text.len())));
                kinds.push(line.kind.letter());
                text.push('\n');
            }
            first = *end;
        }
        saved.push(SavedEntry { speaker: entry.speaker, at: entry.at, heading, lines, kinds });
    }
    Extract { text, entries: saved }
}

fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let middle = middle_by_bytes(text, most * 3 / 4, most / 4);
    format!("{} … {}", text[..middle.start].trim_end(), text[middle.end..].trim_start())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conversation::log::Log;
    use crate::conversation::message::{Message, Text, Words};

    fn told(message: Message) -> Material {
        Material::Message(Position(0), Arc::new(message))
    }

    fn earlier(text: &str) -> Material {
        Material::Summary(Earlier::without_values(text))
    }

    fn extract_of(all: &[Material], limit: usize, choose: Choose, later: &[&str]) -> Extract {
        let mut log = Log::new();
        for material in all {
            if let Material::Message(_, message) = material {
                log.push(message.clone());
            }
        }
        let (mut uses, aliases) = (Uses::default(), Aliases::default());
        uses.follow(&log, &aliases);
        let inherited = Inherited::Extracts;
        let wanted = Wanted { inherited, limit, choose, focus: None, aliases: &aliases, uses: &uses };
        extract(&all.iter().collect::<Vec<_>>(), wanted, later.iter().copied())
    }

    fn extracted(all: &[Material], limit: usize) -> String {
        extract_of(all, limit, Choose::Fill, &[]).text
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
        let before = "(5 of 9 lines left out)\nUser: Fix it.\n  And the docs.\nAssistant: I look.\nCall Read: src/parse.rs\n  fn parse_line(s: &str) {\n";
        let all = [earlier(before), told(Message::assistant("Now the store_index."))];
        let text = extracted(&all, 10_000);
        assert_eq!(text, format!("{}Assistant: Now the store_index.\n", before.split_once('\n').unwrap().1));
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
        let text = extract_of(&all, 10_000, Choose::Fill, &["parse_line"]).text;
        assert!(!text.contains("new: u16") && text.contains("other_name"), "{text}");
    }

    #[test]
    fn nothing_of_the_host_stands_under_the_persons_name() {
        let text = "<env>\npath_of_host\n</env>\nFix parse_line.\n<env>\nmore_of_host\n</env>";
        let start = text.find("Fix").unwrap();
        let words = Words::part(start, start + "Fix parse_line.".len());
        let mixed = Text { text: text.into(), words, extra: Extra::NONE };
        let all = [
            told(Message::user("A file: attached_name").with_attachment()),
            told(Message::new(Role::User, vec![Block::Text(mixed)])),
        ];
        assert_eq!(
            extracted(&all, 10_000),
            "(2 of 8 lines left out)\nHost: A file: attached_name\nHost: <env>\n  path_of_host\nUser: Fix parse_line.\nHost: <env>\n  more_of_host\n"
        );
        // And it stays so in the next summary.
        let again = extracted(&[earlier("Host: <env>\n  path_of_host\nUser: Fix it.\n")], 10_000);
        assert_eq!(again, "Host: <env>\n  path_of_host\nUser: Fix it.\n");
    }

    #[test]
    fn it_fits_whatever_comes() {
        let long: Vec<Message> =
            (0..300).map(|n| Message::user(format!("message {n} {}", "字".repeat(n)))).collect();
        let mut all = vec![earlier(&"earlier_line 1234\n".repeat(500))];
        all.extend(long.into_iter().map(told));
        for limit in [0, 100, 1_000, 20_000] {
            let text = extracted(&all, limit);
            assert!(text.len() <= limit + 100, "{limit}: {}", text.len());
        }
    }
}
