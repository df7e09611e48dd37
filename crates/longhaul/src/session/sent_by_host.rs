//! Requests that the host sent without asking the session: as it could not be asked. The session takes in what went out,
//! so that the next request extends that and not what the session would have sent.

use std::sync::Arc;

use super::Session;
use super::journal::{Cursor, Entry, Ticket};
use crate::conversation::log::Position;
use crate::conversation::message::{Message, Time};
use crate::edits::edit::{EditId, Why};

impl Session {
    /// Appends a message that was sent as it came: no result in it enters shorter, now or later.
    pub fn push_sent(&mut self, message: impl Into<Arc<Message>>) -> Position {
        let message = message.into();
        let at = self.log().end();
        self.record(Entry::Message(message.clone()));
        self.look_for_marks(at, &message);
        self.pin_task(at);
        self.look();
        at
    }

    /// Takes back the edits that were made since, as no request that showed them was sent. They may be made again. What
    /// leaves out reasoning that the provider cannot read stays.
    pub fn take_back_since(&mut self, cursor: Cursor) {
        let made = self.since(cursor).filter_map(|entry| match entry {
            Entry::Edit(edit) => Some(edit.id),
            _ => None,
        });
        let made: Vec<EditId> = made.collect();
        for id in made.into_iter().rev() {
            // Those that depend on it are newer.
            let gone = self.ledger().dependents(id).unwrap_or_default();
            let is_kept = |id: &EditId| {
                let edit = self.ledger().get(*id);
                edit.is_some_and(|edit| matches!(edit.why, Why::Switched | Why::Refused))
            };
            if gone.iter().any(is_kept) {
                continue;
            }
            let entries: Vec<Entry> =
                gone.into_iter().map(|edit| Entry::Undo { edit, held: false }).collect();
            if self.fetch_for(&entries).is_ok() {
                entries.into_iter().for_each(|entry| self.record(entry));
            }
        }
        self.mind_seals();
        self.mind_refused();
        self.look();
    }

    /// The host sent what the session shows now, whatever its size: what is reported on it is reported on this ticket.
    pub fn sent_by_host(&mut self, now: Option<Time>) -> Ticket {
        self.look();
        self.send(self.size().tokens, now)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::conversation::json::Json;
    use crate::conversation::message::{Block, Message, Role};
    use crate::policy::profile::Profile;
    use crate::session::journal::{Cursor, Entry, Ticket};
    use crate::session::{Prepared, Session};
    use crate::size::models::Models;
    use crate::size::tokens::Tokens;
    use crate::size::usage::Usage;

    fn call(n: usize) -> [Message; 2] {
        let id = format!("call_{n}");
        let call = Block::call(&*id, "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap());
        let result = Message::result(id, format!("Line of file {n}.\n").repeat(600));
        [Message::new(Role::Assistant, vec![call]), result]
    }

    fn shown(session: &Session) -> Vec<Message> {
        session.outgoing().messages().map(|message| (**message).clone()).collect()
    }

    fn sent(session: &mut Session) -> Ticket {
        match session.prepare(None).unwrap() {
            Prepared::Send(ticket) => ticket,
            Prepared::Summarise(job) => unreachable!("{job:?}"),
        }
    }

    #[test]
    fn what_the_host_sent_is_what_the_next_request_extends() {
        let mut profile = Profile::longhaul();
        // Every result enters cut.
        profile.cut.bytes = 2_000;
        let model = Models::builtin().find("gpt-4o").clone();
        let mut session = Session::new(profile.clone(), model).with_window(Tokens(40_000));
        session.push(Message::user("Find the bug."));
        for n in 0..12 {
            call(n).into_iter().for_each(|message| _ = session.push(message));
            sent(&mut session);
        }
        let (last, upto) = (shown(&session), session.cursor());
        // The next request was made and not sent: what it shows is taken back.
        call(12).into_iter().for_each(|message| _ = session.push(message));
        session.compact_now();
        sent(&mut session);
        assert_ne!(shown(&session)[..last.len().min(3)], last[..last.len().min(3)]);
        session.take_back_since(upto);
        let new = call(13);
        new.iter().for_each(|message| _ = session.push_sent(message.clone()));
        let ticket = session.sent_by_host(None);
        let really: Vec<Message> = last.iter().cloned().chain(call(12)).chain(new).collect();
        assert!(shown(&session) == really);
        assert_eq!(session.last_ticket(), Some(ticket));
        assert_eq!(session.audit(), Vec::new());
        // What is reported on it counts, and it stays as it was sent: now, and after a load.
        session.observe(ticket, &Usage { input: session.size().tokens.0, ..Usage::default() });
        assert!(
            session
                .since(Cursor(0))
                .any(|entry| matches!(entry, Entry::Usage { ticket: of, .. } if *of == ticket))
        );
        let mut loaded = Session::load(profile, session.since(Cursor(0)).cloned()).unwrap();
        for session in [&mut session, &mut loaded] {
            session.push(Message::user("Go on."));
            sent(session);
            assert!(shown(session).starts_with(&really));
        }
    }
}
