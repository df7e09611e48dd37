//! What a summary by a model costs: the two forms of asking for it before it is asked for, and what the
//! provider billed.

use serde::{Deserialize, Serialize};

use crate::size::tokens::Tokens;
use crate::size::usage::{Billed, Usage};

/// How a model is asked for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryForm {
    /// In a new conversation that quotes what is to be summarised.
    Fresh,
    /// Behind the running conversation, whose prefix the provider has in its cache.
    Warm,
}

/// The prompts of both forms, as they are expected to be billed. The answer costs the same in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryPrice {
    /// A new conversation.
    pub fresh: Billed,
    /// Behind the running conversation; `None` where another model is to write, or where the window has
    /// no room for the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<Billed>,
}

impl SummaryPrice {
    /// Nobody has asked what it costs: journals of before version 4.
    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The form that costs less.
    ///
    /// ```
    /// use longhaul::Tokens;
    /// use longhaul::size::Billed;
    /// use longhaul::summary::{SummaryForm, SummaryPrice};
    /// let fresh = Billed { read: Tokens(0), written: Tokens(30_000) };
    /// let warm = Billed { read: Tokens(150_000), written: Tokens(1_000) };
    /// assert_eq!(SummaryPrice { fresh, warm: Some(warm) }.cheaper(), SummaryForm::Warm);
    /// assert_eq!(SummaryPrice { fresh, warm: None }.cheaper(), SummaryForm::Fresh);
    /// ```
    pub fn cheaper(&self) -> SummaryForm {
        match self.warm {
            Some(warm) if warm.cost_milli() < self.fresh.cost_milli() => SummaryForm::Warm,
            _ => SummaryForm::Fresh,
        }
    }
}

/// What a provider billed for summaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryPaid {
    /// How many calls there were.
    pub calls: u64,
    /// Their prompts.
    pub prompt: Billed,
    /// Their answers.
    pub output: Tokens,
}

impl SummaryPaid {
    /// What one call was billed.
    pub fn of(usage: &Usage) -> Self {
        let read = Tokens(usage.cache_read);
        let prompt = Billed { read, written: usage.prompt() - read };
        Self { calls: 1, prompt, output: Tokens(usage.output) }
    }
}

impl std::ops::AddAssign for SummaryPaid {
    fn add_assign(&mut self, more: Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.prompt.read += more.prompt.read;
        self.prompt.written += more.prompt.written;
        self.output += more.output;
    }
}

/// The price of a summary that a model wrote, as its edit keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryBill {
    /// What each form of asking was expected to cost.
    #[serde(flatten)]
    pub expected: SummaryPrice,
    /// What was billed, if the host said so: all calls for this summary, also those whose answers were no
    /// use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<SummaryPaid>,
}
