//! Texts as a shell takes them.

/// A text as a shell takes it.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | ':' | '_' | '-' | '=');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_it_as_it_is() {
        assert_eq!(quoted("http://127.0.0.1:8484/v1"), "http://127.0.0.1:8484/v1");
        assert_eq!(quoted(r#"{"a": "it's"}"#), r#"'{"a": "it'\''s"}'"#);
        assert_eq!(quoted(""), "''");
    }
}
