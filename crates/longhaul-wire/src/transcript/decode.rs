//! From a line to a message.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use longhaul::conversation::{BlockPart, Image, Opaque, Raw, RecordedCompaction, Text, Thinking, Words};
use longhaul::size::image_size;
use longhaul::{Block, Extra, Json, Message, Role, Seal, Time, ToolCall, ToolResult, Usage};
use serde_json::value::RawValue;

use crate::base64;
use crate::fields::{FieldError, Fields, excerpt, reason};
use crate::speakers::tell_apart;

/// A line that is not a message. Says in one sentence what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(Box<str>);

impl From<FieldError> for DecodeError {
    fn from(error: FieldError) -> Self {
        Self(error.0.into())
    }
}

impl DecodeError {
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        Self(format!("the line is not valid JSON: {}", reason(error)).into())
    }
}

/// Reads one line.
///
/// ```
/// use longhaul_wire::transcript::{decode, encode};
/// let line = r#"{"role": "user", "content": [{"type": "text", "text": "hi"}], "mood": 7}"#;
/// let message = decode(line).unwrap();
/// assert_eq!(message.extra().get("mood").unwrap().as_str(), "7");
/// assert_eq!(encode(&message), line);
/// ```
pub fn decode(line: &str) -> Result<Message, DecodeError> {
    let line = line.trim();
    let mut fields = Fields::read(line, "the line")?;
    let role = fields.need_text("role")?;
    let role = Role::from_name(&role).ok_or_else(|| {
        let known = Role::ALL.map(Role::name).join(", ");
        FieldError(format!("role {:?} is not one of {known}", excerpt(&role)))
    })?;
    let mut parts = Vec::new();
    let mut blocks = match fields.take_some("content") {
        Some(content) => read_content(content, 0, &mut parts)?,
        None => Vec::new(),
    };
    let usage = take_usage(&mut fields);
    let model = fields.take_text("model")?;
    let time = take_time(&mut fields);

    let own = fields.take_all(&super::OWN_NAMES);

    let extra = unescaped(fields.rest(), super::is_escaped_in_line);
    let of_host = role == Role::User && !says_who_speaks(&blocks, &own) && tell_apart(&mut blocks);
    blocks.iter_mut().for_each(without_needless_words);
    let mut message = with_own(Message::new(role, blocks).with_extra(extra), &own);
    if of_host {
        message = message.with_attachment();
    }
    if let Some(usage) = usage {
        message = message.with_usage(usage);
    }
    if let Some(model) = model {
        message = message.with_model(model);
    }
    if let Some(time) = time {
        message = message.with_time(time);
    }
    let raw = Raw::new(super::FORMAT, line, &parts, message.blocks());
    Ok(message.with_raw(raw))
}

/// True if the line says itself which of its words are the person's.
fn says_who_speaks(blocks: &[Block], own: &Extra) -> bool {
    let said = [super::ATTACHMENT, super::COMPACT, super::COMPACT_SUMMARY];
    let is_said = |block: &Block| matches!(block, Block::Text(text) if text.words != Words::All);
    said.iter().any(|name| own.get(name).is_some()) || blocks.iter().any(is_said)
}

/// Words that are said to be all of a text are all of it.
fn without_needless_words(block: &mut Block) {
    if let Block::Text(text) = block
        && matches!(text.words, Words::Part { start: 0, end } if end as usize == text.text.len())
    {
        text.words = Words::All;
    }
}

/// With what only a transcript says. A flag that is more than `true` (some recorded agents name
/// the kind of an attachment) keeps its value beside it.
fn with_own(mut message: Message, own: &Extra) -> Message {
    let mut said = Vec::new();
    if own.is_set(super::ATTACHMENT) {
        message = message.with_attachment();
        said.push(super::ATTACHMENT);
    }
    let compactions = [
        (super::COMPACT_SUMMARY, RecordedCompaction::Summary),
        (super::COMPACT, RecordedCompaction::Boundary),
    ];
    if let Some((name, compaction)) = compactions.into_iter().find(|(name, _)| own.is_set(name)) {
        message = message.with_recorded_compaction(compaction);
        said.push(name);
    }
    let kept = own.iter().filter(|(name, value)| !(said.contains(name) && value.as_str() == "true"));
    message.with_wire_fields(kept.map(|(name, value)| (name.into(), value.clone())).collect())
}

/// What nobody took, by its own names.
fn rest(fields: Fields<'_>) -> Extra {
    unescaped(fields.rest(), super::is_escaped)
}

fn unescaped(extra: Extra, is_escaped: fn(&str) -> bool) -> Extra {
    let escaped = |name: &str| name.starts_with('+') && is_escaped(name);
    if !extra.iter().any(|(name, _)| escaped(name)) {
        return extra;
    }
    let own = |(name, value): (&str, &Json)| {
        let name = if escaped(name) { &name[1..] } else { name };
        (name.into(), value.clone())
    };
    extra.iter().map(own).collect()
}

/// Results inside results are read this deep; what is deeper is kept as it is.
const DEEPEST: usize = 4;

/// What the blocks of a message hold of its line.
type Parts<'a> = Vec<(&'a str, usize, BlockPart)>;

/// A string is one text block.
fn read_content<'a>(
    content: &'a RawValue,
    depth: usize,
    parts: &mut Parts<'a>,
) -> Result<Vec<Block>, FieldError> {
    let json = content.get();
    if json.starts_with('"') {
        let text: Box<str> = serde_json::from_str(json)
            .map_err(|_| FieldError("`content` is not a valid string".to_owned()))?;
        parts.push((json, 0, BlockPart::Text));
        return Ok(vec![Block::text(text)]);
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|_| FieldError(format!("`content` is not a list of blocks: {}", excerpt(json))))?;
    let read = |(number, block)| read_block(block, number, depth, parts);
    blocks.into_iter().enumerate().map(read).collect()
}

fn read_block<'a>(
    block: &'a RawValue,
    number: usize,
    depth: usize,
    parts: &mut Parts<'a>,
) -> Result<Block, FieldError> {
    let opaque = |value: &RawValue, extra| Block::Opaque(Opaque { value: value.into(), extra });
    if !block.get().starts_with('{') {
        return Ok(opaque(block, Extra::NONE));
    }
    let mut fields = Fields::read(block.get(), "a block")?;
    let kind: Option<Box<str>> = fields.take_as("type", "a string")?;
    let part = match kind.as_deref() {
        Some("tool_call") => ("arguments", BlockPart::Arguments),
        _ => ("text", BlockPart::Text),
    };
    parts.extend(fields.peek(part.0).map(|value| (value.get(), number, part.1)));
    let in_block =
        |e: FieldError| FieldError(format!("in a {} block, {}", kind.as_deref().unwrap_or("?"), e.0));
    Ok(match kind.as_deref() {
        Some("text") => {
            let text = fields.need_text("text").map_err(in_block)?;
            let words = take_words(&mut fields, &text);
            Block::Text(Text { text: text.into(), words, extra: rest(fields) })
        }
        Some("thinking") => Block::Thinking(read_thinking(fields).map_err(in_block)?),
        Some("tool_call") => Block::ToolCall(read_call(fields).map_err(in_block)?),
        Some("tool_result") if depth < DEEPEST => {
            Block::ToolResult(read_result(fields, depth).map_err(in_block)?)
        }
        Some("image") => Block::Image(read_image(fields)),
        Some("opaque") => match fields.take("value") {
            Some(value) => opaque(value, rest(fields)),
            None => opaque(block, Extra::NONE),
        },
        _ => opaque(block, Extra::NONE),
    })
}

/// What is no part of the text stays an unknown field.
fn take_words(fields: &mut Fields<'_>, text: &str) -> Words {
    let Some(raw) = fields.take(super::WORDS) else { return Words::All };
    match serde_json::from_str::<Vec<u32>>(raw.get()).as_deref() {
        Ok([]) => Words::None,
        Ok(&[start, end]) if start < end && text.get(start as usize..end as usize).is_some() => {
            Words::Part { start, end }
        }
        _ => {
            fields.put_back(super::WORDS, raw);
            Words::All
        }
    }
}

fn read_thinking(mut fields: Fields<'_>) -> Result<Thinking, FieldError> {
    let text = fields.take_text("text")?.unwrap_or_default();
    let seal = if let Some(signature) = fields.take_text("signature")? {
        Seal::Signed(signature)
    } else if let Some(encrypted) = fields.take_text("encrypted")? {
        Seal::Encrypted(encrypted)
    } else if fields.take_flag("redacted") {
        Seal::Redacted(fields.take_text("data")?)
    } else {
        Seal::Open
    };
    Ok(Thinking { text, seal, extra: rest(fields) })
}

fn read_call(mut fields: Fields<'_>) -> Result<ToolCall, FieldError> {
    Ok(ToolCall {
        id: fields.need_text("id")?,
        name: fields.need_text("name")?,
        arguments: fields.take("arguments").map_or_else(Json::empty_object, Json::from),
        server: fields.take_flag("server"),
        extra: rest(fields),
    })
}

fn read_result(mut fields: Fields<'_>, depth: usize) -> Result<ToolResult, FieldError> {
    let id = fields.need_text("id")?;
    let name = fields.take_text("name")?;
    let content = match fields.take_some("content") {
        Some(content) => Some(read_content(content, depth + 1, &mut Vec::new())?.into_boxed_slice()),
        None => None,
    };
    let text = match fields.take_text("text")? {
        Some(text) => text,
        None => text_of(content.as_deref().unwrap_or_default()),
    };
    Ok(ToolResult {
        id,
        name,
        text: text.into(),
        content,
        is_error: read_is_error(&mut fields),
        extra: rest(fields),
    })
}

/// `false` is the same as nothing; anything but a flag stays what it is.
fn read_is_error(fields: &mut Fields<'_>) -> bool {
    match fields.take("is_error") {
        Some(value) if value.get() == "true" => true,
        Some(value) if !matches!(value.get(), "false" | "null") => {
            fields.put_back("is_error", value);
            false
        }
        _ => false,
    }
}

pub(crate) fn text_of(blocks: &[Block]) -> Box<str> {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(&*text.text),
            _ => None,
        })
        .collect();
    texts.join("\n").into()
}

fn read_image(mut fields: Fields<'_>) -> Image {
    let (width, height) = (fields.take("width"), fields.take("height"));
    let number = |value: Option<&RawValue>| value.and_then(|v| v.get().parse::<u32>().ok());
    let mut size = number(width).zip(number(height));
    if size.is_none() {
        // Not a size: nothing is lost.
        width.into_iter().for_each(|value| fields.put_back("width", value));
        height.into_iter().for_each(|value| fields.put_back("height", value));
    }
    let source = fields.take("source").map_or_else(Json::empty_object, Json::from);
    size = size.or_else(|| sniffed_size(&source));
    Image { source, size, extra: rest(fields) }
}

/// The size of a picture whose data is in the transcript, from its header.
pub(crate) fn sniffed_size(source: &Json) -> Option<(u32, u32)> {
    /// Room for a JPEG's preview and colour profile before its size.
    const HEADER: usize = 64 << 10;
    let source: Extra = serde_json::from_str(source.as_str()).ok()?;
    // As data, or as a URL that holds it.
    let field = ["data", "url", "image_url"].into_iter().find_map(|name| source.get(name))?;
    let text: std::borrow::Cow<'_, str> = serde_json::from_str(field.as_str()).ok()?;
    let data = text.split_once(";base64,").map_or(&*text, |(_, data)| data);
    image_size(&base64::decode_start(data, HEADER))
}

/// Figures that cannot be read do not cost the message: they stay an unknown field.
fn take_usage(fields: &mut Fields<'_>) -> Option<Usage> {
    let raw = fields.take_some("usage")?;
    let usage = read_usage(raw);
    if usage.is_err() {
        fields.put_back("usage", raw);
    }
    usage.ok()
}

fn read_usage(usage: &RawValue) -> Result<Usage, FieldError> {
    let mut fields = Fields::read(usage.get(), "`usage`")?;
    let mut number =
        |name| fields.take_as::<u64>(name, "a whole number of tokens").map(Option::unwrap_or_default);
    let (input, output) = (number("input")?, number("output")?);
    let (cache_read, cache_write) = (number("cache_read")?, number("cache_write")?);
    Ok(Usage { input, output, cache_read, cache_write, extra: rest(fields) })
}

/// A time without a zone is taken as UTC. What is no time stays an unknown field.
fn take_time(fields: &mut Fields<'_>) -> Option<Time> {
    let raw = fields.take("ts")?;
    let parsed =
        serde_json::from_str::<std::borrow::Cow<'_, str>>(raw.get()).ok().and_then(|text| parse_time(&text));
    if parsed.is_none() {
        fields.put_back("ts", raw);
    }
    parsed
}

pub(crate) fn parse_time(text: &str) -> Option<Time> {
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let stamp = zoned
        .or_else(|| text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|z| z.timestamp()))?;
    Some(Time(stamp.as_microsecond()))
}
