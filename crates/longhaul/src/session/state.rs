//! The state of a session: a fold of its journal. Each part takes from an entry what concerns it, and
//! nothing else changes what is journalled. Beside it are filled in: texts that a store
//! kept apart, and the view.

use std::sync::Arc;

use super::authors::Authors;
use super::binding::Binding;
use super::journal::{Entry, RecallBy};
use super::limits::Limits;
use super::progress::Progress;
use super::requests::Requests;
use super::sizes::{Sizes, Snapshot};
use crate::conversation::log::Log;
use crate::edits::archive::{Archive, Handle, Originals};
use crate::edits::edit::EditId;
use crate::edits::ledger::Ledger;
use crate::policy::account::Rates;
use crate::size::meter::Measure;
use crate::size::models::{CacheRule, Model};
use crate::view::cache::PromptCache;
use crate::view::{Fixed, Sources, View};

/// The text of an edit that is to be shown is not in the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct LostText {
    pub(super) edit: EditId,
    pub(super) handle: Handle,
}

/// All parts.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) limits: Limits,
    pub(super) log: Log,
    pub(super) ledger: Ledger,
    pub(super) originals: Originals,
    pub(super) sizes: Sizes,
    pub(super) requests: Requests,
    pub(super) progress: Progress,
    pub(super) authors: Authors,
    pub(super) binding: Binding,
    pub(super) recall_by: RecallBy,
    /// Nobody is there to answer.
    pub(super) unattended: bool,
    /// A person was told that the window leaves little room.
    pub(super) cramped_reported: bool,
    /// What log and ledger show. Follows them when it is asked for.
    pub(super) view: View,
}

impl State {
    /// The state of a journal that has just begun. `known` are sizes that need not be counted.
    pub(super) fn new(model: Arc<Model>, known: Vec<Snapshot>) -> Self {
        Self {
            log: Log::new(),
            ledger: Ledger::default(),
            originals: Originals::default(),
            sizes: Sizes::new(&model, known),
            requests: Requests::default(),
            progress: Progress::default(),
            authors: Authors::new(&model),
            binding: Binding::default(),
            recall_by: RecallBy::default(),
            unattended: false,
            cramped_reported: false,
            view: View::default(),
            limits: Limits::new(model),
        }
    }

    /// Takes in an entry.
    pub(super) fn apply(&mut self, entry: &Entry) {
        self.take_in(entry);
        if let Entry::Sent(_) = entry {
            self.look();
            if self.limits.model.signs() {
                self.binding.sent(&self.view);
            }
            let Self { requests, view, ledger, .. } = self;
            requests.cache.send(view, |part| part.source.start(ledger));
            view.mark_sent();
        }
    }

    /// Takes in many, each after `check` has let it through. What the provider has in its cache is
    /// the request that was sent last: the views of those before need not be made, and what it showed
    /// is in the `store` if it is not here.
    pub(super) fn replay<'a, E: From<LostText>>(
        &mut self,
        entries: impl Iterator<Item = &'a Entry> + Clone,
        store: Option<&dyn Archive>,
        mut check: impl FnMut(&Self, &Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let requests = entries.clone().filter(|entry| matches!(entry, Entry::Sent(_))).count();
        let mut seen = 0;
        for entry in entries {
            check(self, entry)?;
            let sent = matches!(entry, Entry::Sent(_));
            seen += usize::from(sent);
            if sent && seen == requests {
                self.fetch(&self.ledger.texts_apart(), store)?;
            }
            if seen == requests { self.apply(entry) } else { self.take_in(entry) }
        }
        self.sizes.forget_known();
        self.fetch(&self.ledger.texts_apart(), store)?;
        Ok(())
    }

    /// Gets texts of edits from a store.
    pub(super) fn fetch(
        &mut self,
        apart: &[(EditId, Handle)],
        store: Option<&dyn Archive>,
    ) -> Result<(), LostText> {
        for (edit, handle) in apart {
            let text = store.and_then(|store| store.get(*handle));
            let text = text.filter(|text| Handle::of(text) == *handle);
            let text = text.ok_or(LostText { edit: *edit, handle: *handle })?;
            self.ledger.fetched(*edit, &text);
        }
        if !apart.is_empty() {
            // What was made of it is of an empty text.
            self.view.recount();
        }
        Ok(())
    }

    fn take_in(&mut self, entry: &Entry) {
        let other_model =
            matches!(entry, Entry::Switched { model, .. } if model.name != self.limits.model.name);
        let calls = self.requests.calls;
        let (way, frame) = (self.sizes.meter.way(), self.log.frame_version());
        // The meter learns from the size of the request that is reported on. A report that it does not believe teaches
        // nothing else either: not how long answers are, nor what the cache returned.
        let mut is_believed = true;
        if let Entry::Usage { ticket, prompt, .. } = entry
            && let Some(size) = self.requests.size(*ticket)
        {
            let is_newest = self.requests.may_be_base(*ticket);
            let meter = &mut self.sizes.meter;
            is_believed = if is_newest { meter.observe(size, *prompt) } else { meter.can_be(size, *prompt) };
        }
        match entry {
            Entry::Usage { ticket, charged: Some(charged), .. } if is_believed => {
                self.requests.charged(*ticket, charged, &self.limits.cache());
            }
            Entry::CacheTaught { expected, returned, pause_s } => {
                self.requests.returns.reported(*expected, *returned, *pause_s, &self.limits.cache());
            }
            _ => {}
        }
        if is_believed {
            self.limits.apply(entry);
        }
        self.authors.apply(entry, self.log.end());
        self.sizes.apply(entry, &self.limits.model, self.log.messages());
        self.originals.apply(entry, &self.ledger);
        self.binding.apply(entry, &self.log);
        self.ledger.apply(entry, self.log.end());
        self.log.apply(entry);
        if is_believed {
            self.requests.apply(entry, other_model);
        }
        self.progress.apply(entry, calls, other_model);
        match entry {
            Entry::RecallBy(by) => self.recall_by = by.clone(),
            Entry::Unattended(unattended) => self.unattended = *unattended,
            Entry::CrampedReported => self.cramped_reported = true,
            _ => {}
        }
        if self.log.frame_version() != frame {
            self.sizes.forget_base();
            self.requests.forget_base();
        }
        if self.sizes.meter.way() != way {
            self.requests.forget_base();
            self.view.recount();
            self.requests.cache = PromptCache::new();
        }
    }

    /// Counts what stands before the messages, if it is another than before.
    pub(super) fn look_at_frame(&mut self) {
        let Self { log, view, sizes, .. } = self;
        if view.fixed().version != log.frame_version() || view.is_recounted() {
            let measure = log.frame().map(|frame| sizes.meter.frame(frame)).unwrap_or_default();
            view.set_fixed(Fixed { version: log.frame_version(), measure });
        }
    }

    /// What stands before the messages, and the system messages that must stay, as they are shown.
    pub(super) fn system_layer(&self) -> Measure {
        let system = self.log.system_messages().iter().map(|at| self.log.edition_at(*at));
        let system = system.filter_map(|at| self.sizes.all().get(at.index())).copied();
        self.view.fixed().measure + system.sum()
    }

    /// How the provider caches, by its documentation and what it was seen to do.
    pub(super) fn cache_rule(&self) -> CacheRule {
        self.requests.returns.corrected(self.limits.cache())
    }

    /// What tokens really cost in this conversation.
    pub(super) fn rates(&self) -> Rates {
        Rates::of(self.limits.model.price, self.requests.returns)
    }

    /// Brings the view up to log and ledger.
    pub(super) fn look(&mut self) {
        self.look_at_frame();
        let Self { log, ledger, view, sizes, .. } = self;
        view.follow(Sources { log, ledger, meter: &sizes.meter, sizes: sizes.all() });
    }
}
