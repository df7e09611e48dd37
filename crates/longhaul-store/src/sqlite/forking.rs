//! Forks: rows of entries are copied, content is shared.

use longhaul::session::journal::Cursor;
use rusqlite::{Connection, params};

use super::appending::place_of;
use super::{Place, originals, reading};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::packing::Unpacker;
use crate::rows::{Kind, Now};
use crate::store::SessionId;

/// Makes a session of the entries before `at`, inside of a transaction.
pub(super) fn fork(
    connection: &Connection,
    unpacker: &mut Unpacker,
    fork: SessionId,
    (id, at): (SessionId, Cursor),
    now: Now,
) -> Result<(), Fault> {
    let (parent, stored) = place_of(connection, id)?;
    if at > stored {
        return Err(StoreError::PastEnd { session: id, at, stored }.into());
    }
    let shared = parent.entries(0..at.0)?;
    let model = reading::model_in(connection, unpacker, &shared)?.unwrap_or_default();
    let inserted = connection
        .prepare_cached(
            "INSERT INTO session (id, parent, tenant, agent, project, title, model, created, updated, entries, messages, calls, bytes, without_content, listed)
             SELECT ?1, id, tenant, agent, project, title, ?2, ?3, ?3, ?4,
                 (SELECT count(*) FROM entry WHERE at >= ?5 AND at < ?6 AND kind = ?7),
                 (SELECT count(*) FROM entry WHERE at >= ?5 AND at < ?6 AND kind = ?8),
                 (SELECT coalesce(sum(bytes), 0) FROM entry WHERE at >= ?5 AND at < ?6), without_content, min(listed, ?4)
             FROM session WHERE n = ?9 ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            fork.as_bytes(),
            model,
            now.0,
            at.0,
            shared.start,
            shared.end,
            Kind::Message.number(),
            Kind::Request.number(),
            parent.0
        ])?;
    if inserted == 0 {
        return Ok(());
    }
    let place = Place(connection.last_insert_rowid());
    connection
        .prepare_cached(
            "INSERT INTO entry (at, kind, bytes, packed, content, apart)
             SELECT at - ?1 + ?2, kind, bytes, packed, content, apart FROM entry WHERE at >= ?1 AND at < ?3 ORDER BY at",
        )?
        .execute([shared.start, place.entry(0)?, shared.end])?;
    originals::fork(connection, &shared, place)
}
