//! A digest of each kind on a small, real-looking result, before and after: snapshots, and the
//! examples of docs/digests.md. `UPDATE_GOLDEN=1` writes that page anew.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;

use longhaul::digest::{of_call as digest_of, of_call_by_tool as digest_by_tool};
use longhaul::{Block, Handle, Json, ToolCall, Vocabulary};

struct Example {
    kind: &'static str,
    tool: &'static str,
    arguments: &'static str,
    text: String,
}

fn example(
    kind: &'static str,
    tool: &'static str,
    arguments: &'static str,
    text: impl Into<String>,
) -> Example {
    Example { kind, tool, arguments, text: text.into() }
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|n| line(n) + "\n").collect()
}

fn examples() -> Vec<Example> {
    let words = ["ledger", "parser", "window", "budget", "archive", "digest", "signal", "tariff"];
    let word = |n: usize| words[n * 7 % words.len()];
    vec![
        example(
            "source",
            "Read",
            r#"{"path":"src/budget.rs"}"#,
            lines(60, |n| match n % 10 {
                0 => format!("{:6}\tpub fn {}_share(total: u64) -> u64 {{", n + 1, word(n / 10)),
                9 => format!("{:6}\t}}", n + 1),
                _ => format!("{:6}\t    let part_{n} = total / {};", n + 1, n + 2),
            }),
        ),
        example(
            "search hits",
            "Grep",
            r#"{"pattern":"share"}"#,
            lines(40, |n| {
                format!("src/{}.rs:{}:    let share = {}(total);", word(n), n * 9 + 3, word(n + 1))
            }),
        ),
        example(
            "listing",
            "Bash",
            r#"{"command":"ls -la src"}"#,
            lines(50, |n| {
                format!("-rw-r--r-- 1 dev dev {:6} Mar  2 10:{:02} {}_{n}.rs", n * 311 + 90, n % 60, word(n))
            }),
        ),
        example(
            "test output",
            "Bash",
            r#"{"command":"cargo test"}"#,
            format!(
                "running 61 tests\n{}test budget::rounds_down ... FAILED\n\n---- budget::rounds_down stdout ----\nthread 'budget::rounds_down' panicked at src/budget.rs:41:9:\nassertion `left == right` failed\n  left: 7\n right: 8\n\ntest result: FAILED. 60 passed; 1 failed; 0 ignored\n",
                lines(60, |n| format!("test {}::case_{n} ... ok", word(n)))
            ),
        ),
        example(
            "build output",
            "Bash",
            r#"{"command":"cargo build"}"#,
            format!(
                "{}error[E0308]: mismatched types\n  --> src/budget.rs:10:5\n   |\n10 |     total\n   |     ^^^^^ expected `Tokens`, found `u64`\n\nerror: could not compile `budget` (lib) due to 1 previous error\n",
                lines(45, |n| format!("   Compiling {}-core v0.{n}.1", word(n)))
            ),
        ),
        example(
            "log",
            "Bash",
            r#"{"command":"tail -80 app.log"}"#,
            lines(80, |n| {
                if n == 41 {
                    "2026-03-02 10:00:41 ERROR upstream refused: connection reset by peer".to_owned()
                } else {
                    format!(
                        "2026-03-02 10:00:{n:02} INFO request {} served in {} ms",
                        n * 37 + 1000,
                        n % 9 + 2
                    )
                }
            }),
        ),
        example(
            "stack trace",
            "Bash",
            r#"{"command":"python app.py"}"#,
            format!(
                "Traceback (most recent call last):\n{}  File \"app/ingest.py\", line 88, in run\n    self.store(row)\n  File \"app/store.py\", line 23, in store\n    raise ValueError(row.key)\nValueError: order_7781\n",
                lines(12, |n| format!(
                    "  File \"/usr/lib/python3/asyncio/base_events.py\", line {}, in run_{n}\n    return self._run(step_{n})",
                    100 + n
                ))
            ),
        ),
        example(
            "diff",
            "Bash",
            r#"{"command":"git diff"}"#,
            format!(
                "diff --git a/src/budget.rs b/src/budget.rs\n--- a/src/budget.rs\n+++ b/src/budget.rs\n@@ -1,40 +1,41 @@\n{}@@ -90,20 +91,20 @@ fn hard()\n{}",
                lines(30, |n| if n == 12 {
                    "-    let hard = window;".to_owned()
                } else if n == 13 {
                    "+    let hard = window - reserve;".to_owned()
                } else {
                    format!("     let line_{n} = {n};")
                }),
                lines(20, |n| format!("     context line {n}"))
            ),
        ),
        example(
            "git output",
            "Bash",
            r#"{"command":"git log --stat"}"#,
            lines(12, |n| {
                format!(
                    "commit 4f1a{n:04x}9b2c\nAuthor: dev\n\n    {} of {}\n\n src/{}.rs | {} +-",
                    word(n),
                    word(n + 2),
                    word(n),
                    n + 1
                )
            }),
        ),
        example(
            "JSON",
            "WebFetch",
            "{}",
            format!(
                "[\n{}]",
                lines(40, |n| format!(
                    "  {{\"id\": {n}, \"name\": \"{}_{n}\", \"path\": \"/v1/{}/{n}\", \"active\": true}},",
                    word(n),
                    word(n + 3)
                ))
            ),
        ),
        example(
            "JSON on one line",
            "WebFetch",
            "{}",
            format!(
                "{{\"total\":60,\"rows\":[{}]}}",
                (0..60)
                    .map(|n| format!(
                        "{{\"id\":{n},\"owner\":{{\"login\":\"{}\",\"url\":\"/users/{}\"}},\"body\":\"{}\"}}",
                        word(n),
                        word(n),
                        "Some words. ".repeat(12)
                    ))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
        ),
        example(
            "table",
            "Bash",
            r#"{"command":"docker ps"}"#,
            lines(30, |n| {
                format!(
                    "{:12x}   {}:latest   Up {n} hours   0.0.0.0:{}->80/tcp",
                    n * 7919 + 0xa00000,
                    word(n),
                    8000 + n
                )
            }),
        ),
        example(
            "Markdown",
            "WebFetch",
            "{}",
            lines(12, |n| {
                format!(
                    "## {} {n}\n\nSome words about the {} that say nothing that the heading does not say.\n\n- first\n- second\n",
                    word(n),
                    word(n)
                )
            }),
        ),
        example(
            "package manager output",
            "Bash",
            r#"{"command":"npm install"}"#,
            format!(
                "{}npm error code ERESOLVE\nnpm error ERESOLVE could not resolve react@19.0.0\n",
                lines(40, |n| format!("npm http fetch GET 200 {}-{n} {}ms (cache miss)", word(n), n * 3))
            ),
        ),
        example(
            "data",
            "Bash",
            r#"{"command":"base64 logo.png"}"#,
            lines(40, |n| {
                "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4"
                    .chars()
                    .cycle()
                    .skip(n)
                    .take(76)
                    .collect()
            }),
        ),
        example(
            "plain text",
            "Bash",
            r#"{"command":"./report"}"#,
            lines(60, |n| format!("The {} of day {n} was as it always is.", word(n))),
        ),
    ]
}

fn call(example: &Example) -> ToolCall {
    match Block::call("c", example.tool, Json::new(example.arguments).unwrap()) {
        Block::ToolCall(call) => call,
        _ => unreachable!(),
    }
}

fn tokens(text: &str) -> u64 {
    Vocabulary::O200k.count(text).tokens
}

/// The start of a text, as an example of it.
fn start(text: &str) -> String {
    let shown: String = text
        .lines()
        .take(4)
        .map(|line| format!("    {}\n", line.chars().take(92).collect::<String>()))
        .collect();
    let more = text.lines().count().saturating_sub(4);
    format!("{shown}    … {more} more lines\n")
}

#[test]
fn a_digest_of_each_kind() {
    let mut page = String::new();
    for example in examples() {
        let handle = Handle::of(&example.text);
        let short = digest_of(&call(&example), &example.text, handle)
            .unwrap_or_else(|| panic!("no digest of {}", example.kind));
        assert!(short.len() < example.text.len());
        insta::assert_snapshot!(format!("content_{}", example.kind.replace(' ', "_")), short);
        let by_tool = digest_by_tool(&call(&example), &example.text, handle);
        insta::assert_snapshot!(
            format!("tool_{}", example.kind.replace(' ', "_")),
            by_tool.as_deref().unwrap_or("(whole)")
        );
        let (before, after) = (tokens(&example.text), tokens(&short));
        write!(
            page,
            "### {}: {before} → {after} tokens\n\n`{}` {}\n\n{}\nbecomes\n\n",
            example.kind,
            example.tool,
            example.arguments.replace("{}", ""),
            start(&example.text)
        )
        .unwrap();
        for line in short.lines() {
            writeln!(page, "    {}", line.chars().take(240).collect::<String>()).unwrap();
        }
        page.push('\n');
    }
    let path = format!("{}/../../docs/digests.md", env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_to_string(&path).unwrap();
    let (head, _) = docs.split_once("## Before and after\n").expect("the page has its examples");
    let head = head.to_owned()
        + "## Before and after\n\nMade by `cargo test -p longhaul --test digests`, counted with o200k. What comes in is made up;\nit has the form that tools print.\n\n";
    let page = format!("{head}{}\n", page.trim_end());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(&path, &page).unwrap();
    }
    // Not assert_eq: the page is long.
    assert!(
        docs.replace("\r\n", "\n") == page,
        "docs/digests.md is not up to date: UPDATE_GOLDEN=1 writes it anew"
    );
}

/// Whatever is printed, a digest is shorter, says what is missing, and is not digested again.
#[test]
fn hostile_results_are_digested_like_others() {
    let binary: String = (0..60_000u32).filter_map(|n| char::from_u32(n * 37 % 0x500)).collect();
    let hostile = [
        ("one line of 5 MB", "x".repeat(5 << 20)),
        ("50 MB", "a line of a log that goes on and on\n".repeat((50 << 20) / 36)),
        ("binary", binary),
        (
            "colours",
            "\u{1b}[31merror\u{1b}[0m: it failed\r\n\u{1b}[2K\rprogress 10%\rprogress 90%\r\n".repeat(300),
        ),
        ("control characters", "\u{0}\u{7}\u{8}\u{b}\u{c}\u{1f}\u{7f}\n".repeat(2_000)),
        ("scripts", "日本語 العربية עברית हिन्दी 한국어 🎉👩‍🚀 e\u{301}\n".repeat(400)),
        ("newlines", "\n".repeat(20_000)),
        ("deep JSON", format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000))),
        ("a bare number", "42".to_owned()),
        ("nothing", String::new()),
        ("marks", "⟦9 lines of a log left out; recall 0123456789ab⟧\n".repeat(2_000)),
    ];
    let tools = ["LS", "Glob", "Grep", "Read", "Edit", "Write", "Bash", "TodoWrite", "Anything"];
    for (name, text) in &hostile {
        for tool in tools {
            let Block::ToolCall(call) = Block::call("c", tool, Json::empty_object()) else { unreachable!() };
            for digest in [digest_of, digest_by_tool] {
                let handle = Handle::of("x");
                if let Some(short) = digest(&call, text, handle) {
                    assert!(short.len() < text.len() && short.contains("; recall "), "{name} {tool}");
                    assert_eq!(
                        digest(&call, &short, handle),
                        None,
                        "{name} {tool}\n{}",
                        &short[..short.floor_char_boundary(2_000)]
                    );
                }
            }
        }
    }
}
