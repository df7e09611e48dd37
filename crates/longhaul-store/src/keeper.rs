//! What a host calls after each step: appends what is new, and keeps what makes loading fast. A session is named here
//! and not by the store, so it can begin, and be forked, while the store does not answer.

use std::sync::Arc;

use longhaul::session::journal::{Cursor, Entry};
use longhaul::{Archive, Known, Profile, Session};

use crate::error::StoreError;
use crate::export;
use crate::store::{About, Meta, SessionId, Store, Stored};

/// Messages that may be counted again when a session is loaded, beside an eighth of all: sizes are stored
/// as a whole, so they are stored seldom.
const UNCOUNTED: usize = 64;

/// Entries that are appended in one transaction: what could not be stored for a long time is stored in parts, each of
/// which takes a short time.
const PART: usize = 256;

/// Keeps one session in a store. Knows how much of it is stored.
#[derive(Debug, Clone)]
pub struct Keeper {
    store: Arc<dyn Store>,
    id: SessionId,
    about: About,
    row: Row,
    /// Entries before this are stored: of a fork with its parent until the fork has a row of its own.
    stored: Cursor,
    /// Messages whose sizes are stored.
    sized: usize,
    /// The texts that entries lack since the session was loaded.
    texts: Option<Arc<dyn Archive>>,
}

/// Whether the store has a session of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// It has.
    There,
    /// The next save makes it.
    Missing,
    /// The next save makes it as a fork of another session.
    ForkOf(SessionId),
}

/// What a store has of a session, compared with what was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// All of it, and nothing else.
    All,
    /// Less: the session was deleted, or the store has another file now. The next save writes what is missing.
    Less,
    /// Entries of another writer.
    Other,
}

impl Keeper {
    /// Makes a stored session of one that is not stored yet. If it is to be one without content, nothing that is
    /// said in it is ever written, and it cannot be opened.
    pub fn create(store: Arc<dyn Store>, about: &About, session: &Session) -> Result<Self, StoreError> {
        let mut keeper = Self::begin(store, about);
        keeper.save(session)?;
        Ok(keeper)
    }

    /// The same for a session that the first [`save`](Self::save) stores.
    pub fn begin(store: Arc<dyn Store>, about: &About) -> Self {
        Self::begin_as(store, SessionId::fresh(), about)
    }

    /// The same under this name. Several writers that begin the same session under the same name store it once: each
    /// continues where the others are.
    pub fn begin_as(store: Arc<dyn Store>, id: SessionId, about: &About) -> Self {
        let about = about.clone();
        Self { store, id, about, row: Row::Missing, stored: Cursor(0), sized: 0, texts: None }
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
        let texts = store.archive(id)?;
        let known = Known { sizes, store: Some(texts.clone()) };
        let session = Session::load_with(profile, entries, known)
            .map_err(|problem| StoreError::Journal { session: id, problem })?;
        let (stored, row) = (meta.end, Row::There);
        Ok((Self { store, id, about: about(meta), row, stored, sized, texts: Some(texts) }, session))
    }

    /// Where the session is stored.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The name of the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// What the host said of the session.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Where what is stored of the session ends.
    pub fn stored(&self) -> Cursor {
        self.stored
    }

    /// The texts that entries of a session that was loaded lack.
    pub fn texts(&self) -> Option<&Arc<dyn Archive>> {
        self.texts.as_ref()
    }

    /// True if the store has a session of this name.
    pub fn is_begun(&self) -> bool {
        self.row == Row::There
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
        self.make_row()?;
        loop {
            let new: Vec<Entry> =
                session.since(self.stored).take(PART).map(|entry| self.kept(entry)).collect();
            if new.is_empty() {
                return Ok(());
            }
            let mut appended = self.store.append(self.id, self.stored, &new);
            if let (Err(StoreError::LostText(_)), Some(texts)) = (&appended, &self.texts) {
                // The store that the texts were read from is not the one that is written to.
                let whole: Result<Vec<Entry>, _> =
                    new.iter().map(|entry| export::whole(entry, &**texts)).collect();
                appended = self.store.append(self.id, self.stored, &whole?);
            }
            match appended {
                // An append that failed may have been stored all the same.
                Err(StoreError::Conflict { stored, .. })
                    if self.stored < stored && self.wrote(session, stored)? =>
                {
                    self.stored = stored;
                }
                appended => {
                    appended?;
                    self.stored.0 += new.len();
                }
            }
        }
    }

    fn kept(&self, entry: &Entry) -> Entry {
        if self.about.without_content { entry.without_content() } else { entry.clone() }
    }

    /// Makes the session that is appended to.
    fn make_row(&mut self) -> Result<(), StoreError> {
        match self.row {
            Row::There => return Ok(()),
            Row::Missing => self.store.create_as(self.id, &self.about)?,
            Row::ForkOf(parent) => match self.store.fork_as(self.id, parent, self.stored) {
                // The parent is gone, or in another file: the fork has all entries of its own.
                Err(StoreError::NoSession(_) | StoreError::PastEnd { .. }) => {
                    self.store.create_as(self.id, &self.about)?;
                    self.stored = Cursor(0);
                }
                forked => forked?,
            },
        }
        self.row = Row::There;
        Ok(())
    }

    /// Compares what the store has with what was saved. What it has of the session beyond what we know of is found here:
    /// an append that failed may have been stored all the same.
    pub fn compare(&mut self, session: &Session) -> Result<Kept, StoreError> {
        if self.row != Row::There {
            return Ok(Kept::All);
        }
        let end = match self.store.meta(self.id) {
            Ok(meta) => meta.end,
            Err(StoreError::NoSession(_)) => {
                (self.row, self.stored, self.sized) = (Row::Missing, Cursor(0), 0);
                return Ok(Kept::Less);
            }
            Err(error) => return Err(error),
        };
        if end == self.stored {
            return Ok(Kept::All);
        }
        if !self.wrote(session, end)? {
            return Ok(Kept::Other);
        }
        let kept = if end < self.stored { Kept::Less } else { Kept::All };
        if kept == Kept::Less {
            self.sized = 0;
        }
        self.stored = end;
        Ok(kept)
    }

    /// Whether the entries that are stored up to this place are our own.
    fn wrote(&self, session: &Session, end: Cursor) -> Result<bool, StoreError> {
        if end > session.cursor() {
            return Ok(false);
        }
        // What we know to be stored need not be looked at, if that is less.
        let from = if self.stored < end { self.stored } else { Cursor(0) };
        let theirs = self.store.since(self.id, from)?;
        let ours = session.since(from).take(end.0 - from.0).map(|entry| self.kept(entry));
        let ours = ours.map(|entry| entry.apart().map_or(entry, |(entry, ..)| entry));
        let mut pairs = theirs.iter().zip(ours);
        Ok(theirs.len() == end.0 - from.0 && pairs.all(|(theirs, ours)| json(theirs).eq(&json(&ours))))
    }

    /// The session goes on under a name of its own from what is stored of it: another writer has gone on with the one
    /// that it was.
    #[must_use]
    pub fn parted(&self) -> Self {
        let row = match self.row {
            Row::There => Row::ForkOf(self.id),
            row => row,
        };
        Self { id: SessionId::fresh(), row, sized: 0, ..self.clone() }
    }

    /// Names the session by hashes of its first messages ([`Store::keep_prefixes`]).
    pub fn keep_prefixes(&self, first: usize, hashes: &[[u8; 16]]) -> Result<(), StoreError> {
        if hashes.is_empty() { Ok(()) } else { self.store.keep_prefixes(self.id, first, hashes) }
    }

    /// Sizes are of messages that are stored: others may take their places after a crash.
    fn keep_sizes(&mut self, session: &Session) -> Result<(), StoreError> {
        // They make loading fast, and a session without content is never loaded.
        if !self.about.without_content {
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
        let mut keeper = self.begin_fork(fork);
        keeper.save(fork)?;
        Ok(keeper)
    }

    /// The same for a fork that its first [`save`](Self::save) stores.
    #[must_use]
    pub fn begin_fork(&self, fork: &Session) -> Self {
        // An entry says that it is a fork; what stands before it is shared. The fork may have gone on since.
        let entries = fork.since(Cursor(0)).zip(0..);
        let forked = entries.filter(|(entry, _)| matches!(entry, Entry::Forked { .. })).last();
        let shared = forked.map_or(Cursor(0), |(_, at)| Cursor(at)).min(self.stored);
        Self { stored: shared, ..self.parted() }
    }
}

/// What the host said of a session that is stored. A title that the store made of its first words is made again.
fn about(meta: Meta) -> About {
    let Meta { tenant, agent, project, title, without_content, .. } = meta;
    About { tenant, agent, project, title: Some(title).filter(|title| !title.is_empty()), without_content }
}

/// An entry as it is stored: without what no store may hold.
fn json(entry: &Entry) -> Option<String> {
    serde_json::to_string(entry).ok()
}
