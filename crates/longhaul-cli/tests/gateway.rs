//! `serve`, `wrap` and `env`, as programs that others start and stop.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Home, KEY, has, refused, text};
use longhaul_fake::{Fake, Settings};
use serde_json::{Value, json};

/// A gateway that serves, and what it has said.
struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on http://").and_then(|rest| rest.trim_end().parse().ok());
        Self { child, stdout, address: address.unwrap_or_else(|| panic!("{line:?}")) }
    }

    /// Ends it as an operator does. Gives its exit code, the rest of stdout, and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        signal("TERM", self.child.id());
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

fn signal(name: &str, id: u32) {
    assert!(Command::new("kill").args([format!("-{name}"), id.to_string()]).status().unwrap().success());
}

/// What a client sees: status, headers, body.
fn post(to: SocketAddr, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, String, String) {
    let body = body.to_string();
    let mut request = format!("POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
}

/// What a tool says, as long as tools are.
fn listing(step: usize) -> String {
    (0..120).map(|line| format!("src/part_{step}/file_{line}.rs: fn name_{step}_{line}() {{}}\n")).collect()
}

/// A conversation of an agent after so many steps.
fn chat(steps: usize) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "You are an agent."}),
        json!({"role": "user", "content": "Look at all parts."}),
    ];
    for step in 0..steps {
        let call = json!({"id": format!("c{step}"), "type": "function",
            "function": {"name": "bash", "arguments": json!({"command": format!("ls {step}")}).to_string()}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{step}"), "content": listing(step)}));
    }
    let tool = json!({"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}});
    json!({"model": "gpt-5", "messages": messages, "tools": [tool]})
}

/// The same for Anthropic Messages.
fn messages(steps: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Look at all parts."})];
    for step in 0..steps {
        let call = json!({"type": "tool_use", "id": format!("c{step}"), "name": "bash",
            "input": {"command": format!("ls {step}")}});
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("c{step}"), "content": listing(step)});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    let tool = json!({"name": "bash", "input_schema": {"type": "object"}});
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1_000, "system": "You are an agent.",
        "messages": messages, "tools": [tool]})
}

fn upstreams(fake: &Fake) -> Vec<String> {
    ["--anthropic", &fake.base_url(), "--openai", &format!("{}/v1", fake.base_url())]
        .map(str::to_owned)
        .into()
}

/// A gateway whose APIs are open: `access.rs` has those that ask for a token.
fn serve(home: &Home, fake: &Fake, more: &[&str]) -> Command {
    let mut command = home.longhaul(&["serve", "--listen", "127.0.0.1:0", "--no-token"]);
    command.args(upstreams(fake)).args(more);
    command
}

/// Issue 16: one line when it is ready, a conversation that stays small, a summary at its end. No byte that is
/// written holds a key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_serves_keeps_conversations_small_and_ends_in_good_order() {
    let (home, fake) = (Home::new(), Settings::new().key(KEY).start().await);
    let log = home.text_at("gateway.log");
    let mut command = serve(&home, &fake, &["--window", "8000", "--log", &log]);
    command.env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", KEY);
    let serving = Serving::start(command);
    let (mut sent, mut edited) = (0, 0);
    for steps in 0..8 {
        let bearer = format!("Bearer {KEY}");
        for (path, key, body) in [
            ("/v1/chat/completions", ("authorization", bearer.as_str()), chat(steps)),
            ("/v1/messages", ("x-api-key", KEY), messages(steps)),
        ] {
            let (status, head, answer) = post(serving.address, path, &[key], &body);
            assert_eq!(status, 200, "{answer}");
            let how = if steps == 0 { "new" } else { "extends" };
            assert!(head.contains(&format!("\r\nx-longhaul: {how}; view=")), "{head}");
            assert!(head.contains("\r\nx-longhaul-session: "), "{head}");
            edited += usize::from(!head.contains("edits=0\r"));
            sent += body.to_string().len();
        }
    }
    let got: usize = fake.log().iter().map(|call| call.body.to_string().len()).sum();
    assert_eq!((fake.log().len(), fake.violations()), (16, vec![]));
    assert!(edited > 0 && got * 10 < sent * 9, "{got} of {sent} bytes, {edited} with edits");
    // Asked to be left alone, it is.
    let (_, head, _) =
        post(serving.address, "/v1/messages", &[("x-api-key", KEY), ("x-longhaul", "off")], &messages(7));
    assert!(head.contains("\r\nx-longhaul: passed-on; why=off"), "{head}");
    let whole = fake.log().last().unwrap().body.clone();
    assert_eq!(whole, messages(7));

    let (code, out, err) = serving.end();
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{out} {err}");
    let [room, last] = err.lines().collect::<Vec<_>>()[..] else { panic!("{err}") };
    assert!(room.starts_with("longhaul: room for ") && room.ends_with("use a larger window"), "{err}");
    assert!(last.starts_with("longhaul: 16 calls and 1 passed on; $0."), "{err}");
    assert!(last.contains("; about $0.") && last.contains(" folds"), "{err}");
    let log = fs::read_to_string(&log).unwrap();
    // One line a request, and one for each conversation that the window is too small for.
    let (cramped, requests): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| line.contains(" WARN "));
    assert_eq!((requests.len(), cramped.len()), (17, 2), "{log}");
    assert!(cramped.iter().all(|line| line.contains("use a larger window")), "{log}");
    assert!(home.files().iter().any(|(path, _)| path.ends_with("sessions.db")));
    for (path, bytes) in home.files() {
        assert!(!has(&bytes, "secret"), "a key is in {}", path.display());
    }
}

/// What was shortened stays so after a restart: the store knows the conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_starts_again_goes_on() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    for steps in 0..6 {
        let serving = Serving::start(serve(&home, &fake, &["--window", "12000"]));
        let (status, head, _) = post(serving.address, "/v1/messages", &[], &messages(steps));
        let how = if steps == 0 { "new" } else { "extends" };
        assert!(status == 200 && head.contains(&format!("x-longhaul: {how};")), "{head}");
        assert_eq!(serving.end().0, Some(0));
    }
    assert_eq!(fake.violations(), [] as [&str; 0]);
}

#[test]
fn what_cannot_be_served_is_said_in_one_line() {
    let home = Home::new();
    fs::write(home.at("no.db"), "These are words, and no store. ".repeat(90)).unwrap();
    let no_store = home.text_at("no.db");
    for (args, says) in [
        (&["--listen", "0.0.0.0:0"][..], "set a token"),
        (&["--listen", "0.0.0.0:0", "--no-token"], "set a token"),
        (&["--listen", "0.0.0.0:0", "--token", "T0ken", "--no-token"], "nothing is open without the token"),
        (&["--listen", "0.0.0.0:0", "--token", ""], "the token is empty"),
        (&["--store", &no_store], "no.db"),
        (&["--store", "mysql://me:secret@h/d"], "no store of this kind"),
        (&["--profile", "longhual"], "longhaul"),
        (&["--anthropic", "localhost:80"], "http://"),
        (&["--openai", "http://me:secret@h/?key=secret"], "query"),
    ] {
        let output = home.longhaul(&[&["serve"], args].concat()).output().unwrap();
        let said = refused(&output, 2);
        assert!(said.contains(says) && !said.contains("secret"), "{said}");
    }
    // clap says it, and the usage with it.
    for (flag, bad) in [
        ("--listen", "nowhere"),
        ("--listen", "127.0.0.1"),
        ("--listen", "127.0.0.1:99999"),
        ("--origin", "null"),
        ("--origin", "localhost:3000"),
    ] {
        let output = home.longhaul(&["serve", flag, bad]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(flag));
    }
}

#[test]
fn an_address_that_is_taken_is_said() {
    let (home, taken) = (Home::new(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let output = home.longhaul(&["serve", "--listen", &address]).output().unwrap();
    assert!(refused(&output, 2).contains(&format!("cannot listen on {address}")));
}

/// What an agent prints of its environment, by its name.
const PRINTS: &str = "echo anthropic=$ANTHROPIC_BASE_URL openai=$OPENAI_BASE_URL base=$OPENAI_API_BASE \
    no_proxy=$NO_PROXY compact=$DISABLE_AUTO_COMPACT million=$_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL args=$*";

#[test]
fn an_agent_is_told_where_the_gateway_is() {
    let home = Home::new();
    home.script("bin/claude", PRINTS);
    home.script("bin/codex", PRINTS);
    let said = |command: &mut Command| {
        let output = command.env("ANTHROPIC_API_KEY", KEY).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stderr), "longhaul: no calls\n");
        text(&output.stdout)
    };
    let claude = said(home.longhaul(&["wrap", "claude", "--", "-p", "say it"]).env("NO_PROXY", "intranet"));
    assert!(claude.starts_with("anthropic=http://127.0.0.1:"), "{claude}");
    assert!(
        claude.contains("no_proxy=intranet,127.0.0.1,localhost compact=1 million=1 args=--mcp-config="),
        "{claude}"
    );
    assert!(claude.ends_with(" -p say it\n"), "{claude}");
    // Another provider has no window of a million to keep.
    let other = said(home.longhaul(&["wrap", "claude"]).env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"));
    assert!(!other.contains("http://127.0.0.1:9 ") && other.contains("compact=1 million= "), "{other}");
    let codex = said(&mut home.longhaul(&["wrap", "codex", "--", "exec"]));
    assert!(
        codex.contains("model_provider=longhaul") && codex.ends_with("supports_websockets=false} exec\n"),
        "{codex}"
    );
    let any = said(&mut home.longhaul(&["wrap", "sh", "--", "-c", PRINTS]));
    let port = any.split_once("anthropic=http://127.0.0.1:").unwrap().1.split(' ').next().unwrap();
    assert!(
        any.contains(&format!("openai=http://127.0.0.1:{port}/v1 base=http://127.0.0.1:{port}/v1 ")),
        "{any}"
    );
}

/// Other users of a machine see the arguments of programs and can connect to its ports: they get no word of a
/// conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrapped_agents_gateway_lets_nobody_else_in() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    home.script("bin/claude", "echo $LONGHAUL_GATEWAY $LONGHAUL_TOKEN $ANTHROPIC_BASE_URL; read line");
    home.script("bin/codex", "echo $LONGHAUL_GATEWAY $LONGHAUL_TOKEN; read line");
    home.script("bin/pi", "echo $LONGHAUL_GATEWAY $LONGHAUL_TOKEN; read line");
    home.script(
        "bin/opencode",
        "[ \"$1\" = debug ] || { echo $LONGHAUL_GATEWAY $LONGHAUL_TOKEN; read line; }",
    );
    let mut tokens = Vec::new();
    for agent in ["claude", "codex", "pi", "opencode"] {
        let mut command = home.longhaul(&["wrap"]);
        command.args(upstreams(&fake)).args([agent, "--", "more"]);
        let mut wrap =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(wrap.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut told = line.split_whitespace();
        let gateway: SocketAddr = told.next().unwrap().parse().unwrap();
        let token = told.next().unwrap().to_owned();
        assert!(token.len() >= 32 && told.all(|base| base.contains(&format!("/t/{token}/s/"))), "{line}");
        let ask = |path: String, body: &Value| post(gateway, &path, &[], body).0;
        assert_eq!(ask("/v1/messages".to_owned(), &messages(1)), 401);
        assert_eq!(ask("/mcp".to_owned(), &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})), 401);
        assert_eq!(ask(format!("/t/{token}/v1/messages"), &messages(1)), 200);
        // Where the system lists them.
        let id = wrap.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let arguments = fs::read(format!("/proc/{child}/cmdline")).unwrap();
            assert!(has(&arguments, "more") && !has(&arguments, &token), "{agent}");
        }
        drop(wrap.stdin.take());
        wrap.wait().unwrap();
        tokens.push(token);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 4);
    // All of them are the one user of this store.
    let listed = home.longhaul(&["sessions", "list"]).output().unwrap();
    assert_eq!(text(&listed.stdout).matches("Look at all parts.").count(), 1, "{}", text(&listed.stdout));
    for (path, bytes) in home.files() {
        assert!(tokens.iter().all(|token| !has(&bytes, token)), "a token is in {}", path.display());
    }
}

/// With a tool of ours in its requests, the thinking of an agent fails without Longhaul, whether anything was folded or
/// not. The command that `wrap` prints then is one that works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_release_that_wrap_names_at_its_end_works() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    if !home.run("sh", &["-c", "command -v curl"]).output().unwrap().status.success() {
        eprintln!("skipped: there is no curl");
        return;
    }
    let thinking = json!({"type": "thinking", "thinking": "Which part?", "signature": "a seal"});
    let body = |steps| {
        let mut body = messages(steps);
        body["model"] = "claude-opus-5-5".into();
        if let Some(answer) = body["messages"].get_mut(1) {
            answer["content"].as_array_mut().unwrap().insert(0, thinking.clone());
        }
        body
    };
    for steps in [0, 1] {
        fs::write(home.at(&format!("body_{steps}.json")), body(steps).to_string()).unwrap();
    }
    let asks = "curl -s -o /dev/null -H 'content-type: application/json' $ANTHROPIC_BASE_URL/v1/messages -d";
    home.script("bin/agent", &format!("{asks} @body_0.json; {asks} @body_1.json"));
    // What Claude Code keeps of it.
    let said = body(1);
    let lines = said["messages"].as_array().unwrap().iter().enumerate().map(|(at, message)| {
        let parent = at.checked_sub(1).map(|before| before.to_string());
        json!({"type": message["role"], "uuid": at.to_string(), "parentUuid": parent, "isSidechain": false,
            "sessionId": "s", "version": "2.1.327", "timestamp": "2026-11-01T10:00:00.000Z", "message": message})
    });
    let own: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(home.at("own.jsonl"), &own).unwrap();
    std::os::unix::fs::symlink(common::longhaul(), home.at("bin/longhaul")).unwrap();

    let wrapped = |recall: &str| {
        let mut command = home.longhaul(&["wrap", "--store", "my sessions.db", "--recall", recall, "agent"]);
        let output = command.env("ANTHROPIC_BASE_URL", fake.base_url()).output().unwrap();
        text(&output.stderr)
    };
    let told = wrapped("fill");
    assert!(told.starts_with("longhaul: 2 calls; "), "{told}");
    assert!(fake.log().iter().all(|call| call.body["tools"].to_string().contains("longhaul_recall")));
    let command = told.split('`').nth(1).unwrap_or_else(|| panic!("{told}"));
    let released = home.run("sh", &["-c", &command.replace("FILE", "own.jsonl")]).output().unwrap();
    assert_eq!(released.status.code(), Some(0), "{command}: {}", text(&released.stderr));
    assert!(text(&released.stdout).starts_with("1 block of 1 are left out."), "{}", text(&released.stdout));
    let written = fs::read_to_string(home.at("own.jsonl.released")).unwrap();
    assert!(
        own.contains("a seal") && !written.contains("a seal") && written.contains("src/part_0/file_1.rs")
    );

    // Nothing of ours was in it.
    fs::remove_file(home.at("my sessions.db")).unwrap();
    let told = wrapped("mcp");
    assert!(told.starts_with("longhaul: 2 calls; ") && !told.contains("release"), "{told}");
}

/// pi is told by an extension, and opencode by settings, to ask the gateway also for providers of the user's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_of_the_users_files_are_behind_the_gateway() {
    let (home, fake) = (Home::new(), Settings::new().key(KEY).start().await);
    if !home.run("sh", &["-c", "command -v curl"]).output().unwrap().status.success() {
        eprintln!("skipped: there is no curl");
        return;
    }
    fs::write(home.at("body.json"), messages(2).to_string()).unwrap();
    let asks = "curl -s -o /dev/null -w %{http_code} -H \"x-api-key: $MY_KEY\" -H 'content-type: application/json' \
        -d @body.json $url/v1/messages";
    fs::create_dir_all(home.at("home/.pi/agent")).unwrap();
    let models =
        format!("{{ // mine\n\"providers\": {{\"mine\": {{\"baseUrl\": \"{}\"}},}} }}", fake.base_url());
    fs::write(home.at("home/.pi/agent/models.json"), models).unwrap();
    let url = "url=$(printf %s \"$LONGHAUL_PROVIDERS\" | tr ',' '\\n' | sed -n 's/.*\"mine\":\"\\([^\"]*\\)\".*/\\1/p')";
    home.script("bin/pi", &format!("echo \"$1 $2\" > told; cat \"$2\" > extension; {url}; {asks}"));
    let output = home.longhaul(&["wrap", "pi", "--", "-p", "hi"]).env("MY_KEY", KEY).output().unwrap();
    assert_eq!(text(&output.stdout), "200", "{}", text(&output.stderr));
    assert!(fs::read_to_string(home.at("extension")).unwrap().contains("registerProvider"));
    let told = fs::read_to_string(home.at("told")).unwrap();
    let file = told.trim_end().strip_prefix("--extension ").unwrap();
    assert!(
        file.ends_with("longhaul-pi.js") && !std::path::Path::new(file).exists(),
        "{file} is still there"
    );
    // Its own commands are as they were.
    home.script("bin/pi", "echo $*");
    let output = home.longhaul(&["wrap", "pi", "--", "install", "npm:x"]).output().unwrap();
    assert_eq!(text(&output.stdout), "install npm:x\n");

    let config = json!({"provider": {"mine": {"npm": "@ai-sdk/anthropic",
        "options": {"baseURL": format!("{}/v1", fake.base_url())}}}});
    fs::write(home.at("config.json"), config.to_string()).unwrap();
    let url = "url=$(printf %s \"$OPENCODE_CONFIG_CONTENT\" | tr '{,' '\\n\\n' | \
        sed -n 's/.*\"baseURL\":\"\\([^\"]*\\)\\/v1\".*/\\1/p' | grep /to/0)";
    home.script("bin/opencode", &format!("[ \"$1\" = debug ] && exec cat config.json; {url}; {asks}"));
    let output = home.longhaul(&["wrap", "opencode"]).env("MY_KEY", KEY).output().unwrap();
    assert_eq!(text(&output.stdout), "200", "{}", text(&output.stderr));
    assert_eq!(fake.log().len(), 2);
}

/// A wrapped program speaks to the provider that its environment named before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_speaks_through_its_gateway() {
    let (home, fake) = (Home::new(), Settings::new().key(KEY).start().await);
    if !home.run("sh", &["-c", "command -v curl"]).output().unwrap().status.success() {
        eprintln!("skipped: there is no curl");
        return;
    }
    fs::write(home.at("body.json"), messages(2).to_string()).unwrap();
    let asks = "curl -s -o /dev/null -w %{http_code} -H \"x-api-key: $ANTHROPIC_API_KEY\" \
        -H 'content-type: application/json' -d @body.json $ANTHROPIC_BASE_URL/v1/messages";
    let log = home.text_at("log");
    let mut command = home.longhaul(&["wrap", "--log", &log, "sh", "--", "-c", asks]);
    let output =
        command.env("ANTHROPIC_BASE_URL", fake.base_url()).env("ANTHROPIC_API_KEY", KEY).output().unwrap();
    assert_eq!(text(&output.stdout), "200");
    let said = text(&output.stderr);
    assert!(said.starts_with("longhaul: 1 call; <$0.01; ") && said.lines().count() == 1, "{said}");
    assert_eq!(fake.log().len(), 1);
    for (path, bytes) in home.files() {
        assert!(!has(&bytes, "secret"), "a key is in {}", path.display());
    }
}

/// An agent that is told of no tools of ours gets one in its requests, and the text in the place of its own error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_fills_in_what_is_recalled() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let serving = Serving::start(serve(&home, &fake, &["--recall", "fill"]));
    let mut body = messages(3);
    body["messages"][2]["content"][0]["content"] = json!("test a ... ok\n".repeat(400));
    let ask = |body: &Value| {
        let (status, head, answer) = post(serving.address, "/v1/messages", &[], body);
        assert_eq!(status, 200, "{head} {answer}");
        fake.log().last().unwrap().body.clone()
    };
    let sent = ask(&body);
    assert_eq!(sent["tools"][1]["name"], "longhaul_recall");
    let said = sent["messages"][2]["content"][0]["content"].as_str().unwrap();
    let handle = &said.split_once("recall ").unwrap().1[..12];
    let call =
        json!({"type": "tool_use", "id": "r1", "name": "longhaul_recall", "input": {"handle": handle}});
    let result = json!({"type": "tool_result", "tool_use_id": "r1", "is_error": true,
        "content": "<tool_use_error>Error: No such tool available: longhaul_recall</tool_use_error>"});
    let all = body["messages"].as_array_mut().unwrap();
    all.push(json!({"role": "assistant", "content": [call]}));
    all.push(json!({"role": "user", "content": [result]}));
    let sent = ask(&body);
    let filled = &sent["messages"].as_array().unwrap().last().unwrap()["content"][0];
    assert_eq!((&filled["content"], filled.get("is_error")), (&json!("test a ... ok\n".repeat(400)), None));
    assert_eq!(fake.violations(), [] as [&str; 0]);
    assert_eq!(serving.end().0, Some(0));
    let wrong = home.longhaul(&["serve", "--recall", "shell"]).output().unwrap();
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("[possible values: mcp, fill]"));
}

/// Agents recall as their row says, unless a flag says otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_told_of_no_tools_gets_one_in_its_requests() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    if !home.run("sh", &["-c", "command -v curl"]).output().unwrap().status.success() {
        eprintln!("skipped: there is no curl");
        return;
    }
    let asks = "curl -s -o /dev/null -w %{http_code} -H 'content-type: application/json' -d @body.json \
        -H \"x-longhaul-token: $LONGHAUL_TOKEN\" http://$LONGHAUL_GATEWAY/v1/messages";
    home.script("bin/claude", asks);
    home.script("bin/codex", asks);
    home.script("bin/pi", asks);
    let cases: [(&[&str], usize); 5] = [
        (&["codex"], 2),
        (&["pi"], 2),
        (&["claude"], 1),
        (&["--recall", "mcp", "codex"], 1),
        (&["--recall", "fill", "claude"], 2),
    ];
    for (number, (args, tools)) in cases.into_iter().enumerate() {
        let mut body = messages(1);
        body["messages"][0]["content"] = json!(format!("Look at part {number}."));
        fs::write(home.at("body.json"), body.to_string()).unwrap();
        let flags = ["wrap", "--anthropic", &fake.base_url()];
        let output = home.longhaul(&[&flags[..], args].concat()).output().unwrap();
        assert_eq!(text(&output.stdout), "200", "{args:?} {}", text(&output.stderr));
        let sent = fake.log().last().unwrap().body.clone();
        assert_eq!(sent["tools"].as_array().unwrap().len(), tools, "{args:?}");
    }
}

#[test]
fn the_exit_code_is_the_agents() {
    let home = Home::new();
    for (body, code) in
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143)]
    {
        let output = home.longhaul(&["wrap", "sh", "--", "-c", body]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{body}");
    }
}

#[test]
fn a_program_that_is_not_there_is_said_in_one_line() {
    let home = Home::new();
    fs::write(home.at("bin/plain"), "no program").unwrap();
    for args in [
        &["claude"][..],
        &["no-such-agent"],
        &["plain"],
        &["./missing"],
        &["--program", "/missing", "claude"],
    ] {
        let output = home.longhaul(&[&["wrap"], args].concat()).output().unwrap();
        assert!(refused(&output, 2).contains("there is no program `"), "{args:?}");
    }
    let output = home.longhaul(&["wrap", "--program", "bin/plain", "claude"]).output().unwrap();
    assert!(refused(&output, 1).contains("cannot be run"));
}

/// Whoever ends us means the agent: it may clean up, and its exit code counts.
#[test]
fn a_signal_reaches_the_agent() {
    let home = Home::new();
    for (name, code) in [("TERM", 42), ("HUP", 43)] {
        let waits =
            "trap 'exit 42' TERM; trap 'exit 43' HUP; echo ready > ready; while :; do sleep 0.05; done";
        let mut child =
            home.longhaul(&["wrap", "sh", "--", "-c", waits]).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while !home.at("ready").exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "the agent did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        fs::remove_file(home.at("ready")).unwrap();
        signal(name, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_signal_leaves_no_file_of_ours_behind() {
    let home = Home::new();
    home.script(
        "bin/pi",
        "trap 'exit 0' TERM HUP; echo \"$2\" > new; mv new ready; while :; do sleep 0.05; done",
    );
    for name in ["TERM", "HUP"] {
        let mut child = home.longhaul(&["wrap", "pi"]).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while !home.at("ready").exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "the agent did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let file = fs::read_to_string(home.at("ready")).unwrap();
        let file = std::path::Path::new(file.trim_end());
        fs::remove_file(home.at("ready")).unwrap();
        assert!(file.is_file());
        signal(name, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(!file.parent().unwrap().exists(), "{name}");
    }
}

/// An agent that starts an agent: one gateway for both, and one summary.
#[test]
fn a_wrap_inside_a_wrap_uses_the_gateway_that_is_there() {
    let home = Home::new();
    home.script("bin/claude", "echo $ANTHROPIC_BASE_URL");
    let inner = format!("echo $ANTHROPIC_BASE_URL; {} wrap claude", common::longhaul().display());
    let output = home.longhaul(&["wrap", "sh", "--", "-c", &inner]).output().unwrap();
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("http://127.0.0.1:"), "{said}");
    // Each is told from the other.
    assert!(lines[0] != lines[1] && without_scopes(lines[0]) == without_scopes(lines[1]), "{said}");
    assert_eq!(text(&output.stderr), "longhaul: no calls\n");
    // A gateway that is gone is none.
    let mut alone = home.longhaul(&["wrap", "claude"]);
    let output = alone.env("LONGHAUL_GATEWAY", "127.0.0.1:1").output().unwrap();
    assert_eq!(text(&output.stderr), "longhaul: no calls\n");
}

/// A text without the scopes in its addresses, of which there must be one in each.
fn without_scopes(text: &str) -> String {
    const SCOPE: usize = 12;
    let mut pieces = text.split("/s/");
    let first = pieces.next().unwrap_or_default().to_owned();
    let rest = pieces.map(|piece| {
        let (scope, rest) = piece.split_at(SCOPE);
        assert!(scope.chars().all(|c| c.is_ascii_hexdigit()), "{text}");
        rest
    });
    let rest: Vec<&str> = rest.collect();
    assert_eq!(rest.len(), text.matches("http://").count(), "{text}");
    first + &rest.concat()
}

#[test]
fn a_shell_takes_what_env_prints() {
    let home = Home::new();
    // The user's own token, which is made where there is none.
    let made = home.longhaul(&["env", "claude", "--gateway", "127.0.0.1:9000"]).output().unwrap();
    let own = fs::read_to_string(home.at("home/.local/share/longhaul/token")).unwrap();
    let base = format!("http://127.0.0.1:9000/t/{}", own.trim());
    assert!(without_scopes(&text(&made.stdout)).contains(&format!("export ANTHROPIC_BASE_URL={base}\n")));
    let shown = |agent: &str, shows: &str| {
        let script = format!(
            "eval \"$({} env {agent} --gateway 127.0.0.1:9000)\" && {shows}",
            common::longhaul().display()
        );
        let output = home.run("sh", &["-c", &script]).env("OPENAI_API_KEY", KEY).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(!has(&output.stdout, "secret"));
        text(&output.stdout)
    };
    assert_eq!(
        without_scopes(&shown("claude", "echo $ANTHROPIC_BASE_URL $DISABLE_AUTO_COMPACT")),
        format!("{base} 1\n")
    );
    assert_eq!(shown("codex", "echo done"), "done\n");
    let config: Value =
        serde_json::from_str(&shown("opencode", "printf %s \"$OPENCODE_CONFIG_CONTENT\"")).unwrap();
    let address = config["provider"]["openai"]["options"]["baseURL"].as_str().unwrap();
    assert_eq!(without_scopes(address), format!("{base}/v1"));
    for agent in ["aider", "qwen", "mini", "my-agent"] {
        let said = shown(agent, "echo $ANTHROPIC_BASE_URL $OPENAI_BASE_URL $OPENAI_API_BASE");
        assert_eq!(without_scopes(&said), format!("{base} {base}/v1 {base}/v1\n"));
    }
    // A gateway with another token, and one of another machine.
    let far = home.longhaul(&["env", "claude", "--gateway", "10.0.0.1:9000"]).output().unwrap();
    let far = without_scopes(&text(&far.stdout));
    assert!(far.contains("export ANTHROPIC_BASE_URL=http://10.0.0.1:9000\n"));
    let token = "export LONGHAUL_TOKEN=T0ken; ";
    let guarded = |agent: &str, shows: &str| {
        let script = format!("{token}eval \"$({} env {agent})\" && {shows}", common::longhaul().display());
        text(&home.run("sh", &["-c", &script]).output().unwrap().stdout)
    };
    assert_eq!(
        without_scopes(&guarded("claude", "echo $ANTHROPIC_BASE_URL $LONGHAUL_TOKEN")),
        "http://127.0.0.1:8484/t/T0ken T0ken\n"
    );
    let pi = without_scopes(&guarded("pi", "echo $LONGHAUL_PROVIDERS"));
    assert!(pi.contains("http://127.0.0.1:8484/t/T0ken/v1"), "{pi}");
    let output = home.longhaul(&["env", "codex", "--token", "T0ken"]).output().unwrap();
    let said = text(&output.stdout);
    let (arguments, rest) = said.split_once("# run it as: ").map(|(rest, run)| (run, rest)).unwrap();
    assert!(rest == "export LONGHAUL_TOKEN=T0ken\n" && arguments.contains("env_http_headers"), "{said}");
    assert!(!arguments.contains("T0ken"), "{said}");
    let output = home.longhaul(&["env", "claude", "--token", "a/b"]).output().unwrap();
    assert!(refused(&output, 2).contains("letters, digits"));
    // A proxy would catch what is for the gateway.
    let mut proxied = home.longhaul(&["env", "claude"]);
    proxied.env("http_proxy", format!("http://me:{KEY}@proxy:3128")).env("NO_PROXY", "intranet");
    let said = text(&proxied.output().unwrap().stdout);
    assert!(
        said.contains("export NO_PROXY='intranet,127.0.0.1,localhost'\n") && !said.contains(KEY),
        "{said}"
    );
    // Arguments cannot be exported: they are shown as they are to be typed.
    let output = home.longhaul(&["env", "codex"]).env("OPENAI_API_KEY", KEY).output().unwrap();
    let said = text(&output.stdout);
    let (exported, run) = said.split_once('\n').unwrap();
    assert_eq!(exported, format!("export LONGHAUL_TOKEN={}", own.trim()));
    assert!(run.starts_with("# run it as: codex -c model_provider=longhaul -c '"), "{said}");
    assert!(!said.contains("secret") && !run.contains(own.trim()), "{said}");
}

/// A page of the gateway.
fn page(from: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(from).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {from}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Waits until a text is somewhere.
fn until(what: &str, found: impl Fn() -> String) {
    let begun = Instant::now();
    while !found().contains(what) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what:?} is not in {}", found());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Issue 16: what nobody used for long goes by itself, and is counted and said without a word of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_deletes_what_is_not_to_be_kept() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let log = home.text_at("gateway.log");
    // Nothing goes by default.
    let serving = Serving::start(serve(&home, &fake, &[]));
    assert_eq!(post(serving.address, "/v1/chat/completions", &[], &chat(4)).0, 200);
    assert_eq!(post(serving.address, "/v1/messages", &[], &messages(4)).0, 200);
    serving.end();
    let file = rusqlite::Connection::open(home.at("sessions.db")).unwrap();
    file.execute("UPDATE session SET updated = updated - 40 * 86400000000", []).unwrap();
    let serving = Serving::start(serve(&home, &fake, &[]));
    assert!(page(serving.address, "/metrics").contains("longhaul_pruned_sessions_total 0"));
    serving.end();
    let mut prune = home.longhaul(&["sessions", "prune", "--keep-days", "30", "--dry-run"]);
    assert!(text(&prune.output().unwrap().stdout).starts_with("2 sessions would go, about "));
    assert_eq!(
        text(&home.longhaul(&["sessions", "list", "--json"]).output().unwrap().stdout).lines().count(),
        2
    );

    let serving = Serving::start(serve(&home, &fake, &["--keep-days", "30", "--log", &log]));
    until("longhaul_pruned_sessions_total 2", || page(serving.address, "/metrics"));
    assert!(!page(serving.address, "/metrics").contains("longhaul_pruned_bytes_total 0"));
    until("deleted what is not kept any longer sessions=2 bytes=", || fs::read_to_string(&log).unwrap());
    // What comes now stays.
    assert_eq!(post(serving.address, "/v1/chat/completions", &[], &chat(4)).0, 200);
    serving.end();
    assert_eq!(
        text(&home.longhaul(&["sessions", "list", "--json"]).output().unwrap().stdout).lines().count(),
        1
    );

    file.execute("UPDATE session SET updated = updated - 7200000000", []).unwrap();
    let mut prune = home.longhaul(&["sessions", "prune", "--keep-bytes", "1k"]);
    assert!(text(&prune.output().unwrap().stdout).starts_with("Deleted 1 session, "));
    let nobody = home.longhaul(&["sessions", "prune"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(2));
    let odd = home.longhaul(&["sessions", "prune", "--keep-bytes", "much"]).output().unwrap();
    assert_eq!(odd.status.code(), Some(2));
}

/// Issue 16: SIGHUP reads the settings again. A file that cannot be read changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_read_again_while_conversations_go_on() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let (log, config) = (home.text_at("gateway.log"), home.text_at("mine.toml"));
    fs::write(&config, "window = 200000\n").unwrap();
    let mut command = serve(&home, &fake, &["--log", &log]);
    command.env("LONGHAUL_CONFIG", &config);
    let serving = Serving::start(command);
    let ask = |steps: usize| {
        let (status, head, answer) = post(serving.address, "/v1/messages", &[], &messages(steps));
        assert_eq!(status, 200, "{answer}");
        let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        (value("x-longhaul-session: "), value("x-longhaul: "))
    };
    let reload = |text: &str, says: &str| {
        fs::write(&config, text).unwrap();
        fs::write(&log, "").unwrap();
        signal("HUP", serving.child.id());
        until(says, || fs::read_to_string(&log).unwrap());
    };
    let (session, how) = ask(12);
    assert!(how.starts_with("new; ") && how.ends_with("edits=0"), "{how}");
    reload("window = 12000\n", "the settings were read again");
    let (same, how) = ask(13);
    assert!(same == session && how.starts_with("extends; ") && !how.ends_with("edits=0"), "{how}");
    // What is wrong is said in one line, and changes nothing.
    reload("windw = 200000\n", "the settings stay as they were problem=");
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
    let (same, how) = ask(14);
    assert!(same == session && how.starts_with("extends; ") && !how.ends_with("edits=0"), "{how}");
    // What cannot change is said, and the rest holds.
    reload(
        "[gateway]\nconnections = 7\nmax_body = \"1k\"\n",
        "these change with a restart only fixed=\"connections\"",
    );
    let (status, head, _) = post(serving.address, "/v1/messages", &[], &messages(15));
    assert!(status == 200 && head.contains("x-longhaul: passed-on; why=unreadable"), "{head}");
    assert_eq!(fake.violations(), Vec::<String>::new());
    let (code, ..) = serving.end();
    assert_eq!(code, Some(0));
}

/// Issue 16: nothing that is said is stored, and what does not work then is said in a sentence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_content_says_so() {
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let log = home.text_at("gateway.log");
    let serving = Serving::start(serve(&home, &fake, &["--no-content", "--window", "12000", "--log", &log]));
    assert!(fs::read_to_string(&log).unwrap().contains("nothing that is said is stored"));
    for steps in 0..8 {
        let (status, head, _) = post(serving.address, "/v1/messages", &[], &messages(steps));
        let how = if steps == 0 { "new" } else { "extends" };
        assert!(status == 200 && head.contains(&format!("\r\nx-longhaul: {how}; view=")), "{head}");
    }
    serving.end();
    for (path, bytes) in home.files() {
        assert!(!has(&bytes, "Look at all") && !has(&bytes, "file_100.rs"), "{}", path.display());
    }
    let session = ["show", "export", "recall"].map(|what| {
        let mut args = vec!["sessions", what, "last"];
        args.extend((what == "recall").then_some("0123456789ab"));
        home.longhaul(&args).output().unwrap()
    });
    for output in session {
        let says = refused(&output, 2);
        assert!(says.contains("was kept without content: nothing that was said in it is stored"), "{says}");
    }
    let found = home.longhaul(&["sessions", "search", "parts"]).output().unwrap();
    assert!(text(&found.stdout).contains("One session was kept without content"), "{}", text(&found.stdout));
    let listed = home.longhaul(&["sessions", "list"]).output().unwrap();
    assert!(text(&listed.stdout).contains("(without content)"), "{}", text(&listed.stdout));
    // A gateway that starts again begins anew, and loses nothing of the client's.
    let serving = Serving::start(serve(&home, &fake, &["--no-content", "--window", "12000", "--log", &log]));
    let (status, head, _) = post(serving.address, "/v1/messages", &[], &messages(8));
    assert!(status == 200 && head.contains("\r\nx-longhaul: new; view="), "{head}");
    serving.end();
    assert_eq!(fake.violations(), Vec::<String>::new());
}
