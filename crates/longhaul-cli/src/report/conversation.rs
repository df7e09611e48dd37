//! What a file says of one conversation: values that a cache can keep. Dollars are none of them:
//! prices may change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A conversation of a file: the main one, or a side chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The session that it belongs to, as the agent names it.
    pub session: String,
    /// Which conversation of its file it is, where a file holds several that are no side chains.
    pub number: usize,
    /// True for a side chain: the work of a sub-agent.
    pub side: bool,
    /// The session that this one was forked from, where the file repeats what that one was billed for.
    pub forked_from: Option<String>,
    /// The folder that was worked in.
    pub project: String,
    /// Names of models; calls refer to them by number.
    pub models: Vec<String>,
    pub calls: Vec<Call>,
    /// Answers without usage: nothing is known of their bill.
    pub unbilled: u64,
    /// Prompt tokens by what they were, over all calls. Their sum is that of the prompts.
    pub filled: BTreeMap<Part, u64>,
    pub compactions: Vec<Compaction>,
    /// The largest results, the largest first.
    pub largest: Vec<LargeResult>,
    /// What came more than once, the largest first.
    pub repeated: Vec<Repeated>,
}

/// One call of a model, as it was billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "CallRow", into = "CallRow")]
pub struct Call {
    /// Seconds since 1970; 0 if nobody knows.
    pub at: i64,
    /// Which of the conversation's models answered.
    pub model: u32,
    /// Prompt tokens that no cache is involved in.
    pub input: u64,
    /// Prompt tokens read from the cache.
    pub read: u64,
    /// Prompt tokens written to the cache, those for an hour among them.
    pub write: u64,
    pub write_1h: u64,
    pub output: u64,
    /// Names the call: one with the same key in another file is the same call.
    pub key: u64,
    /// Dollars that the agent itself wrote down, in millionths.
    pub said_micros: u64,
}

impl Call {
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.write)
    }

    /// True if the provider reported nothing.
    pub fn is_empty(&self) -> bool {
        self.prompt() == 0 && self.output == 0
    }
}

/// A call in the cache: a list, not an object, because there are many.
type CallRow = (i64, u32, u64, u64, u64, u64, u64, u64, u64);

impl From<CallRow> for Call {
    fn from((at, model, input, read, write, write_1h, output, key, said_micros): CallRow) -> Self {
        Self { at, model, input, read, write, write_1h, output, key, said_micros }
    }
}

impl From<Call> for CallRow {
    fn from(c: Call) -> Self {
        (c.at, c.model, c.input, c.read, c.write, c.write_1h, c.output, c.key, c.said_micros)
    }
}

/// What a part of a prompt is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Part {
    /// System prompt, tools, and what else the file does not hold.
    System,
    /// What a person said.
    Person,
    /// What the agent put in the person's place: reminders, rules, attachments.
    Host,
    /// The model's own words.
    Words,
    /// The model's calls: names and arguments.
    Calls,
    Thinking,
    /// Summaries of what was compacted.
    Summaries,
    /// Results of this tool.
    Results(String),
}

const RESULTS: &str = "results of ";

impl Part {
    /// The name, for people and for scripts.
    pub fn name(&self) -> String {
        match self {
            Self::System => "system prompt and tools".to_owned(),
            Self::Person => "what you said".to_owned(),
            Self::Host => "reminders and attachments".to_owned(),
            Self::Words => "the model's words".to_owned(),
            Self::Calls => "the model's calls".to_owned(),
            Self::Thinking => "thinking".to_owned(),
            Self::Summaries => "summaries".to_owned(),
            Self::Results(tool) => format!("{RESULTS}{tool}"),
        }
    }

    const PLAIN: [Self; 7] =
        [Self::System, Self::Person, Self::Host, Self::Words, Self::Calls, Self::Thinking, Self::Summaries];
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        part.name()
    }
}

impl From<String> for Part {
    fn from(name: String) -> Self {
        match name.strip_prefix(RESULTS) {
            Some(tool) => Self::Results(tool.to_owned()),
            None => Self::PLAIN.into_iter().find(|part| part.name() == name).unwrap_or(Self::Host),
        }
    }
}

/// The agent made its history shorter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    pub at: i64,
    /// The model of the calls around it.
    pub model: u32,
    /// True if the agent began it itself; `None` if the file does not say.
    pub automatic: Option<bool>,
    /// Tokens of the prompt before it.
    pub before: u64,
    /// Tokens of the next prompt; 0 if there was none.
    pub after: u64,
    /// Of those, tokens that were not read from the cache.
    pub rewritten: u64,
    /// Tokens of the summary.
    pub summary: u64,
    /// Tokens of results that came again behind it.
    pub read_again: u64,
}

/// A single result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeResult {
    pub tool: String,
    /// What the tool was asked: a path, a command.
    pub what: String,
    pub tokens: u64,
    /// Calls that it was sent with.
    pub carried: u64,
    pub at: i64,
}

/// The same thing, asked for more than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    pub tool: String,
    pub what: String,
    /// How often it came.
    pub times: u64,
    /// How often it was word for word what had come before.
    pub unchanged: u64,
    /// Tokens of all but the first.
    pub tokens: u64,
}
