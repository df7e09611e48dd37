//! What only a store on a server can do, and what can go wrong with one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::postgres::{Server, database, skipped, sql, try_sql};
use common::*;
use longhaul::{Cursor, Entry};
use longhaul_store::{Filter, Form, PostgresStore, Retention, Store, StoreError};

/// The same URL with a password in it, which a server that trusts everybody ignores.
fn with_password(url: &str) -> String {
    url.replacen("postgres@", "postgres:s3cret@", 1)
}

#[test]
fn a_password_is_shown_nowhere() {
    let unreachable = "postgres://ann:s3cret@127.0.0.1:1/work?connect_timeout=2";
    let error = longhaul_store::open(unreachable).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
    assert!(error.to_string().starts_with("postgres://ann@127.0.0.1:1/work cannot be used: "), "{error}");
    let wrong = longhaul_store::open("postgresql://ann:s3cret@host:s3cret/work").unwrap_err();
    for error in [error, wrong] {
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
    let Some(url) = database() else { return };
    let store = PostgresStore::open(&with_password(&url)).unwrap();
    let id = create(&store, "p", &["hello"]);
    assert!(!store.place().contains("s3cret") && store.place().contains("/test_"));
    let shown = format!("{store:?} {:?} {}", store.archive(id).unwrap(), store.place());
    assert!(!shown.contains("s3cret"), "{shown}");
    sql(&url, "DROP SCHEMA longhaul CASCADE");
    let error = store.load(id).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

#[test]
fn what_other_programs_have_is_left_alone() {
    let Some(url) = database() else { return };
    sql(
        &url,
        "CREATE TABLE session (mine text); INSERT INTO session VALUES ('kept'); CREATE TABLE form (a int)",
    );
    let store = PostgresStore::open(&url).unwrap();
    create(&store, "p", &["hello"]);
    assert_eq!(sql(&url, "SELECT mine FROM public.session"), ["kept"]);

    let url = database().unwrap();
    for schema in [
        "CREATE SCHEMA longhaul; CREATE TABLE longhaul.mine (a int)",
        "CREATE TABLE longhaul.form (number int)",
        "DROP TABLE longhaul.form; CREATE TABLE longhaul.form (program text, form bigint)",
        "INSERT INTO longhaul.form VALUES ('other', 1)",
    ] {
        sql(&url, schema);
        let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'longhaul'::regnamespace ORDER BY 1";
        let before = sql(&url, tables);
        let error = PostgresStore::open(&url).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert_eq!(sql(&url, tables), before);
    }
    // A schema that somebody made for us is filled.
    let url = database().unwrap();
    sql(&url, "CREATE SCHEMA longhaul");
    PostgresStore::open(&url).unwrap();
}

#[test]
fn a_schema_of_a_later_version_is_left_alone() {
    let Some(url) = database() else { return };
    create(&PostgresStore::open(&url).unwrap(), "p", &["hello"]);
    sql(&url, "UPDATE longhaul.form SET form = 9");
    let error = PostgresStore::open(&url).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 9, known: 7, .. }), "{error}");
    assert_eq!(sql(&url, "SELECT form FROM longhaul.form"), ["9"]);
}

#[test]
fn beginnings_of_the_second_form_are_kept() {
    let Some(url) = database() else { return };
    sql(&url, "CREATE SCHEMA longhaul");
    sql(&url, include_str!("../src/postgres/1.sql"));
    sql(&url, include_str!("../src/postgres/2.sql"));
    let id = longhaul_store::SessionId::fresh();
    let old = format!(
        "UPDATE longhaul.form SET form = 2;
         INSERT INTO longhaul.session
             (id, tenant, agent, project, title, model, created, updated, entries, messages, calls, bytes)
         VALUES ('{id}', '', 'test', 'p', 'old', 'm', 1, 2, 0, 0, 0, 0);
         INSERT INTO longhaul.prefix VALUES ('\\x{}', 1, 7)",
        "0b".repeat(16)
    );
    sql(&url, &old);
    let store = PostgresStore::open(&url).unwrap();
    let found = store.find_prefix(&[[11; 16]]).unwrap().unwrap();
    assert_eq!((found.messages, found.sessions[0].id), (7, id));
    let new = create(&store, "p", &["hello"]);
    store.keep_prefixes(new, 6, &[[11; 16]]).unwrap();
    let found = store.find_prefix(&[[11; 16]]).unwrap().unwrap();
    assert_eq!(found.sessions.iter().map(|meta| meta.id).collect::<Vec<_>>(), [new, id]);
}

#[test]
fn a_database_that_cannot_be_written_to_is_read() {
    let Some(url) = database() else { return };
    let id = create(&PostgresStore::open(&url).unwrap(), "p", &["hello"]);
    let name = sql(&url, "SELECT current_database()").remove(0);
    sql(&url, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let store = PostgresStore::open(&url).unwrap();
    assert_eq!(store.load(id).unwrap().entries.len(), 2);
    assert!(store.search("hello", &Filter::default(), 5).is_ok());
    for error in
        [store.create(&about("p")).unwrap_err(), store.append(id, Cursor(2), &[said("more")]).unwrap_err()]
    {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
    // A user who may not make a schema is told.
    let other = database().unwrap();
    let as_other = other.replacen("postgres@", &format!("{name}@"), 1);
    if as_other != other {
        sql(&other, &format!("CREATE ROLE {name} LOGIN"));
        let error = PostgresStore::open(&as_other).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
}

#[test]
fn another_encoding_is_refused() {
    let Some(url) = database() else { return };
    let name = sql(&url, "SELECT current_database()").remove(0);
    sql(&url, &format!("CREATE DATABASE {name}_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"));
    let error = PostgresStore::open(&url.replace(&name, &format!("{name}_latin"))).unwrap_err();
    assert!(
        error.to_string().ends_with("a database with the encoding UTF8 is needed, not LATIN1"),
        "{error}"
    );
}

#[test]
fn connections_that_were_ended_are_made_anew() {
    let Some(url) = database() else { return };
    let store = PostgresStore::open(&url).unwrap();
    let id = create(&store, "p", &[]);
    let mut end = 1;
    for round in 0..10 {
        sql(
            &url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        // The first call may find the connection gone; it was not stored then.
        loop {
            match store.append(id, Cursor(end), &[said(format!("round {round}"))]) {
                Ok(()) => break end += 1,
                Err(StoreError::Unavailable { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert_eq!(store.load(id).unwrap().entries.len(), end);
}

#[test]
fn commits_are_durable_whatever_the_database_prefers() {
    let Some(url) = database() else { return };
    let name = sql(&url, "SELECT current_database()").remove(0);
    sql(&url, &format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    PostgresStore::open(&url).unwrap();
    sql(
        &url,
        "CREATE TABLE modes (mode text);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO modes VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
         CREATE TRIGGER note AFTER INSERT ON longhaul.session FOR EACH ROW EXECUTE FUNCTION note()",
    );
    create(&PostgresStore::open(&url).unwrap(), "p", &["hello"]);
    sql(&url, &format!("ALTER DATABASE {name} SET synchronous_commit = remote_apply"));
    create(&PostgresStore::open(&url).unwrap(), "p", &["hello"]);
    assert_eq!(sql(&url, "SELECT mode FROM modes"), ["on", "remote_apply"]);
}

#[test]
fn errors_of_the_server_are_those_of_a_store() {
    let Some(url) = database() else { return };
    let store = PostgresStore::open(&url).unwrap();
    let id = create(&store, "p", &["hello"]);
    // The server says whatever it is told to, when entries are written, until it has said it so often.
    sql(
        &url,
        "CREATE TABLE saying (code text); CREATE SEQUENCE said;
         CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE c text; BEGIN
             SELECT code INTO c FROM saying;
             IF c IS NOT NULL AND nextval('said') <= 2 THEN
                 RAISE EXCEPTION 'as told' USING ERRCODE = c, DETAIL = 'values of a row';
             END IF;
             RETURN NULL; END $$;
         CREATE TRIGGER say AFTER INSERT ON longhaul.entry FOR EACH STATEMENT EXECUTE FUNCTION say()",
    );
    type Expected = fn(&StoreError) -> bool;
    let expected: [(&str, Expected); 7] = [
        ("53100", |error| matches!(error, StoreError::Full { .. })),
        ("55P03", |error| matches!(error, StoreError::Busy { .. })),
        ("57014", |error| matches!(error, StoreError::Busy { .. })),
        ("25006", |error| matches!(error, StoreError::ReadOnly { .. })),
        ("42501", |error| matches!(error, StoreError::ReadOnly { .. })),
        ("XX001", |error| matches!(error, StoreError::Damaged { .. })),
        ("58030", |error| matches!(error, StoreError::Unavailable { .. })),
    ];
    for (code, is_expected) in expected {
        sql(
            &url,
            &format!("DELETE FROM saying; INSERT INTO saying VALUES ('{code}'); SELECT setval('said', 1)"),
        );
        let error = store.append(id, Cursor(2), &[said("more")]).unwrap_err();
        assert!(is_expected(&error), "{code}: {error:?}");
        assert!(!error.to_string().contains("values of a row"));
        assert_eq!(store.load(id).unwrap().entries.len(), 2, "{code}");
    }
    // Writers that were in each other's way are tried again.
    let mut end = 2;
    for code in ["40001", "40P01"] {
        sql(&url, &format!("UPDATE saying SET code = '{code}'; SELECT setval('said', 1, false)"));
        store.append(id, Cursor(end), &[said("more")]).unwrap();
        end += 1;
        assert_eq!(sql(&url, "SELECT last_value FROM said"), ["3"]);
    }
    assert_eq!(store.load(id).unwrap().entries.len(), end);
    // The pool has lost no connection by it.
    sql(&url, "DELETE FROM saying");
    std::thread::scope(|scope| {
        for n in 0..20 {
            let store = &store;
            scope.spawn(move || create(store, &n.to_string(), &["hello"]));
        }
    });
    Ground::on_postgres(url).check();
}

#[test]
fn who_waits_for_too_long_is_told() {
    let Some(url) = database() else { return };
    let store = PostgresStore::open(&url).unwrap();
    let id = create(&store, "p", &["hello"]);
    let blocked = |seconds: u64| {
        let (there, begun) = (url.clone(), Instant::now());
        let hold =
            format!("BEGIN; SELECT n FROM longhaul.session FOR UPDATE; SELECT pg_sleep({seconds}); COMMIT");
        let holder = std::thread::spawn(move || try_sql(&there, &hold).ok());
        // Other tests lock rows of databases of their own.
        let locks = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
            WHERE mode = 'RowShareLock' AND datname = current_database()";
        while sql(&url, locks) == ["0"] {
            assert!(begun.elapsed() < Duration::from_secs(5));
            std::thread::sleep(Duration::from_millis(10));
        }
        holder
    };
    // Who waits for another writer gets its turn; who reads does not wait.
    let holder = blocked(1);
    let begun = Instant::now();
    assert_eq!(store.load(id).unwrap().entries.len(), 2);
    assert!(begun.elapsed() < Duration::from_millis(500));
    store.append(id, Cursor(2), &[said("more")]).unwrap();
    holder.join().unwrap();

    // All connections wait for the other writer: nobody gets one.
    let holder = blocked(15);
    let errors: Vec<StoreError> = std::thread::scope(|scope| {
        let append = || store.append(id, Cursor(3), &[said("more")]).unwrap_err();
        let appends: Vec<_> = (0..8).map(|_| scope.spawn(append)).collect();
        std::thread::sleep(Duration::from_millis(300));
        let listed = scope.spawn(|| store.list(&Filter::default(), 9).map(|_| ()).err());
        let mut errors: Vec<StoreError> = appends.into_iter().map(|append| append.join().unwrap()).collect();
        // It waits as long as the others do, and may get a connection in the last moment.
        errors.extend(listed.join().unwrap());
        errors
    });
    assert!(errors.iter().all(|error| matches!(error, StoreError::Busy { .. })), "{errors:?}");
    sql(
        &url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%'
         AND pid <> pg_backend_pid()",
    );
    holder.join().unwrap();
    store.append(id, Cursor(3), &[said("more")]).unwrap();
}

#[test]
fn a_store_may_be_used_and_dropped_inside_of_a_runtime() {
    let Some(url) = database() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = longhaul_store::open(&url).unwrap();
        let id = create(&*store, "p", &["hello"]);
        let mut out = Vec::new();
        store.export(id, Form::Journal, &mut out).unwrap();
        assert!(!out.is_empty() && store.prune(&Retention::default(), 9).unwrap().sessions.is_empty());
        drop(store);
    });
}

/// Reaches a server by the certificates in `SSL_CERT_FILE`, which must be there when the process begins.
#[test]
#[ignore = "run by the other test as a process of its own"]
fn stores_over_tls() {
    let Some((url, _)) = given() else { return };
    let store = PostgresStore::open(&url).unwrap();
    assert_eq!(store.load(create(&store, "p", &["hello"])).unwrap().entries.len(), 2);
    println!("\nstored");
}

#[test]
fn a_server_with_tls_is_reached_by_its_certificate() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings =
        ["fsync=off".to_owned(), format!("port={port}"), "listen_addresses='localhost'".to_owned()];
    let server = match Server::start(&settings.each_ref().map(String::as_str)) {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let socket = server.database();
    let name = sql(&socket, "SELECT current_database()").remove(0);
    let url = |mode: &str| format!("postgres://postgres:s3cret@localhost:{port}/{name}?sslmode={mode}");
    for mode in ["disable", "prefer"] {
        PostgresStore::open(&url(mode)).unwrap();
    }
    let error = PostgresStore::open(&url("require")).unwrap_err().to_string();
    assert!(error.ends_with("cannot be used: server does not support TLS"), "{error}");

    let Some(certificate) = server.use_tls(&socket) else { return skipped("no openssl found") };
    let deadline = Instant::now() + Duration::from_secs(10);
    // The server takes a moment to read its settings again.
    let error = loop {
        let error = PostgresStore::open(&url("require")).unwrap_err().to_string();
        if !error.contains("does not support") || Instant::now() > deadline {
            break error;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // Nobody here has signed its certificate.
    assert!(error.contains("certificate") && !error.contains("s3cret"), "{error}");
    for mode in ["require", "verify-full", "prefer"] {
        let output =
            child("stores_over_tls", &url(mode), "").env("SSL_CERT_FILE", &certificate).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("\nstored"), "{mode}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
    let others = child("stores_over_tls", &url("require").replace("localhost", "127.0.0.1"), "")
        .env("SSL_CERT_FILE", &certificate)
        .output()
        .unwrap();
    assert!(!others.status.success(), "the certificate is for another name");
}

#[test]
fn both_stores_find_the_same() {
    let Some(url) = database() else { return };
    let (folder, file) = store();
    let stores: [Arc<dyn Store>; 2] = [file, Arc::new(PostgresStore::open(&url).unwrap())];
    const WORDS: [&str; 12] = [
        "parse",
        "parser",
        "parseHeader",
        "foo_bar",
        "会话",
        "压缩会话",
        "Größe",
        "it's",
        "x1",
        "HTTP2",
        "été",
        "了",
    ];
    let mut dice = Dice(0x1234_5678_9ABC_DEF1);
    let mut ids = [Vec::new(), Vec::new()];
    for n in 0..30 {
        let texts: Vec<String> = (0..12)
            .map(|_| {
                let words = (0..1 + dice.roll(5)).map(|_| WORDS[dice.roll(12) as usize]);
                let text = words.collect::<Vec<_>>().join(" ");
                if dice.roll(5) == 0 { format!("{text} ").repeat(200) } else { text }
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (at, whom) = (dice.roll(12) as usize, dice.roll(30) as usize);
        for (store, ids) in stores.iter().zip(&mut ids) {
            ids.push(create(&**store, ["a", "b", "c"][n % 3], &texts));
            if n % 7 == 6 {
                let fork = store.fork(ids[whom % ids.len()], Cursor(at)).unwrap();
                ids.push(fork);
            }
            if n % 11 == 10 {
                let gone = ids[whom % ids.len()];
                store.delete(gone).ok();
            }
        }
    }
    let project = |project: &str| Filter { project: Some(project.into()), ..Filter::default() };
    for query in
        WORDS.iter().copied().chain(["par*", "parse header", "会", "话压", "x*", "grö*", "foo bar", "t*"])
    {
        for (filter, limit) in [(Filter::default(), 100), (Filter::default(), 5), (project("b"), 7)] {
            let [one, two] = [0, 1].map(|which: usize| {
                let hits = stores[which].search(query, &filter, limit).unwrap();
                let number = |id| ids[which].iter().position(|other| *other == id).unwrap();
                hits.into_iter()
                    .map(|hit| (number(hit.session), hit.title, hit.at, hit.snippet, hit.found))
                    .collect::<Vec<_>>()
            });
            assert_eq!(one, two, "{query}");
        }
    }
    let listed: Vec<Vec<usize>> = (0..2)
        .map(|which: usize| {
            let list = stores[which].list(&Filter::default(), 100).unwrap();
            list.iter().map(|meta| ids[which].iter().position(|id| *id == meta.id).unwrap()).collect()
        })
        .collect();
    assert_eq!(listed[0], listed[1]);
    let entries = |which: usize| -> Vec<Entry> { stores[which].load(ids[which][20]).unwrap().entries };
    assert_eq!(entries(0), entries(1));
    drop(folder);
}
