//! What can be got back of a damaged file: all that can be read, under the name that it had.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use common::*;
use longhaul::conversation::Block;
use longhaul::{Cursor, Entry, Message, Profile, Role, Session, Tokens};
use longhaul_store::{Filter, Keeper, Salvaged, SessionId, SqliteStore, Store, StoreError, salvage};

/// A session that reads many files in a small window, so that it has folds.
fn folded(word: &str, reads: usize) -> Session {
    let mut session = session().with_window(Tokens(12_000));
    session.push(Message::user(format!("Read all about {word}.")));
    for n in 0..reads {
        session.prepare(None).unwrap();
        let call = format!(r#"{{"id":"c{n}","name":"Read","arguments":{{"path":"src/{word}_{n}.rs"}}}}"#);
        let call = Block::ToolCall(serde_json::from_str(&call).unwrap());
        session.push(Message::new(Role::Assistant, vec![call]));
        let text: String = (0..60).map(|line| format!("fn {word}_{n}_{line}() {{ {line} }}\n")).collect();
        session.push(Message::result(format!("c{n}"), text));
    }
    session.prepare(None).unwrap();
    assert!(session.ledger().next_id().0 > 0, "nothing was folded");
    session
}

/// A store of three sessions, one of them with folds, and its file.
fn with_sessions() -> (tempfile::TempDir, PathBuf, Vec<SessionId>) {
    let (folder, store) = store();
    let texts: Vec<String> = (0..200).map(|n| format!("number {n} {}", "word ".repeat(n))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let few = create(&*store, "few", &texts[..20]);
    let hashes: Vec<[u8; 16]> = (0..20).map(|n| [n; 16]).collect();
    store.keep_prefixes(few, 0, &hashes).unwrap();
    let long = Keeper::create(store.clone(), &about("long"), &folded("tide", 60)).unwrap().id();
    let many = create(&*store, "many", &texts);
    let path = folder.path().join("sessions.db");
    drop(store);
    (folder, path, vec![few, long, many])
}

/// Everything that can be got back of a file, in a new store.
fn salvaged(
    file: &Path,
) -> Result<(tempfile::TempDir, std::sync::Arc<SqliteStore>, Vec<Salvaged>), StoreError> {
    let (folder, store) = store();
    let mut all = Vec::new();
    salvage(file, &*store, |one| {
        all.push(one.clone());
        Ok(())
    })?;
    Ok((folder, store, all))
}

fn messages(store: &dyn Store, id: SessionId) -> Vec<Entry> {
    let entries = store.load(id).unwrap().entries;
    entries.into_iter().filter(|entry| matches!(entry, Entry::Message(_))).collect()
}

#[test]
fn of_a_sound_file_everything_is_got_back_and_twice_is_as_good_as_once() {
    let (_folder, file, ids) = with_sessions();
    let before = std::fs::read(&file).unwrap();
    let (_into, store, all) = salvaged(&file).unwrap();
    assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), ids);
    assert!(all.iter().all(|one| one.lost == 0 && !one.was_there), "{all:?}");
    let sound = SqliteStore::open(&file).unwrap();
    for id in &ids {
        let meta = |store: &SqliteStore| {
            let meta = store.meta(*id).unwrap();
            (meta.title, meta.project, meta.agent, meta.end, meta.messages, meta.calls)
        };
        assert_eq!(meta(&store), meta(&sound));
        let (_, of_store) = Keeper::open(store.clone(), *id, Profile::longhaul()).unwrap();
        let (_, of_file) =
            Keeper::open(std::sync::Arc::new(sound.clone()), *id, Profile::longhaul()).unwrap();
        assert_eq!(of_store.outgoing().parts.len(), of_file.outgoing().parts.len());
        assert!(
            of_store
                .outgoing()
                .parts
                .iter()
                .zip(of_file.outgoing().parts)
                .all(|(a, b)| a.message == b.message)
        );
    }
    // By its first words a session is found again.
    assert_eq!(store.find_prefix(&[[19; 16]]).unwrap().unwrap().sessions[0].id, ids[0]);
    assert_eq!(store.find_prefix(&[[19; 16]]).unwrap().unwrap().messages, 20);
    let mut again = Vec::new();
    salvage(&file, &*store, |one| {
        again.push(one.clone());
        Ok(())
    })
    .unwrap();
    assert!(again.len() == 3 && again.iter().all(|one| one.was_there), "{again:?}");
    assert_eq!(store.list(&Filter::default(), 9).unwrap().len(), 3);
    drop(sound);
    assert!(std::fs::read(&file).unwrap() == before, "the file was changed");
}

#[test]
fn one_flipped_bit_costs_one_message() {
    let (_folder, file, ids) = with_sessions();
    let sound = SqliteStore::open(&file).unwrap();
    let whole: Vec<Vec<Entry>> = ids.iter().map(|id| messages(&sound, *id)).collect();
    drop(sound);
    // A bit in the text of the twelfth message of a session, and in one of a session with folds.
    let connection = rusqlite::Connection::open(&file).unwrap();
    let content = |session: usize, kind: u8, nth: usize| -> i64 {
        let sql = "SELECT content FROM entry WHERE at >> 32 = ?1 AND kind = ?2 AND content IS NOT NULL ORDER BY at LIMIT 1 OFFSET ?3";
        connection.query_row(sql, (session + 1, kind, nth), |row| row.get(0)).unwrap()
    };
    for content in [content(0, 1, 11), content(1, 1, 80)] {
        let packed: Vec<u8> = {
            let select = "SELECT packed FROM content WHERE id = ?1";
            connection.query_row(select, [content], |row| row.get(0)).unwrap()
        };
        let mut damaged = packed.clone();
        *damaged.last_mut().unwrap() ^= 1;
        connection.execute("UPDATE content SET packed = ?2 WHERE id = ?1", (content, damaged)).unwrap();
    }
    drop(connection);
    let sound = SqliteStore::open(&file).unwrap();
    assert!(sound.load(ids[0]).is_err() && sound.load(ids[1]).is_err());
    drop(sound);

    let (_into, store, all) = salvaged(&file).unwrap();
    assert_eq!(
        all.iter().map(|one| (one.id, one.lost)).collect::<Vec<_>>(),
        [(ids[0], 1), (ids[1], 1), (ids[2], 0)]
    );
    for (id, whole) in ids.iter().zip(&whole) {
        let got = messages(&*store, *id);
        let lost = whole.iter().filter(|message| !got.contains(message)).count();
        assert_eq!(lost, usize::from(*id != ids[2]));
        // Its engine can go on with it, and nothing in it breaks a rule.
        let (_, mut session) = Keeper::open(store.clone(), *id, Profile::longhaul()).unwrap();
        session.push(Message::user("Go on."));
        session.prepare(None).unwrap();
        assert_eq!(session.audit(), []);
    }
    // Where a message is lost nobody goes on by its hash; up to there it is found.
    assert_eq!(store.find_prefix(&[[11; 16]]).unwrap(), None);
    assert_eq!(store.find_prefix(&[[10; 16]]).unwrap().unwrap().messages, 11);
    // What stands before the damage is as it was, edits and all.
    let edits =
        |id| store.load(id).unwrap().entries.iter().filter(|entry| matches!(entry, Entry::Edit(_))).count();
    assert!(edits(ids[1]) > 0);
}

#[test]
fn whatever_page_is_damaged_the_rest_is_got_back() {
    let (_folder, file, ids) = with_sessions();
    let sound = std::fs::read(&file).unwrap();
    let store = SqliteStore::open(&file).unwrap();
    let said: HashSet<String> =
        ids.iter().flat_map(|id| messages(&store, *id)).map(|m| format!("{m:?}")).collect();
    drop(store);
    let folder = tempfile::tempdir().unwrap();
    let (mut dice, mut got_back, mut nothing) = (Dice(7), Vec::new(), 0);
    let pages = sound.len() / 4_096;
    for page in 1..pages {
        let mut bytes = sound.clone();
        let (from, garbage) = (page * 4_096, page % 2 == 0);
        bytes[from..from + 4_096]
            .iter_mut()
            .for_each(|byte| *byte = if garbage { dice.roll(256) as u8 } else { 0 });
        let path = folder.path().join(format!("{page}.db"));
        std::fs::write(&path, &bytes).unwrap();
        match salvaged(&path) {
            Ok((_into, store, all)) => {
                let got = all.iter().flat_map(|one| messages(&*store, one.id));
                let got: Vec<String> = got.map(|message| format!("{message:?}")).collect();
                assert!(got.iter().all(|message| said.contains(message)), "page {page}: what nobody said");
                for one in &all {
                    Keeper::open(store.clone(), one.id, Profile::longhaul()).unwrap();
                }
                got_back.push(got.len() * 100 / said.len());
            }
            Err(StoreError::Damaged { .. }) => nothing += 1,
            Err(other) => panic!("page {page}: {other}"),
        }
    }
    // A page in the middle of a table leads to others: what hangs on it is lost.
    got_back.sort_unstable();
    assert!(nothing * 10 <= pages, "of {pages} pages, {nothing} cost everything");
    assert!(got_back[got_back.len() / 4] >= 80, "{got_back:?}");
}

#[test]
fn what_is_no_store_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    std::fs::write(&path, b"my notes\n".repeat(9_000)).unwrap();
    assert!(matches!(salvaged(&path), Err(StoreError::NotADatabase { .. })));
    let missing = salvaged(&folder.path().join("missing.db")).err().unwrap().to_string();
    assert!(missing.contains("missing.db"), "{missing}");
    assert!(!folder.path().join("missing.db").exists());
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE session (n)").unwrap();
    assert!(matches!(salvaged(&other), Err(StoreError::Foreign { .. })));
    // A store that is cut in half still has its older half.
    let (_folder, file, _) = with_sessions();
    let bytes = std::fs::read(&file).unwrap();
    let half = folder.path().join("half.db");
    std::fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    match salvaged(&half) {
        Ok((_into, store, all)) => {
            let got: usize = all.iter().map(|one| messages(&*store, one.id).len()).sum();
            assert!(got > 0);
        }
        Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "{error}"),
    }
    assert_eq!(SqliteStore::open(&file).unwrap().list(&Filter::default(), 9).unwrap()[0].end, Cursor(201));
}
