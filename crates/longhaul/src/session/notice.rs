//! What a person may want to know.

use std::fmt;

use super::Session;
use super::journal::Entry;
use crate::edits::guard::Refusal;
use crate::policy::breaker::Tripped;
use crate::size::tokens::Tokens;

/// Why tokens leave little room for the next steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// They are system prompt, tools and text that no compaction takes.
    Always,
    /// A compaction has just left them: they are the newest steps too.
    ForNow,
}

/// How little room there is for the next steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cramped {
    /// The tokens that stay.
    pub tokens: Tokens,
    /// Why they do.
    pub stays: Stays,
    /// The hard limit.
    pub hard: Tokens,
    /// The size of an average step.
    pub step: Tokens,
}

impl fmt::Display for Cramped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, stays, hard, step } = *self;
        let steps = match (hard - tokens).0 / step.0.max(1) {
            1 => "one step".to_owned(),
            steps => format!("{steps} steps"),
        };
        let (stay, tools) = match stays {
            Stays::Always if tokens.0 > hard.0 / 2 => ("always stay", " or fewer tools"),
            Stays::Always => ("always stay", ""),
            Stays::ForNow => ("are left after a compaction", ""),
        };
        write!(f, "room for {steps} of {step} tokens: {tokens} of {hard} {stay}; use a larger window{tools}")
    }
}

/// Something that a person may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The prompt has grown past the warning of the budget. Said once each time it does.
    Large {
        /// The size of the prompt.
        size: Tokens,
        /// The warning that it passed.
        warn: Tokens,
    },
    /// A strategy proposed an edit that the guard refused.
    Refused {
        /// The strategy.
        strategy: &'static str,
        /// Why.
        refusal: Refusal,
    },
    /// What no compaction can take leaves room for fewer than eight average steps. Reported once.
    Cramped(Cramped),
    /// Compaction is stopped for a while, or done without a model.
    Stopped(Tripped),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large { size, warn } => write!(f, "the prompt has {size} tokens, more than {warn}"),
            Self::Cramped(cramped) => cramped.fmt(f),
            Self::Refused { strategy, refusal } => write!(f, "{strategy}: {refusal}"),
            Self::Stopped(tripped) => tripped.fmt(f),
        }
    }
}

impl Session {
    /// What a person may want to know, since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Makes something happen, and says if the breaker stops compaction for it.
    pub(super) fn record_and_watch(&mut self, entry: Entry) {
        let before = self.stopped().cloned();
        self.record(entry);
        let now = self.stopped().filter(|now| before.as_ref() != Some(*now)).cloned();
        now.into_iter().for_each(|tripped| self.notice(Notice::Stopped(tripped)));
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        /// A host that never asks does not fill memory.
        const MOST: usize = 64;
        if self.notices.len() == MOST {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }
}
