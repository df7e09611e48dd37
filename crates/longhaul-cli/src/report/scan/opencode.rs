//! opencode: one SQLite file with all sessions. Messages and their parts are JSON in a column; what a step was
//! billed is in its `step-finish` part, in older versions in the message. A fork copies messages with their
//! times and tokens under new ids.

use std::io;
use std::path::Path;

use super::super::conversation::{Call, Part};
use super::super::node::Node;
use super::super::recorder::{Recorder, key_of, size};
use super::{Scanned, seconds};
use crate::lab::opencode_store::Store;

pub fn scan(path: &Path) -> io::Result<Scanned> {
    read(path).map_err(io::Error::other)
}

fn read(path: &Path) -> rusqlite::Result<Scanned> {
    let Some(store) = Store::open(path)? else { return Ok(Scanned::default()) };
    let (mut conversations, mut unread) = (Vec::new(), 0);
    for (number, session) in store.sessions()?.into_iter().enumerate() {
        let mut recorder = Recorder::new(&session.id);
        recorder.about().number = number;
        recorder.about().project = session.folder;
        recorder.about().side = session.side;
        for id in store.messages(&session.id)? {
            let Some(stored) = store.message(&id)? else { continue };
            let Some(message) = Node::read(stored.info.as_bytes()) else {
                unread += 1;
                continue;
            };
            let nodes: Vec<Node<'_>> =
                stored.parts.iter().filter_map(|text| Node::read(text.as_bytes())).collect();
            unread += (stored.parts.len() - nodes.len()) as u64;
            take(&mut recorder, &message, &nodes);
        }
        if !recorder.is_empty() {
            conversations.push(recorder.finish());
        }
    }
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
    // Thousandths of seconds are more than any count could be.
    let when = match message.at(&["time", "created"]) {
        Node::Number(millis) => millis.to_string(),
        _ => String::new(),
    };
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
