//! What a store of sessions does, whatever it keeps them in, and the values that it takes and gives.

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::Calibration;
use longhaul::{Archive, Handle, Snapshot, Time, Tokens};
use uuid::Uuid;

use crate::error::StoreError;
use crate::export;
use crate::retention;
use crate::rows::Now;

/// Keeps sessions. What a call has written is durable when the call returns.
///
/// Calls block: a host with an asynchronous runtime makes them on a thread that may block.
pub trait Store: Send + Sync + fmt::Debug {
    /// Makes an empty session.
    fn create(&self, about: &About) -> Result<SessionId, StoreError> {
        let id = SessionId::fresh();
        self.create_as(id, about)?;
        Ok(id)
    }

    /// Makes an empty session of this name. If there is one already, it stays as it is: a call that failed may have
    /// been stored all the same.
    fn create_as(&self, id: SessionId, about: &About) -> Result<(), StoreError>;

    /// Appends entries to the journal of a session, all of them or none. `from` is where the writer thinks
    /// that the stored journal ends; if it does not end there, that is a [`StoreError::Conflict`].
    fn append(&self, id: SessionId, from: Cursor, entries: &[Entry]) -> Result<(), StoreError>;

    /// Everything that is stored of a session.
    fn load(&self, id: SessionId) -> Result<Stored, StoreError>;

    /// What a list says of a session.
    fn meta(&self, id: SessionId) -> Result<Meta, StoreError>;

    /// The entries of a session from a place on. Long texts of edits are apart, as in [`Stored::entries`].
    fn since(&self, id: SessionId, from: Cursor) -> Result<Vec<Entry>, StoreError>;

    /// Makes a session that shares the entries before `at` with another one.
    fn fork(&self, id: SessionId, at: Cursor) -> Result<SessionId, StoreError> {
        let fork = SessionId::fresh();
        self.fork_as(fork, id, at)?;
        Ok(fork)
    }

    /// Makes a session of this name that shares the entries before `at` with another one. If there is one already, it
    /// stays as it is.
    fn fork_as(&self, fork: SessionId, id: SessionId, at: Cursor) -> Result<(), StoreError>;

    /// Sessions, the one that was written to last first.
    fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Meta>, StoreError>;

    /// Messages in which all words of the query were said, the newest first; at most three of a session.
    fn search(&self, query: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>, StoreError>;

    /// Deletes a session, and all content that no other session holds.
    fn delete(&self, id: SessionId) -> Result<(), StoreError>;

    /// Deletes sessions that are not to be kept any longer, at most so many of them, and says which. If there
    /// are fewer, all that had to go are gone, or somebody else is deleting them at this moment.
    fn prune(&self, retention: &Retention, most: usize) -> Result<Pruned, StoreError>;

    /// How many bytes the store takes, as [`Retention::larger_than`] counts them.
    fn used(&self) -> Result<u64, StoreError>;

    /// The sessions that [`prune`](Self::prune) would delete now, and about how many bytes.
    fn would_prune(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        retention::would_prune(
            self.list(&Filter::default(), usize::MAX)?,
            self.used()?,
            retention,
            Now::get(),
        )
    }

    /// Keeps what a session knows of the sizes of its messages, all of which are stored. It replaces what
    /// was kept before.
    fn keep_sizes(&self, id: SessionId, sizes: &[Snapshot]) -> Result<(), StoreError>;

    /// Names a session by what is said in it: each hash is of one message more, behind `first` that are named
    /// already. A hash may name several sessions.
    fn keep_prefixes(&self, id: SessionId, first: usize, hashes: &[[u8; 16]]) -> Result<(), StoreError>;

    /// The sessions that the last of these hashes names that names any; `None` if none of them does.
    fn find_prefix(&self, hashes: &[[u8; 16]]) -> Result<Option<Alike>, StoreError>;

    /// The sessions of a tenant that can give back what an edit took out. A handle may be cut short, as long as it names
    /// one original. `None` if no stored entry names it, or if several originals start like this.
    fn holders(&self, tenant: &str, handle: &str) -> Result<Option<Holders>, StoreError>;

    /// Keeps what was learnt of how a model counts.
    fn keep_learnt(&self, model: &str, calibration: &Calibration) -> Result<(), StoreError>;

    /// What was learnt of how a model counts: a new session begins with it.
    fn learnt(&self, model: &str) -> Result<Option<Calibration>, StoreError>;

    /// Keeps a limit that an upstream has for a model. It replaces the one that was kept for both.
    fn keep_limit(&self, limit: &UpstreamLimit) -> Result<(), StoreError>;

    /// The limits of all upstreams.
    fn limits(&self) -> Result<Vec<UpstreamLimit>, StoreError>;

    /// Keeps a form of edits that an upstream refuses for a model. It replaces what was kept of that form.
    fn keep_refusal(&self, refusal: &UpstreamRefusal) -> Result<(), StoreError>;

    /// The forms of edits that upstreams refuse.
    fn refusals(&self) -> Result<Vec<UpstreamRefusal>, StoreError>;

    /// Looks whether the place of the store was taken by another file. Calls do so too, but not each.
    fn look(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How often the place of the store has been taken by another file since it was opened. What was written before is
    /// not there then.
    fn replaced(&self) -> u64 {
        0
    }

    /// The texts that a session keeps apart from its entries. Texts of other sessions are not in it.
    fn archive(&self, id: SessionId) -> Result<Arc<dyn Archive>, StoreError>;

    /// Writes a session out, a line for each message or entry.
    fn export(&self, id: SessionId, form: Form, out: &mut dyn Write) -> Result<(), StoreError> {
        let stored = self.load(id)?;
        if stored.meta.without_content {
            return Err(StoreError::NoContent(id));
        }
        match form {
            Form::Transcript => export::transcript(&stored.entries, out),
            Form::Journal => export::journal(&stored.entries, &*self.archive(id)?, out),
        }
    }
}

/// How long calls wait for other writers, and for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// About ten seconds for other writers, and as long as it takes for a server.
    #[default]
    Long,
    /// Less than half a second for other writers, and as long for a server that says nothing: whoever calls can go on without
    /// the store. Searching and deleting take as long as they take.
    Brief,
}

impl Patience {
    /// How long a call waits for others, and for a server that says nothing.
    pub(crate) fn most(self) -> Option<Duration> {
        match self {
            Self::Long => None,
            Self::Brief => Some(Duration::from_millis(400)),
        }
    }
}

/// A limit that an upstream showed when it refused a request: it counts the answer that a request allows with its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamLimit {
    /// The address of the upstream, without credentials.
    pub upstream: Box<str>,
    /// The model, as requests name it.
    pub model: Box<str>,
    /// The window in which both must fit.
    pub window: Tokens,
    /// When the upstream showed it.
    pub learnt: Time,
}

/// A form of edits that an upstream refused, where it took the same conversation in another form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamRefusal {
    /// The address of the upstream, without credentials.
    pub upstream: Box<str>,
    /// The model, as requests name it.
    pub model: Box<str>,
    /// The form: `system`, `user` or `tool`.
    pub form: Box<str>,
    /// What the upstream said of it.
    pub says: Box<str>,
    /// When the upstream refused it.
    pub learnt: Time,
}

impl UpstreamRefusal {
    /// A refusal counts for so long, in microseconds: servers get other templates.
    const WEEK: i64 = 7 * 24 * 3_600 * 1_000_000;

    /// True if a refusal of this time still counts.
    pub fn counts(learnt: Time, now: Time) -> bool {
        now.0.saturating_sub(learnt.0) < Self::WEEK
    }
}

/// The name of a stored session: a UUID whose order is that of time (version 7), or one that a hash gives (version 8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId([u8; 16]);

impl SessionId {
    /// A name that nothing else has.
    pub fn fresh() -> Self {
        Self(Uuid::now_v7().into_bytes())
    }

    /// The name that whoever has this hash gives: a UUID of version 8. Its order is not that of time.
    pub fn of_hash(hash: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(hash).into_uuid().into_bytes())
    }

    /// The name of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_bytes(self.0), f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no name of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a session is a UUID")]
pub struct BadSessionId;

impl FromStr for SessionId {
    type Err = BadSessionId;

    fn from_str(text: &str) -> Result<Self, BadSessionId> {
        Uuid::try_parse(text).map(|uuid| Self(uuid.into_bytes())).map_err(|_| BadSessionId)
    }
}

/// What a host says of a session that it makes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Whose session it is, where one store serves many; empty where it does not.
    pub tenant: String,
    /// The program that works, such as `longhaul` or `claude-code`.
    pub agent: String,
    /// What it works on: a folder or a name.
    pub project: String,
    /// A title. Without one it is the first words that a person says.
    pub title: Option<String>,
    /// Nothing that is said in it is kept: a [`Keeper`](crate::Keeper) then stores what is left of entries.
    pub without_content: bool,
}

/// What a list says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The session.
    pub id: SessionId,
    /// The session that it was forked from.
    pub parent: Option<SessionId>,
    /// The first words that a person said, or the title that the host gave.
    pub title: String,
    /// Whose session it is. A fork has the tenant of its parent.
    pub tenant: String,
    /// The program that works.
    pub agent: String,
    /// What it works on.
    pub project: String,
    /// The model that the session goes on with.
    pub model: String,
    /// When the session was made.
    pub created: Time,
    /// When the session was written to last.
    pub updated: Time,
    /// Where the stored journal ends.
    pub end: Cursor,
    /// How many messages there are.
    pub messages: u64,
    /// How many requests were sent.
    pub calls: u64,
    /// How large the entries are as JSON.
    pub bytes: u64,
    /// Nothing that was said is kept: the session cannot be loaded to go on with it.
    pub without_content: bool,
}

/// Sessions that begin with the same messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// How many messages they begin with.
    pub messages: usize,
    /// The one that was written to last first; of many only some of the newest.
    pub sessions: Vec<Meta>,
}

impl Alike {
    /// So many sessions are looked at, those that were made last: many may begin with the same rules.
    pub(crate) const LOOKED_AT: usize = 64;

    /// So many are given.
    pub(crate) const GIVEN: usize = 8;
}

/// The sessions that can give back what an edit took out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holders {
    /// The whole handle.
    pub handle: Handle,
    /// The one that was made last first; of many only some of the newest.
    pub sessions: Vec<SessionId>,
}

/// Everything that is stored of a session.
#[derive(Debug, Clone)]
pub struct Stored {
    /// What a list says of it.
    pub meta: Meta,
    /// Its journal. Long texts of edits are apart: [`Store::archive`] has them.
    pub entries: Vec<Entry>,
    /// Sizes of its messages, as far as they were kept.
    pub sizes: Vec<Snapshot>,
    /// How many messages there were when the sizes were kept.
    pub sized: usize,
}

/// Which sessions are listed or searched. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whose sessions. A host that serves many always says it.
    pub tenant: Option<String>,
    /// The program that works.
    pub agent: Option<String>,
    /// What it works on.
    pub project: Option<String>,
    /// Sessions that were written to at this time or later.
    pub updated_since: Option<Time>,
}

/// Which sessions are kept. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions go that nobody wrote to for longer than this.
    pub older_than: Option<Duration>,
    /// While the store takes more bytes than this, the session goes that was left alone longest.
    pub larger_than: Option<u64>,
    /// A session stays that somebody wrote to within this time, however large the store is.
    pub used_within: Duration,
    /// These stay: somebody works with them.
    pub in_use: Vec<SessionId>,
}

impl Retention {
    /// True if all sessions are kept for ever.
    pub fn keeps_all(&self) -> bool {
        self.older_than.is_none() && self.larger_than.is_none()
    }
}

/// Sessions that were deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Which, those that were left alone longest first.
    pub sessions: Vec<SessionId>,
    /// Bytes that they alone took.
    pub bytes: u64,
}

/// How a session is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line for each message, in the transcript format. What was compressed is not in it.
    Transcript,
    /// A line for each entry of the journal, with all texts: a session can be loaded from it.
    Journal,
}

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The session that the message is in; of several that hold it, the one that was made last.
    pub session: SessionId,
    /// The title of that session.
    pub title: String,
    /// Where the message stands in the journal.
    pub at: Cursor,
    /// Some text around the first word that was found.
    pub snippet: String,
    /// Where the words of the query are in the snippet, in bytes.
    pub found: Vec<Range<usize>>,
}
