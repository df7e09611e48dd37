//! The desk as the inspector's host: which conversations are live, and changes of them that their next request has.

use std::sync::Arc;
use std::time::Duration;

use longhaul::Profile;
use longhaul_inspector::access::Access;
use longhaul_inspector::steering::ChangeError;
use longhaul_inspector::{Act, Host, Inspector, Refused, Settings};
use longhaul_store::SessionId;

use super::Desk;

/// A conversation is live that was used within this time.
const LIVE: Duration = Duration::from_secs(600);

impl Desk {
    /// The inspector of its sessions.
    pub(crate) fn inspector(self: Arc<Self>, access: Access) -> Inspector {
        let (settings, store, news) = (self.settings(), self.store.clone(), self.news.clone());
        let settings = Settings {
            profile: settings.profile.clone(),
            profiles: settings.profiles.clone(),
            access,
            read_only: None,
            temporary: false,
        };
        Inspector::new(store, settings).with_host(self, news)
    }
}

impl Host for Desk {
    fn profile(&self) -> Profile {
        self.settings().profile.clone()
    }

    fn live(&self) -> Vec<SessionId> {
        self.live.used_within(LIVE)
    }

    fn change(&self, id: SessionId, act: Act<'_>) -> Option<Result<(), Refused>> {
        let shared = self.live.get(id)?;
        // One that a panic left half done is not used again: what is stored is changed.
        let mut conversation = shared.lock().ok()?;
        if !conversation.is_newest() {
            // Another replica has gone on with it: the store knows it better, and the next request loads it.
            self.live.leave(&shared, &conversation, &super::Refused::Moved);
            return None;
        }
        let changed = conversation.change(act);
        if let Err(ChangeError::Store(_)) = changed {
            // Another replica has gone on with it just now.
            self.live.leave(&shared, &conversation, &super::Refused::Moved);
        }
        Some(changed.map_err(Refused::from))
    }
}
