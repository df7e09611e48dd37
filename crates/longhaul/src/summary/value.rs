//! A summary as a value: what stands in each slot and each entry of the extract, who said it and
//! where it came from. A fold holds it beside the text that is sent, and the next summary is made
//! from it: what was written is never read back from prose, so that a heading, a person's words
//! and a tool's output cannot be taken for each other. Texts are passages of what is sent: each
//! is held once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Language;
use super::extract::{self, Entry, Extract, LinePrice, Speaker};
use super::slot::Slot;
use super::slot_values::{Item, SlotValues};
use super::statement::Statement;
use super::template::{Prose, Template};
use super::uses::Uses;
use crate::conversation::log::Position;
use crate::text::count::words;

/// What a summary says, as values over its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The name of its template.
    template: Box<str>,
    language: Language,
    /// Where the summary stands in the text of its fold. All other passages count from its start.
    body: Passage,
    /// Where its quotes begin in the text of its fold: what is before them code wrote. A summary of an older version does
    /// not tell them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quotes: Option<u32>,
    /// In the order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    items: Vec<SlotItem>,
    /// The extract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<SavedEntry>,
}

/// A stretch of text, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub(crate) struct Passage {
    start: u32,
    end: u32,
}

/// A value of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlotItem {
    slot: Slot,
    /// The message that it came from, where code found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Position>,
    #[serde(flatten)]
    statement: Statement<Passage>,
}

/// An entry of an extract: a heading, and lines under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedEntry {
    pub(super) speaker: Speaker,
    /// The message that the heading came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Position>,
    /// What was said, behind the speaker's label.
    #[serde(default)]
    pub(super) heading: Passage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lines: Vec<SavedLine>,
    /// What the heading and each line were, a letter each.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) kinds: String,
}

/// A line under a heading, and the message that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLine(pub(super) Option<Position>, pub(super) Passage);

impl Passage {
    pub(super) fn new(start: usize, end: usize) -> Self {
        // A text of 4 GB is no summary: what is behind it cannot be told.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: offset(start), end: offset(end) }
    }

    /// Its text; `None` if it is of another text.
    pub(super) fn of(self, text: &str) -> Option<&str> {
        text.get(self.start as usize..self.end as usize)
    }

    /// The same in a text where its own begins at `start` and is cut off at `end`.
    fn moved(self, start: usize, end: usize) -> Self {
        let moved = |at: u32| (at as usize + start).min(end);
        Self::new(moved(self.start), moved(self.end))
    }
}

impl From<(u32, u32)> for Passage {
    fn from((start, end): (u32, u32)) -> Self {
        Self { start, end }
    }
}

impl From<Passage> for (u32, u32) {
    fn from(passage: Passage) -> Self {
        (passage.start, passage.end)
    }
}

/// Where a fold restates items of the keep set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before its summary.
    InFront,
    /// Behind its summary.
    Behind,
}

/// The items of the keep set that a fold restates, in the form that the model reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Restated<'a> {
    pub(crate) text: &'a str,
    pub(crate) place: Place,
}

/// A summary that was just written.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) text: String,
    value: Summary,
    /// Where the fence around its quotes opens, and where what they say begins.
    fence: Option<Passage>,
}

/// Stands in the place of a label until the fold has a handle.
const NO_LABEL: &str = "000000000000";

/// What a fold says beside its summary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) restated: Restated<'a>,
    /// Which requests are answered inside it, in the words of who asked and who answered.
    pub(crate) answered: &'a str,
    /// How what it stands for is recalled.
    pub(crate) recall: &'a str,
    /// The handle of that, in short: no text can name the handle of what it stands in.
    pub(crate) label: &'a str,
    /// How many messages it stands for.
    pub(crate) count: usize,
}

impl Written {
    pub(super) fn new(template: &Template, language: Language) -> Self {
        let value = Summary {
            template: template.name.into(),
            language,
            body: Passage::default(),
            quotes: None,
            items: Vec::new(),
            entries: Vec::new(),
        };
        Self { text: String::new(), value, fence: None }
    }

    /// A value that stands in this passage. One that is not plain words is kept as it is.
    pub(super) fn add_item(&mut self, slot: Slot, item: &Item, passage: Passage) {
        let statement = item.statement.with_words(|_| Some(passage));
        let at = item.at;
        self.value.items.extend(statement.map(|statement| SlotItem { slot, at, statement }));
    }

    /// Adds an extract, without the space at its end.
    pub(super) fn add_extract(&mut self, extract: &Extract) {
        let start = self.text.len();
        self.text.push_str(extract.text.trim_end());
        let end = self.text.len();
        let moved = extract.entries.iter().map(|entry| SavedEntry {
            heading: entry.heading.moved(start, end),
            lines: entry.lines.iter().map(|line| SavedLine(line.0, line.1.moved(start, end))).collect(),
            kinds: entry.kinds.clone(),
            ..*entry
        });
        self.value.entries.extend(moved);
    }

    /// Forgets what stands behind this: a section that turned out to be empty.
    pub(super) fn truncate(&mut self, end: usize, items: usize) {
        self.text.truncate(end);
        self.value.items.truncate(items);
    }

    pub(super) fn item_count(&self) -> usize {
        self.value.items.len()
    }

    /// True if nothing is said of what was to be summed up.
    pub(crate) fn says_nothing(&self) -> bool {
        let beside = [Slot::Goal, Slot::OriginalGoal, Slot::Stack, Slot::Environment, Slot::LeftOut];
        let tells = |item: &SlotItem| !beside.contains(&item.slot);
        self.value.entries.is_empty() && !self.value.items.iter().any(tells)
    }

    /// How many words it has. The fence is no part of what it says.
    pub(crate) fn words(&self) -> usize {
        let fence = self.fence.and_then(|fence| fence.of(&self.text)).map_or(0, words);
        words(&self.text) - fence
    }

    /// How long the line is that opens its quotes.
    pub(super) fn fence_bytes(&self) -> usize {
        self.fence.map_or(0, |fence| (fence.end - fence.start) as usize)
    }

    /// Opens the quotes: all that follows is in somebody else's words.
    pub(super) fn open_quotes(&mut self) {
        let [open, says, _] = self.value.language.words().quotes;
        let start = self.text.len();
        self.text.push_str(&format!("{open}{NO_LABEL}{says}\n"));
        self.fence = Some(Passage::new(start, self.text.len()));
    }

    /// True from where its quotes are open.
    pub(super) fn is_quoting(&self) -> bool {
        self.fence.is_some()
    }

    /// The text of a fold: this summary, how what it stands for is recalled, and what it restates. Facts come first; what
    /// is in the words of others, the items of the keep set among it, is told apart from them by where it begins.
    pub(crate) fn into_fold(self, around: Around<'_>) -> (String, Arc<Summary>) {
        let Around { restated, answered, recall, label, count } = around;
        let Self { text: mut body, mut value, fence } = self;
        let [open, _, close] = value.language.words().quotes;
        let fence = fence.map(|fence| (fence.start as usize, fence.end as usize));
        match fence {
            Some((start, end)) if body[end..].trim().is_empty() && answered.is_empty() => {
                body.truncate(start)
            }
            Some((start, _)) => {
                let label_at = start + open.len();
                body.replace_range(label_at..label_at + NO_LABEL.len(), label);
            }
            None => {}
        }
        let mut text = String::new();
        if restated.place == Place::InFront && !restated.text.is_empty() {
            text.push_str(KEEP_HEAD);
            text.push_str(restated.text);
            text.push('\n');
        }
        let in_front = !text.is_empty();
        text.push_str(&format!("{FOLD_HEAD}{count} earlier messages; {recall}⟧\n"));
        let start = text.len();
        text.push_str(&body);
        value.body = Passage::new(start, text.len());
        let quotes = fence.map_or(text.len(), |(fence, _)| start + fence);
        // What stands in front of the facts is a person's.
        value.quotes = u32::try_from(if in_front { 0 } else { quotes }).ok();
        let line = |text: &mut String, line: &str| {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(line);
        };
        if !answered.is_empty() {
            line(&mut text, answered);
        }
        if text.len() > quotes {
            line(&mut text, &format!("{close}{label}⟧\n"));
        }
        if restated.place == Place::Behind && !restated.text.is_empty() {
            line(&mut text, KEEP_HEAD);
            text.push_str(restated.text);
        }
        (text, Arc::new(value))
    }
}

impl Summary {
    /// The same in one text, for a provider that refuses user text of ours: better in one place than nowhere.
    pub(crate) fn undivided(&self) -> Arc<Self> {
        Arc::new(Self { quotes: None, ..self.clone() })
    }

    /// The text of its fold in two: what code wrote, and what others said. `None` where they are not told apart, or nothing
    /// is quoted.
    pub(crate) fn facts_and_quotes<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        text.split_at_checked(self.quotes? as usize).filter(|(_, quotes)| !quotes.is_empty())
    }
}

/// The summary of an earlier fold, which a new one takes in.
#[derive(Debug, Clone)]
pub(crate) struct Earlier {
    /// The summary alone, without its head and what its fold restates.
    text: Box<str>,
    /// `None` for a fold of an old ledger.
    value: Option<Arc<Summary>>,
}

impl Earlier {
    /// `restates` is true for a fold that restates items of the keep set.
    pub(crate) fn of_fold(text: &str, value: Option<&Arc<Summary>>, restates: bool) -> Self {
        let body = value.and_then(|value| value.body.of(text).zip(Some(value)));
        match body {
            Some((body, value)) => Self { text: body.into(), value: Some(value.clone()) },
            None => Self { text: old_fold_body(text, restates).into(), value: None },
        }
    }

    #[cfg(test)]
    pub(super) fn without_values(text: &str) -> Self {
        Self { text: text.into(), value: None }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The values of all slots but the extract.
    pub(super) fn slots(&self) -> SlotValues {
        let Some(value) = &self.value else { return Prose::of(&self.text).slots };
        let mut values = SlotValues::default();
        for SlotItem { slot, at, statement } in &value.items {
            // Words that go on are indented in the text.
            let words = |passage: &Passage| Some(passage.of(&self.text)?.replace("\n  ", "\n"));
            let statement = statement.with_words(words);
            values.push(*slot, statement.map(|statement| Item { at: *at, statement }));
        }
        values
    }

    /// How much of it is lines that would not be kept now, in percent.
    pub(crate) fn dead_percent(&self, uses: &Uses, price: LinePrice) -> u8 {
        let dead = extract::dead_bytes(&self.entries(), uses, price);
        (dead * 100 / self.text.len().max(1)).min(100) as u8
    }

    /// The entries of the extract.
    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        match &self.value {
            Some(value) => {
                value.entries.iter().filter_map(|entry| Entry::inherited(entry, &self.text)).collect()
            }
            None => extract::read(Prose::of(&self.text).lines, extract::Labels::Trusted),
        }
    }
}

/// Opens the summary of a fold. The bytes are in prompts that providers have cached.
const FOLD_HEAD: &str = "⟦Summary of ";
/// Opens what a fold restates.
const KEEP_HEAD: &str = "⟦To keep, as of this summary:⟧\n";

/// The summary alone, of a fold that has no values.
fn old_fold_body(text: &str, restates: bool) -> &str {
    let body = match text.strip_prefix(FOLD_HEAD).and_then(|rest| rest.split_once('\n')) {
        Some((_, body)) => body,
        None => text,
    };
    if !restates {
        return body;
    }
    body.rsplit_once(KEEP_HEAD).map_or(body, |(body, _)| body)
}
