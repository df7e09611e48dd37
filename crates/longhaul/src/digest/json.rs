//! The digest of JSON that stands on few lines: its shape. Of lists the first items and how many
//! more there are, of long texts the start, of what is deep how much it holds.

use std::fmt::Write;

use serde_json::Value;

use crate::edits::archive::Handle;

/// More than this is not read.
const LARGEST: usize = 4 << 20;

/// How much is shown: items of a list, fields of an object, characters of a text, levels.
#[derive(Clone, Copy)]
struct Limits {
    items: usize,
    fields: usize,
    characters: usize,
    depth: usize,
}

/// From much to little: the first that fits is taken.
const STEPS: [Limits; 5] = [
    Limits { items: 8, fields: 60, characters: 200, depth: 6 },
    Limits { items: 4, fields: 40, characters: 100, depth: 5 },
    Limits { items: 2, fields: 30, characters: 60, depth: 4 },
    Limits { items: 1, fields: 20, characters: 40, depth: 3 },
    Limits { items: 1, fields: 10, characters: 20, depth: 2 },
];

/// True if the text is JSON whose lines are too long to choose among.
pub(super) fn is_dense(text: &str) -> bool {
    let lines = text.lines().count().max(1);
    text.len() <= LARGEST && text.len() / lines > 400
}

/// The shape of JSON in at most about `room` bytes; `None` if it is none, or would not be shorter.
pub(super) fn shape(text: &str, room: usize, handle: Handle) -> Option<String> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    STEPS.iter().find_map(|limits| {
        let mut out = String::new();
        show(&value, *limits, limits.depth, &mut out);
        _ = write!(
            out,
            "\n⟦{} characters of JSON, shortened: the rest left out; recall {}⟧\n",
            text.chars().count(),
            handle.short()
        );
        (out.len() <= room && out.len() < text.len()).then_some(out)
    })
}

fn show(value: &Value, limits: Limits, depth: usize, out: &mut String) {
    match value {
        Value::Array(items) if depth == 0 && !items.is_empty() => {
            _ = write!(out, "[⟦{} items⟧]", items.len())
        }
        Value::Object(fields) if depth == 0 && !fields.is_empty() => {
            _ = write!(out, "{{⟦{} fields⟧}}", fields.len())
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().take(limits.items).enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                show(item, limits, depth - 1, out);
            }
            if items.len() > limits.items {
                _ = write!(out, ",⟦{} more⟧", items.len() - limits.items);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, field)) in fields.iter().take(limits.fields).enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                _ = write!(out, "{}:", Value::String(name.chars().take(limits.characters).collect()));
                show(field, limits, depth - 1, out);
            }
            if fields.len() > limits.fields {
                _ = write!(out, ",⟦{} more⟧", fields.len() - limits.fields);
            }
            out.push('}');
        }
        Value::String(text) => {
            let start: String = text.chars().take(limits.characters).collect();
            let more = text.chars().count() - start.chars().count();
            _ = write!(out, "{}", Value::String(start));
            if more > 0 {
                _ = write!(out, "⟦{more} more⟧");
            }
        }
        other => _ = write!(out, "{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn alike_objects_on_one_line_become_their_shape() {
        let rows: Vec<Value> = (0..200)
            .map(
                |n| json!({"id": n, "name": format!("row {n}"), "tags": ["a", "b"], "body": "x".repeat(300)}),
            )
            .collect();
        let text = json!({"total": 200, "rows": rows, "next": null}).to_string();
        let short = shape(&text, 2_000, Handle::of(&text)).unwrap();
        assert!(
            short.starts_with(
                "{\"total\":200,\"rows\":[{\"id\":0,\"name\":\"row 0\",\"tags\":[\"a\",\"b\"],\"body\":\"xxx"
            ),
            "{short}"
        );
        assert!(
            short.contains(",⟦196 more⟧],\"next\":null}\n⟦") && short.contains(" left out; recall "),
            "{short}"
        );
        assert_eq!(shape("{", 2_000, Handle::of("")), None);
        assert_eq!(shape("42", 2_000, Handle::of("")), None);
    }

    proptest! {
        #[test]
        fn it_fits_or_there_is_none(items in prop::collection::vec("\\PC{0,80}", 0..200), depth in 0usize..100, room in 100usize..3_000) {
            let mut value = json!(items);
            for n in 0..depth {
                value = json!({ format!("k{n}"): value });
            }
            let text = value.to_string();
            if let Some(short) = shape(&text, room, Handle::of(&text)) {
                prop_assert!(short.len() <= room && short.len() < text.len());
                prop_assert!(super::super::select::is_digest(&short));
            }
        }
    }
}
