//! What calls cost: as the provider billed them, or as the engine expected it.

use longhaul::Tokens;
use longhaul::session::journal::SentRequest;
use longhaul::size::{CacheKind, Charged, Model, Price, Tally};
use serde::Serialize;

/// The tokens of one call, by what they are billed as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bill {
    /// Read from the provider's cache.
    pub read: u64,
    /// Written to it.
    pub written: u64,
    /// The part of `written` that the cache keeps for an hour.
    #[serde(skip)]
    pub written_1h: u64,
    /// Neither read nor written.
    pub fresh: u64,
    /// What the model wrote.
    pub output: u64,
}

impl Bill {
    /// As the engine expected it when the request was sent. What the prompt has beyond the messages that were counted
    /// stands before them (a system prompt that a recorded file does not hold), and is read where anything is.
    pub(crate) fn expected(sent: &SentRequest, model: &Model) -> Self {
        let is_warm = !sent.cold && sent.billed.read > Tokens::ZERO;
        let read = if is_warm { sent.prompt - sent.billed.written } else { Tokens::ZERO };
        Self::of_prompt(sent.prompt, read, model)
    }

    /// A prompt of which the cache has `read`.
    pub(crate) fn of_prompt(prompt: Tokens, read: Tokens, model: &Model) -> Self {
        let (read, rest) = (read.0, (prompt - read).0);
        match model.cache.kind {
            CacheKind::Marked => Self { read, written: rest, ..Self::default() },
            CacheKind::Automatic => Self { read, fresh: rest, ..Self::default() },
            CacheKind::None => Self { fresh: prompt.0, ..Self::default() },
        }
    }

    /// As the provider billed it.
    pub(crate) fn charged(prompt: Tokens, charged: Charged) -> Self {
        let (read, written) = (charged.read.0, charged.written.0);
        Self {
            read,
            written,
            written_1h: charged.written_1h.0,
            fresh: prompt.0.saturating_sub(read.saturating_add(written)),
            output: charged.output.0,
        }
    }

    /// In dollars.
    pub(crate) fn usd(&self, price: &Price) -> f64 {
        let Self { read, written, fresh, written_1h, output } = *self;
        price.cost(&Tally { input: fresh, read, written, written_1h, output }).dollars()
    }
}

impl std::ops::AddAssign for Bill {
    fn add_assign(&mut self, other: Self) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.written_1h = self.written_1h.saturating_add(other.written_1h);
        self.fresh = self.fresh.saturating_add(other.fresh);
        self.output = self.output.saturating_add(other.output);
    }
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prices {
    /// Read from the cache.
    pub read: f64,
    /// Written to it.
    pub write: f64,
    /// Neither.
    pub input: f64,
    /// What the model writes.
    pub output: f64,
}

impl From<&Price> for Prices {
    fn from(price: &Price) -> Self {
        let dollars = |millionths: u64| millionths as f64 / 1e6;
        Self {
            read: dollars(price.cache_read),
            write: dollars(price.cache_write),
            input: dollars(price.input),
            output: dollars(price.output),
        }
    }
}
