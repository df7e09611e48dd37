//! Which sessions are not to be kept any longer: never those that are in use.

use std::time::Duration;

use longhaul_store::{Pruned, Store, StoreError};

use super::Desk;

impl Desk {
    /// Deletes some of the sessions that are not to be kept any longer, and says which.
    pub fn prune(&self) -> Result<Pruned, StoreError> {
        /// So many at once: requests write between them.
        const SOME: usize = 2;
        /// What was used within this time stays.
        const RECENT: Duration = Duration::from_secs(3_600);
        let mut retention = self.settings().retention.clone();
        if retention.keeps_all() {
            return Ok(Pruned::default());
        }
        retention.used_within = retention.used_within.max(RECENT);
        retention.in_use.extend(self.live.used_within(RECENT));
        self.store.prune(&retention, SOME)
    }
}
