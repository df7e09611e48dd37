//! Work that nobody waits for, on a thread of its own: it begins when it is asked for first and ends with
//! whoever asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What is done whenever it is asked for. It looks now and then whether it is to end.
type Work = dyn Fn(&AtomicBool) + Send + Sync;

/// A thread that waits for work.
pub(crate) struct Background {
    work: Arc<Work>,
    at_end: AtEnd,
    ends: Arc<AtomicBool>,
    thread: Mutex<Option<(SyncSender<()>, JoinHandle<()>)>>,
}

/// What happens to work that is under way when the end comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// The end waits for it.
    Wait,
    /// It ends a little later.
    Leave,
}

impl Background {
    pub(crate) fn new(at_end: AtEnd, work: impl Fn(&AtomicBool) + Send + Sync + 'static) -> Self {
        Self { work: Arc::new(work), at_end, ends: Arc::default(), thread: Mutex::default() }
    }

    /// Asks for the work. If it is under way, it is done once more behind that.
    pub(crate) fn ask(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            *thread = self.begin();
        }
        if let Some((asked, _)) = &*thread {
            // Once more is enough, however often it was asked for.
            asked.try_send(()).ok();
        }
    }

    /// `None` if there can be no more threads: the work is asked for again.
    fn begin(&self) -> Option<(SyncSender<()>, JoinHandle<()>)> {
        let (asked, asks) = sync_channel(1);
        let (work, ends) = (self.work.clone(), self.ends.clone());
        let thread = std::thread::Builder::new().name("longhaul-index".to_owned()).spawn(move || {
            while asks.recv().is_ok() && !ends.load(Ordering::Relaxed) {
                work(&ends);
            }
        });
        thread.ok().map(|thread| (asked, thread))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((asked, thread)) = thread {
            drop(asked);
            if self.at_end == AtEnd::Wait {
                thread.join().ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    #[test]
    fn work_is_done_and_ends_with_its_owner() {
        let done = Arc::new(AtomicUsize::new(0));
        let counted = done.clone();
        let background = Background::new(AtEnd::Wait, move |ends| {
            counted.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            while !ends.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(30) {
                std::thread::yield_now();
            }
        });
        background.ask();
        while done.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        (0..5).for_each(|_| background.ask());
        let begun = Instant::now();
        drop(background);
        assert!(begun.elapsed() < Duration::from_secs(20));
        // The thread is gone, and with it what it held.
        assert_eq!((done.load(Ordering::Relaxed), Arc::strong_count(&done)), (1, 1));
    }
}
