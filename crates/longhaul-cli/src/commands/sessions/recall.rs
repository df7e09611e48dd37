//! `longhaul sessions recall`.

use std::io::{self, Write};

use longhaul::{RecallPart, Session};
use serde::Serialize;

use super::{Sessions, undo};
pub use crate::arguments::lines;
use crate::error::Failure;
use crate::terminal;

/// Print what an edit took out, byte for byte
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul sessions recall last --list
  longhaul sessions recall last 3f9a51c02b77 > result.txt
  longhaul sessions recall last 3f9a51c02b77 --lines 10-20
  longhaul sessions recall last 3f9a51c02b77 --grep 'error|panic'")]
pub struct Args {
    /// The session
    session: String,
    /// The handle that a mark in a request names, or the start of one
    #[arg(required_unless_present = "list")]
    handle: Option<String>,
    /// Only these lines, counted from 1: 10-20, 10-, 10
    #[arg(long, value_name = "A-B", value_parser = lines, conflicts_with = "grep")]
    lines: Option<(usize, usize)>,
    /// Only lines that this regular expression fits, with their numbers
    #[arg(long, value_name = "PATTERN")]
    grep: Option<String>,
    /// List what can be recalled
    #[arg(long, conflicts_with_all = ["handle", "lines", "grep"])]
    list: bool,
}

/// Something that can be recalled, for scripts.
#[derive(Serialize)]
struct HandleLine {
    handle: String,
    edit: u32,
    kind: &'static str,
    covers: String,
    /// Tokens of what was taken out.
    tokens: u64,
    active: bool,
}

#[derive(Serialize)]
struct Recalled<'a> {
    session: String,
    handle: &'a str,
    text: &'a str,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let (_, meta, session) = sessions.load(&args.session)?;
    let Some(handle) = &args.handle else { return list(sessions, &session) };
    let part = match (&args.lines, &args.grep) {
        (Some((first, last)), _) => RecallPart::Lines(*first, *last),
        (None, Some(pattern)) => RecallPart::Pattern(pattern.clone()),
        (None, None) => RecallPart::Whole,
    };
    let text = session.recall(handle, &part);
    let text = text.map_err(|error| Failure::Input(format!("{error} (--list says which there are)")))?;
    if sessions.json {
        return sessions.say(&Recalled { session: meta.id.to_string(), handle, text: &text }, "");
    }
    // As it is: no colour, no line added.
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn list(sessions: &Sessions<'_>, session: &Session) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let mut none = true;
    for (edit, active) in session.ledger().edits() {
        for handle in &edit.originals {
            none = false;
            let line = HandleLine {
                handle: if sessions.json { handle.to_string() } else { handle.short() },
                edit: edit.id.0,
                kind: edit.kind.name(),
                covers: undo::covers(edit),
                tokens: edit.before.0,
                active,
            };
            if sessions.json {
                writeln!(out, "{}", terminal::json(&line)?)?;
            } else {
                let undone = if active { "" } else { ", undone" };
                let HandleLine { handle, kind, covers, tokens, edit, .. } = line;
                let size = terminal::short(tokens);
                writeln!(out, "{handle}  {size:>6}  {kind} {edit} of {covers}{undone}")?;
            }
        }
    }
    if none && !sessions.json {
        writeln!(out, "Nothing was taken out.")?;
    }
    Ok(())
}
