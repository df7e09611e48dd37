//! What is settled for all profiles, figure by figure: windows, targets, order in time, the keep set, and
//! the common end of every ladder.

use super::*;
use longhaul::policy::Tripped;
use longhaul::session::{PrepareError, TooLarge};
use longhaul::{Cursor, Entry};

// covers: S-1
#[test]
fn every_profile_has_a_window_for_models_that_nobody_knows() {
    let windows: Vec<(String, u64)> = Profile::all()
        .into_iter()
        .map(|profile| {
            let session = Session::new(profile, Models::builtin().find("nobody-knows-it").clone());
            (session.profile().name.to_string(), session.budget().window.0)
        })
        .collect();
    let names = ["longhaul", "thrifty", "safe", "mini", "transform", "archive", "progressive"];
    let expected = names.map(|name| (name.to_owned(), if name == "mini" { 128_000 } else { 200_000 }));
    assert_eq!(windows, expected);
}

/// Shares of a window of 100,000: trigger and target.
fn limits(profile: Profile) -> (u64, u64) {
    let budget = session(profile, 100_000).budget();
    (budget.trigger.0, budget.target.0)
}

// covers: S-5 A-TRIG P-TRIG M-TRIG T-L3
#[test]
fn every_profile_works_to_its_target() {
    assert_eq!(limits(Profile::mini()), (80_000, 0));
    assert_eq!(limits(Profile::transform()), (75_000, 75_000));
    assert_eq!(limits(Profile::archive()), (80_000, 60_000));
    assert_eq!(limits(Profile::progressive()), (75_000, 60_000));
    for profile in [Profile::transform(), Profile::archive(), Profile::progressive()] {
        let mut session = session(profile, 20_000);
        let mut rounds = 0;
        while session.ledger().edits().all(|(edit, _)| !edit.kind.replaces_runs()) {
            round(&mut session, rounds, 12);
            session.push(Message::user("Go on."));
            ready(&mut session);
            rounds += 1;
        }
        let (name, budget) = (session.profile().name.clone(), session.budget());
        // The size before and after is in the journal, and so is the target.
        let entries: Vec<&Entry> = session.since(Cursor(0)).collect();
        let began = entries.iter().rev().find_map(|entry| match entry {
            Entry::CompactionBegan(compaction) => Some(compaction.clone()),
            _ => None,
        });
        let ended = entries.iter().rev().find_map(|entry| match entry {
            Entry::CompactionEnded { after, .. } => Some(*after),
            _ => None,
        });
        let (began, ended) = (began.unwrap(), ended.unwrap());
        assert!(began.before >= budget.trigger && began.target == budget.target, "{name} {began:?}");
        assert!(ended <= budget.target && ended == session.size().tokens, "{name} {ended} {budget:?}");
        let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs());
        let saved: u64 = folds.map(|(edit, _)| edit.before.0 - edit.after.0).sum();
        assert!(saved > 0 && saved <= began.before.0 - ended.0 + 200, "{name} {saved}");
    }
}

// covers: S-2
#[test]
fn what_was_reported_is_the_base_and_what_is_new_is_counted() {
    let mut session = Session::new(Profile::transform(), model(200_000));
    session.push(Message::user("Build it."));
    ready(&mut session);
    observe(&mut session, &Usage { input: 5_000, ..Usage::default() });
    assert_eq!(session.size().tokens, Tokens(5_000));
    let more = Message::assistant("It is built, and all of its tests pass.");
    let counted = session.meter().tokens(session.meter().message(&more)).tokens;
    session.push(more);
    ready(&mut session);
    assert_eq!(session.size().tokens, Tokens(5_000) + counted);
}

// covers: S-4
#[test]
fn a_placeholder_that_was_sent_stays() {
    for profile in Profile::all() {
        let build = || {
            let mut session = session(profile.clone(), 20_000);
            session.push(Message::user("Build it."));
            session.push(call("a", "Bash", r#"{"command":"make"}"#));
            ready(&mut session);
            session
        };
        let mut session = build();
        let sent = parts(&session);
        let note = usize::from(profile.system_note().is_some());
        assert_eq!((sent.len(), &sent), (3 + note, &parts(&build())), "the same each time");
        session.push(Message::result("a", "it came too late"));
        session.push(Message::assistant("Well."));
        session.push(Message::user("Go on."));
        ready(&mut session);
        assert_eq!(parts(&session)[..sent.len()], sent);
    }
}

// covers: S-4 S-8
#[test]
fn whatever_is_taken_out_time_runs_forward_and_pairs_are_whole() {
    for profile in Profile::all() {
        let mut session = session(profile, 8_000);
        for n in 0..60 {
            round(&mut session, n, 20);
            session.push(Message::user("Go on."));
            ready(&mut session);
            session.push(Message::assistant("I do."));
        }
        let name = session.profile().name.clone();
        assert!(session.ledger().edits().any(|(edit, _)| edit.kind.replaces_runs()), "{name}");
        let start = |source: Source| match source {
            Source::Message(at) => Some(at),
            Source::Edit(id) => Some(session.ledger().get(id)?.kind.spans().first()?.start),
            Source::Note | Source::Rules | Source::HostNote(_) | Source::Tail => None,
        };
        let starts: Vec<_> = session.view().parts().iter().filter_map(|part| start(part.source)).collect();
        assert!(starts.is_sorted(), "{name} {starts:?}");
        let calls = session.view().parts().iter().flat_map(|part| part.message.calls());
        let results: Vec<&str> =
            session.view().parts().iter().flat_map(|part| part.message.results()).map(|r| &*r.id).collect();
        assert_eq!(calls.map(|call| &*call.id).collect::<Vec<_>>(), results, "{name}");
    }
}

// covers: S-10
#[test]
fn a_goal_that_replaces_the_first_request_says_so() {
    for profile in Profile::all() {
        let mut session = session(profile, 20_000);
        session.push(Message::user("Build the parser."));
        ready(&mut session);
        assert!(!text(&session).contains("<goal>"));
        session.push(Message::assistant("It is built."));
        session.set_goal("Build the printer.");
        session.push(Message::user("Go on."));
        ready(&mut session);
        assert_eq!(
            tail(&session),
            "<goal>\nBuild the printer.\n(This replaces the first request and every goal before it.)\n</goal>"
        );
    }
}

// covers: S-12
#[test]
fn every_profile_has_its_own_way_to_fail() {
    let ways: Vec<(String, OnFailure)> =
        Profile::all().into_iter().map(|profile| (profile.name.to_string(), profile.on_failure)).collect();
    let expected = [
        ("longhaul", OnFailure::Extract),
        ("thrifty", OnFailure::Extract),
        ("safe", OnFailure::Extract),
        ("mini", OnFailure::Keep),
        ("transform", OnFailure::Extract),
        ("archive", OnFailure::Cut),
        ("progressive", OnFailure::Next),
    ];
    assert_eq!(ways, expected.map(|(name, way)| (name.to_owned(), way)));
    assert!(Profile::all().iter().all(|profile| profile.summary_timeout == 120));
}

/// Runs that a profile folded or hid after its summariser had failed so often that nobody asks any more.
fn made_while_nobody_is_asked(profile: Profile) -> Vec<(String, bool, String)> {
    let mut session = asking(profile, 6_000);
    let mut before = None;
    for n in 0..120 {
        round(&mut session, n, 16);
        session.push(Message::user("Go on."));
        ready_or(&mut session, Outcome::TimedOut, |_| assert_eq!(before, None, "nobody is to be asked"));
        session.push(Message::assistant("Yes."));
        if before.is_none() && session.stopped() == Some(&Tripped::Failures) {
            before = Some(session.ledger().next_id());
        }
        if session.stopped().is_none() && before.is_some() {
            break;
        }
    }
    let before = before.expect("the summariser failed three times");
    let runs = session.ledger().edits().filter(|(edit, _)| edit.id >= before && edit.kind.replaces_runs());
    runs.map(|(edit, _)| {
        let text = edit.kind.text().map(|text| text.to_string()).unwrap_or_default();
        (edit.strategy.to_string(), matches!(edit.kind, EditKind::Fold { .. }), text)
    })
    .collect()
}

// covers: S-12 A-TIMEOUT
#[test]
fn a_profile_fails_its_own_way_while_nobody_is_asked_too() {
    let runs = made_while_nobody_is_asked(Profile::archive());
    assert!(!runs.is_empty());
    for (strategy, is_fold, text) in runs {
        let cut = text.starts_with("⟦Summary generation timed out, keeping recent history only.");
        assert!(!is_fold && (cut || strategy == "hide-old"), "{strategy}: {text}");
    }
    for (strategy, is_fold, text) in made_while_nobody_is_asked(Profile::progressive()) {
        let extracted = matches!(strategy.as_str(), "full-summary" | "increments");
        assert!(!is_fold || extracted, "{strategy}: {text}");
    }
    let runs = made_while_nobody_is_asked(Profile::longhaul());
    assert!(runs.iter().any(|(_, is_fold, _)| *is_fold));
}

/// A profile that does nothing of its own: what is left is the common end of every ladder.
fn bare() -> Profile {
    Profile { rules: Vec::new(), ladder: Vec::new(), ..Profile::transform() }
}

/// A step whose result has so many lines that no digest can leave out, and none of which is short enough
/// to be left alone.
fn short_step(session: &mut Session, n: usize) {
    session.push(call(&format!("short_{n}"), "Read", r#"{"path":"src/lib.rs"}"#));
    session.push(Message::result(format!("short_{n}"), format!("{:<400}", format!("short_{n} is read"))));
}

fn tail(session: &Session) -> String {
    session.view().tail().map(|tail| shown(&tail.message)).unwrap_or_default()
}

// covers: S-11
#[test]
fn the_end_of_every_ladder_digests_older_results_first() {
    let mut session = session(bare(), 20_000);
    session.push(Message::user("Read all."));
    for n in 0..45 {
        step(&mut session, n, 40);
    }
    ready(&mut session);
    let made = strategies(&session);
    assert!(!made.is_empty() && made.iter().all(|name| name == "digest-running"), "{made:?}");
    // The oldest first, no more than must be, and never the newest step.
    let whole: Vec<bool> = (0..45).map(|n| text(&session).contains(&format!("step_{n} line 20 "))).collect();
    assert!(whole.is_sorted() && whole[44] && whole[40] && !whole[0], "{whole:?}");
    // What must go leaves room for eight more.
    (45..52).for_each(|n| step(&mut session, n, 40));
    let before = strategies(&session).len();
    ready(&mut session);
    assert_eq!(strategies(&session).len(), before);
    assert!(session.ledger().edits().all(|(edit, _)| edit.why == Why::Forced(longhaul::edits::Limit::Hard)));
}

// covers: S-11
#[test]
fn the_end_of_every_ladder_hides_the_oldest_steps_next() {
    let mut session = session(bare(), 4_000);
    session.push(Message::user("Read all."));
    for n in 0..40 {
        short_step(&mut session, n);
    }
    ready(&mut session);
    assert_eq!(strategies(&session), ["hide-old"]);
    let shown: Vec<bool> = (0..40).map(|n| text(&session).contains(&format!("short_{n} is read"))).collect();
    assert!(shown.is_sorted() && shown[39] && !shown[0], "{shown:?}");
    assert!(parts(&session)[0] == "Read all." && parts(&session)[1].starts_with('⟦'));
    // What is hidden is a little more than what must go, and what the next eight steps take.
    let step = session.sizes()[1..].iter().map(|size| size.counted as u64).sum::<u64>() / 40;
    let room = session.budget().hard.0 - session.size().tokens.0;
    assert!((8 * step..12 * step).contains(&room), "{room} for steps of {step}");
}

// covers: S-11
#[test]
fn the_end_of_every_ladder_cuts_the_newest_step_last() {
    let mut session = session(bare(), 4_000);
    session.push(Message::user("Read all."));
    step(&mut session, 0, 800);
    ready(&mut session);
    assert_eq!(strategies(&session), ["cut-newest"]);
    let all = text(&session);
    let has = |line: usize| all.contains(&format!("step_0 line {line} "));
    assert!(has(0) && has(799) && !has(400) && all.contains(" left out; recall "), "head and tail\n{all}");
    // Two thirds from the start, one from the end.
    let kept = |lines: std::ops::Range<usize>| lines.filter(|line| has(*line)).count();
    let (head, tail) = (kept(0..400), kept(400..800));
    assert!(head > tail * 17 / 10 && head < tail * 23 / 10, "{head} {tail}");
}

// covers: S-11
#[test]
fn each_rung_of_the_common_end_has_its_turn() {
    for profile in Profile::all() {
        let mut session =
            session(Profile { rules: Vec::new(), ladder: Vec::new(), by_task: false, ..profile }, 2_000);
        session.push(Message::user("Read all."));
        for n in 0..10 {
            step(&mut session, n, 30);
        }
        for n in 0..20 {
            short_step(&mut session, n);
        }
        step(&mut session, 99, 900);
        ready(&mut session);
        let mut rungs = strategies(&session);
        rungs.dedup();
        assert_eq!(rungs, ["digest-running", "hide-old", "cut-newest"], "{}", session.profile().name);
        assert!(text(&session).contains("Read all.") && text(&session).contains("step_99 line 0 "));
    }
}

// covers: S-11
#[test]
fn what_nothing_can_take_away_is_an_error_with_its_name() {
    let mut system = session(bare(), 2_000);
    system.push(Message::system("word ".repeat(2_000)));
    system.push(Message::user("Go on."));
    let Err(PrepareError::TooLarge { what, hard, window, .. }) = system.prepare(None) else { panic!() };
    assert_eq!((what, hard, window), (TooLarge::System, Tokens(1_700), Tokens(2_000)));
    let mut pictures = session(bare(), 1_000);
    let picture = || {
        let source = Json::new(r#"{"data":"iVBORw0KGgo"}"#).unwrap();
        Block::Image(longhaul::conversation::Image { source, size: None, extra: Extra::NONE })
    };
    pictures.push(Message::new(Role::User, (0..20).map(|_| picture()).collect()));
    let Err(PrepareError::TooLarge { what, .. }) = pictures.prepare(None) else { panic!() };
    assert_eq!(what, TooLarge::Message(longhaul::Position(0)));
}

// covers: P-KEEP
#[test]
fn the_newest_ten_memories_are_kept() {
    for profile in Profile::all() {
        let mut session = session(profile, 20_000);
        session.push(Message::user("Go on."));
        for n in 0..11 {
            session.remember(format!("m{n}"), format!("memory number {n}"));
        }
        ready(&mut session);
        let kept: Vec<bool> =
            (0..11).map(|n| tail(&session).contains(&format!("memory number {n}\n"))).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 10);
        assert!(!kept[0]);
    }
}

/// How much of each item is shown where all of them have so many bytes and the room is what it is: git stat,
/// memory, task list, rules, goal, pin.
fn kept_of(each: usize, window: u64) -> [usize; 6] {
    let mut session = session(Profile::progressive(), window);
    let long = |letter: &str| letter.repeat(each);
    session.set_git_stat(Some(&long("G")));
    session.remember("m", long("M"));
    session.set_todos(Some(&long("T")));
    session.set_rules("law", Some(&long("R")));
    session.set_goal(long("L"));
    session.pin("p", long("P"));
    session.push(Message::user("Go on."));
    ready(&mut session);
    let all = text(&session);
    ["G", "M", "T", "R", "L", "P"].map(|letter| {
        // Some letters stand in the words around.
        let runs = all.split(|c: char| !letter.contains(c)).filter(|run| run.len() > 20);
        runs.map(str::len).sum()
    })
}

// covers: P-KEEP
#[test]
fn what_must_be_kept_is_cut_in_its_order_and_never_below_400_bytes() {
    // A window of 8,000 has 6,800 tokens below its hard limit; half of that is 13,600 bytes, in rough steps
    // 13,312.
    const ROOM: usize = 13_312;
    assert_eq!(kept_of(ROOM / 6, 8_000), [ROOM / 6; 6]);
    // The least is 400 bytes: 266 from the start, 133 from the end.
    const LEAST: usize = 399;
    let whole = |kept: &[usize], each: usize| kept.iter().all(|kept| *kept == each);
    let git = kept_of(2_400, 8_000);
    assert!(git[0] > LEAST && git[0] < 2_400 && whole(&git[1..], 2_400), "{git:?}");
    let memories = kept_of(2_800, 8_000);
    assert!(memories[0] == LEAST && whole(&memories[3..], 2_800), "{memories:?}");
    // Memories and the task list share what there is.
    assert!(memories[1] == memories[2] && memories[1] > LEAST && memories[1] < 2_800, "{memories:?}");
    let rules = kept_of(4_200, 8_000);
    assert!(whole(&rules[..3], LEAST) && whole(&rules[4..], 4_200), "{rules:?}");
    assert!(rules[3] > LEAST && rules[3] < 4_200, "{rules:?}");
    let goal = kept_of(6_300, 8_000);
    assert!(whole(&goal[..4], LEAST) && goal[5] == 6_300, "{goal:?}");
    assert!(goal[4] > LEAST && goal[4] < 6_300, "{goal:?}");
    let pin = kept_of(13_000, 8_000);
    assert!(whole(&pin[..5], LEAST) && pin[5] > LEAST && pin[5] < 13_000, "{pin:?}");
}

// covers: S-10 S-11
#[test]
fn the_first_request_is_the_last_that_is_hidden() {
    let mut session = session(bare(), 2_000);
    session.push(Message::user("Mend the parser of dates."));
    session.push(Message::assistant("It is mended."));
    session.push(Message::user("Read all."));
    for n in 0..20 {
        short_step(&mut session, n);
    }
    ready(&mut session);
    assert_eq!(strategies(&session), ["hide-old"]);
    assert_eq!(parts(&session)[0], "Mend the parser of dates.");
    assert!(parts(&session)[1].ends_with("\n[✓] Mend the parser of dates. - It is mended."));
    assert!(!parts(&session).contains(&"It is mended.".to_owned()) && tail(&session).is_empty());
}
