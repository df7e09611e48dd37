//! A question that was answered never stands without its answer, or a word that it is done; and no
//! summary is without content.

use super::*;

/// Rounds that stand in the view as open: their question is shown as it came, or as the goal, and the
/// answer is shown neither as it came nor in a line that says that it is done.
fn open_rounds(session: &Session, rounds: usize) -> Vec<usize> {
    let all = text(session);
    let is_shown = |n: usize| {
        let question = format!("Question number {n}?");
        all.contains(&format!("<goal>\n{question}\n"))
            || session.view().parts().iter().any(|part| {
                matches!(part.source, Source::Message(_)) && part.message.texts().any(|text| text == question)
            })
    };
    let is_told = |n: usize| {
        let answer = format!("Answer number {n}.");
        let done = format!("[✓] Question number {n}? - {answer}");
        parts(session).contains(&answer) || all.lines().any(|line| line.ends_with(&done))
    };
    (0..rounds).filter(|n| is_shown(*n) && !is_told(*n)).collect()
}

/// What stands in the place of folded runs, without its headings, marks and handles.
fn summaries(session: &Session) -> Vec<String> {
    let edits = session.ledger().edits();
    let folds = edits.filter_map(|(edit, _)| match &edit.kind {
        EditKind::Fold { text, .. } => Some(text.to_string()),
        _ => None,
    });
    folds.collect()
}

// covers: S-10 A-ROUNDS
#[test]
fn an_answered_question_does_not_stand_alone() {
    for profile in Profile::all() {
        for (lines, host) in [(20, false), (60, false), (20, true), (60, true)] {
            let name = profile.name.clone();
            let mut session = match host {
                true => asking(profile.clone(), 8_000),
                false => session(profile.clone(), 8_000),
            };
            for n in 0..60 {
                round(&mut session, n, lines);
                // A model that forgets what was done.
                ready_with(&mut session, "Something was done so far.");
                let open = open_rounds(&session, n + 1);
                assert_eq!(open, [0; 0], "{name}, {lines} lines, {host}, round {n}\n{}", text(&session));
            }
            assert!(session.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()), "{name}");
        }
    }
}

/// The same when a long turn is cut in the middle, and when nothing but hiding is left.
#[test]
fn an_answered_question_does_not_stand_alone_in_any_window() {
    for profile in Profile::all() {
        for window in [1_500, 3_000, 6_000] {
            let name = profile.name.clone();
            let mut session = session(profile.clone(), window);
            for n in 0..24 {
                session.push(Message::user(format!("Question number {n}?")));
                for step_of_round in 0..n % 7 {
                    step(&mut session, n * 100 + step_of_round, 16);
                    ready(&mut session);
                    assert_eq!(open_rounds(&session, n), [0; 0], "{name} {window}\n{}", text(&session));
                }
                session.push(Message::assistant(format!("Answer number {n}.")));
            }
        }
    }
}

/// Ten compactions later too.
// covers: S-10
#[test]
fn the_first_request_is_said_to_be_done() {
    for profile in Profile::all() {
        let name = profile.name.clone();
        // Or `archive` leaves them all alone.
        let constants = Constants { min_retain_rounds: 1, ..profile.constants };
        let mut session = session(Profile { constants, ..profile }, 12_000);
        session.push(Message::user("Build the ingest service."));
        for n in 0..11 {
            for m in 0..12 {
                step(&mut session, n * 100 + m, 20);
            }
            session.push(Message::assistant(format!("Part {n} is done.")));
            session.push(Message::user(format!("Go on with part {}.", n + 1)));
            session.compact_now();
            ready(&mut session);
            let all = text(&session);
            let told = all.contains("[✓] Build the ingest service. - Part 0 is done.\n")
                || all.contains("\nPart 0 is done.\n");
            assert!(told, "{name} after {n}\n{all}");
            // Nothing that was done stands as open.
            let open = all
                .split_once("### Remaining")
                .map_or("", |(_, open)| open.split("###").next().unwrap_or_default());
            assert!(!open.contains("Build the ingest"), "{name} after {n}\n{all}");
        }
    }
}

/// What another goal has replaced is done all the same.
// covers: S-10
#[test]
fn a_first_request_that_was_replaced_is_said_to_be_done() {
    for profile in Profile::all() {
        let name = profile.name.clone();
        let mut session = session(profile, 8_000);
        session.push(Message::user("Build the ingest service."));
        session.push(Message::assistant("It is built."));
        session.push(Message::user("Thanks. Now the docs."));
        session.set_goal("Write the docs.");
        for n in 0..80 {
            step(&mut session, n, 20);
            ready(&mut session);
        }
        let all = text(&session);
        let told = all.contains("[✓] Build the ingest service. - It is built.")
            || all.contains("Build the ingest service.\nIt is built.\n");
        assert!(told, "{name}\n{all}");
    }
}

/// A summary that has nothing to say is none: what it would stand for is hidden with a mark.
// covers: A-SUM
#[test]
fn no_summary_is_without_content() {
    for profile in Profile::all() {
        let name = profile.name.clone();
        let mut session = session(profile, 1_500);
        for n in 0..80 {
            // Nobody says a word, and nothing is done.
            session.push(Message::user("…"));
            session.push(Message::new(Role::Assistant, vec![Block::text("")]));
            if n % 3 == 0 {
                session.push(Message::assistant("- - - ".repeat(40)));
            }
            ready(&mut session);
        }
        for summary in summaries(&session) {
            let headings = |line: &&str| line.starts_with(['#', '<', '⟦']) || line.starts_with("*(");
            let says = summary.lines().filter(|line| !headings(line) && !line.trim().is_empty());
            let says: Vec<&str> =
                says.filter(|line| !line.contains("none") && !line.contains("<goal>")).collect();
            assert!(!says.is_empty(), "{name}\n{summary}");
        }
    }
}

/// A turn that ends with a picture is answered by it, not by words that went long before.
// covers: S-10
#[test]
fn an_answer_may_have_no_words() {
    for profile in Profile::all() {
        let name = profile.name.clone();
        let mut session = session(profile, 3_000);
        session.push(Message::user("Draw the plan."));
        let look = Block::call("look", "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap());
        session.push(Message::new(Role::Assistant, vec![Block::text("I look first."), look]));
        session.push(Message::result("look", "pub mod plan;"));
        for n in 0..30 {
            step(&mut session, n, 12);
            ready(&mut session);
        }
        let source = Json::new(r#"{"data":"iVBORw0KGgo"}"#).unwrap();
        let picture = longhaul::conversation::Image { source, size: None, extra: Extra::NONE };
        session.push(Message::new(Role::Assistant, vec![Block::Image(picture)]));
        ready(&mut session);
        session.push(Message::user("Go on."));
        for n in 30..60 {
            step(&mut session, n, 12);
            ready(&mut session);
        }
        let all = text(&session);
        assert!(all.contains("[✓] Draw the plan. - …"), "{name}\n{all}");
        assert!(!all.contains("Draw the plan. - I look first."), "{name}\n{all}");
    }
}

/// What must be said of requests that were answered is not gone: more goes in its place.
// covers: S-5 S-11 T-L3
#[test]
fn what_is_said_of_answers_takes_no_room_from_the_limits() {
    let long = |n: usize, words: usize| format!("Part {n} {}", "looks green ".repeat(words));
    let mut transform = session(Profile::transform(), 6_000);
    for n in 0..120 {
        transform
            .push(Message::user(format!("What does part {n} of the machine look like, and why is it so?")));
        transform.push(Message::assistant(long(n, 20)));
        transform.push(Message::user("Go on."));
        ready(&mut transform);
        let (size, budget) = (transform.size().tokens, transform.budget());
        assert!(size <= budget.target, "{n} {size} {budget:?}");
    }
    // All answers of many rounds are in one summary, and the questions beside it.
    let mut events = session(only(Profile::progressive(), "key-events"), 6_000);
    for n in 0..60 {
        events.push(Message::user(format!("What does part {n} of the machine look like, and why is it so?")));
        events.push(Message::assistant(long(n, 40)));
    }
    events.push(Message::user("Go on."));
    ready(&mut events);
    assert_eq!(strategies(&events), ["key-events", "hide-old"]);
}

/// Of several messages before one answer each is answered by it: none stands as open.
// covers: S-10 A-SUM
#[test]
fn several_messages_before_an_answer_are_answered_by_it() {
    for mut profile in Profile::all() {
        let name = profile.name.clone();
        // Or `archive` leaves them all alone.
        profile.constants.min_retain_rounds = 1;
        let mut session = session(profile, 3_000);
        session.push(Message::user("Fix the parser of dates."));
        session.push(Message::user("And mind the tests."));
        session.push(Message::assistant("It is fixed."));
        for n in 0..30 {
            round(&mut session, n, 12);
            session.push(Message::user("Go on."));
            session.compact_now();
            ready(&mut session);
            session.push(Message::assistant("I do."));
        }
        let all = text(&session);
        assert!(all.contains("[✓] Fix the parser of dates. - It is fixed."), "{name}\n{all}");
        for open in ["Not Answered", "Open: Fix", "Open: And", "<remaining>\n- Fix", "### Remaining\n* Fix"] {
            assert!(!all.contains(open), "{name} {open}\n{all}");
        }
    }
}

/// No summary says of finished turns that the task goes on, and none of running steps that it is finished.
// covers: S-6
#[test]
fn a_summary_says_whether_its_turns_have_ended() {
    for profile in [Profile::longhaul(), Profile::archive(), Profile::progressive()] {
        let name = profile.name.clone();
        let mut finished = rounds(profile.clone(), 4_000, 40, 12);
        ready(&mut finished);
        assert!(!text(&finished).contains("the task goes on"), "{name}\n{}", text(&finished));
        assert!(finished.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()), "{name}");
        let mut running = session(profile, 4_000);
        running.push(Message::user("Fix it."));
        for n in 0..40 {
            step(&mut running, n, 12);
            ready(&mut running);
        }
        let all = text(&running);
        assert!(
            all.contains("the task goes on") && !all.contains("## Earlier work, finished"),
            "{name}\n{all}"
        );
    }
}
