//! What clients seldom do: they change what they said last, go back with another model, send odd lists of messages.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
#[macro_use]
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use bytes::Bytes;
use clients::{APIS, body_of, conversation, model, result};
use common::{Dice, Ground};
use http::{HeaderMap, HeaderValue};
use longhaul::{RecallPart, Tokens, Usage};
use longhaul_gateway::{Action, Call, CalledTool, Decision, Desk, DeskSettings, How, Incoming, ToolCaller};
use longhaul_store::{Filter, Patience};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

on_each_store!(
    a_way_back_with_another_model_is_the_same_after_a_restart,
    a_restart_between_odd_requests_changes_no_byte,
);

fn desk(ground: &Ground) -> Desk {
    // A slow machine is no reason to go on without the store.
    let (window, patience) = (Some(Tokens(12_000)), Patience::Long);
    let settings = DeskSettings { window, patience, ..DeskSettings::new(ground.place.clone()) };
    Desk::open(settings).unwrap()
}

fn incoming(api: Api, body: &Value) -> Incoming {
    let (tenant, body) = (Arc::from(""), body.to_string().into());
    Incoming { tenant, api, upstream: "".into(), headers: HeaderMap::new(), account: None, body }
}

fn request(api: Api, messages: &[Value]) -> Incoming {
    incoming(api, &body_of(api, model(api), messages, true))
}

fn sent(desk: &Desk, incoming: &Incoming) -> Call {
    match desk.decide(incoming) {
        Decision::Send(call) => call,
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

fn bytes(call: &Call, incoming: &Incoming) -> Bytes {
    call.body.clone().unwrap_or_else(|| Bytes::from_owner(incoming.body.clone()))
}

fn asked(desk: &Desk, incoming: &Incoming) -> Bytes {
    let call = sent(desk, incoming);
    let body = bytes(&call, incoming);
    let usage = Usage { input: body.len() as u64 / 4, output: 40, ..Usage::default() };
    desk.answered(call, Some(&usage));
    body
}

/// The same if it is not passed on.
fn asked_or_not(desk: &Desk, incoming: &Incoming) -> Result<(How, Bytes), String> {
    match desk.decide(incoming) {
        Decision::PassOn(reason) => Err(reason.to_string()),
        Decision::Send(call) => {
            let (how, body) = (call.how, bytes(&call, incoming));
            let usage = Usage { input: body.len() as u64 / 4, output: 40, ..Usage::default() };
            desk.answered(call, Some(&usage));
            Ok((how, body))
        }
    }
}

fn said(text: &str, role: &str) -> Value {
    json!({"role": role, "content": text})
}

/// A client falls back to another model and goes back a few steps at once.
fn a_way_back_with_another_model_is_the_same_after_a_restart(ground: &Ground) {
    for (api, other) in [(Api::Anthropic, "claude-haiku-4-5"), (Api::Chat, "gpt-4o-mini")] {
        let sent = |restarts: bool| {
            let ground = ground.another();
            let mut desk = desk(&ground);
            (0..30).for_each(|n| drop(asked(&desk, &request(api, &conversation(api, n)))));
            let mut messages = conversation(api, 12);
            let mut bodies = Vec::new();
            for n in 0..3 {
                messages.push(said(&format!("Question {n}?"), "user"));
                let incoming = incoming(api, &body_of(api, other, &messages, true));
                bodies.push(asked_or_not(&desk, &incoming));
                messages.push(said(&format!("Answer {n}."), "assistant"));
                if restarts {
                    drop(desk);
                    desk = self::desk(&ground);
                }
            }
            bodies
        };
        assert_eq!(sent(true), sent(false), "{api:?}");
    }
}

/// The result that a client sends now is the one that the model sees.
#[test]
fn a_last_result_that_the_client_made_shorter_is_sent() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        (0..8).for_each(|n| drop(asked(&desk, &request(api, &conversation(api, n)))));
        let mut messages = conversation(api, 8);
        asked(&desk, &request(api, &messages));
        let long = result(7);
        let whole = serde_json::to_string(messages.last().unwrap()).unwrap();
        let long_text = serde_json::to_string(&long).unwrap();
        *messages.last_mut().unwrap() =
            serde_json::from_str(&whole.replace(&long_text, "\"The file is gone.\"")).unwrap();
        let body = asked(&desk, &request(api, &messages));
        let text = std::str::from_utf8(&body).unwrap();
        assert!(text.contains("The file is gone."), "{api:?}");
        assert!(!text.contains("helper_7_3"), "{api:?}");
    }
}

/// A request that there is no view for leaves nothing behind, however often it comes.
#[test]
fn what_has_no_view_is_not_stored() {
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    let mut large = body_of(Api::Anthropic, "claude-sonnet-4-5", &conversation(Api::Anthropic, 3), true);
    large["system"] = json!("Be careful. ".repeat(12_000));
    for _ in 0..5 {
        assert!(asked_or_not(&desk, &incoming(Api::Anthropic, &large)).is_err());
    }
    assert_eq!(ground.open().list(&Filter::default(), 10).unwrap().len(), 0);
}

/// A long system prompt and many tools take memory too.
#[test]
fn what_comes_before_the_messages_takes_memory() {
    let ground = Ground::sqlite();
    let desk =
        Desk::open(DeskSettings { memory: 4 << 20, ..DeskSettings::new(ground.place.clone()) }).unwrap();
    for n in 0..40 {
        let mut body =
            body_of(Api::Anthropic, "claude-sonnet-4-5", &[said(&format!("Task {n}"), "user")], true);
        body["system"] = json!("Be careful. ".repeat(12_000));
        asked(&desk, &incoming(Api::Anthropic, &body));
    }
    let (conversations, bytes) = desk.live();
    assert!(conversations <= 30 && bytes <= 4 << 20, "{conversations} {bytes}");
}

/// One conversation that cannot be loaded does not hide the others.
#[test]
fn recall_goes_past_a_conversation_that_cannot_be_loaded() {
    let ground = Ground::sqlite();
    {
        let desk = desk(&ground);
        (0..30).for_each(|n| drop(asked(&desk, &request(Api::Chat, &conversation(Api::Chat, n)))));
    }
    let body = asked(&desk(&ground), &request(Api::Chat, &conversation(Api::Chat, 30)));
    let text = std::str::from_utf8(&body).unwrap();
    let at = text.find("recall ").unwrap() + "recall ".len();
    let handle: String = text[at..].chars().take_while(char::is_ascii_hexdigit).collect();
    assert!(desk(&ground).recall("", &handle, &RecallPart::Whole).is_ok(), "{handle}");
    let broken = {
        let desk = desk(&ground);
        sent(&desk, &request(Api::Chat, &[said("Something else", "user")])).session
    };
    let other = rusqlite::Connection::open(&ground.place).unwrap();
    other.execute_batch("DELETE FROM entry WHERE at >> 32 = (SELECT max(n) FROM session)").unwrap();
    assert!(ground.open().load(broken).map(|stored| stored.entries.len()).unwrap_or(0) == 0);
    assert!(desk(&ground).recall("", &handle, &RecallPart::Whole).is_ok());
}

/// The messages of one step.
fn step(api: Api, n: usize) -> Vec<Value> {
    conversation(api, n + 1).split_off(conversation(api, n).len())
}

/// Nothing that a client may send stops the desk, and what the desk makes of it is the same after a restart.
fn a_restart_between_odd_requests_changes_no_byte(ground: &Ground) {
    for (seed, api) in [2, 4, 10_u64].into_iter().flat_map(|seed| APIS.map(|api| (seed, api))) {
        let (one, other) = (ground.another(), ground.another());
        let whole = desk(&one);
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ (seed * 7_919));
        let mut messages = conversation(api, 2);
        let mut ways = Vec::new();
        for n in 2..50 {
            let (mut name, way) = (model(api), dice.roll(14));
            match way {
                0 => {
                    messages.truncate(messages.len().saturating_sub(dice.roll(9) as usize).max(1));
                    messages.push(said(&format!("No. Do it otherwise: {n}"), "user"));
                }
                1 => messages.push(said(&format!("Stop {n}"), "user")),
                2 => messages.push(said(&format!("Continue {n}"), "assistant")),
                // Whoever comes back to another model much later may go on there, or another way.
                3 if !ways[..ways.len().saturating_sub(1)].contains(&3) => {
                    name = if api == Api::Anthropic { "claude-haiku-4-5" } else { "gpt-4o-mini" };
                    messages.push(said(&format!("You are another: {n}"), "user"));
                }
                4 => messages.push(said("", "user")),
                5 if api == Api::Chat => messages.push(said(&format!("Careful {n}"), "developer")),
                6 if api == Api::Chat => messages.push(said(&format!("Mind the rules {n}"), "system")),
                7 => {
                    // A step stands twice, with its ids.
                    messages.extend(step(api, n));
                    messages.extend(step(api, n));
                }
                8 => {}
                _ => messages.extend(step(api, n)),
            }
            ways.push(way);
            let incoming = incoming(api, &body_of(api, name, &messages, true));
            let (expected, found) = (asked_or_not(&whole, &incoming), asked_or_not(&desk(&other), &incoming));
            let how = |done: &Result<(How, Bytes), String>| done.clone().map(|(how, _)| how);
            let told = format!("{api:?} {seed}: {:?}, {:?} {ways:?}", how(&found), how(&expected));
            let body = |done: Result<(How, Bytes), String>| done.map(|(_, body)| body);
            assert!(body(found) == body(expected), "{told}");
        }
    }
}

/// A client that has taken messages away goes on after a restart, also if another conversation begins like it.
#[test]
fn what_the_client_took_away_is_known_after_a_restart() {
    let kept_first = |messages: &mut Vec<Value>| drop(messages.drain(1..19));
    let dropped_first = |messages: &mut Vec<Value>| drop(messages.drain(..19));
    for api in APIS {
        for (number, change) in
            [&kept_first as &dyn Fn(&mut Vec<Value>), &dropped_first].into_iter().enumerate()
        {
            let ground = Ground::sqlite();
            let mut desk = desk(&ground);
            let named = |mut incoming: Incoming| {
                incoming.headers.insert("x-session-id", "s-1".parse().unwrap());
                incoming
            };
            // Another conversation that begins with the same words.
            asked(&desk, &request(api, &conversation(api, 0)));
            (1..30).for_each(|n| drop(asked(&desk, &named(request(api, &conversation(api, n))))));
            let mut sessions = Vec::new();
            for n in 30..34 {
                let mut messages = conversation(api, n);
                change(&mut messages);
                let call = sent(&desk, &named(request(api, &messages)));
                sessions.push((call.session, call.how));
                desk.answered(call, None);
                drop(desk);
                desk = self::desk(&ground);
            }
            assert_eq!(sessions, [(sessions[0].0, How::Extends); 4], "{api:?} {number}");
        }
    }
}

/// What a client does wrong is for the provider to say, as long as nothing is edited.
#[test]
fn what_is_wrong_in_a_request_goes_out_as_it_came() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let mut orphan = conversation(api, 3);
        orphan.remove(1);
        let twice: Vec<Value> = [conversation(api, 1), step(api, 0), step(api, 0)].concat();
        let empty = [conversation(api, 2), vec![said("", "user"), said("Go on.", "user")]].concat();
        for (number, messages) in [orphan, twice, empty].into_iter().enumerate() {
            for _ in 0..2 {
                let call = sent(&desk, &request(api, &messages));
                assert_eq!((call.edits, call.body.is_none()), (0, true), "{api:?} {number}");
                desk.answered(call, None);
            }
        }
    }
}

/// Another replica has gone on with the conversation meanwhile.
#[test]
fn a_pin_is_set_in_a_conversation_that_another_replica_goes_on_with() {
    let ground = Ground::sqlite();
    let replicas = [desk(&ground), desk(&ground)];
    let request = |steps| {
        let mut request = request(Api::Chat, &conversation(Api::Chat, steps));
        request.headers.insert("x-session-id", HeaderValue::from_static("one"));
        request
    };
    asked(&replicas[0], &request(3));
    asked(&replicas[1], &request(4));
    let caller = ToolCaller::of("".into(), &request(4).headers);
    let call = CalledTool::new("pin", json!({ "text": "Use tabs." }));
    let says = replicas[0].act(&caller, &call, &Action::Pin("Use tabs.".to_owned())).unwrap();
    assert!(says.contains("Use tabs."), "{says}");
    for (n, desk) in replicas.iter().enumerate() {
        let body = asked(desk, &request(5 + n));
        assert_eq!(std::str::from_utf8(&body).unwrap().matches("Use tabs.").count(), 1);
    }
}
