//! Names and lines of a session by number, and lines by what stands inside them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// Names and lines get numbers, so that sets of them are cheap.
#[derive(Default)]
pub(crate) struct Names {
    numbers: HashMap<Arc<str>, u32>,
    /// What has which number. A line begins with [`LINE_MARK`].
    texts: Vec<Arc<str>>,
}

/// Tells a line from a name that stands alone on it.
pub(crate) const LINE_MARK: &str = "L:";

impl Names {
    /// The number of a name or line, and whether it is new.
    pub(crate) fn number(&mut self, name: &str) -> (u32, bool) {
        if let Some(number) = self.numbers.get(name) {
            return (*number, false);
        }
        let (number, name) = (self.texts.len() as u32, Arc::<str>::from(name));
        self.numbers.insert(name.clone(), number);
        self.texts.push(name);
        (number, true)
    }

    pub(crate) fn name(&mut self, name: &str) -> u32 {
        self.number(name).0
    }

    /// The number of a name or line, if it has one.
    pub(crate) fn known(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// What has this number.
    pub(crate) fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// The line, if it is one.
    pub(crate) fn line(&self, number: u32) -> Option<&str> {
        self.texts[number as usize].strip_prefix(LINE_MARK)
    }
}

/// Finds lines by what stands inside them, without a look at all of them. Each line is known by its runs of
/// letters and digits.
#[derive(Default)]
pub(crate) struct LineIndex {
    lines: BTreeMap<Box<str>, Vec<u32>>,
}

impl LineIndex {
    pub(crate) fn add(&mut self, line: &str, number: u32) {
        for (_, run) in runs(line) {
            match self.lines.get_mut(run) {
                Some(lines) if lines.last() == Some(&number) => {}
                Some(lines) => lines.push(number),
                None => _ = self.lines.insert(run.into(), vec![number]),
            }
        }
    }

    /// Lines among which are all that hold this text. A run inside the text is a run of every such line; the one at
    /// its end begins a run there; of the one at its start nothing can be said.
    pub(crate) fn candidates<'a>(&'a self, text: &'a str) -> impl Iterator<Item = u32> {
        let inner = runs(text).filter(|(at, _)| *at > 0);
        let (at, run) = inner.max_by_key(|(_, run)| run.len()).unwrap_or((text.len(), ""));
        let is_end = at + run.len() == text.len();
        let fits = move |found: &str| if is_end { found.starts_with(run) } else { found == run };
        let found = self.lines.range::<str, _>((Bound::Included(run), Bound::Unbounded));
        found.take_while(move |(found, _)| fits(found)).flat_map(|(_, lines)| lines).copied()
    }
}

/// Runs of letters, digits and underscores, and where they begin.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let in_run = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        let start = at + bytes[at..].iter().position(|byte| in_run(*byte))?;
        at = bytes[start..]
            .iter()
            .position(|byte| !in_run(*byte))
            .map_or(bytes.len(), |length| start + length);
        Some((start, &text[start..at]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_any_text_inside_them() {
        let lines = [
            "let limit = max_bytes();",
            "if limit > 7 { cut(limit) }",
            "über alles: limit",
            "a",
            "max_bytesize = 3",
        ];
        let mut index = LineIndex::default();
        lines.iter().zip(0..).for_each(|(line, number)| index.add(line, number));
        for text in lines.iter().flat_map(|line| line.char_indices().map(move |(at, _)| &line[at..])) {
            for end in text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]) {
                let part = &text[..end];
                let holding =
                    (0..).zip(lines).filter(|(_, line)| line.contains(part)).map(|(number, _)| number);
                let candidates: Vec<u32> = index.candidates(part).collect();
                assert!(
                    runs(part).count() == 0 || holding.clone().all(|n| candidates.contains(&n)),
                    "{part:?}"
                );
            }
        }
    }
}
