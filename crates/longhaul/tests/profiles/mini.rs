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
    let hint = text(&session);
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
    assert_eq!(session.view().parts().len(), 4, "{:#?}", parts(&session));
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

/// The smallest window whose hard limit is so many tokens.
fn window_with_hard_limit(hard: u64) -> u64 {
    (hard..).find(|window| window - window * 15 / 100 == hard).unwrap()
}

// covers: M-TRIG S-1
#[test]
fn mini_compacts_inside_a_turn_over_the_hard_limit_and_not_at_it() {
    let turn = |window: u64| {
        let mut session = session(Profile::mini(), window);
        session.push(Message::user("Build it."));
        for n in 0..40 {
            step(&mut session, n, 18);
        }
        session
    };
    let mut whole = turn(1 << 40);
    ready(&mut whole);
    let size = whole.size().tokens.0;
    for (hard, rebuilt) in [(size, false), (size - 1, true)] {
        let mut session = turn(window_with_hard_limit(hard));
        assert_eq!(session.budget().hard, Tokens(hard));
        ready(&mut session);
        assert_eq!(strategies(&session).contains(&"rebuild".to_owned()), rebuilt, "{hard}");
    }
}

// covers: M-TRIG M-CONF
#[test]
fn the_threshold_and_the_window_of_mini_are_settings() {
    let compacts = |trigger: u8, window: u64, usage: u64| {
        let mut profile = Profile::mini();
        profile.shares.trigger = trigger;
        let mut session = session(profile, 128_000).with_window(Tokens(window));
        session.push(Message::user("Build it."));
        ready(&mut session);
        session.push(Message::assistant(format!("It is built. {}", "It took some work. ".repeat(400))));
        observe(&mut session, &Usage { input: usage, ..Usage::default() });
        session.push(Message::user("And now?"));
        ready(&mut session);
        !strategies(&session).is_empty()
    };
    let profile = Profile::mini();
    assert_eq!(
        (profile.window, profile.shares.trigger, profile.cut.characters),
        (Tokens(128_000), 80, 8_000)
    );
    assert!(!compacts(80, 128_000, 102_400) && compacts(80, 128_000, 102_401));
    assert!(!compacts(50, 128_000, 64_000) && compacts(50, 128_000, 64_001));
    assert!(!compacts(80, 64_000, 51_200) && compacts(80, 64_000, 51_201));
}

// covers: M-REBUILD M-SUM A-LAYERS
#[test]
fn the_hint_of_mini_stands_behind_the_system_prompt_and_says_what_it_is() {
    let mut session = asking(Profile::mini(), 10_000);
    session.push(Message::system("Be brief."));
    session.set_rules("CODE_LAW.md", Some("Never use tabs."));
    grow(&mut session, 0);
    session.push(Message::user("Go on."));
    // Sections that the model left out are there all the same.
    ready_with(&mut session, "<completed>\n- the first half\n</completed>\n<notes>\n- port 8473\n</notes>");
    let all = parts(&session);
    assert_eq!(all.len(), 5, "{all:#?}");
    assert_eq!((all[0].as_str(), all[4].as_str()), ("Be brief.", "Go on."));
    assert!(all[1].starts_with("<rules "));
    // What code wrote, and behind it what was said.
    assert!(all[3].starts_with("⟦Quotes "), "{all:#?}");
    let hint = &all[2..4].concat();
    assert!(
        hint.contains(
            "⟧\n[Summary of the work so far - the earlier session was compressed]\n\n\
             Note: this sums up what was done before; this is a rebuilt session.\n\
             Go on with the original task from it, and do not repeat what is done.\n\n⟦Quotes "
        ),
        "{hint}"
    );
    assert!(hint.contains("\n</notes>\n⟦"), "{hint}");
    let sections = ["completed", "remaining", "current_state", "notes"];
    let places: Vec<usize> = sections.iter().map(|name| hint.find(&format!("<{name}>\n")).unwrap()).collect();
    assert!(places.is_sorted(), "{hint}");
    for name in sections {
        assert_eq!(
            (hint.matches(&format!("<{name}>")).count(), hint.matches(&format!("</{name}>")).count()),
            (1, 1)
        );
    }
    assert!(hint.contains("- [✓] the first half\n") && hint.contains("- port 8473\n"), "{hint}");
}

// covers: M-SUM
#[test]
fn mini_asks_for_one_summary_of_the_whole_history() {
    let mut session = asking(Profile::mini(), 10_000);
    session.push(Message::user("Build it."));
    session.push(call("a", "Bash", r#"{"command":"make"}"#));
    session.push(Message::result("a", "ok ".repeat(300)));
    session.push(Message::assistant("It is built."));
    ready(&mut session);
    observe(&mut session, &Usage { input: 8_001, ..Usage::default() });
    session.push(Message::user("And now?"));
    session.compact_now();
    let asked = job(&mut session);
    assert_eq!((asked.template.name, asked.strategy.name), ("rebuild", "rebuild"));
    let [[_, user]] = &asked.fresh(Tokens(100_000))[..] else { panic!("one call") };
    assert_eq!(
        shown(user),
        format!(
            "<conversation>\n[user]\nBuild it.\n\n---\n\n[assistant]\n{{\"tool_call\":\"Bash\",\"arguments\":{{\"command\":\"make\"}}}}\n\n---\n\n\
             [tool]\n{{\"tool_result\":\"{}\"}}\n\n---\n\n[assistant]\nIt is built.\n</conversation>",
            "ok ".repeat(300)
        )
    );
}

// covers: M-CHAIN
#[test]
fn the_second_summary_of_mini_takes_in_the_first() {
    let mut session = session(Profile::mini(), 10_000);
    session.push(Message::user("Build it."));
    session.push(call("a", "Edit", r#"{"path":"src/first_half.rs"}"#));
    session.push(Message::result("a", "ok"));
    session.push(Message::assistant("The first half is built."));
    for turn in 1..4 {
        grow(&mut session, turn * 100);
        session.push(Message::user("Go on."));
        ready(&mut session);
        let hints = parts(&session).into_iter().filter(|part| part.contains("\n[Summary of the work"));
        let hints: Vec<String> = hints.collect();
        assert_eq!(hints.len(), 1, "{hints:#?}");
        assert!(hints[0].contains("src/first_half.rs"), "{turn}\n{}", hints[0]);
        session.push(Message::assistant("I go on."));
    }
}

// covers: M-TRUNC M-CONF
#[test]
fn mini_lets_8_000_characters_enter_and_no_more() {
    let entered = |profile: Profile, text: &str| {
        let mut session = session(profile, 128_000);
        session.push(Message::user("Run it."));
        session.push(call("a", "Bash", r#"{"command":"make"}"#));
        session.push(Message::result("a", text));
        ready(&mut session);
        parts(&session).swap_remove(2)
    };
    let whole = "字".repeat(8_000);
    assert_eq!(entered(Profile::mini(), &whole), whole);
    let cut = entered(Profile::mini(), &format!("{whole}x"));
    assert!(cut.contains("⟦Bash: 8001 characters in 1 lines, ") && cut.ends_with("字x"), "{cut}");
    // Of more, so much is kept, two thirds from the start.
    let cut = entered(Profile::mini(), &"字".repeat(12_000));
    let (head, tail) =
        cut.split_once("\n⟦Bash: 12000 characters in 1 lines, 8000 kept, 4000 left out; recall ").unwrap();
    assert_eq!((head.matches('字').count(), tail.matches('字').count()), (5_334, 2_666));
    let mut other = Profile::mini();
    other.cut.characters = 1_000;
    assert!(entered(other, &"字".repeat(1_500)).contains(", 1000 kept, 500 left out"));
}

// covers: M-FAIL
#[test]
fn a_failure_of_mini_is_said_and_the_turn_goes_on() {
    let mut session = asking(Profile::mini(), 10_000);
    grow(&mut session, 0);
    session.push(Message::user("Go on."));
    let before = parts_of_log(&session);
    let asked = job(&mut session);
    let Resolved::Again(again, problem) = session.resolve(asked.id, Outcome::Failed("overloaded".into()))
    else {
        panic!()
    };
    assert_eq!(problem, "overloaded");
    let Resolved::Kept(problem) = session.resolve(again.id, Outcome::Failed("overloaded".into())) else {
        panic!()
    };
    assert_eq!(problem, "overloaded");
    ready(&mut session);
    assert_eq!(parts(&session), before);
}

/// The messages of the log, as they came.
fn parts_of_log(session: &Session) -> Vec<String> {
    session.log().messages().iter().map(|message| shown(message)).collect()
}
