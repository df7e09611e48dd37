//! The inspector: a store, what is known of its sessions, and the questions that it answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul::session::journal::Entry;
use longhaul::{Cursor, Profile, RecallError, RecallPart, Session, Summariser};
use longhaul_store::{Filter, Hit, Keeper, Meta, SessionId, Store};
use longhaul_wire::api::Api;
use serde::Serialize;
use tokio::sync::watch;

use crate::access::Access;
use crate::call::{CallAnswer, PartAnswer, Sent};
use crate::error::Refused;
use crate::events::News;
use crate::history::History;
use crate::session::SessionAnswer;
use crate::sessions::{KnownFigures, SearchHit, SearchHits, SessionRow, Sessions, narrowed};
use crate::steering::{self, Change, Effect};
use crate::what_if::WhatIf;

/// So many sessions are kept in memory, those that were looked at last.
const KEPT: usize = 16;
/// So many bytes of journals are kept in memory.
const KEPT_BYTES: u64 = 128 << 20;
/// A list has so many sessions at most.
const MOST_SESSIONS: usize = 2_000;
/// So many of the newest are looked at for one.
const LOOKED_AT: usize = 20_000;
/// A search gives so many messages at most.
const MOST_HITS: usize = 100;
/// The journal of a session that is larger is not read for a hit.
const READ_FOR_A_HIT: u64 = 64 << 20;

/// What an inspector goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// By which sessions are looked at. No model is asked: the extractor writes summaries.
    pub profile: Profile,
    /// What a session may be replayed under.
    pub profiles: Vec<Profile>,
    /// Who may ask.
    pub access: Access,
    /// Why nothing may be changed, if nothing may.
    pub read_only: Option<&'static str>,
    /// The sessions are copies of recorded ones, and gone when the inspector is.
    pub temporary: bool,
}

/// Who works with sessions while they are inspected: a gateway.
pub trait Host: Send + Sync {
    /// By which profile it works at the moment.
    fn profile(&self) -> Profile;

    /// The sessions that are worked with at the moment.
    fn live(&self) -> Vec<SessionId>;

    /// Changes a session that is in memory by `act`, and stores it, so that its next request has the change. `None` if
    /// it is not in memory, or not as it is stored.
    fn change(&self, id: SessionId, act: Act<'_>) -> Option<Result<(), Refused>>;
}

/// What is done to a session.
pub type Act<'a> = &'a mut dyn FnMut(&mut Session) -> Result<(), Refused>;

/// Answers questions about the sessions of a store.
pub struct Inspector {
    store: Arc<dyn Store>,
    settings: Settings,
    host: Option<Arc<dyn Host>>,
    histories: Mutex<Vec<Slot>>,
    /// What is known of sessions that were looked at.
    known: Mutex<HashMap<SessionId, KnownFigures>>,
    news: Arc<News>,
    /// Pages that listen are told to go.
    stop: watch::Sender<bool>,
    /// Answers that took long, the newest last.
    replayed: Mutex<Vec<(Replay, Arc<str>)>>,
}

/// What a session was replayed under.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replay {
    id: SessionId,
    end: Cursor,
    profile: String,
    window: Option<u64>,
}

/// A session that was looked at. The one that was looked at last stands last.
struct Slot {
    id: SessionId,
    bytes: u64,
    history: Arc<Mutex<Option<History>>>,
}

/// Who asks.
#[derive(Debug, Clone, Default)]
pub struct Guest {
    /// Whose sessions there are for this guest; without it, all.
    pub tenant: Option<Arc<str>>,
    /// The token was shown, by other means than the cookie.
    pub has_token: bool,
}

/// Whom the page talks to.
#[derive(Debug, Serialize)]
pub struct Me {
    /// Of the program.
    pub version: &'static str,
    /// What the header `x-longhaul-inspect` of a change must hold.
    pub csrf: String,
    /// Whether anything can be changed.
    pub can_change: bool,
    /// A gateway answers: sessions may be live.
    pub live: bool,
    /// Sessions are copies of recorded files: what is changed in them is gone when this ends.
    pub temporary: bool,
    /// These are static pages, not a server.
    pub exported: bool,
    /// By which sessions are looked at.
    pub profile: String,
    /// What a session may be replayed under.
    pub profiles: Vec<ProfileRow>,
}

/// A profile.
#[derive(Debug, Serialize)]
pub struct ProfileRow {
    /// Its name.
    pub name: String,
    /// What it does.
    pub about: String,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Inspector {
    /// Of the sessions of a store.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        let (histories, known, replayed) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self {
            store,
            settings,
            host: None,
            histories,
            known,
            news: Arc::default(),
            stop: watch::Sender::new(false),
            replayed,
        }
    }

    /// With a host that works with them at the same time, and tells what happens to them.
    pub fn with_host(self, host: Arc<dyn Host>, news: Arc<News>) -> Self {
        Self { host: Some(host), news, ..self }
    }

    /// By which sessions are looked at.
    fn profile(&self) -> Profile {
        let profile = self.host.as_ref().map_or_else(|| self.settings.profile.clone(), |host| host.profile());
        without_model(profile)
    }

    /// Where it is told that a session has got entries.
    pub fn news(&self) -> &Arc<News> {
        &self.news
    }

    /// Ends what goes on for as long as a page is open.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    pub(crate) fn has_host(&self) -> bool {
        self.host.is_some()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What a request must show.
    pub fn access(&self) -> &Access {
        &self.settings.access
    }

    pub(crate) fn me(&self) -> Me {
        let profiles = self.settings.profiles.iter();
        Me {
            version: env!("CARGO_PKG_VERSION"),
            csrf: self.settings.access.csrf().to_owned(),
            can_change: self.settings.read_only.is_none(),
            live: self.host.is_some(),
            temporary: self.settings.temporary,
            exported: false,
            profile: self.profile().name.to_string(),
            profiles: profiles
                .map(|profile| ProfileRow { name: profile.name.to_string(), about: profile.says.to_string() })
                .collect(),
        }
    }

    pub(crate) fn sessions(
        &self,
        guest: &Guest,
        filter: Filter,
        limit: Option<usize>,
    ) -> Result<Sessions, Refused> {
        let of_guest = Filter { tenant: guest.tenant.as_deref().map(str::to_owned), ..Filter::default() };
        let (found, agents, projects) = narrowed(self.store.list(&of_guest, LOOKED_AT)?, &filter);
        let live = self.live();
        let total = found.len();
        let limit = limit.unwrap_or(MOST_SESSIONS).min(MOST_SESSIONS);
        let rows = found.iter().take(limit);
        let row = |meta: &Meta| SessionRow::of(meta, live.contains(&meta.id), self.known_of(meta));
        Ok(Sessions { sessions: rows.map(row).collect(), agents, projects, total })
    }

    fn live(&self) -> Vec<SessionId> {
        self.host.as_ref().map(|host| host.live()).unwrap_or_default()
    }

    /// What is known of a session without reading its journal.
    fn known_of(&self, meta: &Meta) -> KnownFigures {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = known.get(&meta.id).filter(|figures| figures.end == Some(meta.end.0));
        figures.copied().unwrap_or_default()
    }

    /// What a list says of a session. Its journal is read if nobody has.
    pub(crate) fn figures(&self, guest: &Guest, id: SessionId) -> Result<KnownFigures, Refused> {
        let known = self.known_of(&self.meta(guest, id)?);
        if known.end.is_some() {
            Ok(known)
        } else {
            self.look(guest, id, |history, _| Ok(KnownFigures::of(history)))
        }
    }

    /// Notes what a list says of a session.
    fn note(&self, history: &History) {
        /// Sessions whose figures are kept.
        const MOST: usize = 10_000;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(history.id, KnownFigures::of(history));
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the store says of a session, if it is one of the guest's.
    pub(crate) fn meta(&self, guest: &Guest, id: SessionId) -> Result<Meta, Refused> {
        let meta = self.store.meta(id)?;
        match &guest.tenant {
            Some(tenant) if **tenant != meta.tenant => Err(Refused::no_session(id)),
            _ => Ok(meta),
        }
    }

    /// Looks at a session as it is stored now.
    pub(crate) fn look<T>(
        &self,
        guest: &Guest,
        id: SessionId,
        look: impl FnOnce(&History, &Meta) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let meta = self.meta(guest, id)?;
        let slot = self.slot(&meta);
        let mut kept = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = |history: &History| history.session.cursor() > meta.end;
        if kept.as_ref().is_some_and(is_newer) {
            // It was deleted, and another one has its id: that cannot be, but what is stored is the truth.
            *kept = None;
        }
        let history = match kept.take() {
            Some(history) if history.session.cursor() == meta.end => history,
            Some(mut history) => {
                history.follow(&self.store)?;
                self.note(&history);
                history
            }
            None => {
                let (history, _) = History::open(&self.store, id, self.profile())?;
                self.note(&history);
                history
            }
        };
        look(kept.insert(history), &meta)
    }

    /// The place of a session in memory. Others go, if there is no room for all.
    fn slot(&self, meta: &Meta) -> Arc<Mutex<Option<History>>> {
        let mut slots = self.slots();
        let history = match slots.iter().position(|slot| slot.id == meta.id) {
            Some(at) => slots.remove(at).history,
            None => Arc::default(),
        };
        slots.push(Slot { id: meta.id, bytes: meta.bytes, history: history.clone() });
        while slots.len() > 1
            && (slots.len() > KEPT || slots.iter().map(|slot| slot.bytes).sum::<u64>() > KEPT_BYTES)
        {
            slots.remove(0);
        }
        history
    }

    pub(crate) fn session(
        &self,
        guest: &Guest,
        id: SessionId,
        from: usize,
    ) -> Result<SessionAnswer, Refused> {
        let live = self.live().contains(&id);
        self.look(guest, id, |history, meta| Ok(SessionAnswer::of(history, meta, live, from)))
    }

    pub(crate) fn call(&self, guest: &Guest, id: SessionId, call: usize) -> Result<CallAnswer, Refused> {
        self.look(guest, id, |history, meta| Ok(Sent::of(history, call)?.answer(meta)))
    }

    pub(crate) fn part(
        &self,
        guest: &Guest,
        id: SessionId,
        call: usize,
        k: usize,
    ) -> Result<PartAnswer, Refused> {
        self.look(guest, id, |history, _| Sent::of(history, call)?.part_answer(k))
    }

    pub(crate) fn raw(
        &self,
        guest: &Guest,
        id: SessionId,
        call: usize,
        api: Option<Api>,
    ) -> Result<(Api, String), Refused> {
        self.look(guest, id, |history, _| Sent::of(history, call)?.raw(api))
    }

    pub(crate) fn search(&self, guest: &Guest, query: &str, limit: usize) -> Result<SearchHits, Refused> {
        let filter = Filter { tenant: guest.tenant.as_deref().map(str::to_owned), ..Filter::default() };
        let hits = self.store.search(query, &filter, limit.min(MOST_HITS))?;
        let mut journals: Vec<(SessionId, Vec<Entry>)> = Vec::new();
        let hits = hits.iter().map(|hit| {
            if !journals.iter().any(|(id, _)| *id == hit.session) {
                journals.push((hit.session, self.journal_of(hit)));
            }
            let entries = journals.iter().find(|(id, _)| *id == hit.session).map(|(_, entries)| entries);
            SearchHit::of(hit, entries.and_then(|entries| place_of(hit, entries)))
        });
        Ok(SearchHits { hits: hits.collect() })
    }

    /// The entries of the session that a hit is in; none if they cannot be had.
    fn journal_of(&self, hit: &Hit) -> Vec<Entry> {
        let is_small = self.store.meta(hit.session).is_ok_and(|meta| meta.bytes <= READ_FOR_A_HIT);
        let entries = is_small.then(|| self.store.since(hit.session, longhaul::Cursor(0)).ok()).flatten();
        entries.unwrap_or_default()
    }

    pub(crate) fn recall(
        &self,
        guest: &Guest,
        id: SessionId,
        handle: &str,
        part: &RecallPart,
    ) -> Result<String, Refused> {
        self.look(guest, id, |history, _| {
            history.session.recall(handle, part).map_err(|error| match error {
                RecallError::Unknown(_) => Refused::NotFound(error.to_string()),
                RecallError::Pattern(_) => Refused::Bad(error.to_string()),
            })
        })
    }

    /// What a change would do. Nothing is stored.
    pub(crate) fn preview(&self, guest: &Guest, id: SessionId, change: &Change) -> Result<Effect, Refused> {
        self.meta(guest, id)?;
        let (_, mut session) = Keeper::open(self.store.clone(), id, self.profile())?;
        made(&mut session, change)
    }

    /// Changes a session, and stores it.
    pub(crate) fn act(&self, guest: &Guest, id: SessionId, change: &Change) -> Result<Effect, Refused> {
        self.meta(guest, id)?;
        if let Some(why) = self.settings.read_only {
            return Err(Refused::ReadOnly(why));
        }
        let mut effect = None;
        let by_host = self.host.as_ref().and_then(|host| {
            host.change(id, &mut |session| {
                effect = Some(made(session, change)?);
                Ok(())
            })
        });
        let effect = match (by_host, effect) {
            (Some(Err(refused)), _) => return Err(refused),
            (Some(Ok(())), Some(effect)) => effect,
            _ => steering::change(&self.store, id, &self.profile(), |session| made(session, change))?.done,
        };
        self.news.tell(id);
        Ok(Effect { done: true, ..effect })
    }

    /// A session under another profile or window, as JSON.
    pub(crate) fn what_if(
        &self,
        guest: &Guest,
        id: SessionId,
        profile: Option<&str>,
        window: Option<u64>,
    ) -> Result<Arc<str>, Refused> {
        /// So many answers are kept.
        const KEPT: usize = 32;
        let own = self.profile();
        let name = profile.unwrap_or(&own.name);
        let mut all = std::iter::once(&own).chain(&self.settings.profiles);
        let profile = all.find(|profile| &*profile.name == name).cloned().map(without_model);
        let names =
            || self.settings.profiles.iter().map(|profile| &*profile.name).collect::<Vec<_>>().join(", ");
        let profile = profile.ok_or_else(|| {
            let name: String = name.chars().take(80).collect();
            Refused::Bad(format!("there is no profile {name:?}: there are {}", names()))
        })?;
        let (session, end) =
            self.look(guest, id, |history, _| Ok((history.session.clone(), history.session.cursor())))?;
        let replay = Replay { id, end, profile: profile.name.to_string(), window };
        let kept = || self.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = kept().iter().find(|(known, _)| *known == replay) {
            return Ok(answer.clone());
        }
        let answer = WhatIf::of(&session, profile, window)?;
        let answer: Arc<str> =
            serde_json::to_string(&answer).map_err(|error| Refused::Failed(error.to_string()))?.into();
        let mut kept = kept();
        kept.push((replay, answer.clone()));
        let too_many = kept.len().saturating_sub(KEPT);
        kept.drain(..too_many);
        Ok(answer)
    }
}

/// A profile by which nobody waits for a model: the extractor writes summaries.
pub(crate) fn without_model(profile: Profile) -> Profile {
    Profile { summariser: Summariser::Extractor, ..profile }
}

/// Changes a session, and says what that does.
fn made(session: &mut Session, change: &Change) -> Result<Effect, Refused> {
    let before = session.clone();
    let says = change.make(session)?;
    Effect::of(&before, session, change, &says)
}

/// The number of the message that a hit is, and the first call that was sent behind it.
fn place_of(hit: &Hit, entries: &[Entry]) -> Option<(u32, Option<usize>)> {
    let before = entries.get(..hit.at.0)?;
    let is_sent = |entry: &&Entry| matches!(entry, Entry::Sent(_));
    let messages = before.iter().filter(|entry| matches!(entry, Entry::Message(_))).count();
    let calls = before.iter().filter(is_sent).count();
    let behind = entries[hit.at.0..].iter().any(|entry| is_sent(&entry));
    Some((u32::try_from(messages).ok()?, behind.then_some(calls + 1)))
}
