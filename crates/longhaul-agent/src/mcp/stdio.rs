//! A server that we start: a message a line, by its input and output. It ends with us.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::message::{McpError, answer, notice, question, reply_to};

/// A line of a server at most.
const LONGEST: u64 = 16 << 20;
/// Lines that wait to be written.
const WAITING: usize = 64;

/// Who waits for which answer; `None` when the server has ended.
type Waiting = Option<HashMap<u64, oneshot::Sender<Result<Value, McpError>>>>;
type Answers = Arc<Mutex<Waiting>>;

/// A server that runs.
pub(super) struct StdioServer {
    next: AtomicU64,
    lines: mpsc::Sender<String>,
    answers: Answers,
    /// Ended when this is dropped.
    child: Child,
}

impl StdioServer {
    pub(super) fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Result<Self, McpError> {
        let mut program = Command::new(command);
        program.args(args).envs(env).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        // What a server says beside the protocol is not for the terminal.
        program.stderr(Stdio::null()).kill_on_drop(true);
        #[cfg(unix)]
        program.process_group(0);
        let failed = |error: std::io::Error| McpError::Gone(format!("`{command}` cannot be run: {error}"));
        let mut child = program.spawn().map_err(failed)?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(McpError::Gone(format!("`{command}` cannot be spoken to")));
        };
        let (lines, mut written) = mpsc::channel::<String>(WAITING);
        tokio::spawn(async move {
            while let Some(line) = written.recv().await {
                if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                    return;
                }
            }
        });
        let answers = Answers::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(listen(stdout, answers.clone(), lines.clone()));
        Ok(Self { next: AtomicU64::new(1), lines, answers, child })
    }

    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answered) = oneshot::channel();
        lock(&self.answers).as_mut().ok_or_else(gone)?.insert(id, sender);
        // Who stops waiting takes the question back.
        let asked = Asked { answers: &self.answers, id };
        self.write(question(id, method, &params)).await?;
        let answer = answered.await.unwrap_or_else(|_| Err(gone()));
        drop(asked);
        answer
    }

    pub(super) async fn tell(&self, method: &str, params: Value) -> Result<(), McpError> {
        self.write(notice(method, &params)).await
    }

    async fn write(&self, message: Value) -> Result<(), McpError> {
        self.lines.send(format!("{message}\n")).await.map_err(|_| gone())
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        // The whole group: a server that a script starts ends with it.
        #[cfg(unix)]
        if let Some(group) =
            self.child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?))
        {
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// A question that is waited for.
struct Asked<'a> {
    answers: &'a Answers,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        lock(self.answers).as_mut().map(|waiting| waiting.remove(&self.id));
    }
}

fn lock(answers: &Answers) -> std::sync::MutexGuard<'_, Waiting> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone() -> McpError {
    McpError::Gone("the server has ended".to_owned())
}

/// Gives answers to who waits for them, until the server says nothing more.
async fn listen(stdout: ChildStdout, answers: Answers, lines: mpsc::Sender<String>) {
    let mut reader = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut line).await;
        if !read.is_ok_and(|bytes| bytes > 0) || !line.ends_with(b"\n") {
            break;
        }
        // What is no message is somebody's log line.
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
        let messages = match message {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        for message in messages {
            if let Some(reply) = reply_to(&message) {
                // A server that does not read waits for its own answer in vain.
                _ = lines.try_send(format!("{reply}\n"));
            } else if let Some((id, result)) = answer(message)
                && let Some(waiting) = lock(&answers).as_mut().and_then(|waiting| waiting.remove(&id))
            {
                _ = waiting.send(result);
            }
        }
    }
    *lock(&answers) = None;
}
