//! All session files: found, read on all cores, and not read again while they are the same.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::scan::{Scanned, scan};
use crate::lab::inputs::Input;
use crate::terminal;

/// A file with sessions in it.
#[derive(Debug, Clone)]
pub struct SessionFile {
    pub path: PathBuf,
    pub stamp: Stamp,
    pub scanned: Scanned,
    /// Which conversation is wanted; 0 is the main one.
    pub number: usize,
    /// Somebody named that conversation: no other is wanted.
    pub is_named: bool,
}

/// Tells whether a file is still the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub bytes: u64,
    /// Nanoseconds since 1970.
    pub modified: u64,
}

impl Stamp {
    /// Of a file as it is now, with the log that SQLite writes beside it.
    pub fn of(path: &Path) -> Option<Self> {
        let one = |path: &Path| {
            let about = std::fs::metadata(path).ok()?;
            // A time before 1970 is told from others all the same.
            let modified = match about.modified().ok()?.duration_since(UNIX_EPOCH) {
                Ok(since) => u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
                Err(before) => {
                    u64::try_from(before.duration().as_nanos()).map_or(0, |nanos| u64::MAX - nanos)
                }
            };
            Some(Self { bytes: about.len(), modified })
        };
        let mut stamp = one(path)?;
        if path.extension().is_some_and(|extension| extension == "db") {
            let mut log = path.as_os_str().to_owned();
            log.push("-wal");
            if let Some(log) = one(Path::new(&log)) {
                stamp = Self { bytes: stamp.bytes + log.bytes, modified: stamp.modified.max(log.modified) };
            }
        }
        Some(stamp)
    }
}

/// What came of reading files.
#[derive(Default)]
pub struct Read {
    pub files: Vec<SessionFile>,
    /// Files that hold no messages.
    pub skipped: u64,
    /// Files that could not be read, or were named and hold no messages, and why.
    pub failed: Vec<(Input, String)>,
    /// Bytes of all files, and of those that were read now.
    pub bytes: u64,
    pub read: u64,
}

/// Reads files that the cache does not know as they are.
pub fn read(inputs: &[Input], cache: &mut Cache) -> Read {
    let stamped: Vec<(&Path, Stamp)> = inputs
        .iter()
        .map(|input| (input.path.as_path(), Stamp::of(&input.path).unwrap_or_default()))
        .collect();
    let mut changed: Vec<usize> =
        (0..stamped.len()).filter(|at| cache.scanned(stamped[*at].0, stamped[*at].1).is_none()).collect();
    // The largest first: no core is left alone with one at the end.
    changed.sort_by_key(|at| std::cmp::Reverse(stamped[*at].1.bytes));
    let progress = Progress::new("reading", changed.iter().map(|at| stamped[*at].1.bytes).sum());
    let scanned = on_all_cores(&changed, |at| {
        let (path, _) = stamped[*at];
        scan(path, &|bytes| progress.add(bytes))
    });
    terminal::clear_progress();
    let mut out = Read::default();
    let mut failed = std::collections::HashSet::new();
    for (at, scanned) in changed.iter().zip(scanned) {
        let (path, stamp) = stamped[*at];
        out.read += stamp.bytes;
        match scanned {
            Ok(scanned) => cache.put(path, stamp, scanned),
            Err(error) => {
                failed.insert(*at);
                out.failed.push((inputs[*at].clone(), error.to_string()));
            }
        }
    }
    for (at, (path, stamp)) in stamped.into_iter().enumerate().filter(|(at, _)| !failed.contains(at)) {
        out.bytes += stamp.bytes;
        match cache.scanned(path, stamp).filter(|scanned| !scanned.conversations.is_empty()) {
            Some(scanned) => {
                let (named, path) = (inputs[at].conversation, path.to_owned());
                let (number, is_named) = (named.unwrap_or_default(), named.is_some());
                out.files.push(SessionFile { path, stamp, scanned: scanned.clone(), number, is_named });
            }
            None if inputs[at].found => out.skipped += 1,
            None => out.failed.push((inputs[at].clone(), "has no messages".to_owned())),
        }
    }
    out
}

/// Does something with each item, on all cores. The order of what comes out is that of the items.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// How far the work is, as a bar.
pub struct Progress {
    what: &'static str,
    all: u64,
    done: AtomicU64,
    shown: AtomicU64,
}

impl Progress {
    pub fn new(what: &'static str, all: u64) -> Self {
        Self { what, all, done: AtomicU64::new(0), shown: AtomicU64::new(0) }
    }

    /// So many more bytes are done.
    pub fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // A hundred steps are enough for anybody.
        let step = (done * 100 / self.all.max(1)).min(100);
        if self.shown.fetch_max(step, Ordering::Relaxed) >= step {
            return;
        }
        let filled = (step * 30 / 100) as usize;
        terminal::show_progress(format_args!(
            "{} [{}{}] {step:3}% of {}B",
            self.what,
            "#".repeat(filled),
            " ".repeat(30 - filled),
            terminal::short(self.all)
        ));
    }
}
