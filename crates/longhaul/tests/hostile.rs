//! Journals that no engine wrote: refused with a reason, or harmless.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::{Arc, LazyLock};

use common::*;
use longhaul::edits::{Placement, Violation};
use longhaul::session::journal::{Allowed, Counting, SentRequest};
use longhaul::size::{Billed, Calibration, Measure};
use longhaul::{
    Edit, EditId, EditKind, Entry, Handle, Json, LoadError, Message, Meter, Outcome, Position, Prepared,
    Profile, RecallPart, Seals, Session, Span, Summariser, Ticket, Time, Tokens, Usage,
};

/// A session with folds in a full window: 121 messages in steps of two behind the first.
fn folded() -> Session {
    let mut session = session(20_000);
    session.push(Message::user("Find the bug."));
    for n in 0..60 {
        ready(&mut session);
        step(&mut session, n, 2_000);
    }
    ready(&mut session);
    session
}

/// A session that waits for a summary.
fn asking() -> Session {
    let profile = Profile { summariser: Summariser::Host, background: false, ..Profile::longhaul() };
    let mut session = Session::new(profile, model("m", 8_000)).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    (0..60).for_each(|n| step(&mut session, n, 450));
    assert!(matches!(session.prepare(None), Ok(Prepared::Summarise(_))));
    session
}

/// What loading the journal of [`folded`] gives when it was changed like this.
fn changed(change: impl FnOnce(&mut Vec<Entry>)) -> Result<Session, LoadError> {
    static JOURNAL: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(&saved(&folded())));
    let mut journal = JOURNAL.clone();
    change(&mut journal);
    Session::load(Profile::longhaul(), journal)
}

fn last_sent(journal: &mut [Entry]) -> &mut SentRequest {
    let mut newest = journal.iter_mut().rev();
    newest.find_map(|entry| if let Entry::Sent(sent) = entry { Some(sent) } else { None }).unwrap()
}

/// Does with a session what a host may do; gives the rules that its requests break.
fn used(mut session: Session) -> Vec<Violation> {
    let mut broken = Vec::new();
    for round in 0..3 {
        _ = (session.audit(), session.job(), session.stopped());
        let originals = session.ledger().edits().flat_map(|(edit, _)| edit.originals.clone());
        for handle in originals.collect::<Vec<_>>() {
            _ = session.recall(&handle.to_string(), &RecallPart::Whole);
        }
        match session.prepare(Some(Time(round))) {
            Ok(Prepared::Summarise(job)) => {
                _ = job.fresh(Tokens(4_000));
                session.resolve(job.id, Outcome::Failed("overloaded".into()));
            }
            Ok(Prepared::Send(ticket)) => {
                broken.extend(session.audit());
                session.observe(ticket, &Usage { input: 5_000, ..Usage::default() });
            }
            Err(_) => {}
        }
        if let Some(job) = session.job() {
            session.resolve(job.id, Outcome::Summary("Steps were read.".into()));
        }
        overflowed(&mut session);
        _ = (session.undo(EditId(0)), session.redo(EditId(0)));
        session.compact_now();
        step(&mut session, 900 + round as usize, 3_000);
        _ = session.fork(Position(7)).unwrap().audit();
    }
    broken
}

fn harmless(session: Session) {
    assert_eq!(used(session), []);
}

#[test]
fn a_ticket_and_sizes_at_the_end_of_their_range_do_no_harm() {
    harmless(changed(|journal| last_sent(journal).ticket = Ticket(u64::MAX)).unwrap());
    let absurd = changed(|journal| {
        let sent = last_sent(journal);
        *sent = SentRequest {
            ticket: Ticket(u64::MAX),
            time: Some(Time(i64::MIN)),
            size: Measure { counted: i64::MIN, answers: i64::MIN, rough: true },
            prompt: Tokens(u64::MAX),
            billed: Billed::default(),
            ..*sent
        };
    });
    harmless(absurd.unwrap());
}

#[test]
fn compactions_after_the_last_possible_ticket_do_no_harm() {
    let compacted = changed(|journal| {
        last_sent(journal).ticket = Ticket(u64::MAX - 1);
        let began = journal.iter().find(|entry| matches!(entry, Entry::CompactionBegan(_))).unwrap().clone();
        for _ in 0..4 {
            journal.push(began.clone());
            journal.push(Entry::CompactionEnded { after: Tokens(u64::MAX), trigger: Some(Tokens(1)) });
        }
    });
    harmless(compacted.unwrap());
}

#[test]
fn reports_at_the_end_of_their_range_do_no_harm() {
    let reported = changed(|journal| {
        // A neutral meter would not learn from them.
        journal.push(calibration(1_000_000, 5, [1; 5]));
        journal.push(Entry::Usage { ticket: Ticket(60), prompt: Tokens(u64::MAX), charged: None });
        journal.push(Entry::Usage { ticket: Ticket(u64::MAX), prompt: Tokens(0), charged: None });
        let added = Measure { counted: i64::MAX, answers: i64::MIN, rough: true };
        journal.push(Entry::Taught { added, growth: i64::MIN });
    });
    harmless(reported.unwrap());
}

#[test]
fn limits_at_the_end_of_their_range_do_no_harm() {
    let allowed = |window, max_output, lifetime| {
        Entry::Limited(Allowed {
            window: Some(Tokens(window)),
            max_output: Some(Tokens(max_output)),
            cache_lifetime_s: Some(lifetime),
        })
    };
    let refused = |ticket, tokens| Entry::Refused {
        ticket,
        size: Tokens(tokens),
        window: Some(Tokens(tokens)),
        answer: None,
    };
    for limit in [
        allowed(0, u64::MAX, u64::MAX),
        allowed(u64::MAX, 0, 0),
        refused(None, 0),
        refused(Some(Ticket(0)), u64::MAX),
    ] {
        harmless(changed(|journal| journal.push(limit)).unwrap());
    }
}

/// A calibration that nobody could have learnt, from its ratio, its cost of an answer and its sums.
fn calibration(ratio_ppm: u64, per_answer: u64, sums: [i64; 5]) -> Entry {
    let [cc, ca, aa, cg, ag] = sums;
    let json = format!(
        r#"{{"ratio_ppm":{ratio_ppm},"per_answer":{per_answer},"learnt":7,"sums":{{"cc":{cc},"ca":{ca},"aa":{aa},"cg":{cg},"ag":{ag}}}}}"#
    );
    Entry::Counted(Counting::Model(serde_json::from_str::<Calibration>(&json).unwrap()))
}

#[test]
fn a_calibration_at_the_end_of_its_range_does_no_harm() {
    let sums = [i64::MAX, i64::MIN, i64::MAX, i64::MAX, i64::MIN];
    harmless(changed(|journal| journal.push(calibration(u64::MAX, u64::MAX, sums))).unwrap());
    // It learns on.
    let mut learning = changed(|journal| journal.push(calibration(1_000_000, 5, sums))).unwrap();
    learning.teach(Measure { counted: 100, answers: 1, rough: false }, 120);
    harmless(learning);
    // It counts what is as large.
    let counting = changed(|journal| {
        for entry in journal.iter_mut() {
            if let Entry::Sent(sent) = entry {
                sent.size = Measure { counted: i64::MAX, answers: i64::MAX, rough: true };
            }
        }
        journal.push(calibration(u64::MAX, u64::MAX, [1; 5]));
    });
    let mut counting = counting.unwrap();
    observe(&mut counting, &Usage { input: 5_000, ..Usage::default() });
    harmless(counting);
}

#[test]
fn a_job_about_messages_that_are_not_there_is_refused_and_others_do_no_harm() {
    let question = (*asking().job().unwrap().question).clone();
    let asked = |id: u64, spans: Vec<Span>| {
        let mut question = question.clone();
        (question.id, question.spans) = (id, spans);
        changed(|journal| journal.push(Entry::JobOpened(Arc::new(question))))
    };
    let refused = asked(1, vec![Span::new(5, 9_000)]).unwrap_err().to_string();
    assert!(refused.ends_with("job 1 covers messages that are not there"), "{refused}");
    for spans in [
        vec![],
        vec![Span::new(9, 5), Span::new(3, 3)],
        vec![Span::new(2, 4), Span::new(3, 8), Span::new(90, 92)],
    ] {
        harmless(asked(1, spans).unwrap());
    }
    harmless(asked(u64::MAX, vec![Span::new(100, 110)]).unwrap());
}

#[test]
fn the_last_possible_job_can_be_asked_again() {
    let session = asking();
    let mut journal = entries(&saved(&session));
    for entry in &mut journal {
        if let Entry::JobOpened(question) = entry {
            Arc::make_mut(question).id = u64::MAX;
        }
    }
    let loaded = Session::load(session.profile().clone(), journal).unwrap();
    assert_eq!(loaded.job().unwrap().id, u64::MAX);
    harmless(loaded);
}

/// Any two, one behind the other. Folds that cut across each other are refused; others may break a
/// rule, which an audit says, and panic nowhere.
#[test]
fn edits_that_no_strategy_makes_can_be_lived_with() {
    let session = folded();
    let (template, end) = (session.ledger().edits().next().unwrap().0.clone(), session.log().end().0);
    let fold = |placement: Placement, spans: &[(u32, u32)]| EditKind::Fold {
        spans: spans.iter().map(|(start, end)| Span::new(*start, *end)).collect(),
        placement,
        kept: vec![],
        text: "a fold".into(),
        summary: None,
    };
    let long = "x".repeat(10 << 20).into();
    let kinds = [
        fold(Placement::InPlace, &[(0, end)]),
        fold(Placement::SystemHint, &[(0, end)]),
        fold(Placement::InPlace, &[(95, 99), (97, 101)]),
        fold(Placement::InPlace, &[(101, 103), (91, 93)]),
        fold(Placement::InPlace, &[(99, 101), (99, 101)]),
        fold(Placement::InPlace, &[(1, 91)]),
        fold(Placement::InPlace, &[(end - 4, end)]),
        fold(Placement::SystemHint, &[(1, 3), (end - 2, end)]),
        EditKind::Digest { at: Position(end - 1), block: usize::MAX, text: long },
        EditKind::Answer { at: Position(0), block: 0, text: "".into() },
        EditKind::Digest { at: Position(1), block: 0, text: "".into() },
        EditKind::DigestArgs { at: Position(end - 2), block: 0, arguments: Json::new("[]").unwrap() },
        EditKind::DropThinking { at: Position(5) },
    ];
    let mut refused = 0;
    for first in &kinds {
        for second in &kinds {
            let loaded = changed(|journal| {
                let next = session.ledger().next_id().0;
                for (id, kind) in [(next, first), (next + 1, second)] {
                    journal.push(Entry::Edit(Arc::new(Edit {
                        id: EditId(id),
                        kind: kind.clone(),
                        voice: None,
                        depends: vec![EditId(u32::MAX), EditId(id)],
                        before: Tokens(u64::MAX),
                        ..(*template).clone()
                    })));
                }
                journal.push(Entry::Undo { edit: EditId(0), held: true });
                journal.push(Entry::Redo { edit: EditId(0) });
            });
            match loaded {
                Ok(session) => _ = used(session),
                Err(error) => {
                    assert!(error.to_string().ends_with(" cuts across another"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!((1..kinds.len() * kinds.len()).contains(&refused), "{refused}");
}

/// Each covers the ones before it: a recall of the last would walk 2^50 texts.
#[test]
fn edits_with_two_originals_are_refused() {
    let session = folded();
    let made = |entry: &Entry| matches!(entry, Entry::Edit(_) | Entry::Undo { .. } | Entry::Redo { .. });
    let template = session.ledger().edits().next().unwrap().0.clone();
    let refused = changed(|journal| {
        journal.retain(|entry| !made(entry));
        for n in 0..50 {
            let handle = Handle::of(&n.to_string());
            journal.push(Entry::Edit(Arc::new(Edit {
                id: EditId(n),
                kind: EditKind::Hide { spans: vec![Span::new(1, 3 + 2 * n)], text: "hidden".into() },
                originals: vec![handle, handle],
                ..(*template).clone()
            })));
        }
    });
    assert!(refused.unwrap_err().to_string().ends_with("edit 0 has not one original"));
}

#[test]
fn an_entry_that_is_lost_doubled_or_displaced_is_refused_or_can_be_lived_with() {
    let profile = Profile { summariser: Summariser::Host, ..Profile::longhaul() };
    let mut session = Session::new(profile.clone(), model("m", 12_000)).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    for n in 0..24 {
        while let Prepared::Summarise(job) = session.prepare(Some(Time(n as i64))).unwrap() {
            session.resolve(job.id, Outcome::Summary("Steps were read.".into()));
        }
        if let (0, Some(job)) = (n % 3, session.job()) {
            session.resolve(job.id, Outcome::TimedOut);
        }
        observe(&mut session, &Usage { input: 4_000, ..Usage::default() });
        step(&mut session, n, 2_000);
        if n == 12 {
            session.switch(model("other", 9_000), Seals::Engine);
        }
        if n == 20 {
            session.undo(EditId(0)).unwrap();
        }
    }
    let journal = entries(&saved(&session));
    let (mut loaded, mut refused) = (0, 0);
    for at in 1..journal.len() {
        let (mut lost, mut doubled, mut displaced) = (journal.clone(), journal.clone(), journal.clone());
        lost.remove(at);
        doubled.insert(at, journal[at].clone());
        displaced.swap(at, (at * 7 + 3) % journal.len());
        for changed in [lost, doubled, displaced] {
            match Session::load(profile.clone(), changed) {
                Ok(session) => {
                    _ = used(session);
                    loaded += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(loaded > 0 && refused > 0, "{loaded} loaded, {refused} refused");
}
