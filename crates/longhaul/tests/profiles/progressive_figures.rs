//! Profile `progressive`, seed 004: the figures of its strategies, each as it stands in the rules.

use longhaul::policy::Constants;

use super::*;

/// Says nothing that scores, in fewer than 50 characters.
const SHORT: &str = "I look at the next one of them, and go on.";
/// Says nothing that scores, in more.
const PLAIN: &str = "I look at the next one of them, and go on to the one that comes behind it.";

/// Says nothing that scores, and has some size.
fn long(n: usize) -> String {
    format!("{PLAIN} This is number {n}. {}", "It is as it was. ".repeat(30))
}

fn only_with(strategy: &str, change: impl FnOnce(&mut Constants)) -> Profile {
    let mut profile = only(Profile::progressive(), strategy);
    change(&mut profile.constants);
    profile
}

/// A session with a first request, many units of little score, these messages, again as many units, and an
/// input; compacted. Says where the messages begin.
fn around(profile: Profile, middle: &[Message]) -> (Session, usize) {
    let mut session = session(profile, 200_000);
    session.push(Message::user("Go."));
    (0..60).for_each(|_| _ = session.push(Message::assistant(SHORT)));
    let at = session.log().end().index();
    middle.iter().for_each(|message| _ = session.push(message.clone()));
    (0..60).for_each(|_| _ = session.push(Message::assistant(SHORT)));
    session.push(Message::user("On."));
    (compacted(session), at)
}

fn is_kept(profile: Profile, middle: &[Message]) -> bool {
    let (session, at) = around(profile, middle);
    assert!(!folded(&session).is_empty());
    !folded(&session).contains(&at)
}

fn scoring(threshold: u32) -> Profile {
    only_with("importance", |constants| constants.importance_score_threshold = threshold)
}

/// The score of a message, in tenths: the highest threshold that keeps it.
fn score(message: Message) -> u32 {
    let keeps = |threshold: u32| is_kept(scoring(threshold), std::slice::from_ref(&message));
    let (mut low, mut high) = (16, 101);
    assert!(keeps(low) && !keeps(high), "{message:?}");
    while high - low > 1 {
        let middle = (low + high) / 2;
        if keeps(middle) { low = middle } else { high = middle }
    }
    low
}

fn said(words: &str) -> Message {
    Message::assistant(format!("{PLAIN} {words} "))
}

/// A session of so many messages: a first request, answers, an input.
fn of_messages(profile: Profile, count: usize) -> Session {
    let mut session = session(profile, 200_000);
    session.push(Message::user("Go."));
    (2..count).for_each(|n| _ = session.push(Message::assistant(long(n))));
    session.push(Message::user("On."));
    session
}

// covers: P-IMP
#[test]
fn a_score_begins_with_who_speaks() {
    assert_eq!(score(Message::user(PLAIN)), 50);
    assert_eq!(score(Message::assistant(PLAIN)), 20);
    // Calling a tool is nothing.
    let step = [
        Message::new(
            Role::Assistant,
            vec![Block::text(PLAIN), Block::call("c", "Read", Json::new(r#"{"path":"error.rs"}"#).unwrap())],
        ),
        Message::result("c", "An important error: the task failed."),
    ];
    assert!(is_kept(scoring(20), &step) && !is_kept(scoring(21), &step));
}

// covers: P-IMP
#[test]
fn each_keyword_counts_half_a_point_once() {
    for word in [
        "task", "goal", "decision", "plan", "problem", "solve", "note", "warning", "任务", "目标", "决定",
        "计划", "问题", "解决", "注意", "警告",
    ] {
        assert_eq!(score(said(word)), 25, "{word}");
    }
    assert_eq!(score(said("task, Task and TASK, the tasks 任务")), 25);
    assert_eq!(score(said("task, goal")), 30);
    assert_eq!(score(said("task, goal, plan, problem, solve, note")), 50);
    // Whole words.
    assert_eq!(score(said("multitasking planetary notebook keyboard debugger prefix")), 20);
}

// covers: P-IMP
#[test]
fn errors_completions_and_emphasis_count_more() {
    // Two points for an error or a fix, beside the keyword.
    for word in [
        "error",
        "errors",
        "failure",
        "failed",
        "exception",
        "bug",
        "fix",
        "fixed",
        "错误",
        "失败",
        "异常",
        "缺陷",
        "修复",
    ] {
        assert_eq!(score(said(word)), 20 + 5 + 20, "{word}");
    }
    assert_eq!(score(said("error, bug")), 20 + 5 + 5 + 20);
    // One and a half for a completion.
    for word in ["done", "success", "完成", "成功"] {
        assert_eq!(score(said(word)), 20 + 5 + 15, "{word}");
    }
    for word in ["completed", "finished", "结束"] {
        assert_eq!(score(said(word)), 20 + 15, "{word}");
    }
    // Three for what somebody says to matter.
    for word in ["key", "important", "must", "关键", "重要", "必须"] {
        assert_eq!(score(said(word)), 20 + 5 + 30, "{word}");
    }
    for word in ["<Pin>", "<Pin>the port", "固定"] {
        assert_eq!(score(said(word)), 20 + 30, "{word}");
    }
    assert_eq!(score(said("an error is done and important")), 20 + 3 * 5 + 20 + 15 + 30);
    // Ten is the most.
    assert_eq!(
        score(Message::user(format!("{PLAIN} an error is done and important: task, goal, plan"))),
        100
    );
}

// covers: P-IMP
#[test]
fn little_text_has_half_a_point_less() {
    let of = |count: usize| Message::assistant(format!("plan {}", "x".repeat(count - 5)));
    assert_eq!((score(of(49)), score(of(50))), (20, 25));
}

// covers: P-IMP P-CONF
#[test]
fn a_score_of_three_is_kept() {
    assert_eq!(Profile::progressive().constants.importance_score_threshold, 30);
    let keeps = |profile: Profile, words: &str| is_kept(profile, &[said(words)]);
    let default = || only(Profile::progressive(), "importance");
    assert!(keeps(default(), "task, goal") && !keeps(default(), "task"));
    // As a setting: 2.9, 3.0 and 3.1.
    assert!(keeps(scoring(29), "task, goal") && keeps(scoring(30), "task, goal"));
    assert!(!keeps(scoring(31), "task, goal"));
}

// covers: P-IMP
#[test]
fn the_five_newest_units_of_little_score_stay() {
    let kept = |profile: Profile| {
        let (session, _) = around(profile, &[]);
        let folded = folded(&session);
        (1..=120).filter(|at| !folded.contains(at)).collect::<Vec<_>>()
    };
    assert_eq!(kept(only(Profile::progressive(), "importance")), [116, 117, 118, 119, 120]);
    assert_eq!(kept(only_with("importance", |constants| constants.keep_recent_others = 2)), [119, 120]);
}

// covers: P-IMP P-EVENT
#[test]
fn ten_messages_are_needed_to_judge_them() {
    for strategy in ["importance", "key-events"] {
        let profile = || only(Profile::progressive(), strategy);
        assert!(folded(&compacted(of_messages(profile(), 9))).is_empty(), "{strategy}");
        assert!(!folded(&compacted(of_messages(profile(), 10))).is_empty(), "{strategy}");
        // A system message is none of them.
        let mut session = session(profile(), 200_000);
        session.push(Message::system("You are an agent."));
        of_messages(profile(), 9)
            .log()
            .messages()
            .iter()
            .for_each(|message| _ = session.push(message.clone()));
        assert!(folded(&compacted(session)).is_empty(), "{strategy}");
    }
}

// covers: P-IMP S-5 S-8
#[test]
fn over_the_target_the_lowest_score_goes_next_and_the_oldest_of_equals() {
    let mut session = session(only(Profile::progressive(), "importance"), 200_000);
    for n in 0..30 {
        let more = if n % 2 == 0 { "" } else { "It is a plan." };
        session.push(Message::assistant(format!("A task, a goal. {more} {}", long(n))));
    }
    session.push(Message::user("On."));
    ready(&mut session);
    let before = session.size().tokens;
    session.compact_now();
    ready(&mut session);
    // Who asks wants half of it gone, but for the fence around what is quoted.
    const FENCE: u64 = 30;
    assert!((session.size().tokens.0 - FENCE) * 2 <= before.0, "{before} {}", session.size().tokens);
    let gone = folded(&session);
    // All of the lower score but the newest units; then the oldest of the higher score, as many as are needed.
    let lower: Vec<usize> = (0..25).filter(|n| n % 2 == 0).collect();
    let higher: Vec<usize> = gone.iter().copied().filter(|n| n % 2 == 1).collect();
    assert_eq!(gone.iter().copied().filter(|n| n % 2 == 0).collect::<Vec<_>>(), lower);
    assert_eq!(higher, (0..25).filter(|n| n % 2 == 1).take(higher.len()).collect::<Vec<_>>());
    assert!((1..12).contains(&higher.len()), "{higher:?}");
    // What is left stands in its order.
    let shown = session.view().parts().iter().filter_map(|part| match part.source {
        Source::Message(at) => Some(at),
        _ => None,
    });
    assert!(shown.is_sorted());
}

// covers: P-IMP
#[test]
fn older_results_of_steps_that_stay_become_digests() {
    let mut session = session(only(Profile::progressive(), "importance"), 200_000);
    session.push(Message::user("Go."));
    for n in 0..12 {
        let id = format!("s{n}");
        let words = if n == 2 || n == 11 {
            "This is important, it must stay as it is, the key error."
        } else {
            PLAIN
        };
        let read = Block::call(id.as_str(), "Read", Json::new(r#"{"path":"a.rs"}"#).unwrap());
        session.push(Message::new(Role::Assistant, vec![Block::text(words), read]));
        session.push(Message::result(
            id.as_str(),
            format!("content number {n} of it, line by line\n").repeat(60),
        ));
    }
    let session = compacted(session);
    let digested = |n: usize| {
        let at = 2 + 2 * n;
        let is = |kind: &EditKind| matches!(kind, EditKind::Digest { at: place, .. } if place.index() == at);
        session
            .ledger()
            .edits()
            .any(|(edit, active)| active && is(&edit.kind) && &*edit.strategy == "importance")
    };
    assert!(!folded(&session).contains(&5) && digested(2), "{:?}", folded(&session));
    // The newest step is whole.
    assert!(!digested(11));
}

/// Whether a unit is a key event: it stays among many that are none.
fn is_event(messages: &[Message]) -> bool {
    is_kept(only(Profile::progressive(), "key-events"), messages)
}

// covers: P-EVENT
#[test]
fn key_events_by_what_is_said() {
    for (words, event) in [
        ("There is an error.", true),
        ("It failed.", true),
        ("A bug.", true),
        ("An exception.", true),
        ("I fixed it.", true),
        ("这里有一个错误。", true),
        ("已经修复。", true),
        ("I am starting the task.", true),
        ("现在开始任务。", true),
        ("The import is completed.", true),
        ("The work is finished.", true),
        ("任务完成。", true),
        ("I look at the prefix of it.", false),
        ("It is important.", false),
        (PLAIN, false),
    ] {
        assert_eq!(is_event(&[Message::assistant(words)]), event, "{words}");
    }
    // A decision has more than 100 characters.
    let decision = |count: usize| {
        let words = "I decided to keep the table. ";
        Message::assistant(format!("{words}{}", "x".repeat(count - words.len())))
    };
    assert!(is_event(&[decision(101)]) && !is_event(&[decision(100)]));
    assert!(!is_event(&[Message::assistant("I look at it. ".repeat(20))]));
    let chosen = |count: usize| Message::assistant(format!("我决定{}", "好".repeat(count - 3)));
    assert!(is_event(&[chosen(101)]) && !is_event(&[chosen(100)]));
}

// covers: P-EVENT
#[test]
fn key_events_by_what_happened() {
    let step = |name: &str, result: Message| [call("c", name, r#"{"path":"a.rs"}"#), result];
    let ok = || Message::result("c", "all is well");
    let failed = Block::ToolResult(longhaul::conversation::ToolResult {
        is_error: true,
        ..ok().results().next().unwrap().clone()
    });
    let failed = || Message::new(Role::Tool, vec![failed.clone()]);
    for (messages, event) in [
        (step("Edit", ok()), true),
        (step("Write", ok()), true),
        (step("apply_patch", ok()), true),
        (step("rewrite_file", ok()), true),
        (step("Read", ok()), false),
        (step("Bash", Message::result("c", "x\nexit code: 1")), true),
        (step("Bash", Message::result("c", "x\nexit code: 0")), false),
        (step("Read", failed()), true),
    ] {
        assert_eq!(is_event(&messages), event, "{messages:?}");
    }
    // What a person says, a pin among it; not what a host writes in their place.
    assert!(is_event(&[Message::user("And now?")]));
    assert!(is_event(&[Message::user("<Pin> The port is 8473.")]));
    assert!(!is_event(&[Message::user("The time is noon.").with_attachment()]));
}

// covers: P-EVENT S-10
#[test]
fn the_answer_that_ends_the_work_of_a_turn_is_its_finish() {
    let mut session = session(only(Profile::progressive(), "key-events"), 200_000);
    for n in 0..12 {
        round(&mut session, n, 12);
    }
    session.push(Message::user("And why?"));
    let at_once = session.push(Message::assistant("So it is.")).index();
    (0..6).for_each(|n| step(&mut session, 100 + n, 12));
    session.push(Message::user("On."));
    let session = compacted(session);
    // Of each round the step in the middle goes; question and answer stay.
    let gone = folded(&session);
    let of_rounds: Vec<usize> = (0..12).flat_map(|n| [4 * n + 1, 4 * n + 2]).collect();
    assert_eq!(gone[..24], of_rounds);
    // An answer that came at once, before any work, is no finish.
    assert!(gone.contains(&at_once), "{gone:?}");
}

// covers: P-EVENT
#[test]
fn the_five_newest_units_that_are_no_event_stay() {
    let (session, _) = around(only(Profile::progressive(), "key-events"), &[]);
    let folded = folded(&session);
    let kept: Vec<usize> = (1..=120).filter(|at| !folded.contains(at)).collect();
    assert_eq!(kept, [116, 117, 118, 119, 120]);
    let other = only_with("key-events", |constants| constants.keep_recent_others = 2);
    assert_eq!(folded_of(&around(other, &[]).0, 118), 118);
}

/// How many of the first messages behind the request are folded.
fn folded_of(session: &Session, count: usize) -> usize {
    folded(session).into_iter().filter(|at| (1..=count).contains(at)).count()
}

// covers: P-WIN P-CONF
#[test]
fn the_window_keeps_nine_messages_of_more_than_eighteen() {
    assert_eq!(Profile::progressive().constants.sliding_window_size, 9);
    let profile = || only(Profile::progressive(), "sliding-window");
    assert!(folded(&compacted(of_messages(profile(), 18))).is_empty());
    let session = compacted(of_messages(profile(), 19));
    assert_eq!(folded(&session), (0..10).collect::<Vec<_>>());
    // A setting.
    let four = || only_with("sliding-window", |constants| constants.sliding_window_size = 4);
    assert!(folded(&compacted(of_messages(four(), 8))).is_empty());
    assert_eq!(folded(&compacted(of_messages(four(), 9))), (0..5).collect::<Vec<_>>());
}

// covers: P-WIN P-KEEP
#[test]
fn system_messages_are_no_messages_of_the_window() {
    let profile = || only(Profile::progressive(), "sliding-window");
    let build = |count: usize| {
        let mut session = session(profile(), 200_000);
        session.push(Message::system("You are an agent."));
        for (n, message) in of_messages(profile(), count).log().messages().iter().enumerate() {
            if n == count - 4 {
                session.push(Message::system("The clock was set back."));
            }
            session.push(message.clone());
        }
        compacted(session)
    };
    assert!(folded(&build(18)).is_empty());
    // Nine messages, and the system message between them.
    assert_eq!(folded(&build(19)), (1..11).collect::<Vec<_>>());
}

// covers: P-INC P-CONF
#[test]
fn increments_need_more_than_forty_messages_and_take_twenty_each() {
    assert_eq!(Profile::progressive().constants.incremental_summary_chunk_size, 20);
    let spans = |session: &Session| {
        let edits = session.ledger().edits().map(|(edit, _)| edit.kind.spans());
        edits
            .map(|spans| spans.iter().map(|span| (span.start.0, span.end.0)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let profile = || only(Profile::progressive(), "increments");
    assert!(spans(&compacted(of_messages(profile(), 40))).is_empty());
    assert_eq!(spans(&compacted(of_messages(profile(), 41))), [[(0, 20)], [(20, 40)]]);
    assert_eq!(spans(&compacted(of_messages(profile(), 75))), [[(0, 20)], [(20, 40)], [(40, 60)]]);
    // System messages are none, neither of the forty nor of a chunk.
    let with_system = |count: usize| {
        let mut session = session(profile(), 200_000);
        for (n, message) in of_messages(profile(), count).log().messages().iter().enumerate() {
            if n == 5 {
                session.push(Message::system("The clock was set back."));
            }
            session.push(message.clone());
        }
        compacted(session)
    };
    assert!(spans(&with_system(40)).is_empty());
    assert_eq!(spans(&with_system(41)), [vec![(0, 5), (6, 21)], vec![(21, 41)]]);
    // A setting.
    let five = || only_with("increments", |constants| constants.incremental_summary_chunk_size = 5);
    assert!(spans(&compacted(of_messages(five(), 10))).is_empty());
    assert_eq!(spans(&compacted(of_messages(five(), 11))), [[(0, 5)], [(5, 10)]]);
}

// covers: P-INC S-12
#[test]
fn a_chunk_whose_summary_fails_becomes_an_excerpt() {
    let told = of_messages(Profile::progressive(), 65);
    let mut profile = only(Profile::progressive(), "increments");
    profile.shares.target = 0;
    let mut session = asking(profile, 200_000);
    told.log().messages().iter().for_each(|message| _ = session.push(message.clone()));
    session.compact_now();
    let first = job(&mut session);
    assert!(matches!(session.resolve(first.id, Outcome::Summary("Read so far.".into())), Resolved::Folded));
    let second = job(&mut session);
    assert!(matches!(session.resolve(second.id, Outcome::TimedOut), Resolved::Extracted(_)));
    let third = job(&mut session);
    assert!(matches!(session.resolve(third.id, Outcome::Summary("And the rest.".into())), Resolved::Folded));
    ready(&mut session);
    assert_eq!(strategies(&session), ["increments"; 3]);
    let all = text(&session);
    assert!(
        all.contains("Read so far.") && all.contains("This is number 33") && all.contains("And the rest."),
        "{all}"
    );
}

/// A session that is over its trigger, of this kind of work.
fn over(task: Task, units: impl IntoIterator<Item = String>) -> Session {
    let mut session = session(Profile::progressive(), 10_000);
    session.set_task(task);
    session.push(Message::user("Go."));
    units.into_iter().for_each(|unit| _ = session.push(Message::assistant(unit)));
    session.push(Message::user("On."));
    ready(&mut session);
    session
}

// covers: P-FALL P-ADAPT S-5
#[test]
fn strategies_are_tried_in_their_order_until_the_target_is_met() {
    let ladder: Vec<&str> = Profile::progressive().ladder.iter().map(|strategy| strategy.name).collect();
    assert_eq!(ladder, ["sliding-window", "importance", "key-events", "increments", "full-summary"]);
    assert_eq!(Profile::progressive().shares.target, 60);
    let unit = |words: &str, size: usize| format!("{words} {}", "It is as it was. ".repeat(size));
    let tried = |session: &Session| {
        let mut names = strategies(session);
        names.dedup();
        assert!(session.size().tokens <= session.budget().target, "{:?}", session.size());
        names
    };
    // The window alone is enough, whatever the work: nothing more is done.
    for task in [Task::Code, Task::Analysis, Task::Conversation, Task::Mixed, Task::Unknown] {
        assert_eq!(tried(&over(task, (0..60).map(|_| unit(PLAIN, 30)))), ["sliding-window"], "{task:?}");
    }
    // Too few messages for the window: the second of the kind, which is enough.
    let few = || (0..15).map(|_| unit(PLAIN, 130));
    assert_eq!(tried(&over(Task::Code, few())), ["key-events"]);
    assert_eq!(tried(&over(Task::Analysis, few())), ["importance"]);
    assert_eq!(tried(&over(Task::Conversation, few())), ["importance"]);
    assert_eq!(tried(&over(Task::Unknown, few())), ["importance"]);
    assert_eq!(tried(&over(Task::Mixed, few())), ["importance"]);
    // Mixed work has increments before importance.
    let mut chunks = Profile::progressive();
    chunks.constants.incremental_summary_chunk_size = 5;
    let mut mixed = session(chunks, 10_000);
    mixed.set_task(Task::Mixed);
    mixed.push(Message::user("Go."));
    few().for_each(|unit| _ = mixed.push(Message::assistant(unit)));
    mixed.push(Message::user("On."));
    ready(&mut mixed);
    assert_eq!(tried(&mixed), ["increments"]);
    // Where all are events, the fixed order goes on with importance.
    let events = || (0..15).map(|_| unit("An error, and how I fixed it.", 130));
    assert_eq!(tried(&over(Task::Code, events())), ["importance"]);
    // Too few messages for any of them: the full summary.
    assert_eq!(tried(&over(Task::Code, (0..6).map(|_| unit(PLAIN, 320)))), ["full-summary"]);
}

// covers: P-FALL S-12
#[test]
fn a_strategy_that_fails_is_skipped() {
    for (task, order) in [
        (Task::Code, ["sliding-window", "key-events", "increments"]),
        (Task::Analysis, ["sliding-window", "importance", "increments"]),
        (Task::Mixed, ["sliding-window", "increments", "increments"]),
    ] {
        let mut session = asking(Profile::progressive(), 10_000);
        session.set_task(task);
        session.push(Message::user("Read all."));
        (0..70).for_each(|n| step(&mut session, n, 10));
        let asked: Vec<&str> = (0..3)
            .map(|_| {
                let job = job(&mut session);
                let resolved = session.resolve(job.id, Outcome::TimedOut);
                let excerpt = matches!(resolved, Resolved::Extracted(_));
                assert_eq!(excerpt, job.strategy.name == "increments", "{resolved:?}");
                job.strategy.name
            })
            .collect();
        assert_eq!(asked, order, "{task:?}");
        ready(&mut session);
    }
}

// covers: P-TYPE
#[test]
fn what_the_host_declares_wins() {
    let compact = |declared: Option<Task>| {
        let mut profile = Profile::progressive();
        profile.triggers.full_when_asked = false;
        let mut session = session(profile, 200_000);
        declared.into_iter().for_each(|task| session.set_task(task));
        session.push(Message::user("Go."));
        for n in 0..8 {
            let id = format!("c{n}");
            session.push(call(&id, "execute_script", r#"{"script_content":"cat a.rs"}"#));
            session.push(Message::result(id, format!("line {n} of the file\n").repeat(30)));
        }
        strategies(&compacted(session))[0].clone()
    };
    assert_eq!(compact(None), "key-events");
    assert_eq!(compact(Some(Task::Analysis)), "importance");
}
