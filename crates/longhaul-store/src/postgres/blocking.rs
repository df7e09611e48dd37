//! Waiting for an answer of the server on the thread that asks. The connections are driven by a thread of
//! the store, so this needs no asynchronous runtime, and may be called where there is one.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a thread that is parked.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until the future is done, or until it has taken too long: `None` then.
pub(super) fn wait<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}
