//! What the server says is wrong, as faults of a store: the only place that knows its codes.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::fault::Fault;

/// The index that allows each text once.
const CONTENT_BY_HASH: &str = "content_hash";

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(said) => of_server(said),
            None => Self::Unavailable(of_connection(&error)),
        }
    }
}

fn of_server(said: &DbError) -> Fault {
    // The detail of an error may hold values of a row; the message does not.
    let problem = said.message().to_owned();
    match *said.code() {
        SqlState::DISK_FULL => Fault::Full,
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED | SqlState::TOO_MANY_CONNECTIONS => {
            Fault::Busy
        }
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => Fault::Again,
        // Somebody has just stored the same text: it is there now.
        SqlState::UNIQUE_VIOLATION if said.constraint() == Some(CONTENT_BY_HASH) => Fault::Again,
        SqlState::INVALID_PASSWORD
        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        | SqlState::INVALID_CATALOG_NAME => Fault::Denied(problem),
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => Fault::ReadOnly(problem),
        // A table that is missing or a row that stands twice is none that was written here.
        SqlState::DATA_CORRUPTED
        | SqlState::INDEX_CORRUPTED
        | SqlState::UNIQUE_VIOLATION
        | SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN
        | SqlState::DATATYPE_MISMATCH => Fault::Damaged(problem),
        _ => Fault::Unavailable(problem),
    }
}

/// What is known of a connection that failed: the last cause says most.
fn of_connection(error: &Error) -> String {
    let mut cause = error.source();
    let mut says = error.to_string();
    while let Some(deeper) = cause {
        says = deeper.to_string();
        cause = deeper.source();
    }
    says
}
