//! What lines are worth: the chance that a name is needed which they mention last, and that they are edited.

use std::ops::Range;

use super::LinePrice;
use super::entry::{Entry, LinesOf, Speaker};
use crate::conversation::log::Position;
use crate::summary::uses::{NameUse, Uses};
use crate::summary::worth::{self, Editable, LineKind, NAME};
use crate::text::names::{NameMap, NameSet, names};

/// A longer line is not kept: it is data, or it is prose that the next ones tell shorter.
pub(super) const LINE: usize = 4_000;
/// A shorter line is no text to look for.
const TEXT: usize = 12;
/// So far from a line a name that the model wrote still speaks for it, in lines.
const NEAR: usize = 8;
/// What the model has just said, in a line, is worth so much; less as it grows older.
const JUST_SAID: f32 = 0.015;

/// Something whose chance to be needed is judged.
pub(crate) enum Judged<'a> {
    /// A name, in the line that mentions it last.
    Name { name: &'a str, known: [f32; 8], kind: LineKind },
    /// A line, as text that may be edited.
    Text { line: &'a str, known: [f32; 9], kind: LineKind },
}

/// A line to choose: entry, line (0 is the heading), worth.
pub(super) type Choice = (usize, usize, f32);

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
pub(super) fn worth_of_lines<'a>(
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

/// How many bytes of these entries would not be kept now: their names were mentioned again elsewhere since,
/// or have grown old.
pub(crate) fn dead_bytes(entries: &[Entry<'_>], uses: &Uses, price: LinePrice) -> usize {
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
