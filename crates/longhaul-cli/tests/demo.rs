//! `longhaul demo` as a user runs it.

#![allow(clippy::unwrap_used)]

use assert_cmd::Command;

#[test]
fn the_demo_runs_without_anything() {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = command.args(["demo", "--fast"]).env_clear().current_dir(folder.path()).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(!text.contains('\x1b'));
    // The context fills, is made smaller, and what was taken out comes back.
    for said in [
        "> You are picking up tidewater",
        "a digest: ",
        "a fold: ",
        " cold; ",
        "After 103 calls",
        "% less.",
        " gives back ",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let wide = |c: char| if ('\u{2e80}'..'\u{ffff}').contains(&c) { 2 } else { 1 };
    for line in text.lines() {
        assert!(line.chars().map(wide).sum::<usize>() <= 80, "{line}");
    }
}

#[test]
fn the_agent_of_the_demo_works_on_a_real_project() {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = command.args(["demo", "--agent", "--fast"]).env_clear().env("TMPDIR", folder.path());
    let output = output.current_dir(folder.path()).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(!text.contains('\x1b'));
    for said in [
        "> The table of eastness",
        "● Read logs/import.log",
        "  └ src/parse.py was changed: 4 lines added, 3 removed",
        "    +    try:",
        "    [x] changelog",
        "● Recall WARN",
        "All four: eastness, skerry, holm and westray.",
        "The whole session has ",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let compactions: Vec<&str> = text.lines().filter(|line| line.starts_with("compacted: ")).collect();
    assert!(compactions.len() >= 3, "{compactions:?}");
    assert!(text.lines().filter(|line| line.starts_with("context ")).count() == 3, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // Nothing stays behind.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
