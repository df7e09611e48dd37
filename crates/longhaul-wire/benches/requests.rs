//! The figures on requests in `docs/performance.md`: `cargo bench -p longhaul-wire --bench requests
//! [-- [memory] FOLDER...]`. `memory` measures what live conversations take; it is honest for the first
//! folder alone, because freed memory hides what the next ones take. A folder holds the bodies of one conversation of a client, a file each
//! (`001.body`, `002.body` …), in their order. Without a folder, conversations are made up here (the
//! figures then say so).

#![allow(clippy::expect_used)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use longhaul::{Cursor, Entry, Models, Prepared, Profile, Session, Tokens};
use longhaul_wire::api::{Api, Identity, Relay, Request};
use serde_json::{Value, json};

fn main() {
    let mut folders: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let memory_alone = folders.first().is_some_and(|first| first == "memory");
    folders.drain(..usize::from(memory_alone));
    let measure = if memory_alone { memory } else { times };
    if folders.is_empty() {
        for api in Api::ALL {
            for size in [800_000, 2_000_000] {
                measure(&format!("made up, {}", api.name()), api, &made_up(api, size));
            }
        }
    }
    for folder in &folders {
        let bodies = read(Path::new(folder));
        let Some(api) = Api::ALL.into_iter().find(|api| folder.contains(short_name(*api))) else {
            eprintln!("{folder}: its name does not say which API it is: chat, messages or responses");
            continue;
        };
        measure(folder, api, &bodies);
    }
}

fn short_name(api: Api) -> &'static str {
    match api {
        Api::Chat => "chat",
        Api::Responses => "responses",
        Api::Anthropic => "messages",
    }
}

/// The bodies of a folder that belong to its longest conversation.
fn read(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "body"))
        .collect();
    files.sort();
    files.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// A conversation in which each step reads a file, up to a size; the last twenty requests.
fn made_up(api: Api, size: usize) -> Vec<String> {
    let (mut messages, mut bodies, mut bytes, mut n) = (Vec::<Value>::new(), Vec::new(), 0, 0);
    messages.push(json!({"role": "user", "content": "Read all files and mend the parser."}));
    while bytes < size {
        let line = |m: usize| {
            format!("    let value_{n}_{m} = compute({}, \"name {}\");\n", m * 7919 % 1009, n * 31 % 97)
        };
        let (id, text) = (format!("call_{n}"), (0..40 + n % 7 * 30).map(line).collect::<String>());
        bytes += text.len() + 300;
        let path = json!({"path": format!("/repo/src/file_{n}.rs")});
        match api {
            Api::Anthropic => messages.extend([
                json!({"role": "assistant", "content": [{"type": "text", "text": "I read on."}, {"type": "tool_use", "id": id, "name": "Read", "input": path}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}),
            ]),
            Api::Chat => messages.extend([
                json!({"role": "assistant", "content": "I read on.", "tool_calls": [{"id": id, "type": "function", "function": {"name": "Read", "arguments": path.to_string()}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": text}),
            ]),
            Api::Responses => messages.extend([
                json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": path.to_string()}),
                json!({"type": "function_call_output", "call_id": id, "output": text}),
            ]),
        }
        n += 1;
        let tools: Vec<Value> = (0..20).map(|n| json!({"type": "function", "name": format!("tool_{n}"), "description": "It does what its name says. ".repeat(40), "parameters": {"type": "object"}})).collect();
        let list = if api == Api::Responses { "input" } else { "messages" };
        bodies.push(json!({"model": "m", list: messages, "tools": tools, "max_tokens": 8_000}).to_string());
        if bodies.len() > 20 {
            bodies.remove(0);
        }
    }
    bodies
}

fn times(name: &str, api: Api, bodies: &[String]) {
    let largest = bodies.iter().map(String::len).max().unwrap_or_default();
    println!("\n{name}: {} requests, the largest has {} KB", bodies.len(), largest / 1_000);
    let Some(last) = bodies.iter().rev().find(|body| body.len() == largest) else { return };

    let cold = best(|| drop(black_box(Request::decode(api, last.clone()).expect("a request"))));
    let copied = best(|| drop(black_box(last.clone())));
    let request = Request::decode(api, last.clone()).expect("a request");
    let hashed = best(|| {
        request.messages().iter().for_each(|message| _ = black_box(Identity::of(message)));
    });
    let rate = |us: f64| largest as f64 / us;
    println!("  cold body   {:>7.0} us, {:>5.0} MB/s", cold - copied, rate(cold - copied));
    println!("  identities  {hashed:>7.0} us, {:>5.0} MB/s", rate(hashed));

    let mut stages: [Vec<f64>; 6] = Default::default();
    let told = relayed(api, bodies, |times, size| {
        if size * 5 > largest * 4 {
            let us = times.map(|time| time.as_secs_f64() * 1e6);
            stages.iter_mut().zip(us).for_each(|(stage, us)| stage.push(us));
        }
    });
    let all = |n: usize| stages.iter().map(|stage| stage[n]).sum();
    let mut total: Vec<f64> = (0..stages[0].len()).map(all).collect();
    println!(
        "  relayed {} of {}, {} folds, {} frames, the last request sends {} KB; at this size, us p50 (p99):",
        told.relayed,
        bodies.len(),
        told.folds,
        told.frames,
        told.sent / 1_000
    );
    let names = ["UTF-8", "read", "frame", "push", "prepare", "write"];
    for (name, stage) in names.iter().zip(&mut stages) {
        println!("    {name:<9} {:>6.0} ({:.0})", part(stage, 50), part(stage, 99));
    }
    println!("    {:<9} {:>6.0} ({:.0})", "all", part(&mut total, 50), part(&mut total, 99));
}

fn memory(name: &str, api: Api, bodies: &[String]) {
    const LIVE: usize = 16;
    let largest = bodies.iter().map(String::len).max().unwrap_or_default();
    // The vocabulary and its memos are there once, whatever is live.
    drop(relayed(api, &bodies[..bodies.len().min(3)], |_, _| {}));
    let Some(before) = resident() else { return println!("the system does not say what a process takes") };
    let live: Vec<Told> = (0..LIVE).map(|_| relayed(api, bodies, |_, _| {})).collect();
    let grown = resident().unwrap_or_default().saturating_sub(before);
    let (each, factor) = (grown / LIVE / 1_000, grown as f64 / (LIVE * largest) as f64);
    println!(
        "{name}: {} KB; {} live conversations: {each} KB each, {factor:.2} bytes a byte",
        largest / 1_000,
        live.len()
    );
}

/// A conversation after all its requests.
struct Told {
    relayed: usize,
    folds: usize,
    frames: usize,
    sent: usize,
    _live: (Relay, Session),
}

/// Relays all requests of a conversation through engine and wire. Times of requests in which nothing is
/// folded are told, with the size of their bodies.
fn relayed(api: Api, bodies: &[String], mut tell: impl FnMut([Duration; 6], usize)) -> Told {
    let mut relay = Relay::new(api);
    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(200_000));
    let mut known: Vec<Identity> = Vec::new();
    let (mut relayed, mut folds, mut sent_bytes) = (0, 0, 0);
    for body in bodies {
        let bytes = body.clone().into_bytes();
        let mut clock = Instant::now();
        let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed();
        let text = String::from_utf8(bytes).expect("text");
        let checked = lap();
        let Ok(request) = relay.read(text) else { continue };
        let read = lap();
        let identities = request.identities();
        if !identities.starts_with(&known) {
            // A side request, or one that goes back.
            continue;
        }
        lap();
        session.set_frame(request.frame().clone());
        let framed = lap();
        for message in &request.messages()[known.len()..] {
            session.push(message.clone());
        }
        let pushed = lap();
        let count = |session: &Session| {
            session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count()
        };
        let before = count(&session);
        lap();
        let Ok(Prepared::Send(_)) = session.prepare(None) else { continue };
        let prepared = lap();
        let folded = count(&session) - before;
        lap();
        let outgoing = request.sending(&session.outgoing());
        let sent = relay.write(&outgoing);
        let written = lap();
        (relayed, folds, sent_bytes) = (relayed + 1, folds + folded, sent.body.len());
        if folded == 0 {
            tell([checked, read, framed, pushed, prepared, written], body.len());
        }
        known = outgoing.identities().into_owned();
    }
    let frames = session.since(Cursor(0)).filter(|entry| matches!(entry, Entry::Frame(_))).count();
    Told { relayed, folds, frames, sent: sent_bytes, _live: (relay, session) }
}

fn part(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The least time of many, in microseconds.
fn best(run: impl Fn()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..60).map(time).fold(f64::MAX, f64::min)
}

/// What the process has in memory, if the system says it.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}
