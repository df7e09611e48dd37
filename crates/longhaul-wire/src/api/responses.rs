//! OpenAI Responses: a list of items. Items of the model that follow each other (reasoning,
//! words, calls) are one message; each output is a message of its own.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{BlockPart, Image, Opaque, Raw, Thinking};
use longhaul::{Block, Extra, Json, Message, Role, Seal, Tool, ToolCall, ToolResult, Voice};
use serde_json::Value as Parsed;

use super::chat::{arguments_for, arguments_from, arguments_text};
use super::format::{Choice, Format, Group, Row, Unit};
use super::object::{FIELD, Fields, KIND, Said, note, set_note};
use super::picture::Picture;
use super::write::{Object, list, quoted};
use super::{Api, LeftOut};
use crate::fields::{FieldError, excerpt};
use crate::scan::Value;
use crate::transcript::sniffed_size;

const FORMAT: &str = "openai-responses";
/// Beside an output: it is neither a text nor a list.
const WHOLE: &str = "~whole";
/// Beside an output: there was none.
const NO_OUTPUT: &str = "~no_output";
/// Where calls of tools that OpenAI defines say what is to be done.
const TODO: [&str; 3] = ["action", "operation", "arguments"];
/// Beside a block: the fields of the item that it is a part of.
const ITEM: &str = "~item";

/// OpenAI Responses.
pub(super) struct Responses;

impl Format for Responses {
    fn row(&self) -> &'static Row {
        &Row {
            name: FORMAT,
            list: "input",
            system: Some("instructions"),
            element: "item",
            has_marks: false,
            wants_marks: false,
            may_lack_list: true,
        }
    }

    fn resembles(&self, body: &Parsed) -> bool {
        body.get("input").is_some_and(|input| input.is_array() || input.is_string())
    }

    fn read<'a>(&self, elements: &[Value<'a>]) -> Result<Group, (usize, FieldError)> {
        let mut items: Vec<Item<'a>> = Vec::new();
        for (number, element) in elements.iter().enumerate() {
            // Items of the model that follow each other are one message.
            let is_part = role_of(*element) == Role::Assistant;
            if number > 0 && !is_part {
                break;
            }
            items.push(read_item(*element).map_err(|error| (number, error))?);
            if !is_part {
                break;
            }
        }
        let group = Group { elements: items.len(), messages: vec![as_message(items)], marks: Vec::new() };
        Ok(group)
    }

    fn may_grow(&self, message: &Message) -> bool {
        message.role() == Role::Assistant
    }

    fn together(&self, _messages: &[Arc<Message>]) -> usize {
        1
    }

    fn write(&self, all: &[Arc<Message>], at: usize, _together: usize, left_out: &mut LeftOut) -> Unit {
        let message = &all[at];
        // A bare text is no item: it stands alone, in the body that it came in.
        let raw = message.raw(FORMAT).filter(|raw| !raw.starts_with('"'));
        let json = match raw {
            Some(raw) => raw.into_owned(),
            None => write_items(message, super::keeps_ids(all, at, Api::Responses), left_out).join(","),
        };
        Unit { json, ends: vec![message.blocks().len()] }
    }

    fn names(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("max_output", "max_output_tokens"),
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("stream", "stream"),
            ("parallel", "parallel_tool_calls"),
            ("cache_key", "prompt_cache_key"),
        ]
    }

    fn is_tool(&self, definition: &Parsed) -> bool {
        definition.get("type").is_some_and(|kind| kind == "function") && definition.get("function").is_none()
    }

    fn write_tool(&self, tool: &Tool, about: Option<&str>, schema: &str) -> String {
        // OpenAI is strict here unless told otherwise.
        let object = Object::new().text("type", "function").json("strict", "false").text("name", &tool.name);
        object.maybe_json("description", about).json("parameters", schema).end()
    }

    fn write_choice(&self, choice: Choice<'_>) -> String {
        match choice {
            Choice::Auto => quoted("auto"),
            Choice::None => quoted("none"),
            Choice::Any => quoted("required"),
            Choice::Named(name) => Object::new().text("type", "function").text("name", name).end(),
        }
    }

    fn write_system(
        &self,
        body: Object,
        texts: &[&str],
        _marks: &[Option<&str>],
    ) -> (Object, Option<String>) {
        (body.text("instructions", &texts.join("\n\n")), None)
    }
}

/// An item that was read.
struct Item<'a> {
    role: Role,
    blocks: Vec<(Block, Option<(Said<'a>, BlockPart)>)>,
    value: Value<'a>,
    developer: bool,
}

/// The message that these items are, of which there is at least one.
fn as_message(items: Vec<Item<'_>>) -> Message {
    let (Some(first), Some(last)) = (items.first(), items.last()) else {
        return Message::new(Role::User, Vec::new());
    };
    let text = first.value.raw_to(last.value);
    let (role, developer, base) = (first.role, first.developer, first.value.start());
    let (mut blocks, mut parts) = (Vec::new(), Vec::new());
    for (block, said) in items.into_iter().flat_map(|item| item.blocks) {
        parts.extend(said.and_then(|(said, part)| said.part(base, blocks.len(), part)));
        blocks.push(block);
    }
    let raw = Raw::without(FORMAT, text, &parts);
    super::read_as(Api::Responses, role, developer.then_some("developer"), blocks, Extra::NONE, raw)
}

/// The type of an item. One without a type is a message, or a reference that has nothing but its id.
fn kind_of<'a>(item: Value<'a>) -> Cow<'a, str> {
    let usual = if item.get("role").is_some() { "message" } else { "item_reference" };
    item.get("type").and_then(|kind| kind.text()).unwrap_or(Cow::Borrowed(usual))
}

/// Who says an item.
fn role_of(item: Value<'_>) -> Role {
    if item.is_string() {
        return Role::User;
    }
    let kind = kind_of(item);
    let by_host = matches!(&*kind, "additional_tools" | "compaction" | "compaction_trigger");
    match item.get("role").and_then(|role| role.text()).as_deref() {
        Some("developer" | "system") => Role::System,
        Some("user") => Role::User,
        _ if by_host => Role::System,
        _ if is_answered(item) && kind.ends_with("_output") => Role::Tool,
        _ if kind.ends_with("_response") => Role::User,
        _ => Role::Assistant,
    }
}

/// Whether it is a call that waits for an output of the host, or that output: both name it. A call
/// without was run by OpenAI.
fn is_answered(item: Value<'_>) -> bool {
    item.get("call_id").is_some_and(|id| id.is_string())
}

fn read_item(value: Value<'_>) -> Result<Item<'_>, FieldError> {
    let role = role_of(value);
    let item = |role, block, said| Item { role, blocks: vec![(block, said)], value, developer: false };
    if let Some(said) = Said::of(value) {
        return Ok(item(role, Block::text(&*said.text), Some((said, BlockPart::Text))));
    }
    let mut fields = Fields::of(value, "it")?;
    fields.take_said("type")?;
    let kind = kind_of(value);
    let in_item = |e: FieldError| FieldError(format!("in a {kind} item, {}", e.0));
    Ok(match &*kind {
        "message" => read_message(value, fields).map_err(in_item)?,
        "reasoning" => item(role, read_reasoning(fields).map_err(in_item)?, None),
        _ if kind.ends_with("_call") && is_answered(value) => {
            let (call, said) = read_call(&kind, fields).map_err(in_item)?;
            item(role, Block::ToolCall(call), said)
        }
        _ if kind.ends_with("_output") && is_answered(value) => {
            let (result, said) = read_output(&kind, fields).map_err(in_item)?;
            item(role, Block::ToolResult(result), said.map(|said| (said, BlockPart::Text)))
        }
        _ => item(role, Block::Opaque(Opaque { value: value.json(), extra: Extra::NONE }), None),
    })
}

fn read_message<'a>(value: Value<'a>, mut fields: Fields<'a>) -> Result<Item<'a>, FieldError> {
    let name = fields.need_said("role")?.text;
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
    let mut blocks = Vec::new();
    if let Some(said) = Said::of(content) {
        blocks.push((Block::text(&*said.text), Some((said, BlockPart::Text))));
    } else if content.is_array() {
        for part in content.elements() {
            let (block, said) = read_part(part)?;
            blocks.push((block, said.map(|said| (said, BlockPart::Text))));
        }
    } else {
        return Err(FieldError(format!("`content` is not a list of parts: {}", excerpt(content.raw()))));
    }
    if let Some((first, _)) = blocks.first_mut().filter(|_| !rest.is_empty()) {
        // Written into memory: this cannot fail.
        let rest = serde_json::to_string(&rest).ok().and_then(|json| Json::new(json).ok());
        rest.into_iter().for_each(|rest| super::extra_mut(first).push(ITEM, rest));
    }
    Ok(Item { role, blocks, value, developer: name == "developer" })
}

fn read_part(part: Value<'_>) -> Result<(Block, Option<Said<'_>>), FieldError> {
    let opaque = || (Block::Opaque(Opaque { value: part.json(), extra: Extra::NONE }), None);
    if !part.is_object() {
        return Ok(opaque());
    }
    let mut fields = Fields::of(part, "a part")?;
    Ok(match fields.take_said("type")?.as_ref().map(|said| &*said.text) {
        Some("input_text" | "output_text" | "text") => {
            let said = fields.need_said("text")?;
            let mut block = Block::text(&*said.text);
            *super::extra_mut(&mut block) = fields.rest();
            (block, Some(said))
        }
        Some("input_image") => {
            let source = part.json();
            let size = sniffed_size(&source);
            (Block::Image(Image { source, size, extra: Extra::NONE }), None)
        }
        _ => opaque(),
    })
}

/// The summary stays beside the text made of it: the item goes back as it came.
fn read_reasoning(mut fields: Fields<'_>) -> Result<Block, FieldError> {
    let summary = fields.peek("summary");
    let said = summary
        .into_iter()
        .flat_map(|summary| summary.elements())
        .filter_map(|part| part.get("text")?.text());
    let text = said.collect::<Vec<_>>().join("\n").into();
    let seal = match fields.take_text("encrypted_content")? {
        Some(encrypted) => Seal::Encrypted(encrypted),
        // It is with the provider, under its id.
        None => Seal::Redacted(None),
    };
    Ok(Block::Thinking(Thinking { text, seal, extra: fields.rest() }))
}

type Called<'a> = (ToolCall, Option<(Said<'a>, BlockPart)>);

fn read_call<'a>(kind: &str, mut fields: Fields<'a>) -> Result<Called<'a>, FieldError> {
    let id = fields.need_text("call_id")?;
    let name = fields.take_text("name")?.unwrap_or_else(|| kind.trim_end_matches("_call").into());
    let (mut part, mut todo) = (None, None);
    let arguments = match kind {
        "function_call" => {
            let said = fields.need_said("arguments")?;
            let (arguments, is_json) = arguments_from(&said.text);
            part = is_json.then_some((said, BlockPart::ArgumentsText));
            arguments
        }
        "custom_tool_call" => {
            let input = fields.take("input").ok_or_else(|| FieldError("`input` is missing".to_owned()))?;
            part = Some((Said::verbatim(input), BlockPart::Arguments));
            input.json()
        }
        // Shell, patch, computer: what is to be done, as an object.
        _ => {
            todo = TODO.into_iter().find(|name| fields.peek(name).is_some());
            todo.and_then(|name| fields.take(name)).map_or_else(Json::empty_object, |todo| todo.json())
        }
    };
    let mut extra = fields.rest();
    if kind != "function_call" {
        set_note(&mut extra, KIND, kind);
        todo.into_iter().for_each(|name| set_note(&mut extra, FIELD, name));
    }
    Ok((ToolCall { id, name, arguments, server: false, extra }, part))
}

fn read_output<'a>(kind: &str, mut fields: Fields<'a>) -> Result<(ToolResult, Option<Said<'a>>), FieldError> {
    let id = fields.need_text("call_id")?;
    let output = fields.take("output");
    let (text, content, said) = match output {
        None => ("".into(), None, None),
        Some(value) if value.is_string() => super::all_text(Said::of(value)),
        Some(value) if value.is_array() => {
            let parts: Result<Vec<_>, FieldError> = value.elements().map(read_part).collect();
            super::result_content(parts?)
        }
        Some(value) => {
            let mut extra = Extra::NONE;
            extra.push(WHOLE, Json::from(&Parsed::Bool(true)));
            // A picture of a screen is no text.
            let text = if value.raw().len() <= 2_000 { value.raw() } else { "" };
            (text.into(), Some([Block::Opaque(Opaque { value: value.json(), extra })].into()), None)
        }
    };
    let mut extra = fields.rest();
    if kind != "function_call_output" {
        set_note(&mut extra, KIND, kind);
        if output.is_none() {
            extra.push(NO_OUTPUT, Json::from(&Parsed::Bool(true)));
        }
    }
    Ok((ToolResult { id, name: None, text, content, is_error: false, extra }, said))
}

fn write_items(message: &Message, keeps_ids: bool, left_out: &mut LeftOut) -> Vec<String> {
    let own = super::is_own(message, Api::Responses);
    let developer = super::role_name(message).is_some();
    let tag = super::voiced::tag(message).filter(|_| message.voice() == Some(Voice::User));
    let role = match message.role() {
        Role::System if own && !developer => "system",
        Role::System | Role::Summary if tag.is_some() => "user",
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
        // An item of a host stands alone: what stands beside others is a part, whatever its type.
        let is_part = role != "assistant" && message.blocks().len() > 1;
        let part = match block {
            Block::Text(b) if let Some(tag) = tag => {
                Some(text(&super::voiced::framed(tag, &b.text), role, &Extra::NONE))
            }
            Block::Opaque(part) if own && is_part => Some(part.value.as_str().to_owned()),
            _ => write_part(block, own, role, left_out),
        };
        if let Some(part) = part {
            words.push(part);
            continue;
        }
        say(&mut words, &mut head, &mut items);
        items.extend(write_item(block, Place { own, keeps_ids, role, reasons }, left_out));
    }
    say(&mut words, &mut head, &mut items);
    items
}

fn text(text: &str, role: &str, extra: &Extra) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    Object::new().text("type", kind).text("text", text).extra(extra, &[]).end()
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

/// Where an item stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// In a message that OpenAI was sent before.
    own: bool,
    keeps_ids: bool,
    role: &'a str,
    /// With reasoning.
    reasons: bool,
}

fn write_item(block: &Block, place: Place<'_>, left_out: &mut LeftOut) -> Option<String> {
    let Place { own, keeps_ids, role, reasons } = place;
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
        Block::ToolResult(b) if role == "user" => write_output(b, own, keeps_ids, extra, left_out),
        Block::Opaque(b) => b.value.as_str().to_owned(),
        Block::Text(_) | Block::Image(_) | Block::ToolResult(_) => return None,
    })
}

fn write_call(call: &ToolCall, own: bool, extra: &Extra, reasons: bool) -> String {
    let kind = note(extra, KIND).unwrap_or_else(|| "function_call".to_owned());
    let object = Object::new().text("type", &kind).text("call_id", &call_id(&call.id, own));
    let object = match &*kind {
        "function_call" => object.text("name", &call.name).text("arguments", &arguments_for(call, own)),
        "custom_tool_call" => object.text("name", &call.name).text("input", &arguments_text(&call.arguments)),
        _ => match note(extra, FIELD) {
            Some(field) => object.json(&field, call.arguments.as_str()),
            None => object,
        },
    };
    let without: &[&str] = if reasons { &[] } else { &["id"] };
    object.extra(extra, without).end()
}

fn write_output(
    result: &ToolResult,
    own: bool,
    keeps_ids: bool,
    extra: &Extra,
    left_out: &mut LeftOut,
) -> String {
    let kind = note(extra, KIND).unwrap_or_else(|| "function_call_output".to_owned());
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
    let object = Object::new().text("type", &kind).text("call_id", &call_id(&result.id, keeps_ids));
    // Some outputs are in other fields.
    let absent = extra.is_set(NO_OUTPUT) && result.text.is_empty();
    let object = if absent { object } else { object.json("output", &output) };
    object.extra(extra, &[]).end()
}

/// OpenAI takes ids of up to 64 characters.
fn call_id(id: &str, own: bool) -> Cow<'_, str> {
    if own { Cow::Borrowed(id) } else { super::fit_id(id, 64) }
}
