//! Project rules: where they stand, and what becomes of them when their file changes.

use super::*;
use longhaul::{Frame, Time};

/// A session that was sent once, with these files of rules.
fn begun(profile: Profile, files: &[(&str, &str)]) -> Session {
    let mut session = session(profile, 20_000);
    session.push(Message::system("You are an agent."));
    for (path, text) in files {
        session.set_rules(*path, Some(text));
    }
    (0..30).for_each(|n| round(&mut session, n, 10));
    session.push(Message::user("Go on."));
    ready(&mut session);
    session
}

/// A call that takes nothing from the history.
fn called(session: &mut Session) {
    session.push(Message::assistant("I go on."));
    session.push(Message::user("And on."));
    ready(session);
}

/// The rules that stand before the history.
fn before_history(session: &Session) -> String {
    let part = session.view().parts().iter().find(|part| part.source == Source::Rules);
    part.map(|part| shown(&part.message)).unwrap_or_default()
}

fn tail(session: &Session) -> String {
    session.view().tail().map(|tail| shown(&tail.message)).unwrap_or_default()
}

/// All that was sent is there still, byte for byte, and the next request extends it.
fn extends(session: &Session, before: &[String]) {
    assert_eq!(parts(session)[..before.len()], *before);
    assert!(!session.sent().unwrap().broke);
}

const OLD: &str = "<rules name=\"CODE_LAW.md\">\nNever use tabs.\n</rules>";
const NEW: &str = "<rules name=\"CODE_LAW.md\">\nNever use spaces.\n</rules>";

// covers: A-LAW A-LAYERS
#[test]
fn changed_rules_stand_in_the_tail_until_an_edit_breaks_the_prefix() {
    for profile in Profile::all() {
        // A fold that pays back would come when it comes.
        let profile = Profile { dial: None, ..profile };
        let mut session = begun(profile, &[("CODE_LAW.md", "Never use tabs.")]);
        assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), (OLD, ""));
        let sent = parts(&session);
        let note = usize::from(session.profile().system_note().is_some());
        assert_eq!((sent[0].as_str(), sent[1 + note].as_str()), ("You are an agent.", OLD));
        session.set_rules("CODE_LAW.md", Some("Never use spaces."));
        for _ in 0..3 {
            // At the next build, and for as long as nothing else changes what was sent.
            called(&mut session);
            extends(&session, &sent);
            assert_eq!(
                tail(&session),
                format!("(These rules replace the rules of CODE_LAW.md above.)\n{NEW}")
            );
            assert_eq!(text(&reload(&session)), text(&session));
        }
        session.compact_now();
        ready(&mut session);
        assert!(session.sent().unwrap().broke, "{}", session.profile().name);
        assert_eq!((before_history(&session).as_str(), tail(&session).contains("<rules")), (NEW, false));
        assert!(!text(&session).contains("Never use tabs.") && !text(&session).contains("replace the rules"));
        assert_eq!(text(&reload(&session)), text(&session));
        // And there they stay.
        let sent = parts(&session);
        called(&mut session);
        extends(&session, &sent);
    }
}

// covers: A-LAW
#[test]
fn a_digest_of_what_was_sent_breaks_the_prefix_and_one_on_entry_does_not() {
    let mut session = begun(Profile::transform(), &[("CODE_LAW.md", "Never use tabs.")]);
    session.set_rules("CODE_LAW.md", Some("Never use spaces."));
    session.set_window(Tokens(200_000));
    // It enters cut, and nothing before it changes.
    for n in 100..106 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        assert!(text(&session).contains("left out; recall") && !session.sent().unwrap().broke, "{n}");
        assert_eq!(before_history(&session), OLD, "{n}");
    }
    // With the seventh result the oldest one becomes a digest.
    step(&mut session, 106, 20);
    ready(&mut session);
    assert_eq!(strategies(&session), ["newest-results"]);
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), (NEW, ""));
}

// covers: A-LAW
#[test]
fn rules_that_were_taken_back_leave_with_the_next_break() {
    let mut session = begun(Profile::archive(), &[("CODE_LAW.md", "Never use tabs.")]);
    let sent = parts(&session);
    session.set_rules("CODE_LAW.md", None);
    called(&mut session);
    extends(&session, &sent);
    assert_eq!(
        tail(&session),
        "<rules name=\"CODE_LAW.md\">\n(These rules are no longer in force.)\n</rules>"
    );
    session.compact_now();
    ready(&mut session);
    assert!(!text(&session).contains("rules"), "{}", text(&session));
    assert!(session.view().parts().iter().all(|part| part.source != Source::Rules));
    assert_eq!(text(&reload(&session)), text(&session));
    // A file that comes back is a new one.
    session.set_rules("CODE_LAW.md", Some("Never use spaces."));
    called(&mut session);
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), ("", NEW));
}

// covers: A-LAW
#[test]
fn a_file_that_appears_later_moves_before_the_history_with_the_next_break() {
    let mut session = begun(Profile::archive(), &[]);
    let sent = parts(&session);
    session.set_rules("CODE_LAW.md", Some("Never use spaces."));
    called(&mut session);
    extends(&session, &sent);
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), ("", NEW));
    session.compact_now();
    ready(&mut session);
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), (NEW, ""));
    assert_eq!(parts(&session)[..2], ["You are an agent.", NEW]);
}

// covers: A-LAW
#[test]
fn of_several_files_only_what_changed_stands_in_the_tail() {
    let files =
        [("CODE_LAW.md", "Never use tabs."), ("AGENTS.md", "Be brief. Be kind."), ("CLAUDE.md", "Ask.")];
    let mut session = begun(Profile::archive(), &files);
    // A text that is a part of the one before is another text.
    session.set_rules("AGENTS.md", Some("Be brief."));
    session.set_rules("CODE_LAW.md", Some("Never use spaces."));
    session.set_rules("MORE.md", Some("Be quick."));
    called(&mut session);
    assert_eq!(
        tail(&session),
        format!(
            "(These rules replace the rules of CODE_LAW.md above.)\n{NEW}\n\
             (These rules replace the rules of AGENTS.md above.)\n<rules name=\"AGENTS.md\">\nBe brief.\n</rules>\n\
             <rules name=\"MORE.md\">\nBe quick.\n</rules>"
        )
    );
    // What is as it was again need not be said.
    session.set_rules("CODE_LAW.md", Some("Never use tabs."));
    session.set_rules("CLAUDE.md", None);
    called(&mut session);
    assert!(!tail(&session).contains("CODE_LAW.md") && tail(&session).contains("CLAUDE.md"));
    session.compact_now();
    ready(&mut session);
    let block = |path: &str, text: &str| format!("<rules name=\"{path}\">\n{text}\n</rules>");
    let all = [
        block("CODE_LAW.md", "Never use tabs."),
        block("AGENTS.md", "Be brief."),
        block("MORE.md", "Be quick."),
    ];
    assert_eq!((before_history(&session), tail(&session).as_str()), (all.join("\n"), ""));
}

// covers: A-LAW
#[test]
fn rules_are_written_anew_where_nothing_of_the_prefix_is_cached() {
    let at = |seconds: i64| Some(Time(seconds * 1_000_000));
    let changed = || {
        let mut session = begun(Profile::archive(), &[("CODE_LAW.md", "Never use tabs.")]);
        session.set_cache_lifetime(300);
        session.push(Message::assistant("I go on."));
        session.prepare(at(1_000)).unwrap();
        session.set_rules("CODE_LAW.md", Some("Never use spaces."));
        session.push(Message::user("And on."));
        session
    };
    // Its time is not over, and then it is.
    let mut session = changed();
    session.prepare(at(1_300)).unwrap();
    assert_eq!(before_history(&session), OLD);
    session.push(Message::assistant("I go on."));
    session.prepare(at(1_601)).unwrap();
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), (NEW, ""));
    // Another system prompt stands before it.
    let mut session = changed();
    session.set_frame(Frame { system: vec![Block::text("Be quick.")], ..Frame::default() });
    session.prepare(at(1_001)).unwrap();
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), (NEW, ""));
    // Another model has seen nothing.
    let mut session = changed();
    session.switch(Model { name: "other".into(), ..model(200_000) }, Seals::Engine);
    session.prepare(at(1_001)).unwrap();
    assert_eq!((before_history(&session).as_str(), tail(&session).as_str()), (NEW, ""));
}

// covers: A-LAW
#[test]
fn rules_that_look_like_others_are_shown_once() {
    let quoting =
        "Write rules so:\n<rules name=\"AGENTS.md\">\nBe brief.\n</rules>\n<rules name=\"X\">\n</rules>";
    let mut session = begun(Profile::archive(), &[("CODE_LAW.md", quoting), ("AGENTS.md", "Be brief.")]);
    assert_eq!(tail(&session), "");
    session.compact_now();
    ready(&mut session);
    assert_eq!((tail(&session).as_str(), text(&session).matches("Write rules so:").count()), ("", 1));
}

// covers: A-LAW
#[test]
fn both_texts_need_not_fit_at_once() {
    let mut session = session(Profile::archive(), 4_000);
    session.set_rules("CODE_LAW.md", Some(&"Never use tabs. ".repeat(400)));
    session.push(Message::user("Go on."));
    ready(&mut session);
    session.set_rules("CODE_LAW.md", Some(&"Never use spaces. ".repeat(380)));
    session.push(Message::assistant("I go on."));
    session.push(Message::user("And on. ".repeat(120)));
    ready(&mut session);
    assert!(!text(&session).contains("tabs") && before_history(&session).contains("spaces"));
    assert!(strategies(&session).is_empty(), "{:?}", strategies(&session));
}
