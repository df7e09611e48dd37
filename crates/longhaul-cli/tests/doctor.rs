//! `doctor`: what is well, what is not, and what to do.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{Home, refused, text};
use longhaul_fake::Settings;
use serde_json::Value;

/// What was found: state, words and what to do, by what was looked at.
struct Found(Vec<Value>, Option<i32>);

impl Found {
    fn of(command: &mut Command) -> Self {
        let output = command.arg("--json").output().unwrap();
        assert_eq!(text(&output.stderr), "");
        let out = text(&output.stdout);
        assert!(!out.contains("secret"), "{out}");
        Self(out.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), output.status.code())
    }

    fn get(&self, what: &str) -> (&str, &str) {
        let found = self.0.iter().find(|check| check["what"] == what);
        let found = found.unwrap_or_else(|| panic!("{what} is not in {:?}", self.0));
        assert_eq!(found["do"].is_null(), found["state"] == "ok", "{found}");
        (found["state"].as_str().unwrap(), found["says"].as_str().unwrap())
    }

    fn state(&self, what: &str) -> &str {
        self.get(what).0
    }
}

/// A listener that takes connections: a provider that can be reached.
fn provider() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}/t/secret/v1", listener.local_addr().unwrap());
    (listener, url)
}

/// An address at which nobody is.
fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A doctor in a home where providers can be reached.
fn doctor(home: &Home, provider: &str, args: &[&str]) -> Command {
    let mut command = home.longhaul(&[&["doctor"], args].concat());
    command.env("ANTHROPIC_BASE_URL", provider).env("OPENAI_BASE_URL", provider);
    command
}

#[test]
fn an_installation_that_works_is_well() {
    if TcpStream::connect("127.0.0.1:8484").is_ok() {
        eprintln!("skipped: somebody listens where a gateway is looked for");
        return;
    }
    let (home, (_provider, url)) = (Home::new(), provider());
    home.script("bin/claude", "[ \"$1\" = --version ] && echo '2.1.325 (Claude Code)'");
    home.script("bin/codex", "echo broken >&2; exit 1");
    home.script("bin/pi", "echo 0.73.1");
    let before = home.files();
    let found = Found::of(&mut doctor(&home, &url, &[]));
    assert_eq!(found.1, Some(0));
    assert_eq!(found.get("settings"), ("ok", "profile longhaul, the model's own window"));
    assert!(found.get("store").1.contains("sessions.db is made when it is needed"));
    let (state, says) = found.get("claude");
    assert!(
        state == "ok" && says.starts_with("2.1.325 (Claude Code), ") && says.ends_with("/bin/claude"),
        "{says}"
    );
    assert!(found.get("codex").1.ends_with("does not say its version"));
    assert_eq!(
        ["codex", "pi", "gateway", "token", "proxy", "anthropic"].map(|what| found.state(what)),
        ["hint", "ok", "hint", "ok", "ok", "ok"]
    );
    // Nothing was made.
    assert_eq!(home.files(), before);

    // For people: a line for each, and what to do below it.
    let output = doctor(&home, &url, &[]).output().unwrap();
    let out = text(&output.stdout);
    assert!(out.starts_with("ok      settings           profile longhaul"), "{out}");
    assert!(out.contains("\nhint    gateway            none at 127.0.0.1:8484: "), "{out}");
    assert!(
        out.contains(
            "\n                           → `longhaul serve` starts one; `longhaul wrap` needs none\n"
        ),
        "{out}"
    );
    assert!(!out.contains("secret"), "{out}");
}

#[test]
fn settings_and_stores_that_cannot_be_used_are_problems() {
    let (home, (_provider, url)) = (Home::new(), provider());
    let found = Found::of(doctor(&home, &url, &[]).env("LONGHAUL_WINDW", "1"));
    assert_eq!((found.state("settings"), found.1), ("problem", Some(1)));
    assert!(!found.0.iter().any(|check| check["what"] == "store"));

    fs::write(home.at("no.db"), "These are words, and no store. ".repeat(90)).unwrap();
    let no_store = home.text_at("no.db");
    for place in [
        no_store.as_str(),
        "/proc/longhaul/sessions.db",
        "postgres://me:secret@127.0.0.1:1/d",
        "mysql://me:secret@h/d",
    ] {
        let found = Found::of(&mut doctor(&home, &url, &["--store", place]));
        assert_eq!((found.state("store"), found.1), ("problem", Some(1)), "{place}");
    }
    // One that is there is written to, and is as it was.
    let listed = |home: &Home| text(&home.longhaul(&["sessions", "list", "--json"]).output().unwrap().stdout);
    home.longhaul(&["wrap", "true"]).output().unwrap();
    let found = Found::of(&mut doctor(&home, &url, &[]));
    assert!(found.get("store").1.ends_with("sessions.db can be written"), "{}", found.get("store").1);
    assert_eq!((found.1, listed(&home)), (Some(0), String::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_looked_for() {
    let (home, (_provider, url), fake) = (Home::new(), provider(), Settings::new().start().await);
    // One that is named must be there; another program at its place is none.
    for address in [nobody(), fake.address().to_string()] {
        let found = Found::of(&mut doctor(&home, &url, &["--gateway", &address]));
        assert_eq!((found.state("gateway"), found.1), ("problem", Some(1)), "{:?}", found.0);
    }
    // So must one that agents are sent to.
    let gone = nobody();
    let (_provider, other) = provider();
    let mut command = home.longhaul(&["doctor", "--gateway", &format!("http://{gone}/")]);
    command.env("ANTHROPIC_BASE_URL", format!("http://{gone}")).env("OPENAI_BASE_URL", &other);
    let found = Found::of(command.env("http_proxy", "http://me:secret@127.0.0.1:1"));
    assert!(
        found.get("ANTHROPIC_BASE_URL").1.contains("names no token: `longhaul env AGENT`"),
        "{:?}",
        found.0
    );
    assert_eq!(
        ["gateway", "ANTHROPIC_BASE_URL", "proxy"].map(|what| found.state(what)),
        ["problem", "hint", "problem"]
    );
    // One that is there is seen: the doctor is the agent here.
    let inside = format!("{} doctor --json --gateway $LONGHAUL_GATEWAY", common::longhaul().display());
    let output = home.longhaul(&["wrap", "sh", "--", "-c", &inside]).output().unwrap();
    let out = text(&output.stdout);
    assert!(
        out.contains("is alive and ready") && out.contains("agents of this shell go through the gateway"),
        "{out}"
    );
    let output = home.longhaul(&["doctor", "--gateway", "ftp://h"]).output().unwrap();
    assert!(refused(&output, 2).contains("--gateway wants"));
}

#[test]
fn a_token_that_others_may_know_is_a_problem() {
    let (home, (_provider, url)) = (Home::new(), provider());
    assert!(home.longhaul(&["env", "claude"]).output().unwrap().status.success());
    let file = home.at("home/.local/share/longhaul/token");
    let found = Found::of(&mut doctor(&home, &url, &[]));
    assert_eq!(found.get("token"), ("ok", format!("{} is yours alone", file.display()).as_str()));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let found = Found::of(&mut doctor(&home, &url, &[]));
    assert_eq!((found.state("token"), found.1), ("problem", Some(1)));
    assert!(found.get("token").1.contains("other users may read the token"), "{:?}", found.0);
}

#[test]
fn providers_that_cannot_be_reached_are_problems() {
    let (home, (_provider, url), gone) = (Home::new(), provider(), nobody());
    let found = Found::of(doctor(&home, &url, &[]).env("OPENAI_BASE_URL", format!("http://{gone}/v1")));
    assert_eq!((found.state("anthropic"), found.state("openai"), found.1), ("ok", "problem", Some(1)));
    assert!(found.get("openai").1.starts_with(&gone));
    let found = Found::of(doctor(&home, &url, &[]).env("OPENAI_BASE_URL", "secret words"));
    assert_eq!(found.state("OPENAI_BASE_URL"), "problem");
    // A proxy is asked in the place of the host.
    let mut command = doctor(&home, "https://provider.invalid", &[]);
    let found = Found::of(command.env("HTTPS_PROXY", url.replace("/t/secret/v1", "")));
    let says = "provider.invalid:443 by the proxy of HTTPS_PROXY can be reached";
    assert_eq!(found.get("anthropic"), ("ok", says));
}

#[test]
fn a_proxy_that_would_catch_the_gateway_is_said() {
    let (home, (_provider, url)) = (Home::new(), provider());
    let states = |no_proxy: &str| {
        let mut command = doctor(&home, &url, &[]);
        command.env("HTTP_PROXY", url.replace("/t/secret/v1", "")).env("NO_PROXY", no_proxy);
        Found::of(&mut command).state("proxy").to_owned()
    };
    assert_eq!(
        ["", "intranet", "127.0.0.1", "a, 127.0.0.1", "*"].map(states),
        ["hint", "hint", "ok", "ok", "ok"]
    );
}

#[test]
fn an_agent_that_hangs_does_not_hang_the_doctor() {
    let (home, (_provider, url)) = (Home::new(), provider());
    home.script("bin/qwen", "exec sleep 60");
    home.script("bin/aider", "exec sleep 60");
    let began = Instant::now();
    let found = Found::of(&mut doctor(&home, &url, &[]));
    assert_eq!((found.state("qwen"), found.state("aider")), ("hint", "hint"));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_shim_is_known_and_one_without_its_agent_is_a_problem() {
    let (home, (_provider, url)) = (Home::new(), provider());
    let agent = home.script("bin/claude", "echo 2.1.325");
    assert!(
        home.longhaul(&["persist", "claude", "--dir", &home.text_at("shims")])
            .output()
            .unwrap()
            .status
            .success()
    );
    let found = Found::of(&mut doctor(&home, &url, &[]));
    assert!(found.get("claude").1.contains(" behind our shim "), "{:?}", found.0);
    fs::remove_file(agent).unwrap();
    assert_eq!(Found::of(&mut doctor(&home, &url, &[])).state("claude"), "problem");
}

#[test]
fn edits_that_a_provider_refuses_are_named_for_a_week() {
    let (home, (_provider, url)) = (Home::new(), provider());
    let place = home.at("refusals.db").display().to_string();
    let store = longhaul_store::open(&place).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let days_ago = |days: i64| longhaul::Time(i64::try_from(now).unwrap() - days * 24 * 3_600_000_000);
    let refusal = |model: &str, form: &str, days| longhaul_store::UpstreamRefusal {
        upstream: "http://gpu:8000/v1".into(),
        model: model.into(),
        form: form.into(),
        says: "System message must be at the beginning.".into(),
        learnt: days_ago(days),
    };
    for refusal in [refusal("qwen3.8", "system", 2), refusal("older", "tool", 8)] {
        store.keep_refusal(&refusal).unwrap();
    }
    drop(store);
    let found = Found::of(&mut doctor(&home, &url, &["--store", &place]));
    let (state, says) = found.get("refused edits");
    assert_eq!(state, "hint");
    assert!(
        says.starts_with("http://gpu:8000/v1 refuses summaries and notes as system text for qwen3.8"),
        "{says}"
    );
    assert!(says.ends_with(": \"System message must be at the beginning.\""), "{says}");
    assert!(!says.contains("older") && found.1 == Some(0), "{says}");
}
