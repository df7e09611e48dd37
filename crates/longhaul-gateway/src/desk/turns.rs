//! Requests that would begin the same conversation do so one after the other: the second one finds what the first has
//! made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many conversations may begin at once.
const AT_ONCE: usize = 64;

/// Whose turn it is to begin a conversation.
#[derive(Debug)]
pub(super) struct Turns {
    places: [Mutex<()>; AT_ONCE],
    /// How many conversations have begun.
    begun: AtomicU64,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { places: std::array::from_fn(|_| Mutex::new(())), begun: AtomicU64::new(0) }
    }

    /// How many conversations have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits until nobody else begins a conversation that ends like this.
    pub(super) fn wait(&self, end: [u8; 16]) -> MutexGuard<'_, ()> {
        let place = &self.places[usize::from(end[0]) % AT_ONCE];
        // A panic leaves nothing behind here.
        place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A conversation has begun, and can be found.
    pub(super) fn has_begun(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }
}
