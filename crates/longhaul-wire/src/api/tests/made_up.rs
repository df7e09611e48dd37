//! Requests that nobody sent.

use proptest::prelude::*;

use super::*;

/// Any JSON, small.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,80}".prop_map(Value::from),
        "[a-z \\n\"\\\\\u{1}]{60,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// An object of known fields, some of them left out or of another type, and unknown ones.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            (Just(name), prop_oneof![30 => value, 1 => any_json()], prop::bool::weighted(0.97))
        })
        .collect();
    (fields, prop::collection::vec(("[a-z_]{3,8}", any_json()), 0..2))
        .prop_map(|(fields, more)| {
            let known = fields
                .into_iter()
                .filter(|(_, _, there)| *there)
                .map(|(name, value, _)| (name.to_owned(), value));
            Value::Object(more.into_iter().chain(known).collect())
        })
        .boxed()
}

fn constant(text: &'static str) -> BoxedStrategy<Value> {
    Just(json!(text)).boxed()
}

fn words() -> BoxedStrategy<Value> {
    prop_oneof!["\\PC{0,100}", "[a-z \\n]{0,100}", Just("<system-reminder>x".to_owned())]
        .prop_map(Value::from)
        .boxed()
}

fn id() -> BoxedStrategy<Value> {
    "[a-z]{1,2}".prop_map(Value::from).boxed()
}

fn arguments_as_text() -> BoxedStrategy<Value> {
    prop_oneof![any_json().prop_map(|value| json!(value.to_string())), words()].boxed()
}

fn many(element: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![3 => prop::collection::vec(element, 0..4).prop_map(Value::from), 2 => words()].boxed()
}

fn one_of(options: Vec<BoxedStrategy<Value>>) -> BoxedStrategy<Value> {
    proptest::strategy::Union::new(options).boxed()
}

fn message_of(api: Api) -> BoxedStrategy<Value> {
    let kind = |kind: &'static str, more: Vec<(&'static str, BoxedStrategy<Value>)>| {
        object([vec![("type", constant(kind))], more].concat())
    };
    match api {
        Api::Anthropic => {
            let flat = one_of(vec![
                kind("text", vec![("text", words())]),
                kind("image", vec![("source", any_json().boxed())]),
                kind("document", vec![("source", any_json().boxed())]),
            ]);
            let block = one_of(vec![
                flat.clone(),
                kind("thinking", vec![("thinking", words()), ("signature", words())]),
                kind("redacted_thinking", vec![("data", words())]),
                kind("tool_use", vec![("id", id()), ("name", id()), ("input", any_json().boxed())]),
                kind("server_tool_use", vec![("id", id()), ("name", id()), ("input", any_json().boxed())]),
                kind("tool_result", vec![("tool_use_id", id()), ("content", many(flat.clone()))]),
                kind("tool_result", vec![("tool_use_id", id()), ("content", many(flat))]),
                kind("web_search_tool_result", vec![("tool_use_id", id()), ("content", any_json().boxed())]),
            ]);
            let role = one_of(vec![constant("user"), constant("assistant"), constant("system")]);
            object(vec![("role", role), ("content", many(block))])
        }
        Api::Chat => {
            let part = one_of(vec![
                kind("text", vec![("text", words())]),
                kind("image_url", vec![("image_url", any_json().boxed())]),
                kind("file", vec![("file", any_json().boxed())]),
            ]);
            let function = object(vec![("name", id()), ("arguments", arguments_as_text())]);
            let custom = object(vec![("name", id()), ("input", words())]);
            let call = one_of(vec![
                object(vec![("id", id()), ("type", constant("function")), ("function", function)]),
                object(vec![("id", id()), ("type", constant("custom")), ("custom", custom)]),
            ]);
            let calls = prop::collection::vec(call, 0..3).prop_map(Value::from).boxed();
            let spoken = one_of(vec![constant("user"), constant("system"), constant("developer")]);
            one_of(vec![
                object(vec![("role", spoken), ("content", many(part.clone()))]),
                object(vec![
                    ("role", constant("assistant")),
                    ("reasoning_content", words()),
                    ("content", many(part.clone())),
                    ("tool_calls", calls),
                ]),
                object(vec![("role", constant("tool")), ("tool_call_id", id()), ("content", many(part))]),
            ])
        }
        Api::Responses => {
            let part = one_of(vec![
                kind("input_text", vec![("text", words())]),
                kind("output_text", vec![("text", words()), ("annotations", any_json().boxed())]),
                kind("input_image", vec![("image_url", words())]),
                kind("refusal", vec![("refusal", words())]),
            ]);
            let role = one_of(vec![constant("user"), constant("assistant"), constant("developer")]);
            one_of(vec![
                kind("message", vec![("role", role), ("content", many(part.clone()))]),
                kind("reasoning", vec![("summary", any_json().boxed()), ("encrypted_content", words())]),
                kind(
                    "function_call",
                    vec![("call_id", id()), ("name", id()), ("arguments", arguments_as_text())],
                ),
                kind("custom_tool_call", vec![("call_id", id()), ("name", id()), ("input", words())]),
                kind("local_shell_call", vec![("call_id", id()), ("action", any_json().boxed())]),
                kind("web_search_call", vec![("action", any_json().boxed())]),
                kind("function_call_output", vec![("call_id", id()), ("output", many(part.clone()))]),
                kind("computer_call_output", vec![("call_id", id()), ("output", any_json().boxed())]),
            ])
        }
    }
}

fn request_of(api: Api) -> BoxedStrategy<String> {
    let frame =
        vec![("model", id()), ("system", many(any_json().boxed())), ("tools", many(any_json().boxed()))];
    let messages = prop::collection::vec(message_of(api), 0..6).prop_map(Value::from);
    (object(frame), messages, any::<bool>())
        .prop_map(move |(mut body, messages, pretty)| {
            body[api.format().row().list] = messages;
            if pretty { serde_json::to_string_pretty(&body) } else { serde_json::to_string(&body) }.unwrap()
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Any request that can be read is written as it was; written from its blocks it is read as
    /// the same messages; and in any other API it is a request.
    #[test]
    fn requests_survive_the_way_there_and_back(
        (api, body) in prop::sample::select(Api::ALL.to_vec()).prop_flat_map(|api| (Just(api), request_of(api)))
    ) {
        let Ok(request) = Request::decode(api, &body) else { return Ok(()) };
        prop_assert_eq!(request.encode(api).body, body);
        for to in Api::ALL {
            let marked = without_raw(&request).with_ends(vec![End::After(0), End::After(1), End::After(2)]).encode(to);
            prop_assert!(Request::decode(to, &marked.body).is_ok(), "{}", marked.body);
            let sent = without_raw(&request).encode(to);
            let again = Request::decode(to, &sent.body);
            prop_assert!(again.is_ok(), "{:?} {}: {}", to, again.unwrap_err(), sent.body);
            let again = again.unwrap();
            let twice = Request::decode(to, &without_raw(&again).encode(to).body).unwrap();
            // Results may be grouped anew, and a text without words may go.
            let worth = |block: &Block| !matches!(block, Block::Text(text) if text.text.trim().is_empty());
            let blocks = |request: &Request| -> Vec<(Role, Block)> {
                let all = request.messages().iter().flat_map(|m| m.blocks().iter().map(|b| (m.role(), b.clone())));
                all.filter(|(_, block)| worth(block)).collect()
            };
            prop_assert_eq!(blocks(&twice), blocks(&again), "{:?}", to);
        }
    }
}
