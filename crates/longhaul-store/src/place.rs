//! Where a store is: a file, or a server by its URL.

use std::sync::Arc;

use crate::error::StoreError;
use crate::postgres::{self, PostgresStore};
use crate::sqlite::SqliteStore;
use crate::store::{Patience, Store};

/// The place of a store in memory, which ends with the program.
pub const MEMORY: &str = ":memory:";

/// Opens the store at a place: a URL such as `postgres://user:password@host:5432/database` (or
/// `postgresql://…`) is a [`PostgresStore`], [`MEMORY`] is a new store in memory, and everything else the path
/// of a file, which is made if it is not there.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("sessions.db").display().to_string();
/// let store = longhaul_store::open(&path)?;
/// assert!(store.list(&Default::default(), 10)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(place: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_with(place, Patience::Long)
}

/// The same, with calls that wait for others as long as is said. Opening takes as long as it takes.
pub fn open_with(place: &str, patience: Patience) -> Result<Arc<dyn Store>, StoreError> {
    if is_server(place) {
        return Ok(Arc::new(PostgresStore::open_with(place, patience)?));
    }
    let store =
        if place == MEMORY { SqliteStore::in_memory() } else { SqliteStore::open_with(place, patience) };
    Ok(Arc::new(store?))
}

/// Whether a place is the URL of a server.
pub fn is_server(place: &str) -> bool {
    postgres::is_server(place)
}
