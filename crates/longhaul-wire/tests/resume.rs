//! Session files of agents that are written: what is read back is the same conversation.

#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Cursor};
use std::sync::Arc;

use longhaul::conversation::Thinking;
use longhaul::{Block, Json, Message, Role, Seal, Time, ToolCall};
use longhaul_wire::agents::resume::{Origin, Resumable, Written};
use longhaul_wire::agents::{self, FORMATS};

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: Json::new(arguments).unwrap(),
        server: false,
        extra: longhaul::Extra::NONE,
    })
}

/// What a compaction leaves: a summary, words, an answer with two calls, results, and a last answer.
fn compacted() -> Vec<Arc<Message>> {
    let thought = Thinking {
        text: "Look first.".into(),
        seal: Seal::Signed("c2ln".into()),
        extra: longhaul::Extra::NONE,
    };
    let at = |second: i64| Time(1_772_442_000_000_000 + second * 1_000_000);
    let answer = Message::new(
        Role::Assistant,
        vec![
            Block::Thinking(thought),
            Block::text("I read both."),
            call("toolu_1", "Read", r#"{"file_path":"/srv/api/a.rs"}"#),
            call("toolu_2", "Bash", r#"{"command":"cargo test"}"#),
        ],
    );
    let Block::ToolResult(mut failed) = Block::result("toolu_2", "1 failed") else { unreachable!() };
    failed.is_error = true;
    let messages = [
        Message::system("You are careful."),
        Message::new(Role::Summary, vec![Block::text("The parser was mended in src/parse.rs.")]),
        Message::user("Now the tests, please.").with_time(at(0)),
        answer.with_model("claude-opus-4-5").with_time(at(4)),
        Message::result("toolu_1", "fn a() {}\n"),
        Message::new(Role::Tool, vec![Block::ToolResult(failed)]),
        Message::assistant("One test is red.").with_model("claude-opus-4-5").with_time(at(9)),
    ];
    messages.into_iter().map(Arc::new).collect()
}

fn written(agent: Resumable) -> Written {
    agent.write(&compacted(), &Origin::in_folder("/srv/api"))
}

fn read(written: &Written) -> (Vec<Message>, &'static str) {
    let text: String = written.lines.iter().flat_map(|line| [line, "\n"]).collect();
    let reader = agents::read(BufReader::new(Cursor::new(text.into_bytes()))).unwrap();
    let format = reader.format();
    (reader.map(|message| message.unwrap().1).collect(), format)
}

/// Words, calls and results in their order, whatever the roles.
fn said(messages: &[Message]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| message.blocks());
    let said = blocks.map(|block| match block {
        Block::Text(b) => b.text.to_string(),
        Block::Thinking(b) => format!("thought {}", b.text),
        Block::ToolCall(b) => format!("call {} {} {}", b.id, b.name, b.arguments.as_str()),
        Block::ToolResult(b) => format!("result {} {} {}", b.id, b.is_error, b.text),
        other => format!("{other:?}"),
    });
    said.collect()
}

#[test]
fn what_is_written_is_read_back() {
    let whole: Vec<Message> = compacted().iter().map(|message| (**message).clone()).collect();
    for agent in Resumable::ALL {
        let written = written(agent);
        let (messages, format) = read(&written);
        assert_eq!(format, agent.name());
        let (wanted, found) = (said(&whole), said(&messages));
        for words in &wanted {
            let has_no_place = match agent {
                // Each has a system prompt of its own; what Anthropic signed, OpenAI cannot read. Codex has no flag
                // for a result that is an error: it is told in words.
                Resumable::Codex => words.starts_with("thought"),
                Resumable::ClaudeCode | Resumable::Pi => words == "You are careful.",
            };
            let words = match agent {
                Resumable::Codex => words.replace(
                    " true ",
                    " false [The tool failed.]
",
                ),
                Resumable::ClaudeCode | Resumable::Pi => words.clone(),
            };
            let here = found.iter().any(|found| found.contains(&words));
            assert_eq!(here, !has_no_place, "{}: {words:?} in {found:#?}", agent.name());
        }
        // A person said one thing, and the summary is nobody's word.
        let words: Vec<&str> = messages.iter().flat_map(|message| message.words()).collect();
        assert_eq!(words, ["Now the tests, please."], "{}", agent.name());
        // Nothing was billed for this file.
        assert!(messages.iter().filter_map(|message| message.usage()).all(|usage| usage.prompt().0 == 0));
        assert!(!messages.iter().any(|message| message.is_recorded_compaction()), "{}", agent.name());
    }
}

#[test]
fn lines_are_the_same_each_time() {
    for agent in Resumable::ALL {
        assert_eq!(written(agent), written(agent));
        insta::assert_snapshot!(agent.name(), written(agent).lines.join("\n"));
        assert!(FORMATS.iter().any(|format| format.name == agent.name()));
        assert_eq!(Resumable::from_name(agent.name()), Some(agent));
    }
    assert_eq!(Resumable::from_name("openhands"), None);
}

#[test]
fn a_session_has_the_name_that_it_is_given_and_the_facts_of_its_origin() {
    let folder = std::env::temp_dir().join(format!("longhaul-resume-{}", std::process::id()));
    let line = r#"{"timestamp":"2026-03-02T09:00:00.000Z","type":"session_meta","payload":{"id":"r1","cwd":"/srv/web","model_provider":"local","base_instructions":{"text":"You are careful."}}}"#;
    std::fs::write(&folder, format!("{line}\n")).unwrap();
    let origin = Origin::read(&folder, "/here");
    std::fs::remove_file(&folder).unwrap();
    let origin = origin.unwrap().named("7e1fe0b8-0000-4000-8000-000000000000");
    let written = Resumable::Codex.write(&compacted(), &origin);
    assert_eq!(written.session, "7e1fe0b8-0000-4000-8000-000000000000");
    let meta: serde_json::Value = serde_json::from_str(&written.lines[0]).unwrap();
    let meta = &meta["payload"];
    assert_eq!((&meta["cwd"], &meta["model_provider"]), (&"/srv/web".into(), &"local".into()));
    // Base instructions stand in the first line alone.
    let text = written.lines.concat();
    assert_eq!(text.matches("You are careful.").count(), 1);
}
