//! The life of a request: let in, read, decided, sent, held until an overflow can be told, and answered as the
//! provider answers.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue, UPGRADE};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming as ClientRequestBody;
use longhaul_inspector::Inspector;
use longhaul_store::SessionId;
use longhaul_wire::api::{Api, BlockPlace, SharedText, signed_thinking};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::another_form::{FormVerdict, concerns_form};
use crate::answer::{Answer, ClientBody, Ledger};
use crate::ask_usage::KeepBack;
use crate::connections::Connection;
use crate::desk::{Incoming, Reason, ToolCaller};
use crate::door::{Door, Guest, WrongHost};
use crate::engine::{Engine, OpenCall, Verdict};
use crate::figures::Counters;
use crate::headers;
use crate::hold::{Held, Patience, Said};
use crate::intake::{self, Chained, NoBody, Taken};
use crate::origin::{self, Origins};
use crate::packing::{NotUnpacked, packings, unpacked};
use crate::reading::Reading;
use crate::report::Report;
use crate::room::{Place, Room};
use crate::route::{Route, Side};
use crate::scope::{self, Scope};
use crate::settings::Limits;
use crate::shorter_answer;
use crate::transformations::Transformation;
use crate::upstream::Upstream;
use crate::words;

/// What a request without the token is told.
const NO_TOKEN: &str =
    "longhaul: the gateway's token is missing or wrong; `longhaul env AGENT` prints addresses that have it";

/// A call is sent again so often at most.
const MOST_RESENT: u64 = 2;

/// Bytes of a message to our tools.
const MOST_OF_A_MESSAGE: usize = 1 << 20;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) door: Door,
    pub(crate) origins: Origins,
    pub(crate) engine: Engine,
    pub(crate) upstream: Upstream,
    pub(crate) inspector: Option<Arc<Inspector>>,
    pub(crate) counters: Arc<Counters>,
    /// The clients' own bytes are sent, whatever is decided.
    pub(crate) observes: bool,
    pub(crate) changing: RwLock<Arc<Changing>>,
    /// So many bodies are unpacked at once: each may take as much memory as a body may have.
    pub(crate) unpacking: Semaphore,
    /// Tells keys apart without keeping any.
    pub(crate) accounts: RandomState,
    /// The provider of OpenAI Chat refused to be asked for usage. It is not asked again.
    pub(crate) no_usage: AtomicBool,
}

/// What may change while requests are served. Each request goes by what it finds when it comes.
pub(crate) struct Changing {
    pub(crate) limits: Limits,
    pub(crate) room: Room,
}

impl Changing {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { room: Room::new(limits.bodies_bytes, limits.room_wait), limits }
    }
}

/// A request that was let in and read.
pub(crate) struct Asked {
    pub(crate) api: Api,
    pub(crate) parts: Parts,
    tenant: Arc<str>,
}

/// Answers a request.
pub(crate) async fn serve(shared: Arc<Shared>, request: Request<ClientRequestBody>) -> Response<ClientBody> {
    let (mut parts, body) = request.into_parts();
    let entered = shared.door.enter(&mut parts);
    scope::take(&mut parts);
    let route = Route::of(&parts.method, &parts.uri, &parts.headers);
    let mut report = Report::default();
    let connection = parts.extensions.remove::<Arc<Connection>>();
    if let (Route::Inspect, Ok(guest)) = (route, &entered) {
        return shared.inspect(guest, parts, body, connection).await;
    }
    let answered = match shared.own_answer(entered, route, &parts) {
        Ok(_) if route != Route::Ready && !is_admitted(connection).await => Err(Box::new(full(route.side()))),
        Ok(tenant) => shared.refuse_foreign(route, &parts).map(|()| tenant),
        Err(answer) => Err(answer),
    };
    let response = match answered {
        Err(response) => {
            intake::discard(body).await;
            *response
        }
        Ok(tenant) => match route {
            Route::Model(api) => shared.model(Asked { api, parts, tenant }, body, &mut report).await,
            Route::Count => shared.count(Asked { api: Api::Anthropic, parts, tenant }, body).await,
            Route::Tools => shared.tools(tenant, &parts, body).await,
            Route::Ready => match shared.engine.ready().await {
                Ok(()) => words::text(StatusCode::OK, "text/plain", "ready\n".to_owned()),
                Err(why) => words::text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("{why}\n")),
            },
            _ => shared.pass(route.side(), &parts, reqwest::Body::wrap(Chained::unread(body))).await,
        },
    };
    shared.log(route, response.status(), &report);
    response
}

impl Shared {
    pub(crate) fn changing(&self) -> Arc<Changing> {
        self.changing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whose request it is; or what we answer ourselves.
    fn own_answer(
        &self,
        entered: Result<Guest, WrongHost>,
        route: Route,
        parts: &Parts,
    ) -> Result<Arc<str>, Box<Response<ClientBody>>> {
        let refuse = |status, says| words::error(route.side(), status, says);
        let text = |text: &str| words::text(StatusCode::OK, "text/plain; version=0.0.4", text.to_owned());
        let answer = match (entered, route) {
            (Err(WrongHost), _) => refuse(
                StatusCode::FORBIDDEN,
                "longhaul: this gateway is asked as localhost or 127.0.0.1 only",
            ),
            (Ok(_), _) if self.origins.refuse(&parts.headers) => {
                refuse(StatusCode::FORBIDDEN, origin::REFUSED)
            }
            (Ok(_), Route::Health) => text("alive\n"),
            (Ok(guest), route) if !self.door.lets(&guest, route) => {
                refuse(StatusCode::UNAUTHORIZED, NO_TOKEN)
            }
            (Ok(guest), Route::Ready) => return Ok(guest.tenant),
            (Ok(_), Route::Metrics) => text(&self.counters.figures().prometheus()),
            (Ok(_), Route::WebSocket) => {
                let says = "longhaul: no WebSocket here; send the request by POST";
                let mut response = refuse(StatusCode::UPGRADE_REQUIRED, says);
                response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
                response
            }
            (Ok(_), _) if parts.method == Method::CONNECT => {
                refuse(StatusCode::METHOD_NOT_ALLOWED, "longhaul: no tunnels here")
            }
            (Ok(guest), Route::Model(_) | Route::Count | Route::Tools | Route::Inspect | Route::Other(_)) => {
                return Ok(guest.tenant);
            }
        };
        Err(Box::new(answer))
    }

    /// A question to the inspector. It says itself what a guest without the token may see.
    async fn inspect(
        &self,
        guest: &Guest,
        parts: Parts,
        body: ClientRequestBody,
        connection: Option<Arc<Connection>>,
    ) -> Response<ClientBody> {
        let Some(inspector) = self.inspector.clone() else {
            return words::error(Side::OpenAi, StatusCode::NOT_FOUND, "longhaul: there is no inspector here");
        };
        let may_look = guest.has_token || inspector.access().has_cookie(&parts.headers);
        if may_look && !is_admitted(connection).await {
            return full(Side::OpenAi);
        }
        let guest =
            longhaul_inspector::Guest { tenant: Some(guest.tenant.clone()), has_token: guest.has_token };
        let answer = longhaul_inspector::serve(inspector, guest, Request::from_parts(parts, body)).await;
        answer.map(|body| body.map_err(|never| match never {}).boxed_unsync())
    }

    /// A request to a model.
    async fn model(
        &self,
        asked: Asked,
        body: ClientRequestBody,
        report: &mut Report,
    ) -> Response<ClientBody> {
        let side = Side::of(asked.api);
        let Changing { limits, room } = &*self.changing();
        // The room is free again when the answer begins: from there on nothing of the request is needed.
        let (body, mut place) = match intake::take(body, limits.body_bytes, limits.body_wait, room).await {
            Ok(Taken::Whole(body, place)) => (body, place),
            Ok(Taken::Long(body)) => {
                let body = reqwest::Body::wrap(body);
                return self.pass_on(&asked, body, Reason::Unreadable, report).await;
            }
            Ok(Taken::NoRoom(body)) => {
                let body = reqwest::Body::wrap(body);
                return self.pass_on(&asked, body, Reason::NoRoom, report).await;
            }
            Err(no_body) => return refuse_body(side, no_body),
        };
        report.read = Some(Instant::now());
        let (body, incoming) = self.incoming(&asked, body, limits.body_bytes, &mut place).await;
        let incoming = match incoming {
            Ok(incoming) => incoming,
            Err(reason) => {
                let bodies = Bodies { body, plain: SharedText::default() };
                return self.pass_on_whole(&asked, None, bodies, reason, report).await;
            }
        };
        let bodies = Bodies { body, plain: incoming.body.clone() };
        // The desk may go on with it when the answer has begun.
        let place = Arc::new(place);
        match self.engine.decide(incoming.clone(), place.clone()).await {
            Verdict::PassOn(reason @ Reason::NewThread) if asked.api == Api::Anthropic && !self.observes => {
                self.counters.passed_on(reason);
                report.passed_on = Some(reason);
                let mut response = words::no_threads();
                headers::say_passed_on(response.headers_mut(), reason);
                response
            }
            Verdict::PassOn(reason) => self.undecided(&asked, incoming, bodies, reason, report).await,
            Verdict::Send(call) => self.converse(&asked, *call, bodies, limits.patience(), report).await,
        }
    }

    /// The body as it came, and what the desk sees of it, or why it sees nothing. A body that was not compressed is in
    /// memory once for both.
    async fn incoming(
        &self,
        asked: &Asked,
        body: Vec<u8>,
        most: usize,
        place: &mut Place,
    ) -> (Bytes, Result<Incoming, Reason>) {
        let packings = packings(&asked.parts.headers);
        let (body, text) = match packings.is_empty() {
            true => match String::from_utf8(body).map(SharedText::from) {
                Ok(text) => (Bytes::from_owner(text.clone()), Ok(text)),
                Err(error) => (Bytes::from(error.into_bytes()), Err(Reason::Unreadable)),
            },
            false => {
                let body = Bytes::from(body);
                let text = self.unpacked(body.clone(), packings, most, place).await;
                (body, text)
            }
        };
        if headers::is_subscription(&asked.parts.headers) {
            self.counters.books.has_subscription();
        }
        let headers = headers::without_keys(&asked.parts.headers);
        let upstream = self.upstream.shown(Side::of(asked.api), &asked.parts);
        let account = headers::account(&asked.parts.headers).map(|account| self.accounts.hash_one(account));
        let (tenant, api) = (asked.tenant.clone(), asked.api);
        let incoming = |body| Incoming { tenant, api, upstream, headers, account, body };
        (body, text.map(incoming))
    }

    /// The text of a body that came compressed; or why there is none.
    async fn unpacked(
        &self,
        body: Bytes,
        packings: Vec<String>,
        most: usize,
        place: &mut Place,
    ) -> Result<SharedText, Reason> {
        let _turn = self.unpacking.acquire().await.map_err(|_| Reason::Unreadable)?;
        let mut own = place.take();
        let unpacked = tokio::task::spawn_blocking(move || {
            let unpacked = unpacked(&body, &packings, most, &mut own);
            (own, unpacked)
        });
        let (own, unpacked) = unpacked.await.map_err(|_| Reason::Unreadable)?;
        *place = own;
        let unpacked = unpacked.map_err(|why| match why {
            NotUnpacked::Unreadable => Reason::Unreadable,
            NotUnpacked::NoRoom => Reason::NoRoom,
        })?;
        String::from_utf8(unpacked.into()).map(SharedText::from).map_err(|_| Reason::Unreadable)
    }

    /// Reads what the provider reports of thinking in a request, counts it, and has the answer name the client's messages.
    pub(crate) fn read_transformations(
        &self,
        held: &mut Held,
        sent: &[u8],
        came: &str,
        session: Option<SessionId>,
    ) {
        let new = self.counters.transformed(held.read_transformations(sent, came));
        let mut blocks: BTreeMap<_, u64> = BTreeMap::new();
        for Transformation { kind, reason, .. } in new {
            *blocks.entry((kind, reason)).or_default() += 1;
        }
        let session = session.map(tracing::field::display);
        for ((kind, reason), blocks) in blocks {
            tracing::warn!(session, kind, reason, blocks, "the provider reports on thinking in a request");
        }
    }

    /// Passes a request to a model on as it came.
    async fn pass_on(
        &self,
        asked: &Asked,
        body: reqwest::Body,
        reason: Reason,
        report: &mut Report,
    ) -> Response<ClientBody> {
        report.passed_on = Some(reason);
        self.counters.passed_on(reason);
        let headers = headers::onward(&asked.parts.headers, headers::Body::Own);
        self.time(asked.api, report);
        let mut response = match self.send(asked, headers, body).await {
            Ok(response) => self.answer(asked.api, Held::nothing(response), None, None),
            Err(refused) => refused,
        };
        headers::say_passed_on(response.headers_mut(), reason);
        response
    }

    /// Sends a call of a known conversation, and again if it is too long.
    pub(crate) async fn converse(
        &self,
        asked: &Asked,
        mut call: OpenCall,
        bodies: Bodies,
        patience: Patience,
        report: &mut Report,
    ) -> Response<ClientBody> {
        // The answer to the form that was sent first, if it was refused.
        let mut first_refusal = None;
        loop {
            let brief = call.brief;
            report.sent = Some(brief);
            self.goes_out(&call);
            let sent = self.outgoing(asked.api, &call, &bodies);
            let mut headers = headers::onward(&asked.parts.headers, sent.form);
            headers::ask_for_plain(&mut headers);
            self.time(asked.api, report);
            let outgoing = sent.body.clone();
            let mut response = match self.send(asked, headers, sent.body.into()).await {
                Ok(response) => {
                    let (mut held, said) = Held::until_known(asked.api, response, patience).await;
                    if asked.api == Api::Anthropic {
                        self.read_transformations(&mut held, &outgoing, &bodies.plain, Some(brief.session));
                    }
                    let keep_back = sent.asks_usage.then(KeepBack::default);
                    match said {
                        // A refusal is the client's own, too.
                        _ if brief.is_observed => self.answer(asked.api, held, Some(call), keep_back),
                        Said::NoSuchOption if sent.asks_usage => {
                            self.no_usage.store(true, Ordering::Relaxed);
                            self.counters.resent("usage-option");
                            continue;
                        }
                        said if concerns_form(&call, &said) => {
                            let is_of_ours = call.is_in_a_form_of_ours() && matches!(said, Said::Refused(_));
                            match self.in_another_form(call, said, held.head.status, &mut report.resent).await
                            {
                                FormVerdict::Send(next) => {
                                    first_refusal.get_or_insert(held);
                                    call = next;
                                    continue;
                                }
                                FormVerdict::Answer(call) => {
                                    // What is wrong with another form of ours is nothing to the client.
                                    let first = first_refusal.take().filter(|_| is_of_ours);
                                    self.answer(asked.api, first.unwrap_or(held), call, keep_back)
                                }
                            }
                        }
                        Said::WrongThinking(from)
                            if !report.without_thinking && !asks_for_error(&bodies.plain) =>
                        {
                            report.without_thinking = true;
                            let from = from.and_then(|from| seal_at(&outgoing, from));
                            match call.refused_thinking(from).await {
                                Some(next) => {
                                    tracing::warn!(session = %brief.session, "thinking was refused: sending the call without it");
                                    report.resent += 1;
                                    self.counters.resent("thinking");
                                    call = next;
                                    continue;
                                }
                                None => self.answer(asked.api, held, None, keep_back),
                            }
                        }
                        Said::TooLong(overflow) if report.resent < MOST_RESENT => {
                            match call.overflowed(overflow).await {
                                Some(next) => {
                                    report.resent += 1;
                                    self.counters.resent("too-long");
                                    call = next;
                                    continue;
                                }
                                None => self.answer(asked.api, held, None, keep_back),
                            }
                        }
                        Said::TooLong(overflow) => {
                            call.refused(overflow);
                            self.answer(asked.api, held, None, keep_back)
                        }
                        _ => self.answer(asked.api, held, Some(call), keep_back),
                    }
                }
                Err(refused) => refused,
            };
            headers::say_sent(response.headers_mut(), &brief);
            return response;
        }
    }

    /// Notes how long our own part took, once.
    pub(crate) fn time(&self, api: Api, report: &mut Report) {
        if let Some(read) = report.read.take() {
            report.own_time = read.elapsed();
            self.counters.own_time(api.name(), report.own_time);
        }
    }

    /// What is sent for a call.
    fn outgoing(&self, api: Api, call: &OpenCall, bodies: &Bodies) -> Outgoing {
        if call.brief.is_observed {
            return Outgoing { body: bodies.body.clone(), form: headers::Body::Own, asks_usage: false };
        }
        let plain: &[u8] = call.body.as_ref().map_or(bodies.plain.as_ref(), |body| body);
        let shorter = call.brief.shorter_answer.and_then(|most| shorter_answer::within(plain, most));
        let plain: &[u8] = shorter.as_ref().map_or(plain, |body| body);
        let may_ask = api == Api::Chat && !self.no_usage.load(Ordering::Relaxed);
        if let Some(body) = may_ask.then(|| call.asking.within(plain)).flatten() {
            return Outgoing { body, form: headers::Body::Plain, asks_usage: true };
        }
        match shorter.as_ref().or(call.body.as_ref()) {
            Some(body) => Outgoing { body: body.clone(), form: headers::Body::Plain, asks_usage: false },
            None => Outgoing { body: bodies.body.clone(), form: headers::Body::Own, asks_usage: false },
        }
    }

    pub(crate) async fn send(
        &self,
        asked: &Asked,
        headers: http::HeaderMap,
        body: reqwest::Body,
    ) -> Result<Response<reqwest::Body>, Response<ClientBody>> {
        let (side, parts) = (Side::of(asked.api), &asked.parts);
        let sent = self.upstream.send(side, parts, headers, body).await;
        let mut response = sent.map_err(|says| unreachable(side, &says))?;
        // The head of an answer carries the scope to where the answer is read.
        Scope::of(&parts.headers).into_iter().for_each(|scope| _ = response.extensions_mut().insert(scope));
        Ok(response)
    }

    /// The answer of a provider, on its way to the client.
    pub(crate) fn answer(
        &self,
        api: Api,
        held: Held,
        call: Option<OpenCall>,
        keep_back: Option<KeepBack>,
    ) -> Response<ClientBody> {
        let Held { head, first, rest } = held;
        let is_ok = head.status == StatusCode::OK;
        let keep_back = keep_back.filter(|_| is_ok);
        let mut headers = headers::back(&head.headers);
        if keep_back.is_some() {
            headers.remove(CONTENT_LENGTH);
        }
        // It is not sent again: what it was made of is not needed any longer.
        let call = call.map(OpenCall::settled);
        let mut ledger = Ledger::new(Reading::of(api, &head), call, is_ok, self.counters.clone());
        ledger.untouched = head.extensions.get().copied();
        ledger.scope = head.extensions.get().copied();
        let mut response = Response::new(Answer::new(first, rest, keep_back, ledger).boxed_unsync());
        *response.status_mut() = head.status;
        *response.headers_mut() = headers;
        response
    }

    /// The size of a conversation, by us if we know it, else by the provider.
    async fn count(&self, asked: Asked, body: ClientRequestBody) -> Response<ClientBody> {
        let Changing { limits, room } = &*self.changing();
        let (body, mut place) = match intake::take(body, limits.body_bytes, limits.body_wait, room).await {
            Ok(Taken::Whole(body, place)) => (body, place),
            Ok(Taken::Long(body) | Taken::NoRoom(body)) => {
                return self.pass(Side::Anthropic, &asked.parts, reqwest::Body::wrap(body)).await;
            }
            Err(no_body) => return refuse_body(Side::Anthropic, no_body),
        };
        let (body, incoming) = self.incoming(&asked, body, limits.body_bytes, &mut place).await;
        let Ok(incoming) = incoming else {
            return self.pass(Side::Anthropic, &asked.parts, body.into()).await;
        };
        let plain = incoming.body.clone();
        if let Some(tokens) = self.engine.count(incoming.clone()).await {
            return words::json(StatusCode::OK, serde_json::json!({ "input_tokens": tokens.0 }).to_string());
        }
        // The provider checks thinking as it does in a request to a model.
        let keep = match thinks(asked.api, &plain) {
            true => self.engine.thinking_outside(incoming, Reason::Off).await,
            false => None,
        };
        let bodies = Bodies { body, plain };
        match self.send_whole(&asked, &bodies, keep, false, &mut Report::default()).await {
            Ok((held, _)) => passed(held, self.counters.clone()),
            Err(refused) => refused,
        }
    }

    /// A message to our tools.
    async fn tools(&self, tenant: Arc<str>, parts: &Parts, body: ClientRequestBody) -> Response<ClientBody> {
        let refuse = |status, says| words::error(Side::OpenAi, status, says);
        if parts.method != Method::POST {
            // There is nothing that we would say unasked.
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "longhaul: messages to tools come by POST");
        }
        let Changing { limits, room } = &*self.changing();
        let (body, _place) = match intake::take(body, MOST_OF_A_MESSAGE, limits.body_wait, room).await {
            Ok(Taken::Whole(body, place)) => (body, place),
            Ok(Taken::NoRoom(_)) => {
                return refuse(StatusCode::SERVICE_UNAVAILABLE, "longhaul: there are too many requests now");
            }
            Ok(Taken::Long(_)) => {
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, "longhaul: the message is too long");
            }
            Err(no_body) => return refuse_body(Side::OpenAi, no_body),
        };
        let message = String::from_utf8_lossy(&body).into_owned();
        match self.engine.tools(ToolCaller::of(tenant, &parts.headers), message).await {
            Ok(Some(answer)) => words::json(StatusCode::OK, answer.to_string()),
            Ok(None) => words::text(StatusCode::ACCEPTED, "text/plain", String::new()),
            Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "longhaul: the tools cannot answer now"),
        }
    }

    /// Passes on what is no request to a model.
    async fn pass(&self, side: Side, parts: &Parts, body: reqwest::Body) -> Response<ClientBody> {
        let headers = headers::onward(&parts.headers, headers::Body::Own);
        match self.upstream.send(side, parts, headers, body).await {
            Ok(response) => passed(Held::nothing(response), self.counters.clone()),
            Err(says) => unreachable(side, &says),
        }
    }
}

/// A connection whose request is let in takes a slot. False if too many wait for one.
async fn is_admitted(connection: Option<Arc<Connection>>) -> bool {
    match connection {
        Some(connection) => connection.admit().await.is_ok(),
        None => true,
    }
}

fn full(side: Side) -> Response<ClientBody> {
    let says =
        "longhaul: too many connections wait here (`gateway.connections` says how many are served at once)";
    words::error(side, StatusCode::SERVICE_UNAVAILABLE, says)
}

/// True if a request may have thinking that its provider checks.
pub(crate) fn thinks(api: Api, body: &str) -> bool {
    api == Api::Anthropic && (body.contains("\"signature\"") || body.contains("\"redacted_thinking\""))
}

/// The signature of the thinking at a place of a body.
fn seal_at(body: &[u8], at: BlockPlace) -> Option<String> {
    let signed = signed_thinking(std::str::from_utf8(body).ok()?);
    signed.into_iter().find(|(place, _)| *place == at).map(|(_, seal)| seal)
}

/// How many messages with signed thinking stand before a place of a body.
pub(crate) fn thinking_before(body: &str, place: BlockPlace) -> usize {
    let signed = signed_thinking(body).into_iter().map(|(place, _)| place.message);
    signed.filter(|message| *message < place.message).collect::<BTreeSet<_>>().len()
}

/// An answer that nobody reads, on its way to the client.
fn passed(held: Held, counters: Arc<Counters>) -> Response<ClientBody> {
    let Held { head, first, rest } = held;
    let ledger = Ledger::new(Reading::Blind(None), None, false, counters);
    let mut response = Response::new(Answer::new(first, rest, None, ledger).boxed_unsync());
    *response.status_mut() = head.status;
    *response.headers_mut() = headers::back(&head.headers);
    response
}

/// True if the client wants to be told that thinking does not follow what produced it, by an error.
pub(crate) fn asks_for_error(body: &str) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Body {
        thinking: Thinking,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Thinking {
        block_binding: Binding,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Binding {
        prefix_mismatch_behavior: String,
    }
    let body: Body = serde_json::from_str(body).unwrap_or_default();
    body.thinking.block_binding.prefix_mismatch_behavior == "error"
}

/// A body as the client sent it, and without its compression.
pub(crate) struct Bodies {
    pub(crate) body: Bytes,
    pub(crate) plain: SharedText,
}

/// What goes to the provider.
struct Outgoing {
    body: Bytes,
    form: headers::Body,
    /// We ask for usage, and the client does not.
    asks_usage: bool,
}

fn refuse_body(side: Side, why: NoBody) -> Response<ClientBody> {
    match why {
        NoBody::Slow => {
            words::error(side, StatusCode::REQUEST_TIMEOUT, "longhaul: the body of the request did not come")
        }
        NoBody::Broken => {
            words::error(side, StatusCode::BAD_REQUEST, "longhaul: the body of the request cannot be read")
        }
    }
}

fn unreachable(side: Side, says: &str) -> Response<ClientBody> {
    words::error(side, StatusCode::BAD_GATEWAY, &format!("longhaul: the provider does not answer: {says}"))
}
