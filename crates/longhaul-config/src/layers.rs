//! Layers of settings, and how one is read over the other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::agent_settings::IgnoredSettings;
use crate::config::Config;
use crate::error::ConfigError;
use crate::nearest::nearest;
use crate::places;
use crate::setting::{Origin, Setting};
use crate::settings_file::{Entry, Owner, SettingsFile};
use crate::size::tokens_of;
use crate::value::{ValueError, ValueKind};

/// What settings are read from, as text. Files, then variables, then flags: the later wins.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Files, the later winning: the user's, the project's.
    pub files: Vec<SettingsFile>,
    /// Variables of the environment, names and values. `XDG_DATA_HOME` and `HOME` say where sessions are kept
    /// if nobody says it; others that do not start with `LONGHAUL_` are left alone.
    pub variables: Vec<(String, String)>,
    /// Flags, by the whole names of settings, and their values.
    pub flags: Vec<(String, String)>,
}

impl Layers {
    /// Adds a file of the user over the files before.
    pub fn file(mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.files.push(SettingsFile { path: path.into(), text: text.into(), of: Owner::User });
        self
    }

    /// Adds a file of a project over the files before. It does not say where conversations and keys go.
    pub fn project_file(mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.files.push(SettingsFile { path: path.into(), text: text.into(), of: Owner::Project });
        self
    }

    /// Adds variables of the environment.
    pub fn variables<N: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Adds a flag: the whole name of a setting, and its value.
    pub fn flag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.push((key.into(), value.into()));
        self
    }
}

impl Config {
    /// Reads layers over what is built in. Goes by what it is given, and by nothing else.
    pub fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        if let Some(store) = places::store_file(&layers.variables) {
            config.put("store", ValueKind::Place, store, Origin::BuiltIn);
        }
        for file in &layers.files {
            config.read_file(file)?;
        }
        config.read_variables(&layers.variables)?;
        for (key, value) in &layers.flags {
            config.set(key, value, Origin::Flag)?;
        }
        config.follow_triggers();
        config.check_together()?;
        Ok(config)
    }

    fn read_file(&mut self, file: &SettingsFile) -> Result<(), ConfigError> {
        let mut entries = file.entries()?;
        let unheard = |entry: &Entry| {
            !file.of.is_heard_on(&entry.key)
                && !entry.value.as_ref().is_some_and(|value| self.says(&entry.key, value))
        };
        let keys: Vec<String> =
            entries.iter().filter(|entry| unheard(entry)).map(|entry| entry.key.clone()).collect();
        entries.retain(|entry| file.of.is_heard_on(&entry.key));
        if !keys.is_empty() {
            self.ignored.push(IgnoredSettings { path: file.path.clone(), keys });
        }
        self.define_own(file, &mut entries)?;
        for entry in entries {
            let origin = file.origin(&entry);
            match entry.value {
                // What says the same as before leads nowhere else: a file may be what `config show` printed.
                Some(value) if !file.of.may_set(&entry.key, &value) && !self.says(&entry.key, &value) => {
                    return Err(ConfigError::NotForProjects { origin, key: entry.key });
                }
                Some(value) => self.set(&entry.key, &value, origin)?,
                None => {
                    let problem = ValueError::NoKind;
                    return Err(ConfigError::BadValue { origin, key: entry.key, problem });
                }
            }
        }
        Ok(())
    }

    fn read_variables(&mut self, variables: &[(String, String)]) -> Result<(), ConfigError> {
        // The order of the environment is nobody's: errors come in the order of names.
        let ours: BTreeMap<&str, &str> = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| name.starts_with("LONGHAUL_") && !NO_SETTINGS.contains(name))
            .collect();
        for (name, value) in ours {
            let key = self.settings().iter().map(|setting| &setting.key).find(|key| variable(key) == name);
            let Some(key) = key.cloned() else {
                let known = self.settings().iter().map(|setting| variable(&setting.key));
                let nearest = nearest(name, known);
                return Err(ConfigError::NoSuchVariable { name: name.to_owned(), nearest });
            };
            self.set(&key, value, Origin::Environment { name: name.to_owned() })?;
        }
        Ok(())
    }

    /// Whether a setting has this value.
    fn says(&self, key: &str, value: &str) -> bool {
        self.get(key).is_some_and(|setting| setting.value == value)
    }

    /// Gives a setting a value that comes from there.
    fn set(&mut self, key: &str, value: &str, origin: Origin) -> Result<(), ConfigError> {
        let tool = key.strip_prefix("tools.").map(|_| ValueKind::Tool);
        let Some(kind) = tool.or_else(|| self.get(key).map(|setting| setting.kind)) else {
            let nearest = nearest(key, self.settings().iter().map(|setting| &setting.key));
            return Err(ConfigError::NoSuchSetting { origin, key: key.to_owned(), nearest });
        };
        if let Err(problem) = kind.check(value, self.names()) {
            return Err(ConfigError::BadValue { origin, key: key.to_owned(), problem });
        }
        let value = match kind {
            ValueKind::Number(..) => value.replace('_', ""),
            ValueKind::Tokens(..) => tokens_of(value).unwrap_or_default().to_string(),
            _ => value.to_owned(),
        };
        self.put(key, kind, value, origin);
        Ok(())
    }

    /// A profile that works to its trigger does so wherever the trigger is, unless somebody set a target.
    fn follow_triggers(&mut self) {
        for profile in self.working_to_their_trigger() {
            let find = |name: &str| self.get(&format!("profiles.{profile}.{name}")).cloned();
            let (Some(target), Some(trigger)) = (find("target"), find("trigger")) else { continue };
            if target.origin == Origin::BuiltIn {
                self.put(&target.key, target.kind, trigger.value, trigger.origin);
            }
        }
    }

    /// Settings that only make sense together.
    fn check_together(&self) -> Result<(), ConfigError> {
        for profile in self.names() {
            let above = |low: &str, high: &str| {
                let find = |name: &str| self.get(&format!("profiles.{profile}.{name}"));
                let number = |setting: &Setting| setting.value.parse::<u64>().unwrap_or_default();
                let (low, high) = (find(low)?, find(high)?);
                (number(low) > number(high)).then(|| (Box::new(low.clone()), Box::new(high.clone())))
            };
            if let Some((merge_to, merge_above)) = above("merge_to", "merge_above") {
                return Err(ConfigError::MergeToAboveMergeAbove { merge_to, merge_above });
            }
            if let Some((target, trigger)) = above("target", "trigger") {
                return Err(ConfigError::TargetAboveTrigger { target, trigger });
            }
        }
        Ok(())
    }
}

/// Variables of ours that are no settings: the user's file, the token of a gateway, the gateway that an agent was started
/// behind, where an agent receives its keys from, and two that an agent gives its commands.
const NO_SETTINGS: [&str; 6] = [
    "LONGHAUL_CONFIG",
    "LONGHAUL_TOKEN",
    "LONGHAUL_GATEWAY",
    "LONGHAUL_KEYS_FROM",
    "LONGHAUL_CALL",
    "LONGHAUL_DIRECTORY_FILE",
];

/// The variable of the environment that a setting goes by.
fn variable(key: &str) -> String {
    format!("LONGHAUL_{}", key.replace(['.', '-'], "_").to_uppercase())
}
