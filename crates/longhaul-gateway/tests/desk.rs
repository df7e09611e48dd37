//! What the desk makes of the requests of clients: the same bytes whoever asks, after a restart, on another replica.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
#[macro_use]
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clients::{APIS, body_of, conversation, model};
use common::{Dice, Ground};
use http::HeaderMap;
use longhaul::{Frame, Message, Overflow, Profile, Tokens, Usage};
use longhaul_gateway::{Break, Call, Decision, Desk, DeskSettings, How, Incoming, Reason, SummaryModel};
use longhaul_model::{Asked, Fault, Model, Scripted, Watch};
use longhaul_store::{Filter, Patience, Pruned, Retention, SessionId, UpstreamLimit};
use longhaul_wire::api::{Api, Request};
use serde_json::{Value, json};

on_each_store!(
    a_restart_after_every_call_changes_no_byte,
    a_crash_before_the_answer_changes_no_byte,
    replicas_that_share_a_store_send_the_same_bytes,
    tenants_have_nothing_in_common,
    a_late_answer_on_one_replica_leaves_the_conversation_to_the_other,
    the_same_words_to_several_models_are_conversations_that_all_go_on,
    the_same_request_many_times_at_once_is_one_conversation,
    what_is_not_kept_goes_and_what_is_used_stays,
);

const STEPS: usize = 40;

fn settings(ground: &Ground) -> DeskSettings {
    // A slow disk is no reason to go on without it: other desks would know less.
    let patience = Patience::Long;
    DeskSettings { window: Some(Tokens(12_000)), patience, ..DeskSettings::new(ground.place.clone()) }
}

fn desk(ground: &Ground) -> Desk {
    Desk::open(settings(ground)).unwrap()
}

fn incoming(api: Api, body: &Value) -> Incoming {
    let (tenant, body) = (Arc::from(""), body.to_string().into());
    Incoming {
        tenant,
        api,
        upstream: "http://provider".into(),
        headers: HeaderMap::new(),
        account: None,
        body,
    }
}

fn step(api: Api, steps: usize) -> Incoming {
    incoming(api, &body_of(api, model(api), &conversation(api, steps), true))
}

fn sent(desk: &Desk, incoming: &Incoming) -> Call {
    match desk.decide(incoming) {
        Decision::Send(call) => call,
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

fn passed_on(desk: &Desk, incoming: &Incoming) -> Reason {
    match desk.decide(incoming) {
        Decision::Send(call) => panic!("{call:?}"),
        Decision::PassOn(reason) => reason,
    }
}

/// What goes out.
fn bytes(call: &Call, incoming: &Incoming) -> Bytes {
    call.body.clone().unwrap_or_else(|| Bytes::from_owner(incoming.body.clone()))
}

/// What a provider says of a body.
fn usage(body: &Bytes) -> Usage {
    Usage { input: body.len() as u64 / 4, output: 40, ..Usage::default() }
}

/// Asks, and tells the desk what it cost.
fn asked(desk: &Desk, incoming: &Incoming) -> Bytes {
    let call = sent(desk, incoming);
    let body = bytes(&call, incoming);
    desk.answered(call, Some(&usage(&body)));
    body
}

/// What is sent in a conversation that one desk sees from its first to its last call.
fn undisturbed(ground: &Ground, api: Api) -> Vec<Bytes> {
    let ground = ground.another();
    let desk = desk(&ground);
    (0..STEPS).map(|n| asked(&desk, &step(api, n))).collect()
}

/// Says in a few words where two bodies differ.
fn same(body: &Bytes, expected: &Bytes, api: Api, n: usize) {
    let common = body.iter().zip(expected).take_while(|(one, other)| one == other).count();
    let near = |body: &Bytes| {
        String::from_utf8_lossy(&body[common.saturating_sub(80)..body.len().min(common + 80)]).into_owned()
    };
    assert!(body == expected, "{api:?} {n}: {}\n-- instead of --\n{}", near(body), near(expected));
}

/// True if a request has the messages of the one before it at its start.
fn extends(api: Api, before: &Bytes, body: &Bytes) -> bool {
    let messages = |body: &Bytes| {
        let request = Request::decode(api, std::str::from_utf8(body).unwrap()).unwrap();
        request.messages().to_vec()
    };
    messages(body).starts_with(&messages(before))
}

#[test]
fn a_long_conversation_stays_in_its_window_and_extends_what_was_sent() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let (mut before, mut breaks, mut own) = (None, 0, 0);
        for n in 0..STEPS {
            let incoming = step(api, n);
            let call = sent(&desk, &incoming);
            assert_eq!(call.how, if n == 0 { How::New } else { How::Extends }, "{api:?} {n}");
            // What the provider said of the last one is part of the size of a view.
            assert!(call.view <= Tokens(12_000).min(call.full + Tokens(500)), "{api:?} {n} {call:?}");
            // Nothing is edited: the client's own bytes go out.
            assert_eq!(call.body.is_none(), call.edits == 0, "{api:?} {n} {call:?}");
            own += usize::from(call.body.is_none());
            let body = bytes(&call, &incoming);
            assert!(body.len() < 60_000, "{api:?} {n}: {} bytes", body.len());
            if let Some(before) = &before {
                let goes_on = extends(api, before, &body);
                assert_eq!(call.broke, (!goes_on).then_some(Break::Edited), "{api:?} {n} {call:?}");
                breaks += usize::from(!goes_on);
            }
            desk.answered(call, Some(&usage(&body)));
            before = Some(body);
        }
        assert!((2..=STEPS / 4).contains(&breaks) && own > 5, "{api:?} {breaks} breaks, {own} as they came");
    }
}

fn a_restart_after_every_call_changes_no_byte(ground: &Ground) {
    for api in APIS {
        let expected = undisturbed(ground, api);
        let ground = ground.another();
        for (n, expected) in expected.iter().enumerate() {
            same(&asked(&desk(&ground), &step(api, n)), expected, api, n);
        }
    }
}

/// The process is killed when a request is on its way, or before it goes out.
fn a_crash_before_the_answer_changes_no_byte(ground: &Ground) {
    for api in APIS {
        let expected = undisturbed(ground, api);
        let ground = ground.another();
        for (n, expected) in expected.iter().enumerate() {
            let incoming = step(api, n);
            for _ in 0..2 {
                let desk = desk(&ground);
                same(&bytes(&sent(&desk, &incoming), &incoming), expected, api, n);
            }
            same(&asked(&desk(&ground), &incoming), expected, api, n);
        }
    }
}

fn replicas_that_share_a_store_send_the_same_bytes(ground: &Ground) {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    for api in APIS {
        let expected = undisturbed(ground, api);
        let ground = ground.another();
        let replicas = [desk(&ground), desk(&ground), desk(&ground)];
        for (n, expected) in expected.iter().enumerate() {
            let desk = &replicas[dice.roll(3) as usize];
            same(&asked(desk, &step(api, n)), expected, api, n);
        }
    }
}

/// The next request comes to another replica while the first one still stores what it knows of the answer.
fn a_late_answer_on_one_replica_leaves_the_conversation_to_the_other(ground: &Ground) {
    for api in APIS {
        let ground = ground.another();
        let replicas = [desk(&ground), desk(&ground)];
        // The first call is answered: before that nobody else can know the conversation.
        asked(&replicas[0], &step(api, 0));
        let first = sent(&replicas[0], &step(api, 1));
        let session = first.session;
        std::thread::scope(|scope| {
            let mut before = first;
            for n in 2..STEPS {
                let (one, late) = (&replicas[n % 2], &replicas[(n + 1) % 2]);
                scope.spawn(move || late.answered(before, None));
                before = sent(one, &step(api, n));
                assert_eq!((before.how, before.session), (How::Extends, session), "{api:?} {n}");
            }
        });
    }
}

fn tenants_have_nothing_in_common(ground: &Ground) {
    let desk = desk(ground);
    let of = |tenant: &str, n: usize| Incoming { tenant: tenant.into(), ..step(Api::Chat, n) };
    let (first, second) = (sent(&desk, &of("a", 20)), sent(&desk, &of("b", 20)));
    assert_ne!(first.session, second.session);
    assert_eq!((first.how, second.how), (How::New, How::New));
    let (first, second) = (first.session, second.session);
    assert_eq!(sent(&desk, &of("a", 21)).session, first);
    assert_eq!(sent(&desk, &of("b", 21)).session, second);
    let store = ground.open();
    assert_eq!([first, second].map(|id| store.meta(id).unwrap().tenant), ["a", "b"]);
}

#[test]
fn the_same_request_again_is_the_same_again() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        (0..30).for_each(|n| drop(asked(&desk, &step(api, n))));
        let first = sent(&desk, &step(api, 30));
        for _ in 0..3 {
            let again = sent(&desk, &step(api, 30));
            assert_eq!((again.how, again.session, again.view), (How::Retry, first.session, first.view));
            assert_eq!(again.body, first.body);
        }
    }
}

#[test]
fn who_goes_back_goes_another_way_and_can_return() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        (0..30).for_each(|n| drop(asked(&desk, &step(api, n))));
        let main = sent(&desk, &step(api, 30));
        let mut messages = conversation(api, 12);
        messages.push(json!({"role": "user", "content": "Stop. What did you see so far?"}));
        let back = sent(&desk, &incoming(api, &body_of(api, model(api), &messages, true)));
        assert_eq!(back.how, How::Forks, "{api:?}");
        assert_ne!(back.session, main.session);
        // Both go on where they were.
        let next = sent(&desk, &step(api, 31));
        assert_eq!((next.how, next.session), (How::Extends, main.session), "{api:?}");
        messages.push(json!({"role": "assistant", "content": "Twelve files."}));
        messages.push(json!({"role": "user", "content": "Go on."}));
        let on = sent(&desk, &incoming(api, &body_of(api, model(api), &messages, true)));
        assert_eq!((on.how, on.session), (How::Extends, back.session), "{api:?}");
    }
}

/// A request as aider writes it: files and rules stand behind the history, anew each time.
fn of_aider(turns: usize) -> Incoming {
    let said = |role: &str, text: String| json!({"role": role, "content": text});
    let files = |state: usize| {
        let files = format!("I have *added these files to the chat*\n\nimporter.py\n# state {state}\n");
        [said("user", files), said("assistant", "Ok, any changes I propose will be to those files.".into())]
    };
    let mut messages = vec![said("system", "You work on code.".into())];
    for turn in 0..turns {
        messages.push(said("user", format!("Look at part {turn}.")));
        messages
            .push(said("assistant", format!("Part {turn} is well: {}", "it keeps its rows. ".repeat(150))));
    }
    messages.extend(files(turns));
    let rules = "# *SEARCH/REPLACE block* Rules:\n\nEvery *SEARCH/REPLACE block* must use this format.";
    messages.push(said("user", format!("Look at part {turns}.\n\n{rules}")));
    incoming(Api::Chat, &json!({"model": "gpt-5", "messages": messages}))
}

/// What was folded stays folded, and the prompt begins as before, though each request replaces the end of the last.
#[test]
fn another_input_in_the_place_of_the_last_leaves_folds_alone() {
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    let (mut folds, mut before) = (0, (0, Value::Null));
    for turns in 0..60 {
        let request = of_aider(turns);
        let call = sent(&desk, &request);
        let body: Value = serde_json::from_slice(&bytes(&call, &request)).unwrap();
        let text = body["messages"].to_string();
        assert!(text.contains(&format!("# state {turns}")), "the files are gone: {text}");
        assert!(text.contains(&format!("Look at part {turns}.")), "{text}");
        let shared = body["messages"].as_array().unwrap().iter();
        let shared =
            shared.zip(before.1.as_array().into_iter().flatten()).take_while(|(new, old)| new == old);
        if call.edits == before.0 && turns > 0 {
            // All but files, their answer and the request is the same.
            assert_eq!(shared.count(), before.1.as_array().unwrap().len() - 3, "{turns}");
        } else {
            folds += usize::from(turns > 0);
        }
        before = (call.edits, body["messages"].clone());
        desk.answered(call, Some(&usage(&body.to_string().into())));
    }
    assert!((3..20).contains(&folds), "{folds} folds in 60 requests");
}

#[test]
fn requests_that_are_made_at_once_do_not_mix() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        (0..20).for_each(|n| drop(asked(&desk, &step(api, n))));
        let ask = |n: usize| {
            let mut messages = conversation(api, 20);
            messages.push(json!({"role": "user", "content": format!("Question number {n}?")}));
            let incoming = incoming(api, &body_of(api, model(api), &messages, true));
            let call = sent(&desk, &incoming);
            let body = bytes(&call, &incoming);
            let text = std::str::from_utf8(&body).unwrap();
            assert!(text.contains(&format!("Question number {n}?")));
            assert_eq!(text.matches("Question number").count(), 1, "{api:?}");
            let session = call.session.to_string();
            desk.answered(call, Some(&usage(&body)));
            session
        };
        let sessions: HashSet<String> = std::thread::scope(|scope| {
            let asks: Vec<_> = (0..50).map(|n| scope.spawn(move || ask(n))).collect();
            asks.into_iter().map(|ask| ask.join().unwrap()).collect()
        });
        assert_eq!(sessions.len(), 50, "{api:?}");
    }
}

/// A client falls back to another model for one request, and returns.
#[test]
fn another_model_is_another_way() {
    for (api, other) in [(Api::Anthropic, "claude-haiku-4-5"), (Api::Chat, "gpt-4o-mini")] {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        (0..30).for_each(|n| drop(asked(&desk, &step(api, n))));
        let before = sent(&desk, &step(api, 30));
        let fallback = incoming(api, &body_of(api, other, &conversation(api, 30), true));
        assert_eq!(sent(&desk, &fallback).how, How::Forks);
        let after = sent(&desk, &step(api, 31));
        assert_eq!((after.how, after.session), (How::Extends, before.session));
        assert!(extends(api, &before.body.unwrap(), &after.body.unwrap()));
    }
}

/// The same words are said to three models, and by two agents with other tools. Nobody remembers anything between two
/// requests but the store.
fn the_same_words_to_several_models_are_conversations_that_all_go_on(ground: &Ground) {
    for api in APIS {
        let others: [&str; 3] = match api {
            Api::Anthropic => ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"],
            Api::Chat | Api::Responses => ["gpt-4o", "gpt-4o-mini", "gpt-4.1"],
        };
        let body = |who: usize, steps: usize| {
            let mut body = body_of(api, others[who % 3], &conversation(api, steps), true);
            if who == 3 {
                body["tools"].as_array_mut().unwrap().clear();
            }
            incoming(api, &body)
        };
        let mut sessions: Vec<String> = Vec::new();
        for n in 5..9 {
            for who in 0..4 {
                let desk_before = desk(ground);
                let first = sent(&desk_before, &body(who, n));
                let (id, sent_first) = (first.session.to_string(), bytes(&first, &body(who, n)));
                match sessions.get(who) {
                    None => sessions.push(id.clone()),
                    Some(known) => assert_eq!((&id, first.how), (known, How::Extends), "{api:?} {who} {n}"),
                }
                desk_before.answered(first, Some(&usage(&sent_first)));
                drop(desk_before);
                // The same again, after a restart.
                let again = sent(&desk(ground), &body(who, n));
                assert_eq!((again.session.to_string(), again.how), (id, How::Retry), "{api:?} {who} {n}");
                assert_eq!(bytes(&again, &body(who, n)), sent_first);
            }
        }
        assert_eq!(sessions.iter().collect::<HashSet<_>>().len(), 4, "{api:?}");
        // After a restart one of them is live when the next one comes.
        let desk = desk(ground);
        for (who, session) in sessions.iter().enumerate() {
            let again = sent(&desk, &body(who, 8));
            assert_eq!((&again.session.to_string(), again.how), (session, How::Retry), "{api:?} {who}");
        }
    }
    assert_eq!(ground.open().list(&Filter::default(), 100).unwrap().len(), 12);
}

/// Makes all sessions as old as this.
fn age(ground: &Ground, days: i64) {
    let micros = days * 86_400_000_000;
    match ground.place.starts_with("postgres") {
        true => drop(common::postgres::sql(
            &ground.place,
            &format!("UPDATE longhaul.session SET updated = updated - {micros}"),
        )),
        false => {
            let file = rusqlite::Connection::open(&ground.place).unwrap();
            file.execute("UPDATE session SET updated = updated - ?1", [micros]).unwrap();
        }
    }
}

fn what_is_not_kept_goes_and_what_is_used_stays(ground: &Ground) {
    let of = |tenant: usize| Incoming { tenant: tenant.to_string().into(), ..step(Api::Chat, 3) };
    let before = desk(ground);
    (0..10).for_each(|tenant| drop(asked(&before, &of(tenant))));
    drop(before);
    let week = Retention { older_than: Some(Duration::from_secs(7 * 86_400)), ..Retention::default() };
    let keeping = Desk::open(DeskSettings { retention: week, ..settings(ground) }).unwrap();
    // One of them is in use here. All are written to too long ago.
    let used = sent(&keeping, &of(4)).session;
    assert_eq!(keeping.prune().unwrap(), Pruned::default());
    age(ground, 8);
    let mut gone = Vec::new();
    while let Pruned { sessions, .. } = keeping.prune().unwrap()
        && !sessions.is_empty()
    {
        // A few at a time.
        assert!(sessions.len() <= 2);
        gone.extend(sessions);
    }
    let store = ground.open();
    let left: Vec<SessionId> =
        store.list(&Filter::default(), 100).unwrap().iter().map(|meta| meta.id).collect();
    assert_eq!((gone.len(), left), (9, vec![used]));
    // Who comes back begins anew, and who stayed goes on.
    assert_eq!(sent(&keeping, &of(5)).how, How::New);
    let next = Incoming { body: step(Api::Chat, 4).body, ..of(4) };
    assert_eq!((sent(&keeping, &next).session, sent(&keeping, &next).how), (used, How::Retry));
    // By size: nothing that was used within the hour goes.
    let small = Retention { larger_than: Some(1), ..Retention::default() };
    keeping.change(DeskSettings { retention: small, ..settings(ground) });
    assert_eq!(keeping.prune().unwrap(), Pruned::default());
    ground.check();
}

/// A profile, a window and what is kept may change while conversations go on.
#[test]
fn other_settings_hold_from_the_next_request_on() {
    for api in APIS {
        let ground = Ground::sqlite();
        let wide = DeskSettings { window: None, ..settings(&ground) };
        let desk = Desk::open(wide.clone()).unwrap();
        let before = sent(&desk, &step(api, 30));
        assert!(before.view > Tokens(12_000) && before.body.is_none(), "{api:?} {before:?}");
        desk.change(settings(&ground));
        let after = sent(&desk, &step(api, 31));
        assert_eq!((after.how, after.session), (How::Extends, before.session));
        assert!(after.view < Tokens(12_000) && after.edits > 0, "{api:?} {after:?}");
        // What was edited stays so, whatever the settings say later.
        desk.change(DeskSettings { profile: Profile::find("transform").unwrap(), ..wide });
        let later = sent(&desk, &step(api, 32));
        assert!(later.session == before.session && later.edits >= after.edits, "{api:?} {later:?}");
        assert!(later.view < before.view, "{api:?} {later:?}");
    }
}

fn the_same_request_many_times_at_once_is_one_conversation(ground: &Ground) {
    for api in APIS {
        let desk = desk(ground);
        let at_once = |incoming: &Incoming| -> HashSet<String> {
            std::thread::scope(|scope| {
                let ask = || {
                    let call = sent(&desk, incoming);
                    let session = call.session.to_string();
                    let usage = usage(&bytes(&call, incoming));
                    desk.answered(call, Some(&usage));
                    session
                };
                let asks: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
                asks.into_iter().map(|ask| ask.join().unwrap()).collect()
            })
        };
        let first = at_once(&step(api, 3));
        assert_eq!(first.len(), 1, "{api:?}");
        assert_eq!(at_once(&step(api, 4)), first, "{api:?}");
        // Another way from there, at once too.
        let mut messages = conversation(api, 2);
        messages.push(json!({"role": "user", "content": "Stop."}));
        let other = at_once(&incoming(api, &body_of(api, model(api), &messages, true)));
        assert_eq!(other.len(), 1, "{api:?}");
        assert_ne!(other, first, "{api:?}");
    }
    assert_eq!(ground.open().list(&Filter::default(), 100).unwrap().len(), 6);
}

#[test]
fn what_is_no_conversation_is_passed_on_and_said() {
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    let title = [json!({"role": "user", "content": "Write a title for this."})];
    for api in APIS {
        let side = body_of(api, model(api), &title, false);
        assert_eq!(passed_on(&desk, &incoming(api, &side)), Reason::Side);
    }
    let odd = |body: &str| Incoming { body: body.into(), ..incoming(Api::Chat, &json!({})) };
    for text in ["", "{", "[]", "null", "{\"messages\": 7}", "\u{feff}{"] {
        assert_eq!(passed_on(&desk, &odd(text)), Reason::Unreadable, "{text}");
    }
    let mut stateful = body_of(Api::Responses, "gpt-4o", &conversation(Api::Responses, 3), true);
    stateful["previous_response_id"] = json!("resp_1");
    assert_eq!(passed_on(&desk, &incoming(Api::Responses, &stateful)), Reason::Stateful);
    let mut off = step(Api::Chat, 5);
    off.headers.insert("x-longhaul", "off".parse().unwrap());
    assert_eq!(passed_on(&desk, &off), Reason::Off);
    // A system prompt that is larger than the window.
    let mut large = body_of(Api::Anthropic, "claude-sonnet-4-5", &conversation(Api::Anthropic, 3), true);
    large["system"] = json!("Be careful. ".repeat(12_000));
    assert_eq!(passed_on(&desk, &incoming(Api::Anthropic, &large)), Reason::NoView);
}

#[test]
fn a_request_that_was_refused_as_too_long_becomes_smaller() {
    for api in APIS {
        let ground = Ground::sqlite();
        let open = || Desk::open(DeskSettings { window: None, ..settings(&ground) }).unwrap();
        let desk = open();
        (0..20).for_each(|n| drop(asked(&desk, &step(api, n))));
        let call = sent(&desk, &step(api, 20));
        let before = call.view;
        let overflow = Overflow { prompt: None, window: Some(Tokens(9_000)), answer: None };
        let smaller = desk.overflowed(call, overflow).unwrap();
        assert!(smaller.view < before && smaller.view <= Tokens(9_000), "{api:?} {smaller:?}");
        assert!(smaller.body.is_some());
        assert_eq!(smaller.broke, Some(Break::TooLong), "{api:?}");
        desk.answered(smaller, None);
        // The window is known from now on, after a restart too.
        drop(desk);
        assert!(sent(&open(), &step(api, 21)).view <= Tokens(9_000), "{api:?}");
    }
}

/// Where nothing is sent instead, the window is learnt all the same.
#[test]
fn a_refusal_that_the_client_sees_is_learnt_from_too() {
    for api in APIS {
        let ground = Ground::sqlite();
        let open = || Desk::open(DeskSettings { window: None, ..settings(&ground) }).unwrap();
        let desk = open();
        (0..20).for_each(|n| drop(asked(&desk, &step(api, n))));
        let call = sent(&desk, &step(api, 30));
        assert!(call.view > Tokens(8_000), "{api:?} {call:?}");
        desk.refused(call, Overflow { prompt: None, window: Some(Tokens(8_000)), answer: None });
        assert!(sent(&desk, &step(api, 31)).view <= Tokens(8_000), "{api:?}");
        drop(desk);
        assert!(sent(&open(), &step(api, 31)).view <= Tokens(8_000), "{api:?}");
    }
}

/// A window that one conversation learnt from a refusal of prompt and answer together bounds the others, after a restart
/// too. A figure that cannot be a window is not kept, and not read where an older version kept it.
#[test]
fn a_shared_window_bounds_every_conversation_with_the_model() {
    let ground = Ground::sqlite();
    let open = || Desk::open(DeskSettings { window: None, ..settings(&ground) }).unwrap();
    let long = |task: &str| {
        let mut messages = conversation(Api::Chat, 40);
        messages[0]["content"] = json!(task);
        let mut body = body_of(Api::Chat, "gpt-4o", &messages, true);
        body["max_tokens"] = json!(16_000);
        incoming(Api::Chat, &body)
    };
    let said = |window| Overflow { prompt: None, window: Some(Tokens(window)), answer: Some(Tokens(16_000)) };
    let desk = open();
    desk.refused(sent(&desk, &long("Read the first.")), said(500));
    let whole = sent(&desk, &long("Read the second.")).view;
    assert!(whole > Tokens(12_000) && ground.open().limits().unwrap().is_empty(), "{whole}");
    desk.refused(sent(&desk, &long("Read the third.")), said(12_000));
    let bounded = sent(&desk, &long("Read the fourth."));
    assert!(bounded.view <= Tokens(6_000), "{bounded:?}");
    drop(desk);
    assert!(sent(&open(), &long("Read the fifth.")).view <= Tokens(6_000));
    let stored = |change: &dyn Fn(&mut UpstreamLimit)| {
        for mut limit in ground.open().limits().unwrap() {
            change(&mut limit);
            ground.open().keep_limit(&limit).unwrap();
        }
    };
    // After a week it is forgotten.
    let days_ago = |days: i64| move |limit: &mut UpstreamLimit| limit.learnt.0 -= days * 24 * 3_600_000_000;
    stored(&days_ago(6));
    assert!(sent(&open(), &long("Read the sixth.")).view <= Tokens(6_000));
    stored(&days_ago(2));
    let desk = open();
    let call = sent(&desk, &long("Read the seventh."));
    assert_eq!(call.view, whole);
    // Until it is shown again.
    desk.refused(call, said(12_000));
    assert!(sent(&desk, &long("Read the eighth.")).view <= Tokens(6_000));
    stored(&|limit| limit.window = Tokens(500));
    assert_eq!(sent(&open(), &long("Read the ninth.")).view, whole);
}

/// Who asks for a million tokens by a beta has another window than the one that was learnt before.
#[test]
fn a_beta_for_a_million_tokens_raises_a_window_that_was_learnt() {
    let request = |steps: usize, beta: Option<&str>| {
        let mut body =
            body_of(Api::Anthropic, model(Api::Anthropic), &conversation(Api::Anthropic, steps), true);
        body["max_tokens"] = json!(16_000);
        let mut incoming = incoming(Api::Anthropic, &body);
        if let Some(beta) = beta {
            incoming.headers.insert("anthropic-beta", beta.parse().unwrap());
        }
        incoming
    };
    let beta = Some("context-1m-2025-08-07");
    let said = |window| Overflow { prompt: None, window: Some(Tokens(window)), answer: Some(Tokens(16_000)) };
    for window in [None, Some(Tokens(100_000))] {
        let ground = Ground::sqlite();
        let desk = Desk::open(DeskSettings { window, ..settings(&ground) }).unwrap();
        (0..40).for_each(|n| drop(asked(&desk, &request(n, None))));
        let call = sent(&desk, &request(40, None));
        assert!(call.view > Tokens(12_000), "{call:?}");
        desk.refused(call, said(12_000));
        let bounded = sent(&desk, &request(41, None));
        assert!(bounded.view <= Tokens(6_000), "{bounded:?}");
        // Earlier folds stay. Later messages fit into the larger window, and so does the answer.
        (42..79).for_each(|n| drop(asked(&desk, &request(n, beta))));
        let call = sent(&desk, &request(80, beta));
        assert!(call.view > Tokens(12_000), "{call:?}");
        let body: Value = serde_json::from_slice(&bytes(&call, &request(80, beta))).unwrap();
        assert_eq!(body["max_tokens"], 16_000);
        // The provider gives it no million: that is believed, and of such requests alone.
        desk.refused(call, said(14_000));
        assert!((81..84).all(|n| sent(&desk, &request(n, beta)).view <= Tokens(7_000)));
        let limits = ground.open().limits().unwrap();
        assert!(matches!(&limits[..], [limit] if limit.window == Tokens(12_000)), "{limits:?}");
    }
}

#[test]
fn a_store_that_fails_holds_no_conversation_up() {
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    (0..20).for_each(|n| drop(asked(&desk, &step(Api::Chat, n))));
    let other = rusqlite::Connection::open(&ground.place).unwrap();
    other.execute_batch("DROP TABLE entry; DROP TABLE session").unwrap();
    for n in 20..STEPS {
        let call = sent(&desk, &step(Api::Chat, n));
        assert!(call.how == How::Extends && call.view <= Tokens(12_000), "{n} {call:?}");
        desk.answered(call, None);
    }
}

#[test]
fn a_known_conversation_is_counted_as_it_is_sent() {
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    (0..35).for_each(|n| drop(asked(&desk, &step(Api::Anthropic, n))));
    let next = step(Api::Anthropic, 35);
    let counted = desk.count(&next).unwrap();
    let call = sent(&desk, &next);
    assert!(call.full > Tokens(14_000) && counted < Tokens(13_000), "{counted} {call:?}");
    assert_eq!(desk.count(&incoming(Api::Anthropic, &json!({"messages": []}))), None);
}

#[test]
fn conversations_leave_memory_and_are_loaded_again() {
    let ground = Ground::sqlite();
    let expected = undisturbed(&ground, Api::Chat);
    let desk = Desk::open(DeskSettings { memory: 1, ..settings(&ground) }).unwrap();
    let other = |n: usize| {
        let mut messages = conversation(Api::Chat, n);
        messages[0]["content"] = json!("Read them once more.");
        incoming(Api::Chat, &body_of(Api::Chat, "gpt-4o", &messages, true))
    };
    for (n, expected) in expected.iter().enumerate() {
        same(&asked(&desk, &step(Api::Chat, n)), expected, Api::Chat, n);
        asked(&desk, &other(n));
        assert_eq!(desk.live().0, 1);
    }
}

/// Some clients make old results shorter by themselves, and some drop their oldest messages. What was sent stays.
#[test]
fn what_the_client_takes_away_itself_breaks_nothing() {
    let clear = |api: Api, messages: &mut Vec<Value>| {
        for message in messages.iter_mut().take(20) {
            match api {
                Api::Anthropic if message["content"][0]["type"] == "tool_result" => {
                    message["content"][0]["content"] = json!("[Old tool result content cleared]");
                }
                Api::Chat if message["role"] == "tool" => message["content"] = json!("[cleared]"),
                Api::Responses if message["type"] == "function_call_output" => {
                    message["output"] = json!("[cleared]")
                }
                _ => {}
            }
        }
    };
    let drop_oldest = |_: Api, messages: &mut Vec<Value>| drop(messages.drain(1..19));
    let drop_the_first_too = |_: Api, messages: &mut Vec<Value>| drop(messages.drain(..19));
    // Such a client says which conversation it is: its body begins otherwise each time.
    let named = |mut incoming: Incoming| {
        incoming.headers.insert("x-session-id", "s-1".parse().unwrap());
        incoming
    };
    type Change<'a> = &'a dyn Fn(Api, &mut Vec<Value>);
    let changes: [Change<'_>; 3] = [&clear, &drop_oldest, &drop_the_first_too];
    for api in APIS {
        for (number, change) in changes.into_iter().enumerate() {
            let ground = Ground::sqlite();
            let desk = desk(&ground);
            (0..30).for_each(|n| drop(asked(&desk, &named(step(api, n)))));
            let first = sent(&desk, &named(step(api, 30)));
            let (mut before, mut edits) = (bytes(&first, &step(api, 30)), first.edits);
            for n in 31..34 {
                let mut messages = conversation(api, n);
                change(api, &mut messages);
                let incoming = named(incoming(api, &body_of(api, model(api), &messages, true)));
                let call = sent(&desk, &incoming);
                assert_eq!((call.how, call.session), (How::Extends, first.session), "{api:?} {number} {n}");
                let body = bytes(&call, &incoming);
                // A fold may be due after the first request that the client changed.
                let folded = n > 31 && call.edits > edits;
                assert!(folded || extends(api, &before, &body), "{api:?} {number} {n}");
                (before, edits) = (body, call.edits);
            }
        }
    }
}

/// What the client no longer sends would not be sent without us either: it counts neither as saved nor as cost.
#[test]
fn what_the_client_takes_away_itself_is_nothing_that_we_save() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = Desk::open(DeskSettings { window: Some(Tokens(1_000_000)), ..settings(&ground) }).unwrap();
        let named = |mut incoming: Incoming| {
            incoming.headers.insert("x-session-id", "s-1".parse().unwrap());
            incoming
        };
        // Without usage: both are counted alike.
        (0..30).for_each(|n| drop(sent(&desk, &named(step(api, n)))));
        let whole = sent(&desk, &named(step(api, 30))).full;
        let mut messages = conversation(api, 31);
        drop(messages.drain(1..19));
        let dropped = named(incoming(api, &body_of(api, model(api), &messages, true)));
        let call = sent(&desk, &dropped);
        assert_eq!(call.how, How::Extends, "{api:?}");
        // As much as a conversation that has never had more.
        let other = Ground::sqlite();
        let alone = sent(&self::desk(&other), &dropped).full;
        assert!(call.full < Tokens(whole.0 * 9 / 10), "{api:?} {} of {whole}", call.full);
        assert!(call.full.0.abs_diff(alone.0) * 100 <= alone.0, "{api:?} {} and {alone}", call.full);
        let session = call.session;
        desk.answered(call, None);
        let stored = ground.open().load(session).unwrap().entries;
        let sent_last = stored.iter().rev().find_map(|entry| match entry {
            longhaul::session::journal::Entry::Sent(sent) => Some(*sent),
            _ => None,
        });
        let counted = sent_last.unwrap().whole;
        assert!(counted.0.abs_diff(alone.0) * 100 <= alone.0, "{api:?} {counted} and {alone}");
        // It sends all again: that counts again.
        assert!(sent(&desk, &named(step(api, 32))).full > whole, "{api:?}");
    }
}

/// A model that takes its time.
struct Slow(Scripted);

impl Model for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_millis(60)).await;
            self.0.ask(request, watch).await
        })
    }
}

fn summarised_by(ground: &Ground, replies: Vec<Result<Message, Fault>>) -> Desk {
    let model = Arc::new(Slow(Scripted::new(replies)));
    let summaries = SummaryModel { model, frame: Frame::default(), window: Tokens(100_000) };
    Desk::open(DeskSettings { summaries: Some(summaries), ..settings(ground) }).unwrap()
}

#[test]
fn a_model_writes_summaries_while_requests_go_on() {
    for api in APIS {
        let ground = Ground::sqlite();
        let reply = |n: usize| Ok(Message::assistant(format!("Written by the model: part {n}.")));
        let desk = summarised_by(&ground, (0..50).map(reply).collect());
        let mut summarised = 0;
        for n in 0..STEPS {
            let body = asked(&desk, &step(api, n));
            // A request that waits for a summary goes out with one that code wrote.
            summarised += usize::from(body.windows(20).any(|text| text == b"Written by the model"));
            assert!(sent(&desk, &step(api, n)).view <= Tokens(12_000));
            // The agent does something, and the model writes meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        assert!(summarised > 5, "{api:?}: {summarised} requests with a summary by the model");
    }
}

#[test]
fn a_model_that_fails_holds_nothing_up() {
    let ground = Ground::sqlite();
    let desk = summarised_by(&ground, Vec::new());
    for n in 0..STEPS {
        let call = sent(&desk, &step(Api::Chat, n));
        assert!(call.view <= Tokens(12_000), "{n} {call:?}");
        let body = bytes(&call, &step(Api::Chat, n));
        desk.answered(call, Some(&usage(&body)));
    }
}
