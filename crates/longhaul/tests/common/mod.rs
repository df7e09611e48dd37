//! Sessions to try things on.

use longhaul::{Block, Json, Message, Meter, Model, Models, Prepared, Profile, Role, Session, Tokens};

pub fn model(name: &str, window: u64) -> Model {
    Model { name: name.into(), window: Tokens(window), ..Models::builtin().find("gpt-4o").clone() }
}

pub fn session(window: u64) -> Session {
    Session::new(Profile::longhaul(), model("m", window)).with_meter(Meter::neutral())
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

/// Prepares, and checks that all rules hold.
pub fn ready(session: &mut Session) {
    assert!(matches!(session.prepare(None).unwrap(), Prepared::Ready(_)));
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
