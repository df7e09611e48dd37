//! What a provider's prompt cache would have read and written. There is no least size and no age: a prefix
//! that was seen once is known for ever.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::script::Counts;

/// A piece of a prompt, in the order in which a provider reads it: a tool, a system prompt, a message or a
/// block of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// The client marked its end for the cache.
    pub(crate) marked: bool,
}

/// So many pieces before a mark are looked at for a prefix that was written.
const LOOK_BACK: usize = 20;

/// The prompts that were seen.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// Whole prompts, for providers that remember everything.
    prompts: Vec<String>,
    /// Prefixes that ended at a mark.
    marked: HashSet<u64>,
}

/// The tokens of so many bytes that are all of a prompt.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// The tokens of a prompt.
pub(crate) fn tokens_of(pieces: &[Piece]) -> u64 {
    tokens(pieces.iter().map(|piece| piece.text.len()).sum())
}

impl Cache {
    /// Counts a prompt for a provider that remembers every prompt: the longest prefix that it shares with
    /// an earlier one was read.
    pub(crate) fn count_prefix(&mut self, pieces: &[Piece]) -> Counts {
        let prompt: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let longest = self.prompts.iter().map(|known| shared(known, &prompt)).max().unwrap_or(0);
        let counts =
            Counts { prompt: tokens(prompt.len()), cached: (longest / 4) as u64, ..Counts::default() };
        self.prompts.push(prompt);
        counts
    }

    /// Counts a prompt for a provider that remembers what the client marks: the longest prefix that was
    /// written and ends at a mark or shortly before one was read, the rest up to the last mark is written.
    pub(crate) fn count_marked(&mut self, pieces: &[Piece]) -> Counts {
        let ends = ends(pieces);
        let marks: Vec<usize> = (0..pieces.len()).filter(|at| pieces[*at].marked).collect();
        let known = |at: &usize| self.marked.contains(&ends[*at].0);
        let found = |mark: &usize| (mark.saturating_sub(LOOK_BACK)..=*mark).rev().find(known);
        let cached = marks.iter().filter_map(found).map(|at| ends[at].1).max().unwrap_or(0);
        let last = marks.last().map_or(0, |at| ends[*at].1);
        self.marked.extend(marks.iter().map(|at| ends[*at].0));
        Counts {
            prompt: tokens_of(pieces),
            cached: (cached / 4) as u64,
            written: (last.max(cached) / 4 - cached / 4) as u64,
            output: 0,
        }
    }
}

/// The bytes that two texts begin with. Whole blocks are compared first: byte by byte, tests of long conversations
/// would spend most of their time here.
fn shared(a: &str, b: &str) -> usize {
    const BLOCK: usize = 4_096;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let whole = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[whole..].iter().zip(&b[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

/// Of each piece: which prefix ends with it, and its bytes.
fn ends(pieces: &[Piece]) -> Vec<(u64, usize)> {
    let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
    let mut end = |piece: &Piece| {
        piece.text.hash(&mut hasher);
        bytes += piece.text.len();
        (hasher.finish(), bytes)
    };
    pieces.iter().map(&mut end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of eight bytes; one with a star is marked.
    fn pieces(text: &str) -> Vec<Piece> {
        let piece = |word: &str| Piece {
            text: format!("{:8}", word.trim_end_matches('*')),
            marked: word.ends_with('*'),
        };
        text.split(' ').map(piece).collect()
    }

    fn counts(prompt: u64, cached: u64, written: u64) -> Counts {
        Counts { prompt, cached, written, output: 0 }
    }

    #[test]
    fn a_shared_prefix_is_read() {
        let mut cache = Cache::default();
        assert_eq!(cache.count_prefix(&pieces("a b")), counts(4, 0, 0));
        assert_eq!(cache.count_prefix(&pieces("a b c")), counts(6, 4, 0));
        assert_eq!(cache.count_prefix(&pieces("a x c")), counts(6, 2, 0));
        assert_eq!(cache.count_prefix(&pieces("a b c")), counts(6, 6, 0));
    }

    #[test]
    fn the_shared_prefix_of_long_texts_ends_at_the_first_other_byte() {
        let text = "long ".repeat(2_000);
        for at in [0, 4_095, 4_096, 4_097, 9_999] {
            let mut other = text.clone();
            other.replace_range(at..=at, "#");
            assert_eq!((shared(&text, &other), shared(&text, &text[..at])), (at, at));
        }
        assert_eq!(shared(&text, &text), text.len());
    }

    #[test]
    fn only_what_was_marked_is_read_and_written() {
        let mut cache = Cache::default();
        assert_eq!(cache.count_marked(&pieces("a b c")), counts(6, 0, 0));
        assert_eq!(cache.count_marked(&pieces("a* b* c")), counts(6, 0, 4));
        // The mark has moved on: what it wrote before is found behind it.
        assert_eq!(cache.count_marked(&pieces("a b c d*")), counts(8, 4, 4));
        assert_eq!(cache.count_marked(&pieces("a x c*")), counts(6, 2, 4));
        // Nothing is read without a mark.
        assert_eq!(cache.count_marked(&pieces("a b c d")), counts(8, 0, 0));
    }

    #[test]
    fn what_stands_far_before_a_mark_is_not_found() {
        let mut cache = Cache::default();
        cache.count_marked(&pieces("a*"));
        let near = format!("a {}*", vec!["b"; LOOK_BACK].join(" "));
        let far = format!("a {}*", vec!["c"; LOOK_BACK + 1].join(" "));
        assert_eq!(cache.count_marked(&pieces(&near)).cached, 2);
        assert_eq!(cache.count_marked(&pieces(&far)).cached, 0);
    }
}
