//! Getting sessions out of a damaged file. Each row is asked for by its number: one that cannot be read costs
//! itself alone.

use std::path::Path;

use longhaul::session::journal::{self, Cursor, Entry};
use longhaul::{Known, Models, Profile, Session};
use rusqlite::{Connection, OpenFlags, Row};

use super::Place;
use super::faults::Faults;
use super::opening;
use crate::error::StoreError;
use crate::export;
use crate::fault::Fault;
use crate::packing::Unpacker;
use crate::store::{About, SessionId, Store};

/// A damaged number must not ask for all time: no file has more sessions.
const MOST_SESSIONS: i64 = 1 << 24;

/// So many entries in a row are not there: the journal has ended, where nothing says how long it is.
const END: usize = 1_000;

/// What was got back of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// The session. Its name is the one that it had, if that could be read.
    pub id: SessionId,
    /// Its title, as far as it could be read.
    pub title: String,
    /// Messages that were got back.
    pub messages: usize,
    /// Entries of its journal that cannot be read.
    pub lost: usize,
    /// The store had it already, or has it from an earlier try.
    pub was_there: bool,
}

/// What the row of a session says.
#[derive(Default)]
struct Listed {
    id: Option<SessionId>,
    about: About,
    model: String,
    entries: Option<usize>,
}

/// Puts what can be read of a damaged file into a store, session by session, and tells of each. The file is only read.
/// Up to the first entry that is lost a session is as it was; behind that it has its messages, and the edits are left
/// to be made again. Its sessions keep their names: what the store has already stays as it is.
pub fn salvage(
    file: &Path,
    into: &dyn Store,
    mut tell: impl FnMut(&Salvaged) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let faults = Faults::new(file.to_owned());
    let damaged = Damaged::open(file, &faults)?;
    let last = damaged.last_session().ok_or_else(|| {
        faults.of(Fault::Damaged("not even the list of its sessions can be read".to_owned()))
    })?;
    let mut unpacker = Unpacker::new().map_err(|error| faults.unavailable(error))?;
    for session in (1..=last).map(Place) {
        if let Some(salvaged) = damaged.salvage(session, &mut unpacker, into)? {
            tell(&salvaged)?;
        }
    }
    Ok(())
}

/// A file of which some rows cannot be read.
struct Damaged {
    connection: Connection,
}

impl Damaged {
    fn open(file: &Path, faults: &Faults) -> Result<Self, StoreError> {
        opening::refuse_other_files(file, faults)?;
        let open = |flags| Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let connection =
            open(OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|error| faults.when_opening(error.into()))?;
        match opening::form_of(&connection, faults)? {
            Some(_) => Ok(Self { connection }),
            None => Err(faults.not_a_database()),
        }
    }

    /// The highest number that a session may have, by whatever says one.
    fn last_session(&self) -> Option<i64> {
        let number = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        let says = [
            number("SELECT seq FROM sqlite_sequence WHERE name = 'session'"),
            number("SELECT max(n) FROM session"),
            number("SELECT max(at) >> 32 FROM entry"),
        ];
        let says = says.into_iter().filter_map(Result::ok).map(Option::unwrap_or_default);
        says.filter(|last| (0..=MOST_SESSIONS).contains(last)).max()
    }

    /// Gets one session back. `None` if there is nothing of it.
    fn salvage(
        &self,
        session: Place,
        unpacker: &mut Unpacker,
        into: &dyn Store,
    ) -> Result<Option<Salvaged>, StoreError> {
        let known = self.listed(session);
        let read = self.entries(session, known.entries, unpacker);
        if read.iter().all(Option::is_none) {
            return Ok(None);
        }
        let lost = read.iter().filter(|entry| entry.is_none()).count();
        // By its words a session is found again: those before the first message that is lost.
        let named = read
            .iter()
            .take_while(|entry| entry.is_some())
            .flatten()
            .filter(|entry| is_message(entry))
            .count();
        let entries = match known.about.without_content {
            // It is never loaded: figures behind what is lost are of no use without it.
            true => read.into_iter().map_while(|entry| entry).collect(),
            false => whole_again(read, &known.model),
        };
        let messages = entries.iter().filter(|entry| is_message(entry)).count();
        let id = known.id.unwrap_or_else(SessionId::fresh);
        into.create_as(id, &known.about)?;
        let meta = into.meta(id)?;
        let was_there = meta.end.0 > 0;
        if !was_there {
            into.append(id, Cursor(0), &entries)?;
        }
        self.keep_prefixes(session, named, id, into)?;
        let title = into.meta(id)?.title;
        Ok(Some(Salvaged { id, title, messages, lost, was_there }))
    }

    /// What the row of a session says; nothing if it cannot be read.
    fn listed(&self, session: Place) -> Listed {
        let select = self.connection.prepare_cached("SELECT * FROM session WHERE n = ?1");
        let listed = select.and_then(|mut select| select.query_row([session.0], |row| Ok(listed_in(row))));
        listed.unwrap_or_default()
    }

    /// The entries of a session. Of one whose length nobody says, as many as there are.
    fn entries(&self, session: Place, length: Option<usize>, unpacker: &mut Unpacker) -> Vec<Option<Entry>> {
        let (mut entries, mut missing) = (Vec::new(), 0);
        // A length may be damaged too: it must not ask for all time.
        while missing < END && length.is_none_or(|length| entries.len() < length) {
            let entry = self.entry(session, entries.len(), unpacker);
            missing = if entry.is_some() { 0 } else { missing + 1 };
            entries.push(entry);
        }
        if length.is_none() || missing == END {
            entries.truncate(entries.len() - missing);
        }
        entries
    }

    /// An entry with its text, if both can be read.
    fn entry(&self, session: Place, seq: usize, unpacker: &mut Unpacker) -> Option<Entry> {
        let at = session.entry(seq).ok()?;
        let mut select =
            self.connection.prepare_cached("SELECT packed, content, apart FROM entry WHERE at = ?1").ok()?;
        let row = |row: &Row<'_>| {
            Ok((
                row.get::<_, Option<Vec<u8>>>(0)?,
                row.get::<_, Option<i64>>(1)?,
                row.get::<_, Option<i64>>(2)?,
            ))
        };
        let (packed, content, apart) = select.query_row([at], row).ok()?;
        let packed = packed.or_else(|| self.content(content?))?;
        let line = unpacker.unpack(&packed).ok()?;
        let entry = match seq {
            0 => journal::read([line]).ok()?.pop()?,
            _ => serde_json::from_str(line).ok()?,
        };
        if export::handle_apart(&entry).is_none() {
            return Some(entry);
        }
        let text = unpacker.unpack(&self.content(apart?)?).ok()?.to_owned();
        Some(export::with_text(&entry, text))
    }

    fn content(&self, id: i64) -> Option<Vec<u8>> {
        let mut select = self.connection.prepare_cached("SELECT packed FROM content WHERE id = ?1").ok()?;
        select.query_row([id], |row| row.get(0)).ok()
    }

    /// Names the session that was got back by what is said in its first messages.
    fn keep_prefixes(
        &self,
        session: Place,
        most: usize,
        id: SessionId,
        into: &dyn Store,
    ) -> Result<(), StoreError> {
        let read = || {
            let mut select = self.connection.prepare(
                "SELECT messages, hash FROM prefix WHERE session = ?1 AND messages <= ?2 ORDER BY messages",
            )?;
            let rows = select.query_map([session.0, i64::try_from(most).unwrap_or(i64::MAX)], |row| {
                Ok((row.get::<_, usize>(0)?, row.get::<_, [u8; 16]>(1)?))
            })?;
            // What comes behind a row that cannot be read is not found by its words.
            Ok::<_, rusqlite::Error>(rows.map_while(Result::ok).collect::<Vec<_>>())
        };
        let named = read().unwrap_or_default();
        for way in named.chunk_by(|(before, _), (messages, _)| *messages == before + 1) {
            let hashes: Vec<[u8; 16]> = way.iter().map(|(_, hash)| *hash).collect();
            into.keep_prefixes(id, way[0].0.saturating_sub(1), &hashes)?;
        }
        Ok(())
    }
}

/// What a row says. A column that cannot be read, or that older files do not have, says nothing.
fn listed_in(row: &Row<'_>) -> Listed {
    let text = |name: &str| row.get::<_, String>(name).unwrap_or_default();
    Listed {
        id: row.get("id").ok().map(SessionId::from_bytes),
        about: About {
            tenant: text("tenant"),
            agent: text("agent"),
            project: text("project"),
            title: Some(text("title")).filter(|title| !title.is_empty()),
            without_content: row.get("without_content").unwrap_or_default(),
        },
        model: text("model"),
        entries: row.get("entries").ok(),
    }
}

fn is_message(entry: &Entry) -> bool {
    matches!(entry, Entry::Message(_))
}

/// A journal that can be loaded, of what can be read of one: as it was up to the first entry that is lost, and behind
/// that what was said.
fn whole_again(read: Vec<Option<Entry>>, model: &str) -> Vec<Entry> {
    let is_whole = read.iter().all(Option::is_some);
    let first_lost = read.iter().position(Option::is_none).unwrap_or(read.len());
    let mut read = read.into_iter().flatten();
    let mut journal: Vec<Entry> = read.by_ref().take(first_lost).collect();
    let behind: Vec<Entry> = read.filter(is_said).collect();
    let loads = |journal: &[Entry]| {
        Session::load_with(Profile::longhaul(), journal.iter().cloned(), Known::default()).is_ok()
    };
    if is_whole && loads(&journal) {
        return journal;
    }
    journal.extend(behind);
    if first_lost > 0 && loads(&journal) {
        return journal;
    }
    let began = journal.iter().find(|entry| matches!(entry, Entry::Began { .. })).cloned();
    let began = began.unwrap_or_else(|| Entry::Began {
        version: journal::VERSION,
        model: Models::builtin().find(model).clone().into(),
    });
    std::iter::once(began).chain(journal.into_iter().filter(is_said)).collect()
}

/// True for what was said, and what stands before it: nothing of it depends on another entry.
fn is_said(entry: &Entry) -> bool {
    matches!(entry, Entry::Message(_) | Entry::Frame(_) | Entry::Fact(_))
}
