//! The identity of what stands before a message in a request: system prompt, tools and all messages, in
//! canonical form. A provider that binds thinking accepts a block only after the prefix that produced it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::canonical::{self, Canonical, Head};
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
    /// The prefix of these messages, hashed one after the other, after a head. Of tools that wait until they are named, those
    /// count that the messages name.
    fn of(head: &Head, messages: Canonical, is_named: impl Fn(&str) -> bool) -> Self {
        let named = head.deferred.iter().filter(|(name, _)| is_named(name));
        let messages = named.fold(messages, |messages, (_, tool)| canonical::both(&messages, tool));
        Self(Handle::from_bytes(canonical::both(&head.prompt, &messages)))
    }
}

/// What an answer is bound to: it may stand where both are the same, and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Of the request.
    pub(crate) prefix: Prefix,
    /// The signature of the last thinking in the request, if it had any.
    pub(crate) after: Option<Handle>,
}

/// The prefixes in a list of messages: one before each of them, and one after all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    messages: Vec<Arc<Message>>,
    /// After each message.
    ends: Vec<Canonical>,
    /// Tools that the messages name, each with the first message that does, in order.
    named: Vec<(usize, Box<str>)>,
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
        self.named.truncate(self.named.partition_point(|(at, _)| *at < common));
        for message in messages {
            for name in canonical::tools_named(message) {
                if !self.named.iter().any(|(_, known)| *known == name) {
                    self.named.push((self.ends.len(), name));
                }
            }
            self.ends.push(canonical::both(&self.before(self.ends.len()), &canonical::message(message)));
            self.messages.push(message.clone());
        }
        common
    }

    /// Names what stands before a message, after this head.
    pub(crate) fn prefix(&self, head: &Head, message: usize) -> Prefix {
        Prefix::of(head, self.before(message), |name| self.is_named(name, message))
    }

    /// Names all messages and one more, after this head.
    pub(crate) fn prefix_with(&self, head: &Head, message: &Message) -> Prefix {
        let end = self.ends.len();
        let all = canonical::both(&self.before(end), &canonical::message(message));
        Prefix::of(head, all, |name| self.is_named(name, end))
    }

    /// How many messages there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// What stands before a message.
    fn before(&self, message: usize) -> Canonical {
        message.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(START)
    }

    /// True if a message before this one names the tool.
    fn is_named(&self, tool: &str, message: usize) -> bool {
        self.named.iter().take_while(|(at, _)| *at < message).any(|(_, name)| **name == *tool)
    }
}
