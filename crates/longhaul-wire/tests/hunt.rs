//! What a hunt for bugs in requests has found, each as small as it can be.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use longhaul::{Block, End};
use longhaul_wire::api::{Api, Request};
use serde_json::json;

/// The request with one message of other blocks.
fn edit(request: &Request, at: usize, blocks: Vec<Block>) -> Request {
    let mut messages = request.messages().to_vec();
    messages[at] = Arc::new((*messages[at]).clone().with_blocks(blocks));
    request.clone().with_messages(messages)
}

#[test]
fn a_text_that_speaks_of_marks_can_have_one() {
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What is `cache_control`?", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": "A mark."},
        {"role": "user", "content": "And \"cache_control\" of a tool?"},
    ]})
    .to_string();
    let request = Request::decode(Api::Anthropic, body).unwrap();
    // Ours, on a text that says its name.
    let sent = edit(&request, 1, vec![Block::text("edited")])
        .with_ends(vec![End::After(3)])
        .encode(Api::Anthropic)
        .body;
    let marks = Request::decode(Api::Anthropic, &*sent).unwrap().marks().len();
    assert_eq!(marks, 2, "{sent}");
    // The client's own, on a block that was edited.
    let sent = edit(&request, 0, vec![Block::text("About cache_control.")]).encode(Api::Anthropic).body;
    assert_eq!(Request::decode(Api::Anthropic, &*sent).unwrap().marks().len(), 1, "{sent}");
}

#[test]
fn null_is_no_mark() {
    let mut messages = Vec::new();
    for n in 0..6 {
        messages.push(json!({"role": "user", "content": [{"type": "text", "text": format!("q{n}"), "cache_control": null}]}));
        messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": format!("a{n}"), "cache_control": null}]}));
    }
    let body = json!({"model": "m", "system": [{"type": "text", "text": "s", "cache_control": null}],
        "tools": [{"name": "a", "input_schema": {}, "cache_control": null}], "messages": messages})
    .to_string();
    let request = Request::decode(Api::Anthropic, body).unwrap();
    assert_eq!(request.marks().len(), 0, "{:?}", request.marks());
    let sent = edit(&request, 1, vec![Block::text("edited")])
        .with_ends(vec![End::After(12)])
        .encode(Api::Anthropic)
        .body;
    assert_eq!(sent.matches("ephemeral").count(), 1, "{sent}");
}

/// Ours stands behind both of the client's, and the nearer one is for five minutes.
#[test]
fn no_mark_for_an_hour_behind_one_for_five_minutes() {
    let block =
        |text: &str, mark: serde_json::Value| json!({"type": "text", "text": text, "cache_control": mark});
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [
        block("a", hour), block("b", json!({"type": "ephemeral"})), {"type": "text", "text": "c"},
    ]}]});
    let request = Request::decode(Api::Anthropic, body.to_string()).unwrap();
    let sent = request.with_ends(vec![End::After(1)]).encode(Api::Anthropic).body;
    let hours: Vec<bool> =
        Request::decode(Api::Anthropic, &*sent).unwrap().marks().iter().map(|mark| mark.hour).collect();
    assert_eq!(hours, [true, false, false], "{sent}");
}
