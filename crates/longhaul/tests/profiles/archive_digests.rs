//! Profile `archive`: how much of a result enters, and how much of it history keeps, tool by tool. Each
//! test states its figures at their borders.

use super::*;
use serde_json::{Value, json};

/// What the view shows of the result of a call when its turn has ended.
fn kept(tool: &str, arguments: &str, result: &str) -> String {
    let mut session = session(Profile::archive(), 200_000);
    session.push(Message::user("Go."));
    session.push(call("a", tool, arguments));
    session.push(Message::result("a", result));
    session.push(Message::assistant("Done."));
    session.push(Message::user("And now?"));
    ready(&mut session);
    parts(&session).swap_remove(2)
}

/// The same of a result that is an envelope.
fn kept_json(tool: &str, arguments: &str, result: &Value) -> Value {
    serde_json::from_str(&kept(tool, arguments, &result.to_string())).unwrap()
}

fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|n| line(n) + "\n").collect()
}

/// What a tool says beside its data: history does without it.
fn envelope(status: &str, data: Value) -> Value {
    json!({"status": status, "data": data, "text": "said in words ".repeat(40), "stats": {"time_ms": 3}, "context": {"cwd": "."}})
}

// covers: A-ENVELOPE
#[test]
fn archive_keeps_status_data_with_flags_and_errors_of_an_envelope() {
    let data = json!({"path": "a.rs", "truncated": true, "applied": false, "fallback": "grep", "modified_externally": true});
    for status in ["success", "partial", "error"] {
        let mut result = envelope(status, data.clone());
        result["error"] = json!({"code": "E1", "message": "m".repeat(900)});
        let short = kept_json("Read", r#"{"path":"a.rs"}"#, &result);
        assert_eq!((&short["status"], &short["data"]), (&json!(status), &data));
        // The whole error, if it is one.
        let error = if status == "error" { &result["error"] } else { &Value::Null };
        assert_eq!(&short["error"], error, "{status}");
        for name in ["text", "stats", "context"] {
            assert_eq!(short.get(name), None, "{status} {name}");
        }
        assert!(short["left_out"].as_str().unwrap().starts_with("⟦text, stats, context left out; recall "));
    }
}

// covers: A-ENVELOPE
#[test]
fn archive_lifts_path_pattern_total_and_mtime_into_data() {
    let mut result = envelope("success", json!({"matches": ["x"]}));
    result["stats"] = json!({"total_matches": 7, "file_mtime_ms": 17});
    result["context"] = json!({"params_input": {"pattern": "parse", "path": "src"}});
    let short = kept_json("Grep", r#"{"pattern":"parse"}"#, &result);
    assert_eq!(
        short["data"],
        json!({"path": "src", "pattern": "parse", "total": 7, "mtime": 17, "matches": ["x"]})
    );
}

/// A list of so many entries, and how many of them are kept.
fn list_of(tool: &str, field: &str, count: usize) -> (usize, Value) {
    let entries: Vec<Value> =
        (0..count).map(|n| json!({"path": format!("src/a{n}.rs"), "line": n, "type": "file"})).collect();
    let mut data = json!({"path": "src", "pattern": "a*", "truncated": false});
    data[field] = json!(entries);
    let mut short = kept_json(tool, r#"{"path":"src","pattern":"a*"}"#, &envelope("success", data));
    let left = short["data"][field].as_array().unwrap();
    assert_eq!(left[..], entries[..left.len()], "the first ones");
    (left.len(), short["data"].take())
}

// covers: A-LS
#[test]
fn archive_keeps_ten_entries_of_a_listing_and_says_what_is_shown() {
    let (shown, data) = list_of("LS", "entries", 10);
    assert_eq!((shown, &data["truncated"], &data["path"]), (10, &json!(false), &json!("src")));
    for count in [11, 40] {
        let (shown, data) = list_of("LS", "entries", count);
        assert_eq!((shown, &data["truncated"], &data["total"]), (10, &json!(true), &json!(count)));
    }
    // Plain text too.
    let listing = |count| numbered(count, |n| format!("src/module_{n}.rs"));
    assert_eq!(kept("LS", r#"{"path":"src"}"#, &listing(10)), listing(10));
    let short = kept("LS", r#"{"path":"src"}"#, &listing(40));
    assert!(short.starts_with(&listing(10)) && !short.contains("module_10"), "{short}");
    assert!(short.contains("⟦30 lines of "), "{short}");
}

// covers: A-GLOB
#[test]
fn archive_keeps_ten_paths_of_a_search_by_name() {
    assert_eq!(list_of("Glob", "paths", 10).0, 10);
    let (shown, data) = list_of("Glob", "paths", 11);
    assert_eq!((shown, &data["pattern"], &data["total"]), (10, &json!("a*"), &json!(11)));
}

// covers: A-GREP
#[test]
fn archive_keeps_five_hits_of_a_search_by_content() {
    assert_eq!(list_of("Grep", "matches", 5).0, 5);
    let (shown, data) = list_of("Grep", "matches", 6);
    assert_eq!((shown, &data["pattern"], &data["total"]), (5, &json!("a*"), &json!(6)));
    assert_eq!((&data["matches"][4]["path"], &data["matches"][4]["line"]), (&json!("src/a4.rs"), &json!(4)));
    let hits = |count| numbered(count, |n| format!("src/a.rs:{n}:fn parse_{n}(text: &str) -> Option<u32>"));
    assert_eq!(kept("Grep", r#"{"pattern":"parse"}"#, &hits(5)), hits(5));
    let short = kept("Grep", r#"{"pattern":"parse"}"#, &hits(9));
    assert!(short.starts_with(&hits(5)) && !short.contains("a.rs:5:"), "{short}");
}

// covers: A-READ
#[test]
fn archive_keeps_five_hundred_numbered_lines_of_a_file() {
    let file = |count| numbered(count, |n| format!("{:4} | let value_{n} = compute(value, {n});", n + 1));
    let read = |count| {
        let data = json!({"path": "a.rs", "content": file(count), "mtime": 17, "modified_externally": true});
        kept_json("Read", r#"{"path":"a.rs"}"#, &envelope("success", data))["data"].take()
    };
    assert_eq!(read(500)["content"], json!(file(500)));
    let data = read(510);
    let content = data["content"].as_str().unwrap();
    assert!(content.starts_with(&file(500)) && !content.contains(" 501 |"), "{content}");
    assert_eq!(
        (&data["path"], &data["mtime"], &data["modified_externally"]),
        (&json!("a.rs"), &json!(17), &json!(true))
    );
}

// covers: A-EDIT
#[test]
fn archive_keeps_ranges_and_a_snippet_of_a_change() {
    let snippet = |count| numbered(count, |n| format!("    let value_{n} = compute(value, {n});"));
    let edit = |tool: &str, text: String| {
        let data = json!({"path": "a.rs", "applied": true, "diff": text, "failed_edits": [{"index": 2, "error": "no match"}]});
        kept_json(tool, r#"{"path":"a.rs"}"#, &envelope("partial", data))["data"].take()
    };
    for tool in ["Edit", "MultiEdit"] {
        assert_eq!(edit(tool, snippet(50))["diff"], json!(snippet(50)));
        let data = edit(tool, snippet(60));
        let text = data["diff"].as_str().unwrap();
        assert!(text.starts_with(&snippet(50)) && !text.contains("value_50"), "{text}");
        assert_eq!((&data["path"], &data["applied"]), (&json!("a.rs"), &json!(true)));
        assert_eq!(data["failed_edits"], json!([{"index": 2, "error": "no match"}]));
        // A large diff only as its ranges.
        let diff = |count| {
            numbered(count, |n| match n % 20 {
                0 => format!("@@ -{n},9 +{n},9 @@"),
                _ => format!("+line number {n}"),
            })
        };
        assert_eq!(edit(tool, diff(50))["diff"], json!(diff(50)));
        let data = edit(tool, diff(60));
        let text = data["diff"].as_str().unwrap();
        assert_eq!((text.matches("@@ -").count(), text.contains("line number")), (3, false), "{text}");
    }
}

// covers: A-WRITE
#[test]
fn archive_keeps_fifty_lines_of_what_was_written() {
    let file = |count| numbered(count, |n| format!("    let value_{n} = compute(value, {n});"));
    let write = |count| {
        let data = json!({"path": "a.rs", "operation": "created", "preview": file(count)});
        kept_json("Write", r#"{"path":"a.rs"}"#, &envelope("success", data))["data"].take()
    };
    assert_eq!(write(50)["preview"], json!(file(50)));
    let data = write(60);
    let text = data["preview"].as_str().unwrap();
    assert!(text.starts_with(&file(50)) && !text.contains("value_50"), "{text}");
    assert_eq!((&data["path"], &data["operation"]), (&json!("a.rs"), &json!("created")));
}

/// What is kept of the output of a command.
fn bash(stdout: &str, stderr: &str) -> Value {
    let data = json!({"exit_code": 1, "signal": "SIGTERM", "stdout": stdout, "stderr": stderr});
    kept_json("Bash", r#"{"command":"make all"}"#, &envelope("partial", data))["data"].take()
}

// covers: A-BASH
#[test]
fn archive_keeps_the_ends_and_the_failures_of_a_command() {
    let line = |n: usize| format!("step {n:03} of the build");
    assert_eq!(bash(&numbered(30, line), "")["stdout"], json!(numbered(30, line)));
    // Twelve failures between head and tail.
    let stdout = numbered(200, |n| match n % 10 {
        5 if (50..170).contains(&n) => format!("error: part {n:03} is broken"),
        _ => line(n),
    });
    let data = bash(&stdout, "");
    let text = data["stdout"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('⟦')).collect();
    let failures = (55..155).step_by(10).map(|n| format!("error: part {n:03} is broken"));
    let expected: Vec<String> = (0..10).map(line).chain(failures).chain((180..200).map(line)).collect();
    assert_eq!(lines, expected);
    assert_eq!(
        (&data["command"], &data["exit_code"], &data["signal"]),
        (&json!("make all"), &json!(1), &json!("SIGTERM"))
    );
}

// covers: A-BASH
#[test]
fn archive_keeps_two_thousand_characters_of_a_command() {
    // Lines of 100 characters: the 20 of the end are all that fits.
    let line = |n: usize| format!("{n:03} {}", "字".repeat(95));
    let data = bash(&numbered(60, line), "");
    let text = data["stdout"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('⟦')).collect();
    assert_eq!(lines, (40..60).map(line).collect::<Vec<_>>());
    // One line of 2,000 stays, a longer one is cut.
    let one = |count: usize| bash(&"字".repeat(count), "")["stdout"].as_str().unwrap().to_owned();
    assert_eq!(one(2_000), "字".repeat(2_000));
    let short = one(2_200);
    assert!(short.contains("characters left out") && short.matches('字').count() <= 2_000, "{short}");
}

// covers: A-BASH
#[test]
fn archive_keeps_the_last_twenty_lines_of_the_errors_of_a_command() {
    let line = |n: usize| format!("warning number {n:03}, of many");
    assert_eq!(bash("", &numbered(20, line))["stderr"], json!(numbered(20, line)));
    let data = bash("", &numbered(50, line));
    let text = data["stderr"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('⟦')).collect();
    assert_eq!(lines, (30..50).map(line).collect::<Vec<_>>());
}

// covers: A-TODO
#[test]
fn archive_keeps_the_recap_of_a_task_list() {
    let todos: Vec<Value> = (0..4).map(|n| json!({"content": format!("task {n}")})).collect();
    let data = json!({"recap": "[0/4] next: task 0", "todos": todos});
    let short = kept_json("TodoWrite", "{}", &envelope("success", data));
    assert_eq!(short["data"], json!({"recap": "[0/4] next: task 0"}));
}

// covers: A-OTHER
#[test]
fn archive_keeps_a_thousand_characters_of_any_other_result() {
    assert_eq!(kept("Weather", "{}", &"字".repeat(1_000)), "字".repeat(1_000));
    let text: String = (0..300).map(|n| format!("{n:03} ")).collect();
    let short = kept("Weather", "{}", &text);
    assert!(short.starts_with("000 001 ") && short.ends_with("298 299 "), "{short}");
    assert!(short.contains("characters left out; recall "), "{short}");
    let words = short.split_whitespace().filter(|word| word.len() == 3 && word.parse::<u32>().is_ok());
    assert!((240..=250).contains(&words.count()), "{short}");
    // The data of an envelope: its JSON counts.
    let data = |count: usize| json!({"say": "x".repeat(count - r#"{"say":""}"#.len())});
    let other = |count| kept_json("Weather", "{}", &envelope("success", data(count)))["data"].take();
    assert_eq!(other(1_000), data(1_000));
    assert_eq!(other(1_100)["characters"], json!(1_100));
    for odd in ["42", "null", "\"text\"", "[1,2]", "{", "{}", "", "{\"status\":\"success\"}"] {
        assert_eq!(kept("Weather", "{}", odd), odd);
    }
}

/// What the view shows of a result as it enters.
fn entered(result: &str) -> String {
    let mut session = session(Profile::archive(), 200_000);
    session.push(Message::user("Go."));
    session.push(call("a", "Bash", r#"{"command":"make"}"#));
    session.push(Message::result("a", result));
    ready(&mut session);
    let shown = parts(&session).swap_remove(2);
    // The whole of it can be found.
    if let Some((_, rest)) = shown.split_once("recall ") {
        assert_eq!(session.recall(&rest[..12], &RecallPart::Whole).unwrap(), result);
    }
    shown
}

// covers: A-TRUNC
#[test]
fn archive_lets_two_thousand_lines_and_fifty_kibibytes_in() {
    let lines = |count| numbered(count, |n| format!("row {n}"));
    assert_eq!(entered(&lines(2_000)), lines(2_000));
    let short = entered(&lines(2_001));
    assert!(short.starts_with("row 0\nrow 1\n") && short.ends_with("row 1999\nrow 2000\n"), "{short}");
    assert!(short.contains("\n⟦Bash: ") && short.lines().count() <= 2_000, "{short}");
    let bytes = |count: usize| "y".repeat(count);
    assert_eq!(entered(&bytes(51_200)), bytes(51_200));
    let short = entered(&bytes(51_201));
    assert!(short.contains("⟦Bash: 51201 characters in 1 lines, ") && short.len() <= 51_200);
}
