//! The git repository of a project, and which of its files make git run programs.

use std::path::{Path, PathBuf};

use crate::project::shown;

/// The name that git looks for.
pub(crate) const ENTRY: &str = ".git";
/// Submodules inside submodules that are looked at.
const DEPTH: usize = 8;
/// Bytes of a file that names a folder.
const LONGEST: u64 = 16 << 10;

/// A repository with a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    pub(crate) work_tree: PathBuf,
    /// Its folder: `.git`, or elsewhere where `.git` is a file (of linked work trees and submodules).
    pub(crate) folder: PathBuf,
    /// The folder that a linked work tree shares with others; else the same.
    pub(crate) common: PathBuf,
}

impl Repository {
    /// The one whose work tree begins in this folder.
    pub(crate) fn at(work_tree: &Path) -> Option<Self> {
        let entry = work_tree.join(ENTRY);
        let folder = if entry.is_dir() {
            entry
        } else {
            let text = text(&entry)?;
            work_tree.join(text.strip_prefix("gitdir:")?.trim())
        };
        let folder = folder.canonicalize().ok()?;
        let common = text(&folder.join("commondir")).map(|path| folder.join(path.trim()));
        let common = common.and_then(|common| common.canonicalize().ok()).unwrap_or_else(|| folder.clone());
        Some(Self { work_tree: work_tree.to_owned(), folder, common })
    }

    /// The one that git uses in this directory, if it is the one of the project, or a submodule that this one knows.
    /// Others may have been made by a command, with settings of its own.
    pub(crate) fn used_in(directory: &Path, root: &Path) -> Option<Self> {
        let work_tree = directory.ancestors().take_while(|folder| folder.starts_with(root));
        let work_tree = work_tree.into_iter().find(|folder| is_used(folder))?;
        let found = Self::at(work_tree)?;
        let is_known = work_tree == root || {
            let outer = Self::at(root)?;
            outer.submodules().contains(&found)
        };
        is_known.then_some(found)
    }

    /// Where its files are, which commands may not write.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.work_tree.join(ENTRY), self.folder.clone(), self.common.clone()];
        folders.dedup();
        folders
    }

    /// Submodules that were checked out, as the settings in this repository have them: a file in the work tree may say
    /// anything.
    pub(crate) fn submodules(&self) -> Vec<Self> {
        let known = self.modules().into_iter().filter_map(|folder| {
            let work_tree = worktree_setting(&folder)?;
            let work_tree = folder.join(work_tree).canonicalize().ok()?;
            Some(Self { work_tree, common: folder.clone(), folder })
        });
        known.collect()
    }

    /// Folders of submodules. A linked work tree has its own.
    fn modules(&self) -> Vec<PathBuf> {
        let mut modules = module_folders(&self.common, DEPTH);
        if self.folder != self.common {
            modules.extend(module_folders(&self.folder, DEPTH));
        }
        modules
    }

    /// Files and folders in which git finds programs to run: a command that may write the rest leaves these alone.
    pub(crate) fn programs(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.common.clone(), self.folder.clone()];
        folders.dedup();
        folders.extend(self.modules());
        let names = ["config", "config.worktree", "hooks", "info/attributes", "commondir"];
        let mut programs: Vec<PathBuf> =
            folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect();
        let trees = std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        programs.extend(trees.map(|tree| tree.path().join("config.worktree")));
        programs
    }
}

/// Whether git looks no further up. It takes a folder for a repository that has the parts of one, too.
fn is_used(folder: &Path) -> bool {
    folder.join(ENTRY).symlink_metadata().is_ok()
        || ["HEAD", "objects", "refs"].iter().all(|part| folder.join(part).symlink_metadata().is_ok())
}

/// Folders of submodules below `modules/`: names of submodules may have slashes.
fn module_folders(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Some(depth) = depth.checked_sub(1) else { return found };
    for entry in std::fs::read_dir(folder.join("modules")).into_iter().flatten().flatten() {
        below(&entry.path(), depth, &mut found);
    }
    found
}

fn below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if folder.join("HEAD").is_file() {
        found.push(folder.to_owned());
        found.extend(module_folders(folder, depth));
    } else if let Some(depth) = depth.checked_sub(1) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            below(&entry.path(), depth, found);
        }
    }
}

/// `core.worktree` in the settings of a submodule.
fn worktree_setting(folder: &Path) -> Option<PathBuf> {
    let config = text(&folder.join("config"))?;
    let value =
        config.lines().find_map(|line| line.trim().strip_prefix("worktree")?.trim_start().strip_prefix('='));
    value.map(|value| PathBuf::from(value.trim()))
}

fn text(path: &Path) -> Option<String> {
    path.metadata().ok().filter(|data| data.is_file() && data.len() <= LONGEST)?;
    std::fs::read_to_string(path).ok()
}

/// A path as it is shown, from the root of the project on.
pub(crate) fn from_root(path: &Path, root: &Path) -> String {
    shown(path.strip_prefix(root).unwrap_or(path))
}
