//! Summaries that the host has written: what is asked for and what that costs, what becomes of an answer, and
//! what is done without one.

use std::sync::Arc;

use super::Session;
use super::folding::{NO_SUMMARY, TOKENS_OF_WORD};
use super::journal::{Entry, JobEnd};
use crate::edits::edit::{EditKind, Why};
use crate::policy::profile::OnFailure;
use crate::policy::strategy::{FoldPlan, Strategy};
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::size::usage::{Billed, Usage};
use crate::summary::covered::Covered;
use crate::summary::job::{Job, Outcome, Question, Resolved};
use crate::summary::known::Known;
use crate::summary::{self, FULL, SummaryBill, SummaryPaid, SummaryPrice, Written};
use crate::view::keep;

/// A summary of fewer tokens is not worth asking for.
const LEAST_ANSWER: Tokens = Tokens(40);

/// What is said of a summary that never came.
const TIMED_OUT: &str = "Summary generation timed out";

impl Session {
    /// The summary that is asked for, if one is: to be written beside the work, or while it waits.
    pub fn job(&self) -> Option<Job> {
        self.state.progress.job.clone().map(|question| self.job_of(question))
    }

    /// A question with what it is to be answered from.
    pub(super) fn job_of(&self, question: Arc<Question>) -> Job {
        let covered = self.covered(&question.spans);
        Job { question, earlier: covered.earlier_text().map(Into::into), messages: covered.messages() }
    }

    /// Answers a job. The fold is made if the question still stands. An answer that is empty,
    /// too long or an error is asked for once more; then the profile's rule for failures holds.
    pub fn resolve(&mut self, job: u64, outcome: Outcome) -> Resolved {
        let Some(question) = self.state.progress.job.clone().filter(|open| open.id == job) else {
            return Resolved::Dropped("no such job is open".to_owned());
        };
        self.follow();
        let covered = self.covered(&question.spans);
        if covered.original().handle() != question.covers {
            self.record(Entry::JobEnded { job, how: JobEnd::Dropped });
            return Resolved::Dropped("what it covers has changed since".to_owned());
        }
        let timed_out = outcome == Outcome::TimedOut;
        match self.usable(&question, outcome, &covered) {
            Ok(written) => self.folded(&question, Some(written), None),
            Err(problem) if question.attempt == 1 && !timed_out => {
                self.record(Entry::JobEnded { job, how: JobEnd::Again });
                let (id, problem_said) =
                    (self.state.progress.last_job.saturating_add(1), Some(problem.as_str().into()));
                let again =
                    Arc::new(Question { id, attempt: 2, problem: problem_said, ..(*question).clone() });
                self.record(Entry::JobOpened(again.clone()));
                Resolved::Again(Box::new(self.job_of(again)), problem)
            }
            Err(problem) => self.unsummarised(&question, problem),
        }
    }

    /// The summary that an answer makes, or what is wrong with it. It is put into its form, and what
    /// code knows better is added: a model may forget a file, the log does not.
    fn usable(&self, question: &Question, outcome: Outcome, covered: &Covered) -> Result<Written, String> {
        let parts = match outcome {
            Outcome::Summary(text) => vec![text],
            Outcome::Parts(parts) => parts,
            Outcome::Failed(problem) => return Err(problem),
            Outcome::TimedOut => return Err(TIMED_OUT.to_owned()),
        };
        if parts.is_empty() || parts.iter().any(|part| part.trim().is_empty()) {
            return Err("the summary is empty".to_owned());
        }
        let size = self.tokens(parts.iter().map(|part| self.meter().text(part)).sum());
        if size > question.limit {
            return Err(format!("the summary has {size} tokens, {} are allowed", question.limit));
        }
        let (material, aliases) = (covered.material(self.ledger()), &self.profile.aliases);
        let known = Known::of(self.log(), &question.spans);
        let Question { template, language, words, .. } = *question;
        let written = summary::completed(template, language, &parts, &material, &known, aliases, words);
        if written.says_nothing() {
            return Err("the summary says nothing".to_owned());
        }
        let (count, most) = (written.words(), words.unwrap_or(usize::MAX));
        if count > most {
            return Err(format!("the summary has {count} words, {most} are allowed"));
        }
        Ok(written)
    }

    /// Makes the fold of a job.
    fn folded(&mut self, question: &Question, written: Option<Written>, problem: Option<String>) -> Resolved {
        let plan = FoldPlan {
            spans: question.spans.clone(),
            placement: question.placement,
            template: question.template,
            limit: None,
            words: question.words,
            by_code: false,
            chain: Vec::new(),
        };
        let bill = SummaryBill { expected: question.price, paid: self.state.progress.paid };
        let folded = self.fold_as(plan, written, Some(bill), question.strategy.name, question.why);
        let (how, resolved) = match (folded, problem) {
            (Err(refusal), _) => (JobEnd::Refused, Resolved::Dropped(refusal.to_string())),
            (Ok(_), None) => (JobEnd::Folded, Resolved::Folded),
            (Ok(_), Some(problem)) => (JobEnd::Extracted, Resolved::Extracted(problem)),
        };
        self.record_and_watch(Entry::JobEnded { job: question.id, how });
        self.follow();
        resolved
    }

    /// What is done where no summary comes: the profile says, and what its strategy can do without one.
    pub(super) fn without_summary(&self, strategy: &Strategy) -> OnFailure {
        match self.profile.on_failure {
            // Behind the full summary there is no next strategy.
            OnFailure::Next if strategy.full => OnFailure::Extract,
            _ if strategy.extracts => OnFailure::Extract,
            on_failure => on_failure,
        }
    }

    /// There is no summary: what then, the profile says.
    fn unsummarised(&mut self, question: &Question, problem: String) -> Resolved {
        let (how, resolved) = match self.without_summary(question.strategy) {
            OnFailure::Extract => return self.folded(question, None, Some(problem)),
            OnFailure::Cut => match self.cut(question.spans.clone(), question.strategy.name, question.why) {
                Ok(_) => {
                    let why = if problem == TIMED_OUT { String::new() } else { format!(" ({problem})") };
                    (JobEnd::Cut, Resolved::Cut(format!("{NO_SUMMARY}{why}")))
                }
                Err(refusal) => (JobEnd::Refused, Resolved::Dropped(refusal.to_string())),
            },
            OnFailure::Next => (JobEnd::Skipped, Resolved::Kept(problem)),
            OnFailure::Keep => (JobEnd::Kept, Resolved::Kept(problem)),
        };
        self.record_and_watch(Entry::JobEnded { job: question.id, how });
        self.follow();
        resolved
    }

    /// Asks for a summary of these runs; false if the guard would refuse the fold anyway.
    pub(super) fn ask(&mut self, plan: FoldPlan, strategy: &'static Strategy, why: Why) -> bool {
        let FoldPlan { spans, placement, template, limit, words, .. } = plan;
        let covered = self.covered(&spans);
        let before = self.tokens(self.shown_size(&spans));
        let text = self.answered(&spans, "").into();
        let trial = EditKind::Fold { spans: spans.clone(), placement, kept: vec![], text, summary: None };
        let keep = self.keep.restated_by(&spans, self.ledger(), *template == FULL);
        let kept = self.tokens(self.meter().text(&keep::render(&keep)));
        if self.check(why).edit(&trial, before + kept, kept).is_err() {
            return false;
        }
        let limit = match words {
            Some(words) => Tokens(words as u64 * TOKENS_OF_WORD).min(before),
            None => limit.unwrap_or_else(|| self.summary_room(before - kept)),
        };
        if limit < LEAST_ANSWER {
            return false;
        }
        let mut question = Question {
            id: self.state.progress.last_job.saturating_add(1),
            covers: covered.original().handle(),
            limit,
            words,
            template,
            language: self.language(),
            focus: self.state.progress.focus.clone(),
            model: self.profile.summary_model.clone(),
            timeout: self.profile.summary_timeout,
            attempt: 1,
            price: SummaryPrice::default(),
            problem: None,
            placement,
            spans,
            why,
            strategy,
        };
        question.price = self.summary_price(&question);
        self.record(Entry::JobOpened(Arc::new(question)));
        true
    }

    /// What asking this is expected to cost, in either form.
    fn summary_price(&self, question: &Question) -> SummaryPrice {
        let covered = self.covered(&question.spans);
        let text = |text: &str| self.meter().text(text);
        let directive = text(&question.directive());
        let quoted: Measure = covered.positions().map(|at| self.sizes()[at.index()]).sum();
        let earlier = covered.earlier_text().as_deref().map(text).unwrap_or_default();
        let fresh = Billed { read: Tokens::ZERO, written: self.tokens(quoted + earlier + directive) };

        let (cache, rule) = (&self.state.requests.cache, self.state.cache_rule());
        let sent = cache.compare(&self.state.view, self.meter(), None, &rule).billed;
        let read = if question.why == Why::Cold { Tokens::ZERO } else { sent.read };
        let asked = self.tokens(directive);
        let whole = sent.read + sent.written + asked;
        let warm = Billed { read, written: whole - read };
        let name = question.model.as_deref();
        let on_wire = self.log().frame().and_then(|frame| frame.model.as_deref());
        let same = name.is_none() || name == Some(&*self.model().name) || name == on_wire;
        let fits = whole <= self.budget().hard;
        SummaryPrice { fresh, warm: (same && fits).then_some(warm) }
    }

    /// Takes in what a provider billed for a call that was made for a job. The host says so before it
    /// resolves the job.
    pub fn summary_paid(&mut self, job: u64, usage: &Usage) {
        self.record(Entry::SummaryPaid { job, paid: SummaryPaid::of(usage) });
    }

    /// What was billed for all summaries of the session, as far as the host said so.
    pub fn paid_for_summaries(&self) -> SummaryPaid {
        self.state.progress.paid_in_all
    }
}
