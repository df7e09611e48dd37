//! What is known about models: window, vocabulary, prices, cache rules, how they bind their thinking. Data, not code: the
//! table is `models.toml`, and a user's file of the same form adds to it or replaces rows. Which row a name means is
//! decided by globs, and by [version floors](floor) for versions that the table does not have yet.

mod floor;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::size::image::ImageRule;
use crate::size::tokenizer::Vocabulary;
use crate::size::tokens::Tokens;
use floor::Floor;

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
    /// Whether a block of thinking is valid only after the exact prefix that produced it: a request that changed something
    /// before it is refused, or the block is dropped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub binds: bool,
    /// Whether a request can switch thinking off, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_off: Option<ThinkingOff>,
    /// Whether the model takes system messages inside `messages` of Anthropic's API, not only in `system`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub system_messages: bool,
    /// Whether such a system message may have `clear_at`: the model sees it for one turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub clear_at: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// How a request can switch thinking off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingOff {
    /// By `{"type":"disabled"}`.
    Disabled,
    /// By `{"type":"between_tools"}`: the model does not think before it answers, and still does between calls of tools.
    BetweenTools,
    /// It cannot.
    Never,
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
    /// The rows of each file.
    files: Vec<Vec<Row>>,
    unknown: Model,
}

/// A row of the table, and the names that it is for.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    globs: Vec<Box<str>>,
    floors: Vec<Floor>,
    model: Model,
}

/// Why a row fits a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy<'a> {
    /// This glob of `match` fits.
    Glob(&'a str),
    /// The name is of the family of this entry of `since`, and of its version or a newer one.
    Floor(&'a str),
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
            binds: false,
            thinking_off: None,
            system_messages: false,
            clear_at: false,
        };
        Self { files: Vec::new(), unknown }
    }

    /// This table with the rows of another file. A row of the new file that fits a name wins over all rows that were
    /// there before.
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
        self.files.push(file.model.into_iter().map(WrittenRow::check).collect::<Result<_, _>>()?);
        Ok(self)
    }

    /// The model of this name; a careful guess if no row fits: `unknown`.
    pub fn find(&self, name: &str) -> &Model {
        self.resolve(name).map_or(&self.unknown, |(model, _)| model)
    }

    /// The row that fits a name, and why it does. The newest file that has such a row decides: by the row with the
    /// longest glob that fits (the later one of two), else by the highest version floor of the name's family.
    ///
    /// ```
    /// use longhaul::Models;
    /// use longhaul::size::MatchedBy;
    /// let (model, by) = Models::builtin().resolve("anthropic.claude-opus-5-9-20270101-v1:0").unwrap();
    /// assert_eq!((&*model.name, by), ("claude-opus-5-5", MatchedBy::Floor("claude-opus 5.5")));
    /// ```
    pub fn resolve(&self, name: &str) -> Option<(&Model, MatchedBy<'_>)> {
        let name = name.to_lowercase();
        let name = name.rsplit('/').next().unwrap_or_default();
        self.files.iter().rev().find_map(|rows| by_glob(rows, name).or_else(|| by_floor(rows, name)))
    }

    /// All rows, in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.files.iter().flatten().map(|row| &row.model)
    }
}

fn by_glob<'a>(rows: &'a [Row], name: &str) -> Option<(&'a Model, MatchedBy<'a>)> {
    let globs = rows.iter().flat_map(|row| row.globs.iter().map(move |glob| (row, glob)));
    let fits = globs.filter(|(_, glob)| glob_fits(glob, name));
    fits.max_by_key(|(_, glob)| glob.len()).map(|(row, glob)| (&row.model, MatchedBy::Glob(glob)))
}

fn by_floor<'a>(rows: &'a [Row], name: &str) -> Option<(&'a Model, MatchedBy<'a>)> {
    let floors = rows.iter().flat_map(|row| row.floors.iter().map(move |floor| (row, floor)));
    let fits = floors.filter_map(|(row, floor)| Some((floor.fit(name)?, row, floor)));
    let closest = fits.max_by(|(a, ..), (b, ..)| a.cmp(b));
    closest.map(|(_, row, floor)| (&row.model, MatchedBy::Floor(&floor.text)))
}

impl Model {
    /// Whether its thinking is signed. A later model may bind what this one signed to what stood before it.
    pub(crate) fn signs(&self) -> bool {
        self.binds || provider(&self.name) == ANTHROPIC
    }

    /// Whether it is the careful guess for a model that no row fits.
    pub fn is_unknown(&self) -> bool {
        &*self.name == UNKNOWN
    }
}

/// The provider that signs thinking.
const ANTHROPIC: &str = "anthropic";

/// Whose model it is, as far as its name says so.
pub(crate) fn provider(model: &str) -> &str {
    /// Names of models of one provider begin alike.
    const FAMILIES: [(&str, &[&str]); 2] =
        [(ANTHROPIC, &["claude"]), ("openai", &["gpt", "chatgpt", "codex", "o1", "o3", "o4"])];
    let family = FAMILIES.iter().find(|(_, starts)| starts.iter().any(|start| model.starts_with(start)));
    family.map_or(model, |(provider, _)| provider)
}

/// The name of the row for models that no other fits.
pub(crate) const UNKNOWN: &str = "unknown";

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
    model: Vec<WrittenRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    name: Box<str>,
    #[serde(default)]
    r#match: Vec<Box<str>>,
    #[serde(default)]
    since: Vec<Box<str>>,
    window: u64,
    max_output: u64,
    tokenizer: Vocabulary,
    ratio_ppm: Option<u64>,
    #[serde(default)]
    image: ImageRule,
    price: Option<WrittenPrice>,
    #[serde(default)]
    cache: CacheRule,
    counts_answer: Option<bool>,
    #[serde(default)]
    binds: bool,
    thinking_off: Option<ThinkingOff>,
    #[serde(default)]
    system_messages: bool,
    #[serde(default)]
    clear_at: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPrice {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write_5m: Option<f64>,
    cache_write_1h: Option<f64>,
}

/// Ratios outside of this are a mistake, not a vocabulary.
pub(crate) const RATIO_PPM: std::ops::RangeInclusive<u64> = 700_000..=3_000_000;

impl WrittenRow {
    fn check(self) -> Result<Row, ModelsError> {
        let ratio_ppm = self.ratio_ppm.unwrap_or(1_000_000);
        let prices = self
            .price
            .iter()
            .flat_map(|p| [Some(p.input), Some(p.output), p.cache_read, p.cache_write_5m, p.cache_write_1h]);
        let floors: Option<Vec<Floor>> =
            self.since.iter().map(|floor| Floor::parse(&floor.to_lowercase())).collect();
        let problem = if self.r#match.is_empty() && self.since.is_empty() {
            Some("neither `match` nor `since` names a model")
        } else if floors.is_none() {
            Some("`since` is not a family and its lowest version, such as \"claude-opus 5.5\"")
        } else if self.window < 1000 {
            Some("`window` is under 1,000 tokens")
        } else if self.max_output == 0 {
            Some("`max_output` is 0")
        } else if !RATIO_PPM.contains(&ratio_ppm) {
            Some("`ratio_ppm` is not between 700,000 and 3,000,000")
        } else if prices.flatten().any(|p| !(0.0..=1e6).contains(&p)) {
            Some("a price is not between 0 and 1,000,000 dollars")
        } else {
            None
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
            price: self.price.map(WrittenPrice::in_micros),
            cache: self.cache,
            counts_answer: self.counts_answer,
            binds: self.binds,
            thinking_off: self.thinking_off,
            system_messages: self.system_messages,
            clear_at: self.clear_at,
        };
        let globs = self.r#match.into_iter().map(|glob| glob.to_lowercase().into()).collect();
        Ok(Row { globs, floors: floors.unwrap_or_default(), model })
    }
}

impl WrittenPrice {
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
        // Any row of a later file that fits, also one with a shorter glob or against a version floor.
        assert_eq!(&*models.find("m-1-mini").name, "mine");
        let models = Models::builtin().clone().with(&row("mine", "*.claude-*", 30_000)).unwrap();
        assert_eq!(&*models.find("us.anthropic.claude-opus-5-5").name, "mine");
        assert_eq!(&*models.find("claude-opus-5-5").name, "claude-opus-5-5");
    }

    #[test]
    fn a_users_floor_and_globs_for_exceptions() {
        let row = |name: &str, names: &str| {
            format!("[[model]]\nname='{name}'\n{names}\nwindow=9000\nmax_output=1000\ntokenizer='o200k'\n")
        };
        let models = Models::builtin().clone().with(
            &(row("old", "since=['House 1']")
                + &row("new", "since=['house 2.5']")
                + &row("mini", "match=['house-*-mini']")),
        );
        let models = models.unwrap();
        for (name, expected) in [
            ("House-2", "old"),
            ("vendor/house-2.5-20270101", "new"),
            ("house-9", "new"),
            ("house-9-mini", "mini"),
            ("house-0.9", "unknown"),
            ("gpt-4o", "gpt-4o"),
        ] {
            assert_eq!(&*models.find(name).name, expected, "{name}");
        }
        assert_eq!(models.resolve("house-3").unwrap().1, MatchedBy::Floor("house 2.5"));
        assert_eq!(models.resolve("house-3-mini").unwrap().1, MatchedBy::Glob("house-*-mini"));
        assert_eq!(models.resolve("house-0.9"), None);
    }

    #[test]
    fn names_of_clouds_and_routers_mean_the_same_rows() {
        // Each row, and all names of it.
        let table = [
            (
                "claude-fable-5-2",
                "claude-fable-5-2 claude-fable-5-2-latest claude-mythos-5.2 claude-fable-5-3 claude-fable-6 anthropic/claude-fable-latest",
            ),
            (
                "claude-fable-5-1",
                "claude-fable-5-1 claude-fable-5.1 anthropic.claude-mythos-5-1-20260801-v1:0",
            ),
            (
                "claude-fable-5",
                "claude-fable-5 claude-fable-5-20260609 claude-mythos-5 claude-mythos-preview",
            ),
            (
                "claude-opus-5-5",
                "claude-opus-5-5 us.anthropic.claude-opus-5-5-20260801-v1:0 global.anthropic.claude-opus-5-5 \
                 anthropic/claude-opus-5.5 claude-opus-5-5@20260801 claude-opus-5-5[1m] CLAUDE-OPUS-5-5 \
                 arn:aws:bedrock:us-east-1:123:inference-profile/us.anthropic.claude-opus-5-5-20260801-v1:0 \
                 arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-5-5-v1 claude-opus-5-6 claude-opus-6 \
                 claude-opus-6-20280101 claude-opus-5-10 databricks-claude-opus-5-5 claude-opus-latest anthropic:claude-opus-5-5",
            ),
            (
                "claude-opus-5",
                "claude-opus-5 claude-opus-5-20260801 claude-opus-5@20260801 claude-opus-5-1 us.anthropic.claude-opus-5-v1:0",
            ),
            ("claude-opus-4-8", "claude-opus-4-8 claude-opus-4.9"),
            ("claude-opus-4-7", "claude-opus-4-7 openrouter/anthropic/claude-opus-4.7"),
            ("claude-opus-4-6", "claude-opus-4-6[1m]"),
            ("claude-opus-4-5", "claude-opus-4-5-20251101"),
            (
                "claude-opus-4",
                "claude-opus-4-20250514 claude-opus-4-1-20250805 claude-opus-4.1 claude-opus-41 claude-4-opus-20250514",
            ),
            (
                "claude-sonnet-5-5",
                "claude-sonnet-5-5[1m] vertex_ai/claude-sonnet-5-5@20260928 eu.anthropic.claude-sonnet-5-5 claude-sonnet-7",
            ),
            ("claude-sonnet-5", "claude-sonnet-5 claude-sonnet-5-1m claude-sonnet-5-3"),
            ("claude-sonnet-4-6", "claude-sonnet-4-6"),
            (
                "claude-sonnet-4",
                "claude-sonnet-4-5 us.anthropic.claude-sonnet-4-5-20250929-v1:0 claude-sonnet-4@20250514 claude-4.5-sonnet",
            ),
            ("claude-haiku-5-5", "openrouter/anthropic/claude-haiku-5.5:thinking claude-haiku-7-20270101"),
            ("claude-haiku-4-5", "claude-haiku-4-5-20251001 claude-haiku-4.5"),
            (
                "claude-next",
                "claude-saga-6 us.anthropic.claude-saga-6-1-20270101-v1:0 claude-saga-mini-5 claude-5.5-opus",
            ),
            (
                "claude-3-5-sonnet",
                "claude-3-5-sonnet-20241022 vertex_ai/claude-3-5-sonnet-v2@20241022 anthropic.claude-3-5-sonnet-20241022-v2:0",
            ),
            ("claude-3-7-sonnet", "claude-3.7-sonnet claude-sonnet-3-7"),
            ("claude-3-5-haiku", "anthropic/claude-3.5-haiku"),
            (
                "claude",
                "claude-3-opus claude-3-opus-20240229 anthropic.claude-v2:1 anthropic.claude-3-haiku-20240307-v1:0 claude-2.1 claude-instant-1.2 \
                 claude-4.5-opus claude-haiku-3",
            ),
            ("qwen3", "qwen3-8b-claude-sonnet-4.5-distill"),
            ("unknown", "gemma-4-27b-claude-opus-4.6-distill nobody-knows-it"),
            ("gpt-6.1-sol", "openai/gpt-6.1-sol"),
            ("gpt-6-rosalind", "gpt-6-rosalind"),
            ("gpt-5.6-cyber", "gpt-5.6-cyber gpt-6-cyber"),
            ("gpt-5.2-pro", "gpt-5.2-pro-2025-12-11"),
            ("gpt-5-pro", "gpt-5-pro"),
            ("gemini-4-argon", "models/gemini-4-argon"),
            ("gemini-3-flash", "gemini-3-flash-preview"),
            ("gemini-3-flash-lite", "gemini-3-flash-lite"),
            ("gemini-3.5-flash", "gemini-3.5-flash"),
            ("kimi-k3.1-pro", "moonshotai/kimi-k3.1-pro"),
            ("kimi-k3", "kimi-k3"),
            ("qwen3.8-max", "qwen3.8-max"),
            ("qwen3.8-flash", "qwen3.8-flash"),
            ("qwen3.7-max", "qwen3.7-max"),
            ("qwen3.7-plus", "qwen3.7-plus"),
            ("qwen3-coder-plus", "qwen3-coder-plus"),
            ("qwen3-coder", "qwen3-coder-480b-a35b-instruct"),
            ("glm-5.1", "z-ai/glm-5.1"),
            ("glm-5", "glm-5"),
        ];
        for (row, names) in table {
            for name in names.split_whitespace() {
                assert_eq!(&*Models::builtin().find(name).name, row, "{name}");
            }
        }
    }

    #[test]
    fn thinking_is_bound_from_a_version_on() {
        let binds = |name: &str| Models::builtin().find(name).binds;
        let bound = "claude-fable-5-1 claude-fable-5-2 claude-mythos-5-1 claude-opus-5-5 claude-opus-5-6 claude-opus-6 \
                     claude-sonnet-5-5 claude-haiku-5-5 claude-haiku-7-20270101 claude-saga-6";
        let free = "claude-fable-5 claude-mythos-5 claude-opus-5 claude-opus-5-20260801 claude-opus-5-1 claude-opus-4-8 \
                    claude-sonnet-5 claude-haiku-4-5 claude-3-opus claude-2.1 gpt-6.1-sol gemini-4-argon deepseek-flash nobody";
        assert_eq!(bound.split_whitespace().find(|name| !binds(name)), None);
        assert_eq!(free.split_whitespace().find(|name| binds(name)), None);
        for model in Models::builtin().iter() {
            assert!(
                model.name.starts_with("claude") || !model.binds && model.thinking_off.is_none(),
                "{}",
                model.name
            );
            assert!(!model.clear_at || model.system_messages, "{}", model.name);
        }
    }

    #[test]
    fn what_a_request_to_claude_may_say() {
        use ThinkingOff::{BetweenTools, Disabled, Never};
        for (name, off, system_messages) in [
            ("claude-fable-5-2", Some(Never), true),
            ("claude-fable-5", Some(Never), true),
            ("claude-opus-5-5", Some(Never), true),
            ("claude-opus-5", Some(Disabled), true),
            ("claude-opus-4-8", Some(Disabled), true),
            ("claude-opus-4-7", Some(Disabled), false),
            ("claude-sonnet-5-5", Some(BetweenTools), true),
            ("claude-sonnet-5", Some(Disabled), false),
            ("claude-haiku-5-5", Some(Disabled), true),
            ("claude-3-5-sonnet", None, false),
            ("gpt-5.5", None, false),
        ] {
            let model = Models::builtin().find(name);
            let said = (model.thinking_off, model.system_messages, model.clear_at);
            assert_eq!(said, (off, system_messages, system_messages), "{name}");
        }
    }

    #[test]
    fn a_model_of_an_older_journal_is_read_and_written_as_it_was() {
        let text = r#"{"name":"m","window":200000,"max_output":64000,"vocabulary":"o200k","ratio_ppm":1350000,"image":"claude","price":null,"cache":{"kind":"marked","min_tokens":1024,"lifetime_s":300,"marks":4,"granularity":1}}"#;
        let model: Model = serde_json::from_str(text).unwrap();
        assert_eq!((model.binds, model.thinking_off, model.clear_at), (false, None, false));
        assert_eq!(serde_json::to_string(&model).unwrap(), text);
        let bound = Models::builtin().find("claude-sonnet-5-5");
        let written = serde_json::to_string(bound).unwrap();
        let ending = r#""counts_answer":false,"binds":true,"thinking_off":"between_tools","system_messages":true,"clear_at":true}"#;
        assert!(written.ends_with(ending), "{written}");
        assert_eq!(&serde_json::from_str::<Model>(&written).unwrap(), bound);
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
        let nameless = row.replace("match=['a']", "window=9000");
        assert_eq!(problem(&nameless), "model \"a\": neither `match` nor `since` names a model");
        let row = row.replace("match=['a']", "since=['a']\nwindow=9000");
        assert!(
            problem(&row).contains("`since` is not a family and its lowest version"),
            "{}",
            problem(&row)
        );
        assert!(problem("=").starts_with("line 1:"));
    }
}
