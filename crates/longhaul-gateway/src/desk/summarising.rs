//! Summaries by a model, beside the requests: no request waits for one.

use std::fmt;
use std::sync::Arc;

use longhaul::{Frame, Job, Tokens};
use longhaul_model::{Ask, Model, Summarised, write_summary};
use tokio::runtime::{Builder, Runtime};

/// Who writes summaries: a model of the gateway's own, with a key of its own.
#[derive(Clone)]
pub struct SummaryModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The settings that it is asked with: its name, and how long it may answer.
    pub frame: Frame,
    /// What fits into its window.
    pub window: Tokens,
}

impl fmt::Debug for SummaryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SummaryModel").field(&self.model.name()).finish()
    }
}

/// Has summaries written while requests go on.
pub(super) struct Writer {
    /// `None` only while the writer is dropped.
    runtime: Option<Runtime>,
}

impl Writer {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1).thread_name("longhaul-summary").enable_all();
        Ok(Self { runtime: Some(runtime.build()?) })
    }

    /// Has a job written. `done` hears of it on a thread that may block.
    pub(super) fn write(&self, by: SummaryModel, job: Job, done: impl FnOnce(Summarised) + Send + 'static) {
        let SummaryModel { model, frame, window } = by;
        let Some(runtime) = &self.runtime else { return };
        runtime.spawn(async move {
            let summarised = write_summary(&job, &*model, Ask::Fresh { window, frame }).await;
            // The thread ends with the process; what is not stored then is asked for again.
            _ = tokio::task::spawn_blocking(move || done(summarised)).await;
        });
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The writer may be dropped where nobody may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}
