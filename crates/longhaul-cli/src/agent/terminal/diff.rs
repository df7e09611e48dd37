//! Changes of files: what was added is green, what was removed is red.

use anstyle::{AnsiColor, Style};

use crate::terminal::{FAINT, cut};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
/// Lines that are shown.
const SHOWN: usize = 40;
/// What stands before each.
const INDENT: &str = "    ";

/// A diff, line by line.
pub fn lines(diff: &str, width: usize) -> Vec<String> {
    shown(diff.lines().map(|line| (style_of(line), line.to_owned())).collect(), width)
}

fn style_of(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => ADDED,
        Some('-') => REMOVED,
        Some('@') => FAINT,
        _ => Style::new(),
    }
}

fn shown(lines: Vec<(Style, String)>, width: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    let room = width.saturating_sub(INDENT.len()).max(8);
    let line = |(style, line): &(Style, String)| format!("{INDENT}{style}{}{style:#}", cut(line, room));
    let mut out: Vec<String> = lines.iter().take(SHOWN).map(line).collect();
    if more > 0 {
        out.push(format!("{INDENT}{FAINT}… {more} lines more{FAINT:#}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn signs_have_colours_and_nothing_is_wider_than_the_terminal() {
        let shown = lines("@@ -1 +1 @@\n-old\n+new \x1b[2J and a long line", 24);
        assert_eq!(plain(&shown), ["    @@ -1 +1 @@", "    -old", "    +new [2J and a long…"]);
        assert!(shown[1].contains("\x1b[31m") && shown[2].contains("\x1b[32m"), "{shown:?}");
    }
}
