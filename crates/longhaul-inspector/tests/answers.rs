//! Every question about sessions, answered over HTTP as the engine knows it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Ground, TURNS, lines, then, worked};
use longhaul::{Block, Message, Models, Profile, Session};
use longhaul_store::{About, SessionId};
use serde_json::{Value, json};

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Rule 9: the request of a call is what was sent, byte for byte, and so is what a provider was told.
#[test]
fn every_call_is_the_request_that_was_sent() {
    let ground = Ground::new();
    let mut all = Vec::new();
    let session = worked(TURNS, |session| all.push(then(session)));
    let id = ground.keep(&session, &About::default());
    let served = ground.serve();
    let timeline = served.json(&format!("api/session/{id}"));
    assert_eq!(timeline["calls"]["count"], all.len());
    assert!(timeline["compactions"].as_array().unwrap().len() > 1, "{timeline:#}");
    assert_eq!(numbers(&timeline["calls"]["view"]), all.iter().map(|sent| sent.prompt).collect::<Vec<_>>());
    for (number, sent) in (1..).zip(&all) {
        let call = served.json(&format!("api/session/{id}/call/{number}"));
        let parts = call["parts"].as_array().unwrap();
        assert_eq!(parts.len(), sent.texts.len(), "call {number}");
        for (k, text) in sent.texts.iter().enumerate() {
            let part = served.json(&format!("api/session/{id}/call/{number}/part/{k}"));
            assert_eq!(part["text"], *text, "call {number}, part {k}");
            let head: String = text.chars().take(2_000).collect();
            assert_eq!(
                (&parts[k]["head"], parts[k]["chars"].as_u64()),
                (&json!(head), Some(text.encode_utf16().count() as u64))
            );
        }
        let tokens: u64 = parts.iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
        assert_eq!(tokens + call["frame"]["tokens"].as_u64().unwrap(), sent.prompt, "call {number}");
        let raw = served.get(&format!("api/session/{id}/call/{number}/raw?api=anthropic"));
        assert_eq!(raw.json(), sent.anthropic, "call {number}");
    }
    let raw = served.get(&format!("api/session/{id}/call/1/raw?api=openai&download"));
    assert!(raw.header("content-disposition").unwrap().starts_with("attachment; filename="));
    assert_eq!(raw.json()["messages"][0]["role"], "system");
    // Nobody says which API: it is that of the tools.
    assert!(served.get(&format!("api/session/{id}/call/1/raw")).json()["system"].is_array());
}

#[test]
fn the_columns_of_a_session_agree_with_its_calls_and_add_up() {
    let ground = Ground::new();
    let session = worked(TURNS, |_| {});
    let id = ground.keep(&session, &About { agent: "a".into(), project: "p".into(), ..About::default() });
    let served = ground.serve();
    let answer = served.json(&format!("api/session/{id}"));
    let calls = &answer["calls"];
    let count = calls["count"].as_u64().unwrap() as usize;
    assert_eq!((count, calls["from"].as_u64()), (2 * TURNS, Some(1)));
    let columns = |of: &Value| -> Vec<Vec<u64>> { of.as_object().unwrap().values().map(numbers).collect() };
    let (shares, results) = (columns(&calls["shares"]), columns(&calls["results"]));
    assert!(calls["results"]["Read"].is_array() && results.iter().all(|column| column.len() == count));
    let view = numbers(&calls["view"]);
    for at in 0..count {
        let sum: u64 = shares.iter().chain(&results).map(|column| column[at]).sum();
        assert_eq!(sum, view[at], "call {}", at + 1);
        let call = served.json(&format!("api/session/{id}/call/{}", at + 1));
        for name in
            ["view", "full", "read", "written", "fresh", "output", "usd", "billed", "broke", "why", "at"]
        {
            let column = if name == "at" { &calls["at"][at] } else { &calls[name][at] };
            assert_eq!(call[name], *column, "{name} of call {}", at + 1);
        }
        let prompt = ["read", "written", "fresh"].iter().map(|name| calls[name][at].as_u64().unwrap());
        assert_eq!(prompt.sum::<u64>(), view[at]);
        assert_eq!((calls["output"][at].as_u64(), &calls["billed"][at]), (Some(77), &json!(true)));
    }
    // As billed: half read, a quarter written, a quarter new; in dollars of the model's prices.
    let price = Models::builtin().find("claude-sonnet-4-5").price.unwrap();
    let of = |name: &str| calls[name][0].as_u64().unwrap() as f64;
    let usd = of("read") * price.cache_read as f64
        + of("written") * price.cache_write as f64
        + of("fresh") * price.input as f64
        + of("output") * price.output as f64;
    assert!((calls["usd"][0].as_f64().unwrap() - usd / 1e12).abs() < 1e-12);
    let sum: f64 = calls["usd"].as_array().unwrap().iter().map(|usd| usd.as_f64().unwrap()).sum();
    assert!((answer["cost"]["usd"].as_f64().unwrap() - sum).abs() < 1e-9);
    assert!(answer["cost"]["full_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(answer["limits"]["hard"], session.budget().hard.0);
    assert_eq!(answer["edits"].as_array().unwrap().len(), session.ledger().next_id().0 as usize);
    let part = served.json(&format!("api/session/{id}?from={}", count - 1));
    assert_eq!(
        (&part["calls"]["from"], numbers(&part["calls"]["view"])),
        (&json!(count - 1), view[count - 2..].to_vec())
    );
    let none = served.json(&format!("api/session/{id}?from=9999"));
    assert_eq!(none["calls"]["view"], json!([]));
    // The list knows the figures when the journal was read.
    let row = &served.json("api/sessions?agent=a&project=p")["sessions"][0];
    assert_eq!((&row["id"], row["view"].as_u64()), (&json!(id.to_string()), view.last().copied()));
    let figures = served.json(&format!("api/session/{id}/figures"));
    assert_eq!((&figures["saved_tokens"], &figures["cost"]), (&row["saved_tokens"], &row["cost"]));
    assert_eq!(served.json("api/sessions?agent=b")["total"], 0);
}

/// Which call no longer had it, and why.
#[test]
fn a_message_tells_from_which_call_to_which_it_was_shown_how() {
    let ground = Ground::new();
    let mut all = Vec::new();
    let session = worked(TURNS, |session| all.push(then(session)));
    let id = ground.keep(&session, &About::default());
    let served = ground.serve();
    // The result of the first turn is message 2.
    let message = served.json(&format!("api/session/{id}/message/2"));
    assert_eq!((message["role"].as_str(), message["text"].as_str()), (Some("tool"), Some(lines(0).as_str())));
    let shown = message["shown"].as_array().unwrap();
    assert_eq!((shown[0]["from_call"].as_u64(), shown[0]["as"].as_str()), (Some(2), Some("whole")));
    assert!(shown.len() > 1 && shown.last().unwrap()["to_call"].is_null(), "{shown:#?}");
    for stretch in shown {
        let (from, to) = (stretch["from_call"].as_u64().unwrap(), stretch["to_call"].as_u64());
        for call in from..=to.unwrap_or(all.len() as u64) {
            let is_whole = all[call as usize - 1].texts.contains(&lines(0));
            assert_eq!(is_whole, stretch["as"] == "whole", "call {call}: {stretch}");
        }
    }
    let found = served.json(&format!("api/session/{id}/find?q=HELPER_0_59"));
    assert_eq!(found["total"], 1);
    let hit = &found["messages"][0];
    let last_whole =
        shown.iter().rfind(|stretch| stretch["as"] == "whole").unwrap()["to_call"].as_u64().unwrap();
    assert_eq!((hit["at"].as_u64(), hit["first_call"].as_u64()), (Some(2), Some(2)));
    assert_eq!(
        (hit["last_whole_call"].as_u64(), hit["gone_at_call"].as_u64()),
        (Some(last_whole), Some(last_whole + 1))
    );
    assert_eq!(
        (&hit["as"], &hit["edit"]["id"]),
        (&shown.last().unwrap()["as"], &shown.last().unwrap()["edit"])
    );
    let (start, end) =
        (hit["found"][0][0].as_u64().unwrap() as usize, hit["found"][0][1].as_u64().unwrap() as usize);
    assert_eq!(&hit["snippet"].as_str().unwrap()[start..end], "helper_0_59");
    let gone = hit["words_gone_at_call"].as_u64().unwrap() as usize;
    let says = |call: usize| all[call - 1].texts.iter().any(|text| text.contains("helper_0_59"));
    assert!(!says(gone) && says(gone - 1) && (gone..=all.len()).all(|call| !says(call)), "{gone}");
    // What stands in its place names its originals, and they are beside it.
    let call = served.json(&format!("api/session/{id}/call/{}", all.len()));
    let stands =
        call["parts"].as_array().unwrap().iter().find(|part| !part["edits"].as_array().unwrap().is_empty());
    let part = served.json(&format!("api/session/{id}/call/{}/part/{}", all.len(), stands.unwrap()["k"]));
    let handle = part["recall"][0].as_str().unwrap();
    let recalled = served.get(&format!("api/session/{id}/recall/{handle}"));
    assert_eq!((recalled.status, recalled.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert_eq!(recalled.body, session.recall(handle, &longhaul::RecallPart::Whole).unwrap().as_bytes());
    let some = served.get(&format!("api/session/{id}/recall/{handle}?lines=2-3"));
    assert_eq!(some.body, session.recall(handle, &longhaul::RecallPart::Lines(2, 3)).unwrap().as_bytes());
    let originals = part["original"]["messages"].as_array().unwrap();
    let first = originals[0]["at"].as_u64().unwrap() as usize;
    assert_eq!(originals[0]["role"], session.log().messages()[first].role().name());
    // What is new in a call is what was not in the one before.
    let added = numbers(&call["since"]["added"]);
    let before = &all[all.len() - 2].texts;
    for (k, text) in all[all.len() - 1].texts.iter().enumerate() {
        assert_eq!(added.contains(&(k as u64)), !before.contains(text), "part {k}");
    }
    assert_eq!(call["answer"]["messages"], json!([session.log().end().0 - 1]));
}

#[test]
fn everything_ever_said_is_found() {
    let ground = Ground::new();
    let id = ground.keep(&worked(3, |_| {}), &About::default());
    let served = ground.serve();
    let hits = served.json("api/search?q=sixty%20helpers&limit=2");
    let hits = hits["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 2);
    assert_eq!((&hits[0]["session"], hits[0]["message"].as_u64()), (&json!(id.to_string()), Some(11)));
    // No call was sent behind the last answer; the one before was in the fifth request.
    assert_eq!((&hits[0]["call"], &hits[1]["call"]), (&Value::Null, &json!(5)));
    assert_eq!(hits[0]["found"][0], json!([7, 12]));
}

#[test]
fn the_same_log_under_other_settings() {
    let ground = Ground::new();
    let id = ground.keep(&worked(TURNS, |_| {}), &About::default());
    let served = ground.serve();
    let answer = served.json(&format!("api/session/{id}/whatif?profile=archive&window=8000"));
    let (a, b) = (&answer["a"], &answer["b"]);
    assert_eq!((&a["profile"], &a["window"]), (&json!("longhaul"), &json!(12_000)));
    assert_eq!((&b["profile"], &b["window"]), (&json!("archive"), &json!(8_000)));
    assert_eq!(a["view"].as_array().unwrap().len(), 2 * TURNS);
    assert_eq!(
        (&a["calls"], &a["errors"], &b["calls"], &b["errors"]),
        (&json!(48), &json!(0), &json!(48), &json!(0))
    );
    assert!(b["peak"].as_u64().unwrap() < 8_000 && a["peak"].as_u64() > b["peak"].as_u64());
    assert!(a["share"].as_f64().unwrap() < 1.0 && b["kept"]["near"].as_f64().unwrap() > 0.0, "{answer:#}");
    // As it was, the engine expected what it expects when the same is decided anew.
    let same = served.json(&format!("api/session/{id}/whatif"));
    assert_eq!((&same["a"]["profile"], &same["a"]["window"]), (&same["b"]["profile"], &same["b"]["window"]));
    let (was, would) = (same["a"]["sent"].as_f64().unwrap(), same["b"]["sent"].as_f64().unwrap());
    assert!((was - would).abs() / was < 0.05, "{was} {would}");
    let unknown = served.get(&format!("api/session/{id}/whatif?profile=none"));
    assert!(unknown.status == 400 && unknown.error().contains("there is no profile"), "{unknown:?}");
}

/// What a session says is text from outside: it goes out as it came, as JSON that no browser takes for a page.
#[test]
fn hostile_contents_stay_text() {
    let ground = Ground::new();
    let hostile = "</script><script>alert(1)</script>\u{0}\u{1b}[31m\u{202e}evil\u{2066}\u{feff}\r\n<img src=x onerror=alert(1)>";
    let long = format!("{}{}", "x".repeat(3 << 20), hostile);
    let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    session.push(Message::user(hostile));
    session.prepare(None).unwrap();
    session.push(Message::assistant(long.as_str()));
    let id = ground
        .keep(&session, &About { project: hostile.into(), title: Some(hostile.into()), ..About::default() });
    let served = ground.serve();
    for path in ["api/sessions".to_owned(), format!("api/session/{id}"), format!("api/session/{id}/call/1")] {
        let seen = served.get(&path);
        assert_eq!(seen.status, 200, "{path}");
        assert_eq!(seen.header("content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(seen.header("x-content-type-options"), Some("nosniff"));
        assert!(
            seen.header("content-security-policy")
                .unwrap()
                .starts_with("default-src 'none'; script-src 'self';")
        );
        assert_eq!(seen.header("cache-control"), Some("no-store"));
        assert!(seen.json().to_string().contains("onerror"), "{path}");
    }
    let part = served.json(&format!("api/session/{id}/call/1/part/0"));
    assert_eq!(part["text"], hostile);
    // A text that is too long is cut, and that is said.
    let message = served.json(&format!("api/session/{id}/message/1"));
    assert_eq!((message["cut"].as_bool(), message["text"].as_str().unwrap().len()), (Some(true), 2 << 20));
    assert_eq!(message["chars"].as_u64(), Some(long.encode_utf16().count() as u64));
    let found = served.json(&format!("api/session/{id}/find?q=%3Cimg%20src"));
    assert_eq!(found["total"], 2);
    assert!(found["messages"][1]["snippet"].as_str().unwrap().len() < 4_000);
}

#[test]
fn what_is_no_question_has_a_sentence_and_a_status() {
    let ground = Ground::new();
    let id = ground.keep(&worked(2, |_| {}), &About::default());
    let served = ground.serve();
    let other = SessionId::fresh();
    let long = "a".repeat(5_000);
    for (path, status) in [
        ("api/nothing".to_owned(), 404),
        ("api/session/1".to_owned(), 400),
        ("api/session/..%2f..".to_owned(), 400),
        (format!("api/session/{other}"), 404),
        (format!("api/session/{other}/figures"), 404),
        (format!("api/session/{other}/find?q=a"), 404),
        (format!("api/session/{id}/call/0"), 404),
        (format!("api/session/{id}/call/5"), 404),
        (format!("api/session/{id}/call/-1"), 400),
        (format!("api/session/{id}/call/99999999999"), 400),
        (format!("api/session/{id}/call/1/part/9"), 404),
        (format!("api/session/{id}/call/1/raw?api=soap"), 400),
        (format!("api/session/{id}/message/99"), 404),
        (format!("api/session/{id}/recall/zz"), 404),
        (format!("api/session/{id}/recall/00?grep=("), 404),
        (format!("api/session/{id}/find?q={long}"), 400),
        (format!("api/events?session={other}"), 404),
        ("page/../Cargo.toml".to_owned(), 404),
        ("page/none.js".to_owned(), 404),
        ("?token=wrong".to_owned(), 200),
    ] {
        let seen = served.get(&path);
        assert_eq!(seen.status, status, "{path}");
        if status != 200 {
            let says = seen.error();
            assert!(!says.is_empty() && !says.contains('\n'), "{path}: {says}");
        }
    }
    for (method, path, allowed) in
        [("POST", "api/me", "GET"), ("DELETE", "", "GET"), ("GET", &format!("api/session/{id}/act"), "POST")]
    {
        let seen = served.send(method, &format!("/inspect/{path}"), &[], b"");
        assert_eq!((seen.status, seen.header("allow")), (405, Some(allowed)), "{method} {path}");
    }
    // A session of which nothing is kept that was said.
    let empty = ground.keep(&worked(1, |_| {}), &About { without_content: true, ..About::default() });
    let seen = served.get(&format!("api/session/{empty}"));
    assert!(seen.status == 409 && seen.error().contains("kept without content"), "{seen:?}");
    let head = served.send("HEAD", "/inspect/api/me", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn the_page_is_served_with_its_files_and_known_by_their_hashes() {
    let ground = Ground::new();
    let served = ground.serve();
    assert_eq!(served.send("GET", "/", &[], b"").header("location"), Some("/inspect/"));
    assert_eq!(served.send("GET", "/inspect", &[], b"").header("location"), Some("/inspect/"));
    assert_eq!(served.send("GET", "/other", &[], b"").status, 404);
    let page = served.get("");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let text = String::from_utf8(page.body.clone()).unwrap();
    for name in text.split("\"page/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let file = served.get(&format!("page/{name}"));
        assert_eq!((file.status, file.header("cache-control")), (200, Some("no-cache")), "{name}");
    }
    let tag = page.header("etag").unwrap();
    let again = served.send("GET", "/inspect/", &[("if-none-match", tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[test]
fn a_session_that_grows_is_read_on() {
    let ground = Ground::new();
    let mut session = Session::new(Profile::longhaul(), Models::builtin().find("claude-sonnet-4-5").clone());
    session.push(Message::user("One."));
    session.prepare(None).unwrap();
    let mut keeper =
        longhaul_store::Keeper::create(ground.store.clone(), &About::default(), &session).unwrap();
    let served = ground.serve();
    let path = format!("api/session/{}", keeper.id());
    assert_eq!(served.json(&path)["calls"]["count"], 1);
    for n in 2..6 {
        session.push(Message::new(longhaul::Role::Assistant, vec![Block::text("Yes.")]));
        session.push(Message::user("More."));
        session.prepare(None).unwrap();
        keeper.save(&session).unwrap();
        let answer = served.json(&path);
        assert_eq!(
            (&answer["calls"]["count"], &answer["calls"]["upto"][n - 1]),
            (&json!(n), &json!(2 * n - 1))
        );
    }
}
