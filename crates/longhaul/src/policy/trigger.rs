//! Triggers: when a compaction starts. Each is a value with a rule that looks at the situation
//! before a request, one file each; the first that fires says why and what is worked to. A profile's
//! settings say which of them it heeds.

mod asked;
mod calls;
mod cold;
mod end_of_turn;
mod hard_limit;
mod pays_back;
mod size;

use std::fmt;

use crate::edits::edit::Why;
use crate::policy::account::{Account, Rates};
use crate::policy::dial::Dial;
use crate::policy::profile::Profile;
use crate::size::budget::Budget;
use crate::size::models::Price;
use crate::size::tokens::Tokens;

/// A rule that starts a compaction.
pub struct Trigger {
    /// Its name.
    pub name: &'static str,
    /// When it fires, for people.
    pub says: &'static str,
    pub(crate) fires: fn(&Situation<'_>) -> Option<Start>,
}

impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All triggers, in the order they are asked.
pub static TRIGGERS: [&Trigger; 7] = [
    &hard_limit::HARD_LIMIT,
    &asked::ASKED,
    &calls::CALLS,
    &cold::COLD,
    &end_of_turn::END_OF_TURN,
    &size::SIZE,
    &pays_back::PAYS_BACK,
];

/// What a trigger may look at: how things stand before a request.
pub(crate) struct Situation<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) budget: Budget,
    /// The size of the request as it stands.
    pub(crate) size: Tokens,
    /// The prompt of the last request, as it was reported or counted.
    pub(crate) last_prompt: Tokens,
    /// Messages of the log.
    pub(crate) messages: usize,
    /// Calls so far.
    pub(crate) calls: u64,
    /// Calls since the last full summary.
    pub(crate) calls_since_full: u64,
    /// Calls that a fold is expected to live for.
    pub(crate) calls_expected: u64,
    /// A person or the model asked for a compaction.
    pub(crate) asked: bool,
    /// The provider refused the request before as too long.
    pub(crate) refused: bool,
    /// The provider has nothing of the prefix: its time is over, or the frame is another.
    pub(crate) cold: bool,
    /// A person has spoken, and the model has not answered yet.
    pub(crate) turn_ended: bool,
    /// Tokens that a fold would take, summed over the calls since the last compaction, this one included.
    pub(crate) carried: Tokens,
    /// The same at this call alone.
    pub(crate) excess: Tokens,
    /// What the provider would bill again after a fold.
    pub(crate) rewritten: Tokens,
    /// What the model costs.
    pub(crate) price: Option<Price>,
    /// What tokens really cost here.
    pub(crate) rates: Rates,
    /// What the conversation has cost.
    pub(crate) account: Account,
    /// The breaker lets no compaction through but what is asked for or forced.
    pub(crate) stopped: bool,
}

impl Situation<'_> {
    /// A fold by price risks little, should the conversation end after so many calls.
    fn is_affordable(&self, calls: u64) -> bool {
        let not_read = Tokens(self.excess.0.saturating_mul(calls));
        let most_loss = self.profile.dial.map_or(0, Dial::most_loss);
        self.rewritten <= self.account.allowance(most_loss, not_read, self.rates)
    }

    /// The conversation is too short for anything but what is asked for or forced.
    fn is_short(&self) -> bool {
        self.messages < self.profile.triggers.min_messages
    }
}

/// A compaction that is to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) why: Why,
    /// What it works to.
    pub(crate) target: Tokens,
    /// A full summary, and nothing else.
    pub(crate) full: bool,
}

/// The compaction that is to start now, if any.
pub(crate) fn start(situation: &Situation<'_>) -> Option<Start> {
    TRIGGERS.iter().find_map(|trigger| (trigger.fires)(situation))
}
