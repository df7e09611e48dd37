//! A coding agent on the context engine.
//!
//! - [`Agent`] is the loop: what a person says, replies of the model, calls of tools, until there is an answer.
//! - [`Toolbox`] has the tools that a model may call, each in a file of its own under `tools/`, and runs
//!   calls of them. What a tool says is an [`Envelope`].
//! - [`Bash`] runs commands, in the background too ([`Jobs`]), and confined where that is wanted ([`Confinement`]).
//! - [`Project`] is where the tools work: a root that no path leaves, and what was read in it.

mod agent;
mod consent;
mod envelope;
mod event;
mod files_read;
mod front;
mod git_stat;
mod mcp;
mod permission;
mod project;
mod project_rules;
pub mod protected;
mod react;
mod repeated;
mod session_tools;
mod shell;
mod surroundings;
mod task;
mod text_file;
mod tool;
mod toolbox;
mod tools;

pub use agent::{Agent, AgentError, AgentSettings, Ended};
pub use consent::{Answer, Asked, Change, Consent, Keep, LineKind, Reach, visible};
pub use envelope::{Code, Envelope, Form, Image, Status, ToolError};
pub use event::{Compaction, Event};
pub use front::Front;
pub use mcp::{BadServers, ConnectedServer, McpServers, ServerSettings, connect};
pub use permission::{BadRule, Mode, Permissions, Verdict};
pub use project::{Place, Project};
pub use react::React;
pub use shell::confine::{Bounds, Confinement, Enforced, Writing, launch_confined};
pub use shell::environment::holds_a_key;
pub use shell::jobs::Jobs;
pub use tool::{Definition, Effect, Running, Tool};
pub use toolbox::Toolbox;
pub use tools::bash::{Bash, BashSettings};
