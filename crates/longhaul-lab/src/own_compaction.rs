//! What agents do without Longhaul when their window is nearly full: they have a model summarise everything but the
//! newest part. A stand-in for it: when it is due, what it costs, and how much is left.

/// An agent's own compaction. `bench` compares profiles with it, and the gateway estimates by it what a conversation would
/// have cost without Longhaul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnCompaction {
    /// It is due when more than this share of the window is full.
    pub percent: u64,
    /// Tokens of the newest part, which stays as it is.
    pub keep: u64,
}

impl OwnCompaction {
    /// The one that stands for most agents.
    pub const USUAL: Self = Self { percent: 80, keep: 20_000 };

    /// Tokens of the summary.
    pub const SUMMARY: u64 = 2_500;

    /// True if a context of this size is compacted.
    pub fn is_due(self, size: f64, window: f64) -> bool {
        size > window * self.percent as f64 / 100.0
    }

    /// What is left of a context of this size, of which so much stands before the messages and stays.
    pub fn left_of(self, size: u64, before_messages: u64) -> u64 {
        let kept = before_messages.saturating_add(Self::SUMMARY).saturating_add(self.keep);
        kept.min(size)
    }
}
