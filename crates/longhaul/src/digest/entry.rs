//! Digests on entry, before a result is ever sent: only pure noise goes, and what exceeds the bound of one
//! message. Such an edit breaks no prefix, so it costs nothing and saves at every call. Source stays as it
//! is: what is edited must match. A thrifty profile takes tests that passed too, and the worse half of long
//! outputs.

use std::sync::OnceLock;

use regex::Regex;

use super::content::ContentKind;
use super::head_and_tail;
use super::rank::{NOISE, Noise, ranks};
use super::select::{LONGEST, Room, is_digest, render, select};
use super::tool::ToolKind;
use crate::edits::archive::Handle;
use crate::text::names::NameSet;

/// A text of no more than this enters as it is.
const SMALL: usize = 1_000;
/// A text of more than this is cut without looking at its lines.
pub(crate) const HUGE: usize = 4 << 20;
/// So much of a text is looked at.
const SAMPLE: usize = 8_000;
/// Noise that is worth a mark: so many bytes, and one in so many of the text.
const WORTH: (usize, usize) = (400, 5);

/// How much of a result enters, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Of any result.
    pub(crate) any: usize,
    /// Of what a command printed or a search found, unless it is source: of more than this, the best half.
    /// `None` where the model sees it whole at first.
    pub(crate) output: Option<usize>,
}

/// The digest that a result enters as, if it is not to enter whole: of at most so much, and without noise.
/// `known` finds names in it that the model has written.
pub(crate) fn entry<'a>(
    text: &'a str,
    tool: ToolKind,
    subject: impl FnOnce() -> String,
    most: Most,
    known: impl FnOnce(&'a str) -> NameSet<'a>,
    handle: impl FnOnce() -> Handle,
) -> Option<String> {
    let noise = if most.output.is_some() { Noise::Usual } else { Noise::Pure };
    let (most, long) = (most.any, most.output);
    let giant = text.len() > most;
    let is_output =
        matches!(tool, ToolKind::Bash | ToolKind::Grep | ToolKind::Glob | ToolKind::Ls | ToolKind::Other);
    let long = long.filter(|long| is_output && text.len() > *long);
    // What was read from a file is edited by its lines: all of them stay. Noise is of commands.
    let whole = !matches!(tool, ToolKind::Bash | ToolKind::Other) || text.len() <= SMALL;
    if !giant && long.is_none() && (whole || !may_be_noisy(text) || is_digest(text)) {
        return None;
    }
    // Asked for only now: most results enter whole.
    let handle = handle();
    let cut = || head_and_tail(text, most / 3 * 2, most / 3, handle);
    // What was asked for again is no noise, whatever it looks like: of a giant, a page.
    if text.len() > HUGE || is_digest(text) || tool == ToolKind::Recall {
        return cut();
    }
    let kind = ContentKind::of(text, tool, &subject());
    if let Some(long) = long.filter(|_| kind != ContentKind::Source && !(giant && kind == ContentKind::Blob))
    {
        let room = Room { bytes: long / 2, head: 200, tail: 200, fill: true, noise: Noise::Usual };
        let best = select(text, kind, room, &known(text), handle);
        return best.or_else(|| head_and_tail(text, long / 4, long / 4, handle));
    }
    let (bytes, share) = WORTH;
    if !giant {
        return without_noise(text, kind, noise, bytes.max(text.len().div_ceil(share)), handle);
    }
    let quiet =
        || without_noise(text, kind, noise, text.len() - most, handle).filter(|quiet| quiet.len() <= most);
    if let Some(quiet) = (!whole).then(quiet).flatten() {
        return Some(quiet);
    }
    match kind {
        // What is read as a whole is kept in one piece, as far as it goes.
        ContentKind::Source
        | ContentKind::Markdown
        | ContentKind::Json
        | ContentKind::Html
        | ContentKind::Plain => cut(),
        _ => {
            let room = Room { bytes: most / 4 * 3, head: 100, tail: 100, fill: true, noise };
            select(text, kind, room, &NameSet::default(), handle).or_else(cut)
        }
    }
}

/// A look at a text that costs little: most have no noise at all.
fn may_be_noisy(text: &str) -> bool {
    static SIGNS: OnceLock<Option<Regex>> = OnceLock::new();
    const PATTERN: &str = "\\.\\.\\. ok\n| PASSED|✓ |✔ |=== RUN|--- PASS|Downloading |Downloaded |Compiling |Collecting |\
        Requirement already|Fetching |Unpacking |Setting up |npm warn dep|npm WARN dep|Get:|━━━|███|#####";
    // A constant pattern is always read.
    let signs = SIGNS.get_or_init(|| Regex::new(PATTERN).ok()).as_ref();
    // Where there is noise, it begins soon.
    let text = &text[..text.floor_char_boundary(SAMPLE)];
    let blob = || text.as_bytes()[..SMALL].iter().all(|b| *b == b'\n' || !b.is_ascii_whitespace());
    let repeats = || {
        let mut before = "";
        let same =
            text.lines().filter(|line| std::mem::replace(&mut before, line) == *line && !line.is_empty());
        same.take(20).count() == 20
    };
    signs.is_some_and(|signs| signs.find_iter(text).take(8).count() == 8) || blob() || repeats()
}

/// The text without its noise; `None` if that is fewer bytes than `least`. One line of each run stays, so that
/// it is seen what there was.
fn without_noise(
    text: &str,
    kind: ContentKind,
    noise: Noise,
    least: usize,
    handle: Handle,
) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ranks = ranks(kind, text, &lines, &NameSet::default(), noise);
    let mut kept: Vec<bool> = ranks.iter().map(|rank| *rank != NOISE).collect();
    let mut gone = 0;
    for at in 0..lines.len() {
        kept[at] |= (at == 0 || ranks[at - 1] != NOISE) && lines[at].len() <= LONGEST;
        gone += if kept[at] { 0 } else { lines[at].len() };
    }
    (gone >= least).then(|| render(text, &lines, &kept, kind, handle)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enters(text: &str, tool: ToolKind, command: &str) -> Option<String> {
        enters_as(text, tool, command, None)
    }

    fn enters_as(text: &str, tool: ToolKind, command: &str, output: Option<usize>) -> Option<String> {
        let most = Most { any: 50_000, output };
        entry(text, tool, || command.to_owned(), most, |_| NameSet::default(), || Handle::of(text))
    }

    #[test]
    fn progress_does_not_enter() {
        let pip: String = (0..40)
            .map(|n| format!("Collecting package-{n}\n  Downloading package_{n}.whl (3 kB)\n"))
            .collect();
        let said = "Requirement already satisfied: six (1.16.0)\nERROR: no matching distribution\n";
        let short = enters(&format!("{pip}{said}"), ToolKind::Bash, "pip install x").unwrap();
        assert!(short.len() < 200 && short.ends_with(said), "{short}");
        // A terminal shows the last piece of such a line.
        let bars = |last: &str| {
            let bars = |file: usize| {
                (0..20).map(move |n| format!("Downloading {file} ━━━ {n}%\r")).collect::<String>()
            };
            (0..3).map(|file| format!("{}{last}\n", bars(file))).collect::<String>()
        };
        let done = format!("Collecting a\nCollecting b\n{}", bars("Successfully installed a-1.0"));
        assert_eq!(enters(&done, ToolKind::Bash, "pip install a"), None);
        let done = format!("Collecting a\nCollecting b\n{}Done.\n", bars("Downloading a 100%"));
        assert!(enters(&done, ToolKind::Bash, "pip install a").unwrap().ends_with("⟧\nDone.\n"));
    }

    #[test]
    fn tests_that_passed_enter_where_the_model_sees_results_whole() {
        let mut text: String = (0..60).map(|n| format!("test parse::case_{n} ... ok\n")).collect();
        text += "test parse::empty ... FAILED\n\ntest result: FAILED. 60 passed; 1 failed\n";
        assert_eq!(enters(&text, ToolKind::Bash, "cargo test"), None);
        let short = enters_as(&text, ToolKind::Bash, "cargo test", Some(16_000)).unwrap();
        assert!(
            short.starts_with("test parse::case_0 ... ok\n⟦59 lines of test output left out; recall "),
            "{short}"
        );
        assert!(
            short.ends_with("test parse::empty ... FAILED\n\ntest result: FAILED. 60 passed; 1 failed\n"),
            "{short}"
        );
        // As many as there is room for, and what failed.
        let text: String = (0..3_000).map(|n| format!("test parse::case_{n} ... ok\n")).collect();
        let text = text.replace("case_1700 ... ok", "case_1700 ... FAILED");
        let short = enters(&text, ToolKind::Bash, "cargo test").unwrap();
        assert!(short.len() > 37_000 && short.contains("case_1700 ... FAILED"), "{}", short.len());
    }

    #[test]
    fn errors_among_noise_enter() {
        let mut text: String = (0..60).map(|n| format!("Downloading part {n}\n")).collect();
        text += "Results: 3 FAILED, 57 PASSED in 2s\n";
        assert!(enters(&text, ToolKind::Bash, "npm install").unwrap().contains("3 FAILED, 57 PASSED"));
        let text: String = (0..60).map(|n| format!("Fetching https://x/{n} … error 500\n")).collect();
        assert_eq!(enters(&text, ToolKind::Bash, "npm run scrape"), None);
        let text = "waiting for server\n".repeat(500);
        assert!(enters(&text, ToolKind::Bash, "./wait").unwrap().len() < 100);
        // Lines that only look alike without their numbers or their indent are not repeated.
        let text: String = (0..500).map(|n| format!("{n}: 0\n")).collect();
        assert_eq!(enters(&text, ToolKind::Bash, "./count"), None);
        // A giant is cut whatever it says of itself.
        let text = format!("⟦9 lines of a log left out; recall 0123456789ab⟧\n{}", "word ".repeat(20_000));
        assert!(enters(&text, ToolKind::Other, "").unwrap().len() < 51_000);
    }

    #[test]
    fn data_does_not_enter() {
        let blob = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=".repeat(100);
        let short = enters(&blob, ToolKind::Other, "").unwrap();
        assert!(short.starts_with("⟦1 line (3600 bytes) of data left out; recall "), "{short}");
        let wrapped =
            format!("{}\n", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2").repeat(60);
        assert!(enters(&wrapped, ToolKind::Bash, "base64 a.png").unwrap().len() < 200);
        // What stands among data enters.
        let also = format!("{wrapped}done: 60 lines\n\n{wrapped}");
        let short = enters(&also, ToolKind::Bash, "base64 a.png; base64 b.png").unwrap();
        assert!(short.len() < 350 && short.contains("\ndone: 60 lines\n"), "{short}");
        // A giant fits without it.
        let giant = format!("{}{}", "Downloading a part of it\n".repeat(4_000), "What was found.\n");
        assert!(enters(&giant, ToolKind::Bash, "npm install").unwrap().ends_with("⟧\nWhat was found.\n"));
    }

    #[test]
    fn source_and_small_things_enter_whole() {
        let source: String = (0..400).map(|n| format!("{n:6}→    let value_{n} = \"... ok\n\";\n")).collect();
        assert_eq!(enters(&source, ToolKind::Read, "src/a.rs"), None);
        assert_eq!(enters(&"the same line\n".repeat(500), ToolKind::Read, ""), None);
        assert_eq!(enters("test a ... ok\n", ToolKind::Bash, "cargo test"), None);
        let output: String = (0..400).map(|n| format!("value {n}\n")).collect();
        assert_eq!(enters(&output, ToolKind::Bash, "./run"), None);
    }

    #[test]
    fn what_was_recalled_enters_whole_or_as_a_page() {
        let line = |n: usize| format!("test parse::case_{n} ... ok\n");
        let text: String = (0..600).map(line).collect();
        assert!(enters_as(&text, ToolKind::Bash, "cargo test", Some(16_000)).is_some());
        assert_eq!(enters_as(&text, ToolKind::Recall, "", Some(16_000)), None);
        let giant: String = (0..6_000).map(line).collect();
        let page = enters(&giant, ToolKind::Recall, "").unwrap();
        let (head, tail) = page.split_once('⟦').unwrap();
        let (mark, tail) = tail.split_once("⟧\n").unwrap();
        assert!(page.len() <= 50_100 && mark.contains(" left out; recall "), "{mark}");
        assert!(
            giant.starts_with(head) && giant.ends_with(tail) && head.len() > 30_000 && tail.len() > 15_000
        );
    }

    #[test]
    fn a_giant_of_many_lines_keeps_its_failures() {
        let mut text: String =
            (0..4_000).map(|n| format!("2026-03-02 10:00:00 INFO tick {n} of the clock\n")).collect();
        text.insert_str(100_000, "\n2026-03-02 10:00:01 ERROR disk full\n");
        let short = enters(&text, ToolKind::Bash, "tail -4000 app.log").unwrap();
        assert!(short.contains("ERROR disk full") && short.len() < 50_000, "{}", short.len());
        let source = "fn a() {}\n".repeat(10_000);
        let short = enters(&source, ToolKind::Read, "src/a.rs").unwrap();
        assert!(short.len() < 50_200 && short.matches('⟦').count() == 1);
    }
}
