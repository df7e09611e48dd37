//! The examples of the documentation run, and do what they say.

#![allow(dead_code, clippy::unwrap_used)]

use std::error::Error;

#[path = "../examples/host_summariser.rs"]
mod host_summariser;
#[path = "../examples/keep_inside.rs"]
mod keep_inside;
#[path = "../examples/recall.rs"]
mod recall;
#[path = "../examples/save_and_load.rs"]
mod save_and_load;

#[test]
fn a_conversation_is_kept_inside() -> Result<(), Box<dyn Error>> {
    keep_inside::main()
}

#[test]
fn the_host_writes_summaries() -> Result<(), Box<dyn Error>> {
    host_summariser::main()
}

#[test]
fn what_is_loaded_sends_the_same() -> Result<(), Box<dyn Error>> {
    save_and_load::main()
}

#[test]
fn what_was_taken_out_is_recalled() -> Result<(), Box<dyn Error>> {
    recall::main()
}

/// What the README shows, to the line.
#[test]
fn the_readme_has_code_that_runs() -> Result<(), Box<dyn Error>> {
    let readme = include_str!("../../../README.md");
    let (_, shown) = readme.split_once("```rust\n").unwrap();
    let (_, own) = include_str!("examples.rs").split_once("// README.md: from here\n").unwrap();
    let own = own.lines().take_while(|line| !line.ends_with(": to here"));
    let own: String = own.map(|line| line.strip_prefix("    ").unwrap_or(line).to_owned() + "\n").collect();
    assert_eq!(shown.split_once("```").unwrap().0, own);

    // README.md: from here
    use longhaul::{Message, Models, Prepared, Profile, Session, Usage};

    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let mut session = Session::new(Profile::longhaul(), model);
    session.push(Message::user("What does main.rs print?"));
    match session.prepare(None)? {
        // Send session.outgoing() to the model; then say what the provider reported.
        Prepared::Send(ticket) => session.observe(ticket, &Usage { input: 2_048, ..Usage::default() }),
        // Only if the profile has summaries written by the host.
        Prepared::Summarise(job) => println!("{} messages to summarise", job.messages.len()),
    }
    // README.md: to here
    Ok(())
}
