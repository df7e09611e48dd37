//! Tests of requests, by what they are about.

mod bytes;
mod made_up;
mod marks;
mod odd;
mod offered;
mod translated;

use super::*;
use longhaul::{End, Frame, Seal};
use serde_json::{Value, json};

const FIXTURES: [(Api, &str); 3] = [
    (Api::Chat, include_str!("../../tests/api/chat.json")),
    (Api::Responses, include_str!("../../tests/api/responses.json")),
    (Api::Anthropic, include_str!("../../tests/api/anthropic.json")),
];

fn untouched(request: &Request) -> Vec<Message> {
    request.messages().iter().map(|m| (**m).clone().without_raw()).collect()
}

fn without_raw(request: &Request) -> Request {
    let messages = untouched(request).into_iter().map(Arc::new).collect();
    request.clone().with_messages(messages)
}

/// A body of one API that holds these messages or items.
fn body_of(api: Api, messages: Value, more: Value) -> String {
    let mut body = json!({ "model": "m" });
    body[api.format().row().list] = messages;
    more.as_object().into_iter().flatten().for_each(|(name, value)| body[name] = value.clone());
    body.to_string()
}

/// Read, and written from its blocks.
fn rewritten(api: Api, messages: Value) -> Value {
    let request = Request::decode(api, body_of(api, messages, json!({}))).unwrap();
    serde_json::from_str::<Value>(&without_raw(&request).encode(api).body).unwrap()[api.format().row().list]
        .take()
}
