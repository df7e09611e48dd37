//! A whole host, as docs/embedding.md has it, with a scripted model: `cargo run -p longhaul-store --example embedding`.
//! It may be killed at any moment: started again with the same place, it goes on where it was.

// docs/embedding.md: from here
use std::error::Error;
use std::sync::Arc;

use longhaul::{Frame, Json, Message, Models, Prepared, Profile, Session, Summariser};
use longhaul_model::{Fault, Model, SummaryWriter};
use longhaul_store::{About, Filter, Keeper};
use longhaul_wire::api::Request;
use tokio::task::block_in_place;

const FRAME: &str = r#"{"model": "claude-sonnet-4-5", "system": "You mend parsers.", "max_tokens": 4096,
    "tools": [{"name": "Read", "input_schema": {"type": "object"}}]}"#;

/// The session that was worked on last in the store at this place (a file, or `postgres://…`), or a new one.
fn open(place: &str) -> Result<(Keeper, Session), Box<dyn Error>> {
    let profile = Profile { summariser: Summariser::Host, ..Profile::longhaul() };
    let store = longhaul_store::open(place)?;
    let (keeper, mut session) = match store.list(&Filter::default(), 1)?.first() {
        Some(stored) => Keeper::open(store.clone(), stored.id, profile)?,
        None => {
            let session = Session::new(profile, Models::builtin().find("claude-sonnet-4-5").clone());
            (Keeper::create(store, &About::default(), &session)?, session)
        }
    };
    session.set_frame(Frame::from_json(&Json::new(FRAME)?).ok_or("no frame")?);
    Ok((keeper, session))
}

/// Works until the model asks for nothing more. Gives its answer.
async fn work(
    model: Arc<dyn Model>,
    keeper: &mut Keeper,
    session: &mut Session,
) -> Result<String, Box<dyn Error>> {
    let mut summaries = SummaryWriter::new(model.clone(), session.budget().window);
    loop {
        let calls: Vec<_> = session.log().waiting_calls().into_iter().cloned().collect();
        for call in calls {
            session.push(Message::result(call.id.clone(), run_tool(&call)));
        }
        let ticket = match session.prepare(Some(now()))? {
            Prepared::Send(ticket) => ticket,
            Prepared::Summarise(job) => {
                summaries.wait(job, session).await;
                continue;
            }
        };
        block_in_place(|| keeper.save(session))?;
        summaries.begin(session);
        let reply = match model.ask(Request::of(&session.outgoing()), &mut |_| {}).await {
            Ok(reply) => reply,
            Err(Fault::TooLong { overflow, .. }) => {
                session.overflowed(ticket, overflow);
                continue;
            }
            Err(fault) => return Err(fault.into()),
        };
        reply.usage.iter().for_each(|usage| session.observe(ticket, usage));
        reply.messages.iter().cloned().for_each(|message| _ = session.push(message));
        summaries.take(session).await;
        block_in_place(|| keeper.save(session))?;
        session.take_notices().iter().for_each(|notice| eprintln!("{notice}"));
        if session.log().waiting_calls().is_empty() {
            block_in_place(|| keeper.finish(session))?;
            return Ok(reply.messages.iter().flat_map(|message| message.texts()).collect());
        }
    }
}
// docs/embedding.md: to here

use std::time::Duration;

use longhaul::{Block, Role, Time, Tokens, ToolCall};
use longhaul_model::{Asked, Reply, Scripted, Watch};

/// Works on a task, which is asked for once: `embedding [PLACE] [PAUSE]`, the pause in milliseconds before each
/// reply of the model.
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = tempfile::tempdir()?;
    let own = folder.path().join("sessions.db").display().to_string();
    let place = arguments.first().unwrap_or(&own);
    let pause = arguments.get(1).map_or(Ok(0), |pause| pause.parse())?;
    println!("{}", run(place, Duration::from_millis(pause)).await?);
    Ok(())
}

/// Goes on with the task, to its end.
pub async fn run(place: &str, pause: Duration) -> Result<String, Box<dyn Error>> {
    let (mut keeper, mut session) = block_in_place(|| open(place))?;
    session.set_window(Tokens(WINDOW));
    if session.log().messages().is_empty() {
        session.push(Message::user("Read all files and tell me which one defines `main`."));
    }
    let answered =
        session.log().messages().iter().filter(|message| message.role() == Role::Assistant).count();
    let answer = match answered > FILES {
        true => LAST.to_owned(),
        false => work(Arc::new(Reader::new(answered, pause)), &mut keeper, &mut session).await?,
    };
    let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
    let messages = session.log().messages().len();
    Ok(format!("{answer} {messages} messages, {folds} compactions, session {}.", keeper.id()))
}

/// What fits into the model's window here: a twentieth of what its row says, so that much must go.
const WINDOW: u64 = 10_000;
/// So many files are read.
const FILES: usize = 80;
const LAST: &str = "None of them does.";

/// A scripted model that asks for one file after the other, and writes summaries.
struct Reader {
    script: Scripted,
    summaries: Scripted,
    pause: Duration,
}

impl Reader {
    /// One that has answered so often already.
    fn new(answered: usize, pause: Duration) -> Self {
        let read = |n: usize| {
            let path = Json::from(&serde_json::json!({ "path": format!("src/file_{n}.rs") }));
            Message::new(Role::Assistant, vec![Block::call(format!("call_{n}"), "Read", path)])
        };
        let last = std::iter::once(Message::assistant(LAST));
        let script = (0..FILES).map(read).chain(last).skip(answered).map(Ok);
        let summary = || Ok(Message::assistant("Files were read one by one; none defines `main` so far."));
        let summaries = std::iter::repeat_with(summary).take(FILES);
        Self { script: Scripted::new(script), summaries: Scripted::new(summaries), pause }
    }
}

impl Model for Reader {
    fn name(&self) -> &str {
        "reader"
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            tokio::time::sleep(self.pause).await;
            // A summary is asked for by a person's message behind all others, or in a conversation of its own.
            let last = request.messages().last();
            let from_person = last.is_some_and(|last| last.role() == Role::User);
            let is_summary = from_person && request.messages().len() > 1;
            let reply: Reply = match is_summary {
                true => self.summaries.ask(request, watch).await?,
                false => self.script.ask(request, watch).await?,
            };
            Ok(reply)
        })
    }
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
