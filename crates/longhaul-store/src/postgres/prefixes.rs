//! By which conversations a session is found.

use super::appending::{count, uuid};
use super::pool::Connection;
use super::reading::{meta_of, meta_where};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::store::{Alike, SessionId};

/// So many hashes are asked for at once.
const AT_ONCE: usize = 256;

/// Names a session by hashes of its first messages, more of them with each hash. `first` messages are named
/// already.
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
            ON CONFLICT (hash, session) DO NOTHING
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

/// The last of some hashes that names any session, and of how many messages it is.
const LAST_KNOWN: &str = "
    SELECT asked.hash, (SELECT messages FROM longhaul.prefix WHERE prefix.hash = asked.hash LIMIT 1)
    FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (hash, place)
    WHERE EXISTS (SELECT FROM longhaul.prefix WHERE prefix.hash = asked.hash)
    ORDER BY asked.place DESC LIMIT 1";

/// The sessions that the last of these hashes names that names any.
pub(super) async fn find(connection: &mut Connection, hashes: &[[u8; 16]]) -> Result<Option<Alike>, Fault> {
    let last_known = connection.statement(LAST_KNOWN).await?;
    let named = meta_where(
        "n IN (SELECT session FROM longhaul.prefix WHERE hash = $1 ORDER BY session DESC LIMIT $2)
         ORDER BY updated DESC, n DESC LIMIT $3",
    );
    let named = connection.statement(&named).await?;
    for some in hashes.rchunks(AT_ONCE) {
        let some: Vec<&[u8]> = some.iter().map(|hash| &hash[..]).collect();
        let Some(row) = connection.client.query_opt(&last_known, &[&some]).await? else { continue };
        let (hash, messages): (&[u8], i32) = (row.try_get(0)?, row.try_get(1)?);
        let (looked_at, given) = (count::<i64>(Alike::LOOKED_AT)?, count::<i64>(Alike::GIVEN)?);
        let rows = connection.client.query(&named, &[&hash, &looked_at, &given]).await?;
        let sessions = rows.iter().map(meta_of).collect::<Result<_, _>>()?;
        return Ok(Some(Alike { messages: usize::try_from(messages).unwrap_or_default(), sessions }));
    }
    Ok(None)
}
