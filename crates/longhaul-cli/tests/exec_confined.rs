//! `longhaul exec-confined`, as the agent's tool runs it.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;

fn launcher() -> Command {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").env_remove("LONGHAUL_CONFIG");
    command.arg("exec-confined");
    command
}

#[test]
fn it_says_what_is_enforced_and_becomes_a_command() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::create_dir(folder.path().join("inside")).unwrap();
    let output = launcher().output().unwrap();
    let level = String::from_utf8(output.stdout).unwrap();
    assert!(
        ["full", "partly", "none"].iter().any(|word| level.starts_with(&format!("writing={word} "))),
        "{level}"
    );
    let write = |path: &str| {
        let mut command = launcher();
        command.arg("--write").arg(folder.path().join("inside")).args(["--", "sh", "-c"]);
        command.args([r#"echo "$2" > "$1""#, "sh"]).arg(folder.path().join(path)).arg("--write");
        command.assert()
    };
    write("inside/file").success();
    // What stands behind the command is the command's.
    assert_eq!(std::fs::read_to_string(folder.path().join("inside/file")).unwrap(), "--write\n");
    if level.starts_with("writing=none") {
        println!("skipped: this system has no Landlock");
        return;
    }
    write("outside").failure();
    assert!(!folder.path().join("outside").exists());
}

#[test]
fn the_exit_code_is_the_commands_and_what_is_wrong_is_said() {
    launcher().args(["--", "sh", "-c", "exit 7"]).assert().code(7);
    let missing = launcher().args(["--", "/no/such/program"]).assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(missing).unwrap().contains("`/no/such/program` cannot be run"));
    launcher().args(["--read", "x"]).assert().code(2);
}

#[test]
fn it_is_not_among_the_commands_that_are_listed() {
    let help = Command::cargo_bin("longhaul").unwrap().arg("--help").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("exec-confined"));
}
