//! Conversations with models that bind thinking to its prefix, on a provider that checks it as the real one does: nothing
//! is refused and nothing is dropped, whatever happens on the way. covers: DESIGN rule 12.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bound;
mod common;

use bound::{BETA, Client, HEADERS, script, thoughts, whole};
use common::{LONG, path, see};
use longhaul::Profile;
use longhaul_fake::{Close, RetryAfter, Trouble, Twin};
use longhaul_gateway::Recall;
use longhaul_wire::api::Api;
use serde_json::{Value, json};

#[tokio::test]
async fn thinking_is_kept_between_folds() {
    let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 20_000, true).await;
    let mut sent = Vec::new();
    for _ in 0..80 {
        client.step(1_500).await;
        sent.push(client.thinking_sent());
    }
    client.is_clean();
    let folds = sent.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!((2..=12).contains(&folds), "{sent:?}");
    assert!(*sent.iter().max().unwrap() >= 12, "{sent:?}");
}

#[tokio::test]
async fn pins_undo_restarts_forks_faults_switches_and_requests_past_us_refuse_nothing() {
    for (twin, stream) in [(Twin::ANTHROPIC_NOW, true), (Twin::ANTHROPIC_DROP, false)] {
        let faults = [
            (10, Trouble::Status(529)),
            (19, Trouble::Cut { after: 2, close: Close::Fin }),
            (33, Trouble::ErrorEvent { after: 2 }),
            (50, Trouble::NoClosingEvent),
            (51, Trouble::Close),
            (68, Trouble::Limited(RetryAfter::Unsaid)),
        ];
        let script = faults.into_iter().fold(script().twin(twin).window(400_000), |script, (call, fault)| {
            script.trouble(call..=call, fault)
        });
        let mut client = Client::with(script, Profile::longhaul(), 12_000, stream).await;
        client.tries = 3;
        let (mut undone, mut redone) = (0, 0);
        for n in 0..90 {
            match n {
                // A person takes the newest edit back, and later makes it again.
                36 | 50 | 62 => {
                    let edit = *client.edits(true).await.last().unwrap();
                    undone += usize::from(client.act(json!({ "do": "undo", "edit": edit })).await);
                }
                38 | 64 => {
                    let edit = *client.edits(false).await.last().unwrap();
                    redone += usize::from(client.act(json!({ "do": "redo", "edit": edit })).await);
                }
                12 | 55 => client.pin(&format!("Never touch branch {n}.")).await,
                // Restarted, with and without an edit.
                5 | 30 => client.restart().await,
                // The client goes back by two steps and on from there.
                40 | 70 => client.messages.truncate(client.messages.len() - 4),
                // It asks something new in the middle.
                20 | 60 => client.messages.push(json!({ "role": "user", "content": "And the lexer?" })),
                // Another Claude model goes on.
                75 => client.model = "claude-sonnet-5-5",
                80 => client.model = "claude-opus-5-5",
                _ => {}
            }
            match n {
                // Past us: the client's own bytes, but for thinking that would be refused.
                25 | 48 | 65 => client.step_with(900, &HEADERS).await,
                _ => client.step(if n % 9 == 4 { 5_000 } else { 900 }).await,
            }
            client.is_clean();
        }
        assert!(client.is_edited());
        assert!(client.fake.log().len() >= 90 + 6, "each fault came, and its request again");
        assert!(undone >= 2 && redone >= 1, "{undone} {redone}");
    }
}

#[tokio::test]
async fn a_conversation_that_is_joined_halfway_keeps_its_thinking() {
    let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 60_000, false).await;
    let gateway = client.gateway.take().unwrap();
    // Without the gateway first.
    for _ in 0..8 {
        let body = client.body();
        let request = common::client().post(format!("{}{}", client.fake.base_url(), path(Api::Anthropic)));
        let seen = see(request.header("content-type", "application/json").body(body.to_string()), LONG).await;
        let content = whole(&seen.text()).unwrap();
        let id = content.iter().find_map(|block| block["id"].as_str()).unwrap().to_owned();
        client.messages.push(json!({ "role": "assistant", "content": content }));
        // Noise that would be left out of a new result.
        let noise = "Compiling a v0.1.0\n".repeat(80);
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": noise });
        client.messages.push(json!({ "role": "user", "content": [result] }));
    }
    client.gateway = Some(gateway);
    let before = client.thinking_sent();
    client.step(900).await;
    assert!(client.thinking_sent() > before, "all of it is there");
    for _ in 0..3 {
        client.step(900).await;
    }
    client.is_clean();
}

/// Past us at every place of a conversation, the first call after the first fold too.
#[tokio::test]
async fn a_request_past_us_loses_what_our_views_produced_wherever_it_comes() {
    for twin in [Twin::ANTHROPIC_NOW, Twin::ANTHROPIC_DROP] {
        let mut client = Client::start(twin, Profile::longhaul(), 12_000, true).await;
        client.step(900).await;
        while !client.is_edited() {
            client.step(900).await;
        }
        let all = client.thoughts();
        client.step_with(900, &HEADERS).await;
        assert_eq!(client.thinking_sent(), all - 1, "the newest answer followed our view");
        client.is_clean();
        for n in 0..12 {
            client.step_with(900, if n % 3 == 0 { &HEADERS } else { &HEADERS[1..] }).await;
            client.is_clean();
        }
    }
}

/// With a tool of ours in its requests no thinking follows the client's own tools.
#[tokio::test]
async fn a_conversation_with_our_tool_loses_all_thinking_past_us() {
    for (twin, stream) in [(Twin::ANTHROPIC_NOW, true), (Twin::ANTHROPIC_DROP, false)] {
        for window in [100_000, 12_000] {
            let mut client = Client::start(twin, Profile::longhaul(), window, stream).await;
            client.desk.recall = Recall::Fill;
            client.restart().await;
            for n in 0..36 {
                let is_past_us = [3, 8, 9, 20, 30].contains(&n);
                if [5, 9, 25].contains(&n) {
                    client.restart().await;
                }
                client.step_with(900, if is_past_us { &HEADERS } else { &HEADERS[1..] }).await;
                assert_eq!(client.has_our_tool(), !is_past_us, "call {n}");
                if is_past_us {
                    assert_eq!(client.thinking_sent(), 0, "call {n}");
                }
                client.is_clean();
            }
            let figures = client.gateway().figures();
            assert!(figures.tied.is_some(), "without us all of it fails, whether anything was folded or not");
            assert_eq!(client.is_edited(), window == 12_000);
        }
    }
}

/// The tool is there from the first call, or never: thinking that was produced without it would be refused after it.
#[tokio::test]
async fn a_conversation_that_is_joined_halfway_gets_no_tool() {
    let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 60_000, false).await;
    for _ in 0..4 {
        client.step(900).await;
    }
    // Another gateway, with another store.
    client.desk.store = client.folder.path().join("other.db").display().to_string();
    client.desk.recall = Recall::Fill;
    client.restart().await;
    for _ in 0..3 {
        let all = client.thoughts();
        client.step(900).await;
        assert_eq!((client.has_our_tool(), client.thinking_sent()), (false, all));
    }
    client.is_clean();
}

#[tokio::test]
async fn what_a_provider_refuses_all_the_same_is_sent_once_more_without_thinking() {
    // The client changes what stood before: without us it would be refused too.
    let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 60_000, true).await;
    for _ in 0..6 {
        client.step(500).await;
    }
    let refused = json!({
        "type": "error",
        "error": { "type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block." },
    });
    let refusal = Trouble::Response { status: 400, headers: Vec::new(), body: refused.to_string() };
    client.fake.restart(script().twin(Twin::PLAIN).trouble(1..=1, refusal.clone())).await;
    client.step(500).await;
    let sent = client.fake.log();
    let thinks = |at: usize| sent[at].body.to_string().contains("signature");
    assert!(sent.len() == 2 && thinks(0) && !thinks(1));
    let metrics = client.get("/metrics").await.text();
    assert!(metrics.contains("longhaul_resent_total{reason=\"thinking\"} 1"), "{metrics}");
    // Every later request agrees, also after a restart.
    client.restart().await;
    client.step(500).await;
    assert_eq!(client.thinking_sent(), 2, "that of the two answers since");

    // A client that asks for the error gets it.
    client.fake.restart(script().twin(Twin::PLAIN).trouble(1..=1, refusal)).await;
    let mut body = client.body();
    body["thinking"] =
        json!({ "type": "adaptive", "block_binding": { "prefix_mismatch_behavior": "error" } });
    let seen = client.ask(&body, &HEADERS[1..]).await;
    assert!(seen.status == 400 && seen.text().contains("bound to a different conversation"));
    assert_eq!(client.fake.log().len(), 1);
}

/// A client whose history changed where nobody saw it, with a gateway that knows nothing of it: message 4 is another one
/// than the thinking from message 5 on follows.
async fn changed(twin: Twin, stream: bool) -> Client {
    let mut client = Client::start(twin, Profile::longhaul(), 60_000, stream).await;
    for _ in 0..6 {
        client.step(500).await;
    }
    client.is_clean();
    client.messages[4]["content"][0]["content"] = "It is gone.".into();
    client.join_another().await;
    client
}

#[tokio::test]
async fn thinking_before_the_block_that_is_refused_stays() {
    for (stream, is_past_us) in [(false, false), (true, false), (false, true)] {
        let mut client = changed(Twin::ANTHROPIC_NOW, stream).await;
        let kept = thoughts(&json!(client.messages[..5]));
        assert!(kept > 0 && kept < client.thoughts());
        let calls = client.fake.log().len();
        client.step_with(500, if is_past_us { &HEADERS } else { &HEADERS[1..] }).await;
        let sent = client.fake.log();
        assert_eq!(sent.len(), calls + 2, "refused, and sent once more");
        assert_eq!(thoughts(&sent[calls + 1].body), kept);
        assert_eq!(client.gateway().figures().resent.get("thinking"), Some(&1));
        if is_past_us {
            continue;
        }
        // Every later request agrees, also after a restart.
        for step in 1..4 {
            client.step(500).await;
            assert_eq!(client.fake.log().len(), calls + 2 + step);
            client.restart().await;
        }
        assert!(client.thinking_sent() > kept, "what came since follows what was sent");
    }
}

/// Each model has a session of its own. One that a client comes back to knows what produced the answers of the other.
#[tokio::test]
async fn a_client_that_comes_back_to_a_model_keeps_only_what_follows() {
    for twin in [Twin::ANTHROPIC_NOW, Twin::ANTHROPIC_DROP] {
        let mut client = Client::start(twin, Profile::longhaul(), 100_000, true).await;
        client.step(900).await;
        client.model = "claude-sonnet-5-5";
        client.step(900).await;
        client.pin("Never touch the lexer.").await;
        for _ in 0..3 {
            client.step(900).await;
        }
        client.model = "claude-opus-5-5";
        for is_past_us in [false, true, false, false, true] {
            client.step_with(900, if is_past_us { &HEADERS } else { &HEADERS[1..] }).await;
            client.is_clean();
        }
    }
}

/// The places that the newest answer reports, with their types and reasons.
fn reported(client: &Client) -> Vec<(String, String, String)> {
    let text = client.last.as_ref().unwrap().text();
    let mut values = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let message = values.find_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        let message = if client.stream { value["message"].clone() } else { value };
        message.get("input_transformations").is_some().then_some(message)
    });
    let listed = message.unwrap()["input_transformations"].as_array().unwrap().clone();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    listed.iter().map(|entry| (text(entry, "type"), text(entry, "reason"), text(entry, "path"))).collect()
}

#[tokio::test]
async fn what_a_provider_reports_of_thinking_names_the_clients_messages_and_counts_once() {
    let headers = [BETA, HEADERS[1]];
    for (twin, stream, kind) in [
        (Twin::ANTHROPIC_DROP, false, "thinking_dropped"),
        (Twin::ANTHROPIC_DROP, true, "thinking_dropped"),
        (Twin::ANTHROPIC_RECORD, false, "thinking_mismatch_allowed"),
        (Twin::ANTHROPIC_RECORD, true, "thinking_mismatch_allowed"),
    ] {
        let mut client = changed(twin, stream).await;
        // The places of thinking in the client's messages, from one on.
        let places = |messages: &[Value], from: usize| -> Vec<String> {
            let is_thinking =
                |block: &Value| ["thinking", "redacted_thinking"].iter().any(|kind| block["type"] == **kind);
            let blocks = messages.iter().enumerate().skip(from).flat_map(|(at, message)| {
                let content = message["content"].as_array().cloned().unwrap_or_default();
                content.into_iter().enumerate().map(move |(block, value)| (at, block, value))
            });
            blocks
                .filter(|(_, _, block)| is_thinking(block))
                .map(|(at, block, _)| format!("messages.{at}.content.{block}"))
                .collect()
        };
        let stale = places(&client.messages, 5);
        let all = |places: &[String]| -> Vec<(String, String, String)> {
            let reason = || "prefix_binding_mismatch".to_owned();
            places.iter().map(|place| (kind.to_owned(), reason(), place.clone())).collect()
        };
        let counted = |client: &Client| client.gateway().figures().transformations;
        client.step_with(500, &headers).await;
        assert_eq!(reported(&client), all(&stale));
        let figures = counted(&client);
        assert_eq!(figures[&(kind, "prefix_binding_mismatch")], stale.len() as u64);
        // The client takes its oldest step away. We send it all the same, and the client is told of its own places.
        client.messages.drain(1..3);
        let moved: Vec<String> = places(&client.messages, 3).into_iter().take(stale.len()).collect();
        assert_ne!(moved, stale);
        client.step_with(500, &headers).await;
        assert_eq!(
            client.fake.log().last().unwrap().body["messages"].as_array().unwrap().len(),
            client.messages.len()
        );
        assert_eq!(reported(&client), all(&moved));
        assert_eq!(counted(&client), figures, "the same blocks");
        let line = format!(
            "longhaul_input_transformations_total{{type=\"{kind}\",reason=\"prefix_binding_mismatch\"}} {}",
            stale.len()
        );
        let metrics = client.get("/metrics").await.text();
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
}

#[tokio::test]
async fn a_count_past_us_goes_without_thinking_that_would_be_refused() {
    const COUNT: &str = "/v1/messages/count_tokens";
    let tokens = |seen: &common::Seen| {
        assert_eq!(seen.status, 200, "{}", seen.text());
        let counted: Value = serde_json::from_slice(&seen.body).unwrap();
        counted["input_tokens"].as_u64().unwrap()
    };
    let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 12_000, false).await;
    for _ in 0..40 {
        client.step(900).await;
    }
    assert!(client.is_edited());
    let of_view = tokens(&client.ask_at(COUNT, &client.body(), &HEADERS[1..]).await);
    let of_all = tokens(&client.ask_at(COUNT, &client.body(), &HEADERS).await);
    assert!(of_all > of_view, "{of_all} {of_view}");
    // Nobody knows this history, and a part of its thinking is stale.
    let client = changed(Twin::ANTHROPIC_NOW, false).await;
    tokens(&client.ask_at(COUNT, &client.body(), &HEADERS[1..]).await);
    assert_eq!(client.gateway().figures().resent["thinking"], 1);
    let mut body = client.body();
    body["thinking"]["block_binding"] = json!({ "prefix_mismatch_behavior": "error" });
    let seen = client.ask_at(COUNT, &body, &[BETA, HEADERS[1]]).await;
    assert!(seen.status == 400 && seen.text().contains("messages.5.content.0"), "{}", seen.text());
}

/// A client that says itself what the provider does with stale thinking keeps that, whatever was edited.
#[tokio::test]
async fn what_a_client_asks_for_is_kept_after_an_edit() {
    let betas = "context-management-2025-06-27,thinking-binding-controls-2026-08-01";
    for (behavior, stream) in [("error", true), ("drop_block", false)] {
        let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 12_000, stream).await;
        client.thinking["block_binding"] = json!({ "prefix_mismatch_behavior": behavior });
        let asked = client.thinking.clone();
        for _ in 0..40 {
            client.step_with(900, &[("anthropic-beta", betas), HEADERS[1]]).await;
            client.is_clean();
            let sent = client.fake.log().pop().unwrap();
            assert_eq!(sent.body["thinking"], asked);
            let sent = sent.headers.iter().filter(|(name, _)| name == "anthropic-beta");
            assert_eq!(sent.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), [betas]);
        }
        assert!(client.is_edited());
    }
}

#[tokio::test]
async fn threads_are_refused_as_the_provider_would_and_what_it_holds_is_passed_on() {
    let client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 60_000, false).await;
    let with = |name: &str, value: Value| {
        let mut body = client.body();
        body[name] = value;
        body
    };
    let created = client.ask(&with("thread", json!({ "type": "create" })), &HEADERS[1..]).await;
    let error: Value = serde_json::from_str(&created.text()).unwrap();
    assert_eq!((created.status, &error["error"]["type"]), (400, &json!("invalid_request_error")));
    assert_eq!(error["error"]["details"]["error_code"], "thread_unsupported_request");
    assert_eq!(client.fake.log().len(), 0);

    // What somebody else has begun, and compactions of the provider, are for the provider.
    let thread = json!({ "type": "continue", "previous_message_id": "msg_1" });
    for body in [with("thread", thread), with("compaction", json!({ "type": "summarize" }))] {
        let seen = client.ask(&body, &HEADERS[1..]).await;
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=stateful"));
        assert_eq!(client.fake.log().last().unwrap().body, body);
    }
}

#[tokio::test]
async fn a_model_that_does_not_bind_keeps_its_thinking_past_us() {
    let mut client = Client::start(Twin::PLAIN, Profile::longhaul(), 12_000, false).await;
    client.model = "claude-sonnet-4-6";
    for _ in 0..30 {
        client.step(900).await;
    }
    assert!(client.is_edited());
    client.step_with(900, &HEADERS).await;
    let sent = client.fake.log().last().unwrap().body["messages"].clone();
    assert_eq!(sent.as_array().unwrap(), &client.messages[..client.messages.len() - 2]);
}
