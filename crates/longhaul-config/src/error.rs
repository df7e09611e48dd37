//! Why settings cannot be read: one line that says where, what, and what may be meant.

use std::io;
use std::path::{Path, PathBuf};

use crate::setting::{Origin, Setting};
use crate::value::ValueError;

/// Settings that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `LONGHAUL_CONFIG` names a file that is not there.
    #[error("{}: LONGHAUL_CONFIG names this file, which is not there", one_line(path))]
    NotThere {
        /// The file.
        path: PathBuf,
    },
    /// A file is there and cannot be read.
    #[error("{}: {source}", one_line(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the machine says.
        source: io::Error,
    },
    /// A file is not TOML.
    #[error("{}: line {line}: {problem}", one_line(path))]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser says.
        problem: String,
    },
    /// There is no setting of this name.
    #[error("{}: there is no setting `{key}`; is `{nearest}` meant?", place(origin))]
    NoSuchSetting {
        /// Where it stands.
        origin: Origin,
        /// The name.
        key: String,
        /// The setting that may be meant.
        nearest: String,
    },
    /// A project's file says where conversations or keys go.
    #[error(
        "{}: `{key}` says where conversations and keys go, or what is kept of them: set it in the user's file or in the environment, not in a project's",
        place(origin)
    )]
    NotForProjects {
        /// Where it stands.
        origin: Origin,
        /// The setting.
        key: String,
    },
    /// No setting belongs to this variable of the environment.
    #[error("{name}: there is no such setting; is {nearest} meant?")]
    NoSuchVariable {
        /// The variable.
        name: String,
        /// The variable that may be meant.
        nearest: String,
    },
    /// A setting cannot have this value.
    #[error("{}: `{key}` {problem}", place(origin))]
    BadValue {
        /// Where it stands.
        origin: Origin,
        /// The setting.
        key: String,
        /// What is wrong with the value.
        problem: ValueError,
    },
    /// A setting of a profile that is not there, and has no base to be made from.
    #[error(
        "{}: there is no profile {profile:?}; is {nearest:?} meant? A new one needs a `base`",
        place(origin)
    )]
    NoBase {
        /// Where it stands.
        origin: Origin,
        /// The profile.
        profile: String,
        /// The profile that may be meant.
        nearest: String,
    },
    /// The base of a profile is no built-in one.
    #[error(
        "{}: `profiles.{profile}.base` is {base:?}; there is no such built-in profile, is {nearest:?} meant?",
        place(origin)
    )]
    NoSuchBase {
        /// Where it stands.
        origin: Origin,
        /// The profile.
        profile: String,
        /// What is said to be its base.
        base: String,
        /// The built-in profile that may be meant.
        nearest: String,
    },
    /// A profile cannot have this name.
    #[error(
        "{}: `profiles.{profile}.base`: the name of a profile has letters, digits, - and _",
        place(origin)
    )]
    BadProfileName {
        /// Where it stands.
        origin: Origin,
        /// The name.
        profile: String,
    },
    /// A built-in profile cannot be made from another.
    #[error("{}: `profiles.{profile}.base`: {profile:?} is built in and has no base", place(origin))]
    BuiltInHasNoBase {
        /// Where it stands.
        origin: Origin,
        /// The profile.
        profile: String,
    },
    /// A profile would work to more than what it starts at.
    #[error(
        "`{}` is {} ({}), above `{}`, {} ({})",
        target.key, target.value, target.origin, trigger.key, trigger.value, trigger.origin
    )]
    TargetAboveTrigger {
        /// What compaction works to.
        target: Box<Setting>,
        /// Where it starts.
        trigger: Box<Setting>,
    },
    /// A profile would merge summaries to more than what it merges above.
    #[error(
        "`{}` is {}, above `{}`, {}",
        merge_to.key, merge_to.value, merge_above.key, merge_above.value
    )]
    MergeToAboveMergeAbove {
        /// What summaries are merged to.
        merge_to: Box<Setting>,
        /// Where merging starts.
        merge_above: Box<Setting>,
    },
}

/// There is no profile of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {name:?}; there is {}", known.join(", "))]
#[non_exhaustive]
pub struct NoSuchProfile {
    /// The name.
    pub name: String,
    /// The profiles that there are.
    pub known: Vec<String>,
}

/// Where a setting stands, as an error opens with it.
fn place(origin: &Origin) -> String {
    match origin {
        Origin::File { path, line } => format!("{}: line {line}", one_line(path)),
        Origin::BuiltIn | Origin::Environment { .. } | Origin::Flag => origin.to_string(),
    }
}

/// A name may hold anything; the message stays one line.
pub(crate) fn one_line(path: &Path) -> String {
    path.display().to_string().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
