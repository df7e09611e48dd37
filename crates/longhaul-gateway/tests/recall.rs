//! Whatever was taken out of any stored conversation is given back, by any replica.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
#[macro_use]
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod common;

use clients::{body_of, conversation, model};
use common::Ground;
use http::HeaderMap;
use longhaul::{RecallPart, Tokens, Usage};
use longhaul_gateway::{Decision, Desk, DeskSettings, Incoming};
use longhaul_store::{About, Patience};
use longhaul_wire::api::Api;

on_each_store!(
    an_old_conversation_is_recalled_among_many_newer_ones,
    a_replica_recalls_what_another_has_taken_out,
    what_is_not_stored_is_recalled_from_memory,
);

const API: Api = Api::Anthropic;
const STEPS: usize = 40;

fn settings(ground: &Ground) -> DeskSettings {
    let patience = Patience::Long;
    DeskSettings { window: Some(Tokens(12_000)), patience, ..DeskSettings::new(ground.place.clone()) }
}

fn desk(ground: &Ground) -> Desk {
    Desk::open(settings(ground)).unwrap()
}

/// Sends a request of a conversation; gives what goes to the provider.
fn asks(desk: &Desk, tenant: &str, steps: usize) -> String {
    let body = body_of(API, model(API), &conversation(API, steps), true);
    let incoming = Incoming {
        tenant: tenant.into(),
        api: API,
        upstream: "http://provider".into(),
        headers: HeaderMap::new(),
        account: None,
        body: body.to_string().into(),
    };
    let Decision::Send(call) = desk.decide(&incoming) else { panic!("step {steps} is passed on") };
    let sent = call.body.clone().map_or(body.to_string(), |sent| String::from_utf8(sent.to_vec()).unwrap());
    desk.answered(call, Some(&Usage { input: sent.len() as u64 / 4, output: 40, ..Usage::default() }));
    sent
}

/// The handle in the first mark of what is sent.
fn handle(sent: &str) -> Option<String> {
    sent.split("; recall ").nth(1).map(|behind| behind[..12].to_owned())
}

fn recalls(desk: &Desk, tenant: &str, handle: &str) -> Result<String, String> {
    desk.recall(tenant, handle, &RecallPart::Whole).map_err(|error| error.to_string())
}

fn unknown(handle: &str) -> Result<String, String> {
    Err(format!("no single original has the handle {handle:?}"))
}

fn an_old_conversation_is_recalled_among_many_newer_ones(ground: &Ground) {
    let first = desk(ground);
    let sent = (0..STEPS).map(|n| asks(&first, "us", n)).last().unwrap();
    let handle = handle(&sent).unwrap();
    let text = recalls(&first, "us", &handle).unwrap();
    assert!(text.contains(&clients::result(0)));
    drop(first);
    let store = ground.open();
    for _ in 0..60 {
        let about = About { tenant: "us".into(), ..About::default() };
        store.append(store.create(&about).unwrap(), longhaul::Cursor(0), &[common::began()]).unwrap();
    }
    let later = desk(ground);
    assert_eq!(recalls(&later, "us", &handle), Ok(text));
    assert_eq!(recalls(&later, "them", &handle), unknown(&handle));
    let part = RecallPart::Pattern("(".into());
    let wrong = later.recall("us", &handle, &part).unwrap_err().to_string();
    assert_eq!(wrong, "the pattern cannot be read: error: unclosed group");
}

fn a_replica_recalls_what_another_has_taken_out(ground: &Ground) {
    let (stale, ahead) = (desk(ground), desk(ground));
    let mut sent = asks(&stale, "us", 0);
    let mut steps = 0;
    while handle(&sent).is_none() {
        steps += 1;
        sent = asks(&ahead, "us", steps);
    }
    // Nothing of it is in the copy that the first one still has.
    let handle = handle(&sent).unwrap();
    let text = recalls(&stale, "us", &handle).unwrap();
    assert!(text.contains("fn "), "{text}");
    assert_eq!(recalls(&ahead, "us", &handle), Ok(text));
}

fn what_is_not_stored_is_recalled_from_memory(ground: &Ground) {
    let desk = Desk::open(DeskSettings { without_content: true, ..settings(ground) }).unwrap();
    let sent = (0..STEPS).map(|n| asks(&desk, "us", n)).last().unwrap();
    let handle = handle(&sent).unwrap();
    assert!(recalls(&desk, "us", &handle).unwrap().contains("fn "));
    assert_eq!(ground.open().holders("us", &handle).unwrap(), None);
    drop(desk);
    let later = Desk::open(settings(ground)).unwrap();
    assert_eq!(recalls(&later, "us", &handle), unknown(&handle));
}
