//! What a host calls after each step: appends what is new, and keeps what makes loading fast.

use std::sync::Arc;

use longhaul::session::journal::{Cursor, Entry};
use longhaul::{Known, Profile, Session};

use crate::error::StoreError;
use crate::store::{About, SessionId, Store, Stored};

/// Messages that may be counted again when a session is loaded, beside an eighth of all: sizes are stored
/// as a whole, so they are stored seldom.
const UNCOUNTED: usize = 64;

/// Keeps one session in a store. Knows how much of it is stored.
#[derive(Debug, Clone)]
pub struct Keeper {
    store: Arc<dyn Store>,
    id: SessionId,
    stored: Cursor,
    /// Messages whose sizes are stored.
    sized: usize,
    /// Nothing that is said is stored.
    without_content: bool,
}

impl Keeper {
    /// Makes a stored session of one that is not stored yet. If it is to be one without content, nothing that is
    /// said in it is ever written, and it cannot be opened.
    pub fn create(store: Arc<dyn Store>, about: &About, session: &Session) -> Result<Self, StoreError> {
        let id = store.create(about)?;
        let mut keeper =
            Self { store, id, stored: Cursor(0), sized: 0, without_content: about.without_content };
        keeper.save(session)?;
        Ok(keeper)
    }

    /// Loads a session. Entries that loading appended are stored by the next [`save`](Self::save).
    pub fn open(
        store: Arc<dyn Store>,
        id: SessionId,
        profile: Profile,
    ) -> Result<(Self, Session), StoreError> {
        let Stored { meta, entries, sizes, sized } = store.load(id)?;
        if meta.without_content {
            return Err(StoreError::NoContent(id));
        }
        let known = Known { sizes, store: Some(store.archive(id)?) };
        let session = Session::load_with(profile, entries, known)
            .map_err(|problem| StoreError::Journal { session: id, problem })?;
        Ok((Self { store, id, stored: meta.end, sized, without_content: false }, session))
    }

    /// Where the session is stored.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The name of the stored session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// How many entries of the session are stored.
    pub fn stored(&self) -> Cursor {
        self.stored
    }

    /// Appends what is new. All of it is durable when this returns. A host calls it before a request is
    /// sent and after its answer came.
    pub fn save(&mut self, session: &Session) -> Result<(), StoreError> {
        self.append(session)?;
        if session.log().messages().len() > self.sized + self.sized / 8 + UNCOUNTED {
            self.keep_sizes(session)?;
        }
        Ok(())
    }

    /// The same when a session ends: all sizes of messages are kept too, and what was learnt of the model.
    pub fn finish(&mut self, session: &Session) -> Result<(), StoreError> {
        self.append(session)?;
        self.keep_sizes(session)
    }

    fn append(&mut self, session: &Session) -> Result<(), StoreError> {
        let kept = |entry: &Entry| if self.without_content { entry.without_content() } else { entry.clone() };
        let new: Vec<Entry> = session.since(self.stored).map(kept).collect();
        if new.is_empty() {
            return Ok(());
        }
        match self.store.append(self.id, self.stored, &new) {
            Err(StoreError::Conflict { stored, .. }) if self.wrote(&new, stored)? => {
                self.stored = stored;
                self.append(session)
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.stored = session.cursor();
                Ok(())
            }
        }
    }

    /// Whether the entries that are stored behind our place are our own: an append that failed may have been
    /// stored all the same.
    fn wrote(&self, new: &[Entry], stored: Cursor) -> Result<bool, StoreError> {
        let more = stored.0.saturating_sub(self.stored.0);
        if more == 0 || more > new.len() {
            return Ok(false);
        }
        let theirs = self.store.since(self.id, self.stored)?;
        let ours = new.iter().map(|entry| entry.apart().map_or_else(|| entry.clone(), |(entry, ..)| entry));
        let mut pairs = theirs.iter().zip(ours);
        Ok(theirs.len() == more && pairs.all(|(theirs, ours)| json(theirs).eq(&json(&ours))))
    }

    /// Names the session by hashes of its first messages ([`Store::keep_prefixes`]).
    pub fn keep_prefixes(&self, first: usize, hashes: &[[u8; 16]]) -> Result<(), StoreError> {
        if hashes.is_empty() { Ok(()) } else { self.store.keep_prefixes(self.id, first, hashes) }
    }

    /// Sizes are of messages that are stored: others may take their places after a crash.
    fn keep_sizes(&mut self, session: &Session) -> Result<(), StoreError> {
        // They make loading fast, and a session without content is never loaded.
        if !self.without_content {
            self.store.keep_sizes(self.id, &session.snapshots())?;
        }
        self.sized = session.log().messages().len();
        match session.meter().calibration() {
            Some(calibration) => self.store.keep_learnt(&session.model().name, calibration),
            None => Ok(()),
        }
    }

    /// Stores a fork of the session: a session of its own that shares what is stored already.
    pub fn fork(&self, fork: &Session) -> Result<Self, StoreError> {
        // An entry says that it is a fork; what stands before it is shared. The fork may have gone on since.
        let entries = fork.since(Cursor(0)).zip(0..);
        let forked = entries.filter(|(entry, _)| matches!(entry, Entry::Forked { .. })).last();
        let shared = forked.map_or(Cursor(0), |(_, at)| Cursor(at)).min(self.stored);
        let id = self.store.fork(self.id, shared)?;
        let (store, without_content) = (self.store.clone(), self.without_content);
        let mut keeper = Self { store, id, stored: shared, sized: 0, without_content };
        keeper.save(fork)?;
        Ok(keeper)
    }
}

/// An entry as it is stored: without what no store may hold.
fn json(entry: &Entry) -> Option<String> {
    serde_json::to_string(entry).ok()
}
