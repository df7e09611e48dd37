//! Who may use `serve`: whoever has the user's own token, which is made once and is in no log, no request and no other
//! file.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use common::{Home, KEY, has, refused};
use longhaul_fake::{Fake, Settings};
use serde_json::{Value, json};

/// Where the token is.
const TOKEN_FILE: &str = "home/.local/share/longhaul/token";

fn token(home: &Home) -> String {
    fs::read_to_string(home.at(TOKEN_FILE)).unwrap().trim().to_owned()
}

/// A gateway that serves.
struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Serving {
    fn start(home: &Home, fake: &Fake, more: &[&str]) -> Self {
        Self::of(serve(home, fake, more))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on http://").and_then(|rest| rest.trim_end().parse().ok());
        Self { child, stdout, address: address.unwrap_or_else(|| panic!("{line:?}")) }
    }

    /// Status and whole answer.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer[9..12].parse().unwrap(), answer)
    }

    fn post(&self, path: &str, body: &Value) -> u16 {
        self.ask("POST", path, &[], &body.to_string()).0
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, &[], "")
    }

    /// What it has printed after its first line, when it has ended in good order.
    fn end(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{err}");
        out + &err
    }
}

fn serve(home: &Home, fake: &Fake, more: &[&str]) -> Command {
    let mut command = home.longhaul(&["serve", "--listen", "127.0.0.1:0", "--anthropic", &fake.base_url()]);
    command.args(["--openai", &format!("{}/v1", fake.base_url())]).args(more);
    command
}

/// A conversation of an agent after so many questions.
fn messages(questions: usize) -> Value {
    let mut messages = Vec::new();
    for n in 0..questions {
        messages.push(json!({"role": "user", "content": format!("What is in part {n}?")}));
        messages.push(json!({"role": "assistant", "content": format!("Part {n} has a door.")}));
    }
    messages.push(json!({"role": "user", "content": "And what is behind the last door?"}));
    let tool = json!({"name": "bash", "input_schema": {"type": "object"}});
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1_000, "system": "You are an agent.",
        "messages": messages, "tools": [tool]})
}

fn chat(path: &str) -> Value {
    let list = if path.ends_with("responses") { "input" } else { "messages" };
    json!({"model": "gpt-5", list: [{"role": "user", "content": format!("Hello by {path}.")}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_is_a_base_url_for_all_apis_and_is_written_and_sent_nowhere() {
    let (home, fake) = (Home::new(), Settings::new().key(KEY).start().await);
    let log = home.text_at("gateway.log");
    let serving = Serving::start(&home, &fake, &["--log", &log]);
    let token = token(&home);
    assert_eq!(home.at(TOKEN_FILE).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let bearer = format!("Bearer {KEY}");
    let mut seen = String::new();
    let apis = [
        ("/v1/messages", ("x-api-key", KEY), messages(0)),
        ("/v1/chat/completions", ("authorization", bearer.as_str()), chat("/v1/chat/completions")),
        ("/v1/responses", ("authorization", bearer.as_str()), chat("/v1/responses")),
        ("/v1/messages/count_tokens", ("x-api-key", KEY), messages(0)),
    ];
    for (path, key, body) in &apis {
        let body = body.to_string();
        let ask =
            |path: &str, more: &[(&str, &str)]| serving.ask("POST", path, &[&[*key], more].concat(), &body);
        let (status, says) = ask(path, &[]);
        assert!(
            status == 401 && says.contains("`longhaul env AGENT` prints addresses that have it"),
            "{says}"
        );
        assert_eq!(ask(&format!("/t/{}/{path}", "0".repeat(48)), &[]).0, 401);
        for (status, says) in
            [ask(&format!("/t/{token}{path}"), &[]), ask(path, &[("x-longhaul-token", &token)])]
        {
            assert_eq!(status, 200, "{says}");
            seen += &says;
        }
    }
    // What fails, what is refused, what is counted.
    for path in ["/to/7/v1/messages", "/v1/nothing", "/mcp", "/metrics", "/healthz", "/inspect/api/sessions"]
    {
        seen += &serving.get(&format!("/t/{token}{path}")).1;
        seen += &serving.get(&format!("/t/{token}x{path}")).1;
    }
    assert!(seen.contains("longhaul_requests_total") && seen.contains("there is no provider of this number"));
    let printed = serving.end();
    let says = format!(
        "the token is in {}; `longhaul env AGENT` prints addresses that have it\n",
        home.text_at(TOKEN_FILE)
    );
    assert!(printed.starts_with(&says), "{printed}");
    assert!(!printed.contains(&token) && !seen.contains(&token), "{printed} {seen}");
    assert!(fake.log().len() >= 6 && !format!("{:?}", fake.log()).contains(&token));
    for (path, bytes) in home.files().into_iter().filter(|(path, _)| *path != home.at(TOKEN_FILE)) {
        assert!(!has(&bytes, &token), "the token is in {}", path.display());
    }
    assert!(fs::read_to_string(log).unwrap().lines().count() >= 6);
}

/// A shell that was told of one gateway may start another one, whose provider is then the first with its token. Stores and
/// logs name providers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_behind_a_gateway_writes_no_token_of_the_other() {
    let refuses = |body: &Value| {
        body["tools"].to_string().contains("longhaul_recall").then_some("tools.1: this tool is not allowed")
    };
    let (home, fake) = (Home::new(), Settings::new().refuses(refuses).start().await);
    let first = Serving::start(&home, &fake, &["--observe"]);
    let (token, log) = (token(&home), home.text_at("gateway.log"));
    let base = format!("http://{}/t/{token}", first.address);
    let mut command = home.longhaul(&["serve", "--listen", "127.0.0.1:0", "--recall", "fill", "--log", &log]);
    command.args(["--anthropic", &base, "--openai", &format!("{base}/v1")]);
    let second = Serving::of(command);
    assert_eq!(second.post(&format!("/t/{token}/v1/messages"), &messages(0)), 200);
    let paths: Vec<String> = fake.log().iter().map(|call| call.path.clone()).collect();
    assert_eq!(paths, ["/v1/messages", "/v1/messages"]);
    // What a provider refuses is stored with its address.
    let shown = format!("http://{}/t/[token]", first.address);
    assert!(home.files().iter().any(|(_, bytes)| has(bytes, &shown)));
    let mut printed = first.end();
    // The provider is gone.
    let (status, says) =
        second.ask("POST", &format!("/t/{token}/v1/messages"), &[], &messages(1).to_string());
    assert_eq!(status, 502, "{says}");
    printed += &(says + &second.end());
    assert!(!printed.contains(&token), "{printed}");
    for (path, bytes) in home.files().into_iter().filter(|(path, _)| *path != home.at(TOKEN_FILE)) {
        assert!(!has(&bytes, &token), "the token is in {}", path.display());
    }
}

/// A restart breaks no client that was told the token, and it is the token of one user: conversations are the same with
/// it, without it, and with it in the environment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_token_and_the_conversations() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let serving = Serving::start(&home, &fake, &["--no-token"]);
    assert_eq!(serving.post("/v1/messages", &messages(0)), 200);
    serving.end();
    let base = format!("/t/{}", token(&home));
    let extends = |serving: Serving, questions: usize| {
        let body = messages(questions).to_string();
        let (status, says) = serving.ask("POST", &format!("{base}/v1/messages"), &[], &body);
        assert_eq!(status, 200, "{says}");
        let sessions = serving.get(&format!("{base}/inspect/api/sessions")).1;
        assert!(sessions.contains("\"total\":1"), "{says} {sessions}");
        serving.end();
    };
    // The same request again, by the token in the path.
    extends(Serving::start(&home, &fake, &[]), 0);
    // What `longhaul env` prints is in the environment of the shell that starts the gateway.
    let mut command = serve(&home, &fake, &[]);
    command.env("LONGHAUL_TOKEN", token(&home));
    extends(Serving::of(command), 0);
    assert_eq!(format!("/t/{}", token(&home)), base);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_the_environment_is_asked_for() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let mut command = serve(&home, &fake, &[]);
    command.env("LONGHAUL_TOKEN", KEY);
    let serving = Serving::of(command);
    let ask = |path: &str| serving.post(path, &messages(1));
    assert_eq!((ask("/v1/messages"), ask(&format!("/t/{KEY}/v1/messages"))), (401, 200));
    // No other is made, and it is not printed.
    assert!(!home.at(TOKEN_FILE).exists());
    assert!(!serving.end().contains(KEY));
}

/// The APIs are open then, as the line says, and nothing that shows or changes what was said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_token_the_apis_are_open_and_nothing_else_is() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let serving = Serving::start(&home, &fake, &["--no-token"]);
    assert_eq!(serving.post("/v1/messages", &messages(1)), 200);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let token = token(&home);
    assert_eq!((serving.post("/mcp", &list), serving.post(&format!("/t/{token}/mcp"), &list)), (401, 200));
    let sessions = "/inspect/api/sessions";
    assert_eq!((serving.get(sessions).0, serving.get(&format!("/t/{token}{sessions}")).0), (401, 200));
    let printed = serving.end();
    assert!(
        printed.contains("\nwithout the token, every user and program of this machine can use"),
        "{printed}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_listed_origins_use_the_apis() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let mut command = serve(&home, &fake, &["--no-token", "--origin", "http://localhost:3000"]);
    command.env("LONGHAUL_GATEWAY_ORIGINS", "https://chat.example.com");
    let serving = Serving::of(command);
    for (origin, status) in
        [("http://localhost:3000", 200), ("https://chat.example.com", 200), ("https://evil.example", 403)]
    {
        let (seen, says) =
            serving.ask("POST", "/v1/messages", &[("origin", origin)], &messages(1).to_string());
        assert_eq!(seen, status, "{origin} {says}");
    }
    serving.end();
    let mut wrong = serve(&home, &fake, &[]);
    let said = refused(&wrong.env("LONGHAUL_GATEWAY_ORIGINS", "chat.example.com").output().unwrap(), 2);
    assert!(said.contains("gateway.origins: \"chat.example.com\" is not an origin"), "{said}");
}

/// Who reads it may be anybody: it is one error, and says what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_others_may_know_stops_the_gateway() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    Serving::start(&home, &fake, &[]).end();
    fs::set_permissions(home.at(TOKEN_FILE), fs::Permissions::from_mode(0o640)).unwrap();
    for mut command in [serve(&home, &fake, &[]), home.longhaul(&["env", "claude"])] {
        let said = refused(&command.output().unwrap(), 2);
        assert!(said.contains("longhaul/token: other users may read the token: delete the file"), "{said}");
        assert!(!said.contains(&token(&home)));
    }
    // A client with the old one is not let in by the new one.
    let old = token(&home);
    fs::remove_file(home.at(TOKEN_FILE)).unwrap();
    let serving = Serving::start(&home, &fake, &[]);
    assert_ne!(token(&home), old);
    assert_eq!(serving.post(&format!("/t/{old}/v1/messages"), &messages(1)), 401);
    serving.end();
}

/// A person at a terminal sees the two addresses. The page's is used once: a cookie holds the token from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_shows_the_addresses_with_the_token() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let (pty, pts) = pty_process::blocking::open().unwrap();
    pty.resize(pty_process::Size::new(24, 300)).unwrap();
    let mut command = pty_process::blocking::Command::new(common::longhaul());
    command = command.args(["serve", "--listen", "127.0.0.1:0", "--anthropic", &fake.base_url()]).env_clear();
    command = command.env("HOME", home.at("home")).env("LONGHAUL_STORE", home.at("sessions.db"));
    let mut child = command.spawn(pts).unwrap();
    let mut lines = BufReader::new(&pty).lines();
    let mut next = || lines.next().unwrap().unwrap().trim_end().to_owned();
    let [listening, base, page] = [next(), next(), next()];
    let token = token(&home);
    let address = listening.strip_prefix("listening on http://").unwrap();
    assert_eq!(
        base,
        format!("base URL for agents: http://{address}/t/{token} (for OpenAI's SDKs with /v1 behind it)")
    );
    assert_eq!(page, format!("inspector at http://{address}/inspect/?token={token}"));
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("GET /inspect/?token={token} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains("location: /inspect/\r\n") && answer.contains("set-cookie: longhaul-inspect-"),
        "{answer}"
    );
    assert!(!answer.contains(&token));
    child.kill().unwrap();
    child.wait().unwrap();
}
