//! Commands that run in the background, until they end, are stopped, or the agent ends.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::family::Family;
use super::output::{Heard, Keep, Output};
use super::process::{Ended, Process};
use crate::envelope::{Code, ToolError};

/// Jobs at most, those included that have ended and may still be looked at.
const MOST: usize = 16;

/// The commands of a [`Bash`](crate::Bash) that run in the background. When the tool and all copies of this are
/// dropped, they are killed.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    list: Arc<List>,
}

#[derive(Debug, Default)]
struct List {
    jobs: Mutex<Listed>,
}

#[derive(Debug, Default)]
struct Listed {
    jobs: Vec<Arc<Job>>,
    /// How many were started.
    count: usize,
}

/// A command in the background.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    output: Arc<Mutex<Output>>,
    family: Arc<Family>,
    stop: CancellationToken,
    ended: watch::Receiver<Option<Ended>>,
}

impl Jobs {
    /// The jobs that run, by their ids.
    pub fn running(&self) -> Vec<String> {
        let running = self.list.listed();
        running.jobs.iter().filter(|job| job.ended().is_none()).map(|job| job.id.clone()).collect()
    }

    /// Ends all jobs: asks them first, kills those that stay. Takes up to four seconds.
    pub async fn end_all(&self) {
        let jobs = self.list.listed().jobs.clone();
        jobs.iter().for_each(|job| job.stop.cancel());
        for job in jobs {
            job.until_ended().await;
        }
    }

    /// Starts a job, if there is room for one.
    pub(crate) fn start(
        &self,
        command: &str,
        outputs: Option<&Path>,
        process: impl FnOnce() -> Result<Process, ToolError>,
    ) -> Result<Arc<Job>, ToolError> {
        let mut listed = self.list.listed();
        if listed.jobs.len() >= MOST {
            let Some(ended) = listed.jobs.iter().position(|job| job.ended().is_some()) else {
                let message = format!("{MOST} jobs run already; stop one first");
                return Err(ToolError::new(Code::TooLarge, message));
            };
            listed.jobs.remove(ended);
        }
        let process = process()?;
        listed.count += 1;
        let id = format!("job-{}", listed.count);
        let output = Arc::new(Mutex::new(Output::new(Keep::Always, outputs, &id)));
        let stop = CancellationToken::new();
        let (tell, ended) = watch::channel(None);
        let family = process.family().clone();
        let job = Job { id, command: command.to_owned(), output, family, stop, ended };
        let (output, stop) = (job.output.clone(), job.stop.clone());
        tokio::spawn(async move {
            let ended = process.run(None, &stop, &output).await;
            tell.send_replace(Some(ended));
        });
        let job = Arc::new(job);
        listed.jobs.push(job.clone());
        Ok(job)
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<Job>, ToolError> {
        let listed = self.list.listed();
        listed.jobs.iter().find(|job| job.id == id).cloned().ok_or_else(|| {
            let ids: Vec<&str> = listed.jobs.iter().map(|job| job.id.as_str()).collect();
            let there = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            let id: String = id.chars().take(100).collect();
            ToolError::new(Code::NotFound, format!("there is no job `{id}`; there are {there}"))
        })
    }
}

impl List {
    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // One that has ended is over, and is left alone.
        self.listed().jobs.iter().for_each(|job| job.family.end_now());
    }
}

impl Job {
    /// What it wrote since the last look, and how it ended, if it did.
    pub(crate) fn look(&self) -> (Heard, Option<Ended>) {
        // In this order: the output of one that has ended is whole.
        let ended = self.ended();
        let heard = self.output.lock().unwrap_or_else(PoisonError::into_inner).look();
        (heard, ended)
    }

    /// Ends it.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.until_ended().await;
    }

    fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    async fn until_ended(&self) {
        // A task that is gone has ended its command.
        _ = self.ended.clone().wait_for(Option::is_some).await;
    }
}
