//! Marks of the prompt cache.

use super::*;

#[test]
fn marks_of_the_cache_are_four_at_most() {
    let marks = |body: &str| body.matches("cache_control").count();
    // The client has set three.
    let request = Request::decode(Api::Anthropic, FIXTURES[2].1).unwrap();
    let sent = request
        .clone()
        .with_ends(vec![End::After(1), End::After(2), End::After(6)])
        .encode(Api::Anthropic)
        .body;
    assert_eq!(marks(&sent), 4);
    let value: Value = serde_json::from_str(&sent).unwrap();
    assert!(value["messages"][4]["content"][4]["cache_control"].is_object(), "the last of them");
    // One that is marked already is not marked twice.
    assert_eq!(request.clone().with_ends(vec![End::After(7)]).encode(Api::Anthropic).body, FIXTURES[2].1);
    // Others need no marks.
    let chat = Request::decode(Api::Chat, FIXTURES[0].1).unwrap();
    assert_eq!(chat.clone().with_ends(vec![End::After(1)]).encode(Api::Chat).body, FIXTURES[0].1);
}

#[test]
fn marks_stand_where_a_view_is_stable() {
    let body = body_of(
        Api::Anthropic,
        json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
        {"type": "text", "text": "three"}]}]),
        json!({}),
    );
    let request = Request::decode(Api::Anthropic, &body).unwrap();
    let sent = request
        .clone()
        .with_ends(vec![End::After(1), End::After(3), End::After(4)])
        .encode(Api::Anthropic)
        .body;
    let value: Value = serde_json::from_str(&sent).unwrap();
    let marked = |path: &str| value.pointer(path).unwrap()["cache_control"]["type"] == "ephemeral";
    assert!(
        marked("/messages/0/content/0") && marked("/messages/2/content/0") && marked("/messages/2/content/1"),
        "{sent}"
    );
    // A mark changes nothing but itself.
    let bare = sent.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    assert_eq!(bare.replace(r#"[{"type":"text","text":"one"}]"#, "\"one\""), body);
    // One for an hour is not behind one for less.
    let hour = body
        .replace(r#""text":"three""#, r#""text":"three","cache_control":{"type":"ephemeral","ttl":"1h"}"#);
    let sent = Request::decode(Api::Anthropic, &hour)
        .unwrap()
        .with_ends(vec![End::After(1)])
        .encode(Api::Anthropic)
        .body;
    assert_eq!(sent.matches(r#""ttl":"1h""#).count(), 2, "{sent}");
}

/// Behind a fold all is new but what stands before it: the cache must know that by a mark.
#[test]
fn a_mark_stands_behind_the_system_prompt_or_the_tools() {
    let tool = longhaul::Tool::from_definition(Json::new(r#"{"name":"Read","input_schema":{}}"#).unwrap());
    let sent = |system: Vec<Block>| -> Value {
        let model = longhaul::Models::builtin().find("claude-opus-4-5").clone();
        let mut session = longhaul::Session::new(longhaul::Profile::longhaul(), model)
            .with_window(longhaul::Tokens(4_000))
            .with_meter(longhaul::Meter::neutral());
        session.set_frame(Frame { system, tools: vec![tool.clone()], ..Frame::default() });
        session.push(Message::user("go"));
        for n in 0..30 {
            let id = format!("call_{n}");
            session.push(Message::new(
                Role::Assistant,
                vec![Block::call(id.as_str(), "Read", Json::empty_object())],
            ));
            session.push(Message::result(id.as_str(), format!("line {n}\n").repeat(60)));
            session.prepare(None).unwrap();
        }
        assert!(session.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()));
        serde_json::from_str(&Request::of(&session.outgoing()).encode(Api::Anthropic).body).unwrap()
    };
    let with_system = sent(vec![Block::text("You are careful."), Block::text("And brief.")]);
    assert_eq!(with_system["system"][1]["cache_control"]["type"], "ephemeral", "{with_system:#}");
    assert!(with_system["system"][0].get("cache_control").is_none());
    assert!(with_system["tools"][0].get("cache_control").is_none());
    let tools_alone = sent(vec![]);
    assert_eq!(tools_alone["tools"][0]["cache_control"]["type"], "ephemeral", "{tools_alone:#}");
    for value in [with_system, tools_alone] {
        let marks = value.to_string().matches("cache_control").count();
        assert!((3..=4).contains(&marks), "{marks}");
    }
}
