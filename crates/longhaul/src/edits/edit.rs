//! An edit: one compression, as an entry of the ledger. It stores its rendered replacement,
//! never a recipe, so that the same bytes are sent after a restart and by a later version.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::json::Json;
use crate::conversation::log::{Position, Span};
use crate::edits::archive::Handle;
use crate::edits::voice::Voice;
use crate::size::tokens::Tokens;
use crate::summary::{Summary, SummaryBill};
use crate::view::keep::Kept;

/// The number of an edit in its ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EditId(pub u32);

/// One compression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Its number.
    pub id: EditId,
    /// What it does.
    #[serde(flatten)]
    pub kind: EditKind,
    /// In whose place its text stands, if it is one that replaces whole units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Which strategy proposed it.
    pub strategy: Box<str>,
    /// Why it was made.
    pub why: Why,
    /// Tokens of what it replaces, as it was shown.
    pub before: Tokens,
    /// Tokens of the replacement.
    pub after: Tokens,
    /// What it was expected to cost and to save.
    pub price: EditPrice,
    /// What it took out.
    pub originals: Vec<Handle>,
    /// Folds whose summaries this one was made from: it goes when one of them is undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends: Vec<EditId>,
}

/// What an edit does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum EditKind {
    /// A result, or another text, becomes shorter text.
    Digest {
        /// The message.
        at: Position,
        /// Which of its blocks.
        block: usize,
        /// What is shown instead.
        text: EditText,
    },
    /// A call's arguments become shorter, valid JSON.
    DigestArgs {
        /// The message.
        at: Position,
        /// Which of its blocks.
        block: usize,
        /// What is shown instead.
        #[serde(with = "as_text")]
        arguments: Json,
    },
    /// All thinking of a message goes.
    DropThinking {
        /// The message.
        at: Position,
    },
    /// The host answers a call itself: its text stands in the place of what a result says. It may be
    /// longer.
    Answer {
        /// The message.
        at: Position,
        /// Which of its blocks.
        block: usize,
        /// What is shown instead.
        text: EditText,
    },
    /// Runs of whole units become a summary.
    Fold {
        /// What is replaced, in order.
        spans: Vec<Span>,
        /// Where the summary stands.
        placement: Placement,
        /// The items of the keep set that are restated with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<Kept>,
        /// The summary, as it is sent.
        text: EditText,
        /// The summary, as values over its text. A ledger of an older version has none.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "shared")]
        summary: Option<Arc<Summary>>,
    },
    /// Runs of whole units become a marker.
    Hide {
        /// What is replaced, in order.
        spans: Vec<Span>,
        /// The marker.
        text: EditText,
    },
}

impl EditKind {
    /// The runs it replaces; for an edit inside a message, that message.
    pub fn spans(&self) -> Vec<Span> {
        match self {
            Self::Fold { spans, .. } | Self::Hide { spans, .. } => spans.clone(),
            Self::Digest { at, .. }
            | Self::DigestArgs { at, .. }
            | Self::DropThinking { at }
            | Self::Answer { at, .. } => {
                vec![Span { start: *at, end: Position(at.0.saturating_add(1)) }]
            }
        }
    }

    /// The text that stands in the place of what it replaces, if it is one.
    pub fn text(&self) -> Option<&EditText> {
        match self {
            Self::Digest { text, .. }
            | Self::Answer { text, .. }
            | Self::Fold { text, .. }
            | Self::Hide { text, .. } => Some(text),
            Self::DigestArgs { .. } | Self::DropThinking { .. } => None,
        }
    }

    /// The text of a fold in two: what code wrote, and what it quotes. `None` for all that has one part.
    pub(crate) fn facts_and_quotes(&self) -> Option<(&str, &str)> {
        match self {
            Self::Fold { text, summary: Some(summary), .. } => summary.facts_and_quotes(text),
            _ => None,
        }
    }

    pub(crate) fn text_mut(&mut self) -> Option<&mut EditText> {
        match self {
            Self::Digest { text, .. }
            | Self::Answer { text, .. }
            | Self::Fold { text, .. }
            | Self::Hide { text, .. } => Some(text),
            Self::DigestArgs { .. } | Self::DropThinking { .. } => None,
        }
    }

    /// What it does and where, without a word of what it shows.
    pub(crate) fn without_content(&self) -> Self {
        let mut kind = self.clone();
        if let Some(text) = kind.text_mut() {
            *text = EditText::Here("".into());
        }
        match &mut kind {
            Self::DigestArgs { arguments, .. } => *arguments = Json::from(&serde_json::Value::Null),
            Self::Fold { kept, summary, .. } => {
                kept.clear();
                *summary = None;
            }
            Self::Digest { .. } | Self::DropThinking { .. } | Self::Answer { .. } | Self::Hide { .. } => {}
        }
        kind
    }

    /// True if it replaces whole units.
    pub fn replaces_runs(&self) -> bool {
        matches!(self, Self::Fold { .. } | Self::Hide { .. })
    }

    /// Its name in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Digest { .. } => "digest",
            Self::DigestArgs { .. } => "digest of arguments",
            Self::DropThinking { .. } => "thinking dropped",
            Self::Answer { .. } => "answer of the host",
            Self::Fold { .. } => "fold",
            Self::Hide { .. } => "hide",
        }
    }
}

/// The text of an edit. A store may keep it apart from the entry, under its handle: then it is
/// fetched when the edit is shown, and reads as empty until then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EditText {
    /// The text.
    Here(Arc<str>),
    /// Its handle.
    Apart {
        /// The handle of the text.
        apart: Handle,
    },
}

impl EditText {
    /// The text, shared; empty while it is apart.
    pub fn shared(&self) -> Arc<str> {
        match self {
            Self::Here(text) => text.clone(),
            Self::Apart { .. } => "".into(),
        }
    }

    /// The handle of the text.
    pub fn handle(&self) -> Handle {
        match self {
            Self::Here(text) => Handle::of(text),
            Self::Apart { apart } => *apart,
        }
    }
}

impl std::ops::Deref for EditText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Here(text) => text,
            Self::Apart { .. } => "",
        }
    }
}

impl<T: Into<Arc<str>>> From<T> for EditText {
    fn from(text: T) -> Self {
        Self::Here(text.into())
    }
}

/// JSON as a string: inside a tagged object raw JSON cannot be read back.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::conversation::json::Json;

    pub(super) fn serialize<S: Serializer>(json: &Json, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(json.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Json::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A shared value is written like any other.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, T: Serialize>(
        value: &Option<Arc<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_deref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<T>>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Arc::new))
    }
}

/// Where a summary stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Where the first run stood.
    InPlace,
    /// In the system layer, before the history.
    SystemHint,
}

/// Why an edit was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Before it was ever sent.
    Entry,
    /// The profile demands it at every call.
    Rule,
    /// The model changed, and the new one cannot read it.
    Switched,
    /// The provider refused it.
    Refused,
    /// The host has the answer that the client could not give.
    Host,
    /// A limit was passed.
    Forced(Limit),
    /// The provider's cache has lost the prefix anyway.
    Cold,
    /// It saves more than it costs.
    PaysBack,
    /// A person or the model asked for it.
    Asked,
}

impl Why {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Rule => "rule",
            Self::Switched => "model switch",
            Self::Refused => "refused by the provider",
            Self::Host => "host",
            Self::Forced(Limit::Trigger) => "forced (trigger)",
            Self::Forced(Limit::Hard) => "forced (hard limit)",
            Self::Cold => "cold",
            Self::PaysBack => "pays back",
            Self::Asked => "asked",
        }
    }
}

/// Which limit forced an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Where compaction starts.
    Trigger,
    /// What no request may pass.
    Hard,
}

/// What an edit is expected to cost, once, and to save, at each later call. In tokens: the
/// price per token is the model's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditPrice {
    /// Tokens from it on that the provider bills again, if it is the only edit.
    pub rewrites: Tokens,
    /// Tokens that no later request carries.
    pub saves: Tokens,
    /// How many later requests a fold is expected to live for; 0 for other edits, and where it is not known.
    #[serde(default, skip_serializing_if = "is_none")]
    pub calls: u64,
    /// Signed thinking that goes with it, where the model binds thinking to what stands before it.
    #[serde(default, skip_serializing_if = "LostWith::is_nothing")]
    pub thinking: LostWith,
    /// What its summary cost, if a model wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryBill>,
}

/// Signed thinking outside of an edit that goes with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostWith {
    /// How many messages lose some.
    pub messages: u32,
    /// Its tokens.
    pub tokens: Tokens,
}

impl LostWith {
    /// True if no thinking goes.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// With that of one message more.
    pub(crate) fn and(self, tokens: Tokens) -> Self {
        Self { messages: self.messages + 1, tokens: self.tokens + tokens }
    }
}

fn is_none(calls: &u64) -> bool {
    *calls == 0
}

impl EditPrice {
    /// The price of edits that are made at once: what follows the first of them is billed
    /// again once, without what the others take away.
    pub fn of_batch<'a>(edits: impl IntoIterator<Item = &'a Edit>) -> Self {
        let (mut warm, mut saves, mut expected) = (Tokens::ZERO, Tokens::ZERO, 0);
        let mut lost = LostWith::default();
        for Self { rewrites, saves: own, calls, thinking, .. } in edits.into_iter().map(|edit| edit.price) {
            expected = calls.max(expected);
            // What one edit takes no other does.
            lost.messages += thinking.messages;
            lost.tokens += thinking.tokens;
            if rewrites > Tokens::ZERO {
                warm = warm.max(rewrites + own);
            }
            saves += own;
        }
        Self { rewrites: warm - saves, saves, calls: expected, thinking: lost, summary: None }
    }
}
