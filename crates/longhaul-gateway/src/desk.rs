//! The desk: every conversation that is known, and what goes out in the place of a client's request. Calls of the
//! desk block; they are made on threads that may.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use longhaul::session::Overflow;
use longhaul::{Profile, Tokens, Usage};
use longhaul_store::{SessionId, StoreError};
use longhaul_wire::api::Api;

/// How conversations are kept small, and where.
#[derive(Debug, Clone)]
pub struct DeskSettings {
    /// Where sessions are stored: a file, or `postgres://…`.
    pub store: String,
    /// How to compact.
    pub profile: Profile,
    /// What fits into the window, if it is not the model's own.
    pub window: Option<Tokens>,
}

/// A request of a client to a model, as it came.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// What it speaks.
    pub api: Api,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, without what it was compressed with.
    pub body: Bytes,
}

/// What is done with a request.
#[derive(Debug)]
pub enum Decision {
    /// The client's own bytes go out, and nothing is learnt from the answer.
    PassOn(Reason),
    /// A request of a known conversation.
    Send(Call),
}

/// Why a request is passed on as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The client asked for it, by the header `x-longhaul: off`.
    Off,
    /// It cannot be read.
    Unreadable,
    /// A part of the conversation is with the provider.
    Stateful,
    /// No conversation of an agent: a title, a classifier.
    Side,
    /// There is no view that fits, or the engine failed.
    NoView,
    /// The store failed.
    Store,
    /// It took too long to decide.
    Slow,
    /// A bug: a thread of ours panicked.
    Panic,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Off,
        Self::Unreadable,
        Self::Stateful,
        Self::Side,
        Self::NoView,
        Self::Store,
        Self::Slow,
        Self::Panic,
    ];

    /// A word for headers, logs and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unreadable => "unreadable",
            Self::Stateful => "stateful",
            Self::Side => "side",
            Self::NoView => "no-view",
            Self::Store => "store",
            Self::Slow => "slow",
            Self::Panic => "panic",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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

/// A request of a known conversation on its way to the provider.
#[derive(Debug)]
pub struct Call {
    /// The body to send; `None` if it is the client's own.
    pub body: Option<Bytes>,
    /// The stored session.
    pub session: SessionId,
    /// What it is to its conversation.
    pub how: How,
    /// Tokens that are sent.
    pub view: Tokens,
    /// Tokens of the whole conversation.
    pub full: Tokens,
    /// How many edits stand.
    pub edits: usize,
}

/// Every conversation that is known.
#[derive(Debug)]
pub struct Desk {
    _settings: DeskSettings,
}

impl Desk {
    /// With the store that the settings name.
    pub fn open(settings: DeskSettings) -> Result<Self, StoreError> {
        Ok(Self { _settings: settings })
    }

    /// Says what is done with a request. Whatever goes wrong is a reason to pass it on.
    pub fn decide(&self, _incoming: &Incoming) -> Decision {
        Decision::PassOn(Reason::Side)
    }

    /// The provider answered a call; `usage` is what it said of its price.
    pub fn answered(&self, _call: Call, _usage: Option<&Usage>) {}

    /// The provider refused a call as too long. What to send instead, if there is anything smaller.
    pub fn overflowed(&self, call: Call, _overflow: Overflow) -> Option<Call> {
        drop(call);
        None
    }

    /// Tokens of the view of a conversation, if it is a known one: for clients that ask how large it is.
    pub fn count(&self, _incoming: &Incoming) -> Option<Tokens> {
        None
    }
}
