//! What was taken out is read back: by its handle, by a search over the whole log, and by the host
//! for a client that has no such tool: `cargo run -p longhaul --example recall`.

use std::error::Error;

use longhaul::{
    Block, Json, Message, Models, Prepared, Profile, RecallBy, RecallError, RecallPart, Role, Session, Tokens,
};

/// Runs the conversation.
pub fn main() -> Result<(), Box<dyn Error>> {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(64_000));
    // The host offers a tool of this name: summaries tell the model so.
    session.set_recall(RecallBy::Tool("Recall".into()));
    session.push(Message::user("Which request took longest?"));
    session.push(Message::assistant("Where is the log?"));
    session.push(Message::user("In the file log."));

    // A result of 290 KB enters cut. Its mark has a handle.
    let log: String =
        (1..=8_000).map(|n| format!("request {n} took {} ms, status 200\n", n * 37 % 1_009)).collect();
    let call = Block::call("a", "Bash", Json::new(r#"{"command":"cat log"}"#)?);
    session.push(Message::new(Role::Assistant, vec![call]));
    session.push(Message::result("a", log.as_str()));
    let shown = sent(&mut session)?;
    assert!(shown.len() < log.len() / 4);
    let handle = handle_in(&shown).ok_or("a mark has a handle")?;

    // All of it, byte for byte; some lines; or the lines that a pattern fits, with their numbers.
    assert_eq!(session.recall(handle, &RecallPart::Whole)?, log);
    let line = session.recall(handle, &RecallPart::Lines(5_000, 5_000))?;
    assert_eq!(line, "request 5000 took 353 ms, status 200");
    let slow = session.recall(handle, &RecallPart::Pattern("took 1008 ms".into()))?;
    assert!(slow.starts_with("709:request 709 took 1008 ms") && slow.lines().count() == 8);
    let unknown = session.recall("000000000000", &RecallPart::Whole);
    assert_eq!(unknown, Err(RecallError::Unknown("000000000000".into())));

    // Who has no handle searches the log as it came: the newest two lines of those that fit.
    let found = session.search("took 1008 ms", 2)?;
    let places: Vec<_> = found.iter().map(|line| (line.at.0, line.number)).collect();
    assert_eq!(places, [(4, 6_763), (4, 7_772)]);

    // The model calls `Recall`, and the client that runs its tools knows none of that name. A host in
    // between answers in its place. The log keeps what the client said.
    let arguments = Json::new(format!(r#"{{"handle":"{handle}","grep":"took 1008 ms"}}"#))?;
    session.push(Message::new(Role::Assistant, vec![Block::call("b", "Recall", arguments)]));
    let at = session.push(Message::result("b", "Error: no tool is called Recall"));
    let edit = session.answer(at, 0, slow.as_str())?;
    let shown = sent(&mut session)?;
    assert!(
        shown.contains(&slow) && !shown.contains("no tool is called") && session.ledger().is_active(edit)
    );

    // A summary says how to get at what it stands for.
    session.push(Message::assistant("Eight requests took 1008 ms, the first of them was 709."));
    session.push(Message::user("And which was fastest?"));
    session.compact_now();
    let shown = sent(&mut session)?;
    assert!(shown.contains(" with the tool Recall⟧"), "{shown}");
    println!("{}", shown.lines().next().unwrap_or_default());
    Ok(())
}

/// All text of the next request.
fn sent(session: &mut Session) -> Result<String, Box<dyn Error>> {
    let Prepared::Send(_) = session.prepare(None)? else { return Err("the extractor asks for none".into()) };
    let outgoing = session.outgoing();
    let blocks = outgoing.messages().flat_map(|message| message.blocks());
    let text = |block: &Block| match block {
        Block::Text(text) => text.text.to_string(),
        Block::ToolResult(result) => result.text.to_string(),
        _ => String::new(),
    };
    Ok(blocks.map(text).collect())
}

/// What stands behind `recall ` in a mark.
fn handle_in(text: &str) -> Option<&str> {
    text.split_once("; recall ").and_then(|(_, rest)| rest.get(..12))
}
