//! What SQLite says is wrong, as errors of a store: the only place that knows its codes.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// How every database of SQLite begins.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Something went wrong inside of a call.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite says so.
    Sql(rusqlite::Error),
    /// What is stored is not what was written.
    Damaged(String),
    /// The store cannot be used.
    Unavailable(String),
    /// The store itself says so.
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
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

/// Makes errors of faults: knows which file they are about.
#[derive(Debug, Clone)]
pub(super) struct Faults {
    path: PathBuf,
}

impl Faults {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn of(&self, fault: Fault) -> StoreError {
        let place = self.place();
        match fault {
            Fault::Store(error) => error,
            Fault::Damaged(problem) => StoreError::Damaged { place, problem },
            Fault::Unavailable(problem) => StoreError::Unavailable { place, problem },
            Fault::Sql(error) => of_sql(place, &error),
        }
    }

    /// While a file is opened, it may turn out to be something else than a database.
    pub(super) fn when_opening(&self, fault: Fault) -> StoreError {
        let code = match &fault {
            Fault::Sql(error) => error.sqlite_error_code(),
            _ => None,
        };
        match code {
            Some(ErrorCode::NotADatabase) if !self.begins_like_a_database() => self.not_a_database(),
            _ => self.of(fault),
        }
    }

    fn begins_like_a_database(&self) -> bool {
        let mut start = [0; 16];
        File::open(&self.path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *MAGIC
    }

    pub(super) fn not_a_database(&self) -> StoreError {
        StoreError::NotADatabase { place: self.place() }
    }

    pub(super) fn foreign(&self) -> StoreError {
        StoreError::Foreign { place: self.place() }
    }

    pub(super) fn newer(&self, found: i64, known: i64) -> StoreError {
        StoreError::Newer { place: self.place(), found, known }
    }

    pub(super) fn unavailable(&self, problem: impl Display) -> StoreError {
        StoreError::Unavailable { place: self.place(), problem: problem.to_string() }
    }
}

fn of_sql(place: String, error: &rusqlite::Error) -> StoreError {
    let problem = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { place },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { place },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly { place, problem },
        // A table that is missing or a value of another type is none that was written here.
        None
        | Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::Unknown
            | ErrorCode::TypeMismatch
            | ErrorCode::ConstraintViolation,
        ) => StoreError::Damaged { place, problem },
        Some(_) => StoreError::Unavailable { place, problem },
    }
}
