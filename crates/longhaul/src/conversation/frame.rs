//! Everything about a request that is not the conversation: [`Frame`]. A log keeps every
//! version, because a changed frame re-bills the whole prompt.

use crate::conversation::json::{Extra, Json};
use crate::conversation::message::{Block, Opaque};

/// Model, system prompt, tools and settings of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// A text block of a system prompt, or whatever else it is.
fn system_block(value: Json) -> Block {
    match value.value().get("text").and_then(|text| text.as_str()) {
        Some(text) => Block::text(text),
        None => Block::Opaque(Opaque { value, extra: Extra::NONE }),
    }
}

impl Tool {
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
}
