//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Event, Protocol, Said, Written, list, text};
use crate::cache::{Kind, Mark, Piece};
use crate::script::{Counts, Part};
use crate::twin::{SystemMessages, Threads, Twin};

pub(super) struct Messages;

/// A request may have so many marks of the cache.
const MOST_MARKS: usize = 4;

impl Protocol for Messages {
    fn prompt(&self, body: &Value) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = list(body, "tools").iter().map(|tool| piece("tool", tool)).collect();
        pieces.extend(blocks(&body["system"]).iter().map(|block| piece("system", block)));
        for message in list(body, "messages") {
            let role = text(message, "role");
            pieces.extend(blocks(&message["content"]).iter().map(|block| piece(role, block)));
        }
        pieces
    }

    fn violation(&self, twin: Twin, body: &Value) -> Option<Said> {
        if twin.threads == Threads::Refused && body.get("thread").is_some_and(|thread| !thread.is_null()) {
            let message = "thread: message threads are not supported for this request";
            return Some(Said::invalid(message).with_code("thread_unsupported_request"));
        }
        let marks = marks(body);
        let message = if body.get("max_tokens").is_none_or(|most| !most.is_u64()) {
            Some("max_tokens: Field required".to_owned())
        } else if list(body, "messages").is_empty() {
            Some("messages: at least one message is required".to_owned())
        } else if marks > MOST_MARKS {
            Some(format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}."))
        } else if has_empty_text(body) {
            Some("messages: text content blocks must be non-empty".to_owned())
        } else {
            let messages = list(body, "messages");
            misplaced_system(twin.system, messages).or_else(|| unpaired(messages))
        };
        message.map(Said::invalid)
    }

    fn not_json(&self) -> Said {
        Said::invalid("The request body is not valid JSON: expected value at line 1 column 1")
    }

    fn status(&self, status: u16, model: &str, key: &str) -> Said {
        match status {
            401 => Said::new("authentication_error", format!("invalid x-api-key: {key}")),
            403 => Said::new(
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
            404 => Said::new("not_found_error", format!("model: {model}")),
            413 => Said::new("request_too_large", "Request exceeds the maximum allowed number of bytes."),
            429 => Said::new(
                "rate_limit_error",
                "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
            ),
            529 => Said::new("overloaded_error", "Overloaded"),
            500.. => Said::new("api_error", "Internal server error"),
            _ => Said::invalid(format!("The request was refused with status {status}.")),
        }
    }

    fn too_long(&self, prompt: u64, window: u64) -> Said {
        Said::invalid(format!("prompt is too long: {prompt} tokens > {window} maximum"))
    }

    fn error(&self, said: &Said) -> Value {
        let mut error = json!({ "type": said.kind, "message": said.message });
        if let Some(code) = &said.code {
            error["details"] = json!({ "error_code": code });
        }
        json!({ "type": "error", "error": error, "request_id": "req_fake" })
    }

    fn whole(&self, answer: &Written<'_>) -> Value {
        let content: Vec<Value> = (answer.answer.parts.iter().enumerate())
            .map(|(at, part)| answer_block(answer, at, part))
            .collect();
        let mut whole = head(answer);
        whole["content"] = content.into();
        whole["stop_reason"] = stop(answer).into();
        whole["usage"] = usage(answer.counts, answer.counts.output);
        whole
    }

    fn events(&self, answer: &Written<'_>) -> Vec<Event> {
        let mut start = head(answer);
        start["usage"] = usage(answer.counts, 1);
        let mut events = vec![Event::named(json!({ "type": "message_start", "message": start }))];
        events.extend(self.ping());
        for (at, part) in answer.answer.parts.iter().enumerate() {
            let grows = |delta: Value| {
                Event::named(json!({ "type": "content_block_delta", "index": at, "delta": delta }))
            };
            events.push(Event::named(json!({
                "type": "content_block_start", "index": at, "content_block": begun(answer, at, part),
            })));
            events.extend(deltas(answer, at, part).into_iter().map(grows));
            events.push(Event::named(json!({ "type": "content_block_stop", "index": at })));
        }
        events.push(
            Event::named(json!({
                "type": "message_delta",
                "delta": { "stop_reason": stop(answer), "stop_sequence": null },
                "usage": { "output_tokens": answer.counts.output },
            }))
            .closing(),
        );
        events.push(Event::named(json!({ "type": "message_stop" })).closing());
        events
    }

    fn error_event(&self, said: &Said) -> Event {
        Event::named(self.error(said))
    }

    fn ping(&self) -> Option<Event> {
        Some(Event::named(json!({ "type": "ping" })))
    }
}

/// The marks of the cache in a request.
pub(crate) fn marks(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(marks).sum(),
        Value::Object(fields) => {
            let own = fields.get("cache_control").is_some_and(|mark| !mark.is_null());
            // What a tool takes and is given may have any names.
            let inner = fields.iter().filter(|(name, _)| *name != "input" && *name != "input_schema");
            usize::from(own) + inner.map(|(_, value)| marks(value)).sum::<usize>()
        }
        _ => 0,
    }
}

/// The blocks of a content or of a system prompt.
pub(crate) fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// A block as the cache sees it: its mark is no part of it.
fn piece(role: &str, block: &Value) -> Piece {
    let mut bare = block.clone();
    strip_marks(&mut bare);
    let kind = match text(block, "type") {
        "tool_use" => Kind::Call,
        "tool_result" => Kind::Result,
        _ => Kind::Other,
    };
    Piece { text: format!("{role} {bare}\n"), kind, mark: mark(block) }
}

/// The mark of the cache on a block or inside of it.
fn mark(block: &Value) -> Option<Mark> {
    let is_hour = |block: &Value| block["cache_control"]["ttl"] == "1h";
    let lives_long = is_hour(block) || list(block, "content").iter().any(is_hour);
    (marks(block) > 0).then_some(if lives_long { Mark::Hour } else { Mark::Short })
}

/// Marks the last block, if the request asks for that at its top level.
pub(crate) fn mark_last(body: &Value, pieces: &mut [Piece]) {
    if let (Some(last), Some(mark)) =
        (pieces.last_mut(), mark(&json!({ "cache_control": body["cache_control"] })))
    {
        last.mark = last.mark.max(Some(mark));
    }
}

fn strip_marks(value: &mut Value) {
    if let Some(block) = value.as_object_mut() {
        block.remove("cache_control");
        if let Some(content) = block.get_mut("content").and_then(Value::as_array_mut) {
            content.iter_mut().for_each(strip_marks);
        }
    }
}

fn has_empty_text(body: &Value) -> bool {
    let is_empty = |block: &Value| text(block, "type") == "text" && text(block, "text").is_empty();
    let in_message = |message: &Value| {
        let content = &message["content"];
        content == "" || content.as_array().is_some_and(|blocks| blocks.iter().any(is_empty))
    };
    list(body, "system").iter().any(is_empty) || list(body, "messages").iter().any(in_message)
}

/// The words for a system message that may not stand where it does. A run of them is treated as one message.
fn misplaced_system(rule: SystemMessages, messages: &[Value]) -> Option<String> {
    let is_system = |message: &Value| text(message, "role") == "system";
    if !messages.iter().any(is_system) {
        return None;
    }
    match rule {
        SystemMessages::Anywhere | SystemMessages::First => None,
        SystemMessages::Refused => Some("role 'system' is not supported on this model".to_owned()),
        SystemMessages::BetweenTurns => (0..messages.len()).find_map(|at| not_between_turns(messages, at)),
    }
}

/// The words for the message at this place, if it is a system message that may not stand there.
fn not_between_turns(messages: &[Value], at: usize) -> Option<String> {
    const DIRECTIVE: &str =
        "the directive-only form (content: [] with output_config) is accepted at any position";
    let message = &messages[at];
    let is_system = |message: &Value| text(message, "role") == "system";
    let is_directive = blocks(&message["content"]).is_empty() && message["output_config"].is_object();
    if !is_system(message) || is_directive {
        return None;
    }
    if at == 0 {
        return Some(
            "messages.0: use the top-level 'system' parameter for the initial system prompt".to_owned(),
        );
    }
    let is_server_result = |block: &Value| text(block, "type").ends_with("_tool_result");
    let may_be_followed = |message: &Value| match text(message, "role") {
        "assistant" => blocks(&message["content"]).last().is_some_and(is_server_result),
        role => role == "user",
    };
    let before = messages[..at].iter().rev().find(|message| !is_system(message));
    if !before.is_some_and(may_be_followed) {
        return Some(format!(
            "messages.{at}: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; {DIRECTIVE}"
        ));
    }
    let after = messages[at..].iter().find(|message| !is_system(message));
    after.is_some_and(|message| text(message, "role") != "assistant").then(|| {
        format!(
            "messages.{at}: role 'system' must precede an 'assistant' message or end the array; {DIRECTIVE}"
        )
    })
}

/// The words for a call without its result, or for a result without its call.
fn unpaired(messages: &[Value]) -> Option<String> {
    let ids = |message: &Value, kind: &str, name: &str| -> Vec<String> {
        let of_kind = list(message, "content").iter().filter(|block| text(block, "type") == kind);
        of_kind.map(|block| text(block, name).to_owned()).collect()
    };
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let results = ids(message, "tool_result", "tool_use_id");
        let missing: Vec<&str> = open.iter().filter(|id| !results.contains(id)).map(String::as_str).collect();
        if !missing.is_empty() {
            return Some(without_result(at - 1, &missing));
        }
        if let Some((block, id)) = results.iter().enumerate().find(|(_, id)| !open.contains(id)) {
            return Some(format!(
                "messages.{at}.content.{block}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
        open = ids(message, "tool_use", "id");
    }
    let missing: Vec<&str> = open.iter().map(String::as_str).collect();
    (!missing.is_empty()).then(|| without_result(messages.len() - 1, &missing))
}

fn without_result(at: usize, ids: &[&str]) -> String {
    format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    )
}

/// The message before it has content.
fn head(answer: &Written<'_>) -> Value {
    let mut head = json!({
        "id": answer.id("msg", 0), "type": "message", "role": "assistant", "model": answer.model(),
        "content": [], "stop_reason": null, "stop_sequence": null,
    });
    if let Some(transformations) = &answer.transformations {
        head["input_transformations"] = transformations.clone();
    }
    head
}

/// A block of an answer, whole.
pub(crate) fn answer_block(answer: &Written<'_>, at: usize, part: &Part) -> Value {
    match part {
        Part::Thinking(text) => {
            json!({ "type": "thinking", "thinking": text, "signature": signature(answer, at, text) })
        }
        Part::Sealed(data) => {
            json!({ "type": "redacted_thinking", "data": answer.signature(at).unwrap_or(data) })
        }
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Call { name, arguments } => {
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments.as_str()));
            json!({ "type": "tool_use", "id": answer.id("toolu", at), "name": name, "input": input })
        }
    }
}

/// A block of an answer as a stream begins it.
fn begun(answer: &Written<'_>, at: usize, part: &Part) -> Value {
    match part {
        Part::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        // It comes in one piece.
        Part::Sealed(_) => answer_block(answer, at, part),
        Part::Text(_) => json!({ "type": "text", "text": "" }),
        Part::Call { name, .. } => {
            json!({ "type": "tool_use", "id": answer.id("toolu", at), "name": name, "input": {} })
        }
    }
}

/// What a stream adds to a block.
fn deltas(answer: &Written<'_>, at: usize, part: &Part) -> Vec<Value> {
    match part {
        Part::Thinking(text) => {
            let pieces = answer.pieces(text).into_iter();
            let signed = json!({ "type": "signature_delta", "signature": signature(answer, at, text) });
            pieces
                .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
                .chain([signed])
                .collect()
        }
        Part::Sealed(_) => Vec::new(),
        Part::Text(text) => {
            let pieces = answer.pieces(text).into_iter();
            pieces.map(|piece| json!({ "type": "text_delta", "text": piece })).collect()
        }
        Part::Call { arguments, .. } => {
            let pieces = std::iter::once(String::new()).chain(answer.pieces(arguments));
            pieces.map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect()
        }
    }
}

/// The signature of the thinking at this place: any text that a client must return, if thinking is not bound.
fn signature(answer: &Written<'_>, at: usize, thinking: &str) -> String {
    let unbound = || format!("signature+of+{}+bytes==", thinking.len());
    answer.signature(at).map_or_else(unbound, str::to_owned)
}

fn stop(answer: &Written<'_>) -> String {
    let natural = if answer.answer.has_calls() { "tool_use" } else { "end_turn" };
    answer.answer.stop.clone().unwrap_or_else(|| natural.to_owned())
}

fn usage(counts: Counts, output: u64) -> Value {
    json!({
        "input_tokens": counts.prompt.saturating_sub(counts.cached + counts.written),
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": output,
        "service_tier": "standard",
    })
}
