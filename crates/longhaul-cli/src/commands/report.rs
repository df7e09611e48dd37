//! `longhaul report`: what the sessions on this machine cost, what filled them, and what Longhaul would have sent.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul_config::Config;

use crate::arguments::say_unknown_model;
use crate::error::Failure;
use crate::file_start::begins_with;
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::prices::{PriceRule, Prices as Factors};
use crate::lab::recorded::without_model;
use crate::output_file;
use crate::report::bill::Prices;
use crate::report::cache::Cache;
use crate::report::comparison::Settings;
use crate::report::conversation::Conversation;
use crate::report::days::{Calendar, Period};
use crate::report::files::{self, SessionFile};
use crate::report::text::Found;
use crate::report::totals::{Filter, Times, Totals};
use crate::report::{comparison, counted, csv, html, json, places, text};
use crate::terminal;

/// Say what the sessions on this machine cost, what filled them, and what Longhaul would save
#[derive(clap::Args)]
#[command(after_help = "\
Without a path, the sessions of Claude Code, Codex, pi and opencode are looked
for where these agents keep them. Each call is counted once, by the usage that
the files hold and the prices of the table of models; docs/report.md says how.

Examples:
  longhaul report                       everything on this machine
  longhaul report daily --since 7d      a row a day, the last week
  longhaul report session --project api the sessions of a project, dearest first
  longhaul report ~/old-sessions --json | jq .usd
  longhaul report monthly --csv > months.csv
  longhaul report --html report.html    one page with charts
  longhaul report --prices 0.05,1.25    as if cached tokens cost a twentieth")]
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
    /// Bill every call, and decide about edits, at the prices of this model instead of those of the models that answered
    #[arg(long, value_name = "NAME", conflicts_with = "prices")]
    model: Option<String>,
    /// Bill every call, and decide about edits, at these prices: a token read from the cache and a new one, as factors of
    /// an ordinary one
    #[arg(long, value_name = "READ,WRITE")]
    prices: Option<Factors>,
    /// Read all files anew, and keep nothing for the next run
    #[arg(long)]
    no_cache: bool,
}

/// How many sessions are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
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
    let since = args.since.as_deref().map(|text| calendar.since(text, now)).transpose();
    let until = args.until.as_deref().map(|text| calendar.until(text, now)).transpose();
    let filter = Filter {
        times: Times { since: since.map_err(Failure::Input)?, until: until.map_err(Failure::Input)? },
        project: args.project.clone(),
        agent: args.agent.clone(),
    };
    let profile = without_model(config.profile(args.profile.as_deref().unwrap_or(config.profile_name()))?);
    let table = args.paths.first().and_then(|path| table(path));
    let paths = if table.is_some() { &args.paths[1..] } else { &args.paths[..] };
    let inputs = find(paths)?;
    if let Some(page) = &args.html {
        check_page(page, &inputs)?;
    }

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
            0 => format!("no session found in {}: name a file or a folder", looked_at(paths)),
            files => {
                let files = terminal::counted(files, "file has", "files have");
                format!("no session found: {files} no messages")
            }
        }));
    }
    keep_named(&mut read.files)?;
    let repeated = counted::once(&mut read.files);
    let calls = read.files.iter().flat_map(|file| &file.scanned.conversations).flat_map(|c| &c.calls);
    let newest = calls.map(|call| call.at).max().unwrap_or_default();
    let there = There::of(&read.files, newest);
    filter.apply(&mut read.files);
    if read.files.is_empty() {
        cache.save();
        return Err(Failure::Input(there.nothing_left(args, &calendar)));
    }
    if let Some(model) = &args.model {
        say_unknown_model(model);
    }
    let rule = PriceRule::new(args.prices, args.model.as_deref());
    let mut prices = Prices::by(rule);
    let totals = Totals::of(&read.files, &calendar, &mut prices);
    // A single table needs no replay.
    let asked = if table.is_some() || args.csv { Sessions::Most(0) } else { args.replay };
    let settings = Settings { profile: &profile, window: args.window, times: filter.times, prices: rule };
    let comparison = comparison::replay(&read.files, settings, asked, &mut cache, &mut prices);
    cache.save();

    let found = Found {
        files: read.files.len() as u64,
        skipped: read.skipped,
        unread: read.files.iter().map(|file| file.scanned.unread).sum(),
        repeated,
        zone: calendar.zone(),
        profile: profile.name.to_string(),
        window: args.window,
        home: std::env::var("HOME").unwrap_or_default(),
    };
    if let Some(path) = &args.html {
        let page = html::page(&totals, &found, comparison.as_ref(), &mut prices, &calendar);
        output_file::write(path, page)
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        _ = writeln!(io::stderr(), "{} written", terminal::path(path));
        if !(args.json || args.csv || table.is_some()) {
            return unread.finish(read.files.len());
        }
    }
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    if args.json {
        let value = json::report(&totals, &found, comparison.as_ref(), &mut prices, &calendar, table);
        writeln!(out, "{}", terminal::json(&value)?)?;
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

/// A page takes the place of an earlier one, and of nothing else.
fn check_page(path: &Path, inputs: &[Input]) -> Result<(), Failure> {
    if inputs.iter().any(|input| output_file::is_same(&input.path, path)) {
        return Err(Failure::file(path, "is one of the sessions"));
    }
    if path.is_file() && !begins_with(path, b"<!doctype html>") {
        return Err(Failure::file(path, "is there already, and is no page: name another file"));
    }
    Ok(())
}

/// The folders that were looked at.
fn looked_at(paths: &[PathBuf]) -> String {
    let places = places::find().into_iter().map(|place| place.path);
    let paths: Vec<PathBuf> = if paths.is_empty() { places.collect() } else { paths.to_vec() };
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// What there is, before anything is left out.
struct There {
    newest: i64,
    agents: BTreeSet<String>,
    projects: BTreeSet<String>,
}

impl There {
    fn of(files: &[SessionFile], newest: i64) -> Self {
        let agents = files.iter().map(|file| file.scanned.agent.clone()).collect();
        let conversations = files.iter().flat_map(|file| &file.scanned.conversations);
        let projects = conversations.map(|conversation| conversation.project.clone());
        Self { newest, agents, projects: projects.filter(|project| !project.is_empty()).collect() }
    }

    /// Which of the filters let nothing in, and what there would be.
    fn nothing_left(&self, args: &Args, calendar: &Calendar) -> String {
        /// More names would be no sentence.
        const MOST: usize = 6;
        let some = |names: &BTreeSet<String>| {
            let more = if names.len() > MOST { " …" } else { "" };
            names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ") + more
        };
        let newest = calendar.day(self.newest).filter(|_| self.newest > 0);
        let newest = newest.map(|day| format!("the newest call is of {day}"));
        let is_timed = args.since.is_some() || args.until.is_some();
        let given = [
            ("--since", args.since.is_some()),
            ("--until", args.until.is_some()),
            ("--project", args.project.is_some()),
            ("--agent", args.agent.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
        if given.is_empty() {
            return "no call of a model is recorded there".to_owned();
        }
        let there = [
            newest.filter(|_| is_timed),
            args.project.as_ref().map(|_| format!("projects are {}", some(&self.projects))),
            args.agent.as_ref().map(|_| format!("agents are {}", some(&self.agents))),
        ];
        let there: String = there.into_iter().flatten().map(|there| format!("; {there}")).collect();
        format!("no call is left by {}{there}", given.join(" and "))
    }
}

/// The files of the paths, or of the places where agents keep their sessions.
fn find(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    if !paths.is_empty() {
        let is_word = |path: &&PathBuf| {
            let name = path.to_string_lossy();
            !path.exists() && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic())
        };
        if let Some(word) = paths.iter().find(is_word) {
            let problem = "no such file, and no table: those are daily, weekly, monthly and session";
            return Err(Failure::file(word, problem));
        }
        let inputs = inputs::find(paths)?;
        // A file is opened more than once; a pipe would be empty the second time.
        if let Some(pipe) = inputs.iter().find(|input| !input.path.is_file()) {
            return Err(Failure::file(&pipe.path, "is no file: save it to one, and report that"));
        }
        return Ok(unique(inputs));
    }
    let places = places::find();
    if places.is_empty() {
        let problem = "no sessions of Claude Code, Codex, pi or opencode are here: name a file or a folder";
        return Err(Failure::Input(problem.to_owned()));
    }
    let agents: BTreeSet<&str> = places.iter().map(|place| place.agent).collect();
    terminal::show_progress(format_args!("looking at {}", agents.into_iter().collect::<Vec<_>>().join(", ")));
    let mut found = Vec::new();
    for place in places {
        match inputs::find(&[place.path]) {
            // Nobody named them.
            Ok(files) => found.extend(files.into_iter().map(|input| Input { found: true, ..input })),
            Err(failure) => _ = writeln!(io::stderr(), "skipped: {failure}"),
        }
    }
    Ok(unique(found))
}

/// Keeps the one conversation of a file that was named: `path#2`.
fn keep_named(files: &mut [SessionFile]) -> Result<(), Failure> {
    for file in files.iter_mut().filter(|file| file.is_named) {
        // Conversations that have numbers go by them: others may have been empty.
        let is_numbered = file.scanned.conversations.iter().any(|conversation| conversation.number > 0);
        let mut at = 0..;
        let mut number = |conversation: &Conversation| match (at.next(), is_numbered) {
            (Some(at), false) => at,
            _ => conversation.number,
        };
        file.scanned.conversations.retain(|conversation| number(conversation) == file.number);
        if file.scanned.conversations.is_empty() {
            return Err(Failure::file(&file.path, format!("has no conversation {}", file.number)));
        }
    }
    Ok(())
}

/// Each file once, whatever names it was given by; and of a file that is wanted whole no conversation beside it.
fn unique(inputs: Vec<Input>) -> Vec<Input> {
    let real = |input: &Input| input.path.canonicalize().unwrap_or_else(|_| input.path.clone());
    let whole: BTreeSet<PathBuf> =
        inputs.iter().filter(|input| input.conversation.is_none()).map(real).collect();
    let mut seen = BTreeSet::new();
    let is_new = |input: &Input| {
        let path = real(input);
        (input.conversation.is_none() || !whole.contains(&path)) && seen.insert((path, input.conversation))
    };
    inputs.into_iter().filter(is_new).collect()
}
