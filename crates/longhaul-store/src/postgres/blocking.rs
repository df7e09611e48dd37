//! Waiting for an answer of the server on the thread that asks. The connections are driven by a thread of
//! the store, so this needs no asynchronous runtime, and may be called where there is one.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a thread that is parked.
struct Parked {
    thread: Thread,
    /// It was woken, and has not looked why.
    is_woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Blocks this thread until the future is done; `None` if nothing came for longer than `silence`. A slow answer in many
/// parts is waited for.
pub(super) fn wait<T>(silence: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    let parked = Arc::new(Parked { thread: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(parked.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        let heard = Instant::now();
        while !parked.is_woken.swap(false, Ordering::Acquire) {
            match silence.map(|silence| silence.saturating_sub(heard.elapsed())) {
                Some(Duration::ZERO) => return None,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }
}
