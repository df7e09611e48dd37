//! Reading: journals, lists, and texts that were kept apart.

use std::ops::Range;

use longhaul::session::journal::{Cursor, Entry};
use longhaul::{Handle, Snapshot, Time};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Place, appending};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::packing::Unpacker;
use crate::rows::{Kind, bytes_of};
use crate::store::{Filter, Meta, SessionId, Stored};
use crate::unpacking::{self, missing};

/// The columns of [`Meta`], in the order in which [`meta_of`] reads them.
pub(super) const META: &str = "id, parent, title, tenant, agent, project, model, created, updated, entries, messages, calls, bytes, \
     without_content";

pub(super) fn load(connection: &Connection, unpacker: &mut Unpacker, id: SessionId) -> Result<Stored, Fault> {
    let (session, end) = appending::place_of(connection, id)?;
    let meta = meta(connection, id)?;
    let entries = entries(connection, unpacker, id, session.entries(0..end.0)?)?;
    let (sizes, sized) = sizes(connection, unpacker, session)?;
    Ok(Stored { meta, entries, sizes, sized })
}

pub(super) fn since(
    connection: &Connection,
    unpacker: &mut Unpacker,
    id: SessionId,
    from: Cursor,
) -> Result<Vec<Entry>, Fault> {
    let (session, end) = appending::place_of(connection, id)?;
    entries(connection, unpacker, id, session.entries(from.0.min(end.0)..end.0)?)
}

/// The entries at these places.
fn entries(
    connection: &Connection,
    unpacker: &mut Unpacker,
    id: SessionId,
    places: Range<i64>,
) -> Result<Vec<Entry>, Fault> {
    let first = usize::try_from(places.start & i64::from(u32::MAX)).unwrap_or_default();
    unpacking::entries(unpacker, id, first, &packed(connection, &places)?)
}

/// The entries at these places as they are stored. None may be missing.
fn packed(connection: &Connection, places: &Range<i64>) -> Result<Vec<Vec<u8>>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT entry.at, coalesce(entry.packed, content.packed) FROM entry
         LEFT JOIN content ON content.id = entry.content WHERE entry.at >= ?1 AND entry.at < ?2 ORDER BY entry.at",
    )?;
    let mut rows = select.query([places.start, places.end])?;
    let mut all = Vec::new();
    for place in places.clone() {
        let row = rows.next()?.filter(|row| row.get(0) == Ok(place));
        all.push(row.ok_or_else(missing)?.get_ref(1)?.as_blob().map_err(|_| missing())?.to_vec());
    }
    Ok(all)
}

/// The model that the newest of these entries names.
pub(super) fn model_in(
    connection: &Connection,
    unpacker: &mut Unpacker,
    places: &Range<i64>,
) -> Result<Option<String>, Fault> {
    let mut select =
        connection.prepare_cached("SELECT max(at) FROM entry WHERE at >= ?1 AND at < ?2 AND kind = ?3")?;
    let kind = i64::from(Kind::Model.number());
    let newest = select.query_row([places.start, places.end, kind], |row| row.get::<_, Option<i64>>(0))?;
    let Some(at) = newest else { return Ok(None) };
    let packed = packed(connection, &(at..at + 1))?.pop().unwrap_or_default();
    unpacking::model(unpacker, &packed)
}

/// Sizes of messages, and how many messages there were.
fn sizes(
    connection: &Connection,
    unpacker: &mut Unpacker,
    session: Place,
) -> Result<(Vec<Snapshot>, usize), Fault> {
    let kept: Option<(Vec<u8>, usize)> = connection
        .prepare_cached("SELECT packed, messages FROM sizes WHERE session = ?1")?
        .query_row([session.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((packed, messages)) = kept else { return Ok((Vec::new(), 0)) };
    unpacking::sizes(unpacker, &packed, messages)
}

pub(super) fn meta(connection: &Connection, id: SessionId) -> Result<Meta, Fault> {
    let meta = connection
        .prepare_cached(&format!("SELECT {META} FROM session WHERE id = ?1"))?
        .query_row([id.as_bytes()], meta_of)
        .optional()?;
    meta.ok_or_else(|| StoreError::NoSession(id).into())
}

pub(super) fn list(connection: &Connection, filter: &Filter, limit: usize) -> Result<Vec<Meta>, Fault> {
    // The sessions of a tenant have an index of their own.
    let of_tenant = if filter.tenant.is_some() { "tenant = ?5" } else { "?5 IS NULL" };
    let mut select = connection.prepare_cached(&format!(
        "SELECT {META} FROM session WHERE {of_tenant} AND (?1 IS NULL OR agent = ?1)
         AND (?2 IS NULL OR project = ?2) AND updated >= ?3 ORDER BY updated DESC, n DESC LIMIT ?4"
    ))?;
    let since = filter.updated_since.map_or(i64::MIN, |time| time.0);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let wanted = params![filter.agent, filter.project, since, limit, filter.tenant];
    let rows = select.query_map(wanted, meta_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn meta_of(row: &Row<'_>) -> rusqlite::Result<Meta> {
    Ok(Meta {
        id: SessionId::from_bytes(row.get(0)?),
        parent: row.get::<_, Option<[u8; 16]>>(1)?.map(SessionId::from_bytes),
        title: row.get(2)?,
        tenant: row.get(3)?,
        agent: row.get(4)?,
        project: row.get(5)?,
        model: row.get(6)?,
        created: Time(row.get(7)?),
        updated: Time(row.get(8)?),
        end: Cursor(row.get(9)?),
        messages: row.get::<_, i64>(10)?.unsigned_abs(),
        calls: row.get::<_, i64>(11)?.unsigned_abs(),
        bytes: row.get::<_, i64>(12)?.unsigned_abs(),
        without_content: row.get(13)?,
    })
}

/// A text that a session keeps apart from its entries.
pub(super) fn text_apart(
    connection: &Connection,
    unpacker: &mut Unpacker,
    session: Place,
    handle: Handle,
) -> Result<Option<String>, Fault> {
    let all = session.all();
    let packed: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT packed FROM content WHERE hash = ?1 AND EXISTS
             (SELECT 1 FROM entry WHERE apart = content.id AND at >= ?2 AND at < ?3)",
        )?
        .query_row(params![bytes_of(handle), all.start, all.end], |row| row.get(0))
        .optional()?;
    packed.map(|packed| unpacker.unpack(&packed).map(str::to_owned).map_err(Fault::Damaged)).transpose()
}

/// The handle of the text apart that starts like this, if there is exactly one.
pub(super) fn handle_starting(
    connection: &Connection,
    session: Place,
    start: &str,
) -> Result<Option<Handle>, Fault> {
    let all = session.all();
    let mut select = connection.prepare_cached(
        "SELECT DISTINCT lower(hex(content.hash)) AS digits FROM entry JOIN content ON content.id = entry.apart
         WHERE entry.at >= ?1 AND entry.at < ?2 AND entry.apart IS NOT NULL AND substr(digits, 1, length(?3)) = ?3
         LIMIT 2",
    )?;
    let start = start.to_ascii_lowercase();
    let rows = select.query_map(params![all.start, all.end, start], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = rows.collect::<Result<_, _>>()?;
    Ok(match found.as_slice() {
        [one] => one.parse().ok(),
        _ => None,
    })
}
