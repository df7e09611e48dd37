//! A client of a model that binds its thinking: it sends all it has, again and again, and knows what it may not see.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use longhaul::{Profile, Tokens};
use longhaul_fake::{Answer, AtEnd, Fake, Settings as Script, StaleCounts, Twin};
use longhaul_gateway::{Decide, DeskSettings, Gateway, start, start_with};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

use super::common::{End, LONG, Seen, client, path, see, settings, url};

/// Past the gateway, and the name of the conversation.
pub const HEADERS: [(&str, &str); 2] = [("x-longhaul", "off"), ("x-claude-code-session-id", "one")];

/// The header that has the provider report what it does with thinking.
pub const BETA: (&str, &str) = ("anthropic-beta", "thinking-binding-controls-2026-08-01");

/// Makes a desk.
pub type DeskOf = Box<dyn Fn(DeskSettings) -> Arc<dyn Decide> + Send + Sync>;

/// A client of the plainest kind: it sends all it has.
pub struct Client {
    pub fake: Fake,
    pub folder: tempfile::TempDir,
    pub gateway: Option<Gateway>,
    pub desk: DeskSettings,
    pub stream: bool,
    pub model: &'static str,
    pub messages: Vec<Value>,
    pub tools: Vec<Value>,
    /// The value of `thinking` in its requests.
    pub thinking: Value,
    pub calls: usize,
    /// The newest answer.
    pub last: Option<Seen>,
    /// The session that the newest answer of the gateway named.
    pub session: Option<String>,
    /// The provider fails now and then: what it has not answered is asked again.
    pub tries: usize,
    /// It asks the provider itself.
    pub is_alone: bool,
    /// The desk of a gateway that is started, if it is not the usual one.
    pub desk_of: Option<DeskOf>,
}

/// A model that thinks before each of its calls.
pub fn script() -> Script {
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
    pub async fn start(twin: Twin, profile: Profile, window: u64, stream: bool) -> Self {
        Self::with(script().twin(twin).window(400_000), profile, window, stream).await
    }

    /// Of a model with this script.
    pub async fn with(script: Script, profile: Profile, window: u64, stream: bool) -> Self {
        let fake = script.start().await;
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sessions.db").display().to_string();
        let desk = DeskSettings { profile, window: Some(Tokens(window)), ..DeskSettings::new(store) };
        let messages = vec![json!({ "role": "user", "content": "Mend the parser, please." })];
        let tools = vec![json!({ "name": "Read", "input_schema": { "type": "object" } })];
        let mut client = Self {
            fake,
            folder,
            gateway: None,
            desk,
            stream,
            model: "claude-opus-5-5",
            messages,
            tools,
            thinking: json!({ "type": "adaptive" }),
            calls: 0,
            last: None,
            session: None,
            tries: 1,
            is_alone: false,
            desk_of: None,
        };
        client.restart().await;
        client
    }

    /// The gateway is another process.
    pub async fn restart(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        let mut settings = longhaul_gateway::Settings { desk: self.desk.clone(), ..settings(&self.fake) };
        let started = match &self.desk_of {
            Some(desk_of) => {
                settings.limits.decide = Duration::from_millis(400);
                start_with(settings, desk_of(self.desk.clone())).await
            }
            None => start(settings).await,
        };
        self.gateway = Some(started.unwrap());
    }

    /// The gateway is another one, which knows nothing.
    pub async fn join_another(&mut self) {
        self.desk.store = self.folder.path().join(format!("other_{}.db", self.calls)).display().to_string();
        self.session = None;
        self.restart().await;
    }

    pub fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    pub fn body(&self) -> Value {
        json!({
            "model": self.model, "max_tokens": 2_000, "stream": self.stream, "system": "Be brief.",
            "thinking": self.thinking, "tools": self.tools, "messages": self.messages,
        })
    }

    pub async fn ask(&self, body: &Value, headers: &[(&str, &str)]) -> Seen {
        self.ask_at(path(Api::Anthropic), body, headers).await
    }

    pub async fn ask_at(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Seen {
        let base = if self.is_alone { self.fake.base_url() } else { url(self.gateway()) };
        let mut request = client().post(format!("{base}{path}"));
        for (name, value) in headers.iter().chain([&("content-type", "application/json")]) {
            request = request.header(*name, *value);
        }
        see(request.body(body.to_string()), LONG).await
    }

    /// A step: a request, its answer, and what the tool says.
    pub async fn step(&mut self, bytes: usize) {
        self.step_with(bytes, &HEADERS[1..]).await;
    }

    pub async fn step_with(&mut self, bytes: usize, headers: &[(&str, &str)]) {
        let content = self.answered(headers).await;
        let id = content.iter().find_map(|block| block["id"].as_str()).expect("a call").to_owned();
        let line = format!("line of {id} with value_{} in it\n", self.calls);
        self.say(content, &line.repeat(bytes / line.len() + 1));
    }

    /// The model said this, and its tools that.
    pub fn say(&mut self, content: Vec<Value>, result: &str) {
        let ids: Vec<String> =
            content.iter().filter_map(|block| Some(block["id"].as_str()?.to_owned())).collect();
        self.messages.push(json!({ "role": "assistant", "content": content }));
        let result = |id| json!({ "type": "tool_result", "tool_use_id": id, "content": result });
        let results: Vec<Value> = ids.iter().map(result).collect();
        if !results.is_empty() {
            self.messages.push(json!({ "role": "user", "content": results }));
        }
    }

    /// The content of the next answer. What the provider refuses for good is not asked again.
    pub async fn answered(&mut self, headers: &[(&str, &str)]) -> Vec<Value> {
        for _ in 0..self.tries {
            let seen = self.ask(&self.body(), headers).await;
            let says = seen.text();
            let content = match (seen.status, seen.end) {
                (200, End::Clean) if self.stream => streamed(&says),
                (200, End::Clean) => whole(&says),
                _ => None,
            };
            let passes = matches!(seen.status, 0 | 200 | 429 | 500..);
            let session = seen.header("x-longhaul-session").map(str::to_owned);
            self.session = session.or(self.session.take());
            self.last = Some(seen);
            if let Some(content) = content {
                self.calls += 1;
                return content;
            }
            assert!(passes && self.tries > 1, "call {}: {says}", self.calls);
        }
        panic!("call {}: never answered", self.calls);
    }

    pub async fn pin(&self, text: &str) {
        assert!(self.act(json!({ "do": "pin", "text": text })).await, "{text}");
    }

    pub async fn get(&self, path: &str) -> Seen {
        see(client().get(format!("{}{path}", url(self.gateway()))), LONG).await
    }

    async fn value(&self, path: &str) -> Value {
        let seen = self.get(path).await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text());
        serde_json::from_slice(&seen.body).unwrap()
    }

    /// The numbers of the edits of the newest session that stand, or that do not.
    pub async fn edits(&self, active: bool) -> Vec<u64> {
        let Some(session) = &self.session else { return Vec::new() };
        let timeline = self.value(&format!("/inspect/api/session/{session}")).await;
        let edits = timeline["edits"].as_array().cloned().unwrap_or_default();
        edits.iter().filter(|edit| edit["active"] == active).filter_map(|edit| edit["id"].as_u64()).collect()
    }

    /// A person changes the session on the page. False if it cannot be done.
    pub async fn act(&self, change: Value) -> bool {
        let Some(session) = &self.session else { return false };
        let csrf = self.value("/inspect/api/me").await["csrf"].as_str().unwrap().to_owned();
        let path = format!("{}/inspect/api/session/{session}/act", url(self.gateway()));
        let request = client().post(path).header("x-longhaul-inspect", csrf).body(change.to_string());
        let seen = see(request, LONG).await;
        assert!([200, 409].contains(&seen.status), "{change}: {}", seen.text());
        seen.status == 200
    }

    /// Thinking that stands in the newest request that the provider got.
    pub fn thinking_sent(&self) -> usize {
        thoughts(&self.fake.log().last().unwrap().body)
    }

    /// Thinking that the client has.
    pub fn thoughts(&self) -> usize {
        thoughts(&json!(self.messages))
    }

    /// The newest request that the provider got has a tool of ours.
    pub fn has_our_tool(&self) -> bool {
        self.fake.log().last().unwrap().body["tools"].to_string().contains("longhaul_recall")
    }

    /// Edits stood when the newest request was sent, as the gateway said.
    pub fn has_edits(&self) -> bool {
        let says = self.last.as_ref().and_then(|seen| seen.header("x-longhaul")).unwrap_or_default();
        says.split_once("edits=").is_some_and(|(_, edits)| !edits.starts_with('0'))
    }

    /// The newest request that the provider got has fewer messages than the client sent. Since then the client has an answer
    /// and its result more.
    pub fn is_edited(&self) -> bool {
        let sent = self.fake.log().last().unwrap().body["messages"].as_array().unwrap().len();
        sent + 2 < self.messages.len()
    }

    /// Nothing was refused and nothing dropped.
    pub fn is_clean(&self) {
        let none = StaleCounts { refused: 0, dropped: 0, recorded: 0 };
        let call = self.calls;
        assert_eq!((self.fake.stale_thinking(), self.fake.violations()), (none, Vec::new()), "call {call}");
    }
}

pub fn thoughts(value: &Value) -> usize {
    let text = value.to_string();
    text.matches("\"signature\"").count() + text.matches("redacted_thinking").count()
}

/// The content of an answer; `None` if it is none.
pub fn whole(body: &str) -> Option<Vec<Value>> {
    let body: Value = serde_json::from_str(body).ok()?;
    body["content"].as_array().cloned()
}

/// The content of a streamed answer; `None` if it is not whole.
pub fn streamed(body: &str) -> Option<Vec<Value>> {
    let mut blocks: Vec<(Value, String)> = Vec::new();
    let mut is_closed = false;
    for data in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).ok()?;
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
            "error" => return None,
            "message_stop" => is_closed = true,
            _ => {}
        }
    }
    let with_input = |(mut block, input): (Value, String)| {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).unwrap();
        }
        block
    };
    is_closed.then(|| blocks.into_iter().map(with_input).collect())
}
