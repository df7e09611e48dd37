//! The prefix of a thinking block, in the form in which Anthropic compares it: system prompt, tools and the messages
//! before the block, without differences that the model does not see.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};

use crate::api::blocks;

/// A prefix that grows from block to block. Thinking is not part of it.
#[derive(Debug, Clone)]
pub(crate) struct Prefix {
    hasher: DefaultHasher,
    /// Names and definitions of deferred tools that no message has named so far: the model does not see them.
    unnamed: Vec<(String, String)>,
    /// Names of tools in the open message.
    named: Vec<String>,
}

impl Prefix {
    /// The prefix before the first message of a request.
    pub(crate) fn of(body: &Value) -> Self {
        let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let (deferred, known): (Vec<_>, Vec<_>) =
            tools.iter().partition(|tool| tool["defer_loading"] == true);
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        let mut unnamed: Vec<_> =
            deferred.into_iter().map(|tool| (name(tool), canonical_tool(tool))).collect();
        unnamed.sort();
        let mut known: Vec<String> = known.into_iter().map(canonical_tool).collect();
        known.sort();
        let mut prefix = Self { hasher: DefaultHasher::new(), unnamed, named: Vec::new() };
        prefix.add("system");
        for block in blocks(&body["system"]).iter().filter_map(canonical_block) {
            prefix.add(&block.to_string());
        }
        prefix.add("tools");
        for tool in known {
            prefix.add(&tool);
        }
        prefix
    }

    /// Adds the beginning of a message: all of it but its content.
    pub(crate) fn open(&mut self, message: &Value) {
        let mut head = bare(message);
        if let Some(fields) = head.as_object_mut() {
            fields.remove("content");
        }
        self.add("message");
        self.add(&head.to_string());
    }

    /// Adds a block of the open message.
    pub(crate) fn block(&mut self, block: &Value) {
        names_of_tools(block, &mut self.named);
        if let Some(block) = canonical_block(block) {
            self.add(&block.to_string());
        }
    }

    /// Ends the open message. Deferred tools that it names are part of the prefix from here on.
    pub(crate) fn close(&mut self) {
        let named = std::mem::take(&mut self.named);
        let (now, unnamed) =
            std::mem::take(&mut self.unnamed).into_iter().partition(|(name, _)| named.contains(name));
        self.unnamed = unnamed;
        for (_, tool) in now {
            self.add(&tool);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    fn add(&mut self, text: &str) {
        text.hash(&mut self.hasher);
    }
}

/// A value with its keys in order, without null-valued keys and marks of the cache, and with whole numbers as integers.
fn bare(value: &Value) -> Value {
    let mut value = without_nulls(value);
    value.sort_all_objects();
    value
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(without_nulls).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| !value.is_null() && *name != "cache_control");
            let field = |(name, value): (&String, &Value)| match name.as_str() {
                // A null in them is a value of the model, or part of a schema.
                "input" | "input_schema" => (name.clone(), with_integers(value)),
                _ => (name.clone(), without_nulls(value)),
            };
            Value::Object(kept.map(field).collect())
        }
        other => with_integers(other),
    }
}

/// A value in which 1.0 is 1.
fn with_integers(value: &Value) -> Value {
    /// Larger floats have no exact integer.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(values) => values.iter().map(with_integers).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| (name.clone(), with_integers(value));
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < LARGEST => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

/// A block as it is compared; `None` if it does not count.
fn canonical_block(block: &Value) -> Option<Value> {
    let mut bare = bare(block);
    let Some(fields) = bare.as_object_mut() else { return Some(bare) };
    if fields.get("type").is_some_and(|kind| kind == "text") {
        let text = fields.get("text").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        if text.is_empty() {
            return None;
        }
        fields.insert("text".to_owned(), text.into());
    }
    if fields.get("citations").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        fields.remove("citations");
    }
    if fields.get("is_error").is_some_and(|error| error == false) {
        fields.remove("is_error");
    }
    if let Some(content) = fields.get("content").filter(|content| content.is_string() || content.is_array()) {
        let inner: Vec<Value> = blocks(content).iter().filter_map(canonical_block).collect();
        if inner.is_empty() {
            fields.remove("content");
        } else {
            fields.insert("content".to_owned(), inner.into());
        }
    }
    bare.sort_all_objects();
    Some(bare)
}

fn canonical_tool(tool: &Value) -> String {
    let mut bare = bare(tool);
    if let Some(fields) = bare.as_object_mut() {
        fields.retain(|name, value| !is_default(name, value));
    }
    bare.sort_all_objects();
    bare.to_string()
}

/// True for a field of a tool that means the same if it is left out.
fn is_default(name: &str, value: &Value) -> bool {
    match name {
        "type" => value == "custom",
        "description" => value == "",
        "strict" | "eager_input_streaming" => value == false,
        "allowed_callers" => value.as_array().is_some_and(|callers| *callers == ["direct"]),
        _ => false,
    }
}

/// The names of tools that a block calls or refers to.
fn names_of_tools(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| names_of_tools(value, names)),
        Value::Object(fields) => {
            let names_a_tool = match fields.get("type").and_then(Value::as_str) {
                Some(kind) => ["tool_use", "server_tool_use", "tool_reference"].contains(&kind),
                None => false,
            };
            let name = fields.get("tool_name").or(fields.get("name")).and_then(Value::as_str);
            names.extend(name.filter(|_| names_a_tool).map(str::to_owned));
            let inner = fields.iter().filter(|(name, _)| *name != "input");
            inner.for_each(|(_, value)| names_of_tools(value, names));
        }
        _ => {}
    }
}
