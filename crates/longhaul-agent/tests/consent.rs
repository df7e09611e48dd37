//! What a person agrees to is what runs: the questions of an agent, and what becomes of the answers.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod fronts;

use std::future::Future;
use std::pin::Pin;

use common::Ground;
use fronts::{Recorder, agent, answered};
use longhaul::{Block, Json, Message, Profile, Role};
use longhaul_agent::{
    Agent, Answer, Asked, Bash, BashSettings, Consent, Event, Front, Keep, Mode, Reach, Tool,
};
use longhaul_model::Fault;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A reply that calls these tools.
fn calls(calls: &[(&str, Value)]) -> Result<Message, Fault> {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let block = |(tool, arguments): &(&str, Value)| {
        let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Block::call(format!("call-{id}"), *tool, Json::from(arguments))
    };
    Ok(Message::new(Role::Assistant, calls.iter().map(block).collect()))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

fn agent_with_bash(ground: &Ground, script: Vec<Result<Message, Fault>>, mode: Mode) -> Agent {
    let script = script.into_iter().chain([Ok(Message::assistant("Done."))]);
    let mut agent = agent(ground, script, mode, Profile::longhaul());
    let bash = Bash::new(&ground.project, BashSettings::default()).unwrap();
    agent.add_tools([Box::new(bash) as Box<dyn Tool>]);
    agent
}

async fn turn(agent: &mut Agent, front: &mut dyn Front) {
    agent.turn(Some("Do it."), front, &CancellationToken::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_command_and_the_whole_change_are_asked_for() {
    let ground = Ground::with(&[("src/a.txt", "one\ntwo\n")]);
    let command = format!("echo tidy  # comment\ntouch PWN\necho end{}", " ".repeat(5_000));
    let content: String = (0..500).map(|line| format!("{line}\n")).collect();
    let script = vec![
        calls(&[bash(&command)]),
        calls(&[("Read", json!({"path": "src/a.txt"}))]),
        calls(&[("Edit", json!({"path": "src/a.txt", "old": "two", "new": "2"}))]),
        calls(&[("Write", json!({"path": "src/new.txt", "content": content}))]),
    ];
    let mut agent = agent_with_bash(&ground, script, Mode::Ask);
    let mut front = AsksAll::default();
    turn(&mut agent, &mut front).await;
    let [ran, edited, written] = front.consents.as_slice() else { panic!("{:?}", front.consents) };
    assert_eq!(ran.what, Asked::Command { command, background: false, reach: Reach { writes: None } });
    assert_eq!(ran.rule, None);
    let Asked::Change(change) = &edited.what else { panic!("{edited:?}") };
    assert_eq!(change.diff(), "@@ -1,2 +1,2 @@\n one\n-two\n+2");
    assert_eq!(edited.rule.as_deref(), Some("Edit(src/**)"));
    assert_eq!(written.lines().len(), 502);
    assert!(!ground.path("PWN").exists() && !ground.path("src/new.txt").exists());
    assert_eq!(ground.content("src/a.txt"), "one\ntwo\n");
}

/// Says no, and keeps what was asked.
#[derive(Default)]
struct AsksAll {
    consents: Vec<Consent>,
}

impl Front for AsksAll {
    fn event(&mut self, _: Event<'_>) {}

    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        self.consents.push(consent.clone());
        Box::pin(async { Answer::No(None) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_command_runs_and_the_model_is_told() {
    let ground = Ground::new();
    let script = vec![calls(&[bash("touch a")]), calls(&[bash("touch c")])];
    let mut agent = agent_with_bash(&ground, script, Mode::Ask);
    agent.permissions_mut().deny("Bash(rm)").unwrap();
    let answers = vec![Answer::Edited("r''m x".to_owned()), Answer::Edited("touch b".to_owned())];
    let mut front = Recorder { answers, ..Recorder::default() };
    turn(&mut agent, &mut front).await;
    assert!(ground.path("b").exists() && !ground.path("a").exists() && !ground.path("c").exists());
    let results = answered(&agent);
    assert!(
        results[0].ends_with("the user has changed the command before it ran. This is what ran: touch b"),
        "{results:?}"
    );
    assert_eq!(results[1], "Error: a rule denies it: Bash(rm)");
}

#[tokio::test(flavor = "multi_thread")]
async fn always_holds_for_a_narrow_rule() {
    let ground = Ground::with(&[("src/a", "a"), ("b", "b")]);
    let write = |path: &str| ("Write", json!({"path": path, "content": "x"}));
    let script = vec![
        calls(&[write("src/new"), write("src/other"), write("new")]),
        calls(&[bash("git diff --stat"), bash("git diff"), bash("git diff --output=b"), bash("git push")]),
    ];
    let mut agent = agent_with_bash(&ground, script, Mode::Ask);
    let answers = vec![
        Answer::No(None),
        Answer::No(None),
        Answer::Always(Keep::Project),
        Answer::No(None),
        Answer::Always(Keep::Session),
    ];
    let mut front = Recorder { answers, ..Recorder::default() };
    turn(&mut agent, &mut front).await;
    assert_eq!(
        front.asked,
        ["Write src/new", "Write new", "Bash git diff --stat", "Bash git diff --output=b", "Bash git push"]
    );
    assert_eq!(ground.content("b"), "b");
    let rules: Vec<&str> = agent.permissions().rules().map(|(_, rule)| rule).collect();
    assert_eq!(rules, ["Edit(src/**)", "Bash(git diff)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_files_are_asked_for_in_every_mode() {
    for mode in [Mode::Edits, Mode::All] {
        let ground = Ground::with(&[(".git/config", "[core]\n")]);
        std::os::unix::fs::symlink(".git", ground.path("innocent")).unwrap();
        let script = vec![calls(&[
            ("Read", json!({"path": ".git/config"})),
            ("Write", json!({"path": "innocent/config", "content": "[core]\nfsmonitor = evil\n"})),
            ("Write", json!({"path": "AGENTS.md", "content": "x"})),
        ])];
        let mut agent = agent_with_bash(&ground, script, mode);
        let mut front = Recorder { answers: vec![Answer::Yes, Answer::No(None)], ..Recorder::default() };
        turn(&mut agent, &mut front).await;
        assert_eq!(front.asked, ["Write .git/config", "Write AGENTS.md"], "{mode:?}");
        let consent = front.consent.unwrap();
        assert_eq!(consent.why.as_deref(), Some("AGENTS.md is protected"));
        assert_eq!(consent.rule.as_deref(), Some("Edit(AGENTS.md)"));
        assert_eq!(ground.content(".git/config"), "[core]\n");
        assert_eq!(ground.content("AGENTS.md"), "x");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_no_rule_can_answer_offers_none() {
    let ground = Ground::new();
    let mut agent = agent_with_bash(&ground, vec![calls(&[bash("$X x")])], Mode::All);
    agent.permissions_mut().deny("Bash(rm)").unwrap();
    let mut front = Recorder::default();
    turn(&mut agent, &mut front).await;
    let consent = front.consent.unwrap();
    assert!(consent.why.unwrap().contains("Bash(rm)") && consent.rule.is_none());
}

/// Changes what was asked for before it agrees.
struct Swaps<'a>(&'a Ground);

impl Front for Swaps<'_> {
    fn event(&mut self, _: Event<'_>) {}

    fn ask<'a>(&'a mut self, _: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        std::fs::remove_file(self.0.path("link")).unwrap();
        std::os::unix::fs::symlink("other", self.0.path("link")).unwrap();
        Box::pin(async { Answer::Yes })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_since_it_was_agreed_to_does_not_run() {
    let ground = Ground::with(&[("one/a", "a"), ("other/a", "a")]);
    std::os::unix::fs::symlink("one", ground.path("link")).unwrap();
    let script = vec![calls(&[("Write", json!({"path": "link/new", "content": "x"}))])];
    let mut agent = agent_with_bash(&ground, script, Mode::Ask);
    turn(&mut agent, &mut Swaps(&ground)).await;
    assert!(answered(&agent)[0].contains("not what the user has agreed to"), "{:?}", answered(&agent));
    assert!(!ground.path("one/new").exists() && !ground.path("other/new").exists());
}
