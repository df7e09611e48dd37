//! The agent in a terminal: a person types, the agent works, and both see what fills the context.

mod commands;
mod completion;
mod context_line;
mod conversation;
mod diff;
mod editor;
mod front;
mod markdown;
mod prompt;
mod question;
mod screen;
mod typed;

use std::path::PathBuf;
use std::process::ExitCode;

use longhaul_config::Config;
use tokio::runtime::Runtime;

pub use context_line::context_line;
pub use front::TerminalFront;
pub use screen::Screen;

use self::conversation::Conversation;
use self::editor::Editor;
use crate::agent::kept_rules::KeptRules;
use crate::agent::options::Options;
use crate::agent::spent::Spent;
use crate::error::Failure;
use crate::terminal::{one_line, width};

/// Starts the agent, and ends with the person.
pub fn run(options: Options, config: &Config) -> Result<ExitCode, Failure> {
    let options = options.with_settings(config);
    options.check()?;
    let folder = options.folder()?;
    let folder = folder.canonicalize().map_err(|error| Failure::file(&folder, error))?;
    let (mut editor, screen) = Editor::start(&folder, history(&options, config));
    if editor.is_terminal() {
        // A person may type at once: what the agent needs (a vocabulary, certificates) takes longer than a prompt.
        editor.ask();
    }
    let (mut agent, commands) = match options.agent(config) {
        Ok(made) => made,
        Err(failure) => {
            editor.close();
            return Err(failure);
        }
    };
    let mut front = TerminalFront::new(screen, Spent::going_on(agent.session()), editor.is_terminal());
    (front.prompt, front.typed) = (editor.prompt(), editor.typed());
    front.kept = KeptRules::of(agent.project().root());
    if editor.is_terminal() {
        // An answer in a pipe has nothing else in it.
        front.thought.shown = options.thinking();
    }
    let runtime = Runtime::new()?;
    let done = runtime.block_on(async {
        let problems = match options.connect(&mut agent).await {
            Ok(problems) => problems,
            Err(failure) => {
                editor.close();
                return Err(failure);
            }
        };
        let ignored = config.ignored().iter().map(ToString::to_string);
        for problem in ignored.chain(problems) {
            front.screen.bad(one_line(&problem, 3 * width()));
        }
        let mut conversation = Conversation::new(agent, front, options, config, commands);
        conversation.talk(editor).await
    });
    // A tool that still runs is not waited for.
    runtime.shutdown_background();
    done
}

/// Where lines that were typed are remembered: beside the sessions, if these are in a file.
fn history(options: &Options, config: &Config) -> Option<PathBuf> {
    let store = options.place(config).ok()?;
    let folder = PathBuf::from(store.as_str()).parent()?.to_owned();
    (!store.is_url()).then(|| folder.join("longhaul.history"))
}
