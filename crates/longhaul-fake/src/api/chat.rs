//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{
    Event, Protocol, Said, Written, list, openai_error, openai_not_json, openai_status, openai_too_long,
    text, unmarked,
};
use crate::cache::Piece;
use crate::script::{Counts, Part};
use crate::twin::{SystemMessages, Turns, Twin};

pub(super) struct Chat;

impl Protocol for Chat {
    fn prompt(&self, body: &Value) -> Vec<Piece> {
        unmarked(list(body, "tools").iter().chain(list(body, "messages")))
    }

    fn violation(&self, twin: Twin, body: &Value) -> Option<Said> {
        let messages = list(body, "messages");
        let unpaired = unpaired(messages).map(Said::invalid);
        unpaired.or_else(|| misplaced(twin, messages).map(Said::vllm))
    }

    fn not_json(&self) -> Said {
        openai_not_json()
    }

    fn status(&self, status: u16, model: &str, key: &str) -> Said {
        openai_status(status, model, key)
    }

    fn too_long(&self, prompt: u64, window: u64) -> Said {
        openai_too_long(format!(
            "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. Please reduce the length of the messages."
        ))
    }

    fn error(&self, said: &Said) -> Value {
        json!({ "error": openai_error(said) })
    }

    fn whole(&self, answer: &Written<'_>) -> Value {
        let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
        for (at, part) in answer.answer.parts.iter().enumerate() {
            match part {
                Part::Thinking(text) => add(&mut message, "reasoning_content", text),
                Part::Sealed(_) => {}
                Part::Text(text) => add(&mut message, "content", text),
                Part::Call { name, arguments } => {
                    let call = json!({
                        "id": answer.id("call", at), "type": "function",
                        "function": { "name": name, "arguments": arguments },
                    });
                    match &mut message["tool_calls"] {
                        Value::Array(calls) => calls.push(call),
                        none => *none = json!([call]),
                    }
                }
            }
        }
        let mut whole = head(answer, "chat.completion");
        whole["choices"] =
            json!([{ "index": 0, "message": message, "logprobs": null, "finish_reason": stop(answer) }]);
        whole["usage"] = usage(answer.counts);
        whole
    }

    fn events(&self, answer: &Written<'_>) -> Vec<Event> {
        let with_usage = answer.asked["stream_options"]["include_usage"] == true;
        let chunk = |delta: Value, finish: Value| {
            let mut chunk = head(answer, "chat.completion.chunk");
            chunk["choices"] =
                json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]);
            if with_usage {
                chunk["usage"] = Value::Null;
            }
            Event::bare(chunk)
        };
        let delta = |delta: Value| chunk(delta, Value::Null);
        let mut events = vec![delta(json!({ "role": "assistant", "content": "", "refusal": null }))];
        let mut calls = 0;
        for (at, part) in answer.answer.parts.iter().enumerate() {
            match part {
                Part::Thinking(text) => {
                    let pieces = answer.pieces(text).into_iter();
                    events.extend(pieces.map(|piece| delta(json!({ "reasoning_content": piece }))));
                }
                Part::Sealed(_) => {}
                Part::Text(text) => {
                    let pieces = answer.pieces(text).into_iter();
                    events.extend(pieces.map(|piece| delta(json!({ "content": piece }))));
                }
                Part::Call { name, arguments } => {
                    events.push(delta(json!({ "tool_calls": [{
                        "index": calls, "id": answer.id("call", at), "type": "function",
                        "function": { "name": name, "arguments": "" },
                    }] })));
                    let more = |piece| json!({ "tool_calls": [{ "index": calls, "function": { "arguments": piece } }] });
                    events.extend(answer.pieces(arguments).into_iter().map(|piece| delta(more(piece))));
                    calls += 1;
                }
            }
        }
        events.push(chunk(json!({}), stop(answer).into()).closing());
        if with_usage {
            let mut last = head(answer, "chat.completion.chunk");
            last["choices"] = json!([]);
            last["usage"] = usage(answer.counts);
            events.push(Event::bare(last).closing());
        }
        events.push(Event::done());
        events
    }

    fn error_event(&self, said: &Said) -> Event {
        Event::bare(self.error(said))
    }

    /// Servers of this API send comments.
    fn ping(&self) -> Option<Event> {
        None
    }
}

/// The words for calls without their results, or for a result without its call.
fn unpaired(messages: &[Value]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            let Some(call) = open.iter().position(|call| *call == id) else {
                return Some(format!(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (messages.[{at}].role)."
                ));
            };
            open.remove(call);
            continue;
        }
        if !open.is_empty() {
            break;
        }
        open = list(message, "tool_calls").iter().map(|call| text(call, "id")).collect();
    }
    (!open.is_empty()).then(|| {
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        )
    })
}

/// The words of a chat template for messages in an order that it does not render.
fn misplaced(twin: Twin, messages: &[Value]) -> Option<&'static str> {
    let role = |message: &Value| text(message, "role").to_owned();
    let is_system = |message: &Value| ["system", "developer"].contains(&text(message, "role"));
    if twin.system == SystemMessages::First && messages.iter().skip(1).any(is_system) {
        return Some("System message must be at the beginning.");
    }
    let is_of_tool = |message: &Value| role(message) == "tool" || !list(message, "tool_calls").is_empty();
    let roles =
        messages.iter().skip_while(|message| is_system(message)).filter(|message| !is_of_tool(message));
    let alternate = || roles.enumerate().all(|(at, message)| (role(message) == "user") == (at % 2 == 0));
    (twin.turns == Turns::Alternate && !alternate())
        .then_some("Conversation roles must alternate user/assistant/user/assistant/...")
}

/// What all answers begin with.
fn head(answer: &Written<'_>, object: &str) -> Value {
    json!({
        "id": answer.id("chatcmpl", 0), "object": object, "created": 1_700_000_000,
        "model": answer.model(), "system_fingerprint": "fp_fake",
    })
}

/// Adds to a text of the message.
fn add(message: &mut Value, name: &str, more: &str) {
    message[name] = format!("{}{more}", text(message, name)).into();
}

fn stop(answer: &Written<'_>) -> String {
    let natural = if answer.answer.has_calls() { "tool_calls" } else { "stop" };
    answer.answer.stop.clone().unwrap_or_else(|| natural.to_owned())
}

fn usage(counts: Counts) -> Value {
    json!({
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.output,
        "total_tokens": counts.prompt + counts.output,
        "prompt_tokens_details": { "cached_tokens": counts.cached, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}
