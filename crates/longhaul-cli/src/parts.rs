//! The parts of a view on a terminal and for scripts: rows of the inspector, with their texts.

use std::io::{self, Write};

use longhaul::Session;
pub use longhaul_inspector::parts::{FrameRow, frame};
use serde::Serialize;

use crate::lab::needs::text_of;
use crate::terminal;

/// A part of the view, with its text.
#[derive(Serialize)]
pub struct PartRow {
    #[serde(flatten)]
    part: longhaul_inspector::parts::PartRow,
    text: String,
}

/// The parts of the newest view, and its tail.
pub fn rows(session: &Session) -> Vec<PartRow> {
    let rows = longhaul_inspector::parts::rows(session);
    rows.map(|(part, row)| PartRow { part: row, text: text_of(&part.message) }).collect()
}

/// What a command printed, without what Codex says of how it ran.
fn printed(text: &str) -> &str {
    let output = text.strip_prefix("Chunk ID: ").and_then(|rest| rest.split_once("\nOutput:\n"));
    output.map(|(_, output)| output).filter(|output| !output.trim().is_empty()).unwrap_or(text)
}

/// A note of the host that stays where it was sent.
const HOST_NOTE: &str = "host_note";
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
    for PartRow { part, text } in parts {
        let messages = match part.messages.as_slice() {
            [] if part.source == HOST_NOTE => "host note".to_owned(),
            [] => part.source.to_owned(),
            [(start, end)] if end - start == 1 => start.to_string(),
            [first, .., last] => format!("{}–{}*", first.0, last.1 - 1),
            [(start, end)] => format!("{start}–{}", end - 1),
        };
        let mark = if part.warm { '·' } else { '+' };
        let place = if part.source == HOST_NOTE { "note, sent at this place: " } else { "" };
        let what = format!("{place}{}", printed(text));
        let what = terminal::one_line(&what, terminal::width().saturating_sub(36));
        writeln!(
            out,
            "{mark} {messages:>11} {:9} {:>7}  {faint}{what}{faint:#}",
            part.role,
            terminal::grouped(part.tokens)
        )?;
        for edit in &part.edits {
            let lost = terminal::lost_thinking(edit.thinking());
            let lost = lost.map_or(String::new(), |lost| format!(", and {lost}"));
            let made = format!(
                "└ {} {} by {}: {}, {} → {}{lost};",
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
