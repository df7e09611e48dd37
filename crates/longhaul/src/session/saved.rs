//! A session on its way into a store and back. What is loaded sends the same bytes as what
//! was saved: edits are taken as they are, and no message is counted again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Session;
use super::compaction::Compaction;
use crate::archive::{Archive, Original};
use crate::breaker::Breaker;
use crate::cache::PromptCache;
use crate::calibration::Calibration;
use crate::edit::EditKind;
use crate::fact::Noted;
use crate::ledger::Event;
use crate::log::At;
use crate::message::{Message, Time};
use crate::meter::{Measure, Meter};
use crate::models::Model;
use crate::profile::Profile;
use crate::task::Task;
use crate::tokens::Tokens;

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
            },
        }
    }

    /// The session that was saved. Sizes of another number than messages are counted anew.
    pub fn load(profile: Profile, model: Model, saved: Saved) -> Self {
        let mut session = Self::new(profile, model);
        match saved.calibration {
            Some(calibration) => session.meter = Meter::calibrated(&session.model, calibration),
            None => session.meter = Meter::neutral(),
        }
        session.calls = saved.state.calls;
        session.asked = saved.state.asked;
        session.breaker = saved.state.breaker;
        session.cache = PromptCache::used_at(saved.state.last_used);
        session.next_job = saved.state.next_job;
        session.foreign_end = saved.state.foreign_end;
        session.focus = saved.state.focus;
        session.overflowed = saved.state.overflowed;
        session.compaction = saved.state.compaction;
        session.kept_at = saved.state.kept_at;
        session.last_prompt = saved.state.last_prompt;
        session.full_at = saved.state.full_at;
        session.task = saved.state.task;
        let sizes = match saved.sizes.len() == saved.messages.len() {
            true => saved.sizes,
            false => saved.messages.iter().map(|message| session.meter.message(message)).collect(),
        };
        let closed = saved.events.iter().filter_map(|event| match event {
            Event::PlaceholderSent { end } => Some(*end),
            _ => None,
        });
        session.log = crate::log::Log::load(saved.messages, saved.notes, closed);
        session.sizes = sizes;
        session.sum_sizes();
        // Before the base is taken: a frame that is new drops it.
        session.follow_frame();
        for event in saved.events {
            match &event {
                Event::Apply(edit) => session.rearchive(&edit.kind, &edit.originals),
                Event::Usage { view, prompt } => session.meter.anchor(*view, *prompt),
                _ => {}
            }
            session.ledger.record(event);
        }
        session
    }

    /// Puts the originals of an edit back under their handles, without reading them.
    fn rearchive(&mut self, kind: &EditKind, handles: &[crate::archive::Handle]) {
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
                let (mut before, mut messages) = (Vec::new(), Vec::new());
                for span in spans {
                    let mut at = span.start;
                    while at < span.end {
                        match self.ledger.covering(at) {
                            Some((outer, id)) => {
                                let edit = self.ledger.get(id);
                                let first =
                                    edit.and_then(|edit| edit.kind.spans().first().map(|span| span.start));
                                if first == Some(outer.start) {
                                    before
                                        .extend(edit.iter().flat_map(|edit| edit.originals.iter().copied()));
                                }
                                at = outer.end;
                            }
                            None => {
                                messages.extend(self.log.get(at).cloned());
                                at = At(at.0 + 1);
                            }
                        }
                    }
                }
                Some(Original::Run(before, messages))
            }
        };
        // What a fork left behind had its place in another log: something else stands there now.
        if let Some(original) = original.filter(|original| original.handle() == handle) {
            self.archive.put(handle, original);
        }
    }
}
