//! Which sessions go, whatever they are stored in.

use crate::error::StoreError;
use crate::rows::Now;
use crate::store::{Meta, Pruned, Retention};

impl Retention {
    /// True if a session goes that was written to last at this moment, while the store takes so many bytes.
    pub(crate) fn lets_go(&self, updated: i64, used: impl FnOnce() -> u64, now: Now) -> bool {
        let age = u128::try_from(now.0.saturating_sub(updated)).unwrap_or_default();
        age > self.used_within.as_micros()
            && (self.older_than.is_some_and(|longest| age > longest.as_micros())
                || self.larger_than.is_some_and(|most| used() > most))
    }
}

/// The sessions that would go, of these, the newest first. What each alone takes is not known: it is taken for its
/// share of all.
pub(crate) fn would_prune(
    metas: Vec<Meta>,
    mut used: u64,
    retention: &Retention,
    now: Now,
) -> Result<Pruned, StoreError> {
    let all: u64 = metas.iter().map(|meta| meta.bytes).sum();
    let share = |bytes: u64, whole: u64| {
        let share = u128::from(whole) * u128::from(bytes) / u128::from(all.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    };
    let (whole, mut pruned) = (used, Pruned::default());
    for meta in metas.iter().rev().filter(|meta| !retention.in_use.contains(&meta.id)) {
        if !retention.lets_go(meta.updated.0, || used, now) {
            break;
        }
        let bytes = share(meta.bytes, whole);
        used = used.saturating_sub(bytes);
        pruned.bytes += bytes;
        pruned.sessions.push(meta.id);
    }
    Ok(pruned)
}
