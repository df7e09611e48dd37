//! What happens while a person types: names of commands and files are completed, and a message may have many lines.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::commands::COMMANDS;
use super::editor::{At, Stage};
use super::prompt::Prompt;
use super::typed::Typed;

/// Files that are looked at for a completion, and names that are offered.
const LOOKED_AT: usize = 20_000;
const OFFERED: usize = 50;

/// Watches a line while it is typed.
pub(super) struct Typing {
    project: PathBuf,
    at: At,
    prompt: Prompt,
    typed: Typed,
}

impl Typing {
    pub(super) fn new(project: PathBuf, at: At, prompt: Prompt, typed: Typed) -> Self {
        Self { project, at, prompt, typed }
    }

    /// The line as far as it is typed.
    pub(super) fn typed(&self) -> Typed {
        self.typed.clone()
    }
}

impl Helper for Typing {}

impl Hinter for Typing {
    type Hint = String;
}

impl Highlighter for Typing {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, _: &'p str, _: bool) -> Cow<'b, str> {
        // It is drawn: lines may be printed above it.
        self.at.set(Stage::There);
        Cow::Borrowed(self.prompt.text())
    }

    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        self.typed.set(line);
        Cow::Borrowed(line)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        self.typed.set(line);
        false
    }
}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, names) = candidates(&self.project, line.get(..at).unwrap_or_default());
        Ok((start, names.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

/// Whether a message is whole: no line to be continued, no fence that is open.
pub(super) fn is_whole(text: &str) -> bool {
    let fences = text.lines().filter(|line| line.trim_start().starts_with("```")).count();
    !text.ends_with('\\') && fences.is_multiple_of(2)
}

/// A message as it is meant: a line that was continued ends where it was.
pub(super) fn meant(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Where the word starts that is being typed, and what it may be.
fn candidates(project: &Path, typed: &str) -> (usize, Vec<String>) {
    if typed.starts_with('/') && !typed.contains(char::is_whitespace) {
        let names = COMMANDS.iter().map(|command| format!("/{}", command.name));
        return (0, names.filter(|name| name.starts_with(typed)).collect());
    }
    let start = typed.rfind(char::is_whitespace).map_or(0, |at| {
        let space = typed[at..].chars().next().map_or(1, char::len_utf8);
        at + space
    });
    match typed[start..].strip_prefix('@') {
        Some(path) => (start, files(project, path)),
        None => (start, Vec::new()),
    }
}

/// Files of the project whose paths begin so, or, if there are none, have it in them. What git ignores is not there.
fn files(project: &Path, typed: &str) -> Vec<String> {
    let walk = WalkBuilder::new(project).require_git(false).sort_by_file_name(Ord::cmp).build();
    let paths =
        walk.flatten().take(LOOKED_AT).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = paths.filter_map(|entry| Some(entry.path().strip_prefix(project).ok()?.to_str()?.to_owned()));
    // A name that a terminal would obey is not offered.
    let paths: Vec<String> = paths.filter(|path| !path.contains(char::is_control)).collect();
    let chosen = |fits: &dyn Fn(&String) -> bool| -> Vec<String> {
        paths.iter().filter(|path| fits(path)).take(OFFERED).map(|path| format!("@{path}")).collect()
    };
    let begin = chosen(&|path| path.starts_with(typed));
    if begin.is_empty() { chosen(&|path| path.contains(typed)) } else { begin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_files_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("src/deep")).unwrap();
        for (path, text) in
            [("src/parser.rs", ""), ("src/deep/part.rs", ""), ("secret.log", ""), (".gitignore", "*.log\n")]
        {
            std::fs::write(folder.path().join(path), text).unwrap();
        }
        let of = |typed: &str| candidates(folder.path(), typed);
        assert_eq!(of("/unp"), (0, vec!["/unpin".to_owned()]));
        assert_eq!(of("look at @src/p"), (8, vec!["@src/parser.rs".to_owned()]));
        assert_eq!(of("@part"), (0, vec!["@src/deep/part.rs".to_owned()]));
        assert_eq!(of("@secret"), (0, Vec::new()));
        assert_eq!(of("时间\u{3000}@src/pa"), (9, vec!["@src/parser.rs".to_owned()]));
        assert_eq!(of("plain"), (0, Vec::new()));
    }

    #[test]
    fn a_message_may_have_many_lines() {
        assert!(is_whole("one line") && is_whole("```\ncode\n```"));
        assert!(!is_whole("one line \\") && !is_whole("see\n```rust\ncode"));
        assert_eq!(meant("one\\\ntwo"), "one\ntwo");
    }
}
