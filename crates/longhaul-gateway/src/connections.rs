//! Slots for connections. A connection is a newcomer until one of its requests is let in; then it takes a slot, or waits for
//! one. Newcomers have places of their own, a few and for a short time, so that silent connections, refused ones and health
//! checks keep no client out, and clients keep no health check out.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// So many newcomers are there at once. When one more comes, one of them is closed.
const NEWCOMERS: usize = 256;

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: Arc<Semaphore>,
    /// As many connections may wait for a slot as there are slots.
    waiting: Semaphore,
    /// The oldest first.
    newcomers: Mutex<VecDeque<Newcomer>>,
    come: AtomicU64,
}

#[derive(Debug)]
struct Newcomer {
    number: u64,
    peer: IpAddr,
    close: Arc<Notify>,
}

/// A connection. Its slot or its place is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Arc<Connections>,
    number: u64,
    close: Arc<Notify>,
    slot: OnceLock<OwnedSemaphorePermit>,
}

/// All slots are taken, and too many connections wait for one.
#[derive(Debug)]
pub(crate) struct Full;

impl Connections {
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        let slots = slots.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(slots)),
            waiting: Semaphore::new(slots),
            newcomers: Mutex::default(),
            come: AtomicU64::new(0),
        })
    }

    /// A newcomer. Where there are too many, the oldest one of the peer that has most of them is closed.
    pub(crate) fn come(self: &Arc<Self>, peer: IpAddr) -> Arc<Connection> {
        let (number, close) = (self.come.fetch_add(1, Ordering::Relaxed), Arc::new(Notify::new()));
        let mut newcomers = self.newcomers();
        if newcomers.len() >= NEWCOMERS {
            let mut counts: HashMap<IpAddr, usize> = HashMap::new();
            newcomers.iter().for_each(|newcomer| *counts.entry(newcomer.peer).or_default() += 1);
            let most = counts.values().max().copied();
            let oldest = newcomers.iter().position(|newcomer| counts.get(&newcomer.peer).copied() == most);
            if let Some(closed) = oldest.and_then(|at| newcomers.remove(at)) {
                closed.close.notify_one();
            }
        }
        newcomers.push_back(Newcomer { number, peer, close: close.clone() });
        drop(newcomers);
        Arc::new(Connection { all: self.clone(), number, close, slot: OnceLock::new() })
    }

    fn newcomers(&self) -> MutexGuard<'_, VecDeque<Newcomer>> {
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// One of its requests was let in: from now on it is no newcomer, and keeps a slot. Waits for one.
    pub(crate) async fn admit(&self) -> Result<(), Full> {
        if self.slot.get().is_some() {
            return Ok(());
        }
        let _waiting = self.all.waiting.try_acquire().map_err(|_| Full)?;
        self.leave_newcomers();
        let slot = self.all.slots.clone().acquire_owned().await.map_err(|_| Full)?;
        // One connection has one request at a time.
        _ = self.slot.set(slot);
        Ok(())
    }

    /// Waits until it must go because others came.
    pub(crate) async fn is_closed(&self) {
        self.close.notified().await;
    }

    /// Waits until it has been a newcomer for so long; for ever, if it is none then.
    pub(crate) async fn overstays(&self, most: Duration) {
        sleep(most).await;
        if !self.all.newcomers().iter().any(|newcomer| newcomer.number == self.number) {
            pending().await
        }
    }

    fn leave_newcomers(&self) {
        self.all.newcomers().retain(|newcomer| newcomer.number != self.number);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave_newcomers();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    fn peer(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    /// Whether it must go.
    async fn goes(connection: &Connection) -> bool {
        timeout(Duration::ZERO, connection.is_closed()).await.is_ok()
    }

    #[tokio::test]
    async fn a_newcomer_too_many_closes_the_oldest_of_the_peer_with_most() {
        let all = Connections::new(1);
        let (few, crowd) = (all.come(peer(1)), (0..NEWCOMERS - 1).map(|_| all.come(peer(2))));
        let crowd: Vec<_> = crowd.collect();
        // One that was let in is no newcomer, and stays.
        crowd[0].admit().await.unwrap();
        let last = all.come(peer(2));
        assert!(!goes(&crowd[1]).await);
        let _more = [all.come(peer(3)), all.come(peer(1))];
        assert!(goes(&crowd[1]).await && goes(&crowd[2]).await);
        for stays in [&few, &crowd[0], &crowd[3], &last] {
            assert!(!goes(stays).await);
        }
    }

    #[tokio::test]
    async fn a_slot_is_kept_to_the_end_and_few_wait_for_one() {
        let all = Connections::new(1);
        let [one, two, three] = [1, 2, 3].map(|n| all.come(peer(n)));
        one.admit().await.unwrap();
        one.admit().await.unwrap();
        let second = two.clone();
        let waits = tokio::spawn(async move { second.admit().await.is_ok() });
        while all.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(three.admit().await.is_err());
        drop(one);
        assert!(waits.await.unwrap());
        // It is a newcomer still.
        assert_eq!(all.newcomers().iter().map(|newcomer| newcomer.number).collect::<Vec<_>>(), [2]);
        drop([two, three]);
        assert_eq!((all.slots.available_permits(), all.newcomers().len()), (1, 0));
    }

    #[tokio::test]
    async fn only_a_newcomer_overstays() {
        let all = Connections::new(2);
        let (one, other) = (all.come(peer(1)), all.come(peer(1)));
        other.admit().await.unwrap();
        one.overstays(Duration::ZERO).await;
        assert!(timeout(Duration::from_millis(50), other.overstays(Duration::ZERO)).await.is_err());
    }
}
