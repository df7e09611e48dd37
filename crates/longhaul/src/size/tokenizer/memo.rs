//! What was counted before, in a fixed number of memos that all threads share: a memo of one
//! vocabulary takes up to 2.7 MB, and a program may have many more threads than it has cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use super::texts::Texts;
use super::words::Words;

/// More threads than this do not count at once without waiting.
const MOST: usize = 8;

/// Counts of texts and words.
#[derive(Default)]
pub(super) struct Memo {
    pub texts: Texts,
    pub words: Words,
}

/// The memos of one vocabulary: one per core, made when it is first needed.
pub(super) struct Memos(Box<[Mutex<Option<Memo>>]>);

impl Memos {
    pub fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self((0..cores.min(MOST)).map(|_| Mutex::default()).collect())
    }

    /// Counts with a memo that no other thread has. A thread tries the same one first each time,
    /// so that it finds what it counted before; it waits for that one if all are in use.
    pub fn with<T>(&self, count: impl FnOnce(&mut Memo) -> T) -> T {
        let first = place_of_thread() % self.0.len();
        let (before, from) = self.0.split_at(first);
        let free = from.iter().chain(before).find_map(|memo| match memo.try_lock() {
            Ok(memo) => Some(memo),
            Err(TryLockError::Poisoned(memo)) => Some(memo.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        let mut memo = free.unwrap_or_else(|| wait(&self.0[first]));
        count(memo.get_or_insert_default())
    }

    /// How many were made.
    #[cfg(test)]
    pub fn made(&self) -> usize {
        self.0.iter().filter(|memo| wait(memo).is_some()).count()
    }

    /// How many there can be.
    #[cfg(test)]
    pub fn most(&self) -> usize {
        self.0.len()
    }
}

/// A thread that ended in the middle of a count left a memo that holds true counts all the same.
fn wait(memo: &Mutex<Option<Memo>>) -> MutexGuard<'_, Option<Memo>> {
    memo.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of the thread: threads that were made one after the other have others.
fn place_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    PLACE.with(|place| *place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_meets_its_own_memo_again_and_takes_another_while_that_is_in_use() {
        let memos = Memos((0..2).map(|_| Mutex::default()).collect());
        let address = |memo: &mut Memo| std::ptr::from_mut(memo).addr();
        let own = memos.with(address);
        assert_eq!((memos.with(address), memos.made()), (own, 1));
        let (inner, outer) = memos.with(|outer| (memos.with(address), address(outer)));
        assert_ne!(inner, outer);
        assert_eq!((outer, memos.made()), (own, 2));
    }

    #[test]
    fn a_panic_in_the_middle_of_a_count_leaves_a_memo_to_count_with() {
        let memos = Memos([Mutex::default()].into());
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            memos.with(|_| panic!("in the middle"))
        }));
        assert!(broken.is_err());
        memos.with(|_| ());
    }
}
