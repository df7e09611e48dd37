//! How a project is guarded from one command: which paths are read-only, which are compared afterwards, and whether the
//! command is a plain git command, which may write the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::confine::{Bounds, Enforced};
use super::environment;
use super::gitlinks::Gitlinks;
use super::plain_git;
use super::repository::{ENTRY, Repository};
use super::watch::Watch;
use crate::protected;

/// Settings of git while a plain command runs: no program but git itself, and nothing that goes on after it.
const GIT: [(&str, &str); 6] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("safe.bareRepository", "explicit"),
    // Git would write into its settings which branch a new one follows.
    ("branch.autoSetupMerge", "false"),
];
const COUNT: &str = "GIT_CONFIG_COUNT";

/// What guards a project from a command.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What holds besides the bounds of all commands.
    pub(crate) bounds: Bounds,
    pub(crate) watch: Watch,
    /// Variables of this command.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// What all commands of a shell have in common.
pub(crate) struct Ground<'a> {
    pub(crate) root: &'a Path,
    pub(crate) enforced: Enforced,
    /// Folders that every command may write to.
    pub(crate) writable: &'a [PathBuf],
    pub(crate) environment: &'a [(OsString, OsString)],
}

impl Guard {
    /// For a command that begins in this directory.
    pub(crate) fn new(ground: &Ground<'_>, command: &str, directory: &Path) -> Self {
        let Ground { root, enforced, .. } = *ground;
        let repository = Repository::at(root);
        let is_git = plain_git::is_plain(command)
            && ground.is_own_git()
            && is_in(directory, root, repository.as_ref());
        let entry = root.join(ENTRY);
        let mut protected = protected::present(root);
        protected.retain(|path| *path != entry);
        let submodules = repository.iter().flat_map(Repository::submodules);
        protected.extend(submodules.map(|submodule| submodule.work_tree.join(ENTRY)));
        let folders = repository.as_ref().map(Repository::folders).unwrap_or_default();
        let mut watched = Vec::new();
        if is_git || !enforced.protected {
            // All of the repository would be too much.
            watched.extend(repository.iter().flat_map(Repository::programs));
        }
        // A mount over a link protects where it leads, not the link.
        let is_watched = |path: &&PathBuf| !enforced.protected || path.is_symlink();
        watched.extend(protected.iter().filter(is_watched).cloned());
        if entry.is_symlink() || (!enforced.protected && entry.is_file()) {
            watched.push(entry.clone());
        }
        let mut bounds = Bounds { kept: protected, ..Bounds::default() };
        let mut environment = Vec::new();
        let may_make = if is_git {
            bounds.writable.extend(folders.into_iter().filter(|folder| !folder.starts_with(root)));
            environment = git_settings(ground.environment);
            Some(entry)
        } else {
            bounds.kept.extend(folders);
            None
        };
        let mut watch = Watch::new(root, watched, may_make);
        if is_git && repository.is_some() {
            let environment = [ground.environment, &environment].concat();
            watch.gitlinks = Some(Gitlinks::new(root, environment));
        }
        Self { bounds, watch, environment }
    }
}

impl Ground<'_> {
    /// Whether `git` is a program that no command can have written.
    fn is_own_git(&self) -> bool {
        let program = environment::program(self.environment, "git").and_then(|git| git.canonicalize().ok());
        program.is_some_and(|git| !self.writable.iter().any(|folder| git.starts_with(folder)))
    }
}

/// Whether git works on the project's own repository in this directory. Where there is none, it may make one.
fn is_in(directory: &Path, root: &Path, repository: Option<&Repository>) -> bool {
    match repository {
        Some(_) => Repository::used_in(directory, root).is_some(),
        None => directory == root,
    }
}

fn git_settings(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let count = environment.iter().find(|(name, _)| name == COUNT);
    let count: usize = count.and_then(|(_, count)| count.to_str()?.parse().ok()).unwrap_or(0);
    let settings = GIT.iter().enumerate().flat_map(|(number, (key, value))| {
        let number = count + number;
        [(format!("GIT_CONFIG_KEY_{number}"), *key), (format!("GIT_CONFIG_VALUE_{number}"), *value)]
    });
    let settings = settings.map(|(name, value)| (name.into(), value.into()));
    settings.chain([(COUNT.into(), (count + GIT.len()).to_string().into())]).collect()
}
