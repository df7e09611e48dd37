//! Code mode: a call whose argument is JavaScript that calls tools itself. Finds the calls that such a script
//! makes, and which part of the script's result each of them printed. Every consumer that wants to know what a
//! call does asks [`made_by`]; what a tool of some name does is not decided here (see `digest::tool`).
//!
//! The reader does not run the script. It reads literals, variables and small functions that hold them, and
//! skips all else. Its work is linear in the size of the script, its depth is bounded, and no input makes it
//! panic.

mod patches;
mod reader;
mod tokens;

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::conversation::json::{Extra, Json};
use crate::conversation::message::{Block, ToolCall, ToolResult};

/// Of a longer script only the start is read, in bytes. Headers of patches are found after it too.
const LONGEST: usize = 512 << 10;
/// Scripts inside scripts are read to this depth.
const DEPTH: usize = 3;
/// The header that the host writes before the output ends within so many bytes.
const HEADER: usize = 400;

/// The calls that one call makes: those of its script, or itself.
#[derive(Debug, Clone)]
pub struct Made<'a> {
    calls: Cow<'a, [ToolCall]>,
    labels: Vec<Label>,
    /// The first call has files of patches that no other call has: nobody knows what it printed.
    begins_with_patches: bool,
}

/// The start of a line that the script prints before an output: what stands before and after the part of it
/// that the script computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    before: String,
    after: String,
    /// The label stands between two outputs, not before each.
    between: bool,
}

/// The calls that a call really makes. A script is replaced by the calls in it, in their order, under the id of
/// the script; any other call, and a script in which no call can be read, is returned as it is.
///
/// ```
/// use longhaul::conversation::made_by;
/// use longhaul::{Block, Json};
/// let script = r#"{"input":"const r = await tools.exec_command({cmd: 'cargo test'}); text(r.output)"}"#;
/// let Block::ToolCall(call) = Block::call("c", "exec", Json::new(script).unwrap()) else { unreachable!() };
/// let made = made_by(&call);
/// assert_eq!(&*made.calls()[0].name, "exec_command");
/// assert_eq!(made.calls()[0].arguments.as_str(), r#"{"cmd":"cargo test"}"#);
/// ```
pub fn made_by(call: &ToolCall) -> Made<'_> {
    read(call, DEPTH).unwrap_or_else(|| {
        let calls = Cow::Borrowed(std::slice::from_ref(call));
        Made { calls, labels: Vec::new(), begins_with_patches: false }
    })
}

fn read(call: &ToolCall, depth: usize) -> Option<Made<'static>> {
    let source = source_of(call)?;
    let script = reader::read(&source[..source.floor_char_boundary(LONGEST)]);
    let mut calls = Vec::with_capacity(script.calls.len() + 1);
    let made = |name, arguments| ToolCall {
        id: call.id.clone(),
        name,
        arguments,
        server: false,
        extra: Extra::NONE,
    };
    for (name, arguments) in script.calls {
        let made = made(name, arguments);
        match depth.checked_sub(1).and_then(|depth| read(&made, depth)) {
            Some(inner) => calls.extend(inner.calls.into_owned()),
            None => calls.push(made),
        }
    }
    let missing = patches::missing(&source, calls.iter().map(|call| call.arguments.as_str()));
    let begins_with_patches = missing.is_some();
    if let Some(patch) = missing {
        let arguments = Json::from(&Value::Object(Map::from_iter([("input".to_owned(), patch.into())])));
        calls.insert(0, made("apply_patch".into(), arguments));
    }
    (!calls.is_empty()).then_some(Made { calls: calls.into(), labels: script.labels, begins_with_patches })
}

/// The JavaScript of a call, if that is what its argument is.
fn source_of(call: &ToolCall) -> Option<String> {
    let name = call.name.rsplit(['.', '/']).next().unwrap_or(&call.name);
    let (server, name) = name.rsplit_once("__").unwrap_or(("", name));
    let is_repl = name == "js" && server.ends_with("repl");
    if call.server || !(name == "exec" || is_repl) {
        return None;
    }
    // Most calls of a tool of such a name are commands: do not parse them.
    let signs = ["tools", "File", "exec", "unlink", "rename", "rm"];
    if !signs.iter().any(|sign| call.arguments.as_str().contains(sign)) {
        return None;
    }
    match call.arguments.value() {
        Value::String(source) => Some(source),
        Value::Object(mut fields) => ["input", "code"].iter().find_map(|name| match fields.remove(*name) {
            Some(Value::String(source)) => Some(source),
            _ => None,
        }),
        _ => None,
    }
}

impl ToolCall {
    /// True if a program that the provider runs made this call, and reads the result in the place of the model
    /// (Anthropic's programmatic tool calling).
    pub fn is_made_by_program(&self) -> bool {
        let caller = self.extra.get("caller").map(Json::value);
        caller.is_some_and(|caller| caller["type"].as_str().is_some_and(|kind| kind != "direct"))
    }
}

impl Made<'_> {
    /// The calls, in their order: at least one.
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// True if the calls are those of a script.
    pub fn is_script(&self) -> bool {
        matches!(self.calls, Cow::Owned(_))
    }

    /// Where in a result's text the output of each call stands, in the order of the calls. A single range is the
    /// output of all calls together. The host's header is in no range.
    pub fn outputs(&self, result: &ToolResult) -> Vec<Range<usize>> {
        self.outputs_in(&result.text, result.content.as_deref())
    }

    /// The same, of a text that stands for the result.
    pub(crate) fn outputs_in(&self, text: &str, blocks: Option<&[Block]>) -> Vec<Range<usize>> {
        if !self.is_script() {
            return vec![Range { start: 0, end: text.len() }];
        }
        let body = header(text);
        let wanted = self.calls.len() - usize::from(self.begins_with_patches);
        let whole = || vec![Range { start: body, end: text.len() }];
        let parts = match wanted {
            0 => return whole(),
            1 => Some(whole()),
            _ => by_blocks(text, blocks, wanted).or_else(|| by_labels(text, body, &self.labels, wanted)),
        };
        let Some(mut parts) = parts else { return whole() };
        if self.begins_with_patches {
            let start = parts[0].start;
            parts.insert(0, start..start);
        }
        parts
    }
}

/// True if a script ended with an error: a call in it failed, or the script itself did.
pub(crate) fn has_failed(result: &ToolResult) -> bool {
    result.is_error || result.text.starts_with("Script failed\n")
}

/// The length of the header that the host writes before what a script printed.
fn header(text: &str) -> usize {
    let start = &text[..text.floor_char_boundary(HEADER)];
    if !start.starts_with("Script ") {
        return 0;
    }
    let Some(at) = start.find("\nOutput:\n") else { return 0 };
    let mut at = at + "\nOutput:\n".len();
    let mut line = |is_header: fn(&str) -> bool| {
        let line = text[at..].split_inclusive('\n').next().unwrap_or_default();
        at += if is_header(line) { line.len() } else { 0 };
    };
    line(|line| line == "\n");
    line(|line| line.starts_with("Warning: truncated output (original token count: "));
    line(|line| line.starts_with("Total output lines: "));
    line(|line| line == "\n");
    at
}

/// The host writes each print as a block of its own, after one with the header.
fn by_blocks(text: &str, blocks: Option<&[Block]>, wanted: usize) -> Option<Vec<Range<usize>>> {
    let blocks = blocks?;
    let mut parts = Vec::with_capacity(blocks.len());
    let mut from = 0;
    for block in blocks {
        let Block::Text(block) = block else { return None };
        let start = from + text.get(from..)?.find(&*block.text)?;
        from = start + block.text.len();
        parts.push(start..from);
    }
    let first = parts.first()?;
    if header(text) >= first.end {
        parts.remove(0);
    }
    (parts.len() == wanted).then_some(parts)
}

/// The script printed a line of its own before each output, or between two.
fn by_labels(text: &str, body: usize, labels: &[Label], wanted: usize) -> Option<Vec<Range<usize>>> {
    let label = |number: usize| match labels {
        [label] => Some(label),
        labels if labels.len() == wanted => labels.get(number),
        _ => None,
    };
    let between = labels.first()?.between;
    let count = if between { wanted - 1 } else { wanted };
    let mut starts: Vec<(usize, usize)> = Vec::with_capacity(count);
    let mut at = body;
    for line in text[body..].split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        // One more than there should be: the output has such lines too, and nobody can tell them apart.
        if label(starts.len().min(count - 1))?.fits(bare) {
            if starts.len() == count {
                return None;
            }
            starts.push((at, at + line.len()));
        }
        at += line.len();
    }
    if starts.len() != count {
        return None;
    }
    let mut from: Vec<usize> = starts.iter().map(|(_, end)| *end).collect();
    let mut to: Vec<usize> = starts.iter().map(|(start, _)| *start).collect();
    if between {
        from.insert(0, body);
    } else {
        to.remove(0);
    }
    to.push(text.len());
    Some(from.into_iter().zip(to).map(|(start, end)| start..end.max(start)).collect())
}

impl Label {
    /// The longest part of a label that the script computes, in bytes.
    const COMPUTED: usize = 80;

    fn new(before: &str, after: &str, between: bool) -> Option<Self> {
        let tells = before.len() + after.len() >= 3 && !before.is_empty();
        tells.then(|| Self { before: before.to_owned(), after: after.to_owned(), between })
    }

    fn fits(&self, line: &str) -> bool {
        let inner = line.strip_prefix(&*self.before).and_then(|rest| rest.strip_suffix(&*self.after));
        inner.is_some_and(|inner| inner.len() <= Self::COMPUTED)
    }
}

#[cfg(test)]
mod tests;
