//! Connections: taken, served, and ended in good order.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use longhaul_store::StoreError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::desk::Desk;
use crate::door::Door;
use crate::engine::{Decide, Engine};
use crate::exchange::{self, Shared};
use crate::figures::{Counters, Figures};
use crate::settings::Settings;
use crate::upstream::Upstream;

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Others could use it.
    #[error("{0} can be reached from other machines: set a token, or listen on 127.0.0.1")]
    NoToken(SocketAddr),
    /// A token that everybody knows.
    #[error("the token is empty")]
    EmptyToken,
    /// The address cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// A provider cannot be asked.
    #[error("{0}")]
    Upstream(String),
    /// Sessions cannot be stored.
    #[error("the store cannot be opened: {0}")]
    Store(#[from] StoreError),
    /// There are no threads.
    #[error("threads cannot be started: {0}")]
    Threads(#[source] io::Error),
}

/// A gateway that runs. When this is dropped, all connections end at once.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    engine: StopEngine,
    counters: Arc<Counters>,
    stop: watch::Sender<bool>,
    accepting: AbortOnDrop,
}

/// Starts a gateway. It serves when this returns.
pub async fn start(settings: Settings) -> Result<Gateway, GatewayError> {
    check(&settings)?;
    let desk = settings.desk.clone();
    let opened = tokio::task::spawn_blocking(move || Desk::open(desk)).await;
    let desk = opened.map_err(|error| GatewayError::Threads(io::Error::other(error)))??;
    start_with(settings, Arc::new(desk)).await
}

/// Starts a gateway with a desk of one's own.
#[doc(hidden)]
pub async fn start_with(settings: Settings, desk: Arc<dyn Decide>) -> Result<Gateway, GatewayError> {
    check(&settings)?;
    let Settings { listen, anthropic, openai, others, token, desk: _, limits } = settings;
    let upstream = Upstream::new([&anthropic, &openai], &others, limits.connect)
        .map_err(|error| GatewayError::Upstream(error.to_string()))?;
    let cannot = |error| GatewayError::Listen(listen, error);
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let engine = Engine::start(desk, limits.threads, limits.decide).map_err(GatewayError::Threads)?;
    let counters = Arc::new(Counters::default());
    let shared = Arc::new(Shared {
        door: Door::new(address, token.as_ref()),
        engine: engine.clone(),
        upstream,
        counters: counters.clone(),
        unpacking: Semaphore::new(limits.threads.max(1)),
        no_usage: AtomicBool::new(false),
        limits,
    });
    let stop = watch::Sender::new(false);
    let accepting = AbortOnDrop(Some(tokio::spawn(accept(listener, shared, stop.subscribe()))));
    Ok(Gateway { address, engine: StopEngine(engine), counters, stop, accepting })
}

fn check(settings: &Settings) -> Result<(), GatewayError> {
    match &settings.token {
        Some(token) if token.is_empty() => Err(GatewayError::EmptyToken),
        None if !settings.listen.ip().is_loopback() => Err(GatewayError::NoToken(settings.listen)),
        Some(_) | None => Ok(()),
    }
}

impl Gateway {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has counted.
    pub fn figures(&self) -> Figures {
        self.counters.figures()
    }

    /// Stops: no new connections and no new requests; answers on their way may end, but not for ever. Waits
    /// until the desk has heard of all of them.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(accepting) = self.accepting.0.take() {
            _ = accepting.await;
        }
        let engine = self.engine.0.clone();
        let (tell, told) = oneshot::channel();
        // A desk that hangs is left behind; the runtime would wait for a thread of its own.
        let waits = std::thread::Builder::new().spawn(move || {
            engine.stop();
            _ = tell.send(());
        });
        if waits.is_ok() {
            _ = timeout(MOST_OF_AN_END, told).await;
        }
    }
}

/// The desk is not waited for any longer when the gateway stops.
const MOST_OF_AN_END: Duration = Duration::from_secs(10);

struct StopEngine(Engine);

impl std::fmt::Debug for StopEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

#[derive(Debug)]
struct AbortOnDrop(Option<JoinHandle<()>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Takes connections until the gateway stops.
async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    /// So long nothing is taken after it failed: as a rule there are too many open files.
    const PAUSE: Duration = Duration::from_millis(100);
    let places = Arc::new(Semaphore::new(shared.limits.connections.max(1)));
    let mut served = JoinSet::new();
    let stopped = stop.clone();
    loop {
        tokio::select! {
            () = stops(&mut stop) => break,
            Some(_) = served.join_next() => {}
            next = next_connection(&listener, &places) => match next {
                Ok((stream, place)) => _ = served.spawn(connection(stream, place, shared.clone(), stopped.clone())),
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    let all = async { while served.join_next().await.is_some() {} };
    if timeout(shared.limits.stop, all).await.is_err() {
        served.shutdown().await;
    }
}

/// Waits until the gateway stops, or is gone.
async fn stops(stop: &mut watch::Receiver<bool>) {
    _ = stop.wait_for(|stop| *stop).await;
}

/// The next connection, when there is a place for it.
async fn next_connection(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Each event goes out at once. Where that cannot be had, it goes out a little later.
    _ = stream.set_nodelay(true);
    Ok((stream, place))
}

async fn connection(
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.header_read_timeout(shared.limits.head_wait);
    http.max_header_size(shared.limits.head_bytes);
    let service = service_fn(|request| {
        let shared = shared.clone();
        async { Ok::<_, Infallible>(exchange::serve(shared, request).await) }
    });
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // How a connection ended is known to whoever waits for its answer.
        _ = served.as_mut() => return,
        () = stops(&mut stop) => served.as_mut().graceful_shutdown(),
    }
    _ = served.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding 20 of the trial: without it small writes wait for an acknowledgement.
    #[tokio::test]
    async fn small_writes_to_clients_do_not_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _place) = next_connection(&listener, &Arc::new(Semaphore::new(1))).await.unwrap();
        assert!(stream.nodelay().unwrap());
        drop(client);
    }
}
