//! Keeps a conversation with a made-up model inside a window of 8,000 tokens, for 200 steps:
//! `cargo run -p longhaul --example keep_inside`.

use longhaul::{Block, Json, Message, Models, Prepared, Profile, Role, Session, Tokens, View};

/// Runs the conversation.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
    session.push(Message::user("Read all files and tell me which one defines `main`."));
    for n in 0..200 {
        let answer = match session.prepare(None)? {
            Prepared::Ready(view) => ask_model(view, n),
            Prepared::NeedsSummary(job) => unreachable!("the extractor needs no model: {job:?}"),
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

/// Stands for a provider: it is sent the parts of the view and answers with a call.
fn ask_model(view: &View, n: usize) -> Message {
    assert!(!view.parts().is_empty());
    let path = Json::string(&format!("src/file_{n}.rs"));
    Message::new(Role::Assistant, vec![Block::call(format!("call_{n}"), "Read", path)])
}
