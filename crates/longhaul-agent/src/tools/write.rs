//! Write: a whole file.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::edit::{changed, is_known, written};
use crate::consent::Change;
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::Project;
use crate::text_file::{TextFile, replace};
use crate::tool::{Effect, FileTool};

pub(crate) struct Write;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(alias = "file_path")]
    path: String,
    content: String,
}

impl FileTool for Write {
    type Arguments = Arguments;
    const NAME: &'static str = "Write";
    const DESCRIPTION: &'static str = "Writes a whole file of the project; folders are made. A file that is there must \
        have been read before. To change a part of a file use Edit.";

    fn schema() -> (Value, &'static [&'static str]) {
        let properties = json!({
            "path": { "type": "string", "description": "The file, from the project root on" },
            "content": { "type": "string", "description": "All of it" },
        });
        (properties, &["path", "content"])
    }

    fn effect(arguments: &Arguments) -> Effect {
        Effect::Changes(arguments.path.clone())
    }

    fn change(project: &Project, arguments: &Arguments) -> Result<Option<Change>, ToolError> {
        let place = project.place_to_write(&arguments.path)?;
        let before = match place.path().symlink_metadata() {
            Ok(_) => Some(TextFile::read(&place)?.text),
            Err(_) => None,
        };
        Ok(Some(Change { path: place.shown().to_owned(), before, after: arguments.content.clone() }))
    }

    fn run(project: &Project, arguments: Arguments, _: &CancellationToken) -> Result<Envelope, ToolError> {
        let Arguments { path, content } = arguments;
        let place = project.place_to_write(&path)?;
        if place.path().is_dir() {
            return Err(ToolError::new(Code::InvalidParam, format!("`{}` is a folder", place.shown())));
        }
        let lines = content.lines().count();
        if place.path().symlink_metadata().is_err() {
            let stamp = replace(&place, content.as_bytes(), None)?;
            let mtime = stamp.mtime_ms();
            written(project, &place, stamp);
            let text = format!("{} was created: {lines} lines", place.shown());
            return Ok(Envelope::success(text)
                .with("path", place.shown())
                .with("applied", true)
                .with("created", true)
                .with("lines", lines)
                .with("mtime", mtime));
        }
        let file = TextFile::read(&place)?;
        let known = project.read().knows(place.path(), &file.stamp);
        is_known(known, &place)?;
        let stamp = file.write(&place, &content)?;
        let mtime = stamp.mtime_ms();
        written(project, &place, stamp);
        Ok(changed(&place, &file.text, &content, &[], mtime).with("applied", true).with("created", false))
    }
}
