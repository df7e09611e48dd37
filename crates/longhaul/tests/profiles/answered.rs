//! A question that was answered never stands without its answer, or a word that it is done.

use super::*;

/// Rounds that stand in the view as open: their question is shown as it came, and what was answered is
/// nowhere.
fn open_rounds(session: &Session, rounds: usize) -> Vec<usize> {
    let all = text(session);
    let is_shown = |n: usize| {
        let question = format!("Question number {n}?");
        session
            .outgoing()
            .messages()
            .any(|message| message.role() == Role::User && message.texts().any(|text| text == question))
    };
    (0..rounds).filter(|n| is_shown(*n) && !all.contains(&format!("Answer number {n}."))).collect()
}

/// Profiles that fold. What `transform` hides has no words of its own.
#[test]
fn an_answered_question_does_not_stand_alone() {
    for profile in [Profile::longhaul(), Profile::mini(), Profile::archive(), Profile::progressive()] {
        for lines in [20, 60] {
            let name = profile.name.clone();
            let mut session = session(profile.clone(), 8_000);
            for n in 0..60 {
                round(&mut session, n, lines);
                ready_with(&mut session, "What was done so far, in short.");
                let open = open_rounds(&session, n + 1);
                assert_eq!(open, [0; 0], "{name}, {lines} lines, round {n}\n{}", text(&session));
            }
            assert!(session.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()), "{name}");
        }
    }
}

/// The first request stays where it is in `longhaul`; what came of it is told, ten folds later too.
#[test]
fn the_first_request_is_said_to_be_done() {
    for profile in [Profile::longhaul(), Profile::mini(), Profile::archive(), Profile::progressive()] {
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
            if n == 0 {
                continue;
            }
            let all = text(&session);
            let told = all
                .lines()
                .find(|line| line.contains("Build the ingest") && line.contains("Part 0 is done."));
            assert!(told.is_some(), "{name} after {n}\n{all}");
            // Nothing that was done stands as open.
            let open = all
                .split_once("### Remaining")
                .map_or("", |(_, open)| open.split("###").next().unwrap_or_default());
            assert!(!open.contains("Build the ingest"), "{name} after {n}\n{all}");
        }
    }
}
