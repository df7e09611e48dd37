//! `longhaul demo`: a recorded session, call by call, as its context fills up; then what others would have done in
//! the same window, and what is left of early facts. The session was recorded for this project and is in the binary:
//! no key, no network, no file.

mod others;
mod proof;
mod with_agent;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use longhaul::{Block, Edit, Message, Profile, Role, Session, Tokens};
use longhaul_wire::transcript::Reader;

use crate::commands::demo::others::{Measured, Other};
use crate::commands::demo::proof::{Finding, Proof, Whereabouts};
use crate::error::Failure;
use crate::filling::{Filling, legend};
use crate::lab::figures::Figures;
use crate::lab::needs::{Found, Holdings, Needs, text_of};
use crate::lab::pieces::PieceCache;
use crate::lab::prices::Prices;
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
/// The window that it is shown in.
pub const WINDOW: Tokens = Tokens(32_000);
/// Width of the window as it is drawn.
const COLUMNS: u64 = 52;
const PAUSE: Duration = Duration::from_millis(70);

/// The session as a transcript. Its model has no prices: here it has the name of one that has.
pub fn transcript_with_prices() -> io::Result<String> {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(SESSION).read_to_string(&mut text)?;
    Ok(text.replace(r#""model":"demo""#, r#""model":"claude-sonnet-4-5""#))
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.agent {
        return with_agent::run(args.fast);
    }
    let out = &mut anstream::stdout().lock();
    let messages = Reader::unpacked(SESSION)?;
    // The model answers by the recording; sizes are counted for one with an open vocabulary.
    let mut recorded = RecordedSession::new(Profile::longhaul(), "gpt-4o", WINDOW, MeterKind::Model);
    let mut demo = Demo::new();
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
        demo.push(&mut recorded, message);
    }
    demo.outro(out, recorded.session())?;
    Ok(())
}

struct Demo {
    figures: Figures,
    full_before: Tokens,
    edits_seen: usize,
    log: Vec<Measured>,
    others: [Other; 2],
    needs: Needs,
    held: Holdings,
    pieces: PieceCache,
}

impl Demo {
    fn new() -> Self {
        Self {
            figures: Figures::default(),
            full_before: Tokens(0),
            edits_seen: 0,
            log: Vec::new(),
            others: Other::all(),
            // Sizes are the session's; needs are looked for by text alone.
            needs: Needs::new(|_| 0.0),
            held: Holdings::default(),
            pieces: PieceCache::default(),
        }
    }

    fn push(&mut self, recorded: &mut RecordedSession, message: Message) {
        let message = Arc::new(message);
        let before = recorded.full_tokens();
        recorded.push(message.clone());
        self.needs.push(&message, &text_of(&message));
        self.log.push(Measured { message, tokens: (recorded.full_tokens() - before).0 });
    }

    fn call(
        &mut self,
        out: &mut impl Write,
        recorded: &mut RecordedSession,
        answer: &Message,
    ) -> Result<(), Failure> {
        let prepared = recorded.prepare();
        let (session, full) = (recorded.session(), recorded.full_tokens());
        let sent = if prepared.is_ok() { session.sent() } else { None };
        self.figures.add_call(full, self.full_before, sent, Prices::default());
        self.full_before = full;
        let view = self.pieces.of_view(session.view(), &mut self.needs);
        self.held.change(view.kept, &view.parts, view.tail);
        self.figures.add_found(self.held.judge(&self.needs, answer, |at| recorded.is_recallable(at)));
        for other in &mut self.others {
            other.call(&self.log, WINDOW, session.meter(), (answer, &mut self.needs));
        }
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
        writeln!(
            out,
            "Nothing is lost: {} edits, each can be undone, each original recalled.",
            self.edits_seen
        )?;
        self.compared(out)?;
        proved(out, &Proof::of(session, &self.others), &self.others)?;
        next(out)
    }

    /// The same session in the same window, kept inside in other ways.
    fn compared(&self, out: &mut impl Write) -> io::Result<()> {
        let figures = &self.figures;
        let full = figures.cost_full().max(1);
        heading(out, &format!("In the same window of {} tokens", terminal::grouped(WINDOW.0)))?;
        writeln!(out, "{:26}{:>7}{:>9}{:>18}{:>15}", "", "cost", "largest", "lines needed*", "cache breaks")?;
        let mut row = |name: &str, cost: u64, largest: u64, found: &str, breaks: u64| {
            let cost = terminal::percent(Some(cost as f64 / full as f64));
            let largest = terminal::short(largest);
            writeln!(out, "  {name:24}{cost:>7}{largest:>9}{found:>18}{breaks:>15}")
        };
        let lines = |found: &Found| format!("{} there", terminal::percent(found.in_line()));
        row("all of it, if it fitted", figures.cost_full(), figures.peak_full.0, "100.0% there", 0)?;
        for other in &self.others {
            row(other.says, other.cost.round() as u64, other.largest, &lines(&other.found), other.breaks)?;
        }
        row("Longhaul", figures.cost_sent(), figures.peak_sent.0, &lines(&figures.found), figures.breaks)?;
        let note = "Cost at cached prices: 0.1 read again, 1.25 new, 5 written by a model. A summary\n\
             holds the user's words and the model's answers, 2,500 tokens of them.\n\
             * Lines that later calls needed, said more than six steps before. What was not\n\
             there could be";
        let reachable = terminal::percent(figures.found.reachable());
        writeln!(
            out,
            "{}{note} recalled with Longhaul ({reachable} of all).{:#}",
            terminal::FAINT,
            terminal::FAINT
        )
    }
}

/// Three early facts, and who can still say them at the last call.
fn proved(out: &mut impl Write, proof: &Proof, others: &[Other]) -> io::Result<()> {
    heading(out, "What the first third of the session said, at the last call")?;
    let row = |out: &mut dyn Write, question: &str, places: &[String]| {
        let places: String = places.iter().map(|place| painted(place)).collect();
        writeln!(out, "  {question:42}{places}")
    };
    let and =
        |others: Vec<String>, longhaul: String| others.into_iter().chain([longhaul]).collect::<Vec<_>>();
    row(out, "", &and(others.iter().map(|other| other.name.to_owned()).collect(), "Longhaul".to_owned()))?;
    let shown = proof.shown();
    for Finding { question, others, longhaul, .. } in &shown {
        let places = others.iter().map(|place| word(place).to_owned()).collect();
        row(out, question, &and(places, word(longhaul).to_owned()))?;
    }
    let (kept, there, recalled) = proof.kept();
    let all = format!("{} questions of this kind, answered", proof.count());
    row(out, &all, &and(kept.iter().map(usize::to_string).collect(), (there + recalled).to_string()))?;
    for Finding { question, answer, call, longhaul, .. } in shown {
        writeln!(out, "\n{question} Said before call {call}: {answer}")?;
        if let Whereabouts::Recalled { handle, line } = longhaul {
            writeln!(out, "  not in what is sent; recalling {handle} gives back:")?;
            writeln!(out, "  {}{}{:#}", terminal::FAINT, terminal::cut(line.trim(), 76), terminal::FAINT)?;
        }
    }
    Ok(())
}

fn word(place: &Whereabouts) -> &'static str {
    match place {
        Whereabouts::There => "there",
        Whereabouts::Recalled { .. } => "recalled",
        Whereabouts::Lost => "lost",
    }
}

/// A word of the table, in its column.
fn painted(word: &str) -> String {
    match word {
        "lost" => format!("{}{word:>11}{:#}", terminal::BAD, terminal::BAD),
        "there" | "recalled" => format!("{}{word:>11}{:#}", terminal::GOOD, terminal::GOOD),
        _ => format!("{word:>11}"),
    }
}

fn heading(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "\n{}{text}{:#}", terminal::STRONG, terminal::STRONG)
}

/// What to type next.
fn next(out: &mut impl Write) -> io::Result<()> {
    heading(out, "What to type next")?;
    writeln!(out, "  longhaul report         what yours cost, and what Longhaul would have sent")?;
    writeln!(out, "  longhaul wrap claude    Claude Code behind it; also codex, opencode, pi, …")?;
    writeln!(out, "  longhaul inspect demo   this session request by request, in a browser")?;
    writeln!(out, "  longhaul demo --agent   Longhaul's own agent at work, without a key")
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
    if names.is_empty() { "answer".to_owned() } else { terminal::cut(&names.join(" "), 13) }
}

fn first_line(message: &Message) -> String {
    let text = message.blocks().iter().find_map(|block| match block {
        Block::Text(text) => text.text.lines().next(),
        _ => None,
    });
    terminal::cut(text.unwrap_or_default(), 76)
}
