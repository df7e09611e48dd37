//! The first bytes of an answer are held until it is known whether the provider took the request. A provider
//! says that a request is too long by a status, or by an event inside a stream that began well.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use longhaul::session::Overflow;
use longhaul_model::{Event, EventStream, Fault, Reply, ReplyReader, refuses_thinking};
use longhaul_wire::api::{Api, BlockPlace};
use reqwest::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::reading::Form;

/// An answer of which the first bytes were read.
pub(crate) struct Held {
    pub(crate) head: Parts,
    pub(crate) first: VecDeque<Bytes>,
    pub(crate) rest: Rest,
}

/// What comes behind the first bytes.
pub(crate) enum Rest {
    Open(Body),
    Ended,
    Broke,
}

/// What the first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The request is too long.
    TooLong(Overflow),
    /// Thinking is bound to other messages than those that stand before it, from this block on, or it cannot be read.
    WrongThinking(Option<BlockPlace>),
    /// The provider does not know the option by which we asked for usage.
    NoSuchOption,
    /// Something in the request is not to the provider's liking, in its words.
    Refused(Box<str>),
    /// Nothing that concerns us.
    Nothing,
}

/// How much is held, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

impl Held {
    /// An answer that nobody holds.
    pub(crate) fn nothing(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        Self { head, first: VecDeque::new(), rest: Rest::Open(body) }
    }

    /// Holds an answer until it is known what it says.
    pub(crate) async fn until_known(api: Api, response: Response<Body>, patience: Patience) -> (Self, Said) {
        let mut held = Self::nothing(response);
        let mut look = Look::of(api, &held.head);
        let until = Instant::now() + patience.time;
        let mut read = 0;
        while !look.is_done() && read <= patience.bytes {
            let Rest::Open(body) = &mut held.rest else { break };
            // Whoever waits too long goes on with what there is.
            let Ok(frame) = timeout_at(until, body.frame()).await else { return (held, Said::Nothing) };
            match frame.map(|frame| frame.map(|frame| frame.into_data())) {
                Some(Ok(Ok(piece))) => {
                    read += piece.len();
                    look.at(&piece);
                    held.first.push_back(piece);
                }
                Some(Ok(Err(_))) => {}
                Some(Err(_)) => held.rest = Rest::Broke,
                None => held.rest = Rest::Ended,
            }
        }
        let whole = matches!(held.rest, Rest::Ended);
        let said = look.said(whole);
        (held, said)
    }
}

/// What is looked at in the first bytes.
enum Look {
    /// Events, up to the first that says something.
    Events { api: Api, stream: EventStream, said: Option<Said> },
    /// A whole answer; a provider may say inside of it that the request is too long.
    Whole { api: Api, status: StatusCode, bytes: Vec<u8> },
    /// Nothing can be known.
    Nothing,
}

impl Look {
    fn of(api: Api, head: &Parts) -> Self {
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        match Form::of(&head.headers) {
            Form::Stream if head.status == StatusCode::OK => {
                Self::Events { api, stream: EventStream::default(), said: None }
            }
            Form::Other if !is_error || head.headers.contains_key("content-encoding") => Self::Nothing,
            Form::Stream | Form::Whole | Form::Other => {
                Self::Whole { api, status: head.status, bytes: Vec::new() }
            }
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Events { said, .. } => said.is_some(),
            Self::Whole { .. } => false,
            Self::Nothing => true,
        }
    }

    fn at(&mut self, piece: &[u8]) {
        match self {
            Self::Events { api, stream, said } => {
                stream.push(piece);
                while said.is_none() {
                    match stream.next_event() {
                        Ok(Some(event)) if is_quiet(*api, event) => {}
                        Ok(Some(event)) => *said = Some(said_in(*api, event)),
                        Ok(None) => break,
                        Err(_) => *said = Some(Said::Nothing),
                    }
                }
            }
            Self::Whole { bytes, .. } => bytes.extend_from_slice(piece),
            Self::Nothing => {}
        }
    }

    /// What was said, when all of it came or not.
    fn said(self, whole: bool) -> Said {
        match self {
            Self::Events { said, .. } => said.unwrap_or(Said::Nothing),
            Self::Whole { api, status, bytes } if whole => {
                let body = String::from_utf8_lossy(&bytes);
                let fault = match status {
                    StatusCode::OK => match Reply::read(api, &body) {
                        Ok(_) => return Said::Nothing,
                        Err(fault) => fault,
                    },
                    status => Fault::of_response(status.as_u16(), None, &body),
                };
                match fault {
                    Fault::TooLong { overflow, .. } => Said::TooLong(overflow),
                    Fault::Refused { .. } | Fault::Failed { .. } if refuses_thinking(&body) => {
                        Said::WrongThinking(BlockPlace::named_in(&body))
                    }
                    Fault::Refused { .. } if body.contains("stream_options") => Said::NoSuchOption,
                    fault => refused(&fault),
                }
            }
            Self::Whole { .. } | Self::Nothing => Said::Nothing,
        }
    }
}

/// True if an event says nothing yet: behind it a provider may still refuse the request.
fn is_quiet(api: Api, event: Event<'_>) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: std::borrow::Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<Choice>,
        #[serde(default)]
        error: Value,
    }
    #[derive(Deserialize)]
    struct Choice {
        #[serde(default)]
        delta: serde_json::Map<String, Value>,
        #[serde(default)]
        finish_reason: Value,
    }
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let kind = || serde_json::from_str::<Kind<'_>>(event.data).map(|kind| kind.kind.into_owned());
    match api {
        Api::Anthropic => kind().is_ok_and(|kind| matches!(kind.as_str(), "message_start" | "ping")),
        Api::Responses => kind().is_ok_and(|kind| {
            matches!(kind.as_str(), "response.created" | "response.in_progress" | "response.queued")
        }),
        Api::Chat => serde_json::from_str::<Chunk>(event.data).is_ok_and(|chunk| {
            chunk.error.is_null()
                && chunk.choices.iter().all(|choice| {
                    choice.finish_reason.is_null()
                        && choice.delta.iter().all(|(name, value)| name == "role" || is_empty(value))
                })
        }),
    }
}

fn said_in(api: Api, event: Event<'_>) -> Said {
    let data: String = event.data.split('\n').map(|line| format!("data: {line}\n")).collect();
    let text = format!("event: {}\n{data}\n", event.name);
    match ReplyReader::new(api).push(text.as_bytes(), &mut |_| {}) {
        Err(Fault::TooLong { overflow, .. }) => Said::TooLong(overflow),
        Err(_) if refuses_thinking(event.data) => Said::WrongThinking(BlockPlace::named_in(event.data)),
        Err(fault) => refused(&fault),
        Ok(_) => Said::Nothing,
    }
}

fn refused(fault: &Fault) -> Said {
    fault.refused_content().map_or(Said::Nothing, |says| Said::Refused(says.into()))
}

#[cfg(test)]
mod tests {
    use longhaul::Tokens;

    use super::*;

    async fn held(api: Api, status: u16, kind: &str, body: &'static str) -> (usize, Said) {
        let response = Response::builder().status(status).header("content-type", kind);
        let response = response.body(Body::from(body)).unwrap();
        let patience = Patience { bytes: 1_000, time: Duration::from_secs(9) };
        let (held, said) = Held::until_known(api, response, patience).await;
        (held.first.iter().map(Bytes::len).sum(), said)
    }

    fn too_long(prompt: u64, window: u64) -> Said {
        Said::TooLong(Overflow { prompt: Some(Tokens(prompt)), window: Some(Tokens(window)), answer: None })
    }

    #[tokio::test]
    async fn an_overflow_is_told_by_status_and_inside_a_stream() {
        let json = "application/json";
        let says = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 31920 tokens > 30000 maximum"}}"#;
        assert_eq!(held(Api::Anthropic, 400, json, says).await, (says.len(), too_long(31_920, 30_000)));
        let other = r#"{"error":{"message":"no such model"}}"#;
        assert_eq!(held(Api::Chat, 404, json, other).await.1, Said::Nothing);
        let option = r#"{"error":{"message":"unknown field stream_options"}}"#;
        assert_eq!(held(Api::Chat, 422, json, option).await.1, Said::NoSuchOption);

        let stream = "event: response.created\ndata: {\"type\":\"response.created\"}\n\nevent: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"x\"}}}\n\n";
        let overflow = Overflow { prompt: None, window: None, answer: None };
        let events = "text/event-stream";
        assert_eq!(held(Api::Responses, 200, events, stream).await.1, Said::TooLong(overflow));
        let stream = "data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"invalid_encrypted_content\",\"message\":\"x\"}}}\n\n";
        assert_eq!(held(Api::Responses, 200, events, stream).await.1, Said::WrongThinking(None));
        let bound = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.5.content.1: Invalid `signature` in `thinking` block. The block is bound to a different conversation."}}"#;
        let place = BlockPlace { message: 5, block: 1 };
        assert_eq!(held(Api::Anthropic, 400, json, bound).await.1, Said::WrongThinking(Some(place)));
        let behind = "data: {\"type\":\"response.output_item.added\"}\n\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\"}\n\n";
        assert_eq!(held(Api::Responses, 200, events, behind).await.1, Said::Nothing);
    }

    #[test]
    fn only_beginnings_are_quiet() {
        let quiet = |api, data| is_quiet(api, Event { name: "", data });
        assert!(quiet(Api::Anthropic, r#"{"type":"message_start","message":{}}"#));
        assert!(quiet(Api::Anthropic, r#"{"type":"ping"}"#));
        assert!(!quiet(Api::Anthropic, r#"{"type":"content_block_start"}"#));
        assert!(!quiet(Api::Anthropic, r#"{"type":"error"}"#));
        assert!(quiet(
            Api::Chat,
            r#"{"choices":[{"delta":{"role":"assistant","content":"","refusal":null}}]}"#
        ));
        assert!(quiet(Api::Chat, r#"{"choices":[]}"#));
        assert!(!quiet(Api::Chat, r#"{"choices":[{"delta":{"content":"a"}}]}"#));
        assert!(!quiet(Api::Chat, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#));
        assert!(!quiet(Api::Chat, r#"{"error":{}}"#));
        assert!(!quiet(Api::Chat, "[DONE]"));
    }

    #[tokio::test]
    async fn no_more_is_held_than_may_be() {
        let pings: &'static str = Box::leak("data: {\"type\":\"ping\"}\n\n".repeat(999).into_boxed_str());
        let (held, said) = held(Api::Anthropic, 200, "text/event-stream", pings).await;
        // The whole body is one piece here.
        assert_eq!((held, said), (pings.len(), Said::Nothing));
    }
}
