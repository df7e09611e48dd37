//! The conversations that are in memory, and by what a request is likely to find its own. Whatever is not here is in
//! the store: those that were used last stay, as many as fit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul::{Ticket, Usage};
use longhaul_store::SessionId;

use super::KeptThinking;
use super::conversation::{Conversation, Refused};
use super::last_sent::{LastSent, SentAlone};

/// A conversation that several requests may want at once.
pub(super) type Shared = Arc<Seat>;

/// A conversation that one request at a time works with.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) id: SessionId,
    /// Whose it is.
    pub(super) tenant: Arc<str>,
    /// It began without the store, which does not have it yet.
    pub(super) is_unstored: bool,
    conversation: Mutex<Conversation>,
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
        Arc::new(Self::of(conversation, tenant, false))
    }

    /// The same for a conversation that the store does not have.
    pub(super) fn unstored(conversation: Conversation, tenant: Arc<str>) -> Shared {
        Arc::new(Self::of(conversation, tenant, true))
    }

    fn of(conversation: Conversation, tenant: Arc<str>, is_unstored: bool) -> Self {
        let id = conversation.id();
        Self { id, tenant, is_unstored, conversation: Mutex::new(conversation), heard: Mutex::default() }
    }

    /// The conversation for one request alone. One that a panic left half done is not used again.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, Conversation>, Refused> {
        let conversation = self.conversation.lock().map_err(|_| Refused::Broken)?;
        Ok(self.told(conversation))
    }

    /// The same if nobody works with it now.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Conversation>> {
        self.conversation.try_lock().ok().map(|conversation| self.told(conversation))
    }

    fn told<'a>(&self, mut conversation: MutexGuard<'a, Conversation>) -> MutexGuard<'a, Conversation> {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        for Heard { ticket, usage, seals } in heard {
            conversation.signed(ticket, &seals);
            usage.iter().for_each(|usage| conversation.heard(ticket, usage));
        }
        conversation
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
    /// The name that it had before the store had it.
    former: Option<SessionId>,
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
        let Some(slot) = inner.slot(last.session) else { return };
        let is_new = |alone: &Arc<SentAlone>| !slot.alone.iter().any(|other| Arc::ptr_eq(other, alone));
        let alone = alone.filter(is_new);
        slot.alone.extend(alone);
        slot.seals.clear();
        let before = slot.last.replace(last);
        // It may hold thousands of messages: others do not wait while it goes.
        drop(inner);
        drop(before);
    }

    /// The request that was sent last was answered with thinking that has these signatures.
    pub(super) fn answered_with(&self, id: SessionId, seals: &[String]) {
        if !seals.is_empty()
            && let Some(slot) = self.lock().slot(id)
        {
            slot.seals = seals.to_vec();
        }
    }

    /// True if all these signatures are of the answer to the request that was sent last.
    pub(super) fn is_answer<'a>(&self, id: SessionId, mut seals: impl Iterator<Item = &'a str>) -> bool {
        let mut inner = self.lock();
        let known = inner.slot(id).map(|slot| &slot.seals);
        seals.all(|seal| known.is_some_and(|known| known.iter().any(|other| other == seal)))
    }

    /// The requests of a conversation that were sent without it. They are told of once.
    pub(super) fn sent_alone(&self, id: SessionId) -> Vec<Arc<SentAlone>> {
        let mut inner = self.lock();
        inner.slot(id).map(|slot| std::mem::take(&mut slot.alone)).unwrap_or_default()
    }

    /// A request that was sent without its conversation was refused: there is nothing to be told.
    pub(super) fn was_refused(&self, alone: &Arc<SentAlone>) {
        if let Some(slot) = self.lock().slot(alone.session) {
            slot.alone.retain(|other| !Arc::ptr_eq(other, alone));
        }
    }

    /// A conversation is in the store from now on, under another name.
    pub(super) fn is_stored(&self, unstored: SessionId, conversation: &Shared) {
        let mut inner = self.lock();
        let Some(mut slot) = inner.conversations.remove(&unstored) else { return };
        for hint in slot.hints.iter().chain(&slot.end) {
            for id in inner.hints.get_mut(hint).into_iter().flatten().filter(|id| **id == unstored) {
                *id = conversation.id;
            }
        }
        (slot.conversation, slot.former) = (Some(conversation.clone()), Some(unstored));
        slot.last = slot.last.map(|last| Arc::new(last.of(conversation.id)));
        inner.conversations.insert(conversation.id, slot);
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
        if let Some(slot) = self.lock().slot(id) {
            slot.outside = outside;
        }
    }

    pub(super) fn get(&self, id: SessionId) -> Option<Shared> {
        self.lock().slot(id)?.conversation.clone()
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
        // What the store does not have cannot be looked up or changed there.
        let own = all.filter(|(_, shared)| &*shared.tenant == tenant && !shared.is_unstored);
        let mut own: Vec<_> = own.collect();
        own.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
        own.into_iter().map(|(_, shared)| shared.clone()).collect()
    }

    /// A conversation was used: it stays longest, and the hint speaks of it. Others go if there is no room.
    pub(super) fn used(&self, conversation: &Shared, hints: &[Hint], used: Used) {
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
            former: None,
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
        let limit = self.limit.load(Ordering::Relaxed);
        while inner.bytes > limit && inner.conversations.len() > 1 {
            let Some(oldest) =
                inner.conversations.iter().min_by_key(|(_, slot)| slot.used).map(|(id, _)| *id)
            else {
                return;
            };
            inner.remove(oldest);
        }
    }

    /// A conversation is not what the store has: the next request loads it. What was sent last of it stays, as long as
    /// there is room.
    pub(super) fn forget(&self, id: SessionId) {
        let mut inner = self.lock();
        match inner.slot(id) {
            Some(slot) if slot.last.is_some() => slot.conversation = None,
            _ => inner.remove(id),
        }
    }

    /// Another conversation goes on in the place of this one.
    pub(super) fn remove(&self, id: SessionId) {
        self.lock().remove(id);
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
    /// The place of a conversation, by its name or by the one that it had before the store had it.
    fn slot(&mut self, id: SessionId) -> Option<&mut Slot> {
        if self.conversations.contains_key(&id) {
            return self.conversations.get_mut(&id);
        }
        self.conversations.values_mut().find(|slot| slot.former == Some(id))
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
