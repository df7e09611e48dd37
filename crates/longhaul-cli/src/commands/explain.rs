//! `longhaul explain`: what the model would be sent at one call of a recorded session, part
//! by part: where it comes from, which edit, why, what it cost and saved.

mod happening;

use std::io::{self, Write};
use std::path::PathBuf;

use longhaul::edits::{EditPrice, LostWith};
use longhaul::size::Measure;
use longhaul::{Block, Cursor, EditKind, Entry, Message, Position, Role, Session, Source, Tokens, Why};
use longhaul_config::Config;
use serde::Serialize;

use crate::arguments::{binds, say_unknown_model};
use crate::error::Failure;
use crate::lab::inputs;
use crate::lab::needs::text_of;
use crate::lab::recorded::{MeterKind, RecordedSession, window_of, without_model};
use crate::lab::transcript_file::TranscriptFile;
use crate::parts::{self, FrameRow, PartRow};
use crate::terminal;
use happening::Happening;

/// Show what would be sent at one call of a recorded session, and why
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul explain session.jsonl                  where something happened
  longhaul explain session.jsonl --call last --text
  longhaul explain session.jsonl --call 40 --window 32000 --diff
  longhaul explain session.jsonl --call 40 --profile archive
  longhaul explain session.jsonl --call 40 --json | jq .parts[0]")]
pub struct Args {
    /// The transcript, of any known format; of a folder, its newest session; `path#2` is one conversation of a file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The call, counted from 1, or `last`; without it, the calls before which something was compacted
    #[arg(long, value_name = "N")]
    call: Option<CallName>,
    /// Tokens that fit into the model's window; without it, the profile's
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// How to compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = MeterKind::Model)]
    meter: MeterKind,
    /// The model to count for, where the transcript does not say
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// As if models bound thinking to what stands before it, as newer Claude models do. So it is with a --model that binds
    #[arg(long)]
    bound: bool,
    /// Show what is gone from the log and what stands in its place
    #[arg(long, requires = "call", conflicts_with = "json")]
    diff: bool,
    /// Show summaries and digests whole
    #[arg(long, requires = "call", conflicts_with_all = ["json", "diff"])]
    text: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A call, as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallName {
    Number(u64),
    Last,
}

impl std::str::FromStr for CallName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let number = || text.parse().ok().filter(|number| *number > 0).map(Self::Number);
        if text == "last" {
            Ok(Self::Last)
        } else {
            number().ok_or("not the number of a call, from 1, or `last`")
        }
    }
}

/// The edits of one call, what they were expected to cost and save, and how it came out.
#[derive(Serialize)]
struct Batch {
    call: u64,
    edits: usize,
    why: &'static str,
    /// Tokens that requests before it carried, and that its fold would have taken: what made the fold pay back.
    #[serde(skip_serializing_if = "Option::is_none")]
    carried: Option<u64>,
    /// Tokens of the warm prefix that were expected to be billed again, before the edits were made where a fold paid back.
    rewrites: u64,
    /// Tokens that were so: sent before, and not read from the cache. Nothing, if the cache was
    /// gone anyway.
    rewritten: u64,
    cold: bool,
    /// Tokens that each later request was expected to be smaller by.
    takes: u64,
    /// Tokens that each later request is smaller by.
    saves: u64,
    /// How many later requests a fold was expected to live for; 0 for other edits.
    calls: u64,
    /// What that has come to in the calls since, this one included.
    saved: u64,
    /// Thinking that went with them, where the model binds it to what stands before it.
    #[serde(skip_serializing_if = "LostWith::is_nothing")]
    thinking: LostWith,
}

impl Batch {
    /// The edits since `first` of the call that was just prepared. `began` is where the journal stood before it, `new`
    /// the size of what the call was sent for the first time.
    fn new(call: u64, session: &Session, first: usize, began: Cursor, new: Tokens) -> Option<Self> {
        let edits = session.ledger().edits().skip(first).map(|(edit, _)| edit);
        let warm: Vec<_> = edits.filter(|edit| edit.why != Why::Entry).collect();
        let sent = session.sent()?;
        let price = EditPrice::of_batch(warm.iter().map(|edit| &***edit));
        let paid_back = session.since(began).find_map(|entry| match entry {
            Entry::CompactionBegan(compaction) => compaction.pays_back,
            _ => None,
        });
        Some(Self {
            call,
            edits: warm.len(),
            why: warm.first()?.why.name(),
            carried: paid_back.map(|figures| figures.carried.0),
            rewrites: paid_back.map_or(price.rewrites, |figures| figures.rewrites).0,
            rewritten: if sent.cold { 0 } else { (sent.billed.written - new).0 },
            cold: sent.cold,
            takes: paid_back.map_or(price.saves, |figures| figures.takes).0,
            saves: price.saves.0,
            calls: price.calls,
            saved: 0,
            thinking: price.thinking,
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
    let mut file = TranscriptFile::open(&inputs::find_one(&args.file)?)?;
    say_unknown_model(args.model.as_deref().unwrap_or_default());
    let name = args.profile.as_deref().unwrap_or(config.profile_name());
    let profile = without_model(config.profile(name)?);
    let window = window_of(args.window, args.model.as_deref().unwrap_or_default(), &profile);
    let mut recorded =
        RecordedSession::new(profile, args.model.as_deref().unwrap_or_default(), window, args.meter)
            .with_bound_thinking(args.bound || binds(args.model.as_deref()));
    let messages: Vec<Message> = file.one_log().collect();
    file.finish(messages.is_empty())?;
    let all = messages.iter().filter(|message| message.role() == Role::Assistant).count() as u64;
    let wanted = match args.call {
        Some(CallName::Number(number)) => Some(number),
        Some(CallName::Last) => Some(all.max(1)),
        None => None,
    };
    if wanted.is_some() && all == 0 {
        return Err(Failure::file(&args.file, "has no calls: no model answered in it"));
    }
    if let Some(call) = wanted.filter(|call| *call > all) {
        return Err(Failure::file(&args.file, format!("has {all} calls; --call {call} is past the last")));
    }
    let mut calls = 0;
    let (mut batches, mut sent, mut happened) = (Vec::new(), Position(0), Vec::new());
    for message in messages {
        if message.role() == Role::Assistant {
            calls += 1;
            let first = recorded.session().ledger().next_id().0 as usize;
            let began = recorded.session().cursor();
            let prepared = recorded.prepare_for(&message);
            // All sizes of a call are of one scale: what the answer teaches is left out, unless nothing is known yet.
            let is_scaled = recorded.is_scaled();
            if !is_scaled {
                recorded.learn(&message);
            }
            let session = recorded.session();
            // What was never sent before: the newest messages as they are shown, and the tail.
            if prepared.is_ok() {
                let newest = session.view().parts().iter().filter(|part| match part.source {
                    Source::Message(at) => at >= sent,
                    _ => false,
                });
                let new: Measure = newest.chain(session.view().tail()).map(|part| part.measure).sum();
                let new = session.meter().tokens(new).tokens;
                batches.extend(Batch::new(calls, session, first, began, new));
                sent = session.log().end();
            }
            if Some(calls) == wanted {
                prepared.map_err(|error| Failure::file(&args.file, format!("call {calls}: {error}")))?;
                for batch in &mut batches {
                    batch.saved = batch.saves * (calls - batch.call + 1);
                }
                return print(args, calls, &recorded, batches);
            }
            happened.extend(Happening::new(calls, &recorded, first, prepared.err()));
            if is_scaled {
                recorded.learn(&message);
            }
        }
        recorded.push(message);
    }
    let edits = u64::from(recorded.session().ledger().next_id().0);
    Ok(happening::print(&happened, edits, &args.file, all, window, args.json)?)
}

fn print(args: &Args, call: u64, recorded: &RecordedSession, batches: Vec<Batch>) -> Result<(), Failure> {
    let explained = explain(args, call, recorded, batches);
    let session = recorded.session();
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", terminal::json(&explained)?)?;
    } else if args.diff {
        diff(&mut out, session)?;
    } else if args.text {
        texts(&mut out, session)?;
    } else {
        table(&mut out, frame(recorded), &explained)?;
    }
    Ok(())
}

/// System prompt and tools: those of the frame, and those that the file does not hold.
fn frame(recorded: &RecordedSession) -> FrameRow {
    let frame = parts::frame(recorded.session());
    FrameRow { tokens: frame.tokens + recorded.overhead_tokens().0, ..frame }
}

fn explain(args: &Args, call: u64, recorded: &RecordedSession, batches: Vec<Batch>) -> Explained {
    let session = recorded.session();
    let billed = recorded.sent().map(|sent| sent.billed).unwrap_or_default();
    Explained {
        transcript: args.file.display().to_string(),
        call,
        upto: session.log().messages().len(),
        window: session.budget().window.0,
        tokens: (billed.read + billed.written).0,
        full_tokens: recorded.full_tokens().0,
        read: billed.read.0,
        written: billed.written.0,
        frame_tokens: frame(recorded).tokens,
        parts: parts::rows(session),
        batches,
    }
}

fn table(out: &mut impl Write, frame: FrameRow, explained: &Explained) -> io::Result<()> {
    let strong = terminal::STRONG;
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
    parts::table(out, frame, &explained.parts)?;
    prices(out, &explained.batches)
}

/// What each batch of edits was expected to cost and save, and how it came out.
fn prices(out: &mut impl Write, batches: &[Batch]) -> io::Result<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let strong = terminal::STRONG;
    writeln!(out, "\n{strong}Price{strong:#}{:11}billed again  smaller per call   for  saved", "")?;
    writeln!(
        out,
        "{:>4} {:>5} {:>8} {:>8} {:>8} {:>8} {:>5} {:>6}  why",
        "call", "edits", "expected", "came out", "expected", "came out", "calls", "so far"
    )?;
    // Only a fold is expected to live for some calls.
    let calls = |calls: u64| if calls == 0 { "–".to_owned() } else { calls.to_string() };
    for batch in batches {
        let again = |tokens| if batch.cold { "cold".to_owned() } else { terminal::short(tokens) };
        writeln!(
            out,
            "{:>4} {:>5} {:>8} {:>8} {:>8} {:>8} {:>5} {:>6}  {}",
            batch.call,
            batch.edits,
            again(batch.rewrites),
            again(batch.rewritten),
            terminal::short(batch.takes),
            terminal::short(batch.saves),
            calls(batch.calls),
            terminal::short(batch.saved),
            batch.why
        )?;
        if let Some(lost) = terminal::lost_thinking(batch.thinking) {
            writeln!(out, "{:8}and {lost}", "")?;
        }
    }
    Ok(())
}

/// All text that stands in the place of something, whole.
fn texts(out: &mut impl Write, session: &Session) -> io::Result<()> {
    let strong = terminal::STRONG;
    let mut none = true;
    for part in session.view().parts() {
        let edits: Vec<_> = match part.source {
            Source::Edit(id) => session.ledger().get(id).into_iter().collect(),
            Source::Message(at) => {
                session.ledger().inside(at).iter().filter_map(|id| session.ledger().get(*id)).collect()
            }
            Source::Note | Source::Rules | Source::HostNote(_) | Source::Tail => Vec::new(),
        };
        let Some(edit) = edits.first() else { continue };
        none = false;
        writeln!(out, "{strong}{} {} by {}{strong:#}", edit.kind.name(), edit.id.0, edit.strategy)?;
        writeln!(out, "{}\n", terminal::printable(&text_of(&part.message)))?;
    }
    if none {
        writeln!(out, "Nothing was compacted: the log is sent as it is.")?;
    }
    Ok(())
}

/// The log, with what is gone (−) and what stands in its place (+).
fn diff(out: &mut impl Write, session: &Session) -> io::Result<()> {
    let (bad, good) = (terminal::BAD, terminal::GOOD);
    let room = terminal::width().saturating_sub(17);
    let first = |text: &str| terminal::one_line(text.lines().next().unwrap_or_default(), room);
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
                    writeln!(out, "                 {}", terminal::one_line(mark, room))?;
                }
            }
            Source::Edit(id) => {
                let spans = session.ledger().get(id).map(|edit| edit.kind.spans()).unwrap_or_default();
                gone(out, spans.first().map_or(0, |span| span.end.0))?;
                writeln!(out, "{good}+{good:#}      {}", line(&part.message))?;
            }
            Source::Note | Source::Rules | Source::HostNote(_) | Source::Tail => {
                writeln!(out, "{good}+{good:#}      {}", line(&part.message))?
            }
        }
    }
    gone(out, session.log().end().0)
}
