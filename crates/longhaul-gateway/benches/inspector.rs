//! What the inspector takes: a list of 1,000 sessions, a call of 200,000 tokens, a session of 10,000 calls; and what a
//! page that listens costs the gateway. Run it on an idle machine: `cargo bench -p longhaul-gateway --bench inspector`.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::{Block, Json, Message, Models, Prepared, Profile, Role, Session, Time, Tokens, Usage};
use longhaul_fake::{Answer, Fake, Settings as Script};
use longhaul_gateway::{DeskSettings, Gateway, Limits, Open, Settings, start};
use longhaul_store::{About, Keeper, SessionId, Store};
use serde_json::{Value, json};

/// Words that no two texts share.
fn text(seed: usize, lines: usize) -> String {
    let line = |n: usize| {
        format!("fn helper_{seed}_{n}(value: u32) -> u32 {{ value.wrapping_mul({}) }}\n", seed * 31 + n)
    };
    (0..lines).map(line).collect()
}

/// A session of so many calls, with results of so many lines.
fn session(profile: Profile, calls: usize, lines: usize, window: Tokens) -> Session {
    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let mut session = Session::new(profile, model).with_window(window);
    session.push(Message::user("Read all files."));
    for n in 0..calls {
        let now = Time(1_700_000_000_000_000 + n as i64 * 5_000_000);
        let Ok(Prepared::Send(ticket)) = session.prepare(Some(now)) else { unreachable!("it fits") };
        let prompt = session.size().tokens.0;
        session.observe(ticket, &Usage { input: prompt, output: 90, ..Usage::default() });
        let path = Json::new(format!(r#"{{"path":"src/file_{n}.rs"}}"#)).unwrap();
        let id = format!("call_{n}");
        session.push(Message::new(
            Role::Assistant,
            vec![Block::text("I read on."), Block::call(id.as_str(), "Read", path)],
        ));
        session.push(Message::result(id.as_str(), text(n, lines)));
    }
    _ = session.prepare(None);
    session
}

fn keep(store: &Arc<dyn Store>, session: &Session) -> SessionId {
    let mut keeper = Keeper::create(store.clone(), &About::default(), session).unwrap();
    keeper.finish(session).unwrap();
    keeper.id()
}

/// The time of each of some questions, and the bytes of an answer.
async fn times(client: &reqwest::Client, url: &str, rounds: usize) -> (Vec<Duration>, usize) {
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..rounds {
        let started = Instant::now();
        let answer = client.get(url).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{url}");
        bytes = answer.bytes().await.unwrap().len();
        times.push(started.elapsed());
    }
    (times, bytes)
}

async fn say(client: &reqwest::Client, what: &str, url: &str) {
    let (mut times, bytes) = times(client, url, 21).await;
    let first = times[0];
    times.sort_unstable();
    println!(
        "{what:52} first {first:>10.1?}  median {:>10.1?}  {:>8} kB",
        times[times.len() / 2],
        bytes / 1000
    );
}

/// Processor time of the threads of this process, in seconds. None of them ends while it is measured.
fn cpu() -> f64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}

async fn gateway(fake: &Fake, place: &str) -> Gateway {
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: fake.base_url(),
        openai: fake.base_url() + "/v1",
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk: DeskSettings { window: Some(Tokens(32_000)), ..DeskSettings::new(place) },
        limits: Limits::default(),
    };
    start(settings).await.unwrap()
}

/// A conversation of so many steps through the gateway. Gives wall and processor time of a call.
async fn converse(client: &reqwest::Client, url: &str, name: usize, steps: usize) -> (f64, f64) {
    let mut messages = vec![json!({"role": "user", "content": format!("Read all files of {name}.")})];
    let tools: Value =
        json!([{"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}]);
    let (started, before) = (Instant::now(), cpu());
    for n in 0..steps {
        let body =
            json!({"model": "gpt-4o", "stream": true, "tools": tools, "messages": messages}).to_string();
        let request =
            client.post(format!("{url}/v1/chat/completions")).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.bytes().await.unwrap();
        let call = json!({"id": format!("c{n}"), "type": "function", "function": {"name": "Read", "arguments": format!("{{\"path\":\"f{n}\"}}")}});
        messages.push(json!({"role": "assistant", "content": "I read.", "tool_calls": [call]}));
        messages.push(
            json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": text(name * 1_000 + n, 20)}),
        );
    }
    // What is stored behind the last answer belongs to it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let calls = steps as f64;
    (started.elapsed().as_secs_f64() / calls, (cpu() - before) / calls)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {}", load.split_whitespace().take(3).collect::<Vec<_>>().join(" "));
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (many, large, listened) = (place("many.db"), place("large.db"), place("listened.db"));

    let store = longhaul_store::open(&many).unwrap();
    let small = session(Profile::longhaul(), 3, 4, Tokens(200_000));
    (0..1_000).for_each(|_| _ = keep(&store, &small));
    let store = longhaul_store::open(&large).unwrap();
    let started = Instant::now();
    // Nothing of it is folded: each result is a part of its own.
    let unfolded = Profile { dial: None, ..Profile::longhaul() };
    let whole = session(unfolded, 150, 40, Tokens(1_000_000));
    let long = session(Profile::longhaul(), 10_000, 6, Tokens(64_000));
    println!(
        "sessions were made in {:.1?}: {} and {} tokens",
        started.elapsed(),
        whole.size().tokens,
        long.size().tokens
    );
    let (whole, long) = (keep(&store, &whole), keep(&store, &long));
    drop(store);

    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let fake = Script::new().answers((0..100_000).map(|_| Answer::new().text("I read."))).start().await;
        let served = gateway(&fake, &many).await;
        say(&client, "list of 1,000 sessions", &format!("http://{}/inspect/api/sessions", served.address())).await;
        served.stop().await;

        let served = gateway(&fake, &large).await;
        let api = format!("http://{}/inspect/api/session", served.address());
        say(&client, "session of 151 calls, 200,000 tokens", &format!("{api}/{whole}")).await;
        say(&client, "its last call, all of it", &format!("{api}/{whole}/call/151")).await;
        say(&client, "… as the provider was told it", &format!("{api}/{whole}/call/151/raw")).await;
        say(&client, "session of 10,001 calls", &format!("{api}/{long}")).await;
        say(&client, "the same from its last call on", &format!("{api}/{long}?from=10001")).await;
        say(&client, "its last call", &format!("{api}/{long}/call/10001")).await;
        say(&client, "a call in its middle", &format!("{api}/{long}/call/5000")).await;
        say(&client, "find in it", &format!("{api}/{long}/find?q=helper_17_3")).await;
        served.stop().await;

        let served = gateway(&fake, &listened).await;
        let url = format!("http://{}", served.address());
        converse(&client, &url, 0, 60).await;
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for round in 0..20 {
            alone.push(converse(&client, &url, 2 * round + 1, 100).await);
            let mut page = client.get(format!("{url}/inspect/api/events")).send().await.unwrap();
            let reads = tokio::spawn(async move { while let Ok(Some(_)) = page.chunk().await {} });
            beside.push(converse(&client, &url, 2 * round + 2, 100).await);
            reads.abort();
        }
        let of = |rows: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| median(rows.iter().map(pick).collect()) * 1e6;
        for (what, rows) in [("nobody listens", &alone), ("a page listens", &beside)] {
            println!(
                "a call through the gateway, {what:24} {:>8.0} µs, {:>6.0} µs of processor (client and provider too)",
                of(rows, |row| row.0),
                of(rows, |row| row.1)
            );
        }
        served.stop().await;
    });
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load after: {}", load.split_whitespace().take(3).collect::<Vec<_>>().join(" "));
}
