//! Forks: rows of entries are copied, content is shared.

use longhaul::session::journal::Cursor;

use super::appending::{BEGIN, LOCK_SESSION, LOCKED, count, text, uuid};
use super::pool::{Connection, all_at_once};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::rows::{Kind, Now};
use crate::store::SessionId;
use crate::unpacking;

/// The newest entry before a place that names the model.
const NEWEST_MODEL: &str = "
    SELECT coalesce(entry.packed, content.packed) FROM longhaul.entry
    LEFT JOIN longhaul.content ON content.id = entry.content
    WHERE entry.session = $1 AND entry.seq < $2 AND entry.kind = $3 ORDER BY entry.seq DESC LIMIT 1";

const FORK: &str = "
    WITH fork AS (
        INSERT INTO longhaul.session
            (id, parent, tenant, agent, project, title, model, created, updated, entries, messages, calls, bytes,
             without_content, listed)
        SELECT $1, id, tenant, agent, project, title, $2, $3, $3, $4, sum.messages, sum.calls, sum.bytes,
            without_content, least(listed, $4)
        FROM longhaul.session, (
            SELECT count(*) FILTER (WHERE kind = $5) AS messages, count(*) FILTER (WHERE kind = $6) AS calls,
                coalesce(sum(bytes), 0) AS bytes
            FROM longhaul.entry WHERE session = $7 AND seq < $4
        ) AS sum
        WHERE n = $7 ON CONFLICT (id) DO NOTHING RETURNING n
    ), originals AS (
        INSERT INTO longhaul.original (tenant, handle, session, seq)
        SELECT original.tenant, original.handle, fork.n, original.seq
        FROM fork, longhaul.original WHERE original.session = $7 AND original.seq < $4
    )
    INSERT INTO longhaul.entry (session, seq, kind, bytes, packed, content, apart)
    SELECT fork.n, entry.seq, entry.kind, entry.bytes, entry.packed, entry.content, entry.apart
    FROM fork, longhaul.entry WHERE entry.session = $7 AND entry.seq < $4 ORDER BY entry.seq";

/// Makes a session of the entries before `at`. Its parent is locked, so that what both hold stays held.
pub(super) async fn fork(
    connection: &mut Connection,
    fork: SessionId,
    (id, at): (SessionId, Cursor),
    now: Now,
) -> Result<(), Fault> {
    let (lock, newest, insert) = (
        connection.statement(LOCK_SESSION).await?,
        connection.statement(NEWEST_MODEL).await?,
        connection.statement(FORK).await?,
    );
    let parent = uuid(id);
    let client = &connection.client;
    let (_, row, _) = all_at_once!(
        client.batch_execute(BEGIN),
        client.query_opt(&lock, &[&parent]),
        client.batch_execute(LOCKED),
    )?;
    let row = row.ok_or(StoreError::NoSession(id))?;
    let (session, stored) = (row.try_get::<_, i64>(0)?, row.try_get::<_, i32>(1)?);
    let stored = Cursor(usize::try_from(stored).unwrap_or_default());
    if at > stored {
        return Err(StoreError::PastEnd { session: id, at, stored }.into());
    }
    let end: i32 = count(at.0)?;
    let model = match client.query_opt(&newest, &[&session, &end, &Kind::Model.number()]).await? {
        Some(row) => unpacking::model(&mut connection.unpacker, row.try_get(0)?)?.unwrap_or_default(),
        None => String::new(),
    };
    let model = text(&model);
    let (fork_there, message, request) = (uuid(fork), Kind::Message.number(), Kind::Request.number());
    all_at_once!(
        client.execute(&insert, &[&fork_there, &model, &now.0, &end, &message, &request, &session]),
        client.batch_execute("COMMIT"),
    )?;
    Ok(())
}
