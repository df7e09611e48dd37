//! The loop, turn by turn: with a scripted model, and without a network.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod fronts;

use std::sync::Arc;

use common::Ground;
use fronts::{Heard, Recorder, agent, answered};
use longhaul::{Block, Json, Message, Models, Profile, Role, Tokens};
use longhaul_agent::{Answer, Ended, Event, Keep, Mode};
use longhaul_model::{Fault, Scripted};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A reply that calls tools.
fn calls(calls: &[(&str, Value)]) -> Result<Message, Fault> {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let block = |(tool, arguments): &(&str, Value)| {
        let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Block::call(format!("call-{id}"), *tool, Json::from(arguments))
    };
    Ok(Message::new(Role::Assistant, calls.iter().map(block).collect()))
}

fn says(text: &str) -> Result<Message, Fault> {
    Ok(Message::assistant(text))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_reads_changes_and_answers() {
    let ground = Ground::with(&[("src/a.rs", "fn one() {}\n")]);
    let script = [
        calls(&[("Grep", json!({"pattern": "one"})), ("Read", json!({"path": "src/a.rs"}))]),
        calls(&[("Edit", json!({"path": "src/a.rs", "old": "one", "new": "two"}))]),
        says("It is called two now."),
    ];
    let mut agent = agent(&ground, script, Mode::Edits, Profile::longhaul());
    let mut front = Recorder::default();
    let ended = agent.turn(Some("Call it two."), &mut front, &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("It is called two now.".to_owned()));
    assert_eq!(ground.content("src/a.rs"), "fn two() {}\n");
    let results = answered(&agent);
    assert_eq!(results[..2], ["src/a.rs:1:fn one() {}\n", "1\tfn one() {}\n"]);
    assert!(results[2].starts_with("src/a.rs was changed: 1 line added, 1 removed"));
    assert_eq!(front.heard.iter().filter(|heard| matches!(heard, Heard::Sending)).count(), 3);
    assert!(agent.session().audit().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_and_another_session_go_on_with_the_same_tools() {
    let ground = Ground::with(&[("a.txt", "a\n")]);
    let mut agent = agent(&ground, [says("One.")], Mode::Ask, Profile::longhaul());
    let (front, stop) = (&mut Recorder::default(), CancellationToken::new());
    agent.turn(Some("First?"), front, &stop).await.unwrap();
    let script = [calls(&[("Read", json!({"path": "a.txt"}))]), says("Two."), says("Three.")];
    let row = Models::builtin().find("claude-sonnet-4-5").clone();
    agent.switch_model(Arc::new(Scripted::new(script)), "claude-sonnet-4-5-20250929", row.clone());
    let ended = agent.turn(Some("Second?"), front, &stop).await.unwrap();
    assert_eq!(ended, Ended::Answered("Two.".to_owned()));
    let named = |agent: &longhaul_agent::Agent| {
        agent.session().outgoing().frame.and_then(|frame| frame.model.clone())
    };
    assert_eq!(agent.model_name(), "claude-sonnet-4-5-20250929");
    assert_eq!(
        (named(&agent).as_deref(), &agent.session().model().name),
        (Some(agent.model_name()), &row.name)
    );
    // What was said before is sent to it.
    assert_eq!(agent.session().log().messages().len(), 6);

    agent.set_session(longhaul::Session::new(Profile::longhaul(), row), None);
    let ended = agent.turn(Some("Third?"), front, &stop).await.unwrap();
    assert_eq!(ended, Ended::Answered("Three.".to_owned()));
    assert_eq!(agent.session().log().messages().len(), 2);
    let tools =
        |agent: &longhaul_agent::Agent| agent.session().outgoing().frame.map(|frame| frame.tools.len());
    assert!(tools(&agent) > Some(3) && named(&agent).as_deref() == Some(agent.model_name()));
    assert!(agent.session().audit().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_not_allowed_is_asked_for() {
    let ground = Ground::with(&[("a.txt", "a\n")]);
    let write = |content: &str| ("Write", json!({"path": "new.txt", "content": content}));
    let script = [
        calls(&[write("no")]),
        calls(&[write("once")]),
        calls(&[("Read", json!({"path": "new.txt"}))]),
        calls(&[write("always")]),
        calls(&[write("again")]),
        says("Done."),
    ];
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    let answers = vec![Answer::Always(Keep::Session), Answer::Yes, Answer::No(Some("not yet".to_owned()))];
    let mut front = Recorder { answers, ..Recorder::default() };
    agent.turn(Some("Write it."), &mut front, &CancellationToken::new()).await.unwrap();
    // Asked three times: the last write needs no question.
    assert_eq!(front.asked, ["Write new.txt", "Write new.txt", "Write new.txt"]);
    let results = answered(&agent);
    assert_eq!(results[0], "Error: the user does not allow it and says: not yet");
    assert_eq!(results[1], "new.txt was created: 1 lines");
    assert_eq!(ground.content("new.txt"), "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_changes_nothing_and_a_deny_wins_over_everything() {
    let ground = Ground::new();
    let script = [calls(&[("Write", json!({"path": "a.txt", "content": ""}))]), says("I may not.")];
    let mut front = Recorder::default();
    let mut read_only = agent(&ground, script.clone(), Mode::ReadOnly, Profile::longhaul());
    read_only.turn(Some("Write."), &mut front, &CancellationToken::new()).await.unwrap();
    assert!(answered(&read_only)[0].contains("permissions are read-only"));
    let mut denied = agent(&ground, script, Mode::All, Profile::longhaul());
    denied.permissions_mut().deny("Edit(*.txt)").unwrap();
    denied.turn(Some("Write."), &mut front, &CancellationToken::new()).await.unwrap();
    assert!(answered(&denied)[0].contains("a rule denies it: Edit(*.txt)"));
    assert!(front.asked.is_empty() && !ground.path("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_about_where_a_path_leads_to() {
    let ground = Ground::with(&[("secrets/key", "k\n")]);
    std::os::unix::fs::symlink("secrets", ground.path("open")).unwrap();
    let script = [calls(&[("Write", json!({"path": "open/../open/key", "content": "x"}))]), says("No.")];
    let mut agent = agent(&ground, script, Mode::All, Profile::longhaul());
    agent.permissions_mut().deny("Edit(secrets/**)").unwrap();
    agent.turn(Some("Write."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert!(answered(&agent)[0].contains("a rule denies it"));
    assert_eq!(ground.content("secrets/key"), "k\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_leaves_a_whole_log() {
    let ground = Ground::with(&[("a.txt", "a\n")]);
    // While the user is asked: what ran before has its result, the call in question too, and the model is not asked again.
    let script = [
        calls(&[("Read", json!({"path": "a.txt"})), ("Write", json!({"path": "b.txt", "content": ""}))]),
        says("Going on."),
    ];
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    let stop = CancellationToken::new();
    let mut front = Recorder { stops: Some(stop.clone()), ..Recorder::default() };
    assert_eq!(agent.turn(Some("Go."), &mut front, &stop).await.unwrap(), Ended::Interrupted);
    assert!(agent.session().log().waiting_calls().is_empty());
    let results = answered(&agent);
    assert!(results[0].contains("1\ta") && results[1].contains("stopped by the user"), "{results:?}");
    assert!(!ground.path("b.txt").exists());
    // The next input goes on from there.
    let ended =
        agent.turn(Some("Go on."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("Going on.".to_owned()));
    assert!(agent.session().audit().is_empty());
    // Before the model is asked: nothing is said.
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(agent.turn(Some("More."), &mut Recorder::default(), &stop).await.unwrap(), Ended::Interrupted);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_cannot_be_read_are_answered_so_that_the_model_can_mend_them() {
    let ground = Ground::new();
    let broken = Message::new(Role::Assistant, vec![Block::call("x", "Read", Json::string("{\"path\": "))]);
    let script = [
        Ok(broken),
        calls(&[("Raed", json!({}))]),
        calls(&[("Read", json!({"path": "missing"}))]),
        calls(&[("Read", json!({"path": "missing"}))]),
        calls(&[("Read", json!({"path": "missing"}))]),
        says("I give up."),
    ];
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    let mut front = Recorder::default();
    agent.turn(Some("Read."), &mut front, &CancellationToken::new()).await.unwrap();
    let results = answered(&agent);
    assert!(
        results[0].starts_with("Error: Read does not take these arguments: invalid type: string"),
        "{}",
        results[0]
    );
    assert!(results[1].starts_with("Error: there is no tool `Raed`; there are LS, Glob"), "{}", results[1]);
    assert_eq!(results[2], "Error: there is no `missing`");
    assert!(results[4].ends_with("has failed 3 times. Do not repeat it: find out why, or try another way."));
    assert!(
        front
            .heard
            .iter()
            .any(|heard| matches!(heard, Heard::Notice(text) if text.contains("has failed 3 times")))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_never_ends_is_stopped() {
    let ground = Ground::new();
    let script = (0..40).map(|_| calls(&[("LS", json!({}))]));
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    let ended = agent.turn(Some("Go."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::StepLimit(30));
    assert!(agent.session().log().waiting_calls().is_empty());
}

// covers: A-LAW, A-MENTION
#[tokio::test(flavor = "multi_thread")]
async fn rules_mentions_and_changed_files_are_told() {
    let ground =
        Ground::with(&[("Code_Law.md", "Tabs, never spaces."), ("a.txt", "one\n"), ("b.txt", "b\n")]);
    let script =
        [calls(&[("Read", json!({"path": "a.txt"}))]), says("Read."), says("Again."), says("Once more.")];
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    let stop = CancellationToken::new();
    let mut front = Recorder::default();
    agent.turn(Some("Look at @a.txt, and at @/etc/passwd."), &mut front, &stop).await.unwrap();
    let sent = fronts::sent(&agent);
    assert!(sent.contains("Tabs, never spaces."));
    assert!(sent.contains("The user mentioned @a.txt.\nYou MUST read this file"), "{sent}");
    ground.write("a.txt", "two\n");
    ground.write("Code_Law.md", "Spaces, never tabs.");
    agent.turn(Some("And now?"), &mut front, &stop).await.unwrap();
    let sent = fronts::sent(&agent);
    assert!(sent.contains("Changed since they were read: a.txt. Read them again"), "{sent}");
    assert!(sent.contains("Spaces, never tabs."));
    // What the host adds is never taken for the person's words.
    let words: Vec<String> = agent
        .session()
        .log()
        .messages()
        .iter()
        .filter(|message| message.role() == Role::User)
        .flat_map(|message| message.words().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert_eq!(words, ["Look at @a.txt, and at @/etc/passwd.", "And now?"]);
    std::fs::remove_file(ground.path("Code_Law.md")).unwrap();
    agent.turn(Some("More."), &mut front, &stop).await.unwrap();
    assert!(agent.session().log().facts(longhaul::conversation::FactKind::Rules).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn todos_memories_and_what_was_left_out() {
    let text: String = (0..4_000).map(|n| format!("line {n} of a long file with words\n")).collect();
    let ground = Ground::with(&[("long.txt", &text)]);
    let script = [
        calls(&[
            (
                "TodoWrite",
                json!({"todos": [{"content": "read", "status": "in_progress"}, {"content": "edit", "status": "pending"}]}),
            ),
            ("Remember", json!({"text": "The user likes tabs."})),
        ]),
        calls(&[("Read", json!({"path": "long.txt"}))]),
        says("Read."),
    ];
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    agent.session_mut().set_window(Tokens(8_000));
    let mut front = Recorder::default();
    agent.turn(Some("Go."), &mut front, &CancellationToken::new()).await.unwrap();
    let sent = fronts::sent(&agent);
    assert!(sent.contains("[>] read") && sent.contains("[ ] edit"), "{sent}");
    assert_eq!(answered(&agent)[..2], ["2 tasks, 0 done", "Remembered: The user likes tabs."]);
    // What was left out is led back to by its mark, through the tool.
    let handles: Vec<String> = sent
        .match_indices("recall ")
        .map(|(at, word)| sent[at + word.len()..].chars().take_while(char::is_ascii_hexdigit).collect())
        .collect();
    let script = handles.iter().map(|handle| calls(&[("Recall", json!({"handle": handle}))]));
    let script = script.chain([calls(&[("Recall", json!({"pattern": "line 77 of"}))]), says("Recalled.")]);
    let long = answered(&agent)[2].clone();
    let mut agent = fronts::going_on(agent, script);
    agent.turn(Some("Recall it."), &mut front, &CancellationToken::new()).await.unwrap();
    let recalled = &answered(&agent)[3..];
    assert!(recalled.contains(&long), "{handles:?}");
    assert!(recalled.last().unwrap().contains("line 77 of a long file with words"), "{recalled:?}");
}

// covers: P-SAVE
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_stored_and_goes_on_after_a_crash() {
    let ground = Ground::with(&[("a.txt", "one\n")]);
    let place = ground.outside("sessions.db").display().to_string();
    let script = [calls(&[("Read", json!({"path": "a.txt"}))]), Err(Fault::Unreachable("gone".into()))];
    let mut first = fronts::stored(&ground, script, &place);
    let error =
        first.turn(Some("Read it."), &mut Recorder::default(), &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    let before: Vec<Arc<Message>> = first.session().log().messages().to_vec();
    // Nothing is said to the keeper: the process is gone.
    drop(first);
    let mut second = fronts::stored(&ground, [says("One.")], &place);
    assert_eq!(second.session().log().messages(), before);
    let ended = second.turn(None, &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("One.".to_owned()));
    assert!(second.session().audit().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_crash_left_without_a_result_gets_one() {
    let ground = Ground::with(&[("a.txt", "one\n")]);
    let mut agent = agent(&ground, [says("Sorry.")], Mode::Ask, Profile::longhaul());
    agent.session_mut().push(Message::user("Read it."));
    agent.session_mut().push(calls(&[("Read", json!({"path": "a.txt"}))]).unwrap());
    agent.turn(Some("Are you there?"), &mut Recorder::default(), &CancellationToken::new()).await.unwrap();
    assert!(answered(&agent)[0].contains("stopped by the user before it ended"));
    assert!(agent.session().audit().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_works_in_a_session_of_its_own() {
    let ground = Ground::with(&[("a.txt", "one\n")]);
    let place = ground.outside("sessions.db").display().to_string();
    let script = [
        calls(&[("Task", json!({"description": "find it", "prompt": "What does a.txt say?"}))]),
        calls(&[("Read", json!({"path": "a.txt"}))]),
        // A sub-agent has none of its own.
        calls(&[("Task", json!({"prompt": "You do it."}))]),
        says("It says one."),
        says("One, it says."),
    ];
    let mut agent = fronts::stored(&ground, script, &place);
    let mut front = Recorder::default();
    let ended = agent.turn(Some("Ask somebody."), &mut front, &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("One, it says.".to_owned()));
    assert_eq!(answered(&agent), ["It says one."]);
    assert!(!fronts::sent(&agent).contains("What does a.txt say?\n"));
    // Its calls are heard, and its words are not.
    assert!(front.heard.contains(&Heard::Called("Read".into())));
    assert!(!front.heard.contains(&Heard::Text("It says one.".into())));
    let store = longhaul_store::open(&place).unwrap();
    let sessions = store.list(&longhaul_store::Filter::default(), 9).unwrap();
    assert!(sessions.iter().any(|meta| meta.title == "Task: find it" && meta.agent == "longhaul-task"));
    assert_eq!(sessions.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_heard_in_their_order() {
    let ground = Ground::with(&[("a.txt", "one\n")]);
    let script = [calls(&[("Read", json!({"path": "a.txt"}))]), says("One.")];
    let mut agent = agent(&ground, script, Mode::Ask, Profile::longhaul());
    let mut front = Recorder::default();
    agent.turn(Some("Read it."), &mut front, &CancellationToken::new()).await.unwrap();
    use Heard::{Answered, Called, Replied, Sending, Text};
    assert_eq!(
        front.heard,
        [
            Sending,
            Replied,
            Called("Read".into()),
            Answered("Read".into()),
            Sending,
            Text("One.".into()),
            Replied
        ]
    );
    let _: fn(&mut Recorder, Event<'_>) = |front, event| longhaul_agent::Front::event(front, event);
}

#[tokio::test(flavor = "multi_thread")]
async fn thinking_that_the_provider_refuses_is_left_out_and_the_turn_goes_on() {
    use longhaul::conversation::Thinking;
    use longhaul::{Extra, Seal};
    let ground = Ground::with(&[("a.txt", "a\n")]);
    let thinks = |text: &str, id: &str| {
        let seal = Seal::Signed("signature".into());
        let thinking = Block::Thinking(Thinking { text: text.into(), seal, extra: Extra::NONE });
        let call = Block::call(id, "Read", Json::from(&json!({"path": "a.txt"})));
        Ok(Message::new(Role::Assistant, vec![thinking, call]))
    };
    let refused = || {
        let says =
            "messages.1.content.0: Invalid `signature`. The block is bound to a different conversation.";
        Err(Fault::Refused { status: 400, says: says.to_owned() })
    };
    let script = [thinks("Which file?", "c1"), refused(), says("It says a.")];
    let mut agent = agent(&ground, [], Mode::Edits, Profile::longhaul());
    let row = Models::builtin().find("claude-opus-5-5").clone();
    agent.switch_model(Arc::new(Scripted::new(script)), "claude-opus-5-5", row);
    let front = &mut Recorder::default();
    let ended = agent.turn(Some("What is in a.txt?"), front, &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("It says a.".to_owned()));
    let parts = agent.session().view().parts().iter().flat_map(|part| part.message.blocks());
    assert!(!parts.clone().any(|block| matches!(block, Block::Thinking(_))));
    assert!(agent.session().audit().is_empty());
}
