//! Everything about a request that is not the conversation: [`Frame`]. A log keeps every
//! version, because a changed frame re-bills the whole prompt.

use std::borrow::Cow;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::conversation::json::{Extra, Json};
use crate::conversation::message::{Block, Opaque};
use crate::edits::archive::Handle;
use crate::size::tokens::Tokens;

/// Model, system prompt, tools and settings of a request. Serde writes it without the keys of
/// tool servers: a store holds none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// The model's name, as the provider knows it.
    pub model: Option<Box<str>>,
    /// The system prompt, where the format keeps it apart from the messages.
    pub system: Vec<Block>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// Tool choice, thinking settings, betas and all other fields, as they came.
    pub settings: Extra,
}

/// A tool on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name; empty for a provider's own tool that has only a type.
    pub name: Box<str>,
    /// Its definition, as the provider is sent it.
    pub definition: Json,
}

impl Frame {
    /// Reads a frame as a transcript line writes it. Fields of another type than
    /// expected stay in the settings, so nothing is lost.
    ///
    /// ```
    /// use longhaul::{Frame, Json};
    /// let json = Json::new(r#"{"model":"m","tools":[{"name":"Read"}],"temperature":0}"#).unwrap();
    /// let frame = Frame::from_json(&json).unwrap();
    /// assert_eq!(frame.tools[0].name.as_ref(), "Read");
    /// assert_eq!(frame.settings.get("temperature").unwrap().as_str(), "0");
    /// ```
    pub fn from_json(json: &Json) -> Option<Self> {
        let fields: Extra = serde_json::from_str(json.as_str()).ok()?;
        let mut frame = Self::default();
        for (name, value) in fields.iter() {
            match name {
                "model" if let Ok(model) = serde_json::from_str::<Box<str>>(value.as_str()) => {
                    frame.model = Some(model);
                }
                "system" if let Ok(text) = serde_json::from_str::<Box<str>>(value.as_str()) => {
                    frame.system = vec![Block::text(text)];
                }
                "system" if let Ok(blocks) = serde_json::from_str::<Vec<Json>>(value.as_str()) => {
                    frame.system = blocks.into_iter().map(system_block).collect();
                }
                "tools" if let Ok(tools) = serde_json::from_str::<Vec<Json>>(value.as_str()) => {
                    frame.tools = tools.into_iter().map(Tool::from_definition).collect();
                }
                _ => frame.settings.push(name, value.clone()),
            }
        }
        Some(frame)
    }

    /// Names what the frame says, without its secrets: two frames of one key are the same
    /// to whoever reads a prompt.
    pub fn key(&self) -> Handle {
        // A frame into memory: this cannot fail.
        Handle::of(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Whether a provider reads the same prompt from both: model, system prompt, tools, and the
    /// settings that are part of it. How long an answer may be, or who asks, is not.
    pub fn is_same_prompt(&self, other: &Self) -> bool {
        const OF_PROMPT: [&str; 8] = [
            "tool_choice",
            "thinking",
            "reasoning",
            "reasoning_effort",
            "output_config",
            "response_format",
            "text",
            "anthropic-beta",
        ];
        let same_setting = |name: &&str| self.settings.get(name) == other.settings.get(name);
        (&self.model, &self.system, &self.tools) == (&other.model, &other.system, &other.tools)
            && OF_PROMPT.iter().all(same_setting)
    }

    /// The longest answer that the request allows, by any of the names that providers have for it.
    pub fn max_output(&self) -> Option<Tokens> {
        let names = ["max_tokens", "max_output_tokens", "max_completion_tokens"];
        let mut given = names.iter().filter_map(|name| self.settings.get(name)?.value().as_u64());
        given.next().map(Tokens)
    }
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools: Vec<Tool> = self.tools.iter().map(Tool::without_secrets).collect();
        let settings: Extra = self
            .settings
            .iter()
            .map(|(name, value)| (name.into(), without_secrets(value).into_owned()))
            .collect();
        let mut frame = serializer.serialize_struct("Frame", 4)?;
        frame.serialize_field("model", &self.model)?;
        frame.serialize_field("system", &self.system)?;
        frame.serialize_field("tools", &tools)?;
        frame.serialize_field("settings", &settings)?;
        frame.end()
    }
}

/// Fields of tools and settings that hold keys for servers of tools.
const SECRETS: [&str; 4] = ["authorization_token", "authorization", "headers", "api_key"];

/// A value as a file or a store may hold it: without the keys for servers of tools.
pub fn without_secrets(json: &Json) -> Cow<'_, Json> {
    fn redact(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    if SECRETS.contains(&name.as_str()) && !value.is_boolean() && !value.is_null() {
                        *value = Value::from("[redacted]");
                    } else {
                        redact(value);
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(redact),
            _ => {}
        }
    }
    if !SECRETS.iter().any(|name| json.as_str().contains(name)) {
        return Cow::Borrowed(json);
    }
    let mut value = json.value();
    redact(&mut value);
    Cow::Owned(Json::from(&value))
}

/// A text block of a system prompt, or whatever else it is.
fn system_block(value: Json) -> Block {
    match value.value().get("text").and_then(|text| text.as_str()) {
        Some(text) => Block::text(text),
        None => Block::Opaque(Opaque { value, extra: Extra::NONE }),
    }
}

impl Tool {
    fn without_secrets(&self) -> Self {
        Self { name: self.name.clone(), definition: without_secrets(&self.definition).into_owned() }
    }

    /// A tool by its definition: the name is found where providers put it.
    pub fn from_definition(definition: Json) -> Self {
        let value = definition.value();
        let name = value.get("name").or_else(|| value.pointer("/function/name"));
        Self { name: name.and_then(|n| n.as_str()).unwrap_or_default().into(), definition }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_prompt_may_be_text_or_blocks() {
        let frame = |json: &str| Frame::from_json(&Json::new(json).unwrap()).unwrap();
        assert_eq!(
            frame(r#"{"system":"be brief"}"#),
            frame(r#"{"system":[{"type":"text","text":"be brief"}]}"#)
        );
        assert_eq!(frame(r#"{"system":5}"#).settings.get("system").unwrap().as_str(), "5");
        assert_eq!(Frame::from_json(&Json::new("[]").unwrap()), None);
    }

    #[test]
    fn a_stored_frame_has_no_keys_and_the_same_name() {
        let json = r#"{"model":"m","system":"be brief","tools":[{"name":"a","headers":{"x":"sk-1"}}],"mcp_servers":[{"url":"u","authorization_token":"sk-2"}],"max_tokens":4096}"#;
        let frame = Frame::from_json(&Json::new(json).unwrap()).unwrap();
        let text = serde_json::to_string(&frame).unwrap();
        assert!(!text.contains("sk-") && text.contains("[redacted]"), "{text}");
        let back: Frame = serde_json::from_str(&text).unwrap();
        assert_eq!((back.key(), back.max_output()), (frame.key(), Some(Tokens(4_096))));
        assert_ne!(Frame { model: Some("n".into()), ..back }.key(), frame.key());
    }
}
