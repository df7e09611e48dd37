//! The refusals and the figures of each twin, but for bound thinking.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;

use std::time::Duration;

use client::{APIS, ask, says};
use longhaul_fake::{Answer, Api, Fake, Settings, Trouble, Twin};
use serde_json::{Value, json};

async fn started(twin: Twin) -> Fake {
    Settings::new().twin(twin).start().await
}

/// Requests that a twin takes (`None`) or refuses with these words.
async fn refusals(twin: Twin, api: Api, cases: &[(Value, Option<&str>)]) {
    let fake = started(twin).await;
    for (body, refused) in cases {
        let response = ask(&fake, api, body.clone()).await;
        match refused {
            None => assert_eq!(response.status, 200, "{}: {body} {}", twin.name, response.text()),
            Some(words) => {
                assert_eq!(
                    (response.status, response.error().as_str()),
                    (400, *words),
                    "{}: {body}",
                    twin.name
                );
            }
        }
    }
    let refused: Vec<&str> = cases.iter().filter_map(|(_, refused)| *refused).collect();
    assert_eq!(fake.violations(), refused);
}

#[tokio::test]
async fn every_twin_takes_a_plain_conversation_over_every_api() {
    for (twin, api) in Twin::ALL.into_iter().flat_map(|twin| APIS.map(|api| (twin, api))) {
        let fake = started(twin).await;
        for stream in [true, false] {
            let response = ask(&fake, api, says(api, "Hi", stream)).await;
            assert_eq!(response.status, 200, "{} {api:?}: {}", twin.name, response.text());
        }
        assert_eq!(fake.violations(), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn the_answer_counts_against_the_window_in_the_words_of_the_provider() {
    let long = "x".repeat(400);
    let with = |api: Api, name: &str, answer: u64| {
        let mut body = says(api, &long, false);
        body[name] = json!(answer);
        body
    };
    let cases = [
        (Twin::PLAIN, Api::Messages, "max_tokens", 900, None),
        (Twin::ANTHROPIC_NOW, Api::Messages, "max_tokens", 900, None),
        (
            Twin::ANTHROPIC_OLDER,
            Api::Messages,
            "max_tokens",
            900,
            Some(
                "input length and `max_tokens` exceed context limit: {prompt} + 900 > 1000, decrease input length or `max_tokens` and try again",
            ),
        ),
        (Twin::ANTHROPIC_OLDER, Api::Messages, "max_tokens", 800, None),
        (
            Twin::VLLM_QWEN,
            Api::Chat,
            "max_tokens",
            900,
            Some(
                "You passed {prompt} input tokens and requested 900 output tokens. However, the model's context length is only 1000 tokens, resulting in a maximum input length of 100 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value={prompt})",
            ),
        ),
        (Twin::GEMMA, Api::Chat, "max_completion_tokens", 800, None),
    ];
    for (twin, api, name, answer, refused) in cases {
        let fake = Settings::new().twin(twin).window(1_000).start().await;
        let response = ask(&fake, api, with(api, name, answer)).await;
        let prompt = fake.log()[0].counts.prompt;
        let words = refused.map(|words| words.replace("{prompt}", &prompt.to_string()));
        assert_eq!(response.status, if words.is_some() { 400 } else { 200 }, "{}", twin.name);
        assert_eq!(words.is_some().then(|| response.error()), words);
        // What does not fit is no mistake of the client's form.
        assert_eq!(fake.violations(), [] as [&str; 0]);
    }
    let fake = Settings::new().twin(Twin::ANTHROPIC_OLDER).window(50).start().await;
    let response = ask(&fake, Api::Messages, with(Api::Messages, "max_tokens", 900)).await;
    assert!(response.error().starts_with("prompt is too long: "), "{}", response.error());
    let trouble = Trouble::TooLong { prompt: 70, window: 50 };
    let fake = Settings::new().twin(Twin::VLLM_QWEN).trouble(.., trouble).start().await;
    let response = ask(&fake, Api::Chat, with(Api::Chat, "max_tokens", 20)).await.json();
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("You passed 70 input tokens and requested 20")
    );
    assert_eq!(
        (&response["error"]["type"], &response["error"]["code"]),
        (&json!("BadRequestError"), &json!(400))
    );
    assert_eq!(response["error"]["param"], "input_tokens");
}

fn message(role: &str) -> Value {
    json!({ "role": role, "content": role })
}

fn messages(roles: &str) -> Value {
    let called = json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "R", "arguments": "{}" } }] });
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "x" });
    let message = |role: char| match role {
        's' => message("system"),
        'd' => message("developer"),
        'u' => message("user"),
        'a' => message("assistant"),
        'c' => called.clone(),
        _ => result.clone(),
    };
    json!({ "max_tokens": 9, "messages": roles.chars().map(message).collect::<Vec<_>>() })
}

#[tokio::test]
async fn chat_templates_refuse_orders_of_roles() {
    let first = Some("System message must be at the beginning.");
    let alternate = Some("Conversation roles must alternate user/assistant/user/assistant/...");
    let qwen = [
        ("u", None),
        ("su", None),
        ("suau", None),
        ("suua", None),
        ("sucru", None),
        ("ssu", first),
        ("us", first),
        ("suasu", first),
        ("sud", first),
    ];
    let gemma = [
        ("u", None),
        ("suau", None),
        ("ucra", None),
        ("ucrcra", None),
        ("sucrau", None),
        ("us", first),
        ("uu", alternate),
        ("suaau", alternate),
        ("ucru", alternate),
        ("sa", alternate),
    ];
    for (twin, cases) in [(Twin::VLLM_QWEN, qwen.as_slice()), (Twin::GEMMA, &gemma)] {
        let cases: Vec<_> = cases.iter().map(|(roles, refused)| (messages(roles), *refused)).collect();
        refusals(twin, Api::Chat, &cases).await;
        let all: Vec<_> = cases.into_iter().map(|(body, _)| (body, None)).collect();
        refusals(Twin::PLAIN, Api::Chat, &all).await;
        // Over another API it is like any provider.
        refusals(twin, Api::Messages, &[(messages("usu"), None)]).await;
    }
}

#[tokio::test]
async fn system_messages_stand_between_turns_or_nowhere() {
    let form = "the directive-only form (content: [] with output_config) is accepted at any position";
    let follow = format!(
        "messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; {form}"
    );
    let precede =
        format!("messages.1: role 'system' must precede an 'assistant' message or end the array; {form}");
    let top = "messages.0: use the top-level 'system' parameter for the initial system prompt";
    let cases = [
        ("u", None),
        ("us", None),
        ("usa", None),
        ("uss", None),
        ("uaus", None),
        ("su", Some(top)),
        ("uas", Some(follow.as_str())),
        ("usu", Some(precede.as_str())),
        ("ussu", Some(precede.as_str())),
    ];
    let cases: Vec<_> = cases.into_iter().map(|(roles, refused)| (messages(roles), refused)).collect();
    refusals(Twin::ANTHROPIC_NOW, Api::Messages, &cases).await;
    let refused = Some("role 'system' is not supported on this model");
    let nowhere: Vec<_> = cases.iter().map(|(body, _)| (body.clone(), refused)).skip(1).collect();
    refusals(Twin::ANTHROPIC_OLDER, Api::Messages, &nowhere).await;
    let anywhere: Vec<_> = cases.iter().map(|(body, _)| (body.clone(), None)).collect();
    refusals(Twin::PLAIN, Api::Messages, &anywhere).await;

    let directive = json!({ "role": "system", "content": [], "output_config": { "effort": "low" } });
    let searched =
        json!({ "role": "assistant", "content": [{ "type": "web_search_tool_result", "content": [] }] });
    let with = |more: [Value; 2]| json!({ "max_tokens": 9, "messages": [message("user"), more[0], more[1]] });
    let taken = [with([message("assistant"), directive]), with([searched, message("system")])];
    refusals(Twin::ANTHROPIC_NOW, Api::Messages, &taken.map(|body| (body, None))).await;
}

#[tokio::test]
async fn more_than_four_marks_are_refused_by_all() {
    let marked = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
    let body = |marks: usize| json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": vec![marked.clone(); marks] }] });
    let mut automatic = body(4);
    automatic["cache_control"] = json!({ "type": "ephemeral" });
    let words = Some("A maximum of 4 blocks with cache_control may be provided. Found 5.");
    for twin in Twin::speaking(Api::Messages) {
        refusals(twin, Api::Messages, &[(body(4), None), (body(5), words), (automatic.clone(), words)]).await;
    }
}

#[tokio::test]
async fn threads_are_refused_with_the_code_that_clients_match() {
    let mut body = says(Api::Messages, "Hi", false);
    for thread in
        [json!({ "type": "create" }), json!({ "type": "continue", "previous_message_id": "msg_1_0" })]
    {
        body["thread"] = thread;
        for (twin, refused) in
            [(Twin::PLAIN, false), (Twin::ANTHROPIC_NOW, true), (Twin::ANTHROPIC_OLDER, true)]
        {
            let response = ask(&started(twin).await, Api::Messages, body.clone()).await;
            assert_eq!(response.status, if refused { 400 } else { 200 });
            let code = response.json()["error"]["details"]["error_code"].clone();
            assert_eq!(code, if refused { json!("thread_unsupported_request") } else { Value::Null });
        }
    }
}

/// The tokens that were new, read from the cache and written into it.
async fn usage(fake: &Fake, body: Value) -> (u64, u64, u64) {
    let response = ask(fake, Api::Messages, body).await.json();
    let figure = |name: &str| response["usage"][name].as_u64().unwrap();
    (figure("input_tokens"), figure("cache_read_input_tokens"), figure("cache_creation_input_tokens"))
}

/// A block of about this many tokens, marked if there is a mark.
fn block(tokens: usize, mark: Value) -> Value {
    let mut block = json!({ "type": "text", "text": "word".repeat(tokens) });
    if !mark.is_null() {
        block["cache_control"] = mark;
    }
    block
}

fn asks(blocks: Vec<Value>) -> Value {
    json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": blocks }] })
}

#[tokio::test]
async fn the_cache_has_the_least_size_of_the_provider() {
    let mark = || json!({ "type": "ephemeral" });
    for (twin, tokens, caches) in [
        (Twin::PLAIN, 10, true),
        (Twin::ANTHROPIC_NOW, 480, false),
        (Twin::ANTHROPIC_NOW, 520, true),
        (Twin::ANTHROPIC_OLDER, 980, false),
        (Twin::ANTHROPIC_OLDER, 1_030, true),
    ] {
        let fake = started(twin).await;
        let body = asks(vec![block(tokens, mark()), block(5, Value::Null)]);
        let (_, read, written) = usage(&fake, body.clone()).await;
        assert_eq!((read, written > 0), (0, caches), "{} {tokens}", twin.name);
        assert_eq!(usage(&fake, body).await.1, written, "{} {tokens}", twin.name);
    }
    for (twin, tokens, caches) in
        [(Twin::PLAIN, 10, true), (Twin::OPENAI_NOW, 980, false), (Twin::OPENAI_NOW, 1_030, true)]
    {
        let fake = started(twin).await;
        for api in [Api::Chat, Api::Responses] {
            let body = says(api, &"word".repeat(tokens), false);
            ask(&fake, api, body.clone()).await;
            ask(&fake, api, body).await;
            assert_eq!(fake.log().last().unwrap().counts.cached > 0, caches, "{} {tokens}", twin.name);
        }
    }
}

#[tokio::test]
async fn the_cache_forgets_when_time_passes() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let short = || json!({ "type": "ephemeral" });
    let hour = || json!({ "type": "ephemeral", "ttl": "1h" });
    for (twin, mark, pause, reads) in [
        (Twin::PLAIN, short(), minutes(9_999), true),
        (Twin::ANTHROPIC_NOW, short(), minutes(4), true),
        (Twin::ANTHROPIC_NOW, short(), minutes(5), false),
        (Twin::ANTHROPIC_NOW, hour(), minutes(59), true),
        (Twin::ANTHROPIC_NOW, hour(), minutes(60), false),
    ] {
        let fake = started(twin).await;
        let body = asks(vec![block(600, mark.clone())]);
        let (_, _, written) = usage(&fake, body.clone()).await;
        // Each use begins a new life.
        for _ in 0..3 {
            fake.advance(pause);
            let (_, read, again) = usage(&fake, body.clone()).await;
            assert_eq!(
                (read, again),
                if reads { (written, 0) } else { (0, written) },
                "{} {mark}",
                twin.name
            );
        }
    }
    let fake = started(Twin::OPENAI_NOW).await;
    let body = says(Api::Responses, &"word".repeat(2_000), false);
    for (pause, reads) in [(0, false), (29, true), (29, true), (30, false)] {
        fake.advance(minutes(pause));
        ask(&fake, Api::Responses, body.clone()).await;
        assert_eq!(fake.log().last().unwrap().counts.cached > 0, reads);
    }
}

#[tokio::test]
async fn the_cache_looks_back_over_twenty_positions() {
    let mark = || json!({ "type": "ephemeral" });
    for (between, reads) in [(18, true), (19, false)] {
        let fake = started(Twin::ANTHROPIC_NOW).await;
        usage(&fake, asks(vec![block(600, mark())])).await;
        let mut blocks = vec![block(600, Value::Null)];
        blocks.extend(vec![block(5, Value::Null); between]);
        blocks.push(block(6, mark()));
        assert_eq!(usage(&fake, asks(blocks)).await.1 > 0, reads, "{between}");
    }
    // Many calls are one position, and so are their results.
    let called = |n: usize| json!({ "type": "tool_use", "id": format!("t{n}"), "name": "R", "input": {} });
    let result = |n: usize| json!({ "type": "tool_result", "tool_use_id": format!("t{n}"), "content": "x" });
    for (twin, reads) in [(Twin::PLAIN, false), (Twin::ANTHROPIC_NOW, true)] {
        let fake = started(twin).await;
        usage(&fake, asks(vec![block(600, mark())])).await;
        let mut results: Vec<Value> = (0..30).map(result).collect();
        results[29]["cache_control"] = mark();
        let body = json!({ "max_tokens": 9, "messages": [
            { "role": "user", "content": [block(600, Value::Null)] },
            { "role": "assistant", "content": (0..30).map(called).collect::<Vec<_>>() },
            { "role": "user", "content": results },
        ] });
        assert_eq!(usage(&fake, body).await.1 > 0, reads, "{}", twin.name);
    }
}

#[tokio::test]
async fn a_mark_at_the_top_level_is_on_the_last_block() {
    for (twin, caches) in [(Twin::PLAIN, false), (Twin::ANTHROPIC_NOW, true)] {
        let fake = started(twin).await;
        let mut body = asks(vec![block(600, Value::Null)]);
        body["cache_control"] = json!({ "type": "ephemeral" });
        let (_, read, written) = usage(&fake, body).await;
        assert_eq!((read, written > 0), (0, caches), "{}", twin.name);
    }
}

/// The first answer of a fake over Responses: reasoning with a call, reasoning with words.
async fn responses(twin: Twin) -> (Fake, Vec<Value>) {
    let answer =
        Answer::new().thinking("Hm.").call("Read", json!({})).sealed_thinking("c2VhbGVk").text("So.");
    let fake = Settings::new().answer(answer).twin(twin).start().await;
    let response = ask(&fake, Api::Responses, says(Api::Responses, "Hi", false)).await.json();
    let mut items = vec![json!({ "role": "user", "content": "Hi" })];
    items.extend(response["output"].as_array().unwrap().iter().cloned());
    items.push(json!({ "type": "function_call_output", "call_id": "call_1_1", "output": "x" }));
    (fake, items)
}

/// The items of [`responses`]: 0 user, 1 reasoning, 2 its call, 3 reasoning, 4 its words, 5 the output of the call.
#[tokio::test]
async fn items_go_back_in_pairs() {
    let follows = |id: &str| {
        Some(format!("Item '{id}' of type 'reasoning' was provided without its required following item."))
    };
    let needs = |id: &str, kind: &str, reasoning: &str| {
        Some(format!(
            "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
        ))
    };
    let cases: [(&[usize], _); 7] = [
        (&[0, 1, 2, 3, 4, 5], None),
        (&[0, 3, 4], None),
        (&[0, 1, 2, 5], None),
        (&[0, 2, 5], needs("fc_1_1", "function_call", "rs_1_0")),
        (&[0, 4], needs("msg_1_3", "message", "rs_1_2")),
        (&[0, 1, 4], follows("rs_1_0")),
        (&[0, 3, 1, 2, 5], follows("rs_1_2")),
    ];
    for (kept, refused) in cases {
        let (fake, items) = responses(Twin::OPENAI_NOW).await;
        let input: Vec<&Value> = kept.iter().map(|at| &items[*at]).collect();
        let response = ask(&fake, Api::Responses, json!({ "input": input })).await;
        assert_eq!((response.status == 400).then(|| response.error()), refused, "{kept:?}");
    }
    // Items without ids, and providers that do not ask for pairs.
    for (twin, keeps_ids) in [(Twin::OPENAI_NOW, false), (Twin::PLAIN, true)] {
        let (fake, mut items) = responses(twin).await;
        if !keeps_ids {
            items.iter_mut().for_each(|item| _ = item.as_object_mut().unwrap().remove("id"));
        }
        for kept in [[0, 2, 5].as_slice(), &[0, 4], &[0, 1, 2, 3, 4, 5]] {
            let input: Vec<&Value> = kept.iter().map(|at| &items[*at]).collect();
            assert_eq!(ask(&fake, Api::Responses, json!({ "input": input })).await.status, 200, "{kept:?}");
        }
    }
}

#[tokio::test]
async fn encrypted_content_is_verified() {
    let (fake, mut items) = responses(Twin::OPENAI_NOW).await;
    assert!(items[1]["encrypted_content"].is_string());
    items[1]["encrypted_content"] = json!("gAAAAAB");
    let response = ask(&fake, Api::Responses, json!({ "input": items })).await;
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["error"]["code"], "invalid_encrypted_content");
    assert_eq!(
        response.error(),
        "The encrypted content for item rs_1_0 could not be verified. Reason: Encrypted content could not be decrypted or parsed."
    );
    let (fake, mut items) = responses(Twin::PLAIN).await;
    items[1]["encrypted_content"] = json!("gAAAAAB");
    assert_eq!(ask(&fake, Api::Responses, json!({ "input": items })).await.status, 200);
}

#[tokio::test]
async fn encrypted_content_is_whole_only_in_the_done_event() {
    let fake = Settings::new()
        .answer(Answer::new().thinking("Hm.").text("So."))
        .twin(Twin::OPENAI_NOW)
        .start()
        .await;
    let events = ask(&fake, Api::Responses, says(Api::Responses, "Hi", true)).await.events();
    let content = |kind: &str| {
        let event =
            events.iter().find(|event| event["type"] == format!("response.output_item.{kind}")).unwrap();
        event["item"]["encrypted_content"].as_str().unwrap().to_owned()
    };
    for (kind, status) in [("added", 400), ("done", 200)] {
        let input = json!([
            { "role": "user", "content": "Hi" },
            { "type": "reasoning", "id": "rs_1_0", "summary": [], "encrypted_content": content(kind) },
            { "type": "message", "id": "msg_1_1", "role": "assistant", "content": [] },
        ]);
        assert_eq!(ask(&fake, Api::Responses, json!({ "input": input })).await.status, status, "{kind}");
    }
}
