//! Some providers refuse a request whose prompt and allowed answer pass the window together. Where one did, the
//! client's limit for the answer is lowered in its own text: the one change that a request without edits may get.

use std::collections::HashMap;

use bytes::Bytes;
use longhaul::Tokens;
use longhaul::conversation::MAX_OUTPUT;
use serde_json::value::RawValue;

use crate::ask_usage::{place, replaced};

/// The body with a lower limit for its answer; `None` if it has no higher one.
pub(crate) fn within(body: &[u8], most: Tokens) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let top: HashMap<&str, &RawValue> = serde_json::from_str(text).ok()?;
    let limits = MAX_OUTPUT.iter().filter_map(|name| top.get(name));
    let mut places: Vec<_> = limits
        .filter(|limit| limit.get().parse::<u64>().is_ok_and(|limit| limit > most.0))
        .map(|limit| place(text, limit.get()))
        .collect();
    // From the end: places before a change stay where they are.
    places.sort_by_key(|place| std::cmp::Reverse(place.start));
    let lower = most.0.to_string();
    places.into_iter().fold(None, |body: Option<Bytes>, place| {
        Some(replaced(body.as_deref().unwrap_or(text.as_bytes()), place, &lower))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shorter(body: &str, most: u64) -> Option<String> {
        within(body.as_bytes(), Tokens(most)).map(|body| String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn a_limit_is_lowered_and_nothing_else_is_touched() {
        let body = r#"{ "max_tokens" : 128000, "messages": [{"max_tokens": 128000}], "x": 1e5 }"#;
        let lower = r#"{ "max_tokens" : 9000, "messages": [{"max_tokens": 128000}], "x": 1e5 }"#;
        assert_eq!(shorter(body, 9_000).as_deref(), Some(lower));
        assert_eq!(
            shorter(r#"{"max_completion_tokens":20000,"max_tokens":9}"#, 8_000).as_deref(),
            Some(r#"{"max_completion_tokens":8000,"max_tokens":9}"#)
        );
        for body in [r#"{"max_tokens":9000}"#, r#"{"max_tokens":null}"#, "{}", "[]", "no body", ""] {
            assert_eq!(shorter(body, 9_000), None, "{body}");
        }
    }
}
