//! Who watches an agent and answers its questions: a terminal, a script, a test.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::event::Event;
use crate::tool::Effect;

/// Who watches an agent and answers its questions.
pub trait Front: Send {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);

    /// May this call run?
    fn ask<'a>(&'a mut self, question: Question<'a>)
    -> Pin<Box<dyn Future<Output = Permission> + Send + 'a>>;
}

/// A call that nobody has allowed yet.
#[derive(Debug)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// What it would do.
    pub effect: &'a Effect,
    /// The rule that would let calls like this one run from now on.
    pub rule: Option<&'a str>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// This call may run.
    Once,
    /// Calls like this one may run from now on.
    Always,
    /// It may not; what the user says of it goes to the model.
    No(Option<String>),
}
