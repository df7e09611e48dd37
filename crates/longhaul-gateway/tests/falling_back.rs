//! A conversation that lives because it is folded goes on when the desk fails: what was sent last and the new messages go
//! out, or a fold of the request in hand, and the next request extends what was really sent.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bound;
#[path = "clients/mod.rs"]
mod clients;
mod common;
mod faulty;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bound::{Client, HEADERS};
use clients::{APIS, body_of, conversation, model};
use common::{LONG, Seen, ask, settings, url};
use faulty::{Fault, Faulty};
use longhaul::{Profile, Tokens};
use longhaul_fake::{Answer, Fake, Settings as Script, Twin};
use longhaul_gateway::{Decide, DeskSettings, Gateway, Reason, Settings, start_with};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

const WINDOW: u64 = 12_000;

/// Results of more bytes enter cut.
const CUT: usize = 3_000;

/// Enough for folds in this window.
const STEPS: usize = 30;

/// A provider that refuses what is over its window.
async fn provider() -> Fake {
    let answer = Answer::new().text("Let me see.").call("Read", json!({"path": "a"}));
    Script::new().answers((0..400).map(|_| answer.clone())).window(WINDOW).start().await
}

fn desk_settings(place: &str) -> DeskSettings {
    let mut profile = Profile::longhaul();
    profile.cut.bytes = CUT;
    DeskSettings { window: Some(Tokens(WINDOW)), profile, ..DeskSettings::new(place) }
}

fn quick(fake: &Fake) -> Settings {
    let mut settings = settings(fake);
    (settings.limits.decide, settings.limits.threads) = (Duration::from_millis(400), 2);
    settings
}

/// An agent that reads files, and what its provider got of it.
struct Agent<'a> {
    api: Api,
    fake: &'a Fake,
    messages: Vec<Value>,
    steps: usize,
    /// The messages of the newest request that the provider took, without marks.
    before: Vec<Value>,
    /// How many edits stood in it.
    edits: String,
    is_stream: bool,
}

impl<'a> Agent<'a> {
    fn new(api: Api, fake: &'a Fake) -> Self {
        let (messages, before) = (conversation(api, 0), Vec::new());
        Self { api, fake, messages, steps: 0, before, edits: String::new(), is_stream: false }
    }

    /// A step whose result would enter cut.
    fn reads_much(&mut self) {
        let long: String =
            (0..90).map(|line| format!("static LINE_{}_{line}: u32 = {line};\n", self.steps)).collect();
        self.step(Some(long));
    }

    fn step(&mut self, text: Option<String>) {
        let mut new = conversation(self.api, self.steps + 1).split_off(self.messages.len());
        if let (Some(text), Some(last)) = (text, new.last_mut()) {
            match self.api {
                Api::Anthropic => last["content"][0]["content"] = text.into(),
                Api::Chat => last["content"] = text.into(),
                Api::Responses => last["output"] = text.into(),
            }
        }
        self.messages.extend(new);
        self.steps += 1;
    }

    /// Sends its conversation. It is never refused for its size.
    async fn asks(&mut self, gateway: &Gateway) -> Asked {
        let mut body = body_of(self.api, model(self.api), &self.messages, true);
        body["stream"] = self.is_stream.into();
        let seen = ask(&url(gateway), self.api, &body, LONG).await;
        assert_eq!(seen.status, 200, "{:?} step {}: {}", self.api, self.steps, seen.text());
        let call = self.fake.log().pop().unwrap();
        let sent = messages_of(self.api, &call.body);
        let is_extended = sent.starts_with(&self.before);
        let says = seen.header("x-longhaul").unwrap_or_default().to_owned();
        let value =
            |name: &str| says.split("; ").find_map(|part| part.strip_prefix(name)).unwrap_or_default();
        let (edits, view) = (value("edits=").to_owned(), value("view=").parse().unwrap_or_default());
        let is_edited = std::mem::replace(&mut self.edits, edits.clone()) != edits;
        self.before = sent;
        Asked { view, seen, says, is_extended, is_edited }
    }
}

impl Agent<'_> {
    /// Goes on until there is room for some steps more: right after a fold there is.
    async fn makes_room(&mut self, gateway: &Gateway) {
        for _ in 0..STEPS {
            self.step(None);
            if self.asks(gateway).await.view < WINDOW / 2 {
                return;
            }
        }
        panic!("nothing was folded");
    }
}

struct Asked {
    /// Tokens that were sent, as the gateway counts.
    view: u64,
    seen: Seen,
    says: String,
    /// What was sent begins with all that was sent before.
    is_extended: bool,
    /// Other edits stand than before.
    is_edited: bool,
}

/// The messages of a request without marks of the cache.
fn messages_of(api: Api, body: &Value) -> Vec<Value> {
    fn without_marks(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(without_marks);
            }
            Value::Array(list) => list.iter_mut().for_each(without_marks),
            _ => {}
        }
    }
    let mut messages = body[if api == Api::Responses { "input" } else { "messages" }].clone();
    without_marks(&mut messages);
    messages.as_array().unwrap().clone()
}

/// An agent of a folded conversation.
async fn folded<'a>(api: Api, fake: &'a Fake, gateway: &Gateway) -> Agent<'a> {
    let mut agent = Agent::new(api, fake);
    for _ in 0..STEPS {
        agent.step(None);
        let asked = agent.asks(gateway).await;
        assert!(asked.is_extended || asked.is_edited, "{api:?} {}", asked.says);
    }
    assert!(!agent.edits.is_empty() && agent.edits != "0", "{api:?} was folded");
    assert!(agent.messages.len() > agent.before.len());
    agent
}

#[tokio::test]
async fn a_folded_conversation_goes_on_without_a_decision() {
    let faults = [
        Fault::Panics,
        Fault::Fails(Reason::NoView),
        Fault::Fails(Reason::Store),
        Fault::Fails(Reason::Slow),
        Fault::ComesLate,
        Fault::IsNotHeard,
        Fault::Hangs,
        Fault::Poisoned,
    ];
    for api in APIS {
        let fake = provider().await;
        let folder = tempfile::tempdir().unwrap();
        let desk = Faulty::new(desk_settings(&folder.path().join("s.db").display().to_string()));
        let gateway = start_with(quick(&fake), desk.clone()).await.unwrap();
        let mut agent = folded(api, &fake, &gateway).await;
        for fault in faults {
            agent.makes_room(&gateway).await;
            desk.meets(Some(fault));
            // What would enter cut is sent as it came, and stays so.
            agent.reads_much();
            let asked = agent.asks(&gateway).await;
            assert!(asked.says.contains("; sent=last-view; why="), "{api:?} {fault:?} {}", asked.says);
            assert!(asked.is_extended && !asked.is_edited, "{api:?} {fault:?} {}", asked.says);
            // The same again, and one more.
            let asked = agent.asks(&gateway).await;
            assert!(
                asked.says.starts_with("retry; ") && asked.is_extended,
                "{api:?} {fault:?} {}",
                asked.says
            );
            agent.step(None);
            let asked = agent.asks(&gateway).await;
            assert!(asked.is_extended && !asked.is_edited, "{api:?} {fault:?} {}", asked.says);
            desk.meets(None);
            desk.lets_go();
            // The desk goes on from what was sent.
            for _ in 0..6 {
                agent.step(None);
                let asked = agent.asks(&gateway).await;
                assert!(asked.says.starts_with("extends; "), "{api:?} {fault:?} {}", asked.says);
                assert!(!asked.says.contains("sent="), "{api:?} {fault:?} {}", asked.says);
                assert!(asked.is_extended || asked.is_edited, "{api:?} {fault:?} {}", asked.says);
            }
        }
        assert_eq!(gateway.figures().fell_back["last-view"], 3 * faults.len() as u64);
        assert!(fake.log().iter().all(|call| call.status == 200));
        gateway.stop().await;
    }
}

/// The desk that a gateway begins with fails at once: there is nothing to go on from but the request in hand.
#[tokio::test]
async fn after_a_restart_a_request_is_folded_by_itself() {
    for api in APIS {
        for fault in [Fault::Panics, Fault::Fails(Reason::Store), Fault::Fails(Reason::Slow)] {
            let fake = provider().await;
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("s.db").display().to_string();
            let before = start_with(quick(&fake), Faulty::new(desk_settings(&place))).await.unwrap();
            let mut agent = folded(api, &fake, &before).await;
            before.stop().await;
            let desk = Faulty::new(desk_settings(&place));
            let gateway = start_with(quick(&fake), desk.clone()).await.unwrap();
            desk.meets(Some(fault));
            agent.step(None);
            let asked = agent.asks(&gateway).await;
            assert!(asked.says.contains("; sent=stateless; why="), "{api:?} {fault:?} {}", asked.says);
            // The next one goes on from there, and so does the desk.
            for n in 0..8 {
                desk.meets((n < 2).then_some(fault));
                agent.step(None);
                let asked = agent.asks(&gateway).await;
                assert!(asked.says.starts_with("extends; "), "{api:?} {fault:?} {}", asked.says);
                assert_eq!(
                    asked.says.contains("; sent=last-view; "),
                    n < 2,
                    "{api:?} {fault:?} {}",
                    asked.says
                );
                assert!(asked.is_extended || asked.is_edited, "{api:?} {fault:?} {}", asked.says);
                assert!(asked.is_extended || n > 2, "{api:?} {fault:?} {}", asked.says);
            }
            let figures = gateway.figures();
            assert_eq!((figures.fell_back["stateless"], figures.fell_back["last-view"]), (1, 2));
            gateway.stop().await;
            // It is stored: another gateway goes on with it.
            let gateway = start_with(quick(&fake), Faulty::new(desk_settings(&place))).await.unwrap();
            agent.step(None);
            let asked = agent.asks(&gateway).await;
            assert!(asked.says.starts_with("extends; "), "{api:?} {fault:?} {}", asked.says);
            assert!(asked.is_extended || asked.is_edited, "{api:?} {fault:?} {}", asked.says);
        }
    }
}

/// Nothing but the client's own bytes could be sent in time, and the provider finds them too long.
#[tokio::test]
async fn bytes_of_the_client_that_are_too_long_are_taken_back() {
    for (api, is_stream) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        for restarts in [false, true] {
            let fake = provider().await;
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("s.db").display().to_string();
            let desk = || {
                let mut desk = Faulty::new(desk_settings(&place));
                Arc::get_mut(&mut desk).unwrap().only_after_overflow = true;
                desk
            };
            let mut now = desk();
            let mut gateway = start_with(quick(&fake), now.clone()).await.unwrap();
            let mut agent = folded(api, &fake, &gateway).await;
            if restarts {
                gateway.stop().await;
                now = desk();
                gateway = start_with(quick(&fake), now.clone()).await.unwrap();
            }
            now.meets(Some(Fault::Panics));
            agent.is_stream = is_stream;
            agent.step(None);
            let asked = agent.asks(&gateway).await;
            let sent = if restarts { "; sent=stateless; why=panic" } else { "; sent=last-view; why=panic" };
            assert!(asked.says.ends_with(sent), "{api:?} {}", asked.says);
            assert!(asked.is_extended || restarts, "{api:?} {}", asked.says);
            // The client's own bytes, and what was sent instead.
            let log = fake.log();
            let own = &log[log.len() - 2];
            assert!(own.status == 400 || is_stream, "{api:?}");
            assert_eq!(messages_of(api, &own.body), agent.messages, "{api:?}");
            assert_eq!(gateway.figures().resent["too-long"], 1);
            assert_eq!(gateway.figures().fell_back["own"], 1);
            now.meets(None);
            agent.step(None);
            let asked = agent.asks(&gateway).await;
            assert!(asked.says.starts_with("extends; "), "{api:?} {}", asked.says);
            assert!(asked.is_extended || asked.is_edited, "{api:?} {}", asked.says);
            gateway.stop().await;
        }
    }
}

/// Pseudo-random numbers, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// Bound thinking follows what was really sent, whichever way that was made. covers: DESIGN rule 12.
#[tokio::test]
async fn thinking_follows_what_was_sent_without_a_decision() {
    let rounds = std::env::var("LONGHAUL_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    let faults = [
        Fault::Panics,
        Fault::Fails(Reason::NoView),
        Fault::Fails(Reason::Store),
        Fault::Poisoned,
        Fault::IsNotHeard,
    ];
    let twins = [Twin::ANTHROPIC_NOW, Twin::ANTHROPIC_DROP, Twin::ANTHROPIC_RECORD];
    let first = std::env::var("LONGHAUL_SEED").map_or(0, |seed| seed.parse().unwrap());
    for (n, twin) in (first..first + rounds).flat_map(|round| twins.map(|twin| (round, twin))) {
        let mut dice = Dice((n + 1_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let desk: Arc<Mutex<Option<Arc<Faulty>>>> = Arc::default();
        let mut client = Client::start(twin, Profile::longhaul(), 8_000, n % 2 == 0).await;
        let newest = desk.clone();
        client.desk_of = Some(Box::new(move |settings| {
            let faulty = Faulty::new(settings);
            *newest.lock().unwrap() = Some(faulty.clone());
            faulty as Arc<dyn Decide>
        }));
        client.restart().await;
        let (mut events, mut fallen) = (Vec::new(), 0);
        for step in 0..60 {
            if dice.roll(15) == 0 {
                client.restart().await;
                events.push(format!("{step}: restart"));
            }
            let fault = (dice.roll(3) == 0).then(|| faults[dice.roll(faults.len() as u64) as usize]);
            let now = desk.lock().unwrap().clone().unwrap();
            // What hangs in a conversation needs one.
            let fault = fault.filter(|_| !longhaul_inspector::Host::live(&*now.desk).is_empty());
            now.meets(fault);
            let headers = if dice.roll(12) == 0 { &HEADERS[..] } else { &HEADERS[1..] };
            events.push(format!("{step}: {fault:?} {}", headers.len()));
            let bytes = if dice.roll(8) == 0 { 4_000 } else { 900 };
            client.step_with(bytes, headers).await;
            let says = client.last.as_ref().and_then(|seen| seen.header("x-longhaul")).unwrap_or_default();
            fallen += usize::from(says.contains("; sent="));
            events.push(says.to_owned());
            now.meets(None);
            now.lets_go();
            assert_eq!(client.fake.violations(), [""; 0], "{n} {} {events:#?}", twin.name);
            assert_eq!(client.fake.stale_thinking(), Default::default(), "{n} {} {events:#?}", twin.name);
        }
        assert!(fallen > 8, "{n} {} {events:#?}", twin.name);
        client.gateway.take().unwrap().stop().await;
    }
}
