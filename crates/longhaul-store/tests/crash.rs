//! A writer is killed at any moment: what it was told is stored is stored, and nothing else than a prefix
//! of what it sent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use common::*;
use longhaul::{Cursor, Entry};
use longhaul_store::{SessionId, SqliteStore, Store};

const KILLS: u64 = 200;

/// The entry that stands at a place: its text says where, and is as long as entries are.
fn numbered(at: usize) -> Entry {
    if at == 0 { began() } else { said(format!("entry {at} {}", "some words ".repeat(at % 300))) }
}

/// Appends numbered entries, some at a time, until it is killed. Says what is durable.
#[test]
#[ignore = "run by the other test as a process of its own"]
fn appends_until_it_is_killed() {
    let Some((path, id)) = given() else { return };
    let (store, id): (_, SessionId) = (SqliteStore::open(path).unwrap(), id.parse().unwrap());
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
fn killed(path: &Path, id: SessionId, after: Duration) -> usize {
    let mut child = child("appends_until_it_is_killed", path, &id.to_string()).spawn().unwrap();
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

#[test]
fn a_writer_that_is_killed_loses_nothing_that_was_durable() {
    let (folder, store) = store();
    let path = folder.path().join("sessions.db");
    let mut id = store.create(&about("crash")).unwrap();
    drop(store);
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for kill in 0..KILLS {
        let durable = killed(&path, id, Duration::from_micros(dice.roll(40_000)));
        let store = SqliteStore::open(&path).unwrap();
        let entries = store.load(id).unwrap().entries;
        assert!(entries.len() >= durable, "kill {kill}: {} of {durable}", entries.len());
        assert!(entries.iter().enumerate().all(|(at, entry)| *entry == numbered(at)), "kill {kill}");
        assert_eq!(store.meta(id).unwrap().messages, entries.len() as u64 - 1, "kill {kill}");
        store.check().unwrap();
        if entries.len() > 2_000 {
            id = store.create(&about("crash")).unwrap();
        }
    }
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
