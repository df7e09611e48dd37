//! A setting with its value, and where the value comes from.

use std::fmt;
use std::path::PathBuf;

use crate::password::without_password;
use crate::value::ValueKind;

/// A setting.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// Its whole name: `window`, `profiles.mini.trigger`, `tools.my_reader`.
    pub key: String,
    /// What its value must be.
    pub kind: ValueKind,
    /// What it does, in a few words.
    pub says: &'static str,
    /// Its value, as text. Checked: it is of the kind.
    pub value: String,
    /// Where the value comes from.
    pub origin: Origin,
}

impl Setting {
    /// Its value as people see it: without the password that a URL may hold.
    pub fn shown(&self) -> String {
        match self.kind {
            ValueKind::Place => without_password(&self.value),
            _ => self.value.clone(),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it.
    BuiltIn,
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        name: String,
    },
    /// A flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Environment { name } => f.write_str(name),
            Self::Flag => f.write_str("a flag"),
        }
    }
}
