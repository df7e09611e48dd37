//! The words of messages go into the index some hundred messages at a time: one by one they would cost each
//! append more than all the rest. What waits is indexed before a search looks for anything.

use rusqlite::{Connection, params};

use crate::fault::Fault;
use crate::packing::Unpacker;
use crate::rows::Kind;
use crate::unpacking;

/// So much content may wait for the next search.
const WAITING: i64 = 512;

/// Whether so much content waits that it should be indexed now.
pub(super) fn is_due(connection: &Connection) -> Result<bool, Fault> {
    Ok(waiting(connection)? >= WAITING)
}

/// How much content has not been looked at.
pub(super) fn waiting(connection: &Connection) -> Result<i64, Fault> {
    let mut select =
        connection.prepare_cached("SELECT coalesce((SELECT max(id) FROM content), 0) - upto FROM indexed")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// Indexes some of what waits, inside of a transaction.
pub(super) fn index_some(connection: &Connection, unpacker: &mut Unpacker) -> Result<(), Fault> {
    let upto: i64 = connection.query_row("SELECT upto FROM indexed", [], |row| row.get(0))?;
    let newest: i64 = upto + waiting(connection)?.min(WAITING);
    let mut select = connection.prepare_cached(
        "SELECT DISTINCT content.id, content.packed FROM entry JOIN content ON content.id = entry.content
         WHERE entry.content > ?1 AND entry.content <= ?2 AND entry.kind = ?3",
    )?;
    let mut insert = connection.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
    let mut rows = select.query([upto, newest, i64::from(Kind::Message.number())])?;
    while let Some(row) = rows.next()? {
        let packed = row.get_ref(1)?.as_blob().unwrap_or_default();
        let words = unpacking::words(unpacker, packed);
        if !words.is_empty() {
            insert.execute(params![row.get::<_, i64>(0)?, words])?;
        }
    }
    connection.execute("UPDATE indexed SET upto = ?1", [newest])?;
    Ok(())
}
