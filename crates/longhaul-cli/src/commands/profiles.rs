//! `longhaul profiles`: the ways to compact, and what each does.

use std::io::{self, Write};

use longhaul::policy::OnFailure;
use longhaul::{Profile, Strategy, Summariser};
use longhaul_config::Config;
use serde::Serialize;

use crate::error::Failure;
use crate::terminal;

/// List the ways to compact, or explain one
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul profiles
  longhaul profiles archive
  longhaul replay session.jsonl --profile transform --window 64000")]
pub struct Args {
    /// The profile to explain
    name: Option<String>,
    /// Print one JSON line per profile
    #[arg(long)]
    json: bool,
}

/// A profile, for scripts.
#[derive(Serialize)]
struct ProfileLine<'a> {
    name: &'a str,
    says: &'a str,
    trigger: u8,
    target: u8,
    rules: Vec<&'a str>,
    ladder: Vec<&'a str>,
    finished: &'a str,
    running: &'a str,
    summariser: &'a str,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let profiles = match &args.name {
        Some(name) => vec![config.profile(name)?],
        None => config.profiles().collect(),
    };
    let mut out = anstream::stdout().lock();
    for profile in &profiles {
        if args.json {
            let names = |all: &[&'static Strategy]| all.iter().map(|strategy| strategy.name).collect();
            let line = ProfileLine {
                name: &profile.name,
                says: &profile.says,
                trigger: profile.shares.trigger,
                target: profile.shares.target,
                rules: names(&profile.rules),
                ladder: names(&profile.ladder),
                finished: profile.templates.finished.name,
                running: profile.templates.running.name,
                summariser: summariser(profile),
            };
            writeln!(out, "{}", terminal::json(&line)?)?;
        } else if args.name.is_some() {
            explain(profile, &mut out)?;
        } else {
            let says = wrapped(&profile.says, 13);
            writeln!(out, "{}{:12}{:#} {says}", terminal::STRONG, profile.name, terminal::STRONG)?;
        }
    }
    if args.name.is_none() && !args.json {
        writeln!(out, "\n`longhaul profiles NAME` explains one, `longhaul config show` its settings.")?;
    }
    Ok(())
}

fn summariser(profile: &Profile) -> &'static str {
    if profile.summariser == Summariser::Host { "model" } else { "extractor" }
}

fn explain(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let (strong, faint) = (terminal::STRONG, terminal::FAINT);
    let head = |out: &mut dyn Write, name: &str| writeln!(out, "\n{strong}{name}{strong:#}");
    writeln!(out, "{strong}{}{strong:#}\n  {}", profile.name, wrapped(&profile.says, 2))?;
    head(out, "compacts")?;
    let triggers = &profile.triggers;
    let (trigger, target) = (profile.shares.trigger, profile.shares.target);
    let over = if triggers.inclusive { "from" } else { "over" };
    let down_to = if target == 0 { "all of it".to_owned() } else { format!("down to {target} %") };
    if triggers.end_of_turn {
        writeln!(out, "  {down_to}, when a turn has ended whose last prompt was over {trigger} %")?;
    } else {
        let shared = if profile.shares_are_of_room() { "usable room" } else { "window" };
        writeln!(out, "  {over} {trigger} % of the {shared}, {down_to}")?;
    }
    if triggers.messages_alone {
        writeln!(out, "  these are of the messages alone: system prompt and tools come beside them")?;
    }
    if triggers.min_messages > 0 {
        writeln!(out, "  not before there are {} messages", triggers.min_messages)?;
    }
    if triggers.calls > 0 {
        writeln!(out, "  after {} calls without a full summary: a full summary", triggers.calls)?;
    }
    if let Some(mark) = &triggers.mark {
        writeln!(out, "  when the model prints {mark} on a line of its own")?;
    }
    if triggers.summary_mark {
        writeln!(out, "  when a person writes <Summary>")?;
    }
    if let Some(dial) = profile.dial {
        let recalls = dial.recalls();
        writeln!(out, "  when carrying what a fold would take has cost more than the fold")?;
        writeln!(out, "  keeps what is worth it: one avoided miss may cost {recalls} recalls (dial {dial})")?;
    }
    match (profile.when_cold, profile.dial) {
        (true, Some(_)) => writeln!(out, "  whenever the prompt cache has gone cold")?,
        (true, None) => writeln!(out, "  down to the target whenever the prompt cache has gone cold")?,
        (false, _) => {}
    }
    writeln!(out, "  always before a request would pass the hard limit, and when asked")?;
    if triggers.full_when_asked {
        writeln!(out, "  who asks, a person or the model, gets a full summary")?;
    }
    head(out, "when a result enters")?;
    let limits =
        [(profile.cut.bytes, "bytes"), (profile.cut.characters, "characters"), (profile.cut.lines, "lines")];
    let limits: Vec<String> = limits
        .iter()
        .filter(|(most, _)| *most < usize::MAX)
        .map(|(most, what)| format!("{most} {what}"))
        .collect();
    if limits.is_empty() {
        writeln!(out, "  whole")?;
    } else {
        writeln!(out, "  at most {}; the rest can be recalled", limits.join(", "))?;
    }
    if profile.entry_digests {
        writeln!(out, "  without its noise")?;
    }
    for (name, strategies) in [
        ("before every call", &profile.rules),
        ("tried in this order, until the target is met", &profile.ladder),
    ] {
        if !strategies.is_empty() {
            head(out, name)?;
        }
        if profile.by_task && name.starts_with("tried") {
            writeln!(out, "  first three of these, by the kind of work; then:")?;
        }
        for strategy in strategies {
            writeln!(out, "  {:18} {faint}{}{faint:#}", strategy.name, wrapped(strategy.says, 21))?;
        }
    }
    head(out, "summaries")?;
    let (finished, running) = (profile.templates.finished, profile.templates.running);
    for (of, template) in [("of finished turns:", finished), ("of running ones:  ", running)] {
        writeln!(out, "  {of} {}\n    {faint}{}{faint:#}", template.name, wrapped(template.says, 4))?;
    }
    let failure = match profile.on_failure {
        OnFailure::Extract => "the extractor writes it",
        OnFailure::Keep => "history is kept as it is, unless the hard limit forces an extract",
        OnFailure::Cut => "what it was for is hidden, and can be recalled",
        OnFailure::Next => "the next strategy is tried",
    };
    writeln!(out, "  written by the {}; if a model fails twice,\n  {failure}", summariser(profile))
}

/// A text in lines of 80 columns at most, all but the first indented.
fn wrapped(text: &str, indent: usize) -> String {
    const COLUMNS: usize = 80;
    let (mut out, mut column) = (String::new(), indent);
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > indent && column + 1 + width > COLUMNS {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}
