//! Connections: taken, served, and ended in good order.

use std::convert::Infallible;
use std::fmt;
use std::hash::RandomState;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use longhaul_inspector::access::Access;
use longhaul_store::StoreError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::connections::{Connection, Connections};
use crate::desk::{Desk, DeskSettings};
use crate::door::Door;
use crate::engine::{Decide, Engine};
use crate::exchange::{Changing, Shared};
use crate::figures::{Counters, Figures};
use crate::origin::{self, Origins};
use crate::settings::{Limits, Open, Settings};
use crate::upkeep;
use crate::upstream::Upstream;

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Others could use it.
    #[error("{0} can be reached from other machines: set a token (`--token`), or listen on 127.0.0.1")]
    NoToken(SocketAddr),
    /// Others could use it without the token.
    #[error("{0} can be reached from other machines: there nothing is open without the token (`--no-token`)")]
    OpenToOthers(SocketAddr),
    /// Nobody could use it.
    #[error("{0} would let nobody in: set a token, or what is open without one")]
    Closed(SocketAddr),
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
    /// The system has no random numbers.
    #[error("there are no random numbers: {0}")]
    Random(String),
    /// There are no threads.
    #[error("threads cannot be started: {0}")]
    Threads(#[source] io::Error),
}

/// A gateway that runs. When this is dropped, all connections end at once.
pub struct Gateway {
    address: SocketAddr,
    /// What it goes by.
    settings: Mutex<Settings>,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    stop: watch::Sender<bool>,
    /// Told when settings have changed.
    changed: Arc<Notify>,
    accepting: AbortOnDrop,
    upkeep: AbortOnDrop,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gateway").field(&self.address).finish()
    }
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
    let Settings { listen, anthropic, openai, others, token, open, origins, limits, .. } = settings.clone();
    let observe = settings.desk.observe;
    let upstream = Upstream::new([&anthropic, &openai], &others, limits.connect)
        .map_err(|error| GatewayError::Upstream(error.to_string()))?;
    let cannot = |error| GatewayError::Listen(listen, error);
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let access = match (token.clone(), open) {
        (None, Open::Everything) => Access::open(),
        (token, _) => Access::with_token(move |text| token.as_ref().is_some_and(|token| token.is(text))),
    };
    let access = access.map_err(|error| GatewayError::Random(error.to_string()))?;
    let counters = Arc::new(Counters::new(desk.books()));
    let inspector = desk.clone().inspector(access).map(Arc::new);
    let engine = Engine::start(desk, limits.threads, limits.decide).map_err(GatewayError::Threads)?;
    let shared = Arc::new(Shared {
        door: Door::new(address, token, open, observe),
        origins: Origins::new(&origins),
        observes: observe,
        engine: engine.clone(),
        upstream,
        inspector,
        counters: counters.clone(),
        unpacking: Semaphore::new(limits.threads.max(1)),
        accounts: RandomState::new(),
        no_usage: AtomicBool::new(false),
        changing: RwLock::new(Arc::new(Changing::new(limits))),
    });
    let stop = watch::Sender::new(false);
    let accepting = AbortOnDrop(Some(tokio::spawn(accept(listener, shared.clone(), stop.subscribe()))));
    let changed = Arc::new(Notify::new());
    let upkeep = upkeep::keep_up(engine.clone(), counters.clone(), changed.clone());
    let upkeep = AbortOnDrop(Some(tokio::spawn(upkeep)));
    let settings = Mutex::new(settings);
    Ok(Gateway { address, settings, shared, counters, stop, changed, accepting, upkeep })
}

fn check(settings: &Settings) -> Result<(), GatewayError> {
    let Settings { listen, token, open, .. } = settings;
    let is_loopback = listen.ip().is_loopback();
    match (token, open) {
        (Some(token), _) if token.is_empty() => Err(GatewayError::EmptyToken),
        (None, _) if !is_loopback => Err(GatewayError::NoToken(*listen)),
        (Some(_), Open::Apis) if !is_loopback => Err(GatewayError::OpenToOthers(*listen)),
        (None, Open::Nothing) => Err(GatewayError::Closed(*listen)),
        _ => Ok(()),
    }
}

impl Gateway {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Goes by other settings from the next request on: the profile, the window, who writes summaries, what is kept,
    /// and most limits. Gives the names of those that it cannot change while it runs, and that are others now.
    pub fn change(&self, new: Settings) -> Vec<&'static str> {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let fixed = settings.fixed_that_differ(&new);
        // What cannot change stays what it was.
        let DeskSettings { store, without_content, observe, .. } = settings.desk.clone();
        let desk = DeskSettings { store, without_content, observe, ..new.desk };
        let Limits { connections, threads, connect, .. } = settings.limits;
        let limits = Limits { connections, threads, connect, ..new.limits };
        (settings.desk, settings.limits) = (desk.clone(), limits.clone());
        self.shared.engine.set_deadline(limits.decide);
        self.shared.engine.change(desk);
        *self.shared.changing.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Changing::new(limits));
        self.changed.notify_one();
        fixed
    }

    /// What it has counted.
    pub fn figures(&self) -> Figures {
        self.counters.figures()
    }

    /// Stops: no new connections and no new requests; answers on their way may end, but not for ever. Waits
    /// until the desk has heard of all of them. Gives all that it has counted.
    pub async fn stop(mut self) -> Figures {
        self.stop.send_replace(true);
        // A page that is open would be waited for.
        self.shared.inspector.iter().for_each(|inspector| inspector.stop());
        if let Some(accepting) = self.accepting.0.take() {
            _ = accepting.await;
        }
        drop(self.upkeep);
        let engine = self.shared.engine.clone();
        let (tell, told) = oneshot::channel();
        // A desk that hangs is left behind; the runtime would wait for a thread of its own.
        let waits = std::thread::Builder::new().spawn(move || {
            engine.stop();
            _ = tell.send(());
        });
        if waits.is_ok() {
            _ = timeout(MOST_OF_AN_END, told).await;
        }
        self.counters.figures()
    }
}

/// The desk is not waited for any longer when the gateway stops.
const MOST_OF_AN_END: Duration = Duration::from_secs(10);

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
    let connections = Connections::new(shared.changing().limits.connections);
    let mut served = JoinSet::new();
    let stopped = stop.clone();
    loop {
        tokio::select! {
            () = stops(&mut stop) => break,
            Some(_) = served.join_next() => {}
            next = next_connection(&listener) => match next {
                Ok((stream, peer)) => {
                    let own = connections.come(peer);
                    served.spawn(connection(stream, own, shared.clone(), stopped.clone()));
                }
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    let all = async { while served.join_next().await.is_some() {} };
    if timeout(shared.changing().limits.stop, all).await.is_err() {
        served.shutdown().await;
    }
}

/// Waits until the gateway stops, or is gone.
async fn stops(stop: &mut watch::Receiver<bool>) {
    _ = stop.wait_for(|stop| *stop).await;
}

/// The next connection, and who connects.
async fn next_connection(listener: &TcpListener) -> io::Result<(TcpStream, IpAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Each event goes out at once. Where that cannot be had, it goes out a little later.
    _ = stream.set_nodelay(true);
    Ok((stream, peer.ip()))
}

async fn connection(
    stream: TcpStream,
    own: Arc<Connection>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let newcomer_wait = shared.changing().limits.newcomer_wait;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.header_read_timeout(shared.changing().limits.head_wait);
    http.max_header_size(shared.changing().limits.head_bytes);
    let service = service_fn(|mut request| {
        let shared = shared.clone();
        request.extensions_mut().insert(own.clone());
        async { Ok::<_, Infallible>(origin::serve(shared, request).await) }
    });
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // How a connection ended is known to whoever waits for its answer.
        _ = served.as_mut() => return,
        () = own.is_closed() => return,
        () = own.overstays(newcomer_wait) => {}
        () = stops(&mut stop) => {}
    }
    served.as_mut().graceful_shutdown();
    tokio::select! {
        _ = served => {}
        () = own.is_closed() => {}
        () = own.overstays(newcomer_wait) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding 20 of the trial: without it small writes wait for an acknowledgement.
    #[tokio::test]
    async fn small_writes_to_clients_do_not_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = next_connection(&listener).await.unwrap();
        assert!(stream.nodelay().unwrap());
        drop(client);
    }
}
