//! Files that are no stores, damaged files, full disks: each is said in a sentence, and nothing is overwritten.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::*;
use longhaul::{Cursor, Entry};
use longhaul_store::{Filter, SessionId, SqliteStore, Store, StoreError};

/// Opens a file that is no store. It must stay as it is.
fn refused(path: &Path) -> StoreError {
    let before = std::fs::read(path).unwrap();
    let error = SqliteStore::open(path).expect_err("this is no store");
    assert_eq!(std::fs::read(path).unwrap(), before);
    error
}

fn file(folder: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("file.db");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let long = "my notes\n".repeat(10_000);
    for bytes in [&b"x"[..], b"my notes", long.as_bytes(), &[0; 8_192]] {
        let path = file(&folder, bytes);
        let error = refused(&path);
        assert_eq!(
            error.to_string(),
            format!(
                "{} is not a database: nothing was changed; give the store another place",
                path.display()
            )
        );
    }
    // An empty file is as good as none.
    SqliteStore::open(file(&folder, b"")).unwrap();
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE session (n)").unwrap();
    assert!(matches!(refused(&path), StoreError::Foreign { .. }));
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA application_id = 77").unwrap();
    let error = refused(&path).to_string();
    assert!(
        error
            .ends_with("is a database of another program: nothing was changed; give the store another place")
    );
}

#[test]
fn a_store_of_a_later_version_is_left_alone() {
    let (folder, store) = store();
    let path = folder.path().join("sessions.db");
    create(&*store, "p", &["hello"]);
    drop(store);
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Newer { found: 9, known: 8, .. }));
    let says = "was made by a later version of longhaul (form 9; this version reads up to form 8)";
    assert!(error.to_string().contains(says));
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing/sessions.db"), folder.path().to_owned()] {
        match SqliteStore::open(&path).unwrap_err() {
            StoreError::Unavailable { place, .. } => assert_eq!(place, path.display().to_string()),
            other => panic!("{other}"),
        }
    }
}

/// Everything that can be asked of a damaged store: each answer is right or an error that says so.
fn used(path: &Path, id: SessionId, expected: &[Entry]) -> Result<(), StoreError> {
    let store = SqliteStore::open(path)?;
    store.list(&Filter::default(), 10)?;
    store.search("number", &Filter::default(), 10)?;
    let entries = store.load(id)?.entries;
    assert_eq!(entries, expected, "a damaged store gave something else");
    store.append(id, Cursor(expected.len()), &[said("more")])?;
    let fork = store.fork(id, Cursor(10))?;
    store.delete(fork)?;
    store.check()
}

#[test]
fn a_damaged_store_says_so_and_is_not_made_anew() {
    let (folder, store) = store();
    let texts: Vec<String> = (0..300).map(|n| format!("number {n} {}", "word ".repeat(n % 50))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let id = create(&*store, "p", &texts);
    let expected = store.load(id).unwrap().entries;
    drop(store);
    let sound = std::fs::read(folder.path().join("sessions.db")).unwrap();
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let (mut damaged, mut unnoticed) = (0, 0);
    for round in 0..200 {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = sound.clone();
        // Behind the first words of the file: without them it is no database.
        let at = if round < 84 { 16 + round } else { 16 + dice.roll(sound.len() as u64 - 16) as usize };
        let length = (1 + dice.roll(64) as usize).min(bytes.len() - at);
        let length = if round < 84 { 1 } else { length };
        bytes[at..at + length].iter_mut().for_each(|byte| *byte ^= 0xA5);
        let path = file(&folder, &bytes);
        match used(&path, id, &expected) {
            Ok(()) => unnoticed += 1,
            Err(StoreError::Damaged { problem, .. }) => {
                damaged += 1;
                assert!(!problem.is_empty());
            }
            // What the header says of the version or of the program.
            Err(StoreError::Foreign { .. } | StoreError::Newer { .. }) if round < 84 => damaged += 1,
            // The number of the session itself, the file's mark that it may not be written, or its size.
            Err(StoreError::NoSession(_) | StoreError::Conflict { .. } | StoreError::ReadOnly { .. }) => {
                damaged += 1
            }
            Err(error) => panic!("round {round}, {length} bytes at {at}: {error}"),
        }
        assert!(std::fs::metadata(&path).unwrap().len() > 0);
    }
    assert!(damaged > 40, "{damaged} noticed, {unnoticed} not");
}

#[test]
fn a_store_that_was_cut_short_says_so() {
    let (folder, store) = store();
    let texts: Vec<String> = (0..2_000).map(|n| format!("number {n} of many")).collect();
    let id = create(&*store, "p", &texts.iter().map(String::as_str).collect::<Vec<_>>());
    drop(store);
    let path = folder.path().join("sessions.db");
    let sound = std::fs::read(&path).unwrap();
    for share in [4, 2] {
        let path = file(&folder, &sound[..sound.len() / share]);
        let error = SqliteStore::open(&path).and_then(|store| store.load(id)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        let says = error.to_string();
        assert!(says.contains("file.db is damaged (") && !says.contains('\n'), "{says}");
    }
}

#[test]
fn a_full_disk_is_survived() {
    let (folder, store) = store();
    let id = create(&*store, "p", &[]);
    store.set_limit(Some(600_000)).unwrap();
    let mut dice = Dice(11);
    let mut entry = |n: usize| {
        let letters: String = (0..3_000).map(|_| char::from(b'a' + dice.roll(26) as u8)).collect();
        said(format!("{n} {letters}"))
    };
    let mut sent = vec![began()];
    let error = loop {
        let entries: Vec<Entry> = (0..3).map(|n| entry(sent.len() + n)).collect();
        let appended = store.append(id, Cursor(sent.len()), &entries);
        sent.extend(entries);
        if let Err(error) = appended {
            break error;
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().starts_with("there is no room for "));
    // The journal is what was sent before, and can be read; so it is for whoever opens the file now.
    let again = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    for store in [&*store, &again] {
        let entries = store.load(id).unwrap().entries;
        assert_eq!(entries, sent[..sent.len() - 3]);
        assert_eq!(store.meta(id).unwrap().end, Cursor(entries.len()));
        store.check().unwrap();
    }
    assert!(matches!(
        store.append(id, Cursor(sent.len() - 3), &sent[sent.len() - 3..]),
        Err(StoreError::Full { .. })
    ));
    // There is room again.
    store.set_limit(None).unwrap();
    store.append(id, Cursor(sent.len() - 3), &sent[sent.len() - 3..]).unwrap();
    assert_eq!(again.load(id).unwrap().entries, sent);
}

#[test]
fn who_waits_for_another_writer_gets_its_turn() {
    let (folder, store) = store();
    let id = create(&*store, "p", &["hello"]);
    let other = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Who reads does not wait.
    assert_eq!(store.load(id).unwrap().entries.len(), 2);
    let appended = std::thread::scope(|scope| {
        let append = scope.spawn(|| store.append(id, Cursor(2), &[said("more")]));
        std::thread::sleep(std::time::Duration::from_millis(300));
        other.execute_batch("COMMIT").unwrap();
        append.join().unwrap()
    });
    appended.unwrap();
}

#[test]
fn another_writer_that_does_not_end_is_said() {
    let (folder, store) = store();
    let id = create(&*store, "p", &["hello"]);
    let other = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append(id, Cursor(2), &[said("more")]).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    // A search does not fail because nothing can be indexed.
    assert!(store.search("nothing", &Filter::default(), 5).is_ok());
    drop(other);
    store.append(id, Cursor(2), &[said("more")]).unwrap();
}

/// Appends until there is no room, and looks that nothing is lost then. Runs where the disk is small, or where files
/// may not grow: a write that does not fit is made in part.
#[test]
#[ignore = "run by the other tests as a process of its own"]
fn fills_the_disk() {
    let Some((folder, arguments)) = given() else { return };
    let folder = Path::new(&folder);
    // What is deleted later to make room.
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![7; 200_000]).unwrap();
    let place = folder.join("sessions.db");
    let store = SqliteStore::open(&place).unwrap();
    let id = create(&store, "p", &[]);
    let text = |n: usize| {
        let mut dice = Dice(n as u64 + 1);
        format!("message {n} {}", (0..600).map(|_| format!("{:x} ", dice.roll(1 << 40))).collect::<String>())
    };
    let mut durable = 1;
    let error = loop {
        match store.append(id, Cursor(durable), &[said(text(durable))]) {
            Ok(()) => durable += 1,
            Err(error) => break error,
        }
        assert!(durable < 10_000, "the disk is never full");
    };
    assert!(matches!(error, StoreError::Full { .. } | StoreError::Unavailable { .. }), "{error:?}");
    let whole = |store: &SqliteStore, count: usize| {
        let entries = store.load(id).unwrap().entries;
        assert_eq!(entries.len(), count);
        assert!(entries.iter().enumerate().skip(1).all(|(n, entry)| *entry == said(text(n))));
    };
    // It can be read, and it is told again that there is no room.
    whole(&store, durable);
    assert!(
        store
            .append(id, Cursor(durable), &[said((0..120).map(|n| text(n + 20_000)).collect::<String>())])
            .is_err()
    );
    whole(&store, durable);
    drop(store);
    let store = SqliteStore::open(&place).unwrap();
    store.check().unwrap();
    whole(&store, durable);
    if arguments == "disk" {
        std::fs::remove_file(&ballast).unwrap();
        store.append(id, Cursor(durable), &[said(text(durable))]).unwrap();
        whole(&store, durable + 1);
    }
    println!("\ndurable {durable}: {error}");
}

/// Runs [`fills_the_disk`] as a process behind a shell that makes room scarce first.
fn filled(shell: &str, before: &str, how: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let child = child("fills_the_disk", folder.path().to_str().unwrap(), how);
    let mut command = std::process::Command::new("sh");
    command
        .arg("-c")
        .arg(shell.replace("{before}", before).replace("{folder}", folder.path().to_str().unwrap()));
    command.arg("sh").arg(child.get_program()).args(child.get_args());
    command.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    if output.status.success() { Ok(said) } else { Err(said) }
}

#[test]
fn a_disk_that_is_really_full_is_survived() {
    let mount = "unshare {before} --mount sh -c 'mount -t tmpfs -o size=1500k none {folder} && exec \"$@\"' sh \"$@\"";
    let can = |before: &str| {
        let tried = format!("unshare {before} --mount sh -c 'mount -t tmpfs none /mnt'");
        let tried = std::process::Command::new("sh").args(["-c", &tried]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(before) = ["", "--user --map-root-user"].into_iter().find(|before| can(before)) else {
        let line = "SKIPPED: a full disk (no small disk can be mounted here)\n";
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
        return;
    };
    let said = filled(mount, before, "disk").unwrap();
    assert!(said.contains("there is no room for"), "{said}");
}

#[test]
fn writes_that_are_made_in_part_are_survived() {
    for blocks in [1_500, 2_011, 2_777] {
        let shell = "trap '' XFSZ; ulimit -f {before}; exec \"$@\"";
        let said = filled(shell, &blocks.to_string(), "files").unwrap();
        assert!(said.contains("durable"), "{said}");
    }
}
