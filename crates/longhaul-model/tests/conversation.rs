//! A session, a provider and the fake through several compactions: nothing that a provider refuses is
//! sent, and the prompt cache has a use.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use longhaul::{Frame, Message, Models, Prepared, Profile, Session, Tokens, ToolCall};
use longhaul_fake::{Answer, AtEnd, Fake, Settings};
use longhaul_model::{Fault, Model, Provider, Retry};
use longhaul_wire::api::{Api, Request};
use serde_json::json;

/// So many steps are in the script.
const STEPS: usize = 120;

fn frame(api: Api) -> Frame {
    let schema = json!({"type":"object","properties":{"path":{"type":"string"}}});
    let body = match api {
        Api::Chat => json!({
            "model":"gpt-4o","messages":[],
            "tools":[{"type":"function","function":{"name":"Read","description":"Reads a file.","parameters":schema}}],
        }),
        Api::Responses => json!({
            "model":"gpt-4o","input":[],"instructions":"You mend parsers.",
            "tools":[{"type":"function","name":"Read","description":"Reads a file.","parameters":schema}],
        }),
        Api::Anthropic => json!({
            "model":"claude-sonnet-4-5","messages":[],"system":"You mend parsers.","max_tokens":500,
            "tools":[{"name":"Read","description":"Reads a file.","input_schema":schema}],
        }),
    };
    Request::decode(api, body.to_string()).unwrap().frame().clone()
}

fn session(api: Api, window: u64) -> Session {
    let name = if api == Api::Anthropic { "claude-sonnet-4-5" } else { "gpt-4o" };
    let model = Models::builtin().find(name).clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(window));
    session.set_frame(frame(api));
    session.push(Message::user("Read all files and tell me which one defines `main`."));
    session
}

/// Asks for one file after the other.
fn script() -> Settings {
    let step = |n: usize| {
        Answer::new()
            .thinking(&format!("Now file {n}."))
            .text(&format!("I read file {n}."))
            .call("Read", json!({ "path": format!("src/file_{n}.rs") }))
    };
    Settings::new().answers((0..STEPS).map(step)).at_end(AtEnd::Error)
}

fn run_tool(call: &ToolCall) -> String {
    format!("// {}\nfn helper(value: u32) -> u32 {{ value }}\n", call.arguments.as_str()).repeat(20)
}

/// What happened on the way to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    compacted: bool,
    refused: bool,
}

/// One answer and the results of its calls.
async fn step(session: &mut Session, provider: &Provider, api: Api) -> Step {
    let mut step = Step { compacted: false, refused: false };
    loop {
        let before = session.ledger().edits().count();
        let Prepared::Send(ticket) = session.prepare(None).unwrap() else { panic!("a summary is asked for") };
        step.compacted |= session.ledger().edits().count() > before;
        let reply = match provider.ask(Request::of(&session.outgoing()), &mut |_| {}).await {
            Ok(reply) => reply,
            Err(Fault::TooLong { overflow, .. }) => {
                session.overflowed(ticket, overflow);
                step.refused = true;
                continue;
            }
            Err(fault) => panic!("{api:?}: {fault}"),
        };
        session.observe(ticket, &reply.usage.expect("the fake reports usage"));
        reply.messages.iter().for_each(|message| {
            session.push(message.clone());
        });
        for call in reply.messages.iter().flat_map(|message| message.calls()) {
            session.push(Message::result(call.id.clone(), run_tool(call)));
        }
        return step;
    }
}

/// Goes on until so many compactions are behind it; gives the steps.
async fn converse(
    session: &mut Session,
    fake: &Fake,
    api: Api,
    streams: bool,
    compactions: usize,
) -> Vec<Step> {
    let retry = Retry { attempts: 1, first: Duration::ZERO, longest: Duration::ZERO };
    let provider = Provider::new(api, &fake.base_url(), None).unwrap().with_retry(retry);
    let provider = if streams { provider } else { provider.without_streams() };
    let mut steps: Vec<Step> = Vec::new();
    while steps.iter().filter(|step| step.compacted).count() < compactions {
        assert!(steps.len() < STEPS, "{api:?}: {steps:?}");
        steps.push(step(session, &provider, api).await);
    }
    // The first request behind a compaction and the next ones.
    for _ in 0..3 {
        steps.push(step(session, &provider, api).await);
    }
    steps
}

#[tokio::test]
async fn three_compactions_and_nothing_to_refuse() {
    for (api, streams) in Api::ALL.into_iter().flat_map(|api| [(api, true), (api, false)]) {
        let fake = script().start().await;
        let mut session = session(api, 8_000);
        let steps = converse(&mut session, &fake, api, streams, 3).await;
        let log = fake.log();
        assert_eq!(fake.violations(), [] as [&str; 0]);
        assert_eq!(log.len(), steps.len());
        for (at, call) in log.iter().enumerate() {
            assert_eq!((call.status, call.streamed), (200, streams));
            assert!(call.marks <= 4 && (call.marks > 0) == (api == Api::Anthropic), "{api:?} {}", call.marks);
            let share = call.counts.cached as f64 / call.counts.prompt as f64;
            assert_eq!(share > 0.0, at > 0, "{api:?}, call {}: {share}", call.number);
            if at > 0 && !steps[at].compacted {
                // What was sent before is read, and it is more each time.
                let before = log[at - 1].counts;
                assert!(call.counts.cached > before.cached, "{api:?}, call {}", call.number);
                assert!(call.counts.cached + 20 >= before.prompt, "{api:?}, call {}", call.number);
            }
        }
    }
}

#[tokio::test]
async fn a_window_that_is_smaller_than_was_thought_is_learnt() {
    for (api, streams) in Api::ALL.into_iter().flat_map(|api| [(api, true), (api, false)]) {
        let fake = script().window(6_000).start().await;
        let mut session = session(api, 30_000);
        let steps = converse(&mut session, &fake, api, streams, 3).await;
        assert_eq!(fake.violations(), [] as [&str; 0]);
        assert!(steps.iter().any(|step| step.refused && step.compacted), "{api:?}: {steps:?}");
        assert_eq!(session.budget().window, Tokens(6_000), "{api:?}");
    }
}

/// A frame that says nothing but the model's name, and messages of no API or of the API itself.
#[tokio::test]
async fn what_a_provider_needs_is_in_every_request() {
    for (api, streams) in Api::ALL.into_iter().flat_map(|api| [(api, true), (api, false)]) {
        let fake = script().start().await;
        let frame =
            json!({"model":"m","stream":"nonsense","stream_options":{"include_usage":false},"store":true});
        let frame = Frame::from_json(&longhaul::Json::from(&frame)).unwrap();
        let provider = Provider::new(api, &fake.base_url(), None).unwrap();
        let provider = if streams { provider } else { provider.without_streams() };
        let mut messages = vec![std::sync::Arc::new(Message::user("Hi"))];
        for _ in 0..2 {
            let request = Request::new(frame.clone(), messages.clone());
            let reply = provider.ask(request, &mut |_| {}).await.unwrap();
            assert!(reply.usage.is_some(), "{api:?}");
            let calls: Vec<_> = reply.messages.iter().flat_map(|message| message.calls()).collect();
            let results = calls.iter().map(|call| Message::result(call.id.clone(), "nothing").into());
            messages.extend(reply.messages.iter().cloned().chain(results));
        }
        for call in fake.log() {
            let body = &call.body;
            assert_eq!(body["stream"], streams, "{api:?}");
            match api {
                Api::Chat => assert_eq!(body["stream_options"]["include_usage"] == true, streams),
                Api::Responses => {
                    assert_eq!(body["store"], false);
                    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
                }
                Api::Anthropic => assert_eq!(body["max_tokens"], 8_192),
            }
            assert!(streams || body.get("stream_options").is_none(), "{api:?}");
        }
    }
}

#[tokio::test]
async fn sealed_thinking_is_sent_back() {
    for (api, streams) in
        [(Api::Responses, true), (Api::Responses, false), (Api::Anthropic, true), (Api::Anthropic, false)]
    {
        let fake =
            Settings::new().answer(Answer::new().sealed_thinking("c2VhbGVk").text("Yes.")).start().await;
        let provider = Provider::new(api, &fake.base_url(), None).unwrap();
        let provider = if streams { provider } else { provider.without_streams() };
        let mut session = session(api, 8_000);
        for _ in 0..2 {
            step(&mut session, &provider, api).await;
        }
        assert_eq!(fake.violations(), [] as [&str; 0]);
        assert!(fake.log()[1].body.to_string().contains("c2VhbGVk"), "{api:?}");
    }
}
