//! What of a message can be found, which words it has, and what a query looks for.
//!
//! Words are letters and digits; `parseHeader` has the words `parseheader`, `parse` and `header`. Chinese,
//! Japanese and Korean text has no spaces: each pair of neighbours is a word, and so is the last character,
//! so that a query of one character finds it by the start of a word.

use std::collections::HashSet;
use std::ops::Range;

use longhaul::{Block, Message, Role};

/// How much of a message can be found, in bytes: what a person pasted is not read to its end.
const MESSAGE: usize = 16 << 10;

/// How much of the arguments of a call can be found: paths and commands stand at the start.
const ARGUMENTS: usize = 512;

/// The longest word, in bytes. Of longer ones (pictures, keys) the start is a word.
const LONGEST: usize = 64;

/// How many characters of a text stand before and behind the first word that was found.
const AROUND: usize = 60;

/// What can be found of a message: what person and model said, and what was called. Not what tools
/// answered, nor what a model thought: that is many times as much.
pub(crate) fn said(message: &Message) -> String {
    let mut said = String::new();
    if matches!(message.role(), Role::User | Role::Assistant | Role::Summary) {
        for block in message.blocks() {
            match block {
                Block::Text(text) => said.push_str(start_of(&text.text, MESSAGE.saturating_sub(said.len()))),
                Block::ToolCall(call) => {
                    said.push_str(&call.name);
                    said.push(' ');
                    said.push_str(start_of(call.arguments.as_str(), ARGUMENTS));
                }
                _ => continue,
            }
            said.push('\n');
        }
    }
    said
}

/// The start of a text, of at most so many bytes.
pub(crate) fn start_of(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// All words of a text, each once, with spaces between them: what goes into the index.
pub(crate) fn words_of(text: &str) -> String {
    let small = lower(text);
    let mut words = Distinct::default();
    for run in runs(text) {
        match run {
            Run::Word(at) => {
                let at = at.start..at.start + start_of(&text[at], LONGEST).len();
                words.add(&small[at.clone()]);
                parts(&text[at.clone()])
                    .for_each(|part| words.add(&small[at.start + part.start..at.start + part.end]));
            }
            Run::Wide(at) => pairs(&small[at]).for_each(|pair| words.add(pair)),
        }
    }
    words.joined
}

/// Words, each once.
#[derive(Default)]
struct Distinct<'a> {
    seen: HashSet<&'a str>,
    joined: String,
}

impl<'a> Distinct<'a> {
    fn add(&mut self, word: &'a str) {
        if self.seen.insert(word) {
            if !self.joined.is_empty() {
                self.joined.push(' ');
            }
            self.joined.push_str(word);
        }
    }
}

/// Where letters and digits stand in a row.
enum Run {
    Word(Range<usize>),
    /// Of a script that has no spaces.
    Wide(Range<usize>),
}

fn is_wide(letter: char) -> bool {
    letter >= '\u{E00}'
        && matches!(u32::from(letter), 0x0E00..=0x0EFF | 0x1100..=0x11FF | 0x3040..=0x30FF | 0x3130..=0x318F
        | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

fn runs(text: &str) -> impl Iterator<Item = Run> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end + text[end..].find(char::is_alphanumeric)?;
        let wide = is_wide(text[start..].chars().next()?);
        let ends = |letter: char| !letter.is_alphanumeric() || is_wide(letter) != wide;
        end = text[start..].find(ends).map_or(text.len(), |length| start + length);
        Some(if wide { Run::Wide(start..end) } else { Run::Word(start..end) })
    })
}

/// Where the parts of a word in camel case are; none if it has only one.
fn parts(word: &str) -> impl Iterator<Item = Range<usize>> {
    let letters = word.char_indices().zip(word.chars().skip(1));
    let humps = letters.filter(|((_, before), letter)| before.is_lowercase() && letter.is_uppercase());
    let mut ends: Vec<usize> = humps.map(|((at, before), _)| at + before.len_utf8()).collect();
    if !ends.is_empty() {
        ends.push(word.len());
    }
    let mut start = 0;
    ends.into_iter().map(move |end| std::mem::replace(&mut start, end)..end)
}

/// Each character with the one behind it; the last one stands alone.
fn pairs(run: &str) -> impl Iterator<Item = &str> {
    run.char_indices().map(move |(at, _)| {
        let pair = &run[at..];
        let end = pair.char_indices().nth(2).map_or(pair.len(), |(end, _)| end);
        &pair[..end]
    })
}

/// The text in small letters, byte for byte as long as before.
fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let small = |letter: char| {
        let mut small = letter.to_lowercase();
        match (small.next(), small.next()) {
            (Some(one), None) if one.len_utf8() == letter.len_utf8() => one,
            _ => letter,
        }
    };
    text.chars().map(small).collect()
}

/// What is looked for.
pub(crate) struct Query {
    /// Pieces of the query between spaces, in small letters: each must be in the text as it is.
    terms: Vec<String>,
    /// Words that the index must have, and whether their start is enough.
    words: Vec<(String, bool)>,
}

impl Query {
    /// `None` if there is no word in it.
    pub(crate) fn of(query: &str) -> Option<Self> {
        let (mut terms, mut words) = (Vec::new(), Vec::new());
        for term in query.split_whitespace() {
            let starts = term.ends_with('*');
            let term = lower(term.trim_matches(|letter: char| !letter.is_alphanumeric()));
            let before = words.len();
            for run in runs(&term) {
                match run {
                    Run::Word(at) => words.push((start_of(&term[at], LONGEST).to_owned(), false)),
                    Run::Wide(at) => words.extend(wide_words(&term[at])),
                }
            }
            if let Some((_, start_is_enough)) = words[before..].last_mut() {
                *start_is_enough |= starts;
                terms.push(term);
            }
        }
        (!words.is_empty()).then_some(Self { terms, words })
    }

    /// Words that the index must have, and whether their start is enough.
    pub(crate) fn words(&self) -> &[(String, bool)] {
        &self.words
    }

    /// Some text around the first term, and where the terms are in it. `None` if the text does not have
    /// all terms: the index knows words, not what stands beside them.
    pub(crate) fn snippet(&self, text: &str) -> Option<(String, Vec<Range<usize>>)> {
        let small = lower(text);
        let firsts = self.terms.iter().map(|term| small.find(term.as_str()));
        let first = firsts.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        let start = text[..first].char_indices().rev().nth(AROUND).map_or(0, |(at, _)| at);
        let end = text[first..].char_indices().nth(2 * AROUND).map_or(text.len(), |(at, _)| first + at);
        let mut found: Vec<Range<usize>> = self
            .terms
            .iter()
            .flat_map(|term| small[start..end].match_indices(term.as_str()))
            .map(|(at, term)| at..at + term.len())
            .collect();
        found.sort_unstable_by_key(|range| (range.start, range.end));
        found.dedup();
        // Line breaks are as long as spaces.
        Some((text[start..end].replace(['\n', '\r', '\t'], " "), found))
    }
}

/// The words of a query in a script without spaces. One character is the start of a pair.
fn wide_words(run: &str) -> Vec<(String, bool)> {
    let mut words: Vec<(String, bool)> = pairs(run).map(|pair| (pair.to_owned(), false)).collect();
    match words.len() {
        1 => words[0].1 = true,
        // The last character stands in the pair before it.
        _ => drop(words.pop()),
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_digits_and_pairs() {
        assert_eq!(words_of("The parseHeader of foo_bar2"), "the parseheader parse header of foo bar2");
        assert_eq!(words_of("会话压缩 x"), "会话 话压 压缩 缩 x");
        assert_eq!(words_of("用Rust写"), "用 rust 写");
        assert_eq!(words_of(&"a".repeat(100)), "a".repeat(LONGEST));
    }

    #[test]
    fn a_query_asks_for_words_and_terms() {
        let query = Query::of("foo_Bar par* 会话压 会").unwrap();
        let words: Vec<(&str, bool)> = query.words().iter().map(|(word, start)| (&**word, *start)).collect();
        assert_eq!(
            words,
            [("foo", false), ("bar", false), ("par", true), ("会话", false), ("话压", false), ("会", true)]
        );
        assert!(Query::of(" \"* -").is_none());
    }

    #[test]
    fn a_snippet_shows_where_the_words_are() {
        let text = format!("{} The Parser\nfails. {}", "before ".repeat(30), "behind ".repeat(50));
        let (snippet, found) = Query::of("parser fails").unwrap().snippet(&text).unwrap();
        let words: Vec<&str> = found.iter().map(|range| &snippet[range.clone()]).collect();
        assert_eq!(words, ["Parser", "fails"]);
        assert!(snippet.chars().count() <= 3 * AROUND + 1 && snippet.contains("The Parser fails."));
        assert!(Query::of("会缩").unwrap().snippet("会话压缩").is_none());
    }
}
