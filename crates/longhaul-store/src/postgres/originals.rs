//! The originals that entries name, by their handles.

use uuid::Uuid;

use super::appending::{BEGIN, LOCKED, count, text};
use super::pool::{Connection, all_at_once};
use crate::fault::Fault;
use crate::originals::{AT_ONCE, HOLDERS, LISTED_BY_LOOKUP, handle_of, range_of};
use crate::rows::{Kind, bytes_of};
use crate::store::{Holders, SessionId};
use crate::unpacking;

/// Keeps the handles that entries of a session name. A session without content has none.
pub(super) const KEEP: &str = "
    INSERT INTO longhaul.original (tenant, handle, session, seq)
    SELECT tenant, handle, n, seq FROM longhaul.session, unnest($2::bytea[], $3::integer[]) AS named (handle, seq)
    WHERE n = $1 AND NOT without_content ON CONFLICT DO NOTHING";

const FIRST: &str = "
    SELECT handle FROM longhaul.original WHERE tenant = $1 AND handle >= $2 AND handle <= $3
    ORDER BY handle LIMIT 1";

const LAST: &str = "
    SELECT handle FROM longhaul.original WHERE tenant = $1 AND handle >= $2 AND handle <= $3
    ORDER BY handle DESC LIMIT 1";

const SESSIONS: &str = "
    SELECT session.id FROM (
        SELECT session FROM longhaul.original WHERE tenant = $1 AND handle = $2
        ORDER BY session DESC, seq DESC LIMIT $3
    ) AS named JOIN longhaul.session ON session.n = named.session ORDER BY session.n DESC";

/// The sessions of a tenant that can give back the original whose handle starts like this.
pub(super) async fn find(
    connection: &mut Connection,
    tenant: &str,
    start: &str,
) -> Result<Option<Holders>, Fault> {
    let Some((low, high)) = range_of(start) else { return Ok(None) };
    let (first, last, sessions) = (
        connection.statement(FIRST).await?,
        connection.statement(LAST).await?,
        connection.statement(SESSIONS).await?,
    );
    let (client, tenant) = (&connection.client, text(tenant));
    let (low, high) = (low.as_slice(), high.as_slice());
    let (first, last) = all_at_once!(
        client.query_opt(&first, &[&tenant, &low, &high]),
        client.query_opt(&last, &[&tenant, &low, &high]),
    )?;
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    let (first, last): (&[u8], &[u8]) = (first.try_get(0)?, last.try_get(0)?);
    let handle = <[u8; 16]>::try_from(first).ok().filter(|_| first == last).and_then(handle_of);
    let Some(handle) = handle else { return Ok(None) };
    let rows = client.query(&sessions, &[&tenant, &first, &count::<i64>(HOLDERS)?]).await?;
    let id = |row: &tokio_postgres::Row| Ok(SessionId::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes()));
    let mut sessions = rows.iter().map(id).collect::<Result<Vec<_>, Fault>>()?;
    sessions.dedup();
    Ok(Some(Holders { handle, sessions }))
}

/// The server expects that a third of all sessions is not listed, and would read all of them to find none: it must take
/// the index, which has those alone, the newest first.
const BY_INDEX: &str = "BEGIN READ ONLY; SET LOCAL enable_seqscan = off";

const NEWEST: &str = "SELECT n FROM longhaul.session WHERE listed < entries LIMIT 1";

/// The newest session with entries that an older version stored and nobody has listed.
async fn newest_unlisted(connection: &mut Connection) -> Result<Option<i64>, Fault> {
    let newest = connection.statement(NEWEST).await?;
    let client = &connection.client;
    let (_, row, _) = all_at_once!(
        client.batch_execute(BY_INDEX),
        client.query_opt(&newest, &[]),
        client.batch_execute("COMMIT"),
    )?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Whether an older version stored entries that nobody has listed.
pub(super) async fn any_unlisted(connection: &mut Connection) -> Result<bool, Fault> {
    Ok(newest_unlisted(connection).await?.is_some())
}

/// Lists some entries that nobody has listed, of the newest session that has any. Says whether there were any.
pub(super) async fn list_some(connection: &mut Connection) -> Result<bool, Fault> {
    let Some(session) = newest_unlisted(connection).await? else { return Ok(false) };
    list(connection, session).await?;
    Ok(true)
}

const NEWEST_OF_TENANT: &str = "
    SELECT n FROM longhaul.session WHERE tenant = $1 AND listed < entries ORDER BY updated DESC, n DESC LIMIT $2";

/// Lists the newest sessions of a tenant that have entries which nobody has listed. Says whether there were any.
pub(super) async fn list_newest(connection: &mut Connection, tenant: &str) -> Result<bool, Fault> {
    if !any_unlisted(connection).await? {
        return Ok(false);
    }
    let newest = connection.statement(NEWEST_OF_TENANT).await?;
    let some = count::<i64>(LISTED_BY_LOOKUP)?;
    let rows = connection.client.query(&newest, &[&text(tenant), &some]).await?;
    for row in &rows {
        let session: i64 = row.try_get(0)?;
        while list(connection, session).await? {}
    }
    Ok(!rows.is_empty())
}

/// Where a session is listed to. It is locked, so that nobody deletes or lists it meanwhile.
const ENDS: &str = "SELECT listed, entries FROM longhaul.session WHERE n = $1 FOR UPDATE";

const ENTRIES: &str = "
    SELECT entry.seq, coalesce(entry.packed, content.packed) FROM longhaul.entry
    LEFT JOIN longhaul.content ON content.id = entry.content
    WHERE entry.session = $1 AND entry.seq >= $2 AND entry.seq < $3 AND entry.kind = $4";

const SET_LISTED: &str = "UPDATE longhaul.session SET listed = $2 WHERE n = $1";

/// Lists some entries of a session that nobody has listed. Says whether there were any.
async fn list(connection: &mut Connection, session: i64) -> Result<bool, Fault> {
    let (ends, entries, keep, set_listed) = (
        connection.statement(ENDS).await?,
        connection.statement(ENTRIES).await?,
        connection.statement(KEEP).await?,
        connection.statement(SET_LISTED).await?,
    );
    let client = &connection.client;
    let (_, row, _) = all_at_once!(
        client.batch_execute(BEGIN),
        client.query_opt(&ends, &[&session]),
        client.batch_execute(LOCKED),
    )?;
    let ends: Option<(i32, i32)> =
        row.map(|row| Ok::<_, Fault>((row.try_get(0)?, row.try_get(1)?))).transpose()?;
    let Some((from, end)) = ends.filter(|(listed, entries)| listed < entries) else {
        client.batch_execute("COMMIT").await?;
        return Ok(false);
    };
    let upto = end.min(from.saturating_add(count(AT_ONCE)?));
    let rows = client.query(&entries, &[&session, &from, &upto, &Kind::Other.number()]).await?;
    let (mut handles, mut seqs) = (Vec::new(), Vec::new());
    for row in &rows {
        let seq: i32 = row.try_get(0)?;
        let packed = row.try_get::<_, Option<&[u8]>>(1)?.unwrap_or_default();
        for handle in unpacking::originals(&mut connection.unpacker, packed) {
            handles.push(bytes_of(handle));
            seqs.push(seq);
        }
    }
    let handles: Vec<&[u8]> = handles.iter().map(<[u8; 16]>::as_slice).collect();
    all_at_once!(
        client.execute(&keep, &[&session, &handles, &seqs]),
        client.execute(&set_listed, &[&session, &upto]),
        client.batch_execute("COMMIT"),
    )?;
    Ok(true)
}
