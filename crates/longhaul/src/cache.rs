//! What the provider's prompt cache has: the previous request. A request that extends it is
//! cheap; one that differs early is billed again from there on.

use std::sync::Arc;

use crate::message::Message;
use crate::meter::{Measure, Meter};
use crate::tokens::Tokens;
use crate::usage::Billed;
use crate::view::{Fixed, View};

/// The prefix that the provider has seen.
#[derive(Debug, Clone, Default)]
pub struct PromptCache {
    fixed: Fixed,
    messages: Vec<Arc<Message>>,
    /// The size up to and including each message.
    sums: Vec<Measure>,
    used: bool,
}

/// What sending a view did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// What was read from the cache and what was written.
    pub billed: Billed,
    /// The view did not extend the one before.
    pub broke: bool,
}

impl PromptCache {
    /// A cache that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in that this view is sent. Costs what differs from the view before it, if each
    /// view of the session is sent through here.
    pub fn send(&mut self, view: &View, meter: &Meter) -> Sent {
        let parts = view.parts();
        let changed = self.used && view.fixed() != self.fixed;
        if changed {
            // System prompt and tools come first: nothing after them is warm.
            self.messages.clear();
        }
        let known = view.unchanged().min(self.messages.len()).min(parts.len());
        let same = parts[known..].iter().zip(&self.messages[known..]);
        let common = known
            + same
                .take_while(|(part, before)| Arc::ptr_eq(&part.message, before) || part.message == **before)
                .count();
        let broke = changed || common < self.messages.len();
        self.messages.truncate(common);
        self.sums.truncate(common);
        let fixed = view.fixed();
        let warm = match self.sums.last() {
            Some(sum) => *sum,
            None if self.used && !changed => fixed.measure,
            None => Measure::default(),
        };
        let mut sum = self.sums.last().copied().unwrap_or(fixed.measure);
        for part in &parts[common..] {
            sum += part.measure;
            self.messages.push(part.message.clone());
            self.sums.push(sum);
        }
        self.used = true;
        self.fixed = fixed;
        let tokens = |measure: Measure| meter.tokens(measure).tokens;
        let (read, all) = (tokens(warm), tokens(sum));
        Sent { billed: Billed { read, written: Tokens(all.0.saturating_sub(read.0)) }, broke }
    }
}
