//! A body without thinking that its provider would refuse: what was signed for other messages than those that stand
//! before it now. All other bytes stay as they are.

use crate::fields::FieldError;
use crate::scan::{Scanner, Value};

/// Stands for the content of a message that was nothing but thinking.
const NOTHING_LEFT: &str = r#"{"type":"text","text":"(thinking)"}"#;

/// An Anthropic body in which only the first `keep` messages with signed thinking keep it; `None` if that is all of them.
///
/// ```
/// use longhaul_wire::api::without_thinking;
/// let body = r#"{"messages": [{"role": "assistant", "content":
///     [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Yes."}]}]}"#;
/// let bare = without_thinking(body, 0).unwrap();
/// assert_eq!(bare, r#"{"messages": [{"role": "assistant", "content":
///     [{"type": "text", "text": "Yes."}]}]}"#);
/// assert_eq!(without_thinking(&bare, 0), None);
/// ```
pub fn without_thinking(body: &str, keep: usize) -> Option<String> {
    let scanned = || -> Result<_, FieldError> {
        let mut scanner = Scanner::new(body, 0)?;
        let note = scanner.value()?;
        Ok((scanner.tape, note))
    };
    let (tape, note) = scanned().ok()?;
    let messages = tape.value(body, note).get("messages")?;
    let contents = messages.elements().filter_map(|message| message.get("content"));
    let thinking = contents.filter(|content| content.elements().any(is_signed));
    let (mut bare, mut from) = (String::with_capacity(body.len()), 0);
    for content in thinking.skip(keep) {
        let left: Vec<Value<'_>> = content.elements().filter(|block| !is_signed(*block)).collect();
        let Some(first) = left.first() else {
            bare.push_str(&body[from..content.start()]);
            bare.extend(["[", NOTHING_LEFT, "]"]);
            from = content.end();
            continue;
        };
        // From the beginning of the list to the first block that stays, and so on from block to block.
        let begins = content.elements().next().map_or(first.start(), |block| block.start());
        bare.push_str(&body[from..begins]);
        bare.push_str(first.raw());
        for block in &left[1..] {
            bare.push(',');
            bare.push_str(block.raw());
        }
        from = content.elements().last().map_or(first.end(), |block| block.end());
    }
    bare.push_str(&body[from..]);
    (from > 0).then_some(bare)
}

/// Signed thinking. What a server like Anthropic's left unsigned is bound to nothing.
fn is_signed(block: Value<'_>) -> bool {
    let has =
        |name: &str| block.get(name).and_then(|value| value.text()).is_some_and(|text| !text.is_empty());
    match block.get("type") {
        Some(kind) if kind.is_text("thinking") => has("signature"),
        Some(kind) if kind.is_text("redacted_thinking") => has("data"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signed_thinking_goes_and_the_rest_stays_to_the_byte() {
        let think =
            |n: usize| format!(r#"{{ "signature" : "s{n}", "thinking":"Hm, \"{n}\"", "type":"thinking" }}"#);
        let body = format!(
            r#"{{"model":"m", "messages":[ {{"role":"user","content":"thinking"}},
            {{"role":"assistant","content":[{}, {{"type":"text","text":"a"}} ]}},
            {{"role":"assistant","content":[{{"type":"redacted_thinking","data":"d"}}]}},
            {{"role":"assistant","content":[{{"type":"text","text":"b"}} , {} , {{"type":"tool_use","id":"c","name":"n","input":{{"type":"thinking","signature":"x"}}}}, {}]}},
            {{"role":"assistant","content":[{{"type":"thinking","thinking":"open","signature":""}}]}} ], "x":1}}"#,
            think(1),
            think(2),
            think(3)
        );
        let all = without_thinking(&body, 0).unwrap();
        let expected = r#"{"model":"m", "messages":[ {"role":"user","content":"thinking"},
            {"role":"assistant","content":[{"type":"text","text":"a"} ]},
            {"role":"assistant","content":[{"type":"text","text":"(thinking)"}]},
            {"role":"assistant","content":[{"type":"text","text":"b"},{"type":"tool_use","id":"c","name":"n","input":{"type":"thinking","signature":"x"}}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"open","signature":""}]} ], "x":1}"#;
        assert_eq!(all, expected);
        let some = without_thinking(&body, 1).unwrap();
        assert!(some.contains("s1") && !some.contains("s2") && !some.contains("\"d\""), "{some}");
        assert_eq!(without_thinking(&body, 3), None);
        for odd in
            ["", "[]", "{}", r#"{"messages":7}"#, r#"{"messages":[{"content":[]}]}"#, "{\"messages\":["]
        {
            assert_eq!(without_thinking(odd, 0), None, "{odd}");
        }
    }
}
