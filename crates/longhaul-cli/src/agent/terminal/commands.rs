//! What a person can say to Longhaul itself: lines that begin with `/`. One table; a command is a row of it.

mod about;
mod edits;
mod facts;
mod filling;
mod sessions;
mod settings;

use longhaul_config::nearest;

use super::conversation::Conversation;

/// A command.
pub struct Command {
    /// What is typed behind the `/`.
    pub name: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// What `/help` says of it.
    pub does: &'static str,
    run: fn(&mut Conversation<'_>, &str) -> Result<(), String>,
}

/// All of them, as `/help` has them.
pub const COMMANDS: &[Command] = &[
    Command { name: "help", takes: "", does: "what there is", run: about::help },
    Command {
        name: "context",
        takes: "",
        does: "what fills the window, and what could go",
        run: filling::context,
    },
    Command {
        name: "compact",
        takes: "[FOCUS]",
        does: "make room before the next request",
        run: filling::compact,
    },
    Command { name: "cost", takes: "", does: "what was billed so far", run: about::cost },
    Command { name: "pin", takes: "TEXT", does: "a text that stays in every request", run: facts::pin },
    Command { name: "pins", takes: "", does: "what is pinned", run: facts::pins },
    Command { name: "unpin", takes: "N", does: "remove a pin", run: facts::unpin },
    Command { name: "goal", takes: "[TEXT]", does: "what the work is for", run: facts::goal },
    Command { name: "remember", takes: "TEXT", does: "a memory for this session", run: facts::remember },
    Command { name: "undo", takes: "[N]", does: "take an edit of the context back", run: edits::undo },
    Command { name: "redo", takes: "[N]", does: "make it again", run: edits::redo },
    Command {
        name: "recall",
        takes: "[HANDLE [A-B]]",
        does: "what was taken out, word for word",
        run: edits::recall,
    },
    Command {
        name: "model",
        takes: "[NAME]",
        does: "which model answers, or another one",
        run: settings::model,
    },
    Command { name: "profile", takes: "[NAME]", does: "how to compact", run: settings::profile },
    Command {
        name: "permissions",
        takes: "[MODE]",
        does: "what may be done without asking",
        run: settings::permissions,
    },
    Command {
        name: "thinking",
        takes: "[MODE]",
        does: "what is shown of the model's thoughts",
        run: settings::thinking,
    },
    Command {
        name: "resume",
        takes: "[SESSION]",
        does: "sessions of this project, or go on with one",
        run: sessions::resume,
    },
    Command { name: "fork", takes: "", does: "go on in a copy of this session", run: sessions::fork },
    Command { name: "clear", takes: "", does: "a new session", run: sessions::clear },
    Command { name: "export", takes: "[FILE]", does: "write the session to a file", run: sessions::export },
    Command { name: "quit", takes: "", does: "leave; the session is stored", run: about::quit },
];

/// Runs what stands behind the `/`.
pub fn run(conversation: &mut Conversation<'_>, line: &str) -> Result<(), String> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let command = find(name)?;
    (command.run)(conversation, rest.trim())?;
    // What a person did to the session is stored at once.
    conversation.agent.keep().map_err(|error| format!("the session could not be stored: {error}"))
}

fn find(name: &str) -> Result<&'static Command, String> {
    let known = COMMANDS.iter().find(|command| command.name == name.to_lowercase());
    known.ok_or_else(|| {
        let near = nearest(name, COMMANDS.iter().map(|command| command.name));
        format!("there is no command /{name}; is /{near} meant? /help says what there is")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_and_fits_its_line() {
        for command in COMMANDS {
            assert_eq!(find(command.name).map(|found| found.does), Ok(command.does));
            assert_eq!(COMMANDS.iter().filter(|other| other.name == command.name).count(), 1);
            assert!(about::help_line(command).chars().count() <= 80, "{}", command.name);
        }
    }

    #[test]
    fn every_command_is_in_the_documentation() {
        let page = include_str!("../../../../../docs/agent.md");
        for Command { name, takes, .. } in COMMANDS {
            let wanted = format!("`{}`", format!("/{name} {takes}").trim_end());
            assert!(page.contains(&wanted), "{wanted}");
        }
    }

    #[test]
    fn the_nearest_name_is_offered() {
        let says = find("contxt").err().unwrap();
        assert_eq!(says, "there is no command /contxt; is /context meant? /help says what there is");
    }
}
