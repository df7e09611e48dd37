//! `longhaul replay`: recorded sessions through the engine, call by call.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use longhaul::size::Measure;
use longhaul::{Edit, EditId, Message, Profile, Role, Tokens};
use longhaul_config::Config;
use serde::Serialize;

use crate::arguments::{binds, say_unknown_model};
use crate::error::Failure;
use crate::lab::figures::Figures;
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::losing::Losing;
use crate::lab::needs::{Holdings, Needs, text_of};
use crate::lab::pieces::PieceCache;
use crate::lab::prices::{PriceRule, Prices};
use crate::lab::recorded::{MeterKind, RecordedSession, window_of};
use crate::lab::summariser::{Summaries, SummariserKind};
use crate::lab::transcript_file::TranscriptFile;
use crate::lab::views::{ViewLine, ViewsFile};
use crate::terminal;

/// Replay recorded sessions call by call: sizes, cost, time
#[derive(clap::Args)]
#[command(after_help = "\
Each assistant message is one call. Lines of the recorded agent's own
compaction are left out. Without --json, a table; `lose` counts sessions that
cost more than sending everything. Costs are in tokens of a prompt that no cache
is involved in: a repeated prefix and the rest are billed at the prices of the
model that answered, or of the one that --model names, or at --prices. The
engine decides by the same prices. Without a model they are 0.1 and 1.25. With
--summariser model the summaries are part of the cost: their prompts at these
prices, what is written at 5.

Examples:
  longhaul replay session.jsonl
  longhaul replay corpus/*.jsonl.gz --meter model
  longhaul replay session.jsonl --window 32000 --edits
  longhaul replay session.jsonl --window 32000 --views views.jsonl --json
  longhaul replay session.jsonl --meter neutral --prices 0.05,1.25
  longhaul replay session.jsonl --window 32000 --bound
  longhaul replay session.jsonl --window 32000 --summariser model")]
pub struct Args {
    /// Transcripts of Longhaul, Claude Code, Codex, pi, OpenHands, mini-swe-agent or
    /// SWE-agent, gzip or plain, or folders of them; `path#2` is one conversation of a
    /// file; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Tokens that fit into the model's window; without it, that of --model, or the profile's
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// How to compact
    #[arg(long, default_value = "longhaul", value_name = "P")]
    profile: String,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Model)]
    meter: MeterKind,
    /// The model to count for, where the transcript does not say. Decide and bill at its prices, whichever model answered
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Decide and bill at these prices: a token read from the cache and a new one, as factors of an ordinary one
    #[arg(long, value_name = "READ,WRITE")]
    prices: Option<Prices>,
    /// Decide at these prices, whatever the bill is at: to see what deciding by the true price is worth
    #[arg(long, value_name = "READ,WRITE")]
    decide_at: Option<Prices>,
    /// Tokens that each request allows its answer, as `max_tokens` does; without it, the longest answer of the model
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// As if models bound thinking to what stands before it, as newer Claude models do: a fold takes all thinking after
    /// it. All thinking of the recording counts as signed. So it is with a --model that binds
    #[arg(long)]
    bound: bool,
    /// Who writes summaries
    #[arg(long, value_enum, default_value_t = SummariserKind::Extractor)]
    summariser: SummariserKind,
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

impl Args {
    fn bound(&self) -> bool {
        self.bound || binds(self.model.as_deref())
    }

    fn window_for(&self, profile: &Profile) -> Tokens {
        window_of(self.window, self.model.as_deref().unwrap_or_default(), profile)
    }
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let inputs = inputs::find(&args.files)?;
    say_unknown_model(args.model.as_deref().unwrap_or_default());
    let summaries = Summaries::of(args.summariser, config)?;
    let profile = summaries.for_profile(config.profile(&args.profile)?);
    let mut views = args.views.as_deref().map(|out| ViewsFile::create(out, &inputs)).transpose()?;
    let mut out = anstream::stdout().lock();
    let mut total = Total::default();
    let (mut read, mut unread) = (0, Unread::default());
    for (number, input) in inputs.iter().enumerate() {
        progress(number, inputs.len(), &input.path);
        let replayed = replay_file(args, &profile, &summaries, input, views.as_mut());
        terminal::clear_progress();
        let sessions = match replayed {
            Ok(sessions) => sessions,
            Err(failure) => {
                unread.add(input, failure)?;
                continue;
            }
        };
        if read == 0 && !args.json {
            writeln!(out, "{}", header())?;
        }
        read += 1;
        for (name, figures) in sessions {
            if args.json {
                let line = ReplayLine::new(&name, &profile.name, args.window_for(&profile), &figures);
                writeln!(out, "{}", terminal::json(&line)?)?;
            } else {
                writeln!(out, "{}", row(&short_name(Path::new(&name)), &figures, figures.losing()))?;
            }
            total.add(figures);
        }
    }
    if let Some(views) = views {
        views.finish()?;
    }
    if !args.json && read > 0 {
        summary(&mut out, args, args.window_for(&profile), &summaries, &total)?;
    }
    unread.finish(read)
}

/// The figures of all sessions.
#[derive(Default)]
struct Total {
    sessions: u64,
    losing: Losing,
    figures: Figures,
}

impl Total {
    fn add(&mut self, session: Figures) {
        self.sessions += 1;
        self.losing.add(session.losing());
        self.figures.add(session);
    }
}

/// The conversations of a file, with their names: the path, and `path#n` for all but the main
/// one.
fn replay_file(
    args: &Args,
    profile: &Profile,
    summaries: &Summaries,
    input: &Input,
    mut views: Option<&mut ViewsFile>,
) -> Result<Vec<(String, Figures)>, Failure> {
    let mut reader = TranscriptFile::open(input)?;
    let mut sessions: BTreeMap<usize, Replay<'_>> = BTreeMap::new();
    while let Some((number, message)) = reader.next() {
        let replay = sessions
            .entry(number)
            .or_insert_with(|| Replay::new(args, profile, summaries, reader.name(number)));
        replay.message(message, views.as_deref_mut())?;
    }
    reader.finish(sessions.is_empty())?;
    Ok(sessions.into_values().map(|replay| (replay.name, replay.figures)).collect())
}

/// One conversation on its way.
struct Replay<'a> {
    args: &'a Args,
    name: String,
    recorded: RecordedSession,
    /// The whole log at the call before.
    full_before: Option<Measure>,
    edits_seen: u32,
    needs: Needs,
    held: Holdings,
    pieces: PieceCache,
    figures: Figures,
}

impl<'a> Replay<'a> {
    fn new(args: &'a Args, profile: &Profile, summaries: &Summaries, name: String) -> Self {
        let model = args.model.as_deref().unwrap_or_default();
        let recorded = RecordedSession::new(profile.clone(), model, args.window_for(profile), args.meter);
        let recorded = recorded
            .with_prices(PriceRule::new(args.prices, args.model.as_deref()))
            .deciding_at(args.decide_at)
            .with_bound_thinking(args.bound())
            .with_max_output(args.max_tokens)
            .with_summaries(summaries.clone());
        Self {
            args,
            name,
            recorded,
            full_before: None,
            edits_seen: 0,
            needs: Needs::new(|text| text.len() as f64),
            held: Holdings::default(),
            pieces: PieceCache::default(),
            figures: Figures::default(),
        }
    }

    fn message(&mut self, message: Message, views: Option<&mut ViewsFile>) -> Result<(), Failure> {
        if message.is_recorded_compaction() {
            self.recorded.was_compacted();
            return Ok(());
        }
        if message.role() == Role::Assistant {
            self.call(&message, views)?;
        }
        if self.args.json {
            self.needs.push(&message, &text_of(&message));
        }
        self.recorded.push(message);
        Ok(())
    }

    /// What would be sent to get this answer.
    fn call(&mut self, answer: &Message, views: Option<&mut ViewsFile>) -> Result<(), Failure> {
        let (started, spent) = (Instant::now(), self.recorded.spent());
        let prepared = self.recorded.prepare_for(answer);
        let took = started.elapsed().saturating_sub(self.recorded.waited());
        let prepare_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let spent = self.recorded.spent().since(spent);
        let prices = self.recorded.prices();

        // All sizes of a call are of one scale: that of its request, which what the answer teaches does not change.
        let is_scaled = self.recorded.is_scaled();
        if !is_scaled {
            self.learn(answer);
        }
        let full = self.recorded.full_tokens();
        let full_before = self.full_before.map_or(Tokens::ZERO, |before| self.recorded.tokens_of(before));
        let sent = if prepared.is_ok() { self.recorded.sent() } else { None };
        let tokens =
            sent.as_ref().map_or(self.recorded.tokens(), |sent| sent.billed.read + sent.billed.written);
        self.figures.add_call(full, full_before.min(full), sent, prices);
        self.figures.add_time(prepare_us);
        self.figures.add_summaries(spent, prices);
        let first_new = self.edits_seen;
        self.edits_seen = self.recorded.session().ledger().next_id().0;
        self.figures.add_edits(u64::from(self.edits_seen.saturating_sub(first_new)));
        if self.args.edits {
            let edits = self.recorded.session().ledger().edits().skip(first_new as usize);
            let new: Vec<&Edit> = edits.map(|(edit, _)| &**edit).collect();
            if first_new == 0 && !new.is_empty() {
                writeln!(io::stdout(), "{}", terminal::one_line(&self.name, usize::MAX))?;
            }
            for line in terminal::edits(&new) {
                writeln!(io::stdout(), "  before call {}: {line}", self.figures.calls)?;
            }
        }
        if prepared.is_ok() {
            self.figures.add_violations(self.recorded.violations());
            self.figures.thinking.add(self.recorded.thinking());
            if self.args.json {
                let view = self.pieces.of_view(self.recorded.session().view(), &mut self.needs);
                self.held.change(view.kept, &view.parts, view.tail);
                let recorded = &self.recorded;
                let found = self.held.judge(&self.needs, answer, |at| recorded.is_recallable(at));
                self.figures.add_found(found);
            }
        }
        if let Some(views) = views {
            let session = self.recorded.session();
            views.write(&ViewLine {
                transcript: &self.name,
                number: self.figures.calls,
                upto: session.log().messages().len(),
                tokens,
                full_tokens: full,
                edits: (first_new..self.edits_seen).map(EditId).collect(),
                summary_cost: spent.cost(prices),
                prepare_us,
                view: prepared.map(|()| session.view()).map_err(|problem| problem.to_string()),
            })?;
        }
        self.full_before = Some(self.recorded.session().full());
        if is_scaled {
            self.learn(answer);
        }
        Ok(())
    }

    fn learn(&mut self, answer: &Message) {
        let growth_error = self.recorded.learn(answer);
        growth_error.into_iter().for_each(|error| self.figures.add_growth_error(error));
    }
}

fn short_name(path: &Path) -> String {
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    terminal::one_line(name.trim_end_matches(".gz").trim_end_matches(".jsonl"), 24)
}

fn header() -> String {
    columns(
        "transcript",
        ["calls", "errors", "peak", "sent", "cost", "edits", "breaks", "lose"].map(str::to_owned),
    )
}

fn row(name: &str, figures: &Figures, losing: Losing) -> String {
    let figures = [
        terminal::short(figures.calls),
        terminal::short(figures.errors),
        terminal::short(figures.peak_sent.0),
        terminal::short(figures.tokens_sent),
        terminal::short(figures.cost_sent()),
        terminal::short(figures.edits),
        terminal::short(figures.breaks),
        terminal::short(losing.sessions),
    ];
    columns(name, figures)
}

/// A name and eight figures, in 80 columns.
fn columns(name: &str, figures: [String; 8]) -> String {
    format!("{name:24}{}", figures.map(|figure| format!("{figure:>7}")).concat())
}

fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", terminal::wrapped(text, terminal::width()).join("\n"))
}

fn summary(
    out: &mut impl Write,
    args: &Args,
    window: Tokens,
    summaries: &Summaries,
    total: &Total,
) -> io::Result<()> {
    let (strong, faint) = (terminal::STRONG, terminal::FAINT);
    let Total { sessions, losing, figures: total } = total;
    let full = total.cost_full();
    writeln!(out, "{strong}{}{strong:#}", row("all", total, *losing))?;
    writeln!(out)?;
    let prices = match total.prices() {
        Some(prices) => format!("a repeated prefix × {}, what is new × {}", prices.read(), prices.write()),
        None => "each call at the prices of its model".to_owned(),
    };
    let cost = format!(
        "{} at a window of {}: {} tokens sent. They cost {}, {} of the whole log's {} (in tokens: {prices}).",
        terminal::counted(total.calls, "call", "calls"),
        terminal::grouped(window.0),
        terminal::short(total.tokens_sent),
        terminal::short(total.cost_sent()),
        terminal::percent((full > 0).then(|| total.cost_sent() as f64 / full as f64)),
        terminal::short(full),
    );
    paragraph(out, &cost)?;
    if losing.sessions > 0 {
        let losses = format!(
            "{} of {} cost more than sending everything: together {} of its bill.",
            terminal::grouped(losing.sessions),
            terminal::counted(*sessions, "session", "sessions"),
            terminal::percent((full > 0).then(|| losing.cost / (full as f64 * 1_000.0))),
        );
        paragraph(out, &losses)?;
    }
    if let Some(name) = summaries.name() {
        terminal::summaries(out, &format!("Summaries by {name}"), total.summaries, total.summary_cost())?;
    }
    if let Some(kept) = total.thinking.kept().filter(|_| args.bound()) {
        let thinking = format!(
            "Of the thinking before each call, {} was sent; edits took {}, other changes {}.",
            terminal::percent(Some(kept)),
            terminal::percent(total.thinking.lost_folds()),
            terminal::percent(total.thinking.lost_others()),
        );
        paragraph(out, &thinking)?;
    }
    if total.errors > 0 {
        writeln!(
            out,
            "{} calls do not fit: what must stay is over the limit.",
            terminal::grouped(total.errors)
        )?;
    }
    if total.violations > 0 {
        writeln!(
            out,
            "{}{} rules broken.{:#}",
            terminal::BAD,
            terminal::grouped(total.violations),
            terminal::BAD
        )?;
    }
    if let (low, windows @ 1..) = total.growth_too_low() {
        let growth = format!(
            "How prompts grow over 10 calls was foreseen within {} (median), {} (p90); too low {} of {} times.",
            terminal::percent(total.growth_error(50)),
            terminal::percent(total.growth_error(90)),
            terminal::grouped(low as u64),
            terminal::grouped(windows as u64),
        );
        paragraph(out, &growth)?;
    }
    if let (Some(p50), Some(p99)) = (total.prepare_us(50), total.prepare_us(99)) {
        writeln!(out, "{faint}Preparing a view took {p50} µs (median), {p99} µs (p99).{faint:#}")?;
    }
    Ok(())
}

fn progress(number: usize, of: usize, path: &Path) {
    if of > 1 {
        terminal::show_progress(format_args!("{}/{of} {}", number + 1, short_name(path)));
    }
}

/// The JSON line of a transcript. Shares of nothing are null.
#[derive(Serialize)]
struct ReplayLine<'a> {
    transcript: &'a str,
    profile: &'a str,
    window: u64,
    calls: u64,
    errors: u64,
    tokens_full: u64,
    tokens_sent: u64,
    peak_full: u64,
    peak_sent: u64,
    cost_full: u64,
    cost_sent: u64,
    /// It cost more than sending everything.
    losing: bool,
    prefix_breaks: u64,
    edits: u64,
    retention: Option<f64>,
    in_line: Option<f64>,
    near: Option<f64>,
    reachable: Option<f64>,
    prepare_us_p50: Option<u64>,
    prepare_us_p99: Option<u64>,
    growth_error_p50: Option<f64>,
    growth_error_p90: Option<f64>,
    violations: u64,
    thinking_kept: Option<f64>,
    thinking_lost_folds: Option<f64>,
    thinking_lost_others: Option<f64>,
    summary_calls: u64,
    summary_input: u64,
    summary_output: u64,
    summary_failed: u64,
    /// What they cost: a part of `cost_sent`.
    summary_cost: u64,
}

impl<'a> ReplayLine<'a> {
    fn new(transcript: &'a str, profile: &'a str, window: Tokens, figures: &Figures) -> Self {
        Self {
            transcript,
            profile,
            window: window.0,
            calls: figures.calls,
            errors: figures.errors,
            tokens_full: figures.tokens_full,
            tokens_sent: figures.tokens_sent,
            peak_full: figures.peak_full.0,
            peak_sent: figures.peak_sent.0,
            cost_full: figures.cost_full(),
            cost_sent: figures.cost_sent(),
            losing: figures.losing().sessions > 0,
            prefix_breaks: figures.breaks,
            edits: figures.edits,
            retention: figures.found.retention(),
            in_line: figures.found.in_line(),
            near: figures.found.near(),
            reachable: figures.found.reachable(),
            prepare_us_p50: figures.prepare_us(50),
            prepare_us_p99: figures.prepare_us(99),
            growth_error_p50: figures.growth_error(50),
            growth_error_p90: figures.growth_error(90),
            violations: figures.violations,
            thinking_kept: figures.thinking.kept(),
            thinking_lost_folds: figures.thinking.lost_folds(),
            thinking_lost_others: figures.thinking.lost_others(),
            summary_calls: figures.summaries.calls,
            summary_input: figures.summaries.input,
            summary_output: figures.summaries.output,
            summary_failed: figures.summaries.failed,
            summary_cost: figures.summary_cost(),
        }
    }
}
