//! Messages as the APIs write them, without a request around them: one a line, or a JSON array.
//! OpenAI's have `tool_calls` and `tool_call_id`, Anthropic's have blocks `tool_use` and
//! `tool_result`. What is neither is Longhaul's own.

use longhaul::{Block, Message, Role, Seal, Usage};
use serde_json::Value;

use super::build::{call, content, image, number, opaque, result, said, text, thinking, time, timed};
use super::{Assemble, Numbered, claude_code};
use crate::transcript;

/// A list whose elements have roles.
pub(super) fn fits_list(first: &Value) -> bool {
    first.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_message))
}

/// All messages of a list.
pub(super) fn read_list(list: &Value) -> Vec<Numbered> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().flat_map(read).map(|message| (0, message)).collect()
}

/// Whether a line is a message that only an API writes so: Longhaul's own reader would miss its
/// calls and results.
pub(super) fn is_foreign(line: &Value) -> bool {
    is_message(line) && (is_openai(line) || is_anthropic(line))
}

/// A line each.
#[derive(Default)]
pub(super) struct Assembler;

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        read(&line).into_iter().map(|message| (0, message)).collect()
    }

    fn end(&mut self) -> Vec<Numbered> {
        Vec::new()
    }
}

fn is_message(value: &Value) -> bool {
    let says = ["content", "tool_calls", "function_call"].iter().any(|field| value.get(field).is_some());
    value.get("role").is_some_and(Value::is_string) && says
}

fn is_openai(message: &Value) -> bool {
    ["tool_calls", "tool_call_id", "function_call"].iter().any(|field| message.get(field).is_some())
        || matches!(text(message, "role"), "developer" | "function")
}

fn is_anthropic(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    blocks.iter().any(|block| text(block, "type") == "tool_use" || block.get("tool_use_id").is_some())
}

fn read(message: &Value) -> Vec<Message> {
    if !is_message(message) {
        return Vec::new();
    }
    if is_anthropic(message) {
        return from_anthropic(message);
    }
    // What any API writes alike is read as our own. In the person's place harnesses write too: that is told apart.
    let own = if is_openai(message) || text(message, "role") == "user" {
        None
    } else {
        transcript::decode(&message.to_string()).ok()
    };
    vec![own.unwrap_or_else(|| from_openai(message))]
}

fn from_openai(message: &Value) -> Message {
    let mut blocks = content(message.get("content"), openai_block);
    let read = match text(message, "role") {
        "assistant" => {
            let reasoning = ["reasoning_content", "reasoning"].map(|field| text(message, field));
            if let Some(words) = reasoning.into_iter().find(|words| !words.is_empty()) {
                blocks.insert(0, thinking(words, Seal::Open));
            }
            blocks.retain(|block| !matches!(block, Block::Text(text) if text.text.is_empty()));
            let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            let old = message.get("function_call").into_iter();
            for made in calls.chain(old) {
                let function = made.get("function").unwrap_or(made);
                let arguments = function.get("arguments").unwrap_or(&Value::Null);
                blocks.push(call(text(made, "id"), text(function, "name"), arguments));
            }
            Message::new(Role::Assistant, blocks)
        }
        "tool" | "function" => {
            result(text(message, "tool_call_id"), Some(text(message, "name")), blocks, false)
        }
        "system" | "developer" => Message::new(Role::System, blocks),
        _ => said(blocks),
    };
    with_figures(read, message)
}

fn from_anthropic(message: &Value) -> Vec<Message> {
    let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if text(message, "role") == "assistant" {
        let blocks = blocks.iter().map(claude_code::block).collect();
        return vec![with_figures(Message::new(Role::Assistant, blocks), message)];
    }
    let (results, words): (Vec<&Value>, Vec<&Value>) =
        blocks.iter().partition(|block| text(block, "type") == "tool_result");
    let mut messages: Vec<Message> = results.into_iter().map(claude_code::result_of).collect();
    if !words.is_empty() {
        messages.push(said(words.into_iter().map(claude_code::block).collect()));
    }
    messages.into_iter().map(|read| with_figures(read, message)).collect()
}

/// With the time, the model and the usage, where whoever kept the message kept them too.
fn with_figures(read: Message, message: &Value) -> Message {
    let at = ["ts", "timestamp"].into_iter().find_map(|field| time(message, field));
    let mut read = timed(read, at);
    if let Some(usage) = message.get("usage").filter(|usage| usage.is_object()) {
        read = read.with_usage(usage_of(usage));
    }
    match text(message, "model") {
        "" => read,
        model => read.with_model(model),
    }
}

/// Usage as either API names it. OpenAI's prompt counts what was cached too.
fn usage_of(usage: &Value) -> Usage {
    if usage.get("prompt_tokens").is_none() {
        return claude_code::usage(usage);
    }
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens").and_then(Value::as_u64);
    let cached = cached.unwrap_or_default();
    Usage {
        input: number(usage, "prompt_tokens").saturating_sub(cached),
        output: number(usage, "completion_tokens"),
        cache_read: cached,
        ..Usage::default()
    }
}

fn openai_block(value: &Value) -> Block {
    match text(value, "type") {
        "text" | "input_text" | "output_text" => Block::text(text(value, "text")),
        "refusal" => Block::text(text(value, "refusal")),
        "image_url" => image(value),
        _ => opaque(value),
    }
}
