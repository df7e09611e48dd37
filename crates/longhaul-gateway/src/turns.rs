//! How many questions are worked with at once: fewer of them if their bodies are large. What is made of a body takes several
//! times its bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Questions at once if their bodies are small: each may read a whole request and fold it.
const MOST: usize = 8;

/// A body takes the place of one question more for each of these bytes, so one of 56 MB is worked with alone.
const LARGE: usize = 8 << 20;

/// Places of questions.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Semaphore>);

impl Turns {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }

    /// The turn of a question about a body of so many bytes, until it is dropped.
    pub(crate) async fn of(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let places = u32::try_from((bytes / LARGE + 1).min(MOST)).unwrap_or(1);
        self.0.clone().acquire_many_owned(places).await.ok()
    }

    /// The same for a question that waits only if its body is large. An error if it waits for longer than `most`.
    pub(crate) async fn of_large(
        &self,
        bytes: usize,
        most: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, ()> {
        if bytes < LARGE {
            return Ok(None);
        }
        timeout(most, self.of(bytes)).await.map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_take_turns_and_small_ones_do_not_wait() {
        let (turns, now) = (Turns::new(), Duration::ZERO);
        let first = turns.of_large(60 << 20, now).await.unwrap();
        assert!(first.is_some() && turns.of_large(9 << 20, now).await.is_err());
        assert!(turns.of_large(LARGE - 1, now).await.unwrap().is_none());
        drop(first);
        let both = [turns.of_large(20 << 20, now).await, turns.of_large(30 << 20, now).await];
        assert!(both.iter().all(Result::is_ok) && turns.of_large(20 << 20, now).await.is_err());
    }
}
