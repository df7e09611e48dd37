//! From a message to a line.

use std::borrow::Cow;

use longhaul::conversation::{RecordedCompaction, Words};
use longhaul::{Block, Extra, Message, Role, Seal, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use crate::speakers::is_like_a_hosts;

/// Writes a message as one line, without the newline: as it was read if nobody touched it,
/// else from its parts, always in the same form.
pub fn encode(message: &Message) -> Cow<'_, str> {
    if let Some(raw) = message.raw(super::FORMAT) {
        return raw;
    }
    // Maps with string keys into memory: nothing here can fail.
    Cow::Owned(serde_json::to_string(&Line(message)).unwrap_or_default())
}

struct Line<'a>(&'a Message);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", message.role().name())?;
        // Said by nobody, it would be looked for in the text when the line is read.
        let is_persons = message.role() == Role::User && !message.is_attachment();
        map.serialize_entry("content", &Blocks(message.blocks(), is_persons))?;
        if let Some(usage) = message.usage() {
            map.serialize_entry("usage", &Usage(usage))?;
        }
        if let Some(model) = message.model() {
            map.serialize_entry("model", model)?;
        }
        if let Some(text) = message.time().and_then(time_text) {
            map.serialize_entry("ts", &text)?;
        }
        let own = message.wire_fields();
        let compaction = message.recorded_compaction().map(|compaction| match compaction {
            RecordedCompaction::Boundary => super::COMPACT,
            RecordedCompaction::Summary => super::COMPACT_SUMMARY,
        });
        let attachment = message.is_attachment().then_some(super::ATTACHMENT);
        for flag in attachment.into_iter().chain(compaction).filter(|flag| own.get(flag).is_none()) {
            map.serialize_entry(flag, &true)?;
        }
        own.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        extra(&mut map, message.extra(), super::is_escaped_in_line)?;
        map.end()
    }
}

pub(crate) fn time_text(time: Time) -> Option<String> {
    jiff::Timestamp::from_microsecond(time.0).ok().map(|stamp| stamp.to_string())
}

struct Usage<'a>(&'a longhaul::Usage);

impl Serialize for Usage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("input", &usage.input)?;
        map.serialize_entry("output", &usage.output)?;
        map.serialize_entry("cache_read", &usage.cache_read)?;
        map.serialize_entry("cache_write", &usage.cache_write)?;
        extra(&mut map, &usage.extra, super::is_escaped)?;
        map.end()
    }
}

/// Blocks, and whether they are a person's.
struct Blocks<'a>(&'a [Block], bool);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for block in self.0 {
            seq.serialize_element(&OneBlock(block, self.1))?;
        }
        seq.end()
    }
}

struct OneBlock<'a>(&'a Block, bool);

impl Serialize for OneBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Block::Text(b) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &b.text)?;
                match b.words {
                    Words::All if self.1 && is_like_a_hosts(&b.text) => {
                        map.serialize_entry(super::WORDS, &[0, b.text.len()])?;
                    }
                    Words::All => {}
                    Words::Part { start, end } => map.serialize_entry(super::WORDS, &[start, end])?,
                    Words::None => map.serialize_entry(super::WORDS, &[(); 0])?,
                }
            }
            Block::Thinking(b) => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("text", &b.text)?;
                match &b.seal {
                    Seal::Open => {}
                    Seal::Signed(signature) => map.serialize_entry("signature", signature)?,
                    Seal::Encrypted(data) => map.serialize_entry("encrypted", data)?,
                    Seal::Redacted(data) => {
                        map.serialize_entry("redacted", &true)?;
                        if let Some(data) = data {
                            map.serialize_entry("data", data)?;
                        }
                    }
                }
            }
            Block::ToolCall(b) => {
                map.serialize_entry("type", "tool_call")?;
                map.serialize_entry("id", &b.id)?;
                map.serialize_entry("name", &b.name)?;
                map.serialize_entry("arguments", &b.arguments)?;
                if b.server {
                    map.serialize_entry("server", &true)?;
                }
            }
            Block::ToolResult(b) => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("id", &b.id)?;
                if let Some(name) = &b.name {
                    map.serialize_entry("name", name)?;
                }
                map.serialize_entry("text", &b.text)?;
                if let Some(content) = &b.content {
                    map.serialize_entry("content", &Blocks(content, false))?;
                }
                if b.is_error {
                    map.serialize_entry("is_error", &true)?;
                }
            }
            Block::Image(b) => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &b.source)?;
                if let Some((width, height)) = b.size {
                    map.serialize_entry("width", &width)?;
                    map.serialize_entry("height", &height)?;
                }
            }
            Block::Opaque(b) => {
                map.serialize_entry("type", "opaque")?;
                map.serialize_entry("value", &b.value)?;
            }
        }
        extra(&mut map, self.0.extra(), super::is_escaped)?;
        map.end()
    }
}

fn extra<M: SerializeMap>(map: &mut M, extra: &Extra, is_escaped: fn(&str) -> bool) -> Result<(), M::Error> {
    extra.iter().try_for_each(|(name, value)| {
        if is_escaped(name) {
            return map.serialize_entry(&format!("+{name}"), value);
        }
        map.serialize_entry(name, value)
    })
}
