//! What a tool is: a name, a schema, what it would do to the world, and a call that is answered.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::consent::{Asked, Change};
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::Project;

/// A call that is being answered.
pub type Running<'a> = Pin<Box<dyn Future<Output = Envelope> + Send + 'a>>;

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub schema: Value,
}

/// What a call would do to the world: what permission is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing outside this conversation.
    None,
    /// Looks at files of the project.
    Reads,
    /// Changes this file of the project.
    Changes(String),
    /// Runs this command.
    Runs(String),
    /// Whatever a server does for this tool.
    Foreign(String),
}

/// Something that a model may call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn definition(&self) -> Definition;

    /// What a call would do. Arguments that cannot be read do nothing: `run` says what is wrong with them.
    fn effect(&self, arguments: &Value) -> Effect;

    /// What a call would do, whole, for a person who is asked.
    fn asked(&self, arguments: &Value) -> Asked {
        Asked::Call(arguments.clone())
    }

    /// Answers a call. `stop` is the user's interrupt.
    fn run<'a>(&'a self, arguments: Value, stop: &'a CancellationToken) -> Running<'a>;
}

/// A tool that works on the files of a project, on a thread that may block.
pub(crate) trait FileTool: Send + Sync + 'static {
    type Arguments: DeserializeOwned + Send + 'static;
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    /// The properties of the schema, and the names of those that must be there.
    fn schema() -> (Value, &'static [&'static str]);

    fn effect(arguments: &Self::Arguments) -> Effect;

    /// The change that a call would make to a file, if it would make one.
    fn change(_: &Project, _: &Self::Arguments) -> Result<Option<Change>, ToolError> {
        Ok(None)
    }

    fn run(
        project: &Project,
        arguments: Self::Arguments,
        stop: &CancellationToken,
    ) -> Result<Envelope, ToolError>;
}

/// A file tool in a project.
pub(crate) struct In<T> {
    project: Arc<Project>,
    tool: std::marker::PhantomData<fn() -> T>,
}

impl<T: FileTool> In<T> {
    pub(crate) fn project(project: &Arc<Project>) -> Box<dyn Tool> {
        Box::new(Self { project: project.clone(), tool: std::marker::PhantomData })
    }
}

impl<T: FileTool> Tool for In<T> {
    fn definition(&self) -> Definition {
        let (properties, required) = T::schema();
        Definition {
            name: T::NAME.to_owned(),
            description: T::DESCRIPTION.to_owned(),
            schema: json!({ "type": "object", "properties": properties, "required": required }),
        }
    }

    fn effect(&self, arguments: &Value) -> Effect {
        read_arguments::<T::Arguments>(T::NAME, arguments.clone())
            .map_or(Effect::None, |arguments| T::effect(&arguments))
    }

    fn asked(&self, arguments: &Value) -> Asked {
        let change = read_arguments::<T::Arguments>(T::NAME, arguments.clone())
            .and_then(|arguments| T::change(&self.project, &arguments));
        // A change that cannot be made fails when it runs, and says why.
        change.ok().flatten().map_or_else(|| Asked::Call(arguments.clone()), Asked::Change)
    }

    fn run<'a>(&'a self, arguments: Value, stop: &'a CancellationToken) -> Running<'a> {
        Box::pin(async move {
            let begun = Instant::now();
            let asked = arguments.clone();
            let (project, stop) = (self.project.clone(), stop.clone());
            let work = tokio::task::spawn_blocking(move || {
                T::run(&project, read_arguments(T::NAME, arguments)?, &stop)
            });
            let broke = |_| ToolError::new(Code::Failed, format!("{} broke off: a bug of ours", T::NAME));
            answered(work.await.map_err(broke).and_then(|result| result), asked, begun)
        })
    }
}

/// What a tool said, with what was asked and how long it took.
pub(crate) fn answered(said: Result<Envelope, ToolError>, asked: Value, begun: Instant) -> Envelope {
    let mut envelope = Envelope::from(said);
    envelope.context.insert("params_input".to_owned(), asked);
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    envelope.counted("time_ms", ms)
}

/// The arguments of a call, or what is wrong with them.
pub(crate) fn read_arguments<T: DeserializeOwned>(tool: &str, arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| {
        ToolError::new(Code::InvalidParam, format!("{tool} does not take these arguments: {error}"))
    })
}
