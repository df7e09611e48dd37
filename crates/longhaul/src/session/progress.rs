//! How far compaction has come: what was asked for, the compaction on its way, the summary it
//! waits for, and the breaker.

use std::sync::Arc;

use super::journal::{Compaction, Entry, JobEnd};
use crate::edits::edit::{Limit, Why};
use crate::policy::account::Account;
use crate::policy::breaker::Breaker;
use crate::policy::strategy::Strategy;
use crate::policy::task::Task;
use crate::size::tokens::Tokens;
use crate::summary::SummaryPaid;
use crate::summary::job::Question;

/// Compaction, as the journal says.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// A person or the model asked for a compaction.
    pub(super) asked: bool,
    /// What it is to be about.
    pub(super) focus: Option<Box<str>>,
    pub(super) compaction: Option<Compaction>,
    /// Strategies of that compaction whose summaries failed.
    pub(super) failed: Vec<&'static Strategy>,
    /// The strategy of that compaction that asked for a summary last.
    pub(super) asked_by: Option<&'static Strategy>,
    /// The summary that was asked for.
    pub(super) job: Option<Arc<Question>>,
    pub(super) last_job: u64,
    /// What was billed for the summary that was asked for, its second attempt included.
    pub(super) paid: Option<SummaryPaid>,
    /// What was billed for all summaries.
    pub(super) paid_in_all: SummaryPaid,
    pub(super) breaker: Breaker,
    /// The kind of work, if the host says so.
    pub(super) task: Option<Task>,
    /// Tokens that a fold would have taken, summed over the calls since the last compaction.
    pub(super) carried: Tokens,
    /// What the conversation has cost.
    pub(super) account: Account,
    /// The number of calls when a summary failed and the history was kept.
    kept_history: Option<u64>,
    /// The number of calls when the last full summary was made.
    last_full: u64,
}

impl Progress {
    /// `calls` is the number of requests before the entry; `other_model` if the entry switches to a
    /// model of another name.
    pub(super) fn apply(&mut self, entry: &Entry, calls: u64, other_model: bool) {
        match entry {
            Entry::Asked { focus, by_model } => {
                self.asked = true;
                if !by_model {
                    self.focus = focus.clone();
                    // A compaction that waits for a summary has a weaker target: the next one
                    // starts anew.
                    self.drop_compaction();
                    self.breaker.reset();
                }
            }
            Entry::CompactionBegan(compaction) => {
                if !compaction.full && matches!(compaction.why, Why::Forced(Limit::Trigger) | Why::Cold) {
                    self.breaker.expire(calls, compaction.before);
                }
                (self.compaction, self.failed) = (Some(compaction.clone()), Vec::new());
                self.asked_by = None;
            }
            Entry::Sent(sent) => {
                self.carried += sent.excess;
                self.account.sent(sent.billed, sent.whole);
            }
            Entry::CompactionEnded { after, trigger } => {
                self.carried = Tokens::ZERO;
                if let Some(compaction) = self.compaction.take() {
                    if compaction.full {
                        self.last_full = calls;
                    }
                    if let Some(trigger) = trigger {
                        self.breaker.compacted(calls, compaction.before, *after, *trigger);
                    }
                }
                self.failed.clear();
                (self.asked, self.focus) = (false, None);
            }
            Entry::Edit(edit) if Strategy::find(&edit.strategy).is_some_and(|strategy| strategy.full) => {
                self.last_full = calls;
            }
            Entry::JobOpened(question) => {
                if question.attempt == 1 {
                    self.paid = None;
                }
                (self.last_job, self.asked_by) = (question.id, Some(question.strategy));
                self.job = Some(question.clone());
            }
            Entry::SummaryPaid { job, paid } => {
                self.paid_in_all += *paid;
                self.account.summary_paid(*paid);
                if self.job.as_ref().is_some_and(|open| open.id == *job) {
                    *self.paid.get_or_insert_default() += *paid;
                }
            }
            Entry::JobEnded { how, .. } => self.job_ended(*how, calls),
            Entry::Undo { held: true, .. } => self.breaker.reset(),
            Entry::Refused { .. } => {
                // The compaction worked to a target in a window that is not there.
                self.drop_compaction();
                self.breaker.reset();
            }
            Entry::Switched { .. } => {
                // The compaction worked to a target in the window of the other model.
                self.drop_compaction();
                self.job = None;
                if other_model {
                    self.breaker.reset();
                }
            }
            Entry::Limited(_) => self.drop_compaction(),
            Entry::Task(task) => self.task = Some(*task),
            _ => {}
        }
    }

    fn job_ended(&mut self, how: JobEnd, calls: u64) {
        let Some(question) = self.job.take() else { return };
        match how {
            JobEnd::Folded => self.breaker.summary(calls, true),
            JobEnd::Extracted | JobEnd::Cut | JobEnd::Refused => self.breaker.summary(calls, false),
            JobEnd::Kept => {
                self.breaker.summary(calls, false);
                self.kept_history = Some(calls);
            }
            JobEnd::Skipped => {
                self.breaker.summary(calls, false);
                self.failed.push(question.strategy);
            }
            JobEnd::Again | JobEnd::Dropped => {}
        }
    }

    fn drop_compaction(&mut self) {
        (self.compaction, self.failed) = (None, Vec::new());
    }

    /// At this call a summary failed, and the history was kept.
    pub(super) fn kept_history_at(&self, calls: u64) -> bool {
        self.kept_history == Some(calls)
    }

    /// Calls since the last full summary.
    pub(super) fn calls_since_full(&self, calls: u64) -> u64 {
        calls.saturating_sub(self.last_full)
    }
}
