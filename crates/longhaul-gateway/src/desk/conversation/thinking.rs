//! Thinking that a provider signs, as a conversation of the gateway sees it: what its client may keep without us, and what
//! produced it.

use std::sync::Arc;

use longhaul::conversation::Block;
use longhaul::session::journal::Signed;
use longhaul::{Message, Position, Seal, Ticket};
use longhaul_wire::api::Request;

use super::super::{KeptThinking, fill};
use super::{Conversation, Refused};

impl Conversation {
    /// True if thinking is bound to another request than the client would send without us: an edit stands, a note of ours,
    /// or a tool of ours, whoever added that.
    pub(in crate::desk) fn is_tied(&self) -> bool {
        let frame = self.session.log().frame();
        let has_our_tool = || frame.is_some_and(|frame| frame.tools.iter().any(fill::is_of_longhaul));
        self.session.model().binds && (!self.session.ledger().is_untouched() || has_our_tool())
    }

    /// Which messages may keep their thinking where all are sent as they came. The next answer is not among them, if the
    /// request that it answers is not the client's own.
    pub(in crate::desk) fn thinking_outside(&mut self) -> KeptThinking {
        if !self.session.model().binds {
            return KeptThinking::All;
        }
        self.session.thinking_kept_outside().map_or(KeptThinking::All, KeptThinking::First)
    }

    /// The signatures of answers that a request brings, and of which it is not known what produced them.
    pub(in crate::desk) fn unknown_seals(&self, request: &Request) -> Vec<String> {
        let Some(new_from) = self.new_from(request).filter(|_| self.session.model().binds) else {
            return Vec::new();
        };
        let new = request.messages().iter().skip(new_from).filter(|message| !self.awaits(message));
        new.flat_map(|message| seals_of(message)).map(str::to_owned).collect()
    }

    /// Answers that come next were given to requests of another conversation.
    pub(in crate::desk) fn learn_produced(&mut self, signed: Vec<Signed>) {
        self.session.learn_produced(signed);
    }

    /// True if the signatures of a message show that it answers a request of this conversation, and that the client
    /// has not sent this answer before.
    pub(in crate::desk) fn awaits(&self, message: &Message) -> bool {
        seals_of(message).any(|seal| self.session.awaits_signed(seal))
    }

    /// The provider has signed thinking in its answer.
    pub(in crate::desk) fn signed(&mut self, ticket: Ticket, seals: &[String]) {
        self.session.signed(ticket, seals.iter().map(String::as_str));
    }

    /// The provider refused thinking: it is left out from now on, from the message with this signature on. What stands before
    /// that follows what produced it.
    pub(in crate::desk) fn refused_thinking(&mut self, from: Option<&str>) -> Result<Ticket, Refused> {
        let messages = self.session.log().messages();
        let has_it = |message: &Arc<Message>| seals_of(message).any(|seal| Some(seal) == from);
        let at = messages.iter().position(has_it).unwrap_or_default();
        self.session.refused_thinking(Position(u32::try_from(at).unwrap_or_default()));
        self.prepare()
    }
}

/// The signatures of the thinking in a message.
pub(in crate::desk) fn seals_of(message: &Message) -> impl Iterator<Item = &str> {
    message.blocks().iter().filter_map(|block| match block {
        Block::Thinking(thinking) if matches!(thinking.seal, Seal::Signed(_) | Seal::Redacted(_)) => {
            thinking.seal.data()
        }
        _ => None,
    })
}

/// True if a message has signed thinking.
pub(in crate::desk) fn is_signed(message: &Message) -> bool {
    seals_of(message).next().is_some()
}
