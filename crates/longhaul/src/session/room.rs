//! Room for the next steps: a forced compaction takes so much in one go that it does not come back at the next
//! call.

use super::{Notice, Session};
use crate::edits::edit::Why;
use crate::size::tokens::Tokens;

/// A forced compaction leaves room for so many average steps of the session.
const STEPS: u64 = 8;
/// An average says nothing before so many steps.
const FEW: i64 = 4;

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
        let mut targets = vec![Target::plain(target)];
        if self.profile.dial.is_none() || !matches!(why, Why::Forced(_)) {
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

    /// Reports once that system prompt, tools and what must stay leave little room.
    pub(super) fn notice_cramped(&mut self) {
        let (hard, needed) = (self.budget().hard, self.next_steps());
        let stays = self.tokens(self.state.system_layer() + self.tail_measure());
        let room = hard - stays;
        if room < needed && !self.is_cramped_noticed {
            self.is_cramped_noticed = true;
            let step = self.average_step();
            self.notice(Notice::Cramped { stays, hard, step });
        }
    }
}
