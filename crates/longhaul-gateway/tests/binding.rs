//! Conversations with models that bind thinking to its prefix, on a provider that checks it as the real one does: nothing
//! is refused and nothing is dropped, whatever happens on the way. covers: DESIGN rule 12.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{LONG, client, path, see, settings, url};
use longhaul::{Profile, Tokens};
use longhaul_fake::{Answer, AtEnd, Fake, Settings as Script, StaleCounts, Trouble, Twin};
use longhaul_gateway::{DeskSettings, Gateway, Settings, start};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

const HEADERS: [(&str, &str); 2] = [("x-longhaul", "off"), ("x-claude-code-session-id", "one")];

/// A client of the plainest kind: it sends all it has.
struct Client {
    fake: Fake,
    folder: tempfile::TempDir,
    gateway: Option<Gateway>,
    desk: DeskSettings,
    stream: bool,
    model: &'static str,
    messages: Vec<Value>,
    tools: Vec<Value>,
    calls: usize,
}

fn script() -> Script {
    let think = |n: usize| {
        let answer =
            Answer::new().thinking(&format!("Step {n}: I look at the next file. {}", "Hm. ".repeat(30)));
        // Some thinking cannot be read by anybody else, and some stands between calls.
        let answer =
            if n.is_multiple_of(5) { answer.sealed_thinking(&format!("sealed {n}")) } else { answer };
        answer.text("Let me see.").call("Read", json!({ "path": format!("src/file_{n}.rs") }))
    };
    Script::new().answers((0..400).map(think)).at_end(AtEnd::Error).piece(40)
}

impl Client {
    async fn start(twin: Twin, profile: Profile, window: u64, stream: bool) -> Self {
        let fake = script().twin(twin).window(400_000).start().await;
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sessions.db").display().to_string();
        let desk = DeskSettings { profile, window: Some(Tokens(window)), ..DeskSettings::new(store) };
        let (model, calls) = ("claude-opus-5-5", 0);
        let messages = vec![json!({ "role": "user", "content": "Mend the parser, please." })];
        let tools = vec![json!({ "name": "Read", "input_schema": { "type": "object" } })];
        let mut client = Self { fake, folder, gateway: None, desk, stream, model, messages, tools, calls };
        client.restart().await;
        client
    }

    async fn restart(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        self.gateway =
            Some(start(Settings { desk: self.desk.clone(), ..settings(&self.fake) }).await.unwrap());
    }

    fn body(&self) -> Value {
        json!({
            "model": self.model, "max_tokens": 2_000, "stream": self.stream, "system": "Be brief.",
            "thinking": { "type": "adaptive" }, "tools": self.tools, "messages": self.messages,
        })
    }

    async fn ask(&self, body: &Value, headers: &[(&str, &str)]) -> common::Seen {
        let base = url(self.gateway.as_ref().unwrap());
        let mut request = client().post(format!("{base}{}", path(Api::Anthropic)));
        for (name, value) in headers.iter().chain([&("content-type", "application/json")]) {
            request = request.header(*name, *value);
        }
        see(request.body(body.to_string()), LONG).await
    }

    /// A step: a request, its answer, and what the tool says.
    async fn step(&mut self, bytes: usize) {
        self.step_with(bytes, &HEADERS[1..]).await;
    }

    async fn step_with(&mut self, bytes: usize, headers: &[(&str, &str)]) {
        let seen = self.ask(&self.body(), headers).await;
        assert_eq!(seen.status, 200, "call {}: {}", self.calls, seen.text());
        let content = if self.stream { streamed(&seen.text()) } else { whole(&seen.text()) };
        let id = content.iter().find_map(|block| block["id"].as_str()).expect("a call").to_owned();
        self.calls += 1;
        let line = format!("line of {id} with value_{} in it\n", self.calls);
        let said = line.repeat(bytes / line.len() + 1);
        self.messages.push(json!({ "role": "assistant", "content": content }));
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": said });
        self.messages.push(json!({ "role": "user", "content": [result] }));
    }

    async fn pin(&self, text: &str) {
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "pin", "arguments": { "text": text } },
        });
        let request = client().post(format!("{}/mcp", url(self.gateway.as_ref().unwrap())));
        let seen = see(request.header("content-type", "application/json").body(call.to_string()), LONG).await;
        assert!(seen.status == 200 && !seen.text().contains("isError\":true"), "{}", seen.text());
    }

    /// Thinking that stands in the newest request that the provider got.
    fn thinking_sent(&self) -> usize {
        let body = self.fake.log().last().unwrap().body.to_string();
        body.matches("\"signature\"").count() + body.matches("redacted_thinking").count()
    }

    fn is_edited(&self) -> bool {
        self.fake.log().last().unwrap().body["messages"].as_array().unwrap().len() < self.messages.len()
    }

    /// Nothing was refused and nothing dropped.
    fn is_clean(&self) {
        let none = StaleCounts { refused: 0, dropped: 0, recorded: 0 };
        assert_eq!((self.fake.stale_thinking(), self.fake.violations()), (none, Vec::new()));
    }
}

fn whole(body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    body["content"].as_array().unwrap().clone()
}

fn streamed(body: &str) -> Vec<Value> {
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for data in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).unwrap();
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push((event["content_block"].clone(), String::new())),
            "content_block_delta" => {
                let (block, input) = &mut blocks[event["index"].as_u64().unwrap() as usize];
                for (name, piece) in event["delta"].as_object().unwrap() {
                    match (name.as_str(), piece.as_str().unwrap()) {
                        ("type", _) => {}
                        ("partial_json", piece) => input.push_str(piece),
                        (name, piece) => {
                            block[name] = (block[name].as_str().unwrap().to_owned() + piece).into()
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let with_input = |(mut block, input): (Value, String)| {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).unwrap();
        }
        block
    };
    blocks.into_iter().map(with_input).collect()
}

#[tokio::test]
async fn every_profile_goes_on_with_every_twin() {
    let twins = [Twin::ANTHROPIC_NOW, Twin::ANTHROPIC_DROP, Twin::ANTHROPIC_RECORD];
    let mut runs = tokio::task::JoinSet::new();
    for profile in Profile::all() {
        for (window, (at, twin)) in [8_000, 20_000]
            .into_iter()
            .flat_map(|window| twins.into_iter().enumerate().map(move |twin| (window, twin)))
        {
            let profile = profile.clone();
            runs.spawn(async move {
                let name = profile.name.clone();
                let mut client = Client::start(twin, profile, window, at % 2 == 0).await;
                for n in 0..40 {
                    client.step(if n % 7 == 3 { 4_000 } else { 900 }).await;
                    client.is_clean();
                }
                assert!(client.is_edited(), "{name} {window}");
            });
        }
    }
    runs.join_all().await;
}

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
async fn pins_restarts_forks_faults_switches_and_requests_past_us_refuse_nothing() {
    for (twin, stream) in [(Twin::ANTHROPIC_NOW, true), (Twin::ANTHROPIC_DROP, false)] {
        let mut client = Client::start(twin, Profile::longhaul(), 12_000, stream).await;
        for n in 0..90 {
            match n {
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
        let content = whole(&seen.text());
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
    let metrics = see(client_get(&client, "/metrics"), LONG).await.text();
    assert!(metrics.contains("longhaul_thinking_refused_total 1"), "{metrics}");
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

fn client_get(client: &Client, path: &str) -> reqwest::RequestBuilder {
    common::client().get(format!("{}{path}", url(client.gateway.as_ref().unwrap())))
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
