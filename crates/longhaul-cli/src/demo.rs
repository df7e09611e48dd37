//! `longhaul demo`.

use crate::error::Failure;

/// A long session in a small window, live: no key, no network
#[derive(clap::Args)]
pub struct Args {
    /// Do not wait between calls
    #[arg(long)]
    fast: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let _ = args.fast;
    Ok(())
}
