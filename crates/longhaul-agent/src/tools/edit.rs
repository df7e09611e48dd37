//! Edit: one text of a file for another.

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::replacing::{Replaced, Replacement};
use crate::consent::Change;
use crate::envelope::{Code, Envelope, ToolError};
use crate::files_read::{Known, Stamp};
use crate::project::{Place, Project};
use crate::text_file::TextFile;
use crate::tool::{Effect, FileTool};

pub(crate) struct Edit;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(alias = "file_path")]
    path: String,
    #[serde(flatten)]
    replacement: Replacement,
}

impl FileTool for Edit {
    type Arguments = Arguments;
    const NAME: &'static str = "Edit";
    const DESCRIPTION: &'static str = "Replaces a text in a file of the project that was read before. `old` must stand \
        in the file exactly so, white space and all, without line numbers, and only once; `all` replaces it everywhere.";

    fn schema() -> (Value, &'static [&'static str]) {
        let properties = json!({
            "path": { "type": "string", "description": "The file, from the project root on" },
            "old": { "type": "string", "description": "The text to replace" },
            "new": { "type": "string", "description": "The text in its place" },
            "all": { "type": "boolean", "description": "Replace it wherever it stands" },
        });
        (properties, &["path", "old", "new"])
    }

    fn effect(arguments: &Arguments) -> Effect {
        Effect::Changes(arguments.path.clone())
    }

    fn change(project: &Project, arguments: &Arguments) -> Result<Option<Change>, ToolError> {
        let place = project.place_to_write(&arguments.path)?;
        planned(&place, std::slice::from_ref(&arguments.replacement)).map(Some)
    }

    fn run(project: &Project, arguments: Arguments, _: &CancellationToken) -> Result<Envelope, ToolError> {
        let place = project.place_to_write(&arguments.path)?;
        change(project, &place, &[arguments.replacement])
    }
}

/// Makes replacements in a file, one after the other, all or none.
pub(crate) fn change(
    project: &Project,
    place: &Place,
    replacements: &[Replacement],
) -> Result<Envelope, ToolError> {
    // Nobody else of ours changes a file in between.
    let mut read = project.read();
    let file = TextFile::read(place)?;
    is_known(read.knows(place.path(), &file.stamp), place)?;
    let Replaced { text, lines } = replaced(&file.text, place, replacements)?;
    let stamp = file.write(place, &text)?;
    let mtime = stamp.mtime_ms();
    read.see(place.path(), stamp);
    drop(read);
    Ok(changed(place, &file.text, &text, &lines, mtime).with("applied", replacements.len()))
}

/// What replacements would make of a file, without making them.
pub(crate) fn planned(place: &Place, replacements: &[Replacement]) -> Result<Change, ToolError> {
    let before = TextFile::read(place)?.text;
    let after = replaced(&before, place, replacements)?.text;
    Ok(Change { path: place.shown().to_owned(), before: Some(before), after })
}

/// A text with all replacements, one after the other.
fn replaced(text: &str, place: &Place, replacements: &[Replacement]) -> Result<Replaced, ToolError> {
    let (mut text, mut lines) = (text.to_owned(), Vec::new());
    for (number, replacement) in (1..).zip(replacements) {
        let replaced = replacement.make(&text, place.shown()).map_err(|error| match replacements.len() {
            1 => error,
            all => ToolError::new(error.code, format!("edit {number} of {all}: {error} (none was made)")),
        })?;
        text = replaced.text;
        lines.extend(replaced.lines);
    }
    Ok(Replaced { text, lines })
}

/// What is said of a file that was changed.
pub(crate) fn changed(
    place: &Place,
    before: &str,
    after: &str,
    lines: &[Range<usize>],
    mtime: Option<u64>,
) -> Envelope {
    let diff = diff(before, after);
    let (added, removed) = counts(&diff);
    let noun = if added == 1 { "line" } else { "lines" };
    let text = format!("{} was changed: {added} {noun} added, {removed} removed", place.shown());
    let ranges: Vec<Value> = lines.iter().take(50).map(|range| json!([range.start, range.end - 1])).collect();
    Envelope::success(text.clone())
        .with("path", place.shown())
        .with("changed_lines", ranges)
        .with("diff", diff.clone())
        .with("mtime", mtime)
        .plain(format!("{text}\n{diff}"))
}

/// Lines of a diff that are shown.
const DIFF: usize = 50;

/// The change as people know it, with two lines around; of a large one the start.
fn diff(before: &str, after: &str) -> String {
    let config = similar::TextDiff::configure().timeout(std::time::Duration::from_millis(200)).clone();
    let diff = config.diff_lines(before, after);
    let shown = diff.unified_diff().context_radius(2).to_string();
    let total = shown.lines().count();
    let mut lines: Vec<&str> = shown.lines().take(DIFF).collect();
    let more = format!("… {} lines of the change more", total.saturating_sub(DIFF));
    if total > DIFF {
        lines.push(&more);
    }
    lines.iter().map(|line| super::cut(line).0).collect::<Vec<_>>().join("\n")
}

fn counts(diff: &str) -> (usize, usize) {
    let starting = |sign: char| diff.lines().filter(|line| line.starts_with(sign)).count();
    (starting('+'), starting('-'))
}

/// Refuses to change what the model does not know.
pub(crate) fn is_known(known: Known, place: &Place) -> Result<(), ToolError> {
    match known {
        Known::AsItIs => Ok(()),
        Known::Older => Err(ToolError::new(
            Code::Changed,
            format!("`{}` was changed by somebody else since it was read: read it again", place.shown()),
        )),
        Known::Never => Err(ToolError::new(
            Code::NotRead,
            format!("`{}` was not read yet: read it before changing it", place.shown()),
        )),
    }
}

/// What the model knows of a file that was just written is that file.
pub(crate) fn written(project: &Project, place: &Place, stamp: Stamp) {
    project.read().see(place.path(), stamp);
}
