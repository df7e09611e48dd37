//! Upstreams that count the answer that a request allows with its prompt, by model. One conversation learns it from a
//! refusal; the others use it from then on, also after a restart.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use longhaul::{Overflow, Tokens};
use longhaul_store::{Store, StoreError, UpstreamLimit};

/// Limits kept at most: clients choose the names of models, so there is no end to them.
const MOST: usize = 1_000;

/// The limits that upstreams have shown.
#[derive(Debug)]
pub(super) struct UpstreamLimits {
    store: Arc<dyn Store>,
    known: RwLock<HashMap<Key, Tokens>>,
}

/// An upstream and a model.
type Key = (Box<str>, Box<str>);

impl UpstreamLimits {
    /// The limits in the store.
    pub(super) fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let stored = store.limits()?.into_iter();
        // A store of an older version may hold one that no provider has.
        let stored = stored.filter(|limit| limit.window >= Overflow::SMALLEST_WINDOW);
        let known = stored.map(|limit| ((limit.upstream, limit.model), limit.window));
        let known = RwLock::new(known.collect());
        Ok(Self { store, known })
    }

    /// The window in which this upstream wants prompt and allowed answer together, if it is known to want that.
    pub(super) fn window(&self, upstream: &str, model: &str) -> Option<Tokens> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // Most upstreams have no such limit, and most gateways know of none.
        if known.is_empty() { None } else { known.get(&(upstream.into(), model.into())).copied() }
    }

    /// An upstream refused a request. A limit that cannot be stored is known until the gateway stops.
    pub(super) fn refused(&self, upstream: &str, model: &str, overflow: Overflow) {
        let (Some(_), Some(window)) = (overflow.answer, overflow.believed_window()) else { return };
        if self.window(upstream, model) == Some(window) {
            return;
        }
        {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let key = (upstream.into(), model.into());
            if known.len() >= MOST && !known.contains_key(&key) {
                return;
            }
            known.insert(key, window);
        }
        let limit = UpstreamLimit { upstream: upstream.into(), model: model.into(), window };
        if let Err(error) = self.store.keep_limit(&limit) {
            tracing::warn!(%error, "the limit of an upstream was not stored");
        }
    }
}
