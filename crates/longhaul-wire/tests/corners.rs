//! Corners of requests: what was once read or written wrong, each as small as it can be.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use longhaul::{Block, End, Message};
use longhaul_wire::api::{Api, Request};
use serde_json::{Value, json};

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

#[test]
fn ids_of_calls_and_results_stay_alike() {
    let long = "x".repeat(70);
    for id in ["functions.bash:0", &long, "a b"] {
        let anthropic = json!({"model": "m", "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "long text"}]},
        ]});
        let chat = json!({"model": "m", "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": id, "content": "long text"},
        ]});
        let responses = json!({"model": "m", "input": [
            {"role": "user", "content": "Go."},
            {"type": "function_call", "call_id": id, "name": "bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": id, "output": "long text"},
        ]});
        for (api, body) in [(Api::Anthropic, anthropic), (Api::Chat, chat), (Api::Responses, responses)] {
            let request = Request::decode(api, body.to_string()).unwrap();
            let sent = edit(&request, 2, vec![Block::result(id, "short")]).encode(api).body;
            let read = Request::decode(api, &*sent).unwrap();
            let call = read.messages().iter().flat_map(|m| m.calls()).next().unwrap();
            let result = read.messages().iter().flat_map(|m| m.results()).next().unwrap();
            assert_eq!(call.id, result.id, "{api:?} edited: {sent}");
        }
    }
}

#[test]
fn placeholders_have_the_ids_of_their_calls() {
    let id = "functions.bash:0";
    let anthropic = json!({"model": "m", "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]},
        {"role": "user", "content": "Stop, another way."},
    ]});
    let chat = json!({"model": "m", "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
        {"role": "user", "content": "Stop, another way."},
    ]});
    let responses = json!({"model": "m", "input": [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": id, "name": "bash", "arguments": "{}"},
        {"role": "user", "content": "Stop, another way."},
    ]});
    for (api, body) in [(Api::Anthropic, anthropic), (Api::Chat, chat), (Api::Responses, responses)] {
        let model = longhaul::Models::builtin().find("claude-sonnet-4-5").clone();
        let mut session = longhaul::Session::new(longhaul::Profile::longhaul(), model);
        let request = Request::decode(api, body.to_string()).unwrap();
        session.set_frame(request.frame().clone());
        for m in request.messages() {
            session.push(m.clone());
        }
        assert!(matches!(session.prepare(None), Ok(longhaul::Prepared::Send(_))));
        let sent = request.sending(&session.outgoing()).encode(api).body;
        let read = Request::decode(api, &*sent).unwrap();
        let call = read.messages().iter().flat_map(|m| m.calls()).next().unwrap();
        let result = read.messages().iter().flat_map(|m| m.results()).next().unwrap();
        assert_eq!(call.id, result.id, "{api:?}: {sent}");
    }
}

#[test]
fn a_null_prompt_is_read_alike() {
    for (api, field) in [
        (Api::Anthropic, "system"),
        (Api::Anthropic, "tools"),
        (Api::Responses, "instructions"),
        (Api::Chat, "tools"),
    ] {
        for odd in ["null", "false", "5", "\"\"", "[]", "{}", "[null]", "[5]", "[{\"type\":\"text\"}]"] {
            let list = if api == Api::Responses { "input" } else { "messages" };
            let body = |n: u32| {
                format!(
                    r#"{{"model":"m","{field}":{odd},"x":{n},"{list}":[{{"role":"user","content":"hi"}}]}}"#
                )
            };
            let mut relay = longhaul_wire::api::Relay::new(api);
            let first = relay.read(body(1)).unwrap();
            relay.write(&first);
            let (one, other) = (relay.read(body(2)).unwrap(), Request::decode(api, body(2)).unwrap());
            assert_eq!(one.frame(), other.frame(), "{api:?} {field} {odd}");
        }
    }
}

/// A field of the body is no block of the system prompt.
#[test]
fn a_field_is_not_taken_for_the_billing_block() {
    let body = r#"{"model":"m","system":"s","x-anthropic-billing-header":"a","messages":[{"role":"user","content":"hi"}]}"#;
    let mut relay = longhaul_wire::api::Relay::new(Api::Anthropic);
    let request = relay.read(body).unwrap();
    relay.write(&request);
    let sent = Request::new(request.frame().clone(), request.messages().to_vec()).encode(Api::Anthropic).body;
    let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["system"], json!([{"type": "text", "text": "s"}]));
    assert_eq!(sent["x-anthropic-billing-header"], "a");
    let next = body.replace("\"m\"", "\"n\"");
    assert_eq!(relay.read(&*next).unwrap().frame(), Request::decode(Api::Anthropic, next).unwrap().frame());
}

/// Ten times as much takes no hundred times as long: seconds, where it was quadratic.
#[test]
fn many_fields_parts_and_marks_take_linear_time() {
    let many = |f: &dyn Fn(usize) -> String| (0..100_000).map(f).collect::<Vec<_>>().join(",");
    let numbered = many(&|n| format!("\"k{n}\":1"));
    let doubled = many(&|_| "\"cache_control\":{}".to_owned());
    let parts = many(&|n| format!(r#"{{"type":"text","text":"{n}"}}"#));
    let calls = many(&|n| {
        format!(r#"{{"id":"{n}","type":"function","function":{{"name":"a","arguments":"{{}}"}}}}"#)
    });
    let marked = many(&|n| {
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"{n}","cache_control":{{"type":"ephemeral"}}}}]}}"#
        )
    });
    let start = std::time::Instant::now();
    for (api, body) in [
        (Api::Chat, format!(r#"{{"model":"m",{numbered},"messages":[]}}"#)),
        (Api::Anthropic, format!(r#"{{"messages":[{{"role":"user","content":"a",{numbered}}}]}}"#)),
        (
            Api::Anthropic,
            format!(
                r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"a",{doubled}}}]}}]}}"#
            ),
        ),
        (Api::Chat, format!(r#"{{"messages":[{{"role":"user","content":[{parts}]}}]}}"#)),
        (Api::Chat, format!(r#"{{"messages":[{{"role":"assistant","tool_calls":[{calls}]}}]}}"#)),
    ] {
        Request::decode(api, body).unwrap();
    }
    let request = Request::decode(Api::Anthropic, format!(r#"{{"messages":[{marked}]}}"#)).unwrap();
    edit(&request, 0, vec![Block::text("edited")]).encode(Api::Anthropic);
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

/// Keys for servers of tools, also where the setting itself is one or its name is written with escapes.
#[test]
fn secrets_are_in_no_journal_and_in_no_transcript() {
    let body = r#"{"model":"m","api_key":"sk-1","headers":{"x":"sk-2"},"authorization":"sk-3","mcp_servers":[{"api\u005fkey":"sk-4"}],"tools":[{"type":"mcp","authorization":"sk-5"},{"type":"mcp","headers":{"a":"sk-6"},"x":DEEP}],"messages":[{"role":"user","content":"hi"}]}"#;
    let body = body.replace("DEEP", &format!("{}{}", "[".repeat(200), "]".repeat(200)));
    let request = Request::decode(Api::Anthropic, body).unwrap();
    let model = longhaul::Models::builtin().find("claude-sonnet-4-5").clone();
    let mut session = longhaul::Session::new(longhaul::Profile::longhaul(), model);
    session.set_frame(request.frame().clone());
    let journal: Vec<String> =
        session.since(longhaul::Cursor(0)).map(|entry| serde_json::to_string(&entry).unwrap()).collect();
    let transcript = longhaul_wire::transcript::encode(&request.into_transcript()[0]).into_owned();
    assert!(!journal.concat().contains("sk-") && !transcript.contains("sk-"), "{journal:?} {transcript}");
}

/// A message that is no longer in the body is written from its raw text: arguments with blanks too.
#[test]
fn blanks_around_arguments_stay() {
    let text = format!(" {{\"a\": \"{}\"}}\n", "x".repeat(80));
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "b", "arguments": text}}]});
    let item = json!({"type": "function_call", "call_id": "a", "name": "b", "arguments": text});
    for (api, list, element) in [(Api::Chat, "messages", call), (Api::Responses, "input", item)] {
        let request = Request::decode(api, json!({"model": "m", list: [element]}).to_string()).unwrap();
        let sent = Request::new(request.frame().clone(), request.messages().to_vec()).encode(api).body;
        assert!(sent.contains(&element.to_string()), "{sent}");
    }
}

/// A part of a type that nobody here knows is no item.
#[test]
fn an_unknown_part_stays_in_its_message() {
    let parts =
        json!([{"type": "input_text", "text": "See."}, {"type": "computer_screenshot", "file_id": "f"}]);
    let body = json!({"model": "m", "input": [{"type": "message", "role": "user", "content": parts}]});
    let request = Request::decode(Api::Responses, body.to_string()).unwrap();
    let mut blocks = request.messages()[0].blocks().to_vec();
    blocks[0] = Block::text("Look.");
    let sent = edit(&request, 0, blocks).encode(Api::Responses).body;
    assert_eq!(Request::decode(Api::Responses, &*sent).unwrap().messages().len(), 1, "{sent}");
}

/// Who quotes the tag in which a client puts the person's words says more than what is in it.
#[test]
fn a_quoted_tag_of_the_person_costs_no_words() {
    for text in [
        "<App /> crashes. The log says:\n<user_query>\nhi\n</user_query>\nWhy?",
        "<div> is broken:\n<command-args>x</command-args>\nMend it.",
        "<b>Look</b>\n<userRequest>hi</userRequest>\nWhy is that in my log?",
    ] {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string();
        let request = Request::decode(Api::Anthropic, body).unwrap();
        assert!(request.messages()[0].words().eq([text]), "{text}");
    }
}

/// What is read can be stored, and what is stored can be read again.
#[test]
fn results_in_results_in_results_are_stored() {
    let inside = |content, n: usize| json!([{"type": "tool_result", "tool_use_id": n.to_string(), "content": content}]);
    let content = (0..60).fold(json!("x"), inside);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]}).to_string();
    let request = Request::decode(Api::Anthropic, body).unwrap();
    let line = serde_json::to_string(&longhaul::Entry::Message(request.messages()[0].clone())).unwrap();
    assert!(serde_json::from_str::<longhaul::Entry>(&line).is_ok());
}

/// Some servers have types of their own (`builtin_function`) and the same content.
#[test]
fn the_content_of_a_call_stands_where_it_stood() {
    let call = json!({"id": "a", "type": "builtin_function", "function": {"name": "$web_search", "arguments": "{}"}});
    let body =
        json!({"model": "m", "messages": [{"role": "assistant", "content": "Well.", "tool_calls": [call]}]});
    let request = Request::decode(Api::Chat, body.to_string()).unwrap();
    let mut blocks = request.messages()[0].blocks().to_vec();
    blocks[0] = Block::text("edited");
    let sent = edit(&request, 0, blocks).encode(Api::Chat).body;
    let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["messages"][0]["tool_calls"][0], call);
}

/// The first request of a host has no message of the API: it begins like the next one all the same.
#[test]
fn the_first_request_of_a_host_has_the_settings_of_its_api() {
    let body = r#"{"model":"m","max_tokens":900,"thinking":{"type":"enabled","budget_tokens":500},"service_tier":"auto",
        "messages":[],"tools":[{"name":"Read","input_schema":{"type":"object"}}]}"#;
    let frame = Request::decode(Api::Anthropic, body).unwrap().frame().clone();
    let first = vec![Arc::new(Message::user("Look."))];
    let reply = r#"{"messages":[{"role":"assistant","content":[{"type":"text","text":"I do."}]}]}"#;
    let reply = Request::decode(Api::Anthropic, reply).unwrap().messages().to_vec();
    let second = [first.clone(), reply, vec![Arc::new(Message::user("Well?"))]].concat();
    let written = |messages| {
        let body = Request::new(frame.clone(), messages).encode(Api::Anthropic).body;
        let mut body: Value = serde_json::from_str(&body).unwrap();
        body["messages"].take();
        body
    };
    assert_eq!(written(first.clone()), written(second));
    assert_eq!(written(first.clone())["thinking"]["budget_tokens"], 500);
    // Another API has no such settings.
    let other = Request::new(frame.clone(), first).encode(Api::Chat);
    assert!(!other.body.contains("budget_tokens") && other.body.contains(r#""function""#));
}
