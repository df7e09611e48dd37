//! A provider over HTTP: any server that speaks one of the three APIs, hosted or on this machine.

mod address;
mod retry;

use std::error::Error;
use std::time::Duration;

use longhaul::{Extra, Json};
use longhaul_wire::api::{Api, Request};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

use address::Address;
pub use retry::Retry;

use crate::fault::Fault;
use crate::key::Key;
use crate::model::{Asked, Model, Watch};
use crate::reply::{Delta, Reply, ReplyReader};

/// A provider, and how to talk to it.
#[derive(Debug, Clone)]
pub struct Provider {
    api: Api,
    /// Where requests go.
    address: Address,
    key: Option<Key>,
    client: Client,
    patience: Patience,
    retry: Retry,
    streams: bool,
}

/// How long to wait. Keep-alive bytes and comments are no events: a connection that only says that it is
/// there is not waited for any longer than one that is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connection: Duration,
    /// For the first event, or for a reply that comes whole: a long prompt takes its time.
    pub first: Duration,
    /// For each event after it.
    pub next: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connection: seconds(15), first: seconds(600), next: seconds(120) }
    }
}

/// The setting of OpenAI Chat that asks for usage. It is refused where nothing is streamed.
const STREAM_OPTIONS: &str = "stream_options";

/// Anthropic wants a limit for the answer. These are the names under which a request may have one.
const LIMITS: [&str; 3] = longhaul::conversation::MAX_OUTPUT;
/// The limit of a request that has none, in tokens.
const MOST_OUTPUT: u64 = 8_192;

/// A body that says what went wrong is read up to this.
const MOST_OF_AN_ERROR: usize = 64 << 10;
/// A reply that comes whole is read up to this.
const MOST_OF_A_REPLY: usize = 64 << 20;

impl Provider {
    /// The provider at this base URL, with or without the version at its end.
    pub fn new(api: Api, base_url: &str, key: Option<Key>) -> Result<Self, Fault> {
        let patience = Patience::default();
        Ok(Self {
            api,
            address: Address::of(api, base_url)?,
            key,
            client: client(patience)?,
            patience,
            retry: Retry::default(),
            streams: true,
        })
    }

    /// With this patience.
    pub fn with_patience(self, patience: Patience) -> Result<Self, Fault> {
        // A client is dear: it reads the certificates of the machine.
        let client = match patience.connection == self.patience.connection {
            true => self.client,
            false => client(patience)?,
        };
        Ok(Self { client, patience, ..self })
    }

    /// With other retries.
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Replies come whole.
    pub fn without_streams(self) -> Self {
        Self { streams: false, ..self }
    }

    async fn ask_until_it_answers(&self, request: Request, watch: &mut Watch<'_>) -> Result<Reply, Fault> {
        let (body, betas) = (self.body(request.clone()), request.betas());
        let mut attempt = 0;
        loop {
            let mut began = false;
            let mut seen = |delta: Delta<'_>| {
                began = true;
                watch(delta);
            };
            let fault = match self.ask_once(&body, betas.as_deref(), &mut seen).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => self.redacted(fault),
            };
            attempt += 1;
            let Some(pause) = self.retry.pause(attempt, &fault) else { return Err(fault) };
            if began {
                watch(Delta::Void);
            }
            watch(Delta::Again { fault: &fault, pause });
            sleep(pause).await;
        }
    }

    async fn ask_once(&self, body: &str, betas: Option<&str>, watch: &mut Watch<'_>) -> Result<Reply, Fault> {
        let mut request = self.client.post(self.address.as_str()).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = match self.api {
                Api::Anthropic => request.header("x-api-key", key.reveal()),
                Api::Chat | Api::Responses => request.bearer_auth(key.reveal()),
            };
        }
        if self.api == Api::Anthropic {
            request = request.header("anthropic-version", "2023-06-01");
            request =
                betas.into_iter().fold(request, |request, betas| request.header("anthropic-beta", betas));
        }
        let wait = self.patience.first;
        let sent = timeout(wait, request.body(body.to_owned()).send()).await;
        let mut response =
            sent.map_err(|_| Fault::TimedOut(wait))?.map_err(|error| self.unreachable(&error))?;
        if response.status() != StatusCode::OK {
            let (status, retry_after) = (response.status().as_u16(), retry::after(&response));
            let body = timeout(wait, text(&mut response, MOST_OF_AN_ERROR)).await;
            let body = body.map_err(|_| Fault::TimedOut(wait))?.unwrap_or_default();
            return Err(Fault::of_response(status, retry_after, &body));
        }
        // Some servers answer whole whatever was asked for.
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !self.streams || kind.is_some_and(|kind| kind.starts_with("application/json")) {
            let body = timeout(wait, text(&mut response, MOST_OF_A_REPLY)).await;
            let reply = Reply::read(self.api, &body.map_err(|_| Fault::TimedOut(wait))??)?;
            reply.show(watch);
            return Ok(reply);
        }
        self.stream(response, watch).await
    }

    /// Who could not be reached, and why: what lies deepest says it.
    fn unreachable(&self, error: &reqwest::Error) -> Fault {
        let mut cause: &dyn Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Fault::Unreachable(format!("{:?}: {cause}", self.address))
    }

    async fn stream(&self, mut response: Response, watch: &mut Watch<'_>) -> Result<Reply, Fault> {
        let mut reader = ReplyReader::new(self.api);
        let mut wait = self.patience.first;
        loop {
            let Ok(more) = timeout(wait, next_events(&mut response, &mut reader, watch)).await else {
                // A reply that is closed is whole, though its stream has no end.
                return reader.end().map_err(|fault| match fault {
                    Fault::Cut => Fault::TimedOut(wait),
                    fault => fault,
                });
            };
            match more? {
                true => wait = self.patience.next,
                false => return reader.end(),
            }
        }
    }

    /// The request as it is sent, with what this client needs.
    fn body(&self, request: Request) -> String {
        let needed = self.needed();
        let mut frame = request.frame().clone();
        let is_ours = |name: &str| needed.contains_key(name) || name == STREAM_OPTIONS;
        let others = request.frame().settings.iter().filter(|(name, _)| !is_ours(name));
        frame.settings = Extra::NONE;
        others.for_each(|(name, value)| frame.settings.push(name, value.clone()));
        if self.api == Api::Anthropic && LIMITS.iter().all(|name| frame.settings.get(name).is_none()) {
            frame.settings.set(LIMITS[0], Json::from(&Value::from(MOST_OUTPUT)));
        }
        with_fields(String::from(request.with_frame(frame).encode(self.api).body), &needed)
    }

    /// Fields of the request that this client sets. They are those of its own API, so that no request is
    /// without them that was made for another one.
    fn needed(&self) -> Map<String, Value> {
        let mut needed = Map::new();
        let mut set = |name: &str, value: Value| needed.insert(name.to_owned(), value);
        set("stream", self.streams.into());
        match self.api {
            Api::Chat if self.streams => {
                set(STREAM_OPTIONS, serde_json::json!({ "include_usage": true }));
            }
            Api::Chat | Api::Anthropic => {}
            Api::Responses => {
                set("store", false.into());
                set("include", serde_json::json!(["reasoning.encrypted_content"]));
            }
        }
        needed
    }

    /// A fault without the key: providers quote what they refuse.
    fn redacted(&self, fault: Fault) -> Fault {
        match &self.key {
            Some(key) => fault.with_words(|words| key.redacted(words)),
            None => fault,
        }
    }
}

impl Model for Provider {
    fn name(&self) -> &str {
        self.api.name()
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(self.ask_until_it_answers(request, watch))
    }
}

/// A body with more fields.
fn with_fields(mut body: String, fields: &Map<String, Value>) -> String {
    if let Some(open) = body.trim_end().strip_suffix('}') {
        body.truncate(open.len());
    }
    for (name, value) in fields {
        let comma = if body.trim_end().ends_with('{') { "" } else { "," };
        body += &format!("{comma}{}:{value}", Value::from(name.as_str()));
    }
    body.push('}');
    body
}

/// Reads until at least one event is whole; false at the end of the stream, however it ends, and when
/// nothing that follows is needed. The reader knows whether the reply was cut off.
async fn next_events(
    response: &mut Response,
    reader: &mut ReplyReader,
    watch: &mut Watch<'_>,
) -> Result<bool, Fault> {
    loop {
        let Ok(Some(bytes)) = response.chunk().await else { return Ok(false) };
        let progress = reader.push(&bytes, watch)?;
        if progress.closed {
            return Ok(false);
        }
        if progress.events > 0 {
            return Ok(true);
        }
    }
}

/// The text of a response, up to so many bytes.
async fn text(response: &mut Response, most: usize) -> Result<String, Fault> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|_| Fault::Cut)? {
        body.extend_from_slice(&bytes);
        if body.len() > most {
            body.truncate(most);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn client(patience: Patience) -> Result<Client, Fault> {
    // The one provider of cryptography in this program. Whoever was first has set it.
    _ = rustls::crypto::ring::default_provider().install_default();
    // A conversation and a key go to the address that was given, and to no other.
    let client = Client::builder().redirect(Policy::none());
    let client = client.connect_timeout(patience.connection).tcp_nodelay(true);
    client.build().map_err(unreachable)
}

/// All that is said of an error, without the address, which may hold a key.
fn unreachable(error: reqwest::Error) -> Fault {
    Fault::Unreachable(causes(&error.without_url()))
}

/// An error with all that caused it, in one line.
///
/// ```
/// let error = std::io::Error::other(std::fmt::Error);
/// assert!(longhaul_model::causes(&error).starts_with("an error occurred when formatting"));
/// ```
pub fn causes(error: &dyn Error) -> String {
    let (mut says, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        says = format!("{says}: {error}");
        cause = error.source();
    }
    says
}
