//! Walking through the files of a project as git would: without what is ignored, without `.git`, following no link.

use std::path::Path;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{WalkBuilder, WalkParallel, WalkState};
use tokio_util::sync::CancellationToken;

use crate::envelope::{Code, ToolError};

/// The walk from a folder or file on. `only` is a glob that paths must fit, from the folder on.
pub(crate) fn from(start: &Path, only: Option<&str>) -> Result<WalkParallel, ToolError> {
    let mut walk = WalkBuilder::new(start);
    walk.hidden(false).require_git(false).follow_links(false).threads(threads());
    walk.filter_entry(|entry| entry.file_name() != ".git");
    if let Some(glob) = only {
        walk.overrides(only_these(start, glob)?);
    }
    Ok(walk.build_parallel())
}

fn only_these(start: &Path, glob: &str) -> Result<Override, ToolError> {
    let bad =
        |error: ignore::Error| ToolError::new(Code::InvalidParam, format!("`{glob}` is no glob: {error}"));
    let start = if start.is_file() { start.parent().unwrap_or(start) } else { start };
    let mut builder = OverrideBuilder::new(start);
    // A name without a slash fits in every folder, as in .gitignore.
    builder.add(glob.trim_start_matches("./")).map_err(bad)?;
    builder.build().map_err(bad)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().min(8))
}

/// Goes on with a walk, unless the user stopped it.
pub(crate) fn unless(stop: &CancellationToken) -> WalkState {
    if stop.is_cancelled() { WalkState::Quit } else { WalkState::Continue }
}

/// The error for a call that the user stopped.
pub(crate) fn interrupted(tool: &str) -> ToolError {
    ToolError::new(Code::Interrupted, format!("{tool} was stopped by the user"))
}
