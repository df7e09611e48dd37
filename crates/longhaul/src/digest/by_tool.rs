//! What history keeps of a result, by the tool it came from: so many entries of a listing, so
//! many hits of a search, the start, the end and the failures of a command. Works on results
//! that are an envelope (`{status, data, text, error, stats, context}`), on other JSON, and on
//! plain text.

use serde_json::{Map, Value, json};

use super::content::ContentKind;
use super::rank::Failures;
use super::select::{is_digest, render};
use super::{ToolKind, head_and_tail};
use crate::edits::archive::Handle;

/// Entries of a listing, paths of a search by name.
const ENTRIES: usize = 10;
/// Hits of a search by content.
const HITS: usize = 5;
/// Lines of a file.
const READ_LINES: usize = 500;
/// Lines of what was written or changed.
const SNIPPET: usize = 50;
/// Lines of a command's output: from the start, from the end, failures between, and characters
/// in all.
const OUTPUT: (usize, usize, usize, usize) = (10, 20, 10, 2_000);
/// Lines of a command's errors, from the end.
const ERRORS: usize = 20;
/// Fields of an object.
const FIELDS: usize = 60;
/// Characters of anything else.
const OTHER: usize = 1_000;
/// More than this is not taken for JSON.
const LARGEST_JSON: usize = 4 << 20;

/// The digest of a result by its tool; `None` if that would not be shorter.
pub(crate) fn by_tool(text: &str, tool: ToolKind, subject: &str, handle: Handle) -> Option<String> {
    if is_digest(text) {
        return None;
    }
    // Of what was recalled, history keeps as much as of anything else.
    let tool = if tool == ToolKind::Recall { ToolKind::Other } else { tool };
    let object = (text.len() <= LARGEST_JSON && text.trim_start().starts_with('{'))
        .then(|| serde_json::from_str::<Map<String, Value>>(text).ok())
        .flatten()
        // What a file holds is no result of its own form, nor is what a command prints.
        .filter(|fields| match tool {
            ToolKind::Read => is_envelope(fields),
            ToolKind::Bash => {
                is_envelope(fields) || fields.contains_key("output") || fields.contains_key("stdout")
            }
            _ => true,
        });
    let short = match object {
        Some(fields) => Object { tool, subject, handle, gone: Vec::new() }.digest(fields),
        None => plain(text, tool, handle),
    };
    short.filter(|short| short.len() < text.len())
}

/// A result that is a JSON object, on its way to a shorter one.
struct Object<'a> {
    tool: ToolKind,
    subject: &'a str,
    handle: Handle,
    /// What was left out.
    gone: Vec<String>,
}

impl Object<'_> {
    fn digest(mut self, mut fields: Map<String, Value>) -> Option<String> {
        let is_envelope = is_envelope(&fields);
        let mut out = Map::new();
        if is_envelope {
            let data = match fields.remove("data") {
                Some(Value::Object(data)) => self.data(data, &fields),
                Some(Value::Null) | None => Value::Object(Map::new()),
                Some(other) if self.tool == ToolKind::Other => self.whole(other),
                Some(other) => self.value("data", other),
            };
            let status = fields.remove("status").unwrap_or_default();
            if status == "error" {
                out.extend(fields.remove("error").map(|error| ("error".to_owned(), error)));
            }
            out.insert("status".to_owned(), status);
            out.insert("data".to_owned(), data);
            for name in ["text", "stats", "context"] {
                if fields.contains_key(name) {
                    self.gone.push(name.to_owned());
                }
            }
        } else if self.tool == ToolKind::Other {
            match self.whole(Value::Object(fields)) {
                Value::Object(short) => out = short,
                _ => return None,
            }
        } else {
            out = self.fields(fields);
        }
        if self.gone.is_empty() {
            return None;
        }
        let gone = format!("⟦{} left out; recall {}⟧", self.gone.join(", "), self.handle.short());
        out.insert("left_out".to_owned(), Value::String(gone));
        serde_json::to_string(&out).ok()
    }

    /// The data of an envelope, with what only stands beside it lifted in.
    fn data(&mut self, mut data: Map<String, Value>, beside: &Map<String, Value>) -> Value {
        let mut out = Map::new();
        let from = |place: &str, name: &str| -> Option<Value> {
            let place = beside.get(place)?;
            place.get(name).or_else(|| place.get("params_input")?.get(name)).cloned()
        };
        let lifted: &[(&str, &[&str])] = &[
            ("path", &["path", "file_path", "path_resolved"]),
            ("pattern", &["pattern", "query"]),
            ("command", &["command"]),
            ("total", &["total", "total_count", "matched", "total_matches", "total_entries"]),
            ("mtime", &["mtime", "file_mtime_ms"]),
        ];
        for (name, names) in lifted {
            // A total is a number; what is a list or long is a field like others.
            let fits = |value: &Value| match value {
                Value::Number(_) => true,
                Value::String(text) => *name != "total" && text.len() <= OTHER,
                _ => false,
            };
            let here = names.iter().find(|n| data.get(**n).is_some_and(fits));
            let found = here.and_then(|n| data.shift_remove(*n));
            let beside = |n: &&str| from("context", n).or_else(|| from("stats", n)).filter(fits);
            let found = found.or_else(|| names.iter().find_map(beside));
            let named = match (self.tool, *name) {
                (ToolKind::Bash, "command") | (ToolKind::Grep | ToolKind::Glob, "pattern") => true,
                (ToolKind::Bash | ToolKind::Grep | ToolKind::Glob | ToolKind::Other | ToolKind::Todo, _) => {
                    false
                }
                (_, name) => name == "path",
            };
            let asked = (named && !self.subject.is_empty()).then(|| Value::String(self.subject.to_owned()));
            if let Some(value) = found.or(asked) {
                out.insert((*name).to_owned(), value);
            }
        }
        if self.tool == ToolKind::Todo {
            // The list itself is in the call, and in the recap.
            match data.shift_remove("recap") {
                Some(recap) => {
                    out.insert("recap".to_owned(), recap);
                    self.gone.push("the list".to_owned());
                    return Value::Object(out);
                }
                None => {
                    out.extend(self.fields(data));
                    return Value::Object(out);
                }
            }
        }
        if self.tool == ToolKind::Other {
            out.extend(data);
            return self.whole(Value::Object(out));
        }
        // Of a list that is cut, how long it was.
        let most = self.most_items();
        let all = data.values().filter_map(|value| value.as_array().map(Vec::len)).find(|all| *all > most);
        let is_search = matches!(self.tool, ToolKind::Ls | ToolKind::Glob | ToolKind::Grep);
        let all = all.filter(|_| is_search);
        out.extend(self.fields(data));
        if let Some(all) = all {
            out.entry("total").or_insert_with(|| all.into());
        }
        // True of what is shown, whatever the listing itself said.
        if all.is_some() && self.tool == ToolKind::Ls {
            out.insert("truncated".to_owned(), Value::Bool(true));
        }
        Value::Object(out)
    }

    /// How much of a list is shown.
    fn most_items(&self) -> usize {
        match self.tool {
            ToolKind::Grep => HITS,
            ToolKind::Edit | ToolKind::Write | ToolKind::Todo => SNIPPET,
            _ => ENTRIES,
        }
    }

    fn fields(&mut self, fields: Map<String, Value>) -> Map<String, Value> {
        let count = fields.len();
        if count > FIELDS {
            self.gone.push(format!("{} of {count} fields", count - FIELDS));
        }
        let shown = fields.into_iter().take(FIELDS);
        shown.map(|(name, value)| (name.clone(), self.value(&name, value))).collect()
    }

    /// A field, shorter if it is a list or a long text.
    fn value(&mut self, name: &str, value: Value) -> Value {
        match value {
            Value::Array(mut items) => {
                let most = self.most_items();
                let count = items.len();
                if count > most {
                    items.truncate(most);
                    self.gone.push(format!("{} of {count} {name}", count - most));
                }
                let items = items.into_iter().map(|item| match item {
                    // An entry is short, or it is no entry.
                    Value::String(text) => self.text(name, text),
                    other => self.whole(other),
                });
                Value::Array(items.collect())
            }
            Value::String(text) => self.text(name, text),
            Value::Object(fields) => Value::Object(self.fields(fields)),
            other => other,
        }
    }

    fn text(&mut self, name: &str, text: String) -> Value {
        let short = match (self.tool, name) {
            (ToolKind::Bash, "stderr" | "error") => last_lines(&text, ERRORS, self.handle),
            (ToolKind::Bash, "command") => None,
            _ => plain(&text, self.tool, self.handle),
        };
        let Some(short) = short.filter(|short| short.len() < text.len()) else { return Value::String(text) };
        let gone = text.chars().count().saturating_sub(short.chars().count());
        self.gone.push(format!("about {gone} characters of {name}"));
        Value::String(short)
    }

    /// Anything, as it is if it is small.
    fn whole(&mut self, value: Value) -> Value {
        let text = value.to_string();
        let characters = text.chars().count();
        if characters <= OTHER {
            return value;
        }
        self.gone.push(format!("about {} characters of data", characters.saturating_sub(OTHER)));
        let short = head_and_tail(&text, OTHER * 2 / 3, OTHER / 3, self.handle).unwrap_or_default();
        json!({ "characters": characters, "head_and_tail": short })
    }
}

/// `{status, data, …}`.
fn is_envelope(fields: &Map<String, Value>) -> bool {
    matches!(fields.get("status").and_then(Value::as_str), Some("success" | "partial" | "error"))
        && (fields.contains_key("data") || fields.contains_key("error"))
}

/// The digest of plain text by the tool that printed it.
fn plain(text: &str, tool: ToolKind, handle: Handle) -> Option<String> {
    let head = |most: usize, kind| first_lines(text, most, kind, handle);
    match tool {
        ToolKind::Ls | ToolKind::Glob => head(ENTRIES, ContentKind::Listing),
        ToolKind::Grep => head(HITS, ContentKind::Hits),
        ToolKind::Read => head(READ_LINES, ContentKind::Source),
        ToolKind::Edit => changes(text, handle).or_else(|| head(SNIPPET, ContentKind::Source)),
        ToolKind::Write => head(SNIPPET, ContentKind::Source),
        ToolKind::Bash => output(text, handle),
        ToolKind::Todo | ToolKind::Recall | ToolKind::Other => {
            let characters = text.chars().count();
            (characters > OTHER).then(|| head_and_tail(text, OTHER * 2 / 3, OTHER / 3, handle)).flatten()
        }
    }
    // A line of five megabytes is no line.
    .map(|short| bounded(short, handle))
    .or_else(|| {
        let most = if tool == ToolKind::Read { READ_LINES * 200 } else { 20 * OTHER };
        (text.len() > most).then(|| head_and_tail(text, most * 2 / 3, most / 3, handle)).flatten()
    })
}

/// A digest whose lines are too long is cut by characters.
fn bounded(short: String, handle: Handle) -> String {
    const MOST: usize = READ_LINES * 200;
    if short.len() <= MOST {
        return short;
    }
    let mark = short.lines().find(|line| line.starts_with('⟦')).unwrap_or_default().to_owned();
    let cut = head_and_tail(&short, MOST / 2, MOST / 3, handle).unwrap_or(short);
    if cut.contains(&mark) { cut } else { format!("{cut}\n{mark}\n") }
}

fn first_lines(text: &str, most: usize, kind: ContentKind, handle: Handle) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let entries = lines.iter().filter(|line| !line.trim().is_empty()).count();
    if entries <= most {
        return None;
    }
    let mut left = most;
    let kept: Vec<bool> = lines
        .iter()
        .map(|line| {
            let keep = left > 0;
            left -= usize::from(keep && !line.trim().is_empty());
            keep
        })
        .collect();
    render(text, &lines, &kept, kind, handle)
}

fn last_lines(text: &str, most: usize, handle: Handle) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.len() <= most {
        return bounded_output(text, handle);
    }
    let (mut kept, mut left) = (vec![false; lines.len()], OUTPUT.3);
    for at in (lines.len() - most..lines.len()).rev() {
        let characters = lines[at].chars().count();
        kept[at] = characters <= left;
        left -= if kept[at] { characters } else { 0 };
    }
    render(text, &lines, &kept, ContentKind::Log, handle)
}

/// Output of a command: its end, its failures, its start, as far as there is room.
fn output(text: &str, handle: Handle) -> Option<String> {
    let (head, tail, failures, most) = OUTPUT;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.len() <= head + tail && text.chars().count() <= most {
        return None;
    }
    let count = lines.len();
    let mut signs = Failures::of(text);
    let failed: Vec<bool> = lines.iter().map(|line| signs.next_line(line.len())).collect();
    let between = (head.min(count)..count.saturating_sub(tail)).filter(|at| failed[*at]).take(failures);
    let order = (count.saturating_sub(tail)..count).rev().chain(between).chain(0..head.min(count));
    let (mut kept, mut left) = (vec![false; count], most);
    for at in order {
        let characters = lines[at].chars().count();
        if !kept[at] && characters <= left {
            kept[at] = true;
            left -= characters;
        }
    }
    if kept.iter().any(|kept| *kept) {
        render(text, &lines, &kept, ContentKind::Log, handle)
    } else {
        bounded_output(text, handle)
    }
}

fn bounded_output(text: &str, handle: Handle) -> Option<String> {
    let most = OUTPUT.3;
    (text.chars().count() > most).then(|| head_and_tail(text, most / 2, most / 2, handle)).flatten()
}

/// A large diff as the ranges that it changes.
fn changes(text: &str, handle: Handle) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let hunks = lines.iter().filter(|line| line.starts_with("@@ ")).count();
    if hunks == 0 || lines.len() <= SNIPPET {
        return None;
    }
    let is_place = |line: &&str| ["@@ ", "+++ ", "--- ", "diff "].iter().any(|sign| line.starts_with(sign));
    let mut left = SNIPPET;
    let kept: Vec<bool> = lines
        .iter()
        .map(|line| {
            let keep = is_place(line) && left > 0;
            left -= usize::from(keep);
            keep
        })
        .collect();
    render(text, &lines, &kept, ContentKind::Diff, handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digest(tool: ToolKind, text: &str) -> Option<String> {
        by_tool(text, tool, "subject", Handle::of(text))
    }

    fn of_json(tool: ToolKind, value: &Value) -> Value {
        let text = value.to_string();
        serde_json::from_str(&digest(tool, &text).unwrap()).unwrap()
    }

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).map(|n| line(n) + "\n").collect()
    }

    // covers: A-LS A-GLOB A-ENVELOPE
    #[test]
    fn of_a_listing_ten_entries_and_their_number() {
        let entries: Vec<Value> =
            (0..30).map(|n| json!({"path": format!("src/a{n}.rs"), "type": "file"})).collect();
        let short = of_json(
            ToolKind::Ls,
            &json!({"status": "success", "data": {"entries": entries, "truncated": true},
                "text": "30 entries", "stats": {"time_ms": 3, "total_entries": 30}, "context": {"cwd": ".", "params_input": {"path": "src"}}}),
        );
        assert_eq!(short["data"]["entries"].as_array().unwrap().len(), 10);
        assert_eq!((&short["data"]["path"], &short["data"]["total"]), (&json!("src"), &json!(30)));
        assert_eq!((&short["status"], &short["data"]["truncated"]), (&json!("success"), &json!(true)));
        assert!(
            short.get("text").is_none() && short.get("stats").is_none() && short.get("context").is_none()
        );
        // A listing that was whole is not, as it is shown; one that is shown whole says what it said.
        let listing = |count: usize| {
            let entries: Vec<Value> = (0..count).map(|n| json!({"path": format!("src/a{n}.rs")})).collect();
            let listing = json!({"status": "success", "data": {"entries": entries, "truncated": false}, "text": "x".repeat(300)});
            of_json(ToolKind::Ls, &listing)["data"]["truncated"].clone()
        };
        assert_eq!((listing(11), listing(10)), (json!(true), json!(false)));
        let left_out = short["left_out"].as_str().unwrap();
        assert!(
            left_out.starts_with("⟦20 of 30 entries, text, stats, context left out; recall "),
            "{left_out}"
        );

        let paths: Vec<String> = (0..11).map(|n| format!("crates/longhaul/src/module_{n}.rs")).collect();
        let short = of_json(
            ToolKind::Glob,
            &json!({"status": "success", "data": {"pattern": "**/*.rs", "paths": paths}, "text": "x".repeat(200)}),
        );
        assert_eq!(short["data"]["paths"].as_array().unwrap().len(), 10);
        assert_eq!(short["data"]["pattern"], "**/*.rs");

        let text = lines(25, |n| format!("src/module_{n}.rs"));
        let short = digest(ToolKind::Ls, &text).unwrap();
        assert!(
            short.starts_with("src/module_0.rs\n") && short.contains("src/module_9.rs\n⟦15 lines of "),
            "{short}"
        );
        assert_eq!(digest(ToolKind::Ls, &lines(10, |n| format!("src/module_{n}.rs"))), None);
    }

    // covers: A-GREP
    #[test]
    fn of_a_search_five_hits_with_file_and_line() {
        let hits: Vec<Value> =
            (0..9).map(|n| json!({"file": "src/a.rs", "line": n, "text": "fn parse()"})).collect();
        let short = of_json(
            ToolKind::Grep,
            &json!({"status": "success", "data": {"matches": hits}, "text": "", "stats": {"total_matches": 9}, "context": {"params_input": {"pattern": "parse"}}}),
        );
        assert_eq!(short["data"]["matches"].as_array().unwrap().len(), 5);
        assert_eq!(short["data"]["matches"][4]["line"], 4);
        assert_eq!((&short["data"]["pattern"], &short["data"]["total"]), (&json!("parse"), &json!(9)));
        let short = digest(ToolKind::Grep, &lines(12, |n| format!("src/a.rs:{n}:fn parse_{n}()"))).unwrap();
        assert!(
            short.contains("src/a.rs:4:") && !short.contains("src/a.rs:5:") && short.contains("⟦7 lines of "),
            "{short}"
        );
    }

    // covers: A-READ
    #[test]
    fn of_a_file_five_hundred_numbered_lines() {
        let content = lines(600, |n| format!("{:4} | let a = {n};", n + 1));
        let short = of_json(
            ToolKind::Read,
            &json!({"status": "success", "data": {"path": "a.rs", "content": content, "modified_externally": true}, "stats": {"file_mtime_ms": 17}, "text": content}),
        );
        let text = short["data"]["content"].as_str().unwrap();
        assert!(text.contains(" 500 | let a = 499;\n⟦100 lines of ") && !text.contains("501 |"), "{text}");
        assert_eq!(
            (&short["data"]["mtime"], &short["data"]["modified_externally"]),
            (&json!(17), &json!(true))
        );
        assert_eq!(digest(ToolKind::Read, &lines(500, |n| format!("{n}\tcode"))), None);
    }

    // covers: A-EDIT A-WRITE
    #[test]
    fn of_a_change_where_it_was_and_a_snippet() {
        let diff =
            lines(
                60,
                |n| if n % 20 == 0 { format!("@@ -{n},9 +{n},9 @@") } else { format!("+line number {n}") },
            );
        let short = of_json(
            ToolKind::Edit,
            &json!({"status": "success", "data": {"path": "a.rs", "applied": true, "diff": diff, "failed_edits": [{"index": 2, "error": "no match"}]}, "text": ""}),
        );
        let text = short["data"]["diff"].as_str().unwrap();
        assert_eq!((text.matches("@@ -").count(), text.contains("line number")), (3, false), "{text}");
        assert_eq!(
            (&short["data"]["applied"], &short["data"]["failed_edits"][0]["index"]),
            (&json!(true), &json!(2))
        );
        let short = of_json(
            ToolKind::Write,
            &json!({"status": "success", "data": {"path": "a.rs", "created": true, "preview": lines(80, |n| format!("line {n}"))}}),
        );
        let text = short["data"]["preview"].as_str().unwrap();
        assert!(text.contains("line 49\n⟦30 lines of ") && short["data"]["created"] == json!(true), "{text}");
    }

    // covers: A-BASH
    #[test]
    fn of_a_command_its_start_its_end_and_its_failures() {
        let stdout = lines(100, |n| {
            if n == 50 { "error: no such file".to_owned() } else { format!("step {n} of the build") }
        });
        let stderr = lines(30, |n| format!("warning {n}"));
        let short = of_json(
            ToolKind::Bash,
            &json!({"status": "error", "data": {"exit_code": 1, "signal": null, "stdout": stdout, "stderr": stderr}, "error": {"code": "EXIT", "message": "failed"}, "context": {"params_input": {"command": "make"}}}),
        );
        let text = short["data"]["stdout"].as_str().unwrap();
        assert!(
            text.contains("step 9 of") && !text.contains("step 10 of") && text.contains("no such file"),
            "{text}"
        );
        assert!(!text.contains("step 79 of") && text.ends_with("step 99 of the build\n"), "{text}");
        assert!(short["data"]["stderr"].as_str().unwrap().contains("warning 10\n"));
        assert!(!short["data"]["stderr"].as_str().unwrap().contains("warning 9\n"));
        assert_eq!(
            (&short["data"]["command"], &short["data"]["exit_code"], &short["error"]["code"]),
            (&json!("make"), &json!(1), &json!("EXIT"))
        );
        // Of long lines the end is worth more than the start.
        let long = lines(60, |n| format!("{n} {}", "x".repeat(150)));
        let short = digest(ToolKind::Bash, &long).unwrap();
        assert!(
            short.chars().count() < 2_300 && short.contains("\n59 xxx") && !short.contains("0 xxx\n"),
            "{short}"
        );
    }

    // covers: A-TODO A-OTHER
    #[test]
    fn of_lists_the_recap_and_of_others_a_thousand_characters() {
        let todos: Vec<Value> =
            (0..4).map(|n| json!({"content": format!("task {n}"), "status": "pending"})).collect();
        let short = of_json(
            ToolKind::Todo,
            &json!({"status": "success", "data": {"recap": "[0/4] next: task 0", "todos": todos}}),
        );
        assert_eq!(short["data"], json!({"recap": "[0/4] next: task 0"}));
        let big: Vec<Value> = (0..200).map(|n| json!({"id": n, "name": format!("row {n}")})).collect();
        let short = of_json(
            ToolKind::Other,
            &json!({"status": "success", "data": {"a": 1, "rows": {"all": {"x": big}}}}),
        );
        assert!(short.to_string().len() < 2_000, "{short}");
        assert_eq!(digest(ToolKind::Other, &"x".repeat(1_000)), None);
        let short = digest(ToolKind::Other, &"word ".repeat(400)).unwrap();
        assert!(short.len() < 1_100 && short.contains("characters left out; recall "));
        for odd in ["42", "null", "\"text\"", "[1,2]", "{", "{}", "", "{\"status\":\"success\"}"] {
            assert_eq!(digest(ToolKind::Other, odd), None, "{odd}");
        }
    }

    // covers: A-READ A-GLOB A-BASH
    #[test]
    fn what_a_file_holds_is_no_envelope_and_no_list_is_lifted() {
        let config = serde_json::to_string_pretty(
            &json!({"files": (0..40).map(|n| format!("src/{n}.ts")).collect::<Vec<_>>()}),
        )
        .unwrap();
        assert_eq!(digest(ToolKind::Read, &config), None);
        let paths: Vec<String> = (0..800).map(|n| format!("src/module_{n}.rs")).collect();
        let short = of_json(ToolKind::Glob, &json!({"status": "success", "data": {"matched": paths}}));
        assert_eq!(short["data"]["matched"].as_array().unwrap().len(), 10);
        let stderr = lines(40, |n| format!("{n} {}", "e".repeat(900)));
        let short = of_json(
            ToolKind::Bash,
            &json!({"status": "error", "data": {"stdout": "", "stderr": stderr, "exit_code": 1}}),
        );
        assert!(short["data"]["stderr"].as_str().unwrap().chars().count() < 2_200);
    }

    #[test]
    fn results_of_other_agents_are_cut_alike() {
        let output = lines(100, |n| format!("line {n} of the output"));
        let short = of_json(
            ToolKind::Bash,
            &json!({"output": output, "metadata": {"exit_code": 2, "duration_seconds": 0.1}}),
        );
        assert_eq!(short["metadata"]["exit_code"], 2);
        assert!(short["output"].as_str().unwrap().contains("line 99 of"));
        assert!(short["left_out"].as_str().unwrap().contains(" left out; recall "));
    }

    proptest! {
        #[test]
        fn whatever_comes_it_is_shorter_and_final(
            text in "(\\PC{0,60}\n|error: [a-z]{1,9}\r\n|\u{1b}\\[3[0-9]m[a-z]{1,20}\n|中{0,50}){0,80}",
            json: bool, tool in prop::sample::select(vec![ToolKind::Ls, ToolKind::Glob, ToolKind::Grep, ToolKind::Read, ToolKind::Edit, ToolKind::Write, ToolKind::Bash, ToolKind::Todo, ToolKind::Recall, ToolKind::Other]),
        ) {
            let text = if json { json!({"status": "success", "data": {"stdout": text, "content": text, "list": text.lines().collect::<Vec<_>>()}, "text": text}).to_string() } else { text };
            if let Some(short) = digest(tool, &text) {
                prop_assert!(short.len() < text.len());
                prop_assert!(short.contains(" left out; recall "));
                prop_assert_eq!(digest(tool, &short), None);
            }
        }
    }
}
