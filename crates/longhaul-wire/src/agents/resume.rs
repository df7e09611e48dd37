//! Conversations written as the session files of agents, so that the agent goes on from them: Claude Code, Codex, pi.
//! What an agent has of its own (system prompt, tools) is not written; what a request of its API would hold is.
//! Recorded usage is left out: it is that of larger prompts, and the agent would compact at once.

mod claude_code;
mod codex;
mod pi;

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use longhaul::{Frame, Message, Role, Time};
use serde_json::Value;

use crate::api::{Api, Request};
use crate::transcript::{self, time_text};

/// An agent that goes on from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumable {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// pi.
    Pi,
}

impl Resumable {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Pi];

    /// The name of its format, as [`super::FORMATS`] has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
        }
    }

    /// The agent whose format has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// Writes a conversation.
    pub fn write(self, messages: &[Arc<Message>], origin: &Origin) -> Written {
        let session = origin.session.clone().unwrap_or_else(|| {
            uuid(&messages.iter().map(|message| transcript::encode(message)).collect::<String>())
        });
        let mut file = File { session, lines: Vec::new(), left_out: Vec::new() };
        let model = messages.iter().rev().find_map(|message| message.model());
        let about = About { origin, model: model.unwrap_or("unknown") };
        match self {
            Self::ClaudeCode => claude_code::write(messages, about, &mut file),
            Self::Codex => codex::write(messages, about, &mut file),
            Self::Pi => pi::write(messages, about, &mut file),
        }
        file.left_out.sort();
        file.left_out.dedup();
        Written { session: file.session, lines: file.lines, left_out: file.left_out }
    }
}

/// A file that an agent goes on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The session's name, by which the agent finds it.
    pub session: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// What has no place in it, in words.
    pub left_out: Vec<String>,
}

/// Where a conversation comes from: what an agent wants to know of it beside the messages.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The name that the session shall have; without it, one is made from what it says.
    session: Option<String>,
    /// The folder that the agent worked in.
    pub folder: String,
    /// What the file that was read says of its session.
    facts: Vec<(String, Value)>,
}

/// How far a file is looked at for what it says of its session.
const LINES: usize = 500;

impl Origin {
    /// A conversation in a folder.
    pub fn in_folder(folder: &str) -> Self {
        Self { folder: folder.to_owned(), ..Self::default() }
    }

    /// With this name for the session.
    pub fn named(self, session: &str) -> Self {
        Self { session: Some(session.to_owned()), ..self }
    }

    /// Reads what the file of a session says of it. The folder is the one given if the file names none.
    pub fn read(path: &Path, folder: &str) -> io::Result<Self> {
        let stream = transcript::unpack(BufReader::new(std::fs::File::open(path)?))?;
        let mut origin = Self::in_folder(folder);
        let lines = stream.split(b'\n').map_while(Result::ok).take(LINES);
        for line in lines.filter_map(|line| serde_json::from_slice::<Value>(&line).ok()) {
            let meta = line.get("payload").filter(|_| line["type"] == "session_meta");
            for (holder, names) in [
                (Some(&line), &["cwd", "version", "gitBranch", "provider", "modelId"][..]),
                (line.get("message"), &["api", "provider"]),
                (meta, &["cwd", "cli_version", "model_provider", "base_instructions", "git", "originator"]),
            ] {
                for name in names {
                    let known = origin.facts.iter().any(|(fact, _)| fact == name);
                    if let Some(value) = holder.and_then(|holder| holder.get(name)).filter(|_| !known) {
                        origin.facts.push(((*name).to_owned(), value.clone()));
                    }
                }
            }
        }
        if let Some(folder) = origin.fact("cwd").and_then(Value::as_str) {
            origin.folder = folder.to_owned();
        }
        Ok(origin)
    }

    fn fact(&self, name: &str) -> Option<&Value> {
        self.facts.iter().find(|(fact, _)| fact == name).map(|(_, value)| value)
    }

    fn said(&self, name: &str) -> Option<&str> {
        self.fact(name).and_then(Value::as_str)
    }
}

/// What lines say of the session that they belong to.
#[derive(Clone, Copy)]
struct About<'a> {
    origin: &'a Origin,
    /// The model that answered last.
    model: &'a str,
}

/// A file that is being written.
struct File {
    session: String,
    lines: Vec<String>,
    left_out: Vec<String>,
}

impl File {
    fn line(&mut self, line: &Value) {
        self.lines.push(line.to_string());
    }

    /// A name for the next line.
    fn next_id(&self) -> String {
        uuid(&format!("{} {}", self.session, self.lines.len()))
    }

    /// What the API of an agent takes for these messages, which need no others.
    fn encode(&mut self, messages: &[Arc<Message>], api: Api) -> Value {
        let encoded = Request::new(Frame::default(), messages.to_vec()).encode(api);
        self.left_out.extend(encoded.left_out);
        serde_json::from_str(&String::from(encoded.body)).unwrap_or_default()
    }
}

/// A message, or an answer with the results of its calls.
struct Unit<'a> {
    messages: &'a [Arc<Message>],
    time: Time,
}

impl Unit<'_> {
    /// When it was said, as agents write it.
    fn timestamp(&self) -> String {
        time_text(self.time).unwrap_or_default()
    }

    fn role(&self) -> Role {
        self.messages[0].role()
    }

    /// True if it stands in the person's place, and the person did not say it.
    fn is_of_host(&self) -> bool {
        let first = &self.messages[0];
        first.role() == Role::Summary || first.role() == Role::User && first.words().next().is_none()
    }

    /// Messages of Anthropic's, without the one that a conversation has to begin with.
    fn anthropic(&self, file: &mut File) -> Vec<Value> {
        let mut body = file.encode(self.messages, Api::Anthropic);
        let messages = body["messages"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let opening = usize::from(self.role() == Role::Assistant && messages.len() > 1);
        let begins = messages.first().is_some_and(|first| first["role"] == "user");
        messages.into_iter().skip(if begins { opening } else { 0 }).collect()
    }
}

/// The units of a conversation. What has no time has that of what came before it.
fn units(messages: &[Arc<Message>]) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    let mut time = messages.iter().find_map(|message| message.time()).unwrap_or(Time(0));
    let mut at = 0;
    while at < messages.len() {
        let results = messages[at + 1..].iter().take_while(|message| message.role() == Role::Tool).count();
        let count = if messages[at].role() == Role::Assistant { 1 + results } else { 1 };
        time = messages[at].time().unwrap_or(time);
        units.push(Unit { messages: &messages[at..at + count], time });
        at += count;
    }
    units
}

/// The blocks of a message of Anthropic's.
fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

/// A name in the form that agents give to sessions and lines, the same for the same text.
fn uuid(text: &str) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
