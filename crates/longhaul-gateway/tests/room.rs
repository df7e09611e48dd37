//! Many large requests at once: all come to an end, and they take no more memory than there is room for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::{PassesOn, client, url};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use longhaul_gateway::{DeskSettings, Gateway, Limits, Open, Reason, Settings, start_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BODY: usize = 8 << 20;
const REQUESTS: usize = 100;

/// A provider that reads everything and keeps nothing. Gives its address, and the bytes that it has read.
async fn provider() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, read) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let count = read.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let count = count.clone();
                    async move {
                        let mut body = request.into_body();
                        while let Some(Ok(frame)) = body.frame().await {
                            count.fetch_add(frame.data_ref().map_or(0, Bytes::len) as u64, Ordering::SeqCst);
                        }
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
                    }
                });
                _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (address, read)
}

async fn gateway(provider: SocketAddr, limits: Limits) -> Gateway {
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: format!("http://{provider}"),
        openai: format!("http://{provider}/v1"),
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk: DeskSettings::new(String::new()),
        limits,
    };
    start_with(settings, Arc::new(PassesOn(Reason::Side))).await.unwrap()
}

/// Sends large bodies, all at once. Gives how often each thing was said of them.
async fn at_once(gateway: &Gateway, says_length: bool) -> BTreeMap<String, usize> {
    let body = Bytes::from(vec![b' '; BODY]);
    let asks: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let request = client().post(url(gateway) + "/v1/chat/completions");
            let body = match says_length {
                true => reqwest::Body::from(body.clone()),
                false => reqwest::Body::wrap(Unmeasured(body.clone())),
            };
            tokio::spawn(request.body(body).send())
        })
        .collect();
    let mut said = BTreeMap::new();
    for ask in asks {
        let answer = ask.await.unwrap().unwrap();
        assert_eq!(answer.status(), 200);
        *said.entry(answer.headers()["x-longhaul"].to_str().unwrap().to_owned()).or_default() += 1;
    }
    said
}

/// A body that does not say how long it is, in pieces.
struct Unmeasured(Bytes);

impl http_body::Body for Unmeasured {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let most = self.0.len().min(64 << 10);
        let piece = self.0.split_to(most);
        std::task::Poll::Ready((!piece.is_empty()).then(|| Ok(http_body::Frame::data(piece))))
    }
}

/// The most memory that this process ever had, in bytes.
#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_wait_for_room_and_all_come_to_an_end() {
    let (provider, read) = provider().await;
    let limits = Limits { bodies_bytes: 4 * BODY, room_wait: Duration::from_secs(600), ..Limits::default() };
    let patient = gateway(provider, limits.clone()).await;
    #[cfg(target_os = "linux")]
    let before = most_memory();
    // Who says how much is coming waits for room.
    let said = at_once(&patient, true).await;
    assert_eq!(said, [("passed-on; why=side".to_owned(), REQUESTS)].into());
    // Who does not say it never waits with a part of the room in its hands: what does not fit goes on as it comes.
    let said = at_once(&patient, false).await;
    assert_eq!(said.values().sum::<usize>(), REQUESTS, "{said:?}");
    assert!(said.keys().all(|said| said.ends_with("why=side") || said.ends_with("why=no-room")), "{said:?}");
    // Without room in time it goes on as it comes.
    let nobody = gateway(provider, Limits { bodies_bytes: 1, ..limits.clone() }).await;
    let said = at_once(&nobody, true).await;
    assert_eq!(said, [("passed-on; why=no-room".to_owned(), REQUESTS)].into());
    assert_eq!(nobody.figures().passed_on["no-room"], REQUESTS as u64);
    assert_eq!(read.load(Ordering::SeqCst), (3 * REQUESTS * BODY) as u64);
    #[cfg(target_os = "linux")]
    {
        // All bodies at once are 800 MB. There are 32 MB for them, and each of 300 connections has buffers, on both
        // sides.
        let grown = most_memory() - before;
        assert!(grown < 400 << 20, "{} MB", grown >> 20);
    }
}

/// What a small body unpacks to takes room too.
#[tokio::test]
async fn what_is_unpacked_needs_room() {
    let (provider, _) = provider().await;
    let limits = Limits { bodies_bytes: BODY, ..Limits::default() };
    let gateway = gateway(provider, limits).await;
    let packed = zstd::encode_all(&vec![b' '; 2 * BODY][..], 1).unwrap();
    let request = client().post(url(&gateway) + "/v1/chat/completions").header("content-encoding", "zstd");
    let answer = request.body(packed).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-longhaul"]),
        (200, &"passed-on; why=no-room".parse().unwrap())
    );
}

/// Clients that announce large bodies and send as much of them as this.
async fn stalled(gateway: &Gateway, clients: usize, sent: usize) -> Vec<TcpStream> {
    let mut stalled = Vec::new();
    for _ in 0..clients {
        let mut connection = TcpStream::connect(gateway.address()).await.unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {BODY}\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(&vec![b' '; sent]).await.unwrap();
        stalled.push(connection);
    }
    stalled
}

/// Who announces a large body and sends little of it takes no room from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stalls_does_not_cost_others_their_room() {
    let (provider, _) = provider().await;
    // Nothing but the head is sent; the first bytes; more than those.
    for sent in [0, 8, 1 << 20] {
        let limits = Limits { bodies_bytes: 4 * BODY, ..Limits::default() };
        let gateway = gateway(provider, limits).await;
        let stalled = stalled(&gateway, 4, sent).await;
        // Until they have reserved what they announce, if they do.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let body = vec![b' '; 2 * BODY];
        let answer = client().post(url(&gateway) + "/v1/chat/completions").body(body).send().await.unwrap();
        assert_eq!(answer.headers()["x-longhaul"], "passed-on; why=side", "{sent}");
        // They are taken when they go on.
        for mut connection in stalled {
            connection.write_all(&vec![b' '; BODY - sent]).await.unwrap();
            let mut answer = vec![0; 4_096];
            let read = connection.read(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{sent}: {answer}");
            assert!(answer.contains("x-longhaul: passed-on; why=side"), "{sent}: {answer}");
        }
    }
}
