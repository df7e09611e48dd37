//! `longhaul compact`: one compaction of a transcript, with its price.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use longhaul::edits::EditPrice;
use longhaul::size::Price;
use longhaul::view::pays_back;
use longhaul::{Edit, Session, Tokens};
use longhaul_config::Config;
use longhaul_wire::transcript;

use crate::error::Failure;
use crate::lab::inputs;
use crate::lab::recorded::{MeterKind, RecordedSession, window_of, without_model};
use crate::lab::transcript_file::TranscriptFile;
use crate::terminal;

/// Compact a transcript once: write what would be sent next, or only say its price
#[derive(clap::Args)]
#[command(after_help = "\
The transcript is taken as it is and compacted as if a person had asked for it.
Costs are in tokens: what the provider had in its cache and bills again, and what
each later request saves.

Examples:
  longhaul compact session.jsonl --dry-run
  longhaul compact session.jsonl -o smaller.jsonl --window 64000 --profile mini")]
pub struct Args {
    /// The transcript, of any known format; of a folder, its newest session; `path#2` is one conversation of a file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the smaller conversation goes; `-` is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Replace OUT if it is there, without asking
    #[arg(long)]
    force: bool,
    /// Say what would go, and its price; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Tokens that fit into the model's window; without it, the profile's
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Model)]
    meter: MeterKind,
    /// How to compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let mut file = TranscriptFile::open(&inputs::find_one(&args.file)?)?;
    let name = args.profile.as_deref().unwrap_or(config.profile_name());
    let profile = without_model(config.profile(name)?);
    let window = window_of(args.window, "", &profile);
    // Sent, so that the price knows what is warm.
    let mut recorded = RecordedSession::sent_whole(&profile, args.meter);
    let empty = recorded.replay(file.one_log());
    file.finish(empty)?;
    let before = recorded.full_tokens();
    let recorded = recorded.compacted(profile, window);
    let recorded = recorded.map_err(|problem| Failure::file(&args.file, problem))?;
    let session = recorded.session();
    // On stderr where the conversation goes to standard output.
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if to_stdout && !args.dry_run {
        report(&mut io::stderr().lock(), session, before)?;
    } else {
        report(&mut anstream::stdout().lock(), session, before)?;
    }
    match &args.output {
        Some(output) if !args.dry_run => write(args, output, session),
        _ => Ok(()),
    }
}

fn report(out: &mut impl Write, session: &Session, before: Tokens) -> io::Result<()> {
    let edits: Vec<&Edit> = session.ledger().edits().map(|(edit, _)| &**edit).collect();
    let after = session.size().tokens;
    writeln!(
        out,
        "{} → {} tokens by {} edits:",
        terminal::grouped(before.0),
        terminal::grouped(after.0),
        edits.len()
    )?;
    for same in edits.chunk_by(|a, b| (a.strategy == b.strategy) && (a.why == b.why)) {
        let sum = |tokens: fn(&Edit) -> Tokens| same.iter().map(|edit| tokens(edit).0).sum::<u64>();
        writeln!(
            out,
            "  {:4} × {:20} {:>7} → {:>7}  {} ({})",
            same.len(),
            same[0].kind.name(),
            terminal::short(sum(|edit| edit.before)),
            terminal::short(sum(|edit| edit.after)),
            same[0].strategy,
            same[0].why.name()
        )?;
    }
    let again = EditPrice::of_batch(edits.iter().copied()).rewrites.0;
    let saves = before.0.saturating_sub(after.0);
    // The factors of replay and bench: a read costs 0.1, what is written 1.25.
    let price = Price { input: 100, cache_read: 10, cache_write: 125, cache_write_1h: None, output: 500 };
    let paid = (1..10_000).find(|calls| pays_back(Tokens(saves), *calls, Tokens(again), &price));
    let paid = paid.map_or("never paid back".to_owned(), |calls| format!("paid back after {calls} calls"));
    writeln!(
        out,
        "Price: {} tokens billed again, {} fewer per later call:\n{paid}.",
        terminal::grouped(again),
        terminal::grouped(saves)
    )
}

/// Asks the person, if there is one.
fn may_replace(output: &Path) -> io::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    write!(io::stderr(), "{} is there already. Replace it? [y/N] ", output.display())?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn write(args: &Args, output: &Path, session: &Session) -> Result<(), Failure> {
    if let (Ok(input), Ok(existing)) = (args.file.canonicalize(), output.canonicalize())
        && input == existing
    {
        return Err(Failure::file(output, "is the transcript itself"));
    }
    let mut text = String::new();
    for part in session.view().parts().iter().chain(session.view().tail()) {
        text.push_str(&transcript::encode(&part.message));
        text.push('\n');
    }
    if output == Path::new("-") {
        io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(());
    }
    if output.exists() && !args.force && !may_replace(output)? {
        return Err(Failure::file(output, "is there already (--force replaces it)"));
    }
    std::fs::write(output, text).map_err(|error| Failure::file(output, error))
}
