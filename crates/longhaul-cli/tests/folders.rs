//! Folders, bad files and names of conversations, as every command that reads sessions takes them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").env_remove("LONGHAUL_CONFIG");
    command.current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../longhaul-wire/tests/agents").join(name)
}

/// A folder with sessions of several formats under names that say nothing, and files that are none.
fn mixed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("deep/er")).unwrap();
    fs::copy(sample("claude-code.jsonl"), at("deep/er/notes.txt")).unwrap();
    fs::copy(sample("codex.jsonl"), at("deep/rollout")).unwrap();
    fs::copy(sample("openai-lines.jsonl"), at("chat.log")).unwrap();
    fs::copy(sample("messages.json"), at("array.json")).unwrap();
    fs::write(at("empty.jsonl"), "").unwrap();
    fs::write(at("deep/picture.png"), [0x89, b'P', b'N', b'G', 0, 0xff, 10, 0xfe]).unwrap();
    fs::write(at("deep/broken.jsonl"), "{\"role\":\n{{{{\n").unwrap();
    fs::write(at("deep/list.json"), "[{\"source\":\"x\"}]").unwrap();
    fs::write(at("deep/packed.gz"), [0x1f, 0x8b, 8, 0, 1, 2]).unwrap();
    folder
}

#[test]
fn folders_are_searched_by_content_and_what_has_no_messages_is_counted() {
    let folder = mixed();
    let output = run(folder.path(), &["replay", ".", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["transcript"].as_str().unwrap().to_owned())
        .collect();
    let expected =
        ["./array.json", "./chat.log", "./deep/er/notes.txt", "./deep/er/notes.txt#1", "./deep/rollout"];
    assert_eq!(names, expected);
    assert_eq!(text(&output.stderr), "5 files without messages skipped\n");
    let output = run(folder.path(), &["bench", ".", "--window", "8k", "--csv"]);
    assert!(output.status.success() && text(&output.stderr).contains("5 files"), "{}", text(&output.stderr));
    // The calls of OpenAI's lines are there.
    let output = run(folder.path(), &["convert", "chat.log", "-"]);
    assert_eq!(text(&output.stdout).matches("\"type\":\"tool_call\"").count(), 2);
}

#[test]
fn a_bad_file_stops_no_other() {
    let folder = mixed();
    let output = run(folder.path(), &["replay", "empty.jsonl", "deep/broken.jsonl", "chat.log", "--json"]);
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(2), 1));
    let said = text(&output.stderr);
    assert!(said.contains("error: empty.jsonl: has no messages\n"), "{said}");
    assert!(said.ends_with("error: deep/broken.jsonl: is no transcript of a known format\n"), "{said}");
    // A name that is not there is a typing error: it costs no work.
    let output = run(folder.path(), &["replay", "chat.log", "none", "--json"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let nothing = run(folder.path(), &["replay", "deep/list.json", "--json"]);
    assert_eq!(nothing.status.code(), Some(2));
    let imported = run(folder.path(), &["sessions", "import", ".", "--store", "s.db"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    assert_eq!(text(&imported.stdout).lines().count(), 5);
}

#[test]
fn report_says_which_file_that_was_named_is_none() {
    let folder = mixed();
    let output = run(folder.path(), &["report", "deep/picture.png", "chat.log", "--json", "--no-cache"]);
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(2), 1));
    assert_eq!(text(&output.stderr), "error: deep/picture.png: has no messages\n");
    let output = run(folder.path(), &["report", "empty.jsonl", "--no-cache"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    // Of a folder nobody named them: they are counted, but for one that is damaged, which is said.
    let output = run(folder.path(), &["report", ".", "--json", "--no-cache"]);
    let report: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!((output.status.code(), report["skipped_files"].as_u64()), (Some(0), Some(4)));
    assert!(text(&output.stderr).starts_with("./deep/packed.gz: "), "{}", text(&output.stderr));
    let one = run(folder.path(), &["report", "deep/er/notes.txt#1", "--json", "--no-cache"]);
    assert_eq!(serde_json::from_str::<Value>(&text(&one.stdout)).unwrap()["calls"], 1);
}

#[test]
fn nothing_is_printed_where_nothing_was_read_and_a_folder_is_said_once() {
    let folder = mixed();
    let output = run(folder.path(), &["replay", "deep/broken.jsonl"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let output = run(folder.path(), &["recall", ".", "ffffffffffff"]);
    assert_eq!(text(&output.stderr).matches("the newest session here").count(), 1);
}

#[test]
fn conversations_have_names() {
    let folder = mixed();
    let file = "deep/er/notes.txt#1";
    let output = run(folder.path(), &["replay", file, "--json"]);
    let line: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(line["transcript"], file);
    let whole = text(&run(folder.path(), &["convert", file, "-"]).stdout);
    assert!(!whole.is_empty());
    let explained = run(folder.path(), &["explain", file, "--call", "1", "--json"]);
    assert!(explained.status.success(), "{}", text(&explained.stderr));
    let compacted = run(folder.path(), &["compact", file, "--dry-run"]);
    assert!(compacted.status.success(), "{}", text(&compacted.stderr));
}

#[test]
fn commands_for_one_session_take_the_newest_of_a_folder() {
    let folder = mixed();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in ["array.json", "chat.log", "deep/er/notes.txt"] {
        fs::File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(old).unwrap();
    }
    let output = run(folder.path(), &["explain", ".", "--call", "1", "--json"]);
    assert_eq!(text(&output.stderr), "./deep/rollout: the newest session here\n");
    let empty = tempfile::tempdir().unwrap();
    let output = run(empty.path(), &["compact", ".", "--dry-run"]);
    assert_eq!(text(&output.stderr), "error: .: holds no session\n");
}

#[test]
fn a_folder_is_converted_into_a_folder() {
    let folder = mixed();
    let output = run(folder.path(), &["convert", "deep", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let at = |name: &str| folder.path().join("out").join(name);
    assert!(at("rollout").is_file() && at("er/notes.txt/0.jsonl").is_file() && !at("list.json").exists());
    assert_eq!(run(folder.path(), &["convert", "deep", "out"]).status.code(), Some(2));
}

#[test]
fn sizes_are_numbers_and_unknown_models_are_said() {
    let folder = mixed();
    let window = |given: &str| {
        let output = run(folder.path(), &["replay", "chat.log", "--json", "--window", given]);
        serde_json::from_str::<Value>(&text(&output.stdout)).ok().and_then(|line| line["window"].as_u64())
    };
    assert_eq!(
        [window("32k"), window("1M"), window("64_000")],
        [Some(32_000), Some(1_000_000), Some(64_000)]
    );
    assert_eq!([window("0.5k"), window("32kk"), window("")], [None, None, None]);
    let said = text(&run(folder.path(), &["replay", "chat.log", "--model", "claude-opus-4-5"]).stderr);
    assert_eq!(said, "");
    let said = text(&run(folder.path(), &["replay", "chat.log", "--model", "gtp-5.5"]).stderr);
    assert!(said.contains("\"gtp-5.5\" is not in the table; is \"gpt-5.5\" meant?"), "{said}");
}

/// `--force` replaces a file, and what an earlier conversion made; nothing else.
#[test]
fn a_folder_of_a_person_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("one.jsonl"), "{\"role\":\"user\",\"content\":\"hi\"}\n").unwrap();
    std::fs::create_dir_all(at("precious/deep")).unwrap();
    std::fs::write(at("precious/deep/file"), "kept").unwrap();
    let run = |args: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("longhaul").unwrap();
        let output =
            command.current_dir(folder.path()).env("HOME", folder.path()).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&["convert", "one.jsonl", "precious", "--force"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("precious: is a folder"), "{said}");
    assert_eq!(std::fs::read_to_string(at("precious/deep/file")).unwrap(), "kept");
    // What a conversion made is replaced by the next one.
    std::fs::create_dir(at("made")).unwrap();
    std::fs::write(at("made/0.jsonl"), "").unwrap();
    std::fs::write(at("made/1.jsonl"), "").unwrap();
    assert_eq!(run(&["convert", "one.jsonl", "made", "--force"]).0, Some(0));
    assert!(at("made").is_file());
    // But not if it holds the transcript.
    std::fs::create_dir(at("own")).unwrap();
    std::fs::copy(at("one.jsonl"), at("own/0.jsonl")).unwrap();
    assert_eq!(run(&["convert", "own/0.jsonl", "own", "--force"]).0, Some(2));
    assert!(at("own/0.jsonl").is_file());
}
