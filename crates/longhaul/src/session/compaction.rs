//! `prepare`: when a view is too large, the ladder of the profile is tried rung by rung until
//! the target is met, and its common end when the hard limit is passed. Every edit goes
//! through the guard and into the ledger.

use serde::{Deserialize, Serialize};

use super::{PrepareError, Prepared, Session, TooLarge};
use crate::conversation::log::At;
use crate::conversation::message::Time;
use crate::edits::edit::{Limit, Why};
use crate::edits::ledger::Event;
use crate::policy::profile::{OnFailure, Summariser};
use crate::policy::strategy::{COMMON_END, Context, FULL_SUMMARY, Proposal, Ruled, Strategy};
use crate::policy::task::Task;
use crate::size::budget::Budget;
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::summary::job::Job;
use crate::view::Source;

/// A compaction on its way: it may wait for summaries, and goes on where it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compaction {
    why: Why,
    target: Tokens,
    /// The size before.
    before: Tokens,
    /// A full summary is due, and nothing else.
    full: bool,
    /// Strategies whose summaries failed.
    pub(super) failed: Vec<Box<str>>,
}

/// How a rung ended.
enum Rung {
    /// It made this many edits.
    Edits(usize),
    /// It waits for a summary.
    Waits,
}

impl Session {
    /// The view for the next request, compacted if it must be; or a summary to be written
    /// first; or why there can be none. `now` is the time, if it is known.
    pub fn prepare(&mut self, now: Option<Time>) -> Result<Prepared<'_>, PrepareError> {
        self.follow();
        // What nothing can take away: no edit would help.
        let size = self.size().tokens;
        if size.min(self.tokens(self.view.fixed().measure + self.system)) > self.budget.hard {
            return Err(self.too_large(size));
        }
        if self.compaction.is_none() {
            self.shown_before = self.view.parts().len();
        }
        self.rules();
        let budget = self.budget;
        if let Some(refused) = self.overflowed {
            // The provider's window is smaller than it was thought to be.
            self.budget = Budget::with_shares(refused, self.model.max_output, self.profile.shares);
        }
        if self.compaction.is_none() {
            self.compaction = self.why_compact(now).map(|why| self.begin(why));
        }
        let waits = self.compact();
        if waits.is_none() && self.size().tokens > self.budget.hard {
            self.common_end();
            // What stands behind calls that wait for results cannot go while they wait.
            if self.size().tokens > self.budget.hard && self.close_step() {
                self.follow();
                self.common_end();
            }
        }
        self.budget = budget;
        if let Some(job) = waits {
            return Ok(Prepared::NeedsSummary(job));
        }
        (self.asked, self.focus) = (false, None);
        let size = self.size().tokens;
        if size > self.budget.hard {
            return Err(self.too_large(size));
        }
        // What was refused would be refused again.
        if let Some(refused) = self.overflowed.filter(|refused| size >= *refused) {
            let (what, hard) = (TooLarge::Together, refused - Tokens(1));
            return Err(PrepareError::TooLarge { what, tokens: size, hard, window: self.budget.window });
        }
        self.overflowed = None;
        // Calls that wait for results get placeholders in this request, for good.
        if self.close_step() {
            self.follow_view();
        }
        self.last_prompt = size;
        self.calls += 1;
        self.sent = Some(self.cache.send(&self.view, &self.meter, now, &self.model.cache));
        self.sent_size = Some(self.view.measure());
        self.view.mark_sent();
        debug_assert_eq!(self.audit(), []);
        Ok(Prepared::Ready(&self.view))
    }

    /// No result that comes from now on is shown as one.
    fn close_step(&mut self) -> bool {
        let waited = self.log.close_step();
        if waited {
            self.ledger.record(Event::PlaceholderSent { end: self.log.end() });
        }
        waited
    }

    /// Why the view must be compacted now, if it must.
    fn why_compact(&mut self, now: Option<Time>) -> Option<Why> {
        let size = self.size().tokens;
        if size > self.budget.hard || self.overflowed.is_some() {
            return Some(Why::Forced(Limit::Hard));
        }
        if self.asked {
            return Some(Why::Asked);
        }
        let triggers = &self.profile.triggers;
        if self.log.messages().len() < triggers.min_messages {
            return None;
        }
        if self.full_is_due() {
            return Some(Why::Forced(Limit::Trigger));
        }
        let over = if triggers.end_of_turn {
            self.turn_ended() && self.last_prompt > self.budget.trigger
        } else {
            size > self.budget.trigger || triggers.inclusive && size == self.budget.trigger
        };
        let cold = self.profile.when_cold && size > self.budget.target && self.calls > 0 && self.is_cold(now);
        if !(over || cold) || self.breaker.stops(self.calls, size).is_some() {
            return None;
        }
        Some(if cold { Why::Cold } else { Why::Forced(Limit::Trigger) })
    }

    /// What the profile demands before every call.
    fn rules(&mut self) {
        for strategy in self.profile.rules.clone() {
            self.climb(strategy, Why::Rule, Tokens::ZERO);
        }
        self.ruled = Ruled::all_of(&self.log);
    }

    /// A person has spoken, and the model has not answered yet.
    fn turn_ended(&self) -> bool {
        self.log.turns().last().is_some_and(|turn| turn.ended || turn.first_step.is_none())
    }

    /// So many calls were made that the profile wants a full summary.
    fn full_is_due(&self) -> bool {
        let most = self.profile.triggers.calls;
        most > 0 && self.calls >= self.full_at + most
    }

    /// What is tried now.
    fn ladder(&self, full: bool) -> Vec<&'static Strategy> {
        if full {
            return vec![&FULL_SUMMARY];
        }
        let task = self
            .profile
            .by_task
            .then(|| self.task.unwrap_or_else(|| Task::of(&self.log, &self.profile.aliases)));
        let first = task.map(Task::order).into_iter().flatten();
        first.chain(self.profile.ladder.iter().copied()).collect()
    }

    /// A compaction, and what it works to.
    fn begin(&self, why: Why) -> Compaction {
        let before = self.size().tokens;
        let full = self.full_is_due() && why != Why::Asked;
        let target = match why {
            // By the prompt of the last call, or by the calls: whatever the size is, all goes.
            _ if self.profile.triggers.end_of_turn || full => Tokens::ZERO,
            // Who asks wants more gone than is gone already.
            Why::Asked => self.budget.target.min(Tokens(before.0 / 2)),
            _ => self.budget.target,
        };
        Compaction { why, target, before, full, failed: Vec::new() }
    }

    /// Goes on with the compaction, if one is being made: tries the ladder until the target is
    /// met. Gives a job if a rung waits for a summary.
    fn compact(&mut self) -> Option<Job> {
        if let Some(job) = &self.job {
            return Some(job.clone());
        }
        let Compaction { why, target, before, full, failed } = self.compaction.clone()?;
        for strategy in self.ladder(full) {
            if self.size().tokens <= target {
                break;
            }
            if failed.iter().any(|name| **name == *strategy.name) {
                continue;
            }
            if let Rung::Waits = self.climb(strategy, why, target) {
                return self.job.clone();
            }
        }
        if full {
            self.full_at = self.calls;
        }
        self.compaction = None;
        // One that failed for want of a summary says nothing of the next.
        if failed.is_empty() && self.kept_at != Some(self.calls) {
            self.count_compaction(before);
        }
        None
    }

    /// Tells the breaker. A profile that works to its trigger compacts at every call.
    fn count_compaction(&mut self, before: Tokens) {
        if self.budget.target < self.budget.trigger {
            self.breaker.compacted(self.calls, before, self.size().tokens, self.budget.trigger);
        }
    }

    /// The end of every ladder: only as far as the hard limit demands.
    fn common_end(&mut self) {
        let why = Why::Forced(Limit::Hard);
        for strategy in COMMON_END {
            // A cut is made by estimate: what is still over is cut again.
            for _ in 0..8 {
                if self.size().tokens <= self.budget.hard {
                    return;
                }
                match self.climb(strategy, why, self.budget.hard) {
                    Rung::Edits(0) => break,
                    Rung::Edits(_) | Rung::Waits => {}
                }
            }
        }
    }

    /// One rung: propose, check, apply, until the target is met; then look again.
    fn climb(&mut self, strategy: &'static Strategy, why: Why, target: Tokens) -> Rung {
        let size = self.size().tokens;
        let context = Context {
            log: &self.log,
            ledger: &self.ledger,
            view: &self.view,
            meter: &self.meter,
            sizes: &self.sizes,
            budget: &self.budget,
            profile: &self.profile,
            ruled: self.ruled,
            task: self.task,
            excess: size - target,
            takes_held: why == Why::Forced(Limit::Hard),
        };
        let mut made = 0;
        for proposal in (strategy.propose)(&context) {
            let applied = match proposal {
                Proposal::Inside(kind, original) => self.edit_inside(kind, original, strategy.name, why),
                Proposal::Hide(spans) => self.hide(spans, strategy.name, why),
                Proposal::Fold(plan) => match self.profile.summariser {
                    Summariser::Host if plan.by_code || why == Why::Rule => {
                        self.fold(plan, None, strategy.name, why)
                    }
                    // It failed, and the history is kept unless it cannot be.
                    Summariser::Host if self.keeps_history() => match why {
                        Why::Forced(Limit::Hard) => self.fold(plan, None, strategy.name, why),
                        _ => continue,
                    },
                    Summariser::Host if !self.breaker.summaries_fail(self.calls) => {
                        match self.ask(plan, strategy.name, why) {
                            Some(job) => {
                                self.job = Some(job);
                                return Rung::Waits;
                            }
                            None => continue,
                        }
                    }
                    Summariser::Host | Summariser::Extractor => self.fold(plan, None, strategy.name, why),
                },
            };
            made += usize::from(applied.is_ok());
        }
        if made > 0 {
            self.follow();
        }
        Rung::Edits(made)
    }

    /// No summary came, and the profile wants its history kept then.
    fn keeps_history(&self) -> bool {
        self.profile.on_failure == OnFailure::Keep
            && (self.kept_at == Some(self.calls) || self.breaker.summaries_fail(self.calls))
    }

    /// Names what does not fit.
    fn too_large(&self, tokens: Tokens) -> PrepareError {
        let is_system = |at: At| self.log.system_messages().binary_search(&at).is_ok();
        let system: Measure = self
            .view
            .parts()
            .iter()
            .filter(|part| {
                matches!(part.source, Source::Message(at) if is_system(at)) || part.source == Source::Rules
            })
            .map(|part| part.measure)
            .sum();
        let system = self.tokens(self.view.fixed().measure + system);
        let largest = self.view.parts().iter().filter_map(|part| match part.source {
            Source::Message(at) if !is_system(at) => Some((self.tokens(part.measure), at)),
            _ => None,
        });
        let (what, tokens) = match largest.max() {
            _ if system > self.budget.hard => (TooLarge::System, system),
            Some((size, at)) if size.0 * 2 > tokens.0 => (TooLarge::Message(at), tokens),
            _ => (TooLarge::Together, tokens),
        };
        PrepareError::TooLarge { what, tokens, hard: self.budget.hard, window: self.budget.window }
    }
}
