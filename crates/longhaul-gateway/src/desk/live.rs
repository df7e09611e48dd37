//! The conversations that are in memory, and by what a request is likely to find its own. Whatever is not here is in
//! the store: those that were used last stay, as many as fit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_store::SessionId;

use super::conversation::Conversation;

/// A conversation that several requests may want at once.
pub(super) type Shared = Arc<Mutex<Conversation>>;

/// What a client says of its conversation, or how its body begins: never the truth, only where to look first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Hint(pub(super) [u8; 16]);

/// The conversations that are in memory.
#[derive(Debug)]
pub(super) struct Live {
    inner: Mutex<Inner>,
    /// Bytes that they may take together.
    limit: usize,
}

#[derive(Debug, Default)]
struct Inner {
    conversations: HashMap<SessionId, Slot>,
    hints: HashMap<Hint, SessionId>,
    bytes: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    conversation: Shared,
    bytes: usize,
    used: u64,
    hints: Vec<Hint>,
}

impl Live {
    pub(super) fn new(limit: usize) -> Self {
        Self { inner: Mutex::default(), limit }
    }

    /// The conversation that a hint spoke of last.
    pub(super) fn hinted(&self, hint: &Hint) -> Option<Shared> {
        let inner = self.lock();
        let id = inner.hints.get(hint)?;
        inner.conversations.get(id).map(|slot| slot.conversation.clone())
    }

    pub(super) fn get(&self, id: SessionId) -> Option<Shared> {
        self.lock().conversations.get(&id).map(|slot| slot.conversation.clone())
    }

    /// A conversation was used: it stays longest, and the hint speaks of it. Others go if there is no room.
    pub(super) fn used(&self, id: SessionId, conversation: &Shared, bytes: usize, hints: &[Hint]) {
        let mut inner = self.lock();
        inner.clock += 1;
        let used = inner.clock;
        let slot = inner.conversations.entry(id).or_insert_with(|| Slot {
            conversation: conversation.clone(),
            bytes: 0,
            used,
            hints: Vec::new(),
        });
        let before = std::mem::replace(&mut slot.bytes, bytes);
        (slot.used, slot.conversation) = (used, conversation.clone());
        for hint in hints {
            if !slot.hints.contains(hint) {
                slot.hints.push(hint.clone());
            }
        }
        inner.bytes = (inner.bytes + bytes).saturating_sub(before);
        for hint in hints {
            inner.hints.insert(hint.clone(), id);
        }
        while inner.bytes > self.limit && inner.conversations.len() > 1 {
            let Some(oldest) =
                inner.conversations.iter().min_by_key(|(_, slot)| slot.used).map(|(id, _)| *id)
            else {
                return;
            };
            inner.remove(oldest);
        }
    }

    /// A conversation is not what the store has: the next request loads it.
    pub(super) fn forget(&self, id: SessionId) {
        self.lock().remove(id);
    }

    /// How many there are, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.conversations.len(), inner.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn remove(&mut self, id: SessionId) {
        let Some(slot) = self.conversations.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(slot.bytes);
        for hint in slot.hints {
            if self.hints.get(&hint) == Some(&id) {
                self.hints.remove(&hint);
            }
        }
    }
}
