//! Anthropic Messages. A user message may hold results and words: here they are messages of
//! their own, which are written as one again as long as both are there and untouched.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{BlockPart, Image, Opaque, Raw, Thinking};
use longhaul::{Block, Extra, Json, Message, Role, Seal, Tool, ToolCall, ToolResult};
use serde_json::Value as Parsed;

use super::format::{Choice, Format, Group, Row, Unit};
use super::marks::MARK;
use super::object::{Fields, KIND, Said, note, set_note};
use super::picture::Picture;
use super::write::{Object, list, quoted};
use super::{Api, LeftOut};
use crate::fields::{FieldError, excerpt};
use crate::scan::Value;
use crate::transcript::sniffed_size;

/// Raw texts: of a whole message, or of a part of one, in the order of the parts.
const WHOLE: &str = "anthropic";
const FIRST: &str = "anthropic, first part";
const NEXT: &str = "anthropic, next part";
const LAST: &str = "anthropic, last part";

/// Anthropic Messages.
pub(super) struct Anthropic;

impl Format for Anthropic {
    fn row(&self) -> &'static Row {
        &Row {
            name: WHOLE,
            list: "messages",
            system: Some("system"),
            element: "message",
            has_marks: true,
            wants_marks: true,
            may_lack_list: false,
        }
    }

    fn resembles(&self, body: &Parsed) -> bool {
        let is_own = |block: &Parsed| {
            let kind = block.get("type").and_then(Parsed::as_str).unwrap_or_default();
            matches!(kind, "tool_use" | "tool_result" | "thinking" | "redacted_thinking")
                || block.get("source").is_some()
        };
        let messages = body.get("messages").and_then(Parsed::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut blocks = messages.iter().filter_map(|message| message.get("content")?.as_array()).flatten();
        body.get("system").is_some() || body.get("anthropic_version").is_some() || blocks.any(is_own)
    }

    fn read<'a>(&self, elements: &[Value<'a>]) -> Result<Group, (usize, FieldError)> {
        super::read_marked(elements, read_message)
    }

    fn together(&self, messages: &[Arc<Message>]) -> usize {
        if let Some(parts) = whole(messages) {
            return parts;
        }
        if messages[0].role() != Role::Tool {
            return 1;
        }
        // Results of one step go together.
        let others =
            messages[1..].iter().take_while(|m| m.role() == Role::Tool && m.raw_format() != Some(WHOLE));
        1 + others.count()
    }

    fn write(&self, all: &[Arc<Message>], at: usize, together: usize, left_out: &mut LeftOut) -> Unit {
        let messages = &all[at..at + together];
        if whole(messages) == Some(together) {
            let raws = messages.iter().filter_map(|message| message.raw(message.raw_format()?));
            return Unit {
                json: raws.collect(),
                ends: ends(messages.iter().map(|message| message.blocks().len())),
            };
        }
        from_blocks(messages, super::keeps_ids(all, at, Api::Anthropic), left_out)
    }

    fn opening(&self, first: &Message) -> Option<String> {
        // A conversation begins with the user.
        (first.role() == Role::Assistant).then(|| user(&[text("[The conversation begins here.]")]))
    }

    fn names(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("max_output", "max_tokens"),
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("stream", "stream"),
            ("stop", "stop_sequences"),
        ]
    }

    fn wanted(&self) -> &'static [(&'static str, &'static str)] {
        // Anthropic demands a limit for the answer.
        &[("max_tokens", "8192")]
    }

    fn fit(&self, name: &str, value: &Parsed) -> Option<String> {
        match name {
            "stop" if value.is_string() => Some(format!("[{value}]")),
            // Anthropic's scale ends where OpenAI's is half way.
            "temperature" if value.as_f64() > Some(1.0) => Some("1".to_owned()),
            _ => None,
        }
    }

    fn is_tool(&self, definition: &Parsed) -> bool {
        definition.get("input_schema").is_some()
    }

    fn write_tool(&self, tool: &Tool, about: Option<&str>, schema: &str) -> String {
        let object = Object::new().text("name", &tool.name).maybe_json("description", about);
        object.json("input_schema", schema).end()
    }

    fn write_choice(&self, choice: Choice<'_>) -> String {
        match choice {
            Choice::Auto => r#"{"type":"auto"}"#.to_owned(),
            Choice::None => r#"{"type":"none"}"#.to_owned(),
            Choice::Any => r#"{"type":"any"}"#.to_owned(),
            Choice::Named(name) => Object::new().text("type", "tool").text("name", name).end(),
        }
    }

    fn write_system(&self, body: Object, texts: &[&str], marks: &[Option<&str>]) -> (Object, Option<String>) {
        let block = |(text, mark): (&&str, &Option<&str>)| {
            Object::new().text("type", "text").text("text", text).maybe_json(MARK, *mark).end()
        };
        let blocks: Vec<String> = texts.iter().zip(marks).map(block).collect();
        (body.list("system", &blocks), None)
    }
}

/// A message without marks.
fn read_message(element: Value<'_>) -> Result<Vec<Message>, FieldError> {
    let mut fields = Fields::of(element, "it")?;
    let role = match &*fields.need_said("role")?.text {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            return Err(FieldError(format!("role {:?} is not user, assistant or system", excerpt(other))));
        }
    };
    let content = fields.take("content").ok_or_else(|| FieldError("`content` is missing".to_owned()))?;
    let extra = fields.rest();
    let base = element.start();
    if let Some(said) = Said::of(content) {
        let part = said.part(base, 0, BlockPart::Text);
        let raw = Raw::without(WHOLE, element.raw(), part.as_slice());
        return Ok(vec![super::read_as(
            Api::Anthropic,
            role,
            None,
            vec![Block::text(said.text)],
            extra,
            raw,
        )]);
    }
    if !content.is_array() {
        return Err(FieldError(format!("`content` is not a list of blocks: {}", excerpt(content.raw()))));
    }
    let mut read: Vec<Read> = Vec::new();
    for block in content.elements() {
        read.push(read_block(block, 0)?);
    }
    if read.is_empty() {
        let raw = Raw::without(WHOLE, element.raw(), &[]);
        return Ok(vec![super::read_as(Api::Anthropic, role, None, Vec::new(), extra, raw)]);
    }
    // Runs of results and of everything else; an answer is never parted.
    let alike = |a: &Read, b: &Read| role != Role::User || is_result(&a.block) == is_result(&b.block);
    let sizes: Vec<usize> = read.chunk_by(alike).map(<[_]>::len).collect();
    let (mut messages, mut from, mut extra) = (Vec::with_capacity(sizes.len()), base, Some(extra));
    let mut read = read.into_iter();
    for (run, size) in sizes.iter().enumerate() {
        let (mut own, mut parts, mut to) = (Vec::with_capacity(*size), Vec::new(), from);
        for (number, read) in read.by_ref().take(*size).enumerate() {
            parts.extend(read.said.and_then(|(said, part)| said.part(from, number, part)));
            own.push(read.block);
            to = read.end;
        }
        let last = run + 1 == sizes.len();
        let to = if last { element.end() } else { to };
        let format = match (run == 0, last) {
            (true, true) => WHOLE,
            (true, false) => FIRST,
            (false, false) => NEXT,
            (false, true) => LAST,
        };
        let role = if role == Role::User && own.iter().any(is_result) { Role::Tool } else { role };
        let text = element.raw().get(from - base..to - base).unwrap_or_default();
        let raw = Raw::without(format, text, &parts);
        // The fields of the message go with its first part.
        messages.push(super::read_as(Api::Anthropic, role, None, own, extra.take().unwrap_or_default(), raw));
        from = to;
    }
    Ok(messages)
}

/// A block, and the string that it can be written again from.
struct Read<'a> {
    block: Block,
    said: Option<(Said<'a>, BlockPart)>,
    /// Where it ends in the text.
    end: usize,
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult(_))
}

/// Results inside results are read this deep, as in a transcript; what is deeper is kept as it is. What
/// is read deeper than a store can read again would be lost with its session.
const DEEPEST: usize = 4;

/// `depth` is how many results it stands in.
fn read_block(block: Value<'_>, depth: usize) -> Result<Read<'_>, FieldError> {
    let end = block.end();
    let opaque =
        || Read { block: Block::Opaque(Opaque { value: block.json(), extra: Extra::NONE }), said: None, end };
    if !block.is_object() {
        return Ok(opaque());
    }
    let mut fields = Fields::of(block, "a block")?;
    let kind = fields.need_said("type")?.text;
    let in_block = |e: FieldError| FieldError(format!("in a {kind} block, {}", e.0));
    let Some((mut read, said)) = read_known(&kind, &mut fields, depth).map_err(in_block)? else {
        return Ok(opaque());
    };
    let mut extra = fields.rest();
    if !matches!(
        &*kind,
        "text" | "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" | "tool_result" | "image"
    ) {
        set_note(&mut extra, KIND, &kind);
    }
    *super::extra_mut(&mut read) = extra;
    Ok(Read { block: read, said, end })
}

type Known<'a> = (Block, Option<(Said<'a>, BlockPart)>);

fn read_known<'a>(
    kind: &str,
    fields: &mut Fields<'a>,
    depth: usize,
) -> Result<Option<Known<'a>>, FieldError> {
    Ok(Some(match kind {
        "text" => {
            let said = fields.need_said("text")?;
            (Block::text(&*said.text), Some((said, BlockPart::Text)))
        }
        "thinking" => {
            let said = fields.need_said("thinking")?;
            let empty = fields.peek("signature").filter(|value| matches!(value.raw(), "\"\"" | "null"));
            let seal = match fields.take_text("signature")? {
                Some(signature) if !signature.is_empty() => Seal::Signed(signature),
                _ => Seal::Open,
            };
            empty.into_iter().for_each(|signature| fields.put_back("signature", signature));
            let text = (*said.text).into();
            (Block::Thinking(Thinking { text, seal, extra: Extra::NONE }), Some((said, BlockPart::Text)))
        }
        "redacted_thinking" => {
            let seal = Seal::Redacted(fields.take_text("data")?);
            (Block::Thinking(Thinking { text: "".into(), seal, extra: Extra::NONE }), None)
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let input = fields.take("input");
            let call = ToolCall {
                id: fields.need_text("id")?,
                name: fields.need_text("name")?,
                arguments: input.map_or_else(Json::empty_object, |input| input.json()),
                server: kind != "tool_use",
                extra: Extra::NONE,
            };
            (Block::ToolCall(call), input.map(|input| (Said::verbatim(input), BlockPart::Arguments)))
        }
        "tool_result" if depth >= DEEPEST => return Ok(None),
        "tool_result" => {
            let (result, said) = read_result(fields, depth)?;
            (Block::ToolResult(result), said.map(|said| (said, BlockPart::Text)))
        }
        // What a tool said that Anthropic ran itself: of many kinds, never looked into.
        _ if kind.ends_with("_tool_result") && fields.peek("tool_use_id").is_some() => {
            let id = fields.need_text("tool_use_id")?;
            let content = fields.take("content").map(|content| content.json());
            let text = content.as_ref().map(server_text).unwrap_or_default();
            let content = content.map(|value| Block::Opaque(Opaque { value, extra: Extra::NONE }));
            let result = ToolResult {
                id,
                name: None,
                text: text.into(),
                content: content.map(|block| [block].into()),
                is_error: fields.take_flag("is_error"),
                extra: Extra::NONE,
            };
            (Block::ToolResult(result), None)
        }
        "image" => {
            let source = fields.take("source").map_or_else(Json::empty_object, |source| source.json());
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
        let field = |name: &str| part.get(name).and_then(Parsed::as_str);
        let title = field("title").map(|title| format!("{title} {}", field("url").unwrap_or_default()));
        field("text").map(str::to_owned).or(title)
    });
    said.collect::<Vec<_>>().join("\n")
}

/// A result, and the string that is all its text.
fn read_result<'a>(
    fields: &mut Fields<'a>,
    depth: usize,
) -> Result<(ToolResult, Option<Said<'a>>), FieldError> {
    let id = fields.need_text("tool_use_id")?;
    let (text, content, said) = match fields.take_some("content") {
        None => ("".into(), None, None),
        Some(value) if value.is_string() => super::all_text(Said::of(value)),
        Some(value) if value.is_array() => {
            let mut read: Vec<Read> = Vec::new();
            for block in value.elements() {
                read.push(read_block(block, depth + 1)?);
            }
            super::result_content(
                read.into_iter().map(|read| (read.block, read.said.map(|(said, _)| said))).collect(),
            )
        }
        Some(value) => {
            return Err(FieldError(format!("`content` is not a list of blocks: {}", excerpt(value.raw()))));
        }
    };
    let is_error = fields.take_flag("is_error");
    Ok((ToolResult { id, name: None, text, content, is_error, extra: Extra::NONE }, said))
}

/// Whether the first messages are all that one message of a request was; how many they are.
fn whole(messages: &[Arc<Message>]) -> Option<usize> {
    match messages[0].raw_format()? {
        WHOLE => Some(1),
        FIRST => {
            let behind =
                messages[1..].iter().take_while(|message| message.raw_format() == Some(NEXT)).count();
            let last = messages.get(behind + 1).filter(|message| message.raw_format() == Some(LAST));
            last.map(|_| behind + 2)
        }
        _ => None,
    }
}

/// How many blocks there are up to the end of each message.
fn ends(counts: impl Iterator<Item = usize>) -> Vec<usize> {
    counts
        .scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        })
        .collect()
}

/// Messages from their blocks, as one.
fn from_blocks(messages: &[Arc<Message>], keeps_ids: bool, left_out: &mut LeftOut) -> Unit {
    let first = &messages[0];
    let (mut blocks, mut counts) = (Vec::new(), Vec::new());
    for message in messages {
        let written = write_blocks(message, keeps_ids, left_out);
        counts.push(written.len());
        blocks.extend(written);
    }
    let ends = ends(counts.into_iter());
    let own = super::is_own(first, Api::Anthropic);
    // Control of a turn may have no content.
    let says_nothing = blocks.is_empty() && !(own && first.role() == Role::System);
    if says_nothing {
        return Unit { json: String::new(), ends };
    }
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

fn user(blocks: &[String]) -> String {
    Object::new().text("role", "user").list("content", blocks).end()
}

fn text(text: &str) -> String {
    Object::new().text("type", "text").text("text", text).end()
}

fn write_blocks(message: &Message, keeps_ids: bool, left_out: &mut LeftOut) -> Vec<String> {
    let own = super::is_own(message, Api::Anthropic);
    // Text that is not the person's word stands in the person's place, and says so.
    let tag = super::voiced::tag(message).filter(|_| !own);
    let place = Place { own, keeps_ids, in_answer: message.role() == Role::Assistant, tag };
    message.blocks().iter().filter_map(|block| write_block(block, place, left_out)).collect()
}

/// Where a block stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// In a message that Anthropic's API was sent before.
    own: bool,
    keeps_ids: bool,
    in_answer: bool,
    /// What its text is marked as.
    tag: Option<&'a str>,
}

/// A block as JSON; `None` if Anthropic has no place for it.
fn write_block(block: &Block, place: Place<'_>, left_out: &mut LeftOut) -> Option<String> {
    let Place { own, keeps_ids, in_answer, tag } = place;
    let end = |object: Object, extra: &Extra| if own { object.extra(extra, &[]).end() } else { object.end() };
    Some(match block {
        Block::Text(b) if b.text.trim().is_empty() => return None,
        Block::Text(b) => {
            let said = match tag {
                Some(tag) => Cow::Owned(super::voiced::framed(tag, &b.text)),
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
            let kind = note(&b.extra, KIND).filter(|_| own && b.server).unwrap_or(usual.to_owned());
            let input = if b.arguments.is_object() {
                Cow::Borrowed(b.arguments.as_str())
            } else if matches!(b.arguments.as_str(), "\"\"" | "null") {
                Cow::Borrowed("{}")
            } else {
                Cow::Owned(format!(r#"{{"input":{}}}"#, b.arguments.as_str()))
            };
            let object =
                Object::new().text("type", &kind).text("id", &id(&b.id, keeps_ids)).text("name", &b.name);
            end(object.json("input", &input), &b.extra)
        }
        // A result in an answer is of a tool that another provider ran.
        Block::ToolResult(b) if in_answer && !own => return super::foreign_result(b).map(|said| text(&said)),
        Block::ToolResult(b) => {
            let server = note(&b.extra, KIND).filter(|kind| own && kind.ends_with("_tool_result"));
            let kind = server.as_deref().unwrap_or("tool_result");
            let mut object = Object::new().text("type", kind).text("tool_use_id", &id(&b.id, keeps_ids));
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

/// Anthropic takes ids of letters, digits, `_` and `-` only. Servers that speak like it take others.
fn id(id: &str, keeps: bool) -> Cow<'_, str> {
    if keeps { Cow::Borrowed(id) } else { super::fit_id(id, 64) }
}
