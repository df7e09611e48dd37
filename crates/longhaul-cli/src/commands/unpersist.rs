//! `longhaul unpersist`: takes a shim away.

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use crate::error::Failure;
use crate::gateway::agents;
use crate::gateway::shim::Shim;
use crate::terminal;

/// Take away what `persist` put before an agent's program
#[derive(clap::Args)]
#[command(after_help = "\
Only scripts of ours are removed: in ~/.local/bin and in all folders of PATH,
or in the one that is named.

Examples:
  longhaul unpersist claude
  longhaul unpersist codex --dir ~/bin")]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// The folder that the script is in
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = agents::program(&args.agent)?;
    let folders: Vec<PathBuf> = match &args.dir {
        Some(folder) => vec![folder.clone()],
        None => {
            let path = env::var_os("PATH").unwrap_or_default();
            agents::shim_folder().into_iter().chain(env::split_paths(&path)).collect()
        }
    };
    let mut out = anstream::stdout().lock();
    let mut removed = false;
    for path in folders.iter().map(|folder| folder.join(name)) {
        // A folder may stand in PATH twice.
        if Shim::is_at(&path) {
            fs::remove_file(&path)
                .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
            writeln!(out, "removed {}", terminal::path(&path))?;
            removed = true;
        }
    }
    if removed {
        return Ok(());
    }
    let place = match &args.dir {
        Some(folder) => folder.display().to_string(),
        None => "~/.local/bin or PATH".to_owned(),
    };
    Err(Failure::Input(format!(
        "there is no script of ours for `{name}` in {place}; give --dir if it is elsewhere"
    )))
}
