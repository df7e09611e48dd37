//! The cache model: what the provider's prompt cache has, for how long, and what follows. A
//! request that extends the one before is cheap; one that differs early is billed again from
//! there on; after the cache's lifetime everything is.

use std::sync::Arc;

use crate::conversation::message::{Message, Time};
use crate::size::meter::{Measure, Meter};
use crate::size::models::{CacheKind, CacheRule};
use crate::size::tokens::Tokens;
use crate::size::usage::Billed;
use crate::view::{Fixed, View};

/// The prefix that the provider has seen.
#[derive(Debug, Clone, Default)]
pub struct PromptCache {
    fixed: Fixed,
    messages: Vec<Arc<Message>>,
    /// The size up to and including each message.
    sums: Vec<Measure>,
    used: bool,
    last: Option<Time>,
}

/// What sending a view did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// What was in common with the request before, and what was not.
    pub billed: Billed,
    /// The view did not extend the one before.
    pub broke: bool,
    /// The provider has forgotten the request before by now: all is billed as new.
    pub cold: bool,
}

impl PromptCache {
    /// A cache that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A cache that knows nothing but when it was last used.
    pub(crate) fn used_at(last: Option<Time>) -> Self {
        Self { last, ..Self::default() }
    }

    /// When it was last used, as far as is known.
    pub(crate) fn last_used(&self) -> Option<Time> {
        self.last
    }

    /// True if the prefix is no longer there by `now`. Without times nobody knows, and it is
    /// taken to be there.
    pub fn is_cold(&self, now: Option<Time>, rule: &CacheRule) -> bool {
        let lifetime = i64::try_from(rule.lifetime_s).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        match (self.last, now) {
            _ if rule.kind == CacheKind::None => true,
            (Some(last), Some(now)) => now.0.saturating_sub(last.0) > lifetime,
            _ => false,
        }
    }

    /// Tokens that a change at this part would have billed again.
    pub fn warm_after(&self, part: usize, meter: &Meter) -> Tokens {
        let all = self.sums.last().copied().unwrap_or_default();
        let before =
            part.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(self.fixed.measure);
        if part >= self.sums.len() { Tokens::ZERO } else { meter.tokens(all - before).tokens }
    }

    /// Takes in that this view is sent. Costs what differs from the view before it, if each
    /// view of the session is sent through here.
    pub fn send(&mut self, view: &View, meter: &Meter, now: Option<Time>, rule: &CacheRule) -> Sent {
        let parts = view.parts();
        let fixed = view.fixed();
        let cold = self.used && self.is_cold(now, rule);
        let changed = self.used && fixed != self.fixed;
        if changed {
            // System prompt and tools come first: nothing after them is warm.
            self.messages.clear();
        }
        let known = view.unchanged().min(self.messages.len()).min(parts.len());
        let same = parts[known..].iter().zip(&self.messages[known..]);
        let same =
            same.take_while(|(part, before)| Arc::ptr_eq(&part.message, before) || part.message == **before);
        let common = known + same.count();
        let broke = changed || common < self.messages.len();
        self.messages.truncate(common);
        self.sums.truncate(common);
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
        let tail = view.tail().map(|tail| tail.measure).unwrap_or_default();
        let tokens = |measure: Measure| meter.tokens(measure).tokens;
        let read = tokens(warm);
        self.used = true;
        self.fixed = fixed;
        self.last = now.or(self.last);
        Sent { billed: Billed { read, written: tokens(sum + tail) - read }, broke, cold }
    }
}

/// True if an edit saves more than it costs: what it saves at each of the calls to come, at
/// the price of a read, against what is billed again, at what a write costs more than a read.
///
/// ```
/// use longhaul::{Price, Tokens, pays_back};
/// let price = Price { input: 3_000_000, cache_read: 300_000, cache_write: 3_750_000, cache_write_1h: None, output: 15_000_000 };
/// assert!(pays_back(Tokens(40_000), 30, Tokens(60_000), &price));
/// assert!(!pays_back(Tokens(4_000), 30, Tokens(60_000), &price));
/// ```
pub fn pays_back(saves: Tokens, calls: u64, rewrites: Tokens, price: &crate::size::models::Price) -> bool {
    let saved = u128::from(saves.0) * u128::from(calls) * u128::from(price.cache_read);
    let dearer = price.cache_write.saturating_sub(price.cache_read);
    saved > u128::from(rewrites.0) * u128::from(dearer)
}
