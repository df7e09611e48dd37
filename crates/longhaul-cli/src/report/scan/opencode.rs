//! opencode: one SQLite file with all sessions. Messages and their parts are JSON in a column; what a step was
//! billed is in its `step-finish` part, in older versions in the message. A fork copies messages with their
//! times and tokens under new ids.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::super::conversation::{Call, Part};
use super::super::node::Node;
use super::super::recorder::{Recorder, key_of, size};
use super::{Scanned, seconds};

pub fn scan(path: &Path) -> io::Result<Scanned> {
    read(path).map_err(io::Error::other)
}

/// Opens a file for reading, and reads a little.
fn open(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let name: String = (path.to_string_lossy().bytes())
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let file = Connection::open_with_flags(format!("file:{name}?{how}"), flags)?;
    file.busy_timeout(std::time::Duration::from_secs(2))?;
    file.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
    Ok(file)
}

fn read(path: &Path) -> rusqlite::Result<Scanned> {
    // A folder that nobody may write to has no room for SQLite's own files: then the file is taken as it is.
    let file = open(path, "mode=ro").or_else(|_| open(path, "immutable=1"))?;
    let tables: i64 = file.query_row(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('session', 'message', 'part')",
        [],
        |row| row.get(0),
    )?;
    if tables < 3 {
        return Ok(Scanned::default());
    }
    let mut sessions: BTreeMap<String, Recorder> = BTreeMap::new();
    let mut about = file.prepare("SELECT id, directory, parent_id FROM session")?;
    let mut rows = about.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let mut recorder = Recorder::new(&id);
        recorder.about().project = row.get::<_, Option<String>>(1)?.unwrap_or_default();
        recorder.about().side = row.get::<_, Option<String>>(2)?.is_some();
        sessions.insert(id, recorder);
    }
    let mut unread = 0;
    let mut messages =
        file.prepare("SELECT id, session_id, data FROM message ORDER BY session_id, time_created, id")?;
    let mut parts = file.prepare("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let mut rows = messages.query([])?;
    while let Some(row) = rows.next()? {
        let (id, session): (String, String) = (row.get(0)?, row.get(1)?);
        let data: String = row.get(2)?;
        let Some(message) = Node::read(data.as_bytes()) else {
            unread += 1;
            continue;
        };
        let recorder = sessions.entry(session.clone()).or_insert_with(|| Recorder::new(&session));
        let texts: Vec<String> = parts.query_map([&id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let nodes: Vec<Node<'_>> = texts.iter().filter_map(|text| Node::read(text.as_bytes())).collect();
        unread += (texts.len() - nodes.len()) as u64;
        take(recorder, &message, &nodes);
    }
    let conversations =
        sessions.into_values().filter(|recorder| !recorder.is_empty()).map(Recorder::finish).collect();
    Ok(Scanned { agent: "opencode".to_owned(), conversations, unread })
}

fn take(recorder: &mut Recorder, message: &Node<'_>, parts: &[Node<'_>]) {
    let at = seconds(message.at(&["time", "created"]));
    if message.get("role").text() != "assistant" {
        for part in parts {
            let kind = if part.get("synthetic").is_true() { Part::Host } else { Part::Person };
            match part.get("type").text() {
                "compaction" => recorder.compact(at, part_flag(part, "auto"), 0),
                "text" => recorder.add(kind, size(part.get("text"))),
                "file" => recorder.add(Part::Host, size(part.at(&["source", "text", "value"]))),
                _ => {}
            }
        }
        return;
    }
    let model = message.get("modelID").text();
    let when = message.at(&["time", "created"]).number().to_string();
    let steps: Vec<&Node<'_>> =
        parts.iter().filter(|part| part.get("type").text() == "step-finish").collect();
    let is_summary = message.get("summary").is_true();
    if steps.is_empty() {
        bill(recorder, message, model, at, &when);
    }
    let mut number = 0;
    for part in parts {
        match part.get("type").text() {
            "step-start" => recorder.ask(),
            "step-finish" => {
                number += 1;
                bill(recorder, part, model, at, &format!("{when} {number}"));
            }
            "text" if is_summary => recorder.summary(size(part.get("text"))),
            "text" => recorder.add(Part::Words, size(part.get("text"))),
            "reasoning" => recorder.add(Part::Thinking, size(part.get("text"))),
            "tool" => {
                let (id, tool, state) =
                    (part.get("callID").text(), part.get("tool").text(), part.get("state"));
                recorder.call_tool(id, tool, state.get("input"));
                let output = [state.get("output"), state.get("error")];
                let output = output.into_iter().find(|output| !output.is_nothing());
                recorder.result(id, Some(tool), output.unwrap_or(&Node::Nothing), at);
            }
            _ => {}
        }
    }
}

fn part_flag(part: &Node<'_>, name: &str) -> Option<bool> {
    if let Node::Flag(flag) = part.get(name) { Some(*flag) } else { None }
}

/// What a step or a message was billed. Reasoning is counted beside the output, and billed like it.
fn bill(recorder: &mut Recorder, of: &Node<'_>, model: &str, at: i64, when: &str) {
    let tokens = of.get("tokens");
    let mut call = Call {
        at,
        input: tokens.get("input").number(),
        read: tokens.at(&["cache", "read"]).number(),
        write: tokens.at(&["cache", "write"]).number(),
        output: tokens.get("output").number() + tokens.get("reasoning").number(),
        said_micros: (of.get("cost").fraction() * 1e6).round() as u64,
        ..Call::default()
    };
    call.key = key_of(when, model, &call);
    if !call.is_empty() {
        recorder.bill(call, model);
    }
}
