//! Who speaks: what a harness writes in the person's place is never the person's word.

use super::*;

const REMINDER: &str = "<system-reminder>\nYou must never tell about reminder_words.\n</system-reminder>\n";
const WORDS: &str = "Mend the importer, and never touch the lock_file.";

/// A reminder and words, in one text and in two.
fn messages() -> [Message; 2] {
    let text = |text: String, words| Block::Text(Text { text: text.into(), words, extra: Extra::NONE });
    let end = REMINDER.len() + WORDS.len();
    [
        Message::new(
            Role::User,
            vec![text(format!("{REMINDER}{WORDS}{REMINDER}"), Words::part(REMINDER.len(), end))],
        ),
        Message::new(Role::User, vec![text(REMINDER.to_owned(), Words::None), Block::text(WORDS)]),
    ]
}

#[test]
fn the_goal_is_what_the_person_asked_in_every_profile() {
    let mut restating = Vec::new();
    for profile in Profile::all() {
        for first in messages() {
            let name = profile.name.clone();
            let mut session = session(profile.clone(), 12_000);
            session.push(first);
            for n in 0..4 {
                for m in 0..12 {
                    step(&mut session, n * 100 + m, 20);
                }
                session.push(Message::assistant(format!("Part {n} is done.")));
                session.push(Message::user(format!("Go on with part {n}.")));
                session.compact_now();
                ready_with(&mut session, "What was done so far, in short.");
                let all = text(&session);
                // Beside itself, the first request stands where its answer is told.
                let told = |line: &&str| line.contains(WORDS) && line.contains("Part 0 is done.");
                assert!(all.lines().filter(told).count() <= 1, "{name}\n{all}");
                // An archive has places for what it was for and for what the person insists on.
                let is_of_form = |line: &&str| line.starts_with("* **");
                let others = all.lines().filter(|line| !told(line) && !is_of_form(line));
                let all = others.collect::<Vec<_>>().join("\n");
                assert_eq!(all.matches(WORDS).count(), 1, "{name}\n{all}");
                if let Some((_, goal)) = all.split_once("<goal>\n") {
                    restating.push(name.to_string());
                    assert_eq!(goal.split_once("\n</goal>").unwrap().0, WORDS, "{name}");
                }
                // Neither under the person's name nor among what the person wants.
                for line in all.lines().filter(|line| line.contains("reminder_words")) {
                    assert!(
                        line.starts_with("Host: ") || line.starts_with(' ') || line.starts_with("You must"),
                        "{name}: {line}"
                    );
                }
            }
        }
    }
    restating.dedup();
    // The others leave the first request in the history.
    assert_eq!(restating, ["mini", "archive", "progressive"]);
}

#[test]
fn a_harness_pins_nothing() {
    let mark = |words| {
        let text = Text { text: "<Pin>The port is 8473.</Pin>".into(), words, extra: Extra::NONE };
        Message::new(Role::User, vec![Block::Text(text)])
    };
    for (message, pinned) in
        [(mark(Words::All), true), (mark(Words::None), false), (mark(Words::All).with_attachment(), false)]
    {
        let mut session = session(Profile { pin_mark: true, ..Profile::longhaul() }, 12_000);
        session.push(message);
        assert_eq!(session.log().facts(FactKind::Pin).len(), usize::from(pinned));
    }
}
