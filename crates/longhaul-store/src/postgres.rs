//! A store in a schema of a Postgres database. Many programs on many machines may use it at the same time:
//! a session is locked while one of them writes to it, and content while somebody begins to hold it.

mod address;
mod appending;
mod blocking;
mod deleting;
mod faults;
mod forking;
mod indexing;
mod opening;
mod originals;
mod pool;
mod prefixes;
mod reading;
mod searching;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::Calibration;
use longhaul::{Archive, Handle, Snapshot, Time, Tokens};

use crate::background::{AtEnd, Background, Pace};
use crate::error::StoreError;
use crate::fault::Fault;
use crate::rows::Now;
use crate::store::{
    About, Alike, Filter, Hit, Holders, Meta, Patience, Pruned, Retention, SessionId, Store, Stored,
    UpstreamLimit, UpstreamRefusal,
};
use address::Address;
use appending::{text, uuid};
use pool::{Connection, PATIENCE, Pool};

pub(crate) use address::is_server;

/// A store in the schema `longhaul` of a Postgres database. A clone is the same store.
#[derive(Clone)]
pub struct PostgresStore {
    server: Arc<Server>,
    /// Indexes words, and lists originals, while nobody waits for it.
    indexing: Arc<Background>,
    /// Messages that this store has written since it last asked for them to be indexed.
    written: Arc<AtomicUsize>,
}

struct Server {
    pool: Pool,
    patience: Patience,
}

impl PostgresStore {
    /// Opens the store of a database, such as `postgres://user:password@host:5432/database`, or makes its
    /// tables if they are not there. They are in a schema of their own, `longhaul`; a schema of that name
    /// that is something else is left alone.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, Patience::Long)
    }

    /// The same, with calls that wait for the server as long as is said. Searching, deleting and indexing take as long as
    /// they take.
    pub fn open_with(url: &str, patience: Patience) -> Result<Self, StoreError> {
        let address = Address::of(url)?;
        let place = address.shown().to_owned();
        let pool = Pool::new(address).map_err(|fault| fault.at(&place))?;
        let server = Arc::new(Server { pool, patience });
        server.call_at_length(async |connection| opening::open(connection, &place).await)?;
        let indexed = server.clone();
        // What is not indexed now is indexed by the next search.
        let index = move |pace: &Pace| {
            while pace.goes_on() && indexed.call_at_length(indexing::index_some).unwrap_or(false) {}
            // What is not listed now is listed by the next process that opens the store, or by a recall.
            while pace.goes_on() && indexed.call_at_length(originals::list_some).unwrap_or(false) {}
        };
        let indexing = Arc::new(Background::new(AtEnd::Leave, index));
        if server.call_at_length(originals::any_unlisted)? {
            indexing.ask();
        }
        Ok(Self { server, indexing, written: Arc::default() })
    }

    /// The URL of the database, without its password and its options.
    pub fn place(&self) -> &str {
        self.server.place()
    }
}

impl Server {
    fn place(&self) -> &str {
        self.pool.address.shown()
    }

    /// Makes a call that others wait for. If another writer was in its way, it is made again.
    fn call<T>(&self, run: impl AsyncFnMut(&mut Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.call_within(self.patience.most(), run)
    }

    /// Makes a call that takes as long as it takes.
    fn call_at_length<T>(
        &self,
        run: impl AsyncFnMut(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.call_within(None, run)
    }

    /// Makes a call in which the server may be silent for so long.
    fn call_within<T>(
        &self,
        silence: Option<Duration>,
        mut run: impl AsyncFnMut(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let until = Instant::now() + silence.unwrap_or(PATIENCE);
        loop {
            match self.pool.call(silence, &mut run) {
                Err(Fault::Again) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                done => return done.map_err(|fault| fault.at(self.place())),
            }
        }
    }

    /// Indexes all words that wait.
    fn index(&self) -> Result<(), StoreError> {
        if self.call_at_length(indexing::any_waits)? {
            while self.call_at_length(indexing::index_some)? {}
        }
        Ok(())
    }
}

impl Store for PostgresStore {
    fn create_as(&self, id: SessionId, about: &About) -> Result<(), StoreError> {
        self.server.call(async |connection| appending::create(connection, id, about, Now::get()).await)
    }

    fn append(&self, id: SessionId, from: Cursor, entries: &[Entry]) -> Result<(), StoreError> {
        self.indexing.give_way();
        let new = self
            .server
            .call(async |connection| appending::append(connection, id, from, entries, Now::get()).await)?;
        if self.written.fetch_add(new, Ordering::Relaxed) + new >= indexing::BATCH {
            self.written.store(0, Ordering::Relaxed);
            self.indexing.ask();
        }
        Ok(())
    }

    fn load(&self, id: SessionId) -> Result<Stored, StoreError> {
        // Longer than others: a whole session is read.
        let silence = self.server.patience.most().map(|most| most * 2);
        self.server.call_within(silence, async |connection| reading::load(connection, id).await)
    }

    fn meta(&self, id: SessionId) -> Result<Meta, StoreError> {
        self.server.call(async |connection| reading::meta(connection, id).await)
    }

    fn since(&self, id: SessionId, from: Cursor) -> Result<Vec<Entry>, StoreError> {
        self.server.call(async |connection| reading::since(connection, id, from).await)
    }

    fn fork_as(&self, fork: SessionId, id: SessionId, at: Cursor) -> Result<(), StoreError> {
        self.server.call(async |connection| forking::fork(connection, fork, (id, at), Now::get()).await)
    }

    fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Meta>, StoreError> {
        self.server.call(async |connection| reading::list(connection, filter, limit).await)
    }

    fn search(&self, query: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>, StoreError> {
        // A store that cannot be written to at the moment is searched as far as it is indexed.
        self.server.index().ok();
        self.server
            .call_at_length(async |connection| searching::search(connection, query, filter, limit).await)
    }

    fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        self.server.call_at_length(async |connection| deleting::delete(connection, id).await)
    }

    fn prune(&self, retention: &Retention, most: usize) -> Result<Pruned, StoreError> {
        let mut pruned = Pruned::default();
        self.server.call_at_length(async |connection| {
            deleting::prune(connection, retention, most, &mut pruned).await
        })?;
        Ok(pruned)
    }

    fn used(&self) -> Result<u64, StoreError> {
        self.server.call_at_length(async |connection| deleting::used(connection).await)
    }

    fn keep_sizes(&self, id: SessionId, sizes: &[Snapshot]) -> Result<(), StoreError> {
        let json = serde_json::to_string(sizes).map_err(StoreError::Entry)?;
        self.server.call(async |connection| {
            let insert = "
                INSERT INTO longhaul.sizes (session, messages, packed)
                SELECT n, messages, $2 FROM longhaul.session WHERE id = $1 FOR KEY SHARE
                ON CONFLICT (session) DO UPDATE SET messages = excluded.messages, packed = excluded.packed";
            let insert = connection.statement(insert).await?;
            let packed = connection.packer.pack(&json)?;
            match connection.client.execute(&insert, &[&uuid(id), &packed]).await? {
                0 => Err(StoreError::NoSession(id).into()),
                _ => Ok(()),
            }
        })
    }

    fn keep_prefixes(&self, id: SessionId, first: usize, hashes: &[[u8; 16]]) -> Result<(), StoreError> {
        self.server.call(async |connection| prefixes::keep(connection, id, first, hashes).await)
    }

    fn find_prefix(&self, hashes: &[[u8; 16]]) -> Result<Option<Alike>, StoreError> {
        self.server.call(async |connection| prefixes::find(connection, hashes).await)
    }

    fn holders(&self, tenant: &str, handle: &str) -> Result<Option<Holders>, StoreError> {
        let find = || self.server.call(async |connection| originals::find(connection, tenant, handle).await);
        let list = || {
            self.server.call_at_length(async |connection| originals::list_newest(connection, tenant).await)
        };
        match find()? {
            // A store that cannot be written to at the moment is asked as far as it is listed.
            None if list().unwrap_or(false) => find(),
            found => Ok(found),
        }
    }

    fn keep_learnt(&self, model: &str, calibration: &Calibration) -> Result<(), StoreError> {
        let json = serde_json::to_string(calibration).map_err(StoreError::Entry)?;
        self.server.call(async |connection| {
            let insert = "
                INSERT INTO longhaul.learnt (model, calibration) VALUES ($1, $2)
                ON CONFLICT (model) DO UPDATE SET calibration = excluded.calibration";
            let insert = connection.statement(insert).await?;
            connection.client.execute(&insert, &[&text(model), &json]).await?;
            Ok(())
        })
    }

    fn learnt(&self, model: &str) -> Result<Option<Calibration>, StoreError> {
        self.server.call(async |connection| {
            let select = "SELECT calibration FROM longhaul.learnt WHERE model = $1";
            let select = connection.statement(select).await?;
            let row = connection.client.query_opt(&select, &[&text(model)]).await?;
            let json: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
            // A form of another version: it is learnt again.
            Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
        })
    }

    fn keep_limit(&self, limit: &UpstreamLimit) -> Result<(), StoreError> {
        let window = i64::try_from(limit.window.0).unwrap_or(i64::MAX);
        self.server.call(async |connection| {
            let insert = "
                INSERT INTO longhaul.upstream_limit (upstream, model, tokens, learnt) VALUES ($1, $2, $3, $4)
                ON CONFLICT (upstream, model) DO UPDATE SET tokens = excluded.tokens, learnt = excluded.learnt";
            let insert = connection.statement(insert).await?;
            let (upstream, model) = (text(&limit.upstream), text(&limit.model));
            connection.client.execute(&insert, &[&upstream, &model, &window, &limit.learnt.0]).await?;
            Ok(())
        })
    }

    fn limits(&self) -> Result<Vec<UpstreamLimit>, StoreError> {
        self.server.call(async |connection| {
            let select = "SELECT upstream, model, tokens, learnt FROM longhaul.upstream_limit";
            let select = connection.statement(select).await?;
            let rows = connection.client.query(&select, &[]).await?;
            let limit = |row: &tokio_postgres::Row| {
                let (upstream, model): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                let window: i64 = row.try_get(2)?;
                let window = Tokens(u64::try_from(window).unwrap_or(0));
                let learnt = Time(row.try_get(3)?);
                Ok(UpstreamLimit { upstream: upstream.into(), model: model.into(), window, learnt })
            };
            rows.iter().map(limit).collect()
        })
    }

    fn keep_refusal(&self, refusal: &UpstreamRefusal) -> Result<(), StoreError> {
        self.server.call(async |connection| {
            let insert = "
                INSERT INTO longhaul.upstream_refusal (upstream, model, form, says, learnt)
                VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (upstream, model, form) DO UPDATE SET says = excluded.says, learnt = excluded.learnt";
            let insert = connection.statement(insert).await?;
            let UpstreamRefusal { upstream, model, form, says, learnt } = refusal;
            let [upstream, model, form, says] = [upstream, model, form, says].map(|field| text(field));
            connection.client.execute(&insert, &[&upstream, &model, &form, &says, &learnt.0]).await?;
            Ok(())
        })
    }

    fn refusals(&self) -> Result<Vec<UpstreamRefusal>, StoreError> {
        self.server.call(async |connection| {
            let select = "SELECT upstream, model, form, says, learnt FROM longhaul.upstream_refusal";
            let select = connection.statement(select).await?;
            let rows = connection.client.query(&select, &[]).await?;
            let refusal = |row: &tokio_postgres::Row| {
                let field = |at: usize| row.try_get::<_, String>(at).map(Box::from);
                let (upstream, model, form) = (field(0)?, field(1)?, field(2)?);
                let learnt = Time(row.try_get(4)?);
                Ok(UpstreamRefusal { upstream, model, form, says: field(3)?, learnt })
            };
            rows.iter().map(refusal).collect()
        })
    }

    fn archive(&self, id: SessionId) -> Result<Arc<dyn Archive>, StoreError> {
        let session = self.server.call(async |connection| appending::place_of(connection, id).await)?;
        Ok(Arc::new(Texts { server: self.server.clone(), session }))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.place()).finish()
    }
}

/// The texts that a session keeps apart from its entries.
struct Texts {
    server: Arc<Server>,
    /// The number of the session.
    session: i64,
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Texts").field(&self.server.place()).field(&self.session).finish()
    }
}

impl Archive for Texts {
    fn get(&self, handle: Handle) -> Option<String> {
        let read =
            self.server.call(async |connection| reading::text_apart(connection, self.session, handle).await);
        read.ok().flatten()
    }

    fn find(&self, start: &str) -> Option<Handle> {
        let read = self
            .server
            .call(async |connection| reading::handle_starting(connection, self.session, start).await);
        read.ok().flatten()
    }
}
