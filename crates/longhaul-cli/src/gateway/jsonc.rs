//! JSON as people write it in settings: with comments, and with commas behind the last of a list.

use serde_json::Value;

/// The value of such a text.
pub fn read(text: &str) -> Option<Value> {
    serde_json::from_str(&plain(text)).ok()
}

/// The same text without comments and commas that JSON does not know.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    // A comma is written when it is known what follows.
    let mut comma = false;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest),
            _ => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(taken);
        rest = behind;
        if token.starts_with("//") || token.starts_with("/*") || c.is_whitespace() {
            continue;
        }
        if comma && !matches!(c, '}' | ']') {
            plain.push(',');
        }
        comma = c == ',';
        if !comma {
            plain.push_str(token);
        }
    }
    plain
}

/// The length of the string that a text begins with.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_last_commas_are_left_out() {
        let text = r#"{ // the "first"
            "a": "http://x//y", /* "b": 1, */ "c": [1, 2, ], "d\"//": "\\", }"#;
        assert_eq!(read(text), Some(json!({"a": "http://x//y", "c": [1, 2], "d\"//": "\\"})));
        for text in ["", "{", "\"", "/*", "{\"a\": }", "[1 2"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
