//! Faults of the provider in a conversation that the desk keeps, with edits in it: the client sees what it would see
//! without a gateway, or better. And what is said of tokens is what was billed.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
mod common;

use std::time::Duration;

use clients::{APIS, body_of, conversation, model};
use common::{End, LONG, SHORT, ask, settings, url};
use longhaul::Tokens;
use longhaul_fake::{Answer, Close, Counts, Fake, RetryAfter, Settings as Script, Trouble};
use longhaul_gateway::{Gateway, start};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

/// Steps of the conversation in which the trouble is met: enough for edits in this window.
const STEPS: usize = 24;
const WINDOW: u64 = 12_000;

fn script() -> Script {
    scripted(|answer| answer)
}

/// The same whatever is sent: the provider counts less of what a gateway sends.
fn of_one_price() -> Script {
    scripted(|answer| answer.usage(Counts { prompt: 6_000, cached: 5_000, written: 500, output: 40 }))
}

fn scripted(with: fn(Answer) -> Answer) -> Script {
    let call =
        Answer::new().thinking("Which file? 中文").text("Let me see.").call("Read", json!({"path": "a"}));
    Script::new().answers((0..400).map(|_| with(call.clone()))).piece(5)
}

fn step(api: Api, n: usize, stream: bool) -> Value {
    let mut body = body_of(api, model(api), &conversation(api, n), true);
    body["stream"] = stream.into();
    if api == Api::Chat && stream {
        // A client that asks for usage gets it; what happens to others is tested elsewhere.
        body["stream_options"] = json!({ "include_usage": true });
    }
    body
}

async fn gateway(fake: &Fake, folder: &tempfile::TempDir) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = Some(Tokens(WINDOW));
    start(settings).await.unwrap()
}

#[tokio::test]
async fn a_client_sees_no_other_fault_than_without_a_gateway() {
    let millis = Duration::from_millis;
    let troubles = [
        Trouble::Limited(RetryAfter::Seconds(7)),
        Trouble::Status(400),
        Trouble::Status(401),
        Trouble::Status(404),
        Trouble::Status(500),
        Trouble::Status(503),
        Trouble::Status(529),
        Trouble::Slow { first: millis(20), between: millis(1) },
        Trouble::Hang,
        Trouble::HangAfter(4),
        Trouble::Cut { after: 0, close: Close::Fin },
        Trouble::Cut { after: 5, close: Close::Fin },
        Trouble::ErrorEvent { after: 2 },
        Trouble::BrokenJson { after: 2 },
        Trouble::Html,
        Trouble::ArgumentsCut,
        Trouble::Split(3),
        Trouble::CrLf,
        Trouble::StaysOpen,
        // The last: the window is taken for smaller from then on.
        Trouble::Status(413),
    ];
    let mut kinds = tokio::task::JoinSet::new();
    for (api, stream) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        let troubles = troubles.clone();
        kinds.spawn(async move {
            let (alone, behind) = (script().start().await, script().start().await);
            let folder = tempfile::tempdir().unwrap();
            let gateway = gateway(&behind, &folder).await;
            for n in 0..=STEPS {
                ask(&url(&gateway), api, &step(api, n, stream), LONG).await;
            }
            for (at, trouble) in troubles.into_iter().enumerate() {
                let wait = match trouble {
                    Trouble::Hang | Trouble::HangAfter(_) | Trouble::StaysOpen => SHORT,
                    _ => LONG,
                };
                let settings = of_one_price().trouble(1.., trouble.clone());
                alone.restart(settings.clone()).await;
                behind.restart(settings).await;
                let body = step(api, STEPS + 1 + at, stream);
                let direct = ask(&alone.base_url(), api, &body, wait).await;
                let through = ask(&url(&gateway), api, &body, wait).await;
                let says = through.header("x-longhaul").map(str::to_owned);
                assert!(
                    says.as_ref().is_none_or(|says| says.starts_with("extends; ")),
                    "{trouble:?} {says:?}"
                );
                if !stream && direct.end == End::Silent {
                    // An answer that comes whole is held until it is there.
                    assert_eq!(through.end, End::Silent, "{trouble:?} {api:?}");
                    continue;
                }
                assert_eq!(through.without_ours(), direct, "{trouble:?} {api:?} {stream}");
                // The other form of a refused request may be one that this provider refuses too.
                if trouble != Trouble::Status(400) {
                    assert_eq!(behind.violations(), [""; 0], "{trouble:?} {api:?}");
                }
                // The provider was asked once: a fault is the client's to deal with. But for a request that is too large a
                // smaller one is tried, and for one that is refused another form.
                let most = match trouble {
                    Trouble::Status(413) => 3,
                    Trouble::Status(400) => 2,
                    _ => 1,
                };
                assert!((1..=most).contains(&behind.log().len()), "{trouble:?} {api:?}");
            }
            gateway.stop().await;
        });
    }
    kinds.join_all().await;
}

#[tokio::test]
async fn a_refused_answer_is_asked_for_shorter_and_nothing_is_folded() {
    let says = "input length and `max_tokens` exceed context limit: 3000 + 198000 > 200000, decrease input length or `max_tokens` and try again";
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": says } });
    let trouble = Trouble::Response { status: 400, headers: Vec::new(), body: body.to_string() };
    let script = script().trouble(4..=4, trouble);
    let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
    let mut settings = settings(&fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = Some(Tokens(200_000));
    let gateway = start(settings).await.unwrap();
    for n in 0..8 {
        let mut body = step(Api::Anthropic, n, false);
        body["max_tokens"] = 198_000.into();
        let seen = ask(&url(&gateway), Api::Anthropic, &body, LONG).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean), "{n}");
    }
    let log = fake.log();
    let asked: Vec<u64> = log.iter().map(|call| call.body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(asked[..4], [198_000; 4]);
    assert!(asked[4..].iter().all(|most| (150_000..198_000).contains(most)), "{asked:?}");
    // All else of the request is as the client sent it.
    let mut same = log[4].body.clone();
    same["max_tokens"] = 198_000.into();
    assert_eq!(same, log[3].body);
    assert_eq!(gateway.figures().resent["too-long"], 1);
    gateway.stop().await;

    // Another gateway on the same store asks for less at once, in another conversation: of this model and this upstream.
    let fresh = |model: &str, upstream: &Fake| {
        let mut body = step(Api::Anthropic, 0, false);
        body["model"] = model.into();
        body["max_tokens"] = 199_000.into();
        body["messages"][0]["content"] = format!("Is there a bug in {}?", upstream.base_url()).into();
        body
    };
    let known = model(Api::Anthropic);
    let elsewhere = self::script().start().await;
    for (upstream, name, lowered) in
        [(&fake, known, true), (&fake, "another-model", false), (&elsewhere, known, false)]
    {
        let mut settings = self::settings(upstream);
        settings.desk.store = folder.path().join("sessions.db").display().to_string();
        settings.desk.window = Some(Tokens(200_000));
        let gateway = start(settings).await.unwrap();
        let seen = ask(&url(&gateway), Api::Anthropic, &fresh(name, upstream), LONG).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean), "{name}");
        let asked = upstream.log().last().unwrap().body["max_tokens"].as_u64().unwrap();
        assert_eq!(asked < 199_000, lowered, "{name}: {asked}");
        let says = seen.header("x-longhaul").unwrap();
        assert_eq!(says.ends_with(&format!("; max_tokens={asked}")), lowered, "{name}: {says}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn every_overflow_is_hidden_in_every_kind_of_request() {
    for (api, stream) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        let trouble = Trouble::TooLong { prompt: 9_000, window: 7_000 };
        let script = script().trouble(20..=20, trouble);
        let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder).await;
        for n in 0..25 {
            let seen = ask(&url(&gateway), api, &step(api, n, stream), LONG).await;
            assert_eq!((seen.status, seen.end), (200, End::Clean), "{api:?} {stream} {n}");
            let says = String::from_utf8_lossy(&seen.body).into_owned();
            assert!(
                !says.contains("too long") && !says.contains("context_length"),
                "{api:?} {stream} {n}: {says}"
            );
        }
        assert_eq!((fake.log().len(), gateway.figures().resent["too-long"]), (26, 1), "{api:?} {stream}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn what_is_said_of_tokens_is_what_was_billed() {
    for api in APIS {
        let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder).await;
        let (mut whole, mut view) = (0, 0);
        for n in 0..=STEPS {
            let seen = ask(&url(&gateway), api, &step(api, n, true), LONG).await;
            let says = seen.header("x-longhaul").unwrap().to_owned();
            let number = |name: &str| -> u64 {
                let value = says.split("; ").find_map(|part| part.strip_prefix(name)).unwrap();
                value.trim_start_matches('=').parse().unwrap()
            };
            whole += number("full");
            view += number("view");
        }
        // A side request is said, and is no call; what it cost is billed all the same.
        let mut title = body_of(api, model(api), &conversation(api, 0), false);
        title["stream"] = false.into();
        let seen = ask(&url(&gateway), api, &title, LONG).await;
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=side"), "{api:?}");
        let figures = gateway.figures();
        let calls = fake.log();
        let billed = |count: fn(&longhaul_fake::Call) -> u64| calls.iter().map(count).sum::<u64>();
        assert_eq!(figures.cache_read, billed(|call| call.counts.cached), "{api:?}");
        assert_eq!(figures.output, billed(|call| call.counts.output), "{api:?}");
        let prompts = billed(|call| call.counts.prompt);
        assert_eq!(figures.prompt(), prompts, "{api:?}");
        assert_eq!(figures.saved, whole - view, "{api:?}");
        assert_eq!(figures.calls, STEPS as u64 + 1);
        gateway.stop().await;
    }
}
