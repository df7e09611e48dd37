//! A relay gives what a request gives that is read and written whole, whichever way the conversation
//! grows, is cut, edited or put in another order.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use longhaul::{Block, End, Message};
use longhaul_wire::api::{Api, Relay, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use common::element;

/// What a client does between two requests.
#[derive(Debug, Clone)]
enum Step {
    Grow(u8, String),
    /// So many elements stay.
    Cut(usize),
    /// The oldest are dropped.
    DropFirst(usize),
    Replace(usize, u8, String),
    Swap(usize, usize),
    /// The mark moves to an element.
    Mark(usize),
    /// Fields around the list: their values, and where the list stands among them.
    Frame(u8, usize),
    Again,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text =
        || prop_oneof!["[a-z \\n\"\\\\]{0,200}", "\\PC{0,60}", "[a-z\\n ]{900,2500}", Just(String::new())];
    let step = prop_oneof![
        8 => (any::<u8>(), text()).prop_map(|(kind, text)| Step::Grow(kind, text)),
        1 => any::<prop::sample::Index>().prop_map(|at| Step::Cut(at.index(12))),
        1 => (0_usize..3).prop_map(Step::DropFirst),
        1 => (0_usize..12, any::<u8>(), text()).prop_map(|(at, kind, text)| Step::Replace(at, kind, text)),
        1 => (0_usize..12, 0_usize..12).prop_map(|(one, other)| Step::Swap(one, other)),
        2 => (0_usize..12).prop_map(Step::Mark),
        1 => (any::<u8>(), 0_usize..4).prop_map(|(n, at)| Step::Frame(n, at)),
        1 => Just(Step::Again),
    ];
    prop::collection::vec(step, 1..24)
}

struct Client {
    api: Api,
    list: Vec<Value>,
    mark: Option<usize>,
    frame: (u8, usize),
    count: usize,
}

impl Client {
    fn take(&mut self, step: &Step) {
        let length = self.list.len().max(1);
        self.count += 1;
        match step {
            Step::Grow(kind, text) => self.list.push(element(self.api, *kind, self.count, text)),
            Step::Cut(stay) => self.list.truncate(*stay),
            Step::DropFirst(count) => _ = self.list.drain(..(*count).min(self.list.len())),
            Step::Replace(at, kind, text) => {
                let new = element(self.api, *kind, self.count, text);
                if let Some(old) = self.list.get_mut(at % length) {
                    *old = new;
                }
            }
            Step::Swap(one, other) if !self.list.is_empty() => self.list.swap(one % length, other % length),
            Step::Mark(at) => self.mark = Some(at % length),
            Step::Frame(n, at) => self.frame = (*n, *at),
            Step::Swap(..) | Step::Again => {}
        }
    }

    fn body(&self) -> String {
        let mut list = self.list.clone();
        if let Some(block) = self.mark.and_then(|at| list.get_mut(at)?.get_mut("content")?.get_mut(0)) {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        let name = if self.api == Api::Responses { "input" } else { "messages" };
        let (n, at) = self.frame;
        let tools = json!([{"name": "Read", "description": format!("tool {}", n % 3), "cache_control": {"type": "ephemeral"}}]);
        let mut fields = vec![
            ("model", json!("m")),
            ("tools", tools),
            ("system", json!([{"type": "text", "text": format!("Be brief. {}", n % 2)}])),
            ("metadata", json!({"n": n})),
        ];
        fields.insert(at.min(fields.len()), (name, Value::from(list)));
        let written = |(name, value): &(&str, Value)| format!("{}:{}", json!(name), value);
        format!("{{{}}}", fields.iter().map(written).collect::<Vec<_>>().join(","))
    }
}

/// What is compared: everything but the way in which a message was written when it was first seen.
fn read(request: &Request) -> (Vec<Message>, String) {
    let messages = request.messages().iter().map(|message| (**message).clone().without_raw()).collect();
    (messages, format!("{:?} {:?} {:?}", request.frame(), request.marks(), request.identities()))
}

/// The request with some messages left out and one edited.
fn edited(request: &Request) -> Request {
    let keep = |(at, _): &(usize, &Arc<Message>)| at % 5 != 3;
    let edit = |(at, message): (usize, &Arc<Message>)| match at % 4 {
        1 => Arc::new((**message).clone().with_blocks(vec![Block::text("edited")])),
        _ => message.clone(),
    };
    let messages = request.messages().iter().enumerate().filter(keep).map(edit).collect();
    request.clone().with_messages(messages).with_ends(vec![End::After(1), End::After(4), End::After(7)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_relay_is_a_whole_read_and_a_whole_write(api in prop::sample::select(Api::ALL.to_vec()), steps in steps()) {
        let mut client = Client { api, list: Vec::new(), mark: None, frame: (0, 1), count: 0 };
        let mut relay = Relay::new(api);
        let mut last: Option<Request> = None;
        for step in &steps {
            client.take(step);
            let body = client.body();
            let whole = Request::decode(api, body.as_str()).unwrap();
            let request = relay.read(body.as_str()).unwrap();
            prop_assert_eq!(read(&request), read(&whole));
            // Nothing is touched: it is the client's own body.
            let sent = relay.write(&request).body;
            prop_assert!(sent.is_clients() && sent == body);
            let (one, other) = (edited(&request), edited(&whole));
            // Edited, it is the same bytes too, whichever form its messages were first seen in.
            prop_assert_eq!(relay.write(&one).body, other.encode(api).body);
            // What was known is the same message still.
            if let Some(last) = &last {
                let (before, now) = (last.identities(), request.identities());
                let same = before.iter().zip(now.iter()).take_while(|(one, other)| one == other).count();
                for at in 0..same {
                    prop_assert!(Arc::ptr_eq(&last.messages()[at], &request.messages()[at]), "message {}", at);
                }
            }
            last = Some(request);
        }
    }
}

/// A body that is known but for its last step, with edits: what was not edited is copied from it.
#[test]
fn untouched_bytes_stay_as_they_are() {
    for api in Api::ALL {
        let mut client = Client { api, list: Vec::new(), mark: None, frame: (0, 1), count: 0 };
        let mut relay = Relay::new(api);
        for n in 0..30_u8 {
            client.take(&Step::Grow(n % 4, format!("line {n} \u{e9}\n").repeat(40)));
        }
        let body = client.body().replace("},{", "}, \n {").replace("line 7", "\\u006cine 7");
        let request = relay.read(body.as_str()).unwrap();
        let mut messages = request.messages().to_vec();
        let last = messages.len() - 1;
        messages[last] = Arc::new((*messages[last]).clone().with_blocks(vec![Block::text("edited")]));
        messages.remove(1);
        let sent = relay.write(&request.clone().with_messages(messages)).body;
        let from = |text: &str| body.find(text).unwrap();
        // From the third element on up to the last one.
        let (start, end) = (from("\\u006cine 7"), from("line 28"));
        assert!(sent.contains(&body[start..end]), "{api:?}");
        assert!(!sent.is_clients() && Request::decode(api, &sent).is_ok());
    }
}

#[test]
fn after_a_restart_messages_are_those_of_the_log() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"One."}]},{"role":"assistant","content":"Two."}]}"#;
    let log = Request::decode(Api::Anthropic, body).unwrap().messages()[..1].to_vec();
    let relay = Relay::of(Api::Anthropic, &log);
    let request = relay.read(body.replace(r#"[{"type":"text","text":"One."}]"#, "\"One.\"")).unwrap();
    assert!(Arc::ptr_eq(&request.messages()[0], &log[0]));
    assert_eq!(request.messages().len(), 2);
    // Another conversation has none of them.
    let other = relay.read(body.replace("One", "Three")).unwrap();
    assert!(!Arc::ptr_eq(&other.messages()[0], &log[0]));
}

/// A request that was taken into a session and never sent is known all the same.
#[test]
fn a_request_that_was_kept_is_known() {
    let mut relay = Relay::new(Api::Chat);
    let request = relay.read(r#"{"messages":[{"role":"user","content":"a"}]}"#).unwrap();
    relay.keep(&request);
    let next =
        relay.read(r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#).unwrap();
    assert!(Arc::ptr_eq(&request.messages()[0], &next.messages()[0]));
    let other = Relay::new(Api::Chat).read(r#"{"messages":[{"role":"user","content":"a"}]}"#).unwrap();
    assert!(!Arc::ptr_eq(&request.messages()[0], &other.messages()[0]));
}

#[test]
fn bodies_that_are_hard_to_read() {
    let same = |api: Api, body: &str| {
        let mut relay = Relay::new(api);
        let request = relay.read(body).unwrap();
        assert_eq!(relay.write(&request).body, body);
        assert_eq!(relay.write(&relay_again(api, body)).body, body);
        request
    };
    // A byte order mark, half a surrogate pair, a number that no machine holds.
    let odd = "\u{feff}{\"model\":\"m\",\"temperature\":1e99999,\"messages\":[{\"role\":\"user\",\"content\":\"a \\ud83d b\"},{\"role\":\"user\",\"content\":\"c\"}]}";
    let request = same(Api::Chat, odd);
    assert!(request.messages()[0].texts().eq(["a \u{fffd} b"]));
    // Beside an edit it is still what it was.
    let mut messages = request.messages().to_vec();
    messages[1] = Arc::new(Message::user("edited"));
    let sent = request.with_messages(messages).encode(Api::Chat).body;
    assert!(sent.contains("a \\ud83d b") && sent.starts_with('\u{feff}'), "{sent}");
    // Of two lists the last one counts.
    let doubled = r#"{"messages":[{"role":"user","content":"no"}],"model":"m","messages":[{"role":"user","content":"yes","content":"at last"}]}"#;
    assert!(same(Api::Anthropic, doubled).messages()[0].texts().eq(["at last"]));
    // Deeper than anybody writes.
    let deep = format!(
        r#"{{"messages":[{{"role":"user","content":"a","x":{}1{}}}]}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let error = Request::decode(Api::Chat, deep).unwrap_err().to_string();
    assert_eq!(error, "the request is nested deeper than 256 levels");
    let error = Request::decode(Api::Chat, "[1]").unwrap_err().to_string();
    assert_eq!(error, "the request is not an object: [1]");
    let error = Request::decode(Api::Chat, r#"{"messages":[{"role":"user","content":"a"},]}"#).unwrap_err();
    assert_eq!(error.to_string(), "the request is not valid JSON: expected a value at byte 44");
}

fn relay_again(api: Api, body: &str) -> Request {
    let mut relay = Relay::new(api);
    let first = relay.read(body).unwrap();
    relay.write(&first);
    relay.read(body).unwrap()
}
