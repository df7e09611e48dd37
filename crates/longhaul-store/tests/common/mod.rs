//! What the tests share.

#![allow(dead_code, unused_macros, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod postgres;

use std::process::{Command, Stdio};
use std::sync::Arc;

use longhaul::{Entry, Message, Models, Profile, Session};
use longhaul_store::{About, SqliteStore, Store};

/// A new store in a new folder.
pub fn store() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    (folder, Arc::new(store))
}

/// A new place for a store.
pub struct Ground {
    pub place: String,
    /// The folder of SQLite's files; `None` for Postgres.
    folder: Option<tempfile::TempDir>,
}

impl Ground {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("sessions.db").display().to_string();
        Self { place, folder: Some(folder) }
    }

    /// `None` if there is no Postgres here.
    pub fn postgres() -> Option<Self> {
        postgres::database().map(Self::on_postgres)
    }

    /// The database of a URL.
    pub fn on_postgres(url: String) -> Self {
        Self { place: url, folder: None }
    }

    /// Another place of the same kind.
    pub fn another(&self) -> Self {
        match self.folder {
            Some(_) => Self::sqlite(),
            None => Self::postgres().unwrap(),
        }
    }

    pub fn open(&self) -> Arc<dyn Store> {
        longhaul_store::open(&self.place).unwrap()
    }

    /// Whether everything fits together.
    pub fn check(&self) {
        match self.folder {
            Some(_) => SqliteStore::open(&self.place).unwrap().check().unwrap(),
            None => {
                let lost = "
                    SELECT (SELECT count(*) FROM longhaul.entry WHERE content IS NOT NULL
                            AND NOT EXISTS (SELECT FROM longhaul.content WHERE id = entry.content)),
                        (SELECT count(*) FROM longhaul.entry WHERE apart IS NOT NULL
                            AND NOT EXISTS (SELECT FROM longhaul.content WHERE id = entry.apart)),
                        (SELECT count(*) FROM longhaul.entry
                            WHERE NOT EXISTS (SELECT FROM longhaul.session WHERE n = entry.session)),
                        (SELECT count(*) FROM longhaul.content
                            WHERE NOT EXISTS (SELECT FROM longhaul.entry WHERE entry.content = content.id)
                            AND NOT EXISTS (SELECT FROM longhaul.entry WHERE entry.apart = content.id)),
                        (SELECT count(*) FROM longhaul.words
                            WHERE NOT EXISTS (SELECT FROM longhaul.content WHERE id = words.content)),
                        (SELECT count(*) FROM longhaul.waiting
                            WHERE NOT EXISTS (SELECT FROM longhaul.content WHERE id = waiting.content)),
                        (SELECT count(*) FROM longhaul.original
                            WHERE NOT EXISTS (SELECT FROM longhaul.entry
                                WHERE entry.session = original.session AND entry.seq = original.seq))";
                assert_eq!(postgres::sql(&self.place, lost), ["0"; 7]);
            }
        }
    }

    /// The clients that a server has at the moment; nobody for a file.
    pub fn clients(&self) -> Vec<String> {
        let others = "SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        if self.folder.is_some() { Vec::new() } else { postgres::sql(&self.place, others) }
    }

    /// Waits until a server has only clients that were there before. It still does what one that is gone has sent.
    pub fn wait_for_others(&self, before: &[String]) {
        while self.clients().iter().any(|client| !before.contains(client)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Bytes of the store on the disk, as far as they say how much is stored.
    pub fn size(&self) -> u64 {
        match &self.folder {
            Some(folder) => {
                let files = std::fs::read_dir(folder.path()).unwrap();
                files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
            }
            None => self.content(),
        }
    }

    /// Bytes of all content.
    pub fn content(&self) -> u64 {
        match self.folder {
            Some(_) => {
                let connection = rusqlite::Connection::open(&self.place).unwrap();
                let sum = "SELECT coalesce(sum(length(packed)), 0) FROM content";
                connection.query_row(sum, [], |row| row.get(0)).unwrap()
            }
            None => {
                let sum = "SELECT coalesce(sum(length(packed)), 0) FROM longhaul.content";
                postgres::sql(&self.place, sum)[0].parse().unwrap()
            }
        }
    }

    /// How many messages are in the index; of SQLite how much content was looked at.
    pub fn indexed(&self) -> u64 {
        match self.folder {
            Some(_) => {
                let connection = rusqlite::Connection::open(&self.place).unwrap();
                connection.query_row("SELECT upto FROM indexed", [], |row| row.get(0)).unwrap()
            }
            None => postgres::sql(&self.place, "SELECT count(*) FROM longhaul.words")[0].parse().unwrap(),
        }
    }

    /// How many handles of originals lead to entries.
    pub fn originals(&self) -> u64 {
        match self.folder {
            Some(_) => {
                let connection = rusqlite::Connection::open(&self.place).unwrap();
                connection.query_row("SELECT count(*) FROM original", [], |row| row.get(0)).unwrap()
            }
            None => postgres::sql(&self.place, "SELECT count(*) FROM longhaul.original")[0].parse().unwrap(),
        }
    }

    /// Nothing is listed, as if an older version had stored everything.
    pub fn forget_originals(&self) {
        self.list_only(0);
    }

    /// So many entries of each session are listed.
    pub fn list_only(&self, entries: usize) {
        match self.folder {
            Some(_) => {
                let connection = rusqlite::Connection::open(&self.place).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
                let forget = format!(
                    "BEGIN IMMEDIATE; DELETE FROM original WHERE at & 4294967295 >= {entries};
                     UPDATE session SET listed = {entries}; COMMIT"
                );
                connection.execute_batch(&forget).unwrap();
            }
            None => {
                let forget = format!(
                    "BEGIN; DELETE FROM longhaul.original WHERE seq >= {entries};
                     UPDATE longhaul.session SET listed = {entries}; COMMIT"
                );
                postgres::sql(&self.place, &forget);
            }
        }
    }

    /// Brings the store back to the form before the one that lists originals.
    pub fn to_older_form(&self) {
        match self.folder {
            Some(_) => {
                let connection = rusqlite::Connection::open(&self.place).unwrap();
                let back = "DROP INDEX session_unlisted; DROP TABLE original;
                    ALTER TABLE session DROP COLUMN listed; PRAGMA user_version = 7";
                connection.execute_batch(back).unwrap();
            }
            None => {
                let back = "DROP TABLE longhaul.original; ALTER TABLE longhaul.session DROP COLUMN listed;
                    UPDATE longhaul.form SET form = 6";
                postgres::sql(&self.place, back);
            }
        }
    }

    /// Every byte of the store; of Postgres every value of every row.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.folder {
            Some(folder) => {
                let files = std::fs::read_dir(folder.path()).unwrap();
                files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
            }
            None => {
                ["session", "content", "entry", "sizes", "learnt", "words", "prefix", "waiting", "original"]
                    .iter()
                    .flat_map(|table| {
                        let all =
                            format!("SET bytea_output = 'escape'; SELECT t::text FROM longhaul.{table} t");
                        postgres::sql(&self.place, &all).concat().into_bytes()
                    })
                    .collect()
            }
        }
    }
}

/// Makes tests of functions that take a [`Ground`]: one on SQLite and one on Postgres of each.
macro_rules! on_each_store {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                super::$test(&super::common::Ground::sqlite());
            })+
        }

        mod postgres {
            $(#[test]
            fn $test() {
                if let Some(ground) = super::common::Ground::postgres() {
                    super::$test(&ground);
                }
            })+
        }
    };
}

pub fn session() -> Session {
    Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone())
}

/// The first entry of a journal.
pub fn began() -> Entry {
    session().since(longhaul::Cursor(0)).next().unwrap().clone()
}

pub fn said(text: impl Into<Arc<str>>) -> Entry {
    Entry::Message(Arc::new(Message::user(text)))
}

pub fn about(project: &str) -> About {
    About { agent: "test".into(), project: project.into(), ..About::default() }
}

/// The text of an entry that is a message.
pub fn text(entry: &Entry) -> String {
    let Entry::Message(message) = entry else { panic!("{entry:?}") };
    message.texts().collect()
}

/// A session that says all of these texts.
pub fn create(store: &dyn Store, project: &str, texts: &[&str]) -> longhaul_store::SessionId {
    let id = store.create(&about(project)).unwrap();
    let entries: Vec<Entry> =
        std::iter::once(began()).chain(texts.iter().map(|text| said(text.to_string()))).collect();
    store.append(id, longhaul::Cursor(0), &entries).unwrap();
    id
}

/// This test program again, to run one ignored test as a process of its own.
pub fn child(test: &str, place: &str, arguments: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    command.env("STORE_TEST_PLACE", place).env("STORE_TEST_ARGUMENTS", arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What [`child`] was given; `None` if this is no such process.
pub fn given() -> Option<(String, String)> {
    Some((std::env::var("STORE_TEST_PLACE").ok()?, std::env::var("STORE_TEST_ARGUMENTS").ok()?))
}

/// Numbers that look random, the same for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
