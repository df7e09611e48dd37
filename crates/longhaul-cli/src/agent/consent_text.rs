//! What a person is asked to agree to, as lines to print: all of it, and nothing else looks like it.

use anstyle::{AnsiColor, Style};
use longhaul_agent::{Answer, Asked, Consent, Keep, LineKind, visible};

use crate::terminal::{BAD, FAINT, columns, columns_of};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
/// What stands before a line of what is asked for, so that no such line can pass for one of ours.
const BEGINS: &str = "  │ ";
/// What stands before the rest of a line that is wider than the terminal.
const CONTINUES: &str = "  ┊ ";
/// Columns that both take.
const MARK: usize = 4;

/// The lines of a consent, for a terminal of so many columns; without any, lines are as long as they are.
pub fn lines(consent: &Consent, width: Option<usize>) -> Vec<String> {
    let room = width.map(|width| width.saturating_sub(MARK).max(8));
    let styled = consent.lines().into_iter().flat_map(|(kind, text)| {
        let style = match kind {
            LineKind::Note => FAINT,
            LineKind::Text => Style::new(),
            LineKind::Added => ADDED,
            LineKind::Removed => REMOVED,
        };
        let pieces = pieces(&text.replace('\t', "    "), room, kind == LineKind::Note);
        pieces.into_iter().enumerate().map(move |(number, piece)| {
            let mark = match (kind, number) {
                (LineKind::Note, _) => "  ",
                (_, 0) => BEGINS,
                _ => CONTINUES,
            };
            format!("{mark}{style}{piece}{style:#}")
        })
    });
    styled.collect()
}

/// A line in pieces of at most so many columns, broken between words if it has some. Nothing is left out.
fn pieces(line: &str, room: Option<usize>, between_words: bool) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    for c in line.chars() {
        if room.is_some_and(|room| columns(&piece) + columns_of(c) > room) {
            let space = piece.rfind(' ').filter(|_| between_words);
            let rest = piece.split_off(space.map_or(piece.len(), |space| space + 1));
            pieces.push(std::mem::replace(&mut piece, rest));
        }
        piece.push(c);
    }
    pieces.push(piece);
    pieces
}

/// The answers that there are, in a line.
pub fn choices(consent: &Consent) -> String {
    let what = match &consent.what {
        Asked::Change(change) => format!("{} {}", consent.tool, change.path),
        _ => consent.tool.clone(),
    };
    let edit = if can_edit(consent) { " / [e] and another command" } else { "" };
    let always = consent
        .rule
        .as_deref()
        .map(|rule| format!(" / [a]lways \"{}\" / [p] always, in this project", visible(rule)));
    format!("Allow {}? [y]es{edit}{} / [n]o / or type why not", visible(&what), always.unwrap_or_default())
}

/// What a line means as an answer. Whatever is not yes is no, and goes to the model.
pub fn meaning(line: &str, consent: &Consent) -> Answer {
    let line = line.trim_matches([' ', '\t', '\n', '\r']);
    if line.contains('\x1b') {
        return Answer::No(None);
    }
    let has_rule = consent.rule.is_some();
    match (line.to_lowercase().as_str(), line.split_once(' ')) {
        ("y" | "yes", _) => Answer::Yes,
        ("a" | "always", _) if has_rule => Answer::Always(Keep::Session),
        ("p", _) if has_rule => Answer::Always(Keep::Project),
        ("" | "n" | "no" | "e", _) => Answer::No(None),
        (_, Some(("e" | "E", command))) if can_edit(consent) => {
            Answer::Edited(command.trim_start().to_owned())
        }
        _ => Answer::No(Some(line.to_owned())),
    }
}

fn can_edit(consent: &Consent) -> bool {
    matches!(consent.what, Asked::Command { .. })
}

/// Why a call does not run where nobody is asked, and what would let it.
pub fn nobody(consent: &Consent) -> String {
    let what = match &consent.what {
        Asked::Change(change) => format!("{} of {}", consent.tool, change.path),
        Asked::Command { command, .. } => format!("{}: {command}", consent.tool),
        _ => consent.tool.clone(),
    };
    match (&consent.rule, &consent.why) {
        (Some(rule), _) => format!("{what} (--allow '{rule}' lets it)"),
        (None, Some(why)) => format!("{what} ({why})"),
        (None, None) => format!("{what} (--permissions all lets it)"),
    }
}

/// What the model is told where nobody is asked.
pub fn nobody_said(consent: &Consent) -> String {
    let why = consent.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("nobody is there to be asked{why}; work without it, or say what is needed")
}

/// A consent that nobody is there to give: all of it, and what would let the call run.
pub fn refused(consent: &Consent) -> Vec<String> {
    let mut all = lines(consent, None);
    // The command is above, with its lines.
    let short = match &consent.what {
        Asked::Command { .. } => {
            nobody(&Consent { what: Asked::Call(serde_json::Value::Null), ..consent.clone() })
        }
        _ => nobody(consent),
    };
    all.push(format!("  {BAD}not allowed: {}{BAD:#}", visible(&short)));
    all
}

#[cfg(test)]
mod tests {
    use longhaul_agent::{Change, Reach};

    use super::*;

    fn command(command: &str) -> Consent {
        let what =
            Asked::Command { command: command.to_owned(), background: false, reach: Reach { writes: None } };
        Consent { tool: "Bash".to_owned(), what, why: None, rule: Some("Bash(cargo test)".to_owned()) }
    }

    fn plain(lines: &[String]) -> String {
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    #[test]
    fn a_command_has_all_its_lines_and_none_passes_for_another() {
        let consent = command("echo tidy  # comment\nAllow Bash? [y]es\n\x1b[2J\u{202e}x 0123456789");
        let want = "  Bash would run:\n  │ echo tidy  # comment\n  │ Allow Bash? [y]es\n  │ ^[[2J⟨U+202E⟩x 0123456789\n  \
            Nothing confines it: it may write wherever you may. It may read what you may, and use the network.";
        assert_eq!(plain(&lines(&consent, None)), want);
        let narrow = plain(&lines(&consent, Some(24)));
        assert!(narrow.contains("\n  │ ^[[2J⟨U+202E⟩x 01234\n  ┊ 56789\n"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
        assert_eq!(
            choices(&consent),
            "Allow Bash? [y]es / [e] and another command / [a]lways \"Bash(cargo test)\" / [p] always, in this project \
             / [n]o / or type why not"
        );
    }

    #[test]
    fn a_tail_that_is_far_away_is_shown_too() {
        let hidden = format!("echo{}; rm x", " ".repeat(10_000));
        let all = plain(&lines(&command(&hidden), Some(80)));
        assert!(all.contains("; rm x") && plain(&lines(&command(&hidden), None)).contains(&hidden), "{all}");
        let lines_of = |consent: &Consent| plain(&refused(consent));
        assert!(lines_of(&command(&hidden)).contains(&hidden));
        assert!(lines_of(&command("x")).ends_with("not allowed: Bash (--allow 'Bash(cargo test)' lets it)"));
    }

    #[test]
    fn a_new_file_has_all_its_lines() {
        let after = "line\n".repeat(500);
        let what = Asked::Change(Change { path: "a.txt".to_owned(), before: None, after });
        let consent = Consent { tool: "Write".to_owned(), what, why: None, rule: None };
        let all = lines(&consent, Some(80));
        assert_eq!((all.len(), plain(&all).matches("  │ +line").count()), (502, 500));
        assert!(all[2].contains("\x1b[32m"), "{:?}", all[2]);
        assert_eq!(choices(&consent), "Allow Write a.txt? [y]es / [n]o / or type why not");
    }

    #[test]
    fn only_yes_is_yes() {
        let all = command("x");
        let none = Consent { rule: None, what: Asked::Call(serde_json::json!({})), ..command("x") };
        for (line, want) in [
            (" Y ", Answer::Yes),
            ("always", Answer::Always(Keep::Session)),
            ("p", Answer::Always(Keep::Project)),
            ("", Answer::No(None)),
            ("n", Answer::No(None)),
            ("e", Answer::No(None)),
            ("\x1b", Answer::No(None)),
            ("\x1by", Answer::No(None)),
            ("e cargo test -p x\necho 'y'", Answer::Edited("cargo test -p x\necho 'y'".to_owned())),
            ("edit it yourself", Answer::No(Some("edit it yourself".to_owned()))),
            ("yes, but later", Answer::No(Some("yes, but later".to_owned()))),
        ] {
            assert_eq!(meaning(line, &all), want, "{line:?}");
        }
        for line in ["a", "p", "e x"] {
            assert_eq!(meaning(line, &none), Answer::No(Some(line.to_owned())));
        }
    }

    #[test]
    fn where_nobody_is_asked_it_is_said_what_would_help() {
        let unclear = Consent { rule: None, why: Some("a variable".to_owned()), ..command("$X") };
        assert_eq!(nobody(&unclear), "Bash: $X (a variable)");
        assert_eq!(
            nobody_said(&unclear),
            "nobody is there to be asked (a variable); work without it, or say what is needed"
        );
        assert_eq!(nobody(&Consent { rule: None, ..command("x") }), "Bash: x (--permissions all lets it)");
    }
}
