//! The provider's cache has lost the prefix, or the frame has changed: all is billed anew, and a
//! compaction costs nothing beside.

use super::pays_back::is_large_enough;
use super::{Start, Trigger};
use crate::edits::edit::Why;
use crate::size::tokens::Tokens;

/// So much of the request must be there to fold, in percent: each fold costs a little memory.
const MUCH: u8 = 15;

/// The cache is cold.
pub static COLD: Trigger = Trigger {
    name: "cold",
    says: "the provider's cache has lost the prefix, and there is something to fold",
    fires: |now| {
        let target = match now.profile.dial {
            // What goes for the price of carrying it goes now.
            Some(_) => Tokens::ZERO,
            None => now.budget.target,
        };
        let much = match now.profile.dial {
            // Whether the cache is cold is a guess: it must not cost much if it is not. One more call is expected.
            Some(_) => {
                now.excess > now.size.percent(MUCH)
                    && is_large_enough(now, Tokens::ZERO)
                    && now.is_affordable(1)
            }
            None => now.size > target,
        };
        let fires =
            now.profile.when_cold && now.cold && now.calls > 0 && much && !now.is_short() && !now.stopped;
        fires.then_some(Start { why: Why::Cold, target, full: false })
    },
};
