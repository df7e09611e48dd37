//! The entries of an extract: who speaks, in a heading, and lines under it.

use serde::{Deserialize, Serialize};

use crate::conversation::log::Position;
use crate::summary::value::{SavedEntry, SavedLine};
use crate::summary::worth::LineKind;
use crate::text::names::names;

/// What is worth something beside its names: what the model said and did, in a line; what others said; a picture.
pub(super) const DONE: f32 = 0.002;
pub(super) const NOTED: f32 = 0.001;
pub(super) const SHOWN: f32 = 0.01;

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
    pub(super) fn label(self) -> &'static str {
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
    pub(super) fn inherited_worth(self) -> f32 {
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
    pub(super) speaker: Speaker,
    /// The message that the heading came from.
    pub(super) at: Option<Position>,
    /// As it is written: with the speaker's label, what goes on indented.
    pub(super) heading: String,
    /// Worth of the heading before its names are counted, what it was, and whether it is in.
    pub(super) worth: f32,
    pub(super) kind: LineKind,
    pub(super) kept: bool,
    pub(super) lines: Vec<Candidate<'a>>,
    pub(super) texts: Vec<LinesOf<'a>>,
}

/// A text that lines of an entry are of.
pub(super) struct LinesOf<'a> {
    pub(super) text: &'a str,
    /// The message that it came from.
    pub(super) at: Option<Position>,
    /// How many lines the entry has up to the end of this text.
    pub(super) end: usize,
}

/// A line that may be kept.
pub(super) struct Candidate<'a> {
    pub(super) text: &'a str,
    /// Worth before its names are counted.
    pub(super) worth: f32,
    pub(super) kind: LineKind,
    pub(super) kept: bool,
}

impl<'a> Entry<'a> {
    pub(super) fn new(
        speaker: Speaker,
        at: Option<Position>,
        said: &str,
        worth: f32,
        kind: LineKind,
    ) -> Self {
        let heading = format!("{}{said}", speaker.label());
        Self { speaker, at, heading, worth, kind, kept: false, lines: Vec::new(), texts: Vec::new() }
    }

    /// An entry of an earlier summary, of which this is the text. `None` if it is of another.
    pub(crate) fn inherited(saved: &SavedEntry, text: &'a str) -> Option<Self> {
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
    pub(super) fn add(
        &mut self,
        at: Option<Position>,
        text: &'a str,
        lines: impl Iterator<Item = Candidate<'a>>,
    ) {
        self.lines.extend(lines);
        self.texts.push(LinesOf { text, at, end: self.lines.len() });
    }

    fn add_inherited(&mut self, at: Option<Position>, line: &'a str, kind: LineKind) {
        let candidate = Candidate { text: line, worth: 0.0, kind, kept: false };
        self.add(at, line, std::iter::once(candidate));
    }

    /// The file that its lines are of, if they are of one.
    pub(super) fn file(&self) -> Option<&str> {
        let of_file =
            |kind| matches!(kind, LineKind::Read | LineKind::Changed | LineKind::New | LineKind::Old);
        let is_of_file = self.speaker == Speaker::Call && self.lines.iter().any(|line| of_file(line.kind));
        is_of_file.then(|| names(&self.heading).find(|name| name.contains('/'))).flatten()
    }
}

/// Whether the labels of a text say who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// Code wrote them.
    Trusted,
    /// A model wrote them: they are words like all others.
    Words,
}

/// Reads the lines of an extract that has no values: headings, and indented lines under them.
pub(crate) fn read<'a>(lines: Vec<&'a str>, labels: Labels) -> Vec<Entry<'a>> {
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
pub(super) fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
