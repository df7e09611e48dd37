//! The dial: what one avoided miss may cost. All that a profile keeps of the past, and when it folds, follows
//! from this one figure and the model's prices.

use crate::size::models::Price;
use crate::size::tokens::Tokens;

/// What keeping may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dial {
    /// The chance of a need that pays for a kept byte, in billionths.
    pub byte: u32,
    /// How much the chance counts that a line is edited, in percent of the chance that a name is needed.
    pub text: u32,
    /// A fold waits until carrying has cost so much of what the fold costs, in percent.
    pub patience: u32,
}

impl Dial {
    /// The smallest bill: a miss that costs three recalls is worth avoiding.
    pub const THRIFTY: Self = Self { byte: 100_000, text: 50, patience: 200 };
    /// Half the bill, and nearly all that is needed.
    pub const DEFAULT: Self = Self { byte: 50_000, text: 100, patience: 250 };
    /// What is needed stays, if it can be foreseen at all.
    pub const SAFE: Self = Self { byte: 30_000, text: 100, patience: 300 };

    /// Carrying tokens has cost so much that a fold pays back: the sum over calls of tokens that a fold would
    /// have taken, against what the provider bills again after it.
    pub(crate) fn pays_back(self, carried: Tokens, rewritten: Tokens, price: Option<Price>) -> bool {
        self.is_more(carried, rewritten, price, self.patience)
    }

    /// The same for dead lines of earlier folds, against writing their live lines again behind a fold that is
    /// made anyway.
    pub(crate) fn merge_pays_back(self, carried: Tokens, live: Tokens, price: Option<Price>) -> bool {
        self.is_more(carried, live, price, 100)
    }

    fn is_more(self, carried: Tokens, rewritten: Tokens, price: Option<Price>, percent: u32) -> bool {
        // Of a model without a price: what most providers take.
        let (read, write) = price.map_or((10, 125), |price| (price.cache_read, price.cache_write));
        // Where nothing is cheaper from the cache, a fold still costs memory.
        let more = write.saturating_sub(read).max(write / 8);
        let carrying = u128::from(carried.0) * u128::from(read) * 100;
        let folding = u128::from(rewritten.0) * u128::from(more) * u128::from(percent);
        carrying > folding
    }
}
