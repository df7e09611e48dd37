//! opencode's store: one SQLite file with all sessions of a machine. A session is a row, a message is a row with JSON,
//! and so is each of its parts. Only read, never written.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use longhaul_wire::agents::opencode::Assembler;
use longhaul_wire::agents::{self, Numbered, Reader};
use longhaul_wire::mended_surrogates;
use longhaul_wire::transcript::ReadError;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde_json::Value;

use crate::file_start::{SQLITE, begins_with};

/// A store that is open for reading.
pub struct Store(Connection);

/// A session of the store.
pub struct StoredSession {
    pub id: String,
    pub folder: String,
    /// True for the work of a sub-agent.
    pub side: bool,
}

/// A message of the store: what is said of it, and its parts in their order, as JSON.
pub struct StoredMessage {
    pub info: String,
    pub parts: Vec<String>,
}

impl Store {
    /// Opens a store; `None` if the file is something else's.
    pub fn open(path: &Path) -> rusqlite::Result<Option<Self>> {
        // A folder that nobody may write to has no room for SQLite's own files: then the file is taken as it is.
        let file = connect(path, "mode=ro").or_else(|_| connect(path, "immutable=1"))?;
        let tables: i64 = file.query_row(
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('session', 'message', 'part')",
            [],
            |row| row.get(0),
        )?;
        Ok((tables == 3).then_some(Self(file)))
    }

    /// The sessions that have messages, in the order in which they began.
    pub fn sessions(&self) -> rusqlite::Result<Vec<StoredSession>> {
        let mut sessions = self.0.prepare_cached(
            "SELECT m.session_id, s.directory, s.parent_id, min(m.time_created) AS began
             FROM message m LEFT JOIN session s ON s.id = m.session_id GROUP BY m.session_id ORDER BY began, m.session_id",
        )?;
        let rows = sessions.query_map([], |row| {
            let id = text(row, 0);
            let (folder, parent) = (text(row, 1).unwrap_or_default(), text(row, 2));
            Ok(id.map(|id| StoredSession { id, folder, side: parent.is_some() }))
        })?;
        rows.filter_map(Result::transpose).collect()
    }

    /// The names of a session's messages, in their order.
    pub fn messages(&self, session: &str) -> rusqlite::Result<Vec<String>> {
        let mut messages = self
            .0
            .prepare_cached("SELECT id FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
        let rows = messages.query_map([session], |row| Ok(text(row, 0)))?;
        rows.filter_map(Result::transpose).collect()
    }

    /// A message; `None` if opencode has deleted it since its name was read.
    pub fn message(&self, id: &str) -> rusqlite::Result<Option<StoredMessage>> {
        let mut data = self.0.prepare_cached("SELECT data FROM message WHERE id = ?1")?;
        let mut parts = self.0.prepare_cached("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
        let info = data.query_row([id], |row| Ok(json(row, 0))).optional()?;
        let Some(info) = info else { return Ok(None) };
        let parts = parts.query_map([id], |row| Ok(json(row, 0)))?;
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Some(StoredMessage { info, parts }))
    }

    /// The messages of all sessions, a conversation each; or those of the session with this name, as the first.
    fn reader(self, only: Option<&str>) -> rusqlite::Result<Reader> {
        let sessions =
            self.sessions()?.into_iter().filter(|session| only.is_none_or(|only| only == session.id));
        let mut ids = VecDeque::new();
        for (number, session) in sessions.enumerate() {
            ids.extend(self.messages(&session.id)?.into_iter().map(|id| (number, id)));
        }
        Ok(Reader::of_messages(
            agents::OPENCODE,
            Messages {
                store: self,
                ids,
                row: 0,
                number: 0,
                assembler: Assembler::default(),
                ready: VecDeque::new(),
            },
        ))
    }
}

/// The text of a column; what is none is not there.
fn text(row: &rusqlite::Row<'_>, column: usize) -> Option<String> {
    row.get_ref(column).ok()?.as_str().ok().map(str::to_owned)
}

/// JSON in a column. opencode writes halves of characters where it cuts a text.
fn json(row: &rusqlite::Row<'_>, column: usize) -> String {
    let text = text(row, column).unwrap_or_default();
    let mended = mended_surrogates(text.as_bytes()).and_then(|json| String::from_utf8(json).ok());
    mended.unwrap_or(text)
}

/// Opens a file for reading, and reads a little.
fn connect(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let name: String = (path.to_string_lossy().bytes())
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    // Two slashes would begin the name of a host.
    let root = if name.starts_with('/') { "/" } else { "" };
    let name = name.trim_start_matches('/');
    let file = Connection::open_with_flags(format!("file:{root}{name}?{how}"), flags)?;
    file.busy_timeout(std::time::Duration::from_secs(2))?;
    file.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
    Ok(file)
}

/// Opens a session file of any format: opencode's store, or what `longhaul-wire` knows. Of a store, `session` names the
/// only one that is wanted.
pub fn open_any(path: &Path, session: Option<&str>) -> io::Result<Reader> {
    if !begins_with(path, SQLITE) {
        return agents::open(path);
    }
    let store = Store::open(path).map_err(io::Error::other)?;
    let store = store.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "is a database, but not opencode's: it holds no session")
    })?;
    store.reader(session).map_err(io::Error::other)
}

/// Which conversation of a store is that of the newest session, the work of sub-agents aside. `None` if the file is no
/// store.
pub fn newest(path: &Path) -> Option<usize> {
    let store = begins_with(path, SQLITE).then(|| Store::open(path).ok().flatten())??;
    store.sessions().ok()?.iter().rposition(|session| !session.side)
}

/// Reads a store message by message.
struct Messages {
    store: Store,
    ids: VecDeque<(usize, String)>,
    row: u64,
    /// The conversation that is being read.
    number: usize,
    assembler: Assembler,
    ready: VecDeque<Result<Numbered, ReadError>>,
}

impl Iterator for Messages {
    type Item = Result<Numbered, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let (number, id) = self.ids.pop_front()?;
            self.row += 1;
            let StoredMessage { info, parts } = match self.store.message(&id) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(error) => {
                    return Some(Err(ReadError::Io { line: self.row, source: io::Error::other(error) }));
                }
            };
            let info: Value = match serde_json::from_str(&info) {
                Ok(info) => info,
                Err(error) => return Some(Err(ReadError::not_json(self.row, &error))),
            };
            let mut values: Vec<Value> = Vec::new();
            for part in parts {
                match serde_json::from_str(&part) {
                    Ok(part) => values.push(part),
                    Err(error) => self.ready.push_back(Err(ReadError::not_json(self.row, &error))),
                }
            }
            if number != self.number {
                (self.number, self.assembler) = (number, Assembler::default());
            }
            let messages = self.assembler.message(&id, &info, &values);
            self.ready.extend(messages.into_iter().map(|message| Ok((number, message))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(path: &Path, tables: &str) -> Connection {
        let file = Connection::open(path).unwrap();
        file.execute_batch(tables).unwrap();
        file
    }

    #[test]
    fn sessions_are_conversations_in_the_order_in_which_they_began() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd name?#%.db");
        let file = database(
            &path,
            "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);
             INSERT INTO session VALUES ('ses_a', NULL, '/srv'), ('ses_b', NULL, '/srv'), ('ses_c', 'ses_a', '/srv');",
        );
        // Their names sort in another order than their times.
        for (session, time) in [("ses_b", 10), ("ses_a", 20), ("ses_c", 30)] {
            let id = format!("msg_{session}");
            let row = (&id, session, time, r#"{"role":"user"}"#);
            file.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4)", row).unwrap();
            let part = format!(r#"{{"type":"text","text":"I am {session}."}}"#);
            file.execute("INSERT INTO part VALUES (?1, ?1, ?2)", [&id, &part]).unwrap();
        }
        file.execute("INSERT INTO message VALUES ('msg_z', 'ses_b', 11, 'no JSON')", []).unwrap();
        // Rows that are no text cost no others.
        file.execute("INSERT INTO message VALUES (NULL, 'ses_b', 12, x'ff00')", []).unwrap();
        // A text that was cut inside a character, and a part that is no JSON.
        let half = r#"{"type":"text","text":"I am half \ud83d"}"#;
        file.execute("INSERT INTO part VALUES ('prt_y', 'msg_ses_c', ?1)", [half]).unwrap();
        file.execute("INSERT INTO part VALUES ('prt_z', 'msg_ses_a', 'no JSON')", []).unwrap();
        drop(file);
        let read = |session: Option<&str>| -> Vec<String> {
            let reader = open_any(&path, session).unwrap();
            assert_eq!(reader.format(), agents::OPENCODE);
            let shown = |item: Result<Numbered, ReadError>| match item {
                Ok((number, message)) => {
                    format!("{number} {}", message.texts().collect::<Vec<_>>().join(" "))
                }
                Err(error) => error.to_string(),
            };
            reader.map(shown).collect()
        };
        let all = read(None);
        assert_eq!(
            (all[0].as_str(), all[3].as_str(), all[4].as_str()),
            ("0 I am ses_b.", "1 I am ses_a.", "2 I am ses_c. I am half \u{fffd}")
        );
        assert!(all[1].starts_with("line 2: ") && all[2].starts_with("line 3: "), "{all:?}");
        assert_eq!(read(Some("ses_a"))[1], "0 I am ses_a.");
        // A message that is deleted while others are read costs only itself.
        let store = Store::open(&path).unwrap().unwrap();
        assert!(
            store.message("msg_ses_a").unwrap().is_some() && store.message("msg_gone").unwrap().is_none()
        );
        // The newest that a person began.
        assert_eq!(newest(&path), Some(1));
    }

    #[test]
    fn another_database_is_no_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        drop(database(&path, "CREATE TABLE session (id TEXT);"));
        let problem = open_any(&path, None).unwrap_err();
        assert_eq!(problem.to_string(), "is a database, but not opencode's: it holds no session");
        assert_eq!(newest(&path), None);
        std::fs::write(&path, b"SQLite format 3\0 and then nothing").unwrap();
        assert!(open_any(&path, None).is_err());
    }
}
