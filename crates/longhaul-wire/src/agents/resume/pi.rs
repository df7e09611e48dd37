//! A session of pi: what it is, then an entry a line, each naming the one before.

use std::sync::Arc;

use longhaul::{Message, Role};
use serde_json::{Value, json};

use super::{About, File, Unit, blocks, units};

/// The version of pi's format.
const VERSION: u64 = 3;

pub(super) fn write(messages: &[Arc<Message>], about: About<'_>, file: &mut File) {
    let units = units(messages);
    let start = units.first().map(Unit::timestamp).unwrap_or_default();
    file.line(&json!({
        "type": "session",
        "version": VERSION,
        "id": file.session,
        "timestamp": start,
        "cwd": about.origin.folder,
    }));
    let mut parent = Value::Null;
    for unit in units {
        if unit.role() == Role::System {
            file.left_out.push("system messages: pi has its own".to_owned());
            continue;
        }
        let milliseconds = unit.time.0 / 1_000;
        for message in unit.anthropic(file) {
            for mut entry in entries(&message, &unit, about) {
                let id = file.next_id();
                entry["id"] = json!(id[..8]);
                entry["parentId"] = parent;
                entry["timestamp"] = json!(unit.timestamp());
                if let Some(message) = entry.get_mut("message") {
                    message["timestamp"] = json!(milliseconds);
                }
                parent = entry["id"].clone();
                file.line(&entry);
            }
        }
    }
}

/// The entries of a message of Anthropic's: results stand apart from words.
fn entries(message: &Value, unit: &Unit<'_>, about: About<'_>) -> Vec<Value> {
    let entry = |message: Value| json!({"type": "message", "message": message});
    let blocks = blocks(message);
    if message["role"] == "assistant" {
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        let (provider, api) = provider(about);
        let nothing = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
        return vec![entry(json!({
            "role": "assistant",
            "content": blocks.iter().filter_map(block).collect::<Vec<_>>(),
            "api": api,
            "provider": provider,
            "model": about.model,
            "usage": {
                "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": nothing,
            },
            "stopReason": if calls { "toolUse" } else { "stop" },
        }))];
    }
    let (results, words): (Vec<&Value>, Vec<&Value>) =
        blocks.iter().partition(|block| block["type"] == "tool_result");
    let mut entries: Vec<Value> = results.into_iter().map(|found| entry(result(found, unit))).collect();
    let words: Vec<Value> = words.into_iter().filter_map(block).collect();
    if unit.is_of_host() && !words.is_empty() {
        entries.push(json!({
            "type": "custom_message", "customType": "longhaul", "content": words, "display": true,
        }));
    } else if !words.is_empty() {
        entries.push(entry(json!({"role": "user", "content": words})));
    }
    entries
}

fn result(found: &Value, unit: &Unit<'_>) -> Value {
    let call = unit.messages[0].calls().find(|call| found["tool_use_id"] == *call.id);
    json!({
        "role": "toolResult",
        "toolCallId": found["tool_use_id"],
        "toolName": call.map_or("", |call| &call.name),
        "content": blocks(found).iter().filter_map(block).collect::<Vec<_>>(),
        "isError": found["is_error"].as_bool().unwrap_or_default(),
    })
}

fn block(block: &Value) -> Option<Value> {
    Some(match block["type"].as_str()? {
        "text" => json!({"type": "text", "text": block["text"]}),
        "thinking" => json!({
            "type": "thinking", "thinking": block["thinking"], "thinkingSignature": block["signature"],
        }),
        "tool_use" => json!({
            "type": "toolCall", "id": block["id"], "name": block["name"], "arguments": block["input"],
        }),
        "image" => json!({
            "type": "image", "data": block["source"]["data"], "mimeType": block["source"]["media_type"],
        }),
        _ => return None,
    })
}

/// The provider that answered and its API, as the file says them, else as the model's name tells.
fn provider(about: About<'_>) -> (&str, &str) {
    let guessed = match about.model.starts_with("claude") {
        true => ("anthropic", "anthropic-messages"),
        false => ("openai", "openai-responses"),
    };
    let said = about.origin.said("provider").zip(about.origin.said("api"));
    said.unwrap_or(guessed)
}
