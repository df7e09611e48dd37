//! The usual places of settings and sessions: the only code here that reads files and the environment.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::layers::Layers;
use crate::settings_file::{Owner, SettingsFile};

impl Layers {
    /// The user's file, the file of the project that the folder is in, and the environment of
    /// this process; no flags.
    pub fn find(folder: &Path) -> Result<Self, ConfigError> {
        let user = user_file(|name| env::var_os(name))?;
        let mut layers = Self::default();
        let project = project_file(folder).map(|path| (path, Owner::Project));
        for (path, of) in user.map(|path| (path, Owner::User)).into_iter().chain(project) {
            match fs::read_to_string(&path) {
                Ok(text) => layers.files.push(SettingsFile { path, text, of }),
                Err(source) => return Err(ConfigError::Unreadable { path, source }),
            }
        }
        layers.variables = env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .collect();
        Ok(layers)
    }
}

/// The file of the user, if there is one. One that is named must be there.
fn user_file(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<PathBuf>, ConfigError> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = named("LONGHAUL_CONFIG") {
        return if path.is_file() { Ok(Some(path)) } else { Err(ConfigError::NotThere { path }) };
    }
    let base = named("XDG_CONFIG_HOME");
    let base = base.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".config")));
    Ok(base.map(|base| base.join("longhaul/config.toml")).filter(|path| path.is_file()))
}

/// The file that sessions are kept in if nobody says another, by these variables.
pub(crate) fn store_file(variables: &[(String, String)]) -> Option<String> {
    let named = |name: &str| {
        let found = variables.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| PathBuf::from(value))
    };
    let base = named("XDG_DATA_HOME").or_else(|| named("HOME").map(|home| home.join(".local/share")));
    base.map(|base| base.join("longhaul/sessions.db").display().to_string())
}

/// The nearest `longhaul.toml`, here or in a folder above, up to the root of a repository.
fn project_file(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let path = folder.join("longhaul.toml");
        if path.is_file() {
            return Some(path);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_ends_at_the_root_of_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let (root, deep) = (folder.path().join("repository"), folder.path().join("repository/src/deep"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(folder.path().join("longhaul.toml"), "").unwrap();
        assert_eq!(project_file(&deep), Some(folder.path().join("longhaul.toml")));
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(project_file(&deep), None);
        fs::write(root.join("longhaul.toml"), "").unwrap();
        assert_eq!(project_file(&deep), Some(root.join("longhaul.toml")));
    }

    #[test]
    fn sessions_are_kept_in_the_data_folder_of_the_user() {
        let store = |variables: &[(&str, &str)]| {
            let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            store_file(&owned.collect::<Vec<_>>())
        };
        assert_eq!(store(&[]), None);
        assert_eq!(store(&[("HOME", "/h")]).unwrap(), "/h/.local/share/longhaul/sessions.db");
        let both = [("HOME", "/h"), ("XDG_DATA_HOME", "/d")];
        assert_eq!(store(&both).unwrap(), "/d/longhaul/sessions.db");
        let empty = [("HOME", "/h"), ("XDG_DATA_HOME", "")];
        assert_eq!(store(&empty).unwrap(), "/h/.local/share/longhaul/sessions.db");
    }

    #[test]
    fn the_user_has_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let (home, other) = (folder.path().join("home"), folder.path().join("other"));
        for base in [home.join(".config"), other.clone()] {
            fs::create_dir_all(base.join("longhaul")).unwrap();
            fs::write(base.join("longhaul/config.toml"), "").unwrap();
        }
        let found = |variables: &[(&str, &Path)]| {
            let variables = variables.to_vec();
            user_file(move |name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            })
        };
        let (of_home, of_other) =
            (home.join(".config/longhaul/config.toml"), other.join("longhaul/config.toml"));
        assert_eq!(found(&[]).unwrap(), None);
        assert_eq!(found(&[("HOME", &home)]).unwrap(), Some(of_home.clone()));
        assert_eq!(found(&[("HOME", &home), ("XDG_CONFIG_HOME", &other)]).unwrap(), Some(of_other.clone()));
        // An empty name is no name.
        assert_eq!(
            found(&[("HOME", &home), ("XDG_CONFIG_HOME", Path::new(""))]).unwrap(),
            Some(of_home.clone())
        );
        assert_eq!(found(&[("LONGHAUL_CONFIG", &of_other), ("HOME", &home)]).unwrap(), Some(of_other));
        // A file that is named must be there, also where another is.
        let missing = folder.path().join("missing.toml");
        let error = found(&[("LONGHAUL_CONFIG", &missing), ("HOME", &home)]).unwrap_err();
        assert!(matches!(error, ConfigError::NotThere { path } if path == missing));
    }
}
