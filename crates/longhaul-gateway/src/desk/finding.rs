//! Which conversation a request belongs to. First those that it is likely to be of are looked at; then the store is
//! asked which one begins like it.

use std::sync::Arc;

use longhaul_store::StoreError;
use longhaul_wire::api::{Chain, Relay, Request};

use super::conversation::{Conversation, Refused};
use super::live::{Hint, Seat, Shared};
use super::{Desk, How, Incoming};

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
    /// A model has answered in what both begin with.
    answered: bool,
}

/// A request with no more messages than these, and no tools, begins no conversation: it is for a title or the like.
const FEW: usize = 3;

/// So many stored conversations are looked at for one that goes on.
const WAYS: usize = 3;

/// So many messages are gone back for another one.
const BACK: usize = 32;

impl Desk {
    pub(super) fn find(&self, incoming: &Incoming, text: &str, hints: &[Hint]) -> Result<Found, Refused> {
        let mut best: Option<Candidate> = None;
        let mut seen: Vec<Shared> = Vec::new();
        for shared in hints.iter().flat_map(|hint| self.live.hinted(hint)) {
            if seen.iter().any(|seen| Arc::ptr_eq(seen, &shared)) {
                continue;
            }
            seen.push(shared.clone());
            let Some(candidate) = self.candidate(incoming, shared, text)? else { continue };
            if candidate.goes_on {
                return Ok(candidate.going_on());
            }
            best = better(best, candidate);
        }
        let request = match &best {
            Some(best) => best.request.clone(),
            None => read(&Relay::new(incoming.api), incoming, text)?,
        };
        let identities = request.identities().into_owned();
        let chains = Chain::start(&incoming.tenant, incoming.api).over(&identities);
        let hashes: Vec<[u8; 16]> = chains.map(|chain| chain.bytes()).collect();
        // One that is live may have more than is stored of it.
        let mut ends = hashes.iter().rev().flat_map(|hash| self.live.hinted(&Hint(*hash)));
        if let Some(shared) = ends.find(|shared| !seen.iter().any(|seen| Arc::ptr_eq(seen, shared)))
            && let Some(candidate) = self.candidate(incoming, shared, text)?
        {
            if candidate.goes_on {
                return Ok(candidate.going_on());
            }
            best = better(best, candidate);
        }
        let known = best.as_ref().map_or(0, |best| best.common);
        // Behind another way of the conversation, which was not gone on with, there may be the one that goes on.
        let (mut upto, mut looked_at) = (hashes.len(), Vec::new());
        for _ in 0..BACK {
            let found = self.store.find_prefix(&hashes[..upto])?;
            let Some((id, count)) = found.filter(|(_, count)| *count > known && looked_at.len() < WAYS)
            else {
                break;
            };
            upto = count.saturating_sub(1).min(upto);
            if looked_at.contains(&id) {
                continue;
            }
            looked_at.push(id);
            let shared = match self.live.get(id) {
                Some(shared) => shared,
                None => self.load(incoming, id)?,
            };
            let candidate = self.candidate(incoming, shared, text)?;
            match candidate {
                Some(candidate) if candidate.goes_on => return Ok(candidate.going_on()),
                Some(candidate) => best = better(best, candidate),
                None => {}
            }
        }
        match best {
            Some(best) if best.answered => self.fork(incoming, best),
            // The request has the tool of a conversation that it is not of.
            Some(_) => self.create(incoming, read(&Relay::new(incoming.api), incoming, text)?),
            None => self.create(incoming, request),
        }
    }

    /// What a request has in common with a conversation; `None` if that is nothing.
    fn candidate(
        &self,
        incoming: &Incoming,
        shared: Shared,
        text: &str,
    ) -> Result<Option<Candidate>, Refused> {
        let Ok(conversation) = shared.lock() else {
            self.live.forget(shared.id);
            return Err(Refused::Broken);
        };
        if !conversation.is_newest(&*self.store)? {
            // Another replica has gone on with it, perhaps just now: it is loaded again.
            self.live.forget(shared.id);
            return Err(Refused::Moved);
        }
        let Some(request) = conversation.read(text.to_owned()) else { return Err(Refused::Unreadable) };
        if request.is_stateful() {
            return Err(Refused::Stateful);
        }
        let request = with_betas(request, incoming);
        let common = conversation.common(&request.identities());
        let new_from = conversation.new_from(&request);
        if common == 0 && new_from.is_none() {
            return Ok(None);
        }
        let is_of = conversation.is_of(request.frame());
        let (goes_on, is_retry) = (new_from.is_some() && is_of, new_from == Some(request.messages().len()));
        let answered = conversation.is_answered_in(common);
        drop(conversation);
        Ok(Some(Candidate { conversation: shared, request, common, is_of, goes_on, is_retry, answered }))
    }

    fn load(&self, incoming: &Incoming, id: longhaul_store::SessionId) -> Result<Shared, StoreError> {
        let store = self.store.clone();
        let conversation = Conversation::open(store, &self.settings, &incoming.tenant, incoming.api, id)?;
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

    fn create(&self, incoming: &Incoming, request: Request) -> Result<Found, Refused> {
        if request.frame().tools.is_empty() && request.messages().len() <= FEW {
            return Err(Refused::Side);
        }
        let (store, about) = (self.store.clone(), incoming.about());
        let new = Conversation::create(store, &self.settings, &about, incoming.api, request.frame())?;
        let request = new.offering(request);
        Ok(Found { conversation: Seat::new(new, incoming.tenant.clone()), request, how: How::New })
    }
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

fn read(relay: &Relay, incoming: &Incoming, text: &str) -> Result<Request, Refused> {
    let request = relay.read(text.to_owned()).map_err(|_| Refused::Unreadable)?;
    match request.is_stateful() {
        true => Err(Refused::Stateful),
        false => Ok(with_betas(request, incoming)),
    }
}

fn with_betas(request: Request, incoming: &Incoming) -> Request {
    let betas: Vec<&str> =
        incoming.headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok()).collect();
    if betas.is_empty() { request } else { request.with_betas(&betas.join(",")) }
}
