//! Names that nobody could guess: paths, numbers of four digits or more, and identifiers that
//! are long, or have an underscore, a digit or a change of case inside. What later steps need
//! again is found by them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// The names in a text, in their order.
pub(crate) fn names(text: &str) -> Names<'_> {
    Names { text, at: 0, run_end: 0, json: false }
}

/// The names in the text of a JSON value: `\n` in a string ends a line, it does not begin a name.
pub(crate) fn names_in_json(text: &str) -> Names<'_> {
    Names { text, at: 0, run_end: 0, json: true }
}

/// A set of names.
pub(crate) type NameSet<'a> = HashSet<&'a str, NameHash>;
/// Something for each name.
pub(crate) type NameMap<'a, T> = HashMap<&'a str, T, NameHash>;

/// Goes through runs of the characters that paths have; a run without a slash falls apart into
/// words. All these characters are ASCII, so that cuts are between characters.
pub(crate) struct Names<'a> {
    text: &'a str,
    at: usize,
    /// Up to here words are looked for.
    run_end: usize,
    /// Escapes are no letters.
    json: bool,
}

/// Kinds of bytes, one bit each.
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const PATH: u8 = 16;
const SLASH: u8 = 32;
const WORD: u8 = LOWER | UPPER | DIGIT | UNDERSCORE;

const KIND: [u8; 256] = {
    let mut kind = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kind[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            b'.' | b'@' | b'~' | b'-' => PATH,
            b'/' => PATH | SLASH,
            _ => 0,
        };
        byte += 1;
    }
    kind
};

/// A run of bytes of these kinds: its length, and the kinds in it.
fn run(bytes: &[u8], kinds: u8) -> (usize, u8) {
    let mut all = 0;
    for (len, byte) in bytes.iter().enumerate() {
        let kind = KIND[*byte as usize];
        if kind & kinds == 0 {
            return (len, all);
        }
        all |= kind;
    }
    (bytes.len(), all)
}

/// An underscore inside, a digit behind a letter, a change of case.
fn is_odd(word: &[u8], all: u8) -> bool {
    // Most words are of one kind.
    !matches!(all, LOWER | UPPER)
        && word.windows(2).any(|pair| {
            let (before, kind) = (KIND[pair[0] as usize], KIND[pair[1] as usize]);
            match kind {
                UNDERSCORE => before != UNDERSCORE,
                DIGIT => before & (LOWER | UPPER) != 0,
                UPPER => before == LOWER,
                _ => false,
            }
        })
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        loop {
            // Words of a run that is no path.
            let in_run = self.at < self.run_end;
            let end = if in_run { self.run_end } else { bytes.len() };
            let kinds = if in_run { WORD } else { WORD | PATH };
            let fits = |b: &u8| KIND[*b as usize] & kinds != 0;
            let Some(skipped) = bytes[self.at..end].iter().position(fits) else {
                self.at = end;
                if in_run {
                    continue;
                }
                return None;
            };
            let mut start = self.at + skipped;
            if self.json && start > 0 && bytes[start - 1] == b'\\' && !in_run {
                // An escaped backslash is followed by a letter of its own.
                let slashes = bytes[..start].iter().rev().take_while(|b| **b == b'\\').count();
                start += slashes % 2;
                if start >= end || !fits(&bytes[start]) {
                    self.at = start;
                    continue;
                }
            }
            let (len, all) = run(&bytes[start..end], kinds);
            self.at = start + len;
            if all & PATH != 0 {
                let trimmed = self.text[start..start + len].trim_end_matches(['/', '.']);
                if all & SLASH != 0 && trimmed.len() > 3 && trimmed.as_bytes()[1..].contains(&b'/') {
                    return Some(trimmed);
                }
                (self.at, self.run_end) = (start, start + len);
                continue;
            }
            let word = &bytes[start..start + len];
            let is_name = match len {
                // The shortest are the most.
                0..4 => false,
                _ if word[0].is_ascii_digit() => all == DIGIT,
                4..6 => false,
                6..16 => is_odd(word, all),
                _ => true,
            };
            if is_name {
                return Some(&self.text[start..start + len]);
            }
        }
    }
}

/// Names are many and short: a hash for them that is fast, with all bits of the input in all
/// bits of the result. It begins with a secret, so that nobody can make up names that fall
/// together; no order of a set of names reaches what is written.
#[derive(Clone, Copy)]
pub(crate) struct NameHash(u64);

impl Default for NameHash {
    fn default() -> Self {
        static SECRET: OnceLock<u64> = OnceLock::new();
        Self(*SECRET.get_or_init(|| RandomState::new().build_hasher().finish()))
    }
}

impl BuildHasher for NameHash {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        NameHasher(self.0)
    }
}

pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            let mixed = u128::from(self.0 ^ u64::from_le_bytes(eight))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            self.0 = (mixed as u64) ^ (mixed >> 64) as u64;
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = self.0.rotate_left(8) ^ u64::from(byte);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
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
}
