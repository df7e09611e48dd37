//! What was sent: requests by their tickets, what the provider said of them, and the prefix that
//! it has in its cache.

use std::collections::VecDeque;

use super::journal::{Entry, SentRequest, Ticket};
use crate::size::meter::Measure;
use crate::size::models::CacheRule;
use crate::size::tokens::Tokens;
use crate::size::usage::Charged;
use crate::view::cache::PromptCache;
use crate::view::cache_returns::CacheReturns;

/// So many requests may wait for their usage.
const WAITING: usize = 64;

/// A request whose usage may still come.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    ticket: Ticket,
    size: Measure,
    /// What the cache should return of it, if it extends the request before.
    cached: Option<Tokens>,
    /// The time since the request before, in seconds.
    pause: Option<u64>,
}

/// Requests, as the journal says.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    /// How many were sent; the same one again is no new one.
    pub(super) calls: u64,
    pub(super) last: Option<SentRequest>,
    /// The prompt of the last one, as it was reported or counted.
    pub(super) last_prompt: Tokens,
    /// The size of a request that the provider refused as too long, until a smaller one is sent, another
    /// window is set or another model goes on.
    pub(super) refused: Option<Tokens>,
    pub(super) cache: PromptCache,
    /// What the provider's cache really returned.
    pub(super) returns: CacheReturns,
    /// Requests whose usage may still come, with their sizes, oldest first.
    waiting: VecDeque<Waiting>,
    /// Something happened since the last request that may make the next one another.
    changed: bool,
    /// Reports on requests before this one are not the meter's base: a newer one was reported on, or
    /// they were of another prompt.
    base_from: Ticket,
}

impl Requests {
    /// `other_model` if the entry switches to a model of another name.
    pub(super) fn apply(&mut self, entry: &Entry, other_model: bool) {
        match entry {
            Entry::Sent(sent) => {
                self.calls = sent.ticket.0;
                let pause = self.cache.pause(sent.time);
                self.last = Some(*sent);
                self.last_prompt = sent.prompt;
                self.refused = None;
                self.changed = false;
                self.cache.used_at(sent.time);
                let extends = !sent.broke && sent.billed.read > Tokens::ZERO;
                let cached = extends.then_some(sent.billed.read);
                self.waiting.push_back(Waiting { ticket: sent.ticket, size: sent.size, cached, pause });
                if self.waiting.len() > WAITING {
                    self.waiting.pop_front();
                }
            }
            Entry::SentAgain { time, .. } => self.cache.used_at(Some(*time)),
            Entry::Usage { ticket, prompt, .. } => {
                if self.last.is_some_and(|last| last.ticket == *ticket) {
                    self.last_prompt = *prompt;
                }
                self.base_from = self.base_from.max(*ticket);
            }
            Entry::Refused { ticket, size, answer, .. } => {
                // A shorter answer may be all that the next request needs; else the budget demands more.
                self.refused = answer.is_none().then_some(*size);
                // Of a request before the last it says nothing about the last.
                let is_earlier = |last: SentRequest| ticket.is_some_and(|ticket| ticket < last.ticket);
                self.changed |= !self.last.is_some_and(is_earlier);
            }
            Entry::Switched { .. } => {
                // What was sent is of the other model.
                self.waiting.clear();
                (self.refused, self.changed) = (None, true);
                if other_model {
                    (self.cache, self.returns) = (PromptCache::new(), CacheReturns::default());
                }
            }
            // In another window the request that was refused may fit.
            Entry::Limited(_) => (self.refused, self.changed) = (None, true),
            // A new kind of entry must say here whether the next request may be another for it.
            Entry::Began { .. }
            | Entry::Taught { .. }
            | Entry::CacheTaught { .. }
            | Entry::AnswerCounts { .. }
            | Entry::ReadsSignatures
            | Entry::Signed(_)
            | Entry::CrampedReported
            | Entry::JobOpened(_)
            | Entry::SummaryPaid { .. }
            | Entry::JobEnded { .. }
            | Entry::CompactionBegan(_)
            | Entry::CompactionEnded { .. }
            | Entry::Forked { .. } => {}
            Entry::Counted(_)
            | Entry::Message(_)
            | Entry::Fact(_)
            | Entry::Frame(_)
            | Entry::MaxOutput(_)
            | Entry::Edit(_)
            | Entry::Undo { .. }
            | Entry::Redo { .. }
            | Entry::NoteShown { .. }
            | Entry::RulesShown { .. }
            | Entry::HostNote { .. }
            | Entry::Voiced(_)
            | Entry::Unbound(_)
            | Entry::StepClosed
            | Entry::Asked { .. }
            | Entry::Task(_)
            | Entry::RecallBy(_)
            | Entry::Unattended(_) => self.changed = true,
        }
    }

    /// How many calls are expected before the next fold. Sessions that have lasted long go on for long, and folds come
    /// every few dozen calls.
    pub(super) fn calls_expected(&self) -> u64 {
        const MOST: u64 = 40;
        self.calls.min(MOST)
    }

    /// The size of a request whose usage may still come.
    pub(super) fn size(&self, ticket: Ticket) -> Option<Measure> {
        self.waiting(ticket).map(|waiting| waiting.size)
    }

    /// The provider billed a request: what its cache returned.
    pub(super) fn charged(&mut self, ticket: Ticket, charged: &Charged, rule: &CacheRule) {
        let Some(Waiting { cached: Some(expected), pause, .. }) = self.waiting(ticket).copied() else {
            return;
        };
        self.returns.reported(expected, charged.read, pause, rule);
    }

    fn waiting(&self, ticket: Ticket) -> Option<&Waiting> {
        self.waiting.iter().find(|waiting| waiting.ticket == ticket)
    }

    /// True if what is reported on the request may be the meter's base.
    pub(super) fn may_be_base(&self, ticket: Ticket) -> bool {
        self.base_from <= ticket
    }

    /// The prompt is another from now on, or is counted otherwise.
    pub(super) fn forget_base(&mut self) {
        self.base_from = self.next_ticket();
    }

    /// The last request, if the next one would be the same.
    /// `size` is that of the next one: what stands in the tail may be cut otherwise by then.
    pub(super) fn retried(&self, size: Measure) -> Option<Ticket> {
        self.last.filter(|last| !self.changed && last.size == size).map(|last| last.ticket)
    }

    pub(super) fn next_ticket(&self) -> Ticket {
        Ticket(self.calls.saturating_add(1))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::conversation::json::Json;
    use crate::conversation::message::{Block, Message, Role};
    use crate::policy::profile::Profile;
    use crate::session::{Prepared, Session};
    use crate::size::models::Models;
    use crate::size::usage::Usage;

    /// Calls of a session, each with a report of so many times the prompt, of which so many percent were read.
    fn after(reports: impl Iterator<Item = (u64, u64)>) -> Session {
        let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
        session.push(Message::user("Find the bug. ".repeat(5_000)));
        for (n, (times, percent)) in reports.enumerate() {
            let Prepared::Send(ticket) = session.prepare(None).unwrap() else { unreachable!() };
            let prompt = session.size().tokens.0 * times;
            let read = prompt * percent / 100;
            let output = 90 * times * times;
            let usage = Usage { input: prompt - read, cache_read: read, output, ..Usage::default() };
            session.observe(ticket, &usage);
            let id = format!("call_{n}");
            let call = Block::call(&*id, "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap());
            session.push(Message::new(Role::Assistant, vec![call]));
            session.push(Message::result(id, "A line.\n".repeat(50)));
        }
        session
    }

    #[test]
    fn a_report_that_is_not_believed_teaches_nothing() {
        let honest = after([(1, 90); 12].into_iter());
        // Every third report is of fifty times the prompt, nothing of it read.
        let mixed = after((0..18).map(|n| if n % 3 == 2 { (50, 0) } else { (1, 90) }));
        for session in [&honest, &mixed] {
            assert!(session.state.requests.returns.missed(100) <= 10);
            assert_eq!(session.budget().reserve, honest.budget().reserve);
        }
    }
}
