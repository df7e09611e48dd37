//! The code in the documentation is the code of the examples, and runs.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::error::Error;
use std::path::Path;

#[path = "../examples/relay.rs"]
mod relay;

#[test]
fn a_recorded_conversation_is_relayed() -> Result<(), Box<dyn Error>> {
    relay::run(relay::SAMPLE, 3_000)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The first block of Rust on a page.
fn shown_on(page: &str) -> String {
    let page = read(page);
    let (_, rest) = page.split_once("```rust\n").expect("a block of Rust");
    rest.split_once("```\n").expect("the end of the block").0.to_owned()
}

/// What stands between the marks of an example.
fn marked_in(example: &str) -> String {
    let example = read(example);
    let (_, rest) = example.split_once(": from here\n").expect("the first mark");
    let (region, _) = rest.rsplit_once(": to here\n").expect("the second mark");
    region.rsplit_once('\n').expect("a line before the mark").0.to_owned() + "\n"
}

#[test]
fn the_page_on_requests_has_the_code_of_the_example() {
    assert_eq!(shown_on("../../docs/requests.md"), marked_in("examples/relay.rs"));
}
