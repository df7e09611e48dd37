//! Random histories with what the other property test lacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use longhaul::conversation::Thinking;
use longhaul::edits::Rule;
use longhaul::size::Measure;
use longhaul::{
    Block, EditId, Extra, Frame, Json, Message, Meter, Outcome, Overflow, Position, PrepareError, Prepared,
    Profile, RecallBy, RecallPart, Role, Seal, Seals, Session, Summariser, Task, Ticket, Time, Tokens, Usage,
    Why,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[derive(Debug, Clone)]
enum Op {
    Push(Message),
    Prepare(u8),
    PrepareTwice(u8),
    CompactOn(String),
    Undo(usize),
    Redo(usize),
    Pin(u8, usize),
    Unpin(u8),
    Goal(usize),
    Remember(u8, usize),
    Rules(u8, usize),
    Todos(usize),
    GitStat(usize),
    Switch(u8, bool),
    Fork(usize),
    Observe(u64, u64),
    Frame(u8, u8, u64),
    Overflowed(u64, Option<u64>, Option<u64>),
    Resolve,
    Answer(usize, usize),
    Window(u64),
    MaxOutput(u64),
    Lifetime(u64),
    Teach(i64, i64),
    Task(u8),
    Recall(u8),
}

fn message() -> impl Strategy<Value = Message> {
    let id = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f", ""]);
    let words = |most: usize| {
        (
            prop::sample::select(vec![
                "word ",
                "line\n",
                "字",
                "fn a_name() {}\n",
                "<Pin>x",
                "!!!SUMMARY!!!\n",
            ]),
            0..most,
        )
            .prop_map(|(w, n)| w.repeat(n))
    };
    let seal = prop_oneof![
        Just(Seal::Open),
        Just(Seal::Signed("s".into())),
        Just(Seal::Redacted(Some("x".into()))),
        Just(Seal::Encrypted("e".into()))
    ];
    let arguments =
        words(300).prop_map(|text| Json::new(serde_json::json!({ "text": text }).to_string()).unwrap());
    let name = prop::sample::select(vec!["Write", "longhaul_recall", "Bash", "TodoWrite"]);
    let block = prop_oneof![
        5 => (id(), name, arguments).prop_map(|(id, name, arguments)| Block::call(id, name, arguments)),
        3 => words(60).prop_map(Block::text),
        2 => (prop::sample::select(vec!["", "hm", "long thought "]), 0usize..60, seal).prop_map(|(text, n, seal)| Block::Thinking(Thinking { text: text.repeat(n).into(), seal, extra: Extra::NONE })),
        1 => id().prop_map(|id| Block::result(id, "inside")),
    ];
    prop_oneof![
        7 => prop::collection::vec(block, 0..4).prop_map(|blocks| Message::new(Role::Assistant, blocks)),
        9 => (id(), words(700)).prop_map(|(id, text)| Message::result(id, text)),
        1 => (id(), id(), words(300)).prop_map(|(a, b, text)| Message::new(Role::Tool, vec![Block::result(a, text.clone()), Block::text("t"), Block::result(b, text)])),
        3 => words(200).prop_map(Message::user),
        1 => words(20).prop_map(Message::system),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let size = || prop_oneof![3 => 0usize..40, 1 => 0usize..9_000];
    prop_oneof![
        30 => message().prop_map(Op::Push),
        9 => (0u8..90).prop_map(Op::Prepare),
        3 => (0u8..90).prop_map(Op::PrepareTwice),
        1 => "[a-z]{0,9}".prop_map(Op::CompactOn),
        2 => (0usize..30).prop_map(Op::Undo),
        3 => (0usize..30).prop_map(Op::Redo),
        1 => (0u8..3, size()).prop_map(|(n, s)| Op::Pin(n, s)),
        1 => (0u8..3).prop_map(Op::Unpin),
        1 => size().prop_map(Op::Goal),
        1 => (0u8..3, size()).prop_map(|(n, s)| Op::Remember(n, s)),
        1 => (0u8..2, size()).prop_map(|(n, s)| Op::Rules(n, s)),
        1 => size().prop_map(Op::Todos),
        1 => size().prop_map(Op::GitStat),
        2 => (0u8..4, any::<bool>()).prop_map(|(n, c)| Op::Switch(n, c)),
        1 => (0usize..60).prop_map(Op::Fork),
        3 => (0u64..6, 20u64..9_000).prop_map(|(t, p)| Op::Observe(t, p)),
        1 => (0u8..3, 0u8..3, prop::sample::select(vec![0u64, 5, 700, 4_000, u64::MAX])).prop_map(|(s, t, m)| Op::Frame(s, t, m)),
        1 => (0u64..6, prop::option::of(0u64..20_000), prop::option::of(500u64..20_000)).prop_map(|(t, p, w)| Op::Overflowed(t, p, w)),
        3 => Just(Op::Resolve),
        3 => (0usize..60, prop_oneof![0usize..900, 0usize..20_000]).prop_map(|(at, n)| Op::Answer(at, n)),
        1 => prop::sample::select(vec![0u64, 1, 1_500, 3_000, 8_000, 40_000, u64::MAX]).prop_map(Op::Window),
        1 => prop::sample::select(vec![0u64, 100, 2_000, u64::MAX]).prop_map(Op::MaxOutput),
        1 => prop::sample::select(vec![0u64, 300, u64::MAX]).prop_map(Op::Lifetime),
        1 => (-10i64..3_000, -10i64..9_000).prop_map(|(a, g)| Op::Teach(a, g)),
        1 => (0u8..9).prop_map(Op::Task),
        1 => (0u8..3).prop_map(Op::Recall),
    ]
}

const WINDOWS: [u64; 4] = [1_500, 3_000, 8_000, 40_000];

fn sent(session: &Session) -> Vec<Message> {
    session.outgoing().messages().map(|m| (**m).clone()).collect()
}

fn answer(job: &longhaul::Job) -> Outcome {
    assert!(!job.fresh(Tokens(4_000)).is_empty());
    match job.id % 7 {
        0 => Outcome::Failed("overloaded".into()),
        1 => Outcome::TimedOut,
        2 => Outcome::Summary(" ".into()),
        3 => Outcome::Summary("far too long ".repeat(2_000)),
        4 => Outcome::Parts(vec!["### Done\n* one".into(), "two".into()]),
        _ => Outcome::Summary("What was done.".into()),
    }
}

/// All handles that the view names.
fn handles(s: &Session) -> Vec<String> {
    let mut found = Vec::new();
    for m in s.outgoing().messages() {
        for b in m.blocks() {
            let t = match b {
                Block::Text(b) => &*b.text,
                Block::ToolResult(b) => &*b.text,
                Block::ToolCall(b) => b.arguments.as_str(),
                _ => "",
            };
            for piece in t.split("recall ").skip(1) {
                let h: String = piece.chars().take_while(|c| c.is_ascii_hexdigit()).collect();
                if h.len() == 12 {
                    found.push(h)
                }
            }
        }
    }
    found
}

fn check(s: &Session, authors: &[(usize, String)], what: &str) {
    let lenient = std::env::var("STRICT_AUDIT").is_err();
    let found: Vec<_> = s.audit().into_iter().filter(|v| !lenient || v.rule != Rule::UnderLimit).collect();
    assert_eq!(found, [], "{what}");
    for h in handles(s) {
        s.recall(&h, &RecallPart::Whole).unwrap_or_else(|e| panic!("{e} {what}"));
    }
    _ = authors;
}

#[derive(Default, Clone)]
struct Aux {
    clock: i64,
    authors: Vec<(usize, String)>,
    client: bool,
    out: Vec<String>,
}

fn prepare(s: &mut Session, aux: &mut Aux) -> Option<Ticket> {
    for asked in 0.. {
        assert!(asked < 200, "it asks for summaries without end");
        match s.prepare(Some(Time(aux.clock))) {
            Ok(Prepared::Send(t)) => {
                assert_eq!(s.audit(), [], "behind prepare");
                check(s, &aux.authors, "behind prepare");
                // No seal of another model is sent.
                if !aux.client {
                    let model = s.model().name.to_string();
                    for p in s.view().parts() {
                        if let longhaul::Source::Message(at) = p.source {
                            let sealed = p
                                .message
                                .blocks()
                                .iter()
                                .any(|b| matches!(b, Block::Thinking(t) if t.seal.is_sealed()));
                            let author = aux
                                .authors
                                .iter()
                                .rev()
                                .find(|(from, _)| *from <= at.index())
                                .map(|(_, n)| n.clone());
                            assert!(!sealed || author.is_none_or(|a| a == model), "a foreign seal is sent");
                        }
                    }
                }
                aux.out.push(format!("{t:?} {:?} {:?}", s.size(), sent(s)));
                return Some(t);
            }
            Ok(Prepared::Summarise(job)) => _ = s.resolve(job.id, answer(&job)),
            Err(e @ PrepareError::TooLarge { .. }) => {
                aux.out.push(e.to_string());
                break;
            }
        }
    }
    None
}

fn apply(s: &mut Session, op: &Op, aux: &mut Aux) {
    let ticket = |s: &Session, back: u64| Ticket(s.last_ticket().map_or(0, |t| t.0).saturating_sub(back));
    match op {
        Op::Push(m) => _ = s.push(m.clone()),
        Op::Prepare(minutes) => {
            aux.clock += i64::from(*minutes) * 6_000_000;
            prepare(s, aux);
        }
        Op::PrepareTwice(minutes) => {
            aux.clock += i64::from(*minutes) * 6_000_000;
            if let Some(first) = prepare(s, aux) {
                let bytes = sent(s);
                let had_job = s.job().is_some();
                if let Some(second) = prepare(s, aux) {
                    if std::env::var("STRICT").is_ok() {
                        assert!(first != second || sent(s) == bytes, "one ticket, two requests");
                        assert!(first == second || sent(s) != bytes || had_job, "two tickets, one request");
                    }
                }
            }
        }
        Op::CompactOn(f) => s.compact_now_on(f.as_str()),
        Op::Undo(n) => aux.out.push(format!("{:?}", s.undo(EditId(*n as u32)))),
        Op::Redo(n) => {
            // Known: a redo of what a switch dropped.
            let switched = s.ledger().get(EditId(*n as u32)).is_some_and(|e| e.why == Why::Switched);
            if !switched {
                aux.out.push(format!("{:?}", s.redo(EditId(*n as u32))))
            }
        }
        Op::Observe(back, p) => {
            let t = ticket(s, *back);
            s.observe(t, &Usage { input: *p, ..Usage::default() })
        }
        Op::Frame(sys, tool, max) => {
            let json = format!(
                r#"{{"system":"{}","tools":[{{"name":"T{tool}"}}],"max_tokens":{max}}}"#,
                "s".repeat(*sys as usize * 100)
            );
            s.set_frame(Frame::from_json(&Json::new(json).unwrap()).unwrap());
        }
        Op::Overflowed(back, p, w) => {
            let t = ticket(s, *back);
            s.overflowed(t, Overflow { prompt: p.map(Tokens), window: w.map(Tokens) })
        }
        Op::Pin(n, size) => s.pin(n.to_string(), format!("pin{n} {}", "p q ".repeat(*size))),
        Op::Unpin(n) => s.unpin(n.to_string()),
        Op::Goal(size) => s.set_goal(format!("goal {}", "g h ".repeat(*size))),
        Op::Remember(n, size) => s.remember(n.to_string(), format!("mem {}", "m n ".repeat(*size))),
        Op::Rules(n, size) => s.set_rules(
            format!("R{n}.md"),
            (*size > 0).then(|| format!("rule{size} {}", "r s ".repeat(*size))).as_deref(),
        ),
        Op::Todos(size) => {
            s.set_todos((*size > 0).then(|| format!("todo {}", "t u ".repeat(*size))).as_deref())
        }
        Op::GitStat(size) => {
            s.set_git_stat((*size > 0).then(|| format!("git {}", "a b ".repeat(*size))).as_deref())
        }
        Op::Switch(n, client) => {
            let name = format!("m{n}");
            if s.model().name.as_ref() != name {
                aux.authors.push((s.log().end().index(), name.clone()));
            }
            aux.client = *client;
            s.switch(model(&name, WINDOWS[*n as usize]), if *client { Seals::Client } else { Seals::Engine });
        }
        Op::Fork(at) => {
            *s = s.fork(Position(*at as u32)).unwrap().fork(Position(*at as u32 + 3)).unwrap();
            let end = s.log().end().index();
            // Who wrote what, as the journal says.
            aux.authors = vec![(0, "start".into())];
            aux.client = false;
            let mut at = 0;
            for e in s.since(longhaul::Cursor(0)) {
                match e {
                    longhaul::Entry::Message(_) => at += 1,
                    longhaul::Entry::Switched { model, seals } => {
                        aux.client = *seals == Seals::Client;
                        aux.authors.push((at, model.name.to_string()))
                    }
                    _ => {}
                }
            }
            _ = end;
        }
        Op::Resolve => {
            if let Some(job) = s.job() {
                _ = s.resolve(job.id, answer(&job));
            }
        }
        Op::Answer(at, n) => {
            if s.log().end().0 > 0 {
                let at = Position(*at as u32 % s.log().end().0);
                let r = s.answer(at, n % 3, "answer line\n".repeat(*n % 2_000));
                aux.out.push(format!("{r:?}"));
            }
        }
        Op::Window(w) => s.set_window(Tokens(*w)),
        Op::MaxOutput(w) => s.set_max_output(Tokens(*w)),
        Op::Lifetime(w) => s.set_cache_lifetime(*w),
        Op::Teach(a, g) => s.teach(Measure { counted: *a, answers: 1, rough: false }, *g),
        Op::Task(n) => {
            let all: Vec<Task> =
                ["coding", "debugging", "research", "chat", "ops", "explore", "edit", "other"]
                    .iter()
                    .filter_map(|n| serde_json::from_str(&format!("{n:?}")).ok())
                    .collect();
            if let Some(t) = all.get(*n as usize) {
                s.set_task(*t)
            }
        }
        Op::Recall(n) => s.set_recall(match n {
            0 => RecallBy::Unsaid,
            1 => RecallBy::Tool("longhaul_recall".into()),
            _ => RecallBy::Command("longhaul recall".into()),
        }),
    }
}

fn histories() -> ProptestConfig {
    let seed = std::env::var("HISTORIES_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 3_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(histories())]
    #[test]
    fn anything(ops in prop::collection::vec(op(), 1..70), window in 0usize..4, profile in 0usize..8, host: bool, neutral: bool, reloads in 0usize..60) {
        let start = || {
            let mut profile = Profile::all().into_iter().nth(profile).unwrap_or_else(Profile::longhaul);
            if host { profile.summariser = Summariser::Host; }
            profile.triggers.calls = profile.triggers.calls.min(6);
            let s = Session::new(profile, model("start", WINDOWS[window]));
            if neutral { s.with_meter(Meter::neutral()) } else { s }
        };
        let new = || Aux { authors: vec![(0, "start".into())], ..Aux::default() };
        let (mut s, mut aux) = (start(), new());
        let (mut t, mut other) = (start(), new());
        for (n, op) in ops.iter().enumerate() {
            apply(&mut s, op, &mut aux);
            check(&s, &aux.authors, "behind an operation");
            if n % 5 == reloads % 5 { t = reload(&t); }
            apply(&mut t, op, &mut other);
            prop_assert_eq!(&aux.out, &other.out);
            aux.out.clear();
            other.out.clear();
        }
        prop_assert_eq!(saved(&s), saved(&t));
        s.search("line", 5).unwrap();
    }
}
