//! Where agents keep their sessions on this machine.

use std::env;
use std::path::PathBuf;

/// An agent, and folders or files that its sessions are in.
pub struct Place {
    pub agent: &'static str,
    pub path: PathBuf,
}

/// The places that are there.
pub fn find() -> Vec<Place> {
    places(|name| env::var(name).ok().filter(|value| !value.trim().is_empty()))
        .into_iter()
        .filter(|place| place.path.exists())
        .collect()
}

/// All places that there could be, by the variables of the environment.
fn places(variable: impl Fn(&str) -> Option<String>) -> Vec<Place> {
    let home = variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from).unwrap_or_default();
    let below_home = |name: &str| home.join(name);
    let mut places = Vec::new();
    let mut add = |agent, path| places.push(Place { agent, path });
    match variable("CLAUDE_CONFIG_DIR") {
        // Several may be named.
        Some(folders) => folders
            .split(',')
            .for_each(|folder| add("Claude Code", PathBuf::from(folder.trim()).join("projects"))),
        None => {
            add("Claude Code", below_home(".claude/projects"));
            let config = variable("XDG_CONFIG_HOME").map_or_else(|| below_home(".config"), PathBuf::from);
            add("Claude Code", config.join("claude/projects"));
        }
    }
    let codex = variable("CODEX_HOME").map_or_else(|| below_home(".codex"), PathBuf::from);
    add("Codex", codex.join("sessions"));
    add("Codex", codex.join("archived_sessions"));
    let pi = variable("PI_CODING_AGENT_DIR").map_or_else(|| below_home(".pi/agent"), PathBuf::from);
    add("pi", pi.join("sessions"));
    let data = variable("XDG_DATA_HOME").map_or_else(|| below_home(".local/share"), PathBuf::from);
    add("opencode", data.join("opencode/opencode.db"));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_move_the_folders() {
        let at = |set: &[(&str, &str)]| -> Vec<String> {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            places(variable).into_iter().map(|place| place.path.display().to_string()).collect()
        };
        let usual = at(&[("HOME", "/h")]);
        for path in [
            "/h/.claude/projects",
            "/h/.config/claude/projects",
            "/h/.codex/sessions",
            "/h/.codex/archived_sessions",
            "/h/.pi/agent/sessions",
            "/h/.local/share/opencode/opencode.db",
        ] {
            assert!(usual.iter().any(|known| known == path), "{path}");
        }
        let moved = at(&[
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/a, /b"),
            ("CODEX_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
        ]);
        assert_eq!(moved[..4], ["/a/projects", "/b/projects", "/c/sessions", "/c/archived_sessions"]);
        assert_eq!(moved.last().map(String::as_str), Some("/d/opencode/opencode.db"));
    }
}
