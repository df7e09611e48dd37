//! What packages are made of: the version, the build that a binary says it is, manual pages.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;

fn said(args: &[&str]) -> String {
    let output = Command::cargo_bin("longhaul").unwrap().env_clear().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_version_is_short_or_says_what_the_binary_is() {
    let version = format!("longhaul {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said(&["-V"]), version);
    let long = said(&["--version"]);
    let lines: Vec<&str> = long.lines().collect();
    assert!(long.starts_with(&version) && lines.len() == 3, "{long}");
    assert!(lines[1].starts_with("build: ") && lines[1].contains(std::env::consts::ARCH), "{long}");
    assert!(lines[2].starts_with("features: ") && lines[2].contains("sqlite postgres"), "{long}");
}

#[test]
fn there_is_a_manual_page_for_every_command_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    said(&["man", pages.to_str().unwrap()]);
    let help = said(&["--help"]);
    let (_, commands) = help.split_once("\nCommands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(commands.contains(&"report") && commands.len() > 15, "{commands:?}");
    for command in commands.iter().filter(|name| **name != "help") {
        let page = fs::read_to_string(pages.join(format!("longhaul-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(&format!("longhaul {command}")), "{command}");
    }
    // Nothing of the build is in them, and nothing that is hidden.
    let first = said(&["man"]);
    assert_eq!(first, fs::read_to_string(pages.join("longhaul.1")).unwrap());
    assert!(!first.contains("build:") && !pages.join("longhaul-exec-confined.1").exists());
}

#[test]
fn the_version_stands_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    // Crates that depend on each other must say of which version; it is the same.
    let inner: Vec<&str> = manifest.lines().filter(|line| line.contains("path = \"crates/")).collect();
    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(inner.len() > 5);
    for line in inner.iter().filter(|line| line.contains("version")) {
        assert!(line.contains(&version), "{line}");
    }
    for name in ["package.json", "control"] {
        let text = fs::read_to_string(root.join("release").join(name)).unwrap();
        assert!(text.contains("@VERSION@") && !text.contains(env!("CARGO_PKG_VERSION")), "{name}");
    }
}
