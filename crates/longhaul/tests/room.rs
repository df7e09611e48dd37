//! Room: how often a session is compacted, whatever its requests allow for answers, and whatever usage says.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use longhaul::edits::EditKind;
use longhaul::size::Measure;
use longhaul::view::Source;
use longhaul::{
    Block, Cursor, Entry, Frame, Json, Message, Meter, Notice, Outcome, Overflow, Prepared, Profile, Session,
    Summariser, Tokens, Usage, Why,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Limits alone start a compaction: steps are too small to pay back.
fn begun(profile: Profile, window: u64, max_tokens: u64, system: u64) -> Session {
    let mut session = Session::new(profile, model("m", window)).with_meter(Meter::neutral());
    session.set_max_output(Tokens(max_tokens));
    let words = "word ".repeat(usize::try_from(system).unwrap() * 4 / 5);
    session.set_frame(Frame { system: vec![Block::text(words)], ..Frame::default() });
    session.push(Message::user("Find the bug."));
    session
}

/// Requests that did not extend the one before.
fn breaks(session: &Session) -> usize {
    let broke = |entry: &&Entry| matches!(entry, Entry::Sent(sent) if sent.broke);
    session.since(Cursor(0)).filter(broke).count()
}

/// The requests at which a limit forced a compaction.
fn forced(session: &Session) -> Vec<u64> {
    let mut calls = 0;
    let mut forced = Vec::new();
    for entry in session.since(Cursor(0)) {
        match entry {
            Entry::Sent(sent) => calls = sent.ticket.0,
            Entry::Edit(edit) if matches!(edit.why, Why::Forced(_)) => forced.push(calls),
            _ => {}
        }
    }
    forced.dedup();
    forced
}

/// The tokens of an average step, with what people said around it.
fn average_step(session: &Session) -> u64 {
    let answers =
        session.log().messages().iter().filter(|message| message.role() == longhaul::Role::Assistant);
    let said: Measure = session.sizes().iter().copied().sum();
    session.meter().tokens(said).tokens.0 / answers.count().max(1) as u64
}

/// The tokens in view that a fold could take: neither the newest step nor the current input, nor an opening that is kept.
fn foldable(session: &Session) -> Tokens {
    let log = session.log();
    let stays = |at| log.opening().contains(at) || log.protected().any(|span| span.contains(at));
    let parts = session.view().parts().iter();
    let old = parts.filter(|part| matches!(part.source, Source::Message(at) if !stays(at)));
    session.meter().tokens(old.map(|part| part.measure).sum()).tokens
}

/// The tokens of summaries in view.
fn folds(session: &Session) -> Tokens {
    let folds = session.view().parts().iter().filter(|part| matches!(part.source, Source::Edit(_)));
    session.meter().tokens(folds.map(|part| part.measure).sum()).tokens
}

/// What the view shows, and its sizes.
fn shown(session: &Session) -> String {
    let tokens = |measure| session.meter().tokens(measure).tokens;
    let parts =
        session.view().parts().iter().map(|part| format!("{:?} {}", part.source, tokens(part.measure)));
    let shown = parts.collect::<Vec<_>>().join(", ");
    let protected: Vec<_> = session.log().protected().collect();
    format!("{shown}; opening {:?}, protected {protected:?}", session.log().opening())
}

#[test]
fn a_large_max_tokens_does_not_make_it_fold_more_often() {
    let run = |window, max_tokens| {
        let mut session = begun(Profile::longhaul(), window, max_tokens, 12_000);
        for n in 0..60 {
            ready(&mut session);
            step(&mut session, n, 20_000);
        }
        breaks(&session)
    };
    for window in [60_000, 120_000, 200_000] {
        let (small, large) = (run(window, 8_000), run(window, 128_000));
        assert!(large as f64 <= small as f64 * 1.3 + 1.0, "{window}: {small} and {large} breaks");
    }
}

#[test]
fn a_cramped_window_is_reported_once() {
    let mut session = begun(Profile::longhaul(), 32_000, 32_000, 17_000);
    let mut told = Vec::new();
    for n in 0..30 {
        ready(&mut session);
        told.extend(session.take_notices().into_iter().filter(|n| matches!(n, Notice::Cramped(_))));
        step(&mut session, n, 8_000);
    }
    let [notice] = &told[..] else { panic!("{told:?}") };
    let says = notice.to_string();
    assert!(
        says.starts_with("room for 5 steps of ")
            && says.ends_with(" tokens: 17004 of 27200 always stay; use a larger window or fewer tools"),
        "{says}"
    );
    // A conversation that is loaded again, or forked, does not report it again.
    let begin = Cursor(0);
    for mut again in [reload(&session), session.fork(session.log().end()).unwrap()] {
        for n in 30..60 {
            ready(&mut again);
            step(&mut again, n, 8_000);
        }
        assert!(!again.take_notices().iter().any(|n| matches!(n, Notice::Cramped(_))));
        let reports = again.since(begin).filter(|entry| matches!(entry, Entry::CrampedReported)).count();
        assert_eq!(reports, 1);
    }
    let mut roomy = begun(Profile::longhaul(), 200_000, 32_000, 17_000);
    for n in 0..30 {
        ready(&mut roomy);
        step(&mut roomy, n, 8_000);
    }
    assert!(!roomy.take_notices().iter().any(|n| matches!(n, Notice::Cramped(_))));
}

/// After a forced compaction, the newest steps are among what is left: they do not always stay.
#[test]
fn a_compaction_that_leaves_little_room_is_not_told_as_what_always_stays() {
    let mut session = begun(Profile::longhaul(), 16_000, 8_000, 500);
    let mut told = Vec::new();
    for n in 0..30 {
        step(&mut session, n, 14_000);
        ready(&mut session);
        told.extend(session.take_notices().into_iter().filter(|n| matches!(n, Notice::Cramped(_))));
    }
    let [notice] = &told[..] else { panic!("{told:?}") };
    let says = notice.to_string();
    assert!(says.ends_with(" are left after a compaction; use a larger window"), "{says}");
}

/// A strategy of the last resort (S-11).
fn is_last_resort(strategy: &str) -> bool {
    ["digest-running", "hide-old", "cut-newest", "hide-opening"].contains(&strategy)
}

/// One random history: which profile, how large everything is, and how uneven.
#[derive(Debug, Clone)]
struct History {
    profile: usize,
    window: u64,
    max_tokens: u64,
    system_percent: u64,
    /// The average step, in thousandths of the room.
    share: u64,
    /// The steps, in percent of the average, and whether a step is mostly words of the model.
    steps: Vec<(u64, bool)>,
    /// Steps of a turn.
    turn: usize,
    /// A model is to write summaries, and writes none.
    fails: bool,
}

fn random_histories() -> impl Strategy<Value = History> {
    let window = prop::sample::select(vec![16_000_u64, 32_000, 64_000, 200_000, 1_000_000]);
    let max_tokens = prop::sample::select(vec![1_000_u64, 8_000, 32_000, 128_000]);
    let percent = prop_oneof![40 => 20_u64..200, 3 => 400_u64..900, 1 => 2_000_u64..15_000];
    let steps = prop::collection::vec((percent, prop::bool::weighted(0.3)), 40);
    let fails = prop::bool::weighted(0.3);
    (0..7_usize, window, max_tokens, 0_u64..=60, 10_u64..100, steps, 5_usize..60, fails).prop_map(
        |(profile, window, max_tokens, system_percent, share, steps, turn, fails)| History {
            profile,
            window,
            max_tokens,
            system_percent,
            share,
            steps,
            turn,
            fails,
        },
    )
}

/// Prepares a request; summaries that are asked for do not come.
fn prepare_without_summaries(session: &mut Session) {
    while let Prepared::Summarise(job) = session.prepare(None).unwrap() {
        session.resolve(job.id, Outcome::TimedOut);
    }
}

/// Plays a history, and gives how many compactions had to leave room. In `longhaul` and its siblings each forced one
/// must, below the trigger; in the others the last resort must, below the hard limit.
fn compactions_that_leave_room(history: &History) -> Result<usize, TestCaseError> {
    let History { window, max_tokens, share, turn, .. } = *history;
    let mut profile = Profile::all().swap_remove(history.profile);
    if history.fails {
        (profile.summariser, profile.background) = (Summariser::Host, false);
    }
    let (name, has_dial) = (profile.name.clone(), profile.dial.is_some());
    let system = window * history.system_percent / 100;
    let mut session = begun(profile, window, max_tokens, system);
    let room = session.budget().hard - Tokens(system);
    let (mut edits, mut found) = (0, 0);
    let calls = usize::try_from(2_500 / share).unwrap().min(160);
    for (n, (percent, is_wordy)) in history.steps.iter().cycle().take(calls).enumerate() {
        prepare_without_summaries(&mut session);
        let made: Vec<(Why, Box<str>)> =
            session.ledger().edits().skip(edits).map(|(edit, _)| (edit.why, edit.strategy.clone())).collect();
        edits += made.len();
        let must_leave = made
            .iter()
            .any(|(why, strategy)| matches!(why, Why::Forced(_)) && (has_dial || is_last_resort(strategy)));
        // An average says nothing before four answers.
        if must_leave && n >= 4 {
            found += 1;
            let budget = session.budget();
            let limit = if has_dial { budget.trigger } else { budget.hard };
            let (free, step) = (limit - session.size().tokens, average_step(&session));
            // Sizes are whole tokens, and a summary of one more step would not leave much more.
            let is_free = free.0 * 100 >= step * 8 * 99;
            let is_folded =
                foldable(&session).0 < step * 2 + 100 && folds(&session).0 <= budget.shared.0 / 10 + 1_000;
            prop_assert!(
                is_free || is_folded,
                "{name}, call {n}: {free} free, 8 × {step} wanted after {made:?}: {}",
                shown(&session)
            );
        }
        // Some steps are larger than the room.
        let bytes = (room.0 * 4 * share / 1_000 * percent / 100).min(room.0 * 4 * 15 / 10);
        let bytes = usize::try_from(bytes).unwrap();
        if *is_wordy {
            wordy_step(&mut session, n, bytes)
        } else {
            step(&mut session, n, bytes)
        }
        if n % turn == turn - 1 {
            session.push(Message::assistant("Done with this one."));
            session.push(Message::user(format!("Now look at number {n} of the list, and at what it needs.")));
        }
    }
    prop_assert_eq!(session.audit(), vec![]);
    Ok(found)
}

/// A forced compaction leaves room for eight average steps, or nothing that could be folded: in every profile, with its
/// own ladder.
#[test]
fn a_forced_compaction_leaves_room() {
    let found = std::cell::RefCell::new([0; 7]);
    let mut runner = proptest::test_runner::TestRunner::new(common::histories::histories(128));
    let played = runner.run(&random_histories(), |history| {
        found.borrow_mut()[history.profile] += compactions_that_leave_room(&history)?;
        Ok(())
    });
    played.unwrap_or_else(|failure| panic!("{failure}"));
    // Other histories than the usual ones may have none.
    if ["HISTORIES_SEED", "PROPTEST_CASES"].iter().all(|name| std::env::var_os(name).is_none()) {
        assert!(found.borrow().iter().all(|count| *count > 0), "{:?}", found.borrow());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// No usage figure decides whether there is a view, and sizes are right three honest reports later.
    #[test]
    fn no_usage_figure_decides_whether_there_is_a_view(
        window in prop::sample::select(vec![20_000_u64, 60_000, 200_000]),
        figures in prop::collection::vec(
            prop::sample::select(vec![None, Some(0.0), Some(0.1), Some(0.4), Some(1.0), Some(1.0), Some(2.5), Some(10.0), Some(100.0), Some(1e12)]),
            30,
        ),
        output in prop::sample::select(vec![0_u64, 500, 60_000, u64::MAX]),
    ) {
        let mut session = Session::new(Profile::longhaul(), model("m", window));
        let words = "word ".repeat(usize::try_from(window).unwrap() * 2 / 5);
        session.set_frame(Frame { system: vec![Block::text(words)], ..Frame::default() });
        session.push(Message::user("Find the bug."));
        let honest = |session: &Session| Meter::for_model(session.model()).tokens(session.view().measure()).tokens.0;
        let call = |session: &mut Session, n: usize, figure: Option<f64>, output: u64| {
            prop_assert!(session.prepare(None).is_ok(), "no view at call {}", n);
            prop_assert_eq!(session.audit(), vec![]);
            if let Some(times) = figure {
                let input = (honest(session) as f64 * times) as u64;
                observe(session, &Usage { input, output, ..Usage::default() });
            }
            step(session, n, 2_000);
            Ok(())
        };
        for (n, figure) in figures.into_iter().enumerate() {
            call(&mut session, n, figure, output)?;
        }
        for n in 30..33 {
            call(&mut session, n, Some(1.0), 100)?;
        }
        prop_assert!(session.prepare(None).is_ok());
        let (size, real) = (session.size().tokens.0 as f64, honest(&session) as f64);
        prop_assert!((size - real).abs() < real * 0.1 + 500.0, "{} for {}", size, real);
    }
}

/// Two reports that agree contradict the ones before, and what those taught: a fold right after is counted by neither.
#[test]
fn a_jump_that_is_believed_takes_back_what_earlier_reports_taught() {
    let mut session = Session::new(Profile::longhaul(), model("m", 20_000));
    session.push(Message::user("Find the bug."));
    let honest =
        |session: &Session| Meter::for_model(session.model()).tokens(session.view().measure()).tokens.0;
    for (n, times) in [0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 1.0, 1.0].into_iter().enumerate() {
        ready(&mut session);
        let input = (honest(&session) as f64 * times) as u64;
        observe(&mut session, &Usage { input, ..Usage::default() });
        step(&mut session, n, 8_000);
    }
    session.compact_now();
    ready(&mut session);
    let (size, real) = (session.size().tokens.0, honest(&session));
    assert!(size.abs_diff(real) < real / 10 + 200, "{size} for {real}");
}

#[test]
fn one_report_of_ten_times_the_prompt_changes_nothing() {
    let mut session = Session::new(Profile::longhaul(), model("m", 60_000));
    session.push(Message::user("Find the bug."));
    for n in 0..45 {
        ready(&mut session);
        let prompt = Meter::for_model(session.model()).tokens(session.view().measure()).tokens.0;
        let input = if n == 12 { prompt * 10 } else { prompt };
        observe(&mut session, &Usage { input, ..Usage::default() });
        assert!(session.size().tokens.0 <= prompt + 100, "{n}");
        step(&mut session, n, 3_000);
    }
    assert!(breaks(&session) < 5, "{}", breaks(&session));
}

#[test]
fn an_overflow_that_names_a_smaller_prompt_does_not_make_sizes_nothing() {
    let mut session = Session::new(Profile::longhaul(), model("m", 60_000));
    session.push(Message::user("Find the bug."));
    for n in 0..14 {
        ready(&mut session);
        step(&mut session, n, 12_000);
    }
    let ticket = ticket(&mut session);
    let size = session.size().tokens;
    let said = Overflow {
        prompt: Some(size.min(Tokens(size.0 * 2 / 5))),
        window: Some(Tokens(10_000)),
        answer: None,
    };
    session.overflowed(ticket, said);
    ready(&mut session);
    let counted = Meter::for_model(session.model()).tokens(session.view().measure()).tokens;
    assert!(session.size().tokens >= Tokens(counted.0 * 3 / 10) && counted > Tokens(1_000), "{counted:?}");
}

/// A session whose provider wants prompt and answer together in its window, and said so.
fn refused(window: u64, named: Overflow, settings: &str) -> Session {
    let mut session = Session::new(Profile::longhaul(), model("m", window)).with_meter(Meter::neutral());
    session.set_frame(Frame::from_json(&Json::new(settings).unwrap()).unwrap());
    session.push(Message::user("Find the bug. ".repeat(30_000)));
    let ticket = ticket(&mut session);
    assert_eq!(session.shorter_answer(), None, "nobody has refused it yet");
    session.overflowed(ticket, named);
    ready(&mut session);
    session
}

#[test]
fn an_answer_is_allowed_less_where_the_provider_counts_it_with_the_prompt() {
    let named = |window, answer| Overflow { prompt: None, window: Some(Tokens(window)), answer };
    let asks = r#"{"max_tokens": 128000}"#;
    // 105,000 tokens of prompt, and a hundredth of the window for what is not known: nothing is taken out.
    let session = refused(200_000, named(200_000, Some(Tokens(128_000))), asks);
    let size = session.size().tokens;
    assert_eq!((session.ledger().edits().count(), breaks(&session)), (0, 0));
    assert_eq!(session.shorter_answer(), Some(Tokens(198_000) - size));
    assert_eq!(reload(&session).shorter_answer(), session.shorter_answer());
    assert_eq!(session.outgoing().shorter_answer, session.shorter_answer());
    // It is never raised, and never as low as its thinking.
    let modest = refused(200_000, named(200_000, Some(Tokens(90_000))), r#"{"max_tokens": 90000}"#);
    assert_eq!(modest.shorter_answer(), None);
    let thinks = r#"{"max_tokens": 128000, "thinking": {"type": "enabled", "budget_tokens": 99000}}"#;
    let thinking = refused(200_000, named(200_000, Some(Tokens(128_000))), thinks);
    let answer = thinking.shorter_answer().unwrap();
    assert!(answer > Tokens(99_000) && thinking.size().tokens + answer <= Tokens(200_000), "{answer}");
    // Where no answer of use would fit, the prompt becomes shorter: 8,000 tokens stay free.
    let small = refused(120_000, named(110_000, Some(Tokens(32_000))), r#"{"max_tokens": 32000}"#);
    assert!(small.budget().hard <= Tokens(102_000) && small.size().tokens <= small.budget().hard);
    // A refusal of the prompt alone is as it was: the prompt becomes shorter, the answer stays.
    let long = refused(200_000, named(100_000, None), asks);
    assert!(long.size().tokens < Tokens(100_000) && long.shorter_answer().is_none());
}

#[test]
fn thinking_is_kept_free_in_the_providers_window_alone() {
    let thinks = r#"{"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 31999}}"#;
    let budget = |window, shared| {
        let mut session = Session::new(Profile::longhaul(), model("m", window));
        session.set_frame(Frame::from_json(&Json::new(thinks).unwrap()).unwrap());
        session.set_shared_window(Tokens(shared));
        session.budget()
    };
    // 32,000 tokens, and a hundredth for what is not known.
    assert_eq!(budget(128_000, 128_000).reserve, Tokens(33_280));
    // A host that leaves most of the provider's window unused has room for the answer there.
    assert_eq!(budget(60_000, 200_000).reserve, Tokens(9_000));
    // In a small one, half is for the prompt.
    assert_eq!(budget(12_000, 12_000).reserve, Tokens(6_000));
}

#[test]
fn a_shared_window_that_another_conversation_learnt_bounds_this_one() {
    let asks = r#"{"max_tokens": 32000}"#;
    let begun = |model| {
        let mut session = Session::new(Profile::longhaul(), model);
        session.set_frame(Frame::from_json(&Json::new(asks).unwrap()).unwrap());
        session
    };
    let mut session = begun(model("m", 200_000));
    session.set_shared_window(Tokens(999));
    assert_eq!((session.budget().window, session.shared_window()), (Tokens(200_000), None));
    session.set_shared_window(Tokens(65_536));
    assert_eq!(session.budget().window, Tokens(65_536));
    assert_eq!(reload(&session).budget(), session.budget());
    // A model's row is a default: what the host sets goes before it.
    let row = longhaul::Model { counts_answer: Some(true), ..model("m", 128_000) };
    let set = begun(row.clone()).with_window(Tokens(256_000));
    assert_eq!(set.budget().window, Tokens(256_000));
    // The provider's own word goes before both, also where it is the row's.
    let mut learnt = begun(row).with_window(Tokens(256_000));
    learnt.set_shared_window(Tokens(128_000));
    assert_eq!(learnt.budget().window, Tokens(128_000));
}

#[test]
fn a_prompt_of_which_the_provider_counted_the_start_alone_teaches_no_size() {
    let said = |prompt| Overflow {
        prompt: Some(Tokens(prompt)),
        window: Some(Tokens(200_000)),
        answer: Some(Tokens(128_000)),
    };
    let asks = r#"{"max_tokens": 128000}"#;
    let size = |session: &Session| session.size().tokens;
    let counted = size(&refused(200_000, said(110_000), asks)).0;
    assert!((105_000..115_000).contains(&counted), "{counted}");
    // 200,000 - 128,000 + 1: the provider stopped there.
    let least = refused(200_000, said(72_001), asks);
    assert!((100_000..110_000).contains(&size(&least).0), "{}", size(&least));
    assert!(size(&least) + least.shorter_answer().unwrap() <= Tokens(200_000));
}

/// A step that is mostly words of the model: digests of results make little room.
fn wordy_step(session: &mut Session, n: usize, bytes: usize) {
    let id = format!("call_{n}");
    let words = format!("I think about value_{n} of step_{n} again. ");
    let call = Block::call(&*id, "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap());
    let said = Block::text(words.repeat(bytes * 85 / 100 / words.len()));
    session.push(Message::new(longhaul::Role::Assistant, vec![said, call]));
    let line = format!("line of step_{n} with value_{n} in it\n");
    session.push(Message::result(id, line.repeat(bytes * 15 / 100 / line.len())));
}

#[test]
fn the_last_resort_does_not_come_back_at_the_next_call() {
    for profile in [
        Profile::mini(),
        Profile::transform(),
        Profile::archive(),
        Profile::progressive(),
        Profile::longhaul(),
    ] {
        for (bytes, window) in [(3_000, 24_000), (5_000, 40_000), (6_000, 32_000), (10_000, 64_000)] {
            // The profile's own ladder takes nothing: what is left is the last resort.
            let bare = Profile { rules: Vec::new(), ladder: Vec::new(), by_task: false, ..profile.clone() };
            let mut session = begun(bare, window, 8_000, 1_000);
            for n in 0..80 {
                ready(&mut session);
                wordy_step(&mut session, n, bytes);
            }
            let calls = forced(&session);
            let gaps: Vec<u64> = calls.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let name = session.profile().name.clone();
            assert!(!gaps.is_empty() && gaps.iter().all(|gap| *gap >= 7), "{name} {window} {calls:?}");
        }
    }
}

/// A result that a program of the provider reads comes whole, also where the last resort cuts what is new; once it is
/// old, it is a result like others.
#[test]
fn a_result_that_a_program_reads_is_not_cut() {
    let by = |caller: &str| {
        let mut extra = longhaul::Extra::NONE;
        extra.set("caller", Json::new(format!(r#"{{"type":"{caller}"}}"#)).unwrap());
        extra
    };
    let rows: String = (0..2_200).map(|n| format!("row {n},{},{}\n", n * 7 % 101, n * 31 % 997)).collect();
    let noise: String = (0..900).map(|n| format!("Downloading part {n} of 900 ... {}%\r", n / 9)).collect();
    let rows = format!("{noise}\n{rows}");
    let after = |profile: &Profile, caller: &str, window: u64| {
        let mut session = Session::new(profile.clone(), model("m", window)).with_meter(Meter::neutral());
        session.push(Message::user("Which store sold the most?"));
        for n in 0..3 {
            step(&mut session, n, 2_000);
        }
        let Block::ToolCall(call) = Block::call("rows", "query", Json::empty_object()) else {
            unreachable!()
        };
        let call = Block::ToolCall(longhaul::conversation::ToolCall { extra: by(caller), ..call });
        session.push(Message::new(longhaul::Role::Assistant, vec![call]));
        session.push(Message::result("rows", rows.clone()));
        session
    };
    let is_whole = |session: &Session| text(session).contains(&rows);
    assert!(rows.len() > 60_000);
    for profile in [
        Profile::longhaul(),
        Profile::thrifty(),
        Profile::mini(),
        Profile::transform(),
        Profile::archive(),
        Profile::progressive(),
    ] {
        let name = profile.name.clone();
        let mut program = after(&profile, "code_execution_20260120", 60_000);
        ready(&mut program);
        assert!(is_whole(&program), "{name}");
        // It does not fit: the request is refused here rather than with half of the data.
        let mut narrow = after(&profile, "code_execution_20260120", 12_000);
        assert!(narrow.prepare(None).is_err() && is_whole(&narrow), "{name}");
        let mut direct = after(&profile, "direct", 12_000);
        ready(&mut direct);
        assert!(!is_whole(&direct), "{name}");
        for n in 10..60 {
            step(&mut program, n, 20_000);
            ready(&mut program);
        }
        assert!(!is_whole(&program), "{name}");
    }
}

#[test]
fn the_longest_answer_is_kept_free_after_a_reload_too() {
    let mut session = begun(Profile::longhaul(), 200_000, 128_000, 1_000);
    let mut answered = |output: u64| {
        ready(&mut session);
        let input = session.size().tokens.0;
        observe(&mut session, &Usage { input, output, ..Usage::default() });
        let n = session.log().messages().len();
        step(&mut session, n, 2_000);
        assert_eq!(reload(&session).budget(), session.budget());
        session.budget().reserve
    };
    assert_eq!(answered(2_000), Tokens(30_000));
    assert_eq!(answered(45_000), Tokens(45_000));
    assert_eq!(answered(500), Tokens(45_000));
}

/// A session in a provider's window of 200,000 tokens, with a prompt of about so many.
fn counted(counts_answer: Option<bool>, settings: &str, prompt: usize) -> Session {
    let model = longhaul::Model { counts_answer, ..model("m", 200_000) };
    let mut session = Session::new(Profile::longhaul(), model).with_meter(Meter::neutral());
    session.set_frame(Frame::from_json(&Json::new(settings).unwrap()).unwrap());
    session.push(Message::user("word".repeat(prompt)));
    session
}

#[test]
fn the_table_of_models_says_who_counts_the_answer_with_the_prompt() {
    let asks = r#"{"max_tokens": 128000}"#;
    let shorter = |counts| {
        let mut session = counted(counts, asks, 100_000);
        ready(&mut session);
        assert_eq!(session.ledger().edits().count(), 0);
        session.shorter_answer().map(|answer| answer + session.size().tokens)
    };
    assert_eq!(shorter(Some(true)), Some(Tokens(198_000)));
    // Before a refusal nobody knows.
    assert_eq!((shorter(Some(false)), shorter(None)), (None, None));
}

#[test]
fn a_window_that_the_host_sets_lowers_no_answer() {
    for (max_tokens, is_lowered) in [(128_000, false), (180_000, true)] {
        let asks = format!(r#"{{"max_tokens": {max_tokens}}}"#);
        let mut session = counted(Some(true), &asks, 1_000).with_window(Tokens(60_000));
        let mut lowered = Vec::new();
        for n in 0..40 {
            ready(&mut session);
            let size = session.size().tokens;
            assert!(size <= Tokens(60_000));
            lowered.extend(session.shorter_answer().map(|answer| (answer + size).0));
            step(&mut session, n, 8_000);
        }
        assert_eq!(!lowered.is_empty(), is_lowered, "{max_tokens}: {lowered:?}");
        // What is taken off is what the provider's own window has no room for.
        assert!(lowered.iter().all(|both| *both == 198_000), "{lowered:?}");
    }
}

#[test]
fn an_answer_is_lowered_no_further_than_it_may_be() {
    let mut lowered = 0;
    for prompt in [10_000, 100_000, 150_000, 185_000] {
        for asked in [1_000, 8_000, 32_000, 128_000] {
            for thinking in [0, 6_000, 31_999, 99_000].into_iter().filter(|thinking| *thinking < asked) {
                for longest in [0, 7_000, 30_000, 90_000].into_iter().filter(|longest| *longest <= asked) {
                    let budget =
                        format!(r#", "thinking": {{"type": "enabled", "budget_tokens": {thinking}}}"#);
                    let thinks = if thinking > 0 { budget } else { String::new() };
                    let asks = format!(r#"{{"max_tokens": {asked}{thinks}}}"#);
                    let mut session = counted(Some(true), &asks, 2_000);
                    ready(&mut session);
                    let input = session.size().tokens.0;
                    observe(&mut session, &Usage { input, output: longest, ..Usage::default() });
                    session.push(Message::assistant("Go on."));
                    session.push(Message::user("word".repeat(prompt)));
                    ready(&mut session);
                    let about = format!("{prompt} asked {asked} thinking {thinking} longest {longest}");
                    let Some(answer) = session.shorter_answer().map(|answer| answer.0) else { continue };
                    lowered += 1;
                    assert!(answer < asked, "{about}: {answer}");
                    assert!(answer >= 8_000.max(longest) && answer > thinking, "{about}: {answer}");
                    assert!(session.size().tokens.0 + answer <= 200_000, "{about}: {answer}");
                }
            }
        }
    }
    assert!(lowered > 20, "{lowered}");
}

/// What a fold for its price takes, at each moment at which one is made, and why.
fn batches_by_price(profile: Profile, window: u64, steps: usize) -> Vec<(Why, Tokens)> {
    let mut session = Session::new(profile, model("m", window)).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    let mut minute = 0;
    for n in 0..steps {
        // Now and then a person is away for longer than the cache lasts.
        minute += if n % 23 == 22 { 90 } else { 1 };
        let prepared = session.prepare(Some(longhaul::Time(minute * 60_000_000))).unwrap();
        assert!(matches!(prepared, longhaul::Prepared::Send(_)));
        step(&mut session, n, if n % 5 == 0 { 12_000 } else { 3_000 });
    }
    let mut batches: Vec<(Why, Tokens)> = Vec::new();
    for entry in session.since(Cursor(0)) {
        match entry {
            Entry::CompactionBegan(began) if matches!(began.why, Why::PaysBack | Why::Cold) => {
                batches.push((began.why, Tokens::ZERO));
            }
            Entry::Edit(edit) if matches!(edit.why, Why::PaysBack | Why::Cold) => {
                assert!(matches!(edit.kind, EditKind::Fold { .. }), "a lone digest by price: {edit:?}");
                batches.last_mut().unwrap().1 += edit.before;
            }
            _ => {}
        }
    }
    batches
}

#[test]
fn what_is_done_for_its_price_is_a_fold_and_no_small_one() {
    for (window, floor, steps) in [(64_000, 7_680, 150), (200_000, 8_000, 250), (1_000_000, 8_000, 500)] {
        let profiles = [Profile::longhaul(), Profile::thrifty(), Profile::safe()];
        let batches: Vec<(Why, Tokens)> =
            profiles.into_iter().flat_map(|profile| batches_by_price(profile, window, steps)).collect();
        assert!(batches.iter().all(|(_, took)| took.0 >= floor), "{window}: {batches:?}");
        let whys: Vec<Why> = batches.iter().map(|(why, _)| *why).collect();
        assert!(whys.contains(&Why::PaysBack) && whys.contains(&Why::Cold), "{window}: {whys:?}");
    }
}

/// A provider that takes more than it did: what it refused before bounds nothing.
#[test]
fn a_shared_window_that_grows_lifts_what_a_refusal_has_taught() {
    let named = Overflow { prompt: None, window: Some(Tokens(60_000)), answer: Some(Tokens(32_000)) };
    let mut session = refused(200_000, named, r#"{"max_tokens": 32000}"#);
    assert_eq!(session.budget().window, Tokens(60_000));
    session.set_shared_window(Tokens(50_000));
    assert_eq!(session.budget().window, Tokens(50_000));
    session.set_shared_window(Tokens(1_000_000));
    assert_eq!(
        (session.budget().window, session.shared_window()),
        (Tokens(200_000), Some(Tokens(1_000_000)))
    );
    assert_eq!(reload(&session).budget(), session.budget());
}

/// What a client no longer sends is in no bill without us.
#[test]
fn what_the_client_takes_away_is_not_in_the_whole() {
    let mut session = begun(Profile::longhaul(), 200_000, 8_000, 1_000);
    (0..6).for_each(|n| step(&mut session, n, 8_000));
    ready(&mut session);
    let whole = session.full();
    let gone: Measure = session.sizes()[1..5].iter().copied().sum();
    session.set_taken_away(gone);
    step(&mut session, 6, 100);
    ready(&mut session);
    let sent = session.since(Cursor(0)).filter_map(|entry| match entry {
        Entry::Sent(sent) => Some(sent.whole),
        _ => None,
    });
    let wholes: Vec<Tokens> = sent.collect();
    let tokens = |measure| session.meter().tokens(measure).tokens;
    assert_eq!(wholes[0], tokens(whole));
    assert!(wholes[1] < tokens(whole) && wholes[1] == tokens(session.full()), "{wholes:?}");
}
