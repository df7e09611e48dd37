//! A digest by content: whole lines, the best ones, in their order, with marks where others
//! were.

use std::fmt::Write;

use super::content::ContentKind;
use super::rank::{NOISE, Noise, PLAIN, ranks};
use crate::edits::archive::Handle;
use crate::text::names::NameSet;

/// A line longer than this is not kept: it is data, not words.
pub(super) const LONGEST: usize = 1_000;

/// About the size of a mark.
const MARK: usize = 16;
/// A digest of fewer bytes says too little.
const LEAST: usize = 100;

/// How much of a text is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// In bytes, marks not counted.
    pub bytes: usize,
    /// Lines that stay whatever they are: from the start, and from the end.
    pub head: usize,
    pub tail: usize,
    /// What is left of the room goes to ordinary lines.
    pub fill: bool,
    /// Lines that are not kept, unless they are at the edges.
    pub noise: Noise,
}

/// The best lines of a text in at most about `room`; `None` if that would not be shorter.
pub(crate) fn select(
    text: &str,
    kind: ContentKind,
    room: Room,
    names: &NameSet<'_>,
    handle: Handle,
) -> Option<String> {
    if text.len() <= room.bytes || is_digest(text) {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut ranks = ranks(kind, text, &lines, names, room.noise);
    let count = lines.len();
    // Lines at the edges stay whatever they are, in up to a quarter of the room each.
    let mut edges = Vec::new();
    for ats in
        [Vec::from_iter(0..room.head.min(count)), (count.saturating_sub(room.tail)..count).rev().collect()]
    {
        let mut left = room.bytes / 4;
        let fits = |at: &usize| {
            let len = lines[*at].len();
            let fits = len <= left.min(LONGEST);
            left -= if fits { len } else { 0 };
            fits
        };
        edges.extend(ats.into_iter().filter(fits));
    }
    edges.into_iter().for_each(|at| ranks[at] = u8::MAX);
    // The best first, the earlier first among equals.
    let least = if room.fill { NOISE } else { PLAIN };
    let mut order: Vec<usize> =
        (0..count).filter(|at| ranks[*at] > least && lines[*at].len() <= LONGEST).collect();
    order.sort_by_key(|at| std::cmp::Reverse(ranks[*at]));
    let (mut kept, mut left) = (vec![false; count], room.bytes);
    for at in order {
        // A line that stands alone brings a mark with it.
        let beside = at > 0 && kept[at - 1] || kept.get(at + 1) == Some(&true);
        let cost = lines[at].len() + if beside { 0 } else { MARK };
        if cost <= left {
            left -= cost;
            kept[at] = true;
        }
    }
    // Too little to go by: the caller knows another way.
    let size: usize = lines.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(line, _)| line.len()).sum();
    if kind != ContentKind::Blob && size < LEAST {
        return None;
    }
    render(text, &lines, &kept, kind, handle)
}

/// True if the text is a digest already: it is not made shorter again.
pub(crate) fn is_digest(text: &str) -> bool {
    let mark = |line: &str| {
        // A line of its own, or the last field of a JSON object.
        let line = line.strip_suffix("\"}").unwrap_or(line);
        let start = line.rfind('⟦').map_or("", |at| &line[at..]);
        start.ends_with('⟧')
            && start.contains(" left out")
            && start.contains("; recall ")
            && (line.len() == start.len() || line.contains("\"left_out\":\"⟦"))
    };
    text.contains("; recall ") && text.lines().any(mark)
}

pub(super) fn render(
    text: &str,
    lines: &[&str],
    kept: &[bool],
    kind: ContentKind,
    handle: Handle,
) -> Option<String> {
    let mut out = String::with_capacity(text.len() / 4);
    let mut first = true;
    let mut at = 0;
    while at < lines.len() {
        let run = kept[at..].iter().take_while(|k| **k == kept[at]).count();
        let part = &lines[at..at + run];
        let bytes: usize = part.iter().map(|line| line.len()).sum();
        // A mark is not shorter than a short line.
        if kept[at] || bytes < 20 && !first {
            out.extend(part.iter().copied());
        } else {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            let lines = if run == 1 { "1 line".to_owned() } else { format!("{run} lines") };
            let long = if run == 1 && bytes > LONGEST { format!(" ({bytes} bytes)") } else { String::new() };
            _ = if first {
                writeln!(out, "⟦{lines}{long} of {} left out; recall {}⟧", kind.name(), handle.short())
            } else {
                writeln!(out, "⟦{lines}{long}⟧")
            };
            first = false;
        }
        at += run;
    }
    (!first && out.len() < text.len()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::super::ToolKind;
    use super::*;
    use proptest::prelude::*;

    const ROOM: Room = Room { bytes: 400, head: 1, tail: 1, fill: false, noise: Noise::Usual };

    fn digest(text: &str, tool: ToolKind, command: &str, names: &[&str]) -> (ContentKind, String) {
        let kind = ContentKind::of(text, tool, command);
        let names = names.iter().copied().collect();
        (kind, select(text, kind, ROOM, &names, Handle::of(text)).unwrap_or_default())
    }

    /// Lines of the digest, without the handle.
    fn shown(digest: &str) -> Vec<&str> {
        digest.lines().map(|line| line.split("; recall").next().unwrap_or(line)).collect()
    }

    #[test]
    fn of_tests_the_failures_and_the_verdict() {
        let mut text = "running 60 tests\n".to_owned();
        (0..59).for_each(|n| text += &format!("test parse::case_{n} ... ok\n"));
        text += "test parse::empty_line ... FAILED\n\n---- parse::empty_line stdout ----\n\
            thread 'parse::empty_line' panicked at src/parse.rs:41:9:\nassertion `left == right` failed\n  left: 1\n right: 0\n\n\
            test result: FAILED. 59 passed; 1 failed; 0 ignored\n";
        let (kind, digest) = digest(&text, ToolKind::Bash, "cargo test", &[]);
        assert_eq!(kind, ContentKind::Tests);
        assert!(digest.contains("src/parse.rs:41:9") && digest.contains("left == right"), "{digest}");
        assert!(digest.contains("1 failed") && !digest.contains("case_7 "), "{digest}");
    }

    #[test]
    fn of_source_the_definitions_and_the_names_in_use() {
        let mut text = String::new();
        for n in 0..40 {
            let line = match n % 8 {
                0 => format!("pub fn step_{n}(input: &str) -> usize {{"),
                3 => format!("    let cache_key = input.len() + {n};"),
                7 => "}".to_owned(),
                _ => "    work();".to_owned(),
            };
            text += &format!("{:6}→{line}\n", n + 1);
        }
        let (kind, plain) = digest(&text, ToolKind::Read, "src/steps.rs", &[]);
        assert_eq!(kind, ContentKind::Source);
        assert!(
            (0..5).all(|n| plain.contains(&format!("pub fn step_{}", n * 8))) && !plain.contains("work()"),
            "{plain}"
        );
        let (_, used) = digest(&text, ToolKind::Read, "src/steps.rs", &["cache_key"]);
        assert!(used.contains("let cache_key"), "{used}");
    }

    #[test]
    fn of_a_build_the_errors_with_their_places() {
        let mut text: String = (0..40).map(|n| format!("   Compiling crate_{n} v0.1.{n}\n")).collect();
        text += "error[E0308]: mismatched types\n  --> src/main.rs:10:5\n   |\n10 |     x\n   |     ^ expected `()`\n\nerror: could not compile `a`\n";
        let (kind, digest) = digest(&text, ToolKind::Bash, "cd a && cargo build 2>&1 | tail -60", &[]);
        assert_eq!(kind, ContentKind::Build);
        assert!(digest.contains("E0308") && digest.contains("--> src/main.rs:10:5"), "{digest}");
        assert!(!digest.contains("crate_20"), "{digest}");
    }

    #[test]
    fn kinds_are_found_by_content_tool_and_command() {
        let kind = |text: &str, tool, command: &str| ContentKind::of(text, tool, command);
        let hits = "src/a.rs:1:fn a\nsrc/b.rs:20:fn b\n".repeat(5);
        assert_eq!(kind(&hits, ToolKind::Grep, "fn"), ContentKind::Hits);
        assert_eq!(kind(&hits, ToolKind::Other, ""), ContentKind::Hits);
        assert_eq!(kind("a\nb\n", ToolKind::Ls, "."), ContentKind::Listing);
        assert_eq!(kind("total 8\n-rw a\n", ToolKind::Bash, "ls -la"), ContentKind::Listing);
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n";
        assert_eq!(kind(diff, ToolKind::Bash, "git diff"), ContentKind::Diff);
        assert_eq!(kind("On branch main\n modified: a\n", ToolKind::Bash, "git status"), ContentKind::Git);
        assert_eq!(kind("[{\"a\": 1}, {\"a\": 2}]", ToolKind::Other, ""), ContentKind::Json);
        let trace = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n  File \"b.py\", line 2, in g\n  File \"c.py\", line 3, in h\nValueError: no\n";
        assert_eq!(kind(trace, ToolKind::Bash, "python a.py"), ContentKind::Trace);
        assert_eq!(kind(&"QUJD".repeat(500), ToolKind::Other, ""), ContentKind::Blob);
        assert_eq!(
            kind("Collecting a\nDownloading a\n", ToolKind::Bash, "pip install a"),
            ContentKind::Packages
        );
        assert_eq!(kind("# Title\n\n- a\n- b\n", ToolKind::Other, ""), ContentKind::Markdown);
        assert_eq!(kind("42", ToolKind::Other, ""), ContentKind::Plain);
        assert_eq!(kind("", ToolKind::Bash, "rg x"), ContentKind::Hits);
    }

    #[test]
    fn gaps_say_what_is_missing_and_where_it_is() {
        let text: String = (0..200).map(|n| format!("2026-03-02 INFO tick number {n}\n")).collect();
        let text = text.replace("tick number 100", "request failed: timeout");
        let (kind, digest) = digest(&text, ToolKind::Bash, "tail -200 app.log", &[]);
        assert_eq!(kind, ContentKind::Log);
        let shown = shown(&digest);
        assert_eq!(shown[1], "⟦99 lines of a log left out");
        assert_eq!(shown[2], "2026-03-02 INFO request failed: timeout");
        assert_eq!(shown[6], "⟦95 lines⟧");
        assert_eq!(
            select(
                &digest,
                kind,
                Room { bytes: 10, head: 0, tail: 0, ..ROOM },
                &NameSet::default(),
                Handle::of("")
            ),
            None
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_it_is_shorter_and_of_whole_lines(
            lines in prop::collection::vec("[ \\ta-zA-Z0-9_:./→⟧+-]{0,60}|\\PC{0,40}|error: [a-z]{3,9}|\u{1b}\\[31m[a-z]+\r", 0..120),
            kind in prop::sample::select(ContentKind::ALL.to_vec()), bytes in 0usize..2_000,
            head in 0usize..4, tail in 0usize..4, fill: bool, noise in prop::sample::select(vec![Noise::Pure, Noise::Usual]),
        ) {
            let text = lines.join("\n");
            let room = Room { bytes, head, tail, fill, noise };
            if let Some(short) = select(&text, kind, room, &NameSet::default(), Handle::of(&text)) {
                prop_assert!(short.len() < text.len());
                let whole: std::collections::HashSet<&str> = text.lines().collect();
                for line in short.lines().filter(|line| !line.starts_with('⟦')) {
                    prop_assert!(whole.contains(line), "{line:?}");
                }
                prop_assert_eq!(select(&short, kind, room, &NameSet::default(), Handle::of(&text)), None);
            }
            // Nothing that is printed makes it stumble.
            ContentKind::of(&text, ToolKind::Bash, &text);
        }
    }
}
