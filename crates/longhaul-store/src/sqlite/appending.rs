//! Writing: sessions, entries and the content that they hold.

use longhaul::Handle;
use longhaul::session::journal::{Cursor, Entry};
use rusqlite::{Connection, OptionalExtension, params};

use super::faults::Fault;
use super::{Now, Place};
use crate::error::StoreError;
use crate::export::handle_apart;
use crate::packing::Packer;
use crate::store::{About, SessionId};

/// Shorter entries stay in their row, shorter messages are found by no hash: it has its price too.
const SHORT: usize = 512;

/// The longest title, in characters.
const TITLE: usize = 80;

/// What a list and a fork must know of an entry without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum Kind {
    Other = 0,
    Message = 1,
    Request = 2,
    Model = 3,
}

impl Kind {
    fn of(entry: &Entry) -> Self {
        match entry {
            Entry::Message(_) => Self::Message,
            Entry::Sent(_) => Self::Request,
            Entry::Began { .. } | Entry::Switched { .. } => Self::Model,
            _ => Self::Other,
        }
    }
}

/// The model that a session goes on with, if this entry names it.
pub(super) fn model_of(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Began { model, .. } | Entry::Switched { model, .. } => Some(&model.name),
        _ => None,
    }
}

pub(super) fn create(connection: &Connection, about: &About, now: Now) -> Result<SessionId, Fault> {
    let id = SessionId::fresh();
    connection
        .prepare_cached(
            "INSERT INTO session (id, agent, project, title, model, created, updated, entries, messages, calls, bytes)
             VALUES (?1, ?2, ?3, ?4, '', ?5, ?5, 0, 0, 0, 0)",
        )?
        .execute(params![
            id.as_bytes(),
            about.agent,
            about.project,
            about.title.as_deref().map(title_of).unwrap_or_default(),
            now.0
        ])?;
    Ok(id)
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
    let mut sum = Sum::default();
    for (at, entry) in entries.iter().enumerate() {
        let length = insert(connection, packer, session.entry(from.0 + at)?, entry)?;
        sum.add(entry, length);
    }
    sum.write(connection, session, now)
}

/// The number of a session, and where its journal ends.
pub(super) fn place_of(connection: &Connection, id: SessionId) -> Result<(Place, Cursor), Fault> {
    let found = connection
        .prepare_cached("SELECT n, entries FROM session WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| Ok((Place(row.get(0)?), Cursor(row.get(1)?))))
        .optional()?;
    found.ok_or_else(|| StoreError::NoSession(id).into())
}

/// What some entries add to what a list says of their session.
#[derive(Default)]
struct Sum<'a> {
    entries: usize,
    messages: u64,
    calls: u64,
    bytes: usize,
    title: Option<String>,
    model: Option<&'a str>,
}

impl<'a> Sum<'a> {
    fn add(&mut self, entry: &'a Entry, length: usize) {
        self.entries += 1;
        self.bytes += length;
        match Kind::of(entry) {
            Kind::Message => self.messages += 1,
            Kind::Request => self.calls += 1,
            Kind::Model | Kind::Other => {}
        }
        self.model = model_of(entry).or(self.model);
        if let (Entry::Message(message), None) = (entry, &self.title) {
            self.title = message.words().next().map(title_of);
        }
    }

    fn write(self, connection: &Connection, session: Place, now: Now) -> Result<(), Fault> {
        connection
            .prepare_cached(
                "UPDATE session SET entries = entries + ?2, messages = messages + ?3, calls = calls + ?4,
                 bytes = bytes + ?5, updated = max(updated, ?6), model = coalesce(?7, model),
                 title = CASE title WHEN '' THEN coalesce(?8, '') ELSE title END WHERE n = ?1",
            )?
            .execute(params![
                session.0,
                self.entries,
                self.messages,
                self.calls,
                self.bytes,
                now.0,
                self.model,
                self.title
            ])?;
        Ok(())
    }
}

/// The first words of a text, on one line.
fn title_of(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        let joined = title.chars().count() + 1 + word.chars().count();
        if !title.is_empty() && joined > TITLE {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.extend(word.chars().take(TITLE));
    }
    title
}

/// Writes an entry. Gives its length as JSON.
fn insert(connection: &Connection, packer: &mut Packer, at: i64, entry: &Entry) -> Result<usize, Fault> {
    let (apart, without_text) = match entry.apart() {
        Some((entry, _, text)) => (Some(hold(connection, packer, &text)?), Some(entry)),
        None => (handle_apart(entry).map(|handle| held(connection, handle)).transpose()?, None),
    };
    let json = serde_json::to_string(without_text.as_ref().unwrap_or(entry)).map_err(StoreError::Entry)?;
    let (packed, content) = match entry {
        Entry::Message(_) if json.len() < SHORT => {
            (None, Some(insert_content(connection, packer, None, &json)?))
        }
        _ if json.len() < SHORT => (Some(packer.pack(&json)?), None),
        _ => (None, Some(hold(connection, packer, &json)?)),
    };
    connection
        .prepare_cached(
            "INSERT INTO entry (at, kind, bytes, packed, content, apart) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![at, Kind::of(entry) as i64, json.len(), packed, content, apart])?;
    Ok(json.len())
}

/// Keeps a text once. Says which content it is.
fn hold(connection: &Connection, packer: &mut Packer, text: &str) -> Result<i64, Fault> {
    let handle = Handle::of(text);
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

/// The content of a handle, which must be there.
fn held(connection: &Connection, handle: Handle) -> Result<i64, Fault> {
    find(connection, handle)?.ok_or_else(|| StoreError::LostText(handle).into())
}

fn find(connection: &Connection, handle: Handle) -> Result<Option<i64>, Fault> {
    let mut find = connection.prepare_cached("SELECT id FROM content WHERE hash = ?1")?;
    Ok(find.query_row([bytes_of(handle)], |row| row.get(0)).optional()?)
}

/// The hash that a handle writes out in digits.
pub(super) fn bytes_of(handle: Handle) -> [u8; 16] {
    // A handle is 32 hexadecimal digits.
    u128::from_str_radix(&handle.to_string(), 16).unwrap_or_default().to_be_bytes()
}
