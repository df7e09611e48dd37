//! The request is over the trigger.

use super::{Start, Trigger};
use crate::edits::edit::{Limit, Why};
use crate::policy::profile::Summariser;
use crate::size::tokens::Tokens;

/// So much before the trigger a model is asked, in percent of the window.
const AHEAD: u8 = 8;

/// The request is large.
pub static SIZE: Trigger = Trigger {
    name: "size",
    says: "the request is over the trigger",
    fires: |now| {
        let triggers = &now.profile.triggers;
        // A model takes a while to write: it is asked before the limit is there.
        let early = now.profile.dial.is_some() && now.profile.summariser == Summariser::Host;
        let ahead = if early { now.budget.shared.percent(AHEAD) } else { Tokens::ZERO };
        let fires = triggers.is_reached(now.size + ahead, &now.budget)
            && !triggers.end_of_turn
            && !now.is_short()
            && !now.stopped;
        fires.then_some(Start { why: Why::Forced(Limit::Trigger), target: now.budget.target, full: false })
    },
};
