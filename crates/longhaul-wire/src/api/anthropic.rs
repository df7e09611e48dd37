//! Anthropic Messages. A user message may hold results and words: here they are messages of
//! their own, which are written as one again as long as both are there and untouched.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{BlockPart, Image, Opaque, Raw, Thinking};
use longhaul::{Block, Extra, Json, Message, Role, Seal, ToolCall, ToolResult};
use serde_json::value::RawValue;

use super::picture::Picture;
use super::write::{Object, list, quoted};
use super::{Api, LeftOut, Mark};
use crate::fields::{FieldError, Fields, excerpt};
use crate::speakers::tell_apart;
use crate::transcript::{sniffed_size, text_of};

/// Raw texts: of a whole message, or of a part of one, in the order of the parts.
const WHOLE: &str = "anthropic";
const FIRST: &str = "anthropic, first part";
const NEXT: &str = "anthropic, next part";
const LAST: &str = "anthropic, last part";

type Parts<'a> = Vec<(&'a str, usize, BlockPart)>;

pub(super) fn read_message(json: &str) -> Result<Vec<Message>, FieldError> {
    let mut fields = Fields::read(json, "it")?;
    let role = match &*fields.need_text("role")? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            return Err(FieldError(format!("role {:?} is not user, assistant or system", excerpt(other))));
        }
    };
    let content = fields.take("content").ok_or_else(|| FieldError("`content` is missing".to_owned()))?;
    let extra = fields.rest();
    let origin = || super::origin(Api::Anthropic, None);
    if content.get().starts_with('"') {
        let text: Box<str> = serde_json::from_str(content.get())
            .map_err(|_| FieldError("`content` is not a valid string".to_owned()))?;
        let message =
            Message::new(role, vec![Block::text(text)]).with_extra(extra).with_wire_fields(origin());
        let parts = [(content.get(), 0, BlockPart::Text)];
        let raw = Raw::new(WHOLE, json, &parts, message.blocks());
        return Ok(vec![message.with_raw(raw)]);
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get())
        .map_err(|_| FieldError(format!("`content` is not a list of blocks: {}", excerpt(content.get()))))?;
    let mut read = Vec::with_capacity(blocks.len());
    for block in &blocks {
        read.push(read_block(block)?);
    }
    // Runs of results and of everything else; an answer is never parted.
    let alike = |a: &Read, b: &Read| role != Role::User || is_result(&a.0) == is_result(&b.0);
    let sizes: Vec<usize> = read.chunk_by(alike).map(<[_]>::len).collect();
    let (mut messages, mut from, mut done) = (Vec::new(), 0, 0);
    let mut read = read.into_iter();
    for (run, size) in sizes.iter().enumerate() {
        let last = run + 1 == sizes.len();
        let end_of_block =
            |block: &str| (block.as_ptr() as usize).wrapping_sub(json.as_ptr() as usize) + block.len();
        let to = if last { json.len() } else { end_of_block(blocks[done + size - 1].get()) };
        let (mut own, mut parts): (Vec<Block>, Parts<'_>) = (Vec::new(), Vec::new());
        for (number, (block, part)) in read.by_ref().take(*size).enumerate() {
            parts.extend(part.map(|(json, part)| (json, number, part)));
            own.push(block);
        }
        let role = if role == Role::User && own.iter().any(is_result) { Role::Tool } else { role };
        let format = match (run == 0, last) {
            (true, true) => WHOLE,
            (true, false) => FIRST,
            (false, false) => NEXT,
            (false, true) => LAST,
        };
        // The fields of the message go with its first part.
        let extra = if run == 0 { extra.clone() } else { Extra::NONE };
        let raw = Raw::new(format, json.get(from..to).unwrap_or_default(), &parts, &own);
        let of_host = role == Role::User && tell_apart(&mut own);
        let mut message = Message::new(role, own).with_extra(extra).with_wire_fields(origin());
        if of_host {
            message = message.with_attachment();
        }
        messages.push(message.with_raw(raw));
        (from, done) = (to, done + size);
    }
    if messages.is_empty() {
        let raw = Raw::new(WHOLE, json, &[], &[]);
        let message = Message::new(role, Vec::new()).with_extra(extra).with_wire_fields(origin());
        messages.push(message.with_raw(raw));
    }
    Ok(messages)
}

/// A block, and the text that it can be written again from.
type Read<'a> = (Block, Option<(&'a str, BlockPart)>);

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult(_))
}

fn read_block(block: &RawValue) -> Result<Read<'_>, FieldError> {
    let opaque = || (Block::Opaque(Opaque { value: block.into(), extra: Extra::NONE }), None);
    if !block.get().starts_with('{') {
        return Ok(opaque());
    }
    let mut fields = Fields::read(block.get(), "a block")?;
    let kind: Box<str> = fields.need_text("type")?;
    let in_block = |e: FieldError| FieldError(format!("in a {kind} block, {}", e.0));
    let Some((mut read, part)) = read_known(&kind, &mut fields).map_err(in_block)? else {
        return Ok(opaque());
    };
    let mut extra = fields.rest();
    if !matches!(
        &*kind,
        "text" | "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" | "tool_result" | "image"
    ) {
        extra.push("kind", Json::string(&kind));
    }
    *super::extra_mut(&mut read) = extra;
    Ok((read, part))
}

fn read_known<'a>(kind: &str, fields: &mut Fields<'a>) -> Result<Option<Read<'a>>, FieldError> {
    let part =
        |fields: &Fields<'a>, name: &str, part: BlockPart| fields.peek(name).map(|value| (value.get(), part));
    Ok(Some(match kind {
        "text" => {
            let part = part(fields, "text", BlockPart::Text);
            (Block::text(fields.need_text("text")?), part)
        }
        "thinking" => {
            let part = part(fields, "thinking", BlockPart::Text);
            let text = fields.need_text("thinking")?;
            let empty =
                fields.peek("signature").filter(|signature| matches!(signature.get(), "\"\"" | "null"));
            let seal = match fields.take_text("signature")? {
                Some(signature) if !signature.is_empty() => Seal::Signed(signature),
                _ => Seal::Open,
            };
            empty.into_iter().for_each(|signature| fields.put_back("signature", signature));
            (Block::Thinking(Thinking { text, seal, extra: Extra::NONE }), part)
        }
        "redacted_thinking" => {
            let seal = Seal::Redacted(fields.take_text("data")?);
            (Block::Thinking(Thinking { text: "".into(), seal, extra: Extra::NONE }), None)
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let part = part(fields, "input", BlockPart::Arguments);
            let call = ToolCall {
                id: fields.need_text("id")?,
                name: fields.need_text("name")?,
                arguments: fields.take("input").map_or_else(Json::empty_object, Json::from),
                server: kind != "tool_use",
                extra: Extra::NONE,
            };
            (Block::ToolCall(call), part)
        }
        "tool_result" => {
            let part = part(fields, "content", BlockPart::Text);
            (Block::ToolResult(read_result(fields)?), part)
        }
        // What a tool said that Anthropic ran itself: of many kinds, never looked into.
        _ if kind.ends_with("_tool_result") && fields.peek("tool_use_id").is_some() => {
            let id = fields.need_text("tool_use_id")?;
            let opaque =
                |content: &RawValue| Block::Opaque(Opaque { value: content.into(), extra: Extra::NONE });
            let content = fields.take("content");
            let text = content.map(|content| server_text(&content.into())).unwrap_or_default();
            let content: Box<[Block]> = content.map(opaque).into_iter().collect();
            let result = ToolResult {
                id,
                name: None,
                text: text.into(),
                content: (!content.is_empty()).then_some(content),
                is_error: fields.take_flag("is_error"),
                extra: Extra::NONE,
            };
            (Block::ToolResult(result), None)
        }
        "image" => {
            let source = fields.take("source").map_or_else(Json::empty_object, Json::from);
            let size = sniffed_size(&source);
            (Block::Image(Image { source, size, extra: Extra::NONE }), None)
        }
        _ => return Ok(None),
    }))
}

/// The readable text of what a server's tool said.
fn server_text(content: &Json) -> String {
    let value = content.value();
    let parts = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let said = parts.iter().filter_map(|part| {
        let field = |name: &str| part.get(name).and_then(serde_json::Value::as_str);
        let title = field("title").map(|title| format!("{title} {}", field("url").unwrap_or_default()));
        field("text").map(str::to_owned).or(title)
    });
    said.collect::<Vec<_>>().join("\n")
}

fn read_result(fields: &mut Fields<'_>) -> Result<ToolResult, FieldError> {
    let id = fields.need_text("tool_use_id")?;
    let (text, content) = match fields.take_some("content") {
        None => ("".into(), None),
        Some(json) if json.get().starts_with('"') => (
            serde_json::from_str(json.get())
                .map_err(|_| FieldError("`content` is not a valid string".to_owned()))?,
            None,
        ),
        Some(json) => {
            let blocks: Vec<&RawValue> = serde_json::from_str(json.get()).map_err(|_| {
                FieldError(format!("`content` is not a list of blocks: {}", excerpt(json.get())))
            })?;
            let read: Result<Vec<Block>, FieldError> =
                blocks.into_iter().map(|block| read_block(block).map(|read| read.0)).collect();
            let blocks = read?;
            let plain = |block: &Block| matches!(block, Block::Text(text) if text.extra.is_empty());
            let only = blocks.len() < 2 && blocks.iter().all(plain);
            (text_of(&blocks), (!only).then(|| blocks.into()))
        }
    };
    Ok(ToolResult {
        id,
        name: None,
        text: text.into(),
        content,
        is_error: fields.take_flag("is_error"),
        extra: Extra::NONE,
    })
}

/// Whether the message's last block has a mark of the cache.
pub(super) fn ends_marked(message: &Message) -> bool {
    message.blocks().last().is_some_and(|block| block.extra().is_set("cache_control"))
}

/// The messages, as texts of JSON, with these marks of the cache.
pub(super) fn write(
    messages: &[Arc<Message>],
    marks: &[Mark],
    as_it_was: bool,
    left_out: &mut LeftOut,
) -> Vec<String> {
    let mut units: Vec<String> = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        let unit = whole(&messages[at..]).unwrap_or_else(|| from_blocks(&messages[at..], left_out));
        let mut json = unit.json;
        for mark in marks {
            // The number of blocks up to the end of the message that the mark stands at.
            let offset = mark.message().and_then(|message| message.checked_sub(at));
            let end = offset.and_then(|offset| unit.ends.get(offset));
            json = end.and_then(|end| set_mark(&json, *end, *mark)).unwrap_or(json);
        }
        // A conversation begins with the user.
        if !as_it_was && units.is_empty() && !json.is_empty() && messages[at].role() == Role::Assistant {
            units.push(user(&[text("[The conversation begins here.]")]));
        }
        units.extend((!json.is_empty()).then_some(json));
        at += unit.ends.len();
    }
    units
}

/// A message as it is sent, of one message of the log or of several.
struct Unit {
    json: String,
    /// For each of them, how many blocks there are up to its end.
    ends: Vec<usize>,
}

/// The untouched text of the next message, or of the parts that were one.
fn whole(messages: &[Arc<Message>]) -> Option<Unit> {
    if let Some(raw) = messages[0].raw(WHOLE) {
        return Some(Unit { json: raw.into_owned(), ends: vec![messages[0].blocks().len()] });
    }
    let mut unit =
        Unit { json: messages[0].raw(FIRST)?.into_owned(), ends: vec![messages[0].blocks().len()] };
    for message in &messages[1..] {
        unit.ends.push(unit.ends.last().unwrap_or(&0) + message.blocks().len());
        if let Some(raw) = message.raw(NEXT) {
            unit.json.push_str(&raw);
        } else {
            unit.json.push_str(&message.raw(LAST)?);
            return Some(unit);
        }
    }
    None
}

/// The next message from its blocks: results of one step go together.
fn from_blocks(messages: &[Arc<Message>], left_out: &mut LeftOut) -> Unit {
    let first = &messages[0];
    let together = if first.role() == Role::Tool {
        let others = messages[1..].iter().take_while(|m| m.role() == Role::Tool && m.raw(WHOLE).is_none());
        1 + others.count()
    } else {
        1
    };
    let (mut blocks, mut ends) = (Vec::new(), Vec::new());
    for message in &messages[..together] {
        blocks.extend(write_blocks(message, left_out));
        ends.push(blocks.len());
    }
    if blocks.is_empty() {
        return Unit { json: String::new(), ends };
    }
    let own = super::is_own(first, Api::Anthropic);
    let role = match first.role() {
        Role::Assistant => "assistant",
        // A client that sends such messages has asked for them to be taken.
        Role::System if own => "system",
        Role::User | Role::Tool | Role::System | Role::Summary => "user",
    };
    let object = Object::new().text("role", role).list("content", &blocks);
    let json = if own { object.extra(first.extra(), &[]).end() } else { object.end() };
    Unit { json, ends }
}

/// The message with a mark of the cache on its block before `end`; `None` if there is no block
/// that can have one.
fn set_mark(json: &str, end: usize, mark: Mark) -> Option<String> {
    let value = mark.json();
    let at = |part: &str| (part.as_ptr() as usize).wrapping_sub(json.as_ptr() as usize);
    let content = Fields::read(json, "it").ok()?.take("content")?;
    let start = at(content.get());
    if content.get().starts_with('"') {
        let block =
            Object::new().text("type", "text").json("text", content.get()).json("cache_control", value);
        return Some([&json[..start], "[", &block.end(), "]", &json[start + content.get().len()..]].concat());
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let markable = blocks.get(..end)?.iter().rev().find(|block| {
        let kind =
            Fields::read(block.get(), "it").ok().and_then(|mut fields| fields.take_text("type").ok()?);
        kind.is_some_and(|kind| !kind.contains("thinking"))
    })?;
    if markable.get().contains(super::MARK) {
        return None;
    }
    let close = at(markable.get()) + markable.get().len() - 1;
    Some([&json[..close], ",", super::MARK, ":", value, &json[close..]].concat())
}

fn user(blocks: &[String]) -> String {
    Object::new().text("role", "user").list("content", blocks).end()
}

fn text(text: &str) -> String {
    Object::new().text("type", "text").text("text", text).end()
}

fn write_blocks(message: &Message, left_out: &mut LeftOut) -> Vec<String> {
    let own = super::is_own(message, Api::Anthropic);
    // What is not the person's word stands in the person's place, and says so.
    let tag = match message.role() {
        Role::System if !own => Some("system-message"),
        Role::Summary => Some("summary-of-earlier-messages"),
        _ => None,
    };
    let place = Place { own, in_answer: message.role() == Role::Assistant, tag };
    message.blocks().iter().filter_map(|block| write_block(block, place, left_out)).collect()
}

/// Where a block stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// In a message that Anthropic's API was sent before.
    own: bool,
    in_answer: bool,
    /// What its text is marked as.
    tag: Option<&'a str>,
}

/// A block as JSON; `None` if Anthropic has no place for it.
fn write_block(block: &Block, place: Place<'_>, left_out: &mut LeftOut) -> Option<String> {
    let Place { own, in_answer, tag } = place;
    let end =
        |object: Object, extra: &Extra| if own { object.extra(extra, &["kind"]).end() } else { object.end() };
    Some(match block {
        Block::Text(b) if b.text.trim().is_empty() => return None,
        Block::Text(b) => {
            let said = match tag {
                Some(tag) => {
                    Cow::Owned(format!("<{tag} note=\"not the user's words\">\n{}\n</{tag}>", b.text))
                }
                None => Cow::Borrowed(&*b.text),
            };
            end(Object::new().text("type", "text").text("text", &said), &b.extra)
        }
        Block::Thinking(b) => match &b.seal {
            Seal::Signed(signature) => {
                let object = Object::new().text("type", "thinking").text("thinking", &b.text);
                end(object.text("signature", signature), &b.extra)
            }
            Seal::Redacted(Some(data)) => {
                end(Object::new().text("type", "redacted_thinking").text("data", data), &b.extra)
            }
            // Servers that speak like Anthropic may not sign, and want it back all the same.
            Seal::Open if own => {
                end(Object::new().text("type", "thinking").text("thinking", &b.text), &b.extra)
            }
            Seal::Open | Seal::Redacted(None) | Seal::Encrypted(_) => {
                left_out.add("reasoning that Anthropic did not sign");
                return None;
            }
        },
        Block::ToolCall(b) if b.server && !own => text(&super::foreign_call(b, left_out)),
        Block::ToolCall(b) => {
            let usual = if b.server { "server_tool_use" } else { "tool_use" };
            let kind = super::kind_of(&b.extra).filter(|_| own && b.server).unwrap_or(usual.to_owned());
            let input = if b.arguments.is_object() {
                Cow::Borrowed(b.arguments.as_str())
            } else if matches!(b.arguments.as_str(), "\"\"" | "null") {
                Cow::Borrowed("{}")
            } else {
                Cow::Owned(format!(r#"{{"input":{}}}"#, b.arguments.as_str()))
            };
            let object = Object::new().text("type", &kind).text("id", &id(&b.id)).text("name", &b.name);
            end(object.json("input", &input), &b.extra)
        }
        // A result in an answer is of a tool that another provider ran.
        Block::ToolResult(b) if in_answer && !own => return super::foreign_result(b).map(|said| text(&said)),
        Block::ToolResult(b) => {
            let server = super::kind_of(&b.extra).filter(|kind| own && kind.ends_with("_tool_result"));
            let kind = server.as_deref().unwrap_or("tool_result");
            let mut object = Object::new().text("type", kind).text("tool_use_id", &id(&b.id));
            object = match (&b.content, &server) {
                (Some(content), Some(_)) => match &content[..] {
                    [Block::Opaque(value)] => object.json("content", value.value.as_str()),
                    _ => object,
                },
                (Some(content), None) => {
                    let blocks = content
                        .iter()
                        .filter_map(|block| write_block(block, Place { tag: None, ..place }, left_out));
                    object.json("content", &list(&blocks.collect::<Vec<_>>()))
                }
                (None, _) => object.json("content", &quoted(&b.text)),
            };
            if b.is_error {
                object = object.json("is_error", "true");
            }
            end(object, &b.extra)
        }
        Block::Image(b) => {
            let known = b
                .source
                .value()
                .get("type")
                .is_some_and(|kind| kind == "base64" || kind == "url" || kind == "file");
            let source = if known {
                Some(b.source.as_str().to_owned())
            } else {
                Picture::from_source(&b.source).and_then(|picture| picture.anthropic_source())
            };
            let Some(source) = source else {
                left_out.add("a picture that is with another provider");
                return Some(text("[A picture was here.]"));
            };
            end(Object::new().text("type", "image").json("source", &source), &b.extra)
        }
        Block::Opaque(b) if own => b.value.as_str().to_owned(),
        Block::Opaque(b) => {
            return Some(super::foreign(b, left_out))
                .filter(|said| !said.trim().is_empty())
                .map(|said| text(&said));
        }
    })
}

/// Anthropic takes ids of letters, digits, `_` and `-` only.
fn id(id: &str) -> Cow<'_, str> {
    super::fit_id(id, 64)
}
