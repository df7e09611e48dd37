//! Carrying what a fold would take has cost more than the fold.

use super::{Situation, Start, Trigger};
use crate::edits::edit::Why;
use crate::size::tokens::Tokens;

/// A fold by price takes at least so many tokens …
const LEAST: Tokens = Tokens(8_000);
/// … or this share of the window, in percent, if that is less …
const LEAST_SHARE: u8 = 12;
/// … and saves at least a cent over its life, next to what it has billed again, in millionths of a dollar.
const CENT: u128 = 10_000;

/// A fold pays back.
pub static PAYS_BACK: Trigger = Trigger {
    name: "pays-back",
    says: "carrying what a fold would take has cost more than the fold",
    fires: |now| {
        let dial = now.profile.dial?;
        let pays = dial.pays_back(now.carried, now.rewritten, now.rates);
        (pays && is_worth_it(now) && !now.is_short() && !now.stopped).then_some(Start {
            why: Why::PaysBack,
            target: Tokens::ZERO,
            full: false,
        })
    },
};

/// A fold breaks the prefix and costs a little memory: a small one is not worth that.
fn is_worth_it(now: &Situation<'_>) -> bool {
    is_large_enough(now, now.rewritten) && now.is_affordable(0)
}

/// True if a fold by price takes enough, and saves enough of the model's price after what it has billed again.
pub(super) fn is_large_enough(now: &Situation<'_>, billed_again: Tokens) -> bool {
    let least = LEAST.min(now.budget.window.percent(LEAST_SHARE));
    now.excess >= least && now.price.is_none_or(|_| saves(now, billed_again) >= CENT)
}

/// What a fold saves over its life by the model's price, in millionths of a dollar.
fn saves(now: &Situation<'_>, billed_again: Tokens) -> u128 {
    let cost = |tokens: Tokens, price: u64| u128::from(tokens.0) * u128::from(price);
    let not_read = cost(now.excess, now.rates.reading) * u128::from(now.calls_expected);
    let again = cost(billed_again, now.rates.writing.saturating_sub(now.rates.reading));
    not_read.saturating_sub(again) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::account::{Account, Rates};
    use crate::policy::profile::Profile;
    use crate::size::budget::Budget;
    use crate::size::models::Price;
    use crate::size::usage::Billed;
    use crate::view::cache_returns::CacheReturns;

    fn fires(window: u64, excess: u64, calls_expected: u64, cache_read: Option<u64>) -> bool {
        let profile = Profile::longhaul();
        let price = |cache_read| Price {
            input: cache_read * 10,
            cache_read,
            cache_write: cache_read * 12,
            cache_write_1h: None,
            output: cache_read * 50,
        };
        // Sending everything has cost so much that any fold is a small part of it.
        let mut account = Account::default();
        account.sent(Billed::default(), Tokens(window * 1_000));
        let now = Situation {
            profile: &profile,
            budget: Budget::new(Tokens(window), Tokens(8_000)),
            size: Tokens(window / 2),
            last_prompt: Tokens(window / 2),
            messages: 100,
            calls: 50,
            calls_since_full: 50,
            calls_expected,
            asked: false,
            refused: false,
            cold: false,
            turn_ended: false,
            // Carrying has cost enough: what is tested is the floor.
            carried: Tokens(window * 1_000),
            excess: Tokens(excess),
            rewritten: Tokens(1_000),
            price: cache_read.map(price),
            rates: Rates::of(cache_read.map(price), CacheReturns::default()),
            account,
            stopped: false,
        };
        (PAYS_BACK.fires)(&now).is_some()
    }

    #[test]
    fn a_small_fold_is_not_made_for_its_price() {
        assert!(!fires(200_000, 7_999, 30, None) && fires(200_000, 8_000, 30, None));
        assert!(!fires(1_000_000, 7_999, 30, None) && fires(1_000_000, 8_000, 30, None));
        assert!(!fires(64_000, 7_679, 30, None) && fires(64_000, 7_680, 30, None));
        assert!(!fires(16_000, 1_919, 30, None) && fires(16_000, 1_920, 30, None));
    }

    #[test]
    fn a_fold_saves_a_cent() {
        // 10,000 tokens at 0.1 dollars a million are 0.1 cents a call. 1,000 are billed again at 1.1 dollars more: that is
        // one call more.
        assert!(!fires(200_000, 10_000, 11, Some(100_000)) && fires(200_000, 10_000, 12, Some(100_000)));
        assert!(!fires(200_000, 10_000, 1_000_000, Some(0)));
    }
}
