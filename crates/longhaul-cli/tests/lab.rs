//! `longhaul explain`, `compact` and `convert` as a user runs them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn longhaul(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    // No settings but those that are built in.
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").env_remove("LONGHAUL_CONFIG");
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")).args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(longhaul(args).assert().success().get_output().stdout.clone()).unwrap()
}

fn error(args: &[&str]) -> String {
    let output = longhaul(args).assert().failure().code(2).get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

/// A session of forty reads, in a file.
fn long_session(folder: &Path, steps: usize) -> String {
    let mut lines = vec![r#"{"role":"user","content":"Read it all."}"#.to_owned()];
    for n in 0..steps {
        let call = serde_json::json!({"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("f{n}.rs")}});
        let answer = serde_json::json!({"type": "tool_result", "id": format!("c{n}"), "text": format!("fn name_{n}() {{}}\n").repeat(60)});
        lines.push(serde_json::json!({"role": "assistant", "content": [call]}).to_string());
        lines.push(serde_json::json!({"role": "tool", "content": [answer]}).to_string());
    }
    let path = folder.join("long.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_request_has_one_size() {
    // A provider that counts a third more than we would, and has a system prompt that the file does not hold.
    let (mut lines, mut prompt) = (vec![r#"{"role":"user","content":"Read it all."}"#.to_owned()], 9_000);
    for n in 0..30 {
        let call = serde_json::json!({"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("f{n}.rs")}});
        let text = format!("fn name_{n}() {{}}\n").repeat(60);
        let usage = serde_json::json!({"input": 10, "cache_read": prompt - 10, "output": 40});
        lines.push(serde_json::json!({"role": "assistant", "model": "claude-sonnet-4-5", "content": [call], "usage": usage}).to_string());
        lines.push(serde_json::json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": text}]}).to_string());
        prompt += 900;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, views) = (folder.path().join("billed.jsonl"), folder.path().join("views.jsonl"));
    fs::write(&file, lines.join("\n")).unwrap();
    let (file, out) = (file.to_str().unwrap(), views.to_str().unwrap());
    for (window, compacts) in [("200k", false), ("20k", true)] {
        _ = fs::remove_file(&views);
        let replayed = stdout(&["replay", file, "--window", window, "--json", "--views", out]);
        let replayed: Value = serde_json::from_str(&replayed).unwrap();
        assert_eq!(replayed["edits"] != 0, compacts, "{replayed}");
        // Who changes nothing sends the whole log, and pays for it.
        for name in ["tokens", "peak", "cost"] {
            let [full, sent] = ["full", "sent"].map(|which| &replayed[format!("{name}_{which}")]);
            assert!(compacts || full == sent, "{name}: {replayed}");
        }
        let written = fs::read_to_string(&views).unwrap();
        let mut sum = 0;
        for (n, line) in written.lines().enumerate() {
            let view: Value = serde_json::from_str(line).unwrap();
            sum += view["tokens"].as_u64().unwrap();
            if n % 7 == 0 {
                let call = (n + 1).to_string();
                let said = stdout(&["explain", file, "--window", window, "--call", &call, "--json"]);
                let said: Value = serde_json::from_str(&said).unwrap();
                let sizes = |value: &Value| (value["tokens"].clone(), value["full_tokens"].clone());
                assert_eq!(sizes(&said), sizes(&view), "call {call} in {window}");
            }
        }
        assert_eq!(replayed["tokens_sent"], sum);
    }
}

#[test]
fn explain_names_each_part_and_its_edit() {
    insta::assert_snapshot!(stdout(&["explain", "small.jsonl", "--call", "4"]));
    let folder = tempfile::tempdir().unwrap();
    let file = long_session(folder.path(), 40);
    let args = ["explain", &file, "--call", "40", "--window", "6000", "--meter", "neutral"];
    let text = stdout(&args);
    assert!(text.contains("└ fold ") && text.contains("  recall "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json: Value = serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    let parts = json["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
    assert_eq!(sum, json["tokens"].as_u64().unwrap());
    assert!(
        parts
            .iter()
            .any(|part| part["edits"][0]["handles"][0].as_str().is_some_and(|handle| handle.len() == 12))
    );
    // What each batch was expected to cost came out so.
    let batches = json["batches"].as_array().unwrap();
    assert!(batches.len() > 1 && text.contains("came out"), "{text}");
    assert!(batches.iter().all(|batch| batch["rewrites"] == batch["rewritten"]), "{batches:?}");
    assert_eq!(
        batches[0]["saved"].as_u64().unwrap(),
        batches[0]["saves"].as_u64().unwrap() * (41 - batches[0]["call"].as_u64().unwrap())
    );
    // In a large window carrying what a fold would take made one: with the figures that decided, and what came of them.
    let longer = tempfile::tempdir().unwrap();
    let long = long_session(longer.path(), 120);
    let args = ["explain", &long, "--call", "last", "--window", "100000", "--meter", "neutral"];
    let paid: Value = serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    let batch = &paid["batches"][0];
    let figure = |name: &str| batch[name].as_u64().unwrap_or_else(|| panic!("{name} of {batch}"));
    assert_eq!(batch["why"], "pays back");
    // Ten times the price of reading, and patience: 4.5 x 1.15 of what is billed again.
    assert!(figure("carried") * 10 > figure("rewrites") * 115 * 45 / 10, "{batch}");
    // The same line sixty times is one line in the summary: more is gone, and less written again, than was expected.
    assert!(figure("saves") > figure("takes") && figure("rewritten") < figure("rewrites"), "{batch}");
    assert!(figure("rewritten") > 0, "{batch}");
    let args = ["explain", &file, "--call", "40", "--window", "6000", "--meter", "neutral"];
    let diff = stdout(&[&args[..], &["--diff"]].concat());
    assert!(diff.contains("-    2 tool") && diff.lines().any(|line| line.starts_with('+')), "{diff}");
    // Every message of the log is there once, gone or not.
    let shown = diff.lines().filter(|line| !line.starts_with('+') && !line.contains('⟦')).count();
    assert_eq!(shown as u64, json["upto"].as_u64().unwrap());
}

#[test]
fn explain_finds_the_calls_where_something_happened() {
    assert!(
        stdout(&["explain", "small.jsonl"])
            .starts_with("Nothing was compacted in 4 calls, in a window of 200,000.")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = long_session(folder.path(), 40);
    let text = stdout(&["explain", &file, "--window", "6k"]);
    assert!(text.starts_with("Something happened before ") && text.contains(" fold: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json: Value = serde_json::from_str(&stdout(&["explain", &file, "--window", "6k", "--json"])).unwrap();
    let first = json["happened"][0]["call"].as_u64().unwrap();
    assert!(text.lines().any(|line| line.trim_start().starts_with(&format!("{first} "))), "{text}");
    assert!(
        json["happened"]
            .as_array()
            .unwrap()
            .iter()
            .all(|call| call["tokens"].as_u64() < call["full_tokens"].as_u64())
    );
    let args = |call: &'static str| ["explain", &file, "--window", "6k", "--call", call].map(str::to_owned);
    let at = |call| stdout(&args(call).each_ref().map(String::as_str));
    assert_eq!(at("last"), at("40"));
    let text = stdout(&[&args("last").each_ref().map(String::as_str)[..], &["--text"]].concat());
    assert!(text.starts_with("fold ") && text.lines().count() > 10, "{text}");
    for bad in ["0", "first", "-1"] {
        error(&["explain", "small.jsonl", "--call", bad]);
    }
}

#[test]
fn what_a_mark_names_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = long_session(folder.path(), 40);
    let window = ["--window", "6k"];
    let json: Value = serde_json::from_str(&stdout(
        &[&["explain", &file, "--call", "last", "--json"], &window[..]].concat(),
    ))
    .unwrap();
    let edits = json["parts"].as_array().unwrap().iter().flat_map(|part| part["edits"].as_array().unwrap());
    let handle = edits.flat_map(|edit| edit["handles"].as_array().unwrap()).next().unwrap().as_str().unwrap();
    let recall = |more: &[&str]| stdout(&[&["recall", &file, handle], &window[..], more].concat());
    let whole = recall(&[]);
    assert!(whole.contains("name_"), "{whole}");
    assert_eq!(recall(&["--lines", "2-3"]).lines().count(), 2);
    assert!(recall(&["--grep", "name_"]).lines().count() > 1);
    let none = error(&["recall", &file, "ffffffffffff"]);
    assert!(none.lines().count() == 1 && none.contains("--window"), "{none}");
}

#[test]
fn a_profile_may_be_named_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = long_session(folder.path(), 40);
    let explain = ["explain", &file, "--call", "40", "--window", "6000", "--profile"];
    let explained = |name: &str| stdout(&[&explain[..], &[name]].concat());
    assert_eq!(explained("longhaul"), stdout(&explain[..6]));
    assert_ne!(explained("mini"), explained("longhaul"));
    assert_ne!(explained("archive"), explained("mini"));
    let dry = ["compact", &file, "--dry-run", "--window", "20000", "--profile"];
    assert_ne!(stdout(&[&dry[..], &["transform"]].concat()), stdout(&dry[..5]));
    let wrong = error(&[&dry[..], &["archve"]].concat());
    assert!(wrong.contains("archve") && wrong.contains("archive") && wrong.lines().count() <= 2, "{wrong}");
}

#[test]
fn compact_says_its_price_and_writes_a_smaller_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let file = long_session(folder.path(), 40);
    let dry = stdout(&["compact", &file, "--dry-run", "--window", "20000"]);
    assert!(dry.contains(" by 1 edit:") && dry.contains("paid back after "), "{dry}");
    let out = folder.path().join("small.jsonl");
    stdout(&["compact", &file, "-o", out.to_str().unwrap(), "--window", "20000"]);
    let (before, after) = (fs::metadata(&file).unwrap().len(), fs::metadata(&out).unwrap().len());
    assert!(after * 3 < before * 2, "{before} {after}");
    // It is a transcript like any other.
    stdout(&["replay", out.to_str().unwrap()]);
    assert!(error(&["compact", &file, "-o", &file]).ends_with("is the transcript itself\n"));
    // Nobody is there to ask: what is there stays.
    let again = ["compact", &file, "-o", out.to_str().unwrap(), "--window", "20000"];
    assert!(error(&again).ends_with("is there already (--force replaces it)\n"));
    assert_eq!(fs::metadata(&out).unwrap().len(), after);
    stdout(&[&again[..], &["--force"]].concat());
}

#[test]
fn convert_reads_other_agents_and_loses_nothing_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../longhaul-wire/tests/agents");
    let sample = |name: &str| samples.join(name).to_str().unwrap().to_owned();
    let out = folder.path().join("pi.jsonl.gz");
    let out = out.to_str().unwrap();
    longhaul(&["convert", &sample("pi.jsonl"), out]).assert().success();
    assert_eq!(stdout(&["convert", out, "-"]).lines().count(), 6);
    assert!(error(&["convert", &sample("pi.jsonl"), out]).contains("is there already (--force replaces it)"));
    longhaul(&["convert", &sample("pi.jsonl"), out, "--force"]).assert().success();
    // Several conversations go to a folder.
    let many = folder.path().join("many");
    longhaul(&["convert", &sample("openhands.jsonl"), many.to_str().unwrap()]).assert().success();
    assert!(many.join("0.jsonl").exists() && many.join("1.jsonl").exists());
    assert!(error(&["convert", &sample("openhands.jsonl"), "-"]).contains("several conversations"));
    // Nothing is left of what failed.
    assert!(
        error(&["convert", "../replay.rs", folder.path().join("x").to_str().unwrap()])
            .contains("no transcript of a known format")
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn any_transcript_becomes_a_request_of_any_api() {
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.jsonl");
    for (api, list) in [("openai", "messages"), ("openai-responses", "input"), ("anthropic", "messages")] {
        let body: serde_json::Value =
            serde_json::from_str(&stdout(&["convert", small, "-", "--to", api])).unwrap();
        assert_eq!(body["model"], "gpt-4o", "{api}");
        assert!(body[list].as_array().unwrap().len() > 2, "{api}");
        // And back: the same calls.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("request.json");
        std::fs::write(&path, body.to_string()).unwrap();
        let lines = stdout(&["convert", path.to_str().unwrap(), "-"]);
        let calls = |lines: &str| lines.matches(r#""type":"tool_call""#).count();
        assert_eq!(calls(&lines), calls(&std::fs::read_to_string(small).unwrap()), "{api}");
    }
}

#[test]
fn side_chains_are_sessions_of_their_own() {
    let sample =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../longhaul-wire/tests/agents/claude-code.jsonl");
    let lines = stdout(&["replay", sample.to_str().unwrap(), "--json"]);
    let names: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["transcript"].clone())
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names[1].as_str().unwrap().ends_with("claude-code.jsonl#1"));
}

#[test]
fn what_is_not_there_is_said() {
    assert_eq!(
        error(&["explain", "small.jsonl", "--call", "9"]),
        "error: small.jsonl: has 4 calls; --call 9 is past the last\n"
    );
    assert!(error(&["explain", "none.jsonl", "--call", "1"]).contains("none.jsonl: no such file"));
    assert_eq!(longhaul(&["compact", "small.jsonl"]).assert().failure().get_output().status.code(), Some(2));
}

#[test]
fn completions_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&["completions", shell]).contains("explain"), "{shell}");
    }
}
