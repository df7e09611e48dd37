//! `longhaul sessions delete`.

use std::io::{self, BufRead, IsTerminal, Write};

use longhaul_store::Meta;
use serde::Serialize;

use super::{Sessions, naming};
use crate::error::Failure;
use crate::terminal;

/// Delete sessions for good
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul sessions delete 0199c2e1 0199c2f0
  longhaul sessions delete last --yes")]
pub struct Args {
    /// The sessions
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Deleted {
    deleted: String,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let store = sessions.place.open()?;
    // All are found before the first goes: `last` is one session, whatever was deleted before it.
    let mut found: Vec<Meta> = Vec::new();
    for name in &args.sessions {
        let meta = naming::find(&*store, name, &sessions.place)?;
        if found.iter().all(|known| known.id != meta.id) {
            found.push(meta);
        }
    }
    if !args.yes && !confirmed(&found)? {
        return Err(Failure::Failed("nothing was deleted".to_owned()));
    }
    for meta in found {
        store.delete(meta.id)?;
        let id = meta.id.to_string();
        let said = format!("Deleted {id} ({}).", terminal::one_line(&meta.title, 36));
        sessions.say(&Deleted { deleted: id }, said)?;
    }
    Ok(())
}

/// Asks whoever sits at the terminal.
fn confirmed(found: &[Meta]) -> Result<bool, Failure> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let problem = "nobody can be asked here whether the sessions shall go for good: give --yes";
        return Err(Failure::Input(problem.to_owned()));
    }
    let mut out = anstream::stderr().lock();
    for meta in found {
        let title = terminal::one_line(&meta.title, 40);
        writeln!(out, "{}  {} messages  {title}", meta.id, terminal::short(meta.messages))?;
    }
    let these =
        if found.len() == 1 { "this session".to_owned() } else { format!("these {} sessions", found.len()) };
    write!(out, "Delete {these} for good? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
