//! The identity of a message is the same for every way of writing it, and another one for every other
//! message.

#![allow(clippy::unwrap_used)]

mod common;

use longhaul_wire::api::{Api, Chain, IDENTITY_VERSION, Identity, Request};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use common::element;

fn body(api: Api, elements: &str) -> String {
    let name = if api == Api::Responses { "input" } else { "messages" };
    format!(r#"{{"model":"m","{name}":[{elements}]}}"#)
}

fn identities(api: Api, elements: &str) -> Vec<Identity> {
    Request::decode(api, body(api, elements)).unwrap().identities().into_owned()
}

/// These numbers are in stores: another way to hash needs another version.
#[test]
fn identities_do_not_change() {
    assert_eq!(IDENTITY_VERSION, 1);
    let told = |api: Api, elements: &str| -> Vec<String> {
        identities(api, elements).iter().map(ToString::to_string).collect()
    };
    let anthropic = r#"{"role":"user","content":"Mend the parser."},
        {"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a.rs","lines":[1,2.50]}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"fn main() {}","is_error":true},{"type":"text","text":"Go on.","citations":[]}]},
        {"role":"system","content":[],"output_config":{"effort":"medium"}}"#;
    assert_eq!(
        told(Api::Anthropic, anthropic),
        [
            "344e4b839c321ca604db5279e5ff0050",
            "fd45144dbcf87e389d6fdaa330849bc3",
            "4db62546b2ce430feeeb3878d3e7330d",
            "fe3ba1b073dd021cfe4b455c8239ecf9",
            "78e8eed70dfb63ca580d69a0650f8062"
        ]
    );
    let chat = r#"{"role":"developer","content":"Be brief."},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a.rs\"}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"fn main() {}"}"#;
    assert_eq!(
        told(Api::Chat, chat),
        [
            "88934155df535c5098efcbde5862fe1b",
            "fa425a082e8fa84d87ed38a21f7128ab",
            "23fd5c68e7a09a2f83ed59b245565c17"
        ]
    );
    let responses = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Mend it."}]},
        {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"},
        {"type":"function_call","call_id":"c1","name":"Read","arguments":"{}"},
        {"type":"function_call_output","call_id":"c1","output":"fn main() {}"}"#;
    assert_eq!(
        told(Api::Responses, responses),
        [
            "f4564316647ce83932dfe4caa3ee78e1",
            "38ca7c5734f0d488e03425a262b57743",
            "23fd5c68e7a09a2f83ed59b245565c17"
        ]
    );
    let chain = Chain::start("a tenant", Api::Anthropic);
    let over = chain.over(&identities(Api::Anthropic, anthropic)).last().unwrap();
    assert_eq!(
        [chain.to_string(), over.to_string()],
        ["c411319b5ed09f1dbd4163a31e4f5258", "5c91a84fcf5cc47e82b5e1fac2588052"]
    );
}

#[test]
fn a_chain_is_of_all_messages_in_their_order() {
    let [one, other] =
        identities(Api::Chat, r#"{"role":"user","content":"a"},{"role":"user","content":"b"}"#)[..]
    else {
        panic!("two messages")
    };
    let chain = |api, tenant, messages: &[Identity]| Chain::start(tenant, api).over(messages).last();
    let both = chain(Api::Chat, "t", &[one, other]);
    assert_ne!(both, chain(Api::Chat, "t", &[other, one]));
    assert_ne!(both, chain(Api::Chat, "t", &[one]));
    assert_ne!(both, chain(Api::Chat, "u", &[one, other]));
    assert_ne!(both, chain(Api::Responses, "t", &[one, other]));
    // The same from the middle on.
    let behind = Chain::start("t", Api::Chat).then(one).then(other);
    assert_eq!(both, Some(behind));
}

/// The fields of all objects in another order.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().rev().map(|(name, value)| (name.clone(), turned(value))).collect();
            Value::Object(Map::from_iter(fields))
        }
        Value::Array(values) => values.iter().map(turned).collect(),
        other => other.clone(),
    }
}

/// The same JSON with every letter of its strings escaped.
fn escaped(json: &str) -> String {
    let (mut out, mut inside, mut escape) = (String::new(), false, false);
    for c in json.chars() {
        let plain = inside && !escape && c != '"' && c != '\\';
        inside ^= c == '"' && !escape;
        escape = inside && c == '\\' && !escape;
        if plain {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// With a mark on every block, or without any.
fn marked(mut message: Value) -> Value {
    for block in message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        block["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        for inner in block.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            inner["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    message
}

/// Bare strings as a list of one text block, and the other way round.
fn flipped(mut message: Value) -> Value {
    let Some(content) = message.get_mut("content") else { return message };
    if let Some(text) = content.as_str().filter(|text| !text.is_empty()).map(str::to_owned) {
        *content = json!([{"type": "text", "text": text}]);
    } else if let Some([only]) = content.as_array().map(Vec::as_slice)
        && only["type"] == "text"
        && only.as_object().is_some_and(|fields| fields.len() == 2)
        && only["text"] != ""
    {
        *content = only["text"].clone();
    }
    message
}

/// All that differ from a message in one place: a string, a number, a field more.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => vec![json!(format!("{text}x"))],
        Value::Number(number) => vec![json!(number.as_f64().unwrap_or_default() + 1.0)],
        Value::Object(fields) => {
            let inside = fields.iter().flat_map(|(name, value)| {
                others(value).into_iter().map(move |other| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), other);
                    Value::Object(fields)
                })
            });
            let mut more = fields.clone();
            more.insert("novel".to_owned(), json!(1));
            inside.chain([Value::Object(more)]).collect()
        }
        Value::Array(values) => {
            let inside = values.iter().enumerate().flat_map(|(at, value)| {
                others(value).into_iter().map(move |other| {
                    let mut values = values.clone();
                    values[at] = other;
                    Value::from(values)
                })
            });
            inside.collect()
        }
        _ => Vec::new(),
    }
}

proptest! {
    #[test]
    fn one_message_has_one_identity_and_another_has_another(
        api in prop::sample::select(Api::ALL.to_vec()), kind: u8, text in "\\PC{0,12}",
    ) {
        let message = element(api, kind, 7, &text);
        let own = identities(api, &message.to_string());
        let mut ways = vec![turned(&message).to_string(), format!("{message:#}"), escaped(&message.to_string())];
        if api != Api::Responses {
            ways.push(marked(message.clone()).to_string());
            ways.push(flipped(message.clone()).to_string());
        }
        for way in ways {
            prop_assert_eq!(&identities(api, &way), &own, "{}", way);
        }
        for other in others(&message) {
            let Ok(request) = Request::decode(api, body(api, &other.to_string())) else { continue };
            prop_assert_ne!(request.identities().into_owned(), own.clone(), "{}", other);
        }
    }
}

/// The page on requests shows two ways of writing one message, and its identity.
#[test]
fn the_page_on_requests_tells_the_truth() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requests.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, shown) = page.split_once("```json\n").unwrap();
    let shown: Vec<&str> = shown.split_once("```").unwrap().0.lines().collect();
    let told: Vec<String> = shown.iter().map(|way| identities(Api::Anthropic, way)[0].to_string()).collect();
    assert_eq!((told.len(), &told[0]), (2, &told[1]));
    assert!(page.contains(&format!("the identity `{}`", told[0])), "{}", told[0]);
}
