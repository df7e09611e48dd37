//! A conversation and requests of it that were sent without it: what it leaves for them, and how it takes them in.

use longhaul::Position;
use longhaul_store::StoreError;
use longhaul_wire::api::Request;

use super::super::fill;
use super::super::last_sent::{LastSent, SentAlone, Shown};
use super::{Conversation, is_signed, now};

impl Conversation {
    /// What is sent for a request, to go on from without the conversation.
    pub(in super::super) fn last_sent(&self, request: &Request) -> Option<LastSent> {
        let sent = self.session.outgoing();
        let shown = Shown {
            session: self.id(),
            messages: sent.parts.iter().map(|part| part.message.clone()).collect(),
            offered: request.is_offering().then(|| fill::tool(&self.session, self.api)),
            upto: self.session.cursor(),
            figures: self.figures(),
            hard: self.session.budget().hard,
            shorter_answer: sent.shorter_answer,
            ends: sent.ends,
            meter: self.session.meter().clone(),
            said: self.said,
        };
        Some(LastSent::new(request.last_read()?, shown))
    }

    /// Takes in a request that was sent without this conversation: what it showed when it was sent last, and the new
    /// messages as they came. False if the conversation has gone another way since.
    pub(in super::super) fn catch_up(&mut self, tenant: &str, sent: &SentAlone) -> bool {
        let identities = sent.read.identities();
        if self.common(identities) < self.len() {
            return false;
        }
        // Nobody waits for the form that was tried last.
        self.take_back_retry();
        self.session.take_back_since(sent.upto);
        self.session.set_frame(sent.frame.clone());
        for (message, identity) in sent.read.messages().iter().zip(identities).skip(self.len()) {
            self.knows(tenant, message, *identity);
            self.session.push_sent(message.clone());
        }
        self.relay.keep_read(&sent.read);
        // Thinking that was left out behind an edit stays out, and a change by a person stays. Then this is not what was
        // sent: what the answer says is not said of it.
        let shown = self.session.view().parts().iter().map(|part| &part.message);
        if !shown.eq(&sent.messages) {
            return true;
        }
        let ticket = self.session.sent_by_host(Some(now()));
        if let Some((usage, seals)) = sent.taken_in(ticket) {
            self.signed(ticket, &seals);
            usage.iter().for_each(|usage| self.heard(ticket, usage));
        }
        true
    }

    /// Stores what it has taken in.
    pub(in super::super) fn caught_up(&mut self) -> Result<(), StoreError> {
        self.save()
    }

    /// Leaves out thinking that is bound to what stands before it, but for that of the first messages that have some.
    pub(in super::super) fn keep_thinking(&mut self, first: usize) {
        if !self.session.model().binds {
            return;
        }
        let signed = self.session.log().messages().iter().enumerate();
        let at = signed.filter(|(_, message)| is_signed(message)).nth(first).map(|(at, _)| at);
        if let Some(at) = at {
            // Wherever these messages stand, the provider would refuse it.
            self.session.refused_thinking(Position(u32::try_from(at).unwrap_or(u32::MAX)));
        }
    }
}
