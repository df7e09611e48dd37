//! What each profile sends of a small session, in the three wire formats.

#![allow(clippy::unwrap_used, clippy::panic)]

use longhaul::{
    Block, Cursor, Entry, Json, Message, Meter, Models, Prepared, Profile, Role, Session, Tokens, Voice,
};
use longhaul_wire::api::{Api, Request};
use serde_json::Value;

/// Five turns with tools; the last one is running.
fn session(profile: Profile) -> Session {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(profile, model).with_window(Tokens(1_700)).with_meter(Meter::neutral());
    session.set_rules("CODE_LAW.md", Some("Tests before code."));
    session.push(Message::system("You are a careful agent."));
    for (n, (question, answer)) in [
        (
            "Why does the build fail?",
            "A name is missing in src/store.rs; I decided to add it instead of renaming.",
        ),
        ("Fix it.", "Fixed: the build passes."),
        ("Are there tests?", "Yes, forty of them."),
        ("Run them.", "All pass."),
    ]
    .into_iter()
    .enumerate()
    {
        session.push(Message::user(question));
        step(&mut session, n, 12);
        let Ok(Prepared::Send(_)) = session.prepare(None) else { panic!("it fits") };
        session.push(Message::assistant(answer));
    }
    session.set_todos(Some("[x] build\n[>] docs"));
    session.push(Message::user("Now the docs."));
    step(&mut session, 9, 6);
    let Ok(Prepared::Send(_)) = session.prepare(None) else { panic!("it fits") };
    session
}

fn step(session: &mut Session, n: usize, lines: usize) {
    let id = format!("call_{n}");
    let call =
        Block::call(id.as_str(), "Bash", Json::new(format!(r#"{{"command":"make part_{n}"}}"#)).unwrap());
    session.push(Message::new(Role::Assistant, vec![Block::thinking("Let me see."), call]));
    let text: String = (0..lines * 4).map(|line| format!("part_{n}: object file number {line}\n")).collect();
    session.push(Message::result(id.as_str(), text));
}

// covers: A-ROLE A-LAYERS
#[test]
fn each_profile_in_each_format() {
    for profile in Profile::all() {
        let name = profile.name.clone();
        let session = session(profile);
        assert!(session.ledger().edits().count() > 0, "{name}");
        assert_eq!(session.audit(), [], "{name}");
        let request = Request::of(&session.outgoing());
        for api in Api::ALL {
            let sent = request.encode(api);
            let value: Value = serde_json::from_str(&sent.body).unwrap();
            insta::assert_snapshot!(format!("{name}.{}", api.name()), format!("{value:#}"));
            // It is a request of that API, and its calls are answered.
            let back = Request::decode(api, &sent.body).unwrap();
            let calls = back.messages().iter().flat_map(|message| message.calls()).count();
            let results = back.messages().iter().flat_map(|message| message.results()).count();
            assert_eq!(calls, results, "{name} {api:?}");
        }
    }
}

/// The session of a journal of version 5: nothing in it says in whose place a text stands.
fn of_version_5(session: &Session) -> Session {
    let line = |entry: &Entry| {
        let line = serde_json::to_string(entry).unwrap().replace(r#""version":6"#, r#""version":5"#);
        let voices =
            [r#""voice":"user","#, r#""voice":"system","#, r#","voice":"user""#, r#","voice":"system""#];
        let line = voices.iter().fold(line, |line, voice| line.replace(voice, ""));
        assert!(!line.contains(r#""voice""#), "{line}");
        serde_json::from_str(&line).unwrap()
    };
    let entries: Vec<Entry> = session.since(Cursor(0)).map(line).collect();
    Session::load(session.profile().clone(), entries).unwrap()
}

// covers: DESIGN rule 9
#[test]
fn a_stored_session_keeps_the_roles_that_it_was_sent_with() {
    const FRAME: &str = "not the user's words";
    for profile in Profile::all() {
        let session = session(profile);
        let name = &session.profile().name;
        let (old, again) = (of_version_5(&session), reloaded(&session));
        for api in Api::ALL {
            let body = |session: &Session| Request::of(&session.outgoing()).encode(api).body.to_string();
            assert_eq!(body(&again), body(&session), "{name} {api:?}");
            if api == Api::Anthropic {
                assert_eq!(body(&old), body(&session), "{name}");
            } else {
                assert!(!body(&old).contains(FRAME), "{name} {api:?}");
            }
        }
        // The summary, the rules and the tail were messages of their own.
        let chat: Value = serde_json::from_str(&Request::of(&old.outgoing()).encode(Api::Chat).body).unwrap();
        let roles: Vec<&str> = chat["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        let system = roles.iter().filter(|role| **role == "system").count();
        assert!(system >= 3 && roles.last() == Some(&"system"), "{name} {roles:?}");
    }
}

fn reloaded(session: &Session) -> Session {
    Session::load(session.profile().clone(), session.since(Cursor(0)).cloned()).unwrap()
}

/// A session of the profile `archive` with a summary.
fn archived() -> Session {
    let mut session = session(Profile::archive());
    for n in 20..34 {
        session.push(Message::assistant("So it is."));
        session.push(Message::user(format!("And part {n}?")));
        step(&mut session, n, 2);
        let Ok(Prepared::Send(_)) = session.prepare(None) else { panic!("it fits") };
    }
    session
}

/// What a provider refuses in one voice is sent in the other, also what stands already, and after a restart.
#[test]
fn texts_get_another_voice_when_theirs_is_refused() {
    let mut session = archived();
    session.revoice(Voice::User);
    let Ok(Prepared::Send(_)) = session.prepare(None) else { panic!("it fits") };
    assert_eq!(session.audit(), []);
    let body = |session: &Session, api| Request::of(&session.outgoing()).encode(api).body.to_string();
    let chat: Value = serde_json::from_str(&body(&session, Api::Chat)).unwrap();
    let messages = chat["messages"].as_array().unwrap();
    assert_eq!(messages.iter().filter(|message| message["role"] == "system").count(), 1, "{chat:#}");
    assert!(messages[1]["role"] == "user" && messages[1].to_string().contains("Summary of "), "{chat:#}");
    for api in Api::ALL {
        assert_eq!(body(&reloaded(&session), api), body(&session, api), "{api:?}");
    }
}

// covers: A-ROLE
#[test]
fn a_summary_is_the_systems_word_in_every_format() {
    let session = archived();
    let messages = session.view().parts().iter().map(|part| part.message.clone()).collect();
    let request = Request::new(Default::default(), messages);
    let value = |api| serde_json::from_str::<Value>(&request.encode(api).body).unwrap();
    let says = |value: &Value| value.to_string().contains("Summary of ");
    let chat = value(Api::Chat);
    let roles = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter().filter(|message| says(message));
        list.map(|message| message["role"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert!(
        roles(&chat["messages"]).iter().all(|role| role == "system") && says(&chat["messages"]),
        "{chat:#}"
    );
    let responses = value(Api::Responses);
    let input = roles(&responses["input"]);
    assert!(
        input.iter().all(|role| role == "developer" || role == "system") && says(&responses),
        "{responses:#}"
    );
    // In the system blocks, or a block that says that it is not the user's words.
    let anthropic = value(Api::Anthropic);
    assert!(
        says(&anthropic["system"]) || anthropic["messages"].to_string().contains("not the user"),
        "{anthropic:#}"
    );
}
