//! Profile `progressive`, seed 004.

use super::*;

// covers: P-TRIG
#[test]
fn progressive_compacts_with_less_than_a_quarter_left() {
    let mut session = session(Profile::progressive(), 10_000);
    session.push(Message::user("Read all."));
    let mut before = Tokens::ZERO;
    for n in 0..80 {
        step(&mut session, n, 10);
        let made = strategies(&session).len();
        ready(&mut session);
        if strategies(&session).len() > made {
            assert!(before <= Tokens(7_500) && before > Tokens(7_300), "{before}");
            assert!(session.size().tokens <= Tokens(6_000));
        }
        before = session.size().tokens;
    }
    assert!(strategies(&session).contains(&"sliding-window".to_owned()));
}

// covers: P-TRIG P-FULL
#[test]
fn progressive_sums_up_fully_after_200_calls() {
    let mut session = session(Profile::progressive(), 1_000_000);
    session.push(Message::user("Talk to me."));
    session.pin("port", "The port is 8473.");
    for n in 0..12 {
        session.remember(format!("m{n}"), format!("memory number {n}"));
    }
    session.set_todos(Some("[>] talk"));
    session.set_git_stat(Some("2 files changed"));
    for n in 0..200 {
        ready(&mut session);
        assert!(strategies(&session).is_empty(), "{n}");
        session.push(Message::assistant(format!("Word {n}.")));
        session.push(Message::user("More."));
    }
    ready(&mut session);
    assert_eq!(strategies(&session), ["full-summary"]);
    // Beside itself, the first request stands where its answer is told.
    let all = text(&session).replace("Talk to me. - Word 0.", "");
    for kept in [
        "Talk to me.",
        "The port is 8473.",
        "memory number 11",
        "memory number 2",
        "[>] talk",
        "2 files changed",
        "## Summary of the conversation so far",
    ] {
        assert_eq!(all.matches(kept).count(), 1, "{kept}\n{all}");
    }
    // At most ten memories.
    assert!(!all.contains("memory number 1\n"), "{all}");
    // The counter starts anew.
    session.push(Message::assistant("Word."));
    session.push(Message::user("More."));
    ready(&mut session);
    assert_eq!(strategies(&session), ["full-summary"]);
}

// covers: P-TRIG
#[test]
fn progressive_listens_to_the_mark_and_to_the_user() {
    for (said, compacts) in [("I go on.\n!!!SUMMARY!!!\n", true), ("Print !!!SUMMARY!!! if you must.", false)]
    {
        let mut session = session(Profile::progressive(), 200_000);
        for n in 0..20 {
            round(&mut session, n, 4);
        }
        session.push(Message::user("On."));
        ready(&mut session);
        session.push(Message::assistant(said));
        session.push(Message::user("On."));
        ready(&mut session);
        assert_eq!(!strategies(&session).is_empty(), compacts, "{said}");
    }
    let mut session = rounds(Profile::progressive(), 200_000, 20, 4);
    session.compact_now();
    ready(&mut session);
    assert!(session.ledger().edits().all(|(edit, _)| edit.why == Why::Asked));
    assert!(!strategies(&session).is_empty());
}

// covers: P-WIN
#[test]
fn the_sliding_window_keeps_nine_messages_back_to_the_start_of_their_step() {
    let profile = || Profile {
        shares: Profile::progressive().shares,
        ..only(Profile::progressive(), "sliding-window")
    };
    let build = |steps: usize| {
        let mut session = session(profile(), 200_000);
        session.push(Message::user("Read all."));
        for n in 0..steps {
            step(&mut session, n, 4);
        }
        session.compact_now();
        ready(&mut session);
        session
    };
    // 17 messages are too few: 18 are needed, and more.
    assert!(strategies(&build(8)).is_empty());
    let session = build(20);
    assert_eq!(strategies(&session), ["sliding-window"]);
    // Nine messages end inside a step of two: ten stay.
    let all = text(&session);
    for n in 0..20 {
        assert_eq!(all.contains(&format!("step_{n} line 3 ")), n >= 15, "{n}\n{all}");
    }
}

// covers: P-IMP
#[test]
fn importance_keeps_what_matters_and_saves_something() {
    let mut session = session(only(Profile::progressive(), "importance"), 200_000);
    session.push(Message::user("Keep the build green."));
    for n in 0..30 {
        let id = format!("i{n}");
        let said = if n == 4 {
            "This decision is important: we must keep the old parser because of the error in the new one."
        } else {
            "I look."
        };
        session.push(Message::new(
            Role::Assistant,
            vec![
                Block::text(said),
                Block::call(id.as_str(), "Read", Json::new(r#"{"path":"a.rs"}"#).unwrap()),
            ],
        ));
        session.push(Message::result(id.as_str(), format!("content number {n} of it\n").repeat(20)));
    }
    let before = {
        ready(&mut session);
        session.size().tokens
    };
    session.compact_now();
    ready(&mut session);
    let all = parts(&session);
    assert!(all.iter().any(|part| part.starts_with("This decision is important")), "{all:#?}");
    // A tool call alone is no reason to keep a step.
    assert!(session.size().tokens.0 * 10 < before.0 * 7, "{before} {}", session.size().tokens);
    assert!(text(&session).contains("content number 29 of it\n"));
}

// covers: P-IMP
#[test]
fn where_everything_is_important_the_least_goes_first() {
    let mut session = session(only(Profile::progressive(), "importance"), 20_000);
    session.push(Message::user("Go."));
    for n in 0..60 {
        session.push(Message::user(format!(
            "Important: you must fix error number {n}. It is key. {}",
            "Really. ".repeat(30)
        )));
        session.push(Message::assistant("I fixed the important error, as I must."));
        ready(&mut session);
    }
    assert!(session.size().tokens <= session.budget().trigger, "{:?}", session.size());
    assert!(text(&session).contains("error number 59") && text(&session).contains("Go."));
}

// covers: P-EVENT S-4
#[test]
fn key_events_stay_whole_and_no_pair_is_split() {
    let mut session = session(only(Profile::progressive(), "key-events"), 200_000);
    session.push(Message::user("Fix it."));
    for n in 0..40 {
        if n == 3 {
            session.push(call("edit", "Edit", r#"{"path":"src/key.rs"}"#));
            session.push(Message::result("edit", "changed"));
        }
        step(&mut session, n, 6);
    }
    session.compact_now();
    ready(&mut session);
    let all = text(&session);
    assert_eq!(strategies(&session), ["key-events"]);
    assert!(all.contains(r#"{"path":"src/key.rs"}"#) && all.contains("Fix it."));
    // Five others and the newest step; no result without its call.
    let view = session.view();
    let calls = view.parts().iter().flat_map(|part| part.message.calls()).count();
    let results = view.parts().iter().flat_map(|part| part.message.results()).count();
    assert_eq!((calls, results), (7, 7));
}

// covers: P-INC
#[test]
fn increments_are_chunks_of_twenty_messages_and_none_is_summarised_twice() {
    let mut session = session(only(Profile::progressive(), "increments"), 200_000);
    session.push(Message::user("Read all."));
    for n in 0..19 {
        step(&mut session, n, 4);
    }
    session.compact_now();
    ready(&mut session);
    // 39 messages: more than 40 are needed.
    assert!(strategies(&session).is_empty());
    for n in 19..50 {
        step(&mut session, n, 4);
    }
    session.compact_now();
    ready(&mut session);
    let folds: Vec<usize> = session
        .ledger()
        .edits()
        .map(|(edit, _)| edit.kind.spans().iter().map(|span| span.len()).sum())
        .collect();
    assert_eq!(folds.len(), 5 - 1, "{folds:?}");
    assert!(folds.iter().all(|messages| (18..=22).contains(messages)), "{folds:?}");
    for n in 50..90 {
        step(&mut session, n, 4);
    }
    session.compact_now();
    ready(&mut session);
    let mut covered = std::collections::HashSet::new();
    for (edit, _) in session.ledger().edits() {
        for at in edit.kind.spans().iter().flat_map(|span| span.range()) {
            assert!(covered.insert(at), "message {at} is summarised twice");
        }
    }
}

// covers: P-FALL S-12
#[test]
fn progressive_takes_the_next_strategy_when_one_fails() {
    let mut session = asking(Profile::progressive(), 10_000);
    session.push(Message::user("Read all."));
    for n in 0..70 {
        step(&mut session, n, 10);
    }
    let first = job(&mut session);
    assert!(matches!(session.resolve(first.id, Outcome::TimedOut), Resolved::Kept(_)));
    let second = job(&mut session);
    assert_ne!(first.spans, second.spans);
    // Two more failures: nobody is asked any more, and the rest is done without a model.
    ready_or(&mut session, Outcome::TimedOut, |resolved| {
        assert!(matches!(resolved, Resolved::Kept(_) | Resolved::Extracted(_)), "{resolved:?}")
    });
    assert!(session.size().tokens <= session.budget().hard);
}

// covers: P-PIN P-KEEP
#[test]
fn what_follows_a_pin_mark_is_pinned() {
    let mut session = session(Profile::progressive(), 8_000);
    session.push(Message::user("Build the service."));
    session.push(Message::assistant("Yes."));
    session.push(Message::user("Mind this. <Pin> The port is 8473 and stays so."));
    session.push(Message::assistant("I do."));
    for n in 0..60 {
        round(&mut session, n, 20);
        ready(&mut session);
        let all = text(&session);
        let stands = parts(&session).iter().any(|part| part.starts_with("Mind this. <Pin>"));
        let restated =
            all.matches("<pin name=\"message 3\">\nThe port is 8473 and stays so.\n</pin>").count();
        assert_eq!(restated, usize::from(!stands), "{n}\n{all}");
    }
    assert!(text(&session).contains("<pin name=\"message 3\">"));
    // In the others the word is text.
    let mut other = super::session(Profile::longhaul(), 8_000);
    other.push(Message::user("What does <Pin> do in this component?"));
    ready(&mut other);
    assert!(other.view().tail().is_none());
}

// covers: P-TYPE P-ADAPT P-FALL
#[test]
fn the_kind_of_work_decides_what_is_tried_first() {
    // Too few messages for the sliding window and for chunks: the next one is tried.
    for (task, made) in
        [(Task::Code, "key-events"), (Task::Analysis, "importance"), (Task::Mixed, "importance")]
    {
        let mut profile = Profile::progressive();
        profile.triggers.full_when_asked = false;
        let mut session = session(profile, 200_000);
        session.set_task(task);
        session.push(Message::user("Go."));
        for n in 0..8 {
            step(&mut session, n, 12);
        }
        session.compact_now();
        ready(&mut session);
        let names = strategies(&session);
        assert_eq!(
            names.iter().find(|name| *name != "old-results").map(String::as_str),
            Some(made),
            "{task:?} {names:?}"
        );
    }
}

/// What waits for a summary goes on where it was, down to the target.
// covers: S-5
#[test]
fn a_compaction_that_waits_goes_on_to_its_target() {
    let mut session = asking(Profile { summary: 30, ..Profile::progressive() }, 20_000);
    session.push(Message::user("Read all."));
    for n in 0..130 {
        step(&mut session, n, 12);
    }
    ready_with(&mut session, "Short.");
    assert!(session.size().tokens <= session.budget().target, "{:?}", session.size());
    assert!(session.stopped().is_none(), "{:?}", session.stopped());
    // Saved and loaded in the middle, it goes on too.
    for n in 200..300 {
        step(&mut session, n, 12);
    }
    session.compact_now();
    let open = job(&mut session);
    let mut loaded = reload(&session);
    assert_eq!(job(&mut loaded).spans, open.spans);
}

// covers: P-WIN
#[test]
fn a_summary_alone_is_not_folded_again() {
    let mut session = session(Profile::progressive(), 20_000);
    session.push(Message::user("Read all."));
    for n in 0..60 {
        step(&mut session, n, 20);
    }
    let ids: Vec<String> = (0..22).map(|n| format!("p{n}")).collect();
    session.push(Message::new(
        Role::Assistant,
        ids.iter().map(|id| Block::call(id.as_str(), "Read", Json::empty_object())).collect(),
    ));
    for id in &ids {
        session.push(Message::result(id.as_str(), "a line of some length\n".repeat(60)));
    }
    ready(&mut session);
    let windows = strategies(&session).iter().filter(|name| *name == "sliding-window").count();
    assert_eq!(windows, 1, "{:?}", strategies(&session));
}
