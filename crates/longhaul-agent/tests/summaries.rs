//! Summaries by the model: beside the work, or while the work waits and the person sees it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod fronts;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Ground;
use fronts::{Heard, Recorder, settings};
use longhaul::{Block, Json, Message, Models, Profile, Role, Session, Summariser, Tokens, Usage};
use longhaul_agent::{Agent, AgentSettings, Ended, Mode, Permissions, Toolbox};
use longhaul_model::{Asked, Model, Reply, Stop, Watch};
use longhaul_wire::api::Request;
use tokio_util::sync::CancellationToken;

/// Reads a file again and again, and writes a summary when it is asked for one.
#[derive(Default)]
struct Worker {
    calls: AtomicUsize,
    summaries: AtomicUsize,
}

const CALLS: usize = 60;

impl Model for Worker {
    fn name(&self) -> &str {
        "worker"
    }

    fn ask<'a>(&'a self, request: Request, _: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            let last = request.messages().last().map(|message| message.texts().collect::<String>());
            let is_job = last.is_some_and(|text| text.to_lowercase().contains("summar"));
            let message = if is_job {
                self.summaries.fetch_add(1, Ordering::Relaxed);
                Message::assistant(
                    "Goal: read all files. Files were read, one after the other; nothing was changed.",
                )
            } else {
                match self.calls.fetch_add(1, Ordering::Relaxed) {
                    n if n < CALLS => {
                        let arguments = serde_json::json!({ "path": format!("src/file_{}.rs", n % 5) });
                        let call = Block::call(format!("c-{n}"), "Read", Json::from(&arguments));
                        Message::new(Role::Assistant, vec![call])
                    }
                    _ => Message::assistant("All read."),
                }
            };
            let bytes: usize = request.messages().iter().map(|message| message.bytes()).sum();
            let usage = Usage { input: bytes as u64 / 4, output: 20, ..Usage::default() };
            Ok(Reply { messages: vec![Arc::new(message)], usage: Some(usage), stop: Stop::Ended })
        })
    }
}

async fn sixty_reads(profile: Profile) -> (Arc<Worker>, Recorder, Agent) {
    let ground = Ground::new();
    for n in 0..5 {
        let line = |at: usize| format!("pub fn function_{n}_{at}() -> usize {{ {at} }}\n");
        ground.write(&format!("src/file_{n}.rs"), (0..50).map(line).collect::<String>());
    }
    let worker = Arc::new(Worker::default());
    let session = Session::new(profile, Models::builtin().find("gpt-4o").clone()).with_window(Tokens(16_000));
    let (tools, permissions) = (Toolbox::files(&ground.project), Permissions::new(Mode::Ask));
    let settings = AgentSettings { steps: CALLS + 10, max_output: Some(1_000), ..settings() };
    let model: Arc<dyn Model> = worker.clone();
    let mut agent = Agent::new(session, None, model, ground.project.clone(), tools, permissions, settings);
    let mut front = Recorder::default();
    let ended = agent.turn(Some("Read all files."), &mut front, &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("All read.".to_owned()));
    assert!(agent.session().audit().is_empty());
    (worker, front, agent)
}

// covers: A-BLOCK
#[tokio::test(flavor = "multi_thread")]
async fn archive_waits_for_its_summary_and_says_so() {
    let profile = Profile { summariser: Summariser::Host, ..Profile::archive() };
    let (worker, front, _) = sixty_reads(profile).await;
    assert!(worker.summaries.load(Ordering::Relaxed) > 0);
    // Each is billed, and who watches is told so.
    let billed = |heard: &Heard| if let Heard::SummaryBilled(calls) = heard { *calls } else { 0 };
    assert_eq!(front.heard.iter().map(billed).sum::<u64>(), worker.summaries.load(Ordering::Relaxed) as u64);
    let at = |wanted: fn(&Heard) -> bool| front.heard.iter().position(wanted);
    let waits = at(|heard| matches!(heard, Heard::Summarising)).unwrap();
    let told = at(|heard| matches!(heard, Heard::Compacted(_)));
    assert!(told.is_some(), "{:?}", front.heard);
    // Nothing is sent between the question and the end of the compaction.
    let next = front.heard[waits + 1..]
        .iter()
        .find(|heard| !matches!(heard, Heard::Summarising | Heard::Notice(_) | Heard::SummaryBilled(_)));
    assert!(matches!(next, Some(Heard::Compacted(_))), "{next:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn longhaul_works_on_while_its_summary_is_written() {
    let profile = Profile { summariser: Summariser::Host, ..Profile::longhaul() };
    let (worker, front, agent) = sixty_reads(profile).await;
    assert!(worker.summaries.load(Ordering::Relaxed) > 0);
    assert!(front.heard.iter().any(|heard| matches!(heard, Heard::Compacted(_))), "{:?}", front.heard);
    assert!(agent.session().size().tokens <= agent.session().budget().hard);
}
