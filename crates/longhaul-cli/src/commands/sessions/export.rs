//! `longhaul sessions export`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use longhaul_store::{Form, SessionId, Store, StoreError};

use super::Sessions;
use crate::error::Failure;
use crate::output_file;
use crate::terminal;

/// Write a session out: its messages as a transcript, or its whole journal
#[derive(clap::Args)]
#[command(after_help = "\
A transcript has the messages; `longhaul replay` reads it. A journal has
everything that happened, edits too; `longhaul sessions import` makes the same
session of it.

Examples:
  longhaul sessions export last | head -3
  longhaul sessions export last -o session.jsonl
  longhaul sessions export last --journal -o session.journal")]
pub struct Args {
    /// The session
    session: String,
    /// Everything that happened, instead of the messages alone
    #[arg(long)]
    journal: bool,
    /// Where it goes; without it, or as `-`, to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE if it is there
    #[arg(long)]
    force: bool,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let output = output.map(|path| output_file::place(path, args.force)).transpose()?;
    let (store, meta) = sessions.find(&args.session)?;
    let form = if args.journal { Form::Journal } else { Form::Transcript };
    match output {
        Some(path) => {
            to_file(&*store, meta.id, form, &path)?;
            _ = writeln!(io::stderr(), "{} written", terminal::path(&path));
            Ok(())
        }
        None => Ok(store.export(meta.id, form, &mut BufWriter::new(io::stdout().lock()))?),
    }
}

/// Writes to a file beside it, which takes its place when all is written.
pub fn to_file(store: &dyn Store, id: SessionId, form: Form, path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(path, error);
    let mut partial = path.file_name().ok_or_else(|| Failure::file(path, "names no file"))?.to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    let partial = path.with_file_name(partial);
    let written = output_file::create(&partial).map_err(failed).and_then(|file| {
        let mut out = BufWriter::new(file);
        match store.export(id, form, &mut out) {
            Ok(()) => out.flush().map_err(failed),
            Err(StoreError::Export(error)) => Err(failed(error)),
            Err(error) => Err(error.into()),
        }
    });
    let done = written.and_then(|()| fs::rename(&partial, path).map_err(failed));
    if done.is_err() {
        _ = fs::remove_file(&partial);
    }
    done
}
