//! A whole host, as docs/embedding.md has it, with a scripted provider whose window is smaller than
//! anybody thought: `cargo run -p longhaul-wire --example embedding`.

// docs/embedding.md: from here
use std::error::Error;

use longhaul::{Cursor, Frame, Json, Message, Models, Outcome, Overflow, Prepared, Profile, Session};
use longhaul_wire::api::{Api, Request};

const MODEL: &str = "claude-sonnet-4-5";
const FRAME: &str = r#"{"model": "claude-sonnet-4-5", "system": "You mend parsers.", "max_tokens": 4096,
    "tools": [{"name": "Read", "input_schema": {"type": "object"}}]}"#;

/// Works on a task until the model asks for nothing more. Gives its answer.
fn work(task: &str, journal: &mut Vec<String>) -> Result<Message, Box<dyn Error>> {
    let mut session = match journal.as_slice() {
        [] => Session::new(Profile::longhaul(), Models::builtin().find(MODEL).clone()),
        lines => {
            let entries = lines.iter().map(|line| serde_json::from_str(line));
            Session::load(Profile::longhaul(), entries.collect::<Result<Vec<_>, _>>()?)?
        }
    };
    session.set_frame(Frame::from_json(&Json::new(FRAME)?).ok_or("no frame")?);
    session.push(Message::user(task));
    loop {
        let ticket = match session.prepare(Some(now()))? {
            Prepared::Send(ticket) => ticket,
            Prepared::Summarise(job) => {
                session.resolve(job.id, Outcome::Failed("no model writes summaries here".into()));
                continue;
            }
        };
        save(&session, journal)?;
        let body = Request::of(&session.outgoing()).encode(Api::Anthropic).body;
        let (answer, usage) = match call_model(&body) {
            Ok(answered) => answered,
            Err(TooLong { prompt, window }) => {
                session.overflowed(ticket, Overflow { prompt, window });
                continue;
            }
        };
        session.observe(ticket, &usage);
        session.push(answer.clone());
        for call in answer.calls() {
            session.push(Message::result(call.id.clone(), run_tool(call)));
        }
        save(&session, journal)?;
        session.take_notices().iter().for_each(|notice| eprintln!("{notice}"));
        if answer.calls().next().is_none() {
            return Ok(answer);
        }
    }
}

/// Appends what happened since the last time.
fn save(session: &Session, journal: &mut Vec<String>) -> serde_json::Result<()> {
    let new = session.since(Cursor(journal.len())).map(serde_json::to_string);
    journal.extend(new.collect::<Result<Vec<_>, _>>()?);
    Ok(())
}
// docs/embedding.md: to here

use longhaul::{Block, Role, Time, Tokens, ToolCall, Usage};
use serde_json::Value;

/// Two runs of the host over one journal.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut journal = Vec::new();
    let answer = work("Read all files and tell me which one defines `main`.", &mut journal)?;
    assert!(answer.texts().eq(["None of them does."]));
    let first = journal.len();
    assert_eq!(journal.iter().filter(|line| line.starts_with("{\"refused\"")).count(), 1);

    // As if the program had been started anew.
    let answer = work("Thank you.", &mut journal)?;
    assert!(answer.texts().eq(["You are welcome."]));
    assert!(journal.len() > first);

    let entries = journal.iter().map(|line| serde_json::from_str(line));
    let session = Session::load(Profile::longhaul(), entries.collect::<Result<Vec<_>, _>>()?)?;
    assert_eq!(session.budget().window, Tokens(WINDOW));
    println!("{} messages in {} entries.", session.log().messages().len(), journal.len());
    Ok(())
}

/// What fits into the provider's window: a tenth of what the model's row says.
const WINDOW: u64 = 20_000;

/// A provider that refuses a request.
struct TooLong {
    prompt: Option<Tokens>,
    window: Option<Tokens>,
}

/// Stands for a provider. It asks for one file after the other.
fn call_model(body: &str) -> Result<(Message, Usage), TooLong> {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let prompt = body.len() as u64 / 4;
    if prompt + request["max_tokens"].as_u64().unwrap_or_default() > WINDOW {
        return Err(TooLong { prompt: Some(Tokens(prompt)), window: Some(Tokens(WINDOW)) });
    }
    let last =
        request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let next = match last.pointer("/content/0/tool_use_id").and_then(Value::as_str) {
        Some(id) => id.trim_start_matches("call_").parse().unwrap_or(0) + 1,
        None => 0,
    };
    let answer = if last.to_string().contains("Thank you.") {
        Message::assistant("You are welcome.")
    } else if next == 60 {
        Message::assistant("None of them does.")
    } else {
        let path = serde_json::json!({ "path": format!("src/file_{next}.rs") });
        Message::new(Role::Assistant, vec![Block::call(format!("call_{next}"), "Read", Json::from(&path))])
    };
    Ok((answer, Usage { input: prompt, output: 20, ..Usage::default() }))
}

/// Stands for the tools of the host.
fn run_tool(call: &ToolCall) -> String {
    format!("// {}\nfn helper(value: u32) -> u32 {{ value }}\n", call.arguments.as_str()).repeat(30)
}

/// The time, which the engine does not know by itself.
fn now() -> Time {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
