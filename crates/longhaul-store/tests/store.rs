//! What a store is asked for, and what it gives.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use longhaul::edits::EditText;
use longhaul::session::journal;
use longhaul::{
    Block, Cursor, Entry, Frame, Json, Message, Models, Position, Prepared, Profile, Role, Session, Time,
    Tokens,
};
use longhaul_store::{
    About, Filter, Form, Keeper, Pruned, Retention, SessionId, SqliteStore, Store, StoreError, UpstreamLimit,
    UpstreamRefusal,
};

fn what_was_appended_is_loaded(ground: &Ground) {
    let store = ground.open();
    let id = store.create(&about("p")).unwrap();
    let entries =
        [began(), said("Mend the parser  of\ndates."), said("And of times."), said("And of times.")];
    store.append(id, Cursor(0), &entries[..2]).unwrap();
    store.append(id, Cursor(2), &entries[2..]).unwrap();
    store.append(id, Cursor(4), &[]).unwrap();
    let again = ground.open();
    let stored = again.load(id).unwrap();
    assert_eq!(stored.entries, entries);
    assert_eq!(again.since(id, Cursor(2)).unwrap(), entries[2..]);
    assert_eq!(again.since(id, Cursor(9)).unwrap(), []);
    let bytes: usize = entries.iter().map(|entry| serde_json::to_string(entry).unwrap().len()).sum();
    let meta = stored.meta;
    assert_eq!(
        (meta.title.as_str(), meta.agent.as_str(), meta.project.as_str(), meta.model.as_str()),
        ("Mend the parser of dates.", "test", "p", "gpt-4o")
    );
    assert_eq!((meta.end, meta.messages, meta.calls, meta.bytes), (Cursor(4), 3, 0, bytes as u64));
    assert!(meta.created <= meta.updated && meta.created > Time(1_700_000_000_000_000));
    assert_eq!(meta, store.meta(id).unwrap());
}

fn a_writer_that_lost_its_place_is_told_and_nothing_is_written(ground: &Ground) {
    let store = ground.open();
    let id = create(&*store, "p", &["one"]);
    for from in [0, 1, 3, usize::MAX] {
        match store.append(id, Cursor(from), &[said("two")]).unwrap_err() {
            StoreError::Conflict { session, from: said, stored } => {
                assert_eq!((session, said, stored), (id, Cursor(from), Cursor(2)));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(store.load(id).unwrap().entries.len(), 2);
    let nobody = SessionId::fresh();
    assert!(matches!(store.load(nobody), Err(StoreError::NoSession(id)) if id == nobody));
    assert!(matches!(store.append(nobody, Cursor(0), &[]), Err(StoreError::NoSession(_))));
    assert!(matches!(store.delete(nobody), Err(StoreError::NoSession(_))));
    assert_eq!(nobody.to_string().parse::<SessionId>().unwrap(), nobody);
}

/// A request, and what came of it.
fn step(session: &mut Session, n: usize) {
    let Prepared::Send(_) = session.prepare(Some(Time(n as i64 * 1_000_000))).unwrap() else { panic!() };
    let id = format!("call_{n}");
    let path = Json::new(format!(r#"{{"path":"src/file_{n}.rs"}}"#)).unwrap();
    session.push(Message::new(Role::Assistant, vec![Block::call(id.as_str(), "Read", path)]));
    session.push(Message::result(id, format!("fn helper_{n}(value: u32) -> u32 {{ value }}\n").repeat(40)));
    if n % 7 == 6 {
        session.push(Message::assistant(format!("File {n} is read.")));
        session.push(Message::user(format!("Go on behind file {n}.")));
    }
}

fn long_session() -> Session {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
    session.push(Message::user("Read all files and tell me which one defines `main`."));
    session
}

fn a_session_that_is_loaded_before_every_call_sends_the_same_bytes(ground: &Ground) {
    let store = ground.open();
    let mut stays = long_session();
    let mut keeper = Keeper::create(store, &about("p"), &stays).unwrap();
    for n in 0..60 {
        // Everything that was known is forgotten, the store too.
        let store = ground.open();
        let (mut opened, mut restarted) = Keeper::open(store, keeper.id(), Profile::longhaul()).unwrap();
        step(&mut stays, n);
        step(&mut restarted, n);
        assert!(restarted.outgoing().messages().eq(stays.outgoing().messages()), "call {n}");
        assert_eq!((restarted.last_ticket(), restarted.sent()), (stays.last_ticket(), stays.sent()));
        assert_eq!(restarted.size(), stays.size());
        opened.save(&restarted).unwrap();
        keeper = opened;
    }
    let folds = stays.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
    assert!(folds > 2, "{folds} compactions are not several");

    // Texts of edits are apart, and the journal that is exported is the one that was never stored.
    let store = ground.open();
    let apart = |entry: &Entry| match entry {
        Entry::Edit(edit) => matches!(edit.kind.text(), Some(EditText::Apart { .. })),
        _ => false,
    };
    assert!(store.load(keeper.id()).unwrap().entries.iter().filter(|entry| apart(entry)).count() > 2);
    let mut lines = Vec::new();
    store.export(keeper.id(), Form::Journal, &mut lines).unwrap();
    let written: Vec<String> =
        stays.since(Cursor(0)).map(|entry| serde_json::to_string(entry).unwrap()).collect();
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.lines().eq(written.iter().map(String::as_str)));
    let mut loaded = Session::load(Profile::longhaul(), journal::read(lines.lines()).unwrap()).unwrap();
    step(&mut loaded, 60);
    step(&mut stays, 60);
    assert!(loaded.outgoing().messages().eq(stays.outgoing().messages()));
    assert_eq!(store.meta(keeper.id()).unwrap().calls, 60);
}

fn a_stored_text_is_found_by_its_handle_and_only_by_its_session(ground: &Ground) {
    let store = ground.open();
    let mut session = long_session();
    let mut keeper = Keeper::create(store.clone(), &about("p"), &session).unwrap();
    (0..40).for_each(|n| step(&mut session, n));
    keeper.save(&session).unwrap();
    let (_, handle, text) = session.since(Cursor(0)).find_map(Entry::apart).unwrap();
    let archive = store.archive(keeper.id()).unwrap();
    assert_eq!(archive.get(handle).as_deref(), Some(&*text));
    assert_eq!(archive.find(&handle.short()), Some(handle));
    assert_eq!(archive.find(&handle.short().to_uppercase()), Some(handle));
    assert_eq!((archive.find(""), archive.find("not hex")), (None, None));
    let other = store.archive(create(&*store, "other", &["hello"])).unwrap();
    assert_eq!((other.get(handle), other.find(&handle.short())), (None, None));

    // An entry that names a text that nobody has stored is refused.
    let entry = session.since(Cursor(0)).find_map(Entry::apart).unwrap().0;
    let elsewhere = ground.another();
    let empty = elsewhere.open();
    let id = create(&*empty, "p", &[]);
    assert!(
        matches!(empty.append(id, Cursor(1), &[entry]), Err(StoreError::LostText(lost)) if lost == handle)
    );
}

fn a_fork_shares_content_and_goes_its_own_way(ground: &Ground) {
    let store = ground.open();
    let mut session = long_session();
    // What is shared is looked at here, not how often it folds: limits alone start a compaction.
    let profile = Profile { dial: None, ..Profile::longhaul() };
    session.set_profile(profile.clone());
    let mut keeper = Keeper::create(store.clone(), &about("p"), &session).unwrap();
    (0..40).for_each(|n| step(&mut session, n));
    // A part is stored when the fork is made; the fork has the rest.
    keeper.save(&session).unwrap();
    (40..50).for_each(|n| step(&mut session, n));
    let before = ground.content();
    let mut forks = Vec::new();
    for end in [5, 60, 100, 1_000] {
        let mut fork = session.fork(Position(end)).unwrap();
        let kept = keeper.fork(&fork).unwrap();
        let (_, mut loaded) = Keeper::open(store.clone(), kept.id(), profile.clone()).unwrap();
        let meta = store.meta(kept.id()).unwrap();
        assert_eq!((meta.parent, meta.end), (Some(keeper.id()), fork.cursor()));
        assert_eq!(meta.messages, fork.log().messages().len() as u64);
        let sent = fork.since(Cursor(0)).filter(|entry| matches!(entry, Entry::Sent(_))).count();
        assert_eq!((meta.calls, meta.model.as_str()), (sent as u64, "gpt-4o"));
        for n in 100..105 {
            step(&mut fork, n);
            step(&mut loaded, n);
            assert!(loaded.outgoing().messages().eq(fork.outgoing().messages()), "{end} {n}");
        }
        forks.push(kept.id());
    }
    // Each has the ten steps that were not stored then, which are the same, and an entry of its own.
    assert!(ground.content() < before + before / 2, "{} of {before}", ground.content());
    assert!(matches!(store.fork(keeper.id(), Cursor(100_000)), Err(StoreError::PastEnd { .. })));

    // What a fork shares outlives the session that it was forked from.
    let expected = store.load(forks[2]).unwrap().entries;
    store.delete(keeper.id()).unwrap();
    assert_eq!(store.load(forks[2]).unwrap().entries, expected);
    Keeper::open(store.clone(), forks[2], Profile::longhaul()).unwrap();
    ground.check();
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn sessions_are_listed_newest_first(ground: &Ground) {
    let store = ground.open();
    let ids: Vec<SessionId> = ["a", "b", "a"].map(|project| create(&*store, project, &["hello"])).into();
    store.append(ids[0], Cursor(2), &[said("more")]).unwrap();
    let listed = |filter: &Filter, limit| -> Vec<SessionId> {
        store.list(filter, limit).unwrap().iter().map(|meta| meta.id).collect()
    };
    assert_eq!(listed(&Filter::default(), 10), [ids[0], ids[2], ids[1]]);
    assert_eq!(listed(&Filter::default(), 2), [ids[0], ids[2]]);
    let project = Filter { project: Some("a".into()), ..Filter::default() };
    assert_eq!(listed(&project, 10), [ids[0], ids[2]]);
    let agent = Filter { agent: Some("other".into()), ..Filter::default() };
    assert_eq!(listed(&agent, 10), []);
    let updated_since = Some(store.meta(ids[2]).unwrap().updated);
    assert_eq!(listed(&Filter { updated_since, ..Filter::default() }, 10), [ids[0], ids[2]]);
    let titled = About { title: Some("Dates".into()), ..about("a") };
    let id = store.create(&titled).unwrap();
    store.append(id, Cursor(0), &[began(), said("hello")]).unwrap();
    assert_eq!(store.meta(id).unwrap().title, "Dates");
}

fn a_transcript_is_exported(ground: &Ground) {
    let store = ground.open();
    let id = create(&*store, "p", &["Hello.", "Go on."]);
    let mut out = Vec::new();
    store.export(id, Form::Transcript, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let messages: Vec<Message> =
        lines.lines().map(|line| longhaul_wire::transcript::decode(line).unwrap()).collect();
    let texts: Vec<&str> = messages.iter().flat_map(Message::texts).collect();
    assert_eq!(texts, ["Hello.", "Go on."]);
}

fn what_nobody_holds_any_longer_is_deleted(ground: &Ground) {
    let store = ground.open();
    // Random letters: what is stored cannot be made much smaller.
    let mut dice = Dice(7);
    let long: String = (0..200_000).map(|_| char::from(b'a' + dice.roll(26) as u8)).collect();
    let kept = create(&*store, "p", &["shared words"]);
    let empty = ground.size();
    let gone = create(&*store, "p", &["shared words", &long, "zebracrossing"]);
    let fork = store.fork(gone, Cursor(3)).unwrap();
    store.delete(gone).unwrap();
    assert_eq!(store.load(fork).unwrap().entries.len(), 3);
    assert!(store.search("zebracrossing", &Filter::default(), 9).unwrap().is_empty());
    store.delete(fork).unwrap();
    assert_eq!(store.search("shared", &Filter::default(), 9).unwrap().len(), 1);
    assert_eq!(store.load(kept).unwrap().entries.len(), 2);
    drop(store);
    ground.check();
    assert!(ground.size() <= empty + 50_000, "{} of {empty}", ground.size());
}

/// Sessions of 100,000 bytes that cannot be made smaller, the oldest first.
fn large_sessions(store: &dyn Store, count: usize) -> Vec<SessionId> {
    let mut dice = Dice(9);
    let mut long = || -> String { (0..100_000).map(|_| char::from(b'a' + dice.roll(26) as u8)).collect() };
    (0..count).map(|_| create(store, "p", &[&long()])).collect()
}

fn sessions_go_by_age_and_by_size(ground: &Ground) {
    let store = ground.open();
    let ids = large_sessions(&*store, 6);
    let prune = |retention: &Retention| store.prune(retention, usize::MAX).unwrap();
    assert_eq!(prune(&Retention::default()), Pruned::default());
    let year = Retention { older_than: Some(Duration::from_secs(31_536_000)), ..Retention::default() };
    assert_eq!(prune(&year), Pruned::default());
    // Two of the six must go: what the databases need around what they store is less than a third one.
    let most = store.used().unwrap() * 3 / 4;
    let small = Retention { larger_than: Some(most), ..Retention::default() };
    // What is in use stays, and what was used just now.
    assert_eq!(
        prune(&Retention { used_within: Duration::from_secs(60), ..small.clone() }),
        Pruned::default()
    );
    let would = store.would_prune(&small).unwrap();
    let before = store.used().unwrap();
    let gone = prune(&small);
    // The databases need more or less around what they store.
    let count = gone.sessions.len();
    assert!(matches!(count, 1..=3) && gone.sessions == ids[..count], "{gone:?} of {ids:?}");
    assert!(store.used().unwrap() <= most);
    // What is said of bytes is what is free then; the index of words goes on beside it.
    let freed = before - store.used().unwrap();
    assert!(gone.bytes > 50_000 * count as u64 && gone.bytes.abs_diff(freed) < 60_000, "{gone:?} {freed}");
    assert!(
        would.sessions == gone.sessions && would.bytes.abs_diff(gone.bytes) < gone.bytes / 3,
        "{would:?}"
    );
    let ids = &ids[count..];
    std::thread::sleep(Duration::from_millis(2));
    let none = Retention { older_than: Some(Duration::from_millis(1)), ..Retention::default() };
    let in_use = Retention { in_use: vec![ids[0], ids[1]], ..none.clone() };
    assert_eq!(store.would_prune(&in_use).unwrap().sessions, ids[2..]);
    // A few at a time.
    assert_eq!(store.prune(&in_use, 1).unwrap().sessions, ids[2..3]);
    assert_eq!(prune(&in_use).sessions, ids[3..]);
    assert_eq!(prune(&none).sessions, ids[..2]);
    assert!(store.list(&Filter::default(), 9).unwrap().is_empty());
    ground.check();
}

/// A session of many entries goes part by part, with all that it held.
fn a_long_session_goes_whole(ground: &Ground) {
    let store = ground.open();
    let texts: Vec<String> = (0..300).map(|n| format!("message {n} of many")).collect();
    let kept = create(&*store, "p", &["message 7 of many"]);
    let long = create(&*store, "p", &texts.iter().map(String::as_str).collect::<Vec<_>>());
    store.keep_prefixes(long, 0, &[hash(1)]).unwrap();
    let retention = Retention { larger_than: Some(1), in_use: vec![kept], ..Retention::default() };
    assert_eq!(store.prune(&retention, 1).unwrap().sessions, [long]);
    assert!(matches!(store.load(long), Err(StoreError::NoSession(_))));
    assert_eq!(named(&*store, &[hash(1)]), None);
    assert_eq!(store.load(kept).unwrap().entries.len(), 2);
    assert_eq!(store.search("many", &Filter::default(), 9).unwrap().len(), 1);
    ground.check();
}

/// What a fork shares stays when its parent goes, and its space is given back with the last one.
fn a_fork_outlives_its_parent_that_is_not_kept(ground: &Ground) {
    let store = ground.open();
    let parent = large_sessions(&*store, 1)[0];
    let fork = store.fork(parent, Cursor(2)).unwrap();
    store.append(fork, Cursor(2), &[said("more")]).unwrap();
    let expected = store.load(fork).unwrap().entries;
    let small = Retention { larger_than: Some(1), in_use: vec![fork], ..Retention::default() };
    let gone = store.prune(&small, usize::MAX).unwrap();
    assert!(gone.sessions == [parent] && gone.bytes < 50_000, "{gone:?}");
    assert_eq!(store.load(fork).unwrap().entries, expected);
    let size = ground.size();
    let gone = store.prune(&Retention { in_use: vec![], ..small }, usize::MAX).unwrap();
    assert!(gone.sessions == [fork] && gone.bytes > 50_000, "{gone:?}");
    assert!(ground.size() + 50_000 < size, "{} of {size}", ground.size());
    ground.check();
}

/// Two that prune at once delete no more than one would.
fn who_prunes_beside_another_deletes_no_more_than_one_would(ground: &Ground) {
    let ids = large_sessions(&*ground.open(), 12);
    let small = Retention { larger_than: Some(700_000), ..Retention::default() };
    let gone: Vec<SessionId> = std::thread::scope(|scope| {
        let prune = || ground.open().prune(&small, usize::MAX).unwrap().sessions;
        let prunes: Vec<_> = (0..4).map(|_| scope.spawn(prune)).collect();
        prunes.into_iter().flat_map(|prune| prune.join().unwrap()).collect()
    });
    let store = ground.open();
    let mut sorted = gone.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ids[..gone.len()], "each once, the oldest ones");
    let used = store.used().unwrap();
    assert!(used <= 700_000 && used > 400_000, "{used}: {} are gone", gone.len());
    ground.check();
}

fn what_was_said_is_found(ground: &Ground) {
    let store = ground.open();
    let dates = create(&*store, "p", &["Mend the parser of dates.", "Does parseHeader call foo_bar?"]);
    let chinese = create(&*store, "p", &["上下文引擎会压缩很长的会话。", "请运行测试"]);
    let found = |query: &str| -> Vec<(SessionId, usize)> {
        store
            .search(query, &Filter::default(), 10)
            .unwrap()
            .iter()
            .map(|hit| (hit.session, hit.at.0))
            .collect()
    };
    assert_eq!(found("PARSER dates"), [(dates, 1)]);
    assert_eq!(found("dates parser"), [(dates, 1)]);
    assert_eq!(found("parser times"), []);
    assert_eq!(found("pars"), []);
    assert_eq!(found("pars*"), [(dates, 2), (dates, 1)]);
    assert_eq!(found("header"), [(dates, 2)]);
    assert_eq!(found("foo_bar"), [(dates, 2)]);
    assert_eq!(found("bar_foo"), []);
    for query in ["压缩", "会话", "会压缩很长", "引擎 会话", "话", "测"] {
        assert_eq!(found(query).last().map(|hit| hit.0), Some(chinese), "{query}");
    }
    // Both pairs are there, and not beside each other.
    assert_eq!(found("上下会话"), []);
    for query in ["", "*", "\"", "AND", "NOT OR", "a-b:c^d", "'; DROP TABLE words"] {
        assert_eq!(found(query), [], "{query}");
    }
    let hit = &store.search("会话", &Filter::default(), 1).unwrap()[0];
    assert_eq!(
        (hit.title.as_str(), &hit.snippet[hit.found[0].clone()]),
        ("上下文引擎会压缩很长的会话。", "会话")
    );

    let other = Filter { project: Some("other".into()), ..Filter::default() };
    assert!(store.search("parser", &other, 10).unwrap().is_empty());
    let fork = store.fork(dates, Cursor(2)).unwrap();
    assert_eq!(found("parser dates"), [(fork, 1)]);
    store.delete(fork).unwrap();
    assert_eq!(found("parser dates"), [(dates, 1)]);

    // Of one session three at most, and tool results are not looked at.
    create(&*store, "p", &["tea 1", "tea 2", "tea 3", "tea 4"]);
    let with_tea = create(&*store, "p", &["tea 5"]);
    store
        .append(with_tea, Cursor(2), &[Entry::Message(Arc::new(Message::result("c", "green tea")))])
        .unwrap();
    assert_eq!(found("tea").len(), 4);
    assert_eq!(store.search("tea", &Filter::default(), 2).unwrap().len(), 2);
    assert_eq!(found("green"), []);
}

fn keys_of_tool_servers_are_in_no_stored_byte(ground: &Ground) {
    let store = ground.open();
    let frame = r#"{"model": "m", "system": "You mend parsers.", "api_key": "sk-secret-1",
        "mcp_servers": [{"url": "https://x", "authorization_token": "sk-secret-2"}],
        "tools": [{"type": "mcp", "name": "t", "headers": {"Authorization": "sk-secret-3"}}]}"#;
    let mut session = long_session();
    session.set_frame(Frame::from_json(&Json::new(frame).unwrap()).unwrap());
    session.prepare(None).unwrap();
    let keeper = Keeper::create(store.clone(), &about("p"), &session).unwrap();
    let mut journal = Vec::new();
    store.export(keeper.id(), Form::Journal, &mut journal).unwrap();
    assert!(has(&journal, "You mend parsers.") && !has(&journal, "sk-secret"));
    assert!(!has(&ground.bytes(), "sk-secret"));
}

fn sizes_and_what_was_learnt_are_kept(ground: &Ground) {
    let store = ground.open();
    let mut session = long_session();
    let mut keeper = Keeper::create(store.clone(), &about("p"), &session).unwrap();
    (0..40).for_each(|n| step(&mut session, n));
    keeper.save(&session).unwrap();
    let stored = store.load(keeper.id()).unwrap();
    assert_eq!((stored.sizes, stored.sized), (session.snapshots(), session.log().messages().len()));
    let learnt = store.learnt("gpt-4o").unwrap();
    assert_eq!(learnt.as_ref(), session.meter().calibration());
    assert!(learnt.is_some() && store.learnt("other").unwrap().is_none());
    let (_, loaded) = Keeper::open(store, keeper.id(), Profile::longhaul()).unwrap();
    assert_eq!(loaded.snapshots(), session.snapshots());
}

fn limits_of_upstreams_are_kept(ground: &Ground) {
    let limit = |upstream: &str, model: &str, window: u64| UpstreamLimit {
        upstream: upstream.into(),
        model: model.into(),
        window: Tokens(window),
        learnt: Time(1_772_000_000_000_000 + i64::try_from(window).unwrap()),
    };
    let store = ground.open();
    let [a, b, again] = [
        limit("http://a/v1", "m", 200_000),
        limit("http://b", "m", 32_768),
        limit("http://a/v1", "m", 131_072),
    ];
    assert_eq!(store.limits().unwrap(), []);
    for limit in [&a, &b, &again] {
        store.keep_limit(limit).unwrap();
    }
    let mut limits = ground.open().limits().unwrap();
    limits.sort_by(|one, other| one.upstream.cmp(&other.upstream));
    assert_eq!(limits, [again, b]);
}

fn refusals_of_upstreams_are_kept(ground: &Ground) {
    let refusal = |model: &str, form: &str, says: &str| UpstreamRefusal {
        upstream: "http://a/v1".into(),
        model: model.into(),
        form: form.into(),
        says: says.into(),
        learnt: Time(1_772_000_000_000_000 + i64::try_from(says.len()).unwrap()),
    };
    let store = ground.open();
    let [a, b, again] = [
        refusal("m", "system", "No."),
        refusal("m", "tool", "No \u{0}tool."),
        refusal("m", "system", "Not so."),
    ];
    assert_eq!(store.refusals().unwrap(), []);
    for refusal in [&a, &b, &again] {
        store.keep_refusal(refusal).unwrap();
    }
    let mut refusals = ground.open().refusals().unwrap();
    refusals.sort_by(|one, other| one.form.cmp(&other.form));
    assert_eq!(refusals[0], again);
    assert_eq!((&*refusals[1].form, refusals.len()), ("tool", 2));
    let later = |days: i64| Time(again.learnt.0 + days * 24 * 3_600_000_000);
    assert!(
        UpstreamRefusal::counts(again.learnt, later(6)) && !UpstreamRefusal::counts(again.learnt, later(7))
    );
}

fn an_append_that_failed_and_was_stored_all_the_same_is_no_conflict(ground: &Ground) {
    let store = ground.open();
    let mut session = long_session();
    let mut keeper = Keeper::create(store.clone(), &about("p"), &session).unwrap();
    (0..40).for_each(|n| step(&mut session, n));
    let new: Vec<Entry> = session.since(keeper.stored()).cloned().collect();
    assert!(new.iter().any(|entry| entry.apart().is_some()));
    store.append(keeper.id(), keeper.stored(), &new[..new.len() - 5]).unwrap();
    keeper.save(&session).unwrap();
    assert_eq!(store.meta(keeper.id()).unwrap().end, session.cursor());

    // What somebody else wrote is one.
    let end = session.cursor();
    store.append(keeper.id(), end, &[said("I was here.")]).unwrap();
    session.push(Message::user("Go on."));
    assert!(
        matches!(keeper.save(&session), Err(StoreError::Conflict { stored, .. }) if stored.0 == end.0 + 1)
    );
}

fn words_are_found_before_and_after_they_were_indexed(ground: &Ground) {
    let store = ground.open();
    let texts: Vec<String> = (0..1_300).map(|n| format!("unique{n} of many")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let gone = create(&*store, "p", &["elephant"]);
    store.delete(gone).unwrap();
    let id = create(&*store, "p", &texts);
    for n in [0, 511, 512, 1_299] {
        let hits = store.search(&format!("unique{n}"), &Filter::default(), 5).unwrap();
        assert_eq!(hits.iter().map(|hit| (hit.session, hit.at.0)).collect::<Vec<_>>(), [(id, n + 1)]);
    }
    assert!(store.search("elephant", &Filter::default(), 5).unwrap().is_empty());
    // A message that is said again, in another session, is found where it was said last.
    let long = "giraffe ".repeat(200);
    create(&*store, "p", &[&long]);
    let last = create(&*store, "p", &[&long]);
    let hits = store.search("giraffe", &Filter::default(), 5).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.session).collect::<Vec<_>>(), [last]);
}

#[test]
fn a_file_of_the_first_form_is_brought_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    let id = SessionId::fresh();
    old.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL").ok();
    old.execute_batch(include_str!("../src/sqlite/1.sql")).unwrap();
    old.execute_batch("PRAGMA application_id = 0x4C48736E; PRAGMA user_version = 1").unwrap();
    old.execute(
        "INSERT INTO session (id, agent, project, title, model, created, updated, entries, messages, calls, bytes)
         VALUES (?1, 'test', 'p', 'old', 'm', 1, 2, 0, 0, 0, 0)",
        [id.as_bytes()],
    )
    .unwrap();
    drop(old);
    let store = longhaul_store::open(&path.display().to_string()).unwrap();
    let meta = store.meta(id).unwrap();
    assert_eq!((meta.title.as_str(), meta.tenant.as_str()), ("old", ""));
    store.append(id, Cursor(0), &[began(), said("hello")]).unwrap();
    let nobody = Filter { tenant: Some(String::new()), ..Filter::default() };
    assert_eq!(store.list(&nobody, 9).unwrap().len(), 1);
    assert_eq!(store.search("hello", &nobody, 9).unwrap().len(), 1);
}

fn words_are_indexed_while_nobody_waits(ground: &Ground) {
    let store = ground.open();
    let texts: Vec<String> = (0..600).map(|n| format!("number {n}")).collect();
    create(&*store, "p", &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let begun = std::time::Instant::now();
    while ground.indexed() < 600 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} were indexed", ground.indexed());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(store.search("number 599", &Filter::default(), 9).unwrap().len(), 1);
}

fn tenants_see_nothing_of_each_other(ground: &Ground) {
    let store = ground.open();
    let of = |tenant: &str| About { tenant: tenant.into(), ..about("p") };
    // Long enough to be stored once for both.
    let shared = format!("zebra {}", "and giraffe ".repeat(100));
    let mut ids = Vec::new();
    for tenant in ["ann", "bob"] {
        let id = store.create(&of(tenant)).unwrap();
        let own = said(format!("the secret of {tenant}"));
        store.append(id, Cursor(0), &[began(), said(shared.as_str()), own]).unwrap();
        ids.push(id);
    }
    let filter = |tenant: &str| Filter { tenant: Some(tenant.into()), ..Filter::default() };
    for (id, tenant) in ids.iter().zip(["ann", "bob"]) {
        let listed = store.list(&filter(tenant), 9).unwrap();
        assert_eq!(
            listed.iter().map(|meta| (meta.id, meta.tenant.as_str())).collect::<Vec<_>>(),
            [(*id, tenant)]
        );
        for query in ["zebra", "secret"] {
            let hits = store.search(query, &filter(tenant), 9).unwrap();
            assert_eq!(hits.iter().map(|hit| hit.session).collect::<Vec<_>>(), [*id], "{query} of {tenant}");
        }
    }
    assert!(store.list(&filter("eve"), 9).unwrap().is_empty());
    assert!(store.search("zebra", &filter("eve"), 9).unwrap().is_empty());
    assert!(store.list(&filter(""), 9).unwrap().is_empty());
    assert_eq!(store.list(&Filter::default(), 9).unwrap().len(), 2);
    let fork = store.fork(ids[0], Cursor(2)).unwrap();
    assert_eq!(store.meta(fork).unwrap().tenant, "ann");
    assert_eq!(store.list(&filter("ann"), 9).unwrap().len(), 2);

    // Who knows the handle of another's text does not get the text.
    let mut session = long_session();
    let mut keeper = Keeper::create(store.clone(), &of("ann"), &session).unwrap();
    (0..40).for_each(|n| step(&mut session, n));
    keeper.save(&session).unwrap();
    let (apart, handle, text) = session.since(Cursor(0)).find_map(Entry::apart).unwrap();
    let append = |tenant: &str| {
        let id = store.create(&of(tenant)).unwrap();
        store.append(id, Cursor(0), &[began(), apart.clone()]).map(|()| id)
    };
    assert!(matches!(append("bob"), Err(StoreError::LostText(lost)) if lost == handle));
    let own = append("ann").unwrap();
    assert_eq!(store.archive(own).unwrap().get(handle).as_deref(), Some(&*text));
    ground.check();
}

fn texts_that_look_like_sql_or_have_zeros_are_stored(ground: &Ground) {
    let store = ground.open();
    let odd = "it's \0 a \"test\"; DROP TABLE session -- \\ é 会";
    let (title, it) = (Some(odd.into()), || odd.into());
    let about = About { title, project: it(), agent: it(), tenant: it(), ..About::default() };
    let id = store.create(&about).unwrap();
    let entries = [began(), said(odd), said(odd.repeat(50))];
    store.append(id, Cursor(0), &entries).unwrap();
    assert_eq!(store.load(id).unwrap().entries, entries);
    assert!(store.meta(id).unwrap().title.starts_with("it's"));
    let wanted = Filter { tenant: Some(odd.into()), project: Some(odd.into()), ..Filter::default() };
    assert_eq!(store.list(&wanted, 9).unwrap().len(), 1);
    assert_eq!(store.search("test", &wanted, 9).unwrap().len(), 2);
    assert_eq!(store.search("test table", &Filter::default(), 9).unwrap().len(), 2);
}

/// The hash of a number.
fn hash(n: u16) -> [u8; 16] {
    let mut hash = [0; 16];
    hash[..2].copy_from_slice(&n.to_be_bytes());
    hash
}

/// The sessions that hashes name, and of how many messages they are.
fn named(store: &dyn Store, hashes: &[[u8; 16]]) -> Option<(Vec<SessionId>, usize)> {
    let found = store.find_prefix(hashes).unwrap()?;
    Some((found.sessions.iter().map(|meta| meta.id).collect(), found.messages))
}

fn a_session_is_found_by_how_it_begins(ground: &Ground) {
    let store = ground.open();
    let (one, other) = (create(&*store, "p", &["hello"]), create(&*store, "p", &["hello"]));
    let hashes: Vec<[u8; 16]> = (0..700).map(hash).collect();
    assert_eq!(named(&*store, &hashes), None);
    store.keep_prefixes(one, 0, &hashes[..3]).unwrap();
    store.keep_prefixes(one, 3, &hashes[3..300]).unwrap();
    assert_eq!(named(&*store, &hashes[..2]), Some((vec![one], 2)));
    // The longest that is known, however much is asked for.
    assert_eq!(named(&*store, &hashes), Some((vec![one], 300)));
    // What two begin with names both, the one that was written to last first.
    store.keep_prefixes(other, 0, &[hash(0), hash(1_000)]).unwrap();
    assert_eq!(named(&*store, &[hash(0)]), Some((vec![other, one], 1)));
    store.append(one, Cursor(2), &[said("more")]).unwrap();
    assert_eq!(named(&*store, &[hash(0)]), Some((vec![one, other], 1)));
    assert_eq!(named(&*store, &[hash(0), hash(1_000)]), Some((vec![other], 2)));
    // The same again changes nothing.
    store.keep_prefixes(other, 0, &[hash(0), hash(1_000)]).unwrap();
    assert_eq!(named(&*store, &[hash(0)]), Some((vec![one, other], 1)));
    store.delete(one).unwrap();
    assert_eq!(named(&*store, &hashes), Some((vec![other], 1)));
    assert_eq!(named(&*store, &hashes[1..]), None);
    assert!(matches!(store.keep_prefixes(one, 0, &[hash(5)]), Err(StoreError::NoSession(_))));
    store.delete(other).unwrap();
    assert_eq!(named(&*store, &[hash(0), hash(1_000)]), None);
}

fn of_many_sessions_that_begin_alike_a_few_are_given(ground: &Ground) {
    let store = ground.open();
    let ids: Vec<SessionId> = (0..20).map(|_| create(&*store, "p", &["hello"])).collect();
    for id in &ids {
        store.keep_prefixes(*id, 0, &[hash(1)]).unwrap();
    }
    let newest: Vec<SessionId> = ids.iter().rev().take(8).copied().collect();
    assert_eq!(named(&*store, &[hash(1)]), Some((newest, 1)));
}

#[test]
fn beginnings_of_the_third_form_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    let id = SessionId::fresh();
    for step in [
        include_str!("../src/sqlite/1.sql"),
        include_str!("../src/sqlite/2.sql"),
        include_str!("../src/sqlite/3.sql"),
    ] {
        old.execute_batch(step).unwrap();
    }
    old.execute_batch("PRAGMA application_id = 0x4C48736E; PRAGMA user_version = 3").unwrap();
    old.execute(
        "INSERT INTO session (id, agent, project, title, model, created, updated, entries, messages, calls, bytes)
         VALUES (?1, 'test', 'p', 'old', 'm', 1, 2, 0, 0, 0, 0)",
        [id.as_bytes()],
    )
    .unwrap();
    for n in 0..5_u16 {
        old.execute("INSERT INTO prefix VALUES (?1, 1, ?2)", rusqlite::params![hash(n), n + 1]).unwrap();
    }
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    let hashes: Vec<[u8; 16]> = (0..5).map(hash).collect();
    assert_eq!(named(&store, &hashes), Some((vec![id], 5)));
    let new = create(&store, "p", &["hello"]);
    store.keep_prefixes(new, 0, &hashes).unwrap();
    assert_eq!(named(&store, &hashes), Some((vec![new, id], 5)));
    assert!(!store.meta(id).unwrap().without_content);
    store.check().unwrap();
}

#[test]
fn a_store_in_memory_does_what_files_do_and_leaves_none() {
    let store = SqliteStore::in_memory().unwrap();
    let other = SqliteStore::in_memory().unwrap();
    let ids: Vec<_> =
        (0..4).map(|n| create(&store, "p", &[&format!("Mend the parser, part {n}.")])).collect();
    // Many write and read at once, each in a clone of it.
    std::thread::scope(|scope| {
        for id in &ids {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..50 {
                    let end = store.meta(*id).unwrap().end;
                    store.append(*id, end, &[said(format!("{n}: read the cursor"))]).unwrap();
                    assert_eq!(store.load(*id).unwrap().entries.len(), n + 3);
                }
            });
        }
    });
    let fork = store.fork(ids[0], Cursor(3)).unwrap();
    assert_eq!(store.load(fork).unwrap().entries.len(), 3);
    assert_eq!(store.search("cursor", &Filter::default(), 500).unwrap().len().min(4), 4);
    store.delete(ids[1]).unwrap();
    assert_eq!(store.list(&Filter::default(), 10).unwrap().len(), 4);
    store.check().unwrap();
    assert_eq!(other.list(&Filter::default(), 10).unwrap().len(), 0, "another one has nothing of it");
    assert!(!std::path::Path::new("file:").exists());
    drop(store);
    assert_eq!(SqliteStore::in_memory().unwrap().list(&Filter::default(), 10).unwrap().len(), 0);
}

on_each_store!(
    what_was_appended_is_loaded,
    a_writer_that_lost_its_place_is_told_and_nothing_is_written,
    a_session_that_is_loaded_before_every_call_sends_the_same_bytes,
    a_stored_text_is_found_by_its_handle_and_only_by_its_session,
    a_fork_shares_content_and_goes_its_own_way,
    sessions_are_listed_newest_first,
    a_transcript_is_exported,
    what_nobody_holds_any_longer_is_deleted,
    sessions_go_by_age_and_by_size,
    a_fork_outlives_its_parent_that_is_not_kept,
    a_long_session_goes_whole,
    who_prunes_beside_another_deletes_no_more_than_one_would,
    what_was_said_is_found,
    keys_of_tool_servers_are_in_no_stored_byte,
    sizes_and_what_was_learnt_are_kept,
    limits_of_upstreams_are_kept,
    refusals_of_upstreams_are_kept,
    an_append_that_failed_and_was_stored_all_the_same_is_no_conflict,
    words_are_found_before_and_after_they_were_indexed,
    words_are_indexed_while_nobody_waits,
    tenants_see_nothing_of_each_other,
    texts_that_look_like_sql_or_have_zeros_are_stored,
    a_session_is_found_by_how_it_begins,
    of_many_sessions_that_begin_alike_a_few_are_given,
);
