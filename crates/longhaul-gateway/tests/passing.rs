//! What is passed on: the client sees what it would see without the gateway.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{APIS, End, LONG, SHORT, Seen, ask, body, client, passing, path, see, settings, url};
use longhaul_fake::{Answer, Close, Fake, RetryAfter, Settings, Trouble};
use longhaul_gateway::{Gateway, start};
use longhaul_wire::api::Api;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn script() -> Settings {
    let call =
        Answer::new().thinking("Which file? 中文").text("Let me see.").call("Read", json!({"path": "a"}));
    Settings::new().answer(call).piece(5)
}

/// A fake alone, and one behind a gateway, both with the same settings.
struct Both {
    alone: Fake,
    behind: Fake,
    gateway: Gateway,
}

impl Both {
    async fn start() -> Self {
        let (alone, behind) = (script().start().await, script().start().await);
        let gateway = passing(&behind).await;
        Self { alone, behind, gateway }
    }

    /// What a client sees without and with the gateway.
    async fn see(&self, settings: Settings, api: Api, stream: bool, wait: Duration) -> (Seen, Seen) {
        self.alone.restart(settings.clone()).await;
        self.behind.restart(settings).await;
        let body = body(api, stream);
        let direct = ask(&self.alone.base_url(), api, &body, wait).await;
        let through = ask(&url(&self.gateway), api, &body, wait).await;
        let sent =
            |fake: &Fake| fake.log().into_iter().map(|call| (call.path, call.body)).collect::<Vec<_>>();
        assert_eq!(sent(&self.alone), sent(&self.behind));
        (direct, through)
    }
}

async fn both(settings: Settings, api: Api, stream: bool, wait: Duration) -> (Seen, Seen) {
    Both::start().await.see(settings, api, stream, wait).await
}

#[tokio::test]
async fn answers_come_back_byte_for_byte() {
    for api in APIS {
        for stream in [false, true] {
            let (direct, through) = both(script(), api, stream, LONG).await;
            assert_eq!(through.header("x-longhaul"), Some("passed-on; why=side"));
            assert_eq!(direct.end, End::Clean);
            assert_eq!(through.without_ours(), direct, "{api:?} {stream}");
        }
    }
}

#[tokio::test]
async fn faults_come_back_as_they_are() {
    let millis = Duration::from_millis;
    let response = Trouble::Response {
        status: 418,
        headers: vec![
            ("x-request-id".to_owned(), "r1".to_owned()),
            ("set-cookie".to_owned(), "a=b".to_owned()),
        ],
        body: "{\"odd\": true}".to_owned(),
    };
    let troubles = [
        Trouble::Limited(RetryAfter::Unsaid),
        Trouble::Limited(RetryAfter::Seconds(7)),
        Trouble::Limited(RetryAfter::Millis(70)),
        Trouble::Status(400),
        Trouble::Status(401),
        Trouble::Status(404),
        Trouble::Status(413),
        Trouble::Status(500),
        Trouble::Status(529),
        response,
        Trouble::TooLong { prompt: 31_920, window: 30_000 },
        Trouble::Slow { first: millis(20), between: millis(2) },
        Trouble::Hang,
        Trouble::HangAfter(2),
        Trouble::Cut { after: 0, close: Close::Fin },
        Trouble::Cut { after: 3, close: Close::Fin },
        Trouble::Cut { after: 99, close: Close::Fin },
        Trouble::ErrorEvent { after: 2 },
        Trouble::BrokenJson { after: 2 },
        Trouble::BrokenJson { after: 99 },
        Trouble::Html,
        Trouble::ArgumentsCut,
        Trouble::Empty,
        Trouble::Split(3),
        Trouble::CrLf,
        Trouble::Gzip,
        Trouble::StaysOpen,
    ];
    // The kinds of requests at the same time: some troubles are that nothing comes.
    let mut kinds = tokio::task::JoinSet::new();
    for (api, stream) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        let (both, troubles) = (Both::start().await, troubles.clone());
        kinds.spawn(async move {
            for trouble in troubles {
                let wait = match trouble {
                    Trouble::Hang | Trouble::HangAfter(_) | Trouble::StaysOpen => SHORT,
                    _ => LONG,
                };
                let settings = script().trouble(1.., trouble.clone());
                let (direct, through) = both.see(settings, api, stream, wait).await;
                assert_eq!(through.without_ours(), direct, "{trouble:?} {api:?} {stream}");
            }
        });
    }
    kinds.join_all().await;
}

#[tokio::test]
async fn a_reset_is_a_break() {
    for api in APIS {
        for stream in [false, true] {
            let trouble = Trouble::Cut { after: 3, close: Close::Reset };
            let (direct, through) = both(script().trouble(1.., trouble), api, stream, LONG).await;
            // A reset may take bytes with it.
            assert_eq!((direct.end, through.end), (End::Broken, End::Broken), "{api:?} {stream}");
        }
    }
}

#[tokio::test]
async fn comments_go_through_while_nothing_comes() {
    for api in APIS {
        let trouble = Trouble::CommentsOnly { every: Duration::from_millis(20) };
        let fake = script().trouble(1.., trouble).start().await;
        let gateway = passing(&fake).await;
        let request = client().post(url(&gateway) + path(api)).body(body(api, true).to_string());
        let mut response = request.send().await.unwrap();
        for _ in 0..3 {
            assert_eq!(response.chunk().await.unwrap().unwrap(), ": keep-alive\n\n");
        }
    }
}

/// Clients take a clean end for a whole answer.
#[tokio::test]
async fn a_stream_without_its_closing_event_is_broken_off() {
    for api in APIS {
        let (direct, through) = both(script().trouble(1.., Trouble::NoClosingEvent), api, true, LONG).await;
        assert_eq!((direct.end, through.end), (End::Clean, End::Broken), "{api:?}");
        assert_eq!(direct.text(), through.text(), "{api:?}");
        // Half a body of JSON has a length, and nobody takes it for a whole answer.
        let (direct, through) = both(script().trouble(1.., Trouble::NoClosingEvent), api, false, LONG).await;
        assert_eq!(through.without_ours(), direct, "{api:?}");
    }
}

#[tokio::test]
async fn a_provider_that_hangs_up_is_a_bad_gateway() {
    for api in APIS {
        let (direct, through) = both(script().trouble(1.., Trouble::Close), api, true, LONG).await;
        assert_eq!((direct.status, direct.end), (0, End::Broken));
        assert_eq!((through.status, through.end), (502, End::Clean), "{api:?}");
        let said: serde_json::Value = serde_json::from_slice(&through.body).unwrap();
        assert!(said["error"]["message"].as_str().unwrap().starts_with("longhaul: the provider"), "{said}");
        assert_eq!(said["type"] == "error", api == Api::Anthropic);
    }
}

#[tokio::test]
async fn a_dead_provider_is_a_bad_gateway() {
    let fake = script().start().await;
    let mut settings = settings(&fake);
    // Nobody listens there: the port was free a moment ago.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    settings.anthropic = format!("http://me:hunter2@{free}");
    settings.openai = format!("http://me:hunter2@{free}/v1");
    let gateway = longhaul_gateway::start_with(
        settings,
        std::sync::Arc::new(common::PassesOn(longhaul_gateway::Reason::Side)),
    )
    .await
    .unwrap();
    for api in APIS {
        let seen = ask(&url(&gateway), api, &body(api, true), LONG).await;
        assert_eq!(seen.status, 502);
        assert!(seen.text().contains("onnect"), "{}", seen.text());
        assert!(!seen.text().contains("hunter2"), "{}", seen.text());
    }
}

#[tokio::test]
async fn a_client_that_goes_ends_the_request() {
    for api in APIS {
        for trouble in [Trouble::Hang, Trouble::HangAfter(2)] {
            let fake = script().trouble(1.., trouble).start().await;
            let gateway = passing(&fake).await;
            let gone = ask(&url(&gateway), api, &body(api, true), SHORT).await;
            assert_eq!(gone.end, End::Silent);
            tokio::time::timeout(LONG, fake.until_idle()).await.expect("the provider is left alone");
        }
    }
}

#[tokio::test]
async fn other_paths_and_methods_go_to_their_provider() {
    let (anthropic, openai) = (script().start().await, script().start().await);
    let mut settings = settings(&anthropic);
    settings.openai = openai.base_url() + "/v1";
    let folder = tempfile::tempdir().unwrap();
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    let gateway = start(settings).await.unwrap();
    let base = url(&gateway);
    let see = |request: reqwest::RequestBuilder| see(request, LONG);
    let models = see(client().get(format!("{base}/v1/models"))).await;
    assert_eq!(models.without_ours(), see(client().get(openai.base_url() + "/v1/models")).await);
    let claude =
        |base: &str| client().get(format!("{base}/v1/models?limit=9")).header("anthropic-version", "1");
    assert_eq!(see(claude(&base)).await.without_ours(), see(claude(&anthropic.base_url())).await);
    let count = |base: &str| {
        let body = body(Api::Anthropic, false).to_string();
        client().post(format!("{base}/v1/messages/count_tokens")).header("anthropic-version", "1").body(body)
    };
    let counted = see(count(&base)).await;
    assert!(counted.text().starts_with("{\"input_tokens\":"), "{}", counted.text());
    assert_eq!(counted.without_ours(), see(count(&anthropic.base_url())).await);
    for (method, path) in [
        ("GET", "/v1/files"),
        ("DELETE", "/v1/files/f1"),
        ("PATCH", "/foo/bar?x=%20y"),
        ("HEAD", "/api/hello"),
    ] {
        let method: reqwest::Method = method.parse().unwrap();
        let at = |base: &str| client().request(method.clone(), format!("{base}{path}")).body("bytes");
        let direct = if path.starts_with("/api") { anthropic.base_url() } else { openai.base_url() };
        let direct = if path.starts_with("/foo") { direct + "/v1" } else { direct };
        let (through, direct) = (see(at(&base)).await.without_ours(), see(at(&direct)).await);
        // A server that is asked for a head only sends no length of a body that it does not have.
        assert_eq!((through.status, through.text()), (direct.status, direct.text()), "{method} {path}");
    }
    gateway.stop().await;
}

/// A provider that closes each connection when its second request comes, and answers the first one. Gives its address,
/// and how many requests came.
async fn closing() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, came) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = came.clone();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                for number in 0..2 {
                    let mut request = Vec::new();
                    while !request.ends_with(b"}") {
                        let mut piece = [0; 4_096];
                        match connection.read(&mut piece).await {
                            Ok(0) | Err(_) => return,
                            Ok(read) => request.extend_from_slice(&piece[..read]),
                        }
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    if number == 0 {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                        connection.write_all(answer).await.unwrap();
                    }
                }
            });
        }
    });
    (address, came)
}

#[tokio::test]
async fn a_request_on_a_connection_that_just_ended_is_sent_again() {
    let fake = Settings::new().start().await;
    let (address, came) = closing().await;
    let mut settings = common::settings(&fake);
    settings.openai = format!("http://{address}/v1");
    let desk = Arc::new(common::PassesOn(longhaul_gateway::Reason::Side));
    let gateway = longhaul_gateway::start_with(settings, desk).await.unwrap();
    for number in 1..=4 {
        let seen = ask(&url(&gateway), Api::Chat, &body(Api::Chat, false), LONG).await;
        assert_eq!((seen.status, seen.text().as_str()), (200, "{}"), "request {number}");
    }
    // Each but the first was sent on a connection that ended, and then on a new one.
    assert_eq!(came.load(Ordering::SeqCst), 1 + 2 * 3);
}
