//! Writing: sessions, entries and the content that they hold.

use longhaul::Handle;
use longhaul::session::journal::{Cursor, Entry};
use rusqlite::{Connection, OptionalExtension, params};

use super::{Place, originals};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::originals::named_by;
use crate::packing::Packer;
use crate::rows::{Apart, Body, EntryRow, Now, Sum, bytes_of, title_of};
use crate::store::{About, SessionId};

pub(super) fn create(connection: &Connection, id: SessionId, about: &About, now: Now) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO session (id, tenant, agent, project, title, model, created, updated, entries, messages, calls, bytes,
                 without_content)
             VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, ?6, 0, 0, 0, 0, ?7) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            id.as_bytes(),
            about.tenant,
            about.agent,
            about.project,
            about.title.as_deref().map(title_of).unwrap_or_default(),
            now.0,
            about.without_content
        ])?;
    Ok(())
}

/// Appends entries, inside of a transaction.
pub(super) fn append(
    connection: &Connection,
    packer: &mut Packer,
    id: SessionId,
    from: Cursor,
    entries: &[Entry],
    now: Now,
) -> Result<(), Fault> {
    let (session, stored) = place_of(connection, id)?;
    if stored != from {
        return Err(StoreError::Conflict { session: id, from, stored }.into());
    }
    let (mut sum, mut named) = (Sum::default(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        let at = session.entry(from.0 + at)?;
        let length = insert(connection, packer, id, at, entry)?;
        sum.add(entry, length);
        named.extend(named_by(entry).into_iter().map(|handle| (handle, at)));
    }
    originals::keep(connection, session, &named)?;
    add_sum(connection, session, &sum, now)
}

/// The number of a session, and where its journal ends.
pub(super) fn place_of(connection: &Connection, id: SessionId) -> Result<(Place, Cursor), Fault> {
    let found = connection
        .prepare_cached("SELECT n, entries FROM session WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| Ok((Place(row.get(0)?), Cursor(row.get(1)?))))
        .optional()?;
    found.ok_or_else(|| StoreError::NoSession(id).into())
}

/// Adds what was appended to the row of a session.
fn add_sum(connection: &Connection, session: Place, sum: &Sum<'_>, now: Now) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "UPDATE session SET listed = CASE listed WHEN entries THEN listed + ?2 ELSE listed END, entries = entries + ?2, messages = messages + ?3, calls = calls + ?4,
             bytes = bytes + ?5, updated = max(updated, ?6), model = coalesce(?7, model),
             title = CASE title WHEN '' THEN coalesce(?8, '') ELSE title END WHERE n = ?1",
        )?
        .execute(params![
            session.0,
            sum.entries,
            sum.messages,
            sum.calls,
            sum.bytes,
            now.0,
            sum.model,
            sum.title
        ])?;
    Ok(())
}

/// Writes an entry of a session. Gives its length as JSON.
fn insert(
    connection: &Connection,
    packer: &mut Packer,
    id: SessionId,
    at: i64,
    entry: &Entry,
) -> Result<usize, Fault> {
    let EntryRow { kind, json, body, apart } = EntryRow::of(entry)?;
    let apart = match apart {
        Some(Apart::Text(handle, text)) => Some(hold(connection, packer, handle, &text)?),
        Some(Apart::Held(handle)) => Some(held(connection, id, handle)?),
        None => None,
    };
    let (packed, content) = match body {
        Body::Row => (Some(packer.pack(&json)?), None),
        Body::Content(None) => (None, Some(insert_content(connection, packer, None, &json)?)),
        Body::Content(Some(handle)) => (None, Some(hold(connection, packer, handle, &json)?)),
    };
    connection
        .prepare_cached(
            "INSERT INTO entry (at, kind, bytes, packed, content, apart) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![at, kind.number(), json.len(), packed, content, apart])?;
    Ok(json.len())
}

/// Keeps a text once. Says which content it is.
fn hold(connection: &Connection, packer: &mut Packer, handle: Handle, text: &str) -> Result<i64, Fault> {
    match find(connection, handle)? {
        Some(content) => Ok(content),
        None => insert_content(connection, packer, Some(handle), text),
    }
}

fn insert_content(
    connection: &Connection,
    packer: &mut Packer,
    handle: Option<Handle>,
    text: &str,
) -> Result<i64, Fault> {
    connection
        .prepare_cached("INSERT INTO content (hash, packed) VALUES (?1, ?2)")?
        .execute(params![handle.map(bytes_of), packer.pack(text)?])?;
    Ok(connection.last_insert_rowid())
}

/// The text that an entry of a session names. A session of the same tenant must hold it: whoever knows the
/// handle of another's text does not get the text.
fn held(connection: &Connection, id: SessionId, handle: Handle) -> Result<i64, Fault> {
    let held = connection
        .prepare_cached(
            "SELECT content.id FROM content JOIN entry ON entry.apart = content.id
             JOIN session ON session.n = entry.at >> 32
             WHERE content.hash = ?1 AND session.tenant = (SELECT tenant FROM session WHERE id = ?2) LIMIT 1",
        )?
        .query_row(params![bytes_of(handle), id.as_bytes()], |row| row.get(0))
        .optional()?;
    held.ok_or_else(|| StoreError::LostText(handle).into())
}

fn find(connection: &Connection, handle: Handle) -> Result<Option<i64>, Fault> {
    let mut find = connection.prepare_cached("SELECT id FROM content WHERE hash = ?1")?;
    Ok(find.query_row([bytes_of(handle)], |row| row.get(0)).optional()?)
}
