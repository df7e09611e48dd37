//! Retracing: a journal is taken in entry by entry, and each request can be looked at as it was sent. Loading
//! makes the last view alone; who explains a session wants all of them, once, and goes on where it was when the
//! journal has grown.

use std::sync::Arc;

use super::journal::{self, Cursor, Entry, Journal};
use super::loading::{Known, check};
use super::state::State;
use super::{LoadError, Session};
use crate::edits::archive::Handle;
use crate::edits::edit::EditText;
use crate::policy::profile::Profile;

impl Session {
    /// The session of a journal, to be looked at. `seen` is called with each entry, before it is taken in; when a
    /// request was sent, the session shows it then: its [`view`](Self::view) is what was sent, of which the first
    /// [`unchanged`](crate::view::View::unchanged) parts are those of the request before.
    ///
    /// ```
    /// use longhaul::{Entry, Known, Message, Models, Profile, Session};
    ///
    /// let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    /// for text in ["Hello.", "And now?"] {
    ///     session.push(Message::user(text));
    ///     session.prepare(None)?;
    ///     session.push(Message::assistant("Yes."));
    /// }
    /// let mut sizes = Vec::new();
    /// let entries = session.since(longhaul::Cursor(0)).cloned();
    /// Session::retrace(Profile::longhaul(), entries, Known::default(), |session, entry| {
    ///     if let Entry::Sent(_) = entry {
    ///         sizes.push(session.view().parts().len());
    ///     }
    /// })?;
    /// assert_eq!(sizes, [1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retrace(
        profile: Profile,
        entries: impl IntoIterator<Item = Entry>,
        known: Known,
        mut seen: impl FnMut(&Self, &Entry),
    ) -> Result<Self, LoadError> {
        let mut entries = entries.into_iter();
        let first = entries.next().ok_or(LoadError::NoBeginning)?;
        let model = match &first {
            Entry::Began { version, .. } if *version > journal::VERSION => {
                return Err(LoadError::Version(*version));
            }
            Entry::Began { model, .. } => model.clone(),
            _ => return Err(LoadError::NoBeginning),
        };
        let state = State::new(model, known.sizes);
        let mut session = Self { store: known.store, ..Self::of(profile, Journal::default(), state) };
        seen(&session, &first);
        session.state.apply(&first);
        session.journal.append(first);
        session.retrace_on(entries, seen)?;
        session.state.sizes.forget_known();
        Ok(session)
    }

    /// Goes on with entries that were written since.
    pub fn retrace_on(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
        mut seen: impl FnMut(&Self, &Entry),
    ) -> Result<(), LoadError> {
        for entry in entries {
            check(self.journal.end().0, &entry, self.log(), self.ledger())?;
            let entry = self.with_text(entry)?;
            let is_sent = matches!(entry, Entry::Sent(_));
            if is_sent {
                self.look();
            }
            seen(self, &entry);
            self.state.apply(&entry);
            self.journal.append(entry);
            if is_sent {
                self.checkpoints.pass(self.journal.end(), &self.state);
            }
        }
        self.look();
        Ok(())
    }

    /// The session as it was at a place of its journal. Behind a request it shows what was sent.
    pub fn as_of(&self, end: Cursor) -> Result<Self, LoadError> {
        let mut then = self.replayed(end.min(self.journal.end()))?;
        then.look();
        Ok(then)
    }

    /// The entry with the text that its edit shows.
    fn with_text(&self, entry: Entry) -> Result<Entry, LoadError> {
        let Entry::Edit(edit) = &entry else { return Ok(entry) };
        let Some(EditText::Apart { apart }) = edit.kind.text() else { return Ok(entry) };
        let text = self.store.as_deref().and_then(|store| store.get(*apart));
        let text = text.filter(|text| Handle::of(text) == *apart);
        let text = text.ok_or(LoadError::Lost { edit: edit.id, handle: *apart })?;
        let mut edit = (**edit).clone();
        if let Some(place) = edit.kind.text_mut() {
            *place = EditText::Here(text.into());
        }
        Ok(Entry::Edit(Arc::new(edit)))
    }
}
