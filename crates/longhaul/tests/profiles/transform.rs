//! Profile `transform`, seed 001.

use super::*;

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
    assert!(shown(session.log().get(longhaul::Position(2)).unwrap()).contains("step_0 line 10"));
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
