//! Sessions that begin before the store can be asked, and stores that are not the ones that were written to.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use common::postgres::{Server, database, skipped};
use common::*;
use longhaul::{
    Block, Cursor, Entry, Json, Message, Models, Position, Prepared, Profile, Role, Session, Tokens,
};
use longhaul_store::{
    About, Filter, Keeper, Kept, Patience, PostgresStore, SessionId, SqliteStore, Store, StoreError,
};

/// A session with edits, after so many steps.
fn session(steps: usize) -> Session {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
    session.push(Message::user("Read all files."));
    go_on(&mut session, 0..steps);
    session
}

fn go_on(session: &mut Session, steps: std::ops::Range<usize>) {
    for n in steps {
        let Prepared::Send(_) = session.prepare(None).unwrap() else { panic!() };
        let (id, path) = (format!("call_{n}"), Json::new(format!(r#"{{"path":"src/{n}.rs"}}"#)).unwrap());
        session.push(Message::new(Role::Assistant, vec![Block::call(id.as_str(), "Read", path)]));
        session
            .push(Message::result(id, format!("fn helper_{n}(value: u32) -> u32 {{ value }}\n").repeat(40)));
    }
}

/// The session of this name as it is stored.
fn loaded(store: &Arc<dyn Store>, id: SessionId) -> Session {
    Keeper::open(store.clone(), id, Profile::longhaul()).unwrap().1
}

fn same(one: &Session, other: &Session) {
    let journal = |session: &Session| -> Vec<String> {
        let entries = session.since(Cursor(0));
        let entries = entries.map(|entry| entry.apart().map_or_else(|| entry.clone(), |(entry, ..)| entry));
        entries.map(|entry| serde_json::to_string(&entry).unwrap()).collect()
    };
    assert!(journal(one) == journal(other), "another journal");
    let view = |session: &Session| -> Vec<_> {
        let mut session = session.clone();
        session.prepare(None).unwrap();
        session.outgoing().parts.iter().map(|part| part.message.clone()).collect()
    };
    assert!(view(one) == view(other), "another view");
}

on_each_store!(
    a_session_may_begin_and_be_forked_before_it_is_stored,
    what_is_made_twice_is_there_once,
    what_the_store_lost_is_written_again,
    another_writer_is_told_from_a_store_that_has_less,
);

fn a_session_may_begin_and_be_forked_before_it_is_stored(ground: &Ground) {
    let store = ground.open();
    // More than is appended at once.
    let about = About { tenant: "ann".into(), title: Some("Files".into()), ..about("p") };
    let mut session = session(200);
    let mut keeper = Keeper::begin(store.clone(), &about);
    assert!(!keeper.is_begun() && store.list(&Filter::default(), 9).unwrap().is_empty());
    assert_eq!(keeper.compare(&session).unwrap(), Kept::All);
    // Forks of what is not stored have all of it; of what is, they share it.
    let fork = session.fork_with_edits(Position(101)).unwrap();
    let mut before = keeper.begin_fork(&fork);
    before.save(&fork).unwrap();
    keeper.save(&session).unwrap();
    go_on(&mut session, 200..210);
    let late = session.fork_with_edits(Position(411)).unwrap();
    let mut behind = keeper.begin_fork(&late);
    behind.save(&late).unwrap();
    keeper.save(&session).unwrap();
    for (keeper, session, parent) in
        [(&keeper, &session, None), (&before, &fork, None), (&behind, &late, Some(keeper.id()))]
    {
        let meta = store.meta(keeper.id()).unwrap();
        assert_eq!((meta.tenant.as_str(), meta.title.as_str(), meta.parent), ("ann", "Files", parent));
        assert_eq!((meta.agent.as_str(), meta.project.as_str()), ("test", "p"));
        same(&loaded(&store, keeper.id()), session);
    }
    // The parent is deleted before the fork is stored.
    let mut orphan = keeper.begin_fork(&late);
    store.delete(keeper.id()).unwrap();
    orphan.save(&late).unwrap();
    same(&loaded(&store, orphan.id()), &late);
    ground.check();
}

fn what_is_made_twice_is_there_once(ground: &Ground) {
    let (store, id, fork) = (ground.open(), SessionId::fresh(), SessionId::fresh());
    for project in ["p", "another"] {
        store.create_as(id, &about(project)).unwrap();
    }
    store.append(id, Cursor(0), &[began(), said("hello")]).unwrap();
    for at in [2, 1] {
        store.fork_as(fork, id, Cursor(at)).unwrap();
    }
    store.create_as(id, &about("p")).unwrap();
    assert_eq!(store.load(id).unwrap().entries, store.load(fork).unwrap().entries);
    assert_eq!((store.meta(id).unwrap().project.as_str(), store.meta(fork).unwrap().parent), ("p", Some(id)));
    assert_eq!(store.list(&Filter::default(), 9).unwrap().len(), 2);
    ground.check();
}

/// A session that was loaded lacks the texts of edits that do not show: they are read from where it was loaded.
fn what_the_store_lost_is_written_again(ground: &Ground) {
    let store = ground.open();
    let whole = session(80);
    let id = Keeper::create(store.clone(), &about("p"), &whole).unwrap().id();
    let (mut keeper, mut session) = Keeper::open(store.clone(), id, Profile::longhaul()).unwrap();
    let is_apart = |entry: &Entry| matches!(entry, Entry::Edit(edit) if edit.kind.text().is_some_and(|text| text.is_empty()));
    assert!(session.since(Cursor(0)).any(is_apart));
    let (before, backup) = (session.cursor(), store.load(id).unwrap().entries);
    go_on(&mut session, 80..90);
    keeper.save(&session).unwrap();
    // An older copy was restored.
    store.delete(id).unwrap();
    store.create_as(id, &about("p")).unwrap();
    let whole: Vec<Entry> = whole.since(Cursor(0)).cloned().collect();
    store.append(id, Cursor(0), &whole[..before.0]).unwrap();
    assert_eq!(store.load(id).unwrap().entries, backup);
    assert_eq!(keeper.compare(&session).unwrap(), Kept::Less);
    assert_eq!(keeper.stored(), before);
    keeper.save(&session).unwrap();
    assert_eq!(keeper.compare(&session).unwrap(), Kept::All);
    same(&loaded(&store, id), &session);
}

fn another_writer_is_told_from_a_store_that_has_less(ground: &Ground) {
    let store = ground.open();
    let mut session = session(20);
    let mut keeper = Keeper::create(store.clone(), &about("p"), &session).unwrap();
    let end = keeper.stored();
    // Our own words, of which we do not know that they are stored.
    go_on(&mut session, 20..22);
    let new: Vec<Entry> = session.since(end).cloned().collect();
    store.append(keeper.id(), end, &new).unwrap();
    assert_eq!((keeper.compare(&session).unwrap(), keeper.stored()), (Kept::All, session.cursor()));
    // Those of another one: ours go on under another name.
    store.append(keeper.id(), keeper.stored(), &[said("I was here.")]).unwrap();
    go_on(&mut session, 22..24);
    assert_eq!(keeper.compare(&session).unwrap(), Kept::Other);
    assert!(matches!(keeper.save(&session), Err(StoreError::Conflict { .. })));
    let mut parted = keeper.parted();
    parted.save(&session).unwrap();
    assert_eq!(store.meta(parted.id()).unwrap().parent, Some(keeper.id()));
    same(&loaded(&store, parted.id()), &session);
    // Who has fewer entries, and others, is another writer too.
    let id = keeper.id();
    store.delete(id).unwrap();
    store.create_as(id, &about("p")).unwrap();
    store.append(id, Cursor(0), &[began(), said("I was here.")]).unwrap();
    assert_eq!(keeper.compare(&session).unwrap(), Kept::Other);
}

/// Longer than it takes until another file is noticed.
fn look_again() {
    std::thread::sleep(Duration::from_millis(600));
}

#[test]
fn a_file_that_is_deleted_or_replaced_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open_with(&path, Patience::Brief).unwrap());
    let id = Keeper::create(store.clone(), &about("p"), &session(80)).unwrap().id();
    let (mut keeper, session) = Keeper::open(store.clone(), id, Profile::longhaul()).unwrap();
    std::fs::remove_file(&path).unwrap();
    look_again();
    assert!(matches!(store.meta(id), Err(StoreError::NoSession(_))));
    assert_eq!((store.replaced(), keeper.compare(&session).unwrap()), (1, Kept::Less));
    // The texts of the file that is gone can still be read.
    keeper.save(&session).unwrap();
    same(&loaded(&store, id), &session);
    let other = SqliteStore::open(&path).unwrap();
    same(&loaded(&(Arc::new(other) as Arc<dyn Store>), id), &session);
    SqliteStore::open(&path).unwrap().check().unwrap();

    // A store that was elsewhere takes its place: the log of the one before is not taken for its own.
    let elsewhere = folder.path().join("elsewhere.db");
    let theirs = create(&SqliteStore::open(&elsewhere).unwrap(), "p", &["hello"]);
    std::fs::rename(&elsewhere, &path).unwrap();
    look_again();
    assert_eq!(store.meta(theirs).unwrap().messages, 1);
    assert_eq!(store.replaced(), 2);
    store.append(theirs, Cursor(2), &[said("more")]).unwrap();
    SqliteStore::open(&path).unwrap().check().unwrap();

    // What is no store is left alone, and nothing is written anywhere until it is gone.
    std::fs::rename(&path, &elsewhere).unwrap();
    std::fs::write(&path, "my notes").unwrap();
    look_again();
    for _ in 0..2 {
        let error = store.append(theirs, Cursor(3), &[said("lost")]).unwrap_err();
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes");
    std::fs::rename(&elsewhere, &path).unwrap();
    assert_eq!(store.meta(theirs).unwrap().messages, 2);
    store.append(theirs, Cursor(3), &[said("again")]).unwrap();
}

/// A caller that can go on without the store does not wait for another writer: it gets the error, and writes later.
#[test]
fn a_brief_call_does_not_outwait_another_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with(&path, Patience::Brief).unwrap();
    let id = create(&store, "p", &["hello"]);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // All threads of a host at once: they do not wait one after the other.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let error = store.append(id, Cursor(2), &[said("more")]).unwrap_err();
                assert!(matches!(error, StoreError::Busy { .. }), "{error}");
            });
        }
    });
    assert_eq!(store.load(id).unwrap().entries.len(), 2);
    other.execute_batch("ROLLBACK").unwrap();
    store.append(id, Cursor(2), &[said("more")]).unwrap();
}

#[test]
fn a_brief_call_does_not_outwait_a_server_that_hangs() {
    let server = match Server::start(&["fsync=off"]) {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let store = PostgresStore::open_with(&server.database(), Patience::Brief).unwrap();
    let id = create(&store, "p", &["hello"]);
    server.freeze();
    let mut end = 2;
    for _ in 0..3 {
        for error in [
            store.append(id, Cursor(end), &[said("more")]).unwrap_err(),
            store.meta(id).unwrap_err(),
            store.create(&about("p")).unwrap_err(),
        ] {
            assert!(error.to_string().contains("does not answer in time"), "{error}");
            assert!(error.outage().is_some());
        }
    }
    server.thaw();
    // Whether what was asked for is stored is not known: it is one of them at most.
    loop {
        match store.append(id, Cursor(end), &[said("more")]) {
            Ok(()) => break,
            Err(StoreError::Conflict { stored, .. }) => end = stored.0,
            Err(error) => assert!(error.outage().is_some(), "{error}"),
        }
    }
    assert!(store.load(id).unwrap().entries.len() <= 4);
}

/// A server far away answers late, again and again. That is not silence.
#[test]
fn a_brief_call_waits_for_a_server_that_is_far_away() {
    let server = match Server::start(&["fsync=off"]) {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let url = server.database();
    let near = PostgresStore::open(&url).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = server.socket();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
            let (back, there) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || late(client, there));
            std::thread::spawn(move || late(server, back));
        }
    });
    let database = url.rsplit('/').next().unwrap();
    let far = format!("postgres://postgres@{address}/{database}?sslmode=disable");
    let far = PostgresStore::open_with(&far, Patience::Brief).unwrap();
    let id = create(&far, "p", &["hello"]);
    far.append(id, Cursor(2), &[said("more")]).unwrap();
    assert_eq!(far.load(id).unwrap().entries, near.load(id).unwrap().entries);
}

/// Passes on what comes, later.
fn late(mut from: impl Read, mut to: impl Write) {
    let mut some = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut some) {
        std::thread::sleep(Duration::from_millis(60));
        if to.write_all(&some[..length]).is_err() {
            return;
        }
    }
}

#[test]
fn a_server_that_lets_nobody_in_says_so() {
    let Some(url) = database() else { return };
    let error = PostgresStore::open(&format!("{url}_missing")).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("refuses the connection: "), "{error}");
    let error = longhaul_store::open("postgres://ann@host:port/work").unwrap_err();
    assert!(matches!(error, StoreError::BadUrl { .. }), "{error}");
}
