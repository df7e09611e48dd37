//! `longhaul sessions salvage`.

use std::fs::canonicalize;
use std::path::{Path, PathBuf};

use longhaul_store::{Salvaged, StoreError};
use serde::Serialize;

use super::Sessions;
use crate::error::Failure;
use crate::terminal;

/// Get sessions out of a damaged file
#[derive(clap::Args)]
#[command(after_help = "\
FILE is a store of SQLite that cannot be used any longer, such as the one that
`longhaul wrap` has moved aside. It is only read. Its sessions are put into the
store under the ids that they had; what that store has already stays as it is.
Up to the first entry that cannot be read a session is as it was; behind that
it has its messages, and is compacted anew when somebody goes on with it.

Examples:
  longhaul sessions salvage ~/.local/share/longhaul/sessions.db.damaged-1
  longhaul sessions salvage old.db --store rescued.db")]
pub struct Args {
    /// The damaged file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// A session that was got back, for scripts.
#[derive(Serialize)]
struct Line {
    session: String,
    title: String,
    messages: usize,
    /// Entries of its journal that cannot be read.
    lost: usize,
    /// False if the store had it already.
    new: bool,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let shown = terminal::one_line(&args.file.display().to_string(), usize::MAX);
    if !args.file.is_file() {
        return Err(Failure::Input(format!("{shown}: there is no such file")));
    }
    if !sessions.place.is_url() && is_same(&args.file, Path::new(sessions.place.as_str())) {
        let problem = "this is the store itself: move it to another name first, or give another --store";
        return Err(Failure::Input(format!("{shown}: {problem}")));
    }
    let store = sessions.place.open_or_make()?;
    let (mut all, mut messages, mut lost) = (0_u64, 0_u64, 0_u64);
    let mut unsaid = None;
    longhaul_store::salvage(&args.file, &*store, |one| {
        all += 1;
        messages += one.messages as u64;
        lost += one.lost as u64;
        // Nobody may be reading any longer: the rest is salvaged all the same.
        if unsaid.is_none() {
            unsaid = sessions.say(&line(one), text(one)).err();
        }
        Ok::<(), StoreError>(())
    })?;
    unsaid.map_or(Ok(()), Err)?;
    if sessions.json {
        return Ok(());
    }
    let lost = match lost {
        0 => "nothing was lost".to_owned(),
        1 => "1 entry cannot be read".to_owned(),
        lost => format!("{} entries cannot be read", terminal::grouped(lost)),
    };
    let (all, messages) = (counted(all, "session"), counted(messages, "message"));
    sessions.say(
        &(),
        format!("{all} with {messages} are in {}; {lost}. {shown} was not changed.", sessions.place),
    )
}

/// True if both name one file.
fn is_same(file: &Path, store: &Path) -> bool {
    matches!((canonicalize(file), canonicalize(store)), (Ok(file), Ok(store)) if file == store)
}

fn counted(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {what}{s}", terminal::grouped(number))
}

fn line(one: &Salvaged) -> Line {
    let (session, title) = (one.id.to_string(), one.title.clone());
    Line { session, title, messages: one.messages, lost: one.lost, new: !one.was_there }
}

fn text(one: &Salvaged) -> String {
    let title = terminal::one_line(&one.title, 60);
    if one.was_there {
        return format!("{}  is there already: {title}", one.id);
    }
    let lost = match one.lost {
        0 => String::new(),
        lost => format!(", {} lost", terminal::grouped(lost as u64)),
    };
    format!("{}  {}{lost}: {title}", one.id, counted(one.messages as u64, "message"))
}
