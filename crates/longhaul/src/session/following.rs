//! The view and the keep set follow log and ledger.

use super::Session;
use super::journal::Entry;
use super::state::State;
use crate::conversation::message::Time;
use crate::size::tokens::Tokens;
use crate::view::keep;
use crate::view::{Part, Source};

impl Session {
    /// Brings the view up to log and ledger, and decides what stands before the history.
    pub(super) fn follow(&mut self) {
        self.uses.follow(&self.state.log, &self.profile.aliases);
        self.follow_note();
        self.follow_keep_set();
        let differ = self.keep.rules_differ(self.log(), self.ledger());
        if self.keep.must_cut_rules(self.ledger()) || differ && self.has_lost_prefix() {
            self.write_rules();
        }
        if self.state.limits.model.binds
            && let Some((text, kept)) = self.keep.note(self.log(), self.ledger())
        {
            let voice = Some(self.voice_of_notes());
            self.record(Entry::HostNote { text: text.into(), kept, voice });
        }
        self.follow_view();
    }

    /// Writes the rules that are in force before the history where that costs nothing beside: the cache is
    /// cold by `now`, or the request is too large and something of it must go.
    pub(super) fn follow_rules(&mut self, now: Option<Time>) {
        let free = self.is_cold(now) || self.size().tokens > self.budget().hard;
        if free && !self.is_thinking_bound() && self.keep.rules_differ(self.log(), self.ledger()) {
            self.write_rules();
            self.follow_view();
        }
    }

    /// True if thinking is shown that another head would invalidate.
    fn is_thinking_bound(&self) -> bool {
        self.model().binds && self.state.binding.has_signed()
    }

    /// True if the provider's cache has nothing behind the system prompt that the next request could read
    /// whole: no request was sent, or an edit changed what it had. Bound thinking must be gone too.
    fn has_lost_prefix(&mut self) -> bool {
        self.state.look();
        !self.is_thinking_bound() && self.state.requests.cache.is_broken_by(&self.state.view)
    }

    fn write_rules(&mut self) {
        let text = self.keep.rules_in_force();
        if self.ledger().rules().unwrap_or_default() != text {
            let voice = Some(self.voice_of_head());
            self.record(Entry::RulesShown { text: text.into(), voice });
            self.follow_keep_set();
        }
    }

    /// Puts what the profile tells the model behind the system prompt. It is there from the first request
    /// on and stays as it is; another profile has another note, or none.
    fn follow_note(&mut self) {
        let note = self.profile.system_note();
        if note.as_deref() != self.ledger().note() {
            let voice = Some(self.voice_of_head());
            self.record(Entry::NoteShown { text: note.map(Into::into), voice });
        }
    }

    /// The same where no request is made: no entry is written. After a load, a fork or a switch the
    /// size is that of what would be sent.
    pub(super) fn look(&mut self) {
        self.follow_keep_set();
        self.follow_view();
    }

    pub(super) fn follow_keep_set(&mut self) {
        // What stands before the messages takes of the room.
        self.state.look_at_frame();
        let room = self.keep_room();
        self.keep.follow(&self.state.log, &self.state.ledger, room);
    }

    pub(super) fn follow_view(&mut self) {
        self.state.look();
        let now = self.keep.tail(self.log(), self.ledger());
        let voice = self.voice_of_tail();
        let State { view, sizes, .. } = &mut self.state;
        let is_known = |tail: &Part| tail.message.voice() == voice && keep::text_of(&tail.message) == now;
        if view.tail().map_or(now.is_empty(), is_known) {
            return;
        }
        let tail = (!now.is_empty()).then(|| {
            let message = keep::host_message(now, voice);
            Part { source: Source::Tail, measure: sizes.meter.message(&message), message }
        });
        view.set_tail(tail);
    }

    /// What the hard limit leaves beside the system layer.
    pub(super) fn room_beside_system(&self) -> Tokens {
        self.budget().hard - self.tokens(self.state.system_layer())
    }

    /// Half of what the hard limit leaves beside the system layer, in bytes by the neutral
    /// measure.
    pub(super) fn keep_room(&self) -> usize {
        let room = usize::try_from(self.room_beside_system().0).unwrap_or(usize::MAX).saturating_mul(2);
        // In rough steps: the meter learns with every call, and what is shown should not change.
        room - room % (room / 16).max(1).next_power_of_two()
    }
}
