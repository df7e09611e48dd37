//! `longhaul bench`: all profiles and the reference policies over a folder of recorded
//! sessions, one measure for all.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use longhaul::{
    Audited, EditId, Message, Meter, Models, Part, Prepared, Profile, Role, Session, Time, Tokens, Vocabulary,
};
use serde::Serialize;

use crate::config::Config;
use crate::error::Failure;
use crate::needs::{Found, Holdings, Needs, Piece, text_of};
use crate::policies::{POLICIES, Recording, Run, View};
use crate::replay::MeterKind;
use crate::show;
use crate::source::{Source, push_recorded};

/// Compare profiles and reference policies over recorded sessions
#[derive(clap::Args)]
#[command(after_help = "\
Cost is relative to sending the whole log at each call. `in line` ranks: of what
the next calls need and was last seen long ago, the share whose whole line is in
the view. docs/measuring.md explains every column.

Examples:
  longhaul bench corpus
  longhaul bench corpus --window 64000 --json > bench.jsonl")]
pub struct Args {
    /// A folder of transcripts, or transcripts
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Tokens that fit into the model's window
    #[arg(long, default_value_t = 200_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    window: u64,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Neutral)]
    meter: MeterKind,
    /// Print one JSON line per agent and policy instead of tables
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values instead of tables
    #[arg(long)]
    csv: bool,
}

/// What a policy did over some sessions.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    calls: u64,
    errors: u64,
    cost: f64,
    sent: f64,
    peak: f64,
    breaks: u64,
    violations: u64,
    found: Found,
    micros: u64,
    /// What sending the whole log would have cost and been, at the same calls.
    full_cost: f64,
    full_sent: f64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.cost += other.cost;
        self.sent += other.sent;
        self.peak = self.peak.max(other.peak);
        self.breaks += other.breaks;
        self.violations += other.violations;
        self.found.add(other.found);
        self.micros += other.micros;
        self.full_cost += other.full_cost;
        self.full_sent += other.full_sent;
    }
}

/// One row of the table, for scripts.
#[derive(Serialize)]
struct Row<'a> {
    agent: &'a str,
    policy: &'a str,
    window: u64,
    calls: u64,
    errors: u64,
    cost: Option<f64>,
    sent: Option<f64>,
    in_line: Option<f64>,
    retention: Option<f64>,
    near: Option<f64>,
    reachable: Option<f64>,
    breaks: Option<f64>,
    peak: u64,
    violations: u64,
    us_per_call: Option<f64>,
}

impl<'a> Row<'a> {
    fn new(agent: &'a str, policy: &'a str, window: u64, tally: &Tally) -> Self {
        let share = |part: f64, of: f64| (of > 0.0).then(|| part / of);
        Self {
            agent,
            policy,
            window,
            calls: tally.calls,
            errors: tally.errors,
            cost: share(tally.cost, tally.full_cost),
            sent: share(tally.sent, tally.full_sent),
            in_line: tally.found.in_line(),
            retention: tally.found.retention(),
            near: tally.found.near(),
            reachable: tally.found.reachable(),
            breaks: share(tally.breaks as f64, tally.calls as f64),
            peak: tally.peak.round() as u64,
            violations: tally.violations,
            us_per_call: share(tally.micros as f64, tally.calls as f64),
        }
    }
}

/// Tallies by policy, in the order of the table.
type Tallies = Vec<(String, Tally)>;

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let files = files(&args.paths)?;
    let mut profiles = vec![Profile::entry_only()];
    for name in config.names() {
        profiles.push(config.offline(&name)?);
    }
    let results: Mutex<BTreeMap<usize, Result<Tallies, Failure>>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = files.get(at) else { break };
                    progress(at + 1, files.len(), path);
                    let tallies = bench(args, &profiles, path);
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(at, tallies);
                }
            });
        }
    });
    clear_progress();
    let mut agents: BTreeMap<String, Tallies> = BTreeMap::new();
    for (at, tallies) in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let tallies = tallies?;
        for agent in [agent_of(&files[at]), ALL.to_owned()] {
            let sums = agents.entry(agent).or_insert_with(|| {
                tallies.iter().map(|(name, _)| (name.clone(), Tally::default())).collect()
            });
            sums.iter_mut().zip(&tallies).for_each(|((_, sum), (_, tally))| sum.add(tally));
        }
    }
    let mut out = anstream::stdout().lock();
    print(&mut out, args, &agents)?;
    Ok(())
}

/// The name under which all agents are summed; sorts behind them.
const ALL: &str = "~all";

fn agent_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split_once("__").map_or("other", |(agent, _)| agent).to_owned()
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| Failure::file(path, error))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| path.is_file() && path.to_string_lossy().contains(".jsonl"));
        if found.is_empty() {
            return Err(Failure::file(path, "has no transcripts (*.jsonl, *.jsonl.gz)"));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// All policies and profiles over one transcript.
fn bench(args: &Args, profiles: &[Profile], path: &Path) -> Result<Tallies, Failure> {
    let mut source = Source::open(path)?;
    let mut sessions: BTreeMap<usize, Vec<Arc<Message>>> = BTreeMap::new();
    for (number, message) in source.by_ref() {
        sessions.entry(number).or_default().push(Arc::new(message));
    }
    source.finish(sessions.is_empty())?;
    let mut sums: Tallies = Vec::new();
    for messages in sessions.into_values() {
        let tallies = bench_session(args, profiles, messages);
        match sums.is_empty() {
            true => sums = tallies,
            false => sums.iter_mut().zip(&tallies).for_each(|((_, sum), (_, tally))| sum.add(tally)),
        }
    }
    Ok(sums)
}

/// All policies and profiles over one conversation.
fn bench_session(args: &Args, profiles: &[Profile], messages: Vec<Arc<Message>>) -> Tallies {
    let log: Vec<Arc<Message>> = messages.iter().filter(|m| !m.is_recorded_compaction()).cloned().collect();
    let (kept, whole): (Vec<_>, Vec<_>) = POLICIES.iter().partition(|policy| policy.recorded);
    let mut tallies = lockstep(args, log, &whole, profiles);
    let recorded = lockstep(args, messages, &kept, &[]);
    let place = POLICIES.iter().position(|policy| policy.recorded).unwrap_or_default();
    tallies.splice(place..place, recorded);
    tallies
}

/// A policy or a profile on its way.
struct Runner<'a> {
    name: String,
    kind: RunnerKind<'a>,
    held: Holdings,
    tally: Tally,
}

enum RunnerKind<'a> {
    Policy(Run<'a>),
    Profile { session: Box<Session>, audited: Audited, pieces: PieceCache },
}

/// Runs all policies over one log, call by call.
fn lockstep(
    args: &Args,
    messages: Vec<Arc<Message>>,
    policies: &[&crate::policies::Policy],
    profiles: &[Profile],
) -> Tallies {
    let mut needs = Needs::new(match args.meter {
        MeterKind::Neutral => |text| text.len() as f64 / 4.0 + 4.0,
        MeterKind::Model => |text| Vocabulary::O200k.count(text).tokens as f64 + 4.0,
    });
    let texts: Vec<String> = messages.iter().map(|message| text_of(message)).collect();
    let pieces = texts.iter().map(|text| needs.piece(text)).collect();
    let recording = Recording { messages, texts, pieces };
    let mut runners: Vec<Runner<'_>> = Vec::new();
    for policy in policies {
        let kind = RunnerKind::Policy(Run::new(**policy, args.window, &recording));
        runners.push(Runner {
            name: policy.name.to_owned(),
            kind,
            held: Holdings::default(),
            tally: Tally::default(),
        });
    }
    for profile in profiles {
        let model = Models::builtin().find("").clone();
        // What has no ladder is shown without a limit, as policies are that have none.
        let window = if profile.ladder.is_empty() { 1 << 40 } else { args.window };
        let mut session = Session::new(profile.clone(), model).with_window(Tokens(window));
        if args.meter == MeterKind::Neutral {
            session = session.with_meter(Meter::neutral());
        }
        let kind = RunnerKind::Profile {
            session: Box::new(session),
            audited: Audited::default(),
            pieces: PieceCache::default(),
        };
        runners.push(Runner {
            name: profile.name.to_string(),
            kind,
            held: Holdings::default(),
            tally: Tally::default(),
        });
    }
    let mut full = Full::default();
    let mut now = None;
    for (upto, message) in recording.messages.iter().enumerate() {
        if message.role() == Role::Assistant {
            let call = full.call(&recording, upto);
            for runner in &mut runners {
                runner.call(upto, message, now, call, &mut needs);
            }
        }
        now = now.max(message.time());
        needs.push(message, &recording.texts[upto]);
        for runner in &mut runners {
            if let RunnerKind::Profile { session, .. } = &mut runner.kind {
                push_recorded(session, message.clone());
            }
        }
    }
    runners.into_iter().map(|runner| (runner.name, runner.tally)).collect()
}

/// Pieces of the messages of a view, each made once.
#[derive(Default)]
pub struct PieceCache(HashMap<usize, (Arc<Message>, Arc<Piece>)>);

impl PieceCache {
    /// The piece of a part. The message is kept, so that its address stays its own.
    pub fn get(&mut self, part: &Part, needs: &mut Needs) -> Arc<Piece> {
        let known = self.0.entry(Arc::as_ptr(&part.message) as usize);
        known.or_insert_with(|| (part.message.clone(), needs.piece(&text_of(&part.message)))).1.clone()
    }
}

/// What sending the whole log costs.
#[derive(Default)]
struct Full {
    seen: usize,
    tokens: f64,
}

/// Cost and size of one call.
#[derive(Clone, Copy)]
struct FullCall {
    cost: f64,
    tokens: f64,
}

impl Full {
    /// Summaries of the recorded agent are not part of the log.
    fn call(&mut self, recording: &Recording, upto: usize) -> FullCall {
        let warm = self.tokens;
        for at in self.seen..upto {
            if !recording.messages[at].is_recorded_compaction() {
                self.tokens += recording.pieces[at].tokens;
            }
        }
        self.seen = upto;
        FullCall { cost: price(warm, self.tokens - warm), tokens: self.tokens }
    }
}

fn price(read: f64, written: f64) -> f64 {
    0.1 * read + 1.25 * written
}

impl Runner<'_> {
    fn call(&mut self, upto: usize, answer: &Message, now: Option<Time>, full: FullCall, needs: &mut Needs) {
        let tally = &mut self.tally;
        let started = Instant::now();
        let (view, tail) = match &mut self.kind {
            RunnerKind::Policy(run) => (run.view(upto, needs), Vec::new()),
            RunnerKind::Profile { session, audited, pieces } => {
                let ready = matches!(session.prepare(now), Ok(Prepared::Ready(_)));
                tally.micros += u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                if !ready {
                    tally.errors += 1;
                    return;
                }
                tally.violations += session.audit_again(audited).len() as u64;
                let parts = session.view().parts().iter().map(|part| pieces.get(part, needs)).collect();
                let tail = session.view().tail().map(|part| pieces.get(part, needs)).into_iter().collect();
                (View { parts, extra_cost: 0.0 }, tail)
            }
        };
        if let RunnerKind::Policy(_) = self.kind {
            tally.micros += u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        }
        let first = tally.calls == 0;
        let size = |pieces: &[Arc<Piece>]| pieces.iter().map(|piece| piece.tokens).sum::<f64>();
        let behind = size(&tail);
        let (common, broke) = self.held.replace(&view.parts, tail);
        let (warm, cold) = (size(&view.parts[..common]), size(&view.parts[common..]) + behind);
        tally.calls += 1;
        tally.cost += price(warm, cold) + view.extra_cost;
        tally.sent += warm + cold;
        tally.peak = tally.peak.max(warm + cold);
        tally.breaks += u64::from(broke && !first);
        tally.full_cost += full.cost;
        tally.full_sent += full.tokens;
        let found = match &self.kind {
            RunnerKind::Policy(_) => self.held.judge(needs, answer, |_| false),
            RunnerKind::Profile { session, .. } => {
                self.held.judge(needs, answer, |at| is_recallable(session, at))
            }
        };
        tally.found.add(found);
    }
}

/// True if the message is under a handle in the view.
pub fn is_recallable(session: &Session, at: u32) -> bool {
    let at = longhaul::At(at);
    let has_handle = |id: &EditId| session.ledger().get(*id).is_some_and(|edit| !edit.originals.is_empty());
    session.ledger().covering(at).is_some_and(|(_, id)| has_handle(&id))
        || session.ledger().inside(at).iter().any(has_handle)
}

fn print(out: &mut impl Write, args: &Args, agents: &BTreeMap<String, Tallies>) -> io::Result<()> {
    if args.csv {
        writeln!(
            out,
            "agent,policy,window,calls,errors,cost,sent,in_line,retention,near,reachable,breaks,peak,violations,us_per_call"
        )?;
    }
    for (agent, tallies) in agents {
        let agent = agent.trim_start_matches('~');
        if !(args.json || args.csv) {
            let calls = tallies.iter().map(|(_, tally)| tally.calls + tally.errors).max().unwrap_or_default();
            let (strong, window) = (show::STRONG, show::grouped(args.window));
            writeln!(out, "{strong}{agent}{strong:#}: {} calls, window {window}", show::grouped(calls))?;
            let titles = ["cost", "sent", "line", "ret", "near", "reach", "break", "peak", "viol", "µs"];
            writeln!(out, "{}", columns("", &titles))?;
        }
        for (policy, tally) in tallies {
            let row = Row::new(agent, policy, args.window, tally);
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&row).map_err(io::Error::from)?)?;
            } else if args.csv {
                writeln!(out, "{}", csv(&row))?;
            } else {
                writeln!(out, "{}", line(&row))?;
            }
        }
        if !(args.json || args.csv) {
            writeln!(out)?;
        }
    }
    Ok(())
}

fn line(row: &Row<'_>) -> String {
    let percent =
        |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1}", share * 100.0));
    let figures = [
        percent(row.cost),
        percent(row.sent),
        percent(row.in_line),
        percent(row.retention),
        percent(row.near),
        percent(row.reachable),
        percent(row.breaks),
        show::short(row.peak),
        row.violations.to_string(),
        row.us_per_call.map_or("–".to_owned(), |us| format!("{us:.0}")),
    ];
    let name =
        if row.errors > 0 { format!("{} ({}!)", row.policy, row.errors) } else { row.policy.to_owned() };
    columns(&name, &figures.each_ref().map(String::as_str))
}

/// A name and ten figures, in 80 columns.
fn columns(name: &str, figures: &[&str; 10]) -> String {
    let width = |at: usize| if at < 8 { 6 } else { 5 };
    let figures = figures.iter().enumerate().map(|(at, figure)| format!("{figure:>0$}", width(at)));
    format!("{name:22}{}", figures.collect::<String>())
}

fn csv(row: &Row<'_>) -> String {
    let number = |share: Option<f64>| share.map_or(String::new(), |share| format!("{share:.6}"));
    let text = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let fields = [
        text(row.agent),
        text(row.policy),
        row.window.to_string(),
        row.calls.to_string(),
        row.errors.to_string(),
        number(row.cost),
        number(row.sent),
        number(row.in_line),
        number(row.retention),
        number(row.near),
        number(row.reachable),
        number(row.breaks),
        row.peak.to_string(),
        row.violations.to_string(),
        number(row.us_per_call),
    ];
    fields.join(",")
}

fn progress(number: usize, of: usize, path: &Path) {
    if io::stderr().is_terminal() {
        let done = 30 * number / of.max(1);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        _ = write!(
            io::stderr(),
            "\r\x1b[K[{}{}] {number}/{of} {name:.40}",
            "#".repeat(done),
            " ".repeat(30 - done)
        );
    }
}

fn clear_progress() {
    if io::stderr().is_terminal() {
        _ = write!(io::stderr(), "\r\x1b[K");
    }
}
