//! What SQLite says is wrong, as errors of a store: the only place that knows its codes.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::error::StoreError;
use crate::fault::Fault;

/// How every database of SQLite begins.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let problem = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly(problem),
            Some(ErrorCode::NotADatabase) => Self::NotADatabase(problem),
            // A table that is missing or a value of another type is none that was written here.
            None
            | Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::Unknown
                | ErrorCode::TypeMismatch
                | ErrorCode::ConstraintViolation,
            ) => Self::Damaged(problem),
            Some(_) => Self::Unavailable(problem),
        }
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
        if super::opening::is_in_memory(&self.path) {
            return "the store in memory".to_owned();
        }
        self.path.display().to_string()
    }

    pub(super) fn of(&self, fault: Fault) -> StoreError {
        fault.at(&self.place())
    }

    /// While a file is opened, it may turn out to be something else than a database.
    pub(super) fn when_opening(&self, fault: Fault) -> StoreError {
        match fault {
            Fault::NotADatabase(_) if !self.begins_like_a_database() => self.not_a_database(),
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
