//! How much of the window may be used: [`Budget`]. The window is the provider's; inside it
//! stand, from the top, the room for the answer, the hard limit that no request passes, the
//! trigger that starts compaction, the target it works to, and a warning.

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
    /// Kept free for the answer.
    pub reserve: Tokens,
    /// Where a person is warned.
    pub warn: Tokens,
    /// Over this, compaction starts.
    pub trigger: Tokens,
    /// What compaction works to.
    pub target: Tokens,
    /// No request is larger.
    pub hard: Tokens,
}

/// Where limits stand, as shares of the window in percent.
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

impl Budget {
    /// The default shares of a window, for a model with this longest answer.
    pub fn new(window: Tokens, max_output: Tokens) -> Self {
        Self::with_shares(window, max_output, Shares::default())
    }

    /// Other shares. Whatever they are, target and warning end up no higher than the trigger, and that no higher than the hard limit.
    pub fn with_shares(window: Tokens, max_output: Tokens, shares: Shares) -> Self {
        let share = |percent: u8| window.percent(percent);
        // A window that is nearly all answer would leave no room to speak.
        Self::with_reserve(window, max_output.min(share(15)), shares)
    }

    /// The limits of a request that says itself how long its answer may be: the provider refuses
    /// what does not fit beside it. At most half of the window is kept free.
    pub fn for_output(window: Tokens, max_output: Tokens, shares: Shares) -> Self {
        Self::with_reserve(window, max_output.min(window.percent(50)), shares)
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

    fn with_reserve(window: Tokens, reserve: Tokens, shares: Shares) -> Self {
        let share = |percent: u8| window.percent(percent);
        let hard = window - reserve;
        let trigger = share(shares.trigger).min(hard);
        let warn = share(shares.warn).min(trigger);
        let target = share(shares.target).min(trigger);
        Self { window, reserve, warn, trigger, target, hard }
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
        fn limits_are_in_order(window: u64, output: u64, warn: u8, trigger: u8, target: u8) {
            let b = Budget::with_shares(Tokens(window), Tokens(output), Shares { warn, trigger, target });
            prop_assert!(b.target <= b.trigger && b.warn <= b.trigger && b.trigger <= b.hard && b.hard <= b.window);
        }
    }
}
