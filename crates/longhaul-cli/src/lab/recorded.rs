//! Recorded sessions, which no model answers any more.

use clap::ValueEnum;
use longhaul::{Profile, Summariser};

/// A profile for recorded sessions: no model is asked, the extractor writes summaries.
pub fn without_model(profile: Profile) -> Profile {
    Profile { summariser: Summariser::Extractor, ..profile }
}

/// How tokens are counted.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeterKind {
    /// UTF-8 bytes / 4, and 4 per message: the same for every model
    Neutral,
    /// The model's tokenizer, corrected by what its usage teaches
    Model,
}
