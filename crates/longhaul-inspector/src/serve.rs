//! Answers over HTTP: what the gateway serves under `/inspect/`, and a small server for `longhaul inspect`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH,
    LOCATION, SET_COOKIE,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::access::{self, names_this_machine};
use crate::assets;
use crate::error::Refused;
use crate::events;
use crate::inspector::{Guest, Inspector};
use crate::route::Question;
use crate::steering::Change;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a page may load, and from where: only what is ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The longest body of a change.
const MOST_OF_A_BODY: usize = 1 << 20;

/// Questions that are worked on at once: each may take a processor.
static AT_ONCE: Semaphore = Semaphore::const_new(4);
/// Of those that take seconds, one.
static LONG: Semaphore = Semaphore::const_new(1);

/// Answers a request whose path begins with `/inspect`.
pub async fn serve<B>(inspector: Arc<Inspector>, guest: Guest, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let answered = match asked(&inspector, &guest, &parts) {
        Ok(Asked::Question(question)) => answer(inspector, guest, question, parts.headers, body).await,
        Ok(Asked::Answered(response)) => Ok(response),
        Err(refused) => Err(refused),
    };
    let mut response = answered.unwrap_or_else(|refused| refusal(&refused));
    guard(response.headers_mut());
    if is_head {
        *response.body_mut() = whole(Bytes::new());
    }
    response
}

/// What comes of a request's head.
enum Asked {
    Question(Question),
    Answered(Response<Body>),
}

fn asked(inspector: &Inspector, guest: &Guest, parts: &http::request::Parts) -> Result<Asked, Refused> {
    let Some(path) = parts.uri.path().strip_prefix("/inspect/") else {
        access::not_from_another_page(&parts.headers, true)?;
        // Addresses in the page are relative to the folder.
        return Ok(Asked::Answered(moved("/inspect/")));
    };
    let question = Question::of(&parts.method, path, parts.uri.query());
    let is_of_page = question.as_ref().is_ok_and(Question::is_of_page);
    access::not_from_another_page(&parts.headers, is_of_page)?;
    let question = question?;
    let access = inspector.access();
    let has_cookie = access.has_cookie(&parts.headers);
    if let Question::Page { token } = &question
        && access.asks()
    {
        let is_token = token.as_deref().is_some_and(|token| access.is_token(token));
        if token.is_some() && !is_token {
            return Err(Refused::NoToken);
        }
        if is_token || (guest.has_token && !has_cookie) {
            let mut response = moved("/inspect/");
            // What was made here is a header.
            let cookie = HeaderValue::from_str(&access.cookie(&parts.headers));
            cookie.into_iter().for_each(|cookie| _ = response.headers_mut().insert(SET_COOKIE, cookie));
            return Ok(Asked::Answered(response));
        }
    }
    if question.is_of_page() {
        return Ok(Asked::Question(question));
    }
    if !has_cookie && !guest.has_token {
        return Err(Refused::NoToken);
    }
    if question.changes() {
        access.change(&parts.headers)?;
    }
    Ok(Asked::Question(question))
}

async fn answer<B>(
    inspector: Arc<Inspector>,
    guest: Guest,
    question: Question,
    headers: HeaderMap,
    body: B,
) -> Result<Response<Body>, Refused>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let name = match &question {
        Question::Page { .. } => Some("index.html"),
        Question::File(name) => Some(name.as_str()),
        _ => None,
    };
    if let Some(name) = name {
        return file(name, &headers);
    }
    let body = match question.changes() {
        true => Limited::new(body, MOST_OF_A_BODY).collect().await.map_err(|_| Refused::TooLong)?.to_bytes(),
        false => Bytes::new(),
    };
    if let Question::Events { only } = question {
        if let Some(only) = only {
            // One that is not there is said at once.
            let (inspector, guest) = (inspector.clone(), guest.clone());
            let known = tokio::task::spawn_blocking(move || inspector.meta(&guest, only).map(drop)).await;
            known.unwrap_or_else(|_| Err(broken()))?;
        }
        let mut response = Response::new(events::stream(inspector, guest, only)?.boxed_unsync());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        return Ok(response);
    }
    let turns = if let Question::WhatIf { .. } = question { &LONG } else { &AT_ONCE };
    let _turn = turns.acquire().await.map_err(|_| Refused::Failed("the inspector stops".to_owned()))?;
    // Reading a session blocks, and takes a processor.
    let answered = tokio::task::spawn_blocking(move || inspector.answer(&guest, question, &body)).await;
    answered.unwrap_or_else(|_| Err(broken()))
}

fn broken() -> Refused {
    Refused::Failed("something went wrong here: this is an error of longhaul".to_owned())
}

impl Inspector {
    /// Answers a question. Blocks.
    fn answer(&self, guest: &Guest, question: Question, body: &[u8]) -> Result<Response<Body>, Refused> {
        match question {
            Question::Message { id, at } => json(&self.look(guest, id, |history, _| history.message(at))?),
            Question::Figures { id } => json(&self.figures(guest, id)?),
            Question::Find { id, query } => json(&self.look(guest, id, |history, _| history.find(&query))?),
            Question::Recall { id, handle, part } => {
                let text = self.recall(guest, id, &handle, &part)?;
                Ok(of(StatusCode::OK, "text/plain; charset=utf-8", text))
            }
            Question::Preview { id } => json(&self.preview(guest, id, &Change::read(body)?)?),
            Question::Act { id } => json(&self.act(guest, id, &Change::read(body)?)?),
            Question::WhatIf { id, profile, window } => {
                let text = self.what_if(guest, id, profile.as_deref(), window)?;
                Ok(of(StatusCode::OK, JSON, text.as_bytes().to_vec()))
            }
            Question::Page { .. } | Question::File(_) | Question::Events { .. } => {
                Err(Refused::Failed("is no question".to_owned()))
            }
            Question::Me => json(&self.me()),
            Question::Sessions { filter, limit } => json(&self.sessions(guest, filter, limit)?),
            Question::Search { query, limit } => json(&self.search(guest, &query, limit)?),
            Question::Session { id, from } => json(&self.session(guest, id, from)?),
            Question::Call { id, call } => json(&self.call(guest, id, call)?),
            Question::Part { id, call, k } => json(&self.part(guest, id, call, k)?),
            Question::Raw { id, call, api, download } => {
                let (api, text) = self.raw(guest, id, call, api)?;
                let mut response = of(StatusCode::OK, JSON, text);
                let name = format!("attachment; filename=\"{id}-call-{call}.{}.json\"", api.name());
                // Only digits, letters and dashes are in it.
                if let (true, Ok(name)) = (download, HeaderValue::from_str(&name)) {
                    response.headers_mut().insert(CONTENT_DISPOSITION, name);
                }
                Ok(response)
            }
        }
    }
}

const JSON: &str = "application/json; charset=utf-8";

fn json(value: &impl Serialize) -> Result<Response<Body>, Refused> {
    let text = serde_json::to_string(value).map_err(|error| Refused::Failed(error.to_string()))?;
    Ok(of(StatusCode::OK, JSON, text))
}

fn refusal(refused: &Refused) -> Response<Body> {
    let says = serde_json::json!({ "error": refused.to_string() }).to_string();
    let mut response = of(refused.status(), JSON, says);
    if let Refused::Method(_, allowed) = refused {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

fn of(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(whole(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

fn moved(to: &'static str) -> Response<Body> {
    let mut response = of(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    response
}

/// A file of the page.
fn file(name: &str, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
    let asset =
        assets::find(name).ok_or_else(|| Refused::NotFound("the page has no such file".to_owned()))?;
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == asset.tag().as_bytes());
    let mut response = match is_known {
        true => of(StatusCode::NOT_MODIFIED, asset.kind(), ""),
        false => of(StatusCode::OK, asset.kind(), asset.bytes),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ETAG, HeaderValue::from_static(asset.tag()));
    Ok(response)
}

/// What every answer tells a browser: that it is what it says, for no other page, and that it loads nothing else.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// An inspector at an address of its own.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    inspector: Arc<Inspector>,
}

impl Server {
    /// Takes the address. Who serves others than this machine gives the inspector a token.
    pub async fn bind(listen: SocketAddr, inspector: Inspector) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, inspector: Arc::new(inspector) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    pub async fn run(self) {
        /// Connections at once. More wait.
        const CONNECTIONS: usize = 64;
        /// So long nothing is taken after it failed: as a rule there are too many open files.
        const PAUSE: Duration = Duration::from_millis(100);
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (inspector, address) = (self.inspector.clone(), self.address);
                    tokio::spawn(async move {
                        connection(stream, inspector, address).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

async fn connection(stream: TcpStream, inspector: Arc<Inspector>, address: SocketAddr) {
    /// How long a head may take, and a connection be silent between two requests.
    const HEAD_WAIT: Duration = Duration::from_secs(30);
    _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let inspector = inspector.clone();
        async move { Ok::<_, Infallible>(own(inspector, address, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT).max_header_size(64 << 10);
    // How a connection ended is known to who waits for its answer.
    _ = http.serve_connection(TokioIo::new(stream), service).await;
}

/// A request to a server of our own.
async fn own(
    inspector: Arc<Inspector>,
    address: SocketAddr,
    request: Request<hyper::body::Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let ip = address.ip();
    if ip.is_loopback() && !names_this_machine(&parts, ip) {
        let refused = Refused::Forbidden("this inspector is asked as localhost or 127.0.0.1 only");
        let mut response = refusal(&refused);
        guard(response.headers_mut());
        return response;
    }
    if let Err(refused) = access::not_from_another_page(&parts.headers, true) {
        let mut response = refusal(&refused);
        guard(response.headers_mut());
        return response;
    }
    if parts.uri.path() == "/" {
        return moved("/inspect/");
    }
    if !(parts.uri.path() == "/inspect" || parts.uri.path().starts_with("/inspect/")) {
        let mut response = refusal(&Refused::NotFound("the inspector is at /inspect/".to_owned()));
        guard(response.headers_mut());
        return response;
    }
    serve(inspector, Guest::default(), Request::from_parts(parts, body)).await
}
