//! `longhaul recall`: what a mark in a replayed session names, byte for byte.

use std::io::{self, Write};
use std::path::PathBuf;

use longhaul::RecallPart;
use longhaul::edits::RecallError;
use longhaul_config::Config;

use crate::error::Failure;
use crate::lab::inputs;
use crate::lab::recorded::{MeterKind, RecordedSession, window_of, without_model};
use crate::lab::transcript_file::TranscriptFile;

/// Print what a mark of a replayed session names, byte for byte
#[derive(clap::Args)]
#[command(after_help = "\
`explain` and what `compact` writes name handles. The
session is taken through the engine with the same flags, and the handle read
back. Stored sessions: `longhaul sessions recall`.

Examples:
  longhaul recall session.jsonl 3f9a51c02b77 > result.txt
  longhaul recall session.jsonl 3f9a51c02b77 --window 32k --lines 10-20
  longhaul recall session.jsonl 3f9a51c02b77 --grep 'error|panic'")]
pub struct Args {
    /// The transcript, of any known format; of a folder, its newest session
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The handle that a mark names, or the start of one
    #[arg(value_name = "HANDLE")]
    handle: String,
    /// Only these lines, counted from 1: 10-20, 10-, 10
    #[arg(long, value_name = "A-B", value_parser = crate::arguments::lines, conflicts_with = "grep")]
    lines: Option<(usize, usize)>,
    /// Only lines that this regular expression fits, with their numbers
    #[arg(long, value_name = "PATTERN")]
    grep: Option<String>,
    /// Tokens that fit into the model's window; without it, the profile's
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// How to compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Model)]
    meter: MeterKind,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let input = inputs::find_one(&args.file)?;
    let mut file = TranscriptFile::open(&input)?;
    let profile = without_model(config.profile(args.profile.as_deref().unwrap_or(config.profile_name()))?);
    let window = window_of(args.window, "", &profile);
    let mut recorded = RecordedSession::new(profile.clone(), "", window, args.meter);
    let empty = recorded.replay(file.one_log());
    file.finish(empty)?;
    let part = match (&args.lines, &args.grep) {
        (Some((first, last)), _) => RecallPart::Lines(*first, *last),
        (None, Some(pattern)) => RecallPart::Pattern(pattern.clone()),
        (None, None) => RecallPart::Whole,
    };
    let found = recorded.session().recall(&args.handle, &part);
    let text = match found {
        Ok(text) => text,
        Err(error @ RecallError::Pattern(_)) => return Err(Failure::Input(error.to_string())),
        // What a compaction at the end takes out, as `compact` does it.
        Err(error) => {
            let mut recorded = RecordedSession::sent_whole(&profile, args.meter);
            recorded.replay(TranscriptFile::open(&input)?.one_log());
            let compacted = recorded.compacted(profile, window).ok();
            let text = compacted.and_then(|recorded| recorded.session().recall(&args.handle, &part).ok());
            let hint = "is this the file that was compacted, and are --window, --profile and --meter those that it \
                        was named with?";
            text.ok_or_else(|| Failure::file(&args.file, format!("{error}; {hint}")))?
        }
    };
    match (&args.lines, &args.grep) {
        (Some((first, _)), _) if text.is_empty() => {
            return Err(Failure::Input(format!("{} has no line {first}", args.handle)));
        }
        (None, Some(pattern)) if text.is_empty() => {
            return Err(Failure::Input(format!("no line of {} fits {pattern:?}", args.handle)));
        }
        _ => {}
    }
    // As it is: no colour, no line added.
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
