//! How a command fails: one line, and an exit code.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use longhaul_config::{ConfigError, NoSuchProfile};
use longhaul_store::StoreError;

use crate::terminal;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The user can change something: exit 2.
    Input(String),
    /// A file has no messages: exit 2, unless others have some.
    NoMessages(String),
    /// It cannot be done now: exit 1.
    Failed(String),
    /// The output could not be written: exit 1.
    Output(io::Error),
}

impl Failure {
    /// Something is wrong with this file.
    pub fn file(path: &Path, problem: impl Display) -> Self {
        Self::Input(of_file(path, problem))
    }

    /// This file is no session.
    pub fn no_messages(path: &Path, problem: impl Display) -> Self {
        Self::NoMessages(of_file(path, problem))
    }

    /// The reader of our output has gone, as `head` does: nothing to report.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub fn code(&self) -> ExitCode {
        match self {
            Self::Input(_) | Self::NoMessages(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Output(_) => ExitCode::FAILURE,
        }
    }
}

/// A name may hold anything; the message stays one line.
fn of_file(path: &Path, problem: impl Display) -> String {
    format!("{}: {problem}", terminal::path(path))
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Input(problem) | Self::NoMessages(problem) | Self::Failed(problem) => f.write_str(problem),
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<NoSuchProfile> for Failure {
    fn from(error: NoSuchProfile) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            // The user can name another session or another file.
            StoreError::NoSession(_)
            | StoreError::NoContent(_)
            | StoreError::PastEnd { .. }
            | StoreError::Newer { .. }
            | StoreError::NotADatabase { .. }
            | StoreError::Foreign { .. } => Self::Input(error.to_string()),
            StoreError::Export(error) => Self::Output(error),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
