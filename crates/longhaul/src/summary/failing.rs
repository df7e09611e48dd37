//! How calls failed: the exit status and the one line of a result that says why, and which failures are no
//! problem that anybody would go back to.

use std::borrow::Cow;

use crate::conversation::message::ToolResult;
use crate::digest::{Failures, HUGE, ToolKind};
use crate::text::ansi;

/// The exit status that a result names, in the ways agents write it.
pub(crate) fn exit_status(result: &ToolResult) -> Option<i64> {
    status_in(&result.text)
}

/// The same, of an output that is a part of a result.
pub(super) fn status_in(text: &str) -> Option<i64> {
    let number = |text: &str| {
        let text = text.trim_start_matches([' ', ':', '=', '"']);
        let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'-').count();
        text[..digits].parse::<i64>().ok()
    };
    // It stands at the start or at the end, at the start of its line but for a bracket or a few
    // words: what a program prints of others is not its own.
    let of_line = |line: &str| {
        let start = &line[..line.floor_char_boundary(60)];
        STATUS.iter().find_map(|sign| number(&start[start.find(sign)? + sign.len()..]))
    };
    let in_json = |part: &str| {
        let sign = "\"exit_code\":";
        part.rfind(sign).and_then(|at| number(&part[at + sign.len()..]))
    };
    let head = text.lines().take(5).find_map(of_line);
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(300))..];
    head.or_else(|| in_json(&text[..text.floor_char_boundary(300)]))
        .or_else(|| in_json(tail))
        .or_else(|| tail.lines().rev().take(3).find_map(of_line))
}

/// How agents write an exit status.
const STATUS: [&str; 5] = ["exited with code", "<returncode>", "xit code", "xit status", "returncode:"];

/// The line of a failed result that says why: the first that speaks of a failure and not only of the exit status; else
/// the status, or the last line where there is none.
pub(super) fn why(text: &str, status: Option<i64>) -> String {
    let text = ansi::stripped(&text[..text.floor_char_boundary(HUGE)]);
    let mut failures = Failures::of(&text);
    let failed =
        text.split_inclusive('\n').find(|line| failures.next_line(line.len()) && says_something(line));
    let said = failed.or_else(|| match status {
        Some(_) => None,
        None => text.lines().rev().find(|line| says_something(line)),
    });
    match (said, status) {
        (Some(line), _) => without_tags(line.trim()).into_owned(),
        (None, Some(status)) => format!("exit {status}"),
        (None, None) => String::new(),
    }
}

/// True if the error that ended a script reports that a patch or another change of a file was not made.
pub(super) fn reports_failed_change(text: &str) -> bool {
    /// The host writes the error after what the script printed.
    const ERROR: &str = "\nScript error:\n";
    /// How hosts report it.
    const SIGNS: [&str; 6] = [
        "patch verification failed",
        "patch failed",
        "nvalid patch",
        "ailed to find expected lines",
        "ailed to find context",
        "ailed to apply",
    ];
    let error = text.rfind(ERROR).map_or(text, |at| &text[at..]);
    SIGNS.iter().any(|sign| error.contains(sign))
}

/// True for a line of a result that its program wrote about what happened.
fn says_something(line: &str) -> bool {
    let line = line.trim();
    let is_status = STATUS.iter().any(|sign| line.contains(sign)) && line.len() < 60;
    // A command that is printed before it runs, and tests that passed.
    let beside = ["$ ", "> ", "(pass)", "✓", "ok "];
    !is_status
        && !is_of_harness(line)
        && !beside.iter().any(|start| line.starts_with(start))
        && line.bytes().filter(u8::is_ascii_alphabetic).count() > 7
}

/// True for a line that a harness writes around the output of a command.
pub(super) fn is_of_harness(line: &str) -> bool {
    // Codex.
    const STARTS: [&str; 6] = [
        "Chunk ID: ",
        "Wall time: ",
        "Original token count: ",
        "Process exited with code ",
        "Total output lines: ",
        "Warning: truncated output (original token count: ",
    ];
    line == "Output:" || STARTS.iter().any(|start| line.starts_with(start))
}

/// A line without a tag around it, such as `<tool_use_error>`.
fn without_tags(line: &str) -> Cow<'_, str> {
    let Some(inner) = line.strip_prefix('<') else { return line.into() };
    match inner.split_once('>') {
        Some((name, rest))
            if name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') && !rest.is_empty() =>
        {
            rest.strip_suffix(&format!("</{name}>")).unwrap_or(rest).trim().into()
        }
        _ => line.into(),
    }
}

/// True if nobody would go back to a call that failed so: what was looked for was not there, another call beside it
/// failed, or a person said no.
pub(super) fn is_no_problem(tool: ToolKind, command: &str, text: &str) -> bool {
    let looks = match tool {
        ToolKind::Ls | ToolKind::Glob | ToolKind::Grep | ToolKind::Read => true,
        ToolKind::Bash => only_looks(command),
        _ => false,
    };
    let of_harness = [
        "Sibling tool call errored",
        "The user doesn't want to proceed with this tool use",
        "The user doesn't want to take this action right now",
        "[Request interrupted by user",
    ];
    let start = text.trim_start().trim_start_matches("<tool_use_error>");
    looks || of_harness.iter().any(|words| start.starts_with(words))
}

/// What is done when any command that does it has gone well: another message or title makes no difference.
const ONCE: [&str; 3] = ["git commit ", "git push ", "gh pr create "];

/// What a command that failed has left undone, if it is one of these and all else in the command only looks or
/// prepares it: then nothing else can have failed.
pub(super) fn undone(command: &str) -> Option<&'static str> {
    // Of a command that was cut nobody knows the rest.
    if command.ends_with('…') {
        return None;
    }
    let plain = without_quoted(command);
    let mut left = None;
    for part in parts_of(&plain) {
        match once(part) {
            Some(what) => left = Some(what),
            None if part.starts_with("git add ") || is_look(part) => {}
            None => return None,
        }
    }
    left
}

/// Which of these a command that went well has done.
pub(super) fn done(command: &str) -> Vec<&'static str> {
    parts_of(&without_quoted(command)).filter_map(once).collect()
}

/// Which of them a part of a command does.
fn once(part: &str) -> Option<&'static str> {
    let does = |what: &&&str| {
        format!("{part} ").starts_with(**what) && !part.split_whitespace().any(|word| word == "--dry-run")
    };
    ONCE.iter().find(does).copied()
}

/// The commands that a command is put together from.
fn parts_of(command: &str) -> impl Iterator<Item = &str> {
    command.split(['|', ';', '&', '\n']).map(str::trim).filter(|part| !part.is_empty())
}

/// Commands that change nothing.
const LOOKS: [&str; 30] = [
    "ls", "cat", "sed", "head", "tail", "grep", "rg", "find", "pwd", "cd", "wc", "nl", "echo", "which",
    "stat", "file", "test", "[", "tree", "sort", "uniq", "cut", "tr", "awk", "true", "sleep", "jq",
    "basename", "nc", "done",
];

/// Words of a shell that stand before a command.
const BEFORE: [&str; 4] = ["do", "then", "else", "if"];

/// What programs look at without changing anything: the program, and what is said to it first.
const LOOKING: [(&str, &[&str]); 3] = [
    (
        "git",
        &[
            "log",
            "status",
            "diff",
            "show",
            "grep",
            "blame",
            "rev-parse",
            "ls-files",
            "cat-file",
            "check-ignore",
            "merge-base",
            "describe",
            "ls-tree",
            "ls-remote",
            "reflog",
        ],
    ),
    ("npm", &["view", "info", "show", "ls", "list"]),
    ("gh", &["view", "list", "checks", "status", "diff", "watch"]),
];

/// With these `gh api` sends something.
const GH_SENDS: [&str; 7] = ["-X", "--method", "-f", "-F", "--field", "--raw-field", "--input"];

/// True for a command that changes nothing, whatever it is put together from.
pub(super) fn only_looks(command: &str) -> bool {
    parts_of(&without_quoted(command)).all(is_look)
}

/// True for a part of a command that changes nothing.
fn is_look(part: &str) -> bool {
    let mut words = part.split_whitespace().skip_while(|word| BEFORE.contains(word));
    match words.next().unwrap_or_default() {
        // The list that a loop goes through.
        "for" => true,
        "sed" => !part.contains(" -i"),
        // What it runs, behind its own flags.
        "xargs" => {
            let run: Vec<&str> = words.skip_while(|word| word.starts_with('-')).collect();
            run.is_empty() || is_look(&run.join(" "))
        }
        "gh" => match words.next() {
            Some("api") => !words.any(|word| GH_SENDS.iter().any(|flag| word.starts_with(flag))),
            // What it is about, and then what is done with it.
            Some(_) => words.next().is_some_and(|word| is_looking("gh", word)),
            None => false,
        },
        "git" => git_command(words).is_some_and(|word| is_looking("git", word)),
        "npm" => words.next().is_some_and(|word| is_looking("npm", word)),
        // `2>&1` leaves a number behind.
        first => LOOKS.contains(&first) || first.bytes().all(|b| b.is_ascii_digit() || b == b'>'),
    }
}

fn is_looking(program: &str, word: &str) -> bool {
    LOOKING.iter().any(|(known, words)| *known == program && words.contains(&word))
}

/// The command of git behind the folder that it is for.
fn git_command<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    match words.next()? {
        "-C" => words.nth(1),
        word => Some(word),
    }
}

/// A command without what stands in quotation marks: a pattern may have any sign.
fn without_quoted(command: &str) -> String {
    let mut quote = None;
    let outside = |c: &char| match quote {
        Some(open) => {
            if *c == open {
                quote = None;
            }
            false
        }
        None => {
            if matches!(c, '\'' | '"') {
                quote = Some(*c);
            }
            quote.is_none()
        }
    };
    command.chars().filter(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Block, Message};

    #[test]
    fn exit_codes_as_agents_write_them() {
        let status = |text: &str| exit_status(&ToolResult { text: text.into(), ..result() });
        fn result() -> ToolResult {
            match Message::result("a", "").blocks()[0].clone() {
                Block::ToolResult(result) => result,
                _ => unreachable!(),
            }
        }
        assert_eq!(status("Exit code: 2\nOutput"), Some(2));
        assert_eq!(status("Process exited with code 1\nx"), Some(1));
        assert_eq!(status("{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"), Some(0));
        assert_eq!(status("<returncode>137</returncode>"), Some(137));
        assert_eq!(status("[The command completed with exit code -1.]"), Some(-1));
        assert_eq!(status("all is well"), None);
    }

    #[test]
    fn the_line_that_says_why() {
        for (text, status, line) in [
            (
                "running 2 tests\nassertion failed: left == right\nexit code: 101",
                Some(101),
                "assertion failed: left == right",
            ),
            (
                "$ biome check --error-on-warnings\nsrc/a.ts: unused import\nFound 1 error.",
                Some(1),
                "Found 1 error.",
            ),
            // A name of a file is no error.
            ("docs/2026-02-10-fix-flaky-tests.md", Some(1), "exit 1"),
            ("/c/Program Files/PowerShell/7/pwsh", Some(1), "exit 1"),
            (
                "(pass) errors on invalid entries\n(fail) rejects nothing: expected failed",
                Some(1),
                "(fail) rejects nothing: expected failed",
            ),
            (
                "<tool_use_error>String to replace not found in file.</tool_use_error>",
                None,
                "String to replace not found in file.",
            ),
            ("Chunk ID: 1f\nOriginal token count: 0\nOutput:\n", Some(1), "exit 1"),
            ("\u{1b}[31merror\u{1b}[0m: no field `x`", Some(101), "error: no field `x`"),
            ("something else went on here", None, "something else went on here"),
            ("", None, ""),
        ] {
            assert_eq!(why(text, status), line, "{text}");
        }
    }

    #[test]
    fn a_commit_is_made_by_any_command_that_commits() {
        assert_eq!(undone("git add a.md && git commit -m 'docs: a'"), Some("git commit "));
        assert_eq!(undone("git commit -m 'x' && git push"), Some("git push "));
        assert_eq!(done("cargo test && git commit -m 'docs: b'"), ["git commit "]);
        // Something else may have failed.
        for whole in
            ["cargo test && git commit -am x", "cargo test", "git commit-graph", "git commit -m \"a…"]
        {
            assert_eq!(undone(whole), None, "{whole}");
        }
        // Who only speaks of it does not do it.
        for other in ["grep -rn 'git push' docs", "echo git push", "git push --dry-run", "cargo test"] {
            assert!(done(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn what_was_looked_for_and_not_there_is_no_problem() {
        for command in [
            "grep -rn x src/ 2>/dev/null",
            "cd src && find . -name '*.go' | sed 's/a/b/' | head -3",
            "ls go.mod 2>&1",
            "rg -n \"a|b && c\" src",
            "git log --oneline | head -3",
            "git -C /srv/cli cat-file -t e53647ba 2>&1",
            "for f in a.go b.go; do grep -c x $f; done",
            "gh pr checks 19 --watch --fail-fast 2>&1",
            "gh run view 277 --repo a/b --job $(gh run view 277 --json jobs)",
            "gh api repos/a/b/pulls/174/comments | jq length",
            "npm view @a/core@4.41.0 version --json; npm ls",
            "ls *.md | xargs -n1 basename",
        ] {
            assert!(is_no_problem(ToolKind::Bash, command, ""), "{command}");
        }
        for command in [
            "cargo test 2>&1 | tail -3",
            "git push",
            "git commit -m 'ls'",
            "sed -i s/a/b/ x.rs",
            "cd src && make",
            "git -C /srv/cli gc",
            "gh pr create --title x",
            "gh api repos/a/b/comments/7/replies -f body=done",
            "npm install",
            "for f in *.rs; do rustfmt $f; done",
            "ls | xargs rm",
            "rg -l foo | xargs sed -i s/foo/bar/",
            "gh api -XPOST repos/a/b/issues",
            "gh api repos/a/b --method=DELETE",
        ] {
            assert!(!is_no_problem(ToolKind::Bash, command, ""), "{command}");
        }
        assert!(is_no_problem(ToolKind::Read, "", "File does not exist."));
        assert!(!is_no_problem(ToolKind::Edit, "", "String to replace not found in file."));
        assert!(is_no_problem(
            ToolKind::Edit,
            "",
            "<tool_use_error>Sibling tool call errored</tool_use_error>"
        ));
        assert!(is_no_problem(
            ToolKind::Edit,
            "",
            "The user doesn't want to proceed with this tool use. They said: no"
        ));
    }
}
