//! `longhaul compact`: one compaction of a transcript, with its price. What comes out is written as the agent's own
//! session file where that agent can go on from it.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use longhaul::edits::EditPrice;
use longhaul::size::Price;
use longhaul::view::pays_back;
use longhaul::{Edit, Message, Session, Tokens};
use longhaul_config::Config;
use longhaul_wire::agents::resume::{Origin, Resumable, Written};
use longhaul_wire::transcript;

use crate::error::Failure;
use crate::lab::inputs::{self, Input};
use crate::lab::recorded::{MeterKind, RecordedSession, window_of, without_model};
use crate::lab::transcript_file::TranscriptFile;
use crate::output_file;
use crate::terminal;

/// Compact a transcript once: write what would be sent next, or only say its price
#[derive(clap::Args)]
#[command(after_help = "\
The transcript is taken as it is and compacted as if a person had asked for
it. Costs are in tokens: what the provider had in its cache and bills again,
and what each later request saves. A session of Claude Code, Codex or pi is
written as that agent's own file, which it can go on from; docs/formats.md
says where it looks for it.

Examples:
  longhaul compact session.jsonl --dry-run
  longhaul compact session.jsonl -o smaller.jsonl --window 64000 --profile mini
  longhaul compact session.jsonl -o smaller.jsonl --to pi")]
pub struct Args {
    /// The transcript, of any known format; of a folder, its newest session; `path#2` is one conversation of a file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the smaller conversation goes; `-` is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// The format to write; without it that of FILE, where its agent can go on from it, else Longhaul's own
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<To>,
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// JSON Lines, one message a line (docs/transcript.md)
    Longhaul,
    /// A session of Claude Code
    ClaudeCode,
    /// A rollout of Codex
    Codex,
    /// A session of pi
    Pi,
}

impl To {
    fn agent(self) -> Option<Resumable> {
        match self {
            Self::Longhaul => None,
            Self::ClaudeCode => Some(Resumable::ClaudeCode),
            Self::Codex => Some(Resumable::Codex),
            Self::Pi => Some(Resumable::Pi),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let input = inputs::find_one(&args.file)?;
    let mut file = TranscriptFile::open(&input)?;
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
        report(&mut io::stderr().lock(), &recorded, before)?;
    } else {
        report(&mut anstream::stdout().lock(), &recorded, before)?;
    }
    match &args.output {
        Some(output) if !args.dry_run => {
            let agent = args.to.map_or(Resumable::from_name(file.format()), To::agent);
            write(args, &input, output, session, agent)
        }
        _ => Ok(()),
    }
}

fn report(out: &mut impl Write, recorded: &RecordedSession, before: Tokens) -> io::Result<()> {
    let edits = recorded.session().ledger().edits();
    let edits: Vec<&Edit> = edits.map(|(edit, _)| &**edit).collect();
    let after = recorded.tokens();
    if edits.is_empty() {
        return writeln!(out, "{} tokens: nothing would go.", terminal::grouped(before.0));
    }
    writeln!(
        out,
        "{} → {} tokens by {}:",
        terminal::grouped(before.0),
        terminal::grouped(after.0),
        terminal::counted(edits.len() as u64, "edit", "edits")
    )?;
    for same in edits.chunk_by(|a, b| (a.strategy == b.strategy) && (a.why == b.why)) {
        let sum = |tokens: fn(&Edit) -> Tokens| same.iter().map(|edit| tokens(edit).0).sum::<u64>();
        writeln!(
            out,
            "  {:4} × {:12} {:>6} → {:>6}  {} ({})",
            same.len(),
            same[0].kind.name(),
            terminal::short(sum(|edit| edit.before)),
            terminal::short(sum(|edit| edit.after)),
            same[0].strategy,
            same[0].why.name()
        )?;
    }
    let price = EditPrice::of_batch(edits.iter().copied());
    if let Some(lost) = terminal::lost_thinking(price.thinking) {
        writeln!(out, "And {lost}: the model accepts it only after what stood before it.")?;
    }
    let again = price.rewrites.0;
    let saves = before.0.saturating_sub(after.0);
    // The factors of replay and bench: a read costs 0.1, what is written 1.25.
    let price = Price { input: 100, cache_read: 10, cache_write: 125, cache_write_1h: None, output: 500 };
    let paid = (1..10_000).find(|calls| pays_back(Tokens(saves), *calls, Tokens(again), &price));
    let paid = paid.map_or("never paid back".to_owned(), |calls| {
        format!("paid back after {}", terminal::counted(calls, "call", "calls"))
    });
    writeln!(
        out,
        "Price: {} tokens billed again, once; {} fewer to read per later call.\nWhat is read from the cache costs a tenth: {paid}.",
        terminal::grouped(again),
        terminal::grouped(saves)
    )
}

/// Asks the person, if there is one.
fn may_replace(output: &Path) -> io::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    write!(io::stderr(), "{} is there already. Replace it? [y/N] ", terminal::path(output))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn write(
    args: &Args,
    input: &Input,
    output: &Path,
    session: &Session,
    agent: Option<Resumable>,
) -> Result<(), Failure> {
    if let (Ok(input), Ok(existing)) = (input.path.canonicalize(), output.canonicalize())
        && input == existing
    {
        return Err(Failure::file(output, "is the transcript itself"));
    }
    let parts = session.view().parts().iter().chain(session.view().tail());
    let messages: Vec<Arc<Message>> = parts.map(|part| part.message.clone()).collect();
    let (origin, written) = match agent {
        None => (Origin::default(), None),
        Some(agent) => {
            let origin = origin_of(input, output)?;
            let written = agent.write(&messages, &origin);
            (origin, Some((agent, written)))
        }
    };
    let lines: Vec<String> = match &written {
        Some((_, written)) => written.lines.clone(),
        None => messages.iter().map(|message| transcript::encode(message).into_owned()).collect(),
    };
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    if output == Path::new("-") {
        io::stdout().lock().write_all(text.as_bytes())?;
    } else {
        let force = args.force || output.is_file() && may_replace(output)?;
        let place = output_file::place(output, force)?;
        output_file::write(&place, text)
            .map_err(|error| Failure::Failed(format!("{}: {error}", output.display())))?;
    }
    if let Some((agent, written)) = &written {
        for what in &written.left_out {
            _ = writeln!(io::stderr(), "{}: left out: {what}", terminal::path(&input.path));
        }
        _ = writeln!(io::stderr(), "{}", how_to_go_on(*agent, written, &origin, output));
    }
    Ok(())
}

/// What the agent's file says of its session. A name in the form of those of sessions is that of the new one.
fn origin_of(input: &Input, output: &Path) -> Result<Origin, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let here = here.to_string_lossy();
    let origin = if input.is_stdin() {
        Origin::in_folder(&here)
    } else {
        Origin::read(&input.path, &here).map_err(|error| Failure::file(&input.path, error))?
    };
    const LENGTH: usize = 36;
    let name = output.file_stem().unwrap_or_default().to_string_lossy();
    let end = name.len().checked_sub(LENGTH).and_then(|start| name.get(start..));
    let is_name = |name: &&str| {
        name.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
    };
    Ok(match end.filter(is_name) {
        Some(name) => origin.named(name),
        None => origin,
    })
}

/// Where the agent looks for the file, and what to type.
fn how_to_go_on(agent: Resumable, written: &Written, origin: &Origin, output: &Path) -> String {
    let (session, folder) = (&written.session, &origin.folder);
    match agent {
        Resumable::ClaudeCode => {
            let project: String =
                folder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            format!(
                "To go on from it: ~/.claude/projects/{project}/{session}.jsonl is where Claude Code looks for it; then\n  \
                 cd {folder} && claude --resume {session}"
            )
        }
        Resumable::Codex => {
            let time =
                written.lines.first().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            let time = time.as_ref().and_then(|line| line["timestamp"].as_str()).unwrap_or_default();
            let stamp = time.get(..19).unwrap_or_default().replace(':', "-");
            let day = time.get(..10).unwrap_or_default().replace('-', "/");
            format!(
                "To go on from it: ~/.codex/sessions/{day}/rollout-{stamp}-{session}.jsonl is where Codex looks for it; then\n  \
                 cd {folder} && codex resume {session}"
            )
        }
        Resumable::Pi => {
            format!("To go on from it:\n  cd {folder} && pi --session {}", terminal::path(output))
        }
    }
}
