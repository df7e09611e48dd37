//! Whole sessions against the fake provider: three APIs and text, on both stores, in a small window, with faults.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../longhaul-store/tests/common/mod.rs"]
mod stores;

mod common;
mod fronts;

use std::sync::Arc;
use std::time::Duration;

use common::Ground;
use fronts::{Heard, Recorder, kept, settings};
use longhaul::{Message, Profile, Tokens};
use longhaul_agent::{AgentSettings, Ended, Form, React};
use longhaul_fake::{Answer, Close, Fake, RetryAfter, Settings, Trouble};
use longhaul_model::{Key, Model, Provider, Retry};
use longhaul_wire::api::{Api, Request};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The window of all these sessions.
const WINDOW: u64 = 8_000;
const STEPS: usize = 300;

/// A project with files that are worth reading.
fn project() -> Ground {
    let ground = Ground::new();
    for file in 0..10 {
        let line =
            |n: usize| format!("pub fn function_{file}_{n}(value: usize) -> usize {{ value + {n} }}\n");
        ground.write(&format!("src/file_{file}.rs"), (0..60).map(line).collect::<String>());
    }
    ground
}

/// The calls of a long session: reading, searching, changing, failing.
fn calls() -> impl Iterator<Item = (&'static str, Value)> {
    (0..STEPS).map(|n| {
        let path = format!("src/file_{}.rs", n % 10);
        match n % 6 {
            0 => ("Read", json!({"path": path})),
            1 => ("Grep", json!({"pattern": format!("function_{}", n % 10)})),
            2 => ("Read", json!({"path": format!("src/file_{}.rs", (n + 1) % 10), "limit": 20})),
            3 => (
                "Write",
                json!({"path": format!("notes/{n}.md"), "content": format!("Note {n}\n").repeat(20)}),
            ),
            4 => ("TodoWrite", json!({"todos": [{"content": format!("step {n}"), "status": "in_progress"}]})),
            _ => ("Read", json!({"path": format!("missing_{n}")})),
        }
    })
}

/// A provider at the fake one, with little patience between attempts.
fn provider(fake: &Fake, api: Api) -> Provider {
    let retry = Retry { attempts: 4, first: Duration::from_millis(5), longest: Duration::from_secs(2) };
    Provider::new(api, &fake.base_url(), Some(Key::new("k"))).unwrap().with_retry(retry)
}

fn small(form: Form) -> AgentSettings {
    AgentSettings { steps: STEPS + 10, form, max_output: Some(1_000), ..settings() }
}

async fn three_hundred_steps(api: Api, text: bool, place: &str) {
    let answers: Vec<Answer> = calls()
        .map(|(tool, arguments)| match text {
            true => Answer::new().text(&format!("Thought: Step.\nAction: {tool}[{arguments}]")),
            false => Answer::new().text("Next.").call(tool, arguments),
        })
        .chain([Answer::new().text(if text {
            "Thought: Done.\nAction: Finish[All done.]"
        } else {
            "All done."
        })])
        .collect();
    let fake = Settings::new().answers(answers).window(WINDOW).piece(200).start().await;
    let provider: Arc<dyn Model> = Arc::new(provider(&fake, api));
    let (model, form): (Arc<dyn Model>, Form) = match text {
        true => (Arc::new(React::new(provider)), Form::Json),
        false => (provider, Form::Plain),
    };
    let ground = project();
    let mut agent = kept(&ground, model, place, Profile::longhaul(), small(form));
    agent.session_mut().set_window(Tokens(WINDOW));
    let mut front = Recorder::default();
    let ended = agent.turn(Some("Do all of it."), &mut front, &CancellationToken::new()).await.unwrap();
    assert_eq!(ended, Ended::Answered("All done.".to_owned()));
    agent.finish().unwrap();
    assert_eq!(fake.violations(), Vec::<String>::new());
    // Every request has the tools as its API writes them, the same in each.
    let sent: Vec<Value> = fake.log().into_iter().map(|call| call.body["tools"].clone()).collect();
    let is_tool = |tool: &Value| match api {
        Api::Chat => tool["type"] == "function" && tool["function"]["parameters"].is_object(),
        Api::Responses => tool["type"] == "function" && tool["parameters"].is_object(),
        Api::Anthropic => tool["input_schema"].is_object(),
    };
    for tools in &sent {
        assert_eq!(tools, &sent[0]);
        assert!(text || tools.as_array().unwrap().iter().all(is_tool), "{api:?} {tools}");
    }
    // One message for the input, one for each reply, and one for each result.
    assert_eq!(agent.session().log().messages().len(), 2 + 2 * STEPS);
    let compactions = front.heard.iter().filter(|heard| matches!(heard, Heard::Compacted(_))).count();
    assert!(compactions > 5, "{compactions}");
    assert!(agent.session().audit().is_empty());
    // What is stored is the same conversation.
    let mut again = kept(&ground, agent_model(&fake, api), place, Profile::longhaul(), small(form));
    assert_eq!(again.session().log().messages(), agent.session().log().messages());
    let next = |agent: &mut longhaul_agent::Agent| {
        agent.session_mut().push(Message::user("And now?"));
        agent.session_mut().prepare(None).unwrap();
        Request::of(&agent.session().outgoing()).encode(api).body.to_string()
    };
    let (stored, live) = (next(&mut again), next(&mut agent));
    assert!(stored == live, "the request after a restart is another");
}

fn agent_model(fake: &Fake, api: Api) -> Arc<dyn Model> {
    Arc::new(provider(fake, api))
}

/// Each way to speak, on each store.
macro_rules! long_sessions {
    ($($name:ident: $api:expr, $text:expr;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            three_hundred_steps($api, $text, &stores::Ground::sqlite().place).await;
            let postgres = tokio::task::block_in_place(stores::Ground::postgres);
            if let Some(postgres) = postgres {
                three_hundred_steps($api, $text, &postgres.place).await;
            }
        })+
    };
}

long_sessions! {
    three_hundred_steps_over_chat: Api::Chat, false;
    three_hundred_steps_over_responses: Api::Responses, false;
    three_hundred_steps_over_messages: Api::Anthropic, false;
    three_hundred_steps_in_text: Api::Chat, true;
}

/// A turn of three calls with trouble at the second request.
async fn with_trouble(
    api: Api,
    trouble: Trouble,
    calls: std::ops::RangeInclusive<usize>,
) -> (Result<Ended, String>, Fake, Recorder) {
    let read =
        |n: usize| Answer::new().text("Next.").call("Read", json!({"path": format!("src/file_{n}.rs")}));
    let script = Settings::new().answers([read(0), read(1)]).answer("All done.");
    let fake = script.trouble(calls, trouble).start().await;
    let ground = project();
    let stores = stores::Ground::sqlite();
    let mut agent =
        kept(&ground, agent_model(&fake, api), &stores.place, Profile::longhaul(), small(Form::Plain));
    agent.session_mut().set_window(Tokens(WINDOW));
    let mut front = Recorder::default();
    let ended = agent
        .turn(Some("Go."), &mut front, &CancellationToken::new())
        .await
        .map_err(|error| error.to_string());
    assert!(agent.session().log().waiting_calls().is_empty());
    // Nothing is lost: what is stored goes on where it was.
    let before = agent.session().log().messages().to_vec();
    drop(agent);
    let mut again =
        kept(&ground, agent_model(&fake, api), &stores.place, Profile::longhaul(), small(Form::Plain));
    assert_eq!(again.session().log().messages(), before);
    if ended.is_err() {
        // When the trouble is over, the work goes on.
        let mut went_on = Err(String::new());
        for _ in 0..5 {
            went_on = again
                .turn(None, &mut front, &CancellationToken::new())
                .await
                .map_err(|error| error.to_string());
            if went_on.is_ok() {
                break;
            }
        }
        assert_eq!(went_on, Ok(Ended::Answered("All done.".to_owned())));
    }
    assert!(again.session().audit().is_empty());
    assert_eq!(fake.violations(), Vec::<String>::new());
    (ended, fake, front)
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_that_passes_is_waited_out() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        for trouble in [
            Trouble::Limited(RetryAfter::Seconds(0)),
            Trouble::Status(529),
            Trouble::Status(503),
            Trouble::Close,
            Trouble::Cut { after: 2, close: Close::Reset },
            Trouble::NoClosingEvent,
            Trouble::Html,
            Trouble::ErrorEvent { after: 1 },
            Trouble::Split(3),
            Trouble::CrLf,
            Trouble::Empty,
        ] {
            let (ended, _, _) = with_trouble(api, trouble.clone(), 2..=2).await;
            assert_eq!(ended, Ok(Ended::Answered("All done.".to_owned())), "{api:?} {trouble:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_that_does_not_pass_ends_in_a_clear_sentence_and_loses_nothing() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        for (trouble, says) in [
            (Trouble::Status(401), "key"),
            (Trouble::Status(529), "overloaded"),
            (Trouble::Cut { after: 1, close: Close::Reset }, "cut"),
        ] {
            let (ended, _, _) = with_trouble(api, trouble.clone(), 2..=5).await;
            let error = ended.unwrap_err();
            assert!(
                error.to_lowercase().contains(says) && !error.contains('\n'),
                "{api:?} {trouble:?}: {error}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_long_is_shortened_and_sent_again() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        let (ended, fake, front) =
            with_trouble(api, Trouble::TooLong { prompt: 9_000, window: 6_000 }, 3..=3).await;
        assert_eq!(ended, Ok(Ended::Answered("All done.".to_owned())), "{api:?}");
        assert_eq!(fake.log().len(), 4, "{api:?}");
        assert!(
            front.heard.iter().any(|heard| matches!(heard, Heard::Notice(text) if text.contains("too long")))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_cut_in_half_are_answered_so_that_they_can_be_mended() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        let (ended, fake, _) = with_trouble(api, Trouble::ArgumentsCut, 2..=2).await;
        assert_eq!(ended, Ok(Ended::Answered("All done.".to_owned())), "{api:?}");
        let last = fake.log().last().unwrap().body.to_string();
        assert!(last.contains("Read does not take these arguments"), "{api:?}");
    }
}
