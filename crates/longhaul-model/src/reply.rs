//! Replies of models: read from a stream as it comes, or whole. The message is put together in the form
//! of its API and read by `longhaul-wire`, so that it is sent back as it came: ids, signatures and
//! encrypted reasoning included.

mod anthropic;
mod chat;
mod responses;

use std::sync::Arc;
use std::time::Duration;

use longhaul::{Block, Message, Usage};
use longhaul_wire::api::{Api, Request};
use serde_json::Value;

use crate::event_stream::{Event, EventStream};
use crate::fault::Fault;
use crate::model::Watch;

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What it said and called. Some APIs say one answer in several messages.
    pub messages: Vec<Arc<Message>>,
    /// What it cost, if the provider says so.
    pub usage: Option<Usage>,
    /// Why it ended.
    pub stop: Stop,
}

/// Why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The model has nothing more to say, or waits for its tools.
    Ended,
    /// It was as long as it may be.
    Length,
    /// The model or the provider would not answer.
    Refused,
    /// The window was full.
    WindowFull,
    /// The provider paused a long reply: send it back as it is, and it goes on.
    Paused,
    /// Something else, in the provider's word.
    Other(Box<str>),
}

/// A piece of a reply, for somebody who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of what the model says.
    Text(&'a str),
    /// More of what the model thinks.
    Thinking(&'a str),
    /// The model begins to call this tool.
    Call(&'a str),
    /// More of the arguments of the call.
    Arguments(&'a str),
    /// What came so far is void: the reply was cut off, and is asked for again.
    Void,
    /// There was no reply, and it is asked for again after a pause.
    Again {
        /// Why there was none.
        fault: &'a Fault,
        /// How long nobody asks.
        pause: Duration,
    },
}

/// How one API streams and writes a reply. Adding an API is one file and one row of
/// [`ReplyReader::new`].
trait Format: std::fmt::Debug + Send {
    /// Takes in an event of the stream.
    fn event(&mut self, event: Event<'_>, watch: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault>;

    /// What the provider has reported so far.
    fn usage(&self) -> Option<Usage>;

    /// What the provider has signed so far.
    fn seals(&self) -> Vec<String> {
        Vec::new()
    }

    /// The names and arguments of the tools that it has called so far.
    fn calls(&self) -> Vec<(String, String)>;

    /// True if the event came that closes a reply.
    fn is_closed(&self) -> bool;

    /// True if nothing that follows is needed.
    fn is_over(&self) -> bool {
        self.is_closed()
    }

    /// True if the provider has said that its stream is at its end, whether or not the reply is whole.
    fn is_finished(&self) -> bool {
        self.is_closed()
    }

    /// The reply, in the form of the API.
    fn end(self: Box<Self>) -> Result<Ended, Fault>;
}

/// A reply as its API has it.
struct Ended {
    /// What its messages are in a request of the API.
    messages: Value,
    usage: Option<Usage>,
    stop: Stop,
}

/// Reads a reply that comes as a stream.
///
/// ```
/// use longhaul_model::{Delta, ReplyReader};
/// use longhaul_wire::api::Api;
/// let mut reader = ReplyReader::new(Api::Chat);
/// let mut said = String::new();
/// let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n\
///               data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n\
///               data: [DONE]\n\n";
/// reader.push(stream.as_bytes(), &mut |delta| {
///     if let Delta::Text(text) = delta {
///         said.push_str(text);
///     }
/// })?;
/// assert_eq!(said, "Hello");
/// assert_eq!(reader.end()?.messages[0].texts().next(), Some("Hello"));
/// # Ok::<(), longhaul_model::Fault>(())
/// ```
#[derive(Debug)]
pub struct ReplyReader {
    api: Api,
    stream: EventStream,
    format: Box<dyn Format>,
}

impl ReplyReader {
    /// For a reply of this API.
    pub fn new(api: Api) -> Self {
        let format: Box<dyn Format> = match api {
            Api::Anthropic => Box::<anthropic::Stream>::default(),
            Api::Chat => Box::<chat::Stream>::default(),
            Api::Responses => Box::<responses::Stream>::default(),
        };
        Self { api, stream: EventStream::default(), format }
    }

    /// Takes in what the network gave. An error that the provider sends inside the stream is a fault.
    pub fn push(&mut self, bytes: &[u8], watch: &mut dyn FnMut(Delta<'_>)) -> Result<Progress, Fault> {
        self.stream.push(bytes);
        let mut events = 0;
        loop {
            let event = self.stream.next_event().map_err(|error| Fault::Unreadable(error.to_string()))?;
            let Some(event) = event else { return Ok(Progress { events, closed: self.format.is_over() }) };
            events += 1;
            self.format.event(event, watch)?;
        }
    }

    /// What the provider has reported so far.
    pub fn usage(&self) -> Option<Usage> {
        self.format.usage()
    }

    /// The signatures of the thinking that has come so far.
    pub fn seals(&self) -> Vec<String> {
        self.format.seals()
    }

    /// The names of the tools that the reply has called so far, with their arguments as JSON. The last call may be
    /// incomplete until the reply is.
    pub fn calls(&self) -> Vec<(String, String)> {
        self.format.calls()
    }

    /// True if the provider has said that its stream is at its end. One that ends before was cut off.
    pub fn is_finished(&self) -> bool {
        self.format.is_finished()
    }

    /// The stream has ended: the reply, if it was closed. A stream that ends without its closing event was
    /// cut off, however cleanly.
    pub fn end(self) -> Result<Reply, Fault> {
        if !self.format.is_closed() {
            return Err(Fault::Cut);
        }
        let ended = self.format.end()?;
        Reply::of(self.api, ended)
    }
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Events that the last bytes completed: a host that waits for events, not for bytes, counts these.
    pub events: usize,
    /// The last event of the reply came: nothing that follows is needed. A server of OpenAI Chat that sends
    /// no `[DONE]` has no last event: its reply ends with its stream.
    pub closed: bool,
}

impl Reply {
    /// Reads a reply that came whole.
    pub fn read(api: Api, body: &str) -> Result<Self, Fault> {
        let value: Value =
            serde_json::from_str(body).map_err(|error| Fault::Unreadable(error.to_string()))?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::of_event(body));
        }
        let ended = match api {
            Api::Anthropic => anthropic::whole(value),
            Api::Chat => chat::whole(value),
            Api::Responses => responses::whole(value),
        };
        Self::of(api, ended?)
    }

    /// Shows a reply that came whole to somebody who watches.
    pub(crate) fn show(&self, watch: &mut Watch<'_>) {
        self.messages.iter().for_each(|message| show(message, watch));
    }

    fn of(api: Api, ended: Ended) -> Result<Self, Fault> {
        let Ended { messages, usage, stop } = ended;
        let list = if api == Api::Responses { "input" } else { "messages" };
        let body = serde_json::json!({ list: messages }).to_string();
        let request = Request::decode(api, body).map_err(|error| Fault::Unreadable(error.to_string()))?;
        let messages = request.messages().to_vec();
        if !messages.iter().any(|message| says_something(message)) && stop == Stop::Ended {
            return Err(Fault::Empty);
        }
        Ok(Self { messages, usage, stop })
    }

    /// The signatures of its thinking.
    pub fn seals(&self) -> Vec<String> {
        let blocks = self.messages.iter().flat_map(|message| message.blocks());
        let seals = blocks.filter_map(|block| match block {
            Block::Thinking(thinking) => thinking.seal.data(),
            _ => None,
        });
        seals.map(str::to_owned).collect()
    }

    /// The names of the tools that it calls, with their arguments as JSON.
    pub fn calls(&self) -> Vec<(String, String)> {
        let calls = self.messages.iter().flat_map(|message| message.calls());
        calls.map(|call| (call.name.to_string(), call.arguments.as_str().to_owned())).collect()
    }
}

/// Shows a message that is whole to somebody who watches.
pub(crate) fn show(message: &Message, watch: &mut Watch<'_>) {
    for block in message.blocks() {
        match block {
            Block::Thinking(thinking) if !thinking.text.is_empty() => watch(Delta::Thinking(&thinking.text)),
            Block::Text(text) => watch(Delta::Text(&text.text)),
            Block::ToolCall(call) => {
                watch(Delta::Call(&call.name));
                watch(Delta::Arguments(call.arguments.as_str()));
            }
            Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Opaque(_) => {}
        }
    }
}

fn says_something(message: &Message) -> bool {
    message.calls().next().is_some() || message.texts().any(|text| !text.trim().is_empty())
}

/// A number of an object; 0 if there is none.
fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// What an OpenAI usage object says, under these names.
fn usage_of(value: &Value, prompt: &str, details: &str, output: &str) -> Option<Usage> {
    let prompt = value.get(prompt).and_then(Value::as_u64)?;
    let cached = value.get(details).map_or(0, |details| number(details, "cached_tokens")).min(prompt);
    Some(Usage {
        input: prompt - cached,
        output: number(value, output),
        cache_read: cached,
        ..Usage::default()
    })
}
