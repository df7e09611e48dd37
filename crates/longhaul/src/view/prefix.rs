//! The identity of what stands before a message in a request: system prompt, tools and all messages, in
//! canonical form. A provider that binds thinking accepts a block only after the prefix that produced it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::canonical::{self, Canonical};
use crate::conversation::message::Message;
use crate::edits::archive::Handle;
use crate::view::View;

/// Names a prefix: two requests with the same one are the same to a provider that binds thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prefix(Handle);

/// Before the first message.
const START: Canonical = [0; 16];

impl Prefix {
    /// The prefix of these messages, hashed one after the other, after a frame.
    pub(crate) fn of(frame: &Canonical, messages: &Canonical) -> Self {
        Self(Handle::from_bytes(canonical::both(frame, messages)))
    }
}

/// The prefixes in a list of messages: one before each of them, and one after all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    messages: Vec<Arc<Message>>,
    /// After each message.
    ends: Vec<Canonical>,
}

impl Chain {
    /// Follows a view. Returns how many of its first parts are the same as before.
    pub(crate) fn follow(&mut self, view: &View) -> usize {
        let parts = view.parts().iter().map(|part| &part.message);
        self.extend_from(view.unchanged(), parts)
    }

    /// Follows a list of messages, the first of which are known to be the same as before.
    pub(crate) fn extend_from<'a>(
        &mut self,
        same: usize,
        messages: impl ExactSizeIterator<Item = &'a Arc<Message>>,
    ) -> usize {
        let known = same.min(self.messages.len()).min(messages.len());
        let mut messages = messages.skip(known).peekable();
        let mut common = known;
        while self.messages.get(common).is_some_and(|known| {
            messages.next_if(|next| Arc::ptr_eq(known, next) || ***next == **known).is_some()
        }) {
            common += 1;
        }
        self.messages.truncate(common);
        self.ends.truncate(common);
        for message in messages {
            self.ends.push(canonical::both(&self.before(self.ends.len()), &canonical::message(message)));
            self.messages.push(message.clone());
        }
        common
    }

    /// What stands before a message.
    pub(crate) fn before(&self, message: usize) -> Canonical {
        message.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(START)
    }

    /// All messages.
    pub(crate) fn end(&self) -> Canonical {
        self.before(self.ends.len())
    }
}
