//! Profile `progressive`, seed 004: when a full summary is made, what stands in it, and what is kept
//! whatever happens.

use longhaul::session::journal::{Compaction, Entry};

use super::*;

/// The words of a text: what stands between spaces, and each Chinese character.
fn words(text: &str) -> usize {
    let chinese = |c: char| ('一'..='龥').contains(&c);
    let alone = text.chars().filter(|c| chinese(*c)).count();
    let rest = text.split(|c: char| c.is_whitespace() || chinese(c) || "，。：；、".contains(c));
    alone + rest.filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// The compactions that began.
fn began(session: &Session) -> Vec<Compaction> {
    let began = session.journal().since(longhaul::session::journal::Cursor(0));
    began
        .filter_map(|entry| match entry {
            Entry::CompactionBegan(compaction) => Some(compaction.clone()),
            _ => None,
        })
        .collect()
}

/// A session whose next request has exactly so many tokens.
fn of_size(window: u64, tokens: u64) -> Session {
    let build = |padding: usize| {
        let mut session = session(Profile::progressive(), window);
        session.push(Message::user("Read all."));
        for n in 0..12 {
            step(&mut session, n, 10);
        }
        session.push(Message::assistant("x".repeat(padding)));
        session.push(Message::user("On."));
        session
    };
    // Without a limit it is counted and not compacted.
    let size = |padding: usize| {
        let mut session = build(padding);
        session.set_window(Tokens(1 << 30));
        ready(&mut session);
        session.size().tokens.0
    };
    let padding = (0..8).fold(4_000, |padding, _| padding + 4 * tokens as usize - 4 * size(padding) as usize);
    assert_eq!(size(padding), tokens);
    build(padding)
}

// covers: P-TRIG
#[test]
fn less_than_a_quarter_left_is_a_trigger_and_a_quarter_is_not() {
    for (window, tokens, fires) in [
        (10_000, 7_500, false),
        (10_000, 7_501, true),
        (10_000, 10_000, true),
        (20_000, 15_000, false),
        (20_000, 15_001, true),
    ] {
        let mut session = of_size(window, tokens);
        ready(&mut session);
        assert_eq!(!began(&session).is_empty(), fires, "{tokens} of {window}");
        assert!(began(&session).iter().all(|compaction| !compaction.full));
    }
}

// covers: P-TRIG
#[test]
fn two_hundred_calls_since_the_last_full_summary_make_another() {
    let mut session = session(Profile::progressive(), 1_000_000);
    session.push(Message::user("Talk to me."));
    let mut at = Vec::new();
    for n in 0..520 {
        let made = began(&session).len();
        ready(&mut session);
        at.extend((began(&session).len() > made).then_some(n));
        session.push(Message::assistant(format!("Word {n} of a long talk, which goes on and on.")));
        session.push(Message::user("More."));
        // A wish starts the count anew.
        if n == 249 {
            session.compact_now();
        }
    }
    assert_eq!(at, [200, 250, 450]);
    assert!(began(&session).iter().all(|compaction| compaction.full));
}

// covers: P-TRIG P-FULL
#[test]
fn a_full_summary_at_the_end_of_the_ladder_starts_the_count_anew() {
    let mut profile = only(Profile::progressive(), "full-summary");
    profile.triggers.calls = 5;
    let mut session = session(profile, 10_000);
    session.push(Message::user("Read all."));
    let mut at = Vec::new();
    for n in 0..12 {
        // One result fills the window.
        step(&mut session, n, if n == 3 { 760 } else { 4 });
        session.push(Message::assistant("It is read."));
        session.push(Message::user("On."));
        let made = began(&session).len();
        ready(&mut session);
        at.extend(began(&session)[made..].iter().map(|compaction| (n, compaction.full)));
    }
    assert_eq!(at, [(3, false), (8, true)]);
}

/// A conversation, then this message of a person, and the next request.
fn told(last: Message) -> Session {
    let mut session = session(Profile::progressive(), 200_000);
    for n in 0..20 {
        round(&mut session, n, 4);
    }
    session.push(last);
    ready(&mut session);
    session
}

// covers: P-TRIG P-FULL
#[test]
fn a_person_asks_for_a_full_summary_by_a_mark_in_their_own_words() {
    let asked = told(Message::user("<Summary> Then go on with part two."));
    assert_eq!(strategies(&asked), ["full-summary"]);
    assert!(asked.ledger().edits().all(|(edit, _)| edit.why == Why::Asked));
    // The turn goes on: what was asked beside the mark stands as it came.
    assert_eq!(parts(&asked).last().unwrap(), "<Summary> Then go on with part two.");
    for other in [
        Message::user("What does `<Summary>` do in React?"),
        Message::user("Fix this:\n```jsx\n<Summary>\n```\nplease"),
        Message::user("Fix this:\n~~~\n<Summary>\n~~~"),
        Message::user("A short summary, please. <summary>"),
        Message::user("<Summary>").with_attachment(),
        Message::result("late", "<Summary>"),
        Message::assistant("<Summary>"),
    ] {
        assert!(strategies(&told(other.clone())).is_empty(), "{other:?}");
    }
    let block = told(Message::user("```\nlet a = 1;\n```\n<Summary>"));
    assert_eq!(strategies(&block), ["full-summary"]);
    // In the other profiles the word is text.
    let mut archive = session(Profile::archive(), 200_000);
    (0..20).for_each(|n| round(&mut archive, n, 4));
    archive.push(Message::user("<Summary> Go on."));
    ready(&mut archive);
    assert!(began(&archive).is_empty());
}

// covers: P-TRIG P-FULL
#[test]
fn mark_and_wish_make_a_full_summary_and_the_turn_goes_on() {
    let mut by_mark = session(Profile::progressive(), 200_000);
    for n in 0..20 {
        round(&mut by_mark, n, 4);
    }
    by_mark.push(Message::user("On."));
    ready(&mut by_mark);
    let said = Block::text("I go on.\n  !!!SUMMARY!!!  \nNow the file.");
    let read = Block::call("next", "Read", Json::new(r#"{"path":"next.rs"}"#).unwrap());
    by_mark.push(Message::new(Role::Assistant, vec![said, read]));
    by_mark.push(Message::result("next", "fn next() {}"));
    ready(&mut by_mark);
    assert_eq!(strategies(&by_mark), ["full-summary"]);
    // The running turn: its input, and its newest step with the result.
    let shown = parts(&by_mark);
    assert_eq!(shown[shown.len() - 3], "On.");
    assert_eq!(shown[shown.len() - 1], "fn next() {}");
    let by_wish = compacted(rounds(Profile::progressive(), 200_000, 20, 4));
    assert_eq!(strategies(&by_wish), ["full-summary"]);
    assert_eq!(began(&by_wish).iter().map(|c| (c.why, c.full)).collect::<Vec<_>>(), [(Why::Asked, true)]);
    // Over the hard limit too, the wish is for a full summary.
    let mut over = of_size(10_000, 9_500);
    over.compact_now();
    ready(&mut over);
    assert_eq!(strategies(&over), ["full-summary"]);
    // It is a setting, not a name.
    let mut profile = Profile::progressive();
    profile.triggers.full_when_asked = false;
    let other = compacted(rounds(profile, 200_000, 20, 4));
    assert_eq!(strategies(&other)[0], "sliding-window");
}

// covers: P-TRIG A-LAYERS
#[test]
fn the_model_is_told_of_its_mark_from_the_first_request_on() {
    let note = Profile::progressive().system_note().unwrap();
    let mut session = session(Profile::progressive(), 200_000);
    session.set_rules("AGENTS.md", Some("Never push."));
    session.push(Message::system("You are an agent."));
    session.push(Message::user("Go."));
    ready(&mut session);
    let head = ["You are an agent.", &note, "<rules name=\"AGENTS.md\">\nNever push.\n</rules>", "Go."];
    assert_eq!(parts(&session), head);
    assert_eq!(session.view().parts()[1].source, Source::Note);
    assert_eq!(session.view().parts()[1].message.role(), Role::System);
    // It is counted, and stays where and what it is.
    let measure = session.view().parts()[1].measure;
    assert_eq!(session.meter().tokens(measure).tokens, Tokens(note.len().div_ceil(4) as u64 + 4));
    let first = session.view().parts()[1].message.clone();
    for n in 0..30 {
        step(&mut session, n, 10);
        ready(&mut session);
    }
    session = compacted(session);
    assert_eq!(*session.view().parts()[1].message, *first);
    assert_eq!(parts(&session)[..3], head[..3]);
    let mut loaded = reload(&session);
    assert_eq!(parts(&loaded), parts(&session));
    ready(&mut loaded);
    assert_eq!(loaded.since(session.cursor()).filter(|e| matches!(e, Entry::NoteShown { .. })).count(), 0);
    // Another profile tells nothing; back again, the same is told.
    let entries = || session.since(longhaul::session::journal::Cursor(0)).cloned().collect::<Vec<_>>();
    let mut other = Session::load(Profile::longhaul(), entries()).unwrap();
    ready(&mut other);
    assert!(!text(&other).contains("!!!SUMMARY!!!"), "{}", text(&other));
    let entries = other.since(longhaul::session::journal::Cursor(0)).cloned().collect::<Vec<_>>();
    let mut back = Session::load(Profile::progressive(), entries).unwrap();
    ready(&mut back);
    assert_eq!(parts(&back)[1], note);
    // No mark, no note.
    let mut profile = Profile::progressive();
    profile.triggers.mark = None;
    let mut silent = super::session(profile, 200_000);
    silent.push(Message::user("Go."));
    ready(&mut silent);
    assert_eq!(parts(&silent), ["Go."]);
}

/// A session with everything that must be kept.
fn with_everything() -> Session {
    let mut session = session(Profile::progressive(), 200_000);
    session.push(Message::user("Build the service."));
    session.push(Message::assistant("It is built."));
    session.push(Message::user("Mind this. <Pin> The port is 8473."));
    session.push(Message::assistant("I do."));
    for n in 0..12 {
        session.remember(format!("m{n}"), format!("memory number {n}"));
    }
    session.set_todos(Some("[>] the client"));
    session.set_git_stat(Some("2 files changed"));
    for n in 0..12 {
        round(&mut session, n, 4);
    }
    session.push(Message::user("Go on."));
    session
}

/// Asserts that these stand in a text, in this order, once each.
fn assert_order(text: &str, order: &[&str]) {
    let places: Vec<usize> = order
        .iter()
        .map(|part| {
            assert_eq!(text.matches(part).count(), 1, "{part}\n{text}");
            text.find(part).unwrap()
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}\n{text}");
}

const ORDER: [&str; 8] = [
    "<goal>\nBuild the service.\n</goal>",
    "<pin name=\"message 3\">\nThe port is 8473.\n</pin>",
    "<memory name=\"m2\">",
    "<memory name=\"m11\">",
    "<todos>\n[>] the client\n</todos>",
    "<git-stat>\n2 files changed\n</git-stat>",
    "## Summary of the conversation so far",
    "### Goals\n* see the goal above\n",
];

fn fold(session: &Session) -> String {
    let part = session.view().parts().iter().rfind(|part| matches!(part.source, Source::Edit(_))).unwrap();
    shown(&part.message)
}

// covers: P-FULL P-KEEP
#[test]
fn a_full_summary_opens_with_what_must_be_kept() {
    let mut session = compacted(with_everything());
    assert_order(&fold(&session), &ORDER);
    assert!(fold(&session).starts_with("⟦To keep, as of this summary:⟧\n<goal>\n"), "{}", fold(&session));
    // At most ten memories, the newest.
    assert_eq!(text(&session).matches("<memory").count(), 10);
    assert!(!text(&session).contains("memory number 1\n"));
    assert!(session.view().tail().is_none());
    // What changes later stands in the tail.
    session.set_todos(Some("[x] the client"));
    session.push(Message::assistant("The client is there."));
    session.push(Message::user("And the docs."));
    ready(&mut session);
    assert_eq!(shown(&session.view().tail().unwrap().message), "<todos>\n[x] the client\n</todos>");
    // The next one says it in front again, as of then.
    let again = compacted(session);
    let order = ORDER
        .map(|part| if part.starts_with("<todos>") { "<todos>\n[x] the client\n</todos>" } else { part });
    assert_order(&text(&again), &order);
    assert!(again.view().tail().is_none());
}

// covers: P-FULL P-KEEP
#[test]
fn what_a_full_summary_restates_is_in_the_view_once_whatever_follows() {
    let mut session = compacted(with_everything());
    let full = session.ledger().next_id();
    for n in 0..60 {
        round(&mut session, n + 100, 4);
    }
    // A lighter strategy takes the full summary in.
    let mut profile = Profile::progressive();
    profile.triggers.full_when_asked = false;
    let entries = session.since(longhaul::session::journal::Cursor(0)).cloned().collect::<Vec<_>>();
    let mut session = Session::load(profile, entries).unwrap();
    session.push(Message::user("Go on."));
    let mut session = compacted(session);
    let newest = session.ledger().edits().last().unwrap().0.clone();
    assert_eq!((&*newest.strategy, newest.id >= full), ("sliding-window", true));
    // It restates what that one did.
    assert!(session.view().tail().is_none(), "{}", text(&session));
    let count = |session: &Session, part: &str| text(session).matches(part).count();
    for part in &ORDER[..6] {
        assert_eq!(count(&session, part), 1, "{part}\n{}", text(&session));
    }
    // Taken back, each is still there once; and made again.
    session.undo(newest.id).unwrap();
    for part in &ORDER[..6] {
        assert_eq!(count(&session, part), 1, "{part}\n{}", text(&session));
    }
    session.redo(newest.id).unwrap();
    ready(&mut session);
    let all: Vec<_> = session.ledger().edits().filter(|(_, on)| *on).map(|(edit, _)| edit.id).collect();
    all.into_iter().rev().for_each(|edit| _ = session.undo(edit));
    assert_eq!(session.audit(), []);
    assert_eq!(count(&session, "[>] the client"), 1);
}

// covers: P-FULL S-10
#[test]
fn the_goal_is_in_front_also_where_an_earlier_summary_had_it() {
    let mut session = session(only(Profile::progressive(), "sliding-window"), 200_000);
    session.push(Message::user("Build the service."));
    for n in 0..20 {
        round(&mut session, n, 4);
    }
    session.push(Message::user("Go on."));
    let mut session = compacted(session);
    assert!(fold(&session).contains("⟦To keep, as of this summary:⟧\n<goal>\nBuild the service."));
    assert!(fold(&session).starts_with("⟦Summary of "), "other folds restate behind: {}", fold(&session));
    for n in 20..30 {
        round(&mut session, n, 4);
    }
    let entries = session.since(longhaul::session::journal::Cursor(0)).cloned().collect::<Vec<_>>();
    let mut session = Session::load(Profile::progressive(), entries).unwrap();
    session.push(Message::user("Go on."));
    let mut session = compacted(session);
    assert_eq!(strategies(&session), ["sliding-window", "full-summary"]);
    assert!(
        fold(&session).starts_with("⟦To keep, as of this summary:⟧\n<goal>\nBuild the service.\n</goal>")
    );
    assert_eq!(text(&session).matches("<goal>\n").count(), 1);
    // A goal that a person sets stands there too.
    session.set_goal("Build the client.");
    session.push(Message::assistant("I begin."));
    session.push(Message::user("Go on."));
    let session = compacted(session);
    assert!(fold(&session).starts_with("⟦To keep, as of this summary:⟧\n<goal>\nBuild the client.\n"));
}

/// A long session of a kind of work, in English or Chinese.
fn long(task: Task, chinese: bool) -> Session {
    let mut session = session(Profile::progressive(), 1_000_000);
    session.set_task(task);
    for n in 0..80 {
        let (ask, answer) = match chinese {
            false => (
                format!("Please never change part {n} of it in any way at all, it is of use to us."),
                format!("I decided to go on to the end of it, as it is on the way to part {n}."),
            ),
            true => (
                format!("请不要修改第{n}部分的公开接口，它对我们很重要。"),
                format!("我决定保留第{n}部分的规则，不采用查表。"),
            ),
        };
        session.push(Message::user(ask));
        session.push(call(&format!("e{n}"), "Edit", &format!(r#"{{"path":"src/a{n}.rs"}}"#)));
        session.push(Message::result(format!("e{n}"), "ok"));
        session.push(Message::assistant(answer));
    }
    session.push(Message::user(if chinese { "继续。" } else { "Go on." }));
    session
}

/// The summary of a fold, without its mark.
fn summary_of(session: &Session) -> String {
    let fold = fold(session);
    let summary = &fold[fold.find("## ").unwrap()..];
    let summary = summary.split("\n⟦Answered already:⟧").next().unwrap().split("\n⟦End ").next().unwrap();
    let summary = summary.split("\n⟦完 ").next().unwrap();
    summary
        .lines()
        .filter(|line| !line.starts_with("⟦Quotes ") && !line.starts_with("⟦引用 "))
        .collect::<Vec<_>>()
        .join("\n")
}

// covers: P-FULL
#[test]
fn a_full_summary_by_code_has_at_most_500_words_and_800_of_code() {
    for chinese in [false, true] {
        let code = words(&summary_of(&compacted(long(Task::Code, chinese))));
        assert!((501..=800).contains(&code), "{code} {chinese}");
        for task in [Task::Analysis, Task::Conversation, Task::Mixed, Task::Unknown] {
            let count = words(&summary_of(&compacted(long(task, chinese))));
            assert!((300..=500).contains(&count), "{count} {task:?} {chinese}");
        }
    }
}

// covers: P-FULL
#[test]
fn a_full_summary_by_a_model_has_at_most_500_words_and_800_of_code() {
    for (task, most, chinese) in [
        (Task::Code, 800, false),
        (Task::Analysis, 500, false),
        (Task::Unknown, 500, true),
        (Task::Code, 800, true),
    ] {
        let ask = || {
            let told = long(task, chinese);
            let mut asking = asking(Profile::progressive(), 1_000_000);
            asking.set_task(task);
            told.log().messages().iter().for_each(|message| _ = asking.push(message.clone()));
            asking.compact_now();
            let job = job(&mut asking);
            (asking, job)
        };
        let head = if chinese {
            "## 至今对话的摘要\n\n### 其他\n* "
        } else {
            "## Summary of the conversation so far\n\n### Also\n* "
        };
        let answer = |count: usize| {
            let word = if chinese { "字" } else { "word " };
            format!("{head}{}", word.repeat(count - words(head)))
        };
        let (mut session, job) = ask();
        let unit = if chinese { "字" } else { "words" };
        let [system, _] = &job.fresh(Tokens(200_000))[0];
        assert!(shown(system).contains(&format!("{most} {unit}")), "{}", shown(system));
        assert!(shown(&job.warm()).contains(&format!("{most} {unit}")));
        let resolved = session.resolve(job.id, Outcome::Summary(answer(most + 1)));
        let Resolved::Again(again, problem) = resolved else { panic!("{resolved:?}") };
        assert_eq!(problem, format!("the summary has {} words, {most} are allowed", most + 1));
        let resolved = session.resolve(again.id, Outcome::Summary(answer(most)));
        assert!(matches!(resolved, Resolved::Folded), "{resolved:?}");
        ready(&mut session);
        assert_eq!(words(&summary_of(&session)), most);
        // What the model leaves over is for the files that were changed, the newest.
        let (mut session, job) = ask();
        session.resolve(job.id, Outcome::Summary(answer(most - 20)));
        ready(&mut session);
        let summary = summary_of(&session);
        assert!(
            words(&summary) <= most && summary.contains("`src/a79.rs`"),
            "{}\n{summary}",
            words(&summary)
        );
    }
}

// covers: P-FULL S-12
#[test]
fn a_full_summary_that_no_model_writes_is_written_by_code() {
    let mut session = asking(Profile::progressive(), 200_000);
    (0..20).for_each(|n| round(&mut session, n, 4));
    session.push(Message::user("Go on."));
    session.compact_now();
    let first = job(&mut session);
    assert!(matches!(session.resolve(first.id, Outcome::TimedOut), Resolved::Extracted(_)));
    ready(&mut session);
    assert_eq!(strategies(&session), ["full-summary"]);
}

// covers: P-PIN
#[test]
fn where_nobody_answers_the_whole_task_is_a_pin() {
    let task = "Build the service.\nThe port is 8473, and no other.";
    let pinned = |session: &Session| session.log().fact(FactKind::Pin, "message 1").map(str::to_owned);
    let mut session = session(Profile::progressive(), 200_000);
    session.set_unattended(true);
    session.push(Message::user(task));
    assert_eq!(pinned(&session).as_deref(), Some(task));
    session.push(Message::assistant("It is built."));
    session.push(Message::user("Now the client."));
    assert_eq!(session.log().facts(FactKind::Pin).len(), 1);
    for n in 0..12 {
        round(&mut session, n, 4);
    }
    session.push(Message::user("Go on."));
    let mut session = compacted(session);
    // It stands there once, as the goal.
    assert_eq!(text(&session).matches(task).count(), 1, "{}", text(&session));
    // When another goal is set, the task is still there, word for word.
    session.set_goal("Build the client.");
    session.push(Message::assistant("Yes."));
    session.push(Message::user("Go on."));
    let session = compacted(session);
    assert_eq!(text(&session).matches(&format!("<pin name=\"message 1\">\n{task}\n</pin>")).count(), 1);
    assert!(reload(&session).log().fact(FactKind::Pin, "message 1").is_some());
    // Said later, it holds for the first request too; a run with a person pins nothing.
    let mut later = super::session(Profile::progressive(), 200_000);
    later.push(Message::user(task));
    assert_eq!(pinned(&later), None);
    later.set_unattended(true);
    assert_eq!(pinned(&later).as_deref(), Some(task));
    // Profiles that heed no pin keep it as the goal alone.
    let mut other = super::session(Profile::longhaul(), 200_000);
    other.set_unattended(true);
    other.push(Message::user(task));
    assert_eq!(pinned(&other), None);
}

// covers: P-KEEP
#[test]
fn whatever_the_strategy_what_must_be_kept_is_there() {
    for strategy in ["sliding-window", "importance", "key-events", "increments", "full-summary"] {
        let mut session = session(only(Profile::progressive(), strategy), 200_000);
        session.set_task(Task::Code);
        session.push(Message::system("You are an agent."));
        session.push(Message::user("Build the service."));
        session.push(Message::assistant("It is built."));
        session.pin("port", "The port is 8473.");
        (0..12).for_each(|n| session.remember(format!("m{n}"), format!("memory number {n}.")));
        session.set_todos(Some("[>] the client"));
        session.set_git_stat(Some("2 files changed"));
        for n in 0..30 {
            step(&mut session, n, 8);
            if n == 15 {
                session.push(Message::assistant("Half of it is read."));
                session.push(Message::system("The clock was set back."));
                session.push(Message::user("On."));
            }
        }
        let session = compacted(session);
        assert!(strategies(&session).iter().any(|name| name == strategy), "{strategy}");
        let all = text(&session);
        for kept in [
            "You are an agent.",
            "The clock was set back.",
            "The port is 8473.",
            "[>] the client",
            "2 files changed",
        ] {
            assert_eq!(all.matches(kept).count(), 1, "{strategy}: {kept}\n{all}");
        }
        assert!(all.contains("Build the service."), "{strategy}\n{all}");
        for n in 0..12 {
            assert_eq!(
                all.matches(&format!("memory number {n}.")).count(),
                usize::from(n >= 2),
                "{strategy} {n}"
            );
        }
    }
}

/// The small session of docs/profiles.md, line by line: who, and what.
const SMALL: [(&str, &str); 12] = [
    ("user", "Mend the parser of dates. <Pin> Never change the public API."),
    ("call", "Read src/date.rs"),
    ("result", "120 lines"),
    ("call", "Bash cargo test"),
    ("result", "assertion failed: !is_leap(1900), exit code: 101"),
    ("assistant", "I decided to write the rule of centuries out, instead of a table."),
    ("call", "Edit src/date.rs"),
    ("result", "ok"),
    ("call", "Bash cargo test"),
    ("result", "4 passed, exit code: 0"),
    ("assistant", "Mended: 1900 is no leap year any more."),
    ("user", "<Summary> Now the time zones."),
];

fn small_session() -> Session {
    let mut session = session(Profile::progressive(), 200_000);
    session.set_todos(Some("[x] leap years\n[ ] time zones"));
    session.set_git_stat(Some("src/date.rs | 2 +-"));
    for (n, (who, what)) in SMALL.into_iter().enumerate() {
        session.push(match who {
            "user" => Message::user(what),
            "assistant" => Message::assistant(what),
            "call" => {
                let (name, subject) = what.split_once(' ').unwrap();
                let key = if name == "Bash" { "command" } else { "path" };
                call(&n.to_string(), name, &format!(r#"{{"{key}":"{subject}"}}"#))
            }
            _ => {
                let text = match what.strip_suffix(" lines") {
                    Some(lines) => "    let year = year + 1;\n".repeat(lines.parse().unwrap()),
                    None => what.replace(", ", "\n"),
                };
                Message::result((n - 1).to_string(), text)
            }
        });
    }
    ready(&mut session);
    session
}

// covers: P-TRIG P-FULL P-PIN
#[test]
fn the_small_session_of_the_docs_is_what_it_says() {
    let docs = include_str!("../../../../docs/profiles.md");
    let block = |lines: &str| {
        lines.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect::<String>()
    };
    let told: String = SMALL.iter().map(|(who, what)| format!("{who:<11}{what}\n")).collect();
    let session = small_session();
    let role = |part: &longhaul::Part| part.message.role().name().to_owned();
    let view = session.view().parts().iter();
    let view: String =
        view.map(|part| format!("[{}]\n{}\n", role(part), shown(&part.message).trim_end())).collect();
    for part in [view, told] {
        let part = block(&part);
        assert!(docs.contains(&part), "docs/profiles.md lacks\n{part}");
    }
}
