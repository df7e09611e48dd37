//! The gateway with its desk between a client and a provider: conversations stay in their window, streams are what
//! the provider sent, overflows are hidden, and a restart changes no byte.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
mod common;

use clients::{APIS, body_of, conversation, model};
use common::{End, LONG, ask, settings, url};
use longhaul::Tokens;
use longhaul_fake::{Answer, Fake, Settings as Script};
use longhaul_gateway::{Gateway, start};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

const STEPS: usize = 30;

async fn gateway(fake: &Fake, folder: &tempfile::TempDir, window: Option<u64>) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = window.map(Tokens);
    start(settings).await.unwrap()
}

fn script() -> Script {
    script_of(200)
}

fn script_of(steps: usize) -> Script {
    Script::new().answers((0..steps).map(|n| Answer::new().text(&format!("I read file {n}."))))
}

fn step(api: Api, n: usize) -> Value {
    let mut body = body_of(api, model(api), &conversation(api, n), true);
    body["stream"] = true.into();
    body
}

#[tokio::test]
async fn a_conversation_stays_in_its_window_over_every_api() {
    for api in APIS {
        let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder, Some(9_000)).await;
        let mut came = 0;
        for n in 0..STEPS {
            let body = step(api, n);
            came += body.to_string().len();
            let seen = ask(&url(&gateway), api, &body, LONG).await;
            assert_eq!((seen.status, seen.end), (200, End::Clean), "{api:?} {n}");
            let says = seen.header("x-longhaul").unwrap();
            assert!(says.starts_with(if n == 0 { "new; view=" } else { "extends; view=" }), "{says}");
        }
        assert_eq!(fake.violations(), [""; 0], "{api:?}");
        let log = fake.log();
        let sent: usize = log.iter().map(|call| call.body.to_string().len()).sum();
        assert!(log.len() == STEPS && sent * 5 < came * 4, "{api:?} {sent} of {came} bytes");
        let figures = gateway.figures();
        assert_eq!((figures.calls, figures.passed_on.len()), (STEPS as u64, 0), "{figures:?}");
        assert!(figures.saved > 10_000 && figures.output > 0, "{figures:?}");
        // This client marks nothing for the cache of Anthropic, and its own bytes go out until something is edited.
        assert!(api == Api::Anthropic || figures.cache_read > figures.input, "{figures:?}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_restart_after_every_call_sends_the_same() {
    for api in APIS {
        let (one, folder) = (script().start().await, tempfile::tempdir().unwrap());
        let lives = gateway(&one, &folder, Some(12_000)).await;
        let (other, folder) = (script().start().await, tempfile::tempdir().unwrap());
        for n in 0..STEPS {
            ask(&url(&lives), api, &step(api, n), LONG).await;
            let restarted = gateway(&other, &folder, Some(12_000)).await;
            ask(&url(&restarted), api, &step(api, n), LONG).await;
            restarted.stop().await;
        }
        let bodies = |fake: &Fake| fake.log().into_iter().map(|call| call.body).collect::<Vec<_>>();
        for (n, (one, other)) in bodies(&one).iter().zip(bodies(&other)).enumerate() {
            assert!(*one == other, "{api:?} {n} is another");
        }
    }
}

/// The provider's window is smaller than anybody thought: no client hears of it.
#[tokio::test]
async fn an_overflow_is_hidden() {
    for api in APIS {
        let (fake, folder) = (script().window(9_000).start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder, None).await;
        for n in 0..STEPS {
            let seen = ask(&url(&gateway), api, &step(api, n), LONG).await;
            assert_eq!((seen.status, seen.end), (200, End::Clean), "{api:?} {n}");
        }
        assert_eq!(fake.violations(), [""; 0], "{api:?}");
        // The window is learnt: it does not happen at every call.
        let resent = gateway.figures().resent.get("too-long").copied().unwrap_or_default();
        assert!((1..=4).contains(&resent), "{api:?} {resent}");
        gateway.stop().await;
    }
}

/// A model gets back what was taken out, byte for byte, after a restart too; other tenants do not.
#[tokio::test]
async fn what_was_taken_out_is_recalled_by_a_tool() {
    for api in APIS {
        let script = script_of(STEPS).answers([
            Answer::new().call("longhaul_pin", json!({"text": "Never touch src/old."})),
            Answer::new().call("longhaul_context", json!({})),
            Answer::new().call("longhaul_unpin", json!({"number": 1})),
        ]);
        let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
        let mut served = gateway(&fake, &folder, Some(12_000)).await;
        for n in 0..STEPS {
            ask(&url(&served), api, &step(api, n), LONG).await;
        }
        let sent = fake.log().last().unwrap().body.to_string();
        let handle = sent.split("; recall ").nth(1).unwrap()[..12].to_owned();
        for _ in 0..2 {
            let recalled = tool(&served, "recall", json!({"handle": handle})).await;
            for n in 0..5 {
                assert!(recalled.contains(&clients::result(n)), "{api:?} {n}");
            }
            let lines = tool(&served, "recall", json!({"handle": handle, "pattern": "helper_3_17\\("})).await;
            assert!(lines.contains("fn helper_3_17(value: u32)") && lines.lines().count() == 1, "{lines}");
            served.stop().await;
            served = gateway(&fake, &folder, Some(12_000)).await;
        }
        assert_eq!(
            tool(&served, "recall", json!({"handle": "000000000000"})).await,
            "no single original has the handle \"000000000000\""
        );
        assert!(tool(&served, "search", json!({"query": "which defines"})).await.contains("Read all files"));
        // Which answer called the tool is not known after a restart.
        let refused = tool(&served, "pin", json!({"text": "Never touch src/old."})).await;
        assert!(refused.starts_with("no conversation here has just called `pin`"), "{refused}");
        ask(&url(&served), api, &step(api, STEPS), LONG).await;
        assert_eq!(
            tool(&served, "pin", json!({"text": "Never touch src/old."})).await,
            "Pin 1: Never touch src/old."
        );
        ask(&url(&served), api, &step(api, STEPS + 1), LONG).await;
        assert!(fake.log().last().unwrap().body.to_string().contains("Never touch src/old."), "{api:?}");
        assert!(tool(&served, "context", json!({})).await.contains("in a window of 12000; "), "{api:?}");
        ask(&url(&served), api, &step(api, STEPS + 2), LONG).await;
        assert_eq!(
            tool(&served, "unpin", json!({"number": 1})).await,
            "No goal was set, and nothing is pinned."
        );
        assert_eq!(fake.violations(), [""; 0]);
        served.stop().await;
    }
}

/// What a tool of the gateway says.
async fn tool(gateway: &Gateway, name: &str, arguments: Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let request = common::client().post(url(gateway) + "/mcp").header("content-type", "application/json");
    let seen = common::see(request.body(message.to_string()), LONG).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    let answer: Value = serde_json::from_slice(&seen.body).unwrap();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A page that a person looks at could otherwise pin what it likes.
#[tokio::test]
async fn a_page_of_another_site_uses_no_tool() {
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder, None).await;
    for (origin, status) in [
        ("https://evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("null", 403),
        // Another page of this machine is another page.
        ("http://localhost:3000", 403),
        ("http://127.0.0.1", 403),
        (&url(&gateway), 200),
    ] {
        let request = common::client().post(url(&gateway) + "/mcp").header("origin", origin);
        let seen = common::see(request.body(r#"{"id":1,"method":"ping"}"#), LONG).await;
        assert_eq!(seen.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_gateway_without_its_store_is_alive_and_not_ready() {
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder, None).await;
    let status =
        async |path: &str| common::see(common::client().get(url(&gateway) + path), LONG).await.status;
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 200));
    let other = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    other.execute_batch("DROP TABLE session").unwrap();
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 503));
}

/// A desk whose tools never answer.
struct SlowTools(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl longhaul_gateway::Decide for SlowTools {
    fn decide(&self, _: &longhaul_gateway::Incoming) -> longhaul_gateway::Decision {
        longhaul_gateway::Decision::PassOn(longhaul_gateway::Reason::Side)
    }

    fn answered(&self, _: longhaul_gateway::Call, _: Option<&longhaul::Usage>) {}

    fn overflowed(&self, _: longhaul_gateway::Call, _: longhaul::Overflow) -> Option<longhaul_gateway::Call> {
        None
    }

    fn count(&self, _: &longhaul_gateway::Incoming) -> Option<Tokens> {
        None
    }

    fn tools(&self, _: &longhaul_gateway::ToolCaller, _: &str) -> longhaul_gateway::ToolAnswer {
        // Until the test is over.
        _ = self.0.lock().unwrap().recv();
        longhaul_gateway::ToolAnswer::Nothing
    }
}

#[tokio::test]
async fn tools_that_take_long_hold_no_request_up() {
    let fake = script().start().await;
    let (over, wait) = std::sync::mpsc::channel();
    let desk = std::sync::Arc::new(SlowTools(std::sync::Mutex::new(wait)));
    let gateway = longhaul_gateway::start_with(settings(&fake), desk).await.unwrap();
    let ping = |_| {
        let request = common::client().post(url(&gateway) + "/mcp").body(r#"{"id":1,"method":"ping"}"#);
        tokio::spawn(request.send())
    };
    // More than there are threads for requests.
    let asked: Vec<_> = (0..8).map(ping).collect();
    tokio::time::sleep(common::SHORT).await;
    for api in APIS {
        let seen = ask(&url(&gateway), api, &step(api, 1), LONG).await;
        assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=side"), "{api:?}");
    }
    drop(over);
    for asked in asked {
        assert_eq!(asked.await.unwrap().unwrap().status(), 202);
    }
}

/// Issue 32: what could not be stored is stored without a request, also while the gateway stops.
#[tokio::test]
async fn what_could_not_be_stored_is_stored_when_the_store_is_back() {
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder, None).await;
    let place = folder.path().join("sessions.db");
    let lock = || {
        let other = rusqlite::Connection::open(&place).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    };
    let asks = async |n: usize| {
        let seen = ask(&url(&gateway), Api::Chat, &step(Api::Chat, n), LONG).await;
        let says = seen.header("x-longhaul").unwrap_or_default().to_owned();
        assert!(seen.status == 200 && says.starts_with(if n == 0 { "new" } else { "extends" }), "{n} {says}");
    };
    let messages = || {
        let store = longhaul_store::open(place.to_str().unwrap()).unwrap();
        let all = store.list(&longhaul_store::Filter::default(), 9).unwrap();
        assert_eq!(all.len(), 1);
        all[0].messages
    };
    let ready = async || common::see(common::client().get(url(&gateway) + "/readyz"), LONG).await;
    for n in 0..3 {
        asks(n).await;
    }
    let locked = lock();
    for n in 3..6 {
        asks(n).await;
    }
    let seen = ready().await;
    assert_eq!(seen.status, 503);
    assert!(seen.text().contains("sessions.db is in use by others") && seen.text().lines().count() == 1);
    drop(locked);
    common::until(|| messages() == 11).await;
    assert_eq!(ready().await.status, 200);
    let locked = lock();
    for n in 6..8 {
        asks(n).await;
    }
    drop(locked);
    gateway.stop().await;
    assert_eq!(messages(), 15);
}
