//! A conversation and what the store has of it. What is not stored yet is in the session, behind what the keeper has
//! stored, so a store that does not work is no reason not to go on.

use longhaul::session::journal::{Cursor, Entry};
use longhaul::{Known, LoadError, Session};
use longhaul_store::{Kept, StoreError};

use super::{Conversation, Refused};

impl Conversation {
    /// Stores what is new, or owes it if the store does not work. An error if another writer has gone on with the session.
    pub(in crate::desk) fn save(&mut self) -> Result<(), StoreError> {
        // A form that the provider may refuse is not stored.
        if self.is_unsent || self.before_retry.is_some() {
            self.is_owing = true;
            return Ok(());
        }
        match self.write() {
            Ok(()) => self.is_owing = false,
            Err(error @ (StoreError::Conflict { .. } | StoreError::NoSession(_))) => return Err(error),
            Err(error) => {
                if error.outage().is_none() && !self.is_owing {
                    tracing::warn!(session = %self.id(), %error, "a conversation cannot be stored: it goes on in memory");
                }
                self.is_owing = true;
            }
        }
        Ok(())
    }

    /// The request that it begins with is sent: from now on it is stored.
    pub(in crate::desk) fn was_sent(&mut self) {
        self.is_unsent = false;
    }

    fn write(&mut self) -> Result<(), StoreError> {
        if self.replaced != self.keeper.store().replaced() {
            self.compare()?;
        }
        match self.append() {
            // The session was deleted, or the store has another file: all of it is written again.
            Err(error @ (StoreError::Conflict { .. } | StoreError::NoSession(_))) => match self.compare()? {
                Kept::All | Kept::Less => self.append(),
                Kept::Other => Err(error),
            },
            appended => appended,
        }
    }

    fn append(&mut self) -> Result<(), StoreError> {
        self.keeper.save(&self.session)?;
        let new: Vec<[u8; 16]> = self.chains[self.named..].iter().map(super::Chain::bytes).collect();
        self.keeper.keep_prefixes(self.named, &new)?;
        self.named = self.chains.len();
        if let Some((messages, end)) = self.also_named {
            self.keeper.keep_prefixes(messages.saturating_sub(1), &[end.bytes()])?;
            self.also_named = None;
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<Kept, StoreError> {
        let replaced = self.keeper.store().replaced();
        let kept = self.keeper.compare(&self.session)?;
        if kept == Kept::Less {
            (self.named, self.is_owing) = (0, true);
        }
        self.replaced = replaced;
        Ok(kept)
    }

    /// True if the store has nothing of the session that is not known here, as far as the store can be asked.
    pub(in crate::desk) fn is_newest(&mut self) -> bool {
        match self.compare() {
            Ok(kept) => kept != Kept::Other,
            Err(error) => error.outage().is_some(),
        }
    }

    /// True if what is known here could not be stored, or is no longer where it was stored.
    pub(in crate::desk) fn in_arrears(&self) -> bool {
        self.is_owing || self.replaced != self.keeper.store().replaced()
    }

    /// True if the store has a session of this conversation.
    pub(in crate::desk) fn is_begun(&self) -> bool {
        self.keeper.is_begun()
    }

    /// The conversation under a name of its own: another writer has gone on with the one that it had.
    pub(in crate::desk) fn parted(&self, tenant: &str) -> Self {
        let mut parted =
            Self::of(self.settings.clone(), tenant, self.api, self.session.clone(), self.keeper.parted());
        (parted.named, parted.is_owing) = (0, true);
        parted
    }

    /// The conversation as its journal has it: of one that a panic left half done.
    pub(in crate::desk) fn salvaged(&self, tenant: &str) -> Result<Self, Refused> {
        let entries: Vec<Entry> = self.session.since(Cursor(0)).cloned().collect();
        let known = Known { sizes: Vec::new(), store: self.keeper.texts().cloned() };
        let unreadable = |problem: LoadError| StoreError::Journal { session: self.id(), problem };
        let mut session =
            Session::load_with(self.settings.profile.clone(), entries, known).map_err(unreadable)?;
        session.read_signatures();
        let mut salvaged = Self::of(self.settings.clone(), tenant, self.api, session, self.keeper.clone());
        (salvaged.named, salvaged.is_owing) = (0, true);
        Ok(salvaged)
    }
}
