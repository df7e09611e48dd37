//! Folds and hides: runs of messages that become a summary or a marker. Who writes the summary,
//! what is asked for, what becomes of an answer, and what must be restated.

use super::Session;
use crate::conversation::log::{At, Span};
use crate::conversation::message::Block;
use crate::edits::edit::{Edit, EditId, EditKind, Why};
use crate::edits::guard::Refusal;
use crate::edits::ledger::reaches_beyond;
use crate::policy::profile::OnFailure;
use crate::policy::strategy::{FOLD_KEPT_ROUNDS, FULL_SUMMARY, FoldPlan, INCREMENTS};
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::summary::covered::Covered;
use crate::summary::job::{Job, Outcome, Resolved};
use crate::summary::{self, Form, Language, Material, Written};
use crate::text::names::{names, names_in_json};
use crate::view::Source;
use crate::view::keep::{self, KeepItem, KeepKey, Kept};

/// A summary of fewer tokens is not worth asking for.
const LEAST_ANSWER: Tokens = Tokens(40);

/// What is said of a summary that never came.
const TIMED_OUT: &str = "Summary generation timed out";
/// What stands in the place of what was cut without one.
const NO_SUMMARY: &str = "Summary generation timed out, keeping recent history only.";

impl Session {
    /// Answers a job. The fold is made if the question still stands. An answer that is empty,
    /// too long or an error is asked for once more; then the profile's rule for failures holds.
    pub fn resolve(&mut self, job: u64, outcome: Outcome) -> Resolved {
        let Some(job) = self.job.take_if(|open| open.id == job) else {
            return Resolved::Dropped("no such job is open".to_owned());
        };
        self.follow();
        let covered = self.covered(&job.spans);
        if covered.original().handle() != job.covers {
            return Resolved::Dropped("what it covers has changed since".to_owned());
        }
        let timed_out = outcome == Outcome::TimedOut;
        match self.usable(&job, outcome, &covered) {
            Ok(written) => self.folded(job, Some(written), None),
            Err(problem) if job.attempt == 1 && !timed_out => {
                self.next_job += 1;
                let again =
                    Job { id: self.next_job, attempt: 2, problem: Some(problem.as_str().into()), ..job };
                self.job = Some(again.clone());
                Resolved::Again(Box::new(again), problem)
            }
            Err(problem) => self.unsummarised(job, problem),
        }
    }

    /// The summary that an answer makes, or what is wrong with it. It is put into its form, and what code
    /// knows better is added: a model may forget a file, the log does not.
    fn usable(&self, job: &Job, outcome: Outcome, covered: &Covered) -> Result<Written, String> {
        let parts = match outcome {
            Outcome::Summary(text) => vec![text],
            Outcome::Parts(parts) => parts,
            Outcome::Failed(problem) => return Err(problem),
            Outcome::TimedOut => return Err(TIMED_OUT.to_owned()),
        };
        if parts.is_empty() || parts.iter().any(|part| part.trim().is_empty()) {
            return Err("the summary is empty".to_owned());
        }
        let size = self.tokens(parts.iter().map(|part| self.meter.text(part)).sum());
        if size > job.limit {
            return Err(format!("the summary has {size} tokens, {} are allowed", job.limit));
        }
        let (material, aliases) = (covered.material(&self.ledger), &self.profile.aliases);
        Ok(summary::completed(job.template, job.language, &parts, &material, aliases))
    }

    /// Makes the fold of a job.
    fn folded(&mut self, job: Job, written: Option<Written>, problem: Option<String>) -> Resolved {
        let plan = FoldPlan {
            spans: job.spans,
            placement: job.placement,
            template: job.template,
            limit: None,
            by_code: false,
        };
        let folded = self.fold(plan, written, job.strategy, job.why);
        self.breaker.summary(self.calls, problem.is_none() && folded.is_ok());
        self.follow();
        match (folded, problem) {
            (Err(refusal), _) => Resolved::Dropped(refusal.to_string()),
            (Ok(_), None) => Resolved::Folded,
            (Ok(_), Some(problem)) => Resolved::Extracted(problem),
        }
    }

    /// There is no summary: what then, the profile says.
    fn unsummarised(&mut self, job: Job, problem: String) -> Resolved {
        // A chunk is one of many, and the kept rounds are to be kept: the extractor writes these.
        let one_of_many = [INCREMENTS.name, FOLD_KEPT_ROUNDS.name].contains(&job.strategy);
        if self.profile.on_failure == OnFailure::Extract || one_of_many {
            return self.folded(job, None, Some(problem));
        }
        self.breaker.summary(self.calls, false);
        match self.profile.on_failure {
            OnFailure::Cut => match self.hide_as(job.spans, NO_SUMMARY, job.strategy, job.why) {
                Ok(_) => {
                    self.follow();
                    let why = if problem == TIMED_OUT { String::new() } else { format!(" ({problem})") };
                    Resolved::Cut(format!("{NO_SUMMARY}{why}"))
                }
                Err(refusal) => Resolved::Dropped(refusal.to_string()),
            },
            OnFailure::Next => {
                let failed = self.compaction.iter_mut().map(|compaction| &mut compaction.failed);
                failed.for_each(|failed| failed.push(job.strategy.into()));
                Resolved::Kept(problem)
            }
            OnFailure::Keep | OnFailure::Extract => {
                self.kept_at = Some(self.calls);
                Resolved::Kept(problem)
            }
        }
    }

    /// A job for these runs; `None` if the guard would refuse the fold anyway.
    pub(super) fn ask(&mut self, plan: FoldPlan, strategy: &'static str, why: Why) -> Option<Job> {
        let FoldPlan { spans, placement, template, limit, .. } = plan;
        let covered = self.covered(&spans);
        let before = self.tokens(self.shown_size(&spans));
        let trial =
            EditKind::Fold { spans: spans.clone(), placement, kept: vec![], text: "".into(), summary: None };
        let (keep, _) = self.kept_in(&spans);
        let kept = self.tokens(self.meter.text(&keep::render(&keep)));
        self.check(why).edit(&trial, before + kept, kept).ok()?;
        let limit = limit.unwrap_or_else(|| self.summary_room(before - kept));
        if limit < LEAST_ANSWER {
            return None;
        }
        self.next_job += 1;
        Some(Job {
            id: self.next_job,
            revision: self.ledger.revision(),
            covers: covered.original().handle(),
            earlier: covered.earlier_text().map(Into::into),
            messages: covered.messages(),
            limit,
            template,
            language: self.language(),
            focus: self.focus.clone(),
            model: self.profile.summary_model.clone(),
            timeout: self.profile.summary_timeout,
            attempt: 1,
            problem: None,
            placement,
            spans,
            why,
            strategy,
        })
    }

    /// The language of the conversation.
    fn language(&self) -> Language {
        /// Its start tells.
        const LOOKED_AT: usize = 2_000;
        Language::of(self.log.messages().iter().take(LOOKED_AT).map(|message| &**message))
    }

    /// How long a summary may be: its share of the window, and less than a third of what it
    /// stands for.
    fn summary_room(&self, before: Tokens) -> Tokens {
        self.budget.window.percent(self.profile.summary).min(Tokens(before.0 / 3))
    }

    /// Folds runs into a summary: the one given, or one that code writes.
    pub(super) fn fold(
        &mut self,
        plan: FoldPlan,
        written: Option<Written>,
        strategy: &str,
        why: Why,
    ) -> Result<EditId, Refusal> {
        let FoldPlan { spans, placement, template, limit, .. } = plan;
        let covered = self.covered(&spans);
        let original = covered.original();
        let (handle, before) = (original.handle(), self.tokens(self.shown_size(&spans)));
        let (keep, kept) = self.kept_in(&spans);
        // What is restated whole anyway is not what the summary stands for.
        let restated: Vec<KeepItem> = keep.iter().filter(|item| item.source.is_some()).cloned().collect();
        let room = self.summary_room(before - self.tokens(self.meter.text(&keep::render(&restated))));
        let room = limit.map_or(room, |limit| limit.min(before));
        // What the tail holds and the fold takes in leaves the tail.
        let moved: Vec<KeepItem> =
            keep.iter().filter(|item| item.source.is_none() && !self.is_shown(item)).cloned().collect();
        let before = before + self.tokens(self.meter.text(&keep::render(&moved)));
        let written = written.unwrap_or_else(|| {
            // The goal is restated whole: once is enough.
            let goal = keep.iter().find(|item| item.key == KeepKey::Goal).and_then(|item| item.source);
            let material = covered.material(&self.ledger);
            let told = material.iter().filter(|material| match material {
                Material::Summary(_) | Material::Gap => true,
                Material::Message(at, _) => goal != Some(*at),
            });
            let told: Vec<&Material> = told.collect();
            let form = Form {
                template,
                language: self.language(),
                // The neutral measure of a token; what is over is refused or folded again.
                limit: usize::try_from(room.0).unwrap_or(usize::MAX).saturating_mul(3),
                goal_below: keep.iter().any(|item| item.key == KeepKey::Goal),
                focus: self.focus.as_deref(),
                aliases: &self.profile.aliases,
                range: (
                    spans.first().map_or(0, |span| span.start.0 + 1),
                    spans.last().map_or(0, |span| span.end.0),
                ),
            };
            summary::write(&told, form, self.names_after(&spans))
        });
        let (text, summary) = written.into_fold(&keep::render(&keep), handle, covered.count());
        let mut depends = covered.folds();
        depends.extend(self.hiders_of(&kept, &spans));
        let text_shown = text.as_str().into();
        let kind = EditKind::Fold { spans, placement, kept, text: text_shown, summary: Some(summary) };
        let id = self.replace_runs(kind, &text, before, handle, original, strategy, why, depends)?;
        if strategy == FULL_SUMMARY.name {
            self.full_at = self.calls;
        }
        Ok(id)
    }

    /// Names that are mentioned behind these runs, as far as it is shown.
    fn names_after(&self, spans: &[Span]) -> impl Iterator<Item = &str> {
        let end = spans.last().map_or(At(0), |span| span.end);
        let after = self
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
        let (items, _) = self.kept_in(&spans);
        let moved: Vec<KeepItem> = items.into_iter().filter(|item| self.is_shown(item)).collect();
        let moved = self.tokens(self.meter.text(&keep::render(&moved)));
        let (handle, before) = (original.handle(), self.tokens(self.shown_size(&spans)) - moved);
        let space = if says.is_empty() { "" } else { " " };
        let text =
            format!("⟦{says}{space}{} earlier messages hidden; recall {}⟧", covered.count(), handle.short());
        let kind = EditKind::Hide { spans, text: text.as_str().into() };
        self.replace_runs(kind, &text, before, handle, original, strategy, why, Vec::new())
    }

    /// The items that would go with these runs, and those that stand in the tail: a fold
    /// takes them in, since it changes what follows anyway.
    fn kept_in(&self, spans: &[Span]) -> (Vec<KeepItem>, Vec<Kept>) {
        let gone = |at: At| spans.iter().any(|span| span.contains(at));
        let steady =
            |item: &&KeepItem| !matches!(item.key, KeepKey::Rules(_) | KeepKey::Todos | KeepKey::GitStat);
        let restated = |item: &&KeepItem| match item.source {
            Some(at) => gone(at),
            None => !self.kept_elsewhere(item, spans),
        };
        let items: Vec<KeepItem> = self.keep.items.iter().filter(steady).filter(restated).cloned().collect();
        let kept = items.iter().map(|item| Kept { key: item.key.clone(), text: item.handle }).collect();
        (items, kept)
    }

    /// Edits that hide a fold which restates one of these items. What is restated again hangs
    /// on them: were one undone, the item would be there twice.
    fn hiders_of(&self, kept: &[Kept], spans: &[Span]) -> Vec<EditId> {
        let mut hiders = Vec::new();
        for (edit, active) in self.ledger.edits() {
            let EditKind::Fold { kept: others, .. } = &edit.kind else { continue };
            if !active || !others.iter().any(|other| kept.contains(other)) {
                continue;
            }
            let covering = edit.kind.spans().first().and_then(|span| self.ledger.covering(span.start));
            let Some((outer, id)) = covering.filter(|(_, id)| *id != edit.id) else { continue };
            let inside = spans.iter().any(|span| span.start <= outer.start && outer.end <= span.end);
            if !inside && !hiders.contains(&id) {
                hiders.push(id);
            }
        }
        hiders
    }

    /// A visible fold that restates what this edit restates too.
    pub(super) fn also_keeps(&self, edit: &Edit) -> Option<EditId> {
        let EditKind::Fold { kept, spans, .. } = &edit.kind else { return None };
        let mut others = self.ledger.outermost().filter(|(outer, id)| {
            let inside = spans.iter().any(|span| span.start <= outer.start && outer.end <= span.end);
            // One that holds this edit shows in its place.
            let holds = || self.ledger.get(*id).is_some_and(|outer| !reaches_beyond(&edit.kind, &outer.kind));
            !inside && !holds()
        });
        others.find_map(|(_, id)| match &self.ledger.get(id)?.kind {
            EditKind::Fold { kept: others, .. } => {
                others.iter().any(|other| kept.contains(other)).then_some(id)
            }
            _ => None,
        })
    }

    /// True if a fold that stays restates the item.
    fn kept_elsewhere(&self, item: &KeepItem, spans: &[Span]) -> bool {
        self.ledger.outermost().any(|(span, id)| {
            let stays = !spans.iter().any(|new| new.start <= span.start && span.end <= new.end);
            let kept = self.ledger.get(id).is_some_and(|edit| match &edit.kind {
                EditKind::Fold { kept, .. } => {
                    kept.iter().any(|kept| kept.key == item.key && kept.text == item.handle)
                }
                _ => false,
            });
            stays && kept
        })
    }

    /// What these runs hold.
    fn covered(&self, spans: &[Span]) -> Covered {
        Covered::of(&self.log, &self.ledger, spans)
    }

    /// The size of what the view shows of these runs.
    fn shown_size(&self, spans: &[Span]) -> Measure {
        let inside = |at: At| spans.iter().any(|span| span.contains(at));
        let mut size = Measure::default();
        for part in self.view.parts() {
            let shows = match part.source {
                Source::Message(at) => inside(at),
                Source::Edit(id) => {
                    let first = self.ledger.get(id).and_then(|edit| edit.kind.spans().first().copied());
                    first.is_some_and(|span| inside(span.start))
                }
                _ => false,
            };
            if shows {
                size += part.measure;
            }
        }
        size
    }
}
