//! What `longhaul convert --to` writes is accepted by the API that it is for.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use longhaul_fake::{Fake, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const APIS: [(&str, &str); 3] = [
    ("openai", "/v1/chat/completions"),
    ("openai-responses", "/v1/responses"),
    ("anthropic", "/v1/messages"),
];

/// All recordings among the fixtures.
fn fixtures() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["longhaul-wire/tests/agents", "longhaul-wire/tests/api", "longhaul-cli/tests/data"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(crates.join(folder)).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl" || end == "json"));
    files.sort();
    assert!(files.len() > 15, "{files:?}");
    files
}

/// A recording with all that APIs refuse.
fn odd() -> String {
    let call = |id: &str, name: &str| json!({"type": "tool_call", "id": id, "name": name, "arguments": {"path": "a.rs"}});
    let result =
        |id: &str| json!({"role": "tool", "content": [{"type": "tool_result", "id": id, "text": ""}]});
    let long = "server.".repeat(20);
    let frame = json!({"model": "m", "stop": [], "tools": [
        {"name": "files/read", "description": "Reads.", "input_schema": {"type": "object"}},
        {"name": long, "description": "Long.", "input_schema": {"type": "object"}},
    ]});
    let lines = [
        json!({"role": "user", "content": "Look.", "extra": {"frame": frame}}),
        json!({"role": "assistant", "content": [{"type": "thinking", "text": "Which?"}, call("1", "files/read"), call("2", &long)]}),
        result("1"),
        result("2"),
        json!({"role": "user", "content": ""}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Go on."}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": " "}, call("3", "files.read")]}),
        result("3"),
        json!({"role": "assistant", "content": [{"type": "thinking", "text": "Well", "signature": "c2ln"}]}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The requests that a recording is converted to: one for each of its conversations.
fn converted(input: &Path, to: &str) -> Vec<String> {
    let convert = |input: &str| {
        let mut command = Command::cargo_bin("longhaul").unwrap();
        command.env_clear().args(["convert", input, "-", "--to", to]).output().unwrap()
    };
    let whole = convert(input.to_str().unwrap());
    if whole.status.success() {
        return vec![String::from_utf8(whole.stdout).unwrap()];
    }
    let says = String::from_utf8(whole.stderr).unwrap();
    assert!(says.contains("several conversations"), "{says}");
    let parts = (0..).map(|n| convert(&format!("{}#{n}", input.display())));
    parts
        .take_while(|output| output.status.success())
        .map(|output| String::from_utf8(output.stdout).unwrap())
        .collect()
}

/// What a provider says to a body.
async fn answer(fake: &Fake, path: &str, body: &str) -> String {
    let request = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut connection = tokio::net::TcpStream::connect(fake.address()).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    response
}

/// All that providers refuse and that the fake does not look at.
fn is_legal(body: &Value, says: &str) {
    let messages = ["messages", "input"].iter().find_map(|list| body[*list].as_array()).unwrap();
    assert!(!messages.is_empty(), "{says}");
    for name in ["tools", "stop", "stop_sequences"] {
        assert!(body[name].as_array().is_none_or(|list| !list.is_empty()), "{says}: {name}");
    }
    let mut names: Vec<&Value> = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        names.extend(tool.get("name").or_else(|| tool["function"].get("name")));
    }
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array();
        assert!(blocks.is_none_or(|blocks| !blocks.is_empty()), "{says}: {message}");
        for block in blocks.into_iter().flatten() {
            assert!(block["text"].as_str().is_none_or(|text| !text.trim().is_empty()), "{says}: {message}");
            names.extend((block["type"] == "tool_use").then(|| &block["name"]));
        }
        let last =
            blocks.and_then(|blocks| blocks.last()).map(|last| last["type"].as_str().unwrap_or_default());
        let ends_in_thinking = matches!(last, Some("thinking" | "redacted_thinking"));
        assert!(message["role"] != "assistant" || !ends_in_thinking, "{says}: {message}");
        let is_alone = |next: Option<&Value>| next.is_none_or(|next| next["role"] == "user");
        assert!(message["type"] != "reasoning" || !is_alone(messages.get(at + 1)), "{says}: {message}");
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            names.push(&call[call["type"].as_str().unwrap()]["name"]);
        }
        names.extend((message["type"] == "function_call").then(|| &message["name"]));
    }
    for name in names {
        let name = name.as_str().unwrap();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        assert!((1..=64).contains(&name.len()) && name.bytes().all(legal), "{says}: the tool {name:?}");
    }
}

#[tokio::test]
async fn every_request_is_what_its_api_takes() {
    let folder = tempfile::tempdir().unwrap();
    let odd_file = folder.path().join("odd.jsonl");
    fs::write(&odd_file, odd()).unwrap();
    let fake = (0..600).fold(Settings::new(), |settings, _| settings.answer("Done.")).start().await;
    let mut requests = 0;
    for input in fixtures().into_iter().chain([odd_file.clone()]) {
        for (to, path) in APIS {
            for body in converted(&input, to) {
                let says = format!("{} to {to}", input.display());
                is_legal(&serde_json::from_str(&body).unwrap(), &says);
                let answer = answer(&fake, path, &body).await;
                assert!(answer.starts_with("HTTP/1.1 200"), "{says}: {answer}");
                requests += 1;
            }
        }
    }
    assert!(requests > 50, "{requests}");
    assert_eq!(fake.violations(), [""; 0]);
    // The same tool has one name in every API, and every time.
    let names = |to: &str| {
        let body: Value = serde_json::from_str(&converted(&odd_file, to)[0]).unwrap();
        let tools = body["tools"].as_array().unwrap().clone();
        let name = |tool: &Value| tool.get("name").or_else(|| tool["function"].get("name")).cloned();
        tools.iter().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("openai").len(), 2);
    assert_eq!((names("openai"), names("anthropic")), (names("openai-responses"), names("openai-responses")));
}
