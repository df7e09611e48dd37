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
use serde_json::Value;

const STEPS: usize = 30;

async fn gateway(fake: &Fake, folder: &tempfile::TempDir, window: Option<u64>) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = window.map(Tokens);
    start(settings).await.unwrap()
}

fn script() -> Script {
    Script::new().answers((0..200).map(|n| Answer::new().text(&format!("I read file {n}."))))
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
        let gateway = gateway(&fake, &folder, Some(12_000)).await;
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
        let resent = gateway.figures().resent;
        assert!((1..=4).contains(&resent), "{api:?} {resent}");
        gateway.stop().await;
    }
}
