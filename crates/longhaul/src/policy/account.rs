//! What a conversation has cost, and what it would have cost whole: no fold by price may make it much more expensive
//! than sending everything.

use crate::size::models::Price;
use crate::size::tokens::Tokens;
use crate::size::usage::Billed;
use crate::summary::SummaryPaid;
use crate::view::cache_returns::CacheReturns;

/// Sums over all requests of a conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    /// What was sent.
    sent: Billed,
    /// What sending everything would have been.
    whole: Billed,
    /// All that there was to send at the last request.
    last_whole: Tokens,
}

/// What a token costs that is read from the cache, and one that is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) reading: u64,
    pub(crate) writing: u64,
}

impl Rates {
    /// What most providers take.
    pub(crate) const USUAL: Self = Self { reading: 10, writing: 125 };

    /// What tokens really cost: those that the cache does not return are billed as new.
    pub(crate) fn of(price: Option<Price>, returns: CacheReturns) -> Self {
        let listed =
            price.map_or(Self::USUAL, |price| Self { reading: price.cache_read, writing: price.cache_write });
        let missed = returns.missed(listed.writing.saturating_sub(listed.reading));
        Self { reading: listed.reading.saturating_add(missed), ..listed }
    }

    /// True if reading is cheaper, next to writing, than most providers take.
    pub(crate) fn is_cheap_to_read(self) -> bool {
        u128::from(self.reading) * u128::from(Self::USUAL.writing)
            < u128::from(self.writing) * u128::from(Self::USUAL.reading)
    }

    /// How much more a new token costs than one that is read.
    pub(crate) fn more(self) -> u64 {
        // Where nothing is cheaper from the cache, a fold still costs memory.
        self.writing.saturating_sub(self.reading).max(self.writing / 8)
    }

    fn cost(self, billed: Billed) -> u128 {
        let cost = |tokens: Tokens, rate: u64| u128::from(tokens.0) * u128::from(rate);
        cost(billed.read, self.reading) + cost(billed.written, self.writing)
    }
}

impl Account {
    /// A request was sent. `whole` is what the whole conversation would have been, zero if it is not known.
    pub(crate) fn sent(&mut self, billed: Billed, whole: Tokens) {
        if whole == Tokens::ZERO {
            // The next request that knows was not new as a whole.
            self.last_whole = Tokens(u64::MAX);
            return;
        }
        let read = self.last_whole.min(whole);
        self.sent =
            Billed { read: self.sent.read + billed.read, written: self.sent.written + billed.written };
        self.whole = Billed { read: self.whole.read + read, written: self.whole.written + (whole - read) };
        self.last_whole = whole;
    }

    /// A model has written a summary, of use or not: sending everything needs none.
    pub(crate) fn summary_paid(&mut self, paid: SummaryPaid) {
        /// A token of an answer costs about as much as so many new tokens of a prompt.
        const ANSWER: u64 = 4;
        let written = paid.prompt.written + Tokens(paid.output.0.saturating_mul(ANSWER));
        self.sent = Billed { read: self.sent.read + paid.prompt.read, written: self.sent.written + written };
    }

    /// How many tokens may be billed again now, so that the conversation would not be much more expensive than sending
    /// everything (by this loss, in thousandths) if it ended after reading so many tokens less.
    pub(crate) fn allowance(&self, most_loss: u64, not_read: Tokens, rates: Rates) -> Tokens {
        let saved = u128::from(not_read.0) * u128::from(rates.reading);
        let may_cost = rates.cost(self.whole) * (1_000 + u128::from(most_loss)) / 1_000 + saved;
        let more = u128::from(rates.writing.saturating_sub(rates.reading)).max(1);
        let tokens = may_cost.saturating_sub(rates.cost(self.sent)) / more;
        Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::models::CacheRule;

    #[test]
    fn a_fold_waits_until_its_cost_is_a_small_part_of_the_bill() {
        let mut account = Account::default();
        let sent = |read, written| Billed { read: Tokens(read), written: Tokens(written) };
        account.sent(sent(0, 100_000), Tokens(100_000));
        // 100,000 × 1.25 is 125,000; 4.5 % of it are 5,625, and a token more costs 1.15.
        assert_eq!(account.allowance(45, Tokens::ZERO, Rates::USUAL), Tokens(4_891));
        assert_eq!(account.allowance(45, Tokens(10_000), Rates::USUAL), Tokens(5_760));
        for _ in 0..10 {
            account.sent(sent(20_000, 0), Tokens(100_000));
        }
        // What was saved may be spent: 80,000 tokens that were not read, ten times.
        assert_eq!(account.allowance(45, Tokens::ZERO, Rates::USUAL), Tokens(78_369));
    }

    #[test]
    fn a_summary_that_a_model_wrote_is_a_part_of_the_bill() {
        let mut account = Account::default();
        let sent = |read, written| Billed { read: Tokens(read), written: Tokens(written) };
        account.sent(sent(0, 100_000), Tokens(100_000));
        (0..10).for_each(|_| account.sent(sent(20_000, 0), Tokens(100_000)));
        let before = account.allowance(45, Tokens::ZERO, Rates::USUAL);
        account.summary_paid(SummaryPaid { calls: 1, prompt: sent(23_000, 1_000), output: Tokens(2_000) });
        // 23,000 × 0.1 and 9,000 × 1.25 are 13,550, and a token more costs 1.15.
        assert_eq!(before - account.allowance(45, Tokens::ZERO, Rates::USUAL), Tokens(11_783));
    }

    #[test]
    fn requests_of_an_older_journal_count_neither_way() {
        let mut account = Account::default();
        account.sent(Billed { read: Tokens(0), written: Tokens(50_000) }, Tokens::ZERO);
        account.sent(Billed { read: Tokens(50_000), written: Tokens(0) }, Tokens(80_000));
        assert_eq!(account.whole, Billed { read: Tokens(80_000), written: Tokens::ZERO });
        assert_eq!(account.sent, Billed { read: Tokens(50_000), written: Tokens::ZERO });
    }

    #[test]
    fn what_the_cache_does_not_return_costs_as_much_as_what_is_new() {
        let mut returns = CacheReturns::default();
        (0..4).for_each(|_| returns.reported(Tokens(100_000), Tokens(24_000), None, &CacheRule::default()));
        // A quarter is returned: 10 + 0.76 × 115.
        assert_eq!(Rates::of(None, returns), Rates { reading: 97, writing: 125 });
        assert_eq!(Rates::of(None, CacheReturns::default()), Rates::USUAL);
    }
}
