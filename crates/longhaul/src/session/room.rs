//! Room for the next steps: a forced compaction takes so much in one go that it does not come back at the next
//! call.

use super::journal::Entry;
use super::{Cramped, Notice, Session, Stays};
use crate::edits::edit::Why;
use crate::policy::dial::Dial;
use crate::size::tokens::Tokens;

/// A forced compaction leaves room for so many average steps of the session.
const STEPS: u64 = 8;
/// An average says nothing before so many steps.
const FEW: i64 = 4;

/// After a forced compaction a session is taken to make at least so many calls.
const CALLS_AFTER: u64 = 6;
/// The newest part, and the summary, may have so much whatever they cost.
const SMALLEST_PART: Tokens = Tokens(2_000);
/// A summary may have this share of what it stands for whatever it costs, in percent.
const USUAL_SUMMARY: u8 = 30;

/// What a rung of the ladder works to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The size of the request.
    pub(super) size: Tokens,
    /// The most that the newest part may have, where that is less than the profile's share.
    pub(super) newest: Option<Tokens>,
    /// The longest summary, where that is less than the profile's share.
    pub(super) summary: Option<Tokens>,
}

impl Target {
    /// A size alone.
    pub(super) fn plain(size: Tokens) -> Self {
        Self { size, newest: None, summary: None }
    }
}

impl Session {
    /// The size of an average step of this session, with what people said around it.
    fn average_step(&self) -> Tokens {
        let said = self.state.sizes.total();
        let system = self.state.system_layer() - self.state.view.fixed().measure;
        let steps = u64::try_from(said.answers).unwrap_or(0).max(1);
        Tokens(self.tokens(said - system).0 / steps)
    }

    /// What the next steps will take, about. Before there is an average it is nothing.
    pub(super) fn next_steps(&self) -> Tokens {
        if self.state.sizes.total().answers < FEW {
            return Tokens::ZERO;
        }
        Tokens(self.average_step().0.saturating_mul(STEPS))
    }

    /// What the ladder works to, round by round. After the profile's own target comes the room that a forced
    /// compaction must leave: for it fewer of the newest steps stay whole, and the summary is shorter.
    pub(super) fn targets(&self, target: Tokens, why: Why) -> Vec<Target> {
        if self.profile.dial.is_none() {
            return vec![Target::plain(target)];
        }
        let mut targets = vec![self.affordable(target, why)];
        if !matches!(why, Why::Forced(_)) {
            return targets;
        }
        let budget = self.budget();
        let size = budget.trigger - self.next_steps();
        let (part, most) = (self.profile.newest_part(&budget), budget.shared.percent(self.profile.summary));
        targets.extend([(2, 2), (4, 4), (u64::MAX, 8)].map(|(of_newest, of_summary)| Target {
            size,
            newest: Some(Tokens(part.0 / of_newest)),
            summary: Some(Tokens(most.0 / of_summary)),
        }));
        targets
    }

    /// The target of the first round: the profile's own, made smaller where the bill does not afford it. Where reading
    /// from the cache is cheap or the conversation is short, what a fold has billed again counts for more than what it
    /// saves.
    fn affordable(&self, target: Tokens, why: Why) -> Target {
        let (carrying, account, rates) = (self.carrying(), self.state.progress.account, self.state.rates());
        let most_loss = self.profile.dial.map_or(0, Dial::most_loss);
        match why {
            Why::PaysBack | Why::Cold => {
                let newest = self.tokens(self.newest_steps().0 + self.tail_measure());
                let summary = account.allowance(most_loss, Tokens::ZERO, rates) - newest;
                let summary = Some(summary.max(carrying.old.percent(USUAL_SUMMARY)));
                Target { size: target, newest: None, summary }
            }
            // At the usual price a forced fold is paid back within a few calls.
            Why::Forced(_) if rates.is_cheap_to_read() => {
                let saved = Tokens(carrying.excess.0.saturating_mul(CALLS_AFTER));
                let allowance = account.allowance(most_loss, saved, rates);
                let newest = allowance.percent(60).max(SMALLEST_PART);
                let summary = allowance.percent(40).max(SMALLEST_PART);
                let stays = self.tokens(self.state.view.fixed().measure + self.head_measure());
                let size = target.min(stays + newest + summary);
                Target { size, newest: Some(newest), summary: Some(summary) }
            }
            Why::Forced(_)
            | Why::Entry
            | Why::Rule
            | Why::Switched
            | Why::Refused
            | Why::Host
            | Why::Asked => Target::plain(target),
        }
    }

    /// Reports once that system prompt, tools and what must stay leave little room.
    pub(super) fn notice_cramped(&mut self) {
        self.notice_room(self.tokens(self.state.system_layer() + self.tail_measure()), Stays::Always);
    }

    /// Reports once per conversation that these tokens leave little room.
    pub(super) fn notice_room(&mut self, tokens: Tokens, stays: Stays) {
        let hard = self.budget().hard;
        if hard - tokens < self.next_steps() && !self.state.cramped_reported {
            let step = self.average_step();
            self.notice(Notice::Cramped(Cramped { tokens, stays, hard, step }));
            self.record(Entry::CrampedReported);
        }
    }
}
