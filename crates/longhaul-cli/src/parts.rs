//! The parts of a view, as scripts and people see them: where each comes from, which edit made it what it
//! is, and why.

use std::io::{self, Write};

use longhaul::{Edit, Part, Session, Source};
use serde::Serialize;

use crate::lab::needs::text_of;
use crate::terminal;

/// A part of the view, for scripts.
#[derive(Serialize)]
pub struct PartRow {
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
pub struct PartEdit {
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

/// System prompt and tools.
#[derive(Clone, Copy)]
pub struct FrameRow {
    pub tokens: u64,
    /// True if the provider had them in its cache.
    pub warm: bool,
}

/// The parts of the newest view, and its tail.
pub fn rows(session: &Session) -> Vec<PartRow> {
    let billed = session.sent().map(|sent| sent.billed).unwrap_or_default();
    let mut upto = session.view().fixed().measure;
    let parts = session.view().parts().iter().chain(session.view().tail()).map(|part| {
        let size = session.meter().tokens(part.measure).tokens.0;
        upto += part.measure;
        // One token of rounding is no change.
        let is_warm = session.meter().tokens(upto).tokens.0 <= billed.read.0 + 1;
        row(session, part, size, part.source != Source::Tail && is_warm)
    });
    parts.collect()
}

/// System prompt and tools, which stand before the parts.
pub fn frame(session: &Session) -> FrameRow {
    let warm = session.sent().is_some_and(|sent| sent.billed.read.0 > 0);
    FrameRow { tokens: session.meter().tokens(session.view().fixed().measure).tokens.0, warm }
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

/// A table as wide as the terminal.
pub fn table(out: &mut impl Write, frame: FrameRow, parts: &[PartRow]) -> io::Result<()> {
    let (faint, good) = (terminal::FAINT, terminal::GOOD);
    writeln!(out, "\n  {:>11} {:9} {:>7}  what", "messages", "role", "tokens")?;
    if frame.tokens > 0 {
        let (mark, tokens) = (if frame.warm { '·' } else { '+' }, terminal::grouped(frame.tokens));
        writeln!(
            out,
            "{mark} {:>11} {:9} {tokens:>7}  {faint}system prompt and tools{faint:#}",
            "frame", "system"
        )?;
    }
    for part in parts {
        let messages = match part.messages.as_slice() {
            [] => part.source.to_owned(),
            [(start, end)] if end - start == 1 => start.to_string(),
            [first, .., last] => format!("{}–{}*", first.0, last.1 - 1),
            [(start, end)] => format!("{start}–{}", end - 1),
        };
        let mark = if part.warm { '·' } else { '+' };
        let what = terminal::one_line(&part.text, terminal::width().saturating_sub(36));
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
            let wide = INDENT + made.chars().count() + 1 + recall.chars().count() > terminal::width();
            let between = if wide { format!("\n{:INDENT$}  ", "") } else { " ".to_owned() };
            writeln!(out, "{:INDENT$}{good}{made}{between}{recall}{good:#}", "")?;
        }
    }
    Ok(())
}
