//! The file that is at the path of a store. If it is deleted or replaced while it is open, what is written to it would be
//! found by nobody: the file that is there then is opened, or made.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::faults::Faults;
use super::{Reader, SqliteFile, Writer, indexing, opening, originals};
use crate::background::{AtEnd, Background, Pace};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::packing::{Packer, Unpacker};
use crate::store::Patience;

/// How often it is looked which file is there: that takes some microseconds.
const EVERY: Duration = Duration::from_millis(500);

/// The files that SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The file that is at a path.
pub(super) struct Current {
    path: PathBuf,
    patience: Patience,
    looked_at: Mutex<LookedAt>,
    /// How often another file was found.
    replaced: AtomicU64,
}

struct LookedAt {
    opened: Arc<Opened>,
    when: Instant,
}

/// A file that was opened.
pub(super) struct Opened {
    pub(super) file: Arc<SqliteFile>,
    /// Indexes words, and lists originals, while nobody waits for it.
    pub(super) indexing: Background,
    /// Which file it is, and which were beside it.
    id: Option<FileId>,
    beside: Vec<(PathBuf, FileId)>,
}

impl Current {
    pub(super) fn open(path: PathBuf, patience: Patience) -> Result<Self, StoreError> {
        let opened = Arc::new(Opened::open(&path, Patience::Long, patience)?);
        let looked_at = Mutex::new(LookedAt { opened, when: Instant::now() });
        Ok(Self { path, patience, looked_at, replaced: AtomicU64::new(0) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// The file that is there now.
    pub(super) fn opened(&self) -> Result<Arc<Opened>, StoreError> {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if looked_at.when.elapsed() < EVERY {
            return Ok(looked_at.opened.clone());
        }
        if looked_at.opened.is_there(&self.path) {
            looked_at.when = Instant::now();
            return Ok(looked_at.opened.clone());
        }
        // Until this succeeds, each call tries it: nothing is written to the file that is gone.
        looked_at.opened.leave();
        looked_at.opened = Arc::new(Opened::open(&self.path, self.patience, self.patience)?);
        looked_at.when = Instant::now();
        self.replaced.fetch_add(1, Ordering::Relaxed);
        Ok(looked_at.opened.clone())
    }
}

impl Opened {
    fn open(path: &Path, while_opening: Patience, patience: Patience) -> Result<Self, StoreError> {
        let faults = Faults::new(path.to_owned());
        let mut connection = opening::writer(path, while_opening, &faults)?;
        let writer = || {
            opening::wait_for_others(&mut connection, patience)?;
            Ok(Writer { connection, packer: Packer::new()?, unpacker: Unpacker::new()? })
        };
        let writer = writer().map_err(|fault: Fault| faults.of(fault))?;
        let id = FileId::of(path);
        let beside = BESIDE.iter().filter_map(|end| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            let beside = PathBuf::from(name);
            FileId::of(&beside).map(|id| (beside, id))
        });
        let beside = beside.collect();
        let file = Arc::new(SqliteFile::of(path.to_owned(), patience, faults, writer));
        let indexed = file.clone();
        // What is not indexed now is indexed by the next search.
        let index = move |pace: &Pace| {
            while pace.goes_on() && indexed.index_some(indexing::SMALL).unwrap_or(false) {
                // Others get their turn: it takes about as long.
                std::thread::sleep(Duration::from_millis(4));
            }
            // What is not listed now is listed by the next process that opens the store, or by a recall.
            while pace.goes_on() && indexed.list_some().unwrap_or(false) {
                std::thread::sleep(Duration::from_millis(4));
            }
        };
        let indexing = Background::new(AtEnd::Wait, index);
        if file.read(|reader| originals::any_unlisted(&reader.connection)).unwrap_or(false) {
            indexing.ask();
        }
        Ok(Self { file, indexing, id, beside })
    }

    fn is_there(&self, path: &Path) -> bool {
        // It may have been deleted while it was opened.
        !FileId::ARE_KNOWN
            || opening::is_in_memory(path)
            || (self.id.is_some() && self.id == FileId::of(path))
    }

    /// Another file takes the place of this one. What SQLite keeps beside it must not be taken for that of the other one.
    fn leave(&self) {
        if self.file.leave() {
            for (path, id) in &self.beside {
                if FileId::of(path) == Some(*id) {
                    _ = fs::remove_file(path);
                }
            }
        }
    }
}

/// Which file a path leads to, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    /// Elsewhere a file that is open is neither deleted nor replaced.
    const ARE_KNOWN: bool = cfg!(unix);

    /// `None` where there is no file.
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|file| Self(file.dev(), file.ino()))
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Option<Self> {
        None
    }
}

/// A reader of a file that is no longer at its path is not made anew: it would read the other one.
pub(super) fn reader(file: &SqliteFile) -> Result<Reader, Fault> {
    if file.is_left() {
        return Err(Fault::Unavailable("another file has taken its place".to_owned()));
    }
    Ok(Reader { connection: opening::reader(&file.path, file.patience)?, unpacker: Unpacker::new()? })
}
