//! pi: a line per message, results included; `compaction` lines hold its summaries. Lines form a
//! tree: where the person went back and on from there, a branch begins. A branch is a
//! conversation of its own, of which the lines before it are in another one.

use std::collections::HashMap;

use longhaul::{Block, Message, Role, Seal, Time, Usage};
use serde_json::Value;

use super::build::{
    call, compaction_beside, content, image, number, opaque, result, said, text, thinking, time, timed,
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
    /// How many lines were read, which of them had which id, and of each message its conversation and line.
    read: usize,
    places: HashMap<String, usize>,
    messages: Vec<(Number, usize)>,
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

impl Assembler {
    /// How many messages of the conversation stay beside the summary of a compaction: those from a line on that it names
    /// by its id, or by its number in older versions.
    fn kept(&self, line: &Value) -> usize {
        let number =
            || line.get("firstKeptEntryIndex").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let Some(first) = self.places.get(text(line, "firstKeptEntryId")).copied().or_else(number) else {
            return 0;
        };
        self.messages
            .iter()
            .rev()
            .filter(|(number, _)| *number == self.current)
            .take_while(|(_, at)| *at >= first)
            .count()
    }
}

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        let at = time(&line, "timestamp");
        let begins = self.number(&line).map(|note| timed(Message::user(note).with_attachment(), at));
        let messages: Vec<Message> = match text(&line, "type") {
            "compaction" => compaction_beside(self.kept(&line), text(&line, "summary"), at),
            "message" => line.get("message").map(|message| timed(read(message), at)).into_iter().collect(),
            // What it was told of a branch that was left, and what an extension says.
            "branch_summary" => of_host(Some(&line["summary"]), at),
            "custom_message" => of_host(line.get("content"), at),
            // Changes of model and thinking level show in the messages.
            _ => Vec::new(),
        };
        let messages: Vec<Message> = begins.into_iter().chain(messages).collect();
        if text(&line, "type") != "compaction" {
            self.messages.extend(messages.iter().map(|_| (self.current, self.read)));
        }
        // Older versions give lines no id.
        if !text(&line, "id").is_empty() {
            self.places.insert(text(&line, "id").to_owned(), self.read);
        }
        self.read += 1;
        messages.into_iter().map(|message| (self.current, message)).collect()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agents::KEPT_MESSAGES;

    #[test]
    fn what_is_kept_beside_a_summary_is_named_by_number_or_by_id() {
        let kept = |with_ids: bool, names: &Value| {
            let mut assembler = Assembler::default();
            assembler.line(json!({"type": "session", "id": "s", "cwd": "/srv"}));
            for n in 1..=6 {
                let mut line =
                    json!({"type": "message", "message": {"role": "user", "content": format!("{n}")}});
                if with_ids {
                    line["id"] = json!(format!("m{n}"));
                    line["parentId"] = json!(if n == 1 { "s".to_owned() } else { format!("m{}", n - 1) });
                }
                assembler.line(line);
            }
            let mut line = json!({"type": "compaction", "summary": "All is well."});
            line.as_object_mut().unwrap().extend(names.as_object().unwrap().clone());
            let (_, mark) = assembler.line(line).remove(0);
            mark.extra().get(KEPT_MESSAGES).map(|kept| kept.as_str().to_owned())
        };
        assert_eq!(kept(false, &json!({"firstKeptEntryIndex": 4})).as_deref(), Some("3"));
        assert_eq!(kept(true, &json!({"firstKeptEntryId": "m5", "parentId": "m6"})).as_deref(), Some("2"));
        assert_eq!(kept(true, &json!({"firstKeptEntryId": "gone", "parentId": "m6"})), None);
    }
}
