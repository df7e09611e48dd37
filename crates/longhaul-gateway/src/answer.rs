//! The body of an answer on its way to the client: bytes as they come, no faster than the client takes them.
//! Beside it they are read, and the desk hears once of the call's end: before the client has the last bytes,
//! so that it knows when the client's next request comes; or when the client goes away, which ends the request
//! to the provider too. A stream that ends without its closing event is broken off: a client would take a
//! clean end for a whole answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use reqwest::Body as ProviderBody;

use longhaul::{Model, Models};
use longhaul_wire::api::Api;
use serde::Deserialize;

use crate::account::Costs;
use crate::ask_usage::KeepBack;
use crate::engine::OpenCall;
use crate::figures::Counters;
use crate::hold::Rest;
use crate::reading::Reading;
use crate::scope::Scope;

/// A body that goes to a client.
pub(crate) type ClientBody = UnsyncBoxBody<Bytes, BrokenOff>;

/// The provider's answer ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer of the provider was cut off")]
pub(crate) struct BrokenOff;

/// The body of an answer.
pub(crate) struct Answer {
    /// Bytes that were held.
    first: VecDeque<Bytes>,
    rest: Rest,
    end: End,
    keep_back: Option<KeepBack>,
    ledger: Ledger,
}

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It has not ended.
    Open,
    /// What was written goes out before the connection is broken off.
    Flush,
    BrokenOff,
    Clean,
}

/// A call that is sent as it came, and that is no part of a conversation. Its answer's head carries this to the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Untouched {
    api: Api,
    model: &'static Model,
}

impl Untouched {
    /// A request with this body.
    pub(crate) fn of(api: Api, body: &str) -> Self {
        #[derive(Deserialize)]
        struct Named {
            #[serde(default)]
            model: String,
        }
        let named = serde_json::from_str::<Named>(body);
        Self { api, model: Models::builtin().find(&named.map(|named| named.model).unwrap_or_default()) }
    }
}

/// What is told when the answer is over.
pub(crate) struct Ledger {
    pub(crate) reading: Reading,
    pub(crate) call: Option<OpenCall>,
    pub(crate) answered: bool,
    pub(crate) untouched: Option<Untouched>,
    /// The scope of the request.
    pub(crate) scope: Option<Scope>,
    pub(crate) counters: Arc<Counters>,
    is_closed: bool,
}

impl Ledger {
    /// `answered` is false for an answer that is an error.
    pub(crate) fn new(
        reading: Reading,
        call: Option<OpenCall>,
        answered: bool,
        counters: Arc<Counters>,
    ) -> Self {
        Self { reading, call, answered, untouched: None, scope: None, counters, is_closed: false }
    }

    /// Tells what the answer cost, once.
    fn close(&mut self) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        let mut heard = self.reading.heard();
        heard.called.scope = self.scope;
        heard.usage.iter().for_each(|usage| self.counters.billed(usage));
        if let Some((Untouched { api, model }, usage)) = self.untouched.zip(heard.usage.as_ref()) {
            self.counters.books.add(api, model, Costs::of_untouched(usage.into(), model.price));
        }
        if let Some(call) = self.call.take() {
            if self.answered {
                self.counters.call(&call.brief, heard.usage.as_ref());
            }
            call.answered(heard);
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.close();
    }
}

impl Answer {
    pub(crate) fn new(
        first: VecDeque<Bytes>,
        rest: Rest,
        keep_back: Option<KeepBack>,
        ledger: Ledger,
    ) -> Self {
        Self { first, rest, end: End::Open, keep_back, ledger }
    }

    /// The next piece of the provider; `None` at the end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(piece) = self.first.pop_front() {
            return Poll::Ready(Some(piece));
        }
        loop {
            let Rest::Open(body) = &mut self.rest else { return Poll::Ready(None) };
            match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    // Trailers belong to the connection.
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(piece));
                    }
                }
                Some(Err(_)) => self.rest = Rest::Broke,
                None => self.rest = Rest::Ended,
            }
        }
    }

    /// True if nothing comes behind what was taken.
    fn is_at_end(&self) -> bool {
        let ended = match &self.rest {
            Rest::Open(body) => ProviderBody::is_end_stream(body),
            Rest::Ended => true,
            Rest::Broke => false,
        };
        ended && self.first.is_empty()
    }

    /// The provider's bytes are at their end.
    fn ends(&mut self) -> End {
        let broke = matches!(self.rest, Rest::Broke);
        if broke || self.ledger.reading.is_cut() {
            self.ledger.counters.cut();
            End::Flush
        } else {
            End::Clean
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        loop {
            match self.end {
                End::Open => {}
                End::Flush => {
                    self.end = End::BrokenOff;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                End::BrokenOff => return Poll::Ready(Some(Err(BrokenOff))),
                End::Clean => return Poll::Ready(None),
            }
            let passed = match ready!(self.poll_piece(context)) {
                Some(piece) => {
                    if self.ledger.reading.push(&piece) || self.is_at_end() {
                        self.ledger.close();
                    }
                    match &mut self.keep_back {
                        Some(keep_back) => keep_back.pass(&piece),
                        None => piece,
                    }
                }
                None => {
                    self.end = self.ends();
                    self.ledger.close();
                    self.keep_back.as_mut().map(KeepBack::rest).unwrap_or_default()
                }
            };
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }
}
