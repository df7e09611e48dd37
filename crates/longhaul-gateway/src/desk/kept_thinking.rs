//! Which thinking a client may keep in a request that is sent as it came.

use super::finding::{Found, Search};
use super::live::Used;
use super::{Desk, Incoming};

/// Which messages of a request that is sent as it came may keep their thinking: what was produced by a request of ours is
/// refused after the client's own messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptThinking {
    /// All of them.
    All,
    /// The first ones that have signed thinking, so many.
    First(usize),
    /// Nothing is known of its conversation.
    Unknown,
}

impl Desk {
    /// Which messages of a request may keep their thinking if it is sent as it came, without us. Waits for nothing: only
    /// conversations that are in memory are looked at.
    pub fn thinking_outside(&self, incoming: &Incoming) -> KeptThinking {
        if self.settings().observe {
            return KeptThinking::All;
        }
        self.live.thinking_outside(&incoming.hints())
    }

    /// The same of a conversation that is not in memory: the store is asked.
    pub fn thinking_outside_of_stored(&self, incoming: &Incoming) -> KeptThinking {
        if self.settings().observe {
            return KeptThinking::All;
        }
        let hints = incoming.hints();
        let Ok(Search::Found(Found { conversation, .. })) = self.find(incoming, &hints) else {
            return KeptThinking::Unknown;
        };
        let Ok(mut locked) = conversation.lock() else { return KeptThinking::Unknown };
        let outside = locked.thinking_outside();
        self.live.used(&conversation, &hints, Used { bytes: locked.bytes(), outside, end: locked.end() });
        outside
    }
}
