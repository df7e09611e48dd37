//! `longhaul sessions fork`.

use longhaul::Position;
use serde::Serialize;

use super::Sessions;
use crate::error::Failure;

/// Make a session that shares the beginning of another, and go its own way
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul sessions fork last
  longhaul sessions fork last --at 40     before message 40 came")]
pub struct Args {
    /// The session
    session: String,
    /// The number of the first message that is not shared; without it, all are
    #[arg(long, value_name = "N")]
    at: Option<u32>,
}

#[derive(Serialize)]
struct Forked {
    session: String,
    parent: String,
    messages: usize,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let (keeper, meta, session) = sessions.load(&args.session)?;
    let end = session.log().end();
    let at = args.at.map_or(end, Position);
    if at > end {
        let problem = format!("has {} messages; a fork cannot share {} of them", end.0, at.0);
        return Err(Failure::Input(format!("session {} {problem}", meta.id)));
    }
    let fork = session.fork(at).map_err(|error| Failure::Failed(error.to_string()))?;
    let kept = keeper.fork(&fork)?;
    let (session, messages) = (kept.id().to_string(), fork.log().messages().len());
    let said = session.clone();
    sessions.say(&Forked { session, parent: meta.id.to_string(), messages }, said)
}
