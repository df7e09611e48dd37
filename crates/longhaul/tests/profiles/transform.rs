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

/// Of six lines and fewer the first 300 and the last 200 characters stay, of seven three lines and two.
// covers: T-L1
#[test]
fn transform_goes_by_characters_up_to_six_lines() {
    for (middle, by_lines) in [(1, false), (2, true)] {
        let mut session = session(Profile::transform(), 200_000);
        session.push(Message::user("Get it."));
        session.push(call("j", "Fetch", "{}"));
        let (short, long) = ("short\n".repeat(3), format!("{}\n", "middle ".repeat(200)));
        session.push(Message::result("j", format!("{short}{}short\nshort", long.repeat(middle))));
        for n in 0..6 {
            step(&mut session, n, 2);
        }
        ready(&mut session);
        let result = parts(&session).into_iter().find(|part| part.starts_with("short")).unwrap();
        assert_eq!(result.contains("middle"), !by_lines, "{middle}\n{result}");
        assert_eq!(strategies(&session), ["newest-results"], "{result}");
    }
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

/// What becomes of a result that is older than the newest six.
fn old_result(text: &str) -> String {
    let mut session = session(Profile::transform(), 1_000_000);
    session.push(Message::user("Get it."));
    session.push(call("old", "Fetch", "{}"));
    session.push(Message::result("old", text));
    for n in 0..6 {
        step(&mut session, n, 2);
    }
    ready(&mut session);
    parts(&session).swap_remove(2)
}

/// A digest without the handle in its mark.
fn without_handle(digest: &str) -> String {
    let (head, mark) = digest.split_once("; recall ").unwrap_or_else(|| panic!("{digest}"));
    format!("{head}{}", &mark[12..])
}

// covers: T-L1
#[test]
fn transform_leaves_500_characters_and_shortens_501() {
    let lines = |last: usize| format!("{}{}", "字23456789\n".repeat(49), "x".repeat(last));
    assert_eq!(lines(10).chars().count(), 500);
    assert_eq!(old_result(&lines(10)), lines(10));
    let short = old_result(&lines(11));
    assert_eq!(
        without_handle(&short),
        format!(
            "{}⟦45 lines left out, 501 characters originally⟧\n字23456789\n{}",
            "字23456789\n".repeat(3),
            "x".repeat(11)
        )
    );
}

// covers: T-L1
#[test]
fn transform_keeps_characters_where_lines_are_few_or_long() {
    let by_characters = |text: &str| {
        let all: Vec<char> = text.chars().collect();
        let head: String = all[..300].iter().collect();
        let tail: String = all[all.len() - 200..].iter().collect();
        let before = if head.ends_with('\n') { "" } else { "\n" };
        let (gone, all) = (all.len() - 500, all.len());
        format!("{head}{before}⟦{gone} characters left out, {all} characters originally⟧\n{tail}")
    };
    let line = |n: usize, length: usize| format!("{:字<1$}\n", format!("{n} "), length - 1);
    // Six lines are few, seven are not.
    let six: String = (0..6).map(|n| line(n, 110)).collect();
    assert_eq!(without_handle(&old_result(&six)), by_characters(&six));
    let seven: String = (0..7).map(|n| line(n, 90)).collect();
    let kept = |n: std::ops::Range<usize>, length: usize| n.map(|n| line(n, length)).collect::<String>();
    assert_eq!(
        without_handle(&old_result(&seven)),
        format!("{}⟦2 lines left out, 630 characters originally⟧\n{}", kept(0..3, 90), kept(5..7, 90))
    );
    // Five lines that are kept may have 500 characters and no more.
    let even: String = (0..9).map(|n| line(n, 100)).collect();
    assert_eq!(
        without_handle(&old_result(&even)),
        format!("{}⟦4 lines left out, 900 characters originally⟧\n{}", kept(0..3, 100), kept(7..9, 100))
    );
    let longer = format!("x{even}");
    assert_eq!(without_handle(&old_result(&longer)), by_characters(&longer));
}

// covers: T-L1
#[test]
fn transform_leaves_arguments_as_they_are() {
    let mut session = session(Profile::transform(), 1_000_000);
    session.push(Message::user("Write it."));
    let arguments = format!(r#"{{"path":"a.rs",  "content":"{}"}}"#, "line\\n".repeat(2_000));
    session.push(call("w", "Write", &arguments));
    session.push(Message::result("w", "ok ".repeat(400)));
    for n in 0..8 {
        step(&mut session, n, 30);
    }
    ready(&mut session);
    assert_eq!(parts(&session)[1], arguments);
    assert!(parts(&session)[2].contains("1200 characters originally"));
}

// covers: T-L2
#[test]
fn transform_keeps_signed_thinking_of_the_running_turn_byte_for_byte() {
    let think = |n: usize| {
        let seal = Seal::Signed(format!("signature {n}").into());
        let thinking =
            Thinking { text: format!("signed {n} {}", "x".repeat(3_000)).into(), seal, extra: Extra::NONE };
        Message::new(
            Role::Assistant,
            vec![Block::Thinking(thinking), Block::call(format!("s{n}"), "Read", Json::empty_object())],
        )
    };
    let mut session = session(Profile::transform(), 40_000);
    session.push(Message::user("Think."));
    let mut thought = Vec::new();
    for n in 0..14 {
        thought.push(think(n));
        session.push(think(n));
        session.push(Message::result(format!("s{n}"), "a line of some length\n".repeat(60)));
        ready(&mut session);
    }
    let all: Vec<&Message> = session.view().parts().iter().map(|part| &*part.message).collect();
    assert!(thought.iter().all(|thought| all.contains(&thought)));
    // What is dropped as a whole goes with its thinking; what is still in view keeps it.
    for n in 14..40 {
        thought.push(think(n));
        session.push(think(n));
        session.push(Message::result(format!("s{n}"), "a line of some length\n".repeat(60)));
        ready(&mut session);
    }
    let answers = session.view().parts().iter().filter(|part| part.message.role() == Role::Assistant);
    let answers: Vec<&Message> = answers.map(|part| &*part.message).collect();
    assert!(answers.len() < 40 && strategies(&session).contains(&"drop-oldest".to_owned()));
    assert_eq!(answers, thought[40 - answers.len()..].iter().collect::<Vec<_>>());
}

/// Messages of 104 tokens each: the first of the user, and so many others.
fn talk(profile: Profile, window: u64, others: usize) -> Session {
    let mut session = session(profile, window);
    session.push(Message::user(format!("{:<400}", "The first thing.")));
    for n in 1..=others {
        let text = format!("{:<400}", format!("Message number {n}."));
        session.push(if n % 2 == 1 { Message::assistant(text) } else { Message::user(text) });
    }
    session
}

/// The numbers of the messages that are shown.
fn numbers(session: &Session) -> Vec<usize> {
    let number = |part: String| part.strip_prefix("Message number ")?.split_once('.')?.0.parse().ok();
    parts(session).into_iter().filter_map(number).collect()
}

// covers: T-L3
#[test]
fn transform_never_drops_the_newest_twenty_messages() {
    // 21 messages are at four fifths of the window: nothing may go.
    let mut twenty = talk(Profile::transform(), 21 * 104 * 5 / 4, 20);
    ready(&mut twenty);
    assert!(twenty.size().tokens > twenty.budget().trigger && strategies(&twenty).is_empty());
    // Of 22 the second may, and does.
    let mut session = talk(Profile::transform(), 22 * 104 * 5 / 4, 21);
    ready(&mut session);
    assert_eq!(strategies(&session), ["drop-oldest"]);
    assert_eq!(numbers(&session), (2..=21).collect::<Vec<_>>());
    assert!(parts(&session)[0].starts_with("The first thing.") && parts(&session)[1].starts_with('⟦'));
}

// covers: T-L3 S-5 S-8
#[test]
fn transform_drops_from_the_second_on_until_it_is_under_and_no_further() {
    let mut session = talk(Profile::transform(), 10_000, 80);
    ready(&mut session);
    // 8,424 tokens; 7,500 may stay, and the mark needs some. Nine messages are 936, ten 1,040.
    assert_eq!(numbers(&session), (11..=80).collect::<Vec<_>>());
    assert!(session.size().tokens <= Tokens(7_500), "{:?}", session.size());
    let (edit, _) = session.ledger().edits().find(|(edit, _)| edit.kind.replaces_runs()).unwrap();
    assert_eq!(edit.before, Tokens(1_040));
    assert_eq!(session.size().tokens, Tokens(81 * 104 - 1_040) + edit.after);
}

/// A system prompt in the frame, a tool, a system message, and some talk: the window is such that the
/// messages alone are so many tokens below its 75 %.
fn beside_a_prompt(system: usize, below: i64) -> Session {
    let build = |window: u64| {
        let mut session = session(Profile::transform(), window);
        let tool = longhaul::Tool::from_definition(Json::new(r#"{"name":"Read"}"#).unwrap());
        let system = vec![Block::text("Be brief. ".repeat(system))];
        session.set_frame(longhaul::Frame { system, tools: vec![tool], ..longhaul::Frame::default() });
        session.push(Message::system("Be kind."));
        for n in 0..40 {
            round(&mut session, n, 4);
        }
        session.push(Message::user("Go on."));
        session
    };
    let alone = {
        let mut bare = session(Profile { rules: Vec::new(), ..Profile::transform() }, 1 << 40);
        for n in 0..40 {
            round(&mut bare, n, 4);
        }
        bare.push(Message::user("Go on."));
        ready(&mut bare);
        bare.size().tokens.0
    };
    let share = alone.saturating_add_signed(below);
    let window = (share * 4).div_ceil(3);
    assert_eq!(window * 75 / 100, share);
    let mut session = build(window);
    ready(&mut session);
    session
}

// covers: T-COUNT T-L3
#[test]
fn transform_counts_the_messages_alone_against_its_75_percent() {
    // With the system prompt the request is well over it.
    let at = beside_a_prompt(80, 0);
    assert!(at.size().tokens.0 * 100 > at.budget().window.0 * 76, "{:?} {:?}", at.size(), at.budget());
    assert!(strategies(&at).is_empty());
    assert_eq!(at.size().tokens, at.budget().trigger);
    // What is worked to counts the messages alone too.
    let over = beside_a_prompt(80, -1);
    assert_eq!(strategies(&over), ["drop-oldest"]);
    assert!(over.size().tokens.0 + 150 > over.budget().trigger.0, "{:?} {:?}", over.size(), over.budget());
}

// covers: T-COUNT S-1
#[test]
fn the_hard_limit_of_transform_counts_everything() {
    let session = beside_a_prompt(240, 10);
    let budget = session.budget();
    assert_eq!(
        (budget.trigger, budget.hard),
        (budget.hard, budget.window - Tokens(budget.window.0 * 15 / 100))
    );
    assert!(session.size().tokens <= budget.hard);
    let (edit, _) = session.ledger().edits().next().unwrap();
    assert_eq!((&*edit.strategy, edit.why), ("drop-oldest", Why::Forced(longhaul::edits::Limit::Hard)));
}

// covers: T-COUNT S-2
#[test]
fn a_message_costs_four_tokens_and_a_picture_85() {
    let image = |size| {
        let source = Json::new(r#"{"data":"iVBORw0KGgo"}"#).unwrap();
        Block::Image(longhaul::conversation::Image { source, size, extra: Extra::NONE })
    };
    for name in ["gpt-4o", "gpt-4", "claude-sonnet-4-5", "nobody-knows-it"] {
        let model = Models::builtin().find(name);
        let meter = Meter::for_model(model);
        let words = model.vocabulary.count("Count these five words.").tokens as i64;
        assert_eq!(meter.message(&Message::user("Count these five words.")).counted, words + 4);
        let picture = |size| meter.message(&Message::new(Role::User, vec![image(size)])).counted;
        assert_eq!(picture(None), 85 + 4);
        assert_ne!(picture(Some((1_024, 1_024))), 85 + 4);
    }
    let vocabulary = |name: &str| Models::builtin().find(name).vocabulary;
    assert_eq!(vocabulary("gpt-4"), longhaul::Vocabulary::Cl100k);
    assert_eq!(vocabulary("nobody-knows-it"), longhaul::Vocabulary::O200k);
}

// covers: T-CAP
#[test]
fn transform_lets_51_200_bytes_enter_and_no_more() {
    let entered = |text: &str| {
        let mut session = session(Profile::transform(), 1_000_000);
        session.push(Message::user("Get it."));
        session.push(call("a", "Fetch", "{}"));
        session.push(Message::result("a", text));
        ready(&mut session);
        parts(&session).swap_remove(2)
    };
    let whole = "é".repeat(25_600);
    assert_eq!((whole.len(), entered(&whole) == whole), (51_200, true));
    let cut = entered(&format!("{whole}x"));
    assert!(cut.contains("⟦Fetch: 25601 characters in 1 lines, ") && cut.ends_with("éx"));
    assert!(cut.len() < 51_201, "{}", cut.len());
    // Of more, so much is kept, two thirds from the start.
    let cut = entered(&"é".repeat(40_000));
    let (head, tail) =
        cut.split_once("\n⟦Fetch: 40000 characters in 1 lines, 25600 kept, 14400 left out").unwrap();
    assert_eq!((head.matches('é').count(), tail.matches('é').count()), (17_067, 8_533));
}

// covers: T-CONF
#[test]
fn the_constants_of_transform_are_those_of_its_seed() {
    let profile = Profile::transform();
    let constants = profile.constants;
    assert_eq!((constants.keep_recent_tool_results, constants.keep_recent_thinking), (6, 1));
    assert_eq!((constants.keep_recent_messages, profile.shares.trigger, profile.shares.target), (20, 75, 75));
    assert_eq!((constants.summary_head_lines, constants.summary_tail_lines), (3, 2));
    // And they can be others.
    let mut other = Profile::transform();
    other.constants.keep_recent_tool_results = 2;
    other.constants.summary_head_lines = 1;
    other.constants.summary_tail_lines = 4;
    other.constants.keep_recent_messages = 5;
    (other.shares.trigger, other.shares.target) = (60, 60);
    let mut few = talk(other.clone(), 10_000, 80);
    ready(&mut few);
    assert!(few.size().tokens <= Tokens(6_000));
    let mut session = session(other, 200_000);
    session.push(Message::user("Read all."));
    for n in 0..4 {
        step(&mut session, n, 30);
    }
    ready(&mut session);
    let all = text(&session);
    for n in 0..4 {
        let has = |line: usize| all.contains(&format!("step_{n} line {line} "));
        assert_eq!((has(0), has(1), has(25), has(26)), (true, n >= 2, n >= 2, true), "{n}");
    }
}
