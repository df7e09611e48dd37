//! News for pages that are open: a session has got entries. A gateway tells it when it happens; what other programs
//! write is found by looking at the store now and then, while anybody listens. Who reads too slowly is dropped, and
//! connects again.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use longhaul::Cursor;
use longhaul_store::{Filter, Meta, SessionId};
use serde::Serialize;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::api::time;
use crate::error::Refused;
use crate::inspector::{Guest, Inspector};

/// So many pages listen at once.
const MOST_LISTENERS: usize = 64;
/// So much is kept for a page that does not read.
const QUEUE: usize = 64;
/// A line that says nothing goes out so often, so that both ends know that the other is there.
const PING: Duration = Duration::from_secs(15);
/// The store is looked at so often where nobody tells what happens.
const LOOK: Duration = Duration::from_secs(1);
/// And so often where a gateway tells most of it.
const LOOK_BESIDE: Duration = Duration::from_secs(5);
/// A page is told no more often than this: an agent may call many times a second, and the store is asked each time.
const TOLD: Duration = Duration::from_millis(250);
/// So many of the newest sessions are looked at.
const LOOKED_AT: usize = 50;

/// A session has got entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The session.
    pub id: String,
    /// When it was written to last.
    pub updated: Option<String>,
    /// How many requests were sent.
    pub calls: u64,
    /// Where its journal ends.
    pub end: usize,
}

impl From<&Meta> for Event {
    fn from(meta: &Meta) -> Self {
        Self { id: meta.id.to_string(), updated: time(meta.updated), calls: meta.calls, end: meta.end.0 }
    }
}

/// Who wants to know what happens to sessions. Telling costs nothing while nobody listens, and little while those who do
/// have not looked yet.
#[derive(Debug, Default)]
pub struct News {
    count: AtomicUsize,
    listeners: Mutex<Vec<Weak<Told>>>,
}

/// What a listener was told and has not looked at.
#[derive(Debug, Default)]
struct Told {
    changed: Mutex<HashSet<SessionId>>,
    wakes: Notify,
}

impl Told {
    fn changed(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl News {
    /// A session has got entries.
    pub fn tell(&self, id: SessionId) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let Some(told) = listener.upgrade() else { return false };
            let mut changed = told.changed();
            // Who was told of something else already looks soon, and need not be woken again.
            if changed.is_empty() {
                told.wakes.notify_one();
            }
            changed.insert(id);
            true
        });
        self.count.store(listeners.len(), Ordering::Relaxed);
    }

    fn listen(&self) -> Result<Arc<Told>, Refused> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        if listeners.len() >= MOST_LISTENERS {
            return Err(Refused::Busy("too many pages listen: close some"));
        }
        let told = Arc::new(Told::default());
        listeners.push(Arc::downgrade(&told));
        self.count.store(listeners.len(), Ordering::Relaxed);
        Ok(told)
    }
}

/// The body of an answer that goes on.
pub(crate) struct EventBody(mpsc::Receiver<Bytes>);

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Begins to tell a guest what happens to sessions, or to one of them.
pub(crate) fn stream(
    inspector: Arc<Inspector>,
    guest: Guest,
    only: Option<SessionId>,
) -> Result<EventBody, Refused> {
    let told = inspector.news().listen()?;
    let (out, body) = mpsc::channel(QUEUE);
    let pace = if inspector.has_host() { LOOK_BESIDE } else { LOOK };
    let stop = inspector.stopping();
    let listener = Listener { inspector, guest, only, seen: HashMap::new(), out };
    tokio::spawn(listener.run(told, stop, pace));
    Ok(EventBody(body))
}

/// Waits until the inspector stops, or is gone.
async fn stops(stop: &mut watch::Receiver<bool>) {
    _ = stop.wait_for(|stop| *stop).await;
}

struct Listener {
    inspector: Arc<Inspector>,
    guest: Guest,
    only: Option<SessionId>,
    /// Where the journals ended that were told of.
    seen: HashMap<SessionId, Cursor>,
    out: mpsc::Sender<Bytes>,
}

impl Listener {
    async fn run(mut self, told: Arc<Told>, mut stop: watch::Receiver<bool>, pace: Duration) {
        let every = |pace| {
            let mut ticks = interval_at(Instant::now() + pace, pace);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut pings, mut looks) = (every(PING), every(pace));
        // What is there already is no news.
        for meta in self.newest().await {
            self.seen.insert(meta.id, meta.end);
        }
        let mut goes_on = self.send(Bytes::from_static(b": listening\n\n"));
        let (mut is_told, mut next) = (false, Instant::now());
        while goes_on {
            let out = self.out.clone();
            goes_on = tokio::select! {
                () = out.closed() => false,
                () = stops(&mut stop) => false,
                _ = pings.tick() => self.send(Bytes::from_static(b": ping\n\n")),
                _ = looks.tick() => {
                    let newest = self.newest().await;
                    newest.iter().all(|meta| self.tell(meta))
                }
                () = told.wakes.notified(), if !is_told => {
                    is_told = true;
                    true
                }
                () = sleep_until(next), if is_told => {
                    (is_told, next) = (false, Instant::now() + TOLD);
                    let mut reads = true;
                    let changed = std::mem::take(&mut *told.changed());
                    let only = self.only;
                    for id in changed.into_iter().filter(|id| only.is_none_or(|only| only == *id)) {
                        reads &= self.meta(id).await.is_none_or(|meta| self.tell(&meta));
                    }
                    reads
                }
            };
        }
    }

    /// Tells of a session, if there is something to tell. False if nobody reads.
    fn tell(&mut self, meta: &Meta) -> bool {
        if self.seen.insert(meta.id, meta.end) == Some(meta.end) {
            return true;
        }
        match serde_json::to_string(&Event::from(meta)) {
            Ok(data) => self.send(Bytes::from(format!("event: session\ndata: {data}\n\n"))),
            Err(_) => true,
        }
    }

    /// False if nobody reads, or too slowly.
    fn send(&self, bytes: Bytes) -> bool {
        self.out.try_send(bytes).is_ok()
    }

    async fn meta(&self, id: SessionId) -> Option<Meta> {
        let (inspector, guest) = (self.inspector.clone(), self.guest.clone());
        tokio::task::spawn_blocking(move || inspector.meta(&guest, id).ok()).await.ok().flatten()
    }

    /// The sessions that were written to last, or the one that is listened to.
    async fn newest(&self) -> Vec<Meta> {
        if let Some(only) = self.only {
            return self.meta(only).await.into_iter().collect();
        }
        let (inspector, guest) = (self.inspector.clone(), self.guest.clone());
        let filter = Filter { tenant: guest.tenant.as_deref().map(str::to_owned), ..Filter::default() };
        let newest = tokio::task::spawn_blocking(move || inspector.store().list(&filter, LOOKED_AT).ok());
        newest.await.ok().flatten().unwrap_or_default()
    }
}
