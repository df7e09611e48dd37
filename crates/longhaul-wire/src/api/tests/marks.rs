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

const MARKED: &str = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"one"}]},{"role":"assistant","content":[{"type":"text","text":"two"}]},{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"three"},{"type":"text","text":"four"}]},{"role":"assistant","content":"five"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"six","cache_control":{"type":"ephemeral"}}]}]}],"system":[{"type":"text","text":"x-anthropic-billing-header: v=1;"},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"Read","input_schema":{},"cache_control":{"type":"ephemeral"}}]}"#;

fn places(request: &Request) -> Vec<MarkPlace> {
    request.marks().iter().map(|mark| mark.place).collect()
}

#[test]
fn marks_are_listed_and_no_part_of_anything() {
    let request = Request::decode(Api::Anthropic, MARKED).unwrap();
    let block = |message, block| MarkPlace::Block { message, block };
    assert_eq!(places(&request), [MarkPlace::System(1), MarkPlace::Tool(0), block(2, 0), block(4, 0)]);
    assert!(request.marks().iter().all(|mark| !mark.hour));
    let unmarked = MARKED
        .replace(r#""cache_control":{"type":"ephemeral"},"#, "")
        .replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    assert!(!unmarked.contains("cache_control"));
    let other = Request::decode(Api::Anthropic, unmarked.as_str()).unwrap();
    // To the raw text.
    assert_eq!((request.messages(), request.frame()), (other.messages(), other.frame()));
    assert_eq!(request.identities(), other.identities());
    // The header for billing is no prompt.
    assert_eq!(request.frame().system.len(), 1);
    assert_eq!(other.encode(Api::Anthropic).body, unmarked);
}

#[test]
fn marks_of_the_client_stay_where_their_block_stays() {
    let request = Request::decode(Api::Anthropic, MARKED).unwrap();
    let sent = |keep: &[usize], edit: Option<usize>, ends: Vec<End>| {
        let message = |at: &usize| match edit == Some(*at) {
            true => Arc::new((*request.messages()[*at]).clone().without_raw()),
            false => request.messages()[*at].clone(),
        };
        let request = request.clone().with_messages(keep.iter().map(message).collect()).with_ends(ends);
        let body = request.encode(Api::Anthropic).body;
        assert!(body.matches("cache_control").count() <= 4, "{body}");
        Request::decode(Api::Anthropic, &body).unwrap()
    };
    let block = |message, block| MarkPlace::Block { message, block };
    let around = [MarkPlace::System(1), MarkPlace::Tool(0)];
    // The message that has the mark is written anew: the mark is set anew.
    let edited = sent(&[0, 1, 2, 3, 4], Some(2), vec![]);
    assert_eq!(places(&edited), [&around[..], &[block(2, 0), block(4, 0)]].concat());
    // It is gone, and there is room for one of ours: the last.
    let shorter = sent(&[0, 3, 4], None, vec![End::After(1), End::After(2)]);
    assert_eq!(places(&shorter), [&around[..], &[block(1, 0), block(2, 0)]].concat());
    // An end that the client has marked needs no mark of ours.
    let last = sent(&[0, 2, 3, 4], None, vec![End::After(4)]);
    assert_eq!(places(&last), [&around[..], &[block(1, 0), block(3, 0)]].concat());
    // A message that is put in before the marked one does not take its mark.
    let mut messages = request.messages().to_vec();
    messages.insert(2, Arc::new(Message::user("put in")));
    let more = request.clone().with_messages(messages).with_ends(vec![End::After(1)]);
    let more = Request::decode(Api::Anthropic, &more.encode(Api::Anthropic).body).unwrap();
    assert_eq!(places(&more), [&around[..], &[block(3, 0), block(5, 0)]].concat());
    // No room at all.
    let full = sent(&[0, 2, 3, 4], None, vec![End::After(1), End::After(3)]);
    assert_eq!(places(&full), places(&last));
}

#[test]
fn ours_live_as_long_as_the_clients() {
    let hours = |body: &str, ends: Vec<End>| {
        let request = Request::decode(Api::Anthropic, body).unwrap();
        let sent = request.with_ends(ends).encode(Api::Anthropic).body;
        let hours: Vec<bool> =
            Request::decode(Api::Anthropic, &sent).unwrap().marks().iter().map(|m| m.hour).collect();
        hours
    };
    let body = MARKED.replace(
        r#"{"type":"text","text":"six","cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"text","text":"six"}"#,
    );
    // Five minutes as the client's are.
    assert_eq!(hours(&body, vec![End::After(5)]), [false; 4]);
    let hour = body.replace(r#""ephemeral""#, r#""ephemeral","ttl":"1h""#);
    assert_eq!(hours(&hour, vec![End::After(5)]), [true; 4]);
    // An hour in front, and five minutes behind: none for an hour may follow one for less.
    let mixed = hour.replacen(
        r#"{"cache_control":{"type":"ephemeral","ttl":"1h"},"type":"text","text":"three"}"#,
        r#"{"cache_control":{"type":"ephemeral"},"type":"text","text":"three"}"#,
        1,
    );
    assert_eq!(hours(&mixed, vec![End::After(5)]), [true, true, false, false]);
    // A client without marks has ours for five minutes.
    let bare = r#"{"model":"m","messages":[{"role":"user","content":"one"}]}"#;
    assert_eq!(hours(bare, vec![End::After(1)]), [false]);
}

#[test]
fn a_frame_that_is_written_anew_keeps_its_marks() {
    let request = Request::decode(Api::Anthropic, MARKED).unwrap();
    let frame = Frame { model: Some("other".into()), ..request.frame().clone() };
    let sent = request.clone().with_frame(frame).encode(Api::Anthropic).body;
    let value: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(value["system"][0]["text"], "x-anthropic-billing-header: v=1;");
    assert_eq!(value["system"][1]["cache_control"]["type"], "ephemeral");
    assert_eq!(value["tools"][0]["cache_control"]["type"], "ephemeral");
    // Another API has no use for them.
    let chat = request.encode(Api::Chat).body;
    assert!(!chat.contains("cache_control") && !chat.contains("billing"), "{chat}");
}
