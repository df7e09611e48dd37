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
    /// The token in the address of the page.
    token: String,
    /// What stands behind that.
    place: String,
}

impl Running {
    fn new(home: &Home, args: &[&str]) -> Self {
        let mut command = home.longhaul(&[&["inspect"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim_end().strip_prefix("inspector on http://").unwrap_or_else(|| panic!("{line:?}"));
        let (address, rest) = rest.split_once("/inspect/").unwrap();
        let (token, place) = rest.find('#').map_or((rest, ""), |at| rest.split_at(at));
        let token = token.strip_prefix("?token=").unwrap_or_default().to_owned();
        Self { child, address: address.to_owned(), token, place: place.to_owned() }
    }

    /// Head and body of an answer.
    fn get(&self, path: &str, header: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let address = &self.address;
        let head =
            format!("GET /inspect/{path} HTTP/1.1\r\nhost: {address}\r\n{header}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// What the page is told that was opened by the address with the token.
    fn json(&self, path: &str) -> Value {
        let (head, _) = self.get(&format!("?token={}", self.token), "");
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap_or_else(|| panic!("{head}"));
        assert!(!cookie.contains(&self.token) && head.contains("location: /inspect/\r\n"), "{head}");
        let (head, body) = self.get(path, &format!("cookie: {}\r\n", cookie.split(';').next().unwrap()));
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head} {body}");
        serde_json::from_str(&body).unwrap()
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

/// Other users of the machine can connect to its ports.
#[test]
fn only_who_has_the_printed_address_sees_anything() {
    let home = Home::new();
    fs::write(home.at("one.jsonl"), transcript("alpha", 1)).unwrap();
    let [one, other] = [(); 2].map(|()| Running::new(&home, &["one.jsonl"]));
    assert!(one.token.len() == 48 && one.token != other.token, "{}", one.token);
    for (path, status) in [("api/sessions", 401), ("api/me", 401), ("?token=guess", 401), ("", 200)] {
        let (head, body) = one.get(path, "");
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")) && !body.contains("alpha"),
            "{path}: {head}"
        );
    }
    let (head, _) = one.get(&format!("?token={}", other.token), "");
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    // One that somebody names is in no address that is not printed on a terminal.
    let named = Running::new(&home, &["one.jsonl", "--token", "T0ken"]);
    assert_eq!(named.token, "");
    assert!(named.get("?token=T0ken", "").0.starts_with("HTTP/1.1 303 "));
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
