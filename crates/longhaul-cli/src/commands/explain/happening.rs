//! The calls of a session before which something was compacted.

use std::io::{self, Write};
use std::path::Path;

use longhaul::{Edit, Tokens};
use serde::Serialize;

use crate::lab::recorded::{NotSent, RecordedSession};
use crate::terminal;

/// A call at which something happened.
#[derive(Serialize)]
pub struct Happening {
    call: u64,
    /// What was sent, and the whole log.
    tokens: u64,
    full_tokens: u64,
    /// What was done, a line for each strategy.
    edits: Vec<String>,
    #[serde(skip)]
    count: u64,
    /// Why nothing could be sent.
    error: Option<String>,
}

impl Happening {
    /// The call that was just prepared, if edits were made for it since `first`, or nothing fits.
    pub fn new(call: u64, recorded: &RecordedSession, first: usize, error: Option<NotSent>) -> Option<Self> {
        let session = recorded.session();
        let new: Vec<&Edit> = session.ledger().edits().skip(first).map(|(edit, _)| &**edit).collect();
        let sent =
            recorded.sent().filter(|_| error.is_none()).map(|sent| sent.billed.read + sent.billed.written);
        (!new.is_empty() || error.is_some()).then(|| Self {
            call,
            tokens: sent.unwrap_or(session.size().tokens).0,
            full_tokens: recorded.full_tokens().0,
            edits: terminal::edits(&new),
            count: new.len() as u64,
            error: error.map(|error| error.to_string()),
        })
    }
}

#[derive(Serialize)]
struct Happenings<'a> {
    transcript: String,
    calls: u64,
    window: u64,
    happened: &'a [Happening],
    /// Results that entered in a shorter form, before they were ever sent.
    entered_shorter: u64,
}

/// Prints what happened in a session, of whose edits there are so many.
pub fn print(
    happened: &[Happening],
    edits: u64,
    file: &Path,
    calls: u64,
    window: Tokens,
    json: bool,
) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let entered_shorter = edits.saturating_sub(happened.iter().map(|happening| happening.count).sum());
    if json {
        let transcript = file.display().to_string();
        let line = Happenings { transcript, calls, window: window.0, happened, entered_shorter };
        return writeln!(out, "{}", terminal::json(&line)?);
    }
    let (strong, faint) = (terminal::STRONG, terminal::FAINT);
    let window = terminal::grouped(window.0);
    let entered = match entered_shorter {
        0 => String::new(),
        more => format!(
            "{} shorter than they came; `longhaul replay --edits` lists them.",
            terminal::counted(more, "result entered", "results entered")
        ),
    };
    if happened.is_empty() {
        writeln!(
            out,
            "Nothing was compacted in {}, in a window of {window}.",
            terminal::counted(calls, "call", "calls")
        )?;
        if !entered.is_empty() {
            writeln!(out, "{entered}")?;
        }
        return writeln!(out, "{faint}--call last shows what is sent; --window 32k makes it tight.{faint:#}");
    }
    let count = terminal::grouped(happened.len() as u64);
    writeln!(
        out,
        "{strong}Something happened before {count} of {} calls{strong:#}, in a window of {window}:",
        terminal::grouped(calls)
    )?;
    for happening in happened {
        let (sent, full) = (terminal::short(happening.tokens), terminal::short(happening.full_tokens));
        let head = format!("{:>6}  {sent:>5} of {full:<5}", happening.call);
        let lines = happening.edits.iter().chain(&happening.error);
        for (n, line) in lines.enumerate() {
            let head = if n == 0 { head.clone() } else { " ".repeat(head.chars().count()) };
            writeln!(out, "{}", terminal::cut(&format!("{head}  {line}"), terminal::width()))?;
        }
    }
    if !entered.is_empty() {
        writeln!(out, "{entered}")?;
    }
    writeln!(out, "{faint}--call N shows one of them, --text its summaries.{faint:#}")
}
