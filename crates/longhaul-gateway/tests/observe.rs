//! A gateway that only observes: the provider gets the client's own bytes, and the report says what would have been sent.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "economy/agents.rs"]
mod agents;
mod bound;
#[path = "clients/mod.rs"]
mod clients;
mod common;

use std::sync::{Arc, Mutex};

use agents::{AGENTS, Agent};
use bound::{Client, HEADERS};
use clients::{APIS, body_of, conversation, model};
use common::{LONG, client, path, see, settings, until, url};
use http::HeaderMap;
use longhaul::{Profile, Tokens};
use longhaul_fake::{Answer, Settings as Script, Twin};
use longhaul_gateway::{
    Call, Costs, Decision, Desk, DeskSettings, Figures, Gateway, How, Incoming, Recall, Settings, start,
};
use longhaul_wire::api::Api;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The head and the body of a request.
type Raw = (String, Vec<u8>);

/// A provider that remembers every byte of every request, and bills one token for four of them. What a body has in
/// common with the one before it is in the cache.
struct Recorder {
    base: String,
    requests: Arc<Mutex<Vec<Raw>>>,
}

impl Recorder {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Raw>>> = Arc::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                answer(stream, &seen).await;
            }
        });
        Self { base, requests }
    }

    fn last(&self) -> Raw {
        self.requests.lock().unwrap().last().unwrap().clone()
    }
}

async fn answer(mut stream: TcpStream, seen: &Mutex<Vec<Raw>>) {
    let mut request = Vec::new();
    let end = loop {
        stream.read_buf(&mut request).await.unwrap();
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(request[..end].to_vec()).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let length: usize = length.parse().unwrap();
    while request.len() < end + length {
        stream.read_buf(&mut request).await.unwrap();
    }
    let body = request[end..].to_vec();
    let cached = {
        let mut seen = seen.lock().unwrap();
        let cached =
            seen.last().map_or(0, |(_, before)| before.iter().zip(&body).take_while(|(a, b)| a == b).count());
        seen.push((head.clone(), body.clone()));
        cached / 4
    };
    let prompt = body.len() / 4;
    let answer = if head.contains("/messages") {
        json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "ok"}],
            "usage": {"input_tokens": prompt - cached, "cache_read_input_tokens": cached, "output_tokens": 7}})
    } else if head.contains("/responses") {
        json!({"id": "r", "object": "response", "status": "completed", "output": [{"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "ok"}]}],
            "usage": {"input_tokens": prompt, "output_tokens": 7, "input_tokens_details": {"cached_tokens": cached}}})
    } else {
        json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": cached}}})
    };
    let answer = answer.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{answer}", answer.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}

async fn gateway(base: &str, desk: DeskSettings) -> Gateway {
    let fake = Script::new().start().await;
    let settings =
        Settings { anthropic: base.to_owned(), openai: format!("{base}/v1"), desk, ..settings(&fake) };
    start(settings).await.unwrap()
}

fn desk(folder: &tempfile::TempDir, window: u64, recall: Recall, observe: bool) -> DeskSettings {
    let store = folder.path().join("sessions.db").display().to_string();
    DeskSettings { window: Some(Tokens(window)), recall, observe, ..DeskSettings::new(store) }
}

/// The requests of a client, as it writes them, and how it is set up.
struct Played {
    name: String,
    api: Api,
    window: u64,
    recall: Recall,
    headers: &'static [(&'static str, &'static str)],
    bodies: Vec<Vec<u8>>,
}

/// JSON as somebody else writes it: what is read and written again is other bytes.
fn odd(body: &Value) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(body).unwrap();
    text.insert_str(text.len() - 1, " \t");
    text.into_bytes()
}

/// All shapes of clients that the tests know.
fn shapes() -> Vec<Played> {
    let agent = |agent: &Agent| Played {
        name: agent.name.to_owned(),
        api: agent.api,
        window: agent.window,
        recall: agent.recall,
        headers: agent.headers,
        bodies: (0..=agent.files).map(|files| odd(&(agent.request)(files))).collect(),
    };
    let plain = |api: Api| Played {
        name: format!("{api:?}"),
        api,
        window: 12_000,
        recall: Recall::Fill,
        headers: &[],
        bodies: (1..30)
            .map(|steps| odd(&body_of(api, model(api), &conversation(api, steps), true)))
            .collect(),
    };
    let small = AGENTS.iter().filter(|agent| agent.window < 100_000);
    small.map(agent).chain(APIS.map(plain)).collect()
}

/// Plays a client; gives what each answer says that was sent.
async fn play(played: &Played, gateway: &Gateway, mut each: impl FnMut(usize)) -> Vec<String> {
    let mut said = Vec::new();
    for (n, body) in played.bodies.iter().enumerate() {
        let request = client()
            .post(format!("{}{}", url(gateway), path(played.api)))
            .header("content-type", "application/json");
        let request =
            played.headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let seen = see(request.body(body.clone()), LONG).await;
        assert_eq!(seen.status, 200, "{} {n}: {}", played.name, seen.text());
        said.push(seen.header("x-longhaul").unwrap_or_default().to_owned());
        each(n);
        // The next request knows what this one was billed.
        until(|| gateway.figures().bookings.total().calls == n as u64 + 1).await;
    }
    said
}

#[tokio::test]
async fn the_provider_gets_the_clients_own_bytes() {
    for played in shapes() {
        let (provider, folder) = (Recorder::start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&provider.base, desk(&folder, played.window, played.recall, true)).await;
        let said = play(&played, &gateway, |n| {
            let (head, body) = provider.last();
            assert!(body == played.bodies[n], "{} {n}: another body was sent", played.name);
            assert!(!head.contains("longhaul"), "{} {n}: {head}", played.name);
        })
        .await;
        assert!(said.iter().all(|said| said.ends_with("; observed")), "{}: {said:?}", played.name);
        let figures = gateway.stop().await;
        let (observed, costs) = (figures.bookings.observed, figures.bookings.total());
        assert_eq!((observed.calls, observed.violations), (played.bodies.len() as u64, 0), "{}", played.name);
        assert!(costs.folds > 0 && figures.saved == 0, "{}: {costs:?}", played.name);
        // The bill is the provider's: a token for four bytes.
        let billed: usize = played.bodies.iter().map(|body| body.len() / 4).sum();
        assert_eq!(costs.billed.tokens.prompt(), billed as u64, "{}", played.name);
        assert!(costs.otherwise.tokens.prompt() < costs.billed.tokens.prompt(), "{}", played.name);
    }
}

/// What is told of a session that was only observed is what the same session was, when it was not.
#[tokio::test]
async fn the_report_is_what_would_have_been() {
    for played in shapes().into_iter().filter(|played| played.window > 12_000) {
        let mut told: Vec<(Figures, Vec<String>)> = Vec::new();
        for observe in [true, false] {
            let answers = (0..played.bodies.len()).map(|n| Answer::new().text(&format!("Part {n:02} next.")));
            let provider = Script::new().answers(answers).piece(1_000).start().await;
            let folder = tempfile::tempdir().unwrap();
            // A tool of ours is in no request that is observed.
            let desk = desk(&folder, played.window, Recall::Mcp, observe);
            let gateway = gateway(&provider.base_url(), desk).await;
            let said = play(&played, &gateway, |_| {}).await;
            told.push((gateway.stop().await, said));
        }
        let [(observed, _), (real, _)] = &told[..] else { panic!() };
        let costs: [Costs; 2] = [observed, real].map(|figures| figures.bookings.total());
        let [would, was] = [costs[0].otherwise.tokens, costs[1].billed.tokens];
        // The provider's count of what was sent moves the border of a fold by a call.
        assert!(costs[0].folds.abs_diff(costs[1].folds) <= 1, "{}", played.name);
        let is_near = |one: u64, other: u64| one.abs_diff(other) * 100 <= other * 4;
        assert!(is_near(would.prompt(), was.prompt()), "{}: {would:?} {was:?}", played.name);
        assert!(is_near(would.read, was.read), "{}: {would:?} {was:?}", played.name);
    }
}

fn incoming(api: Api, steps: usize) -> Incoming {
    Incoming {
        tenant: Arc::from(""),
        api,
        upstream: "http://provider".into(),
        headers: HeaderMap::new(),
        account: None,
        body: body_of(api, model(api), &conversation(api, steps), true).to_string().into(),
    }
}

fn sent(desk: &Desk, incoming: &Incoming) -> Call {
    match desk.decide(incoming) {
        Decision::Send(call) => call,
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

/// Where no answer says what it used, nothing is estimated: the views are the same to the token.
#[test]
fn the_views_are_those_that_would_have_been_sent() {
    for api in APIS {
        let views = [true, false].map(|observe| {
            let folder = tempfile::tempdir().unwrap();
            let desk = Desk::open(desk(&folder, 12_000, Recall::Mcp, observe)).unwrap();
            let mut views = Vec::new();
            for steps in 1..40 {
                let call = sent(&desk, &incoming(api, steps));
                assert!(!observe || call.body.is_none(), "{api:?} {steps}");
                views.push((call.view, call.full, call.edits));
                desk.answered(call, None);
            }
            views
        });
        assert!(views[0].last().unwrap().2 > 0, "{api:?}");
        assert_eq!(views[0], views[1], "{api:?}");
    }
}

/// All thinking was produced by the client's own requests: nothing is refused, whatever would have been folded. When
/// observing ends, the conversation goes on from what was really sent.
#[tokio::test]
async fn thinking_stays_the_clients_own() {
    let mut client = Client::start(Twin::ANTHROPIC_NOW, Profile::longhaul(), 20_000, true).await;
    client.desk.observe = true;
    client.desk.recall = Recall::Fill;
    client.restart().await;
    for n in 0..61 {
        // Past us, and counted, it keeps all of its thinking too.
        match n % 10 {
            9 => client.step_with(1_500, &HEADERS).await,
            _ => client.step(1_500).await,
        }
        client.is_clean();
        assert!(!client.is_edited() && !client.has_our_tool());
        // The newest answer has come since.
        assert_eq!(client.thinking_sent() + thoughts_of_an_answer(&client), client.thoughts());
    }
    assert!(client.has_edits());
    let observed = client.gateway().figures().bookings.observed;
    assert!(observed.tied > 0 && observed.violations == 0, "{observed:?}");
    assert_eq!(client.gateway().figures().tied, None);
    let session = client.session.clone();

    client.desk.observe = false;
    client.restart().await;
    client.step(1_500).await;
    client.is_clean();
    let said = client.last.as_ref().unwrap().header("x-longhaul").unwrap().to_owned();
    assert!(said.starts_with(How::New.name()) && client.session != session, "{said}");
    for _ in 0..5 {
        client.step(1_500).await;
        client.is_clean();
    }
    // What was observed before is still there, and so called.
    let store = longhaul_store::open(&client.desk.store).unwrap();
    let all = store.list(&longhaul_store::Filter::default(), 10).unwrap();
    let observed = all.iter().filter(|meta| meta.agent.ends_with("(observed)")).count();
    assert_eq!((all.len(), observed), (2, 1));
}

/// Blocks of thinking in the newest answer.
fn thoughts_of_an_answer(client: &Client) -> usize {
    let answers = client.messages.iter().rev().find(|message| message["role"] == "assistant");
    bound::thoughts(answers.unwrap())
}

/// A refusal goes to the client as it came, and nothing is sent a second time.
#[tokio::test]
async fn a_refusal_is_the_clients_own() {
    let script = Script::new().answers((0..40).map(|_| Answer::new().text("ok"))).window(3_000);
    let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
    let settings = Settings { desk: desk(&folder, 60_000, Recall::Mcp, true), ..settings(&fake) };
    let gateway = start(settings).await.unwrap();
    let mut refused = 0;
    for steps in 1..12 {
        let body = body_of(Api::Anthropic, "claude-sonnet-4-5", &conversation(Api::Anthropic, steps), true);
        let seen = common::ask(&url(&gateway), Api::Anthropic, &body, LONG).await;
        assert_eq!(fake.log().len(), steps);
        assert_eq!(fake.log().last().unwrap().body, body);
        refused += usize::from(seen.status != 200 || seen.text().contains("prompt is too long"));
    }
    assert!(refused > 0 && refused < 11, "{refused}");
    assert!(gateway.figures().resent.is_empty());
    gateway.stop().await;
}

/// The model asks for a result again that would have been left out.
#[test]
fn what_is_asked_for_again_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::open(desk(&folder, 12_000, Recall::Mcp, true)).unwrap());
    let api = Api::Chat;
    let mut messages = conversation(api, 30);
    let ask = |messages: &[Value]| {
        let body = body_of(api, model(api), messages, true).to_string().into();
        let call = sent(&desk, &Incoming { body, ..incoming(api, 1) });
        desk.answered(call, None);
        longhaul_gateway::Decide::books(&*desk)
    };
    for end in (1..=61).step_by(2) {
        ask(&messages[..end]);
    }
    // The first file, which was folded, and the newest one, which was not.
    for n in [0, 29] {
        let mut again = messages[1 + 2 * n..3 + 2 * n].to_vec();
        again[0]["tool_calls"][0]["id"] = json!(format!("again_{n}"));
        again[1]["tool_call_id"] = json!(format!("again_{n}"));
        messages.extend(again);
        ask(&messages);
    }
    let observed = ask(&messages).bookings().observed;
    assert_eq!((observed.asked_again, observed.violations), (1, 0));
}

/// Where Longhaul would answer in the provider's place, the provider does.
#[tokio::test]
async fn what_we_would_answer_ourselves_goes_on() {
    let (provider, folder) = (Recorder::start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&provider.base, desk(&folder, 12_000, Recall::Mcp, true)).await;
    let body = body_of(Api::Anthropic, "claude-opus-5-5", &conversation(Api::Anthropic, 30), true);
    let mut thread = body.clone();
    thread["thread"] = json!({ "type": "create" });
    for (at, body) in
        [(path(Api::Anthropic), &body), ("/v1/messages/count_tokens", &body), (path(Api::Anthropic), &thread)]
    {
        let body = odd(body);
        let request =
            client().post(format!("{}{at}", url(&gateway))).header("content-type", "application/json");
        let seen = see(request.body(body.clone()), LONG).await;
        let (head, got) = provider.last();
        assert_eq!(seen.status, 200, "{}", seen.text());
        assert!(got == body && head.starts_with(&format!("post {at} ")), "{head}");
    }
    assert_eq!(provider.requests.lock().unwrap().len(), 3);
    gateway.stop().await;
}
