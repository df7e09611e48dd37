//! Deleting: a session goes with all content that nobody else holds. Whoever reuses content locks it first,
//! and here it is locked before it is known whether anybody holds it.

use uuid::Uuid;

use super::appending::{BEGIN, LOCK_SESSION, LOCKED, uuid};
use super::pool::{Connection, all_at_once};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::rows::Now;
use crate::store::{Retention, SessionId};

/// Deletes the entries of a session, and gives what they held.
const DELETE_ENTRIES: &str = "
    WITH gone AS (DELETE FROM longhaul.entry WHERE session = $1 RETURNING content, apart)
    SELECT DISTINCT held FROM gone, unnest(ARRAY[content, apart]) AS held WHERE held IS NOT NULL";

const LOCK_CONTENT: &str = "SELECT id FROM longhaul.content WHERE id = ANY($1) ORDER BY id FOR UPDATE";

/// Deletes content that no entry holds. A statement of its own: it sees what was committed while we waited
/// for the locks.
const DELETE_CONTENT: &str = "
    WITH gone AS (
        DELETE FROM longhaul.content WHERE id = ANY($1)
        AND NOT EXISTS (SELECT FROM longhaul.entry WHERE entry.content = content.id)
        AND NOT EXISTS (SELECT FROM longhaul.entry WHERE entry.apart = content.id)
        RETURNING id, octet_length(packed) AS bytes
    ), words AS (
        DELETE FROM longhaul.words USING gone WHERE words.content = gone.id
    ), waiting AS (
        DELETE FROM longhaul.waiting USING gone WHERE waiting.content = gone.id
    )
    SELECT coalesce(sum(bytes), 0)::bigint FROM gone";

/// Deletes a session.
pub(super) async fn delete(connection: &mut Connection, id: SessionId) -> Result<(), Fault> {
    connection.client.batch_execute(BEGIN).await?;
    delete_here(connection, id).await?;
    Ok(connection.client.batch_execute("COMMIT").await?)
}

/// Deletes a session, inside of a transaction. Says how many bytes of content are gone.
async fn delete_here(connection: &mut Connection, id: SessionId) -> Result<u64, Fault> {
    let (lock, delete_entries, lock_content, delete_content, delete_sizes, delete_prefixes, delete_session) = (
        connection.statement(LOCK_SESSION).await?,
        connection.statement(DELETE_ENTRIES).await?,
        connection.statement(LOCK_CONTENT).await?,
        connection.statement(DELETE_CONTENT).await?,
        connection.statement("DELETE FROM longhaul.sizes WHERE session = $1").await?,
        connection.statement("DELETE FROM longhaul.prefix WHERE session = $1").await?,
        connection.statement("DELETE FROM longhaul.session WHERE n = $1").await?,
    );
    let client = &connection.client;
    let id_there = uuid(id);
    let (row, _) = all_at_once!(client.query_opt(&lock, &[&id_there]), client.batch_execute(LOCKED))?;
    let session: i64 = row.ok_or(StoreError::NoSession(id))?.try_get(0)?;
    let rows = client.query(&delete_entries, &[&session]).await?;
    let held = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    let (_, gone, ..) = all_at_once!(
        client.execute(&lock_content, &[&held]),
        client.query_one(&delete_content, &[&held]),
        client.execute(&delete_sizes, &[&session]),
        client.execute(&delete_prefixes, &[&session]),
        client.execute(&delete_session, &[&session]),
    )?;
    Ok(gone.try_get::<_, i64>(0)?.unsigned_abs())
}

/// The session that was left alone longest, locked.
const OLDEST: &str = "SELECT id, updated FROM longhaul.session ORDER BY updated, n LIMIT 1 FOR UPDATE";

/// How many bytes the store takes, without what the server needs around them: files do not get smaller when
/// rows are deleted.
const USED: &str = "
    SELECT ((SELECT coalesce(sum(octet_length(packed)), 0) FROM longhaul.content)
        + (SELECT coalesce(sum(octet_length(packed)), 0) FROM longhaul.entry)
        + (SELECT coalesce(sum(octet_length(packed)), 0) FROM longhaul.sizes)
        + (SELECT coalesce(sum(pg_column_size(words)), 0) FROM longhaul.words))::bigint";

/// Deletes the session that goes next, if one is to go. `used` is how many bytes the store takes, as far
/// as that is known.
pub(super) async fn prune_one(
    connection: &mut Connection,
    retention: &Retention,
    used: &mut Option<u64>,
    now: Now,
) -> Result<Option<SessionId>, Fault> {
    let oldest = connection.statement(OLDEST).await?;
    let client = &connection.client;
    let (_, row) = all_at_once!(client.batch_execute(BEGIN), client.query_opt(&oldest, &[]))?;
    let Some(row) = row else {
        client.batch_execute("COMMIT").await?;
        return Ok(None);
    };
    let (id, updated): (Uuid, i64) = (row.try_get(0)?, row.try_get(1)?);
    let id = SessionId::from_bytes(id.into_bytes());
    let age = u128::try_from(now.0.saturating_sub(updated)).unwrap_or_default();
    let too_old = retention.older_than.is_some_and(|longest| age > longest.as_micros());
    client.batch_execute(LOCKED).await?;
    if let (Some(_), None) = (retention.larger_than, &used) {
        *used = Some(client.query_one(USED, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs());
    }
    let too_large = retention.larger_than.is_some_and(|most| used.is_some_and(|used| used > most));
    let goes = too_old || too_large;
    let gone = if goes { delete_here(connection, id).await? } else { 0 };
    connection.client.batch_execute("COMMIT").await?;
    *used = used.map(|used| used.saturating_sub(gone));
    Ok(goes.then_some(id))
}
