//! A store in one file: SQLite with a write-ahead log. One connection writes, others read beside it; other
//! processes may do the same at the same time.

mod appending;
mod current;
mod deleting;
mod faults;
mod forking;
mod indexing;
mod opening;
mod originals;
mod prefixes;
mod reading;
mod salvaging;
mod searching;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::Calibration;
use longhaul::{Archive, Handle, Snapshot, Time, Tokens};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::error::StoreError;
use crate::fault::Fault;
use crate::packing::{Packer, Unpacker};
use crate::rows::Now;
use crate::store::{
    About, Alike, Filter, Hit, Holders, Meta, Patience, Pruned, Retention, SessionId, Store, Stored,
    UpstreamLimit, UpstreamRefusal,
};
use current::Current;
use faults::Faults;
pub use salvaging::{Salvaged, salvage};

/// A store in one file, and the two that SQLite keeps beside it (`-wal`, `-shm`). A clone is the same store.
#[derive(Clone)]
pub struct SqliteStore {
    current: Arc<Current>,
}

/// The connections to the file.
struct SqliteFile {
    path: PathBuf,
    patience: Patience,
    /// Another file has taken its place.
    is_left: AtomicBool,
    faults: Faults,
    writer: Mutex<Writer>,
    /// Connections that nobody reads with at the moment.
    readers: Mutex<Vec<Reader>>,
}

struct Writer {
    connection: Connection,
    packer: Packer,
    unpacker: Unpacker,
}

struct Reader {
    connection: Connection,
    unpacker: Unpacker,
}

/// The number of a session in the file. Its entries have the numbers from it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place(i64);

impl Place {
    /// The session that has the entry of this number.
    fn of_entry(at: i64) -> Self {
        Self(at >> 32)
    }

    /// The number of an entry.
    fn entry(self, seq: usize) -> Result<i64, Fault> {
        let seq = u32::try_from(seq).map_err(|_| Fault::Unavailable("a journal is too long".to_owned()))?;
        Ok(self.0 << 32 | i64::from(seq))
    }

    fn entries(self, seqs: Range<usize>) -> Result<Range<i64>, Fault> {
        Ok(self.entry(seqs.start)?..self.entry(seqs.end)?)
    }

    /// All entries that the session may have.
    fn all(self) -> Range<i64> {
        self.0 << 32..(self.0 + 1) << 32
    }
}

impl SqliteStore {
    /// Opens a store, or makes it if there is no such file. A file that is something else is left alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, Patience::Long)
    }

    /// The same, with calls that wait for other writers as long as is said.
    pub fn open_with(path: impl AsRef<Path>, patience: Patience) -> Result<Self, StoreError> {
        // A path is never taken for a URI.
        Self::at(std::path::absolute(path.as_ref()).unwrap_or_else(|_| path.as_ref().to_owned()), patience)
    }

    /// A store in memory, which ends with its last clone: for a program that must go on where no file can be used.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::at(opening::in_memory(), Patience::Long)
    }

    fn at(path: PathBuf, patience: Patience) -> Result<Self, StoreError> {
        Ok(Self { current: Arc::new(Current::open(path, patience)?) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.current.path()
    }

    fn file(&self) -> Result<Arc<SqliteFile>, StoreError> {
        Ok(self.current.opened()?.file.clone())
    }

    /// How large the file may get, in bytes: what does not fit is [`StoreError::Full`]. No limit if `None`.
    /// It holds for this store, not for others that open the same file.
    pub fn set_limit(&self, bytes: Option<u64>) -> Result<(), StoreError> {
        self.file()?.with_writer(|writer| {
            let page: i64 = writer.connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            let pages = bytes.map_or(i64::from(u32::MAX) - 1, |bytes| {
                i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1)
            });
            let set = format!("PRAGMA max_page_count = {}", pages.max(1));
            writer.connection.query_row(&set, [], |_| Ok(()))?;
            Ok(())
        })
    }

    /// Reads the whole file and says whether it is damaged. Takes as long as reading it.
    pub fn check(&self) -> Result<(), StoreError> {
        self.file()?.read(|reader| {
            let sql = "PRAGMA integrity_check(1)";
            let says: String = reader.connection.query_row(sql, [], |row| row.get(0))?;
            if says == "ok" { Ok(()) } else { Err(Fault::Damaged(says)) }
        })
    }
}

impl SqliteFile {
    fn of(path: PathBuf, patience: Patience, faults: Faults, writer: Writer) -> Self {
        let (is_left, readers) = (AtomicBool::new(false), Mutex::default());
        Self { path, patience, is_left, faults, writer: Mutex::new(writer), readers }
    }

    /// Another file has taken the place of this one: what is in the log of this one goes into it. False if that was known.
    fn leave(&self) -> bool {
        let is_new = !self.is_left.swap(true, Ordering::Relaxed);
        if is_new {
            self.with_writer(|writer| deleting::empty_log(&writer.connection)).ok();
        }
        is_new
    }

    fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    fn with_writer<T>(&self, run: impl FnOnce(&mut Writer) -> Result<T, Fault>) -> Result<T, StoreError> {
        let begun = Instant::now();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.patience.most().is_some_and(|most| begun.elapsed() > most) {
            // Whoever wrote before has waited for another process all this time.
            return Err(self.faults.of(Fault::Busy));
        }
        run(&mut writer).map_err(|fault| self.faults.of(fault))
    }

    /// Writes in one transaction: all of it is on the disk when this returns, or nothing of it ever is.
    fn write<T>(
        &self,
        run: impl FnOnce(&Connection, &mut Packer, &mut Unpacker) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.with_writer(|Writer { connection, packer, unpacker }| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let written = run(&transaction, packer, unpacker)?;
            transaction.commit()?;
            Ok(written)
        })
    }

    /// Indexes all words that wait.
    fn index(&self) -> Result<(), StoreError> {
        while self.index_some(indexing::LARGE)? {}
        Ok(())
    }

    /// Indexes some words that wait. Says whether there were any.
    fn index_some(&self, most: i64) -> Result<bool, StoreError> {
        let words = self.read(|reader| indexing::words(&reader.connection, &mut reader.unpacker, most))?;
        let Some(words) = words else { return Ok(false) };
        self.write(|connection, _, _| indexing::index(connection, &words))?;
        Ok(true)
    }

    /// Lists some entries that an older version stored, for recalls. Says whether there were any.
    fn list_some(&self) -> Result<bool, StoreError> {
        let some = self.read(|reader| originals::some_unlisted(&reader.connection, &mut reader.unpacker))?;
        let Some(some) = some else { return Ok(false) };
        self.write(|connection, _, _| originals::list(connection, &some))?;
        Ok(true)
    }

    /// Lists the newest sessions of a tenant that an older version stored. Says whether there were any.
    fn list_newest(&self, tenant: &str) -> Result<bool, StoreError> {
        let newest = self.read(|reader| originals::unlisted_of(&reader.connection, tenant))?;
        for session in &newest {
            while let Some(some) =
                self.read(|reader| originals::unlisted(&reader.connection, &mut reader.unpacker, *session))?
            {
                self.write(|connection, _, _| originals::list(connection, &some))?;
            }
        }
        Ok(!newest.is_empty())
    }

    /// Gives the space of deleted sessions back. They are gone already: if it fails, the space is used again.
    fn give_back(&self) {
        // Others write between its parts.
        while self.with_writer(|writer| deleting::give_some_back(&writer.connection)).unwrap_or(false) {}
        self.with_writer(|writer| deleting::empty_log(&writer.connection)).ok();
    }

    /// Reads one moment of the store.
    fn read<T>(&self, run: impl FnOnce(&mut Reader) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.read_once(|reader| {
            reader.connection.execute_batch("BEGIN")?;
            let read = run(reader);
            reader.connection.execute_batch("COMMIT")?;
            read
        })
    }

    /// Reads by one statement, which sees one moment of the store by itself.
    fn read_once<T>(&self, run: impl FnOnce(&mut Reader) -> Result<T, Fault>) -> Result<T, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let read = || {
            let mut reader = match idle {
                Some(reader) => reader,
                None => current::reader(self)?,
            };
            let read = run(&mut reader);
            // A reader that is left inside of a transaction is not used again.
            if reader.connection.is_autocommit() {
                self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            }
            read
        };
        read().map_err(|fault| self.faults.of(fault))
    }
}

impl Store for SqliteStore {
    fn create_as(&self, id: SessionId, about: &About) -> Result<(), StoreError> {
        self.file()?.write(|connection, _, _| appending::create(connection, id, about, Now::get()))
    }

    fn append(&self, id: SessionId, from: Cursor, entries: &[Entry]) -> Result<(), StoreError> {
        let opened = self.current.opened()?;
        opened.indexing.give_way();
        let index_is_due = opened.file.write(|connection, packer, _| {
            appending::append(connection, packer, id, from, entries, Now::get())?;
            indexing::is_due(connection)
        })?;
        if index_is_due {
            opened.indexing.ask();
        }
        Ok(())
    }

    fn load(&self, id: SessionId) -> Result<Stored, StoreError> {
        self.file()?.read(|reader| reading::load(&reader.connection, &mut reader.unpacker, id))
    }

    fn meta(&self, id: SessionId) -> Result<Meta, StoreError> {
        self.file()?.read_once(|reader| reading::meta(&reader.connection, id))
    }

    fn since(&self, id: SessionId, from: Cursor) -> Result<Vec<Entry>, StoreError> {
        self.file()?.read(|reader| reading::since(&reader.connection, &mut reader.unpacker, id, from))
    }

    fn fork_as(&self, fork: SessionId, id: SessionId, at: Cursor) -> Result<(), StoreError> {
        self.file()?
            .write(|connection, _, unpacker| forking::fork(connection, unpacker, fork, (id, at), Now::get()))
    }

    fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Meta>, StoreError> {
        self.file()?.read(|reader| reading::list(&reader.connection, filter, limit))
    }

    fn search(&self, query: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>, StoreError> {
        // A store that cannot be written to at the moment is searched as far as it is indexed.
        let file = self.file()?;
        file.index().ok();
        file.read(|reader| searching::search(&reader.connection, &mut reader.unpacker, query, filter, limit))
    }

    fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        let file = self.file()?;
        file.write(|connection, _, _| deleting::delete(connection, id))?;
        file.give_back();
        Ok(())
    }

    fn prune(&self, retention: &Retention, most: usize) -> Result<Pruned, StoreError> {
        let (file, mut pruned) = (self.file()?, Pruned::default());
        while pruned.sessions.len() < most
            && let Some(part) =
                file.write(|connection, _, _| deleting::prune_part(connection, retention, Now::get()))?
        {
            pruned.bytes += part.bytes;
            pruned.sessions.extend(part.gone);
            // Others get their turn.
            std::thread::sleep(Duration::from_millis(4));
        }
        if !pruned.sessions.is_empty() {
            file.give_back();
        }
        Ok(pruned)
    }

    fn used(&self) -> Result<u64, StoreError> {
        self.file()?.read(|reader| deleting::used(&reader.connection))
    }

    fn keep_sizes(&self, id: SessionId, sizes: &[Snapshot]) -> Result<(), StoreError> {
        let json = serde_json::to_string(sizes).map_err(StoreError::Entry)?;
        self.file()?.write(|connection, packer, _| {
            let (session, _) = appending::place_of(connection, id)?;
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO sizes (session, messages, packed) SELECT n, messages, ?2 FROM session WHERE n = ?1",
                )?
                .execute(params![session.0, packer.pack(&json)?])?;
            Ok(())
        })
    }

    fn keep_prefixes(&self, id: SessionId, first: usize, hashes: &[[u8; 16]]) -> Result<(), StoreError> {
        self.file()?.write(|connection, _, _| prefixes::keep(connection, id, first, hashes))
    }

    fn find_prefix(&self, hashes: &[[u8; 16]]) -> Result<Option<Alike>, StoreError> {
        self.file()?.read(|reader| prefixes::find(&reader.connection, hashes))
    }

    fn holders(&self, tenant: &str, handle: &str) -> Result<Option<Holders>, StoreError> {
        let file = self.file()?;
        let find = || file.read(|reader| originals::find(&reader.connection, tenant, handle));
        match find()? {
            // A store that cannot be written to at the moment is asked as far as it is listed.
            None if file.list_newest(tenant).unwrap_or(false) => find(),
            found => Ok(found),
        }
    }

    fn keep_learnt(&self, model: &str, calibration: &Calibration) -> Result<(), StoreError> {
        let json = serde_json::to_string(calibration).map_err(StoreError::Entry)?;
        self.file()?.write(|connection, _, _| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO learnt (model, calibration) VALUES (?1, ?2)")?
                .execute([model, &json])?;
            Ok(())
        })
    }

    fn learnt(&self, model: &str) -> Result<Option<Calibration>, StoreError> {
        self.file()?.read(|reader| {
            let json: Option<String> = reader
                .connection
                .prepare_cached("SELECT calibration FROM learnt WHERE model = ?1")?
                .query_row([model], |row| row.get(0))
                .optional()?;
            // A form of another version: it is learnt again.
            Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
        })
    }

    fn keep_limit(&self, limit: &UpstreamLimit) -> Result<(), StoreError> {
        let window = i64::try_from(limit.window.0).unwrap_or(i64::MAX);
        self.file()?.write(|connection, _, _| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO upstream_limit (upstream, model, window, learnt)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![limit.upstream, limit.model, window, limit.learnt.0])?;
            Ok(())
        })
    }

    fn limits(&self) -> Result<Vec<UpstreamLimit>, StoreError> {
        self.file()?.read(|reader| {
            let select = "SELECT upstream, model, window, learnt FROM upstream_limit";
            let mut select = reader.connection.prepare_cached(select)?;
            let rows = select.query_map([], |row| {
                let window: i64 = row.get(2)?;
                let window = Tokens(u64::try_from(window).unwrap_or(0));
                let learnt = Time(row.get(3)?);
                Ok(UpstreamLimit { upstream: row.get(0)?, model: row.get(1)?, window, learnt })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn look(&self) -> Result<(), StoreError> {
        self.current.opened().map(drop)
    }

    fn replaced(&self) -> u64 {
        self.current.replaced()
    }

    fn keep_refusal(&self, refusal: &UpstreamRefusal) -> Result<(), StoreError> {
        self.file()?.write(|connection, _, _| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO upstream_refusal (upstream, model, form, says, learnt)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    refusal.upstream,
                    refusal.model,
                    refusal.form,
                    refusal.says,
                    refusal.learnt.0
                ])?;
            Ok(())
        })
    }

    fn refusals(&self) -> Result<Vec<UpstreamRefusal>, StoreError> {
        self.file()?.read(|reader| {
            let select = "SELECT upstream, model, form, says, learnt FROM upstream_refusal";
            let mut select = reader.connection.prepare_cached(select)?;
            let rows = select.query_map([], |row| {
                let (upstream, model, form) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(UpstreamRefusal { upstream, model, form, says: row.get(3)?, learnt: Time(row.get(4)?) })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn archive(&self, id: SessionId) -> Result<Arc<dyn Archive>, StoreError> {
        let file = self.file()?;
        let (session, _) = file.read(|reader| appending::place_of(&reader.connection, id))?;
        Ok(Arc::new(Texts { file, session }))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.path()).finish()
    }
}

/// The texts that a session keeps apart from its entries.
struct Texts {
    file: Arc<SqliteFile>,
    session: Place,
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Texts").field(&self.file.path).field(&self.session).finish()
    }
}

impl Archive for Texts {
    fn get(&self, handle: Handle) -> Option<String> {
        let read = self.file.read(|reader| {
            reading::text_apart(&reader.connection, &mut reader.unpacker, self.session, handle)
        });
        read.ok().flatten()
    }

    fn find(&self, start: &str) -> Option<Handle> {
        let read = self.file.read(|reader| reading::handle_starting(&reader.connection, self.session, start));
        read.ok().flatten()
    }
}
