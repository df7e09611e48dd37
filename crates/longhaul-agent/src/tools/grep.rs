//! Grep: lines of files that a regular expression fits. It searches as ripgrep does, with its crates.

use std::collections::BTreeMap;
use std::sync::Mutex;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{BYTES, cut, walk};
use crate::envelope::{Code, Envelope, ToolError};
use crate::project::Project;
use crate::tool::{Effect, FileTool};

pub(crate) struct Grep;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    pattern: String,
    #[serde(default)]
    path: String,
    #[serde(default, alias = "include")]
    glob: Option<String>,
    #[serde(default, alias = "-i")]
    ignore_case: bool,
    #[serde(default, alias = "-C")]
    context: usize,
    #[serde(default)]
    multiline: bool,
    #[serde(default, alias = "output_mode")]
    show: Show,
    #[serde(default, alias = "head_limit")]
    limit: Option<usize>,
}

/// What is shown.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum Show {
    #[default]
    #[serde(alias = "content")]
    Lines,
    #[serde(alias = "files_with_matches")]
    Files,
    #[serde(alias = "count")]
    Counts,
}

/// Matches that are shown if nobody says how many.
const SHOWN: usize = 200;
/// Lines that are shown around a match at most.
const CONTEXT: usize = 20;
/// Bytes of a line, or of a file that an expression over several lines is searched in. What has more is not searched.
const SEARCHED: usize = 64 << 20;

impl FileTool for Grep {
    type Arguments = Arguments;
    const NAME: &'static str = "Grep";
    const DESCRIPTION: &'static str = "Searches the files of the project for a regular expression (as ripgrep does). \
        What git ignores and what is no text is left out. Shows `file:line:text`, or only files or counts.";

    fn schema() -> (Value, &'static [&'static str]) {
        let properties = json!({
            "pattern": { "type": "string", "description": "The regular expression" },
            "path": { "type": "string", "description": "The folder or file to search; the project root if left out" },
            "glob": { "type": "string", "description": "Only files that fit, such as `*.rs`" },
            "ignore_case": { "type": "boolean" },
            "context": { "type": "integer", "description": "Lines to show before and after each match" },
            "multiline": { "type": "boolean", "description": "The expression may go over several lines" },
            "show": { "type": "string", "enum": ["lines", "files", "counts"], "description": "lines if left out" },
            "limit": { "type": "integer", "description": "Matches to show; 200 if left out" },
        });
        (properties, &["pattern"])
    }

    fn effect(_: &Arguments) -> Effect {
        Effect::Reads
    }

    fn run(project: &Project, arguments: Arguments, stop: &CancellationToken) -> Result<Envelope, ToolError> {
        let start = project.place(&arguments.path)?;
        if !start.path().exists() {
            return Err(ToolError::new(Code::NotFound, format!("there is no `{}`", start.shown())));
        }
        let matcher = matcher(&arguments)?;
        let mut searcher = SearcherBuilder::new();
        let context = arguments.context.min(CONTEXT);
        searcher.binary_detection(BinaryDetection::quit(0)).multi_line(arguments.multiline);
        searcher.before_context(context).after_context(context);
        searcher.heap_limit(Some(SEARCHED));
        let found: Mutex<Found> = Mutex::default();
        walk::from(start.path(), arguments.glob.as_deref())?.run(|| {
            let (matcher, mut searcher) = (matcher.clone(), searcher.build());
            let found = &found;
            Box::new(move |entry| {
                let Ok(entry) = entry else { return walk::unless(stop) };
                if entry.file_type().is_some_and(|kind| kind.is_file()) {
                    let mut in_file = InFile::new(arguments.show != Show::Lines);
                    // A file that cannot be read is not searched, as with ripgrep.
                    let searched = searcher.search_path(&matcher, entry.path(), &mut in_file);
                    if searched.is_ok() && in_file.matches > 0 {
                        let path = project.at(entry.path().to_owned()).shown().to_owned();
                        if let Ok(mut found) = found.lock() {
                            found.add(path, in_file);
                        }
                    }
                }
                walk::unless(stop)
            })
        });
        if stop.is_cancelled() {
            return Err(walk::interrupted(Self::NAME));
        }
        Ok(envelope(&found.into_inner().unwrap_or_default(), &arguments))
    }
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(arguments.ignore_case).multi_line(true);
    if arguments.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&arguments.pattern).map_err(|error| {
        let says = error.to_string();
        let says = says.lines().last().unwrap_or_default().trim().to_owned();
        let message = format!("`{}` is no regular expression: {says}", arguments.pattern);
        ToolError::new(Code::InvalidParam, message)
    })
}

/// What was found, by path. Files come in any order, and are shown in that of their paths as far as there is room: lines of
/// a file behind that are counted and not kept.
#[derive(Default)]
struct Found {
    files: BTreeMap<String, InFile>,
    /// Bytes of all lines that are kept.
    bytes: usize,
}

impl Found {
    fn add(&mut self, path: String, file: InFile) {
        self.bytes += file.bytes;
        self.files.insert(path, file);
        let mut behind = self.files.values_mut().rev();
        while let Some(last) = behind.next().filter(|last| self.bytes - last.bytes > BYTES) {
            self.bytes -= std::mem::take(&mut last.bytes);
            last.lines = Vec::new();
        }
    }
}

/// What was found in a file.
struct InFile {
    matches: usize,
    /// Bytes of the lines.
    bytes: usize,
    /// Lines with their numbers; a line without a match has `false`. A gap between two is a `None`.
    lines: Vec<Option<(u64, bool, String)>>,
    only_counts: bool,
}

impl InFile {
    fn new(only_counts: bool) -> Self {
        Self { matches: 0, bytes: 0, lines: Vec::new(), only_counts }
    }

    fn keep(&mut self, first: Option<u64>, bytes: &[u8], is_match: bool) {
        for (number, line) in (first.unwrap_or(1)..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            // No more than this is ever shown.
            if self.only_counts || self.bytes > BYTES {
                return;
            }
            let line = String::from_utf8_lossy(line);
            let line = cut(line.trim_end_matches(['\n', '\r'])).0.into_owned();
            self.bytes += line.len() + 1;
            self.lines.push(Some((number, is_match, line)));
        }
    }
}

impl Sink for InFile {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.matches += 1;
        self.keep(found.line_number(), found.bytes(), true);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.keep(line.line_number(), line.bytes(), false);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        if self.bytes <= BYTES {
            self.lines.push(None);
        }
        Ok(true)
    }
}

fn envelope(found: &Found, arguments: &Arguments) -> Envelope {
    let limit = arguments.limit.filter(|limit| *limit > 0).unwrap_or(SHOWN);
    let found = &found.files;
    let total: usize = found.values().map(|file| file.matches).sum();
    let pattern = arguments.pattern.as_str();
    let (mut plain, mut matches, mut shown) = (String::new(), Vec::new(), 0);
    let mut all = true;
    'files: for (path, file) in found {
        match arguments.show {
            Show::Lines => {
                if file.lines.is_empty() {
                    all = false;
                    break;
                }
                for line in &file.lines {
                    let Some((number, is_match, text)) = line else {
                        plain.push_str("--\n");
                        continue;
                    };
                    if (*is_match && shown == limit) || plain.len() > BYTES {
                        all = false;
                        break 'files;
                    }
                    shown += usize::from(*is_match);
                    let colon = if *is_match { ':' } else { '-' };
                    plain.push_str(&format!("{}{colon}{number}{colon}{text}\n", path));
                    if *is_match {
                        matches.push(json!({ "file": path, "line": number, "text": text }));
                    }
                }
            }
            Show::Files | Show::Counts => {
                if shown == limit || plain.len() > BYTES {
                    all = false;
                    break;
                }
                shown += 1;
                plain.push_str(path);
                if arguments.show == Show::Counts {
                    plain.push_str(&format!(":{}", file.matches));
                }
                plain.push('\n');
                matches.push(json!({ "file": path, "matches": file.matches }));
            }
        }
    }
    let text = format!("{total} matching lines in {} files for `{pattern}`", found.len());
    if total == 0 {
        plain = format!("nothing fits `{pattern}`");
    } else if !all {
        plain.push_str(&format!("… {text}; {shown} are shown\n"));
    }
    Envelope::success(text)
        .with("pattern", pattern)
        .with("matches", matches)
        .with("total", total)
        .with("truncated", !all)
        .plain(plain)
        .partial_if(!all)
}
