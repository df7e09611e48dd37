//! What every lab command prints for sessions of each agent, in 80 and in 140 columns: a made home with all layouts,
//! empty and broken files among them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assert_cmd::Command;
use longhaul::{Block, Extra, Json, Message, Role, Time, ToolCall};
use longhaul_wire::agents::resume::{Origin, Resumable};
use serde_json::{Value, json};

struct Home(tempfile::TempDir);

/// The sessions of the home, by agent.
const SESSIONS: [(&str, &str); 7] = [
    ("claude-code", ".claude/projects/-srv-api/11111111-2222-4333-8444-555555555555.jsonl"),
    (
        "codex",
        ".codex/sessions/2026/03/02/rollout-2026-03-02T09-00-00-11111111-2222-4333-8444-555555555555.jsonl",
    ),
    (
        "pi",
        ".pi/agent/sessions/--srv-api--/2026-03-02T09-00-00-000Z_11111111-2222-4333-8444-555555555555.jsonl",
    ),
    ("opencode", ".local/share/opencode/opencode.db"),
    ("openhands", "others/output.jsonl"),
    ("mini-swe-agent", "others/mini.traj.json"),
    ("swe-agent", "others/one.traj"),
];

/// A session in which a parser is mended in ten steps and a question is asked at the end.
fn conversation() -> Vec<Arc<Message>> {
    let at = |step: usize| Time(1_772_442_000_000_000 + step as i64 * 20_000_000);
    let mut messages = vec![Message::user("Mend the parser in src/parse.rs, please.").with_time(at(0))];
    for step in 1..=10 {
        let (name, arguments, result) = match step % 3 {
            0 => (
                "Bash",
                r#"{"command":"cargo test header_line"}"#.to_owned(),
                "test header_line ... ok\n".repeat(40),
            ),
            1 => (
                "Read",
                format!(r#"{{"file_path":"/srv/api/src/part_{step}.rs"}}"#),
                format!("pub fn parse_part_{step}(line: &str) -> Part {{ limit_of_{step}() }}\n").repeat(40),
            ),
            _ => (
                "Edit",
                format!(
                    r#"{{"file_path":"/srv/api/src/part_{}.rs","old_string":"limit_of_{0}()","new_string":"7"}}"#,
                    step - 1
                ),
                "The file was changed.".to_owned(),
            ),
        };
        let call = ToolCall {
            id: format!("call_{step}").into(),
            name: name.into(),
            arguments: Json::new(arguments).unwrap(),
            server: false,
            extra: Extra::NONE,
        };
        let blocks = vec![Block::text(format!("Step {step}: I use {name}.")), Block::ToolCall(call)];
        messages
            .push(Message::new(Role::Assistant, blocks).with_model("claude-opus-4-5").with_time(at(step)));
        messages.push(Message::result(format!("call_{step}"), result));
    }
    messages.push(Message::assistant("All tests are green.").with_model("claude-opus-4-5").with_time(at(11)));
    messages.push(Message::user("Which files did you change?").with_time(at(12)));
    messages.push(
        Message::assistant("part_1.rs, part_4.rs and part_7.rs.")
            .with_model("claude-opus-4-5")
            .with_time(at(13)),
    );
    messages.into_iter().map(Arc::new).collect()
}

/// A line with the usage that the agent writes there: the prompt grows from line to line. What `compact` writes has
/// none.
fn billed(agent: Resumable, number: u64, line: &str) -> String {
    let read = 300 + 240 * number;
    let mut line: Value = serde_json::from_str(line).unwrap();
    let mut more = None;
    match agent {
        Resumable::ClaudeCode if line["type"] == "assistant" => {
            line["message"]["usage"] = json!({"input_tokens": 10, "output_tokens": 40, "cache_read_input_tokens": read, "cache_creation_input_tokens": 500});
        }
        Resumable::Pi if line["message"]["role"] == "assistant" => {
            line["message"]["usage"] =
                json!({"input": 10, "output": 40, "cacheRead": read, "cacheWrite": 500});
        }
        // Behind the last item of an answer.
        Resumable::Codex
            if line["payload"]["type"] == "function_call"
                || line["payload"]["role"] == "assistant" && !line.to_string().contains("Step ") =>
        {
            let usage = |times: u64| json!({"input_tokens": times * (read + 510), "cached_input_tokens": times * read, "output_tokens": times * 40});
            let info = json!({"total_token_usage": usage(number), "last_token_usage": usage(1)});
            let payload = json!({"type": "token_count", "info": info});
            more = Some(json!({"timestamp": line["timestamp"], "type": "event_msg", "payload": payload}));
        }
        Resumable::Codex if line["type"] == "session_meta" => {
            let payload = json!({"turn_id": "t1", "model": "gpt-5.5"});
            more = Some(json!({"timestamp": line["timestamp"], "type": "turn_context", "payload": payload}));
        }
        _ => {}
    }
    more.map_or(format!("{line}\n"), |more| format!("{line}\n{more}\n"))
}

/// The same conversation in opencode's store, as its tables are.
fn store(path: &Path) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch(
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
         INSERT INTO session VALUES ('ses_1', 'p', NULL, '/srv/api', 't');",
    )
    .unwrap();
    let mut answer = 0;
    let part_of = |message: usize, number: usize, data: Value| {
        let (message, part) = (format!("msg_{message:03}"), format!("prt_{message:03}_{number}"));
        file.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)", [part, message, data.to_string()])
            .unwrap();
    };
    for (n, message) in conversation().iter().enumerate() {
        let created = message.time().map_or(0, |time| time.0 / 1_000);
        let info = match message.role() {
            Role::Tool => {
                let result = message.results().next().unwrap();
                let call = conversation()[answer].calls().next().unwrap().clone();
                let input: Value = serde_json::from_str(call.arguments.as_str()).unwrap();
                let state = json!({"status": "completed", "input": input, "output": &*result.text});
                part_of(
                    answer,
                    1,
                    json!({"type": "tool", "tool": &*call.name, "callID": &*call.id, "state": state}),
                );
                continue;
            }
            Role::Assistant => {
                answer = n;
                let read = 300 + 240 * n;
                let tokens =
                    json!({"input": 10, "output": 40, "reasoning": 0, "cache": {"read": read, "write": 500}});
                json!({"role": "assistant", "modelID": "claude-opus-4-5", "time": {"created": created}, "tokens": tokens})
            }
            _ => json!({"role": "user", "time": {"created": created}}),
        };
        let row = [format!("msg_{n:03}"), created.to_string(), info.to_string()];
        file.execute("INSERT INTO message VALUES (?1, 'ses_1', ?2, ?3)", row).unwrap();
        part_of(n, 0, json!({"type": "text", "text": message.texts().next().unwrap()}));
    }
}

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let origin = Origin::in_folder("/srv/api").named("11111111-2222-4333-8444-555555555555");
        for (agent, path) in SESSIONS {
            match Resumable::from_name(agent) {
                Some(agent) => {
                    let lines = agent.write(&conversation(), &origin).lines;
                    home.write(
                        path,
                        &lines
                            .iter()
                            .enumerate()
                            .map(|(n, line)| billed(agent, n as u64, line))
                            .collect::<String>(),
                    );
                }
                None if agent == "opencode" => {
                    home.write(path, "");
                    store(&home.at(path));
                }
                None => {
                    let ending = if agent == "openhands" { "jsonl" } else { "json" };
                    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../longhaul-wire/tests/agents");
                    home.write(path, &fs::read_to_string(samples.join(format!("{agent}.{ending}"))).unwrap());
                }
            }
        }
        home.write(".claude/projects/-srv-api/empty.jsonl", "");
        home.write(".claude/projects/-srv-api/broken.jsonl", "{\"type\":\n\u{0}{{{{\n");
        home.write(
            ".codex/sessions/2026/03/02/rollout-cut.jsonl",
            "{\"timestamp\":\"2026-03-02T09:00:00Z\",\"type\":\"sess",
        );
        home.write(".pi/agent/sessions/--srv-api--/notes.txt", "no session\n");
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    /// What a command prints, on both ways, in so many columns.
    fn run(&self, columns: usize, args: &[&str]) -> String {
        let mut command = Command::cargo_bin("longhaul").unwrap();
        command.env_clear().env("HOME", self.0.path()).env("TZ", "UTC").env("COLUMNS", columns.to_string());
        let output = command.current_dir(self.0.path()).args(args).output().unwrap();
        let (out, said) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        for line in out.lines() {
            let is_data =
                ["convert", "recall"].contains(&args[0]) || args.contains(&"--json") || args.contains(&"-");
            let is_data = is_data || args[1..].starts_with(&["import"]);
            assert!(is_data || line.chars().count() <= columns, "{args:?} in {columns} columns: {line}");
        }
        let said = if said.is_empty() { said } else { format!("--- stderr\n{said}") };
        let shown = args.iter().map(|arg| arg.rsplit('/').next().unwrap()).collect::<Vec<_>>().join(" ");
        format!("$ longhaul {shown}\n{}{said}\n", out.trim_start_matches('\n'))
    }

    /// The same for each agent's session.
    fn of_each(&self, columns: usize, args: &[&str]) -> String {
        let [command, more @ ..] = args else { unreachable!() };
        SESSIONS.map(|(_, path)| self.run(columns, &[&[command, path], more].concat())).concat()
    }
}

/// Without times, which differ from run to run.
fn settled(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let timed = line.contains("µs") || line.contains(" ms");
        out.push_str(if timed { "(a line with times)" } else { line.trim_end() });
        out.push('\n');
    }
    out
}

fn check(name: &str, args: &[&str], each: bool) {
    let home = Home::new();
    for columns in [80, 140] {
        let text = if each { home.of_each(columns, args) } else { home.run(columns, args) };
        insta::assert_snapshot!(format!("{name}_{columns}"), settled(&text));
    }
}

#[test]
fn report() {
    check("report", &["report"], false);
}

#[test]
fn replay() {
    check("replay", &["replay", "--window", "3k"], true);
}

#[test]
fn explain() {
    check("explain", &["explain", "--window", "3k"], true);
    check("explain_call", &["explain", "--window", "3k", "--call", "last"], true);
}

#[test]
fn compact() {
    check("compact", &["compact", "--dry-run", "--window", "3k"], true);
}

#[test]
fn bench() {
    check("bench", &["bench", ".", "--window", "3k"], false);
}

#[test]
fn convert() {
    check("convert", &["convert", "others/mini.traj.json", "-"], false);
}

#[test]
fn profiles() {
    check("profiles", &["profiles"], false);
}

#[test]
fn recall() {
    let home = Home::new();
    let (_, file) = SESSIONS[0];
    let json = home.run(80, &["explain", file, "--window", "3k", "--call", "last", "--json"]);
    let at = json.find("\"handles\":[\"").unwrap() + "\"handles\":[\"".len();
    let handle = &json[at..at + 12];
    for columns in [80, 140] {
        let text = home.run(columns, &["recall", file, handle, "--window", "3k", "--lines", "1-4"]);
        insta::assert_snapshot!(format!("recall_{columns}"), text);
    }
}

#[test]
fn sessions() {
    let home = Home::new();
    let imported = home.run(80, &["sessions", "import", SESSIONS[0].1, "--store", "s.db"]);
    let id = imported.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let settled = |text: &str| {
        let text = settled(&text.replace(&id, "SESSION").replace(&id[..8], "SESSION"));
        let lines = text.lines().map(|line| if line.starts_with("made ") { "made (then)" } else { line });
        lines.collect::<Vec<_>>().join("\n").replace("SESSION  now ", "SESSION  age ")
    };
    for columns in [80, 140] {
        let list = home.run(columns, &["sessions", "list", "--store", "s.db"]);
        insta::assert_snapshot!(format!("sessions_list_{columns}"), settled(&list));
        let show = home.run(columns, &["sessions", "show", &id, "--store", "s.db"]);
        insta::assert_snapshot!(format!("sessions_show_{columns}"), settled(&show));
    }
}

#[test]
fn compact_writes_what_the_agent_goes_on_from() {
    let home = Home::new();
    for (agent, path) in SESSIONS {
        let said = home.run(80, &["compact", path, "-o", "out.jsonl", "--window", "3k", "--force"]);
        let goes_on = Resumable::from_name(agent).is_some();
        assert_eq!(said.contains("To go on from it"), goes_on, "{said}");
        let format = home.run(80, &["convert", "out.jsonl", "back.jsonl", "--force"]);
        let format_found = if goes_on { agent } else { "longhaul" };
        assert!(format.contains(&format!("messages of {format_found} to")), "{format}");
    }
    let other = home.run(80, &["compact", SESSIONS[0].1, "-o", "-", "--to", "longhaul", "--window", "3k"]);
    assert!(other.contains("{\"role\":"), "{other}");
}
