//! What comes back from the provider: how large a prompt was, or that it was too long.

use super::Session;
use super::journal::{Entry, Ticket};
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::size::usage::{Charged, Usage};

/// A request that a provider refused as too long: what it said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The tokens of the prompt, if the provider named them.
    pub prompt: Option<Tokens>,
    /// The tokens that fit, if the provider named them: they are the window from now on, if they are at
    /// least [`SMALLEST_WINDOW`](Self::SMALLEST_WINDOW) and fewer than before.
    pub window: Option<Tokens>,
    /// The tokens that the request allowed its answer, if the provider counted them with the prompt: answers are
    /// allowed less from now on, where that helps.
    pub answer: Option<Tokens>,
}

impl Overflow {
    /// No provider has a smaller window: a smaller figure is not one.
    pub const SMALLEST_WINDOW: Tokens = Tokens(1_000);

    /// The window that the provider named, if it can be one.
    pub fn believed_window(&self) -> Option<Tokens> {
        self.window.filter(|window| *window >= Self::SMALLEST_WINDOW)
    }

    /// True if the prompt is only known to have at least the tokens that the provider named. vLLM stops counting one token
    /// after the last that would leave room for the answer.
    fn is_least(&self) -> bool {
        let Self { prompt: Some(prompt), window: Some(window), answer: Some(answer) } = *self else {
            return false;
        };
        prompt + answer <= window + Tokens(1)
    }
}

impl Session {
    /// Takes in what the provider reported for a request.
    pub fn observe(&mut self, ticket: Ticket, usage: &Usage) {
        self.reported(ticket, usage.prompt(), Some(usage.into()));
    }

    pub(super) fn reported(&mut self, ticket: Ticket, prompt: Tokens, charged: Option<Charged>) {
        let Some(size) = self.state.requests.size(ticket) else { return };
        // A report that is far from anything this view can be teaches nothing.
        let absurd = prompt > self.tokens(size).scaled(16_000_000) + Tokens(1_000_000);
        if prompt > Tokens::ZERO && !absurd {
            self.record(Entry::Usage { ticket, prompt, charged });
        }
    }

    /// Teaches the meter from a record of other requests: the prompt grew by so much when this was
    /// added.
    pub fn teach(&mut self, added: Measure, growth: i64) {
        self.record(Entry::Taught { added, growth });
    }

    /// Teaches from a record of other requests what the provider's cache returns: of a request that extended the one
    /// before, after so many seconds.
    pub fn teach_cache(&mut self, expected: Tokens, returned: Tokens, pause_s: Option<u64>) {
        self.record(Entry::CacheTaught { expected, returned, pause_s });
    }

    /// The provider refused a request as too long: the next one is compacted, whatever it counts
    /// here. A window that the provider named is the window from now on; where it named none, the size of
    /// the request that it refused is.
    pub fn overflowed(&mut self, ticket: Ticket, said: Overflow) {
        let known = self.state.requests.size(ticket);
        // It was sent to the model before, or long ago: it says nothing of the next one.
        if known.is_none() && (1..=self.state.requests.calls).contains(&ticket.0) {
            return;
        }
        if known.is_none() {
            self.look();
        }
        let counted = self.tokens(known.unwrap_or(self.state.view.measure()));
        if let Some(prompt) = said.prompt.filter(|prompt| !said.is_least() || *prompt > counted) {
            self.reported(ticket, prompt, None);
        }
        let sent = self.meter().estimate(known.unwrap_or(self.state.view.measure()));
        let size = sent.tokens.min(self.budget().window);
        let window = said.believed_window();
        let answer = said.answer.filter(|_| window.is_some());
        self.record(Entry::Refused { ticket: known.map(|_| ticket), size, window, answer });
    }
}
