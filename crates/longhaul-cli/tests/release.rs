//! `longhaul release` as a user runs it: a session that was folded, and the agent's own file of it.

#![allow(clippy::unwrap_used)]

use std::fs;

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

const STEPS: usize = 40;

/// A user's folder with a store.
struct User(TempDir);

impl User {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("longhaul").unwrap();
        command.env_clear().env("HOME", self.0.path()).env("XDG_DATA_HOME", self.0.path().join("data"));
        command.current_dir(self.0.path()).args(args);
        command
    }

    fn text(&self, args: &[&str]) -> String {
        String::from_utf8(self.command(args).assert().success().get_output().stdout.clone()).unwrap()
    }

    fn error(&self, args: &[&str]) -> String {
        let output = self.command(args).assert().code(2).get_output().clone();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((text.lines().count(), output.stdout.len()), (1, 0), "{text}");
        text
    }

    /// Stores a session of this file, as Longhaul would have gone through it in this window.
    fn import(&self, file: &str, window: &str) {
        self.text(&["sessions", "import", file, "--window", window]);
    }
}

/// A session of Claude Code that thinks in each step. Each block is a line of its own, as Claude Code writes them.
fn claude_code(word: &str) -> String {
    let mut lines: Vec<Value> = Vec::new();
    let mut line = |kind: &str, message: Value| {
        let (uuid, parent) =
            (format!("{word}-{}", lines.len()), lines.last().map(|line| line["uuid"].clone()));
        lines.push(json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "sessionId": "s", "cwd": "/src/parser",
            "version": "2.1.327", "timestamp": format!("2026-11-01T10:{:02}:{:02}.000Z", lines.len() / 60, lines.len() % 60),
            "message": message
        }));
    };
    line("user", json!({"role": "user", "content": format!("Read all about {word}.")}));
    for n in 0..STEPS {
        let mut answer = |block: Value| {
            let usage = json!({"input_tokens": 10, "output_tokens": 10});
            line(
                "assistant",
                json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block], "usage": usage}),
            );
        };
        let thinking = format!("File {n} is next. {}", "I look closer. ".repeat(10));
        answer(json!({"type": "thinking", "thinking": thinking, "signature": format!("{word} seal {n}")}));
        let id = format!("toolu_{n}");
        answer(
            json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": format!("src/{word}_{n}.rs")}}),
        );
        let text: String = (0..40).map(|line| format!("fn {word}_{n}_{line}() {{}}\n")).collect();
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        line("user", json!({"role": "user", "content": [result]}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn seals(text: &str) -> usize {
    text.matches(" seal ").count()
}

#[test]
fn thinking_of_views_is_left_out_and_every_other_word_stays() {
    let user = User::new();
    let own = claude_code("alpha");
    let file = user.file("own.jsonl", &own);
    user.import(&file, "8000");
    let told = user.text(&["release", "last", &file]);
    assert!(told.contains(" of 40 would fail without Longhaul. -o OUT writes"), "{told}");
    let told = user.text(&["release", "last", &file, "-o", "out.jsonl"]);
    assert!(told.contains(" of 40 are left out. Keep a copy of "), "{told}");
    let released = fs::read_to_string(user.0.path().join("out.jsonl")).unwrap();
    // The beginning was sent as it came.
    let kept = seals(&released);
    assert!(kept > 0 && kept < STEPS, "{kept}");
    assert!(told.contains(&format!("{} blocks of 40", STEPS - kept)), "{told}");
    let first_gone = own.lines().position(|line| line.contains(&format!(" seal {kept}\""))).unwrap();
    assert!(own.lines().take(first_gone).eq(released.lines().take(first_gone)));
    // All that is not thinking is there, and each line names one before it.
    let parsed =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let rest = |text: &str| -> Vec<Value> {
        let lines = parsed(text).into_iter().map(|line| line["message"].clone());
        lines.filter(|message| message["content"][0]["type"] != "thinking").collect()
    };
    assert_eq!(rest(&released), rest(&own));
    let lines = parsed(&released);
    assert!(lines.windows(2).all(|pair| pair[1]["parentUuid"] == pair[0]["uuid"]));
    // An existing file stays, unless `--force` is given.
    assert!(user.error(&["release", "last", &file, "-o", "out.jsonl"]).contains("is there already"));
    assert!(user.error(&["release", "last", &file, "-o", &file]).contains("is the session file itself"));
    // Nothing of the new file would fail.
    let again = user.text(&["release", "last", "out.jsonl"]);
    assert!(again.contains("nothing would fail"), "{again}");
}

#[test]
fn a_session_that_was_sent_as_it_came_needs_no_release() {
    let user = User::new();
    let file = user.file("own.jsonl", &claude_code("alpha"));
    user.import(&file, "200000");
    let told = user.text(&["release", "last", &file, "-o", "out.jsonl"]);
    assert!(
        told.contains("All thinking in it follows your agent's own messages: nothing would fail"),
        "{told}"
    );
    assert!(!user.0.path().join("out.jsonl").exists());
}

#[test]
fn the_file_of_another_session_is_refused() {
    let user = User::new();
    let (own, other) =
        (user.file("own.jsonl", &claude_code("alpha")), user.file("b.jsonl", &claude_code("beta")));
    user.import(&own, "8000");
    let problem = user.error(&["release", "last", &other, "-o", "out.jsonl"]);
    assert!(problem.contains("b.jsonl: has no thinking of the session last"), "{problem}");
    let ours = user.file("ours.jsonl", "{\"role\":\"user\",\"content\":\"Hello.\"}\n");
    let problem = user.error(&["release", "last", &ours]);
    assert!(problem.contains("release knows those of Claude Code, Codex and pi"), "{problem}");
    let silent = user.file("silent.jsonl", claude_code("gamma").lines().next().unwrap());
    let told = user.text(&["release", "last", &silent]);
    assert!(told.contains("no signed thinking in it"), "{told}");
}
