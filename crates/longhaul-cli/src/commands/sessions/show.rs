//! `longhaul sessions show`.

use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use longhaul::conversation::FactKind;
use longhaul::{Block, Message, Session};
use longhaul_store::Meta;
use longhaul_wire::transcript;
use serde::Serialize;

use super::list::MetaLine;
use super::pin::{self, PinLine};
use super::{Sessions, undo, when};
use crate::error::Failure;
use crate::parts::{self, PartRow};
use crate::terminal;

/// Show what a session is, what is kept in it, and what its next request is made of
#[derive(clap::Args)]
#[command(after_help = "\
Numbers of edits are for `undo` and `redo`, what stands behind `recall` is for
`recall`.

Examples:
  longhaul sessions show last
  longhaul sessions show last --messages | less
  longhaul sessions show last --view --json | jq .role")]
pub struct Args {
    /// The session
    session: String,
    /// Print all messages as they came
    #[arg(long, conflicts_with = "view")]
    messages: bool,
    /// Print what would be sent next, as it stands
    #[arg(long)]
    view: bool,
}

/// A session, for scripts.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    meta: MetaLine,
    profile: &'a str,
    window: u64,
    hard_limit: u64,
    /// The next request, as it stands.
    tokens: u64,
    /// What it would be if nothing had been taken out.
    full_tokens: u64,
    frame_tokens: u64,
    goal: Option<String>,
    pins: Vec<PinLine<'a>>,
    parts: Vec<PartRow>,
    edits: Vec<EditLine>,
}

/// An edit, for scripts.
#[derive(Serialize)]
struct EditLine {
    id: u32,
    kind: &'static str,
    strategy: String,
    why: &'static str,
    covers: String,
    before: u64,
    after: u64,
    saved: u64,
    active: bool,
    handles: Vec<String>,
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let (_, meta, session) = sessions.load(&args.session)?;
    let mut out = anstream::stdout().lock();
    if args.messages {
        write_messages(&mut out, session.log().messages().iter(), sessions.json)?;
    } else if args.view {
        write_messages(&mut out, session.outgoing().messages(), sessions.json)?;
    } else {
        let shown = shown(&meta, &session);
        match sessions.json {
            true => writeln!(out, "{}", terminal::json(&shown)?)?,
            false => write_shown(&mut out, &meta, &session, &shown)?,
        }
    }
    Ok(())
}

fn shown<'a>(meta: &Meta, session: &'a Session) -> Shown<'a> {
    let edits = session.ledger().edits().map(|(edit, active)| EditLine {
        id: edit.id.0,
        kind: edit.kind.name(),
        strategy: edit.strategy.to_string(),
        why: edit.why.name(),
        covers: undo::covers(edit),
        before: edit.before.0,
        after: edit.after.0,
        saved: edit.before.0.saturating_sub(edit.after.0),
        active,
        handles: edit.originals.iter().map(|handle| handle.short()).collect(),
    });
    Shown {
        meta: MetaLine::new(meta),
        profile: &session.profile().name,
        window: session.budget().window.0,
        hard_limit: session.budget().hard.0,
        tokens: session.size().tokens.0,
        full_tokens: session.meter().estimate(session.full()).tokens.0,
        frame_tokens: parts::frame(session).tokens,
        goal: goal(session),
        pins: pin::pins(session),
        parts: parts::rows(session),
        edits: edits.collect(),
    }
}

/// What the work is for: what was set, or else the first words of a person.
fn goal(session: &Session) -> Option<String> {
    let set = session.log().fact(FactKind::Goal, "").map(str::to_owned);
    let first = || {
        let message = session.log().get(session.log().goal_message()?)?;
        Some(message.words().collect::<Vec<_>>().join("\n").trim().to_owned())
    };
    set.or_else(first)
}

fn write_shown(out: &mut impl Write, meta: &Meta, session: &Session, shown: &Shown<'_>) -> io::Result<()> {
    let (strong, faint, number) = (terminal::STRONG, terminal::FAINT, terminal::grouped);
    writeln!(out, "{strong}{}{strong:#}  {}", meta.id, terminal::one_line(&meta.title, 41))?;
    let of_whom = [("agent", &meta.agent), ("project", &meta.project), ("model", &meta.model)];
    let of_whom = of_whom.iter().filter(|(_, name)| !name.is_empty());
    let of_whom: Vec<String> = of_whom.map(|(what, name)| format!("{what} {name}")).collect();
    writeln!(out, "{}", terminal::one_line(&of_whom.join(", "), 80))?;
    let parent = meta.parent.map_or(String::new(), |parent| format!("; fork of {parent}"));
    writeln!(out, "profile {}, by the settings{parent}", terminal::one_line(shown.profile, 16))?;
    writeln!(out, "made {}, written to {} (UTC, {})", meta.created, meta.updated, when::ago(meta.updated))?;
    writeln!(
        out,
        "{} messages, {} calls, {} entries of {} bytes",
        number(meta.messages),
        number(meta.calls),
        number(meta.end.0 as u64),
        terminal::short(meta.bytes)
    )?;
    writeln!(
        out,
        "The next request has {} of {} tokens, in a window of {}.",
        number(shown.tokens),
        number(shown.full_tokens),
        number(shown.window)
    )?;
    if shown.tokens > shown.hard_limit {
        writeln!(
            out,
            "It is over the limit of {}: it is compacted before it is sent.",
            number(shown.hard_limit)
        )?;
    }
    if let Some(goal) = &shown.goal {
        writeln!(out, "\n{strong}Goal{strong:#}  {}", terminal::one_line(goal, 74))?;
    }
    if !shown.pins.is_empty() {
        writeln!(out, "\n{strong}Pins{strong:#}")?;
        pin::write(out, &shown.pins)?;
    }
    if shown.edits.is_empty() {
        writeln!(out, "\n{faint}Nothing was taken out.{faint:#}")?;
    } else {
        writeln!(out, "\n{strong}Edits{strong:#}\n\n  edit    messages   saved  what, why (strategy)")?;
        shown.edits.iter().try_for_each(|edit| write_edit(out, edit))?;
    }
    writeln!(out, "\n{strong}View{strong:#} {faint}(· was in the provider's cache){faint:#}")?;
    parts::table(out, parts::frame(session), &shown.parts)
}

/// An edit in a line of 80 columns.
fn write_edit(out: &mut impl Write, edit: &EditLine) -> io::Result<()> {
    let faint = if edit.active { Style::new() } else { terminal::FAINT };
    let undone = if edit.active { "" } else { "undone: " };
    let messages = edit.covers.trim_start_matches(char::is_alphabetic).trim_start();
    let what = format!("{undone}{}, {} ({})", edit.kind, edit.why, edit.strategy);
    let line = format!("{:>6} {messages:>11} {:>7}  {}", edit.id, terminal::short(edit.saved), what);
    writeln!(out, "{faint}{}{faint:#}", line.chars().take(80).collect::<String>())
}

fn write_messages<'a>(
    out: &mut impl Write,
    messages: impl Iterator<Item = &'a Arc<Message>>,
    json: bool,
) -> io::Result<()> {
    for (number, message) in messages.enumerate() {
        match json {
            true => writeln!(out, "{}", transcript::encode(message))?,
            false => write_message(out, number, message)?,
        }
    }
    Ok(())
}

/// A message as people read it: who, when, and all its blocks.
fn write_message(out: &mut impl Write, number: usize, message: &Message) -> io::Result<()> {
    let (strong, faint) = (terminal::STRONG, terminal::FAINT);
    let time = message.time().map_or(String::new(), |time| format!("  {time}"));
    writeln!(out, "{strong}{number} {}{strong:#}{faint}{time}{faint:#}", message.role().name())?;
    for block in message.blocks() {
        let text = match block {
            Block::Text(text) => text.text.to_string(),
            Block::Thinking(thinking) => format!("(thinks) {}", thinking.text),
            Block::ToolCall(call) => format!("(calls {} {}) {}", call.name, call.id, call.arguments.as_str()),
            Block::ToolResult(result) => format!("(result of {}) {}", result.id, result.text),
            Block::Image(_) => "(a picture)".to_owned(),
            Block::Opaque(_) => "(something that only the provider can read)".to_owned(),
        };
        writeln!(out, "{}", terminal::printable(&text))?;
    }
    writeln!(out)
}
