//! The archive: what edits took out, by content. A [`Handle`] names an original; recall reads
//! it back whole, by lines or by pattern. Nothing is copied: a session's own archive knows the
//! places in its log.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Block, Message};
use crate::edits::edit::{Edit, EditKind, EditText};
use crate::edits::ledger::{Ledger, Stretch};
use crate::session::journal::Entry;
use crate::view::keep;

/// The name of an original: the first half of the blake3 hash of its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle([u8; 16]);

impl Handle {
    /// The handle of a text.
    pub fn of(text: &str) -> Self {
        Self::from_hash(&blake3::hash(text.as_bytes()))
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn from_hash(hash: &blake3::Hash) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(&hash.as_bytes()[..16]);
        Self(half)
    }

    /// The short form for a model: twelve digits, unique among millions.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Handle {
    type Err = BadHandle;

    fn from_str(text: &str) -> Result<Self, BadHandle> {
        let digits = text.as_bytes();
        if digits.len() != 32 {
            return Err(BadHandle);
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadHandle)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| BadHandle)?;
        }
        Ok(Self(bytes))
    }
}

/// Not a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handle has 32 hexadecimal digits")]
pub struct BadHandle;

impl Serialize for Handle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Something that was taken out of a view.
#[derive(Debug, Clone)]
pub enum Original {
    /// A block of a message.
    Block(Arc<Message>, usize),
    /// All thinking of a message.
    Thinking(Arc<Message>),
    /// A text that no message of the log has: the host answered by it.
    Text(Arc<str>),
    /// A run of messages, and what was taken out before it, in order.
    Run(Vec<Handle>, Vec<Arc<Message>>),
}

impl Original {
    /// Its handle. Reads all of its text.
    pub fn handle(&self) -> Handle {
        let mut hasher = blake3::Hasher::new();
        self.write(&mut |text| {
            hasher.update(text.as_bytes());
        });
        Handle::from_hash(&hasher.finalize())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut |piece| text.push_str(piece));
        text
    }

    /// Passes on its text, piece by piece. What was taken out before it stands as handles.
    fn write(&self, out: &mut dyn FnMut(&str)) {
        match self {
            Self::Block(message, at) => {
                if let Some(block) = message.blocks().get(*at) {
                    write_block(block, out);
                }
            }
            Self::Thinking(message) => {
                for block in message.blocks().iter().filter(|b| matches!(b, Block::Thinking(_))) {
                    write_block(block, out);
                }
            }
            Self::Text(text) => out(text),
            Self::Run(before, messages) => {
                for handle in before {
                    out(&format!("[{handle}]\n"));
                }
                messages.iter().for_each(|message| write_message(message, out));
            }
        }
    }
}

/// A message in words: who speaks, then each block.
fn write_message(message: &Message, out: &mut dyn FnMut(&str)) {
    for block in message.blocks() {
        out("## ");
        out(message.role().name());
        match block {
            Block::ToolCall(call) => [" calls ", &*call.name, " (", &*call.id, ")\n"].map(&mut *out),
            Block::ToolResult(result) => [" result of ", &*result.id, "", "", "\n"].map(&mut *out),
            Block::Thinking(_) => [" thinks", "", "", "", "\n"].map(&mut *out),
            _ => ["\n", "", "", "", ""].map(&mut *out),
        };
        write_block(block, out);
        out("\n");
    }
}

/// All text of a block, byte for byte.
fn write_block(block: &Block, out: &mut dyn FnMut(&str)) {
    match block {
        Block::Text(b) => out(&b.text),
        Block::Thinking(b) => {
            out(&b.text);
            if let Some(data) = b.seal.data() {
                out("\n");
                out(data);
            }
        }
        Block::ToolCall(b) => out(b.arguments.as_str()),
        Block::ToolResult(b) => {
            out(&b.text);
            for more in
                b.content.as_deref().unwrap_or_default().iter().filter(|b| !matches!(b, Block::Text(_)))
            {
                out("\n");
                write_block(more, out);
            }
        }
        Block::Image(b) => out(b.source.as_str()),
        Block::Opaque(b) => out(b.value.as_str()),
    }
}

/// Texts by their handles. A session is one itself, for all that its edits took out; a store implements
/// it over its own tables, and is asked for what the session does not have. No text means that it is
/// lost: errors of reading are the implementer's to keep.
pub trait Archive: Send + Sync + fmt::Debug {
    /// The text of this handle. Handles of older originals in it are not followed.
    fn get(&self, handle: Handle) -> Option<String>;
    /// The handle that starts like this, if there is exactly one.
    fn find(&self, start: &str) -> Option<Handle>;
}

/// Texts in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryArchive {
    texts: BTreeMap<Handle, Box<str>>,
}

impl MemoryArchive {
    /// Keeps a text; gives its handle.
    pub fn put(&mut self, text: impl Into<Box<str>>) -> Handle {
        let text = text.into();
        let handle = Handle::of(&text);
        self.texts.entry(handle).or_insert(text);
        handle
    }
}

impl Archive for MemoryArchive {
    fn get(&self, handle: Handle) -> Option<String> {
        self.texts.get(&handle).map(|text| text.to_string())
    }

    fn find(&self, start: &str) -> Option<Handle> {
        only_one(self.texts.range(starting(start)?).map(|(handle, _)| *handle))
    }
}

/// All handles that start like this.
fn starting(start: &str) -> Option<RangeInclusive<Handle>> {
    let (mut low, mut high) = ([b'0'; 32], [b'f'; 32]);
    let start = start.to_ascii_lowercase();
    low.get_mut(..start.len())?.copy_from_slice(start.as_bytes());
    high.get_mut(..start.len())?.copy_from_slice(start.as_bytes());
    let parse = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<Handle>().ok();
    Some(parse(&low)?..=parse(&high)?)
}

fn only_one(mut found: impl Iterator<Item = Handle>) -> Option<Handle> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Where in the log an original is.
#[derive(Debug, Clone)]
enum Place {
    Block(Position, usize),
    Thinking(Position),
    /// The text by which the host answered.
    Answer(Arc<Edit>),
    /// Runs of messages, and what was taken out before them.
    Run(Arc<[Handle]>, Arc<[Span]>),
}

/// Where the originals of all edits are: a fold of the journal. Holds no text; the log does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Originals {
    places: BTreeMap<Handle, Place>,
}

impl Originals {
    /// Takes in an entry of the journal. `ledger` is as it was before the entry.
    pub(crate) fn apply(&mut self, entry: &Entry, ledger: &Ledger) {
        if let Entry::Unbound(unbound) = entry {
            for lost in &unbound.lost {
                self.places.entry(lost.original).or_insert(Place::Thinking(lost.at));
            }
        }
        let Entry::Edit(edit) = entry else { return };
        if let EditKind::Answer { text, .. } = &edit.kind {
            self.places.entry(text.handle()).or_insert(Place::Answer(edit.clone()));
        }
        let Some(handle) = edit.originals.first() else { return };
        let place = match &edit.kind {
            EditKind::Digest { at, block, .. }
            | EditKind::DigestArgs { at, block, .. }
            | EditKind::Answer { at, block, .. } => Place::Block(*at, *block),
            EditKind::DropThinking { at } => Place::Thinking(*at),
            EditKind::Fold { spans, .. } | EditKind::Hide { spans, .. } => {
                let (mut before, mut uncovered) = (Vec::new(), Vec::new());
                for stretch in spans.iter().flat_map(|run| ledger.stretches(*run)) {
                    match stretch {
                        Stretch::Edit(id) => {
                            let edit = ledger.get(id).into_iter();
                            before.extend(edit.flat_map(|edit| edit.originals.iter().copied()));
                        }
                        Stretch::Messages(span) => {
                            before.extend(ledger.answers_in(span));
                            uncovered.push(span);
                        }
                    }
                }
                Place::Run(before.into(), uncovered.into())
            }
        };
        self.places.entry(*handle).or_insert(place);
    }

    /// The originals as an archive. The `store` is asked for what the log does not have: answers of the host
    /// that nobody sees now, and texts of other sessions.
    pub(crate) fn of<'a>(&'a self, log: &'a Log, store: Option<&'a dyn Archive>) -> OriginalsOf<'a> {
        OriginalsOf { originals: self, log, store }
    }
}

/// All that the edits of a session took out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OriginalsOf<'a> {
    originals: &'a Originals,
    log: &'a Log,
    store: Option<&'a dyn Archive>,
}

impl OriginalsOf<'_> {
    fn original(&self, handle: Handle) -> Option<Original> {
        Some(match self.originals.places.get(&handle)? {
            Place::Block(at, block) => Original::Block(self.log.get(*at)?.clone(), *block),
            Place::Thinking(at) => Original::Thinking(self.log.get(*at)?.clone()),
            Place::Answer(edit) => match &edit.kind {
                EditKind::Answer { text: EditText::Here(text), .. } => Original::Text(text.clone()),
                _ => return None,
            },
            Place::Run(before, spans) => {
                let messages = spans.iter().flat_map(|span| &self.log.messages()[span.range()]);
                Original::Run(before.to_vec(), messages.cloned().collect())
            }
        })
    }
}

impl Archive for OriginalsOf<'_> {
    fn get(&self, handle: Handle) -> Option<String> {
        match self.original(handle) {
            Some(original) => Some(original.text()),
            None => {
                // What was cut to be kept.
                let kept = keep::all_texts(self.log).into_iter().find(|text| Handle::of(text) == handle);
                kept.or_else(|| self.store?.get(handle))
            }
        }
    }

    fn find(&self, start: &str) -> Option<Handle> {
        self.find_own(start).or_else(|| self.store?.find(start))
    }
}

impl OriginalsOf<'_> {
    fn find_own(&self, start: &str) -> Option<Handle> {
        let range = starting(start)?;
        let known = only_one(self.originals.places.range(range.clone()).map(|(handle, _)| *handle));
        // Texts of facts are many and looked at last: a short form of twelve digits names one thing.
        if known.is_some() && start.len() >= 12 {
            return known;
        }
        let kept = keep::all_texts(self.log).into_iter().map(|text| Handle::of(&text));
        let kept =
            kept.filter(|handle| range.contains(handle) && !self.originals.places.contains_key(handle));
        let mut found: Vec<Handle> = self.originals.places.range(range.clone()).map(|(h, _)| *h).collect();
        found.extend(kept);
        found.sort_unstable();
        found.dedup();
        only_one(found.into_iter())
    }
}

/// What part of an original is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallPart {
    /// All of it.
    Whole,
    /// Lines from a first to a last, both included, counted from 1.
    Lines(usize, usize),
    /// Lines that a regular expression fits, with their numbers.
    Pattern(String),
}

/// Why nothing is recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecallError {
    /// No original has this handle, or several have it.
    #[error("no single original has the handle {0:?}")]
    Unknown(String),
    /// The pattern is not a regular expression.
    #[error("the pattern cannot be read: {0}")]
    Pattern(String),
}

/// Reads an original back. `handle` may be cut short as long as it names one. What was taken out
/// before it stands in its place: all of it is given.
///
/// ```
/// use longhaul::edits::{MemoryArchive, RecallPart, recall};
/// let mut archive = MemoryArchive::default();
/// let handle = archive.put("one\ntwo\nthree");
/// assert_eq!(recall(&archive, &handle.short(), &RecallPart::Lines(2, 3)).unwrap(), "two\nthree");
/// assert_eq!(recall(&archive, &handle.short(), &RecallPart::Pattern("^t".into())).unwrap(), "2:two\n3:three");
/// ```
pub fn recall(archive: &dyn Archive, handle: &str, part: &RecallPart) -> Result<String, RecallError> {
    let unknown = || RecallError::Unknown(handle.chars().take(40).collect());
    let found = handle.parse().ok().or_else(|| archive.find(handle)).ok_or_else(unknown)?;
    let text = expanded(archive, found).ok_or_else(unknown)?;
    match part {
        RecallPart::Whole => Ok(text),
        RecallPart::Lines(first, last) => {
            let lines = lines_of(&text).skip(first.saturating_sub(1));
            let count = last.saturating_add(1).saturating_sub((*first).max(1));
            Ok(lines.take(count).collect::<Vec<_>>().join("\n"))
        }
        RecallPart::Pattern(pattern) => {
            let regex = regex_of(pattern)?;
            // A pattern that ends with `$` fits a line whatever it ends with.
            let fits = |line: &str| regex.is_match(line.strip_suffix('\r').unwrap_or(line));
            let numbered = lines_of(&text).enumerate().filter(|(_, line)| fits(line));
            Ok(numbered.map(|(at, line)| format!("{}:{line}", at + 1)).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The lines of a text, byte for byte: a carriage return is a part of its line.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n')
}

/// A pattern, or what is wrong with it.
pub(crate) fn regex_of(pattern: &str) -> Result<regex::Regex, RecallError> {
    regex::Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        RecallError::Pattern(text.lines().last().unwrap_or_default().trim().to_owned())
    })
}

/// The handles that a text begins with, a line each, and what stands behind them.
fn handles_before(text: &str) -> (Vec<Handle>, &str) {
    let (mut handles, mut rest) = (Vec::new(), text);
    while let Some((line, behind)) = rest.split_once('\n') {
        let digits = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        let Some(handle) = digits.and_then(|digits| digits.parse().ok()) else { break };
        handles.push(handle);
        rest = behind;
    }
    (handles, rest)
}

/// The text of an original with what was taken out before it in the place of its handles, which
/// stand at the start, a line each.
fn expanded(archive: &dyn Archive, handle: Handle) -> Option<String> {
    /// Folds of folds of folds: no conversation has more, and a broken store does not hang.
    const DEEPEST: usize = 1_000;
    fn expand(archive: &dyn Archive, handle: Handle, out: &mut String, deep: usize) -> Option<()> {
        let text = archive.get(handle)?;
        let (older, rest) = handles_before(&text);
        // A result may begin with a line that looks like a handle: only a run has messages behind it.
        let is_run = !older.is_empty() && (rest.is_empty() || rest.starts_with("## ")) && deep < DEEPEST;
        if !is_run {
            out.push_str(&text);
            return Some(());
        }
        for handle in older {
            if expand(archive, handle, out, deep + 1).is_none() {
                out.push_str(&format!("[{handle}]\n"));
            }
        }
        out.push_str(rest);
        Some(())
    }
    let mut out = String::new();
    expand(archive, handle, &mut out, 0)?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::Json;
    use crate::conversation::message::Role;

    #[test]
    fn every_byte_of_a_run_comes_back() {
        let call = Block::call("c1", "Write", Json::new(r#"{"text": "a\tb"}"#).unwrap());
        let run = vec![
            Arc::new(Message::user("do it")),
            Arc::new(Message::new(Role::Assistant, vec![Block::thinking("hm"), call])),
            Arc::new(Message::result("c1", "done\n")),
        ];
        let mut archive = MemoryArchive::default();
        let original = Original::Run(vec![], run);
        let handle = archive.put(original.text());
        assert_eq!(original.handle(), handle);
        let text = recall(&archive, &handle.to_string(), &RecallPart::Whole).unwrap();
        assert_eq!(Handle::of(&text), handle);
        // What was taken out before it is followed.
        let later = archive.put(Original::Run(vec![handle], vec![Arc::new(Message::user("more"))]).text());
        let all = recall(&archive, &later.short(), &RecallPart::Whole).unwrap();
        assert_eq!(all, format!("{text}## user\nmore\n"));
        assert_eq!(
            recall(&archive, &later.short(), &RecallPart::Pattern("a.tb".into())).unwrap(),
            "6:{\"text\": \"a\\tb\"}"
        );
        assert_eq!(
            text,
            "## user\ndo it\n## assistant thinks\nhm\n## assistant calls Write (c1)\n{\"text\": \"a\\tb\"}\n\
             ## tool result of c1\ndone\n\n"
        );
    }

    #[test]
    fn what_cannot_be_recalled_says_why() {
        let mut archive = MemoryArchive::default();
        let handle = archive.put("x");
        let why = |handle: &str, part| recall(&archive, handle, &part).unwrap_err().to_string();
        assert_eq!(why("zz", RecallPart::Whole), "no single original has the handle \"zz\"");
        assert_eq!(
            why("", RecallPart::Pattern("(".into())),
            "the pattern cannot be read: error: unclosed group"
        );
        assert_eq!(recall(&archive, &handle.short(), &RecallPart::Lines(0, 0)).unwrap(), "");
        assert_eq!(recall(&archive, &handle.short(), &RecallPart::Lines(5, usize::MAX)).unwrap(), "");
    }

    #[test]
    fn lines_come_back_with_their_carriage_returns() {
        let mut archive = MemoryArchive::default();
        let handle = archive.put("one\r\ntwo\r\n\rthree\n").short();
        let part = |part| recall(&archive, &handle, &part).unwrap();
        assert_eq!(part(RecallPart::Lines(1, 2)), "one\r\ntwo\r");
        assert_eq!(part(RecallPart::Lines(2, 9)), "two\r\n\rthree");
        assert_eq!(part(RecallPart::Pattern("(one|two)$".into())), "1:one\r\n2:two\r");
    }
}
