//! What a person sees in a terminal: short numbers, shares, colours, and the line that says how
//! far the work is.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use longhaul::edits::EditPrice;
use longhaul::{Edit, EditKind, Tokens};

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

/// `1234567` → `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share as percent, or `–` if there is none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// What was done to make room, a line for each strategy: what, how much smaller, why, and what
/// is billed again for it.
pub fn edits(new: &[&Edit]) -> Vec<String> {
    let line = |same: &[&Edit]| {
        let sum = |tokens: fn(&Edit) -> Tokens| same.iter().map(|edit| tokens(edit).0).sum::<u64>();
        let what = match (&same[0].kind, same.len()) {
            (EditKind::Fold { .. }, 1) => "a fold".to_owned(),
            (kind, 1) => format!("a {}", kind.name()),
            (kind, count) => format!("{count} × {}", kind.name()),
        };
        let again = EditPrice::of_batch(same.iter().copied()).rewrites.0;
        let (before, after) = (short(sum(|edit| edit.before)), short(sum(|edit| edit.after)));
        format!("{what}: {before} → {after}, {}; {} billed again", same[0].why.name(), short(again))
    };
    let alike = |a: &&Edit, b: &&Edit| (&a.strategy, a.why) == (&b.strategy, b.why);
    new.chunk_by(alike).map(line).collect()
}

/// Says how far the work is, in one line that the next such line replaces. Only a terminal shows
/// it, and nothing is lost where it cannot.
pub fn show_progress(what: fmt::Arguments<'_>) {
    if io::stderr().is_terminal() {
        _ = write!(io::stderr(), "\r\x1b[K{what}");
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
    fn numbers_for_people() {
        assert_eq!(
            [0, 999, 1_000, 9_999, 99_960, 1_234_567].map(short),
            ["0", "999", "1.00k", "10.0k", "100k", "1.23M"]
        );
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(percent(Some(0.0789)), "7.9%");
    }
}
