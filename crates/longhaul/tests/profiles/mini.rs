//! Profile `mini`, seed 000.

use super::*;

// covers: M-TRIG S-1
#[test]
fn mini_compacts_over_102_400_and_not_at_it() {
    assert!(strategies(&turn_with_usage(102_400)).is_empty());
    assert_eq!(strategies(&turn_with_usage(102_401)), ["rebuild"]);
}

// covers: M-TRIG
#[test]
fn mini_goes_by_the_last_call_and_not_by_the_sum_of_its_steps() {
    let mut session = session(Profile::mini(), 128_000);
    session.push(Message::user("Build it."));
    for n in 0..4 {
        ready(&mut session);
        step(&mut session, n, 2);
        // Together they are over the limit, none of them is.
        observe(&mut session, &Usage { input: 60_000, ..Usage::default() });
    }
    ready(&mut session);
    session.push(Message::assistant("Done."));
    observe(&mut session, &Usage { input: 60_000, ..Usage::default() });
    session.push(Message::user("And now?"));
    ready(&mut session);
    assert!(strategies(&session).is_empty());
}

// covers: M-TRIG
#[test]
fn mini_waits_for_the_end_of_the_turn_unless_the_hard_limit_is_passed() {
    let mut session = session(Profile::mini(), 20_000);
    session.push(Message::user("Build it."));
    for n in 0..85 {
        step(&mut session, n, 18);
        ready(&mut session);
    }
    // Over 80 % of the window, in mid-turn.
    assert!(
        session.size().tokens > session.budget().trigger && strategies(&session).is_empty(),
        "{:?}",
        session.size()
    );
    for n in 100..110 {
        step(&mut session, n, 18);
        ready(&mut session);
    }
    assert_eq!(strategies(&session), ["rebuild"]);
    // The current input and the newest step are there.
    assert!(text(&session).contains("Build it.") && text(&session).contains("step_109 line 0"));
}

// covers: M-REBUILD M-SUM
#[test]
fn mini_rebuilds_the_session_from_a_hint_in_the_system_layer() {
    let mut session = session(Profile::mini(), 10_000);
    session.push(Message::system("Be brief."));
    grow(&mut session, 0);
    session.push(Message::user("Go on."));
    ready(&mut session);
    let hint = parts(&session).into_iter().find(|part| part.contains("<completed>")).unwrap();
    for said in [
        "the earlier session was compressed",
        "<remaining>",
        "<current_state>",
        "<notes>",
        "this is a rebuilt session",
        "do not repeat what is done",
    ] {
        assert!(hint.contains(said), "{said}\n{hint}");
    }
    let (edit, _) = session.ledger().edits().find(|(edit, _)| edit.kind.replaces_runs()).unwrap();
    assert!(matches!(edit.kind, EditKind::Fold { placement: Placement::SystemHint, .. }));
    // History is empty but for what came last.
    assert_eq!(session.view().parts().len(), 3, "{:#?}", parts(&session));
    assert!(!text(&session).contains("Question number 3?\n"));
}

// covers: M-CHAIN
#[test]
fn mini_does_not_lose_its_first_summary() {
    let mut session = asking(Profile::mini(), 10_000);
    grow(&mut session, 0);
    session.push(Message::user("Go on."));
    ready_with(&mut session, "<completed>\n- the FIRST half\n</completed>");
    assert!(text(&session).contains("FIRST half"));
    session.push(Message::assistant("I go on."));
    grow(&mut session, 20);
    session.push(Message::user("Go on."));
    let second = job(&mut session);
    assert!(second.earlier.as_deref().is_some_and(|earlier| earlier.contains("FIRST half")), "{second:?}");
    let asked = second.fresh(Tokens(100_000));
    assert!(shown(&asked[0][1]).contains("FIRST half"));
}

// covers: M-FAIL S-12
#[test]
fn mini_keeps_history_when_no_summary_comes_unless_it_cannot() {
    let mut session = asking(Profile::mini(), 10_000);
    grow(&mut session, 0);
    session.push(Message::user("Go on."));
    ready_or(&mut session, Outcome::Failed("overloaded".into()), |resolved| {
        assert!(matches!(resolved, Resolved::Again(..) | Resolved::Kept(_)), "{resolved:?}")
    });
    assert!(strategies(&session).is_empty() && text(&session).contains("Question number 0?"));
    // Past the hard limit the extractor steps in.
    for n in 20..40 {
        step(&mut session, n, 40);
    }
    ready_or(&mut session, Outcome::TimedOut, |resolved| {
        assert!(matches!(resolved, Resolved::Kept(_)), "{resolved:?}")
    });
    assert!(strategies(&session).contains(&"rebuild".to_owned()));
    assert!(text(&session).contains("<completed>"));
}

// covers: M-TRUNC
#[test]
fn mini_cuts_one_output_over_8_000_characters_and_names_its_tool() {
    let mut session = session(Profile::mini(), 128_000);
    session.push(Message::user("Run it."));
    session.push(call("a", "Bash", r#"{"command":"make"}"#));
    session.push(Message::result("a", format!("{}\nexit code 2", "x".repeat(8_500))));
    ready(&mut session);
    let result = &parts(&session)[2];
    assert!(
        result.contains("⟦Bash: 8512 characters in 2 lines, ") && result.ends_with("exit code 2"),
        "{result}"
    );
}

// covers: M-FAIL
#[test]
fn mini_keeps_history_however_often_the_summariser_fails() {
    let mut session = asking(Profile::mini(), 100_000);
    for n in 0..12 {
        session.push(Message::user(format!("Question number {n}?")));
        step(&mut session, n, 10);
        observe(&mut session, &Usage { input: 80_500, ..Usage::default() });
        ready_or(&mut session, Outcome::TimedOut, |resolved| {
            assert!(matches!(resolved, Resolved::Kept(_)), "{resolved:?}")
        });
        session.push(Message::assistant(format!("Answer number {n}.")));
        observe(&mut session, &Usage { input: 80_500, ..Usage::default() });
    }
    assert!(strategies(&session).is_empty(), "{:?}", strategies(&session));
    // A fork begins without the prompts of what came after, and with those that came before.
    let mut fork = session.fork(longhaul::Position(3)).unwrap();
    fork.push(Message::user("Another way."));
    ready(&mut fork);
    assert!(strategies(&fork).is_empty());
    let mut later = session.fork(longhaul::Position(4)).unwrap();
    later.push(Message::user("Another way."));
    assert_eq!(job(&mut later).strategy.name, "rebuild");
}

// covers: M-FAIL
#[test]
fn one_failure_does_not_stop_mini() {
    let mut session = asking(Profile::mini(), 100_000);
    let turn = |session: &mut Session, n: usize, outcome: Outcome| {
        session.push(Message::user(format!("Question number {n}? {}", "word ".repeat(800))));
        ready_or(session, outcome, |_| {});
        session.push(Message::assistant("Yes."));
        observe(session, &Usage { input: 80_500 + n as u64, ..Usage::default() });
    };
    turn(&mut session, 0, Outcome::TimedOut);
    turn(&mut session, 1, Outcome::TimedOut);
    assert!(strategies(&session).is_empty());
    turn(&mut session, 2, Outcome::Summary("<completed>\n- it\n</completed>".into()));
    assert_eq!(strategies(&session), ["rebuild"]);
}
