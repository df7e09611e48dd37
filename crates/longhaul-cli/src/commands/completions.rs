//! `longhaul completions`: a script that completes commands in a shell.

use std::io::{self, Write};

use crate::error::Failure;

/// Print a script that completes commands in your shell
#[derive(clap::Args)]
#[command(after_help = "Example:\n  source <(longhaul completions bash)")]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

/// Runs the command, for this command line.
pub fn run(args: &Args, mut of: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut of, "longhaul", &mut script);
    Ok(io::stdout().lock().write_all(&script)?)
}
