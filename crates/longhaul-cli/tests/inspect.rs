//! `longhaul inspect` as a user runs it: recorded files, stored sessions, static pages, and what cannot be done.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use common::{Home, has, refused, text};
use serde_json::{Value, json};

/// A recorded session of some turns, whose results do not all fit into a small window.
fn transcript(name: &str, turns: usize) -> String {
    let mut lines = vec![json!({"role": "system", "content": [{"type": "text", "text": "You read files."}]})];
    for turn in 0..turns {
        let result: String = (0..60).map(|line| format!("fn {name}_{turn}_{line}() {{}}\n")).collect();
        let call = json!({"type": "tool_call", "id": format!("c{turn}"), "name": "Read", "arguments": {"path": format!("{name}{turn}")}});
        lines.push(json!({"role": "user", "content": [{"type": "text", "text": format!("Read {name}{turn} with sk-0123456789abcdef.")}]}));
        lines.push(json!({"role": "assistant", "model": "claude-sonnet-4-5", "content": [call]}));
        lines.push(json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{turn}"), "text": result}]}));
        lines.push(json!({"role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "Done."}]}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// An inspector that runs, until this is dropped.
struct Running {
    child: Child,
    address: String,
    /// What stands behind the address of the page.
    place: String,
}

impl Running {
    fn new(home: &Home, args: &[&str]) -> Self {
        let mut command = home.longhaul(&[&["inspect"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim_end().strip_prefix("inspector on http://").unwrap_or_else(|| panic!("{line:?}"));
        let (address, place) = rest.split_once("/inspect/").unwrap();
        Self { child, address: address.to_owned(), place: place.to_owned() }
    }

    fn json(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head =
            format!("GET /inspect/{path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn recorded_files_are_shown_as_if_longhaul_had_been_there() {
    let home = Home::new();
    fs::write(home.at("one.jsonl"), transcript("alpha", 12)).unwrap();
    fs::create_dir(home.at("more")).unwrap();
    fs::write(home.at("more/two.jsonl"), transcript("beta", 2)).unwrap();
    let running = Running::new(&home, &["one.jsonl", "--window", "8k"]);
    let id = running.place.strip_prefix("#/s/").unwrap().to_owned();
    let answer = running.json(&format!("api/session/{id}"));
    assert_eq!((&answer["calls"]["count"], &answer["window"]), (&json!(24), &json!(8_000)));
    assert_eq!((&answer["project"], &answer["billed"]), (&json!("one.jsonl"), &json!(false)));
    assert!(!answer["compactions"].as_array().unwrap().is_empty());
    assert_eq!(running.json("api/me")["temporary"], true);
    drop(running);
    // Nothing of it is left, and no store was made.
    assert!(!home.at("sessions.db").exists());
    let running = Running::new(&home, &["one.jsonl", "more"]);
    assert_eq!((running.place.as_str(), &running.json("api/sessions")["total"]), ("", &json!(2)));
}

#[test]
fn stored_sessions_are_shown_by_their_names_or_all() {
    let home = Home::new();
    fs::write(home.at("one.jsonl"), transcript("alpha", 3)).unwrap();
    for again in [&[][..], &["--again"]] {
        let args = [&["sessions", "import", "one.jsonl"], again].concat();
        assert!(home.longhaul(&args).output().unwrap().status.success());
    }
    let running = Running::new(&home, &[]);
    assert_eq!((running.place.as_str(), &running.json("api/sessions")["total"]), ("", &json!(2)));
    let newest = running.json("api/sessions")["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(running.json("api/me")["temporary"], false);
    assert_eq!(Running::new(&home, &["last"]).place, format!("#/s/{newest}"));
    assert_eq!(Running::new(&home, &[&newest]).place, format!("#/s/{newest}"));
}

#[test]
fn a_session_becomes_static_pages_without_keys() {
    let home = Home::new();
    fs::write(home.at("one.jsonl"), transcript("alpha", 12)).unwrap();
    let args =
        ["inspect", "one.jsonl", "--window", "8000", "--export", "pages", "--redact", "alpha_7_[0-9]+"];
    let output = home.longhaul(&args).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success() && said.starts_with("pages/index.html: 24 calls in "), "{said}");
    let files: Vec<_> =
        home.files().into_iter().filter(|(path, _)| path.starts_with(home.at("pages"))).collect();
    assert!(files.iter().any(|(_, bytes)| has(bytes, "alpha_8_17")));
    for (path, bytes) in files {
        assert!(!has(&bytes, "sk-0123456789") && !has(&bytes, "alpha_7_1"), "{}", path.display());
    }
    let again = refused(&home.longhaul(&args).output().unwrap(), 2);
    assert!(again.contains("pages: is there already: pages go to a new folder"), "{again}");
}

#[test]
fn the_session_of_the_demo_is_there_without_a_file() {
    let home = Home::new();
    let output = home.longhaul(&["inspect", "demo", "--export", "pages"]).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success() && said.starts_with("pages/index.html: "), "{said}");
    let session = fs::read_to_string(home.at("pages/data/session.js")).unwrap();
    // It has prices, and a project that is no folder of this machine.
    assert!(
        session.contains(r#""project":"demo.jsonl""#) && session.contains(r#""input":3.0"#),
        "{session:.900}"
    );
}

#[test]
fn what_cannot_be_shown_is_said() {
    let home = Home::new();
    fs::write(home.at("one.jsonl"), transcript("alpha", 1)).unwrap();
    fs::write(home.at("none.txt"), "").unwrap();
    for (args, says) in [
        (&["nowhere"][..], "there is no store here yet"),
        (&["none.txt"], "has no messages"),
        (&["one.jsonl", "--listen", "0.0.0.0:0"], "can be reached from other machines: set a token"),
        (&["one.jsonl", "--token", " "], "the token is empty"),
        (&["one.jsonl", "one.jsonl", "--export", "pages"], "--export takes one session"),
        (&["one.jsonl", "--export", "pages", "--redact", "("], "\"(\" is no regular expression"),
        (&["one.jsonl", "--profile", "none"], "none"),
    ] {
        let output = home.longhaul(&[&["inspect"], args].concat()).output().unwrap();
        let said = refused(&output, 2);
        assert!(said.contains(says), "{said}");
    }
    assert!(!home.at("pages").exists());
    // A flag that goes with another one alone.
    let output = home.longhaul(&["inspect", "--redact", "a"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
