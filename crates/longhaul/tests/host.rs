//! What a host gets: tickets, summaries beside the work, a window that is learnt, recall, notices.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use longhaul::edits::MemoryArchive;
use longhaul::{
    Block, Cursor, EditKind, Entry, Frame, Json, Known, Message, Meter, Notice, Outcome, Overflow, Position,
    Prepared, Profile, RecallBy, RecallPart, Resolved, Role, Seals, Session, Strategy, Summariser, Ticket,
    Time, Tokens, Usage, Why,
};

fn folds(session: &Session) -> usize {
    session.ledger().edits().filter(|(edit, active)| *active && edit.kind.replaces_runs()).count()
}

/// A session that is over its trigger and under its hard limit, with a model as summariser.
fn over_trigger(background: bool) -> Session {
    let profile = Profile { summariser: Summariser::Host, background, ..by_limits() };
    let mut session = Session::new(profile, model("m", 20_000)).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    let mut n = 0;
    while session.size().tokens <= session.budget().trigger {
        step(&mut session, n, 2_000);
        _ = session.prepare(None);
        n += 1;
        assert!(n < 100);
    }
    session
}

#[test]
fn a_summary_is_written_beside_the_work_and_only_the_hard_limit_waits() {
    let mut session = over_trigger(true);
    let job = session.job().expect("a summary is asked for");
    let mut sent = 0;
    // The work goes on, through a store too, and the question stays the same.
    let waited = loop {
        step(&mut session, 200 + sent, 1_000);
        session = reload(&session);
        match session.prepare(None).unwrap() {
            Prepared::Send(_) => sent += 1,
            Prepared::Summarise(waited) => break waited,
        }
        assert_eq!((folds(&session), session.job().unwrap().id), (0, job.id));
    };
    assert!(sent > 0 && waited.id == job.id);
    assert!(session.size().tokens > session.budget().hard);
    let resolved = session.resolve(job.id, Outcome::Summary("### Done\n* Steps were read.".into()));
    assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
    ready(&mut session);
    assert!(session.job().is_none() && text(&session).contains("Steps were read."));
}

// covers: A-BLOCK
#[test]
fn a_profile_that_blocks_waits_at_the_trigger() {
    let mut session = over_trigger(false);
    let Prepared::Summarise(job) = session.prepare(None).unwrap() else { panic!("it does not wait") };
    assert!(session.size().tokens <= session.budget().hard);
    assert!(!Profile::archive().background && Profile::longhaul().background);
    session.resolve(job.id, Outcome::Summary("### Done\n* Steps were read.".into()));
    ready(&mut session);
    assert_eq!(folds(&session), 1);
}

#[test]
fn an_open_job_outlives_a_store() {
    let session = over_trigger(true);
    let mut loaded = reload(&session);
    let (job, again) = (session.job().unwrap(), loaded.job().unwrap());
    assert_eq!((&job.question, job.messages.len()), (&again.question, again.messages.len()));
    let resolved = loaded.resolve(job.id, Outcome::Summary("### Done\n* Steps were read.".into()));
    assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
}

#[test]
fn a_smaller_window_waits_for_the_summary_that_is_being_written() {
    let mut session = over_trigger(true);
    let job = session.job().unwrap();
    session.set_window(Tokens(12_000));
    let Prepared::Summarise(asked) = session.prepare(None).unwrap() else { panic!("it does not wait") };
    assert_eq!(asked.id, job.id);
    // An answer to another question changes nothing.
    assert!(matches!(session.resolve(job.id + 7, Outcome::TimedOut), Resolved::Dropped(_)));
    assert_eq!(session.job().unwrap().id, job.id);
}

#[test]
fn reports_belong_to_their_requests() {
    let mut session = Session::new(by_limits(), model("m", 200_000));
    session.push(Message::user("Find the bug."));
    let first = ticket(&mut session);
    step(&mut session, 0, 40_000);
    let second = ticket(&mut session);
    assert_eq!((first, second), (Ticket(1), Ticket(2)));
    let size = session.size().tokens;
    // The answers come in the other order: the newer one is the base.
    session.observe(second, &Usage { input: size.0 + 1_000, ..Usage::default() });
    session.observe(first, &Usage { input: 300, ..Usage::default() });
    assert_eq!(session.size().tokens, size + Tokens(1_000));
    session.observe(Ticket(99), &Usage { input: 5, ..Usage::default() });
    assert_eq!(session.size().tokens, size + Tokens(1_000));
}

#[test]
fn the_same_request_again_is_a_retry() {
    let mut session = session(20_000);
    session.push(Message::user("Find the bug."));
    let first = ticket(&mut session);
    assert_eq!(ticket(&mut session), first);
    observe(&mut session, &Usage { input: 10, ..Usage::default() });
    assert_eq!(ticket(&mut session), first);
    assert!(!session.sent().unwrap().broke);
    session.set_todos(Some("[ ] one"));
    assert_eq!(ticket(&mut session), Ticket(2));
    assert_eq!(reload(&session).prepare(None).map(|p| matches!(p, Prepared::Send(Ticket(2)))), Ok(true));
}

/// A session in a window that leaves room, with this many steps.
fn roomy(steps: usize) -> Session {
    let mut session = session(200_000);
    session.push(Message::user("Find the bug."));
    (0..steps).for_each(|n| step(&mut session, n, 2_000));
    session
}

/// What is learnt moves the room for a pin, which must not move under a ticket.
#[test]
fn a_report_changes_no_request_that_has_a_ticket() {
    let mut session = Session::new(by_limits(), model("m", 20_000));
    session.push(Message::system("words of the system prompt ".repeat(1_500)));
    session.pin("p", "pinned words of some length, ".repeat(3_000));
    session.push(Message::user("Find the bug."));
    let mut retries = 0;
    for _ in 0..40 {
        let Ok(Prepared::Send(first)) = session.prepare(None) else { break };
        let request = sent(&session);
        session.observe(first, &Usage { input: session.size().tokens.0 + 60, ..Usage::default() });
        let Ok(Prepared::Send(again)) = session.prepare(None) else { break };
        assert!(again != first || sent(&session) == request, "one ticket, two requests");
        retries += usize::from(again == first);
        session.push(Message::assistant("w ".repeat(40)));
        session.push(Message::user("x ".repeat(40)));
    }
    assert!(retries > 0);
}

#[test]
fn a_report_on_a_request_of_another_frame_is_no_base() {
    let frame = |n: usize| Frame { system: vec![Block::text("s".repeat(n))], ..Frame::default() };
    let usage = Usage { input: 60_000, ..Usage::default() };
    let size = |report_first: bool| {
        let mut session = Session::new(by_limits(), model("m", 200_000));
        session.set_frame(frame(100));
        session.push(Message::user("Find the bug."));
        (0..10).for_each(|n| step(&mut session, n, 2_000));
        let request = ticket(&mut session);
        if report_first {
            session.observe(request, &usage);
        }
        session.set_frame(frame(200));
        if !report_first {
            session.observe(request, &usage);
        }
        ready(&mut session);
        session.size().tokens
    };
    assert_eq!(size(true), size(false));
}

#[test]
fn a_late_overflow_of_the_model_before_teaches_the_new_one_nothing() {
    let named = Overflow { prompt: Some(Tokens(31_920)), window: Some(Tokens(8_000)), answer: None };
    for overflow in [named, Overflow::default()] {
        let mut session = roomy(20);
        let refused = ticket(&mut session);
        session.switch(model("large", 1_000_000), Seals::Client);
        ready(&mut session);
        session.overflowed(refused, overflow);
        assert_eq!(session.budget().window, Tokens(1_000_000));
        ready(&mut session);
        assert_eq!(session.ledger().edits().count(), 0, "nothing was refused that it was sent");
    }
}

#[test]
fn a_late_overflow_makes_no_new_request_of_the_same_bytes() {
    let mut session = roomy(20);
    let first = ticket(&mut session);
    session.compact_now();
    let second = ticket(&mut session);
    assert_ne!(first, second);
    let request = sent(&session);
    session.overflowed(first, Overflow::default());
    let third = ticket(&mut session);
    assert!(sent(&session) != request || third == second, "two tickets, one request");
}

#[test]
fn a_request_after_a_refusal_is_smaller_and_its_retry_the_same() {
    let mut session = roomy(30);
    session.set_todos(Some(&"todo words of some length, ".repeat(3_000)));
    ticket(&mut session);
    let refused = session.size().tokens;
    overflowed(&mut session);
    let second = ticket(&mut session);
    assert!(session.size().tokens < refused);
    let request = sent(&session);
    assert_eq!(ticket(&mut session), second);
    assert_eq!(sent(&session), request);
    // Nor does the next request grow back to it.
    session.push(Message::assistant("ok"));
    session.push(Message::user("Go on."));
    ticket(&mut session);
    assert!(session.size().tokens < refused, "{} was refused", refused);
}

#[test]
fn a_pin_is_cut_when_the_provider_refuses() {
    let mut session = session(200_000);
    session.pin("p", "pinned words of some length, ".repeat(3_000));
    session.push(Message::user("Find the bug."));
    ticket(&mut session);
    let refused = session.size().tokens;
    overflowed(&mut session);
    ready(&mut session);
    assert!(session.size().tokens < refused && text(&session).contains(" left out; recall "));
}

#[test]
fn an_overflow_while_a_summary_is_written_folds_to_the_new_window() {
    let mut session = over_trigger(true);
    assert!(session.job().is_some());
    let refused = session.last_ticket().unwrap();
    session.overflowed(refused, Overflow { prompt: None, window: Some(Tokens(8_000)), answer: None });
    let mut asked = 0;
    while let Prepared::Summarise(job) = session.prepare(None).unwrap() {
        asked += 1;
        assert!(asked < 10, "it asks for summaries without end");
        let resolved = session.resolve(job.id, Outcome::Summary("Steps were read.".into()));
        assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
    }
    // The summary was asked for with the target of the larger window.
    let (size, target) = (session.size().tokens, session.budget().target);
    assert!(size <= target + Tokens(600), "{size} is over {target}");
}

#[test]
fn a_window_that_the_provider_names_is_the_window() {
    let mut session = Session::new(by_limits(), model("m", 200_000));
    session.push(Message::user("Find the bug."));
    (0..40).for_each(|n| step(&mut session, n, 4_000));
    let refused = ticket(&mut session);
    // "prompt is too long: 31920 tokens > 30000 maximum"
    session.overflowed(
        refused,
        Overflow { prompt: Some(Tokens(31_920)), window: Some(Tokens(30_000)), answer: None },
    );
    assert_eq!(session.budget().window, Tokens(30_000));
    assert_eq!(session.size().tokens, Tokens(31_920));
    ready(&mut session);
    assert!(session.size().tokens <= session.budget().hard && session.budget().hard < Tokens(30_000));
    // It stays, through a store too; another model has its own.
    assert_eq!(reload(&session).budget(), session.budget());
    (50..60).for_each(|n| step(&mut session, n, 4_000));
    ready(&mut session);
    assert!(session.size().tokens < Tokens(30_000));
    session.switch(model("other", 200_000), Seals::Engine);
    assert_eq!(session.budget().window, Tokens(200_000));
}

#[test]
fn what_an_answer_takes_is_kept_free() {
    let mut session = session(100_000);
    assert_eq!(session.budget().hard, Tokens(85_000));
    let mut frame = Frame::default();
    frame.settings.push("max_tokens", Json::new("30000").unwrap());
    session.set_frame(frame);
    assert_eq!(session.budget().hard, Tokens(85_000));
    // An answer was longer: the next one may be as long.
    session.push(Message::user("Write it all."));
    ready(&mut session);
    observe(&mut session, &Usage { input: 100, output: 21_000, ..Usage::default() });
    assert_eq!(session.budget().hard, Tokens(79_000));
    assert_eq!(reload(&session).budget(), session.budget());
    // No answer is longer than the request allows, whatever is reported.
    session.push(Message::assistant("Here it is."));
    session.push(Message::user("And the rest."));
    ready(&mut session);
    observe(&mut session, &Usage { input: 200, output: 9_000_000, ..Usage::default() });
    assert_eq!(session.budget().hard, Tokens(70_000));
    session.set_max_output(Tokens(2_000));
    assert_eq!(session.budget().hard, Tokens(98_000));
    session.set_window(Tokens(50_000));
    assert_eq!(session.budget().hard, Tokens(48_000));
}

#[test]
fn another_frame_is_a_cold_moment() {
    let mut session = session(20_000);
    session.set_frame(Frame { system: vec![Block::text("Be brief.")], ..Frame::default() });
    session.push(Message::user("Find the bug."));
    let mut n = 0;
    while session.size().tokens <= session.budget().target + Tokens(600) {
        step(&mut session, n, 1_000);
        ready(&mut session);
        n += 1;
    }
    assert_eq!(folds(&session), 0);
    session.set_frame(Frame { system: vec![Block::text("Be long.")], ..Frame::default() });
    ready(&mut session);
    let (edit, _) = session.ledger().edits().last().expect("it compacts, since all is billed anew");
    assert_eq!((edit.why, edit.price.rewrites), (Why::Cold, Tokens(0)));
}

#[test]
fn another_limit_of_the_answer_is_no_cold_moment() {
    let frame = |max_tokens: usize| {
        let json = format!(r#"{{"system":"Be brief.","max_tokens":{max_tokens}}}"#);
        Frame::from_json(&Json::new(json).unwrap()).unwrap()
    };
    let mut session = session(20_000);
    session.set_frame(frame(1_000));
    session.push(Message::user("Find the bug."));
    (0..5).for_each(|n| step(&mut session, n, 9_000));
    ready(&mut session);
    assert!(session.size().tokens > session.budget().target);
    session.set_frame(frame(1_001));
    session.push(Message::assistant("Done."));
    session.push(Message::user("And now?"));
    ready(&mut session);
    assert_eq!(session.ledger().edits().count(), 0);
    assert!(!session.sent().unwrap().cold);
}

/// A client that writes the keys of its metadata in another order at each call.
#[test]
fn what_is_of_the_request_alone_makes_no_new_frame() {
    let frame = |n: usize| {
        let metadata = if n.is_multiple_of(2) { r#"{"a":1,"b":2}"# } else { r#"{"b":2,"a":1}"# };
        let json = format!(
            r#"{{"model":"m","system":"Be brief.","tools":[{{"name":"exec"}}],"reasoning":{{"effort":"high"}},"client_metadata":{metadata},"prompt_cache_key":"k{n}"}}"#
        );
        Frame::from_json(&Json::new(json).unwrap()).unwrap()
    };
    let mut session = session(40_000);
    session.push(Message::user("Find the bug."));
    for n in 0..31 {
        session.set_frame(frame(n));
        let ticket = common::ticket(&mut session);
        session.observe(ticket, &Usage { input: session.size().tokens.0, ..Usage::default() });
        assert_eq!(session.outgoing().frame, Some(&frame(n)), "the newest rest is sent");
        assert!(!session.sent().unwrap().broke);
        step(&mut session, n, 300);
    }
    assert_eq!(session.log().frame_version(), 1);
    let noted = |entry: &&Entry| matches!(entry, Entry::Frame(_) | Entry::MaxOutput(_));
    assert_eq!(session.since(Cursor(0)).filter(noted).count(), 1);
    // Another prompt is another frame, and its rest is its own.
    session.set_frame(Frame { model: Some("n".into()), ..frame(0) });
    assert_eq!(session.outgoing().frame.unwrap().model.as_deref(), Some("n"));
    assert_eq!(session.log().frame_version(), 2);
}

#[test]
fn the_longest_answer_of_a_frame_is_noted_alone() {
    let frame = |rest: &str| {
        Frame::from_json(&Json::new(format!(r#"{{"system":"Be brief."{rest}}}"#)).unwrap()).unwrap()
    };
    let mut session = session(100_000);
    session.set_frame(frame(r#","max_tokens":1000"#));
    session.set_frame(frame(r#","max_tokens":9000,"stream":true"#));
    session.set_frame(frame(r#","max_tokens":9000"#));
    assert_eq!(session.budget().hard, Tokens(91_000));
    assert_eq!(reload(&session).budget(), session.budget());
    session.set_frame(frame(""));
    assert_eq!(session.budget().hard, Tokens(85_000));
    assert_eq!(reload(&session).budget(), session.budget());
    let noted: Vec<&Entry> = session.since(Cursor(0)).filter(|e| matches!(e, Entry::MaxOutput(_))).collect();
    assert_eq!(noted, [&Entry::MaxOutput(Some(Tokens(9_000))), &Entry::MaxOutput(None)]);
}

#[test]
fn the_cache_lives_as_long_as_the_request_asks() {
    let minutes = |n: i64| Some(Time(n * 60_000_000));
    let warm = |lifetime: Option<u64>| {
        let mut session = session(20_000);
        lifetime.into_iter().for_each(|seconds| session.set_cache_lifetime(seconds));
        session.push(Message::user("Find the bug."));
        (0..12).for_each(|n| step(&mut session, n, 4_000));
        session.prepare(minutes(0)).unwrap();
        session.push(Message::assistant("Done."));
        session.push(Message::user("And now?"));
        session.prepare(minutes(40)).unwrap();
        !session.sent().unwrap().cold
    };
    assert!(!warm(None) && warm(Some(3_600)));
}

#[test]
fn sealed_reasoning_comes_back_with_its_model() {
    let thinking = || {
        let mut session = session(100_000);
        session.push(Message::user("go"));
        for id in ["a", "b", "c"] {
            session.push(thought("I think.", id));
            session.push(Message::result(id, "ok"));
        }
        ready(&mut session);
        session
    };
    let mut session = thinking();
    session.switch(model("other", 100_000), Seals::Engine);
    session.push(thought("I think.", "d"));
    session.push(Message::result("d", "ok"));
    ready(&mut session);
    assert_eq!(thoughts(&session), 1);
    let mut session = reload(&session);
    session.switch(model("m", 100_000), Seals::Engine);
    ready(&mut session);
    assert_eq!(thoughts(&session), 3);
    // A client that sees to it itself.
    let mut session = thinking();
    session.switch(model("other", 100_000), Seals::Client);
    ready(&mut session);
    assert_eq!(thoughts(&session), 3);
}

#[test]
fn redo_drops_no_reasoning_that_the_model_can_read() {
    let mut session = session(100_000);
    session.push(Message::user("Find the bug."));
    session.push(thought("I think.", "a"));
    session.push(Message::result("a", "ok"));
    session.switch(model("other", 100_000), Seals::Engine);
    ready(&mut session);
    assert_eq!(thoughts(&session), 0);
    let dropped = session.ledger().edits().next().unwrap().0.id;
    session.switch(model("m", 100_000), Seals::Engine);
    ready(&mut session);
    assert_eq!(thoughts(&session), 1);
    _ = session.redo(dropped);
    ready(&mut session);
    assert_eq!(thoughts(&session), 1);
}

/// A session with a fold that took in a fold, and the handle of the newest.
fn folded_twice() -> (Session, String) {
    let mut session = session(8_000);
    session.push(Message::user("Find the bug."));
    let mut n = 0;
    while session.ledger().edits().filter(|(edit, _)| !edit.depends.is_empty()).count() < 1 {
        step(&mut session, n, 900);
        ready(&mut session);
        n += 1;
        assert!(n < 200);
    }
    let (edit, _) = session.ledger().edits().last().unwrap();
    let handle = edit.originals[0].short();
    (session, handle)
}

#[test]
fn recall_looks_inside_folds_of_folds() {
    let (session, handle) = folded_twice();
    let whole = session.recall(&handle, &RecallPart::Whole).unwrap();
    assert!(whole.contains("line of step_0 ") && whole.contains("line of step_1 "), "{whole}");
    let found = session.recall(&handle, &RecallPart::Pattern("step_0 ".into())).unwrap();
    assert!(found.lines().count() > 5 && found.contains("line of step_0 "), "{found}");
    // The number of a line is the same whichever way it is asked for.
    let (number, line) = found.lines().next().unwrap().split_once(':').unwrap();
    let number = number.parse().unwrap();
    assert_eq!(session.recall(&handle, &RecallPart::Lines(number, number)).unwrap(), line);
}

#[test]
fn a_result_that_begins_with_a_handle_is_recalled_as_it_was() {
    let mut session = session(8_000);
    let numbered = |word: &str| (0..9_000).map(|n| format!("{word}{n}\n")).collect::<String>();
    let newest = |session: &Session| session.ledger().edits().last().unwrap().0.originals[0];
    session.push(Message::user("Find the bug."));
    session.push(call("a"));
    session.push(Message::result("a", numbered("x")));
    ready(&mut session);
    let original = format!("[{}]\n{}", newest(&session), numbered("y"));
    session.push(call("b"));
    let at = session.push(Message::result("b", original.as_str()));
    ready(&mut session);
    let (edit, _) = session.ledger().edits().find(|(edit, _)| edit.kind.spans()[0].contains(at)).unwrap();
    let recalled = session.recall(&edit.originals[0].to_string(), &RecallPart::Whole).unwrap();
    assert!(recalled == original, "{} bytes of {}", recalled.len(), original.len());
}

#[test]
fn a_search_finds_what_was_taken_out() {
    let (session, _) = folded_twice();
    let found = session.search("value_0 in", 3).unwrap();
    assert_eq!((found.len(), found[0].at), (3, Position(2)));
    assert!(found[2].number > found[0].number && found[0].line.contains("step_0"));
    assert!(session.search("(", 3).is_err());
    assert!(session.search("nobody said this", 3).unwrap().is_empty());
}

#[test]
fn marks_say_how_to_recall_where_the_host_wants_it() {
    let mut session = session(8_000);
    session.set_recall(RecallBy::Command("longhaul recall s1".into()));
    session.push(Message::user("Find the bug."));
    for n in 0..40 {
        step(&mut session, n, 900);
        ready(&mut session);
    }
    let shown = text(&session);
    let (_, behind) = shown.split_once("; recall ").expect("a mark");
    let (handle, says) = behind.split_once(' ').unwrap();
    assert!(says.starts_with(&format!("by running `longhaul recall s1 {handle}`⟧")), "{says}");
    assert!(session.recall(handle, &RecallPart::Whole).is_ok());
}

#[test]
fn how_to_recall_is_kept_in_the_journal() {
    let mut session = session(8_000);
    assert_eq!(*session.recall_by(), RecallBy::Unsaid);
    session.set_recall(RecallBy::Tool("longhaul_recall".into()));
    session.push(Message::user("Find the bug."));
    let by_tool = RecallBy::Tool("longhaul_recall".into());
    assert_eq!(*reload(&session).recall_by(), by_tool);
    assert_eq!(*session.fork(Position(0)).unwrap().recall_by(), by_tool);
}

#[test]
fn the_host_answers_a_call_that_the_client_could_not_run() {
    let (mut session, handle) = folded_twice();
    let arguments = Json::new(format!(r#"{{"handle":"{handle}"}}"#)).unwrap();
    session.push(Message::new(Role::Assistant, vec![Block::call("r", "longhaul_recall", arguments)]));
    let at = session.push(Message::result("r", "No such tool available"));
    let recalled = session.recall(&handle, &RecallPart::Lines(1, 20)).unwrap();
    session.answer(at, 0, recalled.as_str()).unwrap();
    ready(&mut session);
    assert!(text(&session).contains(&recalled) && !text(&session).contains("No such tool"));
    let (edit, _) = session.ledger().edits().last().unwrap();
    assert!(matches!(edit.kind, EditKind::Answer { .. }) && edit.after > edit.before);
    let mut loaded = reload(&session);
    loaded.push(Message::assistant("So it is."));
    ready(&mut loaded);
    assert!(text(&loaded).contains(&recalled));
    // The client's own bytes are there still.
    let own = edit.originals[0].to_string();
    assert_eq!(session.recall(&own, &RecallPart::Whole).unwrap(), "No such tool available");
    assert!(session.answer(Position(0), 0, "x").is_err());
}

#[test]
fn a_store_is_asked_for_what_the_session_does_not_have() {
    let mut store = MemoryArchive::default();
    let handle = store.put("text of another session");
    let session = session(8_000).with_store(std::sync::Arc::new(store));
    assert_eq!(session.recall(&handle.short(), &RecallPart::Whole).unwrap(), "text of another session");
    assert!(session.recall("123456", &RecallPart::Whole).is_err());
}

#[test]
fn a_warning_is_given_once_each_time_it_is_passed() {
    let mut session = session(20_000);
    session.push(Message::user("Find the bug."));
    let (mut warnings, mut n) = (Vec::new(), 0);
    while folds(&session) < 2 {
        step(&mut session, n, 900);
        ready(&mut session);
        let large = |notice: &Notice| matches!(notice, Notice::Large { .. });
        warnings.extend(session.take_notices().into_iter().filter(large).map(|_| folds(&session)));
        n += 1;
        assert!(n < 500);
    }
    assert_eq!(warnings, [0, 1]);
    assert!(session.take_notices().is_empty());
}

#[test]
fn a_warning_is_given_when_the_window_shrinks_around_the_prompt() {
    let mut session = roomy(30);
    ready(&mut session);
    assert_eq!(session.take_notices(), []);
    // Between the warning (70 %) and the trigger (75 %).
    session.set_window(Tokens(session.size().tokens.0 * 100 / 72));
    ready(&mut session);
    assert!(matches!(session.take_notices()[..], [Notice::Large { .. }]));
}

#[test]
fn an_audit_between_push_and_prepare_finds_nothing_wrong() {
    let mut session = session(8_000);
    session.push(Message::user("Find the bug."));
    assert_eq!(session.audit(), []);
    for n in 0..60 {
        step(&mut session, n, 900);
        assert_eq!(session.audit(), [], "{n}");
        session.push(call("w"));
        assert_eq!(session.audit(), [], "{n}");
        ready(&mut session);
    }
}

#[test]
fn what_outgrew_the_window_is_no_fault_before_it_is_prepared() {
    let mut session = session(20_000);
    session.push(Message::user("Find the bug."));
    ready(&mut session);
    (0..60).for_each(|n| step(&mut session, n, 2_000));
    assert_eq!(session.audit(), []);
    assert_eq!(reload(&session).audit(), []);
    assert_eq!(session.fork(session.log().end()).unwrap().audit(), []);
    ready(&mut session);
    assert!(folds(&session) > 0);
}

#[test]
fn a_limit_that_moved_is_no_fault_before_it_is_prepared() {
    let prepared = || {
        let mut session = roomy(60);
        ready(&mut session);
        session
    };
    let mut smaller = prepared();
    smaller.set_window(Tokens(20_000));
    let mut switched = prepared();
    switched.switch(model("small", 8_000), Seals::Engine);
    // A neutral meter learns nothing: this one is the model's own.
    let mut reported = Session::new(by_limits(), model("m", 200_000));
    reported.push(Message::user("Find the bug. ".repeat(20_000)));
    ready(&mut reported);
    observe(&mut reported, &Usage { input: 199_000, ..Usage::default() });
    assert!(reported.size().tokens > reported.budget().hard);
    let mut answered = prepared();
    answered.answer(Position(120), 0, "x".repeat(4_000_000)).unwrap();
    for session in [smaller, switched, reported, answered] {
        assert_eq!(session.audit(), []);
    }
}

#[test]
fn a_fact_that_changed_is_no_fault_before_it_is_prepared() {
    let mut session = session(8_000);
    session.set_rules("AGENTS.md", Some("Never use tabs."));
    session.push(Message::user("Find the bug."));
    ready(&mut session);
    session.set_rules("AGENTS.md", Some("Never use spaces."));
    session.pin("branch", "main");
    session.push(Message::assistant("ok"));
    assert_eq!(session.audit(), []);
    session.set_rules("AGENTS.md", None);
    session.unpin("branch");
    session.set_goal("Find the other bug.");
    session.push(Message::user("Go on."));
    assert_eq!(session.audit(), []);
    assert_eq!(reload(&session).audit(), []);
}

#[test]
fn a_fork_knows_what_was_before_it_and_nothing_else() {
    let mut session = session(8_000);
    session.push(Message::user("Find the bug."));
    for n in 0..10 {
        step(&mut session, n, 300);
        ready(&mut session);
    }
    let (billed, end) = (session.sent(), session.log().end());
    for n in 10..60 {
        step(&mut session, n, 900);
        ready(&mut session);
    }
    session.set_rules("AGENTS.md", Some("Never do this."));
    ready(&mut session);
    let handle =
        session.ledger().edits().find(|(edit, _)| edit.kind.replaces_runs()).unwrap().0.originals[0].short();
    let mut fork = session.fork(end).unwrap();
    assert_eq!((fork.sent(), fork.ledger().edits().count()), (billed, 0));
    assert!(fork.recall(&handle, &RecallPart::Whole).is_err());
    // The provider has its prefix: only what is new is billed.
    fork.push(Message::user("Another way."));
    ready(&mut fork);
    assert!(!text(&fork).contains("Never do this."));
    assert!(!fork.sent().unwrap().broke && fork.sent().unwrap().billed.written < Tokens(20));
}

/// What the host answered is what was said, for whatever comes later.
#[test]
fn an_answer_is_cut_digested_folded_and_recalled_like_a_result() {
    let page: String = (0..400).map(|n| format!("recalled_line {n} of what was asked for\n")).collect();
    let answered = |window: u64| {
        let mut session = session(window);
        session.push(Message::user("Find the bug."));
        session.push(Message::new(Role::Assistant, vec![Block::call("r", "Fetch", Json::empty_object())]));
        let at = session.push(Message::result("r", "No such tool available"));
        session.answer(at, 0, page.as_str()).unwrap();
        session
    };
    // In the newest step it is cut where the hard limit leaves no room.
    let mut small = answered(4_000);
    ready(&mut small);
    assert!(text(&small).contains("recalled_line 0 ") && text(&small).contains(" left out; recall "));
    // Later it becomes a digest or goes into a fold, and can be found and recalled.
    let mut session = answered(16_000);
    for n in 0..60 {
        step(&mut session, n, 900);
        ready(&mut session);
    }
    assert!(!text(&session).contains("recalled_line 77 "));
    assert_eq!(session.search("recalled_line 77 ", 5).unwrap().len(), 1);
    let fold =
        session.ledger().edits().find(|(edit, _)| edit.kind.replaces_runs()).unwrap().0.originals[0].short();
    let found = session.recall(&fold, &RecallPart::Pattern("recalled_line 77 ".into())).unwrap();
    assert!(found.contains("recalled_line 77 of what"), "{found}");
    assert_eq!(reload(&session).recall(&fold, &RecallPart::Pattern("line 77 ".into())).unwrap(), found);
}

#[test]
fn a_digest_of_what_was_answered_is_of_the_answer() {
    let mut session = Session::new(Profile::transform(), model("m", 200_000)).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    session.push(call("r"));
    let at = session.push(Message::result("r", "error of the client\n".repeat(40)));
    let page: String = (0..400).map(|n| format!("recalled_line {n}\n")).collect();
    session.answer(at, 0, page).unwrap();
    (0..10).for_each(|n| step(&mut session, n, 600));
    ready(&mut session);
    let digest = |kind: &EditKind| matches!(kind, EditKind::Digest { at: digested, .. } if *digested == at);
    assert!(session.ledger().edits().any(|(edit, active)| active && digest(&edit.kind)));
    assert!(!text(&session).contains("error of the client"));
}

#[test]
fn an_answer_is_no_error() {
    let mut session = session(8_000);
    session.push(Message::user("Find the bug."));
    session.push(call("r"));
    let Block::ToolResult(mut failed) = Block::result("r", "No such tool available") else { panic!() };
    failed.is_error = true;
    let at = session.push(Message::new(Role::Tool, vec![Block::ToolResult(failed)]));
    session.answer(at, 0, "what was recalled").unwrap();
    ready(&mut session);
    let shown = session.view().parts().iter().flat_map(|part| part.message.results());
    let shown: Vec<_> = shown.map(|result| (&*result.text, result.is_error)).collect();
    assert_eq!(shown, [("what was recalled", false)]);
}

/// A session in which a client could not run a recall, and the host has answered in its place.
fn recalled(window: u64, page: &str) -> (Session, Position) {
    let mut session = session(window);
    session.push(Message::user("Find the bug."));
    let call = Block::call("r", "longhaul_recall", Json::new(r#"{"handle":"3f9a51c02b77"}"#).unwrap());
    session.push(Message::new(Role::Assistant, vec![call]));
    let Block::ToolResult(mut failed) = Block::result("r", "error: no such tool longhaul_recall") else {
        panic!()
    };
    failed.is_error = true;
    let at = session.push(Message::new(Role::Tool, vec![Block::ToolResult(failed)]));
    session.answer(at, 0, page).unwrap();
    (session, at)
}

fn page() -> String {
    (0..300).map(|n| format!("recalled_line {n} of what was asked for\n")).collect()
}

#[test]
fn what_was_recalled_is_never_a_digest_and_its_fold_tells_of_no_error() {
    let (mut session, at) = recalled(16_000, &page());
    for n in 0..60 {
        step(&mut session, n, 900);
        ready(&mut session);
    }
    assert!(folds(&session) > 0 && session.ledger().covering(at).is_some());
    let mut texts = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs());
    let fold = texts.next().and_then(|(edit, _)| edit.kind.text()).unwrap();
    // What the fold reads is what was shown, and that is no error.
    assert!(fold.contains("recalled_line") && !fold.contains("no such tool"), "{}", &**fold);
    assert!(!fold.contains("`longhaul_recall"), "{}", &**fold);
    // Where results are digested first, those of others are.
    let old_results = vec![Strategy::find("old-results").unwrap()];
    let profile = Profile { ladder: old_results, ..by_limits() };
    let mut digested = Session::load(profile, entries(&saved(&recalled(16_000, &page()).0))).unwrap();
    for n in 0..40 {
        step(&mut digested, n, 900);
        ready(&mut digested);
    }
    let digests = |session: &Session| {
        let edits = session.ledger().edits().map(|(edit, _)| edit.kind.clone());
        let digests = edits.filter_map(|kind| match kind {
            EditKind::Digest { at, .. } => Some(at),
            _ => None,
        });
        digests.collect::<Vec<_>>()
    };
    assert!(digests(&digested).len() > 5 && !digests(&digested).contains(&at));
}

/// A store may keep the text of an answer apart, and a fold may hide the answer.
#[test]
fn a_fold_is_recalled_with_the_answers_in_it_after_a_restart() {
    let (mut session, at) = recalled(16_000, &page());
    for n in 0..60 {
        step(&mut session, n, 900);
        ready(&mut session);
    }
    let (_, fold) = session.ledger().covering(at).unwrap();
    let fold = session.ledger().get(fold).unwrap().originals[0].short();
    let whole = session.recall(&fold, &RecallPart::Whole).unwrap();
    assert!(whole.contains(&page()));
    let mut store = MemoryArchive::default();
    let apart = |entry: &Entry| match entry.apart() {
        Some((entry, _, text)) => {
            store.put(&*text);
            entry
        }
        None => entry.clone(),
    };
    let journal: Vec<Entry> = session.since(Cursor(0)).map(apart).collect();
    let known = Known { store: Some(std::sync::Arc::new(store)), ..Known::default() };
    let loaded = Session::load_with(by_limits(), journal, known).unwrap();
    assert_eq!(loaded.recall(&fold, &RecallPart::Whole).unwrap(), whole);
    assert_eq!(loaded.audit(), []);
}

#[test]
fn an_answer_that_is_taken_back_shows_what_the_client_said() {
    let (mut session, at) = recalled(16_000, &page());
    ready(&mut session);
    let edit = session.ledger().inside(at)[0];
    session.undo(edit).unwrap();
    ready(&mut session);
    let results: Vec<_> = session.view().parts().iter().flat_map(|part| part.message.results()).collect();
    assert!(results[0].is_error && &*results[0].text == "error: no such tool longhaul_recall");
    session.redo(edit).unwrap();
    ready(&mut session);
    assert!(text(&session).contains(&page()));
    assert_eq!(text(&reload(&session)), text(&session));
}

#[test]
fn a_job_of_another_profile_holds_nothing_up() {
    let session = over_trigger(true);
    let lines = saved(&session);
    let mut loaded = Session::load(by_limits(), entries(&lines)).unwrap();
    ready(&mut loaded);
    assert!(loaded.job().is_none() && folds(&loaded) == 1);
}
