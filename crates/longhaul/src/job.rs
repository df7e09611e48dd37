//! A summary that somebody outside has to write: [`Job`]. The engine asks for it and goes on
//! when it is answered; an answer to what is no longer the question is dropped.

use std::sync::Arc;

use crate::archive::Handle;
use crate::edit::Why;
use crate::log::Span;
use crate::message::Message;
use crate::tokens::Tokens;

/// A summary to be written.
#[derive(Debug, Clone)]
pub struct Job {
    /// Names the job; none is used twice in a session.
    pub id: u64,
    /// The ledger it was asked from.
    pub revision: usize,
    /// What is to be folded.
    pub spans: Vec<Span>,
    /// The handle of all that it covers: an answer is for this and nothing else.
    pub covers: Handle,
    /// The summary of what came before, which goes into the new one.
    pub earlier: Option<Box<str>>,
    /// The messages to summarise.
    pub messages: Vec<Arc<Message>>,
    /// The longest answer that is taken.
    pub limit: Tokens,
    pub(crate) why: Why,
    pub(crate) strategy: &'static str,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The summary.
    Summary(String),
    /// There is none: an error, a time-out.
    Failed(String),
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The fold was made.
    Folded,
    /// The answer was not usable; the built-in extractor wrote the summary. Says why.
    Extracted(String),
    /// The question no longer stands. Says why.
    Dropped(String),
}
