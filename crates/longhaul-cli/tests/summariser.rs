//! `replay` and `bench` with summaries by a model, over the wire.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use longhaul_fake::{Answer, AtEnd, Counts, Fake, Settings, Trouble};
use serde_json::{Value, json};

const KEY: &str = "sk-secret-0123456789";

/// A session in which files are read, one after the other.
fn transcript(folder: &Path) -> String {
    let mut lines = vec![json!({"role": "user", "content": "Read it all."})];
    for n in 0..40 {
        let call = json!({"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("src/file_{n}.rs")}});
        let text: String = (0..60).map(|line| format!("fn name_{n}_{line}() {{}}\n")).collect();
        let result = json!({"type": "tool_result", "id": format!("c{n}"), "text": text});
        lines.push(json!({"role": "assistant", "content": [call]}));
        lines.push(json!({"role": "tool", "content": [result]}));
    }
    lines.push(json!({"role": "assistant", "content": "All is read."}));
    let path = folder.join("long.jsonl");
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn longhaul(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    command.env_clear().env("HOME", "/nonexistent").envs(variables.iter().copied()).args(args);
    let output = command.output().unwrap();
    for text in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(text).contains("secret"));
    }
    output
}

/// The settings that name the fake.
fn model(fake: &Fake) -> Vec<(&'static str, String)> {
    vec![
        ("LONGHAUL_SUMMARISER_BASE_URL", fake.base_url()),
        ("LONGHAUL_SUMMARISER_MODEL", "small-1".to_owned()),
        ("LONGHAUL_SUMMARISER_KEY_ENV", "MY_KEY".to_owned()),
        ("MY_KEY", KEY.to_owned()),
    ]
}

fn replayed(args: &[&str], variables: &[(&str, String)]) -> (Value, String) {
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let output = longhaul(args, &variables);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

/// A summary that costs so much.
fn summary(n: usize) -> Answer {
    let text = format!("<summary>The files were read; part {n} is the blue one.</summary>");
    Answer::new().text(&text).usage(Counts { prompt: 1_000, cached: 200, output: 50, ..Counts::default() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn summaries_of_the_model_stand_in_the_views() {
    let folder = tempfile::tempdir().unwrap();
    let (file, views) = (transcript(folder.path()), folder.path().join("views.jsonl"));
    for (api, profile) in
        [("chat", "longhaul"), ("anthropic", "longhaul"), ("responses", "archive"), ("chat", "progressive")]
    {
        let fake = Settings::new().key(KEY).answers((0..80).map(summary)).start().await;
        let mut variables = model(&fake);
        variables.push(("LONGHAUL_SUMMARISER_API", api.to_owned()));
        variables.push(("LONGHAUL_SUMMARISER_MAX_OUTPUT", "900".to_owned()));
        let args = [
            "replay",
            &file,
            "--window",
            "8000",
            "--profile",
            profile,
            "--json",
            "--summariser",
            "model",
            "--views",
            views.to_str().unwrap(),
        ];
        let (line, said) = replayed(&args, &variables);
        let calls = fake.log().len() as u64;
        assert!(calls > 1 && said.is_empty(), "{profile} {calls} {said}");
        let figure = |name: &str| line[name].as_u64().unwrap();
        let spent = ["summary_calls", "summary_input", "summary_output", "summary_failed"].map(figure);
        assert_eq!(spent, [calls, 1_000 * calls, 50 * calls, 0], "{profile}");
        assert_eq!(figure("summary_cost"), (1_000 + 20 + 250) * calls);
        assert!(figure("cost_sent") > figure("summary_cost"));
        assert_eq!((figure("violations"), figure("errors")), (0, 0));
        let text = fs::read_to_string(&views).unwrap();
        assert!(
            text.contains("part 0 is the blue one.") && text.contains("part 1 is the blue one."),
            "{profile}"
        );
        let costs = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["summary_cost"].as_u64().unwrap());
        assert_eq!(costs.sum::<u64>(), figure("summary_cost"));
        assert_eq!(fake.log()[0].body["model"], "small-1");
        let longest = match api {
            "responses" => "max_output_tokens",
            "anthropic" => "max_tokens",
            _ => "max_completion_tokens",
        };
        assert_eq!(fake.log()[0].body[longest], 900);
        assert_eq!(fake.violations(), [""; 0]);
        // The same answers give the same bytes.
        let again = folder.path().join("again.jsonl");
        fake.restart(Settings::new().key(KEY).answers((0..80).map(summary))).await;
        replayed(&[&args[..10], &[again.to_str().unwrap()]].concat(), &variables);
        let without_times = |text: &str| {
            let lines =
                text.lines().map(|line| line.split(",\"prepare_us\"").next().unwrap_or_default().to_owned());
            lines.collect::<Vec<_>>()
        };
        assert_eq!(without_times(&fs::read_to_string(&again).unwrap()), without_times(&text), "{profile}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_says_what_summaries_cost() {
    let folder = tempfile::tempdir().unwrap();
    let file = transcript(folder.path());
    let fake = Settings::new().key(KEY).answers((0..80).map(summary)).start().await;
    let variables = model(&fake);
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let output = longhaul(&["replay", &file, "--window", "8000", "--summariser", "model"], &variables);
    let text = String::from_utf8(output.stdout).unwrap();
    let calls = fake.log().len();
    assert!(
        text.contains(&format!("Summaries by small-1: {calls} calls, ")) && text.contains(" of the cost."),
        "{text}"
    );
    assert!(!text.contains("did not come"), "{text}");

    fake.restart(Settings::new().key(KEY).at_end(AtEnd::Line("The files were read.".to_owned()))).await;
    let output = longhaul(&["bench", &file, "--window", "8000", "--summariser", "model"], &variables);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Summaries of longhaul: ") && text.contains("Summaries of archive: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let output =
        longhaul(&["bench", &file, "--window", "8000", "--summariser", "model", "--json"], &variables);
    let rows: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |policy: &str| rows.iter().find(|row| row["policy"] == policy).unwrap();
    assert!(
        of("longhaul")["summary_calls"].as_u64() > Some(0)
            && of("longhaul")["summary_input"].as_u64() > Some(0)
    );
    assert_eq!(of("summarise all at 80%")["summary_calls"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_fails_leaves_it_to_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = transcript(folder.path());
    for profile in ["longhaul", "mini", "archive", "progressive"] {
        let fake = Settings::new().trouble(.., Trouble::Status(400)).start().await;
        let args = ["replay", &file, "--window", "8000", "--profile", profile, "--summariser", "model"];
        let (line, said) = replayed(&[&args[..], &["--json"]].concat(), &model(&fake));
        assert!(line["summary_failed"].as_u64() > Some(0), "{profile} {line}");
        assert_eq!(line["summary_calls"].as_u64(), Some(fake.log().len() as u64), "{profile}");
        assert_eq!(
            (&line["errors"], &line["violations"], &line["summary_input"]),
            (&json!(0), &json!(0), &json!(0)),
            "{profile}"
        );
        // Said once, not at each summary.
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("summaries: ") && said.contains("the profile goes on without"), "{said}");
    }
    // A key that is refused is quoted by the provider, and by nobody else.
    let fake = Settings::new().key("another-key").start().await;
    let variables = model(&fake);
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let output = longhaul(&["replay", &file, "--window", "8000", "--summariser", "model"], &variables);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("did not come: the profile went on without."), "{text}");
}

#[test]
fn nobody_is_asked_without_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let file = transcript(folder.path());
    // Nobody listens there; and the profile says that a model writes.
    let variables = [
        ("LONGHAUL_SUMMARISER_BASE_URL", "http://127.0.0.1:9"),
        ("LONGHAUL_PROFILES_LONGHAUL_SUMMARISER", "model"),
    ];
    let output = longhaul(&["replay", &file, "--window", "8000", "--json"], &variables);
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&line["summary_calls"], &line["errors"], &line["summary_cost"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert!(output.stderr.is_empty());
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = transcript(folder.path());
    let refused = |variables: &[(&str, &str)]| {
        let output = longhaul(&["replay", &file, "--summariser", "model"], variables);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let said = refused(&[]);
    for name in [
        "summariser.base_url",
        "LONGHAUL_SUMMARISER_BASE_URL",
        "summariser.model",
        "summariser.api",
        "summariser.key_env",
    ] {
        assert!(said.contains(name), "{said}");
    }
    let url = ("LONGHAUL_SUMMARISER_BASE_URL", "http://127.0.0.1:9");
    assert!(refused(&[url, ("LONGHAUL_SUMMARISER_KEY_ENV", "MY_KEY")]).contains("MY_KEY"));
    assert!(refused(&[("LONGHAUL_SUMMARISER_BASE_URL", "no url")]).contains("no url"));
    assert!(refused(&[("LONGHAUL_SUMMARISER_BASE_URL", "ftp://me:secret@host/x")]).contains("http://"));
    // Who writes the key itself into the settings is told so, without the key.
    assert!(refused(&[url, ("LONGHAUL_SUMMARISER_KEY_ENV", KEY)]).contains("not the name of a variable"));
    assert!(refused(&[url, ("LONGHAUL_SUMMARISER_API", "gopher")]).contains("chat, responses, anthropic"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_says_what_its_summary_cost() {
    let folder = tempfile::tempdir().unwrap();
    let file = transcript(folder.path());
    let fake = Settings::new().key(KEY).answers((0..80).map(summary)).start().await;
    let variables = model(&fake);
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
    let args = ["replay", &file, "--window", "8000", "--summariser", "model", "--edits"];
    let output = longhaul(&args, &variables);
    let said = String::from_utf8(output.stdout).unwrap();
    let fold = said.lines().find(|line| line.contains(": a fold: ")).unwrap();
    let bill = fold.split_once("; summary billed: ").unwrap().1;
    assert!(bill.starts_with("800 + 200 read, 50 written (expected: fresh "), "{bill}");
    // The profile's own model would have had the prefix in its cache.
    assert!(bill.contains(", warm "), "{bill}");
}

/// Summaries are billed at the prices of everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn summaries_are_billed_at_the_prices_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = transcript(folder.path());
    for (prices, one) in [("0.1,1.25", 1_000 + 20 + 250), ("0.5,1", 800 + 100 + 250)] {
        let fake = Settings::new().key(KEY).answers((0..80).map(summary)).start().await;
        let variables = model(&fake);
        let args =
            ["replay", &file, "--window", "8000", "--summariser", "model", "--json", "--prices", prices];
        let (line, _) = replayed(&args, &variables);
        let calls = fake.log().len() as u64;
        assert!(calls > 1, "{prices}");
        assert_eq!(line["summary_cost"].as_u64(), Some(one * calls), "{prices}");
    }
}
