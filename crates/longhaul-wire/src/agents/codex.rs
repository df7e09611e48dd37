//! Codex rollouts: a line per item of the Responses API. What follows outputs, or a report of
//! tokens, is a new answer. Turn contexts name the model.

use longhaul::{Block, Message, Role, Seal, Usage};
use serde_json::Value;

use super::build::{
    Step, call, compaction, content, image, number, opaque, result, said, text, thinking, time, timed,
};
use super::{Assemble, Numbered};

pub(super) fn fits(first: &Value) -> bool {
    let known = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
    first.get("payload").is_some() && known.contains(&text(first, "type"))
}

#[derive(Default)]
pub(super) struct Assembler {
    step: Step,
    model: String,
}

impl Assemble for Assembler {
    fn line(&mut self, line: Value) -> Vec<Numbered> {
        let Some(payload) = line.get("payload") else { return Vec::new() };
        let at = time(&line, "timestamp");
        let messages = match text(&line, "type") {
            "session_meta" => {
                let instructions =
                    payload.pointer("/base_instructions/text").or_else(|| payload.get("instructions"));
                let system = instructions.and_then(Value::as_str).filter(|text| !text.is_empty());
                system.map(|text| timed(Message::system(text), at)).into_iter().collect()
            }
            "turn_context" => {
                if !text(payload, "model").is_empty() {
                    self.model = text(payload, "model").to_owned();
                }
                Vec::new()
            }
            "compacted" => {
                let mut messages = self.step.take();
                let summary = match text(payload, "message") {
                    "" => payload.get("replacement_history").map(Value::to_string).unwrap_or_default(),
                    summary => summary.to_owned(),
                };
                messages.extend(compaction(&summary, at));
                messages
            }
            "event_msg" if text(payload, "type") == "token_count" => {
                if let Some(usage) = payload.pointer("/info/last_token_usage")
                    && !self.step.blocks.is_empty()
                {
                    self.step.usage = Some(read_usage(usage));
                }
                Vec::new()
            }
            "response_item" => self.item(payload, at),
            _ => Vec::new(),
        };
        messages.into_iter().map(|message| (0, message)).collect()
    }

    fn end(&mut self) -> Vec<Numbered> {
        self.step.take().into_iter().map(|message| (0, message)).collect()
    }
}

impl Assembler {
    fn item(&mut self, item: &Value, at: Option<longhaul::Time>) -> Vec<Message> {
        let kind = text(item, "type");
        if kind.ends_with("_output") {
            let is_error = item.pointer("/output/success") == Some(&Value::Bool(false));
            let output = item.get("output").or_else(|| item.get("tools"));
            let output = output.map(|output| output.get("content").unwrap_or(output));
            let message = result(text(item, "call_id"), None, content(output, block), is_error);
            self.step.results.push_back(timed(message, at));
            return Vec::new();
        }
        if kind == "message" && text(item, "role") != "assistant" {
            let blocks = content(item.get("content"), block);
            let message =
                if text(item, "role") == "user" { said(blocks) } else { Message::new(Role::System, blocks) };
            let mut messages = self.step.take();
            messages.push(timed(message, at));
            return messages;
        }
        // A new answer begins behind outputs and behind a report of tokens.
        let ended = !self.step.results.is_empty() || self.step.usage.is_some();
        let done = if ended { self.step.take() } else { Vec::new() };
        if self.step.is_empty() {
            self.step.time = at;
            self.step.model = Some(self.model.clone());
        }
        match kind {
            "message" => self.step.blocks.extend(content(item.get("content"), block)),
            "reasoning" => self.step.blocks.push(reasoning(item)),
            "function_call" | "tool_search_call" => {
                self.step.blocks.push(call(
                    text(item, "call_id"),
                    tool_name(item),
                    item.get("arguments").unwrap_or(&Value::Null),
                ));
            }
            "custom_tool_call" => {
                let input = serde_json::json!({ "input": item.get("input") });
                self.step.blocks.push(call(text(item, "call_id"), tool_name(item), &input));
            }
            "local_shell_call" => {
                self.step.blocks.push(call(
                    text(item, "call_id"),
                    "local_shell",
                    item.get("action").unwrap_or(&Value::Null),
                ));
            }
            _ => self.step.blocks.push(opaque(item)),
        }
        done
    }
}

fn tool_name(item: &Value) -> &str {
    match text(item, "name") {
        "" => text(item, "type").trim_end_matches("_call"),
        name => name,
    }
}

fn reasoning(item: &Value) -> Block {
    let summary = item.get("summary").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let summary = summary.iter().map(|part| text(part, "text")).collect::<Vec<_>>().join("\n");
    match text(item, "encrypted_content") {
        "" => thinking(&summary, Seal::Redacted(None)),
        encrypted => thinking(&summary, Seal::Encrypted(encrypted.into())),
    }
}

fn block(value: &Value) -> Block {
    match text(value, "type") {
        "input_text" | "output_text" | "text" => Block::text(text(value, "text")),
        "input_image" => image(value),
        _ => opaque(value),
    }
}

/// Input counts what was cached too.
fn read_usage(value: &Value) -> Usage {
    let cached = number(value, "cached_input_tokens");
    Usage {
        input: number(value, "input_tokens").saturating_sub(cached),
        output: number(value, "output_tokens"),
        cache_read: cached,
        ..Usage::default()
    }
}
