//! A home of its own for a test: a clean environment, a store, and agents that are scripts.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A key that nobody may see again.
pub const KEY: &str = "sk-secret-0123456789";

/// Folders of a user: `home`, `bin` with the agents, `shims`.
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home/.local/bin", "bin", "shims"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text_at(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Puts a script there.
    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Folders of this home, before those of the system.
    pub fn path(&self, folders: &[&str]) -> String {
        let ours = folders.iter().map(|name| self.text_at(name));
        ours.chain(["/usr/bin:/bin".to_owned()]).collect::<Vec<_>>().join(":")
    }

    /// A program in a clean environment.
    pub fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .args(args)
            .env_clear()
            .env("HOME", self.at("home"))
            .env("PATH", self.path(&["shims", "bin"]))
            .env("LONGHAUL_STORE", self.at("sessions.db"))
            .current_dir(self.0.path());
        command
    }

    pub fn longhaul(&self, args: &[&str]) -> Command {
        self.run(longhaul(), args)
    }

    /// All files below, with what is in them.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut files, mut folders) = (Vec::new(), vec![self.0.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        files.sort();
        files
    }
}

pub fn longhaul() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("longhaul").to_owned()
}

pub fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one line that a command says that could not be done.
pub fn refused(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!((said.lines().count(), output.stdout.len()), (1, 0), "{said}");
    said
}
