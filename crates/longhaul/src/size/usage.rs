//! What a provider says a call used: [`Usage`]. Four figures that never overlap, so that a
//! prompt is their sum whatever the provider's own habit of counting is.

use serde::{Deserialize, Serialize};

use crate::conversation::json::{Extra, Json};
use crate::size::tokens::Tokens;

/// What one call used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Tokens the model wrote.
    pub output: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
    /// Fields beyond these.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Usage {
    /// The whole prompt: uncached, read and written.
    ///
    /// ```
    /// use longhaul::{Tokens, Usage};
    /// let usage = Usage { input: 3, cache_read: 20_420, cache_write: 13_025, ..Usage::default() };
    /// assert_eq!(usage.prompt(), Tokens(33_448));
    /// ```
    pub fn prompt(&self) -> Tokens {
        Tokens(self.input.saturating_add(self.cache_read).saturating_add(self.cache_write))
    }

    /// The field of [`extra`](Self::extra) for the part of `cache_write` that the cache keeps for an hour.
    pub const WRITTEN_FOR_AN_HOUR: &str = "cache_write_1h";

    /// Sets what [`written_for_an_hour`](Self::written_for_an_hour) gives.
    pub fn set_written_for_an_hour(&mut self, tokens: u64) {
        if tokens > 0 || self.extra.is_set(Self::WRITTEN_FOR_AN_HOUR) {
            self.extra.set(Self::WRITTEN_FOR_AN_HOUR, Json::from(&serde_json::Value::from(tokens)));
        }
    }

    /// The part of `cache_write` that the cache keeps for an hour, which some providers price differently.
    pub fn written_for_an_hour(&self) -> u64 {
        let field = self.extra.get(Self::WRITTEN_FOR_AN_HOUR);
        field.and_then(|tokens| tokens.as_str().parse().ok()).unwrap_or_default()
    }
}

/// What a provider billed for one call: what of the prompt its cache had and kept, and the answer. The rest of the
/// prompt was billed as new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charged {
    /// Prompt tokens read from the cache.
    pub read: Tokens,
    /// Prompt tokens written to the cache.
    pub written: Tokens,
    /// The part of `written` that the cache keeps for an hour. A journal of an older engine does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written_1h: Tokens,
    /// Tokens the model wrote.
    pub output: Tokens,
}

fn is_zero(tokens: &Tokens) -> bool {
    *tokens == Tokens::ZERO
}

impl From<&Usage> for Charged {
    fn from(usage: &Usage) -> Self {
        let (read, written) = (Tokens(usage.cache_read), Tokens(usage.cache_write));
        let written_1h = Tokens(usage.written_for_an_hour());
        Self { read, written, written_1h, output: Tokens(usage.output) }
    }
}

/// What happened to one prompt, in the provider's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// Tokens of the prefix that the cache had.
    pub read: Tokens,
    /// Tokens that it had not.
    pub written: Tokens,
}

impl Billed {
    /// Price in the neutral unit of replay and bench: what is read costs 0.1 of a token,
    /// the rest 1.25. In thousandths of a token, so that sums are exact.
    pub fn cost_milli(self) -> u64 {
        self.read.0.saturating_mul(100).saturating_add(self.written.0.saturating_mul(1250))
    }
}
