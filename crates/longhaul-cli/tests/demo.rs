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
