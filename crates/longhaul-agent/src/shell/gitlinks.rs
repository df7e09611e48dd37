//! Submodules in the index of a repository. `git status` looks into each with the settings found there, and these name
//! programs: a command that makes a repository and adds it has a person's next git run them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The mode of a submodule in the index.
const SUBMODULE: &str = "160000 ";

/// Submodules as they were.
#[derive(Debug)]
pub(crate) struct Gitlinks {
    work_tree: PathBuf,
    environment: Vec<(OsString, OsString)>,
    before: BTreeSet<String>,
}

impl Gitlinks {
    /// Those of this work tree. `environment` is that of a plain git command, for which git runs no programs.
    pub(crate) fn new(work_tree: &Path, environment: Vec<(OsString, OsString)>) -> Self {
        let mut found = Self { work_tree: work_tree.to_owned(), environment, before: BTreeSet::new() };
        found.before = found.now();
        found
    }

    /// Those that have come since, which are reported: whether they are wanted is not to be told here.
    pub(crate) fn added(&self) -> impl Iterator<Item = String> {
        self.now().into_iter().filter(|path| !self.before.contains(path)).map(|path| {
            format!(
                "The command added {path}, a repository of its own, as a submodule: `git status` runs programs that \
                 its configuration names."
            )
        })
    }

    fn now(&self) -> BTreeSet<String> {
        let mut git = Command::new("git");
        git.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        git.args(["ls-files", "--stage", "-z"]).current_dir(&self.work_tree);
        let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let submodules = text.split('\0').filter(|entry| entry.starts_with(SUBMODULE));
        submodules.filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned())).collect()
    }
}
