//! All other formats that the lab reads: ours, OpenHands, mini-swe-agent, SWE-agent, requests and messages of APIs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use longhaul::{Block, Message, Role};
use longhaul_wire::agents;

use super::super::conversation::{Call, Part};
use super::super::node::{MOST, Node};
use super::super::recorder::{PICTURE, Recorder, key, key_of};
use super::Scanned;

/// A file that begins with so many lines of something else is no session.
const STRANGE: u64 = 64;

pub fn scan(path: &Path, name: &str, done: &dyn Fn(u64)) -> io::Result<Scanned> {
    let mut reader = match agents::open(path) {
        Ok(reader) => reader,
        // No request, no gzip: nothing that would be a session.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Scanned::default()),
        Err(error) => return Err(error),
    };
    let format = reader.format();
    let mut conversations: BTreeMap<usize, Recorder> = BTreeMap::new();
    let mut unread = 0;
    for item in reader.by_ref() {
        match item {
            Ok((number, message)) => {
                let recorder = conversations.entry(number).or_insert_with(|| {
                    let mut recorder = Recorder::new(&if number == 0 {
                        name.to_owned()
                    } else {
                        format!("{name}#{number}")
                    });
                    recorder.about().number = number;
                    // A file of these has a conversation a line.
                    recorder.about().side = number > 0 && format != "openhands";
                    recorder
                });
                take(recorder, &message, path);
                done(message.bytes() as u64);
            }
            Err(_) => {
                unread += 1;
                if conversations.is_empty() && unread >= STRANGE {
                    break;
                }
            }
        }
    }
    let conversations: Vec<_> =
        (conversations.into_values()).filter(|recorder| !recorder.is_empty()).map(Recorder::finish).collect();
    if conversations.is_empty() {
        return Ok(Scanned::default());
    }
    Ok(Scanned { agent: reader.format().to_owned(), conversations, unread })
}

fn take(recorder: &mut Recorder, message: &Message, path: &Path) {
    let at = message.time().map_or(0, |time| time.0 / 1_000_000);
    match message.recorded_compaction() {
        Some(longhaul::conversation::RecordedCompaction::Boundary) => return recorder.compact(at, None, 0),
        Some(longhaul::conversation::RecordedCompaction::Summary) => {
            return recorder.summary(message.bytes() as u64);
        }
        None => {}
    }
    if message.role() == Role::Assistant {
        bill(recorder, message, at, path);
    }
    for block in message.blocks() {
        let words = match message.role() {
            Role::Assistant => Part::Words,
            Role::System => Part::System,
            Role::Summary => Part::Summaries,
            _ if message.is_attachment() => Part::Host,
            _ => Part::Person,
        };
        match block {
            Block::Text(text) => recorder.add(words, text.text.len() as u64),
            Block::Thinking(thinking) => recorder.add(Part::Thinking, thinking.text.len() as u64),
            Block::ToolCall(call) => {
                let arguments = Node::read(call.arguments.as_str().as_bytes());
                recorder.call_tool(&call.id, &call.name, &arguments.unwrap_or(Node::Nothing));
            }
            Block::ToolResult(result) => {
                let text = Node::Text((&*result.text).into());
                recorder.result(&result.id, result.name.as_deref(), &text, at);
            }
            Block::Image(_) => recorder.add(words, PICTURE),
            Block::Opaque(opaque) => recorder.add(words, opaque.value.as_str().len() as u64),
        }
    }
}

/// A number of tokens, or 0 for what can be no count.
fn count(tokens: u64) -> u64 {
    if tokens as f64 <= MOST { tokens } else { 0 }
}

fn bill(recorder: &mut Recorder, message: &Message, at: i64, path: &Path) {
    let model = message.model().unwrap_or_default();
    let usage = message.usage();
    let for_an_hour = usage.and_then(|usage| usage.extra.get(agents::WRITTEN_FOR_AN_HOUR));
    let mut call = Call {
        at,
        write_1h: for_an_hour.and_then(|tokens| tokens.as_str().parse().ok()).map_or(0, count),
        input: usage.map_or(0, |usage| count(usage.input)),
        read: usage.map_or(0, |usage| count(usage.cache_read)),
        write: usage.map_or(0, |usage| count(usage.cache_write)),
        output: usage.map_or(0, |usage| count(usage.output)),
        ..Call::default()
    };
    // Without a time nothing tells a copy from a call that happens to be alike: it is counted.
    call.key = match message.time() {
        Some(time) => key_of(&time.0.to_string(), model, &call),
        None => {
            let about = recorder.about();
            key(&["call", &path.to_string_lossy(), &about.session, &about.calls.len().to_string()])
        }
    };
    recorder.bill(call, model);
}
