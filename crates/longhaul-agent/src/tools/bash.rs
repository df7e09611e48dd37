//! Bash: runs a command, in the background too.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::walk;
use crate::consent::{Asked, Reach};
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::{Project, shown};
use crate::shell::Shell;
use crate::shell::confine::{Bounds, Confinement, Enforced, Launcher, Writing};
use crate::shell::directory::Directory;
use crate::shell::environment;
use crate::shell::family::{self, Family};
use crate::shell::jobs::{Job, Jobs};
use crate::shell::output::{Heard, Keep, Output};
use crate::shell::process::{Ended, How, Process};
use crate::tool::{Definition, Effect, Running, Tool, answered, read_arguments};

const NAME: &str = "Bash";
/// Seconds that a command may take.
const LIMIT: u64 = 120;
/// Seconds that a command may take at most.
const LONGEST: u64 = 600;

const DESCRIPTION: &str = "Runs a command in bash, inside the project. The working directory is kept from call to \
    call; nothing else is (variables, functions). stdin is empty. Of a long output the start and the end are shown, \
    at most 2,000 lines or 50 KB. When a command ends, processes that it left running are ended too: give \
    `background` for servers and whatever else runs on, then `job` with its id for new output and state, and `stop` \
    to end it. Use LS, Glob, Grep, Read, Edit and Write rather than commands for the same.";
const CONFINED: &str = " Commands can write only inside the project and to temporary files, and not to `.git`, CI files \
    and settings of editors and agents. Git commands alone in a call (`git add -A && git commit -m …`: no pipes, \
    variables or options before the verb) can write `.git`; hooks do not run. Unix sockets of other programs cannot be \
    reached.";

/// The tool `Bash`.
///
/// ```
/// use std::sync::Arc;
/// use longhaul_agent::{Bash, BashSettings, Form, Project, Toolbox};
/// use serde_json::json;
/// use tokio_util::sync::CancellationToken;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let folder = tempfile::tempdir()?;
/// let project = Arc::new(Project::new(folder.path())?);
/// let bash = Bash::new(&project, BashSettings::default())?;
/// let jobs = bash.jobs();
/// let mut tools = Toolbox::files(&project);
/// tools.add(Box::new(bash));
/// let ran = tools.run("Bash", json!({"command": "echo hello; exit 3"}), &CancellationToken::new()).await;
/// assert_eq!(ran.shown(Form::Plain), "hello\nexit code 3");
/// jobs.end_all().await;
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub struct Bash {
    project: Arc<Project>,
    shell: Shell,
    directory: Directory,
    jobs: Jobs,
    enforced: Enforced,
    /// What commands may touch.
    reach: Reach,
    /// The model was told of the confinement.
    told: AtomicBool,
    /// Files that commands say their directories in.
    private: tempfile::TempDir,
    calls: AtomicU64,
}

/// How [`Bash`] runs commands.
pub struct BashSettings {
    /// Whether commands may write everywhere.
    pub confinement: Confinement,
    /// Where confined commands may write besides the project and temporary files, such as `~/.cargo`.
    pub writable: Vec<PathBuf>,
    /// Files and folders that confined commands may not read: where keys and conversations are stored.
    pub hidden: Vec<PathBuf>,
    /// The environment that commands see without keys of providers: the agent's own.
    pub environment: Vec<(OsString, OsString)>,
}

impl Default for BashSettings {
    fn default() -> Self {
        Self {
            confinement: Confinement::Off,
            writable: Vec::new(),
            hidden: Vec::new(),
            environment: std::env::vars_os().collect(),
        }
    }
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    command: String,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default, alias = "run_in_background")]
    background: bool,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    stop: bool,
}

/// What is asked for.
enum Wanted {
    Run { command: String, limit: Duration },
    Start { command: String },
    Look { job: String },
    Stop { job: String },
}

impl Arguments {
    fn wanted(self) -> Result<Wanted, ToolError> {
        let wrong = |message: String| Err(ToolError::new(Code::InvalidParam, message));
        let has_command = !self.command.trim().is_empty();
        match (self.job, has_command) {
            (Some(_), true) => wrong("give either a `command` or a `job`, not both".to_owned()),
            (Some(job), false) if self.stop => Ok(Wanted::Stop { job }),
            (Some(job), false) => Ok(Wanted::Look { job }),
            (None, false) => wrong("give the `command` to run, or the `job` to look at".to_owned()),
            (None, true) if self.command.contains('\0') => wrong("the command has a NUL in it".to_owned()),
            (None, true) if self.background => Ok(Wanted::Start { command: self.command }),
            (None, true) => match self.timeout {
                Some(seconds) if seconds <= 0.0 => {
                    wrong(format!("`timeout` is in seconds, more than 0 and at most {LONGEST}"))
                }
                limit => {
                    let limit = limit.unwrap_or(LIMIT as f64).min(LONGEST as f64);
                    Ok(Wanted::Run { command: self.command, limit: Duration::from_secs_f64(limit) })
                }
            },
        }
    }
}

impl Bash {
    /// The tool in a project. A launcher that confines commands is tried here, which takes some milliseconds.
    ///
    /// # Errors
    /// There is no shell, or the launcher does not work.
    pub fn new(project: &Arc<Project>, settings: BashSettings) -> io::Result<Self> {
        let environment = environment::of_commands(settings.environment);
        let private = tempfile::Builder::new().prefix("longhaul-").tempdir()?;
        let mut reach = Reach { writes: None };
        let launcher = match &settings.confinement {
            Confinement::Off => None,
            Confinement::NoTerminal(program) => Some(Launcher::new(program, None)?),
            Confinement::By(program) => {
                let temporary =
                    environment.iter().filter(|(name, _)| name == "TMPDIR").map(|(_, value)| value);
                let mut writable = vec![project.root().to_owned(), private.path().to_owned()];
                writable.extend(project.outputs().map(Path::to_owned));
                writable.extend(["/tmp".into(), "/var/tmp".into()]);
                writable.extend(temporary.map(PathBuf::from));
                writable.extend(settings.writable);
                let folders = writable.iter().filter(|folder| *folder != private.path());
                let folders = folders.map(|folder| shown(folder)).collect();
                // What cannot be read is not to be replaced either.
                let (kept, hidden) = (settings.hidden.clone(), settings.hidden);
                let launcher = Launcher::new(program, Some(Bounds { writable, kept, hidden }))?;
                reach.writes = Some(folders).filter(|_| launcher.enforced().writing != Writing::Everywhere);
                Some(launcher)
            }
        };
        let enforced = launcher.as_ref().map(Launcher::enforced).unwrap_or_default();
        Ok(Self {
            project: project.clone(),
            shell: Shell::new(environment, launcher)?,
            directory: Directory::new(project.root()),
            jobs: Jobs::default(),
            enforced,
            reach,
            told: AtomicBool::new(false),
            private,
            calls: AtomicU64::new(0),
        })
    }

    /// The commands in the background: to be ended when the agent ends.
    pub fn jobs(&self) -> Jobs {
        self.jobs.clone()
    }

    /// What the system enforces of the confinement.
    pub fn confinement(&self) -> Enforced {
        self.enforced
    }

    async fn answer(&self, wanted: Wanted, stop: &CancellationToken) -> Result<Envelope, ToolError> {
        match wanted {
            Wanted::Run { command, limit } => self.run_command(&command, limit, stop).await,
            Wanted::Start { command } => self.start_job(&command),
            Wanted::Look { job } => Ok(look(&*self.jobs.find(&job)?)),
            Wanted::Stop { job } => {
                let job = self.jobs.find(&job)?;
                job.stop().await;
                Ok(look(&job))
            }
        }
    }

    async fn run_command(
        &self,
        command: &str,
        limit: Duration,
        stop: &CancellationToken,
    ) -> Result<Envelope, ToolError> {
        if stop.is_cancelled() {
            return Err(walk::interrupted(NAME));
        }
        let (from, moved) = self.directory.start();
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let tell = self.private.path().join(call.to_string());
        let process = self.start(command, &from, Some(&tell))?;
        let output = Mutex::new(Output::new(Keep::IfLarge, self.project.outputs(), "bash"));
        let ended = process.run(Some(limit), stop, &output).await;
        let arrived = ended_in(&tell).and_then(|there| self.directory.arrive(there));
        let heard = output.lock().unwrap_or_else(PoisonError::into_inner).look();
        let (directory, lost) = self.directory.start();
        let notes = [moved, arrived, lost, left_running(&ended), heard.note.clone()];
        let notes = notes.into_iter().flatten().chain(ended.restored.iter().cloned());
        let state = how_ended(&ended.how).filter(|_| ended.how.exit_code() != Some(0));
        let text = match how_ended(&ended.how) {
            Some(how) => format!("The command ended: {how}"),
            None => "The command ended".to_owned(),
        };
        let envelope = broken_off(&ended.how, limit).map_or_else(|| Envelope::success(text), Envelope::error);
        Ok(described(envelope, command, Some(&ended), &heard)
            .with("cwd", self.project.at(directory).shown())
            .plain(plain(&heard, notes, state)))
    }

    fn start_job(&self, command: &str) -> Result<Envelope, ToolError> {
        let (from, moved) = self.directory.start();
        let start = || self.start(command, &from, None);
        let job = self.jobs.start(command, self.project.outputs(), start)?;
        let text = format!("{0} runs in the background: `job` with `{0}` shows what it writes", job.id);
        let plain = moved.map_or(text.clone(), |note| format!("Note: {note}\n{text}"));
        let envelope = Envelope::success(text).with("command", command).with("job", job.id.as_str());
        Ok(envelope.with("running", true).with("cwd", self.project.at(from).shown()).plain(plain))
    }

    fn start(&self, command: &str, from: &Path, tell: Option<&Path>) -> Result<Process, ToolError> {
        let outer = std::env::var(family::VARIABLE).ok();
        let mark = Family::new_mark(outer.as_deref());
        let guard = self.shell.guard(self.project.root(), command, from);
        let to_start = self.shell.command(command, from, guard.as_ref(), &mark, tell);
        let started = Process::start(to_start, mark, guard.map(|guard| guard.watch));
        started.map_err(|error| match error.kind() {
            io::ErrorKind::ArgumentListTooLong => {
                let bytes = command.len();
                let message = format!(
                    "the command has {bytes} bytes, more than the system takes; put it into a file and run that"
                );
                ToolError::new(Code::TooLarge, message)
            }
            _ => ToolError::new(Code::Failed, format!("the command cannot be started: {error}")),
        })
    }
}

impl Tool for Bash {
    fn definition(&self) -> Definition {
        let confined = if self.enforced.writing == Writing::Everywhere { "" } else { CONFINED };
        let properties = json!({
            "command": { "type": "string", "description": "The command to run" },
            "timeout": { "type": "number", "description": "Seconds; 120 if left out, 600 at most" },
            "background": { "type": "boolean", "description": "Run on in the background; gives the id of a job" },
            "description": { "type": "string", "description": "What the command does, in a few words" },
            "job": { "type": "string", "description": "The id of a job, in place of a command: its new output and state" },
            "stop": { "type": "boolean", "description": "With `job`: end it" },
        });
        Definition {
            name: NAME.to_owned(),
            description: format!("{DESCRIPTION}{confined}"),
            schema: json!({ "type": "object", "properties": properties, "required": [] }),
        }
    }

    fn effect(&self, arguments: &Value) -> Effect {
        match read_arguments(NAME, arguments.clone()).and_then(Arguments::wanted) {
            Ok(Wanted::Run { command, .. } | Wanted::Start { command }) => Effect::Runs(command),
            Ok(Wanted::Look { .. } | Wanted::Stop { .. }) | Err(_) => Effect::None,
        }
    }

    fn asked(&self, arguments: &Value) -> Asked {
        let (command, background) = match read_arguments(NAME, arguments.clone()).and_then(Arguments::wanted)
        {
            Ok(Wanted::Run { command, .. }) => (command, false),
            Ok(Wanted::Start { command }) => (command, true),
            _ => return Asked::Call(arguments.clone()),
        };
        Asked::Command { command, background, reach: self.reach.clone() }
    }

    fn run<'a>(&'a self, arguments: Value, stop: &'a CancellationToken) -> Running<'a> {
        Box::pin(async move {
            let begun = Instant::now();
            let params = arguments.clone();
            let said = match read_arguments(NAME, arguments).and_then(Arguments::wanted) {
                Ok(wanted) => self.answer(wanted, stop).await,
                Err(error) => Err(error),
            };
            let mut envelope = answered(said, params, begun);
            if !self.told.swap(true, Ordering::Relaxed) {
                envelope.context.insert("confinement".to_owned(), self.enforced.writing.as_str().into());
            }
            envelope
        })
    }
}

/// The directory that a command said it ends in. The command may have put anything in the place of the file.
fn ended_in(file: &Path) -> Option<PathBuf> {
    use std::io::Read;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::OpenOptionsExt;
    /// No path is longer.
    const LONGEST: u64 = 4_096;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened = std::fs::File::options().read(true).custom_flags(flags.cast_signed()).open(file);
    // It is one of a folder that goes with the tool.
    _ = std::fs::remove_file(file);
    let opened = opened.ok().filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))?;
    let mut path = Vec::new();
    opened.take(LONGEST).read_to_end(&mut path).ok()?;
    path.pop_if(|last| *last == b'\n');
    (!path.is_empty()).then(|| OsString::from_vec(path).into())
}

/// What a job wrote since the last look, and its state.
fn look(job: &Job) -> Envelope {
    let (heard, ended) = job.look();
    let state = match &ended {
        None => format!("{} runs", job.id),
        Some(Ended { how: How::Stopped, .. }) => format!("{} was stopped", job.id),
        Some(ended) => format!("{} has ended: {}", job.id, how_ended(&ended.how).unwrap_or_default()),
    };
    let notes = [ended.as_ref().and_then(left_running), heard.note.clone()];
    let restored = ended.iter().flat_map(|ended| ended.restored.iter().cloned());
    let notes = notes.into_iter().flatten().chain(restored);
    described(Envelope::success(state.clone()), &job.command, ended.as_ref(), &heard)
        .with("job", job.id.as_str())
        .with("running", ended.is_none())
        .plain(plain(&heard, notes, Some(state)))
}

/// What is common to commands and jobs.
fn described(envelope: Envelope, command: &str, ended: Option<&Ended>, heard: &Heard) -> Envelope {
    let how = ended.map(|ended| &ended.how);
    let is_cut = heard.both.is_cut || heard.stdout.is_cut || heard.stderr.is_cut;
    envelope
        .with("command", command)
        .with("exit_code", how.and_then(How::exit_code))
        .with("signal", how.and_then(How::signal).map(signal_name))
        .with("stdout", heard.stdout.text.as_str())
        .with("stderr", heard.stderr.text.as_str())
        .with("truncated", is_cut)
        .with("output_file", heard.file.as_deref().map(shown))
        .counted("output_bytes", heard.bytes)
        .counted("kept_bytes", heard.kept)
        .partial_if(is_cut)
}

/// What was written, then notes, then how it ended.
fn plain(heard: &Heard, notes: impl IntoIterator<Item = String>, state: Option<String>) -> String {
    let mut plain = heard.both.text.clone();
    let notes = notes.into_iter().map(|note| format!("Note: {note}"));
    for line in notes.chain(state) {
        if !plain.is_empty() && !plain.ends_with('\n') {
            plain.push('\n');
        }
        plain.push_str(&line);
    }
    if plain.is_empty() { "(no output)".to_owned() } else { plain }
}

fn left_running(ended: &Ended) -> Option<String> {
    match ended.left {
        0 => None,
        1 => Some("A process that the command left running was ended; use `background` for it.".to_owned()),
        left => Some(format!(
            "{left} processes that the command left running were ended; use `background` for them."
        )),
    }
}

/// Why a command did not come to its own end. One that came to it and failed is a result.
fn broken_off(how: &How, limit: Duration) -> Option<ToolError> {
    match how {
        How::Exited(_) => None,
        How::TimedOut => {
            let seconds = limit.as_secs_f64();
            let message = format!(
                "the command took longer than {seconds} s and was ended; give a larger `timeout` (at most {LONGEST}) \
                 or `background`"
            );
            Some(ToolError::new(Code::Timeout, message))
        }
        How::Stopped => Some(walk::interrupted(NAME)),
        How::Lost(why) => {
            Some(ToolError::new(Code::Failed, format!("how the command ended is not known: {why}")))
        }
    }
}

fn how_ended(how: &How) -> Option<String> {
    match (how.exit_code(), how.signal()) {
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("ended by {}", signal_name(signal))),
        (None, None) => None,
    }
}

fn signal_name(signal: i32) -> String {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
    ];
    let name = names.iter().find(|(named, _)| named.as_raw() == signal).map(|(_, name)| *name);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}
