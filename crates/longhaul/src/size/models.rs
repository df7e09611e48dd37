//! What is known about models: window, vocabulary, prices, cache rules. Data, not code: the
//! table is `models.toml`, and a user's file of the same form adds to it or replaces rows.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::size::image::ImageRule;
use crate::size::tokenizer::Vocabulary;
use crate::size::tokens::Tokens;

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in the table.
    pub name: Box<str>,
    /// All that fits: prompt and answer.
    pub window: Tokens,
    /// The longest answer.
    pub max_output: Tokens,
    /// The vocabulary its text is counted with.
    pub vocabulary: Vocabulary,
    /// Tokens of the model per token of the vocabulary, in millionths, before anything was
    /// learnt. One million: the vocabulary is the model's own.
    pub ratio_ppm: u64,
    /// How pictures are billed.
    pub image: ImageRule,
    /// What it costs, if that is known.
    pub price: Option<Price>,
    /// How its provider caches prompts.
    pub cache: CacheRule,
    /// Whether its provider refuses a prompt that passes the window together with the answer that the request allows,
    /// where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_answer: Option<bool>,
}

/// Dollars per million tokens, in millionths of a dollar: whole numbers, so that decisions
/// by price repeat everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// A prompt token that no cache is involved in.
    pub input: u64,
    /// A prompt token read from the cache.
    pub cache_read: u64,
    /// A prompt token written to the cache for the short lifetime.
    pub cache_write: u64,
    /// The same for an hour, where that is on offer.
    pub cache_write_1h: Option<u64>,
    /// A token the model writes.
    pub output: u64,
}

/// Who finds the prefix that the cache has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// The client marks where prefixes end.
    Marked,
    /// The provider finds them itself.
    Automatic,
    /// Nothing is cached.
    #[default]
    None,
}

/// How a provider caches prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheRule {
    /// Who finds the prefix.
    pub kind: CacheKind,
    /// Prefixes shorter than this are not cached.
    pub min_tokens: u64,
    /// How long a prefix lives after its last use, in seconds.
    pub lifetime_s: u64,
    /// How many marks a request may have.
    pub marks: u8,
    /// Prefixes are cut down to a multiple of this.
    pub granularity: u64,
}

impl Default for CacheRule {
    fn default() -> Self {
        Self { kind: CacheKind::None, min_tokens: 1024, lifetime_s: 300, marks: 0, granularity: 1 }
    }
}

/// A table of models that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// Not TOML, a key that does not exist, or a value of the wrong kind. Says where.
    #[error("{0}")]
    Toml(Box<str>),
    /// A value that cannot be.
    #[error("model {name:?}: {problem}")]
    Value {
        /// The row.
        name: Box<str>,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// The table of models.
#[derive(Debug, Clone, PartialEq)]
pub struct Models {
    rows: Vec<(Vec<Box<str>>, Model)>,
    unknown: Model,
}

impl Models {
    /// The table that comes with Longhaul.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Models> = OnceLock::new();
        // A test reads the built-in table: an empty one stands for a broken build only.
        BUILTIN
            .get_or_init(|| Self::empty().with(include_str!("models.toml")).unwrap_or_else(|_| Self::empty()))
    }

    fn empty() -> Self {
        let unknown = Model {
            name: UNKNOWN.into(),
            window: Tokens(200_000),
            max_output: Tokens(32_000),
            vocabulary: Vocabulary::O200k,
            ratio_ppm: 1_250_000,
            image: ImageRule::Tiles,
            price: None,
            cache: CacheRule { kind: CacheKind::Automatic, granularity: 128, ..CacheRule::default() },
            counts_answer: None,
        };
        Self { rows: Vec::new(), unknown }
    }

    /// This table with the rows of another file. A glob that both have means the new row.
    ///
    /// ```
    /// use longhaul::{Models, Tokens};
    /// let models = Models::builtin().clone().with(r#"
    ///     [[model]]
    ///     name = "house"
    ///     match = ["house-*"]
    ///     window = 32_000
    ///     max_output = 4_000
    ///     tokenizer = "qwen2"
    /// "#).unwrap();
    /// assert_eq!(models.find("vendor/House-7b").window, Tokens(32_000));
    /// ```
    pub fn with(mut self, toml: &str) -> Result<Self, ModelsError> {
        let file: File = toml::from_str(toml).map_err(|e| ModelsError::Toml(located(&e, toml)))?;
        for row in file.model {
            self.rows.push(row.check()?);
        }
        Ok(self)
    }

    /// The model of this name: the row with the longest glob that fits, the later one of
    /// two. A careful guess if there is none: `unknown`.
    pub fn find(&self, name: &str) -> &Model {
        let name = name.to_lowercase();
        let name = name.rsplit('/').next().unwrap_or_default();
        let fits = self.rows.iter().filter_map(|(globs, model)| {
            let longest = globs.iter().filter(|glob| glob_fits(glob, name)).map(|glob| glob.len()).max()?;
            Some((longest, model))
        });
        fits.max_by_key(|(len, _)| *len).map_or(&self.unknown, |(_, model)| model)
    }

    /// All rows, in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.rows.iter().map(|(_, model)| model)
    }
}

impl Model {
    /// Whether it is the careful guess for a model that no row fits.
    pub fn is_unknown(&self) -> bool {
        &*self.name == UNKNOWN
    }
}

/// The name of the row for models that no other fits.
const UNKNOWN: &str = "unknown";

/// `*` stands for any text, everything else for itself.
fn glob_fits(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The first line of the parser's message, with the line of the file.
fn located(error: &toml::de::Error, text: &str) -> Box<str> {
    let message = error.message().lines().next().unwrap_or("cannot be read");
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1).into(),
        None => message.into(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: Box<str>,
    r#match: Vec<Box<str>>,
    window: u64,
    max_output: u64,
    tokenizer: Vocabulary,
    ratio_ppm: Option<u64>,
    #[serde(default)]
    image: ImageRule,
    price: Option<RowPrice>,
    #[serde(default)]
    cache: CacheRule,
    counts_answer: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowPrice {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write_5m: Option<f64>,
    cache_write_1h: Option<f64>,
}

/// Ratios outside of this are a mistake, not a vocabulary.
pub(crate) const RATIO_PPM: std::ops::RangeInclusive<u64> = 700_000..=3_000_000;

impl Row {
    fn check(self) -> Result<(Vec<Box<str>>, Model), ModelsError> {
        let ratio_ppm = self.ratio_ppm.unwrap_or(1_000_000);
        let prices = self
            .price
            .iter()
            .flat_map(|p| [Some(p.input), Some(p.output), p.cache_read, p.cache_write_5m, p.cache_write_1h]);
        let problem = match () {
            () if self.r#match.is_empty() => Some("`match` names no glob"),
            () if self.window < 1000 => Some("`window` is under 1,000 tokens"),
            () if self.max_output == 0 => Some("`max_output` is 0"),
            () if !RATIO_PPM.contains(&ratio_ppm) => Some("`ratio_ppm` is not between 700,000 and 3,000,000"),
            () if prices.flatten().any(|p| !(0.0..=1e6).contains(&p)) => {
                Some("a price is not between 0 and 1,000,000 dollars")
            }
            () => None,
        };
        if let Some(problem) = problem {
            return Err(ModelsError::Value { name: self.name, problem });
        }
        let model = Model {
            name: self.name,
            window: Tokens(self.window),
            max_output: Tokens(self.max_output),
            vocabulary: self.tokenizer,
            ratio_ppm,
            image: self.image,
            price: self.price.map(RowPrice::in_micros),
            cache: self.cache,
            counts_answer: self.counts_answer,
        };
        Ok((self.r#match.into_iter().map(|glob| glob.to_lowercase().into()).collect(), model))
    }
}

impl RowPrice {
    fn in_micros(self) -> Price {
        let micros = |dollars: f64| (dollars * 1e6).round() as u64;
        Price {
            input: micros(self.input),
            cache_read: micros(self.cache_read.unwrap_or(self.input)),
            cache_write: micros(self.cache_write_5m.unwrap_or(self.input)),
            cache_write_1h: self.cache_write_1h.map(micros),
            output: micros(self.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_table_can_be_read() {
        let models = Models::empty().with(include_str!("models.toml")).unwrap();
        assert!(models.iter().count() > 30);
        for model in models.iter() {
            assert!(model.max_output <= model.window, "{}", model.name);
            if let Some(price) = model.price {
                assert!(price.cache_read <= price.input && price.input <= price.output, "{}", model.name);
            }
        }
    }

    #[test]
    fn the_longest_glob_wins_and_a_users_row_over_ours() {
        let row = |name: &str, glob: &str, window: u32| {
            format!(
                "[[model]]\nname='{name}'\nmatch=['{glob}']\nwindow={window}\nmax_output=1000\ntokenizer='o200k'\n"
            )
        };
        let models =
            Models::empty().with(&(row("a", "m-*", 10_000) + &row("b", "m-*-mini", 20_000))).unwrap();
        assert_eq!(&*models.find("provider/M-1-mini").name, "b");
        assert_eq!(&*models.find("m-1").name, "a");
        assert_eq!(&*models.find("x").name, "unknown");
        let models = models.with(&row("mine", "m-*", 30_000)).unwrap();
        assert_eq!(models.find("m-1").window, Tokens(30_000));
    }

    #[test]
    fn globs() {
        for (glob, name, fits) in [
            ("gpt-5*", "gpt-5.5", true),
            ("gpt-5", "gpt-5.5", false),
            ("*opus*", "claude-opus-5", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(glob_fits(glob, name), fits, "{glob} {name}");
        }
    }

    #[test]
    fn bad_tables_say_where() {
        let problem = |toml: &str| Models::empty().with(toml).unwrap_err().to_string();
        assert!(
            problem("\n[[model]]\nnam = 1").starts_with("line 3: unknown field `nam`"),
            "{}",
            problem("\n[[model]]\nnam = 1")
        );
        let row = "[[model]]\nname='a'\nmatch=['a']\nmax_output=10\ntokenizer='o200k'\n";
        assert_eq!(problem(&format!("{row}window=10")), "model \"a\": `window` is under 1,000 tokens");
        assert!(problem(&format!("{row}window='x'")).starts_with("line 6: invalid type"));
        assert!(problem("=").starts_with("line 1:"));
    }
}
