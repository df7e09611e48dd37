//! What permissions make of commands, beside what shells make of them: commands out of pieces that are known for trouble
//! are run for real, in a folder where every program only writes down that it ran.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longhaul_agent::{Effect, Mode, Permissions, Verdict};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Programs of the test that write their names and arguments down.
const PROGRAMS: [&str; 4] = ["forbidden", "reader", "other", "a"];
/// Real programs that start others.
const LAUNCHERS: [&str; 7] = ["env", "xargs", "nice", "timeout", "nohup", "bash", "sh"];

const PIECES: [&str; 97] = [
    "forbidden",
    "forbidden",
    "forbidden",
    "forb",
    "idden",
    "reader",
    "reader a",
    "reader ",
    "other ",
    "a",
    "-x",
    "--",
    "-c",
    "-n 1",
    " ",
    " ",
    " ",
    " ",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "\\\n",
    "\n",
    "$",
    "$'",
    "$\"",
    "${",
    "}",
    "{",
    ",",
    "..",
    "(",
    ")",
    "$(",
    "`",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "|&",
    "&>",
    "<",
    ">",
    ">&",
    "2>&1",
    "1",
    "<<E",
    "\nE\n",
    "<<<",
    "/dev/null",
    "#",
    "!",
    "=",
    "A=",
    "*",
    "?",
    "[",
    "~",
    "env ",
    "xargs ",
    "nice ",
    "timeout 5 ",
    "sh -c ",
    "bash -c ",
    "eval ",
    "command ",
    "exec ",
    "if ",
    "then ",
    "for x in ",
    "do ",
    "; done",
    "[[ ",
    " ]]",
    "-eq ",
    "test -v ",
    "printf ",
    "time ",
    "{ ",
    "; }",
    "export ",
    "x[0]=",
    "$x",
    "x=",
    "${x:-",
    "-I{} ",
    "{}",
    "trap ",
    "EXIT",
    "set -- ",
    "$@",
    ". ",
    "read x ",
    "; $x",
];

/// A folder with the programs, and where they write down that they ran.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let log = folder.path().join("log");
        for name in PROGRAMS {
            let script = format!(
                "#!/bin/sh\nprintf '%s' {name} >> {0}\nfor x; do printf '\\037%s' \"$x\" >> {0}; done\nprintf '\\036' >> {0}\n",
                log.display()
            );
            std::fs::write(bin.join(name), script).unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        for name in LAUNCHERS {
            if let Some(real) = which(name) {
                symlink(real, bin.join(name)).unwrap();
            }
        }
        Self { folder }
    }

    /// What ran in this shell, with its arguments, and the files that it made.
    fn runs(&self, shell: &Path, command: &str) -> (Vec<Vec<String>>, usize) {
        let work = self.folder.path().join("work");
        _ = std::fs::remove_dir_all(&work);
        std::fs::create_dir(&work).unwrap();
        let log = self.folder.path().join("log");
        _ = std::fs::remove_file(&log);
        let mut run = Command::new(shell);
        run.args(["-c", command]).current_dir(&work).env_clear().stdin(Stdio::null());
        run.env("PATH", self.folder.path().join("bin")).env("HOME", &work);
        run.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let runs = said.split_terminator('\x1e').map(|run| run.split('\x1f').map(str::to_owned).collect());
        (runs.collect(), std::fs::read_dir(&work).unwrap().count())
    }
}

fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn shells() -> Vec<PathBuf> {
    ["bash", "dash"].into_iter().filter_map(which).collect()
}

fn commands() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.to_vec());
    let command = prop::collection::vec(piece, 1..10).prop_map(|pieces| pieces.concat());
    // A function may call itself for ever, and so may a file that is run.
    command.prop_filter("a function", |command| {
        let close: String = command.split_whitespace().collect();
        !close.contains("()") && !command.contains("\\\n)")
    })
}

/// The same cases each time: so many take seconds.
fn runner(cases: u32) -> TestRunner {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(Config { cases, failure_persistence: None, ..Config::default() }, rng)
}

#[test]
fn what_a_rule_denies_never_runs_without_a_question() {
    let (ground, shells) = (Ground::new(), shells());
    let mut all = Permissions::new(Mode::All);
    all.deny("Bash(forbidden)").unwrap();
    let tried = Cell::new(0);
    let result = runner(20_000).run(&commands(), |command| {
        if all.verdict("Bash", &Effect::Runs(command.clone())) == Verdict::Allow && tried.get() < 600 {
            tried.set(tried.get() + 1);
            for shell in &shells {
                let (runs, _) = ground.runs(shell, &command);
                prop_assert!(!runs.iter().any(|run| run[0] == "forbidden"), "{shell:?} ran it: {command:?}");
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tried.get(), 600);
    // The ground works: what is named runs, and is denied.
    let (runs, _) = ground.runs(&shells[0], "env nice forbidden x");
    assert_eq!(runs, [["forbidden", "x"]]);
    let verdict = all.verdict("Bash", &Effect::Runs("env nice forbidden x".to_owned()));
    assert!(matches!(verdict, Verdict::Deny(_)));
}

#[test]
fn what_a_rule_allows_runs_and_nothing_else() {
    let (ground, shells) = (Ground::new(), shells());
    let mut ask = Permissions::new(Mode::Ask);
    ask.allow("Bash(reader)").unwrap();
    ask.allow("Bash(other a)").unwrap();
    let tried = Cell::new(0);
    let pieces = commands().prop_map(|command| format!("reader {command}"));
    let result = runner(20_000).run(&prop_oneof![pieces, commands()], |command| {
        if ask.verdict("Bash", &Effect::Runs(command.clone())) == Verdict::Allow && tried.get() < 600 {
            tried.set(tried.get() + 1);
            for shell in &shells {
                let (runs, files) = ground.runs(shell, &command);
                let is_allowed =
                    |run: &Vec<String>| run[0] == "reader" || run.starts_with(&["other".into(), "a".into()]);
                prop_assert!(
                    runs.iter().all(is_allowed) && files == 0,
                    "{shell:?} ran {runs:?}: {command:?}"
                );
                prop_assert!(!runs.is_empty(), "{shell:?} does not read it: {command:?}");
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(tried.get() > 300, "{}", tried.get());
}
