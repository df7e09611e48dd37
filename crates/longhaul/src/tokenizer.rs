//! Counting text with a vocabulary. Text is cut where a cut changes no count, and each
//! piece is counted once per process: what comes again (a file read twice, the same history
//! in the next request) costs a hash. The cuts also bound the worst cases of the tokenizer,
//! which is slower than linear on some unbroken text.

mod seams;

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use tiktoken::CoreBpe;

use seams::Cutter;

/// A vocabulary whose tokens can be counted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vocabulary {
    /// GPT-4o and later.
    O200k,
    /// GPT-3.5 and GPT-4.
    Cl100k,
    /// Llama 3 and later.
    Llama3,
    /// Qwen 2 and later.
    Qwen2,
    /// DeepSeek V3 and later.
    DeepseekV3,
    /// Mistral's Tekken.
    MistralV3,
    /// Kimi K2.
    KimiK2,
    /// GLM 4 and later.
    Glm4,
    /// MiniMax M2.
    MinimaxM2,
}

impl Vocabulary {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::O200k,
        Self::Cl100k,
        Self::Llama3,
        Self::Qwen2,
        Self::DeepseekV3,
        Self::MistralV3,
        Self::KimiK2,
        Self::Glm4,
        Self::MinimaxM2,
    ];

    fn encoding(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::Llama3 => "llama3",
            Self::Qwen2 => "qwen2",
            Self::DeepseekV3 => "deepseek_v3",
            Self::MistralV3 => "mistral_v3",
            Self::KimiK2 => "kimi_k2",
            Self::Glm4 => "glm4",
            Self::MinimaxM2 => "minimax_m2",
        }
    }

    /// Counts the tokens of `text`. Loads the vocabulary the first time (about 0.1 s).
    ///
    /// ```
    /// use longhaul::Vocabulary;
    /// let count = Vocabulary::O200k.count("The quick brown fox.\n");
    /// assert_eq!((count.tokens, count.exact), (5, true));
    /// ```
    pub fn count(self, text: &str) -> TextCount {
        static TOKENIZERS: [OnceLock<Tokenizer>; Vocabulary::ALL.len()] =
            [const { OnceLock::new() }; Vocabulary::ALL.len()];
        TOKENIZERS[self as usize].get_or_init(|| Tokenizer::new(self)).count(text)
    }
}

/// Tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextCount {
    /// How many.
    pub tokens: u64,
    /// False if the text had to be cut where a token may have been (off by one per cut).
    pub exact: bool,
}

/// Pieces are at least this long, so that a hash per piece is cheap.
const PIECE: usize = 2 << 10;
/// No piece is longer. An unbroken text is cut here, at the price of one token at most.
const LONGEST: usize = 16 << 10;
/// Pieces remembered in each of two generations; about 3 MB in all.
const REMEMBERED: usize = 32 << 10;

/// The tokenizer builds its tables as it meets new kinds of characters, a hundred times slower
/// than it runs on them. It meets the usual ones when it is loaded.
const SAMPLE: &str = "Naïve café, ação é útil; größer Straße, señor ¿qué? Œuvre, žluťoučký kůň, Ελλάδα, \
    Привет, мир! שלום العالم हिन्दी ภาษาไทย 한국어입니다. 日本語のテキスト、カタカナ。中文测试，例如：“引号”（括号）！\n\
    🎉🚀✅❌💡📦📌👩‍🚀🤣⚠️ ✓✗•·…—–‘’“”«»€£¥©®™°±×÷ ←↑→↓⇒ │┌─┐└┘├┤━█░▒▓ ❯⏺●○■□▶ \u{e0b0}\u{f1d2}\u{1b}[31m\u{7}\n\
    1→\tfn a() {\n\n\n  2→\t\té = 'x'; // ¼ ½ ² µm\r\n\u{a0}\u{3000}\u{200b}e\u{301} don't L’été";

/// A vocabulary and the counts of the pieces that it has seen.
struct Tokenizer {
    /// `None` only if the crate was built without this vocabulary: then 3 characters are a token.
    bpe: Option<&'static CoreBpe>,
    /// Made when the first text comes that it is for.
    cutter: OnceLock<Cutter>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    young: HashMap<[u8; 16], u32>,
    old: HashMap<[u8; 16], u32>,
}

impl Tokenizer {
    fn new(vocabulary: Vocabulary) -> Self {
        let bpe = tiktoken::get_encoding(vocabulary.encoding());
        bpe.map(|bpe| bpe.count(SAMPLE));
        Self { bpe, cutter: OnceLock::new(), seen: Mutex::default() }
    }

    fn count(&self, text: &str) -> TextCount {
        let Some(bpe) = self.bpe else {
            return TextCount { tokens: text.chars().count().div_ceil(3) as u64, exact: false };
        };
        let mut count = TextCount { tokens: 0, exact: true };
        let mut rest = text;
        while rest.len() > PIECE {
            let cut = cut(rest);
            let (piece, after) = rest.split_at(cut.at);
            count.tokens += self.count_piece(bpe, piece);
            count.exact &= cut.safe;
            rest = after;
        }
        count.tokens +=
            if rest.len() < PIECE / 4 { self.count_new(bpe, rest) } else { self.count_piece(bpe, rest) };
        count
    }

    fn count_piece(&self, bpe: &CoreBpe, piece: &str) -> u64 {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(piece.as_bytes()).as_bytes()[..16]);
        if let Some(tokens) = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return u64::from(tokens);
        }
        let tokens = self.count_new(bpe, piece);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key, tokens as u32);
        tokens
    }

    fn count_new(&self, bpe: &CoreBpe, piece: &str) -> u64 {
        let tokens = if Cutter::is_for(piece) {
            self.cutter.get_or_init(|| Cutter::new(bpe)).count(bpe, piece)
        } else {
            bpe.count(piece)
        };
        tokens as u64
    }
}

impl Seen {
    fn get(&mut self, key: &[u8; 16]) -> Option<u32> {
        if let Some(tokens) = self.young.get(key) {
            return Some(*tokens);
        }
        let tokens = *self.old.get(key)?;
        self.insert(*key, tokens);
        Some(tokens)
    }

    fn insert(&mut self, key: [u8; 16], tokens: u32) {
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
    }
}

/// Where to cut, and whether the cut can change the count.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    at: usize,
    safe: bool,
}

/// The first cut at or after `PIECE` bytes. Safe cuts are the same for all vocabularies
/// here: between a newline and a character that is neither white space nor `/`, and, in long
/// lines, before a single space between a visible character and a letter or digit. No
/// pre-token pattern joins across either.
fn cut(text: &str) -> Cut {
    let bytes = text.as_bytes();
    let limit = text.len().min(LONGEST);
    let mut from = PIECE;
    while let Some(found) = bytes[from..limit].iter().position(|&b| b == b'\n') {
        let at = from + found + 1;
        match text[at..].chars().next() {
            None => return Cut { at, safe: true },
            Some(next) if !next.is_whitespace() && next != '/' => return Cut { at, safe: true },
            Some(_) => from = at.min(limit),
        }
    }
    if limit == text.len() {
        return Cut { at: limit, safe: true };
    }
    let spaced = |at: &usize| {
        let (before, after) = (bytes[at - 1], bytes[at + 1]);
        bytes[*at] == b' ' && before.is_ascii_graphic() && after.is_ascii_alphanumeric()
    };
    if let Some(at) = (PIECE..limit - 1).rev().find(spaced) {
        return Cut { at, safe: true };
    }
    let at = (limit - 3..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(limit);
    Cut { at, safe: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(vocabulary: Vocabulary, text: &str) -> u64 {
        tiktoken::get_encoding(vocabulary.encoding()).unwrap().count(text) as u64
    }

    /// Text that is as awkward around newlines, spaces and scripts as possible.
    fn awkward() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[a-zA-Z]{1,12}",
            "[0-9]{1,7}",
            "[ \t]{1,5}",
            "(\r?\n){1,3}",
            "[/\\\\.,;:!?'\"(){}<>=+*#@_-]{1,4}",
            "[\u{4e00}-\u{4e40}，。、]{1,9}",
            "'(s|t|re|LL|d)",
            Just("\u{3000}".to_owned()),
            "\\PC{1,3}",
            Just("e\u{301}👩‍🚀".to_owned()),
        ];
        prop::collection::vec(word, 300..1500).prop_map(|words| words.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn pieces_sum_to_the_whole(text in awkward(), pick in 0..Vocabulary::ALL.len()) {
            let vocabulary = Vocabulary::ALL[pick];
            let count = vocabulary.count(&text);
            prop_assert!(count.exact);
            prop_assert_eq!(count.tokens, whole(vocabulary, &text));
            // Again, from memory.
            prop_assert_eq!(vocabulary.count(&text), count);
        }

        #[test]
        fn long_lines_are_cut_at_spaces(words in prop::collection::vec("[a-z]{1,9}|[0-9]{1,9}|[A-Z][a-z]+[,.;)]|\\{\"k\":|中文", 4000..6000), pick in 0..Vocabulary::ALL.len()) {
            let vocabulary = Vocabulary::ALL[pick];
            let text = words.join(" ");
            let count = vocabulary.count(&text);
            prop_assert!(count.exact);
            prop_assert_eq!(count.tokens, whole(vocabulary, &text));
        }
    }

    #[test]
    fn unbroken_text_is_close_and_says_so() {
        for (unit, times) in [("a", 40_000), (" ", 40_000), ("\n", 40_000), ("中", 14_000), ("=", 40_000)] {
            let text = unit.repeat(times);
            let count = Vocabulary::O200k.count(&text);
            assert!(!count.exact);
            let cuts = (text.len() / (LONGEST - 3)) as u64 + 1;
            assert!(count.tokens.abs_diff(whole(Vocabulary::O200k, &text)) <= 2 * cuts, "{unit:?} {count:?}");
        }
    }

    #[test]
    fn every_vocabulary_is_built_in() {
        for vocabulary in Vocabulary::ALL {
            assert!(tiktoken::get_encoding(vocabulary.encoding()).is_some(), "{vocabulary:?}");
        }
    }

    #[test]
    fn memory_of_pieces_is_bounded() {
        let mut seen = Seen::default();
        for n in 0..(3 * REMEMBERED as u128) {
            seen.insert(n.to_le_bytes(), 1);
        }
        assert!(seen.young.len() + seen.old.len() <= 2 * REMEMBERED);
    }
}
