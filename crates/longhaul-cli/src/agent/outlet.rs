//! Lines for stdout or stderr, written by a thread of their own: a reader that does not read holds up neither the agent
//! nor its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Lines that may wait.
const WAITING: usize = 1_024;
/// How often it is looked whether there is room.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// When everything is to end, a reader that takes nothing for so long does not read.
const PATIENCE: Duration = Duration::from_millis(300);

/// Where lines go. Copies write to the same place.
#[derive(Clone)]
pub struct Outlet {
    lines: SyncSender<String>,
    waiting: Arc<AtomicUsize>,
    stop: CancellationToken,
    is_given_up: Arc<AtomicBool>,
}

impl Outlet {
    /// Lines that `write` writes. Once `stop` is cancelled, nobody waits for a reader that does not read.
    pub fn new(stop: CancellationToken, mut write: impl FnMut(&str) + Send + 'static) -> Self {
        let (lines, received) = sync_channel::<String>(WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = waiting.clone();
        std::thread::spawn(move || {
            for line in received {
                write(&line);
                written.fetch_sub(1, Ordering::Release);
            }
        });
        Self { lines, waiting, stop, is_given_up: Arc::default() }
    }

    /// Writes a line, as soon as there is room for it.
    pub fn line(&self, line: String) {
        if self.is_given_up.load(Ordering::Relaxed) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Acquire);
        let mut line = Some(line);
        let is_taken = self.until(|| match self.lines.try_send(line.take().unwrap_or_default()) {
            Ok(()) => true,
            Err(TrySendError::Full(back)) => {
                line = Some(back);
                false
            }
            // The thread has ended, which it does not while there are copies.
            Err(TrySendError::Disconnected(_)) => true,
        });
        if !is_taken {
            self.waiting.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits until all is written. False if nobody read it and it was time to end.
    pub fn flush(&self) -> bool {
        self.until(|| self.waiting.load(Ordering::Acquire) == 0)
    }

    /// Waits for this, as long as somebody reads or nothing is to end.
    fn until(&self, mut is_done: impl FnMut() -> bool) -> bool {
        let mut last = (self.waiting.load(Ordering::Acquire), Instant::now());
        loop {
            if is_done() {
                return true;
            }
            let waiting = self.waiting.load(Ordering::Acquire);
            if waiting != last.0 || !self.stop.is_cancelled() {
                last = (waiting, Instant::now());
            }
            if self.is_given_up.load(Ordering::Relaxed) || last.1.elapsed() >= PATIENCE {
                self.is_given_up.store(true, Ordering::Relaxed);
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn lines_are_written_in_order_and_a_flush_waits_for_them() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let there = written.clone();
        let outlet =
            Outlet::new(CancellationToken::new(), move |line| there.lock().unwrap().push(line.to_owned()));
        let lines: Vec<String> = (0..3 * WAITING).map(|number| number.to_string()).collect();
        lines.iter().for_each(|line| outlet.line(line.clone()));
        assert!(outlet.flush());
        assert_eq!(*written.lock().unwrap(), lines);
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read_when_it_is_time_to_end() {
        let (reader, reads) = channel::<()>();
        let stop = CancellationToken::new();
        let outlet = Outlet::new(stop.clone(), move |_| _ = reads.recv());
        let ending = stop.clone();
        std::thread::spawn(move || ending.cancel());
        // More than there is room for.
        (0..2 * WAITING).for_each(|number| outlet.line(number.to_string()));
        assert!(!outlet.flush() && stop.is_cancelled());
        drop(reader);
    }
}
