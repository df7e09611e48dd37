//! How the agent's commands run here: confined by our own program, with whole outputs in a private folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longhaul_agent::{Bash, BashSettings, Confinement, Enforced, Project, Toolbox, Writing};

use crate::error::Failure;
use crate::place::{Place, data_folder, make_private};

/// Outputs of commands are kept so long.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Below the home folder, where tools of languages keep what they have downloaded: confined commands may write there.
const CACHES: [&str; 9] = [
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".npm",
    ".local/share/pnpm/store",
    "go/pkg",
    ".gradle",
    ".m2/repository",
];

/// How commands are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commands {
    /// Confined, as far as the system enforces it.
    Confined(Enforced),
    /// The user wants them to write everywhere.
    Unconfined,
}

impl Commands {
    /// For a person: what commands cannot do, and what nothing keeps them from. A line is as wide as a terminal.
    pub fn lines(self) -> Vec<String> {
        let enforced = match self {
            Self::Unconfined => {
                return vec!["commands are not confined: they can write wherever you may".to_owned()];
            }
            Self::Confined(enforced) if enforced.writing == Writing::Everywhere => {
                let line = "commands are not confined: this system has no Landlock, they write where you may";
                return vec![line.to_owned()];
            }
            Self::Confined(enforced) => enforced,
        };
        let mut lines =
            vec!["commands can write to the project, temporary files and caches only (Landlock)".to_owned()];
        if enforced.protected {
            lines.push(
                "read-only: .git (but for plain git commands), CI files, settings of editors".to_owned(),
            );
        }
        let out_of_reach = [(enforced.sockets, "Unix sockets"), (enforced.hidden, "what longhaul stores")];
        let out_of_reach: Vec<&str> =
            out_of_reach.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
        if !out_of_reach.is_empty() {
            lines.push(format!("out of reach: {}", out_of_reach.join(", ")));
        }
        lines.extend(self.gaps());
        lines.push("not confined: the network, reading other files, chmod, chown, times, signals".to_owned());
        lines
    }

    /// What is confined elsewhere, and not on this system: a line each.
    pub fn gaps(self) -> Vec<String> {
        let Self::Confined(enforced) = self else { return Vec::new() };
        if enforced.writing == Writing::Everywhere {
            return vec!["not enforced by this system: any confinement of commands (no Landlock)".to_owned()];
        }
        let gaps = [
            (enforced.writing == Writing::Confined, "files elsewhere can be truncated"),
            (enforced.protected, ".git and CI files can be written, and are restored"),
            (enforced.sockets, "Unix sockets (tmux, Docker, agents) are in reach"),
            (enforced.hidden, "what longhaul stores can be read"),
        ];
        let gaps = gaps.into_iter().filter(|(is_enforced, _)| !is_enforced);
        gaps.map(|(_, gap)| format!("not enforced by this system: {gap}")).collect()
    }

    /// Whether a person should be warned.
    pub fn is_open(self) -> bool {
        match self {
            Self::Confined(enforced) => enforced.writing == Writing::Everywhere,
            Self::Unconfined => true,
        }
    }
}

/// A project whose commands have a folder for their outputs, if there is a place for one.
pub fn project(folder: &Path) -> Result<Arc<Project>, Failure> {
    let project = Project::new(folder).map_err(|error| Failure::file(folder, error))?;
    let project = match outputs() {
        Some(outputs) => project.with_outputs(&outputs).map_err(|error| Failure::file(&outputs, error))?,
        None => project,
    };
    Ok(Arc::new(project))
}

/// The tools of a project: for files, and for commands. `writable` are folders that commands may write to besides;
/// `store` is where sessions are kept.
pub fn tools(
    project: &Arc<Project>,
    confined: bool,
    writable: &[PathBuf],
    store: &Place,
) -> Result<(Toolbox, Commands), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("commands cannot be run: {error}"));
    let launcher = own_program().map_err(failed)?;
    let confinement = match confined {
        true => Confinement::By(launcher),
        false => Confinement::NoTerminal(launcher),
    };
    let caches = CACHES.iter().filter_map(|cache| below_home(cache)).filter(|path| path.exists());
    let writable = writable.iter().cloned().chain(caches).collect();
    let settings = BashSettings { confinement, writable, hidden: hidden(store), ..BashSettings::default() };
    let bash = Bash::new(project, settings).map_err(failed)?;
    let commands = if confined { Commands::Confined(bash.confinement()) } else { Commands::Unconfined };
    let mut tools = Toolbox::files(project);
    tools.add(Box::new(bash));
    Ok((tools, commands))
}

/// This very program, whatever has taken the place of its file since: a command may be able to write there.
fn own_program() -> std::io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

/// What commands must not read: conversations, tokens, and settings that may name keys.
fn hidden(store: &Place) -> Vec<PathBuf> {
    let settings = set("XDG_CONFIG_HOME").or_else(|| below_home(".config")).map(|base| base.join("longhaul"));
    let mut hidden: Vec<PathBuf> =
        data_folder().into_iter().chain(settings).chain(set("LONGHAUL_CONFIG")).collect();
    // A launcher runs in the folder of its command.
    if let (false, Ok(file)) = (store.is_url(), std::path::absolute(store.as_str())) {
        let file = file.display();
        // The files that SQLite has next to it, and the lines that were typed.
        hidden.extend(["", "-wal", "-shm"].map(|end| PathBuf::from(format!("{file}{end}"))));
        hidden.extend(Path::new(store.as_str()).parent().map(|folder| folder.join("longhaul.history")));
    }
    hidden
}

fn below_home(path: &str) -> Option<PathBuf> {
    set("HOME").map(|home| home.join(path))
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder for whole outputs of commands, without those that are old.
fn outputs() -> Option<PathBuf> {
    let folder = data_folder()?.join("outputs");
    make_private(&folder).ok()?;
    let now = SystemTime::now();
    for file in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let modified = file.metadata().ok().and_then(|data| data.modified().ok());
        if modified.and_then(|then| now.duration_since(then).ok()).is_some_and(|age| age > KEPT) {
            _ = std::fs::remove_file(file.path());
        }
    }
    Some(folder)
}
