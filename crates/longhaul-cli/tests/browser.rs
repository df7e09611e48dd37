//! The inspector's page in a real browser: Chromium, driven by the scripts of `longhaul-inspector/tests/ui`, against
//! a gateway with made-up sessions. Skipped, with a line that says so, where node, Chromium or the scripts' packages
//! are missing: `.ci/run` has them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Home, text};
use longhaul_fake::Settings;
use serde_json::{Value, json};

/// Where a Chromium may be.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../longhaul-inspector/tests/ui")
}

/// What is missing to drive a browser.
fn missing() -> Option<&'static str> {
    let runs =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    let chromium = std::env::var("CHROMIUM").is_ok_and(|path| Path::new(&path).exists())
        || BROWSERS.iter().any(|path| Path::new(path).exists());
    match () {
        () if !runs("node") => Some("no node"),
        () if !chromium => Some("no chromium (CHROMIUM may name one)"),
        () if !scripts().join("node_modules").exists() => {
            Some("no packages: `npm ci` in longhaul-inspector/tests/ui")
        }
        () => None,
    }
}

/// A session in our own format.
struct Recording {
    lines: String,
    seconds: u32,
}

impl Recording {
    fn new(asked: &str) -> Self {
        let mut it = Self { lines: String::new(), seconds: 0 };
        it.line("user", json!([{"type": "text", "text": asked}]));
        it
    }

    fn line(&mut self, role: &str, content: Value) {
        self.seconds += 7;
        let (day, rest) = (1 + self.seconds / 86_400, self.seconds % 86_400);
        let ts = format!("2026-03-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60);
        let line = json!({"role": role, "content": content, "model": "claude-sonnet-4-5", "ts": ts});
        self.lines += &format!("{line}\n");
    }

    /// The model says something and calls a tool, which answers.
    fn step(&mut self, said: &str, tool: &str, path: &str, answer: &str) {
        let id = format!("c{}", self.seconds);
        let call = json!({"type": "tool_call", "id": id, "name": tool, "arguments": {"path": path}});
        self.line("assistant", json!([{"type": "text", "text": said}, call]));
        self.line("tool", json!([{"type": "tool_result", "id": id, "name": tool, "text": answer}]));
    }

    fn end(mut self, said: &str) -> String {
        self.line("assistant", json!([{"type": "text", "text": said}]));
        self.lines
    }
}

fn boats(quay: usize, lines: usize) -> String {
    (0..lines)
        .map(|boat| format!("quay {quay}, berth {boat}: boat_{quay}_{boat}, draught {boat} dm\n"))
        .collect()
}

/// A line is read early, and is not in later requests.
fn plain() -> String {
    let mut it = Recording::new("Ask the harbourmaster where every boat lies, then write the list.");
    it.step(
        "First the piers.",
        "Read",
        "piers.txt",
        &format!("{}MOORING_LINE_7 is at the north pier\n{}", boats(0, 90), boats(1, 90)),
    );
    for quay in 2..64 {
        let tool = ["Read", "Bash", "Grep", "WebFetch"][quay % 4];
        // Names of boats from far back: what is kept of them can be counted.
        let path = format!("boat_{}_17", quay.saturating_sub(9).max(2));
        it.step(&format!("Now quay {quay}."), tool, &path, &boats(quay, 40));
    }
    it.end("The list is written.")
}

/// What a page must never take for anything but text.
fn hostile() -> String {
    const EVIL: &str = "<img src=x onerror=alert(1)><script>alert(2)</script> \u{202e}evil\u{202c} \u{7}\u{1b}[31mred\u{200b}";
    let mut it = Recording::new(&format!("{EVIL} what is this?"));
    it.step(
        EVIL,
        "Read",
        "javascript:alert(3)",
        &format!("{EVIL}\n\"'`}}{{{{7*7}}}}</textarea></title>\u{0}\n"),
    );
    it.step("<b>bold</b>", "<u>Bash</u>", "x", EVIL);
    it.step("Now the long line.", "Read", "long.txt", &"0123456789abcdef ".repeat(3_000_000));
    it.step("And on.", "Read", "y", "short");
    it.step("And on.", "Read", "z", "short");
    it.end(EVIL)
}

fn ten_thousand_calls() -> String {
    let mut it = Recording::new("Walk through ten thousand files and say what is in each.");
    for file in 0..9_999 {
        let lines: String = (0..12).map(|line| format!("fn name_{file}_{line}() {{ {line} }}\n")).collect();
        it.step(
            &format!("File {file} is next."),
            ["Read", "Bash", "Grep"][file % 3],
            &format!("src/{file}.rs"),
            &lines,
        );
    }
    it.end("That is all of them.")
}

/// A profile that compacts nothing inside a turn sends all of it.
fn more_than_200_000_tokens() -> String {
    let mut it = Recording::new("Read all of it, and keep all of it.");
    for file in 0..170 {
        let tool = ["Read", "Bash"][file % 2];
        it.step(&format!("File {file}."), tool, &format!("all/{file}.txt"), &boats(file, 70));
    }
    it.end("Read.")
}

/// Stores a session, and gives its id.
fn import(home: &Home, name: &str, lines: &str, options: &[&str]) -> String {
    let path = home.text_at(name);
    fs::write(&path, lines).unwrap();
    let args = [&["sessions", "import", path.as_str(), "--json"], options].concat();
    let output = home.longhaul(&args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let row: Value = serde_json::from_slice(&output.stdout).unwrap();
    row["session"].as_str().unwrap_or_else(|| panic!("{row}")).to_owned()
}

/// Ends when the test does, however that is.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_works_in_a_real_browser() {
    if let Some(what) = missing() {
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: the inspector in a browser ({what})");
        return;
    }
    let (home, fake) = (Home::new(), Settings::new().start().await);
    let plain = import(&home, "plain.jsonl", &plain(), &["--window", "24000"]);
    let hostile = import(&home, "hostile.jsonl", &hostile(), &["--window", "200000"]);
    let big = import(&home, "big.jsonl", &ten_thousand_calls(), &["--window", "60000"]);
    let whole = ["--window", "1000000", "--profile", "archive"];
    let wide = import(&home, "wide.jsonl", &more_than_200_000_tokens(), &whole);
    let pages = home.text_at("pages");
    let args = ["inspect", &plain, "--export", &pages, "--redact", "north p[a-z]+"];
    let output = home.longhaul(&args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut command = home.longhaul(&["serve", "--listen", "127.0.0.1:0", "--window", "16000"]);
    command.args(["--anthropic", &fake.base_url()]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut serving = Serving(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address =
        line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).trim_end().to_owned();
    let token = fs::read_to_string(home.at("home/.local/share/longhaul/token")).unwrap();
    let base = format!("{address}/t/{}", token.trim());
    let about = json!({"base": format!("{base}/inspect/"), "gateway": format!("{base}/"),
        "exported": format!("file://{pages}/index.html"),
        "plain": plain, "hostile": hostile, "big": big, "wide": wide});
    let status = tokio::task::spawn_blocking(move || {
        Command::new("node")
            .arg("pages.mjs")
            .current_dir(scripts())
            .env("INSPECTOR_UI", about.to_string())
            .status()
    });
    assert!(status.await.unwrap().unwrap().success(), "see what the scripts say above");
}
