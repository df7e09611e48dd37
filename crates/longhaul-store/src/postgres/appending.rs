//! Writing: sessions, entries and the content that they hold. An append asks the server twice: what is there,
//! and then everything that is new with the commit behind it.

use std::borrow::Cow;
use std::collections::HashMap;

use longhaul::Handle;
use longhaul::session::journal::{Cursor, Entry};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::originals;
use super::pool::{Connection, all_at_once};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::originals::named_by;
use crate::packing::Packer;
use crate::rows::{Apart, Body, EntryRow, Kind, Now, Sum, bytes_of, title_of};
use crate::store::{About, SessionId};

/// How a transaction begins that writes. Each of its statements sees what was committed before it, which
/// the rules for locks build on.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '10s'";

/// The session is locked: from here on statements take as long as they take. A limit for locks alone would
/// not do, for who stands in a queue waits for several.
pub(super) const LOCKED: &str = "SET LOCAL statement_timeout TO DEFAULT";

/// A session, locked until the end of the transaction: nobody appends to it, forks or deletes it.
pub(super) const LOCK_SESSION: &str = "SELECT n, entries FROM longhaul.session WHERE id = $1 FOR UPDATE";

/// Texts that are there already, locked so that nobody deletes them before we hold them. Locks on content
/// are taken in the order of its numbers, by all.
const REUSE: &str = "SELECT hash, id FROM longhaul.content WHERE hash = ANY($1) ORDER BY id FOR KEY SHARE";

/// Texts that entries name. A session of the same tenant must hold them: whoever knows the handle of
/// another's text does not get the text.
const HELD: &str = "
    SELECT content.hash, content.id FROM longhaul.content WHERE content.hash = ANY($1) AND EXISTS (
        SELECT FROM longhaul.entry JOIN longhaul.session ON session.n = entry.session
        WHERE entry.apart = content.id
        AND session.tenant = (SELECT tenant FROM longhaul.session WHERE id = $2))
    ORDER BY content.id FOR KEY SHARE OF content";

const NUMBERS: &str = "SELECT nextval('longhaul.content_number') FROM generate_series(1, $1::bigint)";

const INSERT_CONTENT: &str = "
    INSERT INTO longhaul.content (id, hash, packed) SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])";

const INSERT_WAITING: &str = "INSERT INTO longhaul.waiting SELECT unnest($1::bigint[])";

const INSERT_ENTRIES: &str = "
    INSERT INTO longhaul.entry (session, seq, kind, bytes, packed, content, apart)
    SELECT $1, * FROM unnest($2::integer[], $3::smallint[], $4::integer[], $5::bytea[], $6::bigint[], $7::bigint[])";

const ADD_SUM: &str = "
    UPDATE longhaul.session SET listed = CASE listed WHEN entries THEN listed + $2 ELSE listed END,
        entries = entries + $2, messages = messages + $3, calls = calls + $4,
        bytes = bytes + $5, updated = greatest(updated, $6), model = coalesce($7, model),
        title = CASE title WHEN '' THEN coalesce($8, '') ELSE title END
    WHERE n = $1";

pub(super) async fn create(
    connection: &mut Connection,
    id: SessionId,
    about: &About,
    now: Now,
) -> Result<(), Fault> {
    let insert = "
        INSERT INTO longhaul.session
            (id, tenant, agent, project, title, model, created, updated, entries, messages, calls, bytes,
             without_content)
        VALUES ($1, $2, $3, $4, $5, '', $6, $6, 0, 0, 0, 0, $7) ON CONFLICT (id) DO NOTHING";
    let insert = connection.statement(insert).await?;
    let title = about.title.as_deref().map(title_of).unwrap_or_default();
    let (tenant, agent, project, title) =
        (text(&about.tenant), text(&about.agent), text(&about.project), text(&title));
    let row: [&(dyn ToSql + Sync); 7] =
        [&uuid(id), &tenant, &agent, &project, &title, &now.0, &about.without_content];
    connection.client.execute(&insert, &row).await?;
    Ok(())
}

/// The id of a session as the server takes it.
pub(super) fn uuid(id: SessionId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

/// A text as the server takes it: it knows no character of number zero.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

/// A count as it stands in a row.
pub(super) fn count<T: TryFrom<usize>>(count: usize) -> Result<T, Fault> {
    T::try_from(count).map_err(|_| Fault::Unavailable("a journal is too long".to_owned()))
}

/// Appends entries. Says how many messages are new to the index.
pub(super) async fn append(
    connection: &mut Connection,
    id: SessionId,
    from: Cursor,
    entries: &[Entry],
    now: Now,
) -> Result<usize, Fault> {
    let rows = entries.iter().map(EntryRow::of).collect::<Result<Vec<_>, _>>()?;
    let mut sum = Sum::default();
    entries.iter().zip(&rows).for_each(|(entry, row)| sum.add(entry, row.json.len()));
    let (session, mut content) = look(connection, id, from, &rows).await?;
    let mut new = Rows::default();
    for (at, row) in rows.iter().enumerate() {
        let apart = match &row.apart {
            Some(Apart::Text(handle, text)) => {
                Some(content.hold(&mut connection.packer, Some(*handle), text, Kind::Other)?)
            }
            Some(Apart::Held(handle)) => Some(content.held(*handle)?),
            None => None,
        };
        let (packed, held) = match row.body {
            Body::Row => (Some(connection.packer.pack(&row.json)?), None),
            Body::Content(handle) => {
                (None, Some(content.hold(&mut connection.packer, handle, &row.json, row.kind)?))
            }
        };
        let seq = count(from.0 + at)?;
        for handle in entries.get(at).map(named_by).unwrap_or_default() {
            new.named.push(bytes_of(handle));
            new.named_by.push(seq);
        }
        new.seq.push(seq);
        new.kind.push(row.kind.number());
        new.bytes.push(count(row.json.len())?);
        new.packed.push(packed);
        new.content.push(held);
        new.apart.push(apart);
    }
    write(connection, session, &new, &content.new, &sum, now).await?;
    Ok(content.new.waiting.len())
}

/// Begins the transaction, and looks at what is there.
async fn look(
    connection: &mut Connection,
    id: SessionId,
    from: Cursor,
    rows: &[EntryRow],
) -> Result<(i64, Content), Fault> {
    let (mut hashes, mut named, mut numbers) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        match &row.apart {
            Some(Apart::Text(handle, _)) => hashes.push(bytes_of(*handle)),
            Some(Apart::Held(handle)) => named.push(bytes_of(*handle)),
            None => {}
        }
        match row.body {
            Body::Content(Some(handle)) => hashes.push(bytes_of(handle)),
            Body::Content(None) => numbers += 1,
            Body::Row => {}
        }
    }
    numbers += hashes.len();
    let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 16]>::as_slice).collect();
    let named: Vec<&[u8]> = named.iter().map(<[u8; 16]>::as_slice).collect();
    let (lock, reuse, held, next) = (
        connection.statement(LOCK_SESSION).await?,
        connection.statement(REUSE).await?,
        connection.statement(HELD).await?,
        connection.statement(NUMBERS).await?,
    );
    let (id_there, numbers) = (uuid(id), count::<i64>(numbers)?);
    let client = &connection.client;
    let (_, session, _, known, named, numbers) = all_at_once!(
        client.batch_execute(BEGIN),
        client.query_opt(&lock, &[&id_there]),
        client.batch_execute(LOCKED),
        client.query(&reuse, &[&hashes]),
        client.query(&held, &[&named, &id_there]),
        client.query(&next, &[&numbers]),
    )?;
    let session = session.ok_or(StoreError::NoSession(id))?;
    let stored = Cursor(usize::try_from(session.try_get::<_, i32>(1)?).unwrap_or_default());
    if stored != from {
        return Err(StoreError::Conflict { session: id, from, stored }.into());
    }
    let by_hash = |rows: &[tokio_postgres::Row]| {
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<HashMap<_, _>, Fault>>()
    };
    let mut numbers = numbers.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    // The next number is the last one.
    numbers.reverse();
    let content =
        Content { known: by_hash(&known)?, named: by_hash(&named)?, numbers, new: NewContent::default() };
    Ok((session.try_get(0)?, content))
}

/// The content that entries of an append hold.
struct Content {
    /// Texts by their hashes: those that were there, and those that are new.
    known: HashMap<Vec<u8>, i64>,
    /// Texts that entries name.
    named: HashMap<Vec<u8>, i64>,
    /// Numbers for what is new.
    numbers: Vec<i64>,
    new: NewContent,
}

#[derive(Default)]
struct NewContent {
    rows: Vec<(Option<Vec<u8>>, i64, Vec<u8>)>,
    /// Messages that are to be looked at for words.
    waiting: Vec<i64>,
}

impl Content {
    /// Keeps a text once, if it is known by a handle. Says which content it is.
    fn hold(
        &mut self,
        packer: &mut Packer,
        handle: Option<Handle>,
        text: &str,
        kind: Kind,
    ) -> Result<i64, Fault> {
        let hash = handle.map(|handle| bytes_of(handle).to_vec());
        if let Some(known) = hash.as_ref().and_then(|hash| self.known.get(hash)) {
            return Ok(*known);
        }
        let number = self.numbers.pop();
        let number = number.ok_or_else(|| Fault::Damaged("the server gave too few numbers".to_owned()))?;
        if let Some(hash) = &hash {
            self.known.insert(hash.clone(), number);
        }
        if kind == Kind::Message {
            self.new.waiting.push(number);
        }
        self.new.rows.push((hash, number, packer.pack(text)?));
        Ok(number)
    }

    /// The text that an entry names: it was stored before, or by an entry before this one.
    fn held(&self, handle: Handle) -> Result<i64, Fault> {
        let hash = bytes_of(handle);
        let is_new = |number: &&i64| self.new.rows.iter().any(|(_, new, _)| new == *number);
        let held = self.named.get(hash.as_slice());
        let held = held.or_else(|| self.known.get(hash.as_slice()).filter(is_new));
        held.copied().ok_or_else(|| StoreError::LostText(handle).into())
    }
}

/// New rows of entries, by column.
#[derive(Default)]
struct Rows {
    seq: Vec<i32>,
    kind: Vec<i16>,
    bytes: Vec<i32>,
    packed: Vec<Option<Vec<u8>>>,
    content: Vec<Option<i64>>,
    apart: Vec<Option<i64>>,
    /// Handles of originals, and the entries that name them.
    named: Vec<[u8; 16]>,
    named_by: Vec<i32>,
}

/// Writes everything that is new, and commits.
async fn write(
    connection: &mut Connection,
    session: i64,
    rows: &Rows,
    content: &NewContent,
    sum: &Sum<'_>,
    now: Now,
) -> Result<(), Fault> {
    let (insert_content, insert_waiting, insert_entries, keep_originals, add_sum) = (
        connection.statement(INSERT_CONTENT).await?,
        connection.statement(INSERT_WAITING).await?,
        connection.statement(INSERT_ENTRIES).await?,
        connection.statement(originals::KEEP).await?,
        connection.statement(ADD_SUM).await?,
    );
    // Two writers of the same texts wait for each other in one order.
    let mut sorted: Vec<_> = content.rows.iter().collect();
    sorted.sort_unstable_by_key(|(hash, number, _)| (hash, *number));
    let ids: Vec<i64> = sorted.iter().map(|(_, number, _)| *number).collect();
    let hashes: Vec<Option<&[u8]>> = sorted.iter().map(|(hash, ..)| hash.as_deref()).collect();
    let packed: Vec<&[u8]> = sorted.iter().map(|(.., packed)| packed.as_slice()).collect();
    let (entries, messages, calls, bytes) = (
        count::<i32>(sum.entries)?,
        count::<i64>(sum.messages)?,
        count::<i64>(sum.calls)?,
        count::<i64>(sum.bytes)?,
    );
    let named: Vec<&[u8]> = rows.named.iter().map(<[u8; 16]>::as_slice).collect();
    let (model, title) = (sum.model.map(text), sum.title.as_deref().map(text));
    let client = &connection.client;
    // If one fails, the commit is none.
    all_at_once!(
        client.execute(&insert_content, &[&ids, &hashes, &packed]),
        client.execute(&insert_waiting, &[&content.waiting]),
        client.execute(
            &insert_entries,
            &[&session, &rows.seq, &rows.kind, &rows.bytes, &rows.packed, &rows.content, &rows.apart],
        ),
        client.execute(&keep_originals, &[&session, &named, &rows.named_by]),
        client.execute(&add_sum, &[&session, &entries, &messages, &calls, &bytes, &now.0, &model, &title],),
        client.batch_execute("COMMIT"),
    )?;
    Ok(())
}

/// The number of a session.
pub(super) async fn place_of(connection: &mut Connection, id: SessionId) -> Result<i64, Fault> {
    let select = connection.statement("SELECT n FROM longhaul.session WHERE id = $1").await?;
    let row = connection.client.query_opt(&select, &[&uuid(id)]).await?;
    Ok(row.ok_or(StoreError::NoSession(id))?.try_get(0)?)
}
