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
    /// The longest answer that the provider reported.
    longest_answer: Tokens,
    /// The window in which the provider wants prompt and allowed answer together, if a refusal has shown that it does.
    shared_window: Option<Tokens>,
}

impl Limits {
    pub(super) fn new(model: Arc<Model>) -> Self {
        Self {
            model,
            allowed: Allowed::default(),
            learnt: None,
            frame_output: None,
            longest_answer: Tokens::ZERO,
            shared_window: None,
        }
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Switched { model, .. } => {
                if model.name != self.model.name {
                    (self.learnt, self.shared_window) = (None, None);
                }
                self.model = model.clone();
            }
            Entry::Limited(allowed) => {
                if allowed.window != self.allowed.window {
                    self.learnt = None;
                }
                self.allowed = *allowed;
            }
            Entry::Refused { window, size, answer, .. } => {
                if answer.is_some() {
                    self.shared_window = window.or(self.shared_window);
                }
                let learnt = window.unwrap_or(*size);
                self.learnt = Some(self.learnt.map_or(learnt, |before| before.min(learnt)));
            }
            Entry::AnswerCounts { window } => self.shared_window = Some(*window),
            Entry::Frame(frame) => self.frame_output = frame.max_output(),
            Entry::MaxOutput(tokens) => self.frame_output = *tokens,
            Entry::Usage { charged: Some(charged), .. } => {
                self.longest_answer = self.longest_answer.max(charged.output);
            }
            // Sizes are counted from scratch: what usage said of answers goes too.
            Entry::Counted(_) => self.longest_answer = Tokens::ZERO,
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
        let asked = self.asked_output();
        let longest = match self.shared_window() {
            Some(window) if asked.is_some() => self.least_answer(window),
            _ => self.longest_answer,
        };
        let output = asked.unwrap_or(self.model.max_output);
        Budget::after_answer(self.window(profile), output, longest, profile.shares)
    }

    /// The window in which the provider wants prompt and allowed answer together, if it does: as it said when it
    /// refused a request, or else by the model's row.
    pub(super) fn shared_window(&self) -> Option<Tokens> {
        let of_model = || self.model.counts_answer.unwrap_or(false).then_some(self.model.window);
        self.shared_window.or_else(of_model)
    }

    /// The longest answer that the host or the frame asks for.
    fn asked_output(&self) -> Option<Tokens> {
        self.allowed.max_output.or(self.frame_output)
    }

    /// No request allows its answer less than this, unless it asks for less. In a window that is too small for that,
    /// half of it.
    fn least_answer(&self, window: Tokens) -> Tokens {
        const LEAST: Tokens = Tokens(8_000);
        self.longest_answer.max(LEAST).min(window.percent(50))
    }

    /// What a request of this size may allow its answer, where the provider wants both in one window and the
    /// request asks for more. `thinking` is what its thinking may take, which is less than the answer.
    pub(super) fn shorter_answer(&self, size: Tokens, thinking: Option<Tokens>) -> Option<Tokens> {
        let (window, asked) = (self.shared_window()?, self.asked_output()?);
        // Sizes are estimates.
        let free = window - size - window.percent(1);
        let least = self.least_answer(window).max(thinking.map_or(Tokens::ZERO, |tokens| tokens + Tokens(1)));
        let most = free.max(least);
        (most < asked).then_some(most)
    }

    /// True if a reported answer is longer than what is kept free for one otherwise.
    pub(super) fn is_reserve_raised(&self, profile: &Profile) -> bool {
        let without = Self { longest_answer: Tokens::ZERO, ..self.clone() };
        without.budget(profile).reserve < self.budget(profile).reserve
    }

    /// How the provider caches, for as long as the request asks.
    pub(super) fn cache(&self) -> CacheRule {
        let rule = self.model.cache;
        CacheRule { lifetime_s: self.allowed.cache_lifetime_s.unwrap_or(rule.lifetime_s), ..rule }
    }
}
