//! Folds and hides: runs of messages that become a summary or a marker. Who writes the summary,
//! what is asked for, what becomes of an answer, and what must be restated.

use std::sync::Arc;

use super::Session;
use super::editing::Replacement;
use super::journal::{Entry, JobEnd};
use crate::conversation::log::{Position, Span};
use crate::conversation::message::Block;
use crate::edits::edit::{EditId, EditKind, Why};
use crate::edits::guard::Refusal;
use crate::policy::profile::OnFailure;
use crate::policy::strategy::{FoldPlan, Strategy};
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::summary::covered::Covered;
use crate::summary::job::{Job, Outcome, Question, Resolved};
use crate::summary::known::Known;
use crate::summary::{self, Asked, FULL, Form, Language, Material, Restated, Written};
use crate::text::count;
use crate::text::names::{names, names_in_json};
use crate::view::Source;
use crate::view::keep::{self, KeepItem, KeepKey, Kept};

/// A summary of fewer tokens is not worth asking for.
const LEAST_ANSWER: Tokens = Tokens(40);

/// A word of a summary has at most so many tokens, about: paths and names are long.
const TOKENS_OF_WORD: u64 = 3;

/// Opens what is said of requests that stand in the view and are answered where it does not show.
const ANSWERED: &str = "⟦Answered already:⟧";
/// What is said of a summary that never came.
const TIMED_OUT: &str = "Summary generation timed out";
/// What stands in the place of what was cut without one.
const NO_SUMMARY: &str = "Summary generation timed out, keeping recent history only.";

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
        let (count, most) = (count::words(&written.text), words.unwrap_or(usize::MAX));
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
        };
        let folded = self.fold(plan, written, question.strategy.name, question.why);
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

    /// Hides runs that nobody summarised.
    pub(super) fn cut(&mut self, spans: Vec<Span>, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        self.hide_as(spans, NO_SUMMARY, strategy, why)
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
        self.record(Entry::JobOpened(Arc::new(Question {
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
            problem: None,
            placement,
            spans,
            why,
            strategy,
        })));
        true
    }

    /// The language of the conversation.
    fn language(&self) -> Language {
        /// Its start tells.
        const LOOKED_AT: usize = 2_000;
        Language::of(self.log().messages().iter().take(LOOKED_AT).map(|message| &**message))
    }

    /// How long a summary may be: its share of the window, and less than a third of what it
    /// stands for.
    fn summary_room(&self, before: Tokens) -> Tokens {
        self.budget().window.percent(self.profile.summary).min(Tokens(before.0 / 3))
    }

    /// Folds runs into a summary: the one given, or one that code writes.
    pub(super) fn fold(
        &mut self,
        plan: FoldPlan,
        written: Option<Written>,
        strategy: &str,
        why: Why,
    ) -> Result<EditId, Refusal> {
        let FoldPlan { spans, placement, template, limit, words, by_code } = plan;
        let covered = self.covered(&spans);
        let original = covered.original();
        let (handle, before) = (original.handle(), self.tokens(self.shown_size(&spans)));
        let keep = self.keep.restated_by(&spans, self.ledger(), *template == FULL);
        let kept: Vec<Kept> = keep.iter().map(Kept::of).collect();
        // What is restated whole anyway is not what the summary stands for.
        let restated: Vec<KeepItem> = keep.iter().filter(|item| item.source.is_some()).cloned().collect();
        let told = before - self.tokens(self.meter().text(&keep::render(&restated)));
        let room = match words {
            Some(words) => Tokens(words as u64 * TOKENS_OF_WORD).min(Tokens(told.0 / 2)),
            None => limit.map_or_else(|| self.summary_room(told), |limit| limit.min(before)),
        };
        // What the tail holds and the fold takes in leaves the tail.
        let moved: Vec<KeepItem> = keep
            .iter()
            .filter(|item| item.source.is_none() && !keep::is_shown(item, self.log(), self.ledger()))
            .cloned()
            .collect();
        let before = before + self.tokens(self.meter().text(&keep::render(&moved)));
        let written = written.unwrap_or_else(|| {
            // The goal is restated whole: once is enough.
            let goal = keep.iter().find(|item| item.key == KeepKey::Goal).and_then(|item| item.source);
            let material = covered.material(self.ledger());
            let is_goal = |told: &&Material| matches!(told, Material::Message(at, _) if goal == Some(*at));
            let told: Vec<&Material> = material.iter().filter(|told| !is_goal(told)).collect();
            let form = Form {
                template,
                language: self.language(),
                // The neutral measure of a token; what is over is refused or folded again.
                limit: usize::try_from(room.0).unwrap_or(usize::MAX).saturating_mul(3),
                words,
                goal: keep.iter().any(|item| item.key == KeepKey::Goal).then(|| template.restates()),
                focus: self.state.progress.focus.as_deref(),
                aliases: &self.profile.aliases,
                known: Known::of(self.log(), &spans),
            };
            summary::write(&told, form, self.names_after(&spans))
        });
        if written.says_nothing() {
            // Summaries that are merged say something already.
            return match by_code {
                true => Err(Refusal::Nothing("the summary would say nothing")),
                false => self.hide(spans, strategy, why),
            };
        }
        let recall = self.state.recall_by.says(&handle.short());
        let restated = Restated { text: &keep::render(&keep), place: template.restates() };
        let (mut text, summary) = written.into_fold(restated, &recall, covered.count());
        text.push_str(&self.answered(&spans, &text));
        let mut depends = covered.folds();
        depends.extend(keep::hiders_of(&kept, &spans, self.ledger()));
        let summary = Some(summary);
        let kind = EditKind::Fold { spans, placement, kept, text: text.into(), summary };
        self.replace_runs(Replacement { kind, before, original: handle, depends }, strategy, why)
    }

    /// Names that are mentioned behind these runs, as far as it is shown.
    fn names_after(&self, spans: &[Span]) -> impl Iterator<Item = &str> {
        let end = spans.last().map_or(Position(0), |span| span.end);
        let after = self
            .state
            .view
            .parts()
            .iter()
            .filter(move |part| matches!(part.source, Source::Message(at) if at >= end));
        let texts = after.flat_map(|part| part.message.blocks()).filter_map(|block| match block {
            Block::Text(b) => Some(names(&b.text)),
            Block::ToolCall(b) => Some(names_in_json(b.arguments.as_str())),
            Block::ToolResult(b) => Some(names(&b.text)),
            _ => None,
        });
        texts.flatten()
    }

    pub(super) fn hide(&mut self, spans: Vec<Span>, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        self.hide_as(spans, "", strategy, why)
    }

    /// Hides runs, and says why.
    fn hide_as(&mut self, spans: Vec<Span>, says: &str, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        let covered = self.covered(&spans);
        let original = covered.original();
        // What must be kept and is shown nowhere else moves to the tail.
        let items = self.keep.restated_by(&spans, self.ledger(), false).into_iter();
        let moved: Vec<KeepItem> =
            items.filter(|item| keep::is_shown(item, self.log(), self.ledger())).collect();
        let moved = self.tokens(self.meter().text(&keep::render(&moved)));
        let (handle, before) = (original.handle(), self.tokens(self.shown_size(&spans)) - moved);
        let space = if says.is_empty() { "" } else { " " };
        let recall = self.state.recall_by.says(&handle.short());
        let mut text = format!("⟦{says}{space}{} earlier messages hidden; {recall}⟧", covered.count());
        text.push_str(&self.answered(&spans, ""));
        let kind = EditKind::Hide { spans, text: text.into() };
        let depends = Vec::new();
        self.replace_runs(Replacement { kind, before, original: handle, depends }, strategy, why)
    }

    /// Says of requests that are answered inside these runs, and stand elsewhere, that they are done. `said`
    /// is what is said of these runs already.
    fn answered(&self, spans: &[Span], said: &str) -> String {
        let requests = self.log().answered_by(spans).into_iter();
        let lines = requests.filter_map(|at| Asked::of(self.log(), at).done());
        let missing: Vec<String> = lines.filter(|line| !said.contains(line)).collect();
        if missing.is_empty() { String::new() } else { format!("\n{ANSWERED}\n{}", missing.join("\n")) }
    }

    /// What these runs hold.
    fn covered(&self, spans: &[Span]) -> Covered {
        Covered::of(self.log(), self.ledger(), spans)
    }

    /// The size of what the view shows of these runs.
    fn shown_size(&self, spans: &[Span]) -> Measure {
        let inside = |at: Position| spans.iter().any(|span| span.contains(at));
        let shown = self.state.view.parts().iter().filter(|part| match part.source {
            Source::Message(_) | Source::Edit(_) => inside(part.source.start(self.ledger())),
            Source::Note | Source::Rules | Source::Tail => false,
        });
        shown.map(|part| part.measure).sum()
    }
}
