//! Requests as three APIs take them: OpenAI Chat Completions, OpenAI Responses, Anthropic
//! Messages. A request is read into a frame and messages and written again: what nobody
//! touched byte for byte, what was edited from its blocks, in the same API or in another.
//!
//! | what | where |
//! |---|---|
//! | an API: a file that implements `format`, and a row of [`Api`] | `anthropic`, `chat`, `responses` |
//! | a request, and the body it was read from | `request`, `body`, `shared_text` |
//! | a client that sends its conversation again and again | `relay` |
//! | marks of the cache, which message this is, state with the provider | `marks`, `identity`, `held` |
//! | signed thinking in a body, and a body without what its provider would refuse | `unsigned` |
//! | texts of ours in the user's place or in the host's | `voiced` |
//! | the frame, and one tool more; fields and pictures; writing JSON | `settings`, `tools_end`, `object`, `picture`, `write` |

mod acceptable;
mod anthropic;
mod body;
mod chat;
mod format;
mod held;
mod identity;
mod marks;
mod object;
mod picture;
mod relay;
mod request;
mod responses;
mod settings;
mod shared_text;
mod tools_end;
mod unsigned;
mod voiced;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{Opaque, Raw};
use longhaul::{Block, Extra, Json, Message, Role, Tool, ToolCall, ToolResult};

use crate::fields::FieldError;
use crate::scan::{Scanner, Value};
use crate::speakers::tell_apart;
use crate::transcript::{self, text_of};
use format::{Format, Group};
use object::Said;
use write::quoted;

pub use held::Held;
pub use identity::{Chain, Identity, VERSION as IDENTITY_VERSION};
pub use marks::{ClientMark, MarkPlace};
pub use relay::{LastRead, Relay};
pub use request::{BodyText, Encoded, Request};
pub use shared_text::SharedText;
pub use unsigned::{BlockPlace, signed_thinking, without_thinking};

/// An API that takes a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI Chat Completions, and all that speak like it.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Anthropic];

    fn format(self) -> &'static dyn Format {
        match self {
            Self::Chat => &chat::Chat,
            Self::Responses => &responses::Responses,
            Self::Anthropic => &anthropic::Anthropic,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.format().row().name
    }

    /// The API that a body looks like a request of.
    ///
    /// ```
    /// use longhaul_wire::api::Api;
    /// let body = r#"{"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "hi"}]}"#;
    /// assert_eq!(Api::guess(body), Some(Api::Anthropic));
    /// ```
    pub fn guess(body: &str) -> Option<Self> {
        guess(&serde_json::from_str(body).ok()?)
    }

    /// A tool as this API is told of it. `schema` says which arguments it takes.
    pub fn tool(self, name: &str, about: &str, schema: &Json) -> Tool {
        let tool = Tool { name: name.into(), definition: Json::empty_object() };
        let written = self.format().write_tool(&tool, Some(&quoted(about)), schema.as_str());
        // What is written from JSON is JSON: the definition is never left empty.
        Tool { definition: Json::new(written).unwrap_or(tool.definition), name: tool.name }
    }

    /// The API of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }
}

/// The API that a JSON value looks like a request of.
pub(crate) fn guess(body: &serde_json::Value) -> Option<Api> {
    let has_content = |message: &serde_json::Value| {
        ["content", "tool_calls", "function_call"].iter().any(|field| message.get(field).is_some())
    };
    let is_message = |message: &serde_json::Value| {
        message.get("role").is_some_and(|role| role.is_string()) && has_content(message)
    };
    if let Some(messages) = body.get("messages")
        && !messages.as_array().is_some_and(|messages| messages.iter().all(is_message))
    {
        return None;
    }
    let named = body.get("model").is_some() || body.get("anthropic_version").is_some();
    // What has the narrowest shape is asked first.
    let order = [Api::Responses, Api::Anthropic, Api::Chat];
    order
        .into_iter()
        .find(|api| named && body.get(api.format().row().list).is_some() && api.format().resembles(body))
}

/// A body that is not a request of its API. Says in one sentence what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RequestError(Box<str>);

impl From<FieldError> for RequestError {
    fn from(error: FieldError) -> Self {
        Self(error.0.into())
    }
}

/// Reads the first element of a list in which messages may have marks.
fn read_marked<'a>(
    elements: &[Value<'a>],
    read: impl Fn(Value<'_>) -> Result<Vec<Message>, FieldError>,
) -> Result<Group, (usize, FieldError)> {
    let Some(element) = elements.first() else {
        return Ok(Group { elements: 0, messages: Vec::new(), marks: Vec::new() });
    };
    let found = marks::in_message(*element);
    let in_first = |error| (0, error);
    if found.is_empty() {
        return Ok(Group { elements: 1, messages: read(*element).map_err(in_first)?, marks: Vec::new() });
    }
    let text = marks::without(*element, &found);
    let mut scanner = Scanner::new(&text, 0).map_err(in_first)?;
    let note = scanner.value().map_err(in_first)?;
    let messages = read(scanner.tape.value(&text, note)).map_err(in_first)?;
    let place = |found: &marks::Found<'_>| {
        let (mut message, mut block) = (0, found.block.unwrap_or(usize::MAX));
        while let Some(blocks) = messages.get(message).map(|message| message.blocks().len())
            && block >= blocks
            && message + 1 < messages.len()
        {
            (message, block) = (message + 1, block.saturating_sub(blocks));
        }
        let last = messages.get(message).map_or(0, |message| message.blocks().len()).saturating_sub(1);
        ClientMark::new(MarkPlace::Block { message, block: block.min(last) }, found.json)
    };
    let marks = found.iter().filter(|found| found.is_set()).map(place).collect();
    Ok(Group { elements: 1, messages, marks })
}

/// A message as it was read.
fn read_as(
    api: Api,
    role: Role,
    role_name: Option<&str>,
    mut blocks: Vec<Block>,
    extra: Extra,
    raw: Raw,
) -> Message {
    let mut fields = Extra::NONE;
    fields.push(transcript::ORIGIN, Json::string(api.name()));
    role_name.into_iter().for_each(|role| fields.push(transcript::DEVELOPER, Json::string(role)));
    let by_host = role == Role::User && tell_apart(&mut blocks);
    let message = Message::new(role, blocks).with_extra(extra).with_wire_fields(fields);
    if by_host { message.with_attachment() } else { message }.with_raw(raw)
}

/// Text of a result, blocks if there is more to it, and the string that is all its text.
type ResultContent<'a> = (Arc<str>, Option<Box<[Block]>>, Option<Said<'a>>);

/// A result of one string.
fn all_text(said: Option<Said<'_>>) -> ResultContent<'_> {
    (said.as_ref().map_or("", |said| &said.text).into(), None, said)
}

/// A result of blocks, each with the string that it says.
fn result_content(blocks: Vec<(Block, Option<Said<'_>>)>) -> ResultContent<'_> {
    let plain = |block: &Block| matches!(block, Block::Text(text) if text.extra.is_empty());
    if blocks.len() < 2 && blocks.iter().all(|(block, _)| plain(block)) {
        return all_text(blocks.into_iter().next().and_then(|(_, said)| said));
    }
    let blocks: Box<[Block]> = blocks.into_iter().map(|(block, _)| block).collect();
    (text_of(&blocks).into(), Some(blocks), None)
}

/// The name of the role that was kept beside the API.
fn role_name(message: &Message) -> Option<String> {
    serde_json::from_str(message.wire_fields().get(transcript::DEVELOPER)?.as_str()).ok()
}

/// True if the message was read from a request of this API: then its unknown fields and blocks
/// are the API's own.
fn is_own(message: &Message, api: Api) -> bool {
    message
        .wire_fields()
        .get(transcript::ORIGIN)
        .is_some_and(|name| name.as_str().trim_matches('"') == api.name())
}

/// Whether the ids of a message stay what they are: they came over this API, or they are those of an
/// answer that did (a result that was never recorded has the id of its call).
fn keeps_ids(all: &[Arc<Message>], at: usize, api: Api) -> bool {
    let answer = || all[..at].iter().rev().find(|message| message.role() == Role::Assistant);
    is_own(&all[at], api)
        || all[at].role() == Role::Tool && answer().is_some_and(|answer| is_own(answer, api))
}

/// What is sent in place of a block that an API does not know: its text, if that is all it is.
fn foreign(block: &Opaque, left_out: &mut LeftOut) -> String {
    let value = block.value.value();
    let text = |path: &str| value.pointer(path).and_then(|text| text.as_str());
    if let Some(text) = text("/refusal") {
        return text.to_owned();
    }
    if let (Some("text"), Some(data)) = (text("/source/type"), text("/source/data")) {
        return format!("[Document: {}]\n{data}", text("/title").unwrap_or("without a title"));
    }
    let kind = text("/type").unwrap_or("unknown");
    left_out.add(format!("a block of kind {kind}"));
    format!("[A block of kind {kind} was here.]")
}

/// What a tool said that another provider ran, if it is known.
fn foreign_result(result: &ToolResult) -> Option<String> {
    (!result.text.is_empty()).then(|| format!("[It gave: {}]", result.text))
}

/// What is sent in place of a tool that another provider ran itself.
fn foreign_call(call: &ToolCall, left_out: &mut LeftOut) -> String {
    left_out.add(format!("a call of {} that another provider ran", call.name));
    format!("[The tool {} ran here: {}]", call.name, call.arguments.as_str())
}

fn extra_mut(block: &mut Block) -> &mut Extra {
    match block {
        Block::Text(b) => &mut b.extra,
        Block::Thinking(b) => &mut b.extra,
        Block::ToolCall(b) => &mut b.extra,
        Block::ToolResult(b) => &mut b.extra,
        Block::Image(b) => &mut b.extra,
        Block::Opaque(b) => &mut b.extra,
    }
}

/// An id that an API takes: of at most `most` characters, of letters, digits, `_` and `-`.
/// Another one gets a number made from it, so that two that differ do not become one.
fn fit_id(id: &str, most: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.len() <= most && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let kept: String = id.chars().map(|c| if fits(c) { c } else { '_' }).take(most - 17).collect();
    Cow::Owned(format!("{kept}_{hash:016x}"))
}

/// What could not be written, each thing once.
#[derive(Debug, Default)]
struct LeftOut(Vec<String>);

impl LeftOut {
    fn add(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.0.contains(&what) {
            self.0.push(what);
        }
    }
}

#[cfg(test)]
mod tests;
