//! What comes before the messages: the system prompt and the tools.

use longhaul::{Block, Frame, Json, Session};
use serde_json::{Value, json};

use super::AgentSettings;
use crate::project::Project;
use crate::session_tools::{SESSION_TOOLS, SessionTool};
use crate::task;
use crate::tool::Definition;
use crate::toolbox::Toolbox;

/// What comes before the messages: the same bytes as long as folder, tools and settings are the same.
pub(super) fn frame(
    session: &Session,
    project: &Project,
    tools: &Toolbox,
    settings: &AgentSettings,
    has_tasks: bool,
) -> Frame {
    let folder =
        project.root().file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut system = include_str!("../../templates/system.md")
        .trim_end()
        .replace("{folder}", &folder)
        .replace("{platform}", std::env::consts::OS);
    if let Some(note) = session.profile().system_note() {
        system = format!("{system}\n\n{note}");
    }
    let mut own: Vec<Definition> = SESSION_TOOLS.iter().map(SessionTool::definition).collect();
    own.extend(has_tasks.then(task::definition));
    let definition = |definition: &Definition| {
        let Definition { name, description, schema } = definition;
        longhaul::Tool::from_definition(Json::from(
            &json!({ "name": name, "description": description, "input_schema": schema }),
        ))
    };
    let mut frame = Frame {
        model: Some(settings.model.as_str().into()),
        system: vec![Block::text(system)],
        tools: tools.definitions().chain(&own).map(definition).collect(),
        ..Frame::default()
    };
    if let Some(most) = settings.max_output {
        frame.settings.set("max_tokens", Json::from(&Value::from(most)));
    }
    frame
}
