//! `longhaul sessions import` stores a session once, however many import it and however many of them are killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

const WRITERS: usize = 8;
const FILES: usize = 3;

/// A session that is compacted several times, and stored in several parts.
fn transcript(word: &str) -> String {
    let mut lines = vec![json!({"role": "user", "content": format!("Read all about {word}.")}).to_string()];
    for n in 0..120 {
        let text: String = (0..30).map(|line| format!("fn {word}_{n}_{line}() {{}}\n")).collect();
        let call = json!({"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("src/{word}_{n}.rs")}});
        lines.push(json!({"role": "assistant", "content": [call], "model": "gpt-4o"}).to_string());
        lines.push(json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": text}]}).to_string());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn longhaul(folder: &Path, store: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("longhaul"));
    command.env_clear().env("HOME", folder).env("LONGHAUL_STORE", folder.join(store));
    command.current_dir(folder).arg("sessions").args(arguments);
    command
}

fn import(folder: &Path, store: &str) -> Command {
    let mut command = longhaul(folder, store, &["import", "recorded", "--window", "8000", "--json"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn printed(command: &mut Command) -> String {
    let output = command.stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The journals of all sessions of a store.
fn journals(folder: &Path, store: &str) -> Vec<String> {
    let listed = printed(&mut longhaul(folder, store, &["list", "--limit", "100", "--json"]));
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let journal = |id: String| printed(&mut longhaul(folder, store, &["export", &id, "--journal"]));
    let mut all: Vec<String> = listed.lines().map(|line| journal(id(line))).collect();
    all.sort();
    all
}

#[test]
fn eight_writers_that_are_killed_store_each_session_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("recorded")).unwrap();
    for n in 0..FILES {
        fs::write(folder.join(format!("recorded/{n}.jsonl")), transcript(&format!("word{n}"))).unwrap();
    }
    printed(&mut import(folder, "alone.db"));
    let expected = journals(folder, "alone.db");
    assert_eq!(expected.len(), FILES);

    let (mut seed, mut killed) = (1_u64, 0);
    for _ in 0..3 {
        let mut writers: Vec<Child> =
            (0..WRITERS).map(|_| import(folder, "shared.db").spawn().unwrap()).collect();
        // Half of them are killed in the middle of their work, at whatever moment.
        for writer in writers.iter_mut().step_by(2) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis(seed >> 57));
            writer.kill().unwrap();
            killed += usize::from(writer.wait().unwrap().code().is_none());
        }
        for writer in writers.into_iter().skip(1).step_by(2) {
            let output = writer.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    assert!(killed > 0, "nobody was killed");
    assert!(journals(folder, "shared.db") == expected, "another number of sessions, or other journals");
    let lines = printed(&mut import(folder, "shared.db"));
    let ids: BTreeSet<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .inspect(|line| assert_eq!(line["new"], false))
        .map(|line| line["session"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), FILES);
}
