//! What `longhaul --version` says of a build: the commit and its day, and the target. Of a release build alone, so
//! that a commit does not make every debug build anew. The same sources give the same text: no clock is read.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_COMMIT");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // Who builds from an archive may say what it is of. No name here begins as those of settings do: cargo hands them on to
    // what it runs.
    let said = env::var("SOURCE_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let commit = said.or_else(|| packaged(&here)).or_else(|| release.then(|| checked_out(&here)).flatten());
    println!("cargo::rustc-env=BUILT_FROM={}", commit.as_deref().unwrap_or("unknown").trim());
    println!("cargo::rustc-env=BUILT_FOR={}", env::var("TARGET").unwrap_or_default());
}

/// The commit that `cargo package` noted.
fn packaged(here: &Path) -> Option<String> {
    let note = fs::read_to_string(here.join(".cargo_vcs_info.json")).ok()?;
    let (_, behind) = note.split_once("\"sha1\"")?;
    let commit = behind.split('"').nth(1)?;
    Some(commit.chars().take(12).collect())
}

/// The commit of the repository that these sources are a part of, and its day.
fn checked_out(here: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(here).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // A folder inside somebody else's repository is not known there.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = git(&["show", "-s", "--format=%h %cd", "--abbrev=12", "--date=short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, changed since") })
}
