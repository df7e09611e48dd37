//! A disk that is full: one sentence, nothing that was stored is lost, and the session goes on when there is room.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod fronts;

use std::sync::Arc;

use common::Ground;
use fronts::{Recorder, settings, stored};
use longhaul::{Block, Json, Message, Models, Profile, Role, Session};
use longhaul_agent::{Agent, AgentError, Ended, Mode, Permissions, Toolbox};
use longhaul_model::{Model, Scripted};
use longhaul_store::{About, Keeper, SqliteStore, StoreError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Replies that read a long file again and again, with words of their own, and an answer.
fn reading(times: usize) -> Vec<Result<Message, longhaul_model::Fault>> {
    let read = |n: usize| {
        let words: String = (0..200).map(|word| format!("{} ", word * 7_919 + n * 104_729)).collect();
        let call =
            Block::call(format!("c-{n}"), "Read", Json::from(&json!({"path": "long.txt", "offset": n})));
        Ok(Message::new(Role::Assistant, vec![Block::text(words), call]))
    };
    (1..=times).map(read).chain([Ok(Message::assistant("All read."))]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_one_sentence_and_the_session_goes_on_when_there_is_room() {
    let lines: String = (0..400).map(|n| format!("line {n} of {}\n", n * 2_654_435_761_u64)).collect();
    let ground = Ground::with(&[("long.txt", &lines)]);
    let file = ground.outside("sessions.db");
    let place = file.to_str().unwrap();
    let store = Arc::new(SqliteStore::open(&file).unwrap());
    let session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    let keeper = Keeper::create(store.clone(), &About::default(), &session).unwrap();
    let id = keeper.id();
    let model: Arc<dyn Model> = Arc::new(Scripted::new(reading(60)));
    let tools = Toolbox::files(&ground.project);
    let settings = longhaul_agent::AgentSettings { steps: 100, ..settings() };
    let permissions = Permissions::new(Mode::All);
    let mut agent =
        Agent::new(session, Some(keeper), model, ground.project.clone(), tools, permissions, settings);
    // Some steps fit, and then none.
    let room = std::fs::metadata(&file).unwrap().len() + (200 << 10);
    store.set_limit(Some(room)).unwrap();
    let (front, stop) = (&mut Recorder::default(), CancellationToken::new());
    let failed = agent.turn(Some("Read it all."), front, &stop).await.unwrap_err();
    assert!(matches!(failed, AgentError::Store(StoreError::Full { .. })), "{failed:?}");
    let says = failed.to_string();
    assert!(says.starts_with("the session could not be stored: ") && says.lines().count() == 1, "{says}");
    assert!(says.contains("there is no room for"), "{says}");
    assert!(agent.finish().is_err());
    let said = agent.session().log().messages().len();

    // What was stored is whole, and a prefix of what was said.
    let (_, kept) = Keeper::open(store.clone(), id, Profile::longhaul()).unwrap();
    let durable = kept.log().messages().len();
    assert!(durable > 4 && durable <= said, "{durable} of {said}");
    assert_eq!(kept.log().messages()[..], agent.session().log().messages()[..durable]);
    assert!(kept.audit().is_empty());

    // There is room again: the same agent goes on, and nothing of what it knows is missing in the store.
    store.set_limit(None).unwrap();
    let ended = agent.turn(None, front, &stop).await.unwrap();
    assert_eq!(ended, Ended::Answered("All read.".to_owned()));
    agent.finish().unwrap();
    let whole = agent.session().log().messages().to_vec();
    drop(agent);
    let (_, kept) = Keeper::open(store.clone(), id, Profile::longhaul()).unwrap();
    assert_eq!(kept.log().messages()[..], whole[..]);
    assert!(kept.audit().is_empty());
    drop((kept, store));
    // And so does another one, after a restart.
    let mut agent = stored(&ground, [Ok(Message::assistant("Still here."))], place);
    let ended = agent.turn(Some("And now?"), front, &stop).await.unwrap();
    assert_eq!(ended, Ended::Answered("Still here.".to_owned()));
}
