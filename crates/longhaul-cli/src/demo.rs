//! `longhaul demo`: a recorded session, call by call, as its context fills up. The session
//! was recorded for this project and is in the binary: no key, no network, no file.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use longhaul::{Block, Message, Models, Part, Profile, Role, Session, Tokens};
use longhaul_wire::transcript::Reader;

use crate::error::Failure;
use crate::show;

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

const CATEGORIES: [Category; 6] = [
    category("system and tools", 's', AnsiColor::Magenta),
    category("user", 'u', AnsiColor::Green),
    category("answers", 'a', AnsiColor::Cyan),
    category("thinking", 't', AnsiColor::Blue),
    category("tool calls", 'c', AnsiColor::Yellow),
    category("tool results", 'r', AnsiColor::White),
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
    let mut demo = Demo { calls: 0, over: 0 };
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
        session.push(message);
    }
    demo.outro(out, &session)?;
    Ok(())
}

struct Demo {
    calls: u64,
    over: u64,
}

impl Demo {
    fn call(&mut self, out: &mut impl Write, session: &mut Session, answer: &Message) -> io::Result<()> {
        self.calls += 1;
        let fits = session.prepare(None).is_ok();
        self.over += u64::from(!fits);
        let tokens = session.size().tokens;
        let bar = bar(&filling(session));
        let mark = if fits { "│".to_owned() } else { format!("{}▶{:#}", show::BAD, show::BAD) };
        writeln!(out, "{:4} │{bar}{mark}{:>6} {}", self.calls, show::short(tokens.0), doing(answer))
    }

    fn outro(&self, out: &mut impl Write, session: &Session) -> io::Result<()> {
        let filling = filling(session);
        let all: u64 = filling.iter().sum();
        writeln!(out, "\nAfter {} calls the context holds {} tokens:", self.calls, show::grouped(all))?;
        for (category, tokens) in CATEGORIES.iter().zip(filling) {
            let Category { name, letter, style } = category;
            let share = tokens as f64 / all.max(1) as f64;
            writeln!(
                out,
                "  {style}{letter}{style:#} {name:17}{:>9} {:>6}",
                show::grouped(tokens),
                show::percent(Some(share))
            )?;
        }
        writeln!(
            out,
            "\n{} of {} calls did not fit into a window of {} tokens. Keeping them inside\n\
             it (digests, folds, undo, recall) is what comes next; nothing of it is shown here.",
            self.over,
            self.calls,
            show::grouped(WINDOW.0)
        )
    }
}

fn intro(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "A coding session of a day, replayed in a window of {} tokens.", show::grouped(WINDOW.0))?;
    writeln!(out, "Each line is a call to the model; the bar is what it is sent:")?;
    let legend =
        CATEGORIES.map(|Category { name, letter, style }| format!("{style}{letter}{style:#} {name}"));
    writeln!(out, "  {}", legend.join("  "))
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
        (Role::System | Role::Summary, _) => 0,
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
