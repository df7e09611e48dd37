//! A server that is reached by HTTP: each message is a request, whose answer comes whole or as a stream of events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longhaul_model::EventStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use super::message::{McpError, answer, notice, question};

/// An answer at most.
const LARGEST: usize = 16 << 20;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A server at an address.
pub(super) struct HttpServer {
    client: Client,
    url: Url,
    headers: HeaderMap,
    next: AtomicU64,
    /// What the server calls our conversation.
    session: Mutex<Option<HeaderValue>>,
}

impl HttpServer {
    pub(super) fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, McpError> {
        let bad = |what: String| McpError::Gone(what);
        let url: Url = url.parse().map_err(|error| bad(format!("its URL cannot be read: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("its URL is neither http nor https".to_owned()));
        }
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().map_err(|_| bad(format!("`{name}` is no header")))?;
            let mut value =
                HeaderValue::from_str(value).map_err(|_| bad(format!("the value of `{name}` is none")))?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        // One provider of cryptography for all; a second one is ours too.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            Client::builder().redirect(Policy::none()).connect_timeout(Duration::from_secs(10)).build();
        let client = client.map_err(|error| bad(longhaul_model::causes(&error)))?;
        Ok(Self { client, url, headers: all, next: AtomicU64::new(1), session: Mutex::default() })
    }

    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let response = self.send(&question(id, method, &params)).await?;
        if let Some(session) = response.headers().get(SESSION) {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.clone());
        }
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return streamed(response, id).await;
        }
        let body = whole(response).await?;
        let message = serde_json::from_slice(&body).map_err(|error| McpError::Garbled(error.to_string()))?;
        answer_to(message, id)
            .unwrap_or_else(|| Err(McpError::Garbled("its answer is to another question".to_owned())))
    }

    pub(super) async fn tell(&self, method: &str, params: Value) -> Result<(), McpError> {
        self.send(&notice(method, &params)).await.map(|_| ())
    }

    async fn send(&self, message: &Value) -> Result<Response, McpError> {
        let mut request = self.client.post(self.url.clone()).headers(self.headers.clone());
        request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        request = request.header(VERSION, super::VERSION);
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let sent = request.body(message.to_string()).send().await;
        let response = sent.map_err(|error| McpError::Gone(longhaul_model::causes(&error)))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(McpError::Refused("it wants a key, or another one (`headers`)".to_owned()))
            }
            status => Err(McpError::Refused(format!("status {status}"))),
        }
    }
}

fn answer_to(message: Value, id: u64) -> Option<Result<Value, McpError>> {
    let messages = match message {
        Value::Array(messages) => messages,
        message => vec![message],
    };
    messages.into_iter().filter_map(answer).find(|(of, _)| *of == id).map(|(_, answer)| answer)
}

async fn whole(mut response: Response) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    while let Some(bytes) = chunk(&mut response).await? {
        body.extend_from_slice(&bytes);
        if body.len() > LARGEST {
            return Err(too_large());
        }
    }
    Ok(body)
}

async fn streamed(mut response: Response, id: u64) -> Result<Value, McpError> {
    let (mut stream, mut seen) = (EventStream::default(), 0);
    while let Some(bytes) = chunk(&mut response).await? {
        seen += bytes.len();
        if seen > LARGEST {
            return Err(too_large());
        }
        stream.push(&bytes);
        let garbled = |error: longhaul_model::StreamError| McpError::Garbled(error.to_string());
        while let Some(event) = stream.next_event().map_err(garbled)? {
            if let Ok(message) = serde_json::from_str(event.data)
                && let Some(answer) = answer_to(message, id)
            {
                return answer;
            }
        }
    }
    Err(McpError::Gone("its stream ended without an answer".to_owned()))
}

async fn chunk(response: &mut Response) -> Result<Option<Vec<u8>>, McpError> {
    let chunk = response.chunk().await.map_err(|error| McpError::Gone(longhaul_model::causes(&error)))?;
    Ok(chunk.map(|bytes| bytes.to_vec()))
}

fn too_large() -> McpError {
    McpError::Garbled(format!("its answer has more than {} MB", LARGEST >> 20))
}
