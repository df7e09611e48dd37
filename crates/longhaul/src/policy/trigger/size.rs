//! The request is over the trigger.

use super::{Start, Trigger};
use crate::edits::edit::{Limit, Why};

/// The request is large.
pub static SIZE: Trigger = Trigger {
    name: "size",
    says: "the request is over the trigger",
    fires: |now| {
        let triggers = &now.profile.triggers;
        let fires = triggers.is_reached(now.size, &now.budget)
            && !triggers.end_of_turn
            && !now.is_short()
            && !now.stopped;
        fires.then_some(Start { why: Why::Forced(Limit::Trigger), target: now.budget.target, full: false })
    },
};
