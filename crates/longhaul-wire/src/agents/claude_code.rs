//! Claude Code: a line per content block. Blocks of one answer share its id; results come as
//! user lines between them. Side chains (`isSidechain`) are conversations of their own.

use std::collections::HashMap;

use longhaul::conversation::RecordedCompaction;
use longhaul::{Block, Extra, Json, Message, Role, Seal, ToolCall, ToolResult, Usage};
use serde_json::Value;

use super::build::{
    Step, call, compaction, content, image, number, opaque, result, said, text, thinking, time, timed,
};
use super::{Assemble, Number, Numbered, WRITTEN_FOR_AN_HOUR};

pub(super) fn fits(first: &Value) -> bool {
    // Titles, modes and more begin a file, and new kinds come: all name their session.
    let named = first.get("sessionId").is_some_and(Value::is_string) && first.get("payload").is_none();
    let known = ["user", "assistant", "system", "summary", "file-history-snapshot", "attachment"];
    let placed = ["uuid", "leafUuid", "messageId"].iter().any(|field| first.get(field).is_some());
    let kind = text(first, "type");
    !kind.is_empty() && (named || placed && known.contains(&kind))
}

#[derive(Default)]
pub(super) struct Assembler {
    steps: HashMap<Number, Step>,
    /// Side chains by the agent's id, or by the line that began them.
    chains: HashMap<String, Number>,
    next: Number,
}

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        let number = self.number(&line);
        let numbered =
            |messages: Vec<Message>| messages.into_iter().map(|message| (number, message)).collect();
        match text(&line, "type") {
            "assistant" => numbered(self.assistant(number, &line)),
            "user" => numbered(self.user(number, &line)),
            "attachment" => match line.get("attachment").and_then(attached) {
                Some(said) => {
                    let said = timed(said, time(&line, "timestamp"));
                    numbered(self.steps.entry(number).or_default().aside(said))
                }
                None => Vec::new(),
            },
            "system" if text(&line, "subtype") == "compact_boundary" => {
                let mut messages = self.steps.entry(number).or_default().take();
                messages.extend(compaction("", time(&line, "timestamp")));
                numbered(messages)
            }
            // Progress, snapshots of files, queues: nothing that the model is sent. What hooks say is an attachment.
            _ => Vec::new(),
        }
    }

    fn end(&mut self) -> Vec<Numbered> {
        let mut open: Vec<_> = self.steps.drain().collect();
        open.sort_by_key(|(number, _)| *number);
        open.into_iter()
            .flat_map(|(number, mut step)| step.take().into_iter().map(move |m| (number, m)))
            .collect()
    }
}

impl Assembler {
    fn number(&mut self, line: &Value) -> Number {
        if line.get("isSidechain") != Some(&Value::Bool(true)) {
            return 0;
        }
        let known = [text(line, "agentId"), text(line, "parentUuid")];
        let found = known.iter().filter(|key| !key.is_empty()).find_map(|key| self.chains.get(*key).copied());
        let number = found.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        for key in [text(line, "agentId"), text(line, "uuid")] {
            if !key.is_empty() {
                self.chains.insert(key.to_owned(), number);
            }
        }
        number
    }

    fn assistant(&mut self, number: Number, line: &Value) -> Vec<Message> {
        let Some(message) = line.get("message") else { return Vec::new() };
        let step = self.steps.entry(number).or_default();
        let id = text(message, "id");
        let other = step.id != id || id.is_empty();
        let done = if other { step.take() } else { Vec::new() };
        step.id = id.to_owned();
        step.blocks.extend(content(message.get("content"), block));
        step.model = Some(text(message, "model").to_owned());
        step.usage = message.get("usage").map(usage).or(step.usage.take());
        step.time = step.time.or(time(line, "timestamp"));
        done
    }

    fn user(&mut self, number: Number, line: &Value) -> Vec<Message> {
        let Some(message) = line.get("message") else { return Vec::new() };
        let at = time(line, "timestamp");
        let step = self.steps.entry(number).or_default();
        let blocks = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.as_slice(),
            _ => &[],
        };
        let (results, words): (Vec<&Value>, Vec<&Value>) =
            blocks.iter().partition(|b| text(b, "type") == "tool_result");
        for found in &results {
            step.results.push_back(timed(result_of(found), at));
        }
        if !results.is_empty() && words.is_empty() {
            return Vec::new();
        }
        let blocks = if blocks.is_empty() {
            content(message.get("content"), block)
        } else {
            words.into_iter().map(block).collect()
        };
        let is = |flag: &str| line.get(flag) == Some(&Value::Bool(true));
        let message = if is("isCompactSummary") {
            Message::new(Role::User, blocks).with_recorded_compaction(RecordedCompaction::Summary)
        } else if is("isMeta") || !results.is_empty() {
            Message::new(Role::User, blocks).with_attachment()
        } else {
            said(blocks)
        };
        let message = timed(message, at);
        if message.is_attachment() {
            return step.aside(message);
        }
        let mut messages = step.take();
        messages.push(message);
        messages
    }
}

/// What an attachment says to the model. `None` for one that only the agent reads.
fn attached(attachment: &Value) -> Option<Message> {
    // What a person typed while the model worked.
    if let Some(prompt) = attachment.get("prompt") {
        return Some(said(content(Some(prompt), block)));
    }
    let of = ["content", "stdout", "snippet", "addedBlocks", "addedLines", "addedNames", "blockingError"];
    let value = of.iter().find_map(|field| attachment.get(field))?;
    let mut words = String::new();
    // The file that it is of.
    for field in ["path", "filename"] {
        read_texts(attachment.get(field).unwrap_or(&Value::Null), &mut words);
    }
    let named = words.len();
    read_texts(value, &mut words);
    (words.len() > named).then(|| Message::user(words).with_attachment())
}

/// The texts in a value, a line each: of a list all, of an object what its `content`, `text`, `file`
/// or error holds.
fn read_texts(value: &Value, into: &mut String) {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            into.push_str(if into.is_empty() { "" } else { "\n" });
            into.push_str(text);
        }
        Value::Array(values) => values.iter().for_each(|value| read_texts(value, into)),
        Value::Object(fields) => {
            let mut held =
                ["content", "text", "file", "blockingError"].iter().filter_map(|name| fields.get(*name));
            if let Some(value) = held.next() {
                read_texts(value, into);
            }
        }
        _ => {}
    }
}

/// A block `tool_result` of Anthropic's.
pub(super) fn result_of(found: &Value) -> Message {
    let is_error = found.get("is_error") == Some(&Value::Bool(true));
    result(text(found, "tool_use_id"), None, content(found.get("content"), block), is_error)
}

/// A block of Anthropic's.
pub(super) fn block(value: &Value) -> Block {
    match text(value, "type") {
        "text" => Block::text(text(value, "text")),
        "thinking" => match text(value, "signature") {
            "" => thinking(text(value, "thinking"), Seal::Open),
            signature => thinking(text(value, "thinking"), Seal::Signed(signature.into())),
        },
        "redacted_thinking" => thinking("", Seal::Redacted(Some(text(value, "data").into()))),
        "tool_use" => {
            call(text(value, "id"), text(value, "name"), value.get("input").unwrap_or(&Value::Null))
        }
        "server_tool_use" => {
            let called =
                call(text(value, "id"), text(value, "name"), value.get("input").unwrap_or(&Value::Null));
            match called {
                Block::ToolCall(call) => Block::ToolCall(ToolCall { server: true, ..call }),
                other => other,
            }
        }
        "image" => image(value.get("source").unwrap_or(value)),
        // What a tool said that Anthropic ran itself.
        kind if kind.ends_with("_tool_result") && value.get("tool_use_id").is_some() => {
            let said = value.get("content").unwrap_or(&Value::Null);
            Block::ToolResult(ToolResult {
                id: text(value, "tool_use_id").into(),
                name: None,
                text: "".into(),
                content: Some([opaque(said)].into()),
                is_error: false,
                extra: Extra::NONE,
            })
        }
        _ => opaque(value),
    }
}

/// Usage as Anthropic names it.
pub(super) fn usage(value: &Value) -> Usage {
    let mut extra = Extra::NONE;
    let for_an_hour = value.get("cache_creation").map_or(0, |kept| number(kept, "ephemeral_1h_input_tokens"));
    if for_an_hour > 0 {
        extra.set(WRITTEN_FOR_AN_HOUR, Json::from(&Value::from(for_an_hour)));
    }
    Usage {
        input: number(value, "input_tokens"),
        output: number(value, "output_tokens"),
        cache_read: number(value, "cache_read_input_tokens"),
        cache_write: number(value, "cache_creation_input_tokens"),
        extra,
    }
}
