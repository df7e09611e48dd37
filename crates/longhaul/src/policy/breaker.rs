//! The breaker: stops compaction that does not help or comes too often, and says why. The
//! hard limit passes it by.

use std::collections::VecDeque;

use crate::size::tokens::Tokens;

/// Compactions in so many calls are too many.
const OFTEN: (usize, u64) = (3, 6);
/// So many calls without compaction follow.
const REST: u64 = 6;
/// A compaction that frees less than this share of the view has done nothing, in percent.
const LEAST_PERCENT: u64 = 5;
/// Failed summaries in a row.
const FAILURES: u32 = 3;
/// After so many calls it is asked again.
const FORGIVEN: u64 = 24;

/// Why compaction is stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tripped {
    /// It freed next to nothing, and would again.
    #[error("compaction freed {freed} of {size} tokens and is stopped until the view has grown")]
    NoProgress {
        /// The size before.
        size: Tokens,
        /// What was freed.
        freed: Tokens,
    },
    /// It came again and again.
    #[error("{} compactions in {} calls: stopped for {REST} calls", OFTEN.0, OFTEN.1)]
    TooOften,
    /// The model that summarises fails: the extractor does it alone.
    #[error("{FAILURES} summaries failed in a row: none is asked for in the next {FORGIVEN} calls")]
    Failures,
}

/// Watches compactions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    recent: VecDeque<u64>,
    tripped: Option<(Tripped, u64)>,
    failures: u32,
    failed_at: u64,
}

impl Breaker {
    /// A compaction was made at this call.
    pub(crate) fn compacted(&mut self, call: u64, before: Tokens, after: Tokens, trigger: Tokens) {
        let freed = before - after;
        self.recent.push_back(call);
        while self.recent.front().is_some_and(|first| first.saturating_add(OFTEN.1) <= call) {
            self.recent.pop_front();
        }
        if after > trigger && freed.0.saturating_mul(100) < before.0.saturating_mul(LEAST_PERCENT) {
            self.tripped = Some((Tripped::NoProgress { size: before, freed }, call));
        } else if self.recent.len() >= OFTEN.0 {
            self.tripped = Some((Tripped::TooOften, call));
        }
    }

    /// A compaction begins at this call, of a view of this size: what stopped others is over.
    pub(crate) fn expire(&mut self, call: u64, size: Tokens) {
        if self.tripped(call, size).is_none() && self.tripped.is_some() {
            self.tripped = None;
            self.recent.clear();
        }
    }

    /// Why none may be made at this call, if the view is of this size.
    pub(crate) fn tripped(&self, call: u64, size: Tokens) -> Option<&Tripped> {
        let (why, since) = self.tripped.as_ref()?;
        let over = match why {
            // A tenth more is worth another try.
            Tripped::NoProgress { size: then, .. } => size > *then + Tokens(then.0 / 10),
            Tripped::TooOften => call >= since.saturating_add(REST),
            Tripped::Failures => false,
        };
        (!over).then_some(why)
    }

    /// Why compaction is stopped at this call, or done without a model.
    pub(crate) fn why(&self, call: u64, size: Tokens) -> Option<&Tripped> {
        let failing = self.summaries_fail(call).then_some(&Tripped::Failures);
        failing.or(self.tripped(call, size))
    }

    /// Something changed: a person asked, undid, or took another model.
    pub(crate) fn reset(&mut self) {
        self.tripped = None;
        self.failures = 0;
        self.recent.clear();
    }

    /// A summary was made, or failed.
    pub(crate) fn summary(&mut self, call: u64, made: bool) {
        self.failures = if made { 0 } else { self.failures.saturating_add(1) };
        self.failed_at = call;
    }

    pub(crate) fn summaries_fail(&self, call: u64) -> bool {
        self.failures >= FAILURES && call < self.failed_at.saturating_add(FORGIVEN)
    }
}
