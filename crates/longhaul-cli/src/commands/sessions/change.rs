//! A change of a stored session, as subcommands make it: what it gave, and what it does to the next request.

use std::sync::Arc;

use longhaul::{Profile, Session};
use longhaul_inspector::steering::{self, ChangeError, Difference};
use longhaul_store::{SessionId, Store};

use crate::error::Failure;

/// Changes a session by `act`, and stores it.
pub fn change<T>(
    store: &Arc<dyn Store>,
    id: SessionId,
    profile: &Profile,
    act: impl Fn(&mut Session) -> Result<T, Failure>,
) -> Result<(T, Difference), Failure> {
    let changed = steering::change(store, id, profile, act).map_err(|error| match error {
        ChangeError::Act(failure) => failure,
        ChangeError::Store(error) => error.into(),
        busy @ ChangeError::Busy(_) => Failure::Failed(busy.to_string()),
    })?;
    let difference = Difference::between(&changed.before, &changed.after);
    Ok((changed.done, difference.map_err(|error| Failure::Failed(error.to_string()))?))
}
