//! `longhaul demo`: a recorded session, call by call, as its context fills up. The session
//! was recorded for this project and is in the binary: no key, no network, no file.

mod with_agent;

use std::io::{self, Write};
use std::time::Duration;

use longhaul::{Block, Edit, EditKind, Message, Profile, RecallPart, Role, Session, Tokens};
use longhaul_wire::transcript::Reader;

use crate::error::Failure;
use crate::filling::{Filling, legend};
use crate::lab::figures::Figures;
use crate::lab::recorded::{MeterKind, RecordedSession};
use crate::terminal;

/// A long session in a small window, live: no key, no network
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul demo
  longhaul demo --agent
  longhaul demo --fast | less")]
pub struct Args {
    /// Do not wait between calls
    #[arg(long)]
    fast: bool,
    /// The agent at work instead: a script in the place of a model, real tools
    #[arg(long)]
    agent: bool,
}

static SESSION: &[u8] = include_bytes!("../../demo/session.jsonl.gz");
const WINDOW: Tokens = Tokens(32_000);
/// Width of the window as it is drawn.
const COLUMNS: u64 = 52;
const PAUSE: Duration = Duration::from_millis(70);

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.agent {
        return with_agent::run(args.fast);
    }
    let out = &mut anstream::stdout().lock();
    let messages = Reader::unpacked(SESSION)?;
    // The model answers by the recording; sizes are counted for one with an open vocabulary.
    let mut recorded = RecordedSession::new(Profile::longhaul(), "gpt-4o", WINDOW, MeterKind::Model);
    let mut demo = Demo::default();
    intro(out)?;
    for message in messages {
        let message = message.map_err(|error| Failure::Input(format!("the bundled session: {error}")))?;
        match message.role() {
            Role::User => {
                writeln!(out, "\n{}> {}{:#}", terminal::STRONG, first_line(&message), terminal::STRONG)?
            }
            Role::Assistant => {
                demo.call(out, &mut recorded, &message)?;
                if !args.fast {
                    out.flush()?;
                    std::thread::sleep(PAUSE);
                }
            }
            _ => {}
        }
        recorded.push(message);
    }
    demo.outro(out, recorded.session())?;
    Ok(())
}

#[derive(Default)]
struct Demo {
    figures: Figures,
    full_before: Tokens,
    edits_seen: usize,
}

impl Demo {
    fn call(
        &mut self,
        out: &mut impl Write,
        recorded: &mut RecordedSession,
        answer: &Message,
    ) -> Result<(), Failure> {
        let prepared = recorded.prepare();
        let (session, full) = (recorded.session(), recorded.full_tokens());
        let sent = if prepared.is_ok() { session.sent() } else { None };
        self.figures.add_call(full, self.full_before, sent, 0);
        self.full_before = full;
        self.edits(out, session)?;
        let bar = Filling::of(session).bar(WINDOW, COLUMNS);
        let tokens = session.size().tokens;
        writeln!(out, "{:4} │{bar}│{:>6} {}", self.figures.calls, terminal::short(tokens.0), doing(answer))?;
        if let Err(problem) = prepared {
            writeln!(out, "     {}{problem}{:#}", terminal::BAD, terminal::BAD)?;
        }
        Ok(())
    }

    /// What was done to make room, a line for each strategy.
    fn edits(&mut self, out: &mut impl Write, session: &Session) -> io::Result<()> {
        let new: Vec<&Edit> =
            session.ledger().edits().skip(self.edits_seen).map(|(edit, _)| &**edit).collect();
        self.edits_seen += new.len();
        terminal::edits(&new)
            .iter()
            .try_for_each(|line| writeln!(out, "     {}└ {line}{:#}", terminal::GOOD, terminal::GOOD))
    }

    fn outro(&self, out: &mut impl Write, session: &Session) -> io::Result<()> {
        let filling = Filling::of(session);
        let figures = &self.figures;
        writeln!(
            out,
            "\nAfter {} calls the context holds {} tokens:",
            figures.calls,
            terminal::grouped(filling.tokens())
        )?;
        filling.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(
            out,
            "\nThe whole session has {} tokens, {} times the window;\nno request was larger than {}.",
            terminal::grouped(figures.peak_full.0),
            figures.peak_full.0 / WINDOW.0,
            terminal::grouped(figures.peak_sent.0),
        )?;
        let saved = 1.0 - figures.cost_sent() as f64 / figures.cost_full().max(1) as f64;
        writeln!(
            out,
            "Cost at cached prices (0.1 and 1.25): {} tokens, not {}; {} less.",
            terminal::short(figures.cost_sent()),
            terminal::short(figures.cost_full()),
            terminal::percent(Some(saved)),
        )?;
        self.recalled(out, session)
    }

    /// Nothing is lost: the largest thing that was taken out comes back.
    fn recalled(&self, out: &mut impl Write, session: &Session) -> io::Result<()> {
        let digests =
            session.ledger().edits().filter(|(edit, _)| matches!(edit.kind, EditKind::Digest { .. }));
        let Some((edit, _)) = digests.max_by_key(|(edit, _)| edit.before) else { return Ok(()) };
        let Some(handle) = edit.originals.first() else { return Ok(()) };
        let Ok(text) = session.recall(&handle.short(), &RecallPart::Whole) else { return Ok(()) };
        writeln!(
            out,
            "Nothing is lost: {} edits, each can be undone, each original recalled.\nRecalling {} gives back {} lines; the first:",
            self.edits_seen,
            handle.short(),
            terminal::grouped(text.lines().count() as u64),
        )?;
        writeln!(
            out,
            "  {}{}{:#}",
            terminal::FAINT,
            shorten(text.lines().next().unwrap_or_default(), 76),
            terminal::FAINT
        )
    }
}

fn intro(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "A coding session of a day, replayed in a window of {} tokens.",
        terminal::grouped(WINDOW.0)
    )?;
    writeln!(out, "Each line is a call to the model; the bar is what it is sent:")?;
    legend().iter().try_for_each(|line| writeln!(out, "  {line}"))
}

fn doing(answer: &Message) -> String {
    let mut names: Vec<&str> = answer.calls().map(|call| &*call.name).collect();
    names.dedup();
    if names.is_empty() { "answer".to_owned() } else { shorten(&names.join(" "), 13) }
}

fn first_line(message: &Message) -> String {
    let text = message.blocks().iter().find_map(|block| match block {
        Block::Text(text) => text.text.lines().next(),
        _ => None,
    });
    shorten(text.unwrap_or_default(), 76)
}

/// Cuts to a number of columns; a wide character (CJK) takes two.
fn shorten(text: &str, columns: usize) -> String {
    let wide = |c: char| if matches!(c, '\u{1100}'..='\u{ffdc}' | '\u{1f300}'..) { 2 } else { 1 };
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += wide(c);
        if used > columns {
            let kept: String = text[..at].chars().collect();
            return format!("{}…", kept.trim_end());
        }
    }
    text.to_owned()
}
