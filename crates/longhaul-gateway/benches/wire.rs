//! What the gateway adds to a request: a client asks a provider that answers at once, directly, through a gateway
//! that passes everything on, and through one whose desk keeps conversations that grow by a step with each request,
//! without a fold and with some. Run it on an idle machine: `cargo bench -p longhaul-gateway --bench wire`.
//! `-- --provider 127.0.0.1:9001 --ask 127.0.0.1:8484` has 200 conversations of 800 KB with a gateway that runs elsewhere
//! and whose provider is at that address; `-- --soak 200 100` has 200 conversations of 100 calls each at once instead, and says what memory they take.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::session::Overflow;
use longhaul::{Profile, Tokens, Usage};
use longhaul_gateway::{
    Call, Decide, Decision, DeskSettings, Incoming, Limits, Open, Reason, Settings, start, start_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct PassesOn;

impl Decide for PassesOn {
    fn decide(&self, _: &Incoming) -> Decision {
        Decision::PassOn(Reason::Side)
    }

    fn answered(&self, _: Call, _: Option<&Usage>) {}

    fn overflowed(&self, _: Call, _: Overflow) -> Option<Call> {
        None
    }

    fn count(&self, _: &Incoming) -> Option<Tokens> {
        None
    }
}

const ANSWER: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Where models are asked.
const MODEL: &str = "/v1/chat/completions";

/// Reads one request or one response: a head with a length, and its body.
async fn message(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    buffer.clear();
    let mut needed = None;
    loop {
        if needed.is_none()
            && let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n")
        {
            let head = std::str::from_utf8(&buffer[..end]).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            needed = Some(end + 4 + length.parse::<usize>().unwrap());
        }
        if needed.is_some_and(|needed| buffer.len() >= needed) {
            return Some(());
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

async fn provider(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ";
            let answer = format!("{head}{}\r\n\r\n{ANSWER}", ANSWER.len());
            while message(&mut stream, &mut buffer).await.is_some() {
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
    }
}

/// How long requests take, one after the other.
async fn times(address: std::net::SocketAddr, path: &str, bytes: usize, rounds: usize) -> Vec<Duration> {
    let body = format!("{{\"messages\":[{{\"content\":\"{}\"}}]}}", "x".repeat(bytes));
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}", body.len());
    let request = format!("{head}\r\n\r\n{body}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        message(&mut stream, &mut buffer).await.unwrap();
        times.push(began.elapsed());
    }
    times.sort();
    times
}

/// A conversation of an agent, of so many bytes, that grows by a step with each request. What it is called tells it from
/// others.
struct Growing {
    body: String,
    steps: usize,
}

impl Growing {
    fn new(name: &str, bytes: usize) -> Self {
        let tool = r#"{"type":"function","function":{"name":"Read","parameters":{"type":"object"}}}"#;
        let body = format!(
            r#"{{"model":"gpt-4o","stream":true,"stream_options":{{"include_usage":true}},"tools":[{tool}],"messages":[{{"role":"user","content":"Read all, {name}."}}"#
        );
        let mut growing = Self { body, steps: 0 };
        while growing.body.len() < bytes {
            growing.grow();
        }
        growing
    }

    fn grow(&mut self) {
        let n = self.steps;
        self.steps += 1;
        let call = format!(
            r#"{{"id":"call_{n}","type":"function","function":{{"name":"Read","arguments":"{{\"path\":\"src/{n}.rs\"}}"}}}}"#
        );
        self.body +=
            &format!(r#",{{"role":"assistant","content":"I read file {n}.","tool_calls":[{call}]}}"#);
        let line =
            |l: usize| format!("let value_{n}_{l} = parse(input_{l}, {n}) + offset_{};\\n", l * n % 97);
        let text: String = (0..40).map(line).collect();
        self.body += &format!(r#",{{"role":"tool","tool_call_id":"call_{n}","content":"{text}"}}"#);
    }

    fn request(&self) -> String {
        let head =
            format!("POST {MODEL} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}", self.body.len() + 2);
        format!("{head}\r\n\r\n{}]}}", self.body)
    }
}

/// An agent does something between two calls: the gateway stores the answer meanwhile.
const TOOL: Duration = Duration::from_millis(10);

/// How long requests of one conversation take that grows.
async fn growing(
    address: std::net::SocketAddr,
    mut conversation: Growing,
    rounds: usize,
    pause: Duration,
) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut times) = (Vec::new(), Vec::new());
    for round in 0..rounds + 3 {
        let request = conversation.request();
        let began = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        message(&mut stream, &mut buffer).await.unwrap();
        // The first ones make the conversation known.
        if round >= 3 {
            times.push(began.elapsed());
        }
        conversation.grow();
        tokio::time::sleep(pause).await;
    }
    times.sort();
    times
}

/// A gateway with a desk, side by side with the provider itself: without a fold in a window that never fills, or with
/// the folds of the default profile in a small one.
async fn with_desk(direct: std::net::SocketAddr, folds: bool) {
    let window = if folds { 100_000 } else { 2_000_000 };
    let profile = Profile::longhaul();
    let profile = if folds { profile } else { Profile { dial: None, ..profile } };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("sessions.db").display().to_string();
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: format!("http://{direct}"),
        openai: format!("http://{direct}/v1"),
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk: DeskSettings { window: Some(Tokens(window)), profile, ..DeskSettings::new(place) },
        limits: Limits::default(),
    };
    let began = Instant::now();
    let gateway = start(settings).await.unwrap();
    let with = if folds { "with folds" } else { "without a fold" };
    println!("a window of {window} tokens, {with}; start {:?}", began.elapsed());
    println!("{:>9} {:>24} {:>24} {:>9}", "bytes", "direct p50, p99", "gateway p50, p99", "longest");
    // A conversation grows by no more than a tenth while it is measured.
    for (bytes, conversations, rounds) in [(20_000, 100, 1), (800_000, 5, 40), (2_000_000, 2, 40)] {
        let mut line = format!("{bytes:>9}");
        for address in [direct, gateway.address()] {
            let mut times = Vec::new();
            for number in 0..conversations {
                let conversation = Growing::new(&format!("{bytes} {number}"), bytes);
                times.extend(growing(address, conversation, rounds, TOOL).await);
            }
            times.sort();
            let at = |part: usize| format!("{:.1?}", times[times.len() * part / 100]);
            line += &format!(" {:>24}", format!("{}, {}", at(50), at(99)));
            if address != direct {
                line += &format!(" {:>9}", format!("{:.0?}", times[times.len() - 1]));
            }
        }
        println!("{line}");
    }
    let figures = gateway.figures();
    println!("calls {}, passed on {:?}; own time {:?}", figures.calls, figures.passed_on, figures.own_time);
    gateway.stop().await;
}

/// Many conversations at once, of so many calls each, in small windows: how much memory all of it takes.
async fn soak(direct: std::net::SocketAddr, conversations: usize, calls: usize, bytes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("sessions.db").display().to_string();
    let desk = DeskSettings { window: Some(Tokens(20_000)), ..DeskSettings::new(place) };
    let (anthropic, openai) = (format!("http://{direct}"), format!("http://{direct}/v1"));
    let listen = "127.0.0.1:0".parse().unwrap();
    let settings = Settings {
        listen,
        anthropic,
        openai,
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk,
        limits: Limits::default(),
    };
    let gateway = start(settings).await.unwrap();
    let (address, began) = (gateway.address(), Instant::now());
    let mut all = tokio::task::JoinSet::new();
    for number in 0..conversations {
        all.spawn(growing(address, Growing::new(&format!("number {number}"), bytes), calls, Duration::ZERO));
    }
    let mut done = 0;
    while all.join_next().await.is_some() {
        done += 1;
        if done % (conversations / 10).max(1) == 0 {
            let figures = gateway.figures();
            println!("{done} conversations are done, {} calls, {} MB", figures.calls, resident() >> 20);
        }
    }
    let figures = gateway.figures();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} calls in {seconds:.0} s; passed on {:?}; {:?}",
        figures.calls, figures.passed_on, figures.requests
    );
    println!("own time {:?}", figures.own_time);
    gateway.stop().await;
}

/// Bytes of this process in memory: client, gateway and provider.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<usize>().ok()).unwrap_or_default() << 10
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let listen = value("--provider").map_or("127.0.0.1:0", String::as_str);
    let listener = TcpListener::bind(listen).await.unwrap();
    let direct = listener.local_addr().unwrap();
    tokio::spawn(provider(listener));
    if let Some(gateway) = value("--ask") {
        // One conversation after the other is made known to a gateway that runs elsewhere.
        for number in 0..200 {
            growing(
                gateway.parse().unwrap(),
                Growing::new(&format!("number {number}"), 800_000),
                1,
                Duration::ZERO,
            )
            .await;
        }
        return;
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--soak") {
        let number = |at: usize, usual| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(usual);
        return soak(direct, number(at + 1, 200), number(at + 2, 100), number(at + 3, 2_000)).await;
    }
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: format!("http://{direct}"),
        openai: format!("http://{direct}/v1"),
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk: DeskSettings::new(String::new()),
        limits: Limits::default(),
    };
    let began = Instant::now();
    let gateway = start_with(settings, Arc::new(PassesOn)).await.unwrap();
    println!("start {:?}", began.elapsed());
    println!("{:>9} {:>24} {:>24} {:>24}", "bytes", "direct p50, p99", "plain proxy", "gateway");
    for (bytes, rounds) in [(2_000, 2_000), (20_000, 2_000), (800_000, 500), (2_000_000, 200)] {
        let mut line = format!("{bytes:>9}");
        // What is no request to a model is passed on while it comes.
        for (address, path) in [(direct, MODEL), (gateway.address(), "/v1/files"), (gateway.address(), MODEL)]
        {
            let times = times(address, path, bytes, rounds).await;
            let at = |part: usize| format!("{:.0?}", times[times.len() * part / 100]);
            line += &format!(" {:>24}", format!("{}, {}", at(50), at(99)));
        }
        println!("{line}");
    }
    let (clients, rounds, began) = (32, 200, Instant::now());
    let mut all = tokio::task::JoinSet::new();
    (0..clients).for_each(|_| _ = all.spawn(times(gateway.address(), MODEL, 20_000, rounds)));
    all.join_all().await;
    let requests = clients * rounds;
    println!("{clients} clients, 20 KB: {:.0} requests/s", requests as f64 / began.elapsed().as_secs_f64());
    gateway.stop().await;
    with_desk(direct, false).await;
    with_desk(direct, true).await;
}
