//! A person asked, or the model printed its mark.

use super::{Start, Trigger};
use crate::edits::edit::Why;
use crate::size::tokens::Tokens;

/// Somebody asked for it.
pub static ASKED: Trigger = Trigger {
    name: "asked",
    says: "a person asks for it, or the model prints its mark",
    fires: |now| {
        // Who asks wants more gone than is gone already.
        let target = now.budget.target.min(Tokens(now.size.0 / 2));
        now.asked.then_some(Start { why: Why::Asked, target, full: false })
    },
};
