//! A client of the fake that is made by hand, for all tests of this crate.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use longhaul_fake::{Api, Fake};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const APIS: [Api; 3] = [Api::Chat, Api::Responses, Api::Messages];

/// The response of the fake.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body was as long as its head said, or came to the end of its chunks.
    pub whole: bool,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The data of the events of a stream.
    pub fn events(&self) -> Vec<Value> {
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or(json!(data))).collect()
    }

    /// The kinds of the events of a stream, each once in a row.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> =
            self.events().iter().filter_map(|event| Some(event.get("type")?.as_str()?.to_owned())).collect();
        kinds.dedup();
        kinds
    }

    /// The message of an error.
    pub fn error(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }
}

pub fn path(api: Api) -> &'static str {
    match api {
        Api::Chat => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Messages => "/v1/messages",
    }
}

/// Sends bytes and reads what comes back, up to the end of the connection.
pub async fn exchange(fake: &Fake, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(fake.address()).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut bytes = Vec::new();
    // A reset is an end too.
    _ = stream.read_to_end(&mut bytes).await;
    bytes
}

pub async fn send(fake: &Fake, method: &str, path: &str, headers: &str, body: &str) -> Response {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: h\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let bytes = exchange(fake, request.as_bytes()).await;
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Response { status: 0, head: String::new(), body: bytes, whole: false };
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body = &bytes[end + 4..];
    let (body, whole) = match length {
        Some(length) => (body.to_vec(), body.len() == length.parse::<usize>().unwrap()),
        None => joined(body),
    };
    Response { status, head, body, whole }
}

/// Chunks joined, and whether the last one came.
fn joined(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    (body, false)
}

pub async fn ask(fake: &Fake, api: Api, body: Value) -> Response {
    send(fake, "POST", path(api), "authorization: Bearer sk-secret-1\r\n", &body.to_string()).await
}

/// A request that says this.
pub fn says(api: Api, text: &str, stream: bool) -> Value {
    match api {
        Api::Chat => json!({"model":"m","stream":stream,"messages":[{"role":"user","content":text}]}),
        Api::Responses => json!({"model":"m","stream":stream,"input":[{"role":"user","content":text}]}),
        Api::Messages => {
            json!({"model":"m","stream":stream,"max_tokens":9,"messages":[{"role":"user","content":text}]})
        }
    }
}
