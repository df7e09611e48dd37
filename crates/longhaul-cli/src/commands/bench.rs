//! `longhaul bench`: all profiles and the reference policies over a folder of recorded
//! sessions, one measure for all.

mod verdict;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use longhaul::{Message, Profile};
use longhaul_config::Config;
use serde::Serialize;

use crate::arguments::{binds, say_unknown_model};
use crate::error::Failure;
use crate::lab::comparison::{Comparison, Tallies, Tally};
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::prices::{PriceRule, Prices};
use crate::lab::recorded::MeterKind;
use crate::lab::summariser::{Summaries, SummariserKind};
use crate::lab::transcript_file::TranscriptFile;
use crate::terminal;

/// Compare profiles and reference policies over recorded sessions
#[derive(clap::Args)]
#[command(after_help = "\
Cost is relative to sending the whole log at each call. `in line` ranks: of
what the next calls need and was last seen long ago, the share whose whole
line is in the view. docs/measuring.md explains every column.

Examples:
  longhaul bench corpus
  longhaul bench corpus --window 64000 --json > bench.jsonl
  longhaul bench session.jsonl --window 32000 --summariser model
  longhaul bench corpus --prices 0.05,1.25
  longhaul bench corpus --window 64000 --bound
  longhaul bench corpus --model claude-opus-5-5")]
pub struct Args {
    /// Folders of transcripts, or transcripts; `path#2` is one conversation of a file
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Tokens that fit into the model's window
    #[arg(long, default_value = "200000", value_name = "N", value_parser = crate::arguments::window)]
    window: u64,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Neutral)]
    meter: MeterKind,
    /// Who writes the summaries of profiles; what a model costs is part of the cost
    #[arg(long, value_enum, default_value_t = SummariserKind::Extractor)]
    summariser: SummariserKind,
    /// Decide and bill at the prices of this model, instead of 0.1 and 1.25
    #[arg(long, value_name = "NAME", conflicts_with = "prices")]
    model: Option<String>,
    /// Decide and bill at these prices: a token read from the cache and a new one, as factors of an ordinary one
    #[arg(long, value_name = "READ,WRITE")]
    prices: Option<Prices>,
    /// As if models bound thinking to what stands before it, as newer Claude models do. So it is with a --model that binds
    #[arg(long)]
    bound: bool,
    /// Print one JSON line per format and policy instead of tables
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values instead of tables
    #[arg(long)]
    csv: bool,
}

impl Args {
    fn bound(&self) -> bool {
        self.bound || binds(self.model.as_deref())
    }
}

/// One row of the table, for scripts.
#[derive(Serialize)]
struct PolicyRow<'a> {
    agent: &'a str,
    policy: &'a str,
    window: u64,
    calls: u64,
    errors: u64,
    cost: Option<f64>,
    real_cost: Option<f64>,
    sent: Option<f64>,
    in_line: Option<f64>,
    retention: Option<f64>,
    near: Option<f64>,
    /// The same by what a need was last seen in: how many needs, and the share in view.
    near_by_origin: BTreeMap<&'static str, (u64, f64)>,
    reachable: Option<f64>,
    files_named: Option<f64>,
    breaks: Option<f64>,
    peak: u64,
    violations: u64,
    us_per_call: Option<f64>,
    summary_calls: u64,
    summary_input: u64,
    summary_output: u64,
    summary_failed: u64,
    sessions: u64,
    losing: u64,
    losing_over_2: u64,
    losing_over_5: u64,
    losses: Option<f64>,
    thinking_kept: Option<f64>,
    thinking_lost_folds: Option<f64>,
    thinking_lost_others: Option<f64>,
}

impl<'a> PolicyRow<'a> {
    fn new(agent: &'a str, policy: &'a str, window: u64, sessions: u64, tally: &Tally) -> Self {
        let share = |part: f64, of: f64| (of > 0.0).then(|| part / of);
        Self {
            agent,
            policy,
            window,
            calls: tally.calls,
            errors: tally.errors,
            cost: share(tally.cost, tally.full_cost),
            real_cost: share(tally.real_cost, tally.full_real_cost),
            sent: share(tally.sent, tally.full_sent),
            in_line: tally.found.in_line(),
            retention: tally.found.retention(),
            near: tally.found.near(),
            near_by_origin: {
                let near = tally.found.near_by_origin();
                near.map(|(origin, count, share)| (origin.name(), (count, share))).collect()
            },
            reachable: tally.found.reachable(),
            files_named: share(tally.named as f64, tally.changed as f64),
            breaks: share(tally.breaks as f64, tally.calls as f64),
            peak: tally.peak.round() as u64,
            violations: tally.violations,
            us_per_call: share(tally.micros as f64, tally.calls as f64),
            summary_calls: tally.summaries.calls,
            summary_input: tally.summaries.input,
            summary_output: tally.summaries.output,
            summary_failed: tally.summaries.failed,
            sessions,
            losing: tally.losing.sessions,
            losing_over_2: tally.losing.over_2,
            losing_over_5: tally.losing.over_5,
            losses: share(tally.losing.cost, tally.full_cost),
            thinking_kept: tally.thinking.kept(),
            thinking_lost_folds: tally.thinking.lost_folds(),
            thinking_lost_others: tally.thinking.lost_others(),
        }
    }
}

impl PolicyRow<'_> {
    /// True for a policy that does not keep to the window.
    fn is_over(&self) -> bool {
        self.peak > self.window
    }
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let files = inputs::find(&args.paths)?;
    let summaries = Summaries::of(args.summariser, config)?;
    let profiles = config.profiles().map(|profile| summaries.for_profile(profile));
    let profiles = iter::once(Profile::entry_only()).chain(profiles).collect();
    say_unknown_model(args.model.as_deref().unwrap_or_default());
    let comparison = Comparison {
        profiles,
        window: args.window,
        meter: args.meter,
        summaries,
        model: args.model.clone(),
        prices: PriceRule::new(args.prices, args.model.as_deref()),
        bound: args.bound(),
    };
    let results: Mutex<BTreeMap<usize, Result<Benched, Failure>>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len()).max(1);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(input) = files.get(at) else { break };
                    progress(at + 1, files.len(), &input.path);
                    let tallies = bench(&comparison, input);
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(at, tallies);
                }
            });
        }
    });
    terminal::clear_progress();
    let mut found = Groups::default();
    let mut unread = Unread::default();
    for (at, tallies) in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match tallies {
            Ok(Benched { format, sessions, tallies }) => {
                found.all.add(sessions, &tallies);
                found.formats.entry(format).or_default().add(sessions, &tallies);
            }
            Err(failure) => unread.add(&files[at], failure)?,
        }
    }
    let read = found.all.files;
    if read > 0 {
        print(&mut anstream::stdout().lock(), args, config.profile_name(), comparison.factors(), &found)?;
    }
    unread.finish(read)
}

/// What was found in all files, and in those of each format.
#[derive(Default)]
struct Groups {
    all: Group,
    formats: BTreeMap<&'static str, Group>,
}

#[derive(Default)]
struct Group {
    files: usize,
    sessions: u64,
    tallies: Tallies,
}

impl Group {
    fn add(&mut self, sessions: u64, tallies: &Tallies) {
        self.files += 1;
        self.sessions += sessions;
        self.tallies.add(tallies);
    }

    /// `12 files, 3,456 calls`.
    fn extent(&self) -> String {
        let Tallies(tallies) = &self.tallies;
        let calls = tallies.iter().map(|(_, tally)| tally.calls + tally.errors).max().unwrap_or_default();
        let files = terminal::counted(self.files as u64, "file", "files");
        format!("{files}, {}", terminal::counted(calls, "call", "calls"))
    }
}

/// A transcript that all policies and profiles were taken over.
struct Benched {
    format: &'static str,
    sessions: u64,
    tallies: Tallies,
}

/// All policies and profiles over one transcript.
fn bench(comparison: &Comparison, input: &Input) -> Result<Benched, Failure> {
    let mut file = TranscriptFile::open(input)?;
    let mut conversations: BTreeMap<usize, Vec<Arc<Message>>> = BTreeMap::new();
    for (number, message) in file.by_ref() {
        conversations.entry(number).or_default().push(Arc::new(message));
    }
    file.finish(conversations.is_empty())?;
    let (mut sums, sessions) = (Tallies::default(), conversations.len() as u64);
    for messages in conversations.into_values() {
        sums.add(&comparison.over(messages));
    }
    Ok(Benched { format: file.format(), sessions, tallies: sums })
}

fn print(out: &mut impl Write, args: &Args, profile: &str, prices: Prices, found: &Groups) -> io::Result<()> {
    let all = [("all", &found.all)];
    let formats = found.formats.iter().map(|(format, group)| (*format, group));
    if args.json {
        let groups = formats.chain(all);
        return groups
            .flat_map(|(name, group)| rows(name, args.window, group))
            .try_for_each(|row| writeln!(out, "{}", terminal::json(&row)?));
    }
    if args.csv {
        writeln!(
            out,
            "agent,policy,window,calls,errors,cost,real_cost,sent,in_line,retention,near,reachable,files_named,breaks,peak,violations,us_per_call,\
             summary_calls,summary_input,summary_output,summary_failed,sessions,losing,losing_over_2,losing_over_5,losses,\
             thinking_kept,thinking_lost_folds,thinking_lost_others"
        )?;
        let mut rows = formats.chain(all).flat_map(|(name, group)| rows(name, args.window, group));
        return rows.try_for_each(|row| writeln!(out, "{}", csv(&row)));
    }
    if let Some(verdict) = verdict::verdict(profile, args.window, &found.all.tallies) {
        writeln!(out, "{}\n", terminal::wrapped(&verdict, terminal::width()).join("\n"))?;
    }
    let meter = match args.meter {
        MeterKind::Neutral => "neutral meter (bytes / 4)",
        MeterKind::Model => "the model's meter",
    };
    let window = terminal::grouped(args.window);
    let billed = match (&args.prices, &args.model) {
        (None, None) => String::new(),
        _ => format!(", prices {prices}"),
    };
    // Of one format there is one table.
    let formats: Vec<_> = if found.formats.len() == 1 { Vec::new() } else { formats.collect() };
    let name = match found.formats.keys().next() {
        Some(format) if formats.is_empty() => format,
        _ => "all",
    };
    let bound = if args.bound() { ", thinking bound" } else { "" };
    table(out, name, args, prices, &found.all, &format!("; window {window}, {meter}{billed}{bound}"))?;
    formats.into_iter().try_for_each(|(name, group)| {
        writeln!(out)?;
        table(out, name, args, prices, group, "")
    })
}

fn rows<'a>(name: &'a str, window: u64, group: &'a Group) -> impl Iterator<Item = PolicyRow<'a>> {
    let Tallies(tallies) = &group.tallies;
    tallies.iter().map(move |(policy, tally)| PolicyRow::new(name, policy, window, group.sessions, tally))
}

fn table(
    out: &mut impl Write,
    name: &str,
    args: &Args,
    prices: Prices,
    group: &Group,
    about: &str,
) -> io::Result<()> {
    let window = args.window;
    let strong = terminal::STRONG;
    writeln!(out, "{strong}{name}{strong:#}: {}{about}", group.extent())?;
    let titles = ["cost", "real", "line", "ret", "near", "files", "lose", "brk", "peak", "viol"];
    writeln!(out, "{}", columns("", &titles))?;
    for row in rows(name, window, group) {
        writeln!(out, "{}", line(&row))?;
    }
    if rows(name, window, group).any(|row| row.is_over()) {
        let faint = terminal::FAINT;
        writeln!(out, "{faint}* has requests that are larger than the window: see peak.{faint:#}")?;
    }
    if args.bound() {
        thinking(out, rows(name, window, group))?;
    }
    let Tallies(tallies) = &group.tallies;
    for (policy, tally) in tallies.iter().filter(|(_, tally)| tally.summaries.calls > 0) {
        let cost = tally.summaries.cost(prices);
        terminal::summaries(out, &format!("Summaries of {policy}"), tally.summaries, cost)?;
    }
    Ok(())
}

/// What became of thinking, for each policy that may lose some.
fn thinking<'a>(out: &mut impl Write, rows: impl Iterator<Item = PolicyRow<'a>>) -> io::Result<()> {
    let mut rows = rows.filter(|row| row.thinking_kept.is_some()).peekable();
    if rows.peek().is_some() {
        writeln!(out, "{:22}{:>6}{:>12}{:>12}", "thinking", "kept", "lost: edits", "others")?;
    }
    rows.try_for_each(|row| {
        let shares = [row.thinking_kept, row.thinking_lost_folds, row.thinking_lost_others].map(percent);
        writeln!(out, "{:22}{:>6}{:>12}{:>12}", row.policy, shares[0], shares[1], shares[2])
    })
}

fn percent(share: Option<f64>) -> String {
    match share.map(|share| share * 100.0) {
        Some(percent) if percent < 1_000.0 => format!("{percent:.1}"),
        Some(percent) => format!("{percent:.0}"),
        None => "–".to_owned(),
    }
}

fn line(row: &PolicyRow<'_>) -> String {
    let figures = [
        percent(row.cost),
        percent(row.real_cost),
        percent(row.in_line),
        percent(row.retention),
        percent(row.near),
        percent(row.files_named),
        row.losing.to_string(),
        percent(row.breaks),
        terminal::short(row.peak),
        row.violations.to_string(),
    ];
    let mark = if row.is_over() { "*" } else { "" };
    let name = match row.errors {
        0 => format!("{}{mark}", row.policy),
        errors => format!("{}{mark} ({errors}!)", row.policy),
    };
    columns(&name, &figures.each_ref().map(String::as_str))
}

/// A name and ten figures, in 80 columns.
fn columns(name: &str, figures: &[&str; 10]) -> String {
    let width = |at: usize| if matches!(at, 7 | 9) { 5 } else { 6 };
    let figures = figures.iter().enumerate().map(|(at, figure)| format!("{figure:>0$}", width(at)));
    let figures = figures.collect::<String>();
    // A mark behind the longest name has the room before the first figure.
    let over = name.chars().count().saturating_sub(22).min(1);
    format!("{name:22}{}", figures.get(over..).filter(|_| figures.starts_with(' ')).unwrap_or(&figures))
}

fn csv(row: &PolicyRow<'_>) -> String {
    let number = |share: Option<f64>| share.map_or(String::new(), |share| format!("{share:.6}"));
    let text = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let fields = [
        text(row.agent),
        text(row.policy),
        row.window.to_string(),
        row.calls.to_string(),
        row.errors.to_string(),
        number(row.cost),
        number(row.real_cost),
        number(row.sent),
        number(row.in_line),
        number(row.retention),
        number(row.near),
        number(row.reachable),
        number(row.files_named),
        number(row.breaks),
        row.peak.to_string(),
        row.violations.to_string(),
        number(row.us_per_call),
        row.summary_calls.to_string(),
        row.summary_input.to_string(),
        row.summary_output.to_string(),
        row.summary_failed.to_string(),
        row.sessions.to_string(),
        row.losing.to_string(),
        row.losing_over_2.to_string(),
        row.losing_over_5.to_string(),
        number(row.losses),
        number(row.thinking_kept),
        number(row.thinking_lost_folds),
        number(row.thinking_lost_others),
    ];
    fields.join(",")
}

fn progress(number: usize, of: usize, path: &Path) {
    let done = 30 * number / of.max(1);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (filled, left) = ("#".repeat(done), " ".repeat(30 - done));
    terminal::show_progress(format_args!("[{filled}{left}] {number}/{of} {name:.40}"));
}
