//! Canonical form: what of a prompt counts where a provider compares two prefixes. Cache marks, the order of
//! keys, a string or one text block, spaces around a text, and the order of tools do not count; the words of
//! messages, results, parsed arguments and descriptions do. A null counts where it is a value: in arguments and schemas.
//! Thinking is no part of the prefix that binds it.
//!
//! Messages are compared one by one: a provider may join neighbours, and nobody has documented whether that counts.

use serde_json::Value;

use crate::conversation::bond::tools_referred;
use crate::conversation::frame::{Frame, Tool};
use crate::conversation::json::{Extra, Json};
use crate::conversation::message::{Block, Message, Role};

/// The hash of something in canonical form.
pub(crate) type Canonical = [u8; 16];

/// The field of a cache mark.
const MARK: &str = "cache_control";

/// A message, without its thinking.
pub(crate) fn message(message: &Message) -> Canonical {
    let mut hash = Hash::new();
    hash.text(match message.role() {
        Role::Tool => Role::User.name(),
        role => role.name(),
    });
    hash.extra(message.extra());
    hash.blocks(message.blocks());
    hash.end()
}

/// System prompt and tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// What every request begins with.
    pub(crate) prompt: Canonical,
    /// The tools that count only after a message has named them, by name.
    pub(crate) deferred: Vec<(Box<str>, Canonical)>,
}

impl Head {
    pub(crate) fn of(frame: &Frame) -> Self {
        let mut hash = Hash::new();
        frame.system_of_prompt().for_each(|block| hash.block(block));
        let mut tools: Vec<Canonical> = frame.tools_of_prompt().map(tool).collect();
        tools.sort_unstable();
        hash.kind(b't', tools.len());
        tools.iter().for_each(|tool| _ = hash.0.update(tool));
        let deferred = frame.tools_deferred().map(|deferred| (deferred.name.clone(), tool(deferred)));
        let mut deferred: Vec<_> = deferred.collect();
        deferred.sort_unstable();
        Self { prompt: hash.end(), deferred }
    }
}

/// The names of tools that a message calls or refers to.
pub(crate) fn tools_named(message: &Message) -> Vec<Box<str>> {
    fn of_blocks(blocks: &[Block], names: &mut Vec<Box<str>>) {
        for block in blocks {
            match block {
                Block::ToolCall(call) => names.push(call.name.clone()),
                Block::ToolResult(result) => of_blocks(result.content.as_deref().unwrap_or_default(), names),
                Block::Opaque(opaque) => names.extend(tools_referred(opaque)),
                Block::Text(_) | Block::Thinking(_) | Block::Image(_) => {}
            }
        }
    }
    let mut names = Vec::new();
    of_blocks(message.blocks(), &mut names);
    names
}

/// Two values, one after the other.
pub(crate) fn both(first: &Canonical, second: &Canonical) -> Canonical {
    let mut hash = Hash::new();
    hash.0.update(first);
    hash.0.update(second);
    hash.end()
}

fn tool(tool: &Tool) -> Canonical {
    let mut hash = Hash::new();
    match tool.definition.value() {
        Value::Object(mut fields) => {
            fields.retain(|name, value| name != MARK && !is_default(name, value));
            hash.value(&Value::Object(fields), Nulls::Skipped);
        }
        other => hash.value(&other, Nulls::Skipped),
    }
    hash.end()
}

/// True for what a tool is anyway, where its definition does not name it.
fn is_default(name: &str, value: &Value) -> bool {
    match name {
        "type" => value == "custom",
        "description" => value == "",
        "strict" | "eager_input_streaming" | "defer_loading" => value == false,
        "allowed_callers" => value.as_array().is_some_and(|callers| callers[..] == ["direct"]),
        _ => false,
    }
}

/// Whether a field that is null is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// It is as good as left out.
    Skipped,
    /// The model has written it, or it is part of a schema.
    Kept,
}

/// Fields that hold arguments or a schema.
const WITH_NULLS: [&str; 2] = ["input", "input_schema"];

/// Each value is hashed with its kind and length, so that no two values are hashed alike.
struct Hash(blake3::Hasher);

impl Hash {
    fn new() -> Self {
        Self(blake3::Hasher::new())
    }

    fn end(&self) -> Canonical {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        half
    }

    fn kind(&mut self, kind: u8, count: usize) {
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&(count as u64).to_le_bytes());
        self.0.update(&bytes);
    }

    fn text(&mut self, text: &str) {
        self.kind(b's', text.len());
        self.0.update(text.as_bytes());
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let counts = |block: &&Block| match block {
            Block::Thinking(_) => false,
            Block::Text(text) => !text.text.trim().is_empty(),
            _ => true,
        };
        blocks.iter().filter(counts).for_each(|block| self.block(block));
        self.kind(b'.', 0);
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => self.said(&text.text),
            // No part of the prefix.
            Block::Thinking(_) => return,
            Block::ToolCall(call) => {
                self.kind(b'C', usize::from(call.server));
                self.text(&call.id);
                self.text(&call.name);
                self.json(&call.arguments, Nulls::Kept);
            }
            Block::ToolResult(result) => {
                self.kind(b'A', usize::from(result.is_error));
                self.text(&result.id);
                match &result.content {
                    Some(content) => self.blocks(content),
                    None => self.blocks(&[Block::text(result.text.clone())]),
                }
            }
            Block::Image(image) => {
                self.kind(b'I', 0);
                self.json(&image.source, Nulls::Skipped);
            }
            Block::Opaque(opaque) => {
                self.kind(b'O', 0);
                match opaque.value.value() {
                    Value::Object(mut fields) => {
                        fields.remove(MARK);
                        self.value(&Value::Object(fields), Nulls::Skipped);
                    }
                    other => self.value(&other, Nulls::Skipped),
                }
            }
        }
        self.extra(block.extra());
    }

    fn said(&mut self, text: &str) {
        self.kind(b'T', 0);
        self.text(text.trim());
    }

    fn extra(&mut self, extra: &Extra) {
        let is_empty = |name: &str, value: &Json| {
            name == MARK || value.as_str() == "null" || (name == "citations" && value.as_str() == "[]")
        };
        let mut fields: Vec<(&str, &Json)> =
            extra.iter().filter(|(name, value)| !is_empty(name, value)).collect();
        fields.sort_unstable_by_key(|(name, _)| *name);
        for (name, value) in fields {
            self.text(name);
            self.json(value, Nulls::Skipped);
        }
    }

    fn json(&mut self, json: &Json, nulls: Nulls) {
        match serde_json::from_str(json.as_str()) {
            Ok(value) => self.value(&value, nulls),
            // Nested deeper than can be parsed: it is itself.
            Err(_) => self.text(json.as_str()),
        }
    }

    fn value(&mut self, value: &Value, nulls: Nulls) {
        match value {
            Value::Null => self.kind(b'0', 0),
            Value::Bool(flag) => self.kind(b'b', usize::from(*flag)),
            Value::Number(number) => {
                self.kind(b'n', 0);
                // 1 and 1.0 are one number.
                let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15);
                self.text(&whole.map_or_else(|| number.to_string(), |n| (n as i64).to_string()));
            }
            Value::String(text) => self.text(text),
            Value::Array(values) => {
                self.kind(b'a', values.len());
                values.iter().for_each(|value| self.value(value, nulls));
            }
            Value::Object(fields) => {
                let counts = |(_, value): &(&String, &Value)| nulls == Nulls::Kept || !value.is_null();
                let mut fields: Vec<_> = fields.iter().filter(counts).collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                self.kind(b'o', fields.len());
                for (name, value) in fields {
                    self.text(name);
                    let inside = if WITH_NULLS.contains(&name.as_str()) { Nulls::Kept } else { nulls };
                    self.value(value, inside);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Opaque, Text, Words};

    fn call(arguments: &str) -> Message {
        Message::new(Role::Assistant, vec![Block::call("c1", "Read", Json::new(arguments).unwrap())])
    }

    fn tools(definitions: &[&str]) -> Canonical {
        let tools = definitions.iter().map(|json| Tool::from_definition(Json::new(*json).unwrap())).collect();
        Head::of(&Frame { tools, ..Frame::default() }).prompt
    }

    #[test]
    fn what_a_provider_ignores_does_not_count() {
        let text = |text: &str, extra: Extra| {
            Message::new(Role::User, vec![Block::Text(Text { text: text.into(), words: Words::All, extra })])
        };
        let mut marked = Extra::NONE;
        marked.push("cache_control", Json::new(r#"{"type":"ephemeral"}"#).unwrap());
        marked.push("citations", Json::new("[]").unwrap());
        let thinks =
            Message::new(Role::User, vec![Block::thinking("Hm."), Block::text("hi"), Block::text(" ")]);
        for same in [text(" hi\n", Extra::NONE), text("hi", marked), thinks] {
            assert_eq!(message(&same), message(&Message::user("hi")));
        }
        let one = message(&call(r#"{"path":"a","n":1,"x":null}"#));
        assert_eq!(one, message(&call(r#"{ "x": null, "n": 1.0, "path": "a" }"#)));
        let bare = tools(&[r#"{"name":"a","input_schema":{}}"#, r#"{"name":"b"}"#]);
        let written_out = r#"{"input_schema":{},"name":"a","type":"custom","description":"","strict":false,
            "allowed_callers":["direct"],"cache_control":{"type":"ephemeral"},"input_examples":null}"#;
        let opaque = |json: &str| {
            let value = Json::new(json).unwrap();
            message(&Message::new(Role::User, vec![Block::Opaque(Opaque { value, extra: Extra::NONE })]))
        };
        assert_eq!(
            opaque(r#"{"type":"document","source":{"url":"u","title":null}}"#),
            opaque(r#"{"type":"document","source":{"url":"u"},"context":null}"#)
        );
        let later = r#"{"name":"c","defer_loading":true}"#;
        assert_eq!(bare, tools(&[r#"{"name":"b"}"#, written_out, later]));
    }

    #[test]
    fn what_a_provider_compares_counts() {
        let hi = message(&Message::user("hi there"));
        for other in [Message::user("hi  there"), Message::assistant("hi there"), Message::user("hi")] {
            assert_ne!(message(&other), hi);
        }
        let (one, result) = (message(&call(r#"{"path":"a"}"#)), message(&Message::result("c1", "x y")));
        assert_ne!(one, message(&call(r#"{"path":"a "}"#)));
        // A null that the model wrote, or that a schema has.
        assert_ne!(one, message(&call(r#"{"path":"a","limit":null}"#)));
        let schema = |default: &str| {
            tools(&[&format!(r#"{{"name":"a","input_schema":{{"properties":{{"n":{{{default}}}}}}}}}"#)])
        };
        assert_ne!(schema(r#""default":null"#), schema(""));
        assert_ne!(result, message(&Message::result("c1", "x  y")));
        assert_ne!(result, message(&Message::result("c2", "x y")));
        let described = |about: &str| tools(&[&format!(r#"{{"name":"a","description":"{about}"}}"#)]);
        assert_ne!(described("reads"), described("writes"));
        assert_ne!(described("reads"), tools(&[r#"{"name":"a","description":"reads","strict":true}"#]));
    }
}
