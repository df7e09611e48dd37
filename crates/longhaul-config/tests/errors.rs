//! What is said of settings that cannot be: one line with the place, the problem, and what may be
//! meant; and a variant that a program can act on.

#![allow(clippy::unwrap_used)]

use longhaul_config::{Config, ConfigError, Layers, NoSuchProfile, Origin, ValueError};

fn error(text: &str) -> ConfigError {
    Config::read(&Layers::default().file("longhaul.toml", text)).unwrap_err()
}

fn line(line: usize) -> Origin {
    Origin::File { path: "longhaul.toml".into(), line }
}

#[test]
fn a_name_that_nobody_knows() {
    let error = error("# one\n[profiles.longhaul]\ntriger = 5\n");
    assert_eq!(
        error.to_string(),
        "longhaul.toml: line 3: there is no setting `profiles.longhaul.triger`; is `profiles.longhaul.trigger` meant?"
    );
    assert!(matches!(error, ConfigError::NoSuchSetting { origin, nearest, .. }
        if origin == line(3) && nearest == "profiles.longhaul.trigger"));
}

#[test]
fn a_variable_that_nobody_knows() {
    let variables = [("LONGHAUL_WINDOE", "5"), ("LONGHAUL_ZZZ", "5")];
    let error = Config::read(&Layers::default().variables(variables)).unwrap_err();
    assert_eq!(error.to_string(), "LONGHAUL_WINDOE: there is no such setting; is LONGHAUL_WINDOW meant?");
    assert!(matches!(error, ConfigError::NoSuchVariable { .. }));
}

#[test]
fn a_flag_that_cannot_be() {
    let error = Config::read(&Layers::default().flag("windo", "5")).unwrap_err();
    assert_eq!(error.to_string(), "a flag: there is no setting `windo`; is `window` meant?");
    let error = Config::read(&Layers::default().flag("window", "5")).unwrap_err();
    assert_eq!(error.to_string(), "a flag: `window` is \"5\", not a whole number from 1000 to 100000000");
}

#[test]
fn a_value_that_cannot_be() {
    let problem = |text: &str| match error(text) {
        ConfigError::BadValue { origin, problem, .. } => {
            assert_eq!(origin, line(text.lines().count()), "{text}");
            problem
        }
        other => panic!("{other}"),
    };
    let value = |value: &str| value.to_owned();
    assert_eq!(
        problem("window = -5\n"),
        ValueError::NotWhole { value: value("-5"), least: 1_000, most: 100_000_000 }
    );
    assert_eq!(
        problem("[profiles.progressive]\nimportance_score_threshold = 11.0\n"),
        ValueError::NotNumber { value: value("11.0"), least: 0.0, most: 10.0 }
    );
    assert_eq!(problem("[profiles.mini]\nwhen_cold = 1\n"), ValueError::NotFlag { value: value("1") });
    assert_eq!(
        problem("profile = \"minni\"\n"),
        ValueError::NoProfile { value: value("minni"), nearest: value("mini") }
    );
    assert_eq!(
        problem("[profiles.mini]\nsummariser = \"me\"\n"),
        ValueError::NotOneOf { value: value("me"), words: vec!["extractor", "model"] }
    );
    assert_eq!(
        problem("[profiles.mini]\nladder = [\"old-results\", \"old-result\"]\n"),
        ValueError::NoStrategy { name: value("old-result"), nearest: value("old-results") }
    );
    assert_eq!(
        problem("[profiles.mini]\nrunning = \"handoff\"\n"),
        ValueError::NoTemplate { value: value("handoff"), nearest: value("hand_off") }
    );
    assert!(
        matches!(problem("[tools]\nmine = \"reader\"\n"), ValueError::NotOneOf { words, .. } if words.contains(&"read"))
    );
    assert_eq!(problem("window = [1]\n"), ValueError::NoKind);
    assert_eq!(problem("window = 2026-01-01\n"), ValueError::NoKind);
}

#[test]
fn a_profile_that_cannot_be() {
    let says = |text: &str, expected: &str| {
        let error = error(text);
        assert_eq!(error.to_string(), format!("longhaul.toml: line 2: {expected}"));
        error
    };
    assert!(matches!(
        says(
            "[profiles.mine]\ntrigger = 60\n",
            "there is no profile \"mine\"; is \"mini\" meant? A new one needs a `base`"
        ),
        ConfigError::NoBase { .. }
    ));
    assert!(matches!(
        says(
            "[profiles.mine]\nbase = \"archiv\"\n",
            "`profiles.mine.base` is \"archiv\"; there is no such built-in profile, is \"archive\" meant?"
        ),
        ConfigError::NoSuchBase { .. }
    ));
    assert!(matches!(
        says(
            "[profiles.\"my own\"]\nbase = \"mini\"\n",
            "`profiles.my own.base`: the name of a profile has letters, digits, - and _"
        ),
        ConfigError::BadProfileName { .. }
    ));
    assert!(matches!(
        says(
            "[profiles.mini]\nbase = \"archive\"\n",
            "`profiles.mini.base`: \"mini\" is built in and has no base"
        ),
        ConfigError::BuiltInHasNoBase { .. }
    ));
}

#[test]
fn settings_that_contradict_each_other() {
    let error = error("[profiles.longhaul]\ntarget = 99\n");
    assert_eq!(
        error.to_string(),
        "`profiles.longhaul.target` is 99 (longhaul.toml, line 2), above `profiles.longhaul.trigger`, 98 (built in)"
    );
    assert!(matches!(error, ConfigError::TargetAboveTrigger { .. }));
    // Layers are looked at together: what one says alone may be right with another.
    let layers = Layers::default()
        .file("longhaul.toml", "[profiles.longhaul]\ntarget = 99\n")
        .variables([("LONGHAUL_PROFILES_LONGHAUL_TRIGGER", "99")]);
    Config::read(&layers).unwrap();
    let merge = self::error("[profiles.archive]\nmerge_to = 20\n");
    assert_eq!(
        merge.to_string(),
        "`profiles.archive.merge_to` is 20, above `profiles.archive.merge_above`, 10"
    );
    assert!(matches!(merge, ConfigError::MergeToAboveMergeAbove { .. }));
}

#[test]
fn a_file_that_is_no_toml() {
    assert!(matches!(error("\nwindow = \n"), ConfigError::NotToml { line: 2, .. }));
}

#[test]
fn an_error_is_one_line_whatever_the_file_is_called() {
    let error = Config::read(&Layers::default().file("a\nb.toml", "x = 1")).unwrap_err();
    assert!(error.to_string().starts_with("a?b.toml: line 1: "), "{error}");
}

#[test]
fn a_profile_that_is_not_there() {
    let NoSuchProfile { name, known, .. } = Config::default().profile("nobody").unwrap_err();
    assert_eq!((&*name, &*known[0]), ("nobody", "longhaul"));
}

/// A repository that somebody else made does not send conversations and keys to them.
#[test]
fn a_project_says_not_where_conversations_go() {
    let read = |text: &str| Config::read(&Layers::default().project_file("longhaul.toml", text));
    for (text, key) in [
        ("summariser.base_url = \"http://elsewhere.example\"", "summariser.base_url"),
        ("[summariser]\nkey_env = \"AWS_SECRET_ACCESS_KEY\"", "summariser.key_env"),
        ("store = \"postgres://elsewhere.example/x\"", "store"),
    ] {
        let error = read(text).unwrap_err();
        assert!(matches!(&error, ConfigError::NotForProjects { key: named, .. } if named == key), "{error}");
        assert!(error.to_string().ends_with("not in a project's"), "{error}");
        Config::read(&Layers::default().file("config.toml", text)).unwrap();
    }
    let config = read("store = \"sessions.db\"\nwindow = 64_000").unwrap();
    assert_eq!(config.store(), "sessions.db");
}

/// A key that stands where the name of its variable should is not repeated.
#[test]
fn a_key_is_no_name_of_a_variable() {
    for value in ["sk-0123456789", "1KEY", "my key"] {
        let error = error(&format!("summariser.key_env = {value:?}"));
        let says = error.to_string();
        assert!(matches!(&error, ConfigError::BadValue { problem: ValueError::NotVariable, .. }), "{says}");
        assert!(!says.contains(value) && says.contains("summariser.key_env"), "{says}");
    }
}
