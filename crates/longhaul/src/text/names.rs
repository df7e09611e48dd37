//! Names that nobody could guess: paths, numbers of four digits or more, and identifiers that
//! are long, or have an underscore, a digit or a change of case inside. What later steps need
//! again is found by them.

use std::collections::{HashMap, HashSet};

use crate::text::bits::{BLOCK, bits};
use crate::text::hash::Quick;

/// The names in a text, in their order.
pub(crate) fn names(text: &str) -> Names<'_> {
    Names::new(text, false)
}

/// The names in the text of a JSON value: `\n` in a string ends a line, it does not begin a name.
pub(crate) fn names_in_json(text: &str) -> Names<'_> {
    Names::new(text, true)
}

/// A set of names.
pub(crate) type NameSet<'a> = HashSet<&'a str, Quick>;
/// Something for each name.
pub(crate) type NameMap<'a, T> = HashMap<&'a str, T, Quick>;

/// Goes through runs of the characters that paths have; a run without a slash falls apart into
/// words. All these characters are ASCII, so that cuts are between characters.
pub(crate) struct Names<'a> {
    text: &'a str,
    /// Escapes are no letters.
    json: bool,
    /// Where the block begins and ends: before a run that may go on behind it.
    start: usize,
    end: usize,
    block: Kinds,
    /// A run longer than a block that ends here is no path: there are only words in it.
    no_path: usize,
}

/// What the bytes of a block are, a bit each.
#[derive(Default)]
struct Kinds {
    word: u64,
    path: u64,
    slash: u64,
    digit: u64,
    /// What makes a word odd: an underscore inside, a digit behind a letter, a change of case.
    odd: u64,
    /// Every name has one of these: most runs have none, and are passed over.
    telling: u64,
}

/// What paths have beside words.
fn is_path(byte: u8) -> bool {
    (byte == b'/') | (byte == b'.') | (byte == b'@') | (byte == b'~') | (byte == b'-')
}

impl Kinds {
    fn of(bytes: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        match bytes.first_chunk() {
            Some(whole) => block = *whole,
            None => block[..bytes.len()].copy_from_slice(bytes),
        }
        let lower = bits(&block, |byte| byte.is_ascii_lowercase());
        let upper = bits(&block, |byte| byte.is_ascii_uppercase());
        let digit = bits(&block, |byte| byte.is_ascii_digit());
        let underscore = bits(&block, |byte| byte == b'_');
        let word = lower | upper | digit | underscore;
        let slash = bits(&block, |byte| byte == b'/');
        let odd = underscore & !(underscore << 1) | digit & (lower | upper) << 1 | upper & lower << 1;
        let in_row = |bits: u64, by: u32| bits & bits >> by;
        let four_digits = in_row(in_row(digit, 1), 2);
        let sixteen = in_row(in_row(in_row(in_row(word, 1), 2), 4), 8);
        let telling = odd | slash | four_digits | sixteen;
        Self { word, path: bits(&block, is_path), slash, digit, odd, telling }
    }

    /// Whether a word of this block is a name.
    fn is_name(&self, start: usize, end: usize) -> bool {
        let (word, first) = (between(start, end), 1 << start);
        match end - start {
            // The shortest are the most.
            0..4 => false,
            _ if self.digit & first != 0 => self.digit & word == word,
            4..6 => false,
            6..16 => self.odd & word & !first != 0,
            _ => true,
        }
    }
}

/// The bits from one place to before another.
fn between(start: usize, end: usize) -> u64 {
    let bits = u64::MAX.checked_shr((BLOCK - (end - start)) as u32).unwrap_or(0);
    bits.checked_shl(start as u32).unwrap_or(0)
}

/// From where to where bits are set around a place.
fn around(bits: u64, at: usize) -> (usize, usize) {
    let below = !bits & between(0, at);
    let length = (!bits >> at).trailing_zeros() as usize;
    (BLOCK - below.leading_zeros() as usize, BLOCK.min(at + length))
}

impl<'a> Names<'a> {
    fn new(text: &'a str, json: bool) -> Self {
        let mut names = Self { text, json, start: 0, end: 0, block: Kinds::default(), no_path: 0 };
        names.load(0);
        names
    }

    /// Goes on with the block that begins here.
    fn load(&mut self, start: usize) {
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        self.block = Kinds::of(rest);
        let mut end = rest.len().min(BLOCK);
        if start < self.no_path {
            self.block.path = 0;
            self.block.telling &= self.block.word;
            end = end.min(self.no_path - start);
        }
        if end == BLOCK && rest.len() > BLOCK {
            end -= (self.block.word | self.block.path).leading_ones() as usize;
        }
        self.block.telling &= between(0, end);
        (self.start, self.end) = (start, start + end);
    }

    /// The path that a run is, if it is one.
    fn path(&self, start: usize, length: usize) -> Option<&'a str> {
        let path = self.text[start..start + length].trim_end_matches(['/', '.']);
        (path.len() > 3 && path.as_bytes()[1..].contains(&b'/')).then_some(path)
    }

    /// A backslash stands before it that no other one escapes.
    fn is_escaped(&self, at: usize) -> bool {
        self.text.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
    }

    /// A run that fills its block and goes on, byte by byte.
    fn long(&mut self) -> Option<&'a str> {
        let start = self.start;
        if self.json && self.is_escaped(start) {
            self.load(start + 1);
            return None;
        }
        let words = start < self.no_path;
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !words && is_path(*byte);
        let length = self.text.as_bytes()[start..].iter().take_while(|byte| fits(byte)).count();
        let run = &self.text[start..start + length];
        if run.bytes().any(is_path) {
            let Some(path) = self.path(start, length) else {
                self.no_path = start + length;
                self.load(start);
                return None;
            };
            self.load(start + length);
            return Some(path);
        }
        self.load(start + length);
        let number = run.as_bytes()[0].is_ascii_digit();
        (!number || run.bytes().all(|byte| byte.is_ascii_digit())).then_some(run)
    }
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            if self.block.telling == 0 {
                if self.end >= self.text.len() {
                    return None;
                }
                if self.end > self.start {
                    self.load(self.end);
                } else if let Some(name) = self.long() {
                    return Some(name);
                }
                continue;
            }
            let Kinds { word, path, slash, telling, .. } = self.block;
            let tells = telling.trailing_zeros() as usize;
            let (mut first, end) = around(word | path, tells);
            if self.json && self.is_escaped(self.start + first) {
                first += 1;
            }
            if path & slash & between(first, end) != 0
                && let Some(path) = self.path(self.start + first, end - first)
            {
                self.block.telling &= !between(0, end);
                return Some(path);
            }
            // No path: the word in it that tells, if it is not the slash.
            if word >> tells & 1 == 0 {
                self.block.telling &= telling - 1;
                continue;
            }
            let (start, end) = around(word, tells);
            self.block.telling &= !between(0, end);
            let start = start.max(first);
            if start < end && self.block.is_name(start, end) {
                return Some(&self.text[self.start + start..self.start + end]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_nobody_could_guess() {
        let text =
            "see src/parse.rs: fn parse_line(s, 8080) -> HttpServer in ./a/b/. 12 port 東京 id7788 short";
        let found: Vec<&str> = names(text).collect();
        assert_eq!(found, ["src/parse.rs", "parse_line", "8080", "HttpServer", "./a/b", "id7788"]);
        let json = r#"{"new":"x\nparse_line()\n\t8080 C:\\new_dir \u00e9"}"#;
        assert_eq!(names_in_json(json).collect::<Vec<_>>(), ["parse_line", "8080", "new_dir"]);
    }

    /// The same, byte by byte.
    fn slowly(text: &str, json: bool) -> Vec<&str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let fits = |c: char| is_word(c) || c.is_ascii() && is_path(c as u8);
            let rest = &text[at..];
            let length = rest.find(|c| !fits(c)).unwrap_or(rest.len());
            if length == 0 {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            if json && text[..at].bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1 {
                at += 1;
                continue;
            }
            let run = &rest[..length];
            at += length;
            let path = run.trim_end_matches(['/', '.']);
            if path.len() > 3 && path[1..].contains('/') {
                found.push(path);
                continue;
            }
            for word in run.split(|c| !is_word(c)) {
                let bytes = word.as_bytes();
                let odd = bytes.windows(2).any(|pair| match pair[1] {
                    b'_' => pair[0] != b'_',
                    b'0'..=b'9' => pair[0].is_ascii_alphabetic(),
                    b'A'..=b'Z' => pair[0].is_ascii_lowercase(),
                    _ => false,
                });
                let is_name = match bytes {
                    [b'0'..=b'9', ..] => word.len() > 3 && bytes.iter().all(u8::is_ascii_digit),
                    _ => word.len() > 15 || word.len() > 5 && odd,
                };
                if is_name {
                    found.push(word);
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn blocks_are_as_good_as_bytes(
            parts in prop::collection::vec(
                prop_oneof![
                    4 => "[a-z]{1,9}|[0-9]{1,6}|[ ,;:()=\n]{1,9}",
                    4 => "[a-zA-Z0-9_]{1,20}|[a-z_/.~@-]{1,20}|\\\\{1,3}[a-z]{0,3}",
                    1 => "[a-zA-Z0-9_]{60,200}|[0-9]{60,200}|[a-z/.-]{60,200}|[a-z.-]{60,140}|\\PC{1,9}",
                ],
                0..30,
            ),
            json: bool,
        ) {
            let text = parts.concat();
            let found: Vec<&str> = Names::new(&text, json).collect();
            prop_assert_eq!(found, slowly(&text, json));
        }
    }
}
