//! How a request continues its conversation, and why the provider's cache may not help.

use longhaul::Why;
use longhaul::session::journal::Entry;

/// What a request is to its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The first of its conversation.
    New,
    /// It goes on with it.
    Extends,
    /// The same again.
    Retry,
    /// It goes another way than the conversation did.
    Forks,
}

impl How {
    /// A word for headers and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Extends => "extends",
            Self::Retry => "retry",
            Self::Forks => "forks",
        }
    }
}

/// Why a request of a conversation does not go on from the one that was sent before it. Of several reasons the first is
/// told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Break {
    /// The client has other tools, another system prompt or other settings.
    Frame,
    /// The provider found the request before too long.
    TooLong,
    /// An edit was taken back, or made again.
    Undone,
    /// The conversation was made shorter.
    Edited,
    /// Something else.
    Other,
}

impl Break {
    /// A word for counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::TooLong => "too-long",
            Self::Undone => "undone",
            Self::Edited => "edited",
            Self::Other => "other",
        }
    }

    /// The reason that an entry of a journal may be.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        match entry {
            Entry::Frame(_) | Entry::Switched { .. } => Some(Self::Frame),
            Entry::Refused { .. } => Some(Self::TooLong),
            Entry::Undo { .. } | Entry::Redo { .. } => Some(Self::Undone),
            Entry::Edit(edit) if edit.why != Why::Entry => Some(Self::Edited),
            _ => None,
        }
    }
}
