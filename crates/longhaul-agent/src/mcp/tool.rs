//! A tool of a server, as one of the agent's.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::message::McpError;
use crate::envelope::{Code, Envelope, Image, ToolError};
use crate::tool::{Definition, Effect, Running, Tool};

/// How long a call may take.
const LONGEST: Duration = Duration::from_secs(300);
/// Characters of a description.
const DESCRIPTION: usize = 4_000;
/// Characters of a name: what providers take.
const NAME: usize = 64;
/// Pictures that models look at.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A tool of a server.
pub(super) struct McpTool {
    definition: Definition,
    /// As the server knows it.
    name: String,
    server: Arc<Server>,
}

impl McpTool {
    /// The tool of a definition; `None` for one that cannot be called.
    pub(super) fn of(server_name: &str, definition: &Value, server: &Arc<Server>) -> Option<Self> {
        let name = definition["name"].as_str()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let plain: String = name.chars().map(|c| if is_name(c) { c } else { '_' }).collect();
        let shown: String = format!("mcp__{server_name}__{plain}").chars().take(NAME).collect();
        let description: String =
            definition["description"].as_str().unwrap_or_default().chars().take(DESCRIPTION).collect();
        let schema = Some(&definition["inputSchema"]).filter(|schema| schema.is_object()).cloned();
        let schema = schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
        Some(Self {
            definition: Definition { name: shown, description, schema },
            name: name.to_owned(),
            server: server.clone(),
        })
    }

    async fn call(&self, arguments: &Value) -> Result<Envelope, ToolError> {
        let params = json!({ "name": self.name, "arguments": arguments });
        let called = timeout(LONGEST, self.server.ask("tools/call", params)).await;
        let result = called.unwrap_or(Err(McpError::Slow)).map_err(|error| {
            let code = if error == McpError::Slow { Code::Timeout } else { Code::Failed };
            ToolError::new(code, error.to_string())
        })?;
        Ok(envelope(&result))
    }
}

impl Tool for McpTool {
    fn definition(&self) -> Definition {
        self.definition.clone()
    }

    fn effect(&self, _: &Value) -> Effect {
        // What a server says of its tools is not to be believed.
        Effect::Foreign(self.definition.name.clone())
    }

    fn run<'a>(&'a self, arguments: Value, stop: &'a CancellationToken) -> Running<'a> {
        Box::pin(async move {
            let mut envelope = tokio::select! {
                called = self.call(&arguments) => Envelope::from(called),
                () = stop.cancelled() => {
                    Envelope::error(ToolError::new(Code::Interrupted, "it was stopped by the user before it ended"))
                }
            };
            envelope.context.insert("params_input".to_owned(), arguments);
            envelope
        })
    }
}

/// What a server answered.
fn envelope(result: &Value) -> Envelope {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in result["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text") => texts.extend(part["text"].as_str().map(str::to_owned)),
            Some("image") => match picture(part) {
                Some(image) => images.push(image),
                None => texts.push("(a picture that cannot be shown)".to_owned()),
            },
            _ => texts.push(part.to_string()),
        }
    }
    if texts.is_empty() && !result["structuredContent"].is_null() {
        texts.push(result["structuredContent"].to_string());
    }
    let text = texts.join("\n");
    if result["isError"] == true {
        let message = if text.is_empty() { "the tool failed and says nothing".to_owned() } else { text };
        return Envelope::error(ToolError::new(Code::Failed, message));
    }
    let says = if text.is_empty() { "done".to_owned() } else { format!("{} bytes", text.len()) };
    let mut envelope = Envelope::success(says.clone()).with("content", text.clone());
    envelope = envelope.plain(if text.is_empty() { says } else { text });
    envelope.images = images;
    envelope
}

fn picture(part: &Value) -> Option<Image> {
    let kind = part["mimeType"].as_str()?;
    let media_type = PICTURES.into_iter().find(|known| *known == kind)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(part["data"].as_str()?).ok()?;
    Some(Image { media_type, bytes })
}
