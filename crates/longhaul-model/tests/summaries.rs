//! Jobs of the engine, answered by a model over the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use longhaul::{
    Frame, Job, Json, Message, Models, Outcome, Prepared, Profile, Resolved, Session, Summariser, Tokens,
};
use longhaul_fake::{Answer, Fake, Settings, Trouble};
use longhaul_model::{Ask, Patience, Provider, Retry, SummaryWriter, write_summary};
use longhaul_wire::api::{Api, Request};
use serde_json::{Value, json};

const APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

fn frame() -> Frame {
    Frame::from_json(&Json::new(r#"{"model":"large","max_tokens":900}"#).unwrap()).unwrap()
}

/// A session that wants a summary, and its job.
fn wanting(profile: Profile) -> (Session, Job) {
    let profile = Profile { summariser: Summariser::Host, background: false, ..profile };
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(profile, model).with_window(Tokens(4_000));
    session.set_frame(frame());
    for n in 0..60 {
        session.push(Message::user(format!("Question number {n}?")));
        session.push(Message::assistant(format!("Answer number {n}. {}", "It is so. ".repeat(30))));
    }
    session.push(Message::user("Go on."));
    match session.prepare(None).unwrap() {
        Prepared::Summarise(job) => (session, job),
        Prepared::Send(_) => panic!("no summary was asked for"),
    }
}

fn provider(api: Api, fake: &Fake) -> Provider {
    let patience = Patience { first: Duration::from_secs(30), ..Patience::default() };
    let retry = Retry { attempts: 2, first: Duration::from_millis(1), longest: Duration::from_secs(1) };
    Provider::new(api, &fake.base_url(), None).unwrap().with_patience(patience).unwrap().with_retry(retry)
}

fn fresh(window: u64) -> Ask {
    Ask::Fresh { window: Tokens(window), frame: frame() }
}

fn model_of(body: &Value) -> &str {
    body["model"].as_str().unwrap()
}

// covers: A-SUM A-TIMEOUT
#[tokio::test]
async fn a_summary_is_written_by_the_model_that_the_profile_names() {
    for api in APIS {
        for named in [None, Some("small")] {
            let fake = Settings::new().answer("Forty-nine questions were answered.").start().await;
            let profile = Profile { summary_model: named.map(Into::into), ..Profile::archive() };
            let (mut session, job) = wanting(profile);
            let summarised = write_summary(&job, &provider(api, &fake), fresh(100_000)).await;
            assert!(matches!(summarised.resolve(&mut session), Resolved::Folded), "{api:?}");
            let log = fake.log();
            assert_eq!((log.len(), model_of(&log[0].body)), (1, named.unwrap_or("large")));
            assert_eq!(fake.violations(), [""; 0]);
            let sent = session.outgoing().messages().any(|message| {
                message.texts().any(|text| text.contains("Forty-nine questions were answered."))
            });
            assert!(sent && session.audit().is_empty(), "{api:?}");
        }
    }
}

#[tokio::test]
async fn a_summariser_with_a_small_window_gets_smaller_parts() {
    for api in APIS {
        // It is taken to have a large window, and refuses.
        let settings = Settings::new()
            .answers((0..40).map(|n| Answer::new().text(&format!("Part {n} was done."))))
            .window(3_000);
        let fake = settings.start().await;
        let (mut session, job) = wanting(Profile::archive());
        let summarised = write_summary(&job, &provider(api, &fake), fresh(100_000)).await;
        let Outcome::Parts(parts) = &summarised.outcome else { panic!("{api:?} {summarised:?}") };
        assert!(parts.len() > 1, "{api:?} {parts:?}");
        assert!(matches!(summarised.resolve(&mut session), Resolved::Folded), "{api:?}");
    }
}

// covers: A-TIMEOUT
#[tokio::test]
async fn a_summary_that_takes_too_long_is_cut_without() {
    let fake = Settings::new().trouble(.., Trouble::Hang).start().await;
    let profile = Profile { summary_timeout: 1, ..Profile::archive() };
    let (mut session, job) = wanting(profile);
    let summarised = write_summary(&job, &provider(Api::Chat, &fake), fresh(100_000)).await;
    assert_eq!((&summarised.outcome, summarised.paid.len()), (&Outcome::TimedOut, 0));
    let Resolved::Cut(says) = summarised.resolve(&mut session) else { panic!() };
    assert_eq!(says, "Summary generation timed out, keeping recent history only.");
}

#[tokio::test]
async fn what_is_no_summary_is_said() {
    let call = Answer::new().call("Read", json!({"path":"a.rs"}));
    let cut = Answer::new().text("Half a summ").stop("length");
    for (answer, says) in [(call, "called a tool"), (cut, "cut off")] {
        let fake = Settings::new().answer(answer).start().await;
        let (_, job) = wanting(Profile::longhaul());
        let summarised = write_summary(&job, &provider(Api::Chat, &fake), fresh(100_000)).await;
        assert!(
            matches!(&summarised.outcome, Outcome::Failed(problem) if problem.contains(says)),
            "{summarised:?}"
        );
        // The answer was no use, and is paid for.
        assert_eq!(summarised.paid.len(), 1);
    }
    let fake = Settings::new().key("right").answer("…").start().await;
    let (_, job) = wanting(Profile::longhaul());
    let summarised = write_summary(&job, &provider(Api::Chat, &fake), fresh(100_000)).await;
    assert!(matches!(summarised.outcome, Outcome::Failed(_)), "{summarised:?}");
}

/// Behind the running conversation: what the provider has in its cache is sent as it was.
#[tokio::test]
async fn a_warm_summary_extends_what_was_sent() {
    for api in APIS {
        let fake = Settings::new().answers(["An answer.", "All questions were answered."]).start().await;
        let (mut session, job) = wanting(Profile::longhaul());
        let provider = provider(api, &fake);
        let request = Request::of(&session.outgoing());
        let first = longhaul_model::Model::ask(&provider, request.clone(), &mut |_| {}).await.unwrap();
        let sent = first.usage.unwrap().prompt();
        let summarised = write_summary(&job, &provider, Ask::Warm(Box::new(request))).await;
        assert!(matches!(summarised.resolve(&mut session), Resolved::Folded), "{api:?}");
        let log = fake.log();
        let [first, second] = [&log[0], &log[1]].map(|call| call.body.to_string());
        let same = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
        assert!(same * 10 > first.len() * 9, "{api:?} {same} of {}", first.len());
        assert!(sent > Tokens(1_000));
    }
}

/// The engine says which form is cheaper, and its ledger what was billed.
#[tokio::test]
async fn the_cheaper_form_is_asked_and_its_price_is_kept() {
    for api in APIS {
        let answers = (0..60).map(|n| format!("Answer {n}. {}", "It is so. ".repeat(100)));
        let fake = Settings::new().answers(answers.map(|text| Answer::new().text(&text))).start().await;
        let provider = provider(api, &fake);
        let profile = Profile { summariser: Summariser::Host, background: false, ..Profile::longhaul() };
        let model = Models::builtin().find("gpt-4o").clone();
        let mut session = Session::new(profile, model).with_window(Tokens(12_000));
        session.set_frame(frame());
        let job = loop {
            session.push(Message::user("And the next question?"));
            match session.prepare(None).unwrap() {
                Prepared::Summarise(job) => break job,
                Prepared::Send(ticket) => {
                    let request = Request::of(&session.outgoing());
                    let reply = longhaul_model::Model::ask(&provider, request, &mut |_| {}).await.unwrap();
                    session.observe(ticket, &reply.usage.unwrap());
                    for message in &reply.messages {
                        session.push((**message).clone());
                    }
                }
            }
        };
        let ask = Ask::cheaper(&job, &session, Tokens(12_000));
        assert!(matches!(ask, Ask::Warm(_)), "{api:?} {:?}", job.price);
        let summarised = write_summary(&job, &provider, ask).await;
        assert!(matches!(summarised.resolve(&mut session), Resolved::Folded), "{api:?}");
        let bill = session.ledger().edits().filter_map(|(edit, _)| edit.price.summary).last().unwrap();
        let (expected, paid) = (bill.expected.warm.unwrap(), bill.paid.unwrap());
        // What was expected of the cache is what the provider billed, but for how each counts.
        let share = |read: Tokens, written: Tokens| read.0 as f64 / (read.0 + written.0) as f64;
        let (expected, paid) =
            (share(expected.read, expected.written), share(paid.prompt.read, paid.prompt.written));
        assert!((expected - paid).abs() < 0.15 && paid > 0.5, "{api:?} {expected} {paid}");
        assert_eq!(session.paid_for_summaries().calls, 1);
    }
}

/// A session of profile `longhaul` whose summaries a model writes, past its trigger.
fn working() -> Session {
    let shares = longhaul::size::Shares { warn: 70, trigger: 75, target: 50 };
    let profile = Profile { summariser: Summariser::Host, dial: None, shares, ..Profile::longhaul() };
    let mut session =
        Session::new(profile, Models::builtin().find("gpt-4o").clone()).with_window(Tokens(6_000));
    session.set_frame(frame());
    let mut numbers = 0..;
    let size = |session: &Session| session.meter().tokens(session.sizes().iter().copied().sum()).tokens;
    while size(&session) <= session.budget().trigger
        && let Some(n) = numbers.next()
    {
        session.push(Message::user(format!("Question number {n}?")));
        session.push(Message::assistant(format!("Answer number {n}. {}", "It is so. ".repeat(30))));
    }
    session
}

/// Profile `longhaul` goes on while a summary is written; the fold stands between two calls.
#[tokio::test]
async fn a_summary_is_written_beside_the_work() {
    let pause = Duration::from_millis(20);
    let fake = Settings::new().answer("All questions were answered.").piece(4).pause(pause).start().await;
    let mut writer = SummaryWriter::new(Arc::new(provider(Api::Chat, &fake)), Tokens(100_000));
    let mut session = working();
    let (mut sent_meanwhile, mut folded) = (0, None);
    for n in 0..400 {
        session.push(Message::user(format!("More {n}?")));
        // A request goes out each time: nothing waits for the summary.
        assert!(matches!(session.prepare(None).unwrap(), Prepared::Send(_)), "call {n}");
        writer.begin(&session);
        session.push(Message::assistant("Yes."));
        tokio::time::sleep(Duration::from_millis(5)).await;
        folded = writer.take(&mut session).await;
        if folded.is_some() {
            break;
        }
        sent_meanwhile += usize::from(session.job().is_some());
    }
    assert!(matches!(folded, Some(Resolved::Folded)), "{folded:?}");
    assert!(sent_meanwhile > 2, "{sent_meanwhile} calls went out beside it");
    assert_eq!(fake.log().len(), 1, "a job is written once");
    session.push(Message::user("And now?"));
    session.prepare(None).unwrap();
    let mut messages = session.outgoing().messages().cloned().collect::<Vec<_>>().into_iter();
    assert!(
        messages.any(|message| message.texts().any(|text| text.contains("All questions were answered.")))
    );
}

/// Where the work must wait, it waits for the summary that is being written already; a writer that is
/// dropped leaves nothing behind.
#[tokio::test]
async fn a_summary_on_its_way_is_waited_for_and_not_asked_twice() {
    let pause = Duration::from_millis(20);
    let fake = Settings::new().answer("All questions were answered.").piece(4).pause(pause).start().await;
    let mut writer = SummaryWriter::new(Arc::new(provider(Api::Chat, &fake)), Tokens(100_000));
    let mut session = working();
    session.push(Message::user("Go on."));
    session.prepare(None).unwrap();
    writer.begin(&session);
    let job = session.job().unwrap();
    assert!(matches!(writer.wait(job, &mut session).await, Resolved::Folded));
    assert_eq!(fake.log().len(), 1);

    let fake = Settings::new().trouble(.., Trouble::Hang).start().await;
    let mut writer = SummaryWriter::new(Arc::new(provider(Api::Chat, &fake)), Tokens(100_000));
    let mut session = working();
    session.push(Message::user("Go on."));
    session.prepare(None).unwrap();
    writer.begin(&session);
    fake.until_calls(1).await;
    drop(writer);
    fake.until_idle().await;
}
