//! Work that nobody waits for, on a thread of its own: it begins when it is asked for first, gives way to whoever
//! is in a hurry, and ends with whoever asks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is done whenever it is asked for. Between its parts it asks whether it goes on.
type Work = dyn Fn(&Pace) + Send + Sync;

/// The work goes on when nobody was in a hurry for so long.
const QUIET: Duration = Duration::from_millis(50);

/// A part of the work waits no longer than this.
const LONGEST: Duration = Duration::from_millis(500);

/// When the work goes on.
pub(crate) struct Pace {
    ends: AtomicBool,
    begun: Instant,
    /// When somebody was in a hurry last, in milliseconds since it begun.
    hurried: AtomicU64,
}

impl Pace {
    fn new() -> Self {
        Self { ends: AtomicBool::new(false), begun: Instant::now(), hurried: AtomicU64::new(0) }
    }

    /// Waits until nobody is in a hurry, or for long enough. False if the work is to end.
    pub(crate) fn goes_on(&self) -> bool {
        let waited = Instant::now();
        while !self.has_ended() && self.is_hurried() && waited.elapsed() < LONGEST {
            std::thread::sleep(QUIET / 5);
        }
        !self.has_ended()
    }

    fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn is_hurried(&self) -> bool {
        let hurried = Duration::from_millis(self.hurried.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(hurried) < QUIET
    }
}

/// A thread that waits for work.
pub(crate) struct Background {
    work: Arc<Work>,
    at_end: AtEnd,
    pace: Arc<Pace>,
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
    pub(crate) fn new(at_end: AtEnd, work: impl Fn(&Pace) + Send + Sync + 'static) -> Self {
        Self { work: Arc::new(work), at_end, pace: Arc::new(Pace::new()), thread: Mutex::default() }
    }

    /// Somebody is in a hurry: the work gives way.
    pub(crate) fn give_way(&self) {
        let since = self.pace.begun.elapsed().as_millis();
        self.pace.hurried.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
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
        let (work, pace) = (self.work.clone(), self.pace.clone());
        let thread = std::thread::Builder::new().name("longhaul-index".to_owned()).spawn(move || {
            while asks.recv().is_ok() && pace.goes_on() {
                work(&pace);
            }
        });
        thread.ok().map(|thread| (asked, thread))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.pace.ends.store(true, Ordering::Relaxed);
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

    #[test]
    fn work_is_done_and_ends_with_its_owner() {
        let done = Arc::new(AtomicUsize::new(0));
        let counted = done.clone();
        let background = Background::new(AtEnd::Wait, move |pace| {
            counted.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            while pace.goes_on() && begun.elapsed() < Duration::from_secs(30) {
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
