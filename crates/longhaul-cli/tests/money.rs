//! What `wrap` reports at its end: the bill, and what it would have been without Longhaul, next to what the same requests
//! really cost without it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;

use common::{Home, text};
use longhaul::Models;
use longhaul::size::Tally;
use longhaul_fake::{Fake, Settings};
use serde_json::{Value, json};

/// A provider that bills by the token and caches what is marked.
const MODEL: &str = "claude-opus-4-1";

/// What a tool says.
fn listing(step: usize) -> String {
    (0..120).map(|line| format!("src/part_{step}/file_{line}.rs: fn name_{step}_{line}() {{}}\n")).collect()
}

/// Marks the end of a prefix for the cache.
fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

/// A conversation of an agent after so many steps.
fn body(steps: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Look at all parts."})];
    for step in 0..steps {
        let call = json!({"type": "tool_use", "id": format!("c{step}"), "name": "bash",
            "input": {"command": format!("ls {step}")}});
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("c{step}"), "content": listing(step)});
        let result = if step + 1 == steps { marked(result) } else { result };
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    let system = marked(json!({"type": "text", "text": "You are an agent. Work with care. ".repeat(200)}));
    let tool = json!({"name": "bash", "input_schema": {"type": "object"}});
    json!({"model": MODEL, "max_tokens": 1_000, "system": [system], "messages": messages, "tools": [tool]})
}

/// The same with another field.
fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// What a provider billed, in dollars.
fn dollars(fake: &Fake) -> f64 {
    let price = Models::builtin().find(MODEL).price.unwrap();
    let bill = |call: &longhaul_fake::Call| {
        let counts = &call.counts;
        let input = counts.prompt - counts.cached - counts.written;
        let tally = Tally { input, read: counts.cached, written: counts.written, ..Tally::default() };
        price.cost(&Tally { output: counts.output, ..tally }).dollars()
    };
    fake.log().iter().map(bill).sum()
}

/// Runs an agent that sends these requests with this header, behind Longhaul or not. Gives what it says at its end, and the
/// bill; `None` where there is no curl.
async fn played(bodies: &[Value], wrapped: Option<&[&str]>, header: &str) -> Option<(String, f64)> {
    let (said, fake) = played_at(bodies, wrapped, header).await?;
    Some((said.lines().last().unwrap_or_default().to_owned(), dollars(&fake)))
}

/// The same. Gives all that it says, and the provider.
async fn played_at(bodies: &[Value], wrapped: Option<&[&str]>, header: &str) -> Option<(String, Fake)> {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    if !home.run("sh", &["-c", "command -v curl"]).output().unwrap().status.success() {
        eprintln!("skipped: there is no curl");
        return None;
    }
    let mut asks = String::new();
    for (n, body) in bodies.iter().enumerate() {
        fs::write(home.at(&format!("body_{n}.json")), body.to_string()).unwrap();
        asks += &format!(
            "curl -sf -o /dev/null -H '{header}' -H 'content-type: application/json' \
             $ANTHROPIC_BASE_URL/v1/messages -d @body_{n}.json || exit 9\n"
        );
    }
    let agent = home.script("bin/agent", &asks);
    let mut command = match wrapped {
        Some(flags) => home.longhaul(&[&["wrap"], flags, &["agent"]].concat()),
        None => home.run(agent, &[]),
    };
    let output = command.env("ANTHROPIC_BASE_URL", fake.base_url()).output().unwrap();
    let said = text(&output.stderr);
    if std::env::var("DBG").is_ok() {
        println!("{}", fs::read_to_string(home.at("log")).unwrap_or_default());
        for c in fake.log() {
            println!("{:?}", c.counts);
        }
    }
    assert_eq!((output.status.code(), fake.log().len()), (Some(0), bodies.len()), "{said}");
    Some((said, fake))
}

const KEY: &str = "x-api-key: sk-ant-api03-one";

/// The dollars of a clause such as `about $1.23 without`.
fn told(line: &str, clause: usize) -> f64 {
    let clause = line.split("; ").nth(clause).unwrap_or_else(|| panic!("{line}"));
    let digits: String = clause.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_is_what_it_cost_and_would_have_cost() {
    let bodies: Vec<Value> = (0..30).map(body).collect();
    let Some((line, billed)) = played(&bodies, Some(&["--window", "16000"]), KEY).await else {
        return;
    };
    let (_, without) = played(&bodies, None, KEY).await.unwrap();
    assert!(line.starts_with(&format!("longhaul: 30 calls; ${billed:.2}; about $")), "{billed}: {line}");
    assert!(billed < without && (told(&line, 2) - without).abs() < without * 0.05, "{without}: {line}");
    assert!(line.contains(" folds") && !line.contains("more"), "{line}");
}

/// A fold that nothing follows is paid for and saves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_says_when_it_cost_more() {
    let bodies: Vec<Value> = (0..14).map(body).collect();
    // The call at which it folds is the last one.
    let at = |calls: usize| {
        let bodies = bodies[..calls].to_vec();
        async move { played(&bodies, Some(&["--window", "16000"]), KEY).await }
    };
    for calls in 9..=14 {
        let Some((line, billed)) = at(calls).await else { return };
        if !line.contains("1 fold") {
            assert!(line.contains("; about the same without; nothing was folded: "), "{line}");
            continue;
        }
        let (_, without) = played(&bodies[..calls], None, KEY).await.unwrap();
        assert!(billed > without, "{billed} {without}");
        assert!(line.contains(" without: Longhaul cost $"), "{line}");
        assert!((told(&line, 1) - billed).abs() < 0.006, "{billed}: {line}");
        assert!(line.ends_with("; 1 fold; a fold pays back only where many calls follow it"), "{line}");
        return;
    }
    panic!("nothing was folded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_says_why_nothing_was_saved() {
    let bodies: Vec<Value> = (0..4).map(body).collect();
    let Some((line, billed)) = played(&bodies, Some(&[]), KEY).await else { return };
    assert_eq!(
        line,
        format!(
            "longhaul: 4 calls; ${billed:.2}; about the same without; \
             nothing was folded: the conversation never filled half of its window"
        )
    );
    // A subscription is not billed by the token.
    let login = "authorization: Bearer sk-ant-oat01-one";
    let (line, _) = played(&bodies, Some(&[]), login).await.unwrap();
    assert!(
        line.starts_with(&format!("longhaul: 4 calls; ${billed:.2} at API prices; about the same")),
        "{line}"
    );
    // A model that nobody knows has no price.
    let bodies: Vec<Value> = bodies.into_iter().map(|body| with(body, "model", "my-own".into())).collect();
    let (line, _) = played(&bodies, Some(&[]), KEY).await.unwrap();
    assert!(
        line.contains(" out; the same without; no price is known for the model; ") && !line.contains('$'),
        "{line}"
    );
}

/// A client that changes a setting of the prompt at every call has no use of the cache, with Longhaul or without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_says_that_prefixes_break() {
    let at = |step: usize| json!({"type": if step.is_multiple_of(2) { "auto" } else { "any" }});
    let bodies: Vec<Value> = (0..6).map(|step| with(body(step), "tool_choice", at(step))).collect();
    let Some((line, _)) = played(&bodies, Some(&[]), KEY).await else { return };
    assert!(line.contains("; about the same without; nothing was folded"), "{line}");
    assert!(
        line.ends_with("; 5 of 6 calls broke their prefix, and what follows a break is billed as new"),
        "{line}"
    );
}

/// The provider gets what the agent sends, and the report says what it would have cost with Longhaul.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observing_sends_the_agents_own_requests() {
    let bodies: Vec<Value> = (0..30).map(body).collect();
    let flags = ["--window", "16000"];
    let Some((said, fake)) = played_at(&bodies, Some(&["--observe", "--window", "16000"]), KEY).await else {
        return;
    };
    let got: Vec<Value> = fake.log().into_iter().map(|call| call.body).collect();
    assert!(got == bodies, "other requests were sent");
    let lines: Vec<&str> = said.lines().collect();
    let [.., line, would] = lines[..] else { panic!("{said}") };
    let billed = dollars(&fake);
    assert!(
        line.starts_with(&format!("longhaul: 30 calls, sent as they came; ${billed:.2}; about $")),
        "{said}"
    );
    // What the same session costs where its views are sent.
    let (with, really) = played(&bodies, Some(&flags), KEY).await.unwrap();
    assert!((told(line, 2) - really).abs() < really * 0.05, "{really}: {line}");
    let folds = |line: &str| line.split("; ").find(|clause| clause.ends_with(" folds")).map(str::to_owned);
    assert!(folds(line).is_some() && folds(line) == folds(&with), "{line}\n{with}");
    assert!(would.starts_with("longhaul: of ") && would.contains(" it would have left out "), "{said}");
    assert!(would.ends_with("; no rule of the guard would have been broken"), "{said}");
    assert!(!said.contains("release"), "{said}");
}
