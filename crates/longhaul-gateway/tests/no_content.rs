//! A gateway that stores nothing that anybody says: every byte that it wrote is searched for every word.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use common::{Dice, Ground};
use http::{HeaderMap, HeaderValue};
use longhaul::{Frame, Message, Profile, RecallPart, Tokens, Usage};
use longhaul_gateway::{
    Action, Call, CalledTool, Decision, Desk, DeskSettings, How, Incoming, SummaryModel, ToolCaller,
};
use longhaul_model::{Fault, Scripted};
use longhaul_store::{Filter, Form, Keeper, Patience, Store, StoreError};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

on_each_store!(nothing_that_was_said_is_stored, a_store_with_content_gets_no_more_of_it);

/// Words that nobody else says, and all that were said.
struct Said {
    dice: Dice,
    words: BTreeSet<String>,
}

impl Said {
    fn text(&mut self, words: usize) -> String {
        let word =
            |dice: &mut Dice| (0..10).map(|_| char::from(b'a' + dice.roll(26) as u8)).collect::<String>();
        let all: Vec<String> = (0..words).map(|_| word(&mut self.dice)).collect();
        self.words.extend(all.iter().cloned());
        all.join(" ")
    }
}

/// A conversation of an agent that grows by a step at a time.
struct Talk {
    api: Api,
    body: Value,
    steps: usize,
}

impl Talk {
    fn new(api: Api, said: &mut Said) -> Self {
        let schema = json!({"type": "object", "description": said.text(3), "properties": {}});
        let (name, about, rules, asked) = (said.text(1), said.text(5), said.text(20), said.text(8));
        let body = match api {
            Api::Anthropic => json!({"model": "claude-sonnet-4-5", "max_tokens": 1_000, "system": rules,
                "tools": [{"name": name, "description": about, "input_schema": schema}],
                "metadata": {"user_id": said.text(1)},
                "messages": [{"role": "user", "content": asked}]}),
            Api::Chat | Api::Responses => json!({"model": "gpt-4o",
                "tools": [{"type": "function", "function": {"name": name, "description": about, "parameters": schema}}],
                "messages": [{"role": "system", "content": rules}, {"role": "user", "content": asked}]}),
        };
        Self { api, body, steps: 0 }
    }

    fn step(&mut self, said: &mut Said) {
        let (id, tool) = (format!("call_{}", self.steps), said.text(1));
        let (words, arguments) = (said.text(5), json!({ "path": said.text(1) }));
        let result: String = (0..30).map(|_| said.text(6) + "\n").collect();
        let messages = self.body["messages"].as_array_mut().unwrap();
        match self.api {
            Api::Anthropic => {
                let call = json!({"type": "tool_use", "id": id, "name": tool, "input": arguments});
                messages
                    .push(json!({"role": "assistant", "content": [{"type": "text", "text": words}, call]}));
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": result});
                messages.push(json!({"role": "user", "content": [result]}));
            }
            Api::Chat | Api::Responses => {
                let function = json!({"name": tool, "arguments": arguments.to_string()});
                let call = json!({"id": id, "type": "function", "function": function});
                messages.push(json!({"role": "assistant", "content": words, "tool_calls": [call]}));
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
        }
        self.steps += 1;
        if self.steps.is_multiple_of(8) {
            messages.push(json!({"role": "assistant", "content": said.text(6)}));
            messages.push(json!({"role": "user", "content": said.text(6)}));
        }
    }

    fn incoming(&self) -> Incoming {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", HeaderValue::from_static("claude-cli/2.1"));
        headers.insert("x-session-id", HeaderValue::from_static(self.api.name()));
        Incoming {
            tenant: "".into(),
            api: self.api,
            upstream: "".into(),
            headers,
            account: None,
            body: self.body.to_string().into(),
        }
    }
}

fn sent(desk: &Desk, incoming: &Incoming) -> Call {
    match desk.decide(incoming) {
        Decision::Send(call) => call,
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

/// Asks, tells the desk what it cost, and gives what was sent.
fn asked(desk: &Desk, incoming: &Incoming) -> (How, usize, String) {
    let call = sent(desk, incoming);
    let (how, edits) = (call.how, call.edits);
    let body = call.body.clone().unwrap_or_else(|| Bytes::from_owner(incoming.body.clone()));
    let usage = Usage { input: body.len() as u64 / 4, output: 40, ..Usage::default() };
    desk.answered(call, Some(&usage));
    (how, edits, String::from_utf8(body.to_vec()).unwrap())
}

/// A word that the model says in every summary.
const BY_MODEL: &str = "summarised";

fn settings(ground: &Ground, without_content: bool, said: &mut Said) -> DeskSettings {
    said.words.insert(BY_MODEL.to_owned());
    let replies: Vec<Result<Message, Fault>> =
        (0..500).map(|_| Ok(Message::assistant(format!("{BY_MODEL} {}", said.text(30))))).collect();
    let summaries = SummaryModel {
        model: Arc::new(Scripted::new(replies)),
        frame: Frame::default(),
        window: Tokens(100_000),
    };
    DeskSettings {
        window: Some(Tokens(20_000)),
        without_content,
        summaries: Some(summaries),
        // A slow machine is no reason to go on without the store.
        patience: Patience::Long,
        ..DeskSettings::new(ground.place.clone())
    }
}

/// All that a store gives back, as text.
fn given_back(store: &dyn Store) -> String {
    let all = store.list(&Filter::default(), 1_000).unwrap();
    let loaded = all.iter().map(|meta| store.load(meta.id).unwrap());
    loaded
        .map(|stored| format!("{:?} {}", stored.meta, serde_json::to_string(&stored.entries).unwrap()))
        .collect()
}

/// The words that are somewhere in these bytes.
fn found<'a>(words: &'a BTreeSet<String>, bytes: &[u8]) -> Vec<&'a str> {
    // All words have ten letters: looking at each place once is enough.
    let places: std::collections::HashSet<&[u8]> = bytes.windows(10).collect();
    words.iter().map(String::as_str).filter(|word| places.contains(word.as_bytes())).collect()
}

/// A long conversation with folds, pins, a goal, a fork and summaries by a model.
fn talk(desk: &Desk, api: Api, said: &mut Said) -> Talk {
    let mut talk = Talk::new(api, said);
    let (mut by_model, mut edits) = (0, 0);
    for n in 0..60 {
        let (how, standing, body) = asked(desk, &talk.incoming());
        assert_eq!(how, if n == 0 { How::New } else { How::Extends }, "{api:?} {n}");
        edits = edits.max(standing);
        by_model += usize::from(body.contains(BY_MODEL));
        if n == 10 {
            let caller = ToolCaller::of("".into(), &talk.incoming().headers);
            let call = CalledTool::new("pin", json!({}));
            desk.act(&caller, &call, &Action::Pin(said.text(5))).unwrap();
            desk.act(&caller, &call, &Action::Goal(said.text(5))).unwrap();
        }
        talk.step(said);
        // Summaries are written beside the requests: there is time for them.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(
        edits > 1 && by_model > 0,
        "{api:?}: {edits} edits, {by_model} requests with a summary by the model"
    );
    // Another model goes another way.
    let mut other = talk.incoming();
    let body =
        talk.body.to_string().replace("claude-sonnet-4-5", "claude-haiku-4-5").replace("gpt-4o", "gpt-4.1");
    other.body = body.into();
    assert_eq!(asked(desk, &other).0, How::Forks);
    talk
}

fn nothing_that_was_said_is_stored(ground: &Ground) {
    let mut said = Said { dice: Dice(11), words: BTreeSet::new() };
    let settings = settings(ground, true, &mut said);
    let desk = Desk::open(settings.clone()).unwrap();
    let mut talks = [Api::Anthropic, Api::Chat].map(|api| talk(&desk, api, &mut said));
    // What is live is recalled from memory.
    let (_, _, body) = asked(&desk, &talks[1].incoming());
    let handle = body.split("recall ").nth(1).unwrap()[..12].to_owned();
    assert!(!desk.recall("", &handle, &RecallPart::Whole).unwrap().is_empty());
    drop(desk);

    assert!(said.words.len() > 30_000);
    let store = ground.open();
    let search = said.words.iter().next().unwrap();
    assert!(store.search(search, &Filter::default(), 9).unwrap().is_empty());
    assert_eq!(found(&said.words, &ground.bytes()), Vec::<&str>::new());
    assert_eq!(found(&said.words, given_back(&*store).as_bytes()), Vec::<&str>::new());
    // What happened and what it cost is there.
    let sessions = store.list(&Filter::default(), 100).unwrap();
    assert_eq!(sessions.len(), 4);
    for meta in &sessions {
        assert!(meta.without_content && meta.title.is_empty() && meta.calls > 0, "{meta:?}");
        assert_eq!(meta.agent, "claude-cli");
        let entries = serde_json::to_string(&store.load(meta.id).unwrap().entries).unwrap();
        for kind in ["\"sent\":", "\"edit\":\"fold\"", "\"why\":", "\"price\":", "\"usage\":"] {
            assert!(entries.contains(kind), "{kind} of {}", meta.model);
        }
        // It is said in one sentence.
        let opened = Keeper::open(store.clone(), meta.id, Profile::longhaul()).map(drop);
        assert!(matches!(opened, Err(StoreError::NoContent(_))), "{opened:?}");
        let exported = store.export(meta.id, Form::Journal, &mut Vec::new());
        assert!(matches!(exported, Err(StoreError::NoContent(_))), "{exported:?}");
    }
    // After a restart it begins anew, and goes on from there.
    let desk = Desk::open(settings).unwrap();
    for talk in &mut talks {
        assert_eq!(asked(&desk, &talk.incoming()).0, How::New);
        assert_eq!(sent(&desk, &talk.incoming()).how, How::Retry);
        talk.step(&mut said);
        assert_eq!(asked(&desk, &talk.incoming()).0, How::Extends);
    }
    drop(desk);
    assert_eq!(found(&said.words, given_back(&*store).as_bytes()), Vec::<&str>::new());
    ground.check();
}

/// Conversations that were stored whole are not gone on with: their next words would be stored too.
fn a_store_with_content_gets_no_more_of_it(ground: &Ground) {
    let mut said = Said { dice: Dice(12), words: BTreeSet::new() };
    let with = Desk::open(settings(ground, false, &mut said)).unwrap();
    let mut talked = talk(&with, Api::Anthropic, &mut said);
    drop(with);
    let store = ground.open();
    // The test can fail: what is stored with content is found.
    assert!(found(&said.words, given_back(&*store).as_bytes()).len() > 10_000);
    let mut new = Said { dice: Dice(13), words: BTreeSet::new() };
    let without = Desk::open(settings(ground, true, &mut new)).unwrap();
    (0..5).for_each(|_| talked.step(&mut new));
    assert_eq!(asked(&without, &talked.incoming()).0, How::New);
    drop(without);
    assert_eq!(found(&new.words, given_back(&*store).as_bytes()), Vec::<&str>::new());
    // And those without content do not come back where content is stored.
    let with = Desk::open(settings(ground, false, &mut new)).unwrap();
    let (how, ..) = asked(&with, &talked.incoming());
    assert_eq!(how, How::Extends);
}
