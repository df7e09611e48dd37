//! The originals that entries name, by their handles.

use std::ops::Range;

use longhaul::Handle;
use rusqlite::{Connection, OptionalExtension, params};

use super::Place;
use crate::fault::Fault;
use crate::originals::{AT_ONCE, HOLDERS, LISTED_BY_LOOKUP, handle_of, range_of};
use crate::packing::Unpacker;
use crate::rows::{Kind, bytes_of};
use crate::store::{Holders, SessionId};
use crate::unpacking;

/// Keeps the handles that entries of a session name, inside of a transaction. A session without content has none.
pub(super) fn keep(connection: &Connection, session: Place, named: &[(Handle, i64)]) -> Result<(), Fault> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO original (tenant, handle, at)
         SELECT tenant, ?2, ?3 FROM session WHERE n = ?1 AND NOT without_content",
    )?;
    for (handle, at) in named {
        insert.execute(params![session.0, bytes_of(*handle), at])?;
    }
    Ok(())
}

/// The sessions of a tenant that can give back the original whose handle starts like this.
pub(super) fn find(connection: &Connection, tenant: &str, start: &str) -> Result<Option<Holders>, Fault> {
    let Some((low, high)) = range_of(start) else { return Ok(None) };
    let mut ends = connection.prepare_cached(
        "SELECT min(handle), max(handle) FROM (
            SELECT handle FROM (SELECT handle FROM original WHERE tenant = ?1 AND handle >= ?2 AND handle <= ?3
                ORDER BY handle LIMIT 1)
            UNION ALL
            SELECT handle FROM (SELECT handle FROM original WHERE tenant = ?1 AND handle >= ?2 AND handle <= ?3
                ORDER BY handle DESC LIMIT 1))",
    )?;
    let (first, last): (Option<[u8; 16]>, Option<[u8; 16]>) =
        ends.query_row(params![tenant, low, high], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(bytes) = first.filter(|_| first == last) else { return Ok(None) };
    let Some(handle) = handle_of(bytes) else { return Ok(None) };
    let mut holders = connection.prepare_cached(
        "SELECT session.id FROM (SELECT at FROM original WHERE tenant = ?1 AND handle = ?2 ORDER BY at DESC LIMIT ?3)
         JOIN session ON session.n = at >> 32 ORDER BY at DESC",
    )?;
    let rows = holders.query_map(params![tenant, bytes, HOLDERS], |row| row.get(0))?;
    let mut sessions = rows.map(|id| id.map(SessionId::from_bytes)).collect::<Result<Vec<_>, _>>()?;
    sessions.dedup();
    Ok(Some(Holders { handle, sessions }))
}

/// Entries of a session that were stored by an older version, and the handles that they name.
pub(super) struct Unlisted {
    session: Place,
    /// How many entries were listed before, and with these.
    from: usize,
    upto: usize,
    named: Vec<(Handle, i64)>,
}

/// Some entries that nobody has listed, of the newest session that has any. Nobody waits for this.
pub(super) fn some_unlisted(
    connection: &Connection,
    unpacker: &mut Unpacker,
) -> Result<Option<Unlisted>, Fault> {
    let mut newest = connection.prepare_cached(
        "SELECT n FROM session INDEXED BY session_unlisted WHERE listed < entries ORDER BY n DESC LIMIT 1",
    )?;
    let newest = newest.query_row([], |row| row.get(0).map(Place)).optional()?;
    newest.map_or(Ok(None), |session| unlisted(connection, unpacker, session))
}

/// The newest sessions of a tenant that have entries which nobody has listed.
pub(super) fn unlisted_of(connection: &Connection, tenant: &str) -> Result<Vec<Place>, Fault> {
    if !any_unlisted(connection)? {
        return Ok(Vec::new());
    }
    let mut select = connection.prepare_cached(
        "SELECT n FROM session WHERE tenant = ?1 AND listed < entries ORDER BY updated DESC LIMIT ?2",
    )?;
    let rows = select.query_map(params![tenant, LISTED_BY_LOOKUP], |row| row.get(0).map(Place))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether an older version stored entries that nobody has listed.
pub(super) fn any_unlisted(connection: &Connection) -> Result<bool, Fault> {
    let mut any = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM session INDEXED BY session_unlisted WHERE listed < entries)",
    )?;
    Ok(any.query_row([], |row| row.get(0))?)
}

/// Some entries of a session that nobody has listed.
pub(super) fn unlisted(
    connection: &Connection,
    unpacker: &mut Unpacker,
    session: Place,
) -> Result<Option<Unlisted>, Fault> {
    let mut ends = connection.prepare_cached("SELECT listed, entries FROM session WHERE n = ?1")?;
    let ends: Option<(usize, usize)> =
        ends.query_row([session.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((from, end)) = ends.filter(|(listed, entries)| listed < entries) else { return Ok(None) };
    let upto = end.min(from + AT_ONCE);
    let places = session.entries(from..upto)?;
    let mut select = connection.prepare_cached(
        "SELECT entry.at, coalesce(entry.packed, content.packed) FROM entry
         LEFT JOIN content ON content.id = entry.content
         WHERE entry.at >= ?1 AND entry.at < ?2 AND entry.kind = ?3",
    )?;
    let mut rows = select.query(params![places.start, places.end, Kind::Other.number()])?;
    let mut named = Vec::new();
    while let Some(row) = rows.next()? {
        let at = row.get(0)?;
        let handles = unpacking::originals(unpacker, row.get_ref(1)?.as_blob().unwrap_or_default());
        named.extend(handles.into_iter().map(|handle| (handle, at)));
    }
    Ok(Some(Unlisted { session, from, upto, named }))
}

/// Lists entries, inside of a transaction. If somebody was faster, they are listed already.
pub(super) fn list(connection: &Connection, unlisted: &Unlisted) -> Result<(), Fault> {
    let Unlisted { session, from, upto, named } = unlisted;
    let listed = connection
        .prepare_cached("UPDATE session SET listed = ?3 WHERE n = ?1 AND listed = ?2 AND entries >= ?3")?
        .execute(params![session.0, from, upto])?;
    if listed > 0 { keep(connection, *session, named) } else { Ok(()) }
}

/// Shares what entries of a session name with its fork: both begin with the same entries.
pub(super) fn fork(connection: &Connection, shared: &Range<i64>, fork: Place) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO original (tenant, handle, at)
             SELECT tenant, handle, at - ?1 + ?2 FROM original WHERE at >= ?1 AND at < ?3",
        )?
        .execute([shared.start, fork.entry(0)?, shared.end])?;
    Ok(())
}

/// Forgets what entries name that are deleted.
pub(super) fn forget(connection: &Connection, places: &Range<i64>) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM original WHERE at >= ?1 AND at < ?2")?
        .execute([places.start, places.end])?;
    Ok(())
}
