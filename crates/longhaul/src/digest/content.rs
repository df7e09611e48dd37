//! What a tool printed: found from its first lines, the tool and its command line. Decides
//! which lines a digest keeps, and nothing else.

use super::rank::{BASE64, is_base64, is_no_text};
use super::tool::ToolKind;

/// A kind of text that tools print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// A program, with or without line numbers.
    Source,
    /// Lines found by a search: path, number, line.
    Hits,
    /// Names of files.
    Listing,
    /// What a test runner says.
    Tests,
    /// What a compiler, linter or build tool says.
    Build,
    /// Lines with times and levels.
    Log,
    /// An exception and the frames it came through.
    Trace,
    /// Changes to files.
    Diff,
    /// Status, history and other words of git.
    Git,
    /// JSON, on one line or many.
    Json,
    /// Columns.
    Table,
    /// A page.
    Html,
    /// Headings, lists and prose.
    Markdown,
    /// What a package manager says while it works.
    Packages,
    /// Data that nobody reads.
    Blob,
    /// Anything else.
    Plain,
}

impl ContentKind {
    /// All kinds.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 16] = [
        Self::Source,
        Self::Hits,
        Self::Listing,
        Self::Tests,
        Self::Build,
        Self::Log,
        Self::Trace,
        Self::Diff,
        Self::Git,
        Self::Json,
        Self::Table,
        Self::Html,
        Self::Markdown,
        Self::Packages,
        Self::Blob,
        Self::Plain,
    ];

    /// Its name, as digests say it: "95 lines of a diff left out".
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Hits => "search hits",
            Self::Listing => "a listing",
            Self::Tests => "test output",
            Self::Build => "build output",
            Self::Log => "a log",
            Self::Trace => "a stack trace",
            Self::Diff => "a diff",
            Self::Git => "git output",
            Self::Json => "JSON",
            Self::Table => "a table",
            Self::Html => "HTML",
            Self::Markdown => "text",
            Self::Packages => "package manager output",
            Self::Blob => "data",
            Self::Plain => "output",
        }
    }

    /// The kind of a text that this tool printed for this command or path.
    pub fn of(text: &str, tool: ToolKind, command: &str) -> Self {
        let sample = Sample::of(text);
        if sample.is_blob(text) {
            return Self::Blob;
        }
        let by_command = if tool == ToolKind::Bash { of_command(command) } else { None };
        if sample.starts_like_json(text) {
            return Self::Json;
        }
        if sample.share(sample.diff) > 10 && text.contains("@@ ") {
            return Self::Diff;
        }
        if sample.trace >= 3 {
            return Self::Trace;
        }
        match (tool, by_command) {
            (ToolKind::Read, _) if sample.share(sample.numbered) > 50 || is_source_path(command) => {
                return if is_prose_path(command) { Self::Markdown } else { Self::Source };
            }
            (ToolKind::Grep, _) if sample.share(sample.hits) > 30 => return Self::Hits,
            (ToolKind::Ls | ToolKind::Glob, _) => return Self::Listing,
            (_, Some(kind)) => return kind,
            _ => {}
        }
        sample.guess(text)
    }
}

/// What a command line prints, where its first word tells.
fn of_command(command: &str) -> Option<ContentKind> {
    use ContentKind::{Build, Git, Hits, Listing, Packages, Source, Tests};
    // The last of several commands prints what is read last; a pipe's first one says what it is.
    let last = command.rsplit(['\n', ';']).find(|part| !part.trim().is_empty())?;
    let last = last.rsplit("&&").next().unwrap_or(last);
    let first = last.split('|').next().unwrap_or(last);
    let mut words = first.split_whitespace().filter(|word| !word.contains('='));
    let mut word = words.next()?;
    while matches!(
        word,
        "sudo" | "time" | "timeout" | "env" | "npx" | "uv" | "poetry" | "bunx" | "pnpm" | "yarn"
    ) {
        word = words.find(|word| {
            !word.starts_with('-')
                && !word.chars().all(|c| c.is_ascii_digit())
                && *word != "run"
                && *word != "exec"
        })?;
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    let next = words.next().unwrap_or_default();
    let path = first.split_whitespace().last().unwrap_or_default();
    Some(match (name, next) {
        ("pytest" | "jest" | "vitest" | "mocha" | "ctest" | "rspec" | "phpunit" | "tox" | "nosetests", _)
        | (
            "cargo" | "go" | "npm" | "bun" | "deno" | "dotnet" | "mvn" | "gradle" | "make" | "mise" | "swift",
            "test" | "t" | "nextest",
        ) => Tests,
        ("python" | "python3", "-m") if matches!(words.next(), Some("pytest" | "unittest")) => Tests,
        ("pip" | "pip3" | "apt" | "apt-get" | "brew" | "conda" | "gem" | "bundle", _)
        | ("npm" | "bun" | "cargo" | "go", "install" | "i" | "add" | "ci" | "fetch" | "get" | "download") => {
            Packages
        }
        (_, "run" | "start" | "exec") => return None,
        (
            "cargo" | "go" | "npm" | "bun" | "make" | "cmake" | "ninja" | "gradle" | "mvn" | "swift"
            | "dotnet",
            _,
        )
        | (
            "gcc" | "g++" | "clang" | "rustc" | "tsc" | "javac" | "eslint" | "ruff" | "mypy"
            | "golangci-lint" | "xcodebuild" | "biome",
            _,
        ) => Build,
        ("git", "diff" | "show") => return None,
        ("git" | "gh", _) => Git,
        ("rg" | "grep" | "ag" | "ack", _) => Hits,
        ("ls" | "find" | "fd" | "tree" | "du", _) => Listing,
        ("cat" | "sed" | "head" | "tail" | "nl" | "less" | "bat", _) if is_source_path(path) => Source,
        _ => return None,
    })
}

fn is_source_path(path: &str) -> bool {
    const ENDS: [&str; 34] = [
        ".rs", ".py", ".js", ".ts", ".tsx", ".jsx", ".go", ".java", ".kt", ".swift", ".c", ".h", ".cc",
        ".cpp", ".hpp", ".cs", ".rb", ".php", ".scala", ".sh", ".lua", ".ex", ".exs", ".hs", ".ml", ".zig",
        ".vue", ".svelte", ".sql", ".proto", ".nix", ".toml", ".yaml", ".yml",
    ];
    let path = path.trim_end_matches(['"', '\'', ')']);
    ENDS.iter().any(|end| path.ends_with(end))
}

fn is_prose_path(path: &str) -> bool {
    [".md", ".txt", ".rst", ".adoc"].iter().any(|end| path.trim_end_matches(['"', '\'']).ends_with(end))
}

/// Counts over the first lines of a text.
#[derive(Debug, Default)]
struct Sample {
    lines: usize,
    numbered: usize,
    hits: usize,
    diff: usize,
    trace: usize,
    levels: usize,
    tests: usize,
    build: usize,
    packages: usize,
    paths: usize,
    headings: usize,
    tags: usize,
    columns: usize,
    definitions: usize,
}

impl Sample {
    fn of(text: &str) -> Self {
        const LINES: usize = 20;
        let mut sample = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()).take(LINES) {
            sample.lines += 1;
            // What a line is shows at its start.
            let line = &line[..line.floor_char_boundary(400)];
            let bare = super::rank::without_number(line);
            let trimmed = bare.trim_start();
            sample.numbered += usize::from(bare.len() < line.len());
            sample.hits += usize::from(super::rank::is_hit(line));
            sample.diff += usize::from(super::rank::is_change(line));
            sample.trace += usize::from(super::rank::is_frame(trimmed));
            sample.levels += usize::from(super::rank::has_level(line));
            sample.tests += usize::from(super::rank::is_verdict(trimmed));
            sample.build += usize::from(super::rank::is_build(trimmed));
            sample.packages += usize::from(super::rank::is_package_noise(trimmed));
            sample.paths += usize::from(super::rank::is_path(trimmed));
            sample.headings += usize::from(
                trimmed.starts_with('#') || trimmed.starts_with("- ") || trimmed.starts_with("* "),
            );
            sample.tags += usize::from(trimmed.starts_with('<'));
            sample.columns += usize::from(
                trimmed.matches("  ").count() >= 2
                    || trimmed.matches('|').count() >= 2
                    || trimmed.matches('\t').count() >= 2,
            );
            sample.definitions += usize::from(super::rank::is_definition(trimmed));
        }
        sample
    }

    /// In percent of the lines.
    fn share(&self, count: usize) -> usize {
        count * 100 / self.lines.max(1)
    }

    /// Long lines without a space, of the letters of base64, or bytes that are no text.
    fn is_blob(&self, text: &str) -> bool {
        let start = &text[..text.floor_char_boundary(2_000)];
        let strange = start.chars().filter(|c| is_no_text(*c)).count();
        if strange * 10 > start.chars().count() {
            return true;
        }
        // The last line may be cut here.
        let whole = start.trim_end().rsplit_once('\n').map_or(start, |(lines, _)| lines);
        start.len() >= 1_000 && whole.lines().all(|line| line.len() >= BASE64 && is_base64(line))
    }

    fn starts_like_json(&self, text: &str) -> bool {
        let text = text.trim();
        let opens =
            text.starts_with('{') && text.ends_with('}') || text.starts_with('[') && text.ends_with(']');
        opens
            && text[1..].trim_start().starts_with([
                '"', '{', '[', '}', ']', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n',
            ])
            && text.contains('"')
    }

    fn guess(&self, text: &str) -> ContentKind {
        use ContentKind::{
            Build, Diff, Hits, Html, Listing, Log, Markdown, Packages, Plain, Source, Table, Tests,
        };
        match () {
            () if self.share(self.numbered) > 60 => Source,
            () if self.share(self.hits) > 40 => Hits,
            () if text.starts_with("diff --git") || self.share(self.diff) > 40 && text.contains("\n@@ ") => {
                Diff
            }
            () if self.share(self.tests) > 10 && self.tests >= 2 => Tests,
            () if self.share(self.build) > 10 && self.build >= 2 => Build,
            () if self.share(self.levels) > 30 => Log,
            () if self.share(self.packages) > 40 => Packages,
            () if self.share(self.tags) > 40 => Html,
            () if self.share(self.definitions) > 8 && self.definitions >= 3 => Source,
            () if self.share(self.paths) > 60 => Listing,
            () if self.share(self.headings) > 15 && self.headings >= 3 => Markdown,
            () if self.share(self.columns) > 60 => Table,
            () => Plain,
        }
    }
}
