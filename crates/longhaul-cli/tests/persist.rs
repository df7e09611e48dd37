//! `persist` and `unpersist`: the bare command of an agent goes through Longhaul, and does not any more.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::{Home, refused, text};

/// An agent that says by which way it was started.
const AGENT: &str = "echo \"agent at ${ANTHROPIC_BASE_URL:-home}: $# $*\"; exit 5";

/// A home with an agent, and the line that a shell runs there.
fn home() -> Home {
    let home = Home::new();
    home.script("bin/aider", AGENT);
    home
}

fn said(home: &Home, line: &str) -> (Option<i32>, String, String) {
    let output = home.run("sh", &["-c", line]).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn done(home: &Home, args: &[&str]) -> String {
    let output = home.longhaul(args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_bare_command_goes_through_and_then_does_not_without_a_trace() {
    let home = home();
    let before = home.files();
    let shims = home.text_at("shims");
    // Twice is as good as once.
    for _ in 0..2 {
        let out = done(&home, &["persist", "aider", "--dir", &shims]);
        assert_eq!(out.lines().count(), 1, "{out}");
        assert!(out.starts_with("aider goes through longhaul: ") && out.contains("bin/aider"), "{out}");
    }
    let (code, out, err) = said(&home, "aider -p 'two words' \"it's\" ''");
    assert_eq!(code, Some(5));
    assert!(
        out.starts_with("agent at http://127.0.0.1:") && out.ends_with(": 4 -p two words it's \n"),
        "{out}"
    );
    assert_eq!(err, "longhaul: no calls\n");
    // `wrap` runs the program, not the shim.
    let output = home.longhaul(&["wrap", "aider"]).output().unwrap();
    assert_eq!(
        (text(&output.stdout).lines().count(), text(&output.stderr)),
        (1, "longhaul: no calls\n".to_owned())
    );

    assert!(done(&home, &["unpersist", "aider"]).starts_with("removed "));
    let store = |path: &std::path::Path| path.to_string_lossy().contains("sessions.db");
    let after: Vec<_> = home.files().into_iter().filter(|(path, _)| !store(path)).collect();
    assert_eq!(after, before);
    assert_eq!(said(&home, "aider").1, "agent at home: 0 \n");
    assert!(
        refused(&home.longhaul(&["unpersist", "aider"]).output().unwrap(), 2)
            .contains("no script of ours for `aider`")
    );
}

#[test]
fn a_shim_behind_the_program_is_said_to_be() {
    let home = home();
    // The default folder is not in PATH.
    let out = done(&home, &["persist", "aider"]);
    let folder = home.text_at("home/.local/bin");
    let expected = format!("set: export PATH={folder}:\"$PATH\"\n");
    assert!(out.contains("comes first in PATH") && out.ends_with(&expected), "{out}");
    assert_eq!(said(&home, "aider").1, "agent at home: 0 \n");
    let (code, out, _) = said(&home, &format!("PATH={folder}:$PATH; aider"));
    assert!(code == Some(5) && out.starts_with("agent at http://127.0.0.1:"), "{out}");
    // The folder is made where there is none yet.
    fs::remove_dir_all(home.at("home/.local")).unwrap();
    assert!(done(&home, &["persist", "aider"]).contains("comes first in PATH"));
    // It is found where nobody names its folder.
    assert_eq!(done(&home, &["unpersist", "aider"]), format!("removed {folder}/aider\n"));
}

#[test]
fn files_of_others_stay() {
    let home = home();
    let (shims, agent) = (home.text_at("shims"), fs::read(home.at("bin/aider")).unwrap());
    let folder = |command| vec![command, "aider", "--dir", shims.as_str()];
    fs::write(home.at("shims/aider"), "mine").unwrap();
    assert!(refused(&home.longhaul(&folder("persist")).output().unwrap(), 2).contains("no script of ours"));
    assert!(
        refused(&home.longhaul(&folder("unpersist")).output().unwrap(), 2)
            .contains("no script of ours for `aider`")
    );
    assert_eq!(fs::read_to_string(home.at("shims/aider")).unwrap(), "mine");
    // As installers put it there: a link, also one that leads nowhere.
    for target in ["bin/aider", "missing"] {
        fs::remove_file(home.at("shims/aider")).unwrap();
        symlink(home.at(target), home.at("shims/aider")).unwrap();
        refused(&home.longhaul(&folder("persist")).output().unwrap(), 2);
    }
    assert_eq!(fs::read(home.at("bin/aider")).unwrap(), agent);
}

#[test]
fn what_cannot_be_persisted_is_said_in_one_line() {
    let home = home();
    let shims = home.text_at("shims");
    for (args, says) in [
        (&["persist", "codex", "--dir", &shims][..], "no program `codex` in PATH"),
        (&["persist", "aider", "--dir", "missing"], "no such folder"),
        (&["persist", "../aider", "--dir", &shims], "not a path"),
        (&["persist", "", "--dir", &shims], "not a path"),
        (&["unpersist", "bin/aider"], "not a path"),
    ] {
        let said = refused(&home.longhaul(args).output().unwrap(), 2);
        assert!(said.contains(says), "{said}");
    }
    let output = home.longhaul(&["persist", "aider"]).env_remove("HOME").output().unwrap();
    assert!(refused(&output, 2).contains("give --dir"));
    assert_eq!(fs::read_dir(home.at("shims")).unwrap().count(), 0);
}

/// A shim that outlives our binary runs the agent alone.
#[test]
fn without_our_binary_the_agent_runs_alone() {
    let home = home();
    let ours = home.at("longhaul");
    fs::copy(common::longhaul(), &ours).unwrap();
    // While another test starts a program, it holds the file that was just written.
    let persist = loop {
        match home.run(&ours, &["persist", "aider", "--dir", &home.text_at("shims")]).output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            output => break output.unwrap().status,
        }
    };
    assert!(persist.success());
    assert!(said(&home, "aider").1.starts_with("agent at http://"));
    fs::remove_file(&ours).unwrap();
    assert_eq!(said(&home, "aider -c"), (Some(5), "agent at home: 1 -c\n".to_owned(), String::new()));
}
