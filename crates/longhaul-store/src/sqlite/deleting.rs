//! Deleting: a session goes with all content that nobody else holds, and its space goes back to the disk.

use std::collections::BTreeSet;
use std::ops::Range;

use rusqlite::{Connection, params};

use super::appending::place_of;
use super::{Place, originals};
use crate::fault::Fault;
use crate::rows::{Kind, Now};
use crate::store::{Retention, SessionId};

/// Deletes a session, inside of a transaction.
pub(super) fn delete(connection: &Connection, id: SessionId) -> Result<(), Fault> {
    let (session, _) = place_of(connection, id)?;
    delete_entries(connection, session.all())?;
    delete_names(connection, session)?;
    connection.prepare_cached("DELETE FROM session WHERE n = ?1")?.execute([session.0])?;
    Ok(())
}

/// Deletes entries, and the content that nobody else holds.
fn delete_entries(connection: &Connection, places: Range<i64>) -> Result<(), Fault> {
    originals::forget(connection, &places)?;
    let mut held = BTreeSet::new();
    {
        let mut delete = connection
            .prepare_cached("DELETE FROM entry WHERE at >= ?1 AND at < ?2 RETURNING content, apart")?;
        let mut rows = delete.query([places.start, places.end])?;
        while let Some(row) = rows.next()? {
            held.extend(row.get::<_, Option<i64>>(0)?);
            held.extend(row.get::<_, Option<i64>>(1)?);
        }
    }
    held.into_iter().try_for_each(|content| let_go(connection, content))
}

/// Deletes what a session is found by, and what is known of its sizes.
fn delete_names(connection: &Connection, session: Place) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM sizes WHERE session = ?1")?.execute([session.0])?;
    connection.prepare_cached("DELETE FROM prefix WHERE session = ?1")?.execute([session.0])?;
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

/// A part of what is not kept any longer.
pub(super) struct PrunedPart {
    /// The session that is gone with it, if it was the last part of one.
    pub(super) gone: Option<SessionId>,
    /// Bytes that are free now.
    pub(super) bytes: u64,
}

/// Entries that go at once: who waits for their end waits for some milliseconds.
const ENTRIES: usize = 32;

/// Deletes a part of the session that goes next, if one is to go, inside of a transaction. A long session goes from its
/// end: what is left of it is the session at an earlier moment.
pub(super) fn prune_part(
    connection: &Connection,
    retention: &Retention,
    now: Now,
) -> Result<Option<PrunedPart>, Fault> {
    let before = used(connection)?;
    let Some(id) = next_to_go(connection, retention, before, now)? else { return Ok(None) };
    let (session, end) = place_of(connection, id)?;
    let gone = if end.0 > ENTRIES {
        delete_names(connection, session)?;
        cut(connection, session, end.0 - ENTRIES..end.0)?;
        None
    } else {
        delete(connection, id)?;
        Some(id)
    };
    Ok(Some(PrunedPart { gone, bytes: before.saturating_sub(used(connection)?) }))
}

/// Deletes the last entries of a session.
fn cut(connection: &Connection, session: Place, last: Range<usize>) -> Result<(), Fault> {
    let places = session.entries(last.clone())?;
    connection
        .prepare_cached(
            "UPDATE session SET entries = ?4, listed = min(listed, ?4),
             messages = messages - (SELECT count(*) FROM entry WHERE at >= ?2 AND at < ?3 AND kind = ?5),
             calls = calls - (SELECT count(*) FROM entry WHERE at >= ?2 AND at < ?3 AND kind = ?6),
             bytes = bytes - (SELECT sum(bytes) FROM entry WHERE at >= ?2 AND at < ?3) WHERE n = ?1",
        )?
        .execute(params![
            session.0,
            places.start,
            places.end,
            last.start,
            Kind::Message.number(),
            Kind::Request.number()
        ])?;
    delete_entries(connection, places)
}

/// The session that goes next, if one is to go.
fn next_to_go(
    connection: &Connection,
    retention: &Retention,
    used: u64,
    now: Now,
) -> Result<Option<SessionId>, Fault> {
    let mut oldest =
        connection.prepare_cached("SELECT id, updated FROM session ORDER BY updated, n LIMIT ?1")?;
    let mut rows = oldest.query([retention.in_use.len() + 1])?;
    while let Some(row) = rows.next()? {
        let (id, updated) = (SessionId::from_bytes(row.get(0)?), row.get(1)?);
        if !retention.in_use.contains(&id) {
            return Ok(retention.lets_go(updated, || used, now).then_some(id));
        }
    }
    Ok(None)
}

/// How many bytes of the file are in use.
pub(super) fn used(connection: &Connection) -> Result<u64, Fault> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let pages = number("PRAGMA page_count")? - number("PRAGMA freelist_count")?;
    Ok((pages * number("PRAGMA page_size")?).unsigned_abs())
}
