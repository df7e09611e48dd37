//! `longhaul sessions pin`.

use std::io::{self, Write};

use longhaul::Session;
use longhaul::conversation::FactKind;
use longhaul_inspector::steering::{self, Difference};
use serde::Serialize;

use super::Sessions;
use super::change::change;
use crate::error::Failure;
use crate::terminal;

/// Pin a text, so that it stays in every request; or list and remove pins
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul sessions pin last \"Never touch the migrations.\"
  longhaul sessions pin last
  longhaul sessions pin last --remove 1")]
pub struct Args {
    /// The session
    session: String,
    /// The text; without it pins are listed
    text: Vec<String>,
    /// Remove the pin of this number
    #[arg(long, value_name = "N", conflicts_with = "text")]
    remove: Option<usize>,
}

/// A pin, for scripts.
#[derive(Serialize)]
pub struct PinLine<'a> {
    number: usize,
    name: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Changed {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<String>,
    #[serde(flatten)]
    effect: Difference,
}

impl PinLine<'_> {
    /// Counted from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    pub fn text(&self) -> &str {
        self.text
    }
}

/// The pins of a session, numbered from 1.
pub fn pins(session: &Session) -> Vec<PinLine<'_>> {
    let pins = session.log().facts(FactKind::Pin).into_iter().enumerate();
    pins.map(|(at, (name, text))| PinLine { number: at + 1, name, text }).collect()
}

/// Pins, a line each.
pub fn write(out: &mut impl Write, pins: &[PinLine<'_>]) -> io::Result<()> {
    pins.iter().try_for_each(|pin| writeln!(out, "{:>4}  {}", pin.number, terminal::one_line(pin.text, 74)))
}

pub fn run(sessions: &Sessions<'_>, args: &Args) -> Result<(), Failure> {
    let text = args.text.join(" ");
    if args.text.is_empty() && args.remove.is_none() {
        return list(sessions, &args.session);
    }
    if args.remove.is_none() && text.trim().is_empty() {
        return Err(Failure::Input("there is nothing to pin: the text is empty".to_owned()));
    }
    let (store, meta) = sessions.find(&args.session)?;
    let (name, effect) = change(&store, meta.id, &sessions.profile()?, |session| match args.remove {
        Some(number) => remove(session, number),
        None => pin(session, &text),
    })?;
    let (what, short) = (if args.remove.is_some() { "Removed" } else { "Pinned" }, meta.id.to_string());
    let said = format!("{what} {name} of {short}. {effect}");
    let (pinned, removed) = if args.remove.is_some() { (None, Some(name)) } else { (Some(name), None) };
    sessions.say(&Changed { session: short, pinned, removed, effect }, said)
}

/// Pins a text under a name that no pin has.
pub fn pin(session: &mut Session, text: &str) -> Result<String, Failure> {
    steering::pin(session, text).map_err(Failure::Input)
}

pub fn remove(session: &mut Session, number: usize) -> Result<String, Failure> {
    let pins = pins(session);
    let Some(pin) = pins.iter().find(|pin| pin.number == number) else {
        let problem = match pins.len() {
            0 => format!("there is no pin {number}: nothing is pinned"),
            count => format!("there is no pin {number}: pins have numbers up to {count}"),
        };
        return Err(Failure::Input(problem));
    };
    let name = pin.name.to_owned();
    session.unpin(name.as_str());
    Ok(name)
}

fn list(sessions: &Sessions<'_>, name: &str) -> Result<(), Failure> {
    let (_, meta, session) = sessions.load(name)?;
    let pins = pins(&session);
    let mut out = anstream::stdout().lock();
    if sessions.json {
        for pin in &pins {
            writeln!(out, "{}", terminal::json(pin)?)?;
        }
    } else if pins.is_empty() {
        writeln!(out, "Nothing is pinned in {}.", meta.id)?;
    } else {
        write(&mut out, &pins)?;
    }
    Ok(())
}
