//! Signed thinking in a body of Anthropic: where it stands, and the body without what the provider would refuse, because it
//! was signed for other messages than those that stand before it now. All other bytes stay as they are.

use std::fmt;

use crate::fields::FieldError;
use crate::scan::{Scanner, Tape, Value};

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
    let (tape, note) = scanned(body).ok()?;
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

/// The place of a block in a body, as providers name it.
///
/// ```
/// use longhaul_wire::api::BlockPlace;
/// let place = BlockPlace::named_in("messages.5.content.0: Invalid `signature` in `thinking` block.").unwrap();
/// assert_eq!((place.message, place.block), (5, 0));
/// assert_eq!(place.to_string(), "messages.5.content.0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockPlace {
    /// The number of the message, from 0.
    pub message: usize,
    /// The number of the block in it, from 0.
    pub block: usize,
}

impl BlockPlace {
    /// The first place that is named in a text.
    pub fn named_in(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            Some((text[..digits].parse().ok()?, digits))
        };
        text.match_indices("messages.").find_map(|(at, name)| {
            let rest = &text[at + name.len()..];
            let (message, digits) = number(rest)?;
            let (block, _) = number(rest[digits..].strip_prefix(".content.")?)?;
            Some(Self { message, block })
        })
    }
}

impl fmt::Display for BlockPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "messages.{}.content.{}", self.message, self.block)
    }
}

/// All signed thinking of an Anthropic body, in order: where each block stands, and its signature or its data.
pub fn signed_thinking(body: &str) -> Vec<(BlockPlace, String)> {
    let Ok((tape, note)) = scanned(body) else { return Vec::new() };
    let messages = tape.value(body, note).get("messages");
    let messages = messages.iter().flat_map(|messages| messages.elements()).enumerate();
    let contents = messages.filter_map(|(at, message)| Some((at, message.get("content")?)));
    let blocks = contents.flat_map(|(message, content)| {
        let blocks = content.elements().enumerate();
        blocks.map(move |(block, value)| (BlockPlace { message, block }, value))
    });
    blocks.filter_map(|(place, block)| Some((place, seal_of(block)?))).collect()
}

fn scanned(body: &str) -> Result<(Tape, usize), FieldError> {
    let mut scanner = Scanner::new(body, 0)?;
    let note = scanner.value()?;
    Ok((scanner.tape, note))
}

fn is_signed(block: Value<'_>) -> bool {
    seal_of(block).is_some()
}

/// What thinking is signed with. What a server like Anthropic's left unsigned is bound to nothing.
fn seal_of(block: Value<'_>) -> Option<String> {
    let field = match block.get("type") {
        Some(kind) if kind.is_text("thinking") => "signature",
        Some(kind) if kind.is_text("redacted_thinking") => "data",
        _ => return None,
    };
    let seal = block.get(field)?.text()?;
    (!seal.is_empty()).then(|| seal.into_owned())
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
        let signed: Vec<String> =
            signed_thinking(&body).iter().map(|(place, seal)| format!("{place} {seal}")).collect();
        assert_eq!(
            signed,
            [
                "messages.1.content.0 s1",
                "messages.2.content.0 d",
                "messages.3.content.1 s2",
                "messages.3.content.3 s3"
            ]
        );
        for odd in
            ["", "[]", "{}", r#"{"messages":7}"#, r#"{"messages":[{"content":[]}]}"#, "{\"messages\":["]
        {
            assert_eq!(without_thinking(odd, 0), None, "{odd}");
            assert_eq!(signed_thinking(odd), [], "{odd}");
        }
    }

    #[test]
    fn a_place_is_found_in_what_a_provider_says() {
        let named = |text| BlockPlace::named_in(text).map(|place| place.to_string());
        let says = "starting at `messages.2`. messages.12.content.3: Invalid";
        assert_eq!(named(says).as_deref(), Some("messages.12.content.3"));
        for odd in [
            "",
            "messages.",
            "messages.1",
            "messages.1.content.",
            "messages.x.content.1",
            "message.1.content.1",
        ] {
            assert_eq!(named(odd), None, "{odd}");
        }
    }
}
