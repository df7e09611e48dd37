//! A store with a session that was compacted, an inspector before it, and a client that sees every byte.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use longhaul::conversation::Thinking;
use longhaul::{
    Block, Extra, Frame, Json, Message, Models, Prepared, Profile, Role, Seal, Session, Time, Tokens, Tool,
    Usage,
};
use longhaul_inspector::access::Access;
use longhaul_inspector::{Inspector, Server, Settings};
use longhaul_store::{About, Form, Keeper, SessionId, SqliteStore, Store};
use longhaul_wire::api::{Api, Request};
use serde_json::Value;
use tempfile::TempDir;

pub const WINDOW: Tokens = Tokens(12_000);
pub const TURNS: usize = 24;

/// A request as the engine sent it.
pub struct SentThen {
    pub texts: Vec<String>,
    pub prompt: u64,
    pub anthropic: Value,
}

/// What one call is billed.
pub fn usage(session: &Session) -> Usage {
    let prompt = session.size().tokens.0;
    let cache_read = prompt / 2;
    let cache_write = prompt / 4;
    Usage {
        input: prompt - cache_read - cache_write,
        output: 77,
        cache_read,
        cache_write,
        ..Usage::default()
    }
}

pub fn lines(turn: usize) -> String {
    (0..60).map(|line| format!("fn helper_{turn}_{line}(value: u32) -> u32 {{ value + {line} }}\n")).collect()
}

/// A session that read a file in each turn, in a window that all of them do not fit into.
pub fn worked(turns: usize, sent: impl FnMut(&Session)) -> Session {
    worked_by("claude-sonnet-4-5", turns, |_| Block::text("I look."), sent)
}

/// The same by a model that binds its thinking, and thinks in each turn.
pub fn thought(turns: usize) -> Session {
    let thinks = |turn: usize| {
        let text = format!("File {turn} comes next. {}", "I look closer. ".repeat(20));
        let seal = Seal::Signed(format!("seal {turn}").into());
        Block::Thinking(Thinking { text: text.into(), seal, extra: Extra::default() })
    };
    worked_by("claude-opus-5-5", turns, thinks, |_| {})
}

fn worked_by(
    model: &str,
    turns: usize,
    first: impl Fn(usize) -> Block,
    mut sent: impl FnMut(&Session),
) -> Session {
    let name = model;
    let model = Models::builtin().find(name).clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(WINDOW);
    let tool = Json::new(r#"{"name":"Read","description":"Reads a file.","input_schema":{"type":"object"}}"#);
    session.set_frame(Frame {
        model: Some(name.into()),
        system: vec![Block::text("You read files.")],
        tools: vec![Tool::from_definition(tool.unwrap())],
        ..Frame::default()
    });
    let mut now = 1_700_000_000_000_000;
    let mut call = |session: &mut Session| {
        now += 20_000_000;
        let Prepared::Send(ticket) = session.prepare(Some(Time(now))).unwrap() else {
            panic!("no model is asked")
        };
        sent(session);
        let usage = usage(session);
        session.observe(ticket, &usage);
    };
    for turn in 0..turns {
        session.push(Message::user(format!("What is in src/file_{turn}.rs?")));
        call(&mut session);
        let path = Json::new(format!(r#"{{"path":"src/file_{turn}.rs"}}"#)).unwrap();
        let id = format!("call_{turn}");
        session
            .push(Message::new(Role::Assistant, vec![first(turn), Block::call(id.as_str(), "Read", path)]));
        session.push(Message::result(id.as_str(), lines(turn)));
        call(&mut session);
        session.push(Message::assistant(format!("It has sixty helpers of file {turn}.")));
    }
    session
}

/// What is sent, as it is sent.
pub fn then(session: &Session) -> SentThen {
    let text = |message: &Arc<Message>| {
        let said = message.blocks().iter().map(|block| match block {
            Block::Text(text) => text.text.to_string(),
            Block::ToolCall(call) => format!("{} {}", call.name, call.arguments.as_str()),
            Block::ToolResult(result) => result.text.to_string(),
            other => panic!("{other:?}"),
        });
        said.collect::<Vec<_>>().join("\n")
    };
    let body: String = Request::of(&session.outgoing()).encode(Api::Anthropic).body.into();
    SentThen {
        texts: session.outgoing().messages().map(text).collect(),
        prompt: usage(session).prompt().0,
        anthropic: serde_json::from_str(&body).unwrap(),
    }
}

/// A store of its own.
pub struct Ground {
    pub folder: TempDir,
    pub store: Arc<dyn Store>,
}

impl Ground {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db")).unwrap());
        Self { folder, store }
    }

    pub fn keep(&self, session: &Session, about: &About) -> SessionId {
        let mut keeper = Keeper::create(self.store.clone(), about, session).unwrap();
        keeper.finish(session).unwrap();
        keeper.id()
    }

    pub fn journal(&self, id: SessionId) -> Vec<u8> {
        let mut journal = Vec::new();
        self.store.export(id, Form::Journal, &mut journal).unwrap();
        journal
    }

    pub fn inspector(&self, access: Access) -> Inspector {
        let (profile, profiles) = (Profile::longhaul(), Profile::all());
        Inspector::new(
            self.store.clone(),
            Settings { profile, profiles, access, read_only: None, temporary: false },
        )
    }

    pub fn serve(&self) -> Served {
        Served::of(self.inspector(Access::open().unwrap()))
    }
}

/// An inspector that serves.
pub struct Served {
    pub address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

/// What a client sees of an answer.
#[derive(Debug)]
pub struct Seen {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }

    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

impl Served {
    pub fn of(inspector: Inspector) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = runtime.block_on(Server::bind("127.0.0.1:0".parse().unwrap(), inspector)).unwrap();
        let address = server.address();
        runtime.spawn(server.run());
        Self { address, _runtime: runtime }
    }

    /// Sends a head and a body, with `host` and `connection` unless the headers have them.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Seen {
        let mut stream = self.connect(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        parsed(&bytes)
    }

    fn connect(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // Who refuses a long body may have gone before all of it was sent.
        _ = stream.write_all(body);
        stream
    }

    pub fn get(&self, path: &str) -> Seen {
        self.send("GET", &format!("/inspect/{path}"), &[], b"")
    }

    /// JSON of an address that answers.
    pub fn json(&self, path: &str) -> Value {
        let seen = self.get(path);
        assert_eq!(seen.status, 200, "{path}: {}", String::from_utf8_lossy(&seen.body));
        seen.json()
    }

    pub fn csrf(&self) -> String {
        self.json("api/me")["csrf"].as_str().unwrap().to_owned()
    }

    pub fn post(&self, path: &str, body: &Value) -> Seen {
        let csrf = self.csrf();
        self.send(
            "POST",
            &format!("/inspect/{path}"),
            &[("x-longhaul-inspect", &csrf)],
            body.to_string().as_bytes(),
        )
    }

    /// The lines of an answer that goes on.
    pub fn listen(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let stream = self.connect("GET", &format!("/inspect/{path}"), &[], b"");
        BufReader::new(stream).lines().map_while(Result::ok)
    }
}

/// An answer, whole.
fn parsed(bytes: &[u8]) -> Seen {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    Seen { status, headers, body: bytes[end + 4..].to_vec() }
}
