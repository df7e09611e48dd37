//! What is done while nobody asks: sessions go that are not to be kept any longer, and what could not be stored is
//! stored.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::Pruned;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::engine::Engine;
use crate::figures::Counters;

/// How often it is looked whether sessions are to go.
const EVERY: Duration = Duration::from_secs(3_600);

/// Requests have so much time between two of its parts.
const PAUSE: Duration = Duration::from_millis(50);

/// How often it is looked whether something could not be stored.
const TENDED: Duration = Duration::from_secs(1);

/// Deletes what is not to be kept any longer: now, every hour, and whenever it is told that settings have changed. Stores
/// what could not be stored.
pub(crate) async fn keep_up(engine: Engine, counters: Arc<Counters>, changed: Arc<Notify>) {
    let pruning = async {
        loop {
            prune(&engine, &counters).await;
            _ = timeout(EVERY, changed.notified()).await;
        }
    };
    let tending = async {
        loop {
            sleep(TENDED).await;
            engine.tend().await;
        }
    };
    tokio::join!(pruning, tending);
}

async fn prune(engine: &Engine, counters: &Counters) {
    let (mut sessions, mut bytes) = (0, 0);
    let failed = loop {
        match engine.prune().await {
            Ok(Pruned { sessions: gone, .. }) if gone.is_empty() => break None,
            Ok(gone) => {
                counters.pruned(gone.sessions.len(), gone.bytes);
                sessions += gone.sessions.len();
                bytes += gone.bytes;
                sleep(PAUSE).await;
            }
            Err(problem) => break Some(problem),
        }
    };
    if sessions > 0 {
        tracing::info!(sessions, bytes, "deleted what is not kept any longer");
    }
    if let Some(problem) = failed {
        tracing::warn!(problem, "what is not kept any longer cannot be deleted now");
    }
}
