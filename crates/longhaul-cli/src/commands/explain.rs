//! `longhaul explain`: what the model would be sent at one call of a recorded session, part
//! by part: where it comes from, which edit, why, what it cost and saved.

use std::io::{self, Write};
use std::path::PathBuf;

use longhaul::edits::EditPrice;
use longhaul::size::Measure;
use longhaul::{Block, Edit, EditKind, Message, Part, Position, Role, Session, Source, Tokens, Why};
use longhaul_config::Config;
use serde::Serialize;

use crate::error::Failure;
use crate::lab::needs::text_of;
use crate::lab::recorded::{MeterKind, RecordedSession, window_of, without_model};
use crate::lab::transcript_file::TranscriptFile;
use crate::terminal;

/// Show what would be sent at one call of a recorded session, and why
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul explain session.jsonl --call 40
  longhaul explain session.jsonl --call 40 --window 32000 --diff
  longhaul explain session.jsonl --call 40 --profile archive
  longhaul explain session.jsonl --call 40 --json | jq .parts[0]")]
pub struct Args {
    /// The transcript, of any known format
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The call, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    call: u64,
    /// Tokens that fit into the model's window; without it, the profile's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    window: Option<u64>,
    /// How to compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// Show what is gone from the log and what stands in its place
    #[arg(long, conflicts_with = "json")]
    diff: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A part of the view, for scripts.
#[derive(Serialize)]
struct PartRow {
    /// `rules`, `message`, `edit` or `tail`.
    source: &'static str,
    /// The messages of the log that it is, or stands for: first, and one past the last.
    messages: Vec<(u32, u32)>,
    role: &'static str,
    tokens: u64,
    /// Tokens of what it stands for, as it was shown before.
    tokens_before: u64,
    /// True if the provider had it in its cache.
    warm: bool,
    edits: Vec<PartEdit>,
    text: String,
}

/// An edit that made a part what it is.
#[derive(Serialize)]
struct PartEdit {
    id: u32,
    kind: &'static str,
    strategy: String,
    why: &'static str,
    before: u64,
    after: u64,
    rewrites: u64,
    saves: u64,
    handles: Vec<String>,
}

/// The edits of one call, what they were expected to cost and save, and how it came out.
#[derive(Serialize)]
struct Batch {
    call: u64,
    edits: usize,
    /// Tokens of the warm prefix that were expected to be billed again.
    rewrites: u64,
    /// Tokens that were so: sent before, and not read from the cache. Nothing, if the cache was
    /// gone anyway.
    rewritten: u64,
    cold: bool,
    /// Tokens that each later request is expected to be smaller by.
    saves: u64,
    /// What that has come to in the calls since, this one included.
    saved: u64,
}

impl Batch {
    /// The edits since `first` of the call that was just prepared. `new` is the size of what it
    /// was sent for the first time.
    fn new(call: u64, session: &Session, first: usize, new: Tokens) -> Option<Self> {
        let edits = session.ledger().edits().skip(first).map(|(edit, _)| edit);
        let warm: Vec<_> = edits.filter(|edit| edit.why != Why::Entry).collect();
        let sent = session.sent()?;
        let price = EditPrice::of_batch(warm.iter().map(|edit| &***edit));
        (!warm.is_empty()).then(|| Self {
            call,
            edits: warm.len(),
            rewrites: price.rewrites.0,
            rewritten: if sent.cold { 0 } else { (sent.billed.written - new).0 },
            cold: sent.cold,
            saves: price.saves.0,
            saved: 0,
        })
    }
}

#[derive(Serialize)]
struct Explained {
    transcript: String,
    call: u64,
    upto: usize,
    window: u64,
    tokens: u64,
    full_tokens: u64,
    /// What was billed, in tokens: read from the cache, and written.
    read: u64,
    written: u64,
    /// System prompt and tools of the frame, which stand before the parts.
    frame_tokens: u64,
    parts: Vec<PartRow>,
    batches: Vec<Batch>,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let mut file = TranscriptFile::open(&args.file)?;
    let name = args.profile.as_deref().unwrap_or(config.profile_name());
    let profile = without_model(config.profile(name)?);
    let window = window_of(args.window, "", &profile);
    let mut recorded = RecordedSession::new(profile, "", window, MeterKind::Neutral);
    let (mut calls, mut empty) = (0, true);
    let (mut batches, mut sent) = (Vec::new(), Position(0));
    for message in file.main_log() {
        empty = false;
        if message.role() == Role::Assistant {
            calls += 1;
            let first = recorded.session().ledger().next_id().0 as usize;
            let prepared = recorded.prepare();
            let session = recorded.session();
            // What was never sent before: the newest messages as they are shown, and the tail.
            if prepared.is_ok() {
                let newest = session.view().parts().iter().filter(|part| match part.source {
                    Source::Message(at) => at >= sent,
                    _ => false,
                });
                let new: Measure = newest.chain(session.view().tail()).map(|part| part.measure).sum();
                batches.extend(Batch::new(calls, session, first, session.meter().tokens(new).tokens));
                sent = session.log().end();
            }
            if calls == args.call {
                prepared.map_err(|error| Failure::file(&args.file, format!("call {calls}: {error}")))?;
                for batch in &mut batches {
                    batch.saved = batch.saves * (calls - batch.call + 1);
                }
                return print(args, session, batches);
            }
        }
        recorded.push(message);
    }
    file.finish(empty)?;
    Err(Failure::file(&args.file, format!("has {calls} calls; --call {} is past the last", args.call)))
}

fn print(args: &Args, session: &Session, batches: Vec<Batch>) -> Result<(), Failure> {
    let explained = explain(args, session, batches);
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&explained).map_err(io::Error::from)?)?;
    } else if args.diff {
        diff(&mut out, session)?;
    } else {
        table(&mut out, &explained)?;
    }
    Ok(())
}

fn explain(args: &Args, session: &Session, batches: Vec<Batch>) -> Explained {
    let billed = session.sent().map(|sent| sent.billed).unwrap_or_default();
    let tokens = |part: &Part| session.meter().tokens(part.measure).tokens.0;
    let mut warm =
        billed.read.0.saturating_sub(session.meter().tokens(session.view().fixed().measure).tokens.0);
    let parts = session.view().parts().iter().chain(session.view().tail()).map(|part| {
        let size = tokens(part);
        let is_warm = part.source != Source::Tail && size <= warm;
        warm = if is_warm { warm - size } else { 0 };
        row(session, part, size, is_warm)
    });
    let parts = parts.collect();
    Explained {
        transcript: args.file.display().to_string(),
        call: args.call,
        upto: session.log().messages().len(),
        window: session.budget().window.0,
        tokens: session.size().tokens.0,
        full_tokens: session.meter().tokens(session.full()).tokens.0,
        read: billed.read.0,
        written: billed.written.0,
        frame_tokens: session.meter().tokens(session.view().fixed().measure).tokens.0,
        parts,
        batches,
    }
}

fn row(session: &Session, part: &Part, tokens: u64, warm: bool) -> PartRow {
    let made = |edit: &Edit| PartEdit {
        id: edit.id.0,
        kind: edit.kind.name(),
        strategy: edit.strategy.to_string(),
        why: edit.why.name(),
        before: edit.before.0,
        after: edit.after.0,
        rewrites: edit.price.rewrites.0,
        saves: edit.price.saves.0,
        handles: edit.originals.iter().map(|handle| handle.short()).collect(),
    };
    let get = |id| session.ledger().get(id);
    let (source, messages, edits) = match part.source {
        Source::Note => ("note", vec![], vec![]),
        Source::Rules => ("rules", vec![], vec![]),
        Source::Tail => ("tail", vec![], vec![]),
        Source::Message(at) => {
            let edits = session.ledger().inside(at).iter().filter_map(|id| get(*id)).map(|edit| made(edit));
            ("message", vec![(at.0, at.0 + 1)], edits.collect())
        }
        Source::Edit(id) => {
            let spans = get(id).map(|edit| edit.kind.spans()).unwrap_or_default();
            let spans = spans.iter().map(|span| (span.start.0, span.end.0)).collect();
            ("edit", spans, get(id).map(|edit| made(edit)).into_iter().collect())
        }
    };
    let saved: u64 = edits.iter().map(|edit: &PartEdit| edit.before.saturating_sub(edit.after)).sum();
    PartRow {
        source,
        messages,
        role: part.message.role().name(),
        tokens,
        tokens_before: tokens + saved,
        warm,
        edits,
        text: text_of(&part.message),
    }
}

/// Where the edits of a part are told, under it.
const INDENT: usize = 14;

fn table(out: &mut impl Write, explained: &Explained) -> io::Result<()> {
    let (strong, faint, good) = (terminal::STRONG, terminal::FAINT, terminal::GOOD);
    writeln!(
        out,
        "{strong}Call {}{strong:#}: {} of {} tokens, in a window of {}.",
        explained.call,
        terminal::grouped(explained.tokens),
        terminal::grouped(explained.full_tokens),
        terminal::grouped(explained.window)
    )?;
    writeln!(
        out,
        "The cache had {} of them (·); {} were new (+).",
        terminal::grouped(explained.read),
        terminal::grouped(explained.written)
    )?;
    writeln!(out, "\n  {:>11} {:9} {:>7}  what", "messages", "role", "tokens")?;
    if explained.frame_tokens > 0 {
        let (mark, tokens) =
            (if explained.read > 0 { '·' } else { '+' }, terminal::grouped(explained.frame_tokens));
        writeln!(
            out,
            "{mark} {:>11} {:9} {tokens:>7}  {faint}system prompt and tools{faint:#}",
            "frame", "system"
        )?;
    }
    for part in &explained.parts {
        let messages = match part.messages.as_slice() {
            [] => part.source.to_owned(),
            [(start, end)] if end - start == 1 => start.to_string(),
            [first, .., last] => format!("{}–{}*", first.0, last.1 - 1),
            [(start, end)] => format!("{start}–{}", end - 1),
        };
        let mark = if part.warm { '·' } else { '+' };
        let what: String =
            part.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(44).collect();
        writeln!(
            out,
            "{mark} {messages:>11} {:9} {:>7}  {faint}{what}{faint:#}",
            part.role,
            terminal::grouped(part.tokens)
        )?;
        for edit in &part.edits {
            let made = format!(
                "└ {} {} by {}: {}, {} → {};",
                edit.kind,
                edit.id,
                edit.strategy,
                edit.why,
                terminal::short(edit.before),
                terminal::short(edit.after)
            );
            let recall = format!("recall {}", edit.handles.join(" "));
            // As wide as a terminal of 80 columns.
            let wide = INDENT + made.chars().count() + 1 + recall.chars().count() > 80;
            let between = if wide { format!("\n{:INDENT$}  ", "") } else { " ".to_owned() };
            writeln!(out, "{:INDENT$}{good}{made}{between}{recall}{good:#}", "")?;
        }
    }
    prices(out, &explained.batches)
}

/// What each batch of edits was expected to cost and save, and how it came out.
fn prices(out: &mut impl Write, batches: &[Batch]) -> io::Result<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let strong = terminal::STRONG;
    writeln!(out, "\n{strong}Price{strong:#}{:16} billed again      smaller", "")?;
    writeln!(
        out,
        "{:>6} {:>7} {:>9} {:>9} {:>9} {:>12}",
        "call", "edits", "expected", "came out", "per call", "so far"
    )?;
    for batch in batches {
        let expected = if batch.cold { "cold".to_owned() } else { terminal::short(batch.rewrites) };
        let came_out = if batch.cold { "cold".to_owned() } else { terminal::short(batch.rewritten) };
        let (saves, saved) = (terminal::short(batch.saves), terminal::short(batch.saved));
        writeln!(
            out,
            "{:>6} {:>7} {expected:>9} {came_out:>9} {saves:>9} {saved:>12}",
            batch.call, batch.edits
        )?;
    }
    Ok(())
}

/// The log, with what is gone (−) and what stands in its place (+).
fn diff(out: &mut impl Write, session: &Session) -> io::Result<()> {
    let (bad, good) = (terminal::BAD, terminal::GOOD);
    let first = |text: &str| text.lines().next().unwrap_or_default().chars().take(66).collect::<String>();
    let line = |message: &Message| format!("{:9} {}", message.role().name(), first(&text_of(message)));
    let mut at = 0;
    let mut gone = |out: &mut dyn Write, upto: u32| -> io::Result<()> {
        while at < upto {
            if let Some(message) = session.log().get(Position(at)) {
                writeln!(out, "{bad}-{bad:#}{at:5} {}", line(message))?;
            }
            at += 1;
        }
        Ok(())
    };
    for part in session.view().parts() {
        match part.source {
            Source::Message(here) => {
                let edited = session.ledger().inside(here).iter().filter_map(|id| session.ledger().get(*id));
                let edited: Vec<&EditKind> = edited.map(|edit| &edit.kind).collect();
                if edited.is_empty() {
                    gone(out, here.0)?;
                    writeln!(out, " {:5} {}", here.0, line(&part.message))?;
                    gone(&mut io::sink(), here.0 + 1)?;
                    continue;
                }
                gone(out, here.0 + 1)?;
                writeln!(out, "{good}+{good:#}{:5} {}", here.0, line(&part.message))?;
                let marks = part.message.blocks().iter().filter_map(|block| match block {
                    Block::ToolResult(result) => result.text.lines().find(|line| line.starts_with('⟦')),
                    _ => None,
                });
                for mark in marks {
                    writeln!(out, "                 {mark}")?;
                }
            }
            Source::Edit(id) => {
                let spans = session.ledger().get(id).map(|edit| edit.kind.spans()).unwrap_or_default();
                gone(out, spans.first().map_or(0, |span| span.end.0))?;
                writeln!(out, "{good}+{good:#}      {}", line(&part.message))?;
            }
            Source::Note | Source::Rules | Source::Tail => {
                writeln!(out, "{good}+{good:#}      {}", line(&part.message))?
            }
        }
    }
    gone(out, session.log().end().0)
}
