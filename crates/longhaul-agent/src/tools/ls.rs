//! LS: what is in a folder.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::envelope::{Code, Envelope, ToolError};
use crate::project::{Project, shown};
use crate::tool::{Effect, FileTool};

pub(crate) struct Ls;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(default, alias = "file_path", alias = "directory")]
    path: String,
}

/// Entries that are shown.
const SHOWN: usize = 1_000;
/// Entries that are looked at: a folder with more says so.
const LOOKED_AT: usize = 200_000;

impl FileTool for Ls {
    type Arguments = Arguments;
    const NAME: &'static str = "LS";
    const DESCRIPTION: &'static str =
        "Lists a folder of the project, one level deep. Folders end in a slash. For files by name use Glob.";

    fn schema() -> (Value, &'static [&'static str]) {
        (
            json!({ "path": { "type": "string", "description": "The folder, from the project root on; the root if left out" } }),
            &[],
        )
    }

    fn effect(_: &Arguments) -> Effect {
        Effect::Reads
    }

    fn run(project: &Project, arguments: Arguments, _: &CancellationToken) -> Result<Envelope, ToolError> {
        let place = project.place(&arguments.path)?;
        let failed = |error: std::io::Error| ToolError::of_io(&error, place.shown());
        if place.path().is_file() {
            return Err(ToolError::new(
                Code::InvalidParam,
                format!("`{}` is a file; use Read", place.shown()),
            ));
        }
        let mut names: Vec<String> = Vec::new();
        let mut more = false;
        for entry in std::fs::read_dir(place.path()).map_err(failed)? {
            if names.len() == LOOKED_AT {
                more = true;
                break;
            }
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let end = match (kind.is_dir(), kind.is_symlink()) {
                (true, _) => "/",
                (_, true) => "@",
                _ => "",
            };
            names.push(shown(entry.file_name().as_ref()) + end);
        }
        names.sort_unstable();
        let total = names.len();
        names.truncate(SHOWN);
        let counted = if more { format!("more than {total}") } else { total.to_string() };
        let text = format!("{counted} entries in {}", place.shown());
        let truncated = more || names.len() < total;
        let mut plain = names.join("\n");
        if truncated {
            plain.push_str(&format!("\n… {counted} entries in all, the first {SHOWN} are shown"));
        } else if names.is_empty() {
            plain = format!("{} is empty", place.shown());
        }
        Ok(Envelope::success(text)
            .with("path", place.shown())
            .with("entries", names)
            .with("total", total)
            .with("truncated", truncated)
            .plain(plain)
            .partial_if(truncated))
    }
}
