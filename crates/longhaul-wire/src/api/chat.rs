//! OpenAI Chat Completions: a message of the list is a message. Reasoning has no place of its
//! own here; what servers call `reasoning_content` or `reasoning` is sent back as it came.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{BlockPart, Image, Opaque, Raw, RawPart, Text, Thinking, Words};
use longhaul::{Block, Extra, Json, Message, Role, Seal, Tool, ToolCall, ToolResult, Voice};
use serde_json::Value as Parsed;

use super::format::{Choice, Format, Group, Row, Unit};
use super::object::{FIELD, Fields, KIND, Said, note, sent_name, set_note};
use super::picture::Picture;
use super::write::{Object, list, quoted};
use super::{Api, LeftOut, voiced};
use crate::fields::{FieldError, excerpt};
use crate::scan::Value;
use crate::transcript::sniffed_size;

const FORMAT: &str = "openai";
/// Names under which servers give open reasoning.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];
/// Begins the name of a field inside a call.
const INNER: &str = "~function.";

/// Beside a call: its content stands under `function`, whatever its type.
const IN_FUNCTION: &str = "~in_function";

/// OpenAI Chat Completions, and all that speak like it.
pub(super) struct Chat;

impl Format for Chat {
    fn row(&self) -> &'static Row {
        &Row {
            name: FORMAT,
            list: "messages",
            system: None,
            element: "message",
            has_marks: true,
            wants_marks: false,
            may_lack_list: false,
        }
    }

    fn resembles(&self, body: &Parsed) -> bool {
        body.get("messages").is_some()
    }

    fn read<'a>(&self, elements: &[Value<'a>]) -> Result<Group, (usize, FieldError)> {
        super::read_marked(elements, |element| read_message(element).map(|message| vec![message]))
    }

    fn together(&self, messages: &[Arc<Message>]) -> usize {
        self.joined(messages).max(1)
    }

    fn joined(&self, messages: &[Arc<Message>]) -> usize {
        voiced::joined(messages)
    }

    fn write(&self, all: &[Arc<Message>], at: usize, together: usize, left_out: &mut LeftOut) -> Unit {
        if together > 1 {
            let unit = |at| Chat.write(all, at, 1, left_out);
            return voiced::join(&all[at..at + together], (at..at + together).map(unit).collect());
        }
        let message = &all[at];
        let mut units: Vec<String> = match message.raw(FORMAT) {
            Some(raw) => vec![raw.into_owned()],
            None if message.role() == Role::Tool => {
                let keeps_ids = super::keeps_ids(all, at, Api::Chat);
                message.results().map(|result| write_result(result, message, keeps_ids, left_out)).collect()
            }
            None => write_message(message, left_out).into_iter().collect(),
        };
        // Pictures cannot stand in a result: they follow when all results are there.
        let more_follow = all.get(at + 1).is_some_and(|next| next.role() == Role::Tool);
        if message.role() == Role::Tool && !more_follow {
            let from = all[..at].iter().rposition(|m| m.role() != Role::Tool).map_or(0, |last| last + 1);
            units.extend(write_pictures(&all[from..=at]));
        }
        Unit { json: units.join(","), ends: vec![message.blocks().len()] }
    }

    fn names(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("max_output", "max_completion_tokens"),
            ("max_output", "max_tokens"),
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("stream", "stream"),
            ("stop", "stop"),
            ("parallel", "parallel_tool_calls"),
            ("cache_key", "prompt_cache_key"),
        ]
    }

    fn is_tool(&self, definition: &Parsed) -> bool {
        definition.get("function").is_some()
    }

    fn write_tool(&self, tool: &Tool, about: Option<&str>, schema: &str) -> String {
        let function = Object::new().text("name", &tool.name).maybe_json("description", about);
        Object::new()
            .text("type", "function")
            .json("function", &function.json("parameters", schema).end())
            .end()
    }

    fn write_choice(&self, choice: Choice<'_>) -> String {
        match choice {
            Choice::Auto => quoted("auto"),
            Choice::None => quoted("none"),
            Choice::Any => quoted("required"),
            Choice::Named(name) => {
                let function = Object::new().text("name", name).end();
                Object::new().text("type", "function").json("function", &function).end()
            }
        }
    }

    fn write_system(
        &self,
        body: Object,
        texts: &[&str],
        _marks: &[Option<&str>],
    ) -> (Object, Option<String>) {
        let message = Object::new().text("role", "system").text("content", &texts.join("\n\n")).end();
        (body, Some(message))
    }
}

/// A message without marks.
fn read_message(element: Value<'_>) -> Result<Message, FieldError> {
    let mut fields = Fields::of(element, "it")?;
    let name = fields.need_said("role")?.text;
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
    let mut read = Reading { base: element.start(), blocks: Vec::new(), parts: Vec::new() };
    if role == Role::Tool {
        // Results of the days before ids are named by their tool.
        let id = if name == "tool" { fields.need_text("tool_call_id")? } else { fields.need_text("name")? };
        let (text, content, said) = super::result_content(read_content(&mut fields)?);
        read.parts.extend(said.and_then(|said| said.part(read.base, 0, BlockPart::Text)));
        let name = fields.take_text("name")?;
        let result = ToolResult { id, name, text, content, is_error: false, extra: Extra::NONE };
        read.blocks.push(Block::ToolResult(result));
    } else {
        if role == Role::Assistant {
            read.reasoning(&mut fields);
        }
        for (block, said) in read_content(&mut fields)? {
            read.push(block, said, BlockPart::Text);
        }
        if role == Role::Assistant {
            read.calls(&mut fields)?;
            read.rest(&mut fields);
        }
    }
    let role_name = Some(&*name).filter(|name| matches!(*name, "developer" | "function"));
    // Fields may come in any order; holes do not.
    read.parts.sort_by_key(|part| part.start);
    let raw = Raw::without(FORMAT, element.raw(), &read.parts);
    Ok(super::read_as(Api::Chat, role, role_name, read.blocks, fields.rest(), raw))
}

/// The blocks of a message that is being read, and what of its text they hold.
struct Reading {
    base: usize,
    blocks: Vec<Block>,
    parts: Vec<RawPart>,
}

impl Reading {
    fn push(&mut self, block: Block, said: Option<Said<'_>>, part: BlockPart) {
        self.parts.extend(said.and_then(|said| said.part(self.base, self.blocks.len(), part)));
        self.blocks.push(block);
    }

    /// Open reasoning, if it is a text; anything else stays an unknown field.
    fn reasoning(&mut self, fields: &mut Fields<'_>) {
        for name in REASONING {
            let Some(said) = fields.peek(name).and_then(Said::of).filter(|said| !said.text.is_empty()) else {
                continue;
            };
            fields.take(name);
            let mut extra = Extra::NONE;
            set_note(&mut extra, FIELD, name);
            let thinking = Thinking { text: (*said.text).into(), seal: Seal::Open, extra };
            return self.push(Block::Thinking(thinking), Some(said), BlockPart::Text);
        }
    }

    fn calls(&mut self, fields: &mut Fields<'_>) -> Result<(), FieldError> {
        let Some(calls) = fields.take_some("tool_calls") else { return Ok(()) };
        if !calls.is_array() {
            return Err(FieldError(format!("`tool_calls` is not a list: {}", excerpt(calls.raw()))));
        }
        for call in calls.elements() {
            let (call, said) = read_call(call)?;
            self.push(Block::ToolCall(call), said, BlockPart::ArgumentsText);
        }
        Ok(())
    }

    /// Other things that an answer may be: each is a field beside the content.
    fn rest(&mut self, fields: &mut Fields<'_>) {
        for name in ["refusal", "audio", "function_call"] {
            let Some(value) = fields.peek(name).filter(|value| value.raw() != "null") else { continue };
            let mut extra = Extra::NONE;
            set_note(&mut extra, FIELD, name);
            let call = || {
                let mut call = Fields::of(value, "it").ok()?;
                let name = call.need_text("name").ok()?;
                let arguments = call.take_text("arguments").ok()?.unwrap_or_default();
                Some((name, arguments_from(&arguments).0))
            };
            let block = match name {
                "refusal" => match value.text() {
                    Some(text) => Block::Text(Text { text: text.into(), words: Words::All, extra }),
                    None => continue,
                },
                // Of the days before ids: its result names the tool.
                "function_call" => match call() {
                    Some((name, arguments)) => {
                        Block::ToolCall(ToolCall { id: name.clone(), name, arguments, server: false, extra })
                    }
                    None => continue,
                },
                _ => Block::Opaque(Opaque { value: value.json(), extra }),
            };
            fields.take(name);
            self.blocks.push(block);
        }
    }
}

/// The content of a message, each block with the string that it says.
fn read_content<'a>(fields: &mut Fields<'a>) -> Result<Vec<(Block, Option<Said<'a>>)>, FieldError> {
    let Some(content) = fields.take_some("content") else { return Ok(Vec::new()) };
    if let Some(said) = Said::of(content) {
        // An answer of calls alone may have an empty text.
        let block = (!said.text.is_empty()).then(|| (Block::text(&*said.text), Some(said)));
        return Ok(block.into_iter().collect());
    }
    if !content.is_array() {
        return Err(FieldError(format!("`content` is not a list of parts: {}", excerpt(content.raw()))));
    }
    content.elements().map(read_part).collect()
}

fn read_part(part: Value<'_>) -> Result<(Block, Option<Said<'_>>), FieldError> {
    let opaque = || (Block::Opaque(Opaque { value: part.json(), extra: Extra::NONE }), None);
    if !part.is_object() {
        return Ok(opaque());
    }
    let mut fields = Fields::of(part, "a part")?;
    Ok(match fields.take_said("type")?.as_ref().map(|said| &*said.text) {
        Some("text") => {
            let said = fields.need_said("text")?;
            let mut block = Block::text(&*said.text);
            *super::extra_mut(&mut block) = fields.rest();
            (block, Some(said))
        }
        Some("image_url") => {
            let source = fields.take("image_url").map_or_else(Json::empty_object, |source| source.json());
            let size = sniffed_size(&source);
            (Block::Image(Image { source, size, extra: fields.rest() }), None)
        }
        _ => opaque(),
    })
}

/// A call, and the string that holds its arguments.
fn read_call(call: Value<'_>) -> Result<(ToolCall, Option<Said<'_>>), FieldError> {
    let mut call = Fields::of(call, "a tool call")?;
    let in_call = |e: FieldError| FieldError(format!("in a tool call, {}", e.0));
    let kind = call.take_text("type").map_err(in_call)?.unwrap_or_else(|| "function".into());
    let id = call.take_text("id").map_err(in_call)?.unwrap_or_default();
    // Some servers have kinds of their own, or none, and the same content.
    let named = call.take(&kind);
    let in_function = named.is_none();
    let inner = named.or_else(|| call.take("function"));
    let inner = inner.ok_or_else(|| in_call(FieldError(format!("`{kind}` is missing"))))?;
    let mut inner = Fields::of(inner, "its content")?;
    let name = inner.need_text("name").map_err(in_call)?;
    let input = if &*kind == "custom" { "input" } else { "arguments" };
    let (arguments, said) = match inner.take_some(input) {
        None => (Json::empty_object(), None),
        Some(value) => match Said::of(value) {
            Some(said) if &*kind == "custom" => (Json::string(&said.text), None),
            Some(said) => {
                let (arguments, is_json) = arguments_from(&said.text);
                (arguments, Some(said).filter(|_| is_json))
            }
            // Some servers write an object where a text belongs.
            None => (value.json(), None),
        },
    };
    let mut extra = call.rest();
    if &*kind != "function" {
        set_note(&mut extra, KIND, &kind);
        if in_function {
            extra.push(IN_FUNCTION, Json::from(&Parsed::Bool(true)));
        }
    }
    inner.rest().iter().for_each(|(name, value)| extra.push(format!("{INNER}{name}"), value.clone()));
    Ok((ToolCall { id, name, arguments, server: false, extra }, said))
}

/// Arguments as the model wrote them: JSON, and whether they are to the byte (no blanks around it), or a
/// text that is none.
pub(super) fn arguments_from(text: &str) -> (Json, bool) {
    match Json::new(text) {
        Ok(json) => {
            let is_all = json.as_str() == text;
            (json, is_all)
        }
        Err(_) => (Json::string(text), false),
    }
}

/// The text that a model wrote as arguments.
pub(super) fn arguments_text(arguments: &Json) -> Cow<'_, str> {
    match serde_json::from_str::<String>(arguments.as_str()) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(arguments.as_str()),
    }
}

fn write_result(result: &ToolResult, message: &Message, keeps_ids: bool, left_out: &mut LeftOut) -> String {
    let is_own = super::is_own(message, Api::Chat);
    let function = super::role_name(message).is_some_and(|name| name == "function");
    let object = if function {
        Object::new().text("role", "function").text("name", &result.id)
    } else {
        Object::new().text("role", "tool").text("tool_call_id", &id(&result.id, keeps_ids))
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
    let tag = voiced::tag(message).filter(|_| message.voice() == Some(Voice::User));
    let role = match message.role() {
        Role::System if developer => "developer",
        Role::System | Role::Summary if tag.is_some() => "user",
        Role::System | Role::Summary => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let (mut parts, mut calls, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    for block in message.blocks() {
        if let Some(field) = note(block.extra(), FIELD).filter(|_| own) {
            fields.push((field, field_json(block)));
            continue;
        }
        match block {
            Block::Text(b) if let Some(tag) = tag => {
                let framed = voiced::framed(tag, &b.text);
                parts.push((Some(Cow::Owned(framed.clone())), text(&framed)));
            }
            Block::Text(b) => {
                let bare = (!own || b.extra.is_empty()).then_some(Cow::Borrowed(&*b.text));
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
        [] if calls.is_empty() && fields.iter().all(|(name, _)| REASONING.contains(&name.as_str())) => {
            object.text("content", "")
        }
        [] => object.json("content", "null"),
        [(Some(only), _)] => object.text("content", only),
        several => {
            object.json("content", &list(&several.iter().map(|(_, json)| json.clone()).collect::<Vec<_>>()))
        }
    };
    for (field, json) in fields {
        object = object.json(&field, &json);
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
    let kind = note(&call.extra, KIND).filter(|_| own).unwrap_or_else(|| "function".to_owned());
    let input = if kind == "custom" { "input" } else { "arguments" };
    let mut inner = Object::new().text("name", &call.name).text(input, &arguments_for(call, own));
    let extra = if own { &call.extra } else { &Extra::NONE };
    let mut object = Object::new().text("id", &id(&call.id, own)).text("type", &kind);
    for (name, value) in extra.iter() {
        if let Some(name) = name.strip_prefix(INNER).and_then(sent_name) {
            inner = inner.json(name, value.as_str());
        }
    }
    object = object.extra(extra, &[]);
    let field = if extra.is_set(IN_FUNCTION) { "function" } else { &*kind };
    object.json(field, &inner.end()).end()
}

/// OpenAI takes ids of up to 40 characters.
fn id(id: &str, own: bool) -> Cow<'_, str> {
    if own { Cow::Borrowed(id) } else { super::fit_id(id, 40) }
}

/// What a call has as arguments where they are a text. The free text of another API's tool
/// becomes an object.
pub(super) fn arguments_for(call: &ToolCall, own: bool) -> Cow<'_, str> {
    let custom = !own && note(&call.extra, KIND).is_some_and(|kind| kind.starts_with("custom"));
    if custom {
        return Cow::Owned(format!(r#"{{"input":{}}}"#, call.arguments.as_str()));
    }
    arguments_text(&call.arguments)
}
