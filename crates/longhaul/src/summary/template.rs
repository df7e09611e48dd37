//! Templates of summaries: files with headings and slots. A line with a slot is written once for
//! each value of the slot; a section whose slots are all empty is left out; a slot may name what
//! stands there when it is empty (`{open|nothing known}`). What was written can be read back, so
//! that a later summary takes it in section by section.

use std::collections::HashSet;

use super::{File, Language};

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
/// A cut inside a running task.
pub static HAND_OFF: Template = template!("hand_off", "a task that goes on: done, remaining, state, notes");
/// The four sections of seed 000.
pub static REBUILD: Template = template!("rebuild", "a rebuilt session: completed, remaining, state, notes");
/// The full summary of seed 004.
pub static FULL: Template =
    template!("full", "everything: goals, done, open, places, changes, facts, constraints");

/// All templates.
pub static TEMPLATES: [&Template; 5] = [&LINES, &ARCHIVE, &HAND_OFF, &REBUILD, &FULL];

/// What a slot is called, and what a model is told to write there.
const SLOTS: [(&str, &str, &str); 17] = [
    ("goal", "what the user wants", "用户的目标"),
    ("technical", "languages, frameworks, versions, environment", "语言、框架、版本、环境"),
    ("done", "what is done - its result", "已完成的任务 - 结果"),
    ("open", "what is left to do", "待完成的事项"),
    ("todos", "state of the task list", "任务列表状态"),
    ("state", "where the work stands", "当前进展"),
    ("files", "file: what was changed", "文件：修改内容"),
    ("read", "file: what is in it", "文件：内容"),
    ("commands", "command → how it ended", "命令 → 结果"),
    ("errors", "error → how it ended", "错误 → 结果"),
    ("decisions", "decisions, and options that were rejected", "决策与放弃的方案"),
    ("learnings", "facts that were found out", "已查明的事实"),
    ("preferences", "what the user insists on", "用户强调的要求"),
    ("notes", "anything else that must not be lost", "其他不可丢失的内容"),
    (
        "lines",
        "names, paths, numbers and lines that will be needed again",
        "之后还会用到的名称、路径、数字和代码行",
    ),
    ("left_out", "what this summary leaves out", "本摘要省略的内容"),
    ("range", "from, to", "起止"),
];

/// The values of each slot, in their order.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Values {
    lists: Vec<(&'static str, Vec<String>)>,
}

impl Values {
    pub(crate) fn get(&self, slot: &str) -> &[String] {
        self.lists.iter().find(|(name, _)| *name == slot).map_or(&[], |(_, values)| values)
    }

    fn list(&mut self, slot: &str) -> Option<&mut Vec<String>> {
        let (slot, ..) = SLOTS.iter().find(|(name, ..)| *name == slot)?;
        let at = self.lists.iter().position(|(name, _)| name == slot).unwrap_or(self.lists.len());
        if at == self.lists.len() {
            self.lists.push((slot, Vec::new()));
        }
        Some(&mut self.lists[at].1)
    }

    pub(crate) fn add(&mut self, slot: &str, values: impl IntoIterator<Item = String>) {
        let Some(list) = self.list(slot) else { return };
        list.extend(values);
        // What is said again stands where it was said last.
        let mut said = HashSet::with_capacity(list.len());
        let mut last: Vec<bool> = list.iter().rev().map(|value| said.insert(value.as_str())).collect();
        list.retain(|_| last.pop().unwrap_or(true));
    }

    /// Leaves out what the template has no place for.
    pub(crate) fn keep_slots_of(&mut self, template: &Template) {
        self.lists.retain(|(name, _)| *name == "range" || template.has(name));
    }

    pub(crate) fn take(&mut self, slot: &str) -> Vec<String> {
        let found = self.lists.iter_mut().find(|(name, _)| *name == slot);
        found.map(|(_, values)| std::mem::take(values)).unwrap_or_default()
    }

    /// Takes away the oldest values of the longest lists until all have at most so many bytes.
    /// Gives how many went.
    pub(crate) fn fit(&mut self, limit: usize) -> usize {
        /// A line's own share: its bullet and its end.
        const EACH: usize = 24;
        let size = |values: &[String]| values.iter().map(|value| value.len() + EACH).sum::<usize>();
        let counted = |name: &str, values: &[String]| if name == "range" { 0 } else { size(values) };
        let mut sizes: Vec<usize> = self.lists.iter().map(|(name, values)| counted(name, values)).collect();
        let mut starts = vec![0; sizes.len()];
        let mut gone = 0;
        while sizes.iter().sum::<usize>() > limit {
            // What people want goes last.
            let weight = |at: usize| match self.lists[at].0 {
                "goal" | "preferences" => sizes[at] / 4,
                "range" => 0,
                _ => sizes[at],
            };
            let Some(longest) = (0..sizes.len()).filter(|at| sizes[*at] > 0).max_by_key(|at| weight(*at))
            else {
                break;
            };
            sizes[longest] -= self.lists[longest].1[starts[longest]].len() + EACH;
            starts[longest] += 1;
            gone += 1;
        }
        for ((_, values), start) in self.lists.iter_mut().zip(starts) {
            values.drain(..start);
        }
        gone
    }
}

/// A line of a template.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Fixed(&'a str),
    Slot { before: &'a str, slot: &'a str, empty: Option<&'a str> },
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let slot = line.split_once('{').and_then(|(before, rest)| Some((before, rest.strip_suffix('}')?)));
        match slot {
            Some((before, slot)) if !slot.contains('{') => match slot.split_once('|') {
                Some((slot, empty)) => Self::Slot { before, slot, empty: Some(empty) },
                None => Self::Slot { before, slot, empty: None },
            },
            _ => Self::Fixed(line),
        }
    }
}

impl PartialEq for Template {
    /// Each is one row of the table: its name is its own.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Template {
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

    /// The template that a text begins like, and its language.
    pub(crate) fn of(text: &str) -> Option<(&'static Self, Language)> {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let begins = |template: &&Self, language| template.text(language).lines().next() == Some(first);
        [Language::English, Language::Chinese].into_iter().find_map(|language| {
            TEMPLATES
                .iter()
                .copied()
                .find(|template| begins(template, language))
                .map(|template| (template, language))
        })
    }

    pub(crate) fn has(&self, slot: &str) -> bool {
        self.english
            .lines()
            .any(|line| matches!(Line::of(line), Line::Slot { slot: here, .. } if here == slot))
    }

    /// Its slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &'static str> {
        self.english.lines().filter_map(|line| match Line::of(line) {
            Line::Slot { slot, .. } => Some(slot),
            Line::Fixed(_) => None,
        })
    }

    /// What a model is to fill in.
    pub(crate) fn form(&self, language: Language) -> String {
        let mut form = String::new();
        for line in self.text(language).lines() {
            match Line::of(line) {
                Line::Slot { before, slot, .. } => {
                    let hint = SLOTS.iter().find(|(name, ..)| *name == slot);
                    let hint = hint.map_or(slot, |(_, english, chinese)| match language {
                        Language::English => english,
                        Language::Chinese => chinese,
                    });
                    form.push_str(&format!("{before}[{hint}]"));
                }
                Line::Fixed(line) => form.push_str(&line.replace("{from}", "[…]").replace("{to}", "[…]")),
            }
            form.push('\n');
        }
        form
    }

    /// The template with its slots filled.
    pub(crate) fn render(&self, language: Language, values: &Values) -> String {
        let mut out = String::new();
        let range = values.get("range");
        let mut section = String::new();
        // Whether the section has slots, and whether one of them has a value.
        let (mut slots, mut filled) = (false, false);
        for line in self.text(language).lines() {
            if line.starts_with('#') {
                if filled || !slots {
                    out.push_str(&section);
                }
                section.clear();
                (slots, filled) = (false, false);
            }
            match Line::of(line) {
                Line::Fixed(line) if line.contains("{from}") => {
                    if let [from, to] = range {
                        section.push_str(&line.replace("{from}", from).replace("{to}", to));
                        section.push('\n');
                    }
                }
                Line::Fixed(line) => {
                    section.push_str(line);
                    section.push('\n');
                }
                Line::Slot { before, slot, empty } => {
                    slots = true;
                    let values = values.get(slot);
                    for value in values.iter().map(String::as_str).chain(empty.filter(|_| values.is_empty()))
                    {
                        filled = true;
                        section.push_str(before);
                        // What goes on is indented, so that it is found again.
                        let indented =
                            if before.is_empty() { value.to_owned() } else { value.replace('\n', "\n  ") };
                        section.push_str(indented.trim_end());
                        section.push('\n');
                    }
                }
            }
        }
        if filled || !slots {
            out.push_str(&section);
        }
        out
    }

    /// Reads back what was rendered, or what a model wrote in its form. What is in no slot is a
    /// note.
    pub(crate) fn parse(&self, language: Language, text: &str) -> Values {
        let lines: Vec<Line<'_>> = self.text(language).lines().map(Line::of).collect();
        let range = range_start(&lines);
        let mut values = Values::default();
        // The slots under the heading where we are.
        let mut at = 0;
        let mut last: Option<&str> = None;
        // One text, in which a line may come twice.
        let mut lines_of = String::new();
        for line in text.lines() {
            let known = lines
                .iter()
                .position(|known| matches!(known, Line::Fixed(fixed) if !fixed.is_empty() && *fixed == line));
            if let Some(known) = known {
                (at, last) = (known + 1, None);
                continue;
            }
            if line.trim().is_empty() || range.is_some_and(|range| line.starts_with(range)) {
                continue;
            }
            if let Some((more, slot)) = line.strip_prefix("  ").zip(last).filter(|(_, slot)| *slot != "lines")
            {
                let list = values.lists.iter_mut().find(|(name, _)| *name == slot);
                if let Some(value) = list.and_then(|(_, values)| values.last_mut()) {
                    value.push('\n');
                    value.push_str(more);
                }
                continue;
            }
            // Slots up to the next heading; of those that begin alike the one whose kind it is.
            let here = lines[at.min(lines.len())..].iter().take_while(|line| {
                !matches!(line, Line::Fixed(fixed) if fixed.starts_with('#') || fixed.starts_with('<'))
            });
            let mut best: Option<(&str, &str, &str)> = None;
            for slot in here {
                let Line::Slot { before, slot, empty } = slot else { continue };
                let value = line.strip_prefix(before).or_else(|| other_bullet(line, before));
                let Some(value) = value.filter(|value| Some(*value) != *empty) else { continue };
                let fits = looks_like(slot, value);
                let better = match best {
                    None => true,
                    Some((known, other, _)) => {
                        (fits && !looks_like(other, value))
                            || (before.len() > known.len() && fits == looks_like(other, value))
                    }
                };
                if better {
                    best = Some((before, slot, value));
                }
            }
            match best {
                Some((_, "lines", value)) => {
                    lines_of.push_str(value);
                    lines_of.push('\n');
                    last = Some("lines");
                }
                Some((_, slot, value)) => {
                    values.list(slot).into_iter().for_each(|list| list.push(value.to_owned()));
                    last = SLOTS.iter().map(|(name, ..)| *name).find(|name| *name == slot);
                }
                None if is_empty_mark(&lines, line) => {}
                None => {
                    let note = line.trim().trim_start_matches(['-', '*', ' ']);
                    values.list("notes").into_iter().for_each(|list| list.push(note.to_owned()));
                    last = Some("notes");
                }
            }
        }
        values.add("lines", (!lines_of.is_empty()).then_some(lines_of));
        values
    }
}

/// The rest of a line that begins like this but for its bullet: models write either.
fn other_bullet<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let rest = before.strip_prefix(['*', '-'])?;
    line.strip_prefix(['*', '-'])?.strip_prefix(rest)
}

/// How the line begins that says from when to when.
fn range_start<'a>(lines: &[Line<'a>]) -> Option<&'a str> {
    lines.iter().find_map(|line| match line {
        Line::Fixed(fixed) => fixed.split_once("{from}").map(|(start, _)| start),
        Line::Slot { .. } => None,
    })
}

/// A line that says that there is nothing.
fn is_empty_mark(lines: &[Line<'_>], line: &str) -> bool {
    lines.iter().any(|known| match known {
        Line::Slot { before, empty: Some(empty), .. } => line.strip_prefix(before) == Some(*empty),
        _ => false,
    })
}

/// Where slots share a section, their values tell them apart.
fn looks_like(slot: &str, value: &str) -> bool {
    let quoted = value.starts_with('`');
    let arrow = value.contains(" → ");
    match slot {
        "commands" => quoted && arrow,
        "files" | "read" => {
            quoted
                && !arrow
                && [Language::English, Language::Chinese]
                    .into_iter()
                    .any(|language| File::heard(value, language).is_some())
        }
        "errors" => !quoted && arrow,
        "lines" => false,
        _ => !quoted && !arrow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let mut values = Values::default();
        for (slot, texts) in [
            ("range", vec!["message 1", "message 9"]),
            ("goal", vec!["Fix the parser.\nAll of it."]),
            ("done", vec!["Find the bug - it is in parse.rs", "Write a test - it fails"]),
            ("open", vec!["Make it pass"]),
            ("state", vec!["I look at the slice."]),
            ("files", vec!["`src/parse.rs`: changed 2×, read 1×"]),
            ("commands", vec!["`cargo test` → exit 101"]),
            ("errors", vec!["assertion failed → open"]),
            ("decisions", vec!["A slice instead of an index."]),
            ("learnings", vec!["The problem is an off-by-one."]),
            ("preferences", vec!["Never touch the lock file."]),
        ] {
            values.add(slot, texts.into_iter().map(str::to_owned));
        }
        values
    }

    #[test]
    fn what_is_written_is_read_back() {
        for template in [&ARCHIVE, &HAND_OFF, &REBUILD, &FULL] {
            for language in [Language::English, Language::Chinese] {
                let text = template.render(language, &values());
                let back = template.parse(language, &text);
                for slot in ["goal", "done", "files", "commands", "open"] {
                    let want = if template.has(slot) { values().get(slot).to_vec() } else { Vec::new() };
                    assert_eq!(back.get(slot), want, "{} {slot}\n{text}", template.name);
                }
                // And again: nothing grows.
                let mut again = back.clone();
                again.add("range", values().get("range").to_vec());
                assert_eq!(
                    template.render(language, &again).len(),
                    text.len(),
                    "{text}\n{}",
                    template.render(language, &again)
                );
            }
        }
    }

    // covers: M-SUM
    #[test]
    fn four_sections_are_always_there() {
        let text = REBUILD.render(Language::English, &Values::default());
        for tag in ["completed", "remaining", "current_state", "notes"] {
            assert!(text.contains(&format!("<{tag}>\n")) && text.contains(&format!("</{tag}>\n")), "{text}");
        }
        assert!(text.contains("- nothing yet\n"));
    }

    #[test]
    fn too_much_goes_from_the_oldest() {
        let mut values = Values::default();
        values.add("done", (0..100).map(|n| format!("task number {n} - done")));
        values.add("goal", ["The goal.".to_owned()]);
        assert!(values.fit(500) > 70);
        assert_eq!(values.get("goal"), ["The goal."]);
        assert_eq!(values.get("done").last().map(String::as_str), Some("task number 99 - done"));
    }
}
