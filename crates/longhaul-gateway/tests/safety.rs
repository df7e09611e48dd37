//! Who gets in, and what those can do who mean no good.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{LONG, PassesOn, Scripted, ask, body, client, passing, raw, see, settings, until, url};
use longhaul_fake::{Settings, Trouble};
use longhaul_gateway::{Decide, Gateway, GatewayError, Open, Reason, Token, start_with};
use longhaul_wire::api::Api;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const BODY: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#;

fn desk() -> Arc<dyn Decide> {
    Arc::new(PassesOn(Reason::Side))
}

/// A request by hand.
fn request(path: &str, headers: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{BODY}",
        BODY.len()
    )
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() {
    let fake = Settings::new().start().await;
    let mut open = settings(&fake);
    open.listen = "0.0.0.0:0".parse().unwrap();
    let error = start_with(open.clone(), desk()).await.unwrap_err();
    assert!(matches!(error, GatewayError::NoToken(_)));
    assert!(error.to_string().contains("set a token"), "{error}");
    open.token = Some(Token::new(" "));
    assert!(matches!(start_with(open.clone(), desk()).await.unwrap_err(), GatewayError::EmptyToken));
    open.token = Some(Token::new("T0ken"));
    open.open = Open::Apis;
    let error = start_with(open.clone(), desk()).await.unwrap_err();
    assert!(matches!(error, GatewayError::OpenToOthers(_)), "{error}");
    open.open = Open::Nothing;
    let gateway = start_with(open, desk()).await.unwrap();
    // Others have names of their own for this machine.
    let seen = raw(&gateway, request("/t/T0ken/v1/messages", "host: gateway.example\r\n").as_bytes()).await;
    assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
}

#[tokio::test]
async fn a_gateway_that_would_let_nobody_in_does_not_start() {
    let fake = Settings::new().start().await;
    let mut closed = settings(&fake);
    closed.open = Open::Nothing;
    let error = start_with(closed, desk()).await.unwrap_err();
    assert!(matches!(error, GatewayError::Closed(_)), "{error}");
}

#[tokio::test]
async fn base_urls_are_checked_at_the_start() {
    let fake = Settings::new().start().await;
    let mut wrong = settings(&fake);
    wrong.openai = "api.openai.com".to_owned();
    let error = start_with(wrong, desk()).await.unwrap_err();
    assert!(matches!(error, GatewayError::Upstream(_)), "{error}");
    let mut taken = settings(&fake);
    taken.listen = fake.address();
    assert!(matches!(start_with(taken, desk()).await.unwrap_err(), GatewayError::Listen(..)));
}

#[tokio::test]
async fn only_this_machines_names_are_served() {
    let fake = Settings::new().start().await;
    let gateway = passing(&fake).await;
    for host in ["localhost:9", "127.0.0.1", "[::1]:80"] {
        let seen = raw(&gateway, request("/v1/messages", &format!("host: {host}\r\n")).as_bytes()).await;
        assert!(seen.starts_with("HTTP/1.1 200"), "{host} {seen}");
    }
    let calls = fake.log().len();
    for host in ["host: evil.example\r\n", "host: localhost\r\nhost: evil.example\r\n", ""] {
        let seen = raw(&gateway, request("/v1/messages", host).as_bytes()).await;
        assert!(seen.starts_with("HTTP/1.1 403") && seen.contains("permission_error"), "{host} {seen}");
    }
    assert_eq!(fake.log().len(), calls);
}

async fn guarded(fake: &longhaul_fake::Fake) -> (Gateway, Arc<Scripted>) {
    let desk = Arc::new(Scripted::default());
    let settings = longhaul_gateway::Settings { token: Some(Token::new("T0ken")), ..settings(fake) };
    (start_with(settings, desk.clone()).await.unwrap(), desk)
}

#[tokio::test]
async fn without_the_token_nobody_gets_in() {
    let fake = Settings::new().start().await;
    let (gateway, _) = guarded(&fake).await;
    let base = url(&gateway);
    for path in ["/v1/messages", "/t/other/v1/messages", "/t//v1/messages", "/t/T0ke/v1/messages"] {
        let request = client().post(format!("{base}{path}")).header("x-longhaul-token", "wrong");
        let request = request.header("authorization", "Bearer sk-1").header("x-api-key", "sk-2");
        let seen = see(request.body(BODY), LONG).await;
        assert_eq!(seen.status, 401, "{path}");
        let said: Value = serde_json::from_slice(&seen.body).unwrap();
        assert_eq!(said["error"]["type"], "authentication_error");
    }
    // A client sees the refusal also if it has much to send.
    let mut long = body(Api::Chat, true);
    long["messages"][0]["content"] = "x".repeat(9 << 20).into();
    let seen = ask(&base, Api::Chat, &long, LONG).await;
    let said: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((seen.status, &said["error"]["type"]), (401, &"invalid_request_error".into()));
    for path in ["/v1/models", "/metrics", "/foo"] {
        assert_eq!(see(client().get(format!("{base}{path}")), LONG).await.status, 401, "{path}");
    }
    assert_eq!(see(client().get(format!("{base}/healthz")), LONG).await.status, 200);
    assert_eq!(fake.log().len(), 0);
}

/// An agent may have several providers: each gets its own requests and keys, and no other.
#[tokio::test]
async fn further_providers_are_asked_by_their_number() {
    let [first, second] = [Settings::new().start().await, Settings::new().start().await];
    let others = vec![second.base_url()];
    let gateway = start_with(
        longhaul_gateway::Settings { others, token: Some(Token::of_one_user("T0ken")), ..settings(&first) },
        Arc::new(Scripted::default()),
    );
    let gateway = gateway.await.unwrap();
    let base = url(&gateway);
    let at = |path: &str| see(client().post(format!("{base}{path}")).body(BODY), LONG);
    assert_eq!(at("/t/T0ken/to/0/v1/messages").await.status, 200);
    assert_eq!((first.log().len(), second.log().len()), (0, 1));
    assert_eq!(second.log()[0].path, "/v1/messages");
    assert_eq!(at("/t/T0ken/v1/messages").await.status, 200);
    assert_eq!((first.log().len(), second.log().len()), (1, 1));
    assert_eq!(at("/to/0/v1/messages").await.status, 401);
    for number in ["1", "x", ""] {
        assert_eq!(at(&format!("/t/T0ken/to/{number}/v1/messages")).await.status, 502);
    }
    assert_eq!((first.log().len(), second.log().len()), (1, 1));
}

#[tokio::test]
async fn the_token_opens_and_goes_no_further() {
    let fake = Settings::new().key("sk-1").start().await;
    let (gateway, desk) = guarded(&fake).await;
    let base = url(&gateway);
    let at = |path: &str| client().post(format!("{base}{path}")).body(BODY);
    for request in [
        at("/v1/messages").header("x-longhaul-token", "T0ken").header("x-api-key", "sk-1"),
        at("/v1/messages").header("authorization", "Bearer T0ken").header("x-api-key", "sk-1"),
        at("/v1/messages").header("x-api-key", "T0ken").header("authorization", "Bearer sk-1"),
        at("/t/T0ken/v1/messages").header("x-api-key", "sk-1"),
    ] {
        let seen = see(request, LONG).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        let call = fake.log().last().unwrap().clone();
        assert_eq!(call.path, "/v1/messages");
        assert!(!format!("{call:?}").contains("T0ken"));
    }
    let seen = desk.seen.lock().unwrap().clone();
    assert!(seen.iter().all(|incoming| incoming.tenant == seen[0].tenant && incoming.tenant.len() == 16));
    assert!(!format!("{seen:?}").contains("T0ken"));
    let page = client().get(format!("{base}/t/T0ken/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("longhaul_requests_total{api=\"anthropic\",status=\"200\"} 4"), "{page}");
}

#[tokio::test]
async fn a_web_socket_is_refused_so_that_the_client_falls_back() {
    let fake = Settings::new().start().await;
    let gateway = passing(&fake).await;
    for path in ["/v1/responses", "/responses"] {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n"
        );
        let mut connection = TcpStream::connect(gateway.address()).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut seen = vec![0; 4_096];
        let read = timeout(LONG, connection.read(&mut seen)).await.unwrap().unwrap();
        let seen = String::from_utf8_lossy(&seen[..read]);
        assert!(seen.starts_with("HTTP/1.1 426 Upgrade Required") && seen.contains("{\"error\""), "{seen}");
    }
}

/// Two lengths for one body: whoever believes the other one takes a part of the body for a request.
#[tokio::test]
async fn a_request_with_two_lengths_smuggles_nothing() {
    let fake = Settings::new().start().await;
    let gateway = passing(&fake).await;
    let inner = "POST /v1/messages HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 2\r\n\r\n{}";
    let chunked = format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len());
    let head = |headers: &str| format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    for headers in [
        format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", chunked.len() + inner.len()),
        format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", chunked.len() + inner.len()),
        "content-length: 4\r\ntransfer-encoding: chunked\r\n".to_owned(),
    ] {
        let calls = fake.log().len();
        let seen = raw(&gateway, format!("{}{chunked}{inner}", head(&headers)).as_bytes()).await;
        let log = fake.log();
        // The provider sees one request with one length. What stands behind it is refused like any other.
        assert!(log.len() <= calls + 1, "{seen}");
        for call in &log[calls..] {
            assert_eq!(call.body["messages"][0]["content"], "Hi");
            assert!(call.header("transfer-encoding").is_none());
        }
        let others = seen.match_indices("HTTP/1.1 200").count();
        assert!(others <= 1, "{seen}");
    }
    for headers in [
        "content-length: 4\r\ncontent-length: 5\r\n",
        "content-length: +4\r\n",
        "content-length: 4, 5\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding : chunked\r\n",
    ] {
        let calls = fake.log().len();
        let seen = raw(&gateway, format!("{}{chunked}", head(headers)).as_bytes()).await;
        assert!(seen.starts_with("HTTP/1.1 400"), "{headers} {seen}");
        assert_eq!(fake.log().len(), calls);
    }
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let fake = Settings::new().start().await;
    let mut settings = settings(&fake);
    settings.limits.head_bytes = 16 << 10;
    let gateway = start_with(settings, desk()).await.unwrap();
    let fits = request("/v1/messages", &format!("host: localhost\r\nx-a: {}\r\n", "a".repeat(15_000)));
    assert!(raw(&gateway, fits.as_bytes()).await.starts_with("HTTP/1.1 200"));
    let long = request("/v1/messages", &format!("host: localhost\r\nx-a: {}\r\n", "a".repeat(40_000)));
    let many = request("/v1/messages", &format!("host: localhost\r\n{}", "a: b\r\n".repeat(200)));
    for head in [long, many] {
        let mut connection = TcpStream::connect(gateway.address()).await.unwrap();
        _ = connection.write_all(head.as_bytes()).await;
        let mut seen = [0; 12];
        // The rest of the head is not read: a reset may overtake the refusal.
        if timeout(LONG, connection.read_exact(&mut seen)).await.unwrap().is_ok() {
            assert_eq!(&seen, b"HTTP/1.1 431");
        }
    }
    assert_eq!(fake.log().len(), 1);
}

#[tokio::test]
async fn slow_clients_are_sent_away() {
    let fake = Settings::new().start().await;
    let mut settings = settings(&fake);
    (settings.limits.head_wait, settings.limits.body_wait) =
        (Duration::from_millis(100), Duration::from_millis(100));
    let gateway = start_with(settings, desk()).await.unwrap();
    assert_eq!(raw(&gateway, b"POST /v1/mess").await, "");
    let half =
        format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{{", BODY.len());
    let seen = raw(&gateway, half.as_bytes()).await;
    assert!(seen.starts_with("HTTP/1.1 408"), "{seen}");
    assert_eq!(fake.log().len(), 0);
}

#[tokio::test]
async fn connections_are_limited() {
    let fake = Settings::new().trouble(1..=1, Trouble::Hang).start().await;
    let mut settings = settings(&fake);
    settings.limits.connections = 1;
    let gateway = start_with(settings, desk()).await.unwrap();
    let mut first = TcpStream::connect(gateway.address()).await.unwrap();
    first.write_all(request("/v1/messages", "host: localhost\r\n").as_bytes()).await.unwrap();
    fake.until_calls(1).await;
    let mut second = TcpStream::connect(gateway.address()).await.unwrap();
    second.write_all(request("/v1/messages", "host: localhost\r\n").as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    assert!(timeout(Duration::from_millis(200), second.read_to_end(&mut seen)).await.is_err());
    assert_eq!(fake.log().len(), 1);
    drop(first);
    timeout(LONG, second.read_to_end(&mut seen)).await.unwrap().unwrap();
    assert!(seen.starts_with(b"HTTP/1.1 200"));
}

/// A client that does not read does not make us read: the provider waits too.
#[tokio::test]
async fn a_client_that_does_not_read_holds_the_provider_back() {
    let text = "x".repeat(64 << 20);
    let fake = Settings::new().answer(text.as_str()).piece(1 << 20).start().await;
    let desk = Arc::new(Scripted::default());
    let gateway = start_with(settings(&fake), desk.clone()).await.unwrap();
    let mut client = TcpStream::connect(gateway.address()).await.unwrap();
    let body = body(Api::Anthropic, true).to_string();
    let head =
        format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes()).await.unwrap();
    let mut first = [0; 1_000];
    client.read_exact(&mut first).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(fake.log()[0].outcome, longhaul_fake::Outcome::Open);
    assert!(desk.told.lock().unwrap().is_empty());
    drop(client);
    timeout(LONG, fake.until_idle()).await.unwrap();
    until(|| desk.told.lock().unwrap().len() == 1).await;
}
