//! What each profile sends of a small session, in the three wire formats.

#![allow(clippy::unwrap_used, clippy::panic)]

use longhaul::{
    Block, Cursor, Entry, Json, Message, Meter, Models, Prepared, Profile, Role, Session, Tokens, Voice,
};
use longhaul_wire::api::{Api, Relay, Request};
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
            if api == Api::Anthropic && session.profile().voice == Voice::User {
                assert_eq!(body(&old), body(&session), "{name}");
            } else if api == Api::Anthropic {
                // Facts and quotes were one text.
                assert!(body(&old).contains(FRAME), "{name}");
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

/// A message, or its content, of the turn of this number.
type OfNumber<'a> = &'a dyn Fn(usize) -> Value;

/// A client's conversation over Chat, in which a person says these things, and results have this content.
fn chat_of(people: [Value; 8], result: OfNumber<'_>) -> Value {
    let mut messages = vec![serde_json::json!({"role": "system", "content": "Be brief."})];
    for (n, said) in people.into_iter().enumerate() {
        let call = serde_json::json!({"id": format!("c{n}"), "type": "function",
            "function": {"name": "Read", "arguments": format!("{{\"path\":\"src/f{n}.rs\"}}")}});
        messages.push(said);
        messages.push(serde_json::json!({"role": "assistant", "content": "I look.", "tool_calls": [call]}));
        messages
            .push(serde_json::json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": result(n)}));
        messages.push(serde_json::json!({"role": "assistant", "content": format!("Read file {n}.")}));
    }
    messages.push(serde_json::json!({"role": "user", "content": "And ESCAPED now?", "name": "anna"}));
    serde_json::json!({"model": "gpt-4o", "messages": messages})
}

/// A text of ours stands in one message with its neighbours: their own bytes stay, roles alternate, and marks of the
/// client stand where they stood.
#[test]
fn a_summary_joins_the_messages_next_to_it_over_chat() {
    let mark = serde_json::json!({"type": "ephemeral"});
    let text = |n: usize| serde_json::json!({"role": "user", "content": format!("Look at part {n}, \u{1f600} \"quoted\".")});
    let part = |n: usize| serde_json::json!({"role": "user", "content": [{"type": "text", "text": format!("Look at part {n}."), "cache_control": mark}]});
    let long = |n: usize| Value::from(format!("line of file {n}\n").repeat(60));
    let parts =
        |n: usize| serde_json::json!([{"type": "text", "text": format!("line of file {n}\n").repeat(60)}]);
    let kinds: [(OfNumber<'_>, OfNumber<'_>); 3] = [(&text, &long), (&part, &long), (&text, &parts)];
    for (said, result) in kinds {
        let body = chat_of(std::array::from_fn(said), result).to_string().replace("ESCAPED", r"\u00e9");
        let mut relay = Relay::new(Api::Chat);
        let request = relay.read(body.clone()).unwrap();
        let model = Models::builtin().find("gpt-4o").clone();
        let mut session =
            Session::new(Profile::longhaul(), model).with_window(Tokens(1_600)).with_meter(Meter::neutral());
        session.set_frame(request.frame().clone());
        request.messages().iter().for_each(|message| _ = session.push(message.clone()));
        let Ok(Prepared::Send(_)) = session.prepare(None) else { panic!("it fits") };
        session.pin("branch", "Never touch the branch.");
        let Ok(Prepared::Send(_)) = session.prepare(None) else { panic!("it fits") };
        let sent = relay.write(&request.sending(&session.outgoing())).body.to_string();
        let value: Value = serde_json::from_str(&sent).unwrap();
        let messages = value["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert!(
            sent.contains("<summary-of-earlier-messages note=\\\"not the user's words\\\">"),
            "{value:#}"
        );
        assert_eq!(roles.iter().filter(|role| **role == "system").count(), 1, "{roles:?}");
        let people = roles.iter().filter(|role| **role != "tool" && **role != "system");
        let people: Vec<&&str> = people.collect();
        assert!(people.windows(2).all(|pair| pair != [&"user", &"user"]), "{roles:?}");
        // The last message of the person keeps its fields and its text, escaped as it came; the pin is behind it.
        let last = messages.last().unwrap();
        assert_eq!((&last["role"], &last["name"]), (&"user".into(), &"anna".into()));
        let from = sent.find(r"\u00e9").unwrap_or_else(|| panic!("{sent}"));
        assert!(sent[from..].contains("Never touch the branch."), "{last:#}");
        // It is a request of that API, and is written again the same.
        assert!(Request::decode(Api::Chat, sent.clone()).is_ok());
        assert_eq!(
            sent,
            relay.write(&relay.read(body).unwrap().sending(&session.outgoing())).body.to_string()
        );
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
    // The first summary; one further down stands among messages, where a system message may not.
    let roles = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter().filter(|message| says(message));
        list.map(|message| message["role"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert!(
        roles(&chat["messages"]).first().is_some_and(|role| role == "system") && says(&chat["messages"]),
        "{chat:#}"
    );
    let responses = value(Api::Responses);
    let input = roles(&responses["input"]);
    assert!(
        input.first().is_some_and(|role| role == "developer" || role == "system") && says(&responses),
        "{responses:#}"
    );
    // In the system blocks, or a block that says that it is not the user's words.
    let anthropic = value(Api::Anthropic);
    assert!(
        says(&anthropic["system"]) || anthropic["messages"].to_string().contains("not the user"),
        "{anthropic:#}"
    );
}
