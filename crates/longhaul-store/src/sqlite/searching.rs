//! Search: the index says which content has the words, its text says whether they stand as they were asked for.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use longhaul::session::journal::Cursor;
use rusqlite::{Connection, OptionalExtension, params};

use super::Place;
use crate::fault::Fault;
use crate::finding::{HOLDERS, Hits, LOOKED_AT};
use crate::packing::Unpacker;
use crate::store::{Filter, Hit, SessionId};
use crate::words::Query;

pub(super) fn search(
    connection: &Connection,
    unpacker: &mut Unpacker,
    query: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let Some(mut hits) = Hits::of(query, limit) else { return Ok(Vec::new()) };
    let mut sessions = Sessions { connection, filter, known: HashMap::new() };
    let mut select = connection
        .prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2")?;
    let mut rows = select.query(params![expression(&hits.query), LOOKED_AT])?;
    while let Some(row) = rows.next()?
        && !hits.is_full()
    {
        let content: i64 = row.get(0)?;
        let Some((at, session)) = sessions.holding(content)? else { continue };
        if hits.wants(session.id) {
            let at = Cursor(usize::try_from(at & i64::from(u32::MAX)).unwrap_or_default());
            let packed = packed(connection, content)?;
            hits.offer(unpacker, (session.id, &session.title), at, &packed)?;
        }
    }
    Ok(hits.into_found())
}

/// The query as the index takes it: all words, each in quotes, for they may look like an operator.
fn expression(query: &Query) -> String {
    let star = |is_start: bool| if is_start { "*" } else { "" };
    let words = query.words().iter().map(|(word, is_start)| format!("\"{word}\"{}", star(*is_start)));
    words.collect::<Vec<_>>().join(" AND ")
}

/// A message as it is stored.
fn packed(connection: &Connection, content: i64) -> Result<Vec<u8>, Fault> {
    let packed: Option<Vec<u8>> = connection
        .prepare_cached("SELECT packed FROM content WHERE id = ?1")?
        .query_row([content], |row| row.get(0))
        .optional()?;
    packed.ok_or_else(|| Fault::Damaged("a text is missing that has words".to_owned()))
}

/// The sessions that are looked for, as far as they were met.
struct Sessions<'a> {
    connection: &'a Connection,
    filter: &'a Filter,
    /// `None` for a session that is not looked for.
    known: HashMap<Place, Option<Session>>,
}

struct Session {
    id: SessionId,
    title: String,
}

impl Sessions<'_> {
    /// The newest entry with this content in a session that is looked for.
    fn holding(&mut self, content: i64) -> Result<Option<(i64, &Session)>, Fault> {
        let mut select = self
            .connection
            .prepare_cached("SELECT at FROM entry WHERE content = ?1 ORDER BY at DESC LIMIT ?2")?;
        let mut rows = select.query(params![content, HOLDERS])?;
        while let Some(row) = rows.next()? {
            let at: i64 = row.get(0)?;
            if self.is_looked_for(Place::of_entry(at))? {
                let session = self.known.get(&Place::of_entry(at)).and_then(Option::as_ref);
                return Ok(session.map(|session| (at, session)));
            }
        }
        Ok(None)
    }

    fn is_looked_for(&mut self, place: Place) -> Result<bool, Fault> {
        let session = match self.known.entry(place) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(unknown) => unknown.insert(read(self.connection, place, self.filter)?),
        };
        Ok(session.is_some())
    }
}

fn read(connection: &Connection, place: Place, filter: &Filter) -> Result<Option<Session>, Fault> {
    let since = filter.updated_since.map_or(i64::MIN, |time| time.0);
    let mut select = connection.prepare_cached(
        "SELECT id, title FROM session WHERE n = ?1 AND (?2 IS NULL OR agent = ?2)
         AND (?3 IS NULL OR project = ?3) AND updated >= ?4 AND (?5 IS NULL OR tenant = ?5)",
    )?;
    let wanted = params![place.0, filter.agent, filter.project, since, filter.tenant];
    let session = select
        .query_row(wanted, |row| Ok(Session { id: SessionId::from_bytes(row.get(0)?), title: row.get(1)? }));
    Ok(session.optional()?)
}
