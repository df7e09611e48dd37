//! What a request carries that a fold would take: the price of waiting, which decides when a fold pays back.

use super::Session;
use crate::conversation::log::Position;
use crate::conversation::step::UnitKind;
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::view::{Part, Source};

/// What is left of what a fold takes, in percent, before one was made.
pub(super) const LEFT: u8 = 20;

/// What a summary that a model writes costs beside reading, as tokens of a prompt.
const WRITTEN: Tokens = Tokens(8_000);

/// How a request divides for a fold.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carrying {
    /// Tokens that a fold would take, less what it would leave of them.
    pub(super) excess: Tokens,
    /// What a fold would take.
    pub(super) old: Tokens,
    /// What would be billed again: the new summary, and the newest steps behind it.
    pub(super) rewritten: Tokens,
}

impl Session {
    /// What the next request carries.
    pub(super) fn carrying(&self) -> Carrying {
        if self.profile.dial.is_none() {
            return Carrying::default();
        }
        let view = &self.state.view;
        let newest = self.newest_steps();
        let tail = self.tail_measure();
        let stays = view.fixed().measure + self.head_measure() + view.folds() + newest + tail;
        let old = self.tokens(view.measure()) - self.tokens(stays);
        let left = old.percent(LEFT);
        let mut rewritten = self.tokens(newest + tail) + left;
        if self.asks_host() {
            // A model reads the conversation once more, and writes.
            rewritten += Tokens(self.size().tokens.0 / 10) + WRITTEN;
        }
        Carrying { excess: old - left, old, rewritten }
    }

    /// The newest steps, which a fold leaves alone.
    pub(super) fn newest_steps(&self) -> Measure {
        let room = self.profile.newest_part(&self.budget());
        let mut sum = Measure::default();
        let (mut steps, mut unit) = (0, None);
        for part in self.state.view.parts().iter().rev() {
            let at = match part.source {
                Source::Message(at) => at,
                // It stands where it was sent, and goes with what stands before it.
                Source::HostNote(_) => {
                    sum += part.measure;
                    continue;
                }
                _ => break,
            };
            let of = self.log().unit_of(at).filter(|unit| unit.kind == UnitKind::Step);
            let start = of.map(|unit| unit.span.start);
            if start.is_some() && start != unit {
                steps += 1;
                unit = start;
            }
            let more = sum + part.measure;
            if steps > self.profile.keep_steps || self.tokens(more) > room {
                break;
            }
            sum = more;
        }
        sum
    }

    /// The tail after the last cache mark.
    pub(super) fn tail_measure(&self) -> Measure {
        self.state.view.tail().map(|tail| tail.measure).unwrap_or_default()
    }

    /// What stands before the history, and the opening if it stays.
    pub(super) fn head_measure(&self) -> Measure {
        let end = self.kept_opening().max(Position(1));
        let is_head = |part: &&Part| match part.source {
            Source::Note | Source::Rules => true,
            Source::Message(at) => at < end,
            Source::Edit(_) | Source::HostNote(_) | Source::Tail => false,
        };
        self.state.view.parts().iter().take_while(is_head).map(|part| part.measure).sum()
    }
}
