//! SWE-agent trajectories: one JSON object with a `history`; an answer has an action, the next
//! user message is what it printed.

use longhaul::{Block, Message, Role};
use serde_json::{Value, json};

use super::Numbered;
use super::build::{call, content, opaque, result, said, text};

pub(super) fn fits(first: &Value) -> bool {
    first.get("history").is_some_and(Value::is_array) && first.get("trajectory").is_some()
}

pub(super) fn read(file: &Value) -> Vec<Numbered> {
    let history = file.get("history").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut open: Option<String> = None;
    let mut calls = 0;
    let mut out = Vec::new();
    for entry in history {
        let blocks = content(entry.get("content"), |value| match text(value, "type") {
            "text" => Block::text(text(value, "text")),
            _ => opaque(value),
        });
        out.push(match text(entry, "role") {
            "system" => Message::new(Role::System, blocks),
            "assistant" => {
                let mut blocks = blocks;
                let action = text(entry, "action");
                if !action.is_empty() {
                    if !text(entry, "thought").is_empty() {
                        blocks = vec![Block::text(text(entry, "thought"))];
                    }
                    calls += 1;
                    let id = format!("call_{calls:04}");
                    blocks.push(call(&id, "shell", &json!({ "command": action })));
                    open = Some(id);
                }
                Message::new(Role::Assistant, blocks)
            }
            _ => match open.take() {
                Some(id) => result(&id, Some("shell"), blocks, false),
                None => said(blocks),
            },
        });
    }
    out.into_iter().map(|message| (0, message)).collect()
}
