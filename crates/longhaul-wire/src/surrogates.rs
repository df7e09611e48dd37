//! Halves of characters. A program in JavaScript that cuts a string inside a character writes `"\ud83d"`: JSON by its
//! grammar, and no text that could be read.

/// JSON in which each half of a character that stands alone is U+FFFD; `None` if it has none.
///
/// ```
/// use longhaul_wire::mended_surrogates;
/// assert_eq!(mended_surrogates(br#""cut \ud83d""#).unwrap(), br#""cut \ufffd""#);
/// assert_eq!(mended_surrogates(br#""whole \ud83d\ude00, and \\ud83d""#), None);
/// ```
pub fn mended_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    let code = |at: usize| {
        let escape = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut mended: Option<Vec<u8>> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let pair = (code(at), code(at + 6));
        let width = match pair {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                let out = mended.get_or_insert_default();
                out.extend_from_slice(&json[copied..at]);
                out.extend_from_slice(b"\\ufffd");
                copied = at + 6;
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        at = (at + width).min(json.len());
    }
    mended.map(|mut out| {
        out.extend_from_slice(&json[copied..]);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lone_half_goes_and_nothing_else() {
        for (json, expected) in [
            (r#""\ud83d\ud83d\ude00\ude00""#, Some(r#""\ufffd\ud83d\ude00\ufffd""#)),
            (r#""\uD83D!\u0041""#, Some(r#""\ufffd!\u0041""#)),
            (r#""\\\ud83d""#, Some(r#""\\\ufffd""#)),
            (r#""\\ud83d \u00e9 \n""#, None),
            (r#""\ud83"#, None),
            ("\"\\", None),
            ("", None),
        ] {
            let found = mended_surrogates(json.as_bytes()).map(|out| String::from_utf8(out).unwrap());
            assert_eq!(found.as_deref(), expected, "{json}");
            if let Some(found) = found {
                assert!(serde_json::from_str::<String>(&found).is_ok(), "{found}");
            }
        }
    }
}
