//! Templates of summaries: files with headings and slots. A line with a slot is written once for
//! each value of the slot; a slot may name what stands there when it is empty
//! (`{open|nothing known}`). A section whose slots are all empty is left out, unless its last line says
//! what stands there then, and what where values had no room (`{|none noted|left out}`): a form with such
//! lines is fixed, and all of it is always there.
//! What a model wrote in a form is read into the same values, and so is a summary of an old ledger,
//! which has none.

use std::borrow::Cow;
use std::collections::HashSet;

use super::Language;
use super::extract::Extract;
use super::harmless::harmless;
use super::slot::{Look, Slot};
use super::slot_values::{Item, SlotValues};
use super::statement::{File, Statement};
use super::value::{Passage, Place, Written};

/// A form that a summary has.
#[derive(Debug)]
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub says: &'static str,
    english: &'static str,
    chinese: &'static str,
}

macro_rules! template {
    ($name:literal, $says:literal) => {
        Template {
            name: $name,
            says: $says,
            english: include_str!(concat!("../../templates/", $name, ".en.txt")),
            chinese: include_str!(concat!("../../templates/", $name, ".zh.txt")),
        }
    };
}

/// The best lines, in their order.
pub static LINES: Template = template!("lines", "the lines that later work is most likely to need");
/// Finished work (seed 003).
pub static ARCHIVE: Template = template!("archive", "finished work: goal, milestones, decisions, files");
/// Finished turns, in any profile but those that have a form of their own for them.
pub static FINISHED: Template = template!("finished", "turns that ended: done, not finished, state, notes");
/// A cut inside a running task.
pub static HAND_OFF: Template = template!("hand_off", "a task that goes on: done, remaining, state, notes");
/// The four sections of seed 000.
pub static REBUILD: Template = template!("rebuild", "a rebuilt session: completed, remaining, state, notes");
/// The full summary of seed 004.
pub static FULL: Template =
    template!("full", "everything: goals, done, open, places, changes, facts, constraints");

/// All templates.
pub static TEMPLATES: [&Template; 6] = [&LINES, &ARCHIVE, &FINISHED, &HAND_OFF, &REBUILD, &FULL];

/// A line of a template.
#[derive(Debug, PartialEq)]
enum TemplateLine<'a> {
    Fixed(&'a str),
    /// The border between what code wrote and what it quotes.
    Quotes,
    Place {
        before: &'a str,
        slot: Slot,
        empty: Option<&'a str>,
    },
    /// What stands in a section without a value, and in one whose values had no room.
    Nothing {
        before: &'a str,
        none: &'a str,
        left_out: &'a str,
    },
}

impl<'a> TemplateLine<'a> {
    fn of(line: &'a str) -> Self {
        if line == "{quotes}" {
            return Self::Quotes;
        }
        let place = || {
            let (before, rest) = line.split_once('{')?;
            let named = rest.strip_suffix('}')?;
            let (name, empty) = match named.split_once('|') {
                Some(("", words)) => {
                    let (none, left_out) = words.split_once('|')?;
                    return Some(Self::Nothing { before, none, left_out });
                }
                Some((name, empty)) => (name, Some(empty)),
                None => (named, None),
            };
            Some(Self::Place { before, slot: Slot::find(name)?, empty })
        };
        place().unwrap_or(Self::Fixed(line))
    }
}

impl PartialEq for Template {
    /// Each is one row of the table: its name is its own.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Template {
    /// Where a fold of this form restates what must be kept. The full summary opens with it (seed 004).
    pub(crate) fn restates(&self) -> Place {
        if self.name == FULL.name { Place::InFront } else { Place::Behind }
    }

    /// How many bytes of so many are for all slots but the extract. A full summary is made of its slots, and
    /// lines are what is left over; in the others lines say most.
    pub(crate) fn room_for_slots(&self, room: usize) -> usize {
        match () {
            () if !self.has(Slot::Lines) => room,
            () if self.name == FULL.name => room / 5 * 3,
            () => room / 5,
        }
    }

    /// The template of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        TEMPLATES.iter().find(|template| template.name == name).copied()
    }

    pub(super) fn text(&self, language: Language) -> &'static str {
        match language {
            Language::English => self.english,
            Language::Chinese => self.chinese,
        }
    }

    /// The template that a text begins like, and its language: this one, where both begin alike.
    pub(crate) fn of(text: &str, language: Language) -> Option<(&'static Self, Language)> {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let begins = |template: &&Self, language| template.text(language).lines().next() == Some(first);
        [language].into_iter().chain(Language::ALL).find_map(|language| {
            TEMPLATES
                .iter()
                .copied()
                .find(|template| begins(template, language))
                .map(|template| (template, language))
        })
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.slots().any(|here| here == slot)
    }

    /// True if all of its lines are always there, whatever is known.
    pub(crate) fn is_fixed(&self) -> bool {
        self.english.lines().any(|line| matches!(TemplateLine::of(line), TemplateLine::Nothing { .. }))
    }

    /// Its slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.english.lines().filter_map(|line| match TemplateLine::of(line) {
            TemplateLine::Place { slot, .. } => Some(slot),
            TemplateLine::Fixed(_) | TemplateLine::Quotes | TemplateLine::Nothing { .. } => None,
        })
    }

    /// The slots before its quotes: they have what code counted. Behind them the same slot has what somebody says of it.
    fn slots_of_facts(&self) -> Vec<Slot> {
        let lines = self.english.lines().map(TemplateLine::of);
        let facts = lines.take_while(|line| *line != TemplateLine::Quotes).filter_map(|line| match line {
            TemplateLine::Place { slot, .. } => Some(slot),
            TemplateLine::Fixed(_) | TemplateLine::Quotes | TemplateLine::Nothing { .. } => None,
        });
        facts.collect()
    }

    /// What a model is to fill in, each slot once.
    pub(crate) fn form(&self, language: Language) -> String {
        let mut form = String::new();
        let mut asked: HashSet<Slot> = HashSet::new();
        for line in self.text(language).lines() {
            match TemplateLine::of(line) {
                TemplateLine::Place { before, slot, .. } if asked.insert(slot) => {
                    form.push_str(&format!("{before}[{}]", slot.hint(language)));
                }
                TemplateLine::Fixed(line) => {
                    form.push_str(&line.replace("{from}", "[…]").replace("{to}", "[…]"));
                }
                TemplateLine::Place { .. } | TemplateLine::Quotes | TemplateLine::Nothing { .. } => continue,
            }
            form.push('\n');
        }
        form
    }

    /// The template with its slots filled. The slot of lines takes the extract.
    pub(crate) fn render(&self, language: Language, values: &SlotValues, lines: &Extract) -> Written {
        let mut out = Written::new(self, language);
        // Where the section begins, whether it has slots, whether one of them has a value, and whether one
        // had values for which there is no room.
        let (mut start, mut items, mut slots, mut filled, mut cut) = (0, 0, false, false, false);
        let of_facts = self.slots_of_facts();
        for line in self.text(language).lines() {
            if line.starts_with('#') || TemplateLine::of(line) == TemplateLine::Quotes {
                if slots && !filled {
                    out.truncate(start, items);
                }
                (start, items) = (out.text.len(), out.item_count());
                (slots, filled, cut) = (false, false, false);
            }
            match TemplateLine::of(line) {
                TemplateLine::Fixed(line) if line.contains("{from}") => {
                    if let Some([from, to]) = &values.range {
                        out.text.push_str(&line.replace("{from}", from).replace("{to}", to));
                        out.text.push('\n');
                    }
                }
                TemplateLine::Fixed(line) => {
                    out.text.push_str(line);
                    out.text.push('\n');
                }
                TemplateLine::Quotes => out.open_quotes(),
                TemplateLine::Nothing { before, none, left_out } => {
                    if !filled {
                        filled = true;
                        out.text.push_str(&format!("{before}{}\n", if cut { left_out } else { none }));
                    }
                }
                TemplateLine::Place { slot: Slot::Lines, .. } => {
                    slots = true;
                    if !lines.text.trim().is_empty() {
                        filled = true;
                        out.add_extract(lines);
                        out.text.push('\n');
                    }
                }
                TemplateLine::Place { before, slot, empty } => {
                    slots = true;
                    // Words are no fact, whatever they are of.
                    let (is_quote, is_of_facts) = (out.is_quoting(), of_facts.contains(&slot));
                    cut |= values.left_out.contains(&slot) && !(is_quote && is_of_facts);
                    let is_here = |item: &&Item| !is_of_facts || item.statement.is_words() == is_quote;
                    let items: Vec<&Item> = values.get(slot).iter().filter(is_here).collect();
                    for item in &items {
                        filled = true;
                        out.text.push_str(before);
                        let start = out.text.len();
                        // Words that go on are indented: they stand under their heading.
                        let said = item.statement.say(language);
                        out.text.push_str(harmless(&said).replace('\n', "\n  ").trim_end());
                        out.add_item(slot, item, Passage::new(start, out.text.len()));
                        out.text.push('\n');
                    }
                    if let Some(empty) = empty.filter(|_| items.is_empty()) {
                        filled = true;
                        out.text.push_str(&unmarked(before));
                        out.text.push_str(empty);
                        out.text.push('\n');
                    }
                }
            }
        }
        if slots && !filled {
            out.truncate(start, items);
        }
        out
    }

    /// Reads what a model wrote in this form, or a summary of an old ledger. What is in no slot
    /// is a note.
    pub(crate) fn read<'a>(&self, language: Language, text: &'a str) -> Prose<'a> {
        let lines = self.text(language).lines().map(TemplateLine::of);
        let lines: Vec<TemplateLine<'_>> = lines.filter(|line| *line != TemplateLine::Quotes).collect();
        let [open, _, close] = language.words().quotes;
        let range = range_start(&lines);
        // In order, with their words.
        let mut found: Vec<(Slot, String)> = Vec::new();
        let mut lines_of = Vec::new();
        // The slots under the heading where we are.
        let mut at = 0;
        let mut last: Option<Slot> = None;
        for line in text.lines() {
            let known = lines.iter().position(
                |known| matches!(known, TemplateLine::Fixed(fixed) if !fixed.is_empty() && *fixed == line),
            );
            if let Some(known) = known {
                (at, last) = (known + 1, None);
                continue;
            }
            let is_fence = line.ends_with('⟧') && (line.starts_with(open) || line.starts_with(close));
            if is_fence || says_nothing(&lines, line) {
                last = None;
                continue;
            }
            // An empty line of what a person said is indented.
            let is_said = last == Some(Slot::Lines) && line.starts_with("  ");
            if line.trim().is_empty() && !is_said || range.is_some_and(|range| line.starts_with(range)) {
                continue;
            }
            let more = line.strip_prefix("  ").filter(|_| last.is_some_and(|slot| slot != Slot::Lines));
            if let Some((more, (_, words))) = more.zip(found.last_mut()) {
                words.push('\n');
                words.push_str(more);
                continue;
            }
            // Slots up to the next heading; of those that begin alike the one whose kind it is.
            let here = lines[at.min(lines.len())..].iter().take_while(|line| {
                !matches!(line, TemplateLine::Fixed(fixed) if fixed.starts_with('#') || fixed.starts_with('<'))
            });
            let mut best: Option<(&str, Slot, &'a str)> = None;
            for place in here {
                let TemplateLine::Place { before, slot, empty } = place else { continue };
                let value = line.strip_prefix(before).or_else(|| other_start(line, before));
                let Some(value) = value.filter(|value| Some(*value) != *empty) else { continue };
                let fits = looks_like(*slot, value);
                let better = match best {
                    None => true,
                    Some((known, other, _)) => {
                        (fits && !looks_like(other, value))
                            || (before.len() > known.len() && fits == looks_like(other, value))
                    }
                };
                if better {
                    best = Some((before, *slot, value));
                }
            }
            match best {
                Some((_, Slot::Lines, value)) => {
                    lines_of.push(value);
                    last = Some(Slot::Lines);
                }
                Some((_, slot, value)) => {
                    found.push((slot, value.to_owned()));
                    last = Some(slot);
                }
                None if is_empty_mark(&lines, line) => {}
                None => {
                    let note = line.trim().trim_start_matches(['-', '*', ' ']);
                    found.push((Slot::Notes, note.to_owned()));
                    last = Some(Slot::Notes);
                }
            }
        }
        let mut slots = SlotValues::default();
        for (slot, words) in found {
            slots.push(slot, [Item { at: None, statement: Statement::read(&words, slot, language) }]);
        }
        Prose { slots, lines: lines_of }
    }
}

/// What a text says that has no values.
pub(crate) struct Prose<'a> {
    pub(crate) slots: SlotValues,
    /// The lines of the extract.
    pub(crate) lines: Vec<&'a str>,
}

impl<'a> Prose<'a> {
    /// Reads a summary of an old ledger. One that begins like no template is an extract.
    pub(crate) fn of(text: &'a str) -> Self {
        let english = Language::English;
        let (template, language) = Template::of(text, english).unwrap_or((&LINES, english));
        template.read(language, text)
    }
}

/// Stands before what is done.
const DONE: &str = "[✓] ";

/// How a line begins, without the mark of what is done.
fn unmarked(before: &str) -> Cow<'_, str> {
    if before.contains(DONE) { before.replace(DONE, "").into() } else { before.into() }
}

/// The rest of a line that begins like this but for its bullet or its mark: models write either, and
/// summaries of old ledgers have no marks.
fn other_start<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let behind_bullet = |before: &str| {
        let rest = before.strip_prefix(['*', '-'])?;
        line.strip_prefix(['*', '-'])?.strip_prefix(rest)
    };
    behind_bullet(before).or_else(|| behind_bullet(&unmarked(before)))
}

/// How the line begins that says from when to when.
fn range_start<'a>(lines: &[TemplateLine<'a>]) -> Option<&'a str> {
    lines.iter().find_map(|line| match line {
        TemplateLine::Fixed(fixed) => fixed.split_once("{from}").map(|(start, _)| start),
        TemplateLine::Place { .. } | TemplateLine::Quotes | TemplateLine::Nothing { .. } => None,
    })
}

/// True for a line of a fixed form that says that there is nothing, in any of its places: models write it
/// behind a label too, or as a milestone.
fn says_nothing(lines: &[TemplateLine<'_>], line: &str) -> bool {
    let is_word = |value: &str| {
        let value = value.trim().trim_end_matches(['.', '。']);
        let is = |known: &TemplateLine<'_>| match known {
            TemplateLine::Nothing { none, left_out, .. } => {
                let words = [*none, *left_out, "none", "无"];
                words.iter().any(|word| word.eq_ignore_ascii_case(value))
            }
            _ => false,
        };
        lines.iter().any(is)
    };
    let value = |before: &str| line.strip_prefix(before).or_else(|| other_start(line, before));
    lines.iter().any(|known| match known {
        TemplateLine::Place { before, .. } | TemplateLine::Nothing { before, .. } => {
            value(before).is_some_and(is_word)
        }
        TemplateLine::Fixed(_) | TemplateLine::Quotes => false,
    })
}

/// A line that says that there is nothing.
fn is_empty_mark(lines: &[TemplateLine<'_>], line: &str) -> bool {
    lines.iter().any(|known| match known {
        TemplateLine::Place { before, empty: Some(empty), .. } => {
            line.strip_prefix(&*unmarked(before)) == Some(*empty)
        }
        _ => false,
    })
}

/// Where slots share a section, their values tell them apart.
fn looks_like(slot: Slot, value: &str) -> bool {
    let quoted = value.starts_with('`');
    let arrow = value.contains(" → ");
    let is_file = || {
        [Language::English, Language::Chinese]
            .into_iter()
            .any(|language| File::read(value, language).is_some())
    };
    match slot.look() {
        Look::Command => quoted && arrow,
        Look::File => quoted && !arrow && is_file(),
        Look::Problem => !quoted && arrow,
        Look::Lines => false,
        Look::Words => !quoted && !arrow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> SlotValues {
        let range = Some(["message 1".to_owned(), "message 9".to_owned()]);
        let mut values = SlotValues { range, ..SlotValues::default() };
        for (slot, texts) in [
            (Slot::Goal, vec!["Fix the parser.\nAll of it."]),
            (Slot::OriginalGoal, vec!["Fix the parser."]),
            (Slot::Unanswered, vec!["And the docs?"]),
            (Slot::Stack, vec!["Rust 1.90"]),
            (Slot::Environment, vec!["Linux, bash"]),
            (Slot::Done, vec!["Find the bug - it is in parse.rs", "Write a test - it fails"]),
            (Slot::Open, vec!["Make it pass"]),
            (Slot::State, vec!["I look at the slice."]),
            (Slot::Commands, vec!["`cargo test` → unknown"]),
            (Slot::Errors, vec!["assertion failed → open"]),
            (Slot::Decisions, vec!["A slice instead of an index."]),
            (Slot::Learnings, vec!["The problem is an off-by-one."]),
            (Slot::Preferences, vec!["Never touch the lock file."]),
        ] {
            values.add(slot, texts.into_iter().map(|text| Item::words(None, text)));
        }
        let file = File { path: "src/parse.rs".to_owned(), reads: 1, changes: 2 };
        values.add(Slot::Files, [Item { at: None, statement: Statement::File(file) }]);
        values
    }

    #[test]
    fn a_form_is_read_as_it_is_written() {
        for template in [&ARCHIVE, &FINISHED, &HAND_OFF, &REBUILD, &FULL] {
            for language in [Language::English, Language::Chinese] {
                let text = template.render(language, &values(), &Extract::default()).text;
                let read = template.read(language, &text).slots;
                for slot in [
                    Slot::Goal,
                    Slot::OriginalGoal,
                    Slot::Unanswered,
                    Slot::Stack,
                    Slot::Environment,
                    Slot::Done,
                    Slot::Files,
                    Slot::Commands,
                    Slot::Open,
                ] {
                    let want = if template.has(slot) { values().get(slot).to_vec() } else { Vec::new() };
                    assert_eq!(read.get(slot), want, "{} {slot:?}\n{text}", template.name);
                }
                // And again: nothing grows.
                let again = SlotValues { range: values().range, ..read };
                let again = template.render(language, &again, &Extract::default()).text;
                assert_eq!(again.len(), text.len(), "{text}\n{again}");
            }
        }
    }

    // covers: M-SUM
    #[test]
    fn four_sections_are_always_there() {
        let text = REBUILD.render(Language::English, &SlotValues::default(), &Extract::default()).text;
        for tag in ["completed", "remaining", "current_state", "notes"] {
            assert!(text.contains(&format!("<{tag}>\n")) && text.contains(&format!("</{tag}>\n")), "{text}");
        }
        assert!(text.contains("- nothing yet\n"));
    }

    // covers: A-SUM
    #[test]
    fn a_fixed_form_is_all_there_and_says_so_where_it_has_nothing() {
        for (language, none) in [(Language::English, "none noted"), (Language::Chinese, "未记录")] {
            let empty = ARCHIVE.render(language, &SlotValues::default(), &Extract::default()).text;
            let [open, says, _] = language.words().quotes;
            assert_eq!(
                empty,
                format!(
                    "## 📌 Archived Session Summary\n\n### 📂 File System State (Snapshot)\n\
                     *(Modified files in this archive segment)*\n* {none}\n\n\
                     {open}000000000000{says}\n### 🎯 Objectives & Status\n* {none}\n\n### 🏗️ Technical Context (Static)\n* {none}\n\n\
                     ### ✅ Completed Milestones (The \"Done\" Pile)\n* {none}\n\n\
                     ### 🧠 Key Insights & Decisions (Persistent Memory)\n* {none}\n"
                )
            );
            // What says that there is nothing is no value, wherever a model puts it.
            let more =
                format!("{empty}- {none}\n* **Decisions**: {none}.\n* [✓] None\n* 无。\n* **Stack**: none\n");
            for text in [empty, more] {
                let read = ARCHIVE.read(language, &text).slots;
                assert_eq!(read.into_items().count(), 0, "{text}");
            }
            let full = ARCHIVE.render(language, &values(), &Extract::default()).text;
            assert!(!full.contains(&format!("* {none}\n")), "{full}");
            // What had no room is not said to be nothing, and is no value either. The goal has room.
            let mut cut = values();
            cut.keep_slots_of(&ARCHIVE);
            cut.fit_form(0, language);
            let text = ARCHIVE.render(language, &cut, &Extract::default()).text;
            let left_out = if language == Language::English { "left out" } else { "已省略" };
            assert_eq!(text.matches(&format!("* {left_out}\n")).count(), 4, "{text}");
            assert!(
                text.contains("* **Original Goal**: Fix the parser.\n") && !text.contains(none),
                "{text}"
            );
            assert_eq!(ARCHIVE.read(language, &text).slots.into_items().count(), 1, "{text}");
            assert!(
                full.contains("*(Contains context from message 1 to message 9)*\n\n### 📂 ")
                    && full.contains("### 🎯 Objectives & Status\n* **Original Goal**: Fix the parser.\n"),
                "{full}"
            );
        }
    }

    #[test]
    fn too_much_goes_from_the_oldest() {
        let mut values = SlotValues::default();
        values.add(Slot::Done, (0..100).map(|n| Item::words(None, format!("task number {n} - done"))));
        values.add(Slot::Goal, [Item::words(None, "The goal.")]);
        assert!(values.fit(500, Language::English) > 70);
        assert_eq!(values.get(Slot::Goal), [Item::words(None, "The goal.")]);
        assert_eq!(values.get(Slot::Done).last(), Some(&Item::words(None, "task number 99 - done")));
    }
}
