//! Paths that a command may not change, but that nothing keeps it from changing: they are compared afterwards, restored
//! and reported.
//!
//! Nothing is lost: what the command wrote is kept next to it, under a name that no program looks for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::gitlinks::Gitlinks;
use super::repository::from_root;
use crate::protected;

/// Bytes of a file that can be restored.
const LONGEST: u64 = 1 << 20;
/// Files and folders that are looked at in one place. A larger one is not watched.
const MOST: usize = 2_000;
/// The end of the name under which something is kept.
const ASIDE: &str = "set-aside";
/// Such names that are tried.
const NAMES: usize = 100;

/// Paths as they were.
#[derive(Debug)]
pub(crate) struct Watch {
    root: PathBuf,
    paths: Vec<PathBuf>,
    before: BTreeMap<PathBuf, Content>,
    /// Protected paths of the project that were there.
    there: Vec<PathBuf>,
    /// Looked at where the command can write the index.
    pub(crate) gitlinks: Option<Gitlinks>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    Folder,
    /// Too large or of another kind: it is seen that it changed, and cannot be restored.
    Other {
        bytes: u64,
        changed: (i64, i64),
    },
}

impl Watch {
    /// Watches these paths of a project, and whether protected ones are made besides the one that may be.
    pub(crate) fn new(root: &Path, paths: Vec<PathBuf>, may_make: Option<PathBuf>) -> Self {
        let before = look(&paths);
        let there = protected::present(root).into_iter().chain(may_make).collect();
        Self { root: root.to_owned(), paths, before, there, gitlinks: None }
    }

    /// Restores what has changed. Gives a sentence for each path.
    pub(crate) fn restore(&self) -> Vec<String> {
        let mut now = look(&self.paths);
        let made = protected::present(&self.root).into_iter().filter(|path| !self.there.contains(path));
        now.extend(made.map(|path| (path, Content::Folder)));
        let mut notes = Vec::new();
        let mut aside: Vec<PathBuf> = Vec::new();
        for (path, content) in &now {
            let before = self.before.get(path);
            if before == Some(content) || aside.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            let name = from_root(path, &self.root);
            let can_restore = !matches!(before, Some(Content::Other { .. }));
            notes.push(match can_restore.then(|| set_aside(path)) {
                Some(Ok(kept)) => {
                    aside.push(path.clone());
                    let what = if before.is_some() { "changed" } else { "made" };
                    format!(
                        "The command {what} {name}, which is protected: it is now {}.",
                        from_root(&kept, &self.root)
                    )
                }
                Some(Err(error)) => format!("The command changed {name}, which is protected: {error}."),
                None => format!("The command changed {name}, which is protected and cannot be restored."),
            });
        }
        for (path, content) in &self.before {
            if path.symlink_metadata().is_ok() || now.get(path) == Some(content) {
                continue;
            }
            let name = from_root(path, &self.root);
            notes.push(match write(path, content) {
                Ok(()) => format!("{name} was restored."),
                Err(error) => format!("{name} could not be restored: {error}."),
            });
        }
        notes.extend(self.gitlinks.iter().flat_map(Gitlinks::added));
        notes
    }
}

fn look(paths: &[PathBuf]) -> BTreeMap<PathBuf, Content> {
    let mut found = BTreeMap::new();
    for path in paths {
        let mut here = BTreeMap::new();
        look_at(path, &mut here);
        if here.len() < MOST {
            found.append(&mut here);
        }
    }
    found
}

fn look_at(path: &Path, found: &mut BTreeMap<PathBuf, Content>) {
    let Ok(data) = path.symlink_metadata() else { return };
    if found.len() >= MOST {
        return;
    }
    let other = || Content::Other { bytes: data.len(), changed: (data.mtime(), data.mtime_nsec()) };
    let content = if data.is_symlink() {
        std::fs::read_link(path).map_or_else(|_| other(), Content::Link)
    } else if data.is_dir() {
        Content::Folder
    } else if data.is_file() && data.len() <= LONGEST {
        let mode = data.mode();
        std::fs::read(path).map_or_else(|_| other(), |bytes| Content::File { bytes, mode })
    } else {
        other()
    };
    let is_folder = content == Content::Folder;
    found.insert(path.to_owned(), content);
    if is_folder {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            look_at(&entry.path(), found);
        }
    }
}

/// Gives something another name, next to where it was.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    let mut names = (0..NAMES).map(|count| {
        let mut name = OsString::from(name);
        name.push(if count == 0 { format!(".{ASIDE}") } else { format!(".{ASIDE}-{count}") });
        path.with_file_name(name)
    });
    let free = names.find(|name| name.symlink_metadata().is_err());
    let free = free.ok_or_else(|| io::Error::other("too much was set aside before"))?;
    std::fs::rename(path, &free)?;
    Ok(free)
}

fn write(path: &Path, content: &Content) -> io::Result<()> {
    match content {
        Content::File { bytes, mode } => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path, bytes)?;
            std::fs::set_permissions(path, Permissions::from_mode(*mode & 0o7777))
        }
        Content::Link(target) => symlink(target, path),
        Content::Folder => std::fs::create_dir_all(path),
        Content::Other { .. } => Err(io::Error::other("it was too large to be kept")),
    }
}
