//! Confinement of commands by Landlock: they may write below some folders only, and read everywhere.
//!
//! A process confines only itself, and for ever. So a small launcher does it and then becomes the command: our own
//! program by a hidden command (`longhaul exec-confined`), or any other that calls [`launch_confined`].

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first argument of a launcher.
const CONFINED: &str = "exec-confined";

/// Devices that every program may write to.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Whether commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    /// They may write wherever the user may.
    #[default]
    Off,
    /// They may write inside the project, to temporary files and where the settings say. This program launches them:
    /// it is called as `PROGRAM exec-confined --write FOLDER… -- COMMAND ARGUMENTS…`.
    By(PathBuf),
    /// They may write wherever the user may, and are kept from the terminal by this program: it is called as
    /// `PROGRAM exec-confined --anywhere -- COMMAND ARGUMENTS…`.
    NoTerminal(PathBuf),
}

/// How much of a confinement the system enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforced {
    /// All of it.
    Fully,
    /// What an older system can: files elsewhere may still be cut off by `truncate`.
    Partly,
    /// Nothing: commands may write wherever the user may.
    NotAtAll,
}

impl Enforced {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fully => "full",
            Self::Partly => "partly",
            Self::NotAtAll => "none",
        }
    }
}

/// A launcher that works here.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    program: PathBuf,
    /// Where commands may write; everywhere if `None`.
    writable: Option<Vec<PathBuf>>,
}

impl Launcher {
    /// A launcher, and what the system enforces. It is run once to see that.
    pub(crate) fn new(program: &Path, writable: Option<Vec<PathBuf>>) -> io::Result<(Self, Enforced)> {
        let launcher = Self { program: program.to_owned(), writable };
        let failed = |problem: &dyn std::fmt::Display| {
            io::Error::other(format!("the launcher {} does not work: {problem}", program.display()))
        };
        let mut probe = Command::new(program);
        probe.args(launcher.arguments()).stdin(Stdio::null());
        let said = probe.output().map_err(|error| failed(&error))?;
        let level = String::from_utf8_lossy(&said.stdout);
        let levels = [Enforced::Fully, Enforced::Partly, Enforced::NotAtAll];
        match levels.into_iter().find(|enforced| enforced.as_str() == level.trim()) {
            Some(enforced) => Ok((launcher, enforced)),
            None => Err(failed(&String::from_utf8_lossy(&said.stderr).trim())),
        }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// All up to `--`.
    pub(crate) fn arguments(&self) -> Vec<&OsStr> {
        let anywhere = self.writable.is_none().then_some(OsStr::new("--anywhere"));
        let folders = self.writable.iter().flatten();
        let folders = folders.flat_map(|folder| [OsStr::new("--write"), folder.as_os_str()]);
        std::iter::once(OsStr::new(CONFINED)).chain(anywhere).chain(folders).collect()
    }
}

/// What a launcher does: leaves the terminal, so that nothing can ask a person or draw on the screen; confines this
/// process, so that it writes below these folders only (everywhere, if `None`); and becomes the command.
/// Without a command it writes to stdout how much the system enforces (`full`, `partly`, `none`), and returns.
///
/// Only for a process that has no other threads: those would not be confined.
pub fn launch_confined(writable: Option<&[PathBuf]>, command: &[OsString]) -> io::Result<()> {
    let enforced = writable.map_or(Ok(Enforced::NotAtAll), confine)?;
    let Some((program, arguments)) = command.split_first() else {
        return writeln!(io::stdout(), "{}", enforced.as_str());
    };
    // A process that leads a group already cannot leave: somebody started the launcher by hand.
    _ = rustix::process::setsid();
    let error = Command::new(program).args(arguments).exec();
    Err(io::Error::new(error.kind(), format!("`{}` cannot be run: {error}", program.display())))
}

/// Confines this thread, as far as the system can.
#[cfg(target_os = "linux")]
fn confine(writable: &[PathBuf]) -> io::Result<Enforced> {
    use landlock::{
        ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
        path_beneath_rules,
    };
    // All kinds of writing; later versions are about devices and sockets.
    let writing = AccessFs::from_write(ABI::V3);
    let folders = writable.iter().map(PathBuf::as_path).chain(DEVICES.iter().map(Path::new));
    let enforce = || -> Result<RulesetStatus, RulesetError> {
        let rules = Ruleset::default().handle_access(writing)?.create()?;
        // A folder that is not there is left out.
        let rules = rules.add_rules(path_beneath_rules(folders, writing))?;
        Ok(rules.restrict_self()?.ruleset)
    };
    Ok(match enforce().map_err(io::Error::other)? {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::NotAtAll,
    })
}

/// Other systems have no Landlock.
#[cfg(not(target_os = "linux"))]
fn confine(_: &[PathBuf]) -> io::Result<Enforced> {
    Ok(Enforced::NotAtAll)
}
