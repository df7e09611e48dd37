//! What an API is to the rest of this folder. A new API is a file that implements [`Format`], and a
//! row of `Api`.

use std::sync::Arc;

use longhaul::{Message, Tool};
use serde_json::Value as Parsed;

use super::LeftOut;
use super::marks::ClientMark;
use super::write::Object;
use crate::fields::FieldError;
use crate::scan::Value;

/// An API: how its list is read and written, and what it calls things.
pub(super) trait Format: Sync {
    /// What it calls things.
    fn row(&self) -> &'static Row;

    /// Whether a body is a request of this API and of none that was asked before.
    fn resembles(&self, body: &Parsed) -> bool;

    /// Reads the elements that can stand alone next: one, or several that are one message.
    fn read<'a>(&self, elements: &[Value<'a>]) -> Result<Group, (usize, FieldError)>;

    /// Whether what follows this message in the list may become a part of it.
    fn may_grow(&self, _message: &Message) -> bool {
        false
    }

    /// How many of the first messages are written together.
    fn together(&self, messages: &[Arc<Message>]) -> usize;

    /// How many of the first messages are written as one because a text of ours is among them; fewer than two if none is.
    fn joined(&self, _messages: &[Arc<Message>]) -> usize {
        0
    }

    /// Writes messages that go together, from their raw texts if nobody touched them. They stand in
    /// `all` from `at` on.
    fn write(&self, all: &[Arc<Message>], at: usize, together: usize, left_out: &mut LeftOut) -> Unit;

    /// What must stand before this message if it is the first.
    fn opening(&self, _first: &Message) -> Option<String> {
        None
    }

    /// Names of settings that other APIs have too: the common name, and the one here.
    fn names(&self) -> &'static [(&'static str, &'static str)];

    /// Settings that the API wants, with what they are if nobody says it.
    fn wanted(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// A value of a common setting, as this API takes it; `None` if it takes it as it is.
    fn fit(&self, _name: &str, _value: &Parsed) -> Option<String> {
        None
    }

    /// Whether a tool is written in this API's own way.
    fn is_tool(&self, definition: &Parsed) -> bool;

    /// A tool that the host runs.
    fn write_tool(&self, tool: &Tool, about: Option<&str>, schema: &str) -> String;

    /// Which tool the model must take: `auto`, `none`, `any`, or one by its name.
    fn write_choice(&self, choice: Choice<'_>) -> String;

    /// Adds the system prompt to a body, or to the list as its first element. `marks` are those of its
    /// blocks.
    fn write_system(&self, body: Object, texts: &[&str], marks: &[Option<&str>]) -> (Object, Option<String>);
}

/// What an API calls things, and what it has.
pub(super) struct Row {
    /// The name on the command line, and of raw texts.
    pub name: &'static str,
    /// The field that holds the conversation.
    pub list: &'static str,
    /// The field that holds the system prompt, where it stands apart.
    pub system: Option<&'static str>,
    /// What an element of the list is called.
    pub element: &'static str,
    /// Messages, system prompt and tools may have marks of the cache.
    pub has_marks: bool,
    /// The cache remembers nothing without marks.
    pub wants_marks: bool,
    /// The conversation may be with the provider, so that there is no list, or a bare text.
    pub may_lack_list: bool,
}

/// Which tool the model must take.
pub(super) enum Choice<'a> {
    Auto,
    None,
    Any,
    Named(&'a str),
}

/// Elements of a list that stand alone, as messages of the log.
pub(super) struct Group {
    /// How many elements they are.
    pub elements: usize,
    pub messages: Vec<Message>,
    /// Marks on their blocks; messages are counted from the first of the group.
    pub marks: Vec<ClientMark>,
}

/// A text that stands in the list, of one message of the log or of several.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Elements of the list with commas between them; empty if there is nothing to be sent.
    pub json: String,
    /// For each message, how many blocks the content has up to its end.
    pub ends: Vec<usize>,
}
