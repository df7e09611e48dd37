//! Attempts to break what sessions claim.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use longhaul::conversation::Thinking;
use longhaul::edits::Rule;
use longhaul::session::journal::{Allowed, Counting, SentRequest};
use longhaul::size::{Billed, Calibration, Measure};
use longhaul::{
    Block, EditId, EditKind, Entry, Extra, Frame, Json, LedgerError, Message, Meter, Notice, Outcome,
    Overflow, Position, Prepared, Profile, RecallPart, Resolved, Role, Seal, Seals, Session, Span,
    Summariser, Ticket, Time, Tokens, Usage, Why,
};
use std::sync::Arc;

fn send(session: &mut Session) -> Ticket {
    match session.prepare(None).unwrap() {
        Prepared::Send(ticket) => ticket,
        Prepared::Summarise(job) => panic!("{job:?}"),
    }
}

fn sent(session: &Session) -> Vec<Message> {
    session.outgoing().messages().map(|m| (**m).clone()).collect()
}

fn failing(id: &str) -> Message {
    Message::result(id, "Error: No such tool available: longhaul_recall")
}

// ---- answers ----

#[test]
fn answer_larger_than_the_window_is_cut() {
    let mut s = session(8_000);
    s.push(Message::user("go"));
    s.push(call("a"));
    let at = s.push(failing("a"));
    s.answer(at, 0, "a line of what was recalled\n".repeat(4_000)).unwrap();
    ready(&mut s);
    assert!(text(&s).contains("a line of what was recalled"));
}

#[test]
fn answer_of_a_finished_step_can_go() {
    let mut s = session(8_000);
    s.push(Message::user("go"));
    s.push(call("a"));
    let at = s.push(failing("a"));
    let answer: String = (0..400).map(|n| format!("recalled line {n}\n")).collect();
    s.answer(at, 0, answer.as_str()).unwrap();
    ready(&mut s);
    for n in 0..60 {
        step(&mut s, n, 600);
        ready(&mut s);
    }
    assert!(!text(&s).contains("recalled line 399\n"));
    // Every byte that was taken out is there to be recalled.
    let all: Vec<String> = s
        .ledger()
        .edits()
        .filter(|(e, a)| *a && e.kind.is_fold())
        .map(|(e, _)| s.recall(&e.originals[0].to_string(), &RecallPart::Whole).unwrap())
        .collect();
    assert!(all.iter().any(|t| t.contains("recalled line 200\n")), "the answer is in no original");
}

#[test]
fn digest_of_an_answered_result_is_of_the_answer() {
    let mut s = Session::new(Profile::transform(), model("m", 200_000)).with_meter(Meter::neutral());
    s.push(Message::user("go"));
    s.push(call("a"));
    let at = s.push(Message::result("a", "client error line\n".repeat(40)));
    s.answer(at, 0, (0..400).map(|n| format!("recalled line {n}\n")).collect::<String>()).unwrap();
    for n in 0..10 {
        step(&mut s, n, 600);
    }
    ready(&mut s);
    let shown = text(&s);
    assert!(!shown.contains("client error line"), "the digest is of what the answer replaced");
}

#[test]
fn an_answer_is_no_error() {
    let mut s = session(8_000);
    s.push(Message::user("go"));
    s.push(call("a"));
    let mut result = match Block::result("a", "Error: no such tool") {
        Block::ToolResult(r) => r,
        _ => panic!(),
    };
    result.is_error = true;
    let at = s.push(Message::new(Role::Tool, vec![Block::ToolResult(result)]));
    s.answer(at, 0, "what was recalled").unwrap();
    ready(&mut s);
    let errors = s
        .view()
        .parts()
        .iter()
        .flat_map(|p| p.message.blocks().to_vec())
        .filter(|b| matches!(b, Block::ToolResult(r) if r.is_error))
        .count();
    assert_eq!(errors, 0);
}

// ---- requests in flight ----

#[test]
fn late_overflow_of_the_model_before_teaches_the_new_one_nothing() {
    let mut s = session(200_000);
    s.push(Message::user("go"));
    (0..20).for_each(|n| step(&mut s, n, 2_000));
    let first = send(&mut s);
    s.switch(model("large", 1_000_000), Seals::Client);
    ready(&mut s);
    s.overflowed(first, Overflow { prompt: Some(Tokens(31_920)), window: Some(Tokens(8_000)) });
    assert_eq!(s.budget().window, Tokens(1_000_000));
}

#[test]
fn late_overflow_without_figures_of_the_model_before() {
    let mut s = session(200_000);
    s.push(Message::user("go"));
    (0..20).for_each(|n| step(&mut s, n, 2_000));
    let first = send(&mut s);
    s.switch(model("large", 1_000_000), Seals::Client);
    ready(&mut s);
    let edits = s.ledger().edits().count();
    s.overflowed(first, Overflow::default());
    ready(&mut s);
    assert_eq!(s.ledger().edits().count(), edits, "the view of the new model was compacted");
}

#[test]
fn overflow_of_an_old_request_does_not_make_a_new_call_of_the_same_bytes() {
    let mut s = session(200_000);
    s.push(Message::user("go"));
    (0..20).for_each(|n| step(&mut s, n, 2_000));
    let first = send(&mut s);
    s.compact_now();
    let second = send(&mut s);
    assert_ne!(first, second);
    let before = sent(&s);
    s.overflowed(first, Overflow::default());
    let third = send(&mut s);
    assert!(sent(&s) != before || third == second, "same bytes, new ticket");
}

#[test]
fn a_retry_has_the_same_bytes_after_a_refused_request() {
    let mut s = session(200_000);
    s.set_todos(Some(&"todo words of some length, ".repeat(3_000)));
    s.push(Message::user("go"));
    (0..30).for_each(|n| step(&mut s, n, 2_000));
    let first = send(&mut s);
    println!("{:?}", s.size());
    s.overflowed(first, Overflow::default());
    let second = send(&mut s);
    let (bytes, size) = (sent(&s), s.size());
    let again = send(&mut s);
    println!("{first:?} {second:?} {again:?} {size:?} {:?}", s.size());
    assert!(sent(&s) == bytes || again != second, "one ticket, two requests");
}

#[test]
fn what_was_refused_is_not_sent_again_by_the_next_request() {
    let mut s = session(200_000);
    s.set_todos(Some(&"todo words of some length, ".repeat(3_000)));
    s.push(Message::user("go"));
    (0..30).for_each(|n| step(&mut s, n, 2_000));
    let first = send(&mut s);
    let refused = s.size().tokens;
    s.overflowed(first, Overflow::default());
    send(&mut s);
    assert!(s.size().tokens < refused);
    s.push(Message::assistant("ok"));
    s.push(Message::user("on"));
    send(&mut s);
    assert!(s.size().tokens < refused, "{:?} was refused, {:?} is sent", refused, s.size().tokens);
}

#[test]
fn a_pin_is_cut_when_the_provider_refuses() {
    let mut s = session(200_000);
    s.pin("p", "pinned words of some length, ".repeat(3_000));
    s.push(Message::user("go"));
    let first = send(&mut s);
    s.overflowed(first, Overflow::default());
    send(&mut s);
}

#[test]
fn usage_that_changes_the_room_is_still_a_retry() {
    let mut s = Session::new(Profile::longhaul(), model("m", 20_000));
    s.push(Message::system("words of the system prompt ".repeat(1_500)));
    s.pin("p", "pinned words of some length, ".repeat(3_000));
    s.push(Message::user("go"));
    let mut last = send(&mut s);
    for n in 0..40 {
        let before = sent(&s);
        s.observe(last, &Usage { input: s.size().tokens.0 + 60, ..Usage::default() });
        let again = match s.prepare(None) {
            Ok(Prepared::Send(t)) => t,
            other => {
                println!("{other:?}");
                break;
            }
        };
        assert!(again != last || sent(&s) == before, "one ticket, two requests at {n}");
        s.push(Message::assistant("w ".repeat(40)));
        s.push(Message::user("x ".repeat(40)));
        last = match s.prepare(None) {
            Ok(Prepared::Send(t)) => t,
            other => {
                println!("{other:?}");
                break;
            }
        };
    }
}

#[test]
fn a_report_on_a_request_of_another_frame_is_no_base() {
    let frame = |n: usize| Frame { system: vec![Block::text("s".repeat(n))], ..Frame::default() };
    let start = || {
        let mut s = Session::new(Profile::longhaul(), model("m", 200_000));
        s.set_frame(frame(100));
        s.push(Message::user("go"));
        (0..10).for_each(|n| step(&mut s, n, 2_000));
        let t = send(&mut s);
        (s, t)
    };
    let usage = Usage { input: 60_000, ..Usage::default() };
    let (mut a, t) = start();
    a.observe(t, &usage);
    a.set_frame(frame(200));
    ready(&mut a);
    let (mut b, t) = start();
    b.set_frame(frame(200));
    b.observe(t, &usage);
    ready(&mut b);
    assert_eq!(a.size().tokens, b.size().tokens);
}

// ---- frames ----

#[test]
fn another_max_tokens_is_no_cold_moment() {
    let frame = |n: usize| {
        Frame::from_json(&Json::new(format!(r#"{{"system":"be brief","max_tokens":{n}}}"#)).unwrap()).unwrap()
    };
    let mut s = session(20_000);
    s.set_frame(frame(1_000));
    s.push(Message::user("go"));
    for n in 0..5 {
        step(&mut s, n, 9_000);
    }
    ready(&mut s);
    assert_eq!(s.ledger().edits().count(), 0);
    s.set_frame(frame(1_001));
    s.push(Message::assistant("done"));
    s.push(Message::user("and now?"));
    ready(&mut s);
    println!("{:?}", s.sent());
    assert_eq!(
        s.ledger().edits().count(),
        0,
        "{:?}",
        s.ledger().edits().map(|(e, _)| e.why).collect::<Vec<_>>()
    );
}

// ---- audit ----

fn grown(window: u64) -> Session {
    let mut s = session(window);
    s.push(Message::user("go"));
    ready(&mut s);
    (0..60).for_each(|n| step(&mut s, n, 2_000));
    s
}

#[test]
fn audit_between_push_and_prepare() {
    assert_eq!(grown(20_000).audit(), []);
}
#[test]
fn audit_between_push_and_prepare_after_load() {
    assert_eq!(reload(&grown(20_000)).audit(), []);
}
#[test]
fn audit_between_push_and_prepare_of_a_fork() {
    let s = grown(20_000);
    assert_eq!(s.fork(s.log().end()).unwrap().audit(), []);
}
#[test]
fn audit_after_a_smaller_window() {
    let mut s = session(200_000);
    s.push(Message::user("go"));
    (0..60).for_each(|n| step(&mut s, n, 2_000));
    ready(&mut s);
    s.set_window(Tokens(20_000));
    assert_eq!(s.audit(), []);
}
#[test]
fn audit_after_a_switch() {
    let mut s = session(200_000);
    s.push(Message::user("go"));
    (0..60).for_each(|n| step(&mut s, n, 2_000));
    ready(&mut s);
    s.switch(model("small", 8_000), Seals::Engine);
    assert_eq!(s.audit(), []);
}
#[test]
fn audit_after_usage() {
    let mut s = Session::new(Profile::longhaul(), model("m", 20_000));
    s.push(Message::user("go"));
    (0..12).for_each(|n| step(&mut s, n, 2_000));
    ready(&mut s);
    observe(&mut s, &Usage { input: 19_000, ..Usage::default() });
    assert_eq!(s.audit(), []);
}
#[test]
fn audit_after_answer() {
    let mut s = session(8_000);
    s.push(Message::user("go"));
    s.push(call("a"));
    let at = s.push(failing("a"));
    ready(&mut s);
    s.answer(at, 0, "x".repeat(400_000)).unwrap();
    assert_eq!(s.audit(), []);
}
#[test]
fn audit_after_facts() {
    let mut s = session(8_000);
    s.set_rules("A.md", Some("rule one"));
    s.push(Message::user("go"));
    ready(&mut s);
    s.set_rules("A.md", Some("rule two"));
    s.pin("a", "pinned");
    s.push(Message::assistant("x"));
    assert_eq!(s.audit(), []);
    s.set_rules("A.md", None);
    s.unpin("a");
    s.set_goal("other");
    s.push(Message::user("x"));
    assert_eq!(s.audit(), []);
    assert_eq!(reload(&s).audit(), []);
}

// ---- warn ----

#[test]
fn warn_is_said_when_the_window_shrinks_below_the_prompt() {
    let mut s = session(200_000);
    s.push(Message::user("go"));
    (0..30).for_each(|n| step(&mut s, n, 2_000));
    ready(&mut s);
    let size = s.size().tokens.0;
    assert_eq!(s.take_notices(), []);
    // Between the warning (70 %) and the trigger (75 %).
    s.set_window(Tokens(size * 100 / 72));
    ready(&mut s);
    println!("{} {:?}", size, s.budget());
    assert_eq!(s.take_notices().iter().filter(|n| matches!(n, Notice::Large { .. })).count(), 1);
}

// ---- seals ----

fn thought(id: &str) -> Message {
    let thinking = Thinking { text: "hm".into(), seal: Seal::Signed("s".into()), extra: Extra::NONE };
    Message::new(
        Role::Assistant,
        vec![Block::Thinking(thinking), Block::call(id, "Read", Json::empty_object())],
    )
}
fn thoughts(s: &Session) -> usize {
    s.view()
        .parts()
        .iter()
        .flat_map(|p| p.message.blocks())
        .filter(|b| matches!(b, Block::Thinking(_)))
        .count()
}

#[test]
fn redo_does_not_drop_what_the_model_can_read() {
    let mut s = session(100_000);
    s.push(Message::user("go"));
    s.push(thought("a"));
    s.push(Message::result("a", "ok"));
    s.switch(model("other", 100_000), Seals::Engine);
    ready(&mut s);
    assert_eq!(thoughts(&s), 0);
    s.switch(model("m", 100_000), Seals::Engine);
    ready(&mut s);
    assert_eq!(thoughts(&s), 1);
    let edit = s.ledger().edits().next().unwrap().0.id;
    println!("{:?}", s.redo(edit));
    ready(&mut s);
    assert_eq!(thoughts(&s), 1, "sealed reasoning of the running turn is gone");
}

#[test]
fn a_journal_cut_behind_a_switch_sends_no_foreign_seal() {
    let mut s = session(100_000);
    s.push(Message::user("go"));
    s.push(thought("a"));
    s.push(Message::result("a", "ok"));
    ready(&mut s);
    s.switch(model("other", 100_000), Seals::Engine);
    let lines = saved(&s);
    let at = lines.iter().position(|l| l.contains("\"switched\"")).unwrap();
    let mut cut = Session::load(s.profile().clone(), entries(&lines[..=at])).unwrap();
    ready(&mut cut);
    assert_eq!(thoughts(&cut), 0);
}

#[test]
fn a_journal_cut_behind_a_message_enters_it_again() {
    let mut s = session(100_000);
    s.push(Message::user("go"));
    s.push(call("a"));
    s.push(Message::result("a", "2026-03-02 09:00:00 INFO request handled in 12 ms\n".repeat(4_000)));
    let lines = saved(&s);
    let at = lines.iter().position(|l| l.contains("\"edit\"")).unwrap();
    let mut cut = Session::load(s.profile().clone(), entries(&lines[..at])).unwrap();
    ready(&mut cut);
    ready(&mut s);
    assert_eq!(text(&cut), text(&s));
}

// ---- archive ----

#[test]
fn a_result_that_begins_with_a_handle_is_recalled_as_it_was() {
    let mut s = session(8_000);
    s.push(Message::user("go"));
    s.push(call("a"));
    s.push(Message::result("a", (0..9_000).map(|n| format!("x{n}\n")).collect::<String>()));
    ready(&mut s);
    let h1 = s.ledger().edits().next().unwrap().0.originals[0];
    s.push(call("b"));
    let original: String = format!("[{h1}]\n{}", (0..9_000).map(|n| format!("y{n}\n")).collect::<String>());
    let at = s.push(Message::result("b", original.as_str()));
    ready(&mut s);
    let h2 = s.ledger().edits().find(|(e, _)| e.kind.spans()[0].contains(at)).unwrap().0.originals[0];
    let recalled = s.recall(&h2.to_string(), &RecallPart::Whole).unwrap();
    assert!(recalled == original, "{} bytes of {}", recalled.len(), original.len());
}

#[test]
fn recalled_text_over_the_cut_is_not_cut_again() {
    for profile in Profile::all() {
        let mut s = Session::new(profile, model("m", 200_000)).with_meter(Meter::neutral());
        s.push(Message::user("go"));
        s.push(Message::new(
            Role::Assistant,
            vec![Block::call("a", "longhaul_recall", Json::new(r#"{"handle":"0123"}"#).unwrap())],
        ));
        s.push(Message::result("a", (0..4_000).map(|n| format!("line {n}\n")).collect::<String>()));
        println!("{} {}", s.profile().name, s.ledger().edits().count());
    }
}

// ---- overflow while a job is open ----

#[test]
fn an_overflow_while_a_job_is_open_folds_to_the_new_window() {
    let profile = Profile { summariser: Summariser::Host, ..Profile::longhaul() };
    let mut s = Session::new(profile, model("m", 100_000)).with_meter(Meter::neutral());
    s.push(Message::user("go"));
    for n in 0..400 {
        step(&mut s, n, 2_000);
        send(&mut s);
        if s.job().is_some() {
            break;
        }
    }
    let job = s.job().unwrap();
    // More is said while it is written.
    let ticket = s.last_ticket().unwrap();
    s.overflowed(ticket, Overflow { prompt: None, window: Some(Tokens(12_000)) });
    let mut jobs = 0;
    loop {
        match s.prepare(None).unwrap() {
            Prepared::Send(_) => break,
            Prepared::Summarise(job) => {
                jobs += 1;
                assert!(matches!(
                    s.resolve(job.id, Outcome::Summary("What was done.".into())),
                    Resolved::Folded
                ));
            }
        }
    }
    _ = job;
    let kinds: Vec<_> = s
        .ledger()
        .edits()
        .map(|(e, _)| (e.kind.name(), e.why, e.strategy.clone(), e.before, e.after))
        .collect();
    println!("{jobs} {kinds:?} {:?} {:?}", s.size(), s.budget());
    assert!(s.size().tokens <= s.budget().target + Tokens(600), "{:?} {:?}", s.size(), s.budget());
}

// ---- hostile journals ----

fn hostile(change: impl FnOnce(&mut Vec<Entry>)) -> Option<Session> {
    let mut s = session(20_000);
    s.push(Message::user("Find the bug."));
    for n in 0..60 {
        ready(&mut s);
        step(&mut s, n, 2_000);
    }
    ready(&mut s);
    let mut journal = entries(&saved(&s));
    change(&mut journal);
    Session::load(s.profile().clone(), journal).ok()
}

fn use_it(mut s: Session) {
    for round in 0..3 {
        _ = s.audit();
        _ = s.job();
        _ = s.stopped();
        for id in 0..s.ledger().next_id().0 {
            let handles = s.ledger().get(EditId(id)).unwrap().originals.clone();
            for h in handles {
                _ = s.recall(&h.to_string(), &RecallPart::Whole);
            }
        }
        match s.prepare(Some(Time(round))) {
            Ok(Prepared::Summarise(job)) => {
                _ = job.fresh(Tokens(4_000));
                _ = s.resolve(job.id, Outcome::Failed("no".into()));
            }
            Ok(Prepared::Send(t)) => s.observe(t, &Usage { input: 5_000, ..Usage::default() }),
            Err(_) => {}
        }
        if let Some(job) = s.job() {
            _ = s.resolve(job.id, Outcome::Summary("x".into()));
        }
        overflowed(&mut s);
        _ = s.undo(EditId(0));
        _ = s.redo(EditId(0));
        s.compact_now();
        step(&mut s, 900 + round as usize, 3_000);
        let f = s.fork(Position(7)).unwrap();
        _ = f.audit();
    }
}

#[test]
fn hostile_ticket() {
    if let Some(s) = hostile(|j| {
        let Some(Entry::Sent(sent)) = j.iter_mut().rev().find(|e| matches!(e, Entry::Sent(_))) else {
            panic!()
        };
        *sent = SentRequest {
            ticket: Ticket(u64::MAX),
            time: Some(Time(i64::MIN)),
            size: Measure { counted: i64::MIN, answers: i64::MIN, rough: true },
            prompt: Tokens(u64::MAX),
            billed: Billed::default(),
            ..*sent
        };
    }) {
        use_it(s)
    }
}
#[test]
fn hostile_calls_for_the_breaker() {
    if let Some(s) = hostile(|j| {
        let at = j.iter().rposition(|e| matches!(e, Entry::Sent(_))).unwrap();
        let Entry::Sent(sent) = &mut j[at] else { panic!() };
        sent.ticket = Ticket(u64::MAX - 1);
        let began = j.iter().find(|e| matches!(e, Entry::CompactionBegan(_))).unwrap().clone();
        for _ in 0..4 {
            j.push(began.clone());
            j.push(Entry::CompactionEnded { after: Tokens(u64::MAX), trigger: Some(Tokens(1)) });
        }
    }) {
        use_it(s)
    }
}
#[test]
fn hostile_ticket_alone() {
    if let Some(s) = hostile(|j| {
        let Some(Entry::Sent(sent)) = j.iter_mut().rev().find(|e| matches!(e, Entry::Sent(_))) else {
            panic!()
        };
        sent.ticket = Ticket(u64::MAX);
    }) {
        use_it(s)
    }
}
#[test]
fn hostile_job_id_host() {
    let profile = Profile { summariser: Summariser::Host, background: false, ..Profile::longhaul() };
    let mut s = Session::new(profile.clone(), model("m", 8_000)).with_meter(Meter::neutral());
    s.push(Message::user("go"));
    (0..60).for_each(|n| step(&mut s, n, 450));
    _ = s.prepare(None);
    let mut j = entries(&saved(&s));
    for e in &mut j {
        if let Entry::JobOpened(q) = e {
            Arc::make_mut(q).id = u64::MAX;
        }
    }
    if let Ok(s) = Session::load(profile, j) {
        use_it(s)
    }
}
#[test]
fn hostile_calibration_learns() {
    let text = r#"{"ratio_ppm":1000000,"per_answer":5,"learnt":7,"sums":{"cc":9223372036854775807,"ca":-9223372036854775808,"aa":9223372036854775807,"cg":9223372036854775807,"ag":-9223372036854775808}}"#;
    let c: Calibration = serde_json::from_str(text).unwrap();
    let mut s = hostile(|j| j.push(Entry::Counted(Counting::Model(c)))).unwrap();
    s.teach(Measure { counted: 100, answers: 1, rough: false }, 120);
}
#[test]
fn hostile_calibration_counts() {
    let text = r#"{"ratio_ppm":18446744073709551615,"per_answer":18446744073709551615,"learnt":7,"sums":{"cc":1,"ca":1,"aa":1,"cg":1,"ag":1}}"#;
    let c: Calibration = serde_json::from_str(text).unwrap();
    let mut s = hostile(|j| {
        let m = Measure { counted: i64::MAX, answers: i64::MAX, rough: true };
        for e in j.iter_mut() {
            if let Entry::Sent(sent) = e {
                sent.size = m;
            }
        }
        j.push(Entry::Counted(Counting::Model(c)));
    })
    .unwrap();
    let t = s.last_ticket().unwrap();
    s.observe(t, &Usage { input: 5_000, ..Usage::default() });
    use_it(s);
}
fn job_entry(spans: Vec<Span>, id: u64) -> Entry {
    let profile = Profile { summariser: Summariser::Host, background: false, ..Profile::longhaul() };
    let mut s = Session::new(profile, model("m", 8_000)).with_meter(Meter::neutral());
    s.push(Message::user("go"));
    (0..60).for_each(|n| step(&mut s, n, 450));
    _ = s.prepare(None);
    let mut q = (*s.job().unwrap().question).clone();
    (q.spans, q.id) = (spans, id);
    Entry::JobOpened(Arc::new(q))
}
#[test]
fn hostile_job_spans() {
    if let Some(s) = hostile(|j| j.push(job_entry(vec![Span::new(5, 9_000)], 1))) {
        use_it(s)
    }
}
#[test]
fn hostile_job_spans_reversed() {
    if let Some(s) = hostile(|j| j.push(job_entry(vec![Span::new(9, 5), Span::new(3, 3)], 1))) {
        use_it(s)
    }
}
#[test]
fn hostile_job_no_spans() {
    if let Some(s) = hostile(|j| j.push(job_entry(vec![], 1))) {
        use_it(s)
    }
}
#[test]
fn hostile_job_spans_inside() {
    if let Some(s) =
        hostile(|j| j.push(job_entry(vec![Span::new(2, 4), Span::new(3, 8), Span::new(90, 92)], 1)))
    {
        use_it(s)
    }
}
#[test]
fn hostile_job_id() {
    if let Some(s) = hostile(|j| j.push(job_entry(vec![Span::new(100, 110)], u64::MAX))) {
        use_it(s)
    }
}
#[test]
fn hostile_usage() {
    if let Some(s) = hostile(|j| {
        j.push(Entry::Usage { ticket: Ticket(60), prompt: Tokens(u64::MAX) });
        j.push(Entry::Usage { ticket: Ticket(u64::MAX), prompt: Tokens(0) });
        j.push(Entry::Taught {
            added: Measure { counted: i64::MAX, answers: i64::MIN, rough: true },
            growth: i64::MIN,
        });
    }) {
        use_it(s)
    }
}
#[test]
fn hostile_calibration() {
    let text = r#"{"ratio_ppm":18446744073709551615,"per_answer":18446744073709551615,"learnt":4294967295,"sums":{"cc":9223372036854775807,"ca":-9223372036854775808,"aa":9223372036854775807,"cg":9223372036854775807,"ag":-9223372036854775808}}"#;
    let c: Calibration = serde_json::from_str(text).unwrap();
    if let Some(s) = hostile(|j| j.push(Entry::Counted(Counting::Model(c)))) {
        use_it(s)
    }
}
#[test]
fn hostile_limits() {
    for allowed in [
        Allowed {
            window: Some(Tokens(0)),
            max_output: Some(Tokens(u64::MAX)),
            cache_lifetime_s: Some(u64::MAX),
        },
        Allowed { window: Some(Tokens(u64::MAX)), max_output: Some(Tokens(0)), cache_lifetime_s: Some(0) },
    ] {
        if let Some(s) = hostile(|j| j.push(Entry::Limited(allowed))) {
            use_it(s)
        }
    }
    if let Some(s) =
        hostile(|j| j.push(Entry::Refused { ticket: None, size: Tokens(0), window: Some(Tokens(0)) }))
    {
        use_it(s)
    }
    if let Some(s) = hostile(|j| {
        j.push(Entry::Refused {
            ticket: Some(Ticket(0)),
            size: Tokens(u64::MAX),
            window: Some(Tokens(u64::MAX)),
        })
    }) {
        use_it(s)
    }
}
#[test]
fn hostile_edits() {
    let template = |j: &[Entry]| {
        j.iter()
            .find_map(|e| match e {
                Entry::Edit(e) => Some((**e).clone()),
                _ => None,
            })
            .unwrap()
    };
    let next = |j: &[Entry]| EditId(j.iter().filter(|e| matches!(e, Entry::Edit(_))).count() as u32);
    let fold = |spans: Vec<Span>| EditKind::Fold {
        spans,
        placement: longhaul::edits::Placement::InPlace,
        kept: vec![],
        text: "t".into(),
        summary: None,
    };
    let hint = |spans: Vec<Span>| EditKind::Fold {
        spans,
        placement: longhaul::edits::Placement::SystemHint,
        kept: vec![],
        text: "t".into(),
        summary: None,
    };
    let n = 121u32;
    let kinds = vec![
        fold(vec![Span::new(0, n)]),
        hint(vec![Span::new(0, n)]),
        fold(vec![Span::new(95, 99), Span::new(97, 101)]),
        fold(vec![Span::new(101, 103), Span::new(91, 93)]),
        fold(vec![Span::new(99, 101), Span::new(99, 101)]),
        fold(vec![Span::new(1, 91)]),
        fold(vec![Span::new(117, 121)]),
        hint(vec![Span::new(1, 3), Span::new(119, 121)]),
        EditKind::Digest { at: Position(120), block: usize::MAX, text: "x".repeat(10 << 20).into() },
        EditKind::Answer { at: Position(0), block: 0, text: "".into() },
        EditKind::Digest { at: Position(1), block: 0, text: "".into() },
        EditKind::DigestArgs { at: Position(119), block: 0, arguments: Json::new("[]").unwrap() },
        EditKind::DropThinking { at: Position(5) },
        EditKind::Hide { spans: vec![Span::new(u32::MAX - 1, u32::MAX)], text: "".into() },
    ];
    for a in &kinds {
        for b in &kinds {
            if let Some(s) = hostile(|j| {
                for kind in [a, b] {
                    let mut e = template(j);
                    (e.id, e.kind) = (next(j), kind.clone());
                    e.depends = vec![EditId(u32::MAX), e.id];
                    e.before = Tokens(u64::MAX);
                    j.push(Entry::Edit(Arc::new(e)));
                }
                j.push(Entry::Undo { edit: EditId(0), held: true });
                j.push(Entry::Redo { edit: EditId(0) });
            }) {
                use_it(s)
            }
        }
    }
}
#[test]
fn hostile_originals_do_not_hang() {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut s = session(20_000);
        s.push(Message::user("Find the bug."));
        for n in 0..60 {
            ready(&mut s);
            step(&mut s, n, 2_000);
        }
        let mut j: Vec<Entry> = entries(&saved(&s))
            .into_iter()
            .filter(|e| !matches!(e, Entry::Edit(_) | Entry::Undo { .. } | Entry::Redo { .. }))
            .collect();
        let mut e = s.ledger().edits().next().unwrap().0.as_ref().clone();
        let handle = |n: u32| longhaul::Handle::of(&n.to_string());
        for n in 0..50u32 {
            e.id = EditId(n);
            e.kind = EditKind::Hide { spans: vec![Span::new(1, 3 + 2 * n)], text: "h".into() };
            e.originals = vec![handle(n), handle(n)];
            j.push(Entry::Edit(Arc::new(e.clone())));
        }
        let s = Session::load(s.profile().clone(), j);
        if let Ok(s) = s {
            _ = s.recall(&handle(49).to_string(), &RecallPart::Whole);
        }
        send.send(()).unwrap();
    });
    receive.recv_timeout(std::time::Duration::from_secs(20)).expect("recall hangs");
}
#[test]
fn hostile_any_entry_removed_doubled_or_swapped() {
    let mut s =
        Session::new(Profile { summariser: Summariser::Host, ..Profile::longhaul() }, model("m", 12_000))
            .with_meter(Meter::neutral());
    s.push(Message::user("Find the bug."));
    for n in 0..24 {
        for _ in 0..9 {
            match s.prepare(Some(Time(n as i64))).unwrap() {
                Prepared::Send(_) => break,
                Prepared::Summarise(j) => _ = s.resolve(j.id, Outcome::Summary("done".into())),
            }
        }
        if n % 3 == 0 {
            if let Some(j) = s.job() {
                _ = s.resolve(j.id, Outcome::TimedOut);
            }
        }
        observe(&mut s, &Usage { input: 4_000, ..Usage::default() });
        step(&mut s, n, 2_000);
        if n == 12 {
            s.switch(model("b", 9_000), Seals::Engine);
            _ = s.undo(EditId(0));
        }
    }
    let all = entries(&saved(&s));
    let mut loaded = 0;
    for at in 1..all.len() {
        for how in 0..3 {
            let mut j = all.clone();
            match how {
                0 => _ = j.remove(at),
                1 => j.insert(at, all[at].clone()),
                _ => j.swap(at, (at * 7 + 3) % all.len()),
            }
            if let Ok(s) = Session::load(s.profile().clone(), j) {
                loaded += 1;
                use_it(s)
            }
        }
    }
    println!("{loaded} of {}", all.len() * 3);
}

// ---- rules in memory and after loading ----

#[test]
fn rules_look_again_after_the_way_to_count_changed() {
    let mut s = Session::new(Profile::transform(), model("m", 200_000));
    s.push(Message::user("go"));
    for n in 0..10 {
        s.push(call(&format!("c{n}")));
        s.push(Message::result(format!("c{n}"), format!("{}\n", " ".repeat(60)).repeat(8)));
    }
    ready(&mut s);
    println!("{}", s.ledger().edits().count());
    s = s.with_meter(Meter::neutral());
    let mut t = reload(&s);
    ready(&mut s);
    ready(&mut t);
    assert_eq!(s.ledger().edits().count(), t.ledger().edits().count());
}

#[test]
fn unused() {
    _ = (LedgerError::Unknown(EditId(0)), Rule::UnderLimit, Why::Entry);
}

#[test]
fn a_frame_with_secrets_counts_the_same_after_loading() {
    let json = format!(r#"{{"tools":[{{"name":"a","headers":{{"x":"{}"}}}}]}}"#, "k9x ".repeat(3_000));
    let frame = Frame::from_json(&Json::new(json).unwrap()).unwrap();
    let mut s = session(20_000);
    s.set_frame(frame.clone());
    s.push(Message::user("go"));
    (0..16).for_each(|n| step(&mut s, n, 2_000));
    let mut t = reload(&s);
    t.set_frame(frame);
    ready(&mut s);
    ready(&mut t);
    println!("{:?} {:?} {} {}", s.size(), t.size(), s.ledger().edits().count(), t.ledger().edits().count());
    assert_eq!(s.size(), t.size());
}

#[test]
fn only_the_hard_limit_waits() {
    let profile = Profile { summariser: Summariser::Host, ..Profile::longhaul() };
    let mut s = Session::new(profile, model("m", 40_000)).with_meter(Meter::neutral());
    s.push(Message::user("go"));
    let mut n = 0;
    let job = loop {
        step(&mut s, n, 1_500);
        n += 1;
        if let Prepared::Summarise(job) = s.prepare(None).unwrap() {
            break job;
        }
        if n % 3 == 0 {
            s = reload(&s);
        }
        assert!(s.size().tokens <= s.budget().trigger || s.job().is_some());
    };
    assert!(s.size().tokens > s.budget().hard);
    assert!(matches!(s.resolve(job.id, Outcome::Summary("done".into())), Resolved::Folded));
    ready(&mut s);
}

// ---- cliffs ----

fn time<T>(what: &str, f: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let out = f();
    println!("{what}: {:?}", start.elapsed());
    out
}

#[test]
#[ignore]
fn cliffs() {
    let mut s = Session::new(Profile::longhaul(), model("m", 1_000_000)).with_meter(Meter::neutral());
    s.push(Message::user("go"));
    let mut window = std::time::Instant::now();
    for n in 0..50_000 {
        s.push(thought(&format!("c{n}")));
        s.push(Message::result(format!("c{n}"), "some words of a result\n".repeat(4)));
        _ = s.prepare(Some(Time(n))).unwrap();
        s.set_todos(Some(&format!("todo {n}")));
        if n % 10_000 == 9_999 {
            println!(
                "{n}: {:?} a call, {} edits, {} parts, {:?}",
                window.elapsed() / 10_000,
                s.ledger().edits().count(),
                s.view().parts().len(),
                s.size().tokens
            );
            window = std::time::Instant::now();
        }
    }
    time("prepare", || s.prepare(None).unwrap());
    time("snapshots", || s.snapshots());
    time("clone", || s.clone());
    time("fork end", || s.fork(s.log().end()).unwrap());
    time("fork middle", || s.fork(Position(50_001)).unwrap());
    time("search 5", || s.search("words", 5).unwrap().len());
    let h = s.ledger().edits().next().map(|(e, _)| e.originals[0].to_string());
    if let Some(h) = &h {
        time("recall short of lines", || s.recall(&h[..12], &RecallPart::Lines(1, 2)).map(|t| t.len()))
            .unwrap();
    }
    time("audit unprepared", || {
        let mut t = s.clone();
        t.push(Message::user("x"));
        t.audit_again(&mut Default::default())
    });
    let mut t = s.clone();
    time("switch away", || t.switch(model("b", 1_000_000), Seals::Engine));
    println!("{} edits", t.ledger().edits().count());
    time("prepare there", || _ = t.prepare(None));
    time("undo", || _ = t.undo(EditId(0)));
}

#[test]
#[ignore]
fn cliffs_seals() {
    for count in [1_000, 2_000, 4_000, 8_000] {
        let mut s = Session::new(Profile::longhaul(), model("m", 100_000_000)).with_meter(Meter::neutral());
        s.push(Message::user("go"));
        for n in 0..count {
            s.push(thought(&format!("c{n}")));
            s.push(Message::result(format!("c{n}"), "ok"));
        }
        _ = s.prepare(None).unwrap();
        time(&format!("{count} seals: away"), || s.switch(model("b", 100_000_000), Seals::Engine));
        time(&format!("{count} seals: back"), || s.switch(model("m", 100_000_000), Seals::Engine));
        let lines = entries(&saved(&s));
        time(&format!("{count} seals: load"), || Session::load(s.profile().clone(), lines).unwrap());
    }
}

#[test]
#[ignore]
fn cliffs_folds() {
    // Many small edits: a profile that digests at every call.
    for profile in [Profile::transform(), Profile::archive(), Profile::progressive()] {
        let name = profile.name.clone();
        let mut s = Session::new(profile, model("m", 30_000)).with_meter(Meter::neutral());
        let mut window = std::time::Instant::now();
        for n in 0..12_000usize {
            if n % 20 == 0 {
                s.push(Message::assistant("done"));
                s.push(Message::user(format!("task {n}")));
            }
            step(&mut s, n, 900);
            _ = s.prepare(Some(Time(n as i64)));
            if n % 3_000 == 2_999 {
                println!(
                    "{name} {n}: {:?} a call, {} edits, {} outermost, {} parts",
                    window.elapsed() / 3_000,
                    s.ledger().edits().count(),
                    s.ledger().outermost().count(),
                    s.view().parts().len()
                );
                window = std::time::Instant::now();
            }
        }
        if s.ledger().edits().count() > 0 {
            time("undo", || _ = s.undo(EditId(0)));
        }
        time("prepare after undo", || _ = s.prepare(None));
        let lines = entries(&saved(&s));
        time("load", || Session::load(s.profile().clone(), lines).unwrap());
    }
}

#[test]
fn a_prefix_kept_by_content_has_its_place() {
    // Two messages alike, the first of which goes: what was sent is found by content, not by place.
    let thinking = || {
        Message::new(
            Role::Assistant,
            vec![Block::Thinking(Thinking {
                text: "hm".into(),
                seal: Seal::Signed("s".into()),
                extra: Extra::NONE,
            })],
        )
    };
    let mut s = session(100_000);
    s.push(Message::user("go"));
    s.push(thinking());
    s.switch(model("other", 100_000), Seals::Client);
    s.push(thinking());
    s.push(Message::assistant("x ".repeat(400)));
    s.push(Message::user("on"));
    step(&mut s, 1, 4_000);
    step(&mut s, 2, 4_000);
    ready(&mut s);
    s.switch(model("other", 100_000), Seals::Engine);
    ready(&mut s);
    println!("{:?}", s.sent());
    s.pin("x", "y");
    ready(&mut s);
    let mut t = reload(&s);
    for s in [&mut s, &mut t] {
        s.compact_now();
        ready(s);
        step(s, 9, 100);
        ready(s);
    }
    assert_eq!(saved(&s).join("\n"), saved(&t).join("\n"));
}
