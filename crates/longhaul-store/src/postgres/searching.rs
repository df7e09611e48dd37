//! Search: the index says which content has the words, its text says whether they stand as they were asked for.

use longhaul::session::journal::Cursor;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::appending::{count, text};
use super::pool::Connection;
use crate::fault::Fault;
use crate::finding::{HOLDERS, Hits, LOOKED_AT};
use crate::store::{Filter, Hit, SessionId};
use crate::words::Query;

/// So many messages the first question asks for; each question behind it asks for four times as many.
const FIRST: usize = 64;

/// The newest messages before one that have the words; of each the newest entry that holds it in a session
/// that is looked for. A message that no such session holds has no entry, no session and no text.
const SELECT: &str = "
    SELECT found.content, holder.seq, holder.id, holder.title, content.packed
    FROM (
        SELECT content FROM longhaul.words WHERE words @@ $1::text::tsquery AND content < $2
        ORDER BY content DESC LIMIT $3
    ) AS found
    LEFT JOIN LATERAL (
        SELECT newest.seq, session.id, session.title FROM (
            SELECT session, seq FROM longhaul.entry WHERE entry.content = found.content
            ORDER BY session DESC, seq DESC LIMIT $4
        ) AS newest JOIN longhaul.session ON session.n = newest.session
        WHERE ($5::text IS NULL OR session.tenant = $5) AND ($6::text IS NULL OR session.agent = $6)
        AND ($7::text IS NULL OR session.project = $7) AND session.updated >= $8
        ORDER BY newest.session DESC, newest.seq DESC LIMIT 1
    ) AS holder ON true
    LEFT JOIN longhaul.content ON content.id = found.content AND holder.id IS NOT NULL
    ORDER BY found.content DESC";

pub(super) async fn search(
    connection: &mut Connection,
    query: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let Some(mut hits) = Hits::of(query, limit) else { return Ok(Vec::new()) };
    let words = expression(&hits.query);
    let since = filter.updated_since.map_or(i64::MIN, |time| time.0);
    let [tenant, agent, project] =
        [&filter.tenant, &filter.agent, &filter.project].map(|wanted| wanted.as_deref().map(text));
    let holders: i64 = count(HOLDERS)?;
    let (mut before, mut left, mut next) = (i64::MAX, LOOKED_AT, FIRST);
    while left > 0 && !hits.is_full() {
        let asked = next.min(left);
        // Not a statement that the server knows already: it looks at the words to choose between the index of
        // words and the newest messages one by one, and one of the two is far slower.
        let rows = connection
            .client
            .query_typed(
                SELECT,
                &[
                    (&words, Type::TEXT),
                    (&before, Type::INT8),
                    (&count::<i64>(asked)?, Type::INT8),
                    (&holders, Type::INT8),
                    (&tenant, Type::TEXT),
                    (&agent, Type::TEXT),
                    (&project, Type::TEXT),
                    (&since, Type::INT8),
                ],
            )
            .await?;
        for row in &rows {
            before = row.try_get(0)?;
            let (Some(session), Some(packed)) =
                (row.try_get::<_, Option<Uuid>>(2)?, row.try_get::<_, Option<&[u8]>>(4)?)
            else {
                continue;
            };
            let at = Cursor(usize::try_from(row.try_get::<_, i32>(1)?).unwrap_or_default());
            let session = SessionId::from_bytes(session.into_bytes());
            hits.offer(&mut connection.unpacker, (session, row.try_get(3)?), at, packed)?;
        }
        if rows.len() < asked {
            break;
        }
        (left, next) = (left - asked, next * 4);
    }
    Ok(hits.into_found())
}

/// The query as the index takes it: all words, each in quotes. They are letters and digits.
fn expression(query: &Query) -> String {
    let star = |is_start: bool| if is_start { ":*" } else { "" };
    let words = query.words().iter().map(|(word, is_start)| format!("'{word}'{}", star(*is_start)));
    words.collect::<Vec<_>>().join(" & ")
}
