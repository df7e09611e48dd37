//! Pictures: each API writes where they are in its own way.

use longhaul::Json;
use serde_json::Value;

use super::write::{Object, quoted};

/// Where a picture is.
pub(super) enum Picture {
    /// In the request, as base64.
    Data {
        media: String,
        data: String,
    },
    Url(String),
    /// With a provider, which is another one than the one that is asked now.
    File,
}

impl Picture {
    /// From a source as any of the APIs, or an agent's transcript, wrote it.
    pub fn from_source(source: &Json) -> Option<Self> {
        let value = match source.value() {
            Value::String(url) => serde_json::json!({ "url": url }),
            other => other,
        };
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(data) = text("data") {
            let media = text("media_type").or_else(|| text("mimeType")).or_else(|| text("mime_type"));
            return Some(Self::Data { media: media.unwrap_or_else(|| "image/png".to_owned()), data });
        }
        if value.get("file_id").is_some_and(Value::is_string) {
            return Some(Self::File);
        }
        let nested = value.pointer("/image_url/url").and_then(Value::as_str).map(str::to_owned);
        let url = text("url").or_else(|| text("image_url")).or(nested)?;
        let Some((media, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
        else {
            return Some(Self::Url(url));
        };
        Some(Self::Data { media: media.to_owned(), data: data.to_owned() })
    }

    /// As a URL, data or not; a file has none.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Data { media, data } => Some(format!("data:{media};base64,{data}")),
            Self::Url(url) => Some(url.clone()),
            Self::File => None,
        }
    }

    /// As Anthropic's `source`. A file of another provider is none of Anthropic's.
    pub fn anthropic_source(&self) -> Option<String> {
        Some(match self {
            Self::Data { media, data } => {
                Object::new().text("type", "base64").text("media_type", media).text("data", data).end()
            }
            Self::Url(url) => format!(r#"{{"type":"url","url":{}}}"#, quoted(url)),
            Self::File => return None,
        })
    }
}
