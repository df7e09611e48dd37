//! `prepare`: when a view is too large, the ladder of the profile is tried rung by rung until
//! the target is met, and its common end when the hard limit is passed. Every edit goes
//! through the guard and into the journal.

use super::carrying::Carrying;
use super::journal::{Compaction, Counting, Entry, JobEnd, PaysBack, SentRequest, Ticket};
use super::room::Target;
use super::state::State;
use super::{Notice, PrepareError, Prepared, Session, Stays, TooLarge};
use crate::conversation::log::Position;
use crate::conversation::message::{Role, Time};
use crate::edits::edit::{Limit, Why};
use crate::policy::profile::{OnFailure, Summariser};
use crate::policy::strategy::{COMMON_END, Context, FULL_SUMMARY, FoldPlan, Proposal, RulesSeen, Strategy};
use crate::policy::trigger::{self, Situation};
use crate::size::calibration::Calibration;
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::summary::job::Job;
use crate::view::Source;

/// How a rung ended.
enum Rung {
    /// It made this many edits.
    Edits(usize),
    /// It waits for a summary.
    Waits,
}

impl Session {
    /// Compacts at the next `prepare`, whatever the size.
    pub fn compact_now(&mut self) {
        self.record(Entry::Asked { focus: self.state.progress.focus.clone(), by_model: false });
    }

    /// Compacts at the next `prepare`; what is said of this is kept first.
    pub fn compact_now_on(&mut self, focus: impl Into<Box<str>>) {
        let focus: Box<str> = focus.into();
        let focus = (!focus.trim().is_empty()).then_some(focus);
        self.record(Entry::Asked { focus, by_model: false });
    }

    /// Makes the next request ready, compacted if it must be; or asks for a summary to be written
    /// first; or says why there can be none. `now` is the time, if it is known.
    ///
    /// A request that is prepared counts as sent. Prepared again without anything new, it is the
    /// same request: its ticket is the same, and no call is counted.
    pub fn prepare(&mut self, now: Option<Time>) -> Result<Prepared, PrepareError> {
        let prepared = self.prepare_by_usage(now);
        if prepared.is_err() && self.distrust_usage() {
            return self.prepare_by_usage(now);
        }
        prepared
    }

    /// Goes back to the tokenizer's own count, where usage made sizes what they are. False if they were not.
    fn distrust_usage(&mut self) -> bool {
        let by_usage = self.meter().goes_by_usage() || self.state.limits.is_reserve_raised(&self.profile);
        // Of a request that the provider refused, its word counts.
        if !by_usage || self.state.requests.refused.is_some() {
            return false;
        }
        self.record(Entry::Counted(match self.meter().calibration() {
            None => Counting::Neutral,
            Some(_) => Counting::Model(Calibration::new(self.model().ratio_ppm)),
        }));
        true
    }

    /// The same, by sizes as usage has taught them.
    fn prepare_by_usage(&mut self, now: Option<Time>) -> Result<Prepared, PrepareError> {
        self.follow();
        self.follow_rules(now);
        self.unbind_stale();
        // What nothing can take away: no edit would help.
        let size = self.size().tokens;
        if size.min(self.tokens(self.state.system_layer())) > self.budget().hard {
            return Err(self.too_large(size));
        }
        self.rules();
        let refused = self.state.requests.refused;
        if self.state.progress.compaction.is_none() {
            self.begin(now);
        }
        let job = self.compact();
        // Only the hard limit waits for a summary that may be written beside the work.
        let over = self.size().tokens > self.budget().hard || refused.is_some();
        let waits = job.is_some() && (over || !self.profile.background);
        if job.is_none() && self.size().tokens > self.budget().hard {
            self.common_end();
            // What stands behind calls that wait for results cannot go while they wait.
            if self.size().tokens > self.budget().hard && self.log().waiting().is_some() {
                self.record(Entry::StepClosed);
                self.follow();
                self.common_end();
            }
        }
        if let Some(job) = job.filter(|_| waits) {
            return Ok(Prepared::Summarise(job));
        }
        self.unbind_stale();
        let (size, budget) = (self.size().tokens, self.budget());
        if size > budget.hard {
            return Err(self.too_large(size));
        }
        // What was refused would be refused again.
        if let Some(refused) = refused.filter(|refused| size >= *refused) {
            let (what, hard) = (TooLarge::Together, refused - Tokens(1));
            return Err(PrepareError::TooLarge { what, tokens: size, hard, window: refused });
        }
        Ok(Prepared::Send(self.send(size, now)))
    }

    /// Takes in that the request is sent.
    pub(super) fn send(&mut self, size: Tokens, now: Option<Time>) -> Ticket {
        if let Some(ticket) = self.state.requests.retried(self.state.view.measure()) {
            if let Some(time) = now {
                self.record(Entry::SentAgain { ticket, time });
            }
            self.prepared = true;
            return ticket;
        }
        let warn = self.budget().warn;
        let large = size > warn;
        if large && !self.state.requests.last.is_some_and(|before| before.large) {
            self.notice(Notice::Large { size, warn });
        }
        let (requests, view) = (&self.state.requests, &self.state.view);
        let sent = requests.cache.compare(view, self.meter(), now, &self.state.cache_rule());
        let ticket = requests.next_ticket();
        self.notice_cramped();
        let State { binding, view, log, limits, .. } = &mut self.state;
        let bound = limits.model.signs().then(|| binding.bound(view, log));
        let view = &self.state.view;
        self.record(Entry::Sent(SentRequest {
            ticket,
            time: now,
            size: view.measure(),
            prompt: size,
            billed: sent.billed,
            broke: sent.broke,
            cold: sent.cold,
            // Calls that wait for results get placeholders in this request, for good.
            closed: self.log().waiting().is_some(),
            large,
            excess: self.carrying().excess,
            whole: self.tokens(self.full()),
            prefix: bound.map(|bound| bound.prefix),
            after: bound.and_then(|bound| bound.after),
        }));
        self.checkpoints.pass(self.journal.end(), &self.state);
        self.prepared = true;
        ticket
    }

    /// Starts a compaction, if a trigger fires.
    fn begin(&mut self, now: Option<Time>) {
        let (requests, progress) = (&self.state.requests, &self.state.progress);
        let (size, calls) = (self.size().tokens, requests.calls);
        // The thinking that led to a call is worth most while its result is awaited.
        let awaits = self.model().binds && self.log().waiting().is_some();
        if awaits && size <= self.budget().hard && requests.refused.is_none() {
            return;
        }
        let version = self.log().frame_version();
        let stopped = progress.breaker.tripped(calls, size);
        // The same request again carries nothing more.
        let again = requests.retried(self.state.view.measure()).is_some();
        let carrying = if again { Carrying::default() } else { self.carrying() };
        let carried = if again { Tokens::ZERO } else { progress.carried + carrying.excess };
        let start = trigger::start(&Situation {
            profile: &self.profile,
            budget: self.budget(),
            size,
            last_prompt: requests.last_prompt,
            messages: self.log().messages().len(),
            calls,
            calls_since_full: progress.calls_since_full(calls),
            calls_expected: requests.calls_expected(),
            asked: progress.asked,
            refused: requests.refused.is_some(),
            cold: self.is_cold(now) || requests.cache.is_behind_another_frame(version),
            turn_ended: self.turn_ended(),
            carried,
            excess: carrying.excess,
            rewritten: carrying.rewritten,
            price: self.state.limits.model.price,
            rates: self.state.rates(),
            account: progress.account,
            stopped: stopped.is_some(),
        });
        if let Some(start) = start {
            let (why, target, full) = (start.why, start.target, start.full);
            let pays_back = (why == Why::PaysBack).then_some(PaysBack {
                carried,
                takes: carrying.excess,
                rewrites: carrying.rewritten,
            });
            self.record(Entry::CompactionBegan(Compaction { why, target, before: size, full, pays_back }));
        }
    }

    /// Counts what is new in the log of the kind of work, where something goes by it.
    fn follow_work(&mut self) {
        self.work.follow(&self.state.log, &self.profile.aliases);
    }

    /// What the profile demands before every call.
    fn rules(&mut self) {
        if !self.profile.rules.is_empty() {
            self.follow_work();
        }
        for strategy in self.profile.rules.clone() {
            self.climb(strategy, Why::Rule, Target::plain(Tokens::ZERO));
        }
        self.rules_seen = RulesSeen::all_of(self.log());
    }

    /// A person has spoken, and the model has not answered yet.
    fn turn_ended(&self) -> bool {
        self.log().turns().last().is_some_and(|turn| turn.ended || turn.first_step.is_none())
    }

    /// What is tried now.
    fn ladder(&self, full: bool) -> Vec<&'static Strategy> {
        if full {
            return vec![&FULL_SUMMARY];
        }
        let kind_of_work = || self.state.progress.task.unwrap_or_else(|| self.work.task());
        let first = self.profile.by_task.then(|| kind_of_work().order()).into_iter().flatten();
        first.chain(self.profile.ladder.iter().copied()).collect()
    }

    /// Goes on with the compaction, if one is being made: tries the ladder until the target is
    /// met. Gives a job if a rung waits for a summary.
    fn compact(&mut self) -> Option<Job> {
        if let Some(question) = self.state.progress.job.clone() {
            if self.asks_host() {
                return Some(self.job_of(question));
            }
            // It was asked under another profile: nobody writes it now.
            self.record(Entry::JobEnded { job: question.id, how: JobEnd::Dropped });
        }
        let Compaction { why, target, full, .. } = self.state.progress.compaction.clone()?;
        self.follow_work();
        // What pays back are folds, whatever the size is then.
        let folds_alone = self.profile.dial.is_some() && matches!(why, Why::PaysBack | Why::Cold);
        for target in self.targets(target, why) {
            for strategy in self.ladder(full) {
                if folds_alone && !strategy.folds {
                    continue;
                }
                if self.size().tokens <= target.size {
                    break;
                }
                if self.state.progress.failed.contains(&strategy) {
                    continue;
                }
                if let Rung::Waits = self.climb(strategy, why, target) {
                    return self.job();
                }
            }
        }
        let (requests, progress) = (&self.state.requests, &self.state.progress);
        // A compaction that failed for want of a summary says nothing of the next, and a profile that
        // works to its trigger compacts at every call.
        let counts = progress.failed.is_empty() && !progress.kept_history_at(requests.calls);
        let budget = self.budget();
        let trigger = (counts && budget.target < budget.trigger).then_some(budget.trigger);
        let after = self.size().tokens;
        self.record_and_watch(Entry::CompactionEnded { after, trigger });
        if matches!(why, Why::Forced(_)) && self.profile.dial.is_some() {
            // It has taken what it could.
            self.notice_room(after, Stays::ForNow);
        }
        None
    }

    /// The last resort of every profile, for a request over the hard limit. Strategies that take what is old make room
    /// for the next steps too, even if the first of them gets below the limit; what is new is cut only as far as the
    /// limit demands.
    fn common_end(&mut self) {
        let why = Why::Forced(Limit::Hard);
        for strategy in COMMON_END {
            // A cut is made by estimate: what is still over is cut again.
            for _ in 0..8 {
                let hard = self.budget().hard;
                let target = if strategy.takes_old { hard - self.next_steps() } else { hard };
                if self.size().tokens <= target {
                    return;
                }
                match self.climb(strategy, why, Target::plain(target)) {
                    Rung::Edits(0) => break,
                    Rung::Edits(_) | Rung::Waits => {}
                }
            }
        }
    }

    /// One rung: propose, check, apply, until the target is met; then look again.
    fn climb(&mut self, strategy: &'static Strategy, why: Why, target: Target) -> Rung {
        let size = self.size().tokens;
        let proposals = (strategy.propose)(&Context {
            log: self.log(),
            ledger: self.ledger(),
            view: &self.state.view,
            meter: self.meter(),
            sizes: self.sizes(),
            budget: &self.budget(),
            profile: &self.profile,
            // The mark is that of rules: a rung looks at everything.
            rules_seen: if why == Why::Rule { self.rules_seen } else { RulesSeen::default() },
            kept_opening: self.kept_opening(),
            declared: self.state.progress.task,
            work: &self.work,
            goes_on: self.state.progress.asked_by == Some(strategy),
            size,
            excess: size - target.size,
            newest: target.newest,
            asked: why == Why::Asked,
            takes_held: why == Why::Forced(Limit::Hard),
        });
        let mut made = 0;
        for proposal in proposals {
            let proposal = match proposal {
                Proposal::Fold(plan) => Proposal::Fold(self.with_links(plan, why, target)),
                Proposal::Inside(..) | Proposal::Hide(_) => proposal,
            };
            let Some(proposal) = self.with_whole_bonds(proposal) else { continue };
            let applied = match proposal {
                Proposal::Inside(kind, original) => self.edit_inside(kind, original, strategy.name, why),
                Proposal::Hide(spans) => self.hide(spans, strategy.name, why),
                Proposal::Fold(plan) if plan.by_code || why == Why::Rule || !self.asks_host() => {
                    self.fold(plan, strategy.name, why)
                }
                Proposal::Fold(plan) => match self.without_summary(strategy) {
                    // The summariser failed, and the history is kept unless it cannot be.
                    OnFailure::Keep if self.keeps_history() => match why {
                        Why::Forced(Limit::Hard) => self.fold(plan, strategy.name, why),
                        _ => continue,
                    },
                    _ if !self.summaries_fail() => match self.ask(plan, strategy, why) {
                        true => return Rung::Waits,
                        false => continue,
                    },
                    OnFailure::Extract | OnFailure::Keep => self.fold(plan, strategy.name, why),
                    OnFailure::Cut => self.cut(plan.spans, strategy.name, why),
                    OnFailure::Next => continue,
                },
            };
            match applied {
                Ok(_) => made += 1,
                Err(refusal) => self.notice(Notice::Refused { strategy: strategy.name, refusal }),
            }
        }
        if made > 0 {
            self.follow();
        }
        Rung::Edits(made)
    }

    /// The proposal without units whose other half it does not take; `None` if nothing is left.
    fn with_whole_bonds(&self, proposal: Proposal) -> Option<Proposal> {
        let whole = |spans| Some(self.log().with_whole_bonds(spans)).filter(|spans| !spans.is_empty());
        Some(match proposal {
            Proposal::Inside(kind, original) => Proposal::Inside(kind, original),
            Proposal::Hide(spans) => Proposal::Hide(whole(spans)?),
            Proposal::Fold(plan) => Proposal::Fold(FoldPlan { spans: whole(plan.spans.clone())?, ..plan }),
        })
    }

    /// Where the opening ends, if the profile keeps it and it is not too large for that.
    pub(super) fn kept_opening(&self) -> Position {
        let (none, opening) = (Position(0), self.log().opening());
        if self.profile.keep_opening == 0 || opening.is_empty() {
            return none;
        }
        // The opening stands first: no more than it is looked at.
        let first = self.state.view.parts().iter();
        let first = first.take_while(|part| part.source.start(self.ledger()) < opening.end);
        let of_opening = first.filter(|part| match part.source {
            Source::Message(at) => opening.contains(at) && part.message.role() != Role::System,
            _ => false,
        });
        let size = self.tokens(of_opening.map(|part| part.measure).sum());
        let room = self.room_beside_system().percent(self.profile.keep_opening);
        if size <= room { opening.end } else { none }
    }

    /// The host has summaries written.
    pub(super) fn asks_host(&self) -> bool {
        self.profile.summariser == Summariser::Host
    }

    /// So many summaries failed in a row that nobody is asked for a while.
    fn summaries_fail(&self) -> bool {
        self.state.progress.breaker.summaries_fail(self.state.requests.calls)
    }

    /// No summary came, and the profile wants its history kept then.
    fn keeps_history(&self) -> bool {
        let kept = self.state.progress.kept_history_at(self.state.requests.calls);
        self.profile.on_failure == OnFailure::Keep && (kept || self.summaries_fail())
    }

    /// Names what does not fit.
    fn too_large(&self, tokens: Tokens) -> PrepareError {
        let (parts, budget) = (self.state.view.parts(), self.budget());
        let is_system = |at: Position| self.log().system_messages().binary_search(&at).is_ok();
        let system = parts.iter().filter(|part| match part.source {
            Source::Message(at) => is_system(at),
            source => matches!(source, Source::Note | Source::Rules),
        });
        let system: Measure = system.map(|part| part.measure).sum();
        let system = self.tokens(self.state.view.fixed().measure + system);
        let largest = parts.iter().filter_map(|part| match part.source {
            Source::Message(at) if !is_system(at) => Some((self.tokens(part.measure), at)),
            _ => None,
        });
        let (what, tokens) = match largest.max() {
            _ if system > budget.hard => (TooLarge::System, system),
            Some((size, at)) if size.0 * 2 > tokens.0 => (TooLarge::Message(at), tokens),
            _ => (TooLarge::Together, tokens),
        };
        PrepareError::TooLarge { what, tokens, hard: budget.hard, window: budget.window }
    }
}
