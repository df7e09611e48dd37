//! `longhaul replay`: recorded sessions through the engine, call by call.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use longhaul::{
    Audited, Edit, EditId, Message, Meter, Model, Models, Prepared, Profile, Role, Session, Time, Tokens,
};

use crate::bench::{PieceCache, is_recallable};
use crate::config::Config;
use crate::error::Failure;
use crate::figures::{Figures, Growth, Line};
use crate::needs::{Holdings, Needs, text_of};
use crate::show;
use crate::source::{Source, push_recorded};
use crate::views::{Call, Views};

/// Replay recorded sessions call by call: sizes, cost, time
#[derive(clap::Args)]
#[command(after_help = "\
Each assistant message is one call. Lines of the recorded agent's own compaction
are left out. Without --json, a table; costs are in tokens, a repeated prefix at
0.1 and the rest at 1.25 each.

Examples:
  longhaul replay session.jsonl
  longhaul replay corpus/*.jsonl.gz --meter model
  longhaul replay session.jsonl --window 32000 --edits
  longhaul replay session.jsonl --window 32000 --views views.jsonl --json")]
pub struct Args {
    /// Transcripts of Longhaul, Claude Code, Codex, pi, OpenHands, mini-swe-agent or
    /// SWE-agent, gzip or plain; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Tokens that fit into the model's window
    #[arg(long, default_value_t = 200_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    window: u64,
    /// How to compact
    #[arg(long, default_value = "longhaul", value_name = "P")]
    profile: String,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Neutral)]
    meter: MeterKind,
    /// The model to count for, where the transcript does not say
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Write what would be sent at each call, one JSON line a call
    #[arg(long, value_name = "OUT.jsonl")]
    views: Option<PathBuf>,
    /// Print every edit as it is made: what, how much smaller, why, what is billed again
    #[arg(long, conflicts_with = "json")]
    edits: bool,
    /// Print one JSON line per transcript instead of a table
    #[arg(long)]
    json: bool,
}

/// How tokens are counted.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeterKind {
    /// UTF-8 bytes / 4, and 4 per message: the same for every model
    Neutral,
    /// The model's tokenizer, corrected by what its usage teaches
    Model,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    // All files are looked at before the first is replayed: a typing error in the last
    // name should not cost the work on the others.
    for path in &args.files {
        if path != Path::new("-") && !path.exists() {
            return Err(Failure::file(path, "no such file"));
        }
        if path.is_dir() {
            return Err(Failure::file(path, "is a folder, not a transcript"));
        }
    }
    let profile = config.offline(&args.profile)?;
    let mut views = args.views.as_deref().map(|out| Views::create(out, &args.files)).transpose()?;
    let mut out = anstream::stdout().lock();
    let mut total = Figures::default();
    if !args.json {
        writeln!(out, "{}", header())?;
    }
    for (number, path) in args.files.iter().enumerate() {
        progress(number, args.files.len(), path);
        let sessions = replay_file(args, &profile, path, views.as_mut())?;
        clear_progress();
        for (name, figures) in sessions {
            if args.json {
                let line = Line::new(&name, &profile.name, Tokens(args.window), &figures);
                writeln!(out, "{}", serde_json::to_string(&line).map_err(io::Error::from)?)?;
            } else {
                writeln!(out, "{}", row(short_name(Path::new(&name)), &figures))?;
            }
            total.add(figures);
        }
    }
    if let Some(views) = views {
        views.finish()?;
    }
    if !args.json {
        summary(&mut out, args, &total)?;
    }
    Ok(())
}

/// The conversations of a file, with their names: the path, and `path#n` for all but the main
/// one.
fn replay_file(
    args: &Args,
    profile: &Profile,
    path: &Path,
    mut views: Option<&mut Views>,
) -> Result<Vec<(String, Figures)>, Failure> {
    let mut reader = Source::open(path)?;
    let mut sessions: BTreeMap<usize, Replay<'_>> = BTreeMap::new();
    while let Some((number, message)) = reader.next() {
        let replay =
            sessions.entry(number).or_insert_with(|| Replay::new(args, profile, reader.name(number)));
        replay.message(message, views.as_deref_mut())?;
    }
    reader.finish(sessions.is_empty())?;
    Ok(sessions.into_values().map(|replay| (replay.name, replay.figures)).collect())
}

/// One conversation on its way.
struct Replay<'a> {
    args: &'a Args,
    name: String,
    session: Session,
    audited: Audited,
    growth: Growth,
    full_before: Tokens,
    now: Option<Time>,
    edits_seen: u32,
    needs: Needs,
    held: Holdings,
    pieces: PieceCache,
    figures: Figures,
}

impl<'a> Replay<'a> {
    fn new(args: &'a Args, profile: &Profile, name: String) -> Self {
        let model = model(args.model.as_deref().unwrap_or_default());
        let mut session = Session::new(profile.clone(), model).with_window(Tokens(args.window));
        if args.meter == MeterKind::Neutral {
            session = session.with_meter(Meter::neutral());
        }
        Self {
            args,
            name,
            session,
            audited: Audited::default(),
            growth: Growth::default(),
            full_before: Tokens::ZERO,
            now: None,
            edits_seen: 0,
            needs: Needs::new(|text| text.len() as f64),
            held: Holdings::default(),
            pieces: PieceCache::default(),
            figures: Figures::default(),
        }
    }

    fn message(&mut self, message: Message, views: Option<&mut Views>) -> Result<(), Failure> {
        if message.is_recorded_compaction() {
            self.growth.compacted();
            return Ok(());
        }
        if message.role() == Role::Assistant {
            self.call(&message, views)?;
        }
        self.now = self.now.max(message.time());
        if self.args.json {
            self.needs.push(&message, &text_of(&message));
        }
        let model = message.model().map(str::to_owned);
        push_recorded(&mut self.session, message);
        self.switch(model);
        Ok(())
    }

    /// What would be sent to get this answer.
    fn call(&mut self, answer: &Message, views: Option<&mut Views>) -> Result<(), Failure> {
        let started = Instant::now();
        let prepared = match self.session.prepare(self.now) {
            Ok(Prepared::Ready(_)) => None,
            Ok(Prepared::NeedsSummary(_)) => Some("a summary is needed from a model".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        let prepare_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);

        let full = self.session.meter().tokens(self.session.full()).tokens;
        let sent = if prepared.is_none() { self.session.sent() } else { None };
        self.figures.add_call(full, self.full_before.min(full), sent, prepare_us);
        let first_new = self.edits_seen;
        self.edits_seen = self.session.ledger().next_id().0;
        self.figures.add_edits(u64::from(self.edits_seen - first_new));
        if self.args.edits {
            let edits = self.session.ledger().edits().skip(first_new as usize);
            let new: Vec<&Edit> = edits.map(|(edit, _)| &**edit).collect();
            for line in show::edits(&new) {
                writeln!(io::stdout(), "{}, before call {}: {line}", self.name, self.figures.calls)?;
            }
        }
        if prepared.is_none() {
            let violations = self.session.audit_again(&mut self.audited);
            self.figures.add_violations(violations.len() as u64);
            if self.args.json {
                let view = self.session.view();
                let parts: Vec<_> =
                    view.parts().iter().map(|part| self.pieces.get(part, &mut self.needs)).collect();
                let tail = view.tail().map(|part| self.pieces.get(part, &mut self.needs));
                self.held.replace(&parts, tail.into_iter().collect());
                let session = &self.session;
                let found = self.held.judge(&self.needs, answer, |at| is_recallable(session, at));
                self.figures.add_found(found);
            }
        }
        if let Some(views) = views {
            views.write(&Call {
                transcript: &self.name,
                number: self.figures.calls,
                upto: self.session.log().messages().len(),
                tokens: self.session.size().tokens,
                full_tokens: full,
                edits: (first_new..self.edits_seen).map(EditId).collect(),
                prepare_us,
                view: prepared.map_or(Ok(self.session.view()), Err),
            })?;
        }
        self.full_before = full;
        if let Some(usage) = answer.usage() {
            let error = self.growth.call(self.session.full(), usage.prompt(), self.session.meter_mut());
            error.into_iter().for_each(|error| self.figures.add_growth_error(error));
        }
        Ok(())
    }

    /// The model of the calls to come: that of the frame in force, else of the last answer.
    fn switch(&mut self, answered: Option<String>) {
        if self.args.meter == MeterKind::Neutral {
            return;
        }
        let frame = self.session.log().frame().and_then(|frame| frame.model.as_deref());
        let Some(name) = frame.map(str::to_owned).or(answered) else { return };
        let model = model(&name);
        if model.name != self.session.model().name {
            self.session.switch(model);
            self.growth.compacted();
        }
    }
}

fn model(name: &str) -> Model {
    Models::builtin().find(name).clone()
}

fn short_name(path: &Path) -> String {
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    let name = name.trim_end_matches(".gz").trim_end_matches(".jsonl");
    match name.char_indices().nth(26) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

fn header() -> String {
    let titles = ["calls", "errors", "peak", "sent", "cost", "edits", "breaks"];
    format!("{:27}{}", "transcript", titles.map(|title| format!("{title:>7}")).concat())
}

fn row(name: String, figures: &Figures) -> String {
    let columns = [
        show::short(figures.calls),
        show::short(figures.errors),
        show::short(figures.peak_sent.0),
        show::short(figures.tokens_sent),
        show::short(figures.cost_sent()),
        show::short(figures.edits),
        show::short(figures.breaks),
    ];
    format!("{name:27}{}", columns.map(|column| format!("{column:>7}")).concat())
}

fn summary(out: &mut impl Write, args: &Args, total: &Figures) -> io::Result<()> {
    let (strong, faint) = (show::STRONG, show::FAINT);
    writeln!(out, "{strong}{}{strong:#}", row("all".to_owned(), total))?;
    writeln!(out)?;
    writeln!(
        out,
        "{} calls at a window of {}: {} sent, cost {} (whole log {}).",
        show::grouped(total.calls),
        show::grouped(args.window),
        show::short(total.tokens_sent),
        show::short(total.cost_sent()),
        show::short(total.cost_full()),
    )?;
    if total.errors > 0 {
        writeln!(out, "{} calls do not fit: what must stay is over the limit.", show::grouped(total.errors))?;
    }
    if total.violations > 0 {
        writeln!(out, "{}{} rules broken.{:#}", show::BAD, show::grouped(total.violations), show::BAD)?;
    }
    if let (low, windows @ 1..) = total.growth_too_low() {
        writeln!(
            out,
            "Growth over 10 calls: off by {} (median), {} (p90); too low in {} of {}.",
            show::percent(total.growth_error(50)),
            show::percent(total.growth_error(90)),
            show::grouped(low as u64),
            show::grouped(windows as u64),
        )?;
    }
    if let (Some(p50), Some(p99)) = (total.prepare_us(50), total.prepare_us(99)) {
        writeln!(out, "{faint}Preparing a view took {p50} µs (median), {p99} µs (p99).{faint:#}")?;
    }
    Ok(())
}

fn progress(number: usize, of: usize, path: &Path) {
    if of > 1 && io::stderr().is_terminal() {
        _ = write!(io::stderr(), "\r\x1b[K{}/{of} {}", number + 1, short_name(path));
    }
}

pub fn clear_progress() {
    if io::stderr().is_terminal() {
        _ = write!(io::stderr(), "\r\x1b[K");
    }
}
