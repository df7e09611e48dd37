//! pi: a line per message, results included; `compaction` lines hold its summaries.

use longhaul::{Block, Message, Role, Seal, Usage};
use serde_json::Value;

use super::build::{call, compaction, content, image, number, opaque, result, text, thinking, time, timed};
use super::{Assemble, Numbered};

pub(super) fn fits(first: &Value) -> bool {
    text(first, "type") == "session" && first.get("cwd").is_some()
}

pub(super) struct Assembler;

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        let at = time(&line, "timestamp");
        let messages = match text(&line, "type") {
            "compaction" => compaction(text(&line, "summary"), at),
            "message" => line.get("message").map(|message| timed(read(message), at)).into_iter().collect(),
            // Changes of model and thinking level show in the messages.
            _ => Vec::new(),
        };
        messages.into_iter().map(|message| (0, message)).collect()
    }

    fn end(&mut self) -> Vec<Numbered> {
        Vec::new()
    }
}

fn read(message: &Value) -> Message {
    let blocks = content(message.get("content"), block);
    match text(message, "role") {
        "assistant" => {
            let mut answer = Message::new(Role::Assistant, blocks);
            if let Some(usage) = message.get("usage") {
                answer = answer.with_usage(Usage {
                    input: number(usage, "input"),
                    output: number(usage, "output"),
                    cache_read: number(usage, "cacheRead"),
                    cache_write: number(usage, "cacheWrite"),
                    ..Usage::default()
                });
            }
            match text(message, "model") {
                "" => answer,
                model => answer.with_model(model),
            }
        }
        "toolResult" => {
            let is_error = message.get("isError") == Some(&Value::Bool(true));
            result(text(message, "toolCallId"), Some(text(message, "toolName")), blocks, is_error)
        }
        // The person ran a command in the agent's shell.
        "bashExecution" => {
            Message::user(format!("Ran `{}`\n{}", text(message, "command"), text(message, "output")))
        }
        _ => Message::new(Role::User, blocks),
    }
}

fn block(value: &Value) -> Block {
    match text(value, "type") {
        "text" => Block::text(text(value, "text")),
        "thinking" => match text(value, "thinkingSignature") {
            "" => thinking(text(value, "thinking"), Seal::Open),
            signature => thinking(text(value, "thinking"), Seal::Signed(signature.into())),
        },
        "toolCall" => {
            call(text(value, "id"), text(value, "name"), value.get("arguments").unwrap_or(&Value::Null))
        }
        "image" => image(value),
        _ => opaque(value),
    }
}
