//! The gateway as a server of tools (Model Context Protocol over HTTP): a model, or a person by the agent, gets back
//! what was taken out, finds what was said, and says what must stay. Messages in, messages out; no connection.

use longhaul::RecallPart;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::{Action, AskError, CalledTool, Desk, ToolCaller};
use crate::recalled::{PAGE, Page};

/// The newest version of the protocol that is spoken here.
const VERSION: &str = "2025-06-18";

/// Versions that are spoken here: what is different between them is not used.
const VERSIONS: [&str; 3] = ["2024-11-05", "2025-03-26", VERSION];

/// Messages that a search gives at most.
const HITS: usize = 20;

/// The answer to a message.
#[derive(Debug)]
pub enum ToolAnswer {
    /// The message wants no answer.
    Nothing,
    /// The answer.
    Answer(Value),
    /// The answer if it stays unknown which conversation calls the tool.
    NoCaller(Value),
}

/// Answers a message. `body` may be anything.
pub(crate) fn answer(desk: &Desk, caller: &ToolCaller, body: &str) -> ToolAnswer {
    let Ok(message) = serde_json::from_str::<Message>(body) else {
        return ToolAnswer::Answer(failed(Value::Null, -32_700, "the message is no JSON-RPC request"));
    };
    // Without an id nobody waits for an answer.
    let Some(id) = message.id else { return ToolAnswer::Nothing };
    let mut has_caller = true;
    let done = match &*message.method {
        "initialize" => Ok(initialized(&message.params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": tools()})),
        "tools/call" => called(desk, caller, &message.params).map(|called| {
            has_caller = !matches!(called, Err(AskError::NoCaller(_)));
            let is_error = called.is_err();
            let text = called.unwrap_or_else(|problem| problem.to_string());
            // What goes wrong inside a tool is for the model to read.
            json!({"content": [{"type": "text", "text": text}], "isError": is_error})
        }),
        method => Err((-32_601, format!("there is no method {method:?}"))),
    };
    let answer = match done {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, problem)) => failed(id, code, &problem),
    };
    if has_caller { ToolAnswer::Answer(answer) } else { ToolAnswer::NoCaller(answer) }
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    method: String,
    #[serde(default)]
    params: Value,
}

fn failed(id: Value, code: i64, problem: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": problem}})
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().filter(|version| VERSIONS.contains(version));
    json!({
        "protocolVersion": asked.unwrap_or(VERSION),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "longhaul", "version": env!("CARGO_PKG_VERSION")},
        "instructions": "Earlier parts of this conversation may be shortened. A mark such as `recall 3f9a51c02b77` \
            names what was left out: the tool `recall` gives it back.",
    })
}

fn tools() -> Value {
    let tool = |name: &str, says: &str, properties: Value, required: &[&str]| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"name": name, "description": says, "inputSchema": schema})
    };
    let text = |says: &str| json!({"type": "string", "description": says});
    let number = |says: &str| json!({"type": "integer", "description": says});
    json!([
        tool(
            "recall",
            "Gives back what was left out of this conversation under a handle, word for word.",
            json!({
                "handle": text("What stands behind `recall` in the mark, such as 3f9a51c02b77."),
                "pattern": text("Only lines that this regular expression fits."),
                "first_line": number("Only lines from this one on, counted from 1."),
                "last_line": number("Only lines up to this one."),
                "first_byte": number("Only what stands behind so many bytes of that."),
            }),
            &["handle"]
        ),
        tool(
            "search",
            "Finds messages of this and earlier conversations in which all words were said.",
            json!({"query": text("The words.")}),
            &["query"]
        ),
        tool(
            "pin",
            "A text that stays in every request from now on.",
            json!({"text": text("The text.")}),
            &["text"]
        ),
        tool(
            "unpin",
            "Takes a pin away.",
            json!({"number": number("The number of the pin, from 1.")}),
            &["number"]
        ),
        tool("goal", "What the work is for from now on.", json!({"text": text("The goal.")}), &["text"]),
        tool("context", "What fills the window of this conversation, its goal and its pins.", json!({}), &[]),
    ])
}

/// The text that a tool gives.
fn called(
    desk: &Desk,
    caller: &ToolCaller,
    params: &Value,
) -> Result<Result<String, AskError>, (i64, String)> {
    let (tenant, name) = (&*caller.tenant, params["name"].as_str().unwrap_or_default());
    let call = CalledTool::new(name, params["arguments"].clone());
    let arguments = &params["arguments"];
    let text = |name: &str| arguments[name].as_str().filter(|text| !text.trim().is_empty());
    let needed =
        |name: &str| text(name).ok_or_else(|| (-32_602, format!("the argument {name:?} is missing")));
    let number = |name: &str| arguments[name].as_u64().and_then(|number| usize::try_from(number).ok());
    Ok(match name {
        "recall" => {
            let part = match (text("pattern"), number("first_line"), number("last_line")) {
                (Some(pattern), ..) => RecallPart::Pattern(pattern.to_owned()),
                (None, None, None) => RecallPart::Whole,
                (None, first, last) => {
                    RecallPart::Lines(first.unwrap_or(1).max(1), last.unwrap_or(usize::MAX))
                }
            };
            let from = number("first_byte").unwrap_or_default();
            let lines = |first, _| format!("first_line {first}");
            let page = Page { part: &part, from, most: PAGE, lines };
            desk.recall(tenant, needed("handle")?.trim(), &part).map(|text| page.of(&text))
        }
        "search" => found(desk, tenant, needed("query")?),
        "pin" => desk.act(caller, &call, &Action::Pin(needed("text")?.to_owned())),
        "unpin" => {
            let missing = || (-32_602, "the argument \"number\" is missing".to_owned());
            desk.act(caller, &call, &Action::Unpin(number("number").ok_or_else(missing)?))
        }
        "goal" => desk.act(caller, &call, &Action::Goal(needed("text")?.to_owned())),
        "context" => desk.context(caller, &call),
        name => return Err((-32_602, format!("there is no tool {name:?}"))),
    })
}

fn found(desk: &Desk, tenant: &str, query: &str) -> Result<String, AskError> {
    let hits = desk.search(tenant, query, HITS)?;
    if hits.is_empty() {
        return Ok("Nothing was found.".to_owned());
    }
    let lines = hits.iter().map(|hit| format!("{} ({}): {}", hit.title, hit.session, hit.snippet));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::DeskSettings;

    fn ask(body: &str) -> Option<Value> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("sessions.db").display().to_string();
        let caller = ToolCaller::of("".into(), &http::HeaderMap::new());
        match answer(&Desk::open(DeskSettings::new(place)).unwrap(), &caller, body) {
            ToolAnswer::Nothing => None,
            ToolAnswer::Answer(answer) | ToolAnswer::NoCaller(answer) => Some(answer),
        }
    }

    #[test]
    fn a_client_is_greeted_and_told_of_the_tools() {
        let greeted = ask(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
        );
        let greeted = greeted.unwrap();
        assert_eq!(greeted["result"]["protocolVersion"], "2025-03-26");
        assert_eq!(greeted["result"]["serverInfo"]["name"], "longhaul");
        assert!(ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_none());
        let listed = ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).unwrap();
        let names: Vec<&str> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["recall", "search", "pin", "unpin", "goal", "context"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let code = |body: &str| ask(body).unwrap()["error"]["code"].as_i64().unwrap();
        assert_eq!(code("{"), -32_700);
        assert_eq!(code(r#"{"id":1,"method":"resources/list"}"#), -32_601);
        assert_eq!(
            code(r#"{"id":1,"method":"tools/call","params":{"name":"recall","arguments":{}}}"#),
            -32_602
        );
        assert_eq!(code(r#"{"id":1,"method":"tools/call","params":{"name":"other"}}"#), -32_602);
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"recall","arguments":{"handle":"3f9a51c02b77"}}}"#;
        let said = ask(call).unwrap();
        assert_eq!(said["result"]["isError"], true);
        assert_eq!(
            said["result"]["content"][0]["text"],
            "no single original has the handle \"3f9a51c02b77\""
        );
    }
}
