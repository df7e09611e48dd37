//! Names that come from files reach no terminal as they are: a model, a tool, a project or a file may be called anything, such
//! as a command to the terminal (OSC 52 writes to its clipboard) or a text that looks like another one.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Home, text};
use serde_json::{Value, json};

/// OSC 52, a C1 control, an order mark, characters that are not seen, the end of a line.
const EVIL: &str = "\u{1b}]52;c;UFdO\u{7}\u{9b}2J\u{202e}\u{200b}\u{200d}\u{2066}\u{feff}\u{e0041}\r\u{7f}";

fn evil(name: &str) -> String {
    format!("{name}{EVIL}x")
}

/// The characters of a text that a terminal obeys or does not show, but for the end of a line.
fn obeyed(text: &str) -> Vec<char> {
    let is_hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    text.chars().filter(|c| *c != '\n' && (c.is_control() || is_hidden(*c))).collect()
}

fn write(home: &Home, name: &str, lines: &[Value]) -> PathBuf {
    let path = home.at(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

/// A session in each format that `report` reads, with such names wherever a name may stand.
fn everything() -> Home {
    let home = Home::new();
    let (session, model, tool, folder, file) =
        (evil("session"), evil("claude-opus-4-5"), evil("Read"), evil("/srv/api"), evil("/srv/api/a.rs"));
    let result = "fn parse() {}\n".repeat(3_000);
    let usage = json!({"input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": 20_000});
    let mut claude = vec![json!({"type": "ai-title", "sessionId": session, "title": evil("title")})];
    let mut ours = vec![json!({"role": "user", "content": evil("Read all.")})];
    for n in 0..3 {
        let (at, id) = (format!("2026-03-02T10:0{n}:00.000Z"), evil(&format!("call{n}")));
        let common = json!({"sessionId": session, "cwd": folder, "timestamp": at, "version": evil("2"), "gitBranch": evil("main")});
        let with = |mut line: Value| {
            line.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
            line
        };
        let call = json!({"type": "tool_use", "id": id, "name": tool, "input": {"file_path": file}});
        claude.push(with(json!({"type": "assistant", "uuid": evil(&format!("u{n}")), "requestId": evil(&format!("r{n}")),
            "message": {"id": evil(&format!("m{n}")), "role": "assistant", "model": model, "content": [call], "usage": usage}})));
        let result_block = json!([{"type": "tool_result", "tool_use_id": id, "content": result}]);
        claude.push(with(json!({"type": "user", "uuid": evil(&format!("v{n}")), "message": {"role": "user", "content": result_block}})));
        let call = json!({"type": "tool_call", "id": id, "name": tool, "arguments": {"path": file}});
        ours.push(json!({"role": "assistant", "content": [call], "model": model, "usage": {"input": 9, "output": 5}}));
        ours.push(json!({"role": "tool", "content": [{"type": "tool_result", "id": id, "name": tool, "text": result}]}));
    }
    ours.push(json!({"role": "assistant", "content": evil("Done."), "model": model, "usage": {"input": 99, "output": 5}}));
    write(&home, &format!("home/.claude/projects/{}/one.jsonl", evil("-srv-api")), &claude);
    write(&home, &format!("home/{}.jsonl", evil("ours")), &ours);

    let at = "2026-03-03T09:00:00Z";
    let tokens = json!({"input_tokens": 9_000, "cached_input_tokens": 2_000, "output_tokens": 100, "total_tokens": 9_100});
    let codex = [
        json!({"timestamp": at, "type": "session_meta", "payload": {"id": evil("codex"), "cwd": folder, "originator": evil("codex")}}),
        json!({"timestamp": at, "type": "turn_context", "payload": {"model": evil("gpt-5.5"), "cwd": folder}}),
        json!({"timestamp": at, "type": "response_item", "payload": {"type": "function_call", "name": evil("shell"), "call_id": evil("c"),
            "arguments": json!({"command": [evil("cat a")]}).to_string()}}),
        json!({"timestamp": at, "type": "response_item", "payload": {"type": "function_call_output", "call_id": evil("c"), "output": result}}),
        json!({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": tokens, "last_token_usage": tokens}}}),
    ];
    write(&home, "home/.codex/sessions/2026/03/03/rollout-one.jsonl", &codex);

    let said = json!([{"type": "toolCall", "id": evil("c"), "name": tool, "arguments": {"path": file}}]);
    let pi = [
        json!({"type": "session", "id": evil("pi"), "cwd": folder, "timestamp": at}),
        json!({"type": "message", "id": evil("m"), "timestamp": at, "message": {"role": "assistant", "model": evil("nobody-knows-it"),
            "provider": evil("mine"), "content": said, "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0}}}),
        json!({"type": "message", "id": evil("n"), "timestamp": at, "message": {"role": "toolResult", "toolCallId": evil("c"), "toolName": tool,
            "content": [{"type": "text", "text": result}]}}),
        json!({"type": "message", "id": evil("o"), "timestamp": at, "message": {"role": "assistant", "model": evil("nobody-knows-it"),
            "content": [{"type": "text", "text": evil("yes")}], "usage": {"input": 9_000, "output": 5, "cacheRead": 0, "cacheWrite": 0}}}),
    ];
    write(&home, "home/.pi/agent/sessions/--srv-pi--/a.jsonl", &pi);
    opencode(&home);
    home
}

fn opencode(home: &Home) {
    let path = home.at("home/.local/share/opencode/opencode.db");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch(
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);",
    )
    .unwrap();
    let (session, message) = (evil("ses_1"), evil("msg_1"));
    file.execute(
        "INSERT INTO session VALUES (?1, 'p', NULL, ?2, ?3)",
        [&session, &evil("/srv/open"), &evil("t")],
    )
    .unwrap();
    let data = json!({"role": "assistant", "modelID": evil("claude-sonnet-4-5"), "providerID": evil("mine"), "time": {"created": 1_772_800_000_000_u64},
        "tokens": {"input": 40, "output": 7, "reasoning": 3, "cache": {"read": 4_000, "write": 200}}, "cost": 0.5});
    file.execute("INSERT INTO message VALUES (?1, ?2, 1, ?3)", [&message, &session, &data.to_string()])
        .unwrap();
    let part = json!({"type": "tool", "tool": evil("read"), "callID": evil("c"),
        "state": {"input": {"filePath": evil("a")}, "output": "b".repeat(9_000)}});
    file.execute(
        "INSERT INTO part VALUES (?1, ?2, ?3, ?4)",
        [&evil("prt"), &message, &session, &part.to_string()],
    )
    .unwrap();
}

/// What a command prints, on both streams. It may fail.
fn printed(home: &Home, args: &[&str]) -> String {
    let output = home.longhaul(args).env("TZ", "UTC").output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 3), "{args:?}");
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn report_prints_names_of_every_format_without_what_a_terminal_obeys() {
    let home = everything();
    let ours = home.text_at(&format!("home/{}.jsonl", evil("ours")));
    let places = ["home/.claude", "home/.codex", "home/.pi", "home/.local/share/opencode/opencode.db", &ours];
    for place in places {
        let (mut shown, mut wrong) = (String::new(), Vec::new());
        for args in [
            &["report", place][..],
            &["report", "daily", place],
            &["report", "session", place],
            &["report", place, "--csv"],
            &["report", "session", place, "--csv"],
            &["report", place, "--json"],
            &["report", "session", place, "--json"],
        ] {
            let said = printed(&home, args);
            wrong.extend((!obeyed(&said).is_empty()).then(|| format!("{args:?} {said:?}")));
            shown += &said;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // The names are there.
        assert!(shown.contains("]52;c;UFdO") && shown.contains("\\u202e\\u200b\\u200d"), "{place}: {shown}");
        printed(&home, &["report", place, "--html", "page.html"]);
        let page = fs::read_to_string(home.at("page.html")).unwrap();
        assert_eq!(obeyed(&page), [] as [char; 0], "{place}");
        fs::remove_file(home.at("page.html")).unwrap();
    }
}

#[test]
fn other_commands_print_them_so_too() {
    let home = everything();
    let ours = home.text_at(&format!("home/{}.jsonl", evil("ours")));
    let gone = home.text_at(&evil("gone"));
    printed(&home, &["sessions", "import", &ours]);
    let out = home.text_at(&evil("out"));
    let mut wrong = Vec::new();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "show", "last"],
        &["sessions", "show", "last", "--json"],
        &["sessions", "search", "Read"],
        &["sessions", "search", "Read", "--json"],
        &["sessions", "pin", "last", EVIL],
        &["sessions", "export", "last", "-o", &out],
        &["sessions", "show", &gone],
        &["sessions", "list", "--store", &gone],
        &["replay", &ours],
        &["replay", &ours, "--json"],
        &["replay", &gone],
        &["explain", &ours, "--call", "2"],
        &["explain", &ours, "--call", "2", "--json"],
        &["compact", &ours, "--dry-run"],
        &["convert", &ours, &out, "--force"],
        &["bench", "home", "--window", "20000"],
        &["report", &gone],
        &["recall", &gone, "3f9a51c02b77"],
        &["config", "models", &evil("claude")],
        &["env", &evil("agent")],
        &["wrap", &evil("agent")],
        &["wrap", "--program", &gone, "claude"],
    ] {
        let said = printed(&home, args);
        wrong.extend((!obeyed(&said).is_empty()).then(|| format!("{args:?} {said:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
