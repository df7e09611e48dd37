//! Replies of OpenAI Responses: items that begin, grow and are done, between `response.created` and
//! `response.completed`, which holds all of them once more, or, with some servers, none.

use std::borrow::Cow;
use std::collections::BTreeMap;

use longhaul::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::{Delta, Ended, Format, Stop, usage_of};
use crate::event_stream::Event;
use crate::fault::Fault;

#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Items that are done, by their place.
    items: BTreeMap<usize, Value>,
    /// The response as its closing event has it.
    closed: Option<Value>,
    /// The stream was ended in another way: by `[DONE]`, or because the response was cancelled.
    done: bool,
}

#[derive(Debug, Deserialize)]
struct Sent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Option<Cow<'a, str>>,
    #[serde(default)]
    output_index: Option<usize>,
    #[serde(default)]
    item: Option<Value>,
    #[serde(default)]
    response: Option<Value>,
}

impl Format for Stream {
    fn event(&mut self, event: Event<'_>, watch: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let sent: Sent<'_> = serde_json::from_str(event.data)
            .map_err(|error| Fault::Unreadable(format!("event {}: {error}", event.name)))?;
        let delta = sent.delta.as_deref().unwrap_or_default();
        match &*sent.kind {
            "response.output_text.delta" | "response.refusal.delta" => watch(Delta::Text(delta)),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                watch(Delta::Thinking(delta));
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                watch(Delta::Arguments(delta));
            }
            "response.output_item.added" => {
                let name = sent.item.as_ref().and_then(|item| item.get("name")).and_then(Value::as_str);
                name.into_iter().for_each(|name| watch(Delta::Call(name)));
            }
            "response.output_item.done" => {
                let at = sent.output_index.unwrap_or(self.items.len());
                self.items.extend(sent.item.map(|item| (at, item)));
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.closed = Some(sent.response.unwrap_or_default());
            }
            "response.cancelled" => self.done = true,
            "response.failed" => {
                let error = sent.response.as_ref().and_then(|response| response.get("error"));
                return Err(Fault::of_event(&error.map(ToString::to_string).unwrap_or_default()));
            }
            "error" => return Err(Fault::of_event(event.data)),
            _ => {}
        }
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        self.closed.as_ref().and_then(usage)
    }

    fn calls(&self) -> Vec<(String, String)> {
        self.output().filter_map(call).collect()
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn is_finished(&self) -> bool {
        self.is_closed() || self.done
    }

    fn end(self: Box<Self>) -> Result<Ended, Fault> {
        let response = self.closed.unwrap_or_default();
        let done: Vec<Value> = self.items.into_values().collect();
        let output = match response.get("output").and_then(Value::as_array) {
            Some(output) if done.is_empty() => output.clone(),
            _ => done,
        };
        Ok(Ended { messages: output.into(), usage: usage(&response), stop: stop_of(&response) })
    }
}

impl Stream {
    /// The items that are done; of a server that sends none of them, those of its closing event.
    fn output(&self) -> impl Iterator<Item = &Value> {
        let closed =
            self.closed.as_ref().and_then(|response| response.get("output")).and_then(Value::as_array);
        let closed = closed.filter(|_| self.items.is_empty()).into_iter().flatten();
        self.items.values().chain(closed)
    }
}

/// The name and the arguments of an item that calls a function.
fn call(item: &Value) -> Option<(String, String)> {
    item.get("type").filter(|kind| *kind == "function_call")?;
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    Some((text("name")?, text("arguments").unwrap_or_default()))
}

/// A reply that came whole.
pub(super) fn whole(mut value: Value) -> Result<Ended, Fault> {
    let (usage, stop) = (usage(&value), stop_of(&value));
    match value.get_mut("output").map(Value::take) {
        Some(output @ Value::Array(_)) => Ok(Ended { messages: output, usage, stop }),
        _ => Err(Fault::Unreadable("a response without output".to_owned())),
    }
}

fn usage(response: &Value) -> Option<Usage> {
    usage_of(response.get("usage")?, "input_tokens", "input_tokens_details", "output_tokens")
}

fn stop_of(response: &Value) -> Stop {
    let reason = response.get("incomplete_details").and_then(|details| details.get("reason"));
    match reason.and_then(Value::as_str) {
        None => Stop::Ended,
        Some("max_output_tokens") => Stop::Length,
        Some("content_filter") => Stop::Refused,
        Some(other) => Stop::Other(other.into()),
    }
}
