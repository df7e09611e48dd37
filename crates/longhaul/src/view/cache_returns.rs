//! What the provider's cache really returns in this conversation, learnt from usage: the share of an expected prefix, and
//! the pauses that it survives. Providers differ from their documentation, and routers from their providers.

use crate::size::models::CacheRule;
use crate::size::tokens::Tokens;

/// The share is believed after so many reports …
const FEWEST_REPORTS: u32 = 4;
/// … on at least so many tokens that the cache should have returned.
const FEWEST_TOKENS: Tokens = Tokens(50_000);
/// A shorter pause tells nothing about how long a prefix lives, in seconds.
const SHORTEST_PAUSE: u64 = 60;
/// A smaller prefix tells nothing either: part of it may be cached for others.
const SMALLEST_PREFIX: Tokens = Tokens(4_000);

/// Reports on requests that extended the one before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CacheReturns {
    reports: u32,
    /// What the cache should have returned for them …
    expected: Tokens,
    /// … and what it returned.
    returned: Tokens,
    /// The longest pause that a prefix survived, in seconds.
    survived: Option<u64>,
    /// The shortest pause after which a prefix was gone.
    lost: Option<u64>,
}

impl CacheReturns {
    /// The provider reported on a request that extended the one before. `pause` is the time between both, in seconds.
    pub(crate) fn reported(
        &mut self,
        expected: Tokens,
        returned: Tokens,
        pause: Option<u64>,
        rule: &CacheRule,
    ) {
        let returned = returned.min(expected);
        let tells = |pause: &u64| *pause >= SHORTEST_PAUSE && expected >= SMALLEST_PREFIX;
        if let Some(pause) = pause.filter(tells) {
            // The newest report counts: it replaces what contradicts it.
            if returned.0 >= expected.0 / 2 {
                self.survived = self.survived.max(Some(pause));
                self.lost = self.lost.filter(|lost| *lost > pause);
            } else if self.returned > Tokens::ZERO {
                self.lost = Some(self.lost.map_or(pause, |lost| lost.min(pause)));
                self.survived = self.survived.filter(|survived| *survived < pause);
                return;
            }
        }
        if pause.is_some_and(|pause| pause > rule.lifetime_s) {
            return;
        }
        self.reports = self.reports.saturating_add(1);
        self.expected += expected;
        self.returned += returned;
    }

    /// How the provider caches, with the lifetime that prefixes really had.
    pub(crate) fn corrected(&self, rule: CacheRule) -> CacheRule {
        let lost = self.lost.map_or(u64::MAX, |lost| lost.saturating_sub(1));
        let lifetime_s = rule.lifetime_s.max(self.survived.unwrap_or(0)).min(lost);
        CacheRule { lifetime_s, ..rule }
    }

    /// Tokens of a prefix that the cache is expected to return, and those that are billed as new although they were sent
    /// before. A provider that never reports a token from its cache may just not report any.
    pub(crate) fn missed(&self, prefix: u64) -> u64 {
        let is_believed = self.reports >= FEWEST_REPORTS && self.expected >= FEWEST_TOKENS;
        if !is_believed || self.returned == Tokens::ZERO {
            return 0;
        }
        let missed = u128::from((self.expected - self.returned).0) * u128::from(prefix);
        u64::try_from(missed / u128::from(self.expected.0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reports: &[(u64, u64)]) -> CacheReturns {
        let mut returns = CacheReturns::default();
        for (returned, pause) in reports {
            let pause = (*pause > 0).then_some(*pause);
            returns.reported(Tokens(100_000), Tokens(*returned), pause, &CacheRule::default());
        }
        returns
    }

    #[test]
    fn the_share_that_is_missed_is_believed_after_four_reports() {
        assert_eq!(after(&[(24_000, 1); 3]).missed(100), 0);
        assert_eq!(after(&[(24_000, 1); 4]).missed(100), 76);
        assert_eq!(after(&[(200_000, 1); 9]).missed(100), 0);
        assert_eq!(after(&[(0, 1); 9]).missed(100), 0, "it may not report what it reads");
    }

    #[test]
    fn the_lifetime_is_what_prefixes_survived() {
        let lifetime = |reports: &[(u64, u64)]| after(reports).corrected(CacheRule::default()).lifetime_s;
        let rule = CacheRule::default().lifetime_s;
        assert_eq!(lifetime(&[]), rule);
        assert_eq!(lifetime(&[(100_000, 5), (100_000, 2_000)]), 2_000, "it lives longer than documented");
        assert_eq!(lifetime(&[(100_000, 5), (0, 120)]), 119, "it lives shorter");
        assert_eq!(lifetime(&[(100_000, 5), (0, 120), (100_000, 200)]), rule, "the newest report counts");
        assert_eq!(lifetime(&[(100_000, 5), (100_000, 900), (0, 400)]), rule);
        assert_eq!(lifetime(&[(100_000, 5), (0, 30)]), rule, "a short pause tells nothing");
        assert_eq!(lifetime(&[(0, 120), (0, 120)]), rule, "it may not report what it reads");
    }

    #[test]
    fn a_pause_is_not_the_providers_fault() {
        let mut reports = vec![(100_000, 5); 5];
        reports.extend([(0, 4_000); 5]);
        assert_eq!(after(&reports).missed(100), 0);
    }
}
