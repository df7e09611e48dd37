//! Replies of Anthropic Messages: blocks that begin, grow and end, between `message_start` and
//! `message_stop`.

use std::borrow::Cow;

use longhaul::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Delta, Ended, Format, Stop, number};
use crate::event_stream::Event;
use crate::fault::Fault;

#[derive(Debug, Default)]
pub(super) struct Stream {
    blocks: Vec<Growing>,
    usage: Map<String, Value>,
    stop: Option<String>,
    closed: bool,
}

/// A block of the message.
#[derive(Debug)]
struct Growing {
    /// As it began.
    block: Map<String, Value>,
    /// What was added to its text, its thinking, or its input as JSON.
    text: String,
    signature: String,
    citations: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Sent<'a> {
    MessageStart {
        message: Value,
    },
    ContentBlockStart {
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: usize,
        #[serde(borrow)]
        delta: Grown<'a>,
    },
    MessageDelta {
        delta: Value,
        #[serde(default)]
        usage: Value,
    },
    MessageStop,
    Error,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Grown<'a> {
    TextDelta {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    ThinkingDelta {
        #[serde(borrow)]
        thinking: Cow<'a, str>,
    },
    InputJsonDelta {
        #[serde(borrow)]
        partial_json: Cow<'a, str>,
    },
    SignatureDelta {
        signature: String,
    },
    CitationsDelta {
        citation: Value,
    },
    #[serde(other)]
    Other,
}

impl Format for Stream {
    fn event(&mut self, event: Event<'_>, watch: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        let sent = serde_json::from_str(event.data);
        match sent.map_err(|error| Fault::Unreadable(format!("event {}: {error}", event.name)))? {
            Sent::MessageStart { message } => {
                self.report(message.get("usage"));
            }
            Sent::ContentBlockStart { content_block } => {
                if let Some(name) = content_block.get("name").and_then(Value::as_str) {
                    watch(Delta::Call(name));
                }
                self.blocks.push(Growing::new(content_block));
            }
            Sent::ContentBlockDelta { index, delta } => {
                let no_block = || Fault::Unreadable(format!("a piece of block {index}, which did not begin"));
                self.blocks.get_mut(index).ok_or_else(no_block)?.grow(delta, watch);
            }
            Sent::MessageDelta { delta, usage } => {
                self.report(Some(&usage));
                let stop = delta.get("stop_reason").and_then(Value::as_str);
                self.stop = stop.map(Into::into).or(self.stop.take());
            }
            Sent::MessageStop => self.closed = true,
            Sent::Error => return Err(Fault::of_event(event.data)),
            Sent::Other => {}
        }
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        usage_of(&self.usage)
    }

    fn seals(&self) -> Vec<String> {
        self.blocks.iter().filter_map(Growing::seal).collect()
    }

    fn calls(&self) -> Vec<(String, String)> {
        self.blocks.iter().filter_map(Growing::call).collect()
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn end(self: Box<Self>) -> Result<Ended, Fault> {
        let usage = self.usage();
        let stop = stop_of(self.stop.as_deref());
        let content = self.blocks.into_iter().map(Growing::into_block).collect();
        Ok(Ended { messages: message_of(content), usage, stop })
    }
}

impl Stream {
    /// Later figures stand for earlier ones.
    fn report(&mut self, usage: Option<&Value>) {
        let figures = usage.and_then(Value::as_object).into_iter().flatten();
        self.usage.extend(
            figures.filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())),
        );
    }
}

impl Growing {
    fn new(block: Map<String, Value>) -> Self {
        Self { block, text: String::new(), signature: String::new(), citations: Vec::new() }
    }

    fn grow(&mut self, delta: Grown<'_>, watch: &mut dyn FnMut(Delta<'_>)) {
        match delta {
            Grown::TextDelta { text } => {
                watch(Delta::Text(&text));
                self.text.push_str(&text);
            }
            Grown::ThinkingDelta { thinking } => {
                watch(Delta::Thinking(&thinking));
                self.text.push_str(&thinking);
            }
            Grown::InputJsonDelta { partial_json } => {
                watch(Delta::Arguments(&partial_json));
                self.text.push_str(&partial_json);
            }
            Grown::SignatureDelta { signature } => self.signature.push_str(&signature),
            Grown::CitationsDelta { citation } => self.citations.push(citation),
            Grown::Other => {}
        }
    }

    /// What the provider has signed it with.
    fn seal(&self) -> Option<String> {
        let begun = |name: &str| self.block.get(name).and_then(Value::as_str).unwrap_or_default();
        let seal = match begun("type") {
            "thinking" => begun("signature").to_owned() + &self.signature,
            "redacted_thinking" => begun("data").to_owned(),
            _ => String::new(),
        };
        (!seal.is_empty()).then_some(seal)
    }

    /// The name and the arguments of a call.
    fn call(&self) -> Option<(String, String)> {
        let begun = |name: &str| self.block.get(name);
        begun("type").filter(|kind| *kind == "tool_use")?;
        let name = begun("name").and_then(Value::as_str)?.to_owned();
        let input = || begun("input").map(Value::to_string).unwrap_or_default();
        Some((name, if self.text.is_empty() { input() } else { self.text.clone() }))
    }

    fn into_block(self) -> Value {
        let Self { mut block, text, signature, citations } = self;
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let begun = |block: &Map<String, Value>, name: &str| {
            block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match kind.as_str() {
            "text" => {
                let text = begun(&block, "text") + &text;
                block.insert("text".to_owned(), text.into());
            }
            "thinking" => {
                let thinking = begun(&block, "thinking") + &text;
                let signature = begun(&block, "signature") + &signature;
                block.insert("thinking".to_owned(), thinking.into());
                block.insert("signature".to_owned(), signature.into());
            }
            _ if !text.is_empty() => {
                block.insert("input".to_owned(), input_of(text));
            }
            _ => {}
        }
        if !citations.is_empty() {
            block.insert("citations".to_owned(), citations.into());
        }
        block.into()
    }
}

/// The input of a call. The API takes nothing but objects: what is none is kept as a text in one, under
/// the name that Anthropic's documentation gives it.
fn input_of(text: String) -> Value {
    match serde_json::from_str(&text) {
        Ok(input @ Value::Object(_)) => input,
        Ok(_) | Err(_) => json!({ "INVALID_JSON": text }),
    }
}

/// A reply that came whole.
pub(super) fn whole(value: Value) -> Result<Ended, Fault> {
    let Value::Object(mut value) = value else { return Err(no_content()) };
    let Some(content @ Value::Array(_)) = value.remove("content") else { return Err(no_content()) };
    let usage = value.get("usage").and_then(Value::as_object).and_then(usage_of);
    let stop = stop_of(value.get("stop_reason").and_then(Value::as_str));
    Ok(Ended { messages: message_of(content), usage, stop })
}

fn no_content() -> Fault {
    Fault::Unreadable("a message without content".to_owned())
}

/// No message for an empty content: the API would not take it back.
fn message_of(content: Value) -> Value {
    match content.as_array().is_some_and(Vec::is_empty) {
        true => json!([]),
        false => json!([{ "role": "assistant", "content": content }]),
    }
}

fn usage_of(usage: &Map<String, Value>) -> Option<Usage> {
    let usage = Value::Object(usage.clone());
    usage.get("input_tokens").or(usage.get("output_tokens"))?;
    let for_an_hour = usage.get("cache_creation").map_or(0, |kept| number(kept, "ephemeral_1h_input_tokens"));
    let mut usage = Usage {
        input: number(&usage, "input_tokens"),
        output: number(&usage, "output_tokens"),
        cache_read: number(&usage, "cache_read_input_tokens"),
        cache_write: number(&usage, "cache_creation_input_tokens"),
        ..Usage::default()
    };
    usage.set_written_for_an_hour(for_an_hour);
    Some(usage)
}

fn stop_of(word: Option<&str>) -> Stop {
    match word {
        Some("end_turn" | "tool_use" | "stop_sequence") | None => Stop::Ended,
        Some("max_tokens") => Stop::Length,
        Some("refusal") => Stop::Refused,
        Some("model_context_window_exceeded") => Stop::WindowFull,
        Some("pause_turn") => Stop::Paused,
        Some(other) => Stop::Other(other.into()),
    }
}
