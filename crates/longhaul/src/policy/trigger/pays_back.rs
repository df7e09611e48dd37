//! Carrying what a fold would take has cost more than the fold.

use super::{Start, Trigger};
use crate::edits::edit::Why;
use crate::size::tokens::Tokens;

/// A fold pays back.
pub static PAYS_BACK: Trigger = Trigger {
    name: "pays-back",
    says: "carrying what a fold would take has cost more than the fold",
    fires: |now| {
        let dial = now.profile.dial?;
        let pays = dial.pays_back(now.carried, now.rewritten, now.price);
        (pays && !now.is_short() && !now.stopped).then_some(Start {
            why: Why::PaysBack,
            target: Tokens::ZERO,
            full: false,
        })
    },
};
