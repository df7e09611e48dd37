//! What a provider's prompt cache would have read and written, by the [`CacheRules`] of the provider.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::script::Counts;
use crate::twin::{CacheRules, LookBack};

/// A piece of a prompt, in the order in which a provider reads it: a tool, a system prompt, a message or a
/// block of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// The client marked its end for the cache.
    pub(crate) mark: Option<Mark>,
}

/// The kind of a piece, as far as it matters for positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call of a tool.
    Call,
    /// The result of a call.
    Result,
    Other,
}

/// A mark of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// The entry lives as long as the rules say.
    Short,
    /// The entry lives for an hour.
    Hour,
}

impl Piece {
    /// A piece without a mark.
    pub(crate) fn other(text: String) -> Self {
        Self { text, kind: Kind::Other, mark: None }
    }
}

/// The number of positions at which the cache looks for an entry.
const LOOK_BACK: usize = 20;

/// How long an entry lives that was marked for an hour.
const HOUR: Duration = Duration::from_secs(3_600);

/// The prompts that were seen.
#[derive(Debug)]
pub(crate) struct Cache {
    rules: CacheRules,
    /// Whole prompts, for providers that remember everything.
    prompts: Vec<(String, Entry)>,
    /// Prefixes that ended at a mark.
    marked: HashMap<u64, Entry>,
}

/// How long a prefix is known.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// From its last use; `None` is for ever.
    life: Option<Duration>,
    /// The time of its last use, from the start of the fake.
    used: Duration,
}

impl Entry {
    fn lives(self, now: Duration) -> bool {
        self.life.is_none_or(|life| now < self.used + life)
    }
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
    pub(crate) fn new(rules: CacheRules) -> Self {
        Self { rules, prompts: Vec::new(), marked: HashMap::new() }
    }

    /// Counts a prompt for a provider that remembers every prompt: the longest prefix that it shares with
    /// an earlier one was read.
    pub(crate) fn count_prefix(&mut self, pieces: &[Piece], now: Duration) -> Counts {
        let prompt: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        self.prompts.retain(|(_, entry)| entry.lives(now));
        let lengths = self.prompts.iter_mut().map(|(known, entry)| (shared(known, &prompt), entry));
        let longest =
            lengths.max_by_key(|(length, _)| *length).filter(|(length, _)| self.rules.caches(*length));
        let cached = longest.map_or(0, |(length, entry)| {
            entry.used = now;
            length as u64 / 4
        });
        let counts = Counts { prompt: tokens(prompt.len()), cached, ..Counts::default() };
        self.prompts.push((prompt, Entry { life: self.rules.life, used: now }));
        counts
    }

    /// Counts a prompt for a provider that remembers what the client marks: the longest prefix that was
    /// written and ends at a mark or shortly before one was read, the rest up to the last mark is written.
    pub(crate) fn count_marked(&mut self, pieces: &[Piece], now: Duration) -> Counts {
        self.marked.retain(|_, entry| entry.lives(now));
        let (ends, positions) = (ends(pieces), positions(pieces));
        let marks: Vec<(usize, Mark)> =
            pieces.iter().enumerate().filter_map(|(at, piece)| Some((at, piece.mark?))).collect();
        let is_near = |at: usize, mark: usize| match self.rules.look_back {
            LookBack::Blocks => mark - at <= LOOK_BACK,
            LookBack::Positions => positions[mark] - positions[at] < LOOK_BACK,
        };
        let known = |at: &usize| self.marked.contains_key(&ends[*at].0);
        let near =
            |(mark, _): &(usize, Mark)| (0..=*mark).rev().take_while(|at| is_near(*at, *mark)).find(known);
        let found = marks.iter().filter_map(near).max();
        let cached = found.map_or(0, |at| ends[at].1);
        if let Some(entry) = found.and_then(|at| self.marked.get_mut(&ends[at].0)) {
            entry.used = now;
        }
        let mut written = cached;
        for (at, mark) in marks {
            let (prefix, bytes) = ends[at];
            if self.rules.caches(bytes) {
                let life = self.rules.life.map(|life| if mark == Mark::Hour { HOUR } else { life });
                self.marked.insert(prefix, Entry { life, used: now });
                written = written.max(bytes);
            }
        }
        Counts {
            prompt: tokens_of(pieces),
            cached: (cached / 4) as u64,
            written: (written / 4 - cached / 4) as u64,
            output: 0,
        }
    }
}

impl CacheRules {
    /// True if a prefix of so many bytes is long enough.
    fn caches(self, bytes: usize) -> bool {
        tokens(bytes) >= self.least
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

/// The position of each piece: a run of calls has one, and so has a run of results.
fn positions(pieces: &[Piece]) -> Vec<usize> {
    let continues = |at: usize| pieces[at].kind != Kind::Other && pieces[at].kind == pieces[at - 1].kind;
    let mut position = 0;
    let mut next = |at: usize| {
        position += usize::from(at > 0 && !continues(at));
        position
    };
    (0..pieces.len()).map(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::Twin;

    const NOW: Duration = Duration::ZERO;

    fn plain() -> Cache {
        Cache::new(Twin::PLAIN.cache)
    }

    /// Pieces of eight bytes, which are two tokens; one with a star is marked.
    fn pieces(text: &str) -> Vec<Piece> {
        let piece = |word: &str| Piece {
            text: format!("{:8}", word.trim_end_matches('*')),
            kind: if word.starts_with("call") { Kind::Call } else { Kind::Other },
            mark: word.ends_with('*').then_some(Mark::Short),
        };
        text.split(' ').map(piece).collect()
    }

    fn counts(prompt: u64, cached: u64, written: u64) -> Counts {
        Counts { prompt, cached, written, output: 0 }
    }

    #[test]
    fn a_shared_prefix_is_read() {
        let mut cache = plain();
        assert_eq!(cache.count_prefix(&pieces("a b"), NOW), counts(4, 0, 0));
        assert_eq!(cache.count_prefix(&pieces("a b c"), NOW), counts(6, 4, 0));
        assert_eq!(cache.count_prefix(&pieces("a x c"), NOW), counts(6, 2, 0));
        assert_eq!(cache.count_prefix(&pieces("a b c"), NOW), counts(6, 6, 0));
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
        let mut cache = plain();
        assert_eq!(cache.count_marked(&pieces("a b c"), NOW), counts(6, 0, 0));
        assert_eq!(cache.count_marked(&pieces("a* b* c"), NOW), counts(6, 0, 4));
        // The mark has moved on: what it wrote before is found behind it.
        assert_eq!(cache.count_marked(&pieces("a b c d*"), NOW), counts(8, 4, 4));
        assert_eq!(cache.count_marked(&pieces("a x c*"), NOW), counts(6, 2, 4));
        // Nothing is read without a mark.
        assert_eq!(cache.count_marked(&pieces("a b c d"), NOW), counts(8, 0, 0));
    }

    #[test]
    fn what_stands_far_before_a_mark_is_not_found() {
        let mut cache = plain();
        cache.count_marked(&pieces("a*"), NOW);
        let near = format!("a {}*", vec!["b"; LOOK_BACK].join(" "));
        let far = format!("a {}*", vec!["c"; LOOK_BACK + 1].join(" "));
        assert_eq!(cache.count_marked(&pieces(&near), NOW).cached, 2);
        assert_eq!(cache.count_marked(&pieces(&far), NOW).cached, 0);
    }

    #[test]
    fn a_run_of_calls_is_one_position() {
        let rules = CacheRules { look_back: LookBack::Positions, ..Twin::PLAIN.cache };
        let read = |between: Vec<&str>| {
            let mut cache = Cache::new(rules);
            cache.count_marked(&pieces("a*"), NOW);
            cache.count_marked(&pieces(&format!("a {} z*", between.join(" "))), NOW).cached
        };
        // The mark is the first position.
        assert_eq!(read(vec!["b"; LOOK_BACK - 2]), 2);
        assert_eq!(read(vec!["b"; LOOK_BACK - 1]), 0);
        assert_eq!(read(vec!["call"; 3 * LOOK_BACK]), 2);
    }

    #[test]
    fn short_prefixes_are_not_cached() {
        let mut cache = Cache::new(CacheRules { least: 5, ..Twin::PLAIN.cache });
        assert_eq!(cache.count_marked(&pieces("a b*"), NOW), counts(4, 0, 0));
        assert_eq!(cache.count_marked(&pieces("a b* c*"), NOW), counts(6, 0, 6));
        assert_eq!(cache.count_marked(&pieces("a b* c d"), NOW), counts(8, 0, 0));
        assert_eq!(cache.count_marked(&pieces("a b c d*"), NOW), counts(8, 6, 2));
        cache.count_prefix(&pieces("a b c"), NOW);
        assert_eq!(cache.count_prefix(&pieces("a b x"), NOW), counts(6, 0, 0));
        assert_eq!(cache.count_prefix(&pieces("a b c d"), NOW), counts(8, 6, 0));
    }

    #[test]
    fn entries_live_from_their_last_use() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let rules = CacheRules { life: Some(minutes(5)), ..Twin::PLAIN.cache };
        let mut cache = Cache::new(rules);
        for (at, cached) in [(0, 0), (4, 2), (8, 2), (13, 0), (17, 2)] {
            assert_eq!(cache.count_marked(&pieces("a*"), minutes(at)).cached, cached, "{at}");
        }
        let mut cache = Cache::new(rules);
        for (at, cached) in [(0, 0), (4, 2), (8, 2), (13, 0)] {
            assert_eq!(cache.count_prefix(&pieces("a"), minutes(at)).cached, cached, "{at}");
        }
        let mut hour = pieces("a*");
        hour[0].mark = Some(Mark::Hour);
        let mut cache = Cache::new(rules);
        for (at, cached) in [(0, 0), (59, 2), (118, 2), (178, 0)] {
            assert_eq!(cache.count_marked(&hour, minutes(at)).cached, cached, "{at}");
        }
    }
}
