//! What a model may have meant: the place in a file that is most like a text that is not in it, and names that are like
//! one that is not there.

use std::collections::HashMap;

use similar::TextDiff;

use crate::project::{Place, Project};

/// A place in a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Nearest {
    /// Its first line, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// The texts differ in white space alone.
    pub(crate) only_space: bool,
}

/// Lines that are compared at most: a search through more takes too long.
const MOST_LINES: usize = 400;
/// How alike two texts must be to be worth showing.
const ALIKE: f32 = 0.5;
/// Places whose likeness is looked at closely.
const PLACES: usize = 20;

/// The lines of a text that are most like these, if any are like them at all.
pub(crate) fn nearest(text: &str, wanted: &str) -> Option<Nearest> {
    let lines: Vec<&str> = text.lines().collect();
    let wanted_lines: Vec<&str> = wanted.lines().collect();
    let count = wanted_lines.len();
    if count == 0 || count > MOST_LINES || lines.is_empty() {
        return None;
    }
    // Places where a line of the wanted text stands, each by the votes of all of its lines.
    let mut rows: HashMap<&str, Vec<usize>> = HashMap::new();
    for (row, line) in lines.iter().enumerate() {
        rows.entry(line.trim()).or_default().push(row);
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in wanted_lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        // A line that stands everywhere says nothing.
        for row in rows.get(line.trim()).into_iter().flatten().take(PLACES) {
            *votes.entry(row.saturating_sub(at)).or_default() += 1;
        }
    }
    let mut starts: Vec<usize> = votes.keys().copied().collect();
    starts.sort_unstable_by_key(|start| (std::cmp::Reverse(votes[start]), *start));
    if starts.is_empty() && lines.len() * count <= 20_000 {
        starts = (0..lines.len()).collect();
    }
    let few = if votes.is_empty() { lines.len() } else { PLACES };
    let place = |start: usize| &lines[start..lines.len().min(start + count)];
    let likeness =
        |start: usize| TextDiff::from_chars(place(start).join("\n").as_str(), wanted.trim_end()).ratio();
    let best = starts.into_iter().take(few).map(|start| (likeness(start), start));
    let (ratio, start) = best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let text = place(start).join("\n");
    let only_space = words(&text) == words(wanted);
    (ratio >= ALIKE || only_space).then_some(Nearest { line: start + 1, text, only_space })
}

/// Paths in the same folder, or of the same name elsewhere in the project, that are like one that is not there.
pub(crate) fn names_like(project: &Project, place: &Place) -> Vec<String> {
    const NAMES: usize = 2_000;
    let Some(name) = place.path().file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = place.path().parent().filter(|folder| folder.is_dir());
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let like = |other: &str| TextDiff::from_chars(name, other).ratio();
    let mut near: Vec<(f32, String)> = entries
        .take(NAMES)
        .filter_map(|entry| {
            Some((like(entry.file_name().to_str()?), project.at(entry.path()).shown().to_owned()))
        })
        .filter(|(like, _)| *like >= 0.7)
        .collect();
    near.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.into_iter().take(3).map(|(_, path)| format!("`{path}`")).collect()
}
