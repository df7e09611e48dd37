//! `longhaul exec-confined`: what launches commands of the agent that may not write everywhere.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::error::Failure;

/// Confine this process and become a command
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// A folder that may be written to, with all that is in it
    #[arg(long, value_name = "FOLDER")]
    write: Vec<PathBuf>,
    /// Everything may be written to that the user may write to
    #[arg(long, conflicts_with = "write")]
    anywhere: bool,
    /// The command; without one, say how much the system enforces
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command. Comes back only where there is none to become.
pub fn run(args: &Args) -> Result<(), Failure> {
    longhaul_agent::launch_confined((!args.anywhere).then_some(&*args.write), &args.command).map_err(
        |error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Input(error.to_string()),
            _ => Failure::Failed(error.to_string()),
        },
    )
}
