//! Counting text with a vocabulary. Text is cut where a cut changes no count, into words whose
//! counts are looked up; and a whole text that was met before is known by its fingerprint. The
//! cuts also bound the worst cases of the tokenizer, which is slower than linear on some
//! unbroken text.

mod cuts;
mod memo;
mod seams;
mod texts;
mod words;

use std::ops::Range;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tiktoken::CoreBpe;

use memo::{Memo, Memos};
use seams::Seams;
use words::Words;

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
        let tokenizer = self.tokenizer();
        tokenizer.memos.with(|Memo { texts, words }| texts.count(text, |text| tokenizer.count(text, words)))
    }

    /// Makes ready all that is otherwise made while the first texts are counted: loads the
    /// vocabulary (about 0.1 s), and learns where its tokens meet in Chinese, Japanese and Korean
    /// (up to 0.4 s). No count is another for it.
    ///
    /// Call it in the background when the program starts, with the vocabulary of its model, so
    /// that no session waits for it:
    ///
    /// ```
    /// use longhaul::Vocabulary;
    /// let ready = std::thread::spawn(|| Vocabulary::O200k.warm());
    /// # ready.join().unwrap();
    /// ```
    pub fn warm(self) {
        let tokenizer = self.tokenizer();
        tokenizer.bpe.map(|bpe| tokenizer.seams(bpe));
    }

    fn tokenizer(self) -> &'static Tokenizer {
        static TOKENIZERS: [OnceLock<Tokenizer>; Vocabulary::ALL.len()] =
            [const { OnceLock::new() }; Vocabulary::ALL.len()];
        TOKENIZERS[self as usize].get_or_init(|| Tokenizer::new(self))
    }
}

/// Tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextCount {
    /// How many.
    pub tokens: u64,
    /// False if the text had to be cut where a token may have been (off by a few per cut).
    pub exact: bool,
}

/// No word is longer. An unbroken text is cut here, at the price of a few tokens.
const LONGEST: usize = 16 << 10;

/// The tokenizer builds its tables as it meets new kinds of characters, a hundred times slower
/// than it runs on them. It meets the usual ones when it is loaded.
const SAMPLE: &str = "Naïve café, ação é útil; größer Straße, señor ¿qué? Œuvre, žluťoučký kůň, Ελλάδα, \
    Привет, мир! שלום العالم हिन्दी ภาษาไทย 한국어입니다. 日本語のテキスト、カタカナ。中文测试，例如：“引号”（括号）！\n\
    🎉🚀✅❌💡📦📌👩‍🚀🤣⚠️ ✓✗•·…—–‘’“”«»€£¥©®™°±×÷ ←↑→↓⇒ │┌─┐└┘├┤━█░▒▓ ❯⏺●○■□▶ \u{e0b0}\u{f1d2}\u{1b}[31m\u{7}\n\
    1→\tfn a() {\n\n\n  2→\t\té = 'x'; // ¼ ½ ² µm\r\n\u{a0}\u{3000}\u{200b}e\u{301} don't L’été";

/// A vocabulary, and what helps to count with it.
struct Tokenizer {
    /// `None` only if the crate was built without this vocabulary: then 3 characters are a token.
    bpe: Option<&'static CoreBpe>,
    /// Whether the space before a number is apart from other spaces before it.
    digits: bool,
    /// Made when the first text comes that has any, or before by `warm`.
    seams: OnceLock<Seams>,
    memos: Memos,
}

impl Tokenizer {
    fn new(vocabulary: Vocabulary) -> Self {
        let bpe = tiktoken::get_encoding(vocabulary.encoding());
        bpe.map(|bpe| bpe.count(SAMPLE));
        let digits = vocabulary != Vocabulary::DeepseekV3;
        Self { bpe, digits, seams: OnceLock::new(), memos: Memos::new() }
    }

    fn seams(&self, bpe: &CoreBpe) -> &Seams {
        self.seams.get_or_init(|| Seams::new(bpe))
    }

    fn count(&self, text: &str, words: &mut Words) -> TextCount {
        let Some(bpe) = self.bpe else {
            return TextCount { tokens: text.chars().count().div_ceil(3) as u64, exact: false };
        };
        let mut count = TextCount { tokens: 0, exact: true };
        let mut start = 0;
        cuts::cuts(text.as_bytes(), self.digits, |end| {
            while end - start > LONGEST {
                let cut = text.floor_char_boundary(start + LONGEST);
                count.tokens += self.count_word(bpe, text, start..cut, words) as u64;
                count.exact = false;
                start = cut;
            }
            count.tokens += self.count_word(bpe, text, start..end, words) as u64;
            start = end;
        });
        count
    }

    fn count_word(&self, bpe: &CoreBpe, text: &str, word: Range<usize>, words: &mut Words) -> usize {
        let find = |word: &str| bpe.count(word);
        if word.len() <= words::LONGEST || !Seams::are_in(&text[word.clone()]) {
            return words.count(text, word, find);
        }
        let seams = self.seams(bpe);
        let (mut tokens, mut from) = (0, word.start);
        seams.cuts(&text[word.clone()], |at| {
            let to = word.start + at;
            tokens += words.count(text, from..to, find);
            from = to;
        });
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // covers: T-COUNT S-2
    #[test]
    fn without_a_tokenizer_three_characters_are_a_token() {
        let none = Tokenizer { bpe: None, digits: true, seams: OnceLock::new(), memos: Memos::new() };
        let count = |text: &str| none.memos.with(|Memo { words, .. }| none.count(text, words));
        for (text, tokens) in [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("中文测试，例如", 3)] {
            assert_eq!(count(text), TextCount { tokens, exact: false }, "{text}");
        }
    }

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
            "[!-/:-@\\[-`{-~]{1,4}",
            "[\u{4e00}-\u{4e40}，。、]{1,9}",
            "'(s|t|re|LL|d)",
            Just("\u{3000}".to_owned()),
            "\\PC{1,3}",
            "[→│─●²①½ↀↄ┿é\u{a0}]{1,3}",
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

    /// The count of a text is that of the whole, in one vocabulary per kind of pattern.
    fn compare(text: &str) {
        for vocabulary in [Vocabulary::O200k, Vocabulary::Cl100k, Vocabulary::DeepseekV3, Vocabulary::KimiK2]
        {
            assert_eq!(vocabulary.count(text).tokens, whole(vocabulary, text), "{vocabulary:?} {text:?}");
        }
    }

    /// Every character that there may be a cut beside, between others.
    #[test]
    fn no_cut_beside_a_character_changes_a_count() {
        let ascii = (0..128).map(char::from);
        for c in ascii.chain('\u{2100}'..='\u{2600}') {
            for (before, behind) in
                [("1", "1"), ("a", " b"), ("", "(aa"), ("\n", "aa"), ("  ", "a"), ("a ", "(a\n/")]
            {
                compare(&format!("{before}{c}{behind}"));
                compare(&format!("{before}{c}{c}{behind}"));
            }
        }
    }

    /// All texts of a few characters of every kind.
    #[test]
    fn no_cut_changes_a_count() {
        const LENGTH: u32 = 4;
        let kinds: Vec<char> = "aB1(./'s \t\n\r→ↀ²é中。\u{a0}\u{3000}\u{0}".chars().collect();
        for number in 0..kinds.len().pow(LENGTH) {
            let digit = |place: u32| kinds[number / kinds.len().pow(place) % kinds.len()];
            let text: String = (0..LENGTH).map(digit).collect();
            compare(&text);
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
    fn runs_of_one_character() {
        for unit in ["\0", " ", "\n", "a", "7", "=", "é", "中", "→", "\u{a0}"] {
            for times in 0..70 {
                compare(&unit.repeat(times));
            }
        }
    }

    #[test]
    fn text_without_spaces_is_cut_at_its_newlines() {
        let lines = [
            "我们今天去学校学习中文。\n",
            "吾輩は猫である。名前はまだ無い。\n",
            "привет\n",
            "สวัสดี\n",
            "한국어입니다.\n",
        ];
        for line in lines {
            let text = line.repeat(1 + LONGEST * 3 / line.len());
            for vocabulary in Vocabulary::ALL {
                let count = vocabulary.count(&text);
                assert_eq!(
                    (count.tokens, count.exact),
                    (whole(vocabulary, &text), true),
                    "{vocabulary:?} {line}"
                );
            }
        }
    }

    #[test]
    fn many_threads_share_a_few_memos() {
        // No other test counts with this one alone, but many count with all.
        let vocabulary = Vocabulary::Glm4;
        let texts: Vec<String> =
            (0..64).map(|n| format!("thread {n} says: 你好，世界！ ").repeat(200)).collect();
        let counted: Vec<TextCount> = std::thread::scope(|scope| {
            let threads: Vec<_> = texts.iter().map(|text| scope.spawn(|| vocabulary.count(text))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (text, count) in texts.iter().zip(counted) {
            assert_eq!(count, TextCount { tokens: whole(vocabulary, text), exact: true });
        }
        let memos = &vocabulary.tokenizer().memos;
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(memos.most(), cores.min(8));
        assert!((1..=memos.most()).contains(&memos.made()), "{}", memos.made());
    }

    #[test]
    fn what_is_warm_makes_nothing_more() {
        let vocabulary = Vocabulary::MistralV3;
        vocabulary.warm();
        assert!(vocabulary.tokenizer().seams.get().is_some());
        assert_eq!(vocabulary.count("你好，世界！").tokens, whole(vocabulary, "你好，世界！"));
    }

    #[test]
    fn every_vocabulary_is_built_in() {
        for vocabulary in Vocabulary::ALL {
            assert!(tiktoken::get_encoding(vocabulary.encoding()).is_some(), "{vocabulary:?}");
        }
    }
}
