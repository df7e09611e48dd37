//! Keeps a conversation with a made-up model inside a window of 8,000 tokens, for 200 steps:
//! `cargo run -p longhaul --example keep_inside`.

use longhaul::{Block, Json, Message, Models, Outgoing, Prepared, Profile, Role, Session, Tokens};

/// Runs the conversation.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
    session.push(Message::user("Read all files and tell me which one defines `main`."));
    for n in 0..200 {
        let answer = match session.prepare(None)? {
            Prepared::Send(_) => ask_model(&session.outgoing(), n),
            Prepared::Summarise(job) => unreachable!("the extractor needs no model: {job:?}"),
        };
        let id = answer.calls().next().map(|call| call.id.clone());
        session.push(answer);
        let Some(id) = id else { break };
        session.push(Message::result(id, format!("// file {n}\nfn helper_{n}() {{}}\n").repeat(40)));
        assert!(session.size().tokens <= session.budget().hard);
    }
    let edits = session.ledger().edits().count();
    let full = session.meter().tokens(session.full()).tokens;
    println!(
        "{edits} edits kept {full} tokens inside {}: the last request had {}.",
        session.budget().hard,
        session.size().tokens
    );
    Ok(())
}

/// Stands for a provider: it is sent the request and answers with a call.
fn ask_model(request: &Outgoing<'_>, n: usize) -> Message {
    assert!(request.messages().next().is_some());
    let path = Json::string(&format!("src/file_{n}.rs"));
    Message::new(Role::Assistant, vec![Block::call(format!("call_{n}"), "Read", path)])
}
