//! `longhaul sessions import`: recorded sessions taken through the engine and stored; journals as they are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul::session::journal;
use longhaul::{Message, Profile, Role, Session};
use longhaul_store::{About, Keeper, Store};
use serde::Serialize;

use super::Sessions;
use crate::arguments::say_unknown_model;
use crate::error::Failure;
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::recorded::{MeterKind, RecordedSession, window_of, without_model};
use crate::lab::transcript_file::TranscriptFile;
use crate::terminal;

/// Store recorded sessions, as if Longhaul had been there
#[derive(clap::Args)]
#[command(after_help = "\
A transcript of any format that `longhaul convert` reads is taken through the
engine, call by call; each conversation in it becomes a session. No model is
asked. A journal (`longhaul sessions export --journal`) becomes the session that
it is of.

Examples:
  longhaul sessions import session.jsonl.gz
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
    /// What it worked on
    #[arg(long, value_name = "P")]
    project: Option<String>,
}

/// A session that was stored, for scripts.
#[derive(Serialize)]
struct Imported {
    session: String,
    transcript: String,
    messages: usize,
    calls: u64,
    edits: u32,
    /// Calls for which nothing could be sent.
    errors: u64,
}

/// How journals begin.
const JOURNAL: &[u8] = b"{\"began\":";

/// The progress is shown after so many messages.
const SHOWN: usize = 100;

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let name = args.profile.as_deref().unwrap_or(sessions.config.profile_name());
    let import = Import {
        sessions,
        args,
        profile: without_model(sessions.config.profile(name)?),
        window: args.window.or_else(|| sessions.config.own_window().map(|window| window.0)),
    };
    say_unknown_model(args.model.as_deref().unwrap_or_default());
    let mut store = None;
    let (mut read, mut unread) = (0, Unread::default());
    for input in inputs::find(&args.files)? {
        let taken = is_journal(&input).and_then(|is_journal| match is_journal {
            true => Ok(vec![import.journal(&input.path)?]),
            false => import.transcript(&input),
        });
        terminal::clear_progress();
        let taken = match taken {
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
        taken.iter().try_for_each(|taken| import.keep(store, taken))?;
    }
    unread.finish(read)
}

/// A conversation that was taken through the engine.
struct Taken {
    name: String,
    agent: String,
    session: Session,
    errors: u64,
}

struct Import<'a> {
    sessions: &'a Sessions<'a>,
    args: &'a Args,
    profile: Profile,
    window: Option<u64>,
}

impl Import<'_> {
    /// The conversations of a transcript.
    fn transcript(&self, input: &Input) -> Result<Vec<Taken>, Failure> {
        let mut file = TranscriptFile::open(input)?;
        let mut recorded: BTreeMap<usize, (RecordedSession, u64)> = BTreeMap::new();
        let mut count = 0;
        for (number, message) in file.by_ref() {
            if message.is_recorded_compaction() {
                continue;
            }
            let (session, errors) = recorded.entry(number).or_insert_with(|| (self.new_session(), 0));
            take(session, errors, message);
            count += 1;
            if count % SHOWN == 0 {
                terminal::show_progress(format_args!("{}: {count} messages", input.path.display()));
            }
        }
        file.finish(recorded.is_empty())?;
        let agent = file.format();
        let taken = recorded.into_iter().map(|(number, (recorded, errors))| Taken {
            name: file.name(number),
            agent: agent.to_owned(),
            session: recorded.into_session(),
            errors,
        });
        Ok(taken.collect())
    }

    fn new_session(&self) -> RecordedSession {
        let model = self.args.model.as_deref().unwrap_or_default();
        let window = window_of(self.window, model, &self.profile);
        RecordedSession::new(self.profile.clone(), model, window, MeterKind::Model)
    }

    /// The session of a journal.
    fn journal(&self, path: &Path) -> Result<Taken, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
        let entries = journal::read(text.lines()).map_err(|error| Failure::file(path, error))?;
        let session = Session::load(self.profile.clone(), entries);
        let session = session.map_err(|error| Failure::file(path, error))?;
        Ok(Taken { name: path.display().to_string(), agent: "longhaul".to_owned(), session, errors: 0 })
    }

    /// Stores a session, and says so.
    fn keep(&self, store: &Arc<dyn Store>, taken: &Taken) -> Result<(), Failure> {
        let about = About {
            agent: self.args.agent.clone().unwrap_or_else(|| taken.agent.clone()),
            project: self.args.project.clone().unwrap_or_default(),
            title: None,
            ..About::default()
        };
        let mut keeper = Keeper::create(store.clone(), &about, &taken.session)?;
        keeper.finish(&taken.session)?;
        let (messages, edits) = (taken.session.log().messages().len(), taken.session.ledger().next_id().0);
        let imported = Imported {
            session: keeper.id().to_string(),
            transcript: taken.name.clone(),
            messages,
            calls: store.meta(keeper.id())?.calls,
            edits,
            errors: taken.errors,
        };
        let said = format!(
            "{}  {} messages, {} calls, {} edits: {}",
            imported.session,
            terminal::grouped(messages as u64),
            terminal::grouped(imported.calls),
            terminal::grouped(u64::from(edits)),
            terminal::one_line(&taken.name, usize::MAX)
        );
        self.sessions.say(&imported, said)?;
        if taken.errors > 0 {
            let errors = terminal::grouped(taken.errors);
            _ = writeln!(std::io::stderr(), "{}: {errors} calls do not fit into the window", taken.name);
        }
        Ok(())
    }
}

/// Takes a message in; an answer is preceded by its call.
fn take(recorded: &mut RecordedSession, errors: &mut u64, message: Message) {
    if message.role() == Role::Assistant {
        *errors += u64::from(recorded.prepare().is_err());
    }
    let model = message.model().map(str::to_owned);
    recorded.push(message);
    recorded.follow_model(model);
}

fn is_journal(input: &Input) -> Result<bool, Failure> {
    let path = &input.path;
    if input.is_stdin() {
        return Ok(false);
    }
    let failed = |error| Failure::file(path, error);
    let mut start = Vec::new();
    let file = BufReader::new(File::open(path).map_err(failed)?);
    file.take(JOURNAL.len() as u64).read_until(b'\n', &mut start).map_err(failed)?;
    Ok(start == JOURNAL)
}
