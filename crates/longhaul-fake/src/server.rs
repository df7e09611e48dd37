//! The fake itself: connections, and what is answered to whom.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::api::{Api, Protocol, Said, Written, marks, model_of};
use crate::cache::{Cache, tokens_of};
use crate::delivery::Delivery;
use crate::http::{Connection, Received};
use crate::log::{Call, Outcome, redacted};
use crate::script::{Answer, AtEnd, Counts};
use crate::settings::Settings;
use crate::trouble::{RetryAfter, Trouble};

/// A fake provider that runs. It stops when this is dropped, and all its connections end.
#[derive(Debug)]
pub struct Fake {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    gauge: watch::Sender<Gauge>,
}

/// What can be waited for.
#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    open: usize,
    calls: usize,
}

#[derive(Debug)]
struct State {
    settings: Settings,
    script: VecDeque<Answer>,
    caches: HashMap<Api, Cache>,
    log: Vec<Call>,
}

impl State {
    fn of(settings: Settings) -> Self {
        let script = settings.answers.clone().into();
        Self { settings, script, caches: HashMap::new(), log: Vec::new() }
    }
}

impl Fake {
    #[expect(clippy::expect_used, reason = "a test without a loopback port cannot go on")]
    pub(crate) async fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free loopback port");
        let address = listener.local_addr().expect("the address of a port that was bound");
        let state = Mutex::new(State::of(settings));
        let shared = Arc::new(Shared { state, gauge: watch::Sender::new(Gauge::default()) });
        let task = tokio::spawn(accept(shared.clone(), listener)).abort_handle();
        Self { address, shared, task }
    }

    /// The address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, without a version at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Begins anew with other settings on the same port: the log, the script and the cache are new.
    /// Waits until no connection is open. It is for tests that have one client and many cases.
    pub async fn restart(&self, settings: Settings) {
        self.until_idle().await;
        let mut state = self.shared.state();
        *state = State::of(settings);
        self.shared.gauge.send_modify(|gauge| gauge.calls = 0);
    }

    /// The calls that came so far, in their order: requests for an answer, not those for models or counts.
    pub fn log(&self) -> Vec<Call> {
        self.shared.state().log.clone()
    }

    /// What a provider refuses and was asked for all the same, in the provider's words.
    pub fn violations(&self) -> Vec<String> {
        self.shared.state().log.iter().filter_map(|call| call.violation.clone()).collect()
    }

    /// The connections that are open.
    pub fn open_connections(&self) -> usize {
        self.shared.gauge.borrow().open
    }

    /// Waits until no connection is open.
    pub async fn until_idle(&self) {
        self.until(|gauge| gauge.open == 0).await;
    }

    /// Waits until so many calls have come.
    pub async fn until_calls(&self, calls: usize) {
        self.until(|gauge| gauge.calls >= calls).await;
    }

    async fn until(&self, holds: impl FnMut(&Gauge) -> bool) {
        // The sender is in this value, so that the wait cannot fail.
        _ = self.shared.gauge.subscribe().wait_for(holds).await;
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes connections, for ever. The tasks that serve them end with this one.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    served.spawn(serve(Open::new(shared.clone()), stream));
                }
            }
            Some(_) = served.join_next() => {}
        }
    }
}

/// Counts a connection as long as it is open.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        shared.gauge.send_modify(|gauge| gauge.open += 1);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.gauge.send_modify(|gauge| gauge.open -= 1);
    }
}

async fn serve(open: Open, stream: TcpStream) {
    let mut connection = Connection::new(stream);
    let Some(received) = connection.receive().await else { return };
    let (call, delivery) = open.0.respond(&received);
    let outcome = delivery.send(connection).await;
    if let Some(call) = call {
        open.0.state().log[call].outcome = outcome;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response to a request, and the place of the call in the log.
    fn respond(&self, received: &Received) -> (Option<usize>, Delivery) {
        let Some(api) = api_of(received) else { return (None, self.state().respond_beside(received)) };
        let (place, delivery) = self.state().call(api, received);
        self.gauge.send_modify(|gauge| gauge.calls += 1);
        (Some(place), delivery)
    }
}

/// The API that is asked for an answer.
fn api_of(received: &Received) -> Option<Api> {
    match received.path.trim_start_matches("/v1") {
        _ if received.method != "POST" => None,
        "/chat/completions" => Some(Api::Chat),
        "/responses" => Some(Api::Responses),
        "/messages" => Some(Api::Messages),
        _ => None,
    }
}

impl State {
    /// The response to a request that asks for no answer.
    fn respond_beside(&self, received: &Received) -> Delivery {
        let anthropic = received.header("anthropic-version").is_some();
        let api = if anthropic { Api::Messages } else { Api::Chat };
        if let Some(refused) = self.wrong_key(api.protocol(), received) {
            return refused;
        }
        match (received.method.as_str(), received.path.trim_start_matches("/v1")) {
            ("GET", "/models") if anthropic => Delivery::json(
                200,
                &json!({
                    "data": [{ "type": "model", "id": "fake-1", "display_name": "Fake", "created_at": "2025-01-01T00:00:00Z" }],
                    "has_more": false, "first_id": "fake-1", "last_id": "fake-1",
                }),
            ),
            ("GET", "/models") => Delivery::json(
                200,
                &json!({
                    "object": "list",
                    "data": [{ "id": "fake-1", "object": "model", "created": 1_700_000_000, "owned_by": "fake" }],
                }),
            ),
            ("POST", "/messages/count_tokens") => {
                let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
                let tokens = tokens_of(&Api::Messages.protocol().prompt(&body));
                Delivery::json(200, &json!({ "input_tokens": tokens }))
            }
            (method, path) => {
                let message = format!("Unknown request URL: {method} {path}.");
                Delivery::error(api.protocol(), 404, &Said::invalid(message))
            }
        }
    }

    /// The response to a request for an answer, which is logged.
    fn call(&mut self, api: Api, received: &Received) -> (usize, Delivery) {
        let body: Option<Value> = serde_json::from_slice(&received.body).ok();
        let asked = body.clone().unwrap_or_default();
        let place = self.log.len();
        let mut call = Call {
            number: place + 1,
            api,
            path: received.path.clone(),
            headers: redacted(&received.headers),
            streamed: asked["stream"] == true,
            counts: Counts { prompt: tokens_of(&api.protocol().prompt(&asked)), ..Counts::default() },
            marks: marks(&asked),
            violation: None,
            status: 0,
            outcome: Outcome::Open,
            body: asked,
        };
        let delivery = self.refusal(&mut call, body.is_some(), received).unwrap_or_else(|| {
            let trouble = self.settings.trouble_at(call.number).cloned();
            let takes_gzip = received.header("accept-encoding").is_some_and(|kinds| kinds.contains("gzip"));
            let trouble = trouble.filter(|trouble| takes_gzip || *trouble != Trouble::Gzip);
            let instead = trouble.as_ref().and_then(|trouble| self.instead(&call, trouble, received));
            instead.unwrap_or_else(|| self.answer(&mut call, trouble.as_ref()))
        });
        call.status = delivery.status;
        self.log.push(call);
        (place, delivery)
    }

    /// The refusal of a request that no provider takes.
    fn refusal(&self, call: &mut Call, is_json: bool, received: &Received) -> Option<Delivery> {
        let protocol = call.api.protocol();
        if let Some(refused) = self.wrong_key(protocol, received) {
            return Some(refused);
        }
        let said = if is_json { protocol.violation(&call.body) } else { Some(protocol.not_json()) };
        if let Some(said) = said {
            call.violation = Some(said.message.clone());
            return Some(Delivery::error(protocol, 400, &said));
        }
        let window = self.settings.window.filter(|window| call.counts.prompt > *window)?;
        Some(self.too_long(call, call.counts.prompt, window))
    }

    fn wrong_key(&self, protocol: &dyn Protocol, received: &Received) -> Option<Delivery> {
        let wanted = self.settings.key.as_deref()?;
        let given = key_of(received);
        (given != wanted).then(|| Delivery::error(protocol, 401, &protocol.status(401, "", given)))
    }

    fn too_long(&self, call: &Call, prompt: u64, window: u64) -> Delivery {
        let protocol = call.api.protocol();
        let said = protocol.too_long(prompt, window);
        let in_stream = call.api == Api::Responses && call.streamed && !self.settings.overflow_by_status;
        match in_stream {
            true => Delivery::stream(vec![protocol.error_event(&said).text("\n")]),
            false => Delivery::error(protocol, 400, &said),
        }
    }

    /// What comes in the place of an answer; `None` if trouble only changes the answer.
    fn instead(&self, call: &Call, trouble: &Trouble, received: &Received) -> Option<Delivery> {
        let protocol = call.api.protocol();
        let error = |status| {
            let said = protocol.status(status, model_of(&call.body), key_of(received));
            Delivery::error(protocol, status, &said)
        };
        match trouble {
            Trouble::Limited(RetryAfter::Unsaid) => Some(error(429)),
            Trouble::Limited(RetryAfter::Seconds(after)) => {
                Some(error(429).header("retry-after", &after.to_string()))
            }
            Trouble::Limited(RetryAfter::Millis(after)) => {
                Some(error(429).header("retry-after-ms", &after.to_string()))
            }
            Trouble::Status(status) => Some(error(*status)),
            Trouble::Response { status, headers, body } => {
                let kind = "application/json";
                let response = Delivery::whole(*status, kind, body.clone().into_bytes());
                Some(headers.iter().fold(response, |response, (name, value)| response.header(name, value)))
            }
            Trouble::TooLong { prompt, window } => Some(self.too_long(call, *prompt, *window)),
            Trouble::Html => Some(Delivery::page()),
            _ => None,
        }
    }

    /// The next answer of the script.
    fn answer(&mut self, call: &mut Call, trouble: Option<&Trouble>) -> Delivery {
        let protocol = call.api.protocol();
        let Some(answer) = self.next_answer(trouble) else {
            return Delivery::error(protocol, 400, &Said::invalid("The script is at its end."));
        };
        let cache = self.caches.entry(call.api).or_default();
        let pieces = protocol.prompt(&call.body);
        let counts = match call.api {
            Api::Messages => cache.count_marked(&pieces),
            Api::Chat | Api::Responses => cache.count_prefix(&pieces),
        };
        call.counts = answer.counts.unwrap_or(Counts { output: answer.tokens(), ..counts });
        let written = Written {
            number: call.number,
            answer: &answer,
            counts: call.counts,
            asked: &call.body,
            piece: self.settings.piece,
        };
        let delivery = Delivery::answer(protocol, &written, trouble);
        match trouble {
            Some(Trouble::Slow { .. }) => delivery,
            _ => delivery.paused(self.settings.pause),
        }
    }

    fn next_answer(&mut self, trouble: Option<&Trouble>) -> Option<Answer> {
        let uses_up = trouble.is_none_or(Trouble::brings_the_answer);
        let next = if uses_up { self.script.pop_front() } else { self.script.front().cloned() };
        let at_end = || match &self.settings.at_end {
            AtEnd::Line(line) => Some(line.as_str().into()),
            AtEnd::Error => None,
        };
        let answer = next.or_else(at_end)?;
        Some(match trouble {
            Some(Trouble::Empty) => Answer::new(),
            Some(Trouble::ArgumentsCut) => answer.with_cut_arguments(),
            _ => answer,
        })
    }
}

/// The key that a client gives.
fn key_of(received: &Received) -> &str {
    let bearer = received.header("authorization").map(|value| value.trim_start_matches("Bearer ").trim());
    received.header("x-api-key").or(bearer).unwrap_or_default()
}
