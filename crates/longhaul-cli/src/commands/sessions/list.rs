//! `longhaul sessions list`.

use std::io::{self, Write};

use longhaul_store::{Filter, Meta};
use serde::Serialize;

use super::{Sessions, Which, naming, when};
use crate::error::Failure;
use crate::terminal;

/// List sessions, the one that was written to last first
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

/// What the store says of a session, for scripts.
#[derive(Serialize)]
pub struct MetaLine {
    id: String,
    parent: Option<String>,
    title: String,
    agent: String,
    project: String,
    model: String,
    created: String,
    updated: String,
    entries: usize,
    messages: u64,
    calls: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    without_content: bool,
    /// True on the last line of a list that is cut: there are more sessions than `--limit` lets through.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

impl MetaLine {
    pub fn new(meta: &Meta) -> Self {
        Self {
            id: meta.id.to_string(),
            parent: meta.parent.map(|id| id.to_string()),
            title: meta.title.clone(),
            agent: meta.agent.clone(),
            project: meta.project.clone(),
            model: meta.model.clone(),
            created: when::stamp(meta.created),
            updated: when::stamp(meta.updated),
            entries: meta.end.0,
            messages: meta.messages,
            calls: meta.calls,
            bytes: meta.bytes,
            without_content: meta.without_content,
            more: false,
        }
    }
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    if !sessions.place.is_there() {
        // Looking makes no store.
        if !sessions.json {
            writeln!(out, "There are no sessions yet in {}.", sessions.place)?;
        }
        return Ok(());
    }
    let store = sessions.place.open()?;
    let limit = args.which.limit();
    // One more than is shown tells whether the list is cut.
    let mut found = store.list(&args.which.filter(), limit.saturating_add(1))?;
    let is_cut = found.len() > limit;
    found.truncate(limit);
    if sessions.json {
        for (number, meta) in (1..).zip(&found) {
            let line = MetaLine { more: is_cut && number == found.len(), ..MetaLine::new(meta) };
            writeln!(out, "{}", terminal::json(&line)?)?;
        }
        return Ok(());
    }
    if found.is_empty() {
        let any = !store.list(&Filter::default(), 1)?.is_empty();
        match any {
            true => writeln!(out, "No session in {} is what was asked for.", sessions.place)?,
            false => writeln!(out, "There are no sessions yet in {}.", sessions.place)?,
        }
        return Ok(());
    }
    // An id is short among all sessions, not only among those that are listed.
    let length = naming::length(&store.list(&Filter::default(), usize::MAX)?);
    table(&mut out, &found, length)?;
    if is_cut {
        let faint = terminal::FAINT;
        writeln!(out, "{faint}There are more: --limit N.{faint:#}")?;
    }
    Ok(())
}

/// A column of the table: what stands over it, how wide it may be, and what it says of a session.
type Column = (&'static str, usize, fn(&Meta) -> String);

/// What a person works on is the last part of a path.
fn project(meta: &Meta) -> String {
    meta.project.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// Columns of figures; they are as wide as they must be.
const FIGURES: [Column; 4] = [
    ("when", 10, |meta| when::ago(meta.updated)),
    ("msgs", 6, |meta| terminal::short(meta.messages)),
    ("calls", 6, |meta| terminal::short(meta.calls)),
    ("size", 6, |meta| terminal::short(meta.bytes)),
];
/// Columns of words; one that says nothing is left out.
const WORDS: [Column; 2] = [("model", 14, |meta| meta.model.clone()), ("project", 12, project)];

/// A table of 80 columns.
fn table(out: &mut impl Write, found: &[Meta], length: usize) -> io::Result<()> {
    let mut lines: Vec<String> = vec![format!("{:length$}", "session")];
    lines.extend(found.iter().map(|meta| naming::short(meta.id, length)));
    for (number, (title, most, of)) in FIGURES.iter().chain(&WORDS).enumerate() {
        let cells: Vec<String> = found.iter().map(|meta| terminal::one_line(&of(meta), *most)).collect();
        let words = number >= FIGURES.len();
        if words && cells.iter().all(|cell| cell.is_empty() || cell == "unknown") {
            continue;
        }
        let cells: Vec<&str> = std::iter::once(*title).chain(cells.iter().map(String::as_str)).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
        for (line, cell) in lines.iter_mut().zip(cells) {
            // Figures stand to the right.
            *line +=
                &if words || number == 0 { format!("  {cell:width$}") } else { format!("  {cell:>width$}") };
        }
    }
    let strong = terminal::STRONG;
    for (number, line) in lines.iter().enumerate() {
        let room = 78_usize.saturating_sub(line.chars().count()).max(8);
        match number.checked_sub(1).and_then(|at| found.get(at)) {
            Some(meta) if meta.without_content => writeln!(out, "{line}  (without content)")?,
            Some(meta) => writeln!(out, "{line}  {}", terminal::one_line(&meta.title, room))?,
            None => writeln!(out, "{strong}{line}  title{strong:#}")?,
        }
    }
    Ok(())
}
