//! Profile `archive`, seeds 002 and 003.

use super::*;

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

// covers: A-ROUNDS A-SUM
#[test]
fn archive_keeps_the_ten_newest_rounds_whole() {
    let mut session = rounds(Profile::archive(), 4_000, 24, 16);
    ready(&mut session);
    let all = text(&session);
    assert_eq!(strategies(&session).last().unwrap(), "archive-rounds");
    // The running round is one of the ten.
    for n in 0..24 {
        let whole =
            all.contains(&format!("Question number {n}?")) && all.contains(&format!("step_{n} line 0"));
        assert_eq!(whole, n >= 15, "{n}\n{all}");
    }
    assert!(
        all.contains("## 📌 Archived Session Summary")
            && all.contains("* [✓] Question number 3? - Answer number 3."),
        "{all}"
    );
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
fn archive_compacts_at_the_threshold_and_with_three_messages() {
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
    // The user's message alone is over it: two messages are no history.
    let profile = Profile { triggers: Profile::archive().triggers, ..only(Profile::archive(), "rebuild") };
    let mut two = session(profile, 10_000);
    two.push(Message::system("Be brief."));
    two.push(Message::user("word ".repeat(6_450)));
    ready(&mut two);
    assert!(two.size().tokens > two.budget().trigger && strategies(&two).is_empty());
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
