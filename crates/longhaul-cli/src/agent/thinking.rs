//! What a model thinks, as a person sees it: its first line as soon as that is there, the whole, or nothing.

use crate::terminal::{columns, columns_of, cut, printable};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Thinking {
    /// Nothing
    None,
    /// The first line
    #[default]
    Short,
    /// Everything
    Whole,
}

impl Thinking {
    /// All, by name.
    pub const NAMES: [(&str, Self); 3] =
        [("none", Self::None), ("short", Self::Short), ("whole", Self::Whole)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Short => "short",
            Self::Whole => "whole",
        }
    }
}

/// What stands before the first line of a thought, and before the others.
const MARKS: (&str, &str) = ("∴ ", "  ");

/// The thought that streams in.
#[derive(Default)]
pub struct Thought {
    pub shown: Thinking,
    /// What came since the last line that was given out.
    rest: String,
    /// Lines that were given out.
    lines: usize,
}

impl Thought {
    /// None yet.
    pub fn new(shown: Thinking) -> Self {
        Self { shown, ..Self::default() }
    }

    /// More of it; the lines that are finished by it, of at most so many columns.
    pub fn push(&mut self, text: &str, width: usize) -> Vec<String> {
        match self.shown {
            Thinking::None => return Vec::new(),
            // One line is enough.
            Thinking::Short if self.lines > 0 => return Vec::new(),
            Thinking::Short | Thinking::Whole => self.rest.push_str(&printable(text)),
        }
        let mut out = Vec::new();
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            self.give(&line, width, &mut out);
        }
        // A first line that fills its row is not waited for.
        if self.shown == Thinking::Short && columns(&self.rest) > width {
            let line = std::mem::take(&mut self.rest);
            self.give(&line, width, &mut out);
        }
        out
    }

    /// The thought has ended: what is left of it.
    pub fn finish(&mut self, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        let line = std::mem::take(&mut self.rest);
        self.give(&line, width, &mut out);
        self.lines = 0;
        out
    }

    fn give(&mut self, line: &str, width: usize, out: &mut Vec<String>) {
        let line = line.trim_end();
        if line.trim().is_empty() || self.shown == Thinking::Short && self.lines > 0 {
            return;
        }
        let room = width.saturating_sub(columns(MARKS.0)).max(10);
        let rows = match self.shown {
            Thinking::Whole => wrapped(line, room),
            Thinking::Short | Thinking::None => vec![cut(line.trim_start(), room)],
        };
        for row in rows {
            let mark = if self.lines == 0 { MARKS.0 } else { MARKS.1 };
            out.push(format!("{mark}{row}"));
            self.lines += 1;
        }
    }
}

/// A line in rows of at most so many columns, broken between words where that is possible.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for word in line.replace('\t', "    ").split_inclusive(' ') {
        if used > 0 && used + columns(word.trim_end()) > width {
            rows.push(std::mem::take(&mut row).trim_end().to_owned());
            used = 0;
        }
        for c in word.chars() {
            if used + columns_of(c) > width {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(c);
            used += columns_of(c);
        }
    }
    rows.push(row.trim_end().to_owned());
    rows.retain(|row| !row.is_empty());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(shown: Thinking, pieces: &[&str], width: usize) -> Vec<String> {
        let mut thought = Thought { shown, ..Thought::default() };
        let mut lines: Vec<String> = pieces.iter().flat_map(|piece| thought.push(piece, width)).collect();
        lines.extend(thought.finish(width));
        lines
    }

    #[test]
    fn one_line_is_short_and_comes_as_soon_as_it_is_there() {
        let pieces = ["\nFirst I ", "look.\nThen", " I mend.\n"];
        assert_eq!(lines(Thinking::Short, &pieces, 40), ["∴ First I look."]);
        assert_eq!(lines(Thinking::None, &pieces, 40), Vec::<String>::new());
        let mut thought = Thought::default();
        assert_eq!(thought.push("word word word word", 12), ["∴ word word…"]);
        assert_eq!(thought.push(" word\nword", 12), Vec::<String>::new());
        assert_eq!(thought.finish(12), Vec::<String>::new());
        // The next one is shown again.
        assert_eq!((thought.push("a", 12), thought.finish(12)), (vec![], vec!["∴ a".to_owned()]));
    }

    #[test]
    fn the_whole_is_wrapped_and_has_nothing_that_a_terminal_obeys() {
        let want = ["∴ one two", "  three", "  fourfivesi", "  x"];
        assert_eq!(lines(Thinking::Whole, &["one two three\n\n\x1b[2Jfour", "fivesix"], 13)[..2], want[..2]);
        assert_eq!(lines(Thinking::Whole, &["one two three\n\nfour", "fivesix"], 12), want);
    }
}
