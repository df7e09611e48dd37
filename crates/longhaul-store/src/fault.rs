//! What went wrong inside of a call, before it is known which store it is about. Each database says in its
//! own `faults.rs` what its codes mean; the sentences are those of [`StoreError`].

use std::io;

use crate::error::StoreError;

/// Something went wrong inside of a call.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no room.
    Full,
    /// Others kept the store busy for too long.
    Busy,
    /// Another writer was in the way; the same call may well succeed now.
    Again,
    /// The store cannot be written to.
    ReadOnly(String),
    /// What is stored is not what was written.
    Damaged(String),
    /// The file does not look like a database.
    NotADatabase(String),
    /// The server does not let this user in.
    Denied(String),
    /// The store cannot be used.
    Unavailable(String),
    /// The store itself says so.
    Store(StoreError),
}

impl Fault {
    /// The error of the store at this place.
    pub(crate) fn at(self, place: &str) -> StoreError {
        let place = place.to_owned();
        match self {
            Self::Full => StoreError::Full { place },
            Self::Busy | Self::Again => StoreError::Busy { place },
            Self::ReadOnly(problem) => StoreError::ReadOnly { place, problem },
            Self::Damaged(problem) | Self::NotADatabase(problem) => StoreError::Damaged { place, problem },
            Self::Denied(problem) => StoreError::Denied { place, problem },
            Self::Unavailable(problem) => StoreError::Unavailable { place, problem },
            Self::Store(error) => error,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}
