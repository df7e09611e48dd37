//! Room for the bodies of requests: all that are kept at once take no more bytes than this. A request reserves what it
//! says that it needs as soon as it sends it. Who has a place never waits for more, so that all come to an end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes that one permit stands for.
const PIECE: usize = 1 << 10;

/// All room.
#[derive(Debug)]
pub(crate) struct Room {
    pieces: Arc<Semaphore>,
    all: usize,
    /// How long a request waits for room.
    wait: Duration,
}

impl Room {
    /// Of so many bytes.
    pub(crate) fn new(bytes: usize, wait: Duration) -> Self {
        let all = bytes.div_ceil(PIECE).clamp(1, Semaphore::MAX_PERMITS);
        Self { pieces: Arc::new(Semaphore::new(all)), all, wait }
    }

    /// Room for so many bytes, as soon as there is; `None` if there is none in time. Who came first is first.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<Place> {
        let wanted = pieces(bytes);
        if usize::try_from(wanted).is_ok_and(|wanted| wanted > self.all) {
            return None;
        }
        let reserved = timeout(self.wait, self.pieces.clone().acquire_many_owned(wanted)).await;
        let reserved = reserved.ok()?.ok()?;
        Some(Place { pieces: self.pieces.clone(), reserved: Some(reserved) })
    }

    /// A place for nothing yet.
    pub(crate) fn nothing(&self) -> Place {
        Place { pieces: self.pieces.clone(), reserved: None }
    }

    /// Bytes that are reserved.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        (self.all - self.pieces.available_permits()) * PIECE
    }
}

fn pieces(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX)
}

/// Room that a request has, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pieces: Arc<Semaphore>,
    reserved: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// True if it has no room yet.
    pub(crate) fn is_nothing(&self) -> bool {
        self.reserved.is_none()
    }

    /// Room for so many bytes in all, if there is any at this moment.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = pieces(bytes).saturating_sub(self.has());
        match (self.pieces.clone().try_acquire_many_owned(more), &mut self.reserved) {
            (Ok(new), Some(reserved)) => reserved.merge(new),
            (Ok(new), None) => self.reserved = Some(new),
            (Err(_), _) => return false,
        }
        true
    }

    /// This place, for work that goes on when nobody waits for it any longer. What is left has no room.
    pub(crate) fn take(&mut self) -> Self {
        Self { pieces: self.pieces.clone(), reserved: self.reserved.take() }
    }

    /// Gives back all but room for so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.has().saturating_sub(pieces(bytes));
        let less = usize::try_from(less).unwrap_or_default();
        drop(self.reserved.as_mut().and_then(|reserved| reserved.split(less)));
    }

    fn has(&self) -> u32 {
        let permits = self.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        u32::try_from(permits).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_waits_for_room_and_nobody_for_ever() {
        let room = Arc::new(Room::new(64 << 10, Duration::from_secs(600)));
        let tasks: Vec<_> = (0..200)
            .map(|n| {
                let room = room.clone();
                tokio::spawn(async move {
                    // Some say what they need, some grow.
                    let bytes = (n % 8 + 1) * 8_000;
                    let Some(mut place) = room.reserve(if n % 2 == 0 { bytes } else { 1 }).await else {
                        return false;
                    };
                    tokio::task::yield_now().await;
                    let grown = place.grow_to(bytes);
                    assert!(room.taken() <= 64 << 10);
                    tokio::task::yield_now().await;
                    grown || n % 2 == 1
                })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap());
        }
        assert_eq!(room.taken(), 0);
    }

    #[tokio::test]
    async fn what_never_fits_does_not_wait() {
        let room = Room::new(10 << 10, Duration::from_secs(600));
        assert!(room.reserve(11 << 10).await.is_none());
        let mut place = room.reserve(4 << 10).await.unwrap();
        assert!(place.grow_to(10 << 10) && !place.grow_to(11 << 10));
        assert_eq!(room.taken(), 10 << 10);
        place.shrink_to(3 << 10);
        assert_eq!(room.taken(), 3 << 10);
        place.shrink_to(9 << 10);
        assert_eq!(room.taken(), 3 << 10);
        drop(place);
        assert_eq!(room.taken(), 0);
        let mut nothing = room.nothing();
        assert!(nothing.is_nothing() && nothing.grow_to(10 << 10) && room.nothing().grow_to(0));
        assert_eq!(room.taken(), 10 << 10);
    }

    #[tokio::test]
    async fn who_gets_no_room_in_time_is_told() {
        let room = Room::new(10 << 10, Duration::from_millis(20));
        let place = room.reserve(10 << 10).await.unwrap();
        assert!(room.reserve(1).await.is_none());
        drop(place);
        assert!(room.reserve(1).await.is_some());
    }
}
