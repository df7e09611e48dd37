//! The frame of a request: read from any API, written for another. Settings that the other
//! API knows under another name go with it; those it does not know are left out, and said.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul::conversation::{setting_without_secrets, without_secrets};
use longhaul::{Block, End, Extra, Frame, Json, Message, Role, Tool, Voice};
use serde_json::Value as Parsed;

use super::body::Print;
use super::format::{Choice, Format};
use super::marks::{ClientMark, MARK, Mark, MarkPlace, on_object, without};
use super::object::{Fields, Said};
use super::request::Request;
use super::write::Object;
use super::{Api, LeftOut};
use crate::scan::Value;

/// The setting that holds the header `anthropic-beta`, which is no field of the body.
pub(super) const BETAS: &str = "anthropic-beta";

/// Begins the block of the system prompt that Claude Code writes for billing. It is another one at every
/// call, and no word of it is for the model.
const BILLING: &str = "x-anthropic-billing-header";

/// The setting that holds that block: a note of ours, which no field of a client is taken for.
const BILLING_NOTE: &str = "~billing";

/// Settings that are no field of a body.
const NO_FIELDS: [&str; 2] = [BETAS, BILLING_NOTE];

/// By what the long fields of a frame are known again: they need not be read again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameText {
    system: Option<Print>,
    tools: Option<Print>,
}

/// A frame as it was read.
pub(super) struct Read {
    pub frame: Frame,
    pub text: FrameText,
    /// Marks on its system prompt, its tools, and on the request.
    pub marks: Vec<ClientMark>,
}

/// The frame that was read before, with its text and its marks.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub text: FrameText,
    pub frame: &'a Frame,
    pub marks: &'a [ClientMark],
}

impl Before<'_> {
    fn marks(&self, on: impl Fn(MarkPlace) -> bool) -> impl Iterator<Item = ClientMark> {
        self.marks.iter().filter(move |mark| on(mark.place)).cloned()
    }
}

/// Takes the frame out of the fields of a request.
pub(super) fn read_frame(format: &dyn Format, mut fields: Fields<'_>, before: Option<Before<'_>>) -> Read {
    let (mut frame, mut text, mut marks) = (Frame::default(), FrameText::default(), Vec::new());
    let mut back = Vec::new();
    if let Some(value) = fields.take("model") {
        match value.text() {
            Some(model) => frame.model = Some(model.into()),
            None => back.push(("model", value)),
        }
    }
    let mut billing = None;
    if let Some(name) = format.row().system
        && let Some(value) = fields.take(name)
    {
        let print = Print::of(value.raw());
        let known = before.filter(|before| before.text.system == Some(print));
        text.system = Some(print);
        if let Some(before) = known.filter(|before| before.frame.settings.get(name).is_none()) {
            frame.system = before.frame.system.clone();
            billing = before.frame.settings.get(BILLING_NOTE).cloned();
            marks.extend(before.marks(|place| matches!(place, MarkPlace::System(_))));
        } else if let Some(blocks) = read_system(value, format.row().has_marks, &mut marks) {
            frame.system = blocks;
            billing = take_billing(&mut frame.system);
        } else {
            back.push((name, value));
        }
    }
    if let Some(value) = fields.take("tools") {
        let print = Print::of(value.raw());
        let known = before.filter(|before| before.text.tools == Some(print));
        text.tools = Some(print);
        if let Some(before) = known.filter(|before| before.frame.settings.get("tools").is_none()) {
            frame.tools = before.frame.tools.clone();
            marks.extend(before.marks(|place| matches!(place, MarkPlace::Tool(_))));
        } else if value.is_array() {
            let tools = value.elements().enumerate();
            frame.tools = tools.map(|tool| read_tool(tool, format.row().has_marks, &mut marks)).collect();
        } else {
            back.push(("tools", value));
        }
    }
    if let Some(mark) = fields.peek(MARK).filter(|mark| format.row().has_marks && mark.is_object()) {
        fields.take(MARK);
        marks.push(ClientMark::new(MarkPlace::Request, mark.raw()));
    }
    for (name, value) in back {
        fields.put_back(name, value);
    }
    frame.settings = fields.rest();
    billing.into_iter().for_each(|billing| frame.settings.push(BILLING_NOTE, billing));
    Read { frame, text, marks }
}

fn read_tool((number, tool): (usize, Value<'_>), has_marks: bool, marks: &mut Vec<ClientMark>) -> Tool {
    let mut found = Vec::new();
    if has_marks {
        on_object(tool, None, &mut found);
    }
    let set = found.iter().filter(|mark| mark.is_set());
    marks.extend(set.map(|mark| ClientMark::new(MarkPlace::Tool(number), mark.json)));
    // What is left of an object without some fields is an object.
    let unmarked = (!found.is_empty()).then(|| Json::new(without(tool, &found)).ok()).flatten();
    Tool::from_definition(unmarked.unwrap_or_else(|| tool.json()))
}

/// What is written for billing, taken out of the blocks of a system prompt.
fn take_billing(system: &mut Vec<Block>) -> Option<Json> {
    let is_billing = |block: &Block| text_of(block).is_some_and(|text| text.starts_with(BILLING));
    let at = system.iter().position(is_billing)?;
    text_of(&system.remove(at)).map(Json::string)
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
    settings
        .fold(object, |object, (name, value)| {
            object.json(name, setting_without_secrets(name, value).as_str())
        })
        .end()
}

/// A text or a list of text blocks.
fn read_system(value: Value<'_>, has_marks: bool, marks: &mut Vec<ClientMark>) -> Option<Vec<Block>> {
    if let Some(said) = Said::of(value) {
        return Some(vec![Block::text(said.text)]);
    }
    if !value.is_array() {
        return None;
    }
    let mut found = Vec::new();
    let read = |(number, block): (usize, Value<'_>)| {
        let mut fields = Fields::of(block, "a block").ok()?;
        fields.take("type");
        let mut read = Block::text(fields.need_said("text").ok()?.text);
        if let Some(mark) = fields.peek(MARK).filter(|_| has_marks) {
            fields.take(MARK);
            let is_set = mark.raw() != "null";
            found.extend(is_set.then(|| ClientMark::new(MarkPlace::System(number), mark.raw())));
        }
        *super::extra_mut(&mut read) = fields.rest();
        Some(read)
    };
    let blocks: Option<Vec<Block>> = value.elements().enumerate().map(read).collect();
    if blocks.is_some() {
        marks.extend(found);
    }
    blocks
}

/// A body from a frame and messages alone.
pub(super) fn write_body(request: &Request, api: Api, left_out: &mut LeftOut) -> String {
    let (frame, format) = (request.frame(), api.format());
    let messages = request.messages();
    let at_home = is_at_home(request, api);
    let mut object = Object::new();
    if let Some(model) = &frame.model {
        object = object.text("model", model);
    }
    // System messages at the start belong to the system prompt where that stands apart.
    let stands_apart = format.row().system.is_some();
    let is_leading = |message: &&Arc<Message>| match stands_apart {
        true => message.role() == Role::System,
        false => message.voice() == Some(Voice::System),
    };
    let leading = messages.iter().take_while(is_leading).count();
    let ours = request.marks_alone(api);
    let mut units = request.units(api, leading, &ours, left_out);
    let billing: Option<String> =
        frame.settings.get(BILLING_NOTE).and_then(|text| serde_json::from_str(text.as_str()).ok());
    let billing = billing.filter(|_| at_home).map(Block::text);
    let first = billing.iter().chain(&frame.system);
    let behind = messages[..leading].iter().flat_map(|message| message.blocks());
    let system: Vec<&Block> = first.clone().chain(behind).filter(|block| text_of(block).is_some()).collect();
    if !system.is_empty() {
        let texts: Vec<&str> = system.iter().filter_map(|block| text_of(block)).collect();
        let of_frame = first.count();
        // How many blocks there are up to each mark.
        let blocks_to = |mark: &Mark| match mark.end {
            End::Frame => Some(of_frame),
            End::After(parts) if parts <= leading => {
                let before = messages[..parts].iter().map(|message| message.blocks().len());
                Some(of_frame + before.sum::<usize>())
            }
            End::After(_) => None,
        };
        let clients = |number: usize| request.client_mark(api, MarkPlace::System(number));
        let mark = |number: usize| {
            let own = ours.iter().find(|mark| blocks_to(mark) == Some(number + 1));
            clients(number).or(own.map(Mark::json))
        };
        let marks: Vec<Option<&str>> = (0..texts.len()).map(mark).collect();
        let message;
        (object, message) = format.write_system(object, &texts, &marks);
        message.into_iter().for_each(|message| units.insert(0, message));
    }
    object = object.list(format.row().list, &units);
    let written = |tool: &Tool, left_out: &mut LeftOut| match at_home {
        // A frame that was written for this API goes back as it came.
        true => Some(tool.definition.as_str().to_owned()),
        false => write_tool(tool, api, left_out),
    };
    let mut tools: Vec<String> = frame.tools.iter().filter_map(|tool| written(tool, left_out)).collect();
    // The last tool has the mark where no system prompt stands behind it that could have it.
    let last = ours.iter().find(|mark| system.is_empty() && mark.end == End::Frame).map(Mark::json);
    let count = tools.len();
    for (number, tool) in tools.iter_mut().enumerate() {
        let own = last.filter(|_| number + 1 == count);
        let mark = request.client_mark(api, MarkPlace::Tool(number)).or(own);
        if let (Some(mark), Some(open)) = (mark, tool.strip_suffix('}').map(str::trim_end)) {
            let comma = if open.ends_with('{') { "" } else { "," };
            *tool = format!("{open}{comma}\"{MARK}\":{mark}}}");
        }
    }
    if !tools.is_empty() {
        object = object.list("tools", &tools);
    }
    if at_home {
        let object = object.extra(&frame.settings, &NO_FIELDS);
        return object.maybe_json(MARK, request.client_mark(api, MarkPlace::Request)).end();
    }
    write_settings(object, &frame.settings, api, !tools.is_empty(), left_out).end()
}

/// True for a frame that was written for this API. The first request of a host has no message of any API:
/// there the tools tell, so that it begins like those that follow it. A host that writes its tools as another API has
/// them does so in every request, whoever has answered.
fn is_at_home(request: &Request, api: Api) -> bool {
    let tools = &request.frame().tools;
    let is_foreign = |tool: &Tool| {
        let value = tool.definition.value();
        let others = Api::ALL.into_iter().filter(|other| *other != api);
        !api.format().is_tool(&value) && others.into_iter().any(|other| other.format().is_tool(&value))
    };
    match request.source() {
        // What a client sent is not mended.
        Some(source) => source == api && (request.is_read() || !tools.iter().any(is_foreign)),
        None => !tools.is_empty() && tools.iter().all(|tool| api.format().is_tool(&tool.definition.value())),
    }
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
    if api.format().is_tool(&value) {
        return Some(tool.definition.as_str().to_owned());
    }
    let kind = value.get("type").and_then(Parsed::as_str);
    if !matches!(kind, None | Some("function" | "custom")) || tool.name.is_empty() {
        left_out.add(format!("the tool {}", kind.unwrap_or(&tool.name)));
        return None;
    }
    // A tool of free text takes an object with that text here.
    const FREE: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#;
    const NOTHING: &str = r#"{"type":"object","properties":{}}"#;
    let inner = value.get("function").or_else(|| value.get("custom")).unwrap_or(&value);
    let schema = inner.get("parameters").or_else(|| inner.get("input_schema"));
    let schema = match schema.filter(|schema| schema.get("type").is_some()) {
        Some(schema) => Cow::Owned(schema.to_string()),
        None if kind == Some("custom") => Cow::Borrowed(FREE),
        None => Cow::Borrowed(NOTHING),
    };
    let about = inner.get("description").map(Parsed::to_string);
    Some(api.format().write_tool(tool, about.as_deref(), &schema))
}

fn write_settings(
    mut object: Object,
    settings: &Extra,
    api: Api,
    has_tools: bool,
    left_out: &mut LeftOut,
) -> Object {
    let format = api.format();
    let mut written: Vec<&str> = Vec::new();
    let given = settings.iter().filter(|(name, value)| !NO_FIELDS.contains(name) && value.as_str() != "null");
    for (name, value) in given {
        let (name, value) = match name {
            // There is nothing to choose from.
            "tool_choice" if !has_tools => continue,
            "tool_choice" => match tool_choice(value, format) {
                Some(choice) => ("tool_choice", Cow::Owned(choice)),
                None => {
                    left_out.add("the setting `tool_choice`");
                    continue;
                }
            },
            _ => match own_name(name, format) {
                Some((common, name)) => match format.fit(common, &value.value()) {
                    Some(fitting) => (name, Cow::Owned(fitting)),
                    None => (name, Cow::Borrowed(value.as_str())),
                },
                None => {
                    left_out.add(format!("the setting `{name}`"));
                    continue;
                }
            },
        };
        if !written.contains(&name) {
            object = object.json(name, &value);
            written.push(name);
        }
    }
    let wanted = format.wanted().iter().filter(|(name, _)| !written.contains(name));
    wanted.fold(object, |object, (name, value)| object.json(name, value))
}

/// The common name of a setting of any API, and the name that another has for it.
fn own_name(name: &str, format: &dyn Format) -> Option<(&'static str, &'static str)> {
    let mut all = Api::ALL.into_iter().flat_map(|api| api.format().names());
    let (common, _) = all.find(|(_, own)| *own == name)?;
    format.names().iter().find(|(other, _)| other == common).copied()
}

/// Which tool the model must take, in the words of an API.
fn tool_choice(choice: &Json, format: &dyn Format) -> Option<String> {
    let value = choice.value();
    let kind = value.as_str().or_else(|| value.get("type")?.as_str())?;
    let name = value.get("name").or_else(|| value.pointer("/function/name")).and_then(Parsed::as_str);
    let choice = match (kind, name) {
        ("tool" | "function", Some(name)) => Choice::Named(name),
        ("required" | "any", _) => Choice::Any,
        ("auto", _) => Choice::Auto,
        ("none", _) => Choice::None,
        _ => return None,
    };
    Some(format.write_choice(choice))
}
