//! The files that the model has seen, as they were then: so that a change by somebody else is noticed, and no file is
//! changed that the model does not know. Kept in memory only.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Of the content, where all of it was read.
    hash: Option<blake3::Hash>,
}

/// The files that were read or written by the tools.
#[derive(Debug, Default)]
pub(crate) struct FilesRead {
    files: HashMap<PathBuf, Stamp>,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata, content: Option<&[u8]>) -> Self {
        Self { modified: metadata.modified().ok(), bytes: metadata.len(), hash: content.map(blake3::hash) }
    }

    /// Milliseconds since 1970.
    pub(crate) fn mtime_ms(&self) -> Option<u64> {
        let since = self.modified?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }

    /// True if the content is another. A file that was only touched is the same.
    fn is_other_than(&self, before: &Self) -> bool {
        match (self.hash, before.hash) {
            (Some(now), Some(before)) => now != before,
            _ => (self.modified, self.bytes) != (before.modified, before.bytes),
        }
    }
}

impl FilesRead {
    /// The model sees the file now. True if it has seen another content of it before that none of its tools wrote over.
    pub(crate) fn see(&mut self, path: &Path, stamp: Stamp) -> bool {
        let before = self.files.insert(path.to_owned(), stamp.clone());
        before.is_some_and(|before| stamp.is_other_than(&before))
    }

    /// Files that are other than they were when the model saw them, or gone, from the root on, in order.
    pub(crate) fn changed_outside(&self, root: &Path) -> Vec<String> {
        let changed = self.files.iter().filter(|(path, before)| match path.metadata() {
            // A file that was only touched is read to be sure.
            Ok(now) if Stamp::of(&now, None).is_other_than(before) => before
                .hash
                .is_none_or(|hash| std::fs::read(path).map_or(true, |bytes| blake3::hash(&bytes) != hash)),
            Ok(_) => false,
            Err(_) => true,
        });
        let mut names: Vec<String> =
            changed.map(|(path, _)| crate::project::shown(path.strip_prefix(root).unwrap_or(path))).collect();
        names.sort_unstable();
        names
    }

    /// What the model knows of a file that is to be changed.
    pub(crate) fn knows(&self, path: &Path, now: &Stamp) -> Known {
        match self.files.get(path) {
            None => Known::Never,
            Some(before) if now.is_other_than(before) => Known::Older,
            Some(_) => Known::AsItIs,
        }
    }
}

/// What the model knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The content that the file has.
    AsItIs,
    /// An older content.
    Older,
    /// Nothing.
    Never,
}
