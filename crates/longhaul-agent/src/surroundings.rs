//! Where the work is done, for summaries that say it: the machine, and what the project is written in. Only what is
//! seen is said.

use std::path::Path;

use longhaul::Session;

use crate::shell::environment;

/// Files that say what a project is written in.
const MANIFESTS: [(&str, &str); 13] = [
    ("Cargo.toml", "Rust"),
    ("package.json", "JavaScript"),
    ("tsconfig.json", "TypeScript"),
    ("pyproject.toml", "Python"),
    ("setup.py", "Python"),
    ("requirements.txt", "Python"),
    ("go.mod", "Go"),
    ("pom.xml", "Java"),
    ("build.gradle", "Java"),
    ("build.gradle.kts", "Kotlin"),
    ("CMakeLists.txt", "C and C++"),
    ("Gemfile", "Ruby"),
    ("composer.json", "PHP"),
];

/// Tells a session where it works.
pub(crate) fn tell(session: &mut Session, root: &Path) {
    session.set_environment(Some(&machine()));
    let languages = languages(root);
    session.set_stack(Some(languages.as_str()).filter(|languages| !languages.is_empty()));
}

fn machine() -> String {
    let environment: Vec<_> = std::env::vars_os().collect();
    let shell = ["bash", "sh"].into_iter().find(|name| environment::program(&environment, name).is_some());
    let shell = shell.map(|shell| format!(", {shell}")).unwrap_or_default();
    format!("{} on {}{shell}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Languages, each with the first file that says it.
fn languages(root: &Path) -> String {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for (file, language) in MANIFESTS {
        if !found.iter().any(|(_, known)| *known == language) && root.join(file).is_file() {
            found.push((file, language));
        }
    }
    found.iter().map(|(file, language)| format!("{language} ({file})")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_said_once_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(languages(folder.path()), "");
        for file in ["Cargo.toml", "setup.py", "requirements.txt"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        assert_eq!(languages(folder.path()), "Rust (Cargo.toml), Python (setup.py)");
        assert!(machine().starts_with(std::env::consts::OS));
    }
}
