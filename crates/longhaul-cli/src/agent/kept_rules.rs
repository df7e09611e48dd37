//! Rules that a person agreed to for good, by project: in a file of the user, and in none of the project, which may come
//! from anybody.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use longhaul_agent::Permissions;

use crate::error::Failure;
use crate::place::make_private;

/// The file, in the folder of the user's settings.
const FILE: &str = "longhaul/allowed.json";

/// The rules of a project.
#[derive(Clone, Default)]
pub struct KeptRules {
    file: Option<PathBuf>,
    project: String,
}

/// Rules by the roots of their projects.
type Rules = BTreeMap<String, Vec<String>>;

impl KeptRules {
    /// Those of the project with this root.
    pub fn of(root: &Path) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        Self { file: base.map(|base| base.join(FILE)), project: root.display().to_string() }
    }

    /// Lets calls run that these rules fit.
    pub fn allow(&self, permissions: &mut Permissions) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let rules = read(file).map_err(|error| Failure::file(file, error))?;
        for rule in rules.get(&self.project).into_iter().flatten() {
            permissions
                .allow(rule)
                .map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
        }
        Ok(())
    }

    /// Keeps a rule. Gives the file that it is in.
    pub fn keep(&self, rule: &str) -> io::Result<&Path> {
        let file = self.file.as_deref().ok_or_else(|| io::Error::other("there is no home folder"))?;
        let folder = file.parent().unwrap_or(file);
        make_private(folder)?;
        let mut rules = read(file)?;
        let of_project = rules.entry(self.project.clone()).or_default();
        if !of_project.iter().any(|known| known == rule) {
            of_project.push(rule.to_owned());
        }
        // Private, and whole or not at all.
        let mut written = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut written, &rules)?;
        writeln!(written)?;
        written.as_file().sync_all()?;
        written.persist(file).map_err(|error| error.error)?;
        Ok(file)
    }
}

fn read(file: &Path) -> io::Result<Rules> {
    match std::fs::read(file) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Rules::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use longhaul_agent::Mode;

    use super::*;

    #[test]
    fn a_rule_holds_in_its_project_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join(FILE));
        let of = |project: &str| KeptRules { file: file.clone(), project: project.to_owned() };
        let rules = |project: &str| {
            let mut permissions = Permissions::new(Mode::Ask);
            of(project).allow(&mut permissions).unwrap();
            permissions.rules().map(|(_, rule)| rule.to_owned()).collect::<Vec<_>>()
        };
        assert!(rules("/a").is_empty());
        let path = of("/a").keep("Bash(cargo test)").unwrap().to_owned();
        of("/a").keep("Edit(src/**)").unwrap();
        of("/a").keep("Bash(cargo test)").unwrap();
        of("/b").keep("Bash(ls)").unwrap();
        assert_eq!(
            (rules("/a"), rules("/b")),
            (vec!["Bash(cargo test)".into(), "Edit(src/**)".into()], vec!["Bash(ls)".into()])
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        // A file that cannot be read is not overwritten.
        std::fs::write(&path, "{").unwrap();
        assert!(of("/a").keep("Edit").is_err() && of("/a").allow(&mut Permissions::default()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
        assert!(KeptRules::default().keep("Edit").is_err());
    }
}
