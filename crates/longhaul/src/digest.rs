//! Digests: the short form of a text, which says what is missing, how much, and its handle.
//! Never larger than the original, and never to be mistaken for it: what is left out is
//! marked with brackets that no tool prints. By position and size here; by what was printed in
//! `content` (which kind), `rank` (which lines) and `select` (how many); on entry in `entry`; of several
//! outputs in one result in `outputs`.

mod by_tool;
mod content;
mod cut;
mod entry;
mod json;
mod outputs;
mod rank;
mod select;
mod tool;

use std::ops::Range;

use crate::conversation::json::{Extra, Json};
use crate::conversation::message::ToolCall;
use crate::edits::archive::Handle;
use crate::text::cut::{middle_by_bytes, middle_by_characters, middle_by_lines, with_mark};
use crate::text::names::NameSet;

pub(crate) use by_tool::by_tool;
pub use content::ContentKind;
pub use cut::{Cut, Ends};
pub(crate) use entry::{HUGE, Most, entry};
pub(crate) use outputs::Outputs;
use rank::Noise;
pub(crate) use rank::{Failures, without_number};
pub(crate) use select::is_digest;
use select::{Room, select};
pub use tool::{Aliases, ToolKind};

/// Lines of a digest: so many from the start and the end.
pub(crate) const LINES: (usize, usize) = (3, 2);
/// Characters, where lines are too long or too few.
const CHARS: (usize, usize) = (300, 200);
/// A text of no more than this is left whole.
pub(crate) const SHORT: usize = 500;
/// A string among arguments is cut to this.
const ARGUMENT: (usize, usize) = (120, 80);

/// The digest of a tool result by position: its first three and last two lines; `None` if it
/// is short already.
///
/// ```
/// use longhaul::Handle;
/// use longhaul::digest::result as digest_result;
/// let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
/// let short = digest_result(&text, Handle::of(&text)).unwrap();
/// assert!(short.starts_with("line 1\nline 2\nline 3\n⟦95 lines left out, 792 characters originally; "));
/// assert!(short.ends_with("line 99\nline 100\n"));
/// ```
pub fn result(text: &str, handle: Handle) -> Option<String> {
    by_position(text, LINES, handle)
}

/// So many lines from the start and the end. Where there are few lines, or long ones, the first
/// 300 and the last 200 characters.
pub(crate) fn by_position(text: &str, (head, tail): (usize, usize), handle: Handle) -> Option<String> {
    // A digest by position is short: what is longer only quotes one.
    if text.len() <= SHORT || text.len() < 6 * SHORT && select::is_digest(text) {
        return None;
    }
    let characters = text.chars().count();
    if characters <= SHORT {
        return None;
    }
    let lines = text.lines().count();
    let by_lines = (lines > head + tail + 1).then(|| middle_by_lines(text, lines, head, tail));
    let kept =
        |middle: &Range<usize>| text[..middle.start].chars().count() + text[middle.end..].chars().count();
    let (middle, what) = match by_lines.filter(|middle| kept(middle) <= SHORT) {
        Some(middle) => {
            let gone = lines - head - tail;
            (middle, format!("{gone} line{} left out", if gone == 1 { "" } else { "s" }))
        }
        None => (
            middle_by_characters(text, characters, CHARS.0, CHARS.1),
            format!("{} characters left out", characters - CHARS.0 - CHARS.1),
        ),
    };
    let mark = format!("⟦{what}, {characters} characters originally; recall {}⟧", handle.short());
    with_mark(text, middle, &mark)
}

/// The best lines of a result by what it is: failures, definitions, places, names in use; a fifth
/// of it, 2,000 bytes at most. `None` if that would not be shorter.
pub(crate) fn by_content(
    text: &str,
    tool: ToolKind,
    subject: &str,
    names: &NameSet<'_>,
    handle: Handle,
) -> Option<String> {
    if text.len() > HUGE {
        return result(text, handle);
    }
    let kind = ContentKind::of(text, tool, subject);
    // Of data no line says more than its size.
    let edge = if kind == ContentKind::Blob { 0 } else { 2 };
    let bytes = (text.len() / 5).clamp(400, 2_000);
    let room = Room { bytes, head: edge, tail: edge, fill: true, noise: Noise::Usual };
    if kind == ContentKind::Json && json::is_dense(text) && !select::is_digest(text) {
        return json::shape(text, room.bytes + 200, handle).or_else(|| result(text, handle));
    }
    select(text, kind, room, names, handle).or_else(|| result(text, handle))
}

/// The digest of what a call gave: by content, its best lines. `None` if it is short already.
///
/// ```
/// use longhaul::{Block, Handle, Json, Message};
/// use longhaul::digest::of_call as digest_of;
/// let Block::ToolCall(call) = Block::call("c", "Bash", Json::new(r#"{"command":"cargo test"}"#).unwrap())
/// else { unreachable!() };
/// let mut text: String = (0..90).map(|n| format!("test case_{n} ... ok\n")).collect();
/// text += "test empty ... FAILED\n\ntest result: FAILED. 90 passed; 1 failed\n";
/// let short = digest_of(&call, &text, Handle::of(&text)).unwrap();
/// assert!(short.contains("test empty ... FAILED") && short.len() < 400);
/// ```
pub fn of_call(call: &ToolCall, text: &str, handle: Handle) -> Option<String> {
    let aliases = Aliases::default();
    Outputs::of(Some(call), text, None, &aliases)
        .digest(text, |text, tool, subject| by_content(text, tool, &subject(), &NameSet::default(), handle))
}

/// What history keeps of what a call gave, by its tool: so many entries, hits or lines. `None` if
/// it is short already.
pub fn of_call_by_tool(call: &ToolCall, text: &str, handle: Handle) -> Option<String> {
    let aliases = Aliases::default();
    Outputs::of(Some(call), text, None, &aliases)
        .digest(text, |text, tool, subject| by_tool(text, tool, &subject(), handle))
}

/// The first `head` and last `tail` bytes of a text, and a mark between; `None` if that would
/// not be shorter. Cuts at line ends where that costs less than a quarter.
pub fn head_and_tail(text: &str, head: usize, tail: usize, handle: Handle) -> Option<String> {
    if head.saturating_add(tail) >= text.len() {
        return None;
    }
    let Range { mut start, mut end } = middle_by_bytes(text, head, tail);
    if let Some(line_end) = text[..start].rfind('\n').filter(|at| *at >= start - start / 4) {
        start = line_end + 1;
    }
    if let Some(line_end) = text[end..].find('\n').filter(|at| *at <= tail / 4) {
        end += line_end + 1;
    }
    let gone = &text[start..end];
    let (lines, characters) = (gone.matches('\n').count(), gone.chars().count());
    let what = match lines {
        0 => format!("{characters} characters"),
        1 => format!("1 line, {characters} characters"),
        _ => format!("{lines} lines, {characters} characters"),
    };
    with_mark(text, start..end, &format!("⟦{what} left out; recall {}⟧", handle.short()))
}

/// Arguments whose long strings are cut, as valid JSON; `None` if that would not be shorter.
pub fn arguments(json: &Json, handle: Handle) -> Option<Json> {
    let mark =
        || format!("⟦{} characters left out; recall {}⟧", json.as_str().chars().count(), handle.short());
    let shorter = match serde_json::from_str::<Extra>(json.as_str()) {
        Ok(fields) => {
            let mut short = Extra::NONE;
            for (name, value) in fields.iter() {
                short.push(name, argument(value, handle).unwrap_or_else(|| value.clone()));
            }
            Json::new(serde_json::to_string(&short).ok()?).ok()?
        }
        // Not an object, which a provider may refuse: one that says so.
        Err(_) => Json::new(serde_json::json!({ "left_out": mark() }).to_string()).ok()?,
    };
    if shorter.as_str().len() + shorter.as_str().len() / 8 < json.as_str().len() {
        return Some(shorter);
    }
    // Many small values: none is long, together they are.
    let bare = Json::new(serde_json::json!({ "left_out": mark() }).to_string()).ok()?;
    (bare.as_str().len() * 4 < json.as_str().len()).then_some(bare)
}

fn argument(value: &Json, handle: Handle) -> Option<Json> {
    let (head, tail) = ARGUMENT;
    if value.as_str().len() <= 2 * (head + tail) {
        return None;
    }
    let text: String = serde_json::from_str(value.as_str()).unwrap_or_else(|_| value.as_str().to_owned());
    head_and_tail(&text, head, tail, handle).map(|short| Json::string(&short))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // covers: T-L1
    #[test]
    fn three_lines_and_two_and_what_is_missing() {
        let text: String = (0..40).map(|n| format!("line number {n} of it\n")).collect();
        let short = result(&text, Handle::of(&text)).unwrap();
        let lines: Vec<&str> = short.lines().collect();
        assert_eq!(lines[..3], ["line number 0 of it", "line number 1 of it", "line number 2 of it"]);
        assert!(lines[3].starts_with("⟦35 lines left out, 830 characters originally; recall "), "{short}");
        assert_eq!(lines[4..], ["line number 38 of it", "line number 39 of it"]);
        assert_eq!(result(&short, Handle::of("")), None);
        // 500 characters stay whole, whatever bytes they have; six lines are cut by characters.
        assert_eq!(result(&"字".repeat(500), Handle::of("")), None);
        let six = format!("{}\n", "a".repeat(150)).repeat(6);
        let short = result(&six, Handle::of(&six)).unwrap();
        assert!(short.contains("\n⟦406 characters left out, 906 characters originally; recall "), "{short}");
        // Kept lines of more than 500 characters are cut by characters too.
        let long = format!("{}\n", "b".repeat(150)).repeat(20);
        let kept = result(&long, Handle::of(&long)).unwrap();
        assert_eq!(kept.lines().filter(|line| !line.starts_with('⟦')).map(str::len).sum::<usize>(), 500 - 3);
    }

    // covers: T-L1
    #[test]
    fn a_line_that_is_too_long_is_cut_by_characters() {
        let json = format!("{{\"items\":[{}]}}", "1,".repeat(2_000));
        let short = result(&json, Handle::of(&json)).unwrap();
        assert!(short.len() < 620 && short.starts_with("{\"items\":[1,1"), "{short}");
        assert_eq!(result(&"x".repeat(500), Handle::of("")), None);
    }

    #[test]
    fn arguments_stay_an_object() {
        let long = "y".repeat(5_000);
        let json = Json::new(format!(r#"{{"path": "a.rs", "content": "{long}", "n": 2.10}}"#)).unwrap();
        let short = arguments(&json, Handle::of(json.as_str())).unwrap();
        let value = short.value();
        assert_eq!((value["path"].as_str(), short.as_str().contains("2.10")), (Some("a.rs"), true));
        assert!(value["content"].as_str().unwrap().contains("characters left out; recall "));
        assert_eq!(arguments(&Json::new(r#"{"path":"a.rs"}"#).unwrap(), Handle::of("")), None);
        let list = Json::new(format!("[{}1]", "1,".repeat(500))).unwrap();
        assert!(arguments(&list, Handle::of("")).unwrap().is_object());
    }

    proptest! {
        #[test]
        fn never_larger_and_what_is_kept_is_of_the_original(text in "(\\PC{0,80}\n|[a-z ]{0,40}\r\n|中{0,50}){0,60}", head in 0usize..900, tail in 0usize..900) {
            for short in [result(&text, Handle::of(&text)), head_and_tail(&text, head, tail, Handle::of(&text))].into_iter().flatten() {
                prop_assert!(short.len() < text.len());
                let at = short.find('⟦').unwrap();
                let end = short.rfind("⟧\n").unwrap() + "⟧\n".len();
                prop_assert!(text.starts_with(short[..at].strip_suffix('\n').unwrap_or(&short[..at])));
                prop_assert!(text.ends_with(&short[end..]));
            }
        }

        #[test]
        fn arguments_are_valid_and_smaller(fields in prop::collection::vec(("[a-z]{1,4}", "\\PC{0,900}"), 0..5)) {
            let map: serde_json::Map<String, serde_json::Value> = fields.into_iter().map(|(k, v)| (k, v.into())).collect();
            let json = Json::from(&serde_json::Value::Object(map));
            if let Some(short) = arguments(&json, Handle::of("")) {
                prop_assert!(short.as_str().len() < json.as_str().len());
                prop_assert!(short.value().is_object());
            }
        }
    }
}
