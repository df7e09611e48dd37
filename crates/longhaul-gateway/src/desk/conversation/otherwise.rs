//! A request of this conversation in another form, since the provider refused the one that it had. The session goes
//! along, and is as it was before if the provider takes no form: what was really sent is what the next request extends.

use longhaul::digest::Cut;
use longhaul::policy::Triggers;
use longhaul::{Part, Profile, RecallBy, Session, Source, Ticket, Voice};
use longhaul_wire::api::{Api, BodyText, Request};

use super::super::refusals::Form;
use super::{Conversation, fill};
use crate::account::Account;

/// The other forms, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum OtherForm {
    /// The client's own bytes.
    Own,
    /// Texts of ours in another voice.
    Voice,
    /// The client's tools alone.
    NoTool,
}

impl OtherForm {
    const ALL: [Self; 3] = [Self::Own, Self::Voice, Self::NoTool];
}

/// A conversation before its request was sent in another form.
#[derive(Debug)]
pub(super) struct Before {
    session: Session,
    costs: Account,
}

/// A request in another form.
pub(in super::super) struct Otherwise {
    pub(in super::super) tried: OtherForm,
    /// What the provider refused, if it takes this one.
    pub(in super::super) refused: Option<Form>,
    pub(in super::super) ticket: Ticket,
    pub(in super::super) request: Request,
    /// The body, if it is not what the session writes.
    pub(in super::super) body: Option<BodyText>,
}

impl Conversation {
    /// The request in the next form after one that the provider refused; `None` if there is none. `refuses` says what the
    /// upstream was known to refuse before.
    pub(in super::super) fn otherwise(
        &mut self,
        request: &Request,
        after: Option<OtherForm>,
        refuses: impl Fn(Form) -> bool,
    ) -> Option<Otherwise> {
        self.take_back_retry();
        let forms = OtherForm::ALL.into_iter().filter(|form| after.is_none_or(|after| *form > after));
        for form in forms {
            let before = Before { session: self.session.clone(), costs: self.costs.clone() };
            let tried = match form {
                OtherForm::Own => self.own_bytes(request, &refuses),
                OtherForm::Voice => self.in_another_voice(request),
                OtherForm::NoTool => self.without_tool(request),
            };
            match tried {
                Some(otherwise) => {
                    self.before_retry = Some(Box::new(before));
                    return Some(otherwise);
                }
                None => self.session = before.session,
            }
        }
        None
    }

    /// The form that is tried is not taken, or nothing is said of it: the session is as it was before. False if none is
    /// tried.
    pub(in super::super) fn take_back_retry(&mut self) -> bool {
        let Some(before) = self.before_retry.take() else { return false };
        (self.session, self.costs) = (before.session, before.costs);
        self.looked_at = self.session.cursor();
        true
    }

    /// The provider took the form that was tried. Where no other form is left to try, edits wait until the client's own
    /// bytes no longer fit.
    pub(in super::super) fn keep_retry(&mut self, learnt: Option<Form>) {
        if self.before_retry.take().is_some() {
            self.stays_whole = !self.has_edits() && learnt.is_none();
        }
    }

    /// The session is changed while a form is tried: it goes on from that form, whatever the provider says of it. A form that
    /// is refused then is what the next request goes on from, and may be refused again; a change is never lost.
    pub(in super::super) fn settle_retry(&mut self) {
        self.before_retry = None;
    }

    /// The voice that new texts have, as far as the upstream is known.
    pub(in super::super) fn speak_as(&mut self, voice: Option<Voice>) {
        self.session.set_voice(voice);
    }

    /// How this conversation is compacted now: by its settings, or not at all while it goes on with the client's own bytes.
    pub(super) fn set_profile(&mut self) {
        self.stays_whole &= self.fits_whole();
        let profile = &self.settings.profile;
        match self.stays_whole {
            true => self.session.set_profile(without_edits(profile, self.session.model().binds)),
            false => self.session.set_profile(profile.clone()),
        }
    }

    /// The client's own bytes, if they fit, without thinking that would be refused after them.
    fn own_bytes(&mut self, request: &Request, refuses: impl Fn(Form) -> bool) -> Option<Otherwise> {
        let own = self.relay.read(request.body()?.to_owned()).ok()?;
        if *own.identities() != *self.known || !self.fits_whole() {
            return None;
        }
        let text = self.voice_of_texts().map(Form::Text);
        let tool = request.is_offering().then_some(Form::Tool);
        // One is learnt at a time: the next conversation shows whether it was the other.
        let refused = text.into_iter().chain(tool).find(|form| !refuses(*form));
        self.session.undo_all().ok()?;
        self.end_recall(&own);
        self.session.set_profile(without_edits(&self.settings.profile, self.session.model().binds));
        let ticket = self.prepare_unsaved().ok()?;
        self.session.set_profile(self.settings.profile.clone());
        let messages = self.session.outgoing().parts.iter().map(|part| part.message.clone()).collect();
        let body = self.relay.write(&own.clone().with_messages(messages)).body;
        Some(Otherwise { tried: OtherForm::Own, refused, ticket, request: own, body: Some(body) })
    }

    /// The same view, with texts of ours in another voice.
    fn in_another_voice(&mut self, request: &Request) -> Option<Otherwise> {
        let voice = self.voice_of_texts()?;
        self.session.revoice(voice.other());
        let ticket = self.prepare_unsaved().ok()?;
        let refused = Some(Form::Text(voice));
        Some(Otherwise { tried: OtherForm::Voice, refused, ticket, request: request.clone(), body: None })
    }

    /// The same view, with the client's tools alone.
    fn without_tool(&mut self, request: &Request) -> Option<Otherwise> {
        if !request.is_offering() {
            return None;
        }
        let own = self.relay.read(request.body()?.to_owned()).ok()?;
        self.end_recall(&own);
        let ticket = self.prepare_unsaved().ok()?;
        Some(Otherwise {
            tried: OtherForm::NoTool,
            refused: Some(Form::Tool),
            ticket,
            request: own,
            body: None,
        })
    }

    /// Ends recall by a tool of ours: the frame is that of the client's own request.
    fn end_recall(&mut self, own: &Request) {
        if fill::is_on(&self.session) {
            self.session.set_recall(RecallBy::Unsaid);
        }
        self.session.set_frame(own.frame().clone());
    }

    /// The voice of the texts of ours in the view; `None` if there are none, or if the API has one place for all of them.
    fn voice_of_texts(&self) -> Option<Voice> {
        if self.api == Api::Anthropic {
            return None;
        }
        let outgoing = self.session.outgoing();
        let parts = outgoing.parts.iter().chain(outgoing.tail);
        let ours: Vec<&Part> = parts.filter(|part| !matches!(part.source, Source::Message(_))).collect();
        // A part of the system prompt is the last to be refused, and a text without a stored voice is a system message.
        let is_in_head = |part: &Part| matches!(part.source, Source::Note | Source::Rules);
        let mut others = ours.iter().filter(|part| !is_in_head(part)).peekable();
        let is_user = others.peek().is_some() && others.all(|part| part.message.voice() == Some(Voice::User));
        (!ours.is_empty()).then_some(if is_user { Voice::User } else { Voice::System })
    }

    fn fits_whole(&self) -> bool {
        self.session.meter().estimate(self.session.full()).tokens <= self.session.budget().hard
    }

    fn has_edits(&self) -> bool {
        self.session.ledger().edits().any(|(_, active)| active)
    }
}

/// A profile that changes nothing. A note stays where thinking is bound to it.
fn without_edits(profile: &Profile, binds: bool) -> Profile {
    let mark = profile.triggers.mark.clone().filter(|_| binds);
    Profile {
        ladder: Vec::new(),
        rules: Vec::new(),
        entry_digests: false,
        cut: Cut::NONE,
        when_cold: false,
        dial: None,
        triggers: Triggers { mark, ..Triggers::default() },
        ..profile.clone()
    }
}
