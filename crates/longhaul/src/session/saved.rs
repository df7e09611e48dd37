//! A session on its way into a store and back. What is loaded sends the same bytes as what
//! was saved: edits are taken as they are, and no message is counted again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Session;
use super::compaction::Compaction;
use crate::conversation::fact::Noted;
use crate::conversation::log::{At, Span};
use crate::conversation::message::{Message, Time};
use crate::edits::archive::{Archive, Handle, Original};
use crate::edits::edit::{Edit, EditId, EditKind};
use crate::edits::ledger::Event;
use crate::policy::breaker::Breaker;
use crate::policy::profile::Profile;
use crate::policy::task::Task;
use crate::size::calibration::Calibration;
use crate::size::meter::{Measure, Meter};
use crate::size::models::Model;
use crate::size::tokens::Tokens;
use crate::summary::covered::Covered;
use crate::view::cache::PromptCache;
use crate::view::keep;

/// All that a session is.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The messages of the log.
    pub messages: Vec<Arc<Message>>,
    /// Facts and frames.
    pub notes: Vec<Noted>,
    /// The ledger. Its events can be written as JSON.
    pub events: Vec<Event>,
    /// The size of each message.
    pub sizes: Vec<Measure>,
    /// What the meter learnt.
    pub calibration: Option<Calibration>,
    /// How far it has come.
    pub state: State,
}

/// Why a session cannot be loaded: its ledger is not one that was saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A line of the ledger is missing, or stands twice.
    #[error("the ledger has edit {} where edit {} should be", .found.0, .expected.0)]
    OutOfOrder {
        /// The edit that stands there.
        found: EditId,
        /// The one that should.
        expected: EditId,
    },
    /// An edit that no engine makes.
    #[error("edit {} of the ledger covers nothing", .0.0)]
    Empty(EditId),
}

/// How far a session has come: what its next decisions hang on beside log and ledger. Can be
/// written as JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    calls: u64,
    asked: bool,
    breaker: Breaker,
    last_used: Option<Time>,
    next_job: u64,
    foreign_end: At,
    focus: Option<Box<str>>,
    overflowed: Option<Tokens>,
    compaction: Option<Compaction>,
    kept_at: Option<u64>,
    last_prompt: Tokens,
    full_at: u64,
    task: Option<Task>,
    window: Option<Tokens>,
    sent_size: Option<Measure>,
    /// The newest reported prompt, and the view it was reported for.
    base: Option<(Measure, Tokens)>,
}

impl Session {
    /// All that must be stored.
    pub fn save(&self) -> Saved {
        Saved {
            messages: self.log.messages().to_vec(),
            notes: self.log.notes().to_vec(),
            events: self.ledger.events().to_vec(),
            sizes: self.sizes.clone(),
            calibration: self.meter.calibration().cloned(),
            state: State {
                calls: self.calls,
                asked: self.asked,
                breaker: self.breaker.clone(),
                last_used: self.cache.last_used(),
                next_job: self.next_job,
                foreign_end: self.foreign_end,
                focus: self.focus.clone(),
                overflowed: self.overflowed,
                compaction: self.compaction.clone(),
                kept_at: self.kept_at,
                last_prompt: self.last_prompt,
                full_at: self.full_at,
                task: self.task,
                window: self.window,
                sent_size: self.sent_size,
                base: self.meter.base(),
            },
        }
    }

    /// The session that was saved. Sizes of another number than messages are counted anew; edits
    /// of messages that are not there (a store that was cut short) are taken back.
    pub fn load(profile: Profile, model: Model, saved: Saved) -> Result<Self, LoadError> {
        let mut session = Self::new(profile, model);
        if let Some(window) = saved.state.window {
            session = session.with_window(window);
        }
        match saved.calibration {
            Some(calibration) => session.meter = Meter::calibrated(&session.model, calibration),
            None => session.meter = Meter::neutral(),
        }
        session.calls = saved.state.calls;
        session.asked = saved.state.asked;
        session.breaker = saved.state.breaker;
        session.cache = PromptCache::used_at(saved.state.last_used);
        session.next_job = saved.state.next_job;
        session.foreign_end = saved.state.foreign_end.min(At(saved.messages.len() as u32));
        session.focus = saved.state.focus;
        session.overflowed = saved.state.overflowed;
        session.compaction = saved.state.compaction;
        session.kept_at = saved.state.kept_at;
        session.last_prompt = saved.state.last_prompt;
        session.full_at = saved.state.full_at;
        session.task = saved.state.task;
        session.sent_size = saved.state.sent_size;
        let sizes = match saved.sizes.len() == saved.messages.len() {
            true => saved.sizes,
            false => saved.messages.iter().map(|message| session.meter.message(message)).collect(),
        };
        // Of a store that was cut short: what was sent behind its end is of another session.
        let end = At(saved.messages.len() as u32);
        let mut events = saved.events;
        let known = events.len();
        events.retain(|event| !matches!(event, Event::PlaceholderSent { end: at } if *at > end));
        let mut cut = events.len() < known;
        let closed = events.iter().filter_map(|event| match event {
            Event::PlaceholderSent { end } => Some(*end),
            _ => None,
        });
        session.log = crate::conversation::log::Log::load(saved.messages, saved.notes, closed);
        session.sizes = sizes;
        session.sum_sizes();
        // Before the base is taken: a frame that is new drops it.
        session.follow_frame();
        if let Some((view, prompt)) = saved.state.base {
            session.meter.anchor(view, prompt);
        }
        for event in events {
            if let Event::Apply(edit) = &event {
                let expected = session.ledger.next_id();
                if edit.id != expected {
                    return Err(LoadError::OutOfOrder { found: edit.id, expected });
                }
                let spans = edit.kind.spans();
                if spans.is_empty() || spans.iter().any(|span| span.start >= span.end) {
                    return Err(LoadError::Empty(edit.id));
                }
                cut |= spans.iter().any(|span| span.end > end);
                session.rearchive(&edit.kind, &edit.originals);
            }
            session.ledger.record(event);
        }
        // One that was forked here may have had edits that reach further: they are known as such.
        if cut && session.ledger.edits().any(|(edit, on)| on && edit.kind.spans().iter().any(|s| s.end > end))
        {
            session.ledger.record(Event::Forked { end });
            session.take_back(|session, edit| !session.may_hold(edit));
        }
        // No engine makes a fold that begins or ends inside a unit.
        session.take_back(|session, edit| edit.kind.is_fold() && !session.covers_units(&edit.kind.spans()));
        // What was cut to be kept is recalled by its handle.
        for text in keep::all_texts(&session.log) {
            session.archive.put(Handle::of(&text), Original::Text(text.into()));
        }
        session.look();
        Ok(session)
    }

    /// Takes active edits back, the newest first.
    pub(super) fn take_back(&mut self, lost: impl Fn(&Self, &Edit) -> bool) {
        let active = self.ledger.edits().filter(|(_, active)| *active).map(|(edit, _)| edit);
        let lost: Vec<EditId> = active.filter(|edit| lost(self, edit)).map(|edit| edit.id).collect();
        for edit in lost.into_iter().rev() {
            self.ledger.record(Event::Undo { edit, held: false });
        }
    }

    fn covers_units(&self, spans: &[Span]) -> bool {
        let starts = |at: At| self.log.unit_of(at).is_none_or(|unit| unit.span.start == at);
        spans.iter().all(|span| starts(span.start) && starts(span.end))
    }

    /// Puts the originals of an edit back under their handles, if they are what they were.
    fn rearchive(&mut self, kind: &EditKind, handles: &[Handle]) {
        let Some(handle) = handles.first().copied() else { return };
        let original = match kind {
            EditKind::Digest { at, block, .. } | EditKind::DigestArgs { at, block, .. } => {
                self.log.get(*at).map(|message| Original::Block(message.clone(), *block))
            }
            EditKind::DropThinking { at } => {
                self.log.get(*at).map(|message| Original::Thinking(message.clone()))
            }
            EditKind::Fold { spans, .. } | EditKind::Hide { spans, .. } => {
                // As it was when the edit was made: the edits before it are in the ledger.
                Some(Covered::of(&self.log, &self.ledger, spans).original())
            }
        };
        // What a fork left behind had its place in another log: something else stands there now.
        if let Some(original) = original.filter(|original| original.handle() == handle) {
            self.archive.put(handle, original);
        }
    }
}
