//! OpenAI Chat Completions: a message of the list is a message. Reasoning has no place of its
//! own here; what servers call `reasoning_content` or `reasoning` is sent back as it came.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{BlockPart, Image, Opaque, Raw, Text, Thinking};
use longhaul::{Block, Extra, Json, Message, Role, Seal, ToolCall, ToolResult};
use serde_json::value::RawValue;

use super::picture::Picture;
use super::write::{Object, list, quoted};
use super::{Api, LeftOut};
use crate::fields::{FieldError, Fields, excerpt};
use crate::transcript::{sniffed_size, text_of};

const FORMAT: &str = "openai";
/// Names under which servers give open reasoning.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

type Parts<'a> = Vec<(&'a str, usize, BlockPart)>;

pub(super) fn read_message(json: &str) -> Result<Message, FieldError> {
    let mut fields = Fields::read(json, "it")?;
    let name = fields.need_text("role")?;
    let role = match &*name {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        other => {
            let known = "system, developer, user, assistant, tool";
            return Err(FieldError(format!("role {:?} is not one of {known}", excerpt(other))));
        }
    };
    let (mut blocks, mut parts) = (Vec::new(), Vec::new());
    if role == Role::Tool {
        // Results of the days before ids are named by their tool.
        let id =
            if &*name == "tool" { fields.need_text("tool_call_id")? } else { fields.need_text("name")? };
        let mut content = Vec::new();
        read_content(&mut fields, &mut content, &mut parts)?;
        let plain = |block: &Block| matches!(block, Block::Text(text) if text.extra.is_empty());
        let more = content.len() > 1 || !content.iter().all(plain);
        blocks.push(Block::ToolResult(ToolResult {
            id,
            name: fields.take_text("name")?,
            text: text_of(&content).into(),
            content: more.then(|| content.into()),
            is_error: false,
            extra: Extra::NONE,
        }));
    } else {
        if role == Role::Assistant {
            read_reasoning(&mut fields, &mut blocks, &mut parts);
        }
        read_content(&mut fields, &mut blocks, &mut parts)?;
        if role == Role::Assistant {
            read_calls(&mut fields, &mut blocks, &mut parts)?;
            read_rest(&mut fields, &mut blocks);
        }
    }
    let role_name = Some(&*name).filter(|name| matches!(*name, "developer" | "function"));
    let origin = super::origin(Api::Chat, role_name);
    let raw = Raw::new(FORMAT, json, &parts, &blocks);
    let message = Message::new(role, blocks).with_extra(fields.rest()).with_wire_fields(origin);
    Ok(message.with_raw(raw))
}

/// Open reasoning, if it is a text; anything else stays an unknown field.
fn read_reasoning<'a>(fields: &mut Fields<'a>, blocks: &mut Vec<Block>, parts: &mut Parts<'a>) {
    for name in REASONING {
        let Some(json) = fields.peek(name) else { continue };
        let Ok(text) = serde_json::from_str::<Box<str>>(json.get()) else { continue };
        if text.is_empty() {
            continue;
        }
        fields.take(name);
        parts.push((json.get(), blocks.len(), BlockPart::Text));
        let mut extra = Extra::NONE;
        extra.push("field", Json::string(name));
        blocks.push(Block::Thinking(Thinking { text, seal: Seal::Open, extra }));
        return;
    }
}

fn read_content<'a>(
    fields: &mut Fields<'a>,
    blocks: &mut Vec<Block>,
    parts: &mut Parts<'a>,
) -> Result<(), FieldError> {
    let Some(content) = fields.take_some("content") else { return Ok(()) };
    let json = content.get();
    if json.starts_with('"') {
        let text: Box<str> = serde_json::from_str(json)
            .map_err(|_| FieldError("`content` is not a valid string".to_owned()))?;
        // An answer of calls alone may have an empty text.
        if !text.is_empty() {
            parts.push((json, blocks.len(), BlockPart::Text));
            blocks.push(Block::text(text));
        }
        return Ok(());
    }
    let read: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|_| FieldError(format!("`content` is not a list of parts: {}", excerpt(json))))?;
    for part in read {
        if let Some(text) = text_of_part(part) {
            parts.push((text, blocks.len(), BlockPart::Text));
        }
        blocks.push(read_part(part)?);
    }
    Ok(())
}

/// The JSON of the text of a part that is a text.
fn text_of_part(part: &RawValue) -> Option<&str> {
    let fields = part.get().starts_with('{').then(|| Fields::read(part.get(), "a part").ok())??;
    fields.peek("text").map(RawValue::get)
}

fn read_part(part: &RawValue) -> Result<Block, FieldError> {
    let opaque = || Block::Opaque(Opaque { value: part.into(), extra: Extra::NONE });
    if !part.get().starts_with('{') {
        return Ok(opaque());
    }
    let mut fields = Fields::read(part.get(), "a part")?;
    Ok(match fields.take_text("type")?.as_deref() {
        Some("text") => {
            let text = fields.need_text("text")?;
            let mut block = Block::text(text);
            *super::extra_mut(&mut block) = fields.rest();
            block
        }
        Some("image_url") => {
            let source = fields.take("image_url").map_or_else(Json::empty_object, Json::from);
            let size = sniffed_size(&source);
            Block::Image(Image { source, size, extra: fields.rest() })
        }
        _ => opaque(),
    })
}

fn read_calls<'a>(
    fields: &mut Fields<'a>,
    blocks: &mut Vec<Block>,
    parts: &mut Parts<'a>,
) -> Result<(), FieldError> {
    let Some(calls) = fields.take_some("tool_calls") else { return Ok(()) };
    let calls: Vec<&RawValue> = serde_json::from_str(calls.get())
        .map_err(|_| FieldError(format!("`tool_calls` is not a list: {}", excerpt(calls.get()))))?;
    for call in calls {
        let mut call = Fields::read(call.get(), "a tool call")?;
        let in_call = |e: FieldError| FieldError(format!("in a tool call, {}", e.0));
        let kind = call.take_text("type").map_err(in_call)?.unwrap_or_else(|| "function".into());
        let id = call.take_text("id").map_err(in_call)?.unwrap_or_default();
        // Some servers have kinds of their own, or none, and the same content.
        let inner = call.take(&kind).or_else(|| call.take("function"));
        let inner = inner.ok_or_else(|| in_call(FieldError(format!("`{kind}` is missing"))))?;
        let mut inner = Fields::read(inner.get(), "its content")?;
        let name = inner.need_text("name").map_err(in_call)?;
        let input = if &*kind == "custom" { "input" } else { "arguments" };
        let written = inner.peek(input).map(RawValue::get).unwrap_or_default();
        let arguments = match inner.take_as::<Cow<'_, str>>(input, "a string") {
            Ok(Some(text)) if &*kind == "custom" => Json::string(&text),
            Ok(Some(text)) => arguments_from(&text),
            Ok(None) => Json::empty_object(),
            // Some servers write an object where a text belongs.
            Err(_) => {
                Json::new(written).map_err(|_| in_call(FieldError(format!("`{input}` is not JSON"))))?
            }
        };
        if &*kind != "custom" {
            parts.push((written, blocks.len(), BlockPart::ArgumentsText));
        }
        let mut extra = call.rest();
        if &*kind != "function" {
            extra.push("kind", Json::string(&kind));
        }
        let more = inner.rest();
        more.iter().for_each(|(name, value)| extra.push(format!("function.{name}"), value.clone()));
        blocks.push(Block::ToolCall(ToolCall { id, name, arguments, server: false, extra }));
    }
    Ok(())
}

/// Other things that an answer may be: each is a field beside the content.
fn read_rest(fields: &mut Fields<'_>, blocks: &mut Vec<Block>) {
    for name in ["refusal", "audio", "function_call"] {
        let Some(value) = fields.peek(name).filter(|value| value.get() != "null") else { continue };
        let mut extra = Extra::NONE;
        extra.push("field", Json::string(name));
        let call = || {
            let mut call = Fields::read(value.get(), "it").ok()?;
            let name = call.need_text("name").ok()?;
            let arguments = call.take_text("arguments").ok()?.unwrap_or_default();
            Some((name, arguments_from(&arguments)))
        };
        let block = match name {
            "refusal" => match serde_json::from_str::<Box<str>>(value.get()) {
                Ok(text) => Block::Text(Text { text: text.into(), words: Default::default(), extra }),
                Err(_) => continue,
            },
            // Of the days before ids: its result names the tool.
            "function_call" => match call() {
                Some((name, arguments)) => {
                    Block::ToolCall(ToolCall { id: name.clone(), name, arguments, server: false, extra })
                }
                None => continue,
            },
            _ => Block::Opaque(Opaque { value: value.into(), extra }),
        };
        fields.take(name);
        blocks.push(block);
    }
}

/// Arguments as the model wrote them: JSON, or a text that is none.
pub(super) fn arguments_from(text: &str) -> Json {
    Json::new(text).unwrap_or_else(|_| Json::string(text))
}

/// The text that a model wrote as arguments.
pub(super) fn arguments_text(arguments: &Json) -> Cow<'_, str> {
    match serde_json::from_str::<String>(arguments.as_str()) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(arguments.as_str()),
    }
}

/// The messages, as texts of JSON.
pub(super) fn write(messages: &[Arc<Message>], left_out: &mut LeftOut) -> Vec<String> {
    let mut units = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        match message.raw(FORMAT) {
            Some(raw) => units.push(raw.into_owned()),
            None if message.role() == Role::Tool => {
                // Pictures cannot stand in a result: they follow when all results are there.
                units.extend(message.results().map(|result| write_result(result, message, left_out)));
            }
            None => units.extend(write_message(message, left_out)),
        }
        let more_follow = messages.get(at + 1).is_some_and(|next| next.role() == Role::Tool);
        if message.role() == Role::Tool && !more_follow {
            let from = messages[..at].iter().rposition(|m| m.role() != Role::Tool).map_or(0, |last| last + 1);
            units.extend(write_pictures(&messages[from..=at]));
        }
    }
    units
}

fn write_result(result: &ToolResult, message: &Message, left_out: &mut LeftOut) -> String {
    let is_own = super::is_own(message, Api::Chat);
    let function = super::role_name(message).is_some_and(|name| name == "function");
    let object = if function {
        Object::new().text("role", "function").text("name", &result.id)
    } else {
        Object::new().text("role", "tool").text("tool_call_id", &id(&result.id, is_own))
    };
    let object = match &result.name {
        Some(name) if is_own => object.text("name", name),
        _ => object,
    };
    let own = if is_own { message.extra() } else { &Extra::NONE };
    // An error has no mark of its own here.
    let failed = if result.is_error { "[The tool failed.]\n" } else { "" };
    let content = match result.content.as_deref() {
        Some(blocks) if is_own => {
            let parts = blocks.iter().map(|block| match block {
                Block::Text(b) => write_text(&b.text, true, &b.extra),
                Block::Image(b) => write_image(b, true).unwrap_or_else(|| text("[A picture was here.]")),
                Block::Opaque(b) => b.value.as_str().to_owned(),
                _ => text(""),
            });
            list(&parts.collect::<Vec<_>>())
        }
        Some(blocks) => {
            let notes = blocks.iter().filter_map(|block| match block {
                Block::Opaque(b) => Some(format!("\n{}", super::foreign(b, left_out))),
                _ => None,
            });
            quoted(&format!("{failed}{}{}", result.text, notes.collect::<String>()))
        }
        None => quoted(&format!("{failed}{}", result.text)),
    };
    object.json("content", &content).extra(own, &[]).end()
}

/// The pictures of these results, as a message of the user.
fn write_pictures(results: &[Arc<Message>]) -> Option<String> {
    let touched = results.iter().filter(|message| !super::is_own(message, Api::Chat));
    let pictures: Vec<String> = touched
        .flat_map(|message| message.results())
        .flat_map(|result| result.content.as_deref().unwrap_or_default())
        .filter_map(|block| match block {
            Block::Image(image) => write_image(image, false),
            _ => None,
        })
        .collect();
    let note = text("[Pictures that the tools above gave:]");
    let content = list(&[vec![note], pictures.clone()].concat());
    (!pictures.is_empty()).then(|| Object::new().text("role", "user").json("content", &content).end())
}

fn text(text: &str) -> String {
    Object::new().text("type", "text").text("text", text).end()
}

fn write_image(image: &Image, own: bool) -> Option<String> {
    let extra = if own { &image.extra } else { &Extra::NONE };
    let value = image.source.value();
    let source = if value.is_string() && own || value.get("url").is_some() && value.get("type").is_none() {
        image.source.as_str().to_owned()
    } else {
        format!(r#"{{"url":{}}}"#, quoted(&Picture::from_source(&image.source)?.url()?))
    };
    Some(Object::new().text("type", "image_url").json("image_url", &source).extra(extra, &[]).end())
}

fn write_message(message: &Message, left_out: &mut LeftOut) -> Option<String> {
    let own = super::is_own(message, Api::Chat);
    let developer = super::role_name(message).is_some_and(|name| name == "developer");
    let role = match message.role() {
        Role::System if developer => "developer",
        Role::System | Role::Summary => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let (mut parts, mut calls, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    for block in message.blocks() {
        if let Some(field) = block.extra().get("field").filter(|_| own) {
            fields.push((field.as_str().trim_matches('"'), field_json(block)));
            continue;
        }
        match block {
            Block::Text(b) => {
                let bare = (!own || b.extra.is_empty()).then_some(&*b.text);
                parts.push((bare, write_text(&b.text, own, &b.extra)));
            }
            Block::Thinking(_) => left_out.add("reasoning"),
            Block::ToolCall(b) if b.server => {
                parts.push((None, text(&super::foreign_call(b, left_out))));
            }
            Block::ToolCall(b) => calls.push(write_call(b, own)),
            // What a provider's own tool said: its call is told above.
            Block::ToolResult(b) => parts.extend(super::foreign_result(b).map(|said| (None, text(&said)))),
            Block::Image(b) => match write_image(b, own).filter(|_| message.role() != Role::Assistant) {
                Some(image) => parts.push((None, image)),
                None => {
                    left_out.add("a picture");
                    parts.push((None, text("[A picture was here.]")));
                }
            },
            Block::Opaque(b) if own => parts.push((None, b.value.as_str().to_owned())),
            Block::Opaque(b) => parts.push((None, text(&super::foreign(b, left_out)))),
        }
    }
    if parts.is_empty() && calls.is_empty() && fields.is_empty() {
        return None;
    }
    let mut object = Object::new().text("role", role);
    object = match parts.as_slice() {
        [] if calls.is_empty() && fields.iter().all(|(name, _)| REASONING.contains(name)) => {
            object.text("content", "")
        }
        [] => object.json("content", "null"),
        [(Some(only), _)] => object.text("content", only),
        several => {
            object.json("content", &list(&several.iter().map(|(_, json)| json.clone()).collect::<Vec<_>>()))
        }
    };
    for (field, json) in fields {
        object = object.json(field, &json);
    }
    if !calls.is_empty() {
        object = object.list("tool_calls", &calls);
    }
    let extra = if own { message.extra() } else { &Extra::NONE };
    Some(object.extra(extra, &[]).end())
}

/// The JSON of a block that is a field of its message.
fn field_json(block: &Block) -> String {
    match block {
        Block::Text(b) => quoted(&b.text),
        Block::Thinking(b) => quoted(&b.text),
        Block::ToolCall(b) => {
            Object::new().text("name", &b.name).text("arguments", &arguments_text(&b.arguments)).end()
        }
        Block::Opaque(b) => b.value.as_str().to_owned(),
        Block::ToolResult(_) | Block::Image(_) => "null".to_owned(),
    }
}

fn write_text(text: &str, own: bool, extra: &Extra) -> String {
    let extra = if own { extra } else { &Extra::NONE };
    Object::new().text("type", "text").text("text", text).extra(extra, &[]).end()
}

fn write_call(call: &ToolCall, own: bool) -> String {
    let kind = super::kind_of(&call.extra).filter(|_| own).unwrap_or_else(|| "function".to_owned());
    let input = if kind == "custom" { "input" } else { "arguments" };
    let mut inner = Object::new().text("name", &call.name).text(input, &arguments_for(call, own));
    let extra = if own { &call.extra } else { &Extra::NONE };
    let mut object = Object::new().text("id", &id(&call.id, own)).text("type", &kind);
    for (name, value) in extra.iter().filter(|(name, _)| *name != "kind") {
        match name.strip_prefix("function.") {
            Some(name) => inner = inner.json(name, value.as_str()),
            None => object = object.json(name, value.as_str()),
        }
    }
    object.json(&kind, &inner.end()).end()
}

/// OpenAI takes ids of up to 40 characters.
fn id(id: &str, own: bool) -> Cow<'_, str> {
    if own { Cow::Borrowed(id) } else { super::fit_id(id, 40) }
}

/// What a call has as arguments where they are a text. The free text of another API's tool
/// becomes an object.
pub(super) fn arguments_for(call: &ToolCall, own: bool) -> Cow<'_, str> {
    let custom = !own && super::kind_of(&call.extra).is_some_and(|kind| kind.starts_with("custom"));
    if custom {
        return Cow::Owned(format!(r#"{{"input":{}}}"#, call.arguments.as_str()));
    }
    arguments_text(&call.arguments)
}
