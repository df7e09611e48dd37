//! The profiles of the seeds: when each compacts, what it takes and what it keeps. Figures are
//! those of the seeds' text; faults of the origins are tests that pass here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod all;
mod answered;
mod archive;
mod archive_digests;
mod archive_summary;
#[path = "../common/mod.rs"]
mod common;
mod documented;
mod mini;
mod progressive;
mod progressive_figures;
mod progressive_full;
mod rules;
mod shared;
mod speakers;
mod transform;

use longhaul::conversation::{FactKind, Text, Thinking, Words};
use longhaul::edits::Placement;
use longhaul::policy::{Constants, OnFailure, STRATEGIES};
use longhaul::{
    Block, EditKind, Extra, Job, Json, Message, Meter, Model, Models, Outcome, Prepared, Profile, RecallPart,
    Resolved, Role, Seal, Seals, Session, Source, Summariser, Task, Tokens, Usage, Why,
};

use common::{observe, overflowed, reload};

fn model(window: u64) -> Model {
    Model { name: "m".into(), window: Tokens(window), ..Models::builtin().find("gpt-4o").clone() }
}

fn session(profile: Profile, window: u64) -> Session {
    Session::new(profile, model(window)).with_meter(Meter::neutral())
}

/// With a model as summariser.
fn asking(profile: Profile, window: u64) -> Session {
    session(Profile { summariser: Summariser::Host, background: false, ..profile }, window)
}

fn only(profile: Profile, strategy: &str) -> Profile {
    let found = STRATEGIES.into_iter().find(|known| known.name == strategy).unwrap();
    let mut profile = Profile { ladder: vec![found], by_task: false, ..profile };
    // Who asks gets this strategy.
    profile.triggers.full_when_asked = false;
    profile
}

fn call(id: &str, name: &str, json: &str) -> Message {
    Message::new(Role::Assistant, vec![Block::call(id, name, Json::new(json).unwrap())])
}

/// A step of one call with a result of so many lines of 40 bytes.
fn step(session: &mut Session, n: usize, lines: usize) {
    let id = format!("call_{n}");
    session.push(call(&id, "Read", r#"{"path":"src/lib.rs"}"#));
    session.push(Message::result(
        id,
        (0..lines).map(|l| format!("{:<39}\n", format!("step_{n} line {l}"))).collect::<String>(),
    ));
}

/// A round: a question, a step, an answer.
fn round(session: &mut Session, n: usize, lines: usize) {
    session.push(Message::user(format!("Question number {n}?")));
    step(session, n, lines);
    session.push(Message::assistant(format!("Answer number {n}.")));
}

fn ready(session: &mut Session) {
    match session.prepare(None).unwrap() {
        Prepared::Send(_) => {}
        Prepared::Summarise(job) => panic!("unexpected {job:?}"),
    }
    assert_eq!(session.audit(), []);
    assert!(session.size().tokens <= session.budget().hard);
}

fn job(session: &mut Session) -> Job {
    match session.prepare(None).unwrap() {
        Prepared::Summarise(job) => job,
        Prepared::Send(_) => panic!("no summary was asked for"),
    }
}

fn shown(message: &Message) -> String {
    let text = |block: &Block| match block {
        Block::Text(b) => b.text.to_string(),
        Block::ToolResult(b) => b.text.to_string(),
        Block::ToolCall(b) => b.arguments.as_str().to_owned(),
        Block::Thinking(b) => format!("(thinking) {}", b.text),
        _ => String::new(),
    };
    message.blocks().iter().map(text).collect::<Vec<_>>().join("\n")
}

fn parts(session: &Session) -> Vec<String> {
    session.view().parts().iter().map(|part| shown(&part.message)).collect()
}

fn text(session: &Session) -> String {
    let tail = session.view().tail().map(|tail| shown(&tail.message));
    parts(session).into_iter().chain(tail).collect::<Vec<_>>().join("\n")
}

/// The messages that folds stand for, by number.
fn folded(session: &Session) -> Vec<usize> {
    session.ledger().outermost().flat_map(|(span, _)| span.range()).collect()
}

/// Compacts now, and makes the next request ready.
fn compacted(mut session: Session) -> Session {
    session.compact_now();
    ready(&mut session);
    session
}

/// Strategies of the edits that stand, without those made on entry.
fn strategies(session: &Session) -> Vec<String> {
    let made = session.ledger().edits().filter(|(edit, active)| *active && edit.why != Why::Entry);
    made.map(|(edit, _)| edit.strategy.to_string()).collect()
}

/// Rounds until the last prompt was over 80 % of a window of 10,000.
fn grow(session: &mut Session, from: usize) {
    for n in from..from + 2_000 {
        session.push(Message::user(format!("Question number {n}?")));
        step(session, n, 44);
        if session.prepare(None).is_ok_and(|prepared| matches!(prepared, Prepared::Summarise(_))) {
            panic!("not yet");
        }
        let large = session.size().tokens > session.budget().trigger;
        session.push(Message::assistant(format!("Answer number {n}.")));
        if large {
            return;
        }
    }
    panic!("it never passes its trigger: it compacts in the middle of a turn");
}

fn turn_with_usage(usage: u64) -> Session {
    let mut session = session(Profile::mini(), 128_000);
    session.push(Message::user("Build it."));
    ready(&mut session);
    session.push(Message::assistant(format!("It is built. {}", "It took some work. ".repeat(400))));
    observe(&mut session, &Usage { input: usage, output: 100, ..Usage::default() });
    session.push(Message::user("And now?"));
    ready(&mut session);
    session
}

fn ready_with(session: &mut Session, summary: &str) {
    for _ in 0..50 {
        match session.prepare(None).unwrap() {
            Prepared::Send(_) => return assert_eq!(session.audit(), []),
            Prepared::Summarise(job) => {
                let resolved = session.resolve(job.id, Outcome::Summary(summary.into()));
                assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
            }
        }
    }
    panic!("it asks without end");
}

fn ready_or(session: &mut Session, outcome: Outcome, check: impl Fn(&Resolved)) {
    for _ in 0..50 {
        match session.prepare(None).unwrap() {
            Prepared::Send(_) => return assert_eq!(session.audit(), []),
            Prepared::Summarise(job) => check(&session.resolve(job.id, outcome.clone())),
        }
    }
    panic!("it asks without end");
}

fn rounds(profile: Profile, window: u64, count: usize, lines: usize) -> Session {
    let mut session = session(profile, window);
    for n in 0..count {
        round(&mut session, n, lines);
    }
    session.push(Message::user("Go on."));
    session
}
