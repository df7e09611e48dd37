//! What a slot of a summary can say: words, or something that code counted and a later summary
//! counts on from. A statement is a value; its words are made from it in the language of the
//! summary.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Language;
use super::slot::{Look, Slot};

/// One value of a slot. `T` holds plain words: a string while a summary is made, a passage of
/// its text once it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Statement<T = String> {
    Words(T),
    File(File),
    Command(Command),
    Problem(Problem),
    Request(Request),
    Todos(Vec<Todo>),
}

/// A file and what was done with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) reads: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) changes: usize,
}

/// A command and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) line: String,
    /// Its exit status, where the result says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<i64>,
    pub(crate) failed: bool,
}

/// An error and whether the same call went well later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) line: String,
    /// The call it came from.
    pub(crate) call: String,
    pub(crate) solved: bool,
}

/// A turn: what a person asked for, and the first words of the answer, if the turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) asked: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
}

/// A line of a task list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Todo {
    pub(crate) state: TodoState,
    pub(crate) text: String,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TodoState {
    Open,
    Running,
    Done,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<T> Statement<T> {
    /// The same with its words held otherwise; `None` where `convert` has none.
    pub(crate) fn with_words<U>(&self, convert: impl FnOnce(&T) -> Option<U>) -> Option<Statement<U>> {
        Some(match self {
            Self::Words(words) => Statement::Words(convert(words)?),
            Self::File(file) => Statement::File(file.clone()),
            Self::Command(command) => Statement::Command(command.clone()),
            Self::Problem(problem) => Statement::Problem(problem.clone()),
            Self::Request(request) => Statement::Request(request.clone()),
            Self::Todos(todos) => Statement::Todos(todos.clone()),
        })
    }
}

impl Statement {
    /// True for what somebody said, false for what code found.
    pub(crate) fn is_words(&self) -> bool {
        matches!(self, Self::Words(_))
    }

    /// In words.
    pub(crate) fn say(&self, language: Language) -> Cow<'_, str> {
        match self {
            Self::Words(words) => words.as_str().into(),
            Self::File(file) => file.say(language).into(),
            Self::Command(command) => command.say(language).into(),
            Self::Problem(problem) => problem.say(language).into(),
            Self::Request(request) => request.say(),
            Self::Todos(todos) => {
                let lines: Vec<String> = todos.iter().map(Todo::say).collect();
                lines.join("\n").into()
            }
        }
    }

    /// The file that it speaks of: counted, or named and counted in the words of a model.
    pub(crate) fn into_file(self) -> Option<File> {
        match self {
            Self::File(file) => Some(file),
            Self::Words(words) => Language::ALL.into_iter().find_map(|language| File::read(&words, language)),
            _ => None,
        }
    }

    /// True if it begins with the name of this file.
    pub(crate) fn is_of(&self, file: &File) -> bool {
        let named =
            |words: &String| words.strip_prefix('`')?.split_once('`').map(|(path, _)| path == file.path);
        match self {
            Self::File(said) => said.path == file.path,
            Self::Words(words) => named(words).unwrap_or(false),
            _ => false,
        }
    }

    /// Reads what stands in a slot of a summary that has no values: one that a model wrote, or
    /// one of an old ledger.
    pub(crate) fn read(words: &str, slot: Slot, language: Language) -> Self {
        let read = match slot.look() {
            Look::File => File::read(words, language).map(Self::File),
            Look::Command => Command::read(words, language).map(Self::Command),
            Look::Problem => Problem::read(words, language).map(Self::Problem),
            Look::Words | Look::Lines => None,
        };
        // A model may say more than the value holds: then its words are the value.
        let read = read.filter(|read| read.say(language) == words);
        read.unwrap_or_else(|| Self::Words(words.to_owned()))
    }
}

impl File {
    /// `` `src/a.rs`: changed 2×, read 3× ``
    pub(crate) fn say(&self, language: Language) -> String {
        let words = language.words();
        let mut done = Vec::new();
        if self.changes > 0 {
            done.push(format!("{} {}{}", words.changed, self.changes, words.times));
        }
        if self.reads > 0 {
            done.push(format!("{} {}{}", words.read, self.reads, words.times));
        }
        format!("`{}`{}{}", self.path, words.colon, done.join(words.comma))
    }

    /// Reads what [`say`](Self::say) says.
    pub(crate) fn read(text: &str, language: Language) -> Option<Self> {
        let words = language.words();
        let (path, done) = text.strip_prefix('`')?.split_once('`')?;
        let times = |word: &str| -> usize {
            let after = done.split_once(word).map_or("", |(_, after)| after.trim_start());
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            after[..digits].parse().unwrap_or(0)
        };
        let file = Self { path: path.to_owned(), reads: times(words.read), changes: times(words.changed) };
        (file.reads + file.changes > 0).then_some(file)
    }
}

impl Command {
    /// `` `cargo test` → exit 101 ``
    pub(crate) fn say(&self, language: Language) -> String {
        let words = language.words();
        let ended = match (self.status, self.failed) {
            (Some(status), _) => format!("{} {status}", words.exit),
            (None, true) => words.failed.to_owned(),
            (None, false) => words.passed.to_owned(),
        };
        format!("`{}` → {ended}", self.line)
    }

    /// Reads what [`say`](Self::say) says.
    fn read(text: &str, language: Language) -> Option<Self> {
        let words = language.words();
        let (line, ended) = text.strip_prefix('`')?.rsplit_once("` → ")?;
        let (status, failed) = match ended.strip_prefix(words.exit) {
            Some(status) => {
                let status: i64 = status.strip_prefix(' ')?.parse().ok()?;
                (Some(status), status != 0)
            }
            None if ended == words.failed => (None, true),
            None if ended == words.passed => (None, false),
            None => return None,
        };
        Some(Self { line: line.to_owned(), status, failed })
    }
}

impl Problem {
    /// ``assertion failed (`Bash cargo test`) → open``
    pub(crate) fn say(&self, language: Language) -> String {
        let words = language.words();
        let space = if self.line.is_empty() { "" } else { " " };
        let ended = if self.solved { words.solved } else { words.unsolved };
        format!("{}{space}(`{}`) → {ended}", self.line, self.call)
    }

    /// Reads what [`say`](Self::say) says.
    fn read(text: &str, language: Language) -> Option<Self> {
        let words = language.words();
        let (said, ended) = text.rsplit_once("`) → ")?;
        let (line, call) = said.rsplit_once("(`")?;
        let solved = ended == words.solved;
        let known = solved || ended == words.unsolved;
        let line = line.strip_suffix(' ').unwrap_or(line);
        known.then(|| Self { line: line.to_owned(), call: call.to_owned(), solved })
    }
}

impl Request {
    /// `Fix the parser. - Fixed: it takes empty lines.`
    pub(crate) fn say(&self) -> Cow<'_, str> {
        match &self.answer {
            Some(answer) => format!("{} - {answer}", self.asked).into(),
            None => self.asked.as_str().into(),
        }
    }
}

impl Todo {
    fn say(&self) -> String {
        let sign = match self.state {
            TodoState::Done => "[x]",
            TodoState::Running => "[>]",
            TodoState::Open => "[ ]",
        };
        format!("{sign} {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_can_be_read() {
        let file = |reads, changes| Statement::File(File { path: "src/读.rs".to_owned(), reads, changes });
        let command = |status, failed| {
            Statement::Command(Command { line: "cargo `x` → y".to_owned(), status, failed })
        };
        let problem = |line: &str, solved| {
            Statement::Problem(Problem { line: line.to_owned(), call: "Bash cargo test".to_owned(), solved })
        };
        let all = [
            (Slot::Files, file(3, 2)),
            (Slot::Read, file(1, 0)),
            (Slot::Commands, command(Some(-1), true)),
            (Slot::Commands, command(None, true)),
            (Slot::Commands, command(None, false)),
            (Slot::Errors, problem("assertion failed (`a`) → open", false)),
            (Slot::Errors, problem("", true)),
            (Slot::Notes, Statement::Words("`x` → exit 0".to_owned())),
        ];
        for language in [Language::English, Language::Chinese] {
            for (slot, statement) in &all {
                assert_eq!(Statement::read(&statement.say(language), *slot, language), *statement);
            }
        }
    }
}
