//! What one API alone has, and what no API takes.

use super::*;

#[test]
fn what_providers_take_is_taken() {
    let same = |api: Api, body: &str| assert_eq!(Request::decode(api, body).unwrap().encode(api).body, body);
    same(Api::Responses, r#"{"model":"m","previous_response_id":"r"}"#);
    same(
        Api::Responses,
        r#"{"model":"m","input":[{"id":"msg_1"},{"type":"tool_search_call","call_id":null,"execution":"server"}]}"#,
    );
    same(
        Api::Chat,
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"","function":{"name":"f","arguments":""}}]}]}"#,
    );
    let referred =
        Request::decode(Api::Responses, r#"{"model":"m","input":[{"type":"item_reference","id":"x"}]}"#)
            .unwrap();
    assert!(referred.is_stateful());
    assert!(
        !Request::decode(Api::Responses, FIXTURES[0].1.replacen("messages", "input", 1))
            .is_ok_and(|r| r.is_stateful())
    );
    // What the host says is no answer of the model.
    let tools = body_of(
        Api::Responses,
        json!([{"type": "additional_tools", "role": "developer", "tools": []}, {"type": "compaction", "encrypted_content": "x"}]),
        json!({}),
    );
    let request = Request::decode(Api::Responses, &tools).unwrap();
    assert!(request.messages().iter().all(|message| message.role() == Role::System));
}

#[test]
fn an_answer_may_be_more_than_its_content() {
    for answer in [
        json!({"role": "assistant", "content": null, "refusal": "no"}),
        json!({"role": "assistant", "content": null, "audio": {"id": "a"}}),
        json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/a.png"}]}),
        json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, {"type": "file", "file": {}}]}),
    ] {
        assert_eq!(rewritten(Api::Chat, json!([answer])), json!([answer]));
    }
}

#[test]
fn edited_calls_of_responses_are_valid() {
    let edit = |item: Value, arguments: &str| -> Value {
        let request =
            Request::decode(Api::Responses, body_of(Api::Responses, json!([item]), json!({}))).unwrap();
        let messages = request.messages().iter().map(|message| {
            let blocks = message.blocks().iter().cloned().map(|block| match block {
                Block::ToolCall(call) => {
                    Block::ToolCall(ToolCall { arguments: Json::new(arguments).unwrap(), ..call })
                }
                other => other,
            });
            Arc::new((**message).clone().with_blocks(blocks.collect()))
        });
        let request = request.clone().with_messages(messages.collect());
        serde_json::from_str::<Value>(&request.encode(Api::Responses).body).unwrap()["input"][0].take()
    };
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "long"});
    assert_eq!(edit(custom, r#"{"left_out":"x"}"#)["input"], r#"{"left_out":"x"}"#);
    let shell =
        json!({"type": "local_shell_call", "id": "ls_1", "call_id": "c", "action": {"command": ["ls"]}});
    assert_eq!(
        edit(shell, r#"{"left_out":"x"}"#),
        json!({"type": "local_shell_call", "call_id": "c", "action": {"left_out": "x"}})
    );
    // Reasoning that nothing follows is not sent.
    let alone = json!([{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}]);
    assert_eq!(rewritten(Api::Responses, alone).as_array().unwrap().len(), 1);
}

#[test]
fn a_bare_text_is_a_request_too() {
    let body = r#"{"input": "Hello \u0041", "model": "m"}"#;
    let request = Request::decode(Api::Responses, body).unwrap();
    assert_eq!(request.encode(Api::Responses).body, body);
    let mut messages = request.messages().to_vec();
    messages.push(Arc::new(Message::assistant("Hi")));
    let sent = request.with_messages(messages).encode(Api::Responses).body;
    let value: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(value["input"][0]["content"][0]["text"], "Hello A");
    assert_eq!(value["input"][1]["content"][0]["text"], "Hi");
    let alone = Request::decode(Api::Responses, body).unwrap();
    let other = alone.clone().with_frame(Frame { model: Some("n".into()), ..alone.frame().clone() });
    let value: Value = serde_json::from_str(&other.encode(Api::Responses).body).unwrap();
    assert_eq!(value["input"][0]["role"], "user");
}

#[test]
fn a_changed_frame_keeps_the_settings_of_its_api() {
    let body = body_of(
        Api::Anthropic,
        json!([{"role": "user", "content": "a"}]),
        json!({"top_k": 5, "max_tokens": null, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    );
    let request = Request::decode(Api::Anthropic, &body).unwrap();
    let frame = Frame { model: Some("other".into()), ..request.frame().clone() };
    let value: Value = serde_json::from_str(&request.with_frame(frame).encode(Api::Anthropic).body).unwrap();
    assert_eq!(
        (&value["model"], &value["top_k"], &value["tools"][0]["name"]),
        (&json!("other"), &json!(5), &json!("web_search"))
    );
}

#[test]
fn what_is_no_request_gets_one_sentence() {
    let error = |api, body| Request::decode(api, body).unwrap_err().to_string();
    assert_eq!(error(Api::Chat, "{}"), "the request has no `messages`");
    assert_eq!(error(Api::Responses, r#"{"input":7}"#), "`input` is not a list: 7");
    assert_eq!(error(Api::Chat, "{"), "the request is not valid JSON: it ends too early");
    assert_eq!(
        error(Api::Chat, r#"{"messages":[{"role":"user","content":"a"},{"role":"robot"}]}"#),
        "message 2: role \"robot\" is not one of system, developer, user, assistant, tool"
    );
    assert_eq!(
        error(
            Api::Anthropic,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":1}]}]}"#
        ),
        "message 1: in a tool_use block, `id` is not a string: 1"
    );
    assert_eq!(
        error(Api::Responses, r#"{"input":[{"type":"function_call","call_id":"c"}]}"#),
        "item 1: in a function_call item, `arguments` is missing"
    );
}
