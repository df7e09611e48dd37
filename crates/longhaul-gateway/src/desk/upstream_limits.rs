//! Upstreams that count the answer that a request allows with its prompt, by model. One conversation learns it from a
//! refusal; the others use it from then on, also after a restart. After a week it is forgotten: providers change their
//! limits, and only a request that is refused again shows whether this one still holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use longhaul::{Overflow, Time, Tokens};
use longhaul_store::{Store, StoreError, UpstreamLimit};

/// Limits kept at most: clients choose the names of models, so there is no end to them.
const MOST: usize = 1_000;

/// A limit holds for so long after a refusal, in microseconds.
const WEEK: i64 = 7 * 24 * 3_600 * 1_000_000;

/// The limits that upstreams have shown.
#[derive(Debug)]
pub(super) struct UpstreamLimits {
    store: Arc<dyn Store>,
    known: RwLock<HashMap<Key, Limit>>,
    /// How often the store had another file when it had all that is known; `None` if it lacks something.
    stored: Mutex<Option<u64>>,
}

/// An upstream and a model.
type Key = (Box<str>, Box<str>);

/// The window in which prompt and allowed answer must fit together.
#[derive(Debug, Clone, Copy)]
struct Limit {
    window: Tokens,
    learnt: Time,
}

impl Limit {
    fn holds(&self, now: Time) -> bool {
        now.0.saturating_sub(self.learnt.0) < WEEK
    }
}

impl UpstreamLimits {
    /// The limits in the store.
    pub(super) fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let stored = store.limits()?.into_iter();
        // A store of an older version may hold one that no provider has.
        let stored = stored.filter(|limit| limit.window >= Overflow::SMALLEST_WINDOW);
        let known = stored.map(|UpstreamLimit { upstream, model, window, learnt }| {
            ((upstream, model), Limit { window, learnt })
        });
        let known = RwLock::new(known.collect());
        let stored = Mutex::new(Some(store.replaced()));
        Ok(Self { store, known, stored })
    }

    /// The window in which this upstream wants prompt and allowed answer together, if it is known to want that.
    pub(super) fn window(&self, upstream: &str, model: &str, now: Time) -> Option<Tokens> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // Most upstreams have no such limit, and most gateways know of none.
        if known.is_empty() {
            return None;
        }
        let limit = known.get(&(upstream.into(), model.into()));
        limit.filter(|limit| limit.holds(now)).map(|limit| limit.window)
    }

    /// An upstream refused a request. A limit that cannot be stored is stored later.
    pub(super) fn refused(&self, upstream: &str, model: &str, overflow: Overflow, now: Time) {
        let (Some(_), Some(window)) = (overflow.answer, overflow.believed_window()) else { return };
        if self.window(upstream, model, now) == Some(window) {
            return;
        }
        {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let key = (upstream.into(), model.into());
            if known.len() >= MOST && !known.contains_key(&key) {
                known.retain(|_, limit| limit.holds(now));
                if known.len() >= MOST {
                    return;
                }
            }
            known.insert(key, Limit { window, learnt: now });
        }
        let limit = UpstreamLimit { upstream: upstream.into(), model: model.into(), window, learnt: now };
        if self.store.keep_limit(&limit).is_err() {
            *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Stores what could not be stored, or is no longer where it was stored.
    pub(super) fn tend(&self) {
        let replaced = Some(self.store.replaced());
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if *stored == replaced {
            return;
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        let limits = known.into_iter().map(|((upstream, model), Limit { window, learnt })| UpstreamLimit {
            upstream,
            model,
            window,
            learnt,
        });
        if limits.into_iter().all(|limit| self.store.keep_limit(&limit).is_ok()) {
            *stored = replaced;
        }
    }
}
