//! Files that a person mentions as `@path` (seed 003): the model is reminded to read them. Their
//! content is not put in.

use crate::conversation::json::Extra;
use crate::conversation::message::{Text, Words};

/// At most so many are named.
const MOST: usize = 5;

/// The text with a reminder of the files it mentions, if it mentions any that `exists`. The reminder
/// is the host's. Give it the paths of the project: one outside of it must not exist for it.
///
/// ```
/// let text = longhaul::conversation::with_mentions("See @src/auth.rs, please.", |path| path == "src/auth.rs");
/// assert_eq!(text.words(), "See @src/auth.rs, please.");
/// assert!(text.text.ends_with(
///     "<system-reminder>\nThe user mentioned @src/auth.rs.\n\
///      You MUST read this file with the Read tool before answering.\n</system-reminder>"
/// ));
/// ```
pub fn with_mentions(text: &str, exists: impl Fn(&str) -> bool) -> Text {
    let mut paths: Vec<&str> = Vec::new();
    for path in mentions(text) {
        if !paths.contains(&path) && is_inside(path) && exists(path) {
            paths.push(path);
        }
    }
    let named: Vec<String> = paths.iter().take(MOST).map(|path| shown(path)).collect();
    let (what, read) = match (named.as_slice(), paths.len().saturating_sub(MOST)) {
        ([], _) => return Text { text: text.into(), words: Words::All, extra: Extra::NONE },
        ([one], 0) => (one.clone(), "You MUST read this file with the Read tool before answering."),
        (_, more) => {
            let more = if more > 0 { format!(" (and {more} more…)") } else { String::new() };
            let read =
                "You MUST read these files with the Read tool, one by one in this order, before answering.";
            (format!("{}{more}", named.join(", ")), read)
        }
    };
    let words = Words::part(0, text.len());
    let text = format!("{text}\n\n<system-reminder>\nThe user mentioned {what}.\n{read}\n</system-reminder>");
    Text { text: text.into(), words, extra: Extra::NONE }
}

fn shown(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// A path inside the project.
fn is_inside(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|part| part == "..") && !path.is_empty()
}

/// Paths behind an `@` that no letter or digit stands before, in their order.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(|(at, _)| {
        if text[..at].bytes().next_back().is_some_and(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let rest = &text[at + 1..];
        if let Some(quoted) = rest.strip_prefix('"') {
            return quoted.split_once('"').map(|(path, _)| path).filter(|path| !path.contains('\n'));
        }
        let is_path = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-');
        let path = &rest[..rest.as_bytes().iter().take_while(|b| is_path(b)).count()];
        Some(path.trim_end_matches('.')).filter(|path| !path.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        mentions(text).collect()
    }

    // covers: A-MENTION
    #[test]
    fn paths_are_found_as_people_write_them() {
        assert_eq!(found("see @src/a.rs, @b.md."), ["src/a.rs", "b.md"]);
        assert_eq!(found("mail me@example.com"), [""; 0]);
        // No space before it in Chinese.
        assert_eq!(found("请看@src/a.rs"), ["src/a.rs"]);
        assert_eq!(found("(@a-b_c/d.e) @\"with space.txt\" @"), ["a-b_c/d.e", "with space.txt"]);
    }

    // covers: A-MENTION
    #[test]
    fn a_reminder_names_what_is_there() {
        let all = |_: &str| true;
        let with_mentions = |text: &str, exists: fn(&str) -> bool| {
            let with = super::with_mentions(text, exists);
            assert_eq!(with.words(), text);
            with.text.to_string()
        };
        assert_eq!(with_mentions("No file here.", all), "No file here.");
        assert_eq!(with_mentions("@gone.rs", |_| false), "@gone.rs");
        assert_eq!(with_mentions("@../secret @/etc/passwd", all), "@../secret @/etc/passwd");
        let two = with_mentions("@b.rs and @a.rs and @b.rs", all);
        assert!(two.contains("The user mentioned @b.rs, @a.rs.\nYou MUST read these files with the Read tool, one by one in this order"), "{two}");
        let seven = with_mentions("@1.a @2.a @3.a @4.a @5.a @6.a @7.a", all);
        assert!(seven.contains("@4.a, @5.a (and 2 more…).") && !seven.contains("@5.a, @6.a"), "{seven}");
        assert_eq!(
            with_mentions("@src/utils/auth.ts", all),
            "@src/utils/auth.ts\n\n<system-reminder>\nThe user mentioned @src/utils/auth.ts.\n\
             You MUST read this file with the Read tool before answering.\n</system-reminder>"
        );
    }
}
