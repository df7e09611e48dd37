//! A command that runs: its output is read until it ends, runs out of time or is stopped; then everything that it
//! started is ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::family::Family;
use super::output::{Output, Stream};
use super::watch::Watch;

/// What a command left running has so long to say its last words.
const DRAIN: Duration = Duration::from_secs(2);
/// What has closed its output has so long to end by itself.
const LAST_BREATH: Duration = Duration::from_millis(50);
/// What is ended has so long to be gone: its grace, three rounds, and some.
const ENDING: Duration = Duration::from_secs(8);
/// Bytes read at once: what a pipe holds.
const READ: usize = 64 << 10;

/// A command that runs.
pub(crate) struct Process {
    child: Child,
    family: Arc<Family>,
    stdout: Receiver,
    stderr: Receiver,
    /// What is compared when the command has ended.
    watch: Option<Watch>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) how: How,
    /// Processes that the command left running and that were ended.
    pub(crate) left: usize,
    /// What it changed and should not have, and what became of that: sentences.
    pub(crate) restored: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// By itself, or by a signal of somebody else.
    Exited(ExitStatus),
    /// It took too long.
    TimedOut,
    /// Somebody stopped it.
    Stopped,
    /// The system does not say.
    Lost(String),
}

impl How {
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited(status) => status.code(),
            _ => None,
        }
    }

    /// The signal that ended it, if that was not ours.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self {
            Self::Exited(status) => status.signal(),
            _ => None,
        }
    }
}

impl Process {
    /// Starts a command that bears this mark.
    pub(crate) fn start(mut command: Command, mark: String, watch: Option<Watch>) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let gone = || io::Error::other("the command is gone");
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let family = Arc::new(Family::new(group.ok_or_else(gone)?, mark));
        let stdout = child.stdout.take().ok_or_else(gone)?.into_owned_fd()?;
        let stderr = child.stderr.take().ok_or_else(gone)?.into_owned_fd()?;
        let (stdout, stderr) = (Receiver::from_owned_fd(stdout)?, Receiver::from_owned_fd(stderr)?);
        Ok(Self { child, family, stdout, stderr, watch })
    }

    /// Everything that the command starts.
    pub(crate) fn family(&self) -> &Arc<Family> {
        &self.family
    }

    /// Runs to the end. If this future is dropped, the command ends too.
    pub(crate) async fn run(
        mut self,
        limit: Option<Duration>,
        stop: &CancellationToken,
        output: &Mutex<Output>,
    ) -> Ended {
        let Self { child, family, stdout, stderr, watch } = &mut self;
        let mut reading = std::pin::pin!(read(stdout, stderr, output));
        let mut is_read = false;
        let limit = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut limit = std::pin::pin!(limit);
        let how = loop {
            tokio::select! {
                status = child.wait() => break status.map_or_else(|error| How::Lost(error.to_string()), How::Exited),
                () = stop.cancelled() => break How::Stopped,
                () = &mut limit => break How::TimedOut,
                () = &mut reading, if !is_read => is_read = true,
            }
        };
        if !is_read && matches!(how, How::Exited(_)) {
            // A stop is heard here too: what was left behind may be a server.
            tokio::select! {
                () = &mut reading => {
                    is_read = true;
                    // Who has closed its output is about to end.
                    tokio::time::sleep(LAST_BREATH).await;
                }
                () = tokio::time::sleep(DRAIN) => {}
                () = stop.cancelled() => {}
            }
        }
        let ending = async {
            let family = family.clone();
            let left = tokio::task::spawn_blocking(move || family.end()).await.unwrap_or_default();
            // Waited for, or it would stay in the table of processes.
            _ = tokio::time::timeout(ENDING, child.wait()).await;
            left
        };
        // What is asked to end may say something first.
        let rest = async {
            if !is_read {
                reading.await;
            }
        };
        let mut ending = std::pin::pin!(ending);
        let mut rest = std::pin::pin!(rest);
        let left = tokio::select! {
            left = &mut ending => {
                // Nobody writes any more; what is in the pipes is there at once.
                _ = tokio::time::timeout(DRAIN, rest).await;
                left
            }
            () = &mut rest => ending.await,
        };
        let left = if matches!(how, How::Exited(_)) { left } else { 0 };
        let restored = watch.take().map(|watch| watch.restore()).unwrap_or_default();
        Ended { how, left, restored }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.family.end_now();
        // Nobody is left to be told.
        _ = self.watch.take().map(|watch| watch.restore());
    }
}

/// Reads both streams until they end. Where both have something, what is on stdout comes first, and neither waits for
/// the other.
async fn read(stdout: &Receiver, stderr: &Receiver, output: &Mutex<Output>) {
    let mut streams = [(Stream::Stdout, Some(stdout)), (Stream::Stderr, Some(stderr))];
    let mut buffer = vec![0; READ];
    let readable = async |pipe: Option<&Receiver>| match pipe {
        // An error is seen by the read that follows.
        Some(pipe) => _ = pipe.readable().await,
        None => std::future::pending().await,
    };
    while streams.iter().any(|(_, pipe)| pipe.is_some()) {
        tokio::select! {
            () = readable(streams[0].1) => {}
            () = readable(streams[1].1) => {}
        }
        for (stream, pipe) in &mut streams {
            let Some(open) = pipe else { continue };
            match open.try_read(&mut buffer) {
                Ok(0) => *pipe = None,
                Ok(read) => {
                    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                    output.take(*stream, &buffer[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => *pipe = None,
            }
        }
    }
}
