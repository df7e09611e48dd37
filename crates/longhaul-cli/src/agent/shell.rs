//! How the agent's commands run here: confined by our own program, with whole outputs in a private folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longhaul_agent::{Bash, BashSettings, Confinement, Enforced, Project, Toolbox};

use crate::error::Failure;
use crate::place::make_private;

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
    /// What a person should know of it.
    pub fn says(self) -> &'static str {
        match self {
            Self::Confined(Enforced::Fully) => {
                "commands can write to the project, temporary files and caches only (Landlock)"
            }
            Self::Confined(Enforced::Partly) => {
                "commands are confined in part: this kernel lets them truncate files elsewhere"
            }
            Self::Confined(Enforced::NotAtAll) => {
                "commands are not confined: this system has no Landlock, they write where you may"
            }
            Self::Unconfined => "commands are not confined: they can write wherever you may",
        }
    }

    /// Whether a person should be warned.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Confined(Enforced::NotAtAll) | Self::Unconfined)
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

/// The tools of a project: for files, and for commands. `writable` are folders that commands may write to besides.
pub fn tools(
    project: &Arc<Project>,
    confined: bool,
    writable: &[PathBuf],
) -> Result<(Toolbox, Commands), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("commands cannot be run: {error}"));
    let launcher = std::env::current_exe().map_err(failed)?;
    let confinement = match confined {
        true => Confinement::By(launcher),
        false => Confinement::NoTerminal(launcher),
    };
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let caches =
        home.iter().flat_map(|home| CACHES.map(|cache| home.join(cache))).filter(|path| path.exists());
    let writable = writable.iter().cloned().chain(caches).collect();
    let bash = Bash::new(project, BashSettings { confinement, writable, ..BashSettings::default() })
        .map_err(failed)?;
    let commands = if confined { Commands::Confined(bash.confinement()) } else { Commands::Unconfined };
    let mut tools = Toolbox::files(project);
    tools.add(Box::new(bash));
    Ok((tools, commands))
}

/// The folder for whole outputs of commands, without those that are old.
fn outputs() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
    let folder = base.join("longhaul/outputs");
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
