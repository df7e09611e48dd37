//! The cache model: what the provider's prompt cache has, for how long, and what follows. A
//! request that extends the one before is cheap; one that differs early is billed again from
//! there on; after the cache's lifetime everything is.

use std::sync::Arc;

use crate::conversation::log::Position;
use crate::conversation::message::{Message, Time};
use crate::size::meter::{Measure, Meter};
use crate::size::models::{CacheKind, CacheRule};
use crate::size::tokens::Tokens;
use crate::size::usage::Billed;
use crate::view::{Fixed, Part, View};

/// The prefix that the provider has seen: the request that was sent last.
#[derive(Debug, Clone, Default)]
pub struct PromptCache {
    fixed: Fixed,
    messages: Vec<Arc<Message>>,
    /// The size up to and including each message.
    sums: Vec<Measure>,
    /// Where each message stands in the log, or what it stands for begins.
    starts: Vec<Position>,
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

    /// A request was sent at this time, if it is known.
    pub(crate) fn used_at(&mut self, time: Option<Time>) {
        self.last = time.or(self.last);
    }

    /// The time since the request before, in seconds, if it is known.
    pub(crate) fn pause(&self, now: Option<Time>) -> Option<u64> {
        u64::try_from(now?.0.saturating_sub(self.last?.0) / 1_000_000).ok()
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

    /// True if the prefix that was sent last stands behind another frame than this one: nothing of
    /// it can be read.
    pub fn is_behind_another_frame(&self, frame_version: usize) -> bool {
        self.used && self.fixed.version != frame_version
    }

    /// True if this view does not extend the request that was sent last, or none was sent: what stands before
    /// its first change may be written anew without breaking more.
    pub(crate) fn is_broken_by(&self, view: &View) -> bool {
        !self.used || self.common(view) < self.messages.len()
    }

    /// Tokens that a change of this message would have billed again.
    pub(crate) fn warm_after(&self, at: Position, meter: &Meter) -> Tokens {
        let part = self.starts.partition_point(|start| *start < at);
        let all = self.sums.last().copied().unwrap_or_default();
        let before =
            part.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(self.fixed.measure);
        if part >= self.sums.len() { Tokens::ZERO } else { meter.tokens(all - before).tokens }
    }

    /// How many parts of a view are the same as in the request that was sent last.
    fn common(&self, view: &View) -> usize {
        if self.fixed.version != view.fixed().version {
            // System prompt and tools come first: nothing after them is warm.
            return 0;
        }
        let parts = view.parts();
        let known = view.unchanged().min(self.messages.len()).min(parts.len());
        let same = parts[known..].iter().zip(&self.messages[known..]);
        let same =
            same.take_while(|(part, before)| Arc::ptr_eq(&part.message, before) || part.message == **before);
        known + same.count()
    }

    /// What sending this view would do. Costs what differs from the view that was sent last.
    pub fn compare(&self, view: &View, meter: &Meter, now: Option<Time>, rule: &CacheRule) -> Sent {
        let cold = self.used && self.is_cold(now, rule);
        let changed = self.is_behind_another_frame(view.fixed().version);
        let common = self.common(view);
        let broke = changed || common < self.messages.len();
        let warm = match common.checked_sub(1).and_then(|last| self.sums.get(last)) {
            Some(sum) => *sum,
            None if self.used && !changed => view.fixed().measure,
            None => Measure::default(),
        };
        let tokens = |measure: Measure| meter.tokens(measure).tokens;
        let read = tokens(warm);
        Sent { billed: Billed { read, written: tokens(view.measure()) - read }, broke, cold }
    }

    /// Takes in that this view is sent. Costs what differs from the view that was sent before.
    pub(crate) fn send(&mut self, view: &View, start_of: impl Fn(&Part) -> Position) {
        let common = self.common(view);
        self.messages.truncate(common);
        self.sums.truncate(common);
        // What was found by content may stand elsewhere in the log now.
        let placed = view.unchanged().min(common);
        self.starts.truncate(placed);
        let mut sum = self.sums.last().copied().unwrap_or(view.fixed().measure);
        for part in &view.parts()[common..] {
            sum += part.measure;
            self.messages.push(part.message.clone());
            self.sums.push(sum);
        }
        for part in &view.parts()[placed..] {
            // Rules stand behind system messages and belong to no place: the order is kept.
            let start = start_of(part).max(self.starts.last().copied().unwrap_or_default());
            self.starts.push(start);
        }
        self.used = true;
        self.fixed = view.fixed();
    }
}

/// True if an edit saves more than it costs: what it saves at each of the calls to come, at
/// the price of a read, against what is billed again, at what a write costs more than a read.
///
/// ```
/// use longhaul::Tokens;
/// use longhaul::size::Price;
/// use longhaul::view::pays_back;
/// let price = Price { input: 3_000_000, cache_read: 300_000, cache_write: 3_750_000, cache_write_1h: None, output: 15_000_000 };
/// assert!(pays_back(Tokens(40_000), 30, Tokens(60_000), &price));
/// assert!(!pays_back(Tokens(4_000), 30, Tokens(60_000), &price));
/// ```
pub fn pays_back(saves: Tokens, calls: u64, rewrites: Tokens, price: &crate::size::models::Price) -> bool {
    let saved = u128::from(saves.0) * u128::from(calls) * u128::from(price.cache_read);
    let dearer = price.cache_write.saturating_sub(price.cache_read);
    saved > u128::from(rewrites.0) * u128::from(dearer)
}
