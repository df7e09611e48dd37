//! Replies of OpenAI Chat and of the many servers that speak it: pieces of one message, the last with
//! a `finish_reason`, then perhaps a piece with usage, then `[DONE]`.

use std::borrow::Cow;

use longhaul::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Delta, Ended, Format, Stop, usage_of};
use crate::event_stream::Event;
use crate::fault::Fault;

#[derive(Debug, Default)]
pub(super) struct Stream {
    text: String,
    refusal: String,
    thinking: Thinking,
    calls: Vec<Call>,
    /// Fields of the message that are not known here, as they came last.
    rest: Map<String, Value>,
    usage: Option<Usage>,
    stop: Option<String>,
    /// `[DONE]` came.
    done: bool,
}

/// Thinking, under the name that the server gives it: it wants it back under the same.
#[derive(Debug, Default)]
struct Thinking {
    name: &'static str,
    text: String,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: usize,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct CallPiece<'a> {
    #[serde(default)]
    index: Option<usize>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<FunctionPiece<'a>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct FunctionPiece<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
}

impl Format for Stream {
    fn event(&mut self, event: Event<'_>, watch: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Chunk<'_> =
            serde_json::from_str(event.data).map_err(|error| Fault::Unreadable(error.to_string()))?;
        if event.name == "error" || chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(Fault::of_event(event.data));
        }
        self.usage = chunk.usage.as_ref().and_then(usage).or(self.usage.take());
        // Nobody asks for more than one choice here.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(piece) = choice.delta {
                self.grow(piece, watch);
            }
            self.stop = choice.finish_reason.or(self.stop.take());
        }
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        self.usage.clone()
    }

    fn calls(&self) -> Vec<(String, String)> {
        self.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
    }

    fn is_closed(&self) -> bool {
        self.stop.is_some()
    }

    /// Usage may come behind the end of the message.
    fn is_over(&self) -> bool {
        self.is_closed() && self.done
    }

    fn is_finished(&self) -> bool {
        self.is_closed() || self.done
    }

    fn end(self: Box<Self>) -> Result<Ended, Fault> {
        let Self { text, refusal, thinking, calls, rest, usage, stop, done: _ } = *self;
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
        message.insert("content".to_owned(), content);
        if !thinking.text.is_empty() {
            message.insert(thinking.name.to_owned(), thinking.text.into());
        }
        if !refusal.is_empty() {
            message.insert("refusal".to_owned(), refusal.into());
        }
        if !calls.is_empty() {
            let calls: Vec<Value> =
                calls.into_iter().enumerate().map(|(n, call)| call.into_json(n)).collect();
            message.insert("tool_calls".to_owned(), calls.into());
        }
        message.extend(rest);
        Ok(Ended { messages: json!([message]), usage, stop: stop_of(stop.as_deref()) })
    }
}

impl Stream {
    fn grow(&mut self, piece: Piece<'_>, watch: &mut dyn FnMut(Delta<'_>)) {
        for (name, thinking) in
            [("reasoning_content", piece.reasoning_content), ("reasoning", piece.reasoning)]
        {
            // A server that gives both gives the same twice.
            let known = self.thinking.name.is_empty() || self.thinking.name == name;
            if let Some(thinking) = thinking.filter(|text| known && !text.is_empty()) {
                watch(Delta::Thinking(&thinking));
                self.thinking.name = name;
                self.thinking.text.push_str(&thinking);
            }
        }
        if let Some(text) = piece.content.filter(|text| !text.is_empty()) {
            watch(Delta::Text(&text));
            self.text.push_str(&text);
        }
        if let Some(refusal) = piece.refusal {
            self.refusal.push_str(&refusal);
        }
        piece.tool_calls.into_iter().flatten().for_each(|call| self.grow_call(call, watch));
        let rest = piece.rest.into_iter();
        self.rest.extend(rest.filter(|(name, value)| name != "role" && !value.is_null()));
    }

    fn grow_call(&mut self, piece: CallPiece<'_>, watch: &mut dyn FnMut(Delta<'_>)) {
        // Some servers send whole calls without an index, or all under index 0 with ids of their own.
        let new_id = |call: &Call| piece.id.as_ref().is_some_and(|id| !id.is_empty() && *id != call.id);
        let at = match piece.index {
            Some(index) if self.calls.get(index).is_none_or(|call| !new_id(call)) => index,
            Some(_) | None if self.calls.last().is_none_or(new_id) => self.calls.len(),
            Some(_) | None => self.calls.len() - 1,
        };
        /// No reply has more calls.
        const MOST: usize = 1_000;
        if at >= MOST {
            return;
        }
        while self.calls.len() <= at {
            self.calls.push(Call::default());
        }
        let call = &mut self.calls[at];
        call.id = piece.id.filter(|id| !id.is_empty()).unwrap_or(std::mem::take(&mut call.id));
        if let Some(function) = piece.function {
            if let Some(name) = function.name.filter(|name| !name.is_empty() && call.name.is_empty()) {
                watch(Delta::Call(&name));
                call.name = name;
            }
            if let Some(arguments) = function.arguments.filter(|text| !text.is_empty()) {
                watch(Delta::Arguments(&arguments));
                call.arguments.push_str(&arguments);
            }
        }
        call.rest.extend(piece.rest.into_iter().filter(|(name, _)| name != "type"));
    }
}

impl Call {
    fn into_json(self, number: usize) -> Value {
        let Self { mut id, name, arguments, rest } = self;
        // Without an id no result can name the call.
        if id.is_empty() {
            id = format!("call_{number}");
        }
        let mut call = Map::new();
        call.insert("id".to_owned(), id.into());
        call.insert("type".to_owned(), "function".into());
        call.insert("function".to_owned(), json!({ "name": name, "arguments": arguments }));
        call.extend(rest);
        call.into()
    }
}

/// A reply that came whole.
pub(super) fn whole(value: Value) -> Result<Ended, Fault> {
    let usage = value.get("usage").and_then(usage);
    let choice = value.get("choices").and_then(|choices| choices.get(0));
    let message = choice.and_then(|choice| choice.get("message"));
    let Some((choice, message)) = choice.zip(message) else {
        return Err(Fault::Unreadable("a completion without a message".to_owned()));
    };
    let stop = stop_of(choice.get("finish_reason").and_then(Value::as_str));
    Ok(Ended { messages: json!([message]), usage, stop })
}

fn usage(value: &Value) -> Option<Usage> {
    usage_of(value, "prompt_tokens", "prompt_tokens_details", "completion_tokens")
}

fn stop_of(word: Option<&str>) -> Stop {
    match word {
        Some("stop" | "tool_calls" | "function_call" | "") | None => Stop::Ended,
        Some("length" | "max_tokens") => Stop::Length,
        Some("content_filter") => Stop::Refused,
        Some(other) => Stop::Other(other.into()),
    }
}
