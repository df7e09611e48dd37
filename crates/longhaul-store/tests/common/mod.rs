//! What the tests share.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
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
    About { agent: "test".into(), project: project.into(), title: None }
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
pub fn child(test: &str, path: &Path, arguments: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    command.env("STORE_TEST_PATH", path).env("STORE_TEST_ARGUMENTS", arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What [`child`] was given; `None` if this is no such process.
pub fn given() -> Option<(String, String)> {
    Some((std::env::var("STORE_TEST_PATH").ok()?, std::env::var("STORE_TEST_ARGUMENTS").ok()?))
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
