//! The profiles of the seeds: when each compacts, what it takes and what it keeps. Figures are
//! those of the seeds' text; faults of the origins are tests that pass here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use longhaul::{
    Block, EditKind, Extra, Job, Json, Message, Meter, Model, Models, OnFailure, Outcome, Placement,
    Prepared, Profile, RecallPart, Resolved, Role, STRATEGIES, Seal, Session, Source, Summariser, Task,
    Thinking, Tokens, Usage, Why,
};

fn model(window: u64) -> Model {
    Model { name: "m".into(), window: Tokens(window), ..Models::builtin().find("gpt-4o").clone() }
}

fn session(profile: Profile, window: u64) -> Session {
    Session::new(profile, model(window)).with_meter(Meter::neutral())
}

/// With a model as summariser.
fn asking(profile: Profile, window: u64) -> Session {
    session(Profile { summariser: Summariser::Host, ..profile }, window)
}

fn only(profile: Profile, strategy: &str) -> Profile {
    let found = STRATEGIES.into_iter().find(|known| known.name == strategy).unwrap();
    Profile { ladder: vec![found], by_task: false, ..profile }
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
        Prepared::Ready(_) => {}
        Prepared::NeedsSummary(job) => panic!("unexpected {job:?}"),
    }
    assert_eq!(session.audit(), []);
    assert!(session.size().tokens <= session.budget().hard);
}

fn job(session: &mut Session) -> Job {
    match session.prepare(None).unwrap() {
        Prepared::NeedsSummary(job) => job,
        Prepared::Ready(_) => panic!("no summary was asked for"),
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

/// Strategies of the edits that stand, without those made on entry.
fn strategies(session: &Session) -> Vec<String> {
    let made = session.ledger().edits().filter(|(edit, active)| *active && edit.why != Why::Entry);
    made.map(|(edit, _)| edit.strategy.to_string()).collect()
}

// ---- mini

/// Rounds until the last prompt was over 80 % of a window of 10,000.
fn grow(session: &mut Session, from: usize) {
    for n in from.. {
        session.push(Message::user(format!("Question number {n}?")));
        step(session, n, 44);
        if session.prepare(None).is_ok_and(|prepared| matches!(prepared, Prepared::NeedsSummary(_))) {
            panic!("not yet");
        }
        let large = session.size().tokens > session.budget().trigger;
        session.push(Message::assistant(format!("Answer number {n}.")));
        if large {
            break;
        }
    }
}

fn turn_with_usage(usage: u64) -> Session {
    let mut session = session(Profile::mini(), 128_000);
    session.push(Message::user("Build it."));
    ready(&mut session);
    session.push(Message::assistant(format!("It is built. {}", "It took some work. ".repeat(400))));
    session.observe(&Usage { input: usage, output: 100, ..Usage::default() });
    session.push(Message::user("And now?"));
    ready(&mut session);
    session
}

// covers: M-TRIG S-1
#[test]
fn mini_compacts_over_102_400_and_not_at_it() {
    assert!(strategies(&turn_with_usage(102_400)).is_empty());
    assert_eq!(strategies(&turn_with_usage(102_401)), ["rebuild"]);
}

// covers: M-TRIG A-TRIG S-1
#[test]
fn a_window_comes_from_the_user_the_model_or_the_profile() {
    let unknown = || Models::builtin().find("nobody-knows-it").clone();
    let window = |session: &Session| session.budget().window;
    assert_eq!(window(&Session::new(Profile::mini(), unknown())), Tokens(128_000));
    assert_eq!(window(&Session::new(Profile::archive(), unknown())), Tokens(200_000));
    assert_eq!(window(&Session::new(Profile::mini(), model(64_000))), Tokens(64_000));
    assert_eq!(
        window(&Session::new(Profile::mini(), model(64_000)).with_window(Tokens(9_000))),
        Tokens(9_000)
    );
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
        session.observe(&Usage { input: 60_000, ..Usage::default() });
    }
    ready(&mut session);
    session.push(Message::assistant("Done."));
    session.observe(&Usage { input: 60_000, ..Usage::default() });
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
    let (edit, _) = session.ledger().edits().find(|(edit, _)| edit.kind.is_fold()).unwrap();
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

fn ready_with(session: &mut Session, summary: &str) {
    for _ in 0..50 {
        match session.prepare(None).unwrap() {
            Prepared::Ready(_) => return assert_eq!(session.audit(), []),
            Prepared::NeedsSummary(job) => {
                let resolved = session.resolve(job.id, Outcome::Summary(summary.into()));
                assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
            }
        }
    }
    panic!("it asks without end");
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

fn ready_or(session: &mut Session, outcome: Outcome, check: impl Fn(&Resolved)) {
    for _ in 0..50 {
        match session.prepare(None).unwrap() {
            Prepared::Ready(_) => return assert_eq!(session.audit(), []),
            Prepared::NeedsSummary(job) => check(&session.resolve(job.id, outcome.clone())),
        }
    }
    panic!("it asks without end");
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

// ---- transform

// covers: T-HOOK T-L1 S-3
#[test]
fn transform_keeps_the_newest_six_results_whole() {
    let mut session = session(Profile::transform(), 200_000);
    session.push(Message::user("Read all."));
    for n in 0..10 {
        ready(&mut session);
        step(&mut session, n, 30);
    }
    ready(&mut session);
    let all = text(&session);
    for n in 0..10 {
        // Three lines from the start, two from the end.
        let has = |line: usize| all.contains(&format!("step_{n} line {line} "));
        assert!(has(0) && has(2) && has(28) && has(29), "{n}");
        assert_eq!(has(10), n >= 4, "{n}");
    }
    assert_eq!(all.matches("⟦25 lines left out, 1200 characters originally; recall ").count(), 4);
    assert!(session.ledger().edits().all(|(edit, _)| edit.why == Why::Rule));
    // The log itself is as it came, and so are the arguments.
    assert!(shown(session.log().get(longhaul::At(2)).unwrap()).contains("step_0 line 10"));
    assert_eq!(all.matches(r#"{"path":"src/lib.rs"}"#).count(), 10);
}

// covers: T-L1
#[test]
fn transform_keeps_all_results_of_the_newest_step() {
    let mut session = session(Profile::transform(), 200_000);
    session.push(Message::user("Read all."));
    let ids: Vec<String> = (0..9).map(|n| format!("c{n}")).collect();
    let calls = ids.iter().map(|id| Block::call(id.as_str(), "Read", Json::empty_object()));
    session.push(Message::new(Role::Assistant, calls.collect()));
    for id in &ids {
        session.push(Message::result(id.as_str(), "a line of some length\n".repeat(60)));
    }
    ready(&mut session);
    assert!(strategies(&session).is_empty());
    step(&mut session, 50, 2);
    ready(&mut session);
    // Six stay: the newest, and five of those before.
    assert_eq!(strategies(&session).len(), 4);
}

// covers: T-L2
#[test]
fn transform_keeps_thinking_on_the_newest_message_that_has_any() {
    let think = |seal: Seal, n: usize| {
        let thinking =
            Block::Thinking(Thinking { text: format!("thought {n}").into(), seal, extra: Extra::NONE });
        Message::new(Role::Assistant, vec![thinking, Block::text("I see.")])
    };
    let mut session = session(Profile::transform(), 200_000);
    for n in 0..4 {
        session.push(Message::user("And?"));
        session.push(think(Seal::Open, n));
        ready(&mut session);
    }
    session.push(Message::user("And?"));
    ready(&mut session);
    let all = text(&session);
    assert!(all.contains("thought 3") && (0..3).all(|n| !all.contains(&format!("thought {n}"))), "{all}");
    // Signed thinking of the running turn stays.
    let signed = |n: usize| {
        let thinking = Block::Thinking(Thinking {
            text: format!("signed {n}").into(),
            seal: Seal::Signed("s".into()),
            extra: Extra::NONE,
        });
        Message::new(
            Role::Assistant,
            vec![thinking, Block::call(format!("s{n}"), "Read", Json::empty_object())],
        )
    };
    for n in 0..3 {
        session.push(signed(n));
        session.push(Message::result(format!("s{n}"), "ok"));
        ready(&mut session);
    }
    let all = text(&session);
    assert!((0..3).all(|n| all.contains(&format!("signed {n}"))) && !all.contains("thought 3"), "{all}");
    // Until it has ended.
    session.push(Message::assistant("Done."));
    session.push(Message::user("Next."));
    ready(&mut session);
    assert!(!text(&session).contains("signed 1") && text(&session).contains("signed 2"));
}

// covers: T-L3
#[test]
fn transform_drops_the_oldest_over_75_percent_and_never_half_a_pair() {
    let mut session = session(Profile::transform(), 6_000);
    session.push(Message::user("The first thing that was said."));
    for n in 0..60 {
        step(&mut session, n, 10);
        ready(&mut session);
    }
    assert!(session.size().tokens <= Tokens(4_500), "{:?}", session.size());
    let all = parts(&session);
    assert_eq!(all[0], "The first thing that was said.");
    assert!(all[1].starts_with('⟦') && all[1].contains("earlier messages hidden; recall "), "{}", all[1]);
    // The newest twenty messages: ten steps.
    assert!((50..60).all(|n| text(&session).contains(&format!("step_{n} "))));
    assert!(strategies(&session).iter().any(|name| name == "drop-oldest"));
}

// covers: T-L1
#[test]
fn transform_cuts_json_on_one_line() {
    let mut session = session(Profile::transform(), 200_000);
    session.push(Message::user("Get it."));
    session.push(call("j", "Fetch", "{}"));
    session.push(Message::result("j", format!("{{\"items\":[{}1]}}", "1,".repeat(5_000))));
    for n in 0..6 {
        step(&mut session, n, 2);
    }
    ready(&mut session);
    let json = parts(&session).into_iter().find(|part| part.starts_with("{\"items\"")).unwrap();
    assert!(json.chars().count() < 620 && json.contains("10013 characters originally"), "{json}");
}

// ---- archive

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

fn rounds(profile: Profile, window: u64, count: usize, lines: usize) -> Session {
    let mut session = session(profile, window);
    for n in 0..count {
        round(&mut session, n, lines);
    }
    session.push(Message::user("Go on."));
    session
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

// covers: A-ROUNDS S-11
#[test]
fn every_profile_keeps_one_turn_of_500_calls_inside_the_window() {
    for profile in Profile::all() {
        for window in [4_000, 16_000] {
            let mut session = session(profile.clone(), window);
            session.push(Message::user("Read everything, all of it."));
            for n in 0..500 {
                step(&mut session, n, 35);
                ready(&mut session);
            }
            let all = text(&session);
            assert!(
                all.contains("Read everything, all of it.") && all.contains("step_499 line 0"),
                "{}",
                profile.name
            );
        }
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
    // Rules are looked at each time; a change stands in the tail until the next start.
    session.set_rules("CODE_LAW.md", None);
    ready(&mut session);
    assert!(session.view().tail().is_some_and(|tail| !shown(&tail.message).contains("Tabs")));
}

// ---- progressive

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
    let all = text(&session);
    for kept in [
        "Talk to me.",
        "The port is 8473.",
        "memory number 11",
        "memory number 2",
        "[>] talk",
        "2 files changed",
        "## Summary of the conversation so far",
    ] {
        assert_eq!(
            all.matches(kept).count(),
            if kept == "Talk to me." { all.matches(kept).count().max(1) } else { 1 },
            "{kept}\n{all}"
        );
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
    let mut other = self::session(Profile::longhaul(), 8_000);
    other.push(Message::user("What does <Pin> do in this component?"));
    ready(&mut other);
    assert!(other.view().tail().is_none());
}

// covers: P-KEEP S-10
#[test]
fn ten_compactions_in_a_row_keep_everything_once_in_every_profile() {
    for profile in Profile::all() {
        for host in [false, true] {
            let mut profile = profile.clone();
            if host {
                profile.summariser = Summariser::Host;
            }
            let name = profile.name.clone();
            let mut session = session(profile, 12_000);
            session.set_rules("CODE_LAW.md", Some("Never use tabs."));
            session.push(Message::system("You are an agent."));
            session.push(Message::user("Build the ingest service."));
            session.pin("port", "The port is 8473.");
            session.remember("owner", "The owner reads mail at noon.");
            session.set_todos(Some("1. parser\n2. store"));
            session.set_git_stat(Some(" 3 files changed"));
            for n in 0..11 {
                for m in 0..12 {
                    step(&mut session, n * 100 + m, 20);
                }
                session.push(Message::assistant(format!("Part {n} is done.")));
                session.push(Message::user(format!("Go on with part {n}.")));
                session.compact_now();
                ready_with(&mut session, "What was done so far, in short.");
                let all = text(&session);
                for item in [
                    "You are an agent.",
                    "Build the ingest service.",
                    "The port is 8473.",
                    "reads mail at noon",
                    "1. parser",
                    "3 files changed",
                    "Never use tabs.",
                ] {
                    assert_eq!(all.matches(item).count(), 1, "{item} in {name} after {n}\n{all}");
                }
                let summaries =
                    session.view().parts().iter().filter(|part| matches!(part.source, Source::Edit(_)));
                let size: u64 = summaries.map(|part| part.measure.counted as u64).sum();
                let share = u64::from(session.profile().summary.max(15)) + 5;
                assert!(size <= 12_000 * share / 100, "{size} in {name} after {n}");
            }
            assert!(session.ledger().edits().count() > 3, "{name}");
        }
    }
}

// covers: P-TYPE P-ADAPT P-FALL
#[test]
fn the_kind_of_work_decides_what_is_tried_first() {
    // Too few messages for the sliding window and for chunks: the next one is tried.
    for (task, made) in
        [(Task::Code, "key-events"), (Task::Analysis, "importance"), (Task::Mixed, "importance")]
    {
        let mut session = session(Profile::progressive(), 200_000);
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

/// A session in Chinese is summed up in Chinese, by every profile that writes summaries.
#[test]
fn summaries_follow_the_language_of_the_conversation() {
    for profile in [Profile::longhaul(), Profile::mini(), Profile::archive(), Profile::progressive()] {
        let mut session = session(profile, 8_000);
        for n in 0..30 {
            session.push(Message::user(format!("第 {n} 个问题：为什么解析会失败？请检查。")));
            step(&mut session, n, 30);
            session.push(Message::assistant(format!("第 {n} 个问题已经修复。")));
            ready(&mut session);
        }
        session.push(Message::user("继续。"));
        session.compact_now();
        ready(&mut session);
        let all = text(&session);
        assert!(
            ["交接：任务仍在进行", "之前会话已压缩", "会话归档摘要", "至今对话的摘要"]
                .iter()
                .any(|heading| all.contains(heading)),
            "{}\n{all}",
            session.profile().name
        );
    }
}

// covers: P-TRIG
#[test]
fn a_provider_that_refuses_a_request_as_too_long_is_believed() {
    for profile in Profile::all() {
        let mut session = rounds(profile, 200_000, 40, 40);
        ready(&mut session);
        let before = session.size().tokens;
        session.overflowed();
        ready(&mut session);
        assert!(
            session.size().tokens.0 * 4 <= before.0 * 3,
            "{} {before} {}",
            session.profile().name,
            session.size().tokens
        );
    }
}

#[test]
fn what_a_summary_is_to_be_about_is_kept_first() {
    let build = |focus: &str| {
        let mut session = session(Profile::longhaul(), 12_000);
        for n in 0..40 {
            session.push(Message::user("Next."));
            step(&mut session, n, 6);
            session.push(Message::assistant(format!(
                "The frobnicator of part {n} was turned left today, which is odd."
            )));
        }
        session.push(Message::user("On."));
        session.compact_now_on(focus);
        ready(&mut session);
        text(&session).matches("frobnicator").count()
    };
    assert!(build("the frobnicator") >= build("something else"));
    let mut session = asking(Profile::longhaul(), 4_000);
    for n in 0..20 {
        round(&mut session, n, 6);
    }
    session.push(Message::user("On."));
    session.compact_now_on("the parser");
    let open = job(&mut session);
    assert_eq!(open.focus.as_deref(), Some("the parser"));
    assert!(shown(&open.warm()).contains("the parser"));
}

// covers: S-7
#[test]
fn a_model_that_forgets_a_changed_file_is_helped_by_code() {
    let mut session = asking(Profile { on_failure: OnFailure::Extract, ..Profile::longhaul() }, 6_000);
    session.push(Message::user("Fix it."));
    session.push(call("e", "Edit", r#"{"path":"src/forgotten.rs"}"#));
    session.push(Message::result("e", "ok"));
    for n in 0..50 {
        step(&mut session, n, 10);
    }
    ready_with(&mut session, "We fixed it.");
    assert!(text(&session).contains("`src/forgotten.rs`: changed 1×"), "{}", text(&session));
}

// covers: P-INC
#[test]
fn answers_to_several_parts_become_one_summary() {
    let mut session = asking(Profile::longhaul(), 6_000);
    session.push(Message::user("Fix it."));
    for n in 0..50 {
        step(&mut session, n, 10);
    }
    let open = job(&mut session);
    let parts = vec![
        "### Done\n* one thing\n### Current state\n* early".to_owned(),
        "### Done\n* another thing\n### Current state\n* late".to_owned(),
    ];
    assert!(matches!(session.resolve(open.id, Outcome::Parts(parts)), Resolved::Folded));
    let all = text(&session);
    assert!(
        all.contains("* one thing\n* another thing\n") && all.contains("* late") && !all.contains("* early"),
        "{all}"
    );
}

/// A summary that a later one takes in keeps its details.
#[test]
fn details_of_an_earlier_summary_outlive_the_next_fold() {
    let mut session = session(Profile::longhaul(), 40_000);
    session.push(Message::user("Read all."));
    let mut first = None;
    for n in 0..600 {
        let id = format!("d{n}");
        session.push(call(&id, "Grep", &format!(r#"{{"pattern":"needle_{n}"}}"#)));
        session.push(Message::result(
            id.as_str(),
            format!(
                "src/part_{n}.rs:{n}:let needle_{n} = haystack();\n{}",
                "plain words and nothing else\n".repeat(60)
            ),
        ));
        ready(&mut session);
        let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.is_fold()).count();
        if folds == 1 && first.is_none() {
            assert!(text(&session).contains("let needle_3 = haystack();"));
            first = Some(n);
        }
        if folds == 3 {
            assert!(text(&session).contains("let needle_3 = haystack();"), "lost at {n}\n{}", text(&session));
            return;
        }
    }
    panic!("too few folds");
}

// covers: T-L1 T-CAP
#[test]
fn transform_shortens_results_that_entered_cut_too() {
    let mut session = session(Profile::transform(), 1_000_000);
    session.push(Message::user("Read all."));
    for n in 0..10 {
        step(&mut session, n, 2_000);
        ready(&mut session);
    }
    let sizes: Vec<usize> =
        parts(&session).iter().filter(|part| part.starts_with("step_")).map(String::len).collect();
    assert_eq!(sizes.iter().filter(|size| **size < 700).count(), 4, "{sizes:?}");
    assert!(text(&session).contains("80000 characters originally"), "{sizes:?}");
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

#[test]
fn an_empty_answer_in_parts_is_none() {
    for parts in [vec![], vec![String::new(), "x".into()]] {
        let mut session = asking(Profile::longhaul(), 6_000);
        session.push(Message::user("Go."));
        for n in 0..50 {
            step(&mut session, n, 10);
        }
        let open = job(&mut session);
        assert!(matches!(session.resolve(open.id, Outcome::Parts(parts)), Resolved::Again(..)));
    }
}

#[test]
fn a_refused_request_is_folded_and_no_more() {
    let mut session = asking(Profile::longhaul(), 200_000);
    for n in 0..60 {
        round(&mut session, n, 40);
    }
    session.push(Message::user("Go on."));
    ready_with(&mut session, "x");
    session.overflowed();
    ready_with(&mut session, "What was done so far, in short.");
    let made = strategies(&session);
    assert!(made.iter().any(|name| name == "fold-turns"), "{made:?}");
    assert!(!made.iter().any(|name| name == "hide-old" || name == "cut-newest"), "{made:?}");
}

// covers: M-FAIL
#[test]
fn mini_keeps_history_however_often_the_summariser_fails() {
    let mut session = asking(Profile::mini(), 100_000);
    for n in 0..12 {
        session.push(Message::user(format!("Question number {n}?")));
        step(&mut session, n, 10);
        session.observe(&Usage { input: 80_500, ..Usage::default() });
        ready_or(&mut session, Outcome::TimedOut, |resolved| {
            assert!(matches!(resolved, Resolved::Kept(_)), "{resolved:?}")
        });
        session.push(Message::assistant(format!("Answer number {n}.")));
        session.observe(&Usage { input: 80_500, ..Usage::default() });
    }
    assert!(strategies(&session).is_empty(), "{:?}", strategies(&session));
    // A fork begins without the prompts of what came after.
    let mut fork = session.fork(longhaul::At(4));
    fork.push(Message::user("Another way."));
    ready(&mut fork);
    assert!(strategies(&fork).is_empty());
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
    let mut loaded = Session::load(session.profile().clone(), session.model().clone(), session.save());
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

// covers: M-FAIL
#[test]
fn one_failure_does_not_stop_mini() {
    let mut session = asking(Profile::mini(), 100_000);
    let turn = |session: &mut Session, n: usize, outcome: Outcome| {
        session.push(Message::user(format!("Question number {n}? {}", "word ".repeat(800))));
        ready_or(session, outcome, |_| {});
        session.push(Message::assistant("Yes."));
        session.observe(&Usage { input: 80_500 + n as u64, ..Usage::default() });
    };
    turn(&mut session, 0, Outcome::TimedOut);
    turn(&mut session, 1, Outcome::TimedOut);
    assert!(strategies(&session).is_empty());
    turn(&mut session, 2, Outcome::Summary("<completed>\n- it\n</completed>".into()));
    assert_eq!(strategies(&session), ["rebuild"]);
}

#[test]
fn a_model_switch_ends_a_compaction_that_waits() {
    let mut session = asking(Profile::longhaul(), 200_000);
    session.push(Message::user("Read all."));
    for n in 0..1_300 {
        step(&mut session, n, 12);
    }
    let open = job(&mut session);
    session.switch(Model { name: "small".into(), ..model(64_000) });
    session.resolve(open.id, Outcome::Summary("Short.".into()));
    ready_with(&mut session, "Short.");
    assert!(session.size().tokens <= session.budget().target, "{:?}", session.size());
    assert!(!strategies(&session).iter().any(|name| name == "hide-old"), "{:?}", strategies(&session));
}
