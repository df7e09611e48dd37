//! What a gateway says that its calls cost: in the header, and for Prometheus.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
mod common;

use clients::{body_of, conversation};
use common::{LONG, ask, body, settings, until, url};
use longhaul_fake::{Answer, Counts, Settings};
use longhaul_gateway::start;
use longhaul_wire::api::Api;
use serde_json::json;

/// 3, 0.30, 3.75 and 15 dollars a million.
const SONNET: &str = "claude-sonnet-4-5";

#[tokio::test]
async fn calls_are_priced_as_the_provider_bills_them() {
    let counts = [
        // A title: no conversation of an agent, and passed on.
        Counts { prompt: 1_000, cached: 0, written: 0, output: 100 },
        Counts { prompt: 10_000, cached: 0, written: 9_000, output: 100 },
        Counts { prompt: 12_000, cached: 9_000, written: 2_000, output: 200 },
        Counts { prompt: 13_000, cached: 11_000, written: 2_000, output: 100 },
    ];
    let answers = counts.map(|counts| Answer::new().text("It is src/main.rs.").usage(counts));
    let (fake, folder) = (Settings::new().answers(answers).start().await, tempfile::tempdir().unwrap());
    let mut settings = settings(&fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    let gateway = start(settings).await.unwrap();
    let base = url(&gateway);

    let mut title = body(Api::Anthropic, false);
    title["model"] = json!(SONNET);
    let seen = ask(&base, Api::Anthropic, &title, LONG).await;
    assert_eq!(seen.header("x-longhaul"), Some("passed-on; why=side"));

    let mut said = Vec::new();
    for steps in 1..=3 {
        let body = body_of(Api::Anthropic, SONNET, &conversation(Api::Anthropic, steps), true);
        let seen = ask(&base, Api::Anthropic, &body, LONG).await;
        let costs =
            seen.header("x-longhaul").unwrap().split_once("; billed=").map(|(_, costs)| costs.to_owned());
        said.push(costs);
        until(|| gateway.figures().bookings.total().calls == 1 + steps as u64).await;
    }
    // Each names what the calls before it cost: 0.003 + 0.03375 + 0.0015, then 0.003 + 0.0027 + 0.0075 + 0.003 more.
    let want = [None, Some("0.0382; without=0.0382".to_owned()), Some("0.0544; without=0.0544".to_owned())];
    assert_eq!(said, want);

    let page = gateway.figures().prometheus();
    // 0.0045 for the title, and 0.0033 + 0.0075 + 0.0015 for the last call.
    for line in [
        "longhaul_billed_dollars_total{api=\"anthropic\",model=\"claude-sonnet-4\"} 0.07125",
        "longhaul_without_dollars_total{api=\"anthropic\",model=\"claude-sonnet-4\"} 0.07125",
        "longhaul_billed_calls_total{api=\"anthropic\",model=\"claude-sonnet-4\"} 4",
        "longhaul_unpriced_calls_total{api=\"anthropic\",model=\"claude-sonnet-4\"} 0",
        "longhaul_folds_total{api=\"anthropic\",model=\"claude-sonnet-4\"} 0",
        "longhaul_recalls_total 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    gateway.stop().await;
}

/// Clients choose the names of models: there is one row for all that nobody knows.
#[tokio::test]
async fn models_without_a_price_are_one_row() {
    let (fake, folder) = (Settings::new().start().await, tempfile::tempdir().unwrap());
    let mut settings = settings(&fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    let gateway = start(settings).await.unwrap();
    for model in ["my-model", "another", "a-third"] {
        let body = body_of(Api::Chat, model, &conversation(Api::Chat, 2), true);
        let seen = ask(&url(&gateway), Api::Chat, &body, LONG).await;
        assert_eq!((seen.status, seen.header("x-longhaul").unwrap().contains("billed")), (200, false));
    }
    let figures = gateway.stop().await;
    let total = figures.bookings.total();
    assert_eq!((figures.bookings.costs.len(), total.calls, total.unpriced, total.billed.pico), (1, 3, 3, 0));
    assert!(figures.prometheus().contains("model=\"unknown\"} 3\n"), "{}", figures.prometheus());
}
