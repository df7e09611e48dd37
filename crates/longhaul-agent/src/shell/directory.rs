//! The working directory that is kept from one command to the next, inside the project.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::project::shown;

/// The working directory.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    now: Mutex<PathBuf>,
}

impl Directory {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), now: Mutex::new(root.to_owned()) }
    }

    /// Where the next command begins, and a word on it if that is not where the last one ended.
    pub(crate) fn start(&self) -> (PathBuf, Option<String>) {
        let mut now = self.now();
        let note = self.problem(&now).map(|problem| self.back(&mut now, &problem));
        (now.clone(), note)
    }

    /// A command ended there. Says so if the next one begins elsewhere.
    pub(crate) fn arrive(&self, there: PathBuf) -> Option<String> {
        let mut now = self.now();
        let problem = self.problem(&there);
        *now = there;
        problem.map(|problem| self.back(&mut now, &problem))
    }

    fn now(&self) -> MutexGuard<'_, PathBuf> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn problem(&self, there: &Path) -> Option<String> {
        match there.canonicalize() {
            Ok(path) if !path.is_dir() => Some("is no folder".to_owned()),
            Ok(path) if !path.starts_with(&self.root) => Some("is outside the project".to_owned()),
            Ok(_) => None,
            Err(_) => Some("is gone".to_owned()),
        }
    }

    fn back(&self, now: &mut PathBuf, problem: &str) -> String {
        let before = std::mem::replace(now, self.root.clone());
        let before = before.strip_prefix(&self.root).unwrap_or(&before);
        format!("The working directory is the project root again: {} {problem}.", shown(before))
    }
}
