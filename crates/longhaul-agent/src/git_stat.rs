//! What `git diff --stat` says of the project: a session keeps it, so that it survives whatever is folded.
//!
//! Git is asked beside a request, and only where a fold is near or was made; before the first fold it is waited for. A project
//! may come from anybody, and its `.git/config` names programs: none of them is run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use longhaul::conversation::FactKind;
use longhaul::{EditKind, Session, Tokens};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::shell::environment;

/// Git has so long to answer.
const LIMIT: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read.
const MOST: u64 = 16 << 10;
/// Files that are listed.
const FILES: &str = "--stat-count=60";

/// Whatever the project's own configuration says: no monitor, no hooks, no protocols.
const NO_PROGRAMS: [&str; 6] =
    ["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never"];

/// What git says of a project, and whether it may say something else by now.
#[derive(Default)]
pub(crate) struct GitStat {
    /// An answer that is being waited for.
    asked: Option<JoinHandle<Option<String>>>,
    /// Nothing has changed since git was asked last.
    is_current: bool,
    /// Git has answered, or has not in its time: what the session knows is a step old at most.
    answered: bool,
    /// Messages that the newest request was made of.
    sent: usize,
}

impl GitStat {
    /// Files may have changed.
    pub(crate) fn changed(&mut self) {
        self.is_current = false;
    }

    /// Before a request is made: has the session know what git says, if something is to be taken out now and nobody
    /// has asked yet.
    pub(crate) async fn before(&mut self, root: &Path, session: &mut Session) {
        if self.answered {
            return;
        }
        let new = session.sizes().get(self.sent..).unwrap_or_default();
        let new: u64 = new.iter().map(|size| session.meter().tokens(*size).tokens.0).sum();
        if session.size().tokens + Tokens(new) >= session.budget().trigger {
            self.wait(root, session).await;
        }
    }

    /// Has the session know what git says now.
    pub(crate) async fn wait(&mut self, root: &Path, session: &mut Session) {
        self.begin(root);
        if let Some(asked) = self.asked.take() {
            self.answered = true;
            tell(session, asked.await.ok().flatten());
        }
    }

    /// A request goes out: git is asked beside it, if something may be taken out soon or was taken out.
    pub(crate) fn beside(&mut self, root: &Path, session: &Session) {
        self.sent = session.log().messages().len();
        if is_near(session) {
            self.begin(root);
        }
    }

    /// Tells the session what git has answered since.
    pub(crate) async fn take(&mut self, session: &mut Session) {
        if let Some(asked) = self.asked.take_if(|asked| asked.is_finished()) {
            self.answered = true;
            tell(session, asked.await.ok().flatten());
        }
    }

    fn begin(&mut self, root: &Path) {
        if self.asked.is_none() && !std::mem::replace(&mut self.is_current, true) {
            let root = root.to_owned();
            self.asked = Some(tokio::spawn(async move {
                tokio::time::timeout(LIMIT, diff_stat(&root)).await.ok().flatten()
            }));
        }
    }
}

impl Drop for GitStat {
    fn drop(&mut self) {
        self.asked.iter().for_each(JoinHandle::abort);
    }
}

/// An answer that did not come leaves what was known.
fn tell(session: &mut Session, said: Option<String>) {
    if let Some(said) = said {
        session.set_git_stat(Some(said.as_str()).filter(|said| !said.is_empty()));
    }
}

/// Whether something may be taken out soon, or was: what git says then stands in for what is gone.
fn is_near(session: &Session) -> bool {
    let takes_steps = |kind: &EditKind| matches!(kind, EditKind::Fold { .. } | EditKind::Hide { .. });
    session.size().tokens.0 * 2 >= session.budget().trigger.0
        || session.log().fact(FactKind::GitStat, "").is_some()
        || session.ledger().edits().any(|(edit, active)| active && takes_steps(&edit.kind))
}

/// What git says of changes since the newest commit; empty if there are none. `None` without git, a repository, or a
/// commit.
async fn diff_stat(root: &Path) -> Option<String> {
    let environment = environment::of_commands(std::env::vars_os());
    let git = environment::program(&environment, "git")?;
    let filters =
        run(&git, &environment, root, &[], &["config", "--name-only", "--get-regexp", r"^filter\."]);
    // Git says nothing, and fails, where no filter is set.
    let filters = filters.await.unwrap_or_default();
    let off = without_filters(&filters);
    let diff = [
        "diff",
        "HEAD",
        "--stat=100",
        FILES,
        "--relative",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=all",
    ];
    let said = run(&git, &environment, root, &off, &diff).await?;
    Some(said.trim_end().to_owned())
}

/// Settings that switch off every filter that these names of settings set. They are passed as variables: as an argument
/// a name with `=` in it would be read as another name.
fn without_filters(names: &str) -> Vec<(String, &'static str)> {
    let filter = |name: &str| name.rsplit_once('.').map(|(filter, _)| filter.to_owned());
    let mut filters: Vec<String> = names.lines().filter_map(filter).collect();
    filters.sort_unstable();
    filters.dedup();
    let off = |filter: &String| {
        [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
            .map(|(name, value)| (format!("{filter}.{name}"), value))
    };
    filters.iter().flat_map(off).collect()
}

/// What git says; `None` if it fails.
async fn run(
    git: &PathBuf,
    environment: &[(OsString, OsString)],
    root: &Path,
    settings: &[(String, &'static str)],
    arguments: &[&str],
) -> Option<String> {
    let passed = environment.iter().filter(|(name, _)| !name.to_string_lossy().starts_with("GIT_"));
    let mut command = Command::new(git);
    command.args(NO_PROGRAMS).args(arguments).current_dir(root);
    command.env_clear().envs(passed.map(|(name, value)| (name, value)));
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (name, value)) in settings.iter().enumerate() {
        command
            .env(format!("GIT_CONFIG_KEY_{number}"), name)
            .env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    // The index is not written to, nothing is downloaded, and nobody is asked.
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let mut said = Vec::new();
    child.stdout.take()?.take(MOST).read_to_end(&mut said).await.ok()?;
    let ended = child.wait().await.ok()?;
    ended.success().then(|| String::from_utf8_lossy(&said).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_that_is_set_is_switched_off() {
        let off = without_filters("filter.lfs.clean\nfilter.lfs.process\nfilter.a=b.c.smudge\n");
        assert_eq!(off.len(), 8);
        assert!(off.contains(&("filter.lfs.process".to_owned(), "")));
        assert!(off.contains(&("filter.a=b.c.clean".to_owned(), "")));
    }
}
