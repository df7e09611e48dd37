//! Deleting: a session goes with all content that nobody else holds. Whoever reuses content locks it first,
//! and here it is locked before it is known whether anybody holds it.

use uuid::Uuid;

use super::appending::{BEGIN, LOCK_SESSION, LOCKED, count, uuid};
use super::pool::{Connection, all_at_once};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::rows::Now;
use crate::store::{Pruned, Retention, SessionId};

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
    let (lock, delete_entries, delete_originals, lock_content, delete_content, delete_sizes) = (
        connection.statement(LOCK_SESSION).await?,
        connection.statement(DELETE_ENTRIES).await?,
        connection.statement("DELETE FROM longhaul.original WHERE session = $1").await?,
        connection.statement(LOCK_CONTENT).await?,
        connection.statement(DELETE_CONTENT).await?,
        connection.statement("DELETE FROM longhaul.sizes WHERE session = $1").await?,
    );
    let (delete_prefixes, delete_session) = (
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
        client.execute(&delete_originals, &[&session]),
        client.execute(&delete_sizes, &[&session]),
        client.execute(&delete_prefixes, &[&session]),
        client.execute(&delete_session, &[&session]),
    )?;
    Ok(gone.try_get::<_, i64>(0)?.unsigned_abs())
}

/// The sessions that were left alone longest.
const OLDEST: &str = "SELECT id FROM longhaul.session ORDER BY updated, n LIMIT $1";

/// When a session was written to last. It is locked: nobody writes to it from here on.
const UPDATED: &str = "SELECT updated FROM longhaul.session WHERE id = $1 FOR UPDATE";

/// How many bytes the store takes, without what the server needs around them: files do not get smaller when
/// rows are deleted.
const USED: &str = "
    SELECT ((SELECT coalesce(sum(octet_length(packed)), 0) FROM longhaul.content)
        + (SELECT coalesce(sum(octet_length(packed)), 0) FROM longhaul.entry)
        + (SELECT coalesce(sum(octet_length(packed)), 0) FROM longhaul.sizes)
        + (SELECT coalesce(sum(pg_column_size(words)), 0) FROM longhaul.words))::bigint";

/// Who deletes what is not kept any longer holds this lock (`LHpr`) of its connection: two that know how large the
/// store is, and not of each other, would delete too much.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(1279815794)";
const UNLOCK: &str = "ROLLBACK; SELECT pg_advisory_unlock(1279815794)";

/// How many bytes the store takes.
pub(super) async fn used(connection: &mut Connection) -> Result<u64, Fault> {
    Ok(connection.client.query_one(USED, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
}

/// Deletes sessions that are not to be kept any longer, until so many are gone. If somebody else does, nothing is
/// done here.
pub(super) async fn prune(
    connection: &mut Connection,
    retention: &Retention,
    most: usize,
    pruned: &mut Pruned,
) -> Result<(), Fault> {
    if retention.keeps_all() || !connection.client.query_one(TRY_LOCK, &[]).await?.try_get(0)? {
        return Ok(());
    }
    let done = prune_locked(connection, retention, most, pruned).await;
    // A connection that cannot do this is broken, and its lock ends with it.
    connection.client.batch_execute(UNLOCK).await?;
    done
}

async fn prune_locked(
    connection: &mut Connection,
    retention: &Retention,
    most: usize,
    pruned: &mut Pruned,
) -> Result<(), Fault> {
    let mut all = match retention.larger_than {
        Some(_) => used(connection).await?,
        None => 0,
    };
    while pruned.sessions.len() < most
        && let Some((id, bytes)) = prune_one(connection, retention, all, Now::get()).await?
    {
        pruned.sessions.push(id);
        pruned.bytes += bytes;
        all = all.saturating_sub(bytes);
    }
    Ok(())
}

/// Deletes the session that goes next, if one is to go. `used` is how many bytes the store takes.
async fn prune_one(
    connection: &mut Connection,
    retention: &Retention,
    used: u64,
    now: Now,
) -> Result<Option<(SessionId, u64)>, Fault> {
    let (oldest, updated) = (connection.statement(OLDEST).await?, connection.statement(UPDATED).await?);
    let client = &connection.client;
    let some = count::<i64>(retention.in_use.len() + 1)?;
    for row in client.query(&oldest, &[&some]).await? {
        let id = SessionId::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes());
        if retention.in_use.contains(&id) {
            continue;
        }
        let id_there = uuid(id);
        let (_, row) = all_at_once!(client.batch_execute(BEGIN), client.query_opt(&updated, &[&id_there]))?;
        // Somebody may have deleted it just now.
        let updated: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        if !updated.is_some_and(|updated| retention.lets_go(updated, || used, now)) {
            client.batch_execute("COMMIT").await?;
            return Ok(None);
        }
        let bytes = delete_here(connection, id).await?;
        connection.client.batch_execute("COMMIT").await?;
        return Ok(Some((id, bytes)));
    }
    Ok(None)
}
