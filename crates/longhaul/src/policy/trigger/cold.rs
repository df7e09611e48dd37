//! The provider's cache has lost the prefix, or the frame has changed: all is billed anew, and a
//! compaction costs nothing beside.

use super::{Start, Trigger};
use crate::edits::edit::Why;

/// The cache is cold.
pub static COLD: Trigger = Trigger {
    name: "cold",
    says: "the provider's cache has lost the prefix, and the view is over the target",
    fires: |now| {
        let fires = now.profile.when_cold
            && now.cold
            && now.calls > 0
            && now.size > now.budget.target
            && !now.is_short()
            && !now.stopped;
        fires.then_some(Start { why: Why::Cold, target: now.budget.target, full: false })
    },
};
