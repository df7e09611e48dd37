//! Names that nobody could guess: paths, numbers of four digits or more, and identifiers that
//! are long, or have an underscore, a digit or a change of case inside. What later steps need
//! again is found by them.

/// The names in a text, in their order.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    // Runs of the characters that paths have; what has no slash falls apart into words.
    runs(text, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'@' | b'~' | b'-' | b'/'))
        .flat_map(|run| {
            let path = run.trim_end_matches(['/', '.']);
            let is_path = path.len() > 3 && path.as_bytes()[1..].contains(&b'/');
            let words = if is_path { "" } else { run };
            is_path.then_some(path).into_iter().chain(
                runs(words, |b| b.is_ascii_alphanumeric() || b == b'_')
                    .filter(|word| is_name(word.as_bytes())),
            )
        })
}

/// Unbroken runs of bytes that fit. All of them are ASCII, so that cuts are between characters.
fn runs(text: &str, fits: fn(u8) -> bool) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes[at..].iter().position(|b| fits(*b))?;
        let len = bytes[at..].iter().position(|b| !fits(*b)).unwrap_or(bytes.len() - at);
        let run = &text[at..at + len];
        at += len;
        Some(run)
    })
}

fn is_name(word: &[u8]) -> bool {
    if word[0].is_ascii_digit() {
        return word.len() >= 4 && word.iter().all(u8::is_ascii_digit);
    }
    let odd = |pair: &[u8]| {
        pair[1] == b'_' && pair[0] != b'_'
            || pair[1].is_ascii_digit() && pair[0].is_ascii_alphabetic()
            || pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
    };
    word.len() >= 6 && (word.len() >= 16 || word.windows(2).any(odd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_could_guess() {
        let text =
            "see src/parse.rs: fn parse_line(s, 8080) -> HttpServer in ./a/b/. 12 port 東京 id7788 short";
        let found: Vec<&str> = names(text).collect();
        assert_eq!(found, ["src/parse.rs", "parse_line", "8080", "HttpServer", "./a/b", "id7788"]);
    }
}
