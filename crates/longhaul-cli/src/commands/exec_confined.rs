//! `longhaul exec-confined`: what launches commands of the agent that may not write everywhere.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use longhaul_agent::Bounds;

use crate::error::Failure;

/// Confine this process and become a command
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// A folder that may be written to, with all that is in it
    #[arg(long, value_name = "FOLDER")]
    write: Vec<PathBuf>,
    /// A file or a folder in one of those that may not be written to
    #[arg(long, value_name = "PATH")]
    keep: Vec<PathBuf>,
    /// A file or a folder that may not be read
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// Everything may be written to that the user may write to
    #[arg(long, conflicts_with_all = ["write", "keep", "hide"])]
    anywhere: bool,
    /// The command; without one, say how much the system enforces
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command. Comes back only where there is none to become.
pub fn run(args: &Args) -> Result<(), Failure> {
    let bounds = (!args.anywhere).then(|| Bounds {
        writable: args.write.clone(),
        kept: args.keep.clone(),
        hidden: args.hide.clone(),
    });
    longhaul_agent::launch_confined(bounds.as_ref(), &args.command).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::Input(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    })
}
