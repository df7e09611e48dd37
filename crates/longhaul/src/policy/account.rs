//! What a conversation has cost, what it would have cost whole, and what the provider's cache really returned: folds
//! by price go by these, so that none of them makes a conversation much more expensive than sending everything.

use crate::size::models::Price;
use crate::size::tokens::Tokens;
use crate::size::usage::Billed;

/// A fold by price may make the conversation more expensive than sending everything by so much, in percent, if it
/// ended right behind it.
const MOST_LOSS: u128 = 5;

/// What the cache returns is believed after so many reports …
const FEWEST_REPORTS: u32 = 4;
/// … of at least so many tokens that it should have returned.
const FEWEST_TOKENS: Tokens = Tokens(50_000);

/// Sums over all requests of a conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    /// What was sent.
    sent: Billed,
    /// What sending everything would have been.
    whole: Billed,
    /// All that there was to send at the last request.
    last_whole: Tokens,
    /// Reports on requests that extended the one before.
    reports: u32,
    /// What the cache should have returned for them …
    expected: Tokens,
    /// … and what it returned.
    returned: Tokens,
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

    fn of(price: Option<Price>) -> Self {
        price.map_or(Self::USUAL, |price| Self { reading: price.cache_read, writing: price.cache_write })
    }

    /// What a new token costs more than one that is read.
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
    /// A request was sent. `whole` is what the whole conversation would have been, zero if nobody knows.
    pub(crate) fn sent(&mut self, billed: Billed, whole: Tokens) {
        if whole == Tokens::ZERO {
            // The next request that knows was not new as a whole.
            self.last_whole = Tokens(u64::MAX);
            return;
        }
        let read = self.last_whole.min(whole);
        self.sent = Billed { read: self.sent.read + billed.read, written: self.sent.written + billed.written };
        self.whole = Billed { read: self.whole.read + read, written: self.whole.written + (whole - read) };
        self.last_whole = whole;
    }

    /// The provider reported on a request that extended the one before.
    pub(crate) fn reported(&mut self, expected: Tokens, returned: Tokens) {
        self.reports = self.reports.saturating_add(1);
        self.expected += expected;
        self.returned += returned.min(expected);
    }

    /// What tokens of this price really cost: what the cache does not return is billed as new. A provider that never
    /// reports a token from its cache may just not say.
    pub(crate) fn rates(&self, price: Option<Price>) -> Rates {
        let listed = Rates::of(price);
        let is_believed = self.reports >= FEWEST_REPORTS && self.expected >= FEWEST_TOKENS;
        if !is_believed || self.returned == Tokens::ZERO {
            return listed;
        }
        let missed = u128::from((self.expected - self.returned).0);
        let dearer = u128::from(listed.writing.saturating_sub(listed.reading));
        let more = missed * dearer / u128::from(self.expected.0);
        Rates { reading: listed.reading.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)), ..listed }
    }

    /// True if the conversation would not be much more expensive than sending everything, were it to end behind a fold
    /// that has so much billed again.
    pub(crate) fn affords(&self, rewritten: Tokens, rates: Rates) -> bool {
        let fold = u128::from(rewritten.0) * u128::from(rates.writing.saturating_sub(rates.reading));
        (rates.cost(self.sent) + fold) * 100 <= rates.cost(self.whole) * (100 + MOST_LOSS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_waits_until_its_cost_is_a_small_part_of_the_bill() {
        let mut account = Account::default();
        let sent = |read, written| Billed { read: Tokens(read), written: Tokens(written) };
        account.sent(sent(0, 100_000), Tokens(100_000));
        // 100,000 × 1.25 is 125,000; a twentieth of it is 6,250, and a token more costs 1.15.
        assert!(account.affords(Tokens(5_434), Rates::USUAL) && !account.affords(Tokens(5_435), Rates::USUAL));
        for _ in 0..10 {
            account.sent(sent(20_000, 0), Tokens(100_000));
        }
        // What was saved may be spent: 80,000 tokens that were not read, ten times.
        assert!(account.affords(Tokens(70_000), Rates::USUAL) && !account.affords(Tokens(90_000), Rates::USUAL));
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
        let mut account = Account::default();
        let report = |account: &mut Account, times, returned| {
            (0..times).for_each(|_| account.reported(Tokens(100_000), Tokens(returned)));
        };
        report(&mut account, 3, 24_000);
        assert_eq!(account.rates(None), Rates::USUAL, "three reports are few");
        report(&mut account, 1, 24_000);
        // A quarter is returned: 10 + 0.76 × 115.
        assert_eq!(account.rates(None), Rates { reading: 97, writing: 125 });
        let mut whole = Account::default();
        report(&mut whole, 9, 200_000);
        assert_eq!(whole.rates(None), Rates::USUAL);
        let mut silent = Account::default();
        report(&mut silent, 9, 0);
        assert_eq!(silent.rates(None), Rates::USUAL, "it may just not say");
    }
}
