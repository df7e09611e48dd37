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
    /// What the frame allows its thinking, which is part of the answer.
    thinking: Tokens,
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
            thinking: Tokens::ZERO,
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
            Entry::AnswerCounts { window } => {
                // The provider takes more than it did: what it refused before says nothing.
                if self.shared_window.is_some_and(|before| *window > before) {
                    self.learnt = None;
                }
                self.shared_window = Some(*window);
            }
            Entry::Frame(frame) => {
                self.frame_output = frame.max_output();
                self.thinking = frame.thinking_budget().unwrap_or_default();
            }
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

    /// The window: what the host set, the model's, or for a model that no row fits, the profile's; at most what the
    /// provider takes, in this conversation or by what another one has learnt.
    pub(super) fn window(&self, profile: &Profile) -> Tokens {
        let of_model = if self.model.is_unknown() { profile.window } else { self.model.window };
        let set = self.allowed.window.unwrap_or(of_model);
        [self.learnt, self.shared_window].into_iter().flatten().fold(set, Tokens::min)
    }

    pub(super) fn budget(&self, profile: &Profile) -> Budget {
        let (window, asked) = (self.window(profile), self.asked_output());
        let longest = match self.shared_window() {
            Some(shared) if asked.is_some() => {
                // What the host leaves unused of the provider's window is free for the answer.
                let free = shared - window;
                self.longest_answer.max(self.least_answer(shared) + margin(shared) - free)
            }
            _ => self.longest_answer,
        };
        let output = asked.unwrap_or(self.model.max_output);
        Budget::after_answer(window, output, longest, profile.shares)
    }

    /// The window in which the provider wants prompt and allowed answer together, if it does: as it said when it
    /// refused a request, or else by the model's row.
    pub(super) fn shared_window(&self) -> Option<Tokens> {
        let of_model = || self.model.counts_answer.unwrap_or(false).then_some(self.model.window);
        self.shared_window.or_else(of_model)
    }

    /// The same, if a refusal has shown it, here or in another conversation.
    pub(super) fn learnt_shared_window(&self) -> Option<Tokens> {
        self.shared_window
    }

    /// The longest answer that the host or the frame asks for.
    fn asked_output(&self) -> Option<Tokens> {
        self.allowed.max_output.or(self.frame_output)
    }

    /// No request allows its answer less than this, unless it asks for less: 8,000 tokens, the longest answer so far, or
    /// one more than thinking may take. In a window that is too small for that, half of it.
    fn least_answer(&self, window: Tokens) -> Tokens {
        const LEAST: Tokens = Tokens(8_000);
        self.longest_answer.max(LEAST).max(self.after_thinking()).min(window.percent(50))
    }

    /// The shortest answer that a provider accepts with the thinking that the frame asks for.
    fn after_thinking(&self) -> Tokens {
        if self.thinking == Tokens::ZERO { Tokens::ZERO } else { self.thinking + Tokens(1) }
    }

    /// What a request of this size may allow its answer, where the provider wants both in one window and the
    /// request asks for more.
    pub(super) fn shorter_answer(&self, size: Tokens) -> Option<Tokens> {
        let (window, asked) = (self.shared_window()?, self.asked_output()?);
        let free = window - size - margin(window);
        let most = free.max(self.least_answer(window)).max(self.after_thinking());
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

/// Sizes are estimates: so much of a window that prompt and answer share stays free.
fn margin(window: Tokens) -> Tokens {
    window.percent(1)
}
