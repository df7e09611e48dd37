//! `longhaul sessions search`.

use std::io::Write;
use std::ops::Range;

use longhaul_store::{Filter, Hit};
use serde::Serialize;

use super::{Sessions, Which, naming};
use crate::error::Failure;
use crate::terminal;

/// Find what was said in sessions, the newest first
#[derive(clap::Args)]
#[command(after_help = "\
All words must be in one message; pars* finds what starts so. Searched is what
persons and models said, and what was called (docs/sessions.md).

Examples:
  longhaul sessions search parse_header
  longhaul sessions search \"time zone\" --since 30d --json")]
pub struct Args {
    /// The words to look for
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    which: Which,
}

/// A message that was found, for scripts.
#[derive(Serialize)]
struct HitLine<'a> {
    session: String,
    title: &'a str,
    /// The number of the entry in the journal.
    entry: usize,
    snippet: &'a str,
    /// Where the words are in the snippet: first byte, and one past the last.
    found: Vec<(usize, usize)>,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let store = sessions.place.open()?;
    let hits = store.search(&args.query.join(" "), &args.which.filter(), args.which.limit())?;
    let mut out = anstream::stdout().lock();
    if sessions.json {
        for hit in &hits {
            let line = HitLine {
                session: hit.session.to_string(),
                title: &hit.title,
                entry: hit.at.0,
                snippet: &hit.snippet,
                found: hit.found.iter().map(|found| (found.start, found.end)).collect(),
            };
            writeln!(out, "{}", terminal::json(&line)?)?;
        }
        return Ok(());
    }
    if hits.is_empty() {
        writeln!(out, "Nothing was found in {}.", sessions.place)?;
        let listed = store.list(&args.which.filter(), usize::MAX)?;
        match listed.iter().filter(|meta| meta.without_content).count() {
            0 => {}
            1 => {
                writeln!(out, "One session was kept without content: nothing that was said in it is stored.")?
            }
            count => writeln!(
                out,
                "{count} sessions were kept without content: nothing that was said in them is stored."
            )?,
        }
        return Ok(());
    }
    let length = naming::length(&store.list(&Filter::default(), usize::MAX)?);
    let faint = terminal::FAINT;
    for hit in &hits {
        let id = naming::short(hit.session, length);
        let title = terminal::one_line(&hit.title, 40);
        writeln!(out, "{id}  {faint}entry {}  {title}{faint:#}", hit.at.0)?;
        writeln!(out, "    {}", highlighted(hit))?;
    }
    Ok(())
}

/// The snippet in one line, its words as they stand out on a terminal.
fn highlighted(hit: &Hit) -> String {
    let strong = terminal::STRONG;
    let mut spaced = true;
    let mut piece = |range: Range<usize>| {
        let text = hit.snippet.get(range).unwrap_or_default();
        let text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        // Of several spaces in a row one is enough.
        let text = text.filter(|c| !(std::mem::replace(&mut spaced, *c == ' ') && *c == ' '));
        terminal::cut(&text.collect::<String>(), usize::MAX)
    };
    let (mut line, mut at) = (String::new(), 0);
    for found in &hit.found {
        line += &piece(at..found.start);
        line += &format!("{strong}{}{strong:#}", piece(found.clone()));
        at = found.end;
    }
    line + &piece(at..hit.snippet.len())
}
