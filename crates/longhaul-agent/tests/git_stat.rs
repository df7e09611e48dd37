//! What git says of the project is kept, whatever is folded, and no program of the project is run for it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod fronts;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::Ground;
use fronts::{Recorder, sent, settings};
use longhaul::conversation::FactKind;
use longhaul::{Block, Json, Message, Models, Profile, Role, Session, Tokens};
use longhaul_agent::{Agent, AgentSettings, Mode, Permissions, Toolbox};
use longhaul_model::{Model, Scripted};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn git(root: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(arguments).current_dir(root);
    assert!(command.output().unwrap().status.success(), "git {arguments:?}");
}

/// A repository with one commit of a long file.
fn repository() -> Ground {
    let line = |at: usize| format!("pub fn function_{at}() -> usize {{ {at} }}\n");
    let ground = Ground::with(&[
        ("long.rs", &(0..120).map(line).collect::<String>()),
        ("small.txt", "one\n"),
        (".gitattributes", "*.txt filter=evil diff=evil\n"),
    ]);
    git(ground.project.root(), &["init", "-q"]);
    git(ground.project.root(), &["add", "."]);
    git(ground.project.root(), &["commit", "-qm", "first"]);
    ground
}

/// An agent that changes a file, and reads so much after it that the change is folded.
fn folding(ground: &Ground, profile: Profile) -> Agent {
    let reply = |n: usize, tool: &str, arguments| {
        Ok(Message::new(Role::Assistant, vec![Block::call(format!("c-{n}"), tool, Json::from(&arguments))]))
    };
    let mut script =
        vec![reply(0, "Edit", json!({"path": "small.txt", "old": "one", "new": "two", "all": true}))];
    script.insert(0, reply(100, "Read", json!({"path": "small.txt"})));
    script.extend((1..25).map(|n| reply(n, "Read", json!({"path": "long.rs", "offset": n, "limit": 100}))));
    script.push(Ok(Message::assistant("Done.")));
    let model: Arc<dyn Model> = Arc::new(Scripted::new(script));
    let session = Session::new(profile, Models::builtin().find("gpt-4o").clone()).with_window(Tokens(12_000));
    let settings = AgentSettings { steps: 40, max_output: Some(1_000), ..settings() };
    let (tools, permissions) = (Toolbox::files(&ground.project), Permissions::new(Mode::All));
    Agent::new(session, None, model, ground.project.clone(), tools, permissions, settings)
}

// covers: P-KEEP
#[tokio::test(flavor = "multi_thread")]
async fn what_git_says_is_in_the_request_after_a_fold() {
    for profile in [Profile::longhaul(), Profile::progressive(), Profile::archive()] {
        let ground = repository();
        let mut agent = folding(&ground, profile);
        agent.turn(Some("Say two."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
        let name = agent.session().profile().name.to_string();
        let said = agent.session().log().fact(FactKind::GitStat, "").map(str::to_owned);
        assert!(
            said.is_some_and(|said| said.contains("small.txt") && said.contains("1 file changed")),
            "{name}"
        );
        assert!(agent.session().ledger().edits().next().is_some(), "{name}: nothing was taken out");
        assert!(sent(&agent).contains("small.txt | 2 +-"), "{name}");
        assert!(agent.session().audit().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_that_the_project_names_is_run() {
    let ground = repository();
    let trace = ground.outside("trace");
    let evil = format!("echo ran >> {}; cat", trace.display());
    for name in [
        "core.fsmonitor",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "core.pager",
    ] {
        git(ground.project.root(), &["config", name, &evil]);
    }
    git(ground.project.root(), &["config", "filter.evil.required", "true"]);
    let mut agent = folding(&ground, Profile::longhaul());
    agent.turn(Some("Say two."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert!(agent.session().log().fact(FactKind::GitStat, "").is_some_and(|said| said.contains("small.txt")));
    assert!(!trace.exists(), "{:?}", std::fs::read_to_string(&trace));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_repository_or_a_fold_git_says_nothing() {
    let ground = Ground::with(&[("long.rs", &"fn a() {}\n".repeat(500)), ("small.txt", "one\n")]);
    let mut agent = folding(&ground, Profile::longhaul());
    agent.turn(Some("Say two."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert_eq!(agent.session().log().fact(FactKind::GitStat, ""), None);
    // Where everything fits, nobody asks.
    let ground = repository();
    ground.write("small.txt", "two\n");
    let mut agent = fronts::agent(&ground, [Ok(Message::assistant("Yes."))], Mode::Ask, Profile::longhaul());
    agent.turn(Some("Is it so?"), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert_eq!(agent.session().log().fact(FactKind::GitStat, ""), None);
    // The machine and the languages are known to summaries.
    assert!(agent.session().log().fact(FactKind::Environment, "").is_some());
}
