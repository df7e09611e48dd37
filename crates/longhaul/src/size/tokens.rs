//! How big a thing is: [`Tokens`], and [`Count`], which says how it was found.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A number of tokens. Sums saturate: a size never wraps around to a small one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// None.
    pub const ZERO: Self = Self(0);

    /// This many, times a ratio in millionths, rounded up.
    pub fn scaled(self, ppm: u64) -> Self {
        let product = u128::from(self.0) * u128::from(ppm);
        Self(u64::try_from(product.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// So many hundredths, rounded down.
    pub(crate) fn percent(self, percent: u8) -> Self {
        Self(u64::try_from(u128::from(self.0) * u128::from(percent) / 100).unwrap_or(u64::MAX))
    }

    /// How many more than `before`; negative if fewer.
    pub fn change_since(self, before: Self) -> i64 {
        let change = i128::from(self.0) - i128::from(before.0);
        i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
    }

    /// The difference, or nothing if `other` is larger.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Tokens {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl From<u64> for Tokens {
    fn from(tokens: u64) -> Self {
        Self(tokens)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a count was found, from the most to the least certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CountKind {
    /// The provider said so.
    Reported,
    /// Counted with the model's own vocabulary.
    Exact,
    /// Counted with a vocabulary, corrected by a ratio learnt from this model's usage.
    Calibrated,
    /// Counted with another model's vocabulary, by size, or with a ratio nobody checked.
    Estimated,
}

/// A number of tokens and how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many.
    pub tokens: Tokens,
    /// How it was found.
    pub kind: CountKind,
}

impl Add for Count {
    type Output = Self;
    /// A sum is as certain as its least certain part.
    fn add(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, kind: self.kind.max(other.kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_ratios_round_up() {
        assert_eq!(Tokens(u64::MAX) + Tokens(1), Tokens(u64::MAX));
        assert_eq!(Tokens(3) - Tokens(5), Tokens::ZERO);
        assert_eq!(Tokens(3).change_since(Tokens(5)), -2);
        assert_eq!(Tokens(u64::MAX).change_since(Tokens(0)), i64::MAX);
        assert_eq!(Tokens(3).scaled(1_350_000), Tokens(5));
        assert_eq!(Tokens(u64::MAX).scaled(3_000_000), Tokens(u64::MAX));
    }
}
