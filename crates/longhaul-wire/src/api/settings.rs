//! The frame of a request: read from any API, written for another. Settings that the other
//! API knows under another name go with it; those it does not know are left out, and said.

use std::borrow::Cow;

use longhaul::conversation::without_secrets;
use longhaul::{Block, End, Extra, Frame, Json, Role, Tool};
use serde_json::Value;
use serde_json::value::RawValue;

use super::write::{Object, quoted};
use super::{Api, BETAS, LeftOut, Mark, Request};
use crate::fields::Fields;

/// Names of one setting in Chat, Responses and Anthropic; empty where there is none.
const NAMES: [[&str; 3]; 8] = [
    ["max_completion_tokens", "max_output_tokens", "max_tokens"],
    ["max_tokens", "max_output_tokens", "max_tokens"],
    ["temperature", "temperature", "temperature"],
    ["top_p", "top_p", "top_p"],
    ["stream", "stream", "stream"],
    ["stop", "", "stop_sequences"],
    ["parallel_tool_calls", "parallel_tool_calls", ""],
    ["prompt_cache_key", "prompt_cache_key", ""],
];

/// Anthropic demands a limit for the answer.
const ANSWER: &str = "8192";

/// Takes the frame out of the fields of a request. `system` is the field of the system prompt.
pub(super) fn read_frame(mut fields: Fields<'_>, system: &'static str) -> Frame {
    let mut frame = Frame::default();
    let mut back = Vec::new();
    if let Some(json) = fields.take("model") {
        match serde_json::from_str(json.get()) {
            Ok(model) => frame.model = Some(model),
            Err(_) => back.push(("model", json)),
        }
    }
    if let Some(json) = fields.take(system) {
        match read_system(json) {
            Some(blocks) => frame.system = blocks,
            None => back.push((system, json)),
        }
    }
    if let Some(json) = fields.take("tools") {
        match serde_json::from_str::<Vec<Json>>(json.get()) {
            Ok(tools) => frame.tools = tools.into_iter().map(Tool::from_definition).collect(),
            Err(_) => back.push(("tools", json)),
        }
    }
    for (name, json) in back {
        fields.put_back(name, json);
    }
    frame.settings = fields.rest();
    frame
}

/// The frame as a transcript holds it.
pub(super) fn frame_json(frame: &Frame) -> String {
    let mut object = Object::new();
    if let Some(model) = &frame.model {
        object = object.text("model", model);
    }
    if !frame.system.is_empty() {
        let text =
            |block: &Block| Some(Object::new().text("type", "text").text("text", text_of(block)?).end());
        object = object.list("system", &frame.system.iter().filter_map(text).collect::<Vec<_>>());
    }
    if !frame.tools.is_empty() {
        let tools: Vec<String> =
            frame.tools.iter().map(|tool| without_secrets(&tool.definition).as_str().to_owned()).collect();
        object = object.list("tools", &tools);
    }
    let settings = frame.settings.iter().filter(|(name, _)| !matches!(*name, "model" | "system" | "tools"));
    settings.fold(object, |object, (name, value)| object.json(name, without_secrets(value).as_str())).end()
}

/// A text or a list of text blocks.
fn read_system(json: &RawValue) -> Option<Vec<Block>> {
    if json.get().starts_with('"') {
        return serde_json::from_str::<Box<str>>(json.get()).ok().map(|text| vec![Block::text(text)]);
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(json.get()).ok()?;
    let read = |block: &RawValue| {
        let mut fields = Fields::read(block.get(), "a block").ok()?;
        fields.take("type");
        let mut block = Block::text(fields.need_text("text").ok()?);
        *super::extra_mut(&mut block) = fields.rest();
        Some(block)
    };
    blocks.into_iter().map(read).collect()
}

/// A body from a frame and messages alone.
pub(super) fn write_body(request: &Request, api: Api, left_out: &mut LeftOut) -> String {
    let frame = &request.frame;
    let mut object = Object::new();
    if let Some(model) = &frame.model {
        object = object.text("model", model);
    }
    // System messages at the start belong to the system prompt where that stands apart.
    let first = request.messages.iter().take_while(|m| m.role() == Role::System).count();
    let first = if api == Api::Chat { 0 } else { first };
    let marks = request.marks();
    let behind: Vec<Mark> = marks.iter().filter_map(|mark| mark.behind(first)).collect();
    let mut units = request.units(api, &request.messages[first..], &behind, left_out);
    let leading = request.messages[..first].iter().flat_map(|message| message.blocks());
    let system: Vec<&Block> = frame.system.iter().chain(leading).collect();
    let texts: Vec<&str> = system.iter().filter_map(|block| text_of(block)).collect();
    match api {
        _ if texts.is_empty() => {}
        Api::Chat => {
            units.insert(0, Object::new().text("role", "system").text("content", &texts.join("\n\n")).end());
        }
        Api::Responses => object = object.text("instructions", &texts.join("\n\n")),
        Api::Anthropic => {
            // How many blocks there are up to each mark.
            let blocks_to = |mark: &Mark| match mark.end {
                End::Frame => Some(frame.system.len()),
                End::After(parts) if parts <= first => {
                    let before = request.messages[..parts].iter().map(|message| message.blocks().len());
                    Some(frame.system.len() + before.sum::<usize>())
                }
                End::After(_) => None,
            };
            let block = |(number, block): (usize, &&Block)| {
                let object = Object::new().text("type", "text").text("text", text_of(block)?);
                let ours = marks.iter().find(|mark| blocks_to(mark) == Some(number + 1));
                let client = block.extra().get("cache_control").map(Json::as_str);
                Some(object.maybe_json("cache_control", client.or(ours.map(|mark| mark.json()))).end())
            };
            let blocks: Vec<String> = system.iter().enumerate().filter_map(block).collect();
            object = object.list("system", &blocks);
        }
    }
    object = object.list(api.list(), &units);
    // A frame that was written for this API goes back as it came.
    if request.source() == Some(api) {
        if !frame.tools.is_empty() {
            let tools = frame.tools.iter().map(|tool| tool.definition.as_str().to_owned()).collect();
            object = object.list("tools", &marked_tools(tools, request, api));
        }
        return object.extra(&frame.settings, &[BETAS]).end();
    }
    let tools = frame.tools.iter().filter_map(|tool| write_tool(tool, api, left_out)).collect();
    let tools = marked_tools(tools, request, api);
    if !tools.is_empty() {
        object = object.list("tools", &tools);
    }
    write_settings(object, &frame.settings, api, !tools.is_empty(), left_out).end()
}

/// Tools, the last with a mark where no system prompt stands behind them that could have it.
fn marked_tools(mut tools: Vec<String>, request: &Request, api: Api) -> Vec<String> {
    let alone = api == Api::Anthropic && request.frame.system.is_empty();
    let mark = request.marks().into_iter().find(|mark| alone && mark.end == End::Frame);
    if let (Some(last), Some(mark)) = (tools.last_mut(), mark)
        && let Some(open) = last.strip_suffix('}')
        && !last.contains(super::MARK)
    {
        *last = format!("{open},\"cache_control\":{}}}", mark.json());
    }
    tools
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// A tool that the host runs, for an API; a provider's own is sent to none but its own.
fn write_tool(tool: &Tool, api: Api, left_out: &mut LeftOut) -> Option<String> {
    let value = tool.definition.value();
    let kind = value.get("type").and_then(Value::as_str);
    let inner = value.get("function").or_else(|| value.get("custom")).unwrap_or(&value);
    let schema = inner.get("parameters").or_else(|| inner.get("input_schema"));
    let is_function = matches!(kind, None | Some("function" | "custom")) && !tool.name.is_empty();
    let at_home = match api {
        Api::Chat => value.get("function").is_some(),
        Api::Responses => kind == Some("function") && value.get("function").is_none(),
        Api::Anthropic => value.get("input_schema").is_some(),
    };
    if at_home {
        return Some(tool.definition.as_str().to_owned());
    }
    if !is_function {
        left_out.add(format!("the tool {}", kind.unwrap_or(&tool.name)));
        return None;
    }
    // A tool of free text takes an object with that text here.
    const FREE: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#;
    const NOTHING: &str = r#"{"type":"object","properties":{}}"#;
    let schema = match schema.filter(|schema| schema.get("type").is_some()) {
        Some(schema) => Cow::Owned(schema.to_string()),
        None if kind == Some("custom") => Cow::Borrowed(FREE),
        None => Cow::Borrowed(NOTHING),
    };
    let about = inner.get("description").map(Value::to_string);
    let named = |object: Object, schema_name: &str| {
        let object = object.text("name", &tool.name).maybe_json("description", about.as_deref());
        object.json(schema_name, &schema).end()
    };
    Some(match api {
        Api::Anthropic => named(Object::new(), "input_schema"),
        // OpenAI is strict here unless told otherwise.
        Api::Responses => named(Object::new().text("type", "function").json("strict", "false"), "parameters"),
        Api::Chat => {
            let function = named(Object::new(), "parameters");
            Object::new().text("type", "function").json("function", &function).end()
        }
    })
}

fn write_settings(
    mut object: Object,
    settings: &Extra,
    api: Api,
    has_tools: bool,
    left_out: &mut LeftOut,
) -> Object {
    let column = api as usize;
    let mut written: Vec<&str> = Vec::new();
    let given = settings.iter().filter(|(name, value)| *name != BETAS && value.as_str() != "null");
    for (name, value) in given {
        let (name, value) = match name {
            // There is nothing to choose from.
            "tool_choice" if !has_tools => continue,
            "tool_choice" => match tool_choice(value, api) {
                Some(choice) => ("tool_choice", Cow::Owned(choice)),
                None => {
                    left_out.add("the setting `tool_choice`");
                    continue;
                }
            },
            _ => {
                let row = NAMES.iter().find(|names| names.contains(&name));
                match row.map(|row| row[column]).filter(|name| !name.is_empty()) {
                    Some("stop_sequences") if value.as_str().starts_with('"') => {
                        ("stop_sequences", Cow::Owned(format!("[{}]", value.as_str())))
                    }
                    // Anthropic's scale ends where OpenAI's is half way.
                    Some("temperature") if api == Api::Anthropic && value.value().as_f64() > Some(1.0) => {
                        ("temperature", Cow::Borrowed("1"))
                    }
                    Some(name) => (name, Cow::Borrowed(value.as_str())),
                    None => {
                        left_out.add(format!("the setting `{name}`"));
                        continue;
                    }
                }
            }
        };
        if !written.contains(&name) {
            object = object.json(name, &value);
            written.push(name);
        }
    }
    if api == Api::Anthropic && !written.contains(&"max_tokens") {
        object = object.json("max_tokens", ANSWER);
    }
    object
}

/// Which tool the model must take, in the words of an API.
fn tool_choice(choice: &Json, api: Api) -> Option<String> {
    let value = choice.value();
    let kind = value.as_str().or_else(|| value.get("type")?.as_str())?;
    let name = value.get("name").or_else(|| value.pointer("/function/name")).and_then(Value::as_str);
    let named = |kind: &str, name: &str| Object::new().text("type", kind).text("name", name).end();
    Some(match (api, kind, name) {
        (Api::Anthropic, "tool" | "function", Some(name)) => named("tool", name),
        (Api::Responses, "tool" | "function", Some(name)) => named("function", name),
        (Api::Chat, "tool" | "function", Some(name)) => Object::new()
            .text("type", "function")
            .json("function", &format!(r#"{{"name":{}}}"#, quoted(name)))
            .end(),
        (Api::Anthropic, "required" | "any", _) => r#"{"type":"any"}"#.to_owned(),
        (Api::Anthropic, "auto" | "none", _) => format!(r#"{{"type":"{kind}"}}"#),
        (_, "required" | "any", _) => quoted("required"),
        (_, "auto" | "none", _) => quoted(kind),
        _ => return None,
    })
}
