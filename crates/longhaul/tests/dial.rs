//! The default profile: folds that pay back stand in a chain, keep what the work has changed in sight, and hold
//! through stores, forks, undo and redo.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{model, reload, saved, sent, text};
use longhaul::edits::{Audited, EditKind};
use longhaul::{
    Block, Dial, EditId, Json, Message, Meter, Position, Prepared, Profile, RecallPart, Role, Session, Time,
    Tokens, Why,
};

fn begun(profile: Profile, window: u64) -> Session {
    let mut session = Session::new(profile, model("m", window)).with_meter(Meter::neutral());
    session.push(Message::user("Mend the parser, file by file."));
    session
}

fn ready(session: &mut Session) {
    assert!(matches!(session.prepare(None).unwrap(), Prepared::Send(_)));
}

/// A step that reads or changes a file of its own, or runs a command that fails.
fn step(session: &mut Session, n: usize) {
    let id = format!("call_{n}");
    let path = format!("/project/src/part_{n}/file_{n}.rs");
    let (tool, arguments) = match n % 4 {
        1 => (
            "Edit",
            serde_json::json!({ "file_path": path, "old_string": format!("old_name_{n}();"), "new_string": format!("new_name_{n}();") }),
        ),
        3 => ("Bash", serde_json::json!({ "command": format!("cargo test --package part_{n}") })),
        _ => ("Read", serde_json::json!({ "file_path": path })),
    };
    let call = Block::call(id.as_str(), tool, Json::new(arguments.to_string()).unwrap());
    session.push(Message::new(Role::Assistant, vec![Block::text(format!("I look at part_{n}.")), call]));
    let said = match n % 4 {
        1 => format!("The file {path} has been updated."),
        3 => format!("error[E{:04}]: cannot find value `value_{n}`\nexit code: 101\n", n),
        _ => (0..40).map(|line| format!("    let value_{n}_{line} = parse_part({line}, {n});\n")).collect(),
    };
    session.push(Message::result(id, said));
}

fn run(profile: Profile, window: u64, steps: usize) -> Session {
    let mut session = begun(profile, window);
    for n in 0..steps {
        ready(&mut session);
        step(&mut session, n);
    }
    ready(&mut session);
    session
}

fn folds(session: &Session) -> Vec<(EditId, Why)> {
    let edits = session.ledger().edits().filter(|(edit, _)| matches!(edit.kind, EditKind::Fold { .. }));
    edits.map(|(edit, _)| (edit.id, edit.why)).collect()
}

/// The texts of folds that the view shows, in order.
fn shown_folds(session: &Session) -> Vec<String> {
    let parts = session.view().parts().iter().filter(|part| matches!(part.source, longhaul::Source::Edit(_)));
    parts.map(|part| part.message.texts().collect::<String>()).collect()
}

#[test]
fn a_fold_is_made_when_carrying_has_cost_more() {
    let session = run(Profile::longhaul(), 200_000, 120);
    let folds = folds(&session);
    assert!(folds.len() >= 2 && folds.iter().all(|(_, why)| *why == Why::PaysBack), "{folds:?}");
    assert!(session.size().tokens < session.budget().target, "long before any limit");
    // Without a dial only limits start a compaction.
    let limits = run(Profile { dial: None, ..Profile::longhaul() }, 200_000, 120);
    assert_eq!(limits.ledger().edits().count(), 0);
}

#[test]
fn the_dial_decides_how_much_is_kept() {
    let size = |dial| {
        let session = run(Profile { dial: Some(dial), ..Profile::longhaul() }, 200_000, 160);
        shown_folds(&session).iter().map(String::len).sum::<usize>()
    };
    let sizes = [Dial::new(1), Dial::THRIFTY, Dial::new(100)].map(size);
    assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{sizes:?}");
}

#[test]
fn earlier_folds_stay_byte_for_byte_until_taking_them_in_pays() {
    let mut session = begun(Profile::longhaul(), 200_000);
    let (mut kept, mut before) = (0, Vec::new());
    for n in 0..200 {
        ready(&mut session);
        let now = shown_folds(&session);
        if now.len() > before.len() && !before.is_empty() {
            assert_eq!(now[..before.len()], before, "a new fold stands behind the others");
            kept += 1;
        }
        before = now;
        step(&mut session, n);
    }
    assert!(kept > 0, "{before:?}");
}

#[test]
fn the_newest_steps_stay_whole() {
    let session = run(Profile::longhaul(), 200_000, 120);
    let shown = text(&session);
    for n in (120 - 7..120).filter(|n| n % 2 == 0) {
        assert!((0..40).all(|line| shown.contains(&format!("let value_{n}_{line} ="))), "{n}");
    }
}

/// Every file that was changed and every command that failed last is named, at every call.
#[test]
fn what_the_work_changed_and_broke_is_always_named() {
    for (profile, window) in [(Profile::longhaul(), 200_000), (Profile::thrifty(), 40_000)] {
        let mut session = begun(profile, window);
        for n in 0..160 {
            ready(&mut session);
            let shown = format!("{:?}", sent(&session));
            for before in 0..n {
                let name = match before % 4 {
                    1 => format!("/project/src/part_{before}/file_{before}.rs"),
                    3 => format!("cargo test --package part_{before}"),
                    _ => continue,
                };
                assert!(shown.contains(&name), "call {n}: {name} is not named");
            }
            step(&mut session, n);
        }
        assert!(!folds(&session).is_empty());
    }
}

#[test]
fn the_same_request_again_is_never_another() {
    let mut session = begun(Profile::longhaul(), 200_000);
    for n in 0..100 {
        ready(&mut session);
        let (bytes, edits) = (sent(&session), session.ledger().edits().count());
        // A client may send the same request again and again.
        for _ in 0..3 {
            ready(&mut session);
        }
        let mut loaded = reload(&session);
        ready(&mut loaded);
        assert_eq!((sent(&session), session.ledger().edits().count()), (bytes, edits), "{n}");
        assert_eq!(sent(&loaded), sent(&session), "{n}");
        step(&mut session, n);
    }
}

#[test]
fn chains_hold_through_store_fork_undo_and_redo() {
    let mut session = run(Profile::longhaul(), 200_000, 160);
    let mut audited = Audited::default();
    assert_eq!(session.audit_again(&mut audited), []);
    // A loaded session goes on alike.
    let mut loaded = reload(&session);
    for n in 160..260 {
        for session in [&mut session, &mut loaded] {
            step(session, n);
            ready(session);
        }
        assert_eq!(sent(&session), sent(&loaded), "{n}");
    }
    assert_eq!(saved(&session), saved(&loaded));
    // A fork at any place is a session without violations.
    for end in [40, 120, 300] {
        let mut fork = session.fork(Position(end)).unwrap();
        ready(&mut fork);
        assert_eq!(fork.audit_again(&mut Audited::default()), []);
    }
    // The last fold is taken back and made again.
    let (last, _) = folds(&session).pop().unwrap();
    let before = sent(&session);
    session.undo(last).unwrap();
    ready(&mut session);
    assert!(!session.ledger().is_active(last) && session.audit_again(&mut Audited::default()).is_empty());
    session.redo(last).unwrap();
    ready(&mut session);
    assert_eq!(sent(&session), before);
    // All that was taken out is recalled, from folds of folds too.
    for (id, _) in folds(&session) {
        let handle = session.ledger().get(id).unwrap().originals[0].short();
        assert!(session.recall(&handle, &RecallPart::Whole).unwrap().contains("I look at part_"));
    }
}

/// When the cache is cold, what is there is folded at once, unless it is less than a fold by price takes at least.
#[test]
fn a_cold_moment_folds_what_is_there() {
    let folds_when_cold = |window: u64| {
        let mut session = begun(Profile::longhaul(), window);
        let at = |minute: i64| Some(Time(minute * 60_000_000));
        // Few calls: what is there has not been carried long enough for a fold by price.
        for n in 0..42 {
            if n % 14 == 0 {
                assert!(matches!(session.prepare(at(0)).unwrap(), Prepared::Send(_)));
            }
            step(&mut session, n);
        }
        assert!(matches!(session.prepare(at(0)).unwrap(), Prepared::Send(_)));
        assert_eq!(folds(&session), []);
        step(&mut session, 42);
        assert!(matches!(session.prepare(at(30)).unwrap(), Prepared::Send(_)));
        folds(&session)
    };
    let found = folds_when_cold(30_000);
    assert!(matches!(found[..], [(_, Why::Cold)]), "{found:?}");
    assert_eq!(folds_when_cold(200_000), []);
}

#[test]
fn summaries_have_their_share_of_a_small_window() {
    let mut session = begun(Profile::safe(), 40_000);
    for n in 0..200 {
        ready(&mut session);
        assert!(session.size().tokens <= session.budget().hard);
        let folds: usize = shown_folds(&session).iter().map(String::len).sum();
        assert!(folds / 4 < 40_000 * 45 / 100, "{n}: {folds} bytes of summaries");
        step(&mut session, n);
    }
}

#[test]
fn results_enter_whole_unless_the_dial_is_thrifty() {
    let mut whole = begun(Profile::longhaul(), 200_000);
    let mut session = begun(Profile::thrifty(), 200_000);
    let enter = |session: &mut Session, id: &str, tool: &str, said: String| {
        let arguments =
            if tool == "Bash" { r#"{"command":"./run"}"# } else { r#"{"file_path":"/project/a.rs"}"# };
        let call = Block::call(id, tool, Json::new(arguments).unwrap());
        session.push(Message::new(Role::Assistant, vec![call]));
        session.push(Message::result(id, said));
        ready(session);
    };
    let log: String = (0..800).map(|n| format!("2026-03-02 INFO tick {n} of the clock\n")).collect();
    let log = log.replace("tick 400 of", "tick 400 ERROR disk full of");
    enter(&mut whole, "a", "Bash", log.clone());
    assert!(text(&whole).contains(&log) && whole.ledger().edits().count() == 0);
    enter(&mut session, "a", "Bash", log.clone());
    let shown = text(&session);
    assert!(shown.contains("ERROR disk full") && shown.len() < 9_500, "{}", shown.len());
    let edit = session.ledger().edits().last().unwrap().0.clone();
    assert_eq!(session.recall(&edit.originals[0].short(), &RecallPart::Whole).unwrap(), log);
    let source: String =
        (0..700).map(|n| format!("pub fn step_{n}(input: &str) -> usize {{ {n} }}\n")).collect();
    enter(&mut session, "b", "Read", source.clone());
    enter(&mut session, "c", "Bash", source.clone());
    assert_eq!(text(&session).matches(&source).count(), 2);
    assert!(session.size().tokens > Tokens(10_000));
}
