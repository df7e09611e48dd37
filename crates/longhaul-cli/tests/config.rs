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
    assert!(line("target = 50").ends_with("# built in"), "{all}");
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
    says("[profiles.longhaul]\ntarget = 80\n", "", "`profiles.longhaul.target` is 80 (");
    let folder = folder("", "");
    let said = error(longhaul(folder.path(), &["config", "show"]).env("LONGHAUL_WINDOE", "5"));
    assert!(said.contains("LONGHAUL_WINDOE: there is no such setting; is LONGHAUL_WINDOW meant?"), "{said}");
    let said =
        error(longhaul(folder.path(), &["config", "show"]).env("LONGHAUL_CONFIG", "/nonexistent/x.toml"));
    assert!(said.contains("LONGHAUL_CONFIG names this file, which is not there"), "{said}");
}
