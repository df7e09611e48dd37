//! What the gateway adds to a request, without an engine: a client asks a provider that answers at once,
//! directly and through a gateway that passes everything on. Run it on an idle machine:
//! `cargo bench -p longhaul-gateway --bench wire`.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::session::Overflow;
use longhaul::{Profile, Tokens, Usage};
use longhaul_gateway::{
    Call, Decide, Decision, DeskSettings, Incoming, Limits, Reason, Settings, start_with,
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

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let direct = listener.local_addr().unwrap();
    tokio::spawn(provider(listener));
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: format!("http://{direct}"),
        openai: format!("http://{direct}/v1"),
        token: None,
        desk: DeskSettings { store: String::new(), profile: Profile::longhaul(), window: None },
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
    let figures = gateway.figures();
    println!("own time: {:?}", figures.own_time);
}
