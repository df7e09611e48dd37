//! Tools of servers: one that is started (this program again), and one that is reached by HTTP.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, Write};

use longhaul_agent::{Code, Effect, Form, McpServers, Toolbox, connect};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

/// What both servers answer.
fn result_of(message: &Value) -> Value {
    let tool =
        |name: &str| json!({ "name": name, "description": "Says it.", "inputSchema": { "type": "object" } });
    match message["method"].as_str().unwrap() {
        "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } }),
        "tools/list" if message["params"].get("cursor").is_none() => {
            json!({ "tools": [tool("say"), tool("odd name!")], "nextCursor": "more" })
        }
        "tools/list" => json!({ "tools": [tool("fail"), tool("see"), tool("hang"), { "no": "name" }] }),
        _ => match message["params"]["name"].as_str().unwrap() {
            "say" => {
                json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] })
            }
            "fail" => json!({ "isError": true, "content": [{ "type": "text", "text": "no such page" }] }),
            "see" => json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "aGk=" }] }),
            _ => json!({ "content": [] }),
        },
    }
}

/// The server that is started: not a test.
#[test]
#[ignore = "it is the server of another test"]
fn server() {
    if std::env::var_os("MCP_TEST_SERVER").is_none() {
        return;
    }
    println!("a log line that is no message");
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let wants_answer = message.get("id").is_some() && message.get("method").is_some();
        if message["params"]["name"] == "hang" || !wants_answer {
            continue;
        }
        if message["params"]["name"] == "odd name!" {
            std::process::exit(0);
        }
        // A question of its own in between.
        println!("{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
        println!("{}", json!({ "jsonrpc": "2.0", "id": message["id"], "result": result_of(&message) }));
        std::io::stdout().flush().unwrap();
    }
}

fn started() -> McpServers {
    let program = std::env::current_exe().unwrap();
    let server = json!({
        "command": program,
        "args": ["server", "--exact", "--ignored", "--nocapture"],
        "env": { "MCP_TEST_SERVER": "${WANTED}" },
    });
    let missing = json!({ "command": "there-is-no-such-program" });
    let servers = json!({ "mcpServers": { "docs": server, "missing": missing } });
    McpServers::read(&servers.to_string(), |name| (name == "WANTED").then(|| "1".to_owned())).unwrap()
}

async fn toolbox(servers: &McpServers) -> (Toolbox, Vec<String>) {
    let (mut tools, mut problems) = (Toolbox::empty(), Vec::new());
    for server in connect(servers, std::env::temp_dir().as_path()).await {
        match server.tools {
            Ok(found) => found.into_iter().for_each(|tool| tools.add(tool)),
            Err(problem) => problems.push(format!("{}: {problem}", server.name)),
        }
    }
    (tools, problems)
}

async fn says(tools: &Toolbox, name: &str, arguments: Value) -> String {
    tools.run(name, arguments, &CancellationToken::new()).await.shown(Form::Plain)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_started_and_its_tools_are_called() {
    let (tools, problems) = toolbox(&started()).await;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("missing: `there-is-no-such-program` cannot be run"), "{problems:?}");
    let names: Vec<&str> = tools.definitions().map(|tool| tool.name.as_str()).collect();
    let all = ["say", "odd_name_", "fail", "see", "hang"].map(|name| format!("mcp__docs__{name}"));
    assert_eq!(names, all);
    assert_eq!(says(&tools, "mcp__docs__say", json!({ "text": "hello" })).await, "hello");
    assert_eq!(says(&tools, "mcp__docs__fail", json!({})).await, "Error: no such page");
    let seen = tools.run("mcp__docs__see", json!({}), &CancellationToken::new()).await;
    assert_eq!((seen.images[0].media_type, seen.images[0].bytes.as_slice()), ("image/png", &b"hi"[..]));
    assert_eq!(tools.effect("mcp__docs__say", &json!({})), Effect::Foreign("mcp__docs__say".to_owned()));
    // Many at once: each gets its own answer.
    let stop = CancellationToken::new();
    let texts: Vec<String> = (0..20).map(|n| format!("text {n}")).collect();
    for text in &texts {
        let said = tools.run("mcp__docs__say", json!({ "text": text }), &stop).await;
        assert_eq!(&said.shown(Form::Plain), text);
    }
    // A call that never ends is stopped.
    let stopper = stop.clone();
    tokio::spawn(async move { stopper.cancel() });
    let stopped = tools.run("mcp__docs__hang", json!({}), &stop).await;
    assert_eq!(stopped.error.unwrap().code, Code::Interrupted);
    // A server that ends is said, now and later.
    for _ in 0..2 {
        let gone = says(&tools, "mcp__docs__odd_name_", json!({})).await;
        assert!(gone.contains("the server has ended"), "{gone}");
    }
}

/// A server that answers by HTTP: calls as a stream of events, all else whole.
async fn over_http() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let body = loop {
                    let mut bytes = [0; 4096];
                    let read = connection.read(&mut bytes).await.unwrap();
                    request.extend_from_slice(&bytes[..read]);
                    let text = String::from_utf8_lossy(&request).to_lowercase();
                    let Some(end) = text.find("\r\n\r\n") else { continue };
                    let length = text.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
                    if request.len() >= end + 4 + length.trim().parse::<usize>().unwrap() {
                        break request[end + 4..].to_vec();
                    }
                };
                let head = String::from_utf8_lossy(&request).to_lowercase();
                let message: Value = serde_json::from_slice(&body).unwrap();
                let has_session = head.contains("mcp-session-id: s-1");
                let has_key = head.contains("authorization: bearer k");
                let is_first = message["method"] == "initialize";
                let (status, kind, answer) = match message.get("id") {
                    _ if !has_key => ("401 Unauthorized", "text/plain", String::new()),
                    _ if !is_first && !has_session => ("400 Bad Request", "text/plain", String::new()),
                    None => ("202 Accepted", "text/plain", String::new()),
                    Some(id) => {
                        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result_of(&message) });
                        match message["method"] == "tools/call" {
                            true => {
                                let progress =
                                    json!({ "jsonrpc": "2.0", "method": "notifications/progress" });
                                (
                                    "200 OK",
                                    "text/event-stream",
                                    format!("data: {progress}\n\ndata: {answer}\n\n"),
                                )
                            }
                            false => ("200 OK", "application/json", answer.to_string()),
                        }
                    }
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nmcp-session-id: s-1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    answer.len()
                );
                connection.write_all((head + &answer).as_bytes()).await.unwrap();
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_http() {
    let address = over_http().await;
    let servers = |key: &str| {
        let server = json!({ "type": "http", "url": format!("http://{address}/mcp"), "headers": { "Authorization": key } });
        McpServers::read(&json!({ "mcpServers": { "web": server } }).to_string(), |_| None).unwrap()
    };
    let (tools, problems) = toolbox(&servers("Bearer k")).await;
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(says(&tools, "mcp__web__say", json!({ "text": "hello" })).await, "hello");
    assert_eq!(says(&tools, "mcp__web__fail", json!({})).await, "Error: no such page");
    let (_, problems) = toolbox(&servers("Bearer x")).await;
    assert_eq!(problems, ["web: the server says: it wants a key, or another one (`headers`)"]);
    // Keys are in nothing that is printed.
    assert!(!format!("{:?}", servers("Bearer secret")).contains("secret"));
}

#[test]
fn settings_that_cannot_be_read_are_said() {
    let read = |json: &str| McpServers::read(json, |_| None).unwrap_err().to_string();
    assert!(read("{").contains("these are no settings of MCP servers: EOF"));
    assert!(read(r#"{"mcpServers": {"a b": {"command": "x"}}}"#).contains("`a b` is no name"));
    assert!(read(r#"{"mcpServers": {"a": {"x": 1}}}"#).contains("did not match"));
    assert!(read(r#"{"mcpServers": {"a": {"url": "${NOPE}"}}}"#).contains("the variable NOPE is not set"));
}
