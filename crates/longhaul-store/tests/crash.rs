//! A writer or its server is killed at any moment: what the writer was told is stored is stored, and nothing
//! else than a prefix of what it sent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::postgres::{Server, skipped};
use common::*;
use longhaul::{Cursor, Entry, Message, Profile, Session};
use longhaul_store::{Keeper, SessionId, SqliteStore, Store, StoreError};

/// So many times a writer is killed, on each store.
const KILLS: u64 = 200;

/// So many times a server is killed.
const SERVER_KILLS: u64 = 20;

/// The entry that stands at a place: its text says where, and is as long as entries are.
fn numbered(at: usize) -> Entry {
    if at == 0 { began() } else { said(format!("entry {at} {}", "some words ".repeat(at % 300))) }
}

/// Appends numbered entries, some at a time, until it is killed. Says what is durable.
#[test]
#[ignore = "run by the other test as a process of its own"]
fn appends_until_it_is_killed() {
    let Some((place, id)) = given() else { return };
    let (store, id): (_, SessionId) = (longhaul_store::open(&place).unwrap(), id.parse().unwrap());
    let mut at = store.meta(id).unwrap().end.0;
    loop {
        let entries: Vec<Entry> = (at..at + 1 + at % 5).map(numbered).collect();
        store.append(id, Cursor(at), &entries).unwrap();
        at += entries.len();
        let mut out = std::io::stdout();
        writeln!(out, "\ndurable {at}").unwrap();
        out.flush().unwrap();
    }
}

/// Runs a writer and kills it after some microseconds. Gives what it said is durable.
fn killed(place: &str, id: SessionId, after: Duration) -> usize {
    let mut child = child("appends_until_it_is_killed", place, &id.to_string()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    // The time runs from the first append on: before, there is little to interrupt.
    while !said.contains("durable") && out.read_line(&mut said).unwrap() > 0 {}
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    for line in out.lines().map_while(Result::ok) {
        said.push('\n');
        said.push_str(&line);
    }
    let durable = said.lines().filter_map(|line| line.strip_prefix("durable ")?.trim().parse().ok());
    durable.max().unwrap_or_else(|| panic!("the writer said: {said}"))
}

/// The journal is a prefix of what was sent, and has everything that was acknowledged.
fn holds_a_prefix(store: &dyn Store, id: SessionId, durable: usize, kill: u64) -> Vec<Entry> {
    let longhaul_store::Stored { meta, entries, .. } = store.load(id).unwrap();
    assert!(entries.len() >= durable, "kill {kill}: {} of {durable}", entries.len());
    assert!(entries.iter().enumerate().all(|(at, entry)| *entry == numbered(at)), "kill {kill}");
    // Killed before anything was written, it has not even its first entry.
    let messages = entries.len().saturating_sub(1) as u64;
    assert_eq!(meta.messages, messages, "kill {kill}");
    entries
}

/// A session that is loaded from the store sends the bytes that one of the entries sent would send.
fn sends_the_same(store: Arc<dyn Store>, id: SessionId, entries: usize) {
    let (_, stored) = Keeper::open(store, id, Profile::longhaul()).unwrap();
    let sent = Session::load(Profile::longhaul(), (0..entries).map(numbered)).unwrap();
    let next = |mut session: Session| -> Vec<Message> {
        session.push(Message::user("Go on."));
        session.prepare(None).ok();
        session.outgoing().messages().map(|message| Message::clone(message)).collect()
    };
    assert_eq!(next(stored), next(sent));
}

fn a_writer_that_is_killed_loses_nothing_that_was_durable(ground: &Ground) {
    let mut id = ground.open().create(&about("crash")).unwrap();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for kill in 0..KILLS {
        let before = ground.clients();
        let durable = killed(&ground.place, id, Duration::from_micros(dice.roll(40_000)));
        ground.wait_for_others(&before);
        let store = ground.open();
        let entries = holds_a_prefix(&*store, id, durable, kill);
        ground.check();
        if kill % 20 == 19 {
            sends_the_same(store.clone(), id, entries.len());
        }
        if entries.len() > 1_000 {
            id = store.create(&about("crash")).unwrap();
        }
    }
}

#[test]
fn a_writer_on_sqlite_that_is_killed_loses_nothing() {
    a_writer_that_is_killed_loses_nothing_that_was_durable(&Ground::sqlite());
}

#[test]
fn a_writer_on_postgres_that_is_killed_loses_nothing() {
    if let Some(ground) = Ground::postgres() {
        a_writer_that_is_killed_loses_nothing_that_was_durable(&ground);
    }
}

#[test]
fn a_server_that_is_killed_loses_nothing_that_was_durable() {
    // A server of its own. What a process has written outlives it, with an fsync and without: only the
    // power can tell the difference.
    let server = match Server::start(&["fsync=off"]) {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let ground = Ground::on_postgres(server.database());
    let store = ground.open();
    let mut id = store.create(&about("crash")).unwrap();
    let mut dice = Dice(0x6C62_272E_07BB_0142);
    let mut lost = 0;
    for kill in 0..SERVER_KILLS {
        let durable = AtomicUsize::new(store.meta(id).unwrap().end.0);
        let error = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                loop {
                    let at = durable.load(Ordering::Relaxed);
                    let entries: Vec<Entry> = (at..at + 1 + at % 5).map(numbered).collect();
                    match store.append(id, Cursor(at), &entries) {
                        Ok(()) => durable.store(at + entries.len(), Ordering::Relaxed),
                        Err(error) => break error,
                    }
                }
            });
            std::thread::sleep(Duration::from_micros(5_000 + dice.roll(60_000)));
            if kill % 2 == 0 {
                server.kill()
            } else {
                server.stop_at_once()
            }
            writer.join().unwrap()
        });
        assert!(matches!(error, StoreError::Unavailable { .. }), "kill {kill}: {error}");
        server.start_again();
        // The same store goes on: its connections are made anew.
        let durable = durable.into_inner();
        let entries = holds_a_prefix(&*store, id, durable, kill);
        lost += usize::from(entries.len() > durable);
        if kill % 4 == 3 {
            sends_the_same(store.clone(), id, entries.len());
        }
        if entries.len() > 1_000 {
            id = store.create(&about("crash")).unwrap();
        }
    }
    ground.check();
    // Some appends were stored whose acknowledgement was lost.
    println!("{lost} of {SERVER_KILLS} acknowledgements were lost");
}

/// A power cut may leave any part of the write-ahead log behind.
#[test]
fn a_log_that_was_cut_anywhere_gives_a_prefix() {
    let (folder, store) = store();
    let id = store.create(&about("crash")).unwrap();
    let mut at = 0;
    while at < 60 {
        let entries: Vec<Entry> = (at..at + 1 + at % 5).map(numbered).collect();
        store.append(id, Cursor(at), &entries).unwrap();
        at += entries.len();
    }
    let file = std::fs::read(folder.path().join("sessions.db")).unwrap();
    let log = std::fs::read(folder.path().join("sessions.db-wal")).unwrap();
    let (mut dice, mut lengths) = (Dice(0x0123_4567_89AB_CDEF), std::collections::BTreeSet::new());
    for cut in 0..150 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let mut log = log.clone();
        let end = dice.roll(log.len() as u64) as usize;
        match cut % 2 {
            0 => log.truncate(end),
            // Blocks are not written in order: what is behind may be there, and this one not.
            _ => log[end..].iter_mut().take(4_096).for_each(|byte| *byte = 0),
        }
        std::fs::write(&path, &file).unwrap();
        std::fs::write(folder.path().join("sessions.db-wal"), &log).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        store.check().unwrap();
        let Ok(stored) = store.load(id) else { continue };
        assert!(stored.entries.iter().enumerate().all(|(at, entry)| *entry == numbered(at)), "cut {cut}");
        lengths.insert(stored.entries.len());
    }
    assert!(lengths.len() > 5, "{lengths:?}");
}
