//! Handles of what edits took out lead to the sessions that can give it back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod common;

use std::time::Duration;

use common::*;
use longhaul::{
    Block, Cursor, Entry, Handle, Json, Message, Models, Prepared, Profile, RecallPart, Role, Session, Time,
    Tokens,
};
use longhaul_store::{About, Holders, Keeper, Retention, SessionId, Store};

/// A session in which results were taken out, and steps folded.
fn folded(seed: &str) -> Session {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
    session.push(Message::user(format!("Read all files of {seed}.")));
    for n in 0..40 {
        let Prepared::Send(_) = session.prepare(Some(Time(n * 1_000_000))).unwrap() else { panic!() };
        let id = format!("call_{n}");
        let path = Json::new(format!(r#"{{"path":"{seed}/file_{n}.rs"}}"#)).unwrap();
        session.push(Message::new(Role::Assistant, vec![Block::call(id.as_str(), "Read", path)]));
        session
            .push(Message::result(id, format!("fn {seed}_{n}(value: u32) -> u32 {{ value }}\n").repeat(40)));
    }
    session
}

fn handles(session: &Session) -> Vec<Handle> {
    let mut all: Vec<Handle> =
        session.ledger().edits().flat_map(|(edit, _)| edit.originals.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() > 4, "{} edits are not several", all.len());
    all
}

fn of(tenant: &str) -> About {
    About { tenant: tenant.into(), agent: "test".into(), ..About::default() }
}

/// The sessions that give back all of these; they do so, byte for byte.
fn holders(store: &std::sync::Arc<dyn Store>, tenant: &str, session: &Session) -> Vec<SessionId> {
    let mut found = Vec::new();
    for handle in handles(session) {
        for asked in [handle.to_string(), handle.short(), handle.short().to_uppercase()] {
            let holders = store.holders(tenant, &asked).unwrap();
            let Some(Holders { handle: whole, sessions }) = holders else { return Vec::new() };
            assert_eq!(whole, handle);
            found = sessions;
        }
        for id in &found {
            let (_, loaded) = Keeper::open(store.clone(), *id, Profile::longhaul()).unwrap();
            let whole = |session: &Session| session.recall(&handle.to_string(), &RecallPart::Whole).unwrap();
            assert_eq!(whole(&loaded), whole(session));
        }
    }
    found
}

fn a_handle_leads_to_its_sessions_and_only_for_their_tenant(ground: &Ground) {
    let (ours, theirs) = (folded("ours"), folded("theirs"));
    let store = ground.open();
    let id = Keeper::create(store.clone(), &of("a"), &ours).unwrap().id();
    let other = Keeper::create(store.clone(), &of("b"), &theirs).unwrap().id();
    for store in [store, ground.open()] {
        assert_eq!(holders(&store, "a", &ours), [id]);
        assert_eq!(holders(&store, "b", &theirs), [other]);
        assert_eq!((holders(&store, "b", &ours), holders(&store, "", &ours)), (vec![], vec![]));
        for nothing in ["not hex", "000000000000", &"f".repeat(33)] {
            assert_eq!(store.holders("a", nothing).unwrap(), None, "{nothing}");
        }
    }
}

fn a_fork_gives_back_what_its_parent_took_out(ground: &Ground) {
    let session = folded("forked");
    let store = ground.open();
    let parent = Keeper::create(store.clone(), &of("a"), &session).unwrap().id();
    let fork = store.fork(parent, session.cursor()).unwrap();
    // One that parted before there was an edit has none of the handles.
    let early = store.fork(parent, Cursor(3)).unwrap();
    assert_eq!(holders(&store, "a", &session), [fork, parent]);
    store.delete(parent).unwrap();
    assert_eq!(holders(&store, "a", &session), [fork]);
    store.delete(fork).unwrap();
    assert_eq!(holders(&store, "a", &session), []);
    store.delete(early).unwrap();
    assert_eq!(ground.originals(), 0);
}

fn what_is_pruned_is_not_recalled(ground: &Ground) {
    let session = folded("pruned");
    let store = ground.open();
    Keeper::create(store.clone(), &of("a"), &session).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    let all = Retention { older_than: Some(Duration::ZERO), ..Retention::default() };
    assert_eq!(store.prune(&all, 9).unwrap().sessions.len(), 1);
    assert_eq!((holders(&store, "a", &session), ground.originals()), (vec![], 0));
}

fn a_session_without_content_has_no_handles(ground: &Ground) {
    let session = folded("secret");
    let store = ground.open();
    let about = About { without_content: true, ..of("a") };
    Keeper::create(store.clone(), &about, &session).unwrap();
    assert_eq!((holders(&store, "a", &session), ground.originals()), (vec![], 0));
    ground.forget_originals();
    assert_eq!((holders(&ground.open(), "a", &session), ground.originals()), (vec![], 0));
}

/// What an older version stored is found, by a lookup at once and by the background for all.
fn sessions_of_an_older_form_are_listed(ground: &Ground) {
    let sessions: Vec<Session> = ["one", "two", "three"].map(folded).into();
    let store = ground.open();
    let ids: Vec<SessionId> = sessions
        .iter()
        .map(|session| Keeper::create(store.clone(), &of("a"), session).unwrap().id())
        .collect();
    let all = ground.originals();
    drop(store);
    ground.to_older_form();
    let store = ground.open();
    for (session, id) in sessions.iter().zip(&ids) {
        assert_eq!(holders(&store, "a", session), [*id]);
    }
    assert_eq!(ground.originals(), all);

    // Nobody asks: it is done all the same.
    drop(store);
    ground.to_older_form();
    let store = ground.open();
    while ground.originals() < all {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(holders(&store, "a", &sessions[0]), [ids[0]]);
}

/// A process that ended while it listed, or one of an older version that goes on writing, leaves a session listed in
/// part.
fn a_session_that_is_listed_in_part_is_listed_to_its_end(ground: &Ground) {
    let session = folded("parts");
    let store = ground.open();
    let mut keeper = Keeper::create(store.clone(), &of("a"), &session).unwrap();
    let all = ground.originals();
    for listed in [1, 40, session.cursor().0 - 1] {
        ground.list_only(listed);
        assert_eq!(holders(&store, "a", &session), [keeper.id()], "{listed}");
        assert_eq!(ground.originals(), all);
    }
    // What is appended meanwhile is listed with the rest.
    ground.list_only(40);
    let mut longer = session.clone();
    longer.push(Message::user("Go on."));
    keeper.save(&longer).unwrap();
    assert_eq!(holders(&store, "a", &session), [keeper.id()]);
    assert_eq!(store.since(keeper.id(), Cursor(0)).unwrap().len(), longer.cursor().0);
    assert!(longer.since(session.cursor()).any(|entry| matches!(entry, Entry::Message(_))));
}

on_each_store!(
    a_handle_leads_to_its_sessions_and_only_for_their_tenant,
    a_fork_gives_back_what_its_parent_took_out,
    what_is_pruned_is_not_recalled,
    a_session_without_content_has_no_handles,
    sessions_of_an_older_form_are_listed,
    a_session_that_is_listed_in_part_is_listed_to_its_end,
);
