//! Deleting: a session goes with all content that nobody else holds, and its space goes back to the disk.

use std::collections::BTreeSet;

use rusqlite::Connection;

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

/// Pages that are given back at once: 4 MB.
const PAGES: i64 = 1_000;

/// Gives some space of what was deleted back to the disk. Says whether there is more.
pub(super) fn give_some_back(connection: &Connection) -> Result<bool, Fault> {
    let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let before = free()?;
    run(connection, &format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let after = free()?;
    Ok(0 < after && after < before)
}

/// Empties the write-ahead log, which still has the deleted text. If somebody reads at this moment, it is emptied
/// another time.
pub(super) fn empty_log(connection: &Connection) -> Result<(), Fault> {
    run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
}

fn run(connection: &Connection, pragma: &str) -> Result<(), Fault> {
    let mut statement = connection.prepare(pragma)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Deletes the session that goes next, if one is to go, inside of a transaction. Says how many bytes are free then.
pub(super) fn prune_one(
    connection: &Connection,
    retention: &Retention,
    now: Now,
) -> Result<Option<(SessionId, u64)>, Fault> {
    let before = used(connection)?;
    let mut oldest =
        connection.prepare_cached("SELECT id, updated FROM session ORDER BY updated, n LIMIT ?1")?;
    let mut rows = oldest.query([retention.in_use.len() + 1])?;
    while let Some(row) = rows.next()? {
        let (id, updated) = (SessionId::from_bytes(row.get(0)?), row.get(1)?);
        if retention.in_use.contains(&id) {
            continue;
        }
        if !retention.lets_go(updated, || before, now) {
            return Ok(None);
        }
        drop(rows);
        delete(connection, id)?;
        return Ok(Some((id, before.saturating_sub(used(connection)?))));
    }
    Ok(None)
}

/// How many bytes of the file are in use.
pub(super) fn used(connection: &Connection) -> Result<u64, Fault> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let pages = number("PRAGMA page_count")? - number("PRAGMA freelist_count")?;
    Ok((pages * number("PRAGMA page_size")?).unsigned_abs())
}
