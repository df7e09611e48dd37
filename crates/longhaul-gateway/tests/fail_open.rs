//! Whatever goes wrong on our side, the client's own bytes go out, and it is said.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, atomic};
use std::time::Duration;

use common::{APIS, End, LONG, PassesOn, Scripted, ask, body, client, path, see, settings, until, url};
use flate2::Compression;
use flate2::write::GzEncoder;
use longhaul::session::Overflow;
use longhaul::{Tokens, Usage};
use longhaul_fake::Settings;
use longhaul_gateway::{Call, Decide, Decision, Incoming, Reason, start_with};
use longhaul_store::SessionId;
use longhaul_wire::api::Api;

/// A desk that panics at everything.
struct Panics;

impl Decide for Panics {
    fn decide(&self, _: &Incoming) -> Decision {
        panic!("decide");
    }

    fn answered(&self, _: Call, _: Option<&Usage>) {
        panic!("answered");
    }

    fn overflowed(&self, _: Call, _: Overflow) -> Option<Call> {
        panic!("overflowed");
    }

    fn count(&self, _: &Incoming) -> Option<Tokens> {
        panic!("count");
    }
}

#[tokio::test]
async fn a_desk_that_panics_is_passed_by() {
    let fake = Settings::new().start().await;
    let gateway = start_with(settings(&fake), Arc::new(Panics)).await.unwrap();
    // More often than there are threads.
    for round in 1..=4 {
        for api in APIS {
            let body = body(api, true);
            let seen = ask(&url(&gateway), api, &body, LONG).await;
            assert_eq!((seen.status, seen.end), (200, End::Clean));
            assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=panic"));
            assert_eq!(fake.log().last().unwrap().body, body);
        }
        assert_eq!(gateway.figures().passed_on["panic"], round * 3);
    }
    let count = client().post(url(&gateway) + "/v1/messages/count_tokens").header("anthropic-version", "1");
    let seen = see(count.body(body(Api::Anthropic, false).to_string()), LONG).await;
    assert!(seen.text().starts_with("{\"input_tokens\":"), "{}", seen.text());
}

/// A desk that hangs until it is let go.
struct Hangs {
    go: Mutex<Receiver<()>>,
    told: atomic::AtomicUsize,
}

impl Hangs {
    fn new() -> (Sender<()>, Arc<Self>) {
        let (let_go, go) = channel();
        (let_go, Arc::new(Self { go: Mutex::new(go), told: 0.into() }))
    }
}

impl Decide for Hangs {
    fn decide(&self, _: &Incoming) -> Decision {
        _ = self.go.lock().unwrap().recv();
        Decision::Send(common::call(SessionId::fresh(), None))
    }

    fn answered(&self, _: Call, usage: Option<&Usage>) {
        assert!(usage.is_none());
        self.told.fetch_add(1, atomic::Ordering::SeqCst);
    }

    fn overflowed(&self, _: Call, _: Overflow) -> Option<Call> {
        None
    }

    fn count(&self, _: &Incoming) -> Option<Tokens> {
        None
    }
}

#[tokio::test]
async fn a_desk_that_hangs_is_passed_by() {
    let fake = Settings::new().start().await;
    let mut settings = settings(&fake);
    (settings.limits.decide, settings.limits.threads) = (Duration::from_millis(50), 2);
    let (let_go, desk) = Hangs::new();
    let gateway = start_with(settings, desk.clone()).await.unwrap();
    for api in APIS {
        let body = body(api, false);
        let seen = ask(&url(&gateway), api, &body, LONG).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean));
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=slow"));
        assert_eq!(fake.log().last().unwrap().body, body);
    }
    // Each hangs with a call that nobody sends: for the third there was a thread more.
    drop(let_go);
    until(|| desk.told.load(atomic::Ordering::SeqCst) == 3).await;
    gateway.stop().await;
    assert_eq!(desk.told.load(atomic::Ordering::SeqCst), 3);
}

/// A desk that hangs in some conversations.
struct HangsInSome(Hangs);

impl Decide for HangsInSome {
    fn decide(&self, incoming: &Incoming) -> Decision {
        match incoming.body.contains("hang") {
            true => self.0.decide(incoming),
            false => Decision::PassOn(Reason::Side),
        }
    }

    fn answered(&self, _: Call, _: Option<&Usage>) {}

    fn overflowed(&self, _: Call, _: Overflow) -> Option<Call> {
        None
    }

    fn count(&self, _: &Incoming) -> Option<Tokens> {
        None
    }
}

#[tokio::test]
async fn conversations_that_hang_cost_others_no_decision() {
    let fake = Settings::new().start().await;
    let mut settings = settings(&fake);
    (settings.limits.decide, settings.limits.threads) = (Duration::from_millis(600), 2);
    let (let_go, go) = channel();
    let desk = Arc::new(HangsInSome(Hangs { go: Mutex::new(go), told: 0.into() }));
    let gateway = start_with(settings, desk).await.unwrap();
    for n in 0..6 {
        let mut slow = body(Api::Chat, false);
        slow["messages"][0]["content"] = "hang".into();
        let seen = ask(&url(&gateway), Api::Chat, &slow, LONG).await;
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=slow"), "{n}");
        // More hang than there are threads.
        let seen = ask(&url(&gateway), Api::Chat, &body(Api::Chat, false), LONG).await;
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=side"), "{n}");
    }
    drop(let_go);
    gateway.stop().await;
}

#[tokio::test]
async fn every_reason_is_said_and_counted() {
    let fake = Settings::new().start().await;
    for reason in Reason::ALL {
        let gateway = start_with(settings(&fake), Arc::new(PassesOn(reason))).await.unwrap();
        let seen = ask(&url(&gateway), Api::Chat, &body(Api::Chat, false), LONG).await;
        assert_eq!(seen.header("x-longhaul"), Some(format!("passed-on; why={reason}").as_str()));
        assert_eq!(gateway.figures().passed_on[reason.name()], 1);
        let page = client().get(url(&gateway) + "/metrics").send().await.unwrap().text().await.unwrap();
        assert!(page.contains(&format!("longhaul_passed_on_total{{reason=\"{reason}\"}} 1")), "{page}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::best());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

/// What a provider gets of a compressed body: headers and bytes.
#[tokio::test]
async fn a_compressed_body_is_read_and_goes_on_as_it_came() {
    let fake = Settings::new().start().await;
    let desk = Arc::new(Scripted::default());
    let gateway = start_with(settings(&fake), desk.clone()).await.unwrap();
    let plain = body(Api::Anthropic, false).to_string();
    for (packing, packed) in
        [("gzip", gzip(plain.as_bytes())), ("zstd", zstd::encode_all(plain.as_bytes(), 3).unwrap())]
    {
        let request = client().post(url(&gateway) + path(Api::Anthropic)).header("content-encoding", packing);
        see(request.body(packed.clone()), LONG).await;
        assert_eq!(*desk.seen.lock().unwrap().last().unwrap().body, *plain);
        let call = fake.log().last().unwrap().clone();
        assert_eq!(call.header("content-encoding"), Some(packing));
        assert_eq!(call.header("content-length"), Some(packed.len().to_string().as_str()));
    }
}

#[tokio::test]
async fn a_new_body_for_a_compressed_one_goes_out_plain() {
    let fake = Settings::new().start().await;
    let small = body(Api::Anthropic, false);
    let desk = Scripted { body: Some(small.to_string().into()), ..Scripted::default() };
    let gateway = start_with(settings(&fake), Arc::new(desk)).await.unwrap();
    let request = client().post(url(&gateway) + path(Api::Anthropic)).header("content-encoding", "gzip");
    assert_eq!(see(request.body(gzip(b"{\"messages\": []}")), LONG).await.status, 200);
    let call = fake.log().last().unwrap().clone();
    assert_eq!((call.header("content-encoding"), &call.body), (None, &small));
}

#[tokio::test]
async fn a_decompression_bomb_goes_on_as_it_came() {
    let fake = Settings::new().start().await;
    let mut settings = settings(&fake);
    settings.limits.body_bytes = 1 << 20;
    let gateway = start_with(settings, Arc::new(Panics)).await.unwrap();
    let bomb = gzip(&vec![b' '; 64 << 20]);
    assert!(bomb.len() < 1 << 17);
    let request = client().post(url(&gateway) + path(Api::Chat)).header("content-encoding", "gzip");
    let seen = see(request.body(bomb.clone()), LONG).await;
    // The fake does not read it either.
    assert_eq!((seen.status, seen.header("x-longhaul")), (400, Some("passed-on; why=unreadable")));
    let length = bomb.len().to_string();
    assert_eq!(fake.log()[0].header("content-length"), Some(length.as_str()));
}

#[tokio::test]
async fn a_huge_body_is_passed_on_as_it_comes() {
    let fake = Settings::new().start().await;
    let mut settings = settings(&fake);
    settings.limits.body_bytes = 100_000;
    let gateway = start_with(settings, Arc::new(Panics)).await.unwrap();
    let mut huge = body(Api::Chat, true);
    huge["messages"][0]["content"] = "x".repeat(3_000_000).into();
    let at = url(&gateway) + path(Api::Chat);
    // With a length, and in chunks.
    let text = huge.to_string();
    let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
        text.as_bytes().chunks(40_000).map(|piece| Ok(piece.to_vec())).collect();
    let chunks = reqwest::Body::wrap(http_body_util::StreamBody::new(Pieces(pieces.into_iter())));
    for (number, sent) in [reqwest::Body::from(text.clone()), chunks].into_iter().enumerate() {
        let seen = see(client().post(&at).body(sent), LONG).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean));
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=unreadable"));
        let call = fake.log().last().unwrap().clone();
        assert!(call.body == huge);
        let length = text.len().to_string();
        assert_eq!(call.header("content-length"), (number == 0).then_some(length.as_str()));
    }
}

/// Pieces of a body of which nobody knows the length.
struct Pieces(std::vec::IntoIter<Result<Vec<u8>, std::io::Error>>);

impl futures_core::Stream for Pieces {
    type Item = Result<http_body::Frame<bytes::Bytes>, std::io::Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let next = self.0.next().map(|piece| piece.map(|piece| http_body::Frame::data(piece.into())));
        std::task::Poll::Ready(next)
    }
}

/// What is no request at all gets the provider's own words.
#[tokio::test]
async fn nonsense_gets_the_providers_answer() {
    let (alone, fake) = (Settings::new().start().await, Settings::new().start().await);
    let gateway = common::passing(&fake).await;
    let nonsense: [&[u8]; 7] =
        [b"", b"{", b"null", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[[[[", br#"{"messages": [{"role": "tool"}]}"#];
    for api in APIS {
        for body in nonsense {
            let at = |base: &str| client().post(format!("{base}{}", path(api))).body(body.to_vec());
            let (direct, through) =
                (see(at(&alone.base_url()), LONG).await, see(at(&url(&gateway)), LONG).await);
            assert_eq!(through.without_ours(), direct, "{api:?} {body:?}");
        }
    }
}
