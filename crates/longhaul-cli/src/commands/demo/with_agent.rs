//! `longhaul demo --agent`: the agent at work on a small project in a temporary folder. What the model says is written
//! down in `demo/agent.json`; tools, edits and compactions are real.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longhaul::{Block, Json, Message, Models, Profile, Role, Session, Tokens, Usage};
use longhaul_agent::{Agent, AgentSettings, Ended, Form, Mode, Permissions, Project, Toolbox};
use longhaul_model::{Asked, Delta, Fault, Model, Reply, Stop, Watch};
use longhaul_wire::api::{Api, Request};
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::agent::spent::Spent;
use crate::agent::terminal::{Screen, TerminalFront, context_line};
use crate::error::Failure;
use crate::lab::recorded::without_model;
use crate::terminal::{FAINT, STRONG, grouped, width};

static SCRIPT: &str = include_str!("../../../demo/agent.json");
const WINDOW: Tokens = Tokens(10_000);
/// Sizes and prices are those of a model whose vocabulary is open.
const MODEL: &str = "gpt-4o";
/// Between two words, and before each reply.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));

#[derive(Deserialize)]
struct Script {
    /// The project: texts by path.
    files: std::collections::BTreeMap<String, String>,
    turns: Vec<Turn>,
}

/// What a person says, and what the model does about it.
#[derive(Deserialize)]
struct Turn {
    says: String,
    replies: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    text: String,
    #[serde(default)]
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
}

/// Runs the demo.
pub fn run(fast: bool) -> Result<(), Failure> {
    let broken = |error: serde_json::Error| Failure::Failed(format!("the bundled script: {error}"));
    let script: Script = serde_json::from_str(SCRIPT).map_err(broken)?;
    let folder = tempfile::Builder::new().prefix("longhaul-demo-").tempdir()?;
    for (path, text) in &script.files {
        let path = folder.path().join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    let project = Arc::new(Project::new(folder.path())?);
    let (says, replies): (Vec<String>, Vec<Vec<Line>>) =
        script.turns.into_iter().map(|turn| (turn.says, turn.replies)).unzip();
    let model = Arc::new(Actor::new(replies.into_iter().flatten(), fast));
    let row = Models::builtin().find(MODEL).clone();
    let mut front = TerminalFront::new(Screen::stdout(), Spent::on(&row), false);
    // The script has no summaries: the extractor writes them.
    let session = Session::new(without_model(Profile::longhaul()), row).with_window(WINDOW);
    let settings =
        AgentSettings { model: MODEL.to_owned(), max_output: Some(1_000), steps: 50, form: Form::Plain };
    let (tools, permissions) = (Toolbox::files(&project), Permissions::new(Mode::Edits));
    let mut agent = Agent::new(session, None, model, project, tools, permissions, settings);
    let screen = front.screen.clone();
    screen.line(format_args!(
        "The agent works on a small project, in a window of {} tokens.\n\
         {FAINT}What the model says is written down; tools, edits and compactions are real.{FAINT:#}",
        grouped(WINDOW.0)
    ));
    Runtime::new()?.block_on(async {
        for says in says {
            screen.line(format_args!("\n{STRONG}> {says}{STRONG:#}"));
            let ended = agent.turn(Some(&says), &mut front, &CancellationToken::new()).await;
            front.end_answer();
            match ended {
                Ok(Ended::Answered(_)) => {}
                Ok(other) => return Err(Failure::Failed(format!("the demo did not end well: {other:?}"))),
                Err(error) => return Err(Failure::Failed(error.to_string())),
            }
            screen.faint(context_line(agent.session(), &front.spent, width()));
        }
        Ok(())
    })?;
    let session = agent.session();
    let whole = session.meter().tokens(session.full()).tokens;
    screen.line(format_args!(
        "\nThe whole session has {} tokens; {} edits kept it inside of the window.\n\
         `longhaul` does the same in your project, with a key for a model.",
        grouped(whole.0),
        session.ledger().edits().count()
    ));
    Ok(())
}

/// A model that says its lines, at the speed of one that thinks.
struct Actor {
    state: Mutex<State>,
    fast: bool,
}

struct State {
    lines: VecDeque<Line>,
    said: usize,
    /// The request before, which a provider would have in its cache.
    before: Vec<Arc<Message>>,
}

impl Actor {
    fn new(lines: impl IntoIterator<Item = Line>, fast: bool) -> Self {
        let state = State { lines: lines.into_iter().collect(), said: 0, before: Vec::new() };
        Self { state: Mutex::new(state), fast }
    }
}

impl State {
    /// The next line, as a message.
    fn next(&mut self) -> Option<Message> {
        let Line { text, calls } = self.lines.pop_front()?;
        let mut blocks: Vec<Block> = Vec::new();
        if !text.is_empty() {
            blocks.push(Block::text(text));
        }
        for Call { tool, arguments } in calls {
            self.said += 1;
            blocks.push(Block::call(format!("call_{}", self.said), tool, Json::from(&arguments)));
        }
        Some(Message::new(Role::Assistant, blocks))
    }

    /// About what a provider would bill.
    fn bill(&mut self, request: &Request, message: &Message) -> Usage {
        let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
        let bytes = |messages: &[Arc<Message>]| messages.iter().map(|message| message.bytes()).sum::<usize>();
        let messages = request.messages();
        let prompt = request.encode(Api::Chat).body.len().max(bytes(messages));
        let same = self.before.iter().zip(messages).take_while(|(a, b)| a == b).count();
        // System prompt and tools are the same each time.
        let fixed = prompt - bytes(messages);
        let read = if self.before.is_empty() { 0 } else { tokens(fixed + bytes(&messages[..same])) };
        self.before = messages.to_vec();
        Usage {
            input: tokens(prompt).saturating_sub(read),
            cache_read: read,
            output: tokens(message.bytes()),
            ..Usage::default()
        }
    }
}

impl Model for Actor {
    fn name(&self) -> &str {
        "the script of the demo"
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            let (message, usage) = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let end = || Fault::Refused { status: 410, says: "the script is at its end".to_owned() };
                let message = state.next().ok_or_else(end)?;
                let usage = state.bill(&request, &message);
                (message, usage)
            };
            let (between, before) = PAUSES;
            if !self.fast {
                tokio::time::sleep(before).await;
            }
            for text in message.texts() {
                for word in text.split_inclusive(' ') {
                    watch(Delta::Text(word));
                    if !self.fast {
                        tokio::time::sleep(between).await;
                    }
                }
            }
            Ok(Reply { messages: vec![Arc::new(message)], usage: Some(usage), stop: Stop::Ended })
        })
    }
}
