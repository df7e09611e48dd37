//! Which conversation a request belongs to. First those that it is likely to be of are looked at; then the store is
//! asked which one begins like it.

use std::sync::Arc;

use longhaul::Models;
use longhaul_store::{About, Alike, Meta, Store, StoreError};
use longhaul_wire::api::{Chain, Relay, Request};

use super::conversation::{Conversation, Refused, now};
use super::live::{Hint, Seat, Shared};
use super::refusals::Form;
use super::{Desk, DeskSettings, How, Incoming, Recall};

/// The conversation of a request.
pub(super) struct Found {
    pub(super) conversation: Shared,
    /// The request, read with what the conversation knows.
    pub(super) request: Request,
    pub(super) how: How,
}

/// A conversation that a request has something in common with.
struct Candidate {
    conversation: Shared,
    request: Request,
    /// How many messages both begin with.
    common: usize,
    /// The same agent speaks.
    is_of: bool,
    /// The request goes on where the conversation ends, and the same agent speaks.
    goes_on: bool,
    /// The request has nothing that is new.
    is_retry: bool,
    /// A model has answered in what both begin with, or right after it.
    answered: bool,
}

/// A request with no more messages than these, and no tools, begins no conversation: it is for a title or the like.
const FEW: usize = 3;

/// What a list says behind the name of an agent whose conversation was only observed.
const OBSERVED: &str = " (observed)";

/// So many stored conversations are looked at for one that goes on.
const WAYS: usize = 4;

/// So many messages are gone back for another one.
const BACK: usize = 32;

/// What a search for the conversation of a request gives.
pub(super) enum Search {
    /// It goes on with one that is known.
    Found(Found),
    /// It begins one.
    Begins(Beginning),
}

/// A request that begins a conversation of its own.
pub(super) struct Beginning {
    /// The conversation that it leaves.
    leaves: Option<Candidate>,
    request: Request,
    /// The hash of all that is said in the request.
    pub(super) end: [u8; 16],
}

impl Desk {
    /// The conversation that a request goes on with, if there is one.
    pub(super) fn find(&self, incoming: &Incoming, hints: &[Hint]) -> Result<Search, Refused> {
        let mut best: Option<Candidate> = None;
        let mut seen: Vec<Shared> = Vec::new();
        let hinted = hints.iter().flat_map(|hint| self.live.hinted(hint));
        if let Some(found) = self.going_on(incoming, hinted, &mut seen, &mut best)? {
            return Ok(Search::Found(found));
        }
        let request = match &best {
            Some(best) => best.request.clone(),
            None => read(&Relay::new(incoming.api), incoming)?,
        };
        let hashes: Vec<[u8; 16]> = {
            let identities = request.identities();
            let chains = Chain::start(&incoming.tenant, incoming.api).over(&identities);
            chains.map(|chain| chain.bytes()).collect()
        };
        // One that is live may have more than is stored of it.
        let unseen = |hash: &[u8; 16]| {
            let mut ending = self.live.hinted(&Hint(*hash));
            ending.retain(|shared| !seen.iter().any(|seen| Arc::ptr_eq(seen, shared)));
            ending
        };
        let longest = hashes.iter().rev().map(unseen).find(|ending| !ending.is_empty());
        let longest = longest.into_iter().flatten();
        if let Some(found) = self.going_on(incoming, longest, &mut seen, &mut best)? {
            return Ok(Search::Found(found));
        }
        // Sessions without content cannot be gone on with, and those with content must not be.
        if !self.settings().without_content
            && let Some(found) = self.stored(incoming, &request, &hashes, &mut seen, &mut best)?
        {
            return Ok(Search::Found(found));
        }
        let end = hashes.last().copied().unwrap_or_default();
        let leaves = best.filter(|best| best.answered);
        let request = match leaves.is_none() && request.is_offering() {
            // The request has the tool of a conversation that it is not of.
            true => read(&Relay::new(incoming.api), incoming)?,
            false => request,
        };
        Ok(Search::Begins(Beginning { leaves, request, end }))
    }

    /// The stored conversation that a request goes on with. Of the others the best is kept in mind.
    fn stored(
        &self,
        incoming: &Incoming,
        request: &Request,
        hashes: &[[u8; 16]],
        seen: &mut Vec<Shared>,
        best: &mut Option<Candidate>,
    ) -> Result<Option<Found>, Refused> {
        let known = best.as_ref().map_or(0, |best| best.common);
        // Behind another way of the conversation, which was not gone on with, there may be the one that goes on.
        let (mut upto, mut looked_at) = (hashes.len(), Vec::new());
        for _ in 0..BACK {
            // While the store does not work, the request begins a conversation in memory.
            let Ok(alike) = self.store.find_prefix(&hashes[..upto]) else { return Ok(None) };
            let alike = alike.filter(|alike| alike.messages >= known);
            let Some(Alike { messages, mut sessions }) = alike.filter(|_| looked_at.len() < WAYS) else {
                break;
            };
            upto = messages.saturating_sub(1).min(upto);
            sessions.retain(|meta| !meta.without_content && !looked_at.contains(&meta.id));
            if messages == known {
                // One that is live has as much in common: only one that ends there, with the same model, is better.
                sessions.retain(|meta| is_unlikely(meta, messages, request) == (false, false));
            }
            sessions.sort_by_key(|meta| is_unlikely(meta, messages, request));
            for meta in sessions.iter().take(WAYS - looked_at.len()) {
                looked_at.push(meta.id);
                let shared = match self.live.get(meta.id) {
                    Some(shared) => shared,
                    None => match self.load(incoming, meta.id) {
                        Ok(shared) => shared,
                        // It was deleted just now: it is looked again.
                        Err(error @ StoreError::NoSession(_)) => return Err(error.into()),
                        Err(error) => {
                            tracing::warn!(session = %meta.id, %error, "a stored conversation cannot be gone on with");
                            continue;
                        }
                    },
                };
                let one = std::iter::once(shared);
                if let Some(found) = self.going_on(incoming, one, seen, best)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// The first of some conversations that a request goes on with. Of the others the best is kept in mind.
    fn going_on(
        &self,
        incoming: &Incoming,
        conversations: impl Iterator<Item = Shared>,
        seen: &mut Vec<Shared>,
        best: &mut Option<Candidate>,
    ) -> Result<Option<Found>, Refused> {
        for shared in conversations {
            if seen.iter().any(|seen| Arc::ptr_eq(seen, &shared)) {
                continue;
            }
            seen.push(shared.clone());
            match self.candidate(incoming, shared)? {
                Some(candidate) if candidate.goes_on => return Ok(Some(candidate.going_on())),
                Some(candidate) => *best = better(best.take(), candidate),
                None => {}
            }
        }
        Ok(None)
    }

    /// A conversation for a request that begins one.
    pub(super) fn begin(&self, incoming: &Incoming, beginning: Beginning) -> Result<Found, Refused> {
        match beginning.leaves {
            Some(candidate) => self.fork(incoming, candidate),
            None => self.create(incoming, beginning.request),
        }
    }

    /// What a request has in common with a conversation; `None` if that is nothing.
    fn candidate(&self, incoming: &Incoming, shared: Shared) -> Result<Option<Candidate>, Refused> {
        let mut conversation = self.lock(&shared).inspect_err(|_| self.live.salvage(&shared))?;
        if !conversation.is_newest() {
            // Another replica has gone on with it, perhaps just now: it is loaded again.
            self.live.leave(&shared, &conversation, &Refused::Moved);
            return Err(Refused::Moved);
        }
        let Some(request) = conversation.read(incoming.body.clone()) else { return Err(Refused::Unreadable) };
        let common = conversation.common(&request.identities());
        // What the conversation has was looked at when it came.
        if request.is_stateful_behind(common) {
            return Err(stateful(&request));
        }
        let request = with_betas(request, incoming);
        let new_from = conversation.new_from(&request);
        if common == 0 && new_from.is_none() {
            return Ok(None);
        }
        let is_of = conversation.is_of(request.frame());
        let (goes_on, is_retry) = (new_from.is_some() && is_of, new_from == Some(request.messages().len()));
        let is_awaited =
            || request.messages().get(common).is_some_and(|message| conversation.awaits(message));
        let answered = conversation.is_answered_in(common) || is_awaited();
        drop(conversation);
        Ok(Some(Candidate { conversation: shared, request, common, is_of, goes_on, is_retry, answered }))
    }

    fn load(&self, incoming: &Incoming, id: longhaul_store::SessionId) -> Result<Shared, StoreError> {
        let store = self.store.clone();
        let conversation = Conversation::open(store, &self.settings(), &incoming.tenant, incoming.api, id)?;
        Ok(Seat::new(conversation, incoming.tenant.clone()))
    }

    /// A conversation of its own for a request that goes another way.
    fn fork(&self, incoming: &Incoming, from: Candidate) -> Result<Found, Refused> {
        let fork = from.conversation.lock()?.fork(&incoming.tenant, from.common, from.request.frame())?;
        Ok(Found {
            conversation: Seat::new(fork, incoming.tenant.clone()),
            request: from.request,
            how: How::Forks,
        })
    }

    /// The settings of a conversation that begins: without a tool of ours where the upstream is known to refuse it.
    pub(super) fn settings_for(&self, upstream: &str, model: &str) -> Arc<DeskSettings> {
        let settings = self.settings();
        match self.refusals.has(upstream, model, Form::Tool, now()) {
            true => Arc::new(DeskSettings { recall: Recall::Mcp, ..(*settings).clone() }),
            false => settings,
        }
    }

    /// What the store is told of the client of a conversation that begins.
    pub(super) fn about(&self, incoming: &Incoming) -> About {
        let settings = self.settings();
        let mut about = About { without_content: settings.without_content, ..incoming.about() };
        if settings.observe {
            about.agent += OBSERVED;
        }
        about
    }

    fn create(&self, incoming: &Incoming, request: Request) -> Result<Found, Refused> {
        let model = request.frame().model.as_deref().unwrap_or_default();
        let (store, settings) = (self.store.clone(), self.settings_for(&incoming.upstream, model));
        let new = Conversation::create(store, &settings, &self.about(incoming), incoming.api, &request)?;
        let request = new.offering(request);
        Ok(Found { conversation: Seat::new(new, incoming.tenant.clone()), request, how: How::New })
    }
}

impl Beginning {
    /// True if it is no conversation of an agent: for a title or the like.
    pub(super) fn is_side(&self) -> bool {
        self.leaves.is_none() && is_side(&self.request)
    }
}

/// True if a request is of no conversation of an agent, where it goes on with none.
pub(super) fn is_side(request: &Request) -> bool {
    request.frame().tools.is_empty() && request.messages().len() <= FEW
}

/// True if a request hardly goes on with a stored session of which it has so many messages: another model speaks
/// there, or it went another way behind them.
fn is_unlikely(meta: &Meta, messages: usize, request: &Request) -> (bool, bool) {
    let model = &Models::builtin().find(request.frame().model.as_deref().unwrap_or_default()).name;
    (meta.model != **model, meta.messages != messages as u64)
}

/// The one that has more in common with the request; of two, the one of the same agent.
fn better(best: Option<Candidate>, new: Candidate) -> Option<Candidate> {
    match best {
        Some(best) if (best.common, best.is_of) >= (new.common, new.is_of) => Some(best),
        _ => Some(new),
    }
}

impl Candidate {
    fn going_on(self) -> Found {
        let how = if self.is_retry { How::Retry } else { How::Extends };
        Found { conversation: self.conversation, request: self.request, how }
    }
}

pub(super) fn read(relay: &Relay, incoming: &Incoming) -> Result<Request, Refused> {
    let request = relay.read(incoming.body.clone()).map_err(|_| Refused::Unreadable)?;
    match request.is_stateful() {
        true => Err(stateful(&request)),
        false => Ok(with_betas(request, incoming)),
    }
}

/// Why a request that leans on its provider is not for us.
fn stateful(request: &Request) -> Refused {
    if request.begins_thread() { Refused::NewThread } else { Refused::Stateful }
}

pub(super) fn with_betas(request: Request, incoming: &Incoming) -> Request {
    let betas: Vec<&str> =
        incoming.headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok()).collect();
    if betas.is_empty() { request } else { request.with_betas(&betas.join(",")) }
}
