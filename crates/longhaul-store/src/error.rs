//! What can go wrong with a store: one variant for each thing that a caller can do something about.
//! No variant has a type of a database in it.

use std::io;

use longhaul::session::journal::Cursor;
use longhaul::{Handle, LoadError};

use crate::store::SessionId;

/// Why a store did not do what it was asked. Nothing was changed then, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store has no session of this id.
    #[error("there is no session {0} in the store")]
    NoSession(SessionId),
    /// Of this session nothing that was said is stored.
    #[error("session {0} was kept without content: nothing that was said in it is stored")]
    NoContent(SessionId),
    /// The writer has lost its place: the stored journal does not end where the new entries begin.
    #[error("session {session} has {stored} entries in the store, not {from}: another writer was here", stored = .stored.0, from = .from.0)]
    Conflict {
        /// The session that was to be appended to.
        session: SessionId,
        /// Where the writer thought that the stored journal ends.
        from: Cursor,
        /// Where it ends.
        stored: Cursor,
    },
    /// A fork was to share more entries than are stored.
    #[error("session {session} has {stored} entries in the store: a fork cannot share {at} of them", stored = .stored.0, at = .at.0)]
    PastEnd {
        /// The session that was to be forked.
        session: SessionId,
        /// How many entries the fork was to share.
        at: Cursor,
        /// How many there are.
        stored: Cursor,
    },
    /// An entry names a text that was kept apart, and the store does not have it.
    #[error("the text {0} of an edit is not in the store")]
    LostText(Handle),
    /// The journal cannot be read: a later version wrote it, or an entry is none.
    #[error("session {session} cannot be read: {problem}")]
    Journal {
        /// The session.
        session: SessionId,
        /// What is wrong with its journal.
        #[source]
        problem: LoadError,
    },
    /// A later version of the program made the store.
    #[error(
        "{place} was made by a later version of longhaul (form {found}; this version reads up to form {known}): \
         nothing was changed"
    )]
    Newer {
        /// Where the store is.
        place: String,
        /// The form that the store has.
        found: i64,
        /// The newest form that is known here.
        known: i64,
    },
    /// The file is no database.
    #[error("{place} is not a database: nothing was changed; give the store another place")]
    NotADatabase {
        /// Where the file is.
        place: String,
    },
    /// The database belongs to another program.
    #[error("{place} is a database of another program: nothing was changed; give the store another place")]
    Foreign {
        /// Where the database is.
        place: String,
    },
    /// The store is damaged.
    #[error("{place} is damaged ({problem}): keep a copy of it, and restore it from a backup")]
    Damaged {
        /// Where the store is.
        place: String,
        /// What was found.
        problem: String,
    },
    /// There is no room: the disk is full, or the store has reached the size that it may have.
    #[error("there is no room for {place} to grow: free some space, or delete sessions")]
    Full {
        /// Where the store is.
        place: String,
    },
    /// Others kept the store busy for too long.
    #[error("{place} is in use by others and did not become free in time: try again")]
    Busy {
        /// Where the store is.
        place: String,
    },
    /// The store cannot be written to.
    #[error("{place} cannot be written to: {problem}")]
    ReadOnly {
        /// Where the store is.
        place: String,
        /// What the system said.
        problem: String,
    },
    /// The store cannot be reached: a folder is missing, a disk fails, a connection is gone. Whether the
    /// entries of an append are stored is not known then: load the session, or append again from the same
    /// place, which is a conflict if they are.
    #[error("{place} cannot be used: {problem}")]
    Unavailable {
        /// Where the store is.
        place: String,
        /// What the system said.
        problem: String,
    },
    /// The URL of a server cannot be read.
    #[error("{place} cannot be used: {problem}")]
    BadUrl {
        /// What can be shown of it.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server does not let this user in: another password, user or database is needed.
    #[error("{place} refuses the connection: {problem}")]
    Denied {
        /// Where the store is.
        place: String,
        /// What the server said.
        problem: String,
    },
    /// An entry cannot be written down.
    #[error("an entry cannot be written as JSON: {0}")]
    Entry(#[source] serde_json::Error),
    /// What was to be exported could not be written.
    #[error("the export could not be written: {0}")]
    Export(#[source] io::Error),
}

impl StoreError {
    /// A copy of the error if it says that the store as a whole does not work at the moment, whatever it was asked.
    /// `None` if it is about the call: another call may well succeed.
    pub fn outage(&self) -> Option<Self> {
        Some(match self {
            Self::Full { place } => Self::Full { place: place.clone() },
            Self::Busy { place } => Self::Busy { place: place.clone() },
            Self::NotADatabase { place } => Self::NotADatabase { place: place.clone() },
            Self::Foreign { place } => Self::Foreign { place: place.clone() },
            Self::Newer { place, found, known } => {
                Self::Newer { place: place.clone(), found: *found, known: *known }
            }
            Self::Damaged { place, problem } => {
                Self::Damaged { place: place.clone(), problem: problem.clone() }
            }
            Self::ReadOnly { place, problem } => {
                Self::ReadOnly { place: place.clone(), problem: problem.clone() }
            }
            Self::Unavailable { place, problem } => {
                Self::Unavailable { place: place.clone(), problem: problem.clone() }
            }
            Self::Denied { place, problem } => {
                Self::Denied { place: place.clone(), problem: problem.clone() }
            }
            Self::NoSession(_)
            | Self::NoContent(_)
            | Self::Conflict { .. }
            | Self::PastEnd { .. }
            | Self::BadUrl { .. }
            | Self::LostText(_)
            | Self::Journal { .. }
            | Self::Entry(_)
            | Self::Export(_) => return None,
        })
    }
}
