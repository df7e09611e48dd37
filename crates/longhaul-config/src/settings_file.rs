//! A file of settings: TOML, taken apart into settings by their whole names.

use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;
use crate::setting::Origin;

/// A file of settings, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// Where it is; errors and origins name it.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
    /// Whose it is.
    pub of: Owner,
}

/// Whose a file of settings is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user's.
    User,
    /// A project's, which may come from anybody: it says how to work, not where conversations and keys go, and not
    /// what a gateway keeps.
    Project,
}

impl Owner {
    /// Whether the owner is heard on a setting at all. A file of a project that says which model answers, where it is
    /// or what it may do is read without these lines.
    pub(crate) fn is_heard_on(self, key: &str) -> bool {
        self == Self::User || !(key == "agent" || key.starts_with("agent."))
    }

    /// Whether the owner may give a setting this value.
    pub(crate) fn may_set(self, key: &str, value: &str) -> bool {
        let leads_out = key.starts_with("summariser.") || key == "store" && value.contains("://");
        let is_for_who_runs_it = key.starts_with("gateway.");
        self == Self::User || !(leads_out || is_for_who_runs_it)
    }
}

/// A value that stands in a file.
pub struct Entry {
    /// The whole name of the setting.
    pub key: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// The value as text; `None` for one of a kind that no setting has.
    pub value: Option<String>,
}

impl SettingsFile {
    /// All values, in the order of the lines: a table goes by its names, a person by the lines.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        let line = |at: usize| self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let table = DeTable::parse(&self.text).map_err(|error| ConfigError::NotToml {
            path: self.path.clone(),
            line: line(error.span().map_or(0, |span| span.start)),
            problem: error.message().lines().next().unwrap_or("cannot be read").to_owned(),
        })?;
        let mut leaves = Vec::new();
        collect_leaves(table.get_ref(), "", &mut leaves);
        leaves.sort_by_key(|leaf| leaf.at);
        let entry = |leaf: Leaf| Entry { key: leaf.key, line: line(leaf.at), value: leaf.value };
        Ok(leaves.into_iter().map(entry).collect())
    }

    /// Where an entry stands.
    pub(crate) fn origin(&self, entry: &Entry) -> Origin {
        Origin::File { path: self.path.clone(), line: entry.line }
    }
}

/// An entry, by the byte at which its name starts.
struct Leaf {
    key: String,
    at: usize,
    value: Option<String>,
}

fn collect_leaves(table: &DeTable<'_>, before: &str, found: &mut Vec<Leaf>) {
    for (name, value) in table {
        let key = if before.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{before}.{}", name.get_ref())
        };
        match value.get_ref() {
            DeValue::Table(inner) => collect_leaves(inner, &key, found),
            value => found.push(Leaf { key, at: name.span().start, value: as_text(value) }),
        }
    }
}

fn as_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let read = i128::from_str_radix(&number.as_str().replace('_', ""), number.radix());
            Some(read.map_or_else(|_| number.to_string(), |number| number.to_string()))
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str());
            texts.collect::<Option<Vec<_>>>().map(|texts| texts.join(", "))
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
