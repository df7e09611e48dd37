//! Conversations that the store does not have as they are: they go on in memory, and what is not stored is written when
//! the store works again. Which entries those are is known from the conversation itself; nothing is queued.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_store::{Store, StoreError};

use super::Desk;
use super::conversation::{Conversation, Refused};
use super::live::{Live, Seat, Shared, Used};

impl Desk {
    /// Stores what could not be stored before, as far as the store works now.
    pub fn tend(&self) {
        self.store.retry();
        if self.store.look().is_err() {
            return;
        }
        for shared in self.live.in_arrears() {
            let Ok(mut conversation) = shared.lock() else {
                self.live.salvage(&shared);
                continue;
            };
            if !conversation.in_arrears() {
                continue;
            }
            let saved = if conversation.is_newest() {
                conversation.save().map_err(Refused::from)
            } else {
                Err(Refused::Moved)
            };
            match saved {
                Err(refused) => self.live.leave(&shared, &conversation, &refused),
                // The others would fail alike.
                Ok(()) if conversation.in_arrears() && self.store.outage().is_some() => return,
                Ok(()) => {}
            }
        }
        self.upstream_limits.tend();
        self.store.probe();
    }

    /// The desk will be used no longer: what is not stored is written now, if the store works.
    pub fn close(&self) {
        /// So long a store is waited for that does not work.
        const MOST: Duration = Duration::from_secs(3);
        let begun = Instant::now();
        // What parts from another writer's conversation in the first round is stored by the second.
        self.tend();
        self.tend();
        while self.store.outage().is_some() && !self.live.in_arrears().is_empty() && begun.elapsed() < MOST {
            std::thread::sleep(Duration::from_millis(100));
            self.tend();
        }
        let lost = self.live.in_arrears().len();
        if lost > 0
            && let Err(problem) = self.ready()
        {
            tracing::warn!(
                conversations = lost,
                %problem,
                "what was said last in some conversations is not stored"
            );
        }
    }

    /// An error if the store does not work, or does not answer.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.store.ready()
    }
}

impl Live {
    /// Works with a conversation in a way that stores it.
    pub(super) fn store_with(
        &self,
        shared: &Shared,
        work: impl FnOnce(&mut Conversation) -> Result<(), StoreError>,
    ) {
        match shared.lock() {
            Ok(mut conversation) => {
                if let Err(error) = work(&mut conversation) {
                    self.leave(shared, &conversation, &error.into());
                }
            }
            Err(_) => self.salvage(shared),
        }
    }

    /// A conversation cannot go on as it is: the next request loads what the store has. If it has sent what is not stored,
    /// that is the truth: it stays, or goes on under a name of its own where another writer has the one that it had.
    pub(super) fn leave(&self, shared: &Shared, conversation: &Conversation, why: &Refused) {
        let is_others = matches!(
            why,
            Refused::Moved | Refused::Store(StoreError::Conflict { .. } | StoreError::NoSession(_))
        );
        if !conversation.in_arrears() {
            self.forget(shared.id);
        } else if is_others {
            self.take_place(shared, conversation.parted(shared.tenant()));
        }
    }

    /// A panic left a conversation half done: what is stored is loaded by the next request. What is not stored goes on from
    /// its journal, if that can be read.
    pub(super) fn salvage(&self, shared: &Shared) {
        let Some(broken) = shared.broken() else { return };
        match broken.in_arrears().then(|| broken.salvaged(shared.tenant())) {
            Some(Ok(salvaged)) => self.take_place(shared, salvaged),
            Some(Err(problem)) => {
                tracing::warn!(session = %shared.id, %problem, "what was said last in a conversation is lost");
                self.forget(shared.id);
            }
            None => self.forget(shared.id),
        }
    }

    /// Requests that look for one conversation find another from now on.
    fn take_place(&self, before: &Shared, mut conversation: Conversation) {
        // What was sent without the one before, and it was not told of, is told to this one.
        for sent in self.sent_alone(before.id) {
            conversation.catch_up(before.tenant(), &sent);
        }
        let used = Used {
            bytes: conversation.bytes(),
            outside: conversation.thinking_outside(),
            end: conversation.end(),
        };
        before.closes();
        self.replace(before.id, &Seat::new(conversation, Arc::from(before.tenant())), used);
    }
}
