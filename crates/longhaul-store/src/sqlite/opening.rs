//! Opening the file: whose it is, which form it has, and how it is brought to the newest one. Nothing is
//! written before it is known that the file is ours.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::faults::Faults;
use crate::error::StoreError;
use crate::fault::Fault;
use crate::store::Patience;

/// The mark of our databases in their header: `LHsn`.
const APPLICATION: i64 = 0x4C48_736E;

/// The steps from each form to the next; a new file goes through all of them. A step that was released
/// never changes.
const STEPS: [&str; 8] = [
    include_str!("1.sql"),
    include_str!("2.sql"),
    include_str!("3.sql"),
    include_str!("4.sql"),
    include_str!("5.sql"),
    include_str!("6.sql"),
    include_str!("7.sql"),
    include_str!("8.sql"),
];

/// The newest form: the number of steps.
const FORM: i64 = STEPS.len() as i64;

/// How often a call looks whether another writer is done: about ten seconds long.
const LOOKS: i32 = 4_000;

/// The same for who can go on without the store: about a quarter of a second.
const BRIEF_LOOKS: i32 = 110;

/// A file is opened again while others are in the way, for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pages that the write-ahead log may have before they are copied into the file: 16 MB. Copying takes
/// milliseconds, so it is done rarely.
const LOG_PAGES: i64 = 4_000;

/// How the path of a database in memory begins. No file has such a path: those of files are absolute.
const MEMORY: &str = "file:/longhaul-";

/// The path of a database in memory that is nobody else's. It is there while a connection to it is open.
pub(super) fn in_memory() -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    PathBuf::from(format!("{MEMORY}{}?vfs=memdb", NUMBER.fetch_add(1, Ordering::Relaxed)))
}

pub(super) fn is_in_memory(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with(MEMORY))
}

/// A connection that writes. The file is made if it is not there, and brought to the newest form.
pub(super) fn writer(path: &Path, patience: Patience, faults: &Faults) -> Result<Connection, StoreError> {
    // SQLite does not wait where two turn the write-ahead log on at once, or where one recovers it.
    let (begun, longest) = (Instant::now(), patience.most().unwrap_or(PATIENCE));
    loop {
        match try_writer(path, patience, faults) {
            Err(StoreError::Busy { .. }) if begun.elapsed() < longest && wait(0) => {}
            opened => return opened,
        }
    }
}

fn try_writer(path: &Path, patience: Patience, faults: &Faults) -> Result<Connection, StoreError> {
    refuse_other_files(path, faults)?;
    if !is_in_memory(path) {
        make_private(path);
    }
    let mut connection = connect(path, patience).map_err(|fault| faults.when_opening(fault))?;
    let form = {
        // All of it is read at one moment: another process may be about to make the tables.
        let moment = connection.unchecked_transaction().map_err(|error| faults.when_opening(error.into()))?;
        form_of(&moment, faults)?
    };
    match form {
        Some(FORM) => Ok(()),
        _ => {
            if !is_in_memory(path) {
                prepare(&connection).map_err(|fault| faults.of(fault))?;
            }
            bring_up(&mut connection, faults)
        }
    }?;
    if !is_in_memory(path) {
        configure(&connection).map_err(|fault| faults.of(fault))?;
    }
    Ok(connection)
}

/// Makes the file if it is not there, for its user alone: conversations are in it. SQLite gives the files that it keeps next
/// to it the same mode. SQLite itself reports a file that cannot be made.
fn make_private(path: &Path) {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    _ = options.open(path);
}

/// A connection that reads a file that was opened before.
pub(super) fn reader(path: &Path, patience: Patience) -> Result<Connection, Fault> {
    let connection = connect(path, patience)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path, patience: Patience) -> Result<Connection, Fault> {
    let mut flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_URI, is_in_memory(path));
    let mut connection = Connection::open_with_flags(path, flags)?;
    wait_for_others(&mut connection, patience)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// How long calls of a connection wait for other writers from now on.
pub(super) fn wait_for_others(connection: &mut Connection, patience: Patience) -> Result<(), Fault> {
    let wait = match patience {
        Patience::Long => wait,
        Patience::Brief => wait_briefly,
    };
    Ok(connection.busy_handler(Some(wait))?)
}

/// Waits a moment for another writer; false if it has been long enough. SQLite's own handler sleeps for up
/// to 100 ms: one of many writers may never find the file free.
fn wait(looks: i32) -> bool {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    // Not all writers look at the same moment.
    std::thread::sleep(Duration::from_micros(1_000 + u64::from(nanos / 100) % 3_000));
    looks < LOOKS
}

/// The same for who can go on without the store.
fn wait_briefly(looks: i32) -> bool {
    wait(looks) && looks < BRIEF_LOOKS
}

/// A short file that is no database would be taken for an empty one.
pub(super) fn refuse_other_files(path: &Path, faults: &Faults) -> Result<(), StoreError> {
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    let mut start = Vec::new();
    let read = file.by_ref().take(16).read_to_end(&mut start);
    match read {
        Ok(_) if start.is_empty() || start == super::faults::MAGIC => Ok(()),
        Ok(_) => Err(faults.not_a_database()),
        Err(error) => Err(faults.unavailable(error)),
    }
}

/// The form of the database; `None` if there is nothing in it.
pub(super) fn form_of(connection: &Connection, faults: &Faults) -> Result<Option<i64>, StoreError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let read = || {
        let tables = number("SELECT count(*) FROM sqlite_schema")?;
        Ok::<_, Fault>((number("PRAGMA application_id")?, number("PRAGMA user_version")?, tables))
    };
    match read().map_err(|fault| faults.when_opening(fault))? {
        (APPLICATION, form, _) if form > FORM => Err(faults.newer(form, FORM)),
        (APPLICATION, form, _) if form > 0 => Ok(Some(form)),
        (0, 0, 0) => Ok(None),
        _ => Err(faults.foreign()),
    }
}

/// What must be set before there is a table.
fn prepare(connection: &Connection) -> Result<(), Fault> {
    // Space of deleted sessions is given back to the disk.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    write_ahead(connection)
}

/// Makes what is missing, in one transaction. Another process may do the same at this moment.
fn bring_up(connection: &mut Connection, faults: &Faults) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| faults.of(error.into()))?;
    let form = form_of(&transaction, faults)?.unwrap_or(0);
    let climb = || {
        for step in STEPS.iter().skip(usize::try_from(form).unwrap_or(0)) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", FORM)?;
        Ok::<_, Fault>(())
    };
    climb().map_err(|fault| faults.of(fault))?;
    transaction.commit().map_err(|error| faults.of(error.into()))
}

/// Readers do not wait for the writer, nor it for them.
fn write_ahead(connection: &Connection) -> Result<(), Fault> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    match mode.as_str() {
        "wal" => Ok(()),
        other => Err(Fault::Unavailable(format!("its file system allows no write-ahead log ({other})"))),
    }
}

fn configure(connection: &Connection) -> Result<(), Fault> {
    write_ahead(connection)?;
    // Each commit is on the disk when it returns.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(())
}
