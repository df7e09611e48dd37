//! Reading: journals, lists, and texts that were kept apart.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;

use longhaul::session::journal::{self, Cursor, Entry};
use longhaul::{Handle, LoadError, Snapshot, Time};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::appending::bytes_of;
use super::faults::Fault;
use super::{Place, appending};
use crate::error::StoreError;
use crate::packing::Unpacker;
use crate::store::{Filter, Meta, SessionId, Stored};

/// The columns of [`Meta`], in the order in which [`meta_of`] reads them.
const META: &str =
    "id, parent, title, agent, project, model, created, updated, entries, messages, calls, bytes";

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

/// So many entries are worth a thread of their own.
const OF_A_THREAD: usize = 1_000;

/// More threads than these wait for each other.
const THREADS: usize = 4;

/// The entries at these places. Many are unpacked by several threads.
fn entries(
    connection: &Connection,
    unpacker: &mut Unpacker,
    id: SessionId,
    places: Range<i64>,
) -> Result<Vec<Entry>, Fault> {
    let packed = packed(connection, &places)?;
    let first = usize::try_from(places.start & i64::from(u32::MAX)).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    let threads = (packed.len() / OF_A_THREAD).clamp(1, cores);
    let chunk = packed.len().div_ceil(threads).max(1);
    let (here, rest) = packed.split_at(chunk.min(packed.len()));
    let mut all = std::thread::scope(|scope| {
        let chunks = rest.chunks(chunk).enumerate();
        let others: Vec<_> = chunks
            .map(|(n, packed)| {
                scope.spawn(move || read(&mut Unpacker::new()?, id, first + (n + 1) * chunk, packed))
            })
            .collect();
        let mut all = vec![read(unpacker, id, first, here)];
        all.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        all
    })
    .into_iter();
    let mut entries = all.next().transpose()?.unwrap_or_default();
    for more in all {
        entries.append(&mut more?);
    }
    Ok(entries)
}

/// Makes entries of what is stored. `first` is the number of the first one.
fn read(
    unpacker: &mut Unpacker,
    id: SessionId,
    first: usize,
    packed: &[Vec<u8>],
) -> Result<Vec<Entry>, Fault> {
    let wrong = |problem| Fault::Store(StoreError::Journal { session: id, problem });
    let mut entries = Vec::with_capacity(packed.len());
    for (at, packed) in (first..).zip(packed) {
        let line = unpacker.unpack(packed).map_err(Fault::Damaged)?;
        let entry = match at {
            // What the first line says of the version comes before all else.
            0 => journal::read([line]).map(|mut entries| entries.pop()).map_err(wrong)?,
            _ => serde_json::from_str(line)
                .map(Some)
                .map_err(|error| wrong(LoadError::Line { at, problem: error.to_string() }))?,
        };
        entries.extend(entry);
    }
    Ok(entries)
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
        let missing = || Fault::Damaged("an entry of a journal is missing".to_owned());
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
    let kind = appending::Kind::Model as i64;
    let newest = select.query_row([places.start, places.end, kind], |row| row.get::<_, Option<i64>>(0))?;
    let Some(at) = newest else { return Ok(None) };
    let packed = packed(connection, &(at..at + 1))?.pop().unwrap_or_default();
    let json = unpacker.unpack(&packed).map_err(Fault::Damaged)?;
    let entry: Entry = serde_json::from_str(json).map_err(|error| Fault::Damaged(error.to_string()))?;
    Ok(appending::model_of(&entry).map(str::to_owned))
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
    let json = unpacker.unpack(&packed).map_err(Fault::Damaged)?;
    // Sizes in the form of another version are counted again.
    Ok(serde_json::from_str(json).map_or((Vec::new(), 0), |sizes| (sizes, messages)))
}

pub(super) fn meta(connection: &Connection, id: SessionId) -> Result<Meta, Fault> {
    let meta = connection
        .prepare_cached(&format!("SELECT {META} FROM session WHERE id = ?1"))?
        .query_row([id.as_bytes()], meta_of)
        .optional()?;
    meta.ok_or_else(|| StoreError::NoSession(id).into())
}

pub(super) fn list(connection: &Connection, filter: &Filter, limit: usize) -> Result<Vec<Meta>, Fault> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT {META} FROM session WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR project = ?2)
         AND updated >= ?3 ORDER BY updated DESC, n DESC LIMIT ?4"
    ))?;
    let since = filter.updated_since.map_or(i64::MIN, |time| time.0);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map(params![filter.agent, filter.project, since, limit], meta_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn meta_of(row: &Row<'_>) -> rusqlite::Result<Meta> {
    Ok(Meta {
        id: SessionId::from_bytes(row.get(0)?),
        parent: row.get::<_, Option<[u8; 16]>>(1)?.map(SessionId::from_bytes),
        title: row.get(2)?,
        agent: row.get(3)?,
        project: row.get(4)?,
        model: row.get(5)?,
        created: Time(row.get(6)?),
        updated: Time(row.get(7)?),
        end: Cursor(row.get(8)?),
        messages: row.get::<_, i64>(9)?.unsigned_abs(),
        calls: row.get::<_, i64>(10)?.unsigned_abs(),
        bytes: row.get::<_, i64>(11)?.unsigned_abs(),
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
