//! In whose place texts of ours stand in requests of this session.

use super::Session;
use super::journal::{Cursor, Entry};
use crate::edits::voice::{self, Voice};

impl Session {
    /// The voice that the provider is known to take, where it refuses another: that of all texts made from here on.
    /// `None` leaves the choice to the profile.
    pub fn set_voice(&mut self, voice: Option<Voice>) {
        self.known_voice = voice;
    }

    /// Gives all texts of ours another voice, those that stand too: the provider refused them in the one they had.
    pub fn revoice(&mut self, voice: Voice) {
        self.record(Entry::Voiced(voice));
    }

    /// The voice of summaries and markers.
    pub fn voice_of_folds(&self) -> Voice {
        self.wanted_voice().unwrap_or(self.profile.voice)
    }

    /// The voice of texts that quote.
    pub(super) fn voice_of_quotes(&self) -> Voice {
        self.wanted_voice().unwrap_or(Voice::User)
    }

    /// The voice of notes of the host among the messages.
    pub(super) fn voice_of_notes(&self) -> Voice {
        self.wanted_voice().unwrap_or(Voice::User)
    }

    /// The voice of the note and of rules: a part of the system prompt.
    pub(super) fn voice_of_head(&self) -> Voice {
        self.wanted_voice().unwrap_or(Voice::System)
    }

    /// The voice of the tail. It is in no journal: one that began without voices keeps the role that it had.
    pub(super) fn voice_of_tail(&self) -> Option<Voice> {
        match self.wanted_voice() {
            None if !self.has_voices() => None,
            wanted => Some(wanted.unwrap_or(Voice::User)),
        }
    }

    /// True if the journal began when voices were stored already.
    fn has_voices(&self) -> bool {
        let first = self.journal.since(Cursor(0)).next();
        first.is_some_and(|first| matches!(first, Entry::Began { version, .. } if *version >= voice::SINCE))
    }

    fn wanted_voice(&self) -> Option<Voice> {
        self.ledger().revoiced().or(self.known_voice)
    }
}
