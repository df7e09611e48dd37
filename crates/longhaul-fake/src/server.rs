//! The fake itself: connections, and what is answered to whom.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::api::{Api, Protocol, Said, Written, list, mark_last, marks, model_of};
use crate::binding::{Admitted, admit};
use crate::cache::{Cache, tokens_of};
use crate::delivery::Delivery;
use crate::http::{Connection, Received};
use crate::items::Items;
use crate::log::{Call, Outcome, StaleCounts, redacted};
use crate::script::{Answer, AtEnd, Counts};
use crate::settings::Settings;
use crate::trouble::{RetryAfter, Trouble};
use crate::twin::{TopLevelMark, Twin};
use crate::window::{Size, longest_answer};

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
    items: Items,
    /// The time since the start, which passes only when a test advances it.
    now: Duration,
    log: Vec<Call>,
}

impl State {
    fn of(settings: Settings) -> Self {
        let script = settings.answers.clone().into();
        let (caches, items) = (HashMap::new(), Items::default());
        Self { settings, script, caches, items, now: Duration::ZERO, log: Vec::new() }
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

    /// Starts again with other settings on the same port: the log, the script, the cache and the clock are new.
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

    /// The thinking blocks that a twin refused, dropped or recorded because they were bound to another
    /// conversation, in all calls so far.
    pub fn stale_thinking(&self) -> StaleCounts {
        StaleCounts::of(&self.shared.state().log)
    }

    /// Lets so much time pass for the prompt cache. The fake has a clock of its own, which stands still otherwise.
    pub fn advance(&self, time: Duration) {
        self.shared.state().now += time;
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
                let protocol = Api::Messages.protocol();
                let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
                match admit(self.twin(Api::Messages), received, &body) {
                    Ok(admitted) => {
                        let tokens = tokens_of(&protocol.prompt(admitted.read.as_ref().unwrap_or(&body)));
                        Delivery::json(200, &json!({ "input_tokens": tokens }))
                    }
                    Err(refused) => Delivery::error(protocol, 400, &Said::invalid(refused.message)),
                }
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
            stale: Vec::new(),
            violation: None,
            status: 0,
            outcome: Outcome::Open,
            body: asked,
        };
        let delivery = match self.admitted(&mut call, body.is_some(), received) {
            Err(refusal) => *refusal,
            Ok(admitted) => {
                let trouble = self.settings.trouble_at(call.number).cloned();
                let takes_gzip =
                    received.header("accept-encoding").is_some_and(|kinds| kinds.contains("gzip"));
                let trouble = trouble.filter(|trouble| takes_gzip || *trouble != Trouble::Gzip);
                let instead = trouble.as_ref().and_then(|trouble| self.instead(&call, trouble, received));
                instead.unwrap_or_else(|| self.answer(&mut call, &admitted, trouble.as_ref()))
            }
        };
        call.status = delivery.status;
        self.log.push(call);
        (place, delivery)
    }

    /// The provider that is imitated over this API.
    fn twin(&self, api: Api) -> Twin {
        self.settings.twin.over(api)
    }

    /// The request as the provider accepts it, or the response that refuses it.
    fn admitted(
        &self,
        call: &mut Call,
        is_json: bool,
        received: &Received,
    ) -> Result<Admitted, Box<Delivery>> {
        let (protocol, twin) = (call.api.protocol(), self.twin(call.api));
        if let Some(refused) = self.wrong_key(protocol, received) {
            return Err(Box::new(refused));
        }
        let said = if is_json { self.violation(call, twin) } else { Some(protocol.not_json()) };
        let admitted = match (said, call.api) {
            (Some(said), _) => Err(said),
            (None, Api::Chat | Api::Responses) => Ok(Admitted::default()),
            (None, Api::Messages) => admit(twin, received, &call.body).map_err(|refused| {
                call.stale = refused.stale;
                Said::invalid(refused.message)
            }),
        };
        let admitted = admitted.map_err(|said| {
            call.violation = Some(said.message.clone());
            Box::new(self.refusal(call, &said))
        })?;
        call.stale.clone_from(&admitted.stale);
        if let Some(read) = &admitted.read {
            call.counts.prompt = tokens_of(&protocol.prompt(read));
        }
        let size = Size { prompt: call.counts.prompt, answer: longest_answer(&call.body) };
        match self.settings.window.filter(|window| twin.window.refuses(size, *window)) {
            Some(window) => Err(Box::new(self.too_long(call, size, window))),
            None => Ok(admitted),
        }
    }

    /// The response that refuses a request.
    fn refusal(&self, call: &Call, said: &Said) -> Delivery {
        let protocol = call.api.protocol();
        match call.api == Api::Responses && call.streamed && self.settings.refusals_in_stream {
            true => Delivery::stream(vec![protocol.error_event(said).text("\n")]),
            false => Delivery::error(protocol, 400, said),
        }
    }

    /// The refusal of a request that breaks a rule of the provider, whatever its size and its thinking.
    fn violation(&self, call: &Call, twin: Twin) -> Option<Said> {
        let of_items = || match call.api {
            Api::Responses => self.items.violation(twin, list(&call.body, "input")),
            Api::Chat | Api::Messages => None,
        };
        let of_settings = || self.settings.refuses.and_then(|refuses| refuses(&call.body)).map(Said::invalid);
        call.api.protocol().violation(twin, &call.body).or_else(of_items).or_else(of_settings)
    }

    fn wrong_key(&self, protocol: &dyn Protocol, received: &Received) -> Option<Delivery> {
        let wanted = self.settings.key.as_deref()?;
        let given = key_of(received);
        (given != wanted).then(|| Delivery::error(protocol, 401, &protocol.status(401, "", given)))
    }

    fn too_long(&self, call: &Call, size: Size, window: u64) -> Delivery {
        let protocol = call.api.protocol();
        let said = self.twin(call.api).window.words(protocol, size, window);
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
            Trouble::TooLong { prompt, window } => {
                let size = Size { prompt: *prompt, answer: longest_answer(&call.body) };
                Some(self.too_long(call, size, *window))
            }
            Trouble::Html => Some(Delivery::page()),
            _ => None,
        }
    }

    /// The next answer of the script.
    fn answer(&mut self, call: &mut Call, admitted: &Admitted, trouble: Option<&Trouble>) -> Delivery {
        let (protocol, twin) = (call.api.protocol(), self.twin(call.api));
        let Some(answer) = self.next_answer(trouble) else {
            return Delivery::error(protocol, 400, &Said::invalid("The script is at its end."));
        };
        let cache = self.caches.entry(call.api).or_insert_with(|| Cache::new(twin.cache));
        let mut pieces = protocol.prompt(admitted.read.as_ref().unwrap_or(&call.body));
        let counts = match call.api {
            Api::Messages => {
                if twin.cache.top_level == TopLevelMark::LastBlock {
                    mark_last(&call.body, &mut pieces);
                }
                cache.count_marked(&pieces, self.now)
            }
            Api::Chat | Api::Responses => cache.count_prefix(&pieces, self.now),
        };
        call.counts = answer.counts.unwrap_or(Counts { output: answer.tokens(), ..counts });
        let mut written = Written {
            number: call.number,
            answer: &answer,
            counts: call.counts,
            asked: &call.body,
            twin,
            signatures: Vec::new(),
            transformations: admitted.transformations.clone(),
            piece: self.settings.piece,
        };
        written.signatures = admitted.signatures(&written);
        if call.api == Api::Responses {
            self.items.remember(list(&protocol.whole(&written), "output"));
        }
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
