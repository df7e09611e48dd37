//! `longhaul demo`: a recorded session, call by call, as its context fills up. The session
//! was recorded for this project and is in the binary: no key, no network, no file.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use longhaul::{
    Block, Edit, EditKind, Message, Models, Part, Profile, RecallPart, Role, Session, Time, Tokens,
};
use longhaul_wire::transcript::Reader;

use crate::error::Failure;
use crate::figures::Figures;
use crate::show;
use crate::source::push_recorded;

/// A long session in a small window, live: no key, no network
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul demo
  longhaul demo --fast | less")]
pub struct Args {
    /// Do not wait between calls
    #[arg(long)]
    fast: bool,
}

static SESSION: &[u8] = include_bytes!("../demo/session.jsonl.gz");
const WINDOW: Tokens = Tokens(32_000);
/// Width of the window as it is drawn.
const COLUMNS: u64 = 52;
const PAUSE: Duration = Duration::from_millis(70);

/// What fills the context.
#[derive(Clone, Copy)]
struct Category {
    name: &'static str,
    letter: char,
    style: Style,
}

const fn category(name: &'static str, letter: char, color: AnsiColor) -> Category {
    Category { name, letter, style: color.on_default() }
}

const CATEGORIES: [Category; 7] = [
    category("system and tools", 's', AnsiColor::Magenta),
    category("user", 'u', AnsiColor::Green),
    category("answers", 'a', AnsiColor::Cyan),
    category("thinking", 't', AnsiColor::Blue),
    category("tool calls", 'c', AnsiColor::Yellow),
    category("tool results", 'r', AnsiColor::White),
    category("summaries", 'm', AnsiColor::BrightGreen),
];

/// Tokens by category, in the order of `CATEGORIES`.
type Filling = [u64; CATEGORIES.len()];

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let out = &mut anstream::stdout().lock();
    let messages = Reader::unpacked(SESSION)?;
    // The model answers by the recording; sizes are counted for one with an open vocabulary.
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(Profile::longhaul(), model).with_window(WINDOW);
    let mut demo = Demo::default();
    intro(out)?;
    for message in messages {
        let message = message.map_err(|error| Failure::Input(format!("the bundled session: {error}")))?;
        match message.role() {
            Role::User => writeln!(out, "\n{}> {}{:#}", show::STRONG, first_line(&message), show::STRONG)?,
            Role::Assistant => {
                demo.call(out, &mut session, &message)?;
                if !args.fast {
                    out.flush()?;
                    std::thread::sleep(PAUSE);
                }
            }
            _ => {}
        }
        demo.now = demo.now.max(message.time());
        push_recorded(&mut session, message);
    }
    demo.outro(out, &session)?;
    Ok(())
}

#[derive(Default)]
struct Demo {
    now: Option<Time>,
    figures: Figures,
    full_before: Tokens,
    edits_seen: usize,
}

impl Demo {
    fn call(&mut self, out: &mut impl Write, session: &mut Session, answer: &Message) -> Result<(), Failure> {
        let problem = session.prepare(self.now).err().map(|error| error.to_string());
        let full = session.meter().tokens(session.full()).tokens;
        let sent = if problem.is_none() { session.sent() } else { None };
        self.figures.add_call(full, self.full_before, sent, 0);
        self.full_before = full;
        self.edits(out, session)?;
        let (tokens, bar) = (session.size().tokens, bar(&filling(session)));
        writeln!(out, "{:4} │{bar}│{:>6} {}", self.figures.calls, show::short(tokens.0), doing(answer))?;
        if let Some(problem) = problem {
            writeln!(out, "     {}{problem}{:#}", show::BAD, show::BAD)?;
        }
        Ok(())
    }

    /// What was done to make room, a line for each strategy.
    fn edits(&mut self, out: &mut impl Write, session: &Session) -> io::Result<()> {
        let new: Vec<&Edit> =
            session.ledger().edits().skip(self.edits_seen).map(|(edit, _)| &**edit).collect();
        self.edits_seen += new.len();
        show::edits(&new)
            .iter()
            .try_for_each(|line| writeln!(out, "     {}└ {line}{:#}", show::GOOD, show::GOOD))
    }

    fn outro(&self, out: &mut impl Write, session: &Session) -> io::Result<()> {
        let filling = filling(session);
        let all: u64 = filling.iter().sum();
        let figures = &self.figures;
        writeln!(out, "\nAfter {} calls the context holds {} tokens:", figures.calls, show::grouped(all))?;
        for (category, tokens) in CATEGORIES.iter().zip(filling) {
            let Category { name, letter, style } = category;
            let share = tokens as f64 / all.max(1) as f64;
            let percent = show::percent(Some(share));
            writeln!(out, "  {style}{letter}{style:#} {name:17}{:>9} {percent:>6}", show::grouped(tokens))?;
        }
        writeln!(
            out,
            "\nThe whole session has {} tokens, {} times the window;\nno request was larger than {}.",
            show::grouped(figures.peak_full.0),
            figures.peak_full.0 / WINDOW.0,
            show::grouped(figures.peak_sent.0),
        )?;
        let saved = 1.0 - figures.cost_sent() as f64 / figures.cost_full().max(1) as f64;
        writeln!(
            out,
            "Cost at cached prices (0.1 and 1.25): {} tokens, not {}; {} less.",
            show::short(figures.cost_sent()),
            show::short(figures.cost_full()),
            show::percent(Some(saved)),
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
            show::grouped(text.lines().count() as u64),
        )?;
        writeln!(
            out,
            "  {}{}{:#}",
            show::FAINT,
            shorten(text.lines().next().unwrap_or_default(), 76),
            show::FAINT
        )
    }
}

fn intro(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "A coding session of a day, replayed in a window of {} tokens.", show::grouped(WINDOW.0))?;
    writeln!(out, "Each line is a call to the model; the bar is what it is sent:")?;
    let legend =
        CATEGORIES.map(|Category { name, letter, style }| format!("{style}{letter}{style:#} {name}"));
    writeln!(out, "  {}", legend[..4].join("   "))?;
    writeln!(out, "  {}", legend[4..].join("   "))
}

/// Tokens of the view by category.
fn filling(session: &Session) -> Filling {
    let mut filling = Filling::default();
    filling[0] = session.meter().tokens(session.view().fixed().measure).tokens.0;
    for part in session.view().parts() {
        add_part(&mut filling, session, part);
    }
    filling
}

fn add_part(filling: &mut Filling, session: &Session, part: &Part) {
    let role = part.message.role();
    let whole = session.meter().tokens(part.measure).tokens.0;
    if part.message.blocks().len() == 1 {
        filling[category_of(role, &part.message.blocks()[0])] += whole;
        return;
    }
    // Shares by size: blocks are not counted one by one.
    let bytes: usize = part.message.blocks().iter().map(Block::bytes).sum();
    for block in part.message.blocks() {
        filling[category_of(role, block)] += whole * block.bytes() as u64 / bytes.max(1) as u64;
    }
}

fn category_of(role: Role, block: &Block) -> usize {
    match (role, block) {
        (_, Block::ToolResult(_)) => 5,
        (_, Block::ToolCall(_)) => 4,
        (_, Block::Thinking(_)) => 3,
        (Role::Summary, _) => 6,
        (Role::System, _) => 0,
        (Role::Assistant, _) => 2,
        (Role::User | Role::Tool, _) => 1,
    }
}

/// The window: each category a run of its letter, as wide as its share.
fn bar(filling: &Filling) -> String {
    let mut bar = String::new();
    let (mut sum, mut drawn) = (0, 0);
    for (category, tokens) in CATEGORIES.iter().zip(filling) {
        sum += tokens;
        let end = (sum * COLUMNS / WINDOW.0).min(COLUMNS);
        let run: String = std::iter::repeat_n(category.letter, (end - drawn) as usize).collect();
        bar += &format!("{}{run}{:#}", category.style, category.style);
        drawn = end;
    }
    bar + &" ".repeat((COLUMNS - drawn) as usize)
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
