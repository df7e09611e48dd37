//! `longhaul sessions` as a user runs it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user's folder, with a store in it as soon as something is imported.
struct User(TempDir);

impl User {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With a session of forty reads, compacted in a small window.
    fn with_session() -> (Self, String) {
        let user = Self::new();
        let file = user.file("long.jsonl", &transcript("alpha", 40));
        let line = user.json(&["import", &file, "--window", "8000", "--project", "/src/tidewater"]);
        let id = line[0]["session"].as_str().unwrap().to_owned();
        (user, id)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn store(&self) -> PathBuf {
        self.path().join("data/longhaul/sessions.db")
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("longhaul").unwrap();
        command.env_clear().env("HOME", self.path()).env("XDG_DATA_HOME", self.path().join("data"));
        command.current_dir(self.path()).args(args);
        command
    }

    fn bytes(&self, args: &[&str]) -> Vec<u8> {
        let all = [&["sessions"], args].concat();
        self.command(&all).assert().success().get_output().stdout.clone()
    }

    fn text(&self, args: &[&str]) -> String {
        String::from_utf8(self.bytes(args)).unwrap()
    }

    /// What is printed for scripts.
    fn json(&self, args: &[&str]) -> Vec<Value> {
        let text = self.text(&[args, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The one line on stderr.
    fn error(&self, args: &[&str], code: i32) -> String {
        let all = [&["sessions"], args].concat();
        let output = self.command(&all).assert().code(code).get_output().clone();
        assert!(output.stdout.is_empty(), "{:?}", output.stdout);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }
}

/// A session in which files are read, one after the other.
fn transcript(word: &str, reads: usize) -> String {
    let mut lines = vec![json!({"role": "user", "content": format!("Read all about {word}.")}).to_string()];
    for n in 0..reads {
        let call = json!({"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("src/{word}_{n}.rs")}});
        lines.push(json!({"role": "assistant", "content": [call], "model": "gpt-4o"}).to_string());
        lines.push(json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": body(word, n)}]}).to_string());
    }
    lines.push(
        json!({"role": "assistant", "content": format!("The {word} quuxbar is odd."), "model": "gpt-4o"})
            .to_string(),
    );
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn body(word: &str, n: usize) -> String {
    (0..60).map(|line| format!("fn {word}_{n}_{line}() {{}}\n")).collect()
}

#[test]
fn looking_makes_no_store() {
    let user = User::new();
    let said = user.text(&["list"]);
    assert!(said.starts_with("There are no sessions yet in ") && said.contains("sessions.db"), "{said}");
    assert!(user.json(&["list"]).is_empty());
    for args in [
        vec!["show", "last"],
        vec!["search", "x"],
        vec!["pin", "last", "x"],
        vec!["undo", "last"],
        vec!["redo", "last"],
        vec!["recall", "last", "abcd"],
        vec!["fork", "last"],
        vec!["export", "last"],
        vec!["delete", "last", "--yes"],
    ] {
        assert!(user.error(&args, 2).contains("there is no store here yet"), "{args:?}");
    }
    assert!(user.error(&["import", "missing.jsonl"], 2).contains("missing.jsonl"));
    let nothing = user.file("nothing.jsonl", "no transcript\n");
    let all = ["sessions", "import", &nothing];
    user.command(&all).assert().code(2);
    assert!(!user.store().exists());
}

#[test]
fn sessions_are_listed_newest_first_in_eighty_columns() {
    let (user, first) = User::with_session();
    let file = user.file("other.jsonl", &transcript("beta", 2));
    let second = user.json(&["import", &file, "--agent", "pi", "--project", "harbour"]);
    let second = second[0]["session"].as_str().unwrap();
    let listed = user.json(&["list"]);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&json!(second), &json!(first)));
    let fields: Vec<&String> = listed[1].as_object().unwrap().keys().collect();
    let all = "id parent title agent project model created updated entries messages calls bytes";
    assert_eq!(fields, all.split(' ').collect::<Vec<_>>());
    assert_eq!(listed[1]["title"], "Read all about alpha.");
    assert_eq!((&listed[1]["messages"], &listed[1]["calls"]), (&json!(82), &json!(41)));
    assert_eq!((&listed[1]["model"], &listed[1]["agent"]), (&json!("gpt-4o"), &json!("longhaul")));
    assert!(listed[1]["updated"].as_str().unwrap().ends_with('Z'));

    let table = user.text(&["list"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.lines().next().unwrap().starts_with("session"), "{table}");
    assert!(table.contains("tidewater") && !table.contains("/src/"), "{table}");
    // What stands there names the session.
    let short = table.lines().nth(2).unwrap().split_whitespace().next().unwrap();
    assert_eq!(user.json(&["show", short])[0]["id"], json!(first));

    let ids = |args: &[&str]| -> Vec<Value> {
        user.json(&[&["list"], args].concat()).iter().map(|line| line["id"].clone()).collect()
    };
    assert_eq!(ids(&["--agent", "pi"]), [json!(second)]);
    assert_eq!(ids(&["--project", "/src/tidewater"]), [json!(first)]);
    assert_eq!(ids(&["--limit", "1"]), [json!(second)]);
    assert_eq!(ids(&["--since", "1h"]).len(), 2);
    assert_eq!(ids(&["--since", "2999-01-01"]).len(), 0);
    assert!(user.text(&["list", "--agent", "nobody"]).starts_with("No session in "));
    assert!(
        String::from_utf8(
            user.command(&["sessions", "list", "--since", "yesterday"])
                .assert()
                .code(2)
                .get_output()
                .stderr
                .clone()
        )
        .unwrap()
        .contains("7d")
    );
}

#[test]
fn what_is_stored_already_is_not_stored_again() {
    let user = User::new();
    let import = |more: &[&str]| {
        let line = user.json(&[&["import", "alpha.jsonl"], more].concat()).remove(0);
        (line["session"].as_str().unwrap().to_owned(), line["new"].as_bool().unwrap())
    };
    user.file("alpha.jsonl", &transcript("alpha", 3));
    let (first, is_new) = import(&[]);
    assert!(is_new);
    assert_eq!(import(&[]), (first.clone(), false));
    assert!(user.text(&["import", "alpha.jsonl"]).contains("is there already"));
    // What was deleted is stored again.
    user.text(&["delete", &first, "--yes"]);
    assert_eq!(import(&[]), (first, true));
    // Taken in another way, or grown, it is another session; and somebody may insist.
    assert!(import(&["--window", "9000"]).1 && import(&["--again"]).1);
    user.file("alpha.jsonl", &transcript("alpha", 4));
    assert!(import(&[]).1);
    assert_eq!(user.json(&["list"]).len(), 4);
}

#[test]
fn a_session_is_named_by_its_start_or_as_the_last() {
    let (user, first) = User::with_session();
    let file = user.file("other.jsonl", &transcript("beta", 2));
    // Ids of sessions that are stored once more have the time in them, and begin alike.
    let again = || user.json(&["import", &file, "--again"])[0]["session"].as_str().unwrap().to_owned();
    let (third, second) = (again(), again());
    let shown = |name: &str| user.json(&["show", name])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        [shown("last"), shown(&first), shown(&first.to_uppercase())],
        [second.clone(), first.clone(), first.clone()]
    );
    let ambiguous = user.error(&["show", &second[..4]], 2);
    assert!(
        ambiguous.contains("names 2 sessions") && ambiguous.contains(&third) && ambiguous.contains(&second)
    );
    assert!(user.error(&["show", &first[..3]], 2).contains("too short"));
    assert!(user.error(&["show", "ffff"], 2).contains("starts with \"ffff\""));
    assert!(user.error(&["show", "alpha"], 2).contains("is no session"));
    assert!(user.error(&["show", "00000000-0000-7000-8000-000000000000"], 2).contains("there is no session"));
}

#[test]
fn what_was_said_is_found() {
    let (user, id) = User::with_session();
    let hits = user.json(&["search", "quuxbar", "odd"]);
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0]["session"], json!(id));
    assert!(hits[0]["entry"].as_u64().unwrap() > 80);
    let (snippet, found) = (hits[0]["snippet"].as_str().unwrap(), hits[0]["found"].as_array().unwrap());
    let word = |at: usize| {
        let place = |end: usize| found[at][end].as_u64().unwrap() as usize;
        &snippet[place(0)..place(1)]
    };
    assert_eq!((word(0), word(1)), ("quuxbar", "odd"));
    let text = user.text(&["search", "quuxbar"]);
    assert!(
        text.starts_with(&id[..8]) && text.contains("entry ") && text.contains("The alpha quuxbar is odd."),
        "{text}"
    );
    // Colour is for terminals.
    assert!(!text.contains('\u{1b}'));
    let mut colours = user.command(&["sessions", "search", "quuxbar"]);
    let colours = colours.env("CLICOLOR_FORCE", "1").assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(colours).unwrap().contains("\u{1b}[1mquuxbar\u{1b}[0m"));
    assert!(user.text(&["search", "nowhere"]).starts_with("Nothing was found in "));
    assert!(user.json(&["search", "quuxbar", "--agent", "nobody"]).is_empty());
}

#[test]
fn a_session_is_shown_with_what_its_next_request_is_made_of() {
    let (user, id) = User::with_session();
    user.text(&["pin", &id, "Never touch the migrations."]);
    let text = user.text(&["show", &id]);
    for words in [
        &id,
        "model gpt-4o",
        "window of 8,000",
        "Goal  Read all about alpha.",
        "   1  Never touch the migrations.",
        "└ fold ",
        "recall ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json = &user.json(&["show", &id])[0];
    assert_eq!(json["pins"][0]["text"], "Never touch the migrations.");
    assert!(json["tokens"].as_u64() < json["full_tokens"].as_u64());
    let edits = json["edits"].as_array().unwrap();
    assert!(edits.iter().any(|edit| edit["kind"] == "fold" && edit["saved"].as_u64() > Some(0)), "{edits:?}");

    let messages = user.text(&["show", &id, "--messages"]);
    assert!(messages.starts_with("0 user\nRead all about alpha.\n"), "{messages}");
    assert!(
        messages.contains("(calls Read c0) {\"path\":\"src/alpha_0.rs\"}")
            && messages.contains("fn alpha_39_59() {}")
    );
    assert_eq!(user.json(&["show", &id, "--messages"]).len(), 82);
    let view = user.text(&["show", &id, "--view"]);
    assert!(
        view.contains("⟦Summary of ")
            && view.contains("Never touch the migrations.")
            && view.len() < messages.len()
    );
    let sent = user.json(&["show", &id, "--view"]);
    assert!(sent.iter().any(|message| message["role"] == "summary"), "{sent:?}");
}

#[test]
fn pins_are_made_listed_and_removed() {
    let (user, id) = User::with_session();
    assert!(user.text(&["pin", &id]).starts_with("Nothing is pinned in "));
    let said = user.text(&["pin", &id, "Never", "touch it."]);
    assert!(
        said.starts_with("Pinned pin-1 of ") && said.contains(" more; the provider's cache stays of use."),
        "{said}"
    );
    let second = &user.json(&["pin", &id, "Use tabs."])[0];
    assert_eq!((&second["pinned"], &second["billed_again"]), (&json!("pin-2"), &json!(0)));
    assert!(second["tokens_after"].as_u64() > second["tokens_before"].as_u64());
    let pins = user.json(&["pin", &id]);
    assert_eq!(
        pins,
        [
            json!({"number": 1, "name": "pin-1", "text": "Never touch it."}),
            json!({"number": 2, "name": "pin-2", "text": "Use tabs."})
        ]
    );
    assert!(user.error(&["pin", &id, "Use tabs."], 2).contains("pinned already, as number 2"));
    assert!(user.error(&["pin", &id, "--remove", "3"], 2).contains("numbers up to 2"));
    assert!(user.error(&["pin", &id, " "], 2).contains("nothing to pin"));
    assert_eq!(user.json(&["pin", &id, "--remove", "1"])[0]["removed"], "pin-1");
    assert_eq!(user.text(&["pin", &id]), "   1  Use tabs.\n");
    // A name that is free again is used again.
    assert_eq!(user.json(&["pin", &id, "Third."])[0]["pinned"], "pin-1");
}

#[test]
fn edits_are_undone_and_redone() {
    let (user, id) = User::with_session();
    let view = || user.text(&["show", &id, "--view"]);
    let edits = || user.json(&["show", &id])[0]["edits"].as_array().unwrap().clone();
    let (before, newest) = (view(), edits().len() - 1);
    let undone = &user.json(&["undo", &id])[0];
    assert_eq!(undone["undone"], json!([newest]));
    let tokens = |line: &Value, name: &str| line[name].as_u64().unwrap();
    assert!(
        tokens(undone, "tokens_after") > tokens(undone, "tokens_before")
            && tokens(undone, "billed_again") > 0
    );
    assert_ne!(view(), before);
    assert_eq!(edits()[newest]["active"], false);
    assert!(user.text(&["show", &id]).contains("undone: "));
    assert!(user.error(&["undo", &id, &newest.to_string()], 2).contains("undone already"));

    let again = user.text(&["redo", &id]);
    assert!(again.starts_with("Made again: ") && again.contains("fewer"), "{again}");
    assert_eq!(view(), before);
    assert!(user.error(&["redo", &id], 2).contains("no edit that can be made again"));
    assert!(user.error(&["undo", &id, "9999"], 2).contains("there is no edit 9999"));

    // Everything can be taken back; then the view is the log.
    while user.command(&["sessions", "undo", &id]).output().unwrap().status.success() {}
    assert!(user.error(&["undo", &id], 2).contains("no edit that can be taken back"));
    let json = &user.json(&["show", &id])[0];
    assert_eq!(json["tokens"], json["full_tokens"]);
    assert!(user.text(&["show", &id]).contains("it is compacted before it is sent"));
}

#[test]
fn what_was_taken_out_is_recalled_to_the_byte() {
    let (user, id) = User::with_session();
    let listed = user.json(&["recall", &id, "--list"]);
    assert!(!listed.is_empty());
    assert!(user.text(&["recall", &id, "--list"]).contains("  fold "));
    // A first result that a fold took out: as it was said.
    let whole: Vec<String> =
        listed.iter().map(|line| user.text(&["recall", &id, line["handle"].as_str().unwrap()])).collect();
    let at = whole.iter().position(|text| text.contains(&body("alpha", 3))).unwrap();
    let handle = &listed[at]["handle"].as_str().unwrap()[..12];
    assert_eq!(user.text(&["recall", &id, handle]), whole[at]);
    let lines: Vec<&str> = whole[at].lines().collect();
    assert_eq!(user.text(&["recall", &id, handle, "--lines", "2-4"]), lines[1..4].join("\n"));
    assert_eq!(user.text(&["recall", &id, handle, "--lines", "3"]), lines[2]);
    let found = user.text(&["recall", &id, handle, "--grep", r"alpha_3_7\("]);
    assert!(found.ends_with(":fn alpha_3_7() {}") && found.lines().count() == 1, "{found}");
    assert_eq!(user.json(&["recall", &id, handle])[0]["text"], json!(whole[at]));
    assert!(user.error(&["recall", &id, "0123456789ab"], 2).contains("--list"));
    assert!(user.error(&["recall", &id, "not hex"], 2).contains("\"not hex\""));
    assert!(user.error(&["recall", &id, handle, "--grep", "("], 2).contains("pattern"));
    user.command(&["sessions", "recall", &id, handle, "--lines", "4-2"]).assert().code(2);
    user.command(&["sessions", "recall", &id]).assert().code(2);
}

#[test]
fn a_fork_shares_the_beginning() {
    let (user, id) = User::with_session();
    let fork = user.text(&["fork", &id, "--at", "21"]);
    let fork = fork.trim_end();
    let json = &user.json(&["show", fork])[0];
    assert_eq!((&json["messages"], &json["parent"]), (&json!(21), &json!(id)));
    assert_eq!(user.json(&["show", &id])[0]["messages"], 82);
    let whole = &user.json(&["fork", &id])[0];
    assert_eq!((&whole["messages"], &whole["parent"]), (&json!(82), &json!(id)));
    let name = whole["session"].as_str().unwrap();
    assert_eq!(user.text(&["show", name, "--view"]), user.text(&["show", &id, "--view"]));
    assert!(user.error(&["fork", &id, "--at", "83"], 2).contains("has 82 messages"));
}

#[test]
fn an_export_is_replayed_and_a_journal_is_the_same_session() {
    let (user, id) = User::with_session();
    let out = user.path().join("out.jsonl");
    let name = out.to_str().unwrap();
    user.text(&["export", &id, "-o", name]);
    assert_eq!(fs::read(&out).unwrap(), user.bytes(&["export", &id]));
    assert!(user.error(&["export", &id, "-o", name], 2).contains("--force"));
    user.text(&["export", &id, "-o", name, "--force"]);
    let replayed = user.command(&["replay", name, "--json"]).assert().success().get_output().stdout.clone();
    let replayed: Value = serde_json::from_slice(&replayed).unwrap();
    assert_eq!((&replayed["calls"], &replayed["violations"]), (&json!(41), &json!(0)));
    assert!(user.error(&["export", &id, "-o", "missing/out.jsonl"], 2).contains("missing/out.jsonl"));
    assert_eq!(
        fs::read_dir(user.path())
            .unwrap()
            .filter(|file| { file.as_ref().unwrap().file_name().to_string_lossy().contains("partial") })
            .count(),
        0
    );

    user.text(&["undo", &id]);
    user.text(&["pin", &id, "Keep this."]);
    let journal = user.path().join("session.journal");
    user.text(&["export", &id, "--journal", "-o", journal.to_str().unwrap()]);
    let second = user.json(&["import", journal.to_str().unwrap()])[0]["session"].as_str().unwrap().to_owned();
    assert_eq!(user.text(&["show", &second, "--view"]), user.text(&["show", &id, "--view"]));
    assert_eq!(user.bytes(&["export", &second, "--journal"]), fs::read(&journal).unwrap());
    assert_eq!(user.json(&["show", &second])[0]["edits"], user.json(&["show", &id])[0]["edits"]);

    let broken = user.file("broken.journal", "{\"began\":{\"version\":999}}\n");
    assert!(user.error(&["import", &broken], 2).contains("version 999"));
}

#[test]
fn deleting_needs_a_yes() {
    let (user, first) = User::with_session();
    let second = user.text(&["fork", &first]).trim_end().to_owned();
    assert!(user.error(&["delete", &first], 2).contains("--yes"));
    assert_eq!(user.json(&["list"]).len(), 2);
    // All names are looked at before the first goes.
    assert!(user.error(&["delete", &first, "ffff", "--yes"], 2).contains("ffff"));
    assert_eq!(user.json(&["list"]).len(), 2);
    assert!(user.text(&["delete", &second, &second, "--yes"]).starts_with("Deleted "));
    assert_eq!(user.json(&["delete", &first, "--yes"]), [json!({"deleted": first})]);
    assert!(user.json(&["list"]).is_empty());
    assert!(user.text(&["list"]).starts_with("There are no sessions yet in "));
    assert!(user.error(&["show", "last"], 2).contains("no sessions yet"));
}

#[test]
fn several_conversations_become_several_sessions() {
    let user = User::new();
    let says = |role: &str, text: &str| json!({"role": role, "content": text});
    // One conversation a line, as OpenHands writes them.
    let line = |word: &str| {
        json!({"instance_id": word, "history": [
        {"id": 0, "source": "user", "action": "message", "args": {"content": format!("Look for {word}.")}},
        {"id": 1, "source": "agent", "action": "message", "args": {"content": format!("{word} is here.")}}]})
    };
    let file = user.file("output.jsonl", &format!("{}\n{}\n", line("alpha"), line("beta")));
    let imported = user.json(&["import", &file]);
    assert_eq!(imported.len(), 2);
    assert!(imported[1]["transcript"].as_str().unwrap().ends_with("output.jsonl#1"));
    let own = user.file("own.jsonl", &format!("{}\n{}\n", says("user", "Hi."), says("assistant", "Ho.")));
    let both = user.json(&["import", &own, &own]);
    assert_eq!(both.len(), 2);
    assert_eq!((&both[0]["session"], &both[1]["new"]), (&both[1]["session"], &json!(false)));
    assert_eq!(user.json(&["list"]).len(), 3);
}

#[test]
fn the_store_is_where_somebody_says() {
    let (user, _) = User::with_session();
    let other = user.path().join("deep/other.db");
    let place = other.to_str().unwrap();
    let file = user.file("other.jsonl", &transcript("beta", 2));
    user.text(&["import", &file, "--store", place]);
    assert_eq!(user.json(&["list", "--store", place]).len(), 1);
    let listed = |command: &mut Command| {
        String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
    };
    let mut by_variable = user.command(&["sessions", "list", "--json"]);
    assert!(listed(by_variable.env("LONGHAUL_STORE", place)).contains("Read all about beta."));
    // A path in a file of settings is seen from that file.
    fs::write(user.path().join("longhaul.toml"), "store = \"deep/other.db\"\n").unwrap();
    let mut by_file = user.command(&["sessions", "list", "--json"]);
    assert!(listed(by_file.current_dir(user.path().join("deep"))).contains("Read all about beta."));
    let url = "postgres://me:hunter2@db.invalid/longhaul";
    for args in [["config", "show"].as_slice(), &["config", "show", "--json"]] {
        let shown = listed(user.command(args).env("LONGHAUL_STORE", url));
        assert!(shown.contains("postgres://me:[redacted]@db.invalid/longhaul") && !shown.contains("hunter2"));
    }
    let refused = user.error(&["list", "--store", "mysql://me:hunter2@db.invalid/x"], 2);
    assert!(refused.contains("mysql://me:[redacted]@db.invalid/x: no store of this kind"), "{refused}");
    let mut nowhere = user.command(&["sessions", "list"]);
    let nowhere = nowhere.env_clear().current_dir("/").assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(nowhere).unwrap().contains("--store"));
}

#[test]
fn what_is_no_store_is_said_and_left_alone() {
    let (user, id) = User::with_session();
    let text = user.file("notes.db", &"This is no database. ".repeat(200));
    assert!(user.error(&["list", "--store", &text], 2).contains("is not a database"));
    let file = user.file("other.jsonl", &transcript("beta", 2));
    assert!(user.error(&["import", &file, "--store", &text], 2).contains("is not a database"));
    assert!(fs::read_to_string(&text).unwrap().starts_with("This is no database."));
    assert!(!user.error(&["list", "--store", user.path().to_str().unwrap()], 1).is_empty());

    // Damaged in the middle: an error, or what is right.
    let mut bytes = fs::read(user.store()).unwrap();
    let middle = bytes.len() / 2;
    bytes[4_096..middle].fill(0xab);
    let damaged = user.path().join("damaged.db");
    fs::write(&damaged, bytes).unwrap();
    let all = ["sessions", "show", id.as_str(), "--store", damaged.to_str().unwrap()];
    let output = user.command(&all).assert().code(1).get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("damaged") && said.lines().count() == 1, "{said}");
}

#[test]
fn sessions_are_salvaged_from_a_damaged_file() {
    let (user, id) = User::with_session();
    let messages = user.json(&["show", &id])[0]["messages"].clone();
    // The last bit of one message is another one.
    let damaged = user.path().join("sessions.db.damaged-1");
    fs::rename(user.store(), &damaged).unwrap();
    let connection = rusqlite::Connection::open(&damaged).unwrap();
    connection.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    let (content, mut packed): (i64, Vec<u8>) = connection
        .query_row(
            "SELECT id, packed FROM content WHERE id = (SELECT max(content) FROM entry WHERE kind = 1)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    *packed.last_mut().unwrap() ^= 1;
    connection.execute("UPDATE content SET packed = ?2 WHERE id = ?1", (content, packed)).unwrap();
    drop(connection);
    let file = damaged.to_str().unwrap();
    user.error(&["show", &id, "--store", file], 1);
    let before = fs::read(&damaged).unwrap();

    assert!(user.error(&["salvage", "nowhere.db"], 2).contains("nowhere.db: there is no such file"));
    assert!(user.error(&["salvage", file, "--store", file], 2).contains("this is the store itself"));
    let said = user.text(&["salvage", file]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with(&id) && lines[0].contains(", 1 lost: Read all about alpha."), "{said}");
    assert!(
        lines[1].contains("; 1 entry cannot be read. ") && lines[1].ends_with("was not changed."),
        "{said}"
    );
    let again = user.json(&["salvage", file]);
    assert_eq!((&again[0]["session"], &again[0]["new"]), (&json!(id), &json!(false)));
    let shown = user.json(&["show", &id]);
    assert_eq!(shown[0]["messages"].as_u64().unwrap() + 1, messages.as_u64().unwrap());
    assert!(fs::read(&damaged).unwrap() == before, "the file was changed");
    let notes = user.file("notes.db", &"This is no database. ".repeat(200));
    assert!(user.error(&["salvage", &notes], 2).contains("is not a database"));
}

#[test]
fn help_has_examples() {
    let user = User::new();
    for what in [
        "list", "show", "search", "pin", "undo", "redo", "recall", "fork", "export", "delete", "import",
        "salvage",
    ] {
        let help = user.text(&[what, "--help"]);
        assert!(help.contains("--store") && (what == "list" || help.contains("Examples:")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
