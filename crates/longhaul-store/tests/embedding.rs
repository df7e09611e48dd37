//! The host of docs/embedding.md is killed again and again, on either store: nothing that was said is lost, doubled
//! or out of order.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod common;
#[path = "../examples/embedding.rs"]
mod embedding;

use std::path::Path;
use std::time::Duration;

use common::*;
use longhaul::{Message, Profile};
use longhaul_store::{Filter, Keeper};

on_each_store!(a_host_that_is_killed_goes_on_where_it_was);

/// The host, until it is done or killed.
#[test]
#[ignore = "run by the other tests as a process of its own"]
fn works_on_its_task() {
    let Some((place, pause)) = given() else { return };
    println!("\nanswer {}", worked(&place, Duration::from_millis(pause.parse().unwrap())));
}

fn worked(place: &str, pause: Duration) -> String {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { embedding::run(place, pause).await.unwrap() })
}

/// What is stored of the one session there is: its messages, and how often it was compacted.
fn stored(ground: &Ground) -> (Vec<Message>, usize) {
    let store = ground.open();
    let Some(meta) = store.list(&Filter::default(), 2).unwrap().pop() else { return (Vec::new(), 0) };
    let (_, session) = Keeper::open(store, meta.id, Profile::longhaul()).unwrap();
    assert_eq!(session.audit(), []);
    let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
    (session.log().messages().iter().map(|message| (**message).clone()).collect(), folds)
}

fn a_host_that_is_killed_goes_on_where_it_was(ground: &Ground) {
    let whole = ground.another();
    let answer = worked(&whole.place, Duration::ZERO);
    assert!(answer.starts_with("None of them does. 162 messages"), "{answer}");
    let (expected, folds) = stored(&whole);
    assert!(folds >= 3, "{folds} compactions");

    let (mut dice, mut kills, mut before) = (Dice(0x9E37_79B9_7F4A_7C15), 0, 0);
    loop {
        let mut host = child("works_on_its_task", &ground.place, "2").spawn().unwrap();
        // Each life is a little longer than what is needed to start, and than the one before: machines may be slow.
        std::thread::sleep(Duration::from_millis(150 + 5 * kills + dice.roll(150)));
        let is_done = host.try_wait().unwrap().is_some();
        host.kill().unwrap();
        let said = String::from_utf8(host.wait_with_output().unwrap().stdout).unwrap();
        let (messages, _) = stored(ground);
        assert!(messages.len() >= before && messages.len() <= expected.len(), "{said}");
        assert!(messages.iter().zip(&expected).all(|(one, other)| one == other), "kill {kills}: {said}");
        before = messages.len();
        if is_done {
            assert!(said.contains("None of them does."), "{said}");
            break;
        }
        kills += 1;
        assert!(kills < 200, "it never ends: {before} messages");
    }
    let (messages, folds) = stored(ground);
    assert!(messages == expected && folds >= 3 && kills >= 2, "{kills} kills, {folds} compactions");
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

#[test]
fn the_page_on_embedding_has_the_code_of_the_example() {
    let (page, example) = (read("../../docs/embedding.md"), read("examples/embedding.rs"));
    let shown =
        page.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```\n")).expect("a block").0;
    let marked = example
        .split_once(": from here\n")
        .and_then(|(_, rest)| rest.rsplit_once("// docs/embedding.md: to here\n"));
    assert_eq!(shown, marked.expect("the marks").0);
    assert!(shown.lines().count() <= 70);
}
