//! OpenAI Responses.

use serde_json::{Value, json};

use super::{
    Event, Protocol, Said, Written, list, openai_error, openai_not_json, openai_status, openai_too_long,
    text, unmarked,
};
use crate::cache::Piece;
use crate::script::{Counts, Part};
use crate::twin::{EncryptedReasoning, Twin};

pub(super) struct Responses;

impl Protocol for Responses {
    fn prompt(&self, body: &Value) -> Vec<Piece> {
        let said = [body.get("instructions"), body.get("input").filter(|input| input.is_string())];
        unmarked(list(body, "tools").iter().chain(said.into_iter().flatten()).chain(list(body, "input")))
    }

    fn violation(&self, _: Twin, body: &Value) -> Option<Said> {
        let input = list(body, "input");
        unpaired(input).or_else(|| lonely_reasoning(input)).map(Said::invalid)
    }

    fn not_json(&self) -> Said {
        openai_not_json()
    }

    fn status(&self, status: u16, model: &str, key: &str) -> Said {
        openai_status(status, model, key)
    }

    fn too_long(&self, prompt: u64, window: u64) -> Said {
        openai_too_long(format!(
            "Input tokens exceed the configured limit of {window} tokens. Your messages resulted in {prompt} tokens. Please reduce the length of the messages."
        ))
    }

    fn error(&self, said: &Said) -> Value {
        json!({ "error": openai_error(said) })
    }

    fn whole(&self, answer: &Written<'_>) -> Value {
        response(answer, &items(answer), status(answer))
    }

    fn events(&self, answer: &Written<'_>) -> Vec<Event> {
        let begun = response(answer, &[], "in_progress");
        let mut sent = vec![
            json!({ "type": "response.created", "response": begun }),
            json!({ "type": "response.in_progress", "response": begun }),
        ];
        let items = items(answer);
        for (at, (item, part)) in items.iter().zip(&answer.answer.parts).enumerate() {
            sent.push(
                json!({ "type": "response.output_item.added", "output_index": at, "item": added(answer.twin, item) }),
            );
            sent.extend(growth(answer, at, item, part));
            sent.push(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
        }
        let status = status(answer);
        let ended =
            json!({ "type": format!("response.{status}"), "response": response(answer, &items, status) });
        let events = sent.into_iter().chain([ended]).enumerate().map(|(number, mut event)| {
            event["sequence_number"] = number.into();
            Event::named(event)
        });
        let mut events: Vec<Event> = events.collect();
        let last = events.pop().map(Event::closing);
        events.extend(last);
        events
    }

    fn error_event(&self, said: &Said) -> Event {
        let code = said.code.clone().unwrap_or(said.kind.into());
        let error = json!({ "code": code, "message": said.message });
        Event::named(json!({
            "type": "response.failed",
            "response": { "id": "resp_fake", "object": "response", "status": "failed", "output": [], "error": error, "usage": null },
        }))
    }

    fn ping(&self) -> Option<Event> {
        Some(Event::named(json!({ "type": "keepalive", "sequence_number": 0 })))
    }
}

/// The words for a call without its output, or for an output without its call.
fn unpaired(input: &[Value]) -> Option<String> {
    let id = |item: &'_ Value| text(item, "call_id").to_owned();
    let has = |items: &[Value], kind: &str, of: &Value| {
        items.iter().any(|item| text(item, "type") == kind && id(item) == id(of))
    };
    input.iter().enumerate().find_map(|(at, item)| match text(item, "type") {
        kind @ ("function_call" | "custom_tool_call")
            if !has(&input[at..], &format!("{kind}_output"), item) =>
        {
            Some(format!("No tool output found for function call {}.", id(item)))
        }
        kind @ ("function_call_output" | "custom_tool_call_output")
            if !has(&input[..at], kind.trim_end_matches("_output"), item) =>
        {
            Some(format!("No tool call found for function call output with call_id {}.", id(item)))
        }
        _ => None,
    })
}

/// The words for reasoning that the model's own message or call does not follow.
fn lonely_reasoning(input: &[Value]) -> Option<String> {
    let follows = |item: &Value| match text(item, "type") {
        "message" | "" => text(item, "role") == "assistant",
        "function_call_output" | "custom_tool_call_output" => false,
        _ => true,
    };
    let lonely =
        |at: &usize| text(&input[*at], "type") == "reasoning" && !input.get(at + 1).is_some_and(follows);
    (0..input.len()).find(lonely).map(|at| {
        format!(
            "Item '{}' of type 'reasoning' was provided without its required following item.",
            text(&input[at], "id")
        )
    })
}

/// The response with these items.
fn response(answer: &Written<'_>, output: &[Value], status: &str) -> Value {
    let open = status == "in_progress";
    let details = (status == "incomplete").then(|| json!({ "reason": answer.answer.stop }));
    json!({
        "id": answer.id("resp", 0), "object": "response", "created_at": 1_700_000_000, "status": status,
        "error": null, "incomplete_details": details, "model": answer.model(), "output": output,
        "parallel_tool_calls": true, "store": answer.asked.get("store").cloned().unwrap_or(true.into()),
        "usage": if open { Value::Null } else { usage(answer.counts) },
    })
}

fn status(answer: &Written<'_>) -> &'static str {
    if answer.answer.stop.is_some() { "incomplete" } else { "completed" }
}

/// The items of an answer, whole.
fn items(answer: &Written<'_>) -> Vec<Value> {
    let asks_for_encrypted =
        list(answer.asked, "include").iter().any(|field| field == "reasoning.encrypted_content");
    let item = |(at, part): (usize, &Part)| match part {
        Part::Thinking(text) => {
            let mut item = json!({
                "id": answer.id("rs", at), "type": "reasoning",
                "summary": [{ "type": "summary_text", "text": text }],
            });
            let size = text.len();
            match answer.twin.reasoning {
                EncryptedReasoning::OnRequest if !asks_for_encrypted => {}
                EncryptedReasoning::OnRequest => {
                    item["encrypted_content"] = format!("encrypted+{size}+bytes==").into();
                }
                EncryptedReasoning::Verified => {
                    item["encrypted_content"] =
                        format!("encrypted+{}+{size}+bytes==", answer.id("rs", at)).into();
                }
            }
            item
        }
        Part::Sealed(data) => json!({
            "id": answer.id("rs", at), "type": "reasoning", "summary": [], "encrypted_content": data,
        }),
        Part::Text(text) => json!({
            "id": answer.id("msg", at), "type": "message", "status": "completed", "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Part::Call { name, arguments } => json!({
            "id": answer.id("fc", at), "type": "function_call", "status": "completed",
            "call_id": answer.id("call", at), "name": name, "arguments": arguments,
        }),
    };
    answer.answer.parts.iter().enumerate().map(item).collect()
}

/// An item as a stream adds it, without what comes later.
fn added(twin: Twin, item: &Value) -> Value {
    let mut item = item.clone();
    if twin.reasoning == EncryptedReasoning::Verified && item.get("encrypted_content").is_some() {
        item["encrypted_content"] = "encrypted+unfinished==".into();
    }
    for (name, empty) in [("summary", json!([])), ("content", json!([])), ("arguments", json!(""))] {
        if item.get(name).is_some() {
            item[name] = empty;
        }
    }
    if item.get("status").is_some() {
        item["status"] = "in_progress".into();
    }
    item
}

/// What a stream says between the beginning and the end of an item.
fn growth(answer: &Written<'_>, at: usize, item: &Value, part: &Part) -> Vec<Value> {
    let event = |kind: &str, more: Value| {
        let mut event =
            json!({ "type": format!("response.{kind}"), "item_id": item["id"], "output_index": at });
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
        }
        event
    };
    let deltas = |kind: &str, text: &str, place: Value| -> Vec<Value> {
        let delta = |piece: String| {
            let mut more = place.clone();
            more["delta"] = piece.into();
            event(kind, more)
        };
        answer.pieces(text).into_iter().map(delta).collect()
    };
    let (first, last, grown) = match part {
        Part::Thinking(text) => {
            let piece = |text: &str| json!({ "type": "summary_text", "text": text });
            (
                vec![event("reasoning_summary_part.added", json!({ "summary_index": 0, "part": piece("") }))],
                vec![
                    event("reasoning_summary_text.done", json!({ "summary_index": 0, "text": text })),
                    event("reasoning_summary_part.done", json!({ "summary_index": 0, "part": piece(text) })),
                ],
                deltas("reasoning_summary_text.delta", text, json!({ "summary_index": 0 })),
            )
        }
        Part::Sealed(_) => (Vec::new(), Vec::new(), Vec::new()),
        Part::Text(text) => {
            let piece = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
            (
                vec![event("content_part.added", json!({ "content_index": 0, "part": piece("") }))],
                vec![
                    event("output_text.done", json!({ "content_index": 0, "text": text })),
                    event("content_part.done", json!({ "content_index": 0, "part": piece(text) })),
                ],
                deltas("output_text.delta", text, json!({ "content_index": 0 })),
            )
        }
        Part::Call { arguments, .. } => (
            Vec::new(),
            vec![event("function_call_arguments.done", json!({ "arguments": arguments }))],
            deltas("function_call_arguments.delta", arguments, json!({})),
        ),
    };
    [first, grown, last].concat()
}

fn usage(counts: Counts) -> Value {
    json!({
        "input_tokens": counts.prompt,
        "input_tokens_details": { "cached_tokens": counts.cached },
        "output_tokens": counts.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": counts.prompt + counts.output,
    })
}
