//! Programs of the user: where they are, and what they say of their version.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::gateway::shim::Shim;
use crate::terminal::one_line;

/// Programs of this name in the folders of `PATH`, in their order.
pub fn in_path(name: &str) -> Vec<PathBuf> {
    let Some(path) = env::var_os("PATH") else { return Vec::new() };
    let folders = env::split_paths(&path).filter_map(|folder| std::path::absolute(folder).ok());
    folders.map(|folder| folder.join(name)).filter(|program| can_be_run(program)).collect()
}

/// The program itself, behind a shim of ours.
pub fn real(name: &str) -> Option<PathBuf> {
    in_path(name).into_iter().find(|program| !Shim::is_at(program))
}

fn can_be_run(path: &Path) -> bool {
    let Ok(about) = path.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    about.is_file() && may_run
}

/// The first line that a program says of its version. `None` if it says nothing in this time.
pub async fn version(program: &Path, within: Duration) -> Option<String> {
    let said = said(program, &["--version"], within).await?;
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(one_line(line, 60))
}

/// What a program says. `None` if it fails or is not done in this time.
pub async fn said(program: &Path, arguments: &[&str], within: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(within, command.output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
