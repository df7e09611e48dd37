//! Many processes write into one store: nothing is lost, nothing stands twice, whoever lost its place is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod common;

use std::collections::HashSet;

use common::*;
use longhaul::Cursor;
use longhaul_store::{Filter, StoreError};

const WRITERS: usize = 8;
const APPENDS: usize = 1_000;
const SESSIONS: usize = 100;

/// Appends its numbers to sessions by chance, wherever it thinks that they end.
#[test]
#[ignore = "run by the other test as processes of their own"]
fn appends_to_sessions_by_chance() {
    let Some((place, writer)) = given() else { return };
    let store = longhaul_store::open(&place).unwrap();
    let sessions = store.list(&Filter::default(), SESSIONS).unwrap();
    let mut ends = vec![Cursor(1); sessions.len()];
    let mut dice = Dice(0xD1B5_4A32_D192_ED03 ^ writer.parse::<u64>().unwrap().wrapping_mul(0x9E37_79B9));
    let mut conflicts = 0;
    for n in 0..APPENDS {
        let at = dice.roll(sessions.len() as u64) as usize;
        let entry = said(format!("writer {writer} number {n}"));
        loop {
            match store.append(sessions[at].id, ends[at], std::slice::from_ref(&entry)) {
                Ok(()) => break ends[at].0 += 1,
                Err(StoreError::Conflict { stored, .. }) => ends[at] = stored,
                Err(error) => panic!("{error}"),
            }
            conflicts += 1;
        }
    }
    println!("\nconflicts {conflicts}");
}

fn nothing_is_lost_and_nothing_stands_twice(ground: &Ground) {
    let store = ground.open();
    for _ in 0..SESSIONS {
        create(&*store, "many", &[]);
    }
    let children: Vec<_> = (0..WRITERS)
        .map(|writer| {
            child("appends_to_sessions_by_chance", &ground.place, &writer.to_string()).spawn().unwrap()
        })
        .collect();
    let mut conflicts = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let count = said.lines().find_map(|line| line.strip_prefix("conflicts ")?.trim().parse::<u64>().ok());
        conflicts += count.unwrap();
    }
    assert!(conflicts > 0, "the writers never met");
    let mut seen = HashSet::new();
    for meta in store.list(&Filter::default(), usize::MAX).unwrap() {
        let entries = store.load(meta.id).unwrap().entries;
        assert_eq!(entries.len(), meta.end.0);
        let mut newest = [None; WRITERS];
        for entry in &entries[1..] {
            let text = text(entry);
            let words: Vec<&str> = text.split(' ').collect();
            let (writer, n) = (words[1].parse::<usize>().unwrap(), words[3].parse::<usize>().unwrap());
            assert!(newest[writer] < Some(n), "{text} stands behind {newest:?}");
            newest[writer] = Some(n);
            assert!(seen.insert((writer, n)), "{text} stands twice");
        }
    }
    assert_eq!(seen.len(), WRITERS * APPENDS);
    ground.check();
}

fn threads_share_a_store(ground: &Ground) {
    let store = ground.open();
    let ids: Vec<_> = (0..4).map(|n| create(&*store, &n.to_string(), &[])).collect();
    std::thread::scope(|scope| {
        for id in &ids {
            let store = &store;
            scope.spawn(move || {
                for n in 1..50 {
                    store.append(*id, Cursor(n), &[said(format!("number {n}"))]).unwrap();
                    assert_eq!(store.load(*id).unwrap().entries.len(), n + 1);
                }
            });
        }
    });
    assert!(ids.iter().all(|id| store.meta(*id).unwrap().messages == 49));
}

fn a_store_may_be_made_by_many_at_once(ground: &Ground) {
    for _ in 0..8 {
        let ground = ground.another();
        std::thread::scope(|scope| {
            for n in 0..6 {
                let ground = &ground;
                scope.spawn(move || create(&*ground.open(), &n.to_string(), &["hello"]));
            }
        });
        assert_eq!(ground.open().list(&Filter::default(), 10).unwrap().len(), 6);
    }
}

/// What is deleted is what nobody else holds, not even somebody who has just begun to.
fn content_that_is_held_again_while_it_is_deleted_stays(ground: &Ground) {
    let store = ground.open();
    let texts = ["zebra ", "giraffe "].map(|word| word.repeat(200));
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let (store, texts) = (&store, &texts);
            scope.spawn(move || {
                let mut dice = Dice(0xA076_1D64_78BD_642F ^ (thread + 1).wrapping_mul(0x9E37_79B9));
                for _ in 0..60 {
                    // Few hold a text at a time, so that often the last one lets go of it.
                    let id = create(&**store, "p", &[&texts[dice.roll(2) as usize]]);
                    let fork = (dice.roll(6) == 0).then(|| store.fork(id, Cursor(2)).unwrap());
                    if dice.roll(10) == 0 {
                        store.search("zebra", &Filter::default(), 5).unwrap();
                    }
                    assert_eq!(store.load(id).unwrap().entries.len(), 2);
                    store.delete(id).unwrap();
                    if let Some(fork) = fork {
                        assert_eq!(store.load(fork).unwrap().entries.len(), 2);
                        store.delete(fork).unwrap();
                    }
                }
            });
        }
    });
    ground.check();
    assert_eq!(ground.content(), 0);
    assert!(store.search("zebra", &Filter::default(), 5).unwrap().is_empty());
}

on_each_store!(
    nothing_is_lost_and_nothing_stands_twice,
    threads_share_a_store,
    a_store_may_be_made_by_many_at_once,
    content_that_is_held_again_while_it_is_deleted_stays,
);
