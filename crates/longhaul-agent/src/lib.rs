//! A coding agent on the context engine.
//!
//! - [`Toolbox`] has the tools that a model may call, each in a file of its own under `tools/`, and runs
//!   calls of them. What a tool says is an [`Envelope`].
//! - [`Bash`] runs commands, in the background too ([`Jobs`]), and confined where that is wanted ([`Confinement`]).
//! - [`Project`] is where the tools work: a root that no path leaves, and what was read in it.

mod envelope;
mod files_read;
mod project;
mod shell;
mod text_file;
mod tool;
mod toolbox;
mod tools;

pub use envelope::{Code, Envelope, Form, Image, Status, ToolError};
pub use project::{Place, Project};
pub use shell::confine::{Confinement, Enforced, launch_confined};
pub use shell::jobs::Jobs;
pub use tool::{Definition, Effect, Running, Tool};
pub use toolbox::Toolbox;
pub use tools::bash::{Bash, BashSettings};
