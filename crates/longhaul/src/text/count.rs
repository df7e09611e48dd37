//! How many words a text has, whatever its language.

/// The words of a text as a word processor counts them: what stands between spaces, if it has a letter
/// or a digit, and each Chinese or Japanese character, since these languages have no spaces.
pub(crate) fn words(text: &str) -> usize {
    let (mut count, mut inside) = (0, false);
    for c in text.chars() {
        if is_word_alone(c) {
            count += 1;
            inside = false;
        } else if c.is_whitespace() || is_wide_mark(c) {
            inside = false;
        } else if c.is_alphanumeric() && !inside {
            count += 1;
            inside = true;
        }
    }
    count
}

/// A character of Chinese or Japanese.
fn is_word_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// A mark of Chinese or Japanese, which ends a word as a space does.
fn is_wide_mark(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}')
}

#[cfg(test)]
mod tests {
    use super::words;

    // covers: P-FULL
    #[test]
    fn words_of_any_language_are_counted() {
        for (text, count) in [
            ("", 0),
            ("### Done, with evidence", 3),
            ("* `src/date.rs`: changed 2×", 3),
            ("don't - stop", 2),
            ("修复解析错误", 6),
            ("修复 src/date.rs，然后测试 2 次", 9),
        ] {
            assert_eq!(words(text), count, "{text}");
        }
    }
}
