//! What if: the same log under another profile or window, call by call, beside what was. What the host said and when
//! requests were sent is that of the journal; what was decided is decided anew. No model is asked: the extractor
//! writes summaries.

use std::sync::Arc;

use longhaul::conversation::{Fact, FactKind};
use longhaul::session::journal::{Allowed, SentRequest};
use longhaul::size::Billed;
use longhaul::{Cursor, Entry, Known, Message, Meter, Model, Prepared, Profile, Role, Session, Tokens, Why};
use longhaul_lab::needs::{Found, Holdings, Needs, text_of};
use longhaul_lab::pieces::{PieceCache, is_recallable};
use serde::Serialize;

use crate::cost::Bill;
use crate::error::Refused;

/// A session as it was, and as it would have been.
#[derive(Debug, Serialize)]
pub struct WhatIf {
    /// As it was.
    pub a: Side,
    /// As it would have been.
    pub b: Side,
}

/// A session under one profile and window. Costs are expected ones on both sides, so that they compare.
#[derive(Debug, Default, Serialize)]
pub struct Side {
    /// The profile; of what was, the one by which it is looked at.
    pub profile: String,
    /// Tokens that fit.
    pub window: u64,
    /// How many calls there are.
    pub calls: usize,
    /// Calls for which nothing could be sent.
    pub errors: usize,
    /// Tokens of each request; null where nothing could be sent.
    pub view: Vec<Option<u64>>,
    /// Tokens of the whole log at each call.
    pub full: Vec<u64>,
    /// Tokens that were sent, over all calls.
    pub sent: u64,
    /// The largest request.
    pub peak: u64,
    /// What prompts cost, in dollars.
    pub usd: Option<f64>,
    /// What prompts cost, in tokens: what is read counts 0.1, the rest 1.25.
    pub cost: u64,
    /// The cost as a share of what sending the whole log at each call costs.
    pub share: Option<f64>,
    /// How often something was compacted.
    pub compactions: usize,
    /// Edits that were made, those of messages that came included.
    pub edits: usize,
    /// Requests that did not extend the one before.
    pub breaks: usize,
    /// What was kept of what was needed later.
    pub kept: KeptShares,
}

/// Of what calls needed, the shares that were in their requests (docs/measuring.md). Null where nothing was needed.
#[derive(Debug, Default, Serialize)]
pub struct KeptShares {
    /// Of needs from far back that stood in a telling line, those whose whole line was there.
    pub in_line: Option<f64>,
    /// Of needs from far back, those that were there.
    pub retention: Option<f64>,
    /// Of needs of the newest steps, those that were there.
    pub near: Option<f64>,
    /// Of needs from far back, those that were there or under a handle.
    pub reachable: Option<f64>,
}

impl WhatIf {
    pub(crate) fn of(session: &Session, profile: Profile, window: Option<u64>) -> Result<Self, Refused> {
        let entries: Vec<Entry> = session.since(Cursor(0)).cloned().collect();
        let window = Tokens(window.unwrap_or(session.budget().window.0));
        let mut was = Tally::default();
        let known = || Known { sizes: session.snapshots(), store: None };
        Session::retrace(session.profile().clone(), entries.iter().cloned(), known(), |session, entry| {
            match entry {
                Entry::Sent(sent) => was.sent(session, Some(Request::of(sent))),
                Entry::Message(message) => was.message(session, message),
                _ => {}
            }
        })?;
        let mut would = Replayed::new(session, profile.clone(), window);
        entries.iter().for_each(|entry| would.take(entry));
        let a = was.side(session.profile(), session.budget().window, session);
        let Replayed { session, tally, .. } = would;
        Ok(Self { a, b: tally.side(&profile, window, &session) })
    }
}

/// What a request was expected to be billed.
struct Request {
    prompt: Tokens,
    billed: Billed,
    broke: bool,
}

impl Request {
    fn of(sent: &SentRequest) -> Self {
        let read = if sent.cold { Tokens::ZERO } else { sent.billed.read.min(sent.prompt) };
        let billed = Billed { read, written: sent.prompt - read };
        Self { prompt: sent.prompt, billed, broke: sent.broke }
    }
}

/// A session that the journal of another is taken through.
struct Replayed {
    session: Session,
    window: Tokens,
    tally: Tally,
}

impl Replayed {
    fn new(of: &Session, profile: Profile, window: Tokens) -> Self {
        let first = of.journal().get(Cursor(0));
        let model: Model = match first {
            Some(Entry::Began { model, .. }) => (**model).clone(),
            _ => of.model().clone(),
        };
        let session = Session::new(profile, model.clone()).with_window(window);
        // Both count by what was learnt in the end: sizes differ by what was decided, not by what was known when.
        let session = match of.meter().calibration() {
            Some(calibration) if of.model().name == model.name => {
                session.with_meter(Meter::calibrated(&model, calibration.clone()))
            }
            Some(_) => session,
            None => session.with_meter(Meter::neutral()),
        };
        Self { session, window, tally: Tally::default() }
    }

    fn take(&mut self, entry: &Entry) {
        let session = &mut self.session;
        match entry {
            Entry::Message(message) => {
                self.tally.message(session, message);
                session.push(message.clone());
            }
            Entry::Fact(fact) => note(session, fact),
            Entry::Frame(frame) => session.set_frame((**frame).clone()),
            Entry::MaxOutput(Some(tokens)) => session.set_max_output(*tokens),
            Entry::Limited(Allowed { max_output, cache_lifetime_s, .. }) => {
                max_output.iter().for_each(|tokens| session.set_max_output(*tokens));
                cache_lifetime_s.iter().for_each(|seconds| session.set_cache_lifetime(*seconds));
            }
            Entry::Switched { model, seals } => {
                session.switch((**model).clone(), *seals);
                session.set_window(self.window);
            }
            Entry::Task(task) => session.set_task(*task),
            Entry::RecallBy(by) => session.set_recall(by.clone()),
            Entry::Unattended(unattended) => session.set_unattended(*unattended),
            Entry::Sent(sent) => {
                let request = match session.prepare(sent.time) {
                    Ok(Prepared::Send(_)) => last_request(session),
                    Ok(Prepared::Summarise(_)) | Err(_) => None,
                };
                self.tally.sent(session, request);
            }
            // What was decided is decided anew, and what was reported is of other requests.
            _ => {}
        }
    }
}

/// The request that was just prepared.
fn last_request(session: &Session) -> Option<Request> {
    let sent = session.sent()?;
    let prompt = session.size().tokens;
    let read = if sent.cold { Tokens::ZERO } else { sent.billed.read.min(prompt) };
    Some(Request { prompt, billed: Billed { read, written: prompt - read }, broke: sent.broke })
}

/// Says to a session what its host said.
fn note(session: &mut Session, fact: &Fact) {
    let text = fact.text.as_deref();
    match (fact.kind, text) {
        (FactKind::Goal, Some(text)) => session.set_goal(text),
        (FactKind::Pin, Some(text)) => session.pin(fact.key.clone(), text),
        (FactKind::Pin, None) => session.unpin(fact.key.clone()),
        (FactKind::Memory, Some(text)) => session.remember(fact.key.clone(), text),
        (FactKind::Rules, text) => session.set_rules(fact.key.clone(), text),
        (FactKind::Todos, text) => session.set_todos(text),
        (FactKind::GitStat, text) => session.set_git_stat(text),
        (FactKind::Stack, text) => session.set_stack(text),
        (FactKind::Environment, text) => session.set_environment(text),
        // Nobody takes these back.
        (FactKind::Goal | FactKind::Memory, None) => {}
    }
}

/// What is added up while a session goes on.
struct Tally {
    side: Side,
    cost_milli: u64,
    full_milli: u64,
    usd: f64,
    is_priced: bool,
    full_before: Tokens,
    edits_seen: usize,
    needs: Needs,
    pieces: PieceCache,
    held: Holdings,
    /// A request was sent, and its answer has not come.
    is_open: bool,
    found: Found,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            side: Side::default(),
            cost_milli: 0,
            full_milli: 0,
            usd: 0.0,
            is_priced: false,
            full_before: Tokens::ZERO,
            edits_seen: 0,
            needs: Needs::new(|_| 0.0),
            pieces: PieceCache::default(),
            held: Holdings::default(),
            is_open: false,
            found: Found::default(),
        }
    }
}

impl Tally {
    /// A request was sent, or none could be.
    fn sent(&mut self, session: &Session, request: Option<Request>) {
        let full = session.meter().estimate(session.full()).tokens;
        let before = self.full_before.min(full);
        let whole = Billed { read: before, written: full - before };
        self.full_milli = self.full_milli.saturating_add(whole.cost_milli());
        self.full_before = full;
        self.side.full.push(full.0);
        self.side.view.push(request.as_ref().map(|request| request.prompt.0));
        let new = session.ledger().edits().skip(self.edits_seen);
        self.side.compactions += usize::from(new.into_iter().any(|(edit, _)| edit.why != Why::Entry));
        self.edits_seen = session.ledger().next_id().0 as usize;
        self.is_open = request.is_some();
        let Some(request) = request else {
            self.side.errors += 1;
            return;
        };
        self.side.sent = self.side.sent.saturating_add(request.prompt.0);
        self.side.peak = self.side.peak.max(request.prompt.0);
        self.side.breaks += usize::from(request.broke);
        self.cost_milli = self.cost_milli.saturating_add(request.billed.cost_milli());
        if let Some(price) = session.model().price {
            self.is_priced = true;
            self.usd += Bill::of_prompt(request.prompt, request.billed.read, session.model()).usd(&price);
        }
        let view = self.pieces.of_view(session.view(), &mut self.needs);
        self.held.change(view.kept, &view.parts, view.tail);
    }

    /// A message comes: an answer says what it needed of the request before it.
    fn message(&mut self, session: &Session, message: &Arc<Message>) {
        if message.role() == Role::Assistant && std::mem::take(&mut self.is_open) {
            self.found.add(self.held.judge(&self.needs, message, |at| is_recallable(session, at)));
        }
        self.needs.push(message, &text_of(message));
    }

    fn side(self, profile: &Profile, window: Tokens, session: &Session) -> Side {
        Side {
            profile: profile.name.to_string(),
            window: window.0,
            calls: self.side.view.len(),
            usd: self.is_priced.then_some(self.usd),
            cost: self.cost_milli.div_ceil(1_000),
            share: (self.full_milli > 0).then(|| self.cost_milli as f64 / self.full_milli as f64),
            edits: session.ledger().next_id().0 as usize,
            kept: KeptShares {
                in_line: self.found.in_line(),
                retention: self.found.retention(),
                near: self.found.near(),
                reachable: self.found.reachable(),
            },
            ..self.side
        }
    }
}
