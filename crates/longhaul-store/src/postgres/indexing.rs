//! The words of messages go into the index some hundred messages at a time: one by one they would cost each
//! append more than all the rest. What waits is indexed before a search looks for anything.

use super::appending::{BEGIN, LOCKED};
use super::pool::{Connection, all_at_once};
use crate::fault::Fault;
use crate::unpacking;

/// So many messages are indexed in one transaction.
pub(super) const BATCH: usize = 512;

/// One at a time indexes (`LHwo`), so that who searches finds what somebody else is just indexing.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1279817583)";

/// Some of what waits, locked so that nobody deletes it. What is being deleted at this moment has no words.
const SOME: &str = "
    SELECT waiting.content, content.packed FROM longhaul.waiting
    JOIN longhaul.content ON content.id = waiting.content
    ORDER BY waiting.content LIMIT $1 FOR KEY SHARE OF content SKIP LOCKED";

const INSERT_WORDS: &str = "
    INSERT INTO longhaul.words SELECT content, array_to_tsvector(string_to_array(words, ' '))
    FROM unnest($1::bigint[], $2::text[]) AS new (content, words)";

const DELETE_WAITING: &str = "DELETE FROM longhaul.waiting WHERE content = ANY($1)";

/// Whether any content waits.
pub(super) async fn any_waits(connection: &mut Connection) -> Result<bool, Fault> {
    let select = connection.statement("SELECT EXISTS (SELECT FROM longhaul.waiting)").await?;
    Ok(connection.client.query_one(&select, &[]).await?.try_get(0)?)
}

/// Indexes some of what waits. Says whether there was anything.
pub(super) async fn index_some(connection: &mut Connection) -> Result<bool, Fault> {
    let (some, insert, delete) = (
        connection.statement(SOME).await?,
        connection.statement(INSERT_WORDS).await?,
        connection.statement(DELETE_WAITING).await?,
    );
    let client = &connection.client;
    let batch = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let (.., rows) = all_at_once!(
        client.batch_execute(BEGIN),
        client.batch_execute(LOCK),
        client.batch_execute(LOCKED),
        client.query(&some, &[&batch]),
    )?;
    let (mut looked_at, mut content, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        let number: i64 = row.try_get(0)?;
        looked_at.push(number);
        let found = unpacking::words(&mut connection.unpacker, row.try_get(1)?);
        if !found.is_empty() {
            content.push(number);
            words.push(found);
        }
    }
    all_at_once!(
        client.execute(&insert, &[&content, &words]),
        client.execute(&delete, &[&looked_at]),
        client.batch_execute("COMMIT"),
    )?;
    Ok(!rows.is_empty())
}
