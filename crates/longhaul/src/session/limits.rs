//! The limits of a session: which model is talked to, and how much fits into its window.

use std::sync::Arc;

use super::journal::{Allowed, Entry};
use crate::policy::profile::Profile;
use crate::size::budget::Budget;
use crate::size::models::{CacheRule, Model};
use crate::size::tokens::Tokens;

/// Model and limits, as the journal says.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) model: Arc<Model>,
    allowed: Allowed,
    /// What the provider takes, by what it said when it refused a request: the window that it named,
    /// else the size of that request.
    learnt: Option<Tokens>,
    /// The longest answer that the frame asks for.
    frame_output: Option<Tokens>,
}

impl Limits {
    pub(super) fn new(model: Arc<Model>) -> Self {
        Self { model, allowed: Allowed::default(), learnt: None, frame_output: None }
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Switched { model, .. } => {
                if model.name != self.model.name {
                    self.learnt = None;
                }
                self.model = model.clone();
            }
            Entry::Limited(allowed) => {
                if allowed.window != self.allowed.window {
                    self.learnt = None;
                }
                self.allowed = *allowed;
            }
            Entry::Refused { window, size, .. } => {
                let learnt = window.unwrap_or(*size);
                self.learnt = Some(self.learnt.map_or(learnt, |before| before.min(learnt)));
            }
            Entry::Frame(frame) => self.frame_output = frame.max_output(),
            Entry::MaxOutput(tokens) => self.frame_output = *tokens,
            _ => {}
        }
    }

    pub(super) fn frame_output(&self) -> Option<Tokens> {
        self.frame_output
    }

    pub(super) fn allowed(&self) -> Allowed {
        self.allowed
    }

    /// The window: what the provider takes, what the host set, the model's; of a model that nobody
    /// knows, the profile's.
    pub(super) fn window(&self, profile: &Profile) -> Tokens {
        let of_model = if self.model.is_unknown() { profile.window } else { self.model.window };
        let set = self.allowed.window.unwrap_or(of_model);
        self.learnt.map_or(set, |learnt| learnt.min(set))
    }

    pub(super) fn budget(&self, profile: &Profile) -> Budget {
        let window = self.window(profile);
        match self.allowed.max_output.or(self.frame_output) {
            Some(output) => Budget::for_output(window, output, profile.shares),
            None => Budget::with_shares(window, self.model.max_output, profile.shares),
        }
    }

    /// How the provider caches, for as long as the request asks.
    pub(super) fn cache(&self) -> CacheRule {
        let rule = self.model.cache;
        CacheRule { lifetime_s: self.allowed.cache_lifetime_s.unwrap_or(rule.lifetime_s), ..rule }
    }
}
