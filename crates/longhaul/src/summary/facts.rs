//! What happened, found by code in the messages themselves: files, commands and how they ended,
//! errors and what became of them, decisions in the model's words, wishes in the person's. Every
//! statement stands in a message; nothing is made up.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use super::{Language, Told};
use crate::conversation::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::digest::{Aliases, Failures, HUGE, ToolKind};

/// A line that is quoted is cut to this.
const LINE: usize = 240;
/// A request or a command in a few words.
const SHORT: usize = 140;
/// A call, where an error is told.
const CALL: usize = 80;

/// What happened in a run of messages.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The one that was touched last stands last.
    pub(crate) files: Vec<File>,
    pub(crate) commands: Vec<Command>,
    pub(crate) errors: Vec<Problem>,
    /// What a person asked for, and the last words of the answer, if the turn ended.
    pub(crate) requests: Vec<Request>,
    pub(crate) decisions: Vec<String>,
    pub(crate) learnings: Vec<String>,
    pub(crate) preferences: Vec<String>,
    /// The task list as the model wrote it last.
    pub(crate) todos: Option<String>,
    /// The model's last words.
    pub(crate) last_words: Option<String>,
    /// Something is missing since the last request.
    gap: bool,
    touched: HashMap<String, (File, usize)>,
    touches: usize,
    /// Calls that went well.
    pub(crate) went_well: HashSet<String>,
    /// Errors that are not solved, by their calls.
    unsolved: HashMap<String, Vec<usize>>,
}

/// A file and what was done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) reads: usize,
    pub(crate) changes: usize,
}

/// A command and how it ended.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) line: String,
    /// Its exit status, where the result says so.
    pub(crate) status: Option<i64>,
    pub(crate) failed: bool,
}

/// An error and whether the same call went well later.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) line: String,
    /// The call it came from.
    call: String,
    pub(crate) solved: bool,
}

/// A turn.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asked: String,
    pub(crate) answer: Option<String>,
}

impl Facts {
    pub(crate) fn of<'a>(told: impl Iterator<Item = &'a Told>, aliases: &Aliases) -> Self {
        let mut facts = Self::default();
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        for told in told {
            let message = match told {
                Told::Message(message) => message,
                Told::Summary(_) => continue,
                // What follows is no answer to what was asked before.
                Told::Gap => {
                    facts.gap = true;
                    continue;
                }
            };
            if message.role() == Role::User && !message.is_attachment() {
                let texts = message.blocks().iter().filter_map(|block| match block {
                    Block::Text(text) => Some(&*text.text),
                    _ => None,
                });
                facts.asked(texts);
            }
            for block in message.blocks() {
                match (block, message.role()) {
                    (Block::Text(text), Role::Assistant) => facts.answered(&text.text, message),
                    (Block::ToolCall(call), _) => {
                        calls.insert(&call.id, call);
                    }
                    (Block::ToolResult(result), _) => {
                        if let Some(call) = calls.get(&*result.id) {
                            facts.called(call, result, aliases.kind_of(call));
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut files: Vec<(File, usize)> = facts.touched.drain().map(|(_, file)| file).collect();
        files.sort_by_key(|(_, last)| *last);
        facts.files = files.into_iter().map(|(file, _)| file).collect();
        facts
    }

    /// Of several texts of one message the last says what is wanted: clients put context before.
    fn asked<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let mut asked = None;
        for text in texts {
            let wishes = sentences(text, &WISHED).filter(|line| has_word(line, &WISHES));
            self.preferences.extend(wishes.map(|line| shorten(line, LINE)));
            asked = first_words(text).or(asked);
        }
        if let Some(asked) = asked {
            self.gap = false;
            self.requests.push(Request { asked: shorten(asked, SHORT), answer: None });
        }
    }

    fn answered(&mut self, text: &str, message: &Message) {
        for line in sentences(text, &TOLD) {
            if has_word(line, &DECISIONS) {
                self.decisions.push(shorten(line, LINE));
            } else if has_word(line, &LEARNINGS) {
                self.learnings.push(shorten(line, LINE));
            }
        }
        let Some(first) = first_words(text) else { return };
        self.last_words = Some(shorten(first, LINE));
        if !self.gap
            && message.calls().next().is_none()
            && let Some(request) = self.requests.last_mut()
        {
            request.answer = Some(shorten(first, LINE));
        }
    }

    fn called(&mut self, call: &ToolCall, result: &ToolResult, tool: ToolKind) {
        let subject = tool.subject(&call.arguments);
        let subject = shorten(subject.trim(), SHORT);
        let runs = matches!(tool, ToolKind::Bash | ToolKind::Other);
        let status = if runs { exit_status(result) } else { None };
        let failed = status.map_or(result.is_error, |status| status != 0);
        match tool {
            ToolKind::Read | ToolKind::Edit | ToolKind::Write if !failed => {
                let paths = match subject.is_empty() {
                    true => patched(call),
                    false => vec![subject.clone()],
                };
                paths.into_iter().for_each(|path| self.touch(path, tool != ToolKind::Read));
            }
            ToolKind::Todo => self.todos = tasks(call).or(self.todos.take()),
            ToolKind::Bash if !subject.is_empty() => {
                self.commands.push(Command { line: subject.clone(), status, failed });
            }
            _ => {}
        }
        let name = format!("{} {}", call.name, shorten(&subject, CALL)).trim_end().replace('`', "'");
        if failed {
            let line = failure(&result.text).unwrap_or_default();
            self.unsolved.entry(name.clone()).or_default().push(self.errors.len());
            self.errors.push(Problem { line: shorten(line, LINE), call: name, solved: false });
        } else {
            let solved = self.unsolved.remove(&name);
            solved.into_iter().flatten().for_each(|at| self.errors[at].solved = true);
            self.went_well.insert(name);
        }
    }

    fn touch(&mut self, path: String, changed: bool) {
        self.touches += 1;
        let (file, last) = self
            .touched
            .entry(path)
            .or_insert_with_key(|path| (File { path: path.clone(), reads: 0, changes: 0 }, 0));
        file.reads += usize::from(!changed);
        file.changes += usize::from(changed);
        *last = self.touches;
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

    /// Reads back what [`say`](Self::say) says.
    pub(crate) fn heard(text: &str, language: Language) -> Option<Self> {
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
    pub(crate) fn say(&self, language: Language) -> String {
        let words = language.words();
        let ended = match (self.status, self.failed) {
            (Some(status), _) => format!("{} {status}", words.exit),
            (None, true) => words.failed.to_owned(),
            (None, false) => words.passed.to_owned(),
        };
        format!("`{}` → {ended}", self.line)
    }
}

impl Problem {
    pub(crate) fn say(&self, language: Language) -> String {
        let words = language.words();
        let space = if self.line.is_empty() { "" } else { " " };
        let ended = if self.solved { words.solved } else { words.unsolved };
        format!("{}{space}(`{}`) → {ended}", self.line, self.call)
    }
}

/// A task list, a line each.
fn tasks(call: &ToolCall) -> Option<String> {
    let value = call.arguments.value();
    let list = ["todos", "plan", "tasks", "items"].iter().find_map(|name| value.get(name)?.as_array())?;
    let lines = list.iter().filter_map(|task| {
        let text = ["content", "step", "title", "task", "description"]
            .iter()
            .find_map(|name| task.get(name)?.as_str())?;
        let sign = match task.get("status").and_then(Value::as_str) {
            Some("completed" | "done") => "[x]",
            Some("in_progress") => "[>]",
            _ => "[ ]",
        };
        Some(format!("{sign} {}", shorten(text, SHORT)))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
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
    use std::sync::Arc;

    use super::*;
    use crate::conversation::json::Json;

    fn session() -> Vec<Told> {
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
        all.into_iter().map(|message| Told::Message(Arc::new(message))).collect()
    }

    #[test]
    fn files_commands_errors_and_words() {
        let told = session();
        let facts = Facts::of(told.iter(), &Aliases::default());
        assert_eq!(facts.files, [File { path: "src/parse.rs".to_owned(), reads: 1, changes: 1 }]);
        let say = |n: usize| facts.commands[n].say(Language::English);
        assert_eq!((say(0).as_str(), say(1).as_str()), ("`cargo test` → exit 101", "`cargo test` → exit 0"));
        assert_eq!(
            facts.errors[0].say(Language::English),
            "assertion failed: left == right (`Bash cargo test`) → solved later"
        );
        assert_eq!(facts.requests[0].asked, "Fix the parser, please.");
        assert_eq!(facts.requests[0].answer.as_deref(), Some("Fixed: the parser takes empty lines."));
        assert_eq!(facts.preferences, ["Never touch the lock file."]);
        assert_eq!(facts.decisions, ["I decided to use a slice instead of an index."]);
        assert_eq!(facts.learnings, ["The problem is an off-by-one."]);
    }

    #[test]
    fn files_are_said_and_heard() {
        for language in [Language::English, Language::Chinese] {
            for (reads, changes) in [(3, 2), (0, 1), (1, 0)] {
                let file = File { path: "src/读.rs".to_owned(), reads, changes };
                assert_eq!(File::heard(&file.say(language), language), Some(file));
            }
        }
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
