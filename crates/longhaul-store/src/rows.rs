//! What goes into the rows of a database, whichever it is: entries with their content, and what they add to
//! the row of their session.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul::Handle;
use longhaul::session::journal::Entry;

use crate::error::StoreError;
use crate::export::handle_apart;

/// Shorter entries stay in their row, shorter messages are found by no hash: it has its price too.
const SHORT: usize = 512;

/// The longest title, in characters.
const TITLE: usize = 80;

/// Microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now(pub(crate) i64);

impl Now {
    pub(crate) fn get() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// What a list and a fork must know of an entry without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub(crate) enum Kind {
    Other = 0,
    Message = 1,
    Request = 2,
    Model = 3,
}

impl Kind {
    fn of(entry: &Entry) -> Self {
        match entry {
            Entry::Message(_) => Self::Message,
            Entry::Sent(_) => Self::Request,
            Entry::Began { .. } | Entry::Switched { .. } => Self::Model,
            _ => Self::Other,
        }
    }

    /// The number that stands in a row.
    pub(crate) fn number(self) -> i16 {
        self as i16
    }
}

/// The model that a session goes on with, if this entry names it.
pub(crate) fn model_of(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Began { model, .. } | Entry::Switched { model, .. } => Some(&model.name),
        _ => None,
    }
}

/// An entry as it goes into a row.
pub(crate) struct EntryRow {
    pub(crate) kind: Kind,
    /// The entry without the text that is apart.
    pub(crate) json: String,
    pub(crate) body: Body,
    pub(crate) apart: Option<Apart>,
}

/// Where the JSON of an entry stands.
pub(crate) enum Body {
    /// In the row of the entry.
    Row,
    /// In the content, by its hash if it has one.
    Content(Option<Handle>),
}

/// The text of an edit that is apart.
pub(crate) enum Apart {
    /// The entry came with it.
    Text(Handle, Arc<str>),
    /// The entry names it: it must be in the store.
    Held(Handle),
}

impl EntryRow {
    pub(crate) fn of(entry: &Entry) -> Result<Self, StoreError> {
        let (without_text, apart) = match entry.apart() {
            Some((entry, handle, text)) => (Some(entry), Some(Apart::Text(handle, text))),
            None => (None, handle_apart(entry).map(Apart::Held)),
        };
        let json =
            serde_json::to_string(without_text.as_ref().unwrap_or(entry)).map_err(StoreError::Entry)?;
        let kind = Kind::of(entry);
        let body = match kind {
            _ if json.len() >= SHORT => Body::Content(Some(Handle::of(&json))),
            Kind::Message => Body::Content(None),
            _ => Body::Row,
        };
        Ok(Self { kind, json, body, apart })
    }
}

/// What some entries add to what a list says of their session.
#[derive(Default)]
pub(crate) struct Sum<'a> {
    pub(crate) entries: usize,
    pub(crate) messages: usize,
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<&'a str>,
}

impl<'a> Sum<'a> {
    /// Adds an entry that is so long as JSON.
    pub(crate) fn add(&mut self, entry: &'a Entry, length: usize) {
        self.entries += 1;
        self.bytes += length;
        match Kind::of(entry) {
            Kind::Message => self.messages += 1,
            Kind::Request => self.calls += 1,
            Kind::Model | Kind::Other => {}
        }
        self.model = model_of(entry).or(self.model);
        if let (Entry::Message(message), None) = (entry, &self.title) {
            self.title = message.words().next().map(title_of);
        }
    }
}

/// The first words of a text, on one line.
pub(crate) fn title_of(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        let joined = title.chars().count() + 1 + word.chars().count();
        if !title.is_empty() && joined > TITLE {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.extend(word.chars().take(TITLE));
    }
    title
}

/// The hash that a handle writes out in digits.
pub(crate) fn bytes_of(handle: Handle) -> [u8; 16] {
    // A handle is 32 hexadecimal digits.
    u128::from_str_radix(&handle.to_string(), 16).unwrap_or_default().to_be_bytes()
}
