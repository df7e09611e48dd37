//! OpenAI Responses: a list of items. Items of the model that follow each other (reasoning,
//! words, calls) are one message; each output is a message of its own.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{BlockPart, Image, Opaque, Raw, Thinking};
use longhaul::{Block, Extra, Json, Message, Role, Seal, ToolCall, ToolResult};
use serde_json::value::RawValue;

use super::chat::{arguments_for, arguments_from, arguments_text};
use super::picture::Picture;
use super::write::{Object, list, quoted};
use super::{Api, LeftOut};
use crate::fields::{FieldError, Fields, excerpt};
use crate::transcript::{sniffed_size, text_of};

const FORMAT: &str = "openai-responses";
/// Marks an output that is neither a text nor a list.
const WHOLE: &str = "whole";
/// Where calls of tools that OpenAI defines say what is to be done.
const TODO: [&str; 3] = ["action", "operation", "arguments"];
/// Beside a block: the fields of the item that it is a part of.
const ITEM: &str = "item";

type Parts<'a> = Vec<(&'a str, usize, BlockPart)>;

/// A text that a block can be written again from.
type Part<'a> = (&'a str, BlockPart);

/// A message that is being put together from items.
struct Open<'a> {
    role: Role,
    blocks: Vec<Block>,
    parts: Parts<'a>,
    /// The text of its items, from the first to the last.
    span: &'a str,
    developer: bool,
}

pub(super) fn read<'a>(
    body: &'a str,
    elements: &[&'a RawValue],
    messages: &mut Vec<Message>,
    spans: &mut Vec<&'a str>,
) -> Result<(), FieldError> {
    let mut open: Option<Open<'a>> = None;
    for (number, element) in elements.iter().enumerate() {
        let item = read_item(element.get());
        let item = item.map_err(|e| FieldError(format!("item {}: {}", number + 1, e.0)))?;
        match &mut open {
            Some(before) if before.role == Role::Assistant && item.role == Role::Assistant => {
                before.add(body, item)
            }
            _ => {
                if let Some(done) = open.replace(item) {
                    done.close(messages, spans);
                }
            }
        }
    }
    if let Some(done) = open {
        done.close(messages, spans);
    }
    Ok(())
}

impl<'a> Open<'a> {
    /// Takes the blocks of the item that follows.
    fn add(&mut self, body: &'a str, item: Self) {
        let at = |part: &str| (part.as_ptr() as usize).wrapping_sub(body.as_ptr() as usize);
        let first = self.blocks.len();
        self.parts.extend(item.parts.into_iter().map(|(json, block, part)| (json, first + block, part)));
        self.blocks.extend(item.blocks);
        self.span = body.get(at(self.span)..at(item.span) + item.span.len()).unwrap_or_default();
    }

    fn close(self, messages: &mut Vec<Message>, spans: &mut Vec<&'a str>) {
        let raw = Raw::new(FORMAT, self.span, &self.parts, &self.blocks);
        let origin = super::origin(Api::Responses, self.developer.then_some("developer"));
        messages.push(Message::new(self.role, self.blocks).with_wire_fields(origin).with_raw(raw));
        spans.push(self.span);
    }
}

fn read_item<'a>(json: &'a str) -> Result<Open<'a>, FieldError> {
    let item = |role, block: Block, part: Option<Part<'a>>| Open {
        role,
        blocks: vec![block],
        parts: part.into_iter().map(|(json, part)| (json, 0, part)).collect(),
        span: json,
        developer: false,
    };
    if json.starts_with('"') {
        let text: Box<str> =
            serde_json::from_str(json).map_err(|_| FieldError("it is not a valid string".to_owned()))?;
        return Ok(item(Role::User, Block::text(text), Some((json, BlockPart::Text))));
    }
    let opaque = |value: &str| {
        let value = Json::new(value).map_err(|e| FieldError(format!("it is not valid JSON: {e}")));
        value.map(|value| Block::Opaque(Opaque { value, extra: Extra::NONE }))
    };
    let mut fields = Fields::read(json, "it")?;
    let kind = fields.take_text("type")?;
    // A reference to an item may have nothing but its id.
    let usual = if fields.peek("role").is_some() { "message" } else { "item_reference" };
    let kind = kind.unwrap_or_else(|| usual.into());
    let has_id = fields.peek("call_id").is_some_and(|id| id.get().starts_with('"'));
    let in_item = |e: FieldError| FieldError(format!("in a {kind} item, {}", e.0));
    Ok(match &*kind {
        "message" => read_message(json, fields).map_err(in_item)?,
        "reasoning" => item(Role::Assistant, read_reasoning(fields).map_err(in_item)?, None),
        // A call that waits for an output of the host names it. One without was run by OpenAI.
        _ if kind.ends_with("_call") && has_id => {
            let (call, part) = read_call(&kind, fields).map_err(in_item)?;
            item(Role::Assistant, Block::ToolCall(call), part)
        }
        _ if kind.ends_with("_output") && has_id => {
            let part = fields.peek("output").map(|output| (output.get(), BlockPart::Text));
            item(Role::Tool, Block::ToolResult(read_output(&kind, fields).map_err(in_item)?), part)
        }
        _ => {
            let by_host = matches!(&*kind, "additional_tools" | "compaction" | "compaction_trigger");
            let role = match fields.peek("role").map(RawValue::get) {
                Some("\"developer\"" | "\"system\"") => Role::System,
                Some("\"user\"") => Role::User,
                _ if by_host => Role::System,
                _ if kind.ends_with("_response") => Role::User,
                _ => Role::Assistant,
            };
            item(role, opaque(json)?, None)
        }
    })
}

fn read_message<'a>(json: &'a str, mut fields: Fields<'a>) -> Result<Open<'a>, FieldError> {
    let name = fields.need_text("role")?;
    let role = match &*name {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        other => {
            let known = "user, assistant, system, developer";
            return Err(FieldError(format!("role {:?} is not one of {known}", excerpt(other))));
        }
    };
    let content = fields.take("content").ok_or_else(|| FieldError("`content` is missing".to_owned()))?;
    let rest = fields.rest();
    let (mut blocks, mut parts) = (Vec::new(), Vec::new());
    if content.get().starts_with('"') {
        let text: Box<str> = serde_json::from_str(content.get())
            .map_err(|_| FieldError("`content` is not a valid string".to_owned()))?;
        parts.push((content.get(), 0, BlockPart::Text));
        blocks.push(Block::text(text));
    } else {
        let read: Vec<&RawValue> = serde_json::from_str(content.get()).map_err(|_| {
            FieldError(format!("`content` is not a list of parts: {}", excerpt(content.get())))
        })?;
        for part in read {
            let (block, text) = read_part(part)?;
            parts.extend(text.map(|json| (json, blocks.len(), BlockPart::Text)));
            blocks.push(block);
        }
    }
    if let Some(first) = blocks.first_mut().filter(|_| !rest.is_empty()) {
        // Written into memory: this cannot fail.
        let rest = serde_json::to_string(&rest).ok().and_then(|json| Json::new(json).ok());
        rest.into_iter().for_each(|rest| super::extra_mut(first).push(ITEM, rest));
    }
    Ok(Open { role, blocks, parts, span: json, developer: &*name == "developer" })
}

fn read_part(part: &RawValue) -> Result<(Block, Option<&str>), FieldError> {
    let opaque = || (Block::Opaque(Opaque { value: part.into(), extra: Extra::NONE }), None);
    if !part.get().starts_with('{') {
        return Ok(opaque());
    }
    let mut fields = Fields::read(part.get(), "a part")?;
    Ok(match fields.take_text("type")?.as_deref() {
        Some("input_text" | "output_text" | "text") => {
            let json = fields.peek("text").map(RawValue::get);
            let mut block = Block::text(fields.need_text("text")?);
            *super::extra_mut(&mut block) = fields.rest();
            (block, json)
        }
        Some("input_image") => {
            let source = Json::from(part);
            let size = sniffed_size(&source);
            (Block::Image(Image { source, size, extra: Extra::NONE }), None)
        }
        _ => opaque(),
    })
}

/// The summary stays beside the text made of it: the item goes back as it came.
fn read_reasoning(mut fields: Fields<'_>) -> Result<Block, FieldError> {
    let summary = fields.peek("summary").map(|json| json.get()).unwrap_or("[]");
    let summary: Vec<serde_json::Value> = serde_json::from_str(summary).unwrap_or_default();
    let text: Vec<&str> = summary.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    let seal = match fields.take_text("encrypted_content")? {
        Some(encrypted) => Seal::Encrypted(encrypted),
        // It is with the provider, under its id.
        None => Seal::Redacted(None),
    };
    Ok(Block::Thinking(Thinking { text: text.join("\n").into(), seal, extra: fields.rest() }))
}

fn read_call<'a>(kind: &str, mut fields: Fields<'a>) -> Result<(ToolCall, Option<Part<'a>>), FieldError> {
    let id = fields.need_text("call_id")?;
    let name = fields.take_text("name")?.unwrap_or_else(|| kind.trim_end_matches("_call").into());
    let (mut part, mut todo) = (None, None);
    let arguments = match kind {
        "function_call" => {
            part = fields.peek("arguments").map(|json| (json.get(), BlockPart::ArgumentsText));
            arguments_from(&fields.need_text("arguments")?)
        }
        "custom_tool_call" => {
            part = fields.peek("input").map(|json| (json.get(), BlockPart::Arguments));
            Json::from(fields.take("input").ok_or_else(|| FieldError("`input` is missing".to_owned()))?)
        }
        // Shell, patch, computer: what is to be done, as an object.
        _ => {
            todo = TODO.into_iter().find(|name| fields.peek(name).is_some());
            todo.and_then(|name| fields.take(name)).map_or_else(Json::empty_object, Json::from)
        }
    };
    let mut extra = fields.rest();
    if kind != "function_call" {
        extra.push("kind", Json::string(kind));
        todo.into_iter().for_each(|name| extra.push("field", Json::string(name)));
    }
    Ok((ToolCall { id, name, arguments, server: false, extra }, part))
}

fn read_output(kind: &str, mut fields: Fields<'_>) -> Result<ToolResult, FieldError> {
    let id = fields.need_text("call_id")?;
    let output = fields.take("output");
    let (text, content): (Box<str>, Option<Box<[Block]>>) = match output.map(RawValue::get) {
        None => ("".into(), None),
        Some(json) if json.starts_with('"') => (
            serde_json::from_str(json)
                .map_err(|_| FieldError("`output` is not a valid string".to_owned()))?,
            None,
        ),
        Some(json) if json.starts_with('[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(json)
                .map_err(|_| FieldError(format!("`output` is not a list of parts: {}", excerpt(json))))?;
            let read: Result<Vec<Block>, FieldError> =
                parts.into_iter().map(|part| read_part(part).map(|(block, _)| block)).collect();
            let blocks = read?;
            let plain = |block: &Block| matches!(block, Block::Text(text) if text.extra.is_empty());
            let only = blocks.len() < 2 && blocks.iter().all(plain);
            (text_of(&blocks), (!only).then(|| blocks.into()))
        }
        Some(json) => {
            let value = Json::new(json).map_err(|_| FieldError("`output` is not JSON".to_owned()))?;
            let mut extra = Extra::NONE;
            extra.push(WHOLE, Json::from(&serde_json::Value::Bool(true)));
            // A picture of a screen is no text.
            let text = if json.len() <= 2_000 { json } else { "" };
            (text.into(), Some([Block::Opaque(Opaque { value, extra })].into()))
        }
    };
    let mut extra = fields.rest();
    if kind != "function_call_output" {
        extra.push("kind", Json::string(kind));
        if output.is_none() {
            extra.push("no_output", Json::from(&serde_json::Value::Bool(true)));
        }
    }
    Ok(ToolResult { id, name: None, text: text.into(), content, is_error: false, extra })
}

/// The messages, as texts of JSON, each of one item or of several.
pub(super) fn write(messages: &[Arc<Message>], at_home: bool, left_out: &mut LeftOut) -> Vec<String> {
    let mut units = Vec::with_capacity(messages.len());
    // A bare text is no item: it stands alone, in the body that it came in.
    let bare = |raw: &str| raw.starts_with('"') && !(at_home && messages.len() == 1);
    for message in messages {
        match message.raw(FORMAT).filter(|raw| !bare(raw)) {
            Some(raw) => units.push(raw.into_owned()),
            None => {
                units.extend(Some(write_items(message, left_out).join(",")).filter(|unit| !unit.is_empty()))
            }
        }
    }
    units
}

fn write_items(message: &Message, left_out: &mut LeftOut) -> Vec<String> {
    let own = super::is_own(message, Api::Responses);
    let developer = super::role_name(message).is_some();
    let role = match message.role() {
        Role::System if own && !developer => "system",
        Role::System | Role::Summary => "developer",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    // Items name their reasoning by their ids: without it the ids go too.
    let reasons = message.blocks().iter().any(|block| matches!(block, Block::Thinking(_)));
    let without_id: &[&str] = if reasons { &[] } else { &["id"] };
    let (mut items, mut words, mut head) = (Vec::new(), Vec::new(), Extra::NONE);
    let say = |words: &mut Vec<String>, head: &mut Extra, items: &mut Vec<String>| {
        if !words.is_empty() {
            let object = Object::new().text("type", "message").text("role", role).list("content", words);
            items.push(object.extra(head, &[&["type", "role"], without_id].concat()).end());
            words.clear();
            *head = Extra::NONE;
        }
    };
    let last = message.blocks().iter().rposition(|block| !matches!(block, Block::Thinking(_)));
    for (at, block) in message.blocks().iter().enumerate() {
        // Reasoning that nothing follows is refused.
        if matches!(block, Block::Thinking(_)) && last.is_none_or(|last| at > last) {
            continue;
        }
        // A part that begins an item ends the words before it.
        if let Some(item) = block.extra().get(ITEM).filter(|_| own) {
            say(&mut words, &mut head, &mut items);
            head = serde_json::from_str(item.as_str()).unwrap_or_default();
        }
        if let Some(part) = write_part(block, own, role, left_out) {
            words.push(part);
            continue;
        }
        say(&mut words, &mut head, &mut items);
        items.extend(write_item(block, own, role, reasons, left_out));
    }
    say(&mut words, &mut head, &mut items);
    items
}

fn text(text: &str, role: &str, extra: &Extra) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    Object::new().text("type", kind).text("text", text).extra(extra, &[ITEM]).end()
}

/// A part of a message item; `None` if the block is an item of its own.
fn write_part(block: &Block, own: bool, role: &str, left_out: &mut LeftOut) -> Option<String> {
    let none = Extra::NONE;
    Some(match block {
        Block::Text(b) => text(&b.text, role, if own { &b.extra } else { &none }),
        Block::Image(b) if role != "assistant" => match write_image(b) {
            Some(image) => image,
            None => {
                left_out.add("a picture that is with another provider");
                text("[A picture was here.]", role, &none)
            }
        },
        Block::Image(_) => {
            left_out.add("a picture");
            text("[A picture was here.]", role, &none)
        }
        Block::ToolCall(b) if b.server => text(&super::foreign_call(b, left_out), role, &none),
        Block::ToolResult(b) if role == "assistant" => text(&super::foreign_result(b)?, role, &none),
        // A part of a message here; items of OpenAI's own tools stand alone.
        Block::Opaque(b) if own && !is_item(b) => b.value.as_str().to_owned(),
        Block::Opaque(b) if !own => text(&super::foreign(b, left_out), role, &none),
        _ => return None,
    })
}

/// Parts of messages have these types; all others are items.
fn is_item(block: &Opaque) -> bool {
    let value = block.value.value();
    let kind = value.get("type").and_then(|kind| kind.as_str()).unwrap_or_default();
    !matches!(kind, "refusal" | "input_file" | "input_audio" | "summary_text" | "reasoning_text" | "")
}

fn write_image(image: &Image) -> Option<String> {
    if image.source.value().get("type").is_some_and(|kind| kind == "input_image") {
        return Some(image.source.as_str().to_owned());
    }
    let url = Picture::from_source(&image.source)?.url()?;
    Some(Object::new().text("type", "input_image").text("image_url", &url).end())
}

fn write_item(block: &Block, own: bool, role: &str, reasons: bool, left_out: &mut LeftOut) -> Option<String> {
    let none = Extra::NONE;
    let extra = if own { block.extra() } else { &none };
    Some(match block {
        Block::Thinking(b) => {
            let object = Object::new().text("type", "reasoning").extra(extra, &[]);
            let object = if extra.get("summary").is_some() { object } else { object.json("summary", "[]") };
            match &b.seal {
                Seal::Encrypted(data) => object.text("encrypted_content", data).end(),
                Seal::Redacted(None) if own => object.end(),
                _ => {
                    left_out.add("reasoning that OpenAI did not encrypt");
                    return None;
                }
            }
        }
        Block::ToolCall(b) => write_call(b, own, extra, reasons),
        Block::ToolResult(b) if role == "user" => write_output(b, own, extra, left_out),
        Block::Opaque(b) => b.value.as_str().to_owned(),
        Block::Text(_) | Block::Image(_) | Block::ToolResult(_) => return None,
    })
}

fn write_call(call: &ToolCall, own: bool, extra: &Extra, reasons: bool) -> String {
    let kind = super::kind_of(extra).unwrap_or_else(|| "function_call".to_owned());
    let object = Object::new().text("type", &kind).text("call_id", &call_id(&call.id, own));
    let object = match &*kind {
        "function_call" => object.text("name", &call.name).text("arguments", &arguments_for(call, own)),
        "custom_tool_call" => object.text("name", &call.name).text("input", &arguments_text(&call.arguments)),
        _ => match extra.get("field").map(|field| field.as_str().trim_matches('"')) {
            Some(field) => object.json(field, call.arguments.as_str()),
            None => object,
        },
    };
    let without: &[&str] = if reasons { &["kind", "field"] } else { &["kind", "field", "id"] };
    object.extra(extra, without).end()
}

fn write_output(result: &ToolResult, own: bool, extra: &Extra, left_out: &mut LeftOut) -> String {
    let kind = super::kind_of(extra).unwrap_or_else(|| "function_call_output".to_owned());
    let output = match result.content.as_deref() {
        Some([Block::Opaque(only)]) if own && only.extra.is_set(WHOLE) => Cow::Borrowed(only.value.as_str()),
        Some(blocks) => {
            let parts = blocks.iter().filter_map(|block| match block {
                Block::Opaque(part) if own => Some(part.value.as_str().to_owned()),
                _ => write_part(block, own, "user", left_out),
            });
            let failed = result.is_error.then(|| text("[The tool failed.]", "user", &Extra::NONE));
            Cow::Owned(list(&failed.into_iter().chain(parts).collect::<Vec<_>>()))
        }
        None if result.is_error => Cow::Owned(quoted(&format!("[The tool failed.]\n{}", result.text))),
        None => Cow::Owned(quoted(&result.text)),
    };
    let object = Object::new().text("type", &kind).text("call_id", &call_id(&result.id, own));
    // Some outputs are in other fields.
    let absent = extra.is_set("no_output") && result.text.is_empty();
    let object = if absent { object } else { object.json("output", &output) };
    object.extra(extra, &["kind", "no_output"]).end()
}

/// OpenAI takes ids of up to 64 characters.
fn call_id(id: &str, own: bool) -> Cow<'_, str> {
    if own { Cow::Borrowed(id) } else { super::fit_id(id, 64) }
}
