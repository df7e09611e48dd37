//! What happened, found by code in the messages themselves: files, commands and how they ended,
//! errors and what became of them, decisions in the model's words, wishes in the person's. Every
//! statement stands in a message; nothing is made up.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Material;
use super::failing::{self, exit_status};
use super::sentences::{self, Telling, wishes};
use super::statement::{Command, File, Problem, Request, Todo, TodoState};
use crate::conversation::log::Position;
use crate::conversation::message::{Block, Role, ToolCall, ToolResult};
use crate::conversation::script::{self, made_by};
use crate::digest::{Aliases, ToolKind};

/// A line that is quoted is cut to this.
pub(super) const LINE: usize = 240;
/// A request or a command in a few words.
pub(super) const SHORT: usize = 140;
/// No path is longer, so that files are named whole; what is longer is no path.
const PATH: usize = 4_096;
/// A call, where an error is told.
const CALL: usize = 80;

/// Something and the message that it was found in.
pub(crate) type Found<T> = (Position, T);

/// What happened in a run of messages.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The one that was touched last stands last.
    pub(crate) files: Vec<Found<File>>,
    pub(crate) commands: Vec<Found<Command>>,
    pub(crate) errors: Vec<Found<Problem>>,
    pub(crate) requests: Vec<Found<Request>>,
    pub(crate) decisions: Vec<Found<String>>,
    pub(crate) learnings: Vec<Found<String>>,
    pub(crate) preferences: Vec<Found<String>>,
    /// The task list as the model wrote it last.
    pub(crate) todos: Option<Found<Vec<Todo>>>,
    /// The model's last words.
    pub(crate) last_words: Option<Found<String>>,
    /// What went well: calls, and what commands did once for all ([`failing::done`]).
    pub(crate) went_well: HashSet<String>,
    /// By path, with the message and the number of the last touch.
    touched: HashMap<String, (Found<File>, usize)>,
    touches: usize,
    /// Errors that are not solved, by their calls or by what was left undone ([`failing::undone`]).
    unsolved: HashMap<String, Vec<usize>>,
}

impl Facts {
    pub(crate) fn of<'a>(material: impl Iterator<Item = &'a Material>, aliases: &Aliases) -> Self {
        let mut facts = Self::default();
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        for material in material {
            let (at, message) = match material {
                Material::Message(at, message) => (*at, message),
                Material::Summary(_) => continue,
                Material::Asked(asked) => {
                    facts.requests.extend(asked.request().map(|request| (asked.at, request)));
                    continue;
                }
            };
            facts.wished(at, message.words());
            for block in message.blocks() {
                match (block, message.role()) {
                    (Block::Text(text), Role::Assistant) => facts.said(at, &text.text),
                    (Block::ToolCall(call), _) => {
                        calls.insert(&call.id, call);
                    }
                    (Block::ToolResult(result), _) => {
                        if let Some(call) = calls.get(&*result.id) {
                            facts.answered(at, call, result, aliases);
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut files: Vec<(Found<File>, usize)> = facts.touched.drain().map(|(_, file)| file).collect();
        files.sort_by_key(|(_, last)| *last);
        facts.files = files.into_iter().map(|(file, _)| file).collect();
        facts
    }

    fn wished<'a>(&mut self, at: Position, texts: impl Iterator<Item = &'a str>) {
        for text in texts {
            self.preferences.extend(wishes(text).into_iter().map(|wish| (at, wish)));
        }
    }

    fn said(&mut self, at: Position, text: &str) {
        for (telling, sentence) in sentences::told(text) {
            match telling {
                Telling::Decision => self.decisions.push((at, sentence)),
                Telling::Finding => self.learnings.push((at, sentence)),
            }
        }
        self.last_words = sentences::answer(text).map(|first| (at, first)).or(self.last_words.take());
    }

    /// What a call did, or each call of a script.
    fn answered(&mut self, at: Position, call: &ToolCall, result: &ToolResult, aliases: &Aliases) {
        let made = made_by(call);
        if !made.is_script() {
            let tool = aliases.kind_of(call);
            let runs = matches!(tool, ToolKind::Bash | ToolKind::Other);
            let status = if runs { exit_status(result) } else { None };
            let failed = status.map_or(result.is_error, |status| status != 0);
            let ended = Ended { status, failed, well: !failed };
            return self.called(at, call, &result.text, ended, tool);
        }
        let failed = script::has_failed(result);
        let outputs = made.outputs(result);
        let calls = made.calls();
        let are_apart = outputs.len() == calls.len();
        let is_change = |call: &ToolCall| matches!(aliases.kind_of(call), ToolKind::Edit | ToolKind::Write);
        let changes = calls.iter().filter(|call| is_change(call)).count();
        let blames_change = failed && changes == 1 && failing::reports_failed_change(&result.text);
        let mut is_anyone_blamed = false;
        for (number, call) in calls.iter().enumerate() {
            let tool = aliases.kind_of(call);
            let output = if are_apart { &result.text[outputs[number].clone()] } else { "" };
            let status = if tool == ToolKind::Bash { failing::status_in(output) } else { None };
            // A script may fail after its calls went well. A change counts as made unless the error is about it: the
            // summary names a file too many rather than one too few.
            let is_blamed = failed && if is_change(call) { blames_change } else { calls.len() == 1 };
            is_anyone_blamed |= is_blamed;
            let failed_here = status.map_or(is_blamed, |status| status != 0);
            // A script prints what a command wrote, and rarely how it ended.
            let well = !failed && !failed_here && (tool != ToolKind::Bash || status.is_some());
            self.called(at, call, output, Ended { status, failed: failed_here, well }, tool);
            if tool == ToolKind::Bash && !failed_here {
                tool.files(&call.arguments).iter().for_each(|path| self.touch(at, path, true));
            }
        }
        let of_one = |call: &ToolCall| shorten(aliases.kind_of(call).subject(&call.arguments).trim(), CALL);
        let subjects = calls.iter().map(of_one).collect::<Vec<_>>().join("; ");
        let name = format!("{} {}", call.name, shorten(&subjects, CALL)).trim_end().replace('`', "'");
        if !failed {
            self.solve(name);
        } else if !is_anyone_blamed {
            let line = failing::why(&result.text, None);
            self.unsolved.entry(name.clone()).or_default().push(self.errors.len());
            self.errors.push((at, Problem { line: shorten(&line, LINE), call: name, solved: false }));
        }
    }

    /// Something went well: errors of the same name are solved.
    fn solve(&mut self, done: String) {
        let solved = self.unsolved.remove(&done);
        solved.into_iter().flatten().for_each(|error| self.errors[error].1.solved = true);
        self.went_well.insert(done);
    }

    fn called(&mut self, at: Position, call: &ToolCall, output: &str, ended: Ended, tool: ToolKind) {
        let Ended { status, failed, well } = ended;
        let whole = tool.subject(&call.arguments);
        let subject = shorten(whole.trim(), SHORT);
        match tool {
            ToolKind::Read | ToolKind::Edit | ToolKind::Write if !failed => {
                let paths = tool.files(&call.arguments).into_iter();
                paths.for_each(|path| self.touch(at, &path, tool != ToolKind::Read));
            }
            ToolKind::Todo => self.todos = todos(call).map(|todos| (at, todos)).or(self.todos.take()),
            // What only looks around says nothing of what was done.
            ToolKind::Bash if !subject.is_empty() && !failing::only_looks(&whole) => {
                self.commands.push((at, Command { line: subject.clone(), status, failed }));
            }
            _ => {}
        }
        let name = format!("{} {}", call.name, shorten(&subject, CALL)).trim_end().replace('`', "'");
        if failed && failing::is_no_problem(tool, &whole, output) {
            return;
        }
        if failed {
            let line = failing::why(output, status);
            let undone = if tool == ToolKind::Bash { failing::undone(whole.trim()) } else { None };
            let undone = undone.map_or_else(|| name.clone(), str::to_owned);
            self.unsolved.entry(undone).or_default().push(self.errors.len());
            self.errors.push((at, Problem { line: shorten(&line, LINE), call: name, solved: false }));
        } else if well {
            let done = if tool == ToolKind::Bash { failing::done(&whole) } else { Vec::new() };
            done.into_iter().map(str::to_owned).chain([name]).for_each(|done| self.solve(done));
        }
    }

    fn touch(&mut self, at: Position, path: &str, changed: bool) {
        self.touches += 1;
        let ((newest, file), last) = self
            .touched
            .entry(shorten(path, PATH))
            .or_insert_with_key(|path| ((at, File { path: path.clone(), reads: 0, changes: 0 }), 0));
        file.reads += usize::from(!changed);
        file.changes += usize::from(changed);
        (*newest, *last) = (at, self.touches);
    }
}

/// How a call ended.
#[derive(Clone, Copy)]
struct Ended {
    status: Option<i64>,
    failed: bool,
    /// It is known that it did not fail.
    well: bool,
}

/// The task list that a call writes.
fn todos(call: &ToolCall) -> Option<Vec<Todo>> {
    let value = call.arguments.value();
    let list = ["todos", "plan", "tasks", "items"].iter().find_map(|name| value.get(name)?.as_array())?;
    let todos = list.iter().filter_map(|task| {
        let text = ["content", "step", "title", "task", "description"]
            .iter()
            .find_map(|name| task.get(name)?.as_str())?;
        let state = match task.get("status").and_then(Value::as_str) {
            Some("completed" | "done") => TodoState::Done,
            Some("in_progress") => TodoState::Running,
            _ => TodoState::Open,
        };
        Some(Todo { state, text: shorten(text, SHORT) })
    });
    let todos: Vec<Todo> = todos.collect();
    (!todos.is_empty()).then_some(todos)
}

/// A text on one line that is not too long to be quoted.
pub(super) fn one_line(text: &str) -> String {
    shorten(text, LINE)
}

/// A text in at most so many bytes, on one line.
pub(super) fn shorten(text: &str, most: usize) -> String {
    // Of a long text the start is enough.
    let start = &text[..text.floor_char_boundary(most * 4)];
    let is_plain = !start.bytes().any(|b| b.is_ascii_control()) && !start.contains("  ");
    let text: Cow<'_, str> =
        if is_plain { start.into() } else { start.split_whitespace().collect::<Vec<_>>().join(" ").into() };
    if text.len() <= most {
        return text.into_owned();
    }
    format!("{}…", text[..text.floor_char_boundary(most)].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::Json;
    use crate::conversation::log::{Log, Span};
    use crate::conversation::message::Message;
    use crate::edits::ledger::Ledger;
    use crate::summary::covered::Covered;

    fn session() -> Vec<Material> {
        let call = |id: &str, name: &str, json: &str| {
            Message::new(Role::Assistant, vec![Block::call(id, name, Json::new(json).unwrap())])
        };
        let all = [
            Message::user("Fix the parser, please.\nNever touch the lock file."),
            call("a", "Read", r#"{"path":"src/parse.rs"}"#),
            Message::result("a", "fn parse() {}"),
            call("b", "Bash", r#"{"command":"cargo test"}"#),
            Message::result("b", "running 2 tests\nassertion failed: left == right\nexit code: 101"),
            Message::assistant("The problem is an off-by-one. I decided to use a slice instead of an index."),
            call("c", "apply_patch", r#"{"input":"*** Begin Patch\n*** Update File: src/parse.rs\n+x\n"}"#),
            Message::result("c", "Done"),
            call("d", "Bash", r#"{"command":"cargo test"}"#),
            Message::result("d", "test result: ok\nexit code: 0"),
            Message::assistant("Fixed: the parser takes empty lines."),
        ];
        let (mut log, ledger) = (Log::new(), Ledger::default());
        all.into_iter().for_each(|message| _ = log.push(message));
        let all = Span { start: Position(0), end: log.end() };
        Covered::of(&log, &ledger, &[all]).material(&ledger)
    }

    /// A name that is cut is the name of another file, and two files may share its start.
    #[test]
    fn a_file_is_named_whole_however_long_its_path() {
        let folder = format!("/srv/{}", "a-long-name/".repeat(20));
        let (mut log, ledger) = (Log::new(), Ledger::default());
        for file in ["one.md", "two.md"] {
            let arguments = format!(r#"{{"file_path":"{folder}{file}","old_string":"a","new_string":"b"}}"#);
            let call = Block::call(file, "Edit", Json::new(&arguments).unwrap());
            log.push(Message::new(Role::Assistant, vec![call]));
            log.push(Message::result(file, "ok"));
        }
        let covered = Covered::of(&log, &ledger, &[Span { start: Position(0), end: log.end() }]);
        let facts = Facts::of(covered.material(&ledger).iter(), &Aliases::default());
        let files: Vec<&str> = facts.files.iter().map(|(_, file)| &*file.path).collect();
        assert_eq!(files, [format!("{folder}one.md"), format!("{folder}two.md")]);
    }

    #[test]
    fn files_commands_errors_and_words() {
        let all = session();
        let facts = Facts::of(all.iter(), &Aliases::default());
        let file = File { path: "src/parse.rs".to_owned(), reads: 1, changes: 1 };
        assert_eq!(facts.files, [(Position(7), file)]);
        let command =
            |status| Command { line: "cargo test".to_owned(), status: Some(status), failed: status != 0 };
        assert_eq!(facts.commands, [(Position(4), command(101)), (Position(9), command(0))]);
        let problem = Problem {
            line: "assertion failed: left == right".to_owned(),
            call: "Bash cargo test".to_owned(),
            solved: true,
        };
        assert_eq!(facts.errors, [(Position(4), problem)]);
        let request = Request {
            asked: "Fix the parser, please.".to_owned(),
            answer: Some("Fixed: the parser takes empty lines.".to_owned()),
        };
        assert_eq!(facts.requests, [(Position(0), request)]);
        assert_eq!(facts.preferences, [(Position(0), "Never touch the lock file.".to_owned())]);
        assert_eq!(
            facts.decisions,
            [(Position(5), "I decided to use a slice instead of an index.".to_owned())]
        );
        assert_eq!(facts.learnings, [(Position(5), "The problem is an off-by-one.".to_owned())]);
    }
}
