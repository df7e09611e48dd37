//! The agent in a terminal: a person types, the agent works, and both see what fills the context.

mod commands;
mod completion;
mod context_line;
mod conversation;
mod diff;
mod editor;
mod front;
mod markdown;
mod question;
mod screen;

use std::path::PathBuf;

use longhaul_config::Config;
use tokio::runtime::Runtime;

pub use context_line::context_line;
pub use front::TerminalFront;
pub use screen::Screen;

use self::conversation::Conversation;
use self::editor::Editor;
use crate::agent::options::Options;
use crate::agent::spent::Spent;
use crate::error::Failure;

/// Starts the agent, and ends with the person.
pub fn run(options: Options, config: &Config) -> Result<(), Failure> {
    let agent = options.agent(config)?;
    let (editor, screen) = Editor::start(agent.project().root(), history(config));
    let front = TerminalFront::new(screen, Spent::on(agent.session().model()), editor.is_terminal());
    let runtime = Runtime::new()?;
    let done = runtime.block_on(async {
        let mut conversation = Conversation::new(agent, front, options, config);
        conversation.talk(editor).await
    });
    // A tool that still runs is not waited for.
    runtime.shutdown_background();
    done
}

/// Where lines that were typed are remembered: beside the sessions, if these are in a file.
fn history(config: &Config) -> Option<PathBuf> {
    let store = config.store();
    let folder = PathBuf::from(&store).parent()?.to_owned();
    (!store.contains("://") && folder.is_dir()).then(|| folder.join("history"))
}
