//! A fake provider, a gateway before it, and clients that see every byte.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use longhaul::session::Overflow;
use longhaul::{Tokens, Usage};
use longhaul_fake::Fake;
use longhaul_gateway::{
    Call, Decide, Decision, DeskSettings, Gateway, How, Incoming, Limits, Open, Reason, Settings, start_with,
};
use longhaul_store::SessionId;
use longhaul_wire::api::Api;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub const APIS: [Api; 3] = [Api::Chat, Api::Responses, Api::Anthropic];

/// Long enough for anything that comes at all.
pub const LONG: Duration = Duration::from_secs(20);

/// Long enough to believe that nothing comes.
pub const SHORT: Duration = Duration::from_millis(400);

pub fn settings(fake: &Fake) -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: fake.base_url(),
        openai: fake.base_url() + "/v1",
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk: DeskSettings::new(String::new()),
        limits: Limits { stop: Duration::from_secs(1), ..Limits::default() },
    }
}

/// A gateway that passes everything on.
pub async fn passing(fake: &Fake) -> Gateway {
    start_with(settings(fake), Arc::new(PassesOn(Reason::Side))).await.unwrap()
}

/// A desk that passes everything on.
pub struct PassesOn(pub Reason);

impl Decide for PassesOn {
    fn decide(&self, _: &Incoming) -> Decision {
        Decision::PassOn(self.0)
    }

    fn answered(&self, _: Call, _: Option<&Usage>) {}

    fn overflowed(&self, _: Call, _: Overflow) -> Option<Call> {
        None
    }

    fn count(&self, _: &Incoming) -> Option<Tokens> {
        None
    }
}

/// A desk with a script: what it sends first, and what instead of what was too long.
#[derive(Default)]
pub struct Scripted {
    /// The body of the first call of a request; `None` for the client's own.
    pub body: Option<Bytes>,
    /// Bodies for what was too long, in their order.
    pub smaller: Mutex<VecDeque<Bytes>>,
    /// What it was asked.
    pub seen: Mutex<Vec<Incoming>>,
    /// What it was told: the session and the usage of each call.
    pub told: Mutex<Vec<(SessionId, Option<Usage>)>>,
    pub overflows: Mutex<Vec<Overflow>>,
}

/// The one place that makes calls.
pub fn call(session: SessionId, body: Option<Bytes>) -> Call {
    let mut call = Call::of_nobody(body, session, How::Extends, Tokens(27_682), Tokens(102_513));
    call.edits = 9;
    call
}

impl Decide for Scripted {
    fn decide(&self, incoming: &Incoming) -> Decision {
        self.seen.lock().unwrap().push(incoming.clone());
        Decision::Send(call(SessionId::fresh(), self.body.clone()))
    }

    fn answered(&self, call: Call, usage: Option<&Usage>) {
        self.told.lock().unwrap().push((call.session, usage.cloned()));
    }

    fn overflowed(&self, old: Call, overflow: Overflow) -> Option<Call> {
        self.overflows.lock().unwrap().push(overflow);
        let body = self.smaller.lock().unwrap().pop_front()?;
        Some(call(old.session, Some(body)))
    }

    fn refused(&self, call: Call, overflow: Overflow) {
        self.overflows.lock().unwrap().push(overflow);
        self.answered(call, None);
    }

    fn count(&self, incoming: &Incoming) -> Option<Tokens> {
        Some(Tokens(incoming.body.len() as u64))
    }
}

pub fn path(api: Api) -> &'static str {
    match api {
        Api::Chat => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Anthropic => "/v1/messages",
    }
}

/// A request that the fake takes.
pub fn body(api: Api, stream: bool) -> Value {
    let messages = json!([{ "role": "user", "content": "Which file defines main?" }]);
    match api {
        Api::Chat => json!({ "model": "m", "messages": messages, "stream": stream }),
        Api::Responses => json!({ "model": "m", "input": messages, "stream": stream }),
        Api::Anthropic => json!({ "model": "m", "max_tokens": 99, "messages": messages, "stream": stream }),
    }
}

/// What a client sees of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// 0 if there was none.
    pub status: u16,
    /// Without those that any server adds.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Clean,
    Broken,
    /// Nothing comes any more.
    Silent,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Without what the gateway says.
    pub fn without_ours(mut self) -> Self {
        self.headers.retain(|(name, _)| !name.starts_with("x-longhaul"));
        self
    }
}

thread_local! {
    /// A client is dear, and each test has a thread.
    static CLIENT: reqwest::Client = {
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_gzip().no_proxy();
        client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
    };
}

/// A client that takes bytes as they are.
pub fn client() -> reqwest::Client {
    CLIENT.with(Clone::clone)
}

/// Reads an answer until it ends, or nothing comes for so long.
pub async fn see(request: reqwest::RequestBuilder, wait: Duration) -> Seen {
    let mut seen = Seen { status: 0, headers: Vec::new(), body: Vec::new(), end: End::Silent };
    let mut response = match timeout(wait, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => return Seen { end: End::Broken, ..seen },
        Err(_) => return seen,
    };
    seen.status = response.status().as_u16();
    for (name, value) in response.headers() {
        if !["connection", "date", "transfer-encoding"].contains(&name.as_str()) {
            seen.headers.push((name.to_string(), value.to_str().unwrap().to_owned()));
        }
    }
    seen.headers.sort();
    loop {
        match timeout(wait, response.chunk()).await {
            Ok(Ok(Some(piece))) => seen.body.extend_from_slice(&piece),
            Ok(Ok(None)) => return Seen { end: End::Clean, ..seen },
            Ok(Err(_)) => return Seen { end: End::Broken, ..seen },
            Err(_) => return seen,
        }
    }
}

/// Asks at this base URL.
pub async fn ask(base: &str, api: Api, body: &Value, wait: Duration) -> Seen {
    let request = client().post(format!("{base}{}", path(api))).header("content-type", "application/json");
    see(request.body(body.to_string()), wait).await
}

pub fn url(gateway: &Gateway) -> String {
    format!("http://{}", gateway.address())
}

/// Sends bytes and reads until the other side ends the connection.
pub async fn raw(gateway: &Gateway, request: &[u8]) -> String {
    let mut connection = TcpStream::connect(gateway.address()).await.unwrap();
    connection.write_all(request).await.unwrap();
    let mut response = Vec::new();
    _ = timeout(LONG, connection.read_to_end(&mut response)).await.unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

/// Waits until something holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    timeout(LONG, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("it holds in the end");
}
