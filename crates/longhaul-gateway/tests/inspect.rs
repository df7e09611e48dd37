//! The inspector behind the gateway: what it shows is what the provider got, what a person changes is in the next
//! request, and nobody sees sessions of others.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
mod common;

use clients::{APIS, body_of, conversation, model};
use common::{LONG, Seen, ask, client, raw, see, settings, url};
use longhaul::Tokens;
use longhaul_fake::{Answer, Fake, Settings as Script};
use longhaul_gateway::{Gateway, Token, start};
use longhaul_wire::api::Api;
use serde_json::{Value, json};
use tempfile::TempDir;

const STEPS: usize = 24;

async fn gateway(fake: &Fake, folder: &TempDir, token: Option<&str>) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = Some(Tokens(9_000));
    settings.token = token.map(Token::new);
    start(settings).await.unwrap()
}

fn script() -> Script {
    Script::new().answers((0..200).map(|n| Answer::new().text(&format!("I read file {n}."))))
}

fn step(api: Api, n: usize) -> Value {
    let mut body = body_of(api, model(api), &conversation(api, n), true);
    body["stream"] = true.into();
    body
}

async fn get(gateway: &Gateway, path: &str) -> Seen {
    see(client().get(format!("{}/inspect/{path}", url(gateway))), LONG).await
}

async fn value(gateway: &Gateway, path: &str) -> Value {
    let seen = get(gateway, path).await;
    assert_eq!(seen.status, 200, "{path}: {}", seen.text());
    serde_json::from_slice(&seen.body).unwrap()
}

async fn act(gateway: &Gateway, id: &str, change: Value) -> Value {
    let csrf = value(gateway, "api/me").await["csrf"].as_str().unwrap().to_owned();
    let path = format!("{}/inspect/api/session/{id}/act", url(gateway));
    let seen =
        see(client().post(path).header("x-longhaul-inspect", csrf).body(change.to_string()), LONG).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    serde_json::from_slice(&seen.body).unwrap()
}

/// Waits until the calls that were answered are stored, and gives the only session. A request is stored before it is
/// sent, its bill behind the answer: a session with all its calls may still lack the bill of the last one.
async fn session(gateway: &Gateway, calls: u64) -> String {
    loop {
        let all = value(gateway, "api/sessions").await;
        if let Some(row) = all["sessions"].get(0).filter(|row| row["calls"] == calls) {
            assert_eq!((&row["live"], &all["total"]), (&json!(true), &json!(1)));
            let id = row["id"].as_str().unwrap();
            if value(gateway, &format!("api/session/{id}")).await["billed"] == true {
                return id.to_owned();
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// What is said, without marks of the cache, and with all content as a list.
fn said(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            let text = |name: &str, value: &Value| match (name, value) {
                ("content", Value::String(text)) => json!([{"type": "text", "text": text}]),
                _ => said(value),
            };
            Value::Object(kept.map(|(name, value)| (name.clone(), text(name, value))).collect())
        }
        Value::Array(list) => list.iter().map(said).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn each_call_is_shown_as_the_provider_got_it() {
    for api in APIS {
        let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder, None).await;
        for n in 0..STEPS {
            assert_eq!(ask(&url(&gateway), api, &step(api, n), LONG).await.status, 200);
        }
        let id = session(&gateway, STEPS as u64).await;
        let timeline = value(&gateway, &format!("api/session/{id}")).await;
        assert!(!timeline["compactions"].as_array().unwrap().is_empty(), "{api:?}");
        let list = if api == Api::Responses { "input" } else { "messages" };
        for (number, sent) in (1..).zip(fake.log()) {
            let raw = value(&gateway, &format!("api/session/{id}/call/{number}/raw")).await;
            assert_eq!(said(&raw[list]), said(&sent.body[list]), "{api:?}, call {number}");
            assert_eq!(
                (&raw["model"], said(&raw["tools"])),
                (&sent.body["model"], said(&sent.body["tools"]))
            );
            let call = value(&gateway, &format!("api/session/{id}/call/{number}")).await;
            assert_eq!(
                (call["api"].as_str(), &call["billed"]),
                (Some(api.name()), &json!(true)),
                "call {number}"
            );
            let prompt = ["read", "written", "fresh"].map(|name| call[name].as_u64().unwrap());
            assert_eq!(prompt.iter().sum::<u64>(), call["view"].as_u64().unwrap());
            assert!(call["output"].as_u64().unwrap() > 0);
        }
        let figures = gateway.figures();
        let sum = |name: &str| -> u64 {
            timeline["calls"][name].as_array().unwrap().iter().map(|tokens| tokens.as_u64().unwrap()).sum()
        };
        assert_eq!((sum("read"), sum("output")), (figures.cache_read, figures.output), "{api:?}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_change_is_in_the_next_request_of_a_live_conversation() {
    for api in APIS {
        let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder, None).await;
        for n in 0..STEPS {
            ask(&url(&gateway), api, &step(api, n), LONG).await;
        }
        let id = session(&gateway, STEPS as u64).await;
        let last = || fake.log().last().unwrap().body.to_string();
        let pinned = act(&gateway, &id, json!({"do": "pin", "text": "Never touch src/old."})).await;
        assert_eq!(pinned["done"], true);
        ask(&url(&gateway), api, &step(api, STEPS), LONG).await;
        assert!(last().contains("Never touch src/old."), "{api:?}");
        act(&gateway, &id, json!({"do": "unpin", "name": "pin-1"})).await;
        // An edit that is taken back is not in the next request, and one that is made again is.
        let edits = value(&gateway, &format!("api/session/{id}")).await["edits"].clone();
        let edits = edits.as_array().unwrap();
        let edit = edits.iter().rfind(|edit| edit["active"] == true).unwrap();
        let (number, handle) = (edit["id"].clone(), edit["handles"][0].as_str().unwrap().to_owned());
        assert!(last().contains(&handle), "{api:?}");
        let undone = act(&gateway, &id, json!({"do": "undo", "edit": number})).await;
        assert!(undone["view_after"].as_u64() > undone["view_before"].as_u64());
        session(&gateway, STEPS as u64 + 1).await;
        ask(&url(&gateway), api, &step(api, STEPS), LONG).await;
        assert!(!last().contains("Never touch src/old."), "{api:?}");
        assert!(undone["over_limit"].is_u64() || !last().contains(&handle), "{api:?}");
        assert_eq!(fake.violations(), [""; 0], "{api:?}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn tenants_see_their_own_sessions_only() {
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let (one, other) =
        (gateway(&fake, &folder, Some("One")).await, gateway(&fake, &folder, Some("Other")).await);
    let api = Api::Anthropic;
    let tokened = |gateway: &Gateway, token: &str| format!("{}/t/{token}", url(gateway));
    ask(&tokened(&one, "One"), api, &step(api, 2), LONG).await;
    let with = |gateway: &Gateway, token: &'static str, path: &str| {
        see(client().get(format!("{}/inspect/{path}", url(gateway))).header("x-longhaul-token", token), LONG)
    };
    let sessions = |seen: Seen| serde_json::from_slice::<Value>(&seen.body).unwrap()["sessions"].clone();
    let row = loop {
        let all = sessions(with(&one, "One", "api/sessions").await);
        match all.get(0).filter(|row| row["calls"] == 1) {
            Some(row) => break row.clone(),
            None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    };
    let id = row["id"].as_str().unwrap();
    assert_eq!(sessions(with(&other, "Other", "api/sessions").await), json!([]));
    for path in [
        format!("api/session/{id}"),
        format!("api/session/{id}/call/1"),
        format!("api/session/{id}/message/0"),
        format!("api/session/{id}/find?q=a"),
        format!("api/session/{id}/recall/00"),
        format!("api/session/{id}/whatif"),
        format!("api/session/{id}/figures"),
        format!("api/events?session={id}"),
    ] {
        assert_eq!(with(&other, "Other", &path).await.status, 404, "{path}");
        assert_eq!(with(&one, "Other", &path).await.status, 401, "{path}");
        assert_eq!(get(&one, &path).await.status, 401, "{path}");
    }
    assert_eq!(with(&one, "One", &format!("api/session/{id}")).await.status, 200);
    let found = with(&other, "Other", "api/search?q=files").await;
    assert_eq!(serde_json::from_slice::<Value>(&found.body).unwrap()["hits"], json!([]));
    // A change needs what the page is told, and the session must be the tenant's.
    let me: Value = serde_json::from_slice(&with(&other, "Other", "api/me").await.body).unwrap();
    for what in ["preview", "act"] {
        let request = client()
            .post(format!("{}/inspect/api/session/{id}/{what}", url(&other)))
            .header("x-longhaul-token", "Other")
            .header("x-longhaul-inspect", me["csrf"].as_str().unwrap());
        assert_eq!(see(request.body(r#"{"do":"pin","text":"mine"}"#), LONG).await.status, 404);
    }
    // The token in the path gives a cookie, and goes from the address.
    let opened = see(client().get(tokened(&one, "One") + "/inspect/"), LONG).await;
    assert_eq!((opened.status, opened.header("location")), (303, Some("/inspect/")));
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let seen = see(client().get(url(&one) + "/inspect/api/sessions").header("cookie", &cookie), LONG).await;
    assert_eq!(seen.status, 200);
    // It is of no use elsewhere: not for a model, not at another gateway.
    let body = step(api, 2).to_string();
    let request = client().post(url(&one) + "/v1/messages").header("cookie", &cookie).body(body);
    assert_eq!(see(request, LONG).await.status, 401);
    let seen = see(client().get(url(&other) + "/inspect/api/sessions").header("cookie", &cookie), LONG).await;
    assert_eq!(seen.status, 401);
}

#[tokio::test]
async fn no_other_site_gets_in() {
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder, None).await;
    let answer =
        raw(&gateway, b"GET /inspect/api/me HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
            .await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && !answer.contains("csrf"), "{answer}");
    let page = get(&gateway, "").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    // Nothing of it goes to a provider.
    assert_eq!(get(&gateway, "api/nothing").await.status, 404);
    assert_eq!(fake.log().len(), 0);
}

#[tokio::test]
async fn who_listens_is_told_of_calls_and_let_go_when_the_gateway_stops() {
    let (fake, folder) = (script().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder, None).await;
    let api = Api::Chat;
    let mut stream = client().get(url(&gateway) + "/inspect/api/events").send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    let mut more = async |text: &mut String, until: &str| {
        while !text.contains(until) {
            text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().expect("it goes on")));
        }
    };
    more(&mut text, ": listening\n\n").await;
    for calls in 1..4 {
        ask(&url(&gateway), api, &step(api, calls), LONG).await;
        more(&mut text, &format!("\"calls\":{calls},")).await;
    }
    gateway.stop().await;
    // The stream has a clean end: nobody waits for a page that is open.
    while let Some(piece) = stream.chunk().await.unwrap() {
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    assert_eq!(text.matches("event: session\n").count(), 3, "{text}");
}
