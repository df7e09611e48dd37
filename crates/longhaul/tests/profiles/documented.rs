//! The small sessions of docs/profiles.md: what is told there goes into a session, and what the view
//! becomes stands there as it is.
//!
//! A message is a line: `user:`, `assistant:`, `thinking:`, `call:` with a name and its arguments,
//! `result:`. Lines behind it that begin with two spaces go on with it. Thinking and the line behind it
//! are one message.

use super::*;

const DOC: &str = include_str!("../../../../docs/profiles.md");

/// The block of this kind in the section of a profile.
fn block<'a>(profile: &str, kind: &str) -> &'a str {
    let section = DOC.split("\n## ").find(|section| section.starts_with(profile)).unwrap();
    let start = format!("\n```{kind}\n");
    let block = section.split_once(&start).unwrap_or_else(|| panic!("no {kind} of {profile}")).1;
    block.split_once("\n```").unwrap().0
}

/// Tells a session what the block says.
fn tell(session: &mut Session, block: &str) {
    let mut lines = block.lines().peekable();
    let mut thinking = Vec::new();
    let mut calls = 0;
    while let Some(line) = lines.next() {
        let (who, first) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        let mut text = first.to_owned();
        while let Some(more) = lines.peek().and_then(|line| line.strip_prefix("  ")) {
            text = text + "\n" + more;
            lines.next();
        }
        let mut answer = |block: Block| {
            let blocks = thinking.drain(..).chain([block]).collect();
            session.push(Message::new(Role::Assistant, blocks));
        };
        match who {
            "user" => _ = session.push(Message::user(text)),
            "thinking" => thinking.push(Block::thinking(text)),
            "assistant" => answer(Block::text(text)),
            "call" => {
                calls += 1;
                let (name, arguments) = text.split_once(' ').unwrap();
                answer(Block::call(format!("c{calls}"), name, Json::new(arguments).unwrap()));
            }
            "result" => _ = session.push(Message::result(format!("c{calls}"), text)),
            _ => panic!("{line}"),
        }
    }
}

/// The view in the same form.
fn told(session: &Session) -> String {
    let mut all = String::new();
    for part in session.view().parts() {
        for block in part.message.blocks() {
            let (who, text) = match block {
                Block::Text(text) => (part.message.role().name(), text.text.to_string()),
                Block::Thinking(thinking) => ("thinking", thinking.text.to_string()),
                Block::ToolCall(call) => ("call", format!("{} {}", call.name, call.arguments.as_str())),
                Block::ToolResult(result) => ("result", result.text.to_string()),
                other => panic!("{other:?}"),
            };
            let text = text.trim_end().replace('\n', "\n  ").replace("\n  \n", "\n\n");
            all += &format!("{who}: {text}\n");
        }
    }
    all.trim_end().to_owned()
}

fn is_documented(session: &Session) {
    let profile = session.profile().name.clone();
    let (expected, view) = (block(&profile, "view"), told(session));
    assert!(view == expected, "docs/profiles.md shows of {profile}:\n{expected}\n\nit is:\n{view}");
}

// covers: T-L1 T-L2
#[test]
fn the_small_session_of_transform() {
    let mut profile = Profile::transform();
    profile.constants.keep_recent_tool_results = 2;
    let mut session = session(profile, 200_000);
    tell(&mut session, block("transform", "session"));
    ready(&mut session);
    is_documented(&session);
}

// covers: M-TRIG M-SUM M-REBUILD
#[test]
fn the_small_session_of_mini() {
    let mut session = asking(Profile::mini(), 128_000);
    tell(&mut session, block("mini", "session"));
    ready(&mut session);
    observe(&mut session, &Usage { input: 102_401, ..Usage::default() });
    session.push(Message::user("Now the printer."));
    ready_with(&mut session, block("mini", "summary"));
    is_documented(&session);
}
