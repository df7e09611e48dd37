//! What agents cost through the gateway, next to what they cost without it: no agent may pay for a small window with
//! prompts that change at every call.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
#[path = "../common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::fmt::Write;

use agents::{AGENTS, Agent};
use common::{End, LONG, client, path, see, settings, url};
use longhaul::Tokens;
use longhaul_fake::{Answer, Api, Call, Fake, Settings as Script};
use longhaul_gateway::{Costs, Gateway, start};
use serde_json::Value;

/// The cost of a conversation through the gateway is at most this many percent of its cost without.
const MOST_PERCENT: u64 = 105;

/// At most one call in this many is a break: a compaction must leave room for the steps that come.
const CALLS_PER_BREAK: usize = 6;

/// What the gateway says that a conversation would have cost without it is off by so many percent at most.
const MOST_OFF: u64 = 2;

/// What a provider counted of a conversation.
#[derive(Debug, PartialEq, Eq)]
struct Bill {
    calls: usize,
    /// Calls that did not read the whole prompt of the call before them from the cache.
    breaks: usize,
    /// Tokens that were read from the cache.
    read: u64,
    /// All other tokens of prompts.
    new: u64,
    /// Tokens of the largest prompt.
    peak: u64,
}

impl Bill {
    fn of(fake: &Fake) -> Self {
        let log = fake.log();
        // Tokens are rounded down where a prefix ends and up where a prompt does.
        let breaks = log.windows(2).filter(|pair| pair[1].counts.cached + 1 < kept(&pair[0]));
        let read = log.iter().map(|call| call.counts.cached).sum();
        let prompts: u64 = log.iter().map(|call| call.counts.prompt).sum();
        let peak = log.iter().map(|call| call.counts.prompt).max().unwrap();
        Self { calls: log.len(), breaks: breaks.count(), read, new: prompts - read, peak }
    }

    fn of_calls(calls: u64) -> Self {
        Self { calls: calls as usize, breaks: 0, read: 0, new: 0, peak: 0 }
    }

    /// In tokens of uncached input: reading costs a tenth of it, and writing a quarter more.
    fn cost(&self) -> u64 {
        (self.read * 10 + self.new * 125) / 100
    }
}

/// The tokens of a prompt that the next call can read from the cache.
fn kept(call: &Call) -> u64 {
    match call.api {
        Api::Messages => call.counts.cached + call.counts.written,
        Api::Chat | Api::Responses => call.counts.prompt,
    }
}

/// Plays the whole conversation of an agent against this base URL.
async fn play(agent: &Agent, base: &str) {
    for files in 0..=agent.files {
        let body = (agent.request)(files).to_string();
        let request =
            client().post(format!("{base}{}", path(agent.api))).header("content-type", "application/json");
        let request =
            agent.headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let seen = see(request.body(body), LONG).await;
        assert_eq!(
            (seen.status, seen.end),
            (200, End::Clean),
            "{} after {files} files: {}",
            agent.name,
            seen.text()
        );
    }
}

async fn provider(agent: &Agent) -> Fake {
    let answers = (0..=agent.files).map(|n| Answer::new().text(&format!("I will read part {n:02} next.")));
    Script::new().answers(answers).piece(1_000).start().await
}

async fn without(agent: &Agent) -> Bill {
    let fake = provider(agent).await;
    play(agent, &fake.base_url()).await;
    assert_eq!(fake.violations(), [""; 0], "{}", agent.name);
    Bill::of(&fake)
}

/// The bill with a gateway, how many folds it made, and what its books say.
async fn with(agent: &Agent) -> (Bill, usize, Costs) {
    let (fake, folder) = (provider(agent).await, tempfile::tempdir().unwrap());
    let mut settings = settings(&fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = Some(Tokens(agent.window));
    settings.desk.recall = agent.recall;
    let gateway = start(settings).await.unwrap();
    play(agent, &url(&gateway)).await;
    assert_eq!(fake.violations(), [""; 0], "{}", agent.name);
    let folds = folds(&gateway).await;
    let figures = gateway.stop().await;
    (Bill::of(&fake), folds, figures.bookings.total())
}

/// How often the only conversation was folded. One compaction may make several folds, one around the other.
async fn folds(gateway: &Gateway) -> usize {
    let sessions = inspected(gateway, "sessions").await;
    assert_eq!(sessions["total"], 1);
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    let session = inspected(gateway, &format!("session/{id}")).await;
    let folds = session["edits"].as_array().unwrap().iter().filter(|edit| edit["kind"] == "fold");
    folds.map(|edit| edit["call"].as_u64().unwrap()).collect::<BTreeSet<_>>().len()
}

async fn inspected(gateway: &Gateway, path: &str) -> Value {
    let seen = see(client().get(format!("{}/inspect/api/{path}", url(gateway))), LONG).await;
    serde_json::from_slice(&seen.body).unwrap()
}

#[tokio::test]
async fn no_agent_costs_more_through_the_gateway() {
    let mut table = format!(
        "{:<22}{:<18}{:>8}{:>12}{:>7}{:>7}{:>8}{:>8}{:>9}{:>9}{:>9}{:>9}\n",
        "agent",
        "API",
        "window",
        "max_tokens",
        "calls",
        "folds",
        "breaks",
        "peak",
        "read",
        "new",
        "cost",
        "without"
    );
    let mut too_much = Vec::new();
    for agent in &AGENTS {
        let (bill, folds, costs) = with(agent).await;
        let plain = without(agent).await;
        let [billed, estimated] = [costs.billed, costs.otherwise].map(|spent| Bill {
            read: spent.tokens.read,
            new: spent.tokens.input + spent.tokens.written,
            ..Bill::of_calls(costs.calls)
        });
        assert_eq!(
            (billed.calls, billed.read, billed.new),
            (bill.calls, bill.read, bill.new),
            "{}",
            agent.name
        );
        assert_eq!(costs.folds as usize, folds, "{}", agent.name);
        assert!(
            estimated.cost().abs_diff(plain.cost()) * 100 <= plain.cost() * MOST_OFF,
            "{}: {} without, estimated as {}",
            agent.name,
            plain.cost(),
            estimated.cost()
        );
        assert_eq!(
            (plain.calls, plain.breaks),
            (agent.files + 1, 0),
            "{}: the agent's own prompts",
            agent.name
        );
        assert!(bill.peak <= agent.window, "{} sent {} tokens", agent.name, bill.peak);
        let max_tokens = agent.max_tokens().map_or_else(|| "-".to_owned(), |most| most.to_string());
        writeln!(
            table,
            "{:<22}{:<18}{:>8}{:>12}{:>7}{:>7}{:>8}{:>8}{:>9}{:>9}{:>9}{:>9}",
            agent.name,
            agent.api.name(),
            agent.window,
            max_tokens,
            bill.calls,
            folds,
            bill.breaks,
            bill.peak,
            bill.read,
            bill.new,
            bill.cost(),
            plain.cost()
        )
        .unwrap();
        if bill.cost() * 100 > plain.cost() * MOST_PERCENT || bill.breaks * CALLS_PER_BREAK > bill.calls {
            too_much.push((agent.name, agent.window));
        }
    }
    println!("{table}");
    assert_eq!(
        too_much,
        [],
        "more than {MOST_PERCENT} % of the cost without us, or too many breaks:\n{table}"
    );
    insta::assert_snapshot!(table);
}
