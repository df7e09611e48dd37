//! Whole on first sight: the request that answers a call has every line of its result that is not pure noise
//! (progress, repeated lines, base64), up to the bound for one message. Later breaks may take more.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use longhaul::{Block, Json, Message, Meter, Profile, Role, Session, Why};

/// What a result may have when it enters, in bytes.
const BOUND: usize = 50_000;

/// One kind of output: who prints it, and its line of a number, with whether that line is pure noise.
struct Kind {
    name: &'static str,
    tool: &'static str,
    arguments: &'static str,
    line: fn(usize) -> (String, bool),
}

fn kind(
    name: &'static str,
    tool: &'static str,
    arguments: &'static str,
    line: fn(usize) -> (String, bool),
) -> Kind {
    Kind { name, tool, arguments, line }
}

fn said(line: String) -> (String, bool) {
    (line, false)
}

fn noise(line: String) -> (String, bool) {
    (line, true)
}

fn kinds() -> Vec<Kind> {
    fn data(n: usize) -> String {
        let letters = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4".chars();
        letters.cycle().skip(n % 60).take(76).collect()
    }
    vec![
        kind("cargo test", "Bash", r#"{"command":"cargo test"}"#, |n| {
            said(match n % 30 {
                11 => format!("test shop::case_{n} ... FAILED"),
                12 => format!("thread 'shop::case_{n}' panicked at src/shop.rs:{n}:9:"),
                _ => format!("test shop::case_{n} ... ok"),
            })
        }),
        kind("pytest", "Bash", r#"{"command":"pytest -v"}"#, |n| {
            said(format!("tests/test_shop.py::test_case_{n} PASSED [ {}%]", n % 100))
        }),
        kind("go test", "Bash", r#"{"command":"go test -v ./..."}"#, |n| {
            said(match n % 2 {
                0 => format!("=== RUN   TestCase{n}"),
                _ => format!("--- PASS: TestCase{n} (0.0{}s)", n % 10),
            })
        }),
        kind("jest", "Bash", r#"{"command":"npx jest"}"#, |n| {
            said(format!("✓ adds item {n} to the cart ({} ms)", n % 9))
        }),
        kind("cargo build", "Bash", r#"{"command":"cargo build"}"#, |n| match n % 8 {
            5 => said(format!("warning: unused variable: `value_{n}`")),
            6 => said(format!("  --> src/shop.rs:{n}:13")),
            _ => noise(format!("   Compiling crate_{n} v0.{n}.1")),
        }),
        kind("cargo update", "Bash", r#"{"command":"cargo update"}"#, |n| {
            said(match n % 3 {
                0 => format!("    Updating crate_{n} v1.{n}.0 -> v1.{n}.1"),
                1 => format!("      Adding crate_{n} v2.0.{n} (available: v3.0.0)"),
                _ => format!("     Locking {n} packages to latest compatible versions"),
            })
        }),
        kind("npm install", "Bash", r#"{"command":"npm install"}"#, |n| match n % 4 {
            0 => said(format!("npm warn deprecated left-pad-{n}@1.3.0: use String.prototype.padStart()")),
            1 => said(format!("added {n} packages in {}s", n % 7)),
            _ => noise(format!("npm http fetch GET 200 https://registry.npmjs.org/package-{n} {}ms", n % 90)),
        }),
        kind("pip install", "Bash", r#"{"command":"pip install -r requirements.txt"}"#, |n| match n % 3 {
            0 => said(format!("Requirement already satisfied: package-{n} in /usr/lib/python3 (1.{n})")),
            1 => noise(format!("Collecting package-{n}==2.{n}")),
            _ => noise(format!("  Downloading package_{n}-2.{n}-py3-none-any.whl ({n} kB)")),
        }),
        kind("progress bars", "Bash", r#"{"command":"pip install big"}"#, |n| match n % 4 {
            0 => said(format!("Downloading big-{n} ━━━ 10%\rSuccessfully installed big-{n}")),
            _ => noise(format!("Downloading big-{n} ━━━ 10%\rDownloading big-{n} ━━━ 100%")),
        }),
        kind("log", "Bash", r#"{"command":"tail -n 2000 app.log"}"#, |n| match n % 3 {
            0 => said(format!("2026-03-02 10:00:{:02} INFO request {n} served", n % 60)),
            _ => said("2026-03-02 10:00:00 INFO waiting for requests".to_owned()),
        }),
        kind("counted lines", "Bash", r#"{"command":"./count"}"#, |n| said(format!("{n}: 0"))),
        kind("closing brackets", "Bash", r#"{"command":"./tree"}"#, |n| {
            said(format!("{}}}", " ".repeat(12 - n % 12)))
        }),
        kind("search hits", "Grep", r#"{"pattern":"share"}"#, |n| {
            said(format!("src/shop_{n}.rs:{n}:    let share = total / {n};"))
        }),
        kind("hits of a command", "Bash", r#"{"command":"rg share"}"#, |n| {
            said(format!("src/shop.rs:{n}:    let share = total / {n};"))
        }),
        kind("listing", "LS", r#"{"path":"src"}"#, |n| said(format!("shop_{n}.rs"))),
        kind("paths", "Glob", r#"{"pattern":"**/*.rs"}"#, |n| said(format!("src/shop/part_{n}.rs"))),
        kind("listing of a command", "Bash", r#"{"command":"ls -la"}"#, |n| {
            said(format!("-rw-r--r-- 1 dev dev {n:6} Mar  2 10:00 shop_{n}.rs"))
        }),
        kind("diff", "Bash", r#"{"command":"git diff"}"#, |n| {
            said(match n % 9 {
                0 => format!("@@ -{n},7 +{n},7 @@ fn share()"),
                1 => format!("-    let share_{n} = total;"),
                2 => format!("+    let share_{n} = total / 2;"),
                _ => format!("     let line_{n} = {n};"),
            })
        }),
        kind("git log", "Bash", r#"{"command":"git log --oneline"}"#, |n| {
            said(format!("4f1a{n:04x} Round share {n} down"))
        }),
        kind("JSON", "mcp__shop__query", r#"{"sql":"select *"}"#, |n| {
            said(match n % 4 {
                0 => "  {".to_owned(),
                1 => format!("    \"id\": {n},"),
                2 => format!("    \"path\": \"/v1/items/{n}\""),
                _ => "  },".to_owned(),
            })
        }),
        kind("rows", "mcp__shop__export", "{}", |n| said(format!("{n},{},{}", n * 7 % 101, n * 31 % 997))),
        kind("table", "Bash", r#"{"command":"docker ps"}"#, |n| {
            said(format!("{n:012x}   shop:latest   Up {n} hours   0.0.0.0:{n}->80/tcp"))
        }),
        kind("Markdown", "WebFetch", r#"{"url":"https://example.com"}"#, |n| {
            said(match n % 3 {
                0 => format!("## Part {n}"),
                1 => format!("- item {n} of the list"),
                _ => String::new(),
            })
        }),
        kind("plain text", "Bash", r#"{"command":"./report"}"#, |n| {
            said(format!("The share of day {n} was as it always is."))
        }),
        kind("stack trace", "Bash", r#"{"command":"python app.py"}"#, |n| {
            said(match n % 2 {
                0 => format!("  File \"/usr/lib/python3/asyncio/events.py\", line {n}, in run"),
                _ => format!("    self._run(step_{n})"),
            })
        }),
        kind("source that was read", "Read", r#"{"path":"src/shop.rs"}"#, |n| {
            said(format!("{n:6}→    work();"))
        }),
        kind("source that was printed", "Bash", r#"{"command":"cat src/shop.rs"}"#, |n| {
            said(match n % 3 {
                0 => format!("pub fn share_{n}() {{"),
                1 => "    work();".to_owned(),
                _ => "}".to_owned(),
            })
        }),
        kind("data with words", "Bash", r#"{"command":"base64 a.png; ./report"}"#, |n| match n % 40 {
            39 => said(format!("That was picture {n} of the report.")),
            _ => noise(data(n)),
        }),
    ]
}

/// So many bytes of a kind of output, and its lines that are no noise.
fn output(kind: &Kind, bytes: usize, salt: usize) -> (String, Vec<String>) {
    let (mut text, mut wanted, mut before) = (String::new(), Vec::new(), String::new());
    let mut n = salt * 1_200;
    while text.len() < bytes {
        let (line, is_noise) = (kind.line)(n);
        text += &line;
        text.push('\n');
        if !is_noise && (line != before || line.is_empty()) {
            wanted.push(line.clone());
        }
        (before, n) = (line, n + 1);
    }
    (text, wanted)
}

/// The text of the newest result in view.
fn newest_result(session: &Session) -> String {
    let newest = session.view().parts().iter().rev().find(|part| part.message.role() == Role::Tool);
    let texts = newest.unwrap().message.results().map(|result| result.text.to_string());
    texts.collect()
}

/// The first of the wanted lines that is not shown where it should be.
fn missing(wanted: &[String], shown: &str) -> Option<String> {
    let mut shown = shown.split('\n');
    wanted.iter().find(|line| !shown.any(|shown| shown == *line)).cloned()
}

#[test]
fn every_result_is_whole_on_first_sight() {
    let mut folds = 0;
    for profile in [Profile::longhaul(), Profile::safe()] {
        for kind in &kinds() {
            for (bytes, window, steps) in [
                (900, 64_000, 3),
                (4_000, 64_000, 70),
                (20_000, 64_000, 20),
                (20_000, 200_000, 3),
                (BOUND - 2_000, 64_000, 10),
                (BOUND * 8 / 5, 200_000, 3),
            ] {
                let mut session =
                    Session::new(profile.clone(), model("m", window)).with_meter(Meter::neutral());
                session.push(Message::user("Find out why the shares are wrong."));
                for n in 0..steps {
                    let id = format!("call_{n}");
                    let call = Block::call(&*id, kind.tool, Json::new(kind.arguments).unwrap());
                    session.push(Message::new(Role::Assistant, vec![call]));
                    let (text, wanted) = output(kind, bytes, n);
                    session.push(Message::result(id, text));
                    ticket(&mut session);
                    let shown = newest_result(&session);
                    let about = format!("{} {} of {bytes} bytes, call {n}", profile.name, kind.name);
                    let least: usize = wanted.iter().map(|line| line.len() + 1).sum();
                    // Each run of noise leaves one line and a mark.
                    if bytes <= BOUND || least * 2 < BOUND {
                        assert_eq!(missing(&wanted, &shown), None, "{about}\n{shown}");
                    } else {
                        assert!(shown.len() > BOUND * 7 / 10, "{about}: {}", shown.len());
                    }
                }
                folds += session.ledger().edits().filter(|(edit, _)| edit.why != Why::Entry).count();
            }
        }
    }
    assert!(folds > 200, "requests that fold are among them: {folds} edits");
}

/// Each output of a script is whole too.
#[test]
fn outputs_of_a_script_are_whole_on_first_sight() {
    let source = r#"
        const [tests, file] = await Promise.all([
          tools.exec_command({cmd: "cargo test -p shop"}), tools.exec_command({cmd: "cat notes.md"}),
        ]);
        text(`== tests ==\n${tests.output}`); text(`== notes ==\n${file.output}`);
    "#;
    let kinds = kinds();
    let of = |name| kinds.iter().find(|kind| kind.name == name).unwrap();
    for profile in [Profile::longhaul(), Profile::safe()] {
        let mut session = Session::new(profile, model("m", 200_000)).with_meter(Meter::neutral());
        session.push(Message::user("Find out why the shares are wrong."));
        let arguments = Json::new(serde_json::json!({ "input": source }).to_string()).unwrap();
        session.push(Message::new(Role::Assistant, vec![Block::call("c", "exec", arguments)]));
        let (tests, of_tests) = output(of("cargo test"), 18_000, 0);
        let (notes, of_notes) = output(of("Markdown"), 18_000, 0);
        session.push(Message::result("c", format!("== tests ==\n{tests}== notes ==\n{notes}")));
        ticket(&mut session);
        let wanted: Vec<String> = of_tests.into_iter().chain(of_notes).collect();
        assert_eq!(missing(&wanted, &newest_result(&session)), None);
    }
}

/// `thrifty` may cut what the model has not seen.
#[test]
fn a_thrifty_profile_takes_tests_that_passed() {
    let kinds = kinds();
    let kind = kinds.iter().find(|kind| kind.name == "pytest").unwrap();
    let mut session = Session::new(Profile::thrifty(), model("m", 200_000)).with_meter(Meter::neutral());
    session.push(Message::user("Find out why the shares are wrong."));
    session.push(Message::new(
        Role::Assistant,
        vec![Block::call("c", kind.tool, Json::new(kind.arguments).unwrap())],
    ));
    let (text, wanted) = output(kind, 4_000, 0);
    session.push(Message::result("c", text));
    ticket(&mut session);
    assert!(missing(&wanted, &newest_result(&session)).is_some());
}
