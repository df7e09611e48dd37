//! The conversations that are in memory, and by what a request is likely to find its own. Whatever is not here is in
//! the store: those that were used last stay, as many as fit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use longhaul::{Ticket, Usage};
use longhaul_store::SessionId;

use super::KeptThinking;
use super::caller::Called;
use super::conversation::{Conversation, Refused};
use super::last_sent::{LastSent, SentAlone};

/// A conversation that several requests may want at once.
pub(super) type Shared = Arc<Seat>;

/// A conversation that one request at a time works with.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) id: SessionId,
    /// Whose it is.
    tenant: Arc<str>,
    conversation: Mutex<Conversation>,
    /// Another one has taken its place.
    is_closed: AtomicBool,
    /// The same, while somebody may still work with this one.
    is_superseded: AtomicBool,
    /// What answers have said since the conversation was worked with.
    heard: Mutex<Vec<Heard>>,
}

/// What the answer to a request said.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) ticket: Ticket,
    pub(super) usage: Option<Usage>,
    /// The signatures of its thinking.
    pub(super) seals: Vec<String>,
}

impl Seat {
    pub(super) fn new(conversation: Conversation, tenant: Arc<str>) -> Shared {
        Arc::new(Self {
            id: conversation.id(),
            tenant,
            conversation: Mutex::new(conversation),
            is_closed: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
            heard: Mutex::default(),
        })
    }

    /// The conversation for one request alone. One that a panic left half done is not used again.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, Conversation>, Refused> {
        let conversation = self.conversation.lock().map_err(|_| Refused::Broken)?;
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Refused::Moved);
        }
        Ok(self.told(conversation))
    }

    /// The same if nobody works with it now.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Conversation>> {
        let conversation = self.conversation.try_lock().ok();
        let open = conversation.filter(|_| !self.is_closed.load(Ordering::Relaxed));
        open.map(|conversation| self.told(conversation))
    }

    fn told<'a>(&self, mut conversation: MutexGuard<'a, Conversation>) -> MutexGuard<'a, Conversation> {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        for Heard { ticket, usage, seals } in heard {
            conversation.signed(ticket, &seals);
            usage.iter().for_each(|usage| conversation.heard(ticket, usage));
        }
        conversation
    }

    /// The conversation as a panic left it; `None` if there was none.
    pub(super) fn broken(&self) -> Option<MutexGuard<'_, Conversation>> {
        let broken = self.conversation.lock().err().map(PoisonError::into_inner);
        broken.filter(|_| !self.is_closed.load(Ordering::Relaxed))
    }

    /// Another one has taken its place: whoever still has this one looks again.
    pub(super) fn closes(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whose it is.
    pub(super) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// True if the store does not have it as it is; `None` while somebody works with it.
    fn is_in_arrears(&self) -> Option<bool> {
        match self.conversation.try_lock() {
            Ok(conversation) => Some(conversation.in_arrears()),
            Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner().in_arrears()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A conversation that began later has been sent in its place.
    fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Relaxed)
    }

    /// Whoever works with the conversation next knows this first. Waits for nobody who does.
    pub(super) fn hears(&self, heard: Heard) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
    }
}

/// What a client says of its conversation, or how its body begins: never the truth, only where to look first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Hint(pub(super) [u8; 16]);

/// A hint speaks of no more conversations than these.
const SPOKEN_OF: usize = 4;

/// So many hints speak of a conversation at most: there are clients whose bodies never begin the same.
const HINTS: usize = 8;

/// The conversations that are in memory.
#[derive(Debug)]
pub(super) struct Live {
    inner: Mutex<Inner>,
    /// Bytes that they may take together.
    limit: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inner {
    conversations: HashMap<SessionId, Slot>,
    /// The conversations that each hint spoke of, the newest last.
    hints: HashMap<Hint, Vec<SessionId>>,
    bytes: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    /// `None` for one that is not what the store has: what was sent last of it can be gone on with.
    conversation: Option<Shared>,
    bytes: usize,
    used: u64,
    /// When it was used last.
    when: Instant,
    /// What speaks of it, the newest last.
    hints: Vec<Hint>,
    /// The hash of all that is said in it.
    end: Option<Hint>,
    outside: KeptThinking,
    /// The request that was sent last.
    last: Option<Arc<LastSent>>,
    /// The signatures of the thinking that it was answered with.
    seals: Vec<String>,
    /// Requests that were sent without it, and that it has not taken in.
    alone: Vec<Arc<SentAlone>>,
    /// The tools of ours that its newest answer calls.
    called: Called,
}

/// The facts that a use of a conversation leaves behind.
#[derive(Debug, Clone)]
pub(super) struct Used {
    pub(super) bytes: usize,
    pub(super) outside: KeptThinking,
    pub(super) end: Option<Hint>,
}

impl Live {
    pub(super) fn new(limit: usize) -> Self {
        Self { inner: Mutex::default(), limit: AtomicUsize::new(limit) }
    }

    /// The conversations that a hint spoke of, the newest first.
    pub(super) fn hinted(&self, hint: &Hint) -> Vec<Shared> {
        let inner = self.lock();
        let ids = inner.hints.get(hint).into_iter().flatten().rev();
        ids.filter_map(|id| inner.conversations.get(id))
            .filter_map(|slot| slot.conversation.clone())
            .collect()
    }

    /// What was sent last of the conversations that these hints spoke of.
    pub(super) fn last_sent(&self, hints: &[Hint]) -> Vec<Arc<LastSent>> {
        let inner = self.lock();
        let mut ids: Vec<SessionId> = Vec::new();
        for id in hints.iter().filter_map(|hint| inner.hints.get(hint)).flatten() {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        ids.iter().filter_map(|id| inner.conversations.get(id)?.last.clone()).collect()
    }

    /// A request is sent: the next one can go on from it. `alone` if its conversation does not know.
    pub(super) fn sent(&self, last: Arc<LastSent>, alone: Option<Arc<SentAlone>>) {
        let mut inner = self.lock();
        let Some(slot) = inner.conversations.get_mut(&last.session) else { return };
        let is_new = |alone: &Arc<SentAlone>| !slot.alone.iter().any(|other| Arc::ptr_eq(other, alone));
        let alone = alone.filter(is_new);
        slot.alone.extend(alone);
        slot.seals.clear();
        slot.called.tools.clear();
        let before = slot.last.replace(last);
        // It may hold thousands of messages: others do not wait while it goes.
        drop(inner);
        drop(before);
    }

    /// The request that was sent last was answered with thinking that has these signatures.
    pub(super) fn answered_with(&self, id: SessionId, seals: &[String]) {
        if !seals.is_empty()
            && let Some(slot) = self.lock().conversations.get_mut(&id)
        {
            slot.seals = seals.to_vec();
        }
    }

    /// The request that was sent last was answered with calls of our tools.
    pub(super) fn called(&self, id: SessionId, called: Called) {
        if let Some(slot) = self.lock().conversations.get_mut(&id) {
            slot.called = called;
        }
    }

    /// Shows each conversation of a tenant, with the tools of ours that its newest answer calls.
    pub(super) fn look_at_calls(&self, tenant: &str, mut look: impl FnMut(&Shared, &mut Called)) {
        for slot in self.lock().conversations.values_mut() {
            if let Some(shared) = slot.conversation.as_ref().filter(|shared| &*shared.tenant == tenant) {
                look(shared, &mut slot.called);
            }
        }
    }

    /// True if all these signatures are of the answer to the request that was sent last.
    pub(super) fn is_answer<'a>(&self, id: SessionId, mut seals: impl Iterator<Item = &'a str>) -> bool {
        let mut inner = self.lock();
        let known = inner.conversations.get_mut(&id).map(|slot| &slot.seals);
        seals.all(|seal| known.is_some_and(|known| known.iter().any(|other| other == seal)))
    }

    /// The requests of a conversation that were sent without it. They are told of once.
    pub(super) fn sent_alone(&self, id: SessionId) -> Vec<Arc<SentAlone>> {
        let mut inner = self.lock();
        inner.conversations.get_mut(&id).map(|slot| std::mem::take(&mut slot.alone)).unwrap_or_default()
    }

    /// A request that was sent without its conversation was refused: there is nothing to be told.
    pub(super) fn was_refused(&self, alone: &Arc<SentAlone>) {
        if let Some(slot) = self.lock().conversations.get_mut(&alone.session) {
            slot.alone.retain(|other| !Arc::ptr_eq(other, alone));
        }
    }

    /// Which messages of a request may keep their thinking where all are sent as they came: of the newest conversation
    /// that the best of these hints speaks of. A weaker hint may speak of others that begin alike.
    pub(super) fn thinking_outside(&self, hints: &[Hint]) -> KeptThinking {
        let inner = self.lock();
        let best = hints.first().and_then(|hint| inner.hints.get(hint));
        let mut spoken_of = best.into_iter().flatten().rev();
        let slot = spoken_of.find_map(|id| inner.conversations.get(id));
        slot.map_or(KeptThinking::Unknown, |slot| slot.outside)
    }

    /// Another request was prepared: which messages may keep their thinking may have changed.
    pub(super) fn keeps(&self, id: SessionId, outside: KeptThinking) {
        if let Some(slot) = self.lock().conversations.get_mut(&id) {
            slot.outside = outside;
        }
    }

    pub(super) fn get(&self, id: SessionId) -> Option<Shared> {
        self.lock().conversations.get(&id)?.conversation.clone()
    }

    /// Other bytes that they may take together, from the next use on.
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The conversations that were used within this time.
    pub(super) fn used_within(&self, time: Duration) -> Vec<SessionId> {
        let inner = self.lock();
        let recent = inner.conversations.iter().filter(|(_, slot)| slot.when.elapsed() <= time);
        recent.map(|(id, _)| *id).collect()
    }

    /// The conversations of a tenant, the one that was used last first.
    pub(super) fn of_tenant(&self, tenant: &str) -> Vec<Shared> {
        let inner = self.lock();
        let all =
            inner.conversations.values().filter_map(|slot| Some((slot.used, slot.conversation.as_ref()?)));
        let mut own: Vec<_> = all.filter(|(_, shared)| &*shared.tenant == tenant).collect();
        own.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
        own.into_iter().map(|(_, shared)| shared.clone()).collect()
    }

    /// A conversation was used: it stays longest, and the hint speaks of it. Others go if there is no room.
    pub(super) fn used(&self, conversation: &Shared, hints: &[Hint], used: Used) {
        if conversation.is_superseded() {
            return;
        }
        let Used { bytes, outside, end } = used;
        let id = conversation.id;
        let mut inner = self.lock();
        inner.clock += 1;
        let used = inner.clock;
        let slot = inner.conversations.entry(id).or_insert_with(|| Slot {
            conversation: None,
            bytes: 0,
            used,
            when: Instant::now(),
            hints: Vec::new(),
            end: None,
            outside: KeptThinking::Unknown,
            last: None,
            seals: Vec::new(),
            alone: Vec::new(),
            called: Called::default(),
        });
        slot.outside = outside;
        let end_before = std::mem::replace(&mut slot.end, end.clone());
        let before = std::mem::replace(&mut slot.bytes, bytes);
        (slot.used, slot.when, slot.conversation) = (used, Instant::now(), Some(conversation.clone()));
        slot.hints.retain(|hint| !hints.contains(hint));
        slot.hints.extend_from_slice(hints);
        let too_many = slot.hints.len().saturating_sub(HINTS);
        let gone: Vec<Hint> = slot.hints.drain(..too_many).collect();
        inner.bytes = (inner.bytes + bytes).saturating_sub(before);
        for hint in gone.iter().chain(&end_before) {
            inner.speaks_no_more(hint, id);
        }
        for hint in hints.iter().chain(&end) {
            let spoken_of = inner.hints.entry(hint.clone()).or_default();
            spoken_of.retain(|other| *other != id);
            spoken_of.push(id);
            let too_many = spoken_of.len().saturating_sub(SPOKEN_OF);
            spoken_of.drain(..too_many);
        }
        inner.make_room(id, self.limit.load(Ordering::Relaxed));
    }

    /// The conversations that the store does not have as they are.
    pub(super) fn in_arrears(&self) -> Vec<Shared> {
        let all: Vec<Shared> =
            self.lock().conversations.values().filter_map(|slot| slot.conversation.clone()).collect();
        all.into_iter().filter(|shared| shared.is_in_arrears() == Some(true)).collect()
    }

    /// What speaks of one conversation speaks of another from now on.
    pub(super) fn replace(&self, before: SessionId, new: &Shared, used: Used) {
        let (hints, called) = {
            let mut inner = self.lock();
            let slot = inner.conversations.get(&before);
            let kept = slot.map(|slot| (slot.hints.clone(), slot.called.clone())).unwrap_or_default();
            inner.remove(before);
            kept
        };
        self.used(new, &hints, used);
        self.called(new.id, called);
    }

    /// A conversation is not what the store has: the next request loads it. What was sent last of it stays, as long as
    /// there is room.
    pub(super) fn forget(&self, id: SessionId) {
        let mut inner = self.lock();
        match inner.conversations.get_mut(&id) {
            Some(slot) if slot.last.is_some() => slot.conversation = None,
            _ => inner.remove(id),
        }
    }

    /// Another conversation goes on in the place of this one, also if somebody works with this one until then.
    pub(super) fn supersede(&self, id: SessionId) {
        let mut inner = self.lock();
        if let Some(shared) = inner.conversations.get(&id).and_then(|slot| slot.conversation.as_ref()) {
            shared.is_superseded.store(true, Ordering::Relaxed);
        }
        inner.remove(id);
    }

    /// How many there are, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let inner = self.lock();
        let live = inner.conversations.values().filter(|slot| slot.conversation.is_some());
        (live.count(), inner.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Those that were left alone longest go, but for the one that is used now. What is not stored is nowhere else: it
    /// stays while others can go, and while it takes no more than as much again.
    fn make_room(&mut self, used: SessionId, limit: usize) {
        while self.bytes > limit {
            let oldest = |slots: &mut dyn Iterator<Item = (&SessionId, &Slot)>| {
                slots.filter(|(id, _)| **id != used).min_by_key(|(_, slot)| slot.used).map(|(id, _)| *id)
            };
            let is_stored = |(_, slot): &(&SessionId, &Slot)| {
                // One that somebody works with is stored behind that, if the store works.
                slot.conversation.as_ref().is_none_or(|shared| shared.is_in_arrears() == Some(false))
            };
            if let Some(stored) = oldest(&mut self.conversations.iter().filter(is_stored)) {
                self.remove(stored);
                continue;
            }
            if self.bytes <= limit.saturating_mul(2) {
                return;
            }
            let Some(lost) = oldest(&mut self.conversations.iter()) else { return };
            tracing::warn!(
                session = %lost,
                "what was said last in a conversation is lost: it could not be stored, and memory is full"
            );
            self.remove(lost);
        }
    }

    fn remove(&mut self, id: SessionId) {
        let Some(slot) = self.conversations.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(slot.bytes);
        for hint in slot.hints.iter().chain(&slot.end) {
            self.speaks_no_more(hint, id);
        }
    }

    /// A hint does not speak of a conversation any longer.
    fn speaks_no_more(&mut self, hint: &Hint, id: SessionId) {
        if let Some(spoken_of) = self.hints.get_mut(hint) {
            spoken_of.retain(|other| *other != id);
            if spoken_of.is_empty() {
                self.hints.remove(hint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longhaul::Frame;
    use longhaul_store::About;
    use longhaul_wire::api::{Api, Request};

    use super::super::DeskSettings;
    use super::*;

    #[test]
    fn a_conversation_has_only_so_many_hints() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("sessions.db").display().to_string();
        let settings = Arc::new(DeskSettings::new(place));
        let store = longhaul_store::open(&settings.store).unwrap();
        let request = Request::new(Frame::default(), Vec::new());
        let new = Conversation::create(store, &settings, &About::default(), Api::Chat, &request);
        let (live, seat) = (Live::new(1 << 20), Seat::new(new.unwrap(), "".into()));
        let named = Hint([255; 16]);
        for n in 0..100 {
            let used = Used { bytes: 1, outside: KeptThinking::All, end: Some(Hint([n + 100; 16])) };
            live.used(&seat, &[named.clone(), Hint([n; 16])], used);
        }
        assert!(live.lock().hints.len() <= HINTS + 1);
        // What every request says still speaks of it, and so does the newest.
        for hint in [&named, &Hint([99; 16]), &Hint([199; 16])] {
            assert!(live.hinted(hint).iter().all(|found| Arc::ptr_eq(found, &seat)));
            assert_eq!(live.hinted(hint).len(), 1);
        }
        // What it may keep is its own: a request that names another conversation is not judged by it.
        assert_eq!(live.thinking_outside(std::slice::from_ref(&named)), KeptThinking::All);
        assert_eq!(live.thinking_outside(&[Hint([254; 16]), named]), KeptThinking::Unknown);
        live.forget(seat.id);
        assert!(live.lock().hints.is_empty());
    }
}
