//! A session as static pages: no key is in any byte of them, and they answer what a server answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ground, TURNS, worked};
use longhaul::{Block, Json, Message, Models, Profile, Role, Session, Tokens};
use longhaul_inspector::export::{ExportError, Redaction, export};
use longhaul_store::{About, SessionId};
use serde_json::{Value, json};

const SECRETS: [&str; 7] = [
    "sk-ant-api03-0123456789abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "0123456789abcdefbearer",
    "hunter2hunter2",
    "customer-4711",
];

/// A session that says every secret wherever something can be said, and was compacted.
fn telling() -> Session {
    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(9_000));
    let all = format!(
        "{} {} {} {} Authorization: Bearer {} postgres://me:{}@db {}",
        SECRETS[0], SECRETS[1], SECRETS[2], SECRETS[3], SECRETS[4], SECRETS[5], SECRETS[6]
    );
    session.set_goal(all.as_str());
    session.pin("pin-1", all.as_str());
    session.set_rules("AGENTS.md", Some(&all));
    for turn in 0..16 {
        session.push(Message::user(format!(
            "Use {all} in src/file_{turn}.rs, and {}.",
            "more words ".repeat(40)
        )));
        session.prepare(None).unwrap();
        let arguments =
            json!({"path": format!("src/file_{turn}.rs"), "token": SECRETS[0], "note": all, SECRETS[6]: 1});
        let id = format!("call_{turn}");
        let call = Block::call(id.as_str(), "Write", Json::new(arguments.to_string()).unwrap());
        session.push(Message::new(
            Role::Assistant,
            vec![Block::thinking(all.as_str()), Block::text(all.as_str()), call],
        ));
        session.push(Message::result(id.as_str(), format!("{all}\n{}", common::lines(turn))));
        session.prepare(None).unwrap();
        session.push(Message::assistant(format!("Done with {all}.")));
    }
    session
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn no_key_and_nothing_that_is_named_is_in_any_file() {
    let ground = Ground::new();
    let about = About {
        project: format!("/home/{}", SECRETS[6]),
        title: Some(SECRETS[0].into()),
        ..About::default()
    };
    let session = telling();
    assert!(session.ledger().edits().any(|(_, active)| active));
    let id = ground.keep(&session, &about);
    let folder = ground.folder.path().join("pages");
    let redaction = Redaction::new(&["customer-[0-9]+".to_owned()]).unwrap();
    let exported = export(&ground.store, id, Profile::longhaul(), &redaction, &folder).unwrap();
    assert_eq!((exported.calls, exported.page.exists()), (32, true));
    let all = files(&folder);
    assert!(all.len() > 6);
    for file in &all {
        let bytes = fs::read(file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in SECRETS {
            // Not even the beginning of one that was cut in two.
            let start = &secret[..secret.len() - 4];
            assert!(!text.contains(start), "{start} is in {}", file.display());
        }
    }
    let bytes: u64 = all.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!(exported.bytes, bytes);
    // What is no secret is there.
    let data: String = all.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert!(data.contains("helper_15_59") && data.contains("src/file_3.rs") && data.contains("[redacted]"));
}

#[test]
fn a_pattern_that_takes_everything_is_said() {
    let ground = Ground::new();
    let id = ground.keep(&worked(2, |_| {}), &About::default());
    let folder = ground.folder.path().join("pages");
    let redaction = Redaction::new(&["(?s).+".to_owned()]).unwrap();
    let error = export(&ground.store, id, Profile::longhaul(), &redaction, &folder).unwrap_err();
    assert!(matches!(error, ExportError::Pattern(0)), "{error}");
    let none = Redaction::new(&[]).unwrap();
    let missing = export(&ground.store, SessionId::fresh(), Profile::longhaul(), &none, &folder);
    assert!(matches!(missing, Err(ExportError::Session(_))));
    assert!(!folder.exists());
}

/// JavaScript has one kind of number.
fn as_a_browser_writes(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64().filter(|number| number.fract() == 0.0) {
            Some(whole) => json!(whole as i64),
            None => Value::Number(number),
        },
        Value::Array(list) => list.into_iter().map(as_a_browser_writes).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, as_a_browser_writes(value))).collect()
        }
        other => other,
    }
}

/// The pages put answers together by themselves: they are those of the server.
#[test]
fn static_pages_answer_what_a_server_answers() {
    let Ok(node) = Command::new("node").arg("--version").output() else {
        println!("skipped: there is no node here, which runs the script of the pages");
        return;
    };
    assert!(node.status.success());
    let ground = Ground::new();
    let id =
        ground.keep(&worked(TURNS, |_| {}), &About { project: "tidewater é😀".into(), ..About::default() });
    let folder = ground.folder.path().join("pages");
    let none = Redaction::new(&[]).unwrap();
    export(&ground.store, id, Profile::longhaul(), &none, &folder).unwrap();
    let mut paths = vec![format!("api/session/{id}"), format!("api/session/{id}/find?q=HELPER_0_59")];
    paths.extend(
        ["helpers%20of", "src/file_2", "recall", "nowhere"].map(|q| format!("api/session/{id}/find?q={q}")),
    );
    paths.extend((1..=2 * TURNS).map(|call| format!("api/session/{id}/call/{call}")));
    paths.extend((0..3 * TURNS).map(|at| format!("api/session/{id}/message/{at}")));
    paths.extend((0..6).map(|k| format!("api/session/{id}/call/{}/part/{k}", 2 * TURNS)));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export.mjs");
    let output =
        Command::new("node").arg(script).arg(&folder).arg(json!(paths).to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let served = ground.serve();
    for (path, mut exported) in paths.iter().zip(answers) {
        let mut own = served.json(path);
        if path.contains("/part/") {
            // Handles are for `recall`, which static pages have not.
            own["recall"] = json!([]);
            // Static pages add up messages that were rounded one by one.
            for answer in [&mut own, &mut exported] {
                answer["original"].as_object_mut().map(|original| original.remove("tokens"));
            }
        }
        assert_eq!(exported, as_a_browser_writes(own), "{path}");
    }
}
