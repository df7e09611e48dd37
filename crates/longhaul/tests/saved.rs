//! Sessions that were stored and loaded, forked and switched: they go on as if nothing had
//! happened, and a broken store breaks nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::*;
use longhaul::edits::{EditText, MemoryArchive};
use longhaul::{
    Block, Cursor, EditId, EditKind, Entry, Frame, Json, Known, LoadError, Message, Meter, Position, Profile,
    RecallPart, Role, Seals, Session, Source, Span, Tokens, Usage,
};

/// A session with a fold over its first steps.
fn folded() -> Session {
    let mut session = session(20_000);
    session.push(Message::user("Find the bug."));
    for n in 0..120 {
        ready(&mut session);
        step(&mut session, n, 2_000);
    }
    ready(&mut session);
    assert!(session.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()));
    session
}

fn load(session: &Session, lines: &[String]) -> Result<Session, LoadError> {
    Session::load(session.profile().clone(), entries(lines))
}

#[test]
fn wherever_a_journal_was_cut_the_session_goes_on() {
    let session = folded();
    let lines = saved(&session);
    for end in 1..lines.len() {
        let mut cut = load(&session, &lines[..end]).unwrap();
        cut.push(Message::user("And now?"));
        step(&mut cut, 500, 100);
        ready(&mut cut);
        assert!(text(&cut).contains("And now?") && text(&cut).contains("line of step_500 "), "{end}");
        let mut again = reload(&cut);
        ready(&mut again);
        assert_eq!(text(&again), text(&cut), "{end}");
    }
}

#[test]
fn a_journal_cut_behind_a_switch_sends_no_foreign_seal() {
    let mut session = session(100_000);
    session.push(Message::user("Find the bug."));
    session.push(thought("hm", "a"));
    session.push(Message::result("a", "ok"));
    ready(&mut session);
    session.switch(model("other", 100_000), Seals::Engine);
    let lines = saved(&session);
    let switched = lines.iter().position(|line| line.contains("\"switched\"")).unwrap();
    assert!(switched + 1 < lines.len(), "the switch leaves reasoning out");
    let mut cut = load(&session, &lines[..=switched]).unwrap();
    ready(&mut cut);
    assert_eq!(thoughts(&cut), 0);
}

#[test]
fn a_journal_cut_behind_a_message_that_enters_shorter_enters_it_shorter() {
    let mut session = session(100_000);
    session.push(Message::user("Show the log."));
    session.push(call("a"));
    let log = "2026-03-02 09:00:00 INFO request handled in 12 ms\n".repeat(4_000);
    session.push(Message::result("a", log));
    let lines = saved(&session);
    let edit = lines.iter().position(|line| line.contains("\"edit\"")).unwrap();
    let mut cut = load(&session, &lines[..edit]).unwrap();
    ready(&mut cut);
    ready(&mut session);
    assert_eq!(text(&cut), text(&session));
}

#[test]
fn deltas_are_all_that_a_store_needs() {
    let mut session = session(20_000);
    let (mut lines, mut cursor) = (Vec::new(), Cursor(0));
    session.push(Message::user("Find the bug."));
    for n in 0..80 {
        ready(&mut session);
        step(&mut session, n, 2_000);
        let new = session.since(cursor).map(|entry| serde_json::to_string(entry).unwrap());
        lines.extend(new);
        cursor = session.cursor();
    }
    assert_eq!(lines, saved(&session));
    // Sizes that are known are not counted again, and are the same.
    let snapshots = serde_json::to_string(&session.snapshots()).unwrap();
    let known = Known { sizes: serde_json::from_str(&snapshots).unwrap(), ..Known::default() };
    let loaded = Session::load_with(session.profile().clone(), entries(&lines), known).unwrap();
    assert_eq!(loaded.sizes(), session.sizes());
}

#[test]
fn a_journal_that_nobody_wrote_is_refused_with_a_reason() {
    let session = folded();
    let broken = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut journal = entries(&saved(&session));
        change(&mut journal);
        Session::load(session.profile().clone(), journal).err().map(|error| error.to_string())
    };
    let first = |journal: &[Entry]| journal.iter().position(|entry| matches!(entry, Entry::Edit(_))).unwrap();
    let at = first(&entries(&saved(&session)));
    let lost = broken(&|journal| _ = journal.remove(at));
    assert!(lost.unwrap().ends_with("has edit 1 where edit 0 should be"));
    let edited = |change: &dyn Fn(&mut Vec<Span>)| {
        broken(&|journal| {
            let Entry::Edit(edit) = &mut journal[at] else { panic!() };
            let edit = Arc::make_mut(edit);
            let (EditKind::Fold { spans, .. } | EditKind::Hide { spans, .. }) = &mut edit.kind else {
                panic!()
            };
            change(spans);
        })
    };
    let says = |problem: &str| Some(format!("entry {at} of the journal: edit 0 {problem}"));
    assert_eq!(edited(&|spans| spans[0] = Span::new(5, 2)), says("covers nothing"));
    assert_eq!(edited(&|spans| spans[0] = Span::new(1, 9_000)), says("covers messages that are not there"));
    assert_eq!(edited(&|spans| spans[0] = Span::new(1, 4)), says("begins or ends inside a step"));
    let none = broken(&|journal| _ = journal.remove(0));
    assert_eq!(none.as_deref(), Some("the journal does not begin with its first entry"));
    let later = broken(&|journal| {
        let Entry::Began { version, .. } = &mut journal[0] else { panic!() };
        *version = 99;
    });
    assert_eq!(later.as_deref(), Some("the journal has version 99; this engine reads up to version 6"));
}

/// What is loaded knows what was sent: the first edit has the price it would have had.
#[test]
fn the_first_edit_after_loading_says_what_it_costs() {
    let mut session = session(20_000);
    session.push(Message::user("Find the bug."));
    while session.ledger().edits().next().is_none() {
        let n = session.log().messages().len();
        ready(&mut session);
        let mut loaded = reload(&session);
        step(&mut session, n, 2_000);
        step(&mut loaded, n, 2_000);
        ready(&mut loaded);
        if let Some((edit, _)) = loaded.ledger().edits().next() {
            assert!(edit.price.rewrites > Tokens(0) && loaded.sent().unwrap().broke, "{edit:?}");
            ready(&mut session);
            assert_eq!(saved(&session), saved(&loaded));
        }
    }
}

#[test]
fn what_is_reported_after_loading_is_of_what_was_sent() {
    let mut session = Session::new(by_limits(), model("m", 200_000)).with_window(Tokens(30_000));
    session.push(Message::user("Find the bug."));
    (0..20).for_each(|n| step(&mut session, n, 2_000));
    ready(&mut session);
    let size = session.size().tokens;
    let mut loaded = reload(&session);
    assert_eq!(loaded.budget().window, Tokens(30_000));
    observe(&mut loaded, &Usage { input: size.0 + 500, ..Usage::default() });
    ready(&mut loaded);
    assert_eq!(loaded.size().tokens, size + Tokens(500));
    // What it was refused for is known too: the newest step stays whole.
    let mut refused = reload(&session);
    overflowed(&mut refused);
    ready(&mut refused);
    assert!(text(&refused).matches("line of step_19 ").count() > 40);
}

/// Secrets are not stored; the host sets the frame again.
#[test]
fn a_frame_with_secrets_counts_the_same_after_loading() {
    let secret = "k9x ".repeat(3_000);
    let json = format!(r#"{{"tools":[{{"name":"a","headers":{{"x":"{secret}"}}}}]}}"#);
    let frame = Frame::from_json(&Json::new(json).unwrap()).unwrap();
    let mut session = session(20_000);
    session.set_frame(frame.clone());
    session.push(Message::user("Find the bug."));
    (0..16).for_each(|n| step(&mut session, n, 2_000));
    assert!(!saved(&session).concat().contains(&secret));
    let mut loaded = reload(&session);
    loaded.set_frame(frame);
    ready(&mut session);
    ready(&mut loaded);
    assert_eq!(loaded.size(), session.size());
}

/// A digest that saved nothing may save something when tokens are counted in another way.
#[test]
fn rules_look_again_when_the_meter_changed() {
    let mut session = Session::new(Profile::transform(), model("m", 200_000));
    session.push(Message::user("Find the bug."));
    for n in 0..10 {
        let id = format!("call_{n}");
        session.push(call(&id));
        // A line of blanks is few tokens to the model's own meter.
        session.push(Message::result(id, format!("{}\n", " ".repeat(60)).repeat(12)));
    }
    ready(&mut session);
    assert_eq!(session.ledger().edits().count(), 0);
    session = session.with_meter(Meter::neutral());
    let mut loaded = reload(&session);
    ready(&mut session);
    ready(&mut loaded);
    assert!(session.ledger().edits().count() > 0);
    assert_eq!(saved(&loaded), saved(&session));
}

/// Of two messages alike the first goes: what was sent is found by content, not by place.
#[test]
fn a_prefix_that_was_found_by_content_is_the_same_after_loading() {
    let thinking = || Message::new(Role::Assistant, vec![thought("hm", "a").blocks()[0].clone()]);
    let mut session = session(100_000);
    session.push(Message::user("Find the bug."));
    session.push(thinking());
    session.switch(model("other", 100_000), Seals::Client);
    session.push(thinking());
    session.push(Message::assistant("x ".repeat(400)));
    session.push(Message::user("Go on."));
    step(&mut session, 1, 4_000);
    step(&mut session, 2, 4_000);
    ready(&mut session);
    session.switch(model("other", 100_000), Seals::Engine);
    ready(&mut session);
    session.pin("branch", "main");
    ready(&mut session);
    let mut loaded = reload(&session);
    for session in [&mut session, &mut loaded] {
        session.compact_now();
        ready(session);
        step(session, 9, 100);
        ready(session);
    }
    assert_eq!(saved(&loaded), saved(&session));
}

#[test]
fn a_base_of_another_model_does_not_come_back() {
    let mut session = Session::new(by_limits(), model("m", 200_000));
    session.push(Message::user("Find the bug."));
    (0..20).for_each(|n| step(&mut session, n, 2_000));
    ready(&mut session);
    observe(&mut session, &Usage { input: 100_000, ..Usage::default() });
    session.switch(model("other", 200_000), Seals::Engine);
    // A report that comes late is of the other one.
    observe(&mut session, &Usage { input: 100_000, ..Usage::default() });
    ready(&mut session);
    let size = session.size().tokens;
    assert!(size < Tokens(50_000), "{size}");
    let mut loaded = reload(&session);
    ready(&mut loaded);
    assert_eq!(loaded.size().tokens, size);
}

/// A client that writes the end of its request anew each time has its folds made once.
#[test]
fn another_input_in_the_place_of_the_last_keeps_the_edits_of_what_is_shared() {
    let mut session = session(20_000);
    let edits = |session: &Session| session.ledger().edits().filter(|(_, active)| *active).count();
    for n in 0..40 {
        let before = (session.log().end(), edits(&session));
        session.push(Message::user(format!("Question {n}, with the files as they are.")));
        ready(&mut session);
        let (plain, kept) = (session.fork(before.0).unwrap(), session.fork_with_edits(before.0).unwrap());
        assert_eq!((edits(&plain), edits(&kept)), (before.1, edits(&session)));
        assert_eq!(kept.audit(), []);
        // What a store has of it says the same.
        assert_eq!(text(&reload(&kept)), text(&kept));
        session = kept;
        session.push(Message::user(format!("Question {n}.")));
        session.push(Message::assistant("An answer of many words. ".repeat(60)));
    }
    assert!(edits(&session) >= 1);
}

#[test]
fn a_fork_into_a_turn_gives_its_sealed_reasoning_back() {
    let mut session = Session::new(Profile::transform(), model("m", 100_000)).with_meter(Meter::neutral());
    session.push(Message::user("go"));
    for id in ["a", "b"] {
        session.push(thought(&"thinking ".repeat(50), id));
        session.push(Message::result(id, "ok"));
    }
    let inside = session.log().end();
    session.push(Message::assistant("Done."));
    session.push(Message::user("next"));
    ready(&mut session);
    assert!(thoughts(&session) < 2, "the profile drops old thinking");
    let mut fork = session.fork(inside).unwrap();
    ready(&mut fork);
    assert_eq!(thoughts(&fork), 2);
}

#[test]
fn a_fork_from_before_a_switch_keeps_the_seals_of_its_own_model() {
    let mut session = session(100_000);
    session.push(Message::user("go"));
    (0..10).for_each(|n| step(&mut session, n, 100));
    session.switch(model("other", 100_000), Seals::Engine);
    let mut fork = session.fork(Position(3)).unwrap();
    fork.push(thought("mine", "x"));
    fork.push(Message::result("x", "a".repeat(9_000)));
    fork.push(thought("mine too", "y"));
    fork.compact_now();
    _ = fork.prepare(None);
    let edits: Vec<EditId> = fork.ledger().edits().filter(|(_, active)| *active).map(|(e, _)| e.id).collect();
    edits.iter().for_each(|edit| _ = fork.undo(*edit));
    ready(&mut fork);
    assert_eq!(thoughts(&fork), 2);
}

#[test]
fn rules_that_must_be_shorter_are_shown_shorter() {
    let mut session = session(8_000);
    session.set_rules("RULES.md", Some(&"Never do this. ".repeat(900)));
    session.push(Message::user("go"));
    ready(&mut session);
    let rules = |session: &Session| {
        let part = session.view().parts().iter().find(|part| part.source == Source::Rules).unwrap();
        part.message.blocks().iter().map(|b| matches!(b, Block::Text(t) if t.text.len() > 9_000)).next()
    };
    let before = rules(&session);
    session.push(Message::system("Be brief. ".repeat(1_200)));
    session.push(Message::user("and on"));
    ready(&mut session);
    assert_ne!(rules(&session), before);
    let mut loaded = reload(&session);
    ready(&mut loaded);
    assert_eq!(text(&loaded), text(&session));
}

#[test]
fn a_pin_that_was_cut_can_be_recalled_after_loading() {
    let mut session = session(4_000);
    session.pin("p", "pinned words of some length, ".repeat(400));
    session.push(Message::user("go"));
    ready(&mut session);
    let shown = text(&session);
    let handle = shown.split("recall ").nth(1).and_then(|rest| rest.get(..12)).expect("it is cut").to_owned();
    session.pin("p", "short");
    let loaded = reload(&session);
    let recalled = loaded.recall(&handle, &RecallPart::Whole).unwrap();
    assert_eq!(recalled, "pinned words of some length, ".repeat(400));
}

/// A store may keep texts of edits apart, each once, and give them back when they are shown.
#[test]
fn texts_of_edits_are_fetched_when_they_are_shown() {
    let mut session = session(8_000);
    session.push(Message::user("Find the bug."));
    while session.ledger().edits().filter(|(edit, _)| !edit.depends.is_empty()).count() < 2 {
        let n = session.log().messages().len();
        step(&mut session, n, 900);
        ready(&mut session);
    }
    let mut store = MemoryArchive::default();
    let apart = |entry: &Entry, store: &mut MemoryArchive| match entry.apart() {
        Some((entry, handle, text)) => {
            assert_eq!(store.put(&*text), handle);
            entry
        }
        None => entry.clone(),
    };
    let journal: Vec<Entry> = session.since(Cursor(0)).map(|entry| apart(entry, &mut store)).collect();
    let lines: Vec<String> = journal.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    assert!(lines.concat().len() + 2_000 < saved(&session).concat().len());
    let (profile, sizes) = (session.profile().clone(), session.snapshots());
    let load = |store: MemoryArchive| {
        let known = Known { sizes: sizes.clone(), store: Some(Arc::new(store)) };
        Session::load_with(profile.clone(), entries(&lines), known)
    };
    let mut loaded = load(store.clone()).unwrap();
    // Folds that others have taken in stay where they are.
    let here = |session: &Session| {
        let texts = session.ledger().edits().filter_map(|(edit, _)| edit.kind.text());
        texts.filter(|text| matches!(text, EditText::Here(_))).count()
    };
    assert!(here(&loaded) < here(&session));
    for session in [&mut session, &mut loaded] {
        step(session, 900, 900);
        ready(session);
    }
    assert_eq!((text(&loaded), loaded.sent()), (text(&session), session.sent()));
    // What an undo brings back is fetched.
    let newest =
        session.ledger().edits().filter(|(edit, on)| *on && edit.kind.replaces_runs()).last().unwrap().0.id;
    for session in [&mut session, &mut loaded] {
        session.undo(newest).unwrap();
        session.switch(model("m", 1 << 30), Seals::Engine);
        ready(session);
    }
    assert_eq!(text(&loaded), text(&session));
    let lost = load(MemoryArchive::default()).unwrap_err().to_string();
    assert!(lost.starts_with("the text ") && lost.ends_with(" is not in the store"), "{lost}");
}

#[test]
fn a_journal_of_lines_is_read_or_refused_with_a_reason() {
    let lines = saved(&folded());
    let read = |lines: &[String]| longhaul::session::journal::read(lines.iter().map(String::as_str));
    assert_eq!(read(&lines).unwrap(), entries(&lines));
    let said = |lines: &[String]| read(lines).unwrap_err().to_string();
    let later = [lines[0].replace("\"version\":6", "\"version\":7"), r#"{"new_kind":{}}"#.to_owned()];
    assert_eq!(said(&later), "the journal has version 7; this engine reads up to version 6");
    let broken = [lines[0].clone(), r#"{"new_kind":{}}"#.to_owned()];
    assert!(said(&broken).starts_with("entry 1 of the journal cannot be read: unknown variant"));
}
