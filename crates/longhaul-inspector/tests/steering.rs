//! Changes over HTTP: what they would do, what they do, and who may make them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Ground, Served, TURNS, lines, thought, worked};
use longhaul::conversation::FactKind;
use longhaul::{EditId, Profile, Session};
use longhaul_inspector::access::Access;
use longhaul_store::{About, Keeper, SessionId};
use serde_json::{Value, json};

fn loaded(ground: &Ground, id: SessionId) -> Session {
    Keeper::open(ground.store.clone(), id, Profile::longhaul()).unwrap().1
}

#[test]
fn a_preview_says_what_a_change_does_and_changes_nothing() {
    let ground = Ground::new();
    let id = ground.keep(&worked(TURNS, |_| {}), &About::default());
    let served = ground.serve();
    let (preview, act) = (format!("api/session/{id}/preview"), format!("api/session/{id}/act"));
    let edit = served.json(&format!("api/session/{id}"))["edits"]
        .as_array()
        .unwrap()
        .iter()
        .rfind(|edit| edit["active"] == true)
        .unwrap()["id"]
        .clone();
    for change in [
        json!({"do": "pin", "text": "Never touch the migrations."}),
        json!({"do": "goal", "text": "Count helpers."}),
        json!({"do": "undo", "edit": edit}),
        json!({"do": "redo", "edit": edit}),
        json!({"do": "restore", "message": 2}),
        json!({"do": "compact", "focus": "helper_20"}),
        json!({"do": "unpin", "name": "pin-1"}),
    ] {
        let before = ground.journal(id);
        let would = served.post(&preview, &change);
        assert_eq!(would.status, 200, "{change}: {would:?}");
        assert_eq!(ground.journal(id), before, "{change}");
        let did = served.post(&act, &change);
        assert_eq!((did.status, &did.json()["done"]), (200, &json!(true)), "{change}");
        // What was foreseen is what was done.
        let (would, mut did) = (would.json(), did.json());
        did.as_object_mut().unwrap().remove("done");
        assert_eq!(would, did, "{change}");
        assert!(would["says"].as_str().unwrap().contains("The next request has "), "{would}");
        let after = ground.journal(id);
        assert!(after.len() > before.len() && after.starts_with(&before), "{change}");
        let size: u64 =
            would["parts"].as_array().unwrap().iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
        assert!(size > 0 && would["view_after"].as_u64().unwrap() >= size, "{change}");
    }
    let session = loaded(&ground, id);
    assert_eq!(session.log().fact(FactKind::Goal, ""), Some("Count helpers."));
    assert!(session.log().facts(FactKind::Pin).is_empty());
    // What was restored is whole again, and the compaction waits for the next request.
    let mut next = session.clone();
    assert!(
        next.outgoing().messages().any(|message| message.results().any(|result| *result.text == *lines(0)))
    );
    let edits = next.ledger().next_id();
    next.prepare(None).unwrap();
    assert!(next.ledger().next_id() > edits);
}

#[test]
fn undo_and_redo_turn_an_edit_and_are_told() {
    let ground = Ground::new();
    let id = ground.keep(&worked(TURNS, |_| {}), &About::default());
    let served = ground.serve();
    let act = |change: Value| served.post(&format!("api/session/{id}/act"), &change);
    let edits = || served.json(&format!("api/session/{id}"))["edits"].as_array().unwrap().clone();
    let edit = edits().iter().rfind(|edit| edit["active"] == true).unwrap()["id"].as_u64().unwrap() as u32;
    let undone = act(json!({"do": "undo", "edit": edit})).json();
    assert!(undone["view_after"].as_u64() > undone["view_before"].as_u64());
    assert!(
        undone["billed_again"].as_u64().unwrap() > 0
            && undone["usd"].as_f64() > undone["usd_before"].as_f64()
    );
    assert_eq!(undone["edits"][0]["active_now"], false);
    let row = &edits()[edit as usize];
    assert_eq!(
        (&row["active"], &row["held"], &row["undone_by_person"]),
        (&json!(false), &json!(true), &json!(true))
    );
    assert!(!loaded(&ground, id).ledger().is_active(EditId(edit)));
    let again = act(json!({"do": "undo", "edit": edit}));
    assert_eq!((again.status, again.error()), (409, format!("edit {edit} is undone already")));
    assert_eq!(act(json!({"do": "redo", "edit": edit})).status, 200);
    assert!(loaded(&ground, id).ledger().is_active(EditId(edit)));
    assert_eq!(act(json!({"do": "undo", "edit": 9_999})).error(), "there is no edit 9999");
}

/// A model that binds its thinking accepts none that stands after a change.
#[test]
fn an_undo_tells_of_the_thinking_that_goes_with_it() {
    let ground = Ground::new();
    // Somebody thought since the last fold.
    let session =
        (TURNS..TURNS + 8).map(thought).find(|session| session.thinking_after(longhaul::Position(0)).0 > 0);
    let id = ground.keep(&session.unwrap(), &About::default());
    let served = ground.serve();
    let session = served.json(&format!("api/session/{id}"));
    let (edits, compactions) =
        (session["edits"].as_array().unwrap(), session["compactions"].as_array().unwrap());
    let took =
        compactions.iter().find(|each| each["thinking_steps"] != 0).expect("a fold that took thinking");
    let steps = took["thinking_steps"].as_u64().unwrap();
    assert!(
        took["says"].as_str().unwrap().contains(&format!(", and the thinking of {steps} step")),
        "{took}"
    );
    let edit = edits.iter().rfind(|edit| edit["active"] == true && edit["kind"] == "fold").unwrap();
    let first = edit["messages"][0][0].as_u64().unwrap() as u32;
    let before = loaded(&ground, id);
    let (since, tokens) = before.thinking_after(longhaul::Position(first));
    assert!(since > 0);
    let change = json!({"do": "undo", "edit": edit["id"]});
    let would = served.post(&format!("api/session/{id}/preview"), &change).json();
    let says = would["says"].as_str().unwrap();
    let steps = if since == 1 { "1 step".to_owned() } else { format!("{since} steps") };
    assert!(
        says.contains(&format!("With it goes the thinking of {steps}, {} tokens, since then", tokens.0)),
        "{says}"
    );
    assert!(says.contains("Thinking that the edit took does not come back."), "{says}");
    // What was foreseen is what is sent.
    assert_eq!(served.post(&format!("api/session/{id}/act"), &change).status, 200);
    let mut next = loaded(&ground, id).with_window(longhaul::Tokens(200_000));
    next.prepare(None).unwrap();
    assert_eq!(next.thinking_after(longhaul::Position(0)).0, 0);
    assert_eq!(would["view_after"].as_u64(), Some(next.size().tokens.0));
}

/// Somebody whose agent forgot something finds out when, and brings it back.
#[test]
fn what_was_forgotten_is_found_and_brought_back() {
    let ground = Ground::new();
    let id = ground.keep(&worked(TURNS, |_| {}), &About::default());
    let served = ground.serve();
    let find = || served.json(&format!("api/session/{id}/find?q=helper_0_59"))["messages"][0].clone();
    let forgotten = find();
    let (last, gone) = (forgotten["last_whole_call"].as_u64().unwrap(), forgotten["gone_at_call"].as_u64());
    assert_eq!((gone, &forgotten["words_gone_at_call"].is_u64()), (Some(last + 1), &true));
    let change = json!({"do": "restore", "message": forgotten["at"]});
    let back = served.post(&format!("api/session/{id}/act"), &change);
    assert_eq!(back.status, 200, "{back:?}");
    let found = find();
    // It is in the next request; no call that was sent has it since.
    assert_eq!(
        (&found["as"], &found["gone_at_call"], &found["edit"]),
        (&json!("whole"), &Value::Null, &Value::Null)
    );
    assert_eq!((found["last_whole_call"].as_u64(), &found["words_gone_at_call"]), (Some(last), &Value::Null));
    let shown = served.json(&format!("api/session/{id}/message/2"))["shown"].clone();
    let now = json!({"from_call": 2 * TURNS + 1, "to_call": null, "as": "whole", "edit": null});
    assert_eq!(shown.as_array().unwrap().last(), Some(&now));
}

#[test]
fn what_is_no_change_is_said_and_nothing_is_stored() {
    let ground = Ground::new();
    let id = ground.keep(&worked(3, |_| {}), &About::default());
    let served = ground.serve();
    let before = ground.journal(id);
    for (change, status) in [
        (json!({"do": "pin", "text": " "}), 400),
        (json!({"do": "pin", "text": "a".repeat(200_000)}), 400),
        (json!({"do": "pin"}), 400),
        (json!({"do": "pin", "text": "a", "more": 1}), 400),
        (json!({"do": "delete"}), 400),
        (json!(["pin"]), 400),
        (json!({"do": "unpin", "name": "none"}), 409),
        (json!({"do": "restore", "message": 0}), 409),
        (json!({"do": "restore", "message": 999}), 409),
        (json!({"do": "undo", "edit": -1}), 400),
    ] {
        for what in ["preview", "act"] {
            let seen = served.post(&format!("api/session/{id}/{what}"), &change);
            assert_eq!(seen.status, status, "{change}");
            assert!(!seen.error().contains('\n'), "{change}: {}", seen.error());
        }
    }
    let csrf = served.csrf();
    let long = vec![b'a'; (1 << 20) + 1];
    let path = format!("/inspect/api/session/{id}/act");
    assert_eq!(served.send("POST", &path, &[("x-longhaul-inspect", &csrf)], &long).status, 413);
    assert_eq!(served.send("POST", &path, &[("x-longhaul-inspect", &csrf)], b"\xff\xfe").status, 400);
    let other = format!("api/session/{}/act", SessionId::fresh());
    assert_eq!(served.post(&other, &json!({"do": "compact"})).status, 404);
    assert_eq!(ground.journal(id), before);
}

/// No page of another site changes or reads anything: not by a form, not by a name of its own (DNS rebinding).
#[test]
fn forged_requests_are_refused() {
    let ground = Ground::new();
    let id = ground.keep(&worked(2, |_| {}), &About::default());
    let served = ground.serve();
    let before = ground.journal(id);
    let (path, csrf, own) =
        (format!("/inspect/api/session/{id}/act"), served.csrf(), format!("http://{}", served.address));
    let body = br#"{"do":"pin","text":"a"}"#;
    let right = ("x-longhaul-inspect", csrf.as_str());
    for (headers, what) in [
        (vec![], "no header"),
        (vec![("x-longhaul-inspect", "00000000000000000000000000000000")], "a guess"),
        (vec![right, ("origin", "http://evil.example")], "another origin"),
        (vec![right, ("origin", "null")], "no origin"),
        (vec![right, ("sec-fetch-site", "cross-site")], "another site"),
        (vec![right, ("host", "evil.example")], "another host"),
        (vec![right, ("host", "evil.example"), ("origin", "http://evil.example")], "another host and origin"),
    ] {
        let seen = served.send("POST", &path, &headers, body);
        assert_eq!(seen.status, 403, "{what}");
        assert!(seen.header("access-control-allow-origin").is_none());
    }
    for headers in [
        vec![("host", "evil.example:80")],
        vec![("sec-fetch-site", "cross-site")],
        vec![("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")],
        vec![("origin", "http://localhost:3000")],
        vec![("origin", "null")],
    ] {
        for path in ["/", "/inspect", "/inspect/", "/inspect/app.js", "/inspect/api/sessions", "/elsewhere"] {
            assert_eq!(served.send("GET", path, &headers, b"").status, 403, "{path} {headers:?}");
        }
    }
    // A link in a page, a mail or a terminal opens the page, and asks nothing.
    let link =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(served.send("GET", "/inspect/", &link, b"").status, 200);
    assert_eq!(served.send("GET", "/inspect/api/sessions", &link, b"").status, 403);
    assert_eq!(ground.journal(id), before);
    let seen =
        served.send("POST", &path, &[right, ("origin", &own), ("sec-fetch-site", "same-origin")], body);
    assert_eq!(seen.status, 200);
}

#[test]
fn with_a_token_only_who_shows_it_sees_anything() {
    let ground = Ground::new();
    let id = ground.keep(&worked(2, |_| {}), &About::default());
    let access = Access::with_token(|text| text == "T0ken").unwrap();
    let served = Served::of(ground.inspector(access));
    for path in
        ["api/me".to_owned(), "api/sessions".to_owned(), format!("api/session/{id}"), "api/events".to_owned()]
    {
        let seen = served.get(&path);
        assert_eq!(seen.status, 401, "{path}");
        assert!(seen.error().contains("needs a token"));
    }
    assert_eq!(served.get("").status, 200);
    assert_eq!(served.get("?token=guess").status, 401);
    let opened = served.get("?token=T0ken");
    assert_eq!((opened.status, opened.header("location")), (303, Some("/inspect/")));
    let cookie = opened.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("T0ken"));
    let cookie = cookie.split(';').next().unwrap();
    let seen = served.send("GET", "/inspect/api/sessions", &[("cookie", cookie)], b"");
    assert_eq!(seen.json()["total"], 1);
    // The cookie alone changes nothing.
    let path = format!("/inspect/api/session/{id}/act");
    assert_eq!(served.send("POST", &path, &[("cookie", cookie)], br#"{"do":"compact"}"#).status, 403);
}

#[test]
fn who_listens_is_told_of_sessions_that_get_entries() {
    let ground = Ground::new();
    let id = ground.keep(&worked(2, |_| {}), &About::default());
    let other = ground.keep(&worked(1, |_| {}), &About::default());
    let served = ground.serve();
    let event = |mut lines: &mut dyn Iterator<Item = String>| {
        (&mut lines).find(|line| line == "event: session").unwrap();
        let data = (&mut lines).find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
        serde_json::from_str::<Value>(&data).unwrap()
    };
    let (mut all, mut one) =
        (served.listen("api/events"), served.listen(&format!("api/events?session={id}")));
    for mut lines in [&mut all as &mut dyn Iterator<Item = String>, &mut one] {
        (&mut lines).find(|line| line == ": listening").unwrap();
    }
    let end = |id| ground.store.meta(id).unwrap().end.0;
    // By the page itself: told at once.
    assert_eq!(served.post(&format!("api/session/{id}/act"), &json!({"do": "pin", "text": "a"})).status, 200);
    for lines in [&mut all as &mut dyn Iterator<Item = String>, &mut one] {
        let event = event(lines);
        assert_eq!((&event["id"], &event["end"]), (&json!(id.to_string()), &json!(end(id))));
        assert_eq!(event["calls"], 4);
    }
    // By another program: found by looking at the store.
    let (mut keeper, mut session) = Keeper::open(ground.store.clone(), other, Profile::longhaul()).unwrap();
    session.pin("pin-1", "b");
    keeper.save(&session).unwrap();
    let event = event(&mut all);
    assert_eq!((&event["id"], &event["end"]), (&json!(other.to_string()), &json!(end(other))));
}
