//! The words of messages go into the index some hundred messages at a time: one by one they would cost each
//! append more than all the rest. What waits is indexed before a search looks for anything.

use rusqlite::{Connection, params};

use crate::fault::Fault;
use crate::packing::Unpacker;
use crate::rows::Kind;
use crate::unpacking;

/// So much content may wait for the next search.
const WAITING: i64 = 512;

/// So much content is indexed in one transaction by who waits for it.
pub(super) const LARGE: i64 = 512;

/// So much content is indexed in one transaction while others append: they wait for it, so it is short.
pub(super) const SMALL: i64 = 32;

/// Whether so much content waits that it should be indexed now.
pub(super) fn is_due(connection: &Connection) -> Result<bool, Fault> {
    Ok(waiting(connection)? >= WAITING)
}

/// How much content has not been looked at.
fn waiting(connection: &Connection) -> Result<i64, Fault> {
    let mut select =
        connection.prepare_cached("SELECT coalesce((SELECT max(id) FROM content), 0) - upto FROM indexed")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

fn looked_at(connection: &Connection) -> Result<i64, Fault> {
    Ok(connection.query_row("SELECT upto FROM indexed", [], |row| row.get(0))?)
}

/// The words of some content that waits.
pub(super) struct Words {
    /// How far content was looked at before, and with this.
    upto: i64,
    newest: i64,
    of_content: Vec<(i64, String)>,
}

/// The words of some of what waits; `None` if nothing does. Nobody waits for this.
pub(super) fn words(
    connection: &Connection,
    unpacker: &mut Unpacker,
    most: i64,
) -> Result<Option<Words>, Fault> {
    let (upto, waiting) = (looked_at(connection)?, waiting(connection)?);
    if waiting <= 0 {
        return Ok(None);
    }
    let newest = upto + waiting.min(most);
    let mut select = connection.prepare_cached(
        "SELECT DISTINCT content.id, content.packed FROM entry JOIN content ON content.id = entry.content
         WHERE entry.content > ?1 AND entry.content <= ?2 AND entry.kind = ?3",
    )?;
    let mut rows = select.query([upto, newest, i64::from(Kind::Message.number())])?;
    let mut of_content = Vec::new();
    while let Some(row) = rows.next()? {
        let words = unpacking::words(unpacker, row.get_ref(1)?.as_blob().unwrap_or_default());
        if !words.is_empty() {
            of_content.push((row.get(0)?, words));
        }
    }
    Ok(Some(Words { upto, newest, of_content }))
}

/// Puts words into the index, inside of a transaction. If somebody was faster, they are there already.
pub(super) fn index(connection: &Connection, words: &Words) -> Result<(), Fault> {
    if looked_at(connection)? != words.upto {
        return Ok(());
    }
    // What was deleted in the meantime has no words.
    let mut insert = connection.prepare_cached(
        "INSERT INTO words (rowid, text) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM content WHERE id = ?1)",
    )?;
    for (content, words) in &words.of_content {
        insert.execute(params![content, words])?;
    }
    connection.execute("UPDATE indexed SET upto = ?1", [words.newest])?;
    Ok(())
}
