//! Sequences of calls that are rare and have rules of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use longhaul::{
    Block, EditKind, Json, Message, Meter, Position, PrepareError, Prepared, Profile, RecallPart, Role,
    Seals, Session, Summariser, Tokens, TooLarge,
};

#[test]
fn a_system_message_between_a_call_and_its_result_stays() {
    let mut session = session(8_000);
    session.push(Message::user("go"));
    let rule: String = (0..40).map(|n| format!("Rule {n} of the host.\n")).collect();
    session.push(call("a"));
    session.push(Message::system(rule.as_str()));
    session.push(Message::result("a", "late result\n".repeat(100)));
    for n in 0..40 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        assert!(text(&session).contains(&rule), "{n}");
    }
    assert!(session.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()));
}

#[test]
fn a_result_that_comes_while_a_summary_is_written_is_a_result() {
    let mut profile = Profile::longhaul();
    profile.summariser = Summariser::Host;
    let mut session = Session::new(profile, model("m", 20_000)).with_meter(Meter::neutral());
    session.push(Message::user("go"));
    (0..40).for_each(|n| step(&mut session, n, 2_000));
    let calls = ["x", "y"].map(|id| Block::call(id, "Read", Json::empty_object()));
    session.push(Message::new(Role::Assistant, calls.to_vec()));
    session.push(Message::result("x", "first"));
    // Nothing is sent yet.
    assert!(matches!(session.prepare(None).unwrap(), Prepared::Summarise(_)));
    session.push(Message::result("y", "second"));
    let Prepared::Summarise(job) = session.prepare(None).unwrap() else { panic!() };
    session.resolve(job.id, longhaul::Outcome::Summary("All was read.".into()));
    ready(&mut session);
    let last = session.view().parts().last().unwrap();
    assert!(last.message.results().any(|result| &*result.text == "second"), "{last:?}");
}

#[test]
fn what_is_a_rule_of_one_profile_may_be_a_rung_of_another() {
    let rung =
        longhaul::policy::STRATEGIES.iter().find(|strategy| strategy.name == "newest-results").unwrap();
    let mut profile = Profile::archive();
    (profile.rules, profile.ladder) = (Vec::new(), vec![*rung]);
    let mut session = Session::new(profile, model("m", 20_000)).with_meter(Meter::neutral());
    session.push(Message::user("go"));
    for n in 0..40 {
        step(&mut session, n, 2_000);
        ready(&mut session);
    }
    let by_rung = session.ledger().edits().filter(|(edit, _)| &*edit.strategy == "newest-results").count();
    assert!(by_rung > 20, "{by_rung}");
}

#[test]
fn what_no_edit_can_help_is_said_before_any_is_made() {
    let mut session = session(100_000);
    session.push(Message::system("Rules of the host. ".repeat(3_000)));
    session.push(Message::user("go"));
    (0..10).for_each(|n| step(&mut session, n, 2_000));
    ready(&mut session);
    let before = text(&session);
    session.switch(model("small", 8_000), Seals::Engine);
    for _ in 0..3 {
        let error = session.prepare(None).err().unwrap();
        assert!(matches!(error, PrepareError::TooLarge { what: TooLarge::System, .. }), "{error}");
    }
    assert_eq!(session.ledger().edits().count(), 0);
    session.switch(model("m", 100_000), Seals::Engine);
    ready(&mut session);
    assert_eq!(text(&session), before);
}

/// A session whose folds take what stands before the first answer.
fn folds_the_opening(window: u64) -> Session {
    let profile = Profile { keep_opening: 0, ..Profile::longhaul() };
    Session::new(profile, model("m", window)).with_meter(Meter::neutral())
}

/// How many folds and hides were made.
fn runs_taken(session: &Session) -> usize {
    session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count()
}

/// How often a request is in the view, but for where its answer is told.
fn asked(session: &Session, request: &str) -> usize {
    let told = format!("{request} - Done.");
    let all = text(session);
    assert!(all.matches(&told).count() <= 1, "{all}");
    all.replace(&told, "").matches(request).count()
}

#[test]
fn what_stands_before_the_first_answer_is_in_view_after_ten_folds() {
    let mut session = session(20_000);
    let rules = "Rules of the project: never change the public interface.";
    session.push(Message::user(rules).with_attachment());
    session.push(Message::user("Mend the parser of dates."));
    let mut n = 0;
    while runs_taken(&session) < 10 {
        step(&mut session, n, 2_000);
        n += 1;
        if n % 9 == 0 {
            session.push(Message::assistant("Done."));
            session.push(Message::user("Go on."));
        }
        ready(&mut session);
        assert_eq!(asked(&session, "Mend the parser of dates."), 1);
    }
    assert_eq!(sent(&session)[0], Message::user(rules).with_attachment());
    assert_eq!(sent(&session)[1], Message::user("Mend the parser of dates."));
    // The profiles of the seeds fold it.
    let mut folding = folds_the_opening(20_000);
    folding.push(Message::user("Mend the parser of dates."));
    let mut n = 0;
    while runs_taken(&folding) < 1 {
        step(&mut folding, n, 2_000);
        n += 1;
        ready(&mut folding);
        if n % 3 == 0 {
            folding.push(Message::assistant("Done."));
            folding.push(Message::user("Go on."));
        }
    }
    assert_ne!(sent(&folding)[0], Message::user("Mend the parser of dates."));
}

#[test]
fn an_opening_that_is_too_large_goes_like_anything_else() {
    for share in [10, 60, 90, 300] {
        let mut session = session(20_000);
        session.push(Message::user("Mend this line. ".repeat(share * 200 * 4 / 16)));
        for n in 0..60 {
            ready(&mut session);
            step(&mut session, n, 3_000);
            if n % 7 == 0 {
                session.push(Message::assistant("Done."));
                session.push(Message::user("Go on."));
            }
        }
        ready(&mut session);
        let whole = sent(&session)[0] == **session.log().get(Position(0)).unwrap();
        assert_eq!(whole, share == 10, "{share}");
        assert!(text(&session).contains("line of step_59 "), "{share}");
    }
}

#[test]
fn the_hard_limit_takes_the_opening_last() {
    let rules = "Never change the public interface. ".repeat(100);
    let opened = |window| {
        let mut session = session(window);
        session.push(Message::user(rules.as_str()).with_attachment());
        session.push(Message::user("Mend the parser."));
        session.push(Message::assistant("I see."));
        session.push(Message::user("Begin."));
        session
    };
    // What is newest is cut before it.
    let mut large = opened(14_000);
    (0..3).for_each(|n| step(&mut large, n, 3_000));
    step(&mut large, 3, 45_000);
    ready(&mut large);
    assert!(text(&large).contains(&rules) && text(&large).contains("left out; recall"));
    // Sealed reasoning of the running turn cannot be cut.
    let mut sealed = opened(9_000);
    sealed.push(thought(&"t".repeat(28_000), "a"));
    sealed.push(Message::result("a", "one"));
    ready(&mut sealed);
    assert!(!text(&sealed).contains(&rules) && thoughts(&sealed) == 1);
    assert!(text(&sealed).contains("Mend the parser."));
    let hide = sealed.ledger().edits().last().unwrap().0;
    assert_eq!(&*hide.strategy, "hide-opening");
}

#[test]
fn a_log_that_begins_with_an_answer_has_no_opening() {
    let mut session = session(20_000);
    let first = Message::assistant("I was here before. ".repeat(200));
    session.push(first.clone());
    session.push(Message::user("And what was done?"));
    session.push(Message::assistant("Nothing yet."));
    session.push(Message::user("Mend the parser."));
    assert!(session.log().opening().is_empty());
    let mut n = 0;
    while runs_taken(&session) < 1 {
        step(&mut session, n, 2_000);
        n += 1;
        ready(&mut session);
    }
    assert_ne!(sent(&session)[0], first);
}

/// A message as Claude Code sends it: no content, and a field that sets something for the turn.
fn turn_control(effort: &str) -> Message {
    let (mut fields, mut origin) = (longhaul::Extra::NONE, longhaul::Extra::NONE);
    fields.set("output_config", Json::new(format!(r#"{{"effort":"{effort}"}}"#)).unwrap());
    origin.set(longhaul::conversation::API_FIELD, Json::string("anthropic"));
    Message::new(Role::System, Vec::new()).with_extra(fields).with_wire_fields(origin)
}

#[test]
fn a_system_message_of_an_api_is_never_mended_away() {
    let mut session = session(20_000);
    session.push(Message::user("Mend the parser."));
    session.push(turn_control("first"));
    // In a recorded log nobody can say what an empty message is for.
    session.push(Message::new(Role::System, Vec::new()));
    ready(&mut session);
    assert_eq!(sent(&session), [Message::user("Mend the parser."), turn_control("first")]);
    for n in 0..60 {
        if n % 6 == 5 {
            session.push(Message::assistant("Done."));
            session.push(Message::user("Go on."));
            session.push(turn_control(&format!("turn_{n}")));
        }
        step(&mut session, n, 3_000);
        ready(&mut session);
    }
    let shown = sent(&session);
    assert!(shown.contains(&turn_control("turn_59")));
    assert!(!shown.contains(&turn_control("turn_5")), "it went with its turn");
    assert_eq!(sent(&reload(&session)), shown);
}

/// Steps and turns until so many folds were made.
fn until_folds(session: &mut Session, from: usize, count: usize) {
    let mut n = from;
    while runs_taken(session) < count {
        step(session, n, 2_000);
        n += 1;
        if n.is_multiple_of(7) {
            session.push(Message::assistant("Done."));
            session.push(Message::user("Go on."));
        }
        ready(session);
    }
}

/// The model has a deferred tool as long as the result that loaded it is in view.
#[test]
fn a_result_that_loads_a_tool_stays_whole_and_folds_go_around_it() {
    for profile in Profile::all() {
        let mut session = Session::new(profile.clone(), model("m", 20_000)).with_meter(Meter::neutral());
        session.push(Message::user("Mend the parser."));
        (0..4).for_each(|n| step(&mut session, n, 2_000));
        let search =
            Message::new(Role::Assistant, vec![Block::call("load", "ToolSearch", Json::empty_object())]);
        let loaded = histories::loading("load", &"WebFetch fetches a page. ".repeat(80));
        session.push(search.clone());
        session.push(loaded.clone());
        session.push(Message::assistant("I have the tool."));
        session.push(Message::user("Use it."));
        until_folds(&mut session, 10, 4);
        let shown = sent(&session);
        assert!(shown.contains(&search) && shown.contains(&loaded), "{}", profile.name);
        let gone = |at: u32| session.ledger().covering(Position(at)).is_some();
        assert!(gone(7) && !gone(9) && !gone(10) && gone(11), "{}", profile.name);
    }
}

/// A call that the provider runs itself.
fn server_call(id: &str) -> Block {
    Block::ToolCall(longhaul::ToolCall {
        id: id.into(),
        name: "web_search".into(),
        arguments: Json::empty_object(),
        server: true,
        extra: longhaul::Extra::NONE,
    })
}

#[test]
fn a_tool_of_the_provider_is_bonded_to_a_result_two_answers_later() {
    let mut session = session(20_000);
    session.push(Message::user("Find the paper."));
    (0..4).for_each(|n| step(&mut session, n, 3_000));
    let read = |id: &str| Block::call(id, "Read", Json::empty_object());
    let asks = Message::new(Role::Assistant, vec![server_call("s1"), read("a")]);
    let called = session.push(asks.clone());
    session.push(Message::result("a", "one\n"));
    ready(&mut session);
    // Nothing takes the call while its result may come.
    session.push(Message::new(Role::Assistant, vec![Block::text("I wait."), read("b")]));
    session.push(Message::result("b", "two\n"));
    session.compact_now();
    ready(&mut session);
    assert!(sent(&session).contains(&asks));
    let finds = vec![Block::result("s1", "hits ".repeat(400)), Block::text("Found.")];
    let answers = Message::new(Role::Assistant, finds);
    let answered = session.push(answers.clone());
    ready(&mut session);
    // No placeholder, no note: both are as they came.
    let shown = sent(&session);
    assert!(shown.contains(&asks) && shown.contains(&answers));
    assert!(!text(&session).contains("No result was recorded") && !text(&session).contains("answers no"));
    session.push(Message::user("Go on."));
    let mut both_gone = false;
    for n in 10..60 {
        step(&mut session, n, 1_500);
        ready(&mut session);
        let gone = |at| session.ledger().covering(at).is_some();
        assert_eq!(gone(called), gone(answered), "{n}");
        both_gone |= gone(called);
    }
    assert!(both_gone);
}

/// What a turn left unfinished is never finished: it goes like anything else, and a result is a note.
#[test]
fn a_tool_of_the_provider_that_was_broken_off_holds_nothing() {
    let mut session = session(20_000);
    session.push(Message::user("Find the paper."));
    session.push(Message::assistant("I search."));
    session.push(Message::user("Well?"));
    let asks = Message::new(Role::Assistant, vec![server_call("s1"), Block::text("words ".repeat(300))]);
    session.push(asks.clone());
    session.push(Message::user("Stop that."));
    until_folds(&mut session, 0, 2);
    assert!(!sent(&session).contains(&asks));
    session.push(Message::new(Role::Assistant, vec![Block::result("s1", "hits"), Block::text("Late.")]));
    ready(&mut session);
    assert!(text(&session).contains("[Result of a tool, call s1, answers no known call]"));
}

/// Reasoning that is with the provider under its id: the item behind it names it.
#[test]
fn stored_reasoning_goes_only_with_its_item_or_its_model() {
    let mut id = longhaul::Extra::NONE;
    id.set("id", Json::string("rs_1"));
    let stored =
        longhaul::conversation::Thinking { text: "".into(), seal: longhaul::Seal::Redacted(None), extra: id };
    let item = Message::new(Role::Assistant, vec![Block::Thinking(stored), Block::text("Done.")]);
    let mut session = Session::new(Profile::transform(), model("m", 20_000)).with_meter(Meter::neutral());
    session.push(Message::user("Mend the parser."));
    session.push(item.clone());
    session.push(Message::user("Go on."));
    for n in 0..4 {
        let open = Block::thinking("open thoughts ".repeat(20));
        let id = format!("c{n}");
        session.push(Message::new(
            Role::Assistant,
            vec![open, Block::call(id.as_str(), "Read", Json::empty_object())],
        ));
        session.push(Message::result(id, "one\n"));
        ready(&mut session);
    }
    // The profile drops all thinking but the newest; this is no thinking that may go alone.
    assert!(sent(&session).contains(&item));
    session.switch(model("other", 20_000), Seals::Engine);
    ready(&mut session);
    assert!(!sent(&session).contains(&item) && sent(&session).contains(&Message::assistant("Done.")));
    session.switch(model("m", 20_000), Seals::Engine);
    ready(&mut session);
    assert!(sent(&session).contains(&item));
}

/// A system prompt of about so many tokens.
fn prompt(tokens: usize, date: &str) -> Message {
    let rule = "Answer in short sentences, and name the file that you changed.\n";
    let rules = rule.repeat(tokens * 4 / rule.len());
    Message::system(format!(
        "You are an assistant who mends programs in a workspace.\n{rules}Today is {date}."
    ))
}

#[test]
fn a_system_prompt_that_comes_again_is_shown_once() {
    let mut session = session(64_000);
    session.push(prompt(33_000, "Monday"));
    session.push(Message::user("Mend the parser."));
    ready(&mut session);
    for n in 0..8 {
        step(&mut session, n, 1_000);
        session.push(Message::assistant("Done."));
        session.push(prompt(33_000, "Monday"));
        session.push(Message::system("The window was resized."));
        session.push(Message::user("Go on."));
        ready(&mut session);
        assert!(!session.sent().unwrap().broke, "{n}");
    }
    assert_eq!(text(&session).matches("You are an assistant").count(), 1);
    // A short note stays where it is.
    let shown = sent(&session);
    let notes = shown.iter().filter(|message| **message == Message::system("The window was resized."));
    assert_eq!(notes.count(), 8);
    assert_eq!(shown[shown.len() - 2], Message::system("The window was resized."));
    assert_eq!(session.search("Today is Monday", 20).unwrap().len(), 9);
    assert_eq!(sent(&reload(&session)), shown);
}

#[test]
fn a_later_system_prompt_takes_the_place_of_the_earlier() {
    let mut session = session(64_000);
    session.push(prompt(33_000, "Monday"));
    session.push(Message::user("Mend the parser."));
    for n in 0..40 {
        step(&mut session, n, 6_000);
        ready(&mut session);
        if n % 8 == 7 {
            session.push(Message::assistant("Done."));
            session.push(prompt(33_000, &format!("day {n}")));
            session.push(Message::user("Go on."));
            ready(&mut session);
            assert!(session.sent().unwrap().broke);
            assert_eq!(sent(&session)[0], prompt(33_000, &format!("day {n}")));
        }
    }
    assert_eq!(text(&session).matches("You are an assistant").count(), 1);
    assert!(runs_taken(&session) > 0);
    assert_eq!(sent(&reload(&session)), sent(&session));
    // Before the newest came, the one before it stood there.
    let end = session.log().messages().iter().rposition(|message| message.role() == Role::System).unwrap();
    let mut fork = session.fork(Position(end as u32)).unwrap();
    ready(&mut fork);
    assert_eq!(sent(&fork)[0], prompt(33_000, "day 31"));
}

/// Between a call and its result too: the step may be folded, and nobody is told of the prompt.
#[test]
fn a_system_prompt_that_comes_again_inside_a_step_is_in_no_summary() {
    let mut session = session(20_000);
    session.push(prompt(2_000, "Monday"));
    session.push(Message::user("Mend the parser."));
    session.push(call("a"));
    session.push(prompt(2_000, "Tuesday"));
    session.push(Message::result("a", "late result\n".repeat(100)));
    until_folds(&mut session, 0, 3);
    assert!(session.ledger().covering(Position(3)).is_some());
    assert_eq!(sent(&session)[0], prompt(2_000, "Tuesday"));
    assert_eq!(text(&session).matches("You are an assistant").count(), 1);
    assert_eq!(text(&session).matches("Today is").count(), 1);
}

#[test]
fn an_edit_inside_another_comes_back_in_any_order() {
    let mut session = folds_the_opening(20_000);
    session.push(Message::user("Find the bug."));
    for n in 0..200 {
        if n % 10 == 9 {
            session.push(Message::assistant("Done."));
            session.push(Message::user("Go on."));
        }
        ready(&mut session);
        step(&mut session, n, 2_000);
    }
    ready(&mut session);
    let restates = |kind: &EditKind| matches!(kind, EditKind::Fold { kept, .. } if kept.iter().any(|kept| kept.key == longhaul::view::KeepKey::Goal));
    let first = session.ledger().edits().find(|(edit, _)| restates(&edit.kind)).unwrap().0.id;
    // With it go those that were made from it: they come back, the last one first.
    let gone = session.undo(first).unwrap();
    assert!(gone.len() > 1);
    for id in &gone {
        session.redo(*id).unwrap();
    }
    ready(&mut session);
    assert_eq!(asked(&session, "Find the bug."), 1);
}

#[test]
fn a_hide_says_what_it_saves_beside_what_must_be_kept() {
    let mut session = Session::new(Profile::transform(), model("m", 8_000)).with_meter(Meter::neutral());
    let goal = "The goal is to mend the parser. ".repeat(380);
    session.push(Message::user(goal.as_str()));
    session.push(Message::assistant("I see."));
    session.push(Message::user("Begin."));
    step(&mut session, 0, 2_000);
    step(&mut session, 1, 18_000);
    ready(&mut session);
    // Were the goal hidden, it would stand in the tail: nothing is saved by that.
    assert!(text(&session).contains(goal.trim()));
    let hides = session.ledger().edits().map(|(edit, _)| edit);
    let hides: Vec<_> = hides.filter(|edit| matches!(edit.kind, EditKind::Hide { .. })).collect();
    assert!(!hides.is_empty() && hides.iter().all(|edit| edit.price.saves < Tokens(2_000)), "{hides:?}");
}

#[test]
fn absurd_windows_and_reports_do_no_harm() {
    let mut session = session(100_000).with_window(Tokens(u64::MAX));
    session.push(Message::user("go"));
    (0..10).for_each(|n| step(&mut session, n, 2_000));
    session.compact_now();
    ready(&mut session);
    let mut session = Session::new(Profile::longhaul(), model("m", 100_000));
    session.push(Message::user("go"));
    ready(&mut session);
    observe(&mut session, &longhaul::Usage { input: u64::MAX, ..Default::default() });
    session.push(Message::assistant("Done."));
    ready(&mut session);
}

// covers: A-LAW S-10
#[test]
fn rules_and_goals_that_no_longer_hold_are_said_to() {
    let mut session = session(100_000);
    session.set_rules("CODE_LAW.md", Some("Never use tabs."));
    session.push(Message::user("Mend the parser."));
    ready(&mut session);
    assert!(!text(&session).contains("no longer in force") && !text(&session).contains("replaces"));
    session.set_rules("CODE_LAW.md", None);
    session.set_goal("Mend the printer.");
    session.push(Message::user("The printer first."));
    ready(&mut session);
    let shown = text(&session);
    assert!(shown.contains("<rules name=\"CODE_LAW.md\">\n(These rules are no longer in force.)"), "{shown}");
    assert!(shown.contains("Mend the printer.\n(This replaces the first request"), "{shown}");
    // Again in force, and changed.
    session.set_rules("CODE_LAW.md", Some("Never use spaces."));
    ready(&mut session);
    assert!(text(&session).contains("Never use spaces.") && !text(&session).contains("no longer in force"));
}

#[test]
fn an_answer_that_was_broken_off_ends_no_turn() {
    let mut session = session(8_000);
    session.push(Message::user("Mend the parser."));
    (0..10).for_each(|n| step(&mut session, n, 1_000));
    session.push(Message::assistant("Done."));
    let input = "Now the printer. ".repeat(100);
    session.push(Message::user(input.as_str()));
    for broken in [vec![], vec![Block::text(" ")], vec![Block::thinking("Hm, the")]] {
        session.push(Message::new(Role::Assistant, broken));
        session.compact_now();
        ready(&mut session);
        assert!(text(&session).contains(&input), "{}", text(&session));
    }
}

#[test]
fn what_was_refused_is_not_sent_again() {
    let mut session = session(100_000);
    session.push(Message::user("Mend it."));
    ready(&mut session);
    overflowed(&mut session);
    for _ in 0..2 {
        let error = session.prepare(None).err().unwrap();
        assert_eq!(error.to_string(), "what must stay has 6 tokens, over the limit of 5 (window 6)");
    }
    session.switch(model("other", 100_000), Seals::Engine);
    ready(&mut session);
}

#[test]
fn steps_with_system_messages_are_digested() {
    for profile in Profile::all() {
        let mut session = Session::new(profile, model("m", 8_000)).with_meter(Meter::neutral());
        session.push(Message::user("go"));
        for n in 0..30 {
            let id = format!("call_{n}");
            session.push(call(&id));
            session.push(Message::system(format!("Reminder {n}.")));
            session.push(Message::result(id, format!("line of step_{n}\n").repeat(180)));
            ready(&mut session);
        }
        assert!((0..30).all(|n| text(&session).contains(&format!("Reminder {n}."))));
    }
}

/// What a tool read back is not digested a second time: nobody could ever read it.
#[test]
fn what_is_recalled_is_shown_whole() {
    let noise: String = (0..200).map(|n| format!("   Compiling part_{n} v0.1.0\n")).collect();
    let noisy = format!("Building 200 parts\n{noise}\n    Finished `dev` profile in 7.31s\n");
    let asks = |id: &str, tool: &str, json: String| {
        Message::new(Role::Assistant, vec![Block::call(id, tool, Json::new(json).unwrap())])
    };
    let mut session = session(100_000);
    session.push(Message::user("Does it build?"));
    session.push(asks("a", "Bash", r#"{"command":"cargo build"}"#.to_owned()));
    session.push(Message::result("a", noisy.as_str()));
    ready(&mut session);
    assert!(!text(&session).contains("part_77 "), "a digest of it entered");

    let shown = text(&session);
    let (_, mark) = shown.split_once("; recall ").unwrap();
    let handle = mark.split('⟧').next().unwrap();
    let recalled = session.recall(handle, &RecallPart::Whole).unwrap();
    assert!(recalled.contains(&noisy));
    for (id, tool) in [("b", "recall"), ("c", "longhaul_recall"), ("d", "mcp__longhaul__recall")] {
        session.push(asks(id, tool, format!(r#"{{"handle":"{handle}"}}"#)));
        session.push(Message::result(id, recalled.as_str()));
        ready(&mut session);
        let last = session.view().parts().last().unwrap().message.clone();
        assert_eq!(*last.results().next().unwrap().text, *recalled, "{tool}");
    }
    // The limits of a profile hold all the same.
    let mut mini = Session::new(Profile::mini(), model("m", 100_000)).with_meter(Meter::neutral());
    mini.push(Message::user("What was it?"));
    mini.push(asks("a", "recall", "{}".to_owned()));
    mini.push(Message::result("a", recalled.repeat(4)));
    ready(&mut mini);
    assert!(text(&mini).contains(" left out; recall ") && text(&mini).len() < 9_000);
}

#[test]
fn what_stands_behind_a_waiting_call_can_be_hidden() {
    for profile in Profile::all() {
        let mut session = Session::new(profile, model("m", 8_000)).with_meter(Meter::neutral());
        session.push(Message::user("go"));
        session.push(call("a"));
        session.push(Message::user("an attached line\n".repeat(2_500)).with_attachment());
        ready(&mut session);
    }
}

#[test]
fn a_long_first_request_does_not_starve_the_work() {
    let mut session = session(8_000);
    session.push(Message::user("The goal is to mend the parser. ".repeat(1_300)));
    ready(&mut session);
    session.push(Message::assistant("I see."));
    session.push(Message::user("Begin."));
    for n in 0..12 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        assert!(
            text(&session).matches(&format!("line of step_{n} ")).count() > 40,
            "{n}: the newest is whole"
        );
    }
}

#[test]
fn rules_are_shown_once_whatever_stands_beside_them() {
    let mut session = session(8_000);
    session.set_rules("AGENTS.md", Some(&"Never do this. ".repeat(1_400)));
    session.set_rules("GONE.md", Some("Never seen."));
    session.set_rules("GONE.md", None);
    session.set_todos(Some(&"[ ] one\n".repeat(10)));
    session.push(Message::user("go"));
    ready(&mut session);
    let shown = |session: &Session| {
        let entries = session.since(longhaul::Cursor(0));
        entries.filter(|entry| matches!(entry, longhaul::Entry::RulesShown { .. })).count()
    };
    for todos in [40, 5, 60] {
        session.set_todos(Some(&"[ ] one\n".repeat(todos)));
        ready(&mut session);
        assert_eq!((shown(&session), text(&session).matches("<rules").count()), (1, 1));
    }
    assert!(!text(&session).contains("GONE.md"));
}
