//! `longhaul report` over a made home with the layouts of all agents, empty and broken files among them. Sums are
//! compared with a second count, which is written here and shares nothing with the first.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::{Value, json};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn lines(&self, name: &str, lines: &[Value]) {
        self.write(name, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("longhaul").unwrap();
        command.env_clear().env("HOME", self.0.path()).env("TZ", "UTC").current_dir(self.0.path());
        command.arg("report").args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn stdout(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.stdout(&[args, &["--json"]].concat())).unwrap()
    }
}

/// A line of Claude Code with a block of an answer.
fn claude(session: &str, id: &str, at: &str, block: &Value, usage: [u64; 5]) -> Value {
    let [input, read, write, write_1h, output] = usage;
    json!({
        "type": "assistant", "sessionId": session, "uuid": format!("{id}-{at}-{output}"), "requestId": format!("req_{id}"),
        "cwd": "/srv/api", "timestamp": at, "isSidechain": false,
        "message": {
            "id": id, "role": "assistant", "model": "claude-opus-4-5-20251101", "content": [block],
            "usage": {
                "input_tokens": input, "cache_read_input_tokens": read, "cache_creation_input_tokens": write,
                "cache_creation": {"ephemeral_1h_input_tokens": write_1h}, "output_tokens": output,
            },
        },
    })
}

fn claude_user(session: &str, at: &str, content: &Value) -> Value {
    json!({"type": "user", "sessionId": session, "uuid": at, "cwd": "/srv/api", "timestamp": at,
           "message": {"role": "user", "content": content}})
}

/// Twelve steps of a session: each answer comes in two lines, the second with the whole usage.
fn claude_session(session: &str) -> Vec<Value> {
    let at = |n: u64, second: u64| format!("2026-03-02T10:{n:02}:{second:02}.000Z");
    let mut lines = vec![
        json!({"type": "ai-title", "sessionId": session, "title": "The parser"}),
        claude_user(session, &at(0, 0), &json!("Why is the build red?")),
    ];
    for n in 0..12 {
        let (id, call) = (format!("msg_{session}_{n}"), format!("toolu_{n}"));
        let usage = |output| [3, 20_000 + n * 900, 900, 400, output];
        let words = json!({"type": "text", "text": "Let me look."});
        let read = json!({"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": "/srv/api/src/parse.rs"}});
        lines.push(claude(session, &id, &at(n, 1), &words, usage(1)));
        lines.push(claude(session, &id, &at(n, 2), &read, usage(80)));
        let result =
            json!([{"type": "tool_result", "tool_use_id": call, "content": "fn parse() {}\n".repeat(200)}]);
        lines.push(claude_user(session, &at(n, 3), &result));
    }
    lines
}

fn codex_tokens(at: &str, sum: [u64; 3], last: [u64; 3]) -> Value {
    let usage = |[input, cached, output]: [u64; 3]| json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "total_tokens": input + output});
    json!({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count",
           "info": {"total_token_usage": usage(sum), "last_token_usage": usage(last)}}})
}

fn codex_meta(id: &str, forked_from: Option<&str>) -> Value {
    json!({"timestamp": "2026-03-03T09:00:00Z", "type": "session_meta",
           "payload": {"id": id, "cwd": "/srv/web", "forked_from_id": forked_from, "instructions": "You are an agent."}})
}

fn codex_call(at: &str, n: u64) -> Value {
    json!({"timestamp": at, "type": "response_item", "payload": {"type": "function_call", "name": "shell",
           "call_id": format!("call_{n}"), "arguments": "{\"command\":[\"ls\"]}"}})
}

/// Everything that agents leave behind.
fn everything() -> Home {
    let home = Home::new();
    let first = claude_session("one");
    home.lines(".claude/projects/-srv-api/one.jsonl", &first);
    // It was resumed: all lines again under another session, and one more answer.
    let mut resumed: Vec<Value> = first
        .into_iter()
        .map(|mut line| {
            line["sessionId"] = "two".into();
            line
        })
        .collect();
    let words = json!({"type": "text", "text": "Green."});
    resumed.push(claude("two", "msg_two", "2026-03-04T08:00:00Z", &words, [5, 31_000, 700, 0, 20]));
    // An error that the agent made up, and a side chain.
    let mut made_up = claude("two", "x", "2026-03-04T08:00:01Z", &words, [0; 5]);
    made_up["message"]["model"] = "<synthetic>".into();
    resumed.push(made_up);
    let mut side = claude("two", "msg_side", "2026-03-04T08:00:02Z", &words, [7, 0, 5_000, 5_000, 30]);
    side["isSidechain"] = true.into();
    side["agentId"] = "a1".into();
    resumed.push(side);
    home.lines(".claude/projects/-srv-api/two.jsonl", &resumed);
    home.write(".claude/projects/-srv-api/empty.jsonl", "");
    home.write(".claude/projects/-srv-api/broken.jsonl", "{\"type\":\n\u{0}\u{1}{{{{\n");
    home.write(".claude/projects/-srv-api/memory/notes.md", "# Notes\nNothing to bill.\n");

    let reports = vec![
        codex_meta("parent", None),
        json!({"timestamp": "2026-03-03T09:00:00Z", "type": "turn_context", "payload": {"model": "gpt-5.5"}}),
        codex_call("2026-03-03T09:00:01Z", 1),
        codex_tokens("2026-03-03T09:00:02Z", [9_000, 2_000, 100], [9_000, 2_000, 100]),
        // The same report shown once more.
        codex_tokens("2026-03-03T09:00:03Z", [9_000, 2_000, 100], [9_000, 2_000, 100]),
        codex_call("2026-03-03T09:00:04Z", 2),
        codex_tokens("2026-03-03T09:00:05Z", [19_000, 11_000, 250], [10_000, 9_000, 150]),
    ];
    home.lines(".codex/sessions/2026/03/03/rollout-parent.jsonl", &reports);
    // A fork replays its parent's reports under its own time, then works on.
    let mut fork = vec![codex_meta("child", Some("parent"))];
    fork.extend(reports.into_iter().map(|mut line| {
        line["timestamp"] = "2026-03-05T07:00:00Z".into();
        line
    }));
    fork.push(codex_tokens("2026-03-05T07:00:09Z", [31_000, 21_000, 300], [12_000, 10_000, 50]));
    home.lines(".codex/archived_sessions/rollout-child.jsonl", &fork);

    let pi = |n: u64| {
        json!({"type": "message", "id": format!("m{n}"), "timestamp": format!("2026-03-06T10:00:0{n}Z"),
               "message": {"role": "assistant", "model": "nobody-knows-it", "content": [{"type": "text", "text": "yes"}],
                           "usage": {"input": 10 * n, "output": 5, "cacheRead": 100, "cacheWrite": 50, "cost": {"total": 0.25}}}})
    };
    let head = |id: &str| json!({"type": "session", "id": id, "cwd": "/srv/pi", "timestamp": "2026-03-06T10:00:00Z"});
    home.lines(".pi/agent/sessions/--srv-pi--/a.jsonl", &[head("a"), pi(1), pi(2)]);
    // A branch repeats the lines before it.
    home.lines(".pi/agent/sessions/--srv-pi--/b.jsonl", &[head("b"), pi(1), pi(2), pi(3)]);
    opencode(&home.at(".local/share/opencode/opencode.db"));
    home
}

/// opencode's store, as its schema is.
fn opencode(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch(
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
         INSERT INTO session VALUES ('ses_1', 'p', NULL, '/srv/open', 't'), ('ses_2', 'p', 'ses_1', '/srv/open', 't');",
    )
    .unwrap();
    let message = |id: &str, session: &str, data: Value| {
        file.execute("INSERT INTO message VALUES (?1, ?2, 1, ?3)", [id, session, &data.to_string()]).unwrap();
    };
    let part = |id: &str, message: &str, data: Value| {
        file.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)", [id, message, &data.to_string()])
            .unwrap();
    };
    let answer = json!({"role": "assistant", "modelID": "claude-sonnet-4-5", "time": {"created": 1_772_800_000_000_u64},
                        "tokens": {"input": 40, "output": 7, "reasoning": 3, "cache": {"read": 4_000, "write": 200}}, "cost": 0.5});
    message("msg_0", "ses_1", json!({"role": "user", "time": {"created": 1_772_800_000_000_u64}}));
    part("prt_0", "msg_0", json!({"type": "text", "text": "Why is the build red?"}));
    // Two steps, each with its own bill.
    message("msg_1", "ses_1", answer.clone());
    for n in 1..3 {
        part(&format!("prt_{n}1"), "msg_1", json!({"type": "step-start"}));
        part(
            &format!("prt_{n}2"),
            "msg_1",
            json!({"type": "tool", "tool": "read", "callID": "c", "state": {"input": {"filePath": "a"}, "output": "b".repeat(900)}}),
        );
        part(
            &format!("prt_{n}3"),
            "msg_1",
            json!({"type": "step-finish", "tokens": answer["tokens"], "cost": 0.25}),
        );
    }
    // The older form, and a copy of it by a fork.
    let mut older = answer;
    older["time"]["created"] = json!(1_772_900_000_000_u64);
    message("msg_2", "ses_1", older.clone());
    message("msg_3", "ses_2", older);
}

/// The second count: calls, input, read, written and output of all files of Claude Code, Codex and pi.
fn count_again(home: &Home) -> [u64; 5] {
    let mut bills: HashMap<String, [u64; 4]> = HashMap::new();
    let mut folders = vec![home.0.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let Ok(text) = fs::read_to_string(&entry) else { continue };
            for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                let message = &line["message"];
                let figure = |usage: &Value, name: &str| usage[name].as_u64().unwrap_or_default();
                if line["type"] == "assistant" && message["model"] != "<synthetic>" {
                    let usage = &message["usage"];
                    let bill = [
                        "input_tokens",
                        "cache_read_input_tokens",
                        "cache_creation_input_tokens",
                        "output_tokens",
                    ];
                    let bill = bill.map(|name| figure(usage, name));
                    let known =
                        bills.entry(format!("{} {}", message["id"], line["requestId"])).or_insert(bill);
                    if bill[3] > known[3] {
                        *known = bill;
                    }
                }
                let info = &line["payload"]["info"];
                if info.is_object() {
                    let last = &info["last_token_usage"];
                    let (input, cached) = (figure(last, "input_tokens"), figure(last, "cached_input_tokens"));
                    // Sums of this home are never alike by chance.
                    let bill = [input - cached, cached, 0, figure(last, "output_tokens")];
                    bills.insert(info["total_token_usage"].to_string(), bill);
                }
                if line["type"] == "message" {
                    let bill = ["input", "cacheRead", "cacheWrite", "output"]
                        .map(|name| figure(&message["usage"], name));
                    bills.insert(line["timestamp"].to_string(), bill);
                }
            }
        }
    }
    let mut sums = [bills.len() as u64, 0, 0, 0, 0];
    for bill in bills.values() {
        bill.iter().enumerate().for_each(|(n, tokens)| sums[n + 1] += tokens);
    }
    sums
}

fn figures(value: &Value) -> [u64; 5] {
    ["calls", "input", "cache_read", "cache_write", "output"].map(|name| value[name].as_u64().unwrap())
}

#[test]
fn sums_are_those_of_a_second_count() {
    let home = everything();
    let report = home.json(&["--agent", "c"]);
    let names: Vec<&str> =
        report["by_agent"].as_array().unwrap().iter().map(|row| row["agent"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let all = home.json(&[]);
    let counted = count_again(&home);
    // opencode's three steps beside it.
    let expected = [counted[0] + 3, counted[1] + 120, counted[2] + 12_000, counted[3] + 600, counted[4] + 30];
    assert_eq!(figures(&all), expected);
    // All views add up to the same.
    for name in ["by_day", "by_project", "by_agent", "by_model", "by_session"] {
        let rows = all[name].as_array().unwrap();
        let sums = [0, 1, 2, 3, 4].map(|n| rows.iter().map(|row| figures(row)[n]).sum::<u64>());
        assert_eq!(sums, expected, "{name}");
        let dollars: f64 = rows.iter().map(|row| row["usd"].as_f64().unwrap()).sum();
        assert!((dollars - all["usd"].as_f64().unwrap()).abs() < 1e-9, "{name}");
    }
    // And what filled the context to the prompts.
    let parts: u64 =
        all["context"].as_array().unwrap().iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
    assert_eq!(parts, expected[1] + expected[2] + expected[3]);
}

#[test]
fn each_call_is_counted_once_and_priced_by_its_kind() {
    let home = everything();
    let report = home.json(&[]);
    let agent = |name: &str| {
        let rows = report["by_agent"].as_array().unwrap();
        rows.iter().find(|row| row["agent"] == name).unwrap().clone()
    };
    // Twelve answers of two lines, resumed, one more, and a side chain; opus 4.5 at 5, 0.5, 6.25, 10 and 25 dollars.
    let claude = agent("claude-code");
    let read: u64 = (0..12).map(|n| 20_000 + n * 900).sum::<u64>() + 31_000;
    let usd = |input: u64, read: u64, short: u64, hour: u64, output: u64| {
        (input as f64 * 5.0
            + read as f64 * 0.5
            + short as f64 * 6.25
            + hour as f64 * 10.0
            + output as f64 * 25.0)
            / 1e6
    };
    assert_eq!(figures(&claude), [14, 48, read, 16_500, 1_010]);
    let expected = usd(48, read, 16_500 - 9_800, 9_800, 1_010);
    assert!((claude["usd"].as_f64().unwrap() - expected).abs() < 1e-9, "{claude} {expected}");
    // The fork's copy of its parent is not billed again, and stays with the parent's day.
    assert_eq!(figures(&agent("codex")), [3, 10_000, 21_000, 0, 300]);
    let day = |name: &str| {
        let rows = report["by_day"].as_array().unwrap();
        rows.iter().find(|row| row["day"] == name).unwrap()["calls"].as_u64().unwrap()
    };
    assert_eq!((day("2026-03-03"), day("2026-03-05")), (2, 1));
    // A model that nobody knows: what the agent wrote down.
    assert_eq!(agent("pi")["usd"].as_f64(), Some(0.75));
    assert_eq!(figures(&agent("opencode")), [3, 120, 12_000, 600, 30]);
    assert_eq!(report["sessions"], 7);
    // Whole lines, a file of notes and an empty one are no sessions.
    assert_eq!(report["skipped_files"], 3);
    assert!(report["repeated_calls"].as_u64().unwrap() >= 16, "{}", report["repeated_calls"]);
}

#[test]
fn what_filled_the_context_and_what_came_twice() {
    let home = everything();
    let report = home.json(&["--agent", "claude"]);
    let part = |name: &str| {
        let parts = report["context"].as_array().unwrap();
        parts.iter().find(|part| part["part"] == name).map_or(0, |part| part["tokens"].as_u64().unwrap())
    };
    assert!(part("system prompt and tools") > 200_000, "{}", report["context"]);
    assert!(part("results of Read") > 40_000, "{}", report["context"]);
    let again = &report["read_again"][0];
    assert_eq!(
        (&again["tool"], &again["what"], &again["times"]),
        (&json!("Read"), &json!("/srv/api/src/parse.rs"), &json!(12))
    );
    assert_eq!(again["unchanged"], 11);
    assert_eq!(report["largest_results"].as_array().unwrap().len(), 10);
    let longhaul = &report["longhaul"];
    assert!(longhaul["sent"]["usd"].as_f64().unwrap() > 0.0, "{longhaul}");
    assert!(longhaul["how"].as_str().unwrap().contains("taken call by call through profile longhaul"));
}

#[test]
fn what_is_asked_for_is_shown() {
    let home = everything();
    assert_eq!(figures(&home.json(&["--since", "2026-03-04", "--until", "2026-03-04"]))[0], 2);
    assert_eq!(figures(&home.json(&["--since", "20260305", "--agent", "codex"]))[0], 1);
    assert_eq!(figures(&home.json(&["--project", "Srv/pi"]))[0], 3);
    assert_eq!(figures(&home.json(&[".codex"]))[0], 3);
    assert_eq!(figures(&home.json(&[".claude/projects/-srv-api/two.jsonl#1"])), [1, 7, 0, 5_000, 30]);
    let rows = |view: &str| home.json(&[view])["rows"].as_array().unwrap().len();
    assert_eq!((rows("daily"), rows("weekly"), rows("monthly"), rows("session")), (6, 1, 1, 7));
    let text = home.stdout(&["daily", "--agent", "codex"]);
    assert!(
        text.contains("2026-03-03")
            && text.contains("2026-03-05")
            && text.lines().any(|line| line.starts_with("all")),
        "{text}"
    );
    let csv = home.stdout(&["--csv"]);
    assert!(
        csv.starts_with("day,agent,project,model,calls,input,cache_read,cache_write,output,usd\n"),
        "{csv}"
    );
    let calls: u64 =
        csv.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(calls, figures(&home.json(&[]))[0]);
    for args in [&["--since", "someday"][..], &["nowhere"], &["--replay", "some"], &["--profile", "archve"]] {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn the_text_is_the_same_each_time_and_fits() {
    let home = everything();
    let text = home.stdout(&[]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(text, home.stdout(&["--no-cache"]));
    insta::assert_snapshot!(text);
}

#[test]
fn files_that_did_not_change_are_not_read_again() {
    let home = everything();
    let before = home.stdout(&["--json"]);
    let cache = home.at(".cache/longhaul/report.json");
    let written = fs::metadata(&cache).unwrap().modified().unwrap();
    assert_eq!(home.stdout(&["--json"]), before);
    assert_eq!(fs::metadata(&cache).unwrap().modified().unwrap(), written);
    // A broken cache is none, and one that is gone costs nothing but time.
    fs::write(&cache, "{\"version\":1,").unwrap();
    assert_eq!(home.stdout(&["--json"]), before);
    fs::remove_dir_all(home.at(".cache")).unwrap();
    assert_eq!(home.stdout(&["--json"]), before);
    // A session that goes on is read anew.
    let path = home.at(".pi/agent/sessions/--srv-pi--/a.jsonl");
    let line = fs::read_to_string(&path).unwrap().lines().last().unwrap().replace("10:00:02", "10:00:08");
    let more = format!("{}{line}\n", fs::read_to_string(&path).unwrap());
    fs::write(&path, more).unwrap();
    let calls = |text: &str| figures(&serde_json::from_str(text).unwrap())[0];
    assert_eq!(calls(&home.stdout(&["--json"])), calls(&before) + 1);
}

#[test]
fn one_page_that_needs_nothing_else() {
    let home = everything();
    home.lines(
        ".claude/projects/x/evil.jsonl",
        &[
            json!({"type": "assistant", "sessionId": "evil", "cwd": "<script>alert(1)</script>{{days}}", "timestamp": "2026-03-07T10:00:01Z",
                   "requestId": "r", "message": {"id": "e", "model": "\"><img src=x>", "usage": {"input_tokens": 5, "output_tokens": 1}, "content": []}}),
        ],
    );
    let output = home.run(&["--html", "report.html"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let page = fs::read_to_string(home.at("report.html")).unwrap();
    for absent in ["<script", "<img", "http://", "https://", "url(", "@import", "<link"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;{{days}}"));
    assert!(
        page.matches("<svg").count() == 1
            && page.contains("What filled the context")
            && page.ends_with("</html>\n")
    );
}

#[test]
fn bad_files_stop_nothing_and_nothing_is_said_so() {
    let home = Home::new();
    let output = home.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no sessions of Claude Code, Codex, pi or opencode are here"), "{said}");
    home.write("a/empty", "");
    home.write("a/not.db", "SQLite format 3\0 and then something else");
    home.write("a/deep.jsonl", &"[".repeat(100_000));
    assert_eq!(home.run(&["a"]).status.code(), Some(2));
    // Numbers that cannot be are none; fields of other kinds are none.
    home.lines(
        "a/odd.jsonl",
        &[
            json!({"type": "user", "sessionId": "s", "message": 7}),
            json!({"type": "assistant", "sessionId": "s", "message": {"id": 5, "model": ["m"], "usage": {"input_tokens": -5, "output_tokens": 1e300}}}),
            json!({"type": "assistant", "sessionId": "s", "timestamp": true, "message": {"id": "i", "usage": {"input_tokens": 12, "cache_creation": {"ephemeral_1h_input_tokens": 99}}}}),
        ],
    );
    let report = home.json(&["a"]);
    assert!(report["input"].as_u64().unwrap() >= 12, "{report}");
}

/// What is compared are the calls that were asked for, not the whole sessions that they are of.
#[test]
fn the_comparison_is_of_the_calls_that_were_asked_for() {
    let home = Home::new();
    let mut lines = vec![
        json!({"role": "user", "content": [{"type": "text", "text": "Read all."}], "ts": "2026-03-02T09:00:00Z"}),
    ];
    for n in 0..14 {
        let day = if n < 8 { 2 } else { 3 };
        let ts = format!("2026-03-0{day}T10:{n:02}:00Z");
        lines.push(json!({"role": "assistant", "model": "claude-opus-4-5", "ts": ts,
            "content": [{"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": "a.rs"}}],
            "usage": {"input": 3, "output": 9, "cache_read": 20_000 + 200 * n, "cache_write": 200, "cache_write_1h": 200}}));
        lines.push(json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": "fn a() {}"}]}));
    }
    home.lines("own/a.jsonl", &lines);
    let all = home.json(&["own"]);
    assert_eq!((&all["calls"], &all["longhaul"]["calls"]), (&json!(14), &json!(14)));
    // What is written for an hour costs twice what is new: 14 × 200 tokens at $10 a million.
    let usd = all["usd"].as_f64().unwrap();
    let expected = (14.0 * 3.0 * 5.0 + 14.0 * 9.0 * 25.0 + 14.0 * 200.0 * 10.0 + 298_200.0 * 0.5) / 1e6;
    assert!((usd - expected).abs() < 1e-6, "{usd} {expected}");
    let day = home.json(&["own", "--since", "2026-03-03"]);
    assert_eq!((&day["calls"], &day["longhaul"]["calls"]), (&json!(6), &json!(6)));
    let recorded = day["longhaul"]["recorded"]["usd"].as_f64().unwrap();
    assert!((recorded - day["usd"].as_f64().unwrap()).abs() < 1e-6, "{day}");
}

/// Several conversations of one file, the whole of it, and one that it has not.
#[test]
fn conversations_of_a_file_are_counted_as_they_are_named() {
    let home = Home::new();
    let row = |n: usize, calls: usize| {
        let mut history = vec![
            json!({"id": 0, "source": "user", "message": "Mend it.", "action": "message", "args": {"content": "Mend it."}}),
        ];
        for call in 0..calls {
            history.push(json!({"id": call + 1, "source": "agent", "action": "run", "message": "Run",
                "args": {"command": format!("make {n}"), "thought": ""},
                "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": format!("c{n}_{call}"), "total_calls_in_response": 1,
                    "model_response": {"id": format!("r{n}_{call}"), "model": "gpt-4o", "usage": {"prompt_tokens": 1_000 + call, "completion_tokens": 7},
                        "choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [{"id": format!("c{n}_{call}"), "type": "function",
                            "function": {"name": "execute_bash", "arguments": format!("{{\"command\":\"make {n}\"}}")}}]}}]}}}));
        }
        json!({"instance_id": format!("i{n}"), "history": history})
    };
    home.lines("output.jsonl", &[row(0, 6), row(1, 9)]);
    let calls = |args: &[&str]| home.json(args)["calls"].as_u64().unwrap();
    assert_eq!(calls(&["output.jsonl"]), 15);
    assert_eq!(calls(&["output.jsonl#1"]), 9);
    assert_eq!(calls(&["output.jsonl#0", "output.jsonl#1"]), 15);
    assert_eq!(calls(&["output.jsonl#1", "output.jsonl"]), 15);
    // Both are sessions of their own, and are replayed as such.
    assert_eq!(home.json(&["output.jsonl"])["longhaul"]["calls"], 15);
    let refused = |args: &[&str]| String::from_utf8(home.run(args).stderr).unwrap();
    assert!(refused(&["output.jsonl#7"]).contains("output.jsonl: has no conversation 7"));
    assert!(refused(&["output.jsonl", "--html", "output.jsonl"]).contains("is one of the sessions"));
    home.write("notes.txt", "mine");
    assert!(refused(&["output.jsonl", "--html", "notes.txt"]).contains("is no page"));
    assert!(refused(&["output.jsonl", "--since", "2099-01-01"]).contains("no call is left by --since"));
}

/// Steps of opencode that happen to be billed alike are calls of their own.
#[test]
fn calls_that_cost_the_same_are_not_the_same() {
    let home = Home::new();
    let path = home.at(".local/share/opencode/opencode.db");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(
        "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);",
    )
    .unwrap();
    for n in 0..5_u64 {
        let info = json!({"role": "assistant", "modelID": "m", "time": {"created": 1_772_800_000_000_u64 + n},
                          "tokens": {"input": 40, "output": 7, "cache": {"read": 4_000, "write": 200}}});
        file.execute("INSERT INTO message VALUES (?1, 's', ?2, ?3)", (n.to_string(), n, info.to_string()))
            .unwrap();
    }
    drop(file);
    assert_eq!(home.json(&[])["calls"], 5);
    // A store that is damaged stops nothing that nobody named.
    fs::write(&path, b"SQLite format 3\0damaged").unwrap();
    home.lines(".pi/agent/sessions/a.jsonl", &claude_session("s"));
    assert!(home.run(&[]).status.success());
}

/// A session of an expensive model, in which folds save dollars.
fn long_session(home: &Home) {
    let mut lines = vec![
        json!({"role": "user", "content": [{"type": "text", "text": "Read all."}], "ts": "2026-03-02T09:00:00Z"}),
    ];
    for n in 0..120_u64 {
        let ts = format!("2026-03-02T10:{:02}:{:02}Z", n / 2, n % 2 * 30);
        lines.push(json!({"role": "assistant", "model": "claude-opus-4-5", "ts": ts,
            "content": [{"type": "tool_call", "id": format!("c{n}"), "name": "Bash", "arguments": {"command": format!("ls {n}")}}],
            "usage": {"input": 3, "output": 9, "cache_read": 300 * n, "cache_write": 300}}));
        let text: String = (0..20).map(|line| format!("plain words {n} of no importance {line}\n")).collect();
        lines.push(json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": text}]}));
    }
    home.lines("own/long.jsonl", &lines);
}

/// `--model` brings its dollars, into the bill and into decisions: a fold by price saves at least a cent.
#[test]
fn a_model_that_is_named_decides_by_its_dollars() {
    let home = Home::new();
    long_session(&home);
    let costs = |more: &[&str]| {
        let report = home.json(&[&["own", "--no-cache"], more].concat());
        let usd = |of: &str| report["longhaul"][of]["usd"].as_f64().unwrap();
        let recorded = usd("recorded");
        assert!((recorded - report["usd"].as_f64().unwrap()).abs() < 1e-6, "{report}");
        (recorded, usd("sent"), report["longhaul"]["edits"].as_u64().unwrap())
    };
    let (recorded, sent, edits) = costs(&[]);
    assert!(edits > 0 && sent < recorded * 0.9, "{recorded} {sent} {edits}");
    // The whole session is worth cents at these prices.
    let (small, sent, edits) = costs(&["--model", "gpt-5-nano"]);
    assert!(small < 0.1 && edits == 0 && (sent / small - 1.0).abs() < 0.02, "{small} {sent} {edits}");
    // Its factors on the dollars of the model that answered are another thing.
    assert!(costs(&["--prices", "0.1,1"]).2 > 0);
}
