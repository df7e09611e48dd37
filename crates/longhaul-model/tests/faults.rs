//! A provider that fails in every way that is known, over all three APIs, streamed and whole: each fault
//! passes when the request is made again, or ends in one typed fault; nothing hangs, and no key is shown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul::{Block, Overflow, Tokens};
use longhaul_fake::{Answer, Close, Fake, Outcome, RetryAfter, Settings, Trouble};
use longhaul_model::{Delta, Fault, Key, Model, Patience, Provider, Reply, Retry, Stop};
use longhaul_wire::api::{Api, Request};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;

const KEY: &str = "sk-a-key-that-nobody-may-see";

/// What a trouble comes to.
#[derive(Debug, Clone, Copy)]
enum Want {
    /// The reply comes at the first request.
    Reply,
    /// Trouble at the first request alone: the second one brings the reply. Trouble at every request: this
    /// fault, after as many requests as are allowed.
    Passes(&'static str),
    /// This fault, after one request.
    Ends(&'static str),
}

use Want::{Ends, Passes};

/// A row of the table.
struct Row {
    trouble: Trouble,
    streamed: Want,
    whole: Want,
    /// A stream has shown pieces of the reply before the trouble: they are declared void.
    void: bool,
}

fn row(trouble: Trouble, streamed: Want, whole: Want) -> Row {
    Row { trouble, streamed, whole, void: false }
}

/// A row of a trouble that comes to the same, streamed or whole.
fn same(trouble: Trouble, want: Want) -> Row {
    row(trouble, want, want)
}

impl Row {
    fn void(self) -> Self {
        Self { void: true, ..self }
    }
}

/// The trouble that a client is told of, or that ends the connection.
fn table() -> Vec<Row> {
    let limited = |after| Trouble::Limited(after);
    let cut = |after| Trouble::Cut { after, close: Close::Fin };
    let body = |status, body: &str| Trouble::Response { status, headers: Vec::new(), body: body.to_owned() };
    let quickly = Trouble::Slow { first: Duration::from_millis(5), between: Duration::from_millis(1) };
    vec![
        same(limited(RetryAfter::Unsaid), Passes("Limited")),
        same(limited(RetryAfter::Seconds(0)), Passes("Limited")),
        same(limited(RetryAfter::Millis(3)), Passes("Limited")),
        // A provider that wants to be left alone for an hour has refused.
        same(limited(RetryAfter::Seconds(3_600)), Ends("Limited")),
        same(Trouble::Status(500), Passes("Failed")),
        same(Trouble::Status(503), Passes("Failed")),
        same(Trouble::Status(529), Passes("Failed")),
        same(Trouble::Status(408), Passes("Failed")),
        same(Trouble::Html, Passes("Failed")),
        same(Trouble::Status(401), Ends("Key")),
        same(Trouble::Status(403), Ends("Key")),
        same(Trouble::Status(404), Ends("Refused")),
        same(Trouble::Status(418), Ends("Refused")),
        same(Trouble::Status(413), Ends("TooLong")),
        same(Trouble::TooLong { prompt: 9, window: 8 }, Ends("TooLong")),
        same(body(400, ""), Ends("Refused")),
        same(body(500, ""), Passes("Failed")),
        same(body(200, ""), Passes("Unreadable")),
        same(body(200, "{}"), Passes("Unreadable")),
        same(body(200, r#"{"error":{"type":"invalid_request_error","message":"no"}}"#), Ends("Refused")),
        same(Trouble::Close, Passes("Unreachable")),
        same(cut(0), Passes("Cut")),
        same(cut(6), Passes("Cut")).void(),
        row(Trouble::ErrorEvent { after: 0 }, Passes("Failed"), Passes("Failed")),
        row(Trouble::ErrorEvent { after: 6 }, Passes("Failed"), Passes("Failed")).void(),
        row(Trouble::BrokenJson { after: 6 }, Passes("Unreadable"), Passes("Unreadable")).void(),
        row(Trouble::NoClosingEvent, Passes("Cut"), Passes("Unreadable")).void(),
        same(Trouble::Empty, Passes("Empty")),
        same(Trouble::ArgumentsCut, Want::Reply),
        same(Trouble::Split(1), Want::Reply),
        same(Trouble::Split(5), Want::Reply),
        same(Trouble::CrLf, Want::Reply),
        same(Trouble::Gzip, Want::Reply),
        same(Trouble::StaysOpen, Want::Reply),
        same(quickly, Want::Reply),
    ]
}

/// The trouble that only patience ends. The last row has bytes, but no events.
fn silences() -> Vec<Row> {
    vec![
        same(Trouble::Hang, Passes("TimedOut")),
        same(Trouble::HangAfter(0), Passes("TimedOut")),
        same(Trouble::HangAfter(6), Passes("TimedOut")).void(),
        same(Trouble::CommentsOnly { every: Duration::from_millis(20) }, Passes("TimedOut")),
    ]
}

fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::TooLong { .. } => "TooLong",
        Fault::Limited { .. } => "Limited",
        Fault::Failed { .. } => "Failed",
        Fault::Key(_) => "Key",
        Fault::Refused { .. } => "Refused",
        Fault::Cut => "Cut",
        Fault::Unreadable(_) => "Unreadable",
        Fault::Empty => "Empty",
        Fault::TimedOut(_) => "TimedOut",
        Fault::Unreachable(_) => "Unreachable",
        _ => "another",
    }
}

fn request(api: Api) -> Request {
    let body = match api {
        Api::Chat => json!({"model":"m","messages":[{"role":"user","content":"Hi"}]}),
        Api::Responses => json!({"model":"m","input":[{"role":"user","content":"Hi"}]}),
        Api::Anthropic => json!({"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}),
    };
    Request::decode(api, body.to_string()).unwrap()
}

fn answer() -> Answer {
    let path = json!({"path": "src/file_with_a_long_name.rs"});
    Answer::new().thinking("Hm, which file shall I read?").text("I will look: 读.").call("Read", path)
}

/// What somebody who watches has seen.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Seen {
    thinking: String,
    text: String,
    calls: Vec<String>,
    arguments: String,
    voids: usize,
}

impl Seen {
    fn see(&mut self, delta: Delta<'_>) {
        match delta {
            Delta::Text(text) => self.text += text,
            Delta::Thinking(text) => self.thinking += text,
            Delta::Call(name) => self.calls.push(name.to_owned()),
            Delta::Arguments(json) => self.arguments += json,
            Delta::Again { .. } => {}
            Delta::Void => *self = Self { voids: self.voids + 1, ..Self::default() },
        }
    }

    /// The same of a reply that is there.
    fn of(reply: &Reply) -> Self {
        let mut seen = Self::default();
        for block in reply.messages.iter().flat_map(|message| message.blocks()) {
            match block {
                Block::Thinking(thinking) => seen.thinking += &thinking.text,
                Block::Text(text) => seen.text += &text.text,
                Block::ToolCall(call) => {
                    seen.calls.push(call.name.to_string());
                    seen.arguments += call.arguments.as_str();
                }
                _ => {}
            }
        }
        seen
    }
}

/// Waits until no connection is open. The time is no assertion: it guards against a test without end.
async fn idle(fake: &Fake) {
    let idle = tokio::time::timeout(Duration::from_secs(300), fake.until_idle()).await;
    assert!(idle.is_ok(), "{} connections stay open", fake.open_connections());
}

fn provider(api: Api, fake: &Fake, streams: bool, wait: Duration, attempts: u32) -> Provider {
    let patience = Patience { connection: Patience::default().connection, first: wait, next: wait };
    let retry = Retry { attempts, first: Duration::from_millis(1), longest: Duration::from_secs(5) };
    let provider = Provider::new(api, &fake.base_url(), Some(Key::new(KEY))).unwrap();
    let provider = provider.with_patience(patience).unwrap().with_retry(retry);
    if streams { provider } else { provider.without_streams() }
}

/// One cell of the matrix.
struct Case<'a> {
    api: Api,
    streams: bool,
    /// Trouble at every request, or only at the first.
    always: bool,
    row: &'a Row,
}

/// A client and its fake.
struct Pair {
    api: Api,
    streams: bool,
    attempts: u32,
    fake: Fake,
    provider: Provider,
}

impl Pair {
    /// One for each API, streamed and whole.
    async fn all(wait: Duration, attempts: u32) -> Vec<Self> {
        let mut all = Vec::new();
        for (api, streams) in Api::ALL.into_iter().flat_map(|api| [(api, true), (api, false)]) {
            let fake = Settings::new().start().await;
            let provider = provider(api, &fake, streams, wait, attempts);
            all.push(Self { api, streams, attempts, fake, provider });
        }
        all
    }

    /// Checks the cells of a row.
    async fn check(&self, row: &Row) {
        for always in [true, false] {
            let Self { api, streams, .. } = *self;
            self.check_case(&Case { api, streams, always, row }).await;
        }
    }

    async fn check_case(&self, case: &Case<'_>) {
        let (name, trouble) = (case.name(), case.row.trouble.clone());
        let settings = Settings::new().answer(answer());
        let settings =
            if case.always { settings.trouble(.., trouble) } else { settings.trouble(1..=1, trouble) };
        self.fake.restart(settings).await;
        let mut seen = Seen::default();
        let mut watch = |delta: Delta<'_>| seen.see(delta);
        let asked = self.provider.ask(request(case.api), &mut watch);
        // Not an assertion on time: a guard against a test without end.
        let asked = tokio::time::timeout(Duration::from_secs(300), asked).await;
        let asked = asked.unwrap_or_else(|_| panic!("{name} hangs"));
        let (requests, fault) = case.wanted(self.attempts as usize);
        assert_eq!(asked.as_ref().err().map(kind), fault, "{name}: {asked:?}");
        assert_eq!(self.fake.log().len(), requests, "{name}");
        assert_eq!(self.fake.violations(), [] as [&str; 0], "{name}");
        let void = case.row.void && case.streams;
        assert_eq!(seen.voids, if void { requests - 1 } else { 0 }, "{name}");
        if let Ok(reply) = asked {
            let shown = Seen { voids: 0, ..seen };
            check_reply(&name, &reply, &shown, case.row.trouble == Trouble::ArgumentsCut);
        }
        idle(&self.fake).await;
    }
}

impl Case<'_> {
    fn name(&self) -> String {
        let Self { api, streams, always, row } = self;
        format!("{api:?}, streams: {streams}, always: {always}, {:?}", row.trouble)
    }

    /// How many requests come, and the fault in which they end.
    fn wanted(&self, attempts: usize) -> (usize, Option<&'static str>) {
        match if self.streams { self.row.streamed } else { self.row.whole } {
            Want::Reply => (1, None),
            Passes(_) if !self.always => (2, None),
            Passes(fault) => (attempts, Some(fault)),
            Ends(fault) => (1, Some(fault)),
        }
    }
}

/// The reply is the one of the script, and what was shown of it too.
fn check_reply(name: &str, reply: &Reply, shown: &Seen, cut_arguments: bool) {
    let seen = Seen::of(reply);
    let arguments = r#"{"path":"src/file_with_a_long_name.rs"}"#;
    assert_eq!(
        (seen.text.as_str(), seen.thinking.as_str()),
        ("I will look: 读.", "Hm, which file shall I read?")
    );
    assert_eq!(
        (seen.calls.as_slice(), &reply.stop),
        (["Read".to_owned()].as_slice(), &Stop::Ended),
        "{name}"
    );
    assert!(reply.usage.as_ref().is_some_and(|usage| usage.output > 0), "{name}");
    if cut_arguments {
        // They are kept as they came, in whatever the API has for that.
        assert!(seen.arguments.contains("path") && !seen.arguments.contains("name.rs"), "{name}: {seen:?}");
    } else {
        assert_eq!((seen.arguments.as_str(), &seen), (arguments, shown), "{name}");
    }
}

#[tokio::test]
async fn every_fault_passes_or_is_one_fault() {
    for pair in Pair::all(Duration::from_secs(120), 3).await {
        for row in table() {
            pair.check(&row).await;
        }
    }
}

#[tokio::test]
async fn silence_ends_when_patience_does() {
    // All at once, since each waits for its patience to end. The clients are made before: that takes time.
    let mut checks = Vec::new();
    for row in 0..silences().len() {
        checks.extend(Pair::all(Duration::from_secs(2), 2).await.into_iter().map(|pair| (pair, row)));
    }
    let mut running = JoinSet::new();
    for (pair, row) in checks {
        running.spawn(async move { pair.check(&silences()[row]).await });
    }
    running.join_all().await;
}

#[tokio::test]
async fn a_reset_passes() {
    for pair in Pair::all(Duration::from_secs(120), 2).await {
        for always in [true, false] {
            let (settings, reset) =
                (Settings::new().answer(answer()), Trouble::Cut { after: 6, close: Close::Reset });
            let settings = if always { settings.trouble(.., reset) } else { settings.trouble(1..=1, reset) };
            pair.fake.restart(settings).await;
            match pair.provider.ask(request(pair.api), &mut |_| {}).await {
                Ok(reply) => {
                    assert_eq!((Seen::of(&reply).text.as_str(), always), ("I will look: 读.", false))
                }
                // A reset may be seen before what came before it.
                Err(fault) => assert!(always && matches!(kind(&fault), "Cut" | "Unreachable"), "{fault:?}"),
            }
            assert_eq!(pair.fake.log().len(), 2);
        }
    }
}

#[tokio::test]
async fn a_chat_without_its_last_line_is_a_reply() {
    // The message is closed; what is missing is usage and `[DONE]`.
    let settings = || Settings::new().answer("Yes.").piece(100);
    let whole = settings().start().await;
    let reply = provider(Api::Chat, &whole, true, Duration::from_secs(120), 1);
    reply.ask(request(Api::Chat), &mut |_| {}).await.unwrap();
    for trouble in [Trouble::Cut { after: 3, close: Close::Fin }, Trouble::HangAfter(3)] {
        let fake = settings().trouble(.., trouble.clone()).start().await;
        let provider = provider(Api::Chat, &fake, true, Duration::from_secs(1), 1);
        let reply = provider.ask(request(Api::Chat), &mut |_| {}).await;
        let reply = reply.unwrap_or_else(|fault| panic!("{trouble:?}: {fault}"));
        assert_eq!((Seen::of(&reply).text.as_str(), reply.usage), ("Yes.", None));
    }
}

#[tokio::test]
async fn sizes_reach_the_fault() {
    let sizes = Overflow { prompt: Some(Tokens(1_234)), window: Some(Tokens(1_000)), answer: None };
    for api in Api::ALL {
        for (streams, by_status) in [(true, true), (true, false), (false, false)] {
            let settings = Settings::new().trouble(.., Trouble::TooLong { prompt: 1_234, window: 1_000 });
            let settings = if by_status { settings.overflow_by_status() } else { settings };
            let fake = settings.start().await;
            let provider = provider(api, &fake, streams, Duration::from_secs(120), 3);
            let fault = provider.ask(request(api), &mut |_| {}).await.unwrap_err();
            assert!(
                matches!(&fault, Fault::TooLong { overflow, .. } if *overflow == sizes),
                "{api:?} {fault:?}"
            );
        }
    }
}

#[tokio::test]
async fn who_is_dropped_leaves_no_connection() {
    let hour = Duration::from_secs(3_600);
    let troubles = [
        (Trouble::Hang, false, Outcome::Left),
        (Trouble::CommentsOnly { every: Duration::from_millis(5) }, false, Outcome::Left),
        (Trouble::Slow { first: hour, between: hour }, false, Outcome::Left),
        (Trouble::HangAfter(6), true, Outcome::Left),
        (Trouble::Slow { first: Duration::ZERO, between: Duration::from_millis(20) }, true, Outcome::Left),
        // In the pause before the next attempt.
        (Trouble::Limited(RetryAfter::Seconds(4)), false, Outcome::Said),
    ];
    for (trouble, speaks, outcome) in troubles {
        for (api, streams) in Api::ALL.into_iter().flat_map(|api| [(api, true), (api, false)]) {
            let fake = Settings::new().answer(answer()).trouble(.., trouble.clone()).start().await;
            let provider = provider(api, &fake, streams, hour, 3);
            let (spoke, speaking) = (Arc::new(Notify::new()), speaks && streams);
            let mut watch = {
                let spoke = spoke.clone();
                move |_: Delta<'_>| spoke.notify_one()
            };
            let asked = provider.ask(request(api), &mut watch);
            tokio::select! {
                asked = asked => panic!("{trouble:?} {api:?}: {asked:?}"),
                () = async { fake.until_calls(1).await; if speaking { spoke.notified().await } } => {}
            }
            // The future is gone, and its provider is still there.
            idle(&fake).await;
            assert_eq!(fake.open_connections(), 0);
            let log = fake.log();
            assert_eq!((log.len(), log[0].outcome), (1, outcome), "{trouble:?} {api:?}");
            drop(provider);
        }
    }
}

#[tokio::test]
async fn nobody_there_is_said() {
    let fake = Settings::new().start().await;
    let provider = provider(Api::Chat, &fake, true, Duration::from_secs(120), 2);
    let address = fake.address();
    drop(fake);
    // Until the port is closed, connections end without a word.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let fault = provider.ask(request(Api::Chat), &mut |_| {}).await.unwrap_err();
    assert_eq!(kind(&fault), "Unreachable", "{fault:?}");
}

#[tokio::test]
async fn a_request_goes_nowhere_else() {
    let elsewhere = Settings::new().start().await;
    let location = format!("{}/v1/messages", elsewhere.base_url());
    for api in Api::ALL {
        for status in [301, 302, 307, 308] {
            let headers = vec![("location".to_owned(), location.clone())];
            let moved = Trouble::Response { status, headers, body: String::new() };
            let fake = Settings::new().trouble(.., moved).start().await;
            let provider = provider(api, &fake, true, Duration::from_secs(120), 3);
            let fault = provider.ask(request(api), &mut |_| {}).await.unwrap_err();
            assert!(matches!(fault, Fault::Refused { status: seen, .. } if seen == status), "{fault:?}");
        }
    }
    assert_eq!(elsewhere.log(), []);
}

#[tokio::test]
async fn no_key_is_shown() {
    // The end of what is quoted of a long text is in the middle of the key.
    let long = format!(r#"{{"error":{{"message":"{}{KEY}"}}}}"#, "x".repeat(490));
    let quoted = |status| Trouble::Response { status, headers: Vec::new(), body: format!("no {KEY}") };
    let cut = |status| Trouble::Response { status, headers: Vec::new(), body: long.clone() };
    let troubles =
        [None, Some(quoted(400)), Some(quoted(500)), Some(cut(500)), Some(cut(429)), Some(cut(200))];
    for api in Api::ALL {
        for (trouble, streams) in troubles.iter().flat_map(|trouble| [(trouble, true), (trouble, false)]) {
            let settings = match trouble {
                Some(trouble) => Settings::new().trouble(.., trouble.clone()),
                None => Settings::new().key("sk-another"),
            };
            let fake = settings.start().await;
            let provider = provider(api, &fake, streams, Duration::from_secs(120), 2);
            let fault = provider.ask(request(api), &mut |_| {}).await.unwrap_err();
            assert!(trouble.is_some() || matches!(&fault, Fault::Key(says) if says.contains("[key]")));
            let shown = [
                format!("{provider:?} {provider:#?}"),
                format!("{fault} {fault:?} {fault:#?}"),
                format!("{:?}", fake.log()),
            ];
            for shown in shown {
                assert!(!shown.contains(&KEY[..8]), "{trouble:?} {shown}");
            }
            // It was sent all the same.
            let header = if api == Api::Anthropic { "x-api-key" } else { "authorization" };
            assert_eq!(fake.log()[0].header(header), Some("[key]"));
        }
    }
}

#[tokio::test]
async fn a_script_is_played_with_its_key_and_without() {
    let seen = Mutex::new(Vec::new());
    for api in Api::ALL {
        let fake = Settings::new().answers(["One.", "Two."]).key(KEY).start().await;
        let with_key = provider(api, &fake, true, Duration::from_secs(120), 1);
        for said in ["One.", "Two."] {
            let reply = with_key.ask(request(api), &mut |_| {}).await.unwrap();
            assert_eq!(Seen::of(&reply).text, said);
            seen.lock().unwrap().push(reply.usage);
        }
        let without = Provider::new(api, &fake.base_url(), None).unwrap();
        let fault = without.ask(request(api), &mut |_| {}).await.unwrap_err();
        assert_eq!(kind(&fault), "Key");
    }
    assert!(seen.into_inner().unwrap().iter().all(Option::is_some));
}
