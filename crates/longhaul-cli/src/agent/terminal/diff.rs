//! Changes of files: what was added is green, what was removed is red.

use anstyle::{AnsiColor, Style};
use serde_json::Value;

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

/// What a call would change, as far as its arguments say it.
pub fn of_arguments(arguments: &Value, width: usize) -> Vec<String> {
    let text = |value: &Value, names: [&str; 2]| -> Option<String> {
        names.iter().find_map(|name| Some(value.get(name)?.as_str()?.to_owned()))
    };
    let mut lines = Vec::new();
    let edits = arguments.get("edits").and_then(Value::as_array);
    for edit in edits.map_or(std::slice::from_ref(arguments), Vec::as_slice) {
        for (names, sign, style) in [
            (["old", "old_string"], '-', REMOVED),
            (["new", "new_string"], '+', ADDED),
            (["content", "text"], '+', ADDED),
        ] {
            let text = text(edit, names).unwrap_or_default();
            lines.extend(text.lines().map(|line| (style, format!("{sign}{line}"))));
        }
    }
    shown(lines, width)
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
    use serde_json::json;

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

    #[test]
    fn what_a_call_would_change_is_shown_before_it_does() {
        let edit = json!({"path": "a", "old": "a\nb", "new": "c"});
        assert_eq!(plain(&of_arguments(&edit, 80)), ["    -a", "    -b", "    +c"]);
        let edits = json!({"edits": [{"old": "a", "new": "b"}, {"old": "c", "new": "d"}]});
        assert_eq!(plain(&of_arguments(&edits, 80)).len(), 4);
        let write = json!({"content": "line\n".repeat(50)});
        assert_eq!(plain(&of_arguments(&write, 80)).last().unwrap(), "    … 10 lines more");
        assert!(of_arguments(&json!({"command": "ls"}), 80).is_empty());
    }
}
