//! A profile: triggers, ladder and constants of one way to compact, as a value. Other ways are
//! other values, not other code.

use crate::budget::Shares;
use crate::strategy::{self, Strategy};

/// One way to compact.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: Box<str>,
    /// Where limits stand in the window.
    pub shares: Shares,
    /// A result enters with at most so many bytes, and a handle of the rest.
    pub entry_bytes: usize,
    /// A result enters without its noise: tests that passed, packages that were fetched, data.
    pub entry_digests: bool,
    /// What is tried, in this order, until the target is met.
    pub ladder: Vec<&'static Strategy>,
    /// The newest part of the history that no rung touches unless the hard limit demands it,
    /// in percent of the window.
    pub keep_recent: u8,
    /// The longest summary, in percent of the window.
    pub summary: u8,
    /// Who writes summaries.
    pub summariser: Summariser,
    /// Compact down to the target whenever the provider's cache has lost the prefix anyway.
    pub when_cold: bool,
}

/// Who writes summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summariser {
    /// The built-in extractor: no model, no network.
    Extractor,
    /// The host, asked by a job. The extractor steps in when it fails.
    Host,
}

impl Profile {
    /// The default: fold what is finished, then digest old results. An extract of a run keeps the
    /// best lines of all of it, where digests keep some of each result; folding first costs less
    /// and keeps more (docs/measuring.md).
    pub fn longhaul() -> Self {
        Self {
            name: "longhaul".into(),
            shares: Shares { warn: 70, trigger: 75, target: 50 },
            entry_bytes: 50_000,
            entry_digests: true,
            ladder: vec![&strategy::FOLD_TURNS, &strategy::FOLD_STEPS, &strategy::OLD_RESULTS],
            keep_recent: 15,
            summary: 30,
            summariser: Summariser::Extractor,
            when_cold: true,
        }
    }

    /// Nothing but the digests on entry, to see what they are worth.
    pub fn entry_only() -> Self {
        Self { name: "entry digests only".into(), ladder: Vec::new(), when_cold: false, ..Self::longhaul() }
    }

    /// All built-in profiles.
    pub fn all() -> Vec<Self> {
        vec![Self::longhaul()]
    }

    /// The built-in profile of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| &*profile.name == name)
    }
}
