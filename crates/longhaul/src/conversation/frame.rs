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

/// Names under which a request says how long its answer may be.
pub const MAX_OUTPUT: [&str; 3] = ["max_tokens", "max_output_tokens", "max_completion_tokens"];

/// The form of [`Frame::key`]. Stores hold keys: another form has another number.
const KEY_VERSION: u32 = 1;

/// Settings that are part of the prompt: a provider's cache has nothing for another value. All other
/// settings are of the request.
const SETTINGS_OF_PROMPT: [&str; 8] = [
    "tool_choice",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "output_config",
    "response_format",
    "text",
    "anthropic-beta",
];

/// Where a system block begins with this, it is no part of the prompt: its end is another at each call.
const BILLING: &str = "x-anthropic-billing-header";

/// Fields of a system block or a tool that say what a cache should remember.
const CACHE_MARKS: [&str; 1] = ["cache_control"];

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

    /// Names the prompt that the frame makes: two frames of one key are the same to a provider's
    /// cache. It goes by model, system prompt, tools and the settings that are part of the prompt. How
    /// long an answer may be, who asks, cache marks, the order of keys in JSON and keys for servers of
    /// tools are not in it.
    pub fn key(&self) -> Handle {
        let mut text = format!("frame {KEY_VERSION}\n");
        let mut line = |name: &str, value: &str| {
            // Each value is JSON on one line: no two prompts are written alike.
            text.extend([name, " ", value, "\n"]);
        };
        if let Some(model) = &self.model {
            line("model", Json::string(model).as_str());
        }
        for block in self.system_of_prompt() {
            line("system", &system_text(block));
        }
        for tool in self.tools_of_prompt() {
            line("tool", &without_order(&tool.definition, &CACHE_MARKS));
        }
        for (name, value) in self.settings_of_prompt() {
            line(name, &value.map_or_else(String::new, |value| without_order(value, &[])));
        }
        Handle::of(&text)
    }

    /// Whether both have the same [`key`](Self::key). What is equal to the byte is not written out.
    pub fn is_same_prompt(&self, other: &Self) -> bool {
        let equal = self.model == other.model
            && self.tools_of_prompt().eq(other.tools_of_prompt())
            && self.system_of_prompt().eq(other.system_of_prompt())
            && self.settings_of_prompt().eq(other.settings_of_prompt());
        equal || self.key() == other.key()
    }

    /// True if the same agent speaks in both: the model, the system prompt and the tools are the same. How it
    /// thinks, which tool it is to call and other settings may differ from request to request.
    pub fn is_same_agent(&self, other: &Self) -> bool {
        self.model == other.model
            && self.system_of_prompt().eq(other.system_of_prompt())
            && self.tools_of_prompt().eq(other.tools_of_prompt())
    }

    /// The system prompt without what a client writes into it for whoever sends the bill.
    pub(crate) fn system_of_prompt(&self) -> impl Iterator<Item = &Block> {
        let billing = |block: &&Block| matches!(block, Block::Text(text) if text.text.starts_with(BILLING));
        self.system.iter().filter(move |block| !billing(block))
    }

    /// The tools that the prompt begins with. One that is loaded when it is found comes into the prompt
    /// where it was found.
    pub(crate) fn tools_of_prompt(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| !tool.is_deferred())
    }

    /// The tools that come into the prompt where they are found.
    pub(crate) fn tools_deferred(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| tool.is_deferred())
    }

    /// The settings that a provider's cache goes by.
    fn settings_of_prompt(&self) -> impl Iterator<Item = (&'static str, Option<&Json>)> {
        SETTINGS_OF_PROMPT.into_iter().map(|name| (name, self.settings.get(name)))
    }

    /// The longest answer that the request allows, by any of the names that providers have for it.
    pub fn max_output(&self) -> Option<Tokens> {
        let mut given = MAX_OUTPUT.iter().filter_map(|name| self.settings.get(name)?.value().as_u64());
        given.next().map(Tokens)
    }

    /// The tokens that the request allows its thinking, where it names them. They are part of the answer.
    pub fn thinking_budget(&self) -> Option<Tokens> {
        self.settings.get("thinking")?.value()["budget_tokens"].as_u64().map(Tokens)
    }

    /// Lowers the longest answer that the request asks for. A request that asks for none stays as it is.
    pub fn shorten_answer(&mut self, most: Tokens) {
        for name in MAX_OUTPUT {
            if self.settings.get(name).is_some_and(|given| given.value().as_u64().is_some_and(|n| n > most.0))
            {
                self.settings.set(name, Json::from(&serde_json::Value::from(most.0)));
            }
        }
    }
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools: Vec<Tool> = self.tools.iter().map(Tool::without_secrets).collect();
        let settings: Extra = self
            .settings
            .iter()
            .map(|(name, value)| (name.into(), setting_without_secrets(name, value).into_owned()))
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

/// Fields with the address of a server of tools.
const ADDRESSES: [&str; 2] = ["url", "server_url"];

/// What stands for a key.
const REDACTED: &str = "[redacted]";

/// An address without what may be a password in it: what stands before its host, and the values of its query. `None` if it has
/// neither.
fn address_without_secrets(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    // A password may hold any character that its writer did not escape, a slash or an @ too.
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let begins_a_password = !port.bytes().all(|byte| byte.is_ascii_digit()) && !authority.ends_with(']');
    let host = rest.rsplit_once('@').filter(|_| authority.contains('@') || begins_a_password);
    if host.is_none() && query.is_none() {
        return None;
    }
    let value = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={REDACTED}"),
        None => REDACTED.to_owned(),
    };
    let query = query.map(|query| format!("?{}", query.split('&').map(value).collect::<Vec<_>>().join("&")));
    let rest = host.map_or(rest.to_owned(), |(_, host)| format!("{REDACTED}@{host}"));
    Some(format!("{scheme}://{rest}{}", query.unwrap_or_default()))
}

/// A value as a file or a store may hold it: without the keys for servers of tools.
pub fn without_secrets(json: &Json) -> Cow<'_, Json> {
    /// True if there was a key.
    fn redact(value: &mut Value) -> bool {
        let mut found = false;
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    if SECRETS.contains(&name.as_str()) && !value.is_boolean() && !value.is_null() {
                        *value = Value::from(REDACTED);
                        found = true;
                    } else if let Some(plain) = value
                        .as_str()
                        .filter(|_| ADDRESSES.contains(&name.as_str()))
                        .and_then(address_without_secrets)
                    {
                        *value = Value::from(plain);
                        found = true;
                    } else {
                        found |= redact(value);
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| found |= redact(value)),
            _ => {}
        }
        found
    }
    let text = json.as_str();
    // Of addresses without a scheme nothing is left out.
    let has_address = text.contains("://") && ADDRESSES.iter().any(|name| text.contains(name));
    let is_named = has_address || SECRETS.iter().any(|name| text.contains(name));
    // A name, or the scheme of an address, may be written with escapes.
    if !is_named && !text.contains("\\u") && !text.contains("\\/") {
        return Cow::Borrowed(json);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => match redact(&mut value) {
            true => Cow::Owned(Json::from(&value)),
            false => Cow::Borrowed(json),
        },
        // It cannot be told what is in it.
        Err(_) if is_named => Cow::Owned(Json::string(REDACTED)),
        Err(_) => Cow::Borrowed(json),
    }
}

/// A setting as a file or a store may hold it: it may be such a key itself.
pub fn setting_without_secrets<'a>(name: &str, value: &'a Json) -> Cow<'a, Json> {
    let is_flag = matches!(value.as_str(), "true" | "false" | "null");
    if SECRETS.contains(&name) && !is_flag {
        return Cow::Owned(Json::string(REDACTED));
    }
    without_secrets(value)
}

/// A value without its secrets, its spacing and the order of its keys, and without these fields.
fn without_order(json: &Json, left_out: &[&str]) -> String {
    let json = without_secrets(json);
    match serde_json::from_str::<Value>(json.as_str()) {
        Ok(mut value) => {
            if let Value::Object(fields) = &mut value {
                fields.retain(|name, _| !left_out.contains(&name.as_str()));
            }
            value.sort_all_objects();
            value.to_string()
        }
        // Nested deeper than can be parsed: it is itself.
        Err(_) => json.as_str().to_owned(),
    }
}

/// A block of a system prompt as a key has it.
fn system_text(block: &Block) -> String {
    let fields = block.extra().iter().filter(|(name, _)| !CACHE_MARKS.contains(name));
    let mut fields: Vec<(&str, String)> =
        fields.map(|(name, value)| (name, without_order(value, &[]))).collect();
    fields.sort_unstable();
    let said = match block {
        Block::Text(text) => Json::string(&text.text).as_str().to_owned(),
        Block::Opaque(opaque) => without_order(&opaque.value, &CACHE_MARKS),
        // No format has others in a system prompt. A block into memory: this cannot fail.
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    fields
        .into_iter()
        .fold(said, |said, (name, value)| format!("{said} {}:{value}", Json::string(name).as_str()))
}

/// A text block of a system prompt, or whatever else it is.
fn system_block(value: Json) -> Block {
    match value.value().get("text").and_then(|text| text.as_str()) {
        Some(text) => Block::text(text),
        None => Block::Opaque(Opaque { value, extra: Extra::NONE }),
    }
}

impl Tool {
    /// Whether the provider leaves it out of the prompt until the model has found it.
    fn is_deferred(&self) -> bool {
        const DEFERRED: &str = "defer_loading";
        let definition = self.definition.as_str();
        definition.contains(DEFERRED) && self.definition.value().get(DEFERRED) == Some(&Value::Bool(true))
    }

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
    use crate::conversation::message::{Text, Words};

    #[test]
    fn a_system_prompt_may_be_text_or_blocks() {
        assert_eq!(
            frame(r#"{"system":"be brief"}"#),
            frame(r#"{"system":[{"type":"text","text":"be brief"}]}"#)
        );
        assert_eq!(frame(r#"{"system":5}"#).settings.get("system").unwrap().as_str(), "5");
        assert_eq!(Frame::from_json(&Json::new("[]").unwrap()), None);
    }

    fn frame(json: &str) -> Frame {
        Frame::from_json(&Json::new(json).unwrap()).unwrap()
    }

    #[test]
    fn a_stored_frame_has_no_keys_and_the_same_name() {
        let frame = frame(
            r#"{"model":"m","system":"be brief","tools":[{"name":"a","headers":{"x":"sk-1"}}],"mcp_servers":[{"url":"u","authorization_token":"sk-2"}],"max_tokens":4096}"#,
        );
        let text = serde_json::to_string(&frame).unwrap();
        assert!(!text.contains("sk-") && text.contains("[redacted]"), "{text}");
        let back: Frame = serde_json::from_str(&text).unwrap();
        assert_eq!((back.key(), back.max_output()), (frame.key(), Some(Tokens(4_096))));
        assert_ne!(Frame { model: Some("n".into()), ..back }.key(), frame.key());
    }

    #[test]
    fn a_stored_frame_has_no_passwords_of_servers() {
        for (address, stored) in [
            ("https://me:hunter2@mcp.example/x", "https://[redacted]@mcp.example/x"),
            ("https://me:hun/ter2@mcp.example:8/x", "https://[redacted]@mcp.example:8/x"),
            ("https://hunter2@mcp.example", "https://[redacted]@mcp.example"),
            (
                "https://mcp.example/x?apiKey=hunter2&hunter2",
                "https://mcp.example/x?apiKey=[redacted]&[redacted]",
            ),
            ("https://mcp.example:8080/@me/x", "https://mcp.example:8080/@me/x"),
            ("https://[::1]:80/x", "https://[::1]:80/x"),
        ] {
            for escaped in [address.to_owned(), address.replace('/', "\\/")] {
                let frame = frame(&format!(
                    r#"{{"model":"m","tools":[{{"type":"mcp","server_url":"{escaped}"}}],"mcp_servers":[{{"type":"url","url":"{escaped}"}}]}}"#
                ));
                let text = serde_json::to_string(&frame).unwrap();
                assert!(!text.contains("hunter2") && !text.contains("ter2"), "{text}");
                let plain = text.replace("\\/", "/");
                assert_eq!(plain.matches(&format!("\"{stored}\"")).count(), 2, "{text}");
                let back: Frame = serde_json::from_str(&text).unwrap();
                assert_eq!(back.key(), frame.key());
            }
        }
    }

    #[test]
    fn a_key_goes_by_what_a_cache_goes_by() {
        let known = frame(
            r#"{"model":"m","system":[{"type":"text","text":"x-anthropic-billing-header: cc=1; cch=aa"},{"type":"text","text":"be brief"}],"tools":[{"name":"a","input_schema":{"type":"object","properties":{"p":{}}}}],"thinking":{"type":"enabled","budget_tokens":9},"client_metadata":{"a":1,"b":2},"max_tokens":5}"#,
        );
        let mut marked = known.clone();
        let mut extra = Extra::NONE;
        extra.set("cache_control", Json::new(r#"{"type":"ephemeral"}"#).unwrap());
        marked.system[1] = Block::Text(Text { text: "be brief".into(), words: Words::All, extra });
        marked.tools[0].definition = Json::new(
            r#"{"cache_control":{"type":"ephemeral"}, "input_schema": {"properties":{"p":{}},"type":"object"},"name":"a"}"#,
        )
        .unwrap();
        marked.settings.set("thinking", Json::new(r#"{"budget_tokens":9,"type":"enabled"}"#).unwrap());
        marked.settings.set("client_metadata", Json::new(r#"{"b":2,"a":1}"#).unwrap());
        marked.settings.set("max_tokens", Json::new("6").unwrap());
        marked.system[0] = Block::text("x-anthropic-billing-header: cc=1; cch=bb");
        assert!(known != marked && known.key() == marked.key() && known.is_same_prompt(&marked));
        for name in SETTINGS_OF_PROMPT {
            let mut other = known.clone();
            other.settings.set(name, Json::new(r#"{"type":"other"}"#).unwrap());
            assert!(known.key() != other.key() && !known.is_same_prompt(&other), "{name}");
        }
        // A field of a schema is no mark, whatever its name.
        let property = known.tools[0].definition.as_str().replace("\"p\"", "\"cache_control\"");
        let tools = vec![Tool::from_definition(Json::new(property).unwrap())];
        assert_ne!(Frame { tools, ..known.clone() }.key(), known.key());
        // A tool that is loaded when it is found is not in the prompt before.
        let mut found = known.clone();
        let deferred = r#"{"name":"b","description":"defer_loading","input_schema":{},"defer_loading":true}"#;
        found.tools.insert(0, Tool::from_definition(Json::new(deferred).unwrap()));
        assert!(found.key() == known.key() && found.is_same_prompt(&known));
        found.tools[0] = Tool::from_definition(Json::new(deferred.replace("true", "false")).unwrap());
        assert!(found.key() != known.key() && !found.is_same_prompt(&known));
        let mut split = known.clone();
        split.system = vec![Block::text("be"), Block::text(" brief")];
        assert_ne!(split.key(), known.key());
    }

    /// Stores hold keys: where one of these changes, `KEY_VERSION` must.
    #[test]
    fn keys_stay_as_they_are() {
        let keys = [
            Frame::default(),
            frame(r#"{"model":"m","system":"be brief"}"#),
            frame(
                r#"{"model":"m","system":[{"type":"text","text":"two\nlines"},{"type":"image","url":"u"}],"tools":[{"type":"function","function":{"name":"a","parameters":{}}}],"tool_choice":"auto","reasoning":{"effort":"high"},"anthropic-beta":"x,y","stream":true}"#,
            ),
        ];
        let keys: Vec<String> = keys.iter().map(|frame| frame.key().short()).collect();
        assert_eq!(keys, ["ac67950bc00b", "3be8648d57ba", "c1f62093532e"]);
    }
}
