//! What tokens cost: [`Tally`] counts them by what they are billed as, and [`Price::cost`] prices a tally.

use std::ops::AddAssign;

use crate::size::models::Price;
use crate::size::usage::Usage;

/// Tokens, by what they are billed as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Of prompts, neither read from nor written to a cache.
    pub input: u64,
    /// Of prompts, read from the cache.
    pub read: u64,
    /// Of prompts, written to the cache.
    pub written: u64,
    /// The part of `written` that the cache keeps for an hour.
    pub written_1h: u64,
    /// Written by the model.
    pub output: u64,
}

impl Tally {
    /// All tokens of prompts.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.written)
    }
}

impl From<&Usage> for Tally {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input,
            read: usage.cache_read,
            written: usage.cache_write,
            written_1h: usage.written_for_an_hour(),
            output: usage.output,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let sums = [
            (&mut self.input, other.input),
            (&mut self.read, other.read),
            (&mut self.written, other.written),
            (&mut self.written_1h, other.written_1h),
            (&mut self.output, other.output),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// Dollars × 10¹², by kind of token. A price per million tokens is in millionths of a dollar, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Neither read from nor written to a cache.
    pub input: u128,
    /// Read from the cache.
    pub cache_read: u128,
    /// Written to the cache.
    pub cache_write: u128,
    /// Written by the model.
    pub output: u128,
}

impl Cost {
    /// All kinds together, in dollars × 10¹².
    pub fn sum(&self) -> u128 {
        self.input + self.cache_read + self.cache_write + self.output
    }

    /// All kinds together, in dollars.
    pub fn dollars(&self) -> f64 {
        self.sum() as f64 / 1e12
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
    }
}

impl Price {
    /// What tokens cost.
    ///
    /// ```
    /// use longhaul::Models;
    /// use longhaul::size::Tally;
    /// let price = Models::builtin().find("claude-opus-4-5").price.unwrap();
    /// let tally = Tally { read: 1_000_000, written: 2_000_000, written_1h: 1_000_000, ..Tally::default() };
    /// // 0.50, 6.25 and 10 dollars a million.
    /// assert_eq!(price.cost(&tally).dollars(), 16.75);
    /// ```
    pub fn cost(&self, tally: &Tally) -> Cost {
        let times = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let for_an_hour = tally.written_1h.min(tally.written);
        Cost {
            input: times(tally.input, self.input),
            cache_read: times(tally.read, self.cache_read),
            cache_write: times(tally.written - for_an_hour, self.cache_write)
                + times(for_an_hour, self.cache_write_1h.unwrap_or(self.cache_write)),
            output: times(tally.output, self.output),
        }
    }
}
