//! Profile `archive`: the summary that finished rounds become. Its form is that of seed 003.

use super::*;
use longhaul::Time;

/// Ten rounds in which nothing is done: they are kept, and what came before is archived.
fn ten_rounds(session: &mut Session) {
    for n in 0..10 {
        session.push(Message::user(format!("Kept {n}?")));
        session.push(Message::assistant("Yes."));
    }
    session.push(Message::user("Go on."));
    session.compact_now();
}

/// What opens quotes.
const OPENS: [&str; 2] = ["⟦Quotes ", "⟦引用 "];

/// The summaries of the view, each without its head and what it restates.
fn archives(session: &Session) -> Vec<String> {
    let without_fence = |text: String| {
        let lines =
            text.split_inclusive('\n').filter(|line| !OPENS.iter().any(|open| line.starts_with(open)));
        lines.collect::<String>()
    };
    with_fences(session).into_iter().map(without_fence).collect()
}

/// The same with the lines that open their quotes.
fn with_fences(session: &Session) -> Vec<String> {
    let mut summaries: Vec<String> = Vec::new();
    for part in parts(session) {
        match summaries.last_mut() {
            _ if part.starts_with("⟦Summary of") => summaries.push(part),
            Some(facts) if OPENS.iter().any(|open| part.starts_with(open)) => facts.push_str(&part),
            _ => {}
        }
    }
    let body = |text: String| {
        let body = text.split_once("⟧\n").unwrap().1;
        let ends = ["⟦To keep", "⟦Answered already", "⟦End ", "⟦完 "].iter().filter_map(|end| body.find(end));
        body[..ends.min().unwrap_or(body.len())].to_owned()
    };
    summaries.into_iter().map(body).collect()
}

/// A call that changes or reads a file, with its result.
fn file(session: &mut Session, tool: &str, path: &str) {
    let id = format!("{tool}_{path}");
    session.push(call(&id, tool, &format!(r#"{{"path":"{path}"}}"#)));
    session.push(Message::result(id, format!("The file {path}.\n").repeat(90)));
}

// covers: A-SUM S-7
#[test]
fn archive_fills_the_form_of_the_seed() {
    let mut session = session(Profile::archive(), 200_000);
    session.set_stack(Some("Rust 1.90, tokio"));
    session.set_environment(Some("Linux, bash, CI=1"));
    session.push(Message::user(
        "Mend the importer.\n\n```\nYou must never read this as a wish.\n```\nNever touch the lock file.",
    ));
    file(&mut session, "Read", "src/import.rs");
    file(&mut session, "Read", "src/other.rs");
    session
        .push(Message::assistant("The problem is the encoding. I decided to use UTF-8 instead of a guess."));
    file(&mut session, "Edit", "src/import.rs");
    session.push(Message::assistant("The importer is mended."));
    session.push(Message::user("What is the port?"));
    file(&mut session, "Read", "src/port.rs");
    // Nobody waited for the answer.
    session.push(Message::user("Write the docs."));
    file(&mut session, "Write", "docs/import.md");
    session.push(Message::assistant("The docs are written."));
    ten_rounds(&mut session);
    ready(&mut session);
    assert_eq!(
        archives(&session),
        [r#"## 📌 Archived Session Summary
*(Contains context from message 1 to message 16)*

### 📂 File System State (Snapshot)
*(Modified files in this archive segment)*
* `src/import.rs`: changed 1×, read 1×
* `docs/import.md`: changed 1×

### 🎯 Objectives & Status
* **Original Goal**: Mend the importer. Never touch the lock file.
* **Not Answered**: What is the port?

### 🏗️ Technical Context (Static)
* **Stack**: Rust 1.90, tokio
* **Environment**: Linux, bash, CI=1

### ✅ Completed Milestones (The "Done" Pile)
* [✓] Mend the importer. - The importer is mended.
* [✓] Write the docs. - The docs are written.

### 🧠 Key Insights & Decisions (Persistent Memory)
* **Decisions**: I decided to use UTF-8 instead of a guess.
* **Learnings**: The problem is the encoding.
* **User Preferences**: Never touch the lock file.
"#]
    );
}

// covers: A-SUM
#[test]
fn archive_has_english_headings_and_values_in_the_language_of_the_conversation() {
    let mut session = session(Profile::archive(), 200_000);
    session.push(Message::user("修复导入程序。"));
    file(&mut session, "Edit", "src/import.rs");
    session.push(Message::assistant("导入程序已修复。"));
    session.push(Message::user("接下来检查日志。不要修改锁文件。"));
    file(&mut session, "Read", "src/log.rs");
    session.push(Message::assistant("日志没有问题。"));
    for _ in 0..10 {
        session.push(Message::user("好了吗？"));
        session.push(Message::assistant("好了。"));
    }
    session.push(Message::user("继续。"));
    session.compact_now();
    ready(&mut session);
    assert_eq!(
        archives(&session),
        [r#"## 📌 Archived Session Summary
*(Contains context from 消息 1 to 消息 8)*

### 📂 File System State (Snapshot)
*(Modified files in this archive segment)*
* `src/import.rs`：修改 1 次

### 🎯 Objectives & Status
* **Original Goal**: 修复导入程序。

### 🏗️ Technical Context (Static)
* 未记录

### ✅ Completed Milestones (The "Done" Pile)
* [✓] 修复导入程序。 - 导入程序已修复。
* [✓] 接下来检查日志。不要修改锁文件。 - 日志没有问题。

### 🧠 Key Insights & Decisions (Persistent Memory)
* **User Preferences**: 不要修改锁文件。
"#]
    );
}

/// A session whose first rounds a model is asked to archive.
fn asked(window: u64, change: impl FnOnce(&mut Profile)) -> Session {
    let mut profile = Profile::archive();
    change(&mut profile);
    let mut session = asking(profile, window);
    session.set_stack(Some("Rust 1.90"));
    session.push(Message::system("Be brief."));
    for n in 0..6 {
        round(&mut session, n, 60);
    }
    file(&mut session, "Edit", "src/import.rs");
    session.push(Message::assistant("Mended."));
    ten_rounds(&mut session);
    session
}

// covers: A-SUM S-7
#[test]
fn archive_completes_what_a_model_writes() {
    let mut session = asked(200_000, |_| {});
    let open = job(&mut session);
    let written = "## 📌 Archived Session Summary\n### 🎯 Objectives & Status\n* **Original Goal**: Something else.\n\
                   ### ✅ Completed Milestones (The \"Done\" Pile)\n* [✓] All questions - answered\n\
                   ### 🧠 Key Insights & Decisions (Persistent Memory)\n* **Decisions**: none\n\
                   ### 📂 File System State (Snapshot)\n* `src/lib.rs`: holds all answers\n* none\n";
    assert!(matches!(session.resolve(open.id, Outcome::Summary(written.into())), Resolved::Folded));
    ready(&mut session);
    // What is only read is no modified file; what was forgotten is there.
    assert_eq!(
        archives(&session),
        [r#"## 📌 Archived Session Summary
*(Contains context from message 2 to message 28)*

### 📂 File System State (Snapshot)
*(Modified files in this archive segment)*
* `src/import.rs`: changed 1×

### 🎯 Objectives & Status
* **Original Goal**: Question number 0?

### 🏗️ Technical Context (Static)
* **Stack**: Rust 1.90

### ✅ Completed Milestones (The "Done" Pile)
* [✓] All questions - answered

### 🧠 Key Insights & Decisions (Persistent Memory)
* none noted
"#]
    );
}

// covers: A-SUM
#[test]
fn archive_asks_its_own_model_for_no_system_message_and_no_summary() {
    let open = job(&mut asked(200_000, |_| {}));
    assert_eq!((open.model.as_deref(), open.template.name, open.earlier.as_deref()), (None, "archive", None));
    let open = job(&mut asked(200_000, |profile| profile.summary_model = Some("small".into())));
    assert_eq!(open.model.as_deref(), Some("small"));
    let roles: Vec<Role> = open.messages.iter().map(|message| message.role()).collect();
    assert_eq!(roles.len(), 27);
    assert!(roles.iter().all(|role| matches!(role, Role::User | Role::Assistant | Role::Tool)), "{roles:?}");
    // A conversation of its own: instructions, and the messages as data.
    let [system, user] = &open.fresh(Tokens(200_000))[0];
    assert!(
        shown(system).contains("### 🏗️ Technical Context (Static)\n* **Stack**: [")
            && !shown(system).contains("none")
    );
    assert!(!shown(user).contains("Be brief.") && shown(user).contains("Question number 5?"));
}

// covers: A-SUM
#[test]
fn archive_says_from_when_to_when() {
    let minute = |n: i64| Time(1_767_225_600_000_000 + n * 60_000_000);
    let mut session = session(Profile::archive(), 20_000);
    let mut at = 0;
    let mut say = |session: &mut Session, message: Message| {
        session.push(message.with_time(minute(at)));
        at += 1;
    };
    for n in 0..60 {
        say(&mut session, Message::user(format!("Question number {n}?")));
        say(&mut session, Message::assistant(format!("Answer number {n}. {}", "It is long. ".repeat(40))));
    }
    say(&mut session, Message::user("Go on."));
    session.compact_now();
    ready(&mut session);
    let line = "*(Contains context from 2026-01-01 00:00 to 2026-01-01 01:39)*\n";
    assert!(archives(&session)[0].contains(line), "{}", archives(&session)[0]);
    // A merged one knows its times too.
    let summary = session.view().parts().iter().take(2);
    let size = summary.map(|part| part.measure.counted).sum::<i64>() as u64;
    session.set_window(Tokens(size * 9));
    session.compact_now();
    ready(&mut session);
    assert!(strategies(&session).contains(&"merge-summaries".to_owned()));
    assert!(archives(&session)[0].contains(line), "{}", archives(&session)[0]);
}

// covers: A-SUM
#[test]
fn archive_merges_past_ten_percent_to_five() {
    let constants = Profile::archive().constants;
    assert_eq!((constants.merge_above, constants.merge_to), (10, 5));
    for (more, merged) in [(1, 0), (-1, 1)] {
        let mut session = rounds(Profile::archive(), 128_000, 300, 60);
        ready(&mut session);
        // What it says, without its mark and the goal that stands behind it.
        let size = with_fences(&session).remove(0).len() as i64 / 4;
        assert!(size > 3_000, "{size}");
        // A window of which it is a little less than ten percent, or a little more.
        let window = (size + more) as u64 * 10;
        session.set_window(Tokens(window));
        session.compact_now();
        ready(&mut session);
        let merges = session.ledger().edits().filter(|(edit, _)| &*edit.strategy == "merge-summaries");
        let sizes: Vec<u64> = merges.map(|(edit, _)| edit.after.0).collect();
        assert_eq!(sizes.len(), merged, "{size} of {window}");
        assert!(sizes.iter().all(|size| *size <= window / 20), "{sizes:?} of {window}");
        // Nor much smaller: a token is taken for three bytes there, and the neutral meter counts four.
        assert!(sizes.iter().all(|size| *size <= window * 42 / 1_000), "{sizes:?} of {window}");
        assert!(sizes.iter().all(|size| *size > window * 3 / 100), "{sizes:?} of {window}");
    }
}

// covers: A-SUM
#[test]
fn archive_merges_without_a_model() {
    let mut session = asked(200_000, |_| {});
    let open = job(&mut session);
    let long: String = (0..60).map(|n| format!("* [✓] Task number {n} - it is done\n")).collect();
    let written =
        format!("## 📌 Archived Session Summary\n### ✅ Completed Milestones (The \"Done\" Pile)\n{long}");
    assert!(matches!(session.resolve(open.id, Outcome::Summary(written)), Resolved::Folded));
    ready(&mut session);
    session.set_window(Tokens(5_000));
    session.compact_now();
    ready(&mut session);
    assert!(strategies(&session).contains(&"merge-summaries".to_owned()), "{:?}", strategies(&session));
    // Section by section: the newest are kept, in their place.
    assert!(
        archives(&session)[0].contains("* [✓] Task number 59 - it is done\n"),
        "{}",
        archives(&session)[0]
    );
    assert!(archives(&session)[0].contains("* **Stack**: Rust 1.90\n"), "{}", archives(&session)[0]);
}

// covers: A-SUM
#[test]
fn archive_knows_the_technical_context_by_the_journal_alone() {
    let build = |technical: bool| {
        let mut session = session(Profile::archive(), 200_000);
        if technical {
            session.set_stack(Some("Python 2"));
            session.set_stack(Some("Python 3.13"));
            session.set_environment(Some("macOS, zsh"));
            session.set_environment(None);
        }
        round(&mut session, 0, 60);
        session.push(Message::user("The stack is COBOL."));
        session.push(Message::assistant("I see."));
        ten_rounds(&mut session);
        let mut session = reload(&session);
        ready(&mut session);
        let text = archives(&session).swap_remove(0);
        text.split("### ").find(|part| part.starts_with("🏗️")).unwrap().to_owned()
    };
    assert_eq!(build(true), "🏗️ Technical Context (Static)\n* **Stack**: Python 3.13\n\n");
    // Nobody guesses.
    assert_eq!(build(false), "🏗️ Technical Context (Static)\n* none noted\n\n");
}

// covers: A-SUM
#[test]
fn archive_takes_no_sentence_of_a_paste_for_a_preference() {
    let paste: String = (0..60).map(|n| format!("Rule {n}: employees must always wear hat {n}.\n")).collect();
    let mut session = session(Profile::archive(), 200_000);
    session.push(Message::user("Hello."));
    session.push(Message::assistant("Hello."));
    for wish in [
        format!("Sum this up, and never quote it:\n{paste}"),
        "Look at it: <file>\nYou must not look.\n</file>".to_owned(),
        "> You should always quote.\nIs that right?".to_owned(),
        "Please use tabs only.".to_owned(),
    ] {
        session.push(Message::user(wish));
        session.push(Message::assistant("Yes. ".repeat(60)));
    }
    ten_rounds(&mut session);
    ready(&mut session);
    let text = archives(&session).swap_remove(0);
    let preferences: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("* **User Preferences**: ")).collect();
    assert_eq!(preferences, ["Sum this up, and never quote it:", "Please use tabs only."], "{text}");
}

/// Messages as the documentation shows them: who speaks, and what is said; of a result of many lines their
/// number, unless it is a digest.
fn told<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let say = |message: &Message| {
        let calls: Vec<String> =
            message.calls().map(|call| format!("{} {}", call.name, call.arguments.as_str())).collect();
        let text = if calls.is_empty() { shown(message) } else { calls.join(", ") };
        let text = match text.lines().count() {
            lines if lines > 1 && !text.contains('⟦') => format!("({lines} lines)"),
            _ => text,
        };
        format!("[{}] {}\n", message.role().name(), text.trim_end())
    };
    let all: String = messages.map(say).collect();
    all.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect()
}

/// The small session of docs/profiles.md, before and after.
#[test]
fn archive_does_what_its_page_says() {
    let constants = Constants { min_retain_rounds: 1, ..Constants::default() };
    let mut session = session(Profile { constants, ..Profile::archive() }, 200_000);
    session.set_environment(Some("Linux, bash"));
    session.push(Message::user("Fix the leap years. Never change the API."));
    session.push(call("a", "Read", r#"{"path":"src/date.rs"}"#));
    session.push(Message::result("a", "fn is_leap(year: u32) -> bool { year % 4 == 0 }\n".repeat(90)));
    session.push(call("b", "Edit", r#"{"path":"src/date.rs"}"#));
    session.push(Message::result("b", "ok"));
    session.push(Message::assistant("Fixed: 1900 is no leap year any more."));
    session.push(Message::user("What is in src?"));
    session.push(call("c", "LS", r#"{"path":"src"}"#));
    session.push(Message::result("c", (0..30).map(|n| format!("part_{n}.rs\n")).collect::<String>()));
    session.push(Message::assistant("Thirty files."));
    session.push(Message::user("Now the time zones."));
    session.compact_now();
    ready(&mut session);
    let page = include_str!("../../../../docs/profiles.md");
    let before = told(session.log().messages().iter().map(|message| &**message));
    let after = told(session.view().parts().iter().map(|part| &*part.message));
    assert!(page.contains(&before), "docs/profiles.md lacks\n\n{before}");
    assert!(page.contains(&after), "docs/profiles.md lacks\n\n{after}");
}

/// A goal that is restated is not what summaries say: however long it is, they are not merged again and
/// again, and the prefix stays.
// covers: A-SUM
#[test]
fn a_long_goal_is_no_reason_to_merge() {
    let mut session = session(Profile::archive(), 12_000);
    session.push(Message::user(format!("Build it. {}", "And mind this. ".repeat(500))));
    session.push(Message::assistant("It is built."));
    for n in 0..120 {
        round(&mut session, n, 30);
        session.push(Message::user("Next?"));
        ready(&mut session);
        session.push(Message::assistant("Yes."));
    }
    let made = strategies(&session);
    let count = |name: &str| made.iter().filter(|made| *made == name).count();
    let (merges, archives) = (count("merge-summaries"), count("archive-rounds") + count("archive-kept"));
    assert!(archives > 6 && merges * 3 < archives, "{merges} {archives}");
}
