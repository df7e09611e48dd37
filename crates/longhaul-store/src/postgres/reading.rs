//! Reading: journals, lists, and texts that were kept apart.

use longhaul::session::journal::{Cursor, Entry};
use longhaul::{Handle, Snapshot, Time};
use tokio_postgres::Row;
use uuid::Uuid;

use super::appending::{count, text, uuid};
use super::pool::{Connection, all_at_once};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::rows::bytes_of;
use crate::store::{Filter, Meta, SessionId, Stored};
use crate::unpacking::{self, missing};

/// How a transaction begins whose statements all see one moment of the store.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The columns of [`Meta`], in the order in which [`meta_of`] reads them.
const META: &str = "id, parent, title, tenant, agent, project, model, created, updated, entries, messages, calls, bytes, \
     without_content";

/// Entries in any order: to put them in order is less work here than for the server.
const ENTRIES: &str = "
    SELECT entry.seq, coalesce(entry.packed, content.packed) FROM longhaul.session
    JOIN longhaul.entry ON entry.session = session.n LEFT JOIN longhaul.content ON content.id = entry.content
    WHERE session.id = $1 AND entry.seq >= $2 AND entry.seq < session.entries";

const SIZES: &str = "
    SELECT sizes.packed, sizes.messages FROM longhaul.session JOIN longhaul.sizes ON sizes.session = session.n
    WHERE session.id = $1";

pub(super) async fn load(connection: &mut Connection, id: SessionId) -> Result<Stored, Fault> {
    let (select_meta, select_entries, select_sizes) = (
        connection.statement(&meta_where("id = $1")).await?,
        connection.statement(ENTRIES).await?,
        connection.statement(SIZES).await?,
    );
    let (client, id_there) = (&connection.client, uuid(id));
    let (_, meta, rows, sizes, _) = all_at_once!(
        client.batch_execute(BEGIN),
        client.query_opt(&select_meta, &[&id_there]),
        client.query(&select_entries, &[&id_there, &0_i32]),
        client.query_opt(&select_sizes, &[&id_there]),
        client.batch_execute("COMMIT"),
    )?;
    let meta = meta_of(&meta.ok_or(StoreError::NoSession(id))?)?;
    let entries = entries(connection, id, Cursor(0), meta.end, &rows)?;
    let (sizes, sized): (Vec<Snapshot>, usize) = match sizes {
        Some(row) => {
            let messages = usize::try_from(row.try_get::<_, i64>(1)?).unwrap_or_default();
            unpacking::sizes(&mut connection.unpacker, row.try_get(0)?, messages)?
        }
        None => (Vec::new(), 0),
    };
    Ok(Stored { meta, entries, sizes, sized })
}

pub(super) async fn since(
    connection: &mut Connection,
    id: SessionId,
    from: Cursor,
) -> Result<Vec<Entry>, Fault> {
    let (select_meta, select_entries) =
        (connection.statement(&meta_where("id = $1")).await?, connection.statement(ENTRIES).await?);
    let (client, id_there) = (&connection.client, uuid(id));
    let first = count(from.0).unwrap_or(i32::MAX);
    let (_, meta, rows, _) = all_at_once!(
        client.batch_execute(BEGIN),
        client.query_opt(&select_meta, &[&id_there]),
        client.query(&select_entries, &[&id_there, &first]),
        client.batch_execute("COMMIT"),
    )?;
    let end = meta_of(&meta.ok_or(StoreError::NoSession(id))?)?.end;
    entries(connection, id, from.min(end), end, &rows)
}

/// The entries of these rows. None may be missing.
fn entries(
    connection: &mut Connection,
    id: SessionId,
    from: Cursor,
    end: Cursor,
    rows: &[Row],
) -> Result<Vec<Entry>, Fault> {
    let mut found = rows
        .iter()
        .map(|row| Ok((row.try_get::<_, i32>(0)?, row.try_get::<_, Option<&[u8]>>(1)?)))
        .collect::<Result<Vec<_>, Fault>>()?;
    found.sort_unstable_by_key(|(seq, _)| *seq);
    let mut packed: Vec<&[u8]> = Vec::with_capacity(found.len());
    for (at, (seq, entry)) in (from.0..).zip(found) {
        if usize::try_from(seq) != Ok(at) {
            return Err(missing());
        }
        packed.push(entry.ok_or_else(missing)?);
    }
    if from.0 + packed.len() != end.0 {
        return Err(missing());
    }
    unpacking::entries(&mut connection.unpacker, id, from.0, &packed)
}

pub(super) fn meta_where(condition: &str) -> String {
    format!("SELECT {META} FROM longhaul.session WHERE {condition}")
}

pub(super) async fn meta(connection: &mut Connection, id: SessionId) -> Result<Meta, Fault> {
    let select = connection.statement(&meta_where("id = $1")).await?;
    let row = connection.client.query_opt(&select, &[&uuid(id)]).await?;
    meta_of(&row.ok_or(StoreError::NoSession(id))?)
}

pub(super) async fn list(
    connection: &mut Connection,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Meta>, Fault> {
    // The sessions of a tenant have an index of their own.
    let of_tenant = if filter.tenant.is_some() { "tenant = $5" } else { "$5::text IS NULL" };
    let select = meta_where(&format!(
        "{of_tenant} AND ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR project = $2)
         AND updated >= $3 ORDER BY updated DESC, n DESC LIMIT $4"
    ));
    let select = connection.statement(&select).await?;
    let since = filter.updated_since.map_or(i64::MIN, |time| time.0);
    let limit = count(limit).unwrap_or(i64::MAX);
    let [tenant, agent, project] =
        [&filter.tenant, &filter.agent, &filter.project].map(|wanted| wanted.as_deref().map(text));
    let rows = connection.client.query(&select, &[&agent, &project, &since, &limit, &tenant]).await?;
    rows.iter().map(meta_of).collect()
}

pub(super) fn meta_of(row: &Row) -> Result<Meta, Fault> {
    let id = |id: Uuid| SessionId::from_bytes(id.into_bytes());
    Ok(Meta {
        id: id(row.try_get(0)?),
        parent: row.try_get::<_, Option<Uuid>>(1)?.map(id),
        title: row.try_get(2)?,
        tenant: row.try_get(3)?,
        agent: row.try_get(4)?,
        project: row.try_get(5)?,
        model: row.try_get(6)?,
        created: Time(row.try_get(7)?),
        updated: Time(row.try_get(8)?),
        end: Cursor(usize::try_from(row.try_get::<_, i32>(9)?).unwrap_or_default()),
        messages: row.try_get::<_, i64>(10)?.unsigned_abs(),
        calls: row.try_get::<_, i64>(11)?.unsigned_abs(),
        bytes: row.try_get::<_, i64>(12)?.unsigned_abs(),
        without_content: row.try_get(13)?,
    })
}

/// A text that a session keeps apart from its entries.
pub(super) async fn text_apart(
    connection: &mut Connection,
    session: i64,
    handle: Handle,
) -> Result<Option<String>, Fault> {
    let select = "
        SELECT packed FROM longhaul.content WHERE hash = $1
        AND EXISTS (SELECT FROM longhaul.entry WHERE apart = content.id AND session = $2)";
    let select = connection.statement(select).await?;
    let row = connection.client.query_opt(&select, &[&bytes_of(handle).as_slice(), &session]).await?;
    let Some(row) = row else { return Ok(None) };
    let text = connection.unpacker.unpack(row.try_get(0)?).map_err(Fault::Damaged)?;
    Ok(Some(text.to_owned()))
}

/// The handle of the text apart that starts like this, if there is exactly one.
pub(super) async fn handle_starting(
    connection: &mut Connection,
    session: i64,
    start: &str,
) -> Result<Option<Handle>, Fault> {
    let select = "
        SELECT DISTINCT encode(content.hash, 'hex') FROM longhaul.entry
        JOIN longhaul.content ON content.id = entry.apart
        WHERE entry.session = $1 AND entry.apart IS NOT NULL AND starts_with(encode(content.hash, 'hex'), $2)
        LIMIT 2";
    let select = connection.statement(select).await?;
    let start = text(start).to_ascii_lowercase();
    let rows = connection.client.query(&select, &[&session, &start]).await?;
    match rows.as_slice() {
        [one] => Ok(one.try_get::<_, String>(0)?.parse().ok()),
        _ => Ok(None),
    }
}
