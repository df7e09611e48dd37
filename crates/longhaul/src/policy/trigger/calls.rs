//! So many calls since the last full summary ask for one (seed 004).

use super::{Situation, Start, Trigger};
use crate::edits::edit::{Limit, Why};
use crate::size::tokens::Tokens;

/// Many calls were made.
pub static CALLS: Trigger = Trigger {
    name: "calls",
    says: "so many calls were made since the last full summary: a full summary is made",
    fires: |now| {
        (is_due(now) && !now.is_short()).then_some(Start {
            why: Why::Forced(Limit::Trigger),
            target: Tokens::ZERO,
            full: true,
        })
    },
};

/// So many calls were made that the profile wants a full summary.
pub(super) fn is_due(now: &Situation<'_>) -> bool {
    let most = now.profile.triggers.calls;
    most > 0 && now.calls_since_full >= most
}
