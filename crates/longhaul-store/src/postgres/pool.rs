//! The connections to a server. A call borrows one; a connection that failed is dropped, and the next call
//! makes a new one.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, NoTls, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::blocking::wait;
use crate::fault::Fault;
use crate::packing::{Packer, Unpacker};

/// So many connections one store has at most.
const CONNECTIONS: usize = 8;

/// How long a call waits for a connection that is free, and for other writers.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What every connection is told first. A commit is durable when it returns, unless the server asks for
/// more; who waits for a lock gives up in time; who stopped in the middle of a transaction lets go.
const SETTINGS: &str = "
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET jit = off";

/// Sends all statements before the first one is answered, in this order. Gives all answers, or the first
/// error.
macro_rules! all_at_once {
    ($($statement:expr),+ $(,)?) => {{
        let queue = $crate::postgres::pool::Queue::default();
        tokio::try_join!(biased; $(queue.in_turn(async { $statement.await })),+)
    }};
}
pub(super) use all_at_once;

/// Answers are taken in the order of their statements. They may arrive while others are being looked at: without an order the
/// first error would now and then be that of a later statement, which only says that something failed before it.
#[derive(Default)]
pub(super) struct Queue {
    sent: AtomicUsize,
    answered: AtomicUsize,
}

impl Queue {
    /// The answer of a statement, once those before it have theirs. Who joins several looks at all of them in their order
    /// whenever one has news, so nobody who waits here has to be woken.
    pub(super) async fn in_turn<T>(&self, statement: impl Future<Output = T>) -> T {
        let place = self.sent.fetch_add(1, Ordering::Relaxed);
        let answer = statement.await;
        poll_fn(|_| match self.answered.load(Ordering::Relaxed) == place {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        self.answered.store(place + 1, Ordering::Relaxed);
        answer
    }
}

/// A connection, with the statements that the server knows already.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) packer: Packer,
    pub(super) unpacker: Unpacker,
    statements: HashMap<String, Statement>,
}

impl Connection {
    /// A statement, which the server reads once for each connection.
    pub(super) async fn statement(&mut self, sql: &str) -> Result<Statement, Fault> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// The connections of a store.
pub(super) struct Pool {
    pub(super) address: Address,
    tls: Option<MakeRustlsConnect>,
    /// Drives the connections. `None` only while the pool is dropped.
    runtime: Option<Runtime>,
    connections: Mutex<Connections>,
    freed: Condvar,
}

#[derive(Default)]
struct Connections {
    /// Those that nobody uses at the moment.
    idle: Vec<Connection>,
    /// How many there are.
    open: usize,
}

impl Pool {
    pub(super) fn new(address: Address) -> Result<Self, Fault> {
        let tls = if address.may_use_tls() { Some(MakeRustlsConnect::new(tls()?)) } else { None };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("longhaul-store")
            .enable_io()
            .enable_time()
            .build()?;
        let connections = Mutex::default();
        Ok(Self { address, tls, runtime: Some(runtime), connections, freed: Condvar::new() })
    }

    /// Makes a call with a connection, and waits for it. If it fails, nothing of its transaction stays.
    pub(super) fn call<T>(
        &self,
        silence: Option<Duration>,
        run: impl AsyncFnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut lent = self.take(silence)?;
        let Some(connection) = &mut lent.connection else {
            return Err(Fault::Unavailable("the connection is gone".to_owned()));
        };
        // A connection whose answer is not waited for is not used again.
        let (done, is_sound) = wait(silence, async {
            let done = run(connection).await;
            let is_sound = done.is_ok() || connection.client.batch_execute("ROLLBACK").await.is_ok();
            (done, is_sound)
        })
        .ok_or_else(no_answer)?;
        lent.is_sound = is_sound;
        done
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for one call.
    fn take(&self, silence: Option<Duration>) -> Result<Lent<'_>, Fault> {
        let until = Instant::now() + silence.unwrap_or(PATIENCE);
        let mut connections = self.lock();
        loop {
            while let Some(connection) = connections.idle.pop() {
                if !connection.client.is_closed() {
                    return Ok(Lent { pool: self, connection: Some(connection), is_sound: false });
                }
                connections.open -= 1;
            }
            if connections.open < CONNECTIONS {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Fault::Busy);
            }
            connections =
                self.freed.wait_timeout(connections, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        connections.open += 1;
        drop(connections);
        // If connecting fails, its place is free again.
        let mut lent = Lent { pool: self, connection: None, is_sound: false };
        lent.connection = Some(self.connect(silence)?);
        Ok(lent)
    }

    fn connect(&self, silence: Option<Duration>) -> Result<Connection, Fault> {
        let client = match &self.tls {
            Some(tls) => self.connect_with(silence, tls.clone()),
            None => self.connect_with(silence, NoTls),
        }?;
        wait(silence, client.batch_execute(SETTINGS)).ok_or_else(no_answer)??;
        let (packer, unpacker) = (Packer::new()?, Unpacker::new()?);
        Ok(Connection { client, packer, unpacker, statements: HashMap::new() })
    }

    fn connect_with<T>(&self, silence: Option<Duration>, tls: T) -> Result<Client, Fault>
    where
        T: MakeTlsConnect<Socket> + Send + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let gone = || Fault::Unavailable("the store is closed".to_owned());
        let runtime = self.runtime.as_ref().ok_or_else(gone)?;
        let config = self.address.config().clone();
        let connecting = runtime.spawn(async move { config.connect(tls).await });
        let stop = connecting.abort_handle();
        // Some answers of the server are needed for it, of which nothing is heard here.
        let connected = wait(silence.map(|silence| silence * 2), connecting).ok_or_else(|| {
            stop.abort();
            no_answer()
        })?;
        let (client, connection) = connected.map_err(|_| gone())??;
        // It ends with the client, or with the server; who asks then is told.
        runtime.spawn(async move { connection.await.ok() });
        Ok(client)
    }
}

fn no_answer() -> Fault {
    Fault::Unavailable("the server does not answer in time".to_owned())
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A store may be dropped where nobody may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection that is used for a call.
struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// Whether the call came to an end and left no transaction open.
    is_sound: bool,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut connections = self.pool.lock();
        match self.connection.take() {
            Some(connection) if self.is_sound && !connection.client.is_closed() => {
                connections.idle.push(connection);
            }
            _ => connections.open -= 1,
        }
        self.pool.freed.notify_one();
    }
}

/// Certificates are checked as the system does it, whatever `sslmode` the URL says.
fn tls() -> Result<ClientConfig, Fault> {
    let wrong = |error: rustls::Error| {
        Fault::Unavailable(format!(
            "no certificates can be checked here ({error}); sslmode=disable in its URL goes without"
        ))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_platform_verifier()
        .map_err(wrong)?
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    #[test]
    fn the_first_error_is_that_of_the_first_statement() {
        let runtime = super::Builder::new_current_thread().build().unwrap();
        // The later answer is there before the first one was.
        let done: Result<((), ()), &str> = runtime.block_on(async {
            all_at_once!(
                async {
                    yield_now().await;
                    Err("a deadlock")
                },
                async { Err("something failed before") },
            )
        });
        assert_eq!(done, Err("a deadlock"));
        let done: Result<(u8, u8, u8), &str> = runtime.block_on(async {
            all_at_once!(
                async {
                    yield_now().await;
                    Ok(1)
                },
                async { Ok(2) },
                async {
                    yield_now().await;
                    yield_now().await;
                    Ok(3)
                },
            )
        });
        assert_eq!(done, Ok((1, 2, 3)));
    }
}
