//! Files with conversations in them are their user's alone, whoever makes them, under the usual umask.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use common::{Home, longhaul, text};
use serde_json::json;

fn transcript() -> String {
    let call = json!({"type": "tool_call", "id": "c", "name": "Read", "arguments": {"path": "a"}});
    let lines = [
        json!({"role": "user", "content": "Read a."}),
        json!({"role": "assistant", "model": "claude-sonnet-4-5", "content": [call]}),
        json!({"role": "tool", "content": [{"type": "tool_result", "id": "c", "text": "one\n".repeat(200)}]}),
        json!({"role": "assistant", "model": "claude-sonnet-4-5", "content": "Done."}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Runs a command of a shell with the usual umask; `longhaul` is the program.
fn sh(home: &Home, script: &str) -> Output {
    let script = format!("umask 022; longhaul() {{ {} \"$@\"; }}; {script}", longhaul().display());
    let output = home.run("sh", &["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", text(&output.stderr));
    output
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

#[test]
fn what_commands_write_is_the_users_alone() {
    let home = Home::new();
    fs::write(home.at("one.jsonl"), transcript()).unwrap();
    for (script, made) in [
        ("longhaul sessions import one.jsonl --store deep/er/own.db", "deep/er/own.db"),
        ("longhaul sessions import one.jsonl", "sessions.db"),
        ("longhaul sessions export last -o export.jsonl", "export.jsonl"),
        ("longhaul sessions export last --journal -o journal.jsonl", "journal.jsonl"),
        ("longhaul convert one.jsonl converted.jsonl", "converted.jsonl"),
        ("longhaul convert one.jsonl converted.jsonl.gz", "converted.jsonl.gz"),
        ("longhaul convert one.jsonl body.json --to anthropic", "body.json"),
        ("longhaul compact one.jsonl -o compacted.jsonl", "compacted.jsonl"),
        ("longhaul replay one.jsonl --views views.jsonl", "views.jsonl"),
        ("longhaul report one.jsonl --html report.html", "report.html"),
        ("longhaul inspect one.jsonl --export pages", "pages/index.html"),
    ] {
        sh(&home, script);
        assert_eq!(mode(&home.at(made)), 0o600, "{made}");
    }
    for folder in ["deep", "deep/er", "pages", "pages/page"] {
        assert_eq!(mode(&home.at(folder)), 0o700, "{folder}");
    }
    // What else the export made, and the cache of `report`.
    for (path, _) in home.files() {
        let is_ours =
            path.starts_with(home.at("pages")) || path.to_string_lossy().contains(".cache/longhaul");
        assert!(!is_ours || mode(&path) == 0o600, "{}", path.display());
    }
    // A file that is there keeps the mode that its user gave it.
    fs::set_permissions(home.at("export.jsonl"), fs::Permissions::from_mode(0o640)).unwrap();
    sh(&home, "longhaul compact one.jsonl -o export.jsonl --force");
    assert_eq!(mode(&home.at("export.jsonl")), 0o640);
}

#[test]
fn the_store_and_the_log_of_a_gateway_are_the_users_alone() {
    let home = Home::new();
    let said = sh(
        &home,
        "longhaul wrap --store own/sessions.db --log gateway.log sh -- -c 'stat -c \"%a %n\" own own/* gateway.log'",
    );
    let said = text(&said.stdout);
    for made in [
        "700 own",
        "600 own/sessions.db",
        "600 own/sessions.db-wal",
        "600 own/sessions.db-shm",
        "600 gateway.log",
    ] {
        assert!(said.lines().any(|line| line == made), "{made}: {said}");
    }
    // One that is damaged is moved aside.
    fs::write(home.at("own/sessions.db"), b"SQLite format 3\0 and then nothing").unwrap();
    sh(&home, "longhaul wrap --store own/sessions.db true");
    let others = fs::read_dir(home.at("own")).unwrap().map(|entry| entry.unwrap().path());
    let open: Vec<_> = others.filter(|path| mode(path) != 0o600).collect();
    assert_eq!(open, [] as [&Path; 0]);
}
