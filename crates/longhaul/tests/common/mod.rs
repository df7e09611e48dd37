//! Sessions to try things on.

#![allow(dead_code)]

pub mod histories;
pub mod twin;

use longhaul::conversation::Thinking;
use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::Shares;
use longhaul::{
    Block, Extra, Json, Message, Meter, Model, Models, Overflow, Prepared, Profile, Role, Seal, Session,
    Ticket, Tokens, Usage,
};

pub fn model(name: &str, window: u64) -> Model {
    Model { name: name.into(), window: Tokens(window), ..Models::builtin().find("gpt-4o").clone() }
}

/// The default without its dial: limits alone start a compaction.
pub fn by_limits() -> Profile {
    let shares = Shares { warn: 70, trigger: 75, target: 50 };
    Profile { dial: None, keep_steps: 0, keep_recent: 15, summary: 30, shares, ..Profile::longhaul() }
}

pub fn session(window: u64) -> Session {
    Session::new(by_limits(), model("m", window)).with_meter(Meter::neutral())
}

pub fn call(id: &str) -> Message {
    let call = Block::call(id, "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap());
    Message::new(Role::Assistant, vec![call])
}

/// A step of one call with a result of so many bytes.
pub fn step(session: &mut Session, n: usize, bytes: usize) {
    let id = format!("call_{n}");
    session.push(call(&id));
    let line = format!("line of step_{n} with value_{n} in it\n");
    session.push(Message::result(id, line.repeat(bytes / line.len() + 1)));
}

/// An answer with sealed reasoning and a call.
pub fn thought(text: &str, id: &str) -> Message {
    let thinking = Thinking { text: text.into(), seal: Seal::Signed("s".into()), extra: Extra::NONE };
    let call = Block::call(id, "Read", Json::empty_object());
    Message::new(Role::Assistant, vec![Block::Thinking(thinking), call])
}

/// How many pieces of reasoning a view shows.
pub fn thoughts(session: &Session) -> usize {
    let blocks = session.view().parts().iter().flat_map(|part| part.message.blocks());
    blocks.filter(|block| matches!(block, Block::Thinking(_))).count()
}

/// Prepares what can be sent at once.
pub fn ticket(session: &mut Session) -> Ticket {
    match session.prepare(None).unwrap() {
        Prepared::Send(ticket) => ticket,
        Prepared::Summarise(job) => panic!("unexpected {job:?}"),
    }
}

/// What is sent, byte for byte as far as the engine knows bytes.
pub fn sent(session: &Session) -> Vec<Message> {
    session.outgoing().messages().map(|message| (**message).clone()).collect()
}

/// Prepares, and checks that all rules hold.
pub fn ready(session: &mut Session) {
    ticket(session);
    assert_eq!(session.audit(), []);
}

/// The words of a view.
pub fn text(session: &Session) -> String {
    let parts = session.view().parts().iter().chain(session.view().tail());
    let text = |block: &Block| match block {
        Block::Text(b) => b.text.to_string() + "\n",
        Block::ToolResult(b) => b.text.to_string() + "\n",
        _ => String::new(),
    };
    parts.flat_map(|part| part.message.blocks()).map(text).collect()
}

/// The provider reports on the last request.
pub fn observe(session: &mut Session, usage: &Usage) {
    if let Some(ticket) = session.last_ticket() {
        session.observe(ticket, usage);
    }
}

/// The provider refuses the last request as too long, and says no more.
pub fn overflowed(session: &mut Session) {
    if let Some(ticket) = session.last_ticket() {
        session.overflowed(ticket, Overflow::default());
    }
}

/// All that happened, as a store has it.
pub fn saved(session: &Session) -> Vec<String> {
    session.since(Cursor(0)).map(|entry| serde_json::to_string(entry).unwrap()).collect()
}

/// The entries that a store has.
pub fn entries(lines: &[String]) -> Vec<Entry> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The session as a store gives it back.
pub fn reload(session: &Session) -> Session {
    Session::load(session.profile().clone(), entries(&saved(session))).unwrap()
}
