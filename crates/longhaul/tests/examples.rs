//! The examples of the documentation run, and do what they say.

#![allow(dead_code)]

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
