//! What holds for every profile, and what is the default one's.

use super::*;

// covers: M-TRIG A-TRIG S-1
#[test]
fn a_window_comes_from_the_user_the_model_or_the_profile() {
    let unknown = || Models::builtin().find("nobody-knows-it").clone();
    let window = |session: &Session| session.budget().window;
    assert_eq!(window(&Session::new(Profile::mini(), unknown())), Tokens(128_000));
    assert_eq!(window(&Session::new(Profile::archive(), unknown())), Tokens(200_000));
    assert_eq!(window(&Session::new(Profile::mini(), model(64_000))), Tokens(64_000));
    assert_eq!(
        window(&Session::new(Profile::mini(), model(64_000)).with_window(Tokens(9_000))),
        Tokens(9_000)
    );
}

// covers: A-ROUNDS S-11
#[test]
fn every_profile_keeps_one_turn_of_500_calls_inside_the_window() {
    for profile in Profile::all() {
        for window in [4_000, 16_000] {
            let mut session = session(profile.clone(), window);
            session.push(Message::user("Read everything, all of it."));
            for n in 0..500 {
                step(&mut session, n, 35);
                ready(&mut session);
            }
            let all = text(&session);
            assert!(
                all.contains("Read everything, all of it.") && all.contains("step_499 line 0"),
                "{}",
                profile.name
            );
        }
    }
}

// covers: P-KEEP S-10
#[test]
fn ten_compactions_in_a_row_keep_everything_once_in_every_profile() {
    for profile in Profile::all() {
        for host in [false, true] {
            let mut profile = profile.clone();
            if host {
                profile.summariser = Summariser::Host;
            }
            let name = profile.name.clone();
            let mut session = session(profile, 12_000);
            session.set_rules("CODE_LAW.md", Some("Never use tabs."));
            session.push(Message::system("You are an agent."));
            session.push(Message::user("Build the ingest service."));
            session.pin("port", "The port is 8473.");
            session.remember("owner", "The owner reads mail at noon.");
            session.set_todos(Some("1. parser\n2. store"));
            session.set_git_stat(Some(" 3 files changed"));
            for n in 0..11 {
                for m in 0..12 {
                    step(&mut session, n * 100 + m, 20);
                }
                session.push(Message::assistant(format!("Part {n} is done.")));
                session.push(Message::user(format!("Go on with part {n}.")));
                session.compact_now();
                ready_with(&mut session, "What was done so far, in short.");
                let all = text(&session);
                // Beside itself, the first request stands where its answer is told, and where an archive
                // says what it was for.
                let is_told = |line: &&str| {
                    line.contains("Build the ingest service.") && line.contains("Part 0 is done.")
                };
                let told = all.lines().filter(is_told).count();
                assert!(told <= 1, "{name} after {n}\n{all}");
                let is_goal_line = |line: &&str| line.starts_with("* **Original Goal**: ");
                let others = all.lines().filter(|line| !is_told(line) && !is_goal_line(line));
                let all = others.collect::<Vec<_>>().join("\n");
                for item in [
                    "You are an agent.",
                    "Build the ingest service.",
                    "The port is 8473.",
                    "reads mail at noon",
                    "1. parser",
                    "3 files changed",
                    "Never use tabs.",
                ] {
                    assert_eq!(all.matches(item).count(), 1, "{item} in {name} after {n}\n{all}");
                }
                let summaries =
                    session.view().parts().iter().filter(|part| matches!(part.source, Source::Edit(_)));
                let size: u64 = summaries.map(|part| part.measure.counted as u64).sum();
                let share = u64::from(session.profile().summary.max(15)) + 5;
                assert!(size <= 12_000 * share / 100, "{size} in {name} after {n}");
            }
            assert!(session.ledger().edits().count() > 3, "{name}");
        }
    }
}

/// A session in Chinese is summed up in Chinese, by every profile that writes summaries. The headings of an
/// archive are English for all.
#[test]
fn summaries_follow_the_language_of_the_conversation() {
    for profile in [Profile::longhaul(), Profile::mini(), Profile::archive(), Profile::progressive()] {
        let mut session = session(profile, 8_000);
        for n in 0..30 {
            session.push(Message::user(format!("第 {n} 个问题：为什么解析会失败？请检查。")));
            step(&mut session, n, 30);
            session.push(Message::assistant(format!("第 {n} 个问题已经修复。")));
            ready(&mut session);
        }
        session.push(Message::user("继续。"));
        session.compact_now();
        ready(&mut session);
        let all = text(&session);
        assert!(
            ["先前的工作：已结束", "之前会话已压缩", "Contains context from 消息", "至今对话的摘要"]
                .iter()
                .any(|heading| all.contains(heading)),
            "{}\n{all}",
            session.profile().name
        );
    }
}

// covers: P-TRIG
#[test]
fn a_provider_that_refuses_a_request_as_too_long_is_believed() {
    for profile in Profile::all() {
        let mut session = rounds(profile, 200_000, 40, 40);
        ready(&mut session);
        let before = session.size().tokens;
        overflowed(&mut session);
        ready(&mut session);
        assert!(
            session.size().tokens.0 * 4 <= before.0 * 3,
            "{} {before} {}",
            session.profile().name,
            session.size().tokens
        );
    }
}

#[test]
fn what_a_summary_is_to_be_about_is_kept_first() {
    let build = |focus: &str| {
        let mut session = session(Profile::longhaul(), 12_000);
        for n in 0..40 {
            session.push(Message::user("Next."));
            session.push(call(&format!("f{n}"), "Read", r#"{"path":"src/lib.rs"}"#));
            // A line without a name: nothing else speaks for it.
            let plain = "the frobnicator was turned left today\n";
            let names: String = (0..6).map(|l| format!("let value_{n}_{l} = part_{n}_{l}();\n")).collect();
            session.push(Message::result(format!("f{n}"), format!("{names}{plain}{names}")));
            session.push(Message::assistant(format!("Part {n} is read.")));
        }
        session.push(Message::user("On."));
        session.compact_now_on(focus);
        ready(&mut session);
        let summary = parts(&session).into_iter().find(|part| part.contains("## Earlier work")).unwrap();
        summary.matches("frobnicator").count()
    };
    assert!(build("the frobnicator") > build("something else"));
    let mut session = asking(Profile::longhaul(), 4_000);
    for n in 0..20 {
        round(&mut session, n, 6);
    }
    session.push(Message::user("On."));
    session.compact_now_on("the parser");
    let open = job(&mut session);
    assert_eq!(open.focus.as_deref(), Some("the parser"));
    assert!(shown(&open.warm()).contains("the parser"));
}

// covers: S-7
#[test]
fn a_model_that_forgets_a_changed_file_is_helped_by_code() {
    let mut session = asking(Profile { on_failure: OnFailure::Extract, ..Profile::longhaul() }, 6_000);
    session.push(Message::user("Fix it."));
    session.push(call("e", "Edit", r#"{"path":"src/forgotten.rs"}"#));
    session.push(Message::result("e", "ok"));
    for n in 0..50 {
        step(&mut session, n, 10);
    }
    ready_with(&mut session, "We fixed it.");
    assert!(text(&session).contains("`src/forgotten.rs`: changed 1×"), "{}", text(&session));
}

// covers: P-INC
#[test]
fn answers_to_several_parts_become_one_summary() {
    let mut session = asking(Profile::longhaul(), 6_000);
    session.push(Message::user("Fix it."));
    for n in 0..50 {
        step(&mut session, n, 10);
    }
    let open = job(&mut session);
    let parts = vec![
        "### Done\n* one thing\n### Current state\n* early".to_owned(),
        "### Done\n* another thing\n### Current state\n* late".to_owned(),
    ];
    assert!(matches!(session.resolve(open.id, Outcome::Parts(parts)), Resolved::Folded));
    let all = text(&session);
    assert!(
        all.contains("* [✓] one thing\n* [✓] another thing\n")
            && all.contains("* late")
            && !all.contains("* early"),
        "{all}"
    );
}

/// A summary that a later one takes in keeps its details.
#[test]
fn details_of_an_earlier_summary_outlive_the_next_fold() {
    let mut session = session(Profile::longhaul(), 40_000);
    session.push(Message::user("Read all."));
    let mut first = None;
    for n in 0..600 {
        let id = format!("d{n}");
        session.push(call(&id, "Grep", &format!(r#"{{"pattern":"needle_{n}"}}"#)));
        session.push(Message::result(
            id.as_str(),
            format!(
                "src/part_{n}.rs:{n}:let needle_{n} = haystack();\n{}",
                "plain words and nothing else\n".repeat(60)
            ),
        ));
        ready(&mut session);
        let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
        if folds == 1 && first.is_none() {
            assert!(text(&session).contains("let needle_3 = haystack();"));
            first = Some(n);
        }
        if folds == 3 {
            assert!(text(&session).contains("let needle_3 = haystack();"), "lost at {n}\n{}", text(&session));
            return;
        }
    }
    panic!("too few folds");
}

#[test]
fn an_empty_answer_in_parts_is_none() {
    for parts in [vec![], vec![String::new(), "x".into()]] {
        let mut session = asking(Profile::longhaul(), 6_000);
        session.push(Message::user("Go."));
        for n in 0..50 {
            step(&mut session, n, 10);
        }
        let open = job(&mut session);
        assert!(matches!(session.resolve(open.id, Outcome::Parts(parts)), Resolved::Again(..)));
    }
}

#[test]
fn a_refused_request_is_folded_and_no_more() {
    let mut session = asking(Profile::longhaul(), 200_000);
    for n in 0..60 {
        round(&mut session, n, 40);
    }
    session.push(Message::user("Go on."));
    ready_with(&mut session, "x");
    overflowed(&mut session);
    ready_with(&mut session, "What was done so far, in short.");
    let made = strategies(&session);
    assert!(made.iter().any(|name| name == "fold-turns"), "{made:?}");
    assert!(!made.iter().any(|name| name == "hide-old" || name == "cut-newest"), "{made:?}");
}

#[test]
fn a_model_switch_ends_a_compaction_that_waits() {
    let mut session = asking(Profile::longhaul(), 200_000);
    session.push(Message::user("Read all."));
    for n in 0..1_300 {
        step(&mut session, n, 12);
    }
    let open = job(&mut session);
    session.switch(Model { name: "small".into(), ..model(64_000) }, Seals::Engine);
    session.resolve(open.id, Outcome::Summary("Short.".into()));
    ready_with(&mut session, "Short.");
    assert!(session.size().tokens <= session.budget().target, "{:?}", session.size());
    assert!(!strategies(&session).iter().any(|name| name == "hide-old"), "{:?}", strategies(&session));
}
