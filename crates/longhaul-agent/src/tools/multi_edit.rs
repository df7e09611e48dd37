//! MultiEdit: several replacements in one file, all or none.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::edit::{change, planned};
use super::replacing::Replacement;
use crate::consent::Change;
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::Project;
use crate::tool::{Effect, FileTool};

pub(crate) struct MultiEdit;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(alias = "file_path")]
    path: String,
    edits: Vec<Replacement>,
}

impl FileTool for MultiEdit {
    type Arguments = Arguments;
    const NAME: &'static str = "MultiEdit";
    const DESCRIPTION: &'static str = "Makes several replacements in one file, one after the other as Edit does: each \
        sees what those before it have changed. If one fails, none is made.";

    fn schema() -> (Value, &'static [&'static str]) {
        let edit = json!({
            "type": "object",
            "properties": {
                "old": { "type": "string" },
                "new": { "type": "string" },
                "all": { "type": "boolean" },
            },
            "required": ["old", "new"],
        });
        let properties = json!({
            "path": { "type": "string", "description": "The file, from the project root on" },
            "edits": { "type": "array", "items": edit },
        });
        (properties, &["path", "edits"])
    }

    fn effect(arguments: &Arguments) -> Effect {
        Effect::Changes(arguments.path.clone())
    }

    fn change(project: &Project, arguments: &Arguments) -> Result<Option<Change>, ToolError> {
        let place = project.place_to_write(&arguments.path)?;
        planned(&place, &arguments.edits).map(Some)
    }

    fn run(project: &Project, arguments: Arguments, _: &CancellationToken) -> Result<Envelope, ToolError> {
        if arguments.edits.is_empty() {
            return Err(ToolError::new(Code::InvalidParam, "`edits` is empty: there is nothing to change"));
        }
        let place = project.place_to_write(&arguments.path)?;
        change(project, &place, &arguments.edits)
    }
}
