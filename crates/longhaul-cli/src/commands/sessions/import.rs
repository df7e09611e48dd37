//! `longhaul sessions import`: recorded sessions taken through the engine and stored; journals as they are.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use longhaul_store::{About, Store};
use serde::Serialize;

use super::Sessions;
use crate::arguments::say_unknown_model;
use crate::error::Failure;
use crate::lab::importing::{Import, Taken};
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::recorded::without_model;
use crate::report::scan::scan;
use crate::terminal;

/// Store recorded sessions, as if Longhaul had been there
#[derive(clap::Args)]
#[command(after_help = "\
A transcript of any format that `longhaul convert` reads is taken through the
engine, call by call; each conversation in it becomes a session. No model is
asked. A journal (`longhaul sessions export --journal`) becomes the session
that it is of. What is stored already is not stored again.

Examples:
  longhaul sessions import session.jsonl.gz
  longhaul sessions import ~/.claude/projects
  longhaul sessions import rollout.jsonl --window 64000 --project tidewater
  longhaul sessions import session.journal")]
pub struct Args {
    /// Transcripts or journals, or folders of them; `path#2` is one conversation of a file; `-` reads a transcript from standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// Tokens that fit into the model's window; without it, that of --model, or the profile's
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// The model, where the transcript does not say
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The program that worked; without it, the one whose format the transcript has
    #[arg(long, value_name = "A")]
    agent: Option<String>,
    /// What it worked on; without it, the folder that the file names
    #[arg(long, value_name = "P")]
    project: Option<String>,
    /// Store it once more if it is there already
    #[arg(long)]
    again: bool,
}

/// A session that was stored, for scripts.
#[derive(Serialize)]
struct Imported {
    session: String,
    /// False if an earlier import had stored it.
    new: bool,
    transcript: String,
    messages: usize,
    calls: u64,
    edits: u32,
    /// Calls for which nothing could be sent.
    errors: u64,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let name = args.profile.as_deref().unwrap_or(sessions.config.profile_name());
    let import = Import {
        profile: without_model(sessions.config.profile(name)?),
        window: args.window.or_else(|| sessions.config.own_window().map(|window| window.0)),
        model: args.model.as_deref().unwrap_or_default(),
    };
    say_unknown_model(import.model);
    let mut store = None;
    let (mut read, mut unread) = (0, Unread::default());
    for input in inputs::find(&args.files)? {
        let taken = match import.take(&input) {
            Ok(taken) => taken,
            Err(failure) => {
                unread.add(&input, failure)?;
                continue;
            }
        };
        read += 1;
        let store = match &store {
            Some(store) => store,
            None => store.insert(sessions.place.open_or_make()?),
        };
        let project = args.project.clone().unwrap_or_else(|| project_of(&input));
        taken.iter().try_for_each(|taken| keep(sessions, args, &project, store, taken))?;
    }
    unread.finish(read)
}

/// The folder that a recorded session was about, where its file says so.
fn project_of(input: &Input) -> String {
    let scanned = if input.path.is_file() { scan(&input.path, &|_| ()).ok() } else { None };
    let conversations = scanned.map(|scanned| scanned.conversations).unwrap_or_default();
    let wanted = input.conversation.unwrap_or_default();
    conversations.into_iter().nth(wanted).map(|conversation| conversation.project).unwrap_or_default()
}

/// Stores a session, and says so.
fn keep(
    sessions: &Sessions<'_>,
    args: &Args,
    project: &str,
    store: &Arc<dyn Store>,
    taken: &Taken,
) -> Result<(), Failure> {
    let about = About {
        agent: args.agent.clone().unwrap_or_else(|| taken.agent.clone()),
        project: project.to_owned(),
        title: None,
        ..About::default()
    };
    let (meta, new) = match args.again {
        true => (taken.keep(store, &about)?, true),
        false => taken.keep_once(store, &about)?,
    };
    let (messages, edits) = (taken.session.log().messages().len(), taken.session.ledger().next_id().0);
    let imported = Imported {
        session: meta.id.to_string(),
        new,
        transcript: taken.name.clone(),
        messages,
        calls: meta.calls,
        edits,
        errors: taken.errors,
    };
    let name = terminal::one_line(&taken.name, usize::MAX);
    let said = match imported.new {
        true => format!(
            "{}  {} messages, {} calls, {} edits: {name}",
            imported.session,
            terminal::grouped(messages as u64),
            terminal::grouped(imported.calls),
            terminal::grouped(u64::from(edits)),
        ),
        false => format!("{}  is there already: {name} (--again stores it once more)", imported.session),
    };
    sessions.say(&imported, said)?;
    if taken.errors > 0 && imported.new {
        let errors = terminal::grouped(taken.errors);
        _ = writeln!(std::io::stderr(), "{}: {errors} calls do not fit into the window", taken.name);
    }
    Ok(())
}
