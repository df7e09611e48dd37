//! What an older version wrote must render the same for ever: the providers have cached what was
//! sent. `journal.jsonl` has every kind of entry; the other files are ledgers of before there was a
//! journal, one for each profile, with every kind of edit among them.
//! (`UPDATE_GOLDEN=1` writes files that are missing; what is there must not change.)

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{entries, observe, saved};
use longhaul::conversation::Thinking;
use longhaul::session::journal::{Cursor, Entry};
use longhaul::{
    Block, Edit, EditId, EditKind, Extra, Frame, Json, Message, Meter, Model, Models, Outcome, Overflow,
    Prepared, Profile, RecallBy, Role, Seal, Seals, Session, Summariser, Task, Time, Tokens, Usage,
};
use serde_json::Value;

fn model(window: u64) -> Model {
    Model { name: "m".into(), window: Tokens(window), ..Models::builtin().find("gpt-4o").clone() }
}

/// A conversation with everything that edits do something with. What happens to it depends on
/// the window; the log does not.
fn conversation(profile: &Profile, window: u64) -> Session {
    let mut session = Session::new(profile.clone(), model(window)).with_meter(Meter::neutral());
    session.set_rules("AGENTS.md", Some("Never change the public interface."));
    session.push(Message::system("You mend parsers."));
    session.push(Message::user("Mend the parser of dates. <Pin>The year is 1900.</Pin>"));
    for n in 0..60 {
        let id = format!("call_{n}");
        let thinking = Thinking {
            text: format!("I think about step {n}. ").repeat(8).into(),
            seal: if n % 2 == 0 { Seal::Open } else { Seal::Signed("sig".into()) },
            extra: Extra::NONE,
        };
        let file = format!("src/file_{n}.rs");
        let arguments = match n % 4 {
            // One is so long that it must be cut.
            3 => {
                serde_json::json!({ "path": file, "content": format!("fn new_{n}() {{}}\n").repeat(if n == 51 { 2_000 } else { 30 }) })
            }
            _ => serde_json::json!({ "path": file }),
        };
        let name = if n % 4 == 3 { "Write" } else { "Read" };
        let call = Block::call(id.as_str(), name, Json::new(arguments.to_string()).unwrap());
        session.push(Message::new(Role::Assistant, vec![Block::Thinking(thinking), call]));
        // One result is late: its call is answered by a placeholder.
        if n == 20 {
            _ = session.prepare(None);
        }
        session
            .push(Message::result(id, format!("fn old_{n}(value_{n}: u32) {{}}\n").repeat(20 + n % 7 * 9)));
        if n % 8 == 7 {
            session.push(Message::assistant(format!("Step {n} is done. I decided to keep old_{n}.")));
            session.push(Message::user(format!("Go on with part {n}, please.")));
        }
        if session.prepare(None).is_ok() {
            observe(&mut session, &Usage { input: 2_000 + 10 * n as u64, ..Usage::default() });
        }
        if n == 40 {
            session.set_goal("Mend the printer of dates.");
            session.set_todos(Some("[ ] printer"));
            session.remember("port", "The port is 8473.");
            let edits: Vec<_> = session.ledger().edits().filter(|(_, on)| *on).map(|(e, _)| e.id).collect();
            if let Some(edit) = edits.last() {
                session.undo(*edit).ok();
                session.redo(*edit).ok();
            }
            session = session.fork(session.log().end()).unwrap();
        }
    }
    session
}

fn text(session: &Session) -> String {
    let block = |block: &Block| match block {
        Block::Text(b) => format!("{}\n", b.text),
        Block::Thinking(b) => format!("({:?}) {}\n", b.seal, b.text),
        Block::ToolCall(b) => format!("{} {} {}\n", b.id, b.name, b.arguments.as_str()),
        Block::ToolResult(b) => format!("{}: {}\n", b.id, b.text),
        Block::Image(_) | Block::Opaque(_) => String::new(),
    };
    let parts = session.view().parts().iter().chain(session.view().tail());
    let part = |message: &Message| {
        let blocks: String = message.blocks().iter().map(block).collect();
        format!("--- {}\n{blocks}", message.role().name())
    };
    parts.map(|shown| part(&shown.message)).collect()
}

/// The journal of a session whose ledger was written before there were journals: its messages and
/// facts, each as late as the next event of the ledger allows.
fn upgraded(told: &Session, small: Model, ledger: &str) -> Vec<Entry> {
    let is_told = |entry: &&Entry| {
        matches!(entry, Entry::Counted(_) | Entry::Message(_) | Entry::Fact(_) | Entry::Frame(_))
    };
    let mut told: VecDeque<Entry> = told.since(Cursor(0)).filter(is_told).cloned().collect();
    let mut journal = vec![Entry::Began { version: 1, model: Arc::new(small) }];
    let mut messages = 0;
    let mut tell = |journal: &mut Vec<Entry>, upto: u32| {
        while messages < upto
            && let Some(entry) = told.pop_front()
        {
            messages += u32::from(matches!(entry, Entry::Message(_)));
            journal.push(entry);
        }
    };
    for line in ledger.lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let edit = |event: &Value| EditId(event["edit"].as_u64().unwrap() as u32);
        match event["event"].as_str().unwrap() {
            "apply" => {
                event.as_object_mut().unwrap().shift_remove("event");
                let edit: Edit = serde_json::from_value(event.clone()).unwrap();
                // It is written as it was.
                let again = serde_json::to_string(&edit).unwrap();
                assert_eq!(again, line.replacen("\"event\":\"apply\",", "", 1));
                tell(&mut journal, edit.kind.spans().iter().map(|span| span.end.0).max().unwrap());
                journal.push(Entry::Edit(Arc::new(edit)));
            }
            "undo" => {
                let held = event["held"].as_bool().unwrap();
                journal.push(Entry::Undo { edit: edit(&event), held });
            }
            "redo" => journal.push(Entry::Redo { edit: edit(&event) }),
            "placeholder_sent" => {
                tell(&mut journal, event["end"].as_u64().unwrap() as u32);
                journal.push(Entry::StepClosed);
            }
            "rules_shown" => {
                let text = event["text"].as_str().unwrap().into();
                journal.push(Entry::RulesShown { text, voice: None });
            }
            // They said nothing of what is shown.
            "usage" | "forked" => {}
            other => panic!("unknown event {other}"),
        }
    }
    tell(&mut journal, u32::MAX);
    journal
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn differs(shown: &str, expected: &str) -> Option<usize> {
    shown.lines().zip(expected.lines()).position(|(a, b)| a != b)
}

#[test]
fn ledgers_of_every_profile_render_the_same() {
    let mut kinds = BTreeSet::new();
    // The others are the first with another dial.
    let kept = Profile::all().into_iter().filter(|profile| !matches!(&*profile.name, "thrifty" | "safe"));
    for profile in kept {
        let read = |ending: &str| {
            std::fs::read_to_string(folder().join(format!("{}.{ending}", profile.name))).unwrap()
        };
        // The same log; what the ledger says is all that was done to it.
        let journal = upgraded(&conversation(&profile, 1 << 30), model(6_000), &read("jsonl"));
        kinds.extend(journal.iter().filter_map(|entry| match entry {
            Entry::Edit(edit) => Some(match &edit.kind {
                EditKind::Fold { placement: longhaul::edits::Placement::SystemHint, .. } => "hint",
                kind => kind.name(),
            }),
            Entry::Undo { .. } => Some("undo"),
            Entry::Redo { .. } => Some("redo"),
            Entry::StepClosed => Some("placeholder"),
            Entry::RulesShown { .. } => Some("rules"),
            _ => None,
        }));
        let loaded = Session::load(profile.clone(), journal).unwrap();
        let (shown, expected) = (text(&loaded), read("txt"));
        assert!(shown == expected, "{}: line {:?} is another", profile.name, differs(&shown, &expected));
    }
    let every = [
        "digest",
        "digest of arguments",
        "fold",
        "hide",
        "hint",
        "placeholder",
        "redo",
        "rules",
        "thinking dropped",
        "undo",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), every);
}

/// The first ledger that was kept.
#[test]
fn the_oldest_ledger_renders_the_same() {
    let mut told = common::session(8_000);
    told.push(Message::user("go"));
    (0..30).for_each(|n| common::step(&mut told, n, if n % 3 == 0 { 900 } else { 300 }));
    let ledger = include_str!("golden/ledger.jsonl");
    let journal = upgraded(&told, common::model("m", 8_000), ledger);
    let mut session = Session::load(Profile::longhaul(), journal).unwrap();
    common::ready(&mut session);
    assert_eq!(common::text(&session), include_str!("golden/view.txt"));
}

/// A session to which everything happens that can.
fn everything() -> Session {
    let profile = Profile { summariser: Summariser::Host, ..Profile::progressive() };
    let mut session = Session::new(profile, model(6_000)).with_meter(Meter::neutral());
    session.set_window(Tokens(5_900));
    session.set_max_output(Tokens(500));
    session.set_cache_lifetime(3_600);
    session.set_task(Task::Code);
    session.set_unattended(true);
    session.set_recall(RecallBy::Command("longhaul recall s1".into()));
    session.set_rules("AGENTS.md", Some("Never change the public interface."));
    let system = vec![Block::text("You mend parsers.")];
    session.set_frame(Frame { model: Some("m".into()), system, ..Frame::default() });
    let mut asks_for_less = session.log().frame().cloned().unwrap();
    asks_for_less.settings.push("max_tokens", Json::new("400").unwrap());
    session.set_frame(asks_for_less);
    session.teach(longhaul::size::Measure { counted: 100, answers: 1, rough: false }, 130);
    session.push(Message::user("Mend the parser of dates. <Pin>The year is 1900.</Pin>"));
    for n in 0..16 {
        let id = format!("call_{n}");
        let seal = Seal::Signed("sig".into());
        let thinking = Thinking { text: "I think. ".repeat(8).into(), seal, extra: Extra::NONE };
        let call = Block::call(id.as_str(), "Read", Json::new(r#"{"path":"src/a.rs"}"#).unwrap());
        session.push(Message::new(Role::Assistant, vec![Block::Thinking(thinking), call]));
        if n == 3 {
            // A call that waits for its result.
            _ = session.prepare(Some(Time(n * 1_000_000)));
        }
        let at = session.push(Message::result(id, format!("fn old_{n}() {{}}\n").repeat(40)));
        if n == 5 {
            session.answer(at, 0, "The host has it.").unwrap();
        }
        if n % 4 == 3 {
            session.push(Message::assistant(format!("Step {n} is done.\n!!!SUMMARY!!!")));
            session.push(Message::user(format!("Go on with part {n}, please.")));
        }
        for _ in 0..9 {
            match session.prepare(Some(Time(n * 1_000_000))) {
                Ok(Prepared::Send(ticket)) => {
                    session.observe(ticket, &Usage { input: 2_000 + 10 * n as u64, ..Usage::default() });
                    _ = session.prepare(Some(Time(n * 1_000_000 + 1)));
                    break;
                }
                Ok(Prepared::Summarise(job)) => {
                    let outcome = match job.id % 4 {
                        0 => Outcome::Failed("overloaded".into()),
                        _ => Outcome::Summary("### Done\n* All of it.".into()),
                    };
                    session.resolve(job.id, outcome);
                }
                Err(_) => break,
            }
        }
    }
    let active = |session: &Session| session.ledger().edits().filter(|(_, on)| *on).map(|(e, _)| e.id).last();
    let edit = active(&session).unwrap();
    session.undo(edit).unwrap();
    session.redo(edit).ok();
    // A call waits, and nothing before it can go.
    session.compact_now_on("the printer");
    if let Some(ticket) = session.last_ticket() {
        session.overflowed(ticket, Overflow { prompt: None, window: Some(Tokens(5_800)), answer: None });
    }
    session.switch(Model { name: "other".into(), ..model(6_000) }, Seals::Engine);
    session.fork(session.log().end()).unwrap()
}

/// The kind of an entry, as it is written.
fn kind(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap();
    value.as_str().map_or_else(|| value.as_object().unwrap().keys().next().unwrap().clone(), str::to_owned)
}

#[test]
fn a_journal_with_every_kind_of_entry_renders_the_same() {
    let (file, view) = (folder().join("journal.jsonl"), folder().join("journal.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() && !file.exists() {
        let session = everything();
        let mut lines = saved(&session);
        // It happens where the hard limit leaves nothing else.
        lines.push("\"step_closed\"".to_owned());
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    }
    let lines: Vec<String> = std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    let journal = entries(&lines);
    for (entry, line) in journal.iter().zip(&lines) {
        assert_eq!(serde_json::to_string(entry).unwrap(), *line);
    }
    let kinds: BTreeSet<String> = lines.iter().map(|line| kind(line)).collect();
    let every = [
        "answer_counts",
        "asked",
        "began",
        "cache_taught",
        "compaction_began",
        "compaction_ended",
        "counted",
        "edit",
        "fact",
        "forked",
        "frame",
        "host_note",
        "job_ended",
        "job_opened",
        "limited",
        "max_output",
        "message",
        "note_shown",
        "reads_signatures",
        "recall_by",
        "redo",
        "refused",
        "rules_shown",
        "sent",
        "sent_again",
        "signed",
        "step_closed",
        "summary_paid",
        "switched",
        "task",
        "taught",
        "unattended",
        "unbound",
        "undo",
        "usage",
        "voiced",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), every);
    let profile = Profile { summariser: Summariser::Host, ..Profile::progressive() };
    let shown = text(&Session::load(profile, journal).unwrap());
    if std::env::var_os("UPDATE_GOLDEN").is_some() && !view.exists() {
        std::fs::write(&view, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&view).unwrap();
    assert!(shown == expected, "line {:?} is another", differs(&shown, &expected));
}
