//! `longhaul report`: what the sessions on this machine cost, what filled them, and what Longhaul would have sent.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul::Profile;
use longhaul_config::Config;

use crate::error::Failure;
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::recorded::without_model;
use crate::report::bill::Prices;
use crate::report::cache::Cache;
use crate::report::days::{Calendar, Period};
use crate::report::files::{self, Progress, SessionFile, on_all_cores};
use crate::report::recorder::key;
use crate::report::replayed::{self, Replayed};
use crate::report::text::Found;
use crate::report::totals::{Filter, Totals};
use crate::report::{counted, csv, html, json, places, text};
use crate::terminal;

/// Say what the sessions on this machine cost, what filled them, and what Longhaul would save
#[derive(clap::Args)]
#[command(after_help = "\
Without a path, the sessions of Claude Code, Codex, pi and opencode are looked for
where these agents keep them. Each call is counted once, by the usage that the
files hold and the prices of the table of models; docs/report.md says how.

Examples:
  longhaul report                       everything on this machine
  longhaul report daily --since 7d      a row a day, the last week
  longhaul report session --project api the sessions of a project, dearest first
  longhaul report ~/old-sessions --json | jq .usd
  longhaul report monthly --csv > months.csv
  longhaul report --html report.html    one page with charts")]
pub struct Args {
    /// `daily`, `weekly`, `monthly` or `session` for one table; then files or folders
    #[arg(value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// Only calls from then on: 2026-03-02, 7d, 12h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only calls until then; a day is in it
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only sessions in folders with this in their path
    #[arg(long, value_name = "TEXT")]
    project: Option<String>,
    /// Only sessions of agents with this in their name: claude, codex, pi, opencode
    #[arg(long, value_name = "TEXT")]
    agent: Option<String>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values, a row for each day, agent, project and model
    #[arg(long)]
    csv: bool,
    /// Write one page with charts, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How many sessions are taken through Longhaul: `auto` for as many as are done in seconds, a number, `all` or
    /// `none`
    #[arg(long, value_name = "N", default_value = "auto")]
    replay: Sessions,
    /// How Longhaul would compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// Tokens of the window that Longhaul would work in; without it, that of the session
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// Read all files anew, and keep nothing for the next run
    #[arg(long)]
    no_cache: bool,
}

/// How many sessions are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sessions {
    Auto,
    Most(usize),
}

impl std::str::FromStr for Sessions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "all" => Ok(Self::Most(usize::MAX)),
            "none" => Ok(Self::Most(0)),
            number => {
                number.parse().map(Self::Most).map_err(|_| "not a number, `auto`, `all` or `none`".to_owned())
            }
        }
    }
}

/// Which table is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Period(Period),
    Sessions,
}

/// The name of a table, unless there is a file of that name.
fn table(path: &Path) -> Option<Table> {
    let table = match path.to_str()? {
        "daily" => Table::Period(Period::Day),
        "weekly" => Table::Period(Period::Week),
        "monthly" => Table::Period(Period::Month),
        "session" | "sessions" => Table::Sessions,
        _ => return None,
    };
    (!path.exists()).then_some(table)
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let calendar = Calendar::of_machine();
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let filter = Filter {
        since: args
            .since
            .as_deref()
            .map(|text| calendar.since(text, now))
            .transpose()
            .map_err(Failure::Input)?,
        until: args
            .until
            .as_deref()
            .map(|text| calendar.until(text, now))
            .transpose()
            .map_err(Failure::Input)?,
        project: args.project.clone(),
        agent: args.agent.clone(),
    };
    let profile = without_model(config.profile(args.profile.as_deref().unwrap_or(config.profile_name()))?);
    let table = args.paths.first().and_then(|path| table(path));
    let paths = if table.is_some() { &args.paths[1..] } else { &args.paths[..] };
    let inputs = find(paths)?;

    let mut cache = if args.no_cache { Cache::none() } else { Cache::load() };
    let mut read = files::read(&inputs, &mut cache);
    let mut unread = Unread::default();
    for (input, problem) in read.failed.drain(..) {
        match input.found {
            // Nobody asked for this one.
            true => {
                let name = terminal::one_line(&input.path.display().to_string(), 200);
                _ = writeln!(io::stderr(), "{name}: {problem}");
            }
            false => unread.add(&input, Failure::file(&input.path, problem))?,
        }
    }
    if read.files.is_empty() {
        cache.save();
        unread.finish(1)?;
        return Err(Failure::Input(match read.skipped {
            0 => "no session found".to_owned(),
            files => {
                let files = terminal::counted(files, "file has", "files have");
                format!("no session found: {files} no messages")
            }
        }));
    }
    keep_named(&inputs, &mut read.files);
    let repeated = counted::once(&mut read.files);
    filter.apply(&mut read.files);
    if read.files.is_empty() {
        cache.save();
        return Err(Failure::Input("no call is left by --since, --until, --project and --agent".to_owned()));
    }
    let mut prices = Prices::default();
    let totals = Totals::of(&read.files, &calendar, &mut prices);
    // A single table needs no replay.
    let asked = if table.is_some() || args.csv { Sessions::Most(0) } else { args.replay };
    let comparison = replay(&read.files, &profile, args.window, asked, &mut cache, &mut prices);
    cache.save();

    let found = Found {
        files: read.files.len() as u64,
        skipped: read.skipped,
        unread: read.files.iter().map(|file| file.scanned.unread).sum(),
        repeated,
        zone: calendar.zone(),
        profile: profile.name.to_string(),
        home: std::env::var("HOME").unwrap_or_default(),
    };
    if let Some(path) = &args.html {
        let page = html::page(&totals, &found, comparison.as_ref(), &mut prices, &calendar);
        std::fs::write(path, page).map_err(|error| Failure::file(path, error))?;
        _ = writeln!(io::stderr(), "{} written", path.display());
        if !(args.json || args.csv || table.is_some()) {
            return unread.finish(read.files.len());
        }
    }
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    if args.json {
        let value = json::report(&totals, &found, comparison.as_ref(), &mut prices, &calendar, table);
        writeln!(out, "{}", serde_json::to_string(&value).map_err(io::Error::from)?)?;
    } else if args.csv {
        csv::write(&mut out, &totals, &calendar, table)?;
    } else if let Some(table) = table {
        text::table(&mut out, &totals, &found, &calendar, table)?;
    } else {
        text::report(&mut out, &totals, &found, comparison.as_ref(), &mut prices, &calendar)?;
    }
    out.flush()?;
    unread.finish(read.files.len())
}

/// The files of the paths, or of the places where agents keep their sessions.
fn find(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    if !paths.is_empty() {
        return Ok(unique(inputs::find(paths)?));
    }
    let places = places::find();
    if places.is_empty() {
        let problem = "no sessions of Claude Code, Codex, pi or opencode are here: name a file or a folder";
        return Err(Failure::Input(problem.to_owned()));
    }
    let agents: BTreeSet<&str> = places.iter().map(|place| place.agent).collect();
    terminal::show_progress(format_args!("looking at {}", agents.into_iter().collect::<Vec<_>>().join(", ")));
    let paths: Vec<PathBuf> = places.into_iter().map(|place| place.path).collect();
    Ok(unique(inputs::find(&paths)?))
}

/// Keeps the one conversation of a file that was named: `path#2`.
fn keep_named(inputs: &[Input], files: &mut [SessionFile]) {
    for (input, number) in inputs.iter().filter_map(|input| Some((input, input.conversation?))) {
        for file in files.iter_mut().filter(|file| file.path == input.path) {
            let mut at = 0..;
            file.scanned.conversations.retain(|_| at.next() == Some(number));
        }
    }
}

/// Each file once, whatever names it was given by.
fn unique(inputs: Vec<Input>) -> Vec<Input> {
    let mut seen = BTreeSet::new();
    let real = |input: &Input| input.path.canonicalize().unwrap_or_else(|_| input.path.clone());
    inputs.into_iter().filter(|input| seen.insert(real(input))).collect()
}

/// What came of taking sessions through Longhaul.
pub struct Comparison {
    pub replayed: Replayed,
    /// How many sessions, of how many that could be.
    pub sessions: u64,
    pub of: u64,
    /// The share of the bill that they are.
    pub share: f64,
}

/// Bytes of sessions that are done in seconds, and of a single one of them.
const AUTO_BYTES: u64 = 80 << 20;
const AUTO_FILE: u64 = 16 << 20;

fn replay(
    files: &[SessionFile],
    profile: &Profile,
    window: Option<u64>,
    asked: Sessions,
    cache: &mut Cache,
    prices: &mut Prices,
) -> Option<Comparison> {
    // What has a few calls has nothing to compact; opencode's store is not read by the lab.
    const LEAST_CALLS: usize = 5;
    let mut candidates: Vec<(u128, &SessionFile)> = Vec::new();
    for file in files.iter().filter(|file| file.scanned.agent != "opencode") {
        let main = &file.scanned.conversations[0];
        if main.calls.len() < LEAST_CALLS || main.side {
            continue;
        }
        let model = |at: u32| main.models.get(at as usize).map(String::as_str).unwrap_or_default();
        let pico: u128 = main.calls.iter().map(|call| prices.bill(call, model(call.model)).pico).sum();
        candidates.push((pico, file));
    }
    // Where dollars are known, sessions without them say nothing of the cost.
    if candidates.iter().any(|(pico, _)| *pico > 0) {
        candidates.retain(|(pico, _)| *pico > 0);
    }
    // In no order that has to do with cost: the dearest sessions would flatter the comparison.
    candidates.sort_by_cached_key(|(_, file)| key(&[&file.path.to_string_lossy()]));
    let of = candidates.len() as u64;
    let all: u128 = candidates.iter().map(|(pico, _)| pico).sum();
    let chosen = choose(candidates, asked);
    let work: Vec<Work<'_>> = chosen.iter().map(|(_, file)| Work::new(file, profile, window)).collect();
    let new: Vec<&Work<'_>> =
        work.iter().filter(|work| cache.replayed(&work.file.path, &work.settings).is_none()).collect();
    let progress = Progress::new("replaying", new.iter().map(|work| work.file.stamp.bytes).sum());
    let results = on_all_cores(&new, |work| {
        let result = replayed::replay(&work.file.path, profile, work.window, work.lifetime);
        progress.add(work.file.stamp.bytes);
        result
    });
    terminal::clear_progress();
    let fresh: Vec<(PathBuf, String, Option<Replayed>)> = new
        .iter()
        .zip(results)
        .map(|(work, result)| (work.file.path.clone(), work.settings.clone(), result))
        .collect();
    for (path, settings, result) in fresh {
        cache.put_replayed(&path, &settings, result);
    }
    let (mut sum, mut sessions, mut covered) = (Replayed::default(), 0, 0);
    for (work, (pico, _)) in work.iter().zip(&chosen) {
        if let Some(Some(replayed)) = cache.replayed(&work.file.path, &work.settings) {
            sum.add(replayed);
            sessions += 1;
            covered += pico;
        }
    }
    let share = if all == 0 { 0.0 } else { covered as f64 / all as f64 };
    (sessions > 0).then_some(Comparison { replayed: sum, sessions, of, share })
}

/// As many sessions as are wanted.
fn choose(candidates: Vec<(u128, &SessionFile)>, asked: Sessions) -> Vec<(u128, &SessionFile)> {
    match asked {
        Sessions::Most(most) => candidates.into_iter().take(most).collect(),
        Sessions::Auto => {
            let mut left = AUTO_BYTES;
            let fits = |(_, file): &(u128, &SessionFile)| {
                // A packed file is about six times as large as it looks.
                let packed = file.path.extension().is_some_and(|extension| extension == "gz");
                let bytes = if packed { file.stamp.bytes * 6 } else { file.stamp.bytes };
                let fits = bytes <= AUTO_FILE && bytes <= left;
                left -= if fits { bytes } else { 0 };
                fits
            };
            candidates.into_iter().filter(fits).collect()
        }
    }
}

/// A session that is to be replayed.
struct Work<'a> {
    file: &'a SessionFile,
    window: longhaul::Tokens,
    lifetime: Option<u64>,
    /// Names all that the result depends on beside the file.
    settings: String,
}

impl<'a> Work<'a> {
    fn new(file: &'a SessionFile, profile: &Profile, window: Option<u64>) -> Self {
        let main = &file.scanned.conversations[0];
        let window = replayed::window(window, main);
        let written: u64 = main.calls.iter().map(|call| call.write).sum();
        let for_an_hour: u64 = main.calls.iter().map(|call| call.write_1h).sum();
        let lifetime = (for_an_hour * 2 > written).then_some(3_600);
        let settings = key(&[&format!("{profile:?} {window} {lifetime:?}")]);
        Self { file, window, lifetime, settings: format!("{settings:016x}") }
    }
}
