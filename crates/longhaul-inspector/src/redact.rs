//! What must not leave the machine is taken out of texts: keys of known forms, and what a person names.

use std::borrow::Cow;

use regex::Regex;
use serde_json::Value;

/// What stands in the place of what was taken out.
const REDACTED: &str = "[redacted]";

/// Forms of keys. What stands in the groups `before` and `behind` stays.
const KEYS: [&str; 12] = [
    r"\bsk-[A-Za-z0-9_-]{12,}",
    r"(?i)(?<before>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}",
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[0-9A-Z]{16}\b",
    r"\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\bAIza[0-9A-Za-z_-]{30,}",
    r"\b(?:npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    r"(?<before>://[^/\s:@]+:)[^/\s@]+(?<behind>@)",
    // A field that is called so, with a value in quotes; quotes of quoted text have a backslash.
    r#"(?i)(?<before>(?:api[_-]?key|secret|token|passw(?:or)?d|authorization)\w*\\*["']?\s*[:=]\s*\\*["'])[^"'\\\s]{8,}"#,
    // A variable of an environment.
    r"(?<before>\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=)[^\s'\x22]{6,}",
];

/// Takes out what must not leave the machine.
#[derive(Debug, Clone)]
pub struct Redaction {
    patterns: Vec<Regex>,
}

impl Redaction {
    /// Keys of known forms, and what these regular expressions fit. An error says which is none.
    pub fn new(own: &[String]) -> Result<Self, String> {
        let own = own.iter().map(|pattern| {
            let regex = Regex::new(pattern);
            regex.map_err(|_| format!("{pattern:?} is no regular expression"))
        });
        // Patterns of ours are looked at by a test.
        let known = KEYS.iter().filter_map(|pattern| Regex::new(pattern).ok()).map(Ok);
        Ok(Self { patterns: known.chain(own).collect::<Result<_, _>>()? })
    }

    /// A text without it.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for pattern in &self.patterns {
            // A pattern that fits nothing at all, such as `a*`, would stand between all characters.
            let replaced = pattern.replace_all(&clean, |found: &regex::Captures<'_>| {
                let group = |name| found.name(name).map_or("", |group| group.as_str());
                match &found[0] {
                    "" => String::new(),
                    _ => format!("{}{REDACTED}{}", group("before"), group("behind")),
                }
            });
            if let Cow::Owned(replaced) = replaced {
                clean = Cow::Owned(replaced);
            }
        }
        clean
    }

    /// A value with all its texts, names of fields included, without it.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                let all = std::mem::take(fields);
                for (name, mut value) in all {
                    // A field that is called like a secret holds one, whatever it looks like.
                    match (&value, is_secret(&name)) {
                        (Value::String(text), true) if !text.is_empty() => value = REDACTED.into(),
                        _ => self.value(&mut value),
                    }
                    fields.insert(self.text(&name).into_owned(), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase().replace(['-', '_'], "");
    ["apikey", "password", "passwd", "secret", "accesstoken", "authtoken", "authorization"]
        .iter()
        .any(|secret| name.ends_with(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_and_what_is_around_them_stays() {
        assert!(KEYS.iter().all(|pattern| Regex::new(pattern).is_ok()));
        let redaction = Redaction::new(&["tide.?water".to_owned(), "q*".to_owned()]).unwrap();
        for (text, clean) in [
            ("key sk-ant-api03-abcdefgh1234 end", "key [redacted] end"),
            ("Authorization: Bearer abcdef.ghijkl-123456", "Authorization: Bearer [redacted]"),
            ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
            ("ghp_0123456789abcdefghij0123", "[redacted]"),
            ("postgres://me:hunter2@db/y", "postgres://me:[redacted]@db/y"),
            (r#"{\"api_key\": \"abcdefgh\"}"#, r#"{\"api_key\": \"[redacted]\"}"#),
            ("export OPENAI_API_KEY=abcdef123", "export OPENAI_API_KEY=[redacted]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\ndef", "[redacted]"),
            ("the tide-water project", "the [redacted] project"),
            ("let token = parse(text); password: none", "let token = parse(text); password: none"),
            ("task-force sk-short", "task-force sk-short"),
        ] {
            assert_eq!(redaction.text(text), clean);
        }
        let mut value = serde_json::json!({"a": ["sk-0123456789abcdef"], "password": "x", "tidewater": 1});
        redaction.value(&mut value);
        assert_eq!(value, serde_json::json!({"a": [REDACTED], "password": REDACTED, "[redacted]": 1}));
        assert!(Redaction::new(&["(".to_owned()]).unwrap_err().contains("is no regular expression"));
    }
}
