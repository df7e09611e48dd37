//! Memory comes first: while the store does not work, conversations go on with their edits, and what is not stored then
//! is stored when it works again.

#![cfg(unix)]
#![allow(dead_code, unused_macros, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod common;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clients::{APIS, body_of, conversation, model};
use common::postgres::{Server, skipped};
use common::{Dice, Ground};
use http::HeaderMap;
use longhaul::{Overflow, Tokens, Usage};
use longhaul_gateway::{Call, Decision, Desk, DeskSettings, How, Incoming};
use longhaul_inspector::Host;
use longhaul_store::{Filter, Form, SessionId};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

const STEPS: usize = 40;

/// The store does not work in these calls. The conversation is folded before, and again while it does not work.
const DOWN: std::ops::Range<usize> = 22..34;

fn settings(place: &str) -> DeskSettings {
    DeskSettings { window: Some(Tokens(12_000)), ..DeskSettings::new(place) }
}

fn desk(place: &str) -> Desk {
    Desk::open(settings(place)).unwrap()
}

fn incoming(api: Api, body: &Value) -> Incoming {
    let (tenant, body) = (Arc::from("ann"), body.to_string().into());
    Incoming {
        tenant,
        api,
        upstream: "http://provider".into(),
        headers: HeaderMap::new(),
        account: None,
        body,
    }
}

fn step(api: Api, steps: usize) -> Incoming {
    of_task("Read all files: which one defines `main`?", api, steps)
}

/// A request of a conversation that begins with this task.
fn of_task(task: &str, api: Api, steps: usize) -> Incoming {
    let mut messages = conversation(api, steps);
    messages[0]["content"] = json!(task);
    incoming(api, &body_of(api, model(api), &messages, true))
}

fn sent(desk: &Desk, incoming: &Incoming) -> Call {
    match desk.decide(incoming) {
        Decision::Send(call) => call,
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

/// Asks, tells the desk what it cost, and gives what was sent. It fits, and it goes on with what was sent before.
fn asked(desk: &Desk, incoming: &Incoming) -> (SessionId, How, Bytes) {
    let call = sent(desk, incoming);
    assert!(call.view <= Tokens(12_000), "{call:?}");
    let body = call.body.clone().unwrap_or_else(|| Bytes::from_owner(incoming.body.clone()));
    let (session, how) = (call.session, call.how);
    desk.answered(call, Some(&Usage { input: body.len() as u64 / 4, output: 40, ..Usage::default() }));
    (session, how, body)
}

/// What is sent in a conversation while the store works, and what is stored of it.
fn undisturbed(api: Api) -> (Vec<Bytes>, Vec<String>) {
    let ground = Ground::sqlite();
    let desk = desk(&ground.place);
    let sent: Vec<_> = (0..STEPS).map(|n| asked(&desk, &step(api, n))).collect();
    (sent.iter().map(|(_, _, body)| body.clone()).collect(), transcript(&ground.place, sent[0].0))
}

/// The messages of a stored session.
fn transcript(place: &str, session: SessionId) -> Vec<String> {
    let mut out = Vec::new();
    let store = longhaul_store::open(place).unwrap();
    assert_eq!(store.meta(session).unwrap().tenant, "ann");
    store.export(session, Form::Transcript, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn sessions(place: &str) -> usize {
    longhaul_store::open(place).unwrap().list(&Filter::default(), 100).unwrap().len()
}

/// A conversation in which something happens to the store before some calls. What is sent is what would be sent if nothing
/// had happened, in one session. All of it is stored when the desk closes before the call `DOWN.end`, and a gateway that is
/// started then goes on with it.
fn nothing_is_seen_of(place: &str, api: Api, mut before: impl FnMut(&Desk, usize)) {
    let (expected, stored) = undisturbed(api);
    let desk = desk(place);
    let same = |desk: &Desk, n: usize| {
        let (session, how, body) = asked(desk, &step(api, n));
        assert_eq!(how, if n == 0 { How::New } else { How::Extends }, "{api:?} {n}");
        assert!(body == expected[n], "{api:?} {n}: another body");
        session
    };
    let sessions: Vec<SessionId> = (0..DOWN.end)
        .map(|n| {
            before(&desk, n);
            same(&desk, n)
        })
        .collect();
    before(&desk, DOWN.end);
    desk.close();
    let kept = transcript(place, sessions[0]);
    assert_eq!(kept, stored[..kept.len()], "{api:?}");
    drop(desk);
    let again = self::desk(place);
    let gone_on = (DOWN.end..STEPS).map(|n| same(&again, n));
    assert!(sessions.iter().copied().chain(gone_on).all(|session| session == sessions[0]), "{api:?}");
    assert_eq!(transcript(place, sessions[0]), stored, "{api:?}");
    assert_eq!(self::sessions(place), 1, "{api:?}");
}

/// Another process keeps the file for itself.
fn locked(place: &str) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(place).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[test]
fn a_locked_file_holds_no_conversation_up() {
    for api in APIS {
        let ground = Ground::sqlite();
        let mut lock = None;
        nothing_is_seen_of(&ground.place, api, |desk, n| match n {
            _ if n == DOWN.start => lock = Some(locked(&ground.place)),
            _ if n + 1 == DOWN.end => {
                let why = desk.ready().unwrap_err().to_string();
                assert!(why.contains("is in use by others"), "{why}");
            }
            _ if n == DOWN.end => drop(lock.take()),
            _ => {}
        });
    }
}

/// Longer than it takes until another file is noticed.
fn look_again() {
    std::thread::sleep(Duration::from_millis(600));
}

#[test]
fn a_file_that_is_deleted_is_made_again_with_all_that_memory_has() {
    for (api, with_log) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        let ground = Ground::sqlite();
        nothing_is_seen_of(&ground.place, api, |desk, n| {
            if n == DOWN.start {
                let ends = if with_log { &["", "-wal", "-shm"][..] } else { &[""] };
                ends.iter().for_each(|end| std::fs::remove_file(format!("{}{end}", ground.place)).unwrap());
            } else if n == DOWN.start + 3 || n == DOWN.end {
                look_again();
            } else if n == DOWN.start + 4 {
                desk.ready().unwrap();
                desk.tend();
                assert_eq!(sessions(&ground.place), 1);
            }
        });
    }
}

#[test]
fn a_file_that_is_replaced_gets_what_memory_has() {
    for (api, has_session) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        let ground = Ground::sqlite();
        let backup = format!("{}.backup", ground.place);
        nothing_is_seen_of(&ground.place, api, |_, n| {
            // A copy of some calls ago, or from before the first.
            if n == if has_session { DOWN.start - 5 } else { 0 } {
                let copy = format!("VACUUM INTO '{backup}'");
                rusqlite::Connection::open(&ground.place).unwrap().execute_batch(&copy).unwrap();
            } else if n == DOWN.start {
                std::fs::rename(&backup, &ground.place).unwrap();
            } else if n == DOWN.start + 3 || n == DOWN.end {
                look_again();
            }
        });
    }
}

#[test]
fn a_file_that_is_damaged_holds_no_conversation_up() {
    for api in APIS {
        let ground = Ground::sqlite();
        nothing_is_seen_of(&ground.place, api, |_, n| {
            if n == DOWN.start {
                for end in ["", "-wal"] {
                    let path = format!("{}{end}", ground.place);
                    let length = std::fs::metadata(&path).unwrap().len();
                    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                    file.write_all(&vec![0xA5; usize::try_from(length).unwrap()]).unwrap();
                }
            } else if n == DOWN.end {
                std::fs::rename(&ground.place, format!("{}.damaged", ground.place)).unwrap();
                look_again();
            }
        });
    }
}

/// Runs on a disk of its own, which is full for some calls.
#[test]
#[ignore = "run by another test as a process of its own"]
fn goes_on_while_the_disk_is_full() {
    let Some((folder, _)) = common::given() else { return };
    let folder = Path::new(&folder);
    let (place, ballast) = (folder.join("sessions.db"), folder.join("ballast"));
    nothing_is_seen_of(&place.display().to_string(), Api::Anthropic, |desk, n| {
        if n == DOWN.start {
            let mut file = std::fs::File::create(&ballast).unwrap();
            while file.write_all(&[7; 512]).is_ok() {}
        } else if n + 1 == DOWN.end {
            let why = desk.ready().unwrap_err().to_string();
            assert!(why.contains("no room"), "{why}");
        } else if n == DOWN.end {
            std::fs::remove_file(&ballast).unwrap();
        }
    });
}

#[test]
fn a_full_disk_holds_no_conversation_up() {
    let can = Command::new("unshare").args(["--mount", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        std::io::stderr().write_all(b"SKIPPED: a full disk (no small disk can be mounted here)\n").unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let child = common::child("goes_on_while_the_disk_is_full", &place, "");
    let mount = format!("mount -t tmpfs -o size=8m none {place} && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &mount, "sh"]).arg(child.get_program()).args(child.get_args());
    command.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A server of its own, since it is stopped.
fn server() -> Option<Server> {
    Server::start(&["fsync=off"]).inspect_err(|why| skipped(why)).ok()
}

#[test]
fn a_server_that_is_stopped_holds_no_conversation_up() {
    let Some(server) = server() else { return };
    nothing_is_seen_of(&server.database(), Api::Anthropic, |desk, n| {
        if n == DOWN.start {
            server.stop_at_once();
        } else if n + 1 == DOWN.end {
            assert!(desk.ready().unwrap_err().to_string().contains("cannot be used"));
        } else if n == DOWN.end {
            server.start_again();
        }
    });
}

#[test]
fn a_server_that_hangs_holds_no_conversation_up() {
    let Some(server) = server() else { return };
    nothing_is_seen_of(&server.database(), Api::Chat, |desk, n| {
        if n == DOWN.start {
            server.freeze();
        } else if n + 1 == DOWN.end {
            let why = desk.ready().unwrap_err().to_string();
            assert!(why.contains("does not answer in time"), "{why}");
        } else if n == DOWN.end {
            server.thaw();
        }
    });
}

/// A request of a conversation that is only in the store begins one in memory, from all that the client sends: it fits, it
/// is gone on with, and it is stored when the store is back.
#[test]
fn a_conversation_that_only_the_store_has_goes_on_without_it() {
    let Some(server) = server() else { return };
    let place = server.database();
    (0..30).for_each(|n| drop(asked(&desk(&place), &step(Api::Chat, n))));
    let desk = desk(&place);
    server.stop_at_once();
    let (session, how, mut before) = asked(&desk, &step(Api::Chat, 30));
    assert_eq!(how, How::New);
    let mut breaks = 0;
    for n in 31..STEPS {
        let (same, how, body) = asked(&desk, &step(Api::Chat, n));
        assert_eq!((same, how), (session, How::Extends), "{n}");
        // An edit stands: the request begins as the one before it.
        breaks += usize::from(!body.starts_with(&before[..before.len() / 2]));
        before = body;
    }
    assert!(breaks < 5, "{breaks}");
    server.start_again();
    desk.close();
    drop(desk);
    let (same, how, body) = asked(&self::desk(&place), &step(Api::Chat, STEPS - 1));
    assert_eq!((same, how), (session, How::Retry));
    assert!(body == before);
    assert_eq!(sessions(&place), 2);
}

#[test]
fn conversations_that_begin_without_the_store_are_stored_when_it_is_back() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground.place);
        (0..20).for_each(|n| drop(asked(&desk, &step(api, n))));
        let lock = locked(&ground.place);
        let whole = of_task("Read them once more.", api, 30);
        let (begun, how, _) = asked(&desk, &whole);
        assert_eq!(how, How::New, "{api:?}");
        let other = of_task("Read them once more.", api, 31);
        assert_eq!(asked(&desk, &other).0, begun, "{api:?}");
        // The client goes another way with its first conversation, and with one that is not stored.
        let mut forks = Vec::new();
        for task in ["Read all files: which one defines `main`?", "Read them once more."] {
            let mut messages = conversation(api, 15);
            messages[0]["content"] = json!(task);
            messages.push(json!({"role": "user", "content": "Stop."}));
            let forked = incoming(api, &body_of(api, model(api), &messages, true));
            let (session, how, body) = asked(&desk, &forked);
            assert_eq!(how, How::Forks, "{api:?} {task}");
            forks.push((session, forked, body));
        }
        assert_eq!(sessions(&ground.place), 1, "{api:?}");
        drop(lock);
        desk.close();
        assert_eq!(sessions(&ground.place), 4, "{api:?}");
        assert_eq!(transcript(&ground.place, begun).len(), 1 + 31 * 2, "{api:?}");
        drop(desk);
        let again = self::desk(&ground.place);
        assert_eq!(asked(&again, &of_task("Read them once more.", api, 32)).0, begun, "{api:?}");
        for (session, forked, body) in forks {
            let (same, how, again) = asked(&again, &forked);
            assert_eq!((same, how), (session, How::Retry), "{api:?}");
            assert!(body == again, "{api:?}");
        }
    }
}

/// The lock goes while the desk closes. Without that, the next desk goes on from what is stored.
#[test]
fn a_desk_that_closes_waits_a_little_for_the_store() {
    let ground = Ground::sqlite();
    for (n, is_unlocked) in [(20, true), (30, false)] {
        let desk = desk(&ground.place);
        (n - 10..n).for_each(|n| drop(asked(&desk, &step(Api::Chat, n))));
        let stored =
            longhaul_store::open(&ground.place).unwrap().list(&Filter::default(), 9).unwrap()[0].clone();
        let mut lock = Some(locked(&ground.place));
        asked(&desk, &step(Api::Chat, n));
        std::thread::scope(|scope| {
            scope.spawn(|| desk.close());
            if is_unlocked {
                std::thread::sleep(Duration::from_millis(800));
                drop(lock.take());
            }
        });
        drop(lock);
        let kept = transcript(&ground.place, stored.id).len() as u64;
        assert_eq!(kept, if is_unlocked { stored.messages + 2 } else { stored.messages }, "{n}");
    }
    let (_, how, _) = asked(&desk(&ground.place), &step(Api::Chat, 31));
    assert_eq!(how, How::Extends);
}

/// One replica goes on with a conversation that another one could not store: both ways are stored, and each goes on.
#[test]
fn what_two_replicas_have_sent_is_two_sessions() {
    for api in APIS {
        let ground = Ground::sqlite();
        let (one, other) = (desk(&ground.place), desk(&ground.place));
        let session = (0..22).map(|n| asked(&one, &step(api, n)).0).last().unwrap();
        let lock = locked(&ground.place);
        let last = (22..30).map(|n| asked(&one, &step(api, n))).last().unwrap();
        assert_eq!(last.0, session);
        drop(lock);
        let elsewhere = (22..25).map(|n| asked(&other, &step(api, n))).last().unwrap();
        assert_eq!(elsewhere.0, session, "{api:?}");
        one.close();
        let (own, how, body) = asked(&one, &step(api, 29));
        assert!(own != session, "{api:?}");
        assert_eq!(how, How::Retry, "{api:?}");
        assert!(body == last.2, "{api:?}");
        assert_eq!(asked(&one, &step(api, 30)).0, own, "{api:?}");
        assert_eq!(transcript(&ground.place, own).len(), 1 + 30 * 2, "{api:?}");
        assert_eq!(transcript(&ground.place, session).len(), 1 + 24 * 2, "{api:?}");
        // The other one goes on too, in its own way; one that knows neither finds the one that says more.
        assert_eq!(asked(&other, &step(api, 31)).0, session, "{api:?}");
        one.close();
        assert_eq!(asked(&one, &step(api, 32)).0, own, "{api:?}");
    }
}

/// What is not stored stays in memory, up to a bound.
#[test]
fn what_is_not_stored_leaves_memory_last() {
    let ground = Ground::sqlite();
    let tasks = ["one", "two", "three", "four"];
    let all = |desk: &Desk| {
        tasks.map(|task| (0..12).map(|n| asked(desk, &of_task(task, Api::Chat, n)).0).last().unwrap())
    };
    let whole = desk(&Ground::sqlite().place);
    all(&whole);
    let bytes = whole.live().1;
    for (memory, live) in [(bytes * 2 / 3, 4), (bytes / 3, 2)] {
        let desk = Desk::open(DeskSettings { memory, ..settings(&ground.place) }).unwrap();
        let lock = locked(&ground.place);
        let ids = all(&desk);
        assert_eq!(desk.live().0, live, "{memory}");
        drop(lock);
        desk.close();
        let store = ground.open();
        let kept: Vec<bool> = ids.iter().map(|id| store.meta(*id).is_ok()).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), live, "{memory}");
        assert!(kept[3], "{memory}");
        // What is stored goes first.
        asked(&desk, &of_task("five", Api::Chat, 12));
        assert!(desk.live().1 <= memory, "{memory}");
    }
}

/// A bug leaves a conversation half done. What was not stored of it is in its journal.
#[test]
fn a_panic_loses_nothing_that_is_not_stored() {
    for api in APIS {
        let ground = Ground::sqlite();
        let mut lock = None;
        nothing_is_seen_of(&ground.place, api, |desk, n| {
            if n == DOWN.start {
                lock = Some(locked(&ground.place));
            } else if n == DOWN.start + 4 {
                let live = Host::live(desk);
                let act = || Host::change(desk, live[0], &mut |_| panic!("a bug"));
                assert!(catch_unwind(AssertUnwindSafe(act)).is_err());
            } else if n == DOWN.end {
                drop(lock.take());
            }
        });
    }
}

/// A limit that was learnt while the store did not work is stored too, and so is one whose file is gone.
#[test]
fn limits_that_were_learnt_are_stored_when_the_store_is_back() {
    let ground = Ground::sqlite();
    let desk = desk(&ground.place);
    let overflow = Overflow { prompt: None, window: Some(Tokens(12_000)), answer: Some(Tokens(1_000)) };
    let call = sent(&desk, &step(Api::Anthropic, 5));
    let lock = locked(&ground.place);
    desk.refused(call, overflow);
    assert!(ground.open().limits().unwrap().is_empty());
    drop(lock);
    desk.close();
    assert_eq!(ground.open().limits().unwrap().len(), 1);
    std::fs::remove_file(&ground.place).unwrap();
    look_again();
    desk.tend();
    assert_eq!(ground.open().limits().unwrap().len(), 1);
}

/// On a file that is locked and deleted again and again.
#[test]
fn a_storm_of_faults_loses_nothing() {
    let ground = Ground::sqlite();
    nothing_is_lost_in(&ground.place, |dice| {
        if dice.roll(3) == 0 {
            // It may be about to be made.
            _ = std::fs::remove_file(&ground.place);
        } else if let Ok(other) =
            rusqlite::Connection::open_with_flags(&ground.place, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
        {
            _ = other.execute_batch("BEGIN IMMEDIATE");
            std::thread::sleep(Duration::from_millis(dice.roll(700)));
        }
    });
    ground.check();
}

/// On a server that hangs and loses its connections again and again.
#[test]
fn a_storm_of_faults_of_a_server_loses_nothing() {
    let Some(server) = server() else { return };
    let place = server.database();
    nothing_is_lost_in(&place, |dice| {
        if dice.roll(3) == 0 {
            server.freeze();
            std::thread::sleep(Duration::from_millis(dice.roll(1_500)));
            server.thaw();
        } else {
            let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            _ = common::postgres::try_sql(&place, others);
        }
    });
    Ground::on_postgres(place).check();
}

/// Many conversations at once, while faults of the store come and go: each stays one conversation, in its window, and all
/// of them are stored in the end.
fn nothing_is_lost_in(place: &str, fault: impl Fn(&mut Dice) + Sync) {
    const AT_ONCE: usize = 4;
    const CONVERSATIONS: usize = 12;
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    eprintln!("seed {seed}");
    let desk = desk(place);
    let task = |number: usize| format!("Read all files: which one defines `main`, {number}?");
    let api = |number: usize| APIS[number % APIS.len()];
    let is_over = AtomicBool::new(false);
    let ids: Vec<SessionId> = std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let mut dice = Dice(seed);
            while !is_over.load(Ordering::Relaxed) {
                fault(&mut dice);
                std::thread::sleep(Duration::from_millis(dice.roll(300)));
            }
        });
        let tender = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(200));
                desk.tend();
            }
        });
        let talk = |first: usize| {
            let desk = &desk;
            move || -> Vec<(usize, SessionId)> {
                let own: Vec<usize> = (first..CONVERSATIONS).step_by(AT_ONCE).collect();
                let mut ids = vec![None; own.len()];
                for n in 0..STEPS {
                    for (number, id) in own.iter().zip(&mut ids) {
                        let (session, how, _) = asked(desk, &of_task(&task(*number), api(*number), n));
                        let expected = if n == 0 { How::New } else { How::Extends };
                        assert_eq!(how, expected, "seed {seed}: {number} {n}");
                        assert_eq!(*id.get_or_insert(session), session, "seed {seed}: {number} {n}");
                    }
                }
                own.into_iter().zip(ids.into_iter().flatten()).collect()
            }
        };
        let talks: Vec<_> = (0..AT_ONCE).map(|first| scope.spawn(talk(first))).collect();
        let done: Vec<_> = talks.into_iter().map(|talk| talk.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        storm.join().unwrap();
        tender.join().unwrap();
        let mut ids: Vec<_> = done.into_iter().flat_map(Result::unwrap).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    });
    look_again();
    desk.close();
    drop(desk);
    let again = self::desk(place);
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(transcript(place, id).len(), messages_of(api(number), STEPS - 1), "seed {seed}: {number}");
        let (session, how, _) = asked(&again, &of_task(&task(number), api(number), STEPS));
        assert_eq!((session, how), (id, How::Extends), "seed {seed}: {number}");
    }
}

/// How many messages a conversation has after so many steps.
fn messages_of(api: Api, steps: usize) -> usize {
    let request = longhaul_wire::api::Request::decode(api, &*of_task("", api, steps).body).unwrap();
    request.messages().len()
}
