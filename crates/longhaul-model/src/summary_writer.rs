//! The summaries of one session, written beside its work or while it waits.

use std::sync::Arc;

use longhaul::{Job, Outcome, Resolved, Session, Tokens};
use tokio::task::JoinHandle;

use crate::model::Model;
use crate::summary::{Ask, Summarised, write_summary};

/// Has the jobs of one session written by a model. A host calls [`begin`](Self::begin) and
/// [`take`](Self::take) around each call, and [`wait`](Self::wait) when there is nothing to send before a summary
/// is there. It works in a runtime of tokio; a summary that nobody waits for any longer is stopped when the
/// writer is dropped.
///
/// ```
/// use std::sync::Arc;
/// use longhaul::{Message, Models, Prepared, Profile, Resolved, Session, Summariser, Tokens};
/// use longhaul_model::{Scripted, SummaryWriter};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let profile = Profile { summariser: Summariser::Host, ..Profile::archive() };
/// let mut session = Session::new(profile, Models::builtin().find("gpt-4o").clone()).with_window(Tokens(2_500));
/// for n in 0..40 {
///     session.push(Message::user(format!("Question {n}?")));
///     session.push(Message::assistant("An answer of some words. ".repeat(20)));
/// }
/// session.push(Message::user("Go on."));
/// let model = Scripted::new([Ok(Message::assistant("Thirty questions were answered."))]);
/// let mut writer = SummaryWriter::new(Arc::new(model), Tokens(128_000));
/// while let Ok(Prepared::Summarise(job)) = session.prepare(None) {
///     let resolved = writer.wait(job, &mut session).await;
///     assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
/// }
/// # });
/// ```
pub struct SummaryWriter {
    model: Arc<dyn Model>,
    window: Tokens,
    /// The summary on its way. One that nobody asks for any longer is stopped when another takes its place.
    written: Option<Written>,
}

/// A summary on its way.
struct Written {
    job: u64,
    task: JoinHandle<Summarised>,
}

impl Drop for Written {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SummaryWriter {
    /// This model writes; `window` is what fits into its window.
    pub fn new(model: Arc<dyn Model>, window: Tokens) -> Self {
        Self { model, window, written: None }
    }

    /// Begins to write the job that is open, if it is not being written already. The form is the one that
    /// costs less.
    pub fn begin(&mut self, session: &Session) {
        if let Some(job) = session.job()
            && self.written.as_ref().is_none_or(|written| written.job != job.id)
        {
            self.written = Some(self.start(job, session));
        }
    }

    /// Resolves the job that was written since, if one was.
    pub async fn take(&mut self, session: &mut Session) -> Option<Resolved> {
        let written = self.written.take_if(|written| written.task.is_finished())?;
        Some(written.ended().await.resolve(session))
    }

    /// Waits until a job is written, and resolves it.
    pub async fn wait(&mut self, job: Job, session: &mut Session) -> Resolved {
        let written = match self.written.take() {
            Some(written) if written.job == job.id => written,
            _ => self.start(job, session),
        };
        written.ended().await.resolve(session)
    }

    fn start(&self, job: Job, session: &Session) -> Written {
        let ask = Ask::cheaper(&job, session, self.window);
        let (id, model) = (job.id, self.model.clone());
        Written { job: id, task: tokio::spawn(async move { write_summary(&job, &*model, ask).await }) }
    }
}

impl Written {
    async fn ended(mut self) -> Summarised {
        (&mut self.task).await.unwrap_or_else(|problem| Summarised {
            job: self.job,
            outcome: Outcome::Failed(format!("the summary was not written to its end: {problem}")),
            paid: Vec::new(),
        })
    }
}
