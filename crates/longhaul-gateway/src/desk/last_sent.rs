//! What was sent last of each conversation, kept apart from the conversation: it can be gone on with when the
//! conversation cannot be had, because a thread hangs in it or a panic left it half done. Messages are shared with the
//! conversation, not copied.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul::{Cursor, End, Frame, Message, Meter, Ticket, Tokens, Tool, Usage};
use longhaul_store::SessionId;
use longhaul_wire::api::{LastRead, Request};

/// The request that was sent last of a conversation.
#[derive(Debug, Clone)]
pub(super) struct LastSent {
    pub(super) session: SessionId,
    /// The client's request.
    read: LastRead,
    /// The messages that were sent for it.
    messages: Vec<Arc<Message>>,
    /// Where the provider's cache should remember them.
    ends: Vec<End>,
    /// The tool that stood behind those of the client.
    offered: Option<Tool>,
    /// The journal up to here shows these messages; later edits were not sent.
    upto: Cursor,
    /// Tokens that were sent, tokens of the whole conversation, and how many edits stood.
    figures: (Tokens, Tokens, usize),
    /// No request may be larger.
    hard: Tokens,
    /// What the answer may have at most, where the provider refuses what the client asks for.
    shorter_answer: Option<Tokens>,
    meter: Meter,
    /// Bytes of all messages of the client.
    said: usize,
}

/// The parts of [`LastSent`] that a session knows.
pub(super) struct Shown {
    pub(super) session: SessionId,
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) ends: Vec<End>,
    pub(super) offered: Option<Tool>,
    pub(super) upto: Cursor,
    pub(super) figures: (Tokens, Tokens, usize),
    pub(super) hard: Tokens,
    pub(super) shorter_answer: Option<Tokens>,
    pub(super) meter: Meter,
    pub(super) said: usize,
}

/// A request that goes on from the one that was sent last.
pub(super) struct GoingOn {
    pub(super) request: Request,
    pub(super) last: LastSent,
    pub(super) is_retry: bool,
}

impl LastSent {
    pub(super) fn new(read: LastRead, shown: Shown) -> Self {
        let Shown { session, messages, ends, offered, upto, .. } = shown;
        let Shown { figures, hard, shorter_answer, meter, said, .. } = shown;
        Self { session, read, messages, ends, offered, upto, figures, hard, shorter_answer, meter, said }
    }

    /// What the next request of the client is read with.
    pub(super) fn read(&self) -> &LastRead {
        &self.read
    }

    /// How many messages of a request of the same agent were sent already: all that the client had sent. `None` if the
    /// request does not go on from there.
    pub(super) fn covers(&self, request: &Request) -> Option<usize> {
        let known = self.read.identities();
        let goes_on =
            request.identities().starts_with(known) && self.read.frame().is_same_agent(request.frame());
        goes_on.then_some(known.len())
    }

    /// The messages that were sent, and behind them those of a request that are new, as they came. `None` if that is
    /// larger than fits.
    pub(super) fn followed_by(&self, request: Request, most: Option<Tokens>) -> Option<GoingOn> {
        let covered = self.covers(&request)?;
        let new = &request.messages()[covered..];
        let added = self.meter.tokens(new.iter().map(|message| self.meter.message(message)).sum()).tokens;
        let (view, full, edits) = self.figures;
        let figures = (view + added, full + added, edits);
        if figures.0 > most.unwrap_or(self.hard).min(self.hard) {
            return None;
        }
        let messages: Vec<_> = self.messages.iter().chain(new).cloned().collect();
        let end = End::After(messages.len());
        let mut ends = self.ends.clone();
        ends.extend((!ends.contains(&end)).then_some(end));
        let last = Self {
            read: request.last_read()?,
            messages: messages.clone(),
            ends: ends.clone(),
            figures,
            shorter_answer: self.shorter_answer.map(|most| (most - added).max(Tokens(1))),
            said: self.said + new.iter().map(|message| message.bytes()).sum::<usize>(),
            ..self.clone()
        };
        let is_retry = new.is_empty();
        let request = match &self.offered {
            Some(tool) => request.offering(tool.clone()),
            None => request,
        };
        Some(GoingOn { request: request.sending_messages(messages, ends), last, is_retry })
    }

    pub(super) fn figures(&self) -> (Tokens, Tokens, usize) {
        self.figures
    }

    pub(super) fn shorter_answer(&self) -> Option<Tokens> {
        self.shorter_answer
    }

    /// Whether a body of so many bytes fits as it is, by what the conversation has counted in all.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        let (bytes, said) = (bytes as u128, self.said.max(1) as u128);
        u128::from(self.figures.1.0) * bytes / said <= u128::from(self.hard.0)
    }

    /// What the conversation is told of this request.
    pub(super) fn told(&self, frame: Frame) -> SentAlone {
        SentAlone {
            session: self.session,
            read: self.read.clone(),
            messages: self.messages.clone(),
            frame,
            upto: self.upto,
            after: Mutex::default(),
        }
    }
}

/// A request that was sent without its conversation, which takes that in when it is worked with again.
#[derive(Debug)]
pub(super) struct SentAlone {
    pub(super) session: SessionId,
    /// The client's request.
    pub(super) read: LastRead,
    /// The messages that were sent.
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) frame: Frame,
    /// Edits of the conversation behind here were not sent.
    pub(super) upto: Cursor,
    after: Mutex<After>,
}

/// What happened after it was sent.
#[derive(Debug, Default)]
struct After {
    /// The conversation has taken it in, as this request.
    ticket: Option<Ticket>,
    /// What its answer said, until the conversation takes it in.
    heard: Option<(Option<Usage>, Vec<String>)>,
}

impl SentAlone {
    /// The answer said this. Gives the ticket if the conversation is to be told, and what to tell it.
    pub(super) fn hears(
        &self,
        usage: Option<Usage>,
        seals: Vec<String>,
    ) -> Option<(Ticket, Option<Usage>, Vec<String>)> {
        let mut after = self.lock();
        match after.ticket {
            Some(ticket) => Some((ticket, usage, seals)),
            None => {
                after.heard = Some((usage, seals));
                None
            }
        }
    }

    /// The conversation has taken it in. Gives what the answer has said by now.
    pub(super) fn taken_in(&self, ticket: Ticket) -> Option<(Option<Usage>, Vec<String>)> {
        let mut after = self.lock();
        after.ticket = Some(ticket);
        after.heard.take()
    }

    fn lock(&self) -> MutexGuard<'_, After> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
