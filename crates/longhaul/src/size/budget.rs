//! How much of the window may be used: [`Budget`]. The window is the provider's. Inside it are, from
//! the top: the reserve for the answer, the hard limit that no request passes, the trigger that
//! starts compaction, the target it works to, and a warning.

use crate::size::tokens::Tokens;

/// Limits on the tokens of a request, system prompt and tools included.
///
/// ```
/// use longhaul::{Budget, Tokens};
/// let budget = Budget::new(Tokens(200_000), Tokens(64_000));
/// assert_eq!(budget.hard, Tokens(170_000));   // 15 % is less than the longest answer
/// assert_eq!(budget.trigger, Tokens(160_000));
/// assert_eq!(budget.target, Tokens(120_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// All that fits: prompt and answer.
    pub window: Tokens,
    /// Kept free for the answer: what answers take, not what a request allows them to take.
    pub reserve: Tokens,
    /// The tokens that the shares are shares of: the window, or the usable room.
    pub shared: Tokens,
    /// Where a person is warned.
    pub warn: Tokens,
    /// Over this, compaction starts.
    pub trigger: Tokens,
    /// What compaction works to.
    pub target: Tokens,
    /// No request is larger.
    pub hard: Tokens,
}

/// Where limits stand, in percent of the window or of the usable room (see [`Budget::in_room`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Where a person is warned.
    pub warn: u8,
    /// Where compaction starts.
    pub trigger: u8,
    /// What it works to; 0 for a compaction that takes everything.
    pub target: u8,
}

impl Default for Shares {
    fn default() -> Self {
        Self { warn: 70, trigger: 80, target: 60 }
    }
}

/// The reserve is at most this share of the window, in percent, until an answer was longer.
const RESERVE: u8 = 15;
/// However long an answer was, the prompt keeps this share of the window, in percent.
const LEAST_PROMPT: u8 = 50;

impl Budget {
    /// The default shares of a window, for a model or a request with this longest answer.
    pub fn new(window: Tokens, max_output: Tokens) -> Self {
        Self::with_shares(window, max_output, Shares::default())
    }

    /// Other shares. Whatever they are, target and warning end up no higher than the trigger, and that no higher than the hard limit.
    pub fn with_shares(window: Tokens, max_output: Tokens, shares: Shares) -> Self {
        Self::after_answer(window, max_output, Tokens::ZERO, shares)
    }

    /// The same limits after an answer of `longest` tokens: the reserve is at least that long.
    ///
    /// ```
    /// use longhaul::{Budget, Tokens};
    /// use longhaul::size::Shares;
    /// let budget = |longest| Budget::after_answer(Tokens(200_000), Tokens(128_000), Tokens(longest), Shares::default());
    /// assert_eq!(budget(2_000).reserve, Tokens(30_000));
    /// assert_eq!(budget(45_000).reserve, Tokens(45_000));
    /// assert_eq!(budget(190_000).reserve, Tokens(100_000));
    /// ```
    pub fn after_answer(window: Tokens, max_output: Tokens, longest: Tokens, shares: Shares) -> Self {
        let expected = max_output.min(window.percent(RESERVE));
        let seen = longest.min(max_output).min(window - window.percent(LEAST_PROMPT));
        let reserve = expected.max(seen);
        Self::placed(window, reserve, window, Tokens::ZERO, shares)
    }

    /// The same limits where warning, trigger and target are of the messages alone, and system prompt and
    /// tools come beside them. The hard limit counts everything: it stays.
    ///
    /// ```
    /// use longhaul::{Budget, Tokens};
    /// let budget = Budget::new(Tokens(200_000), Tokens(20_000)).beside(Tokens(15_000));
    /// assert_eq!((budget.target, budget.trigger, budget.hard), (Tokens(135_000), Tokens(175_000), Tokens(180_000)));
    /// ```
    pub fn beside(self, system: Tokens) -> Self {
        let more = |limit: Tokens| (limit + system).min(self.hard);
        Self { warn: more(self.warn), trigger: more(self.trigger), target: more(self.target), ..self }
    }

    /// The same hard limit, with warning, trigger and target as shares of the usable room: what the hard
    /// limit leaves next to system prompt and tools.
    ///
    /// ```
    /// use longhaul::{Budget, Tokens};
    /// use longhaul::size::Shares;
    /// let shares = Shares { warn: 70, trigger: 90, target: 50 };
    /// let budget = Budget::with_shares(Tokens(200_000), Tokens(128_000), shares).in_room(Tokens(70_000), shares);
    /// assert_eq!((budget.hard, budget.shared), (Tokens(170_000), Tokens(100_000)));
    /// assert_eq!((budget.target, budget.trigger), (Tokens(120_000), Tokens(160_000)));
    /// ```
    pub fn in_room(self, system: Tokens, shares: Shares) -> Self {
        Self::placed(self.window, self.reserve, self.hard - system, system, shares)
    }

    /// Limits as shares of `shared` tokens that begin after `system`.
    fn placed(window: Tokens, reserve: Tokens, shared: Tokens, system: Tokens, shares: Shares) -> Self {
        let share = |percent: u8| shared.percent(percent) + system;
        let hard = window - reserve;
        let trigger = share(shares.trigger).min(hard);
        let warn = share(shares.warn).min(trigger);
        let target = share(shares.target).min(trigger);
        Self { window, reserve, shared, warn, trigger, target, hard }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_and_large_windows() {
        let small = Budget::new(Tokens(4_096), Tokens(4_096));
        assert_eq!((small.hard, small.trigger, small.target), (Tokens(3_482), Tokens(3_276), Tokens(2_457)));
        let large = Budget::new(Tokens(1_000_000), Tokens(64_000));
        assert_eq!((large.hard, large.trigger), (Tokens(936_000), Tokens(800_000)));
    }

    proptest! {
        #[test]
        fn limits_are_in_order(window: u64, output: u64, longest: u64, system: u64, warn: u8, trigger: u8, target: u8) {
            let shares = Shares { warn, trigger, target };
            let b = Budget::after_answer(Tokens(window), Tokens(output), Tokens(longest), shares);
            for b in [b, b.beside(Tokens(system)), b.in_room(Tokens(system), shares)] {
                prop_assert!(b.target <= b.trigger && b.warn <= b.trigger && b.trigger <= b.hard && b.hard <= b.window);
                prop_assert!(b.reserve <= b.window - b.window.percent(50));
            }
        }
    }
}
