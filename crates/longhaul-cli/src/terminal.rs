//! What a person sees in a terminal: short numbers, shares, colours, and the line that says how
//! far the work is.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use longhaul::edits::EditPrice;
use longhaul::size::Billed;
use longhaul::summary::SummaryBill;
use longhaul::{Edit, EditKind, Tokens};
pub use longhaul_inspector::{grouped, lost_thinking};
use serde::Serialize;

use crate::lab::summariser::Spent;

/// What is wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What helped.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What to look at.
pub const STRONG: Style = Style::new().bold();
/// What may be skipped.
pub const FAINT: Style = Style::new().dimmed();

/// `1234567` → `1.23M`; four characters or five.
pub fn short(number: u64) -> String {
    let (value, unit) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (number as f64 / 1e3, "k"),
        1_000_000..1_000_000_000 => (number as f64 / 1e6, "M"),
        _ => (number as f64 / 1e9, "G"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$}{unit}")
}

/// `1 file`, `1,234 files`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A share as percent, or `–` if there is none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// A text in one line of at most so many columns; what was cut ends in `…`. What could move the cursor is gone.
pub fn one_line(text: &str, most: usize) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// The start of a line, of at most so many columns; what was cut ends in `…`. Tabs are four columns, and what could
/// move the cursor is gone.
pub fn cut(line: &str, most: usize) -> String {
    let (mut out, mut columns) = (String::new(), 0);
    let line = line.replace('\t', "    ");
    let mut rest = line.chars().filter(|c| !is_obeyed(*c) && !is_joiner(*c)).peekable();
    while let Some(c) = rest.next() {
        let width = columns_of(c);
        // The mark needs a column too.
        let room = if rest.peek().is_some() { most.saturating_sub(1) } else { most };
        if columns + width > room {
            out.push('…');
            break;
        }
        columns += width;
        out.push(c);
    }
    out
}

/// Columns that a character takes: two for Chinese, Japanese, Korean and pictures, none for what is drawn over another.
pub fn columns_of(c: char) -> usize {
    unicode_width::UnicodeWidthChar::width(c).unwrap_or_default()
}

/// Columns of a text.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// A text in lines of at most so many columns, broken between words.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| columns(line));
        if used > 0 && used + 1 + columns(word) > most {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Columns of a terminal that nobody knows better.
const USUAL_WIDTH: usize = 80;
/// Fewer are no terminal, and of more nobody reads a line to its end.
const WIDTHS: std::ops::RangeInclusive<usize> = 20..=140;

/// Columns of the terminal that stdout is; where it is none, what `COLUMNS` says.
pub fn width() -> usize {
    #[cfg(unix)]
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    let terminal = None;
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
    let known = terminal.or_else(asked).filter(|columns| columns >= WIDTHS.start());
    known.map_or(USUAL_WIDTH, |columns| columns.min(*WIDTHS.end()))
}

/// Rows of a terminal that nobody knows better.
const USUAL_HEIGHT: usize = 24;

/// Rows of the terminal that stdout is.
pub fn height() -> usize {
    #[cfg(unix)]
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_row));
    #[cfg(not(unix))]
    let terminal = None;
    terminal.filter(|rows| *rows > 0).unwrap_or(USUAL_HEIGHT)
}

/// A text without what a terminal would obey: its lines and tabs stay.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !is_obeyed(*c) || matches!(c, '\n' | '\t')).collect()
}

/// Whether a terminal does something else than to draw it: control characters, marks that turn the order of others
/// around, and characters that are not seen, so that a command would look like another one.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character joins its neighbours and is not seen itself. Prose needs it in some scripts and pictures; a name could
/// look like another one by it.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// A path as a person is shown it.
pub fn path(path: &Path) -> String {
    one_line(&path.display().to_string(), usize::MAX)
}

/// A value as JSON in one line. What a terminal would obey is escaped, so that the value is the same.
pub fn json(value: &impl Serialize) -> io::Result<String> {
    let text = serde_json::to_string(value)?;
    if !text.contains(|c| is_obeyed(c) || is_joiner(c)) {
        return Ok(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) || is_joiner(c) {
            // Writing into a text does not fail.
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(out, "\\u{unit:04x}"));
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

/// What was done to make room, a line for each strategy: what, how much smaller, and why; and what is billed again for all
/// of it, once, behind the last.
pub fn edits(new: &[&Edit]) -> Vec<String> {
    let line = |same: &[&Edit]| {
        let sum = |tokens: fn(&Edit) -> Tokens| same.iter().map(|edit| tokens(edit).0).sum::<u64>();
        let what = match (&same[0].kind, same.len()) {
            (EditKind::Fold { .. }, 1) => "a fold".to_owned(),
            (kind, 1) => format!("a {}", kind.name()),
            (kind, count) => format!("{count} × {}", kind.name()),
        };
        let (before, after) = (short(sum(|edit| edit.before)), short(sum(|edit| edit.after)));
        let summaries: String = same.iter().filter_map(|edit| edit.price.summary).map(summary).collect();
        format!("{what}: {before} → {after}, {}{summaries}", same[0].why.name())
    };
    let alike = |a: &&Edit, b: &&Edit| (&a.strategy, a.why) == (&b.strategy, b.why);
    let mut lines: Vec<String> = new.chunk_by(alike).map(line).collect();
    let price = EditPrice::of_batch(new.iter().copied());
    let again = short(price.rewrites.0);
    let words = if lines.len() > 1 { "again in all" } else { "billed again" };
    if let Some(last) = lines.last_mut() {
        last.push_str(&format!("; {again} {words}"));
        let lost = lost_thinking(price.thinking).map(|lost| format!("; and {lost}"));
        last.extend(lost);
    }
    lines
}

/// What a summary by a model cost, beside what was expected of each form of asking.
fn summary(SummaryBill { expected, paid }: SummaryBill) -> String {
    let prompt = |billed: Billed| format!("{} + {} read", short(billed.written.0), short(billed.read.0));
    let fresh = format!("fresh {}", prompt(expected.fresh));
    let warm = expected.warm.map(|warm| format!(", warm {}", prompt(warm))).unwrap_or_default();
    let paid = match paid {
        Some(paid) => format!("{}, {} written", prompt(paid.prompt), short(paid.output.0)),
        None => "not known".to_owned(),
    };
    format!("; summary billed: {paid} (expected: {fresh}{warm})")
}

/// What summaries cost, and how many did not come.
pub fn summaries(out: &mut impl Write, whose: &str, spent: Spent, cost: u64) -> io::Result<()> {
    writeln!(
        out,
        "{whose}: {} calls, {} tokens in, {} out: {} of the cost.",
        grouped(spent.calls),
        short(spent.input),
        short(spent.output),
        short(cost),
    )?;
    match spent.failed {
        0 => Ok(()),
        failed => writeln!(out, "{} summaries did not come: the profile went on without.", grouped(failed)),
    }
}

/// Says how far the work is, in one line that the next such line replaces. Only a terminal shows
/// it, and nothing is lost where it cannot.
pub fn show_progress(what: fmt::Arguments<'_>) {
    if io::stderr().is_terminal() {
        _ = write!(io::stderr(), "\r\x1b[K{}", cut(&what.to_string(), usize::MAX));
    }
}

/// Takes that line away.
pub fn clear_progress() {
    show_progress(format_args!(""));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_wide_as_it_may_be() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(one_line("a\n b\tc", 5), "a b c");
        assert_eq!(one_line("abcdef", 5), "abcd…");
        assert_eq!(one_line("abcde", 5), "abcde");
        assert_eq!(one_line("时间区域", 5), "时间…");
        assert_eq!(one_line("\u{1b}[31mred", 20), "[31mred");
        assert_eq!(printable("a\u{1b}[2Jb\n\tc\r"), "a[2Jb\n\tc");
        assert_eq!(printable("rm \u{202e}txt.a\u{2066}"), "rm txt.a");
    }

    #[test]
    fn json_has_nothing_that_a_terminal_obeys_and_is_the_same_value() {
        let text = "a\u{1b}]52;c;QQ==\u{7}\u{9b}2J\u{202e}\u{200b}\u{200d}\u{e0041}\u{7f}é";
        let json = json(&[text]).unwrap();
        assert!(json.chars().all(|c| !is_obeyed(c) && !is_joiner(c)), "{json:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [text]);
        assert_eq!(one_line(text, 99), "a]52;c;QQ==2Jé");
        assert_eq!(printable("👩\u{200d}💻\u{200b}"), "👩\u{200d}💻");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [0, 999, 1_000, 9_999, 99_960, 1_234_567].map(short),
            ["0", "999", "1.00k", "10.0k", "100k", "1.23M"]
        );
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (counted(1, "file", "files"), counted(1_000, "file", "files")),
            ("1 file".to_owned(), "1,000 files".to_owned())
        );
        assert_eq!(percent(Some(0.0789)), "7.9%");
    }
}
