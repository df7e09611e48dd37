//! Many connections at once: those that say nothing, or have no token, keep nobody out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{LONG, PassesOn, settings, until};
use longhaul_fake::{Fake, Settings, Trouble};
use longhaul_gateway::{Gateway, Open, Reason, Token, start_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const BODY: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

async fn gateway(fake: &Fake, connections: usize, newcomer_wait: Duration) -> Gateway {
    let mut settings = settings(fake);
    (settings.token, settings.open) = (Some(Token::of_one_user("T0ken")), Open::Nothing);
    (settings.limits.connections, settings.limits.head_wait) = (connections, NEVER);
    settings.limits.newcomer_wait = newcomer_wait;
    start_with(settings, Arc::new(PassesOn(Reason::Side))).await.unwrap()
}

async fn connected(gateway: &Gateway) -> TcpStream {
    TcpStream::connect(gateway.address()).await.unwrap()
}

fn post(path: &str, connection: &str) -> String {
    let length = BODY.len();
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{connection}content-length: {length}\r\n\r\n{BODY}")
}

async fn send(gateway: &Gateway, request: &str) -> TcpStream {
    let mut stream = connected(gateway).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The first line of the answer.
async fn status(stream: &mut TcpStream) -> String {
    let mut seen = [0; 12];
    timeout(LONG, stream.read_exact(&mut seen)).await.expect("an answer in time").unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

async fn asked(gateway: &Gateway, request: &str) -> String {
    status(&mut send(gateway, request).await).await
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Whether the other side has ended the connection.
async fn has_ended(stream: &mut TcpStream) -> bool {
    matches!(timeout(LONG, stream.read(&mut [0; 4_096])).await.unwrap(), Ok(0) | Err(_))
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let fake = Settings::new().start().await;
    let gateway = gateway(&fake, 40, NEVER).await;
    let mut silent = Vec::new();
    // Some say half a request, some are refused and stay.
    let refused = post("/v1/messages", "");
    for says in ["", "GET /hea", &refused, HEALTH].into_iter().cycle().take(330) {
        silent.push(send(&gateway, says).await);
    }
    assert_eq!(asked(&gateway, HEALTH).await, "HTTP/1.1 200");
    assert_eq!(asked(&gateway, &post("/t/T0ken/v1/messages", "")).await, "HTTP/1.1 200");
    // The oldest had to go.
    assert!(has_ended(&mut silent[0]).await);
    assert_eq!(fake.log().len(), 1);
}

/// A client that was let in keeps its connection, however many come after it.
#[tokio::test]
async fn who_was_let_in_stays() {
    let fake = Settings::new().start().await;
    let gateway = gateway(&fake, 2, NEVER).await;
    let mut client = send(&gateway, &post("/t/T0ken/v1/messages", "")).await;
    assert_eq!(status(&mut client).await, "HTTP/1.1 200");
    let mut silent = Vec::new();
    for _ in 0..330 {
        silent.push(connected(&gateway).await);
    }
    assert!(has_ended(&mut silent[0]).await);
    client.write_all(post("/t/T0ken/v1/messages", "connection: close\r\n").as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    timeout(LONG, client.read_to_end(&mut seen)).await.unwrap().unwrap();
    assert_eq!((String::from_utf8_lossy(&seen).matches("HTTP/1.1 200").count(), fake.log().len()), (1, 2));
}

/// Clients that take all slots keep no health check out; more of them wait, and not without end.
#[tokio::test]
async fn health_is_told_while_all_slots_are_taken() {
    let fake = Settings::new().trouble(1..=1, Trouble::Hang).start().await;
    let gateway = gateway(&fake, 1, NEVER).await;
    let request = post("/t/T0ken/v1/messages", "");
    let first = send(&gateway, &request).await;
    fake.until_calls(1).await;
    let mut others = [send(&gateway, &request).await, send(&gateway, &request).await];
    // One of the two waits, and one is told.
    let [one, other] = &mut others;
    let (refused, waits) = tokio::select! {
        seen = status(one) => (seen, other),
        seen = status(other) => (seen, one),
    };
    assert_eq!(refused, "HTTP/1.1 503");
    assert_eq!((asked(&gateway, HEALTH).await.as_str(), fake.log().len()), ("HTTP/1.1 200", 1));
    drop(first);
    assert_eq!(status(waits).await, "HTTP/1.1 200");
}

/// Who is not let in does not stay for long: not silent, and not between two requests. Who was let in does.
#[tokio::test]
async fn newcomers_are_sent_away_soon() {
    let fake = Settings::new().start().await;
    let gateway = gateway(&fake, 40, Duration::from_millis(50)).await;
    let mut client = send(&gateway, &post("/t/T0ken/v1/messages", "")).await;
    assert_eq!(status(&mut client).await, "HTTP/1.1 200");
    let refused = post("/v1/messages", "");
    for says in ["", "GET /hea", HEALTH, &refused] {
        let mut stream = send(&gateway, says).await;
        let mut seen = Vec::new();
        _ = timeout(LONG, stream.read_to_end(&mut seen)).await.expect("the connection ends");
        assert_eq!(seen.is_empty(), says.len() < 10, "{says}");
    }
    client.write_all(post("/t/T0ken/v1/messages", "").as_bytes()).await.unwrap();
    until(|| fake.log().len() == 2).await;
}
