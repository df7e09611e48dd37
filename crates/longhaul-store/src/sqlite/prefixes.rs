//! By which conversations a session is found.

use rusqlite::{Connection, OptionalExtension, params};

use super::appending::place_of;
use crate::fault::Fault;
use crate::store::SessionId;

/// Names a session by hashes of its first messages, more of them with each hash. `first` messages are named
/// already. A hash that names another session goes on to name that one.
pub(super) fn keep(
    connection: &Connection,
    id: SessionId,
    first: usize,
    hashes: &[[u8; 16]],
) -> Result<(), Fault> {
    let (session, _) = place_of(connection, id)?;
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO prefix (hash, session, messages) VALUES (?1, ?2, ?3)")?;
    for (messages, hash) in (first + 1..).zip(hashes) {
        insert.execute(params![hash, session.0, messages])?;
    }
    Ok(())
}

/// The session that the last of these hashes names that names any.
pub(super) fn find(
    connection: &Connection,
    hashes: &[[u8; 16]],
) -> Result<Option<(SessionId, usize)>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT session.id, prefix.messages FROM prefix JOIN session ON session.n = prefix.session WHERE hash = ?1",
    )?;
    for hash in hashes.iter().rev() {
        let found: Option<([u8; 16], usize)> =
            select.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if let Some((id, messages)) = found {
            return Ok(Some((SessionId::from_bytes(id), messages)));
        }
    }
    Ok(None)
}
