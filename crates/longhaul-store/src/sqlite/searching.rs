//! Search: the index says which content has the words, its text says whether they stand as they were asked for.

use std::collections::HashMap;

use longhaul::session::journal::{Cursor, Entry};
use rusqlite::{Connection, OptionalExtension, params};

use super::Place;
use super::faults::Fault;
use crate::packing::Unpacker;
use crate::store::{Hit, SessionId};
use crate::words::{Query, said};

/// Hits of one session: more would hide others.
const OF_ONE_SESSION: usize = 3;

/// So many messages are looked at, from the newest on: a search for what is everywhere ends too.
const LOOKED_AT: usize = 20_000;

pub(super) fn search(
    connection: &Connection,
    unpacker: &mut Unpacker,
    query: &str,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let mut hits = Vec::new();
    let Some(query) = Query::of(query).filter(|_| limit > 0) else { return Ok(hits) };
    let mut sessions = HashMap::<Place, usize>::new();
    let mut select = connection
        .prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2")?;
    let mut rows = select.query(params![expression(&query), LOOKED_AT])?;
    while let Some(row) = rows.next()? {
        let content: i64 = row.get(0)?;
        let Some(at) = newest_with(connection, content)? else { continue };
        let of_session = sessions.entry(Place::of_entry(at)).or_default();
        if *of_session == OF_ONE_SESSION {
            continue;
        }
        if let Some(hit) = hit(connection, unpacker, &query, content, at)? {
            *of_session += 1;
            hits.push(hit);
        }
        if hits.len() == limit {
            break;
        }
    }
    Ok(hits)
}

/// The query as the index takes it: all words, each in quotes, for they may look like an operator.
fn expression(query: &Query) -> String {
    let words =
        query.words().iter().map(|(word, start)| format!("\"{word}\"{}", if *start { "*" } else { "" }));
    words.collect::<Vec<_>>().join(" AND ")
}

/// The newest entry that holds this content.
fn newest_with(connection: &Connection, content: i64) -> Result<Option<i64>, Fault> {
    let mut select = connection.prepare_cached("SELECT max(at) FROM entry WHERE content = ?1")?;
    Ok(select.query_row([content], |row| row.get(0))?)
}

fn hit(
    connection: &Connection,
    unpacker: &mut Unpacker,
    query: &Query,
    content: i64,
    at: i64,
) -> Result<Option<Hit>, Fault> {
    let packed: Option<Vec<u8>> = connection
        .prepare_cached("SELECT packed FROM content WHERE id = ?1")?
        .query_row([content], |row| row.get(0))
        .optional()?;
    let packed = packed.ok_or_else(|| Fault::Damaged("a text is missing that has words".to_owned()))?;
    let json = unpacker.unpack(&packed).map_err(Fault::Damaged)?;
    let Ok(Entry::Message(message)) = serde_json::from_str(&json) else { return Ok(None) };
    let Some((snippet, found)) = query.snippet(&said(&message)) else { return Ok(None) };
    let (id, title) = connection
        .prepare_cached("SELECT id, title FROM session WHERE n = ?1")?
        .query_row([Place::of_entry(at).0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let seq = usize::try_from(at & i64::from(u32::MAX)).unwrap_or_default();
    Ok(Some(Hit { session: SessionId::from_bytes(id), title, at: Cursor(seq), snippet, found }))
}
