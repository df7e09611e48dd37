//! `wrap` never stands between a person and their agent: whatever is wrong with settings or store, the agent runs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use common::{Home, refused, text};

/// What the agent prints: the address that it is told, and its arguments.
const PRINTS: &str = "echo \"at $ANTHROPIC_BASE_URL for $*\"; exit 5";

fn home() -> Home {
    let home = Home::new();
    home.script("bin/claude", PRINTS);
    home
}

/// Runs the agent. It must have run to its end, behind Longhaul or not.
fn wrapped(home: &Home, change: impl Fn(&mut Command)) -> (String, Output) {
    let mut command = home.longhaul(&["wrap", "claude", "--", "-p", "hi"]);
    change(&mut command);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(out.ends_with(" -p hi\n"), "{out}");
    (out, output)
}

/// The one line that says why the agent runs alone.
fn refused_alone(said: &str) -> &str {
    assert!(said.lines().count() == 1 && said.ends_with("claude runs without Longhaul\n"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    said
}

fn settings(home: &Home, text: &str) -> String {
    let folder = home.at("home/.config/longhaul");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
    folder.join("config.toml").to_str().unwrap().to_owned()
}

#[test]
fn settings_that_cannot_be_read_leave_the_agent_alone() {
    let home = home();
    for wrong in ["profile = ", "windw = 4000", "profile = \"longhual\""] {
        settings(&home, wrong);
        let (out, output) = wrapped(&home, |_| {});
        assert_eq!(out, "at  for -p hi\n", "{wrong}");
        refused_alone(&text(&output.stderr));
        // Nothing is stored: the settings may forbid it.
        assert!(!home.at("sessions.db").exists());
    }
    settings(&home, "");
    let no_store = "mysql://me:secret@h/d";
    let (out, output) = wrapped(&home, |command| _ = command.env("LONGHAUL_STORE", no_store));
    assert_eq!(out, "at  for -p hi\n");
    assert!(refused_alone(&text(&output.stderr)).contains("no store of this kind"));
    // What the command itself says wrong is refused.
    for (flag, value) in [("--profile", "longhual"), ("--anthropic", "localhost:80"), ("--store", no_store)] {
        let output = home.longhaul(&["wrap", flag, value, "claude"]).output().unwrap();
        let said = refused(&output, 2);
        assert!(output.stdout.is_empty() && !said.contains("secret"), "{flag}: {said}");
    }
}

#[test]
fn a_damaged_store_is_moved_aside_and_a_new_one_begun() {
    let home = home();
    wrapped(&home, |_| {});
    let whole = fs::read(home.at("sessions.db")).unwrap();
    // The bytes after the header name the tables.
    let mut damaged = whole.clone();
    damaged[100..2_000].fill(0xAB);
    for n in 1..=2 {
        fs::write(home.at("sessions.db"), &damaged).unwrap();
        let (out, output) = wrapped(&home, |_| {});
        let said = text(&output.stderr);
        let aside = home.text_at(&format!("sessions.db.damaged-{n}"));
        assert!(out.starts_with("at http://127.0.0.1:"), "{out}");
        assert!(said.contains("is damaged and was moved to") && said.contains(&aside), "{said}");
        assert_eq!(fs::read(aside).unwrap(), damaged);
        let list = home.longhaul(&["sessions", "list"]).output().unwrap();
        assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    }
}

#[test]
fn where_no_store_can_be_used_sessions_are_kept_in_memory() {
    let home = home();
    fs::write(home.at("words"), "These are words, and no store. ".repeat(90)).unwrap();
    let words = fs::read(home.at("words")).unwrap();
    for place in [
        home.text_at("words"),
        home.text_at("words/sessions.db"),
        "postgres://me:secret@127.0.0.1:9/none".to_owned(),
    ] {
        let (out, output) = wrapped(&home, |command| _ = command.env("LONGHAUL_STORE", &place));
        let said = text(&output.stderr);
        assert!(out.starts_with("at http://127.0.0.1:"), "{place}: {out}");
        assert!(said.contains("kept in memory alone") && said.ends_with("longhaul: no calls\n"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
    assert_eq!(fs::read(home.at("words")).unwrap(), words, "a file of others stays");
}

/// A supervisor tells `wrap` alone; of Ctrl-C in a terminal the agent hears itself.
#[test]
fn an_interrupt_that_is_sent_to_wrap_reaches_the_agent() {
    let home = home();
    let waits = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let mut command = home.longhaul(&["wrap", "sh", "--", "-c", waits]);
    let mut wrap = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(wrap.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(Command::new("kill").args(["-INT", &wrap.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), wrap.wait().unwrap().code()), ("interrupted\n", Some(3)));
}

/// An agent that goes by an address of its own is not kept small, and its user believes that it is.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_works_past_the_gateway_is_said_to() {
    let home = home();
    let works = "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done";
    home.script("bin/claude", works);
    let output = home.longhaul(&["wrap", "--unused-after", "1", "claude"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(said.matches("has made no call through Longhaul yet").count(), 1, "{said}");
    assert!(said.contains("settings.json"), "{said}");
    // An agent that waits for its user causes no such line.
    home.script("bin/claude", "sleep 3");
    let output = home.longhaul(&["wrap", "--unused-after", "1", "claude"]).output().unwrap();
    assert_eq!(text(&output.stderr), "longhaul: no calls\n");
}
