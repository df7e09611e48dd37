//! The project's own rules: files in its root that say how to work in it. They are looked at each time a request is
//! made, and read again when they changed.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use longhaul::Session;

/// Files of rules, in any letter case.
const FILES: [&str; 3] = ["code_law.md", "agents.md", "claude.md"];
/// Bytes of a file that are read.
const MOST: u64 = 64 << 10;

/// What was read last of each file.
#[derive(Debug, Default)]
pub(crate) struct ProjectRules {
    read: HashMap<String, (Option<SystemTime>, u64)>,
}

impl ProjectRules {
    /// Tells a session of rules that are new, changed or gone.
    pub(crate) fn refresh(&mut self, root: &Path, session: &mut Session) {
        let mut there: Vec<(String, Metadata)> = std::fs::read_dir(root)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let is_rules = FILES.contains(&name.to_ascii_lowercase().as_str());
                // Not through a link: it might lead out of the project.
                let data = is_rules.then(|| entry.metadata().ok()).flatten()?;
                data.is_file().then_some((name, data))
            })
            .collect();
        there.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.read.retain(|name, _| {
            let stays = there.iter().any(|(other, _)| other == name);
            if !stays {
                session.set_rules(name.as_str(), None);
            }
            stays
        });
        for (name, data) in there {
            let stamp = (data.modified().ok(), data.len());
            if self.read.get(&name) == Some(&stamp) {
                continue;
            }
            // A file that cannot be read now is looked at again.
            let mut bytes = Vec::new();
            let file = File::open(root.join(&name));
            if file.is_ok_and(|file| file.take(MOST).read_to_end(&mut bytes).is_ok()) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                session.set_rules(name.as_str(), Some(text.as_str()).filter(|text| !text.trim().is_empty()));
                self.read.insert(name, stamp);
            }
        }
    }
}
