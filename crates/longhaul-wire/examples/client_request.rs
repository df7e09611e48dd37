//! A request that a client wrote goes on to its provider, shorter where it must be, as
//! docs/requests.md has it: `cargo run -p longhaul-wire --example client_request`.

use std::error::Error;

// docs/requests.md: from here
use longhaul::{Prepared, Session};
use longhaul_wire::api::{Api, Request};

/// The body to send in the place of the one that a client sent.
fn shortened(session: &mut Session, body: &str) -> Result<String, Box<dyn Error>> {
    let request = Request::decode(Api::Anthropic, body)?;
    session.set_frame(request.frame().clone());
    let known = session.log().messages().len();
    for message in request.messages().iter().skip(known) {
        session.push(message.clone());
    }
    match session.prepare(None)? {
        Prepared::Send(_) => Ok(request.sending(&session.outgoing()).encode(Api::Anthropic).body.into()),
        Prepared::Summarise(job) => Err(format!("job {} is to be answered first", job.id).into()),
    }
}
// docs/requests.md: to here

use longhaul::{Models, Profile, Tokens};
use serde_json::{Value, json};

/// A client that sends all of a growing conversation each time.
pub fn main() -> Result<(), Box<dyn Error>> {
    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(16_000));
    let mut messages = vec![json!({"role": "user", "content": "Read all files."})];
    let (mut longest, mut marks) = (0, 0);
    for n in 0..80 {
        let request = json!({"model": "m", "max_tokens": 1_000, "system": "You mend parsers.",
            "messages": messages, "metadata": {"user_id": "u"}});
        let sent = shortened(&mut session, &request.to_string())?;
        let read: Value = serde_json::from_str(&sent)?;
        // What stands around the conversation is the client's.
        assert_eq!((&read["system"], &read["metadata"]), (&request["system"], &request["metadata"]));
        longest = longest.max(sent.len());
        marks = sent.matches("cache_control").count();
        let (id, result) = (format!("call_{n}"), "fn helper(value: u32) -> u32 { value }\n".repeat(30));
        messages.extend([
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]}),
        ]);
    }
    let whole = Value::from(messages).to_string().len();
    assert!(longest < whole && (1..=4).contains(&marks), "{longest} of {whole} bytes, {marks} marks");
    println!("The client's last request had {whole} bytes, the longest that was sent {longest}.");
    Ok(())
}
