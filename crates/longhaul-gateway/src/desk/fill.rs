//! Recall by *fill*, for agents that are told of no tools of ours: one tool more stands behind those of the client. The
//! model calls it, the client cannot run it and answers with an error, and what was recalled takes the place of that
//! error. Where it does so is an edit of the session, stored before it is sent.

use longhaul::conversation::Block;
use longhaul::{Frame, Json, Position, RecallBy, RecallPart, Session, Tool};
use longhaul_wire::api::Api;

use crate::recalled::{PAGE, Page};

/// The name of the tool. A result is known by it, whatever the client says in it.
const NAME: &str = "longhaul_recall";

/// What the model is told of the tool.
const SAYS: &str = "Gives back, word for word, what was left out of this conversation where a mark such as \
    `recall 3f9a51c02b77` stands. The client answers with an error, which is replaced by the text.";

/// The arguments of the tool.
const SCHEMA: &str = r#"{"type":"object","properties":{"handle":{"type":"string"},"lines":{"type":"string","description":"such as 10-20"},"pattern":{"type":"string","description":"regular expression"},"first_byte":{"type":"integer"}},"required":["handle"]}"#;

/// The tool, as a conversation began with it: a later version may have another text, which would be another prompt.
pub(super) fn tool(session: &Session, api: Api) -> Tool {
    let tools = session.log().frame().map(|frame| frame.tools.iter()).unwrap_or_default();
    let known = tools.rev().find(|tool| &*tool.name == NAME);
    known.cloned().unwrap_or_else(|| new_tool(api))
}

/// The tool, as an API is told of it in conversations that begin now.
fn new_tool(api: Api) -> Tool {
    // The schema is JSON, as a test says.
    api.tool(NAME, SAYS, &Json::new(SCHEMA).unwrap_or_else(|_| Json::empty_object()))
}

/// Begins to offer the tool in a conversation, with its first request or never. The journal keeps it, and summaries
/// name the tool.
pub(super) fn begin(session: &mut Session) {
    session.set_recall(RecallBy::Tool(NAME.into()));
}

/// Whether the conversation began with the tool.
pub(super) fn is_on(session: &Session) -> bool {
    matches!(session.recall_by(), RecallBy::Tool(name) if &**name == NAME)
}

/// Whether a client that sends this frame is to have the tool: it runs tools, and none for recall.
pub(super) fn is_wanted(frame: &Frame) -> bool {
    !frame.tools.is_empty() && !has_recall(frame)
}

/// Whether a client can recall itself: by our tools over MCP, under the names that agents give them, or all of them
/// under one name.
pub(super) fn has_recall(frame: &Frame) -> bool {
    let recalls = |name: &str| name == NAME || name.ends_with("longhaul__recall") || name == "mcp__longhaul";
    frame.tools.iter().any(|tool| recalls(&tool.name))
}

/// Whether a tool is one of ours, under whatever name an agent gives it: without Longhaul the agent does not have it.
pub(super) fn is_of_longhaul(tool: &Tool) -> bool {
    tool.name.contains("longhaul")
}

/// Puts what was recalled in the place of each result of the tool in a message that has just come.
pub(super) fn fill(session: &mut Session, at: Position) {
    let Some(message) = session.log().get(at).cloned() else { return };
    for (block, content) in message.blocks().iter().enumerate() {
        let Block::ToolResult(result) = content else { continue };
        let call = session.log().call_of(at, result).filter(|call| &*call.name == NAME);
        let Some(arguments) = call.map(|call| call.arguments.clone()) else { continue };
        let text = recalled(session, &arguments);
        // Refused only where a tool of the provider must stay as it is.
        _ = session.answer(at, block, text);
    }
}

/// What a call asks for, or one sentence that says why there is nothing.
fn recalled(session: &Session, arguments: &Json) -> String {
    let asked = Asked::of(arguments);
    let text = asked.and_then(|asked| asked.recalled(session));
    text.unwrap_or_else(|problem| format!("Nothing was recalled: {problem}."))
}

/// What a call asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    handle: String,
    part: RecallPart,
    first_byte: usize,
}

impl Asked {
    fn of(arguments: &Json) -> Result<Self, String> {
        let value = arguments.value();
        // Models write numbers as texts, and texts of digits as numbers.
        let text = |name: &str| match value.get(name)? {
            serde_json::Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let handle = text("handle").ok_or("the argument `handle` is missing")?;
        // The mark may be given as it stands.
        let handle = handle.rsplit(char::is_whitespace).next().unwrap_or_default();
        let handle = handle.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
        let pattern = value.get("pattern").and_then(|pattern| pattern.as_str());
        let part = match (pattern.filter(|pattern| !pattern.is_empty()), text("lines")) {
            (Some(pattern), _) => RecallPart::Pattern(pattern.to_owned()),
            (None, Some(lines)) => lines_of(&lines).ok_or("the argument `lines` is not such as 10-20")?,
            (None, None) => RecallPart::Whole,
        };
        let first_byte = text("first_byte").and_then(|number| number.parse().ok()).unwrap_or_default();
        Ok(Self { handle, part, first_byte })
    }

    fn recalled(&self, session: &Session) -> Result<String, String> {
        let text = session.recall(&self.handle, &self.part).map_err(|problem| problem.to_string())?;
        if text.is_empty() && self.part != RecallPart::Whole {
            return Err("it has no such lines".to_owned());
        }
        // A byte for each token of the window is about a quarter of the window.
        let window = usize::try_from(session.budget().window.0).unwrap_or(usize::MAX);
        let lines = |first, last| format!("lines {first}-{last}");
        let page = Page { part: &self.part, from: self.first_byte, most: PAGE.min(window), lines };
        Ok(page.of(&text))
    }
}

/// Lines such as `10-20`, `10-` or `10`.
fn lines_of(text: &str) -> Option<RecallPart> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim(), last.trim());
    let last = if last.is_empty() { usize::MAX } else { last.parse().ok()? };
    let first = first.parse::<usize>().ok()?.max(1);
    (first <= last).then_some(RecallPart::Lines(first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_json() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(schema["required"], serde_json::json!(["handle"]));
        for api in Api::ALL {
            assert!(new_tool(api).definition.as_str().contains(SCHEMA), "{api:?}");
        }
    }

    #[test]
    fn a_call_may_say_it_in_several_ways() {
        let asked = |arguments: &str| Asked::of(&Json::new(arguments).unwrap());
        let whole = || Asked { handle: "3f9a51c02b77".into(), part: RecallPart::Whole, first_byte: 0 };
        for handle in [
            "3f9a51c02b77",
            " 3f9a51c02b77 ",
            "recall 3f9a51c02b77",
            "`recall 3f9a51c02b77`",
            "[3f9a51c02b77]",
        ] {
            assert_eq!(asked(&format!(r#"{{"handle":"{handle}","lines":"","pattern":null}}"#)), Ok(whole()));
        }
        assert_eq!(asked(r#"{"handle":395151022477}"#).unwrap().handle, "395151022477");
        let part = |arguments: &str| asked(arguments).unwrap().part;
        assert_eq!(part(r#"{"handle":"a","lines":"10-20"}"#), RecallPart::Lines(10, 20));
        assert_eq!(part(r#"{"handle":"a","lines":"0 - 5"}"#), RecallPart::Lines(1, 5));
        assert_eq!(part(r#"{"handle":"a","lines":"7-"}"#), RecallPart::Lines(7, usize::MAX));
        assert_eq!(part(r#"{"handle":"a","lines":7}"#), RecallPart::Lines(7, 7));
        assert_eq!(part(r#"{"handle":"a","lines":"1-2","pattern":"x"}"#), RecallPart::Pattern("x".into()));
        assert_eq!(asked(r#"{"handle":"a","first_byte":9}"#).unwrap().first_byte, 9);
        for wrong in [
            "{}",
            "[]",
            "7",
            r#"{"handle":""}"#,
            r#"{"handle":"a","lines":"b"}"#,
            r#"{"handle":"a","lines":"9-1"}"#,
        ] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_conversation_keeps_the_tool_that_it_began_with() {
        let model = longhaul::Models::builtin().find("gpt-4o").clone();
        let mut session = Session::new(longhaul::Profile::longhaul(), model);
        begin(&mut session);
        assert!(is_on(&session));
        assert_eq!(tool(&session, Api::Chat), new_tool(Api::Chat));
        let older = Api::Chat.tool(NAME, "Gives back.", &Json::empty_object());
        session.set_frame(Frame { tools: vec![older.clone()], ..Frame::default() });
        assert_eq!(tool(&session, Api::Chat), older);
    }
}
