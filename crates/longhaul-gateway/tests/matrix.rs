//! Conversations with models that bind their thinking, whatever happens to them: profiles, windows, providers, answers
//! that are streamed or whole, over random histories and over recorded sessions. No request is refused for its thinking, and
//! no block is dropped. covers: DESIGN rule 12.
//!
//! `LONGHAUL_CORPUS=FOLDER` adds recorded sessions (transcripts of Longhaul, plain or `.gz`); `LONGHAUL_ROUNDS=N`
//! runs so many histories of each kind, and `LONGHAUL_SEED=N` the one of that number alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bound;
mod common;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bound::{Client, HEADERS, script};
use longhaul::Profile;
use longhaul_fake::{Answer, AtEnd, Close, RetryAfter, Settings as Script, Trouble, Twin};
use longhaul_gateway::Recall;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The providers that Claude Code may speak to: those that check thinking in their three ways, and those that do not know
/// it.
const TWINS: [Twin; 5] = [
    Twin::ANTHROPIC_NOW,
    Twin::ANTHROPIC_DROP,
    Twin::ANTHROPIC_RECORD,
    Twin::ANTHROPIC_OLDER,
    Twin::ANTHROPIC_HOST,
];

const WINDOWS: [u64; 2] = [8_000, 20_000];

/// Seeds of the next round begin so much later.
const A_ROUND: u64 = 1_000;

/// Steps of a random history.
const STEPS: usize = 30;

/// Pseudo-random numbers, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// One of some numbers.
    fn pick(&mut self, numbers: &[u64]) -> Option<u64> {
        (!numbers.is_empty()).then(|| numbers[self.roll(numbers.len() as u64) as usize])
    }
}

/// Trouble at every third call or so.
fn troubled(mut script: Script, dice: &mut Dice) -> Script {
    for call in 1..=400 {
        let trouble = match dice.roll(24) {
            0 => Trouble::Limited(RetryAfter::Unsaid),
            1 => Trouble::Status(529),
            2 => Trouble::Status(503),
            3 => Trouble::Close,
            4 => Trouble::Cut { after: 2, close: Close::Fin },
            5 => Trouble::ErrorEvent { after: 1 },
            6 => Trouble::Html,
            7 => Trouble::NoClosingEvent,
            8 => Trouble::Split(7),
            _ => continue,
        };
        script = script.trouble(call..=call, trouble);
    }
    script
}

/// What has happened to a conversation, to be told when it fails.
#[derive(Default)]
struct History {
    events: Vec<String>,
    /// What the client had before it went another way.
    ways: Vec<Vec<Value>>,
    pins: usize,
}

impl History {
    /// Something happens before the next step. True if that goes past the gateway.
    async fn happens(&mut self, client: &mut Client, dice: &mut Dice) -> bool {
        let kind = dice.roll(30);
        let call = client.calls;
        let mut note = |event: String| self.events.push(format!("{call}: {event}"));
        match kind {
            0 | 1 => {
                self.pins += 1;
                // A gateway that has just begun has nothing to pin to.
                if client.session.is_some() {
                    client.pin(&format!("Never touch branch {}.", self.pins)).await;
                    note("a pin".to_owned());
                }
            }
            2 | 3 => {
                if let Some(edit) = dice.pick(&client.edits(true).await) {
                    let done = client.act(json!({ "do": "undo", "edit": edit })).await;
                    note(format!("undo of {edit}: {done}"));
                }
            }
            4 => {
                if let Some(edit) = dice.pick(&client.edits(false).await) {
                    let done = client.act(json!({ "do": "redo", "edit": edit })).await;
                    note(format!("redo of {edit}: {done}"));
                }
            }
            5 => {
                client.act(json!({ "do": "compact" })).await;
                note("a compaction".to_owned());
            }
            6 | 7 => {
                client.restart().await;
                note("a restart".to_owned());
            }
            // The client goes back, and on from there.
            8 | 9 => {
                let steps = 2 * dice.roll(4) as usize;
                if client.messages.len() > steps + 3 && client.ends_with_results(steps) {
                    self.ways.push(client.messages.clone());
                    client.messages.truncate(client.messages.len() - steps);
                    note(format!("{steps} messages back"));
                }
            }
            10 => {
                if let Some(way) = self.ways.pop() {
                    self.ways.push(std::mem::replace(&mut client.messages, way));
                    note("the other way".to_owned());
                }
            }
            11 | 12 => {
                client.messages.push(json!({ "role": "user", "content": "And the lexer?" }));
                note("a question".to_owned());
            }
            13 => {
                client.model = match client.model {
                    "claude-opus-5-5" => "claude-sonnet-5-5",
                    "claude-sonnet-5-5" => "claude-opus-5-5",
                    other => other,
                };
                note(client.model.to_owned());
            }
            14..=16 => {
                note("past us".to_owned());
                return true;
            }
            _ => {}
        }
        false
    }
}

impl Client {
    /// What is left when so many messages go ends with results of tools.
    fn ends_with_results(&self, messages: usize) -> bool {
        self.messages[self.messages.len() - messages - 1]["content"][0]["type"] == "tool_result"
    }
}

/// A history of this seed. True if it was edited.
async fn random(twin: Twin, profile: Profile, window: u64, stream: bool, seed: u64) -> bool {
    let name = format!("{} {} {window} stream={stream} LONGHAUL_SEED={seed}", twin.name, profile.name);
    let mut dice = Dice::of(seed);
    let script = troubled(script().twin(twin).window(400_000), &mut dice);
    let mut client = Client::with(script, profile, window, stream).await;
    client.tries = 12;
    if twin == Twin::ANTHROPIC_OLDER {
        client.model = "claude-sonnet-4-6";
    }
    if dice.roll(3) == 0 {
        client.desk.recall = Recall::Fill;
        client.restart().await;
    }
    // Some begin without a gateway, and are joined halfway.
    let alone = if dice.roll(3) == 0 { dice.roll(8) as usize } else { 0 };
    let (mut history, mut is_edited) = (History::default(), false);
    for n in 0..STEPS {
        client.is_alone = n < alone;
        if client.is_alone {
            client.step(900).await;
            continue;
        }
        let is_past_us = history.happens(&mut client, &mut dice).await;
        let headers = if is_past_us { &HEADERS[..] } else { &HEADERS[1..] };
        let bytes = if dice.roll(8) == 0 { 4_000 } else { 900 };
        client.step_with(bytes, headers).await;
        let recall = client.desk.recall;
        let told = || format!("{name}, {recall:?}, alone for {alone}, call {n}: {:?}", history.events);
        assert_eq!(client.fake.violations(), [""; 0], "{}", told());
        assert_eq!(client.fake.stale_thinking(), Default::default(), "{}", told());
        is_edited |= client.has_edits();
    }
    is_edited
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_history_has_thinking_refused_or_dropped() {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<u64>().unwrap());
    let (only, rounds) = (number("LONGHAUL_SEED"), number("LONGHAUL_ROUNDS").unwrap_or(1));
    let rounds = only.map_or(0..rounds, |only| only / A_ROUND..only / A_ROUND + 1);
    let (mut runs, few) = (JoinSet::new(), Arc::new(Semaphore::new(8)));
    for round in rounds {
        let mut seed = round * A_ROUND;
        for twin in TWINS {
            for profile in Profile::all() {
                for window in WINDOWS {
                    for stream in [false, true] {
                        seed += 1;
                        if only.is_some_and(|only| only != seed) {
                            continue;
                        }
                        let (profile, few, seed) = (profile.clone(), few.clone(), seed);
                        runs.spawn(async move {
                            let _place = few.acquire().await.unwrap();
                            random(twin, profile, window, stream, seed).await
                        });
                    }
                }
            }
        }
    }
    let edited = runs.join_all().await;
    let share = edited.iter().filter(|edited| **edited).count() * 100 / edited.len();
    assert!(only.is_some() || share > 80, "only {share} % of the histories were edited");
}

/// A step of a recorded session.
struct Recorded {
    answer: Answer,
    /// What its tools gave back.
    results: Vec<Value>,
    /// What a person said then.
    said: Vec<Value>,
}

/// The lines of a transcript.
fn lines(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    match path.extension().is_some_and(|kind| kind == "gz") {
        true => _ = flate2::read::MultiGzDecoder::new(&*bytes).read_to_string(&mut text).unwrap(),
        false => text = String::from_utf8(bytes).unwrap(),
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(line: &Value) -> Vec<String> {
    let blocks = line["content"].as_array().into_iter().flatten();
    let text =
        |block: &Value| Some(block["text"].as_str()?.trim().to_owned()).filter(|text| !text.is_empty());
    let texts = blocks.filter(|block| block["type"] == "text").filter_map(text);
    texts.chain(line["content"].as_str().map(str::to_owned)).collect()
}

/// The first words of a recorded session, and its steps, with thinking before each.
fn recorded(path: &Path, most: usize) -> (String, Vec<Recorded>) {
    let (mut first, mut steps) = (String::new(), Vec::<Recorded>::new());
    for line in lines(path) {
        let blocks = || line["content"].as_array().cloned().unwrap_or_default();
        match (line["role"].as_str().unwrap_or_default(), steps.last_mut()) {
            ("assistant", _) => {
                let mut answer = Answer::new().thinking(&format!(
                    "Call {}: what is next? {}",
                    steps.len(),
                    "Hm. ".repeat(20)
                ));
                answer = texts(&line).iter().fold(answer, |answer, text| answer.text(text));
                let calls = blocks().into_iter().filter(|block| block["type"] == "tool_call");
                answer = calls.fold(answer, |answer, call| {
                    answer.call(call["name"].as_str().unwrap(), call["arguments"].clone())
                });
                steps.push(Recorded { answer, results: Vec::new(), said: Vec::new() });
            }
            ("tool", Some(step)) => {
                let results = blocks().into_iter().filter(|block| block["type"] == "tool_result");
                step.results.extend(results.map(|result| result["text"].clone()));
            }
            ("user", Some(step)) => step.said.extend(texts(&line).into_iter().map(Value::from)),
            ("user", None) => first += &texts(&line).join("\n"),
            _ => {}
        }
        if steps.len() > most {
            break;
        }
    }
    steps.truncate(most);
    (first, steps)
}

/// A recorded session, with one of the profiles.
async fn again(path: &Path, twin: Twin, profile: Profile, stream: bool) {
    const MOST: usize = 60;
    let name = format!("{} {} {} stream={stream}", path.display(), twin.name, profile.name);
    let (first, steps) = recorded(path, MOST);
    let script =
        Script::new().answers(steps.iter().map(|step| step.answer.clone())).at_end(AtEnd::Error).piece(400);
    let mut client = Client::with(script.twin(twin), profile, 30_000, stream).await;
    client.messages = vec![json!({ "role": "user", "content": format!("Begin. {first}") })];
    for (n, step) in steps.into_iter().enumerate() {
        match n {
            20 => client.pin("Never touch the lexer.").await,
            30 => client.restart().await,
            _ => {}
        }
        let content = client.answered(if n % 17 == 16 { &HEADERS } else { &HEADERS[1..] }).await;
        let calls = content.iter().filter(|block| block["type"] == "tool_use");
        let results = step.results.into_iter().chain(std::iter::repeat("Done.".into()));
        let mut next: Vec<Value> = calls
            .zip(results)
            .map(|(call, text)| json!({ "type": "tool_result", "tool_use_id": call["id"], "content": text }))
            .collect();
        next.extend(step.said.into_iter().map(|text| json!({ "type": "text", "text": text })));
        if next.is_empty() {
            next.push(json!({ "type": "text", "text": "Go on." }));
        }
        client.messages.push(json!({ "role": "assistant", "content": content }));
        client.messages.push(json!({ "role": "user", "content": next }));
        assert_eq!(client.fake.violations(), [""; 0], "{name}, call {n}");
        assert_eq!(client.fake.stale_thinking(), Default::default(), "{name}, call {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_recorded_session_has_thinking_refused_or_dropped() {
    let Ok(folder) = std::env::var("LONGHAUL_CORPUS") else {
        eprintln!("skipped: LONGHAUL_CORPUS names no folder of recorded sessions");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().contains(".jsonl"));
    files.sort();
    assert!(!files.is_empty());
    let (mut runs, few) = (JoinSet::new(), Arc::new(Semaphore::new(4)));
    for (at, path) in files.into_iter().enumerate() {
        // Each session with two of the profiles, and with every way of the provider in turn.
        let profiles = Profile::all();
        for n in [at, at + profiles.len() / 2] {
            let (twin, profile) = (TWINS[n % 3], profiles[n % profiles.len()].clone());
            let (path, few, stream) = (path.clone(), few.clone(), n % 2 == 0);
            runs.spawn(async move {
                let _place = few.acquire().await.unwrap();
                again(&path, twin, profile, stream).await;
            });
        }
    }
    runs.join_all().await;
}
