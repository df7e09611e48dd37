//! The tools that a model may call, by name.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::consent::Asked;
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::Project;
use crate::tool::{Definition, Effect, In, Tool};
use crate::tools::edit::Edit;
use crate::tools::glob::Glob;
use crate::tools::grep::Grep;
use crate::tools::ls::Ls;
use crate::tools::multi_edit::MultiEdit;
use crate::tools::read::Read;
use crate::tools::write::Write;

/// The tools that a model may call.
///
/// ```
/// use std::sync::Arc;
/// use longhaul_agent::{Project, Toolbox};
/// use serde_json::json;
/// use tokio_util::sync::CancellationToken;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("a.txt"), "one\ntwo\n")?;
/// let tools = Toolbox::files(&Arc::new(Project::new(folder.path())?));
/// let read = tools.run("Read", json!({"path": "a.txt", "offset": 2}), &CancellationToken::new()).await;
/// assert_eq!(read.plain.as_deref(), Some("2\ttwo\n"));
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Toolbox {
    tools: Vec<(Definition, Arc<dyn Tool>)>,
}

impl Toolbox {
    /// Without any.
    pub fn empty() -> Self {
        Self { tools: Vec::new() }
    }

    /// Those that work on the files of a project: LS, Glob, Grep, Read, Edit, MultiEdit, Write.
    pub fn files(project: &Arc<Project>) -> Self {
        let mut tools = Self::empty();
        for tool in [
            In::<Ls>::project(project),
            In::<Glob>::project(project),
            In::<Grep>::project(project),
            In::<Read>::project(project),
            In::<Edit>::project(project),
            In::<MultiEdit>::project(project),
            In::<Write>::project(project),
        ] {
            tools.add(tool);
        }
        tools
    }

    /// One more. A tool of the same name makes room.
    pub fn add(&mut self, tool: Box<dyn Tool>) {
        let definition = tool.definition();
        self.tools.retain(|(before, _)| before.name != definition.name);
        self.tools.push((definition, tool.into()));
    }

    /// What the model is told, in a fixed order.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(|(definition, _)| definition)
    }

    /// What a call would do.
    pub fn effect(&self, name: &str, arguments: &Value) -> Effect {
        self.find(name).map_or(Effect::None, |tool| tool.effect(arguments))
    }

    /// What a call would do, whole.
    pub fn asked(&self, name: &str, arguments: &Value) -> Asked {
        self.find(name).map_or_else(|| Asked::Call(arguments.clone()), |tool| tool.asked(arguments))
    }

    /// Answers a call, whatever it is.
    pub async fn run(&self, name: &str, arguments: Value, stop: &CancellationToken) -> Envelope {
        match self.find(name) {
            Some(tool) => tool.run(arguments, stop).await,
            None => Envelope::error(self.no_tool(name)),
        }
    }

    fn find(&self, name: &str) -> Option<&dyn Tool> {
        let named = |exact: bool| {
            self.tools.iter().find(move |(definition, _)| match exact {
                true => definition.name == name,
                false => definition.name.eq_ignore_ascii_case(name),
            })
        };
        // Models do not always mind the case of a letter.
        named(true).or_else(|| named(false)).map(|(_, tool)| &**tool)
    }

    fn no_tool(&self, name: &str) -> ToolError {
        let names: Vec<&str> = self.definitions().map(|definition| definition.name.as_str()).collect();
        let name: String = name.chars().take(100).collect();
        ToolError::new(Code::NoSuchTool, format!("there is no tool `{name}`; there are {}", names.join(", ")))
    }
}
