//! Glob: files by their names.

use std::sync::Mutex;
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::walk;
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::Project;
use crate::tool::{Effect, FileTool};

pub(crate) struct Glob;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    pattern: String,
    #[serde(default)]
    path: String,
}

/// Paths that are shown.
const SHOWN: usize = 200;

impl FileTool for Glob {
    type Arguments = Arguments;
    const NAME: &'static str = "Glob";
    const DESCRIPTION: &'static str = "Finds files by name, such as `**/*.rs` or `src/**/test_*.py`, newest first. \
        What git ignores is left out. For what is in files use Grep.";

    fn schema() -> (Value, &'static [&'static str]) {
        let properties = json!({
            "pattern": { "type": "string", "description": "The glob; `**` goes through folders" },
            "path": { "type": "string", "description": "The folder to look in; the project root if left out" },
        });
        (properties, &["pattern"])
    }

    fn effect(_: &Arguments) -> Effect {
        Effect::Reads
    }

    fn run(project: &Project, arguments: Arguments, stop: &CancellationToken) -> Result<Envelope, ToolError> {
        let pattern = arguments.pattern.as_str();
        let start = project.place(&arguments.path)?;
        if !start.path().is_dir() {
            return Err(ToolError::new(Code::NotFound, format!("there is no folder `{}`", start.shown())));
        }
        let bad = |error| ToolError::new(Code::InvalidParam, format!("`{pattern}` is no glob: {error}"));
        let glob =
            globset::GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
        let glob = glob.map_err(bad)?.compile_matcher();
        let found: Mutex<Vec<(SystemTime, String)>> = Mutex::default();
        walk::from(start.path(), None)?.run(|| {
            Box::new(|entry| {
                let Ok(entry) = entry else { return walk::unless(stop) };
                let inside = entry.path().strip_prefix(start.path()).unwrap_or(entry.path());
                if entry.file_type().is_some_and(|kind| !kind.is_dir()) && glob.is_match(inside) {
                    let modified = entry.metadata().ok().and_then(|data| data.modified().ok());
                    let shown = project.at(entry.path().to_owned()).shown().to_owned();
                    if let Ok(mut found) = found.lock() {
                        found.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), shown));
                    }
                }
                walk::unless(stop)
            })
        });
        if stop.is_cancelled() {
            return Err(walk::interrupted(Self::NAME));
        }
        let mut found = found.into_inner().unwrap_or_default();
        found.sort_unstable_by(|(a_time, a), (b_time, b)| b_time.cmp(a_time).then_with(|| a.cmp(b)));
        let total = found.len();
        let paths: Vec<String> = found.into_iter().take(SHOWN).map(|(_, path)| path).collect();
        let mut plain = paths.join("\n");
        if paths.len() < total {
            plain.push_str(&format!("\n… {total} files in all, the newest {SHOWN} are shown"));
        } else if total == 0 {
            plain = format!("no file fits `{pattern}`");
        }
        let truncated = paths.len() < total;
        Ok(Envelope::success(format!("{total} files fit `{pattern}`"))
            .with("pattern", pattern)
            .with("paths", paths)
            .with("total", total)
            .with("truncated", truncated)
            .plain(plain)
            .partial_if(truncated))
    }
}
