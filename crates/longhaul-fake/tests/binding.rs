//! Thinking that is bound to its prefix, as a client of Anthropic's API sees it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;

use client::{Response, ask, send};
use longhaul_fake::{Answer, Api, Binding, Fake, Ruling, Settings, StaleCounts, Twin};
use serde_json::{Value, json};

const BETA: &str = "anthropic-beta: other-1, thinking-binding-controls-2026-08-01\r\n";
const NEEDS_BETA: &str =
    " That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.";

async fn ask_with(fake: &Fake, headers: &str, body: &Value) -> Response {
    send(fake, "POST", "/v1/messages", headers, &body.to_string()).await
}

/// A request with system prompt, tools and the first question.
fn question() -> Value {
    json!({
        "model": "m", "max_tokens": 99, "thinking": { "type": "adaptive" },
        "system": "You are  careful.",
        "tools": [
            { "name": "Read", "input_schema": { "type": "object", "properties": { "n": { "default": null } } } },
            { "name": "Grep", "description": "Searches.", "input_schema": { "type": "object" } },
            { "name": "Late", "defer_loading": true, "input_schema": { "type": "object" } },
        ],
        "messages": [{ "role": "user", "content": "Look at  this." }],
    })
}

fn push(body: &mut Value, role: &str, content: Value) {
    body["messages"].as_array_mut().unwrap().push(json!({ "role": role, "content": content }));
}

/// Asks, and adds the answer and the next words of the user.
async fn step(fake: &Fake, body: &mut Value, next: Value) {
    let response = ask(fake, Api::Messages, body.clone()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    push(body, "assistant", response.json()["content"].clone());
    push(body, "user", next);
}

/// A conversation of three requests, of which two are answered: a call with its result, and words. Its thinking is at
/// 1.0 and 3.0.
async fn conversation(fake: &Fake) -> Value {
    let mut body = question();
    let result = json!([{ "type": "tool_result", "tool_use_id": "toolu_1_2", "content": "out  put" }]);
    step(fake, &mut body, result).await;
    step(fake, &mut body, json!("Next.")).await;
    body
}

fn answers() -> [Answer; 2] {
    let call = json!({ "n": 1, "s": "x", "none": null });
    [
        Answer::new().thinking("Which file?").text("Reading.").call("Read", call),
        Answer::new().thinking("That one.").text("Done."),
    ]
}

async fn started(twin: Twin) -> Fake {
    Settings::new().answers(answers()).twin(twin).start().await
}

/// The places that an answer reports.
fn reported(response: &Response) -> Vec<String> {
    let all = response.json()["input_transformations"].as_array().unwrap().clone();
    assert!(all.iter().all(|one| one["reason"] == "prefix_binding_mismatch"));
    all.iter().map(|one| one["path"].as_str().unwrap().to_owned()).collect()
}

const BOTH: &[&str] = &["messages.1.content.0", "messages.3.content.0"];
const SECOND: &[&str] = &["messages.3.content.0"];

/// A change of the conversation, and the blocks that are stale for it.
type Edit = (&'static str, fn(&mut Value), &'static [&'static str]);

const EDITS: &[Edit] = &[
    ("nothing", |_| {}, &[]),
    ("a message at the end", |body| push(body, "assistant", json!("More.")), &[]),
    ("another model and effort", |body| body["model"] = json!("n"), &[]),
    (
        "other thinking settings",
        |body| body["thinking"] = json!({ "type": "enabled", "budget_tokens": 9 }),
        &[],
    ),
    ("tool_choice", |body| body["tool_choice"] = json!({ "type": "none" }), &[]),
    // Marks, and other ways of writing the same.
    (
        "a mark on the system prompt",
        |body| body["system"] = json!([{ "type": "text", "text": "You are  careful.", "cache_control": { "type": "ephemeral" } }]),
        &[],
    ),
    ("a mark on a tool", |body| body["tools"][1]["cache_control"] = json!({ "type": "ephemeral" }), &[]),
    (
        "a mark on a result",
        |body| body["messages"][2]["content"][0]["cache_control"] = json!({ "type": "ephemeral" }),
        &[],
    ),
    (
        "the order of keys",
        |body| body["messages"][1]["content"][2]["input"] = json!({ "s": "x", "none": null, "n": 1 }),
        &[],
    ),
    ("1.0 for 1", |body| body["messages"][1]["content"][2]["input"]["n"] = json!(1.0), &[]),
    ("a key that is null", |body| body["messages"][0]["name"] = Value::Null, &[]),
    ("a null in a block", |body| body["messages"][1]["content"][1]["citations"] = Value::Null, &[]),
    (
        "a text block for a string",
        |body| body["messages"][0]["content"] = json!([{ "type": "text", "text": "Look at  this." }]),
        &[],
    ),
    (
        "a text block for a string in a result",
        |body| body["messages"][2]["content"][0]["content"] = json!([{ "type": "text", "text": "out  put" }]),
        &[],
    ),
    ("edges of a text", |body| body["messages"][0]["content"] = json!("\n Look at  this.\t"), &[]),
    ("edges of the system prompt", |body| body["system"] = json!(" You are  careful.\n"), &[]),
    (
        "a text block of spaces",
        |body| {
            body["messages"][1]["content"]
                .as_array_mut()
                .unwrap()
                .push(json!({ "type": "text", "text": " \n" }))
        },
        &[],
    ),
    ("empty citations", |body| body["messages"][1]["content"][1]["citations"] = json!([]), &[]),
    ("is_error: false", |body| body["messages"][2]["content"][0]["is_error"] = json!(false), &[]),
    // Tools.
    ("the order of tools", |body| body["tools"].as_array_mut().unwrap().reverse(), &[]),
    (
        "defaults of a tool",
        |body| {
            let tool = &mut body["tools"][0];
            tool["type"] = json!("custom");
            tool["description"] = json!("");
            tool["strict"] = json!(false);
            tool["eager_input_streaming"] = json!(false);
            tool["allowed_callers"] = json!(["direct"]);
        },
        &[],
    ),
    ("a deferred tool that nobody named", |body| body["tools"][2]["description"] = json!("Other."), &[]),
    ("no deferred tool", |body| _ = body["tools"].as_array_mut().unwrap().pop(), &[]),
    (
        "a deferred tool that is no longer deferred",
        |body| body["tools"][2]["defer_loading"] = Value::Null,
        BOTH,
    ),
    ("one tool less", |body| _ = body["tools"].as_array_mut().unwrap().remove(1), BOTH),
    ("a tool more", |body| body["tools"].as_array_mut().unwrap().push(json!({ "name": "New" })), BOTH),
    ("another name of a tool", |body| body["tools"][1]["name"] = json!("Find"), BOTH),
    ("another description", |body| body["tools"][1]["description"] = json!("Searches!"), BOTH),
    ("another schema", |body| body["tools"][1]["input_schema"]["required"] = json!([]), BOTH),
    ("a null less in a schema", |body| body["tools"][0]["input_schema"]["properties"]["n"] = json!({}), BOTH),
    ("strict: true", |body| body["tools"][0]["strict"] = json!(true), BOTH),
    // Content.
    ("another system prompt", |body| body["system"] = json!("You are  fast."), BOTH),
    ("no system prompt", |body| body["system"] = Value::Null, BOTH),
    ("spaces inside of the system prompt", |body| body["system"] = json!("You are careful."), BOTH),
    ("spaces inside of a text", |body| body["messages"][0]["content"] = json!("Look at this."), BOTH),
    (
        "a block more in an old message",
        |body| {
            body["messages"][0]["content"] =
                json!([{ "type": "text", "text": "Look at  this." }, { "type": "text", "text": "Hurry." }])
        },
        BOTH,
    ),
    ("another role", |body| body["messages"][0]["role"] = json!("assistant"), BOTH),
    ("words of the answer", |body| body["messages"][1]["content"][1]["text"] = json!("I read."), SECOND),
    ("another input", |body| body["messages"][1]["content"][2]["input"]["n"] = json!(2), SECOND),
    (
        "a null less in an input",
        |body| _ = body["messages"][1]["content"][2]["input"].as_object_mut().unwrap().remove("none"),
        SECOND,
    ),
    ("a shorter result", |body| body["messages"][2]["content"][0]["content"] = json!("out"), SECOND),
    (
        "spaces inside of a result",
        |body| body["messages"][2]["content"][0]["content"] = json!("out put"),
        SECOND,
    ),
    ("is_error: true", |body| body["messages"][2]["content"][0]["is_error"] = json!(true), SECOND),
    (
        "an old message that is split",
        |body| {
            body["messages"].as_array_mut().unwrap().insert(1, json!({ "role": "user", "content": [] }));
        },
        &["messages.2.content.0", "messages.4.content.0"],
    ),
    ("thinking left out from the front", |body| _ = remove(body, 1), &[]),
    ("thinking left out from the back", |body| _ = remove(body, 3), &[]),
    (
        "all thinking left out",
        |body| {
            remove(body, 3);
            remove(body, 1);
        },
        &[],
    ),
];

/// Removes the first block of a message.
fn remove(body: &mut Value, message: usize) -> Value {
    body["messages"][message]["content"].as_array_mut().unwrap().remove(0)
}

#[tokio::test]
async fn only_what_the_model_sees_is_compared() {
    for (name, edit, stale) in EDITS {
        let fake = started(Twin::ANTHROPIC_DROP).await;
        let mut body = conversation(&fake).await;
        edit(&mut body);
        let response = ask_with(&fake, BETA, &body).await;
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        assert_eq!(reported(&response), *stale, "{name}");
        assert_eq!(
            fake.stale_thinking(),
            StaleCounts { dropped: stale.len(), ..StaleCounts::default() },
            "{name}"
        );
        let counted = send(&fake, "POST", "/v1/messages/count_tokens", BETA, &body.to_string()).await.json();
        assert_eq!(counted["input_tokens"], fake.log().last().unwrap().counts.prompt, "{name}");
        assert_eq!(counted.get("input_transformations"), None, "{name}");

        let fake = started(Twin::ANTHROPIC_NOW).await;
        let mut body = conversation(&fake).await;
        edit(&mut body);
        let status = if stale.is_empty() { 200 } else { 400 };
        assert_eq!(
            send(&fake, "POST", "/v1/messages/count_tokens", "", &body.to_string()).await.status,
            status
        );
        let response = ask(&fake, Api::Messages, body).await;
        assert_eq!(response.status, status, "{name}: {}", response.text());
        let call = fake.log().pop().unwrap();
        let places: Vec<String> = call
            .stale
            .iter()
            .map(|block| format!("messages.{}.content.{}", block.message, block.block))
            .collect();
        assert_eq!(places, *stale, "{name}");
        assert_eq!(
            fake.stale_thinking(),
            StaleCounts { refused: stale.len(), ..StaleCounts::default() },
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_deferred_tool_counts_from_where_it_is_named() {
    let named = json!([
        { "type": "tool_reference", "tool_name": "Later" },
        { "type": "tool_reference", "tool_name": "Late" },
    ]);
    let fake = started(Twin::ANTHROPIC_DROP).await;
    let mut body = question();
    body["tools"].as_array_mut().unwrap().push(json!({ "name": "Later", "defer_loading": true }));
    step(&fake, &mut body, json!([{ "type": "tool_result", "tool_use_id": "toolu_1_2", "content": named }]))
        .await;
    step(&fake, &mut body, json!("Next.")).await;
    body["tools"].as_array_mut().unwrap().swap(2, 3);
    assert_eq!(reported(&ask_with(&fake, BETA, &body).await), [] as [&str; 0]);
    body["tools"][2]["description"] = json!("Other.");
    assert_eq!(reported(&ask_with(&fake, BETA, &body).await), SECOND);
}

#[tokio::test]
async fn the_refusal_has_the_words_of_the_provider() {
    let fake = started(Twin::ANTHROPIC_NOW).await;
    let mut body = conversation(&fake).await;
    body["messages"][2]["content"][0]["content"] = json!("Other.");
    let says = "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";
    for (headers, more) in [("", NEEDS_BETA), (BETA, "")] {
        let response = ask_with(&fake, headers, &body).await;
        assert_eq!((response.status, response.error()), (400, format!("{says}{more}")));
        assert_eq!(response.json()["error"]["type"], "invalid_request_error");
    }
    assert_eq!(fake.violations().len(), 2);
    // The same block twice is one block.
    assert_eq!(fake.stale_thinking(), StaleCounts { refused: 1, ..StaleCounts::default() });
}

#[tokio::test]
async fn damaged_signatures_are_refused_without_the_words_for_binding() {
    for twin in [Twin::ANTHROPIC_NOW, Twin::ANTHROPIC_DROP, Twin::ANTHROPIC_RECORD] {
        let fake = started(twin).await;
        let body = conversation(&fake).await;
        let with = |edit: fn(&mut Value)| {
            let mut body = body.clone();
            edit(&mut body["messages"][1]["content"][0]);
            body
        };
        let signature = "messages.1.content.0: Invalid `signature` in `thinking` block";
        let modified = "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.";
        let cases = [
            (with(|block| block["signature"] = json!("signature+of+11+bytes==")), signature),
            (
                with(|block| {
                    block["signature"] = json!(format!("{}0", block["signature"].as_str().unwrap()))
                }),
                signature,
            ),
            (with(|block| _ = block.as_object_mut().unwrap().remove("signature")), signature),
            (
                with(|block| *block = json!({ "type": "redacted_thinking", "data": "c2VhbGVk" })),
                "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
            ),
            (with(|block| block["thinking"] = json!("Another thought.")), modified),
        ];
        for (body, says) in cases {
            let response = ask_with(&fake, BETA, &body).await;
            assert_eq!((response.status, response.error().as_str()), (400, says), "{}", twin.name);
        }
        assert_eq!(fake.stale_thinking(), StaleCounts::default());
    }
    // Other providers do not look at it.
    for twin in [Twin::PLAIN, Twin::ANTHROPIC_OLDER, Twin::ANTHROPIC_HOST] {
        let fake = started(twin).await;
        let mut body = conversation(&fake).await;
        body["messages"][1]["content"][0] = json!({ "type": "thinking", "thinking": "?", "signature": "?" });
        assert_eq!(ask(&fake, Api::Messages, body).await.status, 200, "{}", twin.name);
    }
}

#[tokio::test]
async fn what_the_request_asks_for_wins() {
    let asks = |behavior: &str| json!({ "type": "adaptive", "block_binding": { "prefix_mismatch_behavior": behavior } });
    for own in [Twin::ANTHROPIC_NOW, Twin::ANTHROPIC_DROP, Twin::ANTHROPIC_RECORD] {
        let fake = started(own).await;
        let mut body = conversation(&fake).await;
        body["system"] = json!("Edited.");
        let unasked = match own.binding {
            Binding::Off | Binding::Error => (400, None),
            Binding::Drop => (200, Some(Ruling::Dropped)),
            Binding::Record => (200, Some(Ruling::Recorded)),
        };
        for (thinking, (status, ruling)) in [
            (json!({ "type": "adaptive" }), unasked),
            (asks("error"), (400, None)),
            (asks("drop_block"), (200, Some(Ruling::Dropped))),
        ] {
            body["thinking"] = thinking.clone();
            let response = ask_with(&fake, BETA, &body).await;
            assert_eq!(response.status, status, "{} {thinking}", own.name);
            let call = fake.log().pop().unwrap();
            let ruling = ruling.unwrap_or(Ruling::Refused);
            assert_eq!(call.stale.iter().map(|block| block.ruling).collect::<Vec<_>>(), [ruling; 2]);
            if status == 200 {
                let kind =
                    if ruling == Ruling::Dropped { "thinking_dropped" } else { "thinking_mismatch_allowed" };
                assert_eq!(reported(&response), BOTH);
                assert_eq!(response.json()["input_transformations"][1]["type"], kind);
            }
        }
    }
}

#[tokio::test]
async fn the_field_needs_the_header_and_a_kind_of_thinking_that_has_it() {
    let thinking = |kind: &str, behavior: &str| json!({ "type": kind, "block_binding": { "prefix_mismatch_behavior": behavior } });
    let adaptive = "thinking.adaptive.block_binding: Extra inputs are not permitted";
    let cases = [
        (Twin::ANTHROPIC_NOW, "", thinking("adaptive", "drop_block"), Some(adaptive)),
        (Twin::ANTHROPIC_OLDER, "", thinking("adaptive", "drop_block"), Some(adaptive)),
        (Twin::ANTHROPIC_HOST, BETA, thinking("adaptive", "drop_block"), Some(adaptive)),
        (
            Twin::ANTHROPIC_NOW,
            BETA,
            thinking("disabled", "drop_block"),
            Some("thinking.disabled.block_binding: Extra inputs are not permitted"),
        ),
        (
            Twin::ANTHROPIC_NOW,
            BETA,
            thinking("adaptive", "keep"),
            Some(
                "thinking.adaptive.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'",
            ),
        ),
        (Twin::ANTHROPIC_NOW, BETA, thinking("enabled", "error"), None),
        (Twin::ANTHROPIC_OLDER, BETA, thinking("adaptive", "error"), None),
        (Twin::PLAIN, "", thinking("adaptive", "drop_block"), None),
    ];
    for (twin, headers, thinking, refused) in cases {
        let fake = started(twin).await;
        let mut body = question();
        body["thinking"] = thinking;
        let response = ask_with(&fake, headers, &body).await;
        assert_eq!(response.status, if refused.is_some() { 400 } else { 200 }, "{}", twin.name);
        if let Some(says) = refused {
            assert_eq!(response.error(), says);
        }
    }
}

#[tokio::test]
async fn answers_report_only_with_the_header() {
    for (twin, headers, reports) in [
        (Twin::ANTHROPIC_NOW, BETA, true),
        (Twin::ANTHROPIC_OLDER, BETA, true),
        (Twin::ANTHROPIC_NOW, "", false),
        (Twin::ANTHROPIC_HOST, BETA, false),
        (Twin::PLAIN, BETA, false),
    ] {
        let fake = started(twin).await;
        let whole = ask_with(&fake, headers, &question()).await.json();
        let mut body = question();
        body["stream"] = json!(true);
        let streamed = ask_with(&fake, headers, &body).await.events();
        assert_eq!(streamed[0]["type"], "message_start");
        for message in [&whole, &streamed[0]["message"]] {
            assert_eq!(
                message.get("input_transformations"),
                reports.then(|| json!([])).as_ref(),
                "{}",
                twin.name
            );
        }
    }
}

#[tokio::test]
async fn streamed_and_sealed_thinking_is_bound_too() {
    let answer = || Answer::new().thinking("Hm.").sealed_thinking("c2VhbGVk").text("Yes.");
    let fake =
        Settings::new().answers([answer(), answer(), answer()]).twin(Twin::ANTHROPIC_NOW).start().await;
    let mut body = question();
    body["stream"] = json!(true);
    let events = ask(&fake, Api::Messages, body.clone()).await.events();
    let signature = events.iter().find_map(|event| event["delta"].get("signature")).unwrap();
    let sealed = events.iter().find(|event| event["content_block"]["type"] == "redacted_thinking").unwrap();
    assert!(sealed["content_block"]["data"].as_str().unwrap().ends_with("+c2VhbGVk"));
    let content = json!([
        { "type": "thinking", "thinking": "Hm.", "signature": signature },
        sealed["content_block"],
        { "type": "text", "text": "Yes." },
    ]);
    push(&mut body, "assistant", content);
    push(&mut body, "user", json!("Next."));
    assert_eq!(ask(&fake, Api::Messages, body.clone()).await.status, 200);
    // Neither block may stand before the other one.
    body["messages"][1]["content"].as_array_mut().unwrap().swap(0, 1);
    let response = ask(&fake, Api::Messages, body.clone()).await;
    assert!(
        response
            .error()
            .starts_with("messages.1.content.1: Invalid `signature` in `thinking` block. The block is bound"),
        "{}",
        response.error()
    );
    body["messages"][1]["content"].as_array_mut().unwrap().swap(0, 1);
    body["system"] = json!("Edited.");
    remove(&mut body, 1);
    let response = ask(&fake, Api::Messages, body).await;
    assert!(
        response.error().starts_with(
            "messages.1.content.0: Invalid `data` in `redacted_thinking` block. The block is bound"
        ),
        "{}",
        response.error()
    );
}

/// A conversation with thinking in four answers, at the messages 1, 3, 5 and 7.
async fn long(twin: Twin) -> (Fake, Value) {
    let answers = ["a", "b", "c", "d"].map(|text| Answer::new().thinking(text).text(text));
    let fake = Settings::new().answers(answers).twin(twin).start().await;
    let mut body = question();
    for _ in 0..4 {
        step(&fake, &mut body, json!("Next.")).await;
    }
    (fake, body)
}

#[tokio::test]
async fn what_is_kept_must_be_a_window_of_what_was() {
    let cases: [(&[usize], &[usize]); 9] = [
        (&[], &[]),
        (&[1], &[]),
        (&[1, 3, 5], &[]),
        (&[7], &[]),
        (&[5, 7], &[]),
        (&[1, 7], &[]),
        (&[1, 3, 5, 7], &[]),
        // A gap.
        (&[3], &[5, 7]),
        (&[5], &[7]),
    ];
    for (removed, stale) in cases {
        let (fake, mut body) = long(Twin::ANTHROPIC_DROP).await;
        for message in removed {
            remove(&mut body, *message);
        }
        let places: Vec<String> =
            stale.iter().map(|message| format!("messages.{message}.content.0")).collect();
        assert_eq!(reported(&ask_with(&fake, BETA, &body).await), places, "{removed:?}");
    }
    let (fake, mut body) = long(Twin::ANTHROPIC_DROP).await;
    let (first, second) = (remove(&mut body, 1), remove(&mut body, 3));
    body["messages"][1]["content"].as_array_mut().unwrap().insert(0, second);
    body["messages"][3]["content"].as_array_mut().unwrap().insert(0, first);
    let all = [1, 3, 5, 7].map(|message| format!("messages.{message}.content.0"));
    assert_eq!(reported(&ask_with(&fake, BETA, &body).await), all);
}

#[tokio::test]
async fn thinking_that_is_put_back_invalidates_what_was_made_without_it() {
    let fake = started(Twin::ANTHROPIC_DROP).await;
    let mut body = question();
    step(&fake, &mut body, json!([{ "type": "tool_result", "tool_use_id": "toolu_1_2", "content": "x" }]))
        .await;
    let taken = remove(&mut body, 1);
    step(&fake, &mut body, json!("Next.")).await;
    assert_eq!(reported(&ask_with(&fake, BETA, &body).await), [] as [&str; 0]);
    body["messages"][1]["content"].as_array_mut().unwrap().insert(0, taken);
    assert_eq!(reported(&ask_with(&fake, BETA, &body).await), SECOND);
}

#[tokio::test]
async fn thinking_that_is_made_after_an_edit_is_valid() {
    let next = || Answer::new().thinking("Again.").text("Well.");
    for twin in [Twin::ANTHROPIC_DROP, Twin::ANTHROPIC_RECORD] {
        let fake = Settings::new().answers(answers()).answers([next(), next()]).twin(twin).start().await;
        let mut body = conversation(&fake).await;
        body["messages"][0]["content"] = json!("Edited.");
        step(&fake, &mut body, json!("And?")).await;
        // The stale blocks stay in the request.
        assert_eq!(reported(&ask_with(&fake, BETA, &body).await), BOTH, "{}", twin.name);
        // They leave it.
        remove(&mut body, 1);
        remove(&mut body, 3);
        assert_eq!(reported(&ask_with(&fake, BETA, &body).await), [] as [&str; 0], "{}", twin.name);
    }
}

#[tokio::test]
async fn a_conversation_continues_on_another_fake() {
    let fake = started(Twin::ANTHROPIC_NOW).await;
    let mut body = conversation(&fake).await;
    drop(fake);
    let fake = started(Twin::ANTHROPIC_NOW).await;
    assert_eq!(ask(&fake, Api::Messages, body.clone()).await.status, 200);
    body["system"] = json!("Edited.");
    assert_eq!(ask(&fake, Api::Messages, body).await.status, 400);
}
