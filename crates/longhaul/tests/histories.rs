//! Random histories with all that a host may say: reports and refusals of any request, limits
//! that move, answers, facts of any length, tasks, and models that cannot read each other's seals.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashMap;

use common::histories::{WINDOWS, answer, histories, message, other_rest, prepare, start};
use common::*;
use longhaul::size::{Count, Measure};
use longhaul::{
    Block, Cursor, EditId, Entry, Frame, Json, Known, Message, Meter, Overflow, Position, PrepareError,
    RecallBy, RecallPart, Seals, Session, Source, Ticket, Time, Tokens, Usage,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Push(Message),
    Prepare(u8),
    PrepareTwice(u8),
    Compact(String),
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
    ForkWithEdits(u8),
    Observe(u64, u64),
    Frame(u8, u8, u64),
    Overflowed(u64, Option<u64>, Option<u64>),
    Resolve,
    Answer(usize, usize),
    Window(u64),
    MaxOutput(u64),
    Lifetime(u64),
    Teach(i64, i64),
    Task(&'static str),
    Recall(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let size = || prop_oneof![3 => 0usize..40, 1 => 0usize..9_000];
    prop_oneof![
        30 => message().prop_map(Op::Push),
        9 => (0u8..90).prop_map(Op::Prepare),
        3 => (0u8..90).prop_map(Op::PrepareTwice),
        1 => "[a-z]{0,9}".prop_map(Op::Compact),
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
        1 => (0u8..4).prop_map(Op::ForkWithEdits),
        3 => (0u64..6, 20u64..9_000).prop_map(|(t, p)| Op::Observe(t, p)),
        1 => (0u8..3, 0u8..3, prop::sample::select(vec![0u64, 5, 700, 4_000, u64::MAX])).prop_map(|(s, t, m)| Op::Frame(s, t, m)),
        1 => (0u64..6, prop::option::of(0u64..20_000), prop::option::of(500u64..20_000)).prop_map(|(t, p, w)| Op::Overflowed(t, p, w)),
        3 => Just(Op::Resolve),
        3 => (0usize..60, prop_oneof![0usize..900, 0usize..20_000]).prop_map(|(at, n)| Op::Answer(at, n)),
        1 => prop::sample::select(vec![0u64, 1, 1_500, 3_000, 8_000, 40_000, u64::MAX]).prop_map(Op::Window),
        1 => prop::sample::select(vec![0u64, 100, 2_000, u64::MAX]).prop_map(Op::MaxOutput),
        1 => prop::sample::select(vec![0u64, 300, u64::MAX]).prop_map(Op::Lifetime),
        1 => (-10i64..3_000, -10i64..9_000).prop_map(|(a, g)| Op::Teach(a, g)),
        1 => prop::sample::select(vec!["code", "analysis", "conversation", "mixed", "unknown"]).prop_map(Op::Task),
        1 => (0u8..3).prop_map(Op::Recall),
    ]
}

/// The handles that what is sent says can be recalled.
fn handles(session: &Session) -> Vec<String> {
    let mut handles = Vec::new();
    for block in sent(session).iter().flat_map(|message| message.blocks()) {
        let text = match block {
            Block::Text(block) => &*block.text,
            Block::ToolResult(result) => &*result.text,
            Block::ToolCall(call) => call.arguments.as_str(),
            _ => "",
        };
        let hexadecimal = |mark: &str| mark.chars().take_while(char::is_ascii_hexdigit).collect();
        handles.extend(text.split("recall ").skip(1).map(hexadecimal));
    }
    handles.retain(|handle: &String| handle.len() == 12);
    handles
}

/// Rules hold between operations too, and what is named can be recalled.
fn check(session: &Session) {
    assert_eq!(session.audit(), []);
    for handle in handles(session) {
        session.recall(&handle, &RecallPart::Whole).unwrap_or_else(|error| panic!("{handle}: {error}"));
    }
}

/// Reasoning that is shown was written by the model that reads it, unless the client sees to that.
fn no_foreign_seal(session: &Session) {
    let (mut authors, mut model, mut seals) = (Vec::new(), None, Seals::Engine);
    for entry in session.since(Cursor(0)) {
        match entry {
            Entry::Began { model: first, .. } => model = Some(first.name.clone()),
            Entry::Switched { model: next, seals: by } => (model, seals) = (Some(next.name.clone()), *by),
            Entry::Message(_) => authors.push(model.clone()),
            _ => {}
        }
    }
    if seals == Seals::Client {
        return;
    }
    let sealed = |block: &Block| matches!(block, Block::Thinking(thinking) if thinking.seal.is_sealed());
    for part in session.view().parts().iter().filter(|part| part.message.blocks().iter().any(sealed)) {
        if let Source::Message(at) = part.source {
            assert_eq!(authors[at.index()], model, "reasoning of message {at:?}");
        }
    }
}

/// What a host sees of a request.
fn request(session: &mut Session, now: Time) -> Result<(Ticket, Count, Vec<Message>), PrepareError> {
    let ticket = prepare(session, now)?;
    check(session);
    no_foreign_seal(session);
    Ok((ticket, session.size(), sent(session)))
}

/// Applies an operation; gives what the host sees of it.
fn apply(session: &mut Session, op: &Op, clock: &mut i64) -> String {
    let ticket = |session: &Session, back: u64| {
        Ticket(session.last_ticket().map_or(0, |ticket| ticket.0).saturating_sub(back))
    };
    let long = |name: &str, size: usize| format!("{name} {}", "p q ".repeat(size));
    let some = |name: &str, size: usize| (size > 0).then(|| long(name, size));
    match op {
        Op::Push(message) => _ = session.push(message.clone()),
        Op::Prepare(minutes) => {
            *clock += i64::from(*minutes) * 60_000_000 / 10;
            other_rest(session, *minutes);
            return format!("{:?}", request(session, Time(*clock)));
        }
        Op::PrepareTwice(minutes) => {
            *clock += i64::from(*minutes) * 60_000_000 / 10;
            other_rest(session, *minutes);
            let first = request(session, Time(*clock));
            // A summary that is written beside the work may end between the two.
            let open = session.job().is_some();
            let second = request(session, Time(*clock));
            if let (Ok((first, _, request)), Ok((second, _, again))) = (&first, &second) {
                assert!(first != second || request == again, "one ticket, two requests");
                assert!(first == second || request != again || open, "two tickets, one request");
            }
            return format!("{first:?} {second:?}");
        }
        Op::Compact(focus) => session.compact_now_on(focus.as_str()),
        Op::Undo(n) => return format!("{:?}", session.undo(EditId(*n as u32))),
        Op::Redo(n) => return format!("{:?}", session.redo(EditId(*n as u32))),
        Op::Pin(n, size) => session.pin(n.to_string(), long("pin", *size)),
        Op::Unpin(n) => session.unpin(n.to_string()),
        Op::Goal(size) => session.set_goal(long("goal", *size)),
        Op::Remember(n, size) => session.remember(n.to_string(), long("memory", *size)),
        Op::Rules(n, size) => session.set_rules(format!("RULES_{n}.md"), some("rule", *size).as_deref()),
        Op::Todos(size) => session.set_todos(some("todo", *size).as_deref()),
        Op::GitStat(size) => session.set_git_stat(some("changed", *size).as_deref()),
        Op::Switch(n, client) => {
            let seals = if *client { Seals::Client } else { Seals::Engine };
            session.switch(model(&format!("m{n}"), WINDOWS[*n as usize]), seals);
        }
        Op::Fork(at) => {
            let fork = session.fork(Position(*at as u32)).unwrap();
            *session = fork.fork(Position(*at as u32 + 3)).unwrap();
        }
        // The last input is written anew.
        Op::ForkWithEdits(back) => {
            let end = session.log().end().0.saturating_sub(u32::from(*back));
            *session = session.fork_with_edits(Position(end)).unwrap();
        }
        Op::Observe(back, prompt) => {
            session.observe(ticket(session, *back), &Usage { input: *prompt, ..Usage::default() })
        }
        Op::Frame(system, tool, max_tokens) => {
            let system = "s".repeat(*system as usize * 100);
            let tools = format!(r#"[{{"name":"T{tool}"}}]"#);
            let json = format!(r#"{{"system":"{system}","tools":{tools},"max_tokens":{max_tokens}}}"#);
            session.set_frame(Frame::from_json(&Json::new(json).unwrap()).unwrap());
        }
        Op::Overflowed(back, prompt, window) => {
            let overflow = Overflow { prompt: prompt.map(Tokens), window: window.map(Tokens), answer: None };
            session.overflowed(ticket(session, *back), overflow)
        }
        // A summary that was written beside the work.
        Op::Resolve => {
            if let Some(job) = session.job() {
                session.resolve(job.id, answer(&job));
            }
        }
        Op::Answer(at, size) => {
            if let Some(at) = (*at as u32).checked_rem(session.log().end().0) {
                let answer = "answer line\n".repeat(size % 2_000);
                return format!("{:?}", session.answer(Position(at), size % 3, answer));
            }
        }
        Op::Window(tokens) => session.set_window(Tokens(*tokens)),
        Op::MaxOutput(tokens) => session.set_max_output(Tokens(*tokens)),
        Op::Lifetime(seconds) => session.set_cache_lifetime(*seconds),
        Op::Teach(counted, growth) => {
            session.teach(Measure { counted: *counted, answers: 1, rough: false }, *growth)
        }
        Op::Task(name) => session.set_task(serde_json::from_str(&format!("{name:?}")).unwrap()),
        Op::Recall(n) => session.set_recall(match n {
            0 => RecallBy::Unsaid,
            1 => RecallBy::Tool("longhaul_recall".into()),
            _ => RecallBy::Command("longhaul recall".into()),
        }),
    }
    String::new()
}

proptest! {
    #![proptest_config(histories(1_000))]

    /// Behind every operation all rules hold and all that is named can be recalled; no model is sent
    /// reasoning of another; a ticket is one request, and a request one ticket; a host that stores
    /// and loads at any time sees the same as one that does not.
    #[test]
    fn whatever_a_host_does_rules_hold_and_loading_changes_nothing(ops in prop::collection::vec(op(), 1..70), window in 0usize..4, profile in 0usize..8, host: bool, neutral: bool, reloads in 0usize..5) {
        let start = || {
            let session = start(profile, window, host);
            if neutral { session.with_meter(Meter::neutral()) } else { session }
        };
        let (mut session, mut clock) = (start(), 0);
        let (mut stored, mut clock_of_stored) = (start(), 0);
        for (n, op) in ops.iter().enumerate() {
            let seen = apply(&mut session, op, &mut clock);
            check(&session);
            if n % 5 == reloads {
                stored = reload(&stored);
            }
            prop_assert_eq!(seen, apply(&mut stored, op, &mut clock_of_stored));
        }
        prop_assert_eq!(saved(&session), saved(&stored));
        prop_assert!(session.search("line", 5).is_ok());
    }
}

proptest! {
    #![proptest_config(histories(300))]

    /// Rule 9, of every request ever sent: a journal that is retraced shows each as it was sent, and so does the
    /// session as it was then.
    #[test]
    fn each_request_is_retraced_as_it_was_sent(ops in prop::collection::vec(op(), 1..70), window in 0usize..4, profile in 0usize..8, host: bool) {
        let (mut session, mut clock, mut requests) = (start(profile, window, host), 0, HashMap::new());
        for op in &ops {
            let seen = apply(&mut session, op, &mut clock);
            let last = session.last_ticket();
            match op {
                Op::Prepare(_) if seen.starts_with("Ok") => _ = requests.insert(last, sent(&session)),
                // What was sent behind the place of a fork is of another session.
                Op::Fork(_) | Op::ForkWithEdits(_) => requests.retain(|ticket, _| *ticket <= last),
                _ => {}
            }
        }
        let mut places = Vec::new();
        let entries = entries(&saved(&session));
        let retraced = Session::retrace(session.profile().clone(), entries, Known::default(), |then, entry| {
            if let Entry::Sent(request) = entry
                && let Some(was) = requests.get(&Some(request.ticket))
            {
                assert_eq!(&sent(then), was, "{:?}", request.ticket);
                places.push((Cursor(then.cursor().0 + 1), request.ticket));
            }
        });
        let retraced = retraced.unwrap();
        prop_assert_eq!(saved(&retraced), saved(&session));
        prop_assert_eq!(places.len(), requests.len());
        for (place, ticket) in places {
            prop_assert_eq!(&sent(&retraced.as_of(place).unwrap()), &requests[&Some(ticket)]);
        }
    }
}
