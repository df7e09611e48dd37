//! The three APIs: how each writes an answer and an error, reads a prompt, and what it refuses. An API is
//! one file that implements [`Protocol`] and one row of [`Api`].

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

use crate::cache::Piece;
use crate::script::{Answer, Counts};
use crate::twin::Twin;

pub(crate) use messages::{answer_block, blocks, mark_last, marks};

/// An API that the fake speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Api {
    pub(crate) fn protocol(self) -> &'static dyn Protocol {
        match self {
            Self::Chat => &chat::Chat,
            Self::Responses => &responses::Responses,
            Self::Messages => &messages::Messages,
        }
    }
}

/// How one API writes and reads.
pub(crate) trait Protocol: Sync {
    /// The prompt of a request, in the order in which a provider reads it.
    fn prompt(&self, body: &Value) -> Vec<Piece>;

    /// The refusal of a request that breaks a rule of this provider, as far as the request alone shows it.
    fn violation(&self, twin: Twin, body: &Value) -> Option<Said>;

    /// The words for a body that is no JSON.
    fn not_json(&self) -> Said;

    /// The words for a status.
    fn status(&self, status: u16, model: &str, key: &str) -> Said;

    /// The words for a prompt that is too long.
    fn too_long(&self, prompt: u64, window: u64) -> Said;

    /// A body with an error.
    fn error(&self, said: &Said) -> Value;

    /// An answer as one body.
    fn whole(&self, answer: &Written<'_>) -> Value;

    /// An answer as a stream.
    fn events(&self, answer: &Written<'_>) -> Vec<Event>;

    /// An error inside a stream.
    fn error_event(&self, said: &Said) -> Event;

    /// An event that says nothing, if the API has one.
    fn ping(&self) -> Option<Event>;
}

/// What a provider says of what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) kind: &'static str,
    pub(crate) code: Option<Value>,
    pub(crate) param: Option<&'static str>,
    pub(crate) message: String,
}

impl Said {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code: None, param: None, message: message.into() }
    }

    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    pub(crate) fn with_param(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    /// What is wrong with the request itself.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_request_error", message)
    }

    /// An error in a request, as vLLM writes it.
    pub(crate) fn vllm(message: impl Into<String>) -> Self {
        Self { code: Some(400.into()), ..Self::new("BadRequestError", message) }
    }
}

/// An answer that is to be written.
pub(crate) struct Written<'a> {
    /// The number of the call, for ids.
    pub(crate) number: usize,
    pub(crate) answer: &'a Answer,
    pub(crate) counts: Counts,
    /// The body of the request.
    pub(crate) asked: &'a Value,
    pub(crate) twin: Twin,
    /// The signatures of the thinking parts, if it is bound: one entry for each part of the answer.
    pub(crate) signatures: Vec<Option<String>>,
    /// `input_transformations` of the answer (Anthropic), if it has that field.
    pub(crate) transformations: Option<Value>,
    /// So many characters come in one event.
    pub(crate) piece: usize,
}

impl Written<'_> {
    fn model(&self) -> &str {
        model_of(self.asked)
    }

    /// The signature of the part at this place, if thinking is bound.
    fn signature(&self, part: usize) -> Option<&str> {
        self.signatures.get(part)?.as_deref()
    }

    /// The id of the part at this place of the answer: no other answer has it.
    fn id(&self, prefix: &str, part: usize) -> String {
        format!("{prefix}_{}_{part}", self.number)
    }

    /// A text in pieces. Even an empty one has a piece, as providers send it.
    fn pieces(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        let pieces: Vec<String> = characters.chunks(self.piece).map(|piece| piece.iter().collect()).collect();
        if pieces.is_empty() { vec![String::new()] } else { pieces }
    }
}

/// The model that a request names.
pub(crate) fn model_of(body: &Value) -> &str {
    body.get("model").and_then(Value::as_str).unwrap_or("fake-1")
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The API writes the names of its events.
    named: bool,
    data: Data,
    /// The answer is not closed without it.
    pub(crate) closes: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Data {
    Json(Value),
    Done,
}

impl Event {
    /// An event that has its name in its data.
    fn named(data: Value) -> Self {
        Self { named: true, data: Data::Json(data), closes: false }
    }

    /// An event without a name.
    fn bare(data: Value) -> Self {
        Self { named: false, data: Data::Json(data), closes: false }
    }

    /// The line that ends a stream of OpenAI Chat.
    fn done() -> Self {
        Self { named: false, data: Data::Done, closes: true }
    }

    fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    /// The event as it is sent, its lines with this end.
    pub(crate) fn text(&self, end: &str) -> String {
        self.written(&self.data(), end)
    }

    /// The event with only half of its data.
    pub(crate) fn broken(&self, end: &str) -> String {
        let data = self.data();
        let half = (1..=data.len() / 2).rev().find(|at| data.is_char_boundary(*at)).unwrap_or(0);
        self.written(&data[..half], end)
    }

    fn data(&self) -> String {
        match &self.data {
            Data::Json(value) => value.to_string(),
            Data::Done => "[DONE]".to_owned(),
        }
    }

    fn written(&self, data: &str, end: &str) -> String {
        match &self.data {
            Data::Json(value) if self.named => {
                let name = value["type"].as_str().unwrap_or("message");
                format!("event: {name}{end}data: {data}{end}{end}")
            }
            Data::Json(_) | Data::Done => format!("data: {data}{end}{end}"),
        }
    }
}

/// The elements of a list; none, if there is no list.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Pieces of a prompt, one for each value, none of them marked.
fn unmarked<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<Piece> {
    values.into_iter().map(|value| Piece::other(value.to_string())).collect()
}

/// An error as OpenAI writes it.
fn openai_error(said: &Said) -> Value {
    json!({ "message": said.message, "type": said.kind, "param": said.param, "code": said.code })
}

/// The words of OpenAI for a status.
fn openai_status(status: u16, model: &str, key: &str) -> Said {
    match status {
        401 => Said::invalid(format!(
            "Incorrect API key provided: {key}. You can find your API key at https://platform.openai.com/account/api-keys."
        ))
        .with_code("invalid_api_key"),
        403 => Said::invalid("You are not allowed to sample from this model").with_code("unsupported_country_region_territory"),
        404 => Said::invalid(format!("The model `{model}` does not exist or you do not have access to it."))
            .with_code("model_not_found"),
        413 => Said::invalid("Request Entity Too Large"),
        429 => Said::new(
            "tokens",
            format!("Rate limit reached for {model} on tokens per min (TPM): Limit 30000, Used 29900, Requested 500. Please try again in 1s."),
        )
        .with_code("rate_limit_exceeded"),
        503 | 529 => Said::new("service_unavailable_error", "The engine is currently overloaded, please try again later"),
        500.. => Said::new("server_error", "The server had an error while processing your request. Sorry about that!"),
        _ => Said::invalid(format!("The request was refused with status {status}.")),
    }
}

/// The words of OpenAI for a body that is no JSON.
fn openai_not_json() -> Said {
    Said::invalid(
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)",
    )
}

/// The words of OpenAI for a request that is too long.
fn openai_too_long(message: String) -> Said {
    Said::invalid(message).with_code("context_length_exceeded")
}
