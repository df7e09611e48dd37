//! The hard limit, and a provider that refused: every profile heeds it.

use super::{Start, Trigger};
use crate::edits::edit::{Limit, Why};
use crate::size::tokens::Tokens;

/// The request would pass the hard limit, or the provider refused the one before.
pub static HARD_LIMIT: Trigger = Trigger {
    name: "hard-limit",
    says: "the request would pass the hard limit, or the provider refused one as too long",
    fires: |now| {
        let full = super::calls::is_due(now) || super::asked::wants_full(now);
        (now.size > now.budget.hard || now.refused).then_some(Start {
            why: Why::Forced(Limit::Hard),
            target: if full { Tokens::ZERO } else { now.budget.target },
            full,
        })
    },
};
