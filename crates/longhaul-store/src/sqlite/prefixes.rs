//! By which conversations a session is found.

use rusqlite::{Connection, OptionalExtension, params};

use super::appending::place_of;
use super::reading::{META, meta_of};
use crate::fault::Fault;
use crate::store::{Alike, SessionId};

/// Names a session by hashes of its first messages, more of them with each hash. `first` messages are named
/// already.
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

/// The sessions that the last of these hashes names that names any.
pub(super) fn find(connection: &Connection, hashes: &[[u8; 16]]) -> Result<Option<Alike>, Fault> {
    let mut known = connection.prepare_cached("SELECT messages FROM prefix WHERE hash = ?1 LIMIT 1")?;
    for hash in hashes.iter().rev() {
        if let Some(messages) = known.query_row([hash], |row| row.get(0)).optional()? {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {META} FROM session WHERE n IN
                     (SELECT session FROM prefix WHERE hash = ?1 ORDER BY session DESC LIMIT ?2)
                 ORDER BY updated DESC, n DESC LIMIT ?3"
            ))?;
            let rows = select.query_map(params![hash, Alike::LOOKED_AT, Alike::GIVEN], meta_of)?;
            return Ok(Some(Alike { messages, sessions: rows.collect::<Result<_, _>>()? }));
        }
    }
    Ok(None)
}
