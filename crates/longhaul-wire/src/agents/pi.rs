//! pi: a line per message, results included; `compaction` lines hold its summaries. Lines form a
//! tree: where the person went back and on from there, a branch begins. A branch is a
//! conversation of its own, of which the lines before it are in another one.

use std::collections::HashMap;

use longhaul::{Block, Message, Role, Seal, Time, Usage};
use serde_json::Value;

use super::build::{
    call, compaction, content, image, number, opaque, result, said, text, thinking, time, timed,
};
use super::{Assemble, Number, Numbered};

pub(super) fn fits(first: &Value) -> bool {
    text(first, "type") == "session" && first.get("cwd").is_some()
}

#[derive(Default)]
pub(super) struct Assembler {
    /// The conversation of each line.
    lines: HashMap<String, Number>,
    /// The last line of each conversation.
    last: Vec<String>,
    current: Number,
}

impl Assembler {
    /// The conversation that a line belongs to; the text it is said to begin with, if it is new.
    fn number(&mut self, line: &Value) -> Option<String> {
        let (id, parent) = (text(line, "id"), text(line, "parentId"));
        let mut begins = None;
        if let Some(&number) = self.lines.get(parent) {
            self.current = number;
            if self.last[number] != parent {
                begins = Some(format!("[This branch goes on from line {parent} of conversation {number}.]"));
                self.current = self.last.len();
            }
        }
        if !id.is_empty() {
            self.last.resize(self.last.len().max(self.current + 1), String::new());
            self.last[self.current] = id.to_owned();
            self.lines.insert(id.to_owned(), self.current);
        }
        begins
    }
}

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        let at = time(&line, "timestamp");
        let begins = self.number(&line).map(|note| timed(Message::user(note).with_attachment(), at));
        let messages: Vec<Message> = match text(&line, "type") {
            "compaction" => compaction(text(&line, "summary"), at),
            "message" => line.get("message").map(|message| timed(read(message), at)).into_iter().collect(),
            // What it was told of a branch that was left, and what an extension says.
            "branch_summary" => of_host(Some(&line["summary"]), at),
            "custom_message" => of_host(line.get("content"), at),
            // Changes of model and thinking level show in the messages.
            _ => Vec::new(),
        };
        begins.into_iter().chain(messages).map(|message| (self.current, message)).collect()
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
        // The person ran a command in the agent's shell: no words to the model.
        "bashExecution" => {
            let ran = format!("Ran `{}`\n{}", text(message, "command"), text(message, "output"));
            Message::user(ran).with_attachment()
        }
        "custom" => Message::new(Role::User, blocks).with_attachment(),
        _ => said(blocks),
    }
}

/// A message that the agent or an extension puts in, if it says anything.
fn of_host(value: Option<&Value>, at: Option<Time>) -> Vec<Message> {
    let blocks = content(value, block);
    let is_empty = blocks.is_empty();
    let message = timed(Message::new(Role::User, blocks).with_attachment(), at);
    if is_empty { Vec::new() } else { vec![message] }
}

fn block(value: &Value) -> Block {
    match text(value, "type") {
        "text" => Block::text(text(value, "text")),
        "thinking" => match text(value, "thinkingSignature") {
            "" => thinking(text(value, "thinking"), Seal::Open),
            signature => thinking(text(value, "thinking"), seal(signature)),
        },
        "toolCall" => {
            call(text(value, "id"), text(value, "name"), value.get("arguments").unwrap_or(&Value::Null))
        }
        "image" => image(value),
        _ => opaque(value),
    }
}

/// A signature of Anthropic's, an item of OpenAI's, or the name of the field that open reasoning
/// came in.
fn seal(signature: &str) -> Seal {
    if signature.starts_with('{') {
        let item: Value = serde_json::from_str(signature).unwrap_or_default();
        return match text(&item, "encrypted_content") {
            "" => Seal::Redacted(None),
            encrypted => Seal::Encrypted(encrypted.into()),
        };
    }
    if signature.starts_with("reasoning") { Seal::Open } else { Seal::Signed(signature.into()) }
}
