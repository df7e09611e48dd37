//! A person asked, or the model printed its mark.

use super::{Situation, Start, Trigger};
use crate::edits::edit::Why;
use crate::size::tokens::Tokens;

/// Somebody asked for it.
pub static ASKED: Trigger = Trigger {
    name: "asked",
    says: "a person asks for it, or the model prints its mark",
    fires: |now| {
        // Who asks wants more gone than is gone already.
        let target = now.budget.target.min(Tokens(now.size.0 / 2));
        let full = wants_full(now);
        let target = if full { Tokens::ZERO } else { target };
        now.asked.then_some(Start { why: Why::Asked, target, full })
    },
};

/// Somebody asked, and the profile makes a full summary then.
pub(super) fn wants_full(now: &Situation<'_>) -> bool {
    now.asked && now.profile.triggers.full_when_asked
}
