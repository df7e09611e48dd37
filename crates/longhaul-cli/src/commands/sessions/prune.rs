//! `longhaul sessions prune`.

use std::time::Duration;

use longhaul_store::{Pruned, Retention};
use serde::Serialize;

use super::Sessions;
use crate::error::Failure;
use crate::gateway::options::{kept, size};
use crate::terminal;

/// Delete sessions that are not to be kept any longer, for good
#[derive(clap::Args)]
#[command(after_help = "\
Sessions go that nobody used for longer; then those that were left alone
longest, until the others fit. What a kept fork shares with them stays. A
session that was used within the last hour stays in any case. `longhaul serve`
does the same by itself if it is told so. Without flags the settings
gateway.keep_days and gateway.keep_bytes say what is kept.

Examples:
  longhaul sessions prune --keep-days 30 --dry-run
  longhaul sessions prune --keep-days 90 --keep-bytes 10G")]
pub struct Args {
    /// Keep sessions that were used within so many days
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    keep_days: Option<u64>,
    /// Keep as many as fit into so many bytes: 500M, 10G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    keep_bytes: Option<u64>,
    /// Say what would go, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Line {
    sessions: Vec<String>,
    bytes: u64,
    dry_run: bool,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let settings = sessions.config.gateway();
    let (days, bytes) = (args.keep_days.or(settings.keep_days), args.keep_bytes.or(settings.keep_bytes));
    let retention = Retention { used_within: Duration::from_secs(3_600), ..kept(days, bytes) };
    if retention.keeps_all() {
        let problem = "nobody says what is kept: give --keep-days or --keep-bytes";
        return Err(Failure::Input(problem.to_owned()));
    }
    let store = sessions.place.open()?;
    let Pruned { sessions: gone, bytes } = match args.dry_run {
        true => store.would_prune(&retention)?,
        false => store.prune(&retention, usize::MAX)?,
    };
    let count = gone.len();
    let these = if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") };
    let said = match (args.dry_run, terminal::short(bytes)) {
        (true, bytes) => format!("{these} would go, about {bytes} bytes."),
        (false, bytes) => format!("Deleted {these}, {bytes} bytes."),
    };
    let ids = gone.iter().map(ToString::to_string).collect();
    sessions.say(&Line { sessions: ids, bytes, dry_run: args.dry_run }, said)
}
