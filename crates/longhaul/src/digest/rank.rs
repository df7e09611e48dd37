//! How much each line of a text is worth to the next steps. Line by line, by kind, in one
//! pass and without backtracking.

use std::sync::OnceLock;

use regex::Regex;

use super::content::ContentKind;
use crate::text::names::{NameSet, names};

/// Noise: dropped first, and the only lines that go from a text which is not too long.
pub(super) const NOISE: u8 = 0;
/// An ordinary line.
pub(super) const PLAIN: u8 = 1;
/// Says where something is, or what there is.
pub(super) const GOOD: u8 = 2;
/// Holds a name that the work has used, or defines one.
pub(super) const BETTER: u8 = 3;
/// A failure, an error, a verdict, a total.
pub(super) const BEST: u8 = 4;

/// Which lines are noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noise {
    /// Progress, repeated lines and data: all that may go before the model has seen a text once.
    Pure,
    /// Tests that passed and reports of packages too.
    Usual,
}

/// The worth of each line.
pub(super) fn ranks(
    kind: ContentKind,
    text: &str,
    lines: &[&str],
    wanted: &NameSet<'_>,
    noise: Noise,
) -> Vec<u8> {
    let mut ranks = Vec::with_capacity(lines.len());
    let looks = !matches!(
        kind,
        ContentKind::Source
            | ContentKind::Hits
            | ContentKind::Listing
            | ContentKind::Diff
            | ContentKind::Blob
    );
    let mut failures = Failures::of(if looks { text } else { "" });
    // A failure says more in the lines right after it.
    let mut after = 0;
    let mut before = "";
    let mut line_before = "";
    for line in lines {
        let bare = without_number(line);
        let trimmed = bare.trim();
        let mut rank = one(kind, line, trimmed, failures.next_line(line.len()));
        if trimmed.len() < 3 {
            rank = rank.min(PLAIN);
        }
        // The same line again and again.
        if !trimmed.is_empty()
            && trimmed == before
            && kind != ContentKind::Source
            && kind != ContentKind::Diff
        {
            rank = NOISE;
        }
        let repeats = *line == line_before;
        if rank == NOISE && noise == Noise::Pure && !repeats && !is_pure_noise(kind, line) {
            rank = PLAIN;
        }
        (before, line_before) = (trimmed, line);
        if rank == BEST
            && matches!(kind, ContentKind::Tests | ContentKind::Build | ContentKind::Log | ContentKind::Plain)
        {
            // A compiler shows the place, the line and what it expected there.
            after = if kind == ContentKind::Build { 5 } else { 3 };
        } else if after > 0 {
            after -= 1;
            rank = rank.max(GOOD);
        }
        if rank < BETTER
            && rank > NOISE
            && !wanted.is_empty()
            && names(trimmed).any(|name| wanted.contains(name))
        {
            rank = BETTER;
        }
        ranks.push(rank);
    }
    ranks
}

fn one(kind: ContentKind, line: &str, trimmed: &str, failure: bool) -> u8 {
    match kind {
        ContentKind::Source => {
            if is_definition(trimmed) {
                BETTER
            } else {
                PLAIN
            }
        }
        ContentKind::Hits => {
            if is_hit(line) {
                GOOD
            } else {
                PLAIN
            }
        }
        ContentKind::Listing => PLAIN,
        ContentKind::Tests => match () {
            () if failure => BEST,
            () if is_pass(trimmed) => NOISE,
            () if is_verdict(trimmed) => BEST,
            () if is_location(trimmed) => GOOD,
            () => PLAIN,
        },
        ContentKind::Build => match () {
            () if failure => BEST,
            () if is_package_noise(trimmed) => NOISE,
            () if is_location(trimmed) => BETTER,
            () if trimmed.contains("warning") => GOOD,
            () => PLAIN,
        },
        ContentKind::Log | ContentKind::Plain | ContentKind::Table => {
            if failure {
                BEST
            } else {
                PLAIN
            }
        }
        ContentKind::Trace => match () {
            () if failure && !is_frame(trimmed) => BEST,
            () if is_frame(trimmed) && !is_library(trimmed) => BETTER,
            () => PLAIN,
        },
        ContentKind::Diff => match () {
            () if line.starts_with("diff --git") || line.starts_with("@@ ") || line.starts_with("+++ ") => {
                BETTER
            }
            () if is_change(line) => GOOD,
            () => PLAIN,
        },
        ContentKind::Git => match () {
            () if failure || trimmed.starts_with("modified:") || trimmed.starts_with("new file:") => BETTER,
            // The subject of a commit says what its number does not.
            () if line.starts_with("    ") && !trimmed.is_empty() => BETTER,
            () if is_log_line(trimmed) => BETTER,
            () if trimmed.starts_with("commit ") || trimmed.contains(" | ") => GOOD,
            () => PLAIN,
        },
        ContentKind::Json => {
            if failure || trimmed.contains("\"name\"") || trimmed.contains("\"path\"") {
                GOOD
            } else {
                PLAIN
            }
        }
        ContentKind::Html | ContentKind::Markdown => match () {
            () if trimmed.starts_with('#') || trimmed.starts_with("<h") || trimmed.starts_with("<title") => {
                BETTER
            }
            () if trimmed.starts_with("```") || trimmed.starts_with("- ") || trimmed.starts_with("* ") => {
                GOOD
            }
            () => PLAIN,
        },
        ContentKind::Packages => match () {
            () if failure => BEST,
            () if is_package_noise(trimmed) => NOISE,
            () => GOOD,
        },
        ContentKind::Blob => NOISE,
    }
}

/// A commit on one line: its number and its subject.
fn is_log_line(trimmed: &str) -> bool {
    let number = trimmed.bytes().take_while(u8::is_ascii_hexdigit).count();
    (7..=40).contains(&number) && trimmed.as_bytes().get(number) == Some(&b' ')
}

/// A line without the number that a tool put before it: `  12→`, `12:`, `12\t`, `12|`.
pub(crate) fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches([' ', '\t']);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 7 {
        return line;
    }
    let rest = &rest[digits..];
    for sign in ["→", "\t", ": ", "| ", " | ", "|"] {
        if let Some(rest) = rest.strip_prefix(sign) {
            return rest;
        }
    }
    line
}

/// `path:12:` or `path-12-`, as searches print.
pub(super) fn is_hit(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    is_path(path) && (digits > 0 && rest[digits..].starts_with(':') || digits == 0 && path.contains('.'))
}

/// A word with a slash or a file ending, and no spaces.
pub(super) fn is_path(text: &str) -> bool {
    let text = text.trim_end();
    !text.is_empty()
        && text.len() < 300
        && !text.contains([' ', '(', '{', '"', '='])
        && !text.contains("://")
        && (text.contains('/')
            || text
                .rsplit_once('.')
                .is_some_and(|(stem, end)| !stem.is_empty() && (1..6).contains(&end.len())))
}

/// A place in a file: `--> src/a.rs:1:2`, `src/a.rs:12:`, `File "a.py", line 3`.
fn is_location(trimmed: &str) -> bool {
    trimmed.starts_with("--> ")
        || trimmed.starts_with("File \"")
        || trimmed.starts_with("at ")
        || is_hit(trimmed)
}

pub(super) fn is_change(line: &str) -> bool {
    (line.starts_with('+') || line.starts_with('-')) && line.len() > 1
}

/// A frame of a stack.
pub(super) fn is_frame(trimmed: &str) -> bool {
    (trimmed.starts_with("at ") && (trimmed.contains('(') || trimmed.contains(':')))
        || trimmed.starts_with("File \"") && trimmed.contains(", line ")
        || trimmed.starts_with("goroutine ")
        || trimmed.split_once(": 0x").is_some_and(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()))
}

/// A frame in code that is not the project's.
fn is_library(trimmed: &str) -> bool {
    ["node_modules", "site-packages", "/rustc/", "java.base", "node:internal", "/usr/lib", ".cargo/registry"]
        .iter()
        .any(|part| trimmed.contains(part))
}

pub(super) fn has_level(line: &str) -> bool {
    let start = &line[..line.floor_char_boundary(80)];
    ["INFO", "WARN", "ERROR", "DEBUG", "TRACE", "FATAL", "[info]", "[error]", "[warn]"]
        .iter()
        .any(|level| start.contains(level))
}

/// A test that passed.
fn is_pass(trimmed: &str) -> bool {
    trimmed.ends_with("... ok")
        || trimmed.ends_with(" PASSED")
        || trimmed.contains(" PASSED ")
        || trimmed.starts_with("✓ ")
        || trimmed.starts_with("✔ ")
        || trimmed.starts_with("--- PASS")
        || trimmed.starts_with("=== RUN")
        || trimmed.starts_with("ok ") && trimmed.as_bytes().get(3).is_some_and(u8::is_ascii_digit)
}

/// What a runner says of all tests.
pub(super) fn is_verdict(trimmed: &str) -> bool {
    trimmed.starts_with("test result:")
        || trimmed.starts_with("Tests:")
        || trimmed.starts_with("Test Suites:")
        || trimmed.starts_with("Tests  ")
        || trimmed.starts_with("--- FAIL")
        || trimmed.starts_with("--- PASS")
        || trimmed.starts_with("FAIL")
        || trimmed.starts_with("not ok ")
        || trimmed.starts_with("Ran ") && trimmed.contains(" test")
        || trimmed.starts_with("test ") && trimmed.contains(" ... ")
        || (trimmed.contains(" passed") || trimmed.contains(" failed"))
            && trimmed.bytes().any(|b| b.is_ascii_digit())
}

pub(super) fn is_build(trimmed: &str) -> bool {
    [
        "Compiling ",
        "Finished ",
        "error[",
        "error:",
        "warning:",
        "Building ",
        "Checking ",
        "make[",
        "[INFO] ",
        "> Task ",
    ]
    .iter()
    .any(|start| trimmed.starts_with(start))
        || trimmed.contains(": error")
        || trimmed.contains(": warning")
}

/// A line that a package manager or a build prints for each thing it does.
pub(super) fn is_package_noise(trimmed: &str) -> bool {
    let (first, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
    is_progress(trimmed)
        || match first {
            "Updating" | "Locking" | "Adding" | "added" => true,
            "Requirement" => rest.starts_with("already satisfied"),
            "Installing" => rest.starts_with("collected"),
            "Created" => rest.starts_with("wheel"),
            "Stored" => rest.starts_with("in directory"),
            "Selecting" => rest.starts_with("previously"),
            "npm" => rest.starts_with("warn deprecated") || rest.starts_with("WARN deprecated"),
            _ => trimmed.contains("#####"),
        }
}

/// A line that says what a package manager or a build does at this moment: nothing of it holds once it is done.
fn is_progress(trimmed: &str) -> bool {
    let (first, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
    match first {
        "Downloading" | "Downloaded" | "Collecting" | "Compiling" | "Unpacking" | "Fetching"
        | "Resolving" | "Extracting" | "Fresh" | "Checking" | "Progress:" => true,
        "Using" => rest.starts_with("cached "),
        "Preparing" => rest.starts_with("metadata") || rest.starts_with("to unpack"),
        "Building" => rest.starts_with("wheel"),
        "Setting" => rest.starts_with("up "),
        "go:" => rest.starts_with("downloading "),
        "npm" => rest.starts_with("http "),
        _ => {
            let is_bar = ["━━━", "███"].iter().any(|bar| trimmed.contains(bar))
                || trimmed.contains("#####") && trimmed.contains('%');
            is_bar || ["Get:", "Hit:", "Ign:"].iter().any(|start| first.starts_with(start))
        }
    }
}

/// A line that no model misses, even before it has seen the text once.
fn is_pure_noise(kind: ContentKind, line: &str) -> bool {
    match kind {
        // A terminal shows the last of the pieces that overwrite one another.
        ContentKind::Build | ContentKind::Packages => {
            line.trim_end().split('\r').all(|piece| is_progress(piece.trim()))
        }
        ContentKind::Blob => {
            let trimmed = line.trim_end();
            trimmed.len() >= BASE64 && is_base64(trimmed) || trimmed.chars().any(is_no_text)
        }
        _ => false,
    }
}

/// A character that no text has: data that was printed.
pub(super) fn is_no_text(c: char) -> bool {
    c.is_control() && !c.is_whitespace() && c != '\u{1b}' || c == '\u{fffd}'
}

/// Lines that speak of an error, a failure or an exception, found in one pass over a text.
pub(crate) struct Failures<'a> {
    found: Option<regex::Matches<'static, 'a>>,
    next: Option<usize>,
    /// Where the line begins that is asked for next.
    at: usize,
}

impl<'a> Failures<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        static SIGNS: OnceLock<Option<Regex>> = OnceLock::new();
        const PATTERN: &str = "error|Error|ERROR|FAIL|failed|Failed|panicked|Exception|exception|Traceback|fatal|\
            FATAL|cannot |Cannot |undefined|not found|No such|denied|assert|✗|✘|❌|xit code|xited with|timed out|\
            Segmentation|unresolved|mismatch";
        // A constant pattern is always read.
        let signs = SIGNS.get_or_init(|| Regex::new(PATTERN).ok());
        let mut found = signs.as_ref().map(|signs| signs.find_iter(text));
        let next = found.as_mut().and_then(Iterator::next).map(|sign| sign.start());
        Self { found, next, at: 0 }
    }

    /// Whether the next line, which is so long, has a sign.
    pub(crate) fn next_line(&mut self, len: usize) -> bool {
        let end = self.at + len;
        let mut has = false;
        while let Some(at) = self.next.filter(|at| *at < end) {
            has |= at >= self.at;
            self.next = self.found.as_mut().and_then(Iterator::next).map(|sign| sign.start());
        }
        self.at = end;
        has
    }
}

/// A line that defines something, in most languages.
pub(super) fn is_definition(trimmed: &str) -> bool {
    let mut rest = trimmed;
    // Words that stand before it.
    let mut qualified = false;
    loop {
        let end = rest
            .bytes()
            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#' | b'@')))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word {
            "pub" if after.starts_with('(') => match after.split_once(") ") {
                Some((_, after)) => rest = after,
                None => return false,
            },
            "pub" | "export" | "default" | "async" | "static" | "public" | "private" | "protected"
            | "abstract" | "final" | "override" | "unsafe" | "inline" | "extern" | "declare" | "internal"
            | "open" | "mutating"
                if after.starts_with(' ') =>
            {
                rest = after.trim_start();
            }
            "fn" | "def" | "class" | "struct" | "enum" | "impl" | "trait" | "interface" | "function"
            | "func" | "type" | "const" | "mod" | "module" | "namespace" | "protocol" | "extension"
            | "record" | "object" | "macro_rules" | "#define" | "service" | "package" => {
                return after.starts_with([' ', '<', '!']);
            }
            "" => return rest.starts_with('[') && rest.trim_end().ends_with(']') && rest.len() > 3,
            _ => return qualified && rest.contains('('),
        }
        qualified = true;
    }
}

/// A line of base64 is at least this long.
pub(super) const BASE64: usize = 60;

pub(super) fn is_base64(line: &str) -> bool {
    line.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_'))
}
