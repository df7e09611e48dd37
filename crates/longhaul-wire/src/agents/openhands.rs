//! OpenHands `output.jsonl`: a line per conversation, with a `history` of actions and
//! observations. An action of a tool names the model's response that it came from.

use longhaul::{Block, Message, Role, Usage};
use serde_json::Value;

use super::build::{call, content, number, opaque, result, text, time, timed};
use super::{Assemble, Number, Numbered};

pub(super) fn fits(first: &Value) -> bool {
    first.get("history").is_some_and(Value::is_array) && first.get("instance_id").is_some()
}

#[derive(Default)]
pub(super) struct Assembler {
    next: Number,
}

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        let number = self.next;
        self.next += 1;
        let history = line.get("history").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let messages = history.iter().filter_map(read);
        messages.map(|message| (number, message)).collect()
    }

    fn end(&mut self) -> Vec<Numbered> {
        Vec::new()
    }
}

fn read(event: &Value) -> Option<Message> {
    let at = time(event, "timestamp");
    let metadata = event.get("tool_call_metadata");
    let message = if event.get("observation").is_some() {
        let content = vec![Block::text(text(event, "content"))];
        match metadata {
            Some(metadata) => {
                let is_error = text(event, "observation") == "error";
                result(
                    text(metadata, "tool_call_id"),
                    Some(text(metadata, "function_name")),
                    content,
                    is_error,
                )
            }
            None if text(event, "content").is_empty() => return None,
            None => super::build::flag(Message::new(Role::User, content), "attachment"),
        }
    } else {
        match (text(event, "action"), text(event, "source")) {
            ("system", _) => {
                Message::system(event.pointer("/args/content").and_then(Value::as_str).unwrap_or_default())
            }
            ("message", "user") => Message::user(
                event.pointer("/args/content").and_then(Value::as_str).unwrap_or(text(event, "message")),
            ),
            (_, "agent") => answer(event, metadata),
            _ => return None,
        }
    };
    Some(timed(message, at))
}

fn answer(event: &Value, metadata: Option<&Value>) -> Message {
    let response = metadata.and_then(|metadata| metadata.get("model_response"));
    let said = response.and_then(|response| response.pointer("/choices/0/message"));
    let mut blocks = content(said.and_then(|said| said.get("content")), opaque);
    blocks.retain(|block| !matches!(block, Block::Text(text) if text.text.is_empty()));
    match metadata {
        Some(metadata) => {
            let id = text(metadata, "tool_call_id");
            let calls = said.and_then(|said| said.get("tool_calls")).and_then(Value::as_array);
            let made = calls.into_iter().flatten().find(|made| text(made, "id") == id);
            let arguments =
                made.and_then(|made| made.pointer("/function/arguments")).or_else(|| event.get("args"));
            blocks.push(call(id, text(metadata, "function_name"), arguments.unwrap_or(&Value::Null)));
        }
        None => {
            let words = event
                .pointer("/args/final_thought")
                .and_then(Value::as_str)
                .unwrap_or(text(event, "message"));
            blocks.push(Block::text(words));
        }
    }
    let mut answer = Message::new(Role::Assistant, blocks);
    if let Some(usage) = response.and_then(|response| response.get("usage")) {
        answer = answer.with_usage(Usage {
            input: number(usage, "prompt_tokens"),
            output: number(usage, "completion_tokens"),
            ..Usage::default()
        });
    }
    match response.map(|response| text(response, "model")).unwrap_or_default() {
        "" => answer,
        model => answer.with_model(model),
    }
}
