//! A session as static pages, to attach to a report: the page with its answers beside it, which opens from disk. What
//! must not leave the machine is taken out of the journal before anything is derived from it, so that no answer can
//! hold it, not even cut in two. Texts, parts and messages are written once, however many requests they stand in.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul::{Entry, Position, Profile};
use longhaul_store::{Form, Meta, SessionId, Store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::assets::ASSETS;
use crate::bundle::bundle;
use crate::call::{CallAnswer, PartView, Sent};
use crate::error::Refused;
use crate::history::History;
use crate::inspector::{Me, without_model};
pub use crate::redact::Redaction;
use crate::session::SessionAnswer;
use crate::sessions::{KnownFigures, SessionRow, Sessions};
use crate::text;

/// Bytes of a file of texts, about.
const FILE: usize = 1 << 20;
/// Calls of a file.
const CALLS: usize = 500;

/// The script of the page as a server has it, and the scripts in its place.
const MODULE: &str = r#"<script src="page/app.js" type="module"></script>"#;
const SCRIPTS: &str = r#"<script src="page/answers.js" defer></script>
<script src="data/session.js" defer></script>
<script src="page/app.js" defer></script>"#;
/// What the page may load, where no server says it.
const POLICY: &str = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:; base-uri 'none'; form-action 'none'">"#;

/// Why there are no pages.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The session cannot be read.
    #[error("{0}")]
    Session(#[from] Refused),
    /// A pattern takes so much that nothing can be read any longer.
    #[error("entry {0} cannot be read without what a pattern takes out: give a narrower pattern")]
    Pattern(usize),
    /// A file cannot be written.
    #[error("{}: {problem}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        problem: io::Error,
    },
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The page to open.
    pub page: PathBuf,
    /// How many calls are in it.
    pub calls: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes a session into a folder, which is made.
pub fn export(
    store: &Arc<dyn Store>,
    id: SessionId,
    profile: Profile,
    redaction: &Redaction,
    folder: &Path,
) -> Result<Exported, ExportError> {
    let (history, meta) = redacted(store, id, without_model(profile), redaction)?;
    let mut files = Files { folder: folder.to_owned(), bytes: 0 };
    let mut texts = Texts::default();
    let messages = messages(&history, &mut texts);
    let count = history.trace.calls.len();
    let mut rows = Rows::default();
    let mut starts = Vec::new();
    let (mut before, mut file) = (Vec::new(), Vec::new());
    for (number, sent) in (1..).zip(Sent::all(&history)) {
        if file.is_empty() {
            starts.push(number);
            before.clear();
        }
        let answer = sent?.answer(&meta);
        file.push(call(answer, &mut rows, &mut texts, &mut before));
        if file.len() == CALLS || number == count {
            files.data(&format!("calls-{}", starts.len() - 1), &std::mem::take(&mut file))?;
        }
    }
    files.data("rows", &rows.written)?;
    files.data("messages", &messages)?;
    let answers = answers(&history, &meta);
    let text_starts = texts.write(&mut files)?;
    files.data(
        "session",
        &json!({ "answers": answers, "texts": text_starts, "calls": starts, "count": count }),
    )?;
    files.page()?;
    Ok(Exported { page: folder.join("index.html"), calls: count, bytes: files.bytes })
}

/// The session without what must not leave the machine.
fn redacted(
    store: &Arc<dyn Store>,
    id: SessionId,
    profile: Profile,
    redaction: &Redaction,
) -> Result<(History, Meta), ExportError> {
    let stored = store.load(id).map_err(Refused::from)?;
    let mut journal = Vec::new();
    store.export(id, Form::Journal, &mut journal).map_err(Refused::from)?;
    let journal =
        String::from_utf8(journal).map_err(|_| Refused::Failed("the journal is no text".to_owned()))?;
    let mut entries = Vec::new();
    for (at, line) in journal.lines().enumerate() {
        entries.push(entry(line, redaction).ok_or(ExportError::Pattern(at))?);
    }
    let clean = |text: &str| redaction.text(text).into_owned();
    let meta = Meta {
        title: clean(&stored.meta.title),
        agent: clean(&stored.meta.agent),
        project: clean(&stored.meta.project),
        model: clean(&stored.meta.model),
        tenant: String::new(),
        ..stored.meta
    };
    // Sizes are those of what was sent.
    Ok((History::of(id, entries, stored.sizes, None, profile)?, meta))
}

/// An entry without what must not leave the machine; `None` if nothing can be read then.
fn entry(line: &str, redaction: &Redaction) -> Option<Entry> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    redaction.value(&mut value);
    // Shorter arguments are JSON inside a text: they must stay JSON.
    if let Some(arguments) = value.pointer_mut("/edit/arguments")
        && let Some(text) = arguments.as_str()
        && serde_json::from_str::<Value>(text).is_err()
    {
        *arguments = Value::from("{}");
    }
    serde_json::from_str(&value.to_string()).ok()
}

/// Answers that are not put together from parts.
fn answers(history: &History, meta: &Meta) -> Value {
    let me = Me {
        version: env!("CARGO_PKG_VERSION"),
        csrf: String::new(),
        can_change: false,
        live: false,
        temporary: false,
        exported: true,
        profile: history.session.profile().name.to_string(),
        profiles: Vec::new(),
    };
    let row = SessionRow::of(meta, false, KnownFigures::of(history));
    let names = |name: &String| if name.is_empty() { Vec::new() } else { vec![name.clone()] };
    let (agents, projects) = (names(&meta.agent), names(&meta.project));
    let sessions = Sessions { sessions: vec![row], agents, projects, total: 1 };
    json!({ "me": me, "sessions": sessions, "session": SessionAnswer::of(history, meta, false, 1) })
}

/// All messages, and the texts of edits that stand in their places.
fn messages(history: &History, texts: &mut Texts) -> Value {
    let count = history.session.log().end().0;
    let message = |at: u32| {
        let message = history.message_row(Position(at))?;
        let blocks = message.blocks.into_iter().map(|block| texts.block(block));
        Some(json!({
            "at": at, "role": message.role, "time": message.time, "tokens": message.tokens,
            "blocks": blocks.collect::<Vec<_>>(), "shown": message.shown,
        }))
    };
    let messages: Vec<Value> = (0..count).filter_map(message).collect();
    let shown = history.trace.edits.iter().filter_map(|life| {
        let text = life.edit.kind.text()?;
        Some((life.edit.id.0.to_string(), Value::from(texts.number(text))))
    });
    json!({ "messages": messages, "edits": shown.collect::<serde_json::Map<_, _>>() })
}

/// A call, its parts as numbers of rows: how many are those of the call before, and then the others.
fn call(mut answer: CallAnswer, rows: &mut Rows, texts: &mut Texts, before: &mut Vec<usize>) -> Value {
    let parts = std::mem::take(&mut answer.parts);
    let tokens: Vec<u64> = parts.iter().map(|part| part.row.tokens).collect();
    let warm = parts.iter().take_while(|part| part.row.warm).count();
    let numbers: Vec<usize> = parts.into_iter().map(|part| rows.number(part, texts)).collect();
    let same = before.iter().zip(&numbers).take_while(|(old, new)| old == new).count();
    let mut written = vec![same];
    written.extend_from_slice(&numbers[same..]);
    *before = numbers;
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.remove("parts");
        fields.insert("rows".to_owned(), json!(written));
        fields.insert("tokens".to_owned(), json!(tokens));
        fields.insert("warm".to_owned(), json!(warm));
    }
    value
}

/// Parts, each once.
#[derive(Default)]
struct Rows {
    written: Vec<Value>,
    numbers: HashMap<[u8; 32], usize>,
}

impl Rows {
    fn number(&mut self, part: PartView, texts: &mut Texts) -> usize {
        let blocks: Vec<Value> = part.blocks.into_iter().map(|block| texts.block(block)).collect();
        let row = part.row;
        let value = json!({
            "source": row.source, "messages": row.messages, "role": row.role, "edits": row.edits,
            "saved": row.tokens_before.saturating_sub(row.tokens), "category": part.category, "tool": part.tool, "blocks": blocks,
        });
        let next = self.written.len();
        let number =
            *self.numbers.entry(*blake3::hash(value.to_string().as_bytes()).as_bytes()).or_insert(next);
        if number == next {
            self.written.push(value);
        }
        number
    }
}

/// Texts, each once.
#[derive(Default)]
struct Texts {
    written: Vec<String>,
    numbers: HashMap<[u8; 32], usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        let next = self.written.len();
        let number = *self.numbers.entry(*blake3::hash(text.as_bytes()).as_bytes()).or_insert(next);
        if number == next {
            self.written.push(text.to_owned());
        }
        number
    }

    /// A block with the number of its text.
    fn block(&mut self, block: text::BlockRow) -> Value {
        let number = self.number(block.text.as_deref().unwrap_or_default());
        let mut value = serde_json::to_value(text::BlockRow { text: None, ..block }).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("text".to_owned(), number.into());
        }
        value
    }

    /// Writes all of them, and gives the number of the first text of each file.
    fn write(self, files: &mut Files) -> Result<Vec<usize>, ExportError> {
        let (mut starts, mut file, mut bytes) = (Vec::new(), Vec::new(), 0);
        let count = self.written.len();
        for (number, text) in self.written.into_iter().enumerate() {
            if file.is_empty() {
                starts.push(number);
            }
            bytes += text.len();
            file.push(text);
            if bytes > FILE || number + 1 == count {
                files.data(&format!("texts-{}", starts.len() - 1), &std::mem::take(&mut file))?;
                bytes = 0;
            }
        }
        Ok(starts)
    }
}

/// The folder that is written.
struct Files {
    folder: PathBuf,
    bytes: u64,
}

impl Files {
    /// A script that gives its value to the page.
    fn data(&mut self, name: &str, value: &impl Serialize) -> Result<(), ExportError> {
        let json = serde_json::to_string(value).map_err(|error| Refused::Failed(error.to_string()))?;
        let script = format!("longhaulExport.take({}, {json})\n", Value::from(name));
        self.write(&format!("data/{name}.js"), script.as_bytes())
    }

    /// The page itself.
    fn page(&mut self) -> Result<(), ExportError> {
        let script = bundle().map_err(Refused::Failed)?;
        for asset in ASSETS {
            match asset.name {
                "index.html" => {
                    let page = String::from_utf8_lossy(asset.bytes);
                    let page =
                        page.replace(MODULE, SCRIPTS).replacen("<head>", &format!("<head>\n{POLICY}"), 1);
                    self.write("index.html", page.as_bytes())?;
                }
                "app.js" => self.write("page/app.js", script.as_bytes())?,
                // The others are in the script.
                name if name.ends_with(".js") && !name.contains('/') => {}
                name => self.write(&format!("page/{name}"), asset.bytes)?,
            }
        }
        self.write("page/answers.js", include_bytes!("../export/answers.js"))
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let path = self.folder.join(name);
        let failed = |problem| ExportError::Write { path: path.clone(), problem };
        path.parent().map_or(Ok(()), make_folder).map_err(failed)?;
        write(&path, bytes).map_err(failed)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Makes a folder for its user alone: conversations are in it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut make = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.recursive(true).create(folder)
}

/// Writes a file that is its user's alone if it is new.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_script_that_an_export_replaces() {
        let page = String::from_utf8_lossy(ASSETS[0].bytes);
        assert_eq!(page.matches(MODULE).count(), 1);
        assert_eq!(page.matches("<head>").count(), 1);
    }
}
