//! `longhaul sessions`: stored sessions, a subcommand a file. What happens to a session is the engine's and
//! the store's doing; here it is asked for and said.

mod change;
mod delete;
pub mod export;
mod fork;
mod import;
mod list;
pub mod naming;
pub mod pin;
mod prune;
pub mod recall;
mod salvage;
mod search;
mod show;
pub mod undo;
pub mod when;

use std::io::Write;
use std::sync::Arc;

use clap::Subcommand;
use longhaul::{Profile, Session};
use longhaul_config::Config;
use longhaul_store::{Filter, Keeper, Meta, Store};
use serde::Serialize;

use crate::error::Failure;
use crate::lab::recorded::without_model;
use crate::place::Place;
use crate::terminal;

/// List, search, show, change, fork, export and delete stored sessions
#[derive(clap::Args)]
#[command(after_help = "\
SESSION is the id of a session, the start of one (4 characters or more), or
`last`: the session that was written to last. Sessions are kept where --store,
LONGHAUL_STORE or the setting `store` says (`longhaul config show`).

Examples:
  longhaul sessions import session.jsonl --window 32000
  longhaul sessions list --since 7d
  longhaul sessions search parse header
  longhaul sessions show last
  longhaul sessions undo last
  longhaul sessions recall last 3f9a51c02b77 --lines 10-20
  longhaul sessions export last -o session.jsonl")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// Where sessions are kept: the path of a file, or postgres://…
    #[arg(long, global = true, value_name = "PLACE")]
    store: Option<String>,
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    List(list::Args),
    Show(show::Args),
    Search(search::Args),
    Pin(pin::Args),
    Undo(undo::UndoArgs),
    Redo(undo::RedoArgs),
    Recall(recall::Args),
    Fork(fork::Args),
    Export(export::Args),
    Delete(delete::Args),
    Prune(prune::Args),
    Import(import::Args),
    Salvage(salvage::Args),
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let place = Place::new(args.store.clone().unwrap_or_else(|| config.store()))?;
    let sessions = Sessions { config, place, json: args.json };
    match &args.what {
        What::List(args) => list::run(&sessions, args),
        What::Show(args) => show::run(&sessions, args),
        What::Search(args) => search::run(&sessions, args),
        What::Pin(args) => pin::run(&sessions, args),
        What::Undo(args) => undo::undo(&sessions, args),
        What::Redo(args) => undo::redo(&sessions, args),
        What::Recall(args) => recall::run(&sessions, args),
        What::Fork(args) => fork::run(&sessions, args),
        What::Export(args) => export::run(&sessions, args),
        What::Delete(args) => delete::run(&sessions, args),
        What::Prune(args) => prune::run(&sessions, args),
        What::Import(args) => import::run(&sessions, args),
        What::Salvage(args) => salvage::run(&sessions, args),
    }
}

/// What every subcommand goes by.
pub struct Sessions<'a> {
    config: &'a Config,
    place: Place,
    json: bool,
}

impl Sessions<'_> {
    /// The store, which must be there, and the session of this name.
    fn find(&self, name: &str) -> Result<(Arc<dyn Store>, Meta), Failure> {
        let store = self.place.open()?;
        let meta = naming::find(&*store, name, &self.place)?;
        Ok((store, meta))
    }

    /// The store, what it says of the session of this name, and the session.
    fn load(&self, name: &str) -> Result<(Keeper, Meta, Session), Failure> {
        let (store, meta) = self.find(name)?;
        let (keeper, session) = Keeper::open(store, meta.id, self.profile()?)?;
        Ok((keeper, meta, session))
    }

    /// The profile that sessions are looked at with: nothing is summarised here.
    fn profile(&self) -> Result<Profile, Failure> {
        Ok(without_model(self.config.profile(self.config.profile_name())?))
    }

    /// Prints a value as a JSON line, or else the text.
    fn say(&self, value: &impl Serialize, text: impl std::fmt::Display) -> Result<(), Failure> {
        let mut out = anstream::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", terminal::json(value)?)?,
            false => writeln!(out, "{text}")?,
        }
        Ok(())
    }
}

/// Which sessions are listed or searched.
#[derive(clap::Args)]
struct Which {
    /// Only those of this program
    #[arg(long, value_name = "A")]
    agent: Option<String>,
    /// Only those of this project
    #[arg(long, value_name = "P")]
    project: Option<String>,
    /// Only those that were written to since: 2026-03-02, 7d, 12h
    #[arg(long, value_name = "WHEN", value_parser = when::since)]
    since: Option<when::Since>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl Which {
    fn filter(&self) -> Filter {
        let (agent, project) = (self.agent.clone(), self.project.clone());
        Filter { agent, project, updated_since: self.since.map(when::Since::time), ..Filter::default() }
    }

    fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}
