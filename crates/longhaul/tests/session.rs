//! Sessions through the public API: what compaction does, and that it breaks no rule whatever
//! comes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::histories::{WINDOWS, answer, histories, message, other_rest, prepare, start};
use common::{by_limits, entries, model, observe, overflowed, reload, saved, sent, session, step, text};
use longhaul::conversation::{Image, Thinking};
use longhaul::edits::Limit;
use longhaul::policy::Tripped;
use longhaul::{
    Block, EditId, EditKind, End, Extra, Frame, Json, LedgerError, Message, Meter, Notice, Outcome, Position,
    PrepareError, Prepared, Profile, RecallPart, Resolved, Role, Seal, Seals, Session, Source, Summariser,
    Time, Tokens, TooLarge, Tool, Usage, Why,
};
use proptest::prelude::*;

/// A ladder that begins with digests.
fn digests_first(window: u64) -> Session {
    let named =
        |name: &str| longhaul::policy::STRATEGIES.into_iter().find(|strategy| strategy.name == name).unwrap();
    let profile =
        Profile { ladder: ["old-results", "fold-turns", "fold-steps"].map(named).to_vec(), ..by_limits() };
    Session::new(profile, model("m", window)).with_meter(Meter::neutral())
}

/// A session whose meter is the model's own.
fn counted(window: u64) -> Session {
    Session::new(by_limits(), model("m", window))
}

fn asks(ids: &[&str]) -> Message {
    let call = |id: &&str| Block::call(*id, "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap());
    Message::new(Role::Assistant, ids.iter().map(call).collect())
}

/// Prepares, and checks that all rules hold and the limit too.
fn ready(session: &mut Session) -> usize {
    match session.prepare(None).unwrap() {
        Prepared::Send(_) => {}
        Prepared::Summarise(job) => panic!("unexpected {job:?}"),
    }
    assert_eq!(session.audit(), []);
    assert!(session.size().tokens <= session.budget().hard);
    session.view().parts().len()
}

// covers: S-5, S-8
#[test]
fn a_long_turn_is_digested_then_folded_down_to_the_target() {
    let mut session = digests_first(20_000);
    session.push(Message::user("Find the bug."));
    let mut kinds = Vec::new();
    for n in 0..200 {
        ready(&mut session);
        step(&mut session, n, 2_000);
    }
    ready(&mut session);
    for (edit, _) in session.ledger().edits() {
        assert!(edit.after < edit.before, "{edit:?}");
        if kinds.last() != Some(&edit.kind.name()) {
            kinds.push(edit.kind.name());
        }
    }
    assert_eq!(kinds[..2], ["digest", "fold"]);
    assert!(session.ledger().edits().all(|(edit, _)| edit.why == Why::Forced(Limit::Trigger)));
    // The goal is there, once, and so is the newest step.
    assert_eq!(text(&session).matches("Find the bug.").count(), 1);
    assert!(text(&session).contains("line of step_199 "));
}

// covers: S-11
#[test]
fn one_turn_of_500_calls_stays_inside_the_window() {
    for window in [4_000, 8_000, 64_000] {
        let mut session = session(window);
        session.push(Message::user("Read everything."));
        for n in 0..500 {
            step(&mut session, n, 1_500);
            ready(&mut session);
        }
        assert!(session.sent().unwrap().billed.read > Tokens::ZERO);
    }
}

#[test]
fn a_result_of_50_mb_enters_cut_and_can_be_recalled() {
    let mut session = counted(200_000);
    session.push(Message::user("Show the log."));
    session.push(asks(&["a"]));
    let line = "2026-03-02 09:00:00 INFO request handled in 12 ms\n";
    let log = line.repeat((50 << 20) / line.len());
    session.push(Message::result("a", log.as_str()));
    ready(&mut session);
    let (edit, active) = session.ledger().edits().next().unwrap();
    assert_eq!((edit.why, active), (Why::Entry, true));
    assert!(session.size().tokens < Tokens(25_000), "{:?}", session.size());
    let handle = edit.originals[0].to_string();
    assert_eq!(session.recall(&handle, &RecallPart::Whole).unwrap().len(), log.len());
    assert_eq!(session.recall(&handle[..12], &RecallPart::Lines(7, 7)).unwrap(), line.trim_end());
    // Undone, it is too large for any window, and is cut again by force.
    session.undo(edit_id(&session, 0)).unwrap();
    ready(&mut session);
    assert_eq!(session.ledger().edits().last().unwrap().0.why, Why::Forced(Limit::Hard));
}

fn edit_id(session: &Session, n: usize) -> EditId {
    session.ledger().edits().nth(n).unwrap().0.id
}

#[test]
fn a_fixed_overhead_above_the_trigger_is_no_endless_compaction() {
    let mut session = session(10_000);
    let tools = vec![Tool::from_definition(Json::string(&"d".repeat(31_000)))];
    session.set_frame(Frame { tools, ..Frame::default() });
    session.push(Message::user("go"));
    for n in 0..60 {
        step(&mut session, n, 150);
        ready(&mut session);
    }
    let calls = 60;
    let edits = session.ledger().edits().count();
    assert!(edits < calls, "{edits} edits in {calls} calls");
    assert!(matches!(session.stopped(), Some(Tripped::NoProgress { .. } | Tripped::TooOften)));
    assert!(session.stopped().unwrap().to_string().contains("stopped"));
}

#[test]
fn a_fixed_overhead_above_the_limit_is_an_error_that_says_so() {
    let mut session = session(10_000);
    session.set_frame(Frame { system: vec![Block::text("s".repeat(60_000))], ..Frame::default() });
    session.push(Message::user("go"));
    match session.prepare(None).unwrap_err() {
        PrepareError::TooLarge { what: TooLarge::System, tokens, hard, .. } => assert!(tokens > hard),
        other => panic!("{other}"),
    }
}

// covers: S-10
#[test]
fn a_new_goal_stands_for_the_old_one() {
    let mut session = session(20_000);
    session.push(Message::user("Write the parser."));
    ready(&mut session);
    session.set_goal("Write the printer.");
    ready(&mut session);
    assert!(session.view().tail().is_some());
    // Results too short for a digest: they are folded.
    for n in 0..80 {
        step(&mut session, n, 400);
    }
    session.push(Message::assistant("done"));
    session.push(Message::user("next"));
    session.compact_now();
    ready(&mut session);
    // The fold took it in: the tail is free again.
    assert!(session.view().tail().is_none());
    assert_eq!(text(&session).matches("<goal>\nWrite the printer.").count(), 1);
    session.unpin("nothing");
    ready(&mut session);
}

#[test]
fn a_switch_to_a_small_window_in_mid_turn_compacts_before_the_next_call() {
    let mut session = counted(200_000);
    session.push(Message::user("Read it all."));
    for n in 0..40 {
        let id = format!("c{n}");
        let thought = Block::Thinking(Thinking {
            text: "hm".into(),
            seal: Seal::Signed("s".into()),
            extra: Extra::NONE,
        });
        session.push(Message::new(
            Role::Assistant,
            vec![thought, Block::call(id.as_str(), "Read", Json::empty_object())],
        ));
        session.push(Message::result(id, "some words of a file\n".repeat(200)));
    }
    ready(&mut session);
    assert!(session.size().tokens > Tokens(20_000));
    session.switch(model("small", 8_000), Seals::Engine);
    ready(&mut session);
    assert!(session.size().tokens <= session.budget().hard && session.budget().window == Tokens(8_000));
    // Signatures of the other model are gone.
    let thinking = session
        .view()
        .parts()
        .iter()
        .flat_map(|part| part.message.blocks())
        .filter(|b| matches!(b, Block::Thinking(_)));
    assert_eq!(thinking.count(), 0);
}

#[test]
fn reasoning_of_another_model_does_not_come_back_by_undo() {
    let mut session = session(8_000);
    session.push(Message::user("go"));
    let thought =
        Block::Thinking(Thinking { text: "t".into(), seal: Seal::Signed("s".into()), extra: Extra::NONE });
    session.push(Message::new(Role::Assistant, vec![thought.clone(), Block::text("done")]));
    for n in 0..80 {
        step(&mut session, n, 400);
    }
    session.push(Message::assistant("done"));
    session.push(Message::user("next"));
    session.compact_now();
    ready(&mut session);
    let fold = session.ledger().edits().find(|(edit, _)| edit.kind.replaces_runs()).unwrap().0.id;
    session.switch(model("other", 200_000), Seals::Engine);
    ready(&mut session);
    session.undo(fold).unwrap();
    ready(&mut session);
    let seals = |session: &Session| {
        session
            .view()
            .parts()
            .iter()
            .flat_map(|part| part.message.blocks())
            .filter(|b| **b == thought)
            .count()
    };
    assert_eq!(seals(&session), 0);
    let rule = session.ledger().edits().find(|(edit, _)| edit.why == Why::Switched).unwrap().0.id;
    assert_eq!(session.undo(rule), Err(LedgerError::Protected(rule)));
}

#[test]
fn a_picture_stays_when_its_text_is_cut() {
    let mut session = session(200_000);
    session.push(Message::user("look"));
    session.push(asks(&["a"]));
    let image =
        Block::Image(Image { source: Json::empty_object(), size: Some((800, 600)), extra: Extra::NONE });
    let result = longhaul::ToolResult {
        id: "a".into(),
        name: None,
        text: "line\n".repeat(20_000).into(),
        is_error: false,
        extra: Extra::NONE,
        content: Some(vec![Block::text("line\n".repeat(20_000)), image.clone()].into()),
    };
    session.push(Message::new(Role::Tool, vec![Block::ToolResult(result)]));
    ready(&mut session);
    let Block::ToolResult(shown) = &session.view().parts()[2].message.blocks()[0] else {
        panic!("no result")
    };
    assert!(shown.text.len() < 60_000 && shown.content.as_deref().unwrap()[1] == image);
}

#[test]
fn a_signature_of_the_running_turn_is_never_touched() {
    let mut session = session(8_000);
    session.push(Message::user("go"));
    let thought = Block::Thinking(Thinking {
        text: "t".repeat(2_000).into(),
        seal: Seal::Signed("s".into()),
        extra: Extra::NONE,
    });
    session.push(Message::new(
        Role::Assistant,
        vec![thought.clone(), Block::call("a", "Read", Json::empty_object())],
    ));
    session.push(Message::result("a", "r".repeat(40_000)));
    ready(&mut session);
    let shown = session
        .view()
        .parts()
        .iter()
        .flat_map(|part| part.message.blocks())
        .filter(|block| **block == thought);
    assert_eq!(shown.count(), 1);
}

#[test]
fn undo_gives_back_and_redo_takes_again_and_what_is_held_is_left_alone() {
    let mut session = digests_first(20_000);
    session.push(Message::user("go"));
    for n in 0..12 {
        step(&mut session, n, 6_000);
    }
    ready(&mut session);
    let before = text(&session);
    let digest = edit_id(&session, 0);
    assert_eq!(session.undo(digest).unwrap(), [digest]);
    assert_eq!(session.undo(digest), Err(LedgerError::Already { edit: digest, state: "undone" }));
    assert_eq!(session.undo(EditId(999)), Err(LedgerError::Unknown(EditId(999))));
    // The trigger leaves it alone; only the hard limit may take it again.
    session.compact_now();
    ready(&mut session);
    let taken = |session: &Session| {
        session
            .ledger()
            .edits()
            .filter(|(edit, active)| *active && edit.kind.spans()[0].contains(Position(2)))
            .count()
    };
    assert_eq!(taken(&session), 0);
    session.redo(digest).unwrap();
    ready(&mut session);
    assert_eq!(taken(&session), 1);
    assert!(before.contains("left out; recall"));
}

#[test]
fn a_summary_goes_with_the_one_it_was_made_from() {
    let mut session = session(20_000);
    session.push(Message::user("go"));
    let mut folds = Vec::new();
    for n in 0..200 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        folds = session
            .ledger()
            .edits()
            .filter(|(edit, _)| matches!(edit.kind, EditKind::Fold { .. }))
            .map(|(edit, _)| edit.clone())
            .collect();
        if folds.len() == 2 {
            break;
        }
    }
    assert_eq!(folds[1].depends, [folds[0].id]);
    // Undoing the later alone brings the earlier back.
    assert_eq!(session.undo(folds[1].id).unwrap(), [folds[1].id]);
    assert!(session.ledger().is_active(folds[0].id));
    session.redo(folds[1].id).unwrap();
    // Undoing the earlier takes the later with it.
    assert_eq!(session.undo(folds[0].id).unwrap(), [folds[1].id, folds[0].id]);
}

#[test]
fn every_edit_says_what_it_costs_and_saves() {
    let mut session = session(20_000);
    session.push(Message::user("go"));
    for n in 0..30 {
        step(&mut session, n, 3_000);
        ready(&mut session);
    }
    let (first, _) = session.ledger().edits().next().unwrap();
    assert_eq!(first.price.saves, first.before - first.after);
    // It stands near the start of a warm prompt: itself and all that it leaves is billed again.
    assert!(first.price.rewrites > first.after && first.price.rewrites < Tokens(10_000), "{first:?}");
}

#[test]
fn a_cold_cache_is_a_good_moment() {
    let mut session = session(20_000);
    session.push(Message::user("go"));
    for n in 0..5 {
        step(&mut session, n, 9_000);
    }
    let at = |minutes: i64| Some(Time(minutes * 60_000_000));
    session.prepare(at(0)).unwrap();
    assert_eq!(session.ledger().edits().count(), 0);
    session.push(Message::assistant("done"));
    session.push(Message::user("and now?"));
    session.prepare(at(1)).unwrap();
    assert_eq!(session.ledger().edits().count(), 0, "{:?}", session.size());
    session.prepare(at(90)).unwrap();
    assert!(session.ledger().edits().all(|(edit, _)| edit.why == Why::Cold));
    assert!(session.ledger().edits().count() > 0 && session.sent().unwrap().cold);
}

fn asking(window: u64) -> Session {
    let profile = Profile { summariser: Summariser::Host, background: false, ..by_limits() };
    let mut session = Session::new(profile, model("m", window)).with_meter(Meter::neutral());
    session.push(Message::user("go"));
    for n in 0..60 {
        step(&mut session, n, 450);
    }
    session
}

fn job(session: &mut Session) -> longhaul::Job {
    match session.prepare(None).unwrap() {
        Prepared::Summarise(job) => job,
        Prepared::Send(_) => panic!("no summary was asked for"),
    }
}

#[test]
fn a_summary_is_asked_for_and_taken() {
    let mut session = asking(8_000);
    let open = job(&mut session);
    assert!(open.messages.len() > 10 && open.limit > Tokens(100));
    assert_eq!(job(&mut session).id, open.id);
    // More may come while it is written.
    step(&mut session, 100, 100);
    let dropped = session.resolve(open.id + 1, Outcome::Summary("x".into()));
    assert!(matches!(dropped, Resolved::Dropped(why) if why == "no such job is open"));
    let taken = session.resolve(open.id, Outcome::Summary("We read sixty files.".into()));
    assert!(matches!(taken, Resolved::Folded), "{taken:?}");
    ready(&mut session);
    assert!(text(&session).contains("We read sixty files."));
}

// covers: S-12
#[test]
fn a_summary_that_is_none_is_replaced_by_an_extract() {
    for outcome in [
        Outcome::Summary("  ".into()),
        Outcome::Summary("w".repeat(80_000)),
        Outcome::Failed("timed out".into()),
    ] {
        let mut session = asking(8_000);
        let open = job(&mut session);
        // It is asked for once more, with what was wrong.
        let Resolved::Again(again, problem) = session.resolve(open.id, outcome.clone()) else { panic!() };
        assert_eq!((again.attempt, again.problem.as_deref()), (2, Some(problem.as_str())));
        assert_eq!(job(&mut session).id, again.id);
        assert!(matches!(session.resolve(again.id, outcome), Resolved::Extracted(_)));
        ready(&mut session);
        assert!(text(&session).contains("Call Read: src/lib.rs"));
    }
}

#[test]
fn a_summariser_that_fails_three_times_is_asked_no_more() {
    let mut session = asking(8_000);
    for n in 0..3 {
        let open = job(&mut session);
        session.resolve(open.id, Outcome::TimedOut);
        ready(&mut session);
        for m in 0..60 {
            step(&mut session, 100 * (n + 1) + m, 450);
        }
    }
    assert_eq!(session.stopped(), Some(&Tripped::Failures));
    let stopped = |notice: &Notice| *notice == Notice::Stopped(Tripped::Failures);
    assert_eq!(session.take_notices().iter().filter(|notice| stopped(notice)).count(), 1);
    // The extractor goes on alone.
    ready(&mut session);
}

#[test]
fn an_answer_is_taken_as_long_as_its_question_stands() {
    let mut session = asking(8_000);
    let first = job(&mut session);
    // More comes meanwhile: the question is about what was before.
    step(&mut session, 900, 300);
    let taken = session.resolve(first.id, Outcome::Summary("first_summary".into()));
    assert!(matches!(taken, Resolved::Folded), "{taken:?}");
    assert!(text(&session).contains("first_summary"));
    let dropped = session.resolve(first.id, Outcome::Summary("again".into()));
    assert!(matches!(dropped, Resolved::Dropped(why) if why == "no such job is open"));
    // The next question is about that summary too, which is taken back meanwhile.
    let mut steps = 901..;
    let second = loop {
        step(&mut session, steps.next().unwrap(), 1_500);
        if let Prepared::Summarise(job) = session.prepare(None).unwrap() {
            break job;
        }
    };
    assert!(second.earlier.as_deref().is_some_and(|earlier| earlier.contains("first_summary")));
    let fold = session.ledger().edits().find(|(edit, _)| edit.kind.replaces_runs()).unwrap().0.id;
    session.undo(fold).unwrap();
    let dropped = session.resolve(second.id, Outcome::Summary("second_summary".into()));
    assert!(matches!(dropped, Resolved::Dropped(why) if why == "what it covers has changed since"));
    assert!(!text(&session).contains("second_summary"));
}

#[test]
fn cache_marks_are_few_and_in_order() {
    let mut session = session(20_000);
    session.push(Message::system("be brief"));
    session.push(Message::user("go"));
    for n in 0..60 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        let ends = session.view().stable_ends();
        assert!(
            ends.len() <= 4
                && ends.is_sorted()
                && *ends.last().unwrap() == End::After(session.view().parts().len())
        );
    }
}

#[derive(Debug, Clone)]
enum Op {
    Push(Message),
    Prepare(u8),
    Compact,
    Undo(usize),
    Redo(usize),
    Pin(u8, String),
    Unpin(u8),
    Goal(String),
    Remember(u8, String),
    Rules(String),
    Todos(Option<String>),
    GitStat(Option<String>),
    Switch(u8),
    Fork(usize),
    Reload,
    Observe(u64),
    Frame(String),
    Overflowed,
    Resolve,
}

fn op() -> impl Strategy<Value = Op> {
    let text = || "[a-z]{1,40}";
    prop_oneof![
        30 => message().prop_map(Op::Push),
        10 => (0u8..90).prop_map(Op::Prepare),
        1 => Just(Op::Compact),
        2 => (0usize..30).prop_map(Op::Undo),
        2 => (0usize..30).prop_map(Op::Redo),
        1 => (0u8..3, text()).prop_map(|(n, text)| Op::Pin(n, text)),
        1 => (0u8..3).prop_map(Op::Unpin),
        1 => text().prop_map(Op::Goal),
        1 => (0u8..3, text()).prop_map(|(n, text)| Op::Remember(n, text)),
        1 => text().prop_map(Op::Rules),
        1 => prop::option::of(text()).prop_map(Op::Todos),
        1 => prop::option::of(text()).prop_map(Op::GitStat),
        1 => (0u8..4).prop_map(Op::Switch),
        1 => (0usize..60).prop_map(Op::Fork),
        2 => (20u64..9_000).prop_map(Op::Observe),
        1 => text().prop_map(Op::Frame),
        1 => Just(Op::Overflowed),
        3 => Just(Op::Resolve),
        1 => Just(Op::Reload),
    ]
}

/// Applies an operation; gives what was sent, if anything.
fn apply(session: &mut Session, op: &Op, clock: &mut i64) -> Option<Vec<Message>> {
    match op {
        Op::Push(message) => _ = session.push(message.clone()),
        Op::Prepare(minutes) => {
            *clock += i64::from(*minutes) * 60_000_000 / 10;
            other_rest(session, *minutes);
            return prepare(session, Time(*clock)).ok().map(|_| sent(session));
        }
        Op::Compact => session.compact_now(),
        Op::Undo(n) => _ = session.undo(EditId(*n as u32)),
        Op::Redo(n) => _ = session.redo(EditId(*n as u32)),
        Op::Observe(prompt) => observe(session, &Usage { input: *prompt, ..Usage::default() }),
        Op::Frame(text) => {
            session.set_frame(Frame { system: vec![Block::text(text.as_str())], ..Frame::default() })
        }
        Op::Overflowed => overflowed(session),
        Op::Pin(n, text) => session.pin(n.to_string(), text.as_str()),
        Op::Unpin(n) => session.unpin(n.to_string()),
        Op::Goal(text) => session.set_goal(text.as_str()),
        Op::Remember(n, text) => session.remember(n.to_string(), text.as_str()),
        Op::Rules(text) => session.set_rules("RULES.md", Some(text)),
        Op::Todos(text) => session.set_todos(text.as_deref()),
        Op::GitStat(text) => session.set_git_stat(text.as_deref()),
        Op::Switch(n) => session.switch(model(&format!("m{n}"), WINDOWS[*n as usize]), Seals::Engine),
        Op::Fork(at) => *session = session.fork(Position(*at as u32)).unwrap(),
        Op::Reload => *session = reload(session),
        // A summary that was written beside the work.
        Op::Resolve => {
            if let Some(job) = session.job() {
                session.resolve(job.id, answer(&job));
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(histories(10_000))]

    /// All rules hold for every view; what is loaded goes on like what was saved; a view is a
    /// function of what came before; undoing everything gives the repaired log back.
    #[test]
    fn no_history_breaks_a_rule(ops in prop::collection::vec(op(), 1..60), window in 0usize..4, profile in 0usize..8, host: bool, reloads in 0usize..60) {
        let start = || start(profile, window, host).with_meter(Meter::neutral());
        let (mut session, mut clock) = (start(), 0);
        let mut views = Vec::new();
        for op in &ops {
            views.extend(apply(&mut session, op, &mut clock));
        }
        // The same history, stored and loaded at any entry, goes on the same: every later entry is,
        // with its prices and reasons, and so is what is sent.
        let (mut again, mut clock) = (start(), 0);
        let mut others = Vec::new();
        for (n, op) in ops.iter().enumerate() {
            if n == ops.len() / 2 || n % 7 == reloads % 7 {
                again = reload(&again);
            }
            others.extend(apply(&mut again, op, &mut clock));
        }
        prop_assert_eq!(&views, &others);
        prop_assert_eq!(saved(&session), saved(&again));
        prop_assert_eq!(format!("{:?}", session.prepare(None)), format!("{:?}", again.prepare(None)));
        // A fork is the same as a session that was told the same prefix.
        let end = Position(reloads as u32 % (session.log().end().0 + 1));
        let mut fork = session.fork(end).unwrap();
        let told = saved(&fork).split_last().map(|(_, told)| told.to_vec()).unwrap();
        let mut told = Session::load(session.profile().clone(), entries(&told)).unwrap();
        for op in [Op::Prepare(1), Op::Push(Message::user("more")), Op::Prepare(90), Op::Compact, Op::Prepare(1)] {
            let (mut here, mut there) = (0, 0);
            prop_assert_eq!(apply(&mut fork, &op, &mut here), apply(&mut told, &op, &mut there));
        }
        prop_assert_eq!(fork.size(), told.size());
        prop_assert_eq!(fork.sent(), told.sent());
        // Undo of all edits, entry edits included.
        for n in (0..session.ledger().next_id().0).rev() {
            session.undo(EditId(n)).ok();
        }
        let log: Vec<Message> = session.log().show(session.log().units()).map(|shown| match shown {
            longhaul::conversation::Shown::AsIs(at) => (**session.log().get(at).unwrap()).clone(),
            longhaul::conversation::Shown::Made(_, message) => (*message).clone(),
        }).collect();
        // A window that nothing fills: what is shown is the repaired log.
        let mut large = session.clone();
        large.switch(model(&large.model().name.clone(), 1 << 40), Seals::Engine);
        // Reasoning that only another model can read does not come back.
        let foreign = large.ledger().edits().any(|(edit, active)| active && edit.why == Why::Switched);
        let ready = matches!(large.prepare(None), Ok(Prepared::Send(_)));
        // Rules, and a summary that was due or asked for, are made at once.
        let made = large.ledger().edits().any(|(_, active)| active);
        if !foreign && ready && !made {
            let shown: Vec<Message> = large.view().parts().iter().filter(|part| matches!(part.source, Source::Message(_))).map(|part| (*part.message).clone()).collect();
            prop_assert_eq!(shown, log);
        }
    }
}
