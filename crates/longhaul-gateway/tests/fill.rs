//! Recall by fill: one tool stands behind those of the client, and what it recalls takes the place of the error that the
//! client answers with.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
#[macro_use]
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use clients::{APIS, body_of, conversation, model, result};
use common::{Dice, Ground};
use http::HeaderMap;
use longhaul::conversation::ToolResult;
use longhaul::{EditKind, Profile, RecallPart, Session, Tokens, Usage, Why};
use longhaul_gateway::{Call, Decision, Desk, DeskSettings, How, Incoming, Recall};
use longhaul_store::{Keeper, Patience, SessionId};
use longhaul_wire::api::{Api, Request};
use serde_json::{Value, json};

on_each_store!(
    a_restart_after_every_call_changes_no_byte,
    a_crash_before_the_answer_changes_no_byte,
    replicas_that_share_a_store_send_the_same_bytes,
    a_fill_is_stored_before_it_is_sent,
    a_conversation_keeps_what_it_began_with,
    who_takes_a_fill_back_sees_the_error,
);

const STEPS: usize = 40;

/// Small, so that it is folded again and again.
const WINDOW: usize = 8_000;

/// Results of more bytes enter cut.
const CUT: usize = 4_000;

fn settings(ground: &Ground, recall: Recall) -> DeskSettings {
    let mut profile = Profile::longhaul();
    profile.cut.bytes = CUT;
    DeskSettings {
        window: Some(Tokens(WINDOW as u64)),
        profile,
        recall,
        // A slow machine is no reason to go on without the store.
        patience: Patience::Long,
        ..DeskSettings::new(ground.place.clone())
    }
}

fn desk(ground: &Ground) -> Desk {
    Desk::open(settings(ground, Recall::Fill)).unwrap()
}

/// An agent without a tool for recall, over one of the APIs.
struct Agent {
    api: Api,
    messages: Vec<Value>,
    calls: usize,
}

/// What clients say to a call that they cannot run.
fn cannot(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "<tool_use_error>Error: No such tool available: longhaul_recall</tool_use_error>",
        Api::Chat => "Tool longhaul_recall not found",
        Api::Responses => "unsupported call: longhaul_recall",
    }
}

impl Agent {
    fn new(api: Api) -> Self {
        Self { api, messages: conversation(api, 0), calls: 0 }
    }

    /// The model calls these tools at once. Each has a name, arguments, and what the client gives back: the text, and
    /// whether it says that it is an error.
    fn step(&mut self, calls: &[(&str, Value, String, bool)]) -> Vec<String> {
        let ids: Vec<String> = calls
            .iter()
            .map(|_| {
                self.calls += 1;
                format!("call_{}", self.calls)
            })
            .collect();
        let all = || ids.iter().zip(calls);
        match self.api {
            Api::Anthropic => {
                let uses = all().map(|(id, (name, arguments, ..))| {
                    json!({"type": "tool_use", "id": id, "name": name, "input": arguments})
                });
                let results = all().map(|(id, (_, _, text, is_error))| match is_error {
                    true => {
                        json!({"type": "tool_result", "content": text, "is_error": true, "tool_use_id": id})
                    }
                    false => json!({"type": "tool_result", "content": text, "tool_use_id": id}),
                });
                let (uses, results) = (uses.collect::<Vec<_>>(), results.collect::<Vec<_>>());
                self.messages.push(json!({"role": "assistant", "content": uses}));
                self.messages.push(json!({"role": "user", "content": results}));
            }
            Api::Chat => {
                let made = all().map(|(id, (name, arguments, ..))| {
                    json!({"id": id, "type": "function",
                        "function": {"name": name, "arguments": arguments.to_string()}})
                });
                let made = made.collect::<Vec<_>>();
                self.messages.push(json!({"role": "assistant", "content": null, "tool_calls": made}));
                for (id, (_, _, text, _)) in all() {
                    self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
                }
            }
            Api::Responses => {
                for (id, (name, arguments, ..)) in all() {
                    let arguments = arguments.to_string();
                    self.messages.push(
                        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}),
                    );
                }
                for (id, (_, _, text, _)) in all() {
                    self.messages
                        .push(json!({"type": "function_call_output", "call_id": id, "output": text}));
                }
            }
        }
        ids
    }

    /// Reads a file that says this.
    fn read(&mut self, text: impl Into<String>) -> String {
        let path = json!({ "path": format!("src/file_{}.rs", self.calls) });
        self.step(&[("Read", path, text.into(), false)]).remove(0)
    }

    /// Runs tests that say this.
    fn run(&mut self, text: impl Into<String>) -> String {
        self.step(&[("Bash", json!({"command": "cargo build"}), text.into(), false)]).remove(0)
    }

    /// Calls the tool that the client does not have. Gives the id of the call.
    fn recall(&mut self, arguments: Value) -> String {
        self.step(&[("longhaul_recall", arguments, cannot(self.api).to_owned(), true)]).remove(0)
    }

    fn incoming(&self) -> Incoming {
        self.incoming_with(|_| {})
    }

    fn incoming_with(&self, change: impl Fn(&mut Value)) -> Incoming {
        let mut body = body_of(self.api, model(self.api), &self.messages, true);
        change(&mut body);
        let (tenant, body) = (Arc::from(""), body.to_string().into());
        Incoming {
            tenant,
            api: self.api,
            upstream: "".into(),
            headers: HeaderMap::new(),
            account: None,
            body,
        }
    }
}

fn sent(desk: &Desk, incoming: &Incoming) -> Call {
    match desk.decide(incoming) {
        Decision::Send(call) => call,
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

fn text(call: &Call, incoming: &Incoming) -> String {
    let body = call.body.as_ref().map_or(incoming.body.as_ref(), |body| &body[..]);
    String::from_utf8(body.to_vec()).unwrap()
}

fn usage(body: &str) -> Usage {
    Usage { input: body.len() as u64 / 4, output: 40, ..Usage::default() }
}

/// Asks, and tells the desk what it cost.
fn asked(desk: &Desk, incoming: &Incoming) -> String {
    let call = sent(desk, incoming);
    let body = text(&call, incoming);
    desk.answered(call, Some(&usage(&body)));
    body
}

fn read(api: Api, body: &str) -> Request {
    Request::decode(api, body).unwrap()
}

/// The result of a call, as the model sees it.
fn seen(api: Api, body: &str, id: &str) -> Option<ToolResult> {
    let request = read(api, body);
    let results =
        request.messages().iter().flat_map(|message| message.results().cloned().collect::<Vec<_>>());
    results.into_iter().find(|result| &*result.id == id)
}

/// The handles of all marks of a body, or of a text. The tool says how a mark looks, and is none.
fn handles(body: &str) -> Vec<String> {
    let behind = body.split("recall ").skip(1);
    let digits = behind.filter_map(|text| text.get(..12)).filter(|digits| *digits != "3f9a51c02b77");
    digits.filter(|text| text.bytes().all(|c| c.is_ascii_hexdigit())).map(str::to_owned).collect()
}

/// The tool of ours in a body, and the body without it.
fn without_tool(api: Api, body: &str) -> (String, String) {
    let tools = read(api, body).frame().tools.clone();
    let ours: Vec<_> = tools.iter().filter(|tool| &*tool.name == "longhaul_recall").collect();
    assert_eq!(ours.len(), 1, "{api:?}");
    assert_eq!(&*tools.last().unwrap().name, "longhaul_recall", "behind those of the client");
    let tool = ours[0].definition.as_str().to_owned();
    let without = body.replacen(&format!(",{tool}"), "", 1);
    assert!(without.len() < body.len());
    (tool, without)
}

/// The name of the list of messages, as it begins in a body.
fn list(api: Api) -> &'static str {
    if api == Api::Responses { "\"input\":[" } else { "\"messages\":[" }
}

/// Output of a build, which enters without its progress.
fn noise(n: usize) -> String {
    let crates: String = (0..60).map(|part| format!("   Compiling part_{n}_{part} v0.1.0\n")).collect();
    format!("Building 60 parts\n{crates}\n    Finished `dev` profile in 7.31s\n")
}

/// Source that enters cut.
fn long(n: usize) -> String {
    (0..140).map(|line| format!("    let field_{n}_{line} = read_field(input, {line})?;\r\n")).collect()
}

/// An agent at work: it reads, its window is folded, and now and then it recalls what it sees marks of. The desks are
/// asked in turn as `which` says.
fn worked(api: Api, mut ask: impl FnMut(usize, &Incoming) -> String) -> Vec<String> {
    let mut agent = Agent::new(api);
    let mut bodies = Vec::new();
    for n in 0..STEPS {
        let body = ask(n, &agent.incoming());
        let newest = handles(&body).pop();
        match (n % 6, newest) {
            (1, _) => drop(agent.run(noise(n))),
            (3, _) => drop(agent.read(long(n))),
            (2, Some(handle)) => drop(agent.recall(json!({ "handle": handle }))),
            (4, Some(handle)) => drop(agent.recall(json!({ "handle": handle, "lines": "2-9" }))),
            (5, Some(handle)) if n % 12 == 5 => {
                drop(agent.recall(json!({ "handle": handle, "pattern": "7" })))
            }
            _ => drop(agent.read(result(n))),
        }
        bodies.push(body);
    }
    bodies
}

/// What is sent by one desk that sees all of it.
fn undisturbed(ground: &Ground, api: Api) -> Vec<String> {
    let ground = ground.another();
    let desk = desk(&ground);
    let bodies = worked(api, |_, incoming| asked(&desk, incoming));
    let filled = bodies.last().unwrap().matches("call_").count();
    assert!(filled > 0);
    bodies
}

fn same(bodies: &[String], expected: &[String], api: Api) {
    for (n, (body, expected)) in bodies.iter().zip(expected).enumerate() {
        let common = body.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
        let near = |body: &str| {
            let bytes = &body.as_bytes()[common.saturating_sub(80)..body.len().min(common + 80)];
            String::from_utf8_lossy(bytes).into_owned()
        };
        assert!(body == expected, "{api:?} {n}: {}\n-- instead of --\n{}", near(body), near(expected));
    }
    assert_eq!(bodies.len(), expected.len());
}

/// The only session of a store.
fn stored(ground: &Ground) -> (Keeper, Session, SessionId) {
    let store = ground.open();
    let id = store.list(&longhaul_store::Filter::default(), 9).unwrap()[0].id;
    let (keeper, session) = Keeper::open(store, id, settings(ground, Recall::Fill).profile).unwrap();
    (keeper, session, id)
}

fn folds(session: &Session) -> usize {
    session.ledger().edits().filter(|(edit, _)| matches!(edit.kind, EditKind::Fold { .. })).count()
}

fn fills(session: &Session) -> usize {
    session.ledger().edits().filter(|(edit, _)| edit.why == Why::Host).count()
}

#[test]
fn the_tool_stands_behind_those_of_the_client_in_every_call_and_nothing_else_is_added() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let (mut first, mut before, mut breaks): (Option<String>, Option<String>, _) = (None, None, 0);
        let bodies = worked(api, |n, incoming| {
            let call = sent(&desk, incoming);
            assert_eq!(call.how, if n == 0 { How::New } else { How::Extends }, "{api:?} {n}");
            let (edits, body) = (call.edits, text(&call, incoming));
            let own = &*incoming.body;
            let (tool, without) = without_tool(api, &body);
            assert_eq!(*first.get_or_insert(tool.clone()), tool);
            // What the client wrote around its messages is as it wrote it.
            let split = |body: &str| {
                let at = body.find(list(api)).unwrap() + list(api).len();
                (body[..at].to_owned(), body.rsplit_once(']').unwrap().1.to_owned())
            };
            assert_eq!(split(&without), split(own), "{api:?} {n}");
            if edits == 0 {
                assert!(without == own, "{api:?} {n}");
            }
            // Each call goes on behind the one before, to the byte.
            if let Some(before) = &before {
                breaks += usize::from(!goes_on(api, before, &body));
            }
            before = Some(body.clone());
            desk.answered(call, Some(&usage(&body)));
            body
        });
        let (_, session, _) = stored(&ground);
        assert!(folds(&session) >= 3 && fills(&session) >= 6, "{} {}", folds(&session), fills(&session));
        assert_eq!(session.audit(), [], "{api:?}");
        assert_eq!(breaks, folds_that_broke(&session), "{api:?}");
        // Summaries say how.
        assert!(bodies[STEPS - 1].contains(" with the tool longhaul_recall"), "{api:?}");
    }
}

/// True if a body begins with all that the one before it says, to the byte but for marks of the cache.
fn goes_on(api: Api, before: &str, body: &str) -> bool {
    let unmarked = |body: &str| body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let (before, body) = (unmarked(before), unmarked(body));
    let end = before.rfind(']').unwrap();
    let end = if api == Api::Responses { before[..end].rfind("],\"store\"").unwrap_or(end) } else { end };
    body.as_bytes().starts_with(&before.as_bytes()[..end])
}

/// Requests that did not go on behind the one before.
fn folds_that_broke(session: &Session) -> usize {
    use longhaul::{Cursor, Entry};
    session.since(Cursor(0)).filter(|entry| matches!(entry, Entry::Sent(sent) if sent.broke)).count()
}

fn a_restart_after_every_call_changes_no_byte(ground: &Ground) {
    for api in APIS {
        let expected = undisturbed(ground, api);
        let ground = ground.another();
        let bodies = worked(api, |_, incoming| asked(&desk(&ground), incoming));
        same(&bodies, &expected, api);
    }
}

/// The process is killed when a request is on its way, or before it goes out.
fn a_crash_before_the_answer_changes_no_byte(ground: &Ground) {
    for api in APIS {
        let expected = undisturbed(ground, api);
        let ground = ground.another();
        let bodies = worked(api, |_, incoming| {
            let killed = text(&sent(&desk(&ground), incoming), incoming);
            let body = asked(&desk(&ground), incoming);
            assert!(killed == body, "{api:?}");
            body
        });
        same(&bodies, &expected, api);
    }
}

fn replicas_that_share_a_store_send_the_same_bytes(ground: &Ground) {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for api in APIS {
        let expected = undisturbed(ground, api);
        let ground = ground.another();
        let replicas = [desk(&ground), desk(&ground)];
        let bodies = worked(api, |_, incoming| asked(&replicas[dice.roll(2) as usize], incoming));
        same(&bodies, &expected, api);
    }
}

/// What is filled in depends on more than the message: a gateway that is killed and starts with another window, where
/// pages are longer, sends what was sent.
fn a_fill_is_stored_before_it_is_sent(ground: &Ground) {
    for api in APIS {
        let ground = ground.another();
        let mut agent = Agent::new(api);
        let original = long(1).repeat(3);
        agent.run(original.as_str());
        let handle = handles(&asked(&desk(&ground), &agent.incoming())).remove(0);
        let id = agent.recall(json!({ "handle": handle }));
        let killed = text(&sent(&desk(&ground), &agent.incoming()), &agent.incoming());
        let shown = seen(api, &killed, &id).unwrap().text;
        assert!(shown.contains("are left out here: recall again with lines "), "{api:?}");
        assert_eq!(fills(&stored(&ground).1), 1);
        let larger = DeskSettings { window: Some(Tokens(100_000)), ..settings(&ground, Recall::Fill) };
        let larger = Desk::open(larger).unwrap();
        assert_eq!(seen(api, &asked(&larger, &agent.incoming()), &id).unwrap().text, shown, "{api:?}");
        // What is recalled from now on has the longer pages.
        let id = agent.recall(json!({ "handle": handle }));
        assert_eq!(&*seen(api, &asked(&larger, &agent.incoming()), &id).unwrap().text, original);
    }
}

/// A gateway that is started with another setting changes no conversation that is there.
fn a_conversation_keeps_what_it_began_with(ground: &Ground) {
    for api in APIS {
        for (first, then) in [(Recall::Fill, Recall::Mcp), (Recall::Mcp, Recall::Fill)] {
            let ground = ground.another();
            let before = Desk::open(settings(&ground, first)).unwrap();
            let mut agent = Agent::new(api);
            agent.run(noise(1));
            let started = asked(&before, &agent.incoming());
            let handle = handles(&started).remove(0);
            drop(before);
            let after = Desk::open(settings(&ground, then)).unwrap();
            let id = agent.recall(json!({ "handle": handle }));
            let body = asked(&after, &agent.incoming());
            let has = |body: &str| read(api, body).frame().tools.len() == 2;
            assert_eq!(
                (has(&started), has(&body)),
                (first == Recall::Fill, first == Recall::Fill),
                "{api:?}"
            );
            let shown = seen(api, &body, &id).unwrap();
            let expected = if first == Recall::Fill { noise(1) } else { cannot(api).to_owned() };
            assert_eq!(&*shown.text, expected, "{api:?}");
            // One that goes back goes another way, and has what its parent has.
            let mut back = Agent::new(api);
            back.run(noise(1));
            back.read(result(5));
            let fork = sent(&after, &back.incoming());
            assert_eq!((fork.how, has(&text(&fork, &back.incoming()))), (How::Forks, first == Recall::Fill));
            // One that begins like it is a new one, as the setting says.
            let mut new = Agent::new(api);
            new.read(result(7));
            let new = (sent(&after, &new.incoming()), new.incoming());
            assert_eq!((new.0.how, has(&text(&new.0, &new.1))), (How::New, then == Recall::Fill), "{api:?}");
        }
    }
}

/// What a person takes back stays taken back.
fn who_takes_a_fill_back_sees_the_error(ground: &Ground) {
    for api in APIS {
        let ground = ground.another();
        let mut agent = Agent::new(api);
        agent.run(noise(1));
        let handle = handles(&asked(&desk(&ground), &agent.incoming())).remove(0);
        let id = agent.recall(json!({ "handle": handle }));
        let filled = asked(&desk(&ground), &agent.incoming());
        assert_eq!(&*seen(api, &filled, &id).unwrap().text, noise(1));
        let (mut keeper, mut session, _) = stored(&ground);
        let edit = session.ledger().edits().find(|(edit, _)| edit.why == Why::Host).unwrap().0.clone();
        // The error is under a handle, like all that was taken out.
        let own = session.recall(&edit.originals[0].to_string(), &RecallPart::Whole).unwrap();
        assert_eq!(own, cannot(api));
        session.undo(edit.id).unwrap();
        keeper.save(&session).unwrap();
        for more in 0..3 {
            let body = asked(&desk(&ground), &agent.incoming());
            let shown = seen(api, &body, &id).unwrap();
            assert_eq!((&*shown.text, shown.is_error), (cannot(api), api == Api::Anthropic), "{api:?}");
            agent.read(result(more));
        }
        assert_eq!(stored(&ground).1.audit(), []);
    }
}

/// All pages of a text, as an agent reads them that does what each page says.
fn all_pages(desk: &Desk, agent: &mut Agent, handle: &str) -> String {
    let (mut whole, mut arguments) = (String::new(), json!({ "handle": handle }));
    for _ in 0..50 {
        let id = agent.recall(arguments.clone());
        let body = asked(desk, &agent.incoming());
        let page = seen(agent.api, &body, &id).unwrap();
        assert!(!page.is_error && page.text.len() < WINDOW + 100, "{}", page.text.len());
        // A mark inside the text is one of an earlier page, which was folded too.
        let mark =
            page.text.rsplit_once("[… lines ").filter(|(_, says)| says.find(']') == Some(says.len() - 1));
        let Some((shown, says)) = mark else { return whole + &page.text };
        whole.push_str(shown);
        let lines = says.rsplit_once(' ').unwrap().1.trim_end_matches(']');
        arguments = json!({ "handle": handle, "lines": lines });
    }
    panic!("pages without end");
}

#[test]
fn what_is_recalled_is_the_original_to_the_byte() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let mut agent = Agent::new(api);
        // A digest, and a cut. They are sent as they are from now on.
        for original in [noise(1), long(2)] {
            let id = agent.run(original.as_str());
            let body = asked(&desk, &agent.incoming());
            assert!(seen(api, &body, &id).unwrap().text.len() < original.len(), "{api:?}");
            let handle = handles(&seen(api, &body, &id).unwrap().text).remove(0);
            let id = agent.recall(json!({ "handle": handle }));
            for _ in 0..3 {
                let body = asked(&desk, &agent.incoming());
                let shown = seen(api, &body, &id).unwrap();
                assert!(*shown.text == original && !shown.is_error, "{api:?} {}", shown.text);
                agent.read("fn main() {}\n");
            }
        }
        // A fold, and then a fold of folds.
        let (mut depths, mut edits, mut known) = (Vec::new(), 0, 0);
        for n in 0..80 {
            agent.read(result(n));
            let call = sent(&desk, &agent.incoming());
            let before = std::mem::replace(&mut edits, call.edits);
            desk.answered(call, None);
            if edits == before {
                continue;
            }
            let (_, session, _) = stored(&ground);
            if std::mem::replace(&mut known, folds(&session)) == folds(&session) {
                continue;
            }
            assert_eq!(session.audit(), []);
            let fold = session
                .ledger()
                .edits()
                .filter(|(edit, _)| edit.kind.replaces_runs())
                .last()
                .unwrap()
                .0
                .clone();
            let is_deep = !fold.depends.is_empty();
            if depths.contains(&is_deep) {
                continue;
            }
            depths.push(is_deep);
            let handle = fold.originals[0].short();
            let original = desk.recall("", &handle, &RecallPart::Whole).unwrap();
            assert!(original.contains(&noise(1)) && original.contains(&long(2)), "{api:?}");
            let pages = all_pages(&desk, &mut agent, &handle);
            // Lines have no end behind the last of them.
            assert!(
                pages == original || format!("{pages}\n") == original,
                "{api:?} {} {}",
                pages.len(),
                original.len()
            );
        }
        assert_eq!(depths, [false, true], "{api:?}");
    }
}

#[test]
fn a_call_beside_one_of_the_clients_own_is_filled_alone() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let mut agent = Agent::new(api);
        agent.run(noise(1));
        let handle = handles(&asked(&desk, &agent.incoming())).remove(0);
        let recall = |text: &str| ("longhaul_recall", json!({ "handle": handle }), text.to_owned(), true);
        let failed = ("Read", json!({"path": "none"}), "There is no such file.".to_owned(), true);
        let read = ("Read", json!({"path": "some"}), result(3), false);
        // Whatever the client says.
        let ids = agent.step(&[failed, recall("odd"), read, recall("Not in this mode.")]);
        let body = asked(&desk, &agent.incoming());
        let shown: Vec<(String, bool)> = ids
            .iter()
            .map(|id| seen(api, &body, id).unwrap())
            .map(|result| (result.text.to_string(), result.is_error))
            .collect();
        let marked = api == Api::Anthropic;
        let expected = [
            ("There is no such file.".to_owned(), marked),
            (noise(1), false),
            (result(3), false),
            (noise(1), false),
        ];
        assert_eq!(shown, expected, "{api:?}");
        assert!(!body.contains("Not in this mode."));
        let (_, session, _) = stored(&ground);
        assert!(session.audit().is_empty() && fills(&session) == 2);
        // The log has what the client sent.
        assert!(session.search("Not in this mode", 3).unwrap().is_empty());
        let log = session
            .log()
            .messages()
            .iter()
            .flat_map(|message| message.results().cloned().collect::<Vec<_>>());
        assert!(log.into_iter().any(|result| &*result.text == "Not in this mode."));
    }
}

#[test]
fn what_cannot_be_recalled_is_said_in_a_sentence() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let mut agent = Agent::new(api);
        agent.run(noise(1));
        let handle = handles(&asked(&desk, &agent.incoming())).remove(0);
        for (arguments, says) in [
            (json!({"handle": "123456123456"}), "no single original has the handle \"123456123456\""),
            (json!({"handle": handle, "pattern": "("}), "the pattern cannot be read: error: unclosed group"),
            (json!({"handle": handle, "pattern": "nobody"}), "it has no such lines"),
            (json!({"handle": handle, "lines": "900-901"}), "it has no such lines"),
            (json!({"handle": handle, "lines": "all"}), "the argument `lines` is not such as 10-20"),
            (json!({}), "the argument `handle` is missing"),
        ] {
            let id = agent.recall(arguments);
            let shown = seen(api, &asked(&desk, &agent.incoming()), &id).unwrap();
            assert_eq!(&*shown.text, format!("Nothing was recalled: {says}."), "{api:?}");
            assert!(!shown.is_error);
        }
    }
}

#[test]
fn a_client_that_can_recall_or_has_no_tools_is_offered_nothing() {
    let names = ["longhaul_recall", "mcp__longhaul__recall", "longhaul__recall"];
    for (api, name) in APIS.into_iter().flat_map(|api| names.map(|name| (api, name))) {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let own = |body: &mut Value| {
            let mut tool = body["tools"][0].clone();
            match api {
                Api::Chat => tool["function"]["name"] = json!(name),
                Api::Anthropic | Api::Responses => tool["name"] = json!(name),
            }
            body["tools"].as_array_mut().unwrap().push(tool);
        };
        let mut agent = Agent::new(api);
        agent.read(result(1));
        let ids = agent.step(&[(
            name,
            json!({"handle": "3f9a51c02b77"}),
            "By the client's own.".to_owned(),
            false,
        )]);
        let call = sent(&desk, &agent.incoming_with(own));
        assert!(call.body.is_none() && call.edits == 0, "{api:?} {name}");
        assert_eq!(
            &*seen(api, &text(&call, &agent.incoming_with(own)), &ids[0]).unwrap().text,
            "By the client's own."
        );
    }
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    // Codex has one tool for all of a server.
    let namespace = |body: &mut Value| {
        let tool = json!({"type": "namespace", "name": "mcp__longhaul", "tools": []});
        body["tools"].as_array_mut().unwrap().push(tool);
    };
    assert!(sent(&desk, &Agent::new(Api::Responses).incoming_with(namespace)).body.is_none());
    for api in APIS {
        let mut agent = Agent::new(api);
        (0..5).for_each(|n| drop(agent.read(result(n))));
        for tools in [json!([]), Value::Null] {
            assert!(sent(&desk, &agent.incoming_with(|body| body["tools"] = tools.clone())).body.is_none());
        }
        let bare = agent.incoming_with(|body| drop(body.as_object_mut().unwrap().remove("tools")));
        assert!(sent(&desk, &bare).body.is_none(), "{api:?}");
    }
}

#[test]
fn by_default_nothing_is_added() {
    for api in APIS {
        let ground = Ground::sqlite();
        let place = DeskSettings::new(ground.place.clone());
        assert_eq!(place.recall, Recall::Mcp);
        let desk = Desk::open(place).unwrap();
        let mut agent = Agent::new(api);
        for n in 0..5 {
            assert!(sent(&desk, &agent.incoming()).body.is_none(), "{api:?}");
            agent.read(result(n));
        }
    }
}

#[test]
fn sizes_have_the_tool_in_them() {
    for api in APIS {
        let view = |recall: Recall| {
            let ground = Ground::sqlite();
            let desk = Desk::open(settings(&ground, recall)).unwrap();
            let mut agent = Agent::new(api);
            agent.read(result(1));
            let call = sent(&desk, &agent.incoming());
            let figures = (call.view, call.full);
            desk.answered(call, None);
            (figures, desk.count(&agent.incoming()).unwrap())
        };
        let ((view_with, full_with), counted_with) = view(Recall::Fill);
        let ((view_without, full_without), counted_without) = view(Recall::Mcp);
        let tool = view_with - view_without;
        assert!((80..180).contains(&tool.0), "{api:?}: the tool has {tool} tokens");
        assert_eq!((full_with - full_without, counted_with - counted_without), (tool, tool));
    }
}

/// A client sends its conversation without tools, to have it summarised, when a result has just come.
#[test]
fn a_request_without_tools_is_filled_too() {
    for api in APIS {
        let ground = Ground::sqlite();
        let desk = desk(&ground);
        let mut agent = Agent::new(api);
        agent.run(noise(1));
        let handle = handles(&asked(&desk, &agent.incoming())).remove(0);
        let id = agent.recall(json!({ "handle": handle }));
        let bare = agent.incoming_with(|body| drop(body.as_object_mut().unwrap().remove("tools")));
        let call = sent(&desk, &bare);
        let body = text(&call, &bare);
        assert_eq!((call.how, read(api, &body).frame().tools.len()), (How::Forks, 0), "{api:?}");
        assert_eq!(&*seen(api, &body, &id).unwrap().text, noise(1), "{api:?}");
        // The conversation itself goes on as it was.
        let body = asked(&desk, &agent.incoming());
        assert_eq!(&*seen(api, &body, &id).unwrap().text, noise(1), "{api:?}");
        without_tool(api, &body);
    }
}

/// The marks of the client stay where they are, and so does the mark on its last tool.
#[test]
fn marks_of_the_client_stay_on_its_own_tools() {
    let ground = Ground::sqlite();
    let desk = desk(&ground);
    let mut agent = Agent::new(Api::Anthropic);
    let marked = |body: &mut Value| body["tools"][0]["cache_control"] = json!({"type": "ephemeral"});
    for n in 0..25 {
        let incoming = agent.incoming_with(marked);
        let body = asked(&desk, &incoming);
        let value: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(value["tools"][0]["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(value["tools"][1].get("cache_control"), None);
        assert_eq!(value["tools"].as_array().unwrap().len(), 2);
        assert!(body.matches("cache_control").count() <= 4, "{n}");
        agent.read(result(n));
    }
}
