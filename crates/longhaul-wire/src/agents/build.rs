//! Pieces that all formats are put together from.

use std::collections::VecDeque;

use longhaul::conversation::{Image, Opaque, RecordedCompaction, Thinking};
use longhaul::{Block, Extra, Json, Message, Role, Seal, Time, ToolCall, ToolResult, Usage};
use serde_json::Value;

use super::KEPT_MESSAGES;
use crate::speakers::tell_apart;
use crate::transcript::{parse_time, text_of};

/// The text of a field, or nothing.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn time(value: &Value, field: &str) -> Option<Time> {
    value.get(field).and_then(Value::as_str).and_then(parse_time)
}

pub(super) fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

/// A message in the person's place: the person's words, or an attachment of the host.
pub(super) fn said(mut blocks: Vec<Block>) -> Message {
    let of_host = tell_apart(&mut blocks);
    let message = Message::new(Role::User, blocks);
    if of_host { message.with_attachment() } else { message }
}

pub(super) fn timed(message: Message, time: Option<Time>) -> Message {
    match time {
        Some(time) => message.with_time(time),
        None => message,
    }
}

/// What the recorded agent put in the place of what it compacted: a mark, and its summary.
pub(super) fn compaction(summary: &str, time: Option<Time>) -> Vec<Message> {
    let mark = Message::system("[the recorded agent compacted here]");
    let mut messages = vec![timed(mark.with_recorded_compaction(RecordedCompaction::Boundary), time)];
    if !summary.is_empty() {
        let summary = Message::user(summary).with_recorded_compaction(RecordedCompaction::Summary);
        messages.push(timed(summary, time));
    }
    messages
}

/// The same where the agent kept so many of the newest messages beside its summary.
pub(super) fn compaction_beside(kept: usize, summary: &str, time: Option<Time>) -> Vec<Message> {
    let mut messages = compaction(summary, time);
    if kept > 0 && !messages.is_empty() {
        let mut extra = Extra::NONE;
        extra.set(KEPT_MESSAGES, Json::from(&Value::from(kept)));
        let mark = messages.remove(0).with_extra(extra);
        messages.insert(0, mark);
    }
    messages
}

pub(super) fn thinking(text: &str, seal: Seal) -> Block {
    Block::Thinking(Thinking { text: text.into(), seal, extra: Extra::NONE })
}

pub(super) fn opaque(value: &Value) -> Block {
    Block::Opaque(Opaque { value: Json::from(value), extra: Extra::NONE })
}

pub(super) fn image(source: &Value) -> Block {
    let source = Json::from(source);
    let size = crate::transcript::sniffed_size(&source);
    Block::Image(Image { source, size, extra: Extra::NONE })
}

/// A call whose arguments are a JSON value, or text that may be one.
pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Block {
    let arguments = match arguments {
        Value::String(text) => Json::new(text.as_str()).unwrap_or_else(|_| Json::string(text)),
        Value::Null => Json::empty_object(),
        other => Json::from(other),
    };
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        server: false,
        extra: Extra::NONE,
    })
}

/// A result of text, or of blocks where there is more.
pub(super) fn result(id: &str, name: Option<&str>, content: Vec<Block>, is_error: bool) -> Message {
    let text = text_of(&content);
    let more = content.iter().any(|block| !matches!(block, Block::Text(_)));
    let result = ToolResult {
        id: id.into(),
        name: name.filter(|name| !name.is_empty()).map(Into::into),
        text: text.into(),
        content: more.then(|| content.into()),
        is_error,
        extra: Extra::NONE,
    };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}

/// A text, or a list of blocks, as most formats write content.
pub(super) fn content(value: Option<&Value>, block: impl Fn(&Value) -> Block) -> Vec<Block> {
    match value {
        Some(Value::String(text)) => vec![Block::text(text.as_str())],
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![opaque(other)],
    }
}

/// A step that is being put together: an answer, and results that came for it.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Names the answer, where its blocks come one by one.
    pub(super) id: String,
    pub(super) blocks: Vec<Block>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
    pub(super) time: Option<Time>,
    pub(super) results: VecDeque<Message>,
}

impl Step {
    /// The messages, answer first; leaves an empty step.
    pub(super) fn take(&mut self) -> Vec<Message> {
        let step = std::mem::take(self);
        let mut messages = Vec::new();
        if !step.blocks.is_empty() || step.usage.is_some() {
            let mut answer = timed(Message::new(Role::Assistant, step.blocks), step.time);
            if let Some(usage) = step.usage {
                answer = answer.with_usage(usage);
            }
            if let Some(model) = step.model.filter(|model| !model.is_empty()) {
                answer = answer.with_model(model);
            }
            messages.push(answer);
        }
        messages.extend(step.results);
        messages
    }

    /// Something the host said: behind the answer that is being put together, if there is one.
    pub(super) fn aside(&mut self, message: Message) -> Vec<Message> {
        if self.blocks.is_empty() {
            return vec![message];
        }
        self.results.push_back(message);
        Vec::new()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.results.is_empty() && self.usage.is_none()
    }
}
