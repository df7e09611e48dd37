//! From one API to another.

use super::*;

/// Every fixture in every other API, as golden files. UPDATE_GOLDEN=1 writes them anew.
#[test]
fn a_conversation_can_go_to_another_api() {
    for (from, body) in FIXTURES {
        let request = Request::decode(from, body).unwrap();
        for to in Api::ALL.into_iter().filter(|to| *to != from) {
            let sent = request.encode(to);
            let value: Value = serde_json::from_str(&sent.body).unwrap();
            let seen = format!("left out: {:#?}\n{:#}\n", sent.left_out, value);
            let path =
                format!("{}/tests/api/{}-to-{}.txt", env!("CARGO_MANIFEST_DIR"), from.name(), to.name());
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&path, &seen).unwrap();
            }
            assert_eq!(seen, std::fs::read_to_string(&path).unwrap_or_default(), "{path}");
            // It is a request of that API, with every call and every result.
            let there = Request::decode(to, &sent.body).unwrap();
            let count = |request: &Request| {
                let calls =
                    request.messages().iter().flat_map(|m| m.calls()).filter(|call| !call.server).count();
                (
                    calls,
                    request
                        .messages()
                        .iter()
                        .filter(|m| m.role() == Role::Tool)
                        .flat_map(|m| m.results())
                        .count(),
                )
            };
            assert_eq!(count(&there), count(&request), "{from:?} to {to:?}");
        }
    }
}

#[test]
fn unknown_fields_go_to_their_own_api_alone() {
    let body = body_of(
        Api::Chat,
        json!([{"role": "user", "content": "hi", "name": "tester"}, {"role": "assistant", "content": "a", "annotations": []}]),
        json!({}),
    );
    let request = Request::decode(Api::Chat, &body).unwrap();
    let value: Value = serde_json::from_str(&request.encode(Api::Anthropic).body).unwrap();
    for message in value["messages"].as_array().unwrap() {
        let names: Vec<&String> = message.as_object().unwrap().keys().collect();
        assert_eq!(names, ["role", "content"]);
    }
}

#[test]
fn a_hundred_parallel_calls() {
    let ids: Vec<String> = (0..100).map(|n| format!("call.{n}")).collect();
    let calls = ids
        .iter()
        .map(|id| Block::call(id.as_str(), "Read", Json::new(format!(r#"{{"id":"{id}"}}"#)).unwrap()));
    let mut messages =
        vec![Arc::new(Message::user("go")), Arc::new(Message::new(Role::Assistant, calls.collect()))];
    messages.extend(ids.iter().map(|id| Arc::new(Message::result(id.as_str(), "ok"))));
    let request = Request::new(Frame::default(), messages);
    for api in Api::ALL {
        let sent = request.encode(api);
        let again = Request::decode(api, &sent.body).unwrap();
        let called: Vec<&str> =
            again.messages().iter().flat_map(|m| m.calls()).map(|call| &*call.id).collect();
        let answered: Vec<&str> = again.messages().iter().flat_map(|m| m.results()).map(|r| &*r.id).collect();
        assert_eq!((called.len(), &called), (100, &answered), "{api:?}");
        assert_eq!(again.messages()[1].calls().count(), 100, "{api:?}");
    }
    // Anthropic wants all results in one message, and no dots in ids.
    let value: Value = serde_json::from_str(&request.encode(Api::Anthropic).body).unwrap();
    assert_eq!(value["messages"].as_array().unwrap().len(), 3);
    assert_eq!(value["max_tokens"], 8192);
}

#[test]
fn summaries_and_notes_of_the_host_are_not_the_users_words() {
    let messages = vec![
        Message::system("Be brief."),
        Message::user("go"),
        Message::new(Role::Summary, vec![Block::text("What was done.")]),
        Message::system("A file changed."),
        Message::assistant("ok"),
    ];
    let request = Request::new(Frame::default(), messages.into_iter().map(Arc::new).collect());
    let body = |api| -> Value { serde_json::from_str(&request.encode(api).body).unwrap() };
    let chat = body(Api::Chat);
    let roles: Vec<&Value> = chat["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["system", "user", "system", "system", "assistant"]);
    let responses = body(Api::Responses);
    assert_eq!(responses["instructions"], "Be brief.");
    assert_eq!(
        (&responses["input"][1]["role"], &responses["input"][2]["role"]),
        (&json!("developer"), &json!("developer"))
    );
    let anthropic = body(Api::Anthropic);
    assert_eq!(anthropic["system"][0]["text"], "Be brief.");
    let summary = anthropic["messages"][1]["content"][0]["text"].as_str().unwrap();
    assert!(
        summary.starts_with("<summary-of-earlier-messages note=\"not the user's words\">\nWhat was done."),
        "{summary}"
    );
    assert!(
        anthropic["messages"][2]["content"][0]["text"].as_str().unwrap().starts_with("<system-message note=")
    );
}

#[test]
fn pictures_of_results_follow_them_where_results_are_text() {
    let picture = Block::Image(longhaul::conversation::Image {
        source: Json::new(r#"{"type":"base64","media_type":"image/png","data":"aGk="}"#).unwrap(),
        size: None,
        extra: Extra::NONE,
    });
    let result = Block::ToolResult(longhaul::ToolResult {
        id: "c".into(),
        name: None,
        text: "a picture".into(),
        content: Some([Block::text("a picture"), picture].into()),
        is_error: false,
        extra: Extra::NONE,
    });
    let call = Block::call("c", "Shot", Json::empty_object());
    let messages = vec![Message::new(Role::Assistant, vec![call]), Message::new(Role::Tool, vec![result])];
    let request = Request::new(Frame::default(), messages.into_iter().map(Arc::new).collect());
    let value: Value = serde_json::from_str(&request.encode(Api::Chat).body).unwrap();
    assert_eq!(value["messages"][1]["content"], "a picture");
    assert_eq!(value["messages"][2]["content"][1]["image_url"]["url"], "data:image/png;base64,aGk=");
    let value: Value = serde_json::from_str(&request.encode(Api::Anthropic).body).unwrap();
    // A conversation begins with the user.
    assert_eq!(
        (&value["messages"][0]["role"], &value["messages"][1]["role"]),
        (&json!("user"), &json!("assistant"))
    );
    assert_eq!(value["messages"][2]["content"][0]["content"][1]["source"]["data"], "aGk=");
}

#[test]
fn tools_of_a_host_are_written_for_the_api_in_every_request() {
    let frame = Frame::from_json(
        &Json::new(r#"{"model": "m", "max_tokens": 100, "tools": [{"name": "Read", "input_schema": {"type": "object"}}]}"#).unwrap(),
    )
    .unwrap();
    for (api, answer) in [
        (Api::Chat, r#"{"messages": [{"role": "assistant", "content": "Hello."}]}"#),
        (
            Api::Responses,
            r#"{"input": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}]}"#,
        ),
        (Api::Anthropic, r#"{"max_tokens": 1, "messages": [{"role": "assistant", "content": "Hello."}]}"#),
    ] {
        let first = vec![Arc::new(Message::user("Hi."))];
        // What has come back is of the API, and the frame is not.
        let answered = Request::decode(api, answer).unwrap().messages().to_vec();
        let next = first.iter().cloned().chain(answered).collect();
        let head = |messages: Vec<Arc<Message>>| {
            let body: Value =
                serde_json::from_str(&Request::new(frame.clone(), messages).encode(api).body).unwrap();
            let limit =
                ["max_tokens", "max_completion_tokens", "max_output_tokens"].map(|name| body[name].clone());
            (body["tools"].clone(), limit)
        };
        let (tools, limit) = head(first);
        assert_eq!((tools.clone(), limit), head(next), "{api:?}");
        let shape = match api {
            Api::Chat => tools[0]["function"]["parameters"].is_object() && tools[0]["type"] == "function",
            Api::Responses => tools[0]["parameters"].is_object() && tools[0]["type"] == "function",
            Api::Anthropic => tools[0]["input_schema"].is_object(),
        };
        assert!(shape, "{api:?} {tools}");
    }
}
