//! Calls of known conversations: what goes out is the desk's, what comes back is the provider's, an overflow
//! is hidden where it can be, and the desk hears once of each call.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{APIS, End, LONG, SHORT, Scripted, ask, body, client, path, see, settings, until, url};
use longhaul::{Overflow, Tokens};
use longhaul_fake::{Answer, Close, Counts, Settings, Trouble};
use longhaul_gateway::{Gateway, start_with};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

fn script() -> Settings {
    let counts = Counts { prompt: 100, cached: 60, written: 0, output: 7 };
    let answer = |text: &str| Answer::new().text(text).usage(counts);
    Settings::new().answers([answer("It is src/main.rs."), answer("Again.")])
}

async fn scripted(fake: &longhaul_fake::Fake, desk: Scripted) -> (Gateway, Arc<Scripted>) {
    let desk = Arc::new(desk);
    (start_with(settings(fake), desk.clone()).await.unwrap(), desk)
}

/// A body with this word in it.
fn edited(api: Api, stream: bool, word: &str) -> Value {
    let mut body = body(api, stream);
    body["metadata"] = json!({ "word": word });
    body
}

fn bytes(body: &Value) -> Bytes {
    body.to_string().into()
}

fn word(call: &longhaul_fake::Call) -> String {
    call.body["metadata"]["word"].as_str().unwrap_or("none").to_owned()
}

#[tokio::test]
async fn the_desks_body_goes_out_and_usage_comes_back_once() {
    for api in APIS {
        for stream in [false, true] {
            let (fake, alone) = (script().start().await, script().start().await);
            let smaller = edited(api, stream, "small");
            let desk = Scripted { body: Some(bytes(&smaller)), ..Scripted::default() };
            let (gateway, desk) = scripted(&fake, desk).await;
            let seen = ask(&url(&gateway), api, &edited(api, stream, "large"), LONG).await;
            assert_eq!(fake.log().iter().map(word).collect::<Vec<_>>(), ["small"]);
            assert_eq!(seen.header("x-longhaul"), Some("extends; view=27682; full=102513; edits=9"));
            until(|| !desk.told.lock().unwrap().is_empty()).await;
            let told = desk.told.lock().unwrap().clone();
            assert_eq!(seen.header("x-longhaul-session"), Some(told[0].0.to_string().as_str()));
            let usage = told[0].1.as_ref().unwrap();
            assert_eq!((usage.prompt().0, usage.cache_read, usage.output), (100, 60, 7), "{api:?} {stream}");
            if api != Api::Chat {
                let direct = ask(&alone.base_url(), api, &smaller, LONG).await;
                assert_eq!(seen.without_ours(), direct);
            }
            let figures = gateway.figures();
            assert_eq!((figures.calls, figures.saved, figures.uncached), (1, 102_513 - 27_682, 0));
            assert_eq!((figures.prompt(), figures.cache_read, figures.output), (100, 60, 7));
            gateway.stop().await;
            assert_eq!(desk.told.lock().unwrap().len(), 1);
        }
    }
}

#[tokio::test]
async fn the_clients_own_bytes_go_out_if_the_desk_has_none() {
    // Spaces, an order of its own and numbers that nobody would write again.
    let text = "{ \"max_tokens\" :1e2,\n \"model\":\"m\",\"messages\":[{\"content\":\"\\u0041\",\"role\":\"user\"}] }";
    let (seen, request) = one_request(text, Scripted::default(), "/v1/messages", &[]).await;
    assert_eq!(seen.status, 200);
    let (head, sent) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(sent, text);
    assert!(head.contains(&format!("content-length: {}", text.len())), "{head}");
    assert!(head.contains("accept-encoding: identity"), "{head}");
}

/// What a provider gets, byte for byte, when one request comes.
async fn one_request(
    text: &str,
    desk: Scripted,
    path: &str,
    headers: &[(&str, &str)],
) -> (common::Seen, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let provider = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut got, mut piece) = (Vec::new(), [0; 4_096]);
        loop {
            let read = stream.read(&mut piece).await.unwrap();
            got.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&got).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.is_some_and(|length| body.len() >= length.parse().unwrap()) {
                break;
            }
        }
        let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&got).into_owned()
    });
    let fake = script().start().await;
    let settings = longhaul_gateway::Settings { anthropic: base.clone(), openai: base, ..settings(&fake) };
    let gateway = start_with(settings, Arc::new(desk)).await.unwrap();
    let request = client().post(url(&gateway) + path).body(text.to_owned());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let seen = see(request, LONG).await;
    (seen, provider.await.unwrap())
}

#[tokio::test]
async fn keys_are_forwarded_and_what_is_ours_is_not() {
    let headers = [
        ("authorization", "Bearer sk-123"),
        ("x-api-key", "sk-456"),
        ("x-longhaul", "on"),
        ("x-longhaul-token", "T"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("te", "trailers"),
        ("anthropic-beta", "a,b"),
    ];
    let desk = Scripted::default();
    let (_, request) = one_request("{}", desk, "/v1/messages?beta=true", &headers).await;
    assert!(request.starts_with("POST /v1/messages?beta=true HTTP/1.1\r\n"), "{request}");
    for kept in ["authorization: Bearer sk-123", "x-api-key: sk-456", "anthropic-beta: a,b"] {
        assert!(request.contains(kept), "{kept} in {request}");
    }
    for dropped in ["x-longhaul", "x-hop", "te: ", "transfer-encoding"] {
        assert!(!request.contains(dropped), "{dropped} in {request}");
    }
}

#[tokio::test]
async fn the_desk_sees_no_keys() {
    let fake = script().start().await;
    let (gateway, desk) = scripted(&fake, Scripted::default()).await;
    let request = client().post(url(&gateway) + "/v1/messages").header("x-api-key", "sk-456");
    let request = request.header("authorization", "Bearer sk-123").header("x-session-id", "s1");
    see(request.body(body(Api::Anthropic, false).to_string()), LONG).await;
    let seen = desk.seen.lock().unwrap();
    assert_eq!(seen[0].headers["x-session-id"], "s1");
    assert!(!format!("{:?}", seen[0].headers).contains("sk-"));
    assert_eq!(&*seen[0].tenant, "");
}

/// What is passed on stays compressed; of a call we read what it costs, so that it is not.
#[tokio::test]
async fn answers_are_compressed_only_if_nobody_reads_them() {
    let settings = || script().trouble(1.., Trouble::Gzip);
    let (alone, fake) = (settings().start().await, settings().start().await);
    let passing = common::passing(&fake).await;
    for api in APIS {
        let at = |base: &str| {
            let request = client().post(format!("{base}{}", path(api))).header("accept-encoding", "gzip, br");
            request.body(body(api, false).to_string())
        };
        let direct = see(at(&alone.base_url()), LONG).await;
        assert_eq!(direct.header("content-encoding"), Some("gzip"));
        assert_eq!(see(at(&url(&passing)), LONG).await.without_ours(), direct, "{api:?}");
        let read = settings().start().await;
        let (gateway, desk) = scripted(&read, Scripted::default()).await;
        let seen = see(at(&url(&gateway)), LONG).await;
        assert_eq!((seen.status, seen.header("content-encoding")), (200, None));
        assert!(seen.text().starts_with('{'));
        gateway.stop().await;
        assert!(desk.told.lock().unwrap()[0].1.is_some());
    }
}

#[tokio::test]
async fn an_overflow_is_hidden_by_a_smaller_request() {
    for api in APIS {
        for stream in [false, true] {
            let trouble = Trouble::TooLong { prompt: 31_920, window: 30_000 };
            let fake = script().trouble(1..=2, trouble).start().await;
            let smaller = ["small", "smaller"].map(|word| bytes(&edited(api, stream, word)));
            let desk = Scripted { smaller: std::sync::Mutex::new(smaller.into()), ..Scripted::default() };
            let (gateway, desk) = scripted(&fake, desk).await;
            let seen = ask(&url(&gateway), api, &edited(api, stream, "large"), LONG).await;
            assert_eq!((seen.status, seen.end), (200, End::Clean), "{api:?} {stream}");
            assert_eq!(fake.log().iter().map(word).collect::<Vec<_>>(), ["large", "small", "smaller"]);
            let overflows = desk.overflows.lock().unwrap().clone();
            assert_eq!(overflows.len(), 2);
            if api != Api::Responses {
                let named =
                    Overflow { prompt: Some(Tokens(31_920)), window: Some(Tokens(30_000)), answer: None };
                assert_eq!(overflows[0], named);
            }
            assert_eq!(gateway.figures().resent["too-long"], 2);
            gateway.stop().await;
            let told = desk.told.lock().unwrap();
            assert_eq!(told.len(), 1);
            assert!(told[0].1.is_some());
        }
    }
}

#[tokio::test]
async fn an_overflow_that_cannot_be_hidden_is_passed_on() {
    for api in APIS {
        for (stream, more) in [(false, 0), (true, 0), (false, 9), (true, 9)] {
            let trouble = Trouble::TooLong { prompt: 31_920, window: 30_000 };
            let (alone, fake) = (script().trouble(1.., trouble.clone()), script().trouble(1.., trouble));
            let (alone, fake) = (alone.start().await, fake.start().await);
            let smaller = vec![bytes(&edited(api, stream, "small")); more];
            let desk = Scripted { smaller: std::sync::Mutex::new(smaller.into()), ..Scripted::default() };
            let (gateway, desk) = scripted(&fake, desk).await;
            let body = edited(api, stream, "large");
            let seen = ask(&url(&gateway), api, &body, LONG).await;
            if more == 0 {
                let direct = ask(&alone.base_url(), api, &body, LONG).await;
                assert_eq!(seen.without_ours(), direct, "{api:?} {stream}");
            } else {
                assert_eq!(seen.status, if api == Api::Responses && stream { 200 } else { 400 });
            }
            assert_eq!(fake.log().len(), 1 + more.min(2));
            gateway.stop().await;
            // Each refusal is one to learn from, the last one too.
            assert_eq!(desk.overflows.lock().unwrap().len(), 1 + more.min(2));
            // A call that was too long is the desk's; the last one was not taken back.
            let told = desk.told.lock().unwrap();
            assert_eq!(
                told.iter().map(|(_, usage)| usage.is_some()).collect::<Vec<_>>(),
                vec![false; more.min(1)]
            );
        }
    }
}

#[tokio::test]
async fn the_desk_hears_once_of_calls_that_fail() {
    let troubles = [
        (Trouble::Close, End::Clean),
        (Trouble::Status(529), End::Clean),
        (Trouble::Html, End::Clean),
        (Trouble::Cut { after: 3, close: Close::Fin }, End::Broken),
        (Trouble::NoClosingEvent, End::Broken),
        (Trouble::ErrorEvent { after: 2 }, End::Clean),
        (Trouble::BrokenJson { after: 2 }, End::Clean),
        (Trouble::HangAfter(3), End::Silent),
        (Trouble::HangAfter(1), End::Silent),
        (Trouble::Hang, End::Silent),
        (Trouble::StaysOpen, End::Silent),
    ];
    let mut kinds = tokio::task::JoinSet::new();
    for api in APIS {
        let troubles = troubles.clone();
        kinds.spawn(async move {
            for (trouble, end) in troubles {
                let fake = script().trouble(1.., trouble.clone()).start().await;
                let (gateway, desk) = scripted(&fake, Scripted::default()).await;
                let wait = if end == End::Silent { SHORT } else { LONG };
                let seen = ask(&url(&gateway), api, &body(api, true), wait).await;
                assert_eq!(seen.end, end, "{api:?} {trouble:?}");
                until(|| desk.told.lock().unwrap().len() == 1).await;
                tokio::time::timeout(LONG, fake.until_idle()).await.expect("the provider is left alone");
                gateway.stop().await;
                let told = desk.told.lock().unwrap();
                assert_eq!(told.len(), 1, "{api:?} {trouble:?}");
                assert!(trouble != Trouble::StaysOpen || told[0].1.is_some(), "{api:?}");
            }
        });
    }
    kinds.join_all().await;
}

#[tokio::test]
async fn nothing_is_held_for_long() {
    for api in APIS {
        // The first event says nothing yet, and then nothing comes.
        let fake = script().trouble(1.., Trouble::HangAfter(1)).start().await;
        let mut settings = settings(&fake);
        settings.limits.hold = Duration::from_millis(50);
        let gateway = start_with(settings, Arc::new(Scripted::default())).await.unwrap();
        let seen = ask(&url(&gateway), api, &body(api, true), Duration::from_secs(1)).await;
        assert_eq!((seen.status, seen.end), (200, End::Silent));
        assert!(!seen.body.is_empty(), "{api:?}");
    }
}

#[tokio::test]
async fn usage_is_asked_for_and_kept_from_clients_that_did_not_ask() {
    let (alone, fake) = (script().start().await, script().start().await);
    let (gateway, desk) = scripted(&fake, Scripted::default()).await;
    let asked = body(Api::Chat, true);
    let seen = ask(&url(&gateway), Api::Chat, &asked, LONG).await;
    assert_eq!(fake.log()[0].body["stream_options"]["include_usage"], true);
    let direct = ask(&alone.base_url(), Api::Chat, &asked, LONG).await;
    // The provider writes into every chunk that it will say it later.
    assert_eq!(seen.text().replace(",\"usage\":null", ""), direct.text());
    until(|| !desk.told.lock().unwrap().is_empty()).await;
    assert!(desk.told.lock().unwrap()[0].1.is_some());

    let mut asked = asked;
    asked["stream_options"] = json!({ "include_usage": true });
    let seen = ask(&url(&gateway), Api::Chat, &asked, LONG).await;
    assert_eq!(fake.log()[1].body, asked);
    assert!(seen.text().contains("\"prompt_tokens\":100"), "{}", seen.text());
}

#[tokio::test]
async fn a_provider_that_does_not_know_the_option_is_not_asked_again() {
    let refusal = Trouble::Response {
        status: 422,
        headers: Vec::new(),
        body: json!({ "detail": [{ "loc": ["body", "stream_options"], "type": "extra_forbidden" }] })
            .to_string(),
    };
    let fake = script().trouble(1..=1, refusal).start().await;
    let (gateway, desk) = scripted(&fake, Scripted::default()).await;
    for _ in 0..2 {
        let seen = ask(&url(&gateway), Api::Chat, &body(Api::Chat, true), LONG).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean));
    }
    let asked: Vec<bool> = fake.log().iter().map(|call| call.body.get("stream_options").is_some()).collect();
    assert_eq!(asked, [true, false, false]);
    gateway.stop().await;
    assert_eq!(desk.told.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_known_conversation_is_counted_here() {
    let fake = script().start().await;
    let (gateway, _) = scripted(&fake, Scripted::default()).await;
    let request = client().post(url(&gateway) + "/v1/messages/count_tokens").body("12345");
    assert_eq!(see(request, LONG).await.text(), "{\"input_tokens\":5}");
}

/// Answers on their way may end when the gateway stops; those that do not end are ended.
#[tokio::test]
async fn a_stop_lets_answers_end_but_not_for_ever() {
    let slow = Trouble::Slow { first: Duration::ZERO, between: Duration::from_millis(30) };
    let fake = script().trouble(1..=1, slow).trouble(2.., Trouble::HangAfter(3)).start().await;
    let (gateway, desk) = scripted(&fake, Scripted::default()).await;
    let at = url(&gateway) + path(Api::Anthropic);
    let request = |at: &str| client().post(at).body(body(Api::Anthropic, true).to_string());
    let mut ends = request(&at).send().await.unwrap();
    let mut hangs = request(&at).send().await.unwrap();
    let stopped = tokio::spawn(gateway.stop());
    let mut read = Vec::new();
    while let Some(piece) = ends.chunk().await.unwrap() {
        read.extend_from_slice(&piece);
    }
    assert!(String::from_utf8(read).unwrap().contains("message_stop"));
    let broke = loop {
        match hangs.chunk().await {
            Ok(Some(_)) => {}
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broke, "an answer that was ended early is no whole answer");
    stopped.await.unwrap();
    assert_eq!(desk.told.lock().unwrap().len(), 2);
    assert!(request(&at).send().await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn many_at_once_are_each_told_once() {
    let fake = Settings::new().piece(3).start().await;
    let (gateway, desk) = scripted(&fake, Scripted::default()).await;
    let base = url(&gateway);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..60 {
        let base = base.clone();
        clients.spawn(async move {
            for round in 0..4 {
                let (api, stream) = (APIS[(client + round) % 3], round % 2 == 0);
                let seen = ask(&base, api, &body(api, stream), LONG).await;
                assert_eq!((seen.status, seen.end), (200, End::Clean));
            }
        });
    }
    clients.join_all().await;
    gateway.stop().await;
    let told = desk.told.lock().unwrap();
    let sessions: std::collections::HashSet<_> = told.iter().map(|(session, _)| *session).collect();
    assert_eq!((told.len(), sessions.len()), (240, 240));
    assert!(told.iter().all(|(_, usage)| usage.is_some()));
}
