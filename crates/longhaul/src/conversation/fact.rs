//! What the host knows and says beside the messages: [`Fact`]s (project rules, todos,
//! memories, git stat, goal, pins, technical context) and frames. Appended to the log when they change; the
//! newest of a kind and key holds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::frame::Frame;
use crate::conversation::log::Position;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A file of project rules; the key is its path.
    Rules,
    /// The task list.
    Todos,
    /// Something to remember; the key names it.
    Memory,
    /// What `git diff --stat` says.
    GitStat,
    /// What the work is for.
    Goal,
    /// Text that must stay; the key names it.
    Pin,
    /// Languages, frameworks and versions: for summaries that have a place for it.
    Stack,
    /// Operating system, shell and variables that matter: for summaries that have a place for it.
    Environment,
}

/// Something the host knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is about.
    pub kind: FactKind,
    /// Which one, where a kind has several; empty otherwise.
    pub key: Box<str>,
    /// What is known; `None` takes it back.
    pub text: Option<Box<str>>,
}

impl Fact {
    /// A fact of which there is one.
    pub fn new(kind: FactKind, text: impl Into<Box<str>>) -> Self {
        Self { kind, key: "".into(), text: Some(text.into()) }
    }

    /// A fact of which there are several, by key.
    pub fn keyed(kind: FactKind, key: impl Into<Box<str>>, text: impl Into<Box<str>>) -> Self {
        Self { kind, key: key.into(), text: Some(text.into()) }
    }

    /// Takes back what was known.
    pub fn gone(kind: FactKind, key: impl Into<Box<str>>) -> Self {
        Self { kind, key: key.into(), text: None }
    }
}

/// What can stand in a log beside messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The host said something.
    Fact(Arc<Fact>),
    /// The frame changed.
    Frame(Arc<Frame>),
}

/// A note and where it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The number of messages that stood before it.
    pub at: Position,
    /// What was said.
    pub note: Note,
}
