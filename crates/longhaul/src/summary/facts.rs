//! What happened, found by code in the messages themselves: files, commands and how they ended,
//! errors and what became of them, decisions in the model's words, wishes in the person's. Every
//! statement stands in a message; nothing is made up.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use super::Material;
use super::own_words::own_words;
use super::statement::{Command, File, Problem, Request, Todo, TodoState};
use crate::conversation::log::Position;
use crate::conversation::message::{Block, Role, ToolCall, ToolResult};
use crate::digest::{Aliases, Failures, HUGE, ToolKind};

/// A line that is quoted is cut to this.
pub(super) const LINE: usize = 240;
/// A request or a command in a few words.
pub(super) const SHORT: usize = 140;
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
    /// Calls that went well.
    pub(crate) went_well: HashSet<String>,
    /// By path, with the message and the number of the last touch.
    touched: HashMap<String, (Found<File>, usize)>,
    touches: usize,
    /// Errors that are not solved, by their calls.
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
                            facts.called(at, call, result, aliases.kind_of(call));
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
        for line in sentences(text, &TOLD) {
            if has_word(line, &DECISIONS) {
                self.decisions.push((at, shorten(line, LINE)));
            } else if has_word(line, &LEARNINGS) {
                self.learnings.push((at, shorten(line, LINE)));
            }
        }
        self.last_words =
            first_words(text).map(|first| (at, shorten(first, LINE))).or(self.last_words.take());
    }

    fn called(&mut self, at: Position, call: &ToolCall, result: &ToolResult, tool: ToolKind) {
        let subject = tool.subject(&call.arguments);
        let subject = shorten(subject.trim(), SHORT);
        let runs = matches!(tool, ToolKind::Bash | ToolKind::Other);
        let status = if runs { exit_status(result) } else { None };
        let failed = status.map_or(result.is_error, |status| status != 0);
        match tool {
            ToolKind::Read | ToolKind::Edit | ToolKind::Write if !failed => {
                let mut paths = ToolKind::files(&call.arguments);
                if paths.len() < 2 {
                    paths = if subject.is_empty() { patched(call) } else { vec![subject.clone()] };
                }
                paths.into_iter().for_each(|path| self.touch(at, path, tool != ToolKind::Read));
            }
            ToolKind::Todo => self.todos = todos(call).map(|todos| (at, todos)).or(self.todos.take()),
            ToolKind::Bash if !subject.is_empty() => {
                self.commands.push((at, Command { line: subject.clone(), status, failed }));
            }
            _ => {}
        }
        let name = format!("{} {}", call.name, shorten(&subject, CALL)).trim_end().replace('`', "'");
        if failed {
            let line = failure(&result.text).unwrap_or_default();
            self.unsolved.entry(name.clone()).or_default().push(self.errors.len());
            self.errors.push((at, Problem { line: shorten(line, LINE), call: name, solved: false }));
        } else {
            let solved = self.unsolved.remove(&name);
            solved.into_iter().flatten().for_each(|error| self.errors[error].1.solved = true);
            self.went_well.insert(name);
        }
    }

    fn touch(&mut self, at: Position, path: String, changed: bool) {
        self.touches += 1;
        let ((newest, file), last) = self
            .touched
            .entry(path)
            .or_insert_with_key(|path| ((at, File { path: path.clone(), reads: 0, changes: 0 }), 0));
        file.reads += usize::from(!changed);
        file.changes += usize::from(changed);
        (*newest, *last) = (at, self.touches);
    }
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

/// Files that a patch without a path names.
fn patched(call: &ToolCall) -> Vec<String> {
    let value = call.arguments.value();
    let texts = ["input", "patch", "diff"].iter().filter_map(|name| value.get(name).and_then(Value::as_str));
    let named = |line: &str| {
        ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"]
            .iter()
            .find_map(|sign| line.strip_prefix(sign))
            .map(|path| shorten(path.trim(), SHORT))
    };
    texts.flat_map(|text| text.lines().filter_map(named)).collect()
}

/// The exit status that a result names, in the ways agents write it.
pub(crate) fn exit_status(result: &ToolResult) -> Option<i64> {
    let text = &*result.text;
    let number = |text: &str| {
        let text = text.trim_start_matches([' ', ':', '=', '"']);
        let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'-').count();
        text[..digits].parse::<i64>().ok()
    };
    // It stands at the start or at the end, at the start of its line but for a bracket or a few
    // words: what a program prints of others is not its own.
    let of_line = |line: &str| {
        let start = &line[..line.floor_char_boundary(60)];
        STATUS.iter().find_map(|sign| number(&start[start.find(sign)? + sign.len()..]))
    };
    let in_json = |part: &str| {
        let sign = "\"exit_code\":";
        part.rfind(sign).and_then(|at| number(&part[at + sign.len()..]))
    };
    let head = text.lines().take(5).find_map(of_line);
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(300))..];
    head.or_else(|| in_json(&text[..text.floor_char_boundary(300)]))
        .or_else(|| in_json(tail))
        .or_else(|| tail.lines().rev().take(3).find_map(of_line))
}

/// How agents write an exit status.
const STATUS: [&str; 5] = ["exited with code", "<returncode>", "xit code", "xit status", "returncode:"];

/// The first line that speaks of a failure and not only of the exit status; else the last line.
fn failure(text: &str) -> Option<&str> {
    let text = &text[..text.floor_char_boundary(HUGE)];
    let mut failures = Failures::of(text);
    let says = |line: &&str| {
        let status = STATUS.iter().any(|sign| line.contains(sign)) && line.trim().len() < 60;
        !status && line.bytes().filter(u8::is_ascii_alphabetic).count() > 7
    };
    let failed = text.split_inclusive('\n').find(|line| failures.next_line(line.len()) && says(line));
    failed.or_else(|| text.lines().rev().find(says)).map(str::trim)
}

/// The first words of the last of these texts that has any; a sign or a digit, where that is all that
/// was said.
pub(super) fn telling<'a>(texts: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (mut words, mut signs) = (None, None);
    for text in texts {
        words = first_words(text).or(words);
        signs = text.lines().map(str::trim).find(|line| !line.is_empty()).or(signs);
    }
    words.or(signs)
}

/// The first line that has words.
fn first_words(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| line.chars().filter(|c| c.is_alphanumeric()).count() > 1)
}

/// The lines, and the sentences of long ones, that hold one of these words.
fn sentences<'a>(text: &'a str, words: &'static Sign) -> impl Iterator<Item = &'a str> {
    let mut found = words.find(text);
    let mut next = found.as_mut().and_then(Iterator::next);
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    let telling = lines.filter(move |(end, _)| {
        let has = next.is_some_and(|at| at < *end);
        while next.is_some_and(|at| at < *end) {
            next = found.as_mut().and_then(Iterator::next);
        }
        has
    });
    let lines = telling.map(|(_, line)| line.trim().trim_start_matches(['-', '*', '#', '>', ' ']));
    let parts = lines.flat_map(|line| line.split_inclusive(". ").flat_map(|part| part.split_inclusive('。')));
    parts.map(str::trim).filter(|part| part.len() >= 12 && !part.starts_with("```") && !part.starts_with('|'))
}

/// Words to be looked for in one pass.
struct Sign {
    words: &'static [&'static [&'static str]],
    pattern: OnceLock<Option<Regex>>,
}

impl Sign {
    const fn new(words: &'static [&'static [&'static str]]) -> Self {
        Self { words, pattern: OnceLock::new() }
    }

    /// Whether one of them is there.
    fn is_in(&'static self, text: &str) -> bool {
        self.find(text).is_some_and(|mut found| found.next().is_some())
    }

    /// Where they stand.
    fn find<'a>(&'static self, text: &'a str) -> Option<impl Iterator<Item = usize> + use<'a>> {
        let made = self.pattern.get_or_init(|| {
            let words: Vec<String> = self.words.concat().into_iter().map(regex::escape).collect();
            Regex::new(&words.join("|")).ok()
        });
        made.as_ref().map(|pattern| pattern.find_iter(text).map(|found| found.start()))
    }
}

static TOLD: Sign = Sign::new(&[&DECISIONS, &LEARNINGS]);
static WISHED: Sign = Sign::new(&[&WISHES]);

/// Whether one of these words is there, as a word. Chinese has no spaces.
fn has_word(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !word.is_ascii() || !before.is_some_and(|c| c.is_ascii_alphanumeric())
        })
    })
}

const DECISIONS: [&str; 22] = [
    "decid",
    "chose",
    "instead of",
    "rather than",
    "I'll use",
    "I will use",
    "We'll use",
    "we'll use",
    "going with",
    "Decision",
    "opted",
    "ruled out",
    "reject",
    "决定",
    "选择",
    "采用",
    "改用",
    "放弃",
    "不采用",
    "选用",
    "改为",
    "方案",
];
const LEARNINGS: [&str; 20] = [
    "turns out",
    "root cause",
    "The problem",
    "the problem",
    "The issue",
    "the issue is",
    "found that",
    "Found that",
    "because",
    "Note that",
    "note that",
    "actually",
    "requires",
    "原因",
    "发现",
    "注意",
    "问题是",
    "问题在于",
    "原来",
    "需要",
];
const WISHES: [&str; 24] = [
    "always",
    "Always",
    "never",
    "Never",
    "must",
    "Must",
    "prefer",
    "Prefer",
    "don't",
    "Don't",
    "do not",
    "Do not",
    "make sure",
    "Make sure",
    "only",
    "should",
    "please keep",
    "不要",
    "必须",
    "务必",
    "始终",
    "尽量",
    "只能",
    "不得",
];

/// What a person insists on, sentence by sentence, in their own words.
pub(super) fn wishes(text: &str) -> Vec<String> {
    if !WISHED.is_in(text) {
        return Vec::new();
    }
    let own = own_words(text);
    let wishes = sentences(&own, &WISHED).filter(|line| has_word(line, &WISHES));
    wishes.map(one_line).collect()
}

/// What a person wants in a message, in about a line: their own words, if there are any.
pub(super) fn wanted(text: &str) -> Option<String> {
    let own = own_words(text);
    let said = if own.is_empty() { first_words(text)? } else { &own };
    Some(one_line(said))
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

    #[test]
    fn exit_codes_as_agents_write_them() {
        let status = |text: &str| exit_status(&ToolResult { text: text.into(), ..result() });
        fn result() -> ToolResult {
            match Message::result("a", "").blocks()[0].clone() {
                Block::ToolResult(result) => result,
                _ => unreachable!(),
            }
        }
        assert_eq!(status("Exit code: 2\nOutput"), Some(2));
        assert_eq!(status("Process exited with code 1\nx"), Some(1));
        assert_eq!(status("{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"), Some(0));
        assert_eq!(status("<returncode>137</returncode>"), Some(137));
        assert_eq!(status("[The command completed with exit code -1.]"), Some(-1));
        assert_eq!(status("all is well"), None);
    }
}
