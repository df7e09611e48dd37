//! One tool more, behind those of the client.

use super::*;

const SCHEMA: &str = r#"{"type":"object","properties":{"handle":{"type":"string"}},"required":["handle"]}"#;

fn recall(api: Api) -> longhaul::Tool {
    api.tool("longhaul_recall", "Gives \"it\" back.", &Json::new(SCHEMA).unwrap())
}

/// A body in the form of a client, with its tools before its messages or behind them.
fn body(api: Api, messages: &[&str], tools: &str, tools_first: bool) -> String {
    let list = if api == Api::Responses { "input" } else { "messages" };
    let (tools, messages) =
        (format!("\"tools\" : {tools}"), format!("\"{list}\": [{}]", messages.join(", ")));
    let (one, other) = if tools_first { (tools, messages) } else { (messages, tools) };
    format!("{{\"model\":\"m\", {one} ,\n {other}, \"stream\":true}}")
}

#[test]
fn every_api_is_told_of_a_tool_in_its_own_form() {
    let definitions = [
        (
            Api::Anthropic,
            json!({"name": "longhaul_recall", "description": "Gives \"it\" back.", "input_schema": {}}),
        ),
        (
            Api::Chat,
            json!({"type": "function", "function":
                {"name": "longhaul_recall", "description": "Gives \"it\" back.", "parameters": {}}}),
        ),
        (
            Api::Responses,
            json!({"type": "function", "strict": false, "name": "longhaul_recall",
                "description": "Gives \"it\" back.", "parameters": {}}),
        ),
    ];
    for (api, definition) in definitions {
        let tool = api.tool("longhaul_recall", "Gives \"it\" back.", &Json::empty_object());
        assert_eq!((tool.definition.value(), &*tool.name), (definition, "longhaul_recall"), "{api:?}");
    }
}

#[test]
fn one_tool_more_changes_no_other_byte() {
    const TOOLS: &str = "[ {\"name\":\"ä]\", \"input_schema\":{}},\n {\"name\":\"b\"}\n ]";
    let said: Vec<String> = (0..200)
        .map(|n| format!("{{ \"role\":\"user\",\"content\":\"word {n} with \\\"tools\\\": []\" }}"))
        .collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    for (api, tools_first) in Api::ALL.into_iter().flat_map(|api| [(api, true), (api, false)]) {
        let tool = recall(api);
        let with = TOOLS.replacen("\"b\"}", &format!("\"b\"}},{}", tool.definition.as_str()), 1);
        let mut relay = Relay::new(api);
        for count in [1, 3, 150, 151, 200] {
            let (own, wanted) = (
                body(api, &said[..count], TOOLS, tools_first),
                body(api, &said[..count], &with, tools_first),
            );
            let request = relay.read(own.as_str()).unwrap().offering(tool.clone());
            assert_eq!(request.frame().tools.last(), Some(&tool));
            let sent = relay.write(&request).body;
            assert!(sent == *wanted && !sent.is_clients(), "{api:?} {tools_first} {count}");
            // The same place, when messages are others.
            let mut messages = request.messages().to_vec();
            messages[0] = Arc::new(Message::user("Something else."));
            let edited =
                |request: Request| request.with_messages(messages.clone()).encode(api).body.to_string();
            let without = relay.read(own.as_str()).unwrap();
            let (with_tool, without) = (edited(request), edited(without));
            assert_eq!(with_tool.replacen(&format!(",{}", tool.definition.as_str()), "", 1), without);
            assert!(with_tool.contains(&with) && serde_json::from_str::<Value>(&with_tool).is_ok());
        }
    }
}

#[test]
fn who_has_no_tools_is_offered_none() {
    for (api, tools) in
        Api::ALL.into_iter().flat_map(|api| ["[]", " [ ] ", "{}", "null", "7"].map(|t| (api, t)))
    {
        let own = body(api, &[r#"{"role":"user","content":"Hello."}"#], tools, true);
        let request = Request::decode(api, own.as_str()).unwrap();
        let (frame, offering) = (request.frame().clone(), request.offering(recall(api)));
        assert_eq!(*offering.frame(), frame);
        let sent = offering.encode(api).body;
        assert!(sent.is_clients() && sent == own, "{api:?} {tools}");
    }
}

#[test]
fn of_two_lists_of_tools_the_last_one_counts() {
    let own = "\u{feff}{\"tools\":[{\"name\":\"a\"}],\"messages\":[],\"t\\u006fols\":[{\"name\":\"b\"}]}";
    let request = Request::decode(Api::Anthropic, own).unwrap().offering(recall(Api::Anthropic));
    let sent = request.encode(Api::Anthropic).body;
    assert!(sent.starts_with(&own[..own.len() - 2]) && sent.ends_with("}}]}"), "{sent}");
}
