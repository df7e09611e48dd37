//! A turn has ended whose last prompt was large (seed 000).

use super::{Start, Trigger};
use crate::edits::edit::{Limit, Why};

/// A turn has ended.
pub static END_OF_TURN: Trigger = Trigger {
    name: "end-of-turn",
    says: "a turn has ended whose last prompt was over the trigger",
    fires: |now| {
        let fires = now.profile.triggers.end_of_turn
            && now.turn_ended
            && now.last_prompt > now.budget.trigger
            && !now.is_short()
            && !now.stopped;
        fires.then_some(Start { why: Why::Forced(Limit::Trigger), target: now.budget.target, full: false })
    },
};
