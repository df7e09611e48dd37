//! Deleting: a session goes with all content that nobody else holds, and its space goes back to the disk.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};

use super::appending::place_of;
use crate::fault::Fault;
use crate::rows::Now;
use crate::store::{Retention, SessionId};

/// Deletes a session, inside of a transaction.
pub(super) fn delete(connection: &Connection, id: SessionId) -> Result<(), Fault> {
    let (session, _) = place_of(connection, id)?;
    let all = session.all();
    let mut held = BTreeSet::new();
    {
        let mut delete = connection
            .prepare_cached("DELETE FROM entry WHERE at >= ?1 AND at < ?2 RETURNING content, apart")?;
        let mut rows = delete.query([all.start, all.end])?;
        while let Some(row) = rows.next()? {
            held.extend(row.get::<_, Option<i64>>(0)?);
            held.extend(row.get::<_, Option<i64>>(1)?);
        }
    }
    for content in held {
        let_go(connection, content)?;
    }
    connection.prepare_cached("DELETE FROM sizes WHERE session = ?1")?.execute([session.0])?;
    connection.prepare_cached("DELETE FROM prefix WHERE session = ?1")?.execute([session.0])?;
    connection.prepare_cached("DELETE FROM session WHERE n = ?1")?.execute([session.0])?;
    Ok(())
}

/// Deletes content and its words, if no entry holds it.
fn let_go(connection: &Connection, content: i64) -> Result<(), Fault> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM content WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entry WHERE content = ?1)
             AND NOT EXISTS (SELECT 1 FROM entry WHERE apart = ?1)",
        )?
        .execute([content])?;
    if deleted > 0 {
        connection.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([content])?;
    }
    Ok(())
}

/// Gives the space of what was deleted back to the disk, and empties the write-ahead log, which still has
/// the deleted text. If somebody reads at this moment, the log is emptied another time.
pub(super) fn give_back(connection: &Connection) -> Result<(), Fault> {
    for pragma in ["PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        let mut statement = connection.prepare(pragma)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}

/// The session that goes next, if one is to go.
pub(super) fn next_to_go(
    connection: &Connection,
    retention: &Retention,
    now: Now,
) -> Result<Option<SessionId>, Fault> {
    let oldest: Option<([u8; 16], i64)> = connection
        .prepare_cached("SELECT id, updated FROM session ORDER BY updated, n LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((id, updated)) = oldest else { return Ok(None) };
    let age = u128::try_from(now.0.saturating_sub(updated)).unwrap_or_default();
    let too_old = retention.older_than.is_some_and(|longest| age > longest.as_micros());
    let too_large = match retention.larger_than {
        Some(most) => used(connection)? > most,
        None => false,
    };
    Ok((too_old || too_large).then_some(SessionId::from_bytes(id)))
}

/// How many bytes of the file are in use.
fn used(connection: &Connection) -> Result<u64, Fault> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let pages = number("PRAGMA page_count")? - number("PRAGMA freelist_count")?;
    Ok((pages * number("PRAGMA page_size")?).unsigned_abs())
}
