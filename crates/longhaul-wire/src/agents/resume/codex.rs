//! A rollout of Codex: what the session is, then an item of the Responses API a line.

use std::sync::Arc;

use longhaul::{Message, Role};
use serde_json::{Value, json};

use super::{About, File, Unit, units};
use crate::api::Api;

pub(super) fn write(messages: &[Arc<Message>], about: About<'_>, file: &mut File) {
    let units = units(messages);
    let start = units.first().map(Unit::timestamp).unwrap_or_default();
    let mut meta = json!({
        "id": file.session,
        "timestamp": start,
        "cwd": about.origin.folder,
        "originator": about.origin.said("originator").unwrap_or("longhaul"),
        "cli_version": about.origin.said("cli_version").unwrap_or_default(),
        "source": "cli",
    });
    for name in ["model_provider", "base_instructions", "git"] {
        if let Some(value) = about.origin.fact(name) {
            meta[name] = value.clone();
        }
    }
    let base = meta["base_instructions"]["text"].as_str().unwrap_or_default().to_owned();
    file.line(&json!({"timestamp": start, "type": "session_meta", "payload": meta}));
    for unit in units {
        let first = &unit.messages[0];
        let time = unit.timestamp();
        if first.role() == Role::System && said(first) == base && !base.is_empty() {
            // The session line has them.
            continue;
        }
        let mut body = file.encode(unit.messages, Api::Responses);
        let instructions = body["instructions"].as_str().map(developer);
        let items = body["input"].as_array_mut().map(std::mem::take).unwrap_or_default();
        for item in instructions.into_iter().chain(items.into_iter().map(typed)) {
            file.line(&json!({"timestamp": time, "type": "response_item", "payload": item}));
        }
        if first.role() == Role::User && !unit.is_of_host() {
            let words = first.words().collect::<Vec<_>>().join("\n");
            let event = json!({"type": "user_message", "message": words});
            file.line(&json!({"timestamp": time, "type": "event_msg", "payload": event}));
        }
    }
}

fn said(message: &Message) -> String {
    let texts = message.blocks().iter().filter_map(|block| match block {
        longhaul::Block::Text(text) => Some(&*text.text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn developer(text: &str) -> Value {
    json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]})
}

/// An item with the type that the API lets out, and its content as a list.
fn typed(mut item: Value) -> Value {
    if item.get("type").is_none() {
        item["type"] = json!("message");
    }
    if let Some(text) = item.get("content").and_then(Value::as_str).filter(|_| item["type"] == "message") {
        let kind = if item["role"] == "assistant" { "output_text" } else { "input_text" };
        item["content"] = json!([{"type": kind, "text": text}]);
    }
    item
}
