//! `longhaul demo` as a user runs it.

#![allow(clippy::unwrap_used, clippy::panic)]

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
        "a fold: ",
        " pays back; ",
        "After 103 calls",
        "In the same window of 32,000 tokens",
        "longhaul report",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let wide = |c: char| if ('\u{2e80}'..'\u{ffff}').contains(&c) { 2 } else { 1 };
    for line in text.lines() {
        assert!(line.chars().map(wide).sum::<usize>() <= 80, "{line}");
    }
}

/// The words of the line that begins with these.
fn row<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(start));
    line.unwrap_or_else(|| panic!("{start}\n{text}")).trim_start()[start.len()..].split_whitespace().collect()
}

#[test]
fn the_demo_ends_with_what_others_would_have_kept() {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    let output = command.args(["demo", "--fast"]).env_clear().assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let number = |word: &str| word.trim_end_matches(['%', 'k']).parse::<f64>().unwrap();
    let compared: Vec<Vec<&str>> = ["cut off the oldest", "summarise all", "Longhaul  "]
        .map(|name| row(text.split_once("In the same window").unwrap().1, name))
        .into();
    for row in &compared {
        // All are inside the window and cheaper than the whole session.
        assert!(number(row[1]) <= 32.0 && number(row[0]) < 100.0, "{row:?}\n{text}");
    }
    // More of what the work needed is there than with either.
    let lines: Vec<f64> = compared.iter().map(|row| number(row[2])).collect();
    assert!(lines[2] > lines[0].max(lines[1]) + 20.0, "{lines:?}");
    // Three facts, all there or recalled, at least one of them lost by both others; what is recalled is read back.
    let (_, proof) = text.split_once("What the first third of the session said").unwrap();
    let facts: Vec<Vec<&str>> = proof
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.contains('?'))
        .map(|line| line.split_once('?').unwrap().1.split_whitespace().collect())
        .collect();
    assert_eq!(facts.len(), 3, "{proof}");
    assert!(facts.iter().all(|places| matches!(places[2], "there" | "recalled")), "{facts:?}");
    assert!(facts.iter().any(|places| places[..2] == ["lost", "lost"]), "{facts:?}");
    assert_eq!(
        facts.iter().filter(|places| places[2] == "recalled").count(),
        proof.lines().filter(|line| line.contains("; recalling ")).count(),
    );
    for answer in proof.lines().filter_map(|line| line.split_once("Said before call ")) {
        let (call, answer) = answer.1.split_once(": ").unwrap();
        assert!(call.parse::<u32>().unwrap() <= 103 / 3, "{call}");
        assert!(proof.matches(answer).count() >= 1);
    }
    assert_eq!(row(proof, "8 questions of this kind, answered")[2], "8");
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
