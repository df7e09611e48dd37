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
        let (newest, from) = self.newest_steps();
        let tail = self.tail_measure();
        let stays = view.fixed().measure + self.head_measure() + view.folds() + newest + tail;
        let old = self.tokens(view.measure()) - self.tokens(stays);
        let left = old.percent(LEFT);
        let thinking: Tokens = self.bound_after(from).into_iter().map(|(_, tokens)| tokens).sum();
        let mut rewritten = self.tokens(newest + tail) - thinking + self.worth_of(thinking) + left;
        if self.asks_host() {
            // A model reads the conversation once more, and writes.
            rewritten += Tokens(self.size().tokens.0 / 10) + WRITTEN;
        }
        Carrying { excess: old - left, old, rewritten }
    }

    /// What signed thinking is worth that a fold takes with it, as tokens that are billed again. The model thinks some of
    /// it again, unless a person has just said something else.
    fn worth_of(&self, thinking: Tokens) -> Tokens {
        /// Most providers take five times as much for an answer as for a prompt.
        const USUAL_OUTPUT: u64 = 500;
        let turn_begins = self.log().turns().last().is_some_and(|turn| turn.first_step.is_none());
        if turn_begins || thinking == Tokens::ZERO {
            return Tokens::ZERO;
        }
        let output = self.model().price.map_or(USUAL_OUTPUT, |price| price.output);
        let worth =
            u128::from(thinking.0) * u128::from(output) * u128::from(self.profile.thinking_worth) / 100;
        let tokens = worth / u128::from(self.state.rates().more().max(1));
        Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    /// The newest steps, which a fold leaves alone, and where they begin.
    pub(super) fn newest_steps(&self) -> (Measure, Position) {
        let room = self.profile.newest_part(&self.budget());
        let mut sum = Measure::default();
        let (mut steps, mut unit, mut from) = (0, None, self.log().end());
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
            (sum, from) = (more, at);
        }
        (sum, from)
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
