//! OpenHands `output.jsonl`: a line per conversation, with a `history` of actions and
//! observations. An action of a tool names the model's response that it came from.

use longhaul::{Block, Message, Role, Time, Usage};
use serde_json::Value;

use super::build::{Step, call, compaction, content, number, opaque, result, said, text, time, timed};
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
        let (mut step, mut messages) = (Step::default(), Vec::new());
        for event in history {
            messages.extend(read(event, &mut step));
        }
        messages.extend(step.take());
        messages.into_iter().map(|message| (number, message)).collect()
    }

    fn end(&mut self) -> Vec<Numbered> {
        Vec::new()
    }
}

/// Takes in an event; gives the messages that are complete.
fn read(event: &Value, step: &mut Step) -> Vec<Message> {
    let at = time(event, "timestamp");
    let metadata = event.get("tool_call_metadata");
    let argument = |name: &str| event.pointer(&format!("/args/{name}")).and_then(Value::as_str);
    let alone = |step: &mut Step, message: Message| {
        let mut messages = step.take();
        messages.push(timed(message, at));
        messages
    };
    if event.get("observation").is_some() {
        let content = vec![Block::text(text(event, "content"))];
        return match metadata {
            Some(metadata) => {
                let is_error = text(event, "observation") == "error";
                let (id, name) = (text(metadata, "tool_call_id"), text(metadata, "function_name"));
                step.results.push_back(timed(result(id, Some(name), content, is_error), at));
                Vec::new()
            }
            None if text(event, "content").is_empty() => Vec::new(),
            None => step.aside(timed(Message::new(Role::User, content).with_attachment(), at)),
        };
    }
    match (text(event, "action"), text(event, "source")) {
        ("system", _) => alone(step, Message::system(argument("content").unwrap_or_default())),
        ("message", "user") => {
            let words = argument("content").unwrap_or(text(event, "message"));
            alone(step, said(vec![Block::text(words)]))
        }
        // It made its history shorter: events by their ids, or a summary in their place.
        ("condensation", _) => {
            let mut messages = step.take();
            messages.extend(compaction(argument("summary").unwrap_or_default(), at));
            messages
        }
        (_, "agent") => answer(event, metadata, at, step),
        _ => Vec::new(),
    }
}

/// Calls of one response come as events of their own, each with the whole response.
fn answer(event: &Value, metadata: Option<&Value>, at: Option<Time>, step: &mut Step) -> Vec<Message> {
    let response = metadata.and_then(|metadata| metadata.get("model_response"));
    let said = response.and_then(|response| response.pointer("/choices/0/message"));
    let id = response.map(|response| text(response, "id")).unwrap_or_default();
    let goes_on = !id.is_empty() && step.id == id;
    let done = if goes_on { Vec::new() } else { step.take() };
    if !goes_on {
        step.id = id.to_owned();
        step.blocks = content(said.and_then(|said| said.get("content")), opaque);
        step.blocks.retain(|block| !matches!(block, Block::Text(text) if text.text.is_empty()));
        step.time = at;
        step.model = response.map(|response| text(response, "model").to_owned());
        step.usage = response.and_then(|response| response.get("usage")).map(|usage| Usage {
            input: number(usage, "prompt_tokens"),
            output: number(usage, "completion_tokens"),
            ..Usage::default()
        });
    }
    match metadata {
        Some(metadata) => {
            let id = text(metadata, "tool_call_id");
            let calls = said.and_then(|said| said.get("tool_calls")).and_then(Value::as_array);
            let made = calls.into_iter().flatten().find(|made| text(made, "id") == id);
            let arguments =
                made.and_then(|made| made.pointer("/function/arguments")).or_else(|| event.get("args"));
            step.blocks.push(call(id, text(metadata, "function_name"), arguments.unwrap_or(&Value::Null)));
        }
        None => {
            let words = event.pointer("/args/final_thought").and_then(Value::as_str);
            step.blocks.push(Block::text(words.unwrap_or(text(event, "message"))));
        }
    }
    done
}
