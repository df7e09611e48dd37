//! Files and folders of a project that make other programs run something, or that steer an agent: a change to one of them
//! is asked for in every mode of permissions, and confined commands cannot write to them.
//!
//! The table is the only list of such names. It also covers a project that is somebody's home folder.

use std::path::{Path, PathBuf};

/// Names of protected files and folders, in lower case. A name with `/` is a run of folders. A `*` at an end stands for
/// any rest of that name. Everything inside a protected folder is protected too, however deep the folder lies.
pub const PROTECTED: &[&str] = &[
    // Version control: configuration and hooks run programs.
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    ".hg",
    ".hgrc",
    ".svn",
    ".jj",
    ".husky",
    ".githooks",
    ".lefthook",
    "lefthook.yml",
    ".lefthook.yml",
    ".pre-commit-config.yaml",
    // Shells, and the variables that they and other tools read when a folder is entered.
    ".envrc",
    ".env",
    ".env.*",
    ".direnv",
    ".config/direnv",
    ".mise.toml",
    "mise.toml",
    ".tool-versions",
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".inputrc",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".tmux.conf",
    ".screenrc",
    // Keys, and programs that SSH runs.
    ".ssh",
    ".gnupg",
    // Editors: tasks, local settings and start files.
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".devcontainer",
    ".devcontainer.json",
    "*.code-workspace",
    ".vim",
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".lvimrc",
    ".config/nvim",
    ".config/helix",
    ".helix",
    ".emacs",
    ".emacs.d",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".gdbinit",
    ".lldbinit",
    // Build tools: settings that name programs to run.
    ".cargo/config",
    ".cargo/config.toml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    // Continuous integration: runs elsewhere, with secrets.
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".gitlab-ci",
    ".circleci",
    ".travis.yml",
    ".buildkite",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".forgejo/workflows",
    ".gitea/workflows",
    ".ci",
    "jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    ".appveyor.yml",
    // Settings and rules of this agent and of others.
    ".longhaul",
    "longhaul.toml",
    ".config/longhaul",
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "code_law.md",
    "gemini.md",
    "warp.md",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".mcp.json",
    "mcp.json",
    ".cursor",
    ".cursorrules",
    ".windsurf",
    ".windsurfrules",
    ".clinerules",
    ".roo",
    ".roomodes",
    ".continue",
    ".aider.conf.yml",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".pi",
    ".goosehints",
    ".github/copilot-instructions.md",
    ".github/instructions",
];

/// Whether a path, given from the root of a project, is protected or lies in a protected folder. Letter case does not
/// count, nor do characters that some file systems ignore: `.GIT/config` may be the same file.
///
/// ```
/// use longhaul_agent::protected::is_protected;
/// assert!(is_protected(".git/config") && is_protected("vendor/lib/.git/hooks/pre-commit"));
/// assert!(is_protected(".GitHub/workflows/ci.yml") && !is_protected(".github/CODEOWNERS"));
/// assert!(!is_protected("src/git.rs") && !is_protected(".gitignore"));
/// ```
pub fn is_protected(path_from_root: &str) -> bool {
    let plain: String =
        path_from_root.chars().filter(|c| !is_ignored(*c)).flat_map(char::to_lowercase).collect();
    let parts: Vec<&str> = plain.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    PROTECTED.iter().any(|name| {
        let name: Vec<&str> = name.split('/').collect();
        parts.windows(name.len()).any(|run| run.iter().zip(&name).all(|(part, name)| fits(part, name)))
    })
}

/// Protected files and folders that are in the root of a project, and in its folders where a name is a run of folders.
pub(crate) fn present(root: &Path) -> Vec<PathBuf> {
    let entries =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut found: Vec<PathBuf> = Vec::new();
    let mut outer: Vec<PathBuf> = Vec::new();
    for path in entries(root) {
        let start = format!("{}/", name(&path));
        if is_protected(&name(&path)) {
            found.push(path);
        } else if PROTECTED.iter().any(|run| run.starts_with(&start)) {
            outer.push(path);
        }
    }
    for folder in outer {
        let inside =
            entries(&folder).filter(|path| is_protected(&format!("{}/{}", name(&folder), name(path))));
        found.extend(inside);
    }
    found
}

/// Whether a part of a path has this name.
fn fits(part: &str, name: &str) -> bool {
    match (name.strip_suffix('*'), name.strip_prefix('*')) {
        (Some(start), _) => part.starts_with(start),
        (_, Some(end)) => part.ends_with(end),
        _ => part == name,
    }
}

/// Characters that HFS+ leaves out when it compares names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_protects_itself_and_what_lies_in_it_in_any_folder_and_letter_case() {
        for name in PROTECTED {
            assert_eq!(*name, name.to_lowercase(), "names of the table are in lower case");
            let path = name.replace('*', "x");
            for path in [path.clone(), format!("a/b/{path}"), format!("{path}/c"), path.to_uppercase()] {
                assert!(is_protected(&path), "{path}");
            }
            assert!(name.starts_with('*') || !is_protected(&format!("x{path}")), "x{path}");
        }
        assert!(is_protected(".g\u{200c}it/config") && is_protected("./a/./.git"));
    }

    #[test]
    fn source_files_are_not_protected() {
        for path in [
            "src/main.rs",
            ".gitignore",
            ".gitattributes",
            ".github/CODEOWNERS",
            "workflows/ci.yml",
            "git/config",
            "docs/agents.html",
            "environment.rs",
            ".environment",
            "",
            ".",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }
}
