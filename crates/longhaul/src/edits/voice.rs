//! In whose place a text of ours stands in a request. It is stored with the text: a later version sends the same role,
//! and what is learnt of a provider changes new texts only.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::message::{Block, Message, Role};

/// In whose place a summary, a marker or a note stands in a request. Where none is stored, as in journals of version 5
/// and older, the wire format chooses the role as it did then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// In the user's, in a frame that says that these are not the user's words. It stands in one message with the user
    /// message or the tool result next to it, so that roles still alternate.
    User,
    /// In the host's: a `system` or `developer` message, or a part of the system prompt where it stands directly after it.
    System,
}

impl Voice {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::User => Self::System,
            Self::System => Self::User,
        }
    }

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::System => "system",
        }
    }

    /// The voice of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::System].into_iter().find(|voice| voice.name() == name)
    }
}

/// The journals from this version on store voices.
pub(crate) const SINCE: u32 = 6;

impl Message {
    /// A text of ours in this voice: a view makes it, and no log has it.
    pub(crate) fn voiced(role: Role, text: impl Into<Arc<str>>, voice: Option<Voice>) -> Self {
        let mut message = Self::new(role, vec![Block::text(text)]);
        message.voice = voice;
        message
    }

    /// In whose place it stands, if a view made it and its journal says so.
    pub fn voice(&self) -> Option<Voice> {
        self.voice
    }
}
