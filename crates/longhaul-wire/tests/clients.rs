//! Conversations of real clients, request by request, through engine and wire. The samples in
//! `tests/clients/` have the shape of what the clients send (order of fields, marks, tags, ids), in
//! words of our own: Claude Code 2.1.325, Codex 0.166.0, pi 0.73.1 and opencode 1.18.33 on three APIs
//! each, aider 0.86.2, qwen-code 0.15.10, mini-swe-agent 2.4.6.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use longhaul::{Meter, Models, Prepared, Profile, Role, Session, Tokens};
use longhaul_wire::api::{Api, BodyText, Held, Identity, MarkPlace, Relay, Request};
use serde_json::{Value, json};

const GOAL: &str = "The importer drops the last row of a CSV file. Find out why and mend it.";
/// What stands in CLAUDE.md or AGENTS.md.
const RULE: &str = "Keep every function short.";

struct Sample {
    file: &'static str,
    api: Api,
    goal: &'static str,
    /// Its rules file is in the conversation, not in the prompt.
    has_rules: bool,
}

const SAMPLES: [Sample; 15] = [
    Sample { file: "claude-messages", api: Api::Anthropic, goal: GOAL, has_rules: true },
    Sample { file: "claude-messages-sonnet", api: Api::Anthropic, goal: GOAL, has_rules: true },
    Sample { file: "claude-messages-search", api: Api::Anthropic, goal: GOAL, has_rules: true },
    Sample { file: "claude-messages-agent", api: Api::Anthropic, goal: GOAL, has_rules: true },
    Sample {
        file: "claude-messages-subagent",
        api: Api::Anthropic,
        goal: "Count the lines of the nightly log.",
        has_rules: true,
    },
    Sample { file: "claude-messages-tui", api: Api::Anthropic, goal: GOAL, has_rules: true },
    Sample { file: "codex-responses", api: Api::Responses, goal: GOAL, has_rules: true },
    Sample { file: "codex-responses-gpt", api: Api::Responses, goal: GOAL, has_rules: true },
    Sample { file: "pi-messages", api: Api::Anthropic, goal: GOAL, has_rules: false },
    Sample { file: "pi-chat", api: Api::Chat, goal: GOAL, has_rules: false },
    Sample { file: "pi-responses", api: Api::Responses, goal: GOAL, has_rules: false },
    Sample { file: "mini-chat", api: Api::Chat, goal: GOAL, has_rules: false },
    // It puts the words in quotes.
    Sample { file: "opencode-messages", api: Api::Anthropic, goal: GOAL, has_rules: false },
    Sample { file: "opencode-chat", api: Api::Chat, goal: GOAL, has_rules: false },
    Sample { file: "opencode-responses", api: Api::Responses, goal: GOAL, has_rules: false },
];

fn bodies(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(file).with_extension("jsonl");
    std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect()
}

/// The steps that a client would go on with: a call, its result, and the marks moved on.
fn grown(api: Api, body: &str, n: usize) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let list = if api == Api::Responses { "input" } else { "messages" };
    let list = body[list].as_array_mut().unwrap();
    let line = |m: usize| {
        format!(
            "{n:03}-{m:02} row {} of table \"t{}\" was read\n",
            (n * 7919 + m * 104_729) % 9_973,
            m * n % 31
        )
    };
    let (id, text) = (format!("call_{n}"), (0..60).map(line).collect::<String>());
    let marks_were =
        list.iter().rev().filter(|message| message.to_string().contains("cache_control")).count();
    for message in list.iter_mut() {
        for block in message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            block.as_object_mut().unwrap().shift_remove("cache_control");
        }
    }
    match api {
        Api::Anthropic => list.extend([
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": format!("Step {n}."), "signature": "c2ln"}, {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("sed -n {n}p log")}}]}),
            json!({"role": "user", "content": [{"tool_use_id": id, "type": "tool_result", "content": text}]}),
        ]),
        Api::Chat => list.extend([
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "bash", "arguments": json!({"command": format!("sed -n {n}p log")}).to_string()}}]}),
            json!({"role": "tool", "content": text, "tool_call_id": id}),
        ]),
        Api::Responses => list.extend([
            json!({"type": "reasoning", "id": format!("rs_{n}"), "summary": [], "encrypted_content": "ZW5j"}),
            json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": id, "name": "shell", "arguments": json!({"cmd": format!("sed -n {n}p log")}).to_string()}),
            json!({"type": "function_call_output", "call_id": id, "output": text}),
        ]),
    }
    for message in list.iter_mut().rev().take(marks_were) {
        if let Some(block) =
            message.get_mut("content").and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut())
        {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    body.to_string()
}

struct Conversation {
    relay: Relay,
    session: Session,
    known: Vec<Identity>,
    /// Requests in which something was edited.
    compacted: usize,
    /// Whether the last of them was.
    just_compacted: bool,
}

impl Conversation {
    fn new(api: Api, window: u64) -> Self {
        let model = Models::builtin().find("claude-sonnet-4-5").clone();
        let session =
            Session::new(Profile::longhaul(), model).with_meter(Meter::neutral()).with_window(Tokens(window));
        Self { relay: Relay::new(api), session, known: Vec::new(), compacted: 0, just_compacted: false }
    }

    fn next(&mut self, body: &str) -> BodyText {
        let request = self.relay.read(body).unwrap();
        assert!(request.identities().starts_with(&self.known), "one conversation");
        assert!(!request.is_stateful());
        self.session.set_frame(request.frame().clone());
        for message in &request.messages()[self.known.len()..] {
            self.session.push(message.clone());
        }
        self.known = request.identities().into_owned();
        let edits = self.session.ledger().edits().count();
        assert!(matches!(self.session.prepare(None), Ok(Prepared::Send(_))));
        self.just_compacted = self.session.ledger().edits().count() > edits;
        self.compacted += usize::from(self.just_compacted);
        self.relay.write(&request.sending(&self.session.outgoing())).body
    }

    /// How many prompts its frames have made. Where the model signs, tools that are found later are noted too.
    fn prompts(&self) -> usize {
        self.session.log().frame_version()
    }

    fn goal(&self) -> String {
        let log = self.session.log();
        log.goal_message()
            .map(|at| log.messages()[at.index()].words().collect::<Vec<_>>().join("\n"))
            .unwrap_or_default()
    }
}

/// The list of a body as its provider reads it: without marks, a bare text as one block.
fn plain(api: Api, body: &str) -> Vec<Value> {
    fn unmarked(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.shift_remove("cache_control");
                fields.values_mut().for_each(unmarked);
            }
            Value::Array(values) => values.iter_mut().for_each(unmarked),
            _ => {}
        }
    }
    let mut body: Value = serde_json::from_str(body).unwrap();
    let list = body[if api == Api::Responses { "input" } else { "messages" }].take();
    let Value::Array(mut list) = list else { panic!("a list") };
    for message in &mut list {
        unmarked(message);
        if let Some(text) = message.get("content").and_then(Value::as_str) {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
    }
    list
}

/// Each call that the client runs has its result right behind it, and each result its call.
fn assert_pairs(request: &Request) {
    let messages = request.messages();
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message.role() == Role::Assistant)
    {
        let results = messages[at + 1..].iter().take_while(|message| message.role() == Role::Tool);
        let mut answered: Vec<&str> =
            results.flat_map(|message| message.results()).map(|result| &*result.id).collect();
        let mut called: Vec<&str> =
            message.calls().filter(|call| !call.server).map(|call| &*call.id).collect();
        answered.sort_unstable();
        called.sort_unstable();
        assert_eq!(answered, called, "message {at}");
    }
}

#[test]
fn a_conversation_that_fits_is_sent_as_it_came() {
    for sample in &SAMPLES {
        let mut conversation = Conversation::new(sample.api, 400_000);
        for body in bodies(sample.file) {
            let sent = conversation.next(&body);
            assert!(sent.is_clients() && sent == body, "{}", sample.file);
        }
        assert_eq!(conversation.prompts(), 1, "{}", sample.file);
        assert_eq!(conversation.goal().trim_matches('"'), sample.goal, "{}", sample.file);
    }
}

#[test]
fn a_conversation_through_ten_folds() {
    for sample in &SAMPLES {
        let Sample { file, api, .. } = *sample;
        let mut conversation = Conversation::new(api, 12_000);
        let mut requests = bodies(file);
        for n in 0..110 {
            requests.push(grown(api, requests.last().unwrap(), n));
        }
        let (mut last, mut breaks, mut newest) = (Vec::new(), 0, String::new());
        for (number, body) in requests.iter().enumerate() {
            let sent = conversation.next(body);
            let read = Request::decode(api, &sent).unwrap();
            assert_pairs(&read);
            assert!(read.marks().len() <= 4, "{file} {number}: {:?}", read.marks());
            // All but the conversation is the client's own, to the byte.
            let own = Request::decode(api, body.as_str()).unwrap();
            assert_eq!(read.frame(), own.frame(), "{file} {number}");
            // What was sent is extended, unless something was folded.
            let list = plain(api, &sent);
            if !list.starts_with(&last) {
                breaks += 1;
                assert!(conversation.just_compacted, "{file} {number}: a break without a reason");
            }
            last = list;
            newest = sent.to_string();
            // What was not edited is in it byte for byte: the newest result.
            if let Some(end) = body.rfind("-59 row ") {
                assert!(sent.contains(&body[end - 1_500..end]), "{file} {number}");
            }
        }
        let folds =
            conversation.session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
        assert!(folds >= 10, "{file}: {folds} folds");
        assert!(
            breaks <= conversation.compacted,
            "{file}: {breaks} breaks, {} compactions",
            conversation.compacted
        );
        assert_eq!(
            (conversation.prompts(), conversation.goal().trim_matches('"')),
            (1, sample.goal),
            "{file}"
        );
        // The rules and the request are there still, in the prompt or in the conversation.
        assert_eq!(newest.contains(RULE), sample.has_rules, "{file}: the rules are gone");
        assert!(newest.contains(sample.goal), "{file}: the goal is gone");
    }
}

/// The mark that leaves the last message is no part of it, nor is the form that it takes then.
#[test]
fn marks_are_of_the_request() {
    let requests: Vec<Request> = bodies("claude-messages")
        .into_iter()
        .map(|body| Request::decode(Api::Anthropic, body).unwrap())
        .collect();
    for request in &requests {
        let places: Vec<MarkPlace> = request.marks().iter().map(|mark| mark.place).collect();
        let last = request.messages().len() - 1;
        let block = request.messages()[last].blocks().len() - 1;
        assert_eq!(
            places,
            [MarkPlace::System(1), MarkPlace::System(2), MarkPlace::Block { message: last, block }]
        );
        assert!(request.messages().iter().all(|message| {
            message.blocks().iter().all(|block| block.extra().get("cache_control").is_none())
        }));
        let raw = |message: &longhaul::Message| {
            message
                .raw_format()
                .and_then(|format| message.raw(format))
                .is_some_and(|raw| raw.contains("cache_control"))
        };
        assert!(!request.messages().iter().any(|message| raw(message)));
    }
    for pair in requests.windows(2) {
        assert!(pair[1].identities().starts_with(&pair[0].identities()));
    }
}

/// The few-shot dialogue and the files are aider's; the turns move in front of the files.
#[test]
fn aider_replaces_its_last_messages() {
    let bodies = bodies("aider-chat");
    let relay = Relay::new(Api::Chat);
    let read: Vec<Request> = bodies.iter().map(|body| relay.read(body.as_str()).unwrap()).collect();
    for (pair, body) in read.windows(2).zip(&bodies[1..]) {
        let (one, other) = (pair[0].identities(), pair[1].identities());
        let common = one.iter().zip(other.iter()).take_while(|(one, other)| one == other).count();
        assert!((7..one.len()).contains(&common), "{common} of {}", one.len());
        assert_eq!(pair[1].encode(Api::Chat).body, *body);
    }
    let said: Vec<&str> =
        read[0].messages().iter().filter(|m| m.role() == Role::User).flat_map(|m| m.words()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
}

/// Started again, qwen-code writes its first message anew: the tree of files is another one. What comes
/// before the person's words is the host's all the same, and the rest is known by its identities.
#[test]
fn qwen_writes_its_context_anew() {
    let bodies = bodies("qwen-chat");
    let mut relay = Relay::new(Api::Chat);
    let mut others = 0;
    let mut last: Option<Request> = None;
    for body in &bodies {
        let request = relay.read(body.as_str()).unwrap();
        assert_eq!(relay.write(&request).body, *body);
        let said: Vec<&str> = request.messages().iter().flat_map(|message| message.words()).collect();
        assert_eq!(said.first(), Some(&GOAL));
        if let Some(last) = &last {
            let (one, other) = (last.identities(), request.identities());
            others += usize::from(!other.starts_with(&one));
            let kept = one.iter().filter(|identity| other.contains(identity)).count();
            assert!(kept + 1 >= one.len(), "{kept} of {}", one.len());
        }
        last = Some(request);
    }
    assert_eq!(others, 1);
}

/// A compaction of the client's own: the instruction is the host's, and what follows is another
/// conversation whose first words are the person's next ones.
#[test]
fn a_compaction_of_the_client_is_no_request_of_the_person() {
    for (file, api, goal) in [
        (
            "claude-messages-compact",
            Api::Anthropic,
            "Good. Now look whether the nightly log shows the same loss.",
        ),
        ("codex-responses-compact", Api::Responses, GOAL),
    ] {
        let mut all: Vec<Conversation> = Vec::new();
        let mut asked = Vec::new();
        for body in bodies(file) {
            let request = Request::decode(api, body.as_str()).unwrap();
            let last = request.messages().last().unwrap();
            if last.role() == Role::User {
                asked.push((last.is_attachment(), last.words().collect::<Vec<_>>().join("\n")));
            }
            let found = all.iter_mut().find(|known| request.identities().starts_with(&known.known));
            match found {
                Some(conversation) => _ = conversation.next(&body),
                None => {
                    let mut new = Conversation::new(api, 400_000);
                    new.next(&body);
                    all.push(new);
                }
            }
        }
        assert_eq!(all.len(), 2, "{file}");
        assert_eq!(all[1].goal(), goal, "{file}");
        // Nobody asked for the compaction.
        assert!(
            asked.iter().any(|(is_attachment, words)| *is_attachment && words.is_empty()),
            "{file}: {asked:?}"
        );
    }
}

#[test]
fn side_requests_are_other_conversations() {
    for (title, main, api) in [
        ("claude-messages-title", "claude-messages-tui", Api::Anthropic),
        ("opencode-messages-title", "opencode-messages", Api::Anthropic),
        ("opencode-chat-title", "opencode-chat", Api::Chat),
        ("opencode-responses-title", "opencode-responses", Api::Responses),
    ] {
        let identities =
            |file: &str| Request::decode(api, bodies(file)[0].as_str()).unwrap().identities().into_owned();
        let (title, main) = (identities(title), identities(main));
        assert_ne!(title[0], main[0]);
        assert!(!main.starts_with(&title));
    }
}

#[test]
fn what_is_with_the_provider_is_said() {
    let held = |api: Api, body: Value| Request::decode(api, body.to_string()).unwrap().held();
    let asks = json!([{"role": "user", "content": "Go on."}]);
    let with = |name: &str, value: Value| json!({"model": "m", "input": asks, name: value});
    assert_eq!(held(Api::Responses, with("previous_response_id", json!("r"))), [Held::PreviousResponse]);
    assert_eq!(held(Api::Responses, with("conversation", json!({"id": "c"}))), [Held::Conversation]);
    let compacts = json!([{"type": "compaction", "compact_threshold": 1000}]);
    assert_eq!(held(Api::Responses, with("context_management", compacts)), [Held::Compacts]);
    for item in [json!({"type": "item_reference", "id": "m"}), json!({"id": "m"})] {
        assert_eq!(held(Api::Responses, json!({"model": "m", "input": [item]})), [Held::ItemReference]);
    }
    let packed = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "x".repeat(400)});
    assert_eq!(held(Api::Responses, json!({"model": "m", "input": [packed]})), [Held::Compaction]);
    let anthropic = |edit: &str| json!({"model": "m", "messages": asks, "context_management": {"edits": [{"type": edit}]}});
    assert_eq!(held(Api::Anthropic, anthropic("compact_20260112")), [Held::Compacts]);
    assert_eq!(held(Api::Anthropic, anthropic("clear_tool_uses_20250919")), [Held::Clears]);
    assert!(!Held::Clears.passes_on() && Held::Compacts.passes_on());
    let block = json!({"role": "assistant", "content": [{"type": "compaction", "content": "What was."}]});
    assert_eq!(held(Api::Anthropic, json!({"model": "m", "messages": [block]})), [Held::Compaction]);
    // A person who writes of it leans on nothing.
    let quoted =
        json!([{"role": "user", "content": "What is \"item_reference\" and {\"type\":\"compaction\"}?"}]);
    assert_eq!(held(Api::Anthropic, json!({"model": "m", "messages": quoted})), []);
    // Claude Code has the provider clear its reasoning; that is said, and no reason to pass on.
    let body = &bodies("claude-messages")[0];
    assert_eq!(Request::decode(Api::Anthropic, body.as_str()).unwrap().held(), [Held::Clears]);
}
