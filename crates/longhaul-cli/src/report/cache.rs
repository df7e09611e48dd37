//! What files said, kept between runs. One file in the user's cache folder: whoever deletes it loses time, nothing
//! else. It is good for the program that wrote it alone; another one begins anew.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::Stamp;
use super::replayed::Replayed;
use super::scan::Scanned;
use crate::place::make_private;

/// Changes when the form of the file does.
const VERSION: u32 = 1;

/// More bytes than this are no cache.
const MOST: u64 = 1 << 30;

/// The cache in memory.
#[derive(Default)]
pub struct Cache {
    /// Where it is kept; `None` where there is no place for it.
    path: Option<PathBuf>,
    program: String,
    entries: HashMap<PathBuf, Entry>,
    changed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    scanned: Scanned,
    /// By the settings that it was replayed with.
    #[serde(default)]
    replayed: HashMap<String, Option<Replayed>>,
}

#[derive(Serialize, Deserialize)]
struct Saved<E> {
    version: u32,
    program: String,
    files: E,
}

impl Cache {
    /// The cache of the user, or an empty one.
    pub fn load() -> Self {
        let path = folder().map(|folder| folder.join("report.json"));
        Self::load_from(path, program())
    }

    /// A cache that is not kept.
    pub fn none() -> Self {
        Self::default()
    }

    fn load_from(path: Option<PathBuf>, program: String) -> Self {
        let read = path.as_deref().and_then(|path| {
            fs::metadata(path).ok().filter(|about| about.len() < MOST)?;
            let saved: Saved<HashMap<PathBuf, Entry>> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            (saved.version == VERSION && saved.program == program).then_some(saved.files)
        });
        Self { path, program, entries: read.unwrap_or_default(), changed: false }
    }

    /// What a file said, if it is still the same.
    pub fn scanned(&self, path: &Path, stamp: Stamp) -> Option<&Scanned> {
        self.entries.get(path).filter(|entry| entry.stamp == stamp).map(|entry| &entry.scanned)
    }

    pub fn put(&mut self, path: &Path, stamp: Stamp, scanned: Scanned) {
        self.changed = true;
        self.entries.insert(path.to_owned(), Entry { stamp, scanned, replayed: HashMap::new() });
    }

    /// What came of replaying a file with these settings; `Some(None)` if nothing can.
    pub fn replayed(&self, path: &Path, settings: &str) -> Option<&Option<Replayed>> {
        self.entries.get(path)?.replayed.get(settings)
    }

    pub fn put_replayed(&mut self, path: &Path, settings: &str, replayed: Option<Replayed>) {
        if let Some(entry) = self.entries.get_mut(path) {
            self.changed = true;
            entry.replayed.insert(settings.to_owned(), replayed);
        }
    }

    /// Writes what is new. A cache that cannot be written costs time at the next run, and nothing now.
    pub fn save(mut self) {
        let Some(path) = self.path.take().filter(|_| self.changed) else { return };
        // What was deleted is not asked for again, and JSON has no names that are no text.
        self.entries.retain(|path, _| path.to_str().is_some() && path.exists());
        _ = self.write(&path);
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        make_private(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let saved = Saved { version: VERSION, program: self.program.clone(), files: &self.entries };
        let mut out = std::io::BufWriter::new(file.as_file_mut());
        serde_json::to_writer(&mut out, &saved)?;
        out.flush()?;
        drop(out);
        file.persist(path)?;
        Ok(())
    }
}

/// The user's folder for caches of this program.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    caches.or_else(|| Some(variable("HOME")?.join(".cache"))).map(|caches| caches.join("longhaul"))
}

/// Names the program that runs: what another one found may be counted in another way.
fn program() -> String {
    let stamp = std::env::current_exe().ok().and_then(|path| Stamp::of(&path)).unwrap_or_default();
    format!("{} {} {}", env!("CARGO_PKG_VERSION"), stamp.bytes, stamp.modified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_holds_for_the_same_file_and_the_same_program() {
        let folder = tempfile::tempdir().unwrap();
        let (place, file) = (folder.path().join("deep/report.json"), folder.path().join("a"));
        fs::write(&file, "x").unwrap();
        let stamp = Stamp::of(&file).unwrap();
        let load = |program: &str| Cache::load_from(Some(place.clone()), program.to_owned());
        let scanned = Scanned { agent: "pi".to_owned(), unread: 3, ..Scanned::default() };
        let mut cache = load("one");
        cache.put(&file, stamp, scanned.clone());
        cache.put(&folder.path().join("gone"), stamp, scanned.clone());
        cache.save();
        assert_eq!(load("one").scanned(&file, stamp), Some(&scanned));
        assert_eq!(load("one").entries.len(), 1);
        assert_eq!(load("one").scanned(&file, Stamp { bytes: 2, ..stamp }), None);
        assert_eq!(load("two").scanned(&file, stamp), None);
        fs::write(&place, "{broken").unwrap();
        assert_eq!(load("one").scanned(&file, stamp), None);
    }
}
