//! The figures of `docs/performance.md`: `cargo bench --bench engine [-- FOLDER [PART]]`. FOLDER
//! holds transcripts; without it, text is made up here (the figures then say so). PART is one of
//! `memory threads warming pushing counting worst compacting digesting loading forking`.

#![allow(clippy::expect_used)]

use std::collections::HashMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use longhaul::{
    Block, Cursor, Entry, Handle, Known, Message, Meter, Models, Position, Profile, Role, Session, Tokens,
    ToolCall, Vocabulary,
};
use longhaul_wire::transcript;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let (folder, part) = (args.next(), args.next());
    let wants = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let (sessions, source) = match &folder {
        Some(folder) => (read_sessions(Path::new(folder)), folder.as_str()),
        None => (vec![made_up()], "made-up text"),
    };
    let messages = sessions.concat();
    let bytes: usize = messages.iter().map(|message| text_bytes(message)).sum();
    println!("{} messages, {:.1} MB of text from {source}\n", messages.len(), bytes as f64 / 1e6);
    // Memory first, before freed memory of the others hides what it takes.
    let parts: [(&str, &dyn Fn()); 10] = [
        ("memory", &|| memory(&messages)),
        ("threads", &|| threads(&messages)),
        ("warming", &warming),
        ("pushing", &|| pushing(&messages)),
        ("counting", &|| counting(&messages)),
        ("worst", &worst_cases),
        ("compacting", &|| compacting(&sessions)),
        ("digesting", &|| digesting(&sessions)),
        ("loading", &|| loading(&sessions)),
        ("forking", &|| forking(&messages)),
    ];
    parts.iter().filter(|(name, _)| wants(name)).for_each(|(_, run)| run());
}

fn read_sessions(folder: &Path) -> Vec<Vec<Arc<Message>>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".jsonl"))
        .collect();
    files.sort();
    let read = |path: &PathBuf| transcript::open(path).expect("the file can be read").map_while(Result::ok);
    files.iter().map(|path| read(path).map(Arc::new).collect()).collect()
}

fn made_up() -> Vec<Arc<Message>> {
    let line =
        |n: usize| format!("    let value_{n} = compute({}, \"name {}\");\n", n * 7919 % 1009, n * 31 % 97);
    let round = |n: usize| {
        let id = format!("call_{n}");
        let call = Block::call(id.as_str(), "Read", longhaul::Json::empty_object());
        let text: String = (n * 40..n * 40 + 40 + n % 60).map(line).collect();
        [Message::new(Role::Assistant, vec![call]), Message::result(id.as_str(), text)]
    };
    (0..6_000).flat_map(round).map(Arc::new).collect()
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.blocks().iter().map(|block| match block {
        Block::Text(b) => &*b.text,
        Block::Thinking(b) => &*b.text,
        Block::ToolCall(b) => b.arguments.as_str(),
        Block::ToolResult(b) => &*b.text,
        Block::Image(_) | Block::Opaque(_) => "",
    })
}

fn text_bytes(message: &Message) -> usize {
    texts(message).map(str::len).sum()
}

fn counting(messages: &[Arc<Message>]) {
    println!("\ncounting with cl100k");
    let bytes: usize = messages.iter().map(|message| text_bytes(message)).sum();
    Vocabulary::Cl100k.count("load");
    for pass in ["cold", "again"] {
        let started = Instant::now();
        let tokens: u64 =
            messages.iter().flat_map(|m| texts(m)).map(|text| Vocabulary::Cl100k.count(text).tokens).sum();
        let rate = bytes as f64 / started.elapsed().as_secs_f64() / 1e6;
        println!("  {pass:6} {rate:7.1} MB/s   ({tokens} tokens)");
    }
    // Short texts, where the way to the memo weighs most.
    let lines: Vec<&str> = messages.iter().flat_map(|m| texts(m)).flat_map(str::lines).collect();
    let started = Instant::now();
    lines.iter().for_each(|line| _ = black_box(Vocabulary::Cl100k.count(line)));
    let each = started.elapsed().as_nanos() as f64 / lines.len() as f64;
    println!("  lines  {each:7.1} ns each ({} of them)", lines.len());
}

fn worst_cases() {
    println!("\n1 MB of one kind");
    let cases = [
        ("a", "a"),
        ("spaces", " "),
        ("newlines", "\n"),
        ("=", "="),
        ("Chinese", "中"),
        ("mixed Chinese", "中文，测试"),
    ];
    for (name, unit) in cases {
        let text = unit.repeat((1 << 20) / unit.len());
        let slowest = Vocabulary::ALL.map(|vocabulary| {
            vocabulary.count("load");
            let started = Instant::now();
            black_box(vocabulary.count(&text));
            (started.elapsed(), vocabulary)
        });
        let (time, vocabulary) = slowest.into_iter().max_by_key(|(time, _)| *time).expect("vocabularies");
        println!("  {name:14} {:6.0} ms at most ({vocabulary:?})", time.as_secs_f64() * 1e3);
    }
}

/// A session in a window that nothing fills: no edit is ever made.
fn session() -> Session {
    let mut profile = Profile::longhaul();
    profile.cut = longhaul::digest::Cut::NONE;
    profile.dial = None;
    Session::new(profile, Models::builtin().find("gpt-4o").clone()).with_window(Tokens(1 << 40))
}

/// Time of push and prepare over what the bar allows, 20 µs + 30 ns per byte, as one session
/// grows. Steps (an answer and its results) come in an order that mixes all sources, so that
/// each thousand is like the others, and a request is made whenever it is the model's turn. The
/// tokenizer is warm, but has counted none of them: it met them changed. Three sessions are
/// grown alike: what other programs on the machine take shows in one of them, what a message
/// takes shows in all.
fn pushing(messages: &[Arc<Message>]) {
    println!("push + prepare: share of 20 µs + 30 ns per byte, in each of three runs, and the least of them");
    for message in messages {
        texts(&fresh(message, 25)).for_each(|text| _ = black_box(Vocabulary::O200k.count(text)));
    }
    let runs: [Vec<f64>; 3] = std::array::from_fn(|run| pushes(messages, run * 30));
    let least = (0..runs[0].len()).map(|n| runs.iter().map(|run| run[n]).fold(f64::MAX, f64::min));
    let least: Vec<f64> = least.collect();
    for (from, to) in [(0, 1_000), (1_000, 10_000), (10_000, 100_000)] {
        let at = |shares: &[f64], percent: usize| {
            let mut shares = shares[from..to].to_vec();
            shares.sort_by(f64::total_cmp);
            shares[shares.len() * percent / 100] * 100.0
        };
        let each: Vec<String> = runs.iter().map(|run| format!("{:3.0}", at(run, 99))).collect();
        println!(
            "  up to {to:6} messages: {:3.0} % median, p99 {} %, least {:3.0} %",
            at(&runs[0], 50),
            each.join(" / "),
            at(&least, 99)
        );
    }
}

/// The share of the bar that each of 100,000 pushes takes.
fn pushes(messages: &[Arc<Message>], first_round: usize) -> Vec<f64> {
    let mut session = session();
    let chunks: Vec<_> = messages.chunk_by(|_, next| next.role() == Role::Tool).collect();
    let steps = chunks.as_slice();
    // A stride that has no factor in common with their number visits all of them.
    let mixed = (0..).flat_map(|n| {
        let step = steps[n * 7919 % steps.len()];
        step.iter().enumerate().map(move |(at, message)| (n / steps.len(), message, at + 1 == step.len()))
    });
    let timed = mixed.take(100_000).map(|(round, message, due)| {
        let message = fresh(message, first_round + round);
        let allowed = 20e-6 + 30e-9 * text_bytes(&message) as f64;
        let started = Instant::now();
        session.push(message);
        if due {
            session.prepare(None).expect("it fits");
        }
        started.elapsed().as_secs_f64() / allowed
    });
    timed.collect()
}

/// From the second round on the same message with two letters in each line and a number in each
/// id, so that no count is remembered.
fn fresh(message: &Arc<Message>, round: usize) -> Arc<Message> {
    if round == 0 {
        return message.clone();
    }
    let letters = [round % 26, round / 26].map(|n| char::from(b'a' + n as u8));
    let letters: String = letters.iter().collect();
    let marked = |text: &str| format!("{letters}{}", text.replace('\n', &format!("\n{letters}")));
    let blocks = message.blocks().iter().cloned().map(|mut block| {
        match &mut block {
            Block::Text(b) => b.text = marked(&b.text).into(),
            Block::Thinking(b) => b.text = marked(&b.text).into(),
            Block::ToolCall(b) => b.id = format!("{}-{round}", b.id).into(),
            Block::ToolResult(b) => {
                b.id = format!("{}-{round}", b.id).into();
                b.text = marked(&b.text).into();
            }
            Block::Image(_) | Block::Opaque(_) => {}
        }
        block
    });
    Arc::new((**message).clone().with_blocks(blocks.collect()))
}

/// Resident memory of a session that was read from its lines, over its text: of one in which nothing is folded, and of
/// one with the folds of the default profile in a window of 200,000.
fn memory(messages: &[Arc<Message>]) {
    let lines: Vec<String> =
        messages.iter().map(|message| transcript::encode(message).into_owned()).collect();
    let text: usize = messages.iter().map(|message| text_bytes(message)).sum();
    println!("memory of a session of {:.1} MB of text (bar: 2.5 times, nothing folded)", text as f64 / 1e6);
    let folding = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    let folding = folding.with_window(Tokens(200_000));
    // Memory that the first one leaves would hide what the second takes: the first is kept.
    let sessions = [("nothing folded", session()), ("folded", folding)].map(|(name, session)| {
        // Sizes are counted without a vocabulary: it is shared by all sessions.
        let mut session = session.with_meter(Meter::neutral());
        let before = resident();
        for line in &lines {
            let message = transcript::decode(line).expect("it was read before");
            // Requests are made: what is remembered of them is part of a live session.
            if message.role() == Role::Assistant {
                session.prepare(None).expect("it fits");
            }
            session.push(message);
        }
        if let (Some(before), Some(after)) = (before, resident()) {
            let used = after.saturating_sub(before);
            let times = used as f64 / text as f64;
            println!("  {name:14}: {:.1} MB, {times:.2} times its text", used as f64 / 1e6);
        }
        session
    });
    black_box(&sessions);
}

/// What counting in many threads at once takes of memory, beside the vocabulary.
fn threads(messages: &[Arc<Message>]) {
    const THREADS: usize = 55;
    Vocabulary::O200k.warm();
    let before = resident();
    let counted = std::sync::Barrier::new(THREADS + 1);
    let after = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                messages.iter().take(2_000).flat_map(|m| texts(m)).for_each(|text| {
                    _ = black_box(Vocabulary::O200k.count(text));
                });
                counted.wait();
                counted.wait();
            });
        }
        counted.wait();
        let after = resident();
        counted.wait();
        after
    });
    if let (Some(before), Some(after)) = (before, after) {
        println!(
            "memory of {THREADS} threads that count: {:.1} MB",
            after.saturating_sub(before) as f64 / 1e6
        );
    }
}

/// What a first text waits for, and what it waits for when its vocabulary is warm.
fn warming() {
    let text = "名前はまだ無い。我们今天去学校学习中文。".repeat(50);
    let time = |run: &dyn Fn()| {
        let started = Instant::now();
        run();
        started.elapsed().as_secs_f64() * 1e3
    };
    println!("\nms to warm a vocabulary, then for a first Chinese and Japanese text in another thread");
    for vocabulary in Vocabulary::ALL {
        let warm = time(&|| std::thread::scope(|scope| _ = scope.spawn(|| vocabulary.warm()).join()));
        let first = time(&|| _ = black_box(vocabulary.count(&text)));
        println!("  {:12} {warm:6.1} {first:6.1}", format!("{vocabulary:?}"));
    }
}

/// Resident bytes, where the system says so.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

/// Time of each compaction over the tokens that its edits cover.
fn compacting(sessions: &[Vec<Arc<Message>>]) {
    println!("\ncompaction, ms per 100,000 tokens covered (bar: 5)");
    for window in [32_000, 200_000] {
        let (mut digests, mut folds) = (Vec::new(), Vec::new());
        for messages in sessions {
            let model = Models::builtin().find("gpt-4o").clone();
            let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(window));
            for message in messages {
                if message.role() == Role::Assistant {
                    let before = session.ledger().next_id().0 as usize;
                    let started = Instant::now();
                    let ready = session.prepare(None).is_ok();
                    let time = started.elapsed().as_secs_f64();
                    let new: Vec<_> = session.ledger().edits().skip(before).collect();
                    let covered: u64 = new.iter().map(|(edit, _)| edit.before.0).sum();
                    // Less says more about the clock than about the work.
                    if ready && covered > 5_000 {
                        let folded = new.iter().any(|(edit, _)| edit.kind.replaces_runs());
                        let one = (time * 1e3, covered as f64 / 1e5);
                        if folded { folds.push(one) } else { digests.push(one) }
                    }
                }
                session.push(message.clone());
            }
        }
        for (name, all) in [("digests", digests), ("folds", folds)] {
            let sum = all.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let mut times: Vec<f64> = all.iter().map(|(time, covered)| time / covered).collect();
            times.sort_by(f64::total_cmp);
            if let Some(last) = times.last() {
                let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
                println!(
                    "  window {window:6}, {:4} × {name:7}: {:5.2} in all, {:5.2} median, {:5.2} p90, {last:5.2} most",
                    times.len(),
                    sum.0 / sum.1,
                    at(50),
                    at(90)
                );
            }
        }
    }
}

/// How fast results become digests.
fn digesting(sessions: &[Vec<Arc<Message>>]) {
    println!("\ndigests of all results (bar: 100 MB/s)");
    type Digest = fn(&ToolCall, &str, Handle) -> Option<String>;
    let ways: [(&str, Digest); 3] = [
        ("by content", longhaul::digest::of_call),
        ("by tool", longhaul::digest::of_call_by_tool),
        ("by position", |_, text, handle| longhaul::digest::result(text, handle)),
    ];
    let handle = Handle::of("");
    for (name, digest) in ways {
        let (mut bytes, mut kept, mut made) = (0, 0, 0);
        let started = Instant::now();
        for messages in sessions {
            let calls: HashMap<&str, &ToolCall> =
                messages.iter().flat_map(|message| message.calls()).map(|call| (&*call.id, call)).collect();
            for result in messages.iter().flat_map(|message| message.results()) {
                let Some(call) = calls.get(&*result.id) else { continue };
                let short = digest(call, &result.text, handle);
                bytes += result.text.len();
                made += usize::from(short.is_some());
                kept += short.map_or(result.text.len(), |short| short.len());
            }
        }
        let rate = bytes as f64 / started.elapsed().as_secs_f64() / 1e6;
        println!(
            "  {name:12} {rate:6.0} MB/s, {made} digests, {:4.1} % kept",
            kept as f64 * 100.0 / bytes as f64
        );
    }
}

/// Time from what a store holds of a session of 200,000 tokens to its view.
fn loading(sessions: &[Vec<Arc<Message>>]) {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut best: Option<Session> = None;
    for messages in sessions {
        let mut session = Session::new(Profile::longhaul(), model.clone());
        for message in messages {
            session.push(message.clone());
            if message.role() == Role::User && session.meter().tokens(session.full()).tokens > Tokens(200_000)
            {
                break;
            }
        }
        let size = |session: &Session| session.meter().tokens(session.full()).tokens;
        if best
            .as_ref()
            .is_none_or(|best| size(best).0.abs_diff(200_000) > size(&session).0.abs_diff(200_000))
        {
            best = Some(session);
        }
    }
    let Some(mut session) = best else { return };
    session.prepare(None).expect("it fits");
    let lines: Vec<String> = session
        .since(Cursor(0))
        .map(|entry| serde_json::to_string(entry).expect("an entry can be written"))
        .collect();
    let known = Known { sizes: session.snapshots(), store: None };
    let started = Instant::now();
    let entries: Vec<Entry> =
        lines.iter().map(|line| serde_json::from_str(line).expect("it was written")).collect();
    let read = started.elapsed();
    let mut loaded = Session::load_with(Profile::longhaul(), entries, known).expect("it was saved");
    loaded.push(Message::user("Go on."));
    loaded.prepare(None).expect("it fits");
    let all = started.elapsed();
    println!(
        "\nload and prepare {} entries, {} tokens: {:.1} ms, of which reading {:.1} ms (bar: 20)",
        lines.len(),
        session.meter().tokens(session.full()).tokens,
        all.as_secs_f64() * 1e3,
        read.as_secs_f64() * 1e3
    );
}

/// Time of a fork of 10,000 messages, at places all over the session.
fn forking(messages: &[Arc<Message>]) {
    let mut session = session().with_window(Tokens(200_000)).with_meter(Meter::neutral());
    for message in messages.iter().cycle().take(10_000) {
        if message.role() == Role::Assistant {
            session.prepare(None).expect("it fits");
        }
        session.push(message.clone());
    }
    let places = [1_000, 2_500, 5_000, 7_500, 9_000, 9_990, 10_000];
    let timed = places.map(|end| {
        let times = (0..5).map(|_| {
            let started = Instant::now();
            black_box(session.fork(Position(end)).expect("a fork"));
            started.elapsed().as_secs_f64() * 1e3
        });
        (end, times.fold(f64::MAX, f64::min))
    });
    let each: Vec<String> = timed.iter().map(|(end, ms)| format!("{end}: {ms:.2}")).collect();
    println!("\nfork of a session of 10,000 messages, ms at each place (bar: 1): {}", each.join(", "));
}
