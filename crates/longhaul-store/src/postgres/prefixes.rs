//! By which conversations a session is found.

use uuid::Uuid;

use super::appending::uuid;
use super::pool::Connection;
use crate::error::StoreError;
use crate::fault::Fault;
use crate::store::SessionId;

/// So many hashes are asked for at once.
const AT_ONCE: usize = 256;

/// Names a session by hashes of its first messages, more of them with each hash. `first` messages are named
/// already. A hash that names another session goes on to name that one.
pub(super) async fn keep(
    connection: &mut Connection,
    id: SessionId,
    first: usize,
    hashes: &[[u8; 16]],
) -> Result<(), Fault> {
    // The session is locked, so that it is not deleted meanwhile.
    let insert = "
        WITH session AS (SELECT n FROM longhaul.session WHERE id = $1 FOR KEY SHARE), named AS (
            INSERT INTO longhaul.prefix (hash, session, messages)
            SELECT hash, n, $3 + place FROM session, unnest($2::bytea[]) WITH ORDINALITY AS new (hash, place)
            ON CONFLICT (hash) DO NOTHING
        )
        SELECT n FROM session";
    let insert = connection.statement(insert).await?;
    let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    match connection.client.query_opt(&insert, &[&uuid(id), &hashes, &first]).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::NoSession(id).into()),
    }
}

/// The session that the last of these hashes names that names any.
pub(super) async fn find(
    connection: &mut Connection,
    hashes: &[[u8; 16]],
) -> Result<Option<(SessionId, usize)>, Fault> {
    let select = "
        SELECT session.id, prefix.messages FROM longhaul.prefix
        JOIN longhaul.session ON session.n = prefix.session
        JOIN unnest($1::bytea[]) WITH ORDINALITY AS asked (hash, place) ON asked.hash = prefix.hash
        ORDER BY asked.place DESC LIMIT 1";
    let select = connection.statement(select).await?;
    for some in hashes.rchunks(AT_ONCE) {
        let some: Vec<&[u8]> = some.iter().map(|hash| &hash[..]).collect();
        if let Some(row) = connection.client.query_opt(&select, &[&some]).await? {
            let (id, messages): (Uuid, i32) = (row.try_get(0)?, row.try_get(1)?);
            let messages = usize::try_from(messages).unwrap_or_default();
            return Ok(Some((SessionId::from_bytes(id.into_bytes()), messages)));
        }
    }
    Ok(None)
}
