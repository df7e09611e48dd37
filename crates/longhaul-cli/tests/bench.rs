//! `longhaul bench` as a user runs it.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use assert_cmd::Command;
use longhaul::Models;
use serde_json::Value;

fn bench(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    // No settings but those that are built in.
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").env_remove("LONGHAUL_CONFIG");
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")).arg("bench").args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(bench(args).assert().success().get_output().stdout.clone()).unwrap()
}

/// A session with needs of all kinds: a file is read, forgotten for ten steps, and edited.
fn session(folder: &Path) {
    let mut lines = vec![r#"{"role":"user","content":"Fix the parser."}"#.to_owned()];
    let mut step = |n: usize, name: &str, arguments: Value, result: &str| {
        let call = serde_json::json!({"type": "tool_call", "id": format!("c{n}"), "name": name, "arguments": arguments});
        let answer = serde_json::json!({"type": "tool_result", "id": format!("c{n}"), "text": result});
        lines.push(serde_json::json!({"role": "assistant", "content": [call]}).to_string());
        lines.push(serde_json::json!({"role": "tool", "content": [answer]}).to_string());
    };
    let file =
        "     1→pub fn parse_header(line: &str) -> Header {\n     2→    let limit = max_header_bytes();\n";
    step(0, "Read", serde_json::json!({"path": "src/parse.rs"}), &file.repeat(20));
    for n in 1..12 {
        step(
            n,
            "Bash",
            serde_json::json!({"command": format!("ls {n}")}),
            &"plain words of no importance\n".repeat(40),
        );
    }
    let edit = serde_json::json!({"path": "src/parse.rs", "old_string": "    let limit = max_header_bytes();", "new_string": "brand_new_name"});
    step(12, "Edit", edit, "ok");
    std::fs::write(folder.join("agent__one.jsonl"), lines.join("\n")).unwrap();
}

fn rows(args: &[&str]) -> Vec<Value> {
    stdout(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn needs_are_found_where_they_are_and_missed_where_they_are_not() {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path());
    let rows = rows(&[folder.path().to_str().unwrap(), "--window", "3000", "--json"]);
    let row =
        |policy: &str| rows.iter().find(|row| row["policy"] == policy && row["agent"] == "all").unwrap();
    let full = row("full, no limit");
    assert_eq!(
        (full["cost"].as_f64(), full["in_line"].as_f64(), full["retention"].as_f64()),
        (Some(1.0), Some(1.0), Some(1.0))
    );
    // The path is in the call; name and line were in the result alone.
    assert!(row("(floor: no results)")["retention"].as_f64().unwrap() < 0.6);
    assert_eq!(row("(oracle)")["in_line"].as_f64(), Some(1.0));
    assert!(row("(oracle)")["cost"].as_f64() < full["cost"].as_f64());
    let ours = row("longhaul");
    assert_eq!(
        (ours["violations"].as_u64(), ours["errors"].as_u64(), ours["reachable"].as_f64()),
        (Some(0), Some(0), Some(1.0))
    );
    assert!(ours["peak"].as_u64().unwrap() <= 2550);
    // The same rows for the format alone.
    assert_eq!(rows.len(), 2 * 20);
    assert_eq!(rows[0]["agent"], "longhaul");
}

#[test]
fn policies_decide_and_are_billed_at_the_prices_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path());
    let folder = folder.path().to_str().unwrap();
    let cost = |policy: &str, more: &[&str]| {
        let rows = rows(&[&[folder, "--window", "3000", "--json"], more].concat());
        rows.iter().find(|row| row["policy"] == policy && row["agent"] == "all").unwrap()["cost"]
            .as_f64()
            .unwrap()
    };
    let at = |prices: &str| cost("longhaul", &["--prices", prices]);
    assert_eq!(at("0.1,1.25"), cost("longhaul", &[]));
    assert!(at("0.025,1.25") != at("0.1,1.25") && at("1,1") != at("0.1,1.25"));
    // Where nothing is cheaper from the cache, the bill is what was sent.
    let mask = |prices: &str| cost("mask all but 10", &["--prices", prices]);
    assert!(mask("1,1") < mask("0.1,1.25"));
    assert_eq!(cost("longhaul", &["--model", "claude-opus-5-5"]), at("0.05,1.25"));
    assert_eq!(cost("full, no limit", &["--prices", "0.05,1.25"]), 1.0);
    for wrong in ["0.05", "2,1", "cheap"] {
        let output = bench(&[folder, "--prices", wrong]).assert().code(2);
        let error = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert!(error.contains("as in 0.05,1.25"), "{error}");
    }
}

/// A fold by price saves at least a cent. Of a model that costs next to nothing none does, at whatever factors.
#[test]
fn a_model_that_is_named_brings_its_dollars() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = vec![r#"{"role":"user","content":"Fix the parser."}"#.to_owned()];
    for n in 0..120 {
        let arguments = serde_json::json!({"command": format!("ls {n}")});
        let call = serde_json::json!({"type": "tool_call", "id": format!("c{n}"), "name": "Bash", "arguments": arguments});
        let text: String = (0..60).map(|line| format!("plain words {n} of no importance {line}\n")).collect();
        let answer = serde_json::json!({"type": "tool_result", "id": format!("c{n}"), "text": text});
        lines.push(serde_json::json!({"role": "assistant", "content": [call]}).to_string());
        lines.push(serde_json::json!({"role": "tool", "content": [answer]}).to_string());
    }
    std::fs::write(folder.path().join("agent__long.jsonl"), lines.join("\n")).unwrap();
    let cost = |more: &[&str]| {
        let folder = folder.path().to_str().unwrap();
        let rows = rows(&[&[folder, "--window", "200000", "--json"], more].concat());
        let ours = rows.iter().find(|row| row["policy"] == "longhaul" && row["agent"] == "all").unwrap();
        ours["cost"].as_f64().unwrap()
    };
    let model = Models::builtin().find("gpt-5-nano").clone();
    let price = model.price.unwrap();
    let factor = |tokens: u64| tokens as f64 / price.input as f64;
    let factors = format!("{},{}", factor(price.cache_read), factor(price.cache_write));
    assert_eq!(cost(&["--model", "gpt-5-nano"]), 1.0);
    assert!(cost(&["--prices", &factors]) < 0.95, "{factors}");
}

#[test]
fn the_table_is_the_same_each_time_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path());
    let without_times = |text: String| {
        text.lines().map(|line| line.chars().take(75).collect::<String>()).collect::<Vec<_>>().join("\n")
    };
    let args = [folder.path().to_str().unwrap(), "--window", "3000"];
    let table = stdout(&args);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(without_times(table.clone()), without_times(stdout(&args)));
    insta::assert_snapshot!(without_times(table));
}

#[test]
fn values_for_a_spreadsheet() {
    let text = stdout(&["data/small.jsonl", "--csv"]);
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    // A policy's name may hold a comma, in quotes.
    assert!(text.lines().next().unwrap().starts_with("agent,policy,window,calls,errors,cost,"));
    assert!(columns[1..].iter().all(|count| *count == columns[0] || *count == columns[0] + 1), "{text}");
}

#[test]
fn bad_input_is_one_line_and_exit_2() {
    let empty = tempfile::tempdir().unwrap();
    for args in [[empty.path().to_str().unwrap()], ["nowhere"]] {
        let output = bench(&args).assert().failure().code(2).get_output().clone();
        assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    }
}
