//! Requests as three APIs take them: OpenAI Chat Completions, OpenAI Responses, Anthropic
//! Messages. A request is read into a frame and messages and written again: what nobody
//! touched byte for byte, what was edited from its blocks, in the same API or in another.

mod anthropic;
mod chat;
mod envelope;
mod picture;
mod responses;
mod settings;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use longhaul::conversation::Opaque;
use longhaul::{Block, End, Extra, Frame, Json, Message, Outgoing, Role, ToolCall, ToolResult};

use crate::fields::{FieldError, Fields};
use crate::transcript;
use envelope::Envelope;

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

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// The API of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    /// The field that holds the conversation.
    fn list(self) -> &'static str {
        match self {
            Self::Chat | Self::Anthropic => "messages",
            Self::Responses => "input",
        }
    }
}

/// The API that a JSON value looks like a request of.
pub(crate) fn guess(body: &Value) -> Option<Api> {
    let named = body.get("model").is_some();
    if named && body.get("input").is_some_and(|input| input.is_array() || input.is_string()) {
        return Some(Api::Responses);
    }
    let messages = body.get("messages")?.as_array()?;
    let role = |message: &Value| message.get("role").and_then(Value::as_str).map(str::to_owned);
    let version = body.get("anthropic_version").is_some();
    let has_content =
        |message: &Value| ["content", "tool_calls", "function_call"].iter().any(|f| message.get(f).is_some());
    if !(named || version) || !messages.iter().all(|message| role(message).is_some() && has_content(message))
    {
        return None;
    }
    let block = |block: &Value| {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        matches!(kind, "tool_use" | "tool_result" | "thinking" | "redacted_thinking")
            || block.get("source").is_some()
    };
    let mut blocks = messages.iter().filter_map(|message| message.get("content")?.as_array()).flatten();
    let anthropic = body.get("system").is_some() || version || blocks.any(block);
    Some(if anthropic { Api::Anthropic } else { Api::Chat })
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

/// A request: a frame and messages.
///
/// ```
/// use longhaul_wire::api::{Api, Request};
/// let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}], "seed": 7}"#;
/// let request = Request::decode(Api::Chat, body).unwrap();
/// assert_eq!(request.encode(Api::Chat).body, body);
///
/// let sent = request.encode(Api::Anthropic);
/// assert_eq!(sent.left_out, ["the setting `seed`"]);
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    frame: Frame,
    messages: Vec<Arc<Message>>,
    /// The body around the messages, as long as the frame is the one it was read with.
    envelope: Option<Envelope>,
    /// Where the prompt cache should remember prefixes, beside what the client has marked.
    ends: Vec<End>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON of the body.
    pub body: String,
    /// What the API has no place for, in words.
    pub left_out: Vec<String>,
}

/// The setting that holds the header `anthropic-beta`, which is no field of the body.
const BETAS: &str = "anthropic-beta";

impl Request {
    /// A request to be written from its parts.
    pub fn new(frame: Frame, messages: Vec<Arc<Message>>) -> Self {
        Self { frame, messages, envelope: None, ends: Vec::new() }
    }

    /// The request that a session sends. Anthropic's cache is told where prefixes end by up to four
    /// marks; the others find out by themselves.
    ///
    /// ```
    /// use longhaul::{Frame, Message, Models, Profile, Session};
    /// use longhaul_wire::api::{Api, Request};
    /// let mut session = Session::new(Profile::longhaul(), Models::builtin().find("claude-opus-4-5").clone());
    /// let system = vec![longhaul::Block::text("Be brief.")];
    /// session.set_frame(Frame { model: Some("claude-opus-4-5".into()), system, ..Frame::default() });
    /// session.push(Message::user("Hello."));
    /// session.prepare(None)?;
    /// let body = Request::of(&session.outgoing()).encode(Api::Anthropic).body;
    /// assert_eq!(body.matches("cache_control").count(), 2);   // behind the system prompt, and the last
    /// # Ok::<(), longhaul::PrepareError>(())
    /// ```
    pub fn of(outgoing: &Outgoing<'_>) -> Self {
        Self::new(outgoing.frame.cloned().unwrap_or_default(), Vec::new()).sending(outgoing)
    }

    /// This request with what a session sends in the place of its conversation. The body around it
    /// stays what it was.
    pub fn sending(self, outgoing: &Outgoing<'_>) -> Self {
        Self { messages: outgoing.messages().cloned().collect(), ends: outgoing.ends.clone(), ..self }
    }

    /// Reads a body.
    pub fn decode(api: Api, body: &str) -> Result<Self, RequestError> {
        let mut fields = Fields::read(body, "the request")?;
        let list = fields.take(api.list());
        let frame = match api {
            Api::Chat => settings::read_frame(fields, ""),
            Api::Responses => settings::read_frame(fields, "instructions"),
            Api::Anthropic => settings::read_frame(fields, "system"),
        };
        let Some(list) = list else {
            // What is asked may be kept by the provider.
            if api == Api::Responses && frame.model.is_some() {
                let envelope = Some(Envelope::without_list(api, body));
                return Ok(Self { envelope, ..Self::new(frame, Vec::new()) });
            }
            return Err(FieldError(format!("the request has no `{}`", api.list())).into());
        };
        let elements = envelope::elements(api, list)?;
        let mut messages = Vec::with_capacity(elements.len());
        // Where each message that can stand alone begins and ends in the body.
        let mut spans = Vec::with_capacity(elements.len());
        match api {
            Api::Chat => {
                let one = |json: &str| chat::read_message(json).map(|message| vec![message]);
                messages = read_each(&elements, one, &mut spans)?;
            }
            Api::Responses => responses::read(list.get(), &elements, &mut messages, &mut spans)?,
            Api::Anthropic => messages = read_each(&elements, anthropic::read_message, &mut spans)?,
        }
        let odd_start = messages.first().is_some_and(|first| first.role() == Role::Assistant);
        let envelope = Envelope::new(api, body, list.get(), &spans, odd_start);
        let messages = messages.into_iter().map(Arc::new).collect();
        Ok(Self { envelope: Some(envelope), ..Self::new(frame, messages) })
    }

    /// With the value of the header `anthropic-beta`.
    pub fn with_betas(mut self, header: &str) -> Self {
        self.frame.settings.set(BETAS, Json::string(header));
        self
    }

    /// The value of the header `anthropic-beta`, to be sent with the body.
    pub fn betas(&self) -> Option<String> {
        serde_json::from_str(self.frame.settings.get(BETAS)?.as_str()).ok()
    }

    /// With other messages. The body around them stays what it was.
    pub fn with_messages(self, messages: Vec<Arc<Message>>) -> Self {
        Self { messages, ends: Vec::new(), ..self }
    }

    /// With these ends, at which the prompt cache should remember the request.
    pub fn with_ends(self, ends: Vec<End>) -> Self {
        Self { ends, ..self }
    }

    /// With another frame. The body is then written from it.
    pub fn with_frame(self, frame: Frame) -> Self {
        let envelope = self.envelope.filter(|_| self.frame == frame);
        Self { frame, envelope, messages: self.messages, ends: self.ends }
    }

    /// The messages as a transcript holds them: the first one carries the frame.
    pub fn into_transcript(self) -> Vec<Message> {
        let frame = settings::frame_json(&self.frame);
        let mut messages: Vec<Message> = self.messages.into_iter().map(Arc::unwrap_or_clone).collect();
        if let (Some(first), Ok(frame)) = (messages.first_mut(), Json::new(frame)) {
            *first = transcript::with_frame(first.clone(), &frame);
        }
        messages
    }

    /// True if a part of the conversation is with the provider and not in the request: then it
    /// is not for us to shorten it, and it is passed on as it came.
    pub fn is_stateful(&self) -> bool {
        let settings = ["previous_response_id", "conversation"];
        let reference = |block: &Block| matches!(block, Block::Opaque(item) if item.value.as_str().contains("\"item_reference\""));
        settings.iter().any(|name| self.frame.settings.is_set(name))
            || self.messages.iter().flat_map(|message| message.blocks()).any(reference)
    }

    /// The API that the frame was written for: that of the messages.
    fn source(&self) -> Option<Api> {
        let known = self.envelope.as_ref().map(|envelope| envelope.api);
        known.or_else(|| Api::ALL.into_iter().find(|api| self.messages.iter().any(|m| is_own(m, *api))))
    }

    /// Model, system prompt, tools and settings.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The conversation.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Writes the body for an API.
    pub fn encode(&self, api: Api) -> Encoded {
        let mut left_out = LeftOut::default();
        let body = match &self.envelope {
            Some(envelope) if envelope.api == api && (!envelope.absent || self.messages.is_empty()) => {
                let units = self.units(api, &self.messages, &self.marks(), &mut left_out);
                envelope.wrap(&units)
            }
            _ => settings::write_body(self, api, &mut left_out),
        };
        Encoded { body, left_out: left_out.0 }
    }

    /// Messages as texts of JSON that stand between commas. Marks are at places among them.
    fn units(
        &self,
        api: Api,
        messages: &[Arc<Message>],
        marks: &[Mark],
        left_out: &mut LeftOut,
    ) -> Vec<String> {
        match api {
            Api::Chat => chat::write(messages, left_out),
            Api::Responses => responses::write(messages, self.envelope.is_some(), left_out),
            Api::Anthropic => {
                // What the client began in its own way is not made better.
                let as_it_was = self.envelope.as_ref().is_some_and(|envelope| envelope.odd_start);
                anthropic::write(messages, marks, as_it_was, left_out)
            }
        }
    }

    /// The marks to be set: the client has set some already, in the system prompt, the tools or
    /// the messages, and more than four are refused.
    fn marks(&self) -> Vec<Mark> {
        const MOST: usize = 4;
        let tools = self.frame.tools.iter().filter(|tool| tool.definition.as_str().contains(MARK));
        let whole = usize::from(self.frame.settings.is_set("cache_control"));
        let in_blocks = |blocks: &[Block]| blocks.iter().map(marks_in).sum::<usize>();
        let messages = self.messages.iter().map(|message| in_blocks(message.blocks()));
        let set = whole + tools.count() + in_blocks(&self.frame.system) + messages.sum::<usize>();
        // A mark for an hour must not stand behind one for less.
        let for_an_hour = |blocks: &[Block]| {
            let marks = blocks.iter().filter_map(|block| block.extra().get("cache_control"));
            marks.into_iter().any(|mark| mark.as_str().contains("1h"))
        };
        let last_hour = self.messages.iter().rposition(|message| for_an_hour(message.blocks()));
        let is_new = |end: &End| match end {
            // What the client wrote around its conversation stays as it is.
            End::Frame => self.envelope.is_none() && in_blocks(&self.frame.system) == 0,
            End::After(parts) => parts
                .checked_sub(1)
                .and_then(|at| self.messages.get(at))
                .is_some_and(|message| !anthropic::ends_marked(message)),
        };
        let mut ends: Vec<End> = self.ends.iter().copied().filter(is_new).collect();
        ends.sort_unstable();
        ends.dedup();
        // The last holds the most, and the first is there after every fold; then the later ones.
        let mut worth: Vec<End> = ends.iter().copied().rev().collect();
        if let Some(first) = ends.first().filter(|_| ends.len() > 1) {
            worth.pop();
            worth.insert(1, *first);
        }
        worth.truncate(MOST.saturating_sub(set));
        let hour = |end: &End| match end {
            End::Frame => last_hour.is_some() || for_an_hour(&self.frame.system),
            End::After(parts) => last_hour.is_some_and(|last| last + 1 >= *parts),
        };
        worth.into_iter().map(|end| Mark { end, hour: hour(&end) }).collect()
    }
}

/// A mark of the prompt cache that is to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    end: End,
    hour: bool,
}

impl Mark {
    /// The message at whose end it stands.
    fn message(self) -> Option<usize> {
        match self.end {
            End::Frame => None,
            End::After(parts) => parts.checked_sub(1),
        }
    }

    /// The same among messages of which the first `count` are written elsewhere.
    fn behind(self, count: usize) -> Option<Self> {
        match self.end {
            End::After(parts) if parts > count => Some(Self { end: End::After(parts - count), ..self }),
            _ => None,
        }
    }

    /// As it is written.
    fn json(self) -> &'static str {
        if self.hour { r#"{"type":"ephemeral","ttl":"1h"}"# } else { r#"{"type":"ephemeral"}"# }
    }
}

/// How a mark of the cache is written.
const MARK: &str = "\"cache_control\"";

/// Marks of the cache that a block holds.
fn marks_in(block: &Block) -> usize {
    let inside = match block {
        Block::ToolResult(result) => result.content.as_deref().unwrap_or_default().iter().map(marks_in).sum(),
        Block::Opaque(opaque) => usize::from(opaque.value.as_str().contains(MARK)),
        _ => 0,
    };
    inside + usize::from(block.extra().is_set("cache_control"))
}

/// Reads a list whose elements are messages, each of one message of the log or of several.
fn read_each<'a>(
    elements: &[&'a RawValue],
    read: impl Fn(&'a str) -> Result<Vec<Message>, FieldError>,
    spans: &mut Vec<&'a str>,
) -> Result<Vec<Message>, FieldError> {
    let mut messages = Vec::with_capacity(elements.len());
    for (number, element) in elements.iter().enumerate() {
        let read = read(element.get());
        messages.extend(read.map_err(|e| FieldError(format!("message {}: {}", number + 1, e.0)))?);
        spans.push(element.get());
    }
    Ok(messages)
}

/// What is kept of where a message was read from: the API, and the name that it has for the
/// role, where ours is not enough to write it again.
fn origin(api: Api, role: Option<&str>) -> Extra {
    let mut fields = Extra::NONE;
    fields.push(transcript::ORIGIN, Json::string(api.name()));
    role.into_iter().for_each(|role| fields.push(transcript::DEVELOPER, Json::string(role)));
    fields
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

/// The type of a block that its unknown fields hold where there are several for one kind.
fn kind_of(extra: &Extra) -> Option<String> {
    serde_json::from_str(extra.get("kind")?.as_str()).ok()
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
