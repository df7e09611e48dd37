//! Confinement of commands: where they may write, what they may read, and whom they may talk to on this machine.
//!
//! A process confines only itself, and for ever. So a small launcher does it and then becomes the command: our own
//! program by a hidden command (`longhaul exec-confined`), or any other that calls [`launch_confined`].

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod sockets;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first argument of a launcher.
const CONFINED: &str = "exec-confined";

/// Whether commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    /// They may write wherever the user may.
    #[default]
    Off,
    /// They may write inside the project, to temporary files and where the settings say. This program launches them:
    /// it is called as `PROGRAM exec-confined --write FOLDER… --keep PATH… --hide PATH… -- COMMAND ARGUMENTS…`.
    By(PathBuf),
    /// They may write wherever the user may, and are kept from the terminal by this program: it is called as
    /// `PROGRAM exec-confined --anywhere -- COMMAND ARGUMENTS…`.
    NoTerminal(PathBuf),
}

/// Where commands can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writing {
    /// Below the folders that are named, and nowhere else.
    Confined,
    /// The same, but an older system lets them cut files elsewhere by `truncate`.
    ConfinedInPart,
    /// Wherever the user may.
    #[default]
    Everywhere,
}

impl Writing {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confined => "full",
            Self::ConfinedInPart => "partly",
            Self::Everywhere => "none",
        }
    }
}

/// What the system enforces of a confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enforced {
    /// Where commands can write.
    pub writing: Writing,
    /// Protected paths of the project are read-only. If not, they are compared and restored after each command.
    pub protected: bool,
    /// Hidden files cannot be read.
    pub hidden: bool,
    /// Unix sockets of other programs cannot be connected to.
    pub sockets: bool,
}

impl Enforced {
    /// As a launcher prints it.
    fn line(self) -> String {
        let Self { writing, protected, hidden, sockets } = self;
        format!("writing={} protected={protected} hidden={hidden} sockets={sockets}", writing.as_str())
    }

    fn read(line: &str) -> Option<Self> {
        let all = [Writing::Confined, Writing::ConfinedInPart, Writing::Everywhere];
        let flags = [false, true];
        let levels = all.into_iter().flat_map(|writing| {
            flags.into_iter().flat_map(move |protected| {
                flags
                    .into_iter()
                    .flat_map(move |hidden| flags.map(|sockets| Self { writing, protected, hidden, sockets }))
            })
        });
        levels.into_iter().find(|enforced| enforced.line() == line)
    }
}

/// The bounds of a confined command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Folders that it may write to.
    pub writable: Vec<PathBuf>,
    /// Places inside those folders that it may not write to.
    pub kept: Vec<PathBuf>,
    /// Files and folders that it may not read.
    pub hidden: Vec<PathBuf>,
}

impl Bounds {
    /// As a launcher takes them.
    fn arguments(&self) -> Vec<OsString> {
        let option = |name: &'static str, paths: &[PathBuf]| -> Vec<OsString> {
            paths.iter().flat_map(|path| [OsString::from(name), path.clone().into_os_string()]).collect()
        };
        [option("--write", &self.writable), option("--keep", &self.kept), option("--hide", &self.hidden)]
            .concat()
    }
}

/// A launcher that works here.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    program: PathBuf,
    /// The bounds of every command; none if `None`.
    bounds: Option<Bounds>,
    enforced: Enforced,
}

impl Launcher {
    /// A launcher, which is run once to see what the system enforces.
    pub(crate) fn new(program: &Path, bounds: Option<Bounds>) -> io::Result<Self> {
        let mut launcher = Self { program: program.to_owned(), bounds, enforced: Enforced::default() };
        let failed = |problem: &dyn std::fmt::Display| {
            io::Error::other(format!("the launcher {} does not work: {problem}", program.display()))
        };
        let mut probe = Command::new(program);
        let options = launcher.bounds.as_ref().map_or_else(|| vec!["--anywhere".into()], Bounds::arguments);
        probe.arg(CONFINED).args(options).stdin(Stdio::null());
        let printed = probe.output().map_err(|error| failed(&error))?;
        let line = String::from_utf8_lossy(&printed.stdout);
        match Enforced::read(line.trim()) {
            Some(enforced) => launcher.enforced = enforced,
            None => return Err(failed(&String::from_utf8_lossy(&printed.stderr).trim())),
        }
        Ok(launcher)
    }

    /// What the system enforces.
    pub(crate) fn enforced(&self) -> Enforced {
        self.enforced
    }

    /// Folders that every command may write to, if not all.
    pub(crate) fn writable(&self) -> Option<&[PathBuf]> {
        self.bounds.as_ref().map(|bounds| &*bounds.writable)
    }

    /// The program and its arguments up to the command, with what holds for this command alone.
    pub(crate) fn command(&self, own: Option<&Bounds>) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(CONFINED);
        match &self.bounds {
            None => _ = command.arg("--anywhere"),
            Some(bounds) => {
                let mut all = bounds.clone();
                if let Some(own) = own {
                    all.writable.extend_from_slice(&own.writable);
                    all.kept.extend_from_slice(&own.kept);
                }
                // What the system does not have, a launcher would refuse to do without.
                if !self.enforced.protected {
                    all.kept.clear();
                }
                if !self.enforced.hidden {
                    all.hidden.clear();
                }
                command.args(all.arguments());
            }
        }
        command.arg(OsStr::new("--"));
        command
    }
}

/// What a launcher does: leaves the terminal, so that nothing can ask a person or draw on the screen; confines this
/// process to these bounds (to none, if `None`); and becomes the command.
/// Without a command it writes to stdout what the system enforces, and returns.
///
/// Only for a process that has no other threads: those would not be confined.
///
/// # Errors
/// The command cannot be run, or not with these bounds.
pub fn launch_confined(bounds: Option<&Bounds>, command: &[OsString]) -> io::Result<()> {
    let Some((program, arguments)) = command.split_first() else {
        let enforced = bounds.map_or_else(|| Ok(Enforced::default()), probe)?;
        return writeln!(io::stdout(), "{}", enforced.line());
    };
    if let Some(bounds) = bounds {
        confine(bounds)?;
    }
    // A process that leads a group already cannot leave: somebody started the launcher by hand.
    _ = rustix::process::setsid();
    let error = Command::new(program).args(arguments).exec();
    Err(io::Error::new(error.kind(), format!("`{}` cannot be run: {error}", program.display())))
}

/// What the system enforces of these bounds: they are tried on this process.
#[cfg(target_os = "linux")]
fn probe(bounds: &Bounds) -> io::Result<Enforced> {
    let (covered, hidden) = covered_and_hidden(bounds);
    let has_mounts = mounts::separate().is_ok() && mounts_work(bounds, &covered);
    let files = files::confine(&bounds.writable, &hidden)?;
    Ok(Enforced {
        writing: files.writing,
        // Without Landlock a command could take its mounts away.
        protected: has_mounts && files.writing != Writing::Everywhere,
        hidden: files.hidden && (has_mounts || covered.is_empty()),
        sockets: files.sockets || sockets::refuse(),
    })
}

/// Some systems let a process make namespaces and then refuse it every mount.
#[cfg(target_os = "linux")]
fn mounts_work(bounds: &Bounds, covered: &[PathBuf]) -> bool {
    bounds.writable.first().is_none_or(|folder| mounts::read_only(folder).is_ok())
        && covered.iter().all(|path| mounts::cover(path).is_ok())
}

#[cfg(target_os = "linux")]
fn confine(bounds: &Bounds) -> io::Result<()> {
    let (covered, hidden) = covered_and_hidden(bounds);
    if !bounds.kept.is_empty() || !covered.is_empty() {
        let failed = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{} cannot be protected: {error}", path.display()))
        };
        let directory = std::env::current_dir();
        mounts::separate().map_err(|error| failed(Path::new("/"), error))?;
        for path in &bounds.kept {
            mounts::read_only(path).map_err(|error| failed(path, error))?;
        }
        for path in &covered {
            mounts::cover(path).map_err(|error| failed(path, error))?;
        }
        // A working directory in a protected folder would still be the one below the mount.
        std::env::set_current_dir(directory?)?;
    }
    let files = files::confine(&bounds.writable, &hidden)?;
    if !files.sockets {
        // The probe has reported whether this works.
        _ = sockets::refuse();
    }
    Ok(())
}

/// What is hidden by a mount, and what by Landlock. New files beside a path that Landlock hides cannot be read either:
/// inside a folder that the command may write to, this would be in its way.
#[cfg(target_os = "linux")]
fn covered_and_hidden(bounds: &Bounds) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let resolved = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
    };
    let writable = resolved(&bounds.writable);
    let inside = |path: &PathBuf| writable.iter().any(|folder| path != folder && path.starts_with(folder));
    resolved(&bounds.hidden).into_iter().partition(inside)
}

/// Other systems have no Landlock.
#[cfg(not(target_os = "linux"))]
fn probe(_: &Bounds) -> io::Result<Enforced> {
    Ok(Enforced::default())
}

#[cfg(not(target_os = "linux"))]
fn confine(_: &Bounds) -> io::Result<()> {
    Ok(())
}
