//! Commands of a shell: how one is started, heard and ended, with everything that it started itself.
//!
//! A command runs in a process group of its own, without a terminal and without the keys of the agent. What it writes
//! is read as it comes, whatever its size, and kept in bounded memory; the whole goes into a file. When the command
//! ends, nothing that it started lives on.

pub(crate) mod capture;
pub(crate) mod confine;
pub(crate) mod directory;
pub(crate) mod environment;
pub(crate) mod family;
pub(crate) mod gitlinks;
pub(crate) mod guard;
pub(crate) mod jobs;
pub(crate) mod output;
pub(crate) mod plain_git;
pub(crate) mod process;
pub(crate) mod repository;
pub(crate) mod screen;
pub(crate) mod watch;
pub(crate) mod whole;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use confine::Launcher;
use guard::{Ground, Guard};

/// A shell that runs commands.
pub(crate) struct Shell {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    launcher: Option<Launcher>,
}

/// A file for the directory that a command ends in.
const DIRECTORY_FILE: &str = "LONGHAUL_DIRECTORY_FILE";
/// Runs `$1` and writes into the file where it ends. A command that sets a trap of its own, or gives its place to
/// another program, ends where it began.
const TELLING_ITS_DIRECTORY: &str =
    r#"trap '{ pwd -P || echo "$PWD"; } >"$LONGHAUL_DIRECTORY_FILE" 2>/dev/null' EXIT; eval "$1""#;

impl Shell {
    /// The first `bash` in the `PATH` of this environment, else the first `sh`.
    pub(crate) fn new(
        environment: Vec<(OsString, OsString)>,
        launcher: Option<Launcher>,
    ) -> io::Result<Self> {
        let find = |name| environment::program(&environment, name);
        let program = find("bash").or_else(|| find("sh")).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "there is neither `bash` nor `sh` in PATH")
        })?;
        Ok(Self { program, environment, launcher })
    }

    /// What guards the project in this folder from a command, where commands are confined.
    pub(crate) fn guard(&self, root: &Path, text: &str, directory: &Path) -> Option<Guard> {
        let launcher = self.launcher.as_ref()?;
        let (enforced, writable) = (launcher.enforced(), launcher.writable()?);
        let ground = Ground { root, enforced, writable, environment: &self.environment };
        Some(Guard::new(&ground, text, directory))
    }

    /// A command that is to be started. `tell` is a file for the directory that it ends in.
    pub(crate) fn command(
        &self,
        text: &str,
        directory: &Path,
        guard: Option<&Guard>,
        mark: &str,
        tell: Option<&Path>,
    ) -> Command {
        let mut command = match &self.launcher {
            Some(launcher) => {
                let mut command = Command::from(launcher.command(guard.map(|guard| &guard.bounds)));
                command.arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .envs(guard.iter().flat_map(|guard| guard.environment.iter().map(|(name, value)| (name, value))));
        command.env(family::VARIABLE, mark);
        match tell {
            Some(file) => {
                // The name that the shell's own messages begin with.
                let name = self.program.file_name().unwrap_or_default();
                command.env(DIRECTORY_FILE, file);
                command.args(["-c", TELLING_ITS_DIRECTORY]).arg(name).arg(text)
            }
            None => command.args(["-c", text]),
        };
        if self.launcher.is_none() {
            // A launcher makes a session of its own, which is a group too.
            command.process_group(0);
        }
        command.current_dir(directory).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
