//! Profile `archive`, seeds 002 and 003.

use super::*;
use longhaul::session::journal::{Cursor, Entry};

// covers: A-REACT
#[test]
fn archive_shows_results_whole_while_their_turn_runs() {
    let mut session = session(Profile::archive(), 200_000);
    session.push(Message::user("Look around."));
    session.push(call("a", "LS", r#"{"path":"."}"#));
    session.push(Message::result("a", (0..50).map(|n| format!("src/file_{n}.rs\n")).collect::<String>()));
    ready(&mut session);
    session.push(call("b", "Bash", r#"{"command":"make"}"#));
    session.push(Message::result("b", (0..90).map(|n| format!("compiling part {n}\n")).collect::<String>()));
    ready(&mut session);
    assert!(text(&session).contains("src/file_49.rs") && text(&session).contains("part 45"));
    session.push(Message::assistant("Finish"));
    session.push(Message::user("And now?"));
    ready(&mut session);
    // In one batch, when the turn has ended.
    assert_eq!(strategies(&session), ["finished-results", "finished-results"]);
    let all = text(&session);
    assert!(
        all.contains("src/file_9.rs") && !all.contains("src/file_10.rs") && all.contains("⟦40 lines of "),
        "{all}"
    );
    assert!(all.contains("part 9\n") && !all.contains("part 45") && all.contains("part 89"), "{all}");
}

/// Which of these rounds stand in the view with question, result and answer; a round of which only a part
/// stands there is an error.
fn whole_rounds(session: &Session, count: usize) -> Vec<usize> {
    let all: Vec<String> = parts(session).into_iter().filter(|part| !part.contains("Summary of")).collect();
    let has = |says: String| all.iter().any(|part| part.starts_with(&says));
    let is_whole = |n: &usize| {
        let found = [
            has(format!("Question number {n}?")),
            has(format!("step_{n} line 0")),
            has(format!("Answer number {n}.")),
        ];
        assert!(found.iter().all(|part| *part == found[0]), "round {n} is cut: {found:?}\n{all:#?}");
        found[0]
    };
    (0..count).filter(is_whole).collect()
}

// covers: A-ROUNDS A-SUM
#[test]
fn archive_keeps_the_ten_newest_finished_rounds_beside_the_running_one() {
    let mut session = rounds(Profile::archive(), 8_000, 24, 32);
    ready(&mut session);
    assert_eq!(strategies(&session), ["archive-rounds"]);
    assert_eq!(whole_rounds(&session, 24), (14..24).collect::<Vec<_>>());
    let all = text(&session);
    assert!(all.contains("## 📌 Archived Session Summary") && all.ends_with("Go on."), "{all}");
    assert!(all.contains("* [✓] Question number 3? - Answer number 3."), "{all}");
    // In the middle of a turn it is the same turn that runs.
    let mut session = rounds(Profile::archive(), 8_000, 24, 32);
    step(&mut session, 99, 32);
    ready(&mut session);
    assert_eq!(whole_rounds(&session, 24), (14..24).collect::<Vec<_>>());
    // Without a running turn the ten newest are finished ones too.
    let mut session = archive_of(24, 32, 8_000);
    session.compact_now();
    ready(&mut session);
    assert_eq!(whole_rounds(&session, 24), (14..24).collect::<Vec<_>>());
}

/// So many finished rounds.
fn archive_of(count: usize, lines: usize, window: u64) -> Session {
    let mut session = session(Profile::archive(), window);
    (0..count).for_each(|n| round(&mut session, n, lines));
    session
}

// covers: A-ROUNDS S-5
#[test]
fn archive_leaves_the_kept_rounds_alone_under_the_trigger() {
    // Ten rounds and the running one are over the target, 60 %, and under the trigger, 80 %.
    let mut session = rounds(Profile::archive(), 4_000, 22, 20);
    (100..104).for_each(|n| step(&mut session, n, 6));
    for _ in 0..2 {
        ready(&mut session);
        let size = session.size().tokens.0;
        assert!(size > 2_400 && size < 3_200, "{size}");
        assert_eq!(strategies(&session), ["archive-rounds"]);
        assert_eq!(whole_rounds(&session, 22), (12..22).collect::<Vec<_>>());
        // Whoever asks gets no more.
        session.compact_now();
    }
}

// covers: A-ROUNDS S-5 S-6
#[test]
fn archive_takes_the_oldest_kept_rounds_whole_when_they_are_over_the_trigger() {
    let mut session = rounds(Profile::archive(), 4_000, 10, 32);
    ready(&mut session);
    assert_eq!(strategies(&session), ["archive-kept"]);
    let left = whole_rounds(&session, 10);
    assert!(left.len() < 10 && !left.is_empty() && left.ends_with(&[9]), "{left:?}");
    assert_eq!(left, (10 - left.len()..10).collect::<Vec<_>>());
    // To the target, and no further than that.
    let size = session.size().tokens.0;
    assert!(size <= 2_400 && size + 2 * 330 > 2_400, "{size}");
    let all = text(&session);
    assert!(all.contains("## 📌 Archived Session Summary") && !all.contains("Hand-off"), "{all}");
    assert!(all.contains("* [✓] Question number 0? - Answer number 0."), "{all}");
}

// covers: A-ROUNDS
#[test]
fn archive_takes_a_single_finished_round_and_at_the_trigger_already() {
    // The neutral meter counts bytes / 4 and 4 a message.
    let build = |window| {
        let mut session = archive_of(1, 60, window);
        session.push(Message::user("Go on."));
        session
    };
    let mut probe = build(1 << 40);
    ready(&mut probe);
    let size = probe.size().tokens.0;
    for (over, compacts) in [(0, true), (1, false)] {
        let window = ((size + over) * 5).div_ceil(4);
        let mut session = build(window);
        assert_eq!(session.budget().trigger.0, size + over);
        ready(&mut session);
        assert_eq!(strategies(&session) == ["archive-kept"], compacts, "{over}");
        assert_eq!(whole_rounds(&session, 1).is_empty(), compacts, "{over}");
    }
}

// covers: A-ROUNDS S-6
#[test]
fn archive_folds_the_running_round_last_and_at_steps() {
    let mut session = archive_of(3, 20, 4_000);
    session.push(Message::user("The long one."));
    for n in 10..30 {
        step(&mut session, n, 20);
        ready(&mut session);
        let all = text(&session);
        let running = strategies(&session).contains(&"fold-running".to_owned());
        assert!(!running || whole_rounds(&session, 3).is_empty(), "{all}");
        assert!(all.contains("The long one."), "{all}");
    }
    let made = strategies(&session);
    let first = |name: &str| made.iter().position(|made| made == name).unwrap();
    assert!(first("archive-kept") < first("fold-running"), "{made:?}");
    let all = text(&session);
    assert!(all.contains("## 📌 Archived Session Summary") && all.contains("## Hand-off"), "{all}");
    // The newest step is whole: call and result.
    assert!(all.contains("step_29 line 0") && all.contains("step_29 line 19"), "{all}");
}

// covers: A-ROUNDS S-6
#[test]
fn archive_takes_a_round_with_the_hand_off_of_its_own_steps() {
    // Without merges, which would put the hand-off into the form of an archive too.
    let mut profile = Profile::archive();
    profile.constants.merge_above = 100;
    let mut session = session(profile, 4_000);
    session.push(Message::user("The long one."));
    for n in 100..130 {
        step(&mut session, n, 20);
        ready(&mut session);
    }
    assert!(text(&session).contains("## Hand-off"));
    session.push(Message::assistant("The long one is done."));
    for n in 0..30 {
        round(&mut session, n, 12);
        session.push(Message::user("Next?"));
        ready(&mut session);
        session.push(Message::assistant("Yes."));
    }
    let all = text(&session);
    // No summary says that what has ended goes on.
    assert!(!all.contains("## Hand-off") && all.contains("The long one. - The long one is done."), "{all}");
}

// covers: A-SUM S-6
#[test]
fn archive_merges_what_is_finished_and_what_runs_apart() {
    let mut session = archive_of(14, 30, 6_000);
    session.push(Message::user("The long one."));
    let start = session.log().running_turn().unwrap().start;
    let mut merged = 0;
    for n in 100..240 {
        step(&mut session, n, 20);
        ready(&mut session);
        let made = session.ledger().edits();
        merged = made.filter(|(edit, _)| &*edit.strategy == "merge-summaries").count();
        for part in session.view().parts() {
            let Source::Edit(id) = part.source else { continue };
            let spans = session.ledger().get(id).unwrap().kind.spans();
            let runs = shown(&part.message).contains("## Hand-off");
            // A summary of what is finished never says that it goes on, nor the other way round.
            assert!(spans.iter().all(|span| (span.start >= start) == runs), "{}", shown(&part.message));
        }
    }
    assert!(merged > 2, "{merged}");
}

// covers: A-ROUNDS
#[test]
fn archive_folds_one_large_step_of_the_running_round() {
    let mut session = session(Profile::archive(), 4_000);
    session.push(Message::user("Read it."));
    step(&mut session, 0, 260);
    step(&mut session, 1, 60);
    ready(&mut session);
    assert_eq!(strategies(&session), ["fold-running"]);
    assert!(text(&session).contains("step_1 line 59") && session.size().tokens < session.budget().target);
}

// covers: A-ROUNDS
#[test]
fn archive_leaves_results_as_they_came_with_raw_rounds() {
    let build = |raw| {
        let mut profile = Profile::archive();
        profile.constants.raw_rounds = raw;
        let mut session = session(profile, 200_000);
        session.push(Message::user("Look around."));
        session.push(call("a", "LS", r#"{"path":"."}"#));
        session.push(Message::result("a", (0..50).map(|n| format!("src/file_{n}.rs\n")).collect::<String>()));
        session.push(Message::assistant("Seen."));
        session.push(Message::user("And now?"));
        ready(&mut session);
        text(&session).contains("src/file_49.rs")
    };
    assert!(!Profile::archive().constants.raw_rounds);
    assert_eq!((build(true), build(false)), (true, false));
}

// covers: A-ROUNDS
#[test]
fn archive_takes_no_summary_into_another() {
    let mut session = asking(Profile::archive(), 4_000);
    session.push(Message::system("Be brief."));
    session.push(Message::new(Role::Summary, vec![Block::text("What an agent before this one summed up.")]));
    for n in 0..24 {
        round(&mut session, n, 16);
    }
    session.push(Message::user("Go on."));
    let open = job(&mut session);
    let roles: Vec<Role> = open.messages.iter().map(|message| message.role()).collect();
    assert!(roles.iter().all(|role| matches!(role, Role::User | Role::Assistant | Role::Tool)), "{roles:?}");
    assert_eq!((open.earlier.as_deref(), open.messages.len()), (None, 14 * 4));
    assert!(matches!(session.resolve(open.id, Outcome::Summary("FIRST SUMMARY".into())), Resolved::Folded));
    ready(&mut session);
    for n in 24..34 {
        session.push(Message::assistant("Yes."));
        round(&mut session, n, 16);
        session.push(Message::user("Go on."));
        match session.prepare(None).unwrap() {
            Prepared::Send(_) => continue,
            Prepared::Summarise(next) => {
                // The second does not see the first, which stays as it is.
                assert_eq!(next.earlier, None);
                assert!(next.messages.iter().all(|message| !shown(message).contains("FIRST SUMMARY")));
                session.resolve(next.id, Outcome::Summary("SECOND SUMMARY".into()));
                ready(&mut session);
                let all = text(&session);
                assert!(all.find("FIRST SUMMARY") < all.find("SECOND SUMMARY"), "{all}");
                assert!(all.contains("FIRST SUMMARY") && all.contains("What an agent before"), "{all}");
                return;
            }
        }
    }
    panic!("no second summary");
}

// covers: A-SUM
#[test]
fn archive_appends_summaries_and_merges_them_when_they_are_many() {
    let mut session = session(Profile::archive(), 8_000);
    let mut most = 0;
    let mut merged = false;
    for n in 0..400 {
        round(&mut session, n, 12);
        session.push(Message::user(format!("Next {n}?")));
        ready(&mut session);
        session.push(Message::assistant("Yes."));
        let summaries = session.view().parts().iter().filter(|part| matches!(part.source, Source::Edit(_)));
        most = most.max(summaries.clone().count());
        merged |= strategies(&session).iter().any(|name| name == "merge-summaries");
        let size: u64 = summaries.map(|part| part.measure.counted as u64).sum();
        // Ten percent of the window, and what one more adds; the keep block too.
        assert!(size <= 8_000 * 22 / 100, "{size} after {n}");
    }
    assert!(most >= 2 && merged, "{most} {merged}");
}

// covers: A-TRIG
#[test]
fn archive_compacts_at_eighty_percent_and_not_one_token_before() {
    // 23 rounds and a question; the neutral meter counts bytes / 4 and 4 a message.
    let mut probe = rounds(Profile { ladder: Vec::new(), ..Profile::archive() }, 1 << 40, 23, 8);
    ready(&mut probe);
    let size = probe.size().tokens.0;
    for (over, compacts) in [(0, true), (1, false)] {
        // A window whose 80 % is the size, or one more.
        let window = ((size + over) * 5).div_ceil(4);
        let mut session = rounds(Profile::archive(), window, 23, 8);
        assert_eq!(session.budget().trigger.0, size + over);
        ready(&mut session);
        assert_eq!(strategies(&session).contains(&"archive-rounds".to_owned()), compacts, "{over}");
    }
}

/// How many compactions have begun.
fn compactions(session: &Session) -> usize {
    session.since(Cursor(0)).filter(|entry| matches!(entry, Entry::CompactionBegan(_))).count()
}

// covers: A-TRIG
#[test]
fn archive_compacts_three_messages_and_not_two() {
    // Over the trigger and under the hard limit, whose rule is another.
    let build = |answered: bool| {
        let mut session = session(Profile::archive(), 10_000);
        session.push(Message::user("word ".repeat(6_450)));
        session.push(if answered { Message::assistant("Read.") } else { Message::user("Go on.") });
        if answered {
            session.push(Message::user("Go on."));
        }
        ready(&mut session);
        let before = Tokens(8_000);
        (session.log().messages().len(), session.budget().trigger == before, compactions(&session))
    };
    assert_eq!(build(false), (2, true, 0));
    assert_eq!(build(true), (3, true, 1));
}

// covers: A-TRIG
#[test]
fn archive_compacts_in_the_middle_of_a_turn_too() {
    let mut session = archive_of(12, 14, 4_000);
    session.push(Message::user("Go on."));
    ready(&mut session);
    assert_eq!(compactions(&session), 0);
    // A result comes, and no word of a person.
    step(&mut session, 99, 122);
    ready(&mut session);
    assert_eq!((compactions(&session), strategies(&session)), (1, vec!["archive-rounds".to_owned()]));
}

// covers: A-TRIG S-2
#[test]
fn archive_goes_by_the_last_usage_and_what_was_said_since() {
    let build = |words: usize| {
        let mut session = Session::new(Profile::archive(), model(10_000));
        session.push(Message::user("Question?"));
        ready(&mut session);
        // By what was counted here it is far from the trigger.
        observe(&mut session, &Usage { input: 6_000, cache_read: 1_000, ..Usage::default() });
        session.push(Message::assistant("Answer."));
        session.push(Message::user("word ".repeat(words)));
        ready(&mut session);
        compactions(&session)
    };
    assert_eq!((build(900), build(1_100)), (0, 1));
}

// covers: A-TRIG
#[test]
fn archive_does_not_fire_again_for_what_edits_have_removed() {
    let mut session = Session::new(Profile::archive(), model(10_000));
    (0..24).for_each(|n| round(&mut session, n, 10));
    session.push(Message::user("Go on."));
    ready(&mut session);
    let counted = session.size().tokens.0;
    observe(&mut session, &Usage { input: 8_500, ..Usage::default() });
    assert!(counted < 8_000, "{counted}");
    for n in 0..3 {
        session.push(Message::assistant("Yes."));
        session.push(Message::user(format!("Next {n}?")));
        ready(&mut session);
        // The provider has said nothing new: what was removed is taken off what it said.
        assert_eq!((compactions(&session), session.size().tokens < session.budget().trigger), (1, true));
    }
}

// covers: A-TIMEOUT S-12
#[test]
fn archive_cuts_without_a_summary_when_it_takes_too_long() {
    let mut session = asking(Profile::archive(), 4_000);
    for n in 0..24 {
        round(&mut session, n, 16);
    }
    session.push(Message::user("Go on."));
    let open = job(&mut session);
    assert_eq!((open.timeout, open.template.name), (120, "archive"));
    let Resolved::Cut(says) = session.resolve(open.id, Outcome::TimedOut) else { panic!() };
    assert_eq!(says, "Summary generation timed out, keeping recent history only.");
    ready_or(&mut session, Outcome::TimedOut, |_| {});
    let all = text(&session);
    assert!(all.contains("⟦Summary generation timed out, keeping recent history only."), "{all}");
    assert!(all.contains("Question number 20?") && !all.contains("Question number 3?\n"));
    // What was cut is in the archive.
    let handle = all.split("recall ").nth(1).unwrap()[..12].to_owned();
    assert!(session.recall(&handle, &RecallPart::Whole).unwrap().contains("Question number 3?"));
}

// covers: A-LAYERS A-LAW
#[test]
fn layers_stand_in_their_order() {
    let mut session = session(Profile::archive(), 4_000);
    session.push(Message::system("You are an agent."));
    session.set_rules("CODE_LAW.md", Some("Tabs, never spaces."));
    session.set_todos(Some("[>] parser"));
    for n in 0..24 {
        round(&mut session, n, 16);
        ready(&mut session);
    }
    session.push(Message::user("The current input."));
    step(&mut session, 99, 2);
    ready(&mut session);
    let all = text(&session);
    let place = |what: &str| all.find(what).unwrap_or_else(|| panic!("{what}\n{all}"));
    let order = [
        "You are an agent.",
        "Tabs, never spaces.",
        "Archived Session Summary",
        "Question number 20?",
        "The current input.",
        "step_99 line 0",
        "[>] parser",
    ];
    let places: Vec<usize> = order.iter().map(|what| place(what)).collect();
    assert!(places.is_sorted(), "{places:?}\n{all}");
    assert!(session.view().tail().is_some_and(|tail| shown(&tail.message).contains("[>] parser")));
    // Rules are looked at each time; a change stands in the tail until an edit breaks the prefix.
    session.set_rules("CODE_LAW.md", None);
    ready(&mut session);
    assert!(session.view().tail().is_some_and(|tail| !shown(&tail.message).contains("Tabs")));
}

// covers: A-SUM
#[test]
fn merged_summaries_of_another_form_lose_no_milestones() {
    let mut session = session(Profile::archive(), 6_000);
    session.push(Message::user("A long task."));
    for n in 0..60 {
        step(&mut session, n, 12);
        ready(&mut session);
    }
    session.push(Message::assistant("The long task is done."));
    for n in 100..180 {
        round(&mut session, n, 12);
        session.push(Message::user(format!("Next {n}?")));
        ready(&mut session);
        session.push(Message::assistant("Yes."));
    }
    let merged = session.ledger().edits().filter(|(edit, _)| &*edit.strategy == "merge-summaries");
    let merged: Vec<String> = merged
        .map(|(edit, _)| match &edit.kind {
            EditKind::Fold { text, .. } => text.to_string(),
            _ => String::new(),
        })
        .collect();
    assert!(!merged.is_empty());
    assert!(merged.iter().all(|text| text.contains("[✓]")), "{merged:#?}");
}
