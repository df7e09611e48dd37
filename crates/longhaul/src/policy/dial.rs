//! The dial: how many recalls one avoided miss may cost. Which lines of the past are kept, how much of a long
//! output enters and when a fold pays back follow from this one figure and the model's prices.

use crate::policy::account::Rates;
use crate::size::tokens::Tokens;

/// How much a kept line may cost: an avoided miss is worth so many recalls. A recall is one more call, about
/// 5,000 token-prices.
///
/// ```
/// use longhaul::{Dial, Profile};
/// assert_eq!(Profile::longhaul().dial, Some(Dial::DEFAULT));
/// assert!(Dial::THRIFTY < Dial::DEFAULT && Dial::DEFAULT < Dial::SAFE);
/// assert_eq!("safe".parse(), Ok(Dial::SAFE));
/// assert_eq!("20".parse(), Ok(Dial::new(20)));
/// assert!("much".parse::<Dial>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dial {
    recalls: u32,
}

/// A dial that is neither a name nor a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}, not thrifty, default, safe or how many recalls an avoided miss may cost, from 1 to 100")]
pub struct DialError(Box<str>);

impl Dial {
    /// The smallest bill.
    pub const THRIFTY: Self = Self::new(3);
    /// Half the bill, and nearly all that is needed.
    pub const DEFAULT: Self = Self::new(6);
    /// What is needed stays, as far as it can be foreseen.
    pub const SAFE: Self = Self::new(10);
    /// The names.
    pub const NAMES: [(&str, Self); 3] =
        [("thrifty", Self::THRIFTY), ("default", Self::DEFAULT), ("safe", Self::SAFE)];

    /// So many recalls, 1 to 100.
    pub const fn new(recalls: u32) -> Self {
        let recalls = if recalls < 1 { 1 } else { recalls };
        Self { recalls: if recalls > 100 { 100 } else { recalls } }
    }

    /// How many recalls an avoided miss may cost.
    pub fn recalls(self) -> u32 {
        self.recalls
    }

    /// The chance of a need that pays for a kept byte. A byte that is carried for as long as a fold lives,
    /// against what a miss may cost.
    pub(crate) fn byte(self) -> f32 {
        320e-6 / self.recalls as f32
    }

    /// How much the chance counts that a line is edited, beside the chance that its names are needed: who
    /// edits looks at the file first.
    pub(crate) fn text(self) -> f32 {
        (self.recalls as f32 * 0.03).min(0.15)
    }

    /// What a command printed or a search found enters as its best half where it has more bytes than this.
    /// Only a thrifty dial cuts what the model has not seen yet.
    pub(crate) fn long_output(self) -> Option<usize> {
        (self < Self::DEFAULT).then_some(16_000)
    }

    /// A fold waits until carrying has cost so much of what the fold costs, in percent. By price alone it
    /// would be 100; what is not folded is not missed, and each fold breaks the prefix. Where reading is cheaper
    /// than usual, so many calls are waited for anyway that less patience is enough.
    fn patience(self, rates: Rates) -> u64 {
        let usual = u64::from((self.recalls * 25 + 300).min(650));
        let of_usual = |rate: u64| u128::from(rate) * u128::from(Rates::USUAL.more());
        let (reading, more) =
            (of_usual(rates.reading), u128::from(rates.more()) * u128::from(Rates::USUAL.reading));
        let cheaper = (u128::from(usual) * reading).checked_div(more).unwrap_or(u128::from(usual));
        u64::try_from(cheaper).unwrap_or(u64::MAX).clamp(100, usual)
    }

    /// If the conversation ended right after a fold by price, it may have cost so much more than sending everything, in
    /// thousandths. A small bill needs earlier folds, and each of them is a risk.
    pub(crate) fn most_loss(self) -> u64 {
        u64::from(270 / self.recalls).max(45)
    }

    /// Carrying tokens has cost so much that a fold pays back: the sum over calls of tokens that a fold would
    /// have taken, against what the provider bills again after it.
    pub(crate) fn pays_back(self, carried: Tokens, rewritten: Tokens, rates: Rates) -> bool {
        costs_more(carried, rewritten, rates, self.patience(rates))
    }

    /// The same for dead lines of earlier folds, against writing their live lines again behind a fold that is
    /// made anyway.
    pub(crate) fn merge_pays_back(carried: Tokens, live: Tokens, rates: Rates) -> bool {
        costs_more(carried, live, rates, 100)
    }
}

/// True if reading these tokens from the cache costs more than so many percent of writing those again.
fn costs_more(read: Tokens, written: Tokens, rates: Rates, percent: u64) -> bool {
    let reading = u128::from(read.0) * u128::from(rates.reading) * 100;
    reading > u128::from(written.0) * u128::from(rates.more()) * u128::from(percent)
}

impl std::str::FromStr for Dial {
    type Err = DialError;

    fn from_str(text: &str) -> Result<Self, DialError> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, dial)| *dial);
        let number = || text.parse().ok().filter(|recalls| (1..=100).contains(recalls)).map(Self::new);
        named.or_else(number).ok_or_else(|| DialError(text.into()))
    }
}

impl std::fmt::Display for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Self::NAMES.iter().find(|(_, dial)| dial == self) {
            Some((name, _)) => f.write_str(name),
            None => self.recalls.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_pays_back_by_the_models_prices() {
        let (written, read) = (Tokens(10_000), |tokens| Tokens(tokens));
        // 1.15 × 10,000 × 4.5 at a tenth of the price: 517,500 tokens carried.
        assert!(!Dial::DEFAULT.pays_back(read(517_500), written, Rates::USUAL));
        assert!(Dial::DEFAULT.pays_back(read(517_501), written, Rates::USUAL));
        let half = Rates { reading: 50, writing: 100 };
        assert!(!Dial::DEFAULT.pays_back(read(45_000), written, half));
        assert!(Dial::DEFAULT.pays_back(read(45_001), written, half));
        // Without a cache a fold is not free either.
        let none = Rates { reading: 100, writing: 100 };
        assert!(!Dial::DEFAULT.pays_back(read(5_000), written, none));
        assert!(Dial::merge_pays_back(read(115_001), written, Rates::USUAL));
    }

    #[test]
    fn less_patience_where_reading_is_cheap_and_never_less_than_the_price() {
        let at = |reading| Dial::DEFAULT.patience(Rates { reading, writing: 1_250 });
        assert_eq!((at(200), at(100), at(50), at(25), at(1), at(0)), (450, 450, 215, 105, 100, 100));
    }
}
