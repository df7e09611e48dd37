//! Pins, goals and questions about the context go to the conversation that calls the tool, over real MCP: with several agents
//! at one gateway none steers another, and where it is not known who calls, nothing is done.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
mod common;

use std::time::Duration;

use clients::{APIS, body_of, conversation, model};
use common::{LONG, client, path, see, settings, url};
use longhaul_fake::{Answer, Fake, Settings as Script};
use longhaul_gateway::{Gateway, start};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

async fn gateway(fake: &Fake, folder: &tempfile::TempDir) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    start(settings).await.unwrap()
}

/// An agent with a conversation of its own.
struct Agent<'a> {
    gateway: &'a Gateway,
    api: Api,
    /// The start of its paths.
    scope: &'static str,
    /// The header that names its session.
    session: Option<&'static str>,
    name: &'static str,
    steps: usize,
}

impl<'a> Agent<'a> {
    fn new(gateway: &'a Gateway, api: Api, name: &'static str) -> Self {
        Self { gateway, api, scope: "", session: None, name, steps: 0 }
    }

    fn post(&self, path: &str) -> reqwest::RequestBuilder {
        let request = client().post(format!("{}{}{path}", url(self.gateway), self.scope));
        let request = request.header("content-type", "application/json");
        self.session.into_iter().fold(request, |request, name| request.header("x-session-id", name))
    }

    /// Asks the model for its next step.
    async fn asks(&mut self) {
        let mut messages = conversation(self.api, self.steps);
        messages[0]["content"] = format!("I am {}: read all files.", self.name).into();
        let mut body = body_of(self.api, model(self.api), &messages, true);
        body["stream"] = self.steps.is_multiple_of(2).into();
        self.steps += 1;
        let seen = see(self.post(path(self.api)).body(body.to_string()), LONG).await;
        let says = seen.header("x-longhaul").unwrap_or_default();
        assert!(seen.status == 200 && says.contains("view="), "{} {says} {}", seen.status, seen.text());
    }

    /// Calls a tool: what it says, and whether that is an error.
    async fn calls(&self, tool: &str, arguments: Value) -> (String, bool) {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let seen = see(self.post("/mcp").body(message.to_string()), LONG).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        let answer: Value = serde_json::from_slice(&seen.body).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), answer["result"]["isError"] == true)
    }
}

/// Calls the tool under the name that a client gives it.
fn calling(tool: &str, arguments: &Value) -> Answer {
    Answer::new().text("I note that.").call(&format!("mcp__longhaul__{tool}"), arguments.clone())
}

fn newest(fake: &Fake) -> String {
    fake.log().last().unwrap().body.to_string()
}

#[tokio::test]
async fn two_agents_on_one_gateway_never_pin_into_each_other() {
    const ROUNDS: usize = 4;
    let note = |who: &str, round: usize| json!({ "text": format!("Note {round} of {who}.") });
    for api in APIS {
        for scopes in [["", ""], ["/s/one", "/s/two"]] {
            let answers = (0..ROUNDS).flat_map(|round| {
                let goal = json!({ "text": format!("Goal {round} of b.") });
                [calling("pin", &note("a", round)), calling("pin", &note("b", round)), calling("goal", &goal)]
            });
            let fake = Script::new().answers(answers).start().await;
            let folder = tempfile::tempdir().unwrap();
            let gateway = gateway(&fake, &folder).await;
            let [mut a, mut b] = ["a", "b"].map(|name| Agent::new(&gateway, api, name));
            (a.scope, b.scope) = (scopes[0], scopes[1]);
            for round in 0..ROUNDS {
                a.asks().await;
                b.asks().await;
                // The conversation that was used last is that of the other agent.
                let (says, is_error) = a.calls("pin", note("a", round)).await;
                assert!(!is_error && says.contains("of a.") && !says.contains("of b."), "{api:?} {says}");
                let (says, is_error) = b.calls("pin", note("b", round)).await;
                assert!(!is_error && says.contains("of b.") && !says.contains("of a."), "{api:?} {says}");
                b.asks().await;
                let (says, _) = b.calls("goal", json!({ "text": format!("Goal {round} of b.") })).await;
                assert!(says.contains(&format!("Goal: Goal {round} of b.")), "{api:?} {says}");
                let sent = newest(&fake);
                assert!(sent.contains(&format!("Note {round} of b.")) && !sent.contains("of a."), "{sent}");
            }
            a.asks().await;
            let sent = newest(&fake);
            assert!((0..ROUNDS).all(|round| sent.contains(&format!("Note {round} of a."))), "{sent}");
            assert!(!sent.contains("of b."), "{sent}");
            assert_eq!(fake.violations(), [""; 0]);
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn where_nobody_or_several_may_have_called_nothing_is_done() {
    let same = json!({ "text": "Use tabs." });
    let script = || Script::new().answers((0..2).map(|_| calling("pin", &same)));
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    let [mut a, mut b] = ["a", "b"].map(|name| Agent::new(&gateway, Api::Anthropic, name));
    a.asks().await;
    let (says, is_error) = a.calls("pin", json!({ "text": "Use spaces." })).await;
    assert!(is_error && says.contains("nothing was done: have the model call it again"), "{says}");
    b.asks().await;
    let (says, is_error) = a.calls("pin", same.clone()).await;
    assert!(is_error && says.starts_with("several conversations may have called `pin`"), "{says}");
    // The call of another agent is none of a scope's.
    let stranger = Agent { scope: "/s/stranger", ..Agent::new(&gateway, Api::Anthropic, "c") };
    let (says, is_error) = stranger.calls("pin", same.clone()).await;
    assert!(is_error && says.starts_with("no conversation here has just called `pin`"), "{says}");
    for agent in [&mut a, &mut b] {
        agent.asks().await;
        assert!(!newest(&fake).contains("Use tabs.") && !newest(&fake).contains("Use spaces."));
    }
}

/// The same call of two agents is told apart by their scopes, or by the header with which they name their sessions.
#[tokio::test]
async fn the_same_call_of_two_agents_is_of_the_one_that_makes_it() {
    let same = json!({ "text": "Use tabs." });
    for (scopes, sessions) in [(["/s/one", "/s/two"], [None; 2]), ([""; 2], [Some("one"), Some("two")])] {
        let script = Script::new().answers((0..2).map(|_| calling("pin", &same)));
        let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder).await;
        let [mut a, mut b] = ["a", "b"].map(|name| Agent::new(&gateway, Api::Chat, name));
        (a.scope, b.scope) = (scopes[0], scopes[1]);
        (a.session, b.session) = (sessions[0], sessions[1]);
        a.asks().await;
        b.asks().await;
        assert_eq!(a.calls("pin", same.clone()).await, ("Pin 1: Use tabs.".to_owned(), false));
        b.asks().await;
        assert!(!newest(&fake).contains("Use tabs."), "{}", newest(&fake));
        a.asks().await;
        assert!(newest(&fake).contains("Use tabs."), "{}", newest(&fake));
        // A person asks in an agent that names its session: no answer of a model calls the tool.
        let (says, is_error) = a.calls("context", json!({})).await;
        assert_eq!((says.contains("Pin 1: Use tabs."), is_error), (a.session.is_some(), a.session.is_none()));
    }
}

/// Some agents run a tool as soon as they have its call, while the rest of the answer still comes.
#[tokio::test]
async fn a_call_of_an_answer_that_still_comes_is_waited_for() {
    let note = json!({ "text": "Use tabs." });
    let script = Script::new().answer(calling("pin", &note)).piece(4).pause(Duration::from_millis(2));
    let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    let mut asking = Agent::new(&gateway, Api::Anthropic, "a");
    let calling = Agent::new(&gateway, Api::Anthropic, "a");
    let ((), (says, is_error)) = tokio::join!(asking.asks(), calling.calls("pin", note));
    assert_eq!((&*says, is_error), ("Pin 1: Use tabs.", false));
}

/// Handles and words are of content: any agent of a tenant recalls and searches.
#[tokio::test]
async fn recall_and_search_are_the_tenants() {
    let (fake, folder) = (Script::new().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    Agent { scope: "/s/one", ..Agent::new(&gateway, Api::Chat, "a") }.asks().await;
    let other = Agent { scope: "/s/two", ..Agent::new(&gateway, Api::Chat, "b") };
    // The words of an answered call are stored beside the requests.
    let found = async || loop {
        let (says, is_error) = other.calls("search", json!({ "query": "read all files" })).await;
        assert!(!is_error, "{says}");
        if says.contains("read all files") {
            break;
        }
        tokio::time::sleep(common::SHORT).await;
    };
    tokio::time::timeout(LONG, found()).await.unwrap();
    assert!(
        other.calls("recall", json!({ "handle": "000000000000" })).await.0.contains("no single original")
    );
}
