//! Transcripts of other agents, from small files written for this project: nothing is lost on
//! the way in. `UPDATE_GOLDEN=1` writes what is read anew.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use longhaul_wire::{agents, transcript};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents")
}

/// What a file is read into, a line a message, conversations numbered.
fn read(file: &str) -> (&'static str, String) {
    let mut reader = agents::open(&folder().join(file)).unwrap();
    let mut lines = String::new();
    for item in reader.by_ref() {
        let (number, message) = item.unwrap();
        lines += &format!("{number} {}\n", transcript::encode(&message));
    }
    assert_eq!(reader.cut(), None);
    (reader.format(), lines)
}

fn golden(file: &str, format: &str) {
    let (found, lines) = read(file);
    assert_eq!(found, format);
    let path = folder().join(file).with_extension("expected");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(path).unwrap());
}

#[test]
fn claude_code() {
    golden("claude-code.jsonl", "claude-code");
}

#[test]
fn codex() {
    golden("codex.jsonl", "codex");
}

#[test]
fn pi() {
    golden("pi.jsonl", "pi");
}

#[test]
fn branches_of_pi_are_conversations_of_their_own() {
    golden("pi-branches.jsonl", "pi");
}

#[test]
fn opencode() {
    golden("opencode.json", "opencode");
}

#[test]
fn openhands() {
    golden("openhands.jsonl", "openhands");
}

#[test]
fn who_speaks() {
    for (file, format, words) in [
        (
            "claude-code-speakers.jsonl",
            "claude-code",
            &["Why is the build red?", "Look at the lock file too.", "the parser, please"][..],
        ),
        ("codex-speakers.jsonl", "codex", &["Why is the build red?", "Go on."]),
        ("pi-speakers.jsonl", "pi", &["What is it?"]),
    ] {
        golden(file, format);
        let mut log = longhaul::conversation::Log::new();
        for item in agents::open(&folder().join(file)).unwrap() {
            log.push(item.unwrap().1);
        }
        let said: Vec<&str> = log.messages().iter().flat_map(|message| message.words()).collect();
        assert_eq!(said, words, "{format}");
        let goal = log.goal_message().and_then(|at| log.get(at)).unwrap();
        assert_eq!(goal.words().next(), Some(words[0]), "{format}");
        // Nobody reads raw JSON of a hook.
        let texts = log.messages().iter().flat_map(|message| message.texts());
        assert!(texts.into_iter().all(|text| !text.starts_with('{')), "{format}");
    }
}

#[test]
fn requests_of_apis() {
    for (file, format, first) in
        [("chat", "openai", 9), ("responses", "openai-responses", 10), ("anthropic", "anthropic", 7)]
    {
        let path = folder().join(format!("../api/{file}.json"));
        let mut reader = agents::open(&path).unwrap();
        assert_eq!(reader.format(), format);
        let messages: Vec<_> = reader.by_ref().map(|item| item.unwrap().1).collect();
        assert_eq!(messages.len(), first, "{format}");
        // The frame is in the first line, and a transcript of them is read alike.
        let lines: Vec<_> = messages.iter().map(|m| transcript::encode(m).into_owned()).collect();
        assert!(lines[0].contains(r#""frame":{"model":"#), "{}", lines[0]);
        for (line, message) in lines.iter().zip(messages) {
            assert_eq!(transcript::decode(line).unwrap().without_raw(), message.without_raw());
        }
    }
    let several = "{\"model\":\"m\",\"messages\":[]}\n{\"model\":\"m\",\"messages\":[]}\n";
    let error = agents::read(std::io::Cursor::new(several.as_bytes())).unwrap_err();
    assert_eq!(error.to_string(), "holds several requests: give each a file of its own");
}

#[test]
fn mini_swe_agent() {
    golden("mini-swe-agent.json", "mini-swe-agent");
}

#[test]
fn swe_agent() {
    golden("swe-agent.json", "swe-agent");
}

#[test]
fn messages_of_an_api_a_line_each_or_in_an_array() {
    golden("openai-lines.jsonl", "message-lines");
    golden("anthropic-lines.jsonl", "message-lines");
    golden("messages.json", "messages");
    // A conversation without calls is our own, byte for byte.
    let own = "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"yes\"}\n";
    assert_eq!(agents::read(own.as_bytes()).unwrap().format(), agents::OWN);
    // Lists of other things are none.
    for text in ["[]", "[1]", "[{\"role\":\"user\"}]", "[{\"source\":\"x\"}]"] {
        assert_eq!(agents::read(text.as_bytes()).unwrap().filter(Result::is_ok).count(), 0, "{text}");
    }
}

#[test]
fn our_own_and_what_is_none() {
    let read = |text: &'static str| agents::read(text.as_bytes()).unwrap();
    let mut own = read("\n{\"role\":\"user\",\"content\":\"hi\"}\n");
    assert_eq!((own.format(), own.by_ref().count()), (agents::OWN, 1));
    let mut none = read("{\"a\":1}\nnot json\n");
    assert_eq!(none.format(), agents::OWN);
    assert!(none.all(|item| item.is_err()));
    assert_eq!(read("").count(), 0);
}

#[test]
fn a_line_that_cannot_be_read_is_said_and_a_cut_one_left_out() {
    let text = std::fs::read_to_string(folder().join("pi.jsonl")).unwrap();
    let broken = text.replacen("\n{\"type\":\"message\"", "\n{oops\n{\"type\":\"message\"", 1);
    let cut = &broken[..broken.len() - 30];
    let mut reader = agents::read(std::io::Cursor::new(cut.as_bytes().to_vec())).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = reader.by_ref().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (4, 1));
    assert!(bad[0].as_ref().unwrap_err().to_string().starts_with("line 2: the line is not valid JSON"));
    assert_eq!(reader.cut().unwrap().line, 8);
}

/// A file whose start is damaged, or has a byte order mark, is still what it is.
#[test]
fn a_damaged_start_hides_no_session() {
    let whole = std::fs::read_to_string(folder().join("claude-code.jsonl")).unwrap();
    let (_, expected) = read("claude-code.jsonl");
    let messages = |text: String| {
        let reader = agents::read(std::io::Cursor::new(text.into_bytes())).unwrap();
        let format = reader.format();
        (format, reader.filter_map(Result::ok).count())
    };
    let all = expected.lines().count();
    assert_eq!(messages(format!("\u{feff}{whole}")), ("claude-code", all));
    assert_eq!(messages(format!("no JSON at all\n{whole}")), ("claude-code", all));
    assert_eq!(messages(format!("{{\"type\":\"user\",\"mess\n{whole}")), ("claude-code", all));
    assert_eq!(messages(format!("{}{whole}", "\n".repeat(100_000))), ("claude-code", all));
}

/// Halves of characters, as programs in JavaScript write them, cost no message.
#[test]
fn a_half_of_a_character_costs_no_message() {
    let own = r#"{"role":"user","content":[{"type":"text","text":"cut \ud83d"}]}"#;
    let claude = r#"{"type":"user","uuid":"a","message":{"role":"user","content":"cut \ud83d"}}"#;
    for (line, format) in [(own, "longhaul"), (claude, "claude-code")] {
        let mut reader = agents::read(std::io::Cursor::new(format!("{line}\n").into_bytes())).unwrap();
        assert_eq!(reader.format(), format);
        let (_, message) = reader.next().unwrap().unwrap();
        assert_eq!(message.texts().next(), Some("cut \u{fffd}"));
    }
}

/// A packed file that was cut behind a request ends; it was read for ever.
#[test]
fn a_cut_packed_request_ends() {
    use std::io::Write;
    let body = format!(
        "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}\n{}",
        " ".repeat(9_000)
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(body.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for cut in [1, 8, 12, 4_000] {
        let stream = std::io::Cursor::new(packed[..packed.len() - cut].to_vec());
        assert_eq!(
            agents::read(stream).map_or(0, |reader| reader.filter_map(Result::ok).count()),
            1,
            "{cut}"
        );
    }
}

/// Few bytes that would take gigabytes.
#[test]
fn more_values_than_a_session_has_are_no_session() {
    let many = format!("[{}0]", "0,".repeat(9_000_000));
    let mut reader = agents::read(std::io::Cursor::new(many.into_bytes())).unwrap();
    assert!(reader.all(|item| item.is_err()));
}
