//! Escape sequences of terminals: colours, moves of the cursor, titles. They are no content.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';

/// The text without escape sequences.
pub(crate) fn stripped(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ESCAPE) {
        out.push_str(&rest[..at]);
        rest = behind(&rest[at + 1..]);
    }
    out.push_str(rest);
    out.into()
}

/// What stands behind a sequence whose escape character was just read.
fn behind(text: &str) -> &str {
    let mut characters = text.char_indices();
    match characters.next() {
        // Colours and moves end with a letter.
        Some((_, '[')) => match characters.find(|(_, c)| ('@'..='~').contains(c)) {
            Some((at, _)) => &text[at + 1..],
            None => "",
        },
        // A title or a link ends with a bell or with another escape and a backslash; one that does not is only its start.
        Some((_, ']')) => match text.find(['\u{7}', ESCAPE, '\n']) {
            Some(at) if text[at..].starts_with(ESCAPE) => {
                text[at + 1..].strip_prefix('\\').unwrap_or(&text[at..])
            }
            Some(at) => text[at..].strip_prefix('\u{7}').unwrap_or(&text[at..]),
            None => "",
        },
        Some((_, c)) => &text[c.len_utf8()..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        for (text, plain) in [
            ("plain é", "plain é"),
            ("\u{1b}[1mDefault\u{1b}[22m (Opus)", "Default (Opus)"),
            ("\u{1b}[38;5;12mblue\u{1b}[0m", "blue"),
            ("\u{1b}]0;a title\u{7}text", "text"),
            ("\u{1b}]8;;file\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Mx", "x"),
            ("cut \u{1b}[31", "cut "),
            ("\u{1b}", ""),
            ("\u{1b}é", ""),
            ("\u{1b}]0;open\nnext", "\nnext"),
        ] {
            assert_eq!(stripped(text), plain, "{text:?}");
        }
    }
}
