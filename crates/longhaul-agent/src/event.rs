//! What happens while an agent works: for who watches it.

use longhaul::summary::SummaryPaid;
use longhaul::{Tokens, Usage};
use serde_json::Value;

use crate::envelope::Envelope;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The model says this.
    Text(&'a str),
    /// The model thinks this.
    Thinking(&'a str),
    /// What came of the reply so far is void: it is asked for again.
    Void,
    /// A reply of the model is whole.
    Replied {
        /// What the provider billed.
        usage: Option<&'a Usage>,
    },
    /// A provider has billed calls for a summary.
    SummaryBilled(SummaryPaid),
    /// A tool is called.
    Called {
        /// Names the call.
        id: &'a str,
        /// The tool.
        tool: &'a str,
        /// As the model wrote them.
        arguments: &'a Value,
    },
    /// A call was answered.
    Answered {
        /// Names the call.
        id: &'a str,
        /// The tool.
        tool: &'a str,
        /// What it said.
        envelope: &'a Envelope,
    },
    /// A summary is being written, and the work waits for it.
    Summarising,
    /// Something was taken out of the conversation.
    Compacted(Compaction),
    /// A request goes out.
    Sending {
        /// Its size.
        prompt: Tokens,
        /// What may be sent at most.
        limit: Tokens,
        /// The size of the whole conversation.
        whole: Tokens,
    },
    /// Something that a person may want to know.
    Notice(&'a str),
}

/// What a compaction took out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// How many edits it made.
    pub edits: usize,
    /// What they replaced.
    pub before: Tokens,
    /// What stands in its place.
    pub after: Tokens,
    /// The strategies that made them, each once.
    pub strategies: Vec<String>,
    /// Why.
    pub why: String,
}
