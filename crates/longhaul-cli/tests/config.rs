//! Settings: layers, origins, and what is said of a bad one.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;

/// The command in a folder that is home and project at once.
fn longhaul(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    command.current_dir(folder.join("project/deep")).env_clear().env("HOME", folder.join("home")).args(args);
    command
}

fn folder(user: &str, project: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("home/.config/longhaul")).unwrap();
    fs::create_dir_all(folder.path().join("project/deep")).unwrap();
    fs::write(folder.path().join("home/.config/longhaul/config.toml"), user).unwrap();
    fs::write(folder.path().join("project/longhaul.toml"), project).unwrap();
    folder
}

fn shown(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

fn error(command: &mut Command) -> String {
    String::from_utf8(command.assert().code(2).get_output().stderr.clone()).unwrap()
}

// covers: M-CONF
#[test]
fn the_later_layer_wins_and_says_so() {
    let folder = folder(
        "window = 128_000\n\n[profiles.longhaul]\ntrigger = 80\nsummary = 25\n",
        "# of this project\nprofiles.longhaul.trigger = 70\n",
    );
    let all =
        shown(longhaul(folder.path(), &["config", "show"]).env("LONGHAUL_PROFILES_LONGHAUL_SUMMARY", "10"));
    let line = |name: &str| all.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("window = 128000").ends_with("config.toml, line 1"), "{all}");
    assert!(line("trigger = 70").ends_with("longhaul.toml, line 2"), "{all}");
    assert!(line("summary = 10").ends_with("# LONGHAUL_PROFILES_LONGHAUL_SUMMARY"), "{all}");
    assert!(line("target = 60").ends_with("# built in"), "{all}");
    // Flags go by them, and win over them.
    let help = shown(&mut longhaul(folder.path(), &["replay", "--help"]));
    assert!(help.contains("[default: 128000]"), "{help}");
    let json = shown(&mut longhaul(folder.path(), &["config", "show", "--json"]));
    assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn settings_change_what_a_command_does() {
    let folder = folder("", "[profiles.longhaul]\nkeep_recent = 60\n");
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/session.jsonl.gz");
    let replay = |command: &mut Command| {
        let line = shown(command);
        serde_json::from_str::<serde_json::Value>(&line).unwrap()["cost_sent"].as_f64().unwrap()
    };
    let args = ["replay", session.to_str().unwrap(), "--window", "32000", "--json"];
    let kept = replay(&mut longhaul(folder.path(), &args));
    let usual = replay(longhaul(folder.path(), &args).env("LONGHAUL_PROFILES_LONGHAUL_KEEP_RECENT", "15"));
    assert!((kept - usual).abs() > 1.0, "{kept} {usual}");
}

#[test]
fn a_bad_setting_is_said_with_its_place() {
    let says = |user: &str, project: &str, expected: &str| {
        let folder = folder(user, project);
        let said = error(&mut longhaul(folder.path(), &["config", "show"]));
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
        // A command that does not go by settings goes on.
        longhaul(folder.path(), &["completions", "bash"]).assert().success();
    };
    says("\nwindo = 5\n", "", "config.toml: line 2: there is no setting `windo`; is `window` meant?");
    says("window = 5\n", "", "line 1: `window` is \"5\", not a whole number from 1000 to 100000000");
    says(
        "",
        "[profiles.longhaul]\ntriger = 5\n",
        "longhaul.toml: line 2: there is no setting `profiles.longhaul.triger`; is `profiles.longhaul.trigger` meant?",
    );
    says("window = 0x10\n", "", "line 1: `window` is \"16\", not a whole number");
    says("window = -5\n", "", "line 1: `window` is \"-5\", not a whole number");
    says("window = 1.5\n", "", "line 1: `window` is \"1.5\", not a whole number");
    says("window = [1]\n", "", "line 1: `window` has a value of a kind that no setting has");
    says("window = \n", "", "config.toml: line 1: ");
    says("profile = \"minni\"\n", "", "`profile` is \"minni\"; there is no such profile, is \"mini\" meant?");
    says("[profiles.longhaul]\ntarget = 99\n", "", "`profiles.longhaul.target` is 99 (");
    let folder = folder("", "");
    let said = error(longhaul(folder.path(), &["config", "show"]).env("LONGHAUL_WINDOE", "5"));
    assert!(said.contains("LONGHAUL_WINDOE: there is no such setting; is LONGHAUL_WINDOW meant?"), "{said}");
    let said =
        error(longhaul(folder.path(), &["config", "show"]).env("LONGHAUL_CONFIG", "/nonexistent/x.toml"));
    assert!(said.contains("LONGHAUL_CONFIG names this file, which is not there"), "{said}");
}

// covers: T-CONF A-CONF P-CONF M-CONF
#[test]
fn the_constants_of_the_seeds_are_settings() {
    let folder = folder("", "");
    let all = shown(&mut longhaul(folder.path(), &["config", "show", "--json"]));
    let value = |key: &str| {
        let lines = all.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let mut found =
            lines.filter(|line| line["key"] == key).map(|line| line["value"].as_str().unwrap().to_owned());
        found.next().unwrap_or_else(|| panic!("no {key}"))
    };
    for (key, want) in [
        ("mini.trigger", "80"),
        ("mini.entry_characters", "8000"),
        ("transform.keep_recent_tool_results", "6"),
        ("transform.keep_recent_thinking", "1"),
        ("transform.trigger", "75"),
        ("transform.keep_recent_messages", "20"),
        ("transform.summary_head_lines", "3"),
        ("transform.summary_tail_lines", "2"),
        ("archive.trigger", "80"),
        ("archive.min_retain_rounds", "10"),
        ("archive.summary_timeout", "120"),
        ("archive.summary_model", ""),
        ("progressive.sliding_window_size", "9"),
        ("progressive.importance_score_threshold", "3.0"),
        ("progressive.incremental_summary_chunk_size", "20"),
        ("progressive.conversation_turn_threshold", "200"),
    ] {
        assert_eq!(value(&format!("profiles.{key}")), want, "{key}");
    }
    let changed = shown(
        longhaul(folder.path(), &["config", "show"])
            .env("LONGHAUL_PROFILES_PROGRESSIVE_IMPORTANCE_SCORE_THRESHOLD", "4.5"),
    );
    assert!(changed.contains("importance_score_threshold = 4.5"), "{changed}");
}

#[test]
fn a_profile_of_ones_own_has_a_base_and_what_differs() {
    let own = "profile = \"mine\"\n\n[profiles.mine]\nbase = \"archive\"\ntrigger = 65\nladder = [\"archive-rounds\", \"old-results\"]\nrunning = \"full\"\n\n[tools]\nmy_reader = \"read\"\n";
    let folder = folder("", own);
    // What is shown can be read again.
    let again = self::folder("", &shown(&mut longhaul(folder.path(), &["config", "show"])));
    let shown_again = shown(&mut longhaul(again.path(), &["config", "show"]));
    assert!(
        shown_again.contains("base = \"archive\"") && shown_again.contains("my_reader = \"read\""),
        "{shown_again}"
    );
    let explained = shown(&mut longhaul(folder.path(), &["profiles", "mine"]));
    assert!(
        explained.contains("from 65 % of the window") && explained.contains("old-results"),
        "{explained}"
    );
    assert!(explained.contains("of running ones:   full"), "{explained}");
    let listed = shown(&mut longhaul(folder.path(), &["profiles", "--json"]));
    assert_eq!(listed.lines().count(), 8, "{listed}");
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/session.jsonl.gz");
    let replayed = shown(&mut longhaul(
        folder.path(),
        &["replay", session.to_str().unwrap(), "--window", "32000", "--json"],
    ));
    assert!(replayed.contains("\"profile\":\"mine\"") && replayed.contains("\"violations\":0"), "{replayed}");
    for (text, expected) in [
        (
            "[profiles.mine]\ntrigger = 60\n",
            "line 2: there is no profile \"mine\"; is \"mini\" meant? A new one needs a `base`",
        ),
        (
            "[profiles.mine]\nbase = \"archiv\"\n",
            "line 2: `profiles.mine.base` is \"archiv\"; there is no such built-in profile, is \"archive\" meant?",
        ),
        ("[profiles.mini]\nbase = \"archive\"\n", "\"mini\" is built in and has no base"),
        (
            "[profiles.mine]\nbase = \"mini\"\nladder = [\"old-result\"]\n",
            "names \"old-result\"; there is no such strategy, is \"old-results\" meant?",
        ),
        ("[profiles.mini]\nrunning = \"handoff\"\n", "there is no such template, is \"hand_off\" meant?"),
        ("[profiles.mini]\nsummariser = \"me\"\n", "is \"me\", not one of extractor, model"),
        ("[tools]\nmy_reader = \"reader\"\n", "line 2: `tools.my_reader` is \"reader\", not one of ls, glob"),
    ] {
        let folder = self::folder("", text);
        let said = error(&mut longhaul(folder.path(), &["config", "show"]));
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn every_profile_is_explained() {
    let folder = folder("", "");
    let listed = shown(&mut longhaul(folder.path(), &["profiles"]));
    for name in ["longhaul", "thrifty", "safe", "mini", "transform", "archive", "progressive"] {
        assert!(listed.contains(&format!("\n{name}")) || listed.starts_with(name), "{listed}");
        let explained = shown(&mut longhaul(folder.path(), &["profiles", name]));
        assert!(
            explained.lines().chain(listed.lines()).all(|line| line.chars().count() <= 80),
            "{explained}"
        );
        insta::assert_snapshot!(format!("profile_{name}"), explained);
    }
    let said = error(&mut longhaul(folder.path(), &["profiles", "nobody"]));
    assert!(
        said.contains("there is no profile \"nobody\"; there is longhaul, thrifty, safe, mini"),
        "{said}"
    );
}

#[test]
fn a_models_name_is_explained() {
    let folder = folder("", "");
    for (snapshot, name) in [
        ("opus_of_bedrock", "us.anthropic.claude-opus-5-5-20260801-v1:0"),
        ("newer_sonnet", "anthropic/claude-sonnet-5.7"),
        ("gpt", "gpt-5.5"),
        ("without_price", "llama-3-8b"),
        ("without_row", "gtp-5.5"),
    ] {
        let explained = shown(&mut longhaul(folder.path(), &["config", "models", name]));
        assert!(explained.lines().all(|line| line.chars().count() <= 80), "{explained}");
        insta::assert_snapshot!(format!("models_{snapshot}"), explained);
        let json = shown(&mut longhaul(folder.path(), &["config", "models", name, "--json"]));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["asked"], name);
        assert_eq!(json["matched_by"].is_null(), snapshot == "without_row", "{json}");
        assert_eq!(json["price"].is_null(), snapshot.starts_with("without"), "{json}");
    }
    let json = shown(&mut longhaul(folder.path(), &["config", "models", "claude-opus-6", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["matched_by"]["floor"], "claude-opus 5.5");
    assert_eq!((&json["binds"], &json["thinking_off"]), (&true.into(), &"never".into()));
    assert_eq!(json["price"]["cache_read"], 0.2);
    insta::assert_snapshot!(shown(&mut longhaul(folder.path(), &["config", "models", "--help"])));
}

#[test]
fn all_models_are_listed() {
    let folder = folder("", "");
    let listed = shown(&mut longhaul(folder.path(), &["config", "models"]));
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    let (rows, _) = listed.split_once("\n\n").unwrap();
    let json = shown(&mut longhaul(folder.path(), &["config", "models", "--json"]));
    assert_eq!(rows.lines().count(), 1 + json.lines().count());
    for (row, line) in rows.lines().skip(1).zip(json.lines()) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(row.split(' ').next(), line["name"].as_str());
        assert_eq!(row.ends_with("binds"), line["binds"] == true, "{row}");
    }
}
