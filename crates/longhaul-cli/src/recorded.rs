//! Recorded sessions, which no model answers any more.

use longhaul::{Profile, Summariser};

/// A profile for recorded sessions: no model is asked, the extractor writes summaries.
pub fn without_model(profile: Profile) -> Profile {
    Profile { summariser: Summariser::Extractor, ..profile }
}
