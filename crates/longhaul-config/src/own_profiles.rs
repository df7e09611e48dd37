//! Profiles of one's own: a name that is new, a built-in base, and what differs from it.

use longhaul::Profile;

use crate::config::Config;
use crate::error::ConfigError;
use crate::nearest::nearest;
use crate::settings_file::{Entry, SettingsFile};

impl Config {
    /// Defines the profiles that a file gives a base, and takes the bases out of its entries. A
    /// profile that is not known and gets no base is an error.
    pub(crate) fn define_own(
        &mut self,
        file: &SettingsFile,
        entries: &mut Vec<Entry>,
    ) -> Result<(), ConfigError> {
        let mut own = Vec::new();
        for entry in entries.iter() {
            let Some((name, setting)) = in_profile(&entry.key) else { continue };
            let known = self.names().any(|known| known == name);
            if setting == "base" {
                own.push((name.to_owned(), base(file, entry, name)?));
            } else if !known && !entries.iter().any(|other| in_profile(&other.key) == Some((name, "base"))) {
                let nearest = nearest(name, self.names());
                let (origin, profile) = (file.origin(entry), name.to_owned());
                return Err(ConfigError::NoBase { origin, profile, nearest });
            }
        }
        for (name, base) in own {
            self.define(name, base);
        }
        entries.retain(|entry| !(entry.key.starts_with("profiles.") && entry.key.ends_with(".base")));
        Ok(())
    }
}

/// The name of a profile and of its setting.
fn in_profile(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("profiles.")?.split_once('.')
}

/// The built-in profile that an entry names as the base of a profile.
fn base(file: &SettingsFile, entry: &Entry, name: &str) -> Result<Profile, ConfigError> {
    let (origin, profile) = (file.origin(entry), name.to_owned());
    let base = entry.value.clone().unwrap_or_default();
    let Some(found) = Profile::find(&base) else {
        let nearest = nearest(&base, Profile::all().into_iter().map(|profile| profile.name));
        return Err(ConfigError::NoSuchBase { origin, profile, base, nearest });
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Err(ConfigError::BadProfileName { origin, profile });
    }
    if Profile::find(name).is_some() {
        return Err(ConfigError::BuiltInHasNoBase { origin, profile });
    }
    Ok(found)
}
